# A process that has the zone mapped writes anything into it: as a worker
# under somebody else's control could.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Bytes of the zone changed under load."""

import os
import random
import struct

import pytest
from cluster import root
from nginx import alive, wait_until

CONF = """
    upstream static { kube_service shop/web:http; keepalive 4; }
    upstream keyed { kube_service $arg_key namespaces=shop; }
    server {
        listen 127.0.0.1:PORT;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        location / { proxy_pass http://static; }
        location /by { proxy_pass http://keyed; }
    }
"""

FLIPS = 20000
MAGIC = b"kubezone"


class Zone:
    """The image of a kube zone in a process's memory."""

    def __init__(self, pid):
        self.memory = os.open(f"/proc/{pid}/mem", os.O_RDWR)
        self.at = None
        for start, end in self._shared(pid):
            head = os.pread(self.memory, min(end - start, 1 << 20), start)
            # the slab header and its pages come first
            for found in range(0, len(head) - 128, 4096):
                if head[found : found + 8] == MAGIC:
                    self.at = start + found
                    (self.size,) = struct.unpack_from("<Q", head, found + 16)
                    (self.segments,) = struct.unpack_from("<Q", head, found + 80)
        assert self.at is not None, f"no zone in {pid}"

    @staticmethod
    def _shared(pid):
        with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
            for line in maps:
                span, mode = line.split()[:2]
                if mode == "rw-s":
                    start, end = (int(part, 16) for part in span.split("-"))
                    yield start, end

    def flip(self, chance):
        """Changes a byte of the tables, or of the records in use."""
        low, high = chance.choice(((0, self.segments), (self.segments, self.segments + 32768)))
        where = self.at + chance.randrange(low, min(high, self.size))
        was = os.pread(self.memory, 1, where)[0]
        os.pwrite(self.memory, bytes([was ^ chance.randrange(1, 256)]), where)

    def close(self):
        """Ends it."""
        os.close(self.memory)


@pytest.mark.skipif(not root(), reason="needs to write to another process's memory")
class TestFlips:
    """A process changes bytes of the zone."""

    def test_nobody_dies_and_it_heals(self, cluster, figure):
        names = [f"s{n}" for n in range(6)]
        for name in names:
            cluster.service("shop", name, 2)
        cluster.service("shop", "web", 2)
        gateway = cluster.nginx(CONF)
        gateway.allow(r"another process has changed the zone")
        cluster.steady(gateway)
        processes = [gateway.read_pid(), gateway.informer(), *gateway.workers()]
        zone = Zone(gateway.read_pid())
        chance = random.Random(1)
        done = 0
        try:
            with gateway.load() as load, gateway.load("/by?key=shop/s1") as keyed:
                while done < FLIPS or load.total < 300 or keyed.total < 300:
                    zone.flip(chance)
                    done += 1
                    if done % 2000 == 0:
                        cluster.slice("shop", "web", cluster.pods(2, f"n{done}"))
        finally:
            zone.close()

        # what failed is a 502 (or what says that a Service is not there)
        failed = {what for _, what in load.failures + keyed.failures}
        assert failed <= {"status 502", "status 503", "status 504"}, failed
        assert set(keyed.backends) <= {"shop.s1-1", "shop.s1-2"}, keyed.backends
        assert all(alive(pid) for pid in (processes[0], *processes[2:]))
        figure(f"{done} flips: {load.total + keyed.total} requests, "
               f"{len(load.failures) + len(keyed.failures)} of them failed")

        # the informer notices within ten seconds, and starts anew
        gateway.wait_log(r"another process has changed the zone", timeout=60)
        cluster.slice("shop", "web", cluster.pods(1, "after"))
        gateway.wait_backends({"after-1"}, timeout=60)
        for name in names:
            wanted = {f"shop.{name}-1", f"shop.{name}-2"}
            gateway.wait_backends(wanted, f"/by?key=shop/{name}", timeout=60)
        wait_until(
            lambda: gateway.status.resource("services")["objects"] == len(names) + 1,
            what=lambda: gateway.status.resource("services"),
        )
        assert not gateway.grep_log("exited on signal")
