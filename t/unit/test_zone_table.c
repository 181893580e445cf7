/*
 * test_zone_table - kube_zone_table: items, entries, quarantine.  It allocates
 * nothing.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "zone_test.h"


/* What an item says of its key: looked up by record, by name, by entry. */
static void
test_table_items(void **state)
{
    size_t            i;
    uint32_t          entry;
    zone_test_t       t;
    kube_record_t    *record;
    kube_zone_item_t  item;

    static const struct {
        const char  *name;
        const char  *service;
        bool         held;
        bool         relabelled;
    } table[] = {
        { .name = "web-0", .service = "web", .held = true,
          .relabelled = false },
        { .name = "web-0", .service = "api", .held = true,
          .relabelled = true },
        { .name = "web-9", .service = "web", .held = false,
          .relabelled = false },
        { .name = "gone",  .service = "web", .held = true,
          .relabelled = true },
    };

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(zone_test_put(&t, "shop", "web", 7, 1, 1, 3, 1000),
                     KUBE_OK);
    assert_int_equal(zone_test_refuse(&t, KUBE_RESOURCE_ENDPOINTSLICES,
                                      "shop", "gone", "9", "zone_full",
                                      &entry), KUBE_OK);

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        record = zone_test_slice("shop", table[i].name, table[i].service, 8,
                                 1, 3);
        assert_int_equal(kube_zone_item(t.writer, record, &item), KUBE_OK);
        assert_ptr_equal(item.record, record);
        assert_true(kube_str_eq(item.id.service,
                                zone_test_str(table[i].service)));
        assert_int_equal(item.entry != 0, table[i].held);
        assert_int_equal(item.held.meta.name.len != 0, table[i].held);
        assert_int_equal(item.relabelled, table[i].relabelled);
        assert_int_equal(item.hash,
                         kube_key_hash(zone_test_seed,
                                       KUBE_RESOURCE_ENDPOINTSLICES,
                                       KUBE_STR("shop"),
                                       zone_test_str(table[i].name)));
        free(record);
    }

    assert_int_equal(kube_zone_item_entry(t.writer, entry, &item), KUBE_OK);
    assert_true(kube_str_eq(item.id.meta.name, KUBE_STR("gone")));
    assert_true(kube_str_eq(item.id.reason, KUBE_STR("zone_full")));
    assert_null(item.record);
    assert_int_equal(kube_zone_item_entry(t.writer, 0, &item),
                     KUBE_NOT_FOUND);
    assert_int_equal(kube_zone_item_entry(t.writer, entry + 1, &item),
                     KUBE_NOT_FOUND);
    zone_test_close(&t);
}


/* What no request is routed by has no place, under no name. */
static void
test_table_not_routed(void **state)
{
    size_t            size;
    uint32_t          entry;
    zone_test_t       t;
    kube_object_t     pod;
    kube_zone_item_t  item;
    uint64_t          record[64];
    kube_record_id_t  id;

    (void) state;

    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    memset(&pod, 0, sizeof(pod));

    pod.resource = KUBE_RESOURCE_PODS;
    pod.u.meta.ns = KUBE_STR("shop");
    pod.u.meta.name = KUBE_STR("web-0");
    size = kube_record_write(&pod, record, sizeof(record));
    assert_true(size != 0 && size <= sizeof(record));
    assert_int_equal(kube_record_validate(record, size), KUBE_OK);
    assert_int_equal(kube_zone_item(t.writer, (const void *) record, &item),
                     KUBE_INVALID);

    memset(&id, 0, sizeof(id));
    id.resource = KUBE_RESOURCE_PODS;
    id.meta = pod.u.meta;
    assert_true(kube_record_refused_encode(&id, record) != 0);
    assert_int_equal(kube_zone_item(t.writer, (const void *) record, &item),
                     KUBE_INVALID);
    assert_int_equal(kube_zone_find(&t.zone, KUBE_RESOURCE_PODS,
                                    KUBE_STR("shop"), KUBE_STR("web-0"),
                                    &entry), KUBE_NOT_FOUND);
    zone_test_close(&t);
}


