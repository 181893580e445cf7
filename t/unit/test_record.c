/*
 * test_record - kube_record: round trips over random objects, damaged bytes,
 * limits, memory running out.
 *
 * The source is built into this program, for the checksum of hostile content.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_record.c"
#include "addr_test.h"
#include "zone_test.h"


#define RECORD_ROUNDS      2000
#define RECORD_DAMAGE      40


static void *
record_heap_alloc(void *ctx, size_t size)
{
    (void) ctx;

    return malloc(size);
}


static void
record_heap_free(void *ctx, void *p)
{
    (void) ctx;
    free(p);
}


static kube_alloc_t
record_alloc(void)
{
    return (kube_alloc_t) {
        .alloc = record_heap_alloc,
        .free = record_heap_free
    };
}


static kube_str_t
record_random_str(kube_random_t *r, kube_arena_t *arena, size_t min,
    size_t max)
{
    char    *p;
    size_t   i, len;

    len = (size_t) kube_random_range(r, min, max);
    p = kube_arena_alloc(arena, len + 1);
    assert_non_null(p);

    for (i = 0; i < len; i++) {
        /* few letters: names share what they begin with */
        p[i] = (char) ('a' + kube_random_next(r) % 3);
    }

    return (kube_str_t) { (len != 0) ? p : NULL, len };
}


static void
record_random_meta(kube_random_t *r, kube_arena_t *arena, kube_meta_t *meta)
{
    meta->ns = record_random_str(r, arena, 1, 63);
    meta->name = record_random_str(r, arena, 1, 253);
    meta->uid = record_random_str(r, arena, 0, KUBE_UID_LEN_MAX);
    meta->rv = record_random_str(r, arena, 0, KUBE_RV_LEN_MAX);
}


static kube_addr_t
record_random_addr(kube_random_t *r)
{
    size_t       i, len;
    kube_addr_t  addr;

    memset(&addr, 0, sizeof(kube_addr_t));

    switch (kube_random_next(r) % 3) {
    case 0:
        addr.family = KUBE_FAMILY_IPV4;
        len = 4;
        break;

    case 1:
        addr.family = KUBE_FAMILY_IPV6;
        len = 16;
        break;

    default:
        len = 0;
    }

    for (i = 0; i < len; i++) {
        addr.bytes[i] = (uint8_t) kube_random_next(r);
    }

    return addr;
}


static kube_port_t *
record_random_ports(kube_random_t *r, kube_arena_t *arena, size_t n)
{
    size_t        i;
    kube_port_t  *ports;

    ports = kube_arena_alloc(arena, (n + 1) * sizeof(kube_port_t));
    assert_non_null(ports);

    for (i = 0; i < n; i++) {
        ports[i].name = record_random_str(r, arena, 0, 63);
        ports[i].app_protocol = record_random_str(r, arena, 0, 20);
        ports[i].port = (uint16_t) kube_random_next(r);
        ports[i].protocol = (kube_protocol_t) (kube_random_next(r) % 3);
    }

    return ports;
}


static void
record_random_service(kube_random_t *r, kube_arena_t *arena,
    kube_service_t *service)
{
    size_t  i;

    record_random_meta(r, arena, &service->meta);
    service->type = (kube_service_type_t) (kube_random_next(r) % 4);
    service->headless = kube_random_next(r) & 1;
    service->family = (kube_family_t []) { KUBE_FAMILY_NONE, KUBE_FAMILY_IPV4,
                                           KUBE_FAMILY_IPV6 }
                      [kube_random_next(r) % 3];
    service->cluster_ips_n = (size_t) kube_random_range(r, 0, 2);

    for (i = 0; i < service->cluster_ips_n; i++) {
        service->cluster_ips[i] = record_random_addr(r);
    }

    service->ports_n = (size_t) (kube_random_next(r) % 50 == 0
                                 ? kube_random_range(r, 100, 512)
                                 : kube_random_range(r, 0, 5));
    service->ports = record_random_ports(r, arena, service->ports_n);
}


