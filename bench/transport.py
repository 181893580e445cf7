#!/usr/bin/python3
# Ours beside client-go over TLS and without, with and without gzip: a list until
# it is held.  "make bench" adds what it says to bench/RESULTS.md.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""
The recorded lists of run.py, as other connections bring them.

The server compresses for who asks, as an API server does.  client-go asks unless
it is told not to; kube-informer never does, so it has no rows with gzip.  TLS is
that of HTTP/1.1: the server here has no HTTP/2.
"""

import itertools
import os
import ssl
import sys
import tempfile

from run import (
    FORMS, ROOT, appended, arguments, client_go, ours, ratio, recorded, spread, takes_append,
    turned,
)

sys.path.insert(0, os.path.join(ROOT, "t", "lib"))

from apiserver_tls import Pki  # noqa: E402

HOW = {False: "plain", True: "TLS"}


def name_of(who, form, tls, gzip):
    return f"{who}, {FORMS[form]}, {HOW[tls]}, {'gzip' if gzip else 'identity'}"


def subjects(options, context, ca):
    """Ours without gzip, client-go with and without; each plain and over TLS."""
    rows = []
    for form, tls in itertools.product(FORMS, HOW):
        where = ["--server", "URL", *(["--ca-file", ca] if tls else [])]
        rows.append(ours(name_of("ours", form, tls, False), options.program, where, form,
                         tls=context if tls else None))
        for gzip in (False, True):
            where = ["-server", "URL", *(["-ca", ca] if tls else []),
                     *([] if gzip else ["-identity"])]
            rows.append(client_go(name_of("client-go", form, tls, gzip), options.peer, where,
                                  form, tls=context if tls else None))
    return rows


def measure(rows, folder, empty, rounds):
    """{name: {figure: [a value a round]}}; without what two empty lists take."""
    base = {row.name: row.run(empty, 0, None) for row in rows}
    got = {row.name: {"wall": [], "cpu": []} for row in rows}
    for number in range(rounds + 1):
        for row in turned(rows, number):
            result = row.run(folder, 0, None)
            result["cpu"] -= base[row.name]["cpu"]
            if number == 0:
                continue  # files are cold, and so are the programs
            for figure, values in got[row.name].items():
                values.append(result[figure])
            print(f"  round {number}: {row.name}: wall {result['wall']:.1f}, "
                  f"cpu {result['cpu']:.1f}", flush=True)
    return got


def report(got, size, rounds):
    """The section of RESULTS.md."""
    out = ["", f"## TLS and gzip: the lists of {size * 10} endpoints, WatchList off", ""]
    out += [f"{rounds} rounds; the server has HTTP/1.1, and compresses for who asks (level 1).",
            "kube-informer does not ask.", ""]
    out += ["| | list → synced, ms | its processor, ms |", "|---|---|---|"]
    for name, figures in got.items():
        out.append(f"| {name} | {spread(figures['wall'])} | {spread(figures['cpu'])} |")
    out += ["", "| client-go's over ours, the same encoding of objects "
            "| time, plain | processor, plain | time, TLS | processor, TLS |",
            "|---|---|---|---|---|"]
    for form, gzip in itertools.product(FORMS, (False, True)):
        cells = [
            "%.2f ×" % ratio(got, name_of("ours", form, tls, False),
                             name_of("client-go", form, tls, gzip), figure)
            for tls in HOW for figure in ("wall", "cpu")
        ]
        out.append(f"| {FORMS[form]}, {'gzip' if gzip else 'identity'} | "
                   + " | ".join(cells) + " |")
    return "\n".join(out) + "\n"


def main():
    parser = arguments(__doc__, "10000", 10000)
    takes_append(parser)
    options = parser.parse_args()
    size = int(options.sizes)
    with tempfile.TemporaryDirectory() as folder:
        pki = Pki(folder)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*pki.issue("server", "127.0.0.1"))
        rows = subjects(options, context, pki.ca_file)
        print(f"TLS and gzip, {size} slices", flush=True)
        got = measure(rows, recorded(options, size), recorded(options, 0), options.rounds)
    text = report(got, size, options.rounds)
    appended(options, text, f"{len(rows)} followers over TLS, and without")
    return 0


if __name__ == "__main__":
    sys.exit(main())
