/*
 * ngx_http_kube_metrics - /metrics: the Prometheus text format, 0.0.4.
 *
 * Tables of families; docs/metrics.md lists the same.  A family's lines stand
 * together, so each goes through all informers.  Counters live in the zone.
 * Called by ngx_http_kube_status.c, in workers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_status.h"


typedef struct {
    ngx_http_kube_print_t   *p;
    ngx_http_kube_report_t  *reports;
    ngx_uint_t               n;
} ngx_http_kube_metrics_t;

typedef struct {
    const char              *name;
    const char              *type;
    const char              *help;
    uint64_t               (*value)(const ngx_http_kube_report_t *report);
} ngx_http_kube_family_t;


static void ngx_http_kube_metrics_family(ngx_http_kube_metrics_t *m,
    const char *name, const char *type, const char *help);
static void ngx_http_kube_metrics_informer(ngx_http_kube_print_t *p,
    const ngx_http_kube_report_t *report);
static void ngx_http_kube_metrics_scope(ngx_http_kube_print_t *p,
    const ngx_http_kube_report_t *report, const ngx_http_kube_scope_t *scope);
static void ngx_http_kube_metrics_informers(ngx_http_kube_metrics_t *m);
static void ngx_http_kube_metrics_age(ngx_http_kube_metrics_t *m);
static void ngx_http_kube_metrics_zone(ngx_http_kube_metrics_t *m);
static void ngx_http_kube_metrics_objects(ngx_http_kube_metrics_t *m);
static void ngx_http_kube_metrics_series(ngx_http_kube_metrics_t *m,
    kube_counter_t counter);
static void ngx_http_kube_metrics_resolve(ngx_http_kube_metrics_t *m);
static void ngx_http_kube_metrics_histogram(ngx_http_kube_metrics_t *m,
    kube_histogram_id_t id);
static void ngx_http_kube_metrics_buckets(ngx_http_kube_print_t *p,
    const ngx_http_kube_report_t *report, kube_histogram_id_t id,
    kube_resource_t resource);
static void ngx_http_kube_metrics_line(ngx_http_kube_print_t *p,
    const ngx_http_kube_report_t *report, kube_histogram_id_t id,
    kube_resource_t resource, const char *suffix);
static void ngx_http_kube_metrics_number(ngx_http_kube_print_t *p,
    kube_histogram_id_t id, uint64_t value);

static uint64_t ngx_http_kube_synced_value(
    const ngx_http_kube_report_t *report);
static uint64_t ngx_http_kube_ready_value(
    const ngx_http_kube_report_t *report);
static uint64_t ngx_http_kube_stale_value(
    const ngx_http_kube_report_t *report);
static uint64_t ngx_http_kube_state_value(
    const ngx_http_kube_report_t *report);
static uint64_t ngx_http_kube_epoch_value(
    const ngx_http_kube_report_t *report);
static uint64_t ngx_http_kube_queue_value(
    const ngx_http_kube_report_t *report);
static uint64_t ngx_http_kube_takeovers_value(
    const ngx_http_kube_report_t *report);
static uint64_t ngx_http_kube_crashes_value(
    const ngx_http_kube_report_t *report);
static uint64_t ngx_http_kube_failures_value(
    const ngx_http_kube_report_t *report);
static uint64_t ngx_http_kube_refused_value(
    const ngx_http_kube_report_t *report);
static uint64_t ngx_http_kube_rebuilds_value(
    const ngx_http_kube_report_t *report);


static const ngx_http_kube_family_t  ngx_http_kube_families[] = {

    { "synced", "gauge",
      "Whether every watched scope has completed a list.",
      ngx_http_kube_synced_value },
    { "ready", "gauge",
      "Whether the Service of every upstream can be resolved.",
      ngx_http_kube_ready_value },
    { "stale", "gauge",
      "Whether evidence is overdue that the cache is current.",
      ngx_http_kube_stale_value },
    { "state_file_in_use", "gauge",
      "Whether endpoints come from the state file.",
      ngx_http_kube_state_value },
    { "epoch", "gauge",
      "Take-overs and rollbacks since the zone was made.",
      ngx_http_kube_epoch_value },
    { "queue_depth", "gauge",
      "Objects that wait to be published.",
      ngx_http_kube_queue_value },
    { "takeovers_total", "counter",
      "Informer processes that took the zone over.",
      ngx_http_kube_takeovers_value },
    { "crashes_total", "counter",
      "Take-overs from an informer process that died.",
      ngx_http_kube_crashes_value },
    { "zone_failures_total", "counter",
      "Objects that found no room in the zone.",
      ngx_http_kube_failures_value },
    { "refused_objects", "gauge",
      "Objects named as refused now.",
      ngx_http_kube_refused_value },
    { "instance_rebuilds_total", "counter",
      "Upstream instances that workers built.",
      ngx_http_kube_rebuilds_value },

    { NULL, NULL, NULL, NULL }
};


ngx_int_t
ngx_http_kube_body_metrics(ngx_http_request_t *r, ngx_http_kube_print_t *p)
{
    ngx_uint_t               i;
    ngx_http_kube_metrics_t  m;

    m.p = p;
    m.reports = ngx_http_kube_reports(r, &m.n);

    if (m.reports == NULL) {
        return NGX_ERROR;
    }

    ngx_http_kube_metrics_family(&m, "build_info", "gauge",
                                 "Versions, as labels; always 1.");
    ngx_http_kube_puts(p, "nginx_kube_build_info{version=\"" KUBE_VERSION
                       "\",nginx=\"" NGINX_VERSION "\"} 1\n");

    ngx_http_kube_metrics_informers(&m);
    ngx_http_kube_metrics_age(&m);
    ngx_http_kube_metrics_zone(&m);
    ngx_http_kube_metrics_objects(&m);

    for (i = 0; i < KUBE_COUNTERS; i++) {
        ngx_http_kube_metrics_series(&m, (kube_counter_t) i);
    }

    ngx_http_kube_metrics_resolve(&m);

    for (i = 0; i < KUBE_HISTOGRAMS; i++) {
        ngx_http_kube_metrics_histogram(&m, (kube_histogram_id_t) i);
    }

    return NGX_HTTP_OK;
}


static void
ngx_http_kube_metrics_family(ngx_http_kube_metrics_t *m, const char *name,
    const char *type, const char *help)
{
    ngx_http_kube_print(m->p, "# HELP nginx_kube_%s %s\n"
                        "# TYPE nginx_kube_%s %s\n", name, help, name, type);
}


static void
ngx_http_kube_metrics_informer(ngx_http_kube_print_t *p,
    const ngx_http_kube_report_t *report)
{
    ngx_http_kube_puts(p, "{informer=\"");
    ngx_http_kube_print_escaped(p,
                                ngx_http_kube_str(&report->informer->name),
                                NGX_HTTP_KUBE_LABEL);
    ngx_http_kube_puts(p, "\"");
}


static void
ngx_http_kube_metrics_scope(ngx_http_kube_print_t *p,
    const ngx_http_kube_report_t *report, const ngx_http_kube_scope_t *scope)
{
    ngx_http_kube_metrics_informer(p, report);
    ngx_http_kube_print(p, ",resource=\"%s\",namespace=\"",
                        kube_resource_text(scope->info.resource));
    ngx_http_kube_print_escaped(p, scope->info.ns, NGX_HTTP_KUBE_LABEL);
    ngx_http_kube_puts(p, "\"");
}


static void
ngx_http_kube_metrics_informers(ngx_http_kube_metrics_t *m)
{
    ngx_uint_t                     i;
    const ngx_http_kube_family_t  *f;

    for (f = ngx_http_kube_families; f->name != NULL; f++) {

        ngx_http_kube_metrics_family(m, f->name, f->type, f->help);

        for (i = 0; i < m->n; i++) {
            ngx_http_kube_print(m->p, "nginx_kube_%s", f->name);
            ngx_http_kube_metrics_informer(m->p, &m->reports[i]);
            ngx_http_kube_print(m->p, "} %uL\n", f->value(&m->reports[i]));
        }
    }
}


/* No line where the cache was never current: there is no such number. */

