# Faults of the API server over real sockets: failures by status and phase,
# streams that break, lists that lag.  The whole table is run against the state
# machine in t/unit; this is a sample of it end to end.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""The informer and a failing API server."""

import itertools
import re
import time

import objects
import pytest
from apiserver import ApiServer
from apiserver_store import event_line
from nginx import PATIENCE, never, wait_until

CONF = """
    upstream web { kube_service shop/web; }
    upstream any { kube_service $http_x namespaces=shop,infra; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://web; } }
"""

SLICES = "endpointslices"


def polite(api):
    """Never two watches of one resource, nor two lists of it, at a time."""
    for resource in ("services", SLICES):
        for verb in ("list", "watch"):
            assert api.max_concurrent(verb, resource) <= 1, (verb, resource)


# Only plain lists have pages, one takes its turn, and a watch is a request of its
# own after one of them.
PLAIN = "watch_list off;"


def scene(cluster, **more):
    """
    A Service with one pod, and ten others; page: so large is a page of their
    plain lists, as the test is about pages or about watches that follow a list.
    """
    # with its watch cache a server answers the first list whole
    cluster.api.settings.watch_cache = False
    pods = cluster.service("shop", "web")
    for n in range(5):
        cluster.service("infra", f"s{n}", pods=pods)
    page = f"page_size {more['page']}; {PLAIN}" if more.get("page") else ""
    return page + more.get("more", "")


def settled(cluster, gateway, timeout=None):
    """Synced, watching, equal to the server, current and routing."""
    status = gateway.status
    for resource in ("services", SLICES):
        status.wait_state("watching", resource, timeout=timeout)
    new = cluster.pods(1, "after")
    rv = cluster.slice("shop", "web", new)
    status.wait_rv(rv, timeout=timeout)
    cluster.equal(gateway, timeout=timeout)
    assert gateway.get().backend == "after-1"
    assert status.informer()["synced"] and not status.informer()["stale"]


PHASES = {
    "list": dict(streamed=True, resource=SLICES),
    "page": dict(verb="list", resource=SLICES, page=2),
    "watch": dict(verb="watch", streamed=False, resource=SLICES),
}

# so that a phase is met
PAGES = {"list": None, "page": 2, "watch": 500}

# What refuses a WatchList: a plain list is asked for at once.
REFUSED = (400, 403, 404, 422)

# status, more of the fault, reason in last_error
STATUSES = [
    (204, {}, None),
    (206, {}, None),
    (301, {"location": "http://127.0.0.1:1/"}, None),
    (302, {"location": "/api/v1/secrets"}, None),
    (307, {"location": "http://169.254.169.254/"}, None),
    (400, {}, None),
    (401, {}, None),
    (403, {}, None),
    (404, {}, None),
    (409, {}, None),
    (410, {}, None),
    (422, {}, None),
    (429, {"retry_after": 1}, None),
    (500, {}, None),
    (501, {"body": b"<html>", "content_type": "text/html"}, None),
    (502, {"body": b""}, None),
    (503, {"retry_after": 1}, None),
    (504, {}, None),
    (599, {}, None),
]


