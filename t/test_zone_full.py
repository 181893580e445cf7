# A zone that is too small: what fits is served and stays current, names in the
# configuration come first, it is said, and it heals.  And one that is large
# enough: 10 000 Services with ten endpoints each in the default size.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Full zones, and scale."""

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


class TestSmall:
    """A zone of 512k, in quick."""

    SERVICES = 1500

    @pytest.fixture
    def gateway(self, cluster):
        """An nginx whose zone is full."""
        self.pods = fill(cluster, self.SERVICES, 10)
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

    def test_named_in_the_configuration_first_then_by_name(self, cluster, gateway):
        assert gateway.backends(12).keys() == {p.name for p in self.pods}
        services = gateway.status.services(limit=500)
        keys = [(r["namespace"], r["name"]) for r in services]
        assert ("zz-last", "web") in keys
        assert ("ns-000", "svc-00000") in keys
        assert 50 < len(keys) < self.SERVICES + 1
        # it is there, and its addresses are none that may be used
        assert by(gateway, "ns-000/svc-00000") == "address_denied"
        # it exists, and there is no room for it
        assert by(gateway, "ns-009/svc-01499") == "not_synced"
        assert by(gateway, "ns-009/no-such-one") == "no_service"
        assert gateway.grep_log(r"Service ns-009/svc-01499 is not held: it was refused")

    def test_two_gateways_agree(self, cluster, gateway):
        second = cluster.nginx(
            CONF, block=informer(cluster.api.url, zone="kube 512k"), workers=1, sync=False
        )
        second.status.wait_synced(60 * PATIENCE)

        def keys(which):
            return {(r["namespace"], r["name"]) for r in which.status.services(limit=500)}

        assert keys(gateway) == keys(second)

    def test_what_is_there_stays_current(self, cluster, gateway):
        for n in range(5):
            new = cluster.pods(1, f"n{n}")
            gateway.status.wait_rv(cluster.slice("zz-last", "web", new))
            assert gateway.get().backend == f"n{n}-1"
        rv = cluster.api.put(
            objects.slice("ns-000", "svc-00000-00000", "svc-00000", ["127.50.0.1"])
        )
        gateway.status.wait_rv(rv)
        assert gateway.status.used("ns-000", "svc-00000") == ["127.50.0.1"]

    def test_version_is_published_and_the_refused_are_named(self, cluster, gateway):
        """Everything up to the version is readable or counted as refused."""
        cluster.steady(gateway)
        for resource in ("services", SLICES):
            row = gateway.status.resource(resource)
            missing = len(cluster.api.state_at(resource)) - row["objects"]
            assert missing == row.get("refused_total", len(row["refused"]))

    def test_heals_after_deletes(self, cluster, gateway):
        lists = cluster.api.count(verb="list")
        for n in range(self.SERVICES - 200):
            ns, name = f"ns-{n % 10:03d}", f"svc-{n:05d}"
            cluster.api.delete("services", ns, name)
            cluster.api.delete(SLICES, ns, f"{name}-{n:05x}")
        left = len(cluster.api.state_at("services"))

        def healed():
            rows = [gateway.status.resource(r) for r in ("services", SLICES)]
            return all(r["objects"] == left and not r["refused"] for r in rows)

        wait_until(healed, 90 * PATIENCE, lambda: gateway.status.informer()["resources"])
        assert len(gateway.status.services(limit=500)) == left
        assert by(gateway, "ns-009/svc-01499") == "address_denied"
        assert gateway.get().status == 200
        assert cluster.api.count(verb="list") <= lists + 8

    def test_grows_by_reload(self, cluster, gateway):
        """A larger zone takes what was refused."""
        gateway.change(block=informer(cluster.api.url, zone="kube 8m"), gone=True)
        wanted = len(cluster.api.state_at(SLICES))
        wait_until(lambda: gateway.status.resource(SLICES)["objects"] == wanted, 8 * PATIENCE)
        wait_until(lambda: not gateway.status.resource(SLICES)["refused"], 8 * PATIENCE)
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
