/*
 * ngx_http_kube_status_services - /api/v1/services, an informer's Services
 * page by page, and /api/v1/services/ns/name, one with its endpoints.
 *
 * Beyond the namespace, limit and after of the contract, informer=name says
 * whose Services are meant: "default", or where there is none of that name
 * the first block's.  Called by ngx_http_kube_status.c, in
 * workers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_status.h"


typedef struct {
    ngx_kube_informer_t   *informer;
    kube_str_t             ns;
    ngx_http_kube_name_t   after;
    ngx_uint_t             after_given;
    ngx_uint_t             limit;
} ngx_http_kube_query_t;


static ngx_int_t ngx_http_kube_arg_text(ngx_http_request_t *r, char *name,
    kube_str_t *value);
static ngx_kube_informer_t *ngx_http_kube_arg_informer(ngx_http_request_t *r);
static const char *ngx_http_kube_query(ngx_http_request_t *r,
    ngx_http_kube_query_t *query);
static const char *ngx_http_kube_query_after(kube_str_t text,
    ngx_http_kube_query_t *query);
static ngx_int_t ngx_http_kube_json_services(ngx_http_request_t *r,
    ngx_http_kube_print_t *p, ngx_http_kube_query_t *query,
    ngx_http_kube_names_t *names);
static void ngx_http_kube_json_service(ngx_http_kube_print_t *p,
    ngx_http_kube_service_t *service);
static void ngx_http_kube_json_endpoint(ngx_http_kube_print_t *p,
    ngx_http_kube_service_t *service, kube_explained_t *row);
static void ngx_http_kube_json_ports(ngx_http_kube_print_t *p,
    const kube_port_t *ports, size_t n, ngx_uint_t of_slice);
static void ngx_http_kube_json_optional(ngx_http_kube_print_t *p,
    const char *key, kube_str_t s);


ngx_int_t
ngx_http_kube_service_read(kube_arena_t *arena, ngx_kube_informer_t *informer,
    kube_str_t ns, kube_str_t name, ngx_http_kube_service_t *service)
{
    size_t             i;
    kube_rc_t          rc;
    kube_key_t         key;
    kube_resolver_t    resolver;
    kube_resolution_t  resolution;

    kube_arena_reset(arena);

    ngx_memzero(&key, sizeof(kube_key_t));
    key.ns = ns;
    key.name = name;

    ngx_memzero(&resolver, sizeof(kube_resolver_t));
    resolver.zone = &informer->zone;
    resolver.namespaces.all = true;
    resolver.select.policy = &informer->policy;

    rc = kube_resolve(&resolver, &key,
                      KUBE_SELECT_EXPLAIN | KUBE_SELECT_ANY_PORT, arena,
                      &resolution);

    if (rc == KUBE_NOMEM) {
        return NGX_ERROR;
    }

    if (rc != KUBE_OK || !resolution.found) {
        return NGX_DECLINED;
    }

    service->snapshot = resolution.snapshot;
    service->rows = resolution.selection.rows;
    service->n = resolution.selection.rows_n;
    service->used = 0;

    for (i = 0; i < service->n; i++) {
        service->used += service->rows[i].excluded_because == NULL;
    }

    return NGX_OK;
}


/* NGX_OK, NGX_DECLINED: not given, NGX_ERROR: no memory. */

static ngx_int_t
ngx_http_kube_arg_text(ngx_http_request_t *r, char *name, kube_str_t *value)
{
    u_char     *dst, *src;
    ngx_str_t   arg;

    *value = KUBE_STR_NULL;

    if (ngx_http_arg(r, (u_char *) name, ngx_strlen(name), &arg) != NGX_OK) {
        return NGX_DECLINED;
    }

    dst = ngx_pnalloc(r->pool, arg.len + 1);
    if (dst == NULL) {
        return NGX_ERROR;
    }

    value->data = (char *) dst;
    src = arg.data;

    ngx_unescape_uri(&dst, &src, arg.len, 0);

    value->len = (char *) dst - value->data;

    return NGX_OK;
}


static ngx_kube_informer_t *
ngx_http_kube_arg_informer(ngx_http_request_t *r)
{
    ngx_int_t              rc;
    ngx_str_t              name;
    kube_str_t             value;
    ngx_kube_conf_t       *kcf;
    ngx_kube_informer_t   *informer, **informers;

    kcf = ngx_kube_get_conf(ngx_cycle);
    informers = kcf->informers.elts;

    rc = ngx_http_kube_arg_text(r, "informer", &value);

    if (rc == NGX_OK) {
        name.data = (u_char *) value.data;
        name.len = value.len;

        return ngx_kube_informer_find(kcf, &name);
    }

    if (rc == NGX_ERROR || kcf->informers.nelts == 0) {
        return NULL;
    }

    ngx_str_set(&name, "default");

    informer = ngx_kube_informer_find(kcf, &name);

    return informer != NULL ? informer : informers[0];
}


/* NULL, or what is wrong with the query. */

