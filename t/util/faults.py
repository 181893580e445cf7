#!/usr/bin/env python3
"""Maps each cell of the fault table to a test of ours.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause

    faults.py            fails where t/FAULTS.md is not what t/faults.txt says,
                         where a test is named that does not exist, where the
                         cells of a group are not as many as it has, or where
                         less than nine of ten have a test
    faults.py --write    writes t/FAULTS.md anew

The head of t/faults.txt says how it is written.
"""

import re
import sys

import conformance

DATA = conformance.ROOT / "t/faults.txt"
TABLE = conformance.ROOT / "t/FAULTS.md"
SHOWN = 0.9

HEAD = """# Faults

What a server, a connection or a credential may do, and the test that shows what
becomes of it; made by `t/util/faults.py --write` of `t/faults.txt`. A cell is one
fault at one point. Names without a folder are in `t/unit` (C) or `t` (Python);
`converge` is a script of `t/converge/scripts.py`, in which client-go's informer
meets the same server.

"""


class Group:
    """A heading, how many cells it has, and its rows: (cells, conformance.Row)."""

    def __init__(self, title, cells):
        self.title, self.cells = title, cells
        self.rows = []

    def shown(self):
        """Cells with a test."""
        return sum(cells for cells, row in self.rows if row.tests)

    def markdown(self):
        """Its table."""
        text = f"\n## {self.title}\n\n{self.cells} cells, {self.shown()} shown by a test.\n\n"
        text += "| cells | fault | here |\n|---|---|---|\n"
        for cells, row in self.rows:
            tests = ", ".join(f"`{test}`" for test in row.tests)
            text += f"| {cells} | {row.name} | {tests or '*None:* ' + ' '.join(row.reason)} |\n"
        return text


def read():
    """The groups of the data."""
    groups = []
    for number, line in enumerate(DATA.read_text().splitlines(), 1):
        if line.startswith("## "):
            title, _, cells = line[3:].rpartition(": ")
            groups.append(Group(title, int(cells)))
        elif line.startswith("    "):
            groups[-1].rows[-1][1].add(line.strip())
        elif line.strip() and not line.startswith("#"):
            cells, name = re.fullmatch(r"(\d+) (.*)", line).groups()
            groups[-1].rows.append((int(cells), conformance.Row(name, number)))
    return groups


def check(groups, text):
    """Findings."""
    bad = []
    for group in groups:
        found = sum(cells for cells, _ in group.rows)
        if found != group.cells:
            bad.append(f"{group.title}: {found} cells, not {group.cells}")
        if group.shown() < SHOWN * group.cells:
            bad.append(f"{group.title}: {group.shown()} of {group.cells} are shown")
        for _, row in group.rows:
            where = f"{DATA.name}:{row.line}: {row.name}"
            if not (row.tests or row.reason):
                bad.append(f"{where}: neither a test nor a reason")
            bad += [f"{where}: there is no {t}" for t in row.tests if not conformance.exists(t)]
    if not TABLE.is_file() or TABLE.read_text() != text:
        bad.append(f"{TABLE.name} is old: t/util/faults.py --write")
    return bad


def main(argv):
    """Entry point."""
    groups = read()
    text = HEAD + "".join(group.markdown() for group in groups).lstrip("\n")
    if "--write" in argv:
        TABLE.write_text(text)
    bad = check(groups, text)
    print("\n".join(bad))
    cells = sum(group.cells for group in groups)
    shown = sum(group.shown() for group in groups)
    print(f"faults: {cells} cells, {shown} shown, {len(bad)} findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
