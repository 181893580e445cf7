# What the stand-in API server answers: discovery, get, list, watch and simple
# writes over one Store, by the rules a real API server goes by.  It writes
# through a Wire and never touches a socket.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""The API: paths, verbs, lists."""

import asyncio
import base64
import json

import apiserver_protobuf as protobuf
import apiserver_status as st
import objects
from apiserver_select import Selector
from apiserver_store import BY_KIND, RESOURCES, api_version, parse_rv, partial_item
from apiserver_watch import serve_watch
from apiserver_wire import common_headers, gzipped

MATCHES = ("Exact", "NotOlderThan")
PRETTY_AGENTS = ("curl", "Wget", "Mozilla/5.0")
VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0-standin",
    "gitCommit": "0" * 40,
    "gitTreeState": "clean",
    "buildDate": objects.CREATED,
    "goVersion": "go1.26",
    "compiler": "gc",
    "platform": "linux/amd64",
}


class Options:
    """The list options of a query, checked as the server checks them."""

    def __init__(self, query, watch_list):
        self.watch = query.get("watch", "").lower() in ("true", "1")
        self.rv = query.get("resourceVersion", "")
        self.match = query.get("resourceVersionMatch", "")
        self.token = query.get("continue", "")
        self.bookmarks = query.get("allowWatchBookmarks", "").lower() in ("true", "1")
        self.limit = self._number(query, "limit")
        self.timeout = self._number(query, "timeoutSeconds")
        self.initial = None
        if query.get("sendInitialEvents", "") != "":
            self.initial = query["sendInitialEvents"].lower() in ("true", "1")
        errors = self._watch_errors(watch_list) if self.watch else self._list_errors()
        if errors:
            raise st.invalid_options(errors)

    @staticmethod
    def _number(query, name):
        text = query.get(name, "")
        try:
            return int(text) if text else 0
        except ValueError:
            raise st.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None

    @staticmethod
    def _forbidden(field, text):
        return field, "FieldValueForbidden", "Forbidden: " + text

    def _unsupported(self, supported):
        values = ", ".join(f'"{v}"' for v in supported)
        text = f'Unsupported value: "{self.match}": supported values: {values}'
        return "resourceVersionMatch", "FieldValueNotSupported", text

    def _list_errors(self):
        field = "resourceVersionMatch"
        errors = []
        if self.match:
            if not self.rv:
                text = field + " is forbidden unless resourceVersion is provided"
                errors.append(self._forbidden(field, text))
            if self.token:
                text = field + " is forbidden when continue is provided"
                errors.append(self._forbidden(field, text))
            if self.match not in MATCHES:
                errors.append(self._unsupported(("",) + MATCHES))
            if self.match == "Exact" and self.rv == "0":
                text = field + ' "exact" is forbidden for resourceVersion "0"'
                errors.append(self._forbidden(field, text))
        if self.initial is not None:
            text = "sendInitialEvents is forbidden for list"
            errors.append(self._forbidden("sendInitialEvents", text))
        return errors

    def _watch_errors(self, watch_list):
        field = "resourceVersionMatch"
        errors = []
        if self.initial is not None:
            if self.match != "NotOlderThan":
                text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
                errors.append(self._forbidden(field, text))
            if not watch_list:
                text = (
                    "sendInitialEvents is forbidden for watch unless the WatchList "
                    "feature gate is enabled"
                )
                errors.append(self._forbidden("sendInitialEvents", text))
        if self.match:
            if self.initial is None:
                text = field + " is forbidden for watch unless sendInitialEvents is provided"
                errors.append(self._forbidden(field, text))
            if self.match != "NotOlderThan":
                errors.append(self._unsupported(("NotOlderThan",)))
            if self.token:
                text = field + " is forbidden when continue is provided"
                errors.append(self._forbidden(field, text))
        return errors


def encode_token(rv, start, page):
    """A continue token; page is for the faults, a real one has no such member."""
    made = {"v": "meta.k8s.io/v1", "rv": rv, "start": start, "page": page}
    return base64.urlsafe_b64encode(json.dumps(made).encode()).rstrip(b"=").decode()


def decode_token(token):
    """(rv, key to start at, page)."""
    try:
        made = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return made["rv"], made["start"], made.get("page", 2)
    except (ValueError, KeyError, TypeError):
        raise st.bad_request("invalid continue token: continue key is not valid") from None


