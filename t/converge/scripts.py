# The scripted API servers, as data: what each answers to lists and to watches
# of Services (or the resource it names), in order; then it is a good server.
# server.py says what a step means: do_NAME() there.
#
# A script changes the cluster by the clock (CHANGES) so that both ends meet
# the same truth whatever they ask for.  DIFFERS says how our end is known to
# differ from client-go, and why; a difference that is gone is a failure.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Scripted API servers."""

import dataclasses

CHANGES = ((0.5, "put", "b", 20), (1.0, "del", "c"), (1.5, "put", "d", 4), (6.0, "put", "a", 10))


@dataclasses.dataclass
class Script:
    """One API server; times are seconds since the client came."""

    name: str
    list: tuple = ()  # an answer for each list, each a sequence of steps
    watch: tuple = ()
    connect: tuple = ()  # before the first request of a connection
    gate: tuple = ()  # (from, to, steps): whatever is asked for meanwhile
    changes: tuple = CHANGES  # (at, step, ...)
    outage: tuple = ()  # (from, to): nobody listens
    resource: str = "services"
    forever: str = ""  # list, watch or connect: the last answer, again and again
    tls: bool = False
    least_s: float = 0  # looked at for at least so long
    limit_s: float = 60  # who has not converged then never does
    differs: dict = dataclasses.field(default_factory=dict)


def status(code, /, **more):
    """An answer: a failure."""
    return [("status", code, more)]


def retry(code, after, **more):
    """An answer: a failure with Retry-After."""
    return status(code, headers={"Retry-After": after}, **more)


def listed(**how):
    """An answer: an odd list."""
    return [("list", how)]


def watched(*steps):
    """An answer: an odd watch that then is a good one."""
    return [("head",), *steps, ("follow",)]


def torn(*steps):
    """An answer: an odd watch that then ends without its end."""
    return [("head",), *steps, ("cut",)]


def told(*events):
    """An answer: t becomes 9, told by these events alone, then a good watch."""
    return watched(("put", "t", 9), *events)


HTML = "<html><body><h1>502 Bad Gateway</h1></body></html>\n"
HTML_200 = [("status", 200, {"body": HTML, "type": "text/html"})]
LATE = ((0.5, "put", "b", 20), (8.0, "put", "a", 10))
SLICE_CHANGES = (
    (1.0, "put", "a-2", 2, "endpointslices"),
    (6.0, "put", "a-1", 9, "endpointslices"),
)
NONE_LEFT = [("del", name) for name in "abct"]
TOO_LARGE = {"causes": [{"reason": "ResourceVersionTooLarge",
                         "message": "Too large resource version"}]}
BIG = {"metadata": {"annotations": {"big": "x" * (2 << 20)}}}
HUGE = {"metadata": {"annotations": {"big": "x" * (17 << 20)}}}
NINE = '{"type":"MODIFIED","object":{"kind":"Service","apiVersion":"v1","metadata":{"name":"t",' \
    '"namespace":"shop","uid":"uid-t","resourceVersion":"@V"%s},"spec":{"ports":[{"port":9}]}}}\n'

UNTYPED = (NINE % "").replace('"type":"MODIFIED",', "")
NOTHING = '{"type":"MODIFIED","object":null}\n'


def raw_nine(more=""):
    """An answer: t becomes 9, told by a text of ours."""
    return told(("send", NINE % more))


def deep(levels):
    """A member that is nested."""
    return ',"managedFields":[{"fieldsV1":' + '{"f:x":' * levels + "{}" + "}" * levels + "}]"


