# The rig's own test: what Ring 3 stands on must itself be true.  One control
# plane serves all of it; nginx, where used, runs without any of our modules.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import urllib.request

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import kubeapi                                              # noqa: E402
import netns                                                # noqa: E402
from testbed import ADVERTISE, BINARY, Testbed, wait_for    # noqa: E402

NS = "shop"
READER = "reader=reader-token"


@pytest.fixture(scope="module")
def ns():
    if os.geteuid():
        pytest.skip("network namespaces need root")
    space = netns.NetNS(inside=True)
    with space:
        yield space
        space.leave()
        left = [pid for pid in space.pids()]
    assert not left, "processes left in the namespace"
    assert not os.path.exists("/var/run/netns/" + space.name)


@pytest.fixture(scope="module")
def tb(ns, tmp_path_factory):
    directory = tmp_path_factory.mktemp("testbed")
    with Testbed(directory, tokens=[READER]) as testbed:
        testbed.namespace(NS)
        testbed.apply(testbed.deployment(NS, "web", 3))
        testbed.apply(testbed.service(NS, "web"))
        testbed.wait_ready(NS, "web", 3)
        print("started in %.1f s; MiB: %s" % (testbed.seconds, {
            name: round(p.rss()) for name, p in testbed.processes().items()}))
        yield testbed
        pids = [p.pid for p in testbed.processes().values()]
    assert not [pid for pid in pids if os.path.exists("/proc/%d" % pid)]


def rv(tb):
    return tb.slices(NS, "web")[0]["metadata"]["resourceVersion"]


def watch_status(tb, version):
    """What the server says to a watch that resumes at this version."""
    path = kubeapi.path_of("EndpointSlice", NS, None, "discovery.k8s.io/v1")
    status, text = tb.api.request("GET", path, watch="1", timeoutSeconds=1,
                                  resourceVersion=version)
    events = [json.loads(line) for line in text.splitlines()]
    if status == 200 and events and events[0]["type"] == "ERROR":
        return events[0]["object"]["code"]
    return status


def test_pods_serve(tb):
    pods = {p["status"]["podIP"]: p["metadata"]["name"]
            for p in tb.pods(NS, app="web")}
    ready = tb.ready_endpoints(NS, "web")
    assert {address for address, _ in ready} == set(pods)
    for address, port in ready:
        url = "http://%s:%d/x?delay=20ms" % (address, port)
        with urllib.request.urlopen(url, data=b"12345", timeout=5) as r:
            said = json.loads(r.read())
        assert said["pod"] == pods[address] == r.headers["X-Pod"]
        assert r.headers["X-Pod-Addr"] == "%s:%d" % (address, port)
        assert (said["method"], said["body"]) == ("POST", 5)


def test_load(tb):
    targets = ["http://%s:%d" % e for e in tb.ready_endpoints(NS, "web")]
    r = tb.load(targets, connections=6, requests=600, post_share=0.25,
                delays=["0ms", "5ms"], path=["/a", "/b?c=d"])
    assert (r["total"], r["failed"], r["status"]) == (600, 0, {"200": 600})
    assert r["connections_opened"] == 6 and r["reconnects"] == 0
    assert len(r["pods"]) == 3 and 75 < r["posts"] < 225
    assert 5 <= r["longest_ms"] and r["p50_ms"] <= r["p99_ms"]


def test_load_sees_failures(tb):
    """A port where nobody listens fails each request, and is told."""
    r = tb.load("http://10.244.0.9:9", connections=2, requests=30)
    assert (r["total"], r["failed"]) == (30, 30)
    assert r["failures"] == {"connect": 30} and len(r["errors"]) == 20


def close_unanswered(listener):
    """Answer the first request of each connection, and hang up at the next."""
    while True:
        try:
            conn, _ = listener.accept()
        except OSError:
            return
        with conn:
            conn.recv(65536)
            conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            conn.recv(65536)


