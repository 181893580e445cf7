/*
 * kube_prometheus - reports as the Prometheus text format, 0.0.4.
 *
 * The figures are kube_report's, their names kube_facts'.  Called by workers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <inttypes.h>
#include <string.h>

#include "kube_facts.h"
#include "kube_prometheus.h"
#include "kube_version.h"


#define PROMETHEUS_PREFIX  "nginx_kube_"


/* Prints the lines of a fact that one report has. */
typedef void (*prometheus_print_pt)(kube_text_t *text,
    const kube_fact_t *fact, const kube_report_t *report);


static void
prometheus_head(kube_text_t *text, const char *metric, const char *type,
    const char *help)
{
    kube_text_printf(text, "# HELP " PROMETHEUS_PREFIX "%s %s\n"
                     "# TYPE " PROMETHEUS_PREFIX "%s %s\n",
                     metric, help, metric, type);
}


static void
prometheus_label(kube_text_t *text, const char *label, kube_str_t value)
{
    kube_text_printf(text, ",%s=\"", label);
    kube_text_escape(text, value, KUBE_ESCAPE_LABEL);
    kube_text_put(text, KUBE_STR("\""));
}


/* A line as far as the label that tells the informer. */
static void
prometheus_begin(kube_text_t *text, const char *metric, const char *suffix,
    kube_str_t informer)
{
    kube_text_printf(text, PROMETHEUS_PREFIX "%s%s{informer=\"", metric,
                     suffix);
    kube_text_escape(text, informer, KUBE_ESCAPE_LABEL);
    kube_text_put(text, KUBE_STR("\""));
}


/* A line as far as the labels that tell informer and resource. */
static void
prometheus_line(kube_text_t *text, const char *metric, const char *suffix,
    const kube_report_t *report, kube_str_t resource)
{
    prometheus_begin(text, metric, suffix, report->name);

    if (resource.len != 0) {
        prometheus_label(text, "resource", resource);
    }
}


/* The rest of the line; of is the report, or one of its scopes. */
static void
prometheus_value(kube_text_t *text, const kube_fact_t *fact, const void *of)
{
    if (fact->label != NULL) {
        prometheus_label(text, fact->label, kube_str(fact->value));
    }

    kube_text_put(text, KUBE_STR("} "));

    if (fact->form == KUBE_FACT_AGE) {
        kube_text_thousandths(text, kube_fact_number(fact, of));

    } else {
        kube_text_printf(text, "%" PRIu64, (fact->form == KUBE_FACT_BOOL)
                                           ? kube_fact_bool(fact, of)
                                           : kube_fact_number(fact, of));
    }

    kube_text_put(text, KUBE_STR("\n"));
}


static void
prometheus_informer(kube_text_t *text, const kube_fact_t *fact,
    const kube_report_t *report)
{
    /* there is no number for the age of what was never current */

    if (fact->form == KUBE_FACT_AGE
        && kube_fact_number(fact, report) == KUBE_NEVER)
    {
        return;
    }

    prometheus_line(text, fact->metric, "", report, KUBE_STR_NULL);
    prometheus_value(text, fact, report);
}


static void
prometheus_scopes(kube_text_t *text, const kube_fact_t *fact,
    const kube_report_t *report)
{
    size_t                      i;
    const kube_report_scope_t  *scope;

    for (i = 0; i < report->scopes_n; i++) {
        scope = &report->scopes[i];

        prometheus_line(text, fact->metric, "", report, scope->resource);
        prometheus_label(text, "namespace", scope->info.ns);
        prometheus_value(text, fact, scope);
    }
}


static void
prometheus_facts(kube_text_t *text, const kube_fact_t *facts, size_t facts_n,
    prometheus_print_pt print, const kube_report_t *reports, size_t n)
{
    size_t       i, k;
    const char  *last;

    last = "";

    for (i = 0; i < facts_n; i++) {

        if (facts[i].metric == NULL) {
            continue;
        }

        if (strcmp(facts[i].metric, last) != 0) {
            last = facts[i].metric;
            prometheus_head(text, last,
                            facts[i].type == KUBE_FACT_COUNTER ? "counter"
                                                               : "gauge",
                            facts[i].help);
        }

        for (k = 0; k < n; k++) {
            print(text, &facts[i], &reports[k]);
        }
    }
}


/* Microseconds as seconds without trailing zeros; items as they are. */
static void
prometheus_number(kube_text_t *text, kube_unit_t unit, uint64_t n)
{
    unsigned  digits;
    uint64_t  part;

    kube_text_printf(text, "%" PRIu64, (unit == KUBE_UNIT_US) ? n / 1000000
                                                              : n);
    part = (unit == KUBE_UNIT_US) ? n % 1000000 : 0;

    if (part == 0) {
        return;
    }

    for (digits = 6; part % 10 == 0; digits--) {
        part /= 10;
    }

    kube_text_printf(text, ".%0*" PRIu64, (int) digits, part);
}


/* False of a resource that is not followed, nor ever was. */
static bool
prometheus_is_followed(const kube_report_t *report, kube_resource_t resource,
    const kube_histogram_t *h)
{
    size_t  i;

    for (i = 0; i < report->scopes_n; i++) {

        if (report->scopes[i].info.resource == resource) {
            return true;
        }
    }

    return h->count != 0;
}


