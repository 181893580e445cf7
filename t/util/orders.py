#!/usr/bin/env python3
"""Checks the atomics of the zone: each load has a place to pause before it.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause

All loads of the image go through the getters of kube_zone_image.h, and those
begin with KUBE_ZONE_PAUSE: so a test can make a reader pause before any load.
Operations that load and store at once may be in files of the writer.
"""

import re
import sys

from style import ROOT, File

IMAGE = "src/zone/kube_zone_image.h"
GETTER = re.compile(r"\n(kube_\w+)\([^)]*\)\n\{\n(.*?)\n\}\n", re.S)
LOAD = re.compile(r"\batomic_load\w*|__atomic_load\w*|__sync_\w+")
# the writer alone stores heads, and may look at its own
OWN = {"kube_head_set"}


def main():
    """Entry point."""
    bad, getters = [], 0
    for pattern in ("src/*/*.[ch]", "ngx_module/*.[ch]"):
        for path in sorted(ROOT.glob(pattern)):
            where = str(path.relative_to(ROOT))
            code = "\n".join(File(path).code)
            if where != IMAGE:
                for found in LOAD.findall(code):
                    bad.append(f"{where}: {found} outside of {IMAGE}")
                continue
            for name, body in GETTER.findall(code):
                if not LOAD.search(body) or name in OWN:
                    continue
                getters += 1
                if not body.lstrip().startswith("KUBE_ZONE_PAUSE("):
                    bad.append(f"{where}: {name}() loads without KUBE_ZONE_PAUSE before it")
    if getters != 2:
        bad.append(f"{IMAGE}: {getters} getters, not 2: is the check out of date?")
    print("\n".join(bad) if bad else f"orders: {getters} getters")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
