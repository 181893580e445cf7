/*
 * fuzz_indexer - histories of deltas against the model of t/unit, in a zone
 * with room for all of it, or in one that fills.
 *
 * With room the model says all.  In a full zone it cannot know what yields; but
 * what is held as current is the newest there is, what is outdated is of the
 * same object, whatever lacks is named or counted, readers find what is held
 * and nothing else, and what callbacks told is true.  A successor finds the
 * same.  Once the cluster has become small, lists bring all of it back.
 *
 * The first two bytes choose the zone and the configuration; the rest decides
 * where the model asks for a random number.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "fuzz.h"
#include "indexer_model.h"


#define FUZZ_STEPS    20
#define FUZZ_ROOM     (256u << 10)     /* for all of the model */
#define FUZZ_WEIGHT   40               /* of up to 280 endpoints a slice */

/* What the zone has of each object of the model. */
typedef enum {
    FUZZ_NOTHING = 0,
    FUZZ_CURRENT,
    FUZZ_OUTDATED,
    FUZZ_NAME
} fuzz_state_t;

typedef struct {
    fuzz_state_t      state[OBJECTS];
    it_object_t       held[OBJECTS];
    kube_scope_sum_t  sums[2];
    char              texts[OBJECTS][2048];
} fuzz_view_t;


static unsigned
fuzz_pick_cb(void *ctx, unsigned n)
{
    return fuzz_pick(ctx, n);
}


/* As the truth, from a record. */
static void
view_object(const kube_record_t *record, it_object_t *o)
{
    kube_arena_t    arena;
    kube_object_t   object;
    kube_slice_t   *slice;

    kube_arena_init(&arena, &fuzz_heap, 16u << 20);
    assert_int_equal(kube_record_decode(&arena, record, record->size,
                                        &object), KUBE_OK);
    memset(o, 0, sizeof(it_object_t));
    o->there = true;
    o->resource = object.resource;
    snprintf(o->name, sizeof(o->name), "%.*s",
             (int) kube_object_meta(&object)->name.len,
             kube_object_meta(&object)->name.data);
    snprintf(o->uid, sizeof(o->uid), "%.*s",
             (int) kube_object_meta(&object)->uid.len,
             kube_object_meta(&object)->uid.data);
    snprintf(o->rv, sizeof(o->rv), "%.*s",
             (int) kube_object_meta(&object)->rv.len,
             kube_object_meta(&object)->rv.data);

    if (object.resource == KUBE_RESOURCE_SERVICES) {
        o->version = object.u.service.ports[0].port - 1u;

    } else {
        slice = &object.u.slice;
        o->endpoints = (unsigned) slice->endpoints_n;
        snprintf(o->service, sizeof(o->service), "%.*s",
                 (int) slice->service.len, slice->service.data);

        if (slice->endpoints_n != 0) {
            o->version = slice->endpoints[0].address.bytes[1] * 256u
                         + slice->endpoints[0].address.bytes[2];
        }
    }

    kube_arena_done(&arena);
}


static void
view_record(fuzz_view_t *v, const model_t *m, const kube_record_t *record)
{
    unsigned            i, slot;
    kube_digest_t       digest;
    kube_record_id_t    id;

    assert_int_equal(kube_record_id(record, record->size, &id), KUBE_OK);
    i = model_index(id.resource, id.meta.ns, id.meta.name);
    slot = (id.resource == KUBE_RESOURCE_SERVICES) ? IT_SERVICES : IT_SLICES;
    assert_int_equal(v->state[i], FUZZ_NOTHING);

    if (record->kind == KUBE_RECORD_REFUSED) {
        v->state[i] = FUZZ_NAME;
        v->sums[slot].refused++;
        return;
    }

    view_object(record, &v->held[i]);
    digest = kube_record_digest(record);
    assert_true(m->shadow[i].held && m->shadow[i].digest.lo == digest.lo);

    if (record->flags & KUBE_RECORD_F_OUTDATED) {
        v->state[i] = FUZZ_OUTDATED;
        v->sums[slot].refused++;

    } else {
        v->state[i] = FUZZ_CURRENT;
        v->sums[slot].count++;
        kube_digest_add(&v->sums[slot].digest, digest);
    }
}


