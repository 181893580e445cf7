# Credentials: tokens that change on disk, are refused, or are no tokens at all;
# client certificates; kubeconfig files.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Tokens, kubeconfigs and client certificates."""

import base64
import contextlib
import datetime
import hashlib
import json
import os
import socket
import threading

import objects
import pytest
from apiserver import READ, Rule
from cluster import informer, root
from nginx import PATIENCE, wait_until

CONF = """
    upstream web { kube_service $http_x namespaces=shop,infra; }
    upstream static { kube_service shop/web; }
    server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://static; }
        location /by { proxy_pass http://web; }
    }
"""

SLICES = "endpointslices"


def prepared(cluster, token="first", more="", **conf):
    """A gateway with a token file, not started."""
    cluster.service("shop", "web")
    gateway = cluster.nginx(CONF, more="token_file token; " + more, start=False, **conf)
    gateway.write("token", token)
    return gateway


def started(gateway):
    """Starts and waits for the sync."""
    gateway.start()
    gateway.status.wait_synced()
    return gateway


def following(cluster, gateway, name="after"):
    """A change after now reaches the gateway."""
    gateway.status.wait_rv(cluster.slice("shop", "web", cluster.pods(1, name)))
    gateway.wait_backends({name + "-1"})


@pytest.mark.cluster(token="first")
class TestToken:
    """token_file."""

    def test_is_sent_with_each_request(self, cluster):
        started(prepared(cluster, "first\n"))
        assert {(r.token, r.auth) for r in cluster.api.requests} == {("first", "token")}

    def test_is_told_to_nobody(self, cluster):
        """In no log, at the level debug either, and on no page; nor once it is refused."""
        token = "told-to-nobody-0123456789"
        cluster.api.auth.add_token(token)
        gateway = started(prepared(cluster, token, level="debug"))
        assert token in {r.token for r in cluster.api.requests}
        cluster.api.auth.revoke_token(token)
        cluster.api.close_watches(how="clean")
        gateway.status.wait(lambda i: {d["cause"] for d in i["degraded"]} == {"unauthorized"})
        pages = [gateway.status.get(path).text for path in ("/", "/api/v1/status", "/metrics")]
        assert "unauthorized" in pages[1]
        assert not [t for t in (gateway.log(), gateway.stderr(), *pages) if token in t]

    @pytest.mark.parametrize("text", ["first", "first\n", "first\r\n", "  first \n\n"])
    def test_white_space_around_it_is_none_of_it(self, cluster, text):
        started(prepared(cluster, text))

    def test_rotation_by_401(self, cluster):
        """
        The old token is refused: it is read again, and the request repeated at
        once.  Files are read once a second at most, so what changes faster is
        taken a little later.
        """
        gateway = started(prepared(cluster))
        for n in range(3):
            cluster.steady(gateway)
            token = f"token-{n}"
            cluster.api.auth.add_token(token)
            gateway.write("token", token)
            for old in list(cluster.api.auth.tokens):
                if old != token:
                    cluster.api.auth.revoke_token(old)
            count = len(cluster.api.requests)
            cluster.api.close_watches(how="clean")
            cluster.api.wait(
                lambda: sum(r.token == token for r in cluster.api.requests[count:]) >= 2
            )
            refused = [r for r in cluster.api.requests[count:] if r.status == 401]
            assert len(refused) <= (2 if n == 0 else 60 * PATIENCE)
            following(cluster, gateway, f"t{n}")
        assert cluster.api.count(verb="list") == 2

    def test_rotation_by_symbolic_links(self, cluster):
        """As kubelet does it: ..data is swapped."""
        gateway = prepared(cluster, more="")
        gateway.write("v1/token", "first")
        os.remove(gateway.path("token"))
        os.symlink("v1", gateway.path("..data"))
        os.symlink("..data/token", gateway.path("token"))
        started(gateway)
        cluster.api.auth.add_token("second")
        gateway.write("v2/token", "second")
        os.symlink("v2", gateway.path("..tmp"))
        os.rename(gateway.path("..tmp"), gateway.path("..data"))
        cluster.api.auth.revoke_token("first")
        cluster.api.close_watches(how="rst")
        following(cluster, gateway)

    def test_refused_for_ever_is_polite(self, cluster):
        gateway = started(prepared(cluster))
        cluster.api.auth.revoke_token("first")
        count = len(cluster.api.requests)
        cluster.api.close_watches(how="clean")
        cluster.api.wait(lambda: len(cluster.api.requests) >= count + 12)
        found = [r for r in cluster.api.requests[count:] if r.resource == SLICES]
        seconds = found[-1].started - found[0].started
        # at most two tries in a step of the backoff
        assert len(found) <= 4 + 2 * seconds / 0.05
        assert gateway.get().status == 200
        row = gateway.status.resource(SLICES)
        assert "nauthorized" in str(row["last_error"])
        assert gateway.wait_log(r"unauthorized")
        cluster.api.auth.add_token("first")
        following(cluster, gateway)

    @pytest.mark.parametrize(
        "text",
        [
            b"",
            b"\n",
            b"a b",
            b"first\r\nX-Evil: 1",
            b"first\nX-Evil: 1",
            b"t\x00ken",
            b"t\xc3\xb6ken",
            b"x" * (1 << 20),
        ],
        ids=["empty", "newline", "space", "crlf", "lf", "nul", "utf-8", "1 MiB"],
    )
    def test_no_token(self, cluster, text):
        """It is not sent, the log says why, and a good one is taken when it comes."""
        gateway = prepared(cluster)
        gateway.write("token", text)
        gateway.start()
        gateway.wait_log(r"token")
        assert all("x-evil" not in r.headers for r in cluster.api.requests)
        assert all(r.status in (401, 403) for r in cluster.api.requests)
        assert gateway.get().headers["x-kube-error"] == "not_synced"
        gateway.write("token", "first")
        gateway.status.wait_synced(timeout=20 * PATIENCE)

    def test_missing_file_may_come_later(self, cluster):
        gateway = prepared(cluster)
        os.remove(gateway.path("token"))
        gateway.start()
        gateway.wait_log(r"token")
        assert gateway.get().headers["x-kube-error"] == "not_synced"
        gateway.write("token", "first")
        gateway.status.wait_synced(timeout=20 * PATIENCE)

    @pytest.mark.skipif(not root(), reason="needs root")
    def test_file_that_may_not_be_read(self, cluster):
        """The informer has no more rights than the workers."""
        gateway = prepared(cluster)
        os.chmod(gateway.path("token"), 0o600)
        gateway.start()
        gateway.wait_log(r"token.*(Permission denied|cannot be read|denied)|denied.*token")
        assert gateway.get().headers["x-kube-error"] == "not_synced"

    def test_rights_by_namespace(self, cluster):
        """A Role suffices where namespaces are named."""
        cluster.api.auth.add_token(
            "narrow", "gateway", [Rule(READ, ("services", SLICES), ("shop",))]
        )
        cluster.service("infra", "echo")
        gateway = prepared(cluster, "narrow", "namespaces shop infra;")
        gateway.start()
        gateway.wait_status_code(200)
        found = gateway.status.wait(lambda i: i["degraded"])
        assert "infra" in str(found["degraded"])
        assert "nginx_kube_errors_total" in gateway.status.get("/metrics").text
        cluster.api.auth.set_rules("gateway", [Rule(READ, ("services", SLICES), ("shop", "infra"))])
        gateway.status.wait_synced()

    def test_rights_taken_and_given_while_watching(self, cluster):
        cluster.api.auth.add_token("changing", "gateway", [Rule(READ)])
        gateway = started(prepared(cluster, "changing"))
        cluster.api.auth.set_rules("gateway", [])
        cluster.api.close_watches(how="clean")
        gateway.status.wait(lambda i: i["degraded"])
        assert gateway.get().status == 200
        cluster.api.auth.set_rules("gateway", [Rule(READ)])
        gateway.status.wait(lambda i: not i["degraded"])
        following(cluster, gateway)
        assert cluster.api.count(verb="list") == 2


