# Line 2: how long after a bare watch has seen an endpoint change does each of
# two workers route by it.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Swaps of an endpoint through the API."""

from report import quantile, void

SWAPS = 60
PROBES = 1000
ADDRESSES = ["10.244.0.21:9000", "10.244.0.22:9000"]


def test_swap_reaches_each_worker(world, figures):
    world.direct("swap", ["10.244.0.21"], 9000)
    gateway = world.gateway(["swap"])

    # What the machine leaves to one prober may be too little: then more.
    for probers in (1, 2, 3):
        r = world.tb.swap(world.name, "swap", "swap-1", gateway.url("swap"), ADDRESSES,
                          swaps=SWAPS, workers=2, per_worker=probers)
        if min(r["probes"]["per_second"].values()) >= PROBES:
            break
    rates = {w: round(v) for w, v in r["probes"]["per_second"].items()}
    times = [t for values in r["raw_ms"].values() for t in values]
    note = f" (worst {max(times):.1f} ms, {len(times)} times, probes/s {list(rates.values())})"

    assert r["missed"] == 0 and not r["failures"], r["failures"]
    assert r["probes"]["went_back"] == 0, "a worker went back to the old endpoint"
    if r["swaps"] < 50 or len(r["raw_ms"]) != 2 or min(rates.values()) < PROBES:
        void(f"{r['swaps']} swaps, probes a second by worker: {rates}")
    assert set(map(int, r["raw_ms"])) == set(gateway.workers())
    figures.time("2", "swapped endpoint routed, after a bare watch: median", 1.5,
                 quantile(times, 0.5))
    figures.time("2", "swapped endpoint routed, after a bare watch: p99", 10,
                 quantile(times, 0.99), note=note)
