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

import objects
import pytest
from cluster import informer
from library import preloaded
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
    """Whether a start is put off, with what the status says of it then."""
    found = gateway.status.informer()
    rows = found["resources"]
    if not all(row["state"] == "damped" for row in rows):
        return False
    assert {d["cause"] for d in found["degraded"]} == {"crash_loop"}
    assert all(0 <= row["retry_seconds"] <= 1.5 for row in rows)
    return True


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
        times, shown = [], 0
        ends = time.monotonic() + (95 if LONG else 12)
        with Scaling(cluster, pods) as scaling, gateway.load(threads=4, pause=0.015) as load:
            while time.monotonic() < ends or len(times) < 8 or scaling.changes < 20 or not shown:
                cluster.steady(gateway, "shop")
                watches = cluster.api.count(verb="watch", resource=SLICES)
                killed = time.monotonic()
                gateway.kill(signal.SIGKILL, gateway.informer())
                if len(times) >= 3:
                    # who looks too late finds it over: it takes half a second or more
                    while cluster.api.count(verb="watch", resource=SLICES) == watches:
                        if damped(gateway):
                            shown += 1
                            break
                    assert len(gateway.grep_log("crash_loop")) == len(times) - 2
                found = cluster.api.wait_requests(watches + 1, verb="watch", resource=SLICES)
                times.append(found[-1].started - killed)
                if LONG:
                    left = killed + 3 - time.monotonic()
                    threading.Event().wait(max(0, left))
        assert load.failures == []
        assert cluster.api.count(verb="list") == 2
        assert max(times) <= 1.5 + 2 * PATIENCE, times
        cluster.slice("shop", "web", pods[:2])
        gateway.wait_backends({pod.name for pod in pods[:2]})
        figure(
            f"{len(times)} kills, {scaling.changes} changes, 0 of {load.total} requests failed; "
            f"resumed after {min(times):.2f} to {max(times):.2f} s"
        )


# An object that kills the informer: a bug is played by a library that is
# loaded before the modules, so nothing of it is in them.


@pytest.fixture(name="library", scope="module")
def make_library():
    """t/lib/poison.c, as a shared library."""
    with preloaded("poison") as path:
        yield path


def refused(gateway, resource=SLICES):
    """What of a resource is refused: {key: reason}."""
    return {r["key"]: r["reason"] for r in gateway.status.resource(resource)["refused"]}


