# Reload and binary upgrade: no list for an unchanged scope, the old data serves
# while a changed one is listed, and no request fails.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Reloads and upgrades."""

import os
import shutil
import signal
import threading

import pytest
from cluster import informer, root
from library import preloaded
from nginx import NGINX, WAIT, children, full_conf, load_modules, rss, wait_until
from ports import claimed

CONF = """
    upstream web { kube_service $http_x namespaces=shop,infra; keepalive 8; }
    upstream static { kube_service shop/web:http; keepalive 8; }
    server {
        listen 127.0.0.1:PORT;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        location / { proxy_pass http://static; }
        location /by { proxy_pass http://web; }
    }
"""

SLICES = "endpointslices"
KEEP = "state_path state; state_max_age 1h;"


def following(cluster, gateway, ns=None):
    """A change after now reaches the gateway."""
    new = cluster.pods(1, "after")
    gateway.status.wait_rv(cluster.slice("shop", "web", new), ns=ns)
    gateway.wait_backends({"after-1"})


def plain_conf(gateway):
    """A configuration at the gateway's port that follows nothing."""
    plain = "    server { listen 127.0.0.1:PORT; location / { return 200 plain; } }\n"
    return full_conf(plain.replace("PORT", str(gateway.port)))


NEW = {"new-1", "new-2"}

# a new tree, of a writer that has no file for it
LATE = "state file within 300 ms"


def replaced(cluster, **more):
    """A gateway that has written its state file; then all Pods of shop/web are others."""
    old = cluster.service("shop", "web", 2)
    gateway = cluster.nginx(CONF, block=informer(cluster.api.url, state=KEEP), **more)
    gateway.status.wait(lambda i: i["state_file"]["written"])
    cluster.slice("shop", "web", cluster.pods(2, "new"))
    gateway.wait_backends(NEW)
    for pod in old:
        pod.close()
    return gateway


