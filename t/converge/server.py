# A scripted API server: what it answers to each list and watch, byte by byte,
# is data (scripts.py).  One server serves one client, and counts what that
# asks for.  It does not judge: run.py does.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""A scripted API server, and the truth it serves."""

import asyncio
import gzip
import json
import socket
import struct
import urllib.parse

KINDS = {"services": "Service", "endpointslices": "EndpointSlice"}
GROUPS = {"services": "v1", "endpointslices": "discovery.k8s.io/v1"}
FIRST_VERSION = 1000
BOOKMARKS_S = 10

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class Closed(Exception):
    """The script has ended this connection."""


def thing(resource, name, value, version, **more):
    """One object; its value is what tells its versions apart."""
    made = {
        "kind": KINDS[resource],
        "apiVersion": GROUPS[resource],
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": more.pop("uid", f"uid-{name}"),
            "resourceVersion": str(version),
        },
    }
    if version is None:
        del made["metadata"]["resourceVersion"]
    if resource == "services":
        made["spec"] = {"ports": [{"port": value, "protocol": "TCP"}], "selector": {"app": name}}
    else:
        made["metadata"]["labels"] = {"kubernetes.io/service-name": "a"}
        made["addressType"] = "IPv4"
        made["ports"] = [{"port": 80, "protocol": "TCP"}]
        made["endpoints"] = [{"addresses": [f"10.0.0.{value}"]}]
    made["metadata"].update(more.pop("metadata", {}))
    made.update(more)
    return made


class Truth:
    """What is so in the cluster: objects, versions, and what happened."""

    def __init__(self, changed):
        self.version = FIRST_VERSION
        self.objects = {}
        self.log = []
        self.oldest = 0
        self.arrived = asyncio.Event()
        self.changed = changed
        for name, value in (("a", 1), ("b", 2), ("c", 3), ("t", 5)):
            self.put("services", name, value)
        self.put("endpointslices", "a-1", 1)
        self.log.clear()
        self.oldest = self.version

    def put(self, resource, name, value, told=None):
        """An object is made or changed; told: the watch whose script says so itself."""
        self.version += 1
        kind = "MODIFIED" if (resource, name) in self.objects else "ADDED"
        self.objects[resource, name] = (value, self.version)
        self.note(kind, resource, name, value, told)

    def delete(self, resource, name, told=None):
        """An object goes, if it is there."""
        if (resource, name) in self.objects:
            self.version += 1
            value, _ = self.objects.pop((resource, name))
            self.note("DELETED", resource, name, value, told)

    def note(self, kind, resource, name, value, told):
        """Tells who watches."""
        self.log.append((self.version, kind, resource, name, value, told))
        self.arrived.set()
        self.arrived = asyncio.Event()
        self.changed()

    def compact(self):
        """No watch can be resumed from before now."""
        self.oldest = self.version

    def restore(self):
        """The cluster is what a backup says: older versions, other values."""
        self.version -= 500
        for at in self.objects:
            self.version += 1
            self.objects[at] = (7, self.version)
        self.log.clear()
        self.compact()
        self.changed()

    def state(self):
        """{(resource, key): value}."""
        return {(r, "shop/" + n): v for (r, n), (v, _) in self.objects.items()}


class Request:
    """One request, and how far its answer has come."""

    def __init__(self, target, headers):
        path, _, query = target.partition("?")
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        self.resource = path.rsplit("/", 1)[-1]
        self.verb = "watch" if self.query.get("watch") in ("true", "1") else "list"
        self.headers = headers
        self.chunked = False
        try:
            self.sent = int(self.query.get("resourceVersion") or 0)
        except ValueError:
            self.sent = 0


class Wire(asyncio.StreamReaderProtocol):
    """A connection that ends as soon as the client has ended it."""

    def __init__(self, server):
        super().__init__(asyncio.StreamReader(limit=1 << 20), self.accepted)
        self.server = server
        self.task = None

    def accepted(self, reader, writer):
        """It stands."""
        self.server.begin()
        self.server.opened += 1
        self.server.wires.add(self)
        self.server.most_open = max(self.server.most_open, len(self.server.wires))
        self.task = asyncio.ensure_future(self.server.connection(reader, writer))

    def eof_received(self):
        """The client says no more: nobody of ours half-closes."""
        super().eof_received()
        return False

    def connection_lost(self, exc):
        """It is gone."""
        super().connection_lost(exc)
        self.server.wires.discard(self)
        if self.task is not None:
            self.task.cancel()


