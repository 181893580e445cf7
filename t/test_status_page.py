# The status page in a browser: what it draws and keeps drawing, that any number
# of Services does not stall it, that a keyboard and a phone are enough.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""The status page."""

import contextlib
import gzip
import os
import re
import subprocess
from pathlib import Path

import browser as browser_lib
import objects
import pytest
from browser import Unavailable, View, chromium
from cluster import informer
from nginx import free_port, wait_until

FOLDER = Path(__file__).resolve().parents[1] / "ngx_module" / "page"
FILES = {name: (FOLDER / name).read_text() for name in ("status.html", "status.css", "status.js")}

CONF = """
    upstream web { kube_service shop/web:http; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://web; } }
"""
ALL = "namespaces all;"

STALL = 100 if os.environ.get("KUBE_PROOF") else 1000  # ms; others run beside it
BANNER = "document.querySelector('.informer .banner')"


@pytest.fixture(scope="module")
def browser():
    """Chromium."""
    try:
        with chromium() as made:
            yield made
    except Unavailable as error:
        pytest.skip(f"***** SKIPPED the status page in Chromium: no playwright: {error} *****")


def test_says_in_a_line_why_there_is_no_browser(tmp_path, monkeypatch):
    """pip says its retries, too, and each test that is skipped repeats what is said."""

    def run(command, **_options):
        failed = command[0].endswith("pip")
        said = b"WARNING: Retrying\nWARNING: Retrying\nERROR: none of that\n" if failed else b""
        return subprocess.CompletedProcess(command, int(failed), b"", said)

    monkeypatch.setattr(browser_lib, "HOME", str(tmp_path / "home"))
    monkeypatch.setattr(browser_lib.subprocess, "run", run)
    with pytest.raises(Unavailable, match="^ERROR: none of that$"):
        browser_lib._install()


@pytest.fixture
def gateway(cluster):
    """Some Services, and an nginx that follows them."""
    cluster.service("shop", "web", 2)
    cluster.service("shop", "api", 1)
    cluster.service("infra", "echo", 1)
    cluster.service("shop", "zero", pods=[])
    cluster.service("shop", "bad", pods=[])
    cluster.slice(
        "shop",
        "bad",
        [
            objects.endpoint("127.0.5.2", ready=False, serving=False, pod="bad-pod"),
            objects.endpoint("169.254.169.254"),
        ],
        ports=(("http", 8080),),
    )
    made = cluster.nginx(CONF, more=ALL)
    made.status.wait_state("watching")
    made.status.wait_state("watching", "services")
    return made


class TestFiles:
    """What needs no browser."""

    def test_nothing_from_outside(self):
        """No attribute that styles or runs, nothing fetched from elsewhere."""
        frame = FILES["status.html"]
        assert re.findall(r'\b(?:src|href)="([^"]*)"', frame) == [
            "data:,",
            "?asset=status.css",
            "?asset=status.js",
            "?asset=api/v1/status",
        ]
        assert not re.search(r"<style|<img|\bstyle=|\bon\w+=", frame)
        assert re.findall(r"<script[^>]*>(.*?)</script>", frame, re.S) == [""]
        assert not re.search(r"url\(|@import|https?:", FILES["status.css"])
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(|https?:",
            FILES["status.js"],
        )

    def test_placeholder(self):
        """The place that is filled in, once, where scripts are off."""
        frame = FILES["status.html"]
        assert re.findall(r"<!-- \w+ -->", frame) == ["<!-- facts -->"]
        assert re.search(r"<noscript>.*<!-- facts -->.*</noscript>", frame, re.S)

    def test_bytes(self, cluster, figure):
        """What a visit costs; the figures are for the reader."""
        cluster.service("shop", "web", 2)
        status = cluster.nginx(CONF).status
        total = [0, 0]
        for path in ("/", "/?asset=status.css", "/?asset=status.js", "/api/v1/status"):
            body = status.get(path).body
            sizes = [len(body), len(gzip.compress(body, 6))]
            total = [a + b for a, b in zip(total, sizes)]
            figure(f"{path} {sizes[0]} bytes, gzip {sizes[1]}")
        figure(f"all {total[0]} bytes, gzip {total[1]}")
        assert total[1] < 32 << 10


