# Line 6: reloads and a binary upgrade during changes and load.  No request
# fails, an unchanged scope is not listed again, watches do not pile up.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Reloads, changed scopes and zones, and a binary upgrade."""

import os
import re
import shutil
import time

import nginx as nginx_lib
import pytest
from nginx import alive, rss, wait_until
from report import void
from rig import Churn, Roller, Sampler, failures, watch_connections
from testbed import ADVERTISE

RELOADS = 100
PACE = 0.2
RESOURCES = ("services", "endpointslices")
HOSTS = [f"10.244.0.{n}" for n in range(31, 36)]

LONGRUNNING = re.compile(r'^apiserver_longrunning_requests\{([^}]*)\} (\S+)$', re.M)


def server_watches(view):
    """{resource: watches of one namespace} as the API server counts them."""
    made = dict.fromkeys(RESOURCES, 0)
    for labels, value in LONGRUNNING.findall(view.api.get("/metrics")):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if (labels["verb"], labels["scope"]) == ("WATCH", "namespace"):
            if labels["resource"] in made:
                made[labels["resource"]] += int(float(value))
    return made


def failed_requests(gateway):
    """Lists and watches that failed since a scope was made, as lists() has them."""
    metrics = gateway.status.metrics()
    return {(resource, namespace): metrics.value(
        "nginx_kube_errors_total", resource=resource, namespace=namespace)
        for resource, namespace in gateway.lists()}


def reloads(gateway, control):
    """So many completed cycles of both, at the pace; how long they took."""
    began = time.monotonic()
    for n in range(1, RELOADS + 1):
        gateway.quick_reload()
        control.quick_reload()
        due = began + n * PACE
        wait_until(lambda: time.monotonic() >= due)
    return time.monotonic() - began


def test_hundred_reloads(world, figures):
    world.deploy("web", 4, prestop_ms=2000)
    stable = world.deploy("stable", 2)
    world.direct("churn", HOSTS[:1])
    gateway = world.gateway(["web", "stable"])
    control = world.gateway(static={"stable": stable}, kube=False)
    load = world.load(gateway.url("web"), rate=300, retry_closed=True, delays=["0ms", "50ms"])
    beside = world.load(control.url("stable"), rate=100, retry_closed=True)
    load.wait_total(100)
    lists, relists = gateway.lists(), gateway.count("relists")
    generation = gateway.status.generation(world.name, "stable")
    before = rss(gateway.master), rss(control.master)
    view = world.view()

    with Churn(world, "churn", HOSTS) as churn, Roller(world, "web", pause=1), Sampler(
        lambda: server_watches(view), 0.5
    ) as server, Sampler(lambda: watch_connections(world.tb.port), 0.01) as connections:
        took = reloads(gateway, control)
        cycles = len(gateway.grep_log(r"\d: reconfiguring$"))
        wait_until(lambda: connections.values[-1] == len(RESOURCES), 60, "the usual watches")
        wait_until(lambda: set(server.values[-1].values()) == {1}, 60,
                   lambda: f"one watch each: {server.values[-1]}")
    view.api.close()
    result, other = load.stop(), beside.stop()
    growth = [rss(n.master) - b for n, b in zip((gateway, control), before)]
    most = max(max(v.values()) for v in server.values)

    if cycles < RELOADS or churn.changes < 100 or result["total"] < 2000:
        void(f"{cycles} reloads, {churn.changes} changes, {result['total']} requests")
    if len(server.values) < 10 or len(connections.values) < 100:
        void("too few looks at the watches")
    figures.add("6", f"{cycles} reloads in {took:.0f} s: failed requests", 0,
                f"{result['failed']} of {result['total']}, {result['resent']} sent again "
                f"(control: {other['failed']} of {other['total']}, {other['resent']})")
    figures.add("6", "LISTs; most watches per resource; most connections", "0; 2; 4",
                f"{sum(gateway.lists().values()) - sum(lists.values())}; {most}; "
                f"{max(connections.values)}")
    figures.add("6", "master's RSS growth in KiB", f"control {growth[1]} + 1024", growth[0])
    assert result["failed"] == 0, failures(result)
    assert gateway.lists() == lists, "a LIST after a reload"
    assert gateway.count("relists") == relists
    assert most <= 2, "more than one extra watch"
    assert max(connections.values) <= 2 * len(RESOURCES), "more than one extra connection each"
    assert growth[0] <= growth[1] + 1024
    assert gateway.status.generation(world.name, "stable") == generation
    world.assert_equal(gateway, ["web", "stable", "churn"])


SELECTOR = "label_selector services tier=web;\n    label_selector endpointslices tier=web;"
CHANGES = {
    "namespaces": lambda w: {"block": f"namespaces {w.name} {w.name}-more;"},
    "selector": lambda w: {"block": f"namespaces {w.name} {w.name}-more;\n    {SELECTOR}"},
    "zone": lambda w: {"zone": "kube 12m"},
    "all back": lambda w: {"block": "", "zone": "kube 8m"},
}


