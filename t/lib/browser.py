# Debian's Chromium, driven by playwright, which comes from PyPI into a virtual
# environment in build/tools (its wheel has all it needs), with axe-core.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""A browser for the status page."""

import contextlib
import fcntl
import glob
import importlib
import os
import shutil
import subprocess
import sys
import tempfile

from nginx import ROOT, WAIT, wait_until

PACKAGES = ["playwright==1.65.2", "axe-playwright-python==0.1.8"]
HOME = os.path.join(ROOT, "build", "tools", "browser")

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync"
    " --disable-background-networking --disable-component-update"
).split()

# What the page must not do is noted before its first script runs.
WATCH = """
window.violations = [];
window.tasks = [];
addEventListener("securitypolicyviolation", (event) =>
    violations.push(`${event.violatedDirective} ${event.blockedURI}`));
new PerformanceObserver((list) => list.getEntries().forEach((entry) =>
    tasks.push(Math.round(entry.duration))))
    .observe({ type: "longtask", buffered: true });
"""


class Unavailable(Exception):
    """The packages cannot be had."""


def _install():
    """Makes the virtual environment, once; two test processes may ask."""
    os.makedirs(os.path.dirname(HOME), exist_ok=True)
    with open(HOME + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = os.path.join(HOME, " ".join(PACKAGES))
        if os.path.exists(done):
            return
        shutil.rmtree(HOME, ignore_errors=True)
        for command in (
            [sys.executable, "-m", "venv", HOME],
            [os.path.join(HOME, "bin", "pip"), "install", "-q", *PACKAGES],
        ):
            made = subprocess.run(command, capture_output=True, timeout=600)
            if made.returncode != 0:
                # pip's retries go before; each test that is skipped repeats this
                said = (made.stdout + made.stderr).decode("utf-8", "replace").split("\n")
                raise Unavailable(next((s for s in reversed(said) if s.strip()), command[0]))
        with open(done, "w", encoding="ascii"):
            pass


def _import(name):
    (path,) = glob.glob(os.path.join(HOME, "lib", "python3*", "site-packages"))
    if path not in sys.path:
        sys.path.append(path)
    return importlib.import_module(name)


def axe_source():
    """axe-core, as one script."""
    base = os.path.dirname(_import("axe_playwright_python").__file__)
    (path,) = glob.glob(os.path.join(base, "**", "axe.min.js"), recursive=True)
    with open(path, encoding="utf-8") as f:
        return f.read()


@contextlib.contextmanager
def chromium():
    """A running Chromium with a profile of its own; raises Unavailable."""
    path = shutil.which("chromium")
    assert path, "chromium is not installed: sh t/util/deps.sh test"
    _install()
    api = _import("playwright.sync_api")
    with tempfile.TemporaryDirectory(prefix="kube-t-chromium-") as home:
        with api.sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=path, args=FLAGS, env={**os.environ, "HOME": home}
            )
            try:
                yield browser
            finally:
                browser.close()


class View:
    """A window on the status page, and what may be asked of it."""

    def __init__(self, browser, port, path="/kube/", width=1280, height=900, **options):
        self.said = []
        self.requests = []
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, **options
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(WAIT * 1000)
        self.page.add_init_script(WATCH)
        self.page.on("console", lambda m: self.said.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda e: self.said.append(f"error: {e}"))
        self.page.on("dialog", lambda d: self.said.append(f"dialog: {d.message}"))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.goto(f"http://127.0.0.1:{port}{path}")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            assert self.said == []
            assert self.script("window.violations ?? []") == []
        self.context.close()

    def script(self, text):
        """The value of an expression in the page."""
        return self.page.evaluate(text)

    def wait(self, text, what=None):
        """Until an expression is true; returns its value."""
        return wait_until(lambda: self.script(text), None, what or text)

    def wait_services(self, shown):
        """Until the list says so."""
        self.wait(
            f"document.getElementById('shown').textContent.startsWith({shown!r})",
            lambda: self.script("document.getElementById('shown').textContent"),
        )

    def rows(self, section="services"):
        """The rows of a table that are drawn, as lists of texts."""
        return self.script(
            f"[...document.querySelectorAll('#{section} tbody tr:not(.space)')]"
            ".map((tr) => [...tr.children].map((cell) => cell.textContent))"
        )

    def names(self):
        """The Services that are drawn."""
        return [row[0] for row in self.rows()]

    def banner(self):
        """An informer's first line, and its look."""
        return self.script(
            "(() => { const b = document.querySelector('.informer .banner');"
            " return b && [b.textContent, b.className]; })()"
        )

    def overflow(self):
        """By how many pixels the page is wider than its window."""
        return self.script("document.documentElement.scrollWidth - innerWidth")

    def axe(self):
        """What axe-core finds serious or critical."""
        self.script(axe_source() + "; 0")
        found = self.script(
            "axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations"
            ".filter((v) => ['serious', 'critical'].includes(v.impact))"
            ".map((v) => `${v.id}: ${v.nodes.map((n) => n.target + ' ' + n.failureSummary)}`))"
        )
        return found
