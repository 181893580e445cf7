# The metric service_endpoints: who asks for it has each Service, whatever the
# client is like; who does not, does not.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""/metrics?service_endpoints=."""

import contextlib
import gzip
import http.client
import re

import objects
import pytest
from client import raw, request
from cluster import informer
from exposition import Metrics
from library import preloaded
from nginx import alive, free_port, never, wait_until

NAME = "nginx_kube_service_endpoints"

CONF = """
    upstream web { kube_service $http_x_service namespaces=shop,infra; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://web; } }
"""


@contextlib.contextmanager
def shortage(cluster, file):
    """A gateway of one worker that is short of what the file says (t/lib/shortage.c)."""
    with preloaded("shortage") as library:
        env = {"LD_PRELOAD": library, "KUBE_SHORTAGE_FILE": str(file)}
        yield cluster.nginx(CONF, workers=1, env=env)


def scrape(gateway, ns="*", **more):
    """All metrics with those of each Service of a namespace."""
    answer = gateway.status.get(f"/metrics?service_endpoints={ns}", **more)
    assert answer.status == 200, answer
    return Metrics(answer.text)


def rows(metrics):
    """(namespace, Service) and its endpoints by state."""
    made = {}
    for sample in metrics.families[NAME].samples:
        labels = sample.labels
        key = (labels["namespace"], labels["service"])
        made.setdefault(key, {})[labels["state"]] = sample.value
    return made


class TestServiceEndpoints:
    """What is said, and to whom."""

    def test_states(self, cluster):
        """Three lines a Service, as its slices say; a change is in the next scrape."""
        ends = [
            objects.endpoint("10.1.0.1"),
            objects.endpoint("10.1.0.2"),
            objects.endpoint("10.1.0.3", ready=False, terminating=True),
            objects.endpoint("10.1.0.4", ready=False, serving=False, terminating=True),
            objects.endpoint("10.1.0.5", ready=False),
        ]
        cluster.service("shop", "web", pods=ends)
        cluster.slice("shop", "web", [objects.endpoint("10.1.0.6")], suffix="2")
        cluster.service("shop", "none", pods=[])
        cluster.service("infra", "web", pods=[objects.endpoint("10.2.0.1")])
        gateway = cluster.nginx(CONF)
        zero = {"ready": 0, "terminating": 0, "not_ready": 0}
        web = {"ready": 3, "terminating": 1, "not_ready": 2}
        all_of_them = {
            ("shop", "web"): web,
            ("shop", "none"): zero,
            ("infra", "web"): {**zero, "ready": 1},
        }
        assert rows(scrape(gateway)) == all_of_them
        made = scrape(gateway, "shop")
        assert rows(made) == {k: v for k, v in all_of_them.items() if k[0] == "shop"}
        assert made.value(NAME + "_omitted") == 0
        assert set(made.families) - set(gateway.status.metrics().families) == {
            NAME,
            NAME + "_omitted",
        }
        assert {s.labels["informer"] for s in made.families[NAME].samples} == {"default"}
        assert scrape(gateway, "nobody").families[NAME].samples == []
        gateway.status.wait_rv(cluster.slice("shop", "none", ends))
        del all_of_them["shop", "none"]
        wait_until(lambda: rows(scrape(gateway, "shop"))[("shop", "none")] == {**web, "ready": 2})

    def test_docs(self, cluster):
        """docs/metrics.md names both, with the HELP text."""
        cluster.service("shop", "web")
        made = scrape(cluster.nginx(CONF))
        with open("docs/metrics.md", encoding="utf-8") as f:
            text = f.read()
        for name in (NAME, NAME + "_omitted"):
            family = made.families[name]
            assert family.type == "gauge"
            assert re.search(
                rf"^\* `{name[len('nginx_kube_'):]}`.*{re.escape(family.documentation)}",
                text,
                re.M,
            ), name

    def test_bad_queries(self, cluster):
        gateway = cluster.nginx(CONF)
        for ns in ("", "Shop", "a/b", "shop,infra", "%00", "%2A%2A", "x" * 64):
            answer = gateway.status.get(f"/metrics?service_endpoints={ns}")
            assert answer.status == 400, ns
            assert "a namespace, or *" in answer.json()["error"]

    def test_more_than_have_a_line(self, cluster):
        """10 000 have one, and the others are counted, of each informer its own."""
        cluster.api.load_scale(10007, 1)
        block = informer(cluster.api.url, zone="kube 64m") + (
            f"kube_informer few {{ api {cluster.api.url}; namespaces none; zone few 1m;"
            " state_path off; }\n"
        )
        gateway = cluster.nginx(CONF, block=block, workers=1)
        made = scrape(gateway)
        assert len(rows(made)) == 10000
        assert made.value(NAME + "_omitted", informer="default") == 7
        assert made.value(NAME + "_omitted", informer="few") == 0

    def test_several_informers(self, cluster):
        """The lines of a metric stand together, whatever the number of zones."""
        cluster.service("shop", "web", pods=[])
        block = "".join(
            f"kube_informer {n} {{ api {cluster.api.url}; zone {n} 1m; state_path off; }}\n"
            for n in ("default", "other")
        )
        gateway = cluster.nginx(CONF, block=block, sync=False)
        wait_until(lambda: all(i["synced"] for i in gateway.status.status()["informers"]))
        made = scrape(gateway)
        for name, count in ((NAME, 3), (NAME + "_omitted", 1)):
            found = [s.labels["informer"] for s in made.families[name].samples]
            assert found == ["default"] * count + ["other"] * count


