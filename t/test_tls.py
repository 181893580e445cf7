# TLS to the API server: always verified, and what is wrong is said.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""TLS between the informer and the API server."""

import shutil
import socket
import ssl
import subprocess

import pytest
from nginx import never, wait_until

CONF = """
    upstream web { kube_service shop/web; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://web; } }
"""

SLICES = "endpointslices"


def read(path):
    """A file's bytes."""
    with open(path, "rb") as f:
        return f.read()


def secured(cluster, context, ca=None, more="", start=True):
    """A gateway of a server with that context; it trusts ca."""
    cluster.api.set_tls(context)
    cluster.service("shop", "web")
    if ca is not None:
        more = "ca_file ca.pem; " + more
    gateway = cluster.nginx(CONF, more=more, start=False)
    if ca is not None:
        gateway.write("ca.pem", ca)
    return gateway.start() if start else gateway


def works(cluster, gateway):
    """It syncs, and follows."""
    gateway.status.wait_synced()
    gateway.status.wait_rv(cluster.slice("shop", "web", cluster.pods(1, "after")))
    gateway.wait_backends({"after-1"})


def refuses(cluster, gateway, says=r"(?i)certificate|TLS|SSL"):
    """It never sends a request; status and log say why."""
    import re

    found = wait_until(
        lambda: (lambda e: e if e["reason"] else None)(
            (gateway.status.resource(SLICES) or {"last_error": {"reason": ""}})["last_error"]
        )
    )
    assert re.search(says, found["message"] + found["reason"]), found
    wait_until(lambda: gateway.grep_log(says))
    cluster.api.wait(lambda: cluster.api.accepted >= 3)
    assert cluster.api.requests == []
    assert gateway.get().headers["x-kube-error"] == "not_synced"
    assert gateway.status.metrics().value("nginx_kube_errors_total", resource=SLICES) >= 1


class TestGood:
    """What must work."""

    def test_plain(self, cluster, pki):
        works(cluster, secured(cluster, pki.server_context(), read(pki.ca_file)))

    def test_ip_address_in_the_certificate(self, cluster, pki):
        context = pki.server_context(pki.server("ip", "127.0.0.1"))
        works(cluster, secured(cluster, context, read(pki.ca_file)))

    def test_tls_server_name(self, cluster, pki):
        context = pki.server_context(pki.server("named", "api.example.com"))
        works(
            cluster,
            secured(
                cluster, context, read(pki.ca_file), more="tls_server_name api.example.com;"
            ),
        )

    @pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
    def test_versions(self, cluster, pki, version):
        context = pki.server_context(maximum_version=getattr(ssl.TLSVersion, version))
        works(cluster, secured(cluster, context, read(pki.ca_file)))

    def test_many_cas_in_the_file(self, cluster, pki, pki_of):
        others = b"".join(read(pki_of(name).ca_file) for name in ("other", "new")) * 20
        works(cluster, secured(cluster, pki.server_context(), others + read(pki.ca_file)))

    def test_chain(self, cluster, pki):
        """The server's certificate, two CAs that it sends along, and ours."""
        context = pki.server_context(pki.issue("below", "127.0.0.1", below=2))
        works(cluster, secured(cluster, context, read(pki.ca_file)))

    def test_http_2_is_not_spoken(self, cluster, pki):
        """Nor is it offered: a server that would like it answers by HTTP/1.1."""
        context = pki.server_context()
        context.set_alpn_protocols(["h2"])
        works(cluster, secured(cluster, context, read(pki.ca_file)))

    def test_verification_off_on_demand(self, cluster, pki):
        gateway = secured(cluster, pki.server_context(), more="tls_verify off;")
        works(cluster, gateway)
        assert gateway.grep_log(r"\[warn\].*tls_verify") or "tls_verify" in gateway.stderr()

    def test_session_tickets_off(self, cluster, pki):
        context = pki.server_context()
        context.options |= ssl.OP_NO_TICKET
        gateway = secured(cluster, context, read(pki.ca_file))
        works(cluster, gateway)
        cluster.api.close_watches(how="rst")
        works(cluster, gateway)


