/*
 * ngx_http_kube_status - the kube_status directive, and the paths below its
 * location.
 *
 * It finds out what is asked for, collects reports and hands both to
 * src/status, which prints.  Read-only: GET and HEAD; nothing blocks and
 * nothing is asked of the API server.  The directive is read at configuration
 * time; all else is workers'.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube.h"
#include "ngx_http_kube_status.h"
#include "ngx_kube_ready.h"
#include "ngx_kube_views.h"

#include "kube_objects.h"
#include "kube_prometheus.h"
#include "kube_services.h"
#include "kube_status_json.h"


/* What one arena may hold: a Service with all its slices. */
#define NGX_HTTP_KUBE_ARENA_MAX  (64 * 1024 * 1024)

/* nginx has no name for this one */
#define NGX_HTTP_KUBE_GONE  410


typedef struct {
    ngx_http_request_t     *request;
    ngx_http_kube_body_t    body;
    ngx_http_kube_type_e    type;
    ngx_uint_t              parts;       /* NGX_HTTP_KUBE_*, offered here */
    ngx_kube_conf_t        *kcf;
    kube_arena_t            arena;       /* until the body is printed */
    kube_arena_t            scratch;     /* reset again and again */
    kube_report_t          *reports;     /* of kcf's informers */
} ngx_http_kube_status_t;


static ngx_int_t ngx_http_kube_status_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_kube_status_page(ngx_http_kube_status_t *st,
    ngx_str_t *path);
static ngx_int_t ngx_http_kube_below(ngx_http_request_t *r, ngx_str_t *path);
static ngx_int_t ngx_http_kube_redirect(ngx_http_request_t *r);
static ngx_int_t ngx_http_kube_status_route(ngx_http_kube_status_t *st,
    kube_str_t path);
static kube_status_use_t *ngx_http_kube_status_uses(ngx_http_kube_status_t *st,
    size_t *n);
static ngx_int_t ngx_http_kube_status_scrape(ngx_http_kube_status_t *st);
static ngx_int_t ngx_http_kube_status_metrics(ngx_http_kube_status_t *st);
static ngx_int_t ngx_http_kube_status_api(ngx_http_kube_status_t *st);
static ngx_int_t ngx_http_kube_status_events(ngx_http_kube_status_t *st);
static ngx_int_t ngx_http_kube_status_objects(ngx_http_kube_status_t *st);
static ngx_int_t ngx_http_kube_status_services(ngx_http_kube_status_t *st,
    kube_str_t path);
static ngx_int_t ngx_http_kube_status_reports(ngx_http_kube_status_t *st);
static ngx_kube_informer_t *ngx_http_kube_status_informer(
    ngx_http_kube_status_t *st);
static kube_str_t ngx_http_kube_arg(ngx_http_request_t *r, const char *name);


static ngx_conf_bitmask_t  ngx_http_kube_parts[] = {
    { ngx_string("page"), NGX_HTTP_KUBE_PAGE },
    { ngx_string("api"), NGX_HTTP_KUBE_API },
    { ngx_string("metrics"), NGX_HTTP_KUBE_METRICS },
    { ngx_string("events"), NGX_HTTP_KUBE_EVENTS },
    { ngx_null_string, 0 }
};


