# Endpoints end to end: where there are no EndpointSlices, and where they are
# asked for; the same pods serve as by EndpointSlices.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""core/v1 Endpoints."""

import signal

import objects
import pytest
from cluster import informer

CONF = """
    upstream web { kube_service shop/web:http; }
    upstream admin { kube_service shop/web:admin; }
    server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://web; }
        location /admin { proxy_pass http://admin; }
    }
"""

SLICES = "endpointslices"
PORTS = (("http", 80, "http"), ("admin", 81, "admin"))


def service(cluster):
    """A Service of two ports, without endpoints."""
    cluster.api.put(objects.service("shop", "web", ports=PORTS))


def subset(pods, port, not_ready=()):
    """Pods, which listen at one port, as a subset."""

    def addresses(some):
        return [
            {
                "ip": p.host,
                "nodeName": "node-1",
                "targetRef": {"kind": "Pod", "namespace": "shop", "name": p.name},
            }
            for p in some
        ]

    return (addresses(pods), ((port, pods[0].port),), addresses(not_ready))


def put(cluster, *subsets):
    """Endpoints of the Service; returns the version."""
    return cluster.api.put(objects.endpoints("shop", "web", subsets))


@pytest.mark.parametrize("how", ["auto", "endpoints"])
def test_serves(cluster, how):
    """Each port leads where its subset says, and a change arrives."""
    if how == "auto":
        cluster.api.settings.disabled.add(SLICES)
    service(cluster)
    web, admin = cluster.pods(2, "web"), cluster.pods(1, "admin")
    put(cluster, subset(web, "http", not_ready=cluster.pods(1, "not")), subset(admin, "admin"))
    gateway = cluster.nginx(CONF, more=f"endpoints {how};", workers=1)
    gateway.wait_backends({"web-1", "web-2"})
    gateway.wait_backends({"admin-1"}, "/admin")

    gateway.status.wait_rv(put(cluster, subset(admin, "http"), subset(web, "admin")), "endpoints")
    gateway.wait_backends({"admin-1"})
    gateway.wait_backends({"web-1", "web-2"}, "/admin")
    assert gateway.status.informer()["degraded"] == []
    rows = {row["resource"]: row for row in gateway.status.informer()["resources"]}
    assert set(rows) == {"services", "endpoints"}
    cluster.equal(gateway)

    cluster.api.delete("endpoints", "shop", "web")
    gateway.wait_status_code(502)


def test_slices_where_there_are_any(cluster):
    """auto: Endpoints are not asked for, whatever is in them."""
    service(cluster)
    web, wrong = cluster.pods(1, "web"), cluster.pods(1, "wrong")
    cluster.slice("shop", "web", web)
    put(cluster, subset(wrong, "http"))
    gateway = cluster.nginx(CONF, more="endpoints auto;", workers=1)
    gateway.wait_backends({"web-1"})
    assert not cluster.api.find("list", "endpoints") + cluster.api.find("watch", "endpoints")


def test_not_decided_without_services(cluster):
    """A proxy that answers 404 to everything is no API server without slices."""
    service(cluster)
    cluster.slice("shop", "web", cluster.pods(1, "web"))
    cluster.api.fault(
        status=404, body=b"404 page not found\n", content_type="text/plain", times=None
    )
    gateway = cluster.nginx(CONF, sync=False, workers=1)
    for resource in ("services", SLICES):
        cluster.api.wait_requests(1, verb="list", resource=resource)
    cluster.api.clear_faults()
    gateway.status.wait_synced()
    gateway.wait_backends({"web-1"})
    rows = {row["resource"] for row in gateway.status.informer()["resources"]}
    assert rows == {"services", SLICES}


def test_stays_so(cluster):
    """A successor and a reload go on with Endpoints, without a list."""
    cluster.api.settings.disabled.add(SLICES)
    service(cluster)
    put(cluster, subset(cluster.pods(1, "web"), "http"))
    gateway = cluster.nginx(CONF, workers=1)
    gateway.wait_backends({"web-1"})
    gateway.status.wait_state("watching", "endpoints")
    asked = len(cluster.api.find("list")) + len(
        [r for r in cluster.api.find("watch") if "sendInitialEvents" in r.query]
    )
    gateway.allow(r"cache manager process \d+ exited on signal 9")
    gateway.kill(signal.SIGKILL, gateway.informer())
    gateway.status.wait_rv(put(cluster, subset(cluster.pods(1, "next"), "http")), "endpoints")
    gateway.wait_backends({"next-1"})
    gateway.reload(gone=True)
    gateway.status.wait_rv(put(cluster, subset(cluster.pods(1, "last"), "http")), "endpoints")
    gateway.wait_backends({"last-1"})
    assert asked == len(cluster.api.find("list")) + len(
        [r for r in cluster.api.find("watch") if "sendInitialEvents" in r.query]
    )


@pytest.mark.parametrize("then", ["endpoints", SLICES])
def test_state_file(cluster, then):
    """A cold start serves from a file of Endpoints, then from what there is."""
    cluster.api.settings.disabled.add(SLICES)
    service(cluster)
    put(cluster, subset(cluster.pods(1, "web"), "http"))
    block = informer(cluster.api.url, state="state_path state; state_max_age 1h;")
    gateway = cluster.nginx(CONF, block=block, workers=1)
    gateway.wait_backends({"web-1"})
    gateway.status.wait(lambda i: i["state_file"]["written"])

    gateway.restart(change=cluster.api.refuse)
    gateway.status.wait(lambda i: i["state_file"]["in_use"])
    gateway.wait_backends({"web-1"})
    assert gateway.get().headers["x-kube-endpoint-state"] == "state_file"

    put(cluster, subset(cluster.pods(1, "next"), "http"))
    if then == SLICES:
        cluster.api.settings.disabled.discard(SLICES)
        cluster.slice("shop", "web", cluster.pods(1, "slice"))
    cluster.api.listen()
    gateway.wait_backends({"next-1"} if then == "endpoints" else {"slice-1"})
    gateway.status.wait_state("watching", then)
    rows = {row["resource"] for row in gateway.status.informer()["resources"]}
    assert rows == {"services", then}
