# unsynced_wait: a request that comes before the first list waits for it, a
# bounded time, and at no one else's cost.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Requests before the first list."""

import concurrent.futures
import select
import signal
import socket
import threading
import time

import objects
import pytest
from cluster import informer
from nginx import WAIT, full_conf, nginx_t, wait_until

CONF = """
    upstream web { kube_service shop/web:http unsynced_wait=%s; keepalive 8; }
    upstream mapped { kube_service $http_x namespaces=shop unsynced_wait=%s; }
    upstream other { server 127.0.0.1:PORT; }
    server {
        listen 127.0.0.1:PORT;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        location / { proxy_pass http://web; }
        location /if { if ($http_y) { proxy_pass http://web; } }
        location /mapped { proxy_pass http://mapped; }
        location /static { return 200 static; }
        location /other { proxy_pass http://other/static; }
        location /resolve { kube_resolve $one shop/web:http; return 200 "[$one]"; }
        location /sub { auth_request /resolve; proxy_pass http://other/static; }
        location /auth { auth_request /; proxy_pass http://other/static; }
    }
"""

LONG = "60s"


def unsynced(cluster, wait=LONG, **more):
    """A gateway whose API server answers no list."""
    cluster.service("shop", "web")
    cluster.api.fault(verb="list", status=503, times=None)
    return cluster.nginx(CONF % (wait, wait), sync=False, **more)


@pytest.fixture
def pool():
    """Threads for requests that wait."""
    with concurrent.futures.ThreadPoolExecutor(8) as made:
        yield made


def held(cluster, *waiting):
    """The informer has failed twice more, and nothing was answered."""
    count = cluster.api.count(verb="list")
    cluster.api.wait(lambda: cluster.api.count(verb="list") >= count + 3)
    assert not any(w.done() for w in waiting)


def test_waits_for_the_first_list(cluster, pool):
    gateway = unsynced(cluster)
    waiting = [
        pool.submit(gateway.get),
        pool.submit(gateway.get, "/", method="POST", body=b"x" * 100000),
        pool.submit(gateway.get, "/mapped", headers={"X": "shop/web:http"}),
        pool.submit(gateway.get, "/if", headers={"Y": "1"}),
    ]
    held(cluster, *waiting)
    cluster.api.clear_faults()
    assert [w.result().status for w in waiting] == [200] * 4
    assert gateway.get().status == 200


def test_nothing_else_waits(cluster):
    """Beside requests that would wait for a minute."""
    gateway = unsynced(cluster)
    assert gateway.get("/static").text == "static"
    assert gateway.get("/other").text == "static"
    assert gateway.get("/if").status == 404
    assert gateway.get("/resolve").text == "[]"
    assert gateway.get("/sub").text == "static"
    # a subrequest does not wait: its 502 ends the request as 500
    assert gateway.get("/auth").status == 500


def test_gives_up_in_time(cluster):
    gateway = unsynced(cluster, "50ms")
    answer = gateway.get()
    assert (answer.status, answer.headers["x-kube-error"]) == (502, "not_synced")


def test_giving_up_costs_the_next_nothing(cluster):
    """Who gave up has left one place: who comes then is held as long."""
    gateway = unsynced(cluster, "200ms", workers=1)
    for _ in range(3):
        begun = time.monotonic()
        assert gateway.get().status == 502
        assert time.monotonic() - begun > 0.15


@pytest.mark.parametrize("wait", ["0", "0s"])
def test_off(cluster, wait):
    gateway = unsynced(cluster, wait)
    answer = gateway.get()
    assert (answer.status, answer.headers["x-kube-error"]) == (502, "not_synced")


def test_forbidden_is_an_answer(cluster):
    """There will be no list to wait for."""
    cluster.service("shop", "web")
    cluster.api.fault(verb="list", status=403, reason="Forbidden", times=None)
    gateway = cluster.nginx(CONF % (LONG, LONG), sync=False)
    answer = gateway.get()
    assert (answer.status, answer.headers["x-kube-error"]) == (502, "forbidden")


