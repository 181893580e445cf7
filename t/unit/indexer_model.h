/*
 * indexer_model - a cluster that changes at random, what an indexer and a
 * publisher are told of it, and what readers must find then.
 *
 * Not part of the product.  For test_indexer_model and t/fuzz only, which says
 * where the history comes from.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_INDEXER_MODEL_H
#define KUBE_INDEXER_MODEL_H


#include "indexer_test.h"


#define SERVICES  5     /* names in each namespace */
#define SLICES    9
#define SPACES    2
#define OBJECTS   (SPACES * (SERVICES + SLICES))

/* Longer than any history is, but for the leaps of model_expire(). */
#define OUTDATED_MS  100000000u

static const char  *const spaces[SPACES] = { "shop", "infra" };
static const char  *const names[SERVICES] = { "a", "b", "c", "d", "e" };

typedef struct {
    char      text[2048];
    char      uid[KUBE_UID_LEN_MAX + 1];
    uint64_t  revision;
} seen_t;

/* 0 to n - 1: where a history comes from. */
typedef unsigned (*model_pick_pt)(void *ctx, unsigned n);

/* What callbacks have told; content as a digest. */
typedef struct {
    bool           held;
    kube_digest_t  digest;
} shadow_t;

typedef struct {
    it_t           it;
    model_pick_pt  pick;
    void          *pick_ctx;
    unsigned       weight;               /* endpoints are so many times more */
    it_object_t    objects[OBJECTS];
    it_object_t    served[OBJECTS];      /* the last good state of each */
    bool           refused[OBJECTS];     /* by the last event: it is a name,
                                            or what is served is outdated */
    bool           lost;                 /* nothing is refused for now */
    bool           dirty;                /* something applied, not published */
    seen_t         seen[SPACES * SERVICES];

    /* since the last check: which Services had another content for a while */
    it_object_t    before[OBJECTS];
    bool           before_refused[OBJECTS];
    bool           disturbed[OBJECTS];
    shadow_t       shadow[OBJECTS];
    uint64_t       untouched;            /* revisions compared */
} model_t;


static inline unsigned
pick(model_t *m, unsigned n)
{
    return m->pick(m->pick_ctx, n);
}


static inline unsigned
model_index(kube_resource_t resource, kube_str_t ns, kube_str_t name)
{
    unsigned  space, i;

    space = kube_str_eq(ns, kube_str(spaces[0])) ? 0 : 1;
    assert_true(kube_str_eq(ns, kube_str(spaces[space])));

    if (resource == KUBE_RESOURCE_SERVICES) {
        i = (unsigned) (name.data[0] - 'a');

    } else {
        i = SERVICES + (unsigned) (name.data[1] - '0');
    }

    return space * (SERVICES + SLICES) + i;
}


static inline void
model_change(void *ctx, kube_change_t change, const kube_record_t *record)
{
    model_t           *m = ctx;
    unsigned           i;
    kube_digest_t      digest;
    kube_record_id_t   id;

    assert_int_equal(kube_record_validate(record, record->size), KUBE_OK);
    assert_int_equal(kube_record_id(record, record->size, &id), KUBE_OK);
    i = model_index(id.resource, id.meta.ns, id.meta.name);
    digest = kube_record_digest(record);

    switch (change) {
    case KUBE_CHANGE_ADD:
        assert_false(m->shadow[i].held);
        break;

    case KUBE_CHANGE_UPDATE:
        assert_true(m->shadow[i].held);
        assert_true(m->shadow[i].digest.lo != digest.lo);
        break;

    case KUBE_CHANGE_DELETE:
    case KUBE_CHANGE_REFUSE:
        assert_true(m->shadow[i].held);
        assert_true(m->shadow[i].digest.lo == digest.lo);
    }

    m->shadow[i].held = (change == KUBE_CHANGE_ADD
                         || change == KUBE_CHANGE_UPDATE);
    m->shadow[i].digest = digest;
}


