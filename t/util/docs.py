#!/usr/bin/env python3
"""Checks what the documents name: files, links, functions, and tests.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause

Each row of docs/guarantees.md names at least one test, and each one exists, as
does each that a row of docs/threat-model.md ends with: a file, "file::function",
or the function of the file named before it.
"""

import re
import sys

from style import ROOT

FOLDERS = "src|ngx_module|t|docs|bench|conf-examples|\\.ci"
PATH = re.compile(rf"(?:{FOLDERS})/[\w./*<>-]*")
FILE = re.compile(r"[\w-]+\.(?:c|h|py|sh|md|go|conf|in|html|js|css)")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([\w-]+))?\)")
CALL = re.compile(r"((?:ngx_|kube_)[a-z0-9_]*)\(\)")


class Document:
    """One .md file."""

    def __init__(self, path):
        self.path = path
        self.text = path.read_text()
        self.bad = []

    def say(self, at, what):
        """Records a finding at an offset of the text."""
        line = self.text.count("\n", 0, at) + 1
        self.bad.append(f"{self.path.relative_to(ROOT)}:{line}: {what}")

    def check(self, names, code):
        """Links, and what stands in backquotes."""
        for m in LINK.finditer(self.text):
            if not re.match(r"[a-z]+:", m[1]):
                self.link(m.start(), m[1], m[2])
        for m in re.finditer(r"`([^`\n]+)`", self.text):
            word = m[1].split("::")[0]
            if PATH.fullmatch(word):
                pattern = re.sub(r"<\w+>", "*", word).rstrip("/")
                # src/cache/kube_indexer: a module, its header and its body
                if not any(ROOT.glob(pattern)) and not (ROOT / f"{pattern}.h").exists():
                    self.say(m.start(), f"{word} does not exist")
            elif FILE.fullmatch(word) and word not in names:
                self.say(m.start(), f"{word} does not exist")
            for call in CALL.findall(m[1]):
                if call.startswith("kube_") and call not in code:
                    self.say(m.start(), f"{call}() does not exist")
        return self.bad

    def link(self, at, target, anchor):
        """A link to a file of ours, and to a heading of it."""
        path = (self.path.parent / target).resolve() if target else self.path
        if not path.exists():
            self.say(at, f"the link to {target} leads nowhere")
        elif anchor and path.suffix == ".md":
            heads = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
            slugs = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in heads}
            if anchor not in slugs:
                self.say(at, f"{target}#{anchor}: no such heading")

    def rows(self, first, needs):
        """The tests of each row, its last cell, where the first cell is like that."""
        for row in re.finditer(rf"^\| ({first}) \|.*\| ([^|]*) \|$", self.text, re.M):
            folder, current, count = ROOT, None, 0
            for token in re.findall(r"`([^`]+)`", row[2]):
                name, _, function = token.partition("::")
                if name.startswith("test_") and "." not in name:
                    name, function = None, name
                if name and "/" in name:
                    current = ROOT / name
                    folder = current.parent
                elif name and FILE.fullmatch(name):
                    current = folder / name
                elif name:
                    continue
                if current is None or not current.is_file():
                    self.say(row.start(2), f"{row[1]}: {token} is no test")
                    continue
                count += current.name.startswith("test_")
                text = current.read_text()
                head = rf"^(?:class {function}\b|(?:    def |def |){function}\()"
                if function and not re.search(head, text, re.M):
                    self.say(row.start(2), f"{row[1]}: {current.name} has no {function}")
            if needs and not count:
                self.say(row.start(), f"{row[1]} names no test")


def main():
    """Entry point."""
    names = {p.name for p in ROOT.rglob("*") if "build" not in p.relative_to(ROOT).parts}
    code = "\n".join(
        p.read_text()
        for pattern in ("src/*/*.[ch]", "ngx_module/*.[ch]", "t/unit/*.[ch]", "t/sim/*.[ch]")
        for p in ROOT.glob(pattern)
    )
    code = set(re.findall(r"\w+", code))
    bad, documents = [], [Document(p) for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]]
    for document in documents:
        if document.path.name == "guarantees.md":
            document.rows(r"G\d+", needs=True)
        if document.path.name == "threat-model.md":
            document.rows("[^|]*", needs=False)
        bad += document.check(names, code)
    print("\n".join(bad + [f"docs: {len(bad)} findings" if bad else "docs: clean"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
