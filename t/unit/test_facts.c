/*
 * test_facts - the table of facts is one that its printers can walk.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_facts.h"
#include "kube_report.h"


#define FACTS_MAX  128


typedef struct {
    const kube_fact_t  *facts;
    size_t              n;
    size_t              size;     /* of what they are facts of */
} table_t;


static void
tables(table_t t[2])
{
    t[0].facts = kube_facts_informer(&t[0].n);
    t[0].size = sizeof(kube_report_t);
    t[1].facts = kube_facts_scope(&t[1].n);
    t[1].size = sizeof(kube_report_scope_t);
}


static bool
same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}


static size_t
form_size(kube_fact_form_t form)
{
    switch (form) {

    case KUBE_FACT_BOOL:
        return sizeof(bool);

    case KUBE_FACT_TEXT:
    case KUBE_FACT_OPTIONAL:
        return sizeof(kube_str_t);

    default:
        return sizeof(uint64_t);
    }
}


static bool
is_total(const char *metric)
{
    size_t  len;

    len = strlen(metric);

    return len > 6 && strcmp(metric + len - 6, "_total") == 0;
}


static void
check_fact(const table_t *t, size_t i)
{
    size_t              k;
    const kube_fact_t  *f, *g;

    f = &t->facts[i];

    assert_true(f->offset % (f->form == KUBE_FACT_BOOL ? 1 : 8) == 0);
    assert_true(f->offset + form_size(f->form) <= t->size);
    assert_true((f->label == NULL) == (f->value == NULL));

    if (f->metric != NULL) {
        assert_true(f->form == KUBE_FACT_BOOL || f->form == KUBE_FACT_NUMBER
                    || f->form == KUBE_FACT_AGE);
        assert_int_equal(f->type == KUBE_FACT_COUNTER, is_total(f->metric));
    }

    for (k = 0; k < i; k++) {
        g = &t->facts[k];

        /* a member once, and those of a group together */

        if (f->key != NULL && g->key != NULL && same(f->group, g->group)) {
            assert_string_not_equal(f->key, g->key);
        }

        /* a line once, and the lines of a metric together */

        if (f->metric != NULL && same(f->metric, g->metric)) {
            assert_non_null(f->label);
            assert_string_equal(f->label, g->label);
            assert_string_not_equal(f->value, g->value);
            assert_true(same(f->metric, t->facts[i - 1].metric));
        }
    }

    if (f->metric != NULL
        && (i == 0 || !same(f->metric, t->facts[i - 1].metric)))
    {
        assert_non_null(f->help);
        assert_int_equal(f->help[strlen(f->help) - 1], '.');
    }
}


static void
test_facts_tables(void **state)
{
    size_t   i, k;
    table_t  t[2];

    (void) state;
    tables(t);

    for (k = 0; k < 2; k++) {
        assert_true(t[k].n <= FACTS_MAX);

        for (i = 0; i < t[k].n; i++) {
            check_fact(&t[k], i);
        }
    }

    /* no metric is of an informer and of a scope */

    for (i = 0; i < t[0].n; i++) {
        for (k = 0; k < t[1].n; k++) {
            if (t[0].facts[i].metric != NULL && t[1].facts[k].metric != NULL)
            {
                assert_string_not_equal(t[0].facts[i].metric,
                                        t[1].facts[k].metric);
            }
        }
    }
}


/* A group is open while its rows last: it must not be opened again. */

static void
test_facts_groups(void **state)
{
    size_t       i, j, k, n;
    table_t      t[2];
    const char  *group, *seen[FACTS_MAX];

    (void) state;
    tables(t);

    for (k = 0; k < 2; k++) {
        group = NULL;
        n = 0;

        for (i = 0; i < t[k].n; i++) {

            if (t[k].facts[i].key == NULL || same(t[k].facts[i].group, group))
            {
                continue;
            }

            group = t[k].facts[i].group;

            for (j = 0; group != NULL && j < n; j++) {
                assert_string_not_equal(seen[j], group);
            }

            if (group != NULL) {
                seen[n++] = group;
            }
        }
    }
}


/* Every counter of the zone that has a metric is a line of that metric. */

static void
test_facts_counters(void **state)
{
    size_t                      i, n;
    unsigned                    c, found;
    const kube_fact_t          *facts;
    const kube_counter_info_t  *info;

    (void) state;
    facts = kube_facts_scope(&n);

    for (c = 0; c < KUBE_COUNTERS; c++) {
        info = kube_counter_info((kube_counter_t) c);
        found = 0;

        for (i = 0; i < n; i++) {
            if (facts[i].metric != NULL
                && facts[i].offset == offsetof(kube_report_scope_t, counters)
                                      + c * sizeof(uint64_t))
            {
                found++;
                assert_string_equal(facts[i].metric, info->metric);
                assert_true(same(facts[i].value, info->value));
            }
        }

        assert_int_equal(found, info->metric != NULL);
    }
}


static void
test_facts_values(void **state)
{
    size_t              i, n;
    kube_report_t       report;
    const kube_fact_t  *facts;

    (void) state;

    memset(&report, 0, sizeof(kube_report_t));
    report.name = KUBE_STR("blue");
    report.ready = true;
    report.writer.epoch = 7;
    report.writer.writer_since_ms = 5000;
    report.health.age_ms = KUBE_NEVER;

    facts = kube_facts_informer(&n);

    for (i = 0; i < n; i++) {
        if (same(facts[i].key, "name") && facts[i].group == NULL) {
            assert_true(kube_str_eq(kube_fact_text(&facts[i], &report),
                                    report.name));

        } else if (same(facts[i].key, "ready")) {
            assert_true(kube_fact_bool(&facts[i], &report));

        } else if (same(facts[i].key, "epoch")) {
            assert_int_equal(kube_fact_number(&facts[i], &report), 7);

        } else if (same(facts[i].key, "since")) {
            assert_int_equal(kube_fact_time(&facts[i], &report), 5000);

        } else if (same(facts[i].key, "age_seconds")) {
            assert_true(kube_fact_number(&facts[i], &report) == KUBE_NEVER);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_facts_tables),
        cmocka_unit_test(test_facts_groups),
        cmocka_unit_test(test_facts_counters),
        cmocka_unit_test(test_facts_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