@pytest.mark.parametrize("api", ["up", "down"])
def test_changing_reloads(world, figures, api):
    """What was there serves on; the new scope is listed as a diff."""
    tier = {"tier": "web"}
    pods = world.deploy("web", 3, labels=tier)
    hosts = [p.split(":")[0] for p in pods]
    world.direct("direct", hosts[:1], labels=tier)
    world.direct("plain", hosts[:1])
    world.tb.namespace(world.name + "-more")
    gateway = world.gateway(["web", "direct"])
    load = world.load(gateway.url("web"), gateway.url("direct"), rate=300, retry_closed=True,
                      delays=["0ms", "20ms"])
    load.wait_total(50)
    mine = {(r, world.name) for r in RESOURCES}
    now, rows = 0, []

    for what, change in CHANGES.items():
        lists = gateway.lists()
        generation = gateway.status.generation(world.name, "web")
        if api == "down":
            world.net.drop(world.tb.port, ADVERTISE)
        gateway.change(gone=True, **change(world))
        assert gateway.status.service(world.name, "web"), "the data is away"
        gateway.routed("direct", pods[now])
        now = (now + 1) % len(pods)
        world.point("direct", hosts[now])
        load.wait_total(100)
        if api == "down":
            assert gateway.get("direct").status == 200
            if not world.net.dropped():
                void("no packet was dropped")
            world.net.heal()
        gateway.routed("direct", pods[now], 60)
        gateway.status.wait(lambda i: i["synced"] and all(
            r["state"] == "watching" for r in i["resources"]), 60)
        rows.append((what, lists, gateway.lists(), failed_requests(gateway)))
        # Records copied to a zone of another size count on from there.
        grown = gateway.status.generation(world.name, "web") - generation
        assert grown == 0 or (grown > 0 and what in ("zone", "all back")), (what, grown)
        shown = {row["name"] for row in gateway.status.services(namespace=world.name)}
        assert ("plain" in shown) == (what not in ("selector", "zone")), (what, shown)
        scopes = len(gateway.lists()) // len(RESOURCES)
        wait_until(lambda: server_watches(world.tb) == dict.fromkeys(RESOURCES, scopes), 60,
                   lambda: f"one watch per scope after the change of {what}: "
                   f"{server_watches(world.tb)} for {gateway.count('state')}")

    result = load.stop()
    figures.add("6", f"reloads that change the scope and the zone, API {api}: failed requests", 0,
                f"{result['failed']} of {result['total']}, {result['resent']} sent again")
    assert result["failed"] == 0, failures(result)
    for what, before, after, failed in rows:
        for scope in mine:
            if what in ("selector", "all back"):
                # Another scope, which counts from its own start; a list that
                # timed out while the server was away is begun once more.
                assert 1 <= after[scope] <= 1 + failed[scope], (what, scope, after, failed)
            else:
                assert after[scope] == before[scope], (what, scope, before, after)
    world.assert_equal(gateway, ["web", "direct", "plain"])


ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"

# The service account's files are shown to this nginx alone, in a mount
# namespace of its own, which its successor inherits.
WRAPPER = """#!/bin/sh
exec unshare --mount --propagation private sh -e -c '
    mount -t tmpfs tmpfs "$(readlink -f /var/run)"
    mkdir -p {account}
    cp {prefix}/ca.crt {prefix}/token {account}/
    chown -R nobody {account}
    exec {nginx} "$@"
' sh "$@"
"""


def test_binary_upgrade(world, figures, monkeypatch):
    """USR2, WINCH, QUIT; the service account is all that nginx has."""
    pods = world.deploy("web", 4, prestop_ms=2000)
    world.direct("direct", [pods[0].split(":")[0]])
    gateway = world.gateway(["web", "direct"], start=False, daemon=True, api="api in_cluster;")
    gateway.state = gateway.path("state")
    os.mkdir(gateway.state, 0o700)
    shutil.chown(gateway.state, "nobody")
    gateway.write_conf(gateway.made())
    gateway.env = {"KUBERNETES_SERVICE_HOST": ADVERTISE,
                   "KUBERNETES_SERVICE_PORT": str(world.tb.port)}
    wrapper = gateway.write("nginx-in-cluster", WRAPPER.format(
        account=ACCOUNT, prefix=gateway.prefix, nginx=nginx_lib.NGINX), 0o755)
    monkeypatch.setattr(nginx_lib, "NGINX", wrapper)
    gateway.start()
    gateway.status.wait_synced(60)

    load = world.load(gateway.url("web"), rate=300, retry_closed=True, delays=["0ms", "50ms"])
    load.wait_total(100)
    with Roller(world, "web", pause=0.5) as roller:
        old, informer = gateway.master, gateway.informer()
        new = gateway.upgrade()
        wait_until(lambda: gateway.informer(new), what="the informer of the new binary")
        load.wait_total(300)
        most = server_watches(world.tb)
        gateway.upgraded(new)
        load.wait_total(600)
        wait_until(lambda: roller.rolled >= 2, 60, "rolled pods")
    result = load.stop()

    figures.add("6", "binary upgrade with api in_cluster: failed requests", 0,
                f"{result['failed']} of {result['total']}, {result['resent']} sent again; "
                f"{roller.rolled} restarts meanwhile")
    assert result["failed"] == 0, failures(result)
    assert most == dict.fromkeys(RESOURCES, 2), f"not two trees with a watch each: {most}"
    assert gateway.master == new != old and not alive(old) and not alive(informer)
    gateway.status.wait(lambda i: i["writer"]["pid"] == gateway.informer() and i["synced"], 60)
    fresh = world.addresses("web")[0]
    world.point("direct", fresh.split(":")[0])
    gateway.routed("direct", fresh)
    world.assert_equal(gateway, ["web", "direct"])
    wait_until(lambda: server_watches(world.tb) == dict.fromkeys(RESOURCES, 1), 60,
               lambda: f"one watch each: {server_watches(world.tb)}")
