# What conf-examples/ grants is what an nginx needs, and no less: its manifests on
# a real API server, as they are but for the names of namespaces, and the token of
# their ServiceAccount.  What is taken while it watches is named by verb, resource
# and namespace, costs that namespace alone its freshness and nobody an answer, and
# comes back by itself.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""An nginx with the rights of our own manifests."""

import contextlib
import os
import re
import time

import kubeapi
from nginx import wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "conf-examples")
RBAC = "rbac.authorization.k8s.io/v1"
NAME = "nginx-kube-informer"
RESOURCES = ("services", "endpointslices")

# A watch is judged when it is opened: each two to four seconds, here.
BLOCK = "namespaces {}; watch_timeout 2s; backoff 200ms 1s;"


def manifest(name, old, namespace):
    """{kind: (path, YAML)} of a file, with another namespace in place of old."""
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as f:
        text = re.sub(rf"\b(namespace: ){old}\b", rf"\g<1>{namespace}", f.read())
    made = {}
    for part in (text + "\n").split("---\n"):
        meta = dict(re.findall(r"^(apiVersion|kind): (\S+)$", part, re.M))
        own = re.search(r"^metadata:\n((?:  .*\n)+)", part, re.M)[1]
        own = dict(re.findall(r"^  (name|namespace): (\S+)$", own, re.M))
        path = kubeapi.path_of(meta["kind"], own.get("namespace"), own["name"],
                               meta["apiVersion"])
        made[meta["kind"]] = (path, part)
    return made


def grant(world, made, *kinds):
    """Applies these kinds of a manifest; all of it without any."""
    for kind in kinds or made:
        path, text = made[kind]
        world.tb.api.call("PATCH", path, text, kind="application/apply-patch+yaml",
                          fieldManager="testbed", force="true")


def take(world, made, kind):
    """Deletes an object of a manifest."""
    world.tb.api.delete(made[kind][0])