class TestPoison:
    """An object that kills the process costs itself."""

    # a sanitizer reports, and exits
    DIED = r"cache manager process \d+ exited (on signal (6|11)|with code 1)"

    def gateway(self, cluster, library, what, file="", **more):
        """An nginx in which that object is poison (while there is a file)."""
        env = {"LD_PRELOAD": library, "KUBE_POISON": what, "KUBE_POISON_FILE": str(file)}
        gateway = cluster.nginx(CONF, env=env, **more)
        gateway.allow(self.DIED)
        gateway.allow(r"AddressSanitizer|deadly signal")
        return gateway

    def deaths(self, gateway):
        """How often the process died of a fault."""
        return len(gateway.grep_log(self.DIED))

    @pytest.mark.parametrize("stage", ["decode", "apply"])
    def test_in_a_watch(self, cluster, library, stage, figure):
        """
        Refused by name after two crashes; all else goes on within seconds, and
        nothing is listed.  Any version of it is refused, but not another uid;
        deleted it is forgotten.
        """
        cluster.service("shop", "web", 2)
        gateway = self.gateway(cluster, library, f"{stage}:bad-")
        cluster.steady(gateway, "shop")
        with gateway.load(threads=2, pause=0.01) as load:
            began = time.monotonic()
            cluster.slice("shop", "bad", cluster.pods(1))
            pods = cluster.pods(1, "after")
            cluster.slice("shop", "web", pods)
            gateway.wait_backends({"after-1"})
            took = time.monotonic() - began
            wait_until(lambda: refused(gateway) == {"shop/bad-1": "crashed_informer"})
            assert self.deaths(gateway) == 2
            for n in range(3):
                cluster.slice("shop", "bad", cluster.pods(n))
            gateway.status.wait_rv(cluster.api.rv)
            assert self.deaths(gateway) == 2
            assert refused(gateway) == {"shop/bad-1": "crashed_informer"}
        assert load.failures == []
        assert cluster.api.count(verb="list") == 2
        lines = gateway.grep_log("crashed_informer: ")
        assert len(lines) == 2 and all("[error]" in line for line in lines), lines
        for line, again in zip(lines, ("", " again")):
            text = f"{SLICES} shop/bad-1 killed the informer process{again} ({stage}, signal"
            assert text in line, line
        assert "delete it" in lines[1]
        metrics = gateway.status.metrics()
        assert metrics.value(
            "nginx_kube_skipped_objects_total", resource=SLICES, reason="crashed_informer"
        ) >= 4
        cluster.api.delete(SLICES, "shop", "bad-1")
        wait_until(lambda: refused(gateway) == {})
        assert self.deaths(gateway) == 2

        # made anew it has another uid, and a trial: two more
        cluster.slice("shop", "bad", cluster.pods(1))
        wait_until(lambda: refused(gateway) == {"shop/bad-1": "crashed_informer"})
        wait_until(lambda: gateway.status.resource(SLICES)["state"] == "watching")
        assert self.deaths(gateway) == 4
        assert cluster.api.count(verb="list") == 2
        figure(f"{stage}: all else was current after {took:.2f} s")

    @pytest.mark.parametrize("stage", ["decode", "apply"])
    def test_in_a_list(self, cluster, library, stage):
        """It counts as seen, and is named; the list is complete without it."""
        cluster.service("shop", "web", 1)
        cluster.slice("shop", "bad", cluster.pods(1))
        for n in range(5):
            cluster.service("shop", f"more{n}", 1)
        gateway = self.gateway(cluster, library, f"{stage}:bad-", more="page_size 2;")
        assert refused(gateway) == {"shop/bad-1": "crashed_informer"}
        assert self.deaths(gateway) == 2
        assert gateway.status.resource(SLICES)["objects"] == 6
        assert gateway.get().status == 200

    @pytest.mark.parametrize("stage", ["decode", "apply"])
    @pytest.mark.parametrize("resource", ["services", SLICES])
    def test_last_good_state_stays(self, cluster, library, stage, resource, public_path):
        """What was good of it is served; another uid ends its refusal at once."""
        poison = public_path / "poison"
        pods = cluster.service("shop", "web", 2)
        gateway = self.gateway(cluster, library, f"{stage}:web", poison)
        cluster.steady(gateway, "shop")
        key = "shop/web" if resource == "services" else "shop/web-1"
        with gateway.load(threads=2, pause=0.01) as load:
            poison.touch()
            if resource == "services":
                cluster.api.put(objects.service("shop", "web", labels={"changed": "yes"}))
            else:
                cluster.slice("shop", "web", cluster.pods(2, "new"))
            wait_until(lambda: refused(gateway, resource) == {key: "crashed_informer"})
            gateway.wait_backends({pod.name for pod in pods})
            poison.unlink()
            cluster.slice("shop", "web", cluster.pods(2, "next"))
            if resource == "services":
                gateway.wait_backends({"next-1", "next-2"})
            else:
                gateway.status.wait_rv(cluster.api.rv)
                gateway.wait_backends({pod.name for pod in pods})
        assert load.failures == []
        assert self.deaths(gateway) == 2
        assert cluster.api.count(verb="list") == 2
        if resource == SLICES:
            cluster.api.delete(SLICES, "shop", "web-1")
            cluster.slice("shop", "web", cluster.pods(1, "anew"))
            gateway.wait_backends({"anew-1"})
            assert refused(gateway) == {}

    def test_in_a_publication(self, cluster, library, public_path, figure):
        """
        A Service of which the process dies while it is published is served as
        it was, and named; other Services follow, and nothing is listed.
        """
        poison = public_path / "poison"
        cluster.service("shop", "web", 2)
        cluster.service("shop", "bad", 1)
        gateway = self.gateway(cluster, library, "publish:bad", poison)
        cluster.steady(gateway, "shop")
        with gateway.load(threads=2, pause=0.01) as load:
            poison.touch()
            began = time.monotonic()
            cluster.slice("shop", "bad", cluster.pods(2, "worse"))
            cluster.slice("shop", "web", cluster.pods(1, "after"))
            gateway.wait_backends({"after-1"})
            took = time.monotonic() - began
            wait_until(
                lambda: refused(gateway, "services") == {"shop/bad": "crashed_informer"}
            )
        wait_until(lambda: refused(gateway) == {"shop/bad-1": "crashed_informer"})
        gateway.status.wait_rv(cluster.api.rv)
        assert self.deaths(gateway) == 2
        assert load.failures == []
        assert cluster.api.count(verb="list") == 2
        lines = gateway.grep_log("crashed_informer: ")
        assert len(lines) == 2, lines
        assert "services shop/bad killed the informer process" in lines[0]
        assert "(publish, signal" in lines[0]
        figure(f"publish: all else was current after {took:.2f} s")

    def test_in_a_take_over(self, cluster, library, public_path, figure):
        """A record that kills whoever takes over the zone becomes a name."""
        poison = public_path / "poison"
        cluster.service("shop", "web", 2)
        cluster.service("shop", "bad", 1)
        gateway = self.gateway(cluster, library, "walk:bad-", poison)
        gateway.allow(r"exited on signal 9")
        cluster.steady(gateway, "shop")
        with gateway.load(threads=2, pause=0.01) as load:
            poison.touch()
            gateway.kill(signal.SIGKILL, gateway.informer())
            began = time.monotonic()
            cluster.slice("shop", "web", cluster.pods(1, "after"))
            gateway.wait_backends({"after-1"})
            took = time.monotonic() - began
        assert refused(gateway) == {"shop/bad-1": "crashed_informer"}
        assert self.deaths(gateway) == 2
        assert load.failures == []
        assert cluster.api.count(verb="list") == 2
        figure(f"walk: all else was current after {took:.2f} s")

    def test_before_and_after_a_reload(self, cluster, library):
        """The zone remembers: a new process, and a zone of another size."""
        cluster.service("shop", "web", 1)
        gateway = self.gateway(cluster, library, "apply:bad-")
        cluster.slice("shop", "bad", cluster.pods(1))
        wait_until(lambda: refused(gateway) == {"shop/bad-1": "crashed_informer"})
        gateway.change(block=informer(cluster.api.url, zone="kube 8m"), gone=True)
        rv = cluster.slice("shop", "bad", cluster.pods(2))
        gateway.status.wait_rv(rv)
        assert refused(gateway) == {"shop/bad-1": "crashed_informer"}
        assert self.deaths(gateway) == 2

    def test_a_signal_from_outside_blames_nobody(self, cluster, library, public_path):
        """SIGSEGV by kill() is not the object's, whatever is in hand; nor SIGKILL."""
        poison = public_path / "poison"
        poison.touch()
        cluster.service("shop", "web", 1)
        gateway = self.gateway(cluster, library, "stall:slow-", poison)
        gateway.allow(r"exited on signal 9")
        cluster.steady(gateway, "shop")
        cluster.slice("shop", "slow", cluster.pods(1))
        for n, sig in enumerate((signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT)):
            stalled = "poison: stalled"
            wait_until(
                lambda n=n: (gateway.log() + gateway.stderr()).count(stalled) > n,
                what=gateway.tail,
            )
            gateway.kill(sig, gateway.informer())
        poison.unlink()
        gateway.status.wait_rv(cluster.slice("shop", "web", cluster.pods(1, "new")))
        assert self.deaths(gateway) == 2
        assert not gateway.grep_log("crashed_informer: ")
        assert refused(gateway) == {}
        assert gateway.status.resource(SLICES)["objects"] == 2
