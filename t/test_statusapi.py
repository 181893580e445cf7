# kube_status: the schema of every path, paging, methods, escaping, metrics.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""The status API."""

import contextlib
import datetime
import html.parser
import http.client
import json
import os
import re

import objects
import pytest
from client import raw, request
from cluster import informer
from nginx import free_port, rss, wait_until

CONF = """
    upstream web { kube_service $http_x_service namespaces=shop,infra; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://web; } }
"""

SANITIZED = "asan" in os.environ.get("KUBE_BUILD_DIR", "") + os.environ.get("KUBE_BUILD", "")

STATES = {"idle", "listing", "streaming", "watching", "backoff", "damped", "stopped"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def shape(value, wanted, where="$"):
    """
    Checks a JSON value: types, tuples of types, sets of values, patterns, lists
    of one shape, dictionaries; a key with ? may be absent.
    """
    if isinstance(wanted, dict):
        assert isinstance(value, dict), where
        known = {k.rstrip("?") for k in wanted}
        assert set(value) <= known, f"{where}: unknown {set(value) - known}"
        for key, inner in wanted.items():
            if key.endswith("?") and key[:-1] not in value:
                continue
            assert key.rstrip("?") in value, f"{where}: no {key}"
            shape(value[key.rstrip("?")], inner, f"{where}.{key}")
    elif isinstance(wanted, list):
        assert isinstance(value, list), where
        for i, item in enumerate(value):
            shape(item, wanted[0], f"{where}[{i}]")
    elif isinstance(wanted, set):
        assert value in wanted, f"{where}: {value}"
    elif isinstance(wanted, re.Pattern):
        assert isinstance(value, str) and wanted.fullmatch(value), f"{where}: {value}"
    elif isinstance(wanted, tuple):
        for inner in wanted:
            try:
                shape(value, inner, where)
                return
            except AssertionError:
                pass
        raise AssertionError(f"{where}: {value!r} is none of {wanted}")
    elif wanted is None:
        assert value is None, where
    elif wanted is float:
        assert isinstance(value, (int, float)) and not isinstance(value, bool), where
    else:
        assert type(value) is wanted, f"{where}: {value!r} is no {wanted.__name__}"


RESOURCE = {
    "resource": {"services", "endpointslices"},
    "namespace": str,
    "state": STATES,
    "resource_version": re.compile(r"\d+"),
    "objects": int,
    "digest": re.compile(r"[0-9a-f]{32}"),
    "lists": int,
    "watches": int,
    "relists": int,
    "relist_reasons": dict.fromkeys(
        ("expired", "too_large_rv", "room", "protocol", "silent", "other"), int
    ),
    "events": {"added": int, "modified": int, "deleted": int, "bookmark": int, "error": int},
    "skipped": int,
    "refused": [{"key": str, "reason": str, "outdated?": bool, "age_seconds?": float}],
    "refused_total?": int,
    "refused_unnamed": int,
    "last_event_seconds": (float, None),
    "last_error": {"reason": str, "message": str, "at": (TIME, None)},
    "retry_seconds": (float, None),
}

DEGRADED = {
    "cause": {
        "unreachable", "unauthorized", "forbidden", "tls", "credentials",
        "crash_loop", "zone_full", "truncated", "instance_budget", "missing_service",
        "state_file",
    },
    "following": bool,
    "since": (TIME, None),
    "text": str,
}

INFORMER = {
    "name": str,
    "synced": bool,
    "ready": bool,
    "reason": (str, None),
    "epoch": int,
    "queue_depth": int,
    "writer": {
        "pid": int,
        "since": TIME,
        "takeovers": int,
        "crashes": int,
        "disturbances": int,
    },
    "server": str,
    "age_seconds": float,
    "stale": bool,
    "degraded": [DEGRADED],
    "zone": {"name": str, "size": int, "used": int, "failures": int},
    "state_file": {"written": (TIME, None), "in_use": bool, "error": (str, None)},
    "resources": [RESOURCE],
}

RESOLVED = {
    "service": (str, None),
    "endpoints": int,
    "state": ({"ready", "terminating"}, None),
    "generation": int,
    "error": (str, None),
    "why": (str, None),
}

UPSTREAM = {
    "directive": {"kube_service", "kube_resolve"},
    "name": str,
    "informer": str,
    "file": str,
    "line": int,
    "key": str,
    "static": bool,
}

STATUS = {
    "version": re.compile(r"\d+\.\d+\.\d+.*"),
    "nginx": re.compile(r"\d+\.\d+\.\d+.*"),
    "worker": int,
    "time": TIME,
    "informers": [INFORMER],
    "upstreams": [({**UPSTREAM, **RESOLVED},
                   {**UPSTREAM, "keys": [{"key": str, **RESOLVED}]})],
}

SERVICE = {
    "namespace": str,
    "name": str,
    "type": str,
    "cluster_ips": [str],
    "headless": bool,
    "generation": int,
    "ports": [{"name": str, "port": int, "protocol": str}],
    "endpoints_total": int,
    "endpoints_used": int,
    "endpoints": [
        {
            "address": str,
            "ports": [
                {"name": str, "port": (int, None), "protocol": str, "app_protocol": (str, None)}
            ],
            "ports_total": int,
            "ready": bool,
            "serving": bool,
            "terminating": bool,
            "pod": (str, None),
            "node": (str, None),
            "zone": (str, None),
            "slice": str,
            "used": bool,
            "excluded_because": (str, None),
            "denied_because": (str, None),
            "active?": (int, None),
            "requests?": (int, None),
            "fails?": (int, None),
        }
    ],
}


@pytest.fixture
def gateway(cluster):
    """Some Services, and an nginx that follows them."""
    cluster.service("shop", "web", 2)
    cluster.service("shop", "api", 1)
    cluster.service("infra", "echo", 1)
    return cluster.nginx(CONF)


class TestStatus:
    """/api/v1/status."""

    def test_schema(self, gateway):
        answer = gateway.status.get("/api/v1/status")
        assert answer.headers["content-type"].startswith("application/json")
        found = answer.json()
        shape(found, STATUS)
        (informer,) = found["informers"]
        assert informer["name"] == "default"
        assert len(informer["resources"]) == 2

    def test_values(self, cluster, gateway):
        # a watch is counted a moment after the state says so
        gateway.status.wait(lambda i: all(row["watches"] for row in i["resources"]))
        found = gateway.status.status()
        assert found["worker"] in gateway.workers()
        (informer,) = found["informers"]
        assert informer["writer"]["pid"] == gateway.informer()
        assert informer["writer"]["takeovers"] == 0
        assert informer["server"] == cluster.api.url
        assert informer["zone"]["name"] == "kube"
        assert informer["zone"]["size"] == 4 << 20
        assert 0 < informer["zone"]["used"] < informer["zone"]["size"]
        assert informer["state_file"] == {"written": None, "in_use": False, "error": None}
        assert informer["synced"] and informer["ready"] and not informer["stale"]
        assert informer["degraded"] == []
        assert 0 <= informer["age_seconds"] < 60
        since = datetime.datetime.strptime(informer["writer"]["since"][:19], "%Y-%m-%dT%H:%M:%S")
        assert abs((datetime.datetime.utcnow() - since).total_seconds()) < 600
        for row in informer["resources"]:
            assert row["state"] == "watching" and row["namespace"] == ""
            assert row["objects"] == 3 and row["lists"] == 1 and row["watches"] == 1
            assert row["resource_version"] == str(cluster.api.rv)
            assert row["skipped"] == 0 and row["refused"] == []

    def test_events_are_counted(self, cluster, gateway):
        gateway.status.wait_state("watching")
        pods = cluster.pods(1)
        cluster.slice("shop", "new", pods)
        cluster.slice("shop", "new", [])
        cluster.slice("shop", "new", pods)
        gateway.status.wait_rv(cluster.api.delete("endpointslices", "shop", "new-1"))
        # one that is sent into a watch that is just being opened is lost
        cluster.api.bookmark("endpointslices")

        def counted():
            row = gateway.status.resource("endpointslices")["events"]
            return row if row["bookmark"] else None

        assert wait_until(counted) == {
            "added": 1,
            "modified": 2,
            "deleted": 1,
            "bookmark": 1,
            "error": 0,
        }

    def test_degraded(self, cluster, gateway):
        """One entry with its time and text for what all scopes suffer from."""
        # a watch is counted a moment after the state says so
        gateway.status.wait(lambda i: all(row["watches"] for row in i["resources"]))
        cluster.api.refuse()
        found = gateway.status.wait(lambda i: i["degraded"])["degraded"]
        shape(found, [DEGRADED])
        (one,) = found
        assert one["cause"] == "unreachable" and not one["following"]
        assert "connect" in one["text"]
        since = datetime.datetime.strptime(one["since"][:19], "%Y-%m-%dT%H:%M:%S")
        ago = (datetime.datetime.utcnow() - since).total_seconds()
        assert 5 <= ago < 120
        metrics = gateway.status.metrics()
        assert metrics.value("nginx_kube_degraded", cause="unreachable") == 1
        assert metrics.value("nginx_kube_degraded", cause="zone_full") == 0
        assert metrics.value("nginx_kube_watching") == 0
        # what was tried since was not opened, and a list has no events
        assert metrics.value("nginx_kube_watches_total") == 2
        assert metrics.value("nginx_kube_event_bytes_total") == 0
        cluster.api.listen()
        gateway.status.wait(lambda i: not i["degraded"])
        gateway.status.wait_state("watching")
        gateway.status.wait_state("watching", "services")
        wait_until(lambda: gateway.status.metrics().value("nginx_kube_watching") == 2)

    def test_upstreams(self, cluster):
        """Each key of the configuration, and what it resolves to now."""
        cluster.service("shop", "web", 2)
        gateway = cluster.nginx(
            """
    upstream web { kube_service web.shop.svc:80; }
    upstream gone { kube_service shop/gone:http; }
    upstream many { kube_service $http_x_service namespaces=shop; }
    server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://web; }
        location /gone { proxy_pass http://gone; }
        location /many { proxy_pass http://many; }
        location /one { kube_resolve $one shop/web; return 200 $one; }
    }
"""
        )
        rows = gateway.status.status()["upstreams"]
        shape(rows, STATUS["upstreams"])
        lines = gateway.conf.splitlines()
        for row in rows:
            assert row["file"] == gateway.path("nginx.conf") and row["informer"] == "default"
            assert f"{row['directive']} " in lines[row["line"] - 1]
            assert row["key"] in lines[row["line"] - 1]
        by_name = {(r["directive"], r["name"]): r for r in rows}
        web = by_name["kube_service", "web"]
        assert (web["service"], web["endpoints"], web["state"]) == ("shop/web:http", 2, "ready")
        assert web["generation"] == gateway.status.generation("shop", "web")
        gone = by_name["kube_service", "gone"]
        assert (gone["endpoints"], gone["error"]) == (0, "no_service")
        assert "shop/gone" in gone["why"]
        assert not by_name["kube_service", "many"]["static"]
        assert by_name["kube_resolve", "$one"]["service"] == "shop/web:http"
        # now, not as of some request
        gateway.status.wait_rv(cluster.slice("shop", "web", cluster.pods(1)))
        (web,) = [r for r in gateway.status.status()["upstreams"] if r["name"] == "web"]
        assert web["endpoints"] == 1
        found = gateway.status.metrics().families["nginx_kube_upstream_endpoints"].samples
        counts = {(s.labels["informer"], s.labels["upstream"]): s.value for s in found}
        assert counts == {("default", "web"): 1, ("default", "gone"): 0}

    def test_digest_is_of_the_content(self, cluster, gateway):
        """The same content gives the same digest, another another."""
        status = gateway.status
        first = status.resource("endpointslices")["digest"]
        made = cluster.pods(1)
        status.wait_rv(cluster.slice("shop", "extra", made))
        second = status.resource("endpointslices")["digest"]
        assert second != first
        status.wait_rv(cluster.api.delete("endpointslices", "shop", "extra-1"))
        assert status.resource("endpointslices")["digest"] == first

    def test_bookmark_moves_the_version(self, cluster, gateway):
        # one that is sent into a watch that is just being opened is lost
        cluster.steady(gateway)
        cluster.slice("shop", "other", [])
        assert gateway.status.resource("services")["resource_version"] != str(cluster.api.rv)
        cluster.api.bookmark("services")
        gateway.status.wait_rv(cluster.api.rv, "services")


class TestServices:
    """/api/v1/services."""

    def test_rows_are_sorted(self, gateway):
        made = gateway.status.get("/api/v1/services").json()
        assert set(made) == {"items", "next"} and made["next"] == ""
        assert [(r["namespace"], r["name"]) for r in made["items"]] == [
            ("infra", "echo"),
            ("shop", "api"),
            ("shop", "web"),
        ]

    def test_of_the_first_informer(self, cluster):
        """Where none is called "default", and none is asked for."""
        cluster.service("shop", "web")
        cluster.service("infra", "echo")
        gateway = cluster.nginx(
            "server { listen 127.0.0.1:PORT; }",
            block=informer(cluster.api.url, "namespaces shop;", name="west", zone="west 1m")
            + informer(cluster.api.url, "namespaces infra;", name="east", zone="east 1m"),
            sync=False,
        )
        for query, known in (({}, ["web"]), ({"informer": "east"}, ["echo"])):
            wait_until(lambda q=query: gateway.status.services(**q))
            assert [r["name"] for r in gateway.status.services(**query)] == known

    def test_pages(self, cluster):
        for n in range(25):
            cluster.service("shop" if n % 2 else "infra", f"s{n:02d}", pods=[])
        gateway = cluster.nginx(CONF)
        status = gateway.status
        whole = [(r["namespace"], r["name"]) for r in status.services()]
        assert len(whole) == 25 and whole == sorted(whole)
        for limit in (1, 7, 24, 25, 26):
            assert [(r["namespace"], r["name"]) for r in status.services(limit=limit)] == whole
        page = status.get("/api/v1/services?limit=10").json()
        assert len(page["items"]) == 10 and page["next"]
        shop = status.services(namespace="shop", limit=5)
        assert [r["name"] for r in shop] == [n for ns, n in whole if ns == "shop"]
        assert status.services(namespace="none") == []

    def test_page_goes_on_where_one_was_deleted(self, cluster):
        for n in range(9):
            cluster.service("shop", f"s{n}", pods=[])
        gateway = cluster.nginx(CONF)
        page = gateway.status.get("/api/v1/services?limit=4").json()
        gateway.status.wait_rv(cluster.api.delete("services", "shop", "s3"), "services")
        rest = gateway.status.get(f"/api/v1/services?after={page['next']}").json()
        assert [r["name"] for r in rest["items"]] == ["s4", "s5", "s6", "s7", "s8"]

    @pytest.mark.parametrize(
        "query",
        [
            "limit=x",
            "limit=-1",
            "limit=99999999999999999999",
            "after=%00",
            "after=" + "x" * 500,
            "namespace=../x",
            "namespace=%ff",
        ],
    )
    def test_bad_queries(self, gateway, query):
        answer = gateway.status.get("/api/v1/services?" + query)
        assert answer.status in (200, 400)
        if answer.status == 200:
            assert isinstance(answer.json()["items"], list)

    def test_one(self, cluster, gateway):
        answer = gateway.status.get("/api/v1/services/shop/web")
        found = answer.json()
        shape(found, SERVICE)
        assert found["type"] == "ClusterIP" and found["headless"] is False
        spec = cluster.api.get("services", "shop", "web")["spec"]
        assert found["cluster_ips"] == spec["clusterIPs"]
        assert found["ports"] == [{"name": "http", "port": 80, "protocol": "TCP"}]
        assert len(found["endpoints"]) == 2
        for row in found["endpoints"]:
            assert row["used"] and row["excluded_because"] is None
            assert row["slice"] == "web-1" and row["node"] == "node-1"
            assert row["pod"].startswith("shop.web-")

    def test_why_not_used(self, cluster):
        port = (("http", 8080),)
        cluster.service("shop", "web", pods=[])
        cluster.slice(
            "shop",
            "web",
            [
                objects.endpoint("127.0.5.1"),
                objects.endpoint("127.0.5.2", ready=False, serving=False),
                objects.endpoint("127.0.5.3", ready=False, serving=True, terminating=True),
                objects.endpoint("10.1.1.1"),
                objects.endpoint("169.254.169.254"),
                objects.endpoint("224.0.0.1"),
            ],
            ports=port,
        )
        gateway = cluster.nginx(CONF)
        rows = gateway.status.service("shop", "web")["endpoints"]
        why = {r["address"]: r["excluded_because"] for r in rows}
        assert why == {
            "127.0.5.1": None,
            "127.0.5.2": "not ready",
            "127.0.5.3": "terminating",
            "10.1.1.1": "address denied",
            "169.254.169.254": "address denied",
            "224.0.0.1": "address denied",
        }
        assert [r["address"] for r in rows if r["used"]] == ["127.0.5.1"]

    def test_headless_external_and_ports(self, cluster):
        cluster.service("shop", "db", 1, cluster_ip="None")
        cluster.api.put(
            objects.service("shop", "out", type="ExternalName", external_name="example.com")
        )
        cluster.api.put(
            objects.service("shop", "many", ports=(("a", 1, 1), ("b", 2, 2), ("c", 3, 3)))
        )
        status = cluster.nginx(CONF).status
        for name in ("db", "out", "many"):
            shape(status.service("shop", name), SERVICE)
        assert status.service("shop", "db")["headless"] is True
        assert status.service("shop", "out")["type"] == "ExternalName"
        assert [p["port"] for p in status.service("shop", "many")["ports"]] == [1, 2, 3]

    @pytest.mark.parametrize(
        "path",
        ["shop/none", "none/web", "shop", "shop/", "shop/web/x", "/web", "Shop/web", "shop/..%2fx",
         "shop/%00", "x" * 300 + "/y"],
    )
    def test_absent(self, gateway, path):
        answer = gateway.status.get("/api/v1/services/" + path)
        # a NUL is refused by nginx itself
        assert answer.status == (400 if "%00" in path else 404), answer


class TestPaths:
    """Methods, other paths, and what each location offers."""

    GOOD = ["/", "/api/v1/status", "/api/v1/services", "/api/v1/services/shop/web", "/metrics"]

    @pytest.mark.parametrize("path", GOOD)
    def test_head(self, gateway, path):
        got = gateway.status.get(path)
        head = gateway.status.get(path, method="HEAD")
        assert (got.status, head.status, head.body) == (200, 200, b"")
        assert head.headers["content-type"] == got.headers["content-type"]

    @pytest.mark.parametrize("path", GOOD)
    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
    def test_other_methods(self, gateway, path, method):
        answer = gateway.status.get(path, method=method, body=b"x")
        assert answer.status == 405

    @pytest.mark.parametrize(
        "path", ["/x", "/api", "/api/v1", "/api/v1/", "/api/v2/status", "/api/v1/statu",
                 "/api/v1/status/", "/api/v1/servicesxshop/web",
                 "/metrics/", "/metricsx", "/index.html"]
    )
    def test_absent(self, gateway, path):
        assert gateway.status.get(path).status == 404

    def test_heads(self, cluster):
        """Types that gzip and others recognise; one Cache-Control, whoever adds to it."""
        cluster.service("shop", "web")
        port = free_port()
        types = "application/json text/plain text/css text/javascript"
        cluster.nginx(
            CONF
            + """
    server {
        listen 127.0.0.1:%d;
        gzip on; gzip_types %s; gzip_min_length 1; gzip_http_version 1.0; gzip_proxied any;
        location /plain/ { kube_status; }
        location /expires/ { kube_status; expires 1h; }
    }
"""
            % (port, types)
        )
        for path in self.GOOD + ["/?asset=status.css", "/?asset=status.js"]:
            asked = {"headers": {"Accept-Encoding": "gzip"}}
            answer = request(port, "/plain" + path, **asked)
            assert answer.headers["content-encoding"] == "gzip", (path, answer.headers)
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["x-content-type-options"] == "nosniff"
            answer = raw(
                port,
                f"GET /expires{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode(),
            )
            head = answer.split(b"\r\n\r\n")[0].lower()
            assert head.count(b"cache-control:") == 1, head

    def test_amid_a_page(self, cluster):
        """What stands behind it comes, too."""
        port = free_port()
        cluster.nginx(
            CONF
            + """
    server {
        listen 127.0.0.1:%d;
        location = /page {
            ssi on; default_type text/html;
            return 200 '(<!--# include virtual="/kube/api/v1/status" -->)';
        }
        location /kube/ { kube_status; }
    }
"""
            % port
        )
        text = request(port, "/page").text
        assert text[0] == "(" and text[-1] == ")"
        assert json.loads(text[1:-1])["informers"]

    def test_only_what_is_named(self, cluster):
        cluster.service("shop", "web")
        port = free_port()
        cluster.nginx(
            CONF
            + """
    server {
        listen 127.0.0.1:%d;
        location /m/ { kube_status metrics; }
        location /a/ { kube_status api; }
        location /p/ { kube_status page; }
        location /ap/ { kube_status api page; }
        location /deep/er/ { kube_status; }
        location /exact { kube_status; }
    }
"""
            % port
        )
        expected = {
            "m": {"metrics"},
            "a": {"api"},
            "p": {"page"},
            "ap": {"api", "page"},
            "deep/er": {"metrics", "api", "page"},
            "exact": {"metrics", "api", "page"},
        }
        for where, offered in expected.items():
            for what, path in (("metrics", "metrics"), ("api", "api/v1/status"), ("page", "")):
                code = request(port, f"/{where}/{path}").status
                assert code == (200 if what in offered else 404), (where, path)
            # what the page needs comes with the page, and with nothing else
            for asset in ("status.js", "status.css", "api/v1/status", "api/v1/services"):
                answer = request(port, f"/{where}/?asset={asset}")
                assert answer.status == (200 if "page" in offered else 404), (where, asset)
            assert request(port, f"/{where}/?asset=metrics&x=1").status == (
                200 if {"page", "metrics"} <= offered else 404
            )
            assert request(port, f"/{where}/?asset=../x").status == 404
        # a prefix without a slash begins other paths too
        for path in ("/exactly", "/exactXmetrics", "/exactmetrics", "/exactXapi/v1/status"):
            assert request(port, path).status == 404, path

    def test_exact_location(self, cluster):
        """The page needs no path but its own."""
        cluster.service("shop", "web")
        port = free_port()
        cluster.nginx(
            CONF + "server { listen 127.0.0.1:%d; location = /x { kube_status page; } }" % port
        )
        assert "<title>" in request(port, "/x").text
        assert request(port, "/x?asset=status.js").headers["content-type"] == (
            "text/javascript; charset=utf-8"
        )
        assert request(port, "/x?asset=api/v1/status").json()["informers"]
        rows = request(port, "/x?asset=api%2Fv1%2Fservices&limit=1&namespace=shop").json()
        assert [r["name"] for r in rows["items"]] == ["web"]
        assert request(port, "/x?asset=api/v1/services/shop/web").json()["name"] == "web"
        assert request(port, "/x?asset=none").status == 404

    def test_slash_is_added(self, cluster):
        """The query stays, and no byte of a client's ends the header."""
        port = free_port()
        cluster.nginx(
            CONF + "server { listen 127.0.0.1:%d; absolute_redirect off;"
            " location /k { kube_status; } location '/a b' { kube_status; }"
            " location /long/enough { rewrite '^/long/enough(/[^ ]*)$' $1 break; kube_status; }"
            " }" % port
        )
        for path, location in (
            ("/k", "/k/"),
            ("/k?informer=b&x=%2F", "/k/?informer=b&x=%2F"),
            ("/a%20b", "/a%20b/"),
            ("/long/enough/%0d%0aX:y", "/%0D%0AX:y/"),
            ("/long/enough/%3fx", "/%3Fx/"),
        ):
            answer = request(port, path)
            assert answer.status == 301, path
            assert answer.headers["location"] == location
            assert "x" not in answer.headers

    def test_page_without_its_slash(self, cluster):
        """As of proxy_pass: the location's own name, unless another one has it."""
        port = free_port()
        cluster.nginx(
            CONF + "server { listen 127.0.0.1:%d; absolute_redirect off;"
            " location / { return 204; } location /k/ { kube_status; }"
            " location /p/ { kube_status page; } location /m/ { kube_status metrics; }"
            " location /o/ { kube_status; } location = /o { return 204; } }" % port
        )
        for path, location in (("/k", "/k/"), ("/k?informer=b", "/k/?informer=b"), ("/p", "/p/")):
            answer = request(port, path)
            assert (answer.status, answer.headers["location"]) == (301, location)
        assert [request(port, path).status for path in ("/m", "/o", "/kx", "/")] == [204] * 4
        assert request(port, "/k/").status == 200

    def test_access_rules_hold(self, cluster):
        cluster.service("shop", "web")
        port = free_port()
        gateway = cluster.nginx(
            CONF
            + "server { listen 127.0.0.1:%d; location /kube/ { kube_status; deny all; } }" % port
        )
        assert request(port, "/kube/").status == 403
        assert request(port, "/kube/metrics").status == 403
        assert gateway.get(headers={"X-Service": "shop/web"}).status == 200

    def test_pipelined_and_http10(self, gateway):
        one = b"GET /kube/api/v1/status HTTP/1.1\r\nHost: x\r\n%s\r\n"
        answer = raw(
            gateway.status_port, one % b"" + one % b"" + one % b"Connection: close\r\n"
        )
        assert answer.count(b"HTTP/1.1 200 ") == 3
        answer = raw(gateway.status_port, b"GET /kube/metrics HTTP/1.0\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 ")


class Page(html.parser.HTMLParser):
    """What the page would load or run."""

    def __init__(self):
        super().__init__()
        self.outside = []
        self.scripts = []
        self.inline = ""
        self.handlers = []
        self.text = ""
        self.stack = []
        self.lang = None

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "html":
            self.lang = attrs.get("lang")
        if tag == "script":
            self.scripts.append(attrs)
        for name, value in attrs.items():
            if name.startswith("on"):
                self.handlers.append((tag, name))
            if name in ("src", "href", "action", "data", "poster", "srcset"):
                if re.match(r"(?i)\s*((?!data:)[a-z][a-z0-9+.-]*:|//)", value or ""):
                    self.outside.append((tag, value))
        self.stack.append(tag)

    def handle_data(self, data):
        self.text += data
        if self.stack[-1:] == ["script"]:
            self.inline += data

    def handle_endtag(self, tag):
        while self.stack and self.stack.pop() != tag:
            pass


class TestPage:
    """The HTML page."""

    def read(self, gateway):
        answer = gateway.status.get("/")
        assert answer.headers["content-type"].startswith("text/html")
        page = Page()
        page.feed(answer.text)
        page.close()
        return answer, page

    def test_loads_nothing_from_elsewhere(self, gateway):
        answer, page = self.read(gateway)
        assert page.outside == [] and page.handlers == []
        assert answer.text.lstrip().lower().startswith("<!doctype html>")
        assert page.lang
        assert not re.search(r"@import|url\(\s*['\"]?(http|//)", answer.text)
        assert [s["src"] for s in page.scripts] == ["?asset=status.js"] and not page.inline
        policy = answer.headers.get("content-security-policy", "")
        assert "default-src 'none'" in policy and "script-src 'self'" in policy
        assert "unsafe" not in policy

    def test_names_what_there_is(self, gateway):
        """Without scripts: the facts, and where the rest is."""
        for resource in ("services", "endpointslices"):
            gateway.status.wait_state("watching", resource)
        _, page = self.read(gateway)
        for word in ("default", "watching", "endpointslices", "JSON"):
            assert word in page.text, word
        assert "<!-- facts -->" not in gateway.status.get("/").text

    def test_is_bounded(self, cluster):
        """A cluster of any size gives a page of one size."""
        cluster.api.load_scale(3000, 1)
        gateway = cluster.nginx(CONF)
        answer, page = self.read(gateway)
        assert len(answer.body) < 64 << 10
        assert len(gateway.status.services(limit=500)) == 3000


class TestEscaping:
    """Names from the API are escaped for where they are printed."""

    EVIL = '<script>alert(1)</script>"\'\\\n\r\t\x1b[31m{}&amp;\u2028\u202e'

    def put(self, cluster):
        """Evil where a hostile API could put it."""
        made = objects.endpoint("127.0.6.1", node=self.EVIL, zone=self.EVIL, pod=self.EVIL)
        cluster.service("shop", "web", pods=[])
        cluster.slice("shop", "web", [made], ports=(("http", 8080),))
        cluster.api.put(
            objects.service(
                "shop", "evil", type="ExternalName", external_name=self.EVIL, cluster_ip=self.EVIL
            )
        )
        cluster.api.fault(
            status=403, reason=self.EVIL, message=self.EVIL, times=2, verb="list"
        )

    def test_everywhere(self, cluster):
        self.put(cluster)
        gateway = cluster.nginx(CONF)
        gateway.get(headers={"X-Service": "shop/web"})
        status = gateway.status
        page = status.get("/")
        assert "<script>alert" not in page.text
        parsed = Page()
        parsed.feed(page.text)
        assert [s["src"] for s in parsed.scripts] == ["?asset=status.js"] and not parsed.inline
        for path in ("/api/v1/status", "/api/v1/services", "/api/v1/services/shop/web"):
            answer = status.get(path)
            assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", answer.body)
            answer.json()
        assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", status.get("/metrics").body)
        status.metrics()
        with open(gateway.path("error.log"), "rb") as f:
            for line in f.read().split(b"\n"):
                assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", line), line

    def test_round_trip_of_what_is_kept(self, cluster):
        """What can be shown is shown as it was."""
        odd = 'a"b\\c/é<d>'
        cluster.service("shop", "web", pods=[])
        cluster.slice(
            "shop", "web", [objects.endpoint("127.0.6.1", zone=odd)], ports=(("http", 8080),)
        )
        gateway = cluster.nginx(CONF)
        made = gateway.status.service("shop", "web")
        assert made["endpoints"][0]["zone"] in (odd, None)


class TestMetrics:
    """/metrics."""

    NAMES = {
        "build_info": "gauge",
        "synced": "gauge",
        "ready": "gauge",
        "cache_age_seconds": "gauge",
        "objects": "gauge",
        "lists_total": "counter",
        "watches_total": "counter",
        "short_watches_total": "counter",
        "relists_total": "counter",
        "list_duration_seconds": "histogram",
        "watch_duration_seconds": "histogram",
        "items_per_list": "histogram",
        "items_per_watch": "histogram",
        "events_total": "counter",
        "event_bytes_total": "counter",
        "skipped_objects_total": "counter",
        "trigger_times_ignored_total": "counter",
        "decode_fallbacks_total": "counter",
        "errors_total": "counter",
        "queue_depth": "gauge",
        "workqueue_depth": "gauge",
        "workqueue_adds_total": "counter",
        "workqueue_queue_duration_seconds": "histogram",
        "queue_age_seconds": "gauge",
        "store_resource_version": "gauge",
        "queued_items": "gauge",
        "processing_latency_seconds": "histogram",
        "publish_latency_seconds": "histogram",
        "programming_latency_seconds": "histogram",
        "takeovers_total": "counter",
        "zone_bytes": "gauge",
        "zone_failures_total": "counter",
        "resolve_total": "counter",
        "instance_rebuilds_total": "counter",
        "upstream_endpoints": "gauge",
    }

    def test_all_are_there(self, gateway):
        answer = gateway.status.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        metrics = gateway.status.metrics()
        found = {n: f.type for n, f in metrics.families.items()}
        for name, type_ in self.NAMES.items():
            assert found.get("nginx_kube_" + name) == type_, name
        assert all(n.startswith("nginx_kube_") for n in found)
        assert "nginx_kube_service_endpoints" not in found

    def test_are_what_the_docs_say(self, gateway):
        """docs/metrics.md: names, types, labels and their values, HELP texts."""
        path = os.path.join(os.path.dirname(__file__), "..", "docs", "metrics.md")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) ?\| (.*) \|$", text, re.M)
        found = gateway.status.metrics().families
        assert sorted("nginx_kube_" + n for n, *_ in rows) == sorted(found)
        for name, type_, labels, meaning in rows:
            family = found["nginx_kube_" + name]
            assert family.type == type_, name
            assert meaning.startswith(family.documentation), name
            names = {"le"} if type_ == "histogram" else set()
            names |= {"informer"} if name != "build_info" else set()
            names |= {"resource"} if labels.startswith(("scope", "resource")) else set()
            names |= {"namespace"} if labels.startswith("scope") else set()
            if name == "upstream_endpoints":
                assert not family.samples  # its upstream has a key of variables
                continue
            own = re.search(r"`(\w+)`: (.*)", labels)
            names |= {own[1]} if own else set(re.findall(r"`(\w+)`", labels))
            assert set().union(*(s.labels for s in family.samples)) == names, name
            if own:
                values = dict.fromkeys(s.labels[own[1]] for s in family.samples)
                assert re.findall(r"`(\w+)`", own[2]) == list(values), name

    def test_agree_with_the_status(self, cluster, gateway):
        status = gateway.status
        for _ in range(3):
            assert gateway.get(headers={"X-Service": "shop/web"}).status == 200
        status.wait_rv(cluster.slice("shop", "web", cluster.pods(1)))
        # a watch is counted a moment after the state says so
        status.wait(lambda i: all(row["watches"] for row in i["resources"]))
        metrics = status.metrics()
        informer = status.informer()
        assert metrics.value("nginx_kube_synced", informer="default") == 1
        assert metrics.value("nginx_kube_ready", informer="default") == 1
        for row in informer["resources"]:
            which = {"informer": "default", "resource": row["resource"]}
            assert metrics.value("nginx_kube_objects", **which) == row["objects"]
            assert metrics.value("nginx_kube_lists_total", **which) == row["lists"]
            assert metrics.value("nginx_kube_watches_total", **which) == row["watches"]
            for type_, count in row["events"].items():
                assert metrics.value("nginx_kube_events_total", type=type_, **which) == count
            assert metrics.value("nginx_kube_list_duration_seconds_count", **which) == 1
            version = metrics.value("nginx_kube_store_resource_version", **which)
            assert version == int(row["resource_version"])
            assert metrics.value("nginx_kube_queued_items", **which) == 0
        assert metrics.value("nginx_kube_resolve_total", result="ok") >= 1
        assert metrics.value("nginx_kube_event_bytes_total", resource="endpointslices") > 100
        assert metrics.value("nginx_kube_publish_latency_seconds_count") >= 1
        assert metrics.value("nginx_kube_processing_latency_seconds_count") >= 1
        assert metrics.value("nginx_kube_queue_age_seconds") == 0

    def test_counters_survive_workers(self, gateway):
        for _ in range(10):
            gateway.get(headers={"X-Service": "shop/web"})
        before = gateway.status.metrics()
        gateway.reload(gone=True)
        gateway.status.wait_state("watching")
        after = gateway.status.metrics()
        for name in ("nginx_kube_lists_total", "nginx_kube_resolve_total"):
            assert after.value(name) >= before.value(name) > 0