/* The seams of conf but those to listeners are the caller's. */
static inline void
model_init(model_t *m, size_t zone, const kube_publisher_conf_t *conf,
    model_pick_pt pick_from, void *pick_ctx)
{
    unsigned      i, space;
    it_object_t  *o;

    memset(m, 0, sizeof(model_t));
    m->pick = pick_from;
    m->pick_ctx = pick_ctx;
    m->weight = 1;

    it_zone(&m->it, zone);
    m->it.conf = *conf;
    m->it.conf.change = model_change;
    m->it.conf.change_ctx = m;
    m->it.conf.max_outdated_ms = OUTDATED_MS;
    assert_int_equal(it_start(&m->it), KUBE_OK);
    assert_int_equal(it_scopes(&m->it), KUBE_OK);
    assert_int_equal(kube_indexer_load(m->it.ix, 1), KUBE_OK);

    for (i = 0; i < OBJECTS; i++) {
        o = &m->objects[i];
        space = i / (SERVICES + SLICES);

        if (i % (SERVICES + SLICES) < SERVICES) {
            o->resource = KUBE_RESOURCE_SERVICES;
            snprintf(o->name, sizeof(o->name), "%s",
                     names[i % (SERVICES + SLICES)]);

        } else {
            o->resource = KUBE_RESOURCE_ENDPOINTSLICES;
            snprintf(o->name, sizeof(o->name), "s%u",
                     i % (SERVICES + SLICES) - SERVICES);
        }

        snprintf(o->ns, sizeof(o->ns), "%s", spaces[space]);
    }
}


/* The cluster changes; nobody is told yet.  Returns which object did. */
static inline unsigned
model_mutate(model_t *m)
{
    unsigned      i;
    it_object_t  *o;

    i = pick(m, OBJECTS);
    o = &m->objects[i];
    it_stamp(&m->it, o);

    if (!o->there) {
        o->there = true;
        o->version = m->it.rv;
        snprintf(o->uid, sizeof(o->uid), "u%u", m->it.rv);

    } else {

        switch (pick(m, 6)) {
        case 0:
            o->there = false;
            return i;

        case 5:
            /* deleted and made anew, as one event or item of a list tells */
            snprintf(o->uid, sizeof(o->uid), "u%u", m->it.rv);
            o->version = m->it.rv;
            break;

        case 1:
            return i;       /* a version only */

        default:
            o->version = m->it.rv;
        }
    }

    if (o->resource == KUBE_RESOURCE_ENDPOINTSLICES) {
        o->endpoints = m->weight * pick(m, 8);

        if (o->service[0] == '\0' || pick(m, 3) == 0) {
            snprintf(o->service, sizeof(o->service), "%s",
                     pick(m, 8) == 0 ? "" : names[pick(m, SERVICES)]);
        }
    }

    return i;
}


static inline void
model_disturb(model_t *m, const it_object_t *o)
{
    unsigned  i;

    for (i = 0; i < OBJECTS; i++) {
        if (m->objects[i].resource == KUBE_RESOURCE_SERVICES
            && strcmp(m->objects[i].ns, o->ns) == 0
            && strcmp(m->objects[i].name,
                      o->resource == KUBE_RESOURCE_SERVICES ? o->name
                                                            : o->service)
               == 0)
        {
            m->disturbed[i] = true;
        }
    }
}


/* More than a version came of it. */
static inline void
model_compare(model_t *m, unsigned i)
{
    const it_object_t  *o, *b;

    o = &m->objects[i];
    b = &m->before[i];

    if (o->there == b->there
        && o->version == b->version
        && o->endpoints == b->endpoints
        && strcmp(o->uid, b->uid) == 0
        && strcmp(o->service, b->service) == 0
        && !m->refused[i]
        && !m->before_refused[i])
    {
        return;
    }

    model_disturb(m, o);
    model_disturb(m, b);
}