class TestDrawing:
    """What there is, and what is wrong with it."""

    def test_names_what_there_is(self, browser, gateway):
        with View(browser, gateway.status_port) as view:
            view.wait_services("5 Services")
            assert {"shop/web", "shop/api", "infra/echo"} <= set(view.names())
            text = view.script("document.body.innerText")
            for word in ("watching", "endpointslices", "shop/web:http", "kube"):
                assert word in text, word
            headline, look = view.banner()
            assert headline == "Serving and following the API server"
            assert look == "banner good"
            assert view.script("document.getElementById('fault').hidden")
            assert view.script("document.querySelector('noscript dl')") is None
            (row,) = view.rows("upstreams")
            assert row[:4] == ["kube_service web", "shop/web:http", "shop/web:http", "2"]
            assert row[-1].startswith("nginx.conf:")

    def test_problems_come_first(self, browser, cluster):
        pods = cluster.pods(1)
        for n in range(60):
            cluster.service("shop", f"s{n:02d}", pods=pods if n != 41 else [])
        gateway = cluster.nginx(
            """
    upstream web { kube_service shop/s01; }
    upstream gone { kube_service shop/gone; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://web; }
        location /gone { proxy_pass http://gone; } }
"""
        )
        with View(browser, gateway.status_port) as view:
            view.wait_services("60 Services, 1 without a usable endpoint")
            assert view.names()[:3] == ["shop/s41", "shop/s00", "shop/s01"]
            assert [r[0] for r in view.rows("upstreams")] == [
                "kube_service gone",
                "kube_service web",
            ]
            text = view.script("document.getElementById('problems').innerText")
            assert "kube_service gone" in text and "shop/gone" in text
            view.page.check("#only")
            view.wait_services("1 Service of 60")
            assert view.names() == ["shop/s41"]

    def test_is_not_green_while_it_does_not_follow(self, browser, cluster, gateway):
        with View(browser, gateway.status_port) as view:
            view.wait_services("5 Services")
            cluster.api.refuse()
            gateway.status.wait(lambda i: i["degraded"])
            view.page.click("#refresh")
            view.wait(f"{BANNER}.textContent.includes('Not following')")
            headline, look = view.banner()
            assert re.match(r"Serving\. Not following since \d\d:\d\d:\d\d: .*connect", headline)
            assert look == "banner warn"
            assert "unreachable" in view.script("document.getElementById('problems').innerText")
            cluster.api.listen()
            view.wait(f"{BANNER}.className === 'banner good'")

    def test_one_service(self, browser, gateway):
        """Each endpoint, and why it is not used; by its address, too."""
        with View(browser, gateway.status_port) as view:
            view.page.click("text=shop/bad")
            view.wait("document.querySelectorAll('#endpoints tbody th').length === 2")
            rows = view.rows("endpoints")
            assert [r[:3] for r in rows] == [
                ["127.0.5.2", "8080", "no: not ready"],
                ["169.254.169.254", "8080", rows[1][2]],
            ]
            assert rows[1][2].startswith("no: address denied")
            assert rows[0][4] == "bad-pod"
            link = view.script("document.getElementById('detail-json').href")
            assert view.page.request.get(link).json()["name"] == "bad"
            address = view.script("location.hash")
        with View(browser, gateway.status_port, "/kube/" + address) as view:
            view.wait("document.getElementById('detail').open")
            view.wait("document.querySelectorAll('#endpoints tbody th').length === 2")
            view.page.click("#close")
            view.wait("location.hash === ''")

    def test_service_of_many_endpoints(self, browser, cluster):
        cluster.service("shop", "big", pods=[])
        for n in range(20):
            cluster.api.put(
                objects.slice(
                    "shop", f"big-{n}", "big", [f"127.20.{n}.{k + 1}" for k in range(100)]
                )
            )
        gateway = cluster.nginx(CONF)
        wait_until(lambda: len(gateway.status.service("shop", "big")["endpoints"]) == 2000)
        with View(browser, gateway.status_port, "/kube/#default/shop/big") as view:
            view.wait("document.querySelectorAll('#endpoints tbody th').length > 10")
            assert len(view.rows("endpoints")) < 200
            view.script("document.querySelector('#endpoints .frame').scrollTop = 1e9")
            last = "document.querySelector('#endpoints tbody[role] tr:last-child').ariaRowIndex"
            view.wait(f"{last} === '2001'")

    def test_names_are_text(self, browser, cluster):
        """Whatever the API server's users write is shown, and nothing else."""
        evil = '<img src=x onerror=alert(1)>"\'`${1}<script>alert(2)</script>'
        cluster.service("shop", "web", pods=[])
        cluster.slice(
            "shop",
            "web",
            [objects.endpoint("127.0.6.1", node=evil, zone=evil, pod=evil)],
            ports=(("http", 8080),),
        )
        cluster.api.fault(status=403, reason=evil, message=evil, times=4, verb="list")
        gateway = cluster.nginx(CONF)
        with View(browser, gateway.status_port, "/kube/#default/shop/web") as view:
            view.wait("document.querySelectorAll('#endpoints tbody th').length === 1")
            assert "<img src=x onerror" in str(view.rows("resources"))
            assert view.script("document.querySelectorAll('img').length") == 0
            assert view.script("document.querySelectorAll('script').length") == 1

    def test_two_informers(self, browser, cluster):
        cluster.service("shop", "web", 1)
        gateway = cluster.nginx(
            CONF,
            block=informer(cluster.api.url)
            + informer(
                cluster.api.url, "label_selector services app=none;", "blue", "kube_blue 4m"
            ),
        )
        with View(browser, gateway.status_port) as view:
            view.wait_services("1 Service,")
            assert view.script("document.querySelectorAll('.banner[role=status]').length") == 2
            view.page.select_option("#informer", "blue")
            view.wait_services("0 Services")
            view.page.select_option("#informer", "default")
            view.wait_services("1 Service,")

    def test_without_scripts(self, browser, gateway):
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{gateway.status_port}/kube/")
        text = page.inner_text("body")
        assert "synced" in text and "watching" in text and "endpointslices" in text
        assert not page.is_visible("#controls") and not page.is_visible("#services")
        page.click("noscript a")
        assert '"informers"' in page.inner_text("body")
        context.close()

    def test_exact_location(self, browser, cluster):
        """The page, its parts and its figures come from one path."""
        cluster.service("shop", "web", 1)
        port = free_port()
        cluster.nginx(
            CONF + "server { listen 127.0.0.1:%d; location = /x { kube_status page; } }" % port
        )
        with View(browser, port, "/x") as view:
            view.wait_services("1 Service,")
            view.page.click("#services button")
            view.wait("document.querySelectorAll('#endpoints tbody th').length === 1")
            assert {url.split("?")[0] for url in view.requests} == {f"http://127.0.0.1:{port}/x"}


