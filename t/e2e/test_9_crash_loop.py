# Line 9: the informer is killed again and again for as long as pods come and
# go: what a crash loop costs is what it must, a second of freshness each time.
#
# KUBE_PROOF=1: forty kills, else six.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""An informer that is killed every three seconds while a Deployment scales."""

import itertools
import os
import time

import kubeapi
from report import void
from rig import KILLED, Beside, failures
from test_5_kill import kill_informer

KILLS = 40 if os.environ.get("KUBE_PROOF") == "1" else 6
EVERY_S = 3
RATE = 200
RESUME_S = 1.7
REPLICAS = (3, 8)


class Scaler(Beside):
    """Scales a Deployment up and down, twice a second."""

    def __init__(self, world, name):
        super().__init__()
        self.tb = world.view()
        self.namespace = world.name
        self.deployment = name
        self.scaled = 0

    def work(self):
        for n in itertools.cycle(REPLICAS):
            if self.halt.wait(0.5):
                break
            self.tb.scale(self.namespace, self.deployment, n)
            self.scaled += 1
        self.tb.api.close()


def test_killed_while_pods_come_and_go(world, figures):
    """Pods serve longer after their deletion than a resume takes."""
    world.deploy("web", REPLICAS[0], prestop_ms=6000)
    gateway = world.gateway(["web"])
    gateway.allow(KILLED)
    lists, relists = gateway.lists(), gateway.count("relists")
    load = world.load(gateway.url("web"), rate=RATE)
    took = []
    with Scaler(world, "web") as scaler:
        load.wait_total(50)
        for _ in range(KILLS):
            due = time.monotonic() + EVERY_S
            seconds, _ = kill_informer(gateway)
            took.append(seconds)
            scaler.halt.wait(max(0, due - time.monotonic()))
        load.wait_total(50)
        result = load.stop()
    if scaler.scaled < KILLS:
        void(f"scaled {scaler.scaled} times in {KILLS} kills")
    assert result["failed"] == 0, failures(result)
    assert gateway.lists() == lists, "a LIST after a kill"
    assert gateway.count("relists") == relists
    path = kubeapi.path_of("Deployment", world.name, "web", "apps/v1")
    world.tb.wait_ready(world.name, "web", world.tb.api.get(path)["spec"]["replicas"])
    world.assert_equal(gateway, ["web"])
    figures.add("9", f"informer killed every {EVERY_S} s, {KILLS} times: LISTs, failed requests",
                "0, 0", f"0, 0 of {result['total']}; scaled {scaler.scaled} times")
    figures.time("9", "crash loop: watches resumed, worst", RESUME_S, max(took), "s",
                 f" (median {sorted(took)[len(took) // 2]:.3f} s)")
