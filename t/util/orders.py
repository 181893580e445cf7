#!/usr/bin/env python3
"""Checks the atomics of the zone: how they are ordered, and where they are.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause

All loads and stores of the image go through the functions of kube_zone_word.h and
kube_zone_image.h that are in ORDERS; a getter begins with KUBE_ZONE_PAUSE, so that a test can
make a reader pause before any load.  t/model shows that these orders are
needed, and that they suffice; the table at its head counts the loads and
stores of what it models, and fails here where a function has others by now.
"""

import re
import sys

from style import ROOT, File

WORD = "src/zone/kube_zone_word.h"
IMAGE = "src/zone/kube_zone_image.h"
MODEL = "t/model/src/main.rs"
FUNCTION = re.compile(r"^(kube_\w+|[a-z]+_\w+)\([^;{]*\)\n\{\n(.*?)^\}\n", re.S | re.M)
ATOMIC = re.compile(r"\batomic_(?!signal)\w+\(|__atomic_\w+|__sync_\w+")
LOAD = re.compile(r"\bkube_(?:word|half|head)_get\(")
STORE = re.compile(r"\bkube_(?:word|half|head)_set\(|\bkube_zone_(?:head|log)_store\(")
ROW = re.compile(r"^//! \| (\w+) \| (\d+) \| (\d+) \|$", re.M)

# the writer alone stores heads, and may look at its own; sums order nothing
ORDERS = {
    "kube_word_get": ["acquire"],
    "kube_word_set": ["release"],
    "kube_word_add": ["relaxed"],
    "kube_half_get": ["acquire"],
    "kube_half_set": ["release"],
    "kube_head_set": ["relaxed"],
}

# that one process alone runs, or who asks for an order of its own; and counts of
# references that threads of a program share, which are in no zone
ELSEWHERE = {"kube_zone_damping.c", "kube_zone_cause.c", "kube_lib_object.c"}


def main():
    """Entry point."""
    bad, bodies, orders = [], {}, {}
    for path in sorted(ROOT.glob("src/*/*.[ch]")) + sorted(ROOT.glob("ngx_module/*.[ch]")):
        where = str(path.relative_to(ROOT))
        code = "\n".join(File(path).code) + "\n"
        for name, body in FUNCTION.findall(code):
            bodies[name] = body
            if where in (WORD, IMAGE) and ATOMIC.search(body):
                orders[name] = re.findall(r"memory_order_(\w+)", body)
                if name.endswith("_get") and not body.lstrip().startswith("KUBE_ZONE_PAUSE("):
                    bad.append(f"{where}: {name}() loads without KUBE_ZONE_PAUSE before it")
        if where not in (WORD, IMAGE) and path.name not in ELSEWHERE and ATOMIC.search(code):
            bad.append(f"{where}: an atomic that is not one of {WORD} or {IMAGE}")

    for name in sorted({*ORDERS, *orders}):
        if orders.get(name) != ORDERS.get(name):
            bad.append(f"{IMAGE}: {name}() is {orders.get(name)}, not {ORDERS.get(name)}")

    rows = ROW.findall((ROOT / MODEL).read_text())
    for name, *counts in rows:
        body = bodies.get(name, "")
        have = [len(LOAD.findall(body)), len(STORE.findall(body))]
        if have != [int(n) for n in counts]:
            bad.append(f"{MODEL}: {name}(): {have[0]} loads and {have[1]} stores, not {counts}")
    if not rows:
        bad.append(f"{MODEL}: no table of functions")

    print("\n".join(bad) if bad else f"orders: {len(orders)} of the image, {len(rows)} functions")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