class TestBad:
    """What must not."""

    def test_unknown_ca(self, cluster, pki, pki_of):
        other = pki_of("other")
        refuses(cluster, secured(cluster, pki.server_context(), read(other.ca_file)))

    def test_system_cas_only(self, cluster, pki):
        refuses(cluster, secured(cluster, pki.server_context()))

    def test_wrong_name(self, cluster, pki):
        context = pki.server_context(pki.wrong_name())
        refuses(
            cluster,
            secured(cluster, context, read(pki.ca_file)),
            r"(?i)certificate|match|name|TLS|SSL",
        )

    def test_wrong_tls_server_name(self, cluster, pki):
        gateway = secured(
            cluster, pki.server_context(), read(pki.ca_file), more="tls_server_name else.example;"
        )
        refuses(cluster, gateway, r"(?i)certificate|match|name|TLS|SSL")

    def test_expired(self, cluster, pki):
        context = pki.server_context(pki.expired())
        refuses(cluster, secured(cluster, context, read(pki.ca_file)), r"(?i)expired|certificate")

    def test_not_yet_valid(self, cluster, pki):
        context = pki.server_context(pki.not_yet())
        refuses(
            cluster, secured(cluster, context, read(pki.ca_file)), r"(?i)not yet|certificate"
        )

    @pytest.mark.skipif(not shutil.which("curl"), reason="curl judges beside us")
    def test_common_name_alone(self, cluster, pki):
        """What curl of this machine makes of it, whose library is ours."""
        context = pki.server_context(pki.common_name_alone("api.example.com"))
        gateway = secured(
            cluster, context, read(pki.ca_file), more="tls_server_name api.example.com;"
        )
        to = f"api.example.com:{cluster.api.port}"
        said = subprocess.run(
            ["curl", "-sS", "--cacert", pki.ca_file, "--noproxy", "*", "--resolve",
             f"{to}:127.0.0.1", f"https://{to}/version"],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        if said.returncode == 0:
            works(cluster, gateway)
        else:
            assert said.returncode == 60, said.stderr
            wait_until(lambda: gateway.grep_log(r"(?i)certificate|match|name"))
            assert gateway.get().headers["x-kube-error"] == "not_synced"

    def test_chain_with_a_gap(self, cluster, pki):
        context = pki.server_context(pki.issue("gap", "127.0.0.1", below=1, chain=False))
        refuses(cluster, secured(cluster, context, read(pki.ca_file)))

    def test_tls_1_1(self, cluster, pki):
        context = pki.server_context()
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
        refuses(cluster, secured(cluster, context, read(pki.ca_file)))

    def test_plain_http_behind_https(self, cluster, pki):
        gateway = secured(cluster, pki.server_context(), read(pki.ca_file), start=False)
        cluster.api.core.tls = None
        gateway.start()
        refuses(cluster, gateway)

    @pytest.mark.parametrize(
        "text", [b"", b"rubbish", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
    )
    def test_ca_file_without_a_ca(self, cluster, pki, text):
        gateway = secured(cluster, pki.server_context(), text)
        gateway.wait_log(r"ca\.pem|CA|certificate")
        never(lambda: cluster.api.requests, 1, "a request without a CA")
        assert gateway.get().headers["x-kube-error"] == "not_synced"
        gateway.write("ca.pem", read(pki.ca_file))
        cluster.api.wait(lambda: cluster.api.requests)
        works(cluster, gateway)

    @pytest.mark.parametrize("how", ["rst", "close", b"\x15\x03\x01\x00\x02\x02\x28", b"hello\n"])
    def test_handshake_dies(self, cluster, pki, how):
        cluster.api.connect_fault(how)
        gateway = secured(cluster, pki.server_context(), read(pki.ca_file))
        cluster.api.wait(lambda: cluster.api.accepted >= 3)
        assert gateway.get().headers["x-kube-error"] == "not_synced"
        cluster.api.connect_fault(None)
        works(cluster, gateway)

    def test_handshake_stalls(self, cluster, pki):
        cluster.api.connect_fault("stall")
        gateway = secured(
            cluster, pki.server_context(), read(pki.ca_file), more="connect_timeout 300ms;"
        )
        cluster.api.wait(lambda: cluster.api.accepted >= 4)
        cluster.api.connect_fault(None)
        works(cluster, gateway)

    @pytest.mark.parametrize("verb", ["list", "watch"])
    def test_cut_without_close_notify_is_no_end(self, cluster, pki, verb):
        """A list that is cut short is not a short list."""
        for n in range(4):
            cluster.service("infra", f"s{n}", pods=[])
        fault = cluster.api.fault(
            verb=verb, resource=SLICES, at_body=300 if verb == "list" else 0, cut="abort"
        )
        gateway = secured(cluster, pki.server_context(), read(pki.ca_file), more="namespaces all;")
        cluster.api.wait(lambda: fault.fired == 1)
        works(cluster, gateway)
        assert gateway.status.resource(SLICES)["objects"] == 5


class TestRotation:
    """CAs that change."""

    def test_ca_file_then_server(self, cluster, pki, pki_of):
        new = pki_of("new")
        gateway = secured(cluster, pki.server_context(), read(pki.ca_file))
        works(cluster, gateway)
        gateway.write("ca.pem", read(new.ca_file) + read(pki.ca_file))
        cluster.api.set_tls(new.server_context())
        cluster.api.close_watches(how="rst")
        works(cluster, gateway)

    def test_server_then_ca_file(self, cluster, pki, pki_of):
        new = pki_of("new")
        gateway = secured(cluster, pki.server_context(), read(pki.ca_file))
        works(cluster, gateway)
        cluster.api.set_tls(new.server_context())
        cluster.api.close_watches(how="rst")
        gateway.status.wait_state("backoff")
        assert gateway.get().status == 200
        gateway.write("ca.pem", read(new.ca_file))
        works(cluster, gateway)


def test_unix_socket(cluster):
    """http://unix: is plain, and local."""
    import os

    from apiserver import ApiServer
    from cluster import informer

    # a path that the unprivileged informer may reach, and short enough
    gateway = cluster.nginx(CONF, start=False)
    path = gateway.path("api.sock")
    with ApiServer(unix=path) as api:
        os.chmod(path, 0o777)
        pods = cluster.pods(1)
        import objects

        api.put(objects.service("shop", "web", ports=(("http", 80, "http"),)))
        api.put(
            objects.slice("shop", "web-1", "web", [pods[0].host], ports=(("http", pods[0].port),))
        )
        gateway.block = informer(f"http://unix:{path}")
        gateway.write_conf(gateway.made())
        gateway.start()
        gateway.status.wait_synced()
        assert gateway.get().backend == "pod-1"
        cluster.running.remove(gateway)
        gateway.stop()


REFUSALS = {
    "403": {"status": 403},
    "406": {"status": 406},
    "410": {"status": 410},
    "429": {"status": 429, "retry_after": 1},
}


@pytest.mark.parametrize("how", REFUSALS)
def test_address_that_only_refuses_is_left(cluster, how):
    """The next one may grant what this one does not."""
    from apiserver import ApiServer
    from cluster import informer

    cluster.service("shop", "web")
    with ApiServer() as other:
        other.fault(times=None, **REFUSALS[how])
        block = informer(f"api {other.url} {cluster.api.url};")
        works(cluster, cluster.nginx(CONF, block=block, sync=False))
        assert other.requests


def test_what_is_forbidden_everywhere_leaves_no_address(cluster):
    """Others, whose namespaces are granted, stay where they are."""
    from apiserver import ApiServer
    from cluster import informer

    cluster.service("shop", "web")
    forbidden = cluster.api.fault(status=403, ns="infra", times=None)
    with ApiServer() as other:
        block = informer(f"api {cluster.api.url} {other.url}; namespaces shop infra;")
        gateway = cluster.nginx(CONF, block=block, sync=False)
        gateway.wait_status_code(200)
        cluster.api.wait(lambda: forbidden.fired >= 8)
        assert other.requests == []


def test_what_is_forbidden_and_asked_for_first_leaves_no_address(cluster):
    """Nor while those whose lists are granted still wait for their turn."""
    from apiserver import ApiServer
    from cluster import informer

    cluster.service("shop", "web")
    names = [f"infra-{i}" for i in range(6)]
    for ns in names:
        cluster.api.fault(status=403, ns=ns, times=None, delay=0.4)
    with ApiServer() as other:
        other.freeze()
        spaces = " ".join(names + ["shop"])
        more = f"namespaces {spaces}; watch_list off;"
        block = informer(f"api {cluster.api.url} {other.url};", more=more)
        gateway = cluster.nginx(CONF, block=block, sync=False)
        gateway.wait_status_code(200)
        assert other.accepted == 0


def test_several_addresses_are_tried_in_turn(cluster):
    """One address of the cluster is dead, the next one answers."""
    from cluster import informer
    from nginx import free_port

    dead = f"http://127.0.0.1:{free_port()}"
    cluster.service("shop", "web")
    gateway = cluster.nginx(CONF, block=informer(f"api {dead} {cluster.api.url};"))
    works(cluster, gateway)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(dead.rsplit(":", 1)[1]))) != 0
