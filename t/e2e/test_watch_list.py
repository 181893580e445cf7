# A real API server that offers WatchLists is asked for nothing else; an older
# one, or where we are told not to, for plain lists.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""What the API server counts of our requests."""

import re

import pytest

BOTH = ("services", "endpointslices")
SAMPLE = re.compile(r"(\w+)\{([^}]*)\} (\S+)$")


def counted(world):
    """
    {(resource, what): n} of requests for one namespace, by the server's own
    metrics; its controllers ask for all namespaces.
    """
    wanted = {("apiserver_request_total", "LIST"): "lists",
              ("apiserver_watch_list_duration_seconds_count", None): "streams"}
    found = {(resource, what): 0 for resource in BOTH for what in wanted.values()}
    status, text = world.tb.api.request("GET", "/metrics")
    assert status == 200, text[:200]
    for line in text.splitlines():
        sample = SAMPLE.match(line)
        if sample is None:
            continue
        labels = dict(re.findall(r'(\w+)="([^"]*)"', sample[2]))
        key = (labels.get("resource"), wanted.get((sample[1], labels.get("verb"))))
        if key in found and labels.get("scope") == "namespace":
            found[key] += float(sample[3])
    return found


def offered(world):
    """Whether the server says that it has WatchLists, as by default from 1.34 on."""
    _, text = world.tb.api.request("GET", "/metrics")
    gate = re.search(r'^kubernetes_feature_enabled\{name="WatchList",[^}]*\} (\d)', text, re.M)
    return gate is not None and gate[1] == "1"


@pytest.mark.parametrize("how", ["auto", "off"])
def test_watch_list(world, figures, how):
    pods = world.deploy("web", 2)
    before = counted(world)
    gateway = world.gateway(["web"], block=f"watch_list {how};")
    after = counted(world)
    made = {k: after[k] - before[k] for k in after}
    streams = 1 if how == "auto" and offered(world) else 0
    has = "with" if offered(world) else "without"
    figures.add("-", f"requests to one {has} WatchList, watch_list {how}: WatchList; LIST",
                f"{streams}; {1 - streams}",
                f"{made['services', 'streams']:g}; {made['services', 'lists']:g}")
    for resource in BOTH:
        assert made[resource, "streams"] == streams, made
        assert made[resource, "lists"] == 1 - streams, made
    assert gateway.get("web").headers["x-pod-addr"] in pods
    world.assert_equal(gateway, ["web"])
    gateway.routed("web", world.deploy("web", 1)[0])
