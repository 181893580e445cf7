#!/usr/bin/env python3
"""Plants bugs, one at a time, and tells which of them the unit tests miss.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause

    mutants.py [--jobs N] [--list] [WORD ...]     those whose text has a WORD

t/mutants/*.txt has them:

    tests: zone_reader zone_store     unit tests of the room, likely ones first

    * what is wrong
    @ function, or file.c:function, or file.c:*
    -lines that stand there, one after the other
    +lines in their place

Lines are compared without the white space around them, and must be in the
function once.  An empty line of the file need not be written.  Each mutant is
built in one of the copies of the tree, without a sanitizer; the tests run one
after the other up to the first that fails.  What survives is tried again with
the sanitizers.  t/util/orders.py is one of the tests.

Exit code 1: a mutant survived, or one does not apply any more.
"""

import argparse
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
WORK = ROOT / "build/mutants"
PARTS = ("src", "t/unit", "t/util", "t/model", "config", "Makefile")
LIMIT = 600
FLAVOURS = ("debug", "asan")


class Gone(Exception):
    """The mutant does not apply."""


class Mutant:
    """One planted bug."""

    def __init__(self, room, what, tests):
        self.room, self.what, self.tests = room, what, tests
        self.where, self.before, self.after = "", [], []

    def __str__(self):
        return f"{self.room}: {self.what}"

    def find(self):
        """(path, text, begin, end of the function)."""
        file, _, function = self.where.rpartition(":")
        found = []
        for path in sorted((ROOT / "src").glob(f"*/{file or '*.[ch]'}")):
            text = path.read_text()
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


def load():
    """All mutants."""
    found = []
    for path in sorted((ROOT / "t/mutants").glob("*.txt")):
        tests = []
        for line in path.read_text().splitlines():
            if line.startswith("tests:"):
                tests = line.split()[1:]
            elif line.startswith("* "):
                found.append(Mutant(path.stem, line[2:], tests))
            elif line.startswith("@ "):
                found[-1].where = line[2:].strip()
            elif line.startswith("-"):
                found[-1].before.append(line[1:])
            elif line.startswith("+"):
                found[-1].after.append(line[1:])
            elif line and not line.startswith("#"):
                raise SystemExit(f"{path}: {line}")
    return found


class Copy:
    """A copy of the tree, in which one mutant after the other is built."""

    def __init__(self, number):
        self.dir = WORK / str(number)
        shutil.rmtree(self.dir, ignore_errors=True)
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, self.dir / part, ignore=shutil.ignore_patterns("target"))
            elif source.exists():
                self.dir.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, self.dir / part)

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

    def run(self, flavour, name):
        """Why a test fails, or None."""
        if name == "orders":
            command = [sys.executable, "t/util/orders.py"]
        else:
            command = [f"build/{flavour}/unit/test_{name}"]
        env = dict(os.environ, ASAN_OPTIONS="detect_leaks=1", UBSAN_OPTIONS="halt_on_error=1")
        try:
            done = subprocess.run(
                command, cwd=self.dir, env=env, timeout=LIMIT,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            return f"{name} (time)"
        return name if done.returncode else None

    def check(self, mutants):
        """The tests pass where nothing is planted."""
        why = self.verdict(sorted({name for m in mutants for name in m.tests}), FLAVOURS[:1])
        if why:
            raise SystemExit(f"mutants: {why} fails without a mutant")

    def verdict(self, tests, flavours=FLAVOURS):
        """The test that fails, or None."""
        for flavour in flavours:
            batches = [tests[:1], tests[1:5], tests[5:]]
            for batch in batches:
                error = self.make(flavour, [name for name in batch if name != "orders"])
                if error:
                    raise Gone("it does not build:\n" + error)
                for name in batch:
                    why = self.run(flavour, name)
                    if why:
                        return why
        return None

    def plant(self, mutant):
        """Tries one mutant."""
        path, text = mutant.apply()
        target = self.dir / path.relative_to(ROOT)
        original = target.read_text()
        target.write_text(text)
        tests = [*mutant.tests]
        own = path.stem.removeprefix("kube_")
        if (ROOT / f"t/unit/test_{own}.c").exists():
            tests = [own, *(name for name in tests if name != own)]
        try:
            return self.verdict([*tests[:1], "orders", *tests[1:]])
        finally:
            target.write_text(original)


def main(argv):
    """Entry point."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("words", nargs="*")
    args = parser.parse_args(argv)

    mutants = [m for m in load() if not args.words or any(w in str(m) for w in args.words)]
    gone, survived, todo, lock = [], [], queue.Queue(), threading.Lock()
    for mutant in mutants:
        try:
            mutant.apply()
            todo.put(mutant)
        except Gone as e:
            gone.append(mutant)
            print(f"does not apply  {mutant}: {e}", flush=True)
    if args.list:
        return bool(gone)

    copies = [Copy(n) for n in range(args.jobs)]
    copies[0].check(mutants)

    def work(copy):
        while True:
            try:
                mutant = todo.get_nowait()
            except queue.Empty:
                return
            began = time.monotonic()
            try:
                why = copy.plant(mutant)
                line = f"killed          {mutant}: {why}" if why else f"SURVIVED        {mutant}"
                bad = None if why else survived
            except Gone as e:
                line, bad = f"does not apply  {mutant}: {e}", gone
            with lock:
                if bad is not None:
                    bad.append(mutant)
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
