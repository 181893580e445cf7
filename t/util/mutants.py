#!/usr/bin/env python3
"""Plants bugs, one at a time, and tells which of them the unit tests miss.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause

    mutants.py [--jobs N] [--list] [--note] [--new] [--asan] [WORD ...]

Without a WORD all, else those whose text has one.

t/mutants/*.txt has them:

    tests: zone_reader zone_store     unit tests of the room, likely ones first

    * what is wrong
    @ function, or file.c:function, or file.c:*
    = zone_paused                     the test that finds it, or "asan zone_paused"
    -lines that stand there, one after the other
    +lines in their place

Lines are compared without the white space around them, and must be in the
function once.  An empty line of the file need not be written.  Each mutant is
built in one of the copies of the tree, without a sanitizer.  The test that its
row names is run first, then the one of the source file's name, then those of
the room up to the first that fails.  --asan tries what survives once more, with
the sanitizers.  t/util/orders.py is one of the tests.  --note writes into the
rows which test found it, where another one did; --new is for those of which no
test is known.  --list only looks whether they apply.

Exit code 1: a mutant survived, or one does not apply any more.
"""

import argparse
import functools
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ROOT / "t/mutants"
WORK = ROOT / "build/mutants"
PARTS = ("src", "t/unit", "t/sim", "t/util", "t/model", "config", "Makefile")
LIMIT = 300
PLAIN, SANITIZED = "debug", "asan"


class Gone(Exception):
    """The mutant does not apply."""


@functools.cache
def sources():
    """The text of each source file."""
    return {path: path.read_text() for path in sorted((ROOT / "src").glob("*/*.[ch]"))}


class Mutant:
    """One planted bug."""

    def __init__(self, room, what, tests):
        self.room, self.what, self.tests = room, what, tests
        self.where, self.noted, self.before, self.after = "", [], [], []

    def __str__(self):
        return f"{self.room}: {self.what}"

    def find(self):
        """(path, text, begin, end of the function)."""
        file, _, function = self.where.rpartition(":")
        found = []
        for path, text in sources().items():
            if file not in ("", path.name) or f"\n{function}(" not in text and function != "*":
                continue
            if function == "*":
                found.append((path, text, 0, len(text)))
                continue
            for m in re.finditer(rf"^{function}\((?:[^;{{]*)\)\n\{{\n.*?^\}}\n", text, re.M | re.S):
                found.append((path, text, m.start(), m.end()))
        if len(found) != 1:
            raise Gone(f"{len(found)} places are called {self.where}")
        return found[0]

    def apply(self):
        """(path, text with the bug)."""
        for name in [*self.tests, *self.noted[-1:]]:
            if name != "orders" and not (ROOT / f"t/unit/test_{name}.c").exists():
                raise Gone(f"there is no test_{name}.c")
        path, text, begin, end = self.find()
        lines = text[begin:end].splitlines(keepends=True)
        solid = [i for i, line in enumerate(lines) if line.strip()]
        want = [line.strip() for line in self.before if line.strip()]
        hits = [
            k
            for k in range(len(solid) - len(want) + 1)
            if all(lines[solid[k + j]].strip() == w for j, w in enumerate(want))
        ]
        if len(hits) != 1 or not want:
            raise Gone(f"its lines are there {len(hits)} times")
        first, last = solid[hits[0]], solid[hits[0] + len(want) - 1]
        lines[first : last + 1] = [line + "\n" for line in self.after]
        return path, text[:begin] + "".join(lines) + text[end:]

    def runs(self, path, flavours):
        """Lists of (flavour, test): each list is built in one go."""
        own = path.stem.removeprefix("kube_")
        first = [own] if (ROOT / f"t/unit/test_{own}.c").exists() else []
        flavour = SANITIZED if SANITIZED in self.noted else PLAIN
        noted = [(flavour, name) for name in self.noted[-1:]]
        names = list(dict.fromkeys([*first, "orders", *self.tests]))
        rest = [(f, name) for f in flavours for name in names]
        rest = [run for run in rest if run not in noted and run != (SANITIZED, "orders")]
        n = len(names)
        return [part for part in (noted, rest[:2], rest[2:6], rest[6:n], rest[n:]) if part]


def load():
    """All mutants."""
    found = []
    for path in sorted(ROOMS.glob("*.txt")):
        tests = []
        for line in path.read_text().splitlines():
            if line.startswith("tests:"):
                tests = line.split()[1:]
            elif line.startswith("* "):
                found.append(Mutant(path.stem, line[2:], tests))
            elif line.startswith("@ "):
                found[-1].where = line[2:].strip()
            elif line.startswith("= "):
                found[-1].noted = line[2:].split()
            elif line.startswith("-"):
                found[-1].before.append(line[1:])
            elif line.startswith("+"):
                found[-1].after.append(line[1:])
            elif line and not line.startswith("#"):
                raise SystemExit(f"{path}: {line}")
    return found