static void
ngx_http_kube_metrics_age(ngx_http_kube_metrics_t *m)
{
    uint64_t    age;
    ngx_uint_t  i;

    ngx_http_kube_metrics_family(m, "cache_age_seconds", "gauge",
                                 "Time since the cache was last known to be "
                                 "current.");

    for (i = 0; i < m->n; i++) {

        age = m->reports[i].health.age_ms;

        if (age == UINT64_MAX) {
            continue;
        }

        ngx_http_kube_puts(m->p, "nginx_kube_cache_age_seconds");
        ngx_http_kube_metrics_informer(m->p, &m->reports[i]);
        ngx_http_kube_print(m->p, "} %uL.%03uL\n", age / 1000, age % 1000);
    }
}


static void
ngx_http_kube_metrics_zone(ngx_http_kube_metrics_t *m)
{
    uint64_t            bytes[3];
    ngx_uint_t          i, k;
    kube_zone_usage_t  *usage;
    static const char  *states[] = { "tables", "live", "free" };

    ngx_http_kube_metrics_family(m, "zone_bytes", "gauge",
                                 "Shared memory: tables, records in use, room "
                                 "for records.");

    for (i = 0; i < m->n; i++) {

        usage = &m->reports[i].usage;

        bytes[0] = usage->table_bytes;
        bytes[1] = usage->live_bytes;
        bytes[2] = usage->records_bytes > usage->live_bytes
                   ? usage->records_bytes - usage->live_bytes : 0;

        for (k = 0; k < 3; k++) {
            ngx_http_kube_puts(m->p, "nginx_kube_zone_bytes");
            ngx_http_kube_metrics_informer(m->p, &m->reports[i]);
            ngx_http_kube_print(m->p, ",state=\"%s\"} %uL\n", states[k],
                                bytes[k]);
        }
    }
}


