# The control endpoint of the stand-in API server: /_control/..., JSON over
# HTTP, for callers in another process.  It answers loopback and unix peers
# only, and only when it was switched on.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""
The control endpoint.

GET  /_control/state            versions, counts, running watches
GET  /_control/requests         the request log (?from=N skips the first N)
POST /_control/put              an object, or a list of them
POST /_control/delete           {"resource", "namespace", "name"}
POST /_control/fault            a fault, see apiserver_faults
POST /_control/clear-faults
POST /_control/compact          {"rv"} (optional)
POST /_control/bookmark         {"resource"} (optional)
POST /_control/close-watches    {"resource", "how": clean, fin, rst}
POST /_control/inject           {"resource", "line"}: a raw line into watches
POST /_control/settings         {"watch_list": false, ...}
POST /_control/restore          {"rv", "new_rv"}
"""

import ipaddress
import json
import socket

import apiserver_status as st
import objects
from apiserver_faults import Fault


def _local(wire):
    sock = wire.writer.get_extra_info("socket")
    if sock is not None and sock.family == socket.AF_UNIX:
        return True
    peer = wire.writer.get_extra_info("peername")
    return bool(peer) and ipaddress.ip_address(peer[0]).is_loopback


async def control(server, wire, request):
    """Answers a control request."""
    try:
        if not server.settings.control or not _local(wire):
            raise st.unknown_path()
        action = request.path[len("/_control/") :]
        given = json.loads(request.body) if request.body else {}
        known = GETS if request.method == "GET" else POSTS
        if action not in known:
            raise st.unknown_path()
        try:
            made = known[action](server, given, request)
        except (KeyError, TypeError, ValueError) as error:
            raise st.bad_request(f"{type(error).__name__}: {error}") from None
        await server.api.reply(wire, 200, objects.go_json(made) + b"\n")
    except st.ApiError as error:
        await server.api.fail(wire, error)
    except ValueError as error:
        await server.api.fail(wire, st.bad_request(str(error)))


def _state(server, _given, _request):
    store = server.store
    return {
        "rv": store.rv,
        "compacted": store.compacted,
        "objects": {name: len(table) for name, table in store.tables.items()},
        "watches": {f"{r} {ns}".strip(): n for (r, ns), n in server.watching.items() if n},
        "connections": len(server.connections),
        "requests": len(server.requests),
    }


def _requests(server, _given, request):
    start = int(request.query.get("from", "0"))
    return [r.as_dict() for r in server.requests[start:]]


def _put(server, given, _request):
    for obj in given if isinstance(given, list) else [given]:
        server.store.put(obj)
    return {"rv": server.store.rv}


def _delete(server, given, _request):
    gone = server.store.delete(given["resource"], given.get("namespace", ""), given["name"])
    return {"rv": server.store.rv, "deleted": gone is not None}


def _fault(server, given, _request):
    server.faults.add(Fault.from_json(given))
    return {}


def _clear(server, _given, _request):
    server.faults.clear()
    return {}


def _compact(server, given, _request):
    server.store.compact(given.get("rv"))
    return {"compacted": server.store.compacted}


def _restore(server, given, _request):
    server.store.restore(given["rv"], given.get("new_rv"))
    return {"rv": server.store.rv}


def push(server, resource, what, value=None, ns=None):
    """Queues something to the running watches; returns to how many."""
    found = [
        w
        for w in server.store.watchers
        if (resource is None or w.resource == resource) and (ns is None or w.ns == ns)
    ]
    for watcher in found:
        watcher.push(what, value)
    return len(found)


def _bookmark(server, given, _request):
    return {"watches": push(server, given.get("resource"), "bookmark")}


def _close(server, given, _request):
    how = given.get("how", "clean")
    if how not in ("clean", "fin", "rst", "abort"):
        raise ValueError(how)
    return {"watches": push(server, given.get("resource"), "end", how)}


def _inject(server, given, _request):
    return {"watches": push(server, given.get("resource"), "raw", given["line"].encode())}


def _settings(server, given, _request):
    for name, value in given.items():
        if not hasattr(server.settings, name):
            raise ValueError(name)
        setattr(server.settings, name, set(value) if name == "disabled" else value)
    return {}


GETS = {"state": _state, "requests": _requests}
POSTS = {
    "put": _put,
    "delete": _delete,
    "fault": _fault,
    "clear-faults": _clear,
    "compact": _compact,
    "restore": _restore,
    "bookmark": _bookmark,
    "close-watches": _close,
    "inject": _inject,
    "settings": _settings,
}
