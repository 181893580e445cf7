# Views: what one client or one tenant does costs its own requests alone.  However
# a Service is spelled, however many Services are asked for, and however often
# they change, a worker keeps within its budget and gives back what is idle.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Instances of Services in workers: spellings, budget, what is built anew."""

import collections
import contextlib
import http.client
import os
import re
import time

import objects
import pytest
from client import request
from library import Clock, preloaded
from nginx import Nginx, free_port, full_conf, is_angie, never, rss, wait_until

SANITIZED = "asan" in os.environ.get("KUBE_BUILD_DIR", "") + os.environ.get("KUBE_BUILD", "")

DYNAMIC = """
    %(main)s
    upstream dynamic { kube_service $http_x_service namespaces=shop form=dns; %(more)s }
    server {
        listen 127.0.0.1:PORT;
        keepalive_requests 1000000;
        location / { proxy_pass http://dynamic; }
    }
"""


def dynamic(main="", more=""):
    """http with one upstream whose Service the client names."""
    return DYNAMIC % {"main": main, "more": more}


class Many:
    """
    Endpoints that one backend answers for, on every loopback address.  quick:
    for thousands of requests, an nginx that answers 200 and no more.
    """

    def __init__(self, cluster, quick=False):
        self.cluster = cluster
        if not quick:
            self.port = cluster.backends.add("0.0.0.0", 0, "any").port
            return
        self.port = free_port(["0.0.0.0"])
        server = "server { listen 0.0.0.0:%d; keepalive_requests 1000000; return 200; }"
        made = Nginx(full_conf(server % self.port, workers=1))
        cluster.running.append(made)
        made.start()

    def put(self, name, count, skip=0, **more):
        """Count endpoints of a Service, a thousand a slice; returns the last version."""
        hosts = [f"127.2.{n // 250}.{n % 250 + 1}" for n in range(skip, skip + count)]
        for start in range(0, count, 1000):
            made = [
                objects.endpoint(h, pod=f"{name}-{h}", ns="shop", **more)
                for h in hosts[start : start + 1000]
            ]
            rv = self.cluster.slice(
                "shop", name, made, f"s{start // 1000}", ports=(("http", self.port),)
            )
        return rv

    def service(self, name, count, **more):
        """A Service with a port 80 named http, and its endpoints."""
        self.cluster.api.put(objects.service("shop", name, ports=(("http", 80, "http"),)))
        return self.put(name, count, **more)


class Client:
    """Requests one after the other, over one connection."""

    def __init__(self, gateway):
        self.made = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)

    def get(self, service):
        """The headers of an answer."""
        self.made.request("GET", "/", headers={"X-Service": service})
        answer = self.made.getresponse()
        answer.read()
        return answer

    def count(self, services):
        """How often each (status, $kube_error) is the answer; a hundred at a time."""
        found = collections.Counter()
        self.made.connect()
        with self.made.sock.makefile("rb") as answers:
            for start in range(0, len(services), 100):
                part = services[start : start + 100]
                text = "".join(f"GET / HTTP/1.1\r\nHost: t\r\nX-Service: {s}\r\n\r\n" for s in part)
                self.made.sock.sendall(text.encode())
                for _ in part:
                    status = int(answers.readline().split()[1])
                    lines = iter(answers.readline, b"\r\n")
                    headers = dict(line.decode().strip().lower().split(": ", 1) for line in lines)
                    answers.read(int(headers["content-length"]))
                    found[status, headers.get("x-kube-error", "")] += 1
        return found

    def close(self):
        """Ends the connection."""
        self.made.close()


@pytest.fixture
def many(cluster):
    """Many of this cluster."""
    return Many(cluster)


@contextlib.contextmanager
def client(gateway):
    """A Client as a context."""
    made = Client(gateway)
    yield made
    made.close()


def posted(gateway, path, service, field, value):
    """A POST whose head was sent: its body comes later, or never."""
    made = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    made.putrequest("POST", path)
    made.putheader("X-Service", f"shop/{service}:http")
    made.putheader(field, value)
    made.endheaders()
    return made


def rebuilds(gateway):
    """How often peers were built anew, by all workers."""
    return gateway.status.metrics().value("nginx_kube_instance_rebuilds_total")


def follows(gateway, connection, service):
    """Waits until a Service is used as it is now: how long depends on the processor."""

    def check():
        answer = connection.get(f"shop/{service}:http")
        assert answer.status == 200
        now = gateway.status.generation("shop", service)
        return int(answer.headers["x-kube-generation"]) == now

    wait_until(check)


class TestSpellings:
    """One Service is one instance, however it is spelled."""

    SPELLINGS = ("shop/web", "shop/web:80", "shop/web:http", "web.shop", "web.shop.svc.one:80")

    def test_one_instance(self, cluster, many):
        many.service("web", 2)
        gateway = cluster.nginx(dynamic(), workers=1)
        for skip in range(1, 4):
            before = rebuilds(gateway)
            for spelling in self.SPELLINGS:
                answer = gateway.get(headers={"X-Service": spelling})
                assert answer.status == 200, (spelling, answer)
                assert answer.headers["x-kube-service"] == "shop/web:http"
            assert rebuilds(gateway) == before + (skip > 1)
            gateway.status.wait_rv(many.put("web", 2, skip=skip))

    def test_number_means_another_port(self, cluster, many):
        other = cluster.backends.add("0.0.0.0", 0, "other")
        ends = [objects.endpoint("127.2.0.1", pod="p", ns="shop")]
        both = (("a", many.port), ("b", other.port))
        cluster.slice("shop", "web", ends, ports=both)

        def ports(*rows):
            return cluster.api.put(objects.service("shop", "web", ports=rows))

        ports(("a", 80, "a"), ("b", 81, "b"))
        gateway = cluster.nginx(dynamic(), workers=1)

        def answers(service):
            answer = gateway.get(headers={"X-Service": service})
            return answer.backend if answer.status == 200 else answer.headers["x-kube-error"]

        spellings = ("shop/web:80", "shop/web:81", "shop/web:a", "shop/web:b", "shop/web")
        expected = ["any", "other", "any", "other", "port_needed"]
        assert [answers(s) for s in spellings] == expected
        rv = ports(("b", 80, "b"), ("a", 81, "a"))
        gateway.status.wait_rv(rv, "services")
        assert [answers(s) for s in spellings] == ["other", "any", "any", "other", "port_needed"]
        gateway.status.wait_rv(ports(("b", 81, "b")), "services")
        assert [answers(s) for s in spellings] == ["no_port", "other", "no_port", "other", "other"]

    @pytest.mark.skipif(SANITIZED, reason="memory of the sanitizer's own")
    @pytest.mark.parametrize("more", ["", "server 127.0.0.1:1 backup;"], ids=["alone", "backup"])
    def test_ten_thousand(self, cluster, more, figure):
        many = Many(cluster, quick=True)
        many.service("web", 1000)
        gateway = cluster.nginx(dynamic(more=more), workers=1)
        (worker,) = gateway.workers()
        with client(gateway) as c:
            assert c.count(["shop/web:http"] * 100) == {(200, ""): 100}
            before = rss(worker)
            spellings = [f"web.shop.svc.n{i}:80" for i in range(10000)]
            for i in range(2500):
                spellings.insert(5 * i, f"shop/web:{1000 + i}")
            assert c.count(spellings) == {(200, ""): 10000, (502, "no_port"): 2500}
        grown = rss(worker) - before
        figure(f"10 000 spellings of 1 000 endpoints: {grown} KiB")
        assert grown < 8 * 1024


