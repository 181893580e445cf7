#!/usr/bin/env python3
"""Checks private headers: one a module at most, for the module's own files.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause

    private.py [--shrink]

A module is a header kube_x.h with kube_x.c and perhaps kube_x_*.c.  A header
of src/ that only the bodies of one module include, and no unit test, is private
to it: it is named kube_x_impl.h, and there is one.
"""

import re
import sys
from pathlib import Path

import known

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
OTHER = re.compile(r"_(private|internal|priv|int|inc|local)$")


def own(module, stem):
    """Whether a file belongs to a module, by its name."""
    return stem == module or stem.startswith(module + "_")


def main(argv):
    """Entry point."""
    headers, includers = {}, {}
    for pattern in ("src/*/*.[ch]", "ngx_module/*.[ch]", "t/unit/*.[ch]"):
        for path in sorted(ROOT.glob(pattern)):
            if path.suffix == ".h" and path.parts[-3] != "t":
                headers[path.name] = path
            for name in INCLUDE.findall(path.read_text()):
                includers.setdefault(name, set()).add(path)

    found = {}
    for name, path in headers.items():
        stem, users = path.stem, includers.get(name, set())
        where = path.relative_to(ROOT)
        if not users:
            found[f"{name}: nobody includes it"] = where
        elif stem.endswith("_impl"):
            module = stem.removesuffix("_impl")
            for user in users:
                if user.parent != path.parent or not own(module, user.stem):
                    found[f"{name}: {user.relative_to(ROOT)} is not of its module"] = where
        elif OTHER.search(stem):
            found[f"{name}: a private header is named <module>_impl.h"] = where
        elif "src" in path.parts:
            parts = stem.split("_")
            for n in range(2, len(parts)):
                module = "_".join(parts[:n])
                if module + ".h" in headers and all(
                    u.suffix == ".c" and u.parent == path.parent and own(module, u.stem)
                    for u in users
                ):
                    found[f"{name}: only {module} includes it: {module}_impl.h"] = where
                    break
    return known.verdict("private", found, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