KUBECONFIG = """apiVersion: v1
kind: Config
current-context: main
clusters:
- name: c
  cluster:
    server: {server}
    {cluster}
- name: elsewhere
  cluster:
    server: https://192.0.2.1:6443
users:
- name: u
  user:
    {user}
- name: nobody
  user: {{}}
contexts:
- name: main
  context: {{cluster: c, user: u}}
- name: other
  context: {{cluster: elsewhere, user: nobody}}
"""


def indented(text):
    """Lines below a key of the kubeconfig."""
    return "\n    ".join(text.splitlines())


def with_kubeconfig(
    cluster, user, more="", server=None, context="", files=(), state="state_path off;", **conf
):
    """A gateway that is configured by a kubeconfig."""
    cluster.service("shop", "web")
    block = informer(f"api kubeconfig=kube.yaml{context};", state=state)
    gateway = cluster.nginx(CONF, block=block, start=False, **conf)
    for name, text in dict(files).items():
        gateway.write(name, text)
    gateway.write(
        "kube.yaml",
        KUBECONFIG.format(
            server=server or cluster.api.url, cluster=indented(more), user=indented(user)
        ),
    )
    return gateway


def coded(path):
    """A file as kubeconfigs hold it."""
    with open(path, "rb") as f:
        return base64.b64encode(f.read()).decode()


