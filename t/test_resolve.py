# http: what one request remembers of its resolutions, and which configurations
# of balancers and variables are refused.  A location, a subrequest or a second
# directive never sees what another one picked.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""kube_resolve beside kube_service, subrequests and redirects."""

import re

import objects
import pytest
from nginx import full_conf, loads, nginx_t, wait_until
from test_conf_errors import BLOCK, accepted, in_upstream, line_of, refused

FAIR = "/usr/lib/nginx/modules/ngx_http_upstream_fair_module.so"
NO_FAIR = "libnginx-mod-http-upstream-fair is missing, or made for another nginx"

SERVER = """
    server {
        listen 127.0.0.1:PORT;
        ssi_types text/plain;
        %s
    }
"""


def names(pods):
    """Their names, as X-Backend tells them."""
    return {p.name for p in pods}


class TestKeyOfAVariable:
    """A kube_resolve variable inside a kube_service key."""

    TEXT = """
    map $where $key { "" shop/none; default shop/web; }
    upstream mapped { kube_service $key namespaces=shop; }
    upstream bad { kube_service shop/$where namespaces=shop; }
""" + SERVER % """
        kube_resolve $where $http_x_service namespaces=shop;
        location /mapped { proxy_pass http://mapped; }
        location /bad { proxy_pass http://bad; }
"""

    def test_is_evaluated(self, cluster):
        web = cluster.service("shop", "web", 1)
        cluster.service("shop", "api", 1)
        gateway = cluster.nginx(self.TEXT, workers=1)
        for _ in range(3):
            answer = gateway.get("/mapped", headers={"X-Service": "shop/api"})
            assert answer.backend == web[0].name
            assert answer.headers["x-kube-service"] == "shop/web:http"
            assert answer.headers["x-kube-pod"] == web[0].name

            answer = gateway.get("/mapped", headers={"X-Service": "shop/web:none"})
            assert (answer.status, answer.headers["x-kube-error"]) == (502, "no_service")

            answer = gateway.get("/bad", headers={"X-Service": "shop/api"})
            assert (answer.status, answer.headers["x-kube-error"]) == (502, "bad_key")
        assert not gateway.grep_log(r"exited on signal")


class TestCycle:
    """kube_resolve variables that need each other: an empty key, at once."""

    @pytest.mark.parametrize(
        "lines",
        [
            "kube_resolve $pod $pod namespaces=shop;",
            "kube_resolve $pod $two namespaces=shop; kube_resolve $two $pod namespaces=shop;",
            "kube_resolve $pod $mapped namespaces=shop;",
        ],
    )
    def test_ends(self, cluster, lines):
        gateway = cluster.nginx(
            "    map $pod $mapped { default $pod; }\n"
            "    kube_resolve $pod $http_x namespaces=shop;\n"
            + SERVER % ("location / { %s return 200 [$pod]; }" % lines),
            workers=1,
            level="error",
        )
        assert [gateway.get().text for _ in range(3)] == ["[]"] * 3
        assert gateway.grep_log(r"cycle while evaluating variable \"\$(pod|two)\" of kube_resolve")


class TestTurn:
    """Endpoints of a Service in turn, whatever else is asked of its directive."""

    def test_each_service_has_its_own(self, cluster):
        pods = cluster.service("shop", "web", 2) + cluster.service("shop", "api", 2)
        gateway = cluster.nginx(
            SERVER
            % """
        kube_resolve $pod $http_x_service namespaces=shop;
        location / { proxy_pass http://$pod; }
""",
            workers=1,
        )

        def ask(count):
            for _ in range(count):
                for key in ("shop/web", "shop/api"):
                    assert gateway.get(headers={"X-Service": key}).status == 200

        ask(6)
        assert [p.requests for p in pods] == [3] * 4

        # and it goes on where it was after each change

        for n in range(4):
            renamed = [objects.endpoint(p.host, pod=f"{n}", ns="shop") for p in pods[:2]]
            rv = cluster.slice("shop", "web", renamed, ports=(("http", pods[0].port),))
            gateway.status.wait_rv(rv)
            ask(1)
        assert [p.requests for p in pods] == [5] * 4

    def test_goes_on_after_each_change(self, cluster):
        """A Service that changes all the time asks nobody twice in a row."""
        pods = cluster.service("shop", "web", 2)
        gateway = cluster.nginx(
            SERVER % "kube_resolve $pod shop/web; location / { proxy_pass http://$pod; }",
            workers=1,
        )
        asked = []
        for n in range(12):
            ends = [objects.endpoint(p.host, pod=f"{n}", ns="shop") for p in pods]
            gateway.status.wait_rv(
                cluster.slice("shop", "web", ends, ports=(("http", pods[0].port),))
            )
            asked.append(gateway.get().backend)
        assert all(a != b for a, b in zip(asked, asked[1:])), asked