static const char *
ngx_http_kube_query(ngx_http_request_t *r, ngx_http_kube_query_t *query)
{
    uint64_t    limit;
    kube_str_t  value;

    query->limit = NGX_HTTP_KUBE_LIMIT_DEFAULT;
    query->after_given = 0;

    if (ngx_http_kube_arg_text(r, "namespace", &query->ns) == NGX_OK
        && query->ns.len != 0 && !kube_name_is_label(query->ns))
    {
        return "namespace is not a name";
    }

    if (ngx_http_kube_arg_text(r, "limit", &value) == NGX_OK) {

        if (kube_str_to_u64(value, NGX_HTTP_KUBE_LIMIT_MAX, &limit)
            != KUBE_OK
            || limit == 0)
        {
            return "limit must be 1 to 1000";
        }

        query->limit = (ngx_uint_t) limit;
    }

    if (ngx_http_kube_arg_text(r, "after", &value) == NGX_OK
        && value.len != 0)
    {
        return ngx_http_kube_query_after(value, query);
    }

    return NULL;
}


static const char *
ngx_http_kube_query_after(kube_str_t text, ngx_http_kube_query_t *query)
{
    kube_str_t   ns, name;
    const char  *slash;

    slash = memchr(text.data, '/', text.len);

    if (slash != NULL) {
        ns.data = text.data;
        ns.len = slash - text.data;
        name.data = slash + 1;
        name.len = text.len - ns.len - 1;

        if (kube_name_is_label(ns) && kube_name_is_subdomain(name)) {
            ngx_http_kube_name_set(&query->after, ns, name);
            query->after_given = 1;
            return NULL;
        }
    }

    return "after must be namespace/name";
}


