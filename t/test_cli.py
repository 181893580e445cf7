# kube-informer, the command line tool, over the stand-in API server: lines,
# exit codes, signals, outages.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""The command line informer."""

import json
import os
import re
import signal
import subprocess
import threading

import pytest
from apiserver import ApiServer, objects
from nginx import PATIENCE, wait_until

PROGRAM = os.path.join(os.environ.get("KUBE_BUILD_DIR", "build/release"), "kube-informer")


class Informer:
    """A running kube-informer whose lines are read as they come."""

    def __init__(self, *args):
        self.lines = []
        self.errors = []
        self.process = subprocess.Popen(
            [PROGRAM, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.threads = [
            threading.Thread(target=self._lines, daemon=True),
            threading.Thread(target=self._errors, daemon=True),
        ]
        for thread in self.threads:
            thread.start()

    def _lines(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def _errors(self):
        self.errors.extend(self.process.stderr)

    def wait(self):
        """Its exit code, once all it said was read."""
        code = self.process.wait(timeout=30 * PATIENCE)
        for thread in self.threads:
            thread.join(timeout=10 * PATIENCE)
        return code

    def has(self, **fields):
        """Whether a line has these members."""
        return any(all(line.get(k) == v for k, v in fields.items()) for line in list(self.lines))

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def api():
    """A server with three Services of ten endpoints."""
    with ApiServer() as server:
        server.load_scale(services=3, endpoints=10)
        yield server


def test_until_synced(api):
    with Informer("--server", api.url, "--until-synced") as informer:
        assert informer.wait() == 0
        assert not informer.errors
    kinds = [(line["type"], line["resource"]) for line in informer.lines]
    assert kinds.count(("add", "services")) == 3
    assert kinds.count(("add", "endpointslices")) == 3
    assert kinds.count(("synced", "services")) == 1
    assert kinds.count(("synced", "endpointslices")) == 1
    slices = [x for x in informer.lines if x["type"] == "add" and "service" in x["object"]]
    assert all(len(x["object"]["endpoints"]) == 10 for x in slices)


def test_a_part_is_refused(api):
    """403 for one resource: the other is shown, the missing one named; no success."""
    api.fault(status=403, resource="endpointslices", times=None)
    with Informer("--server", api.url, "--until-synced") as informer:
        assert informer.wait() == 1
    kinds = [(line["type"], line["resource"]) for line in informer.lines]
    assert kinds.count(("add", "services")) == 3
    assert kinds.count(("synced", "services")) == 1
    assert ("synced", "endpointslices") not in kinds
    (line,) = [e for e in informer.errors if "missing: " in e]
    assert "endpointslices in all namespaces: forbidden: " in line


def pods_of(informer):
    """What lines of Pods say: (type, name, labels, deleting)."""
    return [
        (
            x["type"],
            x["name"],
            {p["name"]: p["value"] for p in x["object"]["labels"]},
            x["object"]["deleting"],
        )
        for x in list(informer.lines)
        if x["resource"] == "pods" and x["type"] != "synced"
    ]


@pytest.mark.parametrize("partial", [True, False], ids=["partial", "whole"])
@pytest.mark.parametrize("how", ["on", "off"])
def test_pods(api, partial, how):
    """Off by default; asked for as metadata, and taken whole where a proxy sends that."""
    api.settings.partial = partial
    api.put(objects.pod("shop", "web-1", {"app": "web"}))
    api.put(objects.pod("shop", "db-1"))
    args = ("--server", api.url, "--watch-list", how)
    with Informer(*args, "--until-synced", "--quiet") as informer:
        assert informer.wait() == 0
    assert api.count(resource="pods") == 0 and not informer.has(resource="pods")

    with Informer(*args, "--pods", "--selector", "pods=app") as informer:
        wait_until(lambda: informer.has(type="synced", resource="pods"), 30 * PATIENCE)
        wait_until(lambda: informer.has(type="synced", resource="services"), 30 * PATIENCE)
        api.wait_watch("pods")
        api.put(objects.pod("shop", "web-2", {"app": "web", "tier": ""}))
        deleted = {"deletionTimestamp": objects.CREATED}
        api.put(objects.pod("shop", "web-1", {"app": "web"}, **deleted))
        wait_until(lambda: informer.has(type="update", name="web-1"), 30 * PATIENCE)
        api.delete("pods", "shop", "web-1")
        wait_until(lambda: informer.has(type="delete", name="web-1"), 30 * PATIENCE)
    assert pods_of(informer) == [
        ("add", "web-1", {"app": "web"}, False),
        ("add", "web-2", {"app": "web", "tier": ""}, False),
        ("update", "web-1", {"app": "web"}, True),
        ("delete", "web-1", {"app": "web"}, True),
    ]
    (synced,) = [x for x in informer.lines if (x["type"], x["resource"]) == ("synced", "pods")]
    assert synced["count"] == 1
    for request in api.find(resource="pods"):
        assert "as=PartialObjectMetadata" in request.headers["accept"]
        assert request.partial == partial
        assert request.result != "error"


def test_pods_refused(api):
    """Who may not see Pods is told so; the others are shown."""
    api.fault(status=403, resource="pods", times=None)
    with Informer("--server", api.url, "--until-synced", "--pods") as informer:
        assert informer.wait() == 1
    assert informer.has(type="synced", resource="services")
    assert any("missing: pods: forbidden" in e for e in informer.errors)


def test_pods_recorded(api, tmp_path):
    """The same from a transcript, namespace by namespace."""
    api.put(objects.pod("shop", "web-1", {"app": "web"}))
    api.put(objects.pod("toys", "ball"))
    args = ("--pods", "--until-synced", "--digest", "--namespace", "shop", "--namespace", "toys")
    tape = str(tmp_path / "tape")
    with Informer("--server", api.url, *args, "--record", tape) as first:
        assert first.wait() == 0
    with Informer("--replay", tape, *args) as again:
        assert again.wait() == 0
    assert sorted(pods_of(first)) == sorted(pods_of(again)) and len(pods_of(first)) == 2
    synced = [x for x in first.lines if x["resource"] == "pods" and x["type"] == "synced"]
    assert sorted(x["namespace"] for x in synced) == ["shop", "toys"]
    for line in synced:
        assert line in again.lines


def test_no_room(api):
    """What the zone cannot hold is said, is no delete, and no success."""
    api.load_scale(services=1500, endpoints=10)
    with Informer("--server", api.url, "--until-synced", "--zone-size", "512k") as informer:
        assert informer.wait() == 1
    kinds = {line["type"] for line in informer.lines}
    assert kinds == {"add", "refused", "synced"}
    assert any("missing: " in e and "room" in e for e in informer.errors)
    for synced in [line for line in informer.lines if line["type"] == "synced"]:
        held = set()
        for line in informer.lines[: informer.lines.index(synced)]:
            if line["resource"] == synced["resource"] and line["type"] != "synced":
                (held.add if line["type"] == "add" else held.remove)(line["name"])
        assert len(held) == synced["count"]


@pytest.mark.parametrize("count", [8, 20, 64])
def test_no_room_for_namespaces(api, count):
    """Each scope has its place in the zone; what the message names is enough."""
    api.put_all(objects.service(f"n{n}", "web") for n in range(count))
    names = [word for n in range(count) for word in ("--namespace", f"n{n}")]
    args = ("--server", api.url, "--until-synced", *names, "--zone-size")
    with Informer(*args, "64k") as informer:
        assert informer.wait() == 1
    assert not informer.lines
    says = rf"no room for {count} namespaces: give it (\d+k)"
    size = re.search(says, "".join(informer.errors))[1]
    assert not api.requests
    with Informer(*args, size) as informer:
        assert informer.wait() == 0
    assert sum(line["type"] == "add" for line in informer.lines) == count


def test_changes_and_outage(api):
    with Informer("--server", api.url, "--digest") as informer:
        wait_until(lambda: informer.has(type="synced", resource="endpointslices"))

        api.put(objects.service("shop", "web"))
        wait_until(lambda: informer.has(type="add", namespace="shop", name="web"))
        wait_until(lambda: informer.has(type="synced", resource_version=str(api.rv)))

        api.refuse()
        api.delete("services", "shop", "web")
        api.put(objects.service("shop", "api"))
        api.listen()
        wait_until(lambda: informer.has(type="delete", namespace="shop", name="web"))
        wait_until(lambda: informer.has(type="add", namespace="shop", name="api"))
        assert api.count(verb="list") == api.count(streamed=True) == 2

        informer.process.send_signal(signal.SIGTERM)
        assert informer.wait() == 0


def test_quiet(api):
    """No line for a change; versions are told of all the same."""
    with Informer("--server", api.url, "--quiet", "--digest") as informer:
        wait_until(lambda: informer.has(type="synced", resource="services"))
        api.put(objects.service("shop", "web"))
        wait_until(lambda: informer.has(type="synced", resource_version=str(api.rv)))
        assert {line["type"] for line in informer.lines} == {"synced"}


def test_ended_before_it_was_synced(api):
    api.fault(resource="services", status=503, times=None)
    with Informer("--server", api.url, "--until-synced") as informer:
        wait_until(lambda: api.count(resource="services") > 1)
        informer.process.send_signal(signal.SIGTERM)
        assert informer.wait() == 1
        assert any("missing: " in e for e in informer.errors)


def test_namespaces(api):
    api.put(objects.service("shop", "web"))
    args = ("--server", api.url, "--namespace", "shop", "--until-synced")
    with Informer(*args) as informer:
        assert informer.wait() == 0
    assert {line["namespace"] for line in informer.lines} == {"shop"}
    assert informer.has(type="add", name="web")


def test_record_and_replay(api, tmp_path):
    """A transcript shows again what a server did, and holds no credential."""
    transcript, token = tmp_path / "transcript", tmp_path / "token"
    token.write_text("secret-of-mine\n")
    args = ["--server", api.url, "--token-file", str(token)]
    with Informer(*args, "--record", str(transcript)) as informer:
        wait_until(lambda: informer.has(type="synced", resource="endpointslices"))
        wait_until(lambda: informer.has(type="synced", resource="services"))
        api.put(objects.service("shop", "web"))
        wait_until(lambda: informer.has(type="add", namespace="shop", name="web"))
        api.delete("services", "shop", "web")
        wait_until(lambda: informer.has(type="delete", namespace="shop", name="web"))
        informer.process.send_signal(signal.SIGTERM)
        assert informer.wait() == 0
        recorded = informer.lines

    text = transcript.read_bytes()
    assert text.startswith(b"nginx-kube-informer transcript 1\n")
    assert b"secret-of-mine" not in text and b"Bearer" not in text
    assert transcript.stat().st_mode & 0o777 == 0o600

    api.refuse()
    with Informer("--replay", str(transcript)) as informer:
        # of two resources, whose lines have no order
        wait_until(lambda: len(informer.lines) >= len(recorded))
        informer.process.send_signal(signal.SIGTERM)
        assert informer.wait() == 0

    # two resources are listed at once: which line is first is not recorded, nor
    # how much of what came with the list's end was counted among it
    def told(lines):
        return sorted(
            str((line["type"], line["resource"])) if line["type"] == "synced" else str(line)
            for line in lines
        )

    assert told(informer.lines) == told(recorded)

    transcript.write_bytes(text[:-1])
    with Informer("--replay", str(transcript)) as informer:
        assert informer.wait() == 1
        assert any("not a transcript" in line for line in informer.errors)


def test_record_larger_than_a_file_may_be(api, tmp_path):
    """RLIMIT_FSIZE: a text and exit code 1, not a signal."""
    for n in range(20):
        api.put(objects.service("shop", f"s{n}"))
    words = [PROGRAM, "--server", api.url, "--record", str(tmp_path / "transcript")]
    done = subprocess.run(
        ["prlimit", "--fsize=1024", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=30 * PATIENCE,
    )
    assert done.returncode == 1 and "File too large" in done.stderr, done


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        ((), 2, "--kubeconfig"),
        (("--verify", "x"), 2, "one of --kubeconfig, --server and --in-cluster is needed"),
        (("--kubeconf", "/k", "--nonexistent"), 2, "see --help"),
        (("--in-cluster", "--server", "http://127.0.0.1:1"), 2, "only one of"),
        (("--in-cluster", "--token-file", "/t"), 2, "need --server"),
        (("--kubeconfig", "/k", "--ca-file", "/c"), 2, "need --server"),
        (("--server", "http://127.0.0.1:1", "--context", "a"), 2, "without --kubeconfig"),
        (("--server", "http://127.0.0.1:1", "--namespace", "UP"), 2, "UP"),
        (("--server", "http://127.0.0.1:1", "--zone-size", "1k"), 2, "1k"),
        (("--server", "http://127.0.0.1:1", "--selector", "nodes=a"), 2, "nodes=a"),
        (("--server", "http://127.0.0.1:1", "--selector", "pods=a"), 2, "without --pods"),
        (("--server", "http://127.0.0.1:1", "--watch-list", "maybe"), 2, "maybe"),
        (("--server", "http://127.0.0.1:1", "--encoding", "yaml"), 2, "yaml"),
        (("--server", "http://192.0.2.1:1"), 1, "https://"),
        (("--kubeconfig", "/nonexistent"), 1, "/nonexistent"),
        (("--server", "http://127.0.0.1:1", "--until-synced", "--timeout", "1"), 1, "connect"),
        (("--server", "http://127.0.0.1:1", "--timeout", "1"), 0, "connect"),
    ],
)
def test_exit_codes(args, code, text):
    with Informer(*args) as informer:
        assert informer.wait() == code
        assert text in "".join(informer.errors)
        assert not informer.lines


def test_line_of_a_kubeconfig(tmp_path):
    path = tmp_path / "config"
    path.write_text("current-context: a\ncurrent-context: b\n")
    with Informer("--kubeconfig", str(path)) as informer:
        assert informer.wait() == 1
        assert f"{path}: line 2: the same key" in "".join(informer.errors)


@pytest.mark.parametrize("how, lists", [("auto", 0), ("on", 0), ("off", 2)])
def test_watch_list(api, how, lists):
    with Informer("--server", api.url, "--watch-list", how, "--until-synced") as informer:
        assert informer.wait() == 0
    assert api.count(verb="list", streamed=False) == lists
    assert api.count(verb="list") == 2


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help(option):
    done = subprocess.run([PROGRAM, option], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("usage: kube-informer")
    assert "64k to 4g (default: 64m)" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 79
    assert not done.stderr