/* Names from outside are of any length. */
static void
test_table_item_names(void **state)
{
    size_t            i;
    char              text[300];
    zone_test_t       t;
    kube_zone_item_t  item;

    static const struct {
        size_t     ns;
        size_t     name;
        kube_rc_t  rc;
    } table[] = {
        { .ns = 1,   .name = 1,   .rc = KUBE_OK },
        { .ns = 63,  .name = 253, .rc = KUBE_OK },
        { .ns = 0,   .name = 1,   .rc = KUBE_INVALID },
        { .ns = 1,   .name = 0,   .rc = KUBE_INVALID },
        { .ns = 64,  .name = 1,   .rc = KUBE_INVALID },
        { .ns = 1,   .name = 254, .rc = KUBE_INVALID },
        { .ns = 300, .name = 300, .rc = KUBE_INVALID },
    };

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    memset(text, 'a', sizeof(text));

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        assert_int_equal(kube_zone_item_name(t.writer, KUBE_RESOURCE_SERVICES,
                                             (kube_str_t) { text,
                                                            table[i].ns },
                                             (kube_str_t) { text,
                                                            table[i].name },
                                             &item), table[i].rc);
        assert_int_equal(item.entry, 0);
    }

    zone_test_close(&t);
}


/* What makes room for an object may take the entry that it had. */
static void
test_table_item_outlives_entry(void **state)
{
    uint32_t          entry;
    zone_test_t       t;
    kube_record_t    *record;
    kube_zone_item_t  item;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 0, 0, 1000),
                     KUBE_OK);
    record = zone_test_service("shop", "web", 2, 2);
    assert_int_equal(kube_zone_item(t.writer, record, &item), KUBE_OK);
    entry = item.entry;
    assert_int_not_equal(entry, 0);

    kube_zone_remove(t.writer, entry);
    assert_int_equal(kube_zone_writer_find(t.writer, KUBE_RESOURCE_SERVICES,
                                           KUBE_STR("shop"),
                                           KUBE_STR("web")), 0);
    assert_int_equal(kube_zone_stage_item(t.writer, &item, 0), KUBE_OK);
    assert_int_equal(item.entry, entry);
    assert_int_equal(kube_zone_writer_find(t.writer, KUBE_RESOURCE_SERVICES,
                                           KUBE_STR("shop"),
                                           KUBE_STR("web")), item.entry);

    /* refused by the names that lie in the record it replaces */
    assert_int_equal(kube_zone_item_entry(t.writer, item.entry, &item),
                     KUBE_OK);
    assert_int_equal(kube_zone_refuse(t.writer, &item, KUBE_STR("3"),
                                      KUBE_STR("too_large")), KUBE_OK);
    assert_int_equal(kube_zone_item_entry(t.writer, item.entry, &item),
                     KUBE_OK);
    assert_true(kube_str_eq(item.id.meta.name, KUBE_STR("web")));
    assert_true(kube_str_eq(item.id.meta.rv, KUBE_STR("3")));
    free(record);
    zone_test_close(&t);
}


static void
test_table_quarantine(void **state)
{
    char               name[32];
    uint32_t           e, first;
    unsigned           i, max;
    uint64_t           now, head;
    zone_test_t        t;
    kube_zone_usage_t  u;

    const _Atomic uint64_t  *word;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    kube_zone_usage(&t.zone, &u);
    max = (unsigned) u.entries;
    now = 1000;
    first = 0;
    assert_null(kube_zone_head_word(&t.zone, 0));
    assert_null(kube_zone_head_word(&t.zone, max + 1));
    kube_zone_writer_now(t.writer, now);

    /* every entry once: held and freed; none that was never used is left */
    for (i = 0; i < max; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);
        assert_int_equal(zone_test_refuse(&t, KUBE_RESOURCE_SERVICES, "shop",
                                          name, "1", "x", &e), KUBE_OK);
        head = kube_zone_head(&t.zone, e);
        word = kube_zone_head_word(&t.zone, e);
        assert_true(head != 0 && kube_zone_head_is(word, head));
        kube_zone_remove(t.writer, e);
        first = (i == 0) ? e : first;
        assert_true(kube_zone_head(&t.zone, e) == 0);
        assert_false(kube_zone_head_is(word, head));
    }

    /* it is not waited for then: the first that was freed is the next */
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 0, 0, now),
                     KUBE_OK);
    assert_int_equal(zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop",
                                    "web"), first);
    assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);
    zone_test_close(&t);

    /* else one rests before it is taken, and then goes before a new one */
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    kube_zone_writer_now(t.writer, now);
    assert_int_equal(zone_test_refuse(&t, KUBE_RESOURCE_SERVICES, "shop",
                                      "old", "1", "x", &first), KUBE_OK);
    kube_zone_remove(t.writer, first);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 0, 0,
                                   now + KUBE_ZONE_QUARANTINE_MS - 1),
                     KUBE_OK);
    assert_int_not_equal(zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop",
                                        "web"), first);
    assert_int_equal(zone_test_put(&t, "shop", "api", 1, 1, 0, 0,
                                   now + KUBE_ZONE_QUARANTINE_MS), KUBE_OK);
    assert_int_equal(zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop",
                                    "api"), first);

    /* after a take-over nobody knows for how long: it begins anew */
    kube_zone_remove(t.writer, first);
    kube_zone_writer_release(t.writer);
    zone_test_acquire(&t, 90000, &(kube_takeover_t) { 0 });
    assert_int_equal(zone_test_put(&t, "shop", "abc", 1, 1, 0, 0, 99999),
                     KUBE_OK);
    assert_int_not_equal(zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop",
                                        "abc"), first);
    assert_int_equal(zone_test_put(&t, "shop", "def", 1, 1, 0, 0, 100000),
                     KUBE_OK);
    assert_int_equal(zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop",
                                    "def"), first);
    zone_test_close(&t);
}


