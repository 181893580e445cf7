# Line 8: a tenant writes odd but legal objects all the time; another one's
# endpoint changes meanwhile, and nobody there can tell.
#
# KUBE_PROOF=1: more swaps, and the times are judged, not only shown.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Odd objects of one tenant beside the changes of another."""

import ipaddress
import itertools
import json
import os
import time

import kubeapi
from report import quantile, void
from rig import DISCOVERY, Beside

PROOF = os.environ.get("KUBE_PROOF") == "1"
SWAPS = 300 if PROOF else 40
RATE = 5 if PROOF else 1
HEAVY = 5 if PROOF else 0.1  # what costs the server itself most, as often
HEAVIEST = {"services", "many-ports", "large", "grown"}
LIMIT_S = 30
ADDRESSES = ["10.244.0.21:9000", "10.244.0.22:9000"]
RATIO, P99_MS = 1.2, 50


# The tenant's objects: each makes the n-th version of itself.


def addresses(count):
    """So many addresses that nobody listens at."""
    first = int(ipaddress.ip_address("10.250.0.1"))
    return [str(ipaddress.ip_address(first + i)) for i in range(count)]


def ends(count, each=1):
    """So many endpoints, of so many addresses each."""
    made = addresses(count * each)
    return [
        {"addresses": made[i * each : (i + 1) * each], "conditions": {"ready": True}}
        for i in range(count)
    ]


def nested(levels):
    """What managedFields may hold."""
    made = {}
    for _ in range(levels):
        made = {"f:x": made}
    return made


def managed(levels):
    """managedFields so deep."""
    return [
        {
            "manager": "odd",
            "operation": "Update",
            "apiVersion": DISCOVERY,
            "fieldsType": "FieldsV1",
            "fieldsV1": nested(levels),
            "time": "2026-01-01T00:00:00Z",
        }
    ]


def one(n, **more):
    """An endpoint that is another one each time."""
    return [{"addresses": [addresses(250)[n % 250]], "conditions": {"ready": True}, **more}]


def ports(count):
    """So many ports of a slice."""
    return [{"name": f"p{i}", "port": 1 + i, "protocol": "TCP"} for i in range(count)]


# name: what of a slice is odd in its n-th version
SLICES = {
    "nul-annotation": lambda n: {
        "metadata": {"annotations": {"odd": f"a\0b{n}"}}, "endpoints": one(n)},
    "nul-zone": lambda n: {"endpoints": one(n, zone="z\0")},
    "nul-target": lambda n: {"endpoints": one(n, targetRef={"kind": "Pod", "name": "a\0b"})},
    "deep-80": lambda n: {"metadata": {"managedFields": managed(80)}, "endpoints": one(n)},
    "deep-101": lambda n: {"metadata": {"managedFields": managed(101)}, "endpoints": one(n)},
    "deep-150": lambda n: {"metadata": {"managedFields": managed(150)}, "endpoints": one(n)},
    "many-ports": lambda n: {"ports": ports(20000), "endpoints": one(n)},
    "long-number": lambda n: {"endpoints": one(n), "odd": int("9" * 300 + str(n))},
    "surrogate": lambda n: {
        "metadata": {"annotations": {"odd": f"\ud800{n}"}}, "endpoints": one(n)},
    "zones": lambda n: {"endpoints": one(
        n, zone="no zone!! \u00df", hints={"forZones": [{"name": "neither"}]})},
    "large": lambda n: {"endpoints": ends(980 + n % 2, 80)},
    "grown": lambda n: {"endpoints": ends(1 + 100 * (n % 10))},
    "fqdn": lambda n: {
        "addressType": "FQDN",
        "endpoints": [{"addresses": [f"pod-{n}.example"], "conditions": {"ready": True}}]},
    "of-nobody": lambda n: {
        "metadata": {"labels": {"kubernetes.io/service-name": f"nobody-{n}"}},
        "endpoints": one(n)},
    "no-conditions": lambda n: {"endpoints": [{"addresses": [addresses(250)[n % 250]]}]},
}


def odd_slice(namespace, name, n):
    """The n-th version of a slice."""
    made = {
        "apiVersion": DISCOVERY,
        "kind": "EndpointSlice",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"kubernetes.io/service-name": "odd"},
        },
        "addressType": "IPv4",
        "endpoints": [],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    }
    more = SLICES[name](n)
    made["metadata"].update(more.pop("metadata", {}))
    made.update(more)
    return made


class Tenant(Beside):
    """Writes one object, rate times a second if the server keeps up."""

    def __init__(self, world, namespace, name):
        super().__init__()
        self.tb = world.view()
        self.tb.api.timeout = 120
        self.namespace = namespace
        self.name = name
        self.written = 0
        self.refused = ""

    def request(self, n):
        """The n-th version, as a request."""
        if self.name == "services":
            path = kubeapi.path_of("Service", self.namespace, "odd")
            body = {"spec": {"ports": [
                {"name": f"p{i}", "port": 1 + i, "targetPort": 1 + (i + n) % 65535}
                for i in range(700)]}}
            return self.tb.api.request("PATCH", path, json.dumps(body), kind=kubeapi.MERGE)
        path = kubeapi.path_of("EndpointSlice", self.namespace, self.name, DISCOVERY)
        return self.tb.api.request("PUT", path, json.dumps(
            odd_slice(self.namespace, self.name, n)))

    def work(self):
        for n in itertools.count(1):
            due = time.monotonic() + 1 / (HEAVY if self.name in HEAVIEST else RATE)
            status, text = self.request(n)
            if status // 100 == 2:
                self.written += 1
            else:
                self.refused = f"{status} {text[:300]}"
            if self.halt.wait(max(0, due - time.monotonic())):
                break
        self.tb.api.close()


