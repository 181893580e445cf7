/*
 * kube_resolver - key, policy, look-up, selection; and the words for what
 * went wrong.
 *
 * It copies a Service out of the zone and keeps nothing.  No state; may be
 * called from any process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kube_coverage.h"
#include "kube_resolver.h"


/* Names in a line of a log are cut here; those the API allows are not. */
#define RESOLVER_NAME_MAX  80

/*
 * What slices of at most so many bytes decode to is kept until all is done:
 * some 1000 endpoints, and two megabytes with the longest names.
 */
#define RESOLVER_SMALL     (32u << 10)

/* Slices of at most so many bytes are few endpoints: some 20. */
#define RESOLVER_FEW       (1u << 10)

/* Of looks for the status: what costs no more, us, is never put off; else so
   many times that.  As of builds in a worker. */
#define RESOLVER_FREE_US   1000
#define RESOLVER_PAUSE     20


/* A line that is cut where its buffer ends. */
typedef struct {
    char    *out;
    size_t   len;
} resolver_line_t;


kube_resolve_error_t
kube_resolver_key(const kube_resolver_t *resolver, kube_str_t text,
    kube_key_t *key)
{
    if (text.len == 0) {
        return KUBE_RESOLVE_NO_KEY;
    }

    if (kube_key_parse(text, resolver->dns, key, NULL) != KUBE_OK) {
        return KUBE_RESOLVE_BAD_KEY;
    }

    if (!kube_namespaces_allow(&resolver->namespaces, key->ns)) {
        return KUBE_RESOLVE_NAMESPACE_DENIED;
    }

    return KUBE_RESOLVE_OK;
}


/* Finds the entry of the resource that has the shape of a Service. */
static kube_rc_t
resolver_find(const kube_zone_t *zone, const kube_key_t *key, uint32_t *entry)
{
    unsigned   r;
    kube_rc_t  rc;

    rc = KUBE_NOT_FOUND;

    for (r = 0; r < KUBE_RESOURCES_ROUTED && rc == KUBE_NOT_FOUND; r++) {
        if (kube_resource_info(r)->shape == KUBE_SHAPE_SERVICE) {
            rc = kube_zone_find(zone, r, key->ns, key->name, entry);
        }
    }

    return rc;
}


static bool
resolver_is_refused(const kube_resolver_t *resolver, const kube_key_t *key)
{
    unsigned  r;

    for (r = 0; r < KUBE_RESOURCES_ROUTED; r++) {
        if (kube_resource_info(r)->shape == KUBE_SHAPE_SERVICE
            && kube_zone_is_refused(resolver->zone, r, key->ns, key->name))
        {
            return true;
        }
    }

    return false;
}


/* Something is missing: missing, or only not seen? */
static kube_rc_t
resolver_missing(const kube_resolver_t *resolver, const kube_key_t *key,
    kube_shape_t shape, kube_arena_t *arena, kube_resolution_t *resolution)
{
    kube_rc_t                     rc;
    kube_coverage_t               coverage;
    kube_resolve_error_t          error;
    const kube_coverage_scope_t  *scope;

    rc = kube_coverage_read(resolver->zone, arena, &coverage);
    if (rc != KUBE_OK) {
        return rc;
    }

    error = kube_coverage_of(&coverage, shape, key->ns, &scope);

    /*
     * The Service exists: there was no room for it, or it was unreadable.  Or
     * something does that has not even a name: what is missing may be that.
     */

    if (error == KUBE_RESOLVE_OK
        && (scope->unnamed
            || (shape == KUBE_SHAPE_SERVICE && resolution->refused)))
    {
        error = KUBE_RESOLVE_NOT_SYNCED;
    }

    if (error != KUBE_RESOLVE_OK) {
        resolution->error = error;

        /* the end of the list may leave the Service's head as it is */
        resolution->entry = 0;
    }

    return KUBE_OK;
}