class TestUse:
    """Search, refresh, keyboard."""

    def test_search(self, browser, gateway):
        with View(browser, gateway.status_port) as view:
            view.wait_services("5 Services")
            for text, names in (
                ("echo", {"infra/echo"}),
                ("SHOP", {"shop/web", "shop/api", "shop/zero", "shop/bad"}),
                ("shop api", {"shop/api"}),
                ("infra/", {"infra/echo"}),
                ("http 80/tcp echo", {"infra/echo"}),
                ("nothing-like-it", set()),
                ("", {"shop/web", "shop/api", "shop/zero", "shop/bad", "infra/echo"}),
            ):
                view.page.fill("#search", text)
                assert set(view.names()) == names, text
            # the Enter key is no form that reloads
            view.page.fill("#search", "echo")
            view.page.press("#search", "Enter")
            assert view.names() == ["infra/echo"]
            assert len([u for u in view.requests if "asset" not in u]) == 1

    def test_refresh_in_place(self, browser, cluster, gateway):
        """Figures change under the reader's hand; nothing else does."""
        with View(browser, gateway.status_port) as view:
            view.wait_services("5 Services")
            view.page.fill("#search", "shop")
            view.page.focus("#search")
            view.script("void (document.querySelector('#services tbody tr th').mine = 1)")
            cluster.service("shop", "new", 1)
            view.wait("document.querySelector('#services').textContent.includes('shop/new')")
            assert view.script("document.activeElement.id") == "search"
            assert view.script("document.getElementById('search').value") == "shop"
            kept = "[...document.querySelectorAll('#services tbody th')].some((th) => th.mine)"
            assert view.script(kept)
            assert len([u for u in view.requests if "asset" not in u]) == 1

    def test_pause(self, browser, cluster, gateway):
        with View(browser, gateway.status_port) as view:
            view.wait_services("5 Services")
            view.page.clock.install()
            view.page.reload()
            view.wait_services("5 Services")
            view.page.click("#pause")
            assert view.page.get_attribute("#pause", "aria-pressed") == "true"
            asked = len(view.requests)
            view.page.clock.run_for(60000)
            assert len(view.requests) == asked
            cluster.service("shop", "new", 1)
            cluster.equal(gateway)
            view.page.click("#refresh")
            view.wait_services("6 Services")
            view.page.click("#pause")
            with view.page.expect_request("**"):
                view.page.clock.run_for(6000)

    def test_changes_as_they_come(self, browser, cluster, gateway):
        """A list of them; what is read aloud is their number."""
        with View(browser, gateway.status_port) as view:
            view.wait_services("5 Services")
            view.wait("document.getElementById('news').textContent === 'Following.'")
            cluster.service("shop", "new", 1)
            text = "document.getElementById('events').textContent"
            view.wait(f"{text}.includes('services shop/new')")
            view.wait("document.getElementById('news').textContent.startsWith('2 changes')")
            assert view.script("document.getElementById('news').role") == "status"
            assert view.script("document.querySelector('#events [aria-live]')") is None
            assert view.axe() == []
            view.page.click("#pause")
            cluster.service("shop", "unseen", 1)
            cluster.equal(gateway)
            view.page.click("#pause")
            view.wait_services("7 Services")
            assert not view.script(f"{text}.includes('unseen')")

    def test_nginx_goes_away(self, browser, gateway):
        """The page says so, keeps what it has, and recovers by itself."""
        with View(browser, gateway.status_port) as view:
            view.wait_services("5 Services")
            view.page.route(re.compile("asset=api"), lambda route: route.abort())
            view.wait("!document.getElementById('fault').hidden")
            assert "cannot read the status" in view.page.inner_text("#fault")
            assert len(view.names()) == 5
            view.page.unroute(re.compile("asset=api"))
            view.wait("document.getElementById('fault').hidden")
            view.said = [s for s in view.said if "Failed to load resource" not in s]

    def test_keyboard(self, browser, gateway):
        """Everything without a mouse, and the focus is always somewhere sensible."""
        with View(browser, gateway.status_port) as view:
            press = view.page.keyboard.press
            focus = "document.activeElement"
            view.wait_services("5 Services")
            seen = []
            while not seen or seen[-1] != "search":
                press("Tab")
                seen.append(view.script(f"{focus}.id || {focus}.ariaLabel"))
                assert len(seen) < 20, seen
            assert "pause" in seen and "refresh" in seen
            view.page.keyboard.type("shop")
            press("Tab")
            assert view.script(f"{focus}.id") == "only"
            press("Tab")
            assert view.script(f"{focus}.textContent") == view.names()[0]
            press("ArrowDown")
            assert view.script(f"{focus}.textContent") == view.names()[1]
            press("End")
            assert view.script(f"{focus}.textContent") == view.names()[-1]
            press("Home")
            press("ArrowDown")
            name = view.script(f"{focus}.textContent")
            press("Enter")
            view.wait("document.getElementById('detail').open")
            view.wait(f"document.getElementById('detail-title').textContent === {name!r}")
            assert view.script("document.getElementById('detail').contains(document.activeElement)")
            press("Escape")
            view.wait("!document.getElementById('detail').open")
            assert view.script(f"{focus}.textContent") == name
            # one stop for all rows
            press("Tab")
            assert view.script(f"{focus}.closest('#services')") is None


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_ten_thousand_services(browser, cluster, figure):
    """All of them, without a task that stalls the page."""
    cluster.api.load_scale(10000, 3)
    gateway = cluster.nginx(CONF, block=informer(cluster.api.url, ALL, zone="kube 64m"))
    longest = []
    for _ in range(3):
        # a busy machine may stop any task: one run without is the proof
        with View(browser, gateway.status_port) as view:
            view.wait_services("10,000 Services, ")
            assert len(view.rows()) < 200
            view.page.focus("#services tbody button")
            view.page.keyboard.press("End")
            last = "document.activeElement.textContent"
            assert view.script(last) == "ns-009/svc-09999"
            assert view.script("document.activeElement.closest('tr').ariaRowIndex") == "10001"
            for top in range(0, 360000, 24000):
                view.script(f"void (document.querySelector('.rows').scrollTop = {top})")
                view.script("new Promise((done) => requestAnimationFrame(() => done()))")
            for text in ("s", "svc-0", "svc-09999", "", "ns-00"):
                view.page.fill("#search", text)
            view.page.fill("#search", "svc-01234")
            assert view.names() == ["ns-004/svc-01234"]
            view.page.click("#refresh")
            view.wait("document.getElementById('updated').textContent")
            tasks = view.script("window.tasks")
            longest.append(max(tasks, default=0))
        if longest[-1] <= STALL:
            break
    figure(f"the longest task took {longest} ms (0: below 50)")
    assert min(longest) <= STALL