class TestApart:
    """One variable, several locations and keys, one request."""

    def check(self, cluster, locations, path="/", backend="api", more=""):
        """Asks for path; returns the answer, which 'backend' must have given."""
        self.web = cluster.service("shop", "web", 1)
        self.api = cluster.service("shop", "api", 1)
        gateway = cluster.nginx(more + SERVER % locations, workers=1)
        for _ in range(3):
            answer = gateway.get(path)
            assert answer.status == 200, answer
            assert answer.backend == f"shop.{backend}-1"
        return answer

    def test_auth_request(self, cluster):
        self.check(
            cluster,
            """
        location / {
            auth_request /auth;
            kube_resolve $pod shop/api;
            proxy_pass http://$pod;
        }
        location = /auth { kube_resolve $pod shop/web; proxy_pass http://$pod; }
""",
        )
        assert self.web[0].requests == 3

    def test_mirror(self, cluster):
        self.check(
            cluster,
            """
        location / {
            mirror /copy;
            kube_resolve $pod shop/api;
            proxy_pass http://$pod;
        }
        location = /copy { internal; kube_resolve $pod shop/web; proxy_pass http://$pod; }
""",
        )
        # nobody waits for a mirrored request
        wait_until(lambda: self.web[0].requests == 3)

    def test_rewrite(self, cluster):
        answer = self.check(
            cluster,
            """
        location = / {
            kube_resolve $pod shop/web;
            set $before $pod;
            rewrite ^ /after last;
        }
        location /after {
            add_header X-Before $before always;
            kube_resolve $pod shop/api;
            proxy_pass http://$pod;
        }
""",
        )
        assert answer.headers["x-before"] == self.web[0].address

    def test_error_page(self, cluster):
        answer = self.check(
            cluster,
            """
        location = / {
            kube_resolve $pod shop/web;
            error_page 404 = @other;
            set $before $pod;
            return 404;
        }
        location @other {
            add_header X-Before $before always;
            add_header X-Kube-Service $kube_service always;
            kube_resolve $pod shop/api;
            proxy_pass http://$pod;
        }
""",
        )
        assert answer.headers["x-before"] == self.web[0].address
        assert answer.headers["x-kube-service"] == "shop/api:http"

    def test_ssi(self, cluster):
        web, api = (cluster.service("shop", name, 1) for name in ("web", "api"))
        gateway = cluster.nginx(
            SERVER
            % """
        location = / {
            ssi on;
            default_type text/plain;
            kube_resolve $pod shop/api;
            return 200 '$pod|<!--# include virtual="/part" --><!--# echo var="pod" -->';
        }
        location = /part { kube_resolve $pod shop/web; return 200 '$pod|'; }
""",
            workers=1,
        )
        for _ in range(3):
            expected = f"{api[0].address}|{web[0].address}|{api[0].address}"
            assert gateway.get("/").text == expected

    def test_one_key_and_another(self, cluster):
        """One directive, whose key changes within the request."""
        answer = self.check(
            cluster,
            """
        kube_resolve $pod $key namespaces=shop;
        location = / {
            set $key shop/web;
            set $before $pod;
            set $key shop/api;
            add_header X-Before $before always;
            proxy_pass http://$pod;
        }
""",
        )
        assert answer.headers["x-before"] == self.web[0].address

    def test_one_request_sees_one_endpoint(self, cluster):
        pods = cluster.service("shop", "web", 3)
        gateway = cluster.nginx(
            SERVER
            % """
        location / {
            kube_resolve $pod shop/web;
            set $first $pod;
            add_header X-First $first always;
            add_header X-Second $pod always;
            add_header X-Kube-Pod $kube_pod always;
            proxy_pass http://$pod;
        }
""",
            workers=1,
        )
        found = set()
        for _ in range(9):
            answer = gateway.get("/")
            assert answer.headers["x-first"] == answer.headers["x-second"]
            assert answer.headers["x-kube-pod"] == answer.backend
            found.add(answer.backend)
        assert found == names(pods)


