# Line 3: a Deployment scaled to nothing and back, ten times.  Where the slice
# shows nothing usable the answer is 502 and says why; nothing sticks.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Scale 1, 0, 1."""

from nginx import wait_until
from report import void
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
                       60, lambda: f"{status}: {prober.answers[-1:]}\n{gateway.tail()}")

        answered(200)
        for _ in range(TIMES):
            world.tb.scale(world.name, "one", 0)
            wait_until(lambda: watch.events[-1][2] == 0, 60, "an empty slice")
            answered(502)
            world.tb.scale(world.name, "one", 1)
            wait_until(lambda: watch.events[-1][1] == 1, 60, "a ready endpoint")
            answered(200)

    assert (gateway.workers(), gateway.informer()) == before, "a process was replaced"
    found = spans(watch.events)
    if len(found) != TIMES:
        void(f"the slice was empty {len(found)} times")

    late, first, count = [], [], 0
    nothing = [(502, "no_endpoints"), (502, "no_ready_endpoint")]
    for empty, usable in found:
        inside = [a for a in prober.answers if a[0] >= empty and a[1] <= usable]
        seen = []
        for worker in {a[4] for a in inside}:
            mine = [a for a in inside if a[4] == worker]
            said = [(a[2], a[3]) in nothing for a in mine]
            behind = said.index(True) if True in said else len(said)
            seen += [a[1] for a in mine[:behind]]
            # It may know of the next endpoint before this watch does; never of an old one.
            assert said[behind:] == sorted(said[behind:], reverse=True), (worker, said)
            count += sum(said)
        late.append(max(seen, default=empty) - empty)
        first.append(min(a[1] for a in prober.answers if a[1] > empty and a[2] == 200 and
                         a[0] > empty + late[-1]) - usable)
    if count < 10 * TIMES:
        void(f"{count} answers while nothing was usable")
    figures.add("3", "nothing usable: 502 with a reason", "always",
                f"{count} answers, {TIMES} times")
    figures.time("3", "nothing usable: 502 after the slice, worst", BAR * 1e3, max(late) * 1e3)
    figures.time("3", "first 200 after the slice says ready, worst", BAR * 1e3, max(first) * 1e3)
