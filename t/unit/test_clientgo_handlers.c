/*
 * test_clientgo_handlers - the scenarios of client-go's
 * shared_informer_test.go, and of its other tests that have handlers: who is
 * told what, and when.
 *
 * Each test bears the name of client-go's.  What runs there in goroutines is
 * done here at each step of a process().
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "handler_bed.h"


#define NO_RESYNC  KUBE_NEVER
#define HOUR       (60 * 60 * 1000)

typedef struct {
    char    names[256];
    size_t  len;
} names_t;


/* "b a": in the order of the visits. */
static bool
names_visit(void *ctx, kube_stored_t *stored)
{
    names_t  *names = ctx;

    names->len += (size_t) snprintf(names->names + names->len,
                                    sizeof(names->names) - names->len,
                                    "%s%.*s", names->len ? " " : "",
                                    (int) stored->id.meta.name.len,
                                    stored->id.meta.name.data);
    return true;
}


/* The index of the first letter of names. */
static kube_rc_t
letter_index(void *ctx, const kube_stored_t *stored,
    kube_index_values_t *values)
{
    (void) ctx;

    kube_index_value(values, (kube_str_t) { stored->id.meta.name.data, 1 });

    return KUBE_OK;
}


static const char *
by_letter(bed_t *b, const char *index, const char *value)
{
    static names_t  names;

    memset(&names, 0, sizeof(names_t));
    assert_int_equal(kube_store_by_index(kube_shared_informer_store(b->inf),
                                         kube_str(index), kube_str(value),
                                         names_visit, &names), KUBE_OK);
    return names.names;
}


static void
test_indexer(void **state)
{
    bed_t    b;
    names_t  names;

    (void) state;

    bed_init(&b, NO_RESYNC);
    assert_int_equal(kube_shared_informer_add_index(b.inf, KUBE_STR("before"),
                                                    letter_index, NULL),
                     KUBE_OK);
    bed_do(&b, "ab cd");
    bed_start(&b);
    assert_string_equal(by_letter(&b, "before", "a"), "ab");

    /* added late it is usable at once */
    assert_int_equal(kube_shared_informer_add_index(b.inf, KUBE_STR("after"),
                                                    letter_index, NULL),
                     KUBE_OK);
    assert_string_equal(by_letter(&b, "after", "c"), "cd");

    bed_do(&b, "-cd ce");
    bed_settle(&b);
    assert_string_equal(by_letter(&b, "before", "c"), "ce");
    assert_string_equal(by_letter(&b, "after", "c"), "ce");

    /* a conflict, an unknown one, a stopped informer */
    assert_int_equal(kube_shared_informer_add_index(b.inf, KUBE_STR("after"),
                                                    letter_index, NULL),
                     KUBE_INVALID);
    memset(&names, 0, sizeof(names));
    assert_int_equal(kube_store_by_index(kube_shared_informer_store(b.inf),
                                         KUBE_STR("none"), KUBE_STR("a"),
                                         names_visit, &names),
                     KUBE_NOT_FOUND);
    kube_shared_informer_stop(b.inf, false, b.now_ms);
    assert_int_equal(kube_shared_informer_add_index(b.inf, KUBE_STR("late"),
                                                    letter_index, NULL),
                     KUBE_INVALID);
    bed_done(&b);
}


static void
test_listener_resync_periods(void **state)
{
    bed_t     b;
    told_t    none, two, three;
    unsigned  delayed;

    (void) state;

    /* delayed: the informer starts long after its handlers were added */

    for (delayed = 0; delayed < 2; delayed++) {
        bed_init(&b, 12 * HOUR);
        told_add(&none, &b, NO_RESYNC);
        told_add(&two, &b, 2000);
        told_add(&three, &b, 3000);

        b.now_ms += delayed * 1500;
        bed_do(&b, "a b");
        bed_start(&b);

        assert_told(&none, "+a@2! +b@3!");
        assert_told(&two, "+a@2! +b@3!");
        assert_told(&three, "+a@2! +b@3!");

        /* the timer is the shortest of them, 2 s, from the first list on */

        bed_sleep(&b, 2000);
        assert_told(&none, "");
        assert_told(&two, "~a@2>2 ~b@3>3");
        assert_told(&three, delayed ? "~a@2>2 ~b@3>3" : "");

        bed_sleep(&b, 2000);
        assert_told(&none, "");
        assert_told(&two, "~a@2>2 ~b@3>3");
        assert_told(&three, delayed ? "" : "~a@2>2 ~b@3>3");

        bed_sleep(&b, 2000);
        assert_told(&none, "");
        assert_told(&two, "~a@2>2 ~b@3>3");
        assert_told(&three, delayed ? "~a@2>2 ~b@3>3" : "");

        bed_done(&b);
    }
}


