# Line 10, the part with a real API server: one rolling restart and two reloads
# with nginx and all its processes under valgrind.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""A rolling restart under valgrind."""

import glob
import re
import shutil
import signal

import nginx as nginx_lib
import pytest
from library import build_library
from nginx import children, wait_until
from report import void
from rig import Gateway, failures

WRAPPER = """#!/bin/sh
LD_PRELOAD={preload} exec valgrind --trace-children=yes --leak-check=full \\
    --show-leak-kinds=definite --num-callers=30 --log-file={prefix}/valgrind.%p {nginx} "$@"
"""

# What nginx itself leaves at its end is nginx's; what is ours is named kube_.
BAD = re.compile(r"Invalid (read|write|free)|uninitialised|Mismatched free"
                 r"|Process terminating with default action of signal (6|11)")
OURS = re.compile(r"\b(ngx_(http_|stream_)?kube_|kube_)\w+")


class Slow(Gateway):
    """Under valgrind processes cannot be told apart by their titles."""

    def workers(self, master=None):
        return sorted(self.family(master))

    def informer(self, master=None):
        return None


def complaints(text):
    """The reports of a valgrind log that are about errors, or our memory."""
    blocks, block = [], []
    for line in text.splitlines():
        line = re.sub(r"^[=-]+\d+[=-]+ ?", "", line)
        if line.strip():
            block.append(line)
        elif block:
            blocks.append("\n".join(block))
            block = []
    if block:
        blocks.append("\n".join(block))
    return [b for b in blocks if BAD.search(b) or ("definitely lost in" in b and OURS.search(b))]


@pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind")
@pytest.mark.skipif(nginx_lib.BUILD == "asan", reason="valgrind and ASan exclude each other")
def test_rolling_restart_under_valgrind(world, figures, monkeypatch):
    world.deploy("web", 4, prestop_ms=2000)
    gateway = Slow(world, {"web": world.key("web")}, balance="least_conn; keepalive 8;")
    # it makes views so slowly that the next ones would be put off for seconds
    preload = gateway.path("no_time.so")
    build_library("no_time", preload)
    wrapper = gateway.write("valgrind-nginx", WRAPPER.format(
        preload=preload, prefix=gateway.prefix, nginx=nginx_lib.NGINX), 0o755)
    monkeypatch.setattr(nginx_lib, "NGINX", wrapper)
    gateway.start(wait=False)

    def serving():
        try:
            return gateway.status.informer()["synced"] and gateway.get("web").status == 200
        except OSError:
            return False

    wait_until(serving, 120, lambda: f"start under valgrind:\n{gateway.tail()}")
    count = len(children(gateway.master))
    load = world.load(gateway.url("web"), connections=4, rate=40, post_share=0.25, timeout=30,
                      delays=["0ms", "50ms"])
    load.wait_total(40)
    world.roll("web")
    load.wait_total(40)
    result = load.stop()
    gateway.status.metrics()
    world.assert_equal(gateway, ["web"], 60)
    for n in range(2):
        # the second frees what the first configuration was read with
        before = set(children(gateway.master))
        gateway.signal(signal.SIGHUP)
        wait_until(lambda: not before & set(children(gateway.master)), 120,
                   "the old processes' end")
        wait_until(lambda: serving() and gateway.status.informer()["writer"]["takeovers"] > n,
                   120, lambda: f"reload under valgrind:\n{gateway.tail()}")
    # at SIGTERM the master kills who does not end within a second or two
    assert gateway._stop(signal.SIGQUIT) == []

    found, logs = [], glob.glob(gateway.path("valgrind.*"))
    for log in logs:
        with open(log, encoding="utf-8", errors="replace") as f:
            found += complaints(f.read())
    if len(logs) < count + 1 or result["total"] < 100:
        void(f"{len(logs)} logs of valgrind, {result['total']} requests")
    figures.add("10", "valgrind on one rolling restart: reports; failed requests", "0; 0",
                f"{len(found)}; {result['failed']} of {result['total']}")
    assert not found, "\n\n".join(found[:5])
    assert result["failed"] == 0, failures(result)
