# Small real HTTP servers on loopback addresses, standing for pods: many in one
# thread, each to be closed at once.  They say who they are in X-Backend and
# X-Pod-Addr.  No load goes out from here.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""HTTP backends for tests and the demo."""

import asyncio
import concurrent.futures
import json
import re
import socket
import threading
import urllib.parse

from ports import free_port
from requests_in import Requests

CALL_TIMEOUT = 60


def seconds(text):
    """50ms, 1.5s or 2 as seconds."""
    match = re.fullmatch(r"([0-9.]+)(ms|s|)", text)
    if not match:
        return 0.0
    return float(match.group(1)) * (0.001 if match.group(2) == "ms" else 1.0)


class Backend:
    """One server; made by Backends.add()."""

    def __init__(self, owner, name, delay, status):
        self.owner = owner
        self.name = name
        self.delay = delay
        self.status = status
        self.host = ""
        self.port = 0
        self.requests = 0
        self.methods = {}
        self.active = 0
        self.connections = {}
        self.accepted = 0
        self.open = False
        self._server = None
        self._gate = asyncio.Event()

    @property
    def address(self):
        """host:port."""
        return f"{self.host}:{self.port}"

    def close(self):
        """Stops accepting and cuts every connection, at once."""
        self.owner.call(self._close, cut=True)

    def cut(self):
        """Cuts the connections whose requests are not answered yet."""
        self.owner.call(self._cut)

    def drain(self, grace=5.0):
        """
        As a pod that ends in order: stops accepting, closes idle connections,
        lets requests in flight end (up to grace seconds), then cuts.
        """
        self.owner.call(self._drain, grace)

    def release(self):
        """Lets requests with ?hold=1 be answered, now and later."""
        self.owner.call(self._release)

    def reopen(self):
        """Listens again at the same address."""
        self.owner.call(self._listen, self.host, self.port)

    # In the loop

    async def _listen(self, host, port):
        self._server = await asyncio.start_server(
            self._serve, host, port, limit=1 << 16, backlog=512, reuse_address=True
        )
        self.host, self.port = self._server.sockets[0].getsockname()[:2]
        self.open = True

    async def _close(self, cut):
        self.open = False
        if self._server is not None:
            self._server.close()
            self._server = None
        self._abort(*([True, False] if cut else [False]))

    async def _cut(self):
        self._abort(True)

    def _abort(self, *busy):
        """Cuts those that have a request (True), or have none (False)."""
        for task, writer in list(self.connections.items()):
            if getattr(writer, "busy", False) in busy:
                writer.transport.abort()
                task.cancel()

    async def _release(self):
        self._gate.set()

    async def _drain(self, grace):
        await self._close(cut=False)
        tasks = list(self.connections)
        if tasks:
            await asyncio.wait(tasks, timeout=grace)
        await self._close(cut=True)

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self.connections[task] = writer
        self.accepted += 1
        sock = writer.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            requests = Requests(reader)
            while await self._one(requests, writer) and self.open:
                writer.busy = False
        except (OSError, EOFError, ValueError, asyncio.CancelledError):
            pass
        finally:
            self.connections.pop(task, None)
            writer.close()

    async def _one(self, requests, writer):
        """One request; False: the connection is to be closed."""
        method, target, headers, body, keep = await requests.next()
        writer.busy = True

        self.requests += 1
        self.methods[method] = self.methods.get(method, 0) + 1
        self.active += 1
        try:
            path, _, query = target.partition("?")
            query = dict(urllib.parse.parse_qsl(query))
            delay = seconds(query["delay"]) if "delay" in query else self.delay
            if delay:
                await asyncio.sleep(delay)
            if "hold" in query:
                await self._gate.wait()
        finally:
            # before whoever asked may know that it was answered
            self.active -= 1
        keep = keep and self.open
        writer.write(self._answer(method, path, headers, body, query, keep))
        await writer.drain()
        return keep

    def _answer(self, method, path, headers, body, query, keep):
        status = int(query.get("status", self.status))
        told = {
            "backend": self.name,
            "address": self.address,
            "method": method,
            "path": path,
            "host": headers.get("host", ""),
            "length": len(body),
        }
        text = json.dumps(told).encode() + b"\n"
        lines = [
            f"HTTP/1.1 {status} {'OK' if status == 200 else 'Status'}",
            "Content-Type: application/json",
            f"Content-Length: {len(text)}",
            f"X-Backend: {self.name}",
            f"X-Pod-Addr: {self.address}",
            f"X-Body-Length: {len(body)}",
            "Connection: " + ("keep-alive" if keep else "close"),
        ]
        encoded = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        return encoded if method == "HEAD" else encoded + text


class Backends:
    """A thread that hosts backends; use it as a context, or start() and stop()."""

    def __init__(self):
        self.all = []
        self._loop = None
        self._thread = None

    def start(self):
        """Starts the thread; returns self."""
        ready = concurrent.futures.Future()
        self._thread = threading.Thread(
            target=self._run, args=(ready,), name="backends", daemon=True
        )
        self._thread.start()
        ready.result(CALL_TIMEOUT)
        return self

    def _run(self, ready):
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        ready.set_result(None)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._shutdown())
            self._loop.close()

    async def _shutdown(self):
        for backend in self.all:
            await backend._close(cut=True)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)

    def stop(self):
        """Closes all backends and ends the thread."""
        if self._thread is None:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CALL_TIMEOUT)
        self._thread = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_exc):
        self.stop()

    def call(self, function, *args, **kwargs):
        """Runs a coroutine function in the thread."""
        if self._thread is None:
            raise RuntimeError("backends are not running")
        made = asyncio.run_coroutine_threadsafe(function(*args, **kwargs), self._loop)
        return made.result(CALL_TIMEOUT)

    def add(self, host="127.0.0.1", port=0, name=None, delay=0.0, status=200):
        """Starts one backend; port 0 takes a free one."""
        backend = Backend(self, name or f"backend-{len(self.all) + 1}", delay, status)
        self.call(backend._listen, host, port or free_port([host]))
        self.all.append(backend)
        return backend
