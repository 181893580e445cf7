#!/usr/bin/env python3
"""Finds sums of an enumerator and a number: COUNTER_FIRST + reason.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause

    arithmetic.py [--shrink]

The order of two enums becomes a contract that no compiler sees.  A table with
a static_assert on its length says the same; a static_assert in the same file
that names the enumerator will do.
"""

import re
import sys

import known
from style import ROOT, File

NAME = r"((?:KUBE|NGX_\w*KUBE)_[A-Z0-9_]+)"
SUM = re.compile(rf"\b{NAME} [+-] \(?\w|\w\)? [+-] {NAME}")
# a macro is a number, unless what is added to it is called like an enumerator
ENUM = re.compile(
    rf"\b{NAME}\s+[+-]\s+(?:\(\w+\) )?[\w.>-]*\b"
    r"(e|error|reason|kind|state|verdict|outcome|result|rc|resource|counter)\b"
)


def main(argv):
    """Entry point."""
    files = [
        File(p)
        for pattern in ("src/*/*.[ch]", "ngx_module/*.[ch]")
        for p in sorted(ROOT.glob(pattern))
    ]
    text = "\n".join("\n".join(file.code) for file in files)
    numbers = set(re.findall(r"^\s*#\s*define\s+(\w+)", text, re.M))
    found = {}
    for file in files:
        asserts = " ".join(re.findall(r"static_assert\(.*?;", "\n".join(file.code), re.S))
        for i, line in enumerate(file.code):
            # a name for what no enumerator is: one past the last
            if re.match(r"#define \w+ .*_[A-Z0-9_]+ \+ 1\b", line):
                continue
            for m in [*SUM.finditer(line), *ENUM.finditer(line)]:
                name = m[1] or m[2]
                if name in numbers and m.re is SUM:
                    continue
                if not re.search(rf"\b{name}\b", asserts):
                    finding = f"{file.path.name}: {line.strip()}"
                    found.setdefault(finding, f"{file.path.relative_to(ROOT)}:{i + 1}")
    return known.verdict("arithmetic", found, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