def test_once_synced_an_outage_costs_no_wait(cluster):
    """Nor does a Service that is missing."""
    cluster.service("shop", "web")
    gateway = cluster.nginx(CONF % (LONG, LONG))
    assert gateway.get().status == 200
    cluster.api.refuse()
    answer = gateway.get("/mapped", headers={"X": "shop/none:http"})
    assert (answer.status, answer.headers["x-kube-error"]) == (502, "no_service")
    cluster.api.listen()


def test_a_worker_holds_so_many(cluster):
    """512; who comes then has the answer at once, and a place comes back."""
    gateway = unsynced(cluster, workers=1, connections=2048)
    line = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    poll, socks = select.poll(), {}

    def send(count):
        for _ in range(count):
            sock = socket.create_connection(("127.0.0.1", gateway.port), timeout=WAIT)
            sock.sendall(line)
            socks[sock.fileno()] = sock
            poll.register(sock, select.POLLIN)

    def answered(count):
        """The status of so many answers."""
        found = []
        while len(found) < count:
            ready = poll.poll(60000)
            assert ready, f"{len(found)} of {count} answers came"
            for number, _ in ready:
                poll.unregister(number)
                with socks.pop(number) as sock:
                    found.append(sock.recv(12).split()[1])
        return found

    send(520)
    assert answered(8) == [b"502"] * 8
    for number in list(socks)[:3]:
        poll.unregister(number)
        socks.pop(number).close()
    # the worker has seen that they are gone once it holds three others
    gateway.wait_status_code(200, "/static")
    send(3)
    cluster.api.clear_faults()
    assert answered(512) == [b"200"] * 512


def test_who_gave_up_keeps_no_place(cluster):
    """Not while its request goes on elsewhere, however many such there are."""
    conf = CONF.replace("location / {", "location / { error_page 502 = @slow;", 1)
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as silent:
        host, port = silent.getsockname()
        conf = conf.rstrip()[:-1] + f"location @slow {{ proxy_pass http://{host}:{port}; }} }}\n"
        cluster.service("shop", "web")
        cluster.api.fault(verb="list", status=503, times=None)
        gateway = cluster.nginx(
            conf % ("200ms", "200ms"), sync=False, workers=1, connections=4096
        )
        socks, poll = [], select.poll()
        poll.register(silent, select.POLLIN)
        try:
            for _ in range(512):
                sock = socket.create_connection(("127.0.0.1", gateway.port), timeout=WAIT)
                sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                socks.append(sock)
            for _ in range(512):
                assert poll.poll(60000)
                socks.append(silent.accept()[0])
            # all of them have given up: who comes now is held as long as they were
            begun = time.monotonic()
            answer = gateway.get("/mapped", headers={"X": "shop/web:http"})
            assert answer.status == 502
            assert time.monotonic() - begun > 0.15
        finally:
            for sock in socks:
                sock.close()


def test_tunnel(cluster):
    """CONNECT, which nginx passes on from 1.31 on, waits as a request does."""
    inside = "location / { tunnel_pass web; }"
    text = CONF.replace("location / { proxy_pass http://web; }", inside)
    servers = "upstream web { server 127.0.0.1:1; }\nserver { listen 127.0.0.1:1; %s }\n"
    if nginx_t(full_conf(servers % inside))[0] != 0:
        pytest.skip("this nginx has no tunnel_pass")
    cluster.service("shop", "web")
    cluster.api.fault(verb="list", status=503, times=None)
    gateway = cluster.nginx(text % (LONG, LONG), sync=False)
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=WAIT) as sock:
        sock.sendall(b"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n")
        held(cluster)
        assert select.select([sock], [], [], 0)[0] == []
        cluster.api.clear_faults()
        answer = sock.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200 "), answer
        sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_until(lambda: b"X-Backend: shop.web-1" in sock.recv(65536))


def test_client_goes_while_held(cluster, pool):
    gateway = unsynced(cluster, workers=1)
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", gateway.port)) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    waiting = pool.submit(gateway.get)
    held(cluster, waiting)
    cluster.api.clear_faults()
    assert waiting.result().status == 200


