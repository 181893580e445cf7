#!/usr/bin/env python3
"""Checks C files against nginx's dialect, as this project writes it.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause

    style.py [FILE ...]     default: src/, ngx_module/, t/unit/ and t/sim/

Declarations after statements are left to the compiler, which knows better.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = 80
LICENCE = (
    "Copyright (C) the nginx-kube-informer authors",
    "SPDX-License-Identifier: BSD-2-Clause",
)

# No length, no reentrancy, or no bound: never right in this code base.
BANNED = re.compile(
    r"\b(strcpy|strcat|sprintf|vsprintf|gets|strtok|strncpy|strncat|alloca"
    r"|atoi|atol|atoll|scanf|sscanf|setjmp|longjmp|system|popen|tmpnam)\s*\("
)

NOISE = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S
)

LINE_RULES = (
    (re.compile(r"\b(if|for|while|switch)\("), "a space follows the keyword"),
    (re.compile(r"\bfor \(;;\)"), "write for ( ;; )"),
    (re.compile(r"\bwhile \((1|true)\)"), "write for ( ;; )"),
    (re.compile(r"^\s*else\b"), "write } else {"),
    (re.compile(r"\bfor \((?:const )?\w+ \**\w+ ="), "declare at the start of the block"),
    (re.compile(r"\w\*\)"), "write (type *)"),
    (re.compile(r"\b[a-z_]\w*\* +\w"), "the star belongs to the name"),
    (re.compile(r"\)\{"), "a space precedes the brace"),
    (re.compile(r"\(\s+[^;\s]|[^\s;]\s+\)(?!\s*$)"), "no space inside parentheses"),
    (re.compile(r",[^\s\\]"), "a space follows the comma"),
    (re.compile(r"^\s+(?!.*\bdefine\b).*\breturn\("), "return takes no parentheses"),
)

TRAILING = re.compile(r"(&&|\|\||[^|]\||[^&*]&|[^+]\+|[^-]-|/|%|==|!=|<=|>=|\?|<<|>>)$")
BRACELESS = re.compile(r"^\s*(?:\} else )?(if|for|while) \(")
DECL = re.compile(
    r"^(    (?:(?:const|static|volatile|unsigned|signed|long|struct|enum|union|register)\s+)*"
    r"[A-Za-z_]\w*\s+)(\**)([A-Za-z_]\w*)\s*(?:\[[^]]*\]\s*)*(?:[=,;]|$)"
)
NOT_TYPES = {"return", "goto", "case", "else", "typedef", "do", "break", "continue"}


def blank(m):
    """Replaces a comment or literal, keeping the shape of the text."""
    text = m[0]
    if text.startswith("/*"):
        return re.sub(r"[^\n]", " ", text)
    if text.startswith("//"):
        return "//" + " " * (len(text) - 2)
    return text[0] + "_" * (len(text) - 2) + text[-1]


class File:
    """One file and what is wrong with it."""

    def __init__(self, path):
        self.path = path
        self.text = path.read_text()
        self.lines = self.text.split("\n")
        self.code = [line.rstrip() for line in NOISE.sub(blank, self.text).split("\n")]
        self.bad = []

    def say(self, number, what):
        """Records a finding; numbers count from 0."""
        self.bad.append((number + 1, what))

    def check(self):
        """Runs all checks; returns the findings in order."""
        self.check_text()
        self.check_head()
        for i, line in enumerate(self.code):
            self.check_line(i, line)
        self.check_functions()
        return sorted(set(self.bad))

    def check_text(self):
        """What concerns characters only."""
        for i, line in enumerate(self.lines):
            if len(line) > COLUMNS:
                self.say(i, f"{len(line)} columns, the limit is {COLUMNS}")
            if "\t" in line:
                self.say(i, "tab")
            if line != line.rstrip():
                self.say(i, "space at the end of the line")
            if re.search(r"\b(TODO|FIXME|XXX)\b", line):
                self.say(i, "an issue, not a note in the code")
        if not self.text.endswith("\n") or self.text.endswith("\n\n"):
            self.say(len(self.lines) - 1, "the file ends with one line feed")

    def check_head(self):
        """The first comment says what the file is, and its licence."""
        head = self.text.lstrip("\n")
        comment = head[: head.find("*/")] if head.startswith("/*") else ""
        for line in LICENCE:
            if line not in comment:
                self.say(0, f'the first comment lacks "{line}"')
        if self.path.suffix == ".h":
            guard = self.path.stem.upper() + "_H"
            if not re.search(rf"^#ifndef (\w+_)?{guard}$", self.text, re.M):
                self.say(0, f"the include guard is {guard}")

    def check_line(self, i, line):
        """What can be seen in one line."""
        if "//" in line:
            self.say(i, "no // comments")
        if re.match(r"\s*#", line):
            return
        body = line.rstrip("\\").rstrip()
        for rule, what in LINE_RULES:
            if rule.search(body):
                self.say(i, what)
        m = BANNED.search(body)
        if m:
            self.say(i, f"{m[1]}() is banned")
        if TRAILING.search(body):
            self.say(i, "the operator begins the next line")
        if BRACELESS.match(body) and body.endswith(";"):
            inner = body[body.index("(") :]
            if inner.count("(") == inner.count(")"):
                self.say(i, "braces around the body")

    def functions(self):
        """Yields (line of the name, line of {, line of }) per definition."""
        depth, name, start = 0, None, None
        head = ""
        for i, line in enumerate(self.code):
            if re.match(r"\s*#", line) or (i and self.lines[i - 1].endswith("\\")):
                continue
            for c in line:
                if depth == 0 and c in ";}":
                    head = ""
                elif depth == 0 and c == "{":
                    text = head.strip()
                    is_function = text.endswith(")") and not re.match(
                        r"(typedef\s|struct\s+\w+\s*$|enum\b|union\s+\w+\s*$)", text
                    )
                    start = i if is_function and "=" not in text.split("(")[0] else None
                    depth = 1
                elif c == "{":
                    depth += 1
                elif c == "}":
                    depth -= 1
                    if depth == 0:
                        head = ""
                        if start is not None:
                            yield name, start, i
                elif depth == 0:
                    if not head and not c.isspace():
                        name = i
                    head += c
            if depth == 0 and head:
                head += "\n"

    def check_functions(self):
        """The shape of definitions and what stands between them."""
        for head, start, end in self.functions():
            if self.code[start] != "{":
                self.say(start, "the brace of a function stands alone in column 0")
            if self.code[end] != "}":
                self.say(end, "the closing brace of a function stands in column 0")
            self.check_name(head, start)
            self.check_above(head)
            self.check_below(end)
            self.check_declarations(start, end)

    def check_name(self, head, start):
        """The name begins a line, the return type has the line above."""
        for i in range(head, start):
            if re.match(r"[A-Za-z_]\w*\(", self.code[i]):
                if i == head:
                    self.say(i, "the return type has a line of its own")
                return
        self.say(head, "the name of a function begins a line")

    def check_above(self, head):
        """Two blank lines before a definition and its comment."""
        i = head - 1
        while i >= 0 and self.lines[i].strip() and not self.lines[i].startswith("#"):
            i -= 1
        if i < 0 or self.lines[i].startswith("#"):
            return
        if self.lines[i - 1].rstrip().endswith("*/"):
            # nginx sets a comment apart: one blank line below, two above
            i -= 1
            while i > 0 and not self.lines[i].lstrip().startswith("/*"):
                i -= 1
            i -= 1
        if self.lines[i - 1].strip():
            above = self.lines[i - 1]
            if not above.startswith("#"):
                self.say(head, "two blank lines between functions")
        elif i >= 2 and not self.lines[i - 2].strip():
            self.say(head, "two blank lines between functions, not more")

    def check_below(self, end):
        """Two blank lines after a definition, but before #endif."""
        i = end + 1
        while i < len(self.lines) and not self.lines[i].strip():
            i += 1
        if i >= len(self.lines) or self.lines[i].startswith("#"):
            return
        if i - end != 3:
            self.say(end, "two blank lines after a function")

    def check_declarations(self, start, end):
        """The names in the declarations at its start are aligned."""
        columns = {}
        for i in range(start + 1, end):
            if not self.lines[i].strip():
                break
            m = DECL.match(self.code[i])
            if m and m[1].split()[0] not in NOT_TYPES:
                columns[i] = m.start(3)
        for i, column in columns.items():
            if column != max(columns.values()):
                self.say(i, "the names of declarations are aligned")


def main(argv):
    """Entry point."""
    paths = [Path(a) for a in argv] or sorted(
        p
        for pattern in ("src/*/*.[ch]", "ngx_module/*.[ch]", "t/unit/*.[ch]", "t/sim/*.[ch]")
        for p in ROOT.glob(pattern)
    )
    count = 0
    for path in paths:
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        for number, what in File(path).check():
            print(f"{shown}:{number}: {what}")
            count += 1
    if count:
        print(f"style: {count} findings")
        return 1
    print(f"style: {len(paths)} files clean")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