class TestSecrets:
    """Nothing secret is ever shown."""

    TOKEN = "t0k3n-that-must-not-be-seen.eyJhbGciOiJub25lIn0.c2VjcmV0LXBhcnQ"

    @pytest.mark.cluster(token=TOKEN)
    def test_token_is_nowhere(self, cluster):
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF, more="token_file token;", start=False)
        gateway.write("token", self.TOKEN)
        gateway.start()
        gateway.status.wait_synced()
        refused = cluster.api.fault(status=401, times=3)
        cluster.api.close_watches(how="rst")
        cluster.api.wait(lambda: refused.fired == 3)
        for resource in ("services", "endpointslices"):
            gateway.status.wait_state("watching", resource)
        seen = [gateway.log(), gateway.stderr()]
        for path in TestPaths.GOOD:
            seen.append(gateway.status.get(path).text)
        for pid in gateway.workers():
            with open(f"/proc/{pid}/environ", "rb") as f:
                seen.append(f.read().decode("latin-1"))
        for text in seen:
            for part in [self.TOKEN] + self.TOKEN.split("."):
                assert part not in text

    @pytest.mark.cluster(token=TOKEN)
    @pytest.mark.skipif(os.geteuid() != 0, reason="reads memory of other processes: root only")
    def test_token_is_not_in_the_memory_of_workers(self, cluster):
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF, more="token_file token;", start=False)
        gateway.write("token", self.TOKEN)
        gateway.start()
        gateway.status.wait_synced()
        parts = [p.encode() for p in self.TOKEN.split(".")]
        for pid in [gateway.master] + gateway.workers():
            assert not any(p in memory(pid) for p in parts), f"process {gateway.title(pid)}"
        assert any(p in memory(gateway.informer()) for p in parts), "the scan finds nothing at all"