static kube_rc_t
resolver_read(const kube_resolver_t *resolver, const kube_key_t *key,
    unsigned flags, kube_arena_t *arena, kube_resolution_t *resolution)
{
    kube_rc_t  rc;

    rc = kube_zone_read(resolver->zone, resolution->entry, key->ns, key->name,
                        arena, &resolution->snapshot);
    if (rc != KUBE_OK) {
        return rc;
    }

    if (resolver->unsynced_fail && resolution->snapshot.from_state_file) {
        resolution->error = KUBE_RESOLVE_NOT_SYNCED;
        resolution->entry = 0;
        return KUBE_OK;
    }

    rc = kube_select(arena, &resolution->snapshot, &key->port,
                     &resolver->select, flags, &resolution->selection);
    if (rc != KUBE_OK) {
        return rc;
    }

    resolution->found = true;
    resolution->head = resolution->snapshot.head;
    resolution->error = resolution->selection.error;

    if (resolution->error == KUBE_RESOLVE_NO_ENDPOINTS) {
        return resolver_missing(resolver, key, KUBE_SHAPE_SLICE, arena,
                                resolution);
    }

    return KUBE_OK;
}


/* Results as kube_resolve's, but for NOT_FOUND: there is no such Service. */
static kube_rc_t
resolver_begin(const kube_resolver_t *resolver, const kube_key_t *key,
    kube_resolution_t *resolution)
{
    kube_rc_t  rc;

    memset(resolution, 0, sizeof(kube_resolution_t));

    if (!kube_namespaces_allow(&resolver->namespaces, key->ns)) {
        resolution->error = KUBE_RESOLVE_NAMESPACE_DENIED;
        return KUBE_OK;
    }

    rc = resolver_find(resolver->zone, key, &resolution->entry);

    /* one that was refused until now may be held by now */

    if (rc == KUBE_NOT_FOUND) {
        resolution->refused = resolver_is_refused(resolver, key);

        if (!resolution->refused) {
            rc = resolver_find(resolver->zone, key, &resolution->entry);
        }
    }

    if (rc == KUBE_OK) {
        resolution->head = kube_zone_head(resolver->zone, resolution->entry);
    }

    return rc;
}


/* From what went wrong in the zone to what a resolution says. */
static kube_rc_t
resolver_end(const kube_resolver_t *resolver, const kube_key_t *key,
    kube_rc_t rc, kube_arena_t *arena, kube_resolution_t *resolution)
{
    switch (rc) {

    case KUBE_NOT_FOUND:

        /* it was found, but gone when it was read: refused since? */

        if (resolution->entry != 0) {
            resolution->refused = resolver_is_refused(resolver, key);
            resolution->entry = 0;
        }

        resolution->error = KUBE_RESOLVE_NO_SERVICE;
        return resolver_missing(resolver, key, KUBE_SHAPE_SERVICE, arena,
                                resolution);

    case KUBE_CORRUPT:
        return KUBE_CHANGED;

    case KUBE_NOMEM:
        if (!arena->full) {
            return KUBE_NOMEM;
        }

        /* fall through */

    case KUBE_TOO_LARGE:
        resolution->found = false;
        resolution->error = KUBE_RESOLVE_TOO_LARGE;
        return KUBE_OK;

    default:
        return rc;
    }
}


kube_rc_t
kube_resolve(const kube_resolver_t *resolver, const kube_key_t *key,
    unsigned flags, kube_arena_t *arena, kube_resolution_t *resolution)
{
    kube_rc_t  rc;

    rc = resolver_begin(resolver, key, resolution);

    if (rc == KUBE_OK && resolution->entry != 0) {
        rc = resolver_read(resolver, key, flags, arena, resolution);
    }

    return resolver_end(resolver, key, rc, arena, resolution);
}


