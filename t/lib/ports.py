# Ports for tests: below the ephemeral ones, which clients of other tests take at
# random.  A process takes them from a block that is its own while it lives: the
# block's name is an abstract socket, which belongs to a network namespace as
# ports do, and goes with its process.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""TCP ports that nobody else takes."""

import contextlib
import itertools
import os
import socket
import time

PORTS = range(20000, 32000)
PORT_BLOCK = 200

_ports = None


def _own_block():
    """(its claim, its ports without end) of a block nobody else holds."""
    starts = PORTS[::PORT_BLOCK]
    first = os.getpid() % len(starts)
    for start in (*starts[first:], *starts[:first]):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0kube-t-ports-{start}")
        except OSError:
            claim.close()
            continue
        return claim, itertools.cycle(range(start, start + PORT_BLOCK))
    raise AssertionError(f"{len(starts)} processes test here: no block of ports is left")


@contextlib.contextmanager
def claimed(name, seconds):
    """What of the machine there is but one of: nobody else has it meanwhile."""
    deadline = time.monotonic() + seconds
    with socket.socket(socket.AF_UNIX) as claim:
        while True:
            try:
                claim.bind(f"\0kube-t-{name}")
                break
            except OSError:
                assert time.monotonic() < deadline, f"{name} is not free"
                time.sleep(0.05)
        yield


def free_port(hosts=("127.0.0.1",)):
    """A TCP port nobody uses on these addresses."""
    global _ports
    if _ports is None:
        _ports = _own_block()
    for port in itertools.islice(_ports[1], PORT_BLOCK):
        with contextlib.ExitStack() as stack:
            try:
                for host in hosts:
                    family = socket.AF_INET6 if ":" in host else socket.AF_INET
                    sock = stack.enter_context(socket.socket(family))
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    sock.bind((host, port))
            except OSError:
                continue
        return port
    raise AssertionError(f"no free port on {hosts}")
