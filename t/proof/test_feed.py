# Many clients of events in many workers while everything changes, and one that
# does not read: what each is told, how late, and what a worker keeps for it.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""The event feed under load."""

import collections
import itertools
import os
import re
import threading
import time

import pytest
import test_events as feed
from client import repeated
from cluster import informer
from events import Events
from nginx import rss, wait_until

pytestmark = [pytest.mark.timeout(1800), pytest.mark.slow]

WORKERS, CLIENTS, SLICES = 20, 40, 200
# The bar is 1000: what is asked for is never exceeded, and a batch may be late.
RATE, BATCH = 1200, 24
ADDRESS = re.compile(rb'"127\.1\.[0-9]+\.[0-9]+"')
SECONDS = float(os.environ.get("KUBE_PROOF_SECONDS", "20"))


def place(event):
    """Its place among all events of the zone."""
    return int(event.id.partition("-")[2])


def late(stream):
    """How often it was told that it was late."""
    return stream.kinds().count("overflow")


def told(streams):
    """
    All changes that anybody was told of, in their order.  Each is the same for all,
    and nobody lacks one without being told so.
    """
    union = {}
    for event in (e for s in streams for e in s.events if "name" in e.data):
        assert union.setdefault(place(event), event) == event
    number = {at: n for n, at in enumerate(sorted(union))}
    for stream in streams:
        last, behind = -1, True
        for event in stream.events:
            if "name" not in event.data:
                behind = True
                continue
            now = number[place(event)]
            assert now > last if behind else now == last + 1
            last, behind = now, False
    return [union[at] for at in sorted(union)]


def agree(cluster, streams, change):
    """Changes each slice until nobody is late for that: then all know what is there."""
    before = None
    while before != [late(s) for s in streams]:
        before = [late(s) for s in streams]
        change()
        wanted = {k: v for k, v in feed.stored(cluster).items() if k[0] == "endpointslices"}
        for stream, n in zip(streams, before):
            stream.wait(
                lambda s, n=n: late(s) > n or wanted.items() <= feed.held(s).items(),
                "the last of each slice",
            )


def test_everybody_is_told(cluster, figure):
    """No change is wrong or out of order for its object, and memory is bounded."""
    cluster.service("shop", "web", 1)
    feed.changes(cluster, SLICES, SLICES)
    names = [key for key in cluster.api.state_at("endpointslices") if key[1] != "web-1"]
    gateway = cluster.nginx(
        feed.SLOW, workers=WORKERS, block=informer(cluster.api.url, zone="kube 8m")
    )
    cluster.steady(gateway)
    streams = [Events(gateway.port) for _ in range(CLIENTS)]
    slow = Events(gateway.port, room=2048)
    stop = threading.Event()

    def read():
        while not stop.wait(0.02):
            for stream in streams:
                stream.receive()

    def change(n):
        """Some slices get another address, one batch after the other."""
        text = b'"127.1.%d.%d"' % (n // 250 % 250, n % 250 + 1)
        keys = [names[(n * BATCH + k) % len(names)] for k in range(BATCH)]
        cluster.api.edit_all("endpointslices", keys, lambda item: ADDRESS.sub(text, item))

    try:
        for stream in (*streams, slow):
            stream.started()
        before = sum(rss(pid) for pid in gateway.workers())
        reader = threading.Thread(target=read)
        reader.start()
        begun = time.monotonic()
        with repeated(change, RATE / BATCH) as done:
            # as many as it takes: a client that does not read is late after so many
            wait_until(lambda: len(done) * BATCH >= RATE * SECONDS, 1200)
        took = time.monotonic() - begun
        after = sum(rss(pid) for pid in gateway.workers())
        stop.set()
        reader.join()

        turns = itertools.count(len(done))

        def each():
            cluster.slice("shop", "web", cluster.pods(1))
            for _ in range(0, len(names), BATCH):
                change(next(turns))

        agree(cluster, [*streams, slow], each)
        events = told([*streams, slow])
        versions = collections.defaultdict(list)
        for event in events:
            versions[event.data["name"]].append(int(event.data["resource_version"]))
        assert all(v == sorted(set(v)) for v in versions.values())
        assert late(slow) > 0
        figure(f"{len(done) * BATCH / took:.0f} changes/s, {len(events)} events, "
               f"{CLIENTS} clients in {WORKERS} workers late {sum(map(late, streams))} times, "
               f"the slow one {late(slow)}; workers grew by {after - before} KiB")
        # a buffer each; and in each worker the ring's pages, and what nginx's pools take
        assert after - before < (CLIENTS + 1) * 16 + WORKERS * 512
    finally:
        stop.set()
        for stream in (*streams, slow):
            stream.sock.close()
