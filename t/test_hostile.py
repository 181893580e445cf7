# Keys from a hostile client: whatever it sends, it never reaches a namespace
# that was not allowed, and nothing crashes.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Hostile keys through kube_service $http_x_service."""

import re

import pytest
from client import raw
from cluster import Cluster
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nginx import wait_until

CONF = """
    large_client_header_buffers 4 16k;
    map $host $by_host { hostnames; default $host; "" ""; }
    upstream by_header { kube_service $http_x_service namespaces=shop,other; keepalive 4; }
    upstream by_dns { kube_service $http_x_service namespaces=shop,other form=dns; }
    upstream by_host { kube_service $by_host namespaces=shop,other form=dns; }
    upstream by_arg { kube_service $arg_s namespaces=shop,other; }
    upstream by_tail { kube_service shop/$http_x_service namespaces=shop,other; }
    server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://by_header; }
        location /dns { proxy_pass http://by_dns; }
        location /host { proxy_pass http://by_host; }
        location /arg { proxy_pass http://by_arg; }
        location /tail { proxy_pass http://by_tail; }
        location /resolve {
            kube_resolve $pod $http_x_service namespaces=shop,other;
            add_header X-Got "[$pod]" always;
            add_header X-Kube-Error $kube_error always;
            return 204;
        }
    }
"""

KEYS = [
    b"infra/secret",
    b"infra/secret:http",
    b"infra/secret:80",
    b"kube-system/kube-dns",
    b"default/kubernetes:443",
    b"../infra/secret",
    b"shop/../infra/secret",
    b"shop/../../infra/secret:80",
    b"shop%2f..%2finfra%2fsecret",
    b"infra%2fsecret",
    b"infra%2Fsecret",
    b"/infra/secret",
    b"//infra/secret",
    b"shop//secret",
    b"shop/infra/secret",
    b"infra\\secret",
    b"INFRA/SECRET",
    b"Infra/secret",
    b"shop,infra/secret",
    b"shop infra/secret",
    b"shop/web infra/secret",
    b"infra/secret shop/web",
    b"shop\tinfra/secret",
    b"infra/secret\x01",
    b"\x01\x02\x1b[31m/secret",
    b"shop\x7f/web",
    b"shop/web\xe2\x80\xae",
    b"\xff\xfe/secret",
    "ｉｎｆｒａ/secret".encode(),
    "infra\u2215secret".encode(),
    b"infra/secret:" + b"9" * 40,
    b"infra/secret:0",
    b"infra/secret:-1",
    b"infra/secret:http:http",
    b"infra/secret#shop/web",
    b"infra/secret?x=shop/web",
    b"infra/secret\\x00shop/web",
    b"*/secret",
    b"*/*",
    b"$namespace/secret",
    b"${shop}/secret",
    b"%s%n%s%n/secret",
    b"a" * 7168,
    b"a/" * 3584,
    b"infra/" + b"s" * 7000,
    b"shop/" + b"s" * 64,
    b"n" * 64 + b"/secret",
    b"-infra/secret",
    b"infra-/secret",
    b"127.0.0.1:80",
    b"127.0.0.1/80",
    b"[::1]:80",
    b"http://infra/secret",
    b"secret.infra",
    b"secret.infra.svc.cluster.local",
    b"secret.infra.svc:80",
    b".infra/secret",
    b"infra./secret",
    b":80",
    b"/",
    b"/:",
    b".",
    b"..",
    b":",
    b"",
    b" ",
]


@pytest.fixture(scope="module")
def world():
    """One gateway for all: what one key breaks, the next ones show."""
    with Cluster() as cluster:
        cluster.service("shop", "web")
        secret = cluster.service("infra", "secret")[0]
        for ns, name in (("kube-system", "kube-dns"), ("default", "kubernetes")):
            cluster.service(ns, name, pods=[secret])
        gateway = cluster.nginx(CONF, workers=1)
        gateway.secret = secret
        yield gateway


