# Bad objects and streams: skipped or refused, counted, named, and nothing else
# is harmed; the version moves on.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Objects no API server should send, and those it may."""

import json
import re

import objects
import pytest
from cluster import informer
from nginx import wait_until

CONF = """
    upstream web { kube_service shop/web; }
    upstream any { kube_service $http_x namespaces=shop,infra; }
    server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://web; }
        location /by { proxy_pass http://any; }
    }
"""

SLICES = "endpointslices"
LABELS = {objects.SERVICE_NAME_LABEL: "bad"}


def meta(**more):
    """The metadata of an object called shop/bad."""
    made = {
        "name": "bad",
        "namespace": "shop",
        "uid": "00000000-0000-4000-8000-000000000001",
        "resourceVersion": "%RV%",
        "labels": LABELS,
    }
    made.update(more)
    return {k: v for k, v in made.items() if v is not None}


def slice_text(metadata=None, **more):
    """A slice as bytes; a value None leaves a field out."""
    made = {
        "metadata": meta() if metadata is None else metadata,
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["127.60.0.1"], "conditions": {"ready": True}}],
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
    }
    made.update(more)
    return json.dumps({k: v for k, v in made.items() if v != "absent"}).encode()


def service_text(metadata=None, **more):
    """A Service as bytes."""
    made = {
        "metadata": meta() if metadata is None else metadata,
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.0.0.1",
            "ports": [{"name": "http", "protocol": "TCP", "port": 80}],
        },
    }
    made.update(more)
    return json.dumps(made).encode()


def nested(depth):
    """JSON that deep."""
    return b"[" * depth + b"]" * depth


GOOD = slice_text()

