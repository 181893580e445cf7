/*
 * test_clientgo_watch - the scenarios of client-go's retrywatcher_test.go: a
 * watch that goes on where it was, whatever ends it.
 *
 * Where a RetryWatcher gives up, for it has no store to list for, a reflector
 * lists; t/CONFORMANCE.md says so row by row.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "script_bed.h"


#define ADDED(name, rv)  EVENT("ADDED", FULL(name, rv))

#define LINES_MAX  7

typedef struct {
    const char  *title;
    const char  *from;            /* where it starts; "": with a list */
    const char  *deltas;
    unsigned     sleeps;          /* before one of its requests */
    script_t     lines[LINES_MAX];
} retry_t;


static const retry_t  retries[] = {

    { "recovers if watchClient returns error", "1", "U:shop/a@2", 1,
      { { "WATCH rv=1", 0, NULL, false },
        { "WATCH rv=1", 200, ADDED("a", "2"), false } } },

    { "recovers from 410 Gone error on watch establishment", "1",
      "[ R:shop/a@2 ] U:shop/b@4", 0,
      { { "WATCH rv=1", 410, EXPIRED, false },
        { "LIST rv=1 NotOlderThan limit=2", 200,
          LIST("3", "", SERVICE("a", "2")), false },
        { "WATCH rv=3", 200, ADDED("b", "4"), false } } },

    { "works with empty initialRV", "", "[ ] U:shop/a@2", 0,
      { { "LIST rv=0 limit=2", 200, LIST("1", "", ""), false },
        { "WATCH rv=1", 200, ADDED("a", "2"), false } } },

    { "works with initialRV set, skipping the preceding items but reading "
      "those directly following", "10", "U:shop/a@11 U:shop/b@12", 0,
      { { "WATCH rv=10", 200, ADDED("a", "11") ADDED("b", "12"), false } } },

    { "works with initialRV set, skipping the preceding items with none "
      "following", "10", "", 0,
      { { "WATCH rv=10", 200, "", false } } },

    { "fails on Gone (RV too old error)", "5", "[ R:shop/a@2 ]", 0,
      { { "WATCH rv=5", 200, EVENT("ERROR", EXPIRED), false },
        { "LIST rv=5 NotOlderThan limit=2", 200,
          LIST("9", "", SERVICE("a", "2")), false },
        { "WATCH rv=9", 200, "", false } } },

    { "fails on Forbidden", "5", "U:shop/a@6", 2,
      { { "WATCH rv=5", 403, STATUS(403, "Forbidden", ""), false },
        { "WATCH rv=5", 200, EVENT("ERROR", STATUS(403, "Forbidden", "")),
          false },
        { "WATCH rv=5", 200, ADDED("a", "6"), false } } },

    /* the first time credentials are read anew, at once */
    { "fails on Unauthorized", "5", "U:shop/a@6", 1,
      { { "WATCH rv=5", 401, STATUS(401, "Unauthorized", ""), false },
        { "WATCH rv=5", 401, STATUS(401, "Unauthorized", ""), false },
        { "WATCH rv=5", 200, ADDED("a", "6"), false } } },

    { "recovers from timeout error", "5", "U:shop/a@6", 1,
      { { "WATCH rv=5", 200, EVENT("ERROR", STATUS(504, "Timeout", "")),
          false },
        { "WATCH rv=5", 200, ADDED("a", "6"), false } } },

    { "recovers from internal server error", "5", "U:shop/a@6", 1,
      { { "WATCH rv=5", 200, EVENT("ERROR", STATUS(500, "InternalError", "")),
          false },
        { "WATCH rv=5", 200, ADDED("a", "6"), false } } },

    { "recovers from unexpected error code", "5", "U:shop/a@6", 1,
      { { "WATCH rv=5", 200, EVENT("ERROR", STATUS(666, "", "")), false },
        { "WATCH rv=5", 200, ADDED("a", "6"), false } } },

    { "recovers from unexpected error type", "5", "U:shop/a@6", 1,
      { { "WATCH rv=5", 200, EVENT("ERROR", FULL("odd", "7")), false },
        { "WATCH rv=5", 200, ADDED("a", "6"), false } } },

    { "survives 1 closed watch and reads 1 item", "1", "U:shop/a@19", 0,
      { { "WATCH rv=1", 200, ADDED("a", "19"), true },
        { "WATCH rv=19", 200, "", false } } },

    { "survives 2 closed watches and reads 2 items", "1",
      "U:shop/a@2 U:shop/b@3", 0,
      { { "WATCH rv=1", 200, ADDED("a", "2"), true },
        { "WATCH rv=2", 200, ADDED("b", "3"), true },
        { "WATCH rv=3", 200, "", false } } },

    { "survives 2 closed watches and reads 2 items for nonconsecutive RVs",
      "1", "U:shop/a@5 U:shop/b@7", 0,
      { { "WATCH rv=1", 200, ADDED("a", "5"), true },
        { "WATCH rv=5", 200, ADDED("b", "7"), true },
        { "WATCH rv=7", 200, "", false } } },

    { "survives 2 closed watches and reads 2 items for nonconsecutive RVs "
      "starting at much lower RV", "2", "U:shop/a@11 U:shop/b@12", 0,
      { { "WATCH rv=2", 200, ADDED("a", "11"), true },
        { "WATCH rv=11", 200, ADDED("b", "12"), true },
        { "WATCH rv=12", 200, "", false } } },

    { "survives 4 closed watches and reads 4 items for nonconsecutive, spread "
      "RVs", "2", "U:shop/a@5 U:shop/b@6 U:shop/c@7 U:shop/d@11", 0,
      { { "WATCH rv=2", 200, ADDED("a", "5"), true },
        { "WATCH rv=5", 200, ADDED("b", "6"), true },
        { "WATCH rv=6", 200, ADDED("c", "7"), true },
        { "WATCH rv=7", 200, ADDED("d", "11"), true },
        { "WATCH rv=11", 200, "", false } } },

    /* what is older than we are is not taken: a list says how it is */
    { "survives 4 closed watches and reads 4 items for nonconsecutive, spread "
      "RVs and skips those with lower or equal RV", "2",
      "U:shop/a@5 U:shop/b@6 U:shop/c@7 [ ] U:shop/d@11", 1,
      { { "WATCH rv=2", 200, ADDED("a", "5"), true },
        { "WATCH rv=5", 200, ADDED("b", "6"), true },
        { "WATCH rv=6", 200, ADDED("c", "7") ADDED("x", "2"), false },
        { "LIST rv=7 NotOlderThan limit=2", 200, LIST("10", "", ""), false },
        { "WATCH rv=10", 200, ADDED("d", "11"), true },
        { "WATCH rv=11", 200, "", false } } },

    /* the FIFO takes one that is told again: the indexer tells it from a new
       one by its version */
    { "survives 2 closed watches and reads 2+2+1 items skipping those with "
      "equal RV", "1", "U:shop/a@5 U:shop/b@6 U:shop/c@7 U:shop/d@8 "
      "U:shop/e@9", 0,
      { { "WATCH rv=1", 200, ADDED("a", "5") ADDED("b", "6"), true },
        { "WATCH rv=6", 200, ADDED("c", "7") ADDED("d", "8"), true },
        { "WATCH rv=8", 200, ADDED("e", "9"), false } } },
};