def hears(gateway):
    """Whether some process can be asked for a state file: a FIFO without a reader says no."""
    try:
        os.close(os.open(gateway.path("state", "default.state.ask"), os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def answers(gateway, master, count=2):
    """
    So many answers of the workers of one master, which may share its sockets; each waits
    for the first list as long as unsynced_wait says.
    """
    found = []

    def check():
        answer = gateway.get()
        if int(answer.headers["x-worker"]) in gateway.workers(master):
            found.append(answer)
        return len(found) == count

    wait_until(check)
    return found


TWO = """
apiVersion: v1
kind: Config
clusters:
- {name: a, cluster: {server: "%s"}}
- {name: b, cluster: {server: "%s"}}
users: [{name: u, user: {}}]
contexts:
- {name: here, context: {cluster: a, user: u}}
- {name: there, context: {cluster: b, user: u}}
"""


class TestSameScope:
    """Nothing about what is watched has changed."""

    def test_no_list_and_one_watch_more(self, cluster):
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF)
        lists = cluster.api.count(verb="list")
        informer_pid = gateway.informer()
        for n in range(3):
            gateway.reload(gone=True)
            following(cluster, gateway)
        assert gateway.informer() != informer_pid
        assert cluster.api.count(verb="list") == lists == 2
        for resource in ("services", SLICES):
            assert cluster.api.max_concurrent("watch", resource) <= 2
            assert gateway.status.resource(resource)["lists"] == 1
        assert gateway.status.informer()["writer"]["takeovers"] == 3
        assert gateway.status.metrics().value("nginx_kube_takeovers_total") == 3

    def test_other_directives_changed(self, cluster):
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF)
        gateway.change(
            more="idle_timeout 50s; watch_timeout 2m; page_size 7; max_object 1m; "
            "deny_address 127.9.9.9;"
        )
        following(cluster, gateway)
        assert cluster.api.count(verb="list") == 2

    def test_address_policy_applies_at_once(self, cluster):
        (pod,) = cluster.service("shop", "web")
        gateway = cluster.nginx(CONF)
        assert gateway.get().status == 200
        gateway.change(more=f"deny_address {pod.host};", gone=True)
        assert gateway.get().headers["x-kube-error"] == "address_denied"
        gateway.change(more="", gone=True)
        assert gateway.get().status == 200
        assert cluster.api.count(verb="list") == 2

    def test_changes_while_it_reloads_are_not_lost(self, cluster):
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF)
        for n in range(5):
            pods = cluster.pods(1, f"p{n}")
            cluster.slice("shop", "web", pods)
            gateway.reload()
            gateway.wait_backends({f"p{n}-1"})
        assert cluster.api.count(verb="list") == 2

    def test_new_upstream_of_what_is_known(self, cluster):
        cluster.service("shop", "web")
        cluster.service("infra", "echo")
        gateway = cluster.nginx(CONF)
        gateway.change(http=CONF.replace("shop/web:http", "infra/echo"), gone=True)
        assert gateway.get().backend == "infra.echo-1"
        assert cluster.api.count(verb="list") == 2

    def test_with_the_api_down(self, cluster):
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF)
        cluster.api.refuse()
        for _ in range(3):
            gateway.reload(gone=True)
            assert gateway.get().status == 200
        assert gateway.status.informer()["synced"] is True
        cluster.api.listen()
        following(cluster, gateway)
        assert cluster.api.count(verb="list") == 2

    def test_while_the_first_list_is_in_progress(self, cluster):
        cluster.service("shop", "web")
        slow = cluster.api.fault(verb="list", resource=SLICES, drip=(200, 0.05))
        gateway = cluster.nginx(CONF, sync=False)
        cluster.api.wait(lambda: slow.fired == 1)
        gateway.reload(gone=True)
        gateway.wait_status_code(200)
        following(cluster, gateway)
        assert cluster.api.max_concurrent("watch", SLICES) <= 2

    def test_quick_reloads_under_load(self, cluster, figure):
        """Twenty completed cycles with changes: not one request fails."""
        pods = cluster.service("shop", "web", 3)
        gateway = cluster.nginx(CONF)
        gateway.reload(gone=True)
        before = rss(gateway.master)
        with gateway.load(threads=2, pause=0.001) as load:
            for n in range(20):
                wait_until(lambda: load.total >= 15 * n)
                gateway.reload()
                pods = pods[1:] + cluster.pods(1, f"q{n}", port=pods[0].port)
                cluster.slice("shop", "web", pods)
            wait_until(lambda: load.total >= 300)
        assert load.failures == []
        wait_until(lambda: not gateway.old_workers())
        assert cluster.api.count(verb="list") == 2
        assert cluster.api.max_concurrent("watch", SLICES) <= 2
        following(cluster, gateway)
        figure(f"{load.total} requests; master's RSS {rss(gateway.master) - before:+d} KiB")


