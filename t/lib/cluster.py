# A small cluster for tests and the demo: the stand-in API server, Services with
# backends that answer on loopback addresses, and an nginx that follows them.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Stand-in API server, backends and nginx, tied together."""

import itertools
import os

import objects
from apiserver import ApiServer
from backend import Backends
from client import Load, request
from nginx import Nginx, free_port, full_conf, wait_until
from status import Status

ALLOW = "allow_address 127.0.0.0/8 ::1;"
QUICK = "backoff 50ms 500ms unreachable=500ms;"

# How a block asks for lists unless it says so itself: as the directive's default.
# "off" in the environment runs all tests over plain lists, as from an API server
# that has no WatchList.
WATCH_LIST = os.environ.get("KUBE_WATCH_LIST", "auto")

# How a block asks for objects unless it says so itself, and whether the stand-in
# has Protocol Buffers then: "auto" in the environment runs all tests over these.
ENCODING = os.environ.get("KUBE_ENCODING", "")

VARIABLES = (
    "kube_service kube_pod kube_node kube_zone kube_endpoint_state kube_generation "
    "kube_age kube_synced kube_error"
).split()

# What a response says about how it was routed, and the access log too.
TELL = "".join(
    f"    add_header X-{name.replace('_', '-').title()} ${name} always;\n" for name in VARIABLES
) + (
    "    add_header X-Upstream-Addr $upstream_addr always;\n"
    "    add_header X-Upstream-Status $upstream_status always;\n"
    "    add_header X-Worker $pid always;\n"
)
LOG = (
    "    log_format kube '$status|$request_uri|$kube_service|$kube_error|$upstream_addr';\n"
    "    access_log access.log kube;\n"
)

_octets = itertools.count(1)


def informer(api, more="", name="", zone="kube 4m", quick=True, state="state_path off;"):
    """
    A kube_informer block; api: a URL, or a whole api directive.  quick:
    loopback addresses are allowed, and the backoff is short.
    """
    backoff = "" if "backoff" in more else QUICK
    watch_list = "" if "watch_list" in more else f"watch_list {WATCH_LIST};"
    encoding = f"encoding {ENCODING};" if ENCODING and "encoding" not in more else ""
    line = api if api.startswith("api ") else f"api {api};"
    if zone and not zone.startswith("zone "):
        zone = f"zone {zone};"
    return (
        f"kube_informer {name} {{\n    {zone}\n    {line}\n    {ALLOW if quick else ''}\n"
        f"    {backoff if quick else ''}\n    {watch_list}\n    {encoding}\n    {state}\n"
        f"    {more}\n}}\n"
    )


