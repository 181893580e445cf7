# Fifty corruptions of a state file, and files that are sound but not for this
# moment: none is used, each says why, and none harms the process.  The kinds of
# them, one of each, are in t/test_state_file.py.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Corrupted state files."""

import os

import pytest
from cluster import Cluster, informer
from library import Clock
from test_state_file import CONF, KEEP, NAME, away, cold, flipped, seed, unused  # noqa: F401

FLIPS, CUTS, ZEROED, REPEATED = 28, 14, 6, 4


def region(data, n, of):
    """The n-th of so many equal parts, as the place where it begins and its end."""
    return len(data) * n // of, len(data) * (n + 1) // of


def zeroed(data, n):
    """A part is zeros, as after a lost page."""
    start, end = region(data, n, ZEROED)
    assert any(data[start:end])
    return data[:start] + bytes(end - start) + data[end:]


def repeated(data, n):
    """A part is there twice, and the last bytes are not."""
    start, end = region(data, n, REPEATED)
    return (data[:end] + data[start:end] + data[end:])[: len(data)]


CORRUPTIONS = (
    [(f"bit {n}", lambda d, n=n: flipped(d, region(d, n, FLIPS)[0])) for n in range(FLIPS)]
    + [(f"cut {n}", lambda d, n=n: d[: region(d, n, CUTS)[0]]) for n in range(CUTS)]
    + [(f"zeros {n}", lambda d, n=n: zeroed(d, n)) for n in range(ZEROED)]
    + [(f"twice {n}", lambda d, n=n: repeated(d, n)) for n in range(REPEATED - 1)]
    + [
        ("another file behind it", lambda d: d + d),
        ("the end first", lambda d: d[len(d) // 2 :] + d[: len(d) // 2]),
    ]
)


@pytest.mark.parametrize("change", [c[1] for c in CORRUPTIONS], ids=[c[0] for c in CORRUPTIONS])
def test_corrupted(away, change):  # noqa: F811
    changed = change(away.bytes)
    assert changed != away.bytes and len(CORRUPTIONS) >= 50
    gateway = cold(away, changed)
    unused(gateway, r"state file.*(damaged|empty|not used)")
    pid = gateway.informer()
    away.api.listen()
    gateway.wait_status_code(200)
    assert gateway.informer() == pid
    assert not gateway.grep_log(r"exited on signal")


def test_huge(away):  # noqa: F811
    """Larger than any of this zone can be: it is not even read."""

    def huge(gateway):
        os.truncate(gateway.path("state", NAME), 1 << 40)

    unused(cold(away, away.bytes, write=huge), r"state file.*too large")


def test_of_the_future(public_path):
    """Written while the clock was a day ahead."""
    clock = Clock(public_path, steady=False)
    clock.ahead(86400)
    with Cluster() as made:
        made.service("shop", "web")
        gateway = made.nginx(CONF, block=informer(made.api.url, state=KEEP), env=clock.env)
        gateway.status.wait(lambda i: i["state_file"]["written"])
        with open(gateway.path("state", NAME), "rb") as f:
            contents = f.read()
        made.running.remove(gateway)
        gateway.stop()
        made.api.refuse()
        unused(cold(made, contents), r"state file.*from the future")
