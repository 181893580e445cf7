# The loop side of the stand-in API server: listening sockets, connections, the
# request log and its counters.  All of it runs in one event loop; apiserver.py
# is the way in for everybody else.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Listening, connections and the request log."""

import asyncio
import collections
import dataclasses
import os
import socket
import ssl
import threading
import time
import typing

import apiserver_status as st
from apiserver_auth import Auth
from apiserver_control import control
from apiserver_faults import Faults
from apiserver_serve import Api, locate
from apiserver_store import Store
from apiserver_wire import Closed, Wire, reset

HANDSHAKE_TIMEOUT = 10


@dataclasses.dataclass
class Settings:
    """What may be changed at any time."""

    watch_list: bool = True  # False: sendInitialEvents gives 422
    protobuf: bool = False  # True: objects and Statuses in them, too
    partial: bool = True  # False: whole objects, where the metadata is asked for
    initial_end: bool = True  # False: the bookmark that ends them never comes
    watch_cache: bool = True  # False: a limit holds with resourceVersion=0 too
    bookmark_interval: float = 60.0
    fresh_wait: float = 0.3  # seconds to wait for a version (a real server: 3)
    strict_future: bool = False  # True: a watch from the future gives 504
    merge_events: bool = False  # True: all pending events of a watch in one chunk
    chunk_size: int = 32768
    control: bool = False  # True: /_control/ answers, to loopback peers
    disabled: typing.Set[str] = dataclasses.field(default_factory=set)


