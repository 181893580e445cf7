# Configuration: what cannot work fails "nginx -t" with file, line and a remedy;
# what can work passes, in any order.  Nothing here needs an API server.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""nginx -t, on good and bad files."""

import os
import re

import pytest
from cluster import root
from nginx import BAD, full_conf, load_modules, nginx_t, user_line

API = "api https://192.0.2.1:6443;"
BLOCK = "kube_informer {\n    zone kube 1m;\n    " + API + "\n    state_path off;\n    %s\n}\n"

KUBECONFIG = """apiVersion: v1
kind: Config
current-context: dev
clusters:
- name: dev
  cluster:
    server: https://192.0.2.1:6443
users:
- name: dev
  user:
    token: abc
contexts:
- name: dev
  context: {cluster: dev, user: dev}
"""


def in_block(text):
    """A configuration with lines in the block."""
    return full_conf("", main=BLOCK % text)


def in_upstream(text, block=""):
    """... with lines in an upstream that is used."""
    return full_conf(
        "    upstream web {\n%s\n    }\n"
        "    server { listen 127.0.0.1:18999; location / { proxy_pass http://web; } }\n" % text,
        main=BLOCK % block,
    )


def in_location(text):
    """... with lines in a location."""
    return full_conf(
        "    server { listen 127.0.0.1:18999; location / {\n%s\n} }\n" % text, main=BLOCK % ""
    )


def line_of(conf, text):
    """The number of the line that holds the text."""
    for number, line in enumerate(conf.splitlines(), 1):
        if text in line:
            return number
    raise AssertionError(f"{text!r} is not in the file")


def refused(conf, at, says, files=(), env=None):
    """nginx -t fails at the line that holds 'at', in words that match."""
    code, told = nginx_t(conf, files, env)
    assert code == 1, told
    emerg = [line for line in told.splitlines() if "[emerg]" in line]
    assert emerg, told
    assert not re.search(r"\[alert\]|Sanitizer|runtime error", told), told
    assert re.search(says, emerg[0]), f"{emerg[0]!r} does not say {says!r}"
    if at is not None:
        place = re.search(r"(\S+nginx\.conf):(\d+)", emerg[0])
        assert place, f"no file and line in {emerg[0]!r}"
        lines = at if isinstance(at, tuple) else (line_of(conf, at),)
        assert int(place[2]) in lines, f"{emerg[0]!r}: expected line {lines}"
    return emerg[0]


def accepted(conf, files=(), env=None):
    """nginx -t passes without a bad word."""
    code, told = nginx_t(conf, files, env)
    assert code == 0, told
    assert not BAD.search(told), told
    return told


# Directives of the block: (lines, what the message says)

