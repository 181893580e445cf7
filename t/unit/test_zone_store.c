/*
 * test_zone_store - kube_zone_store: the order of stores as a reader sees
 * it, raw records, and what an event costs the writer.  It allocates nothing.
 *
 * The writer's sources are built into this program, so that it can look at
 * the zone after each store, and count how often an identity is read and a
 * key is hashed.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define KUBE_FAILPOINTS  1

#include "kube_record.h"
#include "kube_zone.h"


static unsigned  store_ids;
static unsigned  store_hashes;


static inline kube_rc_t
store_record_id(const void *bytes, size_t len, kube_record_id_t *id)
{
    store_ids++;

    return kube_record_id(bytes, len, id);
}


static inline uint32_t
store_key_hash(kube_seed_t seed, kube_resource_t resource, kube_str_t ns,
    kube_str_t name)
{
    store_hashes++;

    return kube_key_hash(seed, resource, ns, name);
}


#define kube_record_id  store_record_id
#define kube_key_hash   store_key_hash

#include "kube_zone_log.c"
#include "kube_zone_store.c"
#include "kube_zone_table.c"
#include "kube_zone_writer.c"
#include "zone_test.h"


/* Stages a slice of the Service and publishes; what that cost is counted. */
static uint32_t
store_event(zone_test_t *t, uint32_t service, const char *label, unsigned rv)
{
    bool            changed;
    uint32_t        slices[2];
    kube_record_t  *record;

    record = zone_test_slice("shop", "web-0", label, rv, rv, 3);
    slices[1] = zone_test_find(t, KUBE_RESOURCE_ENDPOINTSLICES, "shop",
                               "web-1");
    store_ids = 0;
    store_hashes = 0;

    assert_int_equal(kube_zone_stage(t->writer, record, 0, &slices[0]),
                     KUBE_OK);
    assert_int_equal(kube_zone_publish(t->writer, service, slices, 2,
                                       &changed), KUBE_OK);
    assert_true(changed);
    free(record);

    return slices[0];
}


/* A changed slice: its new and its held identity, one look-up. */
static void
test_store_cost(void **state)
{
    uint32_t         service;
    zone_test_t      t;
    kube_takeover_t  takeover;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 2, 3, 1000),
                     KUBE_OK);
    service = zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop", "web");

    (void) store_event(&t, service, "web", 2);
    assert_int_equal(store_ids, 2);
    assert_int_equal(store_hashes, 1);

    /* a take-over leaves the writer no less wise */
    kube_zone_writer_release(t.writer);
    zone_test_acquire(&t, 2000, &takeover);
    (void) store_event(&t, service, "web", 3);
    assert_int_equal(store_ids, 2);
    assert_int_equal(store_hashes, 1);
    zone_test_close(&t);
}


/* A slice that changes Services is named by both, then by the new one. */
static void
test_store_relabelled(void **state)
{
    bool              changed;
    char              name[16];
    uint32_t          a, b, slice, other;
    unsigned          i;
    zone_test_t       t;
    kube_snapshot_t   s;
    kube_record_t    *record;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(zone_test_put(&t, "shop", "a", 1, 1, 2, 3, 1000),
                     KUBE_OK);
    assert_int_equal(zone_test_put(&t, "shop", "b", 1, 2, 0, 3, 1000),
                     KUBE_OK);
    a = zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop", "a");
    b = zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop", "b");
    other = zone_test_find(&t, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "a-1");

    for (i = 0; i < 6; i++) {
        record = zone_test_slice("shop", "a-0", (i % 2) ? "a" : "b", 2 + i,
                                 (i % 2) ? 1 : 2, 3);
        assert_int_equal(kube_zone_stage(t.writer, record, 0, &slice),
                         KUBE_OK);
        free(record);

        /* it is staged as one of the other Service */
        assert_int_equal(kube_zone_publish(t.writer, (i % 2) ? b : a, &slice,
                                           1, &changed), KUBE_INVALID);
        assert_int_equal(kube_zone_publish(t.writer, (i % 2) ? a : b, &slice,
                                           1, &changed), KUBE_OK);

        /* records move under both */
        snprintf(name, sizeof(name), "c-%u", i % 3);
        assert_int_equal(zone_test_put(&t, "shop", name, i, i, 3, 40, 1000),
                         KUBE_OK);
        assert_int_equal(zone_test_read(&t, "shop", "a", &s), KUBE_OK);
        assert_int_equal(zone_test_variant(&s), 1);
        assert_int_equal(zone_test_read(&t, "shop", "b", &s), KUBE_OK);
        assert_int_equal(zone_test_variant(&s), 2);
        assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);

        assert_int_equal(kube_zone_publish(t.writer, (i % 2) ? b : a, &other,
                                           (i % 2) ? 0 : 1, &changed),
                         KUBE_OK);
        assert_int_equal(zone_test_read(&t, "shop", (i % 2) ? "b" : "a", &s),
                         KUBE_OK);
        assert_int_equal(s.slices_n, (i % 2) ? 0 : 1);
    }

    zone_test_close(&t);
}


