# http: kube_service and kube_resolve send requests to the endpoints the API
# server shows, by every stock method, and say why where they cannot.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Requests through kube_service and kube_resolve."""

import contextlib
import http.client
import re
import threading
import time

import objects
import pytest
from apiserver import ApiServer
from client import request
from cluster import informer
from nginx import WAIT, free_port, keeps_alive, wait_until

ONE = """
    upstream web { kube_service %s; %s }
    server {
        listen 127.0.0.1:PORT;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        location / { proxy_pass http://web; }
    }
"""

BY_HEADER = """
    upstream dynamic { kube_service $http_x_service %s; }
    server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://dynamic; }
    }
"""


def names(pods):
    """Their names, as X-Backend tells them."""
    return {p.name for p in pods}


def by_service(gateway, key, **more):
    """A request whose Service the client names."""
    return gateway.get(headers={"X-Service": key}, **more)


class TestKeys:
    """Ways to name a Service and its port."""

    @pytest.mark.parametrize(
        "key",
        [
            "shop/web:http",
            "shop/web:80",
            "shop/web",
            "web.shop",
            "web.shop:http",
            "web.shop.svc:80",
            "web.shop.svc.cluster.local",
        ],
    )
    def test_static(self, cluster, key):
        pods = cluster.service("shop", "web", 2)
        gateway = cluster.nginx(ONE % (key, ""))
        gateway.wait_backends(names(pods))

    def test_map_of_hosts(self, cluster):
        web = cluster.service("shop", "web", 2)
        api = cluster.service("api", "users")
        gateway = cluster.nginx(
            """
    map $host $service {
        shop.example.com  shop/web:http;
        "~^(?<n>[a-z]+)\\.api\\.example\\.com$"  api/$n:80;
    }
    upstream by_host { kube_service $service namespaces=shop,api; keepalive 8; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://by_host; } }
"""
        )
        gateway.wait_backends(names(web), host="shop.example.com")
        gateway.wait_backends(names(api), host="users.api.example.com")
        answer = gateway.get(host="users.api.example.com")
        assert answer.headers["x-kube-service"] == "api/users:http"
        answer = gateway.get(host="else.example.com")
        assert (answer.status, answer.headers["x-kube-error"]) == (502, "no_key")
        answer = gateway.get(host="none.api.example.com")
        assert (answer.status, answer.headers["x-kube-error"]) == (502, "no_service")

    def test_dns_form_of_variables_only_on_request(self, cluster):
        cluster.service("shop", "web")
        gateway = cluster.nginx(BY_HEADER % "namespaces=shop form=dns")
        for key in ("web.shop", "web.shop.svc:http", "shop/web:80", "web.shop.svc.cluster.local"):
            assert by_service(gateway, key).status == 200, key
        gateway.change(http=BY_HEADER % "namespaces=shop", gone=True)
        assert by_service(gateway, "shop/web").status == 200
        answer = by_service(gateway, "web.shop")
        assert (answer.status, answer.headers["x-kube-error"]) == (502, "bad_key")

    def test_port_of_several(self, cluster):
        first, second = cluster.pods(1, "first"), cluster.pods(1, "second")
        second[0].owner.add(first[0].host, second[0].port, "second-same-pod")
        cluster.api.put(
            objects.service("shop", "web", ports=(("http", 80, "a"), ("admin", 8000, "b")))
        )
        cluster.slice(
            "shop", "web", first, ports=(("http", first[0].port), ("admin", second[0].port))
        )
        gateway = cluster.nginx(BY_HEADER % "namespaces=shop")
        for key, backend in (
            ("shop/web:http", "first-1"),
            ("shop/web:80", "first-1"),
            ("shop/web:admin", "second-same-pod"),
            ("shop/web:8000", "second-same-pod"),
        ):
            assert by_service(gateway, key).backend == backend, key
        for key in ("shop/web:none", "shop/web:8080", "shop/web:81"):
            assert by_service(gateway, key).headers["x-kube-error"] == "no_port", key
        assert by_service(gateway, "shop/web").headers["x-kube-error"] == "port_needed"

    def test_unnamed_port(self, cluster):
        pods = cluster.pods(1)
        cluster.api.put(objects.service("shop", "web", ports=(80,)))
        cluster.slice("shop", "web", pods, ports=(("", pods[0].port),))
        gateway = cluster.nginx(ONE % ("shop/web", ""))
        assert gateway.get().backend == "pod-1"

    def test_same_service_in_two_upstreams(self, cluster):
        pods = cluster.service("shop", "web", 2)
        gateway = cluster.nginx(
            ONE % ("shop/web", "least_conn;")
            + """
    upstream again { kube_service shop/web:http; }
    server { listen 127.0.0.1:%d; location / { proxy_pass http://again; } }
"""
            % (other := free_port())
        )
        gateway.wait_backends(names(pods))
        assert request(other).status == 200


METHODS = [
    "",
    "least_conn;",
    "ip_hash;",
    "hash $arg_k;",
    "hash $arg_k consistent;",
    "random;",
    "random two least_conn;",
]