class TestStatuses:
    """F1: a status code in a phase, once; then all is well."""

    @pytest.mark.parametrize("phase", PHASES)
    @pytest.mark.parametrize("code, more, _reason", STATUSES, ids=[str(s[0]) for s in STATUSES])
    def test_once(self, cluster, code, more, _reason, phase):
        # a pause is half of it at least, from when the informer's turn began
        backoff = "60s 60s unreachable=60s" if code == 401 else "200ms 500ms unreachable=500ms"
        setup = scene(cluster, page=PAGES[phase], more=f"backoff {backoff};")
        fault = cluster.api.fault(status=code, **PHASES[phase], **more)
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        cluster.api.wait(lambda: fault.fired == 1)
        settled(cluster, gateway)
        polite(cluster.api)
        paths = {r.path.split("/")[-1] for r in cluster.api.requests}
        assert paths <= {"services", SLICES}, "a redirect was followed"
        (failed,) = [r for r in cluster.api.requests if r.fault is fault]
        later = [
            r
            for r in cluster.api.requests
            if r.resource == SLICES and r.started > failed.started
        ]
        pause = later[0].started - failed.said
        if "retry_after" in more:
            assert pause >= 1.0, f"Retry-After was not waited for: {pause}"
        elif code not in (401, 410) and (phase, code) not in {("list", c) for c in REFUSED}:
            assert pause >= 0.02, f"no backoff: {pause}"
        if code == 401:
            assert pause < 15, f"it was not repeated at once: {pause}"
        metrics = gateway.status.metrics()
        if code not in (204, 206):
            assert metrics.value("nginx_kube_errors_total", resource=SLICES) >= 1
        # the other resource has not noticed
        assert cluster.api.count(verb="watch", resource="services") == 1

    @pytest.mark.parametrize("body", [b"", b"<html>no</html>", b"[]", b"null", b"{}", b'{"kind":'])
    @pytest.mark.parametrize("phase", ["list", "page"])
    def test_200_with_another_body(self, cluster, body, phase):
        setup = scene(cluster, page=PAGES[phase])
        fault = cluster.api.fault(status=200, body=body, **PHASES[phase])
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        cluster.api.wait(lambda: fault.fired == 1)
        settled(cluster, gateway)
        polite(cluster.api)

    def test_410_on_the_first_list_asks_for_any_version(self, cluster):
        setup = scene(cluster)
        cluster.api.fault(status=410, **PHASES["list"])
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        settled(cluster, gateway)
        first, second = [r for r in cluster.api.find("list", SLICES) if not r.continued][:2]
        assert first.query.get("resourceVersion", "") in ("", "0")
        assert second.query.get("resourceVersion", "") == ""

    def test_too_large_version_lists_at_none(self, cluster):
        """504 with the cause ResourceVersionTooLarge: a list without a version."""
        setup = scene(cluster)
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        settled(cluster, gateway)
        details = {"causes": [{"reason": "ResourceVersionTooLarge"}]}
        fault = cluster.api.fault(
            verb="watch", resource=SLICES, status=504, reason="Timeout", details=details
        )
        count = cluster.api.count(verb="list", resource=SLICES, page=1)
        cluster.api.close_watches(SLICES)
        cluster.api.wait(lambda: fault.fired == 1)
        found = cluster.api.wait_requests(count + 1, verb="list", resource=SLICES, page=1)
        assert found[-1].query.get("resourceVersion", "") == ""
        settled(cluster, gateway)
        assert gateway.status.resource(SLICES)["relists"] >= 1

    def test_for_ever_keeps_serving_and_backs_off(self, cluster):
        pods = cluster.service("shop", "web")
        gateway = cluster.nginx(CONF, more="backoff 200ms 400ms;", workers=1)
        settled_before = gateway.get().backend
        cluster.api.fault(status=500, times=None)
        before = len(cluster.api.requests)
        cluster.api.close_watches(how="rst")
        wait_until(lambda: len(cluster.api.requests) >= before + 8)
        found = [r for r in cluster.api.requests[before:] if r.resource == SLICES]
        gaps = [b.started - a.said for a, b in itertools.pairwise(found)]
        assert min(gaps) >= 0.045, gaps
        assert max(gaps[:-1] or gaps) <= 2 * PATIENCE, gaps
        assert gateway.get().backend == settled_before == pods[0].name
        # between two pauses a request is under way
        row = wait_until(
            lambda: (lambda r: r if r["state"] == "backoff" else None)(
                gateway.status.resource(SLICES)
            )
        )
        assert row["last_error"]["reason"]
        assert row["retry_seconds"] is not None and row["retry_seconds"] <= 0.5
        cluster.api.clear_faults()
        settled(cluster, gateway)
        polite(cluster.api)

    def test_403_is_degraded_and_heals(self, cluster):
        cluster.service("shop", "web")
        cluster.service("infra", "echo")
        cluster.api.fault(status=403, ns="infra", times=None)
        gateway = cluster.nginx(CONF, more="namespaces shop infra;", sync=False, workers=1)
        gateway.wait_status_code(200)
        found = gateway.status.wait(lambda i: i["degraded"])
        assert "infra" in str(found["degraded"]) and "shop" not in str(found["degraded"])
        assert found["synced"] is False
        assert gateway.wait_log(r"forbidden")
        cluster.api.clear_faults()
        gateway.status.wait_synced()
        gateway.status.wait(lambda i: not i["degraded"])

    def test_404_is_probed_again(self, cluster):
        """The resource does not exist there (yet)."""
        cluster.service("shop", "web")
        cluster.api.settings.disabled.add(SLICES)
        gateway = cluster.nginx(CONF, sync=False, workers=1, more="endpoints slices;")
        cluster.api.wait_requests(3, resource=SLICES)
        assert gateway.get().headers["x-kube-error"] in ("not_synced", "no_endpoints")
        cluster.api.settings.disabled.discard(SLICES)
        gateway.wait_status_code(200)

    def test_redirect_elsewhere_reaches_nobody(self, cluster):
        with ApiServer() as other:
            cluster.service("shop", "web")
            cluster.api.fault(status=302, location=other.url + "/api/v1/services", times=3)
            gateway = cluster.nginx(CONF, workers=1)
            assert gateway.get().status == 200
            assert other.accepted == 0


