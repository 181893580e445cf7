#!/usr/bin/python3
# Ours beside client-go: time, processor and memory of a list, and processor of
# a watch, over the same recorded bytes.  "make bench" writes bench/RESULTS.md.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""
Follows one recorded API server with kube-informer and with client-go.

The bytes are an API server's own (t/cluster/lists).  A server here writes them
from files by sendfile(), so that next to nothing of what is measured is its.
All followers take turns in each round, in another order each time; a figure is
the median of its rounds, a ratio the median of the ratios within rounds.

Processor time is of all threads of the process, from the kernel's schedstat.
What a follower takes with two empty lists is subtracted from time of the
processor and from memory: so neither Go's runtime nor our tables count.
"""

import argparse
import contextlib
import gzip
import itertools
import os
import platform
import re
import selectors
import socket
import statistics
import subprocess
import sys
import threading
import time

from chart import chart

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
PATIENCE = 300

TYPES = {
    ("json", False): "application/json",
    ("json", True): "application/json",
    ("pb", False): "application/vnd.kubernetes.protobuf",
    ("pb", True): "application/vnd.kubernetes.protobuf;stream=watch",
}


# What ours is told, and how it is called.
FORMS = {"protobuf": "protobuf", "json": "JSON"}


# What an API server does not compress, and how much it does.
PLAIN_BELOW, GZIP_LEVEL = 128 << 10, 1


def cpu(pid):
    """Milliseconds of the processor that all threads of a process have had."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with (
            contextlib.suppress(FileNotFoundError),  # it has ended
            open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f,
        ):
            total += int(f.read().split()[0])
    return total / 1e6


class Server:
    """
    Answers every list and watch of one follower with the bytes of a folder.

    tls: an ssl.SSLContext, or None.  As an API server does, it compresses a large
    list for those who ask for it; the bytes are made once.
    """

    def __init__(self, folder, tls=None):
        self.folder = folder
        self.tls = tls
        self.first = None
        self.watches = {}
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                conn = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn):
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        buf = b""
        try:
            if self.tls:
                conn = self.tls.wrap_socket(conn, server_side=True)
            while True:
                while b"\r\n\r\n" not in buf:
                    piece = conn.recv(65536)
                    if not piece:
                        return
                    buf += piece
                head, buf = buf.split(b"\r\n\r\n", 1)
                if self._answer(conn, head.decode()):
                    return
        except OSError:
            pass

    def _answer(self, conn, head):
        """True if the connection is a watch's, which stays as it is."""
        self.first = self.first or time.monotonic()
        target = head.split(" ", 2)[1]
        name = "slices" if "/endpointslices" in target else "services"
        if f"/{name[:4]}" not in target and "/endpointslices" not in target:
            conn.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return False
        accept = re.search(r"(?im)^accept: *(.*)$", head)
        form = "pb" if accept and "protobuf" in accept[1] else "json"
        watch = re.search(r"[?&]watch=(true|1)", target) is not None
        initial = "sendInitialEvents=true" in target
        file = f"{name}.stream.{form}" if initial else f"{name}.{form}"
        fields = f"Content-Type: {TYPES[form, watch]}\r\n"
        if watch:
            fields += "Connection: close\r\n"
        else:
            size = os.path.getsize(os.path.join(self.folder, file))
            if size > PLAIN_BELOW and re.search(r"(?im)^accept-encoding:.*gzip", head):
                file = compressed(self.folder, file)
                size = os.path.getsize(os.path.join(self.folder, file))
                fields += "Content-Encoding: gzip\r\n"
            fields += f"Content-Length: {size}\r\n"
        conn.sendall(f"HTTP/1.1 200 OK\r\n{fields}\r\n".encode())
        if initial or not watch:
            self._send(conn, file)
        if watch:
            with self.lock:
                self.watches[name] = (conn, form)
        return watch

    def _send(self, conn, name):
        with open(os.path.join(self.folder, name), "rb") as f:
            if self.tls:
                conn.sendall(f.read())  # in one piece: Python's sendfile() has 8 KiB
            else:
                conn.sendfile(f)

    def wait_watched(self):
        """Until both resources are."""
        end = time.monotonic() + PATIENCE
        while len(self.watches) < 2 and time.monotonic() < end:
            time.sleep(0.001)

    def events(self):
        conn, form = self.watches["slices"]
        with contextlib.suppress(OSError):
            self._send(conn, f"events.{form}")

    def close(self):
        self.listener.close()
        with self.lock:
            for conn, _ in self.watches.values():
                conn.close()