BLOCK_ERRORS = [
    ("nonsense on;", r'unknown directive "nonsense"'),
    ("server 127.0.0.1;", r'"server" directive is not allowed here'),
    ("field_selector a=b;", r'unknown directive "field_selector".*remove'),
    ("resync 10m;", r'unknown directive "resync"'),
    ("max_stale 1h;", r'unknown directive "max_stale"'),
    ("topology_node a;", r'unknown directive "topology_node"'),
    ("topology_zone a;", r'unknown directive "topology_zone"'),
    ("endpoints;", r"number of arguments"),
    ("endpoints pods;", r'invalid value "pods".*"slices"'),
    ("endpoints auto; endpoints slices;", r"duplicate"),
    ("watch_list;", r"number of arguments"),
    ("watch_list maybe;", r'invalid value "maybe".*"auto", "on", "off"'),
    ("watch_list on; watch_list off;", r"duplicate"),
    ("encoding;", r"number of arguments"),
    ("encoding yaml;", r'invalid value "yaml".*"json", "protobuf"'),
    ("encoding json; encoding auto;", r"duplicate"),
    ("page_size many;", r"invalid page_size.*from 0"),
    ("page_size -1;", r"invalid page_size.*from 0"),
    ("page_size 100001;", r"invalid page_size.*100000"),
    ("page_size 5; page_size 6;", r"duplicate"),
    ("page_size;", r"number of arguments"),
    ("page_size 5 6;", r"number of arguments"),
    ("watch_timeout 10x;", r'invalid time "10x".*from'),
    ("watch_timeout 1ms;", r"invalid time.*from"),
    ("watch_timeout 25h;", r"invalid time.*from"),
    ("connect_timeout 0;", r"invalid time.*from"),
    ("connect_timeout 2m;", r"invalid time.*from"),
    ("idle_timeout -5s;", r"invalid time.*from"),
    ("idle_timeout 5s; idle_timeout 5s;", r"duplicate"),
    ("backoff 1s;", r"number of arguments"),
    ("backoff 2s 1s;", r"invalid backoff.*first max"),
    ("backoff 0 1s;", r"invalid backoff"),
    ("backoff 1s 2s unreachable=100ms;", r"invalid backoff.*unreachable"),
    ("backoff 5s 60s;", r'"unreachable=4000ms", the default, .*add "unreachable=5s"'),
    ("backoff 1s 2s reach=1s;", r'invalid parameter "reach=1s".*unreachable='),
    ("max_object 1k;", r"invalid max_object.*from 4k to 64m"),
    ("max_object 65m;", r"invalid max_object.*from 4k to 64m"),
    ("max_object big;", r"invalid max_object"),
    ("allow_address 10.0.0.0/33;", r'invalid address range "10.0.0.0/33".*expected'),
    ("allow_address 10.0.0/8;", r"invalid address range.*expected"),
    ("allow_address example.com;", r"invalid address range.*expected"),
    ("deny_address fd00::/129;", r"invalid address range.*expected"),
    ("deny_address 1.2.3.4.5;", r"invalid address range.*expected"),
    ("namespaces Shop;", r'invalid namespace "Shop".*lower case'),
    ("namespaces ../x;", r"invalid namespace"),
    ("namespaces a b a;", r'"a" is named twice'),
    ("namespaces all shop;", r"all"),
    ("namespaces auto shop;", r"auto"),
    ("namespaces a; namespaces b;", r"duplicate"),
    ("namespaces auto; namespaces b;", r"duplicate"),
    ("namespaces auto; namespaces auto;", r"duplicate"),
    ("namespaces all; namespaces auto;", r"duplicate"),
    ("namespaces " + " ".join(f"n{i}" for i in range(65)) + ";", r"more than 64"),
    ("namespaces " + "n" * 64 + ";", r"invalid namespace.*63 of them at most"),
    ('label_selector "";', r"empty"),
    ("label_selector services;", r"expression is missing"),
    ("label_selector pods a=b;", r'unknown resource "pods".*services'),
    ('label_selector "a=b\tc";', r"byte"),
    ("label_selector a=b; label_selector services a=b;", r"duplicate"),
    ("state_max_age 0;", r"invalid time"),
    ("zone_share 0;", r"invalid zone_share.*from 1 to 100"),
    ("zone_share 50%;", r"invalid zone_share"),
    ("max_outdated 25h;", r"invalid time.*24h"),
    ("max_outdated 1m; max_outdated 2m;", r"duplicate"),
    ("state_path a; state_path b;", r"duplicate"),
    ("tls_verify maybe;", r'must be "on" or "off"'),
    ("tls_verify off; tls_verify on;", r"duplicate"),
    ("token_file /etc;", r"is a directory"),
    ("tls_server_name bad_name!;", r"invalid host name"),
    ("client_certificate c.pem;", r"client_certificate_key|key"),
    ("client_certificate_key c.pem;", r"client_certificate|certificate"),
]


@pytest.mark.parametrize("lines, says", BLOCK_ERRORS, ids=[e[0][:40] for e in BLOCK_ERRORS])
def test_block(lines, says):
    conf = in_block(lines)
    place = line_of(conf, lines.splitlines()[0])
    # what only the whole block shows is told at its end
    end = place + 1 if "certificate" in lines else place
    refused(conf, tuple(range(place, end + 1)), says)


API_ERRORS = [
    ("api http://192.0.2.1:6443;", r"https://"),
    ("api http://example.com;", r"https://"),
    ("api ftp://example.com;", r"https://"),
    ("api example.com;", r"https://"),
    ("api https://;", r"host|https://"),
    ("api https://h:0;", r"port"),
    ("api https://h:65536;", r"port"),
    ("api https://u:p@h;", r"user"),
    ("api https://h/?x=1;", r"query|path"),
    ("api https://h/#f;", r"fragment|path"),
    ("api https://[::1;", r"bracket"),
    ("api https://h " + API, r"duplicate|expected"),
    ("api in_cluster more;", r"no more arguments"),
    ("api kubeconfig=missing.yaml;", r"missing\.yaml"),
    ("api kubeconfig=good.yaml other=1;", r'"other=1".*context='),
    ("api kubeconfig=good.yaml context=prod;", r"context"),
    ("api;", r"number of arguments"),
]


