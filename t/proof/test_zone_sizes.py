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


# The stand-in keeps each endpoint as a dict: where there is much room long names
# of pods take it.
@pytest.mark.parametrize(("mib", "endpoints", "wide"), [(1, 10, 0), (8, 20, 200), (32, 20, 200)])
@pytest.mark.timeout(1800 * PATIENCE)
def test_zone_size(cluster, figure, mib, endpoints, wide):
    """Bars are full_zone()'s; healed within 15 s."""
    took = full.full_zone(cluster, figure, mib, endpoints, churn=30, relists=10, wide=wide)
    assert took < 15 * PATIENCE
