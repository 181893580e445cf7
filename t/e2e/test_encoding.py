# The objects of a real API server are the same in JSON and in Protocol Buffers,
# and what is asked for is what comes.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""kube-informer beside itself, with another encoding."""

import contextlib
import http.client
import json
import os
import re
import ssl
import subprocess
import time

import nginx
import pytest

JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"


class Follower:
    """A kube-informer with that encoding, and what it prints and records."""

    def __init__(self, gateway, world, folder, encoding, *more):
        self.transcript = folder / f"{encoding}.transcript"
        self.out = folder / f"{encoding}.out"
        with open(self.out, "wb") as out:
            self.process = subprocess.Popen(
                [os.path.join(nginx.BUILD_DIR, "kube-informer"),
                 "--kubeconfig", gateway.path("kubeconfig"), "--namespace", world.name,
                 "--encoding", encoding, "--record", str(self.transcript), *more],
                stdout=out, stderr=subprocess.STDOUT)

    def lines(self):
        lines = []
        for line in self.out.read_text().splitlines():
            with contextlib.suppress(ValueError):
                lines.append(json.loads(line))
        return lines

    def held(self):
        """{(resource, name): the last that was said of it}, without what differs by chance."""
        held = {}
        for line in self.lines():
            if line["type"] in ("add", "update", "delete"):
                said = {k: v for k, v in line.items() if k not in ("type", "time")}
                held[line["resource"], line["name"]] = (line["type"] == "delete") or said
        return {k: v for k, v in held.items() if v is not True}

    def types(self):
        """The content types of all answers with objects."""
        found = re.findall(rb"^response \d+ \d+ 200 \d+ (\S+)$", self.transcript.read_bytes(),
                           re.M)
        return {one.decode() for one in found}

    def stop(self):
        self.process.terminate()
        self.process.wait()


@pytest.mark.parametrize("more", [
    ("--watch-list", "off", "--page-size", "2"),
    ("--watch-list", "on"),
    ("--endpoints", "endpoints"),
])
def test_the_same_in_either(world, tmp_path, more):
    gateway = world.gateway([], start=False, sync=False)
    for name in ("one", "two", "three"):
        world.direct(name, ["10.1.2.3", "10.1.2.4"])
    followers = {e: Follower(gateway, world, tmp_path, e, *more)
                 for e in ("json", "protobuf", "auto")}
    try:
        for step in range(3):
            if step == 1:
                world.direct("four", ["10.1.2.5"])
                world.point("one", "10.1.2.9")
            if step == 2:
                world.tb.delete("Service", world.name, "two")
            expected = {1: "four", 2: "two"}.get(step)
            end = time.monotonic() + 60
            while True:
                held = {e: f.held() for e, f in followers.items()}
                there = (("services", expected) in held["json"]) == (step == 1)
                if (held["json"] and held["json"] == held["protobuf"] == held["auto"]
                        and (expected is None or there)):
                    break
                assert time.monotonic() < end, held
                time.sleep(0.05)
        assert followers["json"].types() == {JSON}
        assert followers["protobuf"].types() == {PROTOBUF}
        assert followers["auto"].types() == {PROTOBUF}
    finally:
        for follower in followers.values():
            follower.stop()


def cpu(pid):
    """Seconds of the processor that a process has had."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def size_of(tb, path, accept, times):
    """The bytes of a list, which is asked for so many times."""
    connection = http.client.HTTPSConnection(
        "127.0.0.1", tb.port, context=ssl.create_default_context(cafile=tb.ca))
    for _ in range(times):
        connection.request("GET", path, headers={
            "Authorization": "Bearer " + tb.token, "Accept": accept})
        answer = connection.getresponse()
        body = answer.read()
        assert (answer.status, answer.headers["Content-Type"]) == (200, accept), body[:200]
    connection.close()
    return len(body)


def test_what_a_list_costs(world, figures):
    """The server's share: what it takes to write one list of all slices, 300 times."""
    for number in range(60):
        world.direct(f"s{number}", [f"10.2.{number}.{k}" for k in range(1, 40)])
    path = f"/apis/discovery.k8s.io/v1/namespaces/{world.name}/endpointslices?resourceVersion=0"
    server = world.tb.processes()["apiserver"]
    spent, sizes = {}, {}
    for _ in range(3):
        for accept in (JSON, PROTOBUF):
            before = cpu(server.pid)
            sizes[accept] = size_of(world.tb, path, accept, 100)
            spent.setdefault(accept, []).append(cpu(server.pid) - before)
    ratio = min(spent[PROTOBUF]) / min(spent[JSON])
    figures.add("-", "API server's CPU, bytes of a list in Protocol Buffers over JSON's",
                "0.5; 0.65", f"{ratio:.2f}; {sizes[PROTOBUF] / sizes[JSON]:.2f}")
    assert sizes[PROTOBUF] < sizes[JSON]