@pytest.mark.parametrize("line, says", API_ERRORS, ids=[e[0][:40] for e in API_ERRORS])
def test_api(line, says):
    conf = full_conf("", main="kube_informer {\n    state_path off;\n    %s\n}\n" % line)
    place = line_of(conf, line)
    refused(conf, (place, place + 1), says, {"good.yaml": KUBECONFIG})


def test_api_twice():
    conf = in_block("api https://192.0.2.2;")
    refused(conf, "192.0.2.2", r"duplicate.*one")


KUBECONFIG_ERRORS = [
    ("not yaml", "a: [b", r"YAML|yaml|parse|expected|kubeconfig"),
    ("empty", "", r"kubeconfig"),
    ("no context", KUBECONFIG.replace("current-context: dev\n", ""), r"context"),
    ("unknown cluster", KUBECONFIG.replace("{cluster: dev,", "{cluster: x,"), r"cluster"),
    ("unknown user", KUBECONFIG.replace("user: dev}", "user: x}"), r"user"),
    ("no server", KUBECONFIG.replace("    server: https://192.0.2.1:6443\n", ""), r"cluster"),
    ("http", KUBECONFIG.replace("https://", "http://"), r"https://"),
    ("exec", KUBECONFIG.replace("token: abc", "exec: {command: x}"), r"exec"),
    (
        "auth-provider",
        KUBECONFIG.replace("token: abc", "auth-provider: {name: x}"),
        r"auth-provider",
    ),
    ("password", KUBECONFIG.replace("token: abc", "username: x"), r"username|password"),
    (
        "certificate alone",
        KUBECONFIG.replace("token: abc", "client-certificate: c.pem"),
        r"key",
    ),
    (
        "bad base64",
        KUBECONFIG.replace("token: abc", "client-key-data: '!!'"),
        r"base64",
    ),
    (
        "insecure with a CA",
        KUBECONFIG.replace(
            "    server:",
            "    insecure-skip-tls-verify: true\n    certificate-authority: ca\n    server:",
        ),
        r"insecure|CA|verif",
    ),
]


@pytest.mark.parametrize(
    "text, says", [e[1:] for e in KUBECONFIG_ERRORS], ids=[e[0] for e in KUBECONFIG_ERRORS]
)
def test_kubeconfig(text, says):
    conf = full_conf("", main="kube_informer {\n    api kubeconfig=k.yaml;\n}\n")
    place = line_of(conf, "api kubeconfig")
    message = refused(conf, (place, place + 1), says, {"k.yaml": text})
    assert "k.yaml" in message


@pytest.mark.parametrize(
    "text, at",
    [
        (KUBECONFIG.replace("  user:\n", "\tuser:\n"), "\tuser:"),
        (KUBECONFIG + "users: []\n", "users: []"),
        (KUBECONFIG.replace("token: abc", "client-key-data: '!!'"), "client-key-data"),
    ],
    ids=["not yaml", "twice", "bad base64"],
)
def test_line_of_a_kubeconfig(text, at):
    """The end of the message is nginx.conf's line: "stands here twice" is another place."""
    conf = full_conf("", main="kube_informer {\n    api kubeconfig=k.yaml;\n}\n")
    says = rf'k\.yaml".*: line {line_of(text, at)}: \w'
    refused(conf, "api kubeconfig", says, {"k.yaml": text})


def test_credentials_beside_kubeconfig():
    conf = full_conf(
        "", main="kube_informer {\n    api kubeconfig=good.yaml;\n    ca_file ca.pem;\n}\n"
    )
    refused(conf, None, r"belong into the kubeconfig", {"good.yaml": KUBECONFIG, "ca.pem": ""})


def test_in_cluster_outside():
    conf = full_conf("", main="kube_informer {\n    api in_cluster;\n}\n")
    env = {"KUBERNETES_SERVICE_HOST": "", "KUBERNETES_SERVICE_PORT": ""}
    refused(conf, None, r"in_cluster.*KUBERNETES_SERVICE.*kubeconfig=", env=env)
    conf = full_conf("", main="kube_informer { }\n")
    refused(conf, None, r"in_cluster", env=env)


IN_CLUSTER = [
    "token_file token;",
    "ca_file ca.pem;",
    "client_certificate c.pem; client_certificate_key c.key;",
    "tls_server_name api.example.com;",
    "tls_verify off;",
]