class TestKubeconfig:
    """api kubeconfig=."""

    @pytest.mark.cluster(token="first")
    def test_token_inline(self, cluster):
        started(with_kubeconfig(cluster, "token: first"))
        assert {r.token for r in cluster.api.requests} == {"first"}

    @pytest.mark.cluster(token="first")
    def test_token_file_beside_it(self, cluster):
        gateway = with_kubeconfig(cluster, "tokenFile: my-token", files={"my-token": "first\n"})
        started(gateway)
        cluster.api.auth.add_token("second")
        gateway.write("my-token", "second")
        cluster.api.auth.revoke_token("first")
        cluster.api.close_watches(how="rst")
        following(cluster, gateway)

    @pytest.mark.cluster(token="first")
    def test_context(self, cluster):
        gateway = with_kubeconfig(cluster, "token: first", context=" context=main")
        text = gateway._text("kube.yaml").replace("current-context: main", "current-context: other")
        gateway.write("kube.yaml", text)
        started(gateway)

    @pytest.mark.parametrize("inline", [True, False])
    def test_tls_and_client_certificate(self, cluster, pki, inline):
        cluster.api.set_tls(pki.server_context(client_ca=pki.ca_file))
        cluster.api.auth.client_ca = True
        cluster.api.auth.set_rules("gateway", [Rule(READ)])
        cert, key = pki.client("gateway")
        if inline:
            ca = f"certificate-authority-data: {coded(pki.ca_file)}"
            user = f"client-certificate-data: {coded(cert)}\nclient-key-data: {coded(key)}"
            files = {}
        else:
            ca = "certificate-authority: tls/ca.pem"
            user = "client-certificate: tls/c.pem\nclient-key: tls/k.pem"
            files = {
                "tls/ca.pem": open(pki.ca_file, "rb").read(),
                "tls/c.pem": open(cert, "rb").read(),
                "tls/k.pem": open(key, "rb").read(),
            }
        gateway = with_kubeconfig(
            cluster,
            user,
            ca + "\ntls-server-name: kubernetes.default.svc",
            cluster.api.url,
            files=files,
        )
        for name in files:
            os.chmod(gateway.path(os.path.dirname(name)), 0o755)
        started(gateway)
        assert {(r.user, r.auth) for r in cluster.api.requests} == {("gateway", "certificate")}
        following(cluster, gateway)


