# kube-informer --verify between an nginx and a real API server, at the version
# that the nginx holds; also while endpoints change.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""What is held is what the API server had."""

import json
import os
import subprocess

from rig import Churn

PROGRAM = os.path.join(os.environ.get("KUBE_BUILD_DIR", "build/release"), "kube-informer")


def verify(gateway, *args):
    """(exit code, lines, stderr)."""
    done = subprocess.run(
        [PROGRAM, "--verify", f"http://127.0.0.1:{gateway.status_port}/kube/",
         "--kubeconfig", gateway.path("kubeconfig"), *args],
        capture_output=True, text=True, check=False)
    return done.returncode, [json.loads(x) for x in done.stdout.splitlines()], done.stderr


def test_verify(world, figures):
    world.deploy("web", 4)
    world.deploy("db", 2)
    gateway = world.gateway(["web", "db"])
    world.assert_equal(gateway, ["web", "db"])
    code, lines, errors = verify(gateway)
    assert code == 0, (lines, errors)
    assert {x["type"] for x in lines} == {"equal"} and len(lines) == 2

    # while endpoints change 25 times a second
    world.direct("busy", ["10.244.9.1"])
    with Churn(world, "busy", [f"10.244.9.{n}" for n in range(1, 6)]):
        for _ in range(5):
            code, lines, errors = verify(gateway, "--page-size", "1")
            assert code == 0, (lines, errors)

    # an nginx that is to hold less than there is
    name = "kubernetes.io/service-name=web"
    gateway.change(gone=True, block=f"label_selector endpointslices {name};")
    gateway.status.wait(lambda i: all(
        r["objects"] == 1 for r in i["resources"] if r["resource"] == "endpointslices"), 60)
    code, lines, errors = verify(gateway, "--selector", f"endpointslices={name}")
    assert code == 0, (lines, errors)
    code, lines, errors = verify(gateway)
    assert code == 1, (lines, errors)
    different = [x for x in lines if x["type"] == "different"]
    assert {x["server"]["object"]["service"] for x in different} == {"db", "busy"}, different
    assert all(x["held"] is None for x in different)
    figures.add("-", "--verify: quiet; 5 times beside 25 changes/s; less is held",
                "equal; equal; different", "as the bar")
