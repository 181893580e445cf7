# A strict reader of the Prometheus text format (0.0.4): what promtool would
# complain of raises here.  It computes nothing from what it reads.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Reads metrics, strictly."""

import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
VALUE = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?|[+-]?Inf|NaN")
TYPES = ("counter", "gauge", "histogram", "summary", "untyped")
SUFFIXES = {
    "histogram": ("_bucket", "_sum", "_count"),
    "summary": ("", "_sum", "_count"),
}


class Bad(AssertionError):
    """A line that breaks the format."""


def number(text):
    """A sample's value."""
    if not VALUE.fullmatch(text):
        raise Bad(f"not a value: {text!r}")
    return float(text.replace("Inf", "inf").replace("NaN", "nan"))


def labels_of(text):
    """The labels between { and }, and what follows them."""
    made, i = {}, 1
    while text[i] != "}":
        match = LABEL.match(text, i)
        if not match or text[match.end() : match.end() + 2] != '="':
            raise Bad(f"bad label in {text!r}")
        value, i = "", match.end() + 2
        while text[i] != '"':
            if text[i] == "\\":
                i += 1
                if text[i] not in '\\"n':
                    raise Bad(f"bad escape in {text!r}")
                value += {"n": "\n"}.get(text[i], text[i])
            else:
                value += text[i]
            i += 1
        if match[0] in made:
            raise Bad(f"label twice in {text!r}")
        made[match[0]] = value
        i += 1
        if text[i] == ",":
            i += 1
        elif text[i] != "}":
            raise Bad(f"bad labels: {text!r}")
    return made, text[i + 1 :]


class Family:
    """A metric with its samples: {(name, labels as sorted pairs): value}."""

    def __init__(self, name):
        self.name = name
        self.help = None
        self.type = None
        self.samples = {}

    def check(self):
        """What promtool's lint and a histogram's rules ask."""
        if not self.help or not self.type:
            raise Bad(f"{self.name}: no HELP or no TYPE")
        if self.type == "counter" and not self.name.endswith("_total"):
            raise Bad(f"counter {self.name} does not end in _total")
        if self.type != "counter" and self.name.endswith("_total"):
            raise Bad(f"{self.name} is no counter")
        for (name, _), value in self.samples.items():
            if self.type == "counter" and not value >= 0:
                raise Bad(f"{name}: a counter of {value}")
        if self.type == "histogram":
            self._check_histogram()

    def _check_histogram(self):
        rows = {}
        for (name, pairs), value in self.samples.items():
            labels = dict(pairs)
            bound = labels.pop("le", None)
            row = rows.setdefault(tuple(sorted(labels.items())), {"buckets": []})
            if name.endswith("_bucket"):
                row["buckets"].append((number(bound), value))
            else:
                row[name[len(self.name) :]] = value
        for labels, row in rows.items():
            bounds = [b for b, _ in row["buckets"]]
            counts = [c for _, c in row["buckets"]]
            if bounds != sorted(set(bounds)) or counts != sorted(counts):
                raise Bad(f"{self.name}{labels}: buckets do not grow")
            if not bounds or bounds[-1] != float("inf") or counts[-1] != row.get("_count"):
                raise Bad(f"{self.name}{labels}: +Inf bucket and _count differ")
            if "_sum" not in row:
                raise Bad(f"{self.name}{labels}: no _sum")


class Metrics:
    """All families by name."""

    def __init__(self, text):
        self.families = {}
        if not text.endswith("\n") or "\r" in text:
            raise Bad("lines end in \\n, the last one too")
        self._last = None
        for line in text.split("\n")[:-1]:
            if line.startswith("#"):
                self._comment(line)
            elif line:
                self._sample(line)
        for family in self.families.values():
            family.check()

    def _comment(self, line):
        parts = line.split(" ", 3)
        if len(parts) < 4 or parts[0] != "#" or parts[1] not in ("HELP", "TYPE"):
            return
        name = parts[2]
        if not NAME.fullmatch(name):
            raise Bad(line)
        if name != self._last and name in self.families:
            raise Bad(f"{name}: lines are not together")
        family = self.families.setdefault(name, Family(name))
        self._last = name
        field = parts[1].lower()
        if getattr(family, field) is not None or family.samples:
            raise Bad(f"{line!r}: twice, or behind samples")
        if field == "type" and parts[3] not in TYPES:
            raise Bad(line)
        setattr(family, field, parts[3])

    def _family(self, name):
        for family in (self.families.get(self._last),):
            if family is None:
                break
            for suffix in SUFFIXES.get(family.type, ("",)):
                if name == family.name + suffix:
                    return family
        raise Bad(f"{name}: no HELP and TYPE right before")

    def _sample(self, line):
        match = NAME.match(line)
        if not match:
            raise Bad(f"not a sample: {line!r}")
        rest, labels = line[match.end() :], {}
        try:
            if rest.startswith("{"):
                labels, rest = labels_of(rest)
        except IndexError:
            raise Bad(f"cut short: {line!r}") from None
        if not rest.startswith(" ") or " " in rest[1:]:
            raise Bad(f"one space and one value: {line!r}")
        family = self._family(match[0])
        key = (match[0], tuple(sorted(labels.items())))
        if key in family.samples:
            raise Bad(f"sample twice: {line!r}")
        family.samples[key] = number(rest[1:])

    def find(self, name, **labels):
        """The values of samples of that name that have these labels."""
        made = []
        for family in self.families.values():
            for (sample, pairs), value in family.samples.items():
                if sample == name and labels.items() <= dict(pairs).items():
                    made.append(value)
        return made

    def value(self, name, **labels):
        """The sum of those; fails when there is none."""
        found = self.find(name, **labels)
        assert found, f"no sample {name} {labels}"
        return sum(found)