# What becomes of an object:
#   refused  it is skipped, counted, and named in "refused"
#   part     a part of it is left out and counted, the rest is used
#   broken   it is skipped and counted; whose it was cannot be read, so a
#            watch of it is opened again, once; when that shows it again, it is
#            passed over
#   taken    it is odd, and right
OBJECTS = [
    ("endpoints a string", "refused", SLICES, slice_text(endpoints="no")),
    ("endpoints an object", "refused", SLICES, slice_text(endpoints={})),
    ("ports a string", "refused", SLICES, slice_text(ports="no")),
    ("addressType a number", "refused", SLICES, slice_text(addressType=4)),
    ("unknown addressType", "refused", SLICES, slice_text(addressType="IPX")),
    (
        "1001 endpoints",
        "refused",
        SLICES,
        slice_text(
            endpoints=[{"addresses": [f"10.5.{k // 250}.{k % 250 + 1}"]} for k in range(1001)]
        ),
    ),
    (
        "service ports a string",
        "refused",
        "services",
        service_text(spec={"ports": "no"}),
    ),
    (
        "700 ports",
        "taken",
        "services",
        service_text(spec={"ports": [{"name": f"p{k}", "port": k + 1} for k in range(700)]}),
    ),
    ("type a list", "refused", "services", service_text(spec={"type": []})),
    ("spec a list", "refused", "services", service_text(spec=[])),
    ("unknown type", "refused", "services", service_text(spec={"type": "Whatever"})),
    ("endpoint a number", "part", SLICES, slice_text(endpoints=[1])),
    ("addresses a string", "part", SLICES, slice_text(endpoints=[{"addresses": "127.60.0.1"}])),
    ("addresses empty", "part", SLICES, slice_text(endpoints=[{"addresses": []}])),
    ("no address", "part", SLICES, slice_text(endpoints=[{"addresses": ["999.1.1.1"]}])),
    ("address, zone", "part", SLICES, slice_text(endpoints=[{"addresses": ["fe80::1%lo"]}])),
    ("host", "part", SLICES, slice_text(endpoints=[{"addresses": ["example.com"]}])),
    ("port a string", "part", SLICES, slice_text(ports=[{"name": "http", "port": "80"}])),
    ("port a fraction", "part", SLICES, GOOD.replace(b"8080", b"80.5")),
    ("port of 65536", "part", SLICES, slice_text(ports=[{"name": "http", "port": 65536}])),
    ("port of 2^64", "part", SLICES, GOOD.replace(b"8080", b"18446744073709551616")),
    ("port of 2^64 and 8080", "part", SLICES, GOOD.replace(b"8080", b"18446744073709559696")),
    ("port of -1", "part", SLICES, slice_text(ports=[{"name": "http", "port": -1}])),
    (
        "conditions a list",
        "part",
        SLICES,
        slice_text(endpoints=[{"addresses": ["127.60.0.1"], "conditions": []}]),
    ),
    (
        "ready a string",
        "part",
        SLICES,
        slice_text(endpoints=[{"addresses": ["127.60.0.1"], "conditions": {"ready": "yes"}}]),
    ),
    ("service port of 0", "part", "services", service_text(spec={"ports": [{"port": 0}]})),
    ("service port of 65536", "part", "services", service_text(spec={"ports": [{"port": 65536}]})),
    ("name with a slash", "broken", SLICES, slice_text(meta(name="../bad"))),
    ("no name", "broken", SLICES, slice_text(meta(name=None))),
    ("name a number", "broken", SLICES, slice_text(meta(name=7))),
    (
        "metadata null",
        "broken",
        SLICES,
        GOOD.replace(json.dumps(meta()).encode(), b"null"),
    ),
    ("namespace in upper case", "broken", SLICES, slice_text(meta(namespace="SHOP"))),
    ("leading zero", "part", SLICES, GOOD.replace(b"8080", b"08080")),
    ("nan", "part", SLICES, GOOD.replace(b"8080", b"NaN")),
    ("bad utf-8", "part", SLICES, GOOD.replace(b"127.60.0.1", b"127.60\xff.0.1")),
    ("control byte", "part", SLICES, GOOD.replace(b"127.60.0.1", b"127.60\x01.0.1")),
    ("lone surrogate", "part", SLICES, GOOD.replace(b"127.60.0.1", b"\\ud800")),
    ("bad escape", "part", SLICES, GOOD.replace(b"127.60.0.1", b"\\x31")),
    ("name with a NUL", "broken", SLICES, slice_text(meta(name="ba\0d"))),
    ("no comma", "refused", SLICES, GOOD.replace(b'"IPv4",', b'"IPv4"')),
    ("depth 10001", "refused", SLICES, GOOD.replace(b'"IPv4"', b'"IPv4","a":' + nested(10001))),
    (
        "NUL in the label",
        "refused",
        SLICES,
        slice_text(meta(labels={objects.SERVICE_NAME_LABEL: "b\0"})),
    ),
    (
        "NUL in a zone",
        "part",
        SLICES,
        GOOD.replace(b'"conditions"', b'"zone":"a\\u0000","conditions"'),
    ),
    ("NUL in a port's name", "part", SLICES, GOOD.replace(b'"http"', b'"h\\u0000"')),
    ("NUL in an annotation", "taken", SLICES, slice_text(meta(annotations={"a\0": "\0"}))),
    ("half a pair in one", "taken", SLICES, slice_text(meta(annotations={"a": "\ud800"}))),
    (
        "a number of 2000 digits",
        "taken",
        SLICES,
        GOOD.replace(b'"IPv4"', b'"IPv4","n":' + b"7" * 2000),
    ),
    ("bytes in a string", "taken", SLICES, GOOD.replace(b'"IPv4"', b'"IPv4","n":"\xff\x01\\x"')),
    (
        "metadata twice",
        "taken",
        SLICES,
        GOOD.replace(b'"IPv4"', b'"IPv4","metadata":{"generation":1}'),
    ),
    ("depth 10000", "taken", SLICES, GOOD.replace(b'"IPv4"', b'"IPv4","a":' + nested(10000))),
    ("endpoints null", "taken", SLICES, slice_text(endpoints=None)),
    ("endpoints absent", "taken", SLICES, slice_text(endpoints="absent")),
    ("ports null", "taken", SLICES, slice_text(ports=None)),
    (
        "FQDN",
        "taken",
        SLICES,
        slice_text(addressType="FQDN", endpoints=[{"addresses": ["example.com"]}]),
    ),
    ("no label", "taken", SLICES, slice_text(meta(labels=None))),
    ("labels a list", "taken", SLICES, slice_text(meta(labels=[]))),
    ("label a number", "taken", SLICES, slice_text(meta(labels={objects.SERVICE_NAME_LABEL: 7}))),
    ("unknown fields", "taken", SLICES, slice_text(future={"a": [1, {"b": None}]})),
    ("escapes", "taken", SLICES, GOOD.replace(b"127.60.0.1", b"127.60.0\\u002e1")),
    (
        "duplicate keys",
        "taken",
        SLICES,
        GOOD.replace(b'"IPv4"', b'"IPv6","addressType":"IPv4"'),
    ),
    ("depth 60", "taken", SLICES, GOOD.replace(b'"IPv4"', b'"IPv4","deep":' + nested(60))),
    ("white space", "taken", SLICES, json.dumps(json.loads(GOOD), indent=3).encode()),
    ("case of keys", "taken", SLICES, GOOD.replace(b'"endpoints"', b'"Endpoints"')),
    ("no spec", "taken", "services", b'{"metadata":%s}' % json.dumps(meta()).encode()),
    ("no ports", "taken", "services", service_text(spec={"type": "ClusterIP"})),
]