/* What a reader is to find follows from what is held. */
static void
view_read(fuzz_view_t *v, model_t *m)
{
    char          text[2048];
    unsigned      i;
    it_object_t   served[OBJECTS];

    memcpy(served, m->served, sizeof(served));
    memcpy(m->served, v->held, sizeof(served));

    for (i = 0; i < OBJECTS; i++) {
        if (m->objects[i].resource == KUBE_RESOURCE_SERVICES) {
            model_expect(m, i, text, sizeof(text));
            it_read(&m->it, m->objects[i].ns, m->objects[i].name, v->texts[i],
                    sizeof(v->texts[i]), NULL);
            assert_string_equal(v->texts[i], text);
        }
    }

    memcpy(m->served, served, sizeof(served));
}


/* Of what is published, nothing pending. */
static void
view_make(fuzz_view_t *v, model_t *m)
{
    unsigned              i, slot;
    uint32_t              e;
    kube_scope_sum_t      sum;
    const kube_record_t  *record;

    memset(v, 0, sizeof(fuzz_view_t));

    for (e = kube_zone_writer_next(m->it.writer, 0);
         e != 0;
         e = kube_zone_writer_next(m->it.writer, e))
    {
        record = kube_zone_published(m->it.writer, e);
        assert_non_null(record);
        view_record(v, m, record);
    }

    for (i = 0; i < OBJECTS; i++) {
        assert_int_equal(m->shadow[i].held, v->state[i] == FUZZ_CURRENT
                                            || v->state[i] == FUZZ_OUTDATED);
    }

    view_read(v, m);

    for (slot = 0; slot < 2; slot++) {
        sum = it_sum(&m->it, slot);
        assert_int_equal(sum.count, v->sums[slot].count);
        assert_int_equal(sum.refused, v->sums[slot].refused);
        assert_true(sum.digest.lo == v->sums[slot].digest.lo
                    && sum.digest.hi == v->sums[slot].digest.hi);
        assert_false(kube_publisher_pending(m->it.publisher, slot));
        v->sums[slot].refused_unnamed = sum.refused_unnamed;
    }
}


static void
check_held(const model_t *m, const fuzz_view_t *v, unsigned i)
{
    const it_object_t  *o, *held;

    o = &m->objects[i];
    held = &v->held[i];

    /* of what is there, and of no other life of that name */
    assert_true(o->there);
    assert_string_equal(held->uid, o->uid);

    /* the same version may be refused first, and then have no room */
    if (v->state[i] == FUZZ_OUTDATED) {
        assert_true(strtoul(held->rv, NULL, 10) <= strtoul(o->rv, NULL, 10));
        return;
    }

    assert_false(m->refused[i]);
    assert_string_equal(held->rv, o->rv);
    assert_string_equal(held->service, o->service);
    assert_int_equal(held->endpoints, o->endpoints);
    assert_int_equal(held->version,
                     o->resource == KUBE_RESOURCE_SERVICES
                     ? o->version % 65535
                     : o->endpoints != 0 ? o->version & 0xffff : 0);
}


static void
fuzz_check_full(model_t *m)
{
    unsigned             i, slot;
    uint64_t             unnamed[2];

    static fuzz_view_t  view;

    it_publish(&m->it);
    m->dirty = false;
    view_make(&view, m);
    memset(unnamed, 0, sizeof(unnamed));

    for (i = 0; i < OBJECTS; i++) {
        switch (view.state[i]) {

        case FUZZ_CURRENT:
        case FUZZ_OUTDATED:
            check_held(m, &view, i);
            break;

        case FUZZ_NAME:
            assert_true(m->objects[i].there);
            break;

        default:
            unnamed[it_slot(&m->objects[i])] += m->objects[i].there;
        }
    }

    for (slot = 0; slot < 2; slot++) {
        assert_true(unnamed[slot] <= view.sums[slot].refused_unnamed);
    }
}


/*
 * A slice whose Service is refused: no reader finds it.  A successor cannot
 * tell it from what is left of an eviction, and ends that.
 */
static bool
view_is_left(const fuzz_view_t *v, const model_t *m, unsigned i)
{
    unsigned  first, service;

    first = i - i % (SERVICES + SLICES);

    if (m->objects[i].resource == KUBE_RESOURCE_SERVICES
        || !v->held[i].there
        || v->held[i].service[0] == '\0')
    {
        return false;
    }

    service = first + (unsigned) (v->held[i].service[0] - 'a');

    return v->state[service] == FUZZ_NAME;
}


