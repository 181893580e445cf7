#!/usr/bin/python3
# The demo: an API server, pods that come and go, and nginx in front of them.
# With --kubeconfig it is that cluster; with --cluster a real control plane in
# a network namespace; else a stand-in API server in this process.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Shows the informer at work on http://127.0.0.1:8080/."""

import argparse
import contextlib
import ctypes
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("lib", "cluster"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))

import nginx as nginx_lib  # noqa: E402
import objects  # noqa: E402
from client import request  # noqa: E402
from nginx import PR_SET_PDEATHSIG, with_parent  # noqa: E402

COMMAND = os.path.join(nginx_lib.BUILD_DIR, "kube-informer")
ROLL_SECONDS = 3
SERVICES = (("shop", "web", 3), ("shop", "api", 2), ("infra", "echo", 2))
HOSTS = (("web", "shop/web:http"), ("api", "shop/api:http"), ("echo", "infra/echo:http"))
SHOWN = 12


class DemoError(Exception):
    """Why there is nothing to show."""


def say(text=""):
    """Prints a line at once; where nobody reads any more the demo ends."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        os.kill(os.getpid(), signal.SIGTERM)


def roll(stop, steps):
    """Calls steps in turn, one every few seconds, until told to stop."""
    while True:
        for step in steps:
            if stop.wait(ROLL_SECONDS):
                return
            step()


class Sweeper:
    """
    A process that removes what a killed demo leaves behind: it is told of each
    thing as it is made, and acts when this process has ended without a word.
    The demo's other processes end by themselves then.
    """

    SCRIPT = r"""
        trap '' HUP INT TERM
        directories= namespaces=
        while read -r what name; do
            case $what in
                directory)  directories="$directories $name" ;;
                netns)      namespaces="$namespaces $name" ;;
                done)       exit ;;
            esac
        done
        for _ in $(seq 50); do
            sleep 0.2
            left=
            for name in $namespaces; do
                [ -e /run/netns/$name ] || continue
                if [ -n "$(ip netns pids $name)" ] || ! ip netns del $name; then
                    left=1
                fi
            done
            for name in $directories; do
                [ -e "$name/nginx.pid" ] && left=1
            done
            [ -z "$left" ] && break
        done
        rm -rf -- $directories
    """

    def __init__(self):
        self.process = subprocess.Popen(
            ["sh", "-c", self.SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )

    def knows(self, what, name):
        """A directory or a network namespace that is about to be made."""
        self.process.stdin.write(f"{what} {name}\n")
        self.process.stdin.flush()

    def close(self):
        """All has been removed in order."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("done\n")
            self.process.stdin.close()
        self.process.wait(10)


class StandIn:
    """The stand-in API server, with pods that are HTTP servers in this process."""

    title = "a stand-in API server"
    user = None

    def __init__(self):
        from apiserver import ApiServer
        from backend import Backends

        self.api = ApiServer().start()
        self.backends = Backends().start()
        self.pods = {}
        self.numbers = {}
        # pods of one Service share a port, on addresses of their own
        self.ports = {}
        self.addresses = (f"127.2.{n // 250}.{n % 250 + 1}" for n in range(60000))
        for ns, name, count in SERVICES:
            self.api.put(objects.service(ns, name, ports=(("http", 80, "http"),)))
            self.ports[ns, name] = nginx_lib.free_port(("127.0.0.1", "127.2.0.1"))
            self.pods[ns, name] = [self.new_pod(ns, name) for _ in range(count)]
            self.publish(ns, name)
        self.directive = f"api {self.api.url};\n    allow_address 127.0.0.0/8;"
        self.arguments = ["--server", self.api.url]
        self.namespaces = sorted({ns for ns, _, _ in SERVICES})
        self.hosts = HOSTS
        self.note = None

    def new_pod(self, ns, name):
        """A pod that answers, at the next address."""
        number = self.numbers[ns, name] = self.numbers.get((ns, name), 0) + 1
        return self.backends.add(next(self.addresses), self.ports[ns, name], f"{name}-{number}")

    def publish(self, ns, name, leaving=None):
        """The EndpointSlice as it is now."""
        made = [objects.endpoint(p.host, pod=p.name, ns=ns) for p in self.pods[ns, name]]
        if leaving is not None:
            made.append(
                objects.endpoint(
                    leaving.host, ready=False, serving=True, terminating=True, pod=leaving.name
                )
            )
        ports = (("http", self.ports[ns, name]),)
        self.api.put(objects.slice(ns, f"{name}-1", name, made, ports=ports))

    def replace_one(self, ns, name, stop):
        """As a rollout does: a new pod, then the oldest leaves."""
        pods = self.pods[ns, name]
        pods.append(self.new_pod(ns, name))
        oldest = pods.pop(0)
        self.publish(ns, name, oldest)
        stop.wait(1)
        self.publish(ns, name)
        oldest.drain()
        self.backends.all.remove(oldest)

    def run(self, stop):
        """Replaces pods until told to stop."""
        steps = [
            lambda ns=ns, name=name: self.replace_one(ns, name, stop) for ns, name, _ in SERVICES
        ]
        roll(stop, steps)

    def close(self):
        """Ends the servers."""
        self.api.stop()
        self.backends.stop()