ALL = pytest.mark.parametrize(
    "verdict, resource, text", [o[1:] for o in OBJECTS], ids=[o[0] for o in OBJECTS]
)
LIMIT = "max_object 64k;"


def start(cluster, **more):
    """shop/web is good, shop/bad is a Service whose slice will be bad."""
    cluster.service("shop", "web", 1)
    cluster.api.put(objects.service("shop", "bad", ports=(("http", 80, "http"),)))
    return cluster.nginx(CONF, more=LIMIT, workers=1, **more)


def put(cluster, resource, text):
    """The bad object, as an item of lists and as an event."""
    kind = b'{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1",'
    if resource == "services":
        kind = b'{"kind":"Service","apiVersion":"v1",'
    full = kind + text.lstrip()[1:].lstrip()
    # one line, as the events of a watch are
    return cluster.api.put_raw(
        resource, "shop", "bad", text, labels=LABELS, full=full.replace(b"\n", b" ")
    )


def unharmed(cluster, gateway, resource):
    """Good objects follow, no list was repeated, the version moves on."""
    gateway.status.wait_rv(cluster.slice("shop", "web", cluster.pods(1, "after")), SLICES)
    gateway.wait_backends({"after-1"})
    service = cluster.api.get("services", "shop", "web")
    service["spec"]["sessionAffinity"] = "ClientIP"
    gateway.status.wait_rv(cluster.api.put(service), "services")
    assert gateway.status.informer()["synced"]
    return gateway.status.resource(resource)


def skipped(gateway, resource):
    """The sum of skipped_objects_total of a resource."""
    return gateway.status.metrics().value("nginx_kube_skipped_objects_total", resource=resource)


def check(cluster, gateway, verdict, resource, where):
    """Skipped, counted, named and logged as the verdict says; nothing else is harmed."""
    row = unharmed(cluster, gateway, resource)
    lost = verdict in ("refused", "broken")
    assert (row["skipped"] == 0) == (verdict == "taken"), row
    assert skipped(gateway, resource) == row["skipped"]
    assert row["objects"] == cluster.held(resource) - lost, row
    named = [{"key": "shop/bad", "reason": "malformed"}] if verdict == "refused" else []
    assert row["refused"] == named
    # who cannot be told breaks a stream, and is skipped by a plain list
    broken = verdict == "broken"
    asked = cluster.api.find(resource=resource)
    assert [(r.verb, r.streamed) for r in asked] == (
        [("watch", True)]
        + [("list", False)] * (broken and where == "list")
        + [("watch", False)] * broken
    )
    if lost:
        assert gateway.wait_log(r"skipped_object|refused_object|request_failed")
        mended = put(cluster, resource, GOOD if resource == SLICES else service_text())
        gateway.status.wait_rv(mended, resource)
        row = gateway.status.resource(resource)
        assert row["objects"] == cluster.held(resource) and row["refused"] == []