class TestBudget:
    """All instances of a worker share one budget."""

    @pytest.mark.skipif(SANITIZED, reason="memory of the sanitizer's own")
    def test_holds(self, cluster, many, figure):
        """Forty Services of 1 000 endpoints: some 0.5 MiB each."""
        names = [f"s{i}" for i in range(40)]
        for name in names:
            many.service(name, 1000)
        grown = {}
        for size in ("2m", "32m"):
            gateway = cluster.nginx(dynamic(main=f"kube_instances size={size};"), workers=1)
            (worker,) = gateway.workers()
            with client(gateway) as c:
                before = rss(worker)
                for _ in range(2):
                    for name in names:
                        answer = c.get(f"shop/{name}:http")
                        assert answer.status == 200
                        assert answer.headers["x-kube-service"] == f"shop/{name}:http"
                grown[size] = rss(worker) - before
        figure(f"40 Services of 1 000 endpoints, growth in KiB by budget: {grown}")
        assert grown["2m"] < 12 * 1024 < grown["32m"]

    def test_used_last_stays(self, cluster, many):
        """
        What is used all the time is not built again for others' sake.  Three of
        these Services are within the budget, also where a peer takes 1 KiB.
        """
        names = [f"s{i}" for i in range(12)]
        for name in ["hot", *names]:
            many.service(name, 500)
        gateway = cluster.nginx(dynamic(main="kube_instances size=2m;"), workers=1)
        with client(gateway) as c:
            for n, name in enumerate(names, 1):
                assert c.get("shop/hot:http").status == 200
                assert c.get(f"shop/{name}:http").status == 200
                before = rebuilds(gateway)
                gateway.status.wait_rv(many.put("hot", 500, skip=n))
                follows(gateway, c, "hot")
                # one that was let go would be built for the first time, not anew
                assert rebuilds(gateway) == before + 1
        (row,) = gateway.status.informer()["degraded"]
        assert row["cause"] == "instance_budget" and "kube_instances" in row["text"]

    def test_larger_alone(self, cluster, many):
        """One that is above the budget all alone stays: it is built anew, not afresh."""
        many.service("large", 3000)
        gateway = cluster.nginx(dynamic(main="kube_instances size=1m;"), workers=1)
        with client(gateway) as c:
            for _ in range(3):
                assert c.get("shop/large:http").status == 200
            before = rebuilds(gateway)
            gateway.status.wait_rv(many.put("large", 3000, skip=1))
            follows(gateway, c, "large")
        assert rebuilds(gateway) == before + 1

    @pytest.mark.skipif(is_angie(), reason="there a request keeps what it was balanced over")
    def test_not_kept_by_who_was_not_served(self, cluster, many):
        """A request that found no server and lasts elsewhere keeps no view."""
        alive = cluster.backends.add("0.0.0.0", 0, "alive")
        many.port = free_port(["0.0.0.0"])
        many.service("web", 2000)
        conf = dynamic(main="kube_instances size=1m;").replace(
            "location / {",
            f"""location @kept {{ proxy_pass http://127.2.0.1:{alive.port}; }}
            location / {{ error_page 502 = @kept;""",
        )
        gateway = cluster.nginx(conf, workers=1)
        gateway.allow(r"connect\(\) failed|no live upstreams|temporarily disabled")
        with client(gateway) as c, contextlib.ExitStack() as stack:
            # each finds so many failing that the last ones find none at all
            for _ in range(12):
                answer = c.get("shop/web:http")
                tried = f":{many.port}" in answer.headers["x-upstream-addr"]
                assert ("x-kube-pod" in answer.headers) == tried
            assert answer.headers["x-upstream-addr"] == f"dynamic : 127.2.0.1:{alive.port}"
            assert answer.headers["x-kube-service"] == "shop/web:http"
            assert "x-kube-generation" in answer.headers
            kept = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
            stack.callback(kept.close)
            kept.request("GET", "/?hold=1", headers={"X-Service": "shop/web:http"})
            wait_until(lambda: alive.active == 1)
            many.port = alive.port
            cluster.api.delete("endpointslices", "shop", "web-s1")
            gateway.status.wait_rv(many.put("web", 1, skip=4))
            server = f"127.2.0.5:{alive.port}"
            wait_until(lambda: c.get("shop/web:http").headers["x-upstream-addr"] == server, 10)


class TestUnused:
    """An upstream that is configured and not used costs next to nothing."""

    @pytest.mark.skipif(SANITIZED, reason="memory of the sanitizer's own")
    def test_configured(self, cluster, figure):
        """Beside as many upstreams of a server each; 16 KiB a trial of a method."""
        size = {}
        for what in ("server 127.0.0.1:1;", "kube_service shop/web:http;"):
            blocks = [f"upstream u{i} {{ {what} keepalive 16; }}\n" for i in range(200)]
            gateway = cluster.nginx("".join(blocks), workers=1)
            (worker,) = gateway.workers()
            size[what] = rss(worker)
        figure(f"200 upstreams with keepalive, KiB: {size}")
        static, ours = size.values()
        assert ours - static < 200 * 8


