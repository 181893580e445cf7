# A watch of the stand-in API server: initial events, resume, bookmarks, the
# ERROR events, the end at timeoutSeconds, and the faults placed in a stream.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""WATCH and WatchList."""

import asyncio

import apiserver_protobuf as protobuf
import apiserver_status as st
import objects
from apiserver_store import Watcher, bookmark_line, event_line, parse_rv, partial_line
from apiserver_wire import Closed, common_headers

DEFAULT_TIMEOUT = 1800


class Stream:
    """The state of one running watch."""

    def __init__(self, server, wire, watcher, options):
        self.server = server
        self.wire = wire
        self.watcher = watcher
        self.options = options
        self.events = 0
        self.loop = asyncio.get_running_loop()
        fault = wire.fault
        seconds = options.timeout or DEFAULT_TIMEOUT
        if fault is not None and fault.timeout is not None:
            seconds = fault.timeout
        self.deadline = self.loop.time() + seconds
        self.last_call = self.deadline - 2 if seconds > 2 else None
        self.next_bookmark = self.loop.time() + server.settings.bookmark_interval
        self.messages = server.api.in_messages(wire.request)

    async def send(self, line):
        """Sends one line and counts it."""
        fault = self.wire.fault
        if fault is not None and fault.error and self.events == (fault.at_events or 0):
            await self.error(fault.error)
        line = self.shape(line)
        if fault is not None and fault.mutate is not None:
            line = fault.mutate(line)
        await self.wire.payload(self.encode(line))
        self.events += 1
        await self.wire.after_event(self.events)

    def shape(self, line):
        """A line as it was asked for."""
        return partial_line(line) if self.wire.request.partial else line

    async def error(self, status):
        """Sends an ERROR event and ends the watch."""
        if "kind" not in status:
            status = st.status(
                status.get("code", 500),
                status.get("message", "scripted fault"),
                status.get("reason"),
                status.get("details"),
            )
        await self.wire.payload(self.encode(event_line("ERROR", objects.go_json(status))))
        await self.wire.end()
        raise Finished

    def encode(self, line):
        """A line in the encoding that was asked for."""
        if not self.messages or isinstance(line, protobuf.Frame):
            return line
        return b"".join(protobuf.frame(one) for one in line.splitlines(keepends=True))

    async def bookmark(self, force=False):
        """Sends a bookmark if there is something new to tell."""
        rv = self.server.store.rv
        watcher = self.watcher
        if watcher.bookmarks and (force or rv > watcher.told_rv):
            watcher.told_rv = rv
            await self.send(bookmark_line(watcher.resource, rv))
        interval = self.server.settings.bookmark_interval
        self.next_bookmark = self.loop.time() + interval

    def line_of(self, event):
        """The line of an event, or None if this watch does not see it."""
        watcher = self.watcher
        if event.rv <= watcher.from_rv:
            return None
        type_ = event.seen_by(watcher.selector)
        if type_ is None:
            return None
        watcher.told_rv = event.rv
        return event.line(type_)

    async def handle(self, what, value):
        """Sends one queued thing."""
        if what == "event":
            line = self.line_of(value)
            if line is not None:
                await self.send(line)
        elif what == "raw":
            await self.send(value)
        elif what == "bookmark":
            await self.bookmark(force=True)
        elif value == "clean":
            await self.wire.end()
            raise Finished
        else:
            await self.wire.flush()
            self.wire.finish(value)
            raise Closed("closed by test: " + value)

    async def drain(self):
        """Sends what is pending."""
        watcher, wire = self.watcher, self.wire
        merging = self.server.settings.merge_events
        if wire.fault is not None and wire.fault.chunk is not None:
            merging = wire.fault.chunk == "all"
        while watcher.pending:
            if not merging:
                await self.handle(*watcher.pending.popleft())
                continue
            lines = []
            while watcher.pending and watcher.pending[0][0] == "event":
                line = self.line_of(watcher.pending.popleft()[1])
                if line is not None:
                    lines.append(self.encode(self.shape(line)))
            if lines:
                await wire.payload(b"".join(lines))
                self.events += len(lines)
                await wire.after_event(self.events)
            if watcher.pending:
                await self.handle(*watcher.pending.popleft())

    async def run(self):
        """Runs until the client leaves, the time is over or a fault ends it."""
        watcher = self.watcher
        while True:
            watcher.wake.clear()
            if watcher.gone:
                raise Closed("closed by client")
            await self.drain()
            fault = self.wire.fault
            if fault is not None and fault.error and self.events == (fault.at_events or 0):
                await self.error(fault.error)
            now = self.loop.time()
            if now >= self.deadline:
                await self.wire.end()
                return
            if self.last_call is not None and now >= self.last_call:
                self.last_call = None
                await self.bookmark()
            if now >= self.next_bookmark:
                await self.bookmark()
            until = min(self.deadline, self.next_bookmark)
            if self.last_call is not None:
                until = min(until, self.last_call)
            try:
                await asyncio.wait_for(watcher.wake.wait(), max(until - now, 0.001))
            except asyncio.TimeoutError:
                pass