def create(world, namespace):
    """The tenant's objects for the first time; which of them the server takes."""
    world.tb.namespace(namespace)
    world.tb.apply(world.tb.service(namespace, "odd", selector=False))
    taken, refused = ["services"], {}
    path = kubeapi.path_of("EndpointSlice", namespace, None, DISCOVERY)
    for name in SLICES:
        status, text = world.tb.api.request(
            "POST", path, json.dumps(odd_slice(namespace, name, 0)))
        if status // 100 == 2:
            taken.append(name)
        else:
            refused[name] = f"{status} {text[:200]}"
    return taken, refused


def swaps(world, gateway):
    """
    Times of the quiet tenant's endpoint, from a bare watch to both workers.  The
    bare watch and the informer's are of the same namespace: what is large stands in
    another stream, but in the hands of the same process.
    """
    r = world.tb.swap(world.name, "quiet", "quiet-1", gateway.url("quiet"), ADDRESSES,
                      swaps=SWAPS, workers=2, timeout=600, limit=LIMIT_S)
    assert r["missed"] == 0 and not r["failures"], r["failures"]
    assert r["probes"]["went_back"] == 0, "a worker went back to the old endpoint"
    if r["swaps"] < SWAPS * 0.9 or len(r["raw_ms"]) != 2:
        void(f"{r['swaps']} swaps by {len(r['raw_ms'])} workers")
    return [t for values in r["raw_ms"].values() for t in values]


def settled(world, gateway, namespace):
    """Until both resources are at the version of the tenant's last write, or past it."""
    for kind, resource, version in (("Service", "services", "v1"),
                                    ("EndpointSlice", "endpointslices", DISCOVERY)):
        items = world.tb.api.items(kubeapi.path_of(kind, namespace, None, version))
        newest = max(int(i["metadata"]["resourceVersion"]) for i in items)
        gateway.status.wait_rv(newest, resource, namespace, timeout=60)


def named(gateway):
    """{namespace/name: reason} of what is refused."""
    return {row["key"]: row["reason"] for r in gateway.status.informer()["resources"]
            for row in r["refused"]}


def held(gateway, namespace):
    """Addresses of the Service odd, as nginx has them."""
    made = gateway.status.service(namespace, "odd")
    return {e["address"] for e in made["endpoints"]} if made else set()


def assert_used_or_named(world, gateway, namespace):
    """Each odd object is in the zone as the server has it, or has its name in refused."""
    refused = named(gateway)
    here = held(gateway, namespace)
    path = kubeapi.path_of("EndpointSlice", namespace, None, DISCOVERY)
    for s in world.tb.api.items(path):
        name = s["metadata"]["name"]
        if f"{namespace}/{name}" in refused or s["addressType"] == "FQDN":
            continue
        if s["metadata"]["labels"]["kubernetes.io/service-name"] != "odd":
            continue
        first = {e["addresses"][0] for e in s.get("endpoints") or ()}
        assert first <= here, f"{name}: {sorted(first - here)[:5]} are missing"
    return refused


def digests(gateway):
    """What each resource is, by content: (objects, digest)."""
    return {(r["resource"], r["namespace"]): (r["objects"], r["digest"])
            for r in gateway.status.informer()["resources"]}


def test_odd_objects_cost_their_tenant_alone(world, figures):
    namespace = world.name + "-odd"
    both = {"zone": "kube 32m", "block": f"namespaces {world.name} {namespace};"}
    world.direct("quiet", ["10.244.0.21"], 9000)
    gateway = world.gateway(["quiet"], **both)
    alone = swaps(world, gateway)

    taken, not_taken = create(world, namespace)
    assert len(taken) >= 12, f"the server took {taken} only: {not_taken}"
    before = {what: gateway.count(what) for what in ("lists", "relists")}
    writers = [Tenant(world, namespace, name) for name in taken]
    try:
        for writer in writers:
            writer.start()
        beside = swaps(world, gateway)
    finally:
        for writer in writers:
            writer.stop()
    written = {w.name: w.written for w in writers}
    busy = {w.name: w.refused for w in writers if w.refused}
    if min(written.values()) < 1:
        void(f"the writers wrote too little: {written}; the server said {busy}")

    settled(world, gateway, namespace)
    for what, counts in before.items():
        assert gateway.count(what) == counts, f"{what} while odd objects were written"
    refused = assert_used_or_named(world, gateway, namespace)
    world.assert_equal(gateway, ["quiet"])
    other = world.gateway(["quiet"], **both)
    settled(world, other, namespace)
    assert digests(gateway) == digests(other), "a watch and a list come to different things"
    world.tb.delete("Namespace", None, namespace)

    figures.add("8", "odd objects: kinds the server takes, writes, named as refused", "",
                f"{len(taken)}, {sum(written.values())}, {sorted(refused)}"
                f" (not taken: {sorted(not_taken)}; too much for the server: {busy})")
    m, w = quantile(alone, 0.5), quantile(beside, 0.5)
    note = f" (alone {m:.2f} ms, ratio {w / m:.2f}, bar {RATIO})"
    figures.time("8", "swap routed beside odd objects: median", 5, w, note=note)
    figures.time("8", "swap routed beside odd objects: p99", P99_MS, quantile(beside, 0.99),
                 note=f" (alone {quantile(alone, 0.99):.1f} ms, {len(beside)} times)")
    if PROOF:
        assert w <= RATIO * m, f"median {w:.2f} ms beside odd objects, {m:.2f} ms alone"
        assert quantile(beside, 0.99) <= P99_MS
