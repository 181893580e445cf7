# Ring 3: nginx against the real control plane.  One control plane and one
# network namespace for the session, everything else for one test.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures of the tests with a real API server."""

import os
import sys
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(HERE)
for _folder in (os.path.join(TREE, "cluster"), os.path.join(TREE, "lib"), HERE):
    sys.path.insert(0, _folder)

import netns  # noqa: E402
import nginx as nginx_lib  # noqa: E402
import report  # noqa: E402
import rig  # noqa: E402
from testbed import Testbed  # noqa: E402

TIMEOUT = 300
BEGAN = time.monotonic()


def pytest_collection_modifyitems(config, items):
    """Nothing may hang: a test that does is a failure with a stack."""
    if config.pluginmanager.hasplugin("timeout"):
        for item in items:
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TIMEOUT * (5 if rig.LONG else 1)))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """The ends of the logs of a failed test."""
    outcome = yield
    made = outcome.get_result()
    if made.failed:
        for gateway in getattr(item, "gateways", list)():
            made.sections.append((f"nginx {gateway.prefix}", gateway.tail(60)))


def pytest_terminal_summary(terminalreporter):
    """Prints the figures, whether the run passed or not."""
    lines = report.REPORT.table()
    if lines:
        terminalreporter.section("figures")
        for line in lines:
            terminalreporter.write_line(line)
        report.REPORT.write(terminalreporter.stats, time.monotonic() - BEGAN)


@pytest.fixture
def figures():
    """Where a test puts what it measured."""
    return report.REPORT


@pytest.fixture(scope="session")
def net():
    """The network namespace; this thread is inside until the session ends."""
    module = os.path.join(nginx_lib.BUILD_DIR, "ngx_kube_module.so")
    if not os.path.exists(module) and "KUBE_NGINX" not in os.environ:
        pytest.exit(f"no modules in {nginx_lib.BUILD_DIR}: run make build", 1)
    why = "it needs root" if os.geteuid() else netns.available()
    if why:
        message = f"no network namespace can be made here: {why}"
        if os.environ.get("ALLOW_SKIP") != "1":
            pytest.exit(message, 1)
        print(f"\n***** SKIPPED ring 3: {message} *****", file=sys.__stderr__)
        pytest.skip(message)
    space = netns.NetNS(inside=True)
    with space:
        yield space
        space.leave()
        left = space.pids()
    assert not left, "processes left in the namespace"


@pytest.fixture(scope="session")
def tb(net, tmp_path_factory):
    """The control plane."""
    directory = tmp_path_factory.mktemp("testbed")
    with Testbed(directory, tokens=rig.TOKENS) as testbed:
        yield testbed


@pytest.fixture
def world(request, net, tb):
    """A Kubernetes namespace of the test's own, and what it starts."""
    made = rig.World(net, tb)
    request.node.gateways = lambda: made.gateways
    with made:
        yield made
