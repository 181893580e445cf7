# Pods of a real API server, their metadata alone: what kube-informer --pods
# shows is what the server has, and no container was sent for it.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""The resource that only programs follow."""

import json
import os
import subprocess
import threading

import nginx as nginx_lib
import pytest
from nginx import wait_until

PROGRAM = os.path.join(nginx_lib.BUILD_DIR, "kube-informer")


class Shown:
    """What the lines of a running kube-informer add up to: {name: (uid, labels, deleting)}."""

    def __init__(self, *args):
        self.pods = {}
        self.synced = False
        self.process = subprocess.Popen([PROGRAM, *args], stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for text in self.process.stdout:
            line = json.loads(text)
            if line["resource"] != "pods":
                continue
            if line["type"] == "synced":
                self.synced = True
            elif line["type"] == "delete":
                self.pods = {k: v for k, v in self.pods.items() if k != line["name"]}
            else:
                made = line["object"]
                labels = {p["name"]: p["value"] for p in made["labels"]}
                seen = made["uid"], labels, made["deleting"]
                self.pods = {**self.pods, line["name"]: seen}

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.process.terminate()
        assert self.process.wait(timeout=60) == 0
        self.thread.join(timeout=60)


def truth(world):
    """The same of the server."""
    return {
        p["metadata"]["name"]: (
            p["metadata"]["uid"],
            p["metadata"].get("labels", {}),
            "deletionTimestamp" in p["metadata"],
        )
        for p in world.tb.pods(world.name)
    }


@pytest.mark.parametrize("how", ["auto", "off"])
def test_pods(world, figures, tmp_path, how):
    tape = tmp_path / "tape"
    world.deploy("web", 3)
    args = ("--server", world.tb.url, "--ca-file", world.tb.ca, "--token-file",
            world.tb.token_file, "--namespace", world.name, "--watch-list", how,
            "--record", str(tape), "--pods")
    with Shown(*args) as shown:
        wait_until(lambda: shown.synced, 60, "the list of Pods")
        wait_until(lambda: shown.pods == truth(world), 60, "what the list brought")
        assert len(shown.pods) == 3

        # they come, go, are made anew, and have other labels
        world.tb.scale(world.name, "web", 5)
        world.tb.wait_ready(world.name, "web", 5)
        world.tb.rollout_restart(world.name, "web")
        world.tb.wait_rollout(world.name, "web")
        name = sorted(truth(world))[0]
        world.tb.api.patch(f"/api/v1/namespaces/{world.name}/pods/{name}",
                           {"metadata": {"labels": {"example.com/canary": "yes"}}})
        wait_until(lambda: shown.pods == truth(world), 60, "the same Pods")
        assert shown.pods[name][1]["example.com/canary"] == "yes"
    answers = tape.read_bytes()
    assert b"PartialObjectMetadata" in answers and b'"containers":[' not in answers
    figures.add("-", f"Pods by their metadata, watch_list {how}: as the server has them",
                "equal", "equal")
