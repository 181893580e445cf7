# http: a balancing method that the modules do not know is refused, or tried
# first (kube_balancer).  Its trial may end badly; nginx may not.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Unknown balancing methods, played by t/lib/balancer.c."""

import contextlib
import http.client
import os
import subprocess
import threading

import pytest
import test_views as views
from cluster import Gateway
from library import build_library
from nginx import BUILD_DIR, NGINX, ROOT, configured, nginx_t, rss, wait_until
from test_conf_errors import in_upstream, refused

PROBE = "kube_balancer unknown=probe;\n"


@pytest.fixture(name="module", scope="module")
def make_module(tmp_path_factory):
    """t/lib/balancer.c, as a module of this nginx."""
    if any(word.startswith("--add-module") for word in configured(NGINX)):
        pytest.skip("no modules can be loaded: ours are linked in")
    objs = os.path.join(BUILD_DIR, "objs")
    incs = subprocess.run(
        ["sh", os.path.join(ROOT, "t", "util", "nginx-incs.sh"), objs],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.split()
    path = tmp_path_factory.mktemp("balancer") / "balancer.so"
    build_library("balancer", path, incs)
    path.chmod(0o755)
    return str(path)


def conf(module, method, probe=True):
    """A file whose upstream has that method."""
    text = in_upstream(f"kube_service shop/web:http; test_method {method};")
    if probe:
        text = text.replace("http {", "http {\n" + PROBE, 1)
    return f"load_module {module};\n" + text


def test_refused_unless_asked_for(module):
    """And the text says how to ask."""
    told = refused(conf(module, "good", probe=False), None, r"not known to work")
    assert "kube_balancer unknown=probe" in told


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("crash", r'upstream "web".*died or hung in its trial'),
        ("foreign", r'upstream "web".*does not keep its servers as round robin'),
        ("moved", r'upstream "web".*round robin\'s order'),
    ],
)
def test_fails_its_trial(module, method, says):
    """nginx -t ends with a text, not with a signal."""
    refused(conf(module, method), None, says)


def test_passes_its_trial(module):
    """A warning stays."""
    code, told = nginx_t(conf(module, "good"))
    assert code == 0 and "[warn]" in told and "passed a trial" in told, told


class Loaded(Gateway):
    """An nginx that loads the module."""

    module = None

    def made(self):
        """Its configuration."""
        return f"load_module {self.module};\n" + super().made()


def test_is_used(cluster, module):
    """Its requests follow the Service, and keep what they were given."""
    pods = cluster.service("shop", "web", 2)
    Loaded.module = module
    gateway = cluster.nginx(
        PROBE
        + """
    upstream web { kube_service shop/web:http; test_method good; keepalive 4; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://web; } }
""",
        workers=1,
        cls=Loaded,
    )
    gateway.wait_backends({pod.name for pod in pods})
    with gateway.load("/") as load:
        for names in (pods[:1], pods, pods[1:]):
            cluster.slice("shop", "web", names)
            gateway.wait_backends({pod.name for pod in names})
    assert load.failures == []
    assert not gateway.grep_log(r"exited on signal|\[alert\]")


def test_held_revisions_keep_the_budget(cluster, module):
    """Requests that keep a revision beyond kube_instances: the one known last serves."""
    backend = cluster.backends.add("0.0.0.0", 0, "any")
    many = views.Many(cluster)
    many.port = backend.port
    many.service("web", 2000)
    Loaded.module = module
    gateway = cluster.nginx(
        views.dynamic(main=PROBE + "kube_instances size=1m;", more="test_method good;"),
        workers=1,
        cls=Loaded,
    )
    ask = {"X-Service": "shop/web:http"}
    first = gateway.get(headers=ask).headers["x-kube-generation"]
    before = views.rebuilds(gateway)
    held = []
    thread = threading.Thread(
        target=lambda: held.append(gateway.get("/?hold=1", headers=ask, timeout=300))
    )
    thread.start()
    try:
        wait_until(lambda: backend.active == 1)
        for n in range(1, 4):
            gateway.status.wait_rv(many.put("web", 2000, skip=n))
            answer = gateway.get(headers=ask)
            assert (answer.status, answer.headers["x-kube-generation"]) == (200, first)
        assert views.rebuilds(gateway) == before
        (row,) = gateway.status.informer()["degraded"]
        assert row["cause"] == "instance_budget"
    finally:
        backend.release()
        thread.join()
    assert held[0].status == 200 and held[0].headers["x-kube-generation"] == first
    now = str(gateway.status.generation("shop", "web"))
    wait_until(lambda: gateway.get(headers=ask).headers["x-kube-generation"] == now)
    assert views.rebuilds(gateway) == before + 1


@pytest.mark.skipif(views.SANITIZED, reason="memory of the sanitizer's own")
def test_held_revisions_hide_no_others(cluster, module, figure):
    """However many Services requests keep, those that none keeps make room."""
    backend = cluster.backends.add("0.0.0.0", 0, "any")
    many = views.Many(cluster)
    many.port = backend.port
    kept = [f"kept{n}" for n in range(80)]
    names = [f"s{n}" for n in range(100)]
    for name in names:
        many.service(name, 500)
    rv = [many.service(name, 1) for name in kept][-1]
    Loaded.module = module
    gateway = cluster.nginx(
        views.dynamic(main=PROBE + "kube_instances size=1m;", more="test_method good;"),
        workers=1,
        cls=Loaded,
        connections=1024,
    )
    gateway.status.wait_rv(rv)
    (worker,) = gateway.workers()
    with contextlib.ExitStack() as stack:
        for name in kept:
            made = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
            stack.callback(made.close)
            made.request("GET", "/?hold=1", headers={"X-Service": f"shop/{name}:http"})
        wait_until(lambda: backend.active == len(kept))
        before = rss(worker)
        with views.client(gateway) as client:
            for name in names:
                assert client.get(f"shop/{name}:http").status == 200
            grown = rss(worker) - before
            # nor do these go for them: one would be built for the first time, not anew
            before = views.rebuilds(gateway)
            gateway.status.wait_rv(many.put(kept[0], 1, skip=1))
            views.follows(gateway, client, kept[0])
            assert views.rebuilds(gateway) == before + 1
    figure(f"100 Services of 500 endpoints beside 80 that requests keep: {grown} KiB")
    assert grown < 8 * 1024
