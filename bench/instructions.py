#!/usr/bin/python3
# Instructions per watch event and per request, counted by callgrind in a real
# nginx (one process, master_process off) that follows the stand-in API server.
# Counts do not depend on the load of the machine, so two builds can be compared
# on a laptop.  Not a measurement of time: a cache miss counts as much as a hit.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""
Counts instructions per event and per request, for one build or several.

Each figure is the difference of two runs, of N and of 3 N events (requests),
divided by 2 N: what nginx does at its start and end cancels.  One event or
request is under way at a time; the next one is sent when nginx sleeps again.

A release build inlines static functions: calls of functions with external
linkage are exact (-fPIC keeps them), those of static ones are not.  For these
give a build with BUILD=debug.
"""

import argparse
import contextlib
import http.client
import io
import json
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "t", "lib"))

import nginx as nginx_lib  # noqa: E402
import objects  # noqa: E402
from client import request  # noqa: E402
from cluster import QUICK, Cluster, informer  # noqa: E402
from library import build_library  # noqa: E402
from status import Status  # noqa: E402

# valgrind counts "rep stosb" by the byte, where a processor executes one
# instruction: memset() and memcpy() are told to do without.
WRAPPER = """#!/bin/sh
export GLIBC_TUNABLES=glibc.cpu.x86_rep_stosb_threshold={never}
GLIBC_TUNABLES=$GLIBC_TUNABLES:glibc.cpu.x86_rep_movsb_threshold={never}
LD_PRELOAD="{preload}" exec valgrind --tool=callgrind --quiet --callgrind-out-file={out} \\
    {nginx} "$@"
"""

CALLS = (
    "kube_record_(get_)?id",
    "kube_object_(read|parse|id)\\w*",
    "kube_zone_(writer_)?find",
    "kube_zone_stage",
    "kube_zone_publish",
    "kube_decode_(object|watch_event|event)",
    "kube_json_parse",
    "kube_select",
    "kube_zone_read",
    "ngx_http_kube_peers_made",
)

# How long malloc and free look around depends on what else the heap holds.
HEAP = r"_?(int_)?(malloc|free|memalign|calloc|realloc)(_consolidate)?|_mid_memalign.*|" \
    r"posix_memalign|unlink_chunk.*|alloc_perturb|tcache_.*|sysmalloc|systrim.*"

# What a request runs of ours; beside a busy machine this alone is exact, for the
# informer in the same process has timers.
OURS = r"ngx_http_kube_\w+|ngx_kube_(count|views?|instance)\w*|kube_zone_(head|worker_add)"

SLICES, ENDPOINTS = 10, 10
PRELOADED = ("no_time", "pods")
KEY = "shop/web:http"
START = 120

UPSTREAMS = f"""
    map $arg_host $key    {{ web {KEY}; default none; }}
    map $arg_host $target {{ web FIRST; default none; }}

    upstream static_servers {{ SERVERS keepalive 16; keepalive_requests 1000000; }}
    upstream static_closing {{ SERVERS }}
    upstream static_service {{
        kube_service {KEY}; keepalive 16; keepalive_requests 1000000;
    }}
    upstream mapped_service {{
        kube_service $key namespaces=shop; keepalive 16; keepalive_requests 1000000;
    }}

    access_log off;
    keepalive_requests 1000000;
    proxy_http_version 1.1;

    # which of two requests fills a block of its pool is a matter of luck
    request_pool_size 16k;
"""

# A server each, of which nothing but this differs: a longer name of a location
# or an upstream would cost instructions, too.
SERVER = """
    server {{
        listen 127.0.0.1:{port};
        location / {{ {location} }}
    }}
