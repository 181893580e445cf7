# Label and field selectors: strings of a query to functions of an object.
# It knows the syntax an API server takes for lists and watches, not more.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""labelSelector and fieldSelector."""

import re

from apiserver_status import bad_request

_KEY = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE = r"[-A-Za-z0-9_.]*"
_EQUAL = re.compile(rf"^({_KEY})\s*(==|=|!=)\s*({_VALUE})$")
_SET = re.compile(rf"^({_KEY})\s+(in|notin)\s+\(([^()]*)\)$")
_EXISTS = re.compile(rf"^(!?)\s*({_KEY})$")


def _split(text):
    """Splits at commas that stand outside parentheses."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [p.strip() for p in parts]


def _label_term(term):
    match = _EQUAL.match(term)
    if match:
        key, op, value = match.groups()
        if op == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    match = _SET.match(term)
    if match:
        key, op, values = match.groups()
        wanted = {v.strip() for v in values.split(",")}
        if op == "in":
            return lambda labels: key in labels and labels[key] in wanted
        return lambda labels: labels.get(key) not in wanted
    match = _EXISTS.match(term)
    if match:
        negated, key = match.groups()
        if negated:
            return lambda labels: key not in labels
        return lambda labels: key in labels
    raise bad_request(f"unable to parse requirement: found '{term}'")


def label_selector(text):
    """A function of the labels, or None for an empty selector."""
    if not text or not text.strip():
        return None
    terms = [_label_term(t) for t in _split(text)]
    return lambda labels: all(t(labels) for t in terms)


def field_selector(text, what):
    """A function of (namespace, name), or None for an empty selector."""
    if not text:
        return None
    terms = []
    for part in text.split(","):
        match = re.match(r"^([A-Za-z.]+)(==|=|!=)(.*)$", part)
        if not match:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        field, op, value = match.groups()
        if field not in ("metadata.name", "metadata.namespace"):
            raise bad_request(
                f'Unable to find "{what}" that match label selector "", field selector '
                f'"{text}": field label not supported: {field}'
            )
        terms.append((field == "metadata.name", op != "!=", value))
    return lambda ns, name: all(
        ((name if by_name else ns) == value) == equal for by_name, equal, value in terms
    )


class Selector:
    """What a list or watch asks for: a namespace, labels, fields."""

    def __init__(self, ns="", labels="", fields="", what=""):
        self.ns = ns
        self.labels = label_selector(labels)
        self.fields = field_selector(fields, what)
        self.empty = self.labels is None and self.fields is None

    def __call__(self, obj):
        if self.ns and obj.ns != self.ns:
            return False
        if self.labels is not None and not self.labels(obj.labels):
            return False
        return self.fields is None or self.fields(obj.ns, obj.name)
