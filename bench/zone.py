#!/usr/bin/python3
# What the zone's size costs kube-informer at its start, and the smallest zone that
# takes a list.  "make bench" adds what it says to bench/RESULTS.md.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""
Starts kube-informer beside the recorded server of run.py.

Start: from the program's start until both lists are held, which are empty; a start
of the program that only prints its version is taken from it.  The smallest zone is
found by halves, to a KiB: one is too small if a Service or a slice is refused.
"""

import statistics
import subprocess
import sys
import time

from run import (
    OURS_SYNCED, PATIENCE, Follower, Server, appended, arguments, met, recorded, takes_append,
)

ZONES = ("64m", "4g")
RSS_MB, START_MS, BYTES = 3, 50, 80
MOST_KIB = 1 << 20


def started(program, empty, zone):
    """ms, MB of RssAnon and of shared memory."""
    before = time.monotonic()
    subprocess.run([program, "--version"], stdout=subprocess.DEVNULL, check=True)
    bare = time.monotonic() - before
    server = Server(empty)
    began = time.monotonic()
    follower = Follower([program, "--server", server.url, "--zone-size", zone, "--quiet"], {}, None)
    try:
        wall = follower.until(*OURS_SYNCED) - began - bare
        return [wall * 1e3, *follower.memory()]
    finally:
        follower.close()
        server.close()


def holds(program, folder, kib):
    """Whether everything has room."""
    server = Server(folder)
    try:
        done = subprocess.run(
            [program, "--server", server.url, "--zone-size", f"{kib}k", "--quiet",
             "--until-synced", "--timeout", str(PATIENCE)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return done.returncode == 0
    finally:
        server.close()


def smallest(program, folder):
    """KiB."""
    too_small, enough = 0, 64
    while not holds(program, folder, enough):
        too_small, enough = enough, enough * 2
        if enough > MOST_KIB:
            raise RuntimeError(f"{too_small} KiB are too little")
    while enough - too_small > 1:
        middle = (too_small + enough) // 2
        if holds(program, folder, middle):
            enough = middle
        else:
            too_small = middle
    return enough


def report(starts, size, kib):
    """The section of RESULTS.md."""
    out = ["", "## The zone", ""]
    out += ["| an empty one | start, ms | RssAnon, MB | shared memory, MB |", "|---|---|---|---|"]
    for zone, rows in starts.items():
        ms, anon, shared = (statistics.median(column) for column in zip(*rows, strict=True))
        out.append(f"| {zone} | {ms:.1f} of {START_MS} — {met(ms, START_MS)} | {anon:.1f} of "
                   f"{RSS_MB} — {met(anon, RSS_MB)} | {shared:.1f} |")
    each = kib * 1024 / (size * 10)
    out += ["", f"The smallest zone that takes {size * 10} endpoints, {size} slices of 10 and "
            f"{size} Services: {kib} KiB, {each:.1f} bytes an endpoint (of {BYTES} — "
            f"{met(each, BYTES)})."]
    return "\n".join(out) + "\n"


def main():
    parser = arguments(__doc__, "10000", 10000)
    takes_append(parser)
    options = parser.parse_args()
    size = int(options.sizes)
    empty, folder = recorded(options, 0), recorded(options, size)
    starts = {zone: [started(options.program, empty, zone) for _ in range(options.rounds)]
              for zone in ZONES}
    text = report(starts, size, smallest(options.program, folder))
    appended(options, text, "zones of two sizes, and the smallest")
    return 0


if __name__ == "__main__":
    sys.exit(main())
