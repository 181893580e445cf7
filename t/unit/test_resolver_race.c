/*
 * test_resolver_race - a Service that is refused, held or let go between any
 * two loads of one look-up.
 *
 * The reader's sources are built into this program with a pause at each load.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define KUBE_ZONE_PAUSES  1

#include "kube_zone_reader.c"
#include "kube_resolver.h"
#include "route_test.h"


static struct {
    zone_test_t  *t;
    unsigned      at;          /* 0: nothing is done */
    unsigned      loads;
    bool          held;        /* it is put; else it is refused */
    bool          done;
} race;

/* Weak where it is used, so that others may do without. */
void kube_zone_pause_hit(const void *address);


static void
race_refuse(zone_test_t *t)
{
    kube_zone_item_t  item;

    assert_int_equal(kube_zone_item_name(t->writer, KUBE_RESOURCE_SERVICES,
                                         KUBE_STR("shop"), KUBE_STR("web"),
                                         &item), KUBE_OK);
    assert_int_equal(kube_zone_refuse(t->writer, &item, KUBE_STR("1"),
                                      KUBE_STR("malformed")), KUBE_OK);
}


void
kube_zone_pause_hit(const void *address)
{
    (void) address;

    if (race.done || ++race.loads != race.at) {
        return;
    }

    race.done = true;

    if (race.held) {
        route_test_service(race.t, "shop", "web", "http:80");

    } else {
        race_refuse(race.t);
    }
}


/* One look-up, with the change at its load number at.  False: it had fewer. */
static bool
race_run(unsigned at, bool held, kube_resolve_error_t *error)
{
    kube_rc_t          rc;
    kube_key_t         key;
    zone_test_t        t;
    kube_resolver_t    resolver;
    kube_resolution_t  made;

    zone_test_open(&t, 1u << 20);
    route_test_namespace(&t, 0, "", "synced", "synced");

    if (held) {
        race_refuse(&t);

    } else {
        route_test_service(&t, "shop", "web", "http:80");
    }

    memset(&resolver, 0, sizeof(kube_resolver_t));
    resolver.zone = &t.zone;
    resolver.namespaces.all = true;
    assert_int_equal(kube_key_parse(KUBE_STR("shop/web"), false, &key, NULL),
                     KUBE_OK);

    race.t = &t;
    race.loads = 0;
    race.at = at;
    race.held = held;
    race.done = false;

    rc = kube_resolve(&resolver, &key, 0, &t.arena, &made);
    race.at = 0;
    assert_true(rc == KUBE_OK || rc == KUBE_CHANGED);
    *error = (rc == KUBE_OK) ? made.error : KUBE_RESOLVE_NOT_SYNCED;
    zone_test_close(&t);

    return race.done;
}


/* It is there all the time, held or refused: nobody reads that it is not. */
static void
test_resolver_race(void **state)
{
    bool                  held;
    unsigned              at, direction;
    kube_resolve_error_t  error;

    (void) state;

    for (direction = 0; direction < 2; direction++) {
        held = (direction == 0);

        for (at = 1; race_run(at, held, &error); at++) {
            if (error != KUBE_RESOLVE_NOT_SYNCED
                && error != KUBE_RESOLVE_NO_ENDPOINTS)
            {
                print_error("load %u, %s: %s\n", at,
                            held ? "held by then" : "refused by then",
                            kube_resolve_error_text(error).data);
                fail();
            }
        }

        assert_true(at > 5);
    }
}


/* While chains are rebuilt what is not in one by now is no missing Service. */
static void
test_resolver_rebuild(void **state)
{
    uint32_t           i;
    kube_key_t         key;
    kube_word_t       *reuse;
    zone_test_t        t;
    kube_resolver_t    resolver;
    kube_resolution_t  made;

    (void) state;
    zone_test_open(&t, 1u << 20);
    route_test_namespace(&t, 0, "", "synced", "synced");
    route_test_service(&t, "shop", "web", "http:80");

    memset(&resolver, 0, sizeof(kube_resolver_t));
    resolver.zone = &t.zone;
    resolver.namespaces.all = true;
    assert_int_equal(kube_key_parse(KUBE_STR("shop/web"), false, &key, NULL),
                     KUBE_OK);

    reuse = &t.zone.image->reuse;
    kube_word_set(reuse, kube_word_get(reuse) | 1);

    for (i = 0; i < t.zone.geometry.buckets_n; i++) {
        kube_half_set(kube_zone_bucket(&t.zone, i), 0);
    }

    assert_int_equal(kube_resolve(&resolver, &key, 0, &t.arena, &made),
                     KUBE_CHANGED);

    kube_word_set(reuse, kube_word_get(reuse) + 1);
    assert_int_equal(kube_resolve(&resolver, &key, 0, &t.arena, &made),
                     KUBE_OK);
    assert_int_equal(made.error, KUBE_RESOLVE_NO_SERVICE);
    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_resolver_race),
        cmocka_unit_test(test_resolver_rebuild),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