static void
ngx_http_kube_metrics_objects(ngx_http_kube_metrics_t *m)
{
    ngx_uint_t              i, k;
    ngx_http_kube_scope_t  *scope;

    ngx_http_kube_metrics_family(m, "objects", "gauge",
                                 "Objects held and published.");

    for (i = 0; i < m->n; i++) {

        scope = m->reports[i].scopes.elts;

        for (k = 0; k < m->reports[i].scopes.nelts; k++) {
            ngx_http_kube_puts(m->p, "nginx_kube_objects");
            ngx_http_kube_metrics_scope(m->p, &m->reports[i], &scope[k]);
            ngx_http_kube_print(m->p, "} %uL\n", scope[k].info.count);
        }
    }
}


/* The counters of a family follow one another: the first prints its head. */

static void
ngx_http_kube_metrics_series(ngx_http_kube_metrics_t *m,
    kube_counter_t counter)
{
    ngx_uint_t                  i, k;
    ngx_http_kube_scope_t      *scope;
    const kube_counter_info_t  *info, *last;

    info = kube_counter_info(counter);

    if (info->metric == NULL) {
        return;
    }

    last = (counter != 0) ? kube_counter_info(counter - 1) : NULL;

    if (last == NULL || last->metric == NULL
        || ngx_strcmp(last->metric, info->metric) != 0)
    {
        ngx_http_kube_metrics_family(m, info->metric, "counter", info->help);
    }

    for (i = 0; i < m->n; i++) {

        scope = m->reports[i].scopes.elts;

        for (k = 0; k < m->reports[i].scopes.nelts; k++) {

            ngx_http_kube_print(m->p, "nginx_kube_%s", info->metric);
            ngx_http_kube_metrics_scope(m->p, &m->reports[i], &scope[k]);

            if (info->label != NULL) {
                ngx_http_kube_print(m->p, ",%s=\"%s\"", info->label,
                                    info->value);
            }

            ngx_http_kube_print(m->p, "} %uL\n", scope[k].counters[counter]);
        }
    }
}


static void
ngx_http_kube_metrics_resolve(ngx_http_kube_metrics_t *m)
{
    uint64_t     n;
    kube_str_t   text;
    ngx_uint_t   i, e;

    ngx_http_kube_metrics_family(m, "resolve_total", "counter",
                                 "Resolutions for requests, by result: ok, "
                                 "or the value of $kube_error.");

    for (i = 0; i < m->n; i++) {
        for (e = 0; e < KUBE_RESOLVE_ERRORS; e++) {

            n = kube_zone_worker_sum(&m->reports[i].informer->zone,
                                     NGX_KUBE_COUNT_RESOLVE + (unsigned) e);

            text = e == KUBE_RESOLVE_OK
                   ? KUBE_STR("ok")
                   : kube_resolve_error_text((kube_resolve_error_t) e);

            ngx_http_kube_puts(m->p, "nginx_kube_resolve_total");
            ngx_http_kube_metrics_informer(m->p, &m->reports[i]);
            ngx_http_kube_print(m->p, ",result=\"%*s\"} %uL\n", text.len,
                                text.data, n);
        }
    }
}


static void
ngx_http_kube_metrics_histogram(ngx_http_kube_metrics_t *m,
    kube_histogram_id_t id)
{
    ngx_uint_t  i, k;

    ngx_http_kube_metrics_family(m, kube_histogram_info(id)->metric,
                                 "histogram", kube_histogram_info(id)->help);

    for (i = 0; i < m->n; i++) {
        for (k = 0; k < KUBE_RESOURCES; k++) {
            ngx_http_kube_metrics_buckets(m->p, &m->reports[i], id,
                                          (kube_resource_t) k);
        }
    }
}


