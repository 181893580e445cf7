# http: how often one request is sent, while the pods that fail are replaced.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Attempts of one request."""

import threading

import objects
import pytest
from nginx import WAIT, free_port, is_angie, wait_until

RETRY = """
    upstream web { METHOD kube_service shop/web; }
    upstream static { METHOD SERVERS }
    server {
        listen 127.0.0.1:PORT;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_next_upstream error timeout http_404;
        MORE
        location /       { proxy_pass http://web; }
        location /static { proxy_pass http://static; }
    }
"""


def retrying(cluster, method="", more="", servers="server 127.0.0.1:1;", key="shop/web"):
    """A gateway over shop/web that passes on after errors and 404."""
    text = RETRY.replace("METHOD", method).replace("MORE", more).replace("SERVERS", servers)
    text = text.replace("shop/web", key)
    return cluster.nginx(text, workers=1)


def addresses(answer):
    """Whom a request was sent to, in order."""
    return answer.headers["x-upstream-addr"].split(", ")


class Asked:
    """One held request in the background; its answer is in made."""

    def __init__(self, gateway, path="/?hold=1"):
        self.made = None
        self.thread = threading.Thread(target=self._run, args=(gateway, path))

    def _run(self, gateway, path):
        self.made = gateway.get(path, timeout=8 * WAIT)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_exc):
        self.thread.join(2 * WAIT)

    def waits(self, until):
        """Returns when until() is true, or there is an answer: False."""
        wait_until(lambda: until() or self.made is not None)
        return self.made is None


METHODS = ["", "least_conn;", "hash $request_id consistent;", "random;", "keepalive 4;"]


class TestBound:
    """Never more than max(servers when it began, 3)."""

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("began, tries, most", [(1, 0, 3), (2, 0, 3), (5, 0, 5), (5, 2, 2)])
    def test_pods_that_fail_are_replaced(self, cluster, method, began, tries, most):
        pods = cluster.pods(began, "old")
        cluster.service("shop", "web", pods=pods)
        fresh = cluster.pods(most + 3, "new", port=pods[0].port)
        gateway = retrying(cluster, method, f"proxy_next_upstream_tries {tries};")
        with Asked(gateway) as asked:
            for new in fresh:
                if not asked.waits(lambda: any(p.active for p in pods)):
                    break
                gateway.status.wait_rv(cluster.slice("shop", "web", [new]))
                for pod in pods:
                    pod.close()
                pods = [new]
        assert asked.made.status == 502
        used = addresses(asked.made)
        assert len(used) == most and len(set(used)) == most

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("tries, most", [(0, 256), (300, 300), (2, 2)])
    def test_very_many(self, cluster, method, tries, most):
        """Whoever may write slices does not choose how often one request is sent."""
        port = free_port(["0.0.0.0"])
        ends = [objects.endpoint(f"127.3.{n // 250}.{n % 250 + 1}") for n in range(400)]
        cluster.api.put(objects.service("shop", "web"))
        cluster.slice("shop", "web", ends, ports=(("http", port),))
        gateway = retrying(cluster, method, f"proxy_next_upstream_tries {tries};")
        used = addresses(gateway.get())
        assert len(used) == most and len(set(used)) == most

    def test_quiet_service_as_static(self, cluster):
        pods = cluster.service("shop", "web", 5)
        servers = " ".join(f"server {p.address};" for p in pods)
        gateway = retrying(cluster, servers=servers)
        for pod in pods:
            pod.close()
        static, ours = gateway.get("/static"), gateway.get()
        assert static.status == ours.status == 502
        assert sorted(addresses(static)) == sorted(addresses(ours))


