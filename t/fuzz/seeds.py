#!/usr/bin/env python3
"""Writes the seeds of those targets of t/fuzz whose inputs nobody has at hand:
decisions by chance for some, heads of responses for fuzz_header, whole answers
for fuzz_source.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause

    seeds.py        into t/fuzz/corpus; the same files each time
"""

import random
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
sys.path.insert(0, str(HERE.parent / "lib"))

import apiserver_protobuf as protobuf  # noqa: E402
import objects  # noqa: E402
from apiserver_store import Store, event_line  # noqa: E402

# How many of each target, and the bytes of the shortest and the longest.
CHANCE = {"select": (32, 24, 240), "indexer": (24, 20, 240)}

JSON = b"Content-Type: application/json\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
MORE, HOLD, END, CANCEL, TICK = 0x00, 0x01, 0x02, 0x10, 0x20
BODY = b"\x1e"
LONG = b"\x1f"

# The first byte is what the owner does, see fuzz_header.c.
HEADERS = {
    "ok": (MORE, OK + JSON + b"Content-Length: 2\r\n\r\n" + BODY + b"{}"),
    "charset": (MORE, OK + b"content-type:\tapplication/json ; charset=utf-8\r\n\r\n"),
    "bare": (MORE, b"HTTP/1.1 204\n\n"),
    "continued": (MORE, b"HTTP/1.1 100 Continue\r\n\r\n" + OK + JSON + b"\r\n"),
    "hints": (
        MORE,
        b"HTTP/1.1 103 Early Hints\r\nRetry-After: 7\r\n" + JSON + b"\r\n" + OK + b"\r\n",
    ),
    "announced": (MORE, b"HTTP/1.1 100 Continue\r\n\r\n" * 4),
    "retry": (MORE, b"HTTP/1.1 429 Slow\r\nRetry-After: 3\r\n" + JSON + b"\r\n" + BODY + b"{}"),
    "retry_long": (MORE, b"HTTP/1.1 503 No\r\nRetry-After: 99999999999999999999\r\n\r\n"),
    "retry_past": (MORE, b"HTTP/1.1 503 No\r\nRetry-After: -5\r\n\r\n"),
    "chunked": (
        MORE,
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + BODY + b"{}" + BODY + b"Trailer: x\r\n\r\n",
    ),
    "encoded": (MORE, OK + b"Content-Encoding: gzip\r\n\r\n"),
    "identity": (MORE, OK + b"Content-Encoding: Identity\r\nContent-Encoding:\r\n\r\n"),
    "coding": (MORE, OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n"),
    "lengths": (MORE, OK + b"Content-Length: 2\r\nContent-Length: 1\r\n\r\n{}"),
    "lengths_same": (MORE, OK + b"Content-Length: 2\r\nContent-Length: 002\r\n\r\n"),
    "length_none": (MORE, OK + b"Content-Length: \r\n\r\n"),
    "length_huge": (MORE, OK + b"Content-Length: 9223372036854775808\r\n\r\n"),
    "long_line": (MORE, OK + b"X: " + LONG + b"\xff\r\n\r\n"),
    "long_head": (MORE, OK + (b"X: " + LONG + b"\x20\r\n") * 5 + b"\r\n"),
    "almost": (MORE, OK + b"X: " + LONG + b"\x7f\r\n\r\n"),
    "trailers": (MORE, OK + b"\r\n" + BODY + b"{}" + BODY + b"X: " + LONG + b"\xff\r\n"),
    "cut": (MORE, OK + JSON + b"Content-Le"),
    "held": (HOLD, OK + b"\r\n" + BODY + b"{}" + BODY + BODY + b"[]"),
    "held_later": (HOLD << 2, OK + b"\r\n" + BODY + b"{}" + BODY + BODY + b"[]"),
    "ended": (END, OK + b"\r\n" + BODY + b"{}"),
    "ended_later": (END << 2, OK + b"\r\n" + BODY + b"{}"),
    "cancelled": (CANCEL, b"\x01" + OK + b"\r\n" + BODY + b"{}"),
    "cancelled_later": (CANCEL, b"\x02" + OK + b"\r\n" + BODY + b"{}"),
    "turns": (TICK, b"\x01" + OK + b"\r\n" + BODY + b"{}" + BODY + BODY + b"[]"),
}


# As the enumerators of kube_resource_t.
RESOURCES = [
    objects.service("shop", "web", cluster_ip="10.0.0.1", uid="0f6a"),
    objects.slice(
        "shop",
        "web-1",
        "web",
        [
            objects.endpoint("10.1.0.1", pod="web-1", node="node-1", zone="a", hints=["a"]),
            objects.endpoint("10.1.0.2", ready=False, serving=True, terminating=True),
        ],
        uid="0f6b",
    ),
    objects.endpoints(
        "shop",
        "web",
        [
            (["10.1.0.1", {"ip": "10.1.0.2", "nodeName": "node-1"}], [("http", 8080)], ["fd00::1"]),
            (["10.1.0.3"], [9090, {"port": 53, "protocol": "UDP"}]),
        ],
        uid="0f6c",
    ),
    objects.pod("shop", "web-1", labels={"app": "web"}, uid="0f6d"),
]
BOOKMARK = {"annotations": {"k8s.io/initial-events-end": "true"}, "resourceVersion": "9"}
EXPIRED = {"kind": "Status", "apiVersion": "v1", "code": 410, "reason": "Expired"}


def answers(obj):
    """(name, is a watch, JSON) of a resource, in the order in which a server writes it."""
    stored = Store().put(obj)
    kind = obj["kind"].encode(), obj["apiVersion"].encode()
    other = stored.item.replace(b'"name":"web', b'"name":"other', 1)
    yield (
        "list",
        0,
        b'{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"8","continue":"more"},'
        b'"items":[%s,%s]}\n' % (*kind, stored.item, other),
    )
    events = [(t, stored.full) for t in ("ADDED", "MODIFIED", "DELETED")]
    mark = {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "metadata": BOOKMARK}
    events += [("BOOKMARK", objects.go_json(mark)), ("ERROR", objects.go_json(EXPIRED))]
    yield "watch", 1, b"".join(event_line(*event) for event in events)


def sources():
    """{name: input} of fuzz_source: resource, request, encoding; code; cuts; allocation."""
    made = {}
    for number, obj in enumerate(RESOURCES):
        for what, watch, text in answers(obj):
            name = f"{obj['kind'].lower()}-{what}"
            how = number << 2 | watch
            head = bytes([how, 0, 40, 90])
            for fail in (255, 4, 6, 7, 8, 9, 10, 12):
                made[f"{name}-json-{fail}"] = head + bytes([fail]) + text
            frames = b"".join(protobuf.frame(x) for x in text.splitlines(keepends=True))
            body = frames if watch else protobuf.body(text)
            made[f"{name}-protobuf"] = bytes([how | 2, 0, 40, 90, 7]) + body
    refused = objects.go_json({"kind": "Status", "code": 403, "reason": "Forbidden"})
    made["refused"] = bytes([0, 3, 9, 9, 8]) + refused
    return made


def main():
    for name, (n, low, high) in CHANCE.items():
        folder = CORPUS / name
        folder.mkdir(parents=True, exist_ok=True)
        chance = random.Random(name)
        for i in range(n):
            size = low + (high - low) * i // n
            (folder / f"chance{i:02}").write_bytes(chance.randbytes(size))

    folder = CORPUS / "header"
    folder.mkdir(parents=True, exist_ok=True)
    for name, (what, text) in HEADERS.items():
        (folder / name).write_bytes(bytes([what]) + text)

    folder = CORPUS / "source"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in sources().items():
        (folder / name).write_bytes(text)


if __name__ == "__main__":
    main()
