# From a network that heals to requests that are routed by what was changed while
# it was cut: packets dropped on the way and at the sender.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""How long a healed network goes unnoticed, with the product's own pauses."""

import os
import random
import statistics
import sys
import threading
import time

import pytest
from cluster import Cluster

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cluster"))

import netns  # noqa: E402

CONF = """
    upstream web { kube_service shop/web; }
    server { listen 127.0.0.1:PORT; access_log off; location / { proxy_pass http://web; } }
"""

# The product's defaults, in place of the tests' short pauses.
BACKOFF = "backoff 800ms 30s unreachable=4s;"

BESIDE = 5

# seconds of the cut, rounds of each of the gateways beside each other, median and
# worst
CUTS = [(10, 3, 1.0, 2.0), (25, 2, 1.0, 2.0), (60, 1, 1.0, 2.0), (300, 1, 2.5, 4.5)]

# seconds: longer than the user timeout of 30 s, whenever the last packet was
LONGER = 33


def healing(space, cluster, gateway, cut, hook):
    """One cut; seconds from its end to the first request by the new state."""
    cluster.steady(gateway, "shop")
    time.sleep(random.uniform(0, 5))  # where in the probes' turn it is cut
    port = cluster.api.port
    space.drop(port, hook=hook)
    began = time.monotonic()
    time.sleep(random.uniform(0, cut / 2))
    (pod,) = cluster.pods(1, f"after-{cut}-{random.random()}")
    cluster.slice("shop", "web", [pod])
    time.sleep(max(0, cut - (time.monotonic() - began)))
    assert space.dropped()
    assert gateway.get().backend != pod.name
    space.heal()
    healed = time.monotonic()
    while gateway.get().backend != pod.name:
        assert time.monotonic() < healed + 60
        time.sleep(0.02)
    return time.monotonic() - healed


def gateway_beside(cut, rounds, hook, found, failed):
    """
    A namespace, a stand-in, and a gateway that is cut off again and again.  Of
    a connection that is given up meanwhile the server learns only when it sends
    something; what is counted is those that the gateway has.
    """
    try:
        with netns.NetNS(inside=True) as space, Cluster() as cluster:
            cluster.service("shop", "web")
            gateway = cluster.nginx(CONF, more=BACKOFF, workers=1)
            for _ in range(rounds):
                found.append(healing(space, cluster, gateway, cut, hook))
            watches = max(
                cluster.api.max_concurrent("watch", resource, "shop")
                for resource in ("services", "endpointslices")
            )
            assert watches <= 2
            assert cluster.api.count(verb="list") == 2
    except BaseException as error:
        failed.append(error)
        raise


@pytest.mark.timeout(900)
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
@pytest.mark.parametrize("hook", ["input", "output"])
@pytest.mark.parametrize("cut, rounds, median, worst", CUTS)
def test_healing(figure, cut, rounds, median, worst, hook):
    """Without a list: the watch goes on where it was."""
    found, failed = [], []
    beside = [
        threading.Thread(target=gateway_beside, args=(cut, rounds, hook, found, failed))
        for _ in range(BESIDE)
    ]
    for thread in beside:
        thread.start()
    for thread in beside:
        thread.join()
    assert not failed, failed
    found.sort()
    figure(
        f"{'on the way' if hook == 'input' else 'at the sender'}, {cut} s: "
        f"median {statistics.median(found):.2f} s, worst {found[-1]:.2f} s of {len(found)}: "
        + " ".join(f"{t:.2f}" for t in found)
    )
    assert statistics.median(found) <= median and found[-1] <= worst


@pytest.mark.timeout(300)
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
@pytest.mark.parametrize("hook", ["input", "output"])
def test_given_up_again_and_again(hook):
    """Two watches at most, though the server knows of the end of none before."""
    failed = []
    beside = threading.Thread(target=gateway_beside, args=(LONGER, 2, hook, [], failed))
    beside.start()
    beside.join()
    assert not failed, failed
