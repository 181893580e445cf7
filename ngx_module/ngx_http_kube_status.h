/*
 * ngx_http_kube_status - what the files behind kube_status share: what an
 * informer's zone says, collected, and the bodies made of it.
 *
 * Private to these files.  All memory is the request's.  Nothing secret is
 * in a zone, so nothing secret can be shown.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_STATUS_H
#define NGX_HTTP_KUBE_STATUS_H


#include "ngx_http_kube_print.h"
#include "ngx_kube_ready.h"


#define NGX_HTTP_KUBE_LIMIT_DEFAULT   100
#define NGX_HTTP_KUBE_LIMIT_MAX       1000

/* What one arena may hold: a Service with all its slices. */
#define NGX_HTTP_KUBE_ARENA_MAX       (64 * 1024 * 1024)


typedef struct {
    kube_str_t             ns;
    kube_str_t             name;
    kube_str_t             reason;
} ngx_http_kube_refused_t;

typedef struct {
    kube_scope_info_t      info;
    uint64_t               counters[KUBE_COUNTERS];
    uint64_t               refused_total;
    ngx_array_t            refused;    /* the first KUBE_REFUSED_SHOWN_MAX */
} ngx_http_kube_scope_t;

/* An informer as of one moment. */
typedef struct {
    ngx_kube_informer_t   *informer;
    uint64_t               now_ms;
    kube_health_t          health;
    kube_writer_info_t     writer;
    kube_zone_usage_t      usage;
    kube_str_t             server;
    ngx_array_t            scopes;     /* ngx_http_kube_scope_t */
    ngx_array_t            degraded;   /* ngx_str_t */
    unsigned               ready:1;
    unsigned               zone_full:1;
    u_char                 reason[NGX_KUBE_REASON_MAX];
} ngx_http_kube_report_t;


/* ngx_http_kube_report.c */

/* One report for each informer, in the order of the file; NULL: no memory. */
ngx_http_kube_report_t *ngx_http_kube_reports(ngx_http_request_t *r,
    ngx_uint_t *n);

/* An arena that ends with the request; NULL: no memory. */
kube_arena_t *ngx_http_kube_arena(ngx_http_request_t *r);


/* ngx_http_kube_status_names.c, ngx_http_kube_status_services.c */

typedef struct {
    u_char                 ns_len;
    u_char                 name_len;
    char                   ns[KUBE_NAMESPACE_LEN_MAX];
    char                   name[KUBE_NAME_LEN_MAX];
} ngx_http_kube_name_t;

/* A part of the Services of an informer, by namespace and name. */
typedef struct {
    ngx_http_kube_name_t  *names;
    ngx_uint_t             n;
    unsigned               more:1;     /* there are Services after the last */
} ngx_http_kube_names_t;

/*
 * The first limit (1 .. NGX_HTTP_KUBE_LIMIT_MAX) Services of the namespace
 * (empty: of all) that come after the given name (NULL: from the start).
 */
ngx_int_t ngx_http_kube_names(ngx_http_request_t *r,
    ngx_kube_informer_t *informer, kube_str_t ns,
    const ngx_http_kube_name_t *after, ngx_uint_t limit,
    ngx_http_kube_names_t *names);

/* Longer ones are cut: they are no names. */
void ngx_http_kube_name_set(ngx_http_kube_name_t *to, kube_str_t ns,
    kube_str_t name);

typedef struct {
    kube_snapshot_t        snapshot;
    kube_explained_t      *rows;
    size_t                 n;
    size_t                 used;
} ngx_http_kube_service_t;

/* The arena is reset first.  NGX_OK, NGX_DECLINED: no such, NGX_ERROR. */
ngx_int_t ngx_http_kube_service_read(kube_arena_t *arena,
    ngx_kube_informer_t *informer, kube_str_t ns, kube_str_t name,
    ngx_http_kube_service_t *service);


static ngx_inline kube_str_t
ngx_http_kube_name_ns(const ngx_http_kube_name_t *name)
{
    return (kube_str_t) { name->ns, name->ns_len };
}


static ngx_inline kube_str_t
ngx_http_kube_name_name(const ngx_http_kube_name_t *name)
{
    return (kube_str_t) { name->name, name->name_len };
}


/* Bodies: an HTTP status, with the body printed; NGX_ERROR: no memory. */

/* {"error": text} */
ngx_int_t ngx_http_kube_body_error(ngx_http_kube_print_t *p,
    ngx_int_t status, const char *text);
/* ngx_http_kube_status_services.c; path is what follows services/ */
ngx_int_t ngx_http_kube_body_services(ngx_http_request_t *r,
    ngx_http_kube_print_t *p);
ngx_int_t ngx_http_kube_body_service(ngx_http_request_t *r,
    ngx_http_kube_print_t *p, ngx_str_t *path);
/* ngx_http_kube_status_json.c, ngx_http_kube_metrics.c, ngx_http_kube_page.c */
ngx_int_t ngx_http_kube_body_status(ngx_http_request_t *r,
    ngx_http_kube_print_t *p);
ngx_int_t ngx_http_kube_body_metrics(ngx_http_request_t *r,
    ngx_http_kube_print_t *p);
ngx_int_t ngx_http_kube_body_page(ngx_http_request_t *r,
    ngx_http_kube_print_t *p);

/* Of the page: what Content-Security-Policy says of its one <style>. */
extern ngx_str_t  ngx_http_kube_page_policy;


#endif /* NGX_HTTP_KUBE_STATUS_H */