def memory(pid):
    """All writable memory of a process."""
    made = []
    with open(f"/proc/{pid}/maps", encoding="latin-1") as maps, open(
        f"/proc/{pid}/mem", "rb", buffering=0
    ) as mem:
        for line in maps:
            span, rights = line.split()[:2]
            if not rights.startswith("rw"):
                continue
            start, end = (int(x, 16) for x in span.split("-"))
            if end - start > 64 << 20:
                continue
            try:
                mem.seek(start)
                made.append(mem.read(end - start))
            except OSError:
                pass
    return b"".join(made)


def test_large_answers_of_a_large_cluster(cluster):
    """Bodies of megabytes come whole, to a slow reader too."""
    cluster.service("shop", "big", pods=[])
    for n in range(20):
        cluster.api.put(
            objects.slice(
                "shop", f"big-{n}", "big", [f"127.20.{n}.{k + 1}" for k in range(100)]
            )
        )
    gateway = cluster.nginx(CONF)
    wait_until(lambda: len(gateway.status.service("shop", "big")["endpoints"]) == 2000)
    answer = gateway.status.get("/api/v1/services/shop/big")
    made = json.loads(answer.body)
    assert len({e["address"] for e in made["endpoints"]}) == 2000


class TestSlow:
    """Clients that ask for answers of megabytes, and read little of them."""

    PATH = "/kube/api/v1/services/shop/big"

    @pytest.fixture
    def gateway(self, cluster):
        """One worker, and a Service of four times as many endpoints as are shown."""
        cluster.service("shop", "big", pods=[])
        for n in range(16):
            hosts = [f"127.20.{4 * n + k // 250}.{k % 250 + 1}" for k in range(1000)]
            cluster.api.put(objects.slice("shop", f"big-{n}", "big", hosts))
        self.port = free_port()
        slow = "server { listen 127.0.0.1:%d; limit_rate 1k; location /kube/ { kube_status; } }"
        block = informer(cluster.api.url, zone="kube 16m")
        gateway = cluster.nginx(CONF + slow % self.port, block=block, workers=1)
        wait_until(lambda: gateway.status.service("shop", "big")["endpoints_total"] == 16000)
        return gateway

    def ask(self, stack):
        """An answer of which the head was read; the stack closes it."""
        made = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        stack.callback(made.close)
        made.request("GET", self.PATH)
        answer = made.getresponse()
        stack.callback(answer.close)
        return answer

    @pytest.mark.skipif(SANITIZED, reason="memory of the sanitizer's own")
    def test_hold_their_answers_alone(self, gateway):
        """Nothing of what it took to print them."""
        (worker,) = gateway.workers()
        with contextlib.ExitStack() as stack:
            assert self.ask(stack).status == 200
            before = rss(worker)
            made = [self.ask(stack) for _ in range(16)]
            grown = (rss(worker) - before) * 1024
            assert {answer.status for answer in made} == {200}
            size = sum(int(answer.headers["content-length"]) for answer in made)
        assert grown < 2 * size, f"{grown} for {size}"

    def test_so_much_of_a_worker(self, gateway):
        """32 MiB; who comes then is refused, until others have left."""
        path = self.PATH.removeprefix("/kube")
        with contextlib.ExitStack() as stack:
            size, made = 0, self.ask(stack)
            while made.status == 200:
                size += int(made.headers["content-length"])
                assert size < 64 << 20
                made = self.ask(stack)
            assert size >= 32 << 20
            assert made.status == 503
            answer = gateway.status.get(path)
            assert answer.status == 503
            assert answer.json()["error"] == "too many answers are being read"
            assert gateway.status.metrics().value("nginx_kube_synced") == 1
            assert gateway.status.get("/").status == 200
            assert request(gateway.status_port, "/ready").status == 200
        wait_until(lambda: gateway.status.get(path).status == 200)
