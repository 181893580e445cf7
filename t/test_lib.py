# libkube.so as "make install-lib" leaves it: what it exports, a C++ program's
# view of its header, and the example against the stand-in API server.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""The installed library."""

import os
import re
import signal
import subprocess
import threading

import pytest
from apiserver import ApiServer, objects
from nginx import PATIENCE, wait_until

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.abspath(os.environ.get("KUBE_BUILD_DIR", "build/release"))
FLAVOUR = os.environ.get("KUBE_BUILD", "release")

pytestmark = pytest.mark.skipif(
    FLAVOUR not in ("release", "debug"), reason="libkube.so is built without sanitizers"
)


def run(*command, **keywords):
    """Its output; a failure shows what it said."""
    made = subprocess.run(command, capture_output=True, text=True, check=False, **keywords)
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stdout


@pytest.fixture(scope="module", name="installed")
def fixture_installed(tmp_path_factory):
    """The prefix below DESTDIR, from what was built."""
    dest = tmp_path_factory.mktemp("dest")
    # the rules of the installation alone: the build is there
    run(
        *("make", "-o", "build", "install-lib", "SUBMAKE=true", f"BUILD={FLAVOUR}"),
        *(f"OUT={BUILD}", f"DESTDIR={dest}", "prefix=/opt/kube"),
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if not k.startswith("MAKE")},
    )
    return dest / "opt/kube"


def test_package(tmp_path):
    """Everything that is installed, and what it needs."""
    run(
        *("make", "-o", "build", "package", "SUBMAKE=make -o build", f"BUILD={FLAVOUR}"),
        *(f"OUT={BUILD}", f"PACKAGES={tmp_path}", "MODULES_DIR=/usr/lib/nginx/modules"),
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if not k.startswith("MAKE")},
    )
    (package,) = tmp_path.glob("nginx-kube-informer_*.deb")
    names = {line.split()[5] for line in run("dpkg-deb", "-c", package).splitlines()}
    assert names >= {
        "./usr/bin/kube-informer",
        "./usr/include/kube/kube.h",
        "./usr/lib/libkube.so.0",
        "./usr/lib/nginx/modules/ngx_kube_module.so",
        "./usr/lib/nginx/modules/ngx_http_kube_module.so",
        "./usr/share/man/man3/kube.3",
        "./usr/share/doc/nginx-kube-informer/copyright",
    }
    needs = run("dpkg-deb", "-f", package, "Depends")
    assert {"libcurl4", "libcjson1", "libyaml-0-2"} <= {
        re.sub("t64$", "", need.split()[0]) for need in needs.split(", ")
    }
    assert os.environ.get("NGINX_SRC") or "nginx-abi-" in needs


@pytest.fixture(scope="module", name="flags")
def fixture_flags(installed):
    """What pkg-config says, as a program would ask it."""
    # nothing else is installed for those who build programs
    env = dict(os.environ, PKG_CONFIG_LIBDIR=str(installed / "lib/pkgconfig"))
    env.pop("PKG_CONFIG_PATH", None)
    flags = run(
        *("pkg-config", f"--define-variable=prefix={installed}"),
        *(f"--define-variable=libdir={installed}/lib", "--cflags", "--libs", "kube"),
        env=env,
    )
    return flags.split() + [f"-Wl,-rpath,{installed}/lib"]


@pytest.fixture(scope="module", name="programs")
def fixture_programs(flags, tmp_path_factory):
    """The examples and the test's own program, compiled against what was installed."""
    folder = tmp_path_factory.mktemp("programs")
    strict = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-g")
    sources = ("src/lib/example/example.c", "src/lib/example/ready.c", "t/lib/offers.c")
    made = []
    for source in sources:
        program = folder / os.path.basename(source)[:-2]
        command = ["cc", *strict, os.path.join(ROOT, source), "-o", str(program), *flags]
        made.append((subprocess.Popen(command, stderr=subprocess.PIPE, text=True), program))
    for process, program in made:
        errors = process.communicate()[1]
        assert process.returncode == 0, f"{program}: {errors}"
    return folder


def declared():
    """The functions of the header."""
    with open(os.path.join(ROOT, "src/lib/kube.h"), encoding="utf-8") as header:
        text = re.sub(r"/\*.*?\*/", "", header.read(), flags=re.S)
    return set(re.findall(r"\b(kube_\w+)\(", text))


def test_symbols(installed):
    library = installed / "lib/libkube.so.0"
    lines = run("nm", "-D", "--defined-only", str(library)).splitlines()
    names = {line.split()[-1].partition("@@")[0] for line in lines if " A " not in line}
    assert names == declared()
    assert all(line.endswith("@@KUBE_0") for line in lines if " A " not in line)
    assert "SONAME" in run("readelf", "-d", str(library))
    assert os.readlink(installed / "lib/libkube.so") == "libkube.so.0"


def test_manual_names_each_function():
    with open(os.path.join(ROOT, "src/lib/kube.3"), encoding="utf-8") as page:
        named = set(re.findall(r"\bkube_[a-z0-9_]+", page.read()))
    assert declared() - named == set()


