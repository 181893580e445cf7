# Objects of the stand-in API server in Protocol Buffers, written from their
# JSON: what a server's protobuf serializer makes of the fields that are known
# here (generated.proto of k8s.io/api and k8s.io/apimachinery); all others
# become one unknown field.  It writes only; t/unit/message_test.h has the same
# tables in C, which t/cluster/decode holds against Go's types.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""JSON to Protocol Buffers."""

import json

TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\0"

VARINT, BYTES = 0, 2
UNKNOWN = 1000

TEXT, NUMBER, MAP = "text", "number", "map"

REFERENCE = {"kind": (1, TEXT), "namespace": (2, TEXT), "name": (3, TEXT), "uid": (4, TEXT)}

META = {
    "name": (1, TEXT),
    "generateName": (2, TEXT),
    "namespace": (3, TEXT),
    "uid": (5, TEXT),
    "resourceVersion": (6, TEXT),
    "generation": (7, NUMBER),
    "labels": (11, MAP),
    "annotations": (12, MAP),
}

LIST_META = {
    "resourceVersion": (2, TEXT),
    "continue": (3, TEXT),
    "remainingItemCount": (4, NUMBER),
}

STATUS = {
    "metadata": (1, LIST_META),
    "status": (2, TEXT),
    "message": (3, TEXT),
    "reason": (4, TEXT),
    "details": (5, {
        "name": (1, TEXT),
        "group": (2, TEXT),
        "kind": (3, TEXT),
        "causes": (4, {"reason": (1, TEXT), "message": (2, TEXT), "field": (3, TEXT)}),
        "retryAfterSeconds": (5, NUMBER),
    }),
    "code": (6, NUMBER),
}  # fmt: skip

SERVICE = {
    "metadata": (1, META),
    "spec": (2, {
        "ports": (1, {
            "name": (1, TEXT),
            "protocol": (2, TEXT),
            "port": (3, NUMBER),
            "nodePort": (5, NUMBER),
            "appProtocol": (6, TEXT),
        }),
        "selector": (2, MAP),
        "clusterIP": (3, TEXT),
        "type": (4, TEXT),
        "sessionAffinity": (7, TEXT),
        "externalName": (10, TEXT),
        "clusterIPs": (18, TEXT),
        "ipFamilies": (19, TEXT),
    }),
}  # fmt: skip

SLICE = {
    "metadata": (1, META),
    "endpoints": (2, {
        "addresses": (1, TEXT),
        "conditions": (2, {
            "ready": (1, NUMBER),
            "serving": (2, NUMBER),
            "terminating": (3, NUMBER),
        }),
        "hostname": (3, TEXT),
        "targetRef": (4, REFERENCE),
        "nodeName": (6, TEXT),
        "zone": (7, TEXT),
    }),
    "ports": (3, {
        "name": (1, TEXT),
        "protocol": (2, TEXT),
        "port": (3, NUMBER),
        "appProtocol": (4, TEXT),
    }),
    "addressType": (4, TEXT),
}  # fmt: skip

ADDRESS = {
    "ip": (1, TEXT),
    "targetRef": (2, REFERENCE),
    "hostname": (3, TEXT),
    "nodeName": (4, TEXT),
}

ENDPOINTS = {
    "metadata": (1, META),
    "subsets": (2, {
        "addresses": (1, ADDRESS),
        "notReadyAddresses": (2, ADDRESS),
        "ports": (3, {
            "name": (1, TEXT),
            "port": (2, NUMBER),
            "protocol": (3, TEXT),
            "appProtocol": (4, TEXT),
        }),
    }),
}  # fmt: skip

KINDS = {"Service": SERVICE, "EndpointSlice": SLICE, "Endpoints": ENDPOINTS, "Status": STATUS}


def varint(value):
    """A number; what is negative has 64 bits."""
    value &= (1 << 64) - 1
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def field(number, data):
    """A field that has a length."""
    return varint(number << 3 | BYTES) + varint(len(data)) + data


def value_field(number, kind, value):
    """A field of that value; of another type than the field's, it is a 0 of no text."""
    if kind is TEXT and isinstance(value, str):
        return field(number, value.encode("utf-8", "surrogatepass"))
    if kind is MAP and isinstance(value, dict):
        return b"".join(
            field(number, value_field(1, TEXT, k) + value_field(2, TEXT, v))
            for k, v in value.items()
        )
    if isinstance(kind, dict) and isinstance(value, dict):
        return field(number, message(kind, value))
    if kind is NUMBER and not isinstance(value, int):
        return field(number, b"")
    return varint(number << 3 | VARINT) + varint(int(value) if kind is NUMBER else 0)


def message(fields, made):
    """The message of a dictionary."""
    parts = []
    for name, value in made.items():
        if name in fields:
            number, kind = fields[name]
            values = value if isinstance(value, list) else [value]
            parts += [value_field(number, kind, one) for one in values if one is not None]
        elif name not in ("kind", "apiVersion"):
            parts.append(field(UNKNOWN, json.dumps(value).encode()))
    return b"".join(parts)


def unknown(made, raw):
    """The four bytes and runtime.Unknown around an object's own message."""
    of = value_field(1, TEXT, made.get("apiVersion", "")) + value_field(
        2, TEXT, made.get("kind", "")
    )
    return MAGIC + field(1, of) + field(2, raw) + field(3, b"") + field(4, b"")


def body(text):
    """
    An object or list as a server writes it whole; what is no JSON object, or of
    an unknown kind, stays as it is.
    """
    try:
        made = json.loads(text)
        kind = made.get("kind", "")
    except (ValueError, AttributeError):
        return text
    items = KINDS.get(kind.removesuffix("List"))
    if kind.endswith("List") and items is not None:
        raw = field(1, message(LIST_META, made["metadata"]))
        raw += b"".join(field(2, message(items, one)) for one in made["items"] or ())
    elif kind in KINDS:
        raw = message(KINDS[kind], made)
    else:
        return text
    return unknown(made, raw)


class Frame(bytes):
    """Bytes of a watch, with the length before them, that are sent as they are."""


def frame(line):
    """
    An event of a watch with the length before it.  What is no event becomes the
    frame's content as it is.
    """
    try:
        made = json.loads(line)
        raw = body(json.dumps(made["object"]).encode()) if "object" in made else b""
        data = value_field(1, TEXT, made["type"])
    except (ValueError, TypeError, KeyError):
        data = line
    else:
        data += field(2, field(1, raw))
    return Frame(len(data).to_bytes(4, "big") + data)