SAYS = (
    '{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", '
    '"status": {"token": "%s"%s}}'
)


@pytest.mark.cluster(token="first")
class TestExecPlugin:
    """A kubeconfig that logs in with a program."""

    @staticmethod
    def says(gateway, token, lifetime=None):
        """What the program prints from now on."""
        more = ""
        if lifetime is not None:
            ends = datetime.datetime.now(datetime.timezone.utc) + lifetime
            more = ends.strftime(', "expirationTimestamp": "%Y-%m-%dT%H:%M:%SZ"')
        gateway.write("said.json", SAYS % (token, more))

    def prepared(self, cluster, before="", token="first", lifetime=None):
        """A gateway whose plugin prints a file, and does something before."""
        gateway = with_kubeconfig(cluster, "")
        script = gateway.write("plugin", f"{before}\ncat {gateway.path('said.json')}\n")
        user = (
            "exec:\n  apiVersion: client.authentication.k8s.io/v1\n  command: sh\n"
            f"  args: [{script}]\n  interactiveMode: Never\n  provideClusterInfo: true\n"
        )
        text = KUBECONFIG.format(server=cluster.api.url, cluster="", user=indented(user))
        gateway.write("kube.yaml", text)
        self.says(gateway, token, lifetime)
        return gateway

    def test_nothing_is_sent_before_its_word(self, cluster):
        """It may take its time, and is asked once for all watches."""
        fifo = "fifo"
        gateway = self.prepared(cluster)
        gateway.write(
            "plugin",
            f"cat {gateway.path(fifo)} > /dev/null\necho asked >&2\n"
            f"cat {gateway.path('said.json')}\n",
        )
        os.mkfifo(gateway.path(fifo))
        os.chmod(gateway.path(fifo), 0o666)
        gateway.start()
        with open(gateway.path(fifo), "w"):
            # the plugin runs; an informer that does not wait would have asked
            gateway.wait_log("started: 2 scopes")
            assert cluster.api.requests == []
        gateway.status.wait_synced()
        assert {r.token for r in cluster.api.requests} == {"first"}
        assert "credentials" not in gateway.log()

    def test_asked_again_after_401(self, cluster):
        gateway = started(self.prepared(cluster))
        cluster.steady(gateway)
        cluster.api.auth.add_token("second")
        self.says(gateway, "second")
        cluster.api.auth.revoke_token("first")
        count = len(cluster.api.requests)
        cluster.api.close_watches(how="clean")
        following(cluster, gateway)
        refused = [r for r in cluster.api.requests[count:] if r.status == 401]
        assert 1 <= len(refused) <= 4 * PATIENCE
        assert cluster.api.count(verb="list") == 2

    def test_asked_again_until_its_word_is_good(self, cluster):
        """What it says once more after a 401 may be refused, too, and bears no end."""
        gateway = started(self.prepared(cluster))
        cluster.steady(gateway)
        cluster.api.auth.revoke_token("first")
        cluster.api.close_watches(how="clean")
        wait_until(lambda: len([r for r in cluster.api.requests if r.status == 401]) >= 6)
        cluster.api.auth.add_token("second")
        self.says(gateway, "second")
        following(cluster, gateway)

    def test_asked_again_before_it_expires(self, cluster):
        """No request is refused for want of a fresh token."""
        gateway = self.prepared(cluster, lifetime=datetime.timedelta(seconds=4))
        gateway.start()
        gateway.status.wait_synced()
        cluster.api.auth.add_token("second")
        self.says(gateway, "second")

        def seen():
            cluster.api.close_watches(how="clean")
            return any(r.token == "second" for r in cluster.api.requests)

        wait_until(seen)
        following(cluster, gateway)
        assert not [r for r in cluster.api.requests if r.status == 401]

    @pytest.mark.parametrize(
        "before, why",
        [
            ("echo no session >&2; exit 4", r"exited with code 4, it says .{0,5}no session"),
            ("kill -9 $$", r"ended by signal 9"),
            ("echo hello", r"not JSON"),
        ],
    )
    def test_failure_is_named_and_heals(self, cluster, before, why):
        gateway = self.prepared(cluster, before)
        gateway.start()
        found = gateway.status.wait(lambda i: i["degraded"])
        assert found["degraded"][0]["cause"] == "credentials"
        gateway.wait_log(why)
        assert cluster.api.requests == []
        gateway.write("plugin", f"cat {gateway.path('said.json')}\n")
        gateway.status.wait_synced()
        gateway.status.wait(lambda i: not i["degraded"])

    def test_it_ends_with_nginx(self, cluster):
        gateway = self.prepared(cluster)
        pid = gateway.path("pids/pid")
        gateway.write("pids/none", "")
        os.chmod(gateway.path("pids"), 0o777)
        gateway.write("plugin", f"echo $$ > {pid}.new; mv {pid}.new {pid}; sleep 1000\n")
        gateway.start()
        wait_until(lambda: os.path.exists(pid))
        with open(pid) as f:
            plugin = int(f.read())
        gateway.stop()

        def gone():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                with open(f"/proc/{plugin}/stat") as f:
                    return f.read().rpartition(")")[2].split()[0] == "Z"
            return True

        wait_until(gone)