@pytest.mark.parametrize("again", [True, False])
def test_load_resends(tb, again):
    """What HTTP lets a client send again is no failure, if so asked."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=close_unanswered, args=[listener])
        server.start()
        r = tb.load("http://127.0.0.1:%d" % listener.getsockname()[1],
                    connections=1, requests=20, retry_closed=again)
        listener.shutdown(socket.SHUT_RDWR)
        server.join(10)
    assert not server.is_alive() and r["total"] == 20
    if again:
        # Each new connection answers once, so all but the first are resent.
        assert (r["failed"], r["resent"], r["reconnects"]) == (0, 19, 19)
    else:
        assert (r["failed"], r["resent"]) == (10, 0)
        assert r["failures"] == {"first byte": 10}


def test_rolling_restart(tb):
    """Pods are replaced one by one, with an address of their own each."""
    before = {p["metadata"]["uid"]: p["status"]["podIP"]
              for p in tb.pods(NS, app="web")}
    tb.rollout_restart(NS, "web")
    tb.wait_rollout(NS, "web")
    after = {p["metadata"]["uid"]: p["status"]["podIP"]
             for p in tb.pods(NS, app="web")}
    assert len(after) == 3 and not set(after) & set(before)
    assert not set(after.values()) & set(before.values())
    tb.wait_ready(NS, "web", 3)


def test_static_client_suffers(tb):
    """A client that stays with a pod that ends sees that."""
    tb.apply(tb.deployment(NS, "one", 1))
    tb.apply(tb.service(NS, "one"))
    (address, port), = tb.wait_ready(NS, "one", 1)
    load = tb.start_load("http://%s:%d" % (address, port), connections=4,
                         requests=10**6, rate=500)
    load.wait_total(200)
    tb.scale(NS, "one", 0)
    tb.wait_ready(NS, "one", 0)
    load.wait_total(200)
    r = load.stop()
    assert r["failed"] > 0 and r["status"]["200"] >= 200
    tb.delete("Deployment", NS, "one", api_version="apps/v1")
    tb.delete("Service", NS, "one")
    assert tb.slices(NS, "one") == [] and tb.pods(NS, app="one") == []


def test_terminating(tb):
    """During preStop an endpoint serves, and says that it is ending."""
    tb.apply(tb.deployment(NS, "slow", 1, prestop_ms=1500))
    tb.apply(tb.service(NS, "slow"))
    (address, port), = tb.wait_ready(NS, "slow", 1)
    tb.scale(NS, "slow", 0)

    def ending():
        return [c for _, _, c in tb.endpoints(NS, "slow")
                if c.get("terminating")]

    conditions = wait_for(ending, 10, "terminating endpoint")[0]
    assert conditions["serving"] and not conditions["ready"]
    url = "http://%s:%d/" % (address, port)
    assert urllib.request.urlopen(url, timeout=5).status == 200
    wait_for(lambda: not tb.endpoints(NS, "slow"), 10, "end")
    with pytest.raises(OSError):
        urllib.request.urlopen(url, timeout=5)


def test_rbac(tb):
    """A token without a role may nothing; with one, just that."""
    path = kubeapi.path_of("Service", NS)
    api = tb.api_as("reader-token")
    assert api.request("GET", path)[0] == 403
    tb.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
              "metadata": {"namespace": NS, "name": "reader"},
              "rules": [{"apiGroups": [""], "resources": ["services"],
                         "verbs": ["get", "list", "watch"]}]})
    tb.apply({"apiVersion": "rbac.authorization.k8s.io/v1",
              "kind": "RoleBinding",
              "metadata": {"namespace": NS, "name": "reader"},
              "roleRef": {"apiGroup": "rbac.authorization.k8s.io",
                          "kind": "Role", "name": "reader"},
              "subjects": [{"kind": "User", "name": "reader",
                            "apiGroup": "rbac.authorization.k8s.io"}]})
    wait_for(lambda: api.request("GET", path)[0] == 200, 10, "the role")
    assert api.request("GET", kubeapi.path_of("Service", "default"))[0] == 403
    assert tb.api_as("nonsense").request("GET", path)[0] == 401
    api.close()


def test_raw(tb):
    for kubeconfig in (tb.kubeconfig, tb.cert_kubeconfig):
        done = subprocess.run(
            [BINARY, "raw", "-kubeconfig", kubeconfig, "GET", "/version"],
            capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["major"] == "1"


def test_drop(ns, tb):
    """Packets of one address are lost in silence, the other one goes on."""
    other = kubeapi.Api(ADVERTISE, tb.port, tb.ca, tb.token, timeout=1)
    assert other.get("/version")
    ns.drop(tb.port, ADVERTISE)
    try:
        with pytest.raises(TimeoutError):
            other.request("GET", "/version")
        assert tb.api.get("/version")
        assert ns.dropped() > 0
    finally:
        ns.heal()
    assert other.get("/version")
    other.close()


def test_outage(tb):
    """Pods serve while the API server is away; all goes on afterwards."""
    targets = ["http://%s:%d" % e for e in tb.ready_endpoints(NS, "web")]
    load = tb.start_load(targets, connections=3, requests=10**6, rate=300)
    load.wait_total(50)
    tb.kill_apiserver()
    with pytest.raises(OSError):
        tb.api.get("/version")
    load.wait_total(150)
    with open(tb.ca) as f:
        ca = f.read()
    tb.start_apiserver()
    with open(tb.ca) as f:
        assert f.read() == ca
    load.wait_total(50)
    assert load.stop()["failed"] == 0
    tb.scale(NS, "web", 4)
    tb.wait_ready(NS, "web", 4, timeout=90)


def test_compaction(tb):
    """After compaction and a restart an old version cannot be resumed."""
    old = rv(tb)
    assert watch_status(tb, old) == 200
    tb.scale(NS, "web", 3)
    tb.wait_ready(NS, "web", 3)
    assert tb.compact() > int(old)
    tb.kill_apiserver()
    tb.start_apiserver()
    assert watch_status(tb, old) == 410
    assert watch_status(tb, rv(tb)) in (200, 410)
    tb.wait_ready(NS, "web", 3)


NGINX = """
daemon off; worker_processes 2; pid {dir}/nginx.pid;
error_log {dir}/error.log warn;
events {{ }}
http {{
    access_log off;
    upstream pods {{ {servers} }}
    server {{
        listen 127.0.0.1:8080;
        keepalive_requests 1000000;
        add_header X-Worker-Pid $pid always;
        location / {{ proxy_pass http://pods; }}
    }}
}}
"""
SWAPPED = ["10.244.0.21:9000", "10.244.0.22:9000"]


def swap(tb, directory, servers, **kw):
    """Swap before an nginx that knows these servers, and no API server."""
    tb.apply(tb.service(NS, "swap", selector=False))
    tb.apply(tb.slice(NS, "swap-1", "swap", [("10.244.0.21", True)], 9000))
    conf = directory / "nginx.conf"
    conf.write_text(NGINX.format(dir=directory, servers=" ".join(
        "server %s;" % s for s in servers)))
    nginx = subprocess.Popen(["nginx", "-p", str(directory), "-c", str(conf)])
    try:
        wait_for(lambda: (directory / "nginx.pid").exists(), 10, "nginx")
        return tb.swap(NS, "swap", "swap-1", "http://127.0.0.1:8080/",
                       SWAPPED, **kw)
    finally:
        nginx.terminate()
        nginx.wait(10)


@pytest.mark.skipif(not shutil.which("nginx"), reason="no nginx")
def test_swap(tb, tmp_path):
    """Both workers and both backends are found.

    This nginx answers from the new address at once, and from the old one as
    well, and the report says so.
    """
    r = swap(tb, tmp_path, SWAPPED, swaps=10)
    print(json.dumps({k: r[k] for k in ("overall", "probes",
                                        "api_to_watch")}))
    assert r["swaps"] == 10 and r["missed"] == 0 and not r["failures"]
    assert len(r["workers"]) == 2
    assert all(len(v) == 10 for v in r["raw_ms"].values())
    assert r["probes"]["went_back"] > 0
    assert min(r["probes"]["per_second"].values()) >= 100


@pytest.mark.skipif(not shutil.which("nginx"), reason="no nginx")
def test_swap_missed(tb, tmp_path):
    """An nginx that stays with the old address misses each swap away."""
    r = swap(tb, tmp_path, SWAPPED[:1], swaps=2, limit=0.5)
    assert r["swaps"] == 2 and r["missed"] == 2 and len(r["failures"]) == 2
    assert all(len(v) == 1 for v in r["raw_ms"].values())
    assert r["probes"]["went_back"] == 0