def test_manual(installed):
    manual = installed / "share/man/man3/kube.3"
    made = subprocess.run(
        ["man", "--warnings", "-l", str(manual)], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0 and made.stderr == ""
    # it names no function that is not there; kube_options_t() is a value of a type
    named = set(re.findall(r"\b(kube_[a-z0-9_]+)(?<!_t) ?\(\)", manual.read_text()))
    assert named and named <= declared()


CPP = """
#include <kube/kube.h>
#include <kube/kube.h>
#include <string>

static void added(void *ctx, const kube_v1_object_t *object, int)
{
    *static_cast<std::string *>(ctx) += object->name;
}

int main()
{
    kube_t *kube = 0;
    std::string names;
    kube_informer_t *services;
    kube_options_t options = kube_options_t();
    kube_handlers_t handlers = kube_handlers_t();

    options.size = sizeof(options);
    options.server = "http://127.0.0.1:1";
    handlers.size = sizeof(handlers);
    handlers.ctx = &names;
    handlers.added = added;

    if (kube_create(&options, &kube, 0, 0) != KUBE_E_OK
        || kube_informer(kube, KUBE_V1_SERVICE, 0, &services) != KUBE_E_OK
        || kube_informer_add_handlers(services, &handlers, 0) != KUBE_E_OK
        || kube_start(kube) != KUBE_E_OK)
    {
        return 1;
    }

    kube_run_once(kube, 0);
    kube_destroy(kube);
    return 0;
}
"""


def test_cplusplus(flags, tmp_path):
    source = tmp_path / "program.cc"
    source.write_text(CPP)
    strict = ("-pedantic", "-Wall", "-Wextra", "-Werror")
    run("g++", "-std=c++98", *strict, str(source), "-o", str(tmp_path / "program"), *flags)
    run(str(tmp_path / "program"))
    run("g++", "-std=c++17", *strict, "-fsyntax-only", str(source), *flags)


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{name: it, cluster: {server: "%s"}}]
users: [{name: me, user: {}}]
contexts: [{name: here, context: {cluster: it, user: me}}]
"""


VALGRIND = ("valgrind", "-q", "--error-exitcode=9", "--leak-check=full")
VALGRIND += ("--errors-for-leak-kinds=definite,indirect",)


class Example:
    """A running example."""

    def __init__(self, program, *args):
        self.lines = []
        self.process = subprocess.Popen(
            [str(program), *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        self.lines.extend(line.strip() for line in self.process.stdout)

    def has(self, line):
        """Waits for a line."""
        wait_until(lambda: self._at(line), timeout=60 * PATIENCE, what=line)

    def _at(self, line):
        assert self.process.poll() is None, self.process.stderr.read()
        return line in list(self.lines)

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def test_example(programs, tmp_path):
    config = tmp_path / "kubeconfig"
    with ApiServer() as api:
        config.write_text(KUBECONFIG % api.url)
        api.put(objects.service("shop", "a"))
        with Example(programs / "example", str(config)) as program:
            program.has("there shop/a 1")
            api.wait_watch("services")
            api.put(objects.service("shop", "b"))
            program.has("added shop/b 1")
            api.delete("services", "shop", "a")
            program.has("deleted shop/a 1")

            # a server that comes back, with what happened meanwhile
            api.refuse()
            api.put(objects.service("shop", "c"))
            api.listen()
            program.has("added shop/c 1")

            program.process.send_signal(signal.SIGTERM)
            code = program.process.wait(timeout=60 * PATIENCE)
            assert code == 0, program.process.stderr.read()
            assert program.lines == [
                "there shop/a 1",
                "added shop/b 1",
                "deleted shop/a 1",
                "added shop/c 1",
            ]


def slice_of(name, service, ready):
    """A slice of so many ready endpoints, and one that is not."""
    made = [objects.endpoint(f"10.0.0.{i + 1}") for i in range(ready)]
    made.append(objects.endpoint("10.0.0.99", ready=False))
    return objects.slice("shop", name, service, made)


def test_ready(programs, tmp_path):
    """The controller: the sum over all slices of a Service, whatever happens to them."""
    config = tmp_path / "kubeconfig"
    with ApiServer() as api:
        config.write_text(KUBECONFIG % api.url)
        api.put(slice_of("a-1", "a", 2))
        api.put(slice_of("a-2", "a", 3))
        with Example(programs / "ready", str(config), "shop") as program:
            program.has("shop/a 5")
            api.wait_watch("endpointslices", "shop")
            api.put(slice_of("a-1", "b", 1))
            program.has("shop/b 1")
            program.has("shop/a 3")
            api.delete("endpointslices", "shop", "a-2")
            program.has("shop/a 0")
            program.process.send_signal(signal.SIGTERM)
            code = program.process.wait(timeout=60 * PATIENCE)
            assert code == 0, program.process.stderr.read()


def test_offers(programs):
    """t/lib/offers.c, under valgrind: what the library offers beside lists and watches."""
    with ApiServer() as api:
        api.fault(status=403, resource="pods", times=None)
        subsets = [
            {"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 8080}]},
            {"addresses": [{"ip": "10.0.0.2"}], "ports": [{"port": 9090}]},
        ]
        meta = {"namespace": "shop", "name": "web"}
        api.put(
            {"kind": "Endpoints", "apiVersion": "v1", "metadata": meta, "subsets": subsets}
        )
        run(*VALGRIND, str(programs / "offers"), api.url, timeout=120 * PATIENCE)


def test_example_without_server(programs, tmp_path):
    made = subprocess.run(
        [str(programs / "example"), str(tmp_path / "none")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 1 and "input/output error" in made.stderr
