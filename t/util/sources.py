#!/usr/bin/env python3
"""The source lists of config: prints, checks and rewrites them.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause

    sources.py base api ...   the sources of these lists, one a line
    sources.py --check        fails when a list differs from the folder
    sources.py --write        rewrites the lists from the folders
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "config"

# list name -> what belongs to it; src/cli and src/lib are not nginx's
PATTERNS = {
    "BASE": "src/base/*.c",
    "MODEL": "src/model/*.c",
    "API": "src/api/*.c",
    "CLIENT": "src/client/*.c",
    "ZONE": "src/zone/*.c",
    "PUBLISH": "src/publish/*.c",
    "CACHE": "src/cache/*.c",
    "ROUTE": "src/route/*.c",
    "STATUS": "src/status/*.c",
    "CORE": "ngx_module/ngx_kube_*.c",
    "HTTP": "ngx_module/ngx_http_kube_*.c",
    "STREAM": "ngx_module/ngx_stream_kube_*.c",
}

LIST = re.compile(r'^KUBE_([A-Z]+)_SRCS="\n(.*?)^"$', re.M | re.S)


def on_disk(name):
    """The files that belong to a list, sorted."""
    return sorted(str(p.relative_to(ROOT)) for p in ROOT.glob(PATTERNS[name]))


def in_config():
    """The lists as config has them."""
    return {m[1]: m[2].split() for m in LIST.finditer(CONFIG.read_text())}


def check():
    """Compares config with the folders; returns the number of differences."""
    bad = 0
    lists = in_config()
    named = [f for files in lists.values() for f in files]

    for name in PATTERNS:
        have, want = lists.get(name, []), on_disk(name)
        for f in sorted(set(want) - set(have)):
            print(f"config: {f} is not in KUBE_{name}_SRCS")
            bad += 1
        for f in sorted(set(have) - set(want)):
            print(f"config: KUBE_{name}_SRCS names {f}, which is not there")
            bad += 1

    for pattern in ("src/*/*.c", "ngx_module/*.c"):
        for p in sorted(ROOT.glob(pattern)):
            f = str(p.relative_to(ROOT))
            known = f in named or f.startswith(("src/cli/", "src/lib/"))
            if not known and not any(f in on_disk(n) for n in PATTERNS):
                print(f"config: {f} belongs to no list")
                bad += 1

    return bad


def write():
    """Rewrites the lists in config from the folders."""

    def block(m):
        files = "".join(f"    {f}\n" for f in on_disk(m[1]))
        return f'KUBE_{m[1]}_SRCS="\n{files}"'

    old = CONFIG.read_text()
    new = LIST.sub(block, old)
    if new != old:
        CONFIG.write_text(new)


def main(argv):
    """Entry point."""
    if argv == ["--check"]:
        return 1 if check() else 0
    if argv == ["--write"]:
        write()
        return 0
    lists = in_config()
    for name in argv:
        if name == "cli":
            print("\n".join(sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("src/cli/*.c"))))
        else:
            print("\n".join(lists[name.upper()]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
