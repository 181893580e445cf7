#!/usr/bin/env python3
"""Finds functions, macros, parameters and includes that nobody uses.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause

    unused.py [--shrink]      KUBE_BUILD_DIR has the objects (make build)

An unused static function, variable or label is found by the compilers.
"""

import concurrent.futures
import os
import re
import subprocess
import sys

import known
import objects
from layers import includes
from style import ROOT, File

AREAS = ("src/*/*.[ch]", "ngx_module/*.[ch]")
CLANG_TIDY = os.environ.get("CLANG_TIDY", "clang-tidy-19")


def words(files):
    """{word: {file: how often}} of the code without comments and strings."""
    found = {}
    for file in files:
        for word in re.findall(r"[A-Za-z_]\w*", "\n".join(file.code)):
            counts = found.setdefault(word, {})
            counts[file.path] = counts.get(file.path, 0) + 1
    return found


# The tests' oracle over the walk that recovery uses: of no use to a process
# that serves, for it wants an image that nobody writes to.
ORACLES = {"kube_zone_validate"}

# What is there for programs that use the library: in the process of nginx
# nobody calls it, but each function of it has a test.
OFFERED = {
    "src/base/kube_rate_limiter.c",
    "src/base/kube_work_queue.c",
    "src/cache/kube_cache_sync.c",
    "src/cache/kube_factory.c",
    "src/cache/kube_memory_source.c",
    "src/cache/kube_processor.c",
    "src/cache/kube_shared_informer.c",
    "src/cache/kube_store.c",
    "src/cache/kube_store_index.c",
    "src/lib/kube_lib.c",
    "src/lib/kube_lib_informer.c",
    "src/lib/kube_lib_local_source.c",
    "src/lib/kube_lib_object.c",
    "src/lib/kube_lib_queue.c",
    "src/lib/kube_lib_system.c",
}


def functions(made, uses, tests):
    """Functions with external linkage that no other object needs."""
    needed = set().union(*(obj.needed for obj in made))
    for obj in made:
        for name, kind in obj.defined.items():
            if kind != "T" or name in needed | ORACLES | {"main"}:
                continue
            if uses.get(name, {}).get(ROOT / obj.source, 0) > 1:
                if name not in tests:
                    yield f"{name}() is used in its file alone: make it static", obj.source
            elif name in tests and obj.source not in OFFERED:
                yield f"{name}() is used by tests alone", obj.source
            elif name not in tests:
                yield f"{name}() is not used", obj.source


def macros(files, uses, tests):
    """Macros and enumerators that are defined and never named again."""
    text = "\n".join("\n".join(file.code) for file in files)
    # an X-macro makes names of a prefix and of the words of a table
    pasted = set(re.findall(r"\b(\w+_)\s*##", text))
    for file in files:
        for i, line in enumerate(file.code):
            m = re.match(r"\s*#\s*define\s+((?:KUBE|NGX_\w*KUBE)_\w+)", line)
            m = m or re.match(r"    ((?:KUBE|NGX_\w*KUBE)_[A-Z0-9_]+)(?: = [^;]+)?,?$", line)
            if not m or m[1].endswith("_H") or m[1] in tests:
                continue
            if any(m[1].startswith(p) and m[1][len(p) :] in uses for p in pasted):
                continue
            if sum(uses[m[1]].values()) == 1:
                yield f"{m[1]} is not used", f"{file.path.relative_to(ROOT)}:{i + 1}"


def parameters(files):
    """
    Parameters a function does not use though nobody asks for its type: it is
    only ever called, never a callback.
    """
    text = "\n".join("\n".join(file.code) for file in files)
    # a table's macro takes the address of a name that it makes
    made = [rf"{a}(\w+){b}" for a, b in re.findall(r"\b(\w+_)##\w+##(\w+)", text)]
    for file in files:
        for head, start, end in file.functions():
            name = re.search(r"(\w+)\s*\(", " ".join(file.code[head:start]))
            body = "\n".join(file.code[start:end])
            args = " ".join(file.code[head:start]).split("(", 1)[1].rsplit(")", 1)[0]
            for arg in re.findall(r"(\w+)(?:\[\w*\])?\s*(?:,|$)", args):
                named = re.findall(rf"\b{arg}\b", body)
                ignored = re.search(rf"^    \(void\) {arg};", body, re.M)
                if arg == "void" or (named and not (ignored and len(named) == 1)):
                    continue
                # address taken: the name without a ( behind it
                if not re.search(rf"\b{name[1]}\b(?!\s*\()", text) and not any(
                    re.fullmatch(m, name[1]) for m in made
                ):
                    yield (
                        f"{name[1]}(): {arg} is not used",
                        f"{file.path.relative_to(ROOT)}:{head + 1}",
                    )


def tidy(path, flags):
    """
    The includes of one file that clang-tidy finds unused.  Ours only: it does
    not know which of the system's headers POSIX has for a name.
    """
    made = subprocess.run(
        [CLANG_TIDY, "--quiet", "--config={Checks: '-*,misc-include-cleaner'}", str(path), "--"]
        + flags,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    if ": error: " in made.stdout:
        raise SystemExit(f"{path}:\n{made.stdout}")
    shown = path.relative_to(ROOT)
    for m in re.finditer(
        r"^(\S+?):(\d+):\d+: warning: included header (\S+) is not used", made.stdout, re.M
    ):
        if m[1].endswith(str(shown)) and "kube" in m[3]:
            yield f"{shown.name}: nothing of {m[3]} is used", f"{shown}:{m[2]}"


def unused_includes(files):
    """The same of all files, two at a time."""
    nginx = subprocess.run(
        [ROOT / "t/util/nginx-incs.sh", objects.BUILD / "objs"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    ours = includes("src") + ["-Isrc/cli", "-x", "c"]
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        runs = []
        for file in files:
            flags = ["-std=c11", "-D_DEFAULT_SOURCE"] + ours
            if file.path.parent.name == "ngx_module":
                flags = ["-std=gnu11", "-Ingx_module"] + nginx + ours
            runs.append(pool.submit(lambda f=file, g=flags: list(tidy(f.path, g))))
        for run in runs:
            yield from run.result()


def main(argv):
    """Entry point."""
    files = [File(p) for pattern in AREAS for p in sorted(ROOT.glob(pattern))]
    uses = words(files)
    tests = words(File(p) for p in sorted(ROOT.glob("t/*/*.[ch]")))
    found = {}
    for finds in (
        functions(objects.objects(), uses, tests),
        macros(files, uses, tests),
        parameters(files),
        unused_includes(files),
    ):
        for finding, where in finds:
            found.setdefault(finding, where)
    return known.verdict("unused", found, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
