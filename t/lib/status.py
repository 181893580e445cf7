# The status API as tests read it.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""A client of kube_status and kube_ready."""

from client import request
from exposition import Metrics
from nginx import wait_until


class Status:
    """Reads the status of one nginx at a port and prefix."""

    def __init__(self, port, prefix="/kube"):
        self.port = port
        self.prefix = prefix

    def get(self, path, **more):
        """One request below the prefix."""
        return request(self.port, self.prefix + path, **more)

    def status(self):
        """/api/v1/status."""
        answer = self.get("/api/v1/status")
        assert answer.status == 200, answer
        return answer.json()

    def informer(self, name="default"):
        """One informer of that."""
        (found,) = [i for i in self.status()["informers"] if i["name"] == name]
        return found

    def resource(self, resource, ns=None, informer="default"):
        """One resource and scope of that, or None; ns None: it has only one."""
        rows = [r for r in self.informer(informer)["resources"] if r["resource"] == resource]
        if ns is not None:
            rows = [r for r in rows if r["namespace"] == ns]
        assert len(rows) <= 1, f"{resource}: say which namespace: {rows}"
        return rows[0] if rows else None

    def service(self, ns, name):
        """One Service, or None."""
        answer = self.get(f"/api/v1/services/{ns}/{name}")
        if answer.status == 404:
            return None
        assert answer.status == 200, answer
        return answer.json()

    def generation(self, ns, name):
        """Its generation."""
        return self.service(ns, name)["generation"]

    def services(self, **query):
        """All rows, by as many pages as there are."""
        rows, after = [], ""
        while True:
            asked = {**query, **({"after": after} if after else {})}
            text = "&".join(f"{k}={v}" for k, v in asked.items())
            made = self.get("/api/v1/services" + (f"?{text}" if text else "")).json()
            rows += made["items"]
            after = made["next"]
            if not after:
                return rows

    def metrics(self):
        """/metrics, read strictly."""
        answer = self.get("/metrics")
        assert answer.status == 200, answer
        return Metrics(answer.text)

    def used(self, ns, name):
        """The addresses in use of a Service."""
        made = self.service(ns, name)
        return [] if made is None else [e["address"] for e in made["endpoints"] if e["used"]]

    # Waiting

    def wait(self, condition, timeout=None, what=None):
        """Until condition(informer) holds; returns that informer."""

        def check():
            found = self.informer()
            return found if condition(found) else None

        return wait_until(check, timeout, what or (lambda: f"{self.status()}"))

    def wait_synced(self, timeout=None):
        """Until the informer has synced."""
        return self.wait(lambda i: i["synced"], timeout)

    def wait_state(self, state, resource="endpointslices", ns=None, timeout=None):
        """Until a resource is in that state."""
        return wait_until(
            lambda: (self.resource(resource, ns) or {}).get("state") == state,
            timeout,
            lambda: f"{resource} {ns} {state}: {self.informer()['resources']}",
        )

    def wait_rv(self, rv, resource="endpointslices", ns=None, timeout=None):
        """Until a resource has published at least that version."""

        def check():
            row = self.resource(resource, ns)
            return row and row["resource_version"] and int(row["resource_version"]) >= rv

        return wait_until(
            check, timeout, lambda: f"version {rv}: {self.resource(resource, ns)}"
        )

    def wait_used(self, ns, name, addresses, timeout=None):
        """Until exactly these addresses of a Service are in use."""
        return wait_until(
            lambda: sorted(self.used(ns, name)) == sorted(addresses) or None,
            timeout,
            lambda: f"{ns}/{name} {addresses}: {self.service(ns, name)}",
        )
