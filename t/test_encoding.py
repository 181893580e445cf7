# Protocol Buffers over real sockets: what is asked for, what comes, and what
# goes wrong in them.  Each of the faults of t/test_faults.py is run over them
# by t/proof/test_encoding_faults.py.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Objects in another encoding than JSON."""

import objects
import pytest
from apiserver_protobuf import SLICE, TYPE, Frame, field, frame, message, unknown
from apiserver_store import event_line

CONF = """
    upstream web { kube_service shop/web; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://web; } }
"""

SLICES = "endpointslices"
BOTH = ("services", SLICES)
OFFERED = pytest.mark.cluster(protobuf=True)
PLAIN = "watch_list off; page_size 2;"


def start(cluster, encoding="auto", more="", sync=True):
    """A Service with a pod, five more, and an nginx."""
    cluster.api.settings.watch_cache = False
    cluster.service("shop", "web", pods=cluster.pods(1, "web"))
    for n in range(5):
        cluster.service("infra", f"s{n}", pods=[objects.endpoint(f"10.9.0.{n + 1}")])
    return cluster.nginx(
        CONF, more=f"encoding {encoding}; namespaces all; {more}", workers=1, sync=sync
    )


def asked(cluster):
    """What requests have said that they accept."""
    return {r.headers["accept"] for r in cluster.api.requests}


@OFFERED
@pytest.mark.parametrize("more", ["", PLAIN, "endpoints endpoints;"], ids=["watch", "pages", "old"])
def test_serves(cluster, more):
    gateway = start(cluster, more=more)
    if more.startswith("endpoints"):
        assert gateway.status.resource("endpoints")["objects"] == 0
        assert gateway.status.resource("services")["objects"] == 6
    else:
        cluster.followed(gateway)
    for accept in asked(cluster):
        assert accept in (f"{TYPE}, application/json", f"{TYPE};stream=watch, application/json")
    assert gateway.status.metrics().value("nginx_kube_errors_total") in (0, None)


@pytest.mark.cluster(protobuf=False)
@pytest.mark.parametrize("encoding", ["auto", "json"])
def test_json_from_a_server_without_them(cluster, encoding):
    """It answers in JSON at once, and no request more is made."""
    gateway = start(cluster, encoding)
    cluster.followed(gateway)
    assert len(cluster.api.requests) == 2
    assert all((TYPE in accept) == (encoding == "auto") for accept in asked(cluster))


@pytest.mark.cluster(protobuf=False)
def test_nothing_else_was_wanted(cluster):
    """A 406 is an error like any other, in the log too."""
    gateway = start(cluster, "protobuf", sync=False)
    gateway.wait_log(r'unreachable: .*; set "encoding" to "auto"')
    assert gateway.count_log(" 406")
    assert asked(cluster) <= {TYPE, f"{TYPE};stream=watch"}
    cluster.api.settings.protobuf = True
    cluster.followed(gateway)


@OFFERED
@pytest.mark.parametrize("code", [406, 415])
@pytest.mark.parametrize("watch_list", ["on", "off"])
def test_refused(cluster, code, watch_list):
    """What stands before the server knows no such type: JSON then, for good."""
    cluster.api.fault(
        status=code, body="not here", content_type="text/plain", times=None,
        when=lambda request: TYPE in request.headers["accept"],
    )  # fmt: skip
    gateway = start(cluster, more=f"watch_list {watch_list};")
    cluster.followed(gateway)
    assert gateway.status.metrics().value("nginx_kube_errors_total") in (0, None)
    before = len(cluster.api.requests)
    cluster.api.close_watches(how="fin")
    cluster.api.wait(lambda: len(cluster.api.requests) >= before + 2)
    cluster.followed(gateway)
    refused = [r for r in cluster.api.requests if r.status == code]
    assert {r.resource for r in refused} == set(BOTH) and len(refused) == 2


@OFFERED
@pytest.mark.parametrize(
    "code, text, kind",
    [
        (403, '{"kind":"Status","status":"Failure","reason":"Forbidden","code":403}', None),
        (429, "Not now", "text/plain"),
        (502, "<html>", "text/html"),
        (503, b"k8s\0rubbish", TYPE),
        (200, "<html>", "text/html"),
        (200, '{"kind":"EndpointSliceList"}', TYPE),
        (200, b"k8s\0\x12\x02\x12\x7f", TYPE),
    ],
    ids=["json", "text", "html", "odd", "page", "json said to be none", "cut"],
)
def test_answers_of_others(cluster, code, text, kind):
    fault = cluster.api.fault(
        verb="list", resource=SLICES, status=code, body=text, content_type=kind
    )
    gateway = start(cluster, more=PLAIN)
    assert fault.fired == 1
    cluster.followed(gateway)
    assert cluster.api.count(verb="watch", resource="services") == 1


