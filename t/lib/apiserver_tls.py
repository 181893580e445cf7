# Certificates for tests of TLS: good, expired, for another name, of an unknown
# CA, and those of clients.  It needs python3-trustme, so only tests import it;
# the demo and the plain command line do without.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""A throw-away public key infrastructure."""

import datetime
import os
import ssl

import trustme
from cryptography import x509
from cryptography.hazmat.backends import default_backend
from cryptography.hazmat.primitives import hashes, serialization

NAMES = ("localhost", "127.0.0.1", "::1", "kubernetes.default.svc")


class Pki:
    """A CA in a directory; files are what clients and servers are given."""

    def __init__(self, directory, name="ca"):
        self.directory = str(directory)
        self.name = name
        os.makedirs(self.directory, exist_ok=True)
        self.ca = trustme.CA()
        self.ca_file = os.path.join(self.directory, name + ".crt")
        self.ca.cert_pem.write_to_path(self.ca_file)

    def issue(
        self,
        label,
        *names,
        not_after=None,
        common_name=None,
        organization=None,
        below=0,
        chain=True,
    ):
        """
        Writes label.crt (with the chain) and label.key; returns their paths.

        not_after: a datetime; in the past it makes an expired certificate.
        below: of how many CAs between this one and the certificate; chain: whether
        they are in the file.
        """
        ca = self.ca
        for _ in range(below):
            ca = ca.create_child_ca()
        options = {}
        if common_name:
            options["common_name"] = common_name
        if organization:
            options["organization_name"] = organization
        if not_after is not None:
            options["not_after"] = not_after
        cert = ca.issue_cert(*names, **options)
        cert_file = os.path.join(self.directory, f"{self.name}-{label}.crt")
        key_file = os.path.join(self.directory, f"{self.name}-{label}.key")
        with open(cert_file, "wb") as out:
            for blob in cert.cert_chain_pems[: None if chain else 1]:
                out.write(blob.bytes())
        cert.private_key_pem.write_to_path(key_file)
        return cert_file, key_file

    def server(self, label="server", *names):
        """A good certificate of a server."""
        return self.issue(label, *(names or NAMES))

    def expired(self):
        """One that is over."""
        past = datetime.datetime.utcnow() - datetime.timedelta(days=1)
        return self.issue("expired", *NAMES, not_after=past)

    def not_yet(self):
        """One that begins to be valid tomorrow."""
        files = self.issue("not-yet", *NAMES)
        tomorrow = datetime.datetime.utcnow() + datetime.timedelta(days=1)
        return self.signed_anew(files, begins=tomorrow)

    def common_name_alone(self, name):
        """One whose only name is that of its subject."""
        files = self.issue("common-name", name, common_name=name)
        return self.signed_anew(files, names=False)

    def signed_anew(self, files, begins=None, names=True):
        """What issue() wrote, with another beginning, or without its names."""
        with open(files[0], "rb") as f:
            old = x509.load_pem_x509_certificate(f.read(), default_backend())
        key = serialization.load_pem_private_key(
            self.ca.private_key_pem.bytes(), None, default_backend()
        )
        made = (
            x509.CertificateBuilder()
            .subject_name(old.subject)
            .issuer_name(old.issuer)
            .public_key(old.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins or old.not_valid_before)
            .not_valid_after(old.not_valid_after)
        )
        for extension in old.extensions:
            if names or not isinstance(extension.value, x509.SubjectAlternativeName):
                made = made.add_extension(extension.value, extension.critical)
        made = made.sign(key, hashes.SHA256(), default_backend())
        with open(files[0], "wb") as out:
            out.write(made.public_bytes(serialization.Encoding.PEM))
        return files

    def wrong_name(self):
        """One for another host."""
        return self.issue("wrong", "elsewhere.invalid", "192.0.2.1")

    def client(self, user, organization="system:masters"):
        """One of a client: the user is its common name."""
        return self.issue("client-" + user, common_name=user, organization=organization)

    def server_context(self, cert=None, client_ca=None, **limits):
        """An SSLContext for ApiServer(tls=...); limits: maximum_version, ..."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*(cert or self.server()))
        if client_ca:
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_OPTIONAL
        for name, value in limits.items():
            setattr(context, name, value)
        return context

    def client_context(self, cert=None):
        """An SSLContext that trusts this CA, for a test's own client."""
        context = ssl.create_default_context(cafile=self.ca_file)
        if cert:
            context.load_cert_chain(*cert)
        return context
