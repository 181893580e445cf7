# A client of an API server for tests: lists, writes, watches read line by
# line.  It believes nothing and retries nothing, and works alike against the
# stand-in and a real server.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""A small client of an API server, for tests."""

import contextlib
import http.client
import json
import socket
import ssl
import urllib.parse

SERVICES = "/api/v1/services"
SLICES = "/apis/discovery.k8s.io/v1/endpointslices"
WAIT = 60


def services(ns):
    """The path of a namespace's Services."""
    return f"/api/v1/namespaces/{ns}/services"


def slices(ns):
    """The path of a namespace's EndpointSlices."""
    return f"/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=WAIT)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Client:
    """A client of an API server: base_url, token, CA."""

    def __init__(self, base_url, token=None, ca=None, context=None):
        self.url = urllib.parse.urlsplit(base_url)
        self.token = token
        self.context = context
        if context is None and self.url.scheme == "https":
            self.context = ssl.create_default_context(cafile=ca)

    def connect(self):
        """A new connection."""
        if self.url.scheme == "unix":
            return UnixConnection(self.url.path)
        kind = http.client.HTTPConnection
        options = {"timeout": WAIT}
        if self.context is not None:
            kind, options["context"] = http.client.HTTPSConnection, self.context
        return kind(self.url.hostname, self.url.port, **options)

    def send(self, conn, method, path, body=None, query=None, headers=None):
        """Sends a request on a connection; returns the response."""
        if query:
            path += "?" + urllib.parse.urlencode(query)
        sent = {"Accept": "application/json", "User-Agent": "standin-test"}
        if self.token:
            sent["Authorization"] = "Bearer " + self.token
        if body is not None:
            body = json.dumps(body)
            sent["Content-Type"] = "application/json"
            if method == "PATCH":
                sent["Content-Type"] = "application/merge-patch+json"
        sent.update(headers or {})
        conn.request(method, path, body, sent)
        return conn.getresponse()

    def call(self, method, path, body=None, query=None, headers=None):
        """One request; returns (status, headers, body)."""
        conn = self.connect()
        try:
            response = self.send(conn, method, path, body, query, headers)
            return response.status, response.headers, response.read()
        finally:
            conn.close()

    def get(self, path, headers=None, **query):
        """GET; returns (status, decoded body)."""
        status, _, body = self.call("GET", path, query=query, headers=headers)
        return status, json.loads(body)

    def list(self, path, **query):
        """A list that must succeed."""
        status, made = self.get(path, **query)
        assert status == 200, made
        return made

    def create(self, path, obj):
        """POST that must succeed; returns the object."""
        status, _, body = self.call("POST", path, obj)
        assert status == 201, body
        return json.loads(body)

    def patch(self, path, change):
        """Merge patch that must succeed; returns the object."""
        status, _, body = self.call("PATCH", path, change)
        assert status == 200, body
        return json.loads(body)

    def delete(self, path):
        """DELETE that must succeed."""
        status, _, body = self.call("DELETE", path)
        assert status == 200, body

    @contextlib.contextmanager
    def watch(self, path, **query):
        """A watch; yields a Watch."""
        query["watch"] = "true"
        conn = self.connect()
        try:
            yield Watch(self.send(conn, "GET", path, query=query), conn)
        finally:
            conn.close()


class Watch:
    """Reads a watch line by line."""

    def __init__(self, response, conn):
        self.response = response
        self.conn = conn
        self.status = response.status

    def next(self):
        """The next event, or None at the end of the stream."""
        line = self.response.readline()
        return json.loads(line) if line else None

    def events(self, count):
        """The next events as (type, name)."""
        return [self.short(self.next()) for _ in range(count)]

    @staticmethod
    def short(event):
        """(type, name) of an event."""
        return event and (event["type"], event["object"]["metadata"].get("name"))


def names(made):
    """The names in a list."""
    return [item["metadata"]["name"] for item in made["items"]]


def rv_of(made):
    """resourceVersion of an object or list, as a number."""
    return int(made["metadata"]["resourceVersion"])