class TestMethods:
    """Every stock method, with and without keepalive, in any order."""

    @pytest.mark.parametrize("order", ["method", "method keepalive", "keepalive method"])
    @pytest.mark.parametrize("method", METHODS)
    def test_follows(self, cluster, method, order):
        pods = cluster.service("shop", "web", 3)
        lines = {"method": method, "keepalive": "keepalive 4;"}
        first, _, rest = order.partition(" ")
        before = lines[first] if rest else ""
        after = lines[rest] if rest else method
        text = ONE % ("shop/web", after)
        text = text.replace("upstream web {", "upstream web { " + before)
        gateway = cluster.nginx(text, workers=1)

        def answered(count=24):
            made = [gateway.get(f"/?k={i}") for i in range(count)]
            assert all(a.status == 200 for a in made), made
            return {a.backend for a in made}

        expected = 1 if method == "ip_hash;" else 3
        assert len(answered(48)) == expected
        assert answered(48) <= names(pods)
        more = cluster.pods(3, "new")
        rv = cluster.slice("shop", "web", more)
        gateway.status.wait_rv(rv)
        found = answered(48)
        assert found <= names(more) and len(found) == expected

    def test_hash_is_stable_between_workers(self, cluster):
        cluster.service("shop", "web", 5)
        gateway = cluster.nginx(ONE % ("shop/web", "hash $arg_k consistent;"), workers=2)
        found = {}
        workers = gateway.workers()
        assert len(workers) == 2
        for worker in workers:
            with gateway.alone(worker):
                for i in range(32):
                    answer = gateway.get(f"/?k={i % 8}")
                    assert answer.headers["x-worker"] == str(worker)
                    found.setdefault(i % 8, set()).add(answer.backend)
        assert all(len(backends) == 1 for backends in found.values())

    def test_hash_consistent_moves_few(self, cluster):
        pods = cluster.service("shop", "web", 10)
        gateway = cluster.nginx(ONE % ("shop/web", "hash $arg_k consistent;"), workers=1)
        before = {k: gateway.get(f"/?k={k}").backend for k in range(60)}
        gateway.status.wait_rv(cluster.slice("shop", "web", pods[1:]))
        after = {k: gateway.get(f"/?k={k}").backend for k in range(60)}
        moved = [k for k in before if before[k] != after[k]]
        assert all(before[k] == pods[0].name for k in moved)

    def test_keepalive_survives_a_change(self, cluster):
        pods = cluster.service("shop", "web", 2)
        gateway = cluster.nginx(ONE % ("shop/web", "keepalive 8;"), workers=1)
        for _ in range(20):
            assert gateway.get().status == 200
        assert [p.accepted for p in pods] == [1, 1]
        more = pods + cluster.pods(1, "new", port=pods[0].port)
        gateway.status.wait_rv(cluster.slice("shop", "web", more))
        for _ in range(30):
            assert gateway.get().status == 200
        assert [p.accepted for p in more] == [1, 1, 1]

    def test_without_keepalive_each_request_connects(self, cluster):
        (pod,) = cluster.service("shop", "web", 1)
        off = "keepalive 0;" if keeps_alive() else ""
        gateway = cluster.nginx(ONE % ("shop/web", off), workers=1)
        for _ in range(5):
            assert gateway.get().status == 200
        assert pod.accepted == 5


