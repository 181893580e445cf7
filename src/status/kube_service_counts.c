/*
 * kube_service_counts - how many endpoints each Service of a zone has, by
 * state, a Service after the other.
 *
 * It prints nothing (kube_prometheus does).  Called by workers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <assert.h>
#include <string.h>

#include "kube_hash.h"
#include "kube_service_counts.h"
#include "kube_zone_reader.h"


/* Entries that one step passes over: about 20 us. */
#define COUNTS_ENTRIES  512

/* A Service whose head moves is read again so often. */
#define COUNTS_TRIES    3

/* One record; those of more are omitted. */
#define COUNTS_BYTES    (64u << 20)

#define COUNTS_SEEN     32768

static_assert(COUNTS_SEEN >= 2 * KUBE_SERVICE_COUNTS_MAX, "chains are short");


const char *
kube_service_counts_state_text(kube_service_counts_state_t state)
{
    static const char *const  texts[] = {
        [KUBE_SERVICE_COUNTS_READY] = "ready",
        [KUBE_SERVICE_COUNTS_TERMINATING] = "terminating",
        [KUBE_SERVICE_COUNTS_NOT_READY] = "not_ready"
    };

    static_assert(sizeof(texts) / sizeof(texts[0])
                  == KUBE_SERVICE_COUNTS_STATES, "each state has a text");

    return texts[state];
}


kube_rc_t
kube_service_counts_init(kube_service_counts_t *counts,
    const kube_zone_t *zone, kube_str_t ns, uint32_t limit,
    const kube_alloc_t *alloc)
{
    memset(counts, 0, sizeof(kube_service_counts_t));

    counts->zone = zone;
    counts->ns = ns;
    counts->alloc = alloc;
    counts->limit = (limit < KUBE_SERVICE_COUNTS_MAX)
                    ? limit : KUBE_SERVICE_COUNTS_MAX;

    kube_arena_init(&counts->arena, alloc, COUNTS_BYTES);
    kube_arena_init(&counts->scratch, alloc, COUNTS_BYTES);

    counts->seen = kube_zalloc(alloc, COUNTS_SEEN * sizeof(uint64_t));

    return (counts->seen != NULL) ? KUBE_OK : KUBE_NOMEM;
}


void
kube_service_counts_done(kube_service_counts_t *counts)
{
    if (counts->seen != NULL) {
        kube_free(counts->alloc, counts->seen);
        counts->seen = NULL;
    }

    kube_arena_done(&counts->scratch);
    kube_arena_done(&counts->arena);
}


/* True if a row has told of the Service; else it is remembered. */
static bool
counts_seen(kube_service_counts_t *counts)
{
    size_t                            i;
    uint64_t                          hash;
    const kube_service_counts_row_t  *row;

    row = &counts->row;

    /* 64 bits: of 10 000 Services no two have the same ones */

    hash = kube_hash64_key(counts->zone->geometry.seed, row->ns, row->name)
           | 1;

    for (i = hash / 2 % COUNTS_SEEN; counts->seen[i] != 0;
         i = (i + 1) % COUNTS_SEEN)
    {
        if (counts->seen[i] == hash) {
            return true;
        }
    }

    counts->seen[i] = hash;

    return false;
}


/* What is there now at the entry that was found: it is read from its start. */
static kube_rc_t
counts_load(kube_service_counts_t *counts)
{
    kube_rc_t             rc;
    kube_record_id_t      id;
    const kube_record_t  *record;

    kube_arena_reset(&counts->arena);
    memset(&counts->row, 0, sizeof(kube_service_counts_row_t));

    counts->service = NULL;
    counts->ref = 0;
    counts->unread = false;

    /* the head before the record: of two versions the older one is known */

    counts->head = kube_zone_head(counts->zone, counts->cursor);

    rc = kube_zone_load(counts->zone, counts->cursor, &counts->arena,
                        &record);

    if (rc == KUBE_OK) {
        rc = kube_record_id(record, record->size, &id);
    }

    if (rc == KUBE_NOT_FOUND
        || (rc == KUBE_OK
            && (record->kind != KUBE_RECORD_SERVICE
                || (counts->ns.len != 0
                    && !kube_str_eq(counts->ns, id.meta.ns)))))
    {
        return KUBE_AGAIN;
    }

    if (rc == KUBE_NOMEM && !counts->arena.full) {
        return KUBE_NOMEM;
    }

    if (rc != KUBE_OK
        || counts->rows == counts->limit
        || id.meta.ns.len > KUBE_NAMESPACE_LEN_MAX
        || id.meta.name.len > KUBE_NAME_LEN_MAX)
    {
        counts->omitted++;
        return KUBE_AGAIN;
    }

    counts->service = record;
    counts->row.ns = id.meta.ns;
    counts->row.name = id.meta.name;

    return KUBE_AGAIN;
}


