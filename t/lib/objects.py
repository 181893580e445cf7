# Makers of Kubernetes objects for tests and the demo: dictionaries whose keys
# stand in the order in which Go's encoder emits them, and the encoder itself.
# It is not a model of the API: only Service, EndpointSlice, Pod and Namespace, and
# nothing is validated, for tests need wrong objects too.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Makers of Services, EndpointSlices and Namespaces, and scale fixtures."""

import json
import random
import uuid

METADATA_ORDER = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)

CREATED = "2026-01-01T00:00:00Z"
SERVICE_NAME_LABEL = "kubernetes.io/service-name"
MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by"
MANAGED_BY = "endpointslice-controller.k8s.io"

_uids = random.Random(1)


def new_uid():
    """A random UID; the sequence is the same in every run."""
    return str(uuid.UUID(int=_uids.getrandbits(128), version=4))


def go_json(value):
    """Encodes as Go's encoding/json does: compact, HTML characters escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for char, escape in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        if char in text:
            text = text.replace(char, escape)
    if "\u2028" in text or "\u2029" in text:
        text = text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return text.encode("utf-8", "surrogatepass")


def managed_fields(manager, api_version, fields, subresource=None):
    """One managedFields entry; a real object carries at least one."""
    entry = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": api_version,
        "time": CREATED,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    if subresource:
        entry["subresource"] = subresource
    return entry


def namespace(name, labels=None):
    """A Namespace."""
    return {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "creationTimestamp": CREATED,
            "labels": {"kubernetes.io/metadata.name": name, **(labels or {})},
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def service_port(port):
    """A ServicePort of an int, (name, port[, targetPort]) or a dictionary."""
    if isinstance(port, dict):
        return port
    if isinstance(port, int):
        port = ("", port)
    name, number, *rest = port
    made = {"name": name} if name else {}
    made.update(protocol="TCP", port=number, targetPort=rest[0] if rest else number)
    return made


_SERVICE_FIELDS = {
    "f:spec": {
        "f:internalTrafficPolicy": {},
        "f:ports": {
            ".": {},
            'k:{"port":80,"protocol":"TCP"}': {
                ".": {},
                "f:name": {},
                "f:port": {},
                "f:protocol": {},
                "f:targetPort": {},
            },
        },
        "f:selector": {},
        "f:sessionAffinity": {},
        "f:type": {},
    }
}


def service(
    ns,
    name,
    ports=(("http", 80, 8080),),
    type="ClusterIP",
    cluster_ip=None,
    selector=None,
    labels=None,
    annotations=None,
    external_name=None,
    publish_not_ready=False,
    uid=None,
    managed=True,
    **spec_extra,
):
    """A Service; cluster_ip "None" makes it headless, selector={} selectorless."""
    meta = {"name": name, "namespace": ns}
    if uid:
        meta["uid"] = uid
    meta["creationTimestamp"] = CREATED
    if labels:
        meta["labels"] = dict(sorted(labels.items()))
    if annotations:
        meta["annotations"] = dict(sorted(annotations.items()))
    if managed:
        meta["managedFields"] = [managed_fields("kubectl-create", "v1", _SERVICE_FIELDS)]

    spec = {}
    if ports:
        spec["ports"] = [service_port(p) for p in ports]
    if selector is None:
        selector = {"app": name}
    if selector and type != "ExternalName":
        spec["selector"] = dict(sorted(selector.items()))
    if type != "ExternalName":
        if cluster_ip is None:
            cluster_ip = "10.96.%d.%d" % divmod(hash32(f"{ns}/{name}") % 65024 + 256, 256)
        spec.update(clusterIP=cluster_ip, clusterIPs=[cluster_ip])
    spec.update(type=type, sessionAffinity="None")
    if external_name:
        spec["externalName"] = external_name
    if publish_not_ready:
        spec["publishNotReadyAddresses"] = True
    if type != "ExternalName":
        spec.update(
            ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack", internalTrafficPolicy="Cluster"
        )
    spec.update(spec_extra)
    return {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": meta,
        "spec": spec,
        "status": {"loadBalancer": {}},
    }


def pod(ns, name, labels=None, **metadata):
    """A Pod, of which informers see the metadata."""
    meta = {"name": name, "namespace": ns, "creationTimestamp": CREATED, **metadata}
    if labels is not None:
        meta["labels"] = dict(sorted(labels.items()))
    meta["managedFields"] = [managed_fields("kubelet", "v1", {"f:status": {}}, "status")]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": meta,
        "spec": {"containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running"},
    }


def hash32(text):
    """FNV-1a: stable from run to run, unlike hash()."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def endpoint(
    address,
    ready=True,
    serving=None,
    terminating=False,
    node="node-a",
    zone="zone-a",
    pod=None,
    ns="default",
    hints=None,
    hostname=None,
):
    """
    One endpoint; address may be a list.

    ready, serving and terminating: True, False, or "absent" to leave one out;
    serving None means: as ready, or True while terminating.
    """
    if serving is None:
        serving = True if terminating is True else ready
    conditions = {}
    for key, value in (("ready", ready), ("serving", serving), ("terminating", terminating)):
        if value != "absent":
            conditions[key] = value
    made = {
        "addresses": [address] if isinstance(address, str) else list(address),
        "conditions": conditions,
    }
    if hostname:
        made["hostname"] = hostname
    if pod:
        made["targetRef"] = {"kind": "Pod", "namespace": ns, "name": pod, "uid": new_uid()}
    if node:
        made["nodeName"] = node
    if zone:
        made["zone"] = zone
    if hints:
        made["hints"] = {"forZones": [{"name": h} for h in hints]}
    return made


