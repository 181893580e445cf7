# Server-sent events: what a client of /api/v1/events is told, and what it costs
# others.  What is compared: the events that a client puts together with what
# the cluster holds, one client with another, and with the status at the time.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""The event feed."""

import collections
import itertools
import os
import pathlib
import signal
import subprocess
import time

import objects
import pytest
from client import request
from cluster import informer
from events import Events
from library import build_library
from nginx import wait_until

CONF = "server { listen 127.0.0.1:PORT; location / { return 200; } }"
SLOW = "server { listen 127.0.0.1:PORT sndbuf=4k; location /kube/ { kube_status events; } }"
AFTER = """
    log_format after '$uri $upstream_status';
    server {
        listen 127.0.0.1:PORT;
        access_log after.log after;
        location /kube/ { kube_status; post_action /after; }
        location = /after { internal; proxy_pass http://127.0.0.1:ANY/after?hold=1; }
    }
"""
TURN = itertools.count()


def changes(cluster, count, slices=1):
    """
    So many changes of a Service's slices, of which some of one slice may be
    seen as one; the last resourceVersion.
    """
    for _ in range(count):
        turn = next(TURN)
        address = objects.endpoint(f"127.1.{turn // 250 % 250}.{turn % 250 + 1}")
        suffix = "1" if slices == 1 else f"{turn % slices}" + "x" * 150
        rv = cluster.slice("shop", "web", [address], suffix)
    return str(rv)


def seen(rv):
    """
    A condition: the change that led to this version was told.  It need not be
    the last one: two watches have no order, nor have slices of one Service.
    """
    return lambda s: any(e.data.get("resource_version") == rv for e in reversed(s.events))


def agrees(cluster, stream):
    """Until a change is told to a client that may be late; its version."""
    while True:
        late, rv = stream.kinds().count("overflow"), changes(cluster, 1)
        told = seen(rv)
        stream.wait(lambda s, n=late, told=told: told(s) or s.kinds().count("overflow") > n)
        if told(stream):
            return rv


def held(stream, known=None):
    """What a client knows after its events: {(resource, namespace, name): version}."""
    known = dict(known or {})
    for event in stream.events:
        if "name" not in event.data:
            continue
        key = tuple(event.data[k] for k in ("resource", "namespace", "name"))
        if event.kind == "delete":
            known.pop(key, None)
        else:
            known[key] = event.data["resource_version"]
    return known


def stored(cluster):
    """What the cluster holds, in the same words."""
    return {
        (resource, *key): cluster.api.get(resource, *key)["metadata"]["resourceVersion"]
        for resource in ("services", "endpointslices")
        for key in list(cluster.api.core.store.tables[resource])
    }


def test_what_is_told(cluster):
    """Each change once, in order, and readable by then in every worker."""
    cluster.service("shop", "web", 1)
    gateway = cluster.nginx(CONF)
    cluster.steady(gateway)
    with Events(gateway.status_port) as stream, Events(
        gateway.status_port, "/kube/api/v1/events?namespace=infra"
    ) as other:
        assert stream.started().said() == ["resync start"]
        assert other.started().said() == ["resync start"]
        for line in ("Content-Type: text/event-stream", "Cache-Control: no-store",
                     "X-Accel-Buffering: no"):
            assert line in stream.head, stream.head

        cluster.service("infra", "dns", 1)
        stream.wait(lambda s: len(s.events) == 3)
        assert sorted(stream.said()[1:]) == [
            "add endpointslices infra/dns-1", "add services infra/dns"
        ]
        # an event comes after what it tells can be read
        assert gateway.status.service("infra", "dns")

        rv = cluster.slice("infra", "dns", cluster.pods(2, "more"))
        stream.wait(lambda s: len(s.events) == 4)
        update = stream.events[3]
        assert update.kind == "update" and update.data["resource_version"] == str(rv)
        assert int(update.data["old_resource_version"]) < rv

        cluster.slice("shop", "web", cluster.pods(1, "other"))
        cluster.api.delete("services", "infra", "dns")
        cluster.api.delete("endpointslices", "infra", "dns-1")
        stream.wait(lambda s: s.kinds().count("delete") == 2)
        assert request(
            gateway.status_port, "/kube/api/v1/services/infra/dns"
        ).status == 404

        other.wait(lambda s: s.kinds().count("delete") == 2)
        assert other.said() == [s for s in stream.said() if "shop/" not in s]