class TestShown:
    """Which resolution the variables tell of."""

    def test_the_one_of_the_location(self, cluster):
        """A failed kube_service, then a location that uses kube_resolve."""
        cluster.service("shop", "web", pods=[])
        api = cluster.service("shop", "api", 1)
        gateway = cluster.nginx(
            "    upstream web { kube_service shop/web; }\n"
            + SERVER
            % """
        location = / {
            error_page 502 = @other;
            proxy_pass http://web;
        }
        location @other {
            kube_resolve $pod shop/api;
            proxy_pass http://$pod;
        }
        location = /page {
            error_page 502 = @page;
            proxy_pass http://web;
        }
        location @page { return 200 'sorry'; }
""",
            workers=1,
        )
        answer = gateway.get("/")
        assert answer.backend == api[0].name
        assert answer.headers["x-kube-service"] == "shop/api:http"
        assert answer.headers["x-kube-pod"] == api[0].name
        assert answer.headers["x-kube-error"] == ""

        # nothing else was resolved there: the failure is what there is to tell
        answer = gateway.get("/page")
        assert answer.text == "sorry"
        assert answer.headers["x-kube-service"] == "shop/web:http"
        assert answer.headers["x-kube-error"] == "no_endpoints"

    def test_canonical_service(self, cluster):
        cluster.service("shop", "web", 1)
        cluster.service("shop", "plain", 1, ports=(80,))
        cluster.slice("shop", "plain", cluster.pods(1), ports=(("", 8080),))
        gateway = cluster.nginx(
            "    upstream any { kube_service $http_x_service namespaces=shop form=dns; }\n"
            + SERVER % "location / { proxy_pass http://any; proxy_connect_timeout 1s; }"
        )
        for key, canonical in (
            ("shop/web", "shop/web:http"),
            ("shop/web:80", "shop/web:http"),
            ("shop/web:http", "shop/web:http"),
            ("web.shop.svc.cluster.local:80", "shop/web:http"),
            ("shop/plain", "shop/plain:80"),
            ("shop/web:81", "shop/web:81"),
            ("shop/none", "shop/none"),
            ("infra/none:80", "infra/none:80"),
            ("shop", ""),
        ):
            answer = gateway.get(headers={"X-Service": key})
            assert answer.headers.get("x-kube-service", "") == canonical, key


class TestLog:
    """A line names the directive, the key, the object and the choice."""

    def test_of_an_upstream(self, cluster):
        cluster.service("shop", "web", 1)
        gateway = cluster.nginx(
            "    upstream by_header { kube_service $http_x_service namespaces=shop; }\n"
            + SERVER % "location / { proxy_pass http://by_header; }",
            workers=1,
        )
        place = r'key "\$http_x_service" of upstream "by_header" in \S+nginx.conf:\d+: '
        for key, says in (
            ("shop/web:8080", "no_port: Service shop/web has no port 8080; it has http \\(80\\)"),
            ("infra/web", 'namespace_denied: namespace "infra" is not in namespaces=shop'),
            ("shop/none", "no_service: there is no Service shop/none"),
            ("shop/a\tb", "bad_key: invalid service name"),
        ):
            assert gateway.get(headers={"X-Service": key}).status == 502
            key = key.replace("\t", r"\\x09")
            assert gateway.grep_log(place + f'"{key}" cannot be resolved: {says}'), key

    def test_of_an_address(self, cluster):
        cluster.service("shop", "web", pods=[])
        made = [{"addresses": ["169.254.169.254"], "conditions": {"ready": True}}]
        cluster.slice("shop", "web", made, ports=(("http", 80),))
        gateway = cluster.nginx(
            SERVER % "location / { kube_resolve $pod shop/web; return 200 '[$pod]'; }",
            workers=1,
        )
        assert gateway.get().text == "[]"
        assert gateway.grep_log(
            r'key "shop/web" of variable "\$pod" in .*cannot be resolved: address_denied: '
            r"address 169.254.169.254 of Service shop/web is denied: link-local"
        )


class TestForbidden:
    """What a 403 hides is not "no such"."""

    def test_is_told(self, cluster):
        cluster.service("shop", "web", 1)
        cluster.service("infra", "web", 1)
        cluster.api.fault(status=403, ns="infra", times=None)
        gateway = cluster.nginx(
            "    upstream any { kube_service $http_x_service; }\n"
            + SERVER % "location / { proxy_pass http://any; }",
            more="namespaces shop infra;",
            sync=False,
        )
        gateway.status.wait(lambda i: i["degraded"])
        gateway.wait_status_code(200, headers={"X-Service": "shop/web"})

        def reason(key):
            answer = gateway.get(headers={"X-Service": key})
            return answer.status, answer.headers["x-kube-error"]

        # slices may have been refused before Services were
        wait_until(lambda: reason("infra/web") == (502, "forbidden"))
        assert reason("shop/none") == (502, "no_service")


