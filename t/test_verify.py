# kube-informer --verify: what a gateway holds beside a list of the API server at
# the same resourceVersion; of a state file see test_state_file.py.  A difference is
# planted by changes that the stand-in tells nobody of.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Equal, different, refused, moving on, or not to be compared."""

import contextlib
import http.server
import json
import os
import subprocess
import threading

import objects
import pytest
from apiserver import ApiServer
from cluster import Cluster, informer
from nginx import PATIENCE

PROGRAM = os.path.join(os.environ.get("KUBE_BUILD_DIR", "build/release"), "kube-informer")

CONF = """
    upstream web { kube_service $http_x namespaces=shop,infra; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://web; } }
"""
SLICES = "endpointslices"


def verify(what, *args, server):
    """(exit code, lines, stderr) of one run."""
    done = subprocess.run(
        [PROGRAM, "--verify", what, "--server", server, *args],
        capture_output=True,
        text=True,
        check=False,
        timeout=60 * PATIENCE,
    )
    return done.returncode, [json.loads(x) for x in done.stdout.splitlines()], done.stderr


def of(lines, kind):
    """The lines of a type."""
    return [x for x in lines if x["type"] == kind]


def url(gateway):
    """Its kube_status location."""
    return f"http://127.0.0.1:{gateway.status_port}/kube"


class Bed:
    """A cluster and its gateway, which both count as they are."""

    def __init__(self, made, gateway):
        self.made = made
        self.api = made.api
        self.gateway = gateway

    def step(self):
        """A change that is told: the gateway's versions are newer than any before."""
        name = f"step-{self.api.rv}"
        service = self.api.put(objects.service("infra", name))
        made = objects.slice("infra", name, name, [objects.endpoint("127.9.9.9")])
        self.gateway.status.wait_rv(self.api.put(made))
        self.gateway.status.wait_rv(service, "services")

    def verify(self, *args, url_of=None):
        """The gateway beside its server."""
        return verify(url_of or url(self.gateway), *args, server=self.api.url)


@contextlib.contextmanager
def beside(bed, change):
    """Where the gateway answers as it does, but for what change(path, answer) makes of it."""

    class Changed(http.server.BaseHTTPRequestHandler):
        """Asks the gateway."""

        def do_GET(self):  # noqa: N802
            """Answers."""
            path = self.path.removeprefix("/kube")
            made = bed.gateway.status.get(path).json()
            change(path, made)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(made).encode())

        def log_message(self, *_args):
            """Nobody reads it."""

    with http.server.HTTPServer(("127.0.0.1", 0), Changed) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/kube"
        finally:
            server.shutdown()


@pytest.fixture(name="bed", scope="module")
def fixture_bed():
    """120 Services, in more than one page, and one gateway for all tests."""
    with Cluster() as made:
        for n in range(60):
            made.api.put(objects.service("shop", f"s{n}"))
            made.api.put(
                objects.slice("shop", f"s{n}-1", f"s{n}", [objects.endpoint(f"127.8.0.{n + 1}")])
            )
        made.service("infra", "web", 2)
        block = informer(made.api.url, "namespaces all;")
        gateway = made.nginx(CONF, block=block)
        gateway.status.wait_synced()
        yield Bed(made, gateway)


