# Changes without a pause, while the history is forgotten, the API server is
# restarted, the informer dies, nginx is reloaded and the token is replaced: each
# version that is shown has the digest of what the server held at it, events are
# in order, and the server sees exactly the requests that are needed.
#
# The sum of a state is that of its objects' own digests, which an informer that
# nothing happens to has told before.  The long form is t/proof/test_million.py.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Many changes, many interruptions."""

import bisect
import collections
import os
import random
import signal
import threading
import time

import objects
import pytest
from apiserver_control import push
from apiserver_store import Store
from client import repeated
from cluster import WATCH_LIST
from events import Events
from nginx import PATIENCE, wait_until
from test_cli import Informer

CONF = "server { listen 127.0.0.1:PORT; location / { return 200; } }"
RESOURCES = ("services", "endpointslices")
VARIANTS = 4
TOLD = "ns-1"


class Pool:
    """The objects that may be there, each in a few variants, of which two have a uid."""

    def __init__(self, services):
        self.texts = {}
        encoder = Store()
        for n in range(services):
            ns, name = f"ns-{n % 4}", f"svc-{n}"
            for variant in range(VARIANTS):
                uid = f"00000000-0000-4000-8000-{n:06x}{variant // 2:06x}"
                hosts = [f"10.{variant}.{n // 250}.{n % 250 + k}" for k in range(variant + 1)]
                for made in (
                    objects.service(ns, name, ports=[("http", 80 + variant)], uid=uid),
                    objects.slice(ns, f"{name}-1", name, hosts, uid=uid, service_uid=uid),
                ):
                    obj, _ = encoder.encode(made, 1)
                    self.texts[obj.resource, ns, obj.name, variant] = obj.item.replace(
                        b'"resourceVersion":"1"', b'"resourceVersion":"%RV%"'
                    )
        self.keys = sorted({key[:3] for key in self.texts})
        self.weights = {}

    def weigh(self, api):
        """The digest of each variant, as an informer tells it that sees it come alone."""
        last = dict.fromkeys(RESOURCES, 0)
        with Informer("--server", api.url, "--digest", "--quiet") as calm:
            read = 0
            wait_until(lambda: {line["resource"] for line in calm.lines} == set(RESOURCES))
            for key, text in self.texts.items():
                resource, read = key[0], len(calm.lines)
                rv = str(api.put_raw(*key[:3], text))
                wait_until(lambda: said(calm, read, resource, rv), what=f"the digest of {key}")
                now = int(said(calm, read, resource, rv)["digest"], 16)
                self.weights[key] = (now - last[resource]) % (1 << 128)
                last[resource] = now
                before = key[:3] + (key[3] - 1,)
                if before in self.weights:
                    self.weights[key] = (self.weights[key] + self.weights[before]) % (1 << 128)
        for key in self.keys:
            api.delete(*key)
        assert len(set(self.weights.values())) == len(self.weights)


def said(calm, start, resource, rv):
    """The line of a version, or None."""
    for line in calm.lines[start:]:
        if (line["resource"], line["resource_version"]) == (resource, rv):
            return line
    return None


class Book:
    """What the server held at each version: its count and digest, and each change."""

    def __init__(self, pool, store):
        self.pool, self.store = pool, store
        self.random = random.Random(1)
        self.held = {}
        self.versions = {r: [store.rv] for r in RESOURCES}
        self.sums = {r: [(0, 0)] for r in RESOURCES}
        self.told = {}      # {(resource, name): {version}} of one namespace
        self.changes = 0

    def change(self, count, lost=False, window=100000):
        """
        So many objects get another state, and perhaps another uid; lost: nobody
        is told of what is put.  The server's loop calls it.
        """
        for _ in range(count):
            key = self.random.choice(self.pool.keys)
            old = self.held.pop(key, None)
            number, digest = self.sums[key[0]][-1]
            if old is not None:
                number, digest = number - 1, digest - self.pool.weights[key + (old,)]
            variant = self.random.randrange(VARIANTS + 1)
            if old is not None and old // 2 != variant // 2:
                self.store.delete(*key)
                self.note(key, number, digest)
            if variant < VARIANTS:
                self.store.put_raw(*key, self.pool.texts[key + (variant,)], lost=lost)
                self.held[key] = variant
                self.note(key, number + 1, digest + self.pool.weights[key + (variant,)])
        if len(self.store.log) > 2 * window:
            self.store.forget(self.store.rv - window)

    def note(self, key, count, digest):
        """What was done last."""
        resource, ns, name = key
        self.versions[resource].append(self.store.rv)
        self.sums[resource].append((count, digest % (1 << 128)))
        if ns == TOLD:
            self.told.setdefault((resource, name), set()).add(self.store.rv)
        self.changes += 1

    def at(self, resource, rv):
        """(count, digest) at a version."""
        place = bisect.bisect_right(self.versions[resource], rv) - 1
        return self.sums[resource][place]


