# The informer shares nginx's cache manager process with proxy_cache: two caches
# under eviction, and events are still published in time.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""The informer beside two caches that evict."""

import os
import time

import pytest
from nginx import PATIENCE, wait_until

CONF = """
    proxy_cache_path cache_one levels=1:2 keys_zone=one:1m max_size=1m inactive=2s
        manager_files=20 manager_sleep=50ms manager_threshold=100ms use_temp_path=off;
    proxy_cache_path cache_two levels=1:2 keys_zone=two:1m max_size=1m inactive=2s
        manager_files=20 manager_sleep=50ms manager_threshold=100ms use_temp_path=off;
    upstream web { kube_service shop/web; keepalive 8; }
    server {
        listen 127.0.0.1:PORT;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_cache_valid 200 2s;
        location / { proxy_pass http://web; }
        location /one { proxy_pass http://web; proxy_cache one; proxy_cache_key $uri$arg_n; }
        location /two { proxy_pass http://web; proxy_cache two; proxy_cache_key $uri$arg_n; }
    }
"""

BAR = 0.250
CHANGES = 60


def files(gateway):
    """How many files the caches hold."""
    return sum(
        len(names)
        for which in ("cache_one", "cache_two")
        for _, _, names in os.walk(gateway.path(which))
    )


@pytest.mark.slow
def test_events_are_published_under_eviction(cluster, figure):
    cluster.service("shop", "web", 1)
    gateway = cluster.nginx(CONF, workers=2)
    titles = list(gateway.family().values())
    assert len([t for t in titles if ": cache manager" in t]) == 1
    n = 0
    most = 0
    for n in range(1200):
        assert gateway.get(f"/{'one' if n % 2 else 'two'}?n={n}").status == 200
        if n % 100 == 0:
            most = max(most, files(gateway))
    most = max(most, files(gateway))
    took = []
    low = most
    for change in range(CHANGES):
        started = time.monotonic()
        rv = cluster.slice("shop", "web", [])
        gateway.status.wait_rv(rv)
        took.append(time.monotonic() - started)
        low = min(low, files(gateway))
    # void unless files were evicted meanwhile
    wait_until(lambda: files(gateway) < most / 2, 30 * PATIENCE)
    took.sort()
    p50, p99 = took[len(took) // 2], took[int(len(took) * 0.99)]
    figure(
        f"published after {p50 * 1000:.1f} ms median, {p99 * 1000:.1f} ms p99 "
        f"(bar 250 ms) while {most} files were evicted from two caches"
    )
    assert p99 < 10 * BAR * PATIENCE
    assert cluster.api.count(verb="list") == 2


def test_caches_work_and_reload(cluster):
    """Cache manager and informer are one process, before and after a reload."""
    pods = cluster.service("shop", "web", 1)
    gateway = cluster.nginx(CONF, workers=1)
    for _ in range(2):
        for _ in range(3):
            assert gateway.get("/one?n=1").status == 200
        assert gateway.informer() == gateway.status.informer()["writer"]["pid"]
        gateway.reload(gone=True)
        gateway.status.wait(lambda i: i["writer"]["pid"] == gateway.informer())
    assert pods[0].requests <= 3