class TestServers:
    """Static servers beside kube_service, and parameters."""

    def test_static_server_counts(self, cluster):
        pods = cluster.service("shop", "web", 2)
        (static,) = cluster.pods(1, "static")
        gateway = cluster.nginx(ONE % ("shop/web", f"server {static.address};"))
        gateway.wait_backends(names(pods) | {"static-1"})

    def test_backup_serves_only_when_nothing_else_does(self, cluster):
        pods = cluster.service("shop", "web", 2)
        (static,) = cluster.pods(1, "static")
        gateway = cluster.nginx(ONE % ("shop/web", f"server {static.address} backup;"))
        assert set(gateway.backends(20)) == names(pods)
        gateway.status.wait_rv(cluster.slice("shop", "web", []))
        assert gateway.backends(8) == {"static-1": 8}
        gateway.status.wait_rv(cluster.slice("shop", "web", pods))
        assert set(gateway.backends(20)) == names(pods)

    def test_backup_serves_when_the_service_is_unknown(self, cluster):
        (static,) = cluster.pods(1, "static")
        gateway = cluster.nginx(ONE % ("shop/none", f"server {static.address} backup;"))
        assert gateway.backends(4) == {"static-1": 4}

    def test_backup_serves_keys_of_clients_that_lead_nowhere(self, cluster):
        (static,) = cluster.pods(1, "static")
        text = BY_HEADER % "namespaces=shop; server %s backup" % static.address
        gateway = cluster.nginx(text, workers=1)
        for key in ("shop/none", "shop/none:http", "shop/no"):
            answer = by_service(gateway, key)
            assert (answer.status, answer.backend) == (200, "static-1")
            assert answer.headers["x-kube-service"] == key
            assert answer.headers["x-kube-error"] == "no_service"
        # whatever the reason is: the client's mistake is no less one
        for key, error in (
            ("", "no_key"),
            ("shop/", "bad_key"),
            ("infra/web", "namespace_denied"),
        ):
            answer = by_service(gateway, key)
            assert (answer.status, answer.backend) == (200, "static-1")
            assert answer.headers["x-kube-error"] == error

    def test_log_tells_that_static_servers_serve(self, cluster):
        """Once for each cause of a key, however many requests there are."""
        (static,) = cluster.pods(1, "static")
        gateway = cluster.nginx(
            ONE % ("shop/web", f"server {static.address};"),
            workers=1,
            more="namespaces shop;",
        )
        place = r'key "shop/web" of upstream "\S+" in \S+:\d+: "shop/web" cannot be resolved: '

        def lines(cause):
            return gateway.grep_log(place + cause + ".*; static servers serve it ")

        assert gateway.backends(8) == {"static-1": 8}
        assert len(lines("no_service: there is no Service shop/web")) == 1
        pods = cluster.service("shop", "web", 1)
        gateway.wait_backends(names(pods) | {"static-1"})
        gateway.status.wait_rv(cluster.slice("shop", "web", []))
        for _ in range(3):
            assert gateway.backends(4) == {"static-1": 4}
            assert len(lines("no_endpoints")) == 1
            # another revision, the same cause
            gateway.status.wait_rv(cluster.slice("shop", "web", []))
        assert len(gateway.grep_log("cannot be resolved")) == 2

    def test_reason_outlives_a_retry(self, cluster):
        """Also where the first static server fails: the key is what it was."""
        dead, static = cluster.pods(2, "static")
        servers = f"server {dead.address} max_fails=0; server {static.address} max_fails=0"
        gateway = cluster.nginx(BY_HEADER % f"namespaces=shop; {servers}", workers=1)
        dead.close()
        for key, error in (
            ("", "no_key"),
            ("shop/", "bad_key"),
            ("infra/web", "namespace_denied"),
            ("shop/none", "no_service"),
        ):
            answers = [by_service(gateway, key) for _ in range(2)]
            assert {a.backend for a in answers} == {"static-2"}
            assert sorted(a.headers["x-upstream-status"] for a in answers) == ["200", "502, 200"]
            assert {a.headers["x-kube-error"] for a in answers} == {error}

    def test_weight_applies_beside_a_static_server(self, cluster):
        cluster.service("shop", "web", 1)
        (static,) = cluster.pods(1, "static")
        gateway = cluster.nginx(
            ONE % ("shop/web weight=3", f"server {static.address};"), workers=1
        )
        assert gateway.backends(40) == {"shop.web-1": 30, "static-1": 10}

    def test_max_fails(self, cluster):
        pods = cluster.service("shop", "web", 2)
        gateway = cluster.nginx(
            ONE % ("shop/web max_fails=1 fail_timeout=60s", ""), workers=1
        )
        pods[0].close()
        answers = [gateway.get() for _ in range(20)]
        assert {a.status for a in answers} == {200}
        tried = sum("," in a.headers["x-upstream-addr"] for a in answers)
        assert tried == 1

    def test_max_fails_0_keeps_trying(self, cluster):
        pods = cluster.service("shop", "web", 2)
        gateway = cluster.nginx(ONE % ("shop/web max_fails=0", ""), workers=1)
        pods[0].close()
        answers = [gateway.get() for _ in range(20)]
        assert {a.status for a in answers} == {200}
        assert sum("," in a.headers["x-upstream-addr"] for a in answers) >= 8

    def test_max_conns(self, cluster):
        pods = cluster.service("shop", "web", 1)
        gateway = cluster.nginx(ONE % ("shop/web max_conns=1", ""), workers=1)
        first = threading.Thread(target=gateway.get, args=("/?hold=1",))
        first.start()
        wait_until(lambda: pods[0].active == 1)
        assert gateway.get().status == 502
        pods[0].release()
        first.join()