def another(gateway, how):
    """Another informer process goes on."""
    if how == "reload":
        gateway.reload()
    else:
        gateway.allow("exited on signal 9")
        gateway.kill(signal.SIGKILL, gateway.informer())


@pytest.mark.parametrize("how", ["reload", "killed"])
def test_another_informer_before_the_first_list(cluster, pool, how):
    """Its requests wait on, and so do those that come then, whatever their key is."""
    gateway = unsynced(cluster, workers=1)
    asked = [("/", None), ("/mapped", {"X": "shop/web:http"})]
    waiting = [pool.submit(gateway.get, path, headers=key) for path, key in asked]
    held(cluster, *waiting)
    another(gateway, how)
    held(cluster, *waiting)
    waiting += [pool.submit(gateway.get, path, headers=key) for path, key in asked]
    held(cluster, *waiting)
    cluster.api.clear_faults()
    assert [w.result().status for w in waiting] == [200] * 4


@pytest.mark.parametrize("how", ["reload", "killed"])
def test_another_informer_amid_the_first_lists(cluster, pool, how):
    """A key waits for a namespace that it may name, whichever others are there."""
    for name in ("shop", "infra", "more"):
        cluster.service(name, "web")
    cluster.api.fault(verb="list", resource="services", ns="infra", status=503, times=None)
    cluster.api.fault(verb="list", resource="endpointslices", ns="shop", status=503, times=None)
    gateway = cluster.nginx(CONF % (LONG, LONG), more="namespaces shop infra more;", sync=False)
    waiting = [pool.submit(gateway.get, "/mapped", headers={"X": "shop/web:http"})]
    held(cluster, *waiting)
    for resource, ns in (("services", "shop"), ("endpointslices", "infra")):
        gateway.status.wait_state("watching", resource, ns)
    another(gateway, how)
    held(cluster, *waiting)
    waiting += [pool.submit(gateway.get, "/mapped", headers={"X": "shop/web:http"})]
    held(cluster, *waiting)
    cluster.api.clear_faults()
    assert [w.result().status for w in waiting] == [200] * 2


def part_comes(gateway, begin):
    """The first slice is in the zone, and its Service is not."""
    empty = gateway.status.informer()["zone"]["used"]
    begin.set()
    wait_until(lambda: gateway.status.informer()["zone"]["used"] > empty)


def part_is_held(cluster, gateway, *waiting):
    """These wait, and so does who comes now, until the list is made anew."""
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=WAIT) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        # one that came after them was answered
        gateway.wait_status_code(200, "/static")
        assert select.select([sock], [], [], 0)[0] == []
        assert not any(w.done() for w in waiting)
        cluster.api.clear_faults()
        cluster.api.refuse()
        cluster.api.listen()
        assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert [w.result().status for w in waiting] == [200] * len(waiting)


@pytest.mark.parametrize("how", ["reload", "killed"])
@pytest.mark.parametrize("first", ["unready", "denied", "elsewhere"])
def test_another_informer_amid_the_slices_of_a_service(cluster, pool, how, first):
    """A part of a Service serves nobody whose key is static, either."""
    host = "10.0.0.9" if first == "denied" else "127.0.0.9"
    cluster.service("shop", "web", pods=[objects.endpoint(host, ready=first != "unready")])
    cluster.slice("shop", "web", cluster.pods(1, "good"), "2")
    begin = threading.Event()
    cut = dict(streamed=True, cut="stall")
    cluster.api.fault(resource="services", at_events=0, **cut)
    slices = dict(resource="endpointslices", at_events=1, gate=begin, times=2)
    cluster.api.fault(**slices, **cut)
    gateway = cluster.nginx(CONF % (LONG, LONG), more="watch_list on;", workers=1, sync=False)
    for resource in ("services", "endpointslices"):
        gateway.status.wait_state("streaming", resource)

    part_comes(gateway, begin)
    another(gateway, how)
    wait_until(lambda: (gateway.status.service("shop", "web") or {}).get("endpoints"))
    mapped = pool.submit(gateway.get, "/mapped", headers={"X": "shop/web:http"})
    part_is_held(cluster, gateway, pool.submit(gateway.get), mapped)


