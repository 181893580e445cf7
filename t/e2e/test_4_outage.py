# Line 4: the API server killed, and cut off without a word.  Requests go on,
# the age tells, and once it is back what was missed is caught up with.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Outages of the API server under load."""

import itertools
import time

import pytest
from nginx import wait_until
from report import void
from rig import LONG, failures
from testbed import ADVERTISE

CAUGHT_UP = 8
RUNS = 5 if LONG else 1
# In the short form one of the two is long enough to see an age of 31 s.
SECONDS = {"kill": 60 if LONG else 33, "drop": 60 if LONG else 20}
# idle_timeout 1s: stale 31 s after the last evidence; the default: after 120 s.
STALE_AFTER = 31


class Outage:
    """The API server is away for nginx between enter and exit."""

    def __init__(self, world, kind):
        self.world, self.kind = world, kind

    def __enter__(self):
        self.began = time.monotonic()
        if self.kind == "kill":
            self.world.tb.kill_apiserver()
        else:
            self.world.net.drop(self.world.tb.port, ADVERTISE)
        return self

    def __exit__(self, kind, *_exc):
        if self.kind == "kill":
            self.world.tb.start_apiserver()
        else:
            if not self.world.net.dropped() and kind is None:
                void("no packet was dropped")
            self.world.net.heal()
        self.healed = time.monotonic()


def lasts(outage, seconds, gateway, watchful):
    """Waits until it has lasted so long; the ages seen meanwhile."""
    ages = []
    for step in itertools.count(1):
        due = outage.began + min(step * 2, seconds)
        wait_until(lambda: time.monotonic() >= due, seconds + 5)
        i = gateway.status.informer()
        assert i["synced"] and i["ready"] and not i["stale"], i
        ages.append(i["age_seconds"])
        if time.monotonic() - outage.began > 5 and watchful.status.informer()["stale"]:
            watchful.stale_after = min(watchful.stale_after, time.monotonic() - outage.began)
        if time.monotonic() >= outage.began + seconds:
            return ages


@pytest.mark.parametrize("kind", ["kill", "drop"])
def test_outage(world, figures, kind):
    pods = world.deploy("web", 4)
    hosts = [p.split(":")[0] for p in pods]
    world.direct("direct", hosts[:1])
    gateway = world.gateway(["web", "direct"])
    watchful = world.gateway(["web"], block="idle_timeout 1s;")
    load = world.load(gateway.url("web"), rate=400, post_share=0.25, delays=["0ms", "50ms"])
    load.wait_total(200)
    seconds = SECONDS[kind]
    times, now = [], 0

    for run in range(RUNS):
        gateway.routed("direct", pods[now])
        lists, relists = gateway.lists(), gateway.count("relists")
        generation = gateway.status.generation(world.name, "web")
        watchful.stale_after = float("inf")
        now = (now + 1) % len(pods)
        sent = load.progress()["total"]
        world.touch("web")
        wait_until(lambda: gateway.status.informer()["age_seconds"] < 5, 60, "a low age")
        with Outage(world, kind) as outage:
            if kind == "drop":
                world.point("direct", hosts[now])
            ages = lasts(outage, seconds, gateway, watchful)
            if load.progress()["total"] - sent < 100 * seconds:
                void(f"{load.progress()['total'] - sent} requests during the outage")
        if kind == "kill":
            world.point("direct", hosts[now])
        times.append(gateway.routed("direct", pods[now], 10 * CAUGHT_UP) - outage.healed)

        assert ages == sorted(ages) and ages[-1] >= seconds - 3, f"age_seconds: {ages}"
        world.touch("web")
        wait_until(lambda: gateway.status.informer()["age_seconds"] < seconds / 2, 60,
                   "an age that is low again")
        assert gateway.status.generation(world.name, "web") == generation
        if seconds > STALE_AFTER:
            assert watchful.stale_after < seconds + 1, "never stale"
            assert watchful.stale_after > STALE_AFTER - 3, f"stale: {watchful.stale_after:.1f} s"
            wait_until(lambda: not watchful.status.informer()["stale"], 60, "not stale any more")
            if not run:
                figures.add("4", f"{kind}: stale shown (idle_timeout 1s)", "31 s",
                            f"{watchful.stale_after:.0f} s after the {kind}")
        if kind == "drop":
            assert gateway.lists() == lists, "a LIST although nothing was out of the window"
        else:
            # A server that was restarted may not know the old version any more.
            more = {k: v - lists[k] for k, v in gateway.lists().items()}
            gone = {k: v - relists[k] for k, v in gateway.count("relists").items()}
            assert more == gone and max(more.values()) <= 1, (more, gone)
            figures.add("4", "kill: LISTs after the restart", "only after a 410",
                        sum(more.values()))

    result = load.stop()
    figures.add("4", f"{kind} for {seconds} s: failed requests", 0,
                f"{result['failed']} of {result['total']}")
    assert result["failed"] == 0, failures(result)
    figures.time("4", f"{kind} for {seconds} s: caught up, worst of {RUNS}", CAUGHT_UP,
                 max(times), "s", f" ({', '.join(f'{t:.1f}' for t in times)})")
    world.assert_equal(gateway, ["web", "direct"])
    world.assert_equal(watchful, ["web", "direct"])