def send(gateway, path, key, host=b"h"):
    """The raw answer to a request with that key."""
    return raw(
        gateway.port,
        b"GET " + path + b" HTTP/1.1\r\nHost: " + host + b"\r\nX-Service: " + key
        + b"\r\nConnection: close\r\n\r\n",
    )


def status_of(answer):
    """The status in a raw answer."""
    match = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    assert match, answer[:200]
    return int(match[1])


def harmless(gateway, answer, allowed=(400, 502)):
    """It was refused, and the secret's backend has seen nothing."""
    assert gateway.secret.requests == 0
    assert status_of(answer) in allowed, answer[:300]
    assert b"X-Backend" not in answer


PATHS = [b"/", b"/dns", b"/resolve"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("key", KEYS, ids=[repr(k)[2:-1][:40] for k in KEYS])
def test_key(world, key, path):
    answer = send(world, path, key)
    if path == b"/resolve":
        harmless(world, answer, (204, 400))
        assert status_of(answer) == 400 or b"X-Got: []" in answer
    else:
        harmless(world, answer)
    if status_of(answer) != 400:
        reason = re.search(rb"X-Kube-Error: (\w+)", answer)[1].decode()
        assert reason in ("no_key", "bad_key", "namespace_denied", "no_service", "no_port")


@pytest.mark.parametrize(
    "host",
    [
        b"../x",
        b"infra/secret",
        b"secret.infra",
        b"secret.infra.svc",
        b"SECRET.INFRA",
        b"secret.infra.",
        b"secret..infra",
        b"x" * 7000,
        b"127.0.0.1",
        b"[::1]",
    ],
    ids=lambda h: repr(h)[2:30],
)
def test_host(world, host):
    harmless(world, send(world, b"/host", b"x", host))


@pytest.mark.parametrize(
    "query",
    [b"infra/secret", b"infra%2Fsecret", b"shop/web%00", b"shop%2Fweb&s=infra/secret", b"%"],
)
def test_argument(world, query):
    harmless(world, send(world, b"/arg?s=" + query, b"x"))


def test_several_headers(world):
    harmless(world, send(world, b"/", b"infra/secret\r\nX-Service: shop/web"))


def test_prefix_of_ours_and_tail_of_theirs(world):
    for tail in (b"../infra/secret", b"web/../../infra/secret", b"", b"web/x"):
        harmless(world, send(world, b"/tail", tail))
    assert status_of(send(world, b"/tail", b"web")) == 200


def test_good_keys_work_all_along(world):
    for path in (b"/", b"/dns"):
        answer = send(world, path, b"shop/web:80")
        assert status_of(answer) == 200 and b"X-Backend: shop.web-1" in answer


def test_log_is_clean_and_limited(world):
    """No control byte of a key is in the log, and no line for each request."""
    for _ in range(60):
        send(world, b"/", b"\x1b[31mshop\x01/secret")
    wait_until(lambda: world.grep_log(r"bad_key"))
    with open(world.path("error.log"), "rb") as f:
        log = f.read()
    ours = [line for line in log.split(b"\n") if b"kube" in line]
    assert not any(re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", line) for line in ours)
    assert len([line for line in ours if b"bad_key" in line]) < 40
    # where nginx cuts a line: 2048, in OpenResty 4096
    assert max(len(line) for line in ours) <= 4096


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.one_of(
        st.binary(max_size=400),
        st.text("infrasecretshopweb/:.%-_0189 ", max_size=80).map(str.encode),
        st.lists(st.sampled_from([k for k in KEYS if len(k) < 60]), max_size=4).map(b"".join),
    )
)
def test_any_key(world, key):
    """For every input: the secret is not reached, and an answer comes."""
    key = key.replace(b"\r", b"").replace(b"\n", b"")
    for path in PATHS:
        answer = send(world, path, key)
        assert world.secret.requests == 0
        code = status_of(answer)
        assert code in (200, 204, 400, 502)
        if code == 200:
            assert b"X-Backend: shop.web-1" in answer


def test_worker_is_still_the_first(world):
    assert not world.grep_log("exited on signal")
    assert len(world.grep_log("start worker process [0-9]+$")) == 1
