/*
 * ngx_http_kube_page - the status page: health, resources, Services and why
 * each endpoint is or is not used, as plain HTML.
 *
 * One page as of one moment: no script, nothing from outside.  What is long
 * is cut and linked to the API.  Called by ngx_http_kube_status.c, in
 * workers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_status.h"


#define NGX_HTTP_KUBE_PAGE_SERVICES   200
#define NGX_HTTP_KUBE_PAGE_ENDPOINTS  100

/* With more Services than that their endpoints are folded. */
#define NGX_HTTP_KUBE_PAGE_OPEN       20


typedef struct {
    ngx_http_request_t      *request;
    ngx_http_kube_print_t   *p;
    ngx_http_kube_report_t  *report;
    ngx_http_kube_names_t    names;
    kube_arena_t            *arena;
    ngx_uint_t               api;        /* the API is here to link to */
} ngx_http_kube_page_t;


static ngx_int_t ngx_http_kube_page_informer(ngx_http_kube_page_t *page);
static void ngx_http_kube_page_facts(ngx_http_kube_page_t *page);
static void ngx_http_kube_page_writer(ngx_http_kube_page_t *page);
static void ngx_http_kube_page_resources(ngx_http_kube_page_t *page);
static void ngx_http_kube_page_scope(ngx_http_kube_page_t *page,
    ngx_http_kube_scope_t *scope);
static void ngx_http_kube_page_refused(ngx_http_kube_page_t *page);
static ngx_int_t ngx_http_kube_page_services(ngx_http_kube_page_t *page);
static void ngx_http_kube_page_service(ngx_http_kube_page_t *page,
    ngx_http_kube_service_t *service);
static void ngx_http_kube_page_more(ngx_http_kube_page_t *page);
static ngx_int_t ngx_http_kube_page_endpoints(ngx_http_kube_page_t *page);
static void ngx_http_kube_page_details(ngx_http_kube_page_t *page,
    ngx_http_kube_service_t *service);
static void ngx_http_kube_page_endpoint(ngx_http_kube_print_t *p,
    ngx_http_kube_service_t *service, kube_explained_t *row);
static void ngx_http_kube_page_table(ngx_http_kube_print_t *p,
    const char *caption, kube_str_t of, const char **columns);
static void ngx_http_kube_page_end(ngx_http_kube_print_t *p);
static void ngx_http_kube_page_name(ngx_http_kube_print_t *p,
    const kube_meta_t *meta);
static void ngx_http_kube_page_link(ngx_http_kube_page_t *page,
    const kube_meta_t *meta);
static void ngx_http_kube_html(ngx_http_kube_print_t *p, kube_str_t s);
static void ngx_http_kube_cell(ngx_http_kube_print_t *p, kube_str_t s);
static void ngx_http_kube_cell_number(ngx_http_kube_print_t *p, uint64_t n);
static void ngx_http_kube_fact(ngx_http_kube_print_t *p, const char *name);
static void ngx_http_kube_fact_end(ngx_http_kube_print_t *p);
static void ngx_http_kube_fact_yes(ngx_http_kube_print_t *p,
    const char *name, ngx_uint_t yes, ngx_uint_t good);


/* config makes one literal of the .html */

static const char  ngx_http_kube_page_frame[] = ""
#include <ngx_http_kube_page.h>
;

ngx_str_t  ngx_http_kube_page_policy = ngx_string(
    "default-src 'none'; "
    "style-src 'sha256-gM+2rC3uz17mMDl8FPZIDXYr7j7jRr7u+t1EuLG+9QI='; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
);