@pytest.mark.parametrize("api", ["api in_cluster; ", ""], ids=["in_cluster", "no api"])
@pytest.mark.parametrize("line", IN_CLUSTER)
def test_credentials_beside_in_cluster(line, api):
    """They would not be used: the account's files are."""
    conf = full_conf("", main="kube_informer {\n    %s%s\n}\n" % (api, line))
    env = {"KUBERNETES_SERVICE_HOST": "192.0.2.1", "KUBERNETES_SERVICE_PORT": "443"}
    refused(conf, None, r"need .api https://.*in_cluster.*service account", env=env)


def test_in_cluster_bad_port():
    conf = full_conf("", main="kube_informer {\n    api in_cluster;\n}\n")
    env = {"KUBERNETES_SERVICE_HOST": "192.0.2.1", "KUBERNETES_SERVICE_PORT": "https"}
    refused(conf, None, r"port|PORT", env=env)


ZONE_ERRORS = [
    ("zone kube 64k;", r"invalid zone size.*from 128k"),
    ("zone kube big;", r"invalid zone size.*from"),
    ("zone kube 5g;", r"invalid zone size"),
    ('zone "" 1m;', r"needs a name"),
    ("zone 8m;", r'"8m" is a size.*zone name size'),
    ("zone kube:8m;", r'"kube:8m" would be the name.*zone name size'),
    ("zone kube=8m;", r'"kube=8m" would be the name.*zone name size'),
    ("zone kube 1m; zone kube 1m;", r"duplicate"),
    ("zone;", r"number of arguments"),
    ("zone a 1m b;", r"number of arguments"),
]


@pytest.mark.parametrize("line, says", ZONE_ERRORS, ids=[e[0] for e in ZONE_ERRORS])
def test_zone(line, says):
    conf = full_conf("", main="kube_informer {\n    %s\n    %s\n}\n" % (API, line))
    refused(conf, line, says)


@pytest.mark.parametrize("count", [8, 20, 64])
def test_zone_for_namespaces(count):
    """Each scope has its place in the zone; what the message names is enough."""

    def conf(size):
        names = " ".join(f"n{i}" for i in range(count))
        text = "    zone kube %s;\n    %s\n    state_path off;\n    namespaces %s;\n"
        return full_conf("", main="kube_informer {\n%s}\n" % (text % (size, API, names)))

    says = rf"no room for {count} namespaces: give it \d+k"
    message = refused(conf("128k"), "kube_informer", says)
    accepted(conf(re.search(r"\d+k", message.rpartition(":")[2])[0]))


# The block as a whole


def two(first, second):
    """Two blocks."""
    return full_conf(
        "",
        main="".join("kube_informer %s {\n    %s\n}\n" % (n, API + t) for n, t in (first, second)),
    )


def test_two_blocks_of_one_name():
    refused(two(("", ""), ("", "")), None, r'duplicate kube_informer "default".*name')
    refused(two(("a", ""), ("a", "")), None, r'duplicate kube_informer "a"')


def test_two_blocks_of_one_zone():
    conf = two(("a", " zone same 1m;"), ("b", " zone same 1m;"))
    refused(conf, None, r'zone "same".*belongs')


def test_bad_name_of_a_block():
    conf = full_conf("", main="kube_informer Bad_Name {\n    %s\n}\n" % API)
    refused(conf, "Bad_Name", r"invalid kube_informer name.*lower")
    conf = full_conf("", main="kube_informer %s {\n    %s\n}\n" % ("n" * 64, API))
    refused(conf, "nnn", r"invalid kube_informer name.*63 of them at most")


def test_block_in_http():
    conf = full_conf("    kube_informer { %s }\n" % API)
    refused(conf, "kube_informer", r'"kube_informer" directive is not allowed here')


def test_block_not_closed():
    conf = full_conf(None, main="kube_informer {\n    %s\n" % API)
    refused(conf, None, r'unexpected end of file, expecting "}"')


# kube_service