def note(mutant, finder):
    """Writes the test that finds a mutant into its row."""
    path = ROOMS / f"{mutant.room}.txt"
    head, row, tail = path.read_text().partition(f"* {mutant.what}\n")
    tail = re.sub(r"\A(@ .*\n)(?:= .*\n)?", rf"\g<1>= {finder}\n", tail)
    path.write_text(head + row + tail)


class Copy:
    """A copy of the tree, in which one mutant after the other is built."""

    def __init__(self, number, flavours):
        self.dir, self.flavours = WORK / str(number), flavours
        self.dir.mkdir(parents=True, exist_ok=True)
        for part in PARTS:
            self.update(ROOT / part)

    def update(self, source):
        """Brings a file or folder up to date; what is the same keeps its time."""
        target = self.dir / source.relative_to(ROOT)
        if source.name in ("target", "__pycache__"):
            return
        if source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            names = {path.name for path in source.iterdir()}
            for path in target.iterdir():
                if path.name not in names and path.is_file():
                    path.unlink()
            for name in sorted(names):
                self.update(source / name)
        elif not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copyfile(source, target)

    def make(self, flavour, tests):
        """Builds some tests; the error, or None."""
        out = f"build/{flavour}"
        targets = [f"{out}/unit/test_{name}" for name in tests]
        env = dict(os.environ, MAKEFLAGS="")
        done = subprocess.run(
            ["make", "-s", f"BUILD={flavour}", f"OUT={out}", "WARN=", "WARN_TEST=", *targets],
            cwd=self.dir, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        return done.stdout.decode(errors="replace") if done.returncode else None

    def fails(self, flavour, name):
        """True if the test fails, or does not end."""
        if name == "orders":
            command = [sys.executable, "t/util/orders.py"]
        else:
            command = [f"build/{flavour}/unit/test_{name}"]
        env = dict(os.environ, ASAN_OPTIONS="detect_leaks=1", UBSAN_OPTIONS="halt_on_error=1")
        env.pop("KUBE_PROOF", None)
        try:
            done = subprocess.run(
                command, cwd=self.dir, env=env, timeout=LIMIT,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            return True
        return done.returncode != 0

    def check(self, mutants):
        """The tests pass where nothing is planted."""
        runs = {run for m in mutants for part in m.runs(m.find()[0], [PLAIN])[:2] for run in part}
        parts = [[run for run in sorted(runs) if run[0] == f] for f in (PLAIN, SANITIZED)]
        found = self.verdict(parts)
        if found:
            raise SystemExit(f"mutants: {found} fails without a mutant")

    def verdict(self, parts):
        """The test that fails, or None."""
        for part in parts:
            for flavour in (PLAIN, SANITIZED):
                names = [name for f, name in part if f == flavour and name != "orders"]
                error = self.make(flavour, names) if names else None
                if error:
                    raise Gone("it does not build:\n" + error)
            for flavour, name in part:
                if self.fails(flavour, name):
                    return name if flavour == PLAIN else f"{flavour} {name}"
        return None

    def plant(self, mutant):
        """Tries one mutant."""
        path, text = mutant.apply()
        target = self.dir / path.relative_to(ROOT)
        original = target.read_text()
        target.write_text(text)
        try:
            return self.verdict(mutant.runs(path, self.flavours))
        finally:
            target.write_text(original)


def main(argv):
    """Entry point."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--note", action="store_true")
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--asan", action="store_true")
    parser.add_argument("words", nargs="*")
    args = parser.parse_args(argv)

    mutants = [m for m in load() if not args.words or any(w in str(m) for w in args.words)]
    if not mutants:
        print("mutants: none has one of " + " ".join(args.words))
        return True
    if args.new:
        mutants = [m for m in mutants if not m.noted]
    gone, survived, todo, lock = [], [], queue.Queue(), threading.Lock()
    for mutant in mutants:
        try:
            mutant.apply()
            todo.put(mutant)
        except Gone as e:
            gone.append(mutant)
            print(f"does not apply  {mutant}: {e}", flush=True)
    if args.list:
        print(f"mutants: {len(mutants) - len(gone)} apply, {len(gone)} do not")
        return bool(gone)

    flavours = [PLAIN, SANITIZED] if args.asan else [PLAIN]
    copies = [Copy(n, flavours) for n in range(args.jobs)]
    copies[0].check(list(todo.queue))

    def work(copy):
        while True:
            try:
                mutant = todo.get_nowait()
            except queue.Empty:
                return
            began = time.monotonic()
            try:
                found = copy.plant(mutant)
                verdict = "killed" if found else "SURVIVED"
                line = f"{verdict:16}{mutant}" + (f": {found}" if found else "")
                bad = None if found else survived
            except Gone as e:
                found, line, bad = None, f"does not apply  {mutant}: {e}", gone
            with lock:
                if bad is not None:
                    bad.append(mutant)
                if args.note and found and found.split() != mutant.noted:
                    note(mutant, found)
                print(f"{line}  {time.monotonic() - began:.0f} s", flush=True)

    threads = [threading.Thread(target=work, args=(copy,)) for copy in copies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    killed = len(mutants) - len(survived) - len(gone)
    print(f"mutants: {killed} killed, {len(survived)} survived, {len(gone)} do not apply")
    return bool(survived or gone)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
