/*
 * test_zone_copy - kube_zone_copy: into a larger image, into a smaller one,
 * memory running out, changes at each of its stores.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define KUBE_FAILPOINTS  1

#include "kube_zone_copy.h"
#include "kube_zone_guard.h"
#include "zone_test.h"

#include "kube_zone_store.c"
#include "kube_zone_table.c"
#include "kube_zone_writer.c"


static void
copy_fill(zone_test_t *t, unsigned services)
{
    char      name[32];
    unsigned  i;

    for (i = 0; i < services; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);
        assert_int_equal(zone_test_put(t, "shop", name, 1, i, 2, 3, 1000),
                         KUBE_OK);
    }
}


static void
copy_setup(zone_test_t *t)
{
    uint32_t           e;
    bool               same;
    kube_scope_info_t  info;

    zone_test_open(t, 1u << 20);
    copy_fill(t, 100);

    assert_int_equal(zone_test_stage(t, zone_test_slice("shop", "lone",
                                                        "nobody", 5, 1, 2),
                                     1000, &e, &same), KUBE_OK);
    kube_zone_publish_orphan(t->writer, e);
    assert_int_equal(zone_test_refuse(t, KUBE_RESOURCE_SERVICES, "shop",
                                      "big", "9", "too_large", &e), KUBE_OK);
    e = zone_test_find(t, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "svc-7-1");
    kube_zone_outdate(t->writer, e, KUBE_REASON_ZONE_FULL, 777);

    memset(&info, 0, sizeof(info));
    info.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    info.ns = KUBE_STR("shop");
    info.scope_hash = 77;
    info.synced = true;
    info.rv = KUBE_STR("1234");
    info.interrupted = true;
    assert_int_equal(kube_zone_scope_publish(t->writer, 1, &info), KUBE_OK);
    assert_int_equal(kube_zone_scope_error(t->writer, 1, KUBE_STR("timeout"),
                                           KUBE_STR("slow"), 5), KUBE_OK);
    kube_zone_scope_add(&t->zone, 1, KUBE_COUNTER_LISTS, 3);
    kube_zone_worker_add(&t->zone, 5, 2, 11);
}


/* The one object that is outdated, and the one that is a name alone. */
typedef struct {
    unsigned       names;
    char           name_reason[32];
    kube_reason_t  outdated_reason;
    uint64_t       outdated_since;
} copy_refused_t;


static copy_refused_t
copy_refused_of(zone_test_t *t, const kube_zone_t *zone)
{
    uint32_t              cursor;
    copy_refused_t        found;
    kube_record_id_t      id;
    const kube_record_t  *record;

    cursor = 0;
    memset(&found, 0, sizeof(found));

    while (kube_zone_next_refused(zone, &cursor, &t->arena, &record)
           == KUBE_OK)
    {
        if (record->kind == KUBE_RECORD_REFUSED) {
            found.names++;
            assert_int_equal(kube_record_id(record, record->size, &id),
                             KUBE_OK);
            snprintf(found.name_reason, sizeof(found.name_reason), "%.*s",
                     (int) id.reason.len, id.reason.data);
            continue;
        }

        assert_int_equal(found.outdated_since, 0);
        found.outdated_reason = kube_record_outdated_reason(record);
        found.outdated_since = kube_record_outdated_since(record);
    }

    assert_int_equal(found.names, 1);

    return found;
}