class TestGateway:
    """A running gateway."""

    def test_equal(self, bed):
        code, lines, errors = bed.verify("--page-size", "7")
        assert (code, errors) == (0, "")
        assert [(x["type"], x["resource"]) for x in lines] == [
            ("equal", "services"),
            ("equal", SLICES),
        ]
        assert all(x["digest"] == x["server_digest"] and x["count"] > 60 for x in lines)
        assert all(0 <= x["age_seconds"] < 120 for x in lines)
        exact = [r for r in bed.api.requests if r.query.get("resourceVersionMatch") == "Exact"]
        assert len(exact) == 2 and len(bed.api.find(page=9)) == 2

    def test_a_change_that_was_not_told(self, bed):
        """Changed, added and deleted: each is named with what either side has."""
        api = bed.api
        old = api.get(SLICES, "shop", "s7-1")
        gone = api.get("services", "shop", "s9")
        new = objects.slice("shop", "s7-1", "s7", [objects.endpoint("127.8.9.9")])
        api.put(new, lost=True)
        api.put(objects.service("shop", "added"), lost=True)
        api.delete("services", "shop", "s9", lost=True)
        bed.step()
        code, lines, errors = bed.verify()
        assert (code, errors) == (1, ""), lines
        assert {x["resource"] for x in of(lines, "unequal")} == {"services", SLICES}
        found = {(x["resource"], x["name"]): x for x in of(lines, "different")}
        assert set(found) == {("services", "added"), ("services", "s9"), (SLICES, "s7-1")}
        assert found["services", "added"]["held"] is None
        assert found["services", "s9"]["server"] is None
        both = found[SLICES, "s7-1"]
        sides = [both[side]["object"]["endpoints"][0]["address"] for side in ("held", "server")]
        assert sides == ["127.8.0.8", "127.8.9.9"]
        code, lines, _ = bed.verify("--quiet")
        assert code == 1 and not of(lines, "different")

        # told of after all
        api.put(old)
        api.put(gone)
        api.delete("services", "shop", "added")
        bed.step()
        assert bed.verify()[0] == 0

    def test_a_gateway_that_moves_on(self, bed):
        """Changes without a pause are no difference; a planted one among them is."""
        stop = threading.Event()

        def churn():
            n = 0
            while not stop.is_set():
                n += 1
                ip = f"127.7.{n // 250 % 250}.{n % 250 + 1}"
                name = f"s{20 + n % 9}"
                bed.api.put(objects.slice("shop", name + "-1", name, [objects.endpoint(ip)]))
                stop.wait(0.002)

        thread = threading.Thread(target=churn)
        thread.start()
        try:
            for _ in range(3):
                code, lines, errors = bed.verify()
                assert code == 0, (lines, errors)
            old = bed.api.get(SLICES, "shop", "s7-1")
            bed.api.delete(SLICES, "shop", "s7-1", lost=True)
            planted = bed.api.put(
                objects.slice("shop", "lost-1", "lost", [objects.endpoint("127.8.9.9")]), lost=True
            )
            bed.gateway.status.wait_rv(planted)
            code, lines, errors = bed.verify()
            assert code == 1, (lines, errors)
            assert {x["name"] for x in of(lines, "different")} <= {"s7-1", "lost-1"}
        finally:
            stop.set()
            thread.join()
        bed.api.put(old)
        bed.api.delete(SLICES, "shop", "lost-1")
        bed.step()
        assert bed.verify()[0] == 0

    def test_what_is_refused_is_named(self, bed):
        """It is in the gateway's status: no difference."""
        text = (
            b'{"metadata":{"name":"odd-1","namespace":"shop","uid":"u-odd",'
            b'"resourceVersion":"%RV%","labels":{"kubernetes.io/service-name":"s1"}},'
            b'"addressType":7,"endpoints":[],"ports":[]}'
        )
        bed.api.put_raw(SLICES, "shop", "odd-1", text)
        bed.gateway.status.wait(
            lambda i: any(r["refused"] for r in i["resources"] if r["resource"] == SLICES)
        )
        code, lines, errors = bed.verify()
        assert (code, errors) == (0, ""), lines
        assert [(x["name"], x["reason"]) for x in of(lines, "refused")] == [("odd-1", "malformed")]
        bed.api.delete(SLICES, "shop", "odd-1")
        bed.step()
        assert not of(bed.verify()[1], "refused")

    def test_a_version_that_was_compacted(self, bed):
        """It is asked for again at a newer one, which the next bookmark brings."""
        bed.api.compact()
        later = threading.Timer(0.3, bed.api.bookmark)
        later.start()
        code, lines, errors = bed.verify()
        later.join()
        assert code == 0, (lines, errors)

    def test_a_version_that_is_gone_for_good(self, bed):
        bed.api.fault(verb="list", status=410, reason="Expired", times=None)
        try:
            code, lines, errors = bed.verify("--timeout", "2")
        finally:
            bed.api.clear_faults()
        assert code == 2 and not lines
        assert "does not know version" in errors and "not compared: services" in errors

    def test_a_server_that_lists_another_version(self, bed):
        """Kubernetes before 1.19 has no resourceVersionMatch: what it lists is newer."""
        old = bed.api.get(SLICES, "shop", "s7-1")
        new = objects.slice("shop", "s7-1", "s7", [objects.endpoint("127.8.9.9")])
        bed.api.put(new, lost=True)
        bed.api.fault(verb="list", as_of=bed.api.rv, times=None)
        try:
            code, lines, errors = bed.verify("--timeout", "4")
        finally:
            bed.api.clear_faults()
        assert code == 2 and [x["type"] for x in lines] == ["equal"], lines
        assert "no notice of resourceVersionMatch=Exact" in errors
        bed.api.put(old)
        bed.step()

    def test_an_older_state_of_what_is_gone(self, bed):
        """Requests are still sent there: a deletion was missed."""
        text = (
            b'{"metadata":{"name":"s8-1","namespace":"shop","uid":"%UID%",'
            b'"resourceVersion":"%RV%","labels":{"kubernetes.io/service-name":"s8"}},'
            b'"addressType":7,"endpoints":[],"ports":[]}'
        )
        old = bed.api.get(SLICES, "shop", "s8-1")
        uid = old["metadata"]["uid"].encode()
        bed.api.put_raw(SLICES, "shop", "s8-1", text.replace(b"%UID%", uid))
        bed.gateway.status.wait(
            lambda i: any(r["refused"] for r in i["resources"] if r["resource"] == SLICES)
        )
        assert bed.verify()[0] == 0
        bed.api.delete(SLICES, "shop", "s8-1", lost=True)
        bed.step()
        code, lines, errors = bed.verify()
        assert (code, errors) == (1, ""), lines
        (found,) = of(lines, "different")
        assert found["name"] == "s8-1" and found["held"] and found["server"] is None
        bed.api.put(old)
        bed.step()
        assert bed.verify()[0] == 0

    def test_a_stale_gateway(self, bed):
        """Equal at its version, which is long ago."""

        def change(_path, made):
            made["informers"][0].update(stale=True, age_seconds=123.4)

        with beside(bed, change) as where:
            code, _, errors = bed.verify(url_of=where)
        assert code == 0 and "stale" in errors and "123 seconds ago" in errors

    def test_one_that_loses_its_name_meanwhile(self, bed):
        """Refused, and named no more once the objects are read: that is no difference."""
        asked = []

        def change(path, made):
            if path.startswith("/api/v1/status"):
                (row,) = (
                    r for r in made["informers"][0]["resources"] if r["resource"] == "services"
                )
                row.update(digest="0" * 32, refused_unnamed=min(len(asked), 1))
                asked.append(path)
            else:
                made["items"] = [x for x in made["items"] if x["name"] != "s3"]

        with beside(bed, change) as where:
            code, lines, errors = bed.verify(url_of=where)
        assert (code, errors) == (0, ""), lines
        assert len(asked) > 2 and {x["type"] for x in lines} == {"equal"}

    def test_the_server_refuses(self, bed):
        bed.api.fault(verb="list", status=403, resource="services", times=None)
        try:
            code, lines, errors = bed.verify()
        finally:
            bed.api.clear_faults()
        assert code == 2 and [x["resource"] for x in lines] == [SLICES]
        assert "not compared: services in all namespaces: the server answered 403" in errors

    def test_another_cluster(self, bed):
        """Its versions are others."""
        with ApiServer(fresh_wait=0.1) as other:
            code, lines, errors = verify(
                url(bed.gateway), "--timeout", "2", server=other.url
            )
        assert code == 2 and not lines
        assert "is it the same cluster?" in errors

    @pytest.mark.parametrize(
        ("path", "args", "says"),
        [
            ("/nothing", (), "the answer is 404"),
            ("/kube", ("--informer", "other"), 'no kube_informer "other"'),
            (":1", (), "onnect"),
        ],
    )
    def test_no_gateway(self, bed, path, args, says):
        base = "http://127.0.0.1:1" if path == ":1" else url(bed.gateway)[: -len("/kube")] + path
        code, lines, errors = bed.verify("--timeout", "1", *args, url_of=base)
        assert code == 2 and not lines and says in errors, errors

    def test_no_status(self, bed):
        """JSON of another kind: the address is blamed, not a kube_informer block."""
        with beside(bed, lambda path, made: made.clear()) as where:
            code, lines, errors = bed.verify(url_of=where)
        assert code == 2 and not lines
        assert f"{where}: the answer is JSON, but no status" in errors

    def test_no_room_for_its_lines(self, bed):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(
                [PROGRAM, "--verify", url(bed.gateway), "--server", bed.api.url],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                timeout=60 * PATIENCE,
            )
        assert done.returncode == 2 and "No space left" in done.stderr, done.stderr

    @pytest.mark.parametrize("after", ["x", "-1", "12884901888", "99999999999999999999999"])
    def test_a_part_that_is_none(self, bed, after):
        answer = bed.gateway.status.get(f"/api/v1/objects?after={after}")
        assert answer.status == 400

    @pytest.mark.parametrize("after", ["4294967295", "8589934591", "12884901887", "4000000"])
    def test_a_part_of_another_zone(self, bed, after):
        """What would follow there is not what would follow here."""
        answer = bed.gateway.status.get(f"/api/v1/objects?after={after}")
        assert answer.status == 410 and "begin anew" in answer.text


