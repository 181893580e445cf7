# What the tests with nginx and the stand-in API server share: fixtures, the
# ends of logs beside a failure, and the figures that are printed at the end.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures of the tests with nginx."""

import collections
import functools
import os
import sys
import threading

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib"))

import nginx as nginx_lib  # noqa: E402
from cluster import Cluster  # noqa: E402

TIMEOUT = 90 * nginx_lib.PATIENCE


def pytest_configure(config):
    """Markers."""
    config.addinivalue_line("markers", "slow: takes more than ten seconds")
    config.addinivalue_line("markers", "cluster(**keywords): settings of the stand-in")


def pytest_collection_modifyitems(config, items):
    """
    Nothing may hang: a test that does is a failure with a stack.  Files with
    slow tests go first, so that no process is left alone with one at the end.
    """
    slow = collections.Counter(
        item.fspath for item in items if item.get_closest_marker("slow") is not None
    )
    items.sort(key=lambda item: -slow[item.fspath])
    if config.pluginmanager.hasplugin("timeout"):
        for item in items:
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TIMEOUT))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """The ends of the logs of a failed test."""
    outcome = yield
    report = outcome.get_result()
    if not report.failed:
        return
    for gateway in getattr(item, "gateways", list)():
        report.sections.append((f"nginx {gateway.prefix}", gateway.tail(60)))


@pytest.fixture
def figure(request):
    """figure(text): printed after the run, whether it passes or not."""
    return lambda text: request.node.user_properties.append(("figure", text))


def pytest_terminal_summary(terminalreporter):
    """Prints the figures, and what was skipped for want of something."""
    lines = []
    for report in sum(terminalreporter.stats.values(), []):
        name = getattr(report, "nodeid", "").rpartition("::")[2]
        if getattr(report, "when", "") == "teardown":
            figures = [v for k, v in report.user_properties if k == "figure"]
            lines += [f"{name}: {text}" for text in figures]
        elif getattr(report, "skipped", False) and "*****" in str(report.longrepr):
            lines.append(f"{name}: {report.longrepr[2]}")
    if lines:
        terminalreporter.section("figures")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture
def cluster(request):
    """A Cluster; a mark cluster(...) gives keywords of the API server."""
    mark = request.node.get_closest_marker("cluster")
    made = Cluster(**(mark.kwargs if mark else {}))
    request.node.gateways = lambda: made.running
    with made:
        yield made
    left = [t.name for t in threading.enumerate() if t.name in ("apiserver", "backends")]
    assert not left, f"threads left over: {left}"


@pytest.fixture
def public_path():
    """As tmp_path, but nginx's unprivileged processes may look there, too."""
    with nginx_lib.public_directory() as path:
        yield path


@pytest.fixture(scope="session")
def pki_of(tmp_path_factory):
    """pki_of(name): a CA, made once; so are its certificates, for keys take time."""
    from apiserver_tls import Pki

    class Kept(Pki):
        """Issues each label once."""

        def __init__(self, directory):
            super().__init__(directory)
            self.issued = {}

        def issue(self, label, *names, **options):
            """The paths of a certificate and its key."""
            if label not in self.issued:
                self.issued[label] = super().issue(label, *names, **options)
            return self.issued[label]

    return functools.lru_cache(None)(lambda name: Kept(tmp_path_factory.mktemp(name)))


@pytest.fixture
def pki(pki_of):
    """The CA most tests use."""
    return pki_of("good")


@pytest.fixture(scope="session", autouse=True)
def nothing_left():
    """No nginx of ours and no directory of its outlives the session."""
    yield
    left = [p for p in nginx_lib.PREFIXES if os.path.exists(p)]
    assert not left, f"left over: {left}"
