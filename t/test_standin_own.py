# Checks of what only the stand-in API server has: history made and lost at will,
# users, faults, the request log, the control endpoint, the backends.  What it
# shares with a real API server is checked by test_standin.py.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Checks of the stand-in's own parts."""

import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
import time

import pytest

LIB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
sys.path.insert(0, LIB)

import objects  # noqa: E402
from apiserver import READ, ApiServer, Rule  # noqa: E402
from apiserver_client import (  # noqa: E402
    SERVICES,
    SLICES,
    WAIT,
    Client,
    names,
    rv_of,
    services,
    slices,
)
from backend import Backends  # noqa: E402

# linux/tcp.h: a socket in this mode is closed without a packet
TCP_REPAIR = 19


@pytest.fixture
def standin():
    """A stand-in with one administrator."""
    with ApiServer(token="secret") as server:
        yield server


@pytest.fixture
def api(standin):
    """A client of it."""
    return Client(standin.url, "secret")


class TestHistory:
    """Compaction, restored backups, versions."""

    def test_compaction(self, standin, api):
        old = standin.put(objects.service("shop", "a"))
        standin.put(objects.service("shop", "b"))
        standin.compact()
        rv = standin.rv
        standin.put(objects.service("shop", "c"))
        with api.watch(SERVICES, resourceVersion=str(old)) as watch:
            event = watch.next()
            assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        status, made = api.get(SERVICES, resourceVersion=str(old), resourceVersionMatch="Exact")
        assert (status, made["reason"]) == (410, "Expired")
        with api.watch(SERVICES, resourceVersion=str(rv)) as watch:
            assert watch.events(1) == [("ADDED", "c")]

    def test_compaction_leaves_running_watches_alone(self, standin, api):
        standin.put(objects.service("shop", "a"))
        with api.watch(SERVICES, resourceVersion=str(standin.rv)) as watch:
            standin.wait_watch("services")
            standin.compact()
            standin.put(objects.service("shop", "b"))
            assert watch.events(1) == [("ADDED", "b")]

    def test_expired_continue_token(self, standin, api):
        for i in range(4):
            standin.put(objects.service("shop", f"s{i}"))
        page = api.list(SERVICES, limit="2")
        standin.put(objects.service("shop", "s9"))
        standin.compact()
        query = {"limit": "10", "continue": page["metadata"]["continue"]}
        status, made = api.get(SERVICES, **query)
        assert (status, made["reason"]) == (410, "Expired")
        rest = api.list(SERVICES, limit="10", **{"continue": made["metadata"]["continue"]})
        assert names(rest) == ["s2", "s3", "s9"]
        assert rv_of(rest) == standin.rv

    def test_restore_goes_back(self, standin, api):
        standin.put(objects.service("shop", "a"))
        backup = standin.rv
        standin.put(objects.service("shop", "b"))
        standin.delete("services", "shop", "a")
        standin.restore(backup)
        made = api.list(SERVICES)
        assert names(made) == ["a"] and rv_of(made) == backup

    def test_lost_event_changes_the_truth_only(self, standin, api):
        standin.put(objects.service("shop", "a"))
        with api.watch(SERVICES, resourceVersion=str(standin.rv)) as watch:
            standin.wait_watch("services")
            standin.put(objects.service("shop", "lost"), lost=True)
            standin.delete("services", "shop", "a", lost=True)
            standin.put(objects.service("shop", "told"))
            assert watch.events(1) == [("ADDED", "told")]
        assert names(api.list(SERVICES)) == ["lost", "told"]

    def test_oracle_and_digest(self, standin):
        standin.put(objects.service("shop", "a"))
        rv = standin.rv
        digest = standin.digest("services")
        standin.put(objects.service("shop", "a", ports=(("http", 81),)))
        standin.delete("services", "shop", "a")
        assert standin.state_at("services") == {}
        assert list(standin.state_at("services", rv)) == [("shop", "a")]
        assert standin.digest("services", rv) == digest
        assert int(standin.digest("services"), 16) == 0

    def test_generation_and_uid(self, standin):
        standin.put(objects.slice("shop", "web-1", "web", ["10.0.0.1"]))
        first = standin.get("endpointslices", "shop", "web-1")["metadata"]
        standin.put(objects.slice("shop", "web-1", "web", ["10.0.0.2"]))
        second = standin.get("endpointslices", "shop", "web-1")["metadata"]
        assert second["uid"] == first["uid"]
        assert second["generation"] == first["generation"] + 1
        standin.delete("endpointslices", "shop", "web-1")
        standin.put(objects.slice("shop", "web-1", "web", ["10.0.0.2"]))
        third = standin.get("endpointslices", "shop", "web-1")["metadata"]
        assert third["uid"] != first["uid"]

    def test_raw_object(self, standin, api):
        text = b'{"metadata":{"name":"x","resourceVersion":"%RV%"},"spec":7}'
        with api.watch(SERVICES, resourceVersion=str(standin.rv)) as watch:
            standin.wait_watch("services")
            standin.put_raw("services", "shop", "x", text)
            assert watch.next()["object"]["spec"] == 7
        assert rv_of(api.list(SERVICES)["items"][0]) == standin.rv


