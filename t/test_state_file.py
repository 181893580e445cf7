# The state file: a cold start while the API server is away serves from it, and
# nothing that is not ours, whole, young and of this server is believed.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Cold starts with and without a state file."""

import concurrent.futures
import contextlib
import datetime
import fcntl
import json
import itertools
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import termios
import threading
import time

import client
import objects
import pytest
import test_views as views
from apiserver import ApiServer
from cluster import Cluster, informer, root
from library import Clock, preloaded
from nginx import PATIENCE, WAIT, Timeout, never, wait_until

PROGRAM = os.path.join(os.environ.get("KUBE_BUILD_DIR", "build/release"), "kube-informer")
CONF = """
    upstream web { kube_service shop/web; }
    upstream fail { kube_service shop/web unsynced=fail; }
    server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://web; }
        location /fail { proxy_pass http://fail; }
        location = /state { kube_ready allow_state; }
    }
"""

NAME = "default.state"
ASK = NAME + ".ask"
KEEP = "state_path state; state_max_age 1h;"


@pytest.fixture(scope="module")
def seed(request):
    """A cluster, and the bytes of a state file of it, written once for all."""
    with Cluster() as made:
        made.pods_of_web = made.service("shop", "web", 2)
        gateway = made.nginx(CONF, block=informer(made.api.url, state=KEEP))
        gateway.status.wait(lambda i: i["state_file"]["written"])
        made.mode = os.stat(gateway.path("state", NAME))
        made.dir_mode = os.stat(gateway.path("state"))
        with open(gateway.path("state", NAME), "rb") as f:
            made.bytes = f.read()
        made.running.remove(gateway)
        gateway.stop()
        yield made


@pytest.fixture
def away(seed, request):
    """The same with the API server away; it is back afterwards."""
    request.node.gateways = lambda: seed.running
    seed.api.refuse()
    yield seed
    for gateway in list(seed.running):
        seed.running.remove(gateway)
        gateway.stop()
    seed.api.refuse()
    seed.api.listen()


def read(path):
    """The bytes of a file."""
    with open(path, "rb") as f:
        return f.read()


def own(path):
    """Makes a file belong to the user nginx runs as."""
    if root():
        import pwd

        user = pwd.getpwnam("nobody")
        os.chown(path, user.pw_uid, user.pw_gid)


def cold(seed, contents, keep=KEEP, more="", mode=0o600, http=CONF, write=None, env=None):
    """Starts nginx on a directory with that file (None: with none)."""
    block = informer(seed.api.url, more, state=keep)
    gateway = seed.nginx(http, block=block, start=False, env=env)
    os.makedirs(gateway.path("state"), mode=0o700)
    own(gateway.path("state"))
    if contents is not None:
        gateway.write("state/" + NAME, contents, mode)
        own(gateway.path("state", NAME))
    if write is not None:
        write(gateway)
    return gateway.start()


def limited(pid):
    """No file of a process grows beyond 64 bytes; its own user alone may say so."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        ids = dict(line.split(":", 1) for line in f)
    user, group = (int(ids[name].split()[0]) for name in ("Uid", "Gid"))
    change = {} if user == os.getuid() else {"user": user, "group": group, "extra_groups": []}
    subprocess.run(["prlimit", "--fsize=64:64", "--pid", str(pid)], check=True, **change)


def unused(gateway, says=None):
    """Nothing is served, and the log says why."""
    gateway.status.wait_state("backoff", ns="shop")
    if says is not None:
        gateway.wait_log(says)
    answer = gateway.get()
    assert (answer.status, answer.headers["x-kube-error"]) == (502, "not_synced")
    assert gateway.status.informer()["state_file"]["in_use"] is False
    assert gateway.get("/state").status == 503


def opened(gateway, suffix):
    """Descriptors of the informer process whose files' names end so; root alone may look."""
    folder, found = f"/proc/{gateway.informer()}/fd", []
    if not root():
        return found
    for fd in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"{folder}/{fd}"))
    return [name for name in found if name.endswith(suffix)]


def another(path, before):
    """The inode of the file that the next nginx asks for, which may not wait until it is there."""
    wait_until(lambda: os.stat(path).st_ino != before)
    return os.stat(path).st_ino


def unread(fd):
    """Bytes that were written to a pipe and that nobody has read yet."""
    found = bytearray(4)
    fcntl.ioctl(fd, termios.FIONREAD, found)
    return int.from_bytes(found, sys.byteorder)


def asked(gateway, then=lambda: None, timeout=None):
    """Asks; waits for the new file: the second one may have the first one's number."""

    def stands():
        with contextlib.suppress(FileNotFoundError):
            found = os.stat(gateway.path("state", NAME))
            return found.st_ino, found.st_mtime_ns

    def heard():
        """Nobody opens a pipe for writing that nobody reads."""
        with contextlib.suppress(OSError):
            return os.open(gateway.path("state", ASK), os.O_WRONLY | os.O_NONBLOCK)

    before, fd = stands(), wait_until(heard)
    try:
        assert os.write(fd, b"wwww" * 64) == 256
        wait_until(lambda: not unread(fd))
    finally:
        os.close(fd)
    then()
    wait_until(lambda: stands() != before, timeout)


def served(gateway):
    """Requests go where the file says."""
    gateway.status.wait(lambda i: i["state_file"]["in_use"])
    gateway.wait_status_code(200)
    # it is in use from its first object on, and whole only then
    wait_until(lambda: gateway.get("/state").status == 200)


def contents(gateway):
    """The bytes of its state file."""
    return read(gateway.path("state", NAME))


def written(gateway):
    """Unix seconds, as the status shows it."""
    text = gateway.status.informer()["state_file"]["written"]
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def two(made, keep=KEEP, **more):
    """A gateway of two namespaces with a Service each, of which the second is "left-behind"."""
    made.service("shop", "web")
    made.service("two", "left-behind")
    block = informer(made.api.url, "namespaces shop two;", state=keep)
    return made.nginx(CONF, block=block, **more)


def forbid(made):
    """Takes back the rights to the second namespace; a list or watch has to come."""
    made.api.fault(ns="two", status=403, reason="Forbidden", times=None)


def forbidden(gateway):
    """Until that is told of both its resources."""
    gateway.status.wait(lambda i: [d["cause"] for d in i["degraded"]].count("forbidden") == 2)


def errors(gateway):
    """How many requests to the API server have failed."""
    return gateway.status.metrics().value("nginx_kube_errors_total")


def mapped(http):
    """CONF's text with an upstream beside, whose key is a header, X."""
    return (
        "upstream mapped { kube_service $http_x namespaces=shop unsynced_wait=600s; }\n"
        + http.replace(
            "location / {", "location /mapped { proxy_pass http://mapped; }\nlocation / {"
        )
    )


