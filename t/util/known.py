"""Findings that are known and wait to be mended: a list that only shrinks.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause

known.txt holds "check: finding", one a line.  A finding that is not there
fails the check, and so does a line whose finding is gone; the checks take it
off when called with --shrink, and nothing adds one.
"""

from pathlib import Path

KNOWN = Path(__file__).with_name("known.txt")


def listed(check):
    """The known findings of one check."""
    if not KNOWN.exists():
        return set()
    lines = (line.partition(": ") for line in KNOWN.read_text().splitlines())
    return {finding for name, _, finding in lines if name == check}


def shrink(check, gone):
    """Takes lines off; the file goes with its last."""
    lines = [
        line
        for line in KNOWN.read_text().splitlines()
        if line not in {f"{check}: {finding}" for finding in gone}
    ]
    if any(line and not line.startswith("#") for line in lines):
        KNOWN.write_text("\n".join(lines) + "\n")
    else:
        KNOWN.unlink()


def verdict(check, found, argv=()):
    """Compares {finding: where it is} with the list; the exit code of the check."""
    known = listed(check)
    gone = known - set(found)
    if gone and "--shrink" in argv:
        shrink(check, gone)
        gone = set()
    for finding in sorted(set(found) - known):
        where = found[finding]
        print(f"{where}: {finding}" if where else finding)
    for finding in sorted(gone):
        print(f"{KNOWN.name}: gone, take it off (--shrink does): {finding}")
    bad = len(set(found) - known) + len(gone)
    left = len(known & set(found))
    state = f"{bad} findings" if bad else "clean"
    print(f"{check}: {state}" + (f", {left} known" if left else ""))
    return 1 if bad else 0
