#!/usr/bin/env python3
"""Finds circles of files: A uses B's functions or data, and B uses A's.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause

    circles.py [--shrink]      KUBE_BUILD_DIR has the objects (make build)
    circles.py --arrows FILE   what makes a file use others, and others it

Callbacks are no arrows: who calls through a pointer knows no file.  Neither
are nginx's module descriptors, which stand for a configuration.
"""

import sys

import known
import objects


def graph(made):
    """{source: {source it uses: names}}."""
    homes = objects.homes(made)
    uses = {obj.source: {} for obj in made}
    for obj in made:
        for name in obj.needed & homes.keys():
            if name.startswith("ngx_") and name.endswith("_module"):
                continue
            uses[obj.source].setdefault(homes[name], set()).add(name)
    return uses


def components(uses):
    """The strongly connected components of more than one file (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in uses[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in uses:
        if node not in index:
            visit(node)
    return found


def arrows(uses, circle):
    """What to cut: each pair of files of a circle that use each other."""
    for a in circle:
        for b in sorted(set(uses[a]) & set(circle)):
            names = sorted(uses[a][b])
            more = f" and {len(names) - 4} more" if len(names) > 4 else ""
            print(f"  {a} -> {b}: {' '.join(names[:4])}{more}")


def main(argv):
    """Entry point."""
    uses = graph(objects.objects())
    if argv[:1] == ["--arrows"]:
        for a, others in uses.items():
            for b, names in others.items():
                if argv[1] in a or argv[1] in b:
                    print(f"{a} -> {b}: {' '.join(sorted(names))}")
        return 0
    found = {}
    listed = known.listed("circle")
    for circle in components(uses):
        found[" ".join(circle)] = ""
        if " ".join(circle) not in listed:
            print("a circle of files:")
            arrows(uses, circle)
    return known.verdict("circle", found, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