SERVICE_ERRORS = [
    ("kube_service;", r"number of arguments"),
    ('kube_service "";', r"key|empty"),
    ("kube_service shop;", r"namespace/service"),
    ("kube_service Shop/web;", r"lower case|upper|letter|label|invalid"),
    ("kube_service shop/Web;", r"lower case|upper|letter|label|invalid"),
    ("kube_service shop/../x;", r"invalid|label|name"),
    ("kube_service ../x;", r"invalid|label|namespace"),
    ("kube_service shop/web/x;", r"invalid|label|name|slash"),
    ("kube_service shop%2fweb;", r"invalid|namespace/service"),
    ("kube_service shop/;", r"invalid|name"),
    ("kube_service /web;", r"invalid|namespace"),
    ("kube_service shop/" + "n" * 64 + ";", r"invalid service name.*lower case.*63 of them"),
    ("kube_service " + "n" * 64 + "/web;", r"invalid namespace.*lower case.*63 of them"),
    ("kube_service shop/web:;", r"port"),
    ("kube_service shop/web:0;", r"port.*(1|65535)"),
    ("kube_service shop/web:65536;", r"port.*65535"),
    ("kube_service shop/web:080;", r"port"),
    ("kube_service shop/web:http:80;", r"port"),
    ("kube_service shop/web:HTTP;", r"port"),
    ("kube_service shop/w\u00e9b;", r"invalid|label|name"),
    ("kube_service 'shop/web ';", r"invalid|label|name"),
    ("kube_service .;", r"invalid|namespace/service"),
    ("kube_service web.;", r"invalid|namespace"),
    ("kube_service shop/web nonsense=1;", r'"nonsense=1"'),
    ("kube_service shop/web nonsense;", r'"nonsense"'),
    ("kube_service shop/web informer=none;", r'"none".*kube_informer.*"informer="'),
    ("kube_service shop/web informer=;", r"informer="),
    ("kube_service shop/web form=other;", r"form="),
    ("kube_service shop/web family=ipx;", r"family.*ipv4"),
    ("kube_service shop/web terminating=maybe;", r"terminating.*fallback"),
    ("kube_service shop/web unsynced=maybe;", r"unsynced"),
    ("kube_service shop/web weight=0;", r"weight"),
    ("kube_service shop/web weight=x;", r"weight"),
    ("kube_service shop/web max_fails=-1;", r"max_fails"),
    ("kube_service shop/web fail_timeout=x;", r"fail_timeout"),
    ("kube_service shop/web max_conns=x;", r"max_conns"),
    ("kube_service shop/web namespaces=Shop;", r"namespace"),
    ("kube_service shop/web services=a*;", r'"services=a\*"'),
    ("kube_service shop/web require_label=a;", r'"require_label=a"'),
    ("kube_service shop/web topology=auto;", r'"topology=auto"'),
    ("kube_service shop/web empty=hold;", r'"empty=hold"'),
    ("kube_service shop/web unsynced=cluster_ip;", r"unsynced=cluster_ip"),
    ("kube_service shop/web backup;", r'"backup"'),
    ("kube_service $host;", r"namespaces="),
    ("kube_service $host namespaces=;", r"namespaces="),
    ("kube_service $host namespaces=shop,;", r"namespace"),
    ("kube_service $host namespaces=shop,infra,shop;", r"named twice"),
    ("kube_service $host namespaces=all;", r"each namespace has to be named"),
    ("kube_service $host namespaces=shop,auto;", r"each namespace has to be named"),
]


@pytest.mark.parametrize("line, says", SERVICE_ERRORS, ids=[e[0][:50] for e in SERVICE_ERRORS])
def test_service(line, says):
    conf = in_upstream("        " + line)
    refused(conf, line.splitlines()[0], says)


def test_two_service_lines():
    conf = in_upstream("kube_service shop/web;\nkube_service shop/api; # second")
    refused(conf, "# second", r"kube_service.*(one|second|duplicate)")


def test_zone_in_the_same_block():
    for order in ("kube_service shop/web;\nzone z 64k;", "zone z 64k;\nkube_service shop/web;"):
        refused(in_upstream(order), None, r"zone.*(remove|cannot|kube_service)")


def test_no_informer():
    conf = in_upstream("kube_service shop/web;").replace(BLOCK % "", "")
    refused(conf, "kube_service", r"kube_informer")


def test_namespaces_not_watched():
    conf = in_upstream("kube_service $host namespaces=shop,infra;", "namespaces shop;")
    refused(conf, "kube_service", r"namespaces.*infra")