LISTS = [
    Script("good"),
    Script("list-500", list=[status(500)] * 3),
    Script("list-500-html", list=[status(500, body=HTML, type="text/html")] * 2),
    Script("list-502-html", list=[status(502, body=HTML, type="text/html")] * 2),
    Script("list-503", list=[status(503)] * 3),
    Script("list-503-retry-1", list=[retry(503, "1")] * 3),
    Script("list-504", list=[status(504)] * 2),
    Script("list-507-empty", list=[status(507, body="")] * 2),
    Script("list-429-bare", list=[status(429)] * 3),
    Script("list-429-retry-0", list=[retry(429, "0")] * 3),
    Script("list-429-retry-1", list=[retry(429, "1")] * 3),
    Script("list-429-retry-1-many", list=[retry(429, "1")] * 6),
    Script("list-429-retry-5", list=[retry(429, "5")]),
    Script("list-429-retry-minus", list=[retry(429, "-1")] * 2),
    Script("list-429-retry-text", list=[retry(429, "soon")] * 2),
    Script("list-429-retry-fraction", list=[retry(429, "1.5")] * 2),
    Script("list-429-retry-endless", list=[retry(429, "9" * 30)]),
    Script("list-429-retry-date-past", list=[retry(429, "Wed, 21 Oct 2015 07:28:00 GMT")] * 2),
    Script("list-429-retry-details", list=[status(429, details={"retryAfterSeconds": 2})] * 2),
    Script("list-410", list=[status(410)]),
    Script("list-410-twice", list=[status(410)] * 2),
    Script("list-410-many", list=[status(410)] * 5),
    Script("list-410-gone", list=[status(410, reason="Gone")] * 2),
    Script("list-410-html", list=[status(410, body=HTML, type="text/html")] * 2),
    Script("list-504-too-large", list=[status(504, details=TOO_LARGE)]),
    Script("list-504-too-large-old", list=[status(504, message="Too large resource version: 5")]),
    Script("list-504-too-large-many", list=[status(504, details=TOO_LARGE)] * 4),
    Script("list-400", list=[status(400)] * 2),
    Script("list-422", list=[status(422)] * 2),
    Script("list-404", list=[status(404)] * 3),
    Script("list-404-text", list=[status(404, body="404 page not found\n", type="text/plain")] * 3),
    Script("list-405", list=[status(405)] * 2),
    Script("list-406", list=[status(406)] * 2),
    Script("list-409", list=[status(409)] * 2),
    Script("list-401", list=[status(401)] * 3),
    Script("list-403", list=[status(403)] * 3),
    Script("list-401-403-500", list=[status(401), status(403), status(500)]),
    Script("list-302-itself", list=[status(302, headers={"Location": "/api/v1/services"})]),
    Script("list-302-elsewhere",
           list=[status(302, headers={"Location": "http://127.0.0.1:9/"})] * 2),
    Script("list-302-nowhere", list=[status(302)] * 2),
    Script("list-204", list=[[("raw", b"HTTP/1.1 204 No Content\r\n\r\n")]] * 2),
    Script("list-304", list=[[("raw", b"HTTP/1.1 304 Not Modified\r\n\r\n")]] * 2),
    Script("list-206", list=[[("raw", b"HTTP/1.1 206 X\r\nContent-Length: 2\r\n\r\n{}")]] * 2),
    Script("list-html", list=[HTML_200] * 2),
    Script("list-empty-body", list=[status(200, body="")] * 2),
    Script("list-null", list=[status(200, body="null")] * 2),
    Script("list-not-json", list=[status(200, body="{]")] * 2),
    Script("list-status-in-200", list=[status(200, code=500, reason="InternalError")] * 2),
    Script("list-half", list=[[("list", {"cut": 200}), ("cut",)]] * 2),
    Script("list-head-only", list=[[("list", {"cut": 0}), ("cut",)]] * 2),
    Script("list-half-reset", list=[[("list", {"cut": 200}), ("reset",)]] * 2),
    Script("list-chunk-none", list=[[("head",), ("raw", b"zz\r\n{}\r\n"), ("cut",)]] * 2),
    Script("list-chunk-cut", list=[[("head",), ("send", '{"items":['), ("cut",)]] * 2),
    Script("list-chunk-endless",
           list=[[("head",), ("raw", b"ffffffffffffffffffff\r\n{"), ("cut",)]]),
    Script("list-after-garbage", list=[listed(after=b"}}x")] * 2),
    Script("list-before-bom", list=[listed(before=b"\xef\xbb\xbf")] * 2),
    Script("list-before-space", list=[listed(before=b" \r\n\t ")] * 2),
    Script("list-pretty", list=[listed(indent=4)]),
    Script("list-kinds", list=[listed(kinds=True)]),
    Script("list-without-kind", list=[listed(without=["kind"])] * 2),
    Script("list-without-kind-version", list=[listed(without=["kind", "apiVersion"])] * 2),
    Script("list-metadata-last", list=[listed(last=True)]),
    Script("list-items-null", list=[[*NONE_LEFT, ("list", {"over": {"items": None}})]]),
    Script("list-items-missing", list=[[*NONE_LEFT, ("list", {"without": ["items"]})]]),
    Script("list-items-empty", list=[[*NONE_LEFT, ("list",)]]),
    Script("list-other-kind", list=[listed(over={"kind": "PodList"})] * 2),
    Script("list-table", list=[listed(over={"kind": "Table", "apiVersion": "meta.k8s.io/v1"})] * 2),
    Script("list-version-missing", list=[listed(version=None)] * 2),
    Script("list-version-empty", list=[listed(version="")] * 2),
    Script("list-version-0", list=[listed(version="0")] * 2),
    Script("list-version-text", list=[listed(version="abc")] * 2),
    Script("list-version-minus", list=[listed(version="-5")] * 2),
    Script("list-version-zeros", list=[listed(version="0001004")] * 2),
    Script("list-version-digits-30", list=[listed(version="9" * 30)]),
    Script("list-version-digits-60", list=[listed(version="9" * 60)]),
    Script("list-version-older", list=[listed(version=-3)]),
    Script("list-slow", list=[listed(chunk=40, pause=0.05)]),
    Script("list-chunks-of-1", list=[listed(chunk=1)]),
    Script("list-gzip", list=[listed(gzip=True)]),
    Script("list-gzip-chunks", list=[listed(gzip=True, chunk=7)]),
    Script("list-unsized", list=[listed(unsized=True)]),
    Script("list-http-1.0",
           list=[[("raw", b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"
                   b'{"kind":"ServiceList","metadata":{"resourceVersion":"1004"},"items":[]}'),
                  ("cut",)]]),
    Script("list-early-hints",
           list=[[("raw", b"HTTP/1.1 103 X\r\nLink: </x>\r\n\r\n"), ("list",)]]),
    Script("list-continue-100", list=[[("raw", b"HTTP/1.1 100 Continue\r\n\r\n"), ("list",)]]),
    Script("list-status-line", list=[[("raw", b"HELLO\r\n\r\n"), ("cut",)]] * 2),
    Script("list-http-2", list=[[("raw", b"HTTP/2 200\r\n\r\n{}"), ("cut",)]] * 2),
    Script("list-headers-huge",
           list=[status(200, headers={"X": "y" * 200000}, body="{}", close=True)]),
    Script("list-type-text", list=[listed(type="text/plain")] * 2),
    Script("list-type-protobuf", list=[listed(type="application/vnd.kubernetes.protobuf")] * 2),
    Script("list-gzip-lie",
           list=[status(200, body="{}", headers={"Content-Encoding": "gzip"})] * 2),
    Script("list-encoding-none",
           list=[status(200, body="{}", headers={"Content-Encoding": "br"})] * 2),
    Script("list-pages", list=[listed(page=1)] * 3),
    Script("list-pages-410", list=[listed(page=1), status(410)]),
    Script("list-pages-410-again", list=[listed(page=1), status(410), status(410)]),
    Script("list-pages-500", list=[listed(page=1), status(500)]),
    Script("list-pages-cut", list=[listed(page=1), [("list", {"page": 1, "cut": 60}), ("cut",)]]),
    Script("list-pages-400", list=[listed(page=1), status(400)]),
    Script("list-pages-429", list=[listed(page=1), retry(429, "1")]),
    Script("list-page-empty", list=[listed(items=[], token="0", page=1), listed(page=1)]),
    Script("list-pages-same-token", list=[listed(token="x")] * 4),
    Script("list-pages-endless", list=[listed(token=str(i), items=[]) for i in range(20000)],
           limit_s=20),
    Script("list-pages-same-forever",
           list=[listed(token="x", items=[])], forever="list", limit_s=20),
    Script("list-key-twice",
           list=[listed(items=[("a", 1), ("b", 7, -3), ("b", 2), ("c", 3), ("t", 5)])]),
    Script("list-item-nameless",
           list=[listed(items=[("", 1), ("a", 1), ("b", 2), ("c", 3), ("t", 5)])]),
    Script("list-item-null",
           list=[[("status", 200, {"body": '{"kind":"ServiceList","apiVersion":"v1",'
                                   '"metadata":{"resourceVersion":"1004"},"items":[null]}'})]]),
    Script("list-item-number", list=[[("status", 200, {"body": '{"kind":"ServiceList",'
           '"apiVersion":"v1","metadata":{"resourceVersion":"1004"},"items":[5]}'})]] * 2),
    Script("list-item-odd-port", list=[listed(items=[("a", 1), ("b", 2), ("c", 3), ("t", 5),
           ("x", 1, 0, {"spec": {"ports": [{"port": "http"}]}})])],
           watch=[watched(("event", "DELETED", "x", 1))]),
    Script("list-item-version-none",
           list=[listed(items=[("a", 1, ""), ("b", 2), ("c", 3), ("t", 5)])]),
    Script("list-2000", list=[listed(items=[(f"x{i}", 7) for i in range(2000)])], changes=LATE,
           watch=[watched(("error", 410))]),
    Script("list-reset", list=[[("reset",)]] * 3),
    Script("list-cut", list=[[("cut",)]] * 3),
    Script("list-late-head", list=[[("sleep", 5), ("list",)]]),
    Script("list-late-body", list=[[("head",), ("sleep", 5), ("cut",)]]),
    Script("list-hang", list=[[("hang",)]], limit_s=100),
    Script("list-hang-body", list=[[("head",), ("send", '{"kind":"ServiceList",'), ("hang",)]],
           limit_s=100),
    Script("list-lagging", list=[listed(), listed(version=-2), listed(version=-2)],
           watch=[[("watch", {"seconds": 2})], status(410)]),
    Script("list-slices-500", list=[status(500)] * 3, resource="endpointslices",
           changes=SLICE_CHANGES),
    Script("list-slices-403", list=[status(403)], resource="endpointslices", forever="list",
           changes=CHANGES, limit_s=20),
]

