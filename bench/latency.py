#!/usr/bin/python3
# Ours beside client-go: from a change's last byte on the socket to where it can be
# used.  "make bench" adds what it says to bench/RESULTS.md.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""
Sends recorded events one at a time, and asks when each could be used.

Ours: when another process reads the new version in the zone (bench/reader.c).
client-go's: when its handler is called, in its own process.  Of both is taken
what a process needs that only waits for these bytes, in the same round: so the
kernel's wake-up does not count.  An event is sent when the one before it has long
been used; all take turns, in another order each round.
"""

import bisect
import os
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time

from run import (
    PATIENCE, Follower, Server, appended, arguments, met, ratio, recorded, subjects,
    takes_append, turned,
)

# Between two events: some hundred times what one takes.
PAUSE_S = 0.002
RAW = "the bytes alone"
OURS, PEER = "ours, {}, WatchList off", "client-go, {}, WatchList off"


def frames(folder, form):
    """The events of a watch, each as the server sends it."""
    with open(os.path.join(folder, f"events.{form}"), "rb") as f:
        data = f.read()
    if form == "json":
        return data.splitlines(keepends=True)
    out, at = [], 0
    while at < len(data):
        size = 4 + struct.unpack_from(">I", data, at)[0]
        out.append(data[at:at + size])
        at += size
    return out


def paced(conn, pieces):
    """Sends each in its turn; when it did, in ns of the wall clock."""
    sent = []
    for piece in pieces:
        sent.append(time.time_ns())
        conn.sendall(piece)
        time.sleep(PAUSE_S)
    return sent


def parsed(text):
    """[(number, ns)] of the lines that are such."""
    rows = [line.split() for line in text.splitlines()]
    return [(int(r[0]), int(r[1])) for r in rows if len(r) == 2 and r[0].isdigit()]


def delays(sent, marks, stamps):
    """µs from each event to the first stamp that is not below its mark."""
    known = [mark for mark, _ in stamps]
    out = []
    for at, mark in zip(sent, marks, strict=True):
        i = bisect.bisect_left(known, mark)
        if i == len(stamps):
            raise ValueError(f"{mark} was not seen")
        out.append((stamps[i][1] - at) / 1e3)
    return out


def bytes_alone(reader, folder):
    """What the kernel takes."""
    pieces = frames(folder, "pb")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with subprocess.Popen([reader, "bytes", str(port)], stdout=subprocess.PIPE) as process:
            conn = listener.accept()[0]
            with conn:
                conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sent = paced(conn, pieces)
            text = process.communicate(timeout=PATIENCE)[0].decode()
    marks, total = [], 0
    for piece in pieces:
        total += len(piece)
        marks.append(total)
    return delays(sent, marks, parsed(text))


def followed(row, folder, reader, last, events):
    """One of ours (which has no stamps of its own), or client-go's."""
    ours = row.name.startswith("ours")
    server = Server(folder)
    args = [a.replace("URL", server.url) for a in row.args] + ([] if ours else ["-stamps"])
    follower = Follower(args, row.env, None)
    looking = None
    try:
        follower.until(*row.synced)
        if ours:
            looking = subprocess.Popen(
                [reader, "zone", str(follower.process.pid), str(last)], stdout=subprocess.PIPE
            )
            if looking.stdout.readline() != b"ready\n":
                raise RuntimeError("the zone cannot be read")
            # what it says is not wanted, and must not stop it
            threading.Thread(target=follower.process.stdout.read, daemon=True).start()
        server.wait_watched()
        conn, form = server.watches["slices"]
        sent = paced(conn, frames(folder, form))
        if ours:
            text = looking.communicate(timeout=PATIENCE)[0].decode()
        else:
            text = ""
            while not text.endswith("last\n"):
                piece = os.read(follower.process.stdout.fileno(), 1 << 16)
                if not piece:
                    raise EOFError(text[-200:])
                text += piece.decode()
        first = last - events + 1
        return delays(sent, range(first, last + 1), parsed(text))
    finally:
        if looking:
            looking.kill()
            looking.wait()
        follower.close()
        server.close()


def measure(rows, folder, options):
    """{name: [a median a round]}, the kernel's share taken; and p99 likewise."""
    last = 900000 + options.events
    got = {row.name: {"median": [], "p99": []} for row in rows}
    got[RAW] = {"median": [], "p99": []}
    for number in range(options.rounds + 1):
        found = {RAW: bytes_alone(options.reader, folder)}
        for row in turned(rows, number):
            found[row.name] = followed(row, folder, options.reader, last, options.events)
        if number == 0:
            continue  # files are cold, and so are the programs
        raw = statistics.median(found[RAW])
        for name, values in found.items():
            less = 0 if name == RAW else raw
            got[name]["median"].append(statistics.median(values) - less)
            got[name]["p99"].append(sorted(values)[len(values) * 99 // 100] - less)
        print(f"  round {number}: " + ", ".join(
            f"{name} {value['median'][-1]:.1f}" for name, value in got.items()), flush=True)
    return got


def against(got, form):
    """Ours over client-go's, the median of the rounds."""
    return ratio(got, PEER.format(form), OURS.format(form), "median")


def report(got, events, rounds):
    """The section of RESULTS.md."""
    out = ["", "## A change, until it can be used, µs", ""]
    out += [f"{events} events one at a time, {rounds} rounds: median of the rounds' medians, and",
            "of their 99th percentiles, without what the kernel takes (the first row). Ours: read",
            "by another process; client-go's: its handler is called.", ""]
    sizes = list(got)
    out += ["| | " + " | ".join(f"{size * 10} endpoints" for size in sizes) + " |"]
    out += ["|---" * (len(sizes) + 1) + "|"]
    for name in [RAW] + [n for n in got[sizes[0]] if n != RAW]:
        cells = [
            "%.1f, %.1f" % tuple(statistics.median(got[s][name][k]) for k in ("median", "p99"))
            for s in sizes
        ]
        out.append(f"| {name} | " + " | ".join(cells) + " |")
    out += ["", "| | aim | " + " | ".join(f"{size * 10} endpoints" for size in sizes) + " |"]
    out += ["|---" * (len(sizes) + 2) + "|"]
    for form in ("protobuf", "JSON"):
        ratios = [against(got[s], form) for s in sizes]
        cells = [f"{r:.2f} × — {met(r, 0.5)}" for r in ratios]
        out.append(f"| ours over client-go's, {form} | ≤ 0.5 × | " + " | ".join(cells) + " |")
    ours = [statistics.median(got[s][OURS.format("protobuf")]["median"]) for s in sizes]
    cells = [f"{v / ours[0]:.2f} × — {met(v, 1.3 * ours[0])}" for v in ours]
    out.append("| ours, protobuf, over its smallest | ≤ 1.3 × | " + " | ".join(cells) + " |")
    return "\n".join(out) + "\n"


def main():
    parser = arguments(__doc__, "10,1000,10000", 1000)
    parser.add_argument("--reader", required=True, help="bench/reader.c, built")
    takes_append(parser)
    options = parser.parse_args()

    rows = [row for row in subjects(options.program, options.peer, 900000 + options.events)
            if row.name.endswith("WatchList off")]
    got = {}
    for size in (int(s) for s in options.sizes.split(",")):
        folder = recorded(options, size)
        print(f"latency, {size} slices", flush=True)
        got[size] = measure(rows, folder, options)
    text = report(got, options.events, options.rounds)
    appended(options, text, f"latency of {len(rows)} followers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