class TestChangedScope:
    """What is watched has changed: listed as a diff, while the old data serves."""

    @pytest.mark.parametrize("up", [True, False], ids=["api up", "api down"])
    @pytest.mark.parametrize(
        "first, second",
        [
            ("namespaces all;", "namespaces shop infra;"),
            ("namespaces shop infra;", "namespaces all;"),
            ("namespaces shop infra;", "namespaces shop infra other;"),
            ("", "label_selector services tier=front;"),
            ("label_selector tier=front;", ""),
        ],
    )
    def test_namespaces_and_selectors(self, cluster, first, second, up):
        labels = {"tier": "front"}
        pods = cluster.pods(1, "web")
        import objects

        for ns, name in (("shop", "web"), ("infra", "echo")):
            cluster.api.put(
                objects.service(ns, name, ports=(("http", 80, "http"),), labels=labels)
            )
            cluster.slice(ns, name, pods, labels=labels)
        gateway = cluster.nginx(CONF, more=first)
        status = gateway.status
        generation = status.generation("shop", "web")
        lists = cluster.api.count(verb="list")
        with gateway.load() as load:
            wait_until(lambda: load.total > 20)
            if not up:
                cluster.api.refuse()
            gateway.change(more=second, gone=True)
            total = load.total
            wait_until(lambda: load.total > total + 50)
            if not up:
                cluster.api.listen()
            cluster.api.wait(lambda: cluster.api.count(verb="list") > lists)
            status.wait(lambda i: all(r["state"] == "watching" for r in i["resources"]))
            status.wait_synced()
        assert load.failures == []
        assert status.generation("shop", "web") == generation, "a diff touches nothing"
        ns = "shop" if "shop" in second else ""
        new = cluster.pods(1, "after")
        status.wait_rv(cluster.slice("shop", "web", new, labels=labels), ns=ns)
        gateway.wait_backends({"after-1"})

    def test_namespace_left_is_denied_and_forgotten(self, cluster):
        cluster.service("shop", "web")
        cluster.service("infra", "echo")
        text = CONF.replace(" namespaces=shop,infra", "")
        gateway = cluster.nginx(text, more="namespaces shop infra;")
        assert gateway.get("/by", headers={"X": "infra/echo"}).status == 200
        gateway.change(more="namespaces shop;", gone=True)
        answer = gateway.get("/by", headers={"X": "infra/echo"})
        assert answer.headers["x-kube-error"] == "namespace_denied"
        wait_until(lambda: gateway.status.service("infra", "echo") is None)
        assert gateway.get().status == 200
        assert {r["namespace"] for r in gateway.status.informer()["resources"]} == {"shop"}

    def test_selector_drops_what_it_excludes(self, cluster):
        cluster.service("shop", "web", labels={"tier": "front"})
        cluster.service("shop", "api", labels={"tier": "back"})
        gateway = cluster.nginx(CONF)
        gateway.change(more="label_selector services tier=front;", gone=True)
        wait_until(lambda: gateway.status.service("shop", "api") is None)
        assert gateway.get().status == 200

    @pytest.mark.parametrize("up", [True, False], ids=["api up", "api down"])
    @pytest.mark.parametrize("size", ["8m", "2m"])
    def test_size_of_the_zone(self, cluster, size, up):
        """The records are copied from the old mapping; no list is needed."""
        cluster.service("shop", "web", 2)
        for n in range(50):
            cluster.service("infra", f"s{n}", pods=[])
        gateway = cluster.nginx(CONF, block=informer(cluster.api.url))
        with gateway.load() as load:
            wait_until(lambda: load.total > 20)
            if not up:
                cluster.api.refuse()
            gateway.change(block=informer(cluster.api.url, zone=f"kube {size}"), gone=True)
            total = load.total
            wait_until(lambda: load.total > total + 50)
        assert load.failures == []
        assert gateway.status.informer()["zone"]["size"] == int(size[0]) << 20
        if not up:
            cluster.api.listen()
        gateway.status.wait(lambda i: all(r["state"] == "watching" for r in i["resources"]))
        following(cluster, gateway)
        assert len(gateway.status.services()) == 51
        assert cluster.api.count(verb="list") == 2

    def test_size_of_one_zone_of_several(self, cluster):
        """Whichever it is: nothing is listed again."""
        cluster.service("shop", "web")
        http = CONF.replace("; keepalive", " informer=b; keepalive")
        first = informer(cluster.api.url)
        last = informer(cluster.api.url, name="c", zone="c 4m")

        def block(size):
            return first + informer(cluster.api.url, name="b", zone=f"b {size}") + last

        gateway = cluster.nginx(http, block=block("4m"))

        def watching():
            rows = [r for i in gateway.status.status()["informers"] for r in i["resources"]]
            return len(rows) == 6 and all(r["state"] == "watching" for r in rows)

        wait_until(watching)
        listed = cluster.api.count(verb="list")
        gateway.change(block=block("8m"), gone=True)
        assert gateway.get().status == 200
        assert len(gateway.grep_log('kube zone "b": copied from')) == 1
        wait_until(watching)
        assert cluster.api.count(verb="list") == listed

    def test_zone_renamed(self, cluster):
        """Another zone is another cache: it is filled anew."""
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF)
        gateway.change(block=informer(cluster.api.url, zone="other 4m"), gone=True)
        gateway.status.wait_synced()
        gateway.wait_status_code(200)
        assert cluster.api.count(verb="list") == 4

    def test_other_server(self, cluster):
        from apiserver import ApiServer

        cluster.service("shop", "web")
        with ApiServer() as second:
            import objects

            pods = cluster.pods(1, "there")
            second.put(objects.service("shop", "web", ports=(("http", 80, "http"),)))
            second.put(
                objects.slice(
                    "shop", "web-x", "web", [pods[0].host], ports=(("http", pods[0].port),)
                )
            )
            gateway = cluster.nginx(CONF)
            with gateway.load() as load:
                wait_until(lambda: load.total > 20)
                gateway.change(block=informer(second.url), gone=True)
                gateway.wait_backends({"there-1"})
            assert load.failures == []
            assert gateway.status.informer()["server"] == second.url

    @pytest.mark.parametrize("size, contexts", [("4m", False), ("8m", False), ("4m", True)])
    def test_zones_exchanged(self, cluster, public_path, size, contexts):
        """No Pod of the other cluster is ever served, though neither can be listed."""
        from apiserver import ApiServer

        cluster.service("shop", "web", pods=cluster.pods(1, "here"))
        with ApiServer() as second:
            import objects

            pods = cluster.pods(1, "there")
            second.put(objects.service("shop", "web", ports=(("http", 80, "http"),)))
            second.put(
                objects.slice(
                    "shop", "web-x", "web", [pods[0].host], ports=(("http", pods[0].port),)
                )
            )

            apis = [cluster.api.url, second.url]
            if contexts:
                file = public_path / "two.yaml"
                file.write_text(TWO % tuple(apis))
                apis = [f"api kubeconfig={file} context={name};" for name in ("here", "there")]

            def block(a, b, more="4m"):
                return informer(apis[0], zone=f"{a} {more}") + informer(
                    apis[1], name="b", zone=f"{b} {more}"
                )

            http = CONF.replace("shop/web:http;", "shop/web:http informer=default unsynced_wait=0;")
            http = http.replace("namespaces=shop,infra;", "namespaces=shop,infra informer=b;")
            gateway = cluster.nginx(http, block=block("one", "two"))
            assert "here-1" in gateway.get().text

            # one is reloaded as it was: nothing of this is an exchange
            gateway.change(block=block("one", "two") + "\n", gone=True)
            assert "here-1" in gateway.get().text
            assert not gateway.grep_log("was that of another cluster")

            cluster.api.refuse()
            second.refuse()
            gateway.change(block=block("two", "one", size), gone=True)
            assert gateway.get().status == 502
            assert len(gateway.grep_log("was that of another cluster")) == 2
            cluster.api.listen()
            second.listen()
            gateway.wait_status_code(200)
            assert "here-1" in gateway.get().text

            # what follows keeps them: no memory is left behind or taken away
            lists = cluster.api.count(verb="list")
            for n in range(2):
                gateway.change(block=block("two", "one", size) + "\n" * (n + 1), gone=True)
                assert "here-1" in gateway.get().text
            assert cluster.api.count(verb="list") == lists
            assert len(gateway.grep_log("was that of another cluster")) == 2
            assert shared(gateway.master) == [int(size[0]) * 1024] * 2