def token_of(world, made):
    """A token of the manifest's ServiceAccount."""
    answer = world.tb.api.call("POST", made["ServiceAccount"][0] + "/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    return answer["status"]["token"]


def started(world, made, namespaces, services, block=BLOCK):
    """A gateway that is this ServiceAccount."""
    gateway = world.gateway(services, start=False, block=block.format(namespaces))
    gateway.secret("token", token_of(world, made))
    return gateway.start()


def plain(text):
    """What the API server said, without what makes it safe to print."""
    return text.replace(r"\x22", '"')


def watching(informer):
    """Nothing is degraded, and every watch is open."""
    return informer["degraded"] == [] and all(
        r["state"] == "watching" for r in informer["resources"])


def refused(gateway, namespace, user, verbs="(list|watch)"):
    """
    Waits until both resources are refused in a namespace ("": in all), and finds
    verb, resource and namespace in the status and in the log.
    """
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    shown = f"in {namespace}" if namespace else "in all namespaces"

    def told():
        i = gateway.status.informer()
        found = {d["text"] for d in i["degraded"] if d["cause"] == "forbidden"}
        mine = [r for r in i["resources"] if r["namespace"] == namespace]
        return i if all(
            any(text.startswith(f"{r} {shown}") for text in found) for r in RESOURCES
        ) and all(r["last_error"]["reason"] for r in mine) else None

    i = wait_until(told, 60, lambda: f"{gateway.status.informer()}")
    for resource in RESOURCES:
        says = rf'User "{user}" cannot {verbs} resource "{resource}" in API group .*{where}'
        (row,) = [r for r in i["resources"]
                  if (r["resource"], r["namespace"]) == (resource, namespace)]
        assert re.search(says, plain(row["last_error"]["message"])), row["last_error"]
        place = resource + (f" in {namespace}" if namespace else "")
        line = rf"\[error\].*degraded: forbidden: {place} at .*{says}; grant list and watch"
        wait_until(lambda pattern=line: re.search(pattern, plain(gateway.log())), 60,
                   lambda pattern=line: f"{pattern}\n{gateway.tail()}")
    return i


@contextlib.contextmanager
def cluster_wide(world, made):
    """The objects that no namespace takes with it."""
    try:
        yield
    finally:
        for kind in ("ClusterRoleBinding", "ClusterRole"):
            take(world, made, kind)


def test_cluster_role(world, figures):
    """rbac-clusterrole.yaml: all namespaces; taken and given back in mid-watch."""
    infra = world.name + "-infra"
    world.tb.namespace(infra)
    made = manifest("rbac-clusterrole.yaml", "infra", infra)
    user = f"system:serviceaccount:{infra}:gateway"
    pods = world.deploy("web", 2)
    with cluster_wide(world, made):
        grant(world, made)
        gateway = started(world, made, "all", ["web"])
        gateway.status.wait_synced(60)
        i = gateway.status.wait(watching, 60)
        assert i["ready"] and gateway.get("web").headers["x-pod-addr"] in pods

        take(world, made, "ClusterRoleBinding")
        i = refused(gateway, "", user)
        assert i["ready"] and not i["stale"], i
        lists = gateway.lists()
        pods = world.deploy("other", 1) and world.addresses("web")
        assert gateway.get("web").headers["x-pod-addr"] in pods
        world.tb.scale(world.name, "web", 3)
        world.tb.wait_ready(world.name, "web", 3)

        grant(world, made, "ClusterRoleBinding")
        began = time.monotonic()
        gateway.status.wait(watching, 60)
        world.assert_equal(gateway, ["web"])
        seconds = time.monotonic() - began
        assert gateway.lists() == lists, "a list where the watch could go on"
        gateway.wait_log("recovered: .*following again", 2, 60)
    figures.add("-", "ClusterRole of conf-examples; binding deleted in mid-watch, given back",
                "served; named; heals, no list", f"healed in {seconds:.1f} s")


def test_roles_in_two_of_three_namespaces(world, figures):
    """rbac-role.yaml twice: the third is named, and costs the others nothing."""
    names = [world.name, world.name + "-b", world.name + "-c"]
    roles = {}
    for name in names:
        if name != world.name:
            world.tb.namespace(name)
        world.deploy("web", 1, namespace=name)
        roles[name] = manifest("rbac-role.yaml", "shop", name)
    mine = roles[names[0]]
    user = f"system:serviceaccount:{names[0]}:gateway"

    # the subject of the other bindings is the account of the first namespace
    for name in names[1:]:
        path, text = roles[name]["RoleBinding"]
        head, subjects = text.split("subjects:")
        roles[name]["RoleBinding"] = (
            path, head + "subjects:" + subjects.replace(name, names[0]))
    grant(world, mine)
    grant(world, roles[names[1]], "Role", "RoleBinding")

    keys = {f"web-{n}": f"{name}/web:http" for n, name in enumerate(names)}
    gateway = started(world, mine, " ".join(names), keys)
    i = refused(gateway, names[2], user)
    assert len(i["degraded"]) == 2, i["degraded"]
    assert i["ready"]
    for n in (0, 1):
        assert gateway.get(f"web-{n}").status == 200
    answer = gateway.get("web-2")
    assert (answer.status, answer.headers["x-kube-error"]) == (502, "forbidden")

    # granted, it heals without a reload
    grant(world, roles[names[2]], "Role", "RoleBinding")
    began = time.monotonic()
    gateway.status.wait(watching, 60)
    granted = time.monotonic() - began
    assert gateway.get("web-2").status == 200

    # taken while it is watched: what was known of it is served on
    lists = gateway.lists()
    take(world, roles[names[1]], "RoleBinding")
    i = refused(gateway, names[1], user, "watch")
    assert len(i["degraded"]) == 2 and i["ready"], i["degraded"]
    for n in range(3):
        assert gateway.get(f"web-{n}").status == 200
    grant(world, roles[names[1]], "RoleBinding")
    began = time.monotonic()
    gateway.status.wait(watching, 60)
    again = time.monotonic() - began
    assert gateway.lists() == lists, "a list where the watch could go on"
    figures.add("-", "Role of conf-examples in two of three namespaces; granted; taken, given back",
                "named; others served; heals", f"healed in {granted:.1f} s, {again:.1f} s")


def test_one_verb_and_one_resource(world):
    """What is missing is named, not more: a Role that was written too narrow."""
    made = manifest("rbac-role.yaml", "shop", world.name)
    user = f"system:serviceaccount:{world.name}:gateway"
    world.deploy("web", 1)
    whole = made["Role"]
    made["Role"] = (whole[0], whole[1].replace("[endpointslices]\n    verbs: [list, watch]",
                                               "[endpointslices]\n    verbs: [list]"))
    assert made["Role"] != whole
    grant(world, made)
    block = BLOCK + " watch_list off;"
    gateway = started(world, made, world.name, ["web"], block)
    i = gateway.status.wait(lambda i: i["degraded"], 60)
    assert [d["cause"] for d in i["degraded"]] == ["forbidden"], i["degraded"]
    (row,) = [r for r in i["resources"] if r["resource"] == "endpointslices"]
    says = f'"{user}" cannot watch resource "endpointslices"'
    assert says in plain(row["last_error"]["message"])
    (row,) = [r for r in i["resources"] if r["resource"] == "services"]
    assert row["state"] == "watching" and row["last_error"]["reason"] == ""
    assert gateway.get("web").status == 200
    made["Role"] = whole
    grant(world, made, "Role")
    gateway.status.wait(watching, 60)
