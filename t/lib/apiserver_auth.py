# Who asks, and may they: bearer tokens, client certificates, and rules by
# verb, resource and namespace.  Without users and rules everything is allowed.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Authentication and authorization of the stand-in API server."""

import dataclasses
import typing

from apiserver_status import unauthorized

ALL = ("*",)


@dataclasses.dataclass
class Rule:
    """What is allowed; "*" is everything, namespaces "*" the cluster scope too."""

    verbs: typing.Sequence[str] = ALL
    resources: typing.Sequence[str] = ALL
    namespaces: typing.Sequence[str] = ALL

    def allows(self, verb, resource, ns):
        """Whether it covers this."""
        return (
            ("*" in self.verbs or verb in self.verbs)
            and ("*" in self.resources or resource in self.resources)
            and ("*" in self.namespaces or (ns and ns in self.namespaces))
        )


READ = ("get", "list", "watch")


class Auth:
    """Users and their rules."""

    def __init__(self):
        self.tokens = {}
        self.rules = {}
        self.required = False
        self.client_ca = False
        self.anonymous = True

    @property
    def open(self):
        """Whether nobody needs to say who they are."""
        return not self.required and not self.client_ca

    def add_token(self, token, user="admin", rules=None):
        """A token and the rules of its user (None: everything)."""
        self.tokens[token] = user
        self.required = True
        if rules is not None or user not in self.rules:
            self.set_rules(user, rules)

    def revoke_token(self, token):
        """From now on it gives 401."""
        self.tokens.pop(token, None)

    def set_rules(self, user, rules):
        """Replaces the rules of a user; dictionaries will do."""
        if rules is None:
            rules = [Rule()]
        self.rules[user] = [Rule(**r) if isinstance(r, dict) else r for r in rules]

    def authenticate(self, headers, peercert):
        """(user, how, token); 401 for a token that is not known."""
        value = headers.get("authorization", "")
        if value:
            scheme, _, token = value.partition(" ")
            token = token.strip()
            if scheme.lower() != "bearer" or not token:
                raise unauthorized()
            if self.open:
                return "system:anonymous", "token", token
            if token not in self.tokens:
                raise unauthorized()
            return self.tokens[token], "token", token
        if peercert:
            for part in peercert.get("subject", ()):
                for key, name in part:
                    if key == "commonName":
                        return name, "certificate", ""
        if not self.open and not self.anonymous:
            raise unauthorized()
        return "system:anonymous", "anonymous", ""

    def allows(self, user, verb, resource, ns):
        """Whether the user may."""
        rules = self.rules.get(user)
        if rules is None:
            return self.open
        return any(r.allows(verb, resource, ns) for r in rules)