ngx_int_t
ngx_http_kube_body_page(ngx_http_request_t *r, ngx_http_kube_print_t *p)
{
    const char                *start, *header, *body, *end;
    ngx_uint_t                 i, n;
    ngx_http_kube_page_t       page;
    ngx_http_kube_report_t    *reports;
    ngx_http_kube_loc_conf_t  *klcf;

    start = ngx_strstr(ngx_http_kube_page_frame, "<!DOCTYPE");
    header = ngx_strstr(ngx_http_kube_page_frame, "<!-- header -->");
    body = ngx_strstr(ngx_http_kube_page_frame, "<!-- main -->");

    reports = ngx_http_kube_reports(r, &n);

    if (reports == NULL || start == NULL || header == NULL || body == NULL) {
        return NGX_ERROR;
    }

    klcf = ngx_http_get_module_loc_conf(r, ngx_http_kube_module);

    page.request = r;
    page.p = p;
    page.api = klcf->status & NGX_HTTP_KUBE_API;
    page.arena = ngx_http_kube_arena(r);

    if (page.arena == NULL) {
        return NGX_ERROR;
    }

    ngx_http_kube_print_raw(p, start, header - start);
    ngx_http_kube_puts(p, "<p class=\"faint\">nginx-kube-informer "
                       KUBE_VERSION ", nginx " NGINX_VERSION);
    ngx_http_kube_print(p, ", worker %P, as of ", ngx_pid);
    ngx_http_kube_print_time(p, ngx_kube_unix_ms());
    ngx_http_kube_puts(p, "</p>\n");

    end = header + ngx_strlen("<!-- header -->");
    ngx_http_kube_print_raw(p, end, body - end);

    if (n == 0) {
        ngx_http_kube_puts(p, "<p>There is no kube_informer block.</p>\n");
    }

    for (i = 0; i < n; i++) {

        page.report = &reports[i];

        if (ngx_http_kube_page_informer(&page) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    end = body + ngx_strlen("<!-- main -->");
    ngx_http_kube_print_raw(p, end, ngx_strlen(end));

    return NGX_HTTP_OK;
}


static ngx_int_t
ngx_http_kube_page_informer(ngx_http_kube_page_t *page)
{
    kube_str_t              name;
    ngx_http_kube_print_t  *p;

    p = page->p;
    name = ngx_http_kube_str(&page->report->informer->name);

    ngx_http_kube_puts(p, "<section aria-labelledby=\"informer/");
    ngx_http_kube_html(p, name);
    ngx_http_kube_puts(p, "\">\n<h2 id=\"informer/");
    ngx_http_kube_html(p, name);
    ngx_http_kube_puts(p, "\">Informer ");
    ngx_http_kube_html(p, name);
    ngx_http_kube_puts(p, "</h2>\n");

    if (page->report->ready) {
        ngx_http_kube_puts(p, "<p class=\"good\">Ready</p>\n");

    } else {
        ngx_http_kube_puts(p, "<p class=\"bad\">Not ready: ");
        ngx_http_kube_html(p, kube_str((char *) page->report->reason));
        ngx_http_kube_puts(p, "</p>\n");
    }

    ngx_http_kube_page_facts(page);
    ngx_http_kube_page_resources(page);
    ngx_http_kube_page_refused(page);

    if (ngx_http_kube_page_services(page) != NGX_OK
        || ngx_http_kube_page_endpoints(page) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_kube_puts(p, "</section>\n");

    return NGX_OK;
}


static void
ngx_http_kube_page_facts(ngx_http_kube_page_t *page)
{
    ngx_str_t               *degraded;
    ngx_uint_t               i;
    ngx_http_kube_print_t   *p;
    ngx_http_kube_report_t  *report;

    p = page->p;
    report = page->report;

    ngx_http_kube_puts(p, "<dl>\n");
    ngx_http_kube_fact_yes(p, "Synced", report->health.synced, 1);
    ngx_http_kube_fact_yes(p, "Stale", report->health.stale, 0);

    ngx_http_kube_fact(p, "Last known current");

    if (report->health.age_ms == UINT64_MAX) {
        ngx_http_kube_puts(p, "never");

    } else {
        ngx_http_kube_print(p, "%uL.%uL s ago", report->health.age_ms / 1000,
                            report->health.age_ms % 1000 / 100);
    }

    ngx_http_kube_fact_end(p);

    ngx_http_kube_fact(p, "Degraded");

    degraded = report->degraded.elts;

    for (i = 0; i < report->degraded.nelts; i++) {
        ngx_http_kube_print(p, "%s<span class=\"bad\">", i ? ", " : "");
        ngx_http_kube_html(p, ngx_http_kube_str(&degraded[i]));
        ngx_http_kube_puts(p, "</span>");
    }

    if (i == 0) {
        ngx_http_kube_puts(p, "no");
    }

    ngx_http_kube_fact_end(p);

    ngx_http_kube_fact(p, "API server");
    ngx_http_kube_html(p, report->server);
    ngx_http_kube_fact_end(p);

    ngx_http_kube_page_writer(page);
    ngx_http_kube_puts(p, "</dl>\n");
}


static void
ngx_http_kube_page_writer(ngx_http_kube_page_t *page)
{
    ngx_http_kube_print_t   *p;
    ngx_http_kube_report_t  *report;

    p = page->p;
    report = page->report;

    ngx_http_kube_fact(p, "Informer process");

    if (report->writer.writer_pid == 0) {
        ngx_http_kube_puts(p, "<span class=\"bad\">none</span>");

    } else {
        ngx_http_kube_print(p, "%uL since ", report->writer.writer_pid);
        ngx_http_kube_print_time(p, report->writer.writer_since_ms);
    }

    ngx_http_kube_fact_end(p);

    ngx_http_kube_fact(p, "Take-overs");
    ngx_http_kube_print(p, "%uL, epoch %uL", report->writer.takeovers,
                        report->writer.epoch);
    ngx_http_kube_fact_end(p);

    ngx_http_kube_fact(p, "Zone");
    ngx_http_kube_html(p, ngx_http_kube_str(&report->informer->zone_name));
    ngx_http_kube_print(p, ", %uL of %uL KiB used, %uL failures",
                        (report->usage.table_bytes + report->usage.live_bytes)
                        / 1024,
                        (uint64_t) report->informer->zone_size / 1024,
                        report->usage.failures);
    ngx_http_kube_fact_end(p);

    ngx_http_kube_fact(p, "State file");

    if (report->writer.state_written_ms == 0) {
        ngx_http_kube_puts(p, "not written");

    } else {
        ngx_http_kube_puts(p, "of ");
        ngx_http_kube_print_time(p, report->writer.state_written_ms);
    }

    if (report->health.state_in_use) {
        ngx_http_kube_puts(p, ", <span class=\"bad\">in use</span>");
    }

    if (report->writer.state_failed) {
        ngx_http_kube_puts(p, ", <span class=\"bad\">cannot be written"
                           "</span>");
    }

    ngx_http_kube_fact_end(p);
}


static void
ngx_http_kube_page_resources(ngx_http_kube_page_t *page)
{
    ngx_uint_t              i;
    ngx_http_kube_scope_t  *scope;
    static const char      *columns[] = {
        "Resource", "Namespace", "State", "Version", "Objects", "Lists",
        "Watches", "Relists", "Events", "Skipped", "Refused", "Last error",
        NULL
    };

    ngx_http_kube_page_table(page->p, "Resources", KUBE_STR_NULL, columns);

    scope = page->report->scopes.elts;

    for (i = 0; i < page->report->scopes.nelts; i++) {
        ngx_http_kube_page_scope(page, &scope[i]);
    }

    ngx_http_kube_page_end(page->p);
}


static void
ngx_http_kube_page_scope(ngx_http_kube_page_t *page,
    ngx_http_kube_scope_t *scope)
{
    uint64_t               *c;
    ngx_http_kube_print_t  *p;

    p = page->p;
    c = scope->counters;

    ngx_http_kube_puts(p, "<tr><th scope=\"row\">");
    ngx_http_kube_html(p, kube_str(kube_resource_text(scope->info.resource)));
    ngx_http_kube_puts(p, "</th>");
    ngx_http_kube_cell(p, scope->info.ns.len ? scope->info.ns
                                             : KUBE_STR("all"));
    ngx_http_kube_cell(p, kube_str(kube_scope_state_text((kube_scope_state_t)
                                   c[KUBE_COUNTER_GAUGE_STATE])));
    ngx_http_kube_cell(p, scope->info.rv.len ? scope->info.rv
                                             : KUBE_STR("none yet"));
    ngx_http_kube_cell_number(p, scope->info.count);
    ngx_http_kube_cell_number(p, c[KUBE_COUNTER_LISTS]);
    ngx_http_kube_cell_number(p, c[KUBE_COUNTER_WATCHES]);
    ngx_http_kube_cell_number(p, c[KUBE_COUNTER_RELISTS]);
    ngx_http_kube_cell_number(p, c[KUBE_COUNTER_EVENTS_ADDED]
                                 + c[KUBE_COUNTER_EVENTS_MODIFIED]
                                 + c[KUBE_COUNTER_EVENTS_DELETED]);
    ngx_http_kube_cell_number(p, c[KUBE_COUNTER_SKIPPED_TOO_LARGE]
                                 + c[KUBE_COUNTER_SKIPPED_MALFORMED]
                                 + c[KUBE_COUNTER_SKIPPED_ENDPOINTS]);
    ngx_http_kube_cell_number(p, scope->refused_total);

    ngx_http_kube_puts(p, "<td>");

    if (scope->info.error_at_ms == 0) {
        ngx_http_kube_puts(p, "none");

    } else {
        ngx_http_kube_print_time(p, scope->info.error_at_ms);
        ngx_http_kube_puts(p, " ");
        ngx_http_kube_html(p, scope->info.error_reason);
        ngx_http_kube_puts(p, ": ");
        ngx_http_kube_html(p, scope->info.error_message);
    }

    ngx_http_kube_puts(p, "</td></tr>\n");
}


static void
ngx_http_kube_page_refused(ngx_http_kube_page_t *page)
{
    ngx_uint_t                i, k;
    ngx_http_kube_print_t    *p;
    ngx_http_kube_scope_t    *scope;
    ngx_http_kube_refused_t  *refused;
    static const char        *columns[] = {
        "Object", "Resource", "Reason", NULL
    };

    p = page->p;

    if (page->report->usage.refused == 0) {
        return;
    }

    ngx_http_kube_page_table(p, "Refused objects", KUBE_STR_NULL, columns);

    scope = page->report->scopes.elts;

    for (i = 0; i < page->report->scopes.nelts; i++) {

        refused = scope[i].refused.elts;

        for (k = 0; k < scope[i].refused.nelts; k++) {
            ngx_http_kube_puts(p, "<tr><th scope=\"row\">");
            ngx_http_kube_html(p, refused[k].ns);
            ngx_http_kube_puts(p, "/");
            ngx_http_kube_html(p, refused[k].name);
            ngx_http_kube_puts(p, "</th>");
            ngx_http_kube_cell(p, kube_str(kube_resource_text(
                                               scope[i].info.resource)));
            ngx_http_kube_cell(p, refused[k].reason);
            ngx_http_kube_puts(p, "</tr>\n");
        }
    }

    ngx_http_kube_page_end(p);
}


static ngx_int_t
ngx_http_kube_page_services(ngx_http_kube_page_t *page)
{
    ngx_int_t                 rc;
    ngx_uint_t                i;
    ngx_http_kube_name_t     *name;
    ngx_http_kube_service_t   service;
    static const char        *columns[] = {
        "Service", "Type", "Ports", "Generation", "Endpoints used", NULL
    };

    if (ngx_http_kube_names(page->request, page->report->informer,
                            KUBE_STR_NULL, NULL, NGX_HTTP_KUBE_PAGE_SERVICES,
                            &page->names)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_kube_page_table(page->p, "Services", KUBE_STR_NULL, columns);

    for (i = 0; i < page->names.n; i++) {

        name = &page->names.names[i];

        rc = ngx_http_kube_service_read(page->arena, page->report->informer,
                                        ngx_http_kube_name_ns(name),
                                        ngx_http_kube_name_name(name),
                                        &service);
        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (rc == NGX_OK) {
            ngx_http_kube_page_service(page, &service);
        }
    }

    ngx_http_kube_page_end(page->p);

    if (page->names.more) {
        ngx_http_kube_page_more(page);
    }

    return NGX_OK;
}


static void
ngx_http_kube_page_service(ngx_http_kube_page_t *page,
    ngx_http_kube_service_t *service)
{
    size_t                  i;
    kube_service_t         *svc;
    ngx_http_kube_print_t  *p;

    p = page->p;
    svc = &service->snapshot.service;

    ngx_http_kube_puts(p, "<tr><th scope=\"row\"><a href=\"#");
    ngx_http_kube_html(p, ngx_http_kube_str(&page->report->informer->name));
    ngx_http_kube_puts(p, "/");
    ngx_http_kube_page_name(p, &svc->meta);
    ngx_http_kube_puts(p, "\">");
    ngx_http_kube_page_name(p, &svc->meta);
    ngx_http_kube_puts(p, "</a></th>");

    ngx_http_kube_puts(p, "<td>");
    ngx_http_kube_html(p, kube_str(kube_service_type_text(svc->type)));

    if (svc->headless) {
        ngx_http_kube_puts(p, ", headless");
    }

    ngx_http_kube_puts(p, "</td><td>");

    for (i = 0; i < svc->ports_n; i++) {
        ngx_http_kube_print(p, "%s%ui/%s ", i ? ", " : "",
                            (ngx_uint_t) svc->ports[i].port,
                            kube_protocol_text(svc->ports[i].protocol));
        ngx_http_kube_html(p, svc->ports[i].name);
    }

    ngx_http_kube_puts(p, "</td>");
    ngx_http_kube_cell_number(p, service->snapshot.revision);
    ngx_http_kube_print(p, "<td class=\"number\">%s%uz of %uz%s</td></tr>\n",
                        service->used ? "" : "<span class=\"bad\">",
                        service->used, service->n,
                        service->used ? "" : "</span>");
}


static void
ngx_http_kube_page_more(ngx_http_kube_page_t *page)
{
    ngx_http_kube_name_t   *last;
    ngx_http_kube_print_t  *p;

    p = page->p;
    last = &page->names.names[page->names.n - 1];

    ngx_http_kube_print(p, "<p>Only the first %ui Services are shown. ",
                        page->names.n);

    if (page->api) {
        ngx_http_kube_puts(p, "<a href=\"api/v1/services?informer=");
        ngx_http_kube_html(p,
                         ngx_http_kube_str(&page->report->informer->name));
        ngx_http_kube_puts(p, "&amp;after=");
        ngx_http_kube_html(p, ngx_http_kube_name_ns(last));
        ngx_http_kube_puts(p, "/");
        ngx_http_kube_html(p, ngx_http_kube_name_name(last));
        ngx_http_kube_puts(p, "\">The others, as JSON</a>");
    }

    ngx_http_kube_puts(p, "</p>\n");
}


static ngx_int_t
ngx_http_kube_page_endpoints(ngx_http_kube_page_t *page)
{
    ngx_int_t                 rc;
    ngx_uint_t                i;
    ngx_http_kube_name_t     *name;
    ngx_http_kube_service_t   service;

    for (i = 0; i < page->names.n; i++) {

        name = &page->names.names[i];

        rc = ngx_http_kube_service_read(page->arena, page->report->informer,
                                        ngx_http_kube_name_ns(name),
                                        ngx_http_kube_name_name(name),
                                        &service);
        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (rc == NGX_OK) {
            ngx_http_kube_page_details(page, &service);
        }
    }

    return NGX_OK;
}


static void
ngx_http_kube_page_details(ngx_http_kube_page_t *page,
    ngx_http_kube_service_t *service)
{
    size_t                  i, n;
    kube_meta_t            *meta;
    ngx_http_kube_print_t  *p;
    static const char      *columns[] = {
        "Address", "State", "Pod", "Node", "Zone", "Used", NULL
    };

    p = page->p;
    meta = &service->snapshot.service.meta;
    n = ngx_min(service->n, NGX_HTTP_KUBE_PAGE_ENDPOINTS);

    ngx_http_kube_print(p, "<details%s id=\"",
                        page->names.n > NGX_HTTP_KUBE_PAGE_OPEN ? ""
                                                                : " open");
    ngx_http_kube_html(p, ngx_http_kube_str(&page->report->informer->name));
    ngx_http_kube_puts(p, "/");
    ngx_http_kube_page_name(p, meta);
    ngx_http_kube_puts(p, "\"><summary>");
    ngx_http_kube_page_name(p, meta);
    ngx_http_kube_print(p, ": %uz of %uz endpoints used</summary>\n",
                        service->used, service->n);

    if (n != 0) {

        ngx_http_kube_page_table(p, "Endpoints of ", meta->name, columns);

        for (i = 0; i < n; i++) {
            ngx_http_kube_page_endpoint(p, service, &service->rows[i]);
        }

        ngx_http_kube_page_end(p);
    }

    if (n < service->n) {
        ngx_http_kube_print(p, "<p>The first %uz are shown.</p>\n", n);
    }

    if (page->api) {
        ngx_http_kube_page_link(page, meta);
    }

    ngx_http_kube_puts(p, "</details>\n");
}


static void
ngx_http_kube_page_endpoint(ngx_http_kube_print_t *p,
    ngx_http_kube_service_t *service, kube_explained_t *row)
{
    char              text[KUBE_ADDR_TEXT_MAX];
    kube_slice_t     *slice;
    kube_endpoint_t  *ep;

    slice = &service->snapshot.slices[row->slice];
    ep = &slice->endpoints[row->endpoint];

    (void) kube_addr_text(&ep->address, text);

    ngx_http_kube_print(p, ep->address.family == KUBE_FAMILY_IPV6
                           ? "<tr><th scope=\"row\">[%s]"
                           : "<tr><th scope=\"row\">%s", text);
    if (row->port != 0) {
        ngx_http_kube_print(p, ":%ui", (ngx_uint_t) row->port);
    }

    ngx_http_kube_print(p, "</th><td>%s%s%s</td>",
                        ep->ready ? "ready" : "not ready",
                        ep->serving ? "" : ", not serving",
                        ep->terminating ? ", terminating" : "");
    ngx_http_kube_cell(p, ep->pod);
    ngx_http_kube_cell(p, ep->node);
    ngx_http_kube_cell(p, ep->zone);

    if (row->excluded_because == NULL) {
        ngx_http_kube_print(p, "<td><span class=\"good\">yes</span>%s</td>",
                            row->state == KUBE_ENDPOINT_TERMINATING
                            ? ", though terminating: none is ready" : "");

    } else {
        ngx_http_kube_print(p, "<td><span class=\"bad\">no</span>: %s</td>",
                            row->excluded_because);
    }

    ngx_http_kube_puts(p, "</tr>\n");
}


/* The frame scrolls, so that a narrow window does not cut the table. */

static void
ngx_http_kube_page_table(ngx_http_kube_print_t *p, const char *caption,
    kube_str_t of, const char **columns)
{
    ngx_http_kube_print(p, "<div class=\"scroll\" role=\"region\" "
                        "tabindex=\"0\" aria-label=\"%s", caption);
    ngx_http_kube_html(p, of);
    ngx_http_kube_print(p, "\">\n<table>\n<caption>%s", caption);
    ngx_http_kube_html(p, of);
    ngx_http_kube_puts(p, "</caption>\n<thead><tr>");

    for ( /* void */ ; *columns != NULL; columns++) {
        ngx_http_kube_print(p, "<th scope=\"col\">%s</th>", *columns);
    }

    ngx_http_kube_puts(p, "</tr></thead>\n<tbody>\n");
}


static void
ngx_http_kube_page_end(ngx_http_kube_print_t *p)
{
    ngx_http_kube_puts(p, "</tbody>\n</table>\n</div>\n");
}


static void
ngx_http_kube_page_name(ngx_http_kube_print_t *p, const kube_meta_t *meta)
{
    ngx_http_kube_html(p, meta->ns);
    ngx_http_kube_puts(p, "/");
    ngx_http_kube_html(p, meta->name);
}


static void
ngx_http_kube_page_link(ngx_http_kube_page_t *page, const kube_meta_t *meta)
{
    ngx_http_kube_print_t  *p;

    p = page->p;

    ngx_http_kube_puts(p, "<p><a href=\"api/v1/services/");
    ngx_http_kube_page_name(p, meta);
    ngx_http_kube_puts(p, "?informer=");
    ngx_http_kube_html(p, ngx_http_kube_str(&page->report->informer->name));
    ngx_http_kube_puts(p, "\">");
    ngx_http_kube_page_name(p, meta);
    ngx_http_kube_puts(p, " as JSON</a></p>\n");
}


static void
ngx_http_kube_html(ngx_http_kube_print_t *p, kube_str_t s)
{
    ngx_http_kube_print_escaped(p, s, NGX_HTTP_KUBE_HTML);
}


static void
ngx_http_kube_cell(ngx_http_kube_print_t *p, kube_str_t s)
{
    ngx_http_kube_puts(p, "<td>");
    ngx_http_kube_html(p, s);
    ngx_http_kube_puts(p, "</td>");
}


static void
ngx_http_kube_cell_number(ngx_http_kube_print_t *p, uint64_t n)
{
    ngx_http_kube_print(p, "<td class=\"number\">%uL</td>", n);
}


static void
ngx_http_kube_fact(ngx_http_kube_print_t *p, const char *name)
{
    ngx_http_kube_print(p, "<div><dt>%s</dt> <dd>", name);
}


static void
ngx_http_kube_fact_end(ngx_http_kube_print_t *p)
{
    ngx_http_kube_puts(p, "</dd></div>\n");
}


static void
ngx_http_kube_fact_yes(ngx_http_kube_print_t *p, const char *name,
    ngx_uint_t yes, ngx_uint_t good)
{
    ngx_http_kube_fact(p, name);
    ngx_http_kube_print(p, "<span class=\"%s\">%s</span>",
                        (yes != 0) == (good != 0) ? "good" : "bad",
                        yes ? "yes" : "no");
    ngx_http_kube_fact_end(p);
}