class Kubeconfig:
    """A cluster of yours; nothing in it is changed."""

    def __init__(self, path):
        self.title = f"the cluster of {path}"
        # you may read it, nobody may not: nginx runs as you here
        self.user = "user root root;" if os.geteuid() == 0 else None
        self.directive = f'api "kubeconfig={path}";'
        self.arguments = ["--kubeconfig", path]
        found = self.find()
        self.namespaces = sorted({ns for ns, _ in found})
        self.hosts = [(f"{name}.{ns}", f"{ns}/{name}") for ns, name in found[:SHOWN]]
        self.note = (
            f"found {len(found)} Services in {len(self.namespaces)} namespaces"
            + (f", the first {SHOWN} have a host name here" if len(found) > SHOWN else "")
            + "; requests need a route from here to the pods' network"
        )

    def find(self):
        """(namespace, name) of each Service."""
        done = subprocess.run(
            [COMMAND, *self.arguments, "--until-synced", "--timeout", "30"],
            stdout=subprocess.PIPE,
            check=False,
        )
        if done.returncode:
            raise DemoError("the cluster cannot be read, see above")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        found = [
            (r["namespace"], r["name"])
            for r in rows
            if r["type"] == "add" and r["resource"] == "services"
        ]
        if not found:
            raise DemoError("there is no Service in this cluster")
        return sorted(found)

    def run(self, stop):
        """Only watches."""
        stop.wait()

    def close(self):
        """There is nothing to end."""


class ControlPlane:
    """A real kube-apiserver with controllers and pods, in a network namespace."""

    title = "a real control plane, in a network namespace"

    def __init__(self, sweeper):
        import netns
        from testbed import BINARY, Testbed

        if os.geteuid() != 0:
            raise DemoError("a network namespace needs root")
        if not os.path.exists(BINARY):
            raise DemoError("the control plane is not built: make testbed")
        self.stack = contextlib.ExitStack()
        try:
            say("starting the control plane ...")
            self.directory = nginx_lib.new_prefix()
            sweeper.knows("directory", self.directory)
            self.stack.callback(shutil.rmtree, self.directory, True)
            namespace = netns.NetNS(inside=True)
            sweeper.knows("netns", namespace.name)
            self.stack.enter_context(namespace)
            self.testbed = self.stack.enter_context(Testbed(self.directory))
            self.deploy()
        except BaseException:
            self.stack.close()
            raise
        self.user = "user root root;"
        self.directive = f'api "kubeconfig={self.testbed.kubeconfig}";'
        self.arguments = ["--kubeconfig", self.testbed.kubeconfig]
        self.namespaces = sorted({ns for ns, _, _ in SERVICES})
        self.hosts = HOSTS
        self.note = None

    def deploy(self):
        """The same Services as the stand-in's, each a Deployment."""
        bed = self.testbed
        for ns in sorted({ns for ns, _, _ in SERVICES}):
            bed.namespace(ns)
        for ns, name, count in SERVICES:
            bed.apply(bed.deployment(ns, name, count, prestop_ms=1000))
            bed.apply(bed.service(ns, name))
        for ns, name, count in SERVICES:
            bed.wait_ready(ns, name, count)

    def run(self, stop):
        """Restarts the Deployments in turn."""
        bed = self.testbed
        roll(stop, [lambda a=s[0], b=s[1]: bed.rollout_restart(a, b) for s in SERVICES])

    def close(self):
        """Ends the control plane and the namespace."""
        self.stack.close()


