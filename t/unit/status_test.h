/*
 * status_test - a zone with scopes and Services, a report of it, and a text
 * to print into, for the tests of src/status.
 *
 * For t/unit only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_STATUS_TEST_H
#define KUBE_STATUS_TEST_H


#include "kube_json.h"
#include "kube_report.h"
#include "route_test.h"
#include "text_test.h"


#define STATUS_TEST_NOW       (600 * 1000)       /* the zone's clock */
#define STATUS_TEST_UNIX      1767225600000      /* 2026-01-01T00:00:00Z */


typedef struct {
    zone_test_t    t;
    text_test_t    tt;
    kube_arena_t   arena;       /* of the report */
    kube_report_t  report;
} status_test_t;


static inline void
status_test_open(status_test_t *st)
{
    memset(st, 0, sizeof(status_test_t));

    zone_test_open(&st->t, 1u << 20);
    text_test_init(&st->tt);
    kube_arena_init(&st->arena, &st->t.at.alloc, 16u << 20);

    st->report.name = KUBE_STR("default");
    st->report.zone_name = KUBE_STR("kube");
    st->report.zone_size = 1u << 20;
    st->report.idle_timeout_ms = 90000;
    st->report.now_ms = STATUS_TEST_NOW;
    st->report.now_unix_ms = STATUS_TEST_UNIX;
}


static inline void
status_test_close(status_test_t *st)
{
    kube_arena_done(&st->arena);
    text_test_done(&st->tt);
    zone_test_close(&st->t);
}


/* Reads it anew; what was read before is gone. */
static inline kube_rc_t
status_test_report(status_test_t *st)
{
    kube_arena_reset(&st->arena);

    return kube_report_read(&st->report, &st->t.zone, &st->arena,
                            &st->t.arena);
}


/* A scope that watches and heard from the server a second ago. */
static inline void
status_test_watch(status_test_t *st, unsigned slot, kube_resource_t resource,
    const char *ns)
{
    route_test_scope(&st->t, slot, resource, ns, "synced");

    kube_zone_scope_set(&st->t.zone, slot, KUBE_COUNTER_GAUGE_STATE,
                        KUBE_STATE_WATCHING);
    kube_zone_scope_set(&st->t.zone, slot, KUBE_COUNTER_GAUGE_WATCH_OPEN, 1);
    kube_zone_scope_set(&st->t.zone, slot, KUBE_COUNTER_GAUGE_CONTACT_MS,
                        STATUS_TEST_NOW - 1000);
}


/* The scope does not follow for so many ms. */
static inline void
status_test_error(status_test_t *st, unsigned slot, kube_cause_t cause,
    const char *reason, const char *message, uint64_t ago_ms)
{
    kube_zone_scope_set(&st->t.zone, slot, KUBE_COUNTER_GAUGE_CAUSE,
                        (uint64_t) cause + 1);
    kube_zone_scope_set(&st->t.zone, slot, KUBE_COUNTER_GAUGE_SINCE_MS,
                        STATUS_TEST_NOW - ago_ms);
    kube_zone_scope_set(&st->t.zone, slot, KUBE_COUNTER_GAUGE_STATE,
                        KUBE_STATE_BACKOFF);
    kube_zone_scope_set(&st->t.zone, slot, KUBE_COUNTER_GAUGE_WATCH_OPEN, 0);
    kube_zone_scope_set(&st->t.zone, slot, KUBE_COUNTER_GAUGE_CONTACT_MS,
                        STATUS_TEST_NOW - ago_ms);
    assert_int_equal(kube_zone_scope_error(st->t.writer, slot,
                                           kube_str(reason),
                                           kube_str(message),
                                           STATUS_TEST_UNIX
                                           - (int64_t) ago_ms + 1),
                     KUBE_OK);
}


static inline void
status_test_refuse(status_test_t *st, const char *ns, const char *name,
    const char *reason)
{
    uint32_t  entry;

    assert_int_equal(zone_test_refuse(&st->t, KUBE_RESOURCE_SERVICES, ns,
                                      name, "7", reason, &entry), KUBE_OK);
}


/* What was printed is one JSON value and a line feed. */
static inline void
status_test_is_json(status_test_t *st)
{
    cJSON         *tree;
    size_t         len;
    kube_rc_t      rc;
    kube_error_t   error;
    kube_arena_t   arena;

    len = st->tt.text.size;

    assert_false(st->tt.text.failed);
    assert_int_equal(st->tt.data[len - 1], '\n');

    kube_arena_init(&arena, &st->t.at.alloc, 16u << 20);
    rc = kube_json_parse(&arena, (kube_str_t) { st->tt.data, len - 1 }, &tree,
                         &error);
    kube_arena_done(&arena);

    if (rc != KUBE_OK) {
        fail_msg("%s at %zu of %s", error.what, error.offset, st->tt.data);
    }
}


#endif /* KUBE_STATUS_TEST_H */
