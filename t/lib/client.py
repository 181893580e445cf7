# A plain HTTP client for tests: single requests, raw bytes, and a light load
# that counts what failed.  It reads whatever comes and judges nothing.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""HTTP requests and a light load."""

import collections
import contextlib
import http.client
import json
import socket
import threading
import time

WAIT = 60


class Headers(dict):
    """Header fields by lower-case name; nginx leaves empty ones out."""

    def __missing__(self, name):
        return ""


class Response:
    """Status, headers (lower case) and body of an answer."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = Headers((k.lower(), v) for k, v in headers)
        self.body = body

    @property
    def text(self):
        """The body as text."""
        return self.body.decode("utf-8")

    def json(self):
        """The body as JSON; bad UTF-8 or JSON raises."""
        return json.loads(self.text)

    @property
    def backend(self):
        """Which backend answered."""
        return self.headers.get("x-backend")

    def __repr__(self):
        return f"<{self.status} {self.headers} {self.body[:200]!r}>"


def request(port, path="/", method="GET", host=None, headers=None, body=None, timeout=WAIT):
    """One request over a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", host or "test.example")
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return Response(answer.status, answer.getheaders(), answer.read())
    finally:
        connection.close()


def raw(port, data, timeout=WAIT):
    """Sends bytes and returns all that comes until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as sock:
        sock.sendall(data)
        made = b""
        while True:
            try:
                more = sock.recv(65536)
            except ConnectionResetError:
                return made
            if not more:
                return made
            made += more


@contextlib.contextmanager
def repeated(change, rate):
    """Calls change(n) so many times a second; yields how often it did, in a list."""
    stop, done = threading.Event(), []

    def run():
        begun = time.monotonic()
        while not stop.wait(max(0.0, begun + len(done) / rate - time.monotonic())):
            change(len(done))
            done.append(time.monotonic())

    thread = threading.Thread(target=run)
    thread.start()
    yield done
    stop.set()
    thread.join()


class Load:
    """
    Requests from kept connections, in threads, until stopped.

    A connection the server closed before any byte of an answer is opened
    again and the request repeated once, as RFC 9110 9.2.2 lets a client.
    """

    def __init__(self, port, path="/", host=None, threads=2, pause=0.0):
        self.port, self.path, self.host, self.pause = port, path, host, pause
        self.total = 0
        self.failures = []
        self.backends = collections.Counter()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, daemon=True) for _ in range(threads)
        ]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exc):
        self.stop()

    def stop(self):
        """Ends the threads."""
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def _run(self):
        connection = None
        while not self._stop.is_set():
            for attempt in (1, 2):
                fresh = connection is None
                if fresh:
                    connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
                try:
                    connection.request("GET", self.path, headers={"Host": self.host or "t"})
                    answer = connection.getresponse()
                    answer.read()
                    failed = None if answer.status == 200 else f"status {answer.status}"
                    backend = answer.getheader("X-Backend")
                    if answer.will_close:
                        connection.close()
                        connection = None
                    break
                except (OSError, http.client.HTTPException) as error:
                    connection.close()
                    connection = None
                    failed, backend = repr(error), None
                    if fresh or attempt == 2:
                        break
            with self._lock:
                self.total += 1
                if failed:
                    self.failures.append((time.time(), failed))
                else:
                    self.backends[backend] += 1
            if self.pause:
                self._stop.wait(self.pause)
        if connection is not None:
            connection.close()
