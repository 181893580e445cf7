# What the tests with a real API server share: a namespace with workloads, an
# nginx that follows it, and threads that watch it and change it meanwhile.
#
# The instruments (load, swap) are kube-testbed's; here is only what ties them
# to an nginx.  Nothing of this is used by the tests with the stand-in.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Ties the control plane, its workloads and nginx together."""

import contextlib
import copy
import http.client
import itertools
import json
import os
import pwd
import shutil
import socket
import ssl
import threading
import time
import urllib.parse

import kubeapi
import nginx as nginx_lib
from client import request
from nginx import Nginx, free_port, full_conf, wait_until
from status import Status

LONG = os.environ.get("KUBE_E2E_LONG") == "1"
READER = "reader"
READER_TOKEN = "reader-token"
TOKENS = [f"{READER}={READER_TOKEN}"]

PORT = 8080
STREAK = 16
DISCOVERY = "discovery.k8s.io/v1"

KILLED = r"\[alert\].*process \d+ exited on signal 9"

_serial = itertools.count(1)


# nginx

HTTP = """
    access_log off;
    keepalive_requests 1000000000;
    keepalive_timeout 600s;
    add_header X-Worker-Pid $pid always;
    add_header X-Upstream-Addr $upstream_addr always;
%(more)s
%(upstreams)s
    server {
        listen 127.0.0.1:%(port)d %(listen)s;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        client_body_buffer_size 32k;
        location = /pid { return 200 $pid; }
%(locations)s
    }
"""

STATUS = """
    server {
        listen 127.0.0.1:%d;
        location /kube/ { kube_status; }
        location = /ready { kube_ready; }
    }
"""


class Gateway(Nginx):
    """
    An nginx with an upstream and a location /NAME/ per Service.

    services: {name: key of kube_service}; static: {name: [address:port]},
    the control; block: what stands in kube_informer beside zone and api; kube
    False: without our modules.  Attributes may be changed before a reload.
    """

    def __init__(self, world, services=(), static=(), balance="keepalive 32;", location="",
                 block="", zone="kube 8m", api=None, state="off", listen="", kube=True,
                 **conf):
        self.world = world
        self.port = free_port()
        self.status_port = free_port()
        self.status = Status(self.status_port)
        self.services = dict(services)
        self.static = dict(static)
        self.balance = balance
        self.location = location
        self.block = block
        self.zone = zone
        self.api = api
        self.state = state
        self.listen = listen
        self.kube = kube
        self.options = {"level": "notice", "connections": 1024, **conf}
        super().__init__("", prefix=nginx_lib.new_prefix())
        self.own_prefix = True
        world.gateways.append(self)
        self._credentials()
        self.write_conf(self.made())

    def _credentials(self):
        """What the informer reads, for the user it runs as and nobody else."""
        tb = self.world.tb
        with open(tb.ca, "rb") as f:
            ca = self.secret("ca.crt", f.read())
        token = self.secret("token", tb.token)
        self.secret("kubeconfig", json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "testbed",
            "clusters": [{"name": "testbed", "cluster": {
                "server": tb.url, "certificate-authority": ca}}],
            "users": [{"name": "admin", "user": {"tokenFile": token}}],
            "contexts": [{"name": "testbed", "context": {
                "cluster": "testbed", "user": "admin"}}]}))

    def secret(self, name, text):
        """A file that the unprivileged processes may read."""
        path = self.write(name, text, 0o400)
        if os.geteuid() == 0:
            shutil.chown(path, pwd.getpwnam("nobody").pw_uid)
        return path

    def made(self):
        """The configuration as the attributes are now."""
        ups, places = [], []
        for name, key in self.services.items():
            ups.append((name, f"kube_service {key};"))
        for name, addresses in self.static.items():
            ups.append((name, " ".join(f"server {a};" for a in addresses)))
        upstreams = "".join(f"    upstream {n} {{ {text} {self.balance} }}\n" for n, text in ups)
        for name, _ in ups:
            places.append(f"        location /{name}/ {{ proxy_pass http://{name}; "
                          f"{self.location} }}\n")
        more = "    add_header X-Kube-Error $kube_error always;\n" if self.kube else ""
        text = HTTP % {"port": self.port, "listen": self.listen, "more": more,
                       "upstreams": upstreams, "locations": "".join(places)}
        if not self.kube:
            conf = full_conf(text, **self.options)
            return "".join(line for line in conf.splitlines(True)
                           if not line.startswith("load_module"))
        api = self.api or f"api kubeconfig={self.path('kubeconfig')};"
        block = (f"kube_informer {{\n    zone {self.zone};\n    {api}\n"
                 f"    state_path {self.state};\n    {self.block}\n}}\n")
        return full_conf(text + STATUS % self.status_port, main=block, **self.options)

    def change(self, gone=False, **attributes):
        """Sets attributes and reloads."""
        for name, value in attributes.items():
            setattr(self, name, value)
        self.reload(self.made(), gone=gone)

    def quick_reload(self, timeout=60):
        """A completed reload, seen by its processes alone: cheap."""
        before = set(self.workers())
        informer = self.informer()
        os.kill(self.master, 1)
        count = self.options.get("workers", 2)

        def done():
            workers = set(self.workers())
            return (len(workers) == count and not workers & before
                    and (not self.kube or self.informer() not in (None, informer)))

        wait_until(done, timeout, lambda: f"a completed reload:\n{self.tail()}")

    def url(self, name):
        """Where a load finds an upstream."""
        return f"http://127.0.0.1:{self.port}/{name}/"

    def get(self, name, **more):
        """A request to an upstream."""
        return request(self.port, f"/{name}/", **more)

    def routed(self, name, address, timeout=60):
        """
        Waits until only the endpoint at that address answers, by whichever
        worker; returns when it first did.
        """
        deadline, streak, first = time.monotonic() + timeout, 0, None
        while streak < STREAK:
            answer = self.get(name)
            now = time.monotonic()
            if answer.headers.get("x-pod-addr") == address:
                first = first if streak else now
                streak += 1
            else:
                streak = 0
                assert now < deadline, f"{name} not routed to {address}: {answer}\n{self.tail()}"
        return first

    def lists(self):
        """LISTs sent since the zone was made, by resource and namespace."""
        return {(r["resource"], r["namespace"]): r["lists"]
                for r in self.status.informer()["resources"]}

    def count(self, what):
        """A counter of all resources."""
        return {(r["resource"], r["namespace"]): r[what]
                for r in self.status.informer()["resources"]}

    def rebuilds(self):
        """instance_rebuilds_total."""
        return self.status.metrics().value("nginx_kube_instance_rebuilds_total")