/* One delta of the object as it is, or as an error would have it. */
static inline void
model_send(model_t *m, unsigned i, bool listed)
{
    it_object_t        *o;
    kube_delta_kind_t   kind;

    o = &m->objects[i];
    m->refused[i] = false;
    m->dirty = true;

    if (!o->there) {
        kind = KUBE_DELTA_DELETED;
        m->served[i].there = false;

    } else if (!m->lost && pick(m, 8) == 0) {
        kind = KUBE_DELTA_REFUSED;
        m->refused[i] = true;

        if (strcmp(m->served[i].uid, o->uid) != 0) {
            m->served[i].there = false;
        }

    } else {
        kind = listed ? KUBE_DELTA_REPLACED : KUBE_DELTA_UPDATED;
        m->served[i] = *o;
    }

    model_compare(m, i);
    assert_int_equal(it_apply(&m->it, kind, o), KUBE_OK);
}


/* As much of a list as n items; the rest never comes. */
static inline void
model_list_items(model_t *m, unsigned slot, unsigned n)
{
    unsigned  i;

    IT_BEGIN(&m->it, slot);
    m->dirty = true;

    for (i = 0; i < OBJECTS && n != 0; i++) {
        if (m->objects[i].there && it_slot(&m->objects[i]) == slot) {
            model_send(m, i, true);
            n--;

            if (pick(m, 4) == 0) {
                kube_publisher_run(m->it.publisher, 1 + pick(m, 3),
                                     m->it.now_ms, 0);
            }
        }
    }
}


static inline void
model_list(model_t *m, unsigned slot)
{
    unsigned  i;

    if (pick(m, 3) == 0) {
        model_list_items(m, slot, pick(m, 10));
    }

    model_list_items(m, slot, OBJECTS);
    IT_SYNC(&m->it, slot);

    for (i = 0; i < OBJECTS; i++) {
        if (!m->objects[i].there && it_slot(&m->objects[i]) == slot) {
            m->refused[i] = false;
            m->served[i].there = false;
        }
    }
}


/* Time passes, and what is outdated is a name. */
static inline void
model_expire(model_t *m)
{
    unsigned  i;

    m->it.now_ms += OUTDATED_MS + 10000;

    for (i = 0; i < OBJECTS; i++) {
        if (m->refused[i] && m->served[i].there) {
            m->served[i].there = false;
            model_disturb(m, &m->served[i]);
        }
    }
}


/* Objects that changed while nobody watched are known by a list only. */
static inline void
model_relist(model_t *m)
{
    unsigned  n;

    for (n = pick(m, 10); n != 0; n--) {
        (void) model_mutate(m);
    }

    model_list(m, IT_SERVICES);
    model_list(m, IT_SLICES);
}


static inline void
model_takeover(model_t *m)
{
    bool  lost;

    lost = m->dirty;
    it_takeover(&m->it);

    /* a writer that dies unpublished has not moved its version: again */
    if (lost) {
        m->lost = true;
        model_list(m, IT_SERVICES);
        model_list(m, IT_SLICES);
        m->lost = false;
    }
}


static inline void
model_expect(const model_t *m, unsigned service, char *text, size_t size)
{
    size_t              len;
    unsigned            i, first;
    const it_object_t  *o, *s;

    o = &m->served[service];
    snprintf(text, size, "-");

    if (!o->there) {
        return;
    }

    len = (size_t) snprintf(text, size, "%u", o->version % 65535);
    first = service / (SERVICES + SLICES) * (SERVICES + SLICES) + SERVICES;

    for (i = first; i < first + SLICES; i++) {
        s = &m->served[i];

        if (s->there && strcmp(s->service, o->name) == 0) {
            len += (size_t) snprintf(text + len, size - len, " %s=%u*%u",
                                     s->name,
                                     s->endpoints != 0 ? s->version & 0xffff
                                                       : 0,
                                     s->endpoints);
        }
    }
}


