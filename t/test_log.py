# What error.log says while an informer does not follow: one line for each
# cause, and what the status says of it at the same time.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Saying why."""

import os
import re
import signal

import pytest
from client import request
from cluster import informer
from nginx import PATIENCE, WAIT, never, wait_until
from ports import claimed

CONF = """
    upstream web { kube_service shop/web; }
    upstream by { kube_service $http_x namespaces=shop,infra; }
    server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://web; }
        location /by { proxy_pass http://by; }
    }
"""

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: a, cluster: {server: "%s"}}]
contexts: [{name: c, context: {cluster: a, user: b}}]
users: [{name: b, user: {}}]
"""

OURS = re.compile(r"kube informer \"default\": (degraded|recovered): (\w+): (.*)")


def said(gateway, level):
    """What was said of causes at a level: [(cause, text)]."""
    lines = gateway.grep_log(rf"\[{level}\] .*kube informer")
    found = [OURS.search(line) for line in lines]
    assert all(found), lines
    return [(m.group(2), m.group(3)) for m in found]


def degraded(gateway):
    """The causes that the status shows."""
    return {d["cause"] for d in gateway.status.informer()["degraded"]}


def away(gateway, cause):
    """Waits until a cause is said; status, metrics, page and kube_ready agree."""
    wait_until(
        lambda: said(gateway, "error"), timeout=20 * PATIENCE, what=lambda: gateway.tail()
    )
    wait_until(lambda: degraded(gateway) == {cause})
    metrics = gateway.status.metrics()
    assert metrics.value("nginx_kube_degraded", cause=cause) == 1
    assert sum(metrics.find("nginx_kube_degraded")) == 1
    assert f"{cause}: " in gateway.status.get("/").text
    answer = request(gateway.status_port, "/ready")
    assert (answer.status, f"degraded: {cause}: " in answer.text) == (200, True), answer.text
    assert gateway.get().status == 200


def back(gateway, cause):
    """Waits until it is over, and said to be."""
    gateway.wait_log(rf"\[notice\] .*recovered: {cause}: following again after \d+ s, \d+ attempt")
    wait_until(lambda: degraded(gateway) == set())


def one_line(gateway, cause, *parts):
    """One line was said of one cause, with its parts; one that it is over."""
    ((found, text),) = said(gateway, "error")
    assert found == cause
    for part in parts:
        assert part in text, (part, text)


@pytest.fixture
def gateway(cluster):
    """One that follows, at a level that has both lines."""
    cluster.service("shop", "web")
    made = cluster.nginx(CONF, level="notice")
    for resource in ("services", "endpointslices"):
        made.status.wait_state("watching", resource)
    return made


def test_outage(cluster, gateway):
    cluster.api.refuse()
    away(gateway, "unreachable")
    assert gateway.get("/by", headers={"X": "shop/none"}).headers["x-kube-error"] == "no_service"
    cluster.api.listen()
    back(gateway, "unreachable")
    one_line(gateway, "unreachable", cluster.api.url, "onnect", "see that the API server runs")


def test_silence(cluster):
    """Connections are taken, and nothing is answered."""
    cluster.service("shop", "web")
    gateway = cluster.nginx(CONF, more="idle_timeout 1s;", level="notice")
    cluster.api.freeze()
    away(gateway, "unreachable")
    cluster.api.thaw()
    back(gateway, "unreachable")
    one_line(gateway, "unreachable", cluster.api.url, "no answer")


@pytest.mark.parametrize(
    "status, cause, remedy", [(401, "unauthorized", "renew the token"), (503, "unreachable", "")]
)
def test_answers(cluster, gateway, status, cause, remedy):
    cluster.api.fault(status=status, times=None)
    cluster.api.close_watches(how="rst")
    away(gateway, cause)
    cluster.api.clear_faults()
    back(gateway, cause)
    one_line(gateway, cause, cluster.api.url, remedy)


STRANGE = {
    "redirect": (
        {"status": 302, "location": "https://sso.invalid/", "body": b""},
        "HTTP status 302 (redirect)",
        "redirects are not followed",
    ),
    "page": (
        {"status": 502, "body": b"<h1>no</h1>", "content_type": "text/html"},
        "HTTP status 502 (other)",
        "see that the API server runs",
    ),
    "path": ({"status": 404, "body": b""}, "HTTP status 404 (not_found)", "address, and its path"),
    "selector": ({"status": 400, "message": "unable to parse"}, "unable to", "label_selector"),
    "busy": ({"status": 429, "message": "try later"}, "try later", "its flow control"),
}


@pytest.mark.parametrize("fault, says, remedy", STRANGE.values(), ids=STRANGE)
def test_answers_of_others(cluster, gateway, fault, says, remedy):
    """A proxy's, or those to a wrong address: the cause has a text, and the remedy fits."""
    cluster.api.fault(times=None, **fault)
    cluster.api.close_watches(how="rst")
    away(gateway, "unreachable")
    (shown,) = gateway.status.informer()["degraded"]
    cluster.api.clear_faults()
    back(gateway, "unreachable")
    one_line(gateway, "unreachable", cluster.api.url, says, remedy)
    assert says in shown["text"]


def test_forbidden(cluster, gateway):
    """One scope alone: it is named, and the other one follows."""
    cluster.api.fault(status=403, resource="endpointslices", times=None)
    cluster.api.close_watches(how="rst")
    away(gateway, "forbidden")
    metrics = gateway.status.metrics()
    watching = "nginx_kube_watching"
    wait_until(
        lambda: gateway.status.metrics().value(watching, resource="services", namespace="") == 1
    )
    assert metrics.value(watching, resource="endpointslices", namespace="") == 0
    cluster.api.clear_faults()
    back(gateway, "forbidden")
    one_line(gateway, "forbidden", "endpointslices at " + cluster.api.url, "by a ClusterRole")