class TestObjects:
    """In lists and in watches."""

    @ALL
    def test_in_a_watch(self, cluster, verdict, resource, text):
        gateway = start(cluster)
        cluster.steady(gateway)
        put(cluster, resource, text)
        check(cluster, gateway, verdict, resource, "watch")

    @ALL
    def test_in_a_list(self, cluster, verdict, resource, text):
        cluster.api.put(objects.service("shop", "bad", ports=(("http", 80, "http"),)))
        put(cluster, resource, text)
        gateway = start(cluster) if resource == SLICES else None
        if gateway is None:
            cluster.service("shop", "web", 1)
            gateway = cluster.nginx(CONF, more=LIMIT, workers=1)
        assert gateway.get().status == 200
        check(cluster, gateway, verdict, resource, "list")

    @pytest.mark.parametrize("where", ["list", "watch"])
    def test_too_large_is_named(self, cluster, where):
        gateway = self.too_large(cluster, where)
        assert [r["key"] for r in gateway.status.resource(SLICES)["refused"]] == ["shop/bad"]

    @pytest.mark.parametrize("where", ["list", "watch"])
    def test_too_large_harms_nobody(self, cluster, where):
        gateway = self.too_large(cluster, where)
        row = unharmed(cluster, gateway, SLICES)
        assert row["skipped"] == 1 == skipped(gateway, SLICES)
        assert row["objects"] == cluster.held(SLICES) - 1
        (line,) = gateway.wait_log(r"skipped_object.*max_object")
        size, limit = re.search(r"its (\d+) bytes are more than max_object, (\d+)", line).groups()
        assert 100000 < int(size) < 102000 and limit == "65536", line
        gateway.status.wait_rv(put(cluster, SLICES, GOOD))
        assert gateway.status.used("shop", "bad") == ["127.60.0.1"]
        assert cluster.api.count(verb="list", resource=SLICES) == 1

    @pytest.mark.parametrize("where, zone", [("list", "4m"), ("watch", "4m"), ("watch", "8m")])
    def test_too_large_until_it_may_be(self, cluster, where, zone):
        """max_object is raised: what was refused is listed, once; by no other reload."""
        gateway = self.too_large(cluster, where)
        gateway.reload()
        cluster.steady(gateway)
        larger = informer(cluster.api.url, "max_object 1m;", zone=f"kube {zone}")
        gateway.change(block=larger, gone=True)
        # who follows before that list asks for it, too
        gateway.reload()
        cluster.steady(gateway)
        assert {r["reason"] for r in gateway.status.resource(SLICES)["refused"]} <= {"too_large"}
        wait_until(lambda: not gateway.status.resource(SLICES)["refused"])
        assert gateway.status.used("shop", "bad") == ["127.60.0.1"]
        gateway.reload()
        cluster.steady(gateway)
        assert cluster.api.count(verb="list", resource=SLICES) == 2
        assert not gateway.grep_log("zone_full")

    @staticmethod
    def too_large(cluster, where):
        """A gateway that has met an object larger than max_object."""
        text = slice_text(meta(annotations={"a": "x" * 100000}))
        if where == "list":
            put(cluster, SLICES, text)
        gateway = start(cluster)
        cluster.steady(gateway)
        if where == "watch":
            put(cluster, SLICES, text)
            unharmed(cluster, gateway, SLICES)
        return gateway

    def test_an_update_that_is_bad_keeps_what_was(self, cluster):
        """The last good state serves on, and the key is named."""
        pods = cluster.service("shop", "bad", 1)
        gateway = start(cluster)
        cluster.slice("shop", "bad", pods)
        cluster.steady(gateway)
        item = json.loads(GOOD)
        held = cluster.api.get(SLICES, "shop", "bad-1")
        item["metadata"]["name"] = "bad-1"
        item["metadata"]["uid"] = held["metadata"]["uid"]
        item["endpoints"] = "no"
        text = json.dumps(item).encode()
        full = b'{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1",' + text[1:]
        rv = cluster.api.put_raw(SLICES, "shop", "bad-1", text, labels=LABELS, full=full)
        gateway.status.wait_rv(rv)
        row = unharmed(cluster, gateway, SLICES)
        assert [(r["key"], r["reason"], r["outdated"]) for r in row["refused"]] == [
            ("shop/bad-1", "malformed", True)
        ]
        assert 0 <= row["refused"][0]["age_seconds"] < 600
        assert gateway.get("/by", headers={"X": "shop/bad"}).backend == pods[0].name
        gateway.reload()
        cluster.steady(gateway)
        assert gateway.status.resource(SLICES)["refused"][0]["outdated"]
        assert gateway.get("/by", headers={"X": "shop/bad"}).backend == pods[0].name
        cluster.slice("shop", "bad", pods)
        wait_until(lambda: not gateway.status.resource(SLICES)["refused"])
        assert gateway.get("/by", headers={"X": "shop/bad"}).backend == pods[0].name

    def test_many_of_them(self, cluster):
        """The log is limited, the list of names too, the count is exact."""
        gateway = start(cluster)
        cluster.steady(gateway)
        for n in range(300):
            item = json.loads(slice_text(endpoints="no"))
            item["metadata"]["name"] = f"bad-{n}"
            text = json.dumps(item).encode()
            full = b'{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1",' + text[1:]
            cluster.api.put_raw(SLICES, "shop", f"bad-{n}", text, labels=LABELS, full=full)
        row = unharmed(cluster, gateway, SLICES)
        assert row["skipped"] == 300 == skipped(gateway, SLICES)
        assert len(row["refused"]) <= 100
        assert len(gateway.grep_log(r"skipped_object|refused_object")) < 30

    def test_what_escapes_and_duplicates_mean(self, cluster):
        """As Go reads them: the last of two keys, and escapes are what they stand for."""
        gateway = start(cluster)
        cluster.steady(gateway)
        taken = {o[0]: o[3] for o in OBJECTS}
        for name, used in (
            ("escapes", ["127.60.0.1"]),
            ("duplicate keys", ["127.60.0.1"]),
            ("white space", ["127.60.0.1"]),
            ("no address", []),
            ("FQDN", []),
            ("ports null", []),
        ):
            gateway.status.wait_rv(put(cluster, SLICES, taken[name]))
            assert gateway.status.used("shop", "bad") == used, name


