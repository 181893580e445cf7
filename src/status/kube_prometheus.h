/*
 * kube_prometheus - reports as the Prometheus text format, 0.0.4.
 *
 * Every line comes from a row of kube_facts or from a histogram of the zone;
 * the lines of a metric stand together, whatever the number of informers.
 * Called by workers for /metrics.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_PROMETHEUS_H
#define KUBE_PROMETHEUS_H


#include "kube_report.h"
#include "kube_status_json.h"
#include "kube_text.h"


/* Whether all of it was printed is found in text->failed. */
void kube_prometheus_print(kube_text_t *text, const kube_report_t *reports,
    size_t n, kube_str_t nginx);

/*
 * upstream_endpoints: what each upstream whose key is static has now.  Keys are
 * resolved by kube_status_resolve().  KUBE_OK or KUBE_NOMEM.
 */
kube_rc_t kube_prometheus_print_upstreams(kube_text_t *text,
    const kube_status_use_t *uses, size_t n, const kube_arena_t *scratch)
    KUBE_MUST_CHECK;


#endif /* KUBE_PROMETHEUS_H */
