# A CA takes the place of another while nginx runs.  Both are in the bundle for a
# while: the state file that is written meanwhile is of both, so that there is no
# moment at which a cold start has none.  Or the new one alone is: the file stays
# the old one's until the server has answered under the new one.  The rules
# themselves are in t/test_state_file.py.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""The state file over the rotation of a CA."""

import os

from cluster import Cluster, informer
from nginx import wait_until
from test_state_file import CONF, KEEP, NAME, cold, read, served, unused

# The bundle is read again each minute, and a file is written once a minute.
ROTATION_S = 200

# Bytes before the marks in a state file.
HEADER = 64


def marks_of(path):
    """The mark of the one certificate that a file is bound to."""
    return read(path)[HEADER:HEADER + 8]


def kept_under(made, ca):
    """A gateway that has written a state file under this CA, and the file's path."""
    made.service("shop", "web")
    block = informer(made.api.url, "ca_file ca.pem;", state=KEEP)
    gateway = made.nginx(CONF, block=block, start=False)
    gateway.write("ca.pem", ca)
    gateway.start().status.wait(lambda i: i["state_file"]["written"])
    return gateway, gateway.path("state", NAME)


def test_rotation(pki_of):
    old, new = (read(pki_of(name).ca_file) for name in ("old", "new"))
    with Cluster(tls=pki_of("old").server_context()) as made:
        gateway, path = kept_under(made, old)
        first = read(path)
        before = os.stat(path).st_ino

        gateway.write("ca.pem", new + old)
        wait_until(lambda: os.stat(path).st_ino != before, ROTATION_S)
        both = read(path)
        assert len(both) == len(first) + 8
        made.running.remove(gateway)
        gateway.stop()

        made.api.refuse()
        for contents, ca, used in (
            (first, old, True),
            (first, new, False),
            (both, old, True),
            (both, new, True),
        ):
            gateway = cold(
                made, contents, more="ca_file ca.pem;", write=lambda g, ca=ca: g.write("ca.pem", ca)
            )
            if used:
                served(gateway)
            else:
                unused(gateway, r"state file.*a server with another CA")
            made.running.remove(gateway)
            gateway.stop()


def test_without_overlap(pki_of):
    """What is held is of the old CA's server, and must not pass for the new one's."""
    old, new = (read(pki_of(name).ca_file) for name in ("old", "new"))
    with Cluster(tls=pki_of("old").server_context()) as made:
        gateway, path = kept_under(made, old)
        marks = marks_of(path)

        gateway.write("ca.pem", new)
        made.slice("shop", "web", made.pods(1, "changed"))
        gateway.wait_backends({"changed-1"})
        gateway.wait_log(r"the CA was replaced by one that has no cert", timeout=ROTATION_S)
        assert marks_of(path) == marks

        made.api.close_watches(how="clean")
        gateway.status.wait(lambda i: "tls" in {d["cause"] for d in i["degraded"]})
        assert gateway.get().status == 200
        made.api.set_tls(pki_of("new").server_context())
        made.steady(gateway, "shop")
        wait_until(lambda: marks_of(path) != marks, ROTATION_S)
