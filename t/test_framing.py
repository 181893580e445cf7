# Answers of a server that is no good server of HTTP, byte for byte: heads,
# lengths and chunks, each once in place of a list and of a watch.  What is bad
# is not taken for an answer; what is odd and right is; all is as the server says
# in the end.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Framing."""

import objects
import pytest
from apiserver_control import push
from events import Events

CONF = "server { listen 127.0.0.1:PORT; location / { return 200; } }"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
LENGTH = b"Content-Length: %d\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


def sized(body, size=0, more=b""):
    """With a length that is off by size."""
    return HEAD + LENGTH % (len(body) + size) + more + b"\r\n" + body


def chunk(body, size=None, extension=b"", end=b"\r\n"):
    """One chunk."""
    return (size or b"%x" % len(body)) + extension + b"\r\n" + body + end


# Whether a list that is answered so is taken, and the answer with this body.  None:
# what libcurl makes of it, for a list that comes whole is whole.
ANSWERS = {
    "length too long": (None, lambda b: sized(b, 10)),
    "length too short": (False, lambda b: sized(b, -10)),
    "two lengths": (None, lambda b: sized(b, 0, LENGTH % (len(b) + 7))),
    "length and chunks": (
        None,
        lambda b: HEAD + LENGTH % 7 + CHUNKED + chunk(b) + b"0\r\n\r\n",
    ),
    "size 0x": (None, lambda b: HEAD + CHUNKED + chunk(b, b"0x%x" % len(b)) + b"0\r\n\r\n"),
    "endless size": (None, lambda b: HEAD + CHUNKED + chunk(b, b"f" * 16)),
    "a million zeros": (
        None,
        lambda b: HEAD + CHUNKED + chunk(b, b"0" * 1000000 + b"%x" % len(b)) + b"0\r\n\r\n",
    ),
    "extension": (
        None,
        lambda b: HEAD + CHUNKED + chunk(b, None, b";x=" + b"y" * 65536) + b"0\r\n\r\n",
    ),
    "no end of chunk": (None, lambda b: HEAD + CHUNKED + chunk(b, end=b"") + b"0\r\n\r\n"),
    "bare newlines": (
        None,
        lambda b: HEAD + CHUNKED + b"%x\n%b\n0\n\n" % (len(b), b),
    ),
    "trailers": (True, lambda b: HEAD + CHUNKED + chunk(b) + b"0\r\nX-Sum: 1\r\n\r\n"),
    "no last chunk": (None, lambda b: HEAD + CHUNKED + chunk(b)),
    "more behind": (None, lambda b: HEAD + CHUNKED + chunk(b) + b"0\r\n\r\nHTTP/1.1 500 x\r\n"),
    "HTTP/1.0": (True, lambda b: b"HTTP/1.0" + HEAD[8:] + b"\r\n" + b),
    "until it closes": (True, lambda b: HEAD + b"Connection: close\r\n\r\n" + b),
    "a field of 1 MiB": (None, lambda b: sized(b, 0, b"X: " + b"x" * (1 << 20) + b"\r\n")),
    "10000 fields": (None, lambda b: sized(b, 0, b"X-%d: 1\r\n" * 10000 % tuple(range(10000)))),
    "a folded field": (None, lambda b: sized(b, 0, b"X: a\r\n b\r\n")),
    "a NUL in a field": (None, lambda b: sized(b, 0, b"X: a\0b\r\n")),
    "no reason": (True, lambda b: sized(b).replace(b"200 OK", b"200", 1)),
    "gzip unasked": (False, lambda b: sized(b, 0, b"Content-Encoding: gzip\r\n")),
    "an alert": (False, lambda b: b"\x15\x03\x01\x00\x02\x02\x28"),
    "HTTP/2": (False, lambda b: b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + b"\0" * 18),
    "a head alone": (False, lambda b: HEAD + CHUNKED),
    "half a size": (False, lambda b: HEAD + CHUNKED + b"1"),
    "half an object": (False, lambda b: HEAD + CHUNKED + chunk(b)[:-40]),
}


def answer_of(verb, rv):
    """A list, or an event, of a Service that the server does not have."""
    made = objects.service("shop", "ghost", uid="00000000-0000-4000-8000-000000000009")
    made["metadata"]["resourceVersion"] = str(rv)
    text = objects.go_json(made)
    if verb == "watch":
        return b'{"type":"ADDED","object":%b}\n' % text
    return (
        b'{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},'
        b'"items":[%b]}\n' % (rv, text)
    )


def turn(api, expired):
    """The watch ends, while something changes; expired: and its version is too old then."""

    def run():
        push(api.core, "services", "end", "clean")
        port = api.rv % 60000 + 1
        made = api.core.store.put(objects.service("shop", "turn", ports=[port]))
        if expired:
            api.core.store.compact()
        return made.rv

    return api.run(run)


@pytest.mark.parametrize("verb", ["list", "watch"])
def test_framing(cluster, verb):
    """A bad list deletes nothing; and what a list or watch invents the next list ends."""
    api = cluster.api
    cluster.service("shop", "web", pods=[])
    api.put(objects.service("shop", "turn"))
    gateway = cluster.nginx(CONF, workers=1, more="watch_list off; backoff 50ms 50ms;")
    with Events(gateway.status_port) as stream:
        stream.started()
        for name, (good, answer) in ANSWERS.items():
            cluster.steady(gateway)
            raw = answer(answer_of(verb, api.rv + (verb == "list")))
            fault = api.fault(verb=verb, resource="services", raw=raw)
            gateway.status.wait_rv(turn(api, verb == "list"), "services")
            assert fault.fired == 1, name
            cluster.steady(gateway)
            gateway.status.wait_rv(turn(api, True), "services")
            cluster.steady(gateway)
            assert gateway.status.service("shop", "ghost") is None, name
            assert gateway.status.resource("services")["objects"] == 2, name
            stream.wait(lambda s: seen_last(s, api), name)
            if verb == "list" and good is not None:
                assert ("delete services shop/web" in stream.said()) == good, name
            stream.events.clear()


def seen_last(stream, api):
    """The events are at the last version that there is."""
    rv = api.get("services", "shop", "turn")["metadata"]["resourceVersion"]
    return any(e.data.get("resource_version") == rv for e in stream.events)