static void
test_new_retry_watcher(void **state)
{
    bed_t      b;
    size_t     i;
    kube_rv_t  rv;

    static const char *const  none[] = { "", "0", "00", "01", "x" };

    (void) state;

    /* no version that a watch could start at */
    for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        assert_int_not_equal(kube_rv_parse(kube_str(none[i]), &rv), KUBE_OK);
    }

    bed_init(&b);
    bed_start(&b, "");
    assert_string_equal(script_asked(bed_x(&b)), "LIST rv=0 limit=2");
    bed_done(&b);
}


static void
test_retry_watcher(void **state)
{
    bed_t           b;
    size_t          i, n;
    unsigned        sleeps;
    const retry_t  *r;

    (void) state;

    for (i = 0; i < sizeof(retries) / sizeof(retries[0]); i++) {
        r = &retries[i];
        n = 0;

        while (n < LINES_MAX && r->lines[n].asked != NULL) {
            n++;
        }

        bed_init(&b);
        bed_start(&b, r->from);
        sleeps = script_run(&b, r->lines, n);

        if (strcmp(drained(&b), r->deltas) != 0 || sleeps != r->sleeps) {
            fail_msg("%s: %s, %u sleeps", r->title, b.dump, sleeps);
        }

        bed_done(&b);
    }
}


/* The exchange cannot even be made. */
static void
test_nil_watcher(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    b.io.start_rc = KUBE_NOMEM;
    bed_start(&b, "5");
    assert_int_equal(b.io.started, 0);
    assert_true(bed_sleep(&b) >= 400);
    assert_string_equal(script_asked(bed_x(&b)), "WATCH rv=5");
    bed_done(&b);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_new_retry_watcher),
        cmocka_unit_test(test_retry_watcher),
        cmocka_unit_test(test_nil_watcher),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