class Relay:
    """
    Carries connections from a listener to nginx in the namespace the calling
    thread is in now; the listener stays in the one it was made in.
    """

    def __init__(self, listener, port):
        self.listener = listener
        self.port = port
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        """Until the listener is closed."""
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.port), 5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self.carry, args=pair, daemon=True).start()

    @staticmethod
    def carry(source, target):
        """Bytes, one way."""
        with contextlib.suppress(OSError):
            while True:
                data = source.recv(65536)
                if not data:
                    break
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def close(self):
        """Ends accepting."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(5)


def configuration(source, port):
    """nginx.conf."""
    with open(os.path.join(HERE, "demo.conf.in"), encoding="utf-8") as f:
        text = f.read()
    hosts = [(f"{name}.localhost", key) for name, key in source.hosts]
    values = {
        "MODULES": nginx_lib.load_modules().rstrip(),
        "USER": source.user or nginx_lib.user_line().rstrip(),
        "API": source.directive,
        "HOSTS": "\n".join(
            f"        {host}  {key};" for host, key in [("default", hosts[0][1])] + hosts
        ),
        "NAMESPACES": ",".join(source.namespaces),
        "PORT": str(port),
    }
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def told(event):
    """One line for a change, or None."""
    if event["type"] == "synced":
        return f"  synced   {event['resource']}: {event['count']}"
    if event["resource"] != "endpointslices":
        return f"  {event['type']:8} Service {event['namespace']}/{event['name']}"
    made = event.get("object") or {}
    counts = {"ready": 0, "terminating": 0, "not ready": 0}
    for endpoint in made.get("endpoints", ()):
        state = "not ready"
        if endpoint["ready"]:
            state = "ready"
        elif endpoint["terminating"]:
            state = "terminating"
        counts[state] += 1
    name = f"{event['namespace']}/{made.get('service') or event['name']}"
    text = ", ".join(f"{n} {state}" for state, n in counts.items() if n) or "no endpoints"
    pods = " ".join(
        e["pod"] or e["address"] for e in made.get("endpoints", ())[:6] if e["ready"]
    )
    return f"  {event['type']:8} {name}: {text}" + (f" ({pods})" if pods else "")


class Changes:
    """kube-informer, as a process, one line of ours for each of its."""

    def __init__(self, arguments):
        self.process = subprocess.Popen(
            [COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=with_parent(),
        )
        self.thread = threading.Thread(target=self._print, daemon=True)

    def start(self):
        """From now on it prints."""
        self.thread.start()

    def _print(self):
        for line in self.process.stdout:
            text = told(json.loads(line))
            if text:
                say(text)

    def close(self):
        """Ends it."""
        self.process.terminate()
        self.process.wait(10)
        if self.thread.is_alive():
            self.thread.join(5)
        self.process.stdout.close()


def introduce(source, port):
    """What to open, and what to type."""
    base = f"http://127.0.0.1:{port}"
    say()
    say(f"nginx follows {source.title} and listens on {base}/")
    if source.note:
        say(source.note)
    say()
    say(f"  open   {base}/kube/                  what is known, and why it is used")
    say(f"         {base}/kube/api/v1/status     the same for programs")
    say(f"         {base}/kube/metrics           the same for Prometheus")
    for name, key in source.hosts:
        say(f"         http://{name}.localhost:{port}/".ljust(46) + f" {key}")
    say()
    say(f"  try    curl -i -H 'Host: {source.hosts[-1][0]}.localhost' {base}/")
    say(f"         while sleep 0.2; do curl -s {base}/; done")
    say()
    say("every change, as the informer sees it (^C ends):")


def place(port):
    """A listener of ours on the port, or why there is none."""
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise DemoError(f"port {port}: {error.strerror}; PORT=8081 takes another one") from None
    return listener


def show(args, stop, stack):
    """All of it; what it started is in the stack."""
    sweeper = Sweeper()
    stack.callback(sweeper.close)
    listener = place(args.port)
    stack.callback(listener.close)
    port = args.port
    if args.cluster:
        source = ControlPlane(sweeper)
    elif args.kubeconfig:
        path = os.path.expanduser(args.kubeconfig.split(":")[0])
        source = Kubeconfig(os.path.abspath(path))
    else:
        source = StandIn()
    if os.environ.get("KUBECONFIG") and not args.kubeconfig:
        say("KUBECONFIG is in the environment, but not used here:")
        say("    make demo KUBECONFIG=file   takes the cluster of a file")
    stack.callback(source.close)
    if args.cluster:
        stack.callback(Relay(listener, port).close)
    else:
        listener.close()

    nginx = nginx_lib.Nginx(configuration(source, port))
    sweeper.knows("directory", nginx.prefix)
    stack.callback(nginx.stop, check=False)
    nginx.start()

    def ready():
        return stop.is_set() or request(port, "/ready").status in (200, 404)

    with contextlib.suppress(nginx_lib.Timeout):
        nginx_lib.wait_until(ready, 20)
    changes = Changes(source.arguments)
    stack.callback(changes.close)
    introduce(source, port)
    changes.start()
    rolling = threading.Thread(target=source.run, args=(stop,), daemon=True)
    rolling.start()
    stack.callback(rolling.join, 10)
    stop.wait(args.seconds)
    stop.set()


def port_number(text):
    """One that nginx can listen on."""
    if text.isdecimal() and 0 < int(text) < 65536:
        return int(text)
    raise argparse.ArgumentTypeError(f'"{text}" is no port from 1 to 65535')


def options():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=port_number, default=8080, help="of nginx on 127.0.0.1")
    parser.add_argument("--seconds", type=float, help="end by itself after so many")
    parser.add_argument("--kubeconfig", help="follow the cluster of this file")
    parser.add_argument("--cluster", action="store_true", help="on a real control plane")
    return parser.parse_args()


def stop_when_told():
    """An event that each signal sets, however many come at once.

    Not from within the handler: Event has a lock that is not reentrant, and a
    handler may interrupt who holds it, which may be another handler.
    """
    stop, told = threading.Event(), queue.SimpleQueue()
    for sig in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(sig, lambda number, _: told.put(number))
    threading.Thread(target=lambda: (told.get(), stop.set()), daemon=True).start()
    return stop


def main():
    """Runs until ^C."""
    args = options()
    stop = stop_when_told()
    # make may be killed, too
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    code = 0
    try:
        with contextlib.ExitStack() as stack:
            show(args, stop, stack)
            say()
            say("ending ...")
    except (DemoError, AssertionError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        code = 1
    say("nothing is left behind")
    sys.exit(code)


if __name__ == "__main__":
    main()
