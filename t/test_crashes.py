# Crashes of the informer process, again and again: what they cost while the
# cluster changes.  One kill, and kills of other processes, are in
# test_signals.py.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Crash loops."""

import os
import signal
import threading
import time

import pytest
from nginx import PATIENCE, wait_until

CONF = """
    upstream static { kube_service shop/web:http; keepalive 4; }
    server {
        listen 127.0.0.1:PORT;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        location / { proxy_pass http://static; }
    }
"""

SLICES = "endpointslices"

# KUBE_LONG=1: a kill each 3 s for 95 s.
LONG = bool(os.environ.get("KUBE_LONG"))


class Scaling:
    """A Deployment scaled between 3 and 8 pods, twice a second."""

    def __init__(self, cluster, pods):
        self.cluster, self.pods = cluster, pods
        self.changes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_exc):
        self._stop.set()
        self._thread.join(60)

    def _run(self):
        while not self._stop.is_set():
            if self.changes % 2:
                for pod in self.pods[3:]:
                    pod.reopen()
            self.cluster.slice("shop", "web", self.pods[: 8 if self.changes % 2 else 3])
            if not self.changes % 2:
                for pod in self.pods[3:]:
                    pod.drain()
            self.changes += 1
            self._stop.wait(0.5)


def damped(gateway):
    """What the status says while a start is put off, or None."""
    found = gateway.status.informer()
    rows = found["resources"]
    if not all(row["state"] == "damped" for row in rows):
        return None
    return rows, {d["cause"] for d in found["degraded"]}


class TestKilledAgainAndAgain:
    """SIGKILL: nobody is to blame."""

    @pytest.mark.slow
    def test_nothing_fails_meanwhile(self, cluster, figure):
        """
        No request fails, nothing is listed, and each resume is a matter of a
        second, while pods come and go.  Short form: as soon as it has resumed.
        """
        pods = cluster.service("shop", "web", 8)
        gateway = cluster.nginx(CONF)
        gateway.allow(r"cache manager process \d+ exited on signal 9")
        cluster.steady(gateway, "shop")
        times = []
        ends = time.monotonic() + (95 if LONG else 12)
        with Scaling(cluster, pods) as scaling, gateway.load(threads=4, pause=0.015) as load:
            while time.monotonic() < ends:
                cluster.steady(gateway, "shop")
                watches = cluster.api.count(verb="watch", resource=SLICES)
                killed = time.monotonic()
                gateway.kill(signal.SIGKILL, gateway.informer())
                if len(times) >= 3:
                    rows, causes = wait_until(lambda: damped(gateway))
                    assert causes == {"crash_loop"}
                    assert all(0 <= row["retry_seconds"] <= 1.5 for row in rows)
                found = cluster.api.wait_requests(watches + 1, verb="watch", resource=SLICES)
                times.append(found[-1].started - killed)
                if LONG:
                    left = killed + 3 - time.monotonic()
                    threading.Event().wait(max(0, left))
        assert load.failures == []
        assert cluster.api.count(verb="list") == 2
        assert len(times) >= 8 and scaling.changes >= 20
        assert max(times) <= 1.5 + 2 * PATIENCE, times
        cluster.slice("shop", "web", pods[:2])
        gateway.wait_backends({pod.name for pod in pods[:2]})
        figure(
            f"{len(times)} kills, {scaling.changes} changes, 0 of {load.total} requests failed; "
            f"resumed after {min(times):.2f} to {max(times):.2f} s"
        )
