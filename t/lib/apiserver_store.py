# The one truth of the stand-in API server: objects by resource, one
# resourceVersion for all of them, the log of changes with its compaction point,
# and the watchers to tell.  It knows nothing of HTTP.  Only the server's event
# loop may call it.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Objects, versions, history and watchers."""

import asyncio
import collections
import hashlib
import json
import re

import objects
from apiserver_status import expired, too_large

Resource = collections.namedtuple("Resource", "name kind group version namespaced")

RESOURCES = {
    r.name: r
    for r in (
        Resource("namespaces", "Namespace", "", "v1", False),
        Resource("services", "Service", "", "v1", True),
        Resource("endpointslices", "EndpointSlice", "discovery.k8s.io", "v1", True),
        Resource("endpoints", "Endpoints", "", "v1", True),
        Resource("pods", "Pod", "", "v1", True),
    )
}
BY_KIND = {r.kind: r for r in RESOURCES.values()}

_RV = re.compile(rb'"resourceVersion":"[^"]*"')
_GENERATION = re.compile(rb'"generation":([0-9]+)')

_EMPTY_BODY = {
    "namespaces": b',"spec":{},"status":{}',
    "services": b',"spec":{},"status":{"loadBalancer":{}}',
    "endpointslices": b',"addressType":"","endpoints":null,"ports":null',
    "endpoints": b"",
    "pods": b',"spec":{"containers":null},"status":{}',
}


def _next_generation(match):
    return b'"generation":%d' % (int(match[1]) + 1)


def api_version(resource):
    """apiVersion of a Resource."""
    return f"{resource.group}/{resource.version}" if resource.group else resource.version


def parse_rv(text):
    """A resourceVersion of a query as a number; "" and "0" give 0."""
    if text in ("", "0"):
        return 0
    if not (text.isascii() and text.isdigit()) or int(text) >= 1 << 64:
        raise ValueError(
            f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: '
            f'parsing "{text}": invalid syntax'
        )
    return int(text)


def head(resource):
    """The opening of an encoded object of this resource, up to its metadata."""
    return b'{"kind":"%s","apiVersion":"%s",' % (
        resource.kind.encode(),
        api_version(resource).encode(),
    )


class Obj:
    """One version of an object: its key, labels, and its encoding as a list item."""

    __slots__ = ("resource", "ns", "name", "labels", "rv", "item", "_full")

    def __init__(self, resource, ns, name, labels, rv, item, full=None):
        self.resource = resource
        self.ns = ns
        self.name = name
        self.labels = labels
        self.rv = rv
        self.item = item
        self._full = full

    @property
    def full(self):
        """The encoding with kind and apiVersion."""
        return self._full or head(RESOURCES[self.resource]) + self.item[1:]

    @property
    def data(self):
        """The object as a dictionary (decoded at each call)."""
        return json.loads(self.full)

    @property
    def key(self):
        """namespace/name, or name."""
        return f"{self.ns}/{self.name}" if self.ns else self.name

    def at(self, rv):
        """The same object carrying another resourceVersion."""
        patch = b'"resourceVersion":"%d"' % rv
        full = _RV.sub(patch, self._full, count=1) if self._full else None
        item = _RV.sub(patch, self.item, count=1)
        return Obj(self.resource, self.ns, self.name, self.labels, rv, item, full)


class Event:
    """One change; lost ones changed the truth but are told to nobody."""

    __slots__ = ("rv", "type", "resource", "obj", "prev", "lost", "_lines")

    def __init__(self, rv, type_, resource, obj, prev, lost=False):
        self.rv = rv
        self.type = type_
        self.resource = resource
        self.obj = obj
        self.prev = prev
        self.lost = lost
        self._lines = {}

    def seen_by(self, selector):
        """The type of this event through a selector; None: not seen."""
        if selector is None:
            return self.type
        now = self.type != "DELETED" and selector(self.obj)
        before = self.prev is not None and selector(self.prev)
        if now:
            return "MODIFIED" if before else "ADDED"
        return "DELETED" if before else None

    def line(self, type_):
        """The event as a line of a watch."""
        line = self._lines.get(type_)
        if line is None:
            obj = self.obj
            if type_ == "DELETED":
                obj = self.prev.at(self.rv)
            line = self._lines[type_] = event_line(type_, obj.full)
        return line


def partial_item(item):
    """What is left of an encoded object where its metadata alone is asked for."""
    return b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":%s}' % (
        objects.go_json(json.loads(item)["metadata"])
    )