ngx_int_t
ngx_http_kube_body_services(ngx_http_request_t *r, ngx_http_kube_print_t *p)
{
    const char             *wrong;
    ngx_http_kube_query_t   query;
    ngx_http_kube_names_t   names;

    query.informer = ngx_http_kube_arg_informer(r);

    if (query.informer == NULL) {
        return ngx_http_kube_body_error(p, NGX_HTTP_NOT_FOUND,
                                        "no such informer");
    }

    wrong = ngx_http_kube_query(r, &query);

    if (wrong != NULL) {
        return ngx_http_kube_body_error(p, NGX_HTTP_BAD_REQUEST, wrong);
    }

    if (ngx_http_kube_names(r, query.informer, query.ns,
                            query.after_given ? &query.after : NULL,
                            query.limit, &names)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_kube_json_services(r, p, &query, &names);
}


static ngx_int_t
ngx_http_kube_json_services(ngx_http_request_t *r, ngx_http_kube_print_t *p,
    ngx_http_kube_query_t *query, ngx_http_kube_names_t *names)
{
    u_char                   next[KUBE_KEY_LEN_MAX + 1];
    kube_str_t               ns, name, text;
    ngx_int_t                rc;
    ngx_uint_t               i;
    kube_arena_t            *arena;
    ngx_http_kube_service_t  service;

    arena = ngx_http_kube_arena(r);
    if (arena == NULL) {
        return NGX_ERROR;
    }

    text = KUBE_STR("");

    ngx_http_kube_json_open(p, NULL, '{');
    ngx_http_kube_json_open(p, "items", '[');

    for (i = 0; i < names->n; i++) {

        ns = ngx_http_kube_name_ns(&names->names[i]);
        name = ngx_http_kube_name_name(&names->names[i]);

        if (names->more && i == names->n - 1) {
            text.data = (char *) next;
            text.len = ngx_snprintf(next, sizeof(next), "%*s/%*s", ns.len,
                                    ns.data, name.len, name.data)
                       - next;
        }

        rc = ngx_http_kube_service_read(arena, query->informer, ns, name,
                                        &service);
        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        /* else it has just gone */

        if (rc == NGX_OK) {
            ngx_http_kube_json_open(p, NULL, '{');
            ngx_http_kube_json_service(p, &service);
            ngx_http_kube_json_num(p, "endpoints_total", service.n);
            ngx_http_kube_json_num(p, "endpoints_used", service.used);
            ngx_http_kube_json_close(p, '}');
        }
    }

    ngx_http_kube_json_close(p, ']');
    ngx_http_kube_json_str(p, "next", text);
    ngx_http_kube_json_close(p, '}');
    ngx_http_kube_puts(p, "\n");

    return NGX_HTTP_OK;
}


ngx_int_t
ngx_http_kube_body_service(ngx_http_request_t *r, ngx_http_kube_print_t *p,
    ngx_str_t *path)
{
    size_t                    i;
    ngx_int_t                 rc;
    kube_arena_t             *arena;
    ngx_kube_informer_t      *informer;
    ngx_http_kube_query_t     query;
    ngx_http_kube_service_t   service;

    informer = ngx_http_kube_arg_informer(r);

    if (informer == NULL) {
        return ngx_http_kube_body_error(p, NGX_HTTP_NOT_FOUND,
                                        "no such informer");
    }

    if (ngx_http_kube_query_after(ngx_http_kube_str(path), &query) != NULL) {
        return ngx_http_kube_body_error(p, NGX_HTTP_NOT_FOUND,
                                        "not namespace/name");
    }

    arena = ngx_http_kube_arena(r);
    if (arena == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_http_kube_service_read(arena, informer,
                                    ngx_http_kube_name_ns(&query.after),
                                    ngx_http_kube_name_name(&query.after),
                                    &service);

    if (rc == NGX_DECLINED) {
        return ngx_http_kube_body_error(p, NGX_HTTP_NOT_FOUND,
                                        "no such Service");
    }

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_kube_json_open(p, NULL, '{');
    ngx_http_kube_json_service(p, &service);
    ngx_http_kube_json_open(p, "endpoints", '[');

    for (i = 0; i < service.n; i++) {
        ngx_http_kube_json_endpoint(p, &service, &service.rows[i]);
    }

    ngx_http_kube_json_close(p, ']');
    ngx_http_kube_json_close(p, '}');
    ngx_http_kube_puts(p, "\n");

    return NGX_HTTP_OK;
}


/* What a row of the list and the Service itself have in common. */

static void
ngx_http_kube_json_service(ngx_http_kube_print_t *p,
    ngx_http_kube_service_t *service)
{
    size_t                 i, len;
    const kube_service_t  *svc;
    char                   text[KUBE_ADDR_TEXT_MAX];

    svc = &service->snapshot.service;

    ngx_http_kube_json_str(p, "namespace", svc->meta.ns);
    ngx_http_kube_json_str(p, "name", svc->meta.name);
    ngx_http_kube_json_str(p, "type",
                           kube_str(kube_service_type_text(svc->type)));
    ngx_http_kube_json_open(p, "cluster_ips", '[');

    for (i = 0; i < svc->cluster_ips_n; i++) {
        len = kube_addr_text(&svc->cluster_ips[i], text);
        ngx_http_kube_json_str(p, NULL, (kube_str_t) { text, len });
    }

    ngx_http_kube_json_close(p, ']');
    ngx_http_kube_json_bool(p, "headless", svc->headless);
    ngx_http_kube_json_num(p, "generation", service->snapshot.revision);
    ngx_http_kube_json_ports(p, svc->ports, svc->ports_n, 0);
}


static void
ngx_http_kube_json_endpoint(ngx_http_kube_print_t *p,
    ngx_http_kube_service_t *service, kube_explained_t *row)
{
    char              text[KUBE_ADDR_TEXT_MAX];
    size_t            len;
    kube_slice_t     *slice;
    kube_endpoint_t  *ep;

    slice = &service->snapshot.slices[row->slice];
    ep = &slice->endpoints[row->endpoint];

    len = kube_addr_text(&ep->address, text);

    ngx_http_kube_json_open(p, NULL, '{');
    ngx_http_kube_json_str(p, "address", (kube_str_t) { text, len });
    ngx_http_kube_json_ports(p, slice->ports, slice->ports_n, 1);
    ngx_http_kube_json_bool(p, "ready", ep->ready);
    ngx_http_kube_json_bool(p, "serving", ep->serving);
    ngx_http_kube_json_bool(p, "terminating", ep->terminating);
    ngx_http_kube_json_optional(p, "pod", ep->pod);
    ngx_http_kube_json_optional(p, "node", ep->node);
    ngx_http_kube_json_optional(p, "zone", ep->zone);
    ngx_http_kube_json_str(p, "slice", slice->meta.name);
    ngx_http_kube_json_bool(p, "used", row->excluded_because == NULL);

    if (row->excluded_because == NULL) {
        ngx_http_kube_json_null(p, "excluded_because");

    } else {
        ngx_http_kube_json_str(p, "excluded_because",
                               kube_str(row->excluded_because));
    }

    /* counted once the shared accounts of the data plane exist */

    ngx_http_kube_json_null(p, "active");
    ngx_http_kube_json_null(p, "requests");
    ngx_http_kube_json_null(p, "fails");
    ngx_http_kube_json_close(p, '}');
}


static void
ngx_http_kube_json_ports(ngx_http_kube_print_t *p, const kube_port_t *ports,
    size_t n, ngx_uint_t of_slice)
{
    size_t  i;

    ngx_http_kube_json_open(p, "ports", '[');

    for (i = 0; i < n; i++) {

        ngx_http_kube_json_open(p, NULL, '{');
        ngx_http_kube_json_str(p, "name", ports[i].name);

        if (ports[i].port == 0) {
            ngx_http_kube_json_null(p, "port");

        } else {
            ngx_http_kube_json_num(p, "port", ports[i].port);
        }

        ngx_http_kube_json_str(p, "protocol",
                               kube_str(kube_protocol_text(ports[i].protocol)));
        if (of_slice) {
            ngx_http_kube_json_optional(p, "app_protocol",
                                        ports[i].app_protocol);
        }

        ngx_http_kube_json_close(p, '}');
    }

    ngx_http_kube_json_close(p, ']');
}


static void
ngx_http_kube_json_optional(ngx_http_kube_print_t *p, const char *key,
    kube_str_t s)
{
    if (s.len == 0) {
        ngx_http_kube_json_null(p, key);
        return;
    }

    ngx_http_kube_json_str(p, key, s);
}