WATCHES = [
    Script("watch-500", watch=[status(500)] * 3),
    Script("watch-502-html", watch=[status(502, body=HTML, type="text/html")] * 3),
    Script("watch-503-retry-1", watch=[retry(503, "1")] * 3),
    Script("watch-503", watch=[status(503)] * 3),
    Script("watch-504", watch=[status(504)] * 3),
    Script("watch-429", watch=[status(429)] * 3),
    Script("watch-429-retry-0", watch=[retry(429, "0")] * 3),
    Script("watch-429-retry-1", watch=[retry(429, "1")] * 3),
    Script("watch-429-retry-5", watch=[retry(429, "5")]),
    Script("watch-400", watch=[status(400)] * 2),
    Script("watch-422", watch=[status(422)] * 2),
    Script("watch-401", watch=[status(401)] * 3),
    Script("watch-403", watch=[status(403)] * 3),
    Script("watch-404", watch=[status(404)] * 3),
    Script("watch-410", watch=[status(410)]),
    Script("watch-410-many", watch=[status(410)] * 4),
    Script("watch-410-html", watch=[status(410, body=HTML, type="text/html")]),
    Script("watch-504-too-large", watch=[status(504, details=TOO_LARGE)] * 2),
    Script("watch-302", watch=[status(302, headers={"Location": "/nowhere"})] * 2),
    Script("watch-html", watch=[HTML_200] * 2),
    Script("watch-empty-200", watch=[status(200, body="")] * 3),
    Script("watch-status-in-200", watch=[status(200, code=500, reason="InternalError")] * 2),
    Script("watch-error-410", watch=[watched(("error", 410))]),
    Script("watch-error-410-late", watch=[[("watch", {"seconds": 3})], watched(("error", 410))]),
    Script("watch-error-410-many", watch=[watched(("error", 410))] * 4),
    Script("watch-error-410-gone", watch=[watched(("error", 410, {"reason": "Gone"}))]),
    Script("watch-error-410-bare", watch=[watched(("error", 410, {"reason": None}))]),
    Script("watch-error-expired-only", watch=[watched(("error", 0, {"reason": "Expired"}))]),
    Script("watch-error-500", watch=[watched(("error", 500))] * 2),
    Script("watch-error-429",
           watch=[watched(("error", 429, {"details": {"retryAfterSeconds": 1}}))] * 2),
    Script("watch-error-401", watch=[watched(("error", 401))] * 2),
    Script("watch-error-403", watch=[watched(("error", 403))] * 2),
    Script("watch-error-504-too-large", watch=[watched(("error", 504, {"details": TOO_LARGE}))]),
    Script("watch-error-null", watch=[watched(("send", '{"type":"ERROR","object":null}\n'))]),
    Script("watch-error-bare", watch=[watched(("send", '{"type":"ERROR"}\n'))]),
    Script("watch-error-other", watch=[watched(("event", "ERROR", "t", 2))]),
    Script("watch-error-kindless", watch=[watched(("error", 410, {"kind": None}))]),
    Script("watch-error-then-cut", watch=[torn(("error", 500))] * 2),
    Script("watch-cut", watch=[[("cut",)]] * 3),
    Script("watch-reset", watch=[[("reset",)]] * 3),
    Script("watch-head-cut", watch=[torn()] * 3),
    Script("watch-head-reset", watch=[[("head",), ("reset",)]] * 3),
    Script("watch-short", watch=[[("watch", {"seconds": 0.2})]] * 5),
    Script("watch-short-forever",
           watch=[[("watch", {"seconds": 0.2})]], forever="watch", limit_s=45),
    Script("watch-1s-forever", watch=[[("watch", {"seconds": 1.1})]], forever="watch", limit_s=45),
    Script("watch-instant", watch=[[("head",), ("end",)]] * 4),
    Script("watch-instant-forever", watch=[[("head",), ("end",)]], forever="watch", limit_s=45),
    Script("watch-event-then-end", watch=[[("head",), ("events",), ("end",)]] * 8),
    Script("watch-event-then-reset",
           watch=[[("head",), ("sleep", 0.7), ("events",), ("reset",)]] * 3),
    Script("watch-half-event", watch=[torn(("put", "t", 9), ("send", (NINE % "")[:90]))] * 2),
    Script("watch-half-event-end", watch=[[("head",), ("put", "t", 9),
           ("send", (NINE % "")[:90]), ("end",)]]),
    Script("watch-half-event-hang", watch=[[("head",), ("put", "t", 9),
           ("send", (NINE % "")[:90]), ("hang",)]], limit_s=100),
    Script("watch-hang-head", watch=[[("hang",)]], limit_s=100),
    Script("watch-hang", watch=[[("head",), ("hang",)]], limit_s=120),
    Script("watch-hang-after-event", watch=[[("head",), ("show", "t", 9), ("events",), ("hang",)]],
           limit_s=120),
    Script("watch-late-head", watch=[[("sleep", 4), ("watch",)]]),
    Script("watch-slow", watch=[[("watch", {"piece": 20, "pause": 0.03})]]),
    Script("watch-bytes", watch=[[("watch", {"piece": 1})]]),
    Script("watch-unchunked", watch=[[("head", {"Transfer_Encoding": "identity"}), ("follow",)]]),
    Script("watch-http-1.0",
           watch=[[("raw", b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"),
                   ("follow",)]]),
    Script("watch-gzip-lie", watch=[[("head", {"Content_Encoding": "gzip"}), ("follow",)]] * 2),
    Script("watch-type-text", watch=[[("head", {"Content_Type": "text/plain"}), ("follow",)]] * 2),
    Script("watch-type-stream", watch=[[("head", {"Content_Type": "application/json;stream=watch"}),
           ("follow",)]]),
    Script("watch-length-0",
           watch=[[("raw", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")]] * 3),
    Script("watch-chunk-none", watch=[[("head",), ("raw", b"xyz\r\n\r\n"), ("cut",)]] * 2),
    Script("watch-early-hints", watch=[[("raw", b"HTTP/1.1 103 X\r\n\r\n"), ("watch",)]]),
    Script("watch-blank-lines", watch=[watched(("send", "\r\n\n \n"), ("show", "t", 9), ("events",),
           ("send", "\r\n\r\n"))]),
    Script("watch-two-in-a-line", watch=[watched(("put", "t", 9), ("put", "x", 8),
           ("send", (NINE % "").strip() + (NINE % "").strip()
            .replace('"t"', '"x"').replace("uid-t", "uid-x").replace(":9", ":8")))]),
    Script("watch-garbage", watch=[torn(("send", "xyz\n"))] * 2),
    Script("watch-garbage-open", watch=[watched(("send", "xyz\n"))] * 2),
    Script("watch-garbage-forever", watch=[[("head",), ("send", "xyz\n"), ("follow",)]],
           forever="watch", limit_s=60),
    Script("watch-garbage-after", watch=[[("head",), ("show", "t", 9), ("events",), ("send", "}"),
           ("follow",)]] * 2),
    Script("watch-number", watch=[watched(("send", "5\n"))] * 2),
    Script("watch-array", watch=[watched(("send", "[]\n"))] * 2),
    Script("watch-empty-object", watch=[watched(("send", "{}\n"))] * 2),
    Script("watch-type-unknown", watch=[watched(("event", "PAINTED", "t", 7))]),
    Script("watch-type-missing", watch=[watched(("send", '{"object":{"kind":"Service"}}\n'))]),
    Script("watch-type-missing-again", watch=[told(("send", UNTYPED)),
           watched(("send", UNTYPED), ("pass",))]),
    Script("watch-object-null-again", watch=[told(("send", NOTHING)),
           watched(("send", NOTHING), ("pass",))]),
    Script("watch-type-last", watch=[told(("send", '{"object":' + (NINE % "")
           .split('"object":', 1)[1].strip()[:-1] + ',"type":"MODIFIED"}\n'))]),
    Script("watch-object-null", watch=[watched(("send", '{"type":"ADDED","object":null}\n'))]),
    Script("watch-bookmarks-only", watch=[watched(("bookmark",), ("bookmark",), ("bookmark",))]),
    Script("watch-bookmark-ahead", watch=[[("head",), ("bookmark", 500), ("end",)]], changes=LATE),
    Script("watch-bookmark-behind", watch=[watched(("bookmark", -4))]),
    Script("watch-bookmark-empty", watch=[watched(("bookmark", ""))]),
    Script("watch-bookmark-bare", watch=[watched(("bookmark", 0, {"metadata": {}}))]),
    Script("watch-bookmark-kindless", watch=[watched(("bookmark", 0, {"kind": ""}))]),
    Script("watch-bookmark-text", watch=[watched(("bookmark", "soon"))]),
    Script("watch-behind-once", watch=[told(("event", "MODIFIED", "t", 9, -10))]),
    Script("watch-behind-forever",
           watch=[[("head",), ("event", "MODIFIED", "a", 1, -10), ("follow",)]],
           forever="watch", changes=((0.5, "put", "b", 20), (2.0, "put", "b", 21)), limit_s=45),
    Script("watch-out-of-order", watch=[watched(("put", "t", 8), ("put", "t", 9),
           ("event", "MODIFIED", "t", 9), ("event", "MODIFIED", "t", 8, -1))]),
    Script("watch-out-of-order-keys", watch=[watched(("put", "a", 8), ("put", "t", 9),
           ("event", "MODIFIED", "t", 9), ("event", "MODIFIED", "a", 8, -1))]),
    Script("watch-replays-all", watch=[[("head",), ("event", "ADDED", "a", 1, "1001"),
           ("event", "ADDED", "t", 2, "1002"), ("event", "ADDED", "c", 3, "1003"), ("follow",)]],
           changes=CHANGES),
    Script("watch-added-twice",
           watch=[told(("event", "ADDED", "t", 9), ("event", "ADDED", "t", 9))]),
    Script("watch-added-again", watch=[told(("event", "ADDED", "t", 9))]),
    Script("watch-modified-unknown",
           watch=[watched(("put", "x", 8), ("event", "MODIFIED", "x", 8))]),
    Script("watch-deleted-unknown", watch=[watched(("put", "x", 8), ("del", "x"),
           ("event", "DELETED", "x", 8))]),
    Script("watch-deleted-twice", watch=[watched(("del", "t"), ("event", "DELETED", "t", 2),
           ("event", "DELETED", "t", 2))]),
    Script("watch-deleted-bare",
           watch=[watched(("del", "t"),
                          ("send", '{"type":"DELETED","object":{"kind":"Service",'
                           '"apiVersion":"v1","metadata":{"name":"t","namespace":"shop",'
                           '"resourceVersion":"@V"}}}\n'))]),
    Script("watch-recreated",
           watch=[watched(("del", "t"), ("event", "DELETED", "t", 2), ("put", "t", 9),
                          ("event", "ADDED", "t", 9, None, {"uid": "other"}))]),
    Script("watch-recreated-unseen",
           watch=[told(("event", "MODIFIED", "t", 9, None, {"uid": "other"}))]),
    Script("watch-same-version", watch=[told(("event", "MODIFIED", "t", 7), ("sleep", 0.5),
           ("event", "MODIFIED", "t", 9))]),
    Script("watch-version-twice", changes=LATE, watch=[told(("event", "MODIFIED", "t", 7),
           ("sleep", 0.2), ("event", "MODIFIED", "t", 9))]),
    Script("list-version-twice", changes=((2, "put", "a", 10),),
           watch=[told(("event", "MODIFIED", "t", 7), ("sleep", 0.2), ("error", 410))]),
    Script("watch-version-missing", watch=[told(("event", "MODIFIED", "t", 9, "")), ]),
    Script("watch-version-0", watch=[told(("event", "MODIFIED", "t", 9, "0"))]),
    Script("watch-version-text", watch=[told(("event", "MODIFIED", "t", 9, "abc"))]),
    Script("watch-version-digits-30", watch=[told(("event", "MODIFIED", "t", 9, "9" * 30))]),
    Script("watch-version-digits-60", watch=[told(("event", "MODIFIED", "t", 9, "9" * 60))]),
    Script("watch-version-number", watch=[told(("send", (NINE % "").replace('"@V"', "@V")))]),
    Script("watch-other-kind", watch=[watched(("event", "ADDED", "x", 8, None, {"kind": "Pod"}))]),
    Script("watch-kindless", watch=[told(("event", "MODIFIED", "t", 9, None, {"kind": ""}))]),
    Script("watch-versionless-kind",
           watch=[told(("event", "MODIFIED", "t", 9, None, {"apiVersion": ""}))]),
    Script("watch-table", watch=[watched(("event", "ADDED", "x", 8, None, {"kind": "Table"}))]),
    Script("watch-nameless", watch=[watched(("event", "ADDED", "", 8))]),
    Script("watch-name-odd",
           watch=[watched(("event", "ADDED", "../x", 8), ("event", "DELETED", "../x", 8))]),
    Script("watch-ports-odd", watch=[watched(("event", "MODIFIED", "t", 9, None,
           {"spec": {"ports": {"port": 9}}}))]),
    Script("watch-frame-2m", watch=[told(("event", "MODIFIED", "t", 9, None, BIG))]),
    Script("watch-frame-17m", watch=[watched(("event", "ADDED", "x", 8, None, HUGE),
           ("event", "DELETED", "x", 8))]),
    Script("watch-deep-80", watch=[raw_nine(deep(80))]),
    Script("watch-deep-150", watch=[raw_nine(deep(150))]),
    Script("watch-deep-5000", watch=[raw_nine(deep(5000))]),
    Script("watch-nul", watch=[raw_nine(',"annotations":{"x":"a\\u0000b"}')]),
    Script("watch-surrogate", watch=[raw_nine(',"annotations":{"x":"\\ud800"}')]),
    Script("watch-utf8", watch=[raw_nine(',"annotations":{"x":"\udcff\udcfe"}')]),
    Script("watch-number-long", watch=[raw_nine(',"x":' + "9" * 400)]),
    Script("watch-member-twice", watch=[raw_nine(',"name":"t"')]),
    Script("watch-many-events", watch=[watched(*[step for i in range(300) for step in
           (("put", "t", i % 99 + 1), ("event", "MODIFIED", "t", i % 99 + 1))])]),
    Script("watch-status-frame", watch=[watched(("send", '{"kind":"Status","status":"Failure",'
           '"code":410,"reason":"Expired"}\n'))]),
    Script("watch-slices-410", watch=[watched(("error", 410))], resource="endpointslices",
           changes=SLICE_CHANGES),
    Script("watch-403-forever", watch=[status(403)], forever="watch", limit_s=140),
    Script("watch-404-forever", watch=[status(404)], forever="watch", limit_s=140),
    Script("watch-500-forever", watch=[status(500)], forever="watch", limit_s=140),
    Script("watch-429-forever", watch=[status(429)], forever="watch", limit_s=140),
    Script("watch-html-forever", watch=[HTML_200], forever="watch", limit_s=75),
    Script("watch-cut-forever", watch=[[("cut",)]], forever="watch", limit_s=75),
    Script("watch-reset-forever", watch=[torn()], forever="watch", limit_s=75),
    Script("watch-gzip-forever", watch=[[("head", {"Content_Encoding": "gzip"}), ("follow",)]],
           forever="watch", limit_s=75),
    Script("watch-error-500-forever",
           watch=[[("head",), ("error", 500), ("end",)]], forever="watch",
           limit_s=75),
    Script("watch-410-forever", watch=[status(410)], forever="watch", limit_s=75),
    Script("watch-410-list-500", watch=[status(410)], list=[listed(), status(500), status(500)]),
    Script("watch-410-list-429",
           watch=[status(410)], list=[listed(), retry(429, "1"), retry(429, "1")]),
]

CONNECTIONS = [
    Script("connect-cut", connect=[[("cut",)]] * 6),
    Script("connect-reset", connect=[[("reset",)]] * 6),
    Script("connect-garbage", connect=[[("raw", b"SSH-2.0-x\r\n\r\n"), ("cut",)]] * 4),
    Script("connect-hang", connect=[[("hang",)]] * 1, limit_s=120),
    Script("connect-slow", connect=[[("sleep", 2)]] * 4),
    Script("connect-limit-2", connect=[[("limit", 2)]], forever="connect"),
    Script("outage-at-start", outage=(0, 5)),
    Script("outage", outage=(2, 8)),
    Script("outage-long", outage=(2, 20), changes=((0.5, "put", "b", 20), (10, "put", "a", 5))),
    Script("outage-compacted", outage=(2, 6), changes=((3, "put", "b", 20), (3.1, "compact"),
           (3.2, "put", "c", 9), (9, "put", "a", 10))),
    Script("torn-often",
           changes=tuple((0.5 * i, "cut") for i in range(2, 10)) + ((6, "put", "a", 10),)),
    Script("gate-401", gate=[(1.2, 5, status(401))], changes=((1.3, "cut"), *CHANGES)),
    Script("gate-401-at-start", gate=[(0, 4, status(401))]),
    Script("gate-403", gate=[(1.2, 5, status(403))], changes=((1.3, "cut"), *CHANGES)),
    Script("gate-403-at-start", gate=[(0, 4, status(403))]),
    Script("gate-429", gate=[(0, 4, retry(429, "1"))]),
    Script("gate-503-html", gate=[(1.2, 5, status(503, body=HTML, type="text/html"))],
           changes=((1.3, "cut"), *CHANGES)),
    Script("gate-500-close", gate=[(0, 4, status(500, close=True))]),
    Script("gate-html", gate=[(1.2, 5, HTML_200)], changes=((1.3, "cut"), *CHANGES)),
    Script("gate-cut", gate=[(1.2, 5, [("cut",)])], changes=((1.3, "cut"), *CHANGES)),
    Script("compacted-while-torn",
           changes=((1, "put", "b", 20), (1.1, "compact"), (1.2, "put", "c", 5),
                    (2, "cut"), (5, "put", "a", 10))),
    Script("restored", changes=((1, "restore"), (1.1, "cut"), (5, "put", "a", 10))),
    Script("restored-410", watch=[[("watch", {"seconds": 2})], status(410)],
           changes=((1, "restore"), (5, "put", "a", 10))),
    Script("tls", tls=True),
    Script("tls-refused", tls=True, connect=[[("cut",)]] * 4),
    Script("tls-plain-answer", tls=True, connect=[[("raw", b"HTTP/1.1 400 Bad Request\r\n\r\n"),
           ("cut",)]] * 4),
    Script("tls-list-cut", tls=True, list=[[("list", {"cut": 200}), ("cut",)]] * 2),
    Script("tls-list-reset", tls=True, list=[[("list", {"cut": 200}), ("reset",)]] * 2),
    Script("tls-watch-cut",
           tls=True, watch=[[("head",), ("show", "t", 9), ("events",), ("cut",)]] * 2),
    Script("tls-watch-reset",
           tls=True, watch=[[("head",), ("show", "t", 9), ("events",), ("reset",)]] * 2),
    Script("tls-gate-503",
           tls=True, gate=[(1.2, 5, status(503))], changes=((1.3, "cut"), *CHANGES)),
    Script("tls-outage", tls=True, outage=(2, 7)),
]

# How ours is known to differ, and why: see judge() in run.py.
DIFFERS = {
    "list-pages-endless": {
        "neither": "there is no end to be had; ours pauses after ten empty pages"
    },
    "list-pages-same-forever": {"neither": "there is no end to be had"},
    "list-slices-403": {"neither": "nothing can be had of what is forbidden"},
    "watch-version-digits-30": {
        "later": "versions that go back are confirmed by lists: the state may be an older one"
    },
    "list-version-digits-60": {"better": "such a version cannot be of a server: another list"},
    "list-item-nameless": {
        "better": "what has no name is passed over; client-go keeps it for ever"
    },
    "list-hang": {"better": "60 s without an item end a list; client-go has no timer"},
    "list-hang-body": {"better": "60 s without an item end a list; client-go has no timer"},
    "watch-half-event-hang": {
        "better": "60 s are all that one event may take; client-go has no timer"
    },
    "watch-hang-head": {"better": "30 s without a head end a watch; client-go has no timer"},
    "watch-hang": {
        "better": "90 s without a byte end a watch; client-go has no timer over HTTP/1.1"
    },
    "watch-hang-after-event": {"better": "90 s without a byte end a watch; client-go has no timer"},
    "watch-nameless": {"better": "what has no name is passed over; client-go keeps it for ever"},
    "watch-out-of-order": {"better": "an older version of one object is not taken, but a list"},
    "connect-hang": {"better": "60 s without a head end a list; client-go has no timer"},
    "watch-cut-forever": {
        "better": "after a minute a list; client-go takes it for an empty watch for ever"
    },
    "list-item-version-none": {
        "later": "an item without a version is passed over until its next one"
    },
    "watch-429-retry-0": {"later": "0 is no time to wait: our own backoff holds"},
    "watch-replays-all": {"better": "older versions are not taken, but a list"},
    "watch-429-forever": {"better": "after a minute a list; client-go waits for ever"},
    "list-version-digits-30": {
        "better": "a bookmark that goes back shows that the version was none"
    },
    "watch-bookmark-ahead": {
        "better": "a bookmark that goes back shows that the one before was none"
    },
    "restored": {"better": "a watch from the future is silent; ours meets a list in the end"},
    "restored-410": {"better": "an older list is taken after two proofs"},
    "list-429-retry-0": {"later": "0 is no time to wait: our own backoff holds"},
    "watch-403-forever": {"later": "rights that come back are to be met without a list: a minute"},
    "watch-404-forever": {"later": "may end by itself: a list after a minute"},
    "watch-500-forever": {
        "later": "5xx may be an outage, which is to end without a list: one after a minute"
    },
}

SCRIPTS = LISTS + WATCHES + CONNECTIONS
for _script in SCRIPTS:
    _script.differs = DIFFERS.pop(_script.name, {})
assert not DIFFERS, f"rows of no script: {list(DIFFERS)}"