class TestPassedOver:
    """An answer that was passed over counts as an attempt."""

    @pytest.mark.parametrize("method", METHODS)
    def test_not_asked_again(self, cluster, method):
        old = cluster.service("shop", "web", pods=cluster.pods(2, "old", status=404))
        (new,) = cluster.pods(1, "new", port=old[0].port)
        gateway = retrying(cluster, method)
        with Asked(gateway) as asked:
            wait_until(lambda: sum(p.active for p in old) == 1)
            gateway.status.wait_rv(cluster.slice("shop", "web", [*old, new]))
            for pod in (*old, new):
                pod.release()
        assert asked.made.backend == "new-1"
        used = addresses(asked.made)
        assert len(used) == len(set(used)) >= 2 and used[-1] == new.address

    def test_keeps_no_place(self, cluster):
        """One that newer peers offer again, and is not asked, has no connection."""
        (old,) = cluster.service("shop", "web", pods=cluster.pods(1, "old"))
        (new,) = cluster.pods(1, "new", port=old.port)
        new.release()
        gateway = retrying(cluster, key="shop/web max_conns=1 max_fails=0")
        with Asked(gateway) as asked:
            wait_until(lambda: old.active == 1)
            gateway.status.wait_rv(cluster.slice("shop", "web", [old, new]))
            old.close()
        old.reopen()
        assert addresses(asked.made) == [old.address, new.address]
        gateway.status.wait_rv(cluster.slice("shop", "web", [old]))
        assert gateway.get().backend == "old-1"

    @pytest.mark.parametrize("method", METHODS)
    def test_all_pass_over(self, cluster, method):
        pods = cluster.service("shop", "web", pods=cluster.pods(4, status=404))
        servers = " ".join(f"server {p.address};" for p in pods)
        gateway = retrying(cluster, method, servers=servers)
        static, ours = gateway.get("/static"), gateway.get()
        assert static.status == ours.status == 404
        assert sorted(addresses(static)) == sorted(addresses(ours))
        # and none of them was found to be dead
        assert len(addresses(gateway.get())) == 4

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("left", ["newer", "down", "none"])
    def test_last_one_has_the_last_word(self, cluster, method, left):
        """Nobody else may be asked by then: its status is the client's, not 502."""
        pods = cluster.pods(3, "old", status=404)
        old, newer = pods[:2], pods[2:]
        cluster.service("shop", "web", pods=old)
        more = "server 127.0.0.1:1 down;" if left == "down" else ""
        gateway = retrying(cluster, method + more)
        with Asked(gateway) as asked:
            wait_until(lambda: sum(p.active for p in old) == 1)
            (first,) = (p for p in old if p.active)
            there = {"newer": [first, *newer], "down": [first], "none": []}[left]
            gateway.status.wait_rv(cluster.slice("shop", "web", there))
            for pod in pods:
                pod.release()
        assert asked.made.status == 404
        asks = [first, *newer] if left == "newer" else [first]
        if left == "none" and is_angie():
            # there a request keeps what it was balanced over
            asks += [p for p in old if p is not first]
        assert addresses(asked.made) == [p.address for p in asks]


class TestCached:
    """One whose connection was in the cache may have closed it before: no attempt."""

    def test_not_without_end(self, cluster):
        """It may be the request that has it closed, each time."""
        pods = cluster.service("shop", "web", pods=cluster.pods(3))
        gateway = retrying(cluster, "keepalive 8;", key="shop/web max_fails=0")
        gateway.status.wait_rv(cluster.slice("shop", "web", pods[:2]))
        used = []
        with Asked(gateway, "/?hold=1") as asked:
            for n in range(20):
                if not asked.waits(lambda: any(p.active for p in pods)):
                    break
                gateway.status.wait_rv(cluster.slice("shop", "web", pods[: 3 - n % 2]))
                # each has a connection in the cache by then
                assert [gateway.get().status for _ in range(8)] == [200] * 8
                if not asked.waits(lambda: sum(p.active for p in pods) == 1):
                    break
                (pod,) = [p for p in pods if p.active]
                used.append(pod)
                sent = sum(p.requests for p in pods)
                pod.cut()
                asked.waits(lambda: sum(p.requests for p in pods) > sent)
            for pod in pods:
                pod.release()
        assert asked.made.status == 502
        assert 3 < len(used) <= 6, used

    def test_as_static(self, cluster):
        """What may be asked after it is what may be asked of a static upstream."""
        ours, static = cluster.service("shop", "web", 2), cluster.pods(2, "static")
        servers = " ".join(f"server {p.address};" for p in static)
        gateway = retrying(cluster, "keepalive 8;", servers=servers)
        made = []
        for path, pods in (("/static", static), ("/", ours)):
            assert [gateway.get(path).status for _ in range(4)] == [200] * 4
            with Asked(gateway, path + "?hold=1") as asked:
                asked.waits(lambda pods=pods: any(p.active for p in pods))
                first, other = sorted(pods, key=lambda p: not p.active)
                other.status = 404
                other.release()
                first.cut()
            used = addresses(asked.made)
            assert used[:2] == [first.address, other.address]
            made.append((asked.made.status, len(used)))
        assert made[0] == made[1]

    @pytest.mark.parametrize("changes", [0, 1, 2])
    def test_few_changes(self, cluster, changes):
        """Where no more than one attempt is allowed one change does not end it."""
        pods = cluster.service("shop", "web", pods=cluster.pods(5))
        gateway = retrying(
            cluster, "keepalive 8;", "proxy_next_upstream_tries 1;", key="shop/web max_fails=0"
        )
        assert [gateway.get().status for _ in range(10)] == [200] * 10
        with Asked(gateway) as asked:
            for n in range(3):
                if not asked.waits(lambda: any(p.active for p in pods)):
                    break
                (pod,) = [p for p in pods if p.active]
                pods.remove(pod)
                if n < changes:
                    gateway.status.wait_rv(cluster.slice("shop", "web", pods))
                pod.cut()
            for pod in pods:
                pod.release()
        assert asked.made.status == 200
        assert len(addresses(asked.made)) == 4


def test_nobody_left(cluster):
    """The Service is scaled to zero while its last pod fails."""
    (pod,) = cluster.service("shop", "web", 1)
    gateway = retrying(cluster)
    with Asked(gateway) as asked:
        wait_until(lambda: pod.active == 1)
        gateway.status.wait_rv(cluster.slice("shop", "web", []))
        pod.close()
    assert asked.made.status == 502
    assert addresses(asked.made) == [pod.address]
