# A million changes while the history is forgotten, the API server is restarted,
# the informer is killed, nginx is reloaded and the token is replaced, each of
# them again and again.  The short form, and what is looked at, is in
# t/test_changes.py.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""A million changes."""

import os

import pytest
import test_changes as short

CHANGES = int(os.environ.get("KUBE_PROOF_CHANGES", "1000000"))


@pytest.mark.cluster(merge_events=True)
@pytest.mark.timeout(3600)
def test_million(cluster, figure):
    """Bars are run()'s."""
    short.run(cluster, figure, CHANGES, services=200, rate=8000)
