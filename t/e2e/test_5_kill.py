# Line 5: SIGKILL of the informer process, of a worker, and of all workers,
# while the cluster changes and requests flow.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Processes of nginx killed during changes and load."""

import contextlib
import os
import signal
import time

from nginx import alive, wait_until
from report import void
from rig import KILLED, LONG, Churn, Roller, failures

RESUME = 1.0
ROUNDS = 4
KILLS = 5
DAMPED_FROM = 4
CUT = {"first byte", "header", "body"}


@contextlib.contextmanager
def changing(world, prestop_ms):
    """A Deployment that rolls and a direct Service that changes meanwhile."""
    world.deploy("web", 4, prestop_ms=prestop_ms)
    world.direct("churn", ["10.244.0.31"])
    hosts = [f"10.244.0.{n}" for n in range(31, 36)]
    with Churn(world, "churn", hosts) as churn, Roller(world, "web", pause=0.5):
        yield churn


def kill_informer(gateway):
    """Kills it; how long until all watches were resumed by another one."""
    before = gateway.status.informer()
    watches = gateway.count("watches")
    pid = gateway.informer()
    assert before["writer"]["pid"] == pid, before
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    delayed = set()

    def resumed():
        i = gateway.status.informer()
        delayed.update(d["cause"] for d in i["degraded"])
        rows = {(r["resource"], r["namespace"]): r for r in i["resources"]}
        return i["writer"]["pid"] not in (None, pid) and all(
            rows[k]["state"] == "watching" and rows[k]["watches"] > n
            for k, n in watches.items())

    wait_until(resumed, 60, lambda: f"a resume: {gateway.status.informer()}\n{gateway.tail()}")
    took = time.monotonic() - began
    after = gateway.status.informer()
    assert after["writer"]["takeovers"] == before["writer"]["takeovers"] + 1, after
    return took, delayed | {d["cause"] for d in after["degraded"]}


def informer_round(world, churn, took, damped):
    """An nginx with a new zone, killed KILLS times; returns the load's report."""
    gateway = world.gateway(["web", "still"])
    gateway.allow(KILLED)
    load = world.load(gateway.url("web"), gateway.url("still"), rate=400, post_share=0.25)
    load.wait_total(50)
    lists, relists = gateway.lists(), gateway.count("relists")
    generation = gateway.status.generation(world.name, "still")
    workers, changes = gateway.workers(), churn.changes

    for n in range(1, KILLS + 1):
        seconds, degraded = kill_informer(gateway)
        if n < DAMPED_FROM:
            took.append(seconds)
        else:
            assert "crash_loop" in degraded, f"crash {n}: {degraded}"
            damped.append(seconds)

    load.wait_total(50)
    result = load.stop()
    if churn.changes - changes < 20:
        void(f"{churn.changes - changes} changes in a round")
    assert result["failed"] == 0, failures(result)
    assert gateway.workers() == workers, "a worker was replaced"
    assert gateway.lists() == lists, "a LIST after a kill"
    assert gateway.count("relists") == relists
    assert gateway.status.generation(world.name, "still") == generation
    with churn.quiet:
        world.assert_equal(gateway, ["still", "churn"])
    gateway.stop()
    return result


def test_informer_killed(world, figures):
    """
    Twenty times, in rounds with a new zone each: the damping is per zone.
    Pods serve longer after their deletion than the informer is held back.
    """
    world.deploy("still", 2)
    took, damped, total = [], [], 0
    with changing(world, 6000) as churn:
        for _ in range(3 * ROUNDS if LONG else ROUNDS):
            total += informer_round(world, churn, took, damped)["total"]
    figures.add("5", f"informer killed {len(took) + len(damped)} times: LISTs, failed requests",
                "0, 0", f"0, 0 of {total}")
    figures.time("5", "informer killed: watches resumed, worst", RESUME, max(took), "s",
                 f" (median {sorted(took)[len(took) // 2]:.3f} s)")
    figures.add("5", "from the fourth crash in 60 s on: damped, and crash_loop shown", "yes",
                f"yes; {min(damped):.1f} to {max(damped):.1f} s")


def kill_workers(gateway, all_of_them):
    """
    Kills one, or all, and waits for as many new ones.  All stop first: none
    of them may accept what the clients of another one send again.
    """
    before = gateway.workers()
    killed = before if all_of_them else before[:1]
    for sig in (signal.SIGSTOP, signal.SIGKILL):
        for pid in killed:
            os.kill(pid, sig)
    wait_until(lambda: len(gateway.workers()) == len(before)
               and not set(gateway.workers()) & set(killed)
               and not any(alive(p) for p in killed), what="new workers")


def workers_killed(nginx, world, churn, target, times, everyone):
    """A load during which workers are killed so many times; its report."""
    nginx.allow(KILLED)
    changes = churn.changes
    load = world.load(nginx.url(target), connections=16, retry_closed=True,
                      delays=["0ms", "50ms"])
    for _ in range(times):
        load.wait_total(150)
        kill_workers(nginx, everyone)
    load.wait_total(150)
    result = load.stop()
    if result["resent"] + result["failed"] < times:
        void(f"{times} kills cut {result['resent']} requests")
    if churn.changes - changes < 10:
        void(f"{churn.changes - changes} changes")
    return result


def test_workers_killed(world, figures):
    stable = world.deploy("stable", 4)
    control = world.gateway(static={"stable": stable}, kube=False)
    with changing(world, 2000) as churn:
        gateway = world.gateway(["web", "stable"])
        informer, lists = gateway.informer(), gateway.lists()
        for what, times, everyone in (("a worker", 10, False), ("all workers", 5, True)):
            mine = workers_killed(gateway, world, churn, "web", times, everyone)
            other = workers_killed(control, world, churn, "stable", times, everyone)
            figures.add("5", f"{what} killed {times} times: failed requests",
                        "those in flight, as the control",
                        f"{mine['failed']} of {mine['total']}, {mine['resent']} sent again "
                        f"(control: {other['failed']} of {other['total']}, {other['resent']})")
            for result in (mine, other):
                assert set(result["failures"]) <= CUT, failures(result)
            # By chance a kill meets a new connection's first request.
            assert mine["failed"] <= other["failed"] + times, failures(mine)
        assert gateway.informer() == informer, "the informer process was replaced"
        assert gateway.lists() == lists, "a LIST after a kill"
        with churn.quiet:
            world.assert_equal(gateway, ["stable", "churn"])