class Server:
    """Everything that lives in the loop."""

    def __init__(self, settings, tls=None):
        self.settings = settings
        self.store = Store()
        self.auth = Auth()
        self.faults = Faults()
        self.api = Api(self)
        self.tls = tls
        self.sockets = []
        self.accepting = []
        self.connections = {}
        self.raw_sockets = set()
        self.connect_fault = None
        self.frozen = False
        self.requests = []
        self.accepted = 0
        self.tls_errors = 0
        self.watching = collections.Counter()
        self.most = collections.Counter()
        self.changed = threading.Condition()
        self.auth.client_ca = tls is not None and tls.verify_mode != ssl.CERT_NONE

    def notify(self):
        """Wakes the threads that wait for something to happen."""
        with self.changed:
            self.changed.notify_all()

    # Listening

    def listen(self, addresses):
        """Listens on ("host", port) pairs and paths; returns the bound addresses."""
        bound = []
        for address in addresses:
            if isinstance(address, str):
                if os.path.exists(address):
                    os.unlink(address)
                sock = socket.socket(socket.AF_UNIX)
            else:
                family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
                sock = socket.socket(family)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setblocking(False)
            sock.bind(address)
            sock.listen(512)
            bound.append(address if isinstance(address, str) else sock.getsockname()[:2])
            self.sockets.append(sock)
            self.accepting.append(asyncio.ensure_future(self._accept(sock)))
        return bound

    async def unlisten(self):
        """Closes the listening sockets: connections are refused."""
        for task in self.accepting:
            task.cancel()
        if self.accepting:
            await asyncio.wait(self.accepting)
        self.accepting.clear()
        for sock in self.sockets:
            sock.close()
        self.sockets.clear()

    async def _accept(self, listener):
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(listener)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            self.accepted += 1
            if listener.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            asyncio.ensure_future(self._greet(sock))

    async def _greet(self, sock):
        """What happens between accept() and the first request."""
        fault = self.connect_fault
        if fault is not None or self.frozen:
            await self._unfriendly(sock, "stall" if self.frozen else fault)
            return
        loop = asyncio.get_running_loop()
        tls = self.tls if sock.family != socket.AF_UNIX else None
        reader = asyncio.StreamReader(limit=1 << 16)
        protocol = asyncio.StreamReaderProtocol(reader, self._connected)
        try:
            await loop.connect_accepted_socket(
                lambda: protocol,
                sock,
                ssl=tls,
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT if tls else None,
            )
        except (OSError, ssl.SSLError):
            self.tls_errors += 1
            self.notify()

    async def _unfriendly(self, sock, fault):
        """A connection that is dropped, ignored or answered with rubbish."""
        loop = asyncio.get_running_loop()
        if fault == "stall":
            # Kept open and silent until the server stops or thaws.
            self.raw_sockets.add(sock)
            return
        try:
            if isinstance(fault, bytes):
                await loop.sock_sendall(sock, fault)
                # The peer's bytes must be read, or close() would reset.
                await asyncio.wait_for(loop.sock_recv(sock, 65536), 1)
        except (OSError, asyncio.TimeoutError):
            pass
        if fault == "rst":
            reset(sock)
        sock.close()

    # Connections

    async def _connected(self, reader, writer):
        wire = Wire(reader, writer, self.settings.chunk_size)
        self.connections[wire] = asyncio.current_task()
        try:
            while await self._one(wire):
                pass
        except (Closed, OSError, asyncio.CancelledError):
            # Cancelled by shutdown() alone, which wants no more than the end.
            pass
        finally:
            if wire.gone is not None:
                wire.gone.cancel()
            self.connections.pop(wire, None)
            if not writer.transport.is_closing():
                writer.close()

    async def _one(self, wire):
        """One request; False: the connection is over."""
        request = await wire.read_request()
        refusal = self.identify(wire, request)
        resource = locate(request)
        # The test's thread reads this list: what is in it is known whole.
        self.requests.append(request)
        self.count_rivals(wire)
        keep = request.keep
        try:
            if request.path.startswith("/_control/"):
                await control(self, wire, request)
            else:
                keep = await self._answer(wire, request, resource, refusal) and keep
            request.result = (
                "ok" if request.status is not None and request.status < 400 else ("failed")
            )
        except Closed as closed:
            request.result = closed.why
            raise
        except BaseException:
            request.result = "cut"
            raise
        finally:
            request.ended = time.monotonic()
            self.notify()
        return keep

    def count_rivals(self, wire):
        """
        Notes how many lists, or watches, of the same resource and namespace
        are under way now: those the client has neither left nor been told the
        end of, whatever the loop has come to know of that.
        """

        def same(other):
            r = other.request
            return (
                r is not None
                and (r.verb, r.resource, r.ns) == key
                and r.ended is None
                and not r.over
                and not other.client_left()
            )

        key = (wire.request.verb, wire.request.resource, wire.request.ns)
        rivals = [other for other in self.connections if same(other)]
        if len(rivals) > max(1, self.most[key]):
            rivals = [other for other in rivals if other is wire or not other.client_lost()]
        self.most[key] = max(self.most[key], len(rivals))

    def identify(self, wire, request):
        """Notes who asks; returns the error of a credential that is none, or None."""
        try:
            request.user, request.auth, request.token = self.auth.authenticate(
                request.headers, wire.peercert
            )
        except st.ApiError as error:
            request.auth = "invalid"
            request.token = request.headers.get("authorization", "").partition(" ")[2]
            return error
        return None

    async def _answer(self, wire, request, resource, refusal):
        """Answers; False: the connection must be closed."""
        request.fault = wire.fault = fault = self.faults.match(request)
        self.notify()
        try:
            if refusal is not None and fault is None:
                raise refusal
            if fault is not None:
                if fault.delay or fault.gate is not None:
                    await self._withhold(wire, fault)
                if fault.raw is not None:
                    request.status = 0
                    request.over = True
                    await wire.write(fault.raw)
                    await wire.flush()
                    wire.finish("rst" if fault.cut == "rst" else "fin")
                    raise Closed("fault: raw")
                if fault.replaces:
                    await self.api.faulty(wire, fault)
                    return fault.all_headers().get("Connection") != "close"
            await self.api.answer(wire, request, resource)
        except st.ApiError as error:
            await self.api.fail(wire, error)
        return True

    @staticmethod
    async def _withhold(wire, fault):
        """Says nothing as long as the fault wants, or until the client has gone."""
        gone = wire.watch_gone()
        await asyncio.wait([gone], timeout=fault.delay)
        while fault.gate is not None and not fault.gate.is_set() and not gone.done():
            await asyncio.wait([gone], timeout=0.01)
        await wire.unwatch_gone()

    def watch_opened(self, request, watcher):
        """Counts a running watch."""
        self.watching[(watcher.resource, request.ns)] += 1
        self.notify()

    def watch_closed(self, request, watcher):
        """The end of what watch_opened() counted."""
        self.watching[(watcher.resource, request.ns)] -= 1
        self.notify()

    def cut_all(self, how="rst"):
        """Closes all connections at once."""
        for wire in list(self.connections):
            wire.thaw()
            wire.finish(how)
        for sock in self.raw_sockets:
            sock.close()
        self.raw_sockets.clear()

    def freeze(self):
        """As if the process were stopped: the kernel accepts, nobody answers."""
        self.frozen = True
        for wire in list(self.connections):
            wire.freeze()

    def thaw(self):
        """Ends freeze(); what connected meanwhile is closed."""
        self.frozen = False
        for wire in list(self.connections):
            wire.thaw()
        for sock in self.raw_sockets:
            sock.close()
        self.raw_sockets.clear()

    async def shutdown(self):
        """Closes everything."""
        await self.unlisten()
        self.cut_all("abort")
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)
        self.notify()