static uint64_t
period(const told_t *told)
{
    return kube_processor_resync_ms(kube_shared_informer_processor(
                                        told->bed->inf), told->registration);
}


static uint64_t
check_period(const bed_t *b)
{
    return kube_processor_check_ms(kube_shared_informer_processor(b->inf));
}


static void
test_resync_check_period(void **state)
{
    bed_t   b;
    told_t  told[8];

    (void) state;

    bed_init(&b, 12 * HOUR);

    told_add(&told[0], &b, NO_RESYNC);
    assert_int_equal(check_period(&b), 12 * HOUR);
    assert_int_equal(period(&told[0]), KUBE_NEVER);

    told_add(&told[1], &b, 60000);
    assert_int_equal(check_period(&b), 60000);
    told_add(&told[2], &b, 55000);
    assert_int_equal(check_period(&b), 55000);
    told_add(&told[3], &b, 5000);
    assert_int_equal(check_period(&b), 5000);

    /* below a second; the informer's own */
    told_add(&told[4], &b, 1);
    assert_int_equal(check_period(&b), KUBE_RESYNC_MIN_MS);
    told_add(&told[5], &b, 0);

    assert_int_equal(period(&told[0]), KUBE_NEVER);
    assert_int_equal(period(&told[1]), 60000);
    assert_int_equal(period(&told[2]), 55000);
    assert_int_equal(period(&told[3]), 5000);
    assert_int_equal(period(&told[4]), KUBE_RESYNC_MIN_MS);
    assert_int_equal(period(&told[5]), 12 * HOUR);
    bed_done(&b);

    /* after the start it is raised to the informer's */
    bed_init(&b, 30000);
    bed_start(&b);
    told_add(&told[0], &b, 5000);
    told_add(&told[1], &b, 40000);
    assert_int_equal(check_period(&b), 30000);
    assert_int_equal(period(&told[0]), 30000);
    assert_int_equal(period(&told[1]), 40000);
    bed_done(&b);

    /* where there is none, there is none */
    bed_init(&b, NO_RESYNC);
    told_add(&told[0], &b, 5000);
    assert_int_equal(check_period(&b), KUBE_NEVER);
    assert_int_equal(period(&told[0]), KUBE_NEVER);
    bed_done(&b);
}


/* A handler is added at each step of an informer that starts: #59822. */
static void
test_shared_informer_initialization_race(void **state)
{
    bed_t     b;
    told_t    told[12];
    unsigned  i, k;

    (void) state;

    bed_init(&b, 5000);
    bed_do(&b, "a b c d e f g");

    for (i = 0; i < 12; i++) {

        if (i == 1) {
            assert_int_equal(kube_shared_informer_start(b.inf, b.now_ms),
                             KUBE_OK);
            assert_int_equal(kube_shared_informer_start(b.inf, b.now_ms),
                             KUBE_INVALID);
        }

        told_add(&told[i], &b, NO_RESYNC);
        kube_shared_informer_process(b.inf, b.now_ms);
    }

    bed_settle(&b);

    for (k = 0; k < 12; k++) {
        assert_int_equal(told[k].n, 7);
        assert_told(&told[k], "+a@2! +b@3! +c@4! +d@5! +e@6! +f@7! +g@8!");
        assert_true(told_synced(&told[k]));
    }

    bed_done(&b);
}


