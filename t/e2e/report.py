# What the suite measured: a table at the end of the run, and build/e2e.json.
# It judges nothing but one thing: a time fails beyond ten times its bar.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Collects the figures of a run."""

import json
import os

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OUT = os.path.join(ROOT, "build", "e2e.json")

# Machines are noisy: what is timed is shown, and fails only far from its bar.
SLACK = 10
COLUMNS = ("line", "what", "bar", "measured")


def void(why):
    """Ends a test whose run proves nothing: it did not pass."""
    pytest.fail("void: " + why, pytrace=False)


def quantile(values, q):
    """The nearest rank of values, which need not be sorted."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(q * len(ranked)))]


class Report:
    """Rows of the table, in the order in which they came."""

    def __init__(self):
        self.rows = []

    def add(self, line, what, bar, measured):
        """A row; bar and measured as they are to be read."""
        self.rows.append(dict(zip(COLUMNS, (str(line), what, str(bar), str(measured)))))

    def time(self, line, what, bar, measured, unit="ms", note=""):
        """A row of a time, and the only judgement made of it."""
        self.add(line, what, f"{bar:g} {unit}", f"{measured:.4g} {unit}{note}")
        assert measured <= SLACK * bar, (
            f"{what}: {measured:.4g} {unit}, beyond {SLACK} times its bar of {bar:g} {unit}"
        )

    def table(self):
        """The lines of the table."""
        if not self.rows:
            return []
        rows = [dict(zip(COLUMNS, COLUMNS))] + sorted(self.rows, key=lambda r: r["line"])
        width = {c: max(len(r[c]) for r in rows) for c in COLUMNS}
        return [" | ".join(r[c].ljust(width[c]) for c in COLUMNS).rstrip() for r in rows]

    def write(self, stats, seconds):
        """The same as JSON, with how the run ended."""
        counts = {k: len(v) for k, v in stats.items() if k in ("passed", "failed", "error")}
        os.makedirs(os.path.dirname(OUT), exist_ok=True)
        with open(OUT, "w", encoding="utf-8") as f:
            json.dump({"seconds": round(seconds, 1), "tests": counts, "figures": self.rows}, f,
                      indent=1)
            f.write("\n")


REPORT = Report()