@pytest.mark.parametrize(
    "count, block, warned",
    [(8, "", False), (9, "", True), (9, "namespaces all;", False)],
)
def test_more_namespaces_than_auto_names(count, block, warned):
    """The ninth takes a ClusterRole: without one nothing is followed after the reload."""
    text = "".join("upstream u%d { kube_service n%d/web; }\n" % (i, i) for i in range(count))
    told = accepted(full_conf(text, main=BLOCK % block))
    words = r'"default": keys name more than 8 namespaces.*ClusterRole.*"namespaces"'
    assert bool(re.search(rf"\[warn\].*{words}", told)) == warned, told


def test_static_key_of_a_namespace_not_watched():
    conf = in_upstream("kube_service infra/web;", "namespaces shop;")
    refused(conf, "kube_service", r"namespace .infra. of .* not watched: add it to .namespaces")


def test_unknown_variable():
    """nginx itself finds it, at the end of http {}, and names no line."""
    conf = in_upstream("kube_service $nonexistent namespaces=shop;")
    refused(conf, None, r'unknown "nonexistent" variable')


def test_service_outside_of_upstream():
    conf = in_location("kube_service shop/web;")
    refused(conf, "kube_service", r'"kube_service" directive is not allowed here')


NOT_BUILT = [
    "kube_balance p2c;",
    "kube_slow_start 10s;",
    "kube_affinity on;",
]


@pytest.mark.parametrize("line", NOT_BUILT)
def test_not_built(line):
    refused(in_upstream("kube_service shop/web;\n" + line), line, r"unknown directive")


RESOLVE_ERRORS = [
    ("kube_resolve $pod;", r"number of arguments"),
    ("kube_resolve pod shop/web;", r'variable.*"pod"|"pod".*variable|\$'),
    ("kube_resolve $ shop/web;", r"variable"),
    ("kube_resolve $pod shop;", r"namespace/service"),
    ("kube_resolve $pod shop/web:0;", r"port"),
    ("kube_resolve $pod $host;", r"namespaces="),
    ("kube_resolve $pod shop/web nonsense=1;", r'"nonsense=1"'),
    ("kube_resolve $pod shop/web informer=none;", r'"none".*kube_informer'),
    ("kube_resolve $pod shop/web weight=2;", r'"weight=2"'),
    ("kube_resolve $host shop/web;", r'"host"'),
    ("kube_resolve $1 shop/web;", r"invalid variable"),
    ("kube_resolve $a shop/web; kube_resolve $a shop/api;", r"kube_resolve \$a.*duplicate"),
]


@pytest.mark.parametrize("line, says", RESOLVE_ERRORS, ids=[e[0] for e in RESOLVE_ERRORS])
def test_resolve(line, says):
    refused(in_location(line), line, says)


STATUS_ERRORS = [
    ("kube_status pages;", r'"pages"'),
    ("kube_status event;", r"invalid value \"event\""),
    ("kube_status on;", r'"on" of kube_status: expected "page".* "events"'),
    ("kube_status page on;", r'"on" of kube_status: expected'),
    ("kube_status; kube_status;", r"duplicate"),
    ("kube_ready nonsense;", r'"nonsense"'),
    ("kube_ready informer=none;", r'"none".*kube_informer'),
    ("kube_ready max_age=x;", r"max_age"),
    ("kube_ready; kube_ready;", r"duplicate"),
    ("kube_ready strict strict;", r'duplicate parameter "strict"'),
    ("kube_ready strict s;", r'invalid parameter "s"'),
    ("kube_ready allow_state strict allow_state;", r'duplicate parameter "allow_state"'),
    ("kube_ready max_age=5m max_age=6m;", r'duplicate parameter "max_age=6m"'),
    ("kube_ready informer=default informer=other;", r'duplicate parameter "informer=other"'),
]


@pytest.mark.parametrize("line, says", STATUS_ERRORS, ids=[e[0] for e in STATUS_ERRORS])
def test_status(line, says):
    refused(in_location(line), line, says)


INSTANCES_ERRORS = [
    ("kube_instances;", r"number of arguments"),
    ("kube_instances 32m;", r'"32m"'),
    ("kube_instances size=;", r"size="),
    ("kube_instances size=lots;", r"size="),
    ("kube_instances size=1023k;", r"1m"),
    ("kube_instances size=4m; kube_instances size=4m;", r"duplicate"),
]


@pytest.mark.parametrize("line, says", INSTANCES_ERRORS, ids=[e[0] for e in INSTANCES_ERRORS])
def test_instances(line, says):
    refused(full_conf(line, main=BLOCK % ""), line, says)