static void
test_copy_grows(void **state)
{
    void               *mem;
    uint64_t            revision;
    zone_test_t         t;
    kube_zone_t         to;
    copy_refused_t      refused;
    kube_snapshot_t     s;
    kube_zone_usage_t   u;
    kube_scope_info_t   info;

    (void) state;
    copy_setup(&t);
    assert_int_equal(zone_test_read(&t, "shop", "svc-7", &s), KUBE_OK);
    revision = s.revision;

    mem = zone_test_memory(2u << 20);
    assert_int_equal(kube_zone_create(&to, mem, 2u << 20, zone_test_seed),
                     KUBE_OK);
    assert_int_equal(kube_zone_copy(&to, &t.zone, &t.at.alloc), KUBE_OK);
    assert_int_equal(kube_zone_validate(mem, 2u << 20), KUBE_OK);

    kube_zone_usage(&to, &u);
    assert_int_equal(u.entries_used, 302);
    assert_int_equal(u.refused, 2);
    refused = copy_refused_of(&t, &to);
    assert_int_equal(refused.outdated_since, 777);
    assert_int_equal(refused.outdated_reason, KUBE_REASON_ZONE_FULL);

    kube_zone_writer_destroy(t.writer);
    t.writer = NULL;
    free(t.mem);
    t.mem = mem;
    t.zone = to;
    assert_int_equal(zone_test_read(&t, "shop", "svc-7", &s), KUBE_OK);
    assert_int_equal(s.slices_n, 2);
    assert_int_equal(zone_test_variant(&s), 7);
    assert_true(s.revision > revision);

    assert_int_equal(kube_zone_scope_read(&to, 1, &t.arena, &info), KUBE_OK);
    assert_true(kube_str_eq(info.rv, KUBE_STR("1234")));
    assert_true(kube_str_eq(info.error_message, KUBE_STR("slow")));
    assert_true(info.synced);
    assert_true(info.interrupted);
    assert_int_equal(kube_zone_scope_counter(&to, 1, KUBE_COUNTER_LISTS), 3);
    assert_int_equal(kube_zone_worker_sum(&to, 2), 11);

    zone_test_close(&t);
}


static void
test_copy_shrinks(void **state)
{
    void               *mem;
    zone_test_t         t;
    kube_zone_t         to;
    kube_zone_usage_t   u;
    kube_scope_info_t   info;

    (void) state;
    copy_setup(&t);

    mem = zone_test_memory(64u << 10);
    assert_int_equal(kube_zone_create(&to, mem, 64u << 10, zone_test_seed),
                     KUBE_OK);
    assert_int_equal(kube_zone_copy(&to, &t.zone, &t.at.alloc), KUBE_FULL);
    assert_int_equal(kube_zone_validate(mem, 64u << 10), KUBE_OK);

    kube_zone_usage(&to, &u);
    assert_in_range(u.entries_used, 50, 250);

    /* not everything is there: it must be listed again */
    assert_int_equal(kube_zone_scope_read(&to, 1, &t.arena, &info), KUBE_OK);
    assert_int_equal(info.rv.len, 0);
    assert_true(kube_str_eq(info.ns, KUBE_STR("shop")));

    free(mem);
    zone_test_close(&t);
}


typedef struct {
    kube_zone_t  *from;
    void         *mem;
} copy_oom_t;


static void
copy_oom_body(alloc_test_t *at, void *ctx)
{
    kube_zone_t  to;
    copy_oom_t  *c;

    c = ctx;
    memset(c->mem, 0, 1u << 20);
    assert_int_equal(kube_zone_create(&to, c->mem, 1u << 20, zone_test_seed),
                     KUBE_OK);
    alloc_test_assert_rc(at, kube_zone_copy(&to, c->from, &at->alloc));
    assert_int_equal(kube_zone_validate(c->mem, 1u << 20), KUBE_OK);
}


static void
test_copy_no_memory(void **state)
{
    zone_test_t  t;
    copy_oom_t   c;

    (void) state;
    copy_setup(&t);
    c.from = &t.zone;
    c.mem = zone_test_memory(1u << 20);
    ALLOC_TEST_RUN(copy_oom_body, &c);
    free(c.mem);
    zone_test_close(&t);
}


/* An allocator that changes the zone while it is copied. */
typedef struct {
    kube_alloc_t   alloc;
    zone_test_t   *t;
    void         (*change)(zone_test_t *t);
    unsigned       calls;
    unsigned       change_at;
} copy_hook_t;


static void *
copy_hook_alloc(void *ctx, size_t size)
{
    copy_hook_t  *h = ctx;

    if (++h->calls == h->change_at) {
        h->change(h->t);
    }

    return malloc(size);
}


static void
copy_hook_free(void *ctx, void *p)
{
    (void) ctx;
    free(p);
}