static void
test_shared_informer_watch_disruption(void **state)
{
    bed_t   b;
    told_t  never, always;

    (void) state;

    bed_init(&b, 1000);
    bed_do(&b, "p1 p2 p4 p5");
    told_add(&never, &b, NO_RESYNC);
    told_add(&always, &b, 1000);
    bed_start(&b);
    assert_told(&never, "+p1@2! +p2@3! +p4@4! +p5@5!");
    assert_told(&always, "+p1@2! +p2@3! +p4@4! +p5@5!");

    /* what no watch tells: a list alone does */

    kube_memory_source_quiet(b.source, true);
    bed_do(&b, "p3 p2 -p4 -p5 p5");
    kube_memory_source_quiet(b.source, false);
    kube_memory_source_compact(b.source);
    kube_memory_source_reset(b.source, KUBE_CLOSED);

    bed_sleep(&b, 900);
    bed_sleep(&b, 60);
    assert_true(never.n >= 4);

    bed_sleep(&b, 30000);
    always.len = 0;
    assert_told(&never, "~p2@3>7 +p3@6 -p5@5? +p5@10 -p4@4?");

    /* all that is held, each second */
    bed_sleep(&b, 1000);
    assert_told(&always, "~p1@2>2 ~p2@7>7 ~p5@10>10 ~p3@6>6");
    assert_told(&never, "");
    bed_done(&b);
}


static void
count_error(void *ctx, kube_str_t reason, kube_str_t message)
{
    bed_t  *b = ctx;

    assert_true(reason.len != 0 && message.len != 0);
    b->errors++;
}


static void
test_shared_informer_error_handling(void **state)
{
    bed_t   b;
    told_t  told;

    (void) state;

    bed_init(&b, NO_RESYNC);
    assert_int_equal(kube_shared_informer_set_watch_error_handler(b.inf,
                         count_error, &b), KUBE_OK);
    told_add(&told, &b, NO_RESYNC);
    bed_do(&b, "a");
    kube_memory_source_refuse(b.source, false, 2, 403, 0);
    bed_start(&b);

    assert_int_equal(b.errors, 1);
    assert_string_not_equal(kube_shared_informer_error(b.inf), "");
    assert_int_equal(kube_shared_informer_set_watch_error_handler(b.inf,
                         NULL, NULL), KUBE_INVALID);

    bed_sleep(&b, 120000);
    assert_int_equal(b.errors, 2);
    assert_string_equal(kube_shared_informer_error(b.inf), "");
    assert_told(&told, "+a@2!");
    bed_done(&b);
}


/* Its port becomes 7; an object "bad" is refused. */
static kube_rc_t
to_seven(void *ctx, kube_object_t *object)
{
    bed_t  *b = ctx;

    static kube_port_t  seven = { .port = 7 };

    b->transforms++;

    if (kube_str_eq(object->u.service.meta.name, KUBE_STR("bad"))) {
        return KUBE_INVALID;
    }

    /* a key and a version are not its own to change */
    object->u.service.meta.name = KUBE_STR("mine");
    object->u.service.meta.rv = KUBE_STR_NULL;
    object->u.service.ports = &seven;
    object->u.service.ports_n = 1;

    return KUBE_OK;
}


static void
assert_seven(const kube_stored_t *stored)
{
    kube_arena_t   arena;
    alloc_test_t   at;
    kube_object_t  object;

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1u << 20);
    assert_int_equal(kube_record_decode(&arena, stored->record,
                                        stored->record->size, &object),
                     KUBE_OK);
    assert_int_equal(object.u.service.ports_n, 1);
    assert_int_equal(object.u.service.ports[0].port, 7);
    kube_arena_done(&arena);
}


static void
see_seven(told_t *told, const kube_notification_t *n)
{
    (void) told;

    if (n->old != NULL) {
        assert_seven(n->old);
    }

    if (n->new != NULL) {
        assert_seven(n->new);
    }
}


