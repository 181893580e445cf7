# A scrape of 10 100 Services with 10 endpoints each, beside requests that the same
# worker answers.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""What service_endpoints costs a worker."""

import threading
import time

import pytest
from cluster import informer
from test_scrape import CONF, NAME, rows, scrape

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]


def test_ten_thousand_services(cluster, figure):
    """Bounded; in one piece no request beside would be answered before its end."""
    cluster.api.load_scale(10100, 10)
    block = informer(cluster.api.url, zone="kube 128m")
    gateway = cluster.nginx(CONF, block=block, workers=1, sync=False)
    gateway.status.wait_synced(timeout=300)
    took, stop = [], threading.Event()

    def beside():
        while not stop.is_set():
            began = time.monotonic()
            assert gateway.status.get("/none").status == 404
            took.append(time.monotonic() - began)

    beside_it = threading.Thread(target=beside)
    beside_it.start()
    try:
        began = time.monotonic()
        texts = [gateway.status.get("/metrics?service_endpoints=*") for _ in range(5)]
        each = (time.monotonic() - began) / 5
    finally:
        stop.set()
        beside_it.join()
    took.sort()
    figure(
        f"{len(texts[0].body)} bytes in {each:.2f} s; of {len(took)} requests beside: "
        f"median {1000 * took[len(took) // 2]:.2f} ms, p99 {1000 * took[len(took) * 99 // 100]:.2f}"
        f" ms, longest {1000 * took[-1]:.2f} ms"
    )
    assert len(took) >= 50 and took[len(took) // 2] < each / 10
    made = scrape(gateway)
    assert len(rows(made)) == 10000 and made.value(NAME + "_omitted") == 100
    assert all(r == {"ready": 10, "terminating": 0, "not_ready": 0} for r in rows(made).values())
