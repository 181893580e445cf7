#!/usr/bin/python3
# What a follower costs a real API server, ours beside client-go: its processor and
# the bytes it sends for a list, and for 10 000 events.  "make bench" adds what it
# says to bench/RESULTS.md.  Needs root (a network namespace), and Go.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""
Follows the control plane of t/cluster with kube-informer and with client-go.

A list: followers start one after another while nothing changes; from what the
server's processor has had is taken what it has in the same time with nobody there.

Events: so many slices change, and then the version before them is watched with
curl, by a request as either sends it: the server writes all of them from its
memory, and does nothing else meanwhile.  (Beside changes as they come, what they
cost themselves hides what a follower adds.)

Bytes of a list are those of TCP, as the kernel counts them for the follower's
connections: with TLS and HTTP's own; those of events are the bodies'.
"""

import argparse
import concurrent.futures
import itertools
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from run import (
    FORMS, PATIENCE, ROOT, Follower, appended, client_go, cpu, met, ours, ratio, say, spread,
    takes_append, turned,
)

sys.path.insert(0, os.path.join(ROOT, "t", "cluster"))

import kubeapi  # noqa: E402
import netns  # noqa: E402
from testbed import BINARY, Testbed  # noqa: E402

NAMESPACE = "bench"
WRITERS, ENDPOINTS = 8, 10
QUIET_S = 2
STARTS = 10  # of a follower in a row: one takes too little to be measured
END = "the-last-one"

PROTOBUF = "application/vnd.kubernetes.protobuf"

# What either sends for a watch: the version of HTTP, and Accept.
WATCHES = {
    "ours, protobuf": ("--http1.1", f"{PROTOBUF};stream=watch,application/json;stream=watch"),
    "ours, JSON": ("--http1.1", "application/json"),
    "client-go, protobuf, gzip": ("--http2", f"{PROTOBUF},application/json"),
    "client-go, JSON, gzip": ("--http2", "application/json"),
}


def subjects(options, kubeconfig):
    where = ["--kubeconfig", kubeconfig, "--namespace", NAMESPACE]
    rows = []
    for form in FORMS:
        rows.append(ours(f"ours, {FORMS[form]}", options.program, where, form))
        for how, more in (("gzip", []), ("identity", ["-identity"])):
            rows.append(client_go(f"client-go, {FORMS[form]}, {how}", options.peer,
                                  [*where, *more], form))
    return rows


def received(pid):
    """MB that have come on the connections that the process has."""
    lines = [line for line in say("ss", "-tinpHO").splitlines() if f"pid={pid}," in line]
    return sum(int(n) for line in lines
               for n in re.findall(r"\bbytes_received:(\d+)", line)) / 1e6


class Cluster:
    """Slices with their Services, and what changes them."""

    def __init__(self, tb, slices):
        self.tb = tb
        self.slices = slices
        self.apis = threading.local()
        self.pool = concurrent.futures.ThreadPoolExecutor(WRITERS)
        self.turn = itertools.count()

    def server(self):
        return cpu(self.tb.processes()["apiserver"].pid)

    def api(self):
        if not hasattr(self.apis, "own"):
            self.apis.own = kubeapi.Api("127.0.0.1", self.tb.port, self.tb.ca, self.tb.token)
        return self.apis.own

    def slice(self, name, turn):
        """Its first endpoint is another one in each turn."""
        at = [f"10.{k}.{turn // 250 % 250}.{turn % 250 + 1}" for k in range(1, ENDPOINTS + 1)]
        return self.tb.slice(NAMESPACE, name, name, [(a, True) for a in at], 8080)

    def all(self, function, rows):
        """Calls it for each, some at a time."""
        for one in [self.pool.submit(function, row) for row in rows]:
            one.result()

    def make(self):
        self.tb.namespace(NAMESPACE)
        names = [f"s{n}" for n in range(self.slices)]
        self.all(lambda name: self.api().apply(self.tb.service(
            NAMESPACE, name, selector=False)), names)  # its slices are ours, no controller's
        self.all(lambda name: self.api().apply(self.slice(name, 0)), names)

    def change(self, events):
        """So many changes, each of the next slice, and one more; the version before."""
        path = os.path.dirname(kubeapi.object_path(self.slice("any", 0)))
        version = self.api().get(path, limit="1")["metadata"]["resourceVersion"]
        turns = [next(self.turn) for _ in range(events)]
        rows = [self.slice(f"s{t % self.slices}", t) for t in turns]
        self.all(lambda row: self.api().call("PUT", kubeapi.object_path(row), row), rows)
        self.api().apply(self.slice(END, next(self.turn)))
        return path, version


def idle(cluster):
    """The share of a processor that the server has with nobody there."""
    began, before = time.monotonic(), cluster.server()
    time.sleep(QUIET_S)
    return (cluster.server() - before) / (time.monotonic() - began) / 1e3


def a_list(cluster, row):
    """Median wall of STARTS, the server's processor for each, in ms; MB."""
    share = idle(cluster)
    began, before = time.monotonic(), cluster.server()
    walls = []
    for _ in range(STARTS):
        at = time.monotonic()
        follower = Follower(row.args, row.env, None)
        try:
            walls.append((follower.until(*row.synced) - at) * 1e3)
            size = received(follower.process.pid)
        finally:
            follower.close()
    spent = cluster.server() - before - share * (time.monotonic() - began) * 1e3
    return {"wall": statistics.median(walls), "cpu": spent / STARTS, "bytes": size}


