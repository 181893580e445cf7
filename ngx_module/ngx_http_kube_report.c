/*
 * ngx_http_kube_report - what the zones of all informers say, collected for
 * the status, the metrics and the page.
 *
 * Reads only.  Called by the status files of the http glue, in workers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_status.h"


/* A crash loop is shown for as long as its crashes are damped. */
#define NGX_HTTP_KUBE_CRASH_WINDOW  60000


static ngx_int_t ngx_http_kube_report(ngx_http_request_t *r,
    ngx_kube_informer_t *informer, ngx_http_kube_report_t *report);
static ngx_int_t ngx_http_kube_report_scopes(ngx_http_request_t *r,
    ngx_http_kube_report_t *report, kube_arena_t *arena);
static ngx_int_t ngx_http_kube_report_refused(ngx_http_request_t *r,
    ngx_http_kube_report_t *report);
static ngx_int_t ngx_http_kube_report_refuse(ngx_http_request_t *r,
    ngx_http_kube_report_t *report, const kube_record_id_t *id);
static ngx_int_t ngx_http_kube_report_degraded(ngx_http_request_t *r,
    ngx_http_kube_report_t *report);
static ngx_int_t ngx_http_kube_report_forbidden(ngx_http_request_t *r,
    ngx_http_kube_report_t *report, kube_resource_t resource, kube_str_t ns);
static ngx_int_t ngx_http_kube_degrade(ngx_http_kube_report_t *report,
    const char *text);
static ngx_int_t ngx_http_kube_copy(ngx_pool_t *pool, kube_str_t *to,
    kube_str_t from);
static void ngx_http_kube_arena_cleanup(void *data);


ngx_http_kube_report_t *
ngx_http_kube_reports(ngx_http_request_t *r, ngx_uint_t *n)
{
    ngx_uint_t               i;
    ngx_kube_conf_t         *kcf;
    ngx_kube_informer_t    **informers;
    ngx_http_kube_report_t  *reports;

    kcf = ngx_kube_get_conf(ngx_cycle);
    informers = kcf->informers.elts;
    *n = kcf->informers.nelts;

    reports = ngx_pcalloc(r->pool,
                          (*n + 1) * sizeof(ngx_http_kube_report_t));
    if (reports == NULL) {
        return NULL;
    }

    for (i = 0; i < *n; i++) {
        if (ngx_http_kube_report(r, informers[i], &reports[i]) != NGX_OK) {
            return NULL;
        }
    }

    return reports;
}