class Checks:
    """Looks at the status all the while, and follows the events of a namespace."""

    def __init__(self, gateway, book):
        self.gateway, self.book = gateway, book
        self.seen = {r: set() for r in RESOURCES}
        self.newest = dict.fromkeys(RESOURCES, 0)
        self.events = collections.Counter()
        self.known, self.stream = {}, None
        self.wrong = []
        self.stop = threading.Event()
        self.threads = [
            threading.Thread(target=self.run, args=(step,)) for step in (self.look, self.follow)
        ]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_exc):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def run(self, step):
        """Until it is stopped, or something is wrong."""
        try:
            while not self.stop.wait(0.002) and not self.wrong:
                step()
        except Exception as error:  # noqa: B902 - told by the test's thread
            self.wrong.append(repr(error))

    def expect(self, good, what):
        """Notes what is wrong."""
        if not good:
            self.wrong.append(what)

    def look(self):
        """Versions, counts and digests of one answer."""
        for row in self.gateway.status.informer()["resources"]:
            resource, rv = row["resource"], int(row["resource_version"] or 0)
            self.expect(rv >= self.newest[resource], f"{resource} {rv} goes back")
            self.newest[resource] = max(rv, self.newest[resource])
            if rv:
                found = (row["objects"], int(row["digest"], 16))
                self.expect(found == self.book.at(resource, rv), f"{row}: {found}")
                self.expect(not row["refused"], f"{row}")
                self.seen[resource].add(rv)

    def follow(self):
        """Events of a namespace, by a client that connects again when it is cut off."""
        if self.stream is None or self.stream.closed:
            path = f"/kube/api/v1/events?namespace={TOLD}"
            last = self.stream and self.stream.id
            try:
                self.stream = Events(self.gateway.status_port, path, last=last)
            except OSError:
                return
        for event in self.stream.read().events:
            self.judge(event)
        self.stream.events.clear()

    def judge(self, event):
        """
        Each change of an object follows the one before, and was one; a version
        that changed nothing but itself is not told.
        """
        self.events[event.kind] += 1
        if "name" not in event.data:
            self.known.clear()
            return
        key = (event.data["resource"], event.data["name"])
        old, rv = (int(event.data.get(f + "resource_version", 0)) for f in ("old_", ""))
        self.expect(rv in self.book.told.get(key, ()), f"{event} was no change")
        if key in self.known:
            kind, before = self.known[key]
            good = {
                "add": kind == "delete" and before < rv,
                "update": kind != "delete" and before <= old < rv,
                "delete": kind != "delete" and before <= rv,
            }[event.kind]
            self.expect(good, f"{event} after {kind} {before}")
        self.known[key] = (event.kind, rv)