"""

KEPT = 'proxy_set_header Connection ""; '
CLOSED = "proxy_set_header Connection close; "

# what is asked for, where, and the static upstream it is held against
REQUESTS = (
    ("static", "/", KEPT + "proxy_pass http://static_servers;", None),
    ("static key", "/", KEPT + "proxy_pass http://static_service;", "static"),
    ("static, map", "/?host=web", KEPT + "set $t $key; proxy_pass http://static_servers;", None),
    ("map key", "/?host=web", KEPT + "proxy_pass http://mapped_service;", "static, map"),
    ("static, no keepalive", "/", CLOSED + "proxy_pass http://static_closing;", None),
    (
        "map, proxy_pass $variable",
        "/?host=web",
        CLOSED + "proxy_pass http://$target;",
        "static, no keepalive",
    ),
    (
        "kube_resolve",
        "/",
        f"kube_resolve $endpoint {KEY}; " + CLOSED + "proxy_pass http://$endpoint;",
        "map, proxy_pass $variable",
    ),
)
STATUS = "kube_status;"


class Profile:
    """A callgrind file: instructions in all, and by function."""

    def __init__(self, path=None):
        self.total = 0
        self.self = {}
        self.inclusive = {}
        self.calls = {}
        if path is not None:
            self._read(path)

    def _read(self, path):
        names, objs, obj, cobj = {}, {}, None, None
        function, callee, count, follows = None, None, 0, False
        with open(path, encoding="utf-8", errors="replace") as f:
            for line in f:
                if line[0] in "0123456789+-*":
                    cost = int((line.split() + ["0"])[1])
                    if follows:
                        self._add(self.calls, callee, count)
                        follows = False
                    else:
                        self._add(self.self, function, cost)
                        self.total += cost
                    self._add(self.inclusive, function, cost)
                elif m := re.match(r"(c?)ob=\((\d+)\)(?: (\S+))?", line):
                    name = objs.setdefault(m[2], os.path.basename(m[3] or ""))
                    if m[1]:
                        cobj = name
                    else:
                        obj = name
                elif m := re.match(r"(c?)fn=\((\d+)\)(?: (\S+))?", line):
                    if m[2] not in names:
                        # a stripped library has addresses for names
                        where = (m[1] and cobj) or obj
                        names[m[2]] = f"{where}:{m[3]}" if m[3].startswith("0x") else m[3]
                    if m[1]:
                        callee, cobj = names[m[2]], None
                    else:
                        function = names[m[2]]
                elif line.startswith("calls="):
                    count, follows = int(line[6:].split()[0]), True

    @staticmethod
    def _add(counts, name, more):
        counts[name] = counts.get(name, 0) + more

    def per(self, other, count):
        """(other - self) / count."""
        made = Profile()
        made.total = (other.total - self.total) / count
        for name in ("self", "inclusive", "calls"):
            mine, its = getattr(self, name), getattr(other, name)
            setattr(made, name, {k: (v - mine.get(k, 0)) / count for k, v in its.items()})
        return made

    def of(self, pattern):
        """Instructions in functions with a name that the pattern matches."""
        wanted = re.compile(pattern)
        return sum(v for k, v in self.self.items() if wanted.fullmatch(k))

    def called(self, patterns):
        """{function: calls} of those with a name that a pattern matches."""
        wanted = re.compile("|".join(f"(?:{p})" for p in patterns) or "(?!)")
        return {k: v for k, v in self.calls.items() if wanted.fullmatch(k) and v > 0.0005}


class Bed:
    """nginx under callgrind, its cluster, and how to tell that it sleeps."""

    def __init__(self, build, slices=1, network=10):
        self.build = os.path.abspath(build)
        self.slices = slices
        self.network = network
        self.cluster = Cluster(bookmark_interval=3600)
        self.pods = self.cluster.pods(ENDPOINTS)
        self.anywhere = self.cluster.backends.add("0.0.0.0")
        self.profile = None

    def __enter__(self):
        api = self.cluster.api
        api.put(objects.service("shop", "web", ports=(("http", 80, "http"),)))
        self.put_pods()
        for i in range(1, self.slices):
            self.put_slice(i, True)

        nginx_lib.BUILD_DIR = self.build
        locations = {what: location for what, _, location, _ in REQUESTS}
        locations["status"] = STATUS
        self.ports = {what: nginx_lib.free_port() for what in locations}
        conf = UPSTREAMS + "".join(
            SERVER.format(port=port, location=locations[what])
            for what, port in self.ports.items()
        )
        servers = " ".join(f"server {pod.address};" for pod in self.pods)
        texts = {"SERVERS": servers, "FIRST": self.pods[0].address}
        self.nginx = nginx_lib.Nginx(
            nginx_lib.full_conf(
                re.sub("|".join(texts), lambda m: texts[m.group()], conf),
                main=informer(api.url, QUICK, quick=self.network == 127),
                master=False,
                workers=1,
            )
        )
        self.status = Status(self.ports["status"], prefix="")
        self.out = self.nginx.path("callgrind.out")
        preload = [self.nginx.path(f"{name}.so") for name in PRELOADED]
        for name, path in zip(PRELOADED, preload):
            build_library(name, path)
        wrapper = self.nginx.write(
            "callgrind",
            WRAPPER.format(
                out=self.out, nginx=nginx_lib.NGINX, preload=" ".join(preload), never=1 << 40
            ),
            0o755,
        )
        plain, nginx_lib.NGINX = nginx_lib.NGINX, wrapper
        try:
            self.nginx.start(wait=False)
        finally:
            nginx_lib.NGINX = plain
        for resource in ("services", "endpointslices"):
            api.wait_watch(resource, timeout=START)
        self.settle()
        return self

    def __exit__(self, kind, *_exc):
        try:
            problems = self.nginx._stop(nginx_lib.signal.SIGTERM) + self.nginx.problems()
            if kind is None:
                assert not problems, problems
                self.profile = Profile(self.out)
        finally:
            self.nginx.stop(check=False)
            self.cluster.__exit__(kind)

    def put_pods(self):
        """The first slice, of the backends that static upstreams have too."""
        self.cluster.api.put(
            objects.slice(
                "shop",
                "web-0",
                "web",
                [
                    objects.endpoint(
                        pod.host.replace("127", str(self.network), 1),
                        pod=f"web-0-{k}",
                        node="node-0",
                        ns="shop",
                    )
                    for k, pod in enumerate(self.pods)
                ],
                ports=(("http", self.pods[0].port),),
            )
        )

    def put_slice(self, i, ready):
        """
        The i-th slice, of addresses that one backend listens at, in no order;
        its resourceVersion.
        """
        numbers = [(i * ENDPOINTS + k) * 61 % 251 for k in range(ENDPOINTS)]
        return self.cluster.api.put(
            objects.slice(
                "shop",
                f"web-{i}",
                "web",
                [
                    objects.endpoint(
                        f"{self.network}.9.{n % 16}.{n + 1}",
                        ready=ready or k > 0,
                        pod=f"web-{i}-{k}",
                        node=f"node-{n % 16}",
                        ns="shop",
                    )
                    for k, n in enumerate(numbers)
                ],
                ports=(("http", self.anywhere.port),),
            )
        )

    def settle(self):
        """Waits until nginx sleeps and has not woken for a while."""
        seen, since = None, 0
        deadline = time.monotonic() + START
        while time.monotonic() < deadline:
            with open(f"/proc/{self.nginx.master}/status", encoding="latin-1") as f:
                text = f.read()
            now = (re.findall(r"ctxt_switches:\s*(\d+)", text), "State:\tS" in text)
            since = since + 1 if now == seen and now[1] else 0
            if since == 4:
                return
            seen = now
            time.sleep(0.003)
        raise nginx_lib.Timeout("nginx does not come to rest")


def events(build, count, what=None, network=10):
    """
    A Profile of so many MODIFIED events, on nine slices of ten in turn; if what
    is given, of such a request after each of them.  network: the first number of
    all addresses; the policy looks twice at those of 127.
    """
    with Bed(build, SLICES, network) as bed:
        rv = 0
        for i in range(count):
            rv = bed.put_slice(1 + i % (SLICES - 1), i // (SLICES - 1) % 2 == 1)
            bed.settle()
            if what is not None:
                assert request(bed.ports[what], "/").status == 200, bed.nginx.tail()
                bed.settle()
        row = bed.status.resource("endpointslices")
        assert int(row["resource_version"]) == rv, row
    return bed.profile


def requests(build, what, count):
    """A Profile of so many requests over one connection."""
    (path,) = [path for name, path, _, _ in REQUESTS if name == what]
    with Bed(build) as bed, contextlib.closing(
        http.client.HTTPConnection("127.0.0.1", bed.ports[what], timeout=START)
    ) as connection:
        # every upstream has been used, so that all rows meet the same heap: how
        # long malloc looks around depends on what else was allocated before
        for name, other, *_ in REQUESTS:
            answer = request(bed.ports[name], other)
            assert answer.status == 200, (name, answer.status, bed.nginx.tail())
        # what is used for the first time is no steady state
        for i in range(3 * ENDPOINTS + count):
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200, (answer.status, body, bed.nginx.tail())
        assert bed.status.status()
    return bed.profile


def difference(run, count):
    """One figure: from a run of count and a run of three times as many."""
    small = run(count)
    return small.per(run(3 * count), 2 * count)


def measure(build, args):
    """{what: Profile per event or request} of one build."""
    made = {}
    if not args.only or "event" in args.only:
        made["event"] = difference(lambda n: events(build, n), args.events)
        print(f"{build}: event {made['event'].total:,.0f}", file=sys.stderr)
    if not args.only or "rebuild" in args.only:
        made["rebuild"] = difference(lambda n: events(build, n, "static key"), args.events)
        print(f"{build}: rebuild {made['rebuild'].total:,.0f}", file=sys.stderr)
    if not args.only or "rebuild, special" in args.only:
        made["rebuild, special"] = difference(
            lambda n: events(build, n, "static key", 127), args.events
        )
        print(f"{build}: special {made['rebuild, special'].total:,.0f}", file=sys.stderr)
    for name, *_ in REQUESTS:
        if not args.only or name in args.only:
            made[name] = difference(lambda n: requests(build, name, n), args.requests)
            print(f"{build}: {name} {made[name].total:,.0f}", file=sys.stderr)
    return made


def row(text, values, form="{:,.0f}"):
    """One line: a figure for each build, and the last over the first."""
    line = f"{text:<44}" + "".join(f"{form.format(v):>14}" for v in values)
    if len(values) > 1 and values[0]:
        line += f"{values[-1] / values[0]:>10.2f}"
    print(line)


def report(builds, results, args):
    """The table."""
    for letter, build in zip("ABCDEFGH", builds):
        print(f"{letter}: {build}")
    print()
    head = "".join(f"{letter:>14}" for letter in "ABCDEFGH"[: len(builds)])
    ratio = f"{'last/A':>10}" if len(builds) > 1 else ""

    def table(title, what, calls):
        print(f"{title:<44}{head}{ratio}")
        profiles = [r[what] for r in results]
        row("  instructions", [p.total for p in profiles])
        called = [p.called(calls) for p in profiles]
        for name in sorted(set().union(*called)):
            row(f"  calls of {name}", [c.get(name, 0) for c in called], "{:,.2f}")
        top = sorted(profiles[-1].self, key=profiles[-1].self.get, reverse=True)
        for name in top[: args.top]:
            row(f"  self {name}", [p.self.get(name, 0) for p in profiles])
        print()

    if "event" in results[0]:
        table(
            f"per MODIFIED event ({SLICES} slices of {ENDPOINTS} endpoints)", "event", args.calls
        )
    for what in ("rebuild", "rebuild, special"):
        if what not in results[0]:
            continue
        table(f"per event and the first request after it: {what}", what, args.calls)
        row(
            "  an endpoint, of building its view alone",
            [
                r[what].inclusive["ngx_kube_instance_proceed"]
                / r[what].called(["ngx_http_kube_peers_made"]).popitem()[1]
                / (SLICES * ENDPOINTS)
                for r in results
            ],
        )
        if "event" in results[0] and "static key" in results[0]:
            row(
                "  an endpoint, less event and request",
                [
                    (r[what].total - r["event"].total - r["static key"].total)
                    / r[what].called(["ngx_http_kube_peers_made"]).popitem()[1]
                    / (SLICES * ENDPOINTS)
                    for r in results
                ],
            )
        print()
    for name, *_, beside in REQUESTS:
        if name not in results[0]:
            continue
        table(f"per request: {name}", name, args.calls)
        row("  in functions of ours", [r[name].of(OURS) for r in results])
        if beside and beside in results[0]:
            row(f"  {name}, above \"{beside}\"", [r[name].total - r[beside].total for r in results])
            row(
                "  the same, less what malloc and free took",
                [r[name].total - r[name].of(HEAP) - r[beside].total + r[beside].of(HEAP)
                 for r in results],
            )
            print()


def options():
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--build",
        action="append",
        help="a directory that make build has filled; give it again to compare (default: "
        "KUBE_BUILD_DIR, or build/release)",
    )
    parser.add_argument("--events", type=int, default=180, help="N (default 180)")
    parser.add_argument("--requests", type=int, default=300, help="N (default 300)")
    parser.add_argument(
        "--calls", nargs="*", default=list(CALLS), help="expressions for names of functions"
    )
    parser.add_argument("--top", type=int, default=0, help="the functions with the most of it")
    parser.add_argument(
        "--only",
        action="append",
        help='event, rebuild, "rebuild, special", or the name of a request in the table',
    )
    parser.add_argument("--json", help="write the figures to this file too")
    parser.add_argument("--append", help="file of results that the table is added to")
    return parser.parse_args()


def main():
    """Measures build by build."""
    args = options()
    builds = args.build or [nginx_lib.BUILD_DIR]
    results = [measure(build, args) for build in builds]
    report(builds, results, args)
    if args.append:
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            report(builds, results, args)
        with open(args.append, "a", encoding="utf-8") as f:
            f.write("\n## Instructions of an event, a rebuild and a request\n\n```\n"
                    f"{text.getvalue().rstrip()}\n```\n")
    if args.json:
        made = [
            {
                "build": build,
                "figures": {
                    name: {"instructions": p.total, "calls": p.called(args.calls)}
                    for name, p in result.items()
                },
            }
            for build, result in zip(builds, results)
        ]
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(made, f, indent=1)


if __name__ == "__main__":
    main()