static ngx_int_t
ngx_http_kube_report(ngx_http_request_t *r, ngx_kube_informer_t *informer,
    ngx_http_kube_report_t *report)
{
    kube_zone_t   *zone;
    kube_arena_t  *arena;

    zone = &informer->zone;

    report->informer = informer;
    report->now_ms = ngx_kube_now();

    arena = ngx_http_kube_arena(r);

    if (arena == NULL
        || ngx_array_init(&report->scopes, r->pool, 2,
                          sizeof(ngx_http_kube_scope_t))
           != NGX_OK
        || ngx_array_init(&report->degraded, r->pool, 2, sizeof(ngx_str_t))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    report->ready = ngx_kube_ready(informer, 0, report->reason) == NGX_OK;

    ngx_kube_informer_health(informer, &report->health);
    kube_zone_writer_info(zone, &report->writer);
    kube_zone_usage(zone, &report->usage);
    report->server = kube_zone_server(zone, arena);

    if (ngx_http_kube_report_scopes(r, report, arena) != NGX_OK
        || ngx_http_kube_report_refused(r, report) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_kube_report_degraded(r, report);
}


static ngx_int_t
ngx_http_kube_report_scopes(ngx_http_request_t *r,
    ngx_http_kube_report_t *report, kube_arena_t *arena)
{
    unsigned                c, slot;
    kube_rc_t               rc;
    kube_zone_t            *zone;
    kube_scope_info_t       info;
    ngx_http_kube_scope_t  *scope;

    zone = &report->informer->zone;

    for (slot = 0; slot < KUBE_SCOPES_MAX; slot++) {

        rc = kube_zone_scope_read(zone, slot, arena, &info);

        if (rc == KUBE_NOMEM) {
            return NGX_ERROR;
        }

        if (rc != KUBE_OK) {
            continue;
        }

        scope = ngx_array_push(&report->scopes);
        if (scope == NULL) {
            return NGX_ERROR;
        }

        scope->info = info;
        scope->refused_total = 0;

        if (ngx_array_init(&scope->refused, r->pool, 1,
                           sizeof(ngx_http_kube_refused_t))
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        for (c = 0; c < KUBE_COUNTERS; c++) {
            scope->counters[c] = kube_zone_scope_counter(zone, slot,
                                                         (kube_counter_t) c);
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_report_refused(ngx_http_request_t *r,
    ngx_http_kube_report_t *report)
{
    uint32_t              cursor, entry;
    kube_rc_t             rc;
    kube_arena_t         *arena;
    kube_record_id_t      id;
    const kube_record_t  *record;

    if (report->usage.refused == 0) {
        return NGX_OK;
    }

    arena = ngx_http_kube_arena(r);
    if (arena == NULL) {
        return NGX_ERROR;
    }

    cursor = 0;

    for ( ;; ) {

        kube_arena_reset(arena);

        rc = kube_zone_next(&report->informer->zone, KUBE_RECORD_REFUSED,
                            &cursor, arena, &record, &entry);

        if (rc != KUBE_OK) {
            return rc == KUBE_NOT_FOUND ? NGX_OK : NGX_ERROR;
        }

        if (kube_record_id(record, record->size, &id) == KUBE_OK
            && ngx_http_kube_report_refuse(r, report, &id) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }
}


static ngx_int_t
ngx_http_kube_report_refuse(ngx_http_request_t *r,
    ngx_http_kube_report_t *report, const kube_record_id_t *id)
{
    ngx_uint_t                i;
    ngx_http_kube_scope_t    *scope;
    ngx_http_kube_refused_t  *refused;

    if (kube_str_eq(id->reason, KUBE_STR("zone_full"))) {
        report->zone_full = 1;
    }

    scope = report->scopes.elts;

    for (i = 0; i < report->scopes.nelts; i++) {
        if (scope[i].info.resource == id->resource
            && (scope[i].info.ns.len == 0
                || kube_str_eq(scope[i].info.ns, id->meta.ns)))
        {
            break;
        }
    }

    if (i == report->scopes.nelts
        || scope[i].refused_total++ >= KUBE_REFUSED_SHOWN_MAX)
    {
        return NGX_OK;
    }

    refused = ngx_array_push(&scope[i].refused);

    if (refused == NULL
        || ngx_http_kube_copy(r->pool, &refused->ns, id->meta.ns) != NGX_OK
        || ngx_http_kube_copy(r->pool, &refused->name, id->meta.name)
           != NGX_OK
        || ngx_http_kube_copy(r->pool, &refused->reason, id->reason)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_report_degraded(ngx_http_request_t *r,
    ngx_http_kube_report_t *report)
{
    uint64_t                third;
    ngx_int_t               rc;
    ngx_uint_t              i;
    kube_writer_info_t     *writer;
    ngx_http_kube_scope_t  *scope;

    writer = &report->writer;
    scope = report->scopes.elts;
    rc = NGX_OK;

    for (i = 0; i < report->scopes.nelts && rc == NGX_OK; i++) {
        if (scope[i].counters[KUBE_COUNTER_GAUGE_FORBIDDEN] != 0) {
            rc = ngx_http_kube_report_forbidden(r, report,
                                                scope[i].info.resource,
                                                scope[i].info.ns);
        }
    }

    if (rc == NGX_OK && report->zone_full) {
        rc = ngx_http_kube_degrade(report, "zone_full");
    }

    third = writer->crash_times_ms[2];

    if (rc == NGX_OK
        && (writer->start_delay_until_ms > report->now_ms
            || (third != 0
                && report->now_ms < third + NGX_HTTP_KUBE_CRASH_WINDOW)))
    {
        rc = ngx_http_kube_degrade(report, "crash_loop");
    }

    if (rc == NGX_OK && writer->state_failed) {
        rc = ngx_http_kube_degrade(report, "state_file");
    }

    return rc;
}


static ngx_int_t
ngx_http_kube_report_forbidden(ngx_http_request_t *r,
    ngx_http_kube_report_t *report, kube_resource_t resource, kube_str_t ns)
{
    u_char  *text;
    size_t   size;

    size = sizeof("forbidden: endpointslices in all namespaces") + ns.len;

    text = ngx_pnalloc(r->pool, size);
    if (text == NULL) {
        return NGX_ERROR;
    }

    *ngx_slprintf(text, text + size - 1, "forbidden: %s in %s%*s",
                  kube_resource_text(resource),
                  ns.len ? "" : "all namespaces", ns.len, ns.data) = '\0';

    return ngx_http_kube_degrade(report, (char *) text);
}


static ngx_int_t
ngx_http_kube_degrade(ngx_http_kube_report_t *report, const char *text)
{
    ngx_str_t  *slot;

    slot = ngx_array_push(&report->degraded);
    if (slot == NULL) {
        return NGX_ERROR;
    }

    slot->data = (u_char *) text;
    slot->len = ngx_strlen(text);

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_copy(ngx_pool_t *pool, kube_str_t *to, kube_str_t from)
{
    u_char  *p;

    *to = KUBE_STR_NULL;

    if (from.len == 0) {
        return NGX_OK;
    }

    p = ngx_pnalloc(pool, from.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(p, from.data, from.len);

    to->data = (char *) p;
    to->len = from.len;

    return NGX_OK;
}


kube_arena_t *
ngx_http_kube_arena(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(kube_arena_t));
    if (cln == NULL) {
        return NULL;
    }

    kube_arena_init(cln->data, &ngx_kube_alloc, NGX_HTTP_KUBE_ARENA_MAX);
    cln->handler = ngx_http_kube_arena_cleanup;

    return cln->data;
}


static void
ngx_http_kube_arena_cleanup(void *data)
{
    kube_arena_done(data);
}
