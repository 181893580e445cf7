# A Service of 100 000 endpoints that change all the time, and a balancer whose
# Service changes all the time, each beside what does not change in the same run.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""What a large or busy Service costs its neighbours: ratios within one run."""

import collections
import os
import time

import objects
import pytest
import test_views as views
from client import repeated
from cluster import informer
from nginx import rss

pytestmark = [pytest.mark.timeout(1800), pytest.mark.slow]

# more endpoints than slices may be joined of are not read at all
COUNT = int(os.environ.get("KUBE_PROOF_ENDPOINTS", "100000"))
SLICE = 100


def quantile(values, q):
    """Of a list of seconds, in ms."""
    return 1000 * sorted(values)[int(q * (len(values) - 1))]


def hosts(start, count):
    """Loopback addresses of a large Service."""
    return [
        f"127.{2 + n // 62500}.{n // 250 % 250}.{n % 250 + 1}" for n in range(start, start + count)
    ]


def put_slice(cluster, number, port, skip=0):
    """One slice of the large Service, without the first skip endpoints."""
    ends = [
        objects.endpoint(h, pod=f"large-{h}", node=f"node-{number % 50}", zone="a", ns="shop")
        for h in hosts(number * SLICE, SLICE)[skip:]
    ]
    return cluster.slice("shop", "large", ends, f"s{number}", ports=(("http", port),))


def test_flapping_beside_small(cluster, figure):
    """p99 of the small Service at most 5 ms above what it is alone; 40 MiB at most."""
    many = views.Many(cluster, quick=True)
    many.service("small", 2)
    cluster.api.put(objects.service("shop", "large", ports=(("http", 80, "http"),)))
    for number in range(COUNT // SLICE):
        rv = put_slice(cluster, number, many.port)
    gateway = cluster.nginx(
        views.dynamic(), workers=1, block=informer(cluster.api.url, zone="kube 64m"), sync=False
    )
    gateway.allow(r"more than 16384 usable endpoints")
    gateway.status.wait_synced(timeout=300)
    gateway.status.wait_rv(rv, timeout=300)
    (worker,) = gateway.workers()
    most = 0

    def measure(client, count, beside=None):
        nonlocal most
        times = []
        for n in range(count):
            begun = time.monotonic()
            assert client.get("shop/small:http").status == 200
            times.append(time.monotonic() - begun)
            if n % 20 == 0:
                if beside is not None:
                    assert beside.get("shop/large:http").status == 200
                most = max(most, rss(worker))
        return times

    with views.client(gateway) as small, views.client(gateway) as large:
        measure(small, 1000)
        before = rss(worker)
        alone = measure(small, 5000)
        assert large.get("shop/large:http").status == 200

        def flap(n):
            put_slice(cluster, n * 37 % (COUNT // SLICE), many.port, skip=1 + n % 3)

        with repeated(flap, 50) as flaps:
            begun = time.monotonic()
            together = []
            while len(together) < 10000 or time.monotonic() - begun < 30:
                together += measure(small, 500, large)
            rate = len(flaps) / (time.monotonic() - begun)
    p99 = [quantile(t, 0.99) for t in (alone, together)]
    p50 = [quantile(t, 0.5) for t in (alone, together)]
    built = views.rebuilds(gateway)
    figure(
        f"{COUNT} endpoints, {rate:.0f} changes a second, {built:.0f} builds; small Service, ms, "
        f"alone and beside: p50 {p50[0]:.2f} {p50[1]:.2f}, p99 {p99[0]:.2f} {p99[1]:.2f}, "
        f"longest {1000 * max(together):.1f}; worker {(most - before) / 1024:.1f} MiB more"
    )
    assert p99[1] - p99[0] <= 5
    assert most - before <= 40 * 1024


BESIDE = """
    upstream web    { METHOD kube_service shop/web; }
    upstream static { METHOD SERVERS }
    server {
        listen 127.0.0.1:PORT;
        keepalive_requests 1000000;
        location /       { proxy_pass http://web; }
        location /static { proxy_pass http://static; }
    }
"""


@pytest.mark.parametrize("method", ["", "least_conn;", "random;"])
def test_twenty_changes_a_second(cluster, figure, method):
    """Ten pods share requests as ten static servers do, whatever comes and goes beside."""
    pods = cluster.service("shop", "web", 10)
    spares = cluster.pods(3, "spare", port=pods[0].port)
    servers = " ".join(f"server {p.address};" for p in pods)
    text = BESIDE.replace("METHOD", method).replace("SERVERS", servers)
    gateway = cluster.nginx(text, workers=1)

    def change(n):
        cluster.slice("shop", "web", pods + spares[: n % 4])

    found = {"/": collections.Counter(), "/static": collections.Counter()}
    before = views.rebuilds(gateway)
    with repeated(change, 20) as changes:
        begun = time.monotonic()
        while sum(found["/"].values()) < 6000 or time.monotonic() - begun < 20:
            for path, counted in found.items():
                answer = gateway.get(path)
                assert answer.status == 200
                counted[answer.backend] += 1
        rate = len(changes) / (time.monotonic() - begun)
    built = views.rebuilds(gateway) - before
    names = {p.name for p in pods}
    spread = {}
    for path, counted in found.items():
        shares = [counted[name] for name in names]
        spread[path] = max(abs(s * len(shares) / sum(shares) - 1) for s in shares)
    figure(
        f"{method or 'round robin'}: {rate:.0f} changes a second, {built:.0f} builds; the pod "
        f"furthest from its share: {100 * spread['/']:.1f} %, "
        f"static {100 * spread['/static']:.1f} %"
    )
    assert set(found["/static"]) == names
    # a random choice spreads shares by itself: five standard deviations of it
    chance = 5 / (sum(found["/"].values()) / len(names)) ** 0.5
    assert spread["/"] <= (chance if method == "random;" else 0.10)