def test_wrong_ca(cluster, gateway, pki, pki_of):
    """From the start; another CA file heals it."""
    with open(pki_of("other").ca_file, "rb") as f:
        wrong = f.read()
    with open(pki.ca_file, "rb") as f:
        right = f.read()
    cluster.api.set_tls(pki.server_context())
    second = cluster.nginx(CONF, more="ca_file ca.pem;", start=False, level="notice")
    second.write("ca.pem", wrong)
    second.start()
    wait_until(lambda: said(second, "error"), timeout=20 * PATIENCE)
    wait_until(lambda: degraded(second) == {"tls"})
    second.write("ca.pem", right)
    back(second, "tls")
    one_line(second, "tls", f"s at {cluster.api.url}: ", "compare the CA", "ours with its key")


def test_no_ca(cluster, pki):
    """None is named, and the system has none or not this one: there is nothing to compare."""
    cluster.api.set_tls(pki.server_context())
    second = cluster.nginx(CONF, start=False)
    second.start()
    wait_until(lambda: said(second, "error"), timeout=20 * PATIENCE)
    ((cause, text),) = said(second, "error")
    assert cause == "tls"
    assert "; name the server's CA, for none is named, or install " in text


def missing(made, remedy):
    """A file is missing: its name is said, once, and what helps."""
    wait_until(lambda: said(made, "error"), timeout=20 * PATIENCE)
    wait_until(lambda: degraded(made) == {"credentials"})
    never(lambda: len(said(made, "error")) > 1, 6, "a second line")
    one_line(made, "credentials", "secret", "no such file", remedy)


def test_service_account_that_is_not_mounted(cluster):
    """A pod with automountServiceAccountToken: false."""
    with claimed("service-account", WAIT):
        if os.path.exists("/var/run/secrets/kubernetes.io"):
            pytest.skip("SKIPPED: needs no service account on this machine")
        not_mounted(cluster)


def not_mounted(cluster):
    """With files that nobody else makes meanwhile."""
    host, port = cluster.api.url.removeprefix("http://").split(":")
    env = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    made = cluster.nginx(
        CONF, block=informer("api in_cluster;"), level="notice", sync=False, env=env
    )
    wait_until(lambda: said(made, "error"), timeout=20 * PATIENCE)
    one_line(made, "credentials", "serviceaccount/ca.crt", "automountServiceAccountToken")


@pytest.mark.slow
def test_token(cluster):
    cluster.service("shop", "web")
    made = cluster.nginx(CONF, more="token_file secret;", level="notice", sync=False)
    missing(made, "create the file")
    made.write("secret", "first")
    back(made, "credentials")


@pytest.mark.slow
def test_kubeconfig(cluster):
    """It goes while nginx runs, and the next informer process misses it."""
    cluster.service("shop", "web")
    made = cluster.nginx(
        CONF, block=informer("api kubeconfig=secret;"), start=False, level="notice"
    )
    text = KUBECONFIG % cluster.api.url
    made.write("secret", text)
    made.start()
    made.status.wait_synced()
    os.remove(made.path("secret"))
    made.allow(r"cache manager process \d+ exited on signal 9")
    made.kill(signal.SIGKILL, made.informer())
    missing(made, "see that the file is there")
    made.write("secret", text)
    back(made, "credentials")


def test_full_zone(cluster):
    """One line, with an object; what has room again is said as well."""
    cluster.api.load_scale(1500, 10)
    made = cluster.nginx(
        CONF,
        block=informer(cluster.api.url, zone="kube 512k"),
        workers=1,
        sync=False,
        level="notice",
    )
    made.status.wait_synced(60 * PATIENCE)
    wait_until(lambda: "zone_full" in degraded(made))
    for n in range(40):
        cluster.service("ns-009", f"more-{n}", pods=[])
    made.status.wait_rv(cluster.api.rv)
    one_line(made, "zone_full", "/", "enlarge the zone")
    (shown,) = [d for d in made.status.informer()["degraded"] if d["cause"] == "zone_full"]
    assert shown["since"] is not None and shown["following"]


def watchers(cluster, resource):
    """The watches of a resource that events go to."""
    return cluster.api.run(lambda: [w for w in cluster.api.core.store.watchers
                                    if w.resource == resource])


def test_nothing_is_said_of_a_short_failure(cluster, gateway):
    """Watches are cut and opened again: nobody needs to know."""
    for n in range(2, 7):
        assert cluster.api.close_watches(how="rst") == 2
        for resource in ("services", "endpointslices"):
            cluster.api.wait_requests(n, verb="watch", resource=resource)
            # the one that was cut may be among them for a moment
            wait_until(lambda r=resource: len(watchers(cluster, r)) == 1)
    gateway.status.wait_rv(cluster.slice("shop", "web", cluster.pods(1)))
    assert not gateway.grep_log("degraded|recovered")


def test_no_watch_before_one_is_open(cluster):
    """At info as well."""
    cluster.service("shop", "web")
    cluster.api.fault(status=403, verb="watch", times=None)
    made = cluster.nginx(CONF, level="info", sync=False)
    made.wait_log("degraded: forbidden", count=2)
    assert made.wait_log(r"kube informer .*: request_failed: request to follow ")
    assert not made.grep_log(r"kube informer .*: watch: ")
    cluster.api.clear_faults()
    made.wait_log(r"kube informer .*: watch: watch of services from \d+ is open")
