# What holds for every API server, asked over HTTP only.  It checks the stand-in,
# and with KUBE_TEST_URL (and KUBE_TEST_TOKEN, KUBE_TEST_CA) set a real one:
#     KUBE_TEST_URL=https://10.244.0.1:6443 ... pytest t/test_standin.py
# What only the stand-in has is checked by test_standin_own.py.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Black-box checks of an API server, stand-in or real."""

import json
import os
import sys
import time
import uuid

import pytest

LIB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
sys.path.insert(0, LIB)

import objects  # noqa: E402
from apiserver import ApiServer  # noqa: E402
from apiserver_client import SERVICES, Client, names, rv_of, services, slices  # noqa: E402

REAL = os.environ.get("KUBE_TEST_URL")


@pytest.fixture(scope="class")
def any_api():
    """The server under a generic check: the stand-in, or the one of KUBE_TEST_URL."""
    if REAL:
        yield Client(REAL, os.environ.get("KUBE_TEST_TOKEN"), os.environ.get("KUBE_TEST_CA"))
        return
    with ApiServer(token="secret") as server:
        yield Client(server.url, "secret")


@pytest.fixture
def ns(any_api):
    """A namespace of the test's own."""
    name = "standin-" + uuid.uuid4().hex[:8]
    any_api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    any_api.call("DELETE", "/api/v1/namespaces/" + name)


def new_service(name, labels=None):
    """A Service a real server takes."""
    return {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"ports": [{"name": "http", "port": 80}], "clusterIP": "None"},
    }