/* client-go transforms what a WatchList brings twice; here once. */
static void
test_shared_informer_transformer(void **state)
{
    bed_t                        b;
    told_t                       told;
    unsigned                     stream;
    kube_shared_informer_conf_t  conf;

    (void) state;

    for (stream = 0; stream < 2; stream++) {
        conf = bed_conf(NO_RESYNC);
        conf.reflector.watch_list = stream ? KUBE_WATCH_LIST_ON
                                           : KUBE_WATCH_LIST_OFF;
        assert_int_equal(bed_make(&b, NULL, &conf), KUBE_OK);
        assert_int_equal(kube_shared_informer_set_transform(b.inf, to_seven,
                                                            &b), KUBE_OK);
        told_add(&told, &b, NO_RESYNC);
        told.hook = see_seven;
        bed_do(&b, "a b bad");
        bed_start(&b);
        assert_int_equal(b.transforms, 3);
        assert_int_equal(kube_shared_informer_set_transform(b.inf, NULL,
                                                            NULL),
                         KUBE_INVALID);

        bed_do(&b, "c a -b");
        bed_settle(&b);
        assert_told(&told, "+a@2! +b@3! +c@5 ~a@2>6 -b@3");
        assert_seven(kube_store_get(kube_shared_informer_store(b.inf),
                                    KUBE_STR("shop"), KUBE_STR("a")));
        assert_int_equal(b.transforms, 5);

        /* what was refused is counted, and holds up nothing */
        assert_int_equal(kube_shared_informer_refused(b.inf), 1);
        assert_true(kube_shared_informer_has_synced(b.inf));
        assert_true(kube_str_eq(kube_shared_informer_rv(b.inf),
                                KUBE_STR("7")));
        bed_done(&b);
    }
}


static void
test_shared_informer_remove_handler(void **state)
{
    bed_t   b;
    told_t  a, c;

    (void) state;

    bed_init(&b, NO_RESYNC);
    told_add(&a, &b, NO_RESYNC);
    told_add(&c, &b, NO_RESYNC);
    bed_start(&b);
    bed_do(&b, "x");
    bed_settle(&b);

    told_remove(&a);
    bed_do(&b, "y");
    bed_settle(&b);
    assert_told(&a, "+x@2");
    assert_told(&c, "+x@2 +y@3");
    told_remove(&c);
    bed_do(&b, "z");
    bed_settle(&b);
    assert_told(&c, "");
    bed_done(&b);
}


static void
test_shared_informer_remove_foreign_handler(void **state)
{
    bed_t                b1, b2;
    told_t               one, two;
    kube_registration_t  none;

    (void) state;

    bed_init(&b1, NO_RESYNC);
    bed_init(&b2, NO_RESYNC);
    told_add(&one, &b1, NO_RESYNC);
    told_add(&two, &b2, NO_RESYNC);
    assert_int_equal(one.registration.id, two.registration.id);

    kube_shared_informer_remove_handler(b1.inf, two.registration);
    memset(&none, 0, sizeof(none));
    kube_shared_informer_remove_handler(b1.inf, none);
    assert_false(kube_shared_informer_handler_has_synced(b1.inf,
                                                         two.registration));

    bed_do(&b1, "a");
    bed_do(&b2, "b");
    bed_start(&b1);
    bed_start(&b2);
    assert_told(&one, "+a@2!");
    assert_told(&two, "+b@2!");
    bed_done(&b1);
    bed_done(&b2);
}


/* The same handler twice is two registrations. */
static void
test_shared_informer_multiple_registration(void **state)
{
    bed_t                b;
    told_t               told;
    kube_registration_t  first;

    (void) state;

    bed_init(&b, NO_RESYNC);
    told_add(&told, &b, NO_RESYNC);
    first = told.registration;
    assert_int_equal(told_try(&told, &b, NO_RESYNC, NULL), KUBE_OK);
    assert_true(first.id != told.registration.id);

    bed_start(&b);
    bed_do(&b, "a");
    bed_settle(&b);
    assert_told(&told, "+a@2 +a@2");

    kube_shared_informer_remove_handler(b.inf, first);
    bed_do(&b, "b");
    bed_settle(&b);
    assert_told(&told, "+b@3");

    /* removed again it removes nobody else: TestRemovingRemoved... */
    kube_shared_informer_remove_handler(b.inf, first);
    bed_do(&b, "c");
    bed_settle(&b);
    assert_told(&told, "+c@4");
    bed_done(&b);
}