def locate(request):
    """Fills in the resource, namespace, name and verb of a request from its path."""
    parts = request.path.strip("/").split("/")
    if parts[:2] == ["api", "v1"]:
        group, rest = "", parts[2:]
    elif parts[:1] == ["apis"] and len(parts) >= 3 and parts[2] == "v1":
        group, rest = parts[1], parts[3:]
    else:
        return None
    ns = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        ns, rest = rest[1], rest[2:]
    if not rest or len(rest) > 2:
        return None
    resource = RESOURCES.get(rest[0])
    if resource is None or resource.group != group or (ns and not resource.namespaced):
        return None
    request.resource, request.ns = resource.name, ns
    request.name = rest[1] if len(rest) == 2 else ""
    watch = request.query.get("watch", "").lower() in ("true", "1")
    if request.method in ("GET", "HEAD"):
        request.verb = "get" if request.name else "watch" if watch else "list"
    else:
        verbs = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
        request.verb = verbs.get(request.method, request.method.lower())
    if request.continued and request.verb == "list":
        try:
            request.page = decode_token(request.query["continue"])[2]
        except st.ApiError:
            request.page = 2
    return resource


class Api:
    """The answers, over a server that has store, auth and settings."""

    def __init__(self, server):
        self.server = server
        self.store = server.store

    async def answer(self, wire, request, resource):
        """Answers one request (the faults that replace an answer came before)."""
        user = request.user
        server = self.server
        if resource is None or resource.name in server.settings.disabled:
            await self.other(wire, request)
            return
        if not server.auth.allows(user, request.verb, resource.name, request.ns):
            raise st.forbidden(
                user, request.verb, resource.group, resource.name, request.ns, request.name
            )
        if request.verb in ("list", "watch"):
            await self.collection(wire, request, resource)
        elif request.verb == "get":
            obj = self.store.tables[resource.name].get((request.ns, request.name))
            if obj is None:
                raise st.not_found(resource.group, resource.name, request.name)
            await self.reply(wire, 200, obj.full + b"\n")
        else:
            await self.write(wire, request, resource)

    async def reply(self, wire, status, body, content_type="application/json"):
        """Sends a whole answer, as Go's server does: chunked above 2 KiB."""
        request = wire.request
        messages = content_type == "application/json" and self.in_messages(request)
        headers = common_headers(protobuf.TYPE if messages else content_type)
        pretty = request.query.get("pretty", "")
        if not pretty:
            pretty = str(request.user_agent.startswith(PRETTY_AGENTS)).lower()
        if pretty in ("true", "1") and content_type == "application/json":
            body = json.dumps(json.loads(body), indent=2, ensure_ascii=False).encode() + b"\n"
        if wire.fault is not None and wire.fault.mutate is not None and status == 200:
            body = wire.fault.mutate(body)
        if messages:
            body = protobuf.body(body)
        if len(body) > 128 * 1024 and "gzip" in request.headers.get("accept-encoding", ""):
            body = gzipped(body)
            headers.update({"Content-Encoding": "gzip", "Vary": "Accept-Encoding"})
        await wire.begin(status, headers, len(body) if len(body) <= 2048 else None)
        if request.method != "HEAD":
            await wire.whole(body)
        await wire.end()

    async def fail(self, wire, error):
        """Sends a Status."""
        made = error.status
        if made.get("details", {}).get("retryAfterSeconds") and wire.fault is None:
            seconds = made["details"]["retryAfterSeconds"]
            body = objects.go_json(made) + b"\n"
            headers = {**common_headers(), "Retry-After": str(seconds)}
            if self.in_messages(wire.request):
                body, headers["Content-Type"] = protobuf.body(body), protobuf.TYPE
            await wire.begin(error.code, headers, len(body))
            await wire.whole(body)
            await wire.end()
            return
        await self.reply(wire, error.code, objects.go_json(made) + b"\n")

    async def faulty(self, wire, fault):
        """Sends what a fault wants sent instead."""
        code = fault.status if fault.status is not None else 302 if fault.location else 200
        body = fault.body
        headers = common_headers()
        if body is None:
            details = fault.details
            if details is None and fault.retry_after is not None:
                text = str(fault.retry_after)
                details = {"retryAfterSeconds": int(text)} if text.isdigit() else None
            message = fault.message or "scripted fault"
            body = st.status(code, message, fault.reason, details)
        if isinstance(body, (dict, list)):
            body = objects.go_json(body) + b"\n"
            if self.in_messages(wire.request):
                body, headers["Content-Type"] = protobuf.body(body), protobuf.TYPE
        elif isinstance(body, str):
            body = body.encode()
        if code in (204, 304) or 100 <= code < 200:
            body = b""
        await wire.begin(code, headers, len(body))
        await wire.payload(body)
        await wire.end()

    async def other(self, wire, request):
        """Discovery, version and health; 404 for the rest."""
        path = request.path.rstrip("/")
        if path in ("/healthz", "/readyz", "/livez"):
            await self.reply(wire, 200, b"ok", "text/plain; charset=utf-8")
            return
        found = None
        if path == "/version":
            found = VERSION
        elif path == "/api":
            found = {"kind": "APIVersions", "versions": ["v1"]}
        elif path == "/apis":
            found = {"kind": "APIGroupList", "apiVersion": "v1", "groups": self._groups()}
        elif path in ("/api/v1", "/apis/discovery.k8s.io/v1"):
            found = self._resources(path[path.find("/", 1) + 1 :])
        if found is None:
            if path.startswith("/api/v1/"):
                raise st.unknown_path()
            await self.reply(wire, 404, b"404 page not found\n", "text/plain; charset=utf-8")
            return
        await self.reply(wire, 200, objects.go_json(found) + b"\n")

    def _groups(self):
        if "endpointslices" in self.server.settings.disabled:
            return []
        version = {"groupVersion": "discovery.k8s.io/v1", "version": "v1"}
        return [{"name": "discovery.k8s.io", "versions": [version], "preferredVersion": version}]

    def _resources(self, version):
        found = [
            {
                "name": r.name,
                "singularName": r.kind.lower(),
                "namespaced": r.namespaced,
                "kind": r.kind,
                "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
            }
            for r in RESOURCES.values()
            if api_version(r) == version and r.name not in self.server.settings.disabled
        ]
        if not found:
            return None
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": version,
            "resources": found,
        }

    async def collection(self, wire, request, resource):
        """A list or a watch."""
        request.partial = self.accepted(request)
        options = Options(request.query, self.server.settings.watch_list)
        what = f"{api_version(resource)}, Resource={resource.name}"
        selector = Selector(
            request.ns,
            request.query.get("labelSelector", ""),
            request.query.get("fieldSelector", ""),
            what if resource.group else "/" + what,
        )
        if request.verb == "watch":
            await serve_watch(self.server, wire, request, resource, options, selector)
        else:
            body = await self.list(wire, request, resource, options, selector)
            await self.reply(wire, 200, body)

    def in_messages(self, request):
        """Whether the answer is in Protocol Buffers: they are offered, and asked for first."""
        first = request.headers.get("accept", "").replace(" ", "").partition(",")[0]
        return self.server.settings.protobuf and first.partition(";")[0] == protobuf.TYPE

    def accepted(self, request):
        """Whether the metadata alone is asked for: the first that can be served counts."""
        kind = "PartialObjectMetadata" + ("" if request.verb == "watch" else "List")
        for part in request.headers.get("accept", "*/*").replace(" ", "").split(","):
            media, *parameters = part.split(";")
            if media == protobuf.TYPE and self.server.settings.protobuf:
                return False
            if media not in ("application/json", "application/*", "*/*"):
                continue
            if not any(p.startswith("as=") for p in parameters):
                return False
            if self.server.settings.partial and {"as=" + kind, "g=meta.k8s.io", "v=v1"} <= set(
                parameters
            ):
                return True
        raise st.not_acceptable()

    async def list(self, wire, request, resource, options, selector):
        """The body of a list, or of one page of it."""
        store, settings = self.store, self.server.settings
        fault = wire.fault
        start, at = "", None
        limit = options.limit
        page = request.page
        if options.token:
            at, start, page = decode_token(options.token)
            if options.rv not in ("", "0"):
                raise st.bad_request(
                    "specifying resource version is not allowed when using continue"
                )
            if at > 0 and at < store.compacted:
                token = encode_token(-1, start, page)
                raise st.expired(st.CONTINUE_EXPIRED, token)
            at = at if at > 0 else None
        else:
            try:
                rv = parse_rv(options.rv)
            except ValueError as error:
                raise st.bad_request(f"invalid resource version: {error}") from None
            exact = options.match == "Exact" or (rv and limit and not options.match)
            if rv > store.rv:
                await self._wait_for(rv)
            if exact:
                at = rv
            elif options.rv == "0" and settings.watch_cache:
                # The watch cache answers "any version" whole.
                limit = 0
        if fault is not None and fault.as_of is not None:
            at = fault.as_of

        rv = store.rv if at is None else at
        if at is not None and at != store.rv:
            store.state_at(resource.name, at)
        found = [o for o in store.sorted_at(resource.name, at) if selector(o)]
        if start:
            found = [o for o in found if o.key >= start]
        meta = {"resourceVersion": str(rv)}
        if limit and len(found) > limit:
            meta["continue"] = encode_token(rv, found[limit - 1].key + "\0", page + 1)
            if selector.empty:
                meta["remainingItemCount"] = len(found) - limit
            found = found[:limit]
        if fault is not None and fault.list_rv is not None:
            meta["resourceVersion"] = str(fault.list_rv)
        if fault is not None and fault.remaining is not None:
            meta["remainingItemCount"] = fault.remaining
        kind, version, items = resource.kind, api_version(resource), [o.item for o in found]
        if request.partial:
            kind, version = "PartialObjectMetadata", "meta.k8s.io/v1"
            items = [partial_item(i) for i in items]
        return b'{"kind":"%sList","apiVersion":"%s","metadata":%s,"items":[%s]}\n' % (
            kind.encode(),
            version.encode(),
            objects.go_json(meta),
            b",".join(items),
        )

    async def _wait_for(self, rv):
        """Waits a little for a version that is not there yet, then 504."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.server.settings.fresh_wait
        while self.store.rv < rv:
            if loop.time() >= deadline:
                raise st.too_large(rv, self.store.rv)
            await asyncio.sleep(0.01)

    # Writes: enough for a test to drive this server and a real one alike.

    async def write(self, wire, request, resource):
        """create, update, patch (merge) and delete."""
        store = self.store
        key = (request.ns, request.name)
        old = store.tables[resource.name].get(key) if request.name else None
        if request.verb != "create" and old is None:
            raise st.not_found(resource.group, resource.name, request.name)
        if request.verb == "delete":
            store.delete(resource.name, *key)
            made = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
            await self.reply(wire, 200, objects.go_json(made) + b"\n")
            return
        obj = self._body(request)
        if request.verb == "patch":
            obj = merge(old.data, obj)
        elif request.verb not in ("create", "update"):
            raise st.ApiError(st.status(405, "the server does not allow this method"))
        obj.setdefault("kind", resource.kind)
        if obj["kind"] not in BY_KIND or BY_KIND[obj["kind"]] is not resource:
            raise st.bad_request(f"the object provided is unrecognized: {obj['kind']}")
        meta = obj.setdefault("metadata", {})
        if resource.namespaced:
            meta.setdefault("namespace", request.ns)
        if request.verb == "create":
            self._check_new(resource, meta)
        elif meta.get("resourceVersion") not in (None, "", str(old.rv)):
            raise st.conflict(resource.group, resource.name, request.name)
        if resource.name == "services":
            spec = obj.setdefault("spec", {})
            if spec.get("type") != "ExternalName":
                made = objects.service(meta["namespace"], meta["name"])["spec"]
                for field in ("clusterIP", "clusterIPs", "type", "sessionAffinity"):
                    spec.setdefault(field, made[field])
            obj.setdefault("status", {"loadBalancer": {}})
        stored = store.put(obj)
        await self.reply(wire, 201 if request.verb == "create" else 200, stored.full + b"\n")

    @staticmethod
    def _body(request):
        try:
            obj = json.loads(request.body)
        except ValueError as error:
            raise st.bad_request(f"couldn't decode the body: {error}") from None
        if not isinstance(obj, dict):
            raise st.bad_request("couldn't decode the body: not an object")
        return obj

    def _check_new(self, resource, meta):
        ns, name = meta.get("namespace", ""), meta.get("name", "")
        if not name:
            raise st.ApiError(st.status(422, "name or generateName is required"))
        meta.pop("resourceVersion", None)
        if ns and ("", ns) not in self.store.tables["namespaces"]:
            raise st.not_found("", "namespaces", ns)
        if (ns, name) in self.store.tables[resource.name]:
            raise st.already_exists(resource.group, resource.name, name)


def merge(target, patch):
    """JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    made = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merge(made.get(key), value)
    return made