void
kube_resolving_init(kube_resolving_t *resolving,
    const kube_resolver_t *resolver, const kube_key_t *key,
    const kube_alloc_t *alloc, size_t max_bytes)
{
    memset(resolving, 0, sizeof(kube_resolving_t));

    resolving->resolver = resolver;
    resolving->key = *key;

    kube_arena_init(&resolving->arena, alloc, max_bytes);
    kube_arena_init(&resolving->scratch, alloc, max_bytes);
    kube_arena_init(&resolving->copies, alloc, max_bytes);
}


bool
kube_resolving_is_few(const kube_resolving_t *resolving)
{
    return resolving->few;
}


uint64_t
kube_resolving_pause(uint64_t cost_us, bool few)
{
    return (cost_us > RESOLVER_FREE_US && !few)
           ? cost_us * RESOLVER_PAUSE / 1000
           : 0;
}


void
kube_resolving_done(kube_resolving_t *resolving)
{
    if (resolving->selector != NULL) {
        kube_selector_done(resolving->selector);
        resolving->selector = NULL;
    }

    kube_arena_done(&resolving->copies);
    kube_arena_done(&resolving->scratch);
    kube_arena_done(&resolving->arena);
}


static bool
resolving_from_state_file(const kube_zone_bundle_t *bundle)
{
    size_t    i;
    unsigned  flags;

    flags = bundle->service->flags;

    for (i = 0; i < bundle->slices_n; i++) {
        flags |= bundle->slices[i]->flags;
    }

    return (flags & KUBE_RECORD_F_STATE_FILE) != 0;
}


/*
 * Small: what slices decode to may be kept as long as the copies of them, so
 * that no string is copied once more.
 */
static void
resolving_size(kube_resolving_t *resolving)
{
    size_t               i, bytes;
    kube_zone_bundle_t  *bundle;

    bytes = 0;
    bundle = &resolving->bundle;

    for (i = 0; i < bundle->slices_n && bytes <= RESOLVER_SMALL; i++) {
        bytes += bundle->slices[i]->size;
    }

    resolving->small = (bytes <= RESOLVER_SMALL);
    resolving->few = (bytes <= RESOLVER_FEW);
}


/* Copies the Service and its slices, and looks at the Service. */
static kube_rc_t
resolving_load(kube_resolving_t *resolving)
{
    kube_rc_t               rc;
    kube_object_t           object;
    kube_snapshot_t        *snapshot;
    const kube_key_t       *key;
    kube_zone_bundle_t     *bundle;
    const kube_resolver_t  *resolver;

    key = &resolving->key;
    bundle = &resolving->bundle;
    resolver = resolving->resolver;
    snapshot = &resolving->resolution.snapshot;

    rc = kube_zone_load_service(resolver->zone, resolving->resolution.entry,
                                key->ns, key->name, &resolving->arena,
                                &resolving->copies, bundle);
    if (rc != KUBE_OK) {
        return rc;
    }

    rc = kube_record_decode(&resolving->arena, bundle->service,
                            bundle->service->size, &object);
    if (rc != KUBE_OK) {
        return rc;
    }

    resolving->resolution.head = bundle->head;
    snapshot->entry = resolving->resolution.entry;
    snapshot->head = bundle->head;
    snapshot->revision = bundle->service->revision;
    snapshot->service = object.u.service;
    snapshot->from_state_file = resolving_from_state_file(bundle);

    if (resolver->unsynced_fail && snapshot->from_state_file) {
        resolving->resolution.error = KUBE_RESOLVE_NOT_SYNCED;
        resolving->resolution.entry = 0;
        return KUBE_OK;
    }

    resolving_size(resolving);

    rc = kube_selector_create(&resolving->arena, &snapshot->service,
                              &key->port, &resolver->select,
                              resolving->small ? KUBE_SELECT_BORROW : 0,
                              &resolving->selector);
    if (rc != KUBE_OK) {
        return rc;
    }

    if (kube_selector_error(resolving->selector) != KUBE_RESOLVE_OK) {
        resolving->slices_n = bundle->slices_n;
    }

    return KUBE_AGAIN;
}