# Threads that run beside a load


class Beside(threading.Thread):
    """A thread to be used as a context; what it raises fails the test."""

    def __init__(self):
        super().__init__(daemon=True)
        self.halt = threading.Event()
        self.error = None

    def run(self):
        try:
            self.work()
        except Exception as error:  # handed to the test's thread by stop()
            if not self.halt.is_set():
                self.error = error

    def work(self):
        """What the thread does, until halt is set."""
        raise NotImplementedError

    def interrupt(self):
        """Ends a call that blocks."""

    def stop(self):
        """Ends the thread, and raises what it raised."""
        self.halt.set()
        self.interrupt()
        self.join(60)
        assert not self.is_alive(), f"{type(self).__name__} does not end"
        if self.error:
            raise self.error

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_exc):
        if kind is None:
            self.stop()
        else:
            with contextlib.suppress(Exception):
                self.stop()


class SliceWatch(Beside):
    """
    A bare watch of a Service's slices: events is a list of (when it arrived,
    endpoints that are ready, endpoints that could be used at all).
    """

    def __init__(self, tb, namespace, service):
        super().__init__()
        selector = "kubernetes.io/service-name=" + service
        path = kubeapi.path_of("EndpointSlice", namespace, None, DISCOVERY)
        made = tb.api.get(path, labelSelector=selector)
        self.slices = {s["metadata"]["name"]: s for s in made["items"]}
        self.events = []
        self.note()
        context = ssl.create_default_context(cafile=tb.ca)
        self.conn = http.client.HTTPSConnection("127.0.0.1", tb.port, context=context)
        self.conn.connect()
        self.sock = self.conn.sock
        self.conn.request("GET", path + "?" + urllib.parse.urlencode({
            "watch": 1, "labelSelector": selector, "timeoutSeconds": 3600,
            "resourceVersion": made["metadata"]["resourceVersion"]}),
            headers={"Authorization": "Bearer " + tb.token})
        self.answer = self.conn.getresponse()
        assert self.answer.status == 200, self.answer.status

    def note(self, now=None):
        """What the slices show now."""
        ready = usable = 0
        for s in self.slices.values():
            for e in s.get("endpoints") or ():
                c = e.get("conditions") or {}
                is_ready = c.get("ready", True)
                ready += is_ready
                usable += is_ready or (c.get("serving", is_ready) and c.get("terminating", False))
        self.events.append((now or time.monotonic(), ready, usable))

    def work(self):
        while not self.halt.is_set():
            line = self.answer.readline()
            now = time.monotonic()
            assert line, "the watch of the slices ended"
            event = json.loads(line)
            name = event["object"]["metadata"]["name"]
            assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), event
            if event["type"] == "DELETED":
                self.slices.pop(name, None)
            else:
                self.slices[name] = event["object"]
            self.note(now)

    def interrupt(self):
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)


