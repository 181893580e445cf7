# Faults a test scripts into the stand-in API server: which request is met
# (verb, resource, namespace, the how-manieth, page) and what happens to its
# answer.  What happens is carried out by apiserver_wire and apiserver_serve.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Scripted faults."""

import base64
import dataclasses
import typing


@dataclasses.dataclass(eq=False)
class Fault:
    """
    One fault.  Matching: every field given must fit.

    verb        list, watch, get, create, ... (None: any request); a WatchList
                is both a list and a watch
    streamed    True: WatchLists only; False: anything but these
    resource    services, endpointslices, namespaces
    ns          "" for cluster-wide requests
    page        1 for the first page of a list, 2 for the first continuation
    nth         fires at the nth match only (1-based; an int or a collection)
    times       fires so often (None: for ever; default once)
    when        a function of the request, for what the fields cannot say

    What happens, in this order:
    delay       seconds before the first byte
    gate        a threading.Event: nothing is sent before it is set
    raw         these bytes instead of the answer; then the connection closes
    status      this status; with reason, message, details (a Status object),
                body (bytes, str or a dictionary) and content_type
    headers     more (or other) header fields; None as a value removes one
    retry_after, location   short for these headers
    http        the protocol in the status line, default HTTP/1.1
    The normal answer, changed:
    as_of       a list or WatchList as it was at this resourceVersion (a lagging
                replica)
    list_rv     another resourceVersion in a list's metadata
    remaining   another remainingItemCount
    mutate      a function of the payload's bytes (each event, each list)
    error       a Status (dictionary) sent as ERROR event; see at_events
    chunk       payload bytes of each chunk; "all": pending events in one
    drip        (bytes, seconds): writes in steps
    split_at    writes byte split_at of the response apart from those before
    timeout     a watch ends by itself after so many seconds
    Where the answer is cut (bytes of the response with its head, bytes of the
    payload, events, or before the last chunk), and how:
    at_bytes, at_body, at_events, at_end
    insert      bytes written at the cut, not framed
    cut         fin (default), rst, abort (no TLS close_notify), stall (no more
                is written), hang (nothing is written or read), go (goes on)
    """

    verb: typing.Optional[str] = None
    resource: typing.Optional[str] = None
    ns: typing.Optional[str] = None
    page: typing.Optional[int] = None
    streamed: typing.Optional[bool] = None
    nth: typing.Any = None
    times: typing.Optional[int] = 1
    when: typing.Any = None

    delay: float = 0
    gate: typing.Any = None
    raw: typing.Optional[bytes] = None
    status: typing.Optional[int] = None
    reason: typing.Optional[str] = None
    message: typing.Optional[str] = None
    details: typing.Optional[dict] = None
    body: typing.Any = None
    content_type: typing.Optional[str] = None
    headers: dict = dataclasses.field(default_factory=dict)
    retry_after: typing.Any = None
    location: typing.Optional[str] = None
    http: str = "HTTP/1.1"

    as_of: typing.Optional[int] = None
    list_rv: typing.Any = None
    remaining: typing.Optional[int] = None
    mutate: typing.Any = None
    error: typing.Optional[dict] = None
    chunk: typing.Any = None
    drip: typing.Any = None
    split_at: typing.Optional[int] = None
    timeout: typing.Optional[float] = None

    at_bytes: typing.Optional[int] = None
    at_body: typing.Optional[int] = None
    at_events: typing.Optional[int] = None
    at_end: bool = False
    insert: bytes = b""
    cut: str = "fin"

    seen: int = 0
    fired: int = 0

    def __post_init__(self):
        if self.cut not in ("fin", "rst", "abort", "stall", "hang", "go"):
            raise ValueError(f"unknown cut: {self.cut}")
        if self.nth is not None:
            self.nth = {self.nth} if isinstance(self.nth, int) else set(self.nth)
            if self.times == 1:
                self.times = len(self.nth)

    @classmethod
    def from_json(cls, made):
        """From the control endpoint; raw_b64 and insert_b64 stand for bytes."""
        made = dict(made)
        for key in ("raw", "insert", "body"):
            coded = made.pop(key + "_b64", None)
            if coded is not None:
                made[key] = base64.b64decode(coded)
            elif isinstance(made.get(key), str):
                made[key] = made[key].encode()
        allowed = {f.name for f in dataclasses.fields(cls)}
        unknown = set(made) - allowed | set(made) & {"when", "gate", "mutate", "seen", "fired"}
        if unknown:
            raise ValueError(f"unknown fields: {sorted(unknown)}")
        return cls(**made)

    def matches(self, request):
        """Whether it meets this request; counts it if so."""
        if self.verb is not None and self.verb not in request.verbs:
            return False
        for mine, theirs in (
            (self.resource, request.resource),
            (self.ns, request.ns),
            (self.page, request.page),
            (self.streamed, request.streamed),
        ):
            if mine is not None and mine != theirs:
                return False
        if self.when is not None and not self.when(request):
            return False
        self.seen += 1
        if self.nth is not None and self.seen not in self.nth:
            return False
        if self.times is not None and self.fired >= self.times:
            return False
        self.fired += 1
        return True

    @property
    def replaces(self):
        """Whether it answers instead of the server."""
        return self.status is not None or self.body is not None or self.location is not None

    def all_headers(self):
        """The header fields it asks for."""
        made = dict(self.headers)
        if self.retry_after is not None:
            made["Retry-After"] = str(self.retry_after)
        if self.location is not None:
            made["Location"] = self.location
        return made


class Faults:
    """The list of faults; the first that matches a request fires."""

    def __init__(self):
        self.items = []

    def add(self, fault):
        """Adds one and returns it: its counts tell later whether it fired."""
        self.items.append(fault)
        return fault

    def clear(self):
        """Removes all."""
        self.items.clear()

    def remove(self, fault):
        """Removes one, if it is still there."""
        if fault in self.items:
            self.items.remove(fault)

    def match(self, request):
        """The fault for this request, or None."""
        for fault in self.items:
            if fault.matches(request):
                return fault
        return None
