#!/usr/bin/env python3
"""Maps each scenario of client-go's tests to a test of ours.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause

    conformance.py                 fails where t/CONFORMANCE.md is not what
                                   t/conformance.txt says, where a test is
                                   named that does not exist, and where a
                                   scenario has neither a test nor a reason
    conformance.py --write         writes t/CONFORMANCE.md anew
    conformance.py --complete      also fails where a row is pending
    conformance.py --upstream DIR  also fails where a Test function, or a row of
                                   a test's table, that is named is not in
                                   client-go's sources in DIR, and where one of
                                   the files that head a section has a Test
                                   function that no row names

The head of t/conformance.txt says how it is written.
"""

import ast
import functools
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "t/conformance.txt"
TABLE = ROOT / "t/CONFORMANCE.md"
SCRIPTS = ROOT / "t/converge/scripts.py"

# The packages of which each test is to have a row.
PACKAGES = ("tools/cache", "tools/cache/synctrack", "tools/pager", "tools/watch", "util/workqueue")

HEAD = """# Conformance

Each scenario that client-go's tests look at, and the test of ours that shows
it; made by `t/util/conformance.py --write` of `t/conformance.txt`. Names without
a folder are in `t/unit` (C) or `t` (Python); `converge` is a script of
`t/converge/scripts.py`, in which both informers meet the same server.

"""


class Row:
    """One scenario."""

    def __init__(self, name, line):
        self.name = name
        self.line = line
        self.scenario = []
        self.tests = []
        self.differs = []
        self.reason = []
        self.pending = []

    def add(self, text):
        """One indented line; what has no sign goes on with the line before."""
        signs = {">": self.tests, "!": self.differs, "-": self.reason, "?": self.pending}
        sign, _, rest = text.partition(" ")
        if sign in signs:
            self.last = signs[sign]
        else:
            self.last, rest = getattr(self, "last", self.scenario), text
        self.last += rest.split() if self.last is self.tests else [rest]

    def markdown(self):
        """A line of the table."""
        here = ", ".join(f"`{test}`" for test in self.tests)
        for label, lines in (
            ("Differs", self.differs),
            ("Does not apply", self.reason),
            ("Pending", self.pending),
        ):
            if lines:
                here += ("; " if here else "") + f"*{label}:* " + " ".join(lines)
        cells = (self.name, " ".join(self.scenario), here)
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


class Section:
    """A heading, the files of client-go that it is about, and its rows."""

    def __init__(self, title, files):
        self.title = title
        self.files = files
        self.rows = []


def read():
    """The sections of the data."""
    sections = []
    for number, line in enumerate(DATA.read_text().splitlines(), 1):
        if line.startswith("## "):
            title, _, files = line[3:].partition(": ")
            sections.append(Section(title, files.split()))
        elif line.startswith("    "):
            sections[-1].rows[-1].add(line.strip())
        elif line.strip() and not line.startswith("#"):
            sections[-1].rows.append(Row(line.strip(), number))
    return sections


def markdown(sections):
    """The document."""
    text = HEAD
    rows = [row for section in sections for row in section.rows]
    counts = (
        ("scenarios", len(rows)),
        ("shown by a test", sum(bool(row.tests) for row in rows)),
        ("of these otherwise than there", sum(bool(row.tests and row.differs) for row in rows)),
        ("do not apply", sum(bool(row.reason and not row.tests) for row in rows)),
        ("pending", sum(bool(row.pending) for row in rows)),
    )
    text += "; ".join(f"{what}: {n}" for what, n in counts if n) + ".\n"
    for section in sections:
        text += f"\n## {section.title}\n\n"
        if section.files:
            text += ", ".join(f"`{name}`" for name in section.files) + "\n\n"
        text += "| test | scenario | here |\n|---|---|---|\n"
        text += "".join(row.markdown() + "\n" for row in section.rows)
    return text


@functools.cache
def tests_of(name):
    """The tests of a file: cmocka's that main() runs, or pytest's."""
    if name == "converge":
        return set(re.findall(r'\bScript\("([\w.-]+)"', SCRIPTS.read_text()))
    path = ROOT / ("t/unit" if name.endswith(".c") else "t") / name
    if not path.is_file():
        return set()
    text = path.read_text()
    if name.endswith(".c"):
        run = re.findall(r"^ +(?:cmocka_unit_test\w*|[A-Z]+_TEST)\(\s*(\w+)", text, re.M)
        return set(run) & set(re.findall(r"^(\w+)\(void \*\*state\)$", text, re.M))
    found = set()
    for node in ast.parse(text).body:
        inner, prefix = [node], ""
        if isinstance(node, ast.ClassDef):
            inner, prefix = node.body, f"{node.name}::"
        found |= {f"{prefix}{n.name}" for n in inner if isinstance(n, ast.FunctionDef)}
    return found


def exists(test):
    """True if there is a test of that name, and it is run."""
    name, _, node = test.partition("::")
    return node in tests_of(name) and ("test_" in node or not name.endswith(".py"))


def check(sections):
    """Findings that need nothing but this tree."""
    bad, seen = [], set()
    for section in sections:
        for row in section.rows:
            where = f"{DATA.name}:{row.line}: {row.name}"
            if (section.title, row.name) in seen:
                bad.append(f"{where}: twice")
            seen.add((section.title, row.name))
            if not row.scenario:
                bad.append(f"{where}: what is the scenario?")
            if not (row.tests or row.reason or row.pending):
                bad.append(f"{where}: neither a test nor a reason")
            if row.differs and not row.tests:
                bad.append(f"{where}: differs, and no test shows how")
            bad += [f"{where}: there is no {test}" for test in row.tests if not exists(test)]
    if not TABLE.is_file() or TABLE.read_text() != markdown(sections):
        bad.append(f"{TABLE.name} is old: t/util/conformance.py --write")
    return bad


def upstream(sections, folder):
    """Findings beside client-go's sources."""
    bad, named = [], set()
    for section in sections:
        text = ""
        for name in section.files:
            path = folder / name
            if not path.is_file():
                bad.append(f"{section.title}: there is no {name}")
                continue
            text += path.read_text()
            named.add(name)
        if not section.files:
            continue
        functions = set(re.findall(r"^func (Test\w+)\(", text, re.M)) - {"TestMain"}
        for row in section.rows:
            test, _, case = row.name.partition(": ")
            if test not in functions:
                bad.append(f"{DATA.name}:{row.line}: client-go has no {test}")
            elif case and case not in text:
                bad.append(f"{DATA.name}:{row.line}: {test} has no case {case}")
        rows = {row.name.partition(": ")[0] for row in section.rows}
        bad += [f"{section.title}: no row for {name}" for name in sorted(functions - rows)]
    for package in PACKAGES:
        for path in sorted((folder / package).glob("*_test.go")):
            name = str(path.relative_to(folder))
            if name not in named and re.search(r"^func Test(?!Main)", path.read_text(), re.M):
                bad.append(f"no section is about {name}")
    return bad


def main(argv):
    """Entry point."""
    sections = read()
    if "--write" in argv:
        TABLE.write_text(markdown(sections))
    bad = check(sections)
    if "--upstream" in argv:
        bad += upstream(sections, Path(argv[argv.index("--upstream") + 1]))
    rows = sum(len(section.rows) for section in sections)
    waiting = [row for section in sections for row in section.rows if row.pending]
    if "--complete" in argv:
        bad += [f"{DATA.name}:{row.line}: {row.name}: pending" for row in waiting]
    print("\n".join(bad))
    print(f"conformance: {rows} scenarios, {len(waiting)} pending, {len(bad)} findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