/* Handlers come and go at random, from within callbacks too. */
static void
abuse(told_t *told, const kube_notification_t *n)
{
    (void) n;

    if (told->n % 7 == 0 && told->other != NULL) {
        told_remove(told->other);
        told_add(told->other, told->bed, NO_RESYNC);
    }

    if (told->n % 31 == 0) {
        told_remove(told);
    }
}


/* A handler that stays is told each key without a gap. */
typedef struct {
    char  rv[26][16];       /* "": not there */
} model_t;


static kube_rc_t
model_notify(void *ctx, const kube_notification_t *n)
{
    char                *rv;
    model_t             *model = ctx;
    const kube_meta_t   *meta;

    if (n->kind == KUBE_NOTIFY_RESYNC) {
        return KUBE_OK;
    }

    meta = (n->new != NULL) ? &n->new->id.meta : &n->old->id.meta;
    rv = model->rv[meta->name.data[0] - 'a'];

    if (n->old == NULL) {
        assert_string_equal(rv, "");

    } else {
        assert_true(kube_str_eq(kube_str(rv), n->old->id.meta.rv));
    }

    snprintf(rv, 16, "%.*s", (n->new != NULL) ? (int) meta->rv.len : 0,
             meta->rv.data);

    return KUBE_OK;
}


static bool
model_has(void *ctx, kube_stored_t *stored)
{
    model_t  *model = ctx;

    assert_true(kube_str_eq(kube_str(model->rv[stored->id.meta.name.data[0]
                                               - 'a']), stored->id.meta.rv));
    return true;
}


static unsigned
model_count(const model_t *model)
{
    unsigned  i, n;

    for (i = 0, n = 0; i < 26; i++) {
        n += (model->rv[i][0] != '\0');
    }

    return n;
}


static void
test_shared_informer_handler_abuse(void **state)
{
    bed_t                b;
    char                 name[2];
    told_t               told[10];
    model_t              model;
    unsigned             i, k;
    kube_random_t        random;
    kube_handler_t       handler;
    kube_registration_t  registration;

    (void) state;

    bed_init(&b, NO_RESYNC);
    kube_random_init(&random, 8);
    memset(&model, 0, sizeof(model));

    for (k = 0; k < 10; k++) {
        told_add(&told[k], &b, NO_RESYNC);
    }

    handler = (kube_handler_t) { .notify = model_notify, .ctx = &model,
                                 .resync_ms = NO_RESYNC };
    assert_int_equal(kube_shared_informer_add_handler(b.inf, &handler,
                         &registration, b.now_ms), KUBE_OK);
    bed_start(&b);

    for (i = 0; i < 10000; i++) {
        name[0] = (char) ('a' + kube_random_range(&random, 0, 25));
        name[1] = '\0';

        if (kube_random_range(&random, 0, 3) != 0) {
            bed_put(&b, name);

        } else {
            (void) kube_memory_source_remove(b.source, KUBE_STR("shop"),
                                             kube_str(name));
        }

        k = (unsigned) kube_random_range(&random, 0, 9);

        if (kube_random_range(&random, 0, 1)) {
            told_remove(&told[k]);
            told_add(&told[k], &b, NO_RESYNC);
            told[k].hook = abuse;
            told[k].other = (k != 9) ? &told[9] : NULL;
        }

        if (kube_random_range(&random, 0, 4) == 0) {
            kube_shared_informer_process(b.inf, b.now_ms);
        }

        if (kube_random_range(&random, 0, 99) == 0) {
            bed_settle(&b);
            kube_store_each(kube_shared_informer_store(b.inf), model_has,
                            &model);
            assert_int_equal(model_count(&model),
                             kube_store_count(
                                 kube_shared_informer_store(b.inf)));
        }
    }

    bed_settle(&b);
    assert_int_equal(model_count(&model), kube_memory_source_count(b.source));
    bed_done(&b);
}