def shared(pid):
    """KiB of each zone that a process has; nginx's own counters are not among them."""
    sizes = []
    with open(f"/proc/{pid}/maps", encoding="latin-1") as f:
        for line in f:
            if "/dev/zero" in line:
                begin, end = (int(x, 16) for x in line.split()[0].split("-"))
                sizes.append((end - begin) // 1024)
    return [size for size in sizes if size >= 1024]


class TestParts:
    """Between two parts of /api/v1/objects."""

    def test_goes_on_in_the_same_zone(self, cluster):
        """All parts together are all that is held, each once."""
        gateway, first = self.begun(cluster)
        gateway.reload(gone=True)
        second = self.part(gateway, first["next"])
        assert second["next"] == ""
        found = [
            (x["resource"], x["namespace"], x["name"]) for x in first["items"] + second["items"]
        ]
        held = {(r, *k) for r in ("services", SLICES) for k in cluster.api.core.store.tables[r]}
        assert len(found) == len(set(found)) == 1200 and set(found) == held

    @pytest.mark.parametrize("zone", ["kube 5m", "other 4m"])
    def test_begins_anew_in_another(self, cluster, zone):
        """Of another size, or of another name: 410, and all of it from the start."""
        gateway, first = self.begun(cluster)
        gateway.change(block=informer(cluster.api.url, zone=zone), gone=True)
        gateway.status.wait_synced()
        answer = gateway.status.get(f"/api/v1/objects?after={first['next']}")
        assert answer.status == 410 and "begin anew" in answer.text
        anew = self.part(gateway, "")
        rest = self.part(gateway, anew["next"])
        assert len(anew["items"]) + len(rest["items"]) == 1200 and rest["next"] == ""

    def begun(self, cluster):
        """A gateway, and the first part of two."""
        cluster.api.load_scale(600, 1)
        gateway = cluster.nginx(CONF)
        first = self.part(gateway, "")
        assert first["next"]
        return gateway, first

    @staticmethod
    def part(gateway, after):
        """One that is answered."""
        answer = gateway.status.get(f"/api/v1/objects?after={after}")
        assert answer.status == 200, answer
        return answer.json()


def guards(pid):
    """The descriptors of a process that are guards of zones, by inode."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            path = f"/proc/{pid}/fd/{fd}"
            if "kube_zone_guard" in os.readlink(path):
                found.append(os.stat(path).st_ino)
        except FileNotFoundError:
            pass
    return found


class TestGuard:
    """The right to write is a lock on a file that only the master hands on."""

    @pytest.mark.skipif(not root(), reason="reads other users' /proc")
    def test_one_over_reloads_and_none_in_workers(self, cluster):
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF)
        (guard,) = guards(gateway.master)
        good = gateway.conf
        gateway.reload_refused(good.replace("kube 4m", "kube 8m") + "wrong;", r"\[emerg\]")
        for size, kept in ((4, True), (4, True), (8, False)):
            gateway.change(block=informer(cluster.api.url, zone=f"kube {size}m"), gone=True)
            following(cluster, gateway)
            (now,) = guards(gateway.master)
            assert (now == guard) is kept
            guard = now
            assert guards(gateway.informer()) == [guard]
            wait_until(lambda: not any(guards(pid) for pid in gateway.workers()))


class TestWrong:
    """A wrong configuration keeps the old one."""

    def test_keeps_serving_and_following(self, cluster):
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF)
        good = gateway.conf
        gateway.reload_refused(good.replace("shop/web:http", "shop/web:0"), r"\[emerg\].*port")
        gateway.reload_refused(good.replace("zone kube 4m", "zone kube 1k"), r"invalid zone size")
        following(cluster, gateway)
        gateway.reload(gone=True)
        following(cluster, gateway)
        assert cluster.api.count(verb="list") == 2

    def test_more_namespaces_than_the_zone_has_room_for(self, cluster):
        cluster.service("shop", "web")
        small = informer(cluster.api.url, "namespaces shop infra;", zone="kube 128k")
        gateway = cluster.nginx(CONF, block=small)
        names = " ".join(f"n{i}" for i in range(20))
        many = gateway.conf.replace("namespaces shop", f"namespaces {names} shop")
        assert many != gateway.conf
        gateway.reload_refused(many, r"no room for 22 namespaces: give it \d+k")
        following(cluster, gateway, ns="shop")

    def test_address_in_use_after_the_zones_were_made(self, cluster):
        """The new cycle fails late: the zone it had attached is unharmed."""
        import socket

        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            other = "    server { listen 127.0.0.1:%d; }\n" % taken.getsockname()[1]
            good = gateway.conf
            bad = good.replace("http {\n", "http {\n" + other).replace("kube 4m", "kube 8m")
            gateway.reload_refused(bad, r"\[emerg\].*(bind\(\)|still could not bind)")
        following(cluster, gateway)
        assert cluster.api.count(verb="list") == 2


class TestInformerLeaves:
    """The block is removed, and comes back."""

    def test_under_another_name(self, cluster):
        """A zone that is new begins with what the one before it holds now."""
        gateway = replaced(cluster)
        gate = threading.Event()
        cluster.api.fault(verb="list", gate=gate, times=None)
        block = informer(cluster.api.url, zone="other 4m", state=KEEP)
        with gateway.load() as load:
            wait_until(lambda: load.total > 50)
            gateway.change(block=block, gone=True)
            for answer in answers(gateway, gateway.master):
                assert answer.headers["x-kube-endpoint-state"] == "state_file"
            gate.set()
            wait_until(lambda: cluster.api.watches(SLICES) == 1)
            gateway.status.wait_synced()
        assert load.failures == []
        following(cluster, gateway)

    def test_first_configuration(self, cluster):
        """The modules, too, come with a reload."""
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF, start=False)
        made = gateway.conf
        gateway.write_conf(plain_conf(gateway).replace(load_modules(), ""))
        gateway.start()
        assert gateway.get().text == "plain"
        gateway.reload(made, gone=True)
        gateway.wait_status_code(200)
        following(cluster, gateway)

    def test_removed_and_added(self, cluster):
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF)
        gateway.reload(plain_conf(gateway), gone=True)
        assert gateway.get().text == "plain"
        wait_until(lambda: gateway.informer() is None)
        cluster.api.wait(lambda: cluster.api.watches(SLICES) == 0)
        gateway.reload(gateway.made(), gone=True)
        gateway.wait_status_code(200)
        following(cluster, gateway)


@pytest.mark.skipif(
    NGINX.endswith(".sh"), reason="SKIPPED: a preloaded sanitizer does not survive USR2"
)
class TestUpgrade:
    """USR2."""

    def test_binary_upgrade(self, cluster):
        """With unsynced_wait as long as the list of the new tree may take."""
        cluster.service("shop", "web", 2)
        http = CONF.replace("shop/web:http;", "shop/web:http unsynced_wait=60s;")
        gateway = cluster.nginx(http, daemon=True)
        with gateway.load() as load:
            wait_until(lambda: load.total > 50)
            new = gateway.upgrade()
            total = load.total
            wait_until(lambda: load.total > total + 50)
            wait_until(lambda: cluster.api.watches(SLICES) == 2)
            gateway.upgraded(new)
            total = load.total
            wait_until(lambda: load.total > total + 50)
        # it starts on an empty zone
        assert load.failures == []
        wait_until(lambda: cluster.api.watches(SLICES) == 1)
        following(cluster, gateway)
        gateway.reload(gone=True)
        following(cluster, gateway)

    def test_its_file_is_of_now(self, cluster):
        """A list that takes longer than unsynced_wait: all Pods are others since the last file."""
        gateway = replaced(cluster, daemon=True)
        gate = threading.Event()
        slow = cluster.api.fault(verb="list", gate=gate, times=None)
        with gateway.load() as load:
            wait_until(lambda: load.total > 50)
            new = gateway.upgrade()
            for answer in answers(gateway, new):
                assert answer.status == 200 and answer.backend in NEW, answer
                assert answer.headers["x-kube-endpoint-state"] == "state_file"
            cluster.api.wait(lambda: slow.fired)
            gate.set()
            wait_until(lambda: cluster.api.watches(SLICES) == 2)
            gateway.upgraded(new)
            total = load.total
            wait_until(lambda: load.total > total + 50)
        assert load.failures == []
        # who lists is not sent away for a file that is newer
        assert cluster.api.count(verb="list", resource=SLICES) == 2
        cluster.api.clear_faults()
        following(cluster, gateway)

    def test_the_file_s_writer_is_stopped(self, cluster):
        """It is not awaited for long: what was there is used."""
        gateway = replaced(cluster, daemon=True)
        stopped = gateway.informer()
        gateway.kill(signal.SIGSTOP, stopped)
        cluster.api.fault(verb="list", delay=4, times=None)
        try:
            new = gateway.upgrade()
            gateway.wait_log(LATE)
            gateway.wait_log("objects of state file .* in use")
        finally:
            gateway.kill(signal.SIGCONT, stopped)
        wait_until(lambda: cluster.api.watches(SLICES) == 2)
        gateway.upgraded(new)
        gateway.wait_backends(NEW)

    def test_the_next_upgrade_at_once(self, cluster):
        """Who took over is asked then, and has a file of its own."""

        def stands():
            """Of several files that were written since the last may have the first one's number."""
            found = os.stat(gateway.path("state", "default.state"))
            return found.st_ino, found.st_mtime_ns

        gateway = replaced(cluster, daemon=True)
        new = gateway.upgrade()
        wait_until(lambda: cluster.api.watches(SLICES) == 2)
        gateway.upgraded(new)
        before = stands()
        wait_until(lambda: hears(gateway))
        cluster.api.fault(verb="list", delay=4, times=None)
        gateway.reload(gone=True)
        following(cluster, gateway)
        # the predecessor may have held the lock until it was gone
        wait_until(lambda: hears(gateway))
        # beside others that are busy it may have no file within its 300 ms: asked once more
        for _ in range(5):
            late = gateway.log().count(LATE)
            new = gateway.upgrade()
            found = answers(gateway, new)
            gateway.kill(signal.SIGQUIT, new)
            wait_until(lambda: not children(new))
            if gateway.log().count(LATE) == late:
                break
        assert [a.backend for a in found] == ["after-1"] * 2, found
        assert stands() != before

    def test_soon_after_a_reload(self, cluster):
        """Whose last file takes a while: the new process is asked as soon as that is done."""
        with preloaded("slow_disk") as library:
            cluster.api.load_scale(2000, 1)
            cluster.service("shop", "web", 2)
            block = informer(cluster.api.url, "namespaces all;", zone="kube 16m", state=KEEP)
            env = {"LD_PRELOAD": library}
            gateway = cluster.nginx(CONF, block=block, daemon=True, env=env)
            gateway.status.wait(lambda i: i["state_file"]["written"])
            cluster.slice("shop", "web", cluster.pods(2, "between"))
            gateway.wait_backends({"between-1", "between-2"})
            gateway.reload(gone=True)
            cluster.slice("shop", "web", cluster.pods(2, "new"))
            gateway.wait_backends(NEW)
            ask = gateway.path("state", "default.state.ask")
            wait_until(lambda: os.path.exists(ask), timeout=4)
            cluster.api.fault(verb="list", delay=4, times=None)
            new = gateway.upgrade()
            for answer in answers(gateway, new):
                assert answer.backend in NEW, answer
            gateway.kill(signal.SIGQUIT, new)
            wait_until(lambda: not children(new))

    def test_roll_back(self, cluster):
        cluster.service("shop", "web", 2)
        gateway = cluster.nginx(CONF, daemon=True)
        new = gateway.upgrade()
        wait_until(lambda: cluster.api.watches(SLICES) == 2)
        gateway.kill(signal.SIGQUIT, new)
        wait_until(lambda: not children(new) and cluster.api.watches(SLICES) == 1)
        gateway.signal(signal.SIGHUP)
        following(cluster, gateway)

    SECRETS = "/var/run/secrets/kubernetes.io/serviceaccount"

    def test_in_cluster(self, cluster, pki):
        """The service account's files, and the environment kept over USR2."""
        if not root():
            pytest.skip("SKIPPED: needs root")
        with claimed("service-account", WAIT):
            if os.path.exists("/var/run/secrets/kubernetes.io"):
                pytest.skip("SKIPPED: needs no service account on this machine")
            self.in_cluster(cluster, pki)

    def in_cluster(self, cluster, pki):
        """With files that are nobody else's meanwhile."""
        cluster.api.set_tls(pki.server_context())
        cluster.api.auth.add_token("sa-token")
        made = os.path.dirname(os.path.dirname(self.SECRETS))
        existed = os.path.exists(made)
        os.makedirs(self.SECRETS)
        try:
            shutil.copy(pki.ca_file, self.SECRETS + "/ca.crt")
            with open(self.SECRETS + "/token", "w", encoding="utf-8") as f:
                f.write("sa-token\n")
            for name in ("ca.crt", "token"):
                os.chmod(f"{self.SECRETS}/{name}", 0o644)
            env = {
                "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                "KUBERNETES_SERVICE_PORT": str(cluster.api.port),
            }
            cluster.service("shop", "web")
            gateway = cluster.nginx(
                CONF, block=informer("api in_cluster;"), env=env, daemon=True
            )
            assert gateway.get().status == 200
            assert gateway.status.informer()["server"] == cluster.api.url
            new = gateway.upgrade()
            wait_until(lambda: cluster.api.watches(SLICES) == 2)
            gateway.upgraded(new)
            wait_until(lambda: cluster.api.watches(SLICES) == 1)
            following(cluster, gateway)
            assert {r.token for r in cluster.api.requests} == {"sa-token"}
        finally:
            shutil.rmtree("/var/run/secrets/kubernetes.io")
            if not existed:
                os.rmdir(made)
