#!/usr/bin/env python3
"""Compares the reflector's state table with its document and its test.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause

    steps.py            fails where docs/internals/reflector.md, the matrix of
                        the test or an order differs from steps[][]
    steps.py --write    writes the document's table anew

The table is steps[][] of kube_reflector_step.c.  In the document a cell is the
step's name, "-" where the input is ignored, empty where it cannot come.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "src/cache/kube_reflector_step.h"
CODE = ROOT / "src/cache/kube_reflector_step.c"
TEST = ROOT / "t/unit/test_reflector_step.c"
DOC = ROOT / "docs/internals/reflector.md"
BEGIN, END = "<!-- steps.py -->\n", "<!-- /steps.py -->\n"


def names(prefix, last):
    """The enumerators of the header, in their order."""
    found = re.findall(rf"^    KUBE_{prefix}_([A-Z_]+?)(?: = 0)?,", HEADER.read_text(), re.M)
    return found[: found.index(last) + 1]


def cells(path, table):
    """(state, input, value) of an array of designated initialisers."""
    text = path.read_text()
    body = text[re.search(table, text).end() :]
    body = body[: body.index("\n};")]
    for row in re.split(r"\[KUBE_REFLECTOR_(?=[A-Z]+\] = \{)", body)[1:]:
        state = row.split("]")[0]
        for name, value in re.findall(r"\[KUBE_INPUT_(\w+)\] = ([^,\n]+)", row):
            yield state, name, value.strip()


def main(argv):
    """Entry point."""
    states = names("REFLECTOR", "STOPPED")
    inputs = names("INPUT", "STOP")
    order = [(s, i) for s in states for i in inputs]
    bad = []

    code = {(s, i): v for s, i, v in cells(CODE, r"steps\[KUBE_REFLECTOR_STATES\].*\n=?\{?")}
    test = {(s, i): v for s, i, v in cells(TEST, r"matrix\[KUBE_REFLECTOR_STATES\].*\{")}

    for what, table in (("steps[][]", code), ("the test's matrix", test)):
        if list(table) != [cell for cell in order if cell in table]:
            bad.append(f"{what} is not in the order of the enumerations")
    for state, name in sorted(set(code) ^ set(test)):
        bad.append(f"{name} in {state}: legal in the code or in the test, not in both")

    lines = [" | ".join(["| input", *states]) + " |", "|---" * (len(states) + 1) + "|"]
    for name in inputs:
        row = [code.get((state, name), "") for state in states]
        row = [re.sub("^(kube_step|reflector)_", "", word) for word in row]
        row = ["-" if word == "ignore" else word for word in row]
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    table = BEGIN + "\n".join(lines) + "\n" + END

    text = DOC.read_text()
    before, rest = text.split(BEGIN)
    now = before + table + rest.split(END)[1]
    if "--write" in argv:
        DOC.write_text(now)
    elif now != text:
        bad.append("docs/internals/reflector.md: the table is old, see steps.py --write")

    print("\n".join(bad) if bad else f"steps: {len(code)} legal cells of {len(order)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
