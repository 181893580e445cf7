# Libraries of t/lib/*.c that tests load into nginx: faults, clocks and modules,
# so that nothing of them is in what is tested.  Built with the machine's cc.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Shared libraries for tests."""

import contextlib
import os
import subprocess

import pytest
from nginx import NGINX, ROOT, configured, public_directory

STRICT = ["-Wextra"]


def build_library(name, to, options=STRICT):
    """Compiles t/lib/NAME.c; to: the path of the library."""
    subprocess.run(
        ["cc", "-std=gnu11", "-shared", "-fPIC", "-Wall", "-Werror", *options]
        + [os.path.join(ROOT, "t", "lib", f"{name}.c"), "-o", to, "-ldl"],
        check=True,
        timeout=60,
    )


class Clock:
    """
    A clock of nginx's that is ahead at times, by t/lib/clock.c: the one that
    timers go by (steady), or the wall clock.  env: of that nginx.
    """

    def __init__(self, folder, steady=True):
        self.folder, self.file = folder, folder / "ahead"
        build_library("clock", folder / "clock.so")
        which = "KUBE_CLOCK_STEADY_FILE" if steady else "KUBE_CLOCK_FILE"
        self.env = {"LD_PRELOAD": str(folder / "clock.so"), which: str(self.file)}

    def ahead(self, seconds):
        """So many, from now on."""
        (self.folder / "new").write_text(str(seconds))
        os.rename(self.folder / "new", self.file)

    def back(self):
        """It is right again."""
        self.file.unlink()


@contextlib.contextmanager
def preloaded(name):
    """
    The path of t/lib/NAME.c as a library that stands before our modules, and
    uses the headers of src/.  Skips where there is no module to stand before.
    """
    if any(word.startswith("--add-module") for word in configured(NGINX)):
        pytest.skip("the modules are linked in")
    layers = [os.path.join(ROOT, "src", layer) for layer in os.listdir(os.path.join(ROOT, "src"))]
    with public_directory() as path:
        build_library(name, path / f"{name}.so", STRICT + [f"-I{layer}" for layer in layers])
        yield str(path / f"{name}.so")