class TestIdle:
    """An instance of a key with variables goes after a minute without use."""

    @pytest.fixture(name="begun")
    def make_begun(self, cluster, public_path):
        """
        begun(more): one worker, with more in its upstream, and after(seconds),
        which brings it to so long after its start.  What is due then is done
        before another request is read.
        """
        clock = Clock(public_path)

        def begun(more=""):
            conf, more = dynamic(more=more), "idle_timeout 1h;"
            gateway = cluster.nginx(conf, more=more, workers=1, env=clock.env)

            def after(seconds):
                clock.ahead(seconds)
                gateway.status.status()

            return gateway, after

        return begun

    @staticmethod
    def get(gateway, *names):
        """Uses them."""
        for name in names:
            assert gateway.get(headers={"X-Service": f"shop/{name}:http"}).status == 200

    def built(self, gateway, many, name, skip):
        """How often it is built anew for a change: once, or it was let go."""
        before = rebuilds(gateway)
        gateway.status.wait_rv(many.put(name, 2, skip=skip))
        self.get(gateway, name)
        return rebuilds(gateway) - before

    def let_go(self, many, begun):
        """begun(), 80 s later: of two Services one was used 40 s ago."""
        for name in ("used", "idle"):
            many.service(name, 2)
        gateway, after = begun()
        self.get(gateway, "used", "idle")
        after(40)
        self.get(gateway, "used")
        after(80)
        return gateway, after

    def test_goes_and_stays(self, many, begun):
        gateway, after = self.let_go(many, begun)
        assert [self.built(gateway, many, name, 1) for name in ("used", "idle")] == [1, 0]
        after(160)
        assert [self.built(gateway, many, name, 2) for name in ("used", "idle")] == [0, 0]

    def test_goes_where_nothing_new_comes(self, many, begun):
        """The last ones go in their time, too."""
        gateway, after = self.let_go(many, begun)
        after(120)
        assert self.built(gateway, many, "used", 1) == 0

    def test_large_ones_go(self, many, begun):
        """Who had too many endpoints is named no more, nor looked at."""
        for name in ("a", "b"):
            many.service(name, 4500)
        gateway, after = begun("hash $arg_k consistent;")
        gateway.allow(r"more than 4096 usable endpoints")

        def named():
            rows = [r["text"] for r in gateway.status.informer()["degraded"]]
            return [text.split(" has ")[0] for text in rows]

        self.get(gateway, "a", "b")
        assert sorted(named()) == ["Service shop/a", "Service shop/b"]
        after(40)
        self.get(gateway, "b")
        after(80)
        assert named() == ["Service shop/b"]
        after(160)
        assert named() == []


