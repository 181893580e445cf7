# What our handlers are told beside client-go's: one script of random changes,
# with relists, resyncs, and handlers that come and go.  It needs Go.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""A handler is told what client-go's is, but for updates that were coalesced."""

import os
import random
import resource
import shutil
import subprocess

import pytest

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GO = shutil.which("go") or "/usr/local/go/bin/go"
BUILD = os.environ.get("KUBE_BUILD_DIR", os.path.join(TREE, "build", "release"))
CHANGES = int(os.environ.get("KUBE_HANDLER_CHANGES", "200000"))
KEYS = 400

pytestmark = pytest.mark.timeout(1200)


class Script:
    """Lines for both, and what is true of each window between two waits."""

    def __init__(self, seed, changes):
        self.random = random.Random(seed)
        self.lines = []
        self.version = 1
        self.born = {}  # {name: the version it was made with}
        self.uid = {}  # {(name, version): that of its making}
        self.kinds = {}  # {handler: kind}
        self.windows = []  # what happened: a set of "r", "s"
        self.make(changes)

    def change(self, quiet=False):
        name = f"s{self.random.randrange(KEYS)}"
        self.version += 1
        if name in self.born and self.random.random() < 0.2:
            del self.born[name]
            self.lines.append(f"{'D' if quiet else 'd'} {name}")
            return
        self.born.setdefault(name, self.version)
        self.uid[name, self.version] = self.born[name]
        self.lines.append(f"{'P' if quiet else 'p'} {name} {self.version}")

    def wait(self, *happened):
        self.lines.append("w")
        self.windows.append(set(happened))

    def add(self, name, kind):
        self.kinds[name] = kind
        self.lines.append(f"a {name} {kind}")

    def make(self, changes):
        for kind in ("plain", "odd", "resync"):
            self.add(f"{kind}0", kind)
        for _ in range(KEYS // 2):
            self.change()
        self.lines.append("!")
        self.wait()
        living = []
        n = 0
        while self.version < changes:
            n += 1
            for _ in range(self.random.choice((1, 1, 3, 30, 90))):
                self.change()
            self.wait()
            what = self.random.random()
            if what < 0.02:
                for _ in range(self.random.randrange(1, 40)):
                    self.change(quiet=True)
                self.lines.append("r")
                self.wait("r", "s")
            elif what < 0.05:
                # twice: client-go's timer begins anew with each list, so that a
                # handler's period may end behind a tick of one and not the other
                self.lines += ["s", "s"]
                self.wait("s")
            elif what < 0.15 and len(living) < 20:
                kind = self.random.choice(("plain", "odd", "resync"))
                living.append(f"{kind}{n}")
                self.add(living[-1], kind)
                self.wait()
            elif what < 0.25 and living:
                self.lines.append(f"x {living.pop(self.random.randrange(len(living)))}")


def windows(path):
    """[{(handler, object): [event]}], an event as its words."""
    made = [{}]
    with open(path) as lines:
        for line in lines:
            words = line.split()
            if words[0] == "=":
                made.append({})
            else:
                made[-1].setdefault((words[0], words[2]), []).append(words[1:2] + words[3:])
    assert not made[-1], "something was told behind the last wait"
    return made[:-1]


def states(events):
    """The versions of an object, None where it is not, as the events go."""
    made = []
    for sign, *rest in events:
        old = int(rest[0]) if sign in "~-" else None
        if not made:
            made.append("held" if sign == "-" else old)
        made.append(None if sign == "-" else int(rest[-1] if sign == "~" else rest[0]))
    return made


def held(known, first):
    """A deletion of client-go's has the version of the deletion."""
    return known if first == "held" else first


def coalesced(ours, theirs, uid):
    """ours has the beginning and the end of theirs, and nothing that it has not."""
    left = iter(theirs)
    kept = [v for v in ours if v in theirs]
    if ours[0] != theirs[0] or ours[-1] != theirs[-1]:
        return False
    extra = [i for i, v in enumerate(ours) if v not in theirs]
    # made anew while no watch was open: theirs is an update, ours two changes
    if any(ours[i] is not None or uid(ours[i - 1]) == uid(ours[i + 1]) for i in extra):
        return False
    return all(v in left for v in kept)


def without_repeats(path):
    return [v for i, v in enumerate(path) if i == 0 or v != path[i - 1]]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The script, and both streams with the processor time of each."""
    directory = tmp_path_factory.mktemp("handlers")
    script = Script(7, CHANGES)
    (directory / "script").write_text("\n".join(script.lines) + "\n")
    binary = str(directory / "handlers")
    src = [f"-I{TREE}/src/{d}"
           for d in ("base", "model", "api", "client", "zone", "publish", "cache")]
    subprocess.run(["cc", "-std=c11", "-D_DEFAULT_SOURCE", "-O2", *src, "-o", binary,
                    f"{TREE}/t/converge/handlers.c", f"{BUILD}/libkube.a",
                    "-lcurl", "-lcjson", "-lyaml", "-lpthread"], check=True)
    test = str(directory / "handlers.test")
    subprocess.run([GO, "test", "-c", "-o", test, "./handlers"],
                   cwd=os.path.join(TREE, "t", "cluster"), check=True)
    cpu = {}
    for name, command in (("ours", [binary, str(directory / "script"), str(directory / "ours")]),
                          ("theirs", [test, "-test.run", "TestStream", "-test.timeout", "20m"])):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, cwd=directory,
                       env={**os.environ, "KUBE_SCRIPT": str(directory / "script"),
                            "KUBE_STREAM": str(directory / "theirs"),
                            "KUBE_FEATURE_WatchListClient": "false"})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu[name] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return script, windows(directory / "ours"), windows(directory / "theirs"), cpu


def test_streams(run):
    script, ours, theirs, _ = run
    assert len(ours) == len(theirs) == len(script.windows)
    known = {}  # {(handler, object): version}
    equal = merged = repeats = 0
    for n, (happened, a, b) in enumerate(zip(script.windows, ours, theirs)):
        for key in a.keys() | b.keys():
            mine, other = a.get(key, []), b.get(key, [])
            name = key[1]
            where = f"window {n} {sorted(happened)} {key}: {mine}, client-go: {other}"
            resyncs = script.kinds[key[0]] == "resync" and "s" in happened
            mine_repeats = any(e[0] == "~" and e[1] == e[2] for e in mine)
            other_repeats = any(e[0] == "~" and e[1] == e[2] for e in other)
            # a resync tells both; a relist of what did not change client-go alone
            assert not mine_repeats or resyncs, where
            if resyncs and "r" not in happened:
                assert mine_repeats == other_repeats, where
            repeats += mine_repeats
            before = known.get(key)
            mine_path = without_repeats([before, *states(mine)[1:]])
            other_path = without_repeats([before, *states(other)[1:]])
            for path in (states(mine), states(other)):
                assert not path or held(before, path[0]) == before, where
            assert coalesced(mine_path, other_path,
                             lambda v, name=name: script.uid.get((name, v))), where
            if mine_path == other_path:
                equal += 1
                initial = [[e[2] for e in events if e[0] == "+"] for events in (mine, other)]
                assert initial[0] == initial[1], where
            else:
                merged += 1
            known[key] = other_path[-1]
    print(f"{equal} windows of an object equal, {merged} coalesced, {repeats} resyncs")
    assert equal > merged


def test_processor_time(run):
    cpu = run[3]
    print(f"ours {cpu['ours']:.2f} s, client-go {cpu['theirs']:.2f} s")
    assert cpu["ours"] <= cpu["theirs"] / 4
