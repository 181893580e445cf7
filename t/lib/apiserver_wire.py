# One connection of the stand-in API server: requests as h11 reads them, and
# answers written as bytes, so that one can be cut, torn, slowed or spoiled at
# any of them.  It knows HTTP/1.1 framing, not what is served.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Bytes on a connection, and the faults that happen to them."""

import asyncio
import contextlib
import email.utils
import gzip
import http.client
import select
import socket
import struct
import time
import urllib.parse
import uuid

from requests_in import BODY_MAX, BadRequest, Requests


class Closed(Exception):
    """The connection is over; why says how."""

    def __init__(self, why):
        super().__init__(why)
        self.why = why


class Request:
    """A request as it came, and what became of it: an entry of the request log."""

    def __init__(self, method, target, headers, body, keep, connection):
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
        self.keep = keep
        self.connection = connection
        path, _, query = target.partition("?")
        self.path = urllib.parse.unquote(path)
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        self.verb = method.lower()
        self.resource = ""
        self.ns = ""
        self.name = ""
        self.page = 1
        self.user = ""
        self.auth = ""
        self.token = ""
        self.partial = False  # the metadata alone is asked for
        self.user_agent = headers.get("user-agent", "")
        self.time = time.time()
        self.started = time.monotonic()
        self.said = self.started  # before the last bytes of the answer were written
        self.over = False  # the client may take the answer as complete
        self.ended = None
        self.status = None
        self.result = "running"
        self.bytes = 0
        self.events = 0
        self.fault = None

    @property
    def streamed(self):
        """Whether it is a WatchList: a list that is sent as a watch's first events."""
        initial = self.query.get("sendInitialEvents", "").lower()
        return self.verb == "watch" and initial in ("true", "1")

    @property
    def verbs(self):
        """What it does: a WatchList lists and watches, anything else is its verb alone."""
        return ("list", "watch") if self.streamed else (self.verb,)

    @property
    def continued(self):
        """Whether it asks for a further page of a list."""
        return bool(self.query.get("continue"))

    def as_dict(self):
        """For the control endpoint; the token itself is left out."""
        return {
            "time": self.time,
            "seconds": None if self.ended is None else self.ended - self.started,
            "verb": self.verb,
            "streamed": self.streamed,
            "method": self.method,
            "path": self.path,
            "query": self.query,
            "resource": self.resource,
            "ns": self.ns,
            "name": self.name,
            "page": self.page,
            "user": self.user,
            "auth": self.auth,
            "user_agent": self.user_agent,
            "status": self.status,
            "result": self.result,
            "bytes": self.bytes,
            "events": self.events,
            "connection": self.connection,
        }


def encode_head(status, headers, version="HTTP/1.1", reason=None):
    """A status line and header fields."""
    text = http.client.responses.get(status, "Unknown") if reason is None else reason
    lines = [f"{version} {status} {text}"]
    lines += [f"{k}: {v}" for k, v in headers.items() if v is not None]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


def common_headers(content_type="application/json"):
    """What a real API server sends with every answer."""
    return {
        "Audit-Id": str(uuid.uuid4()),
        "Cache-Control": "no-cache, private",
        "Content-Type": content_type,
        "Date": email.utils.formatdate(usegmt=True),
    }


