# What a worker's memory grows by while clients spell one Service in many ways,
# or hold requests open while it changes, and that it is given back.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""The memory of a worker: at most 48 MiB more, given back within 90 s."""

import os
import socket

import pytest
import test_views as views
from client import WAIT
from nginx import rss, wait_until

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.slow,
    pytest.mark.skipif(views.SANITIZED, reason="memory of the sanitizer's own"),
]

MORE = 48 * 1024
ENDPOINTS = 1000
CHANGES = int(os.environ.get("KUBE_PROOF_CHANGES", "1000"))

SLOW = """
    upstream dynamic { kube_service $http_x_service namespaces=shop form=dns; }
    server {
        listen 127.0.0.1:PORT;
        keepalive_requests 1000000;
        proxy_read_timeout 600s;
        proxy_http_version 1.1;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection $http_connection;
        location / { proxy_pass http://dynamic; }
    }
"""


def open_request(port, upgrade):
    """The socket of a request that is held, or of one that became a tunnel."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=WAIT)
    path = "/?status=101" if upgrade else "/?hold=1"
    head = [f"GET {path} HTTP/1.1", "Host: x", "X-Service: shop/web:http"]
    if upgrade:
        head += ["Upgrade: websocket", "Connection: Upgrade"]
    sock.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
    if upgrade:
        assert sock.recv(4096).startswith(b"HTTP/1.1 101")
    return sock


def given_back(gateway, worker, before, figure, what):
    """Within 90 s of the last use all but an eighth of what was allowed."""
    most = rss(worker)
    wait_until(lambda: rss(worker) - before < MORE / 8, 90)
    figure(f"{what}: {most - before} KiB more, {rss(worker) - before} KiB after some time")
    assert most - before <= MORE


def test_ten_thousand_spellings(cluster, figure):
    """However 10 000 requests spell one Service, it is one; and it changes."""
    many = views.Many(cluster, quick=True)
    many.service("web", ENDPOINTS)
    gateway = cluster.nginx(views.dynamic(), workers=1)
    (worker,) = gateway.workers()
    most = before = rss(worker)
    with views.client(gateway) as c:
        for i in range(10000):
            assert c.get(f"web.shop.svc.n{i}:80").status == 200
            most = max(most, rss(worker)) if i % 100 == 0 else most
            if i % 500 == 0:
                gateway.status.wait_rv(many.put("web", ENDPOINTS, skip=i // 500))
    assert most - before <= MORE
    given_back(gateway, worker, before, figure, "10 000 spellings")


@pytest.mark.parametrize("upgrade", [False, True], ids=["slow", "websocket"])
def test_held_over_changes(cluster, figure, upgrade):
    """One request is left open at each of 1 000 revisions of 1 000 endpoints."""
    backend = cluster.backends.add("0.0.0.0", 0, "any")
    many = views.Many(cluster)
    many.port = backend.port
    many.service("web", ENDPOINTS)
    gateway = cluster.nginx(SLOW, workers=1, connections=8192)
    (worker,) = gateway.workers()
    held = []
    try:
        with views.client(gateway) as c:
            assert c.get("shop/web:http").status == 200
            most = before = rss(worker)
            for n in range(CHANGES):
                gateway.status.wait_rv(many.put("web", ENDPOINTS, skip=n % 7))
                held.append(open_request(gateway.port, upgrade))
                if not upgrade:
                    wait_until(lambda: backend.active >= len(held))
                most = max(most, rss(worker)) if n % 10 == 0 else most
        own = (rss(worker) - before) / max(1, len(held))
        figure(f"{len(held)} held: {most - before} KiB more, {own:.1f} KiB a request")
        assert most - before <= MORE
        backend.release()
        for sock in held:
            assert upgrade or sock.recv(4096).startswith(b"HTTP/1.1 200")
    finally:
        for sock in held:
            sock.close()
    given_back(gateway, worker, before, figure, "websockets" if upgrade else "slow requests")