static inline void
model_check_service(model_t *m, unsigned service)
{
    char                text[2048], expected[2048];
    seen_t             *seen;
    uint64_t            revision;
    const it_object_t  *o;

    o = m->served[service].there ? &m->served[service] : &m->objects[service];
    seen = &m->seen[service / (SERVICES + SLICES) * SERVICES
                    + service % (SERVICES + SLICES)];
    revision = 0;

    model_expect(m, service, expected, sizeof(expected));
    it_read(&m->it, o->ns, o->name, text, sizeof(text), &revision);
    assert_string_equal(text, expected);

    if (strcmp(text, "-") == 0) {
        /* void */

    } else if (strcmp(seen->text, text) != 0
               || strcmp(seen->uid, o->uid) != 0)
    {
        assert_true(revision != seen->revision);

    } else if (!m->disturbed[service]) {
        assert_int_equal(revision, seen->revision);
        m->untouched++;
    }

    memcpy(seen->text, text, sizeof(text));
    memcpy(seen->uid, o->uid, sizeof(o->uid));
    seen->revision = revision;
}


static inline void
model_check_sums(model_t *m)
{
    bool              held;
    unsigned          i, slot, unheld;
    kube_digest_t     digest;
    kube_record_t    *record;
    kube_scope_sum_t  sum, expected;

    for (slot = 0; slot < 2; slot++) {
        memset(&expected, 0, sizeof(kube_scope_sum_t));
        unheld = 0;

        for (i = 0; i < OBJECTS; i++) {

            if (it_slot(&m->objects[i]) != slot) {
                continue;
            }

            held = m->served[i].there;
            assert_int_equal(m->shadow[i].held, held);

            if (held) {
                record = it_record(&m->served[i]);
                digest = kube_record_digest(record);
                free(record);
                assert_true(m->shadow[i].digest.lo == digest.lo);
            }

            if (held && !m->refused[i]) {
                kube_digest_add(&expected.digest, digest);
                expected.count++;
            }

            expected.refused += m->refused[i];
            unheld += (m->refused[i] && !held);
        }

        sum = it_sum(&m->it, slot);
        assert_int_equal(sum.count, expected.count);
        assert_int_equal(sum.refused, expected.refused);
        assert_true(sum.digest.lo == expected.digest.lo
                    && sum.digest.hi == expected.digest.hi);
        assert_int_equal(sum.refused_unnamed, 0);
        assert_false(kube_publisher_pending(m->it.publisher, slot));
        assert_int_equal(it_refused(&m->it, (kube_resource_t) slot, NULL, 0),
                         unheld);
    }
}


static inline void
model_check(model_t *m)
{
    unsigned           i;
    kube_zone_usage_t  usage;

    it_publish(&m->it);
    m->dirty = false;

    for (i = 0; i < OBJECTS; i++) {
        if (m->objects[i].resource == KUBE_RESOURCE_SERVICES) {
            model_check_service(m, i);
        }
    }

    model_check_sums(m);

    memcpy(m->before, m->objects, sizeof(m->before));
    memcpy(m->before_refused, m->refused, sizeof(m->before_refused));
    memset(m->disturbed, 0, sizeof(m->disturbed));

    kube_zone_usage(&m->it.zone, &usage);
    assert_int_equal(usage.refused, it_sum(&m->it, 0).refused
                                    + it_sum(&m->it, 1).refused);
    assert_int_equal(usage.entries_used,
                     it_sum(&m->it, 0).count + it_sum(&m->it, 1).count
                     + it_sum(&m->it, 0).refused
                     + it_sum(&m->it, 1).refused);
}


static inline void
model_step(model_t *m)
{
    unsigned  n;

    switch (pick(m, 12)) {
    case 0:
        model_relist(m);
        break;

    case 1:
        model_takeover(m);
        break;

    case 2:
        model_expire(m);
        break;

    case 3:
        /* a list that never ends, then one that does */
        n = pick(m, 10);
        model_list_items(m, pick(m, 2), n);

        if (pick(m, 2) == 0) {
            model_takeover(m);

        } else {
            model_relist(m);
        }

        break;

    default:
        for (n = 1 + pick(m, 6); n != 0; n--) {
            model_send(m, model_mutate(m), false);

            if (pick(m, 3) == 0) {
                kube_publisher_run(m->it.publisher, 1 + pick(m, 2),
                                     m->it.now_ms, 0);
            }
        }
    }

    m->it.now_ms += pick(m, 4000);
}


#endif /* KUBE_INDEXER_MODEL_H */
