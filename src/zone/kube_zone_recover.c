/*
 * kube_zone_recover - the walk at acquire, and what it repairs.
 *
 * A published Service's refs are the truth: slices' heads follow them.  Then
 * every slice is attached to the Service that its label names, which brings
 * back what was published as an orphan.
 *
 * Called by acquire alone.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_zone_guard.h"
#include "kube_zone_image.h"
#include "kube_zone_log.h"
#include "kube_zone_recover.h"
#include "kube_zone_store.h"
#include "kube_zone_table.h"
#include "kube_zone_walk.h"


/*
 * During the walk, kube_zone_side_t.freed_ms holds marks, and next the list
 * of a Service's slices: its first in the Service's, the next in a slice's.
 */
#define RECOVER_LINKED  0x1u
#define RECOVER_BROKEN  0x2u


typedef struct {
    kube_zone_writer_t  *w;
    kube_takeover_t     *takeover;
} recover_t;


static uint32_t
recover_entries(const kube_zone_writer_t *w)
{
    return w->zone->geometry.entries_n;
}


static void
recover_reset(kube_zone_writer_t *w)
{
    uint32_t  e;

    kube_zone_log_reset(w);

    w->entries_used = 0;
    w->refused = 0;
    w->unused = 0;
    w->quarantine_first = 0;
    w->quarantine_last = 0;

    memset(w->side, 0, (recover_entries(w) + 1ull)
                       * sizeof(kube_zone_side_t));

    /* recover_names() fills in which Service names which slice */
    for (e = 1; e <= recover_entries(w); e++) {
        w->side[e].service = KUBE_ZONE_SEVERAL;
    }
}


static void
recover_revision(kube_zone_writer_t *w, const kube_record_t *record)
{
    kube_zone_image_t  *image;

    image = w->zone->image;

    if (record->revision > kube_word_get(&image->revision)) {
        kube_word_set(&image->revision, record->revision);
    }
}


/* A head without a valid record is cut off. */
static void
recover_head(void *ctx, uint32_t number, const kube_record_t *record)
{
    recover_t  *recover = ctx;

    if (record == NULL) {
        kube_head_set(kube_zone_head_of(recover->w->zone, number), 0);
        recover->takeover->cut_off += (number <= recover_entries(recover->w));

    } else if (number <= recover_entries(recover->w)) {
        recover_revision(recover->w, record);
    }
}


/*
 * A Service was published and its slices' heads not yet: they follow.  Equal
 * revisions mean a new resourceVersion, or a move: the ref is the newer one.
 */
static void
recover_ref(void *ctx, uint32_t service, kube_ref_t ref,
    const kube_record_t *slice)
{
    recover_t            *recover = ctx;
    kube_zone_writer_t   *w;
    const kube_record_t  *now;

    w = recover->w;

    if (slice == NULL) {
        w->side[service].freed_ms |= RECOVER_BROKEN;
        return;
    }

    now = kube_zone_published(w, ref.entry);

    if (now == NULL
        || (slice->revision >= now->revision
            && kube_zone_entry_offset(w->zone, ref.entry) != ref.offset))
    {
        kube_head_set(&kube_zone_entry(w->zone, ref.entry)->head, ref.offset);
        recover_revision(w, slice);
    }
}


typedef void (*recover_step_pt)(kube_zone_writer_t *w, uint32_t entry,
    const kube_record_t *record);


/* Calls step for every entry that holds a record of the kind. */
static void
recover_each(kube_zone_writer_t *w, kube_record_kind_t kind,
    recover_step_pt step)
{
    uint32_t              e;
    const kube_record_t  *record;

    for (e = 1; e <= recover_entries(w); e++) {
        record = kube_zone_published(w, e);

        if (record != NULL && record->kind == kind) {
            step(w, e, record);
        }
    }
}


static void
recover_link(void *ctx, uint32_t entry)
{
    kube_zone_writer_t  *w = ctx;

    w->side[entry].freed_ms |= RECOVER_LINKED;
}


static void
recover_chains_rebuild(kube_zone_writer_t *w)
{
    uint32_t            i, e;
    kube_half_t        *bucket;
    kube_zone_entry_t  *entry;

    for (i = 0; i < w->zone->geometry.buckets_n; i++) {
        kube_half_set(kube_zone_bucket(w->zone, i), 0);
    }

    for (e = 1; e <= recover_entries(w); e++) {
        w->side[e].freed_ms &= ~RECOVER_LINKED;
        entry = kube_zone_entry(w->zone, e);

        if (kube_zone_entry_offset(w->zone, e) != 0) {
            bucket = kube_zone_bucket(w->zone, kube_half_get(&entry->hash));
            kube_half_set(&entry->next, kube_half_get(bucket));
            kube_half_set(bucket, e);
            w->side[e].freed_ms |= RECOVER_LINKED;
        }
    }
}


/* While chains are rebuilt reuse is odd: a reader who finds nothing retries. */
static void
recover_chains(kube_zone_writer_t *w)
{
    uint64_t      odd;
    kube_word_t  *reuse;

    reuse = &w->zone->image->reuse;
    odd = kube_word_get(reuse) | 1;

    if (!kube_zone_walk_chains(w->zone, recover_link, w)) {
        kube_word_set(reuse, odd);
        recover_chains_rebuild(w);
        kube_word_set(reuse, odd + 1);

    } else if (kube_word_get(reuse) == odd) {
        kube_word_set(reuse, odd + 1);
    }
}


