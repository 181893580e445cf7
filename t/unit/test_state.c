/*
 * test_state - kube_state: a zone's objects into bytes and back, and bytes
 * that are no state file.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_state.h"
#include "zone_test.h"


#define STATE_IDENTITY  0xabcdef12345678ull

static const kube_state_info_t  state_info = {
    .identity = STATE_IDENTITY,
    .ca = { 7, 11, 13 },
    .ca_n = 3,
    .written_ms = 123456
};


static const kube_state_omitted_t  state_none;


typedef struct {
    zone_test_t  *t;
    unsigned      services;
    unsigned      slices;
    unsigned      stop_at;
} state_put_t;


static void
state_fill(zone_test_t *t)
{
    char      name[32];
    unsigned  i;

    for (i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);
        assert_int_equal(zone_test_put(t, "shop", name, i, i, 2, 3, 1000),
                         KUBE_OK);
    }
}


/* As a cold start does it: slices find their Service staged already. */
static kube_rc_t
state_put(void *ctx, const kube_record_t *record)
{
    uint32_t      e;
    state_put_t  *p;

    p = ctx;

    if (p->stop_at != 0 && p->services + p->slices == p->stop_at) {
        return KUBE_FULL;
    }

    assert_int_equal(record->flags, KUBE_RECORD_F_STATE_FILE);

    if (record->kind == KUBE_RECORD_SERVICE) {
        assert_int_equal(p->slices, 0);
        p->services++;

    } else {
        p->slices++;
    }

    return (p->t != NULL) ? kube_zone_stage(p->t->writer, record, 0, &e)
                          : KUBE_OK;
}


static kube_rc_t
state_ignore(void *ctx, const kube_record_t *record)
{
    *(unsigned *) ctx += record->size;

    return KUBE_OK;
}


static void
state_publish_all(zone_test_t *t)
{
    bool                  changed;
    char                  name[32];
    unsigned              i, k;
    uint32_t              service, slices[2];

    for (i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);
        service = kube_zone_writer_find(t->writer, KUBE_RESOURCE_SERVICES,
                                        KUBE_STR("shop"),
                                        zone_test_str(name));

        for (k = 0; k < 2; k++) {
            snprintf(name, sizeof(name), "svc-%u-%u", i, k);
            slices[k] = kube_zone_writer_find(t->writer,
                                              KUBE_RESOURCE_ENDPOINTSLICES,
                                              KUBE_STR("shop"),
                                              zone_test_str(name));
        }

        assert_int_equal(kube_zone_publish(t->writer, service, slices, 2,
                                           &changed), KUBE_OK);
    }
}


static void *
state_encode_without(zone_test_t *t, const kube_state_omitted_t *omitted,
    size_t *len)
{
    void    *buf;
    size_t   size;

    size = kube_state_size(t->writer);
    buf = malloc(size);
    assert_non_null(buf);
    assert_int_equal(kube_state_encode(t->writer, &state_info, omitted, buf,
                                       size, len), KUBE_OK);
    assert_true(*len <= size);

    return buf;
}


static void *
state_encode(zone_test_t *t, size_t *len)
{
    return state_encode_without(t, &state_none, len);
}


static void
test_state_round_trip(void **state)
{
    void               *buf;
    size_t              len;
    zone_test_t         from, to;
    state_put_t         put;
    kube_snapshot_t     s;
    kube_state_info_t   info;

    (void) state;
    zone_test_open(&from, KUBE_ZONE_SIZE_MIN);
    state_fill(&from);
    buf = state_encode(&from, &len);

    assert_int_equal(kube_state_check(buf, len, &info), KUBE_OK);
    assert_true(info.identity == STATE_IDENTITY);
    assert_int_equal(info.ca_n, 3);
    assert_memory_equal(info.ca, state_info.ca, 3 * sizeof(uint64_t));
    assert_int_equal(info.written_ms, 123456);
    assert_int_equal(info.objects, 60);
    assert_int_equal(info.size, len);

    zone_test_open(&to, KUBE_ZONE_SIZE_MIN);
    put = (state_put_t) { &to, 0, 0, 0 };
    assert_int_equal(kube_state_each(buf, len, state_put, &put), KUBE_OK);
    assert_int_equal(put.services, 20);
    assert_int_equal(put.slices, 40);

    state_publish_all(&to);
    assert_int_equal(zone_test_read(&to, "shop", "svc-7", &s), KUBE_OK);
    assert_true(s.from_state_file);
    assert_int_equal(s.slices_n, 2);
    assert_int_equal(zone_test_variant(&s), 7);
    assert_true(kube_str_eq(s.service.meta.rv, KUBE_STR("7")));

    free(buf);
    zone_test_close(&from);
    zone_test_close(&to);
}