@pytest.mark.parametrize(
    "args",
    [
        ("--replay", "x"),
        ("--record", "x", "--server", "http://127.0.0.1:1"),
        ("--namespace", "shop", "--server", "http://127.0.0.1:1"),
        ("--zone-size", "64m", "--server", "http://127.0.0.1:1"),
        ("--watch-list", "off", "--server", "http://127.0.0.1:1"),
        ("--endpoints", "slices", "--server", "http://127.0.0.1:1"),
        ("--pods", "--server", "http://127.0.0.1:1"),
        ("--encoding", "json", "--server", "http://127.0.0.1:1"),
        ("--until-synced", "--server", "http://127.0.0.1:1"),
        ("--digest", "--server", "http://127.0.0.1:1"),
    ],
    ids=lambda args: args[0],
)
def test_usage(args):
    """What would have no effect is refused by its name."""
    done = subprocess.run(
        [PROGRAM, "--verify", "x", *args], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and f"{args[0]} with --verify: " in done.stderr


def test_url_without_its_scheme():
    """It reads as the name of a file; that there is none says what a URL begins with."""
    code, _, errors = verify("127.0.0.1:8080/kube/", server="http://127.0.0.1:1")
    assert code == 2 and "No such file" in errors and "http://" in errors.split(";")[1]


def test_usage_without_verify():
    """The block of a gateway is no source of objects."""
    args = [PROGRAM, "--informer", "x", "--server", "http://127.0.0.1:1"]
    done = subprocess.run(args, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "--informer: without --verify" in done.stderr