def test_refused_though_there_is_room(cluster):
    """What was outdated for too long: gone for workers, not from the cluster."""
    cluster.service("shop", "web", 1)
    gateway = cluster.nginx(CONF, more="max_object 4k; max_outdated 1s;")
    cluster.steady(gateway)
    with Events(gateway.status_port) as stream:
        stream.started()
        cluster.slice("shop", "web", [objects.endpoint(f"127.1.9.{n + 1}") for n in range(100)])
        stream.wait(lambda s: s.kinds().count("delete") == 1)
        (gone,) = [event.data for event in stream.events if event.kind == "delete"]
        assert (gone["name"], gone.get("refused")) == ("web-1", True)
        (row,) = gateway.status.resource("endpointslices")["refused"]
        assert (row["key"], row["reason"]) == ("shop/web-1", "too_large")
        assert not row.get("outdated")


def test_requests(cluster):
    """Methods, parts, filters of answers, what is no path."""
    gateway = cluster.nginx("""
        gzip on; gzip_types *; gzip_min_length 1; gzip_http_version 1.0;
        server {
            listen 127.0.0.1:PORT;
            location /e/ { kube_status events; }
            location = /only { kube_status events; }
            location /api/ { kube_status api; }
            location /page/ { kube_status page; }
        }
    """)
    zipped = {"Accept-Encoding": "gzip"}
    for path in ("/e/api/v1/events", "/only", "/page/?asset=api/v1/events"):
        with Events(gateway.port, path, headers=zipped) as stream:
            assert stream.started().status == 200
            assert "Content-Encoding" not in stream.head
        head = gateway.get(path, method="HEAD")
        assert head.status == 200 and head.headers["content-type"] == "text/event-stream"
    assert gateway.get("/only", method="POST").status == 405
    assert gateway.get("/api/api/v1/events").status == 404
    assert gateway.get("/e/api/v1/status").status == 404
    assert gateway.get("/only?informer=none").status == 404
    for name in ("n" * 64, "Shop", "shop/", "%ff"):
        assert gateway.get(f"/only?namespace={name}", method="HEAD").status == 400


def test_resume(cluster):
    """A client that names its last event gets what came after it, and no more."""
    cluster.service("shop", "web", 1)
    gateway = cluster.nginx(CONF)
    cluster.steady(gateway)
    with Events(gateway.status_port) as whole:
        whole.started()
        with Events(gateway.status_port) as stream:
            last = stream.started().id
        for _ in range(5):
            whole.wait(seen(changes(cluster, 1)))
        for n in (-1, *range(5)):
            last = whole.events[n].id if n >= 0 else last
            with Events(gateway.status_port, last=last) as stream:
                stream.wait(lambda s: s.id == whole.id)
                assert stream.events == whole.events[max(n, 0) + 1 :]
        # what it was told belongs to this zone: nothing else is an id
        epoch, _, sequence = whole.id.partition("-")
        for wrong in ("", "1", "x", "-", f"{epoch}", f"{epoch}-", f"{epoch}-x",
                      f"{epoch}-{int(sequence) + 1}", f"{'0' * 16}-{sequence}",
                      f"{epoch}-{2 ** 64 - 1}", f"{epoch}-{2 ** 64}", "f" * 4000,
                      f"0{epoch}-{sequence}", f"f{epoch}-{sequence}"):
            with Events(gateway.status_port, last=wrong) as stream:
                assert stream.started().said() == [
                    "resync unknown_id" if wrong else "resync start"], wrong
        # nor does it matter what stands before and behind it
        many = {f"X-{n}": "a" for n in range(50)}
        headers = {**many, "last-Event-ID": whole.id, "X-A": "b"}
        with Events(gateway.status_port, headers=headers) as stream:
            rv = changes(cluster, 1)
            stream.wait(lambda s: s.events)
            assert stream.said() == ["update endpointslices shop/web-1"]
            epoch, _, sequence = stream.id.partition("-")
        # no id is asked for twice
        with Events(gateway.status_port, last=f"{epoch}-{sequence}") as stream:
            rv = changes(cluster, 1)
            stream.wait(seen(rv))
            assert len(stream.events) == 1
            # how soon to come again is said once
            rv = changes(cluster, 1)
            assert stream.wait(seen(rv)).retries == 1