/* One name deleted and made again, faster than entries rest. */
static void
test_table_key_comes_back(void **state)
{
    char         name[32];
    uint32_t     e, entry, entries[3];
    unsigned     i, k;
    zone_test_t  t;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    kube_zone_writer_now(t.writer, 1000);
    entry = 0;

    for (i = 0; i < 2 * KUBE_ZONE_CHAIN_MAX; i++) {
        assert_int_equal(zone_test_refuse(&t, KUBE_RESOURCE_SERVICES, "shop",
                                          "web", "1", "x", &e), KUBE_OK);
        assert_int_equal(e, i == 0 ? e : entry);
        entry = e;
        kube_zone_remove(t.writer, e);
    }

    assert_false(kube_zone_writer_is_disturbed(t.writer));
    assert_int_equal(kube_zone_writer_top(t.writer), 1);
    assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);
    zone_test_close(&t);

    /* from the beginning, the middle or the end: the others keep their order */
    for (k = 0; k < 3; k++) {
        zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
        kube_zone_writer_now(t.writer, 1000);

        for (i = 0; i < 3; i++) {
            snprintf(name, sizeof(name), "svc-%u", i);
            assert_int_equal(zone_test_refuse(&t, KUBE_RESOURCE_SERVICES,
                                              "shop", name, "1", "x",
                                              &entries[i]), KUBE_OK);
        }

        for (i = 0; i < 3; i++) {
            kube_zone_remove(t.writer, entries[i]);
        }

        snprintf(name, sizeof(name), "svc-%u", k);
        assert_int_equal(zone_test_refuse(&t, KUBE_RESOURCE_SERVICES, "shop",
                                          name, "1", "x", &e), KUBE_OK);
        assert_int_equal(e, entries[k]);
        kube_zone_writer_now(t.writer, 1000 + KUBE_ZONE_QUARANTINE_MS);

        for (i = 0; i < 3; i++) {

            if (i == k) {
                continue;
            }

            snprintf(name, sizeof(name), "new-%u", i);
            assert_int_equal(zone_test_refuse(&t, KUBE_RESOURCE_SERVICES,
                                              "shop", name, "1", "x", &e),
                             KUBE_OK);
            assert_int_equal(e, entries[i]);
        }

        /* and one that is freed now stands behind nobody */
        kube_zone_remove(t.writer, entries[k]);
        kube_zone_writer_now(t.writer, 1000 + 2 * KUBE_ZONE_QUARANTINE_MS);
        assert_int_equal(zone_test_refuse(&t, KUBE_RESOURCE_SERVICES, "shop",
                                          "last", "1", "x", &e), KUBE_OK);
        assert_int_equal(e, entries[k]);
        assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);
        zone_test_close(&t);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_table_items),
        cmocka_unit_test(test_table_not_routed),
        cmocka_unit_test(test_table_item_names),
        cmocka_unit_test(test_table_item_outlives_entry),
        cmocka_unit_test(test_table_quarantine),
        cmocka_unit_test(test_table_key_comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
