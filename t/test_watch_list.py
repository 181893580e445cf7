# WatchLists end to end: lists by initial events, the fall back to plain lists,
# and streams that break before their end.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Streaming lists."""

import signal

import objects
import pytest
from apiserver_store import event_line
from cluster import informer, rv_of

CONF = """
    upstream web { kube_service shop/web; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://web; } }
"""

SLICES = "endpointslices"
BOTH = ("services", SLICES)
END = b'"k8s.io/initial-events-end":"true"'


def scene(cluster, how="auto"):
    """A Service with a pod, and five more; what to put into the block."""
    cluster.service("shop", "web", pods=cluster.pods(1, "web"))
    for n in range(5):
        cluster.service("infra", f"s{n}", pods=[objects.endpoint(f"10.9.0.{n + 1}")])
    return f"watch_list {how}; namespaces all;"


def settled(cluster, gateway):
    """Watching, equal to the server, and the next change arrives."""
    cluster.followed(gateway)
    for resource in BOTH:
        assert cluster.api.max_concurrent("watch", resource) <= 1
        assert cluster.api.max_concurrent("list", resource) <= 1


def expire(cluster, resource=None):
    """Ends the running watches by a 410: what follows is a list."""
    status = {"kind": "Status", "code": 410, "reason": "Expired"}
    cluster.api.inject(event_line("ERROR", objects.go_json(status)), resource)


def test_one_request_lists_and_watches(cluster):
    gateway = cluster.nginx(CONF, more=scene(cluster), workers=1)
    settled(cluster, gateway)
    assert len(cluster.api.requests) == 2
    for resource in BOTH:
        (request,) = cluster.api.find(resource=resource, streamed=True)
        assert request.query["resourceVersionMatch"] == "NotOlderThan"
        assert request.query["allowWatchBookmarks"] == "true"
        assert "resourceVersion" not in request.query
        assert 300 <= int(request.query["timeoutSeconds"]) <= 600
        assert gateway.status.resource(resource)["lists"] == 1


def test_relist(cluster):
    """Not older than what we have, and what is not in it is deleted."""
    gateway = cluster.nginx(CONF, more=scene(cluster), workers=1)
    settled(cluster, gateway)
    cluster.api.refuse()
    gone = cluster.api.delete("services", "infra", "s1")
    cluster.api.delete(SLICES, "infra", "s1-1")
    cluster.service("infra", "more", pods=[objects.endpoint("10.9.1.1")])
    cluster.api.compact()
    cluster.api.listen()
    gateway.status.wait_rv(gone, "services")
    settled(cluster, gateway)
    keys = {(s["namespace"], s["name"]) for s in gateway.status.services()}
    assert ("infra", "s1") not in keys and ("infra", "more") in keys
    assert cluster.api.count(verb="list", streamed=False) == 0
    for resource in BOTH:
        first, second = cluster.api.find(resource=resource, streamed=True)
        assert "resourceVersion" not in first.query
        assert rv_of(second.query["resourceVersion"]) > 0
    assert gateway.status.metrics().value("nginx_kube_relists_total", reason="expired") == 2


def test_next_informer_needs_no_list(cluster):
    gateway = cluster.nginx(CONF, more=scene(cluster), workers=1)
    settled(cluster, gateway)
    gateway.allow(r"cache manager process \d+ exited on signal 9")
    old = gateway.informer()
    gateway.kill(signal.SIGKILL, old)
    settled(cluster, gateway)
    gateway.reload(gone=True)
    gateway.wait_backends({"after-1"})
    assert cluster.api.count(verb="list") == cluster.api.count(streamed=True) == 2


# how it is asked for, what the server does with it, WatchLists of a resource
# that it sees at the start and when all is listed again
SERVERS = [
    ("auto", "no", 1, 0),
    ("on", "no", 1, 1),
    ("off", "yes", 0, 0),
    ("auto", "never ends", 3, 0),
    ("auto", "ends with false", 3, 0),
    ("auto", "forbids", 1, 1),
]


@pytest.mark.parametrize("how, server, first, second", SERVERS)
def test_plain_lists_instead(cluster, how, server, first, second):
    """A server that has none is found out, followed all the same, and remembered."""
    settings = cluster.api.settings
    settings.watch_list = server != "no"
    if server == "forbids":
        cluster.api.fault(status=403, streamed=True, times=None)
    elif server == "never ends":
        settings.initial_end = False
        cluster.api.fault(timeout=0.05, streamed=True, times=None)
    elif server == "ends with false":
        wrong = END.replace(b'"true"', b'"false"')
        cluster.api.fault(
            mutate=lambda line: line.replace(END, wrong),
            timeout=0.05,
            streamed=True,
            times=None,
        )
    gateway = cluster.nginx(CONF, more=scene(cluster, how), workers=1)
    settled(cluster, gateway)
    assert gateway.status.informer()["degraded"] == []

    # what one scope has learnt the other need not find out
    asked = {r: cluster.api.count(resource=r, streamed=True) for r in BOTH}
    assert max(asked.values()) == first
    if how != "off":
        expire(cluster)
        cluster.api.wait(lambda: cluster.api.count(verb="list", streamed=False) == 4)
    for resource in BOTH:
        gateway.status.wait_state("watching", resource)
        assert cluster.api.count(resource=resource, streamed=True) - asked[resource] == second
        lists = cluster.api.count(verb="list", resource=resource, streamed=False)
        assert lists == (1 if how == "off" else 2)


