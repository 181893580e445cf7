# Every script against both ends: client-go's informers (one process of
# t/cluster/converge for all scripts) and kube-informer (a process a script),
# each against a server of its own, many at once.  What comes out is a Result a
# script; judge() says what is wrong with it.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Runs scripted API servers against client-go and kube-informer."""

import argparse
import asyncio
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(TREE, "t", "lib")]

from scripts import SCRIPTS  # noqa: E402
from server import Server  # noqa: E402

STABLE_S = 2.0  # for so long both must have had the final state
RATIO, SLACK_S = 2, 4.0  # ours may be wrong for so much longer than client-go
BATCH = 50  # scripts at once
AGAIN = 20  # so many may have a second try
LONGEST_S = 300  # a machine that is this busy proves nothing
RATE = 30  # requests and connections in any one second
CONNECTIONS = 4  # two watches, and two


class Result:
    """How one end did with one script."""

    def __init__(self, server):
        times = sorted(t for t, _ in server.requests)
        self.converged = server.equal_since is not None
        self.at_s = server.equal_since - server.started if self.converged else None
        self.wrong_s = server.wrong_s
        if not self.converged and server.judged is not None:
            self.wrong_s += server.loop.time() - server.judged
        self.requests = len(times)
        self.rate = max(
            (sum(1 for u in times if t <= u < t + 1) for t in times[:2000]), default=0
        )
        self.lists = sum(1 for _, r in server.requests if r.verb == "list")
        self.watches = self.requests - self.lists
        self.opened = server.opened
        self.most_open = server.most_open
        self.final = server.truth.state()
        self.state = dict(server.state)
        self.came = server.started is not None

    def __str__(self):
        at = f"{self.at_s:6.1f}" if self.converged else " never"
        return (
            f"{at} wrong {self.wrong_s:6.1f} lists {self.lists:4} watches {self.watches:4} "
            f"rate {self.rate:4} conns {self.opened:3}/{self.most_open}"
        )


def judge(script, theirs, ours):
    """What is wrong: texts.  A difference that the script names is none."""
    found = {}
    if not theirs.came or not ours.came:
        found["harness"] = "a client did not come at all"
    elif theirs.final != ours.final:
        found["harness"] = f"the truths differ: {theirs.final}, {ours.final}"
    if theirs.converged and not ours.converged:
        found["never"] = f"client-go converges, we do not: {ours.state}, not {ours.final}"
    elif not theirs.converged and ours.converged:
        found["better"] = "we converge, client-go does not"
    elif ours.wrong_s > theirs.wrong_s * RATIO + SLACK_S:
        found["later"] = f"wrong for {ours.wrong_s:.1f} s, client-go for {theirs.wrong_s:.1f} s"
    elif not theirs.converged:
        found["neither"] = "neither converges"
    if ours.rate > RATE:
        found["rate"] = f"{ours.rate} requests in one second"
    if ours.opened > RATE + ours.requests:
        found["opened"] = f"{ours.opened} connections for {ours.requests} requests"
    if ours.most_open > CONNECTIONS:
        found["connections"] = f"{ours.most_open} connections at once"
    wrong = [f"{name}: {text}" for name, text in found.items() if name not in script.differs]
    late = ours.wrong_s > theirs.wrong_s
    wrong += [
        f"stale: no longer {name}"
        for name in script.differs
        if name not in found and not (name == "later" and late)
    ]
    return wrong