/* What a successor finds after each store; NULL: nobody looks. */
static zone_test_t  *store_zone;
static uint64_t      store_shown;
static uint64_t      store_counted;
static unsigned      store_hits;


/*
 * Of all that a scope's count and digest are made of: which records there
 * are, and which of them are outdated.
 */
static uint64_t
store_signature(const zone_test_t *t)
{
    uint32_t        e, offset;
    uint64_t        sum;
    kube_record_t   header;

    sum = 0;

    for (e = 1; e <= t->writer->entries_top; e++) {
        offset = kube_head_get(&kube_zone_entry(&t->zone, e)->head);

        if (offset != 0) {
            header = *kube_zone_record_at(&t->zone, offset);

            /* the flag is the last to be seen */
            if (header.flags & KUBE_RECORD_F_OUTDATED) {
                assert_true(header.outdated != 0);
            }

            header.refs_n = 0;
            header.size = 0;
            header.outdated = 0;
            sum += kube_hash64(zone_test_seed, &header, sizeof(header));
        }
    }

    return sum;
}


void
kube_failpoint_hit(const char *name)
{
    if (store_zone == NULL || strcmp(name, "store") != 0) {
        return;
    }

    store_hits++;

    /* a scope's record that has the count has the store */
    if (store_signature(store_zone) != store_shown) {
        assert_true(kube_word_get(&store_zone->zone.image->stores)
                    != store_counted);
    }
}


/* From here on nothing has been stored. */
static void
store_watch(zone_test_t *t)
{
    store_zone = NULL;
    store_shown = store_signature(t);
    store_counted = kube_word_get(&t->zone.image->stores);
    store_hits = 0;
    store_zone = t;
}


/* It was stored, and was counted. */
static void
store_watched(bool counted)
{
    zone_test_t  *t;

    t = store_zone;
    store_zone = NULL;
    assert_true(store_hits > 0);
    assert_int_equal(kube_word_get(&t->zone.image->stores) != store_counted,
                     counted);
    assert_int_equal(store_signature(t) != store_shown, counted);
    store_watch(t);
}


/*
 * Each store that a scope's count or digest follows from is counted before it
 * is seen: a successor compares them only if nothing was stored since.
 */
static void
test_store_counted(void **state)
{
    bool           same;
    uint32_t       e;
    zone_test_t    t;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    store_watch(&t);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 2, 3, 1000),
                     KUBE_OK);
    store_watched(true);
    assert_int_equal(zone_test_put(&t, "shop", "web", 2, 2, 2, 3, 1000),
                     KUBE_OK);
    store_watched(true);

    e = zone_test_find(&t, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "web-1");
    kube_zone_outdate(t.writer, e, KUBE_REASON_TOO_LARGE, 1000);
    store_watched(true);

    /* again: only its reason, or its time, is another one */
    kube_zone_outdate(t.writer, e, KUBE_REASON_ZONE_FULL, 2000);
    store_zone = NULL;
    assert_int_equal(t.writer->outdated, 1);
    store_watch(&t);

    assert_int_equal(zone_test_stage(&t, zone_test_slice("shop", "lone", "x",
                                                         1, 1, 3),
                                     1000, &e, &same), KUBE_OK);
    store_watched(false);
    kube_zone_publish_orphan(t.writer, e);
    store_watched(true);
    zone_test_remove(&t, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "lone", 1000);
    store_watched(true);
    assert_int_equal(zone_test_refuse(&t, KUBE_RESOURCE_SERVICES, "shop",
                                      "bad", "1", "x", &e), KUBE_OK);
    store_watched(true);

    /* what is refused again as it was stores nothing */
    assert_int_equal(zone_test_refuse(&t, KUBE_RESOURCE_SERVICES, "shop",
                                      "bad", "1", "x", &e), KUBE_OK);
    assert_int_equal(store_hits, 0);
    kube_zone_remove(t.writer, e);
    store_watched(true);

    store_zone = NULL;
    zone_test_close(&t);
}