static kube_rc_t
resolving_slice(kube_resolving_t *resolving)
{
    size_t                i;
    kube_rc_t             rc;
    kube_slice_t          part;
    kube_object_t         object;
    const kube_record_t  *record;

    record = resolving->bundle.slices[resolving->slices_n++];

    rc = kube_record_decode(&resolving->scratch, record, record->size,
                            &object);

    i = 0;

    while (rc == KUBE_OK && kube_slice_part(&object.u.slice, &i, &part)) {
        rc = kube_selector_add(resolving->selector, &part);
    }

    if (rc != KUBE_OK) {
        return rc;
    }

    if (!resolving->small) {
        kube_arena_reset(&resolving->scratch);

        if (resolving->slices_n == resolving->bundle.slices_n) {
            kube_arena_done(&resolving->copies);
        }
    }

    return KUBE_AGAIN;
}


static kube_rc_t
resolving_select(kube_resolving_t *resolving)
{
    kube_rc_t           rc;
    kube_resolution_t  *resolution;

    resolution = &resolving->resolution;

    rc = kube_selector_sort(resolving->selector);
    if (rc != KUBE_OK) {
        return rc;
    }

    rc = kube_selector_result(resolving->selector, &resolution->selection);
    if (rc != KUBE_OK) {
        return rc;
    }

    resolution->found = true;
    resolution->error = resolution->selection.error;

    if (resolution->error == KUBE_RESOLVE_NO_ENDPOINTS) {
        return resolver_missing(resolving->resolver, &resolving->key,
                                KUBE_SHAPE_SLICE, &resolving->arena,
                                resolution);
    }

    return KUBE_OK;
}


kube_rc_t
kube_resolving_step(kube_resolving_t *resolving)
{
    kube_rc_t  rc;

    if (resolving->selector == NULL) {
        rc = resolver_begin(resolving->resolver, &resolving->key,
                            &resolving->resolution);

        /* else it is few only once the copies tell */

        resolving->few = (resolving->resolution.entry == 0);

        if (rc == KUBE_OK && !resolving->few) {
            rc = resolving_load(resolving);
        }

    } else if (resolving->slices_n < resolving->bundle.slices_n) {
        rc = resolving_slice(resolving);

    } else {
        rc = resolving_select(resolving);
    }

    if (rc == KUBE_AGAIN) {
        return KUBE_AGAIN;
    }

    if (rc == KUBE_NOMEM
        && (resolving->scratch.full || resolving->copies.full))
    {
        resolving->arena.full = true;
    }

    return resolver_end(resolving->resolver, &resolving->key, rc,
                        &resolving->arena, &resolving->resolution);
}


/* The Service's own record, and the port of it that key means. */
static kube_rc_t
resolver_read_service(const kube_resolver_t *resolver, const kube_key_t *key,
    kube_arena_t *arena, kube_resolution_t *resolution, uint32_t *slices_n)
{
    kube_rc_t             rc;
    kube_object_t         object;
    const kube_record_t  *record;

    rc = kube_zone_load(resolver->zone, resolution->entry, arena, &record);
    if (rc != KUBE_OK) {
        return rc;
    }

    rc = kube_record_decode(arena, record, record->size, &object);
    if (rc != KUBE_OK) {
        return rc;
    }

    /* the entry may have become another object's since it was found */

    if (record->kind != KUBE_RECORD_SERVICE
        || !kube_str_eq(object.u.service.meta.ns, key->ns)
        || !kube_str_eq(object.u.service.meta.name, key->name))
    {
        return KUBE_NOT_FOUND;
    }

    resolution->snapshot.service = object.u.service;
    resolution->snapshot.revision = record->revision;
    *slices_n = record->refs_n;

    rc = kube_select(arena, &resolution->snapshot, &key->port,
                     &resolver->select, KUBE_SELECT_PORT,
                     &resolution->selection);

    resolution->found = (rc == KUBE_OK);
    resolution->error = resolution->selection.error;

    return rc;
}