class TestEndpoints:
    """Which endpoints of a Service are used."""

    def test_scale_to_zero_and_back(self, cluster):
        pods = cluster.service("shop", "web", 1)
        gateway = cluster.nginx(ONE % ("shop/web", ""))
        for _ in range(3):
            gateway.status.wait_rv(cluster.slice("shop", "web", []))
            answer = gateway.get("/gone")
            assert (answer.status, answer.headers["x-kube-error"]) == (502, "no_endpoints")
            gateway.status.wait_rv(cluster.slice("shop", "web", pods))
            answer = gateway.get("/there")
            assert (answer.status, answer.headers["x-kube-error"]) == (200, "")
        wait_until(lambda: sum("/gone" in line for line in gateway.access()) == 3)
        assert [line.split("|")[:4] for line in gateway.access() if "/gone" in line] == [
            ["502", "/gone", "shop/web:http", "no_endpoints"]
        ] * 3

    def test_terminating_only_when_none_is_ready(self, cluster):
        ready, going = cluster.pods(2)
        leaving = objects.endpoint(going.host, ready=False, serving=True, terminating=True)
        cluster.service("shop", "web", pods=[ready])
        cluster.slice("shop", "web", [ready, leaving])
        gateway = cluster.nginx(ONE % ("shop/web", ""))
        assert gateway.backends(8) == {ready.name: 8}
        assert gateway.get().headers["x-kube-endpoint-state"] == "ready"
        rv = cluster.slice("shop", "web", [leaving], ports=(("http", going.port),))
        gateway.status.wait_rv(rv)
        assert gateway.backends(8) == {going.name: 8}
        assert gateway.get().headers["x-kube-endpoint-state"] == "terminating"

    def test_terminating_never(self, cluster):
        (going,) = cluster.pods(1)
        leaving = objects.endpoint(going.host, ready=False, serving=True, terminating=True)
        cluster.service("shop", "web", pods=[])
        cluster.slice("shop", "web", [leaving], ports=(("http", going.port),))
        gateway = cluster.nginx(ONE % ("shop/web terminating=never", ""))
        answer = gateway.get()
        assert (answer.status, answer.headers["x-kube-error"]) == (502, "no_ready_endpoint")

    @pytest.mark.parametrize(
        "ready, serving, terminating, used",
        [
            (True, True, False, True),
            ("absent", "absent", "absent", True),
            (True, "absent", "absent", True),
            (False, False, False, False),
            (False, True, False, False),
            (False, True, True, True),
            (False, False, True, False),
            (False, "absent", "absent", False),
        ],
    )
    def test_conditions(self, cluster, ready, serving, terminating, used):
        (pod,) = cluster.pods(1)
        made = objects.endpoint(pod.host, ready=ready, serving=serving, terminating=terminating)
        cluster.service("shop", "web", pods=[])
        cluster.slice("shop", "web", [made], ports=(("http", pod.port),))
        gateway = cluster.nginx(ONE % ("shop/web", ""))
        answer = gateway.get()
        if used:
            assert answer.backend == pod.name
        else:
            assert (answer.status, answer.headers["x-kube-error"]) == (502, "no_ready_endpoint")

    def test_several_slices_join(self, cluster):
        pods = cluster.service("shop", "web", 2)
        more = cluster.pods(2, "second")
        cluster.slice("shop", "web", more, "2")
        gateway = cluster.nginx(ONE % ("shop/web", ""))
        gateway.wait_backends(names(pods) | names(more))
        cluster.api.delete("endpointslices", "shop", "web-1")
        gateway.wait_backends(names(more))

    def test_an_address_in_two_slices_counts_once(self, cluster):
        pods = cluster.service("shop", "web", 2)
        cluster.slice("shop", "web", pods[:1], "2")
        gateway = cluster.nginx(ONE % ("shop/web", ""), workers=1)
        assert gateway.backends(20) == {p.name: 10 for p in pods}

    def test_headless(self, cluster):
        pods = cluster.service("shop", "db", 2, cluster_ip="None")
        gateway = cluster.nginx(ONE % ("shop/db", ""))
        gateway.wait_backends(names(pods))
        assert gateway.status.service("shop", "db")["headless"] is True

    def test_selectorless(self, cluster):
        (pod,) = cluster.pods(1)
        cluster.api.put(objects.service("shop", "ext", selector={}))
        made = objects.endpoint(pod.host, node=None, zone=None)
        cluster.slice("shop", "ext", [made], ports=(("http", pod.port),))
        gateway = cluster.nginx(ONE % ("shop/ext", ""))
        assert gateway.get().backend == pod.name

    def test_dual_stack(self, cluster):
        pods = cluster.service("shop", "web", 1)
        six = cluster.backends.add("::1", free_port(["::1"]), "six")
        cluster.slice("shop", "web", [six], "6", address_type="IPv6")
        gateway = cluster.nginx(
            BY_HEADER % "namespaces=shop"
            + """
    upstream four { kube_service shop/web family=ipv4; }
    upstream six { kube_service shop/web family=ipv6; }
    upstream any { kube_service shop/web family=any; }
    server {
        listen 127.0.0.1:%d;
        location /four { proxy_pass http://four; }
        location /six { proxy_pass http://six; }
        location /any { proxy_pass http://any; }
        location /own { kube_resolve $own shop/web; return 200 $own; }
    }
"""
            % (port := free_port())
        )
        both = names(pods) | {"six"}
        assert {request(port, "/any").backend for _ in range(12)} == both
        assert {request(port, "/four").backend for _ in range(8)} == names(pods)
        assert {request(port, "/six").backend for _ in range(8)} == {"six"}
        assert f"[::1]:{six.port}" in request(port, "/six").headers["x-upstream-addr"]
        # by default its own family, the other one while that has no endpoint
        assert request(port, "/own").text == f"{pods[0].host}:{pods[0].port}"
        assert {by_service(gateway, "shop/web").backend for _ in range(12)} == names(pods)
        gateway.status.wait_rv(cluster.slice("shop", "web", []))
        assert by_service(gateway, "shop/web").backend == "six"
        assert request(port, "/own").text == f"[::1]:{six.port}"
        assert request(port, "/four").status == 502
        gateway.status.wait_rv(cluster.slice("shop", "web", pods))
        assert {by_service(gateway, "shop/web").backend for _ in range(12)} == names(pods)

    def test_ipv6_address_of_the_same_prefix(self, cluster):
        """::127.0.0.2, where nobody is, and then ::1: they begin alike."""
        cluster.service("shop", "web", pods=[])
        six = cluster.backends.add("::1", free_port(["::1"]), "six")
        nobody, port = objects.endpoint("::7f00:2", ns="shop"), (("http", six.port),)
        cluster.slice("shop", "web", [nobody], "6", ports=port, address_type="IPv6")
        allow = "allow_address ::127.0.0.2;"
        gateway = cluster.nginx(ONE % ("shop/web", ""), more=allow, workers=1)
        answer = gateway.get()
        assert answer.status == 502
        assert answer.headers["x-upstream-addr"] == f"[::127.0.0.2]:{six.port}"
        gateway.status.wait_rv(cluster.slice("shop", "web", [six], "6", address_type="IPv6"))
        assert gateway.get().backend == "six"

    def test_long_ipv6_addresses(self, cluster):
        """Texts of 46 bytes, where nobody is: each is tried once, and shown whole."""
        cluster.service("shop", "web", pods=[])
        hosts = [f"2fff:1111:2222:3333:4444:5555:6666:77{n}" for n in range(10, 19)]
        made = [objects.endpoint(host, ns="shop") for host in hosts]
        cluster.slice("shop", "web", made, "6", ports=(("http", 65535),), address_type="IPv6")
        allow = "allow_address 2fff::/16;"
        gateway = cluster.nginx(ONE % ("shop/web", ""), more=allow, workers=1)
        answer = gateway.get()
        assert answer.status == 502
        tried = answer.headers["x-upstream-addr"].split(", ")
        assert sorted(tried) == [f"[{host}]:65535" for host in hosts]

    def test_target_port_differs_between_slices(self, cluster):
        old, new = cluster.pods(1, "old"), cluster.pods(1, "new")
        assert old[0].port != new[0].port
        cluster.service("shop", "web", pods=old)
        cluster.slice("shop", "web", new, "2")
        gateway = cluster.nginx(ONE % ("shop/web", ""))
        gateway.wait_backends({"old-1", "new-1"})

    def test_slice_moves_to_another_service(self, cluster):
        pods = cluster.service("shop", "web", 1)
        cluster.service("shop", "api", pods=[])
        gateway = cluster.nginx(BY_HEADER % "namespaces=shop")
        assert by_service(gateway, "shop/web").backend == pods[0].name
        cluster.api.delete("endpointslices", "shop", "api-1")
        moved = objects.slice(
            "shop",
            "web-1",
            "api",
            [pods[0].host],
            ports=(("http", pods[0].port),),
        )
        gateway.status.wait_rv(cluster.api.put(moved))
        assert by_service(gateway, "shop/web").headers["x-kube-error"] == "no_endpoints"
        assert by_service(gateway, "shop/api").backend == pods[0].name

    def test_slice_counts_in_its_own_namespace_only(self, cluster):
        cluster.service("shop", "web", pods=[])
        evil = cluster.pods(1, "evil")
        cluster.slice("other", "web", evil, "x")
        gateway = cluster.nginx(BY_HEADER % "namespaces=shop")
        assert by_service(gateway, "shop/web").headers["x-kube-error"] == "no_endpoints"

    def test_service_deleted_and_made_again(self, cluster):
        pods = cluster.service("shop", "web", 1)
        gateway = cluster.nginx(ONE % ("shop/web", ""))
        assert gateway.get().backend == pods[0].name
        cluster.api.delete("services", "shop", "web")
        answer = gateway.wait_status_code(502)
        assert answer.headers["x-kube-error"] == "no_service"
        cluster.api.put(objects.service("shop", "web", ports=(("http", 80, "http"),)))
        assert gateway.wait_status_code(200).backend == pods[0].name

    def test_slice_before_its_service(self, cluster):
        pods = cluster.pods(1)
        cluster.slice("shop", "web", pods)
        gateway = cluster.nginx(ONE % ("shop/web", ""))
        assert gateway.get().headers["x-kube-error"] == "no_service"
        cluster.api.put(objects.service("shop", "web", ports=(("http", 80, "http"),)))
        assert gateway.wait_status_code(200).backend == "pod-1"