@pytest.mark.parametrize("how", ["reload", "killed"])
def test_another_informer_amid_the_slices_of_an_added_namespace(cluster, pool, how):
    """Nor does one of a namespace that a reload added, beside those that were listed."""
    cluster.service("shop", "web")
    cluster.service("infra", "web", pods=[objects.endpoint("127.0.0.9")])
    cluster.slice("infra", "web", cluster.pods(1, "good"), "2")
    gateway = cluster.nginx(CONF % (LONG, LONG), more="namespaces shop; watch_list on;", workers=1)
    begin = threading.Event()
    cut = dict(streamed=True, cut="stall", ns="infra")
    cluster.api.fault(resource="services", at_events=0, **cut)
    cluster.api.fault(resource="endpointslices", at_events=1, gate=begin, times=None, **cut)
    conf = gateway.http.replace("kube_service shop/web", "kube_service infra/web")
    gateway.change(http=conf, more="namespaces shop infra; watch_list on;", gone=True)
    for resource in ("services", "endpointslices"):
        gateway.status.wait_state("streaming", resource, "infra")
    part_comes(gateway, begin)
    another(gateway, how)
    wait_until(lambda: (gateway.status.service("infra", "web") or {}).get("endpoints"))
    part_is_held(cluster, gateway, pool.submit(gateway.get))


def certain(gateway, pool, errors):
    """Each upstream is answered, and at once; errors: of each path."""
    answers = [pool.submit(gateway.get, path) for path in errors]
    wait_until(lambda: all(a.done() for a in answers))
    assert [a.result().headers["x-kube-error"] for a in answers] == list(errors.values())


def certain_conf():
    """Upstreams of which the Service alone says that nothing can be used."""
    keys = {
        "none": "shop/none:http",
        "ext": "shop/ext:http",
        "port": "shop/web:none",
        "many": "shop/many",
    }
    upstreams = "".join(
        f"    upstream {name} {{ kube_service {key} unsynced_wait=600s; }}\n"
        for name, key in keys.items()
    )
    places = "".join(f"location /{name} {{ proxy_pass http://{name}; }}\n" for name in keys)
    return upstreams + (CONF % ("600s", "600s")).replace("location /if", places + "location /if")


CERTAIN = {
    "/none": "no_service",
    "/ext": "external_name",
    "/port": "no_port",
    "/many": "port_needed",
}


def certain_services(cluster):
    """The Services of these."""
    outside = dict(type="ExternalName", external_name="a.example")
    cluster.api.put(objects.service("shop", "ext", **outside))
    cluster.api.put(objects.service("shop", "many", ports=(("a", 1), ("b", 2))))
    cluster.api.put(objects.service("shop", "web"))


@pytest.mark.parametrize("how", ["reload", "killed"])
def test_what_the_service_says_amid_the_slices(cluster, pool, how):
    """It needs no slice, and so costs no wait for them once another informer goes on."""
    certain_services(cluster)
    cluster.api.fault(verb="list", resource="endpointslices", status=503, times=None)
    gateway = cluster.nginx(certain_conf(), more="namespaces shop;", sync=False, workers=1)
    gateway.status.wait_state("watching", "services", "shop")
    another(gateway, how)
    wait_until(lambda: gateway.status.informer()["writer"]["takeovers"] == 1)
    certain(gateway, pool, CERTAIN)


def test_what_the_service_says_after_a_change_of_slices(cluster, pool):
    """Nor in an outage in which slices are listed anew, in a namespace without any."""
    certain_services(cluster)
    gateway = cluster.nginx(certain_conf(), more="namespaces shop;")
    cluster.api.fault(verb="list", resource="endpointslices", status=503, times=None)
    gateway.change(more="namespaces shop; label_selector endpointslices a!=b;", gone=True)
    gateway.status.wait_state("backoff", "endpointslices", "shop")
    certain(gateway, pool, CERTAIN)