def event(rv, more, type_="ADDED"):
    """A frame with a slice whose message goes on with more."""
    made = {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {
            "name": "bad",
            "namespace": "shop",
            "uid": "00000000-0000-4000-8000-000000000001",
            "resourceVersion": str(rv),
            "labels": {objects.SERVICE_NAME_LABEL: "bad"},
        },
        "addressType": "IPv4",
    }
    data = unknown(made, message(SLICE, made) + more)
    data = field(1, type_.encode()) + field(2, field(1, data))
    return Frame(len(data).to_bytes(4, "big") + data)


@OFFERED
@pytest.mark.parametrize(
    "more, refused",
    [
        (b"\x12\x05\x0a\x7f", True),
        (b"\x12\x08\x0a\x06rubbis", False),
        (b"\x12\x02\x0a\x01\xff", True),
        (b"\x1a\x04\x18\xff\xff\x7f", False),
        (b"\xfb\x3f\x08\x01\xfc\x3f", False),
        (b"\xfc\x3f", True),
        (b"\x20\x01", True),
        (field(1000, b"x" * (5 << 20)), True),
    ],
    ids=["cut", "address", "short", "port", "group", "group's end", "wire type", "too large"],
)
def test_odd_object(cluster, more, refused):
    """It costs itself alone: the same watch goes on."""
    gateway = start(cluster)
    cluster.followed(gateway)
    before = len(cluster.api.requests)
    rv = cluster.api.rv + 1
    cluster.api.core.store.rv = rv
    assert cluster.api.inject(event(rv, more), SLICES) == 1
    gateway.status.wait_rv(rv)
    named = [o["key"] for o in gateway.status.resource(SLICES)["refused"]]
    assert named == (["shop/bad"] if refused else [])
    assert len(cluster.api.requests) == before
    cluster.api.inject(event(rv + 1, b"", "DELETED"), SLICES)
    cluster.api.core.store.rv = rv + 1
    cluster.followed(gateway)
    assert len(cluster.api.requests) == before


@OFFERED
@pytest.mark.parametrize(
    "data",
    [b"\xff\xff\xff\xff", b"\0\0\0\0", b"\0\0\0\x03abc", frame(b"rubbish"),
     frame(b'{"type":"ADDED"}'), b'{"type":"ADDED","object":{}}\n'],
    ids=["length", "nothing", "cut", "rubbish", "no object", "JSON"],
)  # fmt: skip
def test_odd_frame(cluster, data):
    """What has no key costs the watch, which resumes."""
    gateway = start(cluster)
    cluster.followed(gateway)
    lists = cluster.api.count(verb="list")
    assert cluster.api.inject(Frame(data), SLICES) == 1
    cluster.api.wait_requests(2, resource=SLICES)
    cluster.followed(gateway)
    assert cluster.api.count(verb="list") == lists
    assert cluster.api.count(verb="watch", resource="services") == 1


@OFFERED
@pytest.mark.parametrize("at", [1, 3, 4, 5, 60, 300])
def test_cut_frame(cluster, at):
    """Half a frame is none."""
    fault = cluster.api.fault(at_body=at, verb="watch", streamed=False, resource=SLICES)
    gateway = start(cluster, more=PLAIN)
    rv = cluster.slice("shop", "web", cluster.pods(1, "x"))
    gateway.status.wait_rv(rv)
    assert fault.fired == 1
    cluster.followed(gateway)
    assert cluster.api.count(verb="list", resource=SLICES, page=1) == 1


@OFFERED
@pytest.mark.parametrize("reason, code, lists", [("Expired", 410, 2), ("InternalError", 500, 1)])
def test_error(cluster, reason, code, lists):
    """A Status in an event: only the expired version is listed again."""
    gateway = start(cluster)
    cluster.followed(gateway)
    made = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
            "message": "said the server", "code": code}  # fmt: skip
    assert cluster.api.inject(event_line("ERROR", objects.go_json(made)), SLICES) == 1
    cluster.api.wait_requests(2, resource=SLICES)
    cluster.followed(gateway)
    assert len(cluster.api.find("list", SLICES)) == lists


@OFFERED
@pytest.mark.parametrize("chunk", [1, 7])
def test_chunks(cluster, chunk):
    cluster.api.fault(chunk=chunk, times=None)
    cluster.followed(start(cluster, more=PLAIN))