def test_load_order():
    """http before core is told by nginx itself; it must not crash."""
    lines = load_modules().splitlines()
    if not lines:
        pytest.skip("the modules are linked in")
    conf = full_conf("", main=BLOCK % "").replace("\n".join(lines), "\n".join(lines[::-1]))
    code, told = nginx_t(conf)
    assert code == 1 and "undefined symbol" in told


# Good ones

ORDERS = [
    "least_conn; kube_service shop/web; keepalive 8;",
    "kube_service shop/web; least_conn; keepalive 8;",
    "kube_service shop/web; keepalive 8; least_conn;",
    "keepalive 8; kube_service shop/web;",
    "hash $uri consistent; kube_service shop/web;",
    "kube_service shop/web; hash $uri;",
    "kube_service shop/web; ip_hash;",
    "random two least_conn; kube_service shop/web;",
    "kube_service shop/web; random;",
    "server 192.0.2.7; kube_service shop/web;",
    "kube_service shop/web; server 192.0.2.7 backup; keepalive 4; keepalive_timeout 5s;",
]


@pytest.mark.parametrize("lines", ORDERS)
def test_order_in_upstream(lines):
    told = accepted(in_upstream(lines))
    assert not re.search(r"redefined", told) or "keepalive 8; least_conn" in lines, told


def test_block_after_http():
    conf = in_upstream("kube_service shop/web;").replace(BLOCK % "", "") + BLOCK % ""
    accepted(conf)


def test_block_in_an_included_file():
    conf = full_conf("", main="include block.conf;\n")
    accepted(conf, {"block.conf": BLOCK % "include more.conf;", "more.conf": "page_size 7;\n"})


def test_every_directive():
    accepted(
        full_conf(
            "    server { listen 127.0.0.1:18999; location / { return 204; } }\n",
            main="""
kube_informer main {
    zone kube 2m;
    api https://192.0.2.1:6443 https://[2001:db8::1]/prefix https://api.example.com;
    token_file token;
    ca_file ca.pem;
    client_certificate cert.pem;
    client_certificate_key key.pem;
    tls_server_name kubernetes.default.svc;
    namespaces shop infra;
    label_selector services "tier in (a, b),!c";
    label_selector endpointslices a=b;
    page_size 0;
    watch_timeout 5m;
    connect_timeout 3s;
    idle_timeout 90s;
    backoff 800ms 30s unreachable=4s;
    max_object 4m;
    allow_address 10.0.0.0/8 fd00::/8;
    deny_address 10.1.2.3;
    state_path off;
    state_max_age 1h;
}
""",
        )
    )


def test_unverified_warns():
    told = accepted(in_block("tls_verify off;"))
    assert re.search(r"\[warn\].*tls_verify is off", told)


def test_missing_credential_files_only_warn():
    told = accepted(in_block("token_file nowhere; ca_file nowhere.pem;"))
    assert told.count("cannot be found now") == 2


@pytest.mark.skipif(not root(), reason="needs root")
@pytest.mark.parametrize("owner, mode, warned", [(1, 0o700, True), (1, 0o777, False)])
def test_state_path_of_another_user_warns(public_path, owner, mode, warned):
    """As after a change of "user": what stands there stays its maker's."""
    state = public_path / "kube"
    state.mkdir()
    os.chown(state, owner, 0)
    state.chmod(mode)
    block = "kube_informer { %s state_path %s; }\n" % (API, state)
    told = accepted(full_conf("", main=block))
    words = rf'"{state}" belongs to uid 1, .*as user "nobody": give that user.*"state_path"'
    assert bool(re.search(rf"\[warn\].*{words}", told)) == warned, told
    assert state.stat().st_uid == owner


def test_meaningless_bits_warn():
    assert "low address bits" in accepted(in_block("allow_address 10.1.0.0/8;"))


@pytest.mark.parametrize(
    "network, special",
    [("0.0.0.0/0", "loopback"), ("::/0", "loopback"), ("168.0.0.0/7", "link-local")],
)
def test_network_wider_than_a_special_one_warns(network, special):
    told = accepted(in_block(f"allow_address {network};"))
    assert re.search(rf'"allow_address {network}" does not permit {special}.*name those', told)