/* What is outdated has no time that another system could read. */
static void
test_state_outdated(void **state)
{
    void               *buf;
    size_t              len;
    zone_test_t         t;
    kube_state_info_t   info;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    state_fill(&t);
    kube_zone_outdate(t.writer,
                      zone_test_find(&t, KUBE_RESOURCE_ENDPOINTSLICES, "shop",
                                     "svc-7-1"), KUBE_REASON_MALFORMED, 5);
    buf = state_encode(&t, &len);
    assert_int_equal(kube_state_check(buf, len, &info), KUBE_OK);
    assert_int_equal(info.objects, 59);
    free(buf);
    zone_test_close(&t);
}


static void
test_state_empty(void **state)
{
    void               *buf;
    size_t              len;
    zone_test_t         t;
    state_put_t         put;
    kube_state_info_t   info;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    buf = state_encode(&t, &len);
    assert_int_equal(kube_state_check(buf, len, &info), KUBE_OK);
    assert_int_equal(info.objects, 0);
    put = (state_put_t) { NULL, 0, 0, 0 };
    assert_int_equal(kube_state_each(buf, len, state_put, &put), KUBE_OK);
    assert_int_equal(put.services + put.slices, 0);
    free(buf);
    zone_test_close(&t);
}


typedef struct {
    unsigned    n;
    kube_rc_t   rc;         /* given after the first */
} state_scopes_t;


static kube_rc_t
state_scope(void *ctx, const kube_scope_info_t *info)
{
    char             ns[16];
    state_scopes_t  *scopes = ctx;

    snprintf(ns, sizeof(ns), "ns-%u", scopes->n);
    assert_true(kube_str_eq(info->ns, zone_test_str(ns)));
    assert_true(kube_str_eq(info->rv, KUBE_STR("4711")));
    assert_int_equal(info->count, 100 + scopes->n);
    assert_int_equal(info->digest.hi, 9);

    scopes->n++;

    return scopes->rc;
}


/* What each scope was, beside the objects, which do not notice. */

static kube_rc_t
state_count(void *ctx, const kube_scope_info_t *info)
{
    (void) info;
    ++*(unsigned *) ctx;

    return KUBE_OK;
}


static void
test_state_scopes(void **state)
{
    void               *buf;
    char                ns[16];
    size_t              len;
    unsigned            i;
    zone_test_t         t;
    state_put_t         put;
    state_scopes_t      scopes;
    kube_scope_info_t   info;

    (void) state;
    zone_test_open(&t, 1u << 20);
    state_fill(&t);

    memset(&info, 0, sizeof(kube_scope_info_t));
    info.rv = KUBE_STR("4711");
    info.digest.hi = 9;

    for (i = 0; i < 40; i++) {
        snprintf(ns, sizeof(ns), "ns-%u", i);
        info.resource = (i % 2) ? KUBE_RESOURCE_ENDPOINTSLICES
                                : KUBE_RESOURCE_SERVICES;
        info.ns = zone_test_str(ns);
        info.count = 100 + i;
        assert_int_equal(kube_zone_scope_publish(t.writer, i, &info),
                         KUBE_OK);
    }

    buf = state_encode(&t, &len);
    scopes = (state_scopes_t) { 0, KUBE_OK };
    assert_int_equal(kube_state_scopes(buf, len, state_scope, &scopes),
                     KUBE_OK);
    assert_int_equal(scopes.n, 40);

    scopes = (state_scopes_t) { 0, KUBE_FULL };
    assert_int_equal(kube_state_scopes(buf, len, state_scope, &scopes),
                     KUBE_FULL);
    assert_int_equal(scopes.n, 1);

    put = (state_put_t) { NULL, 0, 0, 0 };
    assert_int_equal(kube_state_each(buf, len, state_put, &put), KUBE_OK);
    assert_int_equal(put.services + put.slices, 60);

    free(buf);
    zone_test_close(&t);
}


/* Publishes a scope of that version. */
static void
state_scope_rv(zone_test_t *t, unsigned scope, const char *ns,
    kube_resource_t resource, const char *rv)
{
    kube_scope_info_t  info;

    memset(&info, 0, sizeof(kube_scope_info_t));
    info.synced = (rv[0] != '\0');
    info.rv = zone_test_str(rv);
    info.resource = resource;
    info.ns = zone_test_str(ns);

    assert_int_equal(kube_zone_scope_publish(t->writer, scope, &info),
                     KUBE_OK);
}


