/*
 * test_trouble - each cause is said once, again each minute, and when it is
 * over; what the zone is told meanwhile.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "kube_trouble.h"
#include "kube_zone_counters.h"
#include "zone_test.h"


#define SERVICES  0
#define SLICES    1

typedef struct {
    zone_test_t       t;
    kube_trouble_t   *trouble;
    uint64_t          now_ms;
    const char       *remedy;
    char              said[4096];      /* "error degraded: ...\n" */
} bed_t;


static void
bed_log(void *ctx, kube_log_level_t level, kube_event_id_t id,
    const char *line)
{
    size_t   len;
    bed_t   *b = ctx;

    len = strlen(b->said);
    snprintf(b->said + len, sizeof(b->said) - len, "%s %s: %s\n",
             level == KUBE_LOG_ERROR ? "error" : "notice",
             kube_event_text(id), line);
}


static kube_trouble_t *
bed_create(bed_t *b)
{
    return kube_trouble_create(&b->t.at.alloc, &b->t.zone,
                               (kube_log_sink_t) { bed_log, b },
                               KUBE_STR("https://api"));
}


static void
bed_open(bed_t *b)
{
    memset(b, 0, sizeof(bed_t));
    zone_test_open(&b->t, 1u << 20);
    b->now_ms = 1000000;
    b->trouble = bed_create(b);
    assert_non_null(b->trouble);
}


static void
bed_close(bed_t *b)
{
    kube_trouble_destroy(b->trouble);
    zone_test_close(&b->t);
}


/* Tells that a scope failed so often; KUBE_CAUSES: it follows. */
static void
bed_scope(bed_t *b, unsigned scope, kube_cause_t cause, uint64_t attempts)
{
    kube_suffering_t  suffering;

    suffering = (kube_suffering_t) { cause, b->now_ms, attempts, "refused",
                                      b->remedy };

    kube_trouble_scope(b->trouble, scope,
                       scope == SERVICES ? "services" : "endpointslices",
                       &suffering, b->now_ms);
}


/* What is said at this time: nothing where nothing is due. */
static void
bed_says(bed_t *b, const char *expected)
{
    bool  due;

    due = (kube_trouble_deadline(b->trouble) <= b->now_ms);
    kube_trouble_process(b->trouble, b->now_ms);

    assert_string_equal(b->said, expected);
    assert_true(due || expected[0] == '\0');
    assert_true(kube_trouble_deadline(b->trouble) > b->now_ms);
    b->said[0] = '\0';
}


static void
bed_wait(bed_t *b, uint64_t ms)
{
    b->now_ms += ms;
}


/* Of a server that is away for 3 m 12 s, with two scopes. */
static void
test_outage(void **state)
{
    bed_t  b;

    (void) state;
    bed_open(&b);
    bed_says(&b, "");

    bed_scope(&b, SERVICES, KUBE_CAUSE_UNREACHABLE, 1);
    bed_wait(&b, 100);
    bed_scope(&b, SLICES, KUBE_CAUSE_UNREACHABLE, 1);
    bed_wait(&b, 4899);
    bed_says(&b, "");
    bed_scope(&b, SERVICES, KUBE_CAUSE_UNREACHABLE, 3);
    bed_wait(&b, 1);
    bed_says(&b, "error degraded: unreachable: services at https://api: "
                 "refused; see that the API server runs and can be reached "
                 "from here\n");

    bed_wait(&b, 59999);
    bed_says(&b, "");
    bed_scope(&b, SLICES, KUBE_CAUSE_UNREACHABLE, 20);
    bed_wait(&b, 1);
    bed_says(&b, "error degraded: unreachable: for 1 m 5 s, 23 attempts: "
                 "endpointslices at https://api: refused\n");
    assert_int_equal(kube_trouble_deadline(b.trouble), b.now_ms + 60000);

    /* the last one that follows ends it */

    bed_wait(&b, 50000);
    bed_scope(&b, SERVICES, KUBE_CAUSES, 0);
    bed_wait(&b, 5000);
    bed_says(&b, "");
    bed_scope(&b, SLICES, KUBE_CAUSE_UNREACHABLE, 38);
    bed_scope(&b, SLICES, KUBE_CAUSES, 0);
    bed_wait(&b, KUBE_TROUBLE_SETTLE_MS);
    bed_says(&b, "notice recovered: unreachable: following again after "
                 "2 m 0 s, 41 attempts\n");
    assert_true(kube_trouble_deadline(b.trouble) == KUBE_NEVER);

    /* the next one is another */

    bed_scope(&b, SLICES, KUBE_CAUSE_UNREACHABLE, 1);
    bed_wait(&b, 5000);
    bed_says(&b, "error degraded: unreachable: endpointslices at "
                 "https://api: refused; see that the API server runs and can "
                 "be reached from here\n");
    bed_scope(&b, SLICES, KUBE_CAUSES, 0);
    bed_wait(&b, KUBE_TROUBLE_SETTLE_MS);
    bed_says(&b, "notice recovered: unreachable: following again after "
                 "5 s, 1 attempts\n");

    bed_close(&b);
}