kube_rc_t
kube_resolver_identify(const kube_resolver_t *resolver,
    const kube_key_t *key, kube_arena_t *arena,
    kube_resolution_t *resolution, kube_key_t *identity)
{
    uint32_t   slices_n;
    kube_rc_t  rc;

    rc = resolver_begin(resolver, key, resolution);

    if (rc == KUBE_OK && resolution->entry != 0) {
        rc = resolver_read_service(resolver, key, arena, resolution,
                                   &slices_n);
    }

    rc = resolver_end(resolver, key, rc, arena, resolution);

    if (rc == KUBE_OK && resolution->error == KUBE_RESOLVE_OK) {
        *identity = *key;
        identity->port.name = resolution->selection.port->name;
        identity->port.number = 0;
        identity->port.exact = true;
    }

    return rc;
}


size_t
kube_resolution_text(const kube_key_t *key,
    const kube_resolution_t *resolution, char out[KUBE_KEY_TEXT_MAX])
{
    kube_key_t          canonical;
    const kube_port_t  *port;

    canonical = *key;
    port = resolution->found ? resolution->selection.port : NULL;

    if (port != NULL) {
        canonical.port.name = port->name;
        canonical.port.number = port->port;
        canonical.port.exact = false;
    }

    return kube_key_text(&canonical, out);
}


static void
line_add(resolver_line_t *line, const char *fmt, ...)  KUBE_PRINTF(2, 3);


static void
line_add(resolver_line_t *line, const char *fmt, ...)
{
    int      n;
    size_t   room;
    va_list  args;

    room = KUBE_RESOLVER_WHY_MAX - line->len;

    va_start(args, fmt);
    n = vsnprintf(line->out + line->len, room, fmt, args);
    va_end(args);

    if (n > 0) {
        line->len += ((size_t) n < room) ? (size_t) n : room - 1;
    }
}


static void
line_name(resolver_line_t *line, kube_str_t name)
{
    char  escaped[RESOLVER_NAME_MAX];

    (void) kube_str_escape(escaped, sizeof(escaped), name);
    line_add(line, "%s", escaped);
}


static void
line_service(resolver_line_t *line, const kube_key_t *key)
{
    line_add(line, "Service ");
    line_name(line, key->ns);
    line_add(line, "/");
    line_name(line, key->name);
}


static void
why_namespace(const kube_resolver_t *resolver, const kube_key_t *key,
    resolver_line_t *line)
{
    size_t  i;

    line_add(line, "namespace \"");
    line_name(line, key->ns);
    line_add(line, "\" is not in namespaces=");

    for (i = 0; i < resolver->namespaces.names_n; i++) {
        line_add(line, i != 0 ? "," : "");
        line_name(line, resolver->namespaces.names[i]);
    }
}


static void
why_ports(const kube_key_t *key, const kube_resolution_t *resolution,
    resolver_line_t *line)
{
    size_t                 i;
    const char            *of;
    const kube_port_t     *port;
    const kube_service_t  *service;

    of = "";
    service = &resolution->snapshot.service;

    for (i = 0; i < service->ports_n; i++) {
        if (service->ports[i].protocol != KUBE_PROTOCOL_TCP) {
            of = "TCP ";
        }
    }

    line_service(line, key);

    if (resolution->error == KUBE_RESOLVE_PORT_NEEDED) {
        line_add(line, " has several ports and the key names none");

    } else if (key->port.number != 0) {
        line_add(line, " has no %sport %u", of, (unsigned) key->port.number);

    } else {
        line_add(line, " has no %sport ", of);
        line_name(line, key->port.name.len != 0 ? key->port.name
                                                : KUBE_STR("at all"));
    }

    for (i = 0; i < service->ports_n; i++) {
        port = &service->ports[i];

        line_add(line, i == 0 ? "; it has " : ", ");
        line_name(line, port->name.len != 0 ? port->name
                                            : KUBE_STR("unnamed"));
        line_add(line, " (%u%s%s)", (unsigned) port->port,
                 port->protocol == KUBE_PROTOCOL_TCP ? "" : " ",
                 port->protocol == KUBE_PROTOCOL_TCP
                 ? "" : kube_protocol_text(port->protocol));
    }
}


