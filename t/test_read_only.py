# Builds with assertions map what workers may not write read-only: a stray write
# ends the one worker at once, and nobody reads what it wrote.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""The zone in a worker's address space."""

import os
import signal

import pytest
from cluster import informer
from library import build_library
from nginx import BUILD, wait_until

CONF = """
    upstream web { kube_service shop/web; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://web; } }
"""

pytestmark = pytest.mark.skipif(BUILD not in ("debug", "asan"), reason="BUILD=debug and asan alone")


def mappings(pid, mode):
    """[(begin, end)] of anonymous shared memory that is mapped so."""
    found = []
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
        for line in maps:
            where, how, *rest = line.split()
            if how == mode and rest[-2:] == ["/dev/zero", "(deleted)"]:
                found.append(tuple(int(x, 16) for x in where.split("-")))
    return found


def size(found):
    """The bytes of mappings."""
    return sum(end - begin for begin, end in found)


@pytest.fixture(name="gateway")
def fixture_gateway(cluster, public_path):
    """A gateway whose processes write one byte to an address when they are told to."""
    library = public_path / "stray.so"
    build_library("stray", library)
    cluster.service("shop", "web", 2)
    env = {"LD_PRELOAD": str(library), "KUBE_STRAY_FILE": str(public_path / "address")}
    made = cluster.nginx(CONF, block=informer(cluster.api.url, zone="kube 4m"), env=env)
    made.address = public_path / "address"
    return made


def test_all_but_rows_of_workers(gateway):
    """Of 4 MiB no more than the header, the rows and the edges may be written."""
    for worker in gateway.workers():
        kept = mappings(worker, "r--s")
        assert size(kept) > 3.8 * (1 << 20), kept
        assert size(mappings(worker, "rw-s")) + size(kept) >= 4 << 20
    assert not mappings(gateway.informer(), "r--s")


def test_a_stray_write_ends_the_worker(gateway, cluster):
    """It, and nothing else; what stays answers as before, and follows."""
    gateway.allow(r"worker process \d+ exited|AddressSanitizer|deadly signal|SEGV")
    before = gateway.workers()
    for begin, end in mappings(before[0], "r--s"):
        for address in (begin, (begin + end) // 2, end - 1):
            gateway.address.write_text(f"{address:x}")
            os.chmod(gateway.address, 0o644)
            victim = gateway.workers()[0]
            # the control: who may write there does
            os.kill(gateway.informer(), signal.SIGRTMIN + 4)
            os.kill(victim, signal.SIGRTMIN + 4)
            wait_until(lambda pid=victim: pid not in gateway.workers())
            wait_until(lambda: len(gateway.workers()) == len(before))
            gateway.wait_status_code(200)
    assert gateway.status.informer()["writer"]["takeovers"] == 0
    gateway.status.wait_rv(cluster.slice("shop", "web", cluster.pods(1, "after")))
    gateway.wait_backends({"after-1"})