class TestNames:
    """A change of names alone builds no peers."""

    def test_new_names(self, cluster, many):
        many.service("web", 3, zone="a")
        gateway = cluster.nginx(dynamic(), workers=1)
        answer = gateway.get(headers={"X-Service": "shop/web"})
        assert answer.headers["x-kube-zone"] == "a"
        before = rebuilds(gateway)
        for zone in "bcd":
            gateway.status.wait_rv(many.put("web", 3, zone=zone, node=f"node-{zone}"))
            answer = gateway.get(headers={"X-Service": "shop/web"})
            assert answer.headers["x-kube-zone"] == zone
            assert answer.headers["x-kube-node"] == f"node-{zone}"
            assert answer.headers["x-kube-pod"].startswith("web-127.2.0.")
        assert rebuilds(gateway) == before
        gateway.status.wait_rv(many.put("web", 4, zone="d"))
        assert gateway.get(headers={"X-Service": "shop/web"}).status == 200
        assert rebuilds(gateway) == before + 1

    def test_names_keep_no_memory(self, cluster, many, figure):
        """Peers are handed on from view to view, and go with the last one."""
        many.service("web", 1000)
        gateway = cluster.nginx(dynamic(), workers=1)
        (worker,) = gateway.workers()

        def change(number, count):
            rv = many.put("web", count, zone=f"zone-{number}", node=f"node-{number}")
            gateway.status.wait_rv(rv)
            with client(gateway) as c:
                follows(gateway, c, "web")

        for n in range(15):
            change(n, 1000 - n % 3 // 2)
        before = rss(worker)
        # each third one makes peers; then names alone
        for n in range(15, 100):
            change(n, 1000 - (n % 3 // 2 if n < 60 else 0))
        growth = rss(worker) - before
        figure(f"test_names_keep_no_memory: 85 changes of 1 000 endpoints: {growth} KiB")
        assert growth < 2048 or SANITIZED


class TestLarge:
    """A large Service is served from a stable subset, and built now and then."""

    # more than a worker builds peers of
    COUNT = 20000

    def test_subset(self, cluster, many):
        """What is chosen does not depend on the worker."""
        many.service("large", self.COUNT)
        gateway = cluster.nginx(dynamic(more="hash $arg_k;"), workers=2)
        gateway.allow(r"more than 16384 usable endpoints")
        assert gateway.get(headers={"X-Service": "shop/large"}).status == 200

        workers, found = gateway.workers(), {}
        assert len(workers) == 2
        for worker in workers:
            with gateway.alone(worker):
                for k in range(80):
                    answer = gateway.get(f"/?k={k % 40}", headers={"X-Service": "shop/large"})
                    assert answer.headers["x-worker"] == str(worker)
                    found.setdefault(k % 40, set()).add(answer.headers["x-kube-pod"])
        assert all(len(pods) == 1 for pods in found.values()), found
        (line,) = {m.split("kube: ")[1] for m in gateway.grep_log("more than 16384 usable")}
        assert '"shop/large:http" of upstream "dynamic"' in line
        (row,) = gateway.status.informer()["degraded"]
        assert row["cause"] == "truncated" and "shop/large" in row["text"]

    def test_hash_consistent(self, cluster, many):
        """It keeps 160 points an endpoint, so that its ceiling is lower; all are named."""
        for name in ("a", "b"):
            many.service(name, 4500)
        gateway = cluster.nginx(dynamic(more="hash $arg_k consistent;"), workers=1)
        gateway.allow(r"more than 4096 usable endpoints")
        with client(gateway) as c:
            for name in ("a", "b"):
                assert c.get(f"shop/{name}").status == 200
                used = sum(1 for _ in gateway.grep_log(f'"shop/{name}:http" .* 4096 usable'))
                assert used == 1
        rows = gateway.status.informer()["degraded"]
        assert {r["text"].split(" has ")[0] for r in rows} == {"Service shop/a", "Service shop/b"}
        assert {r["cause"] for r in rows} == {"truncated"}
        # one that is cut to size is named no more
        for k in range(1, 5):
            cluster.api.delete("endpointslices", "shop", f"a-s{k}")
        gateway.status.wait_rv(many.put("a", 900))
        with client(gateway) as c:
            follows(gateway, c, "a")
        (row,) = gateway.status.informer()["degraded"]
        assert "shop/b" in row["text"]

    def test_changes_are_paced(self, cluster, many, figure):
        """Many changes cost few builds; a small Service follows each one at once."""
        many.service("large", self.COUNT)
        many.service("small", 2)
        gateway = cluster.nginx(dynamic(), workers=1)
        gateway.allow(r"more than 16384 usable endpoints")
        (worker,) = gateway.workers()
        with client(gateway) as c:
            cost = worked_us(worker)
            c.get("shop/large")
            cost = (worked_us(worker) - cost) / 1e6
            c.get("shop/small")
            before = rebuilds(gateway)
            for n in range(20):
                gateway.status.wait_rv(many.put("small", 2, skip=n))
                assert c.get("shop/small").headers["x-kube-pod"] in {
                    f"small-127.2.{h // 250}.{h % 250 + 1}" for h in (n, n + 1)
                }
            small = rebuilds(gateway) - before
            began = time.monotonic()
            for n in range(20):
                ends = [objects.endpoint(f"127.3.0.{n + 1}", pod="last", ns="shop")]
                gateway.status.wait_rv(
                    cluster.slice("shop", "large", ends, "last", ports=(("http", 1),))
                )
                assert c.get("shop/large").status == 200
            large = rebuilds(gateway) - before - small
            took = time.monotonic() - began
            # the last one is not forgotten
            follows(gateway, c, "large")
        figure(f"20 changes each: {small} builds of a small Service, {large} of a large one")
        assert small == 19
        # each is followed by a pause of twenty times what it took the processor
        assert large <= max(4, 2 + took / (10 * cost))

    def test_a_slow_clock_puts_nothing_small_off(self, cluster, many):
        """What a hypervisor takes is counted as the thread's, and is not the Service's."""
        many.service("small", 2)
        with preloaded("stolen") as library:
            gateway = cluster.nginx(dynamic(), workers=1, env={"LD_PRELOAD": library})
            with client(gateway) as c:
                for n in range(5):
                    gateway.status.wait_rv(many.put("small", 2, skip=n))
                    assert c.get("shop/small:http").headers["x-kube-pod"] in {
                        f"small-127.2.{h // 250}.{h % 250 + 1}" for h in (n, n + 1)
                    }


@pytest.fixture(name="library", scope="module")
def make_library():
    """t/lib/shortage.c, as a shared library."""
    with preloaded("shortage") as path:
        yield path


class TestShortage:
    """What cannot be built costs that Service, and not the processor."""

    @pytest.fixture(name="short")
    def make_short(self, public_path):
        """short(what): what is short from now on; None: nothing."""
        file = public_path / "shortage"

        def short(what):
            if what is None:
                file.unlink()
            else:
                (public_path / "new").write_text(what)
                os.rename(public_path / "new", file)

        short.file = file
        return short

    @staticmethod
    def begun(gateway):
        """How many builds began while something was short."""
        return (gateway.log() + gateway.stderr()).count("shortage: a build began")

    def gateway(self, cluster, library, short):
        """One worker with that library."""
        env = {"LD_PRELOAD": library, "KUBE_SHORTAGE_FILE": str(short.file)}
        gateway = cluster.nginx(dynamic(), workers=1, env=env)
        gateway.allow(r"cannot be resolved|no live upstreams")
        return gateway

    def test_spelling_used_last_stays(self, cluster, library, short):
        """One that is used all the time is not parsed again for others' sake."""
        many = Many(cluster, quick=True)
        many.service("web", 1)
        gateway = self.gateway(cluster, library, short)
        short("nothing")
        hot = "web.shop.svc.hot:80"

        def told():
            return (gateway.log() + gateway.stderr()).count("shortage: a key was parsed")

        def parsed(spellings):
            before = told()
            with client(gateway) as c:
                assert c.count(spellings) == {(200, ""): len(spellings)}
            return told() - before

        others = [f"web.shop.svc.n{n}:80" for n in range(5000)]
        assert parsed([hot, others[0]]) == 2
        for start in (0, 2500):
            assert parsed([hot]) == 0
            assert parsed(others[start : start + 2500]) >= 2499
        # more have come than are kept, but fewer since it was used
        assert parsed([hot]) == 0

    def test_too_large(self, cluster, many, library, short):
        """Its head is remembered: no more is tried until it changes."""
        many.service("web", 2)
        many.service("new", 2)
        gateway = self.gateway(cluster, library, short)
        with client(gateway) as c:
            was = c.get("shop/web:http").headers["x-kube-generation"]
            began = time.monotonic()
            short("small")
            gateway.status.wait_rv(many.put("web", 3))
            for _ in range(10):
                answer = c.get("shop/web:http")
                assert (answer.status, answer.headers["x-kube-generation"]) == (200, was)
                answer = c.get("shop/new:http")
                assert (answer.status, answer.headers["x-kube-error"]) == (502, "too_large")
            assert self.begun(gateway) == 2
            # longer than what could not be built is put off for
            never(
                lambda: c.get("shop/web:http").headers["x-kube-generation"] != was
                or c.get("shop/new:http").status != 502
                or self.begun(gateway) != 2,
                0.3,
            )
            gateway.status.wait_rv(many.put("web", 4))
            assert c.get("shop/web:http").headers["x-kube-generation"] == was
            assert self.begun(gateway) == 3
            short(None)
            assert c.get("shop/new:http").status == 502
            gateway.status.wait_rv(many.put("web", 5))
            gateway.status.wait_rv(many.put("new", 3))
            follows(gateway, c, "web")
            follows(gateway, c, "new")
        # a line each ten seconds and reason is enough
        lines = gateway.grep_log("cannot be resolved: too_large")
        assert 1 <= len(lines) <= 1 + (time.monotonic() - began) / 10
        assert "shop/web:http" in lines[0]

    def test_first_build_fails(self, cluster, many, library, short):
        """It is tried again, and others are not in need of it."""
        many.service("web", 2)
        many.service("other", 2)
        gateway = self.gateway(cluster, library, short)
        with client(gateway) as c:
            assert c.get("shop/other:http").status == 200
            short("nomem")
            answer = c.get("shop/web:http")
            assert (answer.status, answer.headers["x-kube-error"]) == (502, "not_synced")

            def again():
                assert c.get("shop/web:http").status == 502
                assert c.get("shop/other:http").status == 200
                return self.begun(gateway) >= 3

            wait_until(again)
            short(None)
            wait_until(lambda: c.get("shop/web:http").status == 200)


STRAINED = """
    kube_instances size=2m;
    kube_resolve $pod $http_x_service namespaces=shop;
    upstream dynamic { kube_service $http_x_service namespaces=shop form=dns; }
    upstream backed { kube_service $http_x_service namespaces=shop; server 127.2.0.1:ANY backup; }
    upstream second { kube_service $http_x_second namespaces=shop; }
    upstream other { kube_service $http_x_other namespaces=shop; }
    server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://dynamic; }
        location /backed { set $backed backed; proxy_pass http://$backed; }
        location /asks { auth_request /sub; try_files none @ok; }
        location @ok { return 204; }
        location = /sub { internal; proxy_pass http://dynamic; }
        location = /other { internal; proxy_pass http://other; }
        location /both { auth_request /other; proxy_pass http://dynamic; }
        location /resolved { proxy_pass http://$pod; }
        location /patient { proxy_pass http://dynamic; proxy_ignore_client_abort on; }
        location /told { proxy_pass http://dynamic; post_action /left; }
        location /left { proxy_pass http://127.2.0.1:ANY/?hold=1; }
        location /missed {
            proxy_pass http://dynamic/?status=404;
            proxy_intercept_errors on;
            error_page 404 = @second;
        }
        location @second { proxy_pass http://second; }
        location /sliced/ {
            slice 1000;
            limit_rate 10k;
            proxy_set_header Range $slice_range;
            proxy_pass http://dynamic/;
        }
        location /unbuffered { proxy_pass http://dynamic; proxy_request_buffering off; }
        location /elsewhere { if ($arg_x) { uwsgi_pass 127.2.0.1:1; } proxy_pass http://dynamic; }
        location /moved { error_page 302 = @moved; return 302 /; }
        location @moved {
            proxy_pass http://dynamic;
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
        }
    }
"""


class TestStrained:
    """
    More large Services in turn than there is room for.  To be large is to take
    long, which a build does here whatever the Service.
    """

    NAMES = [f"s{i}" for i in range(12)]

    @pytest.fixture(name="short")
    def make_short(self, public_path):
        """short(what): what builds cost from now on."""
        file = public_path / "shortage"

        def short(what):
            (public_path / "new").write_text(what)
            os.rename(public_path / "new", file)

        short.file = file
        yield short
        short("nothing")

    @pytest.fixture(name="gateway")
    def make_gateway(self, cluster, many, library, short):
        """One worker in which a large Service went for want of room."""
        for name in self.NAMES:
            many.service(name, 500)
        env = {"LD_PRELOAD": library, "KUBE_SHORTAGE_FILE": str(short.file)}
        conf = STRAINED.replace("ANY", str(many.port))
        gateway = cluster.nginx(conf, workers=1, connections=1024, env=env)
        gateway.allow(r"cannot be resolved|invalid URL prefix")
        short("costly")
        with client(gateway) as c:
            for name in self.NAMES:
                assert c.get(f"shop/{name}:http").status == 200
        return gateway

    @staticmethod
    def begun(gateway):
        """Builds that began, of those that come to no end."""
        return (gateway.log() + gateway.stderr()).count("shortage: a build began")

    @staticmethod
    def late(gateway):
        """Builds that ended, each later than a worker may be kept."""
        return (gateway.log() + gateway.stderr()).count("shortage: a build was late")

    @contextlib.contextmanager
    def asked(self, gateway, path, name):
        """A request that is sent and not answered yet; its build has begun."""
        before = self.begun(gateway)
        made = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        made.request("GET", path, headers={"X-Service": f"shop/{name}:http"})
        wait_until(lambda: self.begun(gateway) > before)
        yield made
        made.close()

    @staticmethod
    def connected(gateway, stack, count, timeout=60):
        """So many connections that a worker has; the stack closes them."""
        made = []
        for _ in range(count):
            made.append(http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=timeout))
            stack.callback(made[-1].close)
            made[-1].request("GET", "/none")
            made[-1].getresponse().read()
        return made

    def test_others_have_their_turn(self, gateway, short):
        """However long the first views of others take, these are answered."""
        short("stuck")
        with (
            self.asked(gateway, "/", "s0") as first,
            self.asked(gateway, "/", "s1") as second,
            self.asked(gateway, "/asks", "s2") as sub,
            client(gateway) as c,
        ):
            for _ in range(5):
                assert c.get("shop/s11:http").status == 200
            short("costly")
            for made, name in ((first, "s0"), (second, "s1")):
                answer = made.getresponse()
                assert answer.status == 200
                assert answer.headers["x-kube-service"] == f"shop/{name}:http"
            assert sub.getresponse().status == 204

    def test_one_build_for_all(self, gateway, short):
        """Who asks while it is made waits for the same one."""
        short("stuck")
        with self.asked(gateway, "/", "s0") as first:
            more = [http.client.HTTPConnection("127.0.0.1", gateway.port) for _ in range(5)]
            for made in more:
                made.request("GET", "/", headers={"X-Service": "s0.shop:80"})
            with client(gateway) as c:
                assert c.get("shop/s11:http").status == 200
            assert self.begun(gateway) == 1
            short("costly")
            for made in (first, *more):
                assert made.getresponse().status == 200

    def test_sent_elsewhere(self, gateway):
        """A request that waited waits again, for what it is sent to next."""
        for n, name in enumerate(self.NAMES):
            second = self.NAMES[n - len(self.NAMES) // 2]
            sent = {"X-Service": f"shop/{name}:http", "X-Second": f"shop/{second}:http"}
            answer = gateway.get("/missed", headers=sent)
            assert answer.status == 200
            assert answer.headers["x-kube-service"] == f"shop/{second}:http"

    def test_request_and_subrequest(self, gateway):
        """Each waits for what it needs itself."""
        with client(gateway) as c:
            for name, other in (("s0", "s1"), ("s2", "s3"), ("s4", "s5")):
                c.made.request("GET", "/both", headers={
                    "X-Service": f"shop/{name}:http", "X-Other": f"shop/{other}:http",
                })
                answer = c.made.getresponse()
                answer.read()
                assert answer.status == 200
                assert answer.headers["x-kube-service"] == f"shop/{name}:http"

    def test_so_many_in_turn(self, gateway, short):
        """Who was answered is held no more: a worker holds 512 at a time."""
        for name in self.NAMES[:6]:
            short("stuck")
            with contextlib.ExitStack() as stack:
                made = []
                for _ in range(100):
                    made.append(http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60))
                    stack.callback(made[-1].close)
                    made[-1].request("GET", "/", headers={"X-Service": f"shop/{name}:http"})
                with client(gateway) as c:
                    assert c.get("shop/s11:http").status == 200
                short("costly")
                assert {one.getresponse().status for one in made} == {200}, name

    @pytest.mark.skipif(SANITIZED, reason="the sanitizer's time")
    @pytest.mark.parametrize("path", ["/", "/backed"])
    def test_so_many_at_once(self, gateway, short, figure, path):
        """
        However many ask at once, who comes then is not behind a build for each;
        also where these cannot wait.
        """
        with contextlib.ExitStack() as stack:
            made = self.connected(gateway, stack, 120)
            short("late")
            with client(gateway) as c:
                assert c.get("shop/s11:http").status == 200
                before = self.late(gateway)
                for n, one in enumerate(made):
                    key = f"shop/{self.NAMES[n % 11]}:http"
                    one.request("GET", path, headers={"X-Service": key})
                assert c.get("shop/s11:http").status == 200
                late = self.late(gateway) - before
                figure(f"{path}: {late} builds before who came behind 120")
                assert late < 50
            assert {one.getresponse().status for one in made} == {200}

    @pytest.mark.skipif(SANITIZED, reason="the sanitizer's time")
    def test_so_many_that_are_new(self, gateway, many, short, figure):
        """Nor is one behind all that this worker has never made."""
        names = [f"new{n}" for n in range(120)]
        gateway.status.wait_rv([many.service(name, 1) for name in names][-1])
        with contextlib.ExitStack() as stack:
            made = self.connected(gateway, stack, len(names))
            short("late")
            with client(gateway) as c:
                assert c.get("shop/s11:http").status == 200
                before = self.late(gateway)
                for one, name in zip(made, names, strict=True):
                    one.request("GET", "/", headers={"X-Service": f"shop/{name}:http"})
                assert c.get("shop/s11:http").status == 200
                late = self.late(gateway) - before
                figure(f"{late} builds before who came behind 120")
                assert late < 60
            assert {one.getresponse().status for one in made} == {200}

    @pytest.mark.skipif(SANITIZED, reason="memory of the sanitizer's own")
    def test_so_many_that_wait(self, gateway, many, short, figure):
        """Those that are not made yet keep none that are from making room."""
        (worker,) = gateway.workers()
        names = [f"new{n}" for n in range(120)]
        gateway.status.wait_rv([many.service(name, 400) for name in names][-1])
        with contextlib.ExitStack() as stack:
            made = self.connected(gateway, stack, len(names))
            short("stuck")
            before = rss(worker)
            for one, name in zip(made, names, strict=True):
                one.request("GET", "/", headers={"X-Service": f"shop/{name}:http"})
            with client(gateway) as c:
                assert c.get("shop/s11:http").status == 200
            short("costly")
            assert {one.getresponse().status for one in made} == {200}
        grown = rss(worker) - before
        figure(f"120 Services of 400 endpoints that were awaited at once: {grown} KiB")
        assert grown < 8 * 1024

    def test_a_small_one_that_changes(self, gateway, many, short):
        """Its view is made anew at once, not behind large ones of others."""
        short("nothing")
        many.service("tiny", 1)
        with client(gateway) as c:
            wait_until(lambda: c.get("shop/tiny:http").status == 200)
            short("some")
            with self.asked(gateway, "/", "s0"):
                gateway.status.wait_rv(many.put("tiny", 1, skip=1))
                answer = c.get("shop/tiny:http")
                assert answer.headers["x-upstream-addr"] == f"127.2.0.2:{many.port}"
                short("nothing")

    @pytest.mark.parametrize("path", ["/", "/resolved"])
    def test_a_small_one_that_is_new(self, gateway, many, short, path):
        """Its first view is made at once, not behind large ones of others."""
        gateway.status.wait_rv(many.service("tiny", 1))
        short("some")
        with (
            self.asked(gateway, "/", "s0"),
            self.asked(gateway, "/", "s1"),
            client(gateway) as c,
        ):
            begun = time.monotonic()
            headers = {"X-Service": "shop/tiny:http"}
            c.made.request("GET", path, headers=headers)
            assert c.made.getresponse().status == 200
            assert time.monotonic() - begun < 5
            short("nothing")

    def test_a_small_one_that_others_make_room_for(self, gateway, many, short):
        """What it takes to let a large one of others go does not make it one."""
        many.service("large", 16000)
        gateway.status.wait_rv(many.service("tiny", 1))
        for _ in range(5):
            short("nothing")
            with client(gateway) as c:
                for name in ("large", "tiny", "large"):
                    assert c.get(f"shop/{name}:http").status == 200
            short("some")
            with self.asked(gateway, "/", "s0"), client(gateway) as c:
                c.made.timeout = 5
                assert c.get("shop/tiny:http").status == 200
                short("nothing")

    def test_a_small_one_that_changes_then(self, gateway, many, short):
        """Nor is it paced like one."""
        many.service("large", 16000)
        gateway.status.wait_rv(many.service("tiny", 1))
        short("nothing")
        with client(gateway) as c:
            for n in range(1, 6):
                for name in ("large", "tiny"):
                    assert c.get(f"shop/{name}:http").status == 200
                gateway.status.wait_rv(many.put("tiny", 1, skip=n))
                answer = c.get("shop/tiny:http")
                assert answer.headers["x-upstream-addr"] == f"127.2.0.{n + 1}:{many.port}"

    @pytest.mark.skipif(SANITIZED, reason="the sanitizer's time")
    @pytest.mark.parametrize("path", ["/", "/resolved"])
    def test_a_middling_one(self, gateway, many, short, path):
        """It takes one piece, between those of large ones, not behind them all."""
        gateway.status.wait_rv(many.service("middling", 1))
        short("some")
        with client(gateway) as c:
            assert c.get("shop/middling:http").status == 200
            short("nothing")
            for name in self.NAMES:
                assert c.get(f"shop/{name}:http").status == 200
        short("some")
        with self.asked(gateway, "/", "s0"):
            made = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=5)
            made.request("GET", path, headers={"X-Service": "shop/middling:http"})
            assert made.getresponse().status == 200
            made.close()
            short("nothing")

    def test_a_large_one_that_is_new(self, gateway, many, short):
        """It is a large one from its first piece on: others are not behind it."""
        many.service("snew", 500)
        gateway.status.wait_rv(many.service("tiny", 1))
        short("some")
        with self.asked(gateway, "/", "snew"), client(gateway) as c:
            c.made.timeout = 5
            assert c.get("shop/tiny:http").status == 200
            short("nothing")

    def test_some_that_are_large(self, gateway, short):
        """One is made after the other, though nothing else is."""
        short("stuck")
        with contextlib.ExitStack() as stack:
            made = [stack.enter_context(self.asked(gateway, "/", name)) for name in ("s0", "s1")]
            short("costly")
            for one in made:
                one.sock.settimeout(5)
                assert one.getresponse().status == 200

    @pytest.mark.skipif(SANITIZED, reason="the sanitizer's time")
    def test_some_of_one_piece(self, gateway, many, short):
        """One is made after the other, though nothing else is."""
        names = [f"new{n}" for n in range(20)]
        gateway.status.wait_rv([many.service(name, 1) for name in names][-1])
        with contextlib.ExitStack() as stack:
            made = self.connected(gateway, stack, len(names), timeout=5)
            short("late")
            for one, name in zip(made, names, strict=True):
                one.request("GET", "/", headers={"X-Service": f"shop/{name}:http"})
            assert {one.getresponse().status for one in made} == {200}

    def test_bodies_begun_before(self, cluster, many, library, short):
        """Also where the worker was not strained yet, their views are made again."""
        for name in self.NAMES:
            many.service(name, 500)
        env = {"LD_PRELOAD": library, "KUBE_SHORTAGE_FILE": str(short.file)}
        conf = STRAINED.replace("ANY", str(many.port))
        gateway = cluster.nginx(conf, workers=1, env=env)
        short("costly")
        made = [posted(gateway, "/", name, "Content-Length", "4") for name in self.NAMES[:6]]
        with client(gateway) as c:
            for name in self.NAMES:
                assert c.get(f"shop/{name}:http").status == 200
        for one in made:
            one.send(b"body")
        assert [one.getresponse().status for one in made] == [200] * 6

    def test_clients_that_leave(self, gateway, short):
        """Nothing is answered to them, and nobody misses them."""
        short("stuck")
        for name in ("s0", "s1"):
            with self.asked(gateway, "/", name):
                pass
        with client(gateway) as c:
            assert c.get("shop/s11:http").status == 200
            short("costly")
            for name in self.NAMES:
                assert c.get(f"shop/{name}:http").status == 200

    def test_clients_that_may_leave(self, cluster, gateway, short):
        """As "proxy_ignore_client_abort" has it: theirs is sent all the same."""
        (alive,) = cluster.backends.all
        for path, more in (("/", 0), ("/patient", 1)):
            short("stuck")
            before = alive.requests
            with self.asked(gateway, path, "s0"):
                pass
            with client(gateway) as c:
                assert c.get("shop/s11:http").status == 200
                short("costly")
                for name in self.NAMES:
                    assert c.get(f"shop/{name}:http").status == 200
            expected = before + 1 + len(self.NAMES) + more
            wait_until(lambda expected=expected: alive.requests >= expected)
            assert alive.requests == expected

    def test_what_follows_a_client_that_left(self, cluster, gateway, short):
        """Where "post_action" has sent its request elsewhere, it is there once."""
        (alive,) = cluster.backends.all
        before = alive.requests + 1
        short("stuck")
        with self.asked(gateway, "/told", "s0"):
            pass
        wait_until(lambda: alive.active == 1 and alive.requests == before)
        short("costly")
        with client(gateway) as c:
            for name in self.NAMES:
                assert c.get(f"shop/{name}:http").status == 200
        assert alive.requests == before + len(self.NAMES)
        alive.release()

    def test_bodies_that_come_later(self, gateway):
        """What was made before the body came is gone by then."""
        made = [posted(gateway, "/", name, "Content-Length", "4") for name in self.NAMES[:6]]
        with client(gateway) as c:
            for name in self.NAMES:
                assert c.get(f"shop/{name}:http").status == 200
        for one in made:
            one.send(b"body")
        answers = [one.getresponse() for one in made]
        assert [a.status for a in answers] == [200] * 6
        assert {a.headers["x-body-length"] for a in answers} == {"4"}

    @pytest.fixture(name="files")
    def make_files(self, many):
        """A server of a file that can be asked for in ranges, behind all Services."""
        many.port = free_port(["0.0.0.0"])
        server = "server { listen 0.0.0.0:%d; root html; location = / { return 200; } }"
        files = Nginx(full_conf(server % many.port))
        many.cluster.running.append(files)
        files.start()
        files.write("html/file", "x" * 20000)
        return files

    def test_slices(self, files, gateway):
        """
        Each but the first is asked for by a subrequest that begins where its
        request was.  It waits as others do, and takes nothing from them.
        """
        assert files.workers()
        with contextlib.ExitStack() as stack:
            made = self.connected(gateway, stack, 12)
            for n, one in enumerate(made):
                path = "/sliced/file" if n % 3 else "/file"
                one.request("GET", path, headers={"X-Service": f"shop/{self.NAMES[n]}:http"})
            with client(gateway) as c:
                for name in self.NAMES * 5:
                    assert c.get(f"shop/{name}:http").status == 200
            for one in made:
                answer = one.getresponse()
                assert (answer.status, len(answer.read())) == (200, 20000)
        assert not gateway.grep_log("not_synced")

    @pytest.mark.skipif(is_angie(), reason="there a request keeps what it was balanced over")
    def test_slices_of_clients_that_leave(self, files, gateway, short):
        """More than there is room for: some wait for theirs, and nobody misses them."""
        # at "limit_rate" they would take 40 s
        files.write("html/file", "x" * 400000)
        with contextlib.ExitStack() as stack:
            made = self.connected(gateway, stack, len(self.NAMES))
            for one, name in zip(made, self.NAMES, strict=True):
                one.request("GET", "/sliced/file", headers={"X-Service": f"shop/{name}:http"})
            assert [one.getresponse().status for one in made] == [200] * len(self.NAMES)
            short("stuck")
            # it may have begun before
            wait_until(lambda: "a build does not go on" in gateway.log() + gateway.stderr())
        short("costly")
        with client(gateway) as c:
            for name in self.NAMES:
                assert c.get(f"shop/{name}:http").status == 200

    def test_a_body_that_was_discarded(self, gateway):
        """By who answered before "error_page": nobody waits for the rest of it."""
        made = posted(gateway, "/moved", self.NAMES[0], "Content-Length", "4")
        assert made.getresponse().status == 200

    def test_views_that_go_before_they_are_used(self, gateway):
        """
        nginx reads a body without a length first, whatever was asked of it, for a
        server of HTTP/1.0.  Two, for there may be room for so many.
        """
        chunked = ("Transfer-Encoding", "chunked")
        made = [posted(gateway, "/unbuffered", name, *chunked) for name in self.NAMES[:2]]
        with client(gateway) as c:
            for name in self.NAMES[2:]:
                assert c.get(f"shop/{name}:http").status == 200
        for one in made:
            one.send(b"4\r\nbody\r\n0\r\n\r\n")
        assert [one.getresponse().status for one in made] == [200] * 2

    def test_another_destination(self, gateway, short):
        """Who is sent elsewhere by an "if" has no view made."""
        before = self.begun(gateway)
        sent = {"X-Service": f"shop/{self.NAMES[0]}:http"}
        short("stuck")
        assert gateway.get("/elsewhere?x=1", headers=sent).status == 502
        assert self.begun(gateway) == before
        short("costly")
        assert gateway.get("/elsewhere", headers=sent).status == 200

    def test_attempts_that_fail(self, cluster, many, gateway):
        """
        Their views are gone: new ones are made for the next attempts.  Two, for
        where requests hold theirs there is room for so many more.
        """
        (alive,) = cluster.backends.all
        dead = cluster.backends.add("0.0.0.0", 0, "dead")
        names = self.NAMES[:2]
        many.port = dead.port
        gateway.status.wait_rv([many.put(name, 500) for name in names][-1])
        made = []
        for name in names:
            made.append(http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60))
            made[-1].request("GET", "/?hold=1", headers={"X-Service": f"shop/{name}:http"})
        wait_until(lambda: dead.active == len(names))
        many.port = alive.port
        gateway.status.wait_rv([many.put(name, 500) for name in names][-1])
        with client(gateway) as c:
            for name in names:
                follows(gateway, c, name)  # which is paced where it is held
            for name in self.NAMES:
                assert c.get(f"shop/{name}:http").status == 200
        alive.release()
        dead.close()
        assert [one.getresponse().status for one in made] == [200] * len(names)

    def test_as_new_as_its_turn(self, cluster, many, gateway):
        """What waits behind another is read when it is made, and keeps no memory before."""
        for n in range(600):
            rv = cluster.slice(
                "shop",
                "s0",
                [objects.endpoint(f"127.4.{n // 250}.{n % 250 + 1}", ns="shop")],
                f"n{n}",
                ports=(("http", many.port),),
            )
        gateway.status.wait_rv(rv)
        with client(gateway) as c:
            for name in self.NAMES[2:]:
                assert c.get(f"shop/{name}:http").status == 200
        many.port = cluster.backends.add("0.0.0.0", 0, "newer").port
        made = []
        for name in ("s0", "s1"):
            made.append(http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60))
            made[-1].request("GET", "/", headers={"X-Service": f"shop/{name}:http"})
            time.sleep(0.05)
        gateway.status.wait_rv(many.put("s1", 500))
        assert [one.getresponse().headers["x-backend"] for one in made] == ["any", "newer"]

    def test_a_reload_meanwhile(self, gateway, short):
        """A worker that leaves answers those that wait."""
        short("stuck")
        with self.asked(gateway, "/", "s0") as first:
            gateway.reload()
            with client(gateway) as c:
                short("costly")
                assert c.get("shop/s11:http").status == 200
            assert first.getresponse().status == 200

    def test_what_cannot_wait(self, gateway):
        """It gets none until it may keep the worker again."""
        found = set()
        for name in self.NAMES:
            answer = gateway.get("/resolved", headers={"X-Service": f"shop/{name}:http"})
            found.add((answer.status, answer.headers["x-kube-error"]))
        # nginx answers 500 where "proxy_pass" has nothing
        assert found <= {(200, ""), (500, "not_synced")}

        def served(name):
            answer = gateway.get("/resolved", headers={"X-Service": f"shop/{name}:http"})
            return answer.status == 200

        for name in self.NAMES:
            wait_until(lambda name=name: served(name))

    def test_static_servers_meanwhile(self, gateway):
        """They serve what cannot wait: a view is there once its turn has come."""
        found, ways = set(), {(200, ""), (200, "not_synced")}

        def both():
            for name in self.NAMES:
                answer = gateway.get("/backed", headers={"X-Service": f"shop/{name}:http"})
                found.add((answer.status, answer.headers["x-kube-error"]))
            assert found <= ways
            return found == ways

        wait_until(both, what=lambda: f"both of {ways}: {found}")