LISTS = [
    ("items null", lambda b: b.replace(b'"items":[', b'"items":null,"x":['), True),
    ("kind of pods", lambda b: b.replace(b"EndpointSliceList", b"PodList"), False),
    ("no metadata", lambda b: b.replace(b'"metadata":{"resourceVersion"', b'"m":{"r"', 1), False),
    ("no version", lambda b: b.replace(b'"resourceVersion"', b'"v"', 1), False),
    ("garbage after it", lambda b: b + b"garbage", False),
    ("a second list after it", lambda b: b + b, False),
    ("cut in half", lambda b: b[: len(b) // 2], False),
    ("an array", lambda b: b"[" + b + b"]", False),
    ("empty", lambda b: b"", False),
]


@pytest.mark.parametrize("change, fine", [x[1:] for x in LISTS], ids=[x[0] for x in LISTS])
def test_bad_list(cluster, change, fine):
    """A list that is not one is asked for again, and nothing of it stays."""
    cluster.service("shop", "web", 1)
    fault = cluster.api.fault(verb="list", resource=SLICES, mutate=change)
    # a WatchList has no body of its own: its lines are events
    gateway = cluster.nginx(CONF, more="watch_list off;", workers=1)
    cluster.api.wait(lambda: fault.fired == 1)
    if not fine:
        cluster.api.wait_requests(2, verb="list", resource=SLICES)
        gateway.wait_status_code(200)
        assert gateway.status.resource(SLICES)["objects"] == 1
    unharmed(cluster, gateway, SLICES)


@pytest.mark.parametrize("rv", ["", "abc", "-1", "0", "1", "1e9", "9" * 41, None, 7])
def test_version_of_an_event(cluster, rv):
    """An event whose version makes no sense does not make the cache go back."""
    gateway = start(cluster)
    cluster.steady(gateway)
    before = int(gateway.status.resource(SLICES)["resource_version"])
    item = json.loads(slice_text(meta(resourceVersion=rv)))
    line = {"type": "ADDED", "object": {"kind": "EndpointSlice", **item}}
    line["object"]["apiVersion"] = "discovery.k8s.io/v1"
    cluster.api.inject(json.dumps(line).encode() + b"\n", SLICES)
    unharmed(cluster, gateway, SLICES)
    found = gateway.status.resource(SLICES)["resource_version"]
    assert int(found) >= before


@pytest.mark.slow
@pytest.mark.parametrize("digits", [18, 23])
def test_version_from_the_far_future(cluster, digits):
    """It is believed, as it must be; then the server is found to have gone back."""
    gateway = start(cluster)
    cluster.steady(gateway)
    item = json.loads(slice_text(meta(resourceVersion="9" * digits)))
    line = {"type": "ADDED", "object": {"kind": "EndpointSlice", **item}}
    cluster.api.inject(json.dumps(line).encode() + b"\n", SLICES)
    cluster.slice("shop", "web", cluster.pods(1, "after"))
    gateway.status.wait(lambda i: i["epoch"] > 1)
    gateway.wait_backends({"after-1"})
    unharmed(cluster, gateway, SLICES)
    assert gateway.status.resource(SLICES)["objects"] == cluster.held(SLICES)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"BOOKMARK","object":{}}\n',
        b'{"type":"BOOKMARK","object":{"kind":"EndpointSlice","metadata":{}}}\n',
        b'{"type":"BOOKMARK","object":{"kind":"EndpointSlice","metadata":'
        b'{"resourceVersion":"1"}}}\n',
        b'{"type":"BOOKMARK","object":{"kind":"Service","metadata":{"resourceVersion":"7"}}}\n',
        b'{"type":"DELETED","object":{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1",'
        b'"metadata":{"name":"never","namespace":"shop","resourceVersion":"100000"}}}\n',
        b'{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p",'
        b'"namespace":"shop","resourceVersion":"100001"}}}\n',
        b"\n",
        b"   \n\n",
    ],
    ids=range(8),
)
def test_odd_events(cluster, line):
    gateway = start(cluster)
    cluster.steady(gateway)
    cluster.api.core.store.rv = 100001
    cluster.api.inject(line, SLICES)
    row = unharmed(cluster, gateway, SLICES)
    assert row["objects"] == cluster.held(SLICES)