def compressed(folder, file):
    """The name of its bytes in gzip."""
    path = os.path.join(folder, file + ".gz")
    if not os.path.exists(path):
        with open(os.path.join(folder, file), "rb") as f, open(path + ".new", "wb") as out:
            out.write(gzip.compress(f.read(), GZIP_LEVEL))
        os.rename(path + ".new", path)
    return file + ".gz"


class Follower:
    """A process that says when it is synced, and when it has seen the last event."""

    def __init__(self, args, env, core):
        if core is not None:
            args = ["taskset", "-c", str(core), *args]
        self.process = subprocess.Popen(
            args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **env}
        )
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)
        self.text = b""

    def until(self, *words):
        """Reads until each of the patterns was said; the time then."""
        end = time.monotonic() + PATIENCE
        while True:
            if all(re.search(w, self.text) for w in words):
                self.text = b""
                return time.monotonic()
            if len(words) == 1:
                self.text = self.text[-4096:]  # a line is shorter
            if time.monotonic() > end or not self.selector.select(PATIENCE):
                raise TimeoutError(self.text[-200:])
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                raise EOFError(self.text[-200:])
            self.text += piece

    def cpu(self):
        return cpu(self.process.pid)

    def memory(self):
        """MB of the process alone, and of shared memory."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            text = f.read()
        return [
            int(re.search(rf"{name}:\s+(\d+)", text)[1]) / 1024 for name in ("RssAnon", "RssShmem")
        ]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Subject:
    """One of those that are compared."""

    def __init__(self, name, args, synced, last, env=None, tls=None):
        self.name = name
        self.args = args
        self.synced = synced
        self.last = last
        self.env = env or {}
        self.tls = tls

    def run(self, folder, events, core):
        server = Server(folder, self.tls)
        follower = Follower([a.replace("URL", server.url) for a in self.args], self.env, core)
        try:
            synced = follower.until(*self.synced)
            got = {"wall": (synced - server.first) * 1e3, "cpu": follower.cpu()}
            got["anon"], got["shared"] = follower.memory()
            if not events:
                return got
            server.wait_watched()
            before, began = follower.cpu(), time.monotonic()
            sender = threading.Thread(target=server.events, daemon=True)
            sender.start()  # what the follower says must be read meanwhile
            got["event_wall"] = (follower.until(self.last) - began) * 1e3 / events * 1e3
            got["event_cpu"] = (follower.cpu() - before) / events * 1e3
            return got
        finally:
            follower.close()
            server.close()


# What kube-informer prints once it holds both resources.
OURS_SYNCED = (
    rb'"services".*"synced"|"synced".*"services"',
    rb'"endpointslices".*"synced"|"synced".*"endpointslices"',
)


def ours(name, program, where, form, watch_list="off", last=None, tls=None):
    """kube-informer; where: arguments that name the server."""
    args = [program, *where, "--zone-size", "64m", "--quiet", "--digest",
            "--watch-list", watch_list, "--encoding", form]
    seen = rb'"resource_version":"%d"' % last if last else None
    return Subject(name, args, OURS_SYNCED, seen, tls=tls)


def client_go(name, program, where, form, watch_list="off", last=None, tls=None):
    """t/cluster/follow, likewise."""
    args = [program, *where, "-form", "pb" if form == "protobuf" else form]
    args += ["-last", str(last)] if last else []
    feature = {"off": "false", "on": "true"}[watch_list]
    return Subject(name, args, (rb"synced",), rb"last",
                   {"KUBE_FEATURE_WatchListClient": feature}, tls)


def subjects(program, peer, last):
    """Ours, and client-go as it may be used."""
    return [
        make(f"{who}, {FORMS[form]}, WatchList {how}", path, [server, "URL"], form, how, last)
        for who, make, path, server in (
            ("ours", ours, program, "--server"), ("client-go", client_go, peer, "-server"))
        for form, how in itertools.product(FORMS, ("off", "on"))
    ]


def turned(rows, number):
    """The rows in another order each round."""
    at = number % len(rows)
    return rows[at:] + rows[:at]


def measure(rows, folder, empty, options):
    """Rounds of all subjects: {name: {figure: [a value a round]}}."""
    base, got = {}, {row.name: {} for row in rows}
    for row in rows:
        base[row.name] = row.run(empty, 0, options.core)
    for number in range(options.rounds + 1):
        for row in turned(rows, number):
            result = row.run(folder, options.events, options.core)
            for figure in ("cpu", "anon"):
                result[figure] -= base[row.name][figure]
            if number == 0:
                continue  # files are cold, and so are the programs
            for figure, value in result.items():
                got[row.name].setdefault(figure, []).append(value)
            print(f"  round {number}: {row.name}: " + ", ".join(
                f"{k} {v:.1f}" for k, v in result.items()), flush=True)
    return got


def spread(values, digits=1):
    """The median, and from where to where they go."""
    low, mid, high = (
        f"{f(values):.{digits}f}" for f in (min, statistics.median, max))
    return f"{mid} ({low}–{high})"


def ratio(got, name, other, figure):
    """How many times more the other takes."""
    pairs = zip(got[other][figure], got[name][figure], strict=True)
    times = [a / b for a, b in pairs if b > 0]
    return statistics.median(times) if times else 0  # too little to be measured


FIGURES = (
    ("wall", "list → synced, ms"),
    ("cpu", "its processor, ms"),
    ("anon", "RssAnon more, MB"),
    ("shared", "shared memory, MB"),
    ("event_cpu", "processor an event, µs"),
    ("event_wall", "time an event, µs"),
)

CHARTED = ("wall", "cpu", "anon", "event_cpu")

# figure, peer, how many times ours it must take; row of the requirement
BARS = (
    ("wall", "protobuf", 5, "list → synced, time"),
    ("wall", "JSON", 18, "list → synced, time"),
    ("cpu", "protobuf", 5, "list → synced, processor"),
    ("cpu", "JSON", 18, "list → synced, processor"),
    ("event_cpu", "protobuf", 7, "watch, processor an event"),
    ("event_cpu", "JSON", 50, "watch, processor an event"),
)


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        model = re.search(r"model name\s*: (.*)", f.read())
    return "%s, %d processors, Linux %s" % (
        model[1] if model else platform.machine(), os.cpu_count(), platform.release())


def report(got, rows, sizes, about):
    """The text of RESULTS.md."""
    out = ["# Results", "", "Written by `make bench`; no figure is typed by hand.", ""]
    out += [f"* {line}" for line in about]
    out += ["", "Median (lowest–highest) of the rounds.", ""]
    out += ["![Cost against the number of endpoints](RESULTS.svg)", ""]
    for size in sizes:
        out += [f"## {size * 10} endpoints: {size} slices of 10, {size} Services", ""]
        out += ["| | " + " | ".join(text for _, text in FIGURES) + " |"]
        out += ["|---" * (len(FIGURES) + 1) + "|"]
        for row in rows:
            cells = [spread(got[size][row.name][figure]) for figure, _ in FIGURES]
            out.append(f"| {row.name} | " + " | ".join(cells) + " |")
        out.append("")
    size = sizes[-1]
    out += [f"## What is aimed at, at {size * 10} endpoints, of ours with protobuf", ""]
    out += ["| | aim | WatchList off | WatchList on |", "|---|---|---|---|"]
    for figure, peer, aim, text in BARS:
        cells = []
        for how in ("off", "on"):
            times = ratio(got[size], f"ours, protobuf, WatchList {how}",
                          f"client-go, {peer}, WatchList {how}", figure)
            cells.append(f"{times:.2f} × — {met(aim, times)}")
        out.append(f"| {text}: client-go's, {peer}, over ours | ≥ {aim} × | "
                   + " | ".join(cells) + " |")
    cells = []
    for how in ("off", "on"):
        more = statistics.median(got[size][f"ours, protobuf, WatchList {how}"]["anon"])
        cells.append(f"{more:.1f} MB — {met(more, 2)}")
    out.append("| RssAnon more than with nothing | ≤ 2 MB | " + " | ".join(cells) + " |")
    for fewer in sizes[:-1][:2]:
        cells = []
        for how in ("off", "on"):
            few, many = (statistics.median(got[s][f"ours, protobuf, WatchList {how}"]["event_cpu"])
                         for s in (fewer, size))
            cells.append(f"{many / few:.2f} × — {met(many / few, 1.3)}")
        out.append(f"| watch, processor an event: over that of {fewer * 10} endpoints | ≤ 1.3 × | "
                   + " | ".join(cells) + " |")
    out += ["", "Where there are few slices, many of the changes that are read at once are of one",
            "slice, and are joined in the queue: each then costs less."]
    return "\n".join(out) + "\n"


def drawing(got, rows, sizes):
    """The text of RESULTS.svg: one colour for a client and an encoding."""
    names = [row.name for row in rows]
    heads = dict.fromkeys(name.rsplit(",", 1)[0] for name in names)
    panels = [
        (
            text,
            {
                name: [(s * 10, statistics.median(got[s][name][figure])) for s in sizes]
                for name in names
            },
        )
        for figure, text in FIGURES
        if figure in CHARTED
    ]
    return chart(
        "Cost against the number of endpoints, ours beside client-go's",
        "endpoints",
        panels,
        [[name for name in names if name.startswith(f"{head},")] for head in heads],
    )


def say(*args):
    return subprocess.run(args, capture_output=True, text=True, check=True).stdout.strip()


def arguments(about, sizes, events):
    """A parser of what each bench is told."""
    parser = argparse.ArgumentParser(description=about.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--program", required=True, help="kube-informer")
    parser.add_argument("--peer", required=True, help="t/cluster/follow, built")
    parser.add_argument("--lists", required=True, help="t/cluster/lists, built")
    parser.add_argument("--data", required=True, help="folder of recorded bytes")
    parser.add_argument("--sizes", default=sizes, help="slices, fewest first")
    parser.add_argument("--events", type=int, default=events)
    parser.add_argument("--rounds", type=int, default=5)
    return parser


def met(value, most):
    return "met" if value <= most else "not met"


def takes_append(parser):
    """For those that add a section to the results."""
    parser.add_argument("--append", help="file for the results; none: it is checked that all ran")


def appended(options, text, otherwise):
    """Adds the section, or says what ran."""
    if options.append:
        with open(options.append, "a", encoding="utf-8") as f:
            f.write(text)
    print(text if options.append else f"bench: {otherwise}")


def recorded(options, size):
    """The folder with the bytes of so many slices, made where it is not there."""
    folder = os.path.join(options.data, f"{size}-{options.events}")
    if not os.path.exists(os.path.join(folder, "events.pb")):
        os.makedirs(folder, exist_ok=True)
        say(options.lists, "-slices", str(size), "-events",
            str(options.events), "-dir", folder)
    return folder


def main():
    parser = arguments(__doc__, "10,100,1000,10000", 10000)
    parser.add_argument("--core", type=int, help="followers run on this processor alone")
    parser.add_argument("--out", help="file for the results; none: it is checked that all ran")
    options = parser.parse_args()

    sizes = [int(s) for s in options.sizes.split(",")]
    rows = subjects(options.program, options.peer, 900000 + options.events)
    got = {}
    for size in [0, *sizes]:
        folder = recorded(options, size)
        if size == 0:
            empty = folder
            continue
        print(f"{size} slices", flush=True)
        got[size] = measure(rows, folder, empty, options)

    about = [
        machine(),
        "%s beside %s" % (say(options.program, "--version"), say(options.peer, "-version")),
        f"{options.rounds} rounds after one that does not count; {options.events} events as fast "
        "as they come; HTTP without TLS, bytes not compressed"
        + (f"; followers on processor {options.core} alone" if options.core is not None else ""),
        "load of the machine when it ended: %.1f" % os.getloadavg()[0],
    ]
    text = report(got, rows, sizes, about)
    svg = drawing(got, rows, sizes)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as f:
            f.write(text)
        with open(os.path.splitext(options.out)[0] + ".svg", "w", encoding="utf-8") as f:
            f.write(svg)
    print(text if options.out else f"bench: {len(rows)} followers ran")
    return 0


if __name__ == "__main__":
    sys.exit(main())