/*
 * The count is the sum of the buckets as they were read: observations go on
 * meanwhile, and a count below a bucket would be no histogram.
 */
static void
prometheus_histogram(kube_text_t *text, const kube_report_t *report,
    kube_histogram_id_t id, kube_resource_t resource)
{
    size_t                        i;
    uint64_t                      n;
    kube_str_t                    name;
    kube_histogram_t              h;
    const kube_histogram_info_t  *info;

    n = 0;
    name = kube_str(kube_resource_text(resource));
    info = kube_histogram_info(id);

    kube_zone_histogram_read(report->zone, id, resource, &h);

    if (!prometheus_is_followed(report, resource, &h)) {
        return;
    }

    for (i = 0; i <= KUBE_HISTOGRAM_BUCKETS; i++) {

        n += h.buckets[i];

        prometheus_line(text, info->metric, "_bucket", report, name);
        kube_text_put(text, KUBE_STR(",le=\""));

        if (i == KUBE_HISTOGRAM_BUCKETS) {
            kube_text_put(text, KUBE_STR("+Inf"));

        } else {
            prometheus_number(text, info->unit, info->bounds[i]);
        }

        kube_text_printf(text, "\"} %" PRIu64 "\n", n);
    }

    prometheus_line(text, info->metric, "_sum", report, name);
    kube_text_put(text, KUBE_STR("} "));
    prometheus_number(text, info->unit, h.sum);

    kube_text_put(text, KUBE_STR("\n"));
    prometheus_line(text, info->metric, "_count", report, name);
    kube_text_printf(text, "} %" PRIu64 "\n", n);
}


void
kube_prometheus_print(kube_text_t *text, const kube_report_t *reports,
    size_t n, kube_str_t nginx)
{
    size_t                        i, k, facts_n;
    unsigned                      r;
    const kube_fact_t            *facts;
    const kube_histogram_info_t  *info;

    prometheus_head(text, "build_info", "gauge",
                    "Versions, as labels; always 1.");
    kube_text_put(text, KUBE_STR(PROMETHEUS_PREFIX "build_info{version=\""
                                 KUBE_VERSION "\",nginx=\""));
    kube_text_escape(text, nginx, KUBE_ESCAPE_LABEL);
    kube_text_put(text, KUBE_STR("\"} 1\n"));

    facts = kube_facts_informer(&facts_n);
    prometheus_facts(text, facts, facts_n, prometheus_informer, reports, n);

    facts = kube_facts_scope(&facts_n);
    prometheus_facts(text, facts, facts_n, prometheus_scopes, reports, n);

    for (i = 0; i < KUBE_HISTOGRAMS; i++) {

        info = kube_histogram_info((kube_histogram_id_t) i);
        prometheus_head(text, info->metric, "histogram", info->help);

        for (k = 0; k < n; k++) {
            for (r = 0; r < KUBE_RESOURCES_ROUTED; r++) {

                if (i == KUBE_HISTOGRAM_WORKQUEUE
                    && r != KUBE_RESOURCE_SERVICES)
                {
                    continue;
                }

                prometheus_histogram(text, &reports[k],
                                     (kube_histogram_id_t) i,
                                     (kube_resource_t) r);
            }
        }
    }
}


void
kube_prometheus_print_upstreams(kube_text_t *text,
    const kube_prometheus_upstream_t *upstreams, size_t n)
{
    size_t  i;

    prometheus_head(text, "upstream_endpoints", "gauge",
                    "Endpoints that an upstream with a static key has now.");

    for (i = 0; i < n; i++) {
        prometheus_begin(text, "upstream_endpoints", "",
                         upstreams[i].informer);
        prometheus_label(text, "upstream", upstreams[i].name);
        kube_text_printf(text, "} %zu\n", upstreams[i].endpoints);
    }
}


void
kube_prometheus_print_services_head(kube_text_t *text)
{
    prometheus_head(text, "service_endpoints", "gauge",
                    "Endpoints of a Service, by what its slices say of them.");
}


void
kube_prometheus_print_service(kube_text_t *text, kube_str_t informer,
    const kube_service_counts_row_t *row)
{
    unsigned                     i;
    kube_service_counts_state_t  state;

    for (i = 0; i < KUBE_SERVICE_COUNTS_STATES; i++) {
        state = (kube_service_counts_state_t) i;

        prometheus_begin(text, "service_endpoints", "", informer);
        prometheus_label(text, "namespace", row->ns);
        prometheus_label(text, "service", row->name);
        prometheus_label(text, "state",
                         kube_str(kube_service_counts_state_text(state)));
        kube_text_printf(text, "} %" PRIu64 "\n", row->endpoints[i]);
    }
}


void
kube_prometheus_print_omitted_head(kube_text_t *text)
{
    prometheus_head(text, "service_endpoints_omitted", "gauge",
                    "Services that service_endpoints has no line of.");
}


void
kube_prometheus_print_omitted(kube_text_t *text, kube_str_t informer,
    uint64_t omitted)
{
    prometheus_begin(text, "service_endpoints_omitted", "", informer);
    kube_text_printf(text, "} %" PRIu64 "\n", omitted);
}