static void
copy_hook_init(copy_hook_t *h, zone_test_t *t, void (*change)(zone_test_t *t),
    unsigned change_at)
{
    memset(h, 0, sizeof(copy_hook_t));

    h->alloc = (kube_alloc_t) { .alloc = copy_hook_alloc,
                                .free = copy_hook_free, .ctx = h };
    h->t = t;
    h->change = change;
    h->change_at = change_at;
}


static void
copy_change_nothing(zone_test_t *t)
{
    (void) t;
}


static void
copy_change_evict(zone_test_t *t)
{
    kube_zone_evict_begin(t->writer, 1, 1);
    kube_zone_evict_end(t->writer);
}


static void
copy_change_evicting(zone_test_t *t)
{
    kube_zone_evict_begin(t->writer, 1, 1);
}


static void
copy_change_epoch(zone_test_t *t)
{
    kube_zone_writer_epoch(t->writer);
}


/* A byte of a Service's record, by a process that should not write there. */
static void
copy_change_byte(zone_test_t *t)
{
    char      *bytes;
    uint32_t   e;

    e = zone_test_find(t, KUBE_RESOURCE_SERVICES, "shop", "svc-7");
    bytes = (char *) kube_zone_words(&t->zone, kube_head_offset(
                                                kube_zone_head(&t->zone, e)));
    bytes[sizeof(kube_record_t) + 16] ^= 0x41;
}


static void
copy_change_whole(zone_test_t *t)
{
    kube_zone_set_state_loading(&t->zone, true);
    kube_zone_set_state_loading(&t->zone, false);
}


static void
copy_change_allowed(zone_test_t *t)
{
    kube_zone_set_object_max(&t->zone, 8192);
}


/* What was too large was listed meanwhile: in the copy it is a name still. */
static void
test_copy_of_what_is_allowed(void **state)
{
    void         *mem;
    unsigned      i, calls;
    copy_hook_t   h;
    zone_test_t   t;
    kube_zone_t   to;

    (void) state;
    calls = 0;
    mem = zone_test_memory(1u << 20);

    for (i = 0; i < 2; i++) {
        copy_setup(&t);
        kube_zone_set_object_max(&t.zone, 4096);
        copy_hook_init(&h, &t, copy_change_allowed, calls);
        memset(mem, 0, 1u << 20);
        assert_int_equal(kube_zone_create(&to, mem, 1u << 20,
                                          zone_test_seed), KUBE_OK);
        assert_int_equal(kube_zone_copy(&to, &t.zone, &h.alloc), KUBE_OK);
        assert_int_equal(kube_zone_object_max(&to), 4096);

        calls = h.calls;
        zone_test_close(&t);
    }

    free(mem);
}


/* What went while it was copied, and no event brings: it is listed again. */
static void
test_copy_of_a_moment(void **state)
{
    void               *mem;
    size_t              i;
    unsigned            calls;
    copy_hook_t         h;
    zone_test_t         t;
    kube_zone_t         to;
    kube_scope_info_t   info;

    static const struct {
        void       (*change)(zone_test_t *t);
        bool         before;
        kube_rc_t    rc;
    } rows[] = {
        { copy_change_nothing, false, KUBE_OK },
        { copy_change_evict, true, KUBE_OK },
        { copy_change_epoch, true, KUBE_OK },
        { copy_change_evicting, true, KUBE_FULL },
        { copy_change_evicting, false, KUBE_FULL },
        { copy_change_evict, false, KUBE_FULL },
        { copy_change_epoch, false, KUBE_FULL },
        { copy_change_byte, true, KUBE_FULL },
    };

    (void) state;
    calls = 0;
    mem = zone_test_memory(1u << 20);

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        copy_setup(&t);
        copy_hook_init(&h, &t, rows[i].change, calls);

        if (rows[i].before) {
            rows[i].change(&t);
            h.change_at = 0;
        }

        memset(mem, 0, 1u << 20);
        assert_int_equal(kube_zone_create(&to, mem, 1u << 20,
                                          zone_test_seed), KUBE_OK);
        assert_int_equal(kube_zone_copy(&to, &t.zone, &h.alloc), rows[i].rc);
        assert_int_equal(kube_zone_scope_read(&to, 1, &t.arena, &info),
                         KUBE_OK);
        assert_int_equal(info.rv.len == 0, rows[i].rc != KUBE_OK);

        /* at the last one the copy has begun */
        calls = h.calls;
        zone_test_close(&t);
    }

    free(mem);
}


