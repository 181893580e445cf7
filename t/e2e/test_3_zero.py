# Line 3: a Deployment scaled to nothing and back, ten times.  Where the slice
# shows nothing usable the answer is 502 and says why; nothing sticks.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Scale 1, 0, 1."""

from nginx import wait_until
from report import SLACK, void
from rig import Prober, SliceWatch

TIMES = 10
BAR = 0.050


def spans(events):
    """[(from, to)] in which nothing was usable; and when it was ready again."""
    found, since = [], None
    for at, ready, usable in events:
        if not usable and since is None:
            since = at
        if usable and since is not None:
            found.append((since, at))
            since = None
        assert ready or not usable or since is None
    return found


def test_to_zero_and_back(world, figures):
    world.deploy("one", 1, prestop_ms=200)
    gateway = world.gateway(["one"])
    before = (gateway.workers(), gateway.informer())

    with SliceWatch(world.tb, world.name, "one") as watch, Prober(gateway, "one") as prober:
        def answered(status, more=20):
            start = len(prober.answers) + more
            wait_until(lambda: len(prober.answers) > start and prober.answers[-1][2] == status,
                       10, lambda: f"{status}: {prober.answers[-1:]}\n{gateway.tail()}")

        answered(200)
        for _ in range(TIMES):
            world.tb.scale(world.name, "one", 0)
            wait_until(lambda: watch.events[-1][2] == 0, 20, "an empty slice")
            answered(502)
            world.tb.scale(world.name, "one", 1)
            wait_until(lambda: watch.events[-1][1] == 1, 20, "a ready endpoint")
            answered(200)

    assert (gateway.workers(), gateway.informer()) == before, "a process was replaced"
    found = spans(watch.events)
    if len(found) != TIMES:
        void(f"the slice was empty {len(found)} times")

    late, first, count = [], [], 0
    for empty, usable in found:
        inside = [a for a in prober.answers if a[0] >= empty and a[1] <= usable]
        nothing = [(502, "no_endpoints"), (502, "no_ready_endpoint")]
        wrong = [a for a in inside if (a[2], a[3]) not in nothing]
        late.append(max((a[1] - empty for a in wrong), default=0))
        first.append(min(a[1] for a in prober.answers if a[1] > empty and a[2] == 200 and
                         a[0] > empty + late[-1]) - usable)
        count += len(inside) - len(wrong)
        settled = [a for a in wrong if a[0] > empty + SLACK * BAR]
        assert not settled, f"answers while nothing was usable: {settled[:5]}"
    if count < 10 * TIMES:
        void(f"{count} answers while nothing was usable")
    figures.add("3", "nothing usable: 502 with a reason", "always",
                f"{count} answers, {TIMES} times; settled {max(late) * 1e3:.1f} ms after the slice")
    figures.time("3", "first 200 after the slice says ready, worst", BAR * 1e3, max(first) * 1e3)