/* What the server has no part in has a remedy of its own, once. */
static void
test_remedy(void **state)
{
    bed_t  b;

    (void) state;
    bed_open(&b);

    b.remedy = "raise \"worker_rlimit_nofile\"";
    bed_scope(&b, SERVICES, KUBE_CAUSE_UNREACHABLE, 1);
    bed_wait(&b, 5000);
    bed_says(&b, "error degraded: unreachable: services at https://api: "
                 "refused; raise \"worker_rlimit_nofile\"\n");

    bed_scope(&b, SERVICES, KUBE_CAUSES, 0);
    bed_wait(&b, KUBE_TROUBLE_SETTLE_MS);
    bed_says(&b, "notice recovered: unreachable: following again after "
                 "5 s, 1 attempts\n");

    b.remedy = NULL;
    bed_scope(&b, SERVICES, KUBE_CAUSE_UNREACHABLE, 1);
    bed_wait(&b, 5000);
    bed_says(&b, "error degraded: unreachable: services at https://api: "
                 "refused; see that the API server runs and can be reached "
                 "from here\n");

    bed_close(&b);
}


/* One that is over before its time was none. */
static void
test_short(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;
    bed_open(&b);

    for (i = 0; i < 20; i++) {
        bed_scope(&b, SERVICES, KUBE_CAUSE_UNREACHABLE, 1);
        bed_wait(&b, 4000);
        bed_says(&b, "");
        bed_scope(&b, SERVICES, KUBE_CAUSES, 0);
        bed_wait(&b, 300);
        bed_says(&b, "");
    }

    bed_close(&b);
}


/* It comes and goes: two lines a minute at most. */
static void
test_flapping(void **state)
{
    bed_t     b;
    char     *p;
    unsigned  i, lines;

    (void) state;
    bed_open(&b);

    for (i = 0; i < 200; i++) {
        bed_scope(&b, SERVICES, (i % 2) ? KUBE_CAUSE_UNAUTHORIZED
                                        : KUBE_CAUSE_TLS, 1);
        bed_wait(&b, 1500);
        kube_trouble_process(b.trouble, b.now_ms);
        bed_scope(&b, SERVICES, KUBE_CAUSES, 0);
        bed_wait(&b, 300);
        kube_trouble_process(b.trouble, b.now_ms);
    }

    lines = 0;

    for (p = b.said; (p = strchr(p, '\n')) != NULL; p++) {
        lines++;
    }

    /* 360 s: each cause once a minute, and no end in between */
    assert_in_range(lines, 2, 14);
    assert_null(strstr(b.said, "notice"));

    bed_close(&b);
}