/*
 * What was too large for a record may be none that is too large for those of
 * the other size: a list is to tell, and no event does.
 */
static void
test_copy_of_too_large(void **state)
{
    void            *mem;
    size_t           i;
    uint32_t         e;
    zone_test_t      t;
    kube_zone_t      to;
    copy_refused_t   refused;

    static const struct {
        size_t     size;
        uint64_t   allowed;
    } rows[] = {
        { 512u << 10, 4096 },
        { (1u << 20) + 4096, 4096 },
        { 8u << 20, 1 },
    };

    (void) state;
    copy_setup(&t);
    e = zone_test_find(&t, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "svc-7-1");
    kube_zone_outdate(t.writer, e, KUBE_REASON_TOO_LARGE, 777);
    kube_zone_set_object_max(&t.zone, 4096);

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        mem = zone_test_memory(rows[i].size);
        assert_int_equal(kube_zone_create(&to, mem, rows[i].size,
                                          zone_test_seed), KUBE_OK);
        assert_int_equal(kube_zone_record_max(&to)
                         > kube_zone_record_max(&t.zone),
                         rows[i].allowed == 1);
        assert_int_equal(kube_zone_copy(&to, &t.zone, &t.at.alloc), KUBE_OK);
        assert_int_equal(kube_zone_validate(mem, rows[i].size), KUBE_OK);
        assert_int_equal(kube_zone_object_max(&to), rows[i].allowed);

        /* which is no want of room */
        refused = copy_refused_of(&t, &to);
        assert_string_equal(refused.name_reason, "too_large");
        assert_int_equal(refused.outdated_reason, KUBE_REASON_TOO_LARGE);
        assert_int_equal(refused.outdated_since, 777);
        free(mem);
    }

    zone_test_close(&t);
}


static zone_test_t  *copy_now;
static unsigned      copy_stores, copy_change_at;


/* A list beside the watch brings what had been refused: no version changes. */
static void
copy_bring(void)
{
    bool        same, changed;
    uint32_t    service, slices[2];

    assert_int_equal(zone_test_put(copy_now, "shop", "big", 9, 1, 2, 3, 1000),
                     KUBE_OK);
    service = zone_test_find(copy_now, KUBE_RESOURCE_SERVICES, "shop", "web");
    slices[0] = zone_test_find(copy_now, KUBE_RESOURCE_ENDPOINTSLICES, "shop",
                               "web-0");
    assert_int_equal(zone_test_stage(copy_now,
                                     zone_test_slice("shop", "web-1", "web",
                                                     9, 1, 2),
                                     1000, &slices[1], &same), KUBE_OK);
    assert_int_equal(kube_zone_publish(copy_now->writer, service, slices, 2,
                                       &changed), KUBE_OK);
}


void
kube_failpoint_hit(const char *name)
{
    if (copy_now != NULL
        && strcmp(name, "store") == 0
        && ++copy_stores == copy_change_at)
    {
        copy_bring();
    }
}


/* Held or named, as the successor of the copy's writer finds it. */
static bool
copy_knows(const kube_zone_t *to, kube_resource_t resource, const char *name)
{
    uint32_t  entry;

    return kube_zone_find(to, resource, KUBE_STR("shop"), kube_str(name),
                          &entry) == KUBE_OK
           || kube_zone_is_refused(to, resource, KUBE_STR("shop"),
                                   kube_str(name));
}


static const struct {
    kube_resource_t   resource;
    const char       *name;
    bool              refused;
} copy_names[] = {
    { KUBE_RESOURCE_SERVICES, "web", false },
    { KUBE_RESOURCE_ENDPOINTSLICES, "web-0", false },
    { KUBE_RESOURCE_ENDPOINTSLICES, "web-1", true },
    { KUBE_RESOURCE_SERVICES, "big", true },
    { KUBE_RESOURCE_ENDPOINTSLICES, "big-0", true },
    { KUBE_RESOURCE_ENDPOINTSLICES, "big-1", true },
};


