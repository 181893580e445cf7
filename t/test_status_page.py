"""The status page's frame: its style has the hash that the policy names.

Copyright (C) the nginx-kube-informer authors
SPDX-License-Identifier: BSD-2-Clause
"""

import base64
import hashlib
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "ngx_module"
FRAME = (FOLDER / "ngx_http_kube_page.html").read_text()


def test_style_hash():
    """The browser refuses the style when the policy names another hash."""
    styles = re.findall(r"<style>(.*?)</style>", FRAME, re.S)
    assert len(styles) == 1
    digest = hashlib.sha256(styles[0].encode()).digest()
    code = (FOLDER / "ngx_http_kube_page.c").read_text()
    assert re.findall(r"sha256-([^']*)'", code) == [base64.b64encode(digest).decode()]


def test_nothing_from_outside():
    """No script, no attribute that styles, nothing fetched."""
    assert not re.search(r"<script|<link|<img|\bsrc=|\bstyle=|\bon\w+=|url\(|@import", FRAME)


def test_marks():
    """The places that are filled in, once each."""
    for mark in ("<!DOCTYPE", "<!-- header -->", "<!-- main -->"):
        assert FRAME.count(mark) == 1