class TestReasons:
    """502 and $kube_error."""

    def reason(self, answer):
        """Status and reason."""
        return answer.status, answer.headers["x-kube-error"]

    def test_of_keys(self, cluster):
        cluster.service("shop", "web")
        cluster.service("infra", "secret")
        gateway = cluster.nginx(BY_HEADER % "namespaces=shop")
        for key, reason in (
            ("", "no_key"),
            ("shop", "bad_key"),
            ("shop/../infra/secret", "bad_key"),
            ("infra/secret", "namespace_denied"),
            ("shop/none", "no_service"),
            ("shop/web:none", "no_port"),
        ):
            assert self.reason(by_service(gateway, key)) == (502, reason), key
        assert self.reason(by_service(gateway, "shop/web")) == (200, "")
        values = gateway.status.metrics()
        assert values.value("nginx_kube_resolve_total", result="bad_key") == 2
        assert values.value("nginx_kube_resolve_total", result="namespace_denied") == 1

    def test_external_name(self, cluster):
        cluster.api.put(
            objects.service("shop", "out", type="ExternalName", external_name="localhost")
        )
        gateway = cluster.nginx(ONE % ("shop/out:80", ""))
        assert self.reason(gateway.get()) == (502, "external_name")

    def test_address_denied(self, cluster):
        cluster.service("shop", "web")
        block = informer(cluster.api.url, "backoff 50ms 500ms;", quick=False)
        gateway = cluster.nginx(ONE % ("shop/web", ""), block=block)
        assert self.reason(gateway.get()) == (502, "address_denied")
        (row,) = gateway.status.service("shop", "web")["endpoints"]
        assert row["used"] is False and "denied" in row["excluded_because"]

    def test_udp_port_is_none(self, cluster):
        (pod,) = cluster.pods(1)
        port = {"name": "dns", "protocol": "UDP", "port": 53, "targetPort": 53}
        cluster.api.put(objects.service("shop", "dns", ports=(port,)))
        cluster.slice(
            "shop",
            "dns",
            [pod],
            ports=({"name": "dns", "protocol": "UDP", "port": pod.port},),
        )
        gateway = cluster.nginx(ONE % ("shop/dns:dns", ""))
        assert self.reason(gateway.get()) == (502, "no_port")

    def test_not_synced(self, cluster):
        cluster.service("shop", "web")
        cluster.api.refuse()
        gateway = cluster.nginx(ONE % ("shop/web", ""), sync=False)
        answer = gateway.get()
        assert self.reason(answer) == (502, "not_synced")
        assert answer.headers["x-kube-synced"] in ("0", "false")
        cluster.api.listen()
        gateway.wait_status_code(200)

    def test_not_synced_and_then_missing(self, cluster):
        """The reason is that of now, also of what has no revision."""
        cluster.api.refuse()
        gateway = cluster.nginx(ONE % ("shop/none", ""), sync=False, workers=1)
        assert self.reason(gateway.get()) == (502, "not_synced")
        cluster.api.listen()
        wait_until(lambda: self.reason(gateway.get()) == (502, "no_service"))

    @pytest.mark.parametrize("turns", (0, 4))
    def test_after_too_many_redirects(self, cluster, turns):
        """Told also where "post_action" follows the last one: what is left of them wraps."""
        cluster.service("shop", "web", pods=[])
        rewrites = " ".join(f"rewrite ^/after{n}$ /after{n - 1} last;" for n in range(1, turns + 1))
        more = f"""recursive_error_pages on;
        location /after {{ {rewrites} return 204; }}
        location = /cycle {{
            proxy_pass http://web;
            error_page 502 /cycle;
            post_action /after{turns};
        }}
        location /"""
        conf = (ONE % ("shop/web:http", "")).replace("location /", more)
        gateway = cluster.nginx(conf, workers=1)
        gateway.allow("redirection cycle")
        assert gateway.get("/cycle").status == 500
        (line,) = wait_until(gateway.access)
        assert "|/cycle|shop/web:http|no_endpoints|" in line

    def test_after_a_filter_refused_it(self, cluster, public_path):
        """Told also where a filter has sent another answer: nginx clears contexts then, too."""
        cluster.service("shop", "web")
        more = f"""proxy_cache_path {public_path}/cache keys_zone=one:1m;
    server {{
        proxy_cache one;
        proxy_cache_valid 1m;"""
        conf = (ONE % ("shop/web:http", "")).replace("server {", more)
        gateway = cluster.nginx(conf, workers=1)
        assert gateway.get("/some", headers={"If-Match": '"other"'}).status == 412
        (line,) = wait_until(gateway.access)
        assert "|/some|shop/web:http|" in line

    def test_log_line_is_limited(self, cluster):
        gateway = cluster.nginx(ONE % ("shop/none", ""), workers=1)
        began = time.monotonic()
        for _ in range(50):
            assert gateway.get().status == 502
        assert 1 <= len(gateway.grep_log(r"no_service")) <= 3 + time.monotonic() - began


