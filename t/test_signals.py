# Processes that die or stop: the informer, the workers, and the single process
# of "master_process off".
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""SIGKILL, SIGSTOP, and no master."""

import itertools
import os
import signal
import time

import pytest
from nginx import PATIENCE, alive, process_stat, wait_until

CONF = """
    upstream web { kube_service $http_x namespaces=shop,infra; }
    upstream static { kube_service shop/web:http; keepalive 4; }
    server {
        listen 127.0.0.1:PORT;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        location / { proxy_pass http://static; }
        location /by { proxy_pass http://web; }
    }
"""

SLICES = "endpointslices"


def equal(cluster, gateway):
    """The gateway holds what the server holds."""
    status = gateway.status
    for resource in ("services", SLICES):
        status.wait_state("watching", resource)

        # a bookmark sent into a watch that is just being opened is lost
        def current():
            cluster.api.bookmark(resource)
            return int(status.resource(resource)["resource_version"]) >= cluster.api.rv

        wait_until(current, what=lambda: f"{cluster.api.rv}: {status.resource(resource)}")
        assert status.resource(resource)["objects"] == len(cluster.api.state_at(resource))
    for (ns, name), made in cluster.api.state_at(SLICES).items():
        service = made["metadata"]["labels"]["kubernetes.io/service-name"]
        wanted = sorted(e["addresses"][0] for e in made["endpoints"])
        status.wait_used(ns, service, wanted)


def following(cluster, gateway, name="after"):
    """A change after now reaches the gateway."""
    gateway.status.wait_rv(cluster.slice("shop", "web", cluster.pods(1, name)))
    gateway.wait_backends({name + "-1"})


class TestInformer:
    """The informer process."""

    def test_killed_resumes_without_a_list(self, cluster, figure):
        cluster.service("shop", "web")
        for n in range(20):
            cluster.service("infra", f"s{n}", 1)
        gateway = cluster.nginx(CONF)
        gateway.allow(r"cache manager process \d+ exited on signal 9")
        times = []
        for n in range(2):
            cluster.steady(gateway)
            watches = cluster.api.count(verb="watch", resource=SLICES)
            old = gateway.informer()
            with gateway.load() as load:
                killed = time.monotonic()
                gateway.kill(signal.SIGKILL, old)
                found = cluster.api.wait_requests(watches + 1, verb="watch", resource=SLICES)
                times.append(found[-1].started - killed)
                following(cluster, gateway, f"k{n}")
            assert not load.failures
            assert gateway.informer() != old
            gateway.wait_log(r"exited on signal 9", n + 1)
        assert cluster.api.count(verb="list") == 2
        assert all(t < 10 * PATIENCE for t in times)
        found = gateway.status.informer()
        assert found["writer"]["takeovers"] == 2 and found["writer"]["pid"] == gateway.informer()
        equal(cluster, gateway)
        figure("resumed after " + ", ".join(f"{t * 1000:.0f} ms" for t in times))

    @pytest.mark.slow
    def test_crash_loop_is_damped(self, cluster, figure):
        """From the fourth crash within 60 s on a resume waits, and says so."""
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF)
        gateway.allow(r"cache manager process \d+ exited on signal 9")
        delays = []
        for n in range(6):
            cluster.steady(gateway)
            watches = cluster.api.count(verb="watch", resource=SLICES)
            killed = time.monotonic()
            gateway.kill(signal.SIGKILL, gateway.informer())
            found = cluster.api.wait_requests(watches + 1, verb="watch", resource=SLICES)
            delays.append(found[-1].started - killed)
            assert gateway.get().status == 200
            assert len(gateway.grep_log(r"crash_loop")) == max(0, n - 2)
        assert all(0.5 <= d <= 1.5 + 2 * PATIENCE for d in delays[3:]), delays
        assert cluster.api.count(verb="list") == 2
        following(cluster, gateway)
        figure("delays " + ", ".join(f"{d:.2f} s" for d in delays))

    def test_killed_during_changes(self, cluster):
        cluster.service("shop", "web")
        for n in range(10):
            cluster.service("infra", f"s{n}", 1)
        gateway = cluster.nginx(CONF)
        gateway.allow(r"cache manager process \d+ exited on signal 9")
        import objects

        for round_ in range(3):
            old = gateway.informer()
            cluster.steady(gateway)
            for n in range(400):
                cluster.api.put(
                    objects.slice(
                        "infra",
                        f"s{n % 10}-1",
                        f"s{n % 10}",
                        [f"127.30.{round_}.{k + 1}" for k in range(n % 7)],
                    )
                )
                if n == 200:
                    gateway.kill(signal.SIGKILL, old)
            equal(cluster, gateway)
        assert cluster.api.count(verb="list") == 2

    @pytest.mark.cluster(watch_cache=False)
    @pytest.mark.parametrize(
        "more, phase",
        [("", dict(streamed=True)), ("page_size 100; watch_list off;", dict(page=3))],
        ids=["WatchList", "page"],
    )
    def test_killed_while_it_lists(self, cluster, more, phase):
        cluster.api.load_scale(500, 4)
        cluster.service("shop", "web")
        slow = cluster.api.fault(resource=SLICES, drip=(4000, 0.02), **phase)
        gateway = cluster.nginx(CONF, sync=False, more=more)
        gateway.allow(r"cache manager process \d+ exited on signal 9")
        cluster.api.wait(lambda: slow.fired == 1)
        gateway.kill(signal.SIGKILL, gateway.informer())
        gateway.status.wait_synced()
        assert gateway.wait_status_code(200).status == 200
        row = gateway.status.resource(SLICES)
        assert row["objects"] == 501 and row["refused"] == []

    def test_terminated_is_started_again(self, cluster):
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF)
        cluster.steady(gateway)
        old = gateway.informer()
        watches = cluster.api.count(verb="watch", resource=SLICES)
        gateway.kill(signal.SIGTERM, old)
        cluster.api.wait_requests(watches + 1, verb="watch", resource=SLICES)
        following(cluster, gateway)
        assert cluster.api.count(verb="list") == 2

    def test_is_not_dumpable(self, cluster):
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF)
        pid = gateway.informer()
        assert "kube" in gateway.title(pid)
        if os.geteuid() == 0:
            # the files of a process that may not be dumped belong to root
            assert os.stat(f"/proc/{pid}/environ").st_uid == 0
            assert os.stat(f"/proc/{gateway.workers()[0]}/environ").st_uid != 0

    @pytest.mark.slow
    def test_stopped_and_cut_off_are_stale(self, cluster):
        """
        SIGSTOP: no take-over, age grows, stale shows, and it goes on where it
        was.  Beside it one whose server is gone: the same words.
        """
        cluster.service("shop", "web")
        more = "idle_timeout 1s;"
        stopped = cluster.nginx(CONF, more=more, workers=1)
        from apiserver import ApiServer

        with ApiServer() as away:
            import objects

            from cluster import informer

            away.put(objects.service("shop", "web"))
            away.put(objects.slice("shop", "web-1", "web", ["127.40.0.1"]))
            gone = cluster.nginx(CONF, block=informer(away.url, more), workers=1)
            away.refuse()
            pid = stopped.informer()
            stopped.kill(signal.SIGSTOP, pid)
            assert not stopped.status.informer()["stale"]
            assert not gone.status.informer()["stale"]
            for gateway in (stopped, gone):
                found = gateway.status.wait(lambda i: i["stale"], timeout=31 + 15 * PATIENCE)
                assert 31 <= found["age_seconds"] < 31 + 15 * PATIENCE
                assert found["synced"] and found["ready"]
                metrics = gateway.status.metrics()
                assert metrics.value("nginx_kube_cache_age_seconds") >= 31
            assert stopped.get().status == 200
            new = cluster.pods(1, "late")
            cluster.slice("shop", "web", new)
            assert stopped.informer() == pid and process_stat(pid)[1] == "T"
            stopped.kill(signal.SIGCONT, pid)
            stopped.wait_backends({"late-1"})
            stopped.status.wait(lambda i: not i["stale"] and i["age_seconds"] < 10)
            assert cluster.api.count(verb="list") == 2
            assert stopped.informer() == pid
            away.listen()
            gone.status.wait(lambda i: not i["stale"])
            assert away.count(verb="list") == 2

    @pytest.mark.slow
    def test_predecessor_that_does_not_leave(self, cluster):
        """One that a reload finds stopped is named in the log by its successor."""
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF)
        old = gateway.informer()
        gateway.kill(signal.SIGSTOP, old)
        try:
            gateway.reload()
            gateway.wait_log(rf"\[error\].*takeover: process {old} .*kill it")
            assert gateway.get().status == 200
        finally:
            gateway.kill(signal.SIGCONT, old)
        following(cluster, gateway)
        # it leaves the zone before it ends
        wait_until(lambda: not alive(old))
        assert len(gateway.grep_log(r"\[error\].*takeover: ")) == 1
        assert cluster.api.count(verb="list") == 2


class TestWorkers:
    """Workers."""

    def test_killed_worker_is_replaced_warm(self, cluster):
        cluster.service("shop", "web", 2)
        gateway = cluster.nginx(CONF)
        gateway.allow(r"worker process \d+ exited on signal 9")
        with gateway.load(threads=2) as load:
            for n in range(5):
                wait_until(lambda: load.total > 50 * n)
                victim = gateway.workers()[n % 2]
                gateway.kill(signal.SIGKILL, victim)
                wait_until(lambda: len([w for w in gateway.workers() if w != victim]) == 2)
                cluster.slice("shop", "web", cluster.pods(2, f"w{n}"))
        # a request in flight in a killed worker is lost, no other
        assert len(load.failures) <= 10 and load.total > 200
        assert not [f for _, f in load.failures if f.startswith("status")]
        following(cluster, gateway)
        assert cluster.api.count(verb="list") == 2
        assert gateway.status.informer()["writer"]["takeovers"] == 0

    def test_all_workers_killed(self, cluster):
        cluster.service("shop", "web", 2)
        gateway = cluster.nginx(CONF)
        gateway.allow(r"worker process \d+ exited on signal 9")
        for _ in range(2):
            old = gateway.workers()
            for pid in old:
                gateway.kill(signal.SIGKILL, pid)
            wait_until(lambda: len(set(gateway.workers()) - set(old)) == 2)
            assert gateway.get().status == 200
        following(cluster, gateway)

    def test_killed_while_the_zone_changes(self, cluster):
        """A reader's death leaves nothing behind in the zone."""
        cluster.service("shop", "web", 2)
        cluster.service("infra", "x", pods=[])
        gateway = cluster.nginx(CONF)
        gateway.allow(r"worker process \d+ exited on signal 9")
        ports = itertools.cycle(range(1, 200))
        with gateway.load(threads=2) as load:
            for n in range(10):
                for _ in range(20):
                    import objects

                    cluster.api.put(
                        objects.slice("infra", "x-1", "x", [f"127.31.0.{next(ports)}"])
                    )
                total = load.total
                wait_until(lambda: load.total > total + 5)
                victim = gateway.workers()[0]
                gateway.kill(signal.SIGKILL, victim)
                wait_until(lambda pid=victim: len(set(gateway.workers()) - {pid}) == 2)
        following(cluster, gateway)
        equal(cluster, gateway)

    def test_log_is_reopened(self, cluster):
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF)
        os.rename(gateway.path("access.log"), gateway.path("access.old"))
        gateway.signal(signal.SIGUSR1)
        wait_until(lambda: os.path.exists(gateway.path("access.log")))

        def logged():
            """Workers are told after the master has made the file."""
            assert gateway.get("/x").status == 200
            return any("/x" in line for line in gateway.access())

        wait_until(logged)


class TestStop:
    """Ends in order."""

    @pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGQUIT, signal.SIGINT])
    def test_stop_is_quick_and_clean(self, cluster, sig):
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF)
        cluster.steady(gateway)
        started = time.monotonic()
        gateway.signal(sig)
        wait_until(lambda: gateway.process.poll() is not None)
        assert time.monotonic() - started < 5 * PATIENCE
        assert gateway.process.returncode == 0
        cluster.api.wait(lambda: cluster.api.watches(SLICES) == 0)
        assert not gateway.problems()

    def test_quit_with_the_api_stalled(self, cluster):
        """An open handshake does not hold the exit up."""
        cluster.api.connect_fault("stall")
        gateway = cluster.nginx(CONF, sync=False, more="connect_timeout 60s;")
        cluster.api.wait(lambda: cluster.api.accepted >= 1)
        started = time.monotonic()
        gateway.signal(signal.SIGQUIT)
        wait_until(lambda: gateway.process.poll() is not None)
        assert time.monotonic() - started < 5 * PATIENCE

    def test_descriptors_do_not_leak(self, cluster):
        """As many after twenty broken watches as before."""
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF, workers=1)
        cluster.steady(gateway)

        def count(pid):
            return len(os.listdir(f"/proc/{pid}/fd"))

        pid = gateway.informer()
        before = count(pid)
        for how in ("rst", "fin", "clean", "abort") * 5:
            watches = cluster.api.count(verb="watch", resource=SLICES)
            cluster.api.close_watches(SLICES, how)
            cluster.api.wait_requests(watches + 1, verb="watch", resource=SLICES)
        gateway.status.wait_state("watching")
        assert gateway.informer() == pid
        wait_until(lambda: count(pid) <= before + 1)


class TestNoMaster:
    """master_process off."""

    def test_the_only_process_does_it_all(self, cluster):
        cluster.service("shop", "web", 2)
        gateway = cluster.nginx(CONF, master=False, workers=1)
        assert gateway.get().status == 200
        following(cluster, gateway)
        found = gateway.status.status()
        assert found["informers"][0]["writer"]["pid"] == gateway.master == found["worker"]
        assert alive(gateway.master) and not gateway.family()
