/*
 * ngx_http_kube_status_json - /api/v1/status.
 *
 * Prints what the report holds; its keys and their order are the contract of
 * docs/metrics.md.  Called by ngx_http_kube_status.c, in workers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_status.h"


static void ngx_http_kube_json_informer(ngx_http_kube_print_t *p,
    ngx_http_kube_report_t *report);
static void ngx_http_kube_json_writer(ngx_http_kube_print_t *p,
    const kube_writer_info_t *writer);
static void ngx_http_kube_json_zone(ngx_http_kube_print_t *p,
    ngx_http_kube_report_t *report);
static void ngx_http_kube_json_scope(ngx_http_kube_print_t *p,
    ngx_http_kube_report_t *report, ngx_http_kube_scope_t *scope);
static void ngx_http_kube_json_events(ngx_http_kube_print_t *p,
    ngx_http_kube_scope_t *scope);
static void ngx_http_kube_json_refused(ngx_http_kube_print_t *p,
    ngx_http_kube_scope_t *scope);
static void ngx_http_kube_json_times(ngx_http_kube_print_t *p,
    ngx_http_kube_report_t *report, ngx_http_kube_scope_t *scope);


ngx_int_t
ngx_http_kube_body_error(ngx_http_kube_print_t *p, ngx_int_t status,
    const char *text)
{
    ngx_http_kube_json_open(p, NULL, '{');
    ngx_http_kube_json_str(p, "error", kube_str(text));
    ngx_http_kube_json_close(p, '}');
    ngx_http_kube_puts(p, "\n");

    return status;
}


ngx_int_t
ngx_http_kube_body_status(ngx_http_request_t *r, ngx_http_kube_print_t *p)
{
    ngx_uint_t               i, n;
    ngx_http_kube_report_t  *reports;

    reports = ngx_http_kube_reports(r, &n);
    if (reports == NULL) {
        return NGX_ERROR;
    }

    ngx_http_kube_json_open(p, NULL, '{');
    ngx_http_kube_json_str(p, "version", KUBE_STR(KUBE_VERSION));
    ngx_http_kube_json_str(p, "nginx", KUBE_STR(NGINX_VERSION));
    ngx_http_kube_json_num(p, "worker", (uint64_t) ngx_pid);
    ngx_http_kube_json_open(p, "informers", '[');

    for (i = 0; i < n; i++) {
        ngx_http_kube_json_informer(p, &reports[i]);
    }

    ngx_http_kube_json_close(p, ']');
    ngx_http_kube_json_close(p, '}');
    ngx_http_kube_puts(p, "\n");

    return NGX_HTTP_OK;
}


static void
ngx_http_kube_json_informer(ngx_http_kube_print_t *p,
    ngx_http_kube_report_t *report)
{
    ngx_str_t              *degraded;
    ngx_uint_t              i;
    ngx_http_kube_scope_t  *scope;

    ngx_http_kube_json_open(p, NULL, '{');
    ngx_http_kube_json_str(p, "name",
                           ngx_http_kube_str(&report->informer->name));
    ngx_http_kube_json_bool(p, "synced", report->health.synced);
    ngx_http_kube_json_bool(p, "ready", report->ready);
    ngx_http_kube_json_num(p, "epoch", report->writer.epoch);
    ngx_http_kube_json_writer(p, &report->writer);
    ngx_http_kube_json_str(p, "server", report->server);

    if (report->health.age_ms == UINT64_MAX) {
        ngx_http_kube_json_null(p, "age_seconds");

    } else {
        ngx_http_kube_json_seconds(p, "age_seconds", report->health.age_ms);
    }

    ngx_http_kube_json_bool(p, "stale", report->health.stale);

    ngx_http_kube_json_open(p, "degraded", '[');

    degraded = report->degraded.elts;

    for (i = 0; i < report->degraded.nelts; i++) {
        ngx_http_kube_json_str(p, NULL, ngx_http_kube_str(&degraded[i]));
    }

    ngx_http_kube_json_close(p, ']');

    ngx_http_kube_json_zone(p, report);

    ngx_http_kube_json_open(p, "resources", '[');

    scope = report->scopes.elts;

    for (i = 0; i < report->scopes.nelts; i++) {
        ngx_http_kube_json_scope(p, report, &scope[i]);
    }

    ngx_http_kube_json_close(p, ']');
    ngx_http_kube_json_close(p, '}');
}


static void
ngx_http_kube_json_writer(ngx_http_kube_print_t *p,
    const kube_writer_info_t *writer)
{
    ngx_http_kube_json_open(p, "writer", '{');

    if (writer->writer_pid == 0) {
        ngx_http_kube_json_null(p, "pid");
        ngx_http_kube_json_null(p, "since");

    } else {
        ngx_http_kube_json_num(p, "pid", writer->writer_pid);
        ngx_http_kube_json_time(p, "since", writer->writer_since_ms);
    }

    ngx_http_kube_json_num(p, "takeovers", writer->takeovers);
    ngx_http_kube_json_close(p, '}');
}


static void
ngx_http_kube_json_zone(ngx_http_kube_print_t *p,
    ngx_http_kube_report_t *report)
{
    kube_zone_usage_t  *usage;

    usage = &report->usage;

    ngx_http_kube_json_open(p, "zone", '{');
    ngx_http_kube_json_str(p, "name",
                           ngx_http_kube_str(&report->informer->zone_name));
    ngx_http_kube_json_num(p, "size", report->informer->zone_size);
    ngx_http_kube_json_num(p, "used", usage->table_bytes + usage->live_bytes);
    ngx_http_kube_json_num(p, "failures", usage->failures);
    ngx_http_kube_json_close(p, '}');

    ngx_http_kube_json_open(p, "state_file", '{');
    ngx_http_kube_json_time(p, "written", report->writer.state_written_ms);
    ngx_http_kube_json_bool(p, "in_use", report->health.state_in_use);

    if (report->writer.state_failed) {
        ngx_http_kube_json_str(p, "error",
                          KUBE_STR("it could not be written: see the log"));

    } else {
        ngx_http_kube_json_null(p, "error");
    }

    ngx_http_kube_json_close(p, '}');
}


static void
ngx_http_kube_json_scope(ngx_http_kube_print_t *p,
    ngx_http_kube_report_t *report, ngx_http_kube_scope_t *scope)
{
    uint64_t            *c;
    char                 hex[33];
    kube_scope_state_t   state;

    c = scope->counters;
    state = (kube_scope_state_t) c[KUBE_COUNTER_GAUGE_STATE];

    kube_digest_hex(scope->info.digest, hex);

    ngx_http_kube_json_open(p, NULL, '{');
    ngx_http_kube_json_str(p, "resource",
                           kube_str(kube_resource_text(scope->info.resource)));
    ngx_http_kube_json_str(p, "namespace", scope->info.ns);
    ngx_http_kube_json_str(p, "state",
                           kube_str(kube_scope_state_text(state)));
    ngx_http_kube_json_str(p, "resource_version", scope->info.rv);
    ngx_http_kube_json_num(p, "objects", scope->info.count);
    ngx_http_kube_json_str(p, "digest", kube_str(hex));
    ngx_http_kube_json_num(p, "lists", c[KUBE_COUNTER_LISTS]);
    ngx_http_kube_json_num(p, "watches", c[KUBE_COUNTER_WATCHES]);
    ngx_http_kube_json_num(p, "relists", c[KUBE_COUNTER_RELISTS]);
    ngx_http_kube_json_events(p, scope);
    ngx_http_kube_json_num(p, "skipped", c[KUBE_COUNTER_SKIPPED_TOO_LARGE]
                                         + c[KUBE_COUNTER_SKIPPED_MALFORMED]
                                         + c[KUBE_COUNTER_SKIPPED_ENDPOINTS]);
    ngx_http_kube_json_refused(p, scope);
    ngx_http_kube_json_times(p, report, scope);
    ngx_http_kube_json_close(p, '}');
}


static void
ngx_http_kube_json_events(ngx_http_kube_print_t *p,
    ngx_http_kube_scope_t *scope)
{
    uint64_t  *c;

    c = scope->counters;

    ngx_http_kube_json_open(p, "events", '{');
    ngx_http_kube_json_num(p, "added", c[KUBE_COUNTER_EVENTS_ADDED]);
    ngx_http_kube_json_num(p, "modified", c[KUBE_COUNTER_EVENTS_MODIFIED]);
    ngx_http_kube_json_num(p, "deleted", c[KUBE_COUNTER_EVENTS_DELETED]);
    ngx_http_kube_json_num(p, "bookmark", c[KUBE_COUNTER_EVENTS_BOOKMARK]);
    ngx_http_kube_json_num(p, "error", c[KUBE_COUNTER_EVENTS_ERROR]);
    ngx_http_kube_json_close(p, '}');
}


static void
ngx_http_kube_json_refused(ngx_http_kube_print_t *p,
    ngx_http_kube_scope_t *scope)
{
    size_t                    len;
    ngx_uint_t                i;
    ngx_http_kube_refused_t  *refused;
    char                      key[KUBE_KEY_LEN_MAX + 1];

    refused = scope->refused.elts;

    ngx_http_kube_json_open(p, "refused", '[');

    for (i = 0; i < scope->refused.nelts; i++) {

        len = ngx_snprintf((u_char *) key, sizeof(key), "%*s/%*s",
                           refused[i].ns.len, refused[i].ns.data,
                           refused[i].name.len, refused[i].name.data)
              - (u_char *) key;

        ngx_http_kube_json_open(p, NULL, '{');
        ngx_http_kube_json_str(p, "key", (kube_str_t) { key, len });
        ngx_http_kube_json_str(p, "reason", refused[i].reason);
        ngx_http_kube_json_close(p, '}');
    }

    ngx_http_kube_json_close(p, ']');
    ngx_http_kube_json_num(p, "refused_total", scope->refused_total);
}


static void
ngx_http_kube_json_times(ngx_http_kube_print_t *p,
    ngx_http_kube_report_t *report, ngx_http_kube_scope_t *scope)
{
    uint64_t  event, retry;

    event = scope->counters[KUBE_COUNTER_GAUGE_LAST_EVENT_MS];
    retry = scope->counters[KUBE_COUNTER_GAUGE_RETRY_AT_MS];

    if (event == 0) {
        ngx_http_kube_json_null(p, "last_event_seconds");

    } else {
        ngx_http_kube_json_seconds(p, "last_event_seconds",
                                   report->now_ms > event
                                   ? report->now_ms - event : 0);
    }

    ngx_http_kube_json_open(p, "last_error", '{');
    ngx_http_kube_json_str(p, "reason", scope->info.error_reason);
    ngx_http_kube_json_str(p, "message", scope->info.error_message);
    ngx_http_kube_json_time(p, "at", scope->info.error_at_ms);
    ngx_http_kube_json_close(p, '}');

    if (scope->counters[KUBE_COUNTER_GAUGE_STATE] != KUBE_STATE_BACKOFF
        || retry == 0)
    {
        ngx_http_kube_json_null(p, "retry_seconds");

    } else {
        ngx_http_kube_json_seconds(p, "retry_seconds",
                                   retry > report->now_ms
                                   ? retry - report->now_ms : 0);
    }
}