@pytest.mark.parametrize("how", ["reload", "killed"])
def test_forbidden_services_amid_the_slices(cluster, pool, how):
    """There will be no Services, whatever comes of the slices."""
    cluster.service("shop", "web")
    cluster.api.fault(
        verb="list", resource="services", status=403, reason="Forbidden", times=None
    )
    cluster.api.fault(verb="list", resource="endpointslices", status=503, times=None)
    conf = CONF % ("600s", "600s")
    gateway = cluster.nginx(conf, more="namespaces shop;", sync=False, workers=1)
    for resource in ("services", "endpointslices"):
        gateway.status.wait_state("backoff", resource, "shop")
    another(gateway, how)
    wait_until(lambda: gateway.status.informer()["writer"]["takeovers"] == 1)
    certain(gateway, pool, {"/": "forbidden"})


def test_a_large_service_serves_while_another_resource_is_listed(cluster):
    """As a small one does, though a look at the zone has no room for all of it."""
    cluster.service("shop", "web")
    for number in range(24):
        host = f"127.{50 + number}"
        unready = [
            objects.endpoint(f"{host}.{i // 250}.{i % 250 + 1}", pod="x" * 50 + f"{i}", ready=False)
            for i in range(1000)
        ]
        cluster.slice("shop", "web", unready, f"more{number}")
    # longer than anything here waits
    conf = CONF % ("600s", "600s")
    block = informer(cluster.api.url, "namespaces shop;", zone="kube 64m")
    gateway = cluster.nginx(conf, block=block)
    cluster.api.fault(verb="list", status=503, times=None)
    block = block.replace("namespaces shop;", "namespaces shop; endpoints endpoints;")
    gateway.change(block=block, gone=True)
    gateway.status.wait_state("backoff", "endpoints", "shop")
    for path in ("/", "/mapped"):
        assert gateway.get(path, headers={"X": "shop/web:http"}).status == 200


@pytest.mark.parametrize(
    "changes",
    [
        ["namespaces shop; endpoints endpoints;", "endpoints endpoints;"],
        ["endpoints endpoints;"],
        ["namespaces shop; label_selector endpointslices a!=b;", "endpoints endpoints;"],
    ],
)
def test_who_serves_waits_for_no_list_after_changes(cluster, changes):
    """Nor after one more before any list was made: the same slices serve."""
    cluster.service("shop", "web")
    gateway = cluster.nginx(CONF % ("600s", "600s"), more="namespaces shop;")
    cluster.api.fault(verb="list", status=503, times=None)
    for number, more in enumerate(changes, 1):
        gateway.change(more=more, gone=True)
        wait_until(lambda n=number: gateway.status.informer()["writer"]["takeovers"] == n)
    for path in ("/", "/mapped"):
        answer = gateway.get(path, headers={"X": "shop/web:http"})
        assert answer.status == 200
        assert answer.headers["x-kube-age"] != ""


@pytest.mark.parametrize("how", ["reload", "killed"])
def test_all_namespaces_of_a_key_amid_the_first_lists(cluster, pool, how):
    """Each is waited for until the first lists are over; what comes later is not."""
    for name in ("shop", "infra"):
        cluster.service(name, "web")
    cluster.api.fault(verb="list", ns="infra", status=503, times=None)
    cluster.api.fault(verb="list", ns="more", status=403, times=None)
    may = "namespaces=shop,infra,more"
    # longer than anything here waits
    conf = (CONF % ("600s", "600s")).replace("namespaces=shop", may)
    gateway = cluster.nginx(conf, more="namespaces shop infra more;", sync=False)
    for resource in ("services", "endpointslices"):
        gateway.status.wait_state("watching", resource, "shop")
        gateway.status.wait_state("backoff", resource, "more")
    key = {"X": "infra/web:http"}
    waiting = [pool.submit(gateway.get, "/mapped", headers=key)]
    held(cluster, *waiting)
    another(gateway, how)
    held(cluster, *waiting)
    waiting += [pool.submit(gateway.get, "/mapped", headers=key)]
    held(cluster, *waiting)
    cluster.api.clear_faults()
    cluster.api.fault(verb="list", ns="more", status=403, times=None)
    assert [w.result().status for w in waiting] == [200] * 2
    cluster.api.fault(verb="list", ns="late", status=503, times=None)
    conf = gateway.http.replace(may, may + ",late")
    gateway.change(http=conf, more="namespaces shop infra more late;", gone=True)
    gateway.status.wait_state("backoff", "services", "late")
    another(gateway, how)
    answer = pool.submit(gateway.get, "/mapped", headers=key)
    wait_until(answer.done)
    assert answer.result().status == 200