def test_twenty_and_a_slow_one(cluster, figure):
    """The slow one is told that it is late, and agrees in the end; nobody else is."""
    cluster.service("shop", "web", 1)
    gateway = cluster.nginx(SLOW)
    cluster.steady(gateway)
    streams = [Events(gateway.port) for _ in range(20)]
    slow = Events(gateway.port, room=2048)
    try:
        for stream in (*streams, slow):
            stream.started()
        done = 0
        while "overflow" not in slow.kinds() and done < 20000:
            for _ in range(6):
                rv = changes(cluster, 100, slices=100)
                done += 100
                for stream in streams:
                    stream.wait(seen(rv))
            slow.read()
        rv = changes(cluster, 1)
        for stream in streams:
            stream.wait(seen(rv))
            assert stream.events == streams[0].events
        versions = collections.defaultdict(list)
        for event in streams[0].events[1:]:
            versions[event.data["name"]].append(int(event.data["resource_version"]))
        assert all(v == sorted(set(v)) for v in versions.values())

        # it was told what the others were, but for what it missed, and that
        streams[0].wait(seen(agrees(cluster, slow)))
        missing = iter(streams[0].events)
        assert all(event.kind == "overflow" or event in missing for event in slow.events)
        assert all(s.kinds().count("overflow") == 0 for s in streams)
        figure(f"{done} changes, {len(streams)} clients; the slow one was late "
               f"{slow.kinds().count('overflow')} times and read {len(slow.events)} events")
    finally:
        for stream in (*streams, slow):
            stream.sock.close()


def test_reload_and_quit(cluster):
    """Old workers do not wait for clients; who comes again goes on where it was."""
    cluster.service("shop", "web", 1)
    gateway = cluster.nginx(CONF)
    cluster.steady(gateway)
    with Events(gateway.status_port) as stream:
        stream.started()
        stream.wait(seen(changes(cluster, 3)))
        gateway.reload(gone=True)
        stream.wait(lambda s: s.closed)
        assert stream.ended
        cluster.steady(gateway)
        rv = changes(cluster, 2)
        with Events(gateway.status_port, last=stream.id) as again:
            again.wait(seen(rv))
            assert set(again.kinds()) == {"update"}

    # a zone of another size is another one
    gateway.change(gone=True, block=informer(cluster.api.url, zone="kube 5m"))
    with Events(gateway.status_port, last=again.id) as stream:
        assert stream.started().said() == ["resync unknown_id"]
        cluster.steady(gateway)
        stream.wait(seen(changes(cluster, 1)))
        gateway.stop(signal.SIGQUIT)
        cluster.running.remove(gateway)
        assert stream.wait(lambda s: s.closed).ended


def test_slow_client_does_not_hold_a_worker(cluster):
    """Nor one whose buffers are full."""
    cluster.service("shop", "web", 1)
    gateway = cluster.nginx(SLOW)
    cluster.steady(gateway)
    with Events(gateway.port, room=2048) as slow:
        slow.started()
        with Events(gateway.port) as stream:
            stream.started()
            stream.wait(seen(changes(cluster, 300, slices=100)))
        gateway.reload(gone=True)
        assert slow.wait(lambda s: s.closed).events


def test_limited_rate(cluster):
    """limit_rate delays events, but loses none, however often it has a pause."""
    cluster.service("shop", "web", 1)
    gateway = cluster.nginx(SLOW.replace("events;", "events; limit_rate 2k;"))
    cluster.steady(gateway)
    with Events(gateway.port) as stream:
        stream.started()
        for _ in range(3):
            stream.wait(seen(changes(cluster, 1)))


def test_who_was_late_stays(cluster):
    """A client that has read all that was held for it is not timed out later."""
    cluster.service("shop", "web", 1)
    gateway = cluster.nginx(SLOW.replace("events;", "events; send_timeout 10s;"))
    cluster.steady(gateway)
    with Events(gateway.port, room=2048) as slow:
        slow.started()
        with Events(gateway.port) as stream:
            stream.started()
            stream.wait(seen(changes(cluster, 300, slices=100)))
        agrees(cluster, slow)
        beats = slow.comments + 2
        slow.wait(lambda s: s.closed or s.comments == beats, "a heartbeat", timeout=90)
        assert not slow.closed


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGSEGV])
def test_informer_dies(cluster, sig):
    """What may be lost is told; what comes after it is not."""
    cluster.service("shop", "web", 1)
    gateway = cluster.nginx(CONF)
    gateway.allow(r"exited on signal|AddressSanitizer|deadly signal")
    cluster.steady(gateway)
    with Events(gateway.status_port) as stream:
        stream.started()
        pid = gateway.informer()
        gateway.kill(sig, pid)
        wait_until(lambda: gateway.informer() not in (None, pid), what="another informer")
        cluster.steady(gateway)
        stream.wait(seen(changes(cluster, 1)))
        assert stream.kinds() == ["resync", "resync", "update"]
        assert stream.events[1].data == {"reason": "takeover"}