def partial_line(line):
    """The same of a line of a watch, but for an ERROR."""
    event = json.loads(line)
    if event["type"] == "ERROR":
        return line
    return event_line(event["type"], partial_item(objects.go_json(event["object"])))


def event_line(type_, full):
    """One line of a watch."""
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), full)


def bookmark_line(resource, rv, initial_end=False):
    """A BOOKMARK line; initial_end marks the end of the initial events."""
    note = b""
    if initial_end:
        note = b',"annotations":{"k8s.io/initial-events-end":"true"}'
    meta = b'"metadata":{"resourceVersion":"%d"%s}' % (rv, note)
    return event_line("BOOKMARK", head(RESOURCES[resource]) + meta + _EMPTY_BODY[resource] + b"}")


class Watcher:
    """A running watch: what it wants and what waits to be sent to it."""

    def __init__(self, resource, ns, selector, bookmarks):
        self.resource = resource
        self.ns = ns
        self.selector = selector
        self.bookmarks = bookmarks
        self.pending = collections.deque()
        self.wake = asyncio.Event()
        self.told_rv = 0
        self.from_rv = 0
        self.gone = False

    def push(self, what, value=None):
        """Queues ("event", Event), ("raw", bytes), ("bookmark", rv) or ("end", how)."""
        self.pending.append((what, value))
        self.wake.set()


