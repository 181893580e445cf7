# kube_ready: 200 once what the configuration needs has synced, and from then
# on; strict: when every upstream's Service can be resolved; else 503.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""kube_ready."""

import re
import signal

import pytest
from apiserver import ApiServer
from client import request
from cluster import informer
from nginx import free_port, wait_until

CONF = """
    upstream web { kube_service shop/web; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://web; } }
"""


def ready(gateway, **more):
    """Status and body of /ready."""
    answer = request(gateway.status_port, "/ready", **more)
    return answer.status, answer.text


def test_ready(cluster):
    cluster.service("shop", "web")
    gateway = cluster.nginx(CONF)
    assert ready(gateway)[0] == 200
    assert gateway.status.informer()["ready"] is True
    assert ready(gateway, method="HEAD") == (200, "")
    assert request(gateway.status_port, "/ready", method="POST", body=b"").status == 405


PRECONDITIONS = (
    ("If-None-Match", "*"),
    ("If-Match", '"other"'),
    ("If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT"),
    ("If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:01 GMT"),
)


def test_without_preconditions(cluster):
    """A client's preconditions change no answer: it is as of now."""
    cluster.service("shop", "web")
    gateway = cluster.nginx(CONF)
    prefix = gateway.status.prefix
    for path in ("/ready", f"{prefix}/api/v1/status", f"{prefix}/metrics", f"{prefix}/"):
        assert request(gateway.status_port, path).status == 200
        for header, value in PRECONDITIONS:
            answer = request(gateway.status_port, path, headers={header: value})
            assert (answer.status, answer.text != "") == (200, True), (path, header)


def test_not_before_the_first_sync(cluster):
    cluster.service("shop", "web")
    cluster.api.refuse()
    gateway = cluster.nginx(CONF, sync=False)
    code, text = ready(gateway)
    assert code == 503 and "sync" in text
    wait_until(lambda: "\ndefault: degraded: unreachable: " in ready(gateway)[1])
    assert ready(gateway)[0] == 503
    assert gateway.status.informer()["ready"] is False
    cluster.api.listen()
    wait_until(lambda: ready(gateway)[0] == 200)


STRICT = "    server { listen 127.0.0.1:%d; location / { kube_ready strict; } }\n"


def test_a_service_that_is_missing(cluster):
    """It is degraded; only strict calls it unready."""
    port = free_port()
    gateway = cluster.nginx(CONF + STRICT % port)
    said = "default: degraded: missing_service: no_service: shop/web\n"
    assert ready(gateway) == (200, "ready\n" + said)
    answer = request(port)
    assert answer.status == 503 and "shop/web" in answer.text
    (cause,) = gateway.status.informer()["degraded"]
    assert (cause["cause"], cause["following"]) == ("missing_service", True)
    cluster.service("shop", "web")
    wait_until(lambda: ready(gateway) == (200, "ready\n"))
    assert request(port).status == 200
    cluster.api.delete("services", "shop", "web")
    wait_until(lambda: request(port).status == 503)
    assert ready(gateway) == (200, "ready\n" + said)


def test_each_service_that_is_missing(cluster):
    """Not only the first one."""
    named = ("a", "b", "c")
    ups = "".join(f"    upstream {n} {{ kube_service shop/{n}; }}\n" for n in named)
    cluster.service("shop", "web")
    cluster.service("shop", "b")
    gateway = cluster.nginx(CONF + ups)
    said = "default: degraded: missing_service: no_service: shop/%s\n"
    assert ready(gateway) == (200, "ready\n" + said % "a" + said % "c")
    assert len(gateway.status.informer()["degraded"]) == 2


def test_for_good(cluster):
    """A 403, a reload, the death of the informer; not a restart."""
    cluster.service("shop", "web")
    gateway = cluster.nginx(CONF, more="namespaces shop;")
    assert ready(gateway)[0] == 200
    cluster.api.fault(status=403, times=None)
    cluster.api.close_watches(how="rst")
    gateway.status.wait(lambda i: {d["cause"] for d in i["degraded"]} == {"forbidden"})
    code, text = ready(gateway)
    # of whichever scope was answered first
    assert code == 200 and re.search(r"forbidden: (services|endpointslices) in shop", text)
    gateway.change(http=CONF + "    upstream b { kube_service infra/echo; }\n",
                   more="namespaces shop infra;", gone=True)
    assert ready(gateway)[0] == 200
    gateway.allow(r"cache manager process \d+ exited on signal 9")
    old = gateway.informer()
    gateway.kill(signal.SIGKILL, old)
    wait_until(lambda: gateway.informer() not in (None, old))
    assert ready(gateway)[0] == 200
    gateway.restart()
    wait_until(lambda: ready(gateway)[0] == 503)
    cluster.api.clear_faults()
    wait_until(lambda: ready(gateway)[0] == 200)


