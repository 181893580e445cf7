# A WatchList that never gets its end, in real time: 10 s without a byte, then a
# plain list, and no further WatchList.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Silence in place of the bookmark that ends the initial events."""

import pytest

CONF = """
    upstream web { kube_service shop/web; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://web; } }
"""

SLICES = "endpointslices"


@pytest.mark.timeout(180)
@pytest.mark.parametrize("silence", ["before the head", "no bookmark"])
def test_never_ends(cluster, figure, silence):
    cluster.service("shop", "web")
    if silence == "no bookmark":
        cluster.api.settings.initial_end = False
    else:
        cluster.api.fault(streamed=True, delay=3600, times=None)
    gateway = cluster.nginx(CONF, more="watch_list auto;", sync=False, workers=1)
    first = {}
    for resource in ("services", SLICES):
        (plain,) = cluster.api.wait_requests(
            1, 60, verb="list", resource=resource, streamed=False
        )
        (stream,) = cluster.api.find(resource=resource, streamed=True)
        first[resource] = plain.started - stream.started
        assert first[resource] >= 9.5
    figure(f"{silence}: plain lists after {max(first.values()):.1f} s")
    gateway.status.wait_synced()
    assert gateway.get().status == 200

    # it is remembered; where not even a head came, from the second time on: the
    # first may have been an outage
    lists = 2 if silence == "no bookmark" else 4
    status = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n'
    for resource in ("services", SLICES):
        gateway.status.wait_state("watching", resource)
    for n in range(lists, 0, -2):
        plain = cluster.api.count(verb="list", streamed=False)
        cluster.api.inject(status)
        cluster.api.wait(
            lambda: cluster.api.count(verb="list", streamed=False) == plain + 2, 60
        )
        for resource in ("services", SLICES):
            gateway.status.wait_state("watching", resource)
    assert cluster.api.count(streamed=True) == lists
