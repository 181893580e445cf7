# Zones of 1, 8 and 32 MiB that are filled to four times their room, changed at
# 2000 objects a second, listed again ten times, and emptied.  The short form,
# and what is looked at, is in t/test_zone_full.py.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Full zones of several sizes."""

import pytest
import test_zone_full as full
from nginx import PATIENCE


@pytest.mark.parametrize(("mib", "endpoints"), [(1, 10), (8, 40), (32, 100)])
@pytest.mark.timeout(1800 * PATIENCE)
def test_zone_size(cluster, figure, mib, endpoints):
    assert full.full_zone(cluster, figure, mib, endpoints, churn=30, relists=10) < 15 * PATIENCE