def events(cluster, form, path, version):
    """ms of the server's processor for the events since; MB."""
    http, accept = WATCHES[form]
    url = (f"https://127.0.0.1:{cluster.tb.port}{path}?watch=true&allowWatchBookmarks=true"
           f"&resourceVersion={version}&timeoutSeconds={PATIENCE}")
    args = ["curl", "-sSN", http, "--cacert", cluster.tb.ca, "-H", f"Accept: {accept}",
            "-H", f"Authorization: Bearer {cluster.tb.token}", url]
    before = cluster.server()
    with subprocess.Popen(args, stdout=subprocess.PIPE) as process:
        try:
            size, text = 0, b""
            while END.encode() not in text:
                piece = process.stdout.read1(1 << 20)
                if not piece:
                    raise EOFError(text[-200:])
                size += len(piece)
                text = text[-4096:] + piece
            return {"event_cpu": cluster.server() - before, "event_bytes": size / 1e6}
        finally:
            process.kill()


def measure(cluster, rows, options):
    """{name: {figure: [a value a round]}}"""
    got = {row.name: {} for row in rows}
    for number in range(options.rounds + 1):
        turn = turned(rows, number)
        found = {row.name: a_list(cluster, row) for row in turn}
        path, version = cluster.change(options.events)
        for row in turn:
            if row.name in WATCHES:
                found[row.name].update(events(cluster, row.name, path, version))
        if number == 0:
            continue  # the server is cold, and so are the programs
        for name, figures in found.items():
            for figure, value in figures.items():
                got[name].setdefault(figure, []).append(value)
            print(f"  round {number}: {name}: " + ", ".join(
                f"{k} {v:.2f}" for k, v in figures.items()), flush=True)
    return got


FIGURES = (
    ("wall", "start → synced, ms"),
    ("cpu", "a list: the server's processor, ms"),
    ("bytes", "a list: MB"),
    ("event_cpu", "the events: the server's processor, ms"),
    ("event_bytes", "the events: MB"),
)

MINE = {"cpu": 0.5, "bytes": 0.65, "event_cpu": 0.5, "event_bytes": 0.65}

# what, ours, of which, and how much it may be
AIMS = (
    ("protobuf over JSON, both ours", "ours, protobuf", "ours, JSON", MINE),
    ("ours over client-go's, protobuf", "ours, protobuf", "client-go, protobuf, gzip",
     dict.fromkeys(MINE, 1)),
    ("ours over client-go's without gzip, protobuf", "ours, protobuf",
     "client-go, protobuf, identity", {"cpu": 1, "bytes": 1}),
    ("ours over client-go's, JSON", "ours, JSON", "client-go, JSON, gzip",
     dict.fromkeys(MINE, 1)),
)


def against(got, aim):
    """The cells of one aim."""
    text, one, other, most = aim
    cells = [text]
    for figure in MINE:
        if figure not in most:
            cells.append("")
            continue
        value = round(ratio(got, other, one, figure), 2)
        cells.append(f"{value} × of {most[figure]} — {met(value, most[figure])}")
    return cells


def row_of(cells):
    return "| " + " | ".join(cells) + " |"


def report(got, options, version):
    """The section of RESULTS.md."""
    out = ["", "## What it costs a real API server", ""]
    out += [f"kube-apiserver {version} over TLS, {options.slices} slices of {ENDPOINTS} endpoints",
            "and as many Services in one namespace, WatchList off; then the events of",
            f"{options.events} changes of a slice. {options.rounds} rounds after one that does not",
            "count. client-go speaks HTTP/2; in the rows with gzip it takes that for lists, as is",
            "its default (a watch is never compressed).", ""]
    out += [row_of(["", *(text for _, text in FIGURES)]), "|---" * (len(FIGURES) + 1) + "|"]
    for name, figures in got.items():
        out.append(row_of([name, *(spread(figures[k], 2) if k in figures else ""
                                   for k, _ in FIGURES)]))
    out += ["", row_of(["", *(text for k, text in FIGURES if k in MINE)]),
            "|---" * (len(MINE) + 1) + "|"]
    out += [row_of(against(got, aim)) for aim in AIMS]
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--program", required=True, help="kube-informer")
    parser.add_argument("--peer", required=True, help="t/cluster/follow, built")
    parser.add_argument("--slices", type=int, default=2000)
    parser.add_argument("--events", type=int, default=10000)
    parser.add_argument("--rounds", type=int, default=5)
    takes_append(parser)
    options = parser.parse_args()
    why = "it needs root" if os.geteuid() else netns.available()
    if why:
        print(f"***** SKIPPED: what a real API server takes: {why} *****", file=sys.stderr)
        return 0
    space = netns.NetNS(inside=True)
    with space, tempfile.TemporaryDirectory() as folder, Testbed(folder, nodes=1) as tb:
        print(f"a real API server, {options.slices} slices", flush=True)
        cluster = Cluster(tb, options.slices)
        cluster.make()
        rows = subjects(options, tb.kubeconfig)
        version = re.search(r"k8s.io/kubernetes\s+(v\S+)", say(
            os.environ.get("GO", "go"), "version", "-m", BINARY))[1]
        got = measure(cluster, rows, options)
    text = report(got, options, version)
    appended(options, text, f"{len(rows)} followers of a real API server")
    return 0


if __name__ == "__main__":
    sys.exit(main())