class Server:
    """One script for one client."""

    def __init__(self, script, tls=None):
        self.script = script
        self.tls = tls
        self.loop = asyncio.get_running_loop()
        self.started = None
        self.state = {}
        self.wrong_s = 0.0
        self.judged = None
        self.equal_since = None
        self.truth = None
        self.truth = Truth(self.judge)
        self.used = {"list": 0, "watch": 0, "connect": 0}
        self.requests = []
        self.wires = set()
        self.most_open = 0
        self.opened = 0
        self.timers = []
        self.listener = None
        self.port = None

    # the two states, and for how long they have differed

    def judge(self):
        """Something has changed, here or in the client."""
        if self.truth is None or self.started is None:
            return
        now = self.loop.time()
        if self.equal_since is None and self.judged is not None:
            self.wrong_s += now - self.judged
        self.judged = now
        if self.state != self.truth.state():
            self.equal_since = None
        elif self.equal_since is None:
            self.equal_since = now

    def told(self, change, resource, key, value):
        """The client's handler was told."""
        if change == "delete":
            self.state.pop((resource, key), None)
        else:
            self.state[resource, key] = value
        self.judge()

    def elapsed(self):
        """Seconds since the client came for the first time."""
        return 0.0 if self.started is None else self.loop.time() - self.started

    # life

    def bind(self):
        """Clients may connect, always at the same port; nobody answers yet."""
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", self.port or 0))
        sock.listen(100)
        self.port = sock.getsockname()[1]
        return sock

    async def listen(self, sock=None):
        """Begins to answer."""
        self.listener = await self.loop.create_server(
            lambda: Wire(self), sock=sock or self.bind()
        )

    def url(self):
        """What the client is given."""
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}"

    async def start(self, sock):
        """Serves; a server that is not there at first comes later."""
        if self.script.outage and self.script.outage[0] == 0:
            sock.close()
            self.begin()
        else:
            await self.listen(sock)

    def begin(self):
        """The client has come, or should have: the clock runs."""
        if self.started is not None:
            return
        self.started = self.loop.time()
        self.judge()
        for at, *change in self.script.changes:
            self.timers.append(self.loop.call_later(at, self.change, *change))
        if self.script.outage:
            first, last = self.script.outage
            if first != 0:
                self.timers.append(self.loop.call_later(first, self.down))
            self.timers.append(
                self.loop.call_later(last, lambda: asyncio.ensure_future(self.listen()))
            )

    def down(self):
        """Nobody listens any more."""
        self.listener.close()
        self.tear()

    def tear(self):
        """Every connection is torn."""
        for wire in list(self.wires):
            wire.task.cancel()

    def change(self, verb, *rest):
        """One of the script's changes."""
        if verb == "put":
            resource = rest[2] if len(rest) > 2 else "services"
            self.truth.put(resource, rest[0], rest[1])
        elif verb == "del":
            self.truth.delete("services", rest[0])
        elif verb == "compact":
            self.truth.compact()
        elif verb == "restore":
            self.truth.restore()
        elif verb == "cut":
            self.tear()
        else:
            raise ValueError(verb)

    def stop(self):
        """Ends it all."""
        for timer in self.timers:
            timer.cancel()
        if self.listener is not None:
            self.listener.close()
        self.tear()

    # connections

    async def connection(self, reader, writer):
        """One connection: scripted first, then requests until it ends."""
        try:
            await self.greet(writer)
            while await self.request(reader, writer):
                pass
        except (Closed, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def greet(self, writer):
        """What happens before TLS and before the first request."""
        step = self.step("connect")
        if step is not None:
            for op in step:
                await self.do(op, writer, None)
        if self.tls:
            try:
                await writer.start_tls(self.tls, ssl_handshake_timeout=20)
            except (OSError, AttributeError) as why:
                raise Closed from why

    def step(self, kind):
        """The next scripted answer of this kind, or None."""
        steps = getattr(self.script, kind)
        i = self.used[kind]
        self.used[kind] += 1
        if i < len(steps):
            return steps[i]
        return steps[-1] if steps and self.script.forever == kind else None

    def answer(self, request):
        """What to do with a request."""
        for first, last, steps in self.script.gate:
            if first <= self.elapsed() < last:
                return steps
        if request.resource == self.script.resource:
            step = self.step(request.verb)
            if step is not None:
                return step
        return [(request.verb,)]

    async def request(self, reader, writer):
        """One request and its answer; False: the connection is to end."""
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        _, target, _ = lines[0].split(" ", 2)
        headers = dict(
            (name.lower(), value.strip())
            for name, _, value in (line.partition(":") for line in lines[1:] if line)
        )
        request = Request(target, headers)
        self.requests.append((self.loop.time(), request))
        for op in self.answer(request):
            await self.do(op, writer, request)
        await writer.drain()
        return True

    # the steps of an answer

    async def do(self, op, writer, request):
        """One step."""
        name, *args = op
        options = args.pop() if args and isinstance(args[-1], dict) else {}
        await getattr(self, "do_" + name)(writer, request, *args, **options)
        await writer.drain()

    async def do_sleep(self, _writer, _request, seconds):
        """Nothing, for a while."""
        await asyncio.sleep(seconds)

    async def do_hang(self, _writer, _request):
        """Nothing any more."""
        await asyncio.sleep(3600)

    async def do_limit(self, _writer, _request, most):
        """So many connections at once, and no more."""
        if len(self.wires) > most:
            raise Closed

    async def do_cut(self, writer, _request):
        """The connection ends as if all were said."""
        await writer.drain()
        raise Closed

    async def do_reset(self, writer, _request):
        """The connection is torn."""
        await writer.drain()
        await asyncio.sleep(0.05)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        raise Closed

    async def do_raw(self, writer, _request, data):
        """Bytes as they are."""
        writer.write(data)

    async def do_head(self, writer, request, status=200, **headers):
        """The head of an answer that comes in chunks."""
        sent = {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}
        sent.update((n.replace("_", "-"), v) for n, v in headers.items())
        text = f"HTTP/1.1 {status} X\r\n" + "".join(f"{n}: {v}\r\n" for n, v in sent.items())
        writer.write(text.encode() + b"\r\n")
        request.chunked = "Transfer-Encoding" in sent and sent["Transfer-Encoding"] == "chunked"

    async def do_send(self, writer, request, data):
        """A piece of the body."""
        if isinstance(data, str):
            data = data.replace("@V", str(self.truth.version)).encode("utf-8", "surrogateescape")
        if data:
            writer.write(b"%x\r\n%s\r\n" % (len(data), data) if request.chunked else data)

    async def do_slowly(self, writer, request, data, piece, pause):
        """The same, a few bytes at a time."""
        data = data.encode() if isinstance(data, str) else data
        for i in range(0, len(data), piece):
            await self.do_send(writer, request, data[i : i + piece])
            await writer.drain()
            await asyncio.sleep(pause)

    async def do_end(self, writer, request):
        """The body is complete."""
        if request.chunked:
            writer.write(b"0\r\n\r\n")
        else:
            raise Closed

    async def do_status(self, writer, _request, code, **more):
        """A failure in one piece: a Status unless a body is given."""
        reason = more.get("reason", REASONS.get(code, ""))
        body = more.get("body")
        if body is None:
            status = {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": more.get("message", reason),
                "reason": reason,
                "code": more.get("code", code),
            }
            if "details" in more:
                status["details"] = more["details"]
            body = json.dumps(status)
        body = body.encode() if isinstance(body, str) else body
        head = {"Content-Type": more.get("type", "application/json"), "Content-Length": len(body)}
        head.update(more.get("headers", {}))
        writer.write(
            (f"HTTP/1.1 {code} X\r\n" + "".join(f"{n}: {v}\r\n" for n, v in head.items())).encode()
            + b"\r\n"
            + body
        )
        if more.get("close"):
            await writer.drain()
            raise Closed

    def items(self, request):
        """The objects of a list, as they are now."""
        return [
            thing(request.resource, n, v, version)
            for (r, n), (v, version) in sorted(self.truth.objects.items())
            if r == request.resource
        ]

    def version(self, spec):
        """None: now; a number: so many on; a text: as it is."""
        if isinstance(spec, str):
            return spec
        return str(self.truth.version + (spec or 0))

    async def do_list(self, writer, request, **how):
        """The list; how says in what it is odd."""
        if not how and request.sent > self.truth.version:
            message = "Too large resource version"
            await self.do_status(writer, request, 504, message=message)
            return
        items = how["items"] if "items" in how else self.items(request)
        items = [self.made(request.resource, i) if isinstance(i, tuple) else i for i in items]
        meta = {"resourceVersion": self.version(how.get("version"))}
        if how.get("version", 0) is None:
            del meta["resourceVersion"]
        page = how.get("page")
        if page and request.query.get("limit", "0") not in ("", "0"):
            at = int(request.query.get("continue") or 0)
            if at + page < len(items):
                meta["continue"] = str(at + page)
            items = items[at : at + page]
        if "token" in how:
            meta["continue"] = how["token"]
        made = {
            "kind": KINDS[request.resource] + "List",
            "apiVersion": GROUPS[request.resource],
            "metadata": meta,
            "items": items,
        }
        if not how.get("kinds"):
            for item in items:
                item.pop("kind", None)
                item.pop("apiVersion", None)
        made.update(how.get("over", {}))
        for name in how.get("without", ()):
            made.pop(name, None)
        if how.get("last"):
            made["metadata"] = made.pop("metadata")
        text = json.dumps(made, indent=how.get("indent")).encode()
        text = how.get("before", b"") + text + how.get("after", b"")
        headers = {"Content-Type": how.get("type", "application/json")}
        if how.get("gzip") and "gzip" in request.headers.get("accept-encoding", ""):
            text = gzip.compress(text)
            headers["Content-Encoding"] = "gzip"
        cut = how.get("cut")
        chunk = how.get("chunk")
        if chunk:
            await self.do_head(writer, request)
            for i in range(0, len(text), chunk):
                await self.do_send(writer, request, text[i : i + chunk])
                await asyncio.sleep(how.get("pause", 0))
            await self.do_end(writer, request)
            return
        if not how.get("unsized"):
            headers["Content-Length"] = len(text)
        head = "HTTP/1.1 200 OK\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers.items())
        writer.write(head.encode() + b"\r\n" + (text if cut is None else text[: cut or 1]))
        if how.get("unsized"):
            raise Closed

    def made(self, resource, spec):
        """An object of a script: (name, value, version, more)."""
        name, value, *rest = spec
        version = self.version(rest[0] if rest else None)
        return thing(resource, name, value, version, **(rest[1] if len(rest) > 1 else {}))

    async def do_event(self, writer, request, kind, name, value=0, version=None, **more):
        """An event, true or not."""
        resource = more.pop("resource", request.resource)
        made = thing(resource, name, value, self.version(version), **more)
        await self.do_send(writer, request, json.dumps({"type": kind, "object": made}) + "\n")

    async def do_bookmark(self, writer, request, version=None, **over):
        """A bookmark."""
        made = {
            "kind": KINDS[request.resource],
            "apiVersion": GROUPS[request.resource],
            "metadata": {"resourceVersion": self.version(version)},
        }
        made.update(over)
        text = json.dumps({"type": "BOOKMARK", "object": made}) + "\n"
        await self.do_send(writer, request, text)

    async def do_error(self, writer, request, code, /, **more):
        """An ERROR event."""
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        status.update(code=code, reason=REASONS.get(code, ""), message="scripted")
        status.update(more)
        for name in [n for n, v in status.items() if v is None]:
            del status[name]
        await self.do_send(writer, request, json.dumps({"type": "ERROR", "object": status}) + "\n")

    async def do_put(self, _writer, request, name, value):
        """The truth changes; this watch is told by the script alone."""
        self.truth.put(request.resource, name, value, request)

    async def do_show(self, _writer, request, name, value):
        """The truth changes, and this watch is told as any other."""
        self.truth.put(request.resource, name, value)

    async def do_del(self, _writer, request, name):
        """As put, gone."""
        self.truth.delete(request.resource, name, request)

    async def do_compact(self, _writer, _request):
        """What happened is forgotten."""
        self.truth.compact()

    def pending(self, request):
        """The true events that this watch has not seen."""
        text = b""
        for version, kind, resource, name, value, told in self.truth.log:
            if resource == request.resource and version > request.sent and told is not request:
                made = thing(resource, name, value, version)
                text += json.dumps({"type": kind, "object": made}).encode() + b"\n"
        request.sent = max(request.sent, self.truth.version)
        return text

    async def do_pass(self, _writer, request):
        """What has happened until now is not told."""
        request.sent = max(request.sent, self.truth.version)

    async def do_events(self, writer, request):
        """The true events until now."""
        await self.do_send(writer, request, self.pending(request))

    async def do_follow(self, writer, request, seconds=None, piece=None, pause=0.0, bookmarks=True):
        """The rest of a good watch."""
        timeout = float(request.query.get("timeoutSeconds") or 600)
        ends = self.loop.time() + (timeout if seconds is None else seconds)
        marked = self.loop.time()
        while self.loop.time() < ends:
            arrived = self.truth.arrived
            text = self.pending(request)
            for i in range(0, len(text), piece or len(text) or 1):
                await self.do_send(writer, request, text[i : i + (piece or len(text))])
                await writer.drain()
                await asyncio.sleep(pause)
            if self.loop.time() - marked >= BOOKMARKS_S and bookmarks:
                marked = self.loop.time()
                await self.do_bookmark(writer, request)
            await writer.drain()
            try:
                await asyncio.wait_for(arrived.wait(), min(1.0, max(0, ends - self.loop.time())))
            except asyncio.TimeoutError:
                pass
        await self.do_end(writer, request)

    async def do_watch(self, writer, request, **how):
        """A good watch from its first byte; how: see do_follow()."""
        if 0 < request.sent < self.truth.oldest:
            await self.do_head(writer, request)
            await self.do_error(writer, request, 410)
            await self.do_end(writer, request)
            return
        await self.do_head(writer, request)
        if request.sent == 0:
            for item in self.items(request):
                text = json.dumps({"type": "ADDED", "object": item}) + "\n"
                await self.do_send(writer, request, text)
            request.sent = self.truth.version
        await self.do_follow(writer, request, **how)
