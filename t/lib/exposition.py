# Metrics as Prometheus reads them: promtool judges the text, its client library
# parses it.  What neither looks at is asserted here: no sample twice, and
# histograms that add up.  promtool gets the first samples of each metric alone,
# for the time of some versions (2.53) grows with the square of their number; the
# library reads every line.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Reads metrics, strictly."""

import collections
import os
import re
import shutil
import subprocess

from nginx import WAIT
from prometheus_client.parser import text_string_to_metric_families

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "tools")
JUDGED = 500  # samples of a metric


def first(text):
    """The text without what is over JUDGED samples of a metric."""
    seen = collections.Counter()
    kept = []
    for line in text.splitlines(keepends=True):
        name = "" if line.startswith("#") else re.match(r"[\w:]*", line).group()
        seen[name] += bool(name)
        if seen[name] <= JUDGED:
            kept.append(line)
    return "".join(kept)


def promtool(text):
    """Fails where "promtool check metrics" finds anything."""
    path = shutil.which("promtool", path=f"{os.environ.get('PATH', '')}:{os.path.abspath(TOOLS)}")
    assert path, "promtool is not installed: sh t/util/deps.sh test"
    made = subprocess.run(
        [path, "check", "metrics"], input=first(text).encode(), capture_output=True, timeout=WAIT
    )
    assert made.returncode == 0, (made.stdout + made.stderr).decode("utf-8", "replace")


def check_histogram(family):
    """Buckets grow, and the last one has everything."""
    rows = {}
    for sample in family.samples:
        labels = {k: v for k, v in sample.labels.items() if k != "le"}
        row = rows.setdefault(tuple(sorted(labels.items())), {"buckets": []})
        if sample.name.endswith("_bucket"):
            row["buckets"].append((float(sample.labels["le"]), sample.value))
        else:
            row[sample.name[len(family.name) :]] = sample.value
    for labels, row in rows.items():
        bounds, counts = zip(*row["buckets"])
        assert bounds == tuple(sorted(set(bounds))), (family.name, labels, bounds)
        assert counts == tuple(sorted(counts)), (family.name, labels, counts)
        assert bounds[-1] == float("inf") and counts[-1] == row["_count"], (family.name, row)
        assert "_sum" in row, (family.name, labels)


class Metrics:
    """All families by the name that their HELP line has."""

    def __init__(self, text):
        promtool(text)
        self.families = {}
        for family in text_string_to_metric_families(text):
            # the library cuts the suffix off, as OpenMetrics does
            name = family.name + ("_total" if family.type == "counter" else "")
            assert name not in self.families, f"{name}: lines are not together"
            self.families[name] = family
            assert family.documentation and family.type != "unknown", f"{name}: HELP and TYPE"
            seen = [(s.name, tuple(sorted(s.labels.items()))) for s in family.samples]
            assert len(seen) == len(set(seen)), f"{name}: a sample twice"
            if family.type == "counter":
                assert all(s.value >= 0 for s in family.samples), name
            if family.type == "histogram":
                check_histogram(family)

    def find(self, name, **labels):
        """The values of samples of that name that have these labels."""
        return [
            sample.value
            for family in self.families.values()
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]

    def value(self, name, **labels):
        """The sum of those; fails when there is none."""
        found = self.find(name, **labels)
        assert found, f"no sample {name} {labels}"
        return sum(found)
