# What kube_decode makes of a text, against what Go's own types make of it.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""The decoder beside client-go's, on the tables of the unit tests and changes of them."""

import os
import subprocess

import pytest

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.mark.parametrize("name, variable", [
    ("decode_oracle", "KUBE_DECODE_DUMP"),
    ("decode_message", "KUBE_MESSAGE_DUMP"),
])
def test_as_go_decodes(tmp_path, name, variable):
    """t/cluster/decode says what is compared: in JSON, and in Protocol Buffers."""
    dump = tmp_path / "dump"
    subprocess.run(
        ["make", "-C", TREE, "unit", "T=" + name, "SKIP_DEPS=1"],
        check=True,
        env=dict(os.environ, **{variable: str(dump)}),
    )
    done = subprocess.run(
        [os.path.join(TREE, "t", "cluster", "bin", "decode"), str(dump)],
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout, done.stderr)
    assert done.returncode == 0