def readable_memory(pid):
    """All that a process has mapped and may read, the zone included, as bytes."""
    chunks = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            where, mode = line.split()[:2]
            if not mode.startswith("r") or "[v" in line:
                continue
            begin, end = (int(x, 16) for x in where.split("-"))
            memory.seek(begin)
            with contextlib.suppress(OSError):
                chunks.append(memory.read(end - begin))
    return b"".join(chunks)


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone may read /proc/PID/mem and change users")
class TestSecretsStayAway:
    """Secrets of a kubeconfig are in no process but the informer's."""

    TOKEN = "kept-from-the-master-0123456789"

    def parts(self, pki):
        """(lines of the user, what must not be found) of a key and a token, inline."""
        cert, key = pki.client("gateway")
        body = open(key).read().splitlines()[1].encode()
        user = f"client-certificate-data: {coded(cert)}\nclient-key-data: {coded(key)}"
        text = f"{user}\ntoken: {self.TOKEN}"
        return text, [self.TOKEN.encode(), body, coded(key)[100:160].encode()]

    def test_not_in_master_or_worker(self, cluster, pki):
        cluster.api.auth.add_token(self.TOKEN)
        text, secrets = self.parts(pki)
        gateway = started(with_kubeconfig(cluster, text))
        for _ in range(2):
            # the control: the scan finds them where they have to be
            assert self.TOKEN.encode() in readable_memory(gateway.informer())
            for pid in [gateway.master, *gateway.workers()]:
                memory = readable_memory(pid)
                assert len(memory) > 1 << 16
                assert not [s for s in secrets if s in memory]
            gateway.reload(gone=True)
            gateway.status.wait_synced()
            wait_until(lambda: gateway.informer() is not None)
            following(cluster, gateway)

    def test_read_as_the_user(self, cluster):
        """What the informer could not read is refused where it can still be mended."""
        cluster.api.auth.add_token(self.TOKEN)
        gateway = started(with_kubeconfig(cluster, f"token: {self.TOKEN}"))
        os.chmod(gateway.path("kube.yaml"), 0o600)
        refusal = (
            r'kube\.yaml", read as user "nobody": permission denied: let this user read'
            r' the file.* or name another one with "user" in .*nginx\.conf:\d+'
        )
        gateway.reload_refused(gateway.conf, refusal)
        os.chmod(gateway.path("kube.yaml"), 0o644)
        following(cluster, gateway)

    def test_a_file_that_hangs(self, cluster):
        """A FIFO in its place neither hangs nginx nor is taken for a file."""
        gateway = started(with_kubeconfig(cluster, "token: first"))
        os.rename(gateway.path("kube.yaml"), gateway.path("kept.yaml"))
        os.mkfifo(gateway.path("kube.yaml"), 0o644)
        gateway.reload_refused(gateway.conf, r"kube\.yaml.*regular file|kube\.yaml.*not a file")
        os.rename(gateway.path("kept.yaml"), gateway.path("kube.yaml"))
        following(cluster, gateway)