class TestResolve:
    """kube_resolve."""

    CONF = """
    server {
        listen 127.0.0.1:PORT;
        location / {
            kube_resolve $pod $http_x_service namespaces=shop;
            proxy_pass http://$pod;
        }
        location /checked {
            kube_resolve $pod $http_x_service namespaces=shop;
            if ($pod = "") {
                return 502;
            }
            proxy_pass http://$pod;
        }
        location = /static {
            kube_resolve $where shop/web:http;
            add_header X-Where $where always;
            add_header X-Kube-Error $kube_error always;
            add_header X-Kube-Pod $kube_pod always;
            return 204;
        }
    }
"""

    def test_picks_an_endpoint(self, cluster):
        pods = cluster.service("shop", "web", 3)
        gateway = cluster.nginx(self.CONF)
        found = {by_service(gateway, "shop/web").backend for _ in range(60)}
        assert found == names(pods)
        where = {gateway.get("/static").headers["x-where"] for _ in range(60)}
        assert where == {p.address for p in pods}

    def test_empty_with_a_reason(self, cluster):
        cluster.service("shop", "web", pods=[])
        gateway = cluster.nginx(self.CONF)
        answer = gateway.get("/static")
        assert answer.status == 204
        assert answer.headers.get("x-where", "") == ""
        assert answer.headers["x-kube-error"] == "no_endpoints"
        gateway.allow(r"no host in upstream|invalid URL prefix")
        answer = by_service(gateway, "infra/web")
        assert answer.status == 500
        assert answer.headers["x-kube-error"] == "namespace_denied"

    def test_checked(self, cluster):
        """As docs/directives.md has it: 502, and one endpoint for both uses."""
        pods = cluster.service("shop", "web", 3)
        gateway = cluster.nginx(self.CONF)
        answers = [by_service(gateway, "shop/web", path="/checked") for _ in range(30)]
        assert {a.backend for a in answers} == names(pods)
        answer = by_service(gateway, "infra/web", path="/checked")
        assert (answer.status, answer.headers["x-kube-error"]) == (502, "namespace_denied")

    def test_follows(self, cluster):
        cluster.service("shop", "web", 1)
        gateway = cluster.nginx(self.CONF)
        more = cluster.pods(1, "new")
        gateway.status.wait_rv(cluster.slice("shop", "web", more))
        assert by_service(gateway, "shop/web").backend == "new-1"
        answer = gateway.get("/static")
        assert answer.headers["x-where"] == more[0].address