char *
ngx_http_kube_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_kube_loc_conf_t *klcf = conf;

    char                      *rv;
    ngx_str_t                 *value;
    ngx_uint_t                 i, regex;
    ngx_command_t              parts;
    ngx_conf_bitmask_t        *part;
    ngx_http_core_loc_conf_t  *clcf;

    if (klcf->status) {
        return "is duplicate";
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

#if (NGX_PCRE)
    regex = clcf->regex != NULL;
#else
    regex = 0;
#endif

    /* paths are what follows the location's prefix: it must have one */

    if (regex || clcf->named || clcf->noname) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" needs a prefix or exact location, such as "
                           "\"location /kube/ {}\"", &cmd->name);
        return NGX_CONF_ERROR;
    }

    parts = *cmd;
    parts.offset = offsetof(ngx_http_kube_loc_conf_t, status);
    parts.post = ngx_http_kube_parts;

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        for (part = ngx_http_kube_parts; part->name.len != 0; part++) {
            if (part->name.len == value[i].len
                && ngx_strcmp(part->name.data, value[i].data) == 0)
            {
                break;
            }
        }

        if (part->name.len == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid value \"%V\" of %V: expected "
                               "\"page\", \"api\", \"metrics\" or "
                               "\"events\", several of them, or none for "
                               "all", &value[i], &cmd->name);
            return NGX_CONF_ERROR;
        }
    }

    rv = ngx_conf_set_bitmask_slot(cf, &parts, conf);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (klcf->status == 0) {
        klcf->status = NGX_HTTP_KUBE_PAGE|NGX_HTTP_KUBE_API
                       |NGX_HTTP_KUBE_METRICS|NGX_HTTP_KUBE_EVENTS;
    }

    clcf->handler = ngx_http_kube_status_handler;

    /* as of "proxy_pass": to /kube/ from /kube, which a reader types */

    if ((klcf->status & NGX_HTTP_KUBE_PAGE) && clcf->name.len > 1
        && clcf->name.data[clcf->name.len - 1] == '/')
    {
        clcf->auto_redirect = 1;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_kube_status_handler(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_str_t                  path;
    ngx_http_kube_status_t     st;
    ngx_http_kube_loc_conf_t  *klcf;

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    klcf = ngx_http_get_module_loc_conf(r, ngx_http_kube_module);

    ngx_memzero(&st, sizeof(ngx_http_kube_status_t));

    st.request = r;
    st.type = NGX_HTTP_KUBE_TYPE_JSON;
    st.parts = klcf->status;
    st.kcf = ngx_kube_get_conf(ngx_cycle);

    ngx_http_kube_body_init(&st.body, r->pool);

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        rc = ngx_http_kube_not_allowed(r, &st.body);
        return ngx_http_kube_send(r, rc, st.type, &st.body);
    }

    rc = ngx_http_kube_below(r, &path);

    if (rc == NGX_AGAIN) {
        return ngx_http_kube_redirect(r);
    }

    if (rc == NGX_OK) {
        kube_arena_init(&st.arena, &ngx_kube_alloc, NGX_HTTP_KUBE_ARENA_MAX);
        kube_arena_init(&st.scratch, &ngx_kube_alloc, NGX_HTTP_KUBE_ARENA_MAX);

        rc = ngx_http_kube_status_page(&st, &path);

        /* who reads slowly holds the body alone */

        kube_arena_done(&st.scratch);
        kube_arena_done(&st.arena);
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_kube_body_error(&st.body, NGX_HTTP_NOT_FOUND,
                                      "no such path");
    }

    if (rc == NGX_DONE) {
        return NGX_DONE;
    }

    return ngx_http_kube_send(r, rc, rc == NGX_HTTP_OK
                                     ? st.type : NGX_HTTP_KUBE_TYPE_JSON,
                              &st.body);
}


/*
 * Sets path to what follows the location's prefix.  NGX_AGAIN: the page is
 * asked for without the slash that its links need; NGX_DECLINED: another path
 * that the prefix happens to begin.
 */

static ngx_int_t
ngx_http_kube_below(ngx_http_request_t *r, ngx_str_t *path)
{
    size_t                     len;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_kube_loc_conf_t  *klcf;

    klcf = ngx_http_get_module_loc_conf(r, ngx_http_kube_module);
    clcf = klcf->location;

    len = ngx_min(clcf->name.len, r->uri.len);

    path->data = r->uri.data + len;
    path->len = r->uri.len - len;

    if (len != 0 && r->uri.data[len - 1] == '/') {
        return NGX_OK;
    }

    if (path->len != 0) {

        if (path->data[0] != '/') {
            return NGX_DECLINED;
        }

        path->data++;
        path->len--;

        return NGX_OK;
    }

    if (!clcf->exact_match && (klcf->status & NGX_HTTP_KUBE_PAGE)) {
        return NGX_AGAIN;
    }

    /* location = /metrics { kube_status metrics; } */

    if (clcf->exact_match && klcf->status == NGX_HTTP_KUBE_METRICS) {
        ngx_str_set(path, "metrics");
    }

    if (clcf->exact_match && klcf->status == NGX_HTTP_KUBE_EVENTS) {
        ngx_str_set(path, "api/v1/events");
    }

    return NGX_OK;
}