class Proxy(threading.Thread):
    """A proxy that connects whoever says the password to where he wants."""

    def __init__(self, user, password):
        super().__init__(daemon=True)
        self.word = base64.b64encode(f"{user}:{password}".encode()).decode()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.heads = []
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(
                    target=self._serve, args=(self.socket.accept()[0],), daemon=True
                ).start()

    def _serve(self, client):
        head = b""
        with contextlib.suppress(OSError), client:
            while b"\r\n\r\n" not in head:
                head += client.recv(4096)
            self.heads.append(head.decode())
            if f"Basic {self.word}" not in self.heads[-1]:
                client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                return
            host, port = head.split()[1].decode().rsplit(":", 1)
            with socket.create_connection((host, int(port))) as server:
                client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                threading.Thread(
                    target=self._relay, args=(server, client), daemon=True
                ).start()
                self._relay(client, server)

    @staticmethod
    def _relay(one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def close(self):
        """No further connection."""
        self.socket.close()


def segment(n):
    """A part of a JWT that is like no other."""
    return base64.urlsafe_b64encode(hashlib.sha256(b"segment %d" % n).digest()).decode().strip("=")


def traces(*secrets):
    """What tells of secrets: they, their parts, and both in base64 wherever they begin."""
    found = set()
    for secret in secrets:
        for part in {secret, *secret.split(".")}:
            text = part.encode()
            found.add(text)
            for k in range(3):
                coded = base64.b64encode(b"\0" * k + text).decode()
                found.add(coded[4 * (k > 0): len(coded) - 4].encode())
    assert all(len(x) >= 16 for x in found), found
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone may read /proc/PID/mem")
class TestScan:
    """
    After a run with everything that can log in, nothing of it is in a process
    but the informer's, in the zone, a file, a log or an answer.
    """

    PASSWORD = "proxys-password-0123456789"

    def scan(self, gateway, secrets, control):
        """All that is there; control: what the informer process has to have."""
        found = traces(*secrets)
        pid = gateway.informer()
        wait_until(lambda: control.encode() in readable_memory(pid), what="the control")
        places = {"log": gateway.log().encode(), "stderr": gateway.stderr().encode()}
        for path in ("/", "/metrics", "/api/v1/status", "/api/v1/services", "/api/v1/objects",
                     "/api/v1/services/shop/web"):
            places[path] = gateway.status.get(path).text.encode()
        for name in ("access.log", *os.listdir(gateway.path("state"))):
            path = gateway.path(name if "." not in name or name == "access.log"
                                else os.path.join("state", name))
            # the pipe by which the state file is asked for holds nothing
            if os.path.isfile(path):
                with contextlib.suppress(FileNotFoundError), open(path, "rb") as f:
                    places[name] = f.read()
        for pid in [gateway.master, *gateway.workers()]:
            places[pid] = readable_memory(pid)
            # the control: the zone is among it
            assert b"kubernetes-is-held" in places[pid]
        assert any(name.endswith(".state") for name in map(str, places)), list(places)
        assert not [(place, x) for place, text in places.items() for x in found if x in text]

    def test_all_at_once(self, cluster, pki):
        """A plugin that says a token and a certificate, behind a proxy with a password."""
        token = ".".join(segment(n) for n in range(3))
        cert, key = pki.client("gateway")
        cluster.api.set_tls(pki.server_context(client_ca=pki.ca_file))
        cluster.api.auth.add_token(token, "gateway", [Rule(READ)])
        cluster.api.put(objects.service("shop", "kubernetes-is-held"))
        proxy = Proxy("gate", self.PASSWORD)
        gateway = with_kubeconfig(cluster, "", level="debug", state="state_path state;")
        said = {"token": token, "clientCertificateData": open(cert).read(),
                "clientKeyData": open(key).read()}
        gateway.write("said.json", json.dumps({
            "kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
            "status": said}))
        user = (
            "exec:\n  apiVersion: client.authentication.k8s.io/v1\n  command: cat\n"
            f"  args: [{gateway.path('said.json')}]\n  interactiveMode: Never\n"
        )
        text = (
            f"certificate-authority-data: {coded(pki.ca_file)}\n"
            f"proxy-url: http://gate:{self.PASSWORD}@127.0.0.1:{proxy.port}"
        )
        gateway.write("kube.yaml", KUBECONFIG.format(
            server=cluster.api.url, cluster=indented(text), user=indented(user)))
        started(gateway)
        following(cluster, gateway)
        gateway.status.wait(lambda i: i["state_file"]["written"])
        assert proxy.heads and {r.user for r in cluster.api.requests} == {"gateway"}
        lines = open(key).read().splitlines()[1:-1]
        secrets = [token, self.PASSWORD, f"gate:{self.PASSWORD}", *lines[:3]]
        self.scan(gateway, secrets, token)

        # refused, and while nobody answers
        cluster.api.auth.revoke_token(token)
        cluster.api.close_watches(how="clean")
        gateway.status.wait(lambda i: i["degraded"])
        proxy.close()
        cluster.api.refuse()
        gateway.reload(gone=True)
        gateway.status.wait_state("backoff")
        self.scan(gateway, secrets, token)


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone may read /proc/PID/mem")
class TestWiped:
    """What was rotated is nowhere in the memory of the informer process either."""

    OLD, NEW = (".".join(segment(n) for n in range(k, k + 3)) for k in (10, 20))

    @staticmethod
    def requests(cluster, gateway, n=3):
        """So many rounds of new watches, each of which brings a change."""
        for k in range(n):
            cluster.steady(gateway)
            cluster.api.close_watches(how="clean")
            following(cluster, gateway, f"r{k}")

    def check(self, gateway, old, new):
        """Nothing of the old ones, while the new one is there: the scan does find."""
        memory = readable_memory(gateway.informer())
        assert new.encode() in memory
        assert not [x for x in traces(*old) if x in memory]

    @pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
    def test_token_of_a_file(self, cluster, pki, tls):
        """After a 401, as of a token that expires."""
        if tls:
            cluster.api.set_tls(pki.server_context())
        cluster.api.auth.add_token(self.OLD)
        gateway = prepared(cluster, self.OLD, "ca_file ca.pem;")
        gateway.write("ca.pem", open(pki.ca_file, "rb").read())
        started(gateway)
        self.requests(cluster, gateway, 1)
        assert self.OLD.encode() in readable_memory(gateway.informer())
        cluster.api.auth.add_token(self.NEW)
        gateway.write("token", self.NEW)
        cluster.api.auth.revoke_token(self.OLD)
        self.requests(cluster, gateway)
        self.check(gateway, [self.OLD], self.NEW)

    def test_while_a_watch_that_it_opened_goes_on(self, cluster):
        """A plugin's token, renewed before it expires: no request is made for it."""
        plugin = TestExecPlugin()
        cluster.api.auth.add_token(self.OLD)
        lifetime = datetime.timedelta(seconds=3)
        gateway = started(plugin.prepared(cluster, token=self.OLD, lifetime=lifetime))
        cluster.api.auth.add_token(self.NEW)
        plugin.says(gateway, self.NEW)
        informer_pid = gateway.informer()

        def renewed():
            """The new one is read before the old one is wiped."""
            memory = readable_memory(informer_pid)
            return self.NEW.encode() in memory and not any(x in memory for x in traces(self.OLD))

        wait_until(renewed)
        self.check(gateway, [self.OLD], self.NEW)
        assert not [r for r in cluster.api.requests if r.token == self.NEW]
        following(cluster, gateway)

    def test_key_of_a_certificate(self, cluster, pki):
        """With the certificate that it belongs to; its numbers are OpenSSL's to wipe."""
        cluster.api.set_tls(pki.server_context(client_ca=pki.ca_file))
        cluster.api.auth.client_ca = True
        for user in ("first", "second"):
            cluster.api.auth.set_rules(user, [Rule(READ)])
        more = "ca_file ca.pem; client_certificate c.pem; client_certificate_key k.pem;"
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF, more=more, start=False)
        gateway.write("ca.pem", open(pki.ca_file, "rb").read())

        def put(user):
            """Lines of the key, of which each is one as good as a whole."""
            cert, key = (open(path).read() for path in pki.client(user))
            gateway.write("c.pem", cert)
            gateway.write("k.pem", key)
            return key.splitlines()[1:-1]

        old = put("first")
        started(gateway)
        self.requests(cluster, gateway, 1)
        assert {r.user for r in cluster.api.requests} == {"first"}
        new = put("second")
        cluster.api.fault(status=401, times=2)
        cluster.api.close_watches(how="clean")

        def rotated():
            """Connections of the old one go when one is asked for, 2 s later at least."""
            self.requests(cluster, gateway, 1)
            memory = readable_memory(gateway.informer())
            return not [line for line in old if line.encode() in memory]

        wait_until(rotated)
        assert cluster.api.requests[-1].user == "second"
        self.check(gateway, old, new[0])