/* Names the first address that could be used if the policy let it. */
static void
why_denied(const kube_key_t *key, const kube_resolution_t *resolution,
    resolver_line_t *line)
{
    size_t                   i;
    const kube_slice_t      *slice;
    const kube_explained_t  *row;
    char                     text[KUBE_ADDR_TEXT_MAX];

    for (i = 0; i < resolution->selection.rows_n; i++) {
        row = &resolution->selection.rows[i];

        if (row->denied_because == NULL) {
            continue;
        }

        slice = &resolution->snapshot.slices[row->slice];
        (void) kube_addr_text(&slice->endpoints[row->endpoint].address, text);

        line_add(line, "address %s of ", text);
        line_service(line, key);
        line_add(line, " is denied: %s", row->denied_because);
        return;
    }

    line_add(line, "all addresses of ");
    line_service(line, key);
    line_add(line, " that could be used are denied");
}


/* How many endpoints there are, where they were counted. */
static void
why_count(const kube_resolution_t *resolution, resolver_line_t *line)
{
    if (resolution->selection.rows_n != 0) {
        line_add(line, "; it has %zu", resolution->selection.rows_n);
    }
}


/* Where targetPort is a name that no pod has, slices come without the port. */
static void
why_no_endpoints(const kube_key_t *key, const kube_resolution_t *resolution,
    resolver_line_t *line)
{
    const kube_port_t  *port;

    if (resolution->selection.rows_n == 0) {
        line_service(line, key);
        line_add(line, " has no endpoints");
        return;
    }

    port = resolution->selection.port;

    line_add(line, "no endpoint of ");
    line_service(line, key);

    if (port->name.len != 0) {
        line_add(line, " has its port ");
        line_name(line, port->name);

    } else {
        line_add(line, " has its port %u", (unsigned) port->port);
    }

    why_count(resolution, line);
    line_add(line, "; see its targetPort, and its slices' ports");
}


static void
why_missing(const kube_resolver_t *resolver, const kube_key_t *key,
    const kube_resolution_t *resolution, kube_arena_t *arena,
    resolver_line_t *line)
{
    kube_shape_t                  shape;
    kube_coverage_t               coverage;
    const kube_coverage_scope_t  *scope;

    shape = resolution->found ? KUBE_SHAPE_SLICE : KUBE_SHAPE_SERVICE;
    scope = NULL;

    if (kube_coverage_read(resolver->zone, arena, &coverage) == KUBE_OK
        && kube_coverage_of(&coverage, shape, key->ns, &scope)
           == KUBE_RESOLVE_OK)
    {
        line_service(line, key);
        line_add(line, (!resolution->found && resolution->refused)
                 ? " is not held: it was refused, the status says why"
                 : " is not held, or a part of it: the zone has no room for "
                   "some objects, nor for their names");
        return;
    }

    line_add(line, resolution->error == KUBE_RESOLVE_FORBIDDEN
                   ? "the API server forbids to list "
                   : "no list has been completed of ");
    line_add(line, "%s in ", scope != NULL
                             ? kube_resource_text(scope->resource)
                             : "the objects");
    line_name(line, scope != NULL && scope->ns.len == 0
                    ? KUBE_STR("all namespaces") : key->ns);
}