ERRORS = [
    ({"code": 410, "reason": "Expired"}, "list"),
    ({"code": 410, "reason": "Gone"}, "list"),
    ({"code": 500, "reason": "InternalError"}, "resume"),
    ({"code": 504, "reason": "Timeout"}, "resume"),
    ({"code": 429, "reason": "TooManyRequests", "details": {"retryAfterSeconds": 1}}, "wait"),
    ({"code": 401, "reason": "Unauthorized"}, "resume"),
    ({"code": 403, "reason": "Forbidden"}, "resume"),
    ({"code": 409, "reason": "Conflict"}, "resume"),
    ({"code": 0, "reason": "Whatever"}, "resume"),
    (
        {
            "code": 504,
            "reason": "Timeout",
            "details": {"causes": [{"reason": "ResourceVersionTooLarge"}]},
        },
        "list",
    ),
]


class TestWatchErrors:
    """F2: ERROR events in a running watch."""

    @pytest.mark.parametrize(
        "error, verdict", ERRORS, ids=[f"{e['code']} {e['reason']}" for e, _ in ERRORS]
    )
    def test_error_event(self, cluster, error, verdict):
        gateway = cluster.nginx(CONF, more=scene(cluster), workers=1)
        settled(cluster, gateway)
        held = gateway.status.resource(SLICES)["resource_version"]
        line = event_line("ERROR", objects.go_json({"kind": "Status", **error}))
        said = time.monotonic()
        assert cluster.api.inject(line, SLICES) == 1
        _, second = cluster.api.wait_requests(2, resource=SLICES)[:2]
        settled(cluster, gateway)
        lists = cluster.api.find("list", SLICES)
        assert len(lists) == (2 if verdict == "list" else 1)
        if verdict == "wait":
            assert second.started - said >= 1.0
        if verdict != "list":
            assert second.query["resourceVersion"] == held and not second.streamed
        polite(cluster.api)

    @pytest.mark.parametrize(
        "line",
        [
            b'{"type":"ERROR","object":"no"}\n',
            b'{"type":"ERROR","object":{}}\n',
            b'{"type":"ERROR"}\n',
            b'{"type":"ERROR","object":{"kind":"Status","code":"410"}}\n',
            b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":null}}\n',
            b'{"type":"ERROR","object":{"kind":"Pod"}}\n',
            b'{"type":"WHATEVER","object":{}}\n',
            b'{"type":"ADDED"}\n',
            b"{}\n",
            b"[]\n",
            b"null\n",
            b"rubbish\n",
            b"\x00\x00\x00\n",
            b"\xff\xfe{}\n",
            b'{"type":"ERROR","object":{"kind":"Status","code":500,"message":"'
            + b"m" * (1 << 20)
            + b'"}}\n',
        ],
        ids=range(15),
    )
    def test_odd_line(self, cluster, line):
        setup = scene(cluster)
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        settled(cluster, gateway)
        assert cluster.api.inject(line, SLICES) == 1
        settled(cluster, gateway)
        assert cluster.api.count(verb="watch", resource="services") == 1
        polite(cluster.api)