class Run:
    """All scripts."""

    def __init__(self, scripts, directory, informer, converge, pki):
        self.scripts = scripts
        self.directory = directory
        self.informer = informer
        self.converge = converge
        self.pki = pki
        self.token = os.path.join(directory, "token")
        self.theirs = {}
        self.ours = {}
        self.results = {}
        self.died = []
        self.processes = []
        self.readers = []

    async def read_theirs(self, stream):
        """Lines of client-go's process."""
        while line := await stream.readline():
            told = json.loads(line)
            self.theirs[told["name"]].told(
                told["change"], told["resource"], told["key"], told["value"]
            )

    async def read_ours(self, stream, server):
        """Lines of a kube-informer."""
        while line := await stream.readline():
            told = json.loads(line)
            if told["type"] not in ("add", "update", "delete"):
                continue
            key = told["namespace"] + "/" + told["name"]
            value = 0
            if told["resource"] == "services":
                ports = told["object"]["ports"]
                value = ports[0]["port"] if ports else 0
            else:
                ends = told["object"]["endpoints"]
                value = int(ends[0]["address"].rsplit(".", 1)[1]) if ends else 0
            server.told(told["type"], told["resource"], key, value)

    async def start_theirs(self):
        """One process for all scripts."""
        process = await asyncio.create_subprocess_exec(
            self.converge,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=1 << 20,
            env=dict(os.environ, KUBE_FEATURE_WatchListClient="false"),
        )
        self.processes.append(process)
        self.readers.append(asyncio.ensure_future(self.read_theirs(process.stdout)))
        return process.stdin

    async def start_ours(self, name, server):
        """A process of its own; as theirs it asks for plain lists."""
        arguments = ["--server", server.url(), "--token-file", self.token, "--watch-list", "off"]
        if server.tls:
            arguments += ["--ca-file", self.pki.ca_file]
        with open(os.path.join(self.directory, name + ".log"), "wb") as log:
            process = await asyncio.create_subprocess_exec(
                *(self.informer, "--verbose", "--zone-size", "1m", *arguments),
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=1 << 20,
            )
        self.processes.append(process)
        self.readers.append(asyncio.ensure_future(self.read_ours(process.stdout, server)))
        return process

    def over(self, script, server):
        """Whether nothing more is to be expected of this end."""
        elapsed = server.elapsed()
        if elapsed < max((c[0] for c in script.changes), default=0):
            return False
        if elapsed < script.least_s:
            return False
        since = server.equal_since
        return since is not None and server.loop.time() - since >= STABLE_S

    async def batch(self, scripts, theirs_in):
        """Some scripts: all processes first, and only then the first answer."""
        socks = []
        ours = []
        for script in scripts:
            for kind in (self.theirs, self.ours):
                tls = self.pki.server_context() if script.tls else None
                server = kind[script.name] = Server(script, tls)
                socks.append((server, server.bind()))
        for script in scripts:
            ours.append(await self.start_ours(script.name, self.ours[script.name]))
            server = self.theirs[script.name]
            line = {"name": script.name, "url": server.url(), "token": self.token}
            if script.tls:
                line["ca"] = self.pki.ca_file
            theirs_in.write(json.dumps(line).encode() + b"\n")
        await theirs_in.drain()
        for server, sock in socks:
            await server.start(sock)
        loop = asyncio.get_running_loop()
        began = loop.time()
        waiting = {s.name: s for s in scripts}
        while waiting:
            await asyncio.sleep(0.2)
            for script in list(waiting.values()):
                pair = (self.theirs[script.name], self.ours[script.name])
                done = all(self.over(script, server) for server in pair)
                late = all(server.elapsed() > script.limit_s for server in pair)
                if done or late or loop.time() - began > LONGEST_S:
                    self.results[script.name] = tuple(Result(s) for s in pair)
                    del waiting[script.name]
                    for server in pair:
                        server.stop()
        for process in ours:
            if process.returncode is None:
                process.kill()
        await asyncio.gather(*(p.wait() for p in ours))

    async def run(self):
        """{name: (client-go's result, ours)}."""
        with open(self.token, "w", encoding="ascii") as out:
            out.write("secret\n")
        queue = sorted(self.scripts, key=lambda s: -s.limit_s)
        try:
            theirs_in = await self.start_theirs()
            while queue:
                batch, queue = queue[:BATCH], queue[BATCH:]
                await self.batch(batch, theirs_in)
            # A machine that is busy is late by chance, but not twice.
            again = [s for s in self.scripts if judge(s, *self.results[s.name])]
            if len(again) <= AGAIN:
                await self.batch(again, theirs_in)
        finally:
            for process in self.processes:
                if process.returncode is None:
                    process.kill()
            for reader in self.readers:
                reader.cancel()
            await asyncio.gather(*(p.wait() for p in self.processes), return_exceptions=True)
            for server in (*self.theirs.values(), *self.ours.values()):
                server.stop()
        self.died = [p.returncode for p in self.processes if p.returncode not in (-9, None)]
        return self.results


def main():
    """The table, for somebody who looks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", required=True, help="for logs")
    parser.add_argument("--informer", default=os.path.join(TREE, "build/release/kube-informer"))
    parser.add_argument("--converge", default=os.path.join(TREE, "t/cluster/bin/kube-converge"))
    parser.add_argument("names", nargs="*", help="parts of the names of scripts")
    given = parser.parse_args()
    from apiserver_tls import Pki

    os.makedirs(given.dir, exist_ok=True)
    chosen = [s for s in SCRIPTS if not given.names or any(n in s.name for n in given.names)]
    run = Run(chosen, given.dir, given.informer, given.converge, Pki(given.dir))
    results = asyncio.run(run.run())
    bad = 0
    for script in chosen:
        theirs, ours = results[script.name]
        wrong = judge(script, theirs, ours)
        bad += bool(wrong)
        print(f"{'BAD ' if wrong else 'ok  '}{script.name}")
        print(f"      client-go {theirs}\n      ours      {ours}")
        for text in wrong:
            print("      *", text)
    print(f"{len(chosen)} scripts, {bad} bad; died: {run.died}")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