class TestAccess:
    """Tokens, rules, certificates."""

    def test_rules(self, standin):
        rules = [Rule(READ, ("services", "endpointslices"), ("shop",))]
        standin.auth.add_token("reader", "reader", rules)
        client = Client(standin.url, "reader")
        assert client.get(services("shop"))[0] == 200
        status, made = client.get(SLICES)
        assert (status, made["reason"]) == (403, "Forbidden")
        assert made["message"] == (
            'endpointslices.discovery.k8s.io is forbidden: User "reader" cannot list resource '
            '"endpointslices" in API group "discovery.k8s.io" at the cluster scope'
        )
        assert client.get(services("infra"))[0] == 403
        assert client.call("DELETE", services("shop") + "/x")[0] == 403
        standin.auth.set_rules("reader", [Rule(("list",), ("services",), ("shop",))])
        assert client.get(services("shop"), watch="true")[0] == 403
        standin.auth.revoke_token("reader")
        assert client.get(services("shop"))[0] == 401

    def test_anonymous(self, standin):
        status, made = Client(standin.url).get(SERVICES)
        assert status == 403 and "system:anonymous" in made["message"]
        standin.auth.anonymous = False
        assert Client(standin.url).get(SERVICES)[0] == 401

    def test_open_server(self):
        with ApiServer() as server:
            assert Client(server.url).get(SERVICES)[0] == 200
            assert server.requests[-1].auth == "anonymous"

    def test_unix_socket(self, tmp_path):
        path = str(tmp_path / "api.sock")
        with ApiServer(host=None, unix=path) as server:
            assert server.url == "unix:" + path
            assert Client(server.url).get(SERVICES)[0] == 200
        assert not os.path.exists(path)