class TestRetry:
    """A retry looks at the newest endpoints."""

    def test_of_the_newest_endpoints(self, cluster):
        old = cluster.pods(1, "old", delay=600)
        new = cluster.pods(1, "new")
        cluster.service("shop", "web", pods=old)
        gateway = cluster.nginx(ONE % ("shop/web", ""), workers=1)
        made = []
        thread = threading.Thread(target=lambda: made.append(gateway.get("/r")))
        thread.start()
        wait_until(lambda: old[0].active == 1)
        gateway.status.wait_rv(cluster.slice("shop", "web", new))
        old[0].close()
        thread.join(2 * WAIT)
        assert made[0].backend == "new-1"
        assert made[0].headers["x-upstream-addr"] == f"{old[0].address}, {new[0].address}"

    def test_one_tried_is_not_tried_again(self, cluster):
        first = cluster.pods(2, "first", delay=600)
        cluster.service("shop", "web", pods=first[:1])
        gateway = cluster.nginx(ONE % ("shop/web", ""), workers=1)
        made = []
        thread = threading.Thread(target=lambda: made.append(gateway.get("/r")))
        thread.start()
        wait_until(lambda: first[0].active == 1)
        # The one that fails stays in the set, and a living one joins it.
        new = cluster.pods(1, "new", port=first[0].port)
        gateway.status.wait_rv(cluster.slice("shop", "web", [first[0], new[0]]))
        first[0].close()
        thread.join(2 * WAIT)
        assert made[0].backend == "new-1"
        assert made[0].headers["x-upstream-addr"] == f"{first[0].address}, {new[0].address}"

    def test_none_but_those_tried(self, cluster):
        """Newer endpoints, and all but those that have failed are in use."""
        pods = cluster.service("shop", "web", pods=cluster.pods(2, "old", delay=600))
        gateway = cluster.nginx(ONE % ("shop/web max_conns=1 max_fails=0", ""), workers=1)
        gateway.allow("no live upstreams")
        with contextlib.ExitStack() as stack:
            made = {}
            for _ in pods:
                one = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
                stack.callback(one.close)
                one.request("GET", "/r")
                wait_until(lambda: sum(p.active for p in pods) == len(made) + 1)
                made[next(p for p in pods if p.active and p not in made)] = one
            (new,) = cluster.pods(1, "new", port=pods[0].port)
            gateway.status.wait_rv(cluster.slice("shop", "web", [*pods, new]))
            new.close()
            pods[0].close()
            answer = made[pods[0]].getresponse()
            assert answer.status == 502
            assert answer.headers["x-upstream-addr"] == f"{pods[0].address}, {new.address}, web"
            # nor does it count as in use
            host, _, port = pods[0].address.rpartition(":")
            again = cluster.backends.add(host, int(port), "again")
            assert gateway.get().backend == again.name

    def test_dead_pods_are_skipped(self, cluster):
        pods = cluster.service("shop", "web", 4)
        gateway = cluster.nginx(ONE % ("shop/web", "keepalive 8;"))
        for pod in pods[:3]:
            pod.close()
        assert gateway.backends(20) == {pods[3].name: 20}

    def test_all_dead_ends(self, cluster):
        pods = cluster.service("shop", "web", 3)
        gateway = cluster.nginx(ONE % ("shop/web", ""), workers=1)
        for pod in pods:
            pod.close()
        answer = gateway.get()
        assert answer.status == 502
        tried = answer.headers["x-upstream-addr"].split(", ")
        assert sorted(tried) == sorted(p.address for p in pods)

    def test_tries_are_bounded(self, cluster):
        pods = cluster.service("shop", "web", 5)
        text = (ONE % ("shop/web", "")).replace(
            "proxy_pass", "proxy_next_upstream_tries 2; proxy_pass"
        )
        gateway = cluster.nginx(text, workers=1)
        for pod in pods:
            pod.close()
        answer = gateway.get()
        assert answer.status == 502
        assert len(answer.headers["x-upstream-addr"].split(", ")) == 2

    def test_off_is_off(self, cluster):
        pods = cluster.service("shop", "web", 3)
        text = (ONE % ("shop/web", "")).replace("proxy_pass", "proxy_next_upstream off; proxy_pass")
        gateway = cluster.nginx(text, workers=1)
        for pod in pods:
            pod.close()
        answer = gateway.get()
        assert answer.status == 502
        assert "," not in answer.headers["x-upstream-addr"]

    def test_post_is_not_repeated(self, cluster):
        old = cluster.pods(1, "old", delay=600)
        new = cluster.pods(1, "new")
        cluster.service("shop", "web", pods=old)
        gateway = cluster.nginx(ONE % ("shop/web", ""), workers=1)
        made = []
        thread = threading.Thread(
            target=lambda: made.append(gateway.get("/r", method="POST", body=b"x"))
        )
        thread.start()
        wait_until(lambda: old[0].active == 1)
        gateway.status.wait_rv(cluster.slice("shop", "web", new))
        old[0].close()
        thread.join(2 * WAIT)
        assert made[0].status == 502 and new[0].requests == 0


class TestWorkers:
    """Every worker sees every change."""

    def test_both_follow(self, cluster):
        cluster.service("shop", "web", 1)
        gateway = cluster.nginx(ONE % ("shop/web", "keepalive 4;"), workers=2)
        for n in range(10):
            new = cluster.pods(1, f"new{n}")
            rv = cluster.slice("shop", "web", new)
            gateway.status.wait_rv(rv)
            workers = gateway.workers()
            assert len(workers) == 2
            for worker in workers:
                with gateway.alone(worker):
                    for _ in range(3):
                        answer = gateway.get()
                        assert answer.backend == f"new{n}-1"
                        assert answer.headers["x-worker"] == str(worker)

    def test_no_failure_while_pods_roll(self, cluster):
        """Pods are taken out of the slice, drained, and closed, as a rollout does."""
        pods = cluster.service("shop", "web", 3)
        gateway = cluster.nginx(ONE % ("shop/web", "keepalive 8;"), workers=2)
        with gateway.load(threads=3) as load:
            for n in range(15):
                # each of them is there for some requests
                total = load.total
                wait_until(lambda total=total: load.total > total + 40)
                new = cluster.pods(1, f"roll{n}", port=pods[0].port)
                pods = pods[1:] + new
                gone = cluster.backends.all[n]
                gateway.status.wait_rv(cluster.slice("shop", "web", pods))
                gone.drain()
        assert load.failures == [] and load.total >= 500
        assert {"roll0-1", "roll10-1"} <= set(load.backends)

    def test_only_its_own_changes_rebuild_an_instance(self, cluster):
        cluster.service("shop", "web", 2)
        cluster.service("shop", "other", 1)
        gateway = cluster.nginx(ONE % ("shop/web", ""), workers=1)

        def rebuilds():
            assert gateway.get().status == 200
            return gateway.status.metrics().value("nginx_kube_instance_rebuilds_total")

        before = rebuilds()
        for n in range(5):
            gateway.status.wait_rv(cluster.slice("shop", "other", cluster.pods(1, f"o{n}")))
            assert rebuilds() == before
        gateway.status.wait_rv(cluster.slice("shop", "web", cluster.pods(2, "w")))
        assert rebuilds() == before + 1
        assert rebuilds() == before + 1


