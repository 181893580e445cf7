# A zone that is too small: what fits is served and stays current, names in the
# configuration come first, it is said, and it heals.  And one that is large
# enough: 10 000 Services with ten endpoints each in the default size.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Full zones, and scale."""

import hashlib
import re
import signal
import threading
import time

import objects
import pytest
from cluster import informer
from nginx import PATIENCE, rss, wait_until

CONF = """
    upstream web { kube_service zz-last/web; }
    upstream any { kube_service $http_x namespaces=%s,zz-last; }
    server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://web; }
        location /by { proxy_pass http://any; }
    }
""" % ",".join(
    f"ns-{n:03d}" for n in range(10)
)

SLICES = "endpointslices"
LARGE = 10000
WIDE = 1024     # slices that one Service may have
RATE, BATCH = 3000, 500
ADDRESS = re.compile(rb'"10\.[0-9]+\.')


def full(gateway):
    """How many objects were refused for want of room."""
    found = gateway.status.metrics().find("nginx_kube_zone_failures_total")
    return sum(found)


def by(gateway, key):
    """$kube_error of a request for that Service."""
    return gateway.get("/by", headers={"X": key}).headers["x-kube-error"]


def fill(cluster, services, endpoints):
    """A scale fixture, and one Service whose name sorts last of all."""
    cluster.api.load_scale(services, endpoints)
    return cluster.service("zz-last", "web", 2)


