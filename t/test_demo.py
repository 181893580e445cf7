# The demo: it shows what it says, and leaves nothing behind.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""make demo, for a few seconds."""

import contextlib
import itertools
import os
import re
import signal
import socket
import subprocess
import sys

import pytest
from client import request
from nginx import BUILD_DIR, PATIENCE, ROOT, Timeout, alive, children, free_port, wait_until

DEMO = os.path.join(ROOT, "t", "demo", "demo.py")

pytestmark = pytest.mark.skipif(
    not os.path.exists(os.path.join(BUILD_DIR, "kube-informer")),
    reason="SKIPPED: the command kube-informer is not built",
)


class Demo:
    """The demo as a process; what it started is known by pid."""

    def __init__(self, *arguments, env=None, stderr=subprocess.STDOUT):
        self.port = free_port()
        self.process = subprocess.Popen(
            [sys.executable, DEMO, "--port", str(self.port), *arguments],
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**os.environ, "KUBECONFIG": "", **(env or {})},
        )
        os.set_blocking(self.process.stdout.fileno(), False)
        self.text = ""
        self.family = set()
        self.prefixes = set()

    def said(self):
        """What it has printed so far."""
        self.text += (self.process.stdout.read() or b"").decode()
        return self.text

    def look(self):
        """Remembers its processes, and nginx's directory."""
        todo = [self.process.pid]
        while todo:
            for pid, title in children(todo.pop()).items():
                if pid not in self.family:
                    self.family.add(pid)
                    self.prefixes.update(re.findall(r" -p (\S+)", title))
                    todo.append(pid)
        return self.family

    def get(self, path="/", **more):
        """A request, or None while nothing listens."""
        try:
            return request(self.port, path, **more)
        except OSError:
            return None

    def wait_status(self, code, path="/", **more):
        """Until that is answered."""

        def check():
            assert self.process.poll() is None, self.said()
            answer = self.get(path, **more)
            return answer if answer is not None and answer.status == code else None

        return wait_until(check, 20 * PATIENCE)

    def finish(self, sig=None, running=True):
        """Its exit code and text, once it and all of its are gone."""
        self.look()
        assert not running or self.prefixes and len(self.family) >= 4
        if sig is not None:
            os.kill(self.process.pid, sig)
        wait_until(lambda: self.said() and self.process.poll() is not None)
        text = self.said()
        with contextlib.suppress(Timeout):
            wait_until(lambda: not any(alive(p) for p in self.family))
        assert not [p for p in self.family if alive(p)], text
        assert not [p for p in self.prefixes if os.path.exists(p)], text
        with socket.socket() as sock:
            assert sock.connect_ex(("127.0.0.1", self.port)) != 0
        return self.process.returncode, text


def test_stand_in():
    demo = Demo()
    demo.wait_status(200)
    for name, ns in (("web", "shop"), ("api", "shop"), ("echo", "infra")):
        answer = demo.wait_status(200, host=f"{name}.localhost")
        assert answer.headers["x-kube-service"] == f"{ns}/{name}:http"
    assert demo.get("/ready").status == 200
    assert demo.get("/kube/").status == 200
    assert demo.get("/kube/metrics").status == 200

    def pods():
        found = demo.get("/kube/api/v1/services/shop/web").json()["endpoints"]
        return sorted((e["ready"], e["terminating"]) for e in found)

    wait_until(lambda: pods() == [(False, True)] + [(True, False)] * 3, what=pods)
    wait_until(lambda: "1 terminating" in demo.said(), what=demo.said)
    code, text = demo.finish(signal.SIGINT)
    assert code == 0, text
    assert f"http://127.0.0.1:{demo.port}/kube/" in text and "curl" in text
    assert re.search(r"synced +services: 3", text)
    assert re.search(r"update +shop/web: 3 ready, 1 terminating", text)


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted(sig):
    demo = Demo()
    demo.wait_status(200)
    code, text = demo.finish(sig)
    assert code == 0 and "nothing is left behind" in text


def test_interrupted_again_and_again():
    """As by make and a shell, each of which passes on what it got."""
    demo = Demo()
    demo.wait_status(200)
    demo.look()
    sigs = itertools.cycle((signal.SIGINT, signal.SIGTERM))

    def tell():
        for sig in itertools.islice(sigs, 5000):
            os.kill(demo.process.pid, sig)
        return "ending" in demo.said()

    wait_until(tell)
    code, text = demo.finish()
    assert code == 0 and "nothing is left behind" in text