static void
record_random_slice(kube_random_t *r, kube_arena_t *arena,
    kube_slice_t *slice)
{
    size_t            i;
    kube_endpoint_t  *ep;

    record_random_meta(r, arena, &slice->meta);
    slice->service = record_random_str(r, arena, 0, 63);
    slice->family = (kube_random_next(r) & 1) ? KUBE_FAMILY_IPV4
                                              : KUBE_FAMILY_IPV6;
    slice->ports_n = (size_t) kube_random_range(r, 0, 5);
    slice->ports = record_random_ports(r, arena, slice->ports_n);
    slice->endpoints_n = (size_t) (kube_random_next(r) % 50 == 0
                                   ? kube_random_range(r, 120, 1000)
                                   : kube_random_range(r, 0, 20));
    slice->endpoints = kube_arena_alloc(arena, (slice->endpoints_n + 1)
                                               * sizeof(kube_endpoint_t));
    assert_non_null(slice->endpoints);

    for (i = 0; i < slice->endpoints_n; i++) {
        ep = &slice->endpoints[i];
        ep->address = record_random_addr(r);
        ep->ready = kube_random_next(r) & 1;
        ep->serving = kube_random_next(r) & 1;
        ep->terminating = kube_random_next(r) & 1;
        ep->pod = record_random_str(r, arena, 0, 253);
        ep->node = record_random_str(r, arena, 0, 4);
        ep->zone = record_random_str(r, arena, 0, 2);
    }
}


static void
record_random_object(kube_random_t *r, kube_arena_t *arena,
    kube_object_t *object)
{
    memset(object, 0, sizeof(kube_object_t));
    object->resource = (kube_resource_t) (kube_random_next(r) % 2);

    if (object->resource == KUBE_RESOURCE_SERVICES) {
        record_random_service(r, arena, &object->u.service);

    } else {
        record_random_slice(r, arena, &object->u.slice);
    }
}


#define record_assert_str(a, b)  assert_true(kube_str_eq(a, b))


static void
record_assert_ports(const kube_port_t *a, const kube_port_t *b, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        record_assert_str(a[i].name, b[i].name);
        record_assert_str(a[i].app_protocol, b[i].app_protocol);
        assert_int_equal(a[i].port, b[i].port);
        assert_int_equal(a[i].protocol, b[i].protocol);
    }
}


static void
record_assert_slice(const kube_slice_t *a, const kube_slice_t *b)
{
    size_t                  i;
    const kube_endpoint_t  *x, *y;

    record_assert_str(a->service, b->service);
    assert_int_equal(a->family, b->family);
    assert_int_equal(a->ports_n, b->ports_n);
    record_assert_ports(a->ports, b->ports, a->ports_n);
    assert_int_equal(a->endpoints_n, b->endpoints_n);

    for (i = 0; i < a->endpoints_n; i++) {
        x = &a->endpoints[i];
        y = &b->endpoints[i];
        assert_true(addr_eq(&x->address, &y->address));
        assert_int_equal(x->ready, y->ready);
        assert_int_equal(x->serving, y->serving);
        assert_int_equal(x->terminating, y->terminating);
        record_assert_str(x->pod, y->pod);
        record_assert_str(x->node, y->node);
        record_assert_str(x->zone, y->zone);
    }
}


static void
record_assert_service(const kube_service_t *a, const kube_service_t *b)
{
    size_t  i;

    assert_int_equal(a->type, b->type);
    assert_int_equal(a->headless, b->headless);
    assert_int_equal(a->family, b->family);
    assert_int_equal(a->cluster_ips_n, b->cluster_ips_n);
    assert_int_equal(a->ports_n, b->ports_n);
    record_assert_ports(a->ports, b->ports, a->ports_n);

    for (i = 0; i < a->cluster_ips_n; i++) {
        assert_true(addr_eq(&a->cluster_ips[i], &b->cluster_ips[i]));
    }
}


static void
record_assert_equal(const kube_object_t *a, const kube_object_t *b)
{
    const kube_meta_t  *x, *y;

    assert_int_equal(a->resource, b->resource);
    x = kube_object_meta(a);
    y = kube_object_meta(b);

    record_assert_str(x->ns, y->ns);
    record_assert_str(x->name, y->name);
    record_assert_str(x->uid, y->uid);
    record_assert_str(x->rv, y->rv);

    if (a->resource == KUBE_RESOURCE_SERVICES) {
        record_assert_service(&a->u.service, &b->u.service);

    } else {
        record_assert_slice(&a->u.slice, &b->u.slice);
    }
}