/* The cause changes: one line for each, one for the end of all. */
static void
test_changes(void **state)
{
    bed_t  b;

    (void) state;
    bed_open(&b);

    bed_scope(&b, SERVICES, KUBE_CAUSE_TLS, 1);
    bed_scope(&b, SLICES, KUBE_CAUSE_TLS, 1);
    bed_wait(&b, 1000);
    bed_says(&b, "error degraded: tls: endpointslices at https://api: refused; "
                 "compare the CA, the server's name and its port with its "
                 "certificate, and ours with its key\n");

    bed_scope(&b, SERVICES, KUBE_CAUSE_UNAUTHORIZED, 5);
    bed_wait(&b, 1000);
    bed_scope(&b, SLICES, KUBE_CAUSE_UNAUTHORIZED, 5);
    bed_says(&b, "error degraded: unauthorized: endpointslices at https://api: "
                 "refused; renew the token or the client certificate, "
                 "or name one\n");

    /* over before it was said, but what it followed was */

    bed_scope(&b, SERVICES, KUBE_CAUSE_UNREACHABLE, 6);
    bed_scope(&b, SLICES, KUBE_CAUSE_UNREACHABLE, 6);
    bed_wait(&b, 1000);
    bed_says(&b, "");
    bed_scope(&b, SERVICES, KUBE_CAUSES, 0);
    bed_scope(&b, SLICES, KUBE_CAUSES, 0);
    bed_wait(&b, 2000);
    bed_says(&b, "notice recovered: unreachable: following again after 3 s, "
                 "12 attempts\n");

    /* forbidden is each scope's own */

    bed_scope(&b, SERVICES, KUBE_CAUSE_FORBIDDEN, 1);
    bed_scope(&b, SLICES, KUBE_CAUSE_FORBIDDEN, 1);
    bed_wait(&b, 1000);
    bed_says(&b, "error degraded: forbidden: services at https://api: "
                 "refused; grant list and watch of it to this user, "
                 "or name another namespace\n"
                 "error degraded: forbidden: endpointslices at https://api: "
                 "refused; grant list and watch of it to this user, "
                 "or name another namespace\n");
    bed_scope(&b, SERVICES, KUBE_CAUSES, 0);
    bed_wait(&b, 2000);
    bed_says(&b, "notice recovered: forbidden: following again after 1 s, 1 "
                 "attempts\n");

    bed_close(&b);
}


static uint64_t
bed_gauge(const bed_t *b, kube_counter_t counter)
{
    return kube_zone_scope_counter(&b->t.zone, SERVICES, counter);
}


