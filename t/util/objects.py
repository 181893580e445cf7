"""What the objects of a build define and need, by file of the sources.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause
"""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KUBE_BUILD_DIR") or ROOT / "build" / "release")

# where the object of a source is, below a build directory
PLACES = (
    ("src/*/*.c", lambda source: BUILD / "obj" / source.relative_to("src").with_suffix(".o")),
    ("ngx_module/*.c", lambda source: BUILD / "objs/addon" / source.with_suffix(".o")),
)


class Object:
    """One object: (name: nm's letter) of what it defines; what it needs."""

    def __init__(self, source, path):
        self.source = str(source)
        self.defined, self.needed = {}, set()
        made = subprocess.run(
            ["nm", "-g", "-P", str(path)], capture_output=True, text=True, check=True
        )
        for line in made.stdout.splitlines():
            name, kind = line.split()[:2]
            if kind in "Uw":
                self.needed.add(name)
            else:
                self.defined[name] = kind


def objects():
    """All of src/ and ngx_module/; an object that is missing ends the check."""
    made = []
    for pattern, place in PLACES:
        for source in sorted(ROOT.glob(pattern)):
            source = source.relative_to(ROOT)
            path = place(source)
            if not path.exists():
                raise SystemExit(f"{path} is missing: make build first")
            made.append(Object(source, path))
    return made


def homes(made):
    """{name: the source that defines it}."""
    return {name: obj.source for obj in made for name in obj.defined}
