# A client of server-sent events that reads as WHATWG's HTML says, and can be
# made to read slowly.  It judges nothing.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Server-sent events."""

import collections
import json
import select
import socket

from nginx import wait_until

Event = collections.namedtuple("Event", "kind id data")


class Events:
    """
    A connection to a path of server-sent events.  room: of the socket's
    receive buffer, in bytes, for one that reads slowly.
    """

    def __init__(self, port, path="/kube/api/v1/events", last=None, headers=None, room=None):
        self.sock = socket.socket()
        if room:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.sock.connect(("127.0.0.1", port))
        lines = [f"GET {path} HTTP/1.1", "Host: test.example", "Accept: text/event-stream"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        if last is not None:
            lines.append(f"Last-Event-ID: {last}")
        self.sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.sock.setblocking(False)
        self.wire, self.body, self.text = b"", b"", ""
        self.head = None
        self.closed = False
        self.ended = False      # by its last chunk
        self.id = last
        self.events = []
        self.comments = 0
        self.retries = 0

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.sock.close()

    def receive(self, most=1 << 30):
        """Takes what is there, at most so many bytes, and looks at nothing; returns self."""
        parts = []
        while not self.closed and most > 0:
            if not select.select([self.sock], [], [], 0)[0]:
                break
            try:
                more = self.sock.recv(min(most, 65536))
            except ConnectionResetError:
                more = b""
            self.closed = not more
            parts.append(more)
            most -= len(more)
        self.wire += b"".join(parts)
        return self

    def read(self, most=1 << 30):
        """Reads what is there, at most so many bytes; returns self."""
        self.receive(most)
        if self.head is None and b"\r\n\r\n" in self.wire:
            head, _, self.wire = self.wire.partition(b"\r\n\r\n")
            self.head = head.decode()
        if self.head is not None:
            self._chunks()
            self._blocks()
        return self

    def _chunks(self):
        parts, at = [self.body], 0
        while not self.ended:
            end = self.wire.find(b"\r\n", at)
            if end < 0:
                break
            n = int(self.wire[at:end], 16)
            after = end + 2 + n
            if len(self.wire) < after + 2:
                break
            assert self.wire[after : after + 2] == b"\r\n"
            parts.append(self.wire[end + 2 : after])
            at = after + 2
            self.ended = n == 0
        self.wire, self.body = self.wire[at:], b"".join(parts)

    def _blocks(self):
        *blocks, self.body = self.body.split(b"\n\n")
        for block in blocks:
            kind, data = "message", None
            for line in block.decode().split("\n"):
                name, _, value = line.partition(": ")
                if name == "id":
                    self.id = value
                elif name == "event":
                    kind = value
                elif name == "data":
                    data = value
                elif line.startswith(":"):
                    self.comments += 1
                else:
                    assert name == "retry", line
                    self.retries += 1
            if data is not None:
                self.events.append(Event(kind, self.id, json.loads(data)))

    @property
    def status(self):
        """The status, once the head is there."""
        wait_until(lambda: self.read().head, what="a head")
        return int(self.head.split()[1])

    def kinds(self):
        """The kinds of the events, one after the other."""
        return [event.kind for event in self.events]

    def said(self):
        """The events in short: "add services shop/web"."""
        return [
            f"{e.kind} {e.data['resource']} {e.data['namespace']}/{e.data['name']}"
            if "name" in e.data
            else f"{e.kind} {e.data['reason']}"
            for e in self.events
        ]

    def wait(self, condition, what="events", timeout=None):
        """Reads until condition(self) holds; returns self."""
        wait_until(
            lambda: condition(self.read()), timeout, lambda: f"{what}, not {self.said()[-20:]}"
        )
        return self

    def started(self):
        """Reads until the first event: the client is known to the worker."""
        return self.wait(lambda s: s.events, "the first event")