class Cluster:
    """
    What a test sets up; use it as a context.

    settings go to ApiServer.  All endpoints of one Service share a port, as
    pods do: self.port, on addresses in 127.1.0.0/16.
    """

    def __init__(self, **settings):
        settings.setdefault("protobuf", ENCODING not in ("", "json"))
        self.api = ApiServer(**settings).start()
        self.backends = Backends().start()
        self.running = []

    def __enter__(self):
        return self

    def __exit__(self, kind, *_exc):
        problems = []
        for nginx in self.running:
            try:
                nginx.stop(check=kind is None)
            except AssertionError as error:
                problems.append(str(error))
        self.api.stop()
        self.backends.stop()
        assert not problems, "\n".join(problems)

    # Objects

    @staticmethod
    def address():
        """A loopback address no other backend has."""
        n = next(_octets)
        return f"127.1.{n // 250}.{n % 250 + 1}"

    def pods(self, count=1, name="pod", port=None, **more):
        """Backends that listen, all at one port."""
        hosts = [self.address() for _ in range(count)]
        port = port or free_port(hosts)
        return [
            self.backends.add(host, port, f"{name}-{i + 1}", **more)
            for i, host in enumerate(hosts)
        ]

    def service(self, ns, name, count=1, pods=None, ports=(("http", 80, "http"),), **more):
        """A Service with pods behind it; returns the pods."""
        if pods is None:
            pods = self.pods(count, f"{ns}.{name}")
        self.api.put(objects.service(ns, name, ports=ports, **more))
        self.slice(ns, name, pods)
        return pods

    def slice(self, ns, name, pods, suffix="1", ports=None, **more):
        """
        Puts a slice of a Service; pods: backends, or dictionaries made by
        objects.endpoint().  Returns its resourceVersion.
        """
        made = [
            p
            if isinstance(p, dict)
            else objects.endpoint(p.host, pod=p.name, node="node-1", zone="zone-a", ns=ns)
            for p in pods
        ]
        if ports is None:
            numbers = [p.port for p in pods if not isinstance(p, dict)]
            ports = (("http", numbers[0] if numbers else 8080),)
        return self.api.put(
            objects.slice(ns, f"{name}-{suffix}", name, made, ports=ports, **more)
        )

    def held(self, resource, ns=""):
        """How many objects of a resource (in a namespace) the API server holds."""
        keys = list(self.api.core.store.tables[resource])
        return sum(not ns or key[0] == ns for key in keys)

    def followed(self, gateway):
        """Watching, equal to the server, and the next change of shop/web arrives."""
        for resource in ("services", "endpointslices"):
            gateway.status.wait_state("watching", resource)
        gateway.status.wait_rv(self.slice("shop", "web", self.pods(1, "after")))
        self.equal(gateway)
        gateway.wait_backends({"after-1"})

    def equal(self, gateway, timeout=None):
        """
        Waits until nginx shows as many objects of each resource as there are,
        and refuses none.  A Service can be read before the record of its scope
        says how many there are.
        """

        def check():
            rows = gateway.status.informer()["resources"]
            return all(
                row["objects"] == self.held(row["resource"], row["namespace"])
                and row["refused"] == []
                for row in rows
            )

        wait_until(check, timeout, lambda: f"{gateway.status.informer()['resources']}")

    def steady(self, gateway, ns=""):
        """Waits until each side sees that both watches run."""
        for resource in ("services", "endpointslices"):
            self.api.wait_watch(resource, ns)
            gateway.status.wait_state("watching", resource, ns)

    # nginx

    def http(self, text, port, status=True):
        """The inside of http {}: formats, the text, a status server."""
        made = LOG + TELL + text
        if status:
            made += (
                f"\n    server {{\n        listen 127.0.0.1:{port};\n"
                "        access_log off;\n"
                "        location /kube/ { kube_status; }\n"
                "        location = /ready { kube_ready; }\n    }\n"
            )
        return made

    def nginx(self, http, block=None, more="", start=True, sync=True, cls=None, env=None, **conf):
        """
        An nginx that follows this cluster.  In http, PORT is where requests
        go; block: the kube_informer blocks (default: one of this API server,
        with more in it); conf: see nginx.full_conf().
        """
        cls = cls or Gateway
        made = cls(self, http, block, more, env, conf)
        self.running.append(made)
        if start:
            made.start()
            if sync:
                made.status.wait_synced()
        return made


class Gateway(Nginx):
    """An nginx with what a test asks of it."""

    def __init__(self, cluster, http, block=None, more="", env=None, conf=None):
        self.cluster = cluster
        self.port = free_port()
        self.status_port = free_port()
        self.status = Status(self.status_port)
        self.http = http
        self.block = block
        self.more = more
        self.options = dict(conf or {})
        super().__init__(self.made(), env=env)

    def made(self):
        """The configuration as the attributes are now."""
        block = self.block
        if block is None:
            block = informer(self.cluster.api.url, self.more)
        options = {**self.options}
        options["main"] = options.get("main", "") + block
        text = self.http.replace("PORT", str(self.port))
        return full_conf(self.cluster.http(text, self.status_port), **options)

    def change(self, gone=False, **attributes):
        """Sets attributes (http, block, more, options) and reloads."""
        for name, value in attributes.items():
            setattr(self, name, value)
        self.reload(self.made(), gone=gone)

    def get(self, path="/", **more):
        """A request."""
        return request(self.port, path, **more)

    def load(self, path="/", **more):
        """A light load, to be used as a context."""
        return Load(self.port, path, **more)

    def backends(self, count=20, path="/", **more):
        """The names of the backends that answered so many requests."""
        found = {}
        for _ in range(count):
            answer = self.get(path, **more)
            key = answer.backend if answer.status == 200 else answer.status
            found[key] = found.get(key, 0) + 1
        return found

    def wait_backends(self, names, path="/", timeout=None, **more):
        """Until requests are answered by exactly these backends."""
        names = set(names)
        count = 4 * len(names) + 4

        def check():
            return set(self.backends(count, path, **more)) == names or None

        return wait_until(check, timeout, lambda: f"{names}: {self.backends(count, path, **more)}")

    def wait_status_code(self, code, path="/", timeout=None, **more):
        """Until a request is answered with that status; returns the response."""

        def check():
            answer = self.get(path, **more)
            return answer if answer.status == code else None

        return wait_until(check, timeout, lambda: f"{code}: {self.get(path, **more)}")


def rv_of(text):
    """A resourceVersion as a number, 0 for none."""
    return int(text or 0)


def uid_of(cluster, resource, ns, name):
    """The UID of an object of the stand-in."""
    return cluster.api.get(resource, ns, name)["metadata"]["uid"]


def root():
    """Whether tests may do what only root may."""
    return os.geteuid() == 0
