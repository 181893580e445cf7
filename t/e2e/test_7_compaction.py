# Line 7: the history is gone when the watch comes back.  The relist is a diff:
# what did not change keeps its generation and its instances.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Compaction of etcd while the watch is cut."""

from nginx import wait_until
from report import void
from rig import failures
from testbed import ADVERTISE

UNCHANGED = ["web", "api"]


def test_compaction(world, figures):
    pods = world.deploy("web", 3)
    world.deploy("api", 2)
    hosts = [p.split(":")[0] for p in pods]
    world.direct("direct", hosts[:1])
    gateway = world.gateway([*UNCHANGED, "direct"])
    load = world.load(*(gateway.url(name) for name in UNCHANGED), rate=300, post_share=0.25)
    load.wait_total(200)
    gateway.routed("direct", pods[0])
    lists, relists, rebuilds = gateway.lists(), gateway.count("relists"), gateway.rebuilds()
    generations = {n: gateway.status.generation(world.name, n) for n in UNCHANGED}

    # Cut first, changed then: else the kernel would deliver in the end what
    # the server had sent, even after its death.
    world.tb.kill_apiserver()
    world.net.drop(world.tb.port, ADVERTISE)
    world.tb.start_apiserver()
    for n in range(1, 21):
        world.point("direct", hosts[n % 2])
    world.tb.compact()
    world.tb.kill_apiserver()
    world.tb.start_apiserver()
    if not world.net.dropped():
        void("no packet was dropped")
    world.net.heal()
    world.point("direct", hosts[2])

    slices = ("endpointslices", world.name)
    wait_until(lambda: gateway.count("relists")[slices] > relists[slices], 60,
               lambda: f"a relist: {gateway.status.informer()}")
    wait_until(lambda: gateway.status.used(world.name, "direct") == [hosts[2]], 60,
               "the change of the outage")
    load.wait_total(200)
    again = {k: v - relists[k] for k, v in gateway.count("relists").items()}
    listed = {k: v - lists[k] for k, v in gateway.lists().items()}
    rebuilt = gateway.rebuilds() - rebuilds
    result = load.stop()

    figures.add("7", "relists after a compaction; LISTs", "1; 1",
                f"{again[slices]}; {listed[slices]}")
    figures.add("7", "instances rebuilt of unchanged Services; failed requests", "0; 0",
                f"{rebuilt:g}; {result['failed']} of {result['total']}")
    assert again[slices] == 1 and max(again.values()) == 1, again
    assert listed == again
    assert rebuilt == 0, "an instance was rebuilt"
    assert {n: gateway.status.generation(world.name, n) for n in UNCHANGED} == generations
    assert result["failed"] == 0, failures(result)
    gateway.routed("direct", pods[2])
    assert gateway.rebuilds() > rebuilds, "void: rebuilds are not counted"
    world.assert_equal(gateway, [*UNCHANGED, "direct"])