/* Publishes a scope that was current then (0: never). */
static void
state_scope_at(zone_test_t *t, unsigned scope, const char *ns,
    kube_resource_t resource, uint64_t contact_ms, bool forbidden)
{
    state_scope_rv(t, scope, ns, resource, "4711");
    kube_zone_scope_set(&t->zone, scope, KUBE_COUNTER_GAUGE_CONTACT_MS,
                        contact_ms);
    kube_zone_scope_set(&t->zone, scope, KUBE_COUNTER_GAUGE_FORBIDDEN,
                        forbidden);
}


/* What a file has of a zone of two namespaces. */
static void
state_has(zone_test_t *t, const kube_state_omitted_t *omitted,
    unsigned services, unsigned slices, unsigned scopes_n)
{
    void         *buf;
    size_t        len;
    unsigned      n;
    state_put_t   put;

    buf = state_encode_without(t, omitted, &len);
    put = (state_put_t) { NULL, 0, 0, 0 };
    assert_int_equal(kube_state_each(buf, len, state_put, &put), KUBE_OK);
    assert_int_equal(put.services, services);
    assert_int_equal(put.slices, slices);

    n = 0;
    assert_int_equal(kube_state_scopes(buf, len, state_count, &n), KUBE_OK);
    assert_int_equal(n, scopes_n);
    free(buf);
}


/* One namespace that answers 403 for long makes nothing else older. */
static void
test_state_omits(void **state)
{
    zone_test_t           t;
    kube_state_omitted_t  omitted;

    (void) state;
    zone_test_open(&t, 1u << 20);
    state_fill(&t);
    assert_int_equal(zone_test_put(&t, "two", "gone", 1, 1, 2, 3, 1000),
                     KUBE_OK);

    state_scope_at(&t, 0, "shop", KUBE_RESOURCE_SERVICES, 9000, false);
    state_scope_at(&t, 1, "shop", KUBE_RESOURCE_ENDPOINTSLICES, 8900, false);
    state_scope_at(&t, 2, "two", KUBE_RESOURCE_SERVICES, 1000, true);
    state_scope_at(&t, 3, "two", KUBE_RESOURCE_ENDPOINTSLICES, 7000, true);
    state_scope_at(&t, 4, "never", KUBE_RESOURCE_SERVICES, 0, true);

    /* two for as long: both age it, as any other; what never was does not */

    assert_int_equal(kube_state_omit(&t.zone, 10000, 8000, &omitted), 9000);
    assert_int_equal(omitted.n, 1);
    state_has(&t, &omitted, 21, 42, 4);

    assert_int_equal(kube_state_omit(&t.zone, 10000, 7999, &omitted), 3000);
    assert_int_equal(omitted.n, 2);
    state_has(&t, &omitted, 20, 42, 3);

    assert_int_equal(kube_state_omit(&t.zone, 10000, 1999, &omitted), 1100);
    assert_int_equal(omitted.n, 3);
    state_has(&t, &omitted, 20, 40, 2);

    /* an outage makes no difference between them */

    assert_int_equal(kube_state_omit(&t.zone, 90000, 2000, &omitted), 83000);
    assert_int_equal(omitted.n, 2);
    assert_int_equal(kube_state_omit(&t.zone, 90000, 1999, &omitted), 81100);
    assert_int_equal(omitted.n, 3);

    /* who is allowed, but away for as long, ages it */

    state_scope_at(&t, 0, "shop", KUBE_RESOURCE_SERVICES, 1, false);
    assert_int_equal(kube_state_omit(&t.zone, 10000, 1800, &omitted), 9999);
    assert_int_equal(omitted.n, 3);

    state_scope_at(&t, 0, "shop", KUBE_RESOURCE_SERVICES, 0, false);
    assert_int_equal(kube_state_omit(&t.zone, 10000, 1800, &omitted),
                     KUBE_NEVER);

    /* where no namespace's slices are listed any more they are kept */

    state_scope_at(&t, 0, "shop", KUBE_RESOURCE_SERVICES, 9000, false);
    state_scope_at(&t, 1, "shop", KUBE_RESOURCE_ENDPOINTSLICES, 6000, true);
    assert_int_equal(kube_state_omit(&t.zone, 10000, 1800, &omitted), 4000);
    assert_int_equal(omitted.n, 2);
    state_has(&t, &omitted, 20, 42, 3);

    /* but for what a file had of one that never was current */

    state_scope_at(&t, 3, "two", KUBE_RESOURCE_ENDPOINTSLICES, 0, true);
    assert_int_equal(kube_state_omit(&t.zone, 10000, 1800, &omitted), 4000);
    assert_int_equal(omitted.n, 3);
    state_has(&t, &omitted, 20, 40, 2);

    /* nor what was listed otherwise, however lately, before a reload */

    state_scope_at(&t, 3, "two", KUBE_RESOURCE_ENDPOINTSLICES, 9000, true);
    state_scope_rv(&t, 3, "two", KUBE_RESOURCE_ENDPOINTSLICES, "");
    assert_int_equal(kube_state_omit(&t.zone, 10000, 1800, &omitted), 4000);
    assert_int_equal(omitted.n, 3);
    state_has(&t, &omitted, 20, 40, 2);

    /* nor is a scope of all namespaces one tenant's */

    state_scope_at(&t, 1, "", KUBE_RESOURCE_ENDPOINTSLICES, 1, true);
    assert_int_equal(kube_state_omit(&t.zone, 10000, 1800, &omitted), 9999);
    assert_int_equal(omitted.n, 3);

    state_scope_at(&t, 1, "", KUBE_RESOURCE_ENDPOINTSLICES, 0, true);
    assert_int_equal(kube_state_omit(&t.zone, 10000, 1800, &omitted), 1000);
    assert_int_equal(omitted.n, 3);

    /* what is omitted of all namespaces would be all */

    omitted.n = 1;
    omitted.scopes[0].resource = KUBE_RESOURCE_SERVICES;
    omitted.scopes[0].ns_len = 0;
    state_has(&t, &omitted, 0, 42, 2);

    zone_test_close(&t);
}