class Full:
    """
    A zone that is filled to four times its room: one namespace wants sixty
    percent, eight want five each, and a Service of the configuration, with real
    backends, sorts last of all.
    """

    # names of one length, as are versions: shares are of bytes
    TENANTS = ["hog-0"] + [f"mid-{n}" for n in range(8)]

    def __init__(self, cluster, mib, endpoints, wide=0):
        self.cluster, self.zone = cluster, f"kube {mib}m"
        self.number = 4 * (mib << 20) * 7 // 10 // (200 + (13 + wide) * endpoints)
        self.endpoints, self.wide = endpoints, wide
        self.round = 0
        cluster.api.restore(cluster.api.rv, 10**8)
        cluster.api.put_all(self.objects(range(self.number)))
        self.pods = cluster.service("zz-last", "web", 2)
        self.gateways = [self.start(), self.start()]

    def start(self):
        """A gateway with a zone of that size."""
        conf = CONF.replace("namespaces=", f"namespaces={','.join(self.TENANTS)},")
        block = informer(self.cluster.api.url, zone=self.zone)
        made = self.cluster.nginx(conf, block=block, workers=1, sync=False)
        made.status.wait_synced(60 * PATIENCE)
        return made

    def key(self, n):
        """Where the n-th Service is."""
        return (self.TENANTS[0 if n % 20 < 12 else 1 + n % 20 - 12], f"svc-{n:05d}")

    def tail(self, n, k):
        """So many characters of a pod's name that no other's has."""
        return hashlib.shake_128(b"%d %d" % (n, k)).hexdigest(self.wide // 2)

    def objects(self, numbers):
        """Services of one size, each with its slice, in a new version."""
        self.round += 1
        for n in numbers:
            ns, name = self.key(n)
            made = [
                objects.endpoint(
                    f"10.{self.round % 250}.{n >> 6 & 255}.{n % 64 + k % 64 + 1}",
                    pod=f"{name}-{k:04x}{self.tail(n, k)}",
                    node="node-a",
                    zone="zone-a",
                    ns=ns,
                )
                for k in range(self.endpoints)
            ]
            yield objects.service(ns, name)
            yield objects.slice(ns, f"{name}-1", name, made)

    def rows(self, gateway):
        """What its status says of the two resources."""
        return [gateway.status.resource(r) for r in ("services", SLICES)]

    @staticmethod
    def held(gateway):
        """{(namespace, name): generation} of what readers find; that of web may change."""
        return {
            (r["namespace"], r["name"]): r["generation"] * (r["namespace"] != "zz-last")
            for r in gateway.status.services(limit=500)
        }

    def settled(self):
        """
        Both are at the last version, hold the same of each namespace's share,
        and go on doing so: what a list leaves out the next one for room takes.
        """
        last = [(), ()]

        def check():
            now = [self.held(g).keys() for g in self.gateways]
            same = now == last and now[0] == now[1]
            last[:] = now
            return same and self.fair(now[0])

        for gateway in self.gateways:
            self.cluster.steady(gateway)
        wait_until(check, 90 * PATIENCE, lambda: [self.shares(keys) for keys in last])
        return last[0]

    def at_rest(self, relists):
        """Settled; where lists are looked at, so that one more brings nothing."""
        keys = self.settled()
        for _ in range(relists and 5):
            self.relist()
            before, keys = keys, self.settled()
            if keys == before:
                break
        return keys

    def check_counts(self):
        """All up to the version is held, named or counted."""
        for gateway in self.gateways:
            for row in self.rows(gateway):
                there = len(self.cluster.api.state_at(row["resource"]))
                known = row["objects"] + row["refused_total"]
                assert known <= there <= known + row["refused_unnamed"], row

    def shares(self, keys):
        """How many Services of each namespace are among these."""
        return [sum(ns == tenant for ns, _ in keys) for tenant in self.TENANTS]

    def fair(self, keys):
        """Services of one size in nine namespaces that want more: as many of each."""
        shares = self.shares(keys)
        return max(shares) - min(shares) <= 1 and sum(shares) > self.number / 4 * 0.6

    def churn(self, seconds):
        """
        Changes RATE slices a second, as long as both follow; the version moves
        all the while.  How many, and in what time.
        """
        begun, n, rv, spare = time.monotonic(), 0, 0, self.cluster.pods(4, "churn")
        while time.monotonic() < begun + seconds:
            self.round += 1
            numbers = [(n + i) % self.number for i in range(BATCH)]
            address = b'"10.%d.' % (self.round % 250)
            keys = [(ns, f"{name}-1") for ns, name in map(self.key, numbers)]
            self.cluster.api.edit_all(SLICES, keys, lambda text: ADDRESS.sub(address, text))
            n += BATCH
            self.pods = spare[n // BATCH % 2 * 2 :][:2]
            before, rv = rv, self.cluster.slice("zz-last", "web", self.pods)
            for gateway in self.gateways:
                gateway.status.wait_rv(before, timeout=30 * PATIENCE)
            time.sleep(max(0, begun + n / RATE - time.monotonic()))
        return n, time.monotonic() - begun

    def relist(self):
        """Every scope is listed again; but for one slice nothing has changed."""
        before = [row["lists"] for g in self.gateways for row in self.rows(g)]
        self.cluster.api.refuse()
        self.cluster.slice("zz-last", "web", self.pods)
        self.cluster.api.compact()
        self.cluster.api.listen()

        def listed():
            now = [row["lists"] for g in self.gateways for row in self.rows(g)]
            return all(a > b for a, b in zip(now, before))

        wait_until(listed, 60 * PATIENCE)
        for gateway in self.gateways:
            self.cluster.steady(gateway)

    def empty(self):
        """Deletes nine of ten Services; how long until all that is left is held."""
        for n in range(self.number):
            if n % 10:
                ns, name = self.key(n)
                self.cluster.api.delete("services", ns, name)
                self.cluster.api.delete(SLICES, ns, f"{name}-1")
        started = time.monotonic()
        left = len(self.cluster.api.state_at(SLICES))

        def healed():
            return all(
                row["objects"] == left and not row["refused"] and not row["refused_unnamed"]
                for gateway in self.gateways
                for row in self.rows(gateway)
            )

        wait_until(healed, 90 * PATIENCE, lambda: self.rows(self.gateways[0]))
        return time.monotonic() - started


def full_zone(cluster, figure, mib, endpoints, churn, relists, wide=0):
    """Fills a zone, changes what is in it, lists it again, and empties it."""
    full = Full(cluster, mib, endpoints, wide)
    first, second = full.gateways
    keys = full.at_rest(relists)
    full.check_counts()
    refused = sum(row["refused_unnamed"] for row in full.rows(first))
    assert refused > 0 and ("zz-last", "web") in keys

    def outside_says_so():
        # who is held may change once more: a list for room is under way
        held = full.held(first).keys()
        outside = next(full.key(n) for n in range(full.number) if full.key(n) not in held)
        return by(first, "/".join(outside)) == "not_synced"

    wait_until(outside_says_so)
    # with some that have no name nobody knows what does not exist
    assert by(first, "hog-0/no-such-one") == "not_synced"

    # some hundred requests a second: their client shares the stand-in's processor
    with first.load(pause=0.005) as load:
        wait_until(lambda: load.total > 20)
        changed, took = full.churn(churn)
        keys = full.at_rest(relists)
        for _ in range(relists):
            before = [full.held(g) for g in full.gateways]
            full.relist()
            assert [full.held(g) for g in full.gateways] == before
        seconds = full.empty()
        total = load.total
        wait_until(lambda: load.total > total + 20)
    assert not load.failures
    full.check_counts()
    assert by(first, "hog-0/no-such-one") == "no_service"
    assert full.held(first).keys() == full.held(second).keys()
    figure(
        f"{mib} MiB: {len(keys)} of {full.number + 1} Services held, {refused} objects counted; "
        f"{changed / took:.0f} changes/s for {took:.0f} s; {load.total} requests, none failed; "
        f"healed {seconds:.1f} s after the deletes"
    )
    return seconds


@pytest.mark.timeout(120 * PATIENCE)
def test_full_zone(cluster, figure):
    """The short form of t/proof/test_zone_sizes.py, without its lists."""
    assert full_zone(cluster, figure, 1, 100, churn=2, relists=0) < 15 * PATIENCE


class Relisted:
    """One gateway whose scopes are listed again while nothing changes."""

    rows, held, relist = Full.rows, staticmethod(Full.held), Full.relist

    def __init__(self, cluster, gateway, pods):
        self.cluster, self.gateways, self.pods = cluster, [gateway], pods

    def check(self, times, load):
        """Who is held stays, and is not written anew; each request finds it."""
        before = self.held(self.gateways[0])
        total = load.total
        for _ in range(times):
            self.relist()
            assert self.held(self.gateways[0]) == before
        wait_until(lambda: load.total > total + 20)
        assert not load.failures


class TestSmall:
    """A zone of 512k, in quick."""

    SERVICES = 700
    LAST = "ns-009/svc-00699"

    @pytest.fixture
    def gateway(self, cluster):
        """An nginx whose zone is full."""
        self.pods = fill(cluster, self.SERVICES, 40)
        made = cluster.nginx(
            CONF, block=informer(cluster.api.url, zone="kube 512k"), workers=1, sync=False
        )
        made.status.wait_synced(60 * PATIENCE)
        return made

    def test_says_so(self, cluster, gateway):
        found = gateway.status.informer()
        assert found["zone"]["failures"] > 0 and full(gateway) > 0
        assert gateway.grep_log(r"zone_full")
        assert len(gateway.grep_log(r"zone_full|refused_object")) < 20
        refused = [r for row in found["resources"] for r in row["refused"]]
        assert refused and {r["reason"] for r in refused} == {"zone_full"}
        assert len(refused) <= 200
        answer = gateway.status.get("/")
        assert "zone" in answer.text and "full" in answer.text.lower()

        # names of the configuration first
        assert gateway.backends(12).keys() == {p.name for p in self.pods}

        def held():
            return [(r["namespace"], r["name"]) for r in gateway.status.services(limit=500)]

        def one():
            """Who of a namespace is held may change while it is looked at."""
            return next(name for ns, name in held() if ns == "ns-000")

        assert ("zz-last", "web") in held()
        assert 50 < len(held()) < self.SERVICES + 1
        # it is there, and its addresses are none that may be used
        wait_until(lambda: by(gateway, f"ns-000/{one()}") == "address_denied")

        def outside():
            """One that exists, and for which there is no room."""
            keys = set(held())
            every = ((f"ns-{i % 10:03d}", f"svc-{i:05d}") for i in range(self.SERVICES))
            key = "/".join(next(k for k in every if k not in keys))
            return by(gateway, key) == "not_synced" and key

        gateway.wait_log(rf"Service {wait_until(outside)} is not held")

        # what is there stays current
        for n in range(5):
            new = cluster.pods(1, f"n{n}")
            gateway.status.wait_rv(cluster.slice("zz-last", "web", new))
            assert gateway.get().backend == f"n{n}-1"

        def changed():
            name = one()
            made = objects.slice("ns-000", f"{name}-00000", name, ["127.50.0.1"])
            gateway.status.wait_rv(cluster.api.put(made))
            return gateway.status.used("ns-000", name) == ["127.50.0.1"]

        wait_until(changed)

    def test_over_a_death_and_a_reload(self, cluster, gateway):
        """What was counted stands, without a list; and the recovery is one line."""
        rows = [gateway.status.resource(r) for r in ("services", SLICES)]
        counted = [row["refused_unnamed"] for row in rows]
        assert all(counted)
        gateway.kill(signal.SIGKILL, gateway.informer())
        gateway.allow(r"exited on signal 9")
        wait_until(lambda: gateway.status.informer()["writer"]["crashes"] == 1)
        gateway.change(gone=True)
        wait_until(lambda: gateway.status.informer()["writer"]["takeovers"] >= 2)
        for row, n in zip(rows, counted):
            now = gateway.status.resource(row["resource"])
            assert now["refused_unnamed"] >= n
            assert now["lists"] == row["lists"]
            assert now["objects"] == row["objects"]
        assert by(gateway, self.LAST) == "not_synced"
        assert gateway.get().status == 200

        for n in range(self.SERVICES - 50):
            ns, name = f"ns-{n % 10:03d}", f"svc-{n:05d}"
            cluster.api.delete("services", ns, name)
            cluster.api.delete(SLICES, ns, f"{name}-{n:05x}")

        def healed():
            now = [gateway.status.resource(r) for r in ("services", SLICES)]
            return all(
                r["objects"] == 51 and not r["refused"] and not r["refused_unnamed"] for r in now
            )

        wait_until(healed, 60 * PATIENCE, lambda: gateway.status.informer()["resources"])
        assert by(gateway, self.LAST) == "address_denied"
        assert by(gateway, "ns-009/no-such-one") == "no_service"
        gateway.wait_log(r"recovered: zone_full")
        assert len(gateway.grep_log(r"recovered: zone_full")) == 1

    def test_lists_after_a_take_over(self, cluster, gateway):
        """
        A process that took over knows of most that has no room neither a name
        nor a size: its first lists of an unchanged cluster evict nobody.
        """
        relisted = Relisted(cluster, gateway, self.pods)
        taken = gateway.status.informer()["writer"]["takeovers"]
        with gateway.load(pause=0.005) as load:
            # what a list leaves out the next one for room takes
            for _ in range(5):
                before = relisted.held(gateway)
                relisted.relist()
                if relisted.held(gateway) == before:
                    break
            wait_until(lambda: load.total > 20)
            relisted.check(1, load)
            for signo in (signal.SIGKILL, signal.SIGHUP):
                if signo == signal.SIGKILL:
                    gateway.kill(signo, gateway.informer())
                    gateway.allow(r"exited on signal 9")
                else:
                    gateway.change(gone=True)
                taken += 1
                wait_until(lambda: gateway.status.informer()["writer"]["takeovers"] >= taken)
                relisted.check(2, load)

    def test_a_refused_list_keeps_nobody_waiting(self, cluster, gateway):
        """
        After a take-over a list for room replaces, and closes the watch.  Where
        it is refused, and watches are not, what others change is used.
        """
        gateway.kill(signal.SIGKILL, gateway.informer())
        gateway.allow(r"exited on signal 9|was answered 429")
        wait_until(lambda: gateway.status.informer()["writer"]["crashes"] == 1)
        cluster.steady(gateway)
        seen = len(cluster.api.requests)
        cluster.api.fault(verb="list", resource=SLICES, status=429, times=None)
        for n in range(300):
            ns, name = f"ns-{n % 10:03d}", f"svc-{n:05d}"
            cluster.api.delete("services", ns, name)
            cluster.api.delete(SLICES, ns, f"{name}-{n:05x}")

        # twice: it is asked for again
        for n in range(1, 3):
            cluster.api.wait_requests(
                n, verb="list", resource=SLICES, since=seen, timeout=60 * PATIENCE
            )
            new = cluster.pods(1, f"n{n}")
            cluster.slice("zz-last", "web", new)
            gateway.status.wait_used("zz-last", "web", [p.host for p in new])

        cluster.api.clear_faults()
        left = len(cluster.api.state_at(SLICES))
        before = gateway.status.resource(SLICES)["objects"]
        wait_until(
            lambda: before < gateway.status.resource(SLICES)["objects"] <= left, 90 * PATIENCE
        )

    def test_grows_by_reload(self, cluster, gateway):
        """A larger zone takes what was refused."""
        gateway.change(block=informer(cluster.api.url, zone="kube 8m"), gone=True)
        wanted = len(cluster.api.state_at(SLICES))
        wait_until(lambda: gateway.status.resource(SLICES)["objects"] == wanted)
        wait_until(lambda: not gateway.status.resource(SLICES)["refused"])
        assert gateway.get().status == 200

    def test_shrinks_by_reload(self, cluster):
        pods = fill(cluster, 400, 10)
        gateway = cluster.nginx(CONF, workers=1)
        assert full(gateway) == 0
        with gateway.load() as load:
            wait_until(lambda: load.total > 20)
            gateway.change(block=informer(cluster.api.url, zone="kube 512k"), gone=True)
            total = load.total
            wait_until(lambda: load.total > total + 50)
        assert not load.failures
        assert gateway.backends(12).keys() == {p.name for p in pods}

    def test_a_list_for_one_is_nobody_elses(self, cluster):
        """
        A tenant has more slices of one Service than may be, and gives and takes
        one: it comes by a list beside the watch, and what others change
        meanwhile waits for no page of it.
        """
        pods = cluster.service("zz-last", "web", 2)
        cluster.api.put(objects.service("ns-000", "wide"))
        cluster.api.put_all(
            objects.slice("ns-000", f"wide-{n:04d}", "wide", [f"127.9.{n // 250}.{n % 250 + 1}"])
            for n in range(WIDE + 1)
        )
        gateway = cluster.nginx(
            CONF, block=informer(cluster.api.url, zone="kube 8m"), workers=1
        )

        def refused():
            return [r["key"] for r in gateway.status.resource(SLICES)["refused"]]

        (lacking,) = wait_until(refused)
        lists = gateway.status.resource(SLICES)["lists"]
        seen = len(cluster.api.requests)
        gate = threading.Event()
        cluster.api.fault(verb="list", resource=SLICES, page=3, gate=gate)
        given = next(name for name in ("wide-0001", "wide-0002") if name not in lacking)
        cluster.api.delete(SLICES, "ns-000", given)
        (page,) = cluster.api.wait_requests(
            verb="list", resource=SLICES, page=3, since=seen
        )
        for n in range(3):
            new = cluster.pods(1, f"n{n}")
            cluster.slice("zz-last", "web", new)
            gateway.status.wait_used("zz-last", "web", [p.host for p in new])
            assert gateway.get().backend == f"n{n}-1"
        assert page.ended is None, "the list had ended before the others changed"
        assert len(gateway.status.used("ns-000", "wide")) == WIDE - 1
        assert len(pods) == 2
        gate.set()

        # and then it has what it lacked, the list is counted, and the watch is the same
        wait_until(lambda: len(gateway.status.used("ns-000", "wide")) == WIDE)
        wait_until(lambda: not refused())

        def ended():
            row = gateway.status.resource(SLICES)
            assert row["lists"] <= lists + 1 and row["objects"] <= WIDE + 1
            return (row["lists"], row["objects"]) == (lists + 1, WIDE + 1)

        wait_until(ended)
        assert not cluster.api.find(verb="watch", resource=SLICES, since=seen)
        gateway.status.wait_rv(cluster.api.rv)

    def test_a_list_that_drips_is_nobody_elses(self, cluster):
        """
        Of a list beside a watch bytes come each second, and no item: a list
        that another resource needs waits no longer for it than for silence.
        """
        cluster.service("zz-last", "web", 2)
        cluster.api.put(objects.service("ns-000", "wide"))
        cluster.api.put_all(
            objects.slice("ns-000", f"wide-{n:04d}", "wide", [f"127.9.{n // 250}.{n % 250 + 1}"])
            for n in range(WIDE + 1)
        )
        more = "watch_list off; encoding json;"
        block = informer(cluster.api.url, zone="kube 8m", more=more)
        gateway = cluster.nginx(CONF, block=block, workers=1)
        refused = gateway.status.resource(SLICES)["refused"]
        lacking = {r["key"] for r in refused}
        seen = len(cluster.api.requests)
        cluster.api.fault(
            verb="list",
            resource=SLICES,
            times=None,
            drip=(500, 1),
            mutate=lambda body: body[: body.index(b'"items":[') + 9] + b" " * 100000,
        )
        given = next(n for n in ("wide-0001", "wide-0002") if f"ns-000/{n}" not in lacking)
        cluster.api.delete(SLICES, "ns-000", given)
        (page,) = cluster.api.wait_requests(verb="list", resource=SLICES, since=seen)

        cluster.api.put(objects.service("ns-001", "other"))
        cluster.api.fault(verb="watch", resource="services", status=410)
        cluster.api.close_watches("services")
        cluster.api.wait_requests(verb="list", resource="services", since=seen, timeout=20)
        assert page.ended is None
        gateway.allow(r"410|Expired|was answered")

    def test_one_service_that_never_fits(self, cluster):
        """It harms nobody else."""
        pods = cluster.service("zz-last", "web", 2)
        cluster.api.put(objects.service("ns-000", "giant"))
        for n in range(60):
            cluster.api.put(
                objects.slice(
                    "ns-000",
                    f"giant-{n:03d}",
                    "giant",
                    [
                        objects.endpoint(f"10.3.{n}.{k + 1}", pod=f"giant-{n}-{k}-" + "x" * 40)
                        for k in range(100)
                    ],
                )
            )
        gateway = cluster.nginx(
            CONF, block=informer(cluster.api.url, zone="kube 512k"), workers=1, sync=False
        )
        gateway.status.wait_synced(30 * PATIENCE)
        assert gateway.backends(12).keys() == {p.name for p in pods}
        gateway.status.wait_rv(cluster.slice("zz-last", "web", cluster.pods(1, "new")))
        assert gateway.get().backend == "new-1"


@pytest.mark.slow
@pytest.mark.timeout(300 * PATIENCE)
def test_ten_thousand_services(cluster, figure):
    """In the default zone all fit; in 4m what fits is served, and it heals."""
    pods = fill(cluster, LARGE, 10)
    total = LARGE + 1
    started = time.monotonic()
    gateway = cluster.nginx(
        CONF, block=informer(cluster.api.url, zone="", state="state_path off;"), sync=False
    )
    gateway.status.wait_synced(18 * PATIENCE)
    seconds = time.monotonic() - started
    for resource in ("services", SLICES):
        row = gateway.status.resource(resource)
        assert row["objects"] == total and row["refused"] == [] and row["skipped"] == 0
    for n in (0, 4999, LARGE - 1):
        ns, name = f"ns-{n % 10:03d}", f"svc-{n:05d}"
        assert len(gateway.status.service(ns, name)["endpoints"]) == 10
        assert by(gateway, f"{ns}/{name}") == "address_denied"
    found = gateway.status.informer()
    assert found["zone"]["size"] == 32 << 20 and found["zone"]["failures"] == 0
    assert gateway.get().status == 200
    used = found["zone"]["used"]
    figure(
        f"{LARGE} Services x 10 endpoints synced in {seconds:.1f} s (the stand-in server "
        f"included), {used >> 20} MiB of 32 MiB, {used / (LARGE * 10):.0f} bytes per endpoint, "
        f"RSS of informer {rss(gateway.informer()) >> 10} MiB, "
        f"of a worker {max(rss(p) for p in gateway.workers()) >> 10} MiB"
    )

    # a change is seen at once, however much there is
    started = time.monotonic()
    gateway.status.wait_rv(cluster.slice("zz-last", "web", cluster.pods(1, "new")))
    assert gateway.get().backend == "new-1"
    figure(f"a change is served after {(time.monotonic() - started) * 1000:.0f} ms")
    cluster.slice("zz-last", "web", pods)
    gateway.stop()
    cluster.running.remove(gateway)

    started = time.monotonic()
    small = cluster.nginx(
        CONF, block=informer(cluster.api.url, zone="kube 4m"), sync=False, workers=1
    )
    small.status.wait_synced(18 * PATIENCE)
    assert full(small) > 0
    assert small.backends(12).keys() == {p.name for p in pods}
    kept = small.status.resource(SLICES)["objects"]
    figure(f"4m: {kept} of {total} slices, synced in {time.monotonic() - started:.1f} s")
    assert kept > 1000
    for n in range(LARGE - 1500):
        cluster.api.delete("services", f"ns-{n % 10:03d}", f"svc-{n:05d}")
        cluster.api.delete(SLICES, f"ns-{n % 10:03d}", f"svc-{n:05d}-{n:05x}")
    left = len(cluster.api.state_at(SLICES))
    started = time.monotonic()
    wait_until(
        lambda: small.status.resource(SLICES)["objects"] == left
        and not small.status.resource(SLICES)["refused"]
        and not small.status.resource("services")["refused"],
        120 * PATIENCE,
        lambda: small.status.informer()["resources"],
    )
    figure(f"4m: healed {time.monotonic() - started:.1f} s after the deletes")
    assert small.get().status == 200