def test_what_others_await_costs_no_wait(cluster, pool):
    """A namespace that is never listed, and that the key may not name."""
    cluster.service("shop", "web")
    cluster.api.fault(verb="list", ns="infra", status=503, times=None)
    conf = CONF % ("600s", "600s")
    gateway = cluster.nginx(conf, more="namespaces shop infra;", sync=False)
    for resource in ("services", "endpointslices"):
        gateway.status.wait_state("watching", resource, "shop")
    cluster.api.fault(verb="list", status=503, times=None)
    scope = "namespaces shop infra; label_selector services a!=b;"
    gateway.change(more=scope, gone=True)
    gateway.status.wait_state("backoff", "services", "shop")
    answer = pool.submit(gateway.get, "/mapped", headers={"X": "shop/web:http"})
    wait_until(answer.done)
    assert answer.result().status == 200


def test_what_was_there_serves_while_a_changed_scope_is_listed(cluster):
    """A key whose Service is not there yet waits, no other does."""
    cluster.service("shop", "web")
    cluster.service("infra", "new")
    new = "    upstream new { kube_service infra/new:http unsynced_wait=60s; }\n"
    gateway = cluster.nginx(CONF % (LONG, LONG), more="namespaces shop;")
    assert gateway.get().status == 200
    cluster.api.fault(verb="list", status=503, times=None)
    more = "location /new { proxy_pass http://new; }\n        location /if"
    text = new + gateway.http.replace("location /if", more)
    scope = "namespaces shop infra; label_selector services a!=b;"
    gateway.change(http=text, more=scope, gone=True)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(gateway.get, "/new")
        held(cluster, waiting)
        for path, key in (("/", ""), ("/mapped", "shop/web:http")):
            assert gateway.get(path, headers={"X": key}).status == 200
        assert not waiting.done()
        cluster.api.clear_faults()
        assert waiting.result().status == 200


def test_what_was_there_serves_until_the_predecessor_leaves(cluster, pool):
    """A key that a reload lets name another namespace does not wait for the next informer."""
    cluster.service("shop", "web")
    cluster.service("infra", "web")
    # longer than anything here waits
    gateway = cluster.nginx(CONF % ("600s", "600s"), more="namespaces shop;")
    old = gateway.informer()
    gateway.kill(signal.SIGSTOP, old)
    try:
        text = gateway.http.replace("namespaces=shop", "namespaces=shop,infra")
        gateway.change(http=text, more="namespaces shop infra;")
        answer = pool.submit(gateway.get, "/mapped", headers={"X": "shop/web:http"})
        wait_until(answer.done)
        assert answer.result().status == 200
        assert gateway.status.informer()["writer"]["takeovers"] == 0
    finally:
        gateway.kill(signal.SIGCONT, old)


def test_reload_that_adds_an_informer(cluster):
    """No request fails between the new workers' start and the first list."""
    cluster.service("shop", "web")
    plain = "    server { listen 127.0.0.1:PORT; location / { return 200 plain; } }\n"
    gateway = cluster.nginx(CONF % (LONG, LONG))
    made = gateway.made()
    gateway.reload(full_conf(plain.replace("PORT", str(gateway.port))), gone=True)
    cluster.api.fault(verb="list", delay=0.2, times=None)
    with gateway.load() as load:
        wait_until(lambda: load.total > 20)
        gateway.reload(made, gone=True)
        total = load.total
        wait_until(lambda: load.total > total + 50)
    assert load.failures == []