static void
test_record_round_trip(void **state)
{
    unsigned          i;
    kube_alloc_t      alloc;
    kube_arena_t      arena;
    kube_random_t     r;
    kube_object_t     object, decoded;
    kube_record_t    *record, *again;
    kube_record_id_t  id;

    (void) state;
    alloc = record_alloc();
    kube_arena_init(&arena, &alloc, 64u << 20);
    kube_random_init(&r, 1);

    for (i = 0; i < RECORD_ROUNDS; i++) {
        kube_arena_reset(&arena);
        record_random_object(&r, &arena, &object);
        record = zone_test_encode(&object);

        assert_int_equal(kube_record_validate(record, record->size), KUBE_OK);
        assert_int_equal(kube_record_decode(&arena, record, record->size,
                                            &decoded), KUBE_OK);
        record_assert_equal(&object, &decoded);

        assert_int_equal(kube_record_id(record, record->size, &id), KUBE_OK);
        record_assert_str(id.meta.name, kube_object_meta(&object)->name);
        record_assert_str(id.meta.ns, kube_object_meta(&object)->ns);
        record_assert_str(id.meta.rv, kube_object_meta(&object)->rv);

        again = zone_test_encode(&decoded);
        assert_int_equal(again->size, record->size);
        assert_memory_equal(again, record, record->size);

        free(again);
        free(record);
    }

    kube_arena_done(&arena);
}


static void
test_record_same_is_content(void **state)
{
    kube_digest_t   d[3];
    kube_record_t  *a, *b, *c;

    (void) state;
    a = zone_test_slice("shop", "web-1", "web", 7, 1, 5);
    b = zone_test_slice("shop", "web-1", "web", 100008, 1, 5);
    c = zone_test_slice("shop", "web-1", "web", 7, 2, 5);
    b->revision = 99;
    b->flags = KUBE_RECORD_F_STATE_FILE;

    assert_true(kube_record_same(a, b));
    assert_false(kube_record_same(a, c));

    d[0] = kube_record_digest(a);
    d[1] = kube_record_digest(b);
    d[2] = kube_record_digest(c);
    assert_memory_equal(&d[0], &d[1], sizeof(kube_digest_t));
    assert_memory_not_equal(&d[0], &d[2], sizeof(kube_digest_t));

    /* what may change without sealing anew */
    assert_int_equal(kube_record_validate(b, b->size), KUBE_OK);

    free(a);
    free(b);
    free(c);
}


/* The bytes are put at the very end of a block, so that ASan sees a step. */
static void
record_try(const unsigned char *bytes, size_t len, bool *valid)
{
    void              *exact;
    kube_alloc_t       alloc;
    kube_arena_t       arena;
    kube_object_t      object;
    kube_record_id_t   id;

    alloc = record_alloc();
    kube_arena_init(&arena, &alloc, 4u << 20);

    exact = malloc(len != 0 ? len : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, len);

    *valid = (kube_record_validate(exact, len) == KUBE_OK);

    if (*valid) {
        assert_int_equal(kube_record_id(exact, len, &id), KUBE_OK);
        assert_int_equal(kube_record_decode(&arena, exact, len, &object),
                         KUBE_OK);
    } else {
        (void) !kube_record_id(exact, len, &id);
        (void) !kube_record_decode(&arena, exact, len, &object);
    }

    kube_arena_done(&arena);
    free(exact);
}


/* flags, revision, entry and outdated are the zone's to change. */
static bool
record_byte_is_covered(size_t at)
{
    return !(at >= offsetof(kube_record_t, flags)
             && at < offsetof(kube_record_t, check))
           && !(at >= offsetof(kube_record_t, outdated)
                && at < sizeof(kube_record_t));
}


static void
record_damage(const kube_record_t *record)
{
    bool            valid;
    size_t          i;
    unsigned        bit;
    unsigned char  *bytes;

    bytes = malloc(record->size);
    assert_non_null(bytes);

    for (i = 0; i < record->size; i++) {
        memcpy(bytes, record, record->size);
        record_try(bytes, i, &valid);
        assert_false(valid);

        for (bit = 0; bit < 8; bit++) {
            bytes[i] = (unsigned char) (((const unsigned char *) record)[i]
                                        ^ (1u << bit));
            record_try(bytes, record->size, &valid);

            if (record_byte_is_covered(i)) {
                assert_false(valid);
            }
        }
    }

    free(bytes);
}


static void
test_record_damaged(void **state)
{
    kube_record_t  *record;

    (void) state;
    record = zone_test_slice("shop", "web-1", "web", 7, 1, 8);
    record_damage(record);
    free(record);

    record = zone_test_service("shop", "web", 7, 1);
    record_damage(record);
    free(record);
}


