# A small client of the Kubernetes API for tests: one kept TLS connection,
# server-side apply, and the paths of the kinds that tests use.
#
# Not a general client: standard library only, no discovery, no threads.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause

import http.client
import json
import ssl
import urllib.parse

PLURALS = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "ConfigMap": "configmaps",
    "Deployment": "deployments",
    "EndpointSlice": "endpointslices",
    "Endpoints": "endpoints",
    "Namespace": "namespaces",
    "Node": "nodes",
    "Pod": "pods",
    "ReplicaSet": "replicasets",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
}
CLUSTER_SCOPED = {"ClusterRole", "ClusterRoleBinding", "Namespace", "Node"}

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


class ApiError(Exception):
    """An answer that is not 2xx; .status and .body say more."""

    def __init__(self, status, body, what):
        super().__init__("%s: %d %s" % (what, status, body[:500]))
        self.status = status
        self.body = body


def path_of(kind, namespace=None, name=None, api_version="v1"):
    """The path of a collection, or of one object."""
    base = "/api/" if "/" not in api_version else "/apis/"
    path = base + api_version
    if kind not in CLUSTER_SCOPED and namespace:
        path += "/namespaces/" + namespace
    path += "/" + PLURALS[kind]
    return path + "/" + name if name else path


def object_path(obj):
    meta = obj["metadata"]
    namespace = meta.get("namespace", "default")
    return path_of(obj["kind"], namespace, meta["name"], obj["apiVersion"])


class Api:
    """Requests to one API server, as one user."""

    def __init__(self, host, port, ca, token, timeout=30):
        self.host = host
        self.port = port
        self.token = token
        self.timeout = timeout
        self._tls = ssl.create_default_context(cafile=ca)
        self._conn = None

    def close(self):
        if self._conn:
            self._conn.close()
        self._conn = None

    def request(self, method, path, body=None, kind="application/json",
                **query):
        """One request; returns (status, text).  Raises OSError."""
        if query:
            path += "?" + urllib.parse.urlencode(query)
        headers = {"Authorization": "Bearer " + self.token,
                   "User-Agent": "kube-testbed", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = kind
            if not isinstance(body, (str, bytes)):
                body = json.dumps(body)
        fresh = self._conn is None
        try:
            return self._once(method, path, body, headers)
        except (http.client.HTTPException, OSError):
            self.close()
            if fresh:
                raise
        # A kept connection may have ended with an earlier server.
        try:
            return self._once(method, path, body, headers)
        except http.client.HTTPException as e:
            self.close()
            raise ConnectionError(str(e)) from e

    def _once(self, method, path, body, headers):
        if self._conn is None:
            self._conn = http.client.HTTPSConnection(
                self.host, self.port, timeout=self.timeout, context=self._tls)
        self._conn.request(method, path, body=body, headers=headers)
        answer = self._conn.getresponse()
        return answer.status, answer.read().decode()

    def call(self, method, path, body=None, kind="application/json",
             **query):
        """One request that must succeed; returns the decoded answer."""
        status, text = self.request(method, path, body, kind, **query)
        if status // 100 != 2:
            raise ApiError(status, text, "%s %s" % (method, path))
        return json.loads(text) if text.startswith("{") else text

    def get(self, path, **query):
        return self.call("GET", path, **query)

    def find(self, path):
        """As get, but None where there is no such object."""
        try:
            return self.get(path)
        except ApiError as e:
            if e.status == 404:
                return None
            raise

    def items(self, path, **query):
        return self.get(path, **query)["items"]

    def apply(self, obj):
        """Create or change an object to be as given (server-side apply)."""
        return self.call("PATCH", object_path(obj), obj, kind=APPLY,
                         fieldManager="testbed", force="true")

    def patch(self, path, body):
        return self.call("PATCH", path, body, kind=MERGE)

    def delete(self, path, **query):
        """Delete an object, or with query a collection; absent is well."""
        try:
            return self.call("DELETE", path, **query)
        except ApiError as e:
            if e.status != 404:
                raise
            return None