class Prober(Beside):
    """
    Asks one location over kept connections, all the time: answers is a list
    of (sent, answered, status, $kube_error, worker).
    """

    def __init__(self, gateway, name, connections=4, pause=0.001):
        super().__init__()
        self.path = f"/{name}/"
        self.conns = [http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
                      for _ in range(connections)]
        self.pause = pause
        self.answers = []

    def work(self):
        for conn in itertools.cycle(self.conns):
            if self.halt.is_set():
                break
            sent = time.monotonic()
            conn.request("GET", self.path)
            answer = conn.getresponse()
            answer.read()
            self.answers.append((sent, time.monotonic(), answer.status,
                                 answer.getheader("X-Kube-Error") or "",
                                 answer.getheader("X-Worker-Pid")))
            time.sleep(self.pause)
        for conn in self.conns:
            conn.close()


class Churn(Beside):
    """
    Changes the slice of a direct Service, rate times a second, but not while
    somebody else holds quiet.  An API server that is away is waited for.
    """

    def __init__(self, world, name, addresses, rate=25):
        super().__init__()
        self.tb = world.view()
        self.namespace = world.name
        self.name = name
        self.service = name
        self.addresses = list(addresses)
        self.pause = 1 / rate
        self.quiet = threading.Lock()
        self.changes = 0

    def work(self):
        path = kubeapi.path_of("EndpointSlice", self.namespace, self.service + "-1", DISCOVERY)
        for n in itertools.count(1):
            if self.halt.wait(self.pause):
                break
            first = n % len(self.addresses)
            count = 1 + n % 3
            chosen = (self.addresses * 2)[first:first + count]
            try:
                with self.quiet:
                    self.tb.api.patch(path, {"endpoints": [
                        {"addresses": [a], "conditions": {"ready": True}}
                        for a in sorted(set(chosen))]})
                    self.changes += 1
            except OSError:
                self.tb.api.close()
        self.tb.api.close()


class Roller(Beside):
    """
    Rolls a Deployment again and again, though pods of earlier rollouts still
    end; rolled counts completed rollouts.
    """

    def __init__(self, world, name, pause=0.0):
        super().__init__()
        self.tb = world.view()
        self.namespace = world.name
        self.deployment = name
        self.pause = pause
        self.rolled = 0

    def work(self):
        while not self.halt.is_set():
            self.tb.rollout_restart(self.namespace, self.deployment)
            self.tb.wait_rollout(self.namespace, self.deployment, gone=False)
            self.rolled += 1
            self.halt.wait(self.pause)
        self.tb.api.close()


class Sampler(Beside):
    """Calls a function again and again and keeps what it returned."""

    def __init__(self, function, pause):
        super().__init__()
        self.function = function
        self.pause = pause
        self.values = []

    def work(self):
        while not self.halt.is_set():
            self.values.append(self.function())
            self.halt.wait(self.pause)