/*
 * The count is that of the buckets as they were read: observations go on
 * meanwhile, and a count below a bucket would be no histogram.
 */

static void
ngx_http_kube_metrics_buckets(ngx_http_kube_print_t *p,
    const ngx_http_kube_report_t *report, kube_histogram_id_t id,
    kube_resource_t resource)
{
    uint64_t           n;
    ngx_uint_t         i;
    const uint64_t    *bounds;
    kube_histogram_t   h;

    kube_zone_histogram_read(&report->informer->zone, id, resource, &h);
    bounds = kube_histogram_info(id)->bounds;

    n = 0;

    for (i = 0; i <= KUBE_HISTOGRAM_BUCKETS; i++) {

        n += h.buckets[i];

        ngx_http_kube_metrics_line(p, report, id, resource, "_bucket");
        ngx_http_kube_puts(p, ",le=\"");

        if (i == KUBE_HISTOGRAM_BUCKETS) {
            ngx_http_kube_puts(p, "+Inf");

        } else {
            ngx_http_kube_metrics_number(p, id, bounds[i]);
        }

        ngx_http_kube_print(p, "\"} %uL\n", n);
    }

    ngx_http_kube_metrics_line(p, report, id, resource, "_sum");
    ngx_http_kube_puts(p, "} ");
    ngx_http_kube_metrics_number(p, id, h.sum);
    ngx_http_kube_puts(p, "\n");

    ngx_http_kube_metrics_line(p, report, id, resource, "_count");
    ngx_http_kube_print(p, "} %uL\n", n);
}


/* Up to the closing brace of the labels. */

static void
ngx_http_kube_metrics_line(ngx_http_kube_print_t *p,
    const ngx_http_kube_report_t *report, kube_histogram_id_t id,
    kube_resource_t resource, const char *suffix)
{
    ngx_http_kube_print(p, "nginx_kube_%s%s",
                        kube_histogram_info(id)->metric, suffix);
    ngx_http_kube_metrics_informer(p, report);
    ngx_http_kube_print(p, ",resource=\"%s\"", kube_resource_text(resource));
}


/* Microseconds as seconds without trailing zeros; items as they are. */

static void
ngx_http_kube_metrics_number(ngx_http_kube_print_t *p, kube_histogram_id_t id,
    uint64_t value)
{
    u_char  *end;
    u_char   text[NGX_INT64_LEN + sizeof(".000000")];

    if (kube_histogram_info(id)->unit == KUBE_UNIT_ITEMS) {
        ngx_http_kube_print(p, "%uL", value);
        return;
    }

    end = ngx_snprintf(text, sizeof(text), "%uL.%06uL", value / 1000000,
                       value % 1000000);

    while (end[-1] == '0') {
        end--;
    }

    if (end[-1] == '.') {
        end--;
    }

    ngx_http_kube_print_raw(p, text, end - text);
}


static uint64_t
ngx_http_kube_synced_value(const ngx_http_kube_report_t *report)
{
    return report->health.synced;
}


static uint64_t
ngx_http_kube_ready_value(const ngx_http_kube_report_t *report)
{
    return report->ready;
}


static uint64_t
ngx_http_kube_stale_value(const ngx_http_kube_report_t *report)
{
    return report->health.stale;
}


static uint64_t
ngx_http_kube_state_value(const ngx_http_kube_report_t *report)
{
    return report->health.state_in_use;
}


static uint64_t
ngx_http_kube_epoch_value(const ngx_http_kube_report_t *report)
{
    return report->writer.epoch;
}


static uint64_t
ngx_http_kube_queue_value(const ngx_http_kube_report_t *report)
{
    return report->writer.queue_depth;
}


static uint64_t
ngx_http_kube_takeovers_value(const ngx_http_kube_report_t *report)
{
    return report->writer.takeovers;
}


static uint64_t
ngx_http_kube_crashes_value(const ngx_http_kube_report_t *report)
{
    return report->writer.crashes;
}


static uint64_t
ngx_http_kube_failures_value(const ngx_http_kube_report_t *report)
{
    return report->usage.failures;
}


static uint64_t
ngx_http_kube_refused_value(const ngx_http_kube_report_t *report)
{
    return report->usage.refused;
}


static uint64_t
ngx_http_kube_rebuilds_value(const ngx_http_kube_report_t *report)
{
    return kube_zone_worker_sum(&report->informer->zone,
                                NGX_KUBE_COUNT_REBUILDS);
}