def endpoint_port(port):
    """An EndpointPort of an int, (name, port) or a dictionary."""
    if isinstance(port, dict):
        return port
    if isinstance(port, int):
        port = ("", port)
    return {"name": port[0], "protocol": "TCP", "port": port[1]}


_SLICE_FIELDS = {
    "f:addressType": {},
    "f:endpoints": {},
    "f:metadata": {
        "f:annotations": {
            ".": {},
            "f:endpoints.kubernetes.io/last-change-trigger-time": {},
        },
        "f:generateName": {},
        "f:labels": {
            ".": {},
            "f:endpointslice.kubernetes.io/managed-by": {},
            "f:kubernetes.io/service-name": {},
        },
        "f:ownerReferences": {".": {}},
    },
    "f:ports": {},
}


def slice(  # noqa: A001
    ns,
    name,
    service,
    endpoints=(),
    ports=(("http", 8080),),
    address_type="IPv4",
    labels=None,
    annotations=None,
    uid=None,
    service_uid=None,
    managed=True,
):
    """
    An EndpointSlice of a service (None: without the service's label).

    endpoints: addresses, or dictionaries made by endpoint(); None gives null.
    """
    meta = {"name": name}
    if service and name.startswith(service + "-"):
        meta["generateName"] = service + "-"
    meta["namespace"] = ns
    if uid:
        meta["uid"] = uid
    meta.update(generation=1, creationTimestamp=CREATED)
    all_labels = {MANAGED_BY_LABEL: MANAGED_BY}
    if service:
        all_labels[SERVICE_NAME_LABEL] = service
    all_labels.update(labels or {})
    meta["labels"] = dict(sorted(all_labels.items()))
    notes = {"endpoints.kubernetes.io/last-change-trigger-time": CREATED, **(annotations or {})}
    meta["annotations"] = dict(sorted(notes.items()))
    if service:
        meta["ownerReferences"] = [
            {
                "apiVersion": "v1",
                "kind": "Service",
                "name": service,
                "uid": service_uid or new_uid(),
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    if managed:
        meta["managedFields"] = [
            managed_fields("kube-controller-manager", "discovery.k8s.io/v1", _SLICE_FIELDS)
        ]
    if endpoints is not None:
        endpoints = [endpoint(e, ns=ns) if isinstance(e, str) else e for e in endpoints]
    return {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": meta,
        "addressType": address_type,
        "endpoints": endpoints,
        "ports": None if ports is None else [endpoint_port(p) for p in ports],
    }


def endpoints(ns, name, subsets=(), labels=None, annotations=None, uid=None):
    """
    The Endpoints of a Service.

    subsets: of (ready addresses, ports) or (ready, ports, not ready); an address
    is a text or a dictionary.
    """
    meta = {"name": name, "namespace": ns, "creationTimestamp": CREATED}
    if uid:
        meta["uid"] = uid
    if labels:
        meta["labels"] = dict(sorted(labels.items()))
    notes = {"endpoints.kubernetes.io/last-change-trigger-time": CREATED, **(annotations or {})}
    meta["annotations"] = dict(sorted(notes.items()))

    def addresses(given):
        return [{"ip": a} if isinstance(a, str) else a for a in given]

    made = []
    for ready, ports, *other in subsets:
        subset = {}
        if ready:
            subset["addresses"] = addresses(ready)
        if other:
            subset["notReadyAddresses"] = addresses(other[0])
        subset["ports"] = [endpoint_port(p) for p in ports]
        made.append(subset)
    return {"kind": "Endpoints", "apiVersion": "v1", "metadata": meta, "subsets": made}


def scale(services=10000, endpoints=10, namespaces=10, prefix="svc", base="10.128.0.0"):
    """
    Yields a scale fixture: each Service followed by its one EndpointSlice.

    Addresses count up from base, so each endpoint has its own.
    """
    octets = [int(o) for o in base.split(".")]
    number = octets[0] << 24 | octets[1] << 16 | octets[2] << 8 | octets[3]
    for i in range(services):
        ns = f"ns-{i % namespaces:03d}"
        name = f"{prefix}-{i:05d}"
        made = []
        for k in range(endpoints):
            number += 1
            address = "%d.%d.%d.%d" % (
                number >> 24,
                number >> 16 & 255,
                number >> 8 & 255,
                number & 255,
            )
            node = "abc"[k % 3]
            made.append(
                endpoint(
                    address,
                    node="node-" + node,
                    zone="zone-" + node,
                    pod=f"{name}-{k:04x}",
                    ns=ns,
                )
            )
        yield service(ns, name)
        yield slice(ns, f"{name}-{i & 0xFFFFF:05x}", name, made)