class TestStreams:
    """F3: connections and framing."""

    @pytest.mark.parametrize("how", ["fin", "rst", "abort", "clean"])
    def test_cut_watch_resumes_without_a_list(self, cluster, how):
        setup = scene(cluster)
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        settled(cluster, gateway)
        lists = cluster.api.count(verb="list")
        watches = cluster.api.count(verb="watch", resource=SLICES)
        cluster.api.close_watches(SLICES, how)
        cluster.api.wait_requests(watches + 1, verb="watch", resource=SLICES)
        settled(cluster, gateway)
        assert cluster.api.count(verb="list") == lists
        polite(cluster.api)

    @pytest.mark.parametrize("resource", ["services", SLICES])
    @pytest.mark.parametrize(
        "where",
        [{"at_bytes": 20}, {"at_body": 0}, {"at_body": 40}, {"at_body": 700}, {"at_end": True}],
        ids=["head", "body", "40", "700", "end"],
    )
    @pytest.mark.parametrize("cut", ["fin", "rst"])
    def test_cut_list(self, cluster, where, cut, resource):
        setup = scene(cluster)
        fault = cluster.api.fault(verb="list", resource=resource, page=1, cut=cut, **where)
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        cluster.api.wait(lambda: fault.fired == 1)
        settled(cluster, gateway)
        polite(cluster.api)

    @pytest.mark.parametrize("at", [0, 1, 60, 300])
    @pytest.mark.parametrize("cut", ["fin", "rst"])
    def test_cut_event(self, cluster, at, cut):
        """Half an event is none: nothing is invented, nothing is lost."""
        setup = scene(cluster, page=500)
        fault = cluster.api.fault(at_body=at, cut=cut, **PHASES["watch"])
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        rv = cluster.slice("shop", "web", cluster.pods(1, "x"))
        gateway.status.wait_rv(rv)
        assert fault.fired == 1
        settled(cluster, gateway)
        assert cluster.api.count(verb="list", resource=SLICES) == 1

    @pytest.mark.parametrize("chunk", [1, 7, "all"])
    def test_chunks_of_any_size(self, cluster, chunk):
        setup = scene(cluster)
        cluster.api.fault(chunk=chunk, times=None)
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        settled(cluster, gateway)

    def test_drip(self, cluster):
        """A list of which a few bytes come at a time."""
        setup = scene(cluster)
        cluster.api.fault(drip=(400, 0.01), times=1, **PHASES["list"])
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        settled(cluster, gateway)
        assert cluster.api.count(verb="list", resource=SLICES) == 1

    def test_half_open_watch_is_noticed(self, cluster):
        """A peer that is gone without a word: a new watch, no list."""
        setup = scene(cluster, page=500, more="idle_timeout 2s;")
        cluster.api.fault(at_body=0, cut="hang", **PHASES["watch"])
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        first, second = cluster.api.wait_requests(2, verb="watch", resource=SLICES)[:2]
        assert second.started - first.said >= 1.8
        assert second.started - first.started <= 2 + 4 * PATIENCE
        assert first.query["resourceVersion"] == second.query["resourceVersion"]
        settled(cluster, gateway)
        assert cluster.api.count(verb="list", resource=SLICES) == 1
        row = gateway.status.resource(SLICES)
        assert row["last_error"]["reason"] == ""
        polite(cluster.api)

    def test_quiet_watch_is_reopened_without_harm(self, cluster):
        """A server without bookmarks and changes is no failing server."""
        setup = scene(cluster, more="idle_timeout 1s;")
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        cluster.api.wait_requests(4, verb="watch", resource=SLICES)
        row = gateway.status.resource(SLICES)
        assert row["last_error"]["reason"] == "" and row["lists"] == 1
        metrics = gateway.status.metrics()
        assert sum(metrics.find("nginx_kube_errors_total")) == 0
        assert sum(metrics.find("nginx_kube_short_watches_total")) == 0
        settled(cluster, gateway)
        polite(cluster.api)

    def test_frozen_server_and_back(self, cluster):
        setup = scene(cluster, more="idle_timeout 1s; connect_timeout 500ms;")
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        settled(cluster, gateway)
        lists = cluster.api.count(verb="list")
        count = cluster.api.accepted
        cluster.api.freeze()
        cluster.api.wait(lambda: cluster.api.accepted >= count + 2)
        assert gateway.get().status == 200
        cluster.api.thaw()
        settled(cluster, gateway)
        assert cluster.api.count(verb="list") == lists

    def test_refused_and_back(self, cluster):
        setup = scene(cluster)
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        settled(cluster, gateway)
        lists = cluster.api.count(verb="list")
        cluster.api.refuse()
        gateway.status.wait_state("backoff")
        age = gateway.status.informer()["age_seconds"]
        gateway.status.wait(lambda i: i["age_seconds"] > age + 0.5)
        with gateway.load() as load:
            wait_until(lambda: load.total > 300)
        assert not load.failures
        # between two pauses a request is under way
        gateway.status.wait(
            lambda i: all(
                row["last_error"]["reason"] and row["retry_seconds"] is not None
                for row in i["resources"]
                if row["resource"] == SLICES
            )
        )
        listened = time.monotonic()
        cluster.api.listen()
        settled(cluster, gateway)
        # it counts from what was heard since
        age = gateway.status.informer()["age_seconds"]
        assert age <= time.monotonic() - listened
        assert cluster.api.count(verb="list") == lists
        polite(cluster.api)

    def test_healed_long_before_the_next_try(self, cluster):
        """Bare connects do not wait for the pause, whose end is far away."""
        pause = "backoff 600s 600s unreachable=600s;"
        gateway = cluster.nginx(CONF, more=scene(cluster, page=500, more=pause), workers=1)
        settled(cluster, gateway)
        # a watch that brought something is opened again at once, and fails to connect
        rv = cluster.api.put(objects.service("shop", "other"))
        gateway.status.wait_rv(rv, "services")
        gateway.status.wait_rv(cluster.slice("shop", "web", cluster.pods(1, "moved")))
        accepted = cluster.api.accepted
        lists = cluster.api.count(verb="list")
        cluster.api.refuse()
        gateway.status.wait(
            lambda i: all(
                row["state"] == "backoff" and row["retry_seconds"] > 150 for row in i["resources"]
            )
        )
        cluster.api.listen()
        for resource in ("services", SLICES):
            gateway.status.wait_state("watching", resource)
        settled(cluster, gateway)
        assert cluster.api.count(verb="list") == lists
        # what was connected first has a request: no connection is for nothing
        assert cluster.api.accepted == accepted + 2
        polite(cluster.api)

    @pytest.mark.parametrize("how", ["rst", "close", b"HTTP/1.1 400 x\r\n\r\n", b"\x16\x03\x01"])
    def test_connections_that_die_at_once(self, cluster, how):
        setup = scene(cluster)
        cluster.api.connect_fault(how)
        gateway = cluster.nginx(CONF, more=setup, sync=False, workers=1)
        cluster.api.wait(lambda: cluster.api.accepted >= 4)
        assert gateway.get().headers["x-kube-error"] == "not_synced"
        cluster.api.connect_fault(None)
        settled(cluster, gateway)

    def test_very_short_watches_are_damped(self, cluster):
        """
        A server that ends each watch at once is not asked at its speed; from the
        fourth one on a list shows what the watches do not.
        """
        setup = scene(cluster, page=500, more="backoff 100ms 500ms unreachable=500ms;")
        cluster.api.fault(
            verb="watch", resource=SLICES, at_body=0, at_end=True, timeout=0.0, times=None
        )
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        found = cluster.api.wait_requests(8, verb="watch", resource=SLICES)
        gaps = [b.started - a.said for a, b in itertools.pairwise(found)]
        assert min(gaps) >= 0.02, gaps
        lists = cluster.api.count(verb="list", resource=SLICES)
        assert 2 <= lists <= cluster.api.count(verb="watch", resource=SLICES) - 1, lists
        assert gateway.status.metrics().value("nginx_kube_short_watches_total") >= 5
        cluster.api.clear_faults()
        settled(cluster, gateway)

    def test_watch_timeout_is_drawn_and_asked_for(self, cluster):
        setup = scene(cluster, more="watch_timeout 2s;")
        cluster.nginx(CONF, more=setup, workers=1)
        found = cluster.api.wait_requests(3, verb="watch", resource=SLICES)
        assert all(2 <= int(r.query["timeoutSeconds"]) <= 4 for r in found)
        assert all(r.query["allowWatchBookmarks"] in ("true", "1") for r in found)
        assert cluster.api.count(verb="list", resource=SLICES) == 1
        polite(cluster.api)