static void
why_resolution(const kube_resolver_t *resolver, const kube_key_t *key,
    const kube_resolution_t *resolution, kube_arena_t *arena,
    resolver_line_t *line)
{
    switch (resolution->error) {

    case KUBE_RESOLVE_NO_SERVICE:
        line_add(line, "there is no ");
        line_service(line, key);
        break;

    case KUBE_RESOLVE_NO_PORT:
    case KUBE_RESOLVE_PORT_NEEDED:
        why_ports(key, resolution, line);
        break;

    case KUBE_RESOLVE_NO_ENDPOINTS:
        why_no_endpoints(key, resolution, line);
        break;

    case KUBE_RESOLVE_NO_READY_ENDPOINT:
        line_add(line, "no endpoint of ");
        line_service(line, key);
        line_add(line, " is ready");
        why_count(resolution, line);
        break;

    case KUBE_RESOLVE_NO_FAMILY:
        line_add(line, "no endpoint of ");
        line_service(line, key);
        line_add(line, " has an %s address",
                 resolver->select.family == KUBE_SELECT_FAMILY_IPV4 ? "IPv4"
                 : resolver->select.family == KUBE_SELECT_FAMILY_IPV6 ? "IPv6"
                 : "IP");
        why_count(resolution, line);
        break;

    case KUBE_RESOLVE_ADDRESS_DENIED:
        why_denied(key, resolution, line);
        break;

    case KUBE_RESOLVE_EXTERNAL_NAME:
        line_service(line, key);
        line_add(line, " is an ExternalName, which is not followed");
        break;

    case KUBE_RESOLVE_TOO_LARGE:
        line_service(line, key);
        line_add(line, " has more endpoints than can be read");
        break;

    case KUBE_RESOLVE_NOT_SYNCED:
    case KUBE_RESOLVE_FORBIDDEN:
        why_missing(resolver, key, resolution, arena, line);
        break;

    default:
        break;
    }
}


/* The Service's record alone, where that tells it or the rest is too much. */
static kube_rc_t
why_resolve(const kube_resolver_t *resolver, const kube_key_t *key,
    kube_resolve_error_t known, kube_arena_t *arena,
    kube_resolution_t *resolution)
{
    uint32_t   slices_n;
    kube_rc_t  rc;

    slices_n = 0;
    rc = resolver_begin(resolver, key, resolution);

    if (rc == KUBE_OK && resolution->entry != 0) {
        rc = resolver_read_service(resolver, key, arena, resolution,
                                   &slices_n);

        if (rc == KUBE_OK && resolution->error == KUBE_RESOLVE_OK) {

            if (slices_n <= KUBE_RESOLVER_WHY_SLICES) {
                return kube_resolve(resolver, key, KUBE_SELECT_EXPLAIN, arena,
                                    resolution);
            }

            resolution->error = known;
        }
    }

    return resolver_end(resolver, key, rc, arena, resolution);
}


kube_resolve_error_t
kube_resolver_why(const kube_resolver_t *resolver, kube_str_t text,
    kube_resolve_error_t known, kube_arena_t *arena,
    char out[KUBE_RESOLVER_WHY_MAX])
{
    kube_key_t            key;
    kube_error_t          wrong;
    resolver_line_t       line;
    kube_resolution_t     resolution;
    kube_resolve_error_t  error;

    out[0] = '\0';
    line.out = out;
    line.len = 0;

    error = kube_resolver_key(resolver, text, &key);

    switch (error) {

    case KUBE_RESOLVE_OK:
        break;

    case KUBE_RESOLVE_NO_KEY:
        line_add(&line, "the key is empty");
        return error;

    case KUBE_RESOLVE_NAMESPACE_DENIED:
        why_namespace(resolver, &key, &line);
        return error;

    default:
        if (kube_key_parse(text, resolver->dns, &key, &wrong) != KUBE_OK) {
            line_add(&line, "%s", wrong.what);
        }

        return error;
    }

    if (why_resolve(resolver, &key, known, arena, &resolution) != KUBE_OK) {
        line_service(&line, &key);
        line_add(&line, " could not be read");
        return KUBE_RESOLVE_NOT_SYNCED;
    }

    why_resolution(resolver, &key, &resolution, arena, &line);

    return resolution.error;
}
