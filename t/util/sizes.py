#!/usr/bin/env python3
"""Prints lengths and complexity of functions and files, beside what is good.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause

These are figures to hold the work against, not limits: a longer function that
reads better stays.  Nothing here fails.
"""

import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from style import DECL, NOT_TYPES, ROOT, File  # noqa: E402

AREAS = {
    "src": ("src/*/*.[ch]",),
    "ngx_module": ("ngx_module/*.[ch]",),
    "t/unit": ("t/unit/*.[ch]",),
}


def percentile(values, share):
    """The value below which this share of the sorted values lies."""
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0


def complexity(paths):
    """Cyclomatic complexity by (file, function), from pmccabe."""
    found = {}
    try:
        run = subprocess.run(
            ["pmccabe", *map(str, paths)], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return found
    for line in run.stdout.splitlines():
        m = re.match(r"(\d+)\t(\d+)\t\d+\t\d+\t\d+\t(.+)\(\d+\): (\S+)", line)
        if m:
            found[(m[3], m[4])] = int(m[2])
    return found


def parameters(head):
    """The number of parameters in the head of a definition."""
    inner = head[head.index("(") + 1 :].rsplit(")", 1)[0]
    return 0 if inner.strip() in ("", "void") else inner.count(",") + 1


def nesting(lines):
    """The depth of blocks below the function's own, by indentation."""
    depths = [len(x) - len(x.lstrip()) for x in lines if re.match(r"\s+.*\{$", x)]
    return max(depths, default=0) // 4


def functions_of(file):
    """(name, lines, parameters, nesting, lines of declarations) of each."""
    for head, start, end in file.functions():
        text = " ".join(file.code[head:start])
        name = re.search(r"(\w+)\s*\(", text)
        if name:
            yield (
                name[1],
                end - head + 1,
                parameters(text),
                nesting(file.code[start + 1 : end]),
            )


def single_callers(file):
    """(static functions called at all, those called from one place alone)."""
    spans = list(file.functions())
    code = "\n".join(file.code)
    heads = {s for head, start, _ in spans for s in range(head, start)}
    called = single = 0
    for head, start, _ in spans:
        above = file.code[head - 1] if head else ""
        text = " ".join([above, *file.code[head:start]])
        name = re.search(r"(\w+)\s*\(", " ".join(file.code[head:start]))
        if not name or not re.search(r"\bstatic\b", text):
            continue
        word = re.compile(rf"\b{name[1]}\b")
        uses = [
            i
            for i, line in enumerate(file.code)
            if word.search(line) and i not in heads and not line.startswith(name[1] + "(")
            for _ in word.findall(line)
            if not re.match(rf"static .*\b{name[1]}\(", line)
        ]
        # a callback has no callers that could be counted
        if uses and re.search(rf"\b{name[1]}\b(?!\s*\()", code) is None:
            called += 1
            single += len(uses) == 1
    return called, single


def comment_lines(file):
    """Lines that are comment, the licence's not counted."""
    count = 0
    for m in re.finditer(r"/\*.*?\*/", file.text, re.S):
        count += len([x for x in m[0].split("\n") if re.search(r"\w", x)])
        count -= 2 * ("SPDX-License-Identifier" in m[0])
    return count


def share(part, whole):
    """In percent."""
    return 100 * part / whole if whole else 0


def shares(files):
    """Shares of comments in lines, in headers' lines, and of single callers."""
    heads = [f for f in files if f.path.suffix == ".h"]
    pairs = [single_callers(f) for f in files]
    comments = [
        share(sum(map(comment_lines, some)), sum(len(f.lines) - 1 for f in some))
        for some in (files, heads)
    ]
    return (*comments, share(sum(p[1] for p in pairs), sum(p[0] for p in pairs)))


def folders():
    """One line for each folder of src/."""
    print("folder          files  lines  functions  p50  p90  comment  one caller")
    for folder in sorted(p for p in (ROOT / "src").iterdir() if p.is_dir()):
        files = [File(p) for p in sorted(folder.glob("*.[ch]"))]
        sizes = [fn[1] for f in files for fn in functions_of(f)]
        comment, _, single = shares(files)
        print(
            f"src/{folder.name:<12}{len(files):>5}{sum(len(f.lines) - 1 for f in files):>7}"
            f"{len(sizes):>11}{percentile(sizes, 0.5):>5}{percentile(sizes, 0.9):>5}"
            f"{comment:>7.1f} %{single:>10.0f} %"
        )


def fields(file):
    """(struct, number of fields) of each structure."""
    for m in re.finditer(r"^(?:typedef )?struct (\w*)\s*\{\n(.*?)^\}", file.text, re.M | re.S):
        count = sum(
            1
            for line in m[2].split("\n")
            if (d := DECL.match(line)) and d[1].split()[0] not in NOT_TYPES
        )
        yield m[1], count


def report(area, paths):
    """Prints the figures of one area and what asks for a second look."""
    files = [File(p) for p in paths]
    shown = {f: str(f.path.relative_to(ROOT)) for f in files}
    lengths = {f: len(f.lines) - 1 for f in files}
    functions = [(f, *fn) for f in files for fn in functions_of(f)]
    cc = complexity([p for p in paths if p.suffix == ".c"])
    sizes = [fn[2] for fn in functions]

    print(
        f"{area}: {len(files)} files, {sum(lengths.values())} lines,"
        f" {len(functions)} functions"
    )
    print(
        "  file length      "
        f"p50 {percentile(lengths.values(), 0.5)}, max {max(lengths.values())}"
        "   (good <= 500, again above 800)"
    )
    if sizes:
        print(
            f"  function length  p50 {percentile(sizes, 0.5)}, p90 {percentile(sizes, 0.9)},"
            f" max {max(sizes)}   (good p50 <= 14, p90 <= 40, again above 70)"
        )
    if cc:
        over = sum(1 for v in cc.values() if v > 15) * 100 / len(cc)
        print(
            f"  complexity       p90 {percentile(cc.values(), 0.9)}, max {max(cc.values())},"
            f" {over:.1f} % over 15   (good p90 <= 9, <= 3 %, again above 25)"
        )

    comment, in_heads, single = shares(files)
    print(
        f"  comment          {comment:.1f} % of lines, {in_heads:.1f} % of headers'"
        "   (good >= 13 %, >= 35 %)"
    )
    print(
        f"  static functions {single:.0f} % of those called have one caller"
        "   (a helper with one caller must earn its name)"
    )

    again = [f"{shown[f]}: {n} lines" for f, n in lengths.items() if n > 800]
    for f, name, size, count, depth in functions:
        if size > 70:
            again.append(f"{shown[f]}: {name}(): {size} lines")
        if count > 6:
            again.append(f"{shown[f]}: {name}(): {count} parameters")
        if depth > 4:
            again.append(f"{shown[f]}: {name}(): {depth} levels deep")
    for (path, name), value in cc.items():
        if value > 25:
            again.append(f"{Path(path).relative_to(ROOT)}: {name}(): complexity {value}")
    for f in files:
        for name, count in fields(f):
            if count > 25:
                again.append(f"{shown[f]}: struct {name}: {count} fields")
    for line in sorted(again):
        print(f"  look again: {line}")


def main():
    """Entry point."""
    for area, patterns in AREAS.items():
        paths = sorted(p for pattern in patterns for p in ROOT.glob(pattern))
        if paths:
            report(area, paths)
    folders()
    return 0


if __name__ == "__main__":
    sys.exit(main())