LIST_422 = [
    ({"resourceVersionMatch": "Exact"}, "resourceVersionMatch", "Forbidden"),
    ({"resourceVersionMatch": "NotOlderThan"}, "resourceVersionMatch", "Forbidden"),
    (
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        "resourceVersionMatch",
        "Forbidden",
    ),
    (
        {"resourceVersionMatch": "Odd", "resourceVersion": "5"},
        "resourceVersionMatch",
        "NotSupported",
    ),
    ({"sendInitialEvents": "true"}, "sendInitialEvents", "Forbidden"),
]
WATCH_422 = [
    (
        {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "5"},
        "resourceVersionMatch",
        "Forbidden",
    ),
    ({"sendInitialEvents": "true"}, "resourceVersionMatch", "Forbidden"),
    (
        {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
        "resourceVersionMatch",
        "Forbidden",
    ),
]


class TestGeneric:
    """What holds for every API server."""

    def test_list_looks_as_go_writes_it(self, any_api, ns):
        any_api.create(services(ns), new_service("web"))
        status, headers, body = any_api.call("GET", services(ns))
        assert status == 200
        assert headers["Content-Type"] == "application/json"
        assert body.endswith(b"}\n") and b'": ' not in body
        made = json.loads(body)
        assert list(made) == ["kind", "apiVersion", "metadata", "items"]
        assert (made["kind"], made["apiVersion"]) == ("ServiceList", "v1")
        item = made["items"][0]
        assert list(item)[:2] == ["metadata", "spec"]
        keys = list(item["metadata"])
        assert keys[:4] == ["name", "namespace", "uid", "resourceVersion"]
        assert rv_of(made) >= rv_of(item) > 0

    def test_empty_list_has_items(self, any_api, ns):
        assert any_api.list(slices(ns))["items"] == []

    def test_pretty_for_curl_only(self, any_api, ns):
        _, _, body = any_api.call("GET", services(ns), headers={"User-Agent": "curl/8"})
        assert body.startswith(b'{\n  "kind": "ServiceList"')
        _, _, body = any_api.call(
            "GET", services(ns), query={"pretty": "false"}, headers={"User-Agent": "curl/8"}
        )
        assert body.startswith(b'{"kind":"ServiceList"')

    def test_watch_sees_what_happens_after_the_list(self, any_api, ns):
        listed = any_api.list(services(ns))
        rv = listed["metadata"]["resourceVersion"]
        with any_api.watch(services(ns), resourceVersion=rv, timeoutSeconds="10") as watch:
            assert watch.status == 200
            assert watch.response.headers["Transfer-Encoding"] == "chunked"
            created = any_api.create(services(ns), new_service("web"))
            changed = any_api.patch(services(ns) + "/web", {"metadata": {"labels": {"a": "b"}}})
            any_api.delete(services(ns) + "/web")
            added, modified, deleted = watch.next(), watch.next(), watch.next()
        assert [e["type"] for e in (added, modified, deleted)] == [
            "ADDED",
            "MODIFIED",
            "DELETED",
        ]
        assert list(added["object"])[:3] == ["kind", "apiVersion", "metadata"]
        assert added["object"]["kind"] == "Service"
        assert rv_of(added["object"]) == rv_of(created)
        assert rv_of(modified["object"]) == rv_of(changed)
        assert rv_of(deleted["object"]) > rv_of(changed)
        assert deleted["object"]["metadata"]["labels"] == {"a": "b"}

    def test_no_op_update_is_no_event(self, any_api, ns):
        any_api.create(services(ns), new_service("web", {"a": "b"}))
        rv = any_api.list(services(ns))["metadata"]["resourceVersion"]
        any_api.patch(services(ns) + "/web", {"metadata": {"labels": {"a": "b"}}})
        any_api.create(services(ns), new_service("next"))
        with any_api.watch(services(ns), resourceVersion=rv, timeoutSeconds="10") as watch:
            assert watch.events(1) == [("ADDED", "next")]

    def test_resume_repeats_and_loses_nothing(self, any_api, ns):
        made = [any_api.create(services(ns), new_service(f"s{i}")) for i in range(4)]
        for i in range(3):
            with any_api.watch(
                services(ns), resourceVersion=str(rv_of(made[i])), timeoutSeconds="10"
            ) as watch:
                expected = [("ADDED", f"s{k}") for k in range(i + 1, 4)]
                assert watch.events(len(expected)) == expected

    def test_watch_from_too_old_version(self, any_api):
        with any_api.watch(SERVICES, resourceVersion="1", timeoutSeconds="10") as watch:
            assert watch.status == 200
            event = watch.next()
            if REAL and event["type"] == "ADDED":
                pytest.skip("a young server: nothing is forgotten yet")
            assert event["type"] == "ERROR"
            assert event["object"]["kind"] == "Status"
            assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
            assert event["object"]["message"].startswith("too old resource version: 1 (")
            assert watch.next() is None

    def test_list_from_the_future(self, any_api, ns):
        rv = str(rv_of(any_api.list(services(ns))) + 1000000)
        status, headers, body = any_api.call("GET", services(ns), query={"resourceVersion": rv})
        made = json.loads(body)
        assert (status, made["reason"], made["code"]) == (504, "Timeout", 504)
        assert "Too large resource version" in made["message"]
        assert made["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
        assert headers["Retry-After"] == "1"

    def test_watch_list_from_the_future(self, any_api, ns):
        rv = str(rv_of(any_api.list(services(ns))) + 1000000)
        with any_api.watch(
            services(ns),
            resourceVersion=rv,
            sendInitialEvents="true",
            resourceVersionMatch="NotOlderThan",
            allowWatchBookmarks="true",
            timeoutSeconds="10",
        ) as watch:
            event = watch.next()
        assert (watch.status, event["type"], event["object"]["code"]) == (200, "ERROR", 504)

    def test_watch_from_the_future_just_waits(self, any_api, ns):
        rv = str(rv_of(any_api.list(services(ns))) + 1000000)
        with any_api.watch(services(ns), resourceVersion=rv, timeoutSeconds="1") as watch:
            any_api.create(services(ns), new_service("unseen"))
            assert watch.status == 200
            assert watch.next() is None

    @pytest.mark.parametrize("query, field, cause", LIST_422)
    def test_list_options_refused(self, any_api, ns, query, field, cause):
        status, made = any_api.get(services(ns), **query)
        self.refused(status, made, field, cause)

    @pytest.mark.parametrize("query, field, cause", WATCH_422)
    def test_watch_options_refused(self, any_api, ns, query, field, cause):
        status, made = any_api.get(services(ns), watch="true", **query)
        self.refused(status, made, field, cause)

    @staticmethod
    def refused(status, made, field, cause):
        """Asserts a 422 with this cause."""
        assert (status, made["reason"], made["code"]) == (422, "Invalid", 422)
        assert made["message"].startswith('ListOptions.meta.k8s.io "" is invalid: ')
        first = made["details"]["causes"][0]
        assert first["field"] == field
        assert first["reason"] == "FieldValue" + cause

    def test_match_and_continue_refused(self, any_api, ns):
        for i in range(2):
            any_api.create(services(ns), new_service(f"s{i}"))
        token = any_api.list(services(ns), limit="1")["metadata"]["continue"]
        query = {"limit": "1", "continue": token}
        status, made = any_api.get(
            services(ns), resourceVersion="5", resourceVersionMatch="NotOlderThan", **query
        )
        self.refused(status, made, "resourceVersionMatch", "Forbidden")
        status, made = any_api.get(services(ns), resourceVersion="5", **query)
        assert (status, made["reason"]) == (400, "BadRequest")

    def test_pages_are_one_snapshot(self, any_api, ns):
        for i in range(5):
            any_api.create(services(ns), new_service(f"s{i}"))
        page = any_api.list(services(ns), limit="2")
        assert page["metadata"]["remainingItemCount"] == 3
        first = page["metadata"]["resourceVersion"]
        any_api.create(services(ns), new_service("s9"))
        any_api.delete(services(ns) + "/s3")
        found = names(page)
        while page["metadata"].get("continue"):
            page = any_api.list(
                services(ns), limit="2", **{"continue": page["metadata"]["continue"]}
            )
            assert page["metadata"]["resourceVersion"] == first
            found += names(page)
        assert found == [f"s{i}" for i in range(5)]
        assert "remainingItemCount" not in page["metadata"]

    def test_no_remaining_count_with_a_selector(self, any_api, ns):
        for i in range(3):
            any_api.create(services(ns), new_service(f"s{i}", {"a": "b"}))
        page = any_api.list(services(ns), limit="1", labelSelector="a=b")
        assert page["metadata"]["continue"]
        assert "remainingItemCount" not in page["metadata"]

    def test_limit_ignored_for_any_version(self, any_api, ns):
        for i in range(3):
            any_api.create(services(ns), new_service(f"s{i}"))
        newest = any_api.list(services(ns))["metadata"]["resourceVersion"]
        # A list "not older than" makes sure a real server's cache has caught up.
        any_api.list(services(ns), resourceVersion=newest, resourceVersionMatch="NotOlderThan")
        page = any_api.list(services(ns), limit="1", resourceVersion="0")
        assert len(page["items"]) == 3 and "continue" not in page["metadata"]

    def test_exact_and_not_older_than(self, any_api, ns):
        any_api.create(services(ns), new_service("old"))
        rv = any_api.list(services(ns))["metadata"]["resourceVersion"]
        any_api.create(services(ns), new_service("young"))

        def ask(**query):
            return any_api.list(services(ns), resourceVersion=rv, **query)

        exact = ask(resourceVersionMatch="Exact")
        assert names(exact) == ["old"] and exact["metadata"]["resourceVersion"] == rv
        # A version with a limit and no match is exact as well.
        assert names(ask(limit="10")) == ["old"]
        newer = ask(resourceVersionMatch="NotOlderThan")
        assert rv_of(newer) >= int(rv)
        assert rv_of(ask()) >= int(rv)
        assert names(any_api.list(services(ns))) == ["old", "young"]

    def test_selectors(self, any_api, ns):
        for name, labels in (
            ("a", {"tier": "web", "x": "1"}),
            ("b", {"tier": "db"}),
            ("c", {}),
        ):
            any_api.create(services(ns), new_service(name, labels))
        for selector, expected in (
            ("tier=web", ["a"]),
            ("tier==db", ["b"]),
            ("tier!=web", ["b", "c"]),
            ("tier in (web,db)", ["a", "b"]),
            ("tier notin (web)", ["b", "c"]),
            ("tier", ["a", "b"]),
            ("!tier", ["c"]),
            ("tier in (web,db),x", ["a"]),
        ):
            assert names(any_api.list(services(ns), labelSelector=selector)) == expected
        field = {"fieldSelector": "metadata.name=b"}
        assert names(any_api.list(services(ns), **field)) == ["b"]
        field = {"fieldSelector": f"metadata.namespace={ns},metadata.name!=b"}
        assert names(any_api.list(SERVICES, **field)) == ["a", "c"]
        for query in ({"labelSelector": "a=b=c"}, {"fieldSelector": "spec.nothing=1"}):
            status, made = any_api.get(services(ns), **query)
            assert (status, made["reason"]) == (400, "BadRequest")

    def test_watch_through_a_selector(self, any_api, ns):
        rv = any_api.list(services(ns))["metadata"]["resourceVersion"]
        with any_api.watch(
            services(ns), resourceVersion=rv, labelSelector="in=yes", timeoutSeconds="10"
        ) as watch:
            any_api.create(services(ns), new_service("other"))
            any_api.create(services(ns), new_service("web"))
            for value in ("yes", "no"):
                last = any_api.patch(services(ns) + "/web", {"metadata": {"labels": {"in": value}}})
            added, deleted = watch.next(), watch.next()
        assert watch.short(added) == ("ADDED", "web")
        assert watch.short(deleted) == ("DELETED", "web")
        assert rv_of(deleted["object"]) == rv_of(last)
        assert deleted["object"]["metadata"]["labels"] == {"in": "yes"}

    def test_bookmark_before_the_deadline(self, any_api, ns):
        any_api.create(services(ns), new_service("web"))
        rv = any_api.list(services(ns))["metadata"]["resourceVersion"]
        with any_api.watch(
            services(ns), resourceVersion=rv, timeoutSeconds="4", allowWatchBookmarks="true"
        ) as watch:
            made = any_api.create(services(ns), new_service("next"))
            assert watch.events(1) == [("ADDED", "next")]
            # In another namespace: it moves the version, and shows only so.
            other = any_api.create(services("default"), new_service(ns))
            try:
                event = watch.next()
            finally:
                any_api.delete(services("default") + "/" + ns)
        assert event["type"] == "BOOKMARK"
        assert event["object"]["kind"] == "Service"
        assert rv_of(event["object"]) >= rv_of(other) > rv_of(made)
        assert "name" not in event["object"]["metadata"]

    def test_no_bookmark_unless_asked_for(self, any_api, ns):
        any_api.create(services(ns), new_service("web"))
        with any_api.watch(services(ns), resourceVersion="0", timeoutSeconds="3") as watch:
            assert watch.events(2) == [("ADDED", "web"), None]

    def test_timeout_ends_the_stream_not_the_connection(self, any_api, ns):
        rv = any_api.list(services(ns))["metadata"]["resourceVersion"]
        started = time.monotonic()
        with any_api.watch(services(ns), resourceVersion=rv, timeoutSeconds="1") as watch:
            assert watch.next() is None
            assert time.monotonic() - started >= 0.9
            response = any_api.send(watch.conn, "GET", services(ns))
            assert response.status == 200
            assert json.loads(response.read())["kind"] == "ServiceList"

    @pytest.mark.parametrize("rv", ["", "0"])
    def test_watch_without_version_begins_with_all(self, any_api, ns, rv):
        for name in ("b", "a"):
            any_api.create(services(ns), new_service(name))
        newest = any_api.list(services(ns))["metadata"]["resourceVersion"]
        any_api.list(services(ns), resourceVersion=newest, resourceVersionMatch="NotOlderThan")
        with any_api.watch(services(ns), resourceVersion=rv, timeoutSeconds="10") as watch:
            assert sorted(watch.events(2)) == [("ADDED", "a"), ("ADDED", "b")]

    def test_watch_list(self, any_api, ns):
        for name in ("b", "a"):
            any_api.create(services(ns), new_service(name))
        with any_api.watch(
            services(ns),
            sendInitialEvents="true",
            resourceVersionMatch="NotOlderThan",
            allowWatchBookmarks="true",
            timeoutSeconds="10",
        ) as watch:
            assert sorted(watch.events(2)) == [("ADDED", "a"), ("ADDED", "b")]
            end = watch.next()
            assert end["type"] == "BOOKMARK"
            assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
            made = any_api.create(services(ns), new_service("c"))
            assert rv_of(made) > rv_of(end["object"])
            assert watch.events(1) == [("ADDED", "c")]

    def test_endpoint_slices(self, any_api, ns):
        made = objects.slice(
            ns, "web-1", "web", ["10.244.1.1", "10.244.1.2"], service_uid=str(uuid.uuid4())
        )
        for key in ("uid", "creationTimestamp", "generation", "managedFields"):
            made["metadata"].pop(key, None)
        any_api.create(slices(ns), made)
        listed = any_api.list(slices(ns))
        assert listed["kind"] == "EndpointSliceList"
        assert listed["apiVersion"] == "discovery.k8s.io/v1"
        item = listed["items"][0]
        assert list(item) == ["metadata", "addressType", "endpoints", "ports"]
        assert [e["addresses"] for e in item["endpoints"]] == [["10.244.1.1"], ["10.244.1.2"]]

    def test_errors_are_status_objects(self, any_api, ns):
        any_api.create(services(ns), new_service("web"))
        for path, query, code, reason in (
            (services(ns) + "/absent", {}, 404, "NotFound"),
            ("/api/v1/nothings", {}, 404, "NotFound"),
            (services(ns), {"resourceVersion": "abc"}, 400, "BadRequest"),
            (services(ns), {"continue": "rubbish"}, 400, "BadRequest"),
        ):
            status, made = any_api.get(path, **query)
            assert status == code, made
            assert (made["kind"], made["status"], made["code"]) == ("Status", "Failure", code)
            assert made["reason"] == reason
        status, _, body = any_api.call("POST", services(ns), new_service("web"))
        assert (status, json.loads(body)["reason"]) == (409, "AlreadyExists")

    def test_unknown_token(self, any_api, ns):
        if not any_api.token:
            pytest.skip("this server asks for no token")
        status, made = any_api.get(services(ns), headers={"Authorization": "Bearer wrong"})
        assert (status, made["reason"], made["message"]) == (
            401,
            "Unauthorized",
            "Unauthorized",
        )

    def test_discovery(self, any_api):
        status, made = any_api.get("/apis/discovery.k8s.io/v1")
        assert status == 200
        assert "endpointslices" in [r["name"] for r in made["resources"]]
        assert any_api.get("/version")[1]["major"] == "1"
        assert any_api.get("/api")[1]["versions"] == ["v1"]
        groups = any_api.get("/apis")[1]["groups"]
        assert "discovery.k8s.io" in [g["name"] for g in groups]
