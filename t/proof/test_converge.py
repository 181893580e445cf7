# kube-informer beside client-go's informers, against the scripted API servers
# of t/converge: a test a script, one run for all of them.  It needs Go.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Wherever client-go converges, so do we, and no later."""

import asyncio
import os
import shutil
import subprocess
import sys

import pytest

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GO = shutil.which("go") or "/usr/local/go/bin/go"
sys.path.insert(0, os.path.join(TREE, "t", "converge"))

import run as converge  # noqa: E402
from nginx import BUILD_DIR  # noqa: E402

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def results(tmp_path_factory, pki_of):
    """{script: (client-go's, ours)} of one run."""
    directory = tmp_path_factory.mktemp("converge")
    binary = str(directory / "kube-converge")
    subprocess.run([GO, "build", "-buildvcs=false", "-o", binary, "./converge"],
                   cwd=os.path.join(TREE, "t", "cluster"), check=True)
    run = converge.Run(converge.SCRIPTS, str(directory), os.path.join(BUILD_DIR, "kube-informer"),
                       binary, pki_of("good"))
    made = asyncio.run(run.run())
    assert not run.died, f"exit codes {run.died}"
    return made


@pytest.mark.parametrize("script", converge.SCRIPTS, ids=lambda s: s.name)
def test_as_client_go(script, results):
    """judge() has the rules; a difference is in the table DIFFERS of scripts.py."""
    theirs, ours = results[script.name]
    assert not converge.judge(script, theirs, ours), f"client-go {theirs}\nours      {ours}"