def deleted(line):
    """After the initial event of a slice, its end."""
    if b'"infra"' not in line or b'"s1-1"' not in line:
        return line
    return line + line.replace(b'"ADDED"', b'"DELETED"')


FAULTS = {
    "closed": dict(at_events=3, cut="fin"),
    "reset": dict(at_events=3, cut="rst"),
    "inside an event": dict(at_body=700, cut="fin"),
    "error": dict(at_events=3, error={"code": 500, "message": "no progress"}),
    "gone": dict(at_events=3, error={"code": 410, "reason": "Expired"}),
    "too large": dict(at_events=0, error={"code": 504, "message": "Too large resource version: 9"}),
    "busy": dict(status=429, retry_after=1),
    "ill": dict(status=503),
    "not json": dict(body=b"<html>", content_type="text/html"),
    "rubbish": dict(mutate=lambda line: line.replace(b'"ADDED"', b"ADDED")),
    "twice": dict(mutate=lambda line: line + line if END in line else line),
    "small pieces": dict(drip=(200, 0.001)),
    "bytes": dict(split_at=300),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_broken_once(cluster, fault):
    """Whatever happens to one, the next list is whole and nothing is lost."""
    made = cluster.api.fault(resource=SLICES, streamed=True, **FAULTS[fault])
    gateway = cluster.nginx(CONF, more=scene(cluster), workers=1)
    settled(cluster, gateway)
    assert made.fired == 1


def test_deleted_meanwhile(cluster):
    """An object that ends among the initial events is not in the list."""
    cluster.api.fault(resource=SLICES, streamed=True, mutate=deleted)
    gateway = cluster.nginx(CONF, more=scene(cluster), workers=1)
    for resource in BOTH:
        gateway.status.wait_state("watching", resource)
    assert gateway.status.resource(SLICES)["objects"] == 5
    assert gateway.get().status == 200


def test_shown_and_stopped_while_it_streams(cluster):
    """What does not end is shown, serves what it has, and ends nginx's life no later."""
    fault = cluster.api.fault(resource=SLICES, streamed=True, at_events=6, cut="stall")
    gateway = cluster.nginx(CONF, more=scene(cluster), sync=False, workers=1)
    gateway.status.wait_state("streaming", SLICES)
    gateway.status.wait_state("watching", "services")
    cluster.api.wait(lambda: fault.fired == 1)
    assert gateway.status.resource(SLICES)["resource_version"] == ""
    assert not gateway.status.informer()["synced"]
    gateway.stop()


def test_lagging_replica_does_not_turn_back_time(cluster):
    """An end that is older than ours: no newer object is taken back for it."""
    gateway = cluster.nginx(CONF, more=scene(cluster), workers=1)
    settled(cluster, gateway)
    old = cluster.api.rv
    gateway.status.wait_rv(cluster.slice("shop", "web", cluster.pods(1, "newest")))
    gateway.wait_backends({"newest-1"})
    lagging = cluster.api.fault(resource=SLICES, streamed=True, as_of=old)
    expire(cluster, SLICES)
    cluster.api.wait(lambda: lagging.fired == 1)
    (request,) = cluster.api.wait_requests(1, verb="list", resource=SLICES, streamed=False)
    assert rv_of(request.query["resourceVersion"]) > old
    assert gateway.backends(8) == {"newest-1": 8}
    gateway.status.wait_state("watching", SLICES)
    assert gateway.backends(8) == {"newest-1": 8}
    assert gateway.status.informer()["epoch"] == 1
    settled(cluster, gateway)


def test_restored_backup_that_is_ahead(cluster):
    """As etcdutl's --bump-revision does: old objects, but a newer version."""
    gateway = cluster.nginx(CONF, more=scene(cluster), workers=1)
    settled(cluster, gateway)
    backup = cluster.api.rv
    for n in range(3):
        lost = cluster.slice("shop", "web", cluster.pods(1, f"lost{n}"))
    gateway.status.wait_rv(lost)
    gateway.wait_backends({"lost2-1"})
    cluster.api.restore(backup, new_rv=lost + 1000)
    gateway.wait_backends({"after-1"})
    gateway.status.wait_rv(lost + 1000)
    assert gateway.wait_log("newer here than the API server has them")
    assert cluster.api.count(verb="list", resource=SLICES, streamed=False) == 1
    assert cluster.api.count(verb="list", resource="services", streamed=False) == 0
    settled(cluster, gateway)


def test_another_server_with_older_objects(cluster):
    """A snapshot of the cluster runs elsewhere, and the block names that."""
    gateway = cluster.nginx(CONF, more=scene(cluster), workers=1)
    settled(cluster, gateway)
    backup = cluster.api.rv
    gateway.status.wait_rv(cluster.slice("shop", "web", cluster.pods(1, "lost")))
    gateway.wait_backends({"lost-1"})
    cluster.api.refuse()
    cluster.api.restore(backup)
    cluster.api.listen()
    url = cluster.api.url.replace("127.0.0.1", "localhost")
    gateway.change(gone=True, block=informer(url, gateway.more))
    gateway.wait_backends({"after-1"})
    assert gateway.wait_log("newer here than the API server has them")
    settled(cluster, gateway)