SCRAPED = """
    upstream web { kube_service shop/web:http; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://web; } }
"""


SLICED = """
    slice 100;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Range $slice_range;
    upstream static { server 127.2.0.1:FILES; keepalive 2; }
    kube_instances size=1m;
    upstream service { kube_service KEY; keepalive 2; }
    server {
        listen 127.0.0.1:PORT;
        location /static/ { proxy_pass http://static/; }
        location /service/ { proxy_pass http://service/; }
    }
"""


@pytest.mark.parametrize("used", (True, False))
def test_a_scrape_costs_what_upstreams_do(many, used):
    """Not what their endpoints do: of 20 000 it takes what it takes of ten."""
    many.service("web", 10)
    gateway = many.cluster.nginx(SCRAPED, workers=1)

    def endpoints():
        line = r'^nginx_kube_upstream_endpoints.*upstream="web"} (\d+)$'
        return int(re.search(line, gateway.status.get("/metrics").text, re.M)[1])

    def cost():
        """Microseconds of the worker's processor for fifty scrapes, the least of three."""
        if used:
            assert request(gateway.port).status == 200
        made = []
        for _ in range(3):
            before = worked_us(gateway.workers()[0])
            for _ in range(50):
                gateway.status.get("/metrics")
            made.append(worked_us(gateway.workers()[0]) - before)
        return min(made)

    assert endpoints() == 10
    few = cost()
    gateway.status.wait_rv(many.put("web", 20000))
    wait_until(lambda: endpoints() == 16384)
    assert cost() < 5 * few + 5000
    many.cluster.api.delete("services", "shop", "web")
    wait_until(lambda: endpoints() == 0)


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's time")
@pytest.mark.parametrize("strained", (False, True), ids=("", "strained"))
def test_many_subrequests(cluster, many, strained, figure):
    """Of a request with thousands of them the last one costs what the first does."""
    port = free_port(["0.0.0.0"])
    server = "server { listen 0.0.0.0:%d; keepalive_requests 1000000; root html; max_ranges 1; }"
    files = Nginx(full_conf(server % port, workers=1))
    cluster.running.append(files)
    files.start()
    files.write("html/file", "x" * 800000)
    pod = objects.endpoint("127.2.0.1", pod="files", ns="shop")
    cluster.api.put(objects.service("shop", "files", ports=(("http", 80, "http"),)))
    cluster.slice("shop", "files", [pod], ports=(("http", port),))
    key = "$http_x_service namespaces=shop" if strained else "shop/files:http"
    gateway = cluster.nginx(SLICED.replace("FILES", str(port)).replace("KEY", key), workers=1)
    (worker,) = gateway.workers()

    def cost(path):
        before = worked_us(worker)
        asks = {"Range": "bytes=0-799999", "X-Service": "shop/files:http"}
        answer = gateway.get(path, headers=asks)
        assert answer.status == 206 and len(answer.body) == 800000
        return worked_us(worker) - before

    if strained:
        # each is beyond the budget and takes its time
        names = [f"large{n}" for n in range(4)]
        gateway.status.wait_rv([many.service(name, 8000) for name in names][-1])
        for name in names:
            header = {"X-Service": f"shop/{name}:http"}
            assert gateway.get("/service/", headers=header).status == 200

    # what else is at work in the worker, or beside it, is in some of them
    rounds = [(cost("/static/file"), cost("/service/file")) for _ in range(5)]
    static, service = (min(of) for of in zip(*rounds))
    figure(f"8000 slices of a file: {static} us of the processor, by a Service {service}")
    assert service < 3 * static


def worked_us(pid):
    """The processor's time that a process has had."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0]) // 1000