static void
test_add_on_stopped_shared_informer(void **state)
{
    bed_t     b;
    told_t    told;
    unsigned  started;

    (void) state;

    for (started = 0; started < 2; started++) {
        bed_init(&b, NO_RESYNC);

        if (started) {
            bed_start(&b);
        }

        kube_shared_informer_stop(b.inf, false, b.now_ms);
        assert_true(kube_shared_informer_is_stopped(b.inf));

        memset(&told, 0, sizeof(told));
        assert_int_equal(told_try(&told, &b, NO_RESYNC, NULL), KUBE_INVALID);
        assert_int_equal(kube_shared_informer_start(b.inf, b.now_ms),
                         KUBE_INVALID);
        bed_done(&b);
    }
}


static void
test_remove_on_stopped_shared_informer(void **state)
{
    bed_t   b;
    told_t  told;

    (void) state;

    bed_init(&b, NO_RESYNC);
    told_add(&told, &b, NO_RESYNC);
    bed_start(&b);
    kube_shared_informer_stop(b.inf, false, b.now_ms);
    told_remove(&told);
    told_remove(&told);
    bed_done(&b);
}


static void
test_remove_while_active(void **state)
{
    bed_t   b;
    told_t  told;

    (void) state;

    bed_init(&b, NO_RESYNC);
    bed_start(&b);
    told_add(&told, &b, NO_RESYNC);
    assert_true(kube_shared_informer_has_synced(b.inf));
    assert_true(told_synced(&told));

    bed_do(&b, "a");
    bed_settle(&b);
    told_remove(&told);
    bed_do(&b, "b");
    bed_settle(&b);
    assert_told(&told, "+a@2");
    assert_false(told_synced(&told));
    bed_done(&b);
}


static void
test_add_while_active(void **state)
{
    bed_t   b;
    told_t  early, late;

    (void) state;

    bed_init(&b, NO_RESYNC);
    told_add(&early, &b, NO_RESYNC);
    bed_do(&b, "a");
    bed_start(&b);
    assert_true(told_synced(&early));

    bed_do(&b, "b");
    bed_settle(&b);
    told_add(&late, &b, NO_RESYNC);
    assert_false(told_synced(&late));
    bed_settle(&b);
    assert_true(told_synced(&late));

    bed_do(&b, "c a");
    bed_settle(&b);
    assert_told(&early, "+a@2! +b@3 +c@4 ~a@2>5");
    assert_told(&late, "+a@2! +b@3! +c@4 ~a@2>5");
    bed_done(&b);
}


/* A handler that fails harms no other, nor its own next one. */
static void
test_event_panics(void **state)
{
    bed_t                    b;
    told_t                   bad, good;
    kube_processor_stats_t   stats;

    (void) state;

    bed_init(&b, NO_RESYNC);
    told_add(&bad, &b, NO_RESYNC);
    told_add(&good, &b, NO_RESYNC);
    bad.rc = KUBE_INVALID;
    bed_do(&b, "a b");
    bed_start(&b);

    assert_told(&bad, "+a@2! +b@3!");
    assert_told(&good, "+a@2! +b@3!");

    /* client-go's is never synced then: k/k#129024 */
    assert_true(told_synced(&bad));

    kube_processor_stats(kube_shared_informer_processor(b.inf), &stats);
    assert_int_equal(stats.errors, 2);
    assert_int_equal(stats.notifications, 4);
    bed_done(&b);
}


static void
remove_self(told_t *told, const kube_notification_t *n)
{
    (void) n;

    /* the form that waits would wait for ever */
    assert_int_equal(kube_shared_informer_shut_down_handler(
                         told->bed->inf, told->registration), KUBE_BUSY);
    told_remove(told);
}


static void
remove_other(told_t *told, const kube_notification_t *n)
{
    (void) n;

    assert_int_equal(kube_shared_informer_shut_down_handler(
                         told->bed->inf, told->other->registration), KUBE_OK);
}