class TestVariables:
    """What the variables say."""

    def test_of_a_request(self, cluster):
        (pod,) = cluster.service("shop", "web", 1)
        gateway = cluster.nginx(ONE % ("web.shop.svc:http", ""))
        headers = gateway.get().headers
        assert headers["x-kube-service"] == "shop/web:http"
        assert headers["x-kube-pod"] == pod.name
        assert headers["x-kube-node"] == "node-1"
        assert headers["x-kube-zone"] == "zone-a"
        assert headers["x-kube-endpoint-state"] == "ready"
        assert headers["x-kube-error"] == ""
        assert int(headers["x-kube-generation"]) == gateway.status.generation("shop", "web")
        assert re.fullmatch(r"\d+\.\d{3}", headers["x-kube-age"])
        assert 0 <= float(headers["x-kube-age"]) < 120
        assert headers["x-kube-synced"] in ("1", "true")

    def test_generation_grows_with_changes_of_this_service(self, cluster):
        cluster.service("shop", "web", 1)
        cluster.service("shop", "other", 1)
        gateway = cluster.nginx(ONE % ("shop/web", ""))
        first = int(gateway.get().headers["x-kube-generation"])
        gateway.status.wait_rv(cluster.slice("shop", "other", cluster.pods(1)))
        assert int(gateway.get().headers["x-kube-generation"]) == first
        gateway.status.wait_rv(cluster.slice("shop", "web", cluster.pods(1)))
        assert int(gateway.get().headers["x-kube-generation"]) > first

    def test_pod_is_the_one_that_answered(self, cluster):
        cluster.service("shop", "web", 3)
        gateway = cluster.nginx(ONE % ("shop/web", ""))
        for _ in range(12):
            answer = gateway.get()
            assert answer.headers["x-kube-pod"] == answer.backend

    def test_pod_after_a_retry(self, cluster):
        pods = cluster.service("shop", "web", 2)
        gateway = cluster.nginx(ONE % ("shop/web max_fails=0", ""), workers=1)
        pods[0].close()
        for _ in range(4):
            assert gateway.get().headers["x-kube-pod"] == pods[1].name

    def test_without_an_upstream(self, cluster):
        gateway = cluster.nginx(
            "    server { listen 127.0.0.1:PORT; location / { return 200 '$kube_pod|"
            "$kube_service|$kube_error|$kube_generation|$kube_synced'; } }\n"
        )
        answer = gateway.get()
        assert answer.status == 200 and answer.text.startswith("|||")


class TestInformers:
    """Several blocks."""

    def test_two_clusters(self, cluster):
        mine = cluster.service("shop", "web", 1)
        with ApiServer() as second:
            other = cluster.pods(1, "other")
            second.put(objects.service("shop", "web", ports=(("http", 80, "http"),)))
            second.put(
                objects.slice(
                    "shop", "web-1", "web", [other[0].host], ports=(("http", other[0].port),)
                )
            )
            block = informer(cluster.api.url) + informer(
                second.url, name="east", zone="east 2m"
            )
            gateway = cluster.nginx(
                ONE % ("shop/web", "")
                + """
    upstream east { kube_service shop/web informer=east; }
    server { listen 127.0.0.1:%d; location / { proxy_pass http://east; } }
"""
                % (port := free_port()),
                block=block,
            )
            wait_until(lambda: gateway.status.informer("east")["synced"])
            assert gateway.backends(6) == {mine[0].name: 6}
            assert {request(port).backend for _ in range(6)} == {"other-1"}
            second.stop()
            assert request(port).backend == "other-1"

    def test_named_namespaces_watch_only_those(self, cluster):
        shop = cluster.service("shop", "web", 1)
        cluster.service("infra", "secret", 1)
        gateway = cluster.nginx(
            BY_HEADER % "", more="namespaces shop other;", sync=False
        )
        gateway.status.wait_synced()
        assert by_service(gateway, "shop/web").backend == shop[0].name
        assert by_service(gateway, "infra/secret").headers["x-kube-error"] == "namespace_denied"
        asked = {(r.verb, r.resource, r.ns) for r in cluster.api.requests}
        assert {ns for _, _, ns in asked} == {"shop", "other"}
        assert gateway.status.service("infra", "secret") is None

    def test_auto_watches_the_namespaces_of_static_keys(self, cluster):
        cluster.service("shop", "web", 1)
        gateway = cluster.nginx(
            ONE % ("shop/web", "") + "    upstream b { kube_service infra/echo; }\n"
        )
        assert gateway.get().status == 200
        assert {r.ns for r in cluster.api.requests} == {"shop", "infra"}

    def test_label_selector(self, cluster):
        cluster.service("shop", "web", 1, labels={"tier": "front"})
        cluster.service("shop", "api", 1, labels={"tier": "back"})
        gateway = cluster.nginx(
            BY_HEADER % "namespaces=shop", more="label_selector services tier=front;"
        )
        assert by_service(gateway, "shop/web").status == 200
        assert by_service(gateway, "shop/api").headers["x-kube-error"] == "no_service"
        asked = {r.query.get("labelSelector") for r in cluster.api.find(resource="services")}
        assert asked == {"tier=front"}