class TestHistory:
    """F5: what the server forgot, or went back behind."""

    def test_compaction_relists_as_a_diff(self, cluster):
        """410 on resume: unchanged Services keep their generation and instances."""
        setup = scene(cluster, page=2)
        cluster.service("infra", "moved", 1)
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        settled(cluster, gateway)
        gateway.get()
        status = gateway.status
        before = {(r["namespace"], r["name"]): r["generation"] for r in status.services()}
        rebuilds = status.metrics().value("nginx_kube_instance_rebuilds_total")
        cluster.api.refuse()
        cluster.slice("infra", "moved", cluster.pods(1, "elsewhere"))
        cluster.api.delete("services", "infra", "s1")
        for n in range(3):
            cluster.service("infra", f"new{n}", pods=[])
        cluster.api.compact()
        cluster.api.listen()
        for resource in ("services", SLICES):
            status.wait_rv(cluster.api.rv, resource)
        cluster.equal(gateway)
        for resource in ("services", SLICES):
            row = status.resource(resource)
            assert row["relists"] == 1 and row["lists"] == 2
        after = {(r["namespace"], r["name"]): r["generation"] for r in status.services()}
        changed = {k for k in before if after.get(k) != before[k]}
        assert changed == {("infra", "moved"), ("infra", "s1")}
        assert gateway.get().status == 200
        assert status.metrics().value("nginx_kube_instance_rebuilds_total") == rebuilds
        assert status.metrics().value("nginx_kube_relists_total", reason="expired") == 2
        polite(cluster.api)

    def test_compaction_at_each_reconnect(self, cluster):
        setup = scene(cluster)
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        for n in range(4):
            settled(cluster, gateway)
            cluster.api.refuse()
            cluster.slice("shop", "web", cluster.pods(1, f"c{n}"))
            cluster.api.compact()
            cluster.api.listen()
        settled(cluster, gateway, timeout=30 * PATIENCE)
        polite(cluster.api)

    def test_continue_token_expires(self, cluster):
        setup = scene(cluster, page=2)
        fault = cluster.api.fault(status=410, reason="Expired", **PHASES["page"])
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        settled(cluster, gateway)
        assert fault.fired == 1
        polite(cluster.api)

    def test_lagging_replica_does_not_turn_back_time(self, cluster):
        setup = scene(cluster)
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        settled(cluster, gateway)
        old = cluster.api.rv
        new = cluster.pods(1, "newest")
        gateway.status.wait_rv(cluster.slice("shop", "web", new))
        lagging = cluster.api.fault(verb="list", resource=SLICES, as_of=old, times=2)
        cluster.api.inject(
            b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n', SLICES
        )
        cluster.api.wait(lambda: lagging.fired == 2)
        assert gateway.wait_log(rf"a list of endpointslices at {old} is older than")
        assert gateway.get().backend == "newest-1"
        gateway.status.wait_rv(cluster.api.rv)
        assert gateway.get().backend == "newest-1"
        assert gateway.status.informer()["epoch"] == 1
        settled(cluster, gateway)

    @pytest.mark.slow
    @pytest.mark.cluster(strict_future=True)
    def test_restored_backup_is_an_epoch(self, cluster):
        """The server went back: accepted when it says so twice, two seconds apart."""
        setup = scene(cluster)
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        settled(cluster, gateway)
        backup = cluster.api.rv
        old = gateway.get().backend
        for n in range(20):
            rv = cluster.slice("shop", "web", cluster.pods(1, f"lost{n}"))
        gateway.status.wait_rv(rv)
        epoch = gateway.status.informer()["epoch"]
        cluster.api.restore(backup)
        gateway.status.wait(lambda i: i["epoch"] > epoch, timeout=40 * PATIENCE)
        gateway.wait_backends({old})
        assert gateway.wait_log(r"rollback")
        settled(cluster, gateway)

    def test_restored_backup_gives_a_version_twice(self, cluster):
        """It went on to beyond our version: one of ours is another object there."""
        setup = scene(cluster)
        backup = cluster.api.rv
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        version = cluster.slice("shop", "web", cluster.pods(1, "lost"))
        gateway.wait_backends({"lost-1"})
        cluster.api.refuse()
        cluster.api.restore(backup)
        assert cluster.slice("shop", "web", cluster.pods(1, "there")) == version
        cluster.service("infra", "more", pods=cluster.pods())
        cluster.api.compact()
        cluster.api.listen()
        gateway.wait_backends({"there-1"})
        settled(cluster, gateway)

    def test_deleted_while_away(self, cluster):
        setup = scene(cluster, page=2)
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        settled(cluster, gateway)
        cluster.api.refuse()
        cluster.api.delete("services", "shop", "web")
        cluster.api.delete(SLICES, "shop", "web-1")
        cluster.api.compact()
        cluster.api.listen()
        wait_until(lambda: gateway.get().headers["x-kube-error"] == "no_service")

    def test_namespace_deleted(self, cluster):
        setup = scene(cluster)
        gateway = cluster.nginx(CONF, more=setup, workers=1)
        settled(cluster, gateway)
        cluster.api.delete("namespaces", "", "shop")
        wait_until(lambda: gateway.get().headers["x-kube-error"] == "no_service")
        # the two watches have no order
        cluster.equal(gateway)
        assert gateway.status.resource(SLICES)["objects"] == 5

    def test_burst(self, cluster):
        """Thousands of changes at once end in the state of the server."""
        setup = scene(cluster)
        gateway = cluster.nginx(CONF, more=setup, workers=1, sync=True)
        pods = cluster.pods(4, "b")
        cluster.api.put_all(
            objects.slice("infra", f"s{n % 5}-1", f"s{n % 5}", [f"10.9.{n // 250}.{n % 250 + 1}"])
            for n in range(3000)
        )
        rv = cluster.slice("shop", "web", pods)
        gateway.status.wait_rv(rv)
        gateway.wait_backends({p.name for p in pods})
        for n in range(5):
            wanted = cluster.api.get(SLICES, "infra", f"s{n}-1")["endpoints"][0]["addresses"]
            assert [
                e["address"] for e in gateway.status.service("infra", f"s{n}")["endpoints"]
            ] == wanted
        assert cluster.api.count(verb="list", resource=SLICES) == 1

    def test_slow_list_of_one_does_not_stop_the_other(self, cluster):
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF, more=PLAIN, workers=1)
        # the slices' version stays in the window, the Services' does not
        version = cluster.slice("shop", "web", cluster.pods(1, "before"))
        gateway.status.wait_rv(version)
        slow = cluster.api.fault(verb="list", resource="services", delay=60)
        cluster.api.refuse()
        cluster.api.compact(int(version))
        cluster.api.listen()
        cluster.api.wait(lambda: slow.fired == 1)
        gateway.status.wait_state("watching", SLICES)
        new = cluster.pods(1, "meanwhile")
        gateway.status.wait_rv(cluster.slice("shop", "web", new))
        assert gateway.get().backend == "meanwhile-1"
        assert gateway.status.resource("services")["state"] == "listing"

    def test_list_that_hangs_gives_its_turn_away(self, cluster):
        """One list at a time, but none holds the turn without moving on."""
        cluster.service("shop", "web")
        slow = cluster.api.fault(verb="list", resource="services", delay=60)
        gateway = cluster.nginx(CONF, more=PLAIN, sync=False, workers=1)
        (first,) = cluster.api.wait_requests(1, verb="list", resource="services")
        found = cluster.api.wait_requests(1, verb="list", resource=SLICES)
        # its clock began before the server had read the request
        assert 2.5 <= found[0].started - first.started <= 5 + 4 * PATIENCE
        gateway.status.wait_state("watching", SLICES)
        assert slow.fired == 1
        assert gateway.status.resource("services")["state"] == "listing"


def test_user_agent_and_headers(cluster):
    """Fixed headers only; who we are is said, nothing else."""
    cluster.service("shop", "web")
    cluster.nginx(CONF, workers=1)
    for request in cluster.api.requests:
        agent = request.headers["user-agent"]
        assert re.fullmatch(r"nginx-kube-informer/[\d.]+ \(\w+/[\w.]+\)", agent), agent
        frames = ";stream=watch" if "watch=true" in request.target else ""
        assert request.headers["accept"] == (
            f"application/vnd.kubernetes.protobuf{frames}, application/json"
        )
        assert "authorization" not in request.headers
        assert "gzip" not in request.headers.get("accept-encoding", "")


def test_quiet_when_nothing_happens(cluster):
    """No request is made while the watches are healthy."""
    cluster.service("shop", "web")
    gateway = cluster.nginx(CONF, workers=2)
    cluster.api.wait_watch("services")
    cluster.api.wait_watch(SLICES)
    count = len(cluster.api.requests)
    never(lambda: len(cluster.api.requests) > count, 2, "a request for nothing")
    assert gateway.get().status == 200