/* Nothing comes behind a removal, whoever makes it. */
static void
test_remove_event_handler_asynchronous(void **state)
{
    bed_t     b;
    told_t    self, first, second;
    unsigned  i;

    (void) state;

    bed_init(&b, NO_RESYNC);
    told_add(&first, &b, NO_RESYNC);
    told_add(&self, &b, NO_RESYNC);
    told_add(&second, &b, NO_RESYNC);
    self.hook = remove_self;
    bed_do(&b, "a b c");
    bed_start(&b);
    assert_told(&self, "+a@2!");
    assert_told(&first, "+a@2! +b@3! +c@4!");
    assert_told(&second, "+a@2! +b@3! +c@4!");

    /* at its first notification one removes the other: in front, behind */

    for (i = 0; i < 2; i++) {
        first.hook = remove_other;
        first.other = &second;
        bed_put(&b, "d");
        bed_settle(&b);
        (void) told_take(&first);
        assert_told(&second, (i == 0) ? "" : "~d@5>6");
        told_remove(&first);
        told_add(&second, &b, NO_RESYNC);
        bed_settle(&b);
        told_add(&first, &b, NO_RESYNC);
        bed_settle(&b);
        (void) told_take(&first);
        (void) told_take(&second);
    }

    bed_done(&b);
}


static void
test_remove_event_handler_synchronous(void **state)
{
    bed_t   b;
    told_t  told;

    (void) state;

    bed_init(&b, NO_RESYNC);
    told_add(&told, &b, NO_RESYNC);
    bed_do(&b, "a");
    bed_start(&b);
    bed_do(&b, "b");
    assert_int_equal(kube_shared_informer_shut_down_handler(b.inf,
                         told.registration), KUBE_OK);
    bed_settle(&b);
    assert_told(&told, "+a@2!");
    assert_int_equal(kube_shared_informer_shut_down_handler(b.inf,
                         told.registration), KUBE_OK);
    bed_done(&b);
}


static void
test_shut_down_event_handler_lifecycles(void **state)
{
    bed_t   b;
    told_t  told;

    (void) state;

    bed_init(&b, NO_RESYNC);
    told_add(&told, &b, NO_RESYNC);
    assert_int_equal(kube_shared_informer_shut_down_handler(b.inf,
                         told.registration), KUBE_OK);
    bed_do(&b, "a");
    bed_start(&b);
    assert_told(&told, "");

    told_add(&told, &b, NO_RESYNC);
    assert_int_equal(kube_shared_informer_shut_down_handler(b.inf,
                         told.registration), KUBE_OK);
    bed_settle(&b);
    assert_told(&told, "");

    told_add(&told, &b, NO_RESYNC);
    bed_settle(&b);
    kube_shared_informer_stop(b.inf, false, b.now_ms);
    assert_int_equal(kube_shared_informer_shut_down_handler(b.inf,
                         told.registration), KUBE_OK);
    bed_done(&b);
}


/* synctrack: synced is who has taken all that was initial, each by itself. */
static void
test_single_file_tracker(void **state)
{
    bed_t     b;
    told_t    slow, quick;
    unsigned  i;

    (void) state;

    bed_init(&b, NO_RESYNC);
    told_add(&slow, &b, NO_RESYNC);
    told_add(&quick, &b, NO_RESYNC);
    slow.rc = KUBE_AGAIN;
    assert_false(told_synced(&quick));

    bed_do(&b, "a b c");
    bed_start(&b);
    assert_true(kube_shared_informer_has_synced(b.inf));
    assert_true(told_synced(&quick));
    assert_false(told_synced(&slow));

    /* it says the same again, until it is taken */
    for (i = 0; i < 3; i++) {
        bed_settle(&b);
        assert_false(told_synced(&slow));
    }

    slow.rc = KUBE_OK;
    bed_settle(&b);
    assert_true(told_synced(&slow));
    assert_told(&slow, "+a@2! +b@3! +c@4!");
    bed_done(&b);

    /* a list of nothing */
    bed_init(&b, NO_RESYNC);
    told_add(&quick, &b, NO_RESYNC);
    bed_start(&b);
    assert_true(told_synced(&quick));
    bed_done(&b);
}