def test_what_a_client_puts_together(cluster):
    """Events after a resync, upon what was read after it, are what is there."""
    for n in range(4):
        cluster.service("shop", f"s{n}", 1)
    gateway = cluster.nginx(CONF)
    cluster.steady(gateway)
    with Events(gateway.status_port) as stream:
        stream.started()
        known = stored(cluster)
        for n in range(40):
            name = f"s{n % 6}"
            if n % 7 == 6:
                cluster.api.delete("endpointslices", "shop", f"{name}-1")
            else:
                cluster.service("shop", name, pods=[])
        cluster.api.delete("services", "shop", "s2")
        last = cluster.slice("shop", "web", [])
        stream.wait(seen(str(last)))
        # a version alone that was changed is no event
        stream.wait(lambda s: set(held(s, known)) == set(stored(cluster)))


def test_limits(cluster):
    """So many clients a worker; a place is free again at once."""
    gateway = cluster.nginx(CONF, workers=1, connections=512)
    streams = [Events(gateway.status_port) for _ in range(128)]
    for stream in streams:
        assert stream.status == 200
    answer = request(gateway.status_port, "/kube/api/v1/events")
    assert answer.status == 503 and answer.json() == {"error": "too many clients"}
    assert gateway.status.status()
    for stream in streams:
        stream.sock.close()
    wait_until(lambda: _connects(gateway), what="a free place")


def _connects(gateway):
    with Events(gateway.status_port) as stream:
        return stream.status == 200


def test_nothing_wakes(cluster, public_path):
    """Where there is no eventfd a worker looks by itself, now and then."""
    build_library("eventless", public_path / "eventless.so")
    cluster.service("shop", "web", 1)
    gateway = cluster.nginx(CONF, env={"LD_PRELOAD": str(public_path / "eventless.so")})
    cluster.steady(gateway)
    with Events(gateway.status_port) as stream:
        stream.started()
        for _ in range(3):
            stream.wait(seen(changes(cluster, 1)))
        gateway.reload(gone=True)
        stream.wait(lambda s: s.closed)


def test_idle_is_quiet(cluster):
    """A worker with a client that nothing happens to does nothing."""
    gateway = cluster.nginx(CONF, workers=1)
    with Events(gateway.status_port) as stream:
        stream.started()
        before = _switches(gateway.workers()[0])
        stream.wait(lambda s: s.comments, "a heartbeat", timeout=60)
        spent = _switches(gateway.workers()[0]) - before
        assert spent < 200, f"{spent} context switches in 15 s"
        assert len(stream.events) == 1
        # the heart has beaten once, and does not go on
        time.sleep(0.3)
        assert stream.read().comments == 1


def _switches(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)


def test_http2(cluster):
    """A stream of events does not hold its connection, or the worker."""
    cluster.service("shop", "web", 1)
    gateway = cluster.nginx(
        "server { listen 127.0.0.1:PORT http2; location /kube/ { kube_status; } }"
    )
    cluster.steady(gateway)
    output = gateway.path("events.txt")
    url = f"http://127.0.0.1:{gateway.port}/kube/api/v1/events"
    with subprocess.Popen(
        ["curl", "-sN", "--http2-prior-knowledge", "-o", output, url]
    ) as curl:
        try:
            def said(text):
                return os.path.exists(output) and text in open(output, encoding="utf-8").read()

            wait_until(lambda: said("event: resync"), what="the first event")
            rv = changes(cluster, 100, slices=20)
            wait_until(lambda: said(f'"resource_version":"{rv}"'), what="the last change")
            gateway.reload(gone=True)
            assert curl.wait(60) == 0
        finally:
            curl.kill()


def test_small_zone(cluster):
    """A zone without room for a ring says so."""
    gateway = cluster.nginx(CONF, block=informer(cluster.api.url, zone="kube 256k"))
    answer = request(gateway.status_port, "/kube/api/v1/events")
    assert answer.status == 404 and "too small" in answer.text


def test_a_post_action_is_left_alone(cluster):
    """A client left, and nginx sends what "post_action" has: no event ends that."""
    cluster.service("shop", "web")
    backend = cluster.backends.add("127.0.0.1", 0, "any")
    gateway = cluster.nginx(AFTER.replace("ANY", str(backend.port)), workers=1)
    with Events(gateway.port, path="/kube/api/v1/events") as stream:
        stream.wait(lambda s: s.events)
    wait_until(lambda: backend.active == 1)
    for _ in range(5):
        gateway.status.wait_rv(int(changes(cluster, 1)))
    assert backend.active == 1
    backend.release()
    wait_until(lambda: backend.active == 0)
    log = pathlib.Path(gateway.path("after.log"))
    wait_until(lambda: "/after 200" in log.read_text(), what=log.read_text)