SELF = """
    upstream web { kube_service shop/web:http; }
    server {
        listen %s;
        location / { proxy_pass http://web; }
    }
"""


@pytest.mark.parametrize("listen", ["127.0.0.1:PORT", "PORT", "[::]:PORT ipv6only=off"])
def test_the_gateway_itself(cluster, listen):
    """A slice that names it would send a request round and round."""
    gateway = cluster.nginx(SELF % listen, start=False)
    cluster.api.put(objects.service("shop", "web", ports=(("http", 80, "http"),)))
    me = objects.endpoint("127.0.0.1", pod="me", ns="shop")
    cluster.slice("shop", "web", [me], ports=(("http", gateway.port),))
    gateway.start()
    gateway.status.wait_synced()
    answer = gateway.get()
    assert (answer.status, answer.headers["x-kube-error"]) == (502, "address_denied")
    (row,) = gateway.status.service("shop", "web")["endpoints"]
    assert row["excluded_because"] == "address denied"
    assert gateway.wait_log("127.0.0.1.*gateway's own address")
    if listen != "127.0.0.1:PORT":
        return
    # another address at that port is used
    (pod,) = cluster.pods(1, "other", port=gateway.port)
    cluster.slice("shop", "web", [me, pod], ports=(("http", gateway.port),))
    gateway.wait_backends({"other-1"})


def test_a_pod_at_the_port_of_ipv6_alone(cluster):
    """Where [::] is told to leave IPv4 alone, a pod beside it is none of ours."""
    pod = cluster.backends.add("127.0.0.1", 0, "beside")
    cluster.service("shop", "web", pods=[pod])
    gateway = cluster.nginx(SELF % f"PORT; listen [::]:{pod.port} ipv6only=on")
    assert gateway.get().backend == "beside"


def test_slice_of_another_namespace(cluster):
    """Whoever may write slices in one namespace gets no request meant for another's Service."""
    (own,) = cluster.service("shop", "web", 1)
    (foreign,) = cluster.pods(1, "foreign", port=own.port)
    gateway = cluster.nginx(CONF, workers=1)
    gateway.status.wait_rv(cluster.slice("infra", "web", [own, foreign]))
    assert gateway.status.used("shop", "web") == [own.host]
    assert gateway.backends() == {own.name: 20}
    # nor once its own namespace has a Service of that name
    gateway.status.wait_rv(
        cluster.api.put(objects.service("infra", "web", ports=(("http", 80, "http"),))), "services"
    )
    gateway.status.wait_used("infra", "web", sorted([own.host, foreign.host]))
    assert gateway.backends() == {own.name: 20}
