#!/usr/bin/env python3
"""Checks who includes whom; docs/architecture.md has the reasons.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause

    layers.py                   checks every include
    layers.py --includes LAYER  prints the -I flags of a layer (src: of all)
    layers.py --make            prints them for make, a word each

The table SEES below is the only place that says which folder sees which; the
Makefile and the other scripts ask for its flags.  A file includes headers of
its own folder and of those its layer may see.  Headers named *_private.h are
for their own folder.  The system headers of src/ are an explicit list: that is
how it stays free of nginx, time and files.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SEES = {
    "base": {"base"},
    "model": {"base", "model"},
    "api": {"base", "model", "api"},
    "client": {"base", "model", "api", "client"},
    "zone": {"base", "model", "zone"},
    "publish": {"base", "model", "zone", "publish"},
    "cache": {"base", "model", "api", "client", "zone", "publish", "cache"},
    "route": {"base", "model", "zone", "route"},
    "status": {"base", "model", "zone", "route", "status"},
}
LIBRARY = set(SEES)
SEES["lib"] = LIBRARY | {"lib"}
SEES["cli"] = LIBRARY | {"cli"}
SEES["ngx_module"] = LIBRARY | {"ngx_module"}

PURE = {
    "<arm_neon.h>",  # NEON, in kube_simd.h alone
    "<assert.h>",
    "<emmintrin.h>",  # SSE2, in kube_simd.h alone
    "<errno.h>",
    "<inttypes.h>",
    "<limits.h>",
    "<stdalign.h>",
    "<stdarg.h>",
    "<stdatomic.h>",
    "<stdbool.h>",
    "<stddef.h>",
    "<stdint.h>",
    "<stdio.h>",  # snprintf; symbols.sh sees to it that it stays at that
    "<string.h>",
}

EXTRA = {
    "api": {"<cjson/cJSON.h>"},
    "zone": {"<fcntl.h>", "<sys/mman.h>"},
}

# these talk to the system: any header but nginx's
FREE = {"client", "lib", "cli", "ngx_module"}

INCLUDE = re.compile(r'^\s*#\s*include\s+("[^"]+"|<[^>]+>)', re.M)


def layer_of(path):
    """The layer a file belongs to, by its folder."""
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "src" else parts[0]


def files():
    """All files that are checked."""
    for pattern in ("src/*/*.[ch]", "ngx_module/*.[ch]"):
        yield from sorted(ROOT.glob(pattern))


def problem(path, name, homes):
    """What is wrong with one include, or None."""
    layer = layer_of(path)
    if layer not in SEES:
        return f"src/{layer} is not a layer"

    if name.startswith("<"):
        if layer == "ngx_module":
            return None
        if name.startswith("<ngx_"):
            return "src/ includes no nginx header"
        if layer in FREE or name in PURE | EXTRA.get(layer, set()):
            return None
        return f"{layer} does not include {name}"

    header = name.strip('"')
    if not header.endswith(".h"):
        return f"{header} is not a header"
    if "/" in header:
        return f"{header}: headers are included by their name alone"
    home = homes.get(header)
    if home is None:
        return f"{header} is not one of ours"
    if home not in SEES[layer]:
        return f"{layer} does not see {home} ({header})"
    if header.endswith("_private.h") and home != layer:
        return f"{header} is for {home} alone"
    return None


def includes(layer):
    """The -I flags that a layer is compiled with, lowest layer first."""
    sees = LIBRARY | {"lib"} if layer == "src" else SEES[layer]
    return [f"-Isrc/{name}" for name in SEES if name in sees and name != "ngx_module"]


def main(argv):
    """Entry point."""
    if argv[:1] == ["--includes"]:
        print(" ".join(includes(argv[1])))
        return 0
    if argv == ["--make"]:
        for layer in SEES:
            print(*(f"INC_{layer}+={flag}" for flag in includes(layer)))
        return 0

    homes = {}
    bad = 0

    for path in files():
        if path.suffix == ".h":
            if path.name in homes:
                print(f"{path.relative_to(ROOT)}: {path.name} exists in {homes[path.name]} too")
                bad += 1
            homes[path.name] = layer_of(path)

    for path in files():
        text = path.read_text()
        for m in INCLUDE.finditer(text):
            what = problem(path, m[1], homes)
            if what:
                line = text.count("\n", 0, m.start(1)) + 1
                print(f"{path.relative_to(ROOT)}:{line}: {what}")
                bad += 1

    print(f"layers: {bad} findings" if bad else "layers: clean")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