@pytest.mark.parametrize(
    "line, block, warned",
    [
        ("kube_ready max_age=119s;", "", "use 120 s or more"),
        ("kube_ready informer=default max_age=1s;", "idle_timeout 1s;", "use 31 s or more"),
        ("kube_ready max_age=31s;", "idle_timeout 1s;", None),
        ("kube_ready max_age=120s;", "", None),
    ],
)
def test_max_age_that_a_quiet_cluster_exceeds(line, block, warned):
    """It is an alert at best; as a readiness probe it takes all gateways away."""
    told = accepted(full_conf("server { location / { %s } }" % line, main=BLOCK % block))
    if warned:
        assert re.search(rf'"max_age" of kube_ready in .*:\d+.*"default".*{warned}', told), told
    else:
        assert "max_age" not in told


def test_max_age_of_one_informer_alone():
    """The quiet cluster of another one is none of it."""
    other = BLOCK.replace("informer {", "informer other {").replace("zone kube", "zone other")
    text = "server { location / { kube_ready informer=default max_age=120s; } }"
    assert "max_age" not in accepted(full_conf(text, main=BLOCK % "" + other % "idle_timeout 10m;"))


@pytest.mark.parametrize("line", ["allow_address 10.0.0.0/8 127.0.0.0/8;", "deny_address ::/0;"])
def test_network_that_says_what_it_means(line):
    assert "permit" not in accepted(in_block(line))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8001", "http://[::1]:8001", "http://localhost", "http://unix:/x.sock"]
)
def test_plain_http_to_loopback(url):
    accepted(full_conf("", main="kube_informer { api %s; state_path off; }\n" % url))


def test_kubeconfig_passes_and_shows_no_secret():
    conf = full_conf("", main="kube_informer { api kubeconfig=k.yaml context=dev; }\n")
    told = accepted(conf, {"k.yaml": KUBECONFIG.replace("abc", "s3cr3t-t0k3n")})
    assert "s3cr3t" not in told
    broken = KUBECONFIG.replace("abc", "s3cr3t-t0k3n").replace("user: dev}", "user: x}")
    assert "s3cr3t" not in nginx_t(conf, {"k.yaml": broken})[1]


def test_kubeconfig_that_all_may_read():
    """Said of a token or key that stands in it, not of the files that it names."""
    conf = full_conf("", main="kube_informer { api kubeconfig=k.yaml; }\n")
    named = KUBECONFIG.replace("token: abc", "tokenFile: t")
    for text, warns in ((KUBECONFIG, True), (named, False)):
        old = os.umask(0o022)
        try:
            told = accepted(conf, {"k.yaml": text})
        finally:
            os.umask(old)
        said = re.search(r'\[warn\].*kubeconfig "\S+k\.yaml".*all users.*chmod o-r', told)
        assert bool(said) == warns, told


@pytest.mark.parametrize("skips", ["true", "false"])
def test_unverified_kubeconfig_warns(skips):
    """As "tls_verify off" does."""
    conf = full_conf("", main="kube_informer { api kubeconfig=k.yaml; }\n")
    line = f"    insecure-skip-tls-verify: {skips}\n    server:"
    told = accepted(conf, {"k.yaml": KUBECONFIG.replace("    server:", line)})
    said = re.search(
        r'\[warn\].*kubeconfig "\S+k\.yaml" has insecure-skip-tls-verify.*certificate-authority',
        told,
    )
    assert bool(said) == (skips == "true"), told


def test_in_cluster_inside():
    conf = full_conf("", main="kube_informer { state_path off; }\n")
    env = {"KUBERNETES_SERVICE_HOST": "192.0.2.1", "KUBERNETES_SERVICE_PORT": "443"}
    accepted(conf, env=env)


def test_every_parameter():
    conf = in_upstream(
        "kube_service $host informer=default namespaces=shop,infra form=dns family=any "
        "terminating=fallback unsynced=state weight=2 max_conns=10 max_fails=2 fail_timeout=5s;"
    )
    accepted(conf)


def test_variable_key_without_namespaces_where_they_are_named():
    accepted(in_upstream("kube_service $host;", "namespaces shop infra;"))


def test_all_three_modules():
    accepted(full_conf("", main=BLOCK % "", stream=True))


def test_only_the_module_loaded():
    accepted(load_modules() + user_line() + "pid nginx.pid; error_log stderr; events { }\n")


def test_testing_starts_nothing(cluster):
    """nginx -t asks nobody."""
    accepted(full_conf("", main="kube_informer { api %s; state_path s; }\n" % cluster.api.url))
    assert cluster.api.accepted == 0
