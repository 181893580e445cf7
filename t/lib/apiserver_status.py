# Failures as the API server words them: metav1.Status objects with the reason,
# details and causes a client decides by.  Texts are those of Kubernetes 1.36.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""metav1.Status: the errors of an API server."""

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}

CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You can start a new list without the continue parameter, or use the continue token "
    "in this response to retrieve the remainder of the results. Continuing with the "
    "provided token results in an inconsistent list - objects that were created, modified, "
    "or deleted between the time the first chunk was returned and now may show up in the list."
)


def status(code, message, reason=None, details=None, metadata=None):
    """A Status dictionary; reason None: the usual one of the code."""
    made = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": metadata or {},
        "status": "Failure",
    }
    if message:
        made["message"] = message
    if reason is None:
        reason = REASONS.get(code, "")
    if reason:
        made["reason"] = reason
    if details is not None:
        made["details"] = details
    made["code"] = code
    return made


class ApiError(Exception):
    """A request's failure, carried to where it is answered."""

    def __init__(self, made):
        super().__init__(made.get("message", ""))
        self.status = made
        self.code = made["code"]


def bad_request(message):
    """400."""
    return ApiError(status(400, message))


def unauthorized():
    """401: no message tells why."""
    return ApiError(status(401, "Unauthorized"))


def forbidden(user, verb, group, resource, ns="", name=""):
    """403 in the words of the RBAC authorizer."""
    full = resource + ("." + group if group else "")
    where = f'in the namespace "{ns}"' if ns else "at the cluster scope"
    subject = f'{full} "{name}"' if name else full
    message = (
        f'{subject} is forbidden: User "{user}" cannot {verb} resource "{resource}" '
        f'in API group "{group}" {where}'
    )
    details = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    details["kind"] = resource
    return ApiError(status(403, message, details=details))


def forbidden_path(user, verb, path):
    """403 for a path that is no resource."""
    message = f'forbidden: User "{user}" cannot {verb} path "{path}"'
    return ApiError(status(403, message, details={}))


def not_found(group, resource, name):
    """404 for an object."""
    full = resource + ("." + group if group else "")
    details = {"name": name, "kind": resource}
    if group:
        details = {"name": name, "group": group, "kind": resource}
    return ApiError(status(404, f'{full} "{name}" not found', details=details))


def unknown_path():
    """404 for a resource the server does not have."""
    return ApiError(status(404, "the server could not find the requested resource", details={}))


def already_exists(group, resource, name):
    """409 at creation."""
    full = resource + ("." + group if group else "")
    details = {"name": name, "kind": resource}
    return ApiError(status(409, f'{full} "{name}" already exists', "AlreadyExists", details))


def conflict(group, resource, name):
    """409 at an update of an older version."""
    full = resource + ("." + group if group else "")
    message = (
        f'Operation cannot be fulfilled on {full} "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    return ApiError(status(409, message, details={"name": name, "kind": resource}))


def invalid_options(errors):
    """422 for list options; errors: (field, cause reason, text) each."""
    causes = [{"reason": reason, "message": text, "field": field} for field, reason, text in errors]
    texts = [f"{field}: {text}" for field, _, text in errors]
    joined = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    details = {"group": "meta.k8s.io", "kind": "ListOptions", "causes": causes}
    message = f'ListOptions.meta.k8s.io "" is invalid: {joined}'
    return ApiError(status(422, message, details=details))


def expired(message, continue_token=None):
    """410."""
    metadata = {"continue": continue_token} if continue_token else {}
    return ApiError(status(410, message, metadata=metadata))


def too_large(rv, current):
    """504 for a version the server has not reached."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {rv}, current: {current}"
    return ApiError(status(504, message, details=details))


def too_many(seconds):
    """429 as the server's flow control answers."""
    message = "Too many requests, please try again later."
    return ApiError(status(429, message, details={"retryAfterSeconds": seconds}))


def not_acceptable():
    """406."""
    message = (
        "only the following media types are accepted: application/json, "
        "application/yaml, application/vnd.kubernetes.protobuf"
    )
    return ApiError(status(406, message))
