#!/usr/bin/python3
# The stand-in API server's way in: the class ApiServer, which runs the server
# in a thread for tests and the demo, and a command line that runs it alone with
# a control endpoint.  What the server does is in the apiserver_* modules; it is
# no Kubernetes, but answers lists and watches by the same rules.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""A stand-in for a Kubernetes API server."""

import argparse
import asyncio
import concurrent.futures
import gc
import itertools
import json
import os
import signal
import ssl
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import objects  # noqa: E402
from apiserver_auth import READ, Rule  # noqa: E402
from apiserver_control import push  # noqa: E402
from apiserver_faults import Fault  # noqa: E402
from apiserver_server import Server, Settings  # noqa: E402
from ports import free_port  # noqa: E402

__all__ = ["READ", "ApiServer", "Fault", "Rule", "Settings", "objects"]

CALL_TIMEOUT = 60
PUT_AT_ONCE = 1000
WAIT = 60


class ApiServer:
    """
    A stand-in API server in a thread of its own; every method is synchronous.

    port 0 takes a free one, which is kept over refuse() and listen().
    tls: an ssl.SSLContext, or (certificate file, key file).
    unix: a path to listen on as well (or alone, with host=None).
    token: the bearer token of an administrator; without any, all is open.
    Other keywords set Settings (apiserver_server).
    """

    def __init__(self, host="127.0.0.1", port=0, tls=None, unix=None, token=None, **settings):
        if isinstance(tls, tuple):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            tls = context
        if host is not None and not port:
            port = free_port([host])
        self.host, self.port, self.unix = host, port, unix
        self.core = Server(Settings(**settings), tls)
        self.settings = self.core.settings
        self.auth = self.core.auth
        if token:
            self.auth.add_token(token)
        self.token = token
        self._loop = None
        self._thread = None

    # Life

    def start(self):
        """Starts the thread and listens; returns self."""
        ready = concurrent.futures.Future()
        self._thread = threading.Thread(
            target=self._run, args=(ready,), name="apiserver", daemon=True
        )
        self._thread.start()
        ready.result(CALL_TIMEOUT)
        return self

    def _run(self, ready):
        loop = asyncio.new_event_loop()
        self._loop = loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._listen())
        except BaseException as error:  # noqa: B902 - told to the caller of start()
            ready.set_exception(error)
            loop.close()
            return
        ready.set_result(None)
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(self.core.shutdown())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    async def _listen(self):
        addresses = []
        if self.host is not None:
            addresses.append((self.host, self.port))
        if self.unix is not None:
            addresses.append(self.unix)
        bound = self.core.listen(addresses)
        if self.host is not None:
            self.port = bound[0][1]

    def stop(self):
        """Closes everything and ends the thread."""
        if self._thread is None:
            return
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CALL_TIMEOUT)
        self._thread = None
        if self.unix and os.path.exists(self.unix):
            os.unlink(self.unix)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_exc):
        self.stop()

    def run(self, function, *args):
        """Runs a function where no request is answered meanwhile."""
        return self._call(function, *args)

    def _call(self, function, *args, **kwargs):
        """Runs a function in the server's loop."""
        if self._thread is None or threading.current_thread() is self._thread:
            return function(*args, **kwargs)

        async def run():
            made = function(*args, **kwargs)
            return await made if asyncio.iscoroutine(made) else made

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(CALL_TIMEOUT)

    @property
    def url(self):
        """What a client is given: http://..., https://... or unix:/path."""
        if self.host is None:
            return "unix:" + self.unix
        scheme = "https" if self.core.tls is not None else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}"

    # Objects

    @property
    def rv(self):
        """The newest resourceVersion."""
        return self.core.store.rv

    def put(self, obj, lost=False, force=False):
        """Creates or updates; returns the object's resourceVersion."""
        return self._call(self.core.store.put, obj, lost=lost, force=force).rv

    def put_all(self, made):
        """Puts many, up to PUT_AT_ONCE of them at once; returns how many."""

        def run(part):
            collecting = gc.isenabled()
            gc.disable()
            try:
                for obj in part:
                    self.core.store.put(obj)
            finally:
                if collecting:
                    gc.enable()

        made, count = iter(made), 0
        while part := list(itertools.islice(made, PUT_AT_ONCE)):
            self._call(run, part)
            count += len(part)
        return count

    def edit_all(self, resource, keys, change):
        """Updates many at once by change(encoding), see Store.edit()."""

        def run():
            for ns, name in keys:
                self.core.store.edit(resource, ns, name, change)

        self._call(run)

    def put_raw(self, resource, ns, name, text, **more):
        """Stores bytes as an object, see Store.put_raw()."""
        return self._call(self.core.store.put_raw, resource, ns, name, text, **more).rv

    def load_scale(self, services=10000, endpoints=10, **more):
        """Puts a scale fixture of objects.scale()."""
        return self.put_all(objects.scale(services, endpoints, **more))

    def get(self, resource, ns, name):
        """The object as a dictionary, or None."""
        obj = self._call(lambda: self.core.store.tables[resource].get((ns, name)))
        return None if obj is None else obj.data

    def delete(self, resource, ns, name, lost=False):
        """Deletes; returns the version of the deletion, or None if absent."""
        obj = self._call(self.core.store.delete, resource, ns, name, lost=lost)
        return None if obj is None else obj.rv

    def state_at(self, resource, rv=None):
        """{(ns, name): object} at rv, from the whole history (the oracle)."""
        store = self.core.store

        def run():
            return dict(store.state_at(resource, store.rv if rv is None else rv, False))

        return {key: obj.data for key, obj in self._call(run).items()}

    def digest(self, resource, rv=None, project=None):
        """The multiset digest of a resource, see Store.digest()."""
        return self._call(self.core.store.digest, resource, rv, project)

    def compact(self, rv=None):
        """Forgets the history up to rv (default: all)."""
        self._call(self.core.store.compact, rv)

    def restore(self, rv, new_rv=None):
        """Goes back to the state at rv, as after a restored backup; cuts watches."""
        self._call(self.core.store.restore, rv, new_rv)
        self.close_watches(how="fin")

    # Faults

    def fault(self, **fields):
        """Adds a Fault; its field fired tells whether it did."""
        return self._call(self.core.faults.add, Fault(**fields))

    def clear_faults(self):
        """Removes all, and the fault of connecting."""
        self.core.connect_fault = None
        self._call(self.core.faults.clear)

    def connect_fault(self, how):
        """New connections: "rst", "close", "stall", or bytes to send; None ends it."""
        self.core.connect_fault = how

    def refuse(self, cut=True):
        """Closes the listener, and (cut) all connections by RST."""
        self._call(self.core.unlisten)
        if cut:
            self._call(self.core.cut_all)

    def listen(self):
        """Listens again, at the same port."""
        self._call(self._listen)

    def freeze(self):
        """Accepts and answers nothing, as a stopped process."""
        self._call(self.core.freeze)

    def thaw(self):
        """Ends freeze()."""
        self._call(self.core.thaw)

    def cut_connections(self, how="rst"):
        """Closes all connections: fin, rst or abort."""
        self._call(self.core.cut_all, how)

    def close_watches(self, resource=None, how="clean", ns=None):
        """Ends running watches: clean, fin, rst or abort; returns how many."""
        return self._call(push, self.core, resource, "end", how, ns)

    def bookmark(self, resource=None, ns=None):
        """Sends a bookmark into the running watches that take them."""
        return self._call(push, self.core, resource, "bookmark", None, ns)

    def inject(self, line, resource=None, ns=None):
        """Sends bytes into running watches as if they were an event's line."""
        return self._call(push, self.core, resource, "raw", line, ns)

    def set_tls(self, tls):
        """New connections get this SSLContext (or certificate and key files)."""
        if isinstance(tls, tuple):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            tls = context
        self.core.tls = tls

    # The log

    @property
    def requests(self):
        """All requests so far, oldest first (apiserver_wire.Request)."""
        return list(self.core.requests)

    def find(self, verb=None, resource=None, ns=None, page=None, streamed=None, since=0):
        """
        The requests that fit; since: a length of the log from before.  A
        WatchList is found as a list and as a watch; streamed: it alone (True),
        or anything else (False).
        """
        wanted = {"resource": resource, "ns": ns, "page": page, "streamed": streamed}
        wanted = {k: v for k, v in wanted.items() if v is not None}
        return [
            r
            for r in self.requests[since:]
            if (verb is None or verb in r.verbs)
            and all(getattr(r, k) == v for k, v in wanted.items())
        ]

    def count(self, **fields):
        """How many requests fit, see find()."""
        return len(self.find(**fields))

    def watches(self, resource, ns=""):
        """Watches running now."""
        return self.core.watching[(resource, ns)]

    def max_concurrent(self, verb, resource, ns=""):
        """The most lists or watches of a resource and scope that were open at a time."""
        return self.core.most[(verb, resource, ns)]

    def reset_max(self):
        """Starts the count of max_concurrent() anew."""
        self._call(self.core.most.clear)

    @property
    def accepted(self):
        """Connections accepted."""
        return self.core.accepted

    @property
    def tls_errors(self):
        """TLS handshakes that failed."""
        return self.core.tls_errors

    def wait(self, condition, timeout=WAIT, what="condition"):
        """Waits until condition() holds; it is tried whenever the log changes."""
        deadline = time.monotonic() + timeout
        with self.core.changed:
            while True:
                found = condition()
                if found:
                    return found
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"not within {timeout} s: {what}")
                # Some conditions change without the log: look again soon.
                self.core.changed.wait(min(left, 0.05))

    def wait_watch(self, resource, ns="", count=1, timeout=WAIT):
        """Waits until so many watches run."""
        self.wait(lambda: self.watches(resource, ns) >= count, timeout, f"a watch of {resource}")

    def wait_requests(self, count=1, timeout=WAIT, **fields):
        """Waits until so many requests fit; returns them."""
        self.wait(lambda: self.count(**fields) >= count, timeout, f"{count} of {fields}")
        return self.find(**fields)


