/*
 * kube_services - /api/v1/services, the Services of an informer part by part,
 * and /api/v1/services/namespace/name, one of them with its endpoints and why
 * each is or is not used.
 *
 * It is no judge of its own: what a request would get is asked of the resolver.
 * Called by workers, which send what is written here.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>

#include "kube_object_json.h"
#include "kube_resolver.h"
#include "kube_services.h"


/*
 * What is shown of one Service, in one piece and between requests: a tenant
 * may have a million endpoints, and 20 000 ports for each thousand of them.
 */
#define SERVICES_ENDPOINTS_SHOWN  4096
#define SERVICES_PORTS_SHOWN      16


typedef struct {
    uint8_t  ns_len;
    uint8_t  name_len;
    char     ns[KUBE_NAMESPACE_LEN_MAX];
    char     name[KUBE_NAME_LEN_MAX];
} services_name_t;

/* The first names after the one asked for, in order. */
typedef struct {
    services_name_t  **names;
    size_t             n;
    size_t             limit;
    bool               more;      /* there are Services after the last */
} services_names_t;

typedef struct {
    kube_resolution_t        resolution;
    const kube_explained_t  *rows;
    size_t                   rows_n;
    size_t                   used;
} services_read_t;


bool
kube_services_name(kube_str_t text, kube_str_t *ns, kube_str_t *name)
{
    const char  *slash;

    slash = (text.len != 0) ? memchr(text.data, '/', text.len) : NULL;

    if (slash == NULL) {
        return false;
    }

    ns->data = text.data;
    ns->len = (size_t) (slash - text.data);
    name->data = slash + 1;
    name->len = text.len - ns->len - 1;

    return kube_name_is_label(*ns) && kube_name_is_subdomain(*name);
}


const char *
kube_services_query(kube_services_t *services, kube_str_t ns,
    kube_str_t limit, kube_str_t after)
{
    uint64_t  n;

    services->ns = ns;
    services->limit = KUBE_SERVICES_LIMIT_DEFAULT;
    services->after_ns = KUBE_STR_NULL;
    services->after_name = KUBE_STR_NULL;

    if (ns.len != 0 && !kube_name_is_label(ns)) {
        return "namespace is not a name";
    }

    if (limit.len != 0) {

        if (kube_str_to_u64(limit, KUBE_SERVICES_LIMIT_MAX, &n) != KUBE_OK
            || n == 0)
        {
            return "limit must be 1 to 1000";
        }

        services->limit = (size_t) n;
    }

    if (after.len != 0
        && !kube_services_name(after, &services->after_ns,
                               &services->after_name))
    {
        return "after must be namespace/name";
    }

    return NULL;
}


static kube_str_t
services_ns(const services_name_t *name)
{
    return (kube_str_t) { name->ns, name->ns_len };
}


static kube_str_t
services_name(const services_name_t *name)
{
    return (kube_str_t) { name->name, name->name_len };
}


static int
services_cmp(kube_str_t a_ns, kube_str_t a_name, kube_str_t b_ns,
    kube_str_t b_name)
{
    int  rc;

    rc = kube_str_cmp(a_ns, b_ns);

    return (rc != 0) ? rc : kube_str_cmp(a_name, b_name);
}