class TestClientCertificate:
    """client_certificate and client_certificate_key."""

    def test_used_and_rotated(self, cluster, pki):
        cluster.api.set_tls(pki.server_context(client_ca=pki.ca_file))
        cluster.api.auth.client_ca = True
        for user in ("first", "second"):
            cluster.api.auth.set_rules(user, [Rule(READ)])
        cluster.service("shop", "web")
        gateway = cluster.nginx(
            CONF,
            more="ca_file ca.pem; client_certificate c.pem; client_certificate_key k.pem;",
            start=False,
        )

        def put(user):
            cert, key = pki.client(user)
            gateway.write("c.pem", open(cert, "rb").read())
            gateway.write("k.pem", open(key, "rb").read())

        gateway.write("ca.pem", open(pki.ca_file, "rb").read())
        put("first")
        started(gateway)
        assert {r.user for r in cluster.api.requests} == {"first"}
        put("second")
        cluster.api.auth.set_rules("first", [])
        cluster.api.auth.rules.pop("first")
        # a certificate that is not accepted any more is 401 or 403
        cluster.api.fault(
            status=401, times=None, when=lambda r: r.user in ("", "first") and peer(r) != "second"
        )
        cluster.api.close_watches(how="rst")
        wait_until(
            lambda: any(r.user == "second" for r in cluster.api.requests), 20 * PATIENCE
        )

    def test_server_demands_one_we_lack(self, cluster, pki):
        import ssl

        context = pki.server_context(client_ca=pki.ca_file)
        context.verify_mode = ssl.CERT_REQUIRED
        cluster.api.set_tls(context)
        cluster.service("shop", "web")
        gateway = cluster.nginx(CONF, more="ca_file ca.pem;", start=False)
        gateway.write("ca.pem", open(pki.ca_file, "rb").read())
        gateway.start()
        gateway.status.wait_state("backoff")
        wait_until(lambda: gateway.status.resource(SLICES)["last_error"]["reason"])
        assert cluster.api.requests == []


def peer(_request):
    """Faults come before authentication: nothing is known of the peer then."""
    return ""
