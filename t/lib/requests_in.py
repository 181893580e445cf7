# Requests as they come in on a connection of the stand-in API server or of a
# backend, parsed by h11.  It writes nothing: answers are bytes of their own, for
# faults must be able to break them.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Reads HTTP/1.1 requests."""

import h11

HEAD_MAX = 64 * 1024
BODY_MAX = 16 << 20


class BadRequest(ValueError):
    """What came is no request."""


class Requests:
    """The requests of one connection, in order; what was read ahead is kept."""

    def __init__(self, reader):
        self.reader = reader
        self.buffer = bytearray()

    async def more(self):
        """Reads what is there; EOFError at the end of the connection."""
        data = await self.reader.read(65536)
        if not data:
            raise EOFError
        self.buffer += data

    async def next(self):
        """
        (method, target, {name in lower case: value}, body, keep) of the next
        one; keep: the client wants the connection to go on.
        """
        # A parser for each: h11 would want to see the answers, too.
        parser = h11.Connection(h11.SERVER, HEAD_MAX)
        request, body = None, bytearray()
        try:
            while True:
                if self.buffer:  # to h11, nothing is the end
                    parser.receive_data(bytes(self.buffer))
                    self.buffer.clear()
                while (event := parser.next_event()) is not h11.NEED_DATA:
                    if isinstance(event, h11.Request):
                        request = event
                    elif isinstance(event, h11.Data):
                        body += event.data
                        if len(body) > BODY_MAX:
                            raise BadRequest("body too large")
                    elif isinstance(event, h11.EndOfMessage):
                        self.buffer[:] = parser.trailing_data[0]
                        headers = {
                            name.decode("latin-1"): value.decode("latin-1")
                            for name, value in request.headers
                        }
                        method, target = request.method.decode(), request.target.decode()
                        keep = parser.their_state is h11.DONE
                        return method, target, headers, bytes(body), keep
                await self.more()
        except h11.RemoteProtocolError as error:
            raise BadRequest(str(error)) from None