/* The zone's words, which the next informer process takes over. */
static void
test_zone_words(void **state)
{
    bed_t     b;
    uint64_t  since_ms;

    (void) state;
    bed_open(&b);

    since_ms = b.now_ms;
    bed_scope(&b, SERVICES, KUBE_CAUSE_TLS, 1);
    kube_trouble_zone(b.trouble, KUBE_CAUSE_ZONE_FULL, "services a/b",
                      since_ms);
    bed_says(&b, "error degraded: zone_full: services a/b; enlarge the zone, "
                 "or watch fewer namespaces\n");
    assert_int_equal(bed_gauge(&b, KUBE_COUNTER_GAUGE_CAUSE),
                     KUBE_CAUSE_TLS + 1);
    assert_int_equal(bed_gauge(&b, KUBE_COUNTER_GAUGE_SINCE_MS), since_ms);

    /* what keeps nobody from following is not tried */

    bed_wait(&b, 60000);
    kube_trouble_zone(b.trouble, KUBE_CAUSE_ZONE_FULL, "services a/b",
                      b.now_ms);
    bed_says(&b, "error degraded: tls: services at https://api: refused; "
                 "compare the CA, the server's name and its port with its "
                 "certificate, and ours with its key\n"
                 "error degraded: zone_full: for 1 m 0 s: services a/b\n");

    bed_wait(&b, 540000);
    kube_trouble_destroy(b.trouble);
    b.trouble = bed_create(&b);
    assert_non_null(b.trouble);

    /* a process that knows nothing yet takes nothing back */

    bed_scope(&b, SERVICES, KUBE_CAUSES, 0);
    assert_int_equal(bed_gauge(&b, KUBE_COUNTER_GAUGE_CAUSE),
                     KUBE_CAUSE_TLS + 1);
    assert_int_equal(bed_gauge(&b, KUBE_COUNTER_GAUGE_SINCE_MS), since_ms);

    bed_scope(&b, SERVICES, KUBE_CAUSE_UNREACHABLE, 1);
    kube_trouble_zone(b.trouble, KUBE_CAUSE_ZONE_FULL, "services a/c",
                      b.now_ms);
    assert_int_equal(bed_gauge(&b, KUBE_COUNTER_GAUGE_SINCE_MS), since_ms);
    assert_int_equal(kube_zone_cause_since(&b.t.zone, KUBE_CAUSE_ZONE_FULL),
                     since_ms);

    /* what lasts since then needs no other 5 s */

    bed_says(&b, "error degraded: unreachable: services at https://api: "
                 "refused; see that the API server runs and can be reached "
                 "from here\n"
                 "error degraded: zone_full: services a/c; enlarge the zone, "
                 "or watch fewer namespaces\n");

    bed_scope(&b, SERVICES, KUBE_CAUSES, 0);
    kube_trouble_zone(b.trouble, KUBE_CAUSE_ZONE_FULL, NULL, b.now_ms);
    assert_int_equal(bed_gauge(&b, KUBE_COUNTER_GAUGE_CAUSE), 0);
    assert_int_equal(bed_gauge(&b, KUBE_COUNTER_GAUGE_SINCE_MS), 0);
    assert_int_equal(kube_zone_cause_since(&b.t.zone, KUBE_CAUSE_ZONE_FULL),
                     0);
    bed_wait(&b, 2000);
    bed_says(&b, "notice recovered: unreachable: following again after "
                 "10 m 0 s, 1 attempts\n"
                 "notice recovered: zone_full: over after 10 m 0 s\n");

    /* a successor's first watch ends it */

    bed_scope(&b, SERVICES, KUBE_CAUSE_TLS, 1);
    kube_trouble_destroy(b.trouble);
    b.trouble = bed_create(&b);
    assert_non_null(b.trouble);
    kube_zone_scope_set(&b.t.zone, SERVICES, KUBE_COUNTER_GAUGE_WATCH_OPEN,
                        b.now_ms);
    bed_scope(&b, SERVICES, KUBE_CAUSES, 0);
    assert_int_equal(bed_gauge(&b, KUBE_COUNTER_GAUGE_CAUSE), 0);
    assert_int_equal(bed_gauge(&b, KUBE_COUNTER_GAUGE_SINCE_MS), 0);

    /* a word that is none of this clock is not believed */

    kube_zone_scope_set(&b.t.zone, SERVICES, KUBE_COUNTER_GAUGE_SINCE_MS,
                        b.now_ms + 1);
    bed_scope(&b, SERVICES, KUBE_CAUSE_TLS, 1);
    assert_int_equal(bed_gauge(&b, KUBE_COUNTER_GAUGE_SINCE_MS), b.now_ms);

    bed_close(&b);
}


static void
test_ready_bits(void **state)
{
    bed_t  b;

    (void) state;
    bed_open(&b);

    assert_int_equal(kube_zone_ready(&b.t.zone), 0);
    kube_zone_ready_add(&b.t.zone, KUBE_READY_STATE);
    kube_zone_ready_add(&b.t.zone, KUBE_READY_SYNCED);
    assert_int_equal(kube_zone_ready(&b.t.zone),
                     KUBE_READY_STATE | KUBE_READY_SYNCED);

    bed_close(&b);
}


static kube_rc_t
trouble_create(kube_alloc_t *alloc, void *ctx)
{
    kube_trouble_t  *trouble;

    trouble = kube_trouble_create(alloc, ctx, (kube_log_sink_t) { NULL, NULL },
                                  KUBE_STR("https://api"));
    kube_trouble_destroy(trouble);

    return (trouble != NULL) ? KUBE_OK : KUBE_NOMEM;
}


static void
test_oom(void **state)
{
    bed_t  b;

    (void) state;
    bed_open(&b);
    ALLOC_TEST_EACH(trouble_create, &b.t.zone);
    bed_close(&b);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_outage),
        cmocka_unit_test(test_remedy),
        cmocka_unit_test(test_short),
        cmocka_unit_test(test_flapping),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_zone_words),
        cmocka_unit_test(test_ready_bits),
        cmocka_unit_test(test_oom)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
