# The control plane as tests use it: starts and stops the processes of
# kube-testbed, drives the API, and runs its load and swap instruments.
#
# The caller must already be inside a network namespace made by netns.py:
#
#     with netns.NetNS(inside=True) as ns, Testbed(tmp_path) as tb:
#         tb.apply(...)
#
# nginx is to reach the API server at ADVERTISE; controllers, kubelet and this
# file use 127.0.0.1, so that ns.drop(PORT, ADVERTISE) cuts off nginx alone.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause

import json
import os
import select
import signal
import socket
import subprocess
import time

import kubeapi

HERE = os.path.dirname(os.path.abspath(__file__))
BINARY = os.environ.get("KUBE_TESTBED",
                        os.path.join(HERE, "bin", "kube-testbed"))

ADVERTISE = "10.244.0.1"
PORT = 6443
ETCD = "127.0.0.1:2379"

START_LIMIT = 90
STOP_LIMIT = 10
POLL = 0.02


class TestbedError(Exception):
    """What was waited for did not come, or a process ended on its own."""

    __test__ = False             # no test class, whatever its name says


def wait_for(condition, timeout, what):
    """Call condition until it is true, and return what it returned."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TestbedError("no %s within %g s" % (what, timeout))
        time.sleep(POLL)


class Process:
    """One kube-testbed process, known by its pid and nothing else.

    It holds the writing end of the child's standard input and nothing more
    is needed for the child to end, should this process be killed.
    """

    def __init__(self, log, *args):
        self.name = args[0]
        self.log = log
        self._buffer = b""
        with open(log, "ab") as stderr:
            self.child = subprocess.Popen(
                [BINARY, *map(str, args)], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=stderr)
        self.pid = self.child.pid

    def line(self, timeout):
        """The next line of output, decoded."""
        deadline = time.monotonic() + timeout
        out = self.child.stdout.fileno()
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TestbedError("%s said nothing for %g s; its log ends:\n"
                                   "%s" % (self.name, timeout, self.tail()))
            if not select.select([out], [], [], left)[0]:
                continue
            more = os.read(out, 1 << 16)
            if not more:
                self.child.wait()
                raise TestbedError("%s ended (%d); its log ends:\n%s" % (
                    self.name, self.child.returncode, self.tail()))
            self._buffer += more
        line, self._buffer = self._buffer.split(b"\n", 1)
        return json.loads(line)

    def tail(self, size=4000):
        with open(self.log, "rb") as f:
            f.seek(max(0, os.path.getsize(self.log) - size))
            return f.read().decode(errors="replace")

    def running(self):
        return self.child.poll() is None

    def end_input(self):
        """Ask a load to stop and report."""
        if self.child.stdin and not self.child.stdin.closed:
            self.child.stdin.close()

    def kill(self, sig=signal.SIGKILL):
        """End the process and wait for it."""
        if self.running():
            self.child.send_signal(sig)
        try:
            self.child.wait(STOP_LIMIT)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.end_input()
        self.child.stdout.close()

    def rss(self):
        """Resident memory in MiB."""
        with open("/proc/%d/status" % self.pid) as f:
            for line in f:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) / 1024
        return 0


class Load:
    """A load that runs; result() waits for its report."""

    def __init__(self, process, progress, limit):
        self._process = process
        self._progress = progress
        self._limit = limit
        self._result = None

    def progress(self):
        """Running totals: total, failed, status, pods."""
        try:
            with open(self._progress) as f:
                return json.load(f)
        except FileNotFoundError:
            return {"total": 0, "failed": 0, "status": {}, "pods": 0}

    def running(self):
        return self._process.running()

    def wait_total(self, more, timeout=60):
        """Wait until so many requests more than now are answered."""
        goal = self.progress()["total"] + more
        wait_for(lambda: self.progress()["total"] >= goal, timeout,
                 "%d further requests" % more)

    def result(self):
        if self._result is None:
            try:
                self._result = self._process.line(self._limit)
            finally:
                self._process.kill()
        return self._result

    def stop(self):
        """Send no more, and report."""
        self._process.end_input()
        return self.result()


class Testbed:
    """etcd, API server, controllers and kubelet, below one directory."""

    __test__ = False

    def __init__(self, directory, tokens=(), apiserver_flags=(), nodes=2,
                 port=PORT):
        """tokens: NAME=TOKEN[:GROUP] each, for tests of RBAC."""
        self.dir = os.path.abspath(str(directory))
        self.port = port
        self.nodes = nodes
        self.tokens = list(tokens)
        self.flags = list(apiserver_flags)
        self.keys = os.path.join(self.dir, "api")
        self.kubeconfig = os.path.join(self.keys, "admin.kubeconfig")
        self.cert_kubeconfig = os.path.join(self.keys, "cert.kubeconfig")
        self.loopback = os.path.join(self.keys, "loopback.kubeconfig")
        self.ca = os.path.join(self.keys, "ca.crt")
        self.token_file = os.path.join(self.keys, "token")
        self.url = "https://%s:%d" % (ADVERTISE, port)
        self.api = None
        self.seconds = None      # the last start took
        self._processes = {}
        self._loads = []
        self._serial = 0

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()

    # Processes

    def start(self):
        """Start everything; returns when the first node is there."""
        self._check_place()
        os.makedirs(self.dir, exist_ok=True)
        began = time.monotonic()
        try:
            self._start("etcd", "--tether", "--dir", self.dir, "--listen",
                        ETCD)
            self.start_apiserver()
            self.api = kubeapi.Api("127.0.0.1", self.port, self.ca,
                                   self.token)
            self._start("controllers", "--tether", "--kubeconfig",
                        self.loopback)
            self._start("kubelet", "--tether", "--kubeconfig", self.loopback,
                        "--nodes", self.nodes)
        except BaseException:
            self.stop()
            raise
        self.seconds = time.monotonic() - began

    @staticmethod
    def _check_place():
        if not os.access(BINARY, os.X_OK):
            raise TestbedError("%s is missing: build it with 'go build -o "
                               "bin/kube-testbed .' in t/cluster" % BINARY)
        with socket.socket() as s:
            try:
                s.bind((ADVERTISE, 0))
            except OSError as e:
                raise TestbedError("%s is no address here: run inside the "
                                   "namespace (netns.py)" % ADVERTISE) from e

    def _start(self, name, *args):
        log = os.path.join(self.dir, name + ".log")
        process = Process(log, name, *args)
        self._processes[name] = process
        return process.line(START_LIMIT)

    def stop(self):
        """End everything that was started here."""
        for load in self._loads:
            load.kill()
        self._loads.clear()
        for name in ("kubelet", "controllers", "apiserver", "etcd"):
            process = self._processes.pop(name, None)
            if process:
                process.kill()
        if self.api:
            self.api.close()

    def start_apiserver(self):
        """Returns when /readyz says ok."""
        args = ["--tether", "--etcd", "http://" + ETCD, "--dir", self.keys,
                "--advertise", ADVERTISE, "--port", self.port]
        for token in self.tokens:
            args += ["--token", token]
        if self.flags:
            args += ["--", *self.flags]
        return self._start("apiserver", *args)

    def kill_apiserver(self):
        """SIGKILL: at SIGTERM it would drain for a minute and serve on."""
        self._processes.pop("apiserver").kill()
        if self.api:
            self.api.close()

    def processes(self):
        """The processes that run, by name."""
        return dict(self._processes)

    @property
    def token(self):
        with open(self.token_file) as f:
            return f.read().strip()

    def api_as(self, token):
        """A client of the API with another token."""
        return kubeapi.Api("127.0.0.1", self.port, self.ca, token)

    def compact(self, revision="latest"):
        """Discard etcd's history; returns the revision.

        The API server answers from its own memory for a while yet: a resume
        is refused (410) for certain only after a restart of it.
        """
        done = subprocess.run(
            [BINARY, "compact", "--etcd", "http://" + ETCD, "--revision",
             str(revision)], capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise TestbedError(done.stderr)
        return json.loads(done.stdout)["revision"]

    # Objects

    def apply(self, obj):
        return self.api.apply(obj)

    def namespace(self, name):
        return self.apply({"apiVersion": "v1", "kind": "Namespace",
                           "metadata": {"name": name}})

    def delete(self, obj_or_kind, namespace=None, name=None,
               api_version="v1"):
        """Delete an object and what belongs to it.

        There is no garbage collector here: a Deployment is scaled down and
        loses its ReplicaSets, a Service its slices.  Namespaces stay.
        """
        if isinstance(obj_or_kind, dict):
            kind = obj_or_kind["kind"]
            path = kubeapi.object_path(obj_or_kind)
            meta = obj_or_kind["metadata"]
            namespace = meta.get("namespace", "default")
            name = meta["name"]
        else:
            kind = obj_or_kind
            path = kubeapi.path_of(kind, namespace, name, api_version)
        if kind == "Deployment":
            self._delete_deployment(path, namespace)
            return
        self.api.delete(path)
        if kind == "Service":
            self.api.delete(self._slices_path(namespace),
                            labelSelector=_of_service(name))

    def _delete_deployment(self, path, namespace):
        deployment = self.api.find(path)
        if deployment is None:
            return
        self.api.patch(path, {"spec": {"replicas": 0}})
        sets = kubeapi.path_of("ReplicaSet", namespace, None, "apps/v1")
        uid = deployment["metadata"]["uid"]

        def mine():
            return [s for s in self.api.items(sets)
                    if any(o["uid"] == uid for o in
                           s["metadata"].get("ownerReferences", []))]

        wait_for(lambda: not any(s["spec"]["replicas"]
                                 or s["status"]["replicas"]
                                 for s in mine()), 60, "end of the pods")
        self.api.delete(path)
        for s in mine():
            self.api.delete(sets + "/" + s["metadata"]["name"])

    def deployment(self, namespace, name, replicas, port=8080, start_ms=100,
                   prestop_ms=0, grace_ms=500, max_surge=None,
                   max_unavailable=None):
        """A Deployment as an object, not yet applied; app=NAME selects it."""
        labels = {"app": name}
        strategy = {}
        if max_surge is not None:
            strategy["maxSurge"] = max_surge
        if max_unavailable is not None:
            strategy["maxUnavailable"] = max_unavailable
        return {
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": namespace, "name": name,
                         "labels": labels},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "strategy": {"type": "RollingUpdate",
                             "rollingUpdate": strategy},
                "template": {
                    "metadata": {"labels": labels, "annotations": {
                        "testbed/start-ms": str(start_ms),
                        "testbed/prestop-ms": str(prestop_ms),
                        "testbed/grace-ms": str(grace_ms)}},
                    "spec": {"containers": [{
                        "name": "main", "image": "none",
                        "ports": [{"name": "http",
                                   "containerPort": port}]}]},
                },
            },
        }

    def service(self, namespace, name, port=80, target=8080,
                selector=True, port_name="http"):
        """A Service as an object, not yet applied."""
        spec = {"ports": [{"name": port_name, "port": port,
                           "targetPort": target}]}
        if selector:
            spec["selector"] = {"app": name}
        return {"apiVersion": "v1", "kind": "Service", "spec": spec,
                "metadata": {"namespace": namespace, "name": name}}

    def slice(self, namespace, name, service, endpoints, port,
              port_name="http"):
        """An EndpointSlice as an object; endpoints: (address, ready)."""
        return {
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"namespace": namespace, "name": name, "labels": {
                "kubernetes.io/service-name": service}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address],
                           "conditions": {"ready": ready}}
                          for address, ready in endpoints],
            "ports": [{"name": port_name, "port": port, "protocol": "TCP"}],
        }

    # Workloads

    @staticmethod
    def _deployment_path(namespace, name):
        return kubeapi.path_of("Deployment", namespace, name, "apps/v1")

    def scale(self, namespace, name, replicas):
        return self.api.patch(self._deployment_path(namespace, name),
                              {"spec": {"replicas": replicas}})

    def rollout_restart(self, namespace, name):
        """As kubectl rollout restart: each pod is replaced."""
        return self.api.patch(self._deployment_path(namespace, name), {
            "spec": {"template": {"metadata": {"annotations": {
                "kubectl.kubernetes.io/restartedAt": str(time.time_ns())}}}}})

    def wait_rollout(self, namespace, name, timeout=120, gone=True):
        """Wait until all replicas are new and available.

        With gone, until the replaced pods' objects are away too.
        """
        path = self._deployment_path(namespace, name)

        def done():
            d = self.api.get(path)
            want = d["spec"]["replicas"]
            s = d["status"]
            if s.get("observedGeneration", 0) < d["metadata"]["generation"]:
                return False
            if any(s.get(field, 0) != want for field in (
                    "replicas", "updatedReplicas", "availableReplicas")):
                return False
            pods = self.pods(namespace, app=name) if gone else ()
            return len(pods) == want if gone else True

        wait_for(done, timeout, "rollout of %s/%s" % (namespace, name))

    def pods(self, namespace, **labels):
        selector = ",".join("%s=%s" % kv for kv in labels.items())
        query = {"labelSelector": selector} if selector else {}
        return self.api.items(kubeapi.path_of("Pod", namespace), **query)

    @staticmethod
    def _slices_path(namespace):
        return kubeapi.path_of("EndpointSlice", namespace, None,
                               "discovery.k8s.io/v1")

    def slices(self, namespace, service):
        return self.api.items(self._slices_path(namespace),
                              labelSelector=_of_service(service))

    def endpoints(self, namespace, service):
        """(address, port, conditions) of each endpoint, all slices."""
        found = []
        for s in self.slices(namespace, service):
            for port in s.get("ports") or ():
                for e in s.get("endpoints") or ():
                    found.append((e["addresses"][0], port["port"],
                                  e.get("conditions") or {}))
        return found

    def ready_endpoints(self, namespace, service):
        return [(address, port) for address, port, conditions
                in self.endpoints(namespace, service)
                if conditions.get("ready", True)]

    def wait_ready(self, namespace, service, count, timeout=60):
        """Wait until the slices show exactly so many ready endpoints."""
        wait_for(lambda: len(self.ready_endpoints(namespace, service))
                 == count, timeout, "%d ready endpoints of %s/%s"
                 % (count, namespace, service))
        return self.ready_endpoints(namespace, service)

    # Instruments

    def start_load(self, target, connections=16, requests=1000, duration=300,
                   timeout=10, rate=0, post_share=0, delays=(), path=(),
                   host=(), retry_closed=False, seed=1):
        """Start a load from kept connections; lists are taken in turn."""
        self._serial += 1
        base = os.path.join(self.dir, "load-%d" % self._serial)
        args = ["load", "--until-stdin-closes", "--target", _joined(target),
                "--connections", connections, "--requests", requests,
                "--duration", "%gs" % duration, "--timeout", "%gs" % timeout,
                "--rate", rate, "--post-share", post_share, "--seed", seed,
                "--progress-file", base + ".json"]
        for flag, values in (("--delays", delays), ("--path", path),
                             ("--host", host)):
            if values:
                args += [flag, _joined(values)]
        if retry_closed:
            args.append("--retry-closed")
        process = Process(base + ".log", *args)
        self._loads.append(process)
        process.line(START_LIMIT)
        return Load(process, base + ".json", duration + timeout + 30)

    def load(self, target, **kw):
        """A whole load; returns its report."""
        return self.start_load(target, **kw).result()

    def swap(self, namespace, service, slice, target, addresses, swaps=60,
             workers=2, per_worker=1, host=None, limit=5, pause_ms=0.25,
             timeout=180):
        """Time the swaps of an endpoint; returns the report.

        A worker that does not follow a swap within limit is counted missed.

        The slice must exist, with one port.  nginx must send the header
        X-Worker-Pid ($pid), and keep connections for long
        (keepalive_requests).
        """
        args = ["swap", "--tether", "--kubeconfig", self.kubeconfig,
                "--namespace", namespace, "--service", service,
                "--slice", slice, "--target", target,
                "--addresses", _joined(addresses), "--swaps", swaps,
                "--workers", workers, "--per-worker", per_worker,
                "--limit", "%gs" % limit, "--pause", "%gms" % pause_ms]
        if host:
            args += ["--host", host]
        process = Process(os.path.join(self.dir, "swap.log"), *args)
        self._loads.append(process)
        try:
            process.line(START_LIMIT)
            return process.line(timeout)
        finally:
            process.kill()


def _of_service(name):
    return "kubernetes.io/service-name=" + name


def _joined(value):
    return value if isinstance(value, str) else ",".join(value)
