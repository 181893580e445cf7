/*
 * test_log - lines, limits, counts of what was held back.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_log.h"


typedef struct {
    unsigned           lines;
    kube_log_level_t   level;
    kube_event_id_t    id;
    char               line[2 * KUBE_LOG_LINE_MAX];
} log_seen_t;


static void
log_write(void *ctx, kube_log_level_t level, kube_event_id_t id,
    const char *line)
{
    log_seen_t  *seen = ctx;

    seen->lines++;
    seen->level = level;
    seen->id = id;

    assert_true(strlen(line) < KUBE_LOG_LINE_MAX);
    memcpy(seen->line, line, strlen(line) + 1);
}


static void
log_start(kube_log_t *log, log_seen_t *seen)
{
    kube_log_sink_t  sink;

    memset(seen, 0, sizeof(log_seen_t));
    sink.write = log_write;
    sink.ctx = seen;
    kube_log_init(log, sink);
}


static void
log_event_texts(void **state)
{
    unsigned  id;

    (void) state;

    assert_string_equal(kube_event_text(KUBE_EV_STARTED), "started");
    assert_string_equal(kube_event_text(KUBE_EV_IDLE), "idle_watch");
    assert_string_equal(kube_event_text(KUBE_EV_MAX), "unknown");

    for (id = 0; id < KUBE_EV_MAX; id++) {
        assert_string_not_equal(kube_event_text((kube_event_id_t) id),
                                "unknown");
    }
}


static void
log_passes(void **state)
{
    unsigned    i;
    kube_log_t  log;
    log_seen_t  seen;

    (void) state;

    log_start(&log, &seen);

    for (i = 0; i < 5; i++) {
        kube_log_event(&log, 1000, KUBE_LOG_NOTICE, KUBE_EV_SYNCED,
                       "synced %s %u", "services", i);
    }

    assert_int_equal(seen.lines, 5);
    assert_int_equal(seen.level, KUBE_LOG_NOTICE);
    assert_int_equal(seen.id, KUBE_EV_SYNCED);
    assert_string_equal(seen.line, "synced services 4");
}


static void
log_holds_back(void **state)
{
    unsigned    i;
    kube_log_t  log;
    log_seen_t  seen;

    (void) state;

    log_start(&log, &seen);

    for (i = 0; i < 100; i++) {
        kube_log_event(&log, 1000 + i, KUBE_LOG_WARN, KUBE_EV_RELIST, "x");
    }

    assert_int_equal(seen.lines, 1);

    /* another event has a limit of its own */
    kube_log_event(&log, 1100, KUBE_LOG_ERROR, KUBE_EV_CREDENTIALS, "y");
    assert_int_equal(seen.lines, 2);

    kube_log_event(&log, 10999, KUBE_LOG_WARN, KUBE_EV_RELIST, "x");
    assert_int_equal(seen.lines, 2);

    kube_log_event(&log, 11000, KUBE_LOG_WARN, KUBE_EV_RELIST, "again");
    assert_int_equal(seen.lines, 3);
    assert_string_equal(seen.line, "again (100 suppressed)");

    kube_log_event(&log, 21000, KUBE_LOG_WARN, KUBE_EV_RELIST, "again");
    assert_string_equal(seen.line, "again");
}


static void
log_clock_at_zero(void **state)
{
    kube_log_t  log;
    log_seen_t  seen;

    (void) state;

    log_start(&log, &seen);

    kube_log_event(&log, 0, KUBE_LOG_ERROR, KUBE_EV_CONFIG, "a");
    kube_log_event(&log, 0, KUBE_LOG_ERROR, KUBE_EV_CONFIG, "b");
    kube_log_event(&log, 1, KUBE_LOG_ERROR, KUBE_EV_CONFIG, "c");

    assert_int_equal(seen.lines, 1);

    kube_log_event(&log, 20000, KUBE_LOG_ERROR, KUBE_EV_CONFIG, "d");
    assert_string_equal(seen.line, "d (2 suppressed)");
}


static void
log_cuts(void **state)
{
    char        text[4 * KUBE_LOG_LINE_MAX];
    kube_log_t  log;
    log_seen_t  seen;

    (void) state;

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';

    log_start(&log, &seen);

    kube_log_event(&log, 1, KUBE_LOG_WARN, KUBE_EV_LIST, "%s", text);
    assert_int_equal(strlen(seen.line), KUBE_LOG_LINE_MAX - 1);

    kube_log_event(&log, 2, KUBE_LOG_WARN, KUBE_EV_LIST, "%s", text);
    kube_log_event(&log, 20000, KUBE_LOG_WARN, KUBE_EV_LIST, "%s", text);

    assert_int_equal(seen.lines, 2);
    assert_int_equal(strlen(seen.line), KUBE_LOG_LINE_MAX - 1);
    assert_non_null(strstr(seen.line, "xx (1 suppressed)"));
}


static void
log_without_sink(void **state)
{
    kube_log_t       log;
    log_seen_t       seen;
    kube_log_sink_t  sink;

    (void) state;

    sink.write = NULL;
    sink.ctx = NULL;
    kube_log_init(&log, sink);
    kube_log_event(&log, 1, KUBE_LOG_ERROR, KUBE_EV_LIST, "nobody reads");
    assert_true(log.last_ms[KUBE_EV_LIST] == KUBE_NEVER);

    /* an id from nowhere is no index */
    log_start(&log, &seen);
    kube_log_event(&log, 1, KUBE_LOG_ERROR, KUBE_EV_MAX, "foreign");
    assert_int_equal(seen.lines, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(log_event_texts),
        cmocka_unit_test(log_passes),
        cmocka_unit_test(log_holds_back),
        cmocka_unit_test(log_clock_at_zero),
        cmocka_unit_test(log_cuts),
        cmocka_unit_test(log_without_sink)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