class Finished(Exception):
    """The watch has ended properly; the connection may be used again."""


async def serve_watch(server, wire, request, resource, options, selector):
    """Answers a watch from its head to its end."""
    store = server.store
    rv = parse_watch_rv(options.rv)
    watcher = Watcher(resource.name, request.ns, selector, options.bookmarks)
    messages = server.api.in_messages(request)
    await wire.begin(200, common_headers(*[protobuf.TYPE + ";stream=watch"] * messages))
    stream = Stream(server, wire, watcher, options)
    gone = wire.watch_gone()

    def client_left(_task):
        watcher.gone = True
        watcher.wake.set()

    gone.add_done_callback(client_left)
    server.watch_opened(request, watcher)
    try:
        await start(server, stream, resource, options, selector, rv)
        await stream.run()
    except st.ApiError as error:
        # The head is out already: a failure found now can only be an event.
        await wire.payload(stream.encode(event_line("ERROR", objects.go_json(error.status))))
        await wire.end()
    except Finished:
        pass
    finally:
        store.watchers.discard(watcher)
        server.watch_closed(request, watcher)
        gone.remove_done_callback(client_left)
        await wire.unwatch_gone()


def parse_watch_rv(text):
    """A watch's resourceVersion; a bad one is a 500, as the real server has it."""
    try:
        return parse_rv(text)
    except ValueError as error:
        raise st.ApiError(st.status(500, str(error), "")) from None


async def start(server, stream, resource, options, selector, rv):
    """Queues what comes before the changes, and registers for those."""
    store, watcher = server.store, stream.watcher
    listing = options.initial is True or (options.initial is None and rv == 0)
    if listing:
        deadline = stream.loop.time() + server.settings.fresh_wait
        while options.initial and rv > store.rv:
            if stream.loop.time() >= deadline:
                raise st.too_large(rv, store.rv)
            await asyncio.sleep(0.01)
        at = store.rv
        if stream.wire.fault is not None and stream.wire.fault.as_of is not None:
            at = stream.wire.fault.as_of
        for obj in store.sorted_at(resource.name, None if at == store.rv else at):
            if selector(obj):
                watcher.push("raw", event_line("ADDED", obj.full))
        watcher.told_rv = at
        if options.initial and options.bookmarks and server.settings.initial_end:
            watcher.push("raw", bookmark_line(resource.name, at, True))
    elif rv:
        if rv > store.rv and server.settings.strict_future:
            raise st.too_large(rv, store.rv)
        watcher.told_rv = rv
        for event in store.events_since(resource.name, rv):
            watcher.push("event", event)
        watcher.from_rv = rv
    else:
        watcher.told_rv = store.rv
    store.watchers.add(watcher)