class Wire:
    """A connection: read_request(), then begin(), payload() and end()."""

    numbers = 0

    def __init__(self, reader, writer, chunk_size=32768):
        Wire.numbers += 1
        self.number = Wire.numbers
        self.writer = writer
        self.chunk_size = chunk_size
        self.requests = Requests(reader)
        self.request = None
        self.fault = None
        self.chunked = False
        self.length = None
        self.sent = 0
        self.body_sent = 0
        self.frozen = None
        self.cut_done = False
        self.gone = None
        self.peercert = writer.get_extra_info("peercert")

    # Reading

    async def read_request(self):
        """The next request; Closed at the end of the connection."""
        try:
            request = await self.requests.next()
        except EOFError:
            raise Closed("closed by client") from None
        except BadRequest:
            self.writer.write(encode_head(400, {"Connection": "close", "Content-Length": "0"}))
            raise Closed("bad request") from None
        self.request = Request(*request, self.number)
        self.fault = None
        self.cut_done = False
        self.sent = self.body_sent = 0
        return self.request

    async def _until_gone(self):
        with contextlib.suppress(EOFError, OSError):
            while len(self.requests.buffer) < BODY_MAX:
                await self.requests.more()

    def watch_gone(self):
        """A task that ends when the client has closed; what it sends is kept."""
        if self.gone is None:
            self.gone = asyncio.ensure_future(self._until_gone())
        return self.gone

    async def unwatch_gone(self):
        """Ends watch_gone(), so that the next request can be read."""
        task, self.gone = self.gone, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    # Writing

    async def begin(self, status, headers, length=None, reason=None):
        """Sends the head; without a length the body goes in chunks."""
        fault = self.fault
        version = "HTTP/1.1"
        headers = dict(headers)
        if length is None:
            headers["Transfer-Encoding"] = "chunked"
        else:
            headers["Content-Length"] = str(length)
        if fault is not None:
            version = fault.http
            if fault.content_type is not None:
                headers["Content-Type"] = fault.content_type
            for name, value in fault.all_headers().items():
                for key in [k for k in headers if k.lower() == name.lower()]:
                    del headers[key]
                headers[name] = value
        lower = {k.lower(): v for k, v in headers.items() if v is not None}
        self.chunked = lower.get("transfer-encoding") == "chunked"
        self.length = length
        self.request.over = length == 0
        self.request.status = status
        await self.write(encode_head(status, headers, version, reason))
        if fault is not None and fault.at_events == 0 and not fault.error:
            await self.cut()

    async def payload(self, data):
        """Sends a part of the body, as one chunk (or as the fault wants it)."""
        fault = self.fault
        if fault is not None and isinstance(fault.chunk, int):
            for i in range(0, len(data), fault.chunk):
                await self._part(data[i : i + fault.chunk])
        elif data:
            await self._part(data)

    async def _part(self, data):
        fault = self.fault
        if self.length is not None and self.body_sent + len(data) >= self.length:
            self.request.over = True
        if fault is None or fault.at_body is None:
            framed = data
            if self.chunked:
                framed = b"%x\r\n%b\r\n" % (len(data), data)
            self.body_sent += len(data)
            await self.write(framed)
            return
        # The cut may fall inside this chunk: its size line promises all of it.
        if self.chunked:
            await self.write(b"%x\r\n" % len(data))
        room = fault.at_body - self.body_sent
        if not self.cut_done and 0 <= room < len(data):
            self.body_sent += room
            await self.write(data[:room])
            await self.cut()
            data = data[room:]
        self.body_sent += len(data)
        await self.write(data)
        if self.chunked:
            await self.write(b"\r\n")

    async def whole(self, data):
        """Sends a body in chunks of the usual size."""
        view = memoryview(data)
        for i in range(0, len(data), self.chunk_size):
            await self.payload(bytes(view[i : i + self.chunk_size]))

    async def after_event(self, count):
        """To be told after each event of a watch, for faults placed there."""
        self.request.events = count
        if self.fault is not None and self.fault.at_events == count and not self.fault.error:
            await self.cut()

    async def end(self):
        """Ends the body."""
        if self.fault is not None and self.fault.at_end:
            await self.cut()
        if self.chunked:
            self.request.over = True
            await self.write(b"0\r\n\r\n")

    async def write(self, data):
        """Writes bytes, cutting and slowing them as the fault says."""
        fault = self.fault
        if self.frozen is not None:
            await self.frozen.wait()
        if fault is None or (
            fault.at_bytes is None and fault.split_at is None and fault.drip is None
        ):
            await self._raw(data)
            return
        room = -1 if fault.at_bytes is None else fault.at_bytes - self.sent
        if not self.cut_done and 0 <= room <= len(data):
            await self._slow(data[:room])
            await self.cut()
            data = data[room:]
        await self._slow(data)

    async def _slow(self, data):
        fault = self.fault
        if fault.split_at is not None and 0 < fault.split_at - self.sent < len(data):
            room = fault.split_at - self.sent
            await self._raw(data[:room])
            await self.flush()
            # Long enough for the reader to have taken the first part alone.
            await asyncio.sleep(0.005)
            await self._raw(data[room:])
        elif fault.drip is not None:
            step, pause = fault.drip
            for i in range(0, len(data), step):
                await self._raw(data[i : i + step])
                await asyncio.sleep(pause)
        else:
            await self._raw(data)

    async def _raw(self, data):
        if not data:
            return
        if self.writer.transport.is_closing():
            raise Closed("closed by client")
        self.request.said = time.monotonic()
        self.writer.write(data)
        self.sent += len(data)
        self.request.bytes = self.sent
        try:
            await self.writer.drain()
        except OSError:
            raise Closed("closed by client") from None

    async def flush(self, limit=5.0):
        """Waits until the kernel has everything."""
        deadline = time.monotonic() + limit
        transport = self.writer.transport
        while transport.get_write_buffer_size() > 0 and time.monotonic() < deadline:
            await asyncio.sleep(0.001)

    # Ending

    async def cut(self):
        """Carries out the fault's cut, once; returns only for "go"."""
        fault = self.fault
        if self.cut_done:
            return
        self.cut_done = True
        if fault.insert:
            await self._raw(fault.insert)
        if fault.cut == "go":
            return
        await self.flush()
        if fault.cut in ("stall", "hang"):
            await self.silence(deaf=fault.cut == "hang")
        self.finish(fault.cut)
        raise Closed("fault: " + fault.cut)

    async def silence(self, deaf):
        """Never writes again; deaf: never reads either.  Ends with the connection."""
        self.request.result = "fault: silent"
        if deaf:
            self.writer.transport.pause_reading()
            while not self.client_left():
                await asyncio.sleep(0.05)
        else:
            await asyncio.wait([self.watch_gone()])
        self.finish("abort")
        raise Closed("fault: silent")

    def client_left(self):
        """
        Whether the client has closed or reset the connection by now; the
        kernel knows it before the loop gets there.
        """
        sock = self.writer.get_extra_info("socket")  # None: of a TLS connection that has ended
        if sock is None or sock.fileno() < 0 or self.writer.transport.is_closing():
            return True
        poll = select.poll()
        poll.register(sock.fileno(), select.POLLRDHUP)
        return bool(poll.poll(0))

    def client_lost(self):
        """
        Whether a loopback client has no such socket any more.  Where its last
        packet was lost the server's end stays open as long as nothing is sent.
        All sockets of the machine are looked at, which may take half a second.
        """
        ends = [self.writer.get_extra_info(name) for name in ("peername", "sockname")]
        if not all(isinstance(e, tuple) and e[0].startswith("127.") for e in ends):
            return False
        wanted = [f"{socket.inet_aton(e[0])[::-1].hex()}:{e[1]:04x}" for e in ends]
        # a thread may be in another network namespace than its process
        with open("/proc/thread-self/net/tcp", encoding="ascii") as f:
            rows = [line.lower().split()[1:4] for line in f]
        return [*wanted, "01"] not in rows and [*wanted, "08"] not in rows

    def finish(self, how="fin"):
        """Closes: fin, abort (TLS: no close_notify), or rst."""
        if self.request is not None:
            self.request.over = True
        if how == "rst":
            reset(self.writer.get_extra_info("socket"))
        if how == "fin":
            self.writer.close()
        else:
            self.writer.transport.abort()

    def freeze(self):
        """The process seems stopped: nothing is read or written until thaw()."""
        self.frozen = asyncio.Event()
        self.writer.transport.pause_reading()

    def thaw(self):
        """Ends a freeze()."""
        if self.frozen is not None:
            self.frozen.set()
            self.frozen = None
            if not self.writer.transport.is_closing():
                self.writer.transport.resume_reading()


def reset(sock):
    """Makes close() send RST; one that is closed already is left alone."""
    if sock is None or sock.fileno() < 0:
        return
    if sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def gzipped(data):
    """As the API server compresses: level 1."""
    return gzip.compress(data, 1, mtime=0)