static kube_rc_t
counts_find(kube_service_counts_t *counts)
{
    uint32_t              last;
    kube_rc_t             rc;
    const kube_record_t  *record;

    kube_arena_reset(&counts->arena);

    last = (counts->cursor < UINT32_MAX - COUNTS_ENTRIES)
           ? counts->cursor + COUNTS_ENTRIES : UINT32_MAX;

    rc = kube_zone_next_within(counts->zone, KUBE_RECORD_SERVICE, last,
                               &counts->cursor, &counts->arena, &record);

    if (rc != KUBE_OK) {
        return rc;
    }

    counts->tries = 0;

    return counts_load(counts);
}


static void
counts_add(kube_service_counts_row_t *row, const kube_slice_t *slice)
{
    size_t                       i;
    const kube_endpoint_t       *ep;
    kube_service_counts_state_t  state;

    for (i = 0; i < slice->endpoints_n; i++) {
        ep = &slice->endpoints[i];
        state = KUBE_SERVICE_COUNTS_NOT_READY;

        if (ep->ready) {
            state = KUBE_SERVICE_COUNTS_READY;

        } else if (ep->serving && ep->terminating) {
            state = KUBE_SERVICE_COUNTS_TERMINATING;
        }

        row->endpoints[state]++;
    }
}


static kube_rc_t
counts_slice(kube_service_counts_t *counts)
{
    kube_rc_t             rc;
    kube_object_t         object;
    const kube_ref_t     *ref;
    const kube_record_t  *record;

    ref = kube_record_refs(counts->service) + counts->ref++;

    kube_arena_reset(&counts->scratch);

    /* no checksum covers a ref: another process may have written it */

    rc = (kube_zone_head(counts->zone, ref->entry) != 0)
         ? kube_zone_load(counts->zone, ref->entry, &counts->scratch, &record)
         : KUBE_NOT_FOUND;

    if (rc == KUBE_OK && record->kind == KUBE_RECORD_SLICE) {
        rc = kube_record_decode(&counts->scratch, record, record->size,
                                &object);

        /* the entry may be another object's by now */

        if (rc == KUBE_OK
            && kube_str_eq(object.u.slice.service, counts->row.name)
            && kube_str_eq(object.u.slice.meta.ns, counts->row.ns))
        {
            counts_add(&counts->row, &object.u.slice);
            return KUBE_AGAIN;
        }
    }

    if (rc == KUBE_NOMEM && !counts->scratch.full) {
        return KUBE_NOMEM;
    }

    counts->unread = true;

    return KUBE_AGAIN;
}


static kube_rc_t
counts_end(kube_service_counts_t *counts, kube_service_counts_row_t *row)
{
    if (kube_zone_head(counts->zone, counts->cursor) != counts->head
        && ++counts->tries < COUNTS_TRIES)
    {
        return counts_load(counts);
    }

    counts->service = NULL;

    if (counts->unread) {
        counts->omitted++;
        return KUBE_AGAIN;
    }

    if (counts_seen(counts)) {
        return KUBE_AGAIN;
    }

    counts->rows++;
    *row = counts->row;

    return KUBE_OK;
}


kube_rc_t
kube_service_counts_step(kube_service_counts_t *counts,
    kube_service_counts_row_t *row)
{
    if (counts->service == NULL) {
        return counts_find(counts);
    }

    if (counts->ref < counts->service->refs_n) {
        return counts_slice(counts);
    }

    return counts_end(counts, row);
}