def test_ends_by_itself():
    demo = Demo("--seconds", "2")
    code, text = demo.finish(running=False)
    assert code == 0 and "nothing is left behind" in text


def test_nobody_reads_any_more(tmp_path):
    """As in "make demo | head": it ends, and says nothing of Python's."""
    with open(tmp_path / "errors", "w+", encoding="utf-8") as errors:
        demo = Demo(stderr=errors)
        demo.wait_status(200)
        demo.look()
        demo.process.stdout.close()
        wait_until(lambda: demo.process.poll() is not None, 20 * PATIENCE)
        wait_until(lambda: not any(alive(p) for p in demo.family))
        assert demo.process.returncode == 0
        errors.seek(0)
        assert errors.read() == ""
    assert demo.prefixes and not [p for p in demo.prefixes if os.path.exists(p)]


def test_killed():
    """Even then nothing is left: no process, no directory."""
    demo = Demo()
    demo.wait_status(200)
    demo.look()
    demo.process.kill()
    demo.process.communicate(timeout=10 * PATIENCE)
    wait_until(lambda: not any(alive(p) for p in demo.family))
    assert demo.prefixes and not [p for p in demo.prefixes if os.path.exists(p)]


def test_kubeconfig(cluster):
    """Another cluster: what it has is found and served."""
    cluster.service("blue", "one")
    cluster.service("green", "two")
    from nginx import new_prefix

    prefix = new_prefix()
    kubeconfig = os.path.join(prefix, "config")
    with open(kubeconfig, "w", encoding="utf-8") as f:
        f.write(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
            f"clusters: [{{name: c, cluster: {{server: '{cluster.api.url}'}}}}]\n"
            "users: [{name: u, user: {}}]\n"
            "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
        )
    os.chmod(kubeconfig, 0o600)
    try:
        demo = Demo("--kubeconfig", kubeconfig)
        # loopback addresses are not used in a cluster that is not the demo's own
        demo.wait_status(502)
        host = "two.green.localhost"
        wait_until(lambda: demo.get(host=host).headers["x-kube-error"] == "address_denied")
        assert demo.get("/kube/api/v1/services/blue/one").status == 200
        code, text = demo.finish(signal.SIGINT)
        assert code == 0 and "found 2 Services in 2 namespaces" in text
    finally:
        subprocess.run(["rm", "-r", prefix], check=True)


def test_kubeconfig_of_the_environment_is_not_used():
    """Nobody's cluster is followed by surprise; it is said how it would be."""
    demo = Demo(env={"KUBECONFIG": "/nonexistent"})
    demo.wait_status(200, host="web.localhost")
    code, text = demo.finish(signal.SIGINT)
    assert code == 0 and "a stand-in API server" in text
    assert "KUBECONFIG is in the environment, but not used" in text


@pytest.mark.parametrize(
    "given, env, wanted",
    [
        ([], {}, ""),
        ([], {"KUBECONFIG": "/e", "PORT": "1"}, ""),
        (["KUBECONFIG=/c"], {"KUBECONFIG": "/e"}, "--kubeconfig /c"),
        (["PORT=8081"], {}, "--port 8081"),
    ],
)
def test_what_make_passes_on(given, env, wanted):
    """Variables of make's command line alone."""
    done = subprocess.run(
        ["make", "-n", "--no-print-directory", "demo", "SKIP_DEPS=1", *given],
        cwd=ROOT,
        env={**{k: v for k, v in os.environ.items() if not k.startswith("MAKE")}, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    text = done.stdout.replace("\\\n", " ")
    (line,) = [x for x in text.splitlines() if "demo.py" in x]
    assert line.partition("demo.py")[2].split() == wanted.split()


def test_cluster_that_is_away(tmp_path):
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text("rubbish")
    done = subprocess.run(
        [sys.executable, DEMO, "--port", str(free_port()), "--kubeconfig", str(kubeconfig)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and "cannot be read" in done.stderr


def test_port_in_use():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        port = sock.getsockname()[1]
        done = subprocess.run(
            [sys.executable, DEMO, "--port", str(port)],
            env={**os.environ, "KUBECONFIG": ""},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1 and f"port {port}" in done.stderr


@pytest.mark.parametrize("port", ("0", "65536", "abc", ""))
def test_port_that_is_none(port):
    done = subprocess.run(
        [sys.executable, DEMO, "--port", port],
        env={**os.environ, "KUBECONFIG": ""},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2 and "no port from 1 to 65535" in done.stderr