/* Content that is damaged and sealed again: decode stands alone. */
static void
test_record_hostile_content(void **state)
{
    bool            valid;
    unsigned        i, k;
    kube_alloc_t    alloc;
    kube_arena_t    arena;
    kube_random_t   r;
    kube_object_t   object;
    kube_record_t  *record;
    unsigned char  *content;

    (void) state;
    alloc = record_alloc();
    kube_arena_init(&arena, &alloc, 64u << 20);
    kube_random_init(&r, 2);

    for (i = 0; i < RECORD_ROUNDS; i++) {
        kube_arena_reset(&arena);
        record_random_object(&r, &arena, &object);
        record = zone_test_encode(&object);
        content = (unsigned char *) (record + 1);

        for (k = 0; k < 1 + i % RECORD_DAMAGE; k++) {
            content[kube_random_next(&r) % record->content_size] =
                (unsigned char) kube_random_next(&r);
        }

        record->check = record_check(record, content,
                                     kube_record_base(record));
        record_try((unsigned char *) record, record->size, &valid);
        free(record);
    }

    kube_arena_done(&arena);
}


static void
test_record_limits(void **state)
{
    char              text[300];
    size_t            i;
    kube_port_t       ports[1];
    kube_object_t     o;
    kube_endpoint_t   eps[1];

    (void) state;
    memset(text, 'a', sizeof(text));
    memset(&o, 0, sizeof(kube_object_t));
    memset(ports, 0, sizeof(ports));
    memset(eps, 0, sizeof(eps));

    o.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    o.u.slice.meta.ns = KUBE_STR("n");
    o.u.slice.meta.name = KUBE_STR("s");
    o.u.slice.ports = ports;
    o.u.slice.ports_n = 1;
    o.u.slice.endpoints = eps;
    o.u.slice.endpoints_n = 1;
    assert_int_not_equal(kube_record_size(&o), 0);

    for (i = 0; i < 9; i++) {
        kube_str_t  *s[9] = {
            &o.u.slice.meta.ns, &o.u.slice.meta.name, &o.u.slice.meta.uid,
            &o.u.slice.meta.rv, &o.u.slice.service, &ports[0].name,
            &eps[0].pod, &eps[0].node, &eps[0].zone
        };
        kube_str_t   was;

        was = *s[i];
        *s[i] = (kube_str_t) { text, 256 };
        assert_int_equal(kube_record_size(&o), 0);
        *s[i] = was;
    }

    o.u.slice.meta.name = KUBE_STR_NULL;
    assert_int_equal(kube_record_size(&o), 0);
    o.u.slice.meta.name = KUBE_STR("s");

    o.u.slice.endpoints_n = KUBE_SLICE_ENDPOINTS_MAX + 1;
    assert_int_equal(kube_record_size(&o), 0);
    o.u.slice.endpoints_n = 1;

    o.u.slice.ports_n = KUBE_SLICE_PORTS_MAX + 1;
    assert_int_equal(kube_record_size(&o), 0);
}


/* Where the record has no room nothing is written beyond. */
static void
test_record_write(void **state)
{
    size_t           size, cap;
    kube_object_t    o;
    unsigned char   *exact, *small;
    kube_endpoint_t  eps[3];

    (void) state;
    memset(&o, 0, sizeof(kube_object_t));
    memset(eps, 0, sizeof(eps));
    eps[0].node = KUBE_STR("node-1");
    eps[1].node = KUBE_STR("node-2");
    eps[2].node = KUBE_STR("node-1");
    eps[1].pod = KUBE_STR("web-abc");
    eps[2].pod = KUBE_STR("web-abd");

    o.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    o.u.slice.meta.ns = KUBE_STR("shop");
    o.u.slice.meta.name = KUBE_STR("web-1");
    o.u.slice.meta.rv = KUBE_STR("1234");
    o.u.slice.endpoints = eps;
    o.u.slice.endpoints_n = 3;

    size = kube_record_size(&o);
    exact = malloc(size);
    assert_non_null(exact);
    assert_int_equal(kube_record_write(&o, exact, size), size);
    assert_int_equal(kube_record_validate(exact, size), KUBE_OK);

    for (cap = 0; cap < size; cap++) {
        small = malloc(cap + 1);
        assert_non_null(small);
        assert_int_equal(kube_record_write(&o, small, cap), size);
        free(small);
    }

    free(exact);
}