/* One shared certificate is enough; none at all is nobody's. */

static void
test_state_same_ca(void **state)
{
    kube_state_info_t  a, b;

    (void) state;
    a = state_info;
    b = state_info;

    b.ca[0] = 1;
    b.ca[1] = 2;
    assert_true(kube_state_same_ca(&a, &b));

    b.ca_n = 2;
    assert_false(kube_state_same_ca(&a, &b));

    b.ca_n = 0;
    assert_false(kube_state_same_ca(&a, &b));
    assert_false(kube_state_same_ca(&b, &b));
}


static void
test_state_too_small(void **state)
{
    char         *buf;
    size_t        size, len, room;
    zone_test_t   t;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    state_fill(&t);
    free(state_encode(&t, &size));

    for (room = 0; room < size; room += 8) {
        buf = malloc(room + 1);
        assert_non_null(buf);
        assert_int_equal(kube_state_encode(t.writer, &state_info, &state_none,
                                           buf, room, &len), KUBE_TOO_LARGE);
        free(buf);
    }

    zone_test_close(&t);
}


static void
test_state_stops(void **state)
{
    void         *buf;
    size_t        len;
    zone_test_t   t;
    state_put_t   put;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    state_fill(&t);
    buf = state_encode(&t, &len);
    put = (state_put_t) { NULL, 0, 0, 25 };
    assert_int_equal(kube_state_each(buf, len, state_put, &put), KUBE_FULL);
    assert_int_equal(put.services, 20);
    assert_int_equal(put.slices, 5);
    free(buf);
    zone_test_close(&t);
}


static void
test_state_damaged(void **state)
{
    void               *buf;
    size_t              len, i;
    unsigned            sum;
    zone_test_t         t;
    state_put_t         put;
    unsigned char      *bytes;
    kube_state_info_t   info;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    state_fill(&t);
    buf = state_encode(&t, &len);
    put = (state_put_t) { NULL, 0, 0, 0 };
    sum = 0;

    for (i = 0; i < len; i += 3) {
        bytes = malloc(len);
        assert_non_null(bytes);
        memcpy(bytes, buf, len);

        /* cut off here; one bit wrong here; unchecked, each stays inside */
        assert_int_equal(kube_state_check(bytes, i, &info), KUBE_CORRUPT);
        bytes[i] ^= (unsigned char) (1u << i % 8);
        assert_int_equal(kube_state_check(bytes, len, &info), KUBE_CORRUPT);
        (void) !kube_state_each(bytes, len, state_ignore, &sum);
        free(bytes);
    }

    assert_int_equal(kube_state_each((char *) buf + 4, len - 4, state_put,
                                     &put), KUBE_INVALID);
    free(buf);
    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_state_round_trip),
        cmocka_unit_test(test_state_outdated),
        cmocka_unit_test(test_state_empty),
        cmocka_unit_test(test_state_scopes),
        cmocka_unit_test(test_state_omits),
        cmocka_unit_test(test_state_same_ca),
        cmocka_unit_test(test_state_too_small),
        cmocka_unit_test(test_state_stops),
        cmocka_unit_test(test_state_damaged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
