# Line 1: rolling restarts under load from kept connections fail no request,
# where static servers in the same nginx, at the same time, do.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Rolling restarts of a Deployment under load."""

import pytest
from report import void
from rig import failures

REPLICAS = 10
REQUESTS = 20000

# Without preStop a request is served while one of the pods lives that were there
# a moment ago: a new one takes a second, as long as beside other work all of the
# control plane may stand still (0.65 s was seen), so that not all are replaced.
VARIANTS = {
    "a": ("preStop 2 s, proxy_next_upstream off", 2000, 100, "proxy_next_upstream off;", 0.25),
    "b": ("preStop 2 s", 2000, 100, "", 0.25),
    "c": ("preStop 0 s, GET only", 0, 1000, "", 0.0),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_rolling_restarts(world, figures, variant):
    what, prestop, start, location, posts = VARIANTS[variant]
    pods = world.deploy("web", REPLICAS, prestop_ms=prestop, start_ms=start)
    # Else, by chance, one worker may take all connections.
    gateway = world.gateway(["web"], static={"fixed": pods}, location=location,
                            listen="reuseport")
    mix = {"delays": ["0ms", "50ms"], "post_share": posts}

    load = world.load(gateway.url("web"), connections=32, requests=REQUESTS, **mix)
    control = world.load(gateway.url("fixed"), connections=8, rate=100, **mix)
    rolled = 0
    while load.running():
        world.roll("web")
        rolled += load.running()
    result, beside = load.result(), control.stop()

    figures.add("1" + variant, f"rolling restarts, {what}: failed requests",
                "0 (static servers fail)",
                f"{result['failed']} of {result['total']}, {rolled} restarts, "
                f"{len(result['pods'])} pods (static: {beside['failed']} of {beside['total']})")
    assert result["failed"] == 0, failures(result)
    if result["total"] < REQUESTS or rolled < 2 or len(result["pods"]) < 3 * REPLICAS:
        void(f"{result['total']} requests, {rolled} restarts, {len(result['pods'])} pods seen")
    if len(result["workers"]) < 2:
        void(f"one worker had all requests: {result['workers']}")
    if not beside["failed"]:
        void("the control with static servers did not fail")
    world.assert_equal(gateway, ["web"])
    assert set(gateway.count("relists").values()) == {0}