class Run:
    """A cluster that changes, an nginx that follows, and what is done to them."""

    # What the server is asked for by each interruption, of each resource; a
    # refused token may be sent for both before it is read again.
    WATCH = collections.Counter(watch=1)
    LISTS = collections.Counter(watch=2, list=1) if WATCH_LIST == "off" else collections.Counter(
        watch=1, stream=1
    )

    def __init__(self, cluster, services):
        self.cluster, self.api = cluster, cluster.api
        self.pool = Pool(services)
        self.pool.weigh(self.api)
        self.book = Book(self.pool, self.api.core.store)
        self.change(len(self.pool.keys))
        self.tokens, self.rotated = 0, 0.0
        self.gateway = cluster.nginx(CONF, more="token_file token;", start=False)
        self.token()
        self.gateway.start()
        self.gateway.status.wait_synced()
        self.gateway.allow(r"exited on signal 9")
        self.cluster.steady(self.gateway)
        self.start = len(self.api.requests)
        self.done, self.due = collections.Counter(), collections.Counter()
        self.api.reset_max()

    def change(self, count, lost=False):
        """So many changes, at once for the server."""
        self.api.run(self.book.change, count, lost)

    # Interruptions

    def forgotten(self):
        """The watches end, and their version is too old when they come again."""

        def run():
            push(self.api.core, None, "end", "clean")
            self.book.change(200)
            self.book.store.compact()

        self.api.run(run)
        return self.LISTS

    def restart(self):
        """Connections are cut and refused, while objects change."""
        self.api.refuse()
        self.change(200)
        self.api.listen()
        return self.WATCH

    def death(self):
        """The informer is killed; another one goes on where it was."""
        self.gateway.kill(signal.SIGKILL, self.gateway.informer())
        self.change(200)
        return self.WATCH

    def reload(self):
        """It hands over to that of the new configuration."""
        self.change(100)
        self.gateway.reload()
        self.change(100)
        return self.WATCH

    def token(self):
        """Another token, by symbolic links as kubelet swaps them; the old one is refused."""
        self.tokens += 1
        gateway, token, folder = self.gateway, f"token-{self.tokens}", f"v{self.tokens}"
        self.api.auth.add_token(token)
        gateway.write(f"{folder}/token", token)
        os.symlink(folder, gateway.path("..tmp"))
        os.rename(gateway.path("..tmp"), gateway.path("..data"))
        if self.tokens == 1:
            os.symlink("..data/token", gateway.path("token"))
        for old in set(self.api.auth.tokens) - {token}:
            self.api.auth.revoke_token(old)

    def rotation(self):
        """The token is replaced, and the watches end.  Files are read once a second."""
        time.sleep(max(0, self.rotated + 1.1 - time.monotonic()))
        self.token()
        self.change(200)
        self.api.close_watches()
        self.rotated = time.monotonic()
        return self.WATCH

    def asked(self):
        """What the server was asked for, by resource; what it refused is apart."""
        found = collections.Counter()
        for r in self.api.requests[self.start :]:
            what = "refused" if r.auth == "invalid" else "stream" if r.streamed else r.verb
            found[r.resource, what] += 1
        return found

    def interrupt(self, how):
        """Does it, and waits until all is as it was; the server saw what is due."""
        due = how()
        self.done[how.__name__] += 1
        for resource in RESOURCES:
            for what, count in due.items():
                self.due[resource, what] += count

        def asked():
            found = self.asked()
            return all(found[key] >= count for key, count in self.due.items())

        self.api.wait(asked, timeout=30 * PATIENCE, what=f"the requests after {how.__name__}")
        self.cluster.steady(self.gateway)
        for resource in RESOURCES:
            self.gateway.status.wait_rv(self.book.versions[resource][-1], resource)
        self.check_requests(how.__name__)

    def check_requests(self, what):
        """No request more than was needed, nor two of a kind at a time."""
        found = self.asked()
        refused = sum(found.pop((r, "refused"), 0) for r in RESOURCES)
        assert found == self.due, f"{what}: {found - self.due} too many, {self.due - found} missing"
        assert refused <= 2 * self.done["rotation"]
        for resource in RESOURCES:
            assert self.api.max_concurrent("watch", resource) <= 1
            assert self.api.max_concurrent("list", resource) <= 1


def run(cluster, figure, changes, services, rate=4000):
    """Interrupts each way in turn, until there were so many changes."""
    made = Run(cluster, services)
    kinds = [made.forgotten, made.restart, made.death, made.reload, made.rotation]
    begun, first = time.monotonic(), made.book.changes
    with Checks(made.gateway, made.book) as checks:
        with repeated(lambda _: made.change(rate // 100), 100):
            while not checks.wrong and (not made.done or made.book.changes - first < changes):
                for kind in kinds:
                    made.interrupt(kind)
        took = time.monotonic() - begun
        count = made.book.changes - first
        for resource in RESOURCES:
            made.gateway.status.wait_rv(made.book.versions[resource][-1], resource)
        wait_until(lambda: checks.wrong or all(
            checks.newest[r] >= made.book.versions[r][-1] for r in RESOURCES
        ))
    assert not checks.wrong, checks.wrong[:5]
    made.check_requests("all of it")
    versions = sum(map(len, checks.seen.values()))
    assert versions >= 2 * sum(made.done.values()) and checks.events["update"] > 0
    figure(
        f"{count} changes at {count / took:.0f}/s, {dict(made.done)}; "
        f"{versions} versions had the right count and digest, events of one namespace: "
        f"{dict(checks.events)}; requests {dict(made.asked())}"
    )

    # and one that is lost is seen, or all of this would show nothing
    made.change(20, lost=True)
    made.change(20)
    with Checks(made.gateway, made.book) as checks:
        wait_until(lambda: checks.wrong, what="a lost change that is noticed")


@pytest.mark.cluster(merge_events=True)
def test_changes(cluster, figure):
    """The short form of t/proof/test_million.py: each interruption once."""
    run(cluster, figure, 2000, services=16)
