# A Role in one namespace is enough, as conf-examples/ has it; a namespace that
# is refused degrades the informer and leaves it ready.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""An nginx whose token may read one namespace."""

from rig import READER, READER_TOKEN

RBAC = "rbac.authorization.k8s.io"


def grant(world, namespace):
    """A Role to read Services and slices, and its binding."""
    meta = {"namespace": namespace, "name": "nginx-kube-informer"}
    world.tb.apply({
        "apiVersion": RBAC + "/v1", "kind": "Role", "metadata": meta, "rules": [
            {"apiGroups": [""], "resources": ["services"], "verbs": ["list", "watch"]},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"],
             "verbs": ["list", "watch"]}]})
    world.tb.apply({
        "apiVersion": RBAC + "/v1", "kind": "RoleBinding", "metadata": meta,
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": meta["name"]},
        "subjects": [{"kind": "User", "name": READER, "apiGroup": RBAC}]})


def test_role_in_one_namespace(world, figures):
    other = world.name + "-other"
    world.tb.namespace(other)
    grant(world, world.name)
    pods = world.deploy("web", 2)
    gateway = world.gateway(["web"], start=False, block=f"namespaces {world.name};")
    gateway.secret("token", READER_TOKEN)
    gateway.start().status.wait_synced(30)
    world.assert_equal(gateway, ["web"])
    i = gateway.status.informer()
    assert i["ready"] and i["degraded"] == [], i
    assert gateway.get("web").headers["x-pod-addr"] in pods

    # A further namespace is refused: told, and no more than that.
    gateway.change(gone=True, block=f"namespaces {world.name} {other};")
    i = gateway.status.wait(lambda i: len(i["degraded"]) == 2, 30)
    assert all(other in d["text"] for d in i["degraded"]), i["degraded"]
    assert i["ready"] and gateway.get("web").status == 200

    # Granted, it heals without a reload.
    grant(world, other)
    i = gateway.status.wait(lambda i: i["degraded"] == [] and all(
        r["state"] == "watching" for r in i["resources"]), 60)
    assert i["ready"] and i["synced"], i
    figures.add("-", "Role in one namespace; another one refused, then granted",
                "ready; degraded; healed", "as the bar")