def test_stays_while_the_server_is_away(cluster):
    cluster.service("shop", "web")
    gateway = cluster.nginx(CONF)
    cluster.api.refuse()
    gateway.status.wait_state("backoff")
    assert ready(gateway)[0] == 200


def test_max_age(cluster):
    cluster.service("shop", "web")
    port = free_port()
    gateway = cluster.nginx(
        CONF
        + "server { listen 127.0.0.1:%d; location / { kube_ready max_age=1s; } }" % port,
        more="idle_timeout 1s;",
    )
    cluster.api.refuse()

    def old():
        answer = request(port)
        return answer if answer.status == 503 else None

    answer = wait_until(old)
    assert "age" in answer.text or "old" in answer.text or "stale" in answer.text
    assert ready(gateway)[0] == 200
    cluster.api.listen()
    wait_until(lambda: request(port).status == 200)


@pytest.mark.parametrize("used", [False, True])
def test_forbidden_namespace(cluster, used):
    """At the start it is degraded: one tenant's rights keep no gateway from starting."""
    cluster.service("shop", "web")
    cluster.api.fault(status=403, ns="infra", times=None)
    text = CONF + ("    upstream b { kube_service infra/echo; }\n" if used else "")
    port = free_port()
    gateway = cluster.nginx(text + STRICT % port, more="namespaces shop infra;", sync=False)
    gateway.wait_status_code(200)
    wait_until(lambda: ready(gateway)[0] == 200)
    gateway.status.wait(lambda i: {d["cause"] for d in i["degraded"]} == {"forbidden"})
    # slices may have been refused before Services were
    wait_until(lambda: "degraded: forbidden: services in infra" in ready(gateway)[1])
    assert request(port).status == (503 if used else 200)


def test_forbidden_everywhere(cluster):
    """An informer that may see nothing of what is needed is not ready."""
    cluster.api.fault(status=403, ns="shop", times=None)
    gateway = cluster.nginx(CONF, more="namespaces shop infra;", sync=False)
    gateway.status.wait(lambda i: {d["cause"] for d in i["degraded"]} == {"forbidden"})
    # slices may have been refused before Services were
    wait_until(lambda: "forbidden: services in shop" in ready(gateway)[1])
    assert ready(gateway)[0] == 503
    cluster.api.clear_faults()
    wait_until(lambda: ready(gateway)[0] == 200)


def test_of_one_informer(cluster):
    """By its whole name: the other one's begins like it."""
    cluster.service("shop", "web")
    with ApiServer() as away:
        away.refuse()
        port = free_port()
        gateway = cluster.nginx(
            CONF
            + """
    server {
        listen 127.0.0.1:%d;
        location = /mine { kube_ready informer=default; }
        location = /east { kube_ready informer=default-east; }
        location = /all { kube_ready; }
    }
"""
            % port,
            block=informer(cluster.api.url)
            + informer(away.url, name="default-east", zone="east 1m"),
            sync=False,
        )
        wait_until(lambda: request(port, "/mine").status == 200)
        assert request(port, "/east").status == 503
        assert gateway.status.informer("default-east")["ready"] is False
        # it has no key, and resolves nothing
        assert [u["name"] for u in gateway.status.status()["upstreams"]] == ["web"]


def test_allow_state(cluster):
    """From a valid state file, where that is allowed."""
    cluster.service("shop", "web")
    extra = "location = /state { kube_ready allow_state; }"
    text = CONF.replace("location / {", extra + " location / {")
    gateway = cluster.nginx(text, block=None, start=False)
    gateway.block = informer(cluster.api.url, state="state_path state;")
    gateway.write_conf(gateway.made())
    gateway.start()
    gateway.status.wait_synced()
    gateway.status.wait(lambda i: i["state_file"]["written"])
    cluster.api.refuse()
    gateway.restart()
    gateway.status.wait(lambda i: i["state_file"]["in_use"])
    assert ready(gateway)[0] == 503
    # in use from its first object on; ready once all of it is loaded
    wait_until(lambda: gateway.get("/state").status == 200)
    # said a moment before it is published
    gateway.wait_status_code(200)