/* The list brings it at store n of the copy; returns false: there was none. */
static bool
copy_while(zone_test_t *t, void *mem, unsigned n)
{
    size_t               i;
    kube_zone_t          to;
    kube_takeover_t      takeover;
    kube_zone_writer_t  *writer;

    copy_stores = 0;
    copy_change_at = n;
    memset(mem, 0, 1u << 20);
    assert_int_equal(kube_zone_create(&to, mem, 1u << 20, zone_test_seed),
                     KUBE_OK);
    copy_now = t;
    assert_int_equal(kube_zone_copy(&to, &t->zone, &t->at.alloc), KUBE_OK);
    copy_now = NULL;

    writer = kube_zone_writer_create(&t->at.alloc, &to);
    assert_non_null(writer);
    assert_int_equal(kube_zone_writer_acquire(writer, 2000, &takeover),
                     KUBE_OK);

    for (i = 0; i < sizeof(copy_names) / sizeof(copy_names[0]); i++) {
        if (!copy_knows(&to, copy_names[i].resource, copy_names[i].name)) {
            print_error("%s: brought at store %u, and lost\n",
                        copy_names[i].name, n);
            fail();
        }
    }

    kube_zone_writer_destroy(writer);

    return copy_stores >= n;
}


static void
test_copy_of_what_comes(void **state)
{
    bool          more;
    void         *mem;
    size_t        i;
    uint32_t      e;
    unsigned      n;
    zone_test_t   t;

    (void) state;
    mem = zone_test_memory(1u << 20);
    n = 0;

    do {
        zone_test_open(&t, 1u << 20);
        assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 1, 3, 1000),
                         KUBE_OK);

        for (i = 0; i < sizeof(copy_names) / sizeof(copy_names[0]); i++) {
            if (copy_names[i].refused) {
                assert_int_equal(zone_test_refuse(&t, copy_names[i].resource,
                                                  "shop", copy_names[i].name,
                                                  "9", "zone_full", &e),
                                 KUBE_OK);
            }
        }

        n++;
        more = copy_while(&t, mem, n);
        zone_test_close(&t);
    } while (more);

    assert_in_range(n, 10, 1000);
    free(mem);
}


/* Of a state file that was loaded meanwhile the copy may have a part. */
static void
test_copy_of_a_load(void **state)
{
    void                *mem;
    size_t               i;
    unsigned             calls;
    copy_hook_t          h;
    zone_test_t          t;
    kube_zone_t          to;
    kube_writer_info_t   info;

    static const struct {
        bool      loading;
        bool      before;
        bool      never;
        uint64_t  shown;
    } rows[] = {
        { false, true, false, KUBE_STATE_FILE_WHOLE },
        { false, false, false, KUBE_STATE_FILE_LOADING },
        { true, false, false, KUBE_STATE_FILE_LOADING },
        { false, false, true, 0 },
    };

    (void) state;
    calls = 0;
    mem = zone_test_memory(1u << 20);

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        copy_setup(&t);
        copy_hook_init(&h, &t, copy_change_whole, rows[i].never ? 0 : calls);

        if (rows[i].loading) {
            kube_zone_set_state_loading(&t.zone, true);
        }

        if (rows[i].before) {
            copy_change_whole(&t);
            h.change_at = 0;
        }

        memset(mem, 0, 1u << 20);
        assert_int_equal(kube_zone_create(&to, mem, 1u << 20,
                                          zone_test_seed), KUBE_OK);
        assert_int_equal(kube_zone_copy(&to, &t.zone, &h.alloc), KUBE_OK);
        kube_zone_writer_info(&to, &info);
        assert_int_equal(info.state_in_use, rows[i].shown);

        calls = h.calls;
        zone_test_close(&t);
    }

    free(mem);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_copy_grows),
        cmocka_unit_test(test_copy_shrinks),
        cmocka_unit_test(test_copy_no_memory),
        cmocka_unit_test(test_copy_of_a_moment),
        cmocka_unit_test(test_copy_of_what_is_allowed),
        cmocka_unit_test(test_copy_of_too_large),
        cmocka_unit_test(test_copy_of_what_comes),
        cmocka_unit_test(test_copy_of_a_load),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
