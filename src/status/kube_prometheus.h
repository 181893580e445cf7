/*
 * kube_prometheus - reports as the Prometheus text format, 0.0.4.
 *
 * Lines come from the rows of kube_facts and from histograms of the zone, but
 * for build_info, and for those of upstreams and of Services, which the caller
 * counts; the lines of a metric stand together, whatever the number of
 * informers.  Called by workers for /metrics.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_PROMETHEUS_H
#define KUBE_PROMETHEUS_H


#include "kube_report.h"
#include "kube_service_counts.h"
#include "kube_text.h"


/* Whether all of it was printed is found in text->failed. */
void kube_prometheus_print(kube_text_t *text, const kube_report_t *reports,
    size_t n, kube_str_t nginx);

/* An upstream whose key is static, and how many endpoints it has now. */
typedef struct {
    kube_str_t  informer;
    kube_str_t  name;
    size_t      endpoints;
} kube_prometheus_upstream_t;

/* upstream_endpoints, a line of each. */
void kube_prometheus_print_upstreams(kube_text_t *text,
    const kube_prometheus_upstream_t *upstreams, size_t n);

/*
 * service_endpoints, for those who ask for it: its head, then the lines of each
 * Service as it is counted, in less than KUBE_PROMETHEUS_SERVICE_MAX bytes;
 * then service_endpoints_omitted, its head and a line of each informer.
 */
#define KUBE_PROMETHEUS_SERVICE_MAX  4096

void kube_prometheus_print_services_head(kube_text_t *text);
void kube_prometheus_print_service(kube_text_t *text, kube_str_t informer,
    const kube_service_counts_row_t *row);
void kube_prometheus_print_omitted_head(kube_text_t *text);
void kube_prometheus_print_omitted(kube_text_t *text, kube_str_t informer,
    uint64_t omitted);


#endif /* KUBE_PROMETHEUS_H */