/*
 * An entry is taken again while a Service still names the record that it held
 * before: both records move with those that name them.
 */
static void
test_store_taken_again(void **state)
{
    bool              changed, same;
    char              name[16];
    uint32_t          gone, slice, offset;
    unsigned          i;
    zone_test_t       t;
    kube_snapshot_t   s;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(zone_test_put(&t, "shop", "a", 1, 1, 2, 3, 1000),
                     KUBE_OK);
    gone = zone_test_find(&t, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "a-0");
    offset = t.writer->side[gone].offset;
    assert_int_equal(zone_test_put(&t, "shop", "b", 1, 2, 0, 0, 1000),
                     KUBE_OK);
    zone_test_remove(&t, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "a-0", 1000);

    assert_int_equal(zone_test_stage(&t, zone_test_slice("shop", "b-0", "b",
                                                         1, 2, 3),
                                     1000 + KUBE_ZONE_QUARANTINE_MS, &slice,
                                     &same), KUBE_OK);
    assert_int_equal(slice, gone);
    assert_int_equal(kube_zone_publish(t.writer,
                                       zone_test_find(&t,
                                                      KUBE_RESOURCE_SERVICES,
                                                      "shop", "b"),
                                       &slice, 1, &changed), KUBE_OK);

    for (i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "c-%u", i % 3);
        assert_int_equal(zone_test_put(&t, "shop", name, i, i, 3, 40, 1000),
                         KUBE_OK);
        assert_int_equal(zone_test_read(&t, "shop", "a", &s), KUBE_OK);
        assert_int_equal(s.slices_n, 2);
        assert_int_equal(zone_test_variant(&s), 1);
        assert_int_equal(zone_test_read(&t, "shop", "b", &s), KUBE_OK);
        assert_int_equal(s.slices_n, 1);
        assert_int_equal(zone_test_variant(&s), 2);
    }

    /* it did move */
    assert_false(kube_zone_live_at(t.writer, offset));
    assert_false(kube_zone_writer_is_disturbed(t.writer));
    zone_test_close(&t);
}


static void
test_store_raw(void **state)
{
    char           content[STORE_RAW_MAX];
    uint32_t       number;
    kube_word_t   *head;
    zone_test_t    t;
    kube_record_t *record;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    memset(content, 'x', sizeof(content));
    number = kube_zone_scope_number(&t.zone, 1, true);
    head = kube_zone_head_of(&t.zone, number);

    assert_int_equal(kube_zone_store_raw(t.writer, number, KUBE_RECORD_ERROR,
                                         content, sizeof(content)),
                     KUBE_TOO_LARGE);
    assert_int_equal(kube_head_get(head), 0);

    assert_int_equal(kube_zone_store_raw(t.writer, number, KUBE_RECORD_ERROR,
                                         content, 600), KUBE_OK);
    record = kube_zone_record_at(&t.zone, kube_head_get(head));
    assert_int_equal(record->entry, number);
    assert_int_equal(record->content_size, 600);
    assert_int_equal(t.writer->live_bytes, record->size);

    kube_zone_store_raw_clear(t.writer, number);
    assert_int_equal(kube_head_get(head), 0);
    assert_int_equal(t.writer->live_bytes, 0);
    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_store_cost),
        cmocka_unit_test(test_store_relabelled),
        cmocka_unit_test(test_store_counted),
        cmocka_unit_test(test_store_taken_again),
        cmocka_unit_test(test_store_raw),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
