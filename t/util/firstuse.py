#!/usr/bin/python3
# Does what the README tells a newcomer to do, word for word, on a machine that
# is its own: make demo as it stands there, and the first configuration with the
# nginx and the modules that are installed.  chroot.sh calls it.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""firstuse.py demo|install"""

import glob
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "t", "lib"))

import objects  # noqa: E402
from client import request  # noqa: E402
from nginx import wait_until  # noqa: E402

PATIENCE = 60

KUBECONFIG = """
clusters: [{{name: here, cluster: {{server: "{server}"}}}}]
users: [{{name: me, user: {{}}}}]
contexts: [{{name: main, context: {{cluster: here, user: me}}}}]
current-context: main
"""


def answer(port, path):
    """A status, or 0 while nothing listens."""
    try:
        return request(port, path).status
    except OSError:
        return 0


def wait_status(port, path, status):
    """Until that is answered."""
    wait_until(lambda: answer(port, path) == status, PATIENCE, f"{status} of {path}")
    print(f"firstuse: {path}: {status}")


def demo():
    """make demo, until its page is there, and ^C."""
    with tempfile.TemporaryFile("w+") as out:
        with subprocess.Popen(
            ["make", "demo"], cwd=ROOT, stdout=out, stderr=out, start_new_session=True
        ) as process:
            try:
                for path in ("/", "/ready", "/kube/", "/kube/metrics"):
                    wait_status(8080, path, 200)
            finally:
                os.killpg(process.pid, signal.SIGINT)
                process.wait(PATIENCE)
                out.seek(0)
                text = out.read()
                print(text)
    assert "nothing is left behind" in text
    assert not glob.glob(os.path.join(tempfile.gettempdir(), "kube-t-*"))
    assert answer(8080, "/") == 0


def own_address():
    """An address of this machine that a pod could have: no loopback."""
    for family, far in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            try:
                sock.connect((far, 9))
            except OSError:
                continue
            return sock.getsockname()[0]
    raise SystemExit("firstuse: this machine has no address but loopback")


def install():
    """The first configuration of the README with the nginx in PATH."""
    from apiserver import ApiServer
    from backend import Backends

    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        first = re.search(r"```nginx\n(.*?)```", f.read(), re.S).group(1)

    with ApiServer() as api, Backends() as backends:
        pod = backends.add(own_address(), 0, "web-1")
        api.put(objects.service("shop", "web", ports=(("http", 80, "http"),)))
        made = [objects.endpoint(pod.host, pod="web-1", ns="shop")]
        api.put(objects.slice("shop", "web-1", "web", made, ports=(("http", pod.port),)))
        with open("/etc/nginx/kubeconfig", "w", encoding="utf-8") as f:
            f.write(KUBECONFIG.format(server=api.url))
        with open("/etc/nginx/nginx.conf", "w", encoding="utf-8") as f:
            f.write(first)
        subprocess.run(["nginx", "-t"], check=True)
        subprocess.run(["nginx"], check=True)
        try:
            for path in ("/ready", "/kube/", "/"):
                wait_status(80, path, 200)
            assert request(80, "/").backend == "web-1"
        finally:
            subprocess.run(["nginx", "-s", "quit"], check=True)
            wait_until(lambda: answer(80, "/") == 0, PATIENCE, "the end of nginx")


if __name__ == "__main__":
    {"demo": demo, "install": install}[sys.argv[1]]()