def large(made):
    """A Service in 8 slices, of 8000 endpoints that nobody listens at."""
    for n in range(8):
        nets = [(4 * n + i // 250, i % 250 + 1) for i in range(1000)]
        pods = [objects.endpoint(f"127.9.{net}.{host}") for net, host in nets]
        if n == 0:
            made.service("shop", "web", pods=pods)
        else:
            made.slice("shop", "web", pods, str(n + 1))


def die(gateway, times):
    """Kills the informer, as often, each time once another one has the zone."""
    gateway.allow(r"cache manager process \d+ exited on signal 9|crash_loop")
    taken = gateway.status.informer()["writer"]["takeovers"]
    for n in range(taken + 1, taken + times + 1):
        gateway.kill(signal.SIGKILL, gateway.informer())
        gateway.status.wait(lambda i: i["writer"]["takeovers"] == n)  # noqa: B023


class TestUsed:
    """The good file."""

    def test_serves_from_it(self, away):
        gateway = cold(away, away.bytes)
        served(gateway)
        answer = gateway.get()
        assert answer.headers["x-kube-endpoint-state"] == "state_file"
        assert answer.headers["x-kube-synced"] in ("0", "false")
        assert not opened(gateway, ".state")
        found = gateway.status.informer()
        assert found["synced"] is False and found["ready"] is False
        assert client.request(gateway.status_port, "/ready").status == 503
        assert gateway.get("/state").status == 200
        answer = gateway.get("/fail")
        assert (answer.status, answer.headers["x-kube-error"]) == (502, "not_synced")

    def test_who_wants_none_of_it_waits(self, away):
        """For as long as was said, though the server is away."""
        gateway = cold(away, away.bytes, http=CONF.replace("=fail", "=fail unsynced_wait=60s"))
        served(gateway)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting, failed = pool.submit(gateway.get, "/fail"), errors(gateway)
            wait_until(lambda: errors(gateway) >= failed + 3)
            assert not waiting.done()
            away.api.listen()
            assert waiting.result().status == 200

    def test_an_object_of_it_kills_the_process(self, away, public_path):
        """After two deaths it is passed over and counted; the file is in use."""
        with preloaded("poison") as library:
            env = {"LD_PRELOAD": library, "KUBE_POISON": "state_file:web-"}
            gateway = cold(away, away.bytes, env=env)
            gateway.allow(r"cache manager process \d+ exited|AddressSanitizer|deadly signal")
            # the first to load it says that it is in use, and dies
            wait_until(lambda: gateway.get("/state").status == 200)
        answer = gateway.get()
        assert (answer.status, answer.headers["x-kube-error"]) == (502, "not_synced")
        lines = gateway.grep_log("crashed_informer: ")
        assert len(lines) == 2 and all("(state_file, signal" in x for x in lines), lines
        wait_until(
            lambda: gateway.status.metrics().value(
                "nginx_kube_skipped_objects_total",
                resource="endpointslices",
                reason="crashed_informer",
            )
            == 1
        )

    def test_until_the_server_answers(self, away):
        gateway = cold(away, away.bytes)
        served(gateway)
        away.api.listen()
        new = away.pods(1, "new")
        away.slice("shop", "web", new)
        with gateway.load() as load:
            gateway.wait_backends({"new-1"})
        assert not load.failures
        gateway.status.wait(lambda i: not i["state_file"]["in_use"] and i["synced"])
        assert gateway.get().headers["x-kube-endpoint-state"] == "ready"
        away.slice("shop", "web", away.pods_of_web)
        gateway.wait_backends({p.name for p in away.pods_of_web})

    def test_until_the_server_says_the_same(self, away):
        """Endpoints that have not changed are the server's from then on."""
        gateway = cold(away, away.bytes)
        served(gateway)
        assert gateway.get().headers["x-kube-endpoint-state"] == "state_file"
        away.api.listen()
        gateway.status.wait(lambda i: not i["state_file"]["in_use"] and i["synced"])
        assert gateway.get().headers["x-kube-endpoint-state"] == "ready"

    def test_a_list_under_way_is_awaited(self, seed, request):
        """It is for a server that is away: Pods it tells of may be gone."""
        request.node.gateways = lambda: seed.running
        new = seed.pods(1, "new")
        seed.slice("shop", "web", new)
        slow = seed.api.fault(verb="list", resource="endpointslices", delay=2, times=None)
        http = CONF.replace("shop/web;", "shop/web unsynced_wait=60s;")
        gateway = cold(seed, seed.bytes, http=http)
        try:
            gateway.status.wait(lambda i: i["state_file"]["in_use"] or i["synced"])
            answer = gateway.get()
            assert answer.backend == "new-1", answer
            assert answer.headers["x-kube-endpoint-state"] == "ready"
            assert slow.fired == 1
        finally:
            seed.api.clear_faults()
            seed.slice("shop", "web", seed.pods_of_web)
            seed.running.remove(gateway)
            gateway.stop()

    @pytest.mark.parametrize("how", ["reload", "killed"])
    def test_a_list_under_way_is_awaited_of_another_informer(self, seed, request, how):
        """Of a Service that has changed since, and of one that it does not know."""
        request.node.gateways = lambda: seed.running
        gate = threading.Event()
        http = CONF.replace("shop/web;", "shop/web unsynced_wait=60s;", 1)
        for name, key in (("late", "shop/late"), ("mapped", "$http_x namespaces=shop")):
            upstream = f"upstream {name} {{ kube_service {key} unsynced_wait=60s; }}\n"
            location = f"location /{name} {{ proxy_pass http://{name}; }}"
            http = upstream + http.replace("location / {", location + "\nlocation / {")
        asks = [("/", ""), ("/late", ""), ("/mapped", "shop/web"), ("/mapped", "shop/late")]
        seed.slice("shop", "web", seed.pods(1, "new"))
        seed.service("shop", "late", pods=seed.pods(1, "late"))
        seed.api.fault(verb="list", gate=gate, times=None)
        gateway = cold(seed, seed.bytes, more="namespaces shop;", http=http)
        try:
            gateway.status.wait(lambda i: i["state_file"]["in_use"])
            if how == "reload":
                gateway.reload(gone=True)
            else:
                gateway.allow(r"cache manager process \d+ exited on signal 9")
                gateway.kill(signal.SIGKILL, gateway.informer())
            gateway.status.wait(lambda i: i["writer"]["takeovers"] != 0)
            with concurrent.futures.ThreadPoolExecutor(len(asks)) as pool:
                waiting = [pool.submit(gateway.get, path, headers={"X": x}) for path, x in asks]
                never(lambda: any(w.done() for w in waiting), 1)
                gate.set()
                assert [w.result().backend for w in waiting] == ["new-1", "late-1"] * 2
        finally:
            gate.set()
            seed.api.clear_faults()
            seed.api.delete("services", "shop", "late")
            seed.api.delete("endpointslices", "shop", "late-1")
            seed.slice("shop", "web", seed.pods_of_web)
            seed.running.remove(gateway)
            gateway.stop()

    def test_a_list_under_way_is_awaited_of_a_large_service(self):
        """Of more endpoints than a look takes, none of which is there any more."""
        gate, key = threading.Event(), "shop/web unsynced_wait=600s;"
        with Cluster() as made:
            large(made)
            block = informer(made.api.url, "namespaces shop;", zone="kube 32m", state=KEEP)
            gateway = made.nginx(CONF.replace("shop/web;", key, 1), block=block)
            made.equal(gateway)
            asked(gateway)

            def change():
                for n in range(2, 9):
                    made.api.delete("endpointslices", "shop", f"web-{n}")
                made.slice("shop", "web", made.pods(1, "new"))
                made.api.fault(verb="list", gate=gate, times=None)

            try:
                gateway.restart(change=change)
                gateway.status.wait(lambda i: i["state_file"]["in_use"])
                wait_until(lambda: gateway.status.services())
                die(gateway, 1)
                with concurrent.futures.ThreadPoolExecutor(1) as pool:
                    waiting = pool.submit(gateway.get)
                    try:
                        never(waiting.done, 1)
                    finally:
                        gate.set()
                    assert waiting.result().backend == "new-1"
            finally:
                gate.set()

    def test_a_large_service_that_was_listed_serves_on(self):
        """Though the file is in use yet, for another namespace that was not."""
        key = "shop/web unsynced=fail unsynced_wait=600s;"
        http = CONF.replace("shop/web;", key, 1).replace(
            "location / {", "location / { proxy_next_upstream off;"
        )
        watched = "namespaces shop two;"
        with Cluster() as made:
            large(made)
            made.service("two", "web")
            block = informer(made.api.url, watched, zone="kube 32m", state=KEEP)
            gateway = made.nginx(http, block=block)
            made.equal(gateway)
            asked(gateway)
            away = {"verb": "list", "ns": "two", "status": 503, "times": None}
            gateway.restart(change=lambda: made.api.fault(**away))
            gateway.status.wait_state("backoff", ns="two")
            gateway.status.wait_state("watching", ns="shop")
            assert gateway.status.informer()["state_file"]["in_use"]
            made.api.refuse()
            less = [f" label_selector {what} 'a!=b';" for what in ("services", "endpointslices")]
            block = informer(made.api.url, "".join([watched, *less]), zone="kube 32m", state=KEEP)
            gateway.change(block=block, gone=True)
            gateway.status.wait(lambda i: i["writer"]["takeovers"] != 0)
            assert gateway.get().headers["x-kube-endpoint-state"] == "ready"

    @pytest.mark.slow
    def test_a_crash_loop_is_like_an_outage(self, seed, request):
        """Lists are put off, and none of them fails: nobody waits for these."""
        request.node.gateways = lambda: seed.running
        gate = threading.Event()
        http = mapped(CONF.replace("shop/web;", "shop/web unsynced_wait=600s;", 1))
        seed.api.fault(verb="list", gate=gate, times=None)
        gateway = cold(seed, seed.bytes, more="namespaces shop;", http=http)
        try:
            gateway.status.wait(lambda i: i["state_file"]["in_use"])
            die(gateway, 8)
            lists, key = seed.api.count(verb="list"), {"X": "shop/web"}
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                asks = [pool.submit(gateway.get, p, headers=key) for p in ("/", "/mapped")]
                try:
                    wait_until(lambda: all(a.done() for a in asks))
                    assert seed.api.count(verb="list") == lists
                finally:
                    gate.set()
                assert [a.result().headers["x-kube-endpoint-state"] for a in asks] == [
                    "state_file"
                ] * 2
        finally:
            gate.set()
            seed.api.clear_faults()
            seed.running.remove(gateway)
            gateway.stop()

    @pytest.mark.slow
    @pytest.mark.parametrize("path", ["/", "/mapped"])
    def test_the_list_after_a_crash_loop_is_awaited(self, seed, request, path):
        """Once it is put off no more, by who asks then for the first time."""
        request.node.gateways = lambda: seed.running
        gate = threading.Event()
        http = mapped(CONF.replace("shop/web;", "shop/web unsynced_wait=600s;", 1))
        seed.slice("shop", "web", seed.pods(1, "new"))
        seed.api.fault(verb="list", gate=gate, times=None)
        gateway = cold(seed, seed.bytes, more="namespaces shop;", http=http)
        try:
            gateway.status.wait(lambda i: i["state_file"]["in_use"])
            die(gateway, 5)
            # until then all of them are damped
            begun = {"listing", "streaming"}
            gateway.status.wait(lambda i: begun & {row["state"] for row in i["resources"]})
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(gateway.get, path, headers={"X": "shop/web"})
                try:
                    never(waiting.done, 1)
                finally:
                    gate.set()
                assert waiting.result().backend == "new-1"
        finally:
            gate.set()
            seed.api.clear_faults()
            seed.slice("shop", "web", seed.pods_of_web)
            seed.running.remove(gateway)
            gateway.stop()

    @pytest.mark.slow
    def test_who_wants_no_file_awaits_the_list_after_a_crash_loop(self, seed, request):
        """For as long as it is put off: what the file tells is no answer."""
        request.node.gateways = lambda: seed.running
        gate = threading.Event()
        key = "$http_x namespaces=shop unsynced=fail unsynced_wait=600s;"
        seed.slice("shop", "web", seed.pods(1, "new"))
        seed.api.fault(verb="list", gate=gate, times=None)
        http = CONF.replace("shop/web;", key, 1)
        gateway = cold(seed, seed.bytes, more="namespaces shop;", http=http)
        try:
            gateway.status.wait(lambda i: i["state_file"]["in_use"])
            die(gateway, 5)
            gateway.status.wait_state("damped")
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(gateway.get, headers={"X": "shop/web"})
                try:
                    never(waiting.done, 1)
                finally:
                    gate.set()
                assert waiting.result().backend == "new-1"
        finally:
            gate.set()
            seed.api.clear_faults()
            seed.slice("shop", "web", seed.pods_of_web)
            seed.running.remove(gateway)
            gateway.stop()

    def test_a_list_that_has_begun_holds_none_of_it_back(self):
        """
        It tells first of the Service that is the last of the file, by a server
        quicker than we are, and has no end.
        """
        with preloaded("dawdle") as library, Cluster() as made:
            made.api.load_scale(2000, 1)
            more = "namespaces all; watch_list on;"
            block = informer(made.api.url, more, zone="kube 16m", state=KEEP)
            http = CONF.replace("shop/web;", "aaa/web unsynced_wait=0;")
            gateway = made.nginx(http, block=block, env={"LD_PRELOAD": library})
            made.service("aaa", "web")
            made.equal(gateway)
            asked(gateway)
            stalled = made.api.fault(
                verb="list", resource="endpointslices", at_body=50000, cut="stall", times=None
            )
            gateway.restart()
            wait_until(lambda: stalled.fired)
            gateway.status.wait(lambda i: i["state_file"]["in_use"])
            wait_until(lambda: len(gateway.status.services()) == 2001)
            served(gateway)
            assert gateway.status.informer()["state_file"]["in_use"]

    @pytest.fixture
    def slowly(self, public_path):
        """While there is this file, one is loaded in a second a turn."""
        return public_path / "slowly"

    @pytest.fixture
    def loading(self, slowly):
        """A gateway that has a part of its file, while the server is away."""
        with preloaded("dawdle") as library, Cluster() as made:
            made.api.load_scale(6000, 1)
            block = informer(made.api.url, "namespaces all;", zone="kube 32m", state=KEEP)
            env = {"LD_PRELOAD": library, "KUBE_DAWDLE_FILE": str(slowly)}
            gateway = made.nginx(CONF, block=block, env=env)
            made.service("shop", "web")
            made.equal(gateway)
            # of so many the last one may not be done in the time that an end has
            asked(gateway)
            slowly.touch()
            gateway.restart(change=made.api.refuse)
            wait_until(lambda: gateway.status.services())
            assert gateway.get("/state").status == 503
            yield gateway

    @pytest.mark.parametrize("how", ["killed", "reload"])
    def test_who_is_loading_ends(self, loading, slowly, how):
        """The next one has the rest of the file, while the server stays away."""
        if how == "reload":
            loading.reload(gone=True)
        else:
            loading.allow(r"cache manager process \d+ exited on signal 9")
            loading.kill(signal.SIGKILL, loading.informer())
        loading.wait_log("objects of state file .* in use", 2)
        slowly.unlink()
        wait_until(lambda: len(loading.status.services()) == 6001)
        served(loading)

    @pytest.mark.slow
    def test_who_crashes_while_loading(self, loading, slowly):
        """What is still to come of the file is awaited, whatever is put off."""
        loading.change(http=mapped(loading.http), gone=True)
        die(loading, 6)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(loading.get, "/mapped", headers={"X": "shop/web"})
            try:
                never(waiting.done, 0.5)
            finally:
                slowly.unlink()
            assert waiting.result().headers["x-kube-endpoint-state"] == "state_file"

    @pytest.mark.parametrize(
        "change",
        [(KEEP, "state_path off;"), ("namespaces all;", "namespaces shop;")],
        ids=["off", "namespaces"],
    )
    def test_a_part_of_it_is_never_all(self, loading, slowly, change):
        """Of no use after a reload: what is there serves, and the rest after the next one."""
        block = loading.block
        loading.change(block=block.replace(*change), gone=True)
        held = len(loading.status.services())
        never(lambda: loading.get("/state").status == 200, 1)
        assert held < 6001 and loading.status.informer()["state_file"]["in_use"]
        slowly.unlink()
        loading.change(block=block, gone=True)
        wait_until(lambda: len(loading.status.services()) == 6001)
        served(loading)

    def test_reload_keeps_serving_from_it(self, away):
        gateway = cold(away, away.bytes)
        served(gateway)
        gateway.reload(gone=True)
        served(gateway)

    def test_reload_without(self, away):
        """It serves until the server answers, and is named no more."""
        gateway = cold(away, away.bytes)
        served(gateway)
        taken = gateway.status.informer()["writer"]["takeovers"]
        gateway.change(block=informer(away.api.url, state="state_path off;"), gone=True)
        gateway.status.wait(lambda i: i["writer"]["takeovers"] > taken)
        never(lambda: not gateway.status.informer()["state_file"]["in_use"], 1)
        served(gateway)
        away.api.listen()
        none = {"written": None, "in_use": False, "error": None}
        gateway.status.wait(lambda i: i["synced"] and i["state_file"] == none)

    def test_what_is_gone_by_then_goes(self, away):
        """The file's objects are no more than a guess: the list corrects it."""
        gateway = cold(away, away.bytes)
        served(gateway)
        old = away.api.get("services", "shop", "web")
        away.api.delete("services", "shop", "web")
        away.api.listen()
        wait_until(lambda: gateway.get().headers["x-kube-error"] == "no_service")
        away.api.put(old)
        gateway.wait_status_code(200)

    def test_previous_file_is_the_second_choice(self, away):
        gateway = cold(
            away,
            away.bytes[:100],
            write=lambda g: (
                g.write("state/" + NAME + ".prev", away.bytes, 0o600),
                own(g.path("state", NAME + ".prev")),
            ),
        )
        served(gateway)

    def test_addresses_are_judged_now(self, away):
        """The file is no way around the address policy."""
        gateway = cold(away, away.bytes, more="deny_address 127.0.0.0/8;")
        gateway.status.wait(lambda i: i["state_file"]["in_use"])
        # said a moment before it is published
        wait_until(lambda: gateway.get().headers["x-kube-error"] == "address_denied")


@pytest.fixture(name="clock")
def make_clock(public_path):
    """
    clock.later(gateway, condition): until it holds of the gateway's state file;
    70 s more have passed each time it did not for a while: what takes a loaded
    machine long is no outage of hours.  clock.env: of that gateway.
    """
    made = Clock(public_path)
    seconds = itertools.count(70, 70)

    def later(gateway, condition, what=None):
        def check():
            if not looks or time.monotonic() >= looks[-1] + 0.3:
                made.ahead(next(seconds))
                looks.append(time.monotonic())
            return condition(gateway.status.informer()["state_file"])

        looks = []
        wait_until(check, what=what)

    made.later = later
    return made


class TestFile:
    """The file itself."""

    def test_modes(self, seed):
        assert stat.S_IMODE(seed.mode.st_mode) == 0o600
        assert stat.S_IMODE(seed.dir_mode.st_mode) == 0o700
        if root():
            assert seed.mode.st_uid != 0 and seed.dir_mode.st_uid == seed.mode.st_uid

    def test_written_again_after_a_change_only(self, seed):
        assert b"shop" in seed.bytes and b"Bearer" not in seed.bytes

    @pytest.mark.slow
    def test_written_again_when_the_clock_is_set_back(self, public_path):
        """Else it would be of the future, and of no use, until it changes."""
        clock = Clock(public_path, steady=False)
        clock.ahead(86400)
        with Cluster() as made:
            made.service("shop", "web")
            gateway = made.nginx(CONF, block=informer(made.api.url, state=KEEP), env=clock.env)

            def written():
                return gateway.status.informer()["state_file"]["written"]

            first = wait_until(written)
            clock.back()
            wait_until(lambda: written() < first, 120)
            made.api.refuse()
            gateway.restart()
            served(gateway)

    def test_is_as_old_as_what_it_tells(self, public_path):
        """Its age counts from when the cache was current, not from its writing."""
        clock = Clock(public_path)
        with Cluster() as made:
            made.service("shop", "web")
            gateway = made.nginx(CONF, block=informer(made.api.url, state=KEEP), env=clock.env)
            made.api.refuse()
            gateway.status.wait_state("backoff")
            away = time.time()
            clock.ahead(100)
            gateway.status.wait(lambda i: i["state_file"]["written"])
            # one may have been written before that
            asked(gateway)
            clock.back()
            gateway.restart()
            served(gateway)
            assert written(gateway) < away - 90

    def test_many_slices(self):
        """One that is written in several turns, which none of an idle informer is late for."""
        with Cluster() as made:
            made.service("shop", "web")
            made.api.load_scale(3000, 4)
            block = informer(made.api.url, "namespaces all;", zone="kube 16m", state=KEEP)
            gateway = made.nginx(CONF, block=block)
            began = time.monotonic()
            gateway.status.wait(lambda i: i["state_file"]["written"])
            assert time.monotonic() - began < 7 * PATIENCE
            assert os.path.getsize(gateway.path("state", NAME)) > 3 * 256 * 1024
            assert not opened(gateway, ".new")
            made.api.refuse()
            gateway.restart()
            served(gateway)
            (line,) = gateway.grep_log(r"\d+ objects of state file")
            assert int(re.search(r"(\d+) objects", line).group(1)) >= 6002

    def test_one_namespace_is_forbidden(self):
        """It is of all others: who takes back the rights to one costs them nothing."""
        with Cluster() as made:
            made.service("shop", "web")
            forbid(made)
            block = informer(made.api.url, "namespaces shop two;", state=KEEP)
            gateway = made.nginx(CONF, block=block, sync=False)
            gateway.wait_status_code(200)
            asked(gateway)
            made.slice("shop", "web", made.pods(1, "new"))
            gateway.wait_backends({"new-1"})
            # as it ends it is written once more
            gateway.restart(change=made.api.refuse)
            served(gateway)
            assert gateway.get().backend == "new-1"
            made.api.listen()
            gateway.status.wait(lambda i: not i["state_file"]["in_use"])

    def test_who_is_forbidden_for_long_ages_nobody_else(self):
        """Longer than a file may be used: it has nothing of that one."""
        with Cluster() as made:
            gateway = two(made, keep="state_path state; state_max_age 1s;")
            asked(gateway)
            assert b"left-behind" in contents(gateway)
            forbid(made)
            made.api.close_watches(ns="two")

            def without():
                """With evidence of both resources of the other namespace."""
                made.service("shop", "later")
                gateway.status.wait_rv(made.api.rv, ns="shop")
                asked(gateway)
                return b"left-behind" not in contents(gateway)

            omitted = time.time()
            wait_until(without)
            assert b"later" in contents(gateway)
            assert written(gateway) > omitted - 1

    def test_what_was_restored_and_is_forbidden_holds_up_nobody(self, public_path):
        """A minute later a file is written beside what an older one had of that namespace."""
        clock = Clock(public_path)
        with Cluster() as made:
            gateway = two(made, env=clock.env)
            asked(gateway)
            # rights that come late cost nothing
            for change in (lambda: forbid(made), lambda: None):
                gateway.restart(change=change)
                forbidden(gateway)
                assert b"left-behind" in contents(gateway)
                assert gateway.status.informer()["state_file"]["in_use"]

            def a_change():
                """Which is seen when the one that is asked has had its turn."""
                gateway.status.wait_state("watching", ns="shop")
                made.slice("shop", "web", made.pods(1, "new"))
                gateway.wait_backends({"new-1"})
                heard.append(contents(gateway))

            # nor is who asks answered by less
            heard = []
            with pytest.raises(Timeout):
                asked(gateway, then=a_change, timeout=1)
            assert b"left-behind" in heard[0]
            clock.ahead(61)
            gateway.restart(change=made.api.refuse)
            assert b"left-behind" not in contents(gateway)
            served(gateway)
            assert gateway.get().backend == "new-1"

    @pytest.mark.parametrize("how", ["server", "selectors"])
    def test_what_was_listed_otherwise_and_is_forbidden(self, public_path, how):
        """Of another server, or with other selectors: a file of those of now has none of it."""
        clock = Clock(public_path)
        with Cluster() as made, Cluster() as other:
            gateway = two(made, env=clock.env)
            watched = "namespaces shop two;"
            asked(gateway)
            assert b"left-behind" in contents(gateway)
            if how == "server":
                other.service("shop", "web")
                made = other
            else:
                for what in ("services", "endpointslices"):
                    watched += f" label_selector {what} 'a!=b';"
            forbid(made)
            gateway.change(block=informer(made.api.url, watched, state=KEEP), gone=True)
            gateway.status.wait_state("watching", ns="shop")

            def a_minute_later():
                """Whoever sleeps until then is woken by a change."""
                clock.ahead(61)
                made.service("shop", "later")

            asked(gateway, then=a_minute_later)
            assert b"left-behind" not in contents(gateway)
            gateway.restart(change=made.api.refuse)
            served(gateway)
            assert not [s for s in gateway.status.services() if s["name"] == "left-behind"]

    def test_who_is_forbidden_leaves_it_time(self, public_path):
        """What is hardly young enough as nginx ends would be too old as it starts."""
        clock = Clock(public_path)
        with Cluster() as made:
            gateway = two(made, env=clock.env)
            forbid(made)
            made.api.close_watches(ns="two")
            forbidden(gateway)
            clock.ahead(1000)
            # evidence of both resources of the other namespace
            made.service("shop", "later")
            gateway.status.wait(
                lambda i: all(r["objects"] == 2 for r in i["resources"] if r["namespace"] == "shop")
            )
            # who asks starts from it at once
            asked(gateway)
            assert b"left-behind" in contents(gateway)
            gateway.restart(change=made.api.refuse)
            served(gateway)
            assert b"left-behind" not in contents(gateway)
            assert written(gateway) > time.time() - 900

    def test_an_outage_after_a_403(self, public_path):
        """It makes all older: who was forbidden at its beginning is in the file as any other."""
        clock = Clock(public_path)
        with Cluster() as made:
            gateway = two(made, env=clock.env)
            forbid(made)
            made.api.close_watches(ns="two")
            forbidden(gateway)
            made.api.refuse()
            clock.ahead(1000)
            gateway.restart()
            served(gateway)
            assert b"left-behind" in contents(gateway)
            made.api.listen()

    def test_rights_that_come_late(self, public_path):
        """A good file is not replaced by one without them, but when a minute is over."""
        clock = Clock(public_path)
        with Cluster() as made:
            made.service("shop", "web")
            made.service("two", "late")
            block = informer(made.api.url, "namespaces shop two;", state=KEEP)
            forbid(made)
            gateway = made.nginx(CONF, block=block, sync=False, env=clock.env)
            gateway.wait_status_code(200)
            clock.ahead(10)
            never(lambda: os.path.exists(gateway.path("state", NAME)), 1)
            made.api.clear_faults()
            # 5 s after the first sync: the minute has three quarters to go
            gateway.status.wait_synced()
            clock.ahead(16)
            gateway.status.wait(lambda i: i["state_file"]["written"], 40)
            assert b"late" in contents(gateway)

    def test_none_is_written_after_a_reload(self, seed):
        """The last one's age is of no use any more."""
        gateway = seed.nginx(CONF, block=informer(seed.api.url, state=KEEP))
        gateway.status.wait(lambda i: i["synced"] and i["state_file"]["written"])
        gateway.change(block=informer(seed.api.url, state="state_path off;"), gone=True)
        gateway.status.wait(lambda i: i["synced"] and not i["state_file"]["written"])
        seed.running.remove(gateway)
        gateway.stop()

    @pytest.mark.skipif(not root(), reason="needs root")
    def test_unwritable_directory_is_a_warning(self, seed):
        gateway = seed.nginx(CONF, block=informer(seed.api.url, state=KEEP), start=False)
        os.makedirs(gateway.path("state"), mode=0o755)
        gateway.start()
        gateway.status.wait_synced()
        found = gateway.status.wait(lambda i: i["state_file"]["error"])
        assert found["synced"] and gateway.get().status == 200
        (line,) = gateway.grep_log(r"state file.*not written")
        level = re.search(r"\[(\w+)\]", line).group(1)
        assert level in ("warn", "notice")
        assert 'at level "warn" or "notice"' in found["state_file"]["error"]
        (cause,) = found["degraded"]
        assert cause["cause"] == "state_file" and cause["since"] is not None

        # and of another directory after a reload, once more
        os.makedirs(gateway.path("other"), mode=0o755)
        other = KEEP.replace("state_path state", "state_path other")
        gateway.change(block=informer(seed.api.url, state=other), gone=True)
        assert "/other/" in gateway.wait_log(r"state file.*not written", 2)[-1]

        # and of none
        gateway.change(block=informer(seed.api.url, state="state_path off;"), gone=True)
        gateway.status.wait(lambda i: not i["state_file"]["error"] and not i["degraded"])

        # a failure of one that is named anew began with it; times have seconds
        now = "%Y-%m-%dT%H:%M:%SZ"
        wait_until(lambda: time.strftime(now, time.gmtime()) > cause["since"])
        gateway.change(block=informer(seed.api.url, state=other), gone=True)
        (again,) = gateway.status.wait(lambda i: i["degraded"])["degraded"]
        assert again["cause"] == "state_file" and again["since"] > cause["since"]
        seed.running.remove(gateway)
        gateway.stop()

    @pytest.mark.skipif(not root(), reason="needs root")
    def test_each_failure_is_said(self, seed, public_path, clock):
        """Once, until it is written again."""
        folder = public_path / "state"
        folder.mkdir()
        block = informer(seed.api.url, "idle_timeout 1h;", state=f"state_path {folder};")
        gateway = seed.nginx(CONF, block=block, env=clock.env)

        def fails(found):
            # one that is opened already may take the last change along
            seed.slice("shop", "web", seed.pods_of_web)
            return found["error"]

        for n in (1, 2):
            clock.later(gateway, fails)
            seed.equal(gateway)
            for _ in range(3):
                clock.later(gateway, lambda found: found["error"])
            assert len(gateway.grep_log("state file is not written")) == n
            own(folder)
            clock.later(gateway, lambda found: found["written"] and not found["error"])
            assert len(gateway.grep_log("is written again")) == n
            os.chown(folder, 0, 0)
        seed.running.remove(gateway)
        gateway.stop()

    def test_another_nginx_has_the_directory(self, seed, public_path, clock):
        """After minutes it is said; it is written once the other one has gone."""
        keep = f"state_path {public_path}/state;"
        block = informer(seed.api.url, "idle_timeout 1h;", state=keep)
        first = seed.nginx(CONF, block=block)
        first.status.wait(lambda i: i["state_file"]["written"])
        path = public_path / "state" / NAME
        before = os.stat(path).st_ino
        gateway = seed.nginx(CONF, block=block, env=clock.env)
        asked_for = another(path, before)
        clock.later(gateway, lambda found: found["error"])
        # it is said before the file is closed, which it tries again and again
        wait_until(lambda: not opened(gateway, ".lock"))
        assert os.stat(path).st_ino == asked_for
        lines = gateway.grep_log("state file is not written")
        assert len(lines) == 1 and "another nginx holds" in lines[0], lines
        seed.running.remove(first)
        first.stop()
        clock.later(gateway, lambda found: found["written"] and not found["error"])
        gateway.wait_log("is written again")
        assert os.stat(path).st_ino != asked_for
        seed.running.remove(gateway)
        gateway.stop()

    def anew(self, folder):
        """The directory is removed and made again, as by who tidies up."""
        shutil.rmtree(folder)
        folder.mkdir(mode=0o700)
        own(folder)

    def test_the_directory_is_made_anew(self, seed, public_path, clock):
        """What was locked and heard there is not what others find: it is done again."""
        folder = public_path / "state"
        block = informer(seed.api.url, "idle_timeout 1h;", state=f"state_path {folder};")
        gateway = seed.nginx(CONF, block=block, env=clock.env)
        clock.later(gateway, lambda found: found["written"])
        self.anew(folder)
        # and the one before it, where the clock went so far ahead that it is written again
        made = {NAME + suffix for suffix in ("", ".ask", ".lock")}
        clock.later(
            gateway, lambda _: made <= set(os.listdir(folder)), lambda: os.listdir(folder)
        )
        assert not opened(gateway, ".lock (deleted)") + opened(gateway, ".ask (deleted)")
        seed.running.remove(gateway)
        gateway.stop()

    def test_who_has_the_directory_by_then(self, seed, public_path):
        """Another nginx's pipe is not removed by the one that ends."""
        folder = public_path / "state"
        block = informer(seed.api.url, state=f"state_path {folder};")
        first = seed.nginx(CONF, block=block)
        first.status.wait(lambda i: i["state_file"]["written"])
        self.anew(folder)
        second = seed.nginx(CONF, block=block)
        wait_until(lambda: os.path.exists(folder / (NAME + ".ask")))
        before = os.stat(folder / (NAME + ".ask")).st_ino
        for gateway in (first, second):
            assert os.stat(folder / (NAME + ".ask")).st_ino == before
            seed.running.remove(gateway)
            gateway.stop()
        assert sorted(os.listdir(folder)) == [NAME, NAME + ".lock"]

    def test_limit_of_file_sizes(self, seed):
        """The signal of RLIMIT_FSIZE would end each informer: it is an error like any other."""
        block = informer(seed.api.url, state=KEEP)
        gateway = seed.nginx(CONF, block=block, start=False)
        # it writes none before it has seen the server
        seed.api.refuse()
        try:
            pid = wait_until(gateway.start().informer)
            # of that process alone, whose log is a file as well: nothing is said there
            limited(pid)
        finally:
            seed.api.listen()
        found = gateway.status.wait(lambda i: i["state_file"]["error"])
        assert "could not be written" in found["state_file"]["error"]
        assert "state_file" in {d["cause"] for d in found["degraded"]}
        assert gateway.informer() == pid and not os.path.exists(gateway.path("state", NAME))
        seed.slice("shop", "web", seed.pods_of_web)
        seed.equal(gateway)
        seed.running.remove(gateway)
        gateway.stop()

    def test_parent_that_does_not_exist(self, seed):
        block = informer(seed.api.url, state="state_path /nonexistent/a/b;")
        gateway = seed.nginx(CONF, block=block)
        assert gateway.get().status == 200
        seed.running.remove(gateway)
        gateway.stop()


def stopped(gateway, sig=signal.SIGTERM):
    """Ends an nginx whose directory stays."""
    gateway.own_prefix = False
    gateway.cluster.running.remove(gateway)
    gateway.stop(sig)


class TestStop:
    """What an orderly end leaves."""

    @pytest.fixture(autouse=True)
    def _remove(self, request):
        """Directories of those that were stopped."""
        self.gateways = []
        yield
        for gateway in self.gateways:
            shutil.rmtree(gateway.prefix, ignore_errors=True)

    @pytest.mark.parametrize("more", [{}, {"master": False}], ids=["", "single"])
    @pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGQUIT])
    def test_changes_since_the_last_file(self, sig, more):
        with Cluster() as made:
            made.service("shop", "web")
            gateway = made.nginx(CONF, block=informer(made.api.url, state=KEEP), **more)
            gateway.status.wait(lambda i: i["state_file"]["written"])
            made.slice("shop", "web", made.pods(1, "new"))
            gateway.wait_backends({"new-1"})
            gateway.restart(sig, made.api.refuse)
            served(gateway)
            gateway.wait_backends({"new-1"})
            left = [NAME + suffix for suffix in ("", ".lock", ".prev")]
            assert sorted(os.listdir(gateway.path("state"))) == left

    @pytest.mark.parametrize("more", [{}, {"master": False}], ids=["", "single"])
    def test_all_else_takes_long(self, public_path, more):
        """As on a loaded machine: a small file is written all the same."""
        slowly = public_path / "slowly"

        def change():
            made.api.refuse()
            slowly.unlink()

        with preloaded("dawdle") as library, Cluster() as made:
            made.service("shop", "web")
            env = {"LD_PRELOAD": library, "KUBE_DAWDLE_FILE": str(slowly)}
            block = informer(made.api.url, state=KEEP)
            gateway = made.nginx(CONF, block=block, env=env, **more)
            slowly.touch()
            gateway.restart(signal.SIGQUIT, change)
            served(gateway)

    def test_many_on_a_slow_disk(self):
        """The time is that of all files: none has a slice more that does not end it."""
        names = ["", *(f"b{n}" for n in range(7))]
        with preloaded("slow_disk") as library, Cluster() as made:
            made.api.load_scale(2000, 1)
            made.service("shop", "web")
            block = "".join(
                informer(made.api.url, "namespaces all;", name, f"kube{name} 8m", state=KEEP)
                for name in names
            )
            env = {"LD_PRELOAD": library, "KUBE_SLOW_DISK": "500000"}
            gateway = made.nginx(CONF, block=block, env=env)
            self.gateways.append(gateway)
            locks = [gateway.path("state", f"{name or 'default'}.state.lock") for name in names]
            wait_until(lambda: all(os.path.exists(lock) for lock in locks))
            stopped(gateway)
            assert not gateway.grep_log("exited on signal 9")
            assert not [name for name in os.listdir(gateway.path("state")) if "ask" in name]

    def test_before_the_first_file(self):
        with Cluster() as made:
            made.service("shop", "web")
            gateway = made.nginx(CONF, block=informer(made.api.url, state=KEEP))
            gateway.restart(change=made.api.refuse)
            served(gateway)

    def test_of_many_slices(self):
        """All of them, while there is time."""
        with Cluster() as made:
            made.service("shop", "web")
            made.api.load_scale(1500, 4)
            block = informer(made.api.url, "namespaces all;", zone="kube 16m", state=KEEP)
            gateway = made.nginx(CONF, block=block)
            gateway.status.wait_synced()
            gateway.restart(change=made.api.refuse)
            served(gateway)
            assert os.path.getsize(gateway.path("state", NAME)) > 256 * 1024

    def test_there_is_an_end_to_it(self):
        """One that takes longer is given up: the one before stays."""
        with preloaded("slow_disk") as library, Cluster() as made:
            made.api.load_scale(20000, 1)
            block = informer(made.api.url, "namespaces all;", zone="kube 64m", state=KEEP)
            gateway = made.nginx(CONF, block=block, env={"LD_PRELOAD": library})
            self.gateways.append(gateway)
            made.service("shop", "web")
            path = gateway.path("state", NAME)
            gateway.status.wait(lambda i: i["state_file"]["written"])
            made.slice("shop", "web", made.pods(1, "new"))
            gateway.wait_backends({"new-1"})
            before = os.stat(path).st_ino
            stopped(gateway)
            assert os.stat(path).st_ino == before
            assert not os.path.exists(path + ".new")

    @pytest.mark.skipif(not root(), reason="needs root")
    def test_the_directory_is_free_by_then(self):
        """Another tree has held it so far: the lock is taken at the end."""
        with Cluster() as made:
            made.service("shop", "web")
            gateway = made.nginx(CONF, block=informer(made.api.url, state=KEEP), start=False)
            self.gateways.append(gateway)
            os.mkdir(gateway.path("state"), mode=0o700)
            with open(gateway.path("state", NAME + ".lock"), "wb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                own(gateway.path("state"))
                own(lock.name)
                gateway.start()
                gateway.status.wait_synced()
                gateway.wait_status_code(200)
            stopped(gateway)
            assert os.path.isfile(gateway.path("state", NAME))

    def test_nothing_has_changed(self):
        with Cluster() as made:
            made.service("shop", "web")
            gateway = made.nginx(CONF, block=informer(made.api.url, state=KEEP))
            self.gateways.append(gateway)
            gateway.status.wait(lambda i: i["state_file"]["written"])
            before = os.stat(gateway.path("state", NAME))
            stopped(gateway)
            assert os.stat(gateway.path("state", NAME)).st_ino == before.st_ino

    def test_what_is_no_better(self, seed):
        """One list of two: the rest is a guess, which is not written."""
        seed.api.fault(verb="list", resource="endpointslices", status=503, times=None)
        gateway = cold(seed, seed.bytes)
        self.gateways.append(gateway)
        served(gateway)
        gateway.status.wait_state("watching", "services")
        before = os.stat(gateway.path("state", NAME))
        stopped(gateway)
        seed.api.clear_faults()
        assert os.stat(gateway.path("state", NAME)).st_ino == before.st_ino

    def test_of_two_trees_one_writes(self, seed, public_path):
        """The one that holds the lock."""
        path = public_path / "state" / NAME
        block = informer(seed.api.url, state=f"state_path {path.parent};")
        first = seed.nginx(CONF, block=block)
        first.status.wait(lambda i: i["state_file"]["written"])
        before = os.stat(path).st_ino
        second = seed.nginx(CONF, block=block)
        asked_for = another(path, before)
        seed.slice("shop", "web", seed.pods(1, "new"))
        for gateway in (first, second):
            gateway.wait_backends({"new-1"})
        for gateway, writes in ((second, False), (first, True)):
            seed.running.remove(gateway)
            gateway.stop()
            assert (os.stat(path).st_ino != asked_for) == writes
        seed.slice("shop", "web", seed.pods_of_web)


class TestAsked:
    """A file of now, for who starts beside its writer (t/test_reload.py::TestUpgrade)."""

    IN_VAIN = "has written no state file"

    def test_it_is_written(self, seed):
        gateway = seed.nginx(CONF, block=informer(seed.api.url, state=KEEP))
        gateway.status.wait(lambda i: i["state_file"]["written"])
        assert stat.S_IMODE(os.stat(gateway.path("state", ASK)).st_mode) == 0o600
        asked(gateway)
        asked(gateway)
        gateway.reload(gone=True)
        wait_until(lambda: opened(gateway, ".ask") or not root())
        asked(gateway)
        old = gateway.informer()
        gateway.allow(r"cache manager process \d+ exited on signal 9")
        gateway.kill(signal.SIGKILL, old)
        wait_until(lambda: gateway.informer() not in (None, old))
        wait_until(lambda: opened(gateway, ".ask") or not root())
        asked(gateway)
        seed.running.remove(gateway)
        gateway.stop()

    def test_before_the_server_has_answered(self, seed):
        """A successor may ask at once: it is written when it can be bound to the CA."""
        gateway = seed.nginx(CONF, block=informer(seed.api.url, state=KEEP))
        gateway.status.wait(lambda i: i["state_file"]["written"])
        gate = threading.Event()
        seed.api.fault(verb="watch", gate=gate, times=None)
        gateway.reload(gone=True)
        path = gateway.path("state", ASK)
        wait_until(lambda: os.path.exists(path))

        def answer():
            before = views.worked_us(gateway.informer())
            never(lambda: views.worked_us(gateway.informer()) - before > 200000, 0.5)
            gate.set()

        # nobody is busy meanwhile; less than the minute after which it is written anyway
        asked(gateway, answer, 30)

    def test_another_one_is_being_written(self):
        """What was begun before somebody asked is no file of now."""
        with preloaded("slow_disk") as library, Cluster() as made:
            made.api.load_scale(10000, 1)
            block = informer(made.api.url, "namespaces all;", zone="kube 32m", state=KEEP)
            gateway = made.nginx(CONF, block=block, env={"LD_PRELOAD": library})
            made.service("shop", "web")
            path = gateway.path("state", NAME)
            gateway.status.wait(lambda i: i["state_file"]["written"])
            made.slice("shop", "web", made.pods(1, "old"))
            gateway.wait_backends({"old-1"})
            fd = os.open(path + ".ask", os.O_WRONLY | os.O_NONBLOCK)
            os.write(fd, b"w")
            wait_until(lambda: os.path.exists(path + ".new"))
            made.slice("shop", "web", made.pods(1, "new"))
            wait_until(lambda: gateway.get().backend == "new-1")
            before = os.stat(path).st_ino
            os.write(fd, b"w")
            wait_until(lambda: not unread(fd))
            # once a file, or there would be no end to it: who asks now has the next one
            os.write(fd, b"w")
            os.close(fd)
            before = another(path, before)
            assert b"new-1" in read(path)
            wait_until(lambda: os.stat(path).st_ino != before, 30)
            wait_until(lambda: not os.path.exists(path + ".new"))
            assert not [name for name in opened(gateway, "") if ".state.new" in name]

    @pytest.mark.parametrize("what", ["file", "link", "directory"])
    def test_something_else_stands_there(self, seed, what):
        """Nobody is heard; the file is written as ever, and what stands there stays."""
        gateway = seed.nginx(CONF, block=informer(seed.api.url, state=KEEP), start=False)
        os.makedirs(gateway.path("state"), mode=0o700)
        own(gateway.path("state"))
        path = self.plant(gateway, what)
        gateway.start()
        gateway.wait_log("nobody can ask for the state file")
        gateway.status.wait(lambda i: i["state_file"]["written"])
        assert os.path.lexists(path)
        seed.running.remove(gateway)
        gateway.stop()

    def plant(self, gateway, what):
        """Makes what stands at the place; returns its path."""
        path = gateway.path("state", ASK)
        if what == "file":
            gateway.write("state/" + ASK, b"")
        elif what == "link":
            os.mkfifo(gateway.path("elsewhere"))
            own(gateway.path("elsewhere"))
            os.symlink(gateway.path("elsewhere"), path)
        elif what == "directory":
            os.mkdir(path)
        elif what == "pipe":
            os.mkfifo(path, 0o600)
        if os.path.lexists(path) and what != "link":
            own(path)
        return path

    @pytest.mark.parametrize("what", ["none", "file", "link", "directory", "pipe"])
    def test_nobody_to_ask(self, away, what):
        gateway = cold(away, away.bytes, write=lambda g: self.plant(g, what))
        served(gateway)
        assert not gateway.grep_log(self.IN_VAIN)

    def test_in_vain(self, away):
        """Nothing is asked of the API server meanwhile; then the old file is used."""
        reader = []

        def listen(gateway):
            reader.append(os.open(self.plant(gateway, "pipe"), os.O_RDWR | os.O_NONBLOCK))

        gateway = cold(away, away.bytes, write=listen)
        served(gateway)
        gateway.wait_log(self.IN_VAIN)
        assert os.read(reader[0], 8) == b"w"
        # it does not ask for what it holds
        gateway.reload(gone=True)
        served(gateway)
        with pytest.raises(BlockingIOError):
            os.read(reader[0], 8)
        os.close(reader[0])
        assert len(gateway.grep_log(self.IN_VAIN)) == 1

    def test_it_is_awaited(self, away):
        """The file that comes then is the one that is used."""

        def write(gateway):
            """Stands in for the writer: the good file once somebody asks."""
            with open(gateway.path("state", ASK), "r+b", buffering=0) as pipe:
                assert pipe.read(1) == b"w"
                gateway.write("state/given", away.bytes, 0o600)
                own(gateway.path("state", "given"))
                os.rename(gateway.path("state", "given"), gateway.path("state", NAME))

        def begin(gateway):
            self.plant(gateway, "pipe")
            threads.append(threading.Thread(target=write, args=(gateway,), daemon=True))
            threads[-1].start()

        for _ in range(5):
            threads = []
            gateway = cold(away, away.bytes[:100], write=begin)
            threads[0].join(WAIT)
            gateway.wait_log("state file")
            if not gateway.grep_log(self.IN_VAIN):
                break
        served(gateway)
        assert not gateway.grep_log("damaged")

    def test_of_another_user(self, away):
        """Whose pipe it is decides."""
        if not root():
            pytest.skip("SKIPPED: needs root")
        reader = []

        def listen(gateway):
            path = self.plant(gateway, "pipe")
            os.chown(path, 1, 1)
            os.chmod(path, 0o666)
            reader.append(os.open(path, os.O_RDWR | os.O_NONBLOCK))

        gateway = cold(away, away.bytes, write=listen)
        served(gateway)
        assert not gateway.grep_log(self.IN_VAIN)
        os.close(reader[0])


def flipped(data, at):
    """The bytes with one bit changed."""
    made = bytearray(data)
    made[at] ^= 0x10
    return bytes(made)


class TestIgnored:
    """What is not believed."""

    def test_none(self, away):
        unused(cold(away, None))

    def test_off(self, away):
        unused(cold(away, away.bytes, keep="state_path off;"))

    @pytest.mark.parametrize("what", ["empty", "zeros", "noise", "text", "header only"])
    def test_not_one_of_ours(self, away, what):
        contents = {
            "empty": b"",
            "zeros": b"\0" * 4096,
            "noise": bytes(range(256)) * 64,
            "text": b"<html>hello</html>",
            "header only": away.bytes[:64],
        }[what]
        unused(cold(away, contents), r"state file.*(damaged|empty)")

    @pytest.mark.parametrize("part", [0.02, 0.3, 0.6, 0.999])
    def test_truncated(self, away, part):
        unused(cold(away, away.bytes[: int(len(away.bytes) * part)]), r"state file.*damaged")

    @pytest.mark.parametrize("part", [0, 0.01, 0.2, 0.5, 0.8, 0.999])
    def test_a_bit_flipped(self, away, part):
        at = int((len(away.bytes) - 1) * part)
        unused(cold(away, flipped(away.bytes, at)), r"state file.*(damaged|not used)")

    def test_longer_than_it_says(self, away):
        unused(cold(away, away.bytes + b"more"), r"state file.*damaged")

    def test_too_old(self, away):
        gateway = away.nginx(
            CONF,
            block=informer(away.api.url, state="state_path state; state_max_age 1s;"),
            start=False,
        )
        os.makedirs(gateway.path("state"), mode=0o700)
        own(gateway.path("state"))
        gateway.write("state/" + NAME, away.bytes, 0o600)
        own(gateway.path("state", NAME))
        written = os.stat(gateway.path("state", NAME)).st_mtime
        wait_until(lambda: time.time() > written + 1.2)
        gateway.start()
        unused(gateway, r"state file.*older than state_max_age")

    def test_of_other_scopes(self, away):
        gateway = cold(away, away.bytes, more="namespaces shop infra;")
        gateway.wait_log(r"state file.*another server, or other namespaces")
        assert gateway.get().headers["x-kube-error"] == "not_synced"

    def test_of_another_server(self, seed):
        with Cluster() as other:
            other.service("shop", "web")
            other.api.refuse()
            gateway = cold(other, seed.bytes)
            unused(gateway, r"state file.*another server")

    def test_symbolic_link(self, away):
        def link(gateway):
            gateway.write("elsewhere", away.bytes, 0o600)
            own(gateway.path("elsewhere"))
            os.symlink(gateway.path("elsewhere"), gateway.path("state", NAME))

        unused(cold(away, None, write=link), r"state file.*cannot be opened")

    def test_pipe(self, away):
        def pipe(gateway):
            os.mkfifo(gateway.path("state", NAME))
            own(gateway.path("state", NAME))

        unused(cold(away, None, write=pipe), r"state file.*not a file")

    def test_directory(self, away):
        def directory(gateway):
            os.mkdir(gateway.path("state", NAME))
            own(gateway.path("state", NAME))

        gateway = cold(away, None, write=directory)
        unused(gateway, r"state file.*not a file")
        shutil.rmtree(gateway.path("state", NAME))

    def test_writable_by_everybody(self, away):
        unused(cold(away, away.bytes, mode=0o666), r"state file.*everybody")

    @pytest.mark.skipif(not root(), reason="needs root")
    def test_of_another_user(self, away):
        gateway = cold(
            away,
            away.bytes,
            mode=0o644,
            write=lambda g: os.chown(g.path("state", NAME), 1, 1),
        )
        unused(gateway, r"state file.*another user")


class TestCa:
    """A file is of a server, and of those who vouch for it."""

    @pytest.fixture(scope="class")
    def secured(self, pki_of):
        """A cluster behind TLS that is away, and the file of it."""
        with Cluster(tls=pki_of("old").server_context()) as made:
            made.service("shop", "web", 2)
            block = informer(made.api.url, "ca_file ca.pem;", state=KEEP)
            gateway = made.nginx(CONF, block=block, start=False)
            gateway.write("ca.pem", read(pki_of("old").ca_file))
            gateway.start().status.wait(lambda i: i["state_file"]["written"])
            made.bytes = read(gateway.path("state", NAME))
            made.running.remove(gateway)
            gateway.stop()
            made.api.refuse()
            yield made

    @pytest.fixture(autouse=True)
    def _stop(self, secured, request):
        """No gateway outlives its test."""
        request.node.gateways = lambda: secured.running
        yield
        for gateway in list(secured.running):
            secured.running.remove(gateway)
            gateway.stop()

    @staticmethod
    def cold(secured, ca, more="ca_file ca.pem;"):
        """nginx on the file with these certificates as its CA; None: no file."""
        return cold(
            secured,
            secured.bytes,
            more=more,
            write=lambda g: ca is None or g.write("ca.pem", ca),
        )

    @pytest.mark.parametrize("names", ["old", "new old", "old new"])
    def test_used(self, secured, pki_of, names):
        """Also while one CA takes the place of another: both are in the bundle."""
        ca = b"# those we trust\n".join(read(pki_of(n).ca_file) for n in names.split())
        served(self.cold(secured, ca))

    def test_of_another_ca(self, secured, pki_of):
        """Another cluster may well have the same address."""
        gateway = self.cold(secured, read(pki_of("new").ca_file))
        unused(gateway, r"state file.*a server with another CA")

    @pytest.mark.parametrize("more", ["", "tls_verify off;"], ids=["system", "unverified"])
    def test_without_a_ca(self, secured, more):
        unused(self.cold(secured, None, more), r"state file.*a server with another CA")

    def test_unreadable_ca(self, secured):
        unused(self.cold(secured, None), r"state file.*the CA cannot be read")

    def test_a_ca_that_is_spoilt(self, secured, pki_of):
        """A file without marks, that nobody could use, takes no good one's place."""
        secured.api.listen()
        block = informer(secured.api.url, "ca_file ca.pem;", state=KEEP)
        gateway = secured.nginx(CONF, block=block, start=False)
        good = read(pki_of("old").ca_file)
        gateway.write("ca.pem", good)
        gateway.start().status.wait(lambda i: i["state_file"]["written"])
        old = gateway.informer()
        gateway.write("ca.pem", good.replace(b"CERTIFICATE", b"PUBLIC KEY"))
        gateway.allow(r"cache manager process \d+ exited on signal 9")
        gateway.kill(signal.SIGKILL, old)
        wait_until(lambda: gateway.informer() not in (None, old))
        secured.api.refuse()
        time.sleep(8)
        secured.bytes, kept = read(gateway.path("state", NAME)), secured.bytes
        try:
            served(self.cold(secured, good))
        finally:
            secured.bytes = kept


class TestVerified:
    """kube-informer --verify of a file: t/test_verify.py has the rest."""

    @staticmethod
    def verify(path, server):
        """(exit code, lines, stderr) of one run."""
        done = subprocess.run(
            [PROGRAM, "--verify", str(path), "--server", server.url],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, [json.loads(x) for x in done.stdout.splitlines()], done.stderr

    @pytest.fixture
    def kept(self, seed, tmp_path):
        """The file."""
        (tmp_path / NAME).write_bytes(seed.bytes)
        return tmp_path / NAME

    def test_equal(self, seed, kept):
        """At the version of the file, whatever came after it."""
        seed.service("shop", "later")
        code, lines, errors = self.verify(kept, seed.api)
        assert (code, errors) == (0, "")
        assert [(x["type"], x["namespace"], x["count"]) for x in lines] == [
            ("equal", "shop", 1)
        ] * 2

    def test_of_another_cluster(self, seed, kept):
        """It has the same versions, and no object that is the same."""
        with ApiServer() as other:
            while other.rv < seed.api.rv:
                other.put(objects.service("shop", f"other-{other.rv}"))
            code, lines, _ = self.verify(kept, other)
        assert code == 1
        found = {x["name"]: x for x in lines if x["type"] == "different"}
        assert found["web"]["held"] and not found["web"]["server"]
        assert found["web-1"]["held"]["object"]["service"] == "web"

    def test_its_version_is_gone(self, seed, kept):
        """No further try helps: it stays as old as it is."""
        fault = seed.api.fault(verb="list", status=410, reason="Expired", times=None)
        code, lines, errors = self.verify(kept, seed.api)
        seed.api.clear_faults()
        assert (code, lines) == (2, []) and errors.count("any more") == 2
        assert fault.fired == 2

    @pytest.mark.parametrize("what", ["flipped", "cut", "empty", "directory", "none"])
    def test_is_none(self, seed, tmp_path, what):
        path = tmp_path / "bad"
        if what == "directory":
            path.mkdir()
        elif what != "none":
            data = {"flipped": flipped(seed.bytes, len(seed.bytes) // 2), "cut": seed.bytes[:99]}
            path.write_bytes(data.get(what, b""))
        code, lines, errors = self.verify(path, seed.api)
        assert (code, lines) == (2, []) and "not compared: " in errors