/* DeltaFIFO: a resync tells what is held, and nothing of what is going. */
static void
test_delta_fifo_resync(void **state)
{
    bed_t   b;
    told_t  told;

    (void) state;

    bed_init(&b, 1000);
    told_add(&told, &b, 1000);
    bed_do(&b, "a b c");
    bed_start(&b);
    assert_told(&told, "+a@2! +b@3! +c@4!");

    /* UpdateResyncRace, ResyncNonExisting: they wait, and the time comes */

    told.rc = KUBE_AGAIN;
    bed_do(&b, "-a b");
    bed_settle(&b);
    bed_sleep(&b, 1000);
    told.rc = KUBE_OK;
    bed_settle(&b);
    assert_told(&told, "-a@2 ~b@3>6 ~c@4>4");

    bed_sleep(&b, 1000);
    assert_told(&told, "~b@6>6 ~c@4>4");
    bed_done(&b);
}


static bool
is_even(void *ctx, const kube_stored_t *stored)
{
    kube_str_t  rv;

    (void) ctx;

    rv = stored->id.meta.rv;

    return (rv.data[rv.len - 1] - '0') % 2 == 0;
}


/* An update that crosses the filter is an add or a deletion. */
static void
test_filtering_resource_event_handler(void **state)
{
    bed_t   b;
    told_t  told;

    (void) state;

    bed_init(&b, 1000);
    memset(&told, 0, sizeof(told));
    assert_int_equal(told_try(&told, &b, 1000, is_even), KUBE_OK);
    bed_do(&b, "a b");
    bed_start(&b);
    assert_told(&told, "+a@2!");
    assert_true(told_synced(&told));

    bed_do(&b, "b");
    bed_settle(&b);
    assert_told(&told, "+b@4");

    bed_do(&b, "a");
    bed_settle(&b);
    assert_told(&told, "-a@2");

    bed_do(&b, "c b -a");
    bed_settle(&b);
    assert_told(&told, "+c@6 -b@4");

    /* one state of a key waits: the odd one between was never there */

    bed_do(&b, "d c c c");
    bed_settle(&b);
    bed_sleep(&b, 1000);
    bed_do(&b, "-c");
    bed_settle(&b);
    assert_told(&told, "~c@6>12 ~c@12>12 -c@12");
    bed_done(&b);
}


/* What a list alone tells has ended has its last known state. */
static void
test_deleted_final_state_unknown(void **state)
{
    bed_t   b;
    told_t  told;

    (void) state;

    bed_init(&b, NO_RESYNC);
    told_add(&told, &b, NO_RESYNC);
    bed_do(&b, "a b c");
    bed_start(&b);
    (void) told_take(&told);

    kube_memory_source_quiet(b.source, true);
    bed_do(&b, "b -b -a a");
    kube_memory_source_quiet(b.source, false);
    kube_memory_source_compact(b.source);
    kube_memory_source_reset(b.source, KUBE_CLOSED);
    bed_sleep(&b, 60000);
    assert_told(&told, "-a@2? +a@8 -b@3?");

    bed_do(&b, "-c");
    bed_settle(&b);
    assert_told(&told, "-c@4");
    bed_done(&b);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_indexer),
        cmocka_unit_test(test_listener_resync_periods),
        cmocka_unit_test(test_resync_check_period),
        cmocka_unit_test(test_shared_informer_initialization_race),
        cmocka_unit_test(test_shared_informer_watch_disruption),
        cmocka_unit_test(test_shared_informer_error_handling),
        cmocka_unit_test(test_shared_informer_transformer),
        cmocka_unit_test(test_shared_informer_remove_handler),
        cmocka_unit_test(test_shared_informer_remove_foreign_handler),
        cmocka_unit_test(test_shared_informer_multiple_registration),
        cmocka_unit_test(test_shared_informer_handler_abuse),
        cmocka_unit_test(test_add_on_stopped_shared_informer),
        cmocka_unit_test(test_remove_on_stopped_shared_informer),
        cmocka_unit_test(test_remove_while_active),
        cmocka_unit_test(test_add_while_active),
        cmocka_unit_test(test_event_panics),
        cmocka_unit_test(test_remove_event_handler_asynchronous),
        cmocka_unit_test(test_remove_event_handler_synchronous),
        cmocka_unit_test(test_shut_down_event_handler_lifecycles),
        cmocka_unit_test(test_single_file_tracker),
        cmocka_unit_test(test_delta_fifo_resync),
        cmocka_unit_test(test_filtering_resource_event_handler),
        cmocka_unit_test(test_deleted_final_state_unknown)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
