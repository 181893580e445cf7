/*
 * kube_facts - the one table of what the status API and the metrics tell of
 * an informer and of its scopes.
 *
 * A fact is one row: where it stands in kube_report_t or kube_report_scope_t,
 * what it is called in JSON and in the metrics, its type and its help text.
 * kube_status_json, kube_prometheus and kube_status_html walk the rows;
 * docs/metrics.md is compared with them by a test.  Constant data.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_FACTS_H
#define KUBE_FACTS_H


#include "kube_base.h"


typedef enum {
    KUBE_FACT_BOOL = 0,    /* bool; 1 or 0 in the metrics */
    KUBE_FACT_NUMBER,      /* uint64_t */
    KUBE_FACT_ID,          /* uint64_t; null where it is 0 */
    KUBE_FACT_AGE,         /* uint64_t in ms, printed in seconds; KUBE_NEVER:
                              null, and no line in the metrics */
    KUBE_FACT_TIME,        /* int64_t, unix ms; null where it is 0 */
    KUBE_FACT_TEXT,        /* kube_str_t */
    KUBE_FACT_OPTIONAL     /* kube_str_t; null where it is empty */
} kube_fact_form_t;

typedef enum {
    KUBE_FACT_GAUGE = 0,
    KUBE_FACT_COUNTER      /* only grows; the metric ends in _total */
} kube_fact_type_t;

typedef struct {
    const char        *group;     /* JSON: the object it stands in; NULL: in
                                     that of the informer or scope itself */
    const char        *key;       /* JSON: its member; NULL: not in JSON */
    const char        *metric;    /* behind nginx_kube_; NULL: no metric */
    kube_fact_type_t   type;      /* of the metric */
    const char        *label;     /* one more label; NULL: none */
    const char        *value;     /* of the label */
    const char        *help;      /* of the metric, in its first row */
    kube_fact_form_t   form;
    size_t             offset;    /* in the report, or in the scope */
} kube_fact_t;

/*
 * The rows of a group are next to each other, and so are those of a metric.
 * facts of an informer: offsets in kube_report_t; of a scope: offsets in
 * kube_report_scope_t.
 */
const kube_fact_t *kube_facts_informer(size_t *n);
const kube_fact_t *kube_facts_scope(size_t *n);

/* Of a fact in what it is a fact of. */
bool kube_fact_bool(const kube_fact_t *fact, const void *of);
uint64_t kube_fact_number(const kube_fact_t *fact, const void *of);
int64_t kube_fact_time(const kube_fact_t *fact, const void *of);
kube_str_t kube_fact_text(const kube_fact_t *fact, const void *of);


#endif /* KUBE_FACTS_H */