def test_many_ports_and_a_long_error(browser, cluster, gateway):
    """On a phone the ports are cut, not the row; an error has no word too long."""
    ports = [(f"a-long-port-name-{n}", 8000 + n, 8000 + n) for n in range(4)]
    cluster.api.put(objects.service("shop", "many", ports=ports, type="LoadBalancer"))
    with View(browser, gateway.status_port, width=360) as view:
        view.wait_services("6 Services")
        rows = "[...document.querySelectorAll('#services tbody[role] tr:not(.space)')]"
        assert view.script(f"{rows}.length") == 6
        assert view.script(f"{rows}.every((tr) => tr.scrollHeight <= tr.clientHeight)")
        # what comes after the ports is seen, too
        ends = f"{rows}.map((tr) => tr.lastElementChild.getBoundingClientRect().right)"
        assert max(view.script(ends)) <= 360
    with View(browser, gateway.status_port) as view:
        view.wait_services("6 Services")
        view.script(
            "void (document.querySelector('#resources td.text').textContent ="
            " 'endpointslices.discovery.k8s.io is forbidden: '.repeat(4))"
        )
        frame = "document.querySelector('#resources .frame')"
        assert view.script(f"{frame}.scrollWidth <= {frame}.clientWidth")


def test_accessible(browser, cluster, gateway):
    """Nothing that axe-core calls serious, nothing cut; in good times and bad."""
    with contextlib.ExitStack() as stack:
        views = []
        for width in (1280, 360):
            for scheme in ("light", "dark"):
                view = stack.enter_context(
                    View(
                        browser,
                        gateway.status_port,
                        width=width,
                        color_scheme=scheme,
                        bypass_csp=True,
                    )
                )
                view.wait_services("5 Services")
                light = view.script("getComputedStyle(document.body).backgroundColor")
                assert (light == "rgb(245, 246, 248)") == (scheme == "light")
                assert (view.axe(), view.overflow()) == ([], 0)
                view.page.click("text=shop/bad")
                view.wait("document.querySelectorAll('#endpoints tbody th').length === 2")
                assert (view.axe(), view.overflow()) == ([], 0)
                if width == 360:
                    rows = "[...document.querySelectorAll('.rows tbody[role] tr')]"
                    assert view.script(f"{rows}.every((tr) => tr.scrollHeight <= tr.clientHeight)")
                view.page.click("#close")
                views.append(view)
        cluster.api.refuse()
        gateway.status.wait(lambda i: i["degraded"])
        for view in views:
            view.page.click("#refresh")
            view.wait(f"{BANNER}.textContent.includes('Not following')")
            assert (view.axe(), view.overflow()) == ([], 0)
        cluster.api.listen()