def watch_connections(port):
    """
    How many connections to the API server's address for clients are open in
    this network namespace: those are nginx's, everything else uses 127.0.0.1.
    The kernel may show one twice where others come and go meanwhile.
    """
    remote = "%02X%02X%02X%02X:%04X" % (1, 0, 244, 10, port)
    with open("/proc/thread-self/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f][1:]
    return len({row[1] for row in rows if row[2] == remote and row[3] == "01"})


class World:
    """
    A Kubernetes namespace with a name of its own, and all that a test starts:
    gateways, loads, Deployments.  The end of the context ends them.
    """

    def __init__(self, net, tb):
        self.net = net
        self.tb = tb
        self.name = f"shop-{next(_serial)}"
        self.gateways = []
        self.loads = []
        self.deployments = []

    def __enter__(self):
        self.tb.namespace(self.name)
        return self

    def __exit__(self, kind, *_exc):
        problems = []
        for load in self.loads:
            with contextlib.suppress(Exception):
                load.stop()
        self.net.heal()
        for gateway in self.gateways:
            try:
                gateway.stop(check=kind is None)
            except AssertionError as error:
                problems.append(str(error))
        if "apiserver" not in self.tb.processes():
            self.tb.start_apiserver()
        for namespace, name in self.deployments:
            self.tb.delete("Deployment", namespace, name, api_version="apps/v1")
        assert not problems, "\n".join(problems)

    def view(self):
        """The control plane over a connection of its own, for a thread."""
        made = copy.copy(self.tb)
        made.api = self.tb.api_as(self.tb.token)
        return made

    # Workloads

    def deploy(self, name, replicas, labels=(), namespace=None, **more):
        """A Deployment and its Service; returns its addresses once ready."""
        namespace = namespace or self.name
        self.tb.apply(self.tb.deployment(namespace, name, replicas, **more))
        self.deployments.append((namespace, name))
        service = self.tb.service(namespace, name)
        service["metadata"]["labels"] = dict(labels)
        self.tb.apply(service)
        self.tb.wait_ready(namespace, name, replicas)
        return self.addresses(name, namespace)

    def direct(self, name, addresses, port=PORT, labels=()):
        """A selectorless Service with one slice, name-1, made here."""
        service = self.tb.service(self.name, name, selector=False)
        service["metadata"]["labels"] = dict(labels)
        self.tb.apply(service)
        made = self.tb.slice(self.name, name + "-1", name, [(a, True) for a in addresses], port)
        made["metadata"]["labels"].update(labels)
        self.tb.apply(made)

    def point(self, name, address, tb=None):
        """Makes an address the only endpoint of a direct Service."""
        path = kubeapi.path_of("EndpointSlice", self.name, name + "-1", DISCOVERY)
        (tb or self.tb).api.patch(path, {"endpoints": [
            {"addresses": [address], "conditions": {"ready": True}}]})

    def touch(self, name):
        """
        Changes a Service and its slices in nothing that matters: a byte on each
        watch.  The age is that of the watch that was silent for longest.
        """
        note = {"metadata": {"annotations": {"touched": str(time.time_ns())}}}
        slices = self.tb.api.get(
            kubeapi.path_of("EndpointSlice", self.name, None, DISCOVERY),
            labelSelector="kubernetes.io/service-name=" + name)
        self.tb.api.patch(kubeapi.path_of("Service", self.name, name), note)
        for item in slices["items"]:
            self.tb.api.patch(
                kubeapi.path_of("EndpointSlice", self.name, item["metadata"]["name"], DISCOVERY),
                note)

    def addresses(self, name, namespace=None):
        """address:port of the ready endpoints."""
        return [f"{a}:{p}" for a, p in
                sorted(self.tb.ready_endpoints(namespace or self.name, name))]

    def uids(self, name):
        """UIDs of the Deployment's pods."""
        return {p["metadata"]["uid"] for p in self.tb.pods(self.name, app=name)}

    def roll(self, name):
        """One rolling restart; all pods are others afterwards."""
        before = self.uids(name)
        self.tb.rollout_restart(self.name, name)
        self.tb.wait_rollout(self.name, name)
        after = self.uids(name)
        assert after and not after & before, "pods that were not replaced"

    # nginx and load

    def key(self, name, port="http"):
        """The key of a Service here."""
        return f"{self.name}/{name}:{port}"

    def gateway(self, services=(), start=True, sync=True, **more):
        """A started Gateway; services: names of Services here, or a dict."""
        if not isinstance(services, dict):
            services = {name: self.key(name) for name in services}
        made = Gateway(self, services, **more)
        if start:
            made.start()
            if made.kube and sync:
                made.status.wait_synced(60)
        return made

    def load(self, *targets, **more):
        """A load that runs until the test stops it, or is done."""
        more = {"requests": 10**9, "connections": 8, **more}
        made = self.tb.start_load(list(targets), **more)
        self.loads.append(made)
        return made

    # What must be equal at the end

    def truth(self, service):
        """{address:port: ready} as the API server's slices have it."""
        return {f"{a}:{p}": bool(c.get("ready", True))
                for a, p, c in self.tb.endpoints(self.name, service)}

    def cached(self, gateway, service):
        """The same as the status of an nginx has it."""
        made = gateway.status.service(self.name, service) or {"endpoints": []}
        return {f"{e['address']}:{p['port']}": e["ready"]
                for e in made["endpoints"] for p in e["ports"]}

    def assert_equal(self, gateway, services, timeout=60):
        """Until nginx shows what the API server shows, of each Service."""
        for service in services:
            wait_until(lambda: self.truth(service) == self.cached(gateway, service), timeout,
                       lambda: f"{service}: {self.truth(service)} at the server, "
                               f"{self.cached(gateway, service)} here\n{gateway.tail()}")
        listed = {row["name"] for row in gateway.status.services(namespace=self.name)}
        path = kubeapi.path_of("Service", self.name)
        real = {s["metadata"]["name"] for s in self.tb.api.items(path)}
        assert listed == real, f"Services: {listed} here, {real} at the server"


def failures(result):
    """A load's failures, as a text for a message."""
    return f"{result['failed']} of {result['total']} failed: {result['failures']}\n" + "\n".join(
        json.dumps(e) for e in result["errors"][:5])