static void
test_record_refused(void **state)
{
    char              text[300];
    size_t            size;
    kube_record_t    *record;
    kube_record_id_t  id;

    (void) state;
    record = malloc(KUBE_RECORD_REFUSED_MAX);
    assert_non_null(record);
    memset(&id, 0, sizeof(id));
    id.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    id.meta.name = KUBE_STR("x");
    assert_int_equal(kube_record_refused_encode(&id, record), 0);

    /* as long as can be; what is too long is cut or left out */
    memset(text, 'a', sizeof(text));
    id.meta.ns = (kube_str_t) { text, KUBE_NAMESPACE_LEN_MAX };
    id.meta.name = (kube_str_t) { text, KUBE_NAME_LEN_MAX };
    id.meta.rv = (kube_str_t) { text, KUBE_RV_LEN_MAX };
    id.reason = (kube_str_t) { text, sizeof(text) };
    size = kube_record_refused_encode(&id, record);
    assert_int_equal(size, KUBE_RECORD_REFUSED_MAX);
    assert_int_equal(kube_record_validate(record, size), KUBE_OK);
    assert_int_equal(kube_record_id(record, size, &id), KUBE_OK);
    assert_int_equal(id.reason.len, KUBE_RECORD_REASON_MAX);

    id.meta.rv = (kube_str_t) { text, KUBE_RV_LEN_MAX + 1 };
    id.meta.ns = KUBE_STR("shop");
    id.meta.name = KUBE_STR("big");
    assert_int_not_equal(kube_record_refused_encode(&id, record), 0);
    assert_int_equal(kube_record_id(record, record->size, &id), KUBE_OK);
    assert_int_equal(id.meta.rv.len, 0);

    id.meta.ns = KUBE_STR("shop");
    id.meta.name = KUBE_STR("big");
    id.meta.rv = KUBE_STR("77");
    id.reason = KUBE_STR("zone_full");
    size = kube_record_refused_encode(&id, record);
    assert_int_equal(size, record->size);
    assert_int_equal(kube_record_validate(record, record->size), KUBE_OK);
    assert_int_equal(kube_record_id(record, record->size, &id), KUBE_OK);
    assert_int_equal(id.resource, KUBE_RESOURCE_ENDPOINTSLICES);
    record_assert_str(id.meta.ns, KUBE_STR("shop"));
    record_assert_str(id.meta.name, KUBE_STR("big"));
    record_assert_str(id.meta.rv, KUBE_STR("77"));
    record_assert_str(id.reason, KUBE_STR("zone_full"));
    free(record);
}


static kube_rc_t
record_decode(kube_alloc_t *alloc, void *ctx)
{
    kube_rc_t       rc;
    kube_arena_t    arena;
    kube_object_t   object;
    kube_record_t  *record = ctx;

    kube_arena_init(&arena, alloc, 16u << 20);
    rc = kube_record_decode(&arena, record, record->size, &object);
    kube_arena_done(&arena);

    return rc;
}


static void
test_record_no_memory(void **state)
{
    size_t          max;
    kube_rc_t       rc;
    kube_alloc_t    alloc;
    kube_arena_t    arena;
    kube_object_t   object;
    kube_record_t  *record;

    (void) state;
    record = zone_test_slice("shop", "web-1", "web", 7, 1, 100);
    ALLOC_TEST_EACH(record_decode, record);

    /* an arena that ends anywhere: never mistaken for broken bytes */
    alloc = record_alloc();

    for (max = 64; max < 40000; max += 16) {
        kube_arena_init(&arena, &alloc, max);
        rc = kube_record_decode(&arena, record, record->size, &object);
        assert_true(rc == KUBE_NOMEM || rc == KUBE_OK);
        kube_arena_done(&arena);
    }

    free(record);
}


static void
test_record_sizes(void **state)
{
    kube_record_t  *s, *e10, *e100;

    (void) state;
    s = zone_test_service("tenant-0001", "service-0001", 123456, 80);
    e10 = zone_test_slice("tenant-0001", "service-0001-abcde", "service-0001",
                          123456, 4, 10);
    e100 = zone_test_slice("tenant-0001", "service-0001-abcde",
                           "service-0001", 123456, 4, 100);

    print_message("record: Service %u bytes, slice of 10 %u (%.1f each), "
                  "of 100 %u (%.1f each)\n", s->size, e10->size,
                  e10->size / 10.0, e100->size, e100->size / 100.0);

    assert_true(e10->size <= 400);
    assert_true(e100->size <= 2000);

    free(s);
    free(e10);
    free(e100);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_record_round_trip),
        cmocka_unit_test(test_record_same_is_content),
        cmocka_unit_test(test_record_damaged),
        cmocka_unit_test(test_record_hostile_content),
        cmocka_unit_test(test_record_limits),
        cmocka_unit_test(test_record_write),
        cmocka_unit_test(test_record_refused),
        cmocka_unit_test(test_record_no_memory),
        cmocka_unit_test(test_record_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