/* The path is unescaped: behind "rewrite ... break" a client's own bytes. */

static ngx_int_t
ngx_http_kube_redirect(ngx_http_request_t *r)
{
    size_t   escape;
    u_char  *p, *location;

    escape = 2 * ngx_escape_uri(NULL, r->uri.data, r->uri.len,
                                NGX_ESCAPE_URI);

    location = ngx_pnalloc(r->pool, r->uri.len + escape + r->args.len
                                    + sizeof("/?"));
    if (location == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = (u_char *) ngx_escape_uri(location, r->uri.data, r->uri.len,
                                  NGX_ESCAPE_URI);
    *p++ = '/';

    if (r->args.len != 0) {
        *p++ = '?';
        p = ngx_cpymem(p, r->args.data, r->args.len);
    }

    *p = '\0';

    ngx_http_clear_location(r);

    r->headers_out.location = ngx_http_kube_header(r, "Location",
                                                   (char *) location);

    return r->headers_out.location == NULL ? NGX_HTTP_INTERNAL_SERVER_ERROR
                                           : NGX_HTTP_MOVED_PERMANENTLY;
}


/*
 * Whatever the page needs is below "?asset=" of the page itself, so that it
 * works in "location = /x" too, and where only the page is offered.
 */

static ngx_int_t
ngx_http_kube_status_page(ngx_http_kube_status_t *st, ngx_str_t *path)
{
    ngx_int_t   rc;
    kube_str_t  asset;

    if (path->len != 0 || !(st->parts & NGX_HTTP_KUBE_PAGE)) {
        return ngx_http_kube_status_route(st, ngx_kube_str(path));
    }

    asset = ngx_http_kube_arg(st->request, "asset");

    if (asset.len != 0) {
        rc = ngx_http_kube_asset(&st->body, asset, &st->type);

        if (rc != NGX_DECLINED) {
            return rc;
        }

        st->parts |= NGX_HTTP_KUBE_API|NGX_HTTP_KUBE_EVENTS;

        return ngx_http_kube_status_route(st, asset);
    }

    if (ngx_http_kube_status_reports(st) != NGX_OK) {
        return NGX_ERROR;
    }

    st->type = NGX_HTTP_KUBE_TYPE_HTML;

    return ngx_http_kube_page(&st->body, st->reports,
                              st->kcf->informers.nelts);
}


static ngx_int_t
ngx_http_kube_status_route(ngx_http_kube_status_t *st, kube_str_t path)
{
    static const kube_str_t  services = { "api/v1/services", 15 };

    if ((st->parts & NGX_HTTP_KUBE_METRICS)
        && kube_str_eq(path, KUBE_STR("metrics")))
    {
        return ngx_http_kube_status_scrape(st);
    }

    if ((st->parts & NGX_HTTP_KUBE_EVENTS)
        && kube_str_eq(path, KUBE_STR("api/v1/events")))
    {
        return ngx_http_kube_status_events(st);
    }

    if (!(st->parts & NGX_HTTP_KUBE_API)) {
        return NGX_DECLINED;
    }

    if (!ngx_http_kube_body_may()) {
        return ngx_http_kube_body_error(&st->body,
                                        NGX_HTTP_SERVICE_UNAVAILABLE,
                                        "too many answers are being read");
    }

    if (kube_str_eq(path, KUBE_STR("api/v1/status"))) {
        return ngx_http_kube_status_api(st);
    }

    if (kube_str_eq(path, KUBE_STR("api/v1/objects"))) {
        return ngx_http_kube_status_objects(st);
    }

    if (path.len < services.len
        || ngx_strncmp(path.data, services.data, services.len) != 0
        || (path.len > services.len && path.data[services.len] != '/'))
    {
        return NGX_DECLINED;
    }

    path.data += services.len;
    path.len -= services.len;

    return ngx_http_kube_status_services(st, path);
}


/* What resolves keys; NULL: no memory. */

static kube_status_use_t *
ngx_http_kube_status_uses(ngx_http_kube_status_t *st, size_t *n)
{
    ngx_uint_t            i;
    ngx_kube_ref_t      **refs;
    kube_status_use_t    *uses, *use;

    refs = st->kcf->refs.elts;

    uses = ngx_pcalloc(st->request->pool, (st->kcf->refs.nelts + 1)
                                          * sizeof(kube_status_use_t));
    use = uses;

    for (i = 0; use != NULL && i < st->kcf->refs.nelts; i++) {

        /* kube_ready informer= has no key */

        if (refs[i]->expression.len == 0) {
            continue;
        }

        use->directive = ngx_kube_str(&refs[i]->directive);
        use->name = ngx_kube_str(&refs[i]->name);
        use->informer = ngx_kube_str(&refs[i]->informer->name);
        use->file = ngx_kube_str(&refs[i]->file);
        use->line = refs[i]->line;
        use->key = ngx_kube_str(&refs[i]->expression);
        use->resolver = &refs[i]->resolver;
        use->static_key = refs[i]->is_static ? &refs[i]->key : NULL;
        use->kept = &refs[i]->kept;
        use++;
    }

    *n = use - uses;

    return uses;
}


/* The metrics, with those of each Service where they are asked for. */

static ngx_int_t
ngx_http_kube_status_scrape(ngx_http_kube_status_t *st)
{
    ngx_int_t            rc;
    kube_str_t           ns;
    ngx_http_request_t  *r;

    r = st->request;
    ns = ngx_http_kube_arg(r, "service_endpoints");

    if (ns.data == NULL) {
        return ngx_http_kube_status_metrics(st);
    }

    if (r != r->main) {
        return ngx_http_kube_body_error(&st->body, NGX_HTTP_BAD_REQUEST,
                                        "not in a subrequest");
    }

    if (kube_str_eq(ns, KUBE_STR("*"))) {
        ns = KUBE_STR_NULL;

    } else if (!kube_name_is_label(ns)) {
        return ngx_http_kube_body_error(&st->body, NGX_HTTP_BAD_REQUEST,
                                        "service_endpoints must be a "
                                        "namespace, or * for all");
    }

    if (!ngx_http_kube_scrape_may()) {
        return ngx_http_kube_body_error(&st->body,
                                        NGX_HTTP_SERVICE_UNAVAILABLE,
                                        "too many scrapes");
    }

    rc = ngx_http_kube_status_metrics(st);

    return (rc != NGX_HTTP_OK) ? rc
           : ngx_http_kube_scrape(r, &st->body, st->kcf, ns);
}


static ngx_int_t
ngx_http_kube_status_metrics(ngx_http_kube_status_t *st)
{
    size_t                       n;
    ngx_uint_t                   i;
    ngx_kube_ref_t              *ref;
    ngx_http_kube_srv_conf_t   **kscf;
    ngx_http_kube_main_conf_t   *kmcf;
    kube_prometheus_upstream_t  *upstreams;

    kmcf = ngx_http_get_module_main_conf(st->request, ngx_http_kube_module);

    upstreams = ngx_palloc(st->request->pool,
                           (kmcf->upstreams.nelts + 1)
                           * sizeof(kube_prometheus_upstream_t));

    if (upstreams == NULL || ngx_http_kube_status_reports(st) != NGX_OK) {
        return NGX_ERROR;
    }

    n = 0;
    kscf = kmcf->upstreams.elts;

    for (i = 0; i < kmcf->upstreams.nelts; i++) {
        ref = kscf[i]->key.ref;

        if (ref->is_static) {
            upstreams[n].informer = ngx_kube_str(&ref->informer->name);
            upstreams[n].name = ngx_kube_str(&ref->name);
            upstreams[n].endpoints = ngx_kube_views_count(
                                                       &kscf[i]->key.views);
            n++;
        }
    }

    st->type = NGX_HTTP_KUBE_TYPE_METRICS;

    kube_prometheus_print(&st->body.text, st->reports,
                          st->kcf->informers.nelts, KUBE_STR(NGINX_VERSION));
    kube_prometheus_print_upstreams(&st->body.text, upstreams, n);

    return NGX_HTTP_OK;
}


static ngx_int_t
ngx_http_kube_status_api(ngx_http_kube_status_t *st)
{
    kube_status_json_t  status;

    status.uses = ngx_http_kube_status_uses(st, &status.uses_n);

    if (status.uses == NULL || ngx_http_kube_status_reports(st) != NGX_OK) {
        return NGX_ERROR;
    }

    status.nginx = KUBE_STR(NGINX_VERSION);
    status.worker = (uint64_t) ngx_pid;
    status.now_unix_ms = ngx_kube_unix_ms();
    status.now_ms = ngx_current_msec;
    status.worked_us = ngx_kube_worked_us;
    status.reports = st->reports;
    status.reports_n = st->kcf->informers.nelts;

    return kube_status_json_print(&st->body.text, &status, &st->scratch)
           == KUBE_OK ? NGX_HTTP_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_kube_status_events(ngx_http_kube_status_t *st)
{
    ngx_kube_informer_t  *informer;

    informer = ngx_http_kube_status_informer(st);

    if (informer == NULL) {
        return ngx_http_kube_body_error(&st->body, NGX_HTTP_NOT_FOUND,
                                        "no such informer");
    }

    return ngx_http_kube_events(st->request, &st->body, informer,
                                ngx_http_kube_arg(st->request, "namespace"));
}


static ngx_int_t
ngx_http_kube_status_objects(ngx_http_kube_status_t *st)
{
    uint64_t              after;
    kube_rc_t             rc;
    ngx_kube_informer_t  *informer;

    informer = ngx_http_kube_status_informer(st);

    if (informer == NULL) {
        return ngx_http_kube_body_error(&st->body, NGX_HTTP_NOT_FOUND,
                                        "no such informer");
    }

    rc = kube_objects_after(&informer->zone,
                            ngx_http_kube_arg(st->request, "after"), &after);

    if (rc == KUBE_CHANGED) {
        return ngx_http_kube_body_error(&st->body, NGX_HTTP_KUBE_GONE,
                                        "the zone is another one since the "
                                        "part before: begin anew");
    }

    if (rc != KUBE_OK) {
        return ngx_http_kube_body_error(&st->body, NGX_HTTP_BAD_REQUEST,
                                        "after must be a \"next\"");
    }

    return kube_objects_print(&st->body.text, &informer->zone, after,
                              KUBE_OBJECTS_LIMIT, &st->scratch)
           == KUBE_OK ? NGX_HTTP_OK : NGX_ERROR;
}


/* path: empty for the list, else "/namespace/name". */

static ngx_int_t
ngx_http_kube_status_services(ngx_http_kube_status_t *st, kube_str_t path)
{
    kube_rc_t             rc;
    kube_str_t            ns, name;
    const char           *wrong;
    kube_services_t       services;
    ngx_http_request_t   *r;
    ngx_kube_informer_t  *informer;

    r = st->request;
    informer = ngx_http_kube_status_informer(st);

    if (informer == NULL) {
        return ngx_http_kube_body_error(&st->body, NGX_HTTP_NOT_FOUND,
                                        "no such informer");
    }

    ngx_memzero(&services, sizeof(kube_services_t));

    services.zone = &informer->zone;
    services.policy = &informer->policy;

    if (path.len == 0) {

        wrong = kube_services_query(&services,
                                    ngx_http_kube_arg(r, "namespace"),
                                    ngx_http_kube_arg(r, "limit"),
                                    ngx_http_kube_arg(r, "after"));
        if (wrong != NULL) {
            return ngx_http_kube_body_error(&st->body, NGX_HTTP_BAD_REQUEST,
                                            wrong);
        }

        rc = kube_services_print(&st->body.text, &services, &st->arena,
                                 &st->scratch);

        return rc == KUBE_OK ? NGX_HTTP_OK : NGX_ERROR;
    }

    path.data++;
    path.len--;

    if (!kube_services_name(path, &ns, &name)) {
        return ngx_http_kube_body_error(&st->body, NGX_HTTP_NOT_FOUND,
                                        "not namespace/name");
    }

    rc = kube_services_print_one(&st->body.text, &services, ns, name,
                                 &st->scratch);

    switch (rc) {

    case KUBE_OK:
        return NGX_HTTP_OK;

    case KUBE_NOT_FOUND:
        return ngx_http_kube_body_error(&st->body, NGX_HTTP_NOT_FOUND,
                                        "no such Service");

    case KUBE_NOMEM:
        return NGX_ERROR;

    default:
        return ngx_http_kube_body_error(&st->body,
                                        NGX_HTTP_SERVICE_UNAVAILABLE,
                                        kube_rc_text(rc));
    }
}


static ngx_int_t
ngx_http_kube_status_reports(ngx_http_kube_status_t *st)
{
    u_char                *reason;
    ngx_uint_t             i, n;
    kube_report_t         *report;
    ngx_kube_informer_t  **informers, *informer;

    informers = st->kcf->informers.elts;
    n = st->kcf->informers.nelts;

    st->reports = ngx_pcalloc(st->request->pool,
                              (n + 1) * sizeof(kube_report_t));
    if (st->reports == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {

        informer = informers[i];
        report = &st->reports[i];

        reason = ngx_pnalloc(st->request->pool, NGX_KUBE_REASON_MAX);
        if (reason == NULL) {
            return NGX_ERROR;
        }

        report->ready = ngx_kube_ready(informer, 0, reason) == NGX_OK;
        report->reason = kube_str((char *) reason);

        if (ngx_kube_report(informer, report, &st->arena, &st->scratch)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* informer=name; without it "default", or else the first block's. */

static ngx_kube_informer_t *
ngx_http_kube_status_informer(ngx_http_kube_status_t *st)
{
    ngx_str_t              name;
    kube_str_t             value;
    ngx_kube_informer_t   *informer, **informers;

    value = ngx_http_kube_arg(st->request, "informer");

    if (value.data != NULL) {
        name.data = (u_char *) value.data;
        name.len = value.len;

        return ngx_kube_informer_find(st->kcf, &name);
    }

    ngx_str_set(&name, "default");

    informer = ngx_kube_informer_find(st->kcf, &name);

    if (informer == NULL && st->kcf->informers.nelts != 0) {
        informers = st->kcf->informers.elts;
        informer = informers[0];
    }

    return informer;
}


/* An argument of the request, unescaped; NULL data: it was not given. */

static kube_str_t
ngx_http_kube_arg(ngx_http_request_t *r, const char *name)
{
    u_char      *dst, *src;
    ngx_str_t    arg;
    kube_str_t   value;

    if (ngx_http_arg(r, (u_char *) name, ngx_strlen(name), &arg) != NGX_OK) {
        return KUBE_STR_NULL;
    }

    dst = ngx_pnalloc(r->pool, arg.len + 1);
    if (dst == NULL) {
        return KUBE_STR_NULL;
    }

    value.data = (char *) dst;
    src = arg.data;

    ngx_unescape_uri(&dst, &src, arg.len, 0);

    value.len = (char *) dst - value.data;

    return value;
}