def options():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--unix", help="a path to listen on too")
    parser.add_argument("--tls-cert")
    parser.add_argument("--tls-key")
    parser.add_argument("--client-ca", help="CA of client certificates (their CN is the user)")
    parser.add_argument("--token", action="append", default=[], help="NAME=TOKEN, an admin")
    parser.add_argument("--load", action="append", default=[], help="JSON file of objects")
    parser.add_argument("--scale", help="SERVICESxENDPOINTS, for example 10000x10")
    parser.add_argument("--bookmark-interval", type=float, default=60)
    parser.add_argument("--no-watch-list", action="store_true")
    return parser.parse_args()


def main():
    """Runs the server until SIGINT or SIGTERM."""
    args = options()
    tls = None
    if args.tls_cert:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(args.tls_cert, args.tls_key)
        if args.client_ca:
            tls.load_verify_locations(args.client_ca)
            tls.verify_mode = ssl.CERT_OPTIONAL
    server = ApiServer(
        args.host,
        args.port,
        tls=tls,
        unix=args.unix,
        control=True,
        bookmark_interval=args.bookmark_interval,
        watch_list=not args.no_watch_list,
    )
    for given in args.token:
        name, _, token = given.partition("=")
        server.auth.add_token(token, name)
    for path in args.load:
        with open(path, encoding="utf-8") as source:
            found = json.load(source)
        found = found.get("items", [found]) if isinstance(found, dict) else found
        server.put_all(found)
    if args.scale:
        services, _, endpoints = args.scale.partition("x")
        server.load_scale(int(services), int(endpoints or 10))

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    server.start()
    print(json.dumps({"ready": True, "url": server.url, "pid": os.getpid()}), flush=True)
    signal.sigwait({signal.SIGINT, signal.SIGTERM})
    server.stop()


if __name__ == "__main__":
    main()