class TestIf:
    """if {} and limit_except {} are part of their location."""

    def test_content_handlers(self, cluster):
        cluster.service("shop", "web", 1)
        gateway = cluster.nginx(
            "    upstream web { kube_service shop/web; }\n"
            + SERVER
            % """
        location / { proxy_pass http://web; }
        location /in/ {
            kube_status api;
            if ($arg_x) { add_header X-If yes always; }
        }
        location = /metrics {
            kube_status metrics;
            if ($arg_x) { add_header X-If yes always; }
        }
        location = /is_ready {
            kube_ready informer=default;
            if ($arg_x) { add_header X-If yes always; }
        }
        location = /limited {
            kube_ready;
            limit_except GET { allow all; }
        }
"""
        )
        for path in ("/in/api/v1/status", "/metrics", "/is_ready"):
            plain, inside = gateway.get(path), gateway.get(path + "?x=1")
            assert (plain.status, inside.status) == (200, 200), path
            assert inside.headers["x-if"] == "yes" and "x-if" not in plain.headers
            assert inside.headers["content-type"] == plain.headers["content-type"]
        assert gateway.get("/limited", method="HEAD").status == 200
        assert gateway.get("/limited", method="POST", body=b"").status == 405


TWO_OF_A_NAME = [
    ("map", "map $uri $pod { default x; }", ""),
    ("geo", "geo $pod { default x; }", ""),
    ("split_clients", "split_clients $uri $pod { * x; }", ""),
    ("set", "", "location /set { set $pod x; }"),
]


@pytest.mark.parametrize("kind, http, inside", TWO_OF_A_NAME, ids=[e[0] for e in TWO_OF_A_NAME])
def test_variable_with_two_meanings(kind, http, inside):
    """Whichever stands first, both are named; neither wins silently."""
    resolve = "location /resolve { kube_resolve $pod shop/web; return 200 $pod; }"
    server = "server {{ listen 127.0.0.1:18999;\n{}\n{}\n}}\n"

    before = f"{http}\n" + server.format(inside, resolve)
    conf = full_conf(before, main=BLOCK % "")
    refused(conf, "kube_resolve", r'"\$pod" of kube_resolve is defined above by something else')

    behind = server.format(resolve, inside) + f"{http}\n"
    conf = full_conf(behind, main=BLOCK % "")
    code, told = nginx_t(conf)
    assert code == 1, told
    place = rf'by kube_resolve in \S+nginx.conf:{line_of(conf, "kube_resolve")}, and behind it'
    assert '"$pod" is defined twice' in told
    assert f'"{kind}"' in told or kind == "split_clients"
    assert re.search(place, told), told


def test_one_variable_of_many_kube_resolve():
    accepted(
        full_conf(
            "server { listen 127.0.0.1:18999;\n"
            "location /a { kube_resolve $pod shop/web; return 200 $pod; }\n"
            "location /b { kube_resolve $pod shop/api; return 200 $pod; } }\n",
            main=BLOCK % "",
        )
    )


@pytest.mark.skipif(not loads(FAIR), reason=NO_FAIR)
@pytest.mark.parametrize(
    "lines",
    [
        "kube_service shop/web; fair;",
        "fair; kube_service shop/web;",
        "kube_service shop/web; fair; keepalive 4;",
        "keepalive 4; fair; kube_service shop/web;",
        "keepalive 4; kube_service shop/web; fair;",
    ],
)
def test_unknown_balancer(lines):
    """Also one that keeps no configuration of its own, and behind keepalive."""
    conf = f"load_module {FAIR};\n" + in_upstream(lines)
    told = refused(conf, None, r"balancing method .*upstream \"web\".*not known to work")
    assert "ngx_http_upstream_fair_module" in told and "least_conn" in told


@pytest.mark.skipif(not loads(FAIR), reason=NO_FAIR)
def test_unknown_balancer_elsewhere():
    """Loaded, and used by another upstream."""
    conf = f"load_module {FAIR};\n" + in_upstream("kube_service shop/web; keepalive 4;")
    conf = conf.replace("server {", "upstream b { fair; server 192.0.2.7; }\nserver {", 1)
    accepted(conf)