class Store:
    """All objects, the log and the watchers."""

    def __init__(self, rv=1000):
        self.rv = rv
        self.tables = {name: {} for name in RESOURCES}
        self.log = []
        self.watchers = set()
        self._sorted = {}
        self._snapshots = collections.OrderedDict()
        for name in ("default", "kube-system"):
            self.put(objects.namespace(name))
        self.compacted = self.rv

    # Changing

    def encode(self, obj, rv):
        """The dictionary of a client as an Obj at version rv, metadata in Go's order."""
        resource = BY_KIND[obj["kind"]]
        meta = dict(obj.get("metadata") or {})
        name = meta["name"]
        ns = meta.get("namespace", "") if resource.namespaced else ""
        old = self.tables[resource.name].get((ns, name))
        if old is not None:
            known = json.loads(old.item)["metadata"]
            meta["uid"] = meta.get("uid") or known.get("uid")
            meta["creationTimestamp"] = known.get("creationTimestamp", objects.CREATED)
            if "generation" in known:
                meta["generation"] = known["generation"]
        meta.setdefault("uid", objects.new_uid())
        meta.setdefault("creationTimestamp", objects.CREATED)
        meta["resourceVersion"] = str(rv)
        ordered = {k: meta.pop(k) for k in objects.METADATA_ORDER if k in meta}
        ordered.update(meta)
        body = {k: v for k, v in obj.items() if k not in ("kind", "apiVersion", "metadata")}
        item = objects.go_json({"metadata": ordered, **body})
        return Obj(resource.name, ns, name, ordered.get("labels") or {}, rv, item), old

    def put(self, obj, lost=False, force=False):
        """Creates or replaces an object; an update that changes nothing is none."""
        made, old = self.encode(obj, self.rv + 1)
        if old is not None and not force and made.at(old.rv).item == old.item:
            return old
        if old is not None and b'"generation":' in made.item:
            count = json.loads(old.item)["metadata"].get("generation")
            if count is not None:
                was, now = b'"generation":%d' % count, b'"generation":%d' % (count + 1)
                made.item = made.item.replace(was, now, 1)
        if made.ns and ("", made.ns) not in self.tables["namespaces"]:
            self.put(objects.namespace(made.ns))
            made = made.at(self.rv + 1)
        return self._commit(made, old, lost)

    def put_raw(self, resource, ns, name, text, labels=None, full=None, lost=False):
        """
        Stores bytes as they are, for objects no encoder would write.

        text is the list item, full (optional) the object of a watch event;
        %RV% in either becomes the new resourceVersion.
        """
        rv = self.rv + 1
        item = text.replace(b"%RV%", b"%d" % rv)
        if full is not None:
            full = full.replace(b"%RV%", b"%d" % rv)
        old = self.tables[resource].get((ns, name))
        return self._commit(Obj(resource, ns, name, labels or {}, rv, item, full), old, lost)

    def edit(self, resource, ns, name, change):
        """
        Updates an object by change(its encoding), which is not decoded: for
        thousands of updates a second.
        """
        old = self.tables[resource][(ns, name)]
        item = _GENERATION.sub(_next_generation, change(old.item), count=1)
        made = Obj(resource, ns, name, old.labels, old.rv, item).at(self.rv + 1)
        return self._commit(made, old, False)

    def delete(self, resource, ns, name, lost=False):
        """Deletes an object (a namespace: with all in it); None if absent."""
        if resource == "namespaces":
            for table in ("endpointslices", "endpoints", "services", "pods"):
                for key in [k for k in self.tables[table] if k[0] == name]:
                    self.delete(table, *key, lost=lost)
        old = self.tables[resource].pop((ns, name), None)
        if old is None:
            return None
        self._sorted.pop(resource, None)
        self.rv += 1
        self._tell(Event(self.rv, "DELETED", resource, old, old, lost))
        return old.at(self.rv)

    def _commit(self, obj, old, lost):
        self.rv = obj.rv
        self.tables[obj.resource][(obj.ns, obj.name)] = obj
        if old is None:
            self._sorted.pop(obj.resource, None)
        type_ = "ADDED" if old is None else "MODIFIED"
        self._tell(Event(obj.rv, type_, obj.resource, obj, old, lost))
        return obj

    def _tell(self, event):
        self.log.append(event)
        if event.lost:
            return
        for watcher in self.watchers:
            if watcher.resource == event.resource:
                watcher.push("event", event)

    def compact(self, rv=None):
        """Forgets the history up to rv (default: all of it)."""
        self.compacted = max(self.compacted, self.rv if rv is None else min(rv, self.rv))

    def forget(self, rv):
        """As compact(), and what was before cannot be looked up any more."""
        self.compact(rv)
        self.log = [e for e in self.log if e.rv > rv]
        self._snapshots.clear()

    def restore(self, rv, new_rv=None):
        """Goes back to the state at rv, as a backup restored; new_rv names it otherwise."""
        tables = {name: self.state_at(name, rv, compacted=False) for name in RESOURCES}
        self.log = [e for e in self.log if e.rv <= rv]
        self.tables = tables
        self.rv = rv if new_rv is None else new_rv
        self.compacted = self.rv
        self._sorted.clear()
        self._snapshots.clear()

    # Reading

    def state_at(self, resource, rv, compacted=True):
        """{(ns, name): Obj} as it was at rv."""
        if rv > self.rv:
            raise too_large(rv, self.rv)
        if compacted and rv < self.compacted:
            raise expired("The resourceVersion for the provided list is too old.")
        table = self.tables[resource]
        if rv == self.rv:
            return table
        cached = self._snapshots.get((resource, rv))
        if cached is not None:
            return cached
        table = dict(table)
        for event in reversed(self.log):
            if event.rv <= rv:
                break
            if event.resource != resource:
                continue
            key = (event.obj.ns, event.obj.name)
            if event.type == "ADDED":
                table.pop(key, None)
            else:
                table[key] = event.prev
        self._snapshots[(resource, rv)] = table
        while len(self._snapshots) > 4:
            self._snapshots.popitem(last=False)
        return table

    def sorted_at(self, resource, rv=None):
        """The objects at rv (None: now) in etcd's order of keys."""
        if rv is None or rv == self.rv:
            keys = self._sorted.get(resource)
            table = self.tables[resource]
            if keys is None:
                keys = sorted(table, key="/".join)
                self._sorted[resource] = keys
            return [table[k] for k in keys]
        table = self.state_at(resource, rv)
        return [table[k] for k in sorted(table, key="/".join)]

    def events_since(self, resource, rv):
        """The events a watch from rv gets first; 410 when they are forgotten."""
        if rv < self.compacted:
            raise expired(f"too old resource version: {rv} ({self.compacted})")
        low, high = 0, len(self.log)
        while low < high:
            middle = (low + high) // 2
            if self.log[middle].rv > rv:
                high = middle
            else:
                low = middle + 1
        return [e for e in self.log[low:] if e.resource == resource and not e.lost]

    def digest(self, resource, rv=None, project=None):
        """
        The multiset digest of a resource at rv: sum of hashes mod 2^128.

        project(obj) gives the bytes that count (default: the list item).
        """
        total = 0
        for obj in self.state_at(resource, self.rv if rv is None else rv, False).values():
            text = project(obj) if project else obj.item
            hashed = hashlib.blake2b(obj.key.encode() + b"\0" + text, digest_size=16)
            total += int.from_bytes(hashed.digest(), "big")
        return f"{total % (1 << 128):032x}"