class TestClients:
    """Slow, old, compressing and vanishing ones."""

    @pytest.fixture
    def gateway(self, cluster):
        """800 Services, and a server that lets its clients have little at a time."""
        cluster.api.load_scale(800, 2)
        self.port = free_port()
        more = (
            "server { listen 127.0.0.1:%d; limit_rate 4k; location /kube/ { kube_status; }"
            " location /gz/ { limit_rate 0; gzip on; gzip_types text/plain; kube_status; } }"
        )
        return cluster.nginx(CONF + more % self.port, workers=1)

    def test_ways(self, gateway):
        """The same lines, whoever asks in whatever way."""
        made = rows(scrape(gateway))
        assert len(made) == 800
        assert all(r == {"ready": 2, "terminating": 0, "not_ready": 0} for r in made.values())
        path = "/kube/metrics?service_endpoints=*"
        old = raw(gateway.status_port, f"GET {path} HTTP/1.0\r\n\r\n".encode())
        head, _, body = old.partition(b"\r\n\r\n")
        assert b"chunked" not in head and rows(Metrics(body.decode())) == made
        answer = gateway.status.get("/metrics?service_endpoints=*", method="HEAD")
        assert answer.status == 200 and answer.body == b""
        path = path.replace("/kube/", "/gz/")
        answer = request(self.port, path, headers={"Accept-Encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip"
        assert rows(Metrics(gzip.decompress(answer.body).decode())) == made
        one = f"GET {path} HTTP/1.1\r\nHost: x\r\n%s\r\n"
        text = one % "" + one % "" + one % "Connection: close\r\n"
        assert raw(self.port, text.encode()).count(b"HTTP/1.1 200 ") == 3

    def test_four_at_once(self, gateway):
        """Of those who read slowly; who vanishes makes room."""
        path = "/kube/metrics?service_endpoints=*"
        for _ in range(2):
            with contextlib.ExitStack() as stack:
                for _ in range(4):
                    slow = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                    stack.callback(slow.close)
                    slow.request("GET", path)
                    answer = slow.getresponse()
                    stack.callback(answer.close)
                    assert answer.status == 200 and answer.read(1000)
                refused = gateway.status.get("/metrics?service_endpoints=*")
                assert refused.status == 503 and refused.json()["error"] == "too many scrapes"
                assert gateway.status.metrics().value("nginx_kube_synced") == 1
            wait_until(
                lambda: gateway.status.get("/metrics?service_endpoints=x").status == 200
            )
        assert len(rows(scrape(gateway))) == 800


def test_bodies_that_come_late(cluster):
    """Who was answered makes room, whatever of its request is still to come."""
    cluster.service("shop", "web", pods=[])
    gateway = cluster.nginx(CONF, workers=1)
    path = "/kube/metrics?service_endpoints=*"
    with contextlib.ExitStack() as stack:
        for _ in range(6):
            late = http.client.HTTPConnection("127.0.0.1", gateway.status_port, timeout=60)
            stack.callback(late.close)
            late.putrequest("GET", path)
            late.putheader("Content-Length", "2")
            late.endheaders(b"x")
            answer = late.getresponse()
            stack.callback(answer.close)
            assert answer.status == 200 and rows(Metrics(answer.read().decode()))


def test_turns_that_end_anywhere(cluster, public_path):
    """Behind each line, the last one too: nothing is left to send then but the end."""
    for name in ("web", "api"):
        cluster.service("shop", name)
    file = public_path / "shortage"
    file.write_text("nothing")
    with shortage(cluster, file) as gateway:
        made = rows(scrape(gateway))
        assert len(made) == 2
        file.write_text("lines")
        assert rows(scrape(gateway)) == made
        old = b"GET /kube/metrics?service_endpoints=* HTTP/1.0\r\n\r\n"
        _, _, body = raw(gateway.status_port, old).partition(b"\r\n\r\n")
        assert rows(Metrics(body.decode())) == made
        one = "GET /kube/metrics?service_endpoints=* HTTP/1.1\r\nHost: x\r\n%s\r\n"
        text = one % "" + one % "Connection: close\r\n"
        assert raw(gateway.status_port, text.encode()).count(b"HTTP/1.1 200 ") == 2


def test_clients_that_leave_between_turns(cluster, public_path):
    """Of a scrape that has nothing to send yet: it has no turn any more."""
    cluster.service("shop", "web")
    file = public_path / "shortage"
    with shortage(cluster, file) as gateway:
        (worker,) = gateway.workers()

        def turns():
            assert gateway.status.get("/metrics").status == 200
            return (gateway.log() + gateway.stderr()).count("shortage: a scrape has its turn")

        file.write_text("stuck")
        for _ in range(6):
            path = "/kube/metrics?service_endpoints=*"
            before = turns()
            made = http.client.HTTPConnection("127.0.0.1", gateway.status_port, timeout=60)
            made.request("GET", path)
            answer = made.getresponse()
            assert answer.status == 200 and answer.read(1000)
            wait_until(lambda before=before: turns() > before)
            answer.close()
            made.close()
            before = turns()
            assert [turns() for _ in range(5)] == [before] * 5
        # nor did it have two in a row before
        assert "a scrape has another at once" not in gateway.log() + gateway.stderr()
        file.unlink()
        assert rows(scrape(gateway))["shop", "web"]["ready"] == 1
        assert gateway.workers() == [worker]


def test_over_a_reload(cluster, public_path):
    """A worker that leaves ends the scrape first, also between two turns."""
    cluster.service("shop", "web")
    file = public_path / "shortage"
    with shortage(cluster, file) as gateway:
        file.write_text("stuck")
        (worker,) = gateway.workers()
        made = http.client.HTTPConnection("127.0.0.1", gateway.status_port, timeout=60)
        made.request("GET", "/kube/metrics?service_endpoints=*")
        answer = made.getresponse()
        text = answer.read(1000)
        gateway.reload()
        wait_until(lambda: gateway.old_workers() == [worker])
        never(lambda: not alive(worker), 0.5)
        file.unlink()
        text += answer.read()
        made.close()
        assert rows(Metrics(text.decode()))["shop", "web"]["ready"] == 1
        wait_until(lambda: not alive(worker))