/* If two records overlap, the one of the lower number stays. */
static void
recover_mark(kube_zone_writer_t *w, kube_takeover_t *takeover)
{
    uint32_t      number, offset;
    kube_word_t  *head;

    for (number = 1; number <= kube_zone_server_number(w->zone); number++) {
        head = kube_zone_head_of(w->zone, number);
        offset = kube_head_get(head);

        if (offset == 0) {
            continue;
        }

        if (!kube_zone_log_mark(w, offset)) {
            kube_head_set(head, 0);
            takeover->cut_off += (number <= recover_entries(w));

        } else if (number <= recover_entries(w)) {
            w->entries_used++;
            w->refused += (kube_zone_record_at(w->zone, offset)->kind
                           == KUBE_RECORD_REFUSED);
        }
    }
}


/* Records that a Service names stay live until it is published again. */
static void
recover_mark_refs(kube_zone_writer_t *w, uint32_t entry,
    const kube_record_t *service)
{
    uint32_t           i;
    kube_record_id_t   id;
    const kube_ref_t  *refs;

    if (kube_record_id(service, service->size, &id) != KUBE_OK) {
        return;
    }

    refs = kube_record_refs(service);

    for (i = 0; i < service->refs_n; i++) {
        if ((w->side[entry].freed_ms & RECOVER_BROKEN)
            && kube_zone_walk_slice(w->zone, &id, refs[i]) == NULL)
        {
            continue;
        }

        if (!kube_zone_log_mark(w, refs[i].offset)) {
            w->side[entry].freed_ms |= RECOVER_BROKEN;
        }
    }
}


static void
recover_attach(kube_zone_writer_t *w, uint32_t entry,
    const kube_record_t *slice)
{
    uint32_t  service;

    service = kube_zone_service_of(w, slice);

    if (service != 0) {
        w->side[entry].next = w->side[service].next;
        w->side[service].next = entry;
    }
}


static void
recover_services(kube_zone_writer_t *w, kube_takeover_t *takeover)
{
    bool                  changed, broken;
    uint32_t              e, slice, n, offset;
    const kube_record_t  *record;
    uint32_t              slices[KUBE_SERVICE_SLICES_MAX];

    for (e = 1; e <= recover_entries(w); e++) {
        record = kube_zone_published(w, e);

        if (record == NULL || record->kind != KUBE_RECORD_SERVICE) {
            continue;
        }

        broken = (w->side[e].freed_ms & RECOVER_BROKEN) != 0;
        slice = w->side[e].next;

        for (n = 0; slice != 0 && n < KUBE_SERVICE_SLICES_MAX; n++) {
            slices[n] = slice;
            slice = w->side[slice].next;
        }

        /* a Service with more slices than a record can name keeps its choice */
        if (slice != 0 && !broken) {
            continue;
        }

        if (kube_zone_store_service(w, e, slices, n, broken, &changed)
            == KUBE_OK)
        {
            takeover->repaired += changed;
            continue;
        }

        /* without room the Service goes, and its slices are orphans */
        offset = kube_zone_entry_offset(w->zone, e);
        kube_zone_entry_publish(w, e, 0);

        if (!broken) {
            kube_zone_log_drop_refs(w, offset);
        }

        kube_zone_log_drop(w, offset);
        w->entries_used--;
        takeover->cut_off++;
    }
}


static void
recover_free_list(kube_zone_writer_t *w, kube_takeover_t *takeover)
{
    uint32_t           e, marks;
    kube_zone_side_t  *side;

    for (e = recover_entries(w); e != 0; e--) {
        side = &w->side[e];
        marks = side->freed_ms;
        memset(side, 0, sizeof(kube_zone_side_t));

        if (kube_zone_entry_offset(w->zone, e) != 0) {
            takeover->records++;

        } else if (marks & RECOVER_LINKED) {
            w->entries_used++;
            kube_zone_entry_free(w, e);

        } else {
            side->next = w->unused;
            w->unused = e;
        }
    }
}


static void
recover_names(kube_zone_writer_t *w, uint32_t entry,
    const kube_record_t *service)
{
    uint32_t           i;
    const kube_ref_t  *refs;

    refs = kube_record_refs(service);

    for (i = 0; i < service->refs_n; i++) {
        kube_zone_service_names(w, entry, refs[i].entry);
    }
}


static void
recover_all(kube_zone_writer_t *w, kube_takeover_t *takeover)
{
    recover_t  recover;

    static const kube_zone_visitor_t  visitor = {
        .head = recover_head,
        .ref = recover_ref
    };

    recover.w = w;
    recover.takeover = takeover;
    recover_reset(w);

    kube_zone_walk(w->zone, &visitor, &recover);
    KUBE_FAILPOINT("recover_walked");

    recover_chains(w);
    KUBE_FAILPOINT("recover_chains");

    recover_mark(w, takeover);
    recover_each(w, KUBE_RECORD_SERVICE, recover_mark_refs);
    kube_zone_log_open(w);
    KUBE_FAILPOINT("recover_marked");

    recover_each(w, KUBE_RECORD_SLICE, recover_attach);
    recover_services(w, takeover);
    recover_free_list(w, takeover);
    recover_each(w, KUBE_RECORD_SERVICE, recover_names);

    kube_zone_table_show(w);
}


kube_rc_t
kube_zone_writer_acquire(kube_zone_writer_t *w, uint64_t now_ms,
    kube_takeover_t *takeover)
{
    kube_rc_t  rc;

    memset(takeover, 0, sizeof(kube_takeover_t));

    if (w->held) {
        return KUBE_BUSY;
    }

    rc = kube_zone_guard_take(w->zone, &takeover->crashed);

    if (rc != KUBE_OK) {
        return rc;
    }

    w->held = true;
    w->now_ms = now_ms;
    kube_zone_geometry_heal(w->zone);
    takeover->epoch = kube_word_get(&w->zone->image->history.epoch);

    recover_all(w, takeover);
    KUBE_FAILPOINT("acquired");

    return KUBE_OK;
}