class TestTls:
    """Certificates, good and bad."""

    @pytest.fixture(scope="class")
    def pki(self, tmp_path_factory):
        from apiserver_tls import Pki

        return Pki(tmp_path_factory.mktemp("pki"))

    def test_good(self, pki):
        with ApiServer(tls=pki.server(), token="secret") as server:
            client = Client(server.url, "secret", pki.ca_file)
            assert server.url.startswith("https://")
            assert client.get(SERVICES)[0] == 200
            with client.watch(SERVICES, resourceVersion=str(server.rv)) as watch:
                server.put(objects.service("shop", "a"))
                assert watch.events(1) == [("ADDED", "a")]

    def test_bad_certificates(self, pki, tmp_path):
        from apiserver_tls import Pki

        other = Pki(tmp_path, "other")
        with ApiServer(tls=pki.server()) as server:
            client = Client(server.url, ca=pki.ca_file)
            for tls, text in (
                (pki.expired(), "expired"),
                (pki.wrong_name(), "mismatch|not valid for"),
                (other.server(), "unable to get local issuer|self.signed"),
            ):
                server.set_tls(tls)
                with pytest.raises(ssl.SSLCertVerificationError, match=text):
                    client.get(SERVICES)
            server.wait(lambda: server.tls_errors == 3, what="3 failed handshakes")
            server.set_tls(pki.server("renewed"))
            assert client.get(SERVICES)[0] == 200

    def test_a_client_that_has_left(self, pki):
        """Who counts those beside it may meet a connection that has just ended."""
        with ApiServer(tls=pki.server(), token="secret") as server:
            client = Client(server.url, "secret", pki.ca_file)
            with client.watch(SERVICES, resourceVersion=str(server.rv)):
                server.wait(lambda: server.core.connections, what="a connection")
                (wire,) = server.core.connections
                assert not wire.client_left()
            server.wait(
                lambda: wire.writer.get_extra_info("socket") is None, what="the socket's end"
            )
            assert wire.client_left()

    def test_client_certificate(self, pki):
        tls = pki.server_context(client_ca=pki.ca_file)
        with ApiServer(tls=tls) as server:
            server.auth.set_rules("someone", [Rule(READ, ("services",))])
            cert = pki.client("someone")
            client = Client(server.url, context=pki.client_context(cert))
            assert client.get(SERVICES)[0] == 200
            assert client.get(SLICES)[0] == 403
            assert server.requests[0].auth == "certificate"
            assert server.requests[0].user == "someone"
            assert Client(server.url, ca=pki.ca_file).get(SERVICES)[0] == 403

    @pytest.mark.parametrize("cut", ["fin", "abort"])
    def test_cut_with_and_without_close_notify(self, pki, cut):
        with ApiServer(tls=pki.server()) as server:
            server.fault(at_bytes=20, cut=cut)
            plain = socket.create_connection((server.host, server.port), WAIT)
            context = pki.client_context()
            context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
            with context.wrap_socket(
                plain, server_hostname="localhost", suppress_ragged_eofs=False
            ) as sock:
                sock.sendall(f"GET {SERVICES} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                got = b""
                while len(got) < 20:
                    got += sock.recv(100)
                if cut == "fin":
                    assert sock.recv(100) == b""
                else:
                    with pytest.raises(ssl.SSLError, match="EOF"):
                        sock.recv(100)


def plain_get(path, extra=""):
    """The bytes of a GET."""
    text = f"GET {path} HTTP/1.1\r\nHost: x\r\n{extra}Authorization: Bearer secret\r\n\r\n"
    return text.encode()


def raw_get(server, path, timeout=WAIT, extra=""):
    """Sends a GET over a bare socket and returns every byte of the answer."""
    with socket.create_connection((server.host, server.port), timeout) as sock:
        sock.sendall(plain_get(path, f"Connection: close\r\n{extra}"))
        got = b""
        while True:
            data = sock.recv(65536)
            if not data:
                return got
            got += data


class TestFaults:
    """Each fault does what it says."""

    def test_status_and_headers(self, standin, api):
        fault = standin.fault(verb="list", status=429, retry_after=7, headers={"X-A": "b"})
        status, headers, body = api.call("GET", SERVICES)
        assert (status, headers["Retry-After"], headers["X-A"]) == (429, "7", "b")
        made = json.loads(body)
        assert made["reason"] == "TooManyRequests"
        assert made["details"]["retryAfterSeconds"] == 7
        assert fault.fired == 1
        assert api.get(SERVICES)[0] == 200

    def test_bodies(self, standin, api):
        standin.fault(status=200, body="<html>", content_type="text/html")
        status, headers, body = api.call("GET", SERVICES)
        assert (status, headers["Content-Type"], body) == (200, "text/html", b"<html>")
        standin.fault(status=204)
        assert api.call("GET", SERVICES)[0] == 204
        standin.fault(location="http://192.0.2.1/")
        status, headers, _ = api.call("GET", SERVICES)
        assert (status, headers["Location"]) == (302, "http://192.0.2.1/")

    def test_matching(self, standin, api):
        standin.put_all(objects.service("shop", f"s{i}") for i in range(5))
        standin.fault(verb="list", resource="services", page=2, status=410)
        standin.fault(verb="list", resource="endpointslices", ns="shop", status=500)
        standin.fault(verb="watch", nth=(2, 3), status=503)
        page = api.list(SERVICES, limit="2")
        query = {"limit": "2", "continue": page["metadata"]["continue"]}
        assert api.get(SERVICES, **query)[0] == 410
        assert api.get(SERVICES, **query)[0] == 200
        assert api.get(SLICES)[0] == 200
        assert api.get(slices("shop"))[0] == 500
        found = []
        for _ in range(4):
            with api.watch(SERVICES, timeoutSeconds="9") as watch:
                found.append(watch.status)
        assert found == [200, 503, 503, 200]

    def test_for_ever_until_cleared(self, standin, api):
        fault = standin.fault(status=500, times=None)
        assert [api.get(SERVICES)[0] for _ in range(3)] == [500] * 3
        standin.clear_faults()
        assert api.get(SERVICES)[0] == 200 and fault.fired == 3

    def test_raw(self, standin):
        standin.fault(raw=b"HTTP/1.1 2 00\r\n\r\nx")
        assert raw_get(standin, SERVICES) == b"HTTP/1.1 2 00\r\n\r\nx"

    def test_cut_at_each_byte(self, standin):
        whole = raw_get(standin, SERVICES)
        assert whole.endswith(b"}\n")
        for at in range(0, len(whole), 7):
            standin.fault(at_bytes=at)
            got = raw_get(standin, SERVICES)
            assert len(got) == at and got[:15] == whole[:15][:at]

    def test_reset(self, standin):
        standin.fault(at_bytes=30, cut="rst")
        with pytest.raises(ConnectionResetError):
            # The bytes before may be lost with a reset: only the end is certain.
            raw_get(standin, SERVICES)

    def test_cut_inside_a_chunk(self, standin):
        standin.put_all(objects.service("shop", f"s{i}") for i in range(4))
        standin.fault(verb="list", at_body=100)
        got = raw_get(standin, SERVICES)
        size, _, rest = got.partition(b"\r\n\r\n")[2].partition(b"\r\n")
        assert int(size, 16) > 2048 and len(rest) == 100

    def test_no_last_chunk(self, standin):
        standin.fault(verb="watch", timeout=0.1, at_end=True)
        got = raw_get(standin, SERVICES + "?watch=true")
        assert not got.endswith(b"0\r\n\r\n")
        standin.fault(verb="watch", timeout=0.1)
        got = raw_get(standin, SERVICES + "?watch=true")
        assert got.endswith(b"0\r\n\r\n")

    def test_bytes_put_between(self, standin):
        standin.put(objects.service("shop", "a"))
        standin.fault(verb="watch", at_events=1, insert=b"zz\r\n")
        got = raw_get(standin, SERVICES + "?watch=true")
        assert got.endswith(b"}\n\r\nzz\r\n")
        standin.fault(verb="watch", at_events=1, insert=b"1\r\n\n\r\n", cut="go", timeout=0.1)
        got = raw_get(standin, SERVICES + "?watch=true")
        assert got.endswith(b"}\n\r\n1\r\n\n\r\n0\r\n\r\n")

    def test_split_and_drip_change_nothing(self, standin, api):
        standin.put(objects.service("shop", "a"))
        status, _, whole = api.call("GET", SERVICES)
        for fields in (
            {"split_at": 5},
            {"split_at": 400},
            {"drip": (1, 0)},
            {"drip": (97, 0.001)},
            {"chunk": 3},
        ):
            fault = standin.fault(**fields)
            assert api.call("GET", SERVICES)[::2] == (status, whole)
            assert fault.fired == 1

    @pytest.mark.parametrize("cut", ["stall", "hang"])
    def test_silence(self, standin, cut):
        standin.fault(verb="list", at_bytes=40, cut=cut)
        with socket.create_connection((standin.host, standin.port), WAIT) as sock:
            sock.sendall(plain_get(SERVICES))
            got = b""
            while len(got) < 40:
                got += sock.recv(4096)
            sock.settimeout(0.2)
            with pytest.raises(TimeoutError):
                sock.recv(1)
        standin.wait(lambda: standin.requests[-1].ended, what="the silent request's end")
        assert standin.requests[-1].result == "fault: silent"

    def test_silent_watch_is_over_when_the_client_leaves(self, standin, api):
        standin.put(objects.service("shop", "a"))
        standin.fault(verb="watch", at_events=1, cut="stall")
        with api.watch(SERVICES) as watch:
            assert watch.events(1) == [("ADDED", "a")]
            assert standin.watches("services") == 1
        standin.wait(lambda: standin.watches("services") == 0, what="no watch")

    def test_error_event(self, standin, api):
        standin.put(objects.service("shop", "a"))
        error = {"code": 429, "reason": "TooManyRequests", "details": {"retryAfterSeconds": 2}}
        standin.fault(verb="watch", error=error, at_events=1)
        with api.watch(SERVICES) as watch:
            assert watch.events(1) == [("ADDED", "a")]
            event = watch.next()
            assert (event["type"], event["object"]["reason"]) == ("ERROR", "TooManyRequests")
            assert watch.next() is None
        standin.fault(verb="watch", error={"kind": "Pod"})
        with api.watch(SERVICES) as watch:
            assert watch.next() == {"type": "ERROR", "object": {"kind": "Pod"}}

    def test_spoiled_payload(self, standin, api):
        standin.put(objects.service("shop", "a"))
        standin.fault(verb="watch", mutate=lambda line: line.replace(b"ADDED", b"WHAT"))
        with api.watch(SERVICES) as watch:
            assert watch.events(1) == [("WHAT", "a")]

    def test_lists_that_lie(self, standin, api):
        standin.put(objects.service("shop", "a"))
        old = standin.rv
        standin.put(objects.service("shop", "b"))
        standin.fault(verb="list", as_of=old)
        made = api.list(SERVICES)
        assert names(made) == ["a"] and rv_of(made) == old
        standin.fault(verb="list", list_rv=7, remaining=9)
        made = api.list(SERVICES)
        assert made["metadata"] == {"resourceVersion": "7", "remainingItemCount": 9}

    def test_delay(self, standin, api):
        standin.fault(verb="list", delay=0.2)
        started = time.monotonic()
        assert api.get(SERVICES)[0] == 200
        assert time.monotonic() - started >= 0.19

    def test_connecting(self, standin, api):
        standin.connect_fault("rst")
        with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
            api.get(SERVICES)
        standin.connect_fault(b"SSH-2.0-x\r\n")
        with pytest.raises(http.client.BadStatusLine):
            api.get(SERVICES)
        standin.connect_fault(None)
        assert api.get(SERVICES)[0] == 200

    def test_refuse_and_listen_again(self, standin, api):
        port = standin.port
        with api.watch(SERVICES, resourceVersion=str(standin.rv)) as watch:
            standin.wait_watch("services")
            standin.refuse()
            with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
                watch.next()
        with pytest.raises(ConnectionRefusedError):
            api.get(SERVICES)
        standin.listen()
        assert standin.port == port
        assert api.get(SERVICES)[0] == 200

    def test_freeze(self, standin, api):
        with api.watch(SERVICES, resourceVersion=str(standin.rv)) as watch:
            standin.wait_watch("services")
            standin.freeze()
            standin.put(objects.service("shop", "a"))
            watch.conn.sock.settimeout(0.2)
            with pytest.raises(TimeoutError):
                watch.next()
        standin.thaw()
        assert names(api.list(SERVICES)) == ["a"]

    @pytest.mark.parametrize("how", ["clean", "fin", "rst"])
    def test_close_watches(self, standin, how):
        with socket.create_connection((standin.host, standin.port), WAIT) as sock:
            sock.sendall(plain_get(SERVICES + "?watch=true"))
            standin.wait_watch("services")
            assert standin.close_watches("services", how) == 1
            got = b""
            try:
                while not got.endswith(b"0\r\n\r\n"):
                    data = sock.recv(4096)
                    if not data:
                        got += b"FIN"
                        break
                    got += data
            except ConnectionResetError:
                got += b"RST"
        assert got.endswith({"clean": b"0\r\n\r\n", "fin": b"FIN", "rst": b"RST"}[how])

    def test_inject_and_bookmark(self, standin, api):
        with api.watch(
            SERVICES, resourceVersion=str(standin.rv), allowWatchBookmarks="true"
        ) as watch:
            standin.wait_watch("services")
            assert standin.inject(b'{"odd":1}\n', "services") == 1
            assert watch.next() == {"odd": 1}
            standin.bookmark("services")
            event = watch.next()
            assert event["type"] == "BOOKMARK" and rv_of(event["object"]) == standin.rv

    def test_settings(self, api, standin):
        standin.settings.watch_list = False
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        status, made = api.get(SERVICES, watch="true", **query)
        assert status == 422 and "WatchList" in made["message"]
        standin.settings.disabled.add("endpointslices")
        status, _, body = api.call("GET", SLICES)
        assert (status, body) == (404, b"404 page not found\n")
        assert api.get("/apis")[1]["groups"] == []
        standin.settings.disabled.clear()
        assert api.get(SLICES)[0] == 200
        standin.settings.strict_future = True
        with api.watch(SERVICES, resourceVersion=str(standin.rv + 9)) as watch:
            assert watch.next()["object"]["code"] == 504

    def test_periodic_bookmarks(self, standin, api):
        standin.settings.bookmark_interval = 0.05
        with api.watch(
            SERVICES, resourceVersion=str(standin.rv), allowWatchBookmarks="true"
        ) as watch:
            standin.wait_watch("services")
            standin.put(objects.slice("shop", "web-1", "web", ["10.0.0.1"]))
            event = watch.next()
        assert event["type"] == "BOOKMARK"
        assert rv_of(event["object"]) == standin.rv

    def test_events_in_one_chunk(self, standin):
        standin.put_all(objects.service("shop", f"s{i}") for i in range(3))
        rv = standin.core.store.compacted
        path = f"{SERVICES}?watch=true&resourceVersion={rv}"
        standin.fault(verb="watch", chunk="all", timeout=0.1)
        assert raw_get(standin, path).count(b"}\n\r\n") == 1
        standin.fault(verb="watch", timeout=0.1)
        assert raw_get(standin, path).count(b"}\n\r\n") == 3

    def test_wrong_fault_is_refused(self, standin):
        with pytest.raises(TypeError):
            standin.fault(stauts=500)
        with pytest.raises(ValueError):
            standin.fault(cut="sideways")


class TestLog:
    """The request log and what is counted from it."""

    def test_fields(self, standin, api):
        standin.put(objects.service("shop", "a"))
        api.list(services("shop"), labelSelector="a=b")
        request = standin.requests[-1]
        assert (request.verb, request.resource, request.ns) == ("list", "services", "shop")
        assert request.query == {"labelSelector": "a=b"}
        assert (request.user, request.auth, request.token) == ("admin", "token", "secret")
        assert request.user_agent == "standin-test"
        standin.wait(lambda: request.ended, what="its end")
        assert (request.status, request.result) == (200, "ok")
        assert request.bytes > 100

    def test_concurrent_watches(self, standin, api):
        rv = str(standin.rv)
        with api.watch(SERVICES, resourceVersion=rv), api.watch(services("x")):
            standin.wait_watch("services")
            standin.wait_watch("services", "x")
        standin.wait(lambda: standin.watches("services") == 0, what="no watch")
        assert standin.max_concurrent("watch", "services") == 1
        with api.watch(SERVICES), api.watch(SERVICES):
            standin.wait_watch("services", count=2)
        standin.wait(lambda: standin.watches("services") == 0, what="no watch")
        assert standin.max_concurrent("watch", "services") == 2
        standin.reset_max()
        assert standin.max_concurrent("watch", "services") == 0
        assert standin.count(verb="watch") == 4
        standin.wait(lambda: standin.requests[-1].ended, what="its end")
        assert standin.requests[-1].result == "closed by client"

    def test_a_client_that_left_counts_no_more(self, standin):
        """Also where the loop learns of the next watch first."""
        first, second = (
            socket.create_connection((standin.host, standin.port), WAIT) for _ in range(2)
        )
        with first, second:
            first.sendall(plain_get(SERVICES + "?watch=true"))
            standin.wait_watch("services")
            standin._loop.call_soon_threadsafe(time.sleep, 0.3)
            first.close()
            second.sendall(plain_get(SERVICES + "?watch=true"))
            standin.wait_requests(2, verb="watch")
        assert standin.max_concurrent("watch", "services") == 1

    @pytest.mark.skipif(os.geteuid() != 0, reason="TCP_REPAIR needs root")
    def test_a_client_whose_end_was_lost_counts_no_more(self, standin):
        """As where the network is cut when it gives up: nobody tells the server."""
        for count in (1, 2):
            lost = socket.create_connection((standin.host, standin.port), WAIT)
            lost.sendall(plain_get(SERVICES + "?watch=true"))
            standin.wait_watch("services", count=count)
            lost.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
            lost.close()
        assert standin.watches("services") == 2
        assert standin.max_concurrent("watch", "services") == 1

    def test_waiting_has_a_deadline(self, standin):
        with pytest.raises(TimeoutError, match="watch of services"):
            standin.wait_watch("services", timeout=0.1)

    def test_nothing_is_left_over(self):
        before = len(os.listdir("/proc/self/fd"))
        server = ApiServer().start()
        client = Client(server.url)
        with client.watch(SERVICES):
            server.fault(verb="list", at_bytes=0, cut="hang")
            with socket.create_connection((server.host, server.port)) as sock:
                sock.sendall(f"GET {SERVICES} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                server.wait_requests(2)
                server.stop()
        assert len(os.listdir("/proc/self/fd")) == before


class TestScale:
    """10 000 Services x 10 endpoints."""

    def test_scale(self, api, standin):
        started = time.monotonic()
        assert standin.load_scale(10000, 10) == 20000
        loaded = time.monotonic()
        _, _, body = api.call("GET", SLICES)
        listed = time.monotonic()
        print(f"\nload {loaded - started:.2f} s, list {listed - loaded:.2f} s, {len(body)} bytes")
        assert body.count(b'"addresses":') == 100000
        found, token = 0, ""
        while token is not None:
            page = api.list(SERVICES, limit="500", **{"continue": token})
            found += len(page["items"])
            token = page["metadata"].get("continue")
        assert found == 10000

    def test_compressed_when_asked(self, api, standin):
        import gzip

        standin.load_scale(200, 2)
        _, _, plain = api.call("GET", SLICES)
        _, headers, body = api.call("GET", SLICES, headers={"Accept-Encoding": "gzip"})
        assert headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(body) == plain


class TestCommandLine:
    """The server alone, with its control endpoint."""

    @pytest.fixture
    def process(self, tmp_path):
        objs = tmp_path / "objects.json"
        objs.write_text(json.dumps([objects.service("shop", "web")]))
        process = subprocess.Popen(
            [sys.executable, os.path.join(LIB, "apiserver.py"), "--load", str(objs)]
            + ["--token", "admin=secret"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process, json.loads(process.stdout.readline())["url"]
        finally:
            process.kill()
            process.communicate()

    def test_control(self, process):
        process, url = process
        api = Client(url, "secret")

        def post(action, **given):
            status, _, body = api.call("POST", "/_control/" + action, given)
            assert status == 200, body
            return json.loads(body)

        assert names(api.list(SERVICES)) == ["web"]
        rv = api.get("/_control/state")[1]["rv"]
        with api.watch(SERVICES, resourceVersion=str(rv)) as watch:
            post("put", **objects.service("shop", "api"))
            assert watch.events(1) == [("ADDED", "api")]
            post("delete", resource="services", namespace="shop", name="api")
            assert watch.events(1) == [("DELETED", "api")]
            assert post("close-watches")["watches"] == 1
            assert watch.next() is None
        post("fault", verb="list", status=500)
        assert api.get(SERVICES)[0] == 500
        post("compact")
        post("settings", watch_list=False)
        log = api.get("/_control/requests")[1]
        assert "secret" not in json.dumps(log)
        assert [r["status"] for r in log if r["verb"] == "list"] == [200, 500]
        assert api.call("POST", "/_control/nothing", {})[0] == 404
        assert api.call("POST", "/_control/fault", {"when": 1})[0] == 400
        process.terminate()
        _, errors = process.communicate(timeout=WAIT)
        assert (process.returncode, errors) == (0, "")

    def test_no_control_unless_switched_on(self, api):
        assert api.get("/_control/state")[0] == 404


class TestBackends:
    """The HTTP servers that stand for pods."""

    @pytest.fixture
    def backends(self):
        with Backends() as made:
            yield made

    def test_answers(self, backends):
        one = backends.add("127.0.0.11", name="web-1")
        client = Client("http://" + one.address)
        conn = client.connect()
        for _ in range(2):
            response = client.send(conn, "GET", "/x?delay=5ms")
            made = json.loads(response.read())
            assert response.headers["X-Backend"] == made["backend"] == "web-1"
            assert response.headers["X-Pod-Addr"] == one.address
        response = client.send(conn, "POST", "/", body={"a": 1})
        assert json.loads(response.read())["length"] == len(json.dumps({"a": 1}))
        assert (one.requests, one.accepted, one.methods) == (3, 1, {"GET": 2, "POST": 1})
        conn.close()

    def test_close_and_reopen(self, backends):
        one = backends.add()
        client = Client("http://" + one.address)
        conn = client.connect()
        client.send(conn, "GET", "/").read()
        one.close()
        with pytest.raises((OSError, http.client.HTTPException)):
            client.send(conn, "GET", "/")
        conn.close()
        with pytest.raises(ConnectionRefusedError):
            client.get("/")
        one.reopen()
        assert client.get("/")[0] == 200

    def test_drain_ends_requests_in_flight(self, backends):
        one = backends.add()
        client = Client("http://" + one.address)
        conn = client.connect()
        conn.request("GET", "/?delay=300ms")
        deadline = time.monotonic() + WAIT
        while one.active == 0 and time.monotonic() < deadline:
            time.sleep(0.001)
        one.drain()
        response = conn.getresponse()
        assert (response.status, response.headers["Connection"]) == (200, "close")
        conn.close()
        with pytest.raises(ConnectionRefusedError):
            client.get("/")
