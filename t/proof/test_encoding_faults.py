# What t/test_faults.py and t/test_watch_list.py show of JSON, shown of Protocol
# Buffers: the same faults end in the same way.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""The faults of the API server over its other encoding."""

import cluster as cluster_lib
import pytest
from test_faults import *  # noqa: F401,F403
from test_watch_list import *  # noqa: F401,F403


@pytest.fixture(autouse=True)
def in_protocol_buffers(monkeypatch):
    """As KUBE_ENCODING=auto in the environment."""
    monkeypatch.setattr(cluster_lib, "ENCODING", "auto")