/* Puts a name where it belongs, or nowhere; the last one may have to go. */
static kube_rc_t
services_take(services_names_t *names, kube_str_t ns, kube_str_t name,
    kube_arena_t *arena)
{
    size_t            low, high, middle;
    services_name_t  *own;

    low = 0;
    high = names->n;

    while (low < high) {
        middle = low + (high - low) / 2;
        own = names->names[middle];

        if (services_cmp(services_ns(own), services_name(own), ns, name) < 0)
        {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    if (names->n == names->limit) {

        names->more = true;

        if (low == names->limit) {
            return KUBE_OK;
        }

        own = names->names[--names->n];

    } else {
        own = kube_arena_alloc(arena, sizeof(services_name_t));

        if (own == NULL) {
            return KUBE_NOMEM;
        }
    }

    memmove(&names->names[low + 1], &names->names[low],
            (names->n - low) * sizeof(services_name_t *));

    own->ns_len = (uint8_t) ns.len;
    own->name_len = (uint8_t) name.len;
    memcpy(own->ns, ns.data, ns.len);
    memcpy(own->name, name.data, name.len);

    names->names[low] = own;
    names->n++;

    return KUBE_OK;
}


static kube_rc_t
services_names(services_names_t *names, const kube_services_t *services,
    kube_arena_t *arena, kube_arena_t *scratch)
{
    uint32_t              cursor, entry;
    kube_rc_t             rc;
    kube_record_id_t      id;
    const kube_record_t  *record;

    memset(names, 0, sizeof(services_names_t));

    names->limit = services->limit;
    names->names = kube_arena_alloc(arena, names->limit
                                           * sizeof(services_name_t *));
    if (names->names == NULL) {
        return KUBE_NOMEM;
    }

    cursor = 0;

    for ( ;; ) {

        kube_arena_reset(scratch);

        rc = kube_zone_next(services->zone, KUBE_RECORD_SERVICE, &cursor,
                            scratch, &record, &entry);

        if (rc != KUBE_OK) {
            return (rc == KUBE_NOT_FOUND) ? KUBE_OK : rc;
        }

        if (kube_record_id(record, record->size, &id) != KUBE_OK
            || id.meta.ns.len > KUBE_NAMESPACE_LEN_MAX
            || id.meta.name.len > KUBE_NAME_LEN_MAX
            || (services->ns.len != 0
                && !kube_str_eq(services->ns, id.meta.ns))
            || services_cmp(id.meta.ns, id.meta.name, services->after_ns,
                            services->after_name)
               <= 0)
        {
            continue;
        }

        rc = services_take(names, id.meta.ns, id.meta.name, arena);

        if (rc != KUBE_OK) {
            return rc;
        }
    }
}


/* As kube_services_print_one(). */
static kube_rc_t
services_read(const kube_services_t *services, kube_str_t ns, kube_str_t name,
    kube_arena_t *scratch, services_read_t *read)
{
    size_t            i;
    kube_rc_t         rc;
    kube_key_t        key;
    kube_resolver_t   resolver;

    memset(read, 0, sizeof(services_read_t));
    memset(&key, 0, sizeof(kube_key_t));
    memset(&resolver, 0, sizeof(kube_resolver_t));

    key.ns = ns;
    key.name = name;

    resolver.zone = services->zone;
    resolver.namespaces.all = true;
    resolver.select.policy = services->policy;
    resolver.select.seed = &services->zone->geometry.seed;

    kube_arena_reset(scratch);

    rc = kube_resolve(&resolver, &key,
                      KUBE_SELECT_EXPLAIN | KUBE_SELECT_ANY_PORT, scratch,
                      &read->resolution);

    if (rc != KUBE_OK) {
        return rc;
    }

    if (!read->resolution.found) {
        return (read->resolution.error == KUBE_RESOLVE_TOO_LARGE)
               ? KUBE_TOO_LARGE : KUBE_NOT_FOUND;
    }

    read->rows = read->resolution.selection.rows;
    read->rows_n = read->resolution.selection.rows_n;

    for (i = 0; i < read->rows_n; i++) {
        read->used += (read->rows[i].excluded_because == NULL);
    }

    return KUBE_OK;
}


/* What a row of the list and the Service itself have in common. */
static void
services_put(kube_json_writer_t *json, const services_read_t *read)
{
    const kube_service_t  *service;

    service = &read->resolution.snapshot.service;

    kube_json_put_str(json, "namespace", service->meta.ns);
    kube_json_put_str(json, "name", service->meta.name);
    kube_json_put_service(json, service);
    kube_json_put_num(json, "generation", read->resolution.snapshot.revision);
    kube_json_put_ports(json, service->ports, service->ports_n, false);
}


/* Adds the endpoints that were looked at to *looked. */
static kube_rc_t
services_item(kube_json_writer_t *json, const kube_services_t *services,
    const services_name_t *name, kube_arena_t *scratch, size_t *looked)
{
    kube_rc_t        rc;
    services_read_t  read;

    rc = services_read(services, services_ns(name), services_name(name),
                       scratch, &read);

    if (rc == KUBE_NOMEM) {
        return rc;
    }

    if (rc == KUBE_NOT_FOUND) {
        return KUBE_OK;
    }

    *looked += read.rows_n;

    if (rc != KUBE_OK) {

        /* it took as long as one that is just not too large */
        *looked += KUBE_SERVICES_ENDPOINTS_MAX;

        memset(&read, 0, sizeof(services_read_t));
        read.resolution.snapshot.service.meta.ns = services_ns(name);
        read.resolution.snapshot.service.meta.name = services_name(name);
    }

    kube_json_open(json, NULL, '{');
    services_put(json, &read);
    kube_json_put_num(json, "endpoints_total", read.rows_n);
    kube_json_put_num(json, "endpoints_used", read.used);

    if (rc != KUBE_OK) {
        kube_json_put_str(json, "error", kube_str(kube_rc_text(rc)));
    }

    kube_json_close(json, '}');

    return KUBE_OK;
}


kube_rc_t
kube_services_print(kube_text_t *text, const kube_services_t *services,
    kube_arena_t *arena, kube_arena_t *scratch)
{
    int                     len;
    size_t                  i, size, looked, most;
    kube_rc_t               rc;
    kube_str_t              next;
    services_names_t        names;
    kube_json_writer_t      json;
    const services_name_t  *last;
    char                    key[KUBE_KEY_LEN_MAX + 1];

    rc = services_names(&names, services, arena, scratch);

    kube_json_writer_init(&json, text);
    kube_json_open(&json, NULL, '{');
    kube_json_open(&json, "items", '[');

    size = text->size + (services->bytes != 0 ? services->bytes
                                              : KUBE_SERVICES_BYTES_MAX);
    most = services->endpoints != 0 ? services->endpoints
                                    : KUBE_SERVICES_ENDPOINTS_MAX;
    looked = 0;

    for (i = 0;
         i < names.n && rc == KUBE_OK && text->size <= size && looked <= most;
         i++)
    {
        rc = services_item(&json, services, names.names[i], scratch, &looked);
    }

    names.more = names.more || i < names.n;
    names.n = i;
    next = KUBE_STR("");

    if (names.more && names.n != 0) {
        last = names.names[names.n - 1];
        len = snprintf(key, sizeof(key), "%.*s/%.*s", last->ns_len, last->ns,
                       last->name_len, last->name);

        next.data = key;
        next.len = (size_t) len;
    }

    kube_json_close(&json, ']');
    kube_json_put_str(&json, "next", next);
    kube_json_close(&json, '}');
    kube_text_put(text, KUBE_STR("\n"));

    return rc;
}


static void
services_endpoint(kube_json_writer_t *json, const services_read_t *read,
    const kube_explained_t *row)
{
    const kube_slice_t     *slice;
    const kube_endpoint_t  *ep;

    slice = &read->resolution.snapshot.slices[row->slice];
    ep = &slice->endpoints[row->endpoint];

    kube_json_open(json, NULL, '{');
    kube_json_put_address(json, "address", &ep->address);
    kube_json_put_ports(json, slice->ports,
                        slice->ports_n < SERVICES_PORTS_SHOWN
                        ? slice->ports_n : SERVICES_PORTS_SHOWN, true);
    kube_json_put_num(json, "ports_total", slice->ports_n);
    kube_json_put_conditions(json, ep);
    kube_json_put_optional(json, "pod", ep->pod);
    kube_json_put_optional(json, "node", ep->node);
    kube_json_put_optional(json, "zone", ep->zone);
    kube_json_put_str(json, "slice", slice->meta.name);
    kube_json_put_bool(json, "used", row->excluded_because == NULL);
    kube_json_put_optional(json, "excluded_because",
                           kube_str(row->excluded_because));
    kube_json_put_optional(json, "denied_because",
                           kube_str(row->denied_because));

    /* counted once the shared accounts of the data plane exist */

    kube_json_put_null(json, "active");
    kube_json_put_null(json, "requests");
    kube_json_put_null(json, "fails");
    kube_json_close(json, '}');
}


kube_rc_t
kube_services_print_one(kube_text_t *text, const kube_services_t *services,
    kube_str_t ns, kube_str_t name, kube_arena_t *scratch)
{
    size_t              i;
    kube_rc_t           rc;
    services_read_t     read;
    kube_json_writer_t  json;

    rc = services_read(services, ns, name, scratch, &read);

    if (rc != KUBE_OK) {
        return rc;
    }

    kube_json_writer_init(&json, text);
    kube_json_open(&json, NULL, '{');
    services_put(&json, &read);
    kube_json_put_num(&json, "endpoints_total", read.rows_n);
    kube_json_put_num(&json, "endpoints_used", read.used);
    kube_json_open(&json, "endpoints", '[');

    for (i = 0; i < read.rows_n && i < SERVICES_ENDPOINTS_SHOWN; i++) {
        services_endpoint(&json, &read, &read.rows[i]);
    }

    kube_json_close(&json, ']');
    kube_json_close(&json, '}');
    kube_text_put(text, KUBE_STR("\n"));

    return KUBE_OK;
}
