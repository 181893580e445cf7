# http: what outlives what.  A request may be proxied several times, retried on
# newer endpoints, or have subrequests, while Services change under it.
#
# Worth most in a build with the address sanitizer (BUILD=asan).
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Requests and the endpoints they were sent to, in time."""

import contextlib
import itertools
import signal
import socket
import threading
import time

import objects
import pytest
from nginx import NGINX, WAIT, configured, free_port, wait_until

REDIRECTED = """
    upstream web { kube_service shop/web; keepalive 4; }
    upstream api { kube_service shop/api; }
    upstream named { kube_service $key namespaces=shop; }
    server {
        listen 127.0.0.1:PORT;
        proxy_http_version 1.1;
        proxy_set_header Connection "";

        location / { proxy_pass http://web; }

        location /error {
            proxy_intercept_errors on;
            error_page 502 504 = @other;
            proxy_pass http://web;
        }
        location @other { proxy_pass http://api; }

        location /again {
            proxy_intercept_errors on;
            recursive_error_pages on;
            error_page 503 = /error;
            set $key shop/named;
            proxy_pass http://named;
        }

        location /mirrored {
            mirror /copy;
            auth_request /auth;
            proxy_pass http://web;
        }
        location = /copy { internal; proxy_pass http://api; }
        location = /auth { internal; set $key shop/named; proxy_pass http://named; }

        location /both {
            kube_resolve $target shop/api;
            add_header X-Target $target always;
            add_header X-Kube-Service $kube_service always;
            add_header X-Kube-Pod $kube_pod always;
            proxy_pass http://web;
        }
    }
"""


class Peer:
    """
    A server that answers the first request of its first connection, and cuts
    that connection when told to, in the middle of the second.
    """

    def __init__(self, host):
        self.host, self.port = host, free_port([host])
        self.reached, self.cut = threading.Event(), threading.Event()
        self.accepted = 0
        self.sock = socket.create_server((host, self.port))
        self.sock.settimeout(WAIT)
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_exc):
        self.cut.set()
        self.thread.join(2 * WAIT)
        self.sock.close()

    @staticmethod
    def _read(connection):
        data = b""
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more:
                return False
            data += more
        return True

    @staticmethod
    def _answer(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    def _run(self):
        first, _ = self.sock.accept()
        self.accepted += 1
        with first:
            first.settimeout(WAIT)
            if self._read(first):
                self._answer(first)
            if self._read(first):
                self.reached.set()
                self.cut.wait(WAIT)
        try:
            second, _ = self.sock.accept()
        except TimeoutError:
            return
        self.accepted += 1
        with second:
            second.settimeout(WAIT)
            if self._read(second):
                self._answer(second)


class Forgetful:
    """
    A server that answers once on each connection, the first ones when so many
    are there, and cuts a connection that is used again.
    """

    def __init__(self, host, count):
        self.host, self.port = host, free_port([host])
        self.met = threading.Barrier(count)
        self.count = count
        self.sock = socket.create_server((host, self.port))
        self.threads, self.connections = [], []

    def __enter__(self):
        self.threads = [threading.Thread(target=self._accept)]
        self.threads[0].start()
        return self

    def __exit__(self, *_exc):
        self.met.abort()
        for sock in (self.sock, *self.connections):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(2 * WAIT)
        self.sock.close()

    def _accept(self):
        for n in itertools.count():
            try:
                connection, _ = self.sock.accept()
            except OSError:
                return
            self.connections.append(connection)
            self.threads.append(threading.Thread(target=self._serve, args=(connection, n)))
            self.threads[-1].start()

    def _serve(self, connection, number):
        with connection:
            connection.settimeout(WAIT)
            try:
                connection.recv(65536)
                if number < self.count:
                    self.met.wait(WAIT)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                connection.recv(65536)
            except (OSError, threading.BrokenBarrierError):
                pass


def in_background(function):
    """Calls it in a thread; returns the thread and the list it fills."""
    made = []
    thread = threading.Thread(target=lambda: made.append(function()))
    thread.start()
    return thread, made


class TestRedirect:
    """One request, several upstreams."""

    def test_error_page_to_a_named_location(self, cluster):
        dead = cluster.service("shop", "web", 1)
        alive = cluster.service("shop", "api", 1)
        gateway = cluster.nginx(REDIRECTED, workers=1)
        dead[0].close()
        answer = gateway.get("/error")
        assert answer.backend == alive[0].name
        assert answer.headers["x-kube-service"] == "shop/api:http"
        assert answer.headers["x-upstream-addr"] == f"{dead[0].address} : {alive[0].address}"

    def test_to_the_same_upstream(self, cluster):
        """Who was tried is tried again where the request begins anew."""
        (pod,) = cluster.service("shop", "web", 1)
        gateway = cluster.nginx(
            """
    upstream web { kube_service shop/web; }
    server {
        listen 127.0.0.1:PORT;
        location / {
            error_page 502 = @again;
            proxy_pass http://web;
        }
        location @again { proxy_pass http://web; }
    }
""",
            workers=1,
        )
        pod.close()
        answer = gateway.get()
        assert answer.status == 502
        assert answer.headers["x-upstream-addr"] == f"{pod.address} : {pod.address}"

    def test_addresses_tried_stay_readable(self, cluster):
        """Three upstreams, one retried on newer endpoints, all replaced since."""
        first = cluster.service("shop", "named", pods=cluster.pods(1, "first", status=503))
        old, new = cluster.pods(1, "old", delay=60), cluster.pods(1, "new", delay=60)
        last = cluster.service("shop", "api", 1)
        cluster.service("shop", "web", pods=old)
        gateway = cluster.nginx(REDIRECTED, workers=1)
        thread, made = in_background(lambda: gateway.get("/again"))
        wait_until(lambda: old[0].active == 1)

        # Others use what is new, so that nothing else holds what was there.
        spare = cluster.pods(1, "spare")
        cluster.slice("shop", "named", spare)
        gateway.status.wait_rv(cluster.slice("shop", "web", new))
        assert gateway.get("/again").backend == "spare-1"
        old[0].close()
        wait_until(lambda: new[0].active == 1)
        gateway.status.wait_rv(cluster.slice("shop", "web", spare))
        assert gateway.get("/").backend == "spare-1"
        gateway.status.wait_rv(cluster.slice("shop", "web", []))
        assert gateway.get("/").headers["x-kube-error"] == "no_endpoints"
        new[0].close()

        thread.join(2 * WAIT)
        assert made[0].backend == last[0].name
        expected = f"{first[0].address} : {old[0].address}, {new[0].address} : {last[0].address}"
        assert made[0].headers["x-upstream-addr"] == expected
        wait_until(lambda: any(expected in line for line in gateway.access()))

    def test_subrequests(self, cluster):
        for name in ("web", "api", "named"):
            cluster.service("shop", name, 2)
        gateway = cluster.nginx(REDIRECTED, workers=1)
        with gateway.load("/mirrored") as load:
            for _ in range(10):
                for name in ("web", "api", "named"):
                    last = cluster.slice("shop", name, cluster.pods(2, name))
                gateway.status.wait_rv(last)
        assert load.total > 0 and not load.failures, load.failures[:5]

    def test_resolve_beside_a_balancer(self, cluster):
        web = cluster.service("shop", "web", 1)
        api = cluster.service("shop", "api", 1)
        gateway = cluster.nginx(REDIRECTED, workers=1)
        answer = gateway.get("/both")
        assert answer.backend == web[0].name
        assert answer.headers["x-target"] == api[0].address
        assert answer.headers["x-kube-service"] == "shop/web:http"
        assert answer.headers["x-kube-pod"] == web[0].name


TOLD = """
    upstream fixed  { kube_service shop/web; }
    upstream any    { kube_service $arg_key namespaces=shop; least_conn; }
    upstream hashed { kube_service shop/web; hash $request_uri consistent; }
    server {
        listen 127.0.0.1:PORT;
        proxy_next_upstream off;
        kube_resolve $target shop/web;
        add_header X-Kube-Service $kube_service always;
        add_header X-Kube-Generation $kube_generation always;
        add_header X-Kube-Pod $kube_pod always;
        add_header X-Kube-Node $kube_node always;
        add_header X-Upstream-Addr $upstream_addr always;
        location /fixed   { proxy_pass http://fixed; }
        location /any     { proxy_pass http://any; }
        location /hashed  { proxy_pass http://hashed; }
        location /resolve { proxy_pass http://$target; }
    }
"""


@pytest.mark.parametrize("path", ["/fixed", "/any?key=shop/web", "/hashed", "/resolve"])
class TestTold:
    """What variables tell of an endpoint that is gone since."""

    NAMES = ("x-kube-service", "x-kube-generation", "x-kube-pod", "x-kube-node", "x-upstream-addr")

    def told(self, answer):
        return {name: answer.headers.get(name) for name in self.NAMES}

    def test_as_when_it_was_picked(self, cluster, path):
        old, new = cluster.pods(1, "old", delay=60), cluster.pods(1, "new")
        cluster.service("shop", "web", pods=old)
        gateway = cluster.nginx(TOLD, workers=1)
        waiting = [in_background(lambda: gateway.get(path)) for _ in range(2)]
        wait_until(lambda: old[0].active == 2)

        # the first request to what is new ends the view of what was there
        gateway.status.wait_rv(cluster.slice("shop", "web", new))
        later = gateway.get(path)
        assert later.backend == new[0].name

        old[0].close()
        for thread, made in waiting:
            thread.join(2 * WAIT)
            told = self.told(made[0])
            assert told["x-upstream-addr"] == old[0].address
            assert told["x-kube-pod"] == old[0].name
            assert told["x-kube-service"].startswith("shop/web")
            assert told["x-kube-node"] == self.told(later)["x-kube-node"] != ""
            assert int(told["x-kube-generation"]) < int(later.headers["x-kube-generation"])


class TestDebugLevel:
    """nginx built --with-debug reads more of events and peers than it uses."""

    def test_all_paths(self, cluster):
        for name in ("web", "api", "named"):
            cluster.service("shop", name, 2)
        gateway = cluster.nginx(REDIRECTED, workers=1, level="debug")
        for _ in range(2):
            for path in ("/", "/error", "/again", "/mirrored", "/both"):
                assert gateway.get(path).status == 200
            gateway.status.wait_rv(cluster.slice("shop", "web", cluster.pods(3, "new")))
        gateway.reload()
        assert gateway.get().status == 200
        assert gateway.grep_log(r"\[debug\]") or "--with-debug" not in configured(NGINX)


class TestStaleConnection:
    """An idle connection that was closed says nothing about its peer."""

    def test_the_peer_is_tried_again(self, cluster):
        with Peer(cluster.address()) as peer:

            def put(zone):
                made = objects.endpoint(peer.host, pod="only", node="n", zone=zone, ns="shop")
                return cluster.slice("shop", "web", [made], ports=(("http", peer.port),))

            cluster.service("shop", "web", pods=[])
            put("one")
            gateway = cluster.nginx(REDIRECTED, workers=1)
            assert gateway.get().status == 200
            thread, made = in_background(gateway.get)
            assert peer.reached.wait(WAIT)

            # the same address, but another set of peers
            gateway.status.wait_rv(put("two"))
            peer.cut.set()
            thread.join(2 * WAIT)
            address = f"{peer.host}:{peer.port}"
            assert made[0].status == 200
            assert made[0].headers["x-upstream-addr"] == f"{address}, {address}"
            assert made[0].headers["x-kube-zone"] == "two"
            assert peer.accepted == 2

    def test_however_many_there_are(self, cluster):
        """A pod that was restarted: none of its idle connections is an attempt."""
        count = 6
        with Forgetful(cluster.address(), count) as peer:
            cluster.service("shop", "web", pods=[])
            made = [objects.endpoint(peer.host, pod="only", ns="shop")]
            cluster.slice("shop", "web", made, ports=(("http", peer.port),))
            text = REDIRECTED.replace("keepalive 4", f"keepalive {count}")
            gateway = cluster.nginx(text, workers=1)
            threads = [in_background(gateway.get) for _ in range(count)]
            for thread, made in threads:
                thread.join(2 * WAIT)
                assert made[0].status == 200
            answer = gateway.get()
            assert answer.status == 200
            address = f"{peer.host}:{peer.port}"
            assert answer.headers["x-upstream-addr"] == ", ".join([address] * (count + 1))


def starting(gateway, writer):
    """The pids of informers beside the writer."""
    found = [p for p, t in gateway.family().items() if t.endswith("(kube informer)")]
    return [p for p in found if p != writer]


class TestCrashBeforeTheGuard:
    """A process that dies before it is the writer is not started in a storm."""

    def test_one_that_is_ended_did_not_crash(self, cluster):
        """Ended in order, however often, while another one is the writer."""
        cluster.service("shop", "web", 1)
        gateway = cluster.nginx(REDIRECTED)
        writer = gateway.informer()
        gateway.kill(signal.SIGSTOP, writer)
        try:
            gateway.reload()
            for _ in range(6):
                (pid,) = wait_until(lambda: starting(gateway, writer))
                gateway.kill(signal.SIGTERM, pid)
                wait_until(lambda pid=pid: pid not in starting(gateway, writer))
            wait_until(lambda: starting(gateway, writer))
        finally:
            gateway.kill(signal.SIGCONT, writer)
        following = cluster.pods(1, "new")
        cluster.slice("shop", "web", following)
        gateway.wait_backends(["new-1"])
        assert not gateway.grep_log("crashed while it started")

    def test_is_damped(self, cluster):
        cluster.service("shop", "web", 1)
        gateway = cluster.nginx(REDIRECTED)
        writer = gateway.informer()

        gateway.allow(r"exited on signal 9")
        gateway.kill(signal.SIGSTOP, writer)
        try:
            gateway.reload()
            deadline = time.monotonic() + WAIT
            while not gateway.grep_log("crashed while it started"):
                assert time.monotonic() < deadline, gateway.tail()
                for pid in wait_until(lambda: starting(gateway, writer)):
                    gateway.kill(signal.SIGKILL, pid)
                    wait_until(lambda pid=pid: pid not in starting(gateway, writer))
            assert 4 <= gateway.count_log("exited on signal 9") <= 60
            assert gateway.get().status == 200
        finally:
            gateway.kill(signal.SIGCONT, writer)

        # Once started it follows again.
        new = cluster.pods(1, "new")
        cluster.slice("shop", "web", new)
        gateway.wait_backends(["new-1"])