/* Before and after: readers, and each object; view_make() sees to the sums. */
static void
fuzz_check_takeover(model_t *m)
{
    bool      left;
    unsigned  i;

    static fuzz_view_t  before, after;

    it_publish(&m->it);
    m->dirty = false;
    view_make(&before, m);
    it_takeover(&m->it);
    view_make(&after, m);

    for (i = 0; i < OBJECTS; i++) {
        left = view_is_left(&before, m, i) && !after.held[i].there;
        assert_true(left || after.state[i] == before.state[i]);
        assert_true(left || memcmp(&before.held[i], &after.held[i],
                                   sizeof(it_object_t)) == 0);
        assert_string_equal(before.texts[i], after.texts[i]);
    }

    assert_int_equal(kube_zone_validate(m->it.mem, m->it.size), KUBE_OK);
}


/*
 * As the informer does where room has returned, but by lists that replace: not
 * all that changed came as events.
 */
static void
fuzz_heal(model_t *m)
{
    unsigned         slot, idle, lists;
    kube_room_ask_t  ask;

    lists = 0;

    for (idle = 0; idle < 3; idle++) {

        for (slot = 0; slot < 2; slot++) {
            if (it_room_returned(&m->it, slot, &ask)) {
                model_list_items(m, slot, OBJECTS);
                IT_SYNC(&m->it, slot);
                it_publish(&m->it);
                idle = 0;

                /* lists follow room, and come to an end */
                assert_true(++lists < 200);
            }
        }

        m->it.now_ms += 2000;
        it_publish(&m->it);
    }
}


/* What is there is small now: all of it must be held after its lists. */
static void
fuzz_shrink(model_t *m)
{
    unsigned      i, round;
    it_object_t  *o;

    m->lost = true;

    for (i = 0; i < OBJECTS; i++) {
        o = &m->objects[i];

        if (o->there) {
            it_stamp(&m->it, o);
            o->version = m->it.rv;
            o->endpoints %= 3;
        }

        model_send(m, i, false);
    }

    it_publish(&m->it);

    for (round = 0; round < 2; round++) {
        model_list(m, IT_SERVICES);
        model_list(m, IT_SLICES);
        it_publish(&m->it);
    }

    memset(m->disturbed, 1, sizeof(m->disturbed));
    memset(m->seen, 0, sizeof(m->seen));
    model_check(m);
}


static void
fuzz_full(model_t *m, const fuzz_input_t *in)
{
    unsigned  step;

    m->weight = FUZZ_WEIGHT;

    for (step = 0; step < FUZZ_STEPS && in->size != 0; step++) {
        model_step(m);
        fuzz_check_full(m);

        if (pick(m, 4) == 0) {
            fuzz_check_takeover(m);
        }

        if (pick(m, 4) == 0) {
            fuzz_heal(m);
            fuzz_check_full(m);
        }
    }

    fuzz_check_takeover(m);
    fuzz_shrink(m);
}


static void
fuzz_room(model_t *m, const fuzz_input_t *in)
{
    unsigned  step;

    for (step = 0; step < FUZZ_STEPS && in->size != 0; step++) {
        model_step(m);
        model_check(m);
    }

    fuzz_check_takeover(m);
    model_check(m);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned                what;
    fuzz_input_t            in;
    kube_publisher_conf_t   conf;

    static model_t           m;
    static const kube_str_t  keys[] = { { "shop/e", 6 }, { "infra/a", 7 } };

    in = (fuzz_input_t) { data, size };
    memset(&conf, 0, sizeof(kube_publisher_conf_t));

    what = fuzz_pick(&in, 256);

    if (what & 0x10) {
        conf.static_keys = keys;
        conf.static_keys_n = 2;
    }

    conf.zone_share = (what & 0x20) ? 10 * (1 + fuzz_pick(&in, 10)) : 0;

    if (what & 0x03) {
        model_init(&m, KUBE_ZONE_SIZE_MIN + (what >> 2 & 3) * (8u << 10),
                   &conf, fuzz_pick_cb, &in);
        fuzz_full(&m, &in);

    } else {
        conf.zone_share = 0;
        model_init(&m, FUZZ_ROOM, &conf, fuzz_pick_cb, &in);
        fuzz_room(&m, &in);
    }

    it_done(&m.it);

    return 0;
}
