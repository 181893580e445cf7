/*
 * kube_zone_recover - the walk at acquire, and what it repairs.
 *
 * A published Service's refs are the truth: slices' heads follow them, and a
 * slice with the Service's label that is not among them had been let go: it
 * is removed.  The watch repeats what came after the scope's version, and with
 * it what should be there.  The exceptions are an eviction, and a slice that
 * was outdated, for its newer version is not after the scope's: nothing repeats
 * these, and they become refused names.
 *
 * Called by acquire alone.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_zone_guard.h"
#include "kube_zone_image.h"
#include "kube_zone_live.h"
#include "kube_zone_log.h"
#include "kube_zone_poison.h"
#include "kube_zone_recover.h"
#include "kube_zone_ring.h"
#include "kube_zone_scope.h"
#include "kube_zone_store.h"
#include "kube_zone_table.h"
#include "kube_zone_walk.h"
#include "kube_zone_writer.h"


/*
 * During the walk, kube_zone_side_t.freed_ms holds marks, and next the list
 * of a broken Service's slices: its first in the Service's, the next in a
 * slice's.
 */
#define RECOVER_TWIN    0x1u    /* one of this hash is before it in its chain */
#define RECOVER_BROKEN  0x2u    /* a Service: one of its refs names no slice */
#define RECOVER_NAMED   0x4u    /* a slice: a Service names this record */
#define RECOVER_STALE   0x8u    /* a Service: it names a slice's old record */
#define RECOVER_POISON  0x10u   /* two processes have died of its record */


/* A name that is to be refused. */
typedef struct {
    kube_resource_t      resource;
    size_t               ns_len;
    size_t               name_len;
    char                 text[KUBE_NAMESPACE_LEN_MAX + KUBE_NAME_LEN_MAX];
} recover_name_t;

typedef struct {
    kube_zone_writer_t  *w;
    kube_takeover_t     *takeover;
    bool                 renamed;     /* Services were published again */
    bool                 distrust;    /* something was lost */
    bool                 distrusted;  /* ... before */
    unsigned             poison_n;
    recover_name_t       poison[KUBE_POISON_ROWS];
    kube_hand_t          hand;        /* what it says of the record, below */
    kube_ref_t           place;
    kube_str_t           frame;       /* the place as bytes */
    kube_record_id_t     id;
} recover_t;


/* The entries that the walk looks at: none above was ever taken. */
static uint32_t
recover_entries(const kube_zone_writer_t *w)
{
    return w->entries_top;
}


static void
recover_revision(kube_zone_writer_t *w, const kube_record_t *record)
{
    if (record->revision > w->revision
        && record->revision <= KUBE_ZONE_REVISION_FOUND)
    {
        w->revision = record->revision;
        kube_word_set(&w->zone->image->revision, w->revision);
    }
}


/* Notes what is published under a number, and for which key. */
static void
recover_note(kube_zone_writer_t *w, uint32_t number, uint32_t offset,
    const kube_record_t *header)
{
    w->side[number].offset = offset;
    w->side[number].kind = header->kind;
    w->side[number].outdated = (header->flags & KUBE_RECORD_F_OUTDATED) != 0;

    if (number <= recover_entries(w)) {
        w->side[number].hash =
            kube_half_get(&kube_zone_entry(w->zone, number)->hash);
        recover_revision(w, header);
    }
}


static void
recover_distrust(recover_t *recover)
{
    recover->distrust = true;
    kube_word_set(&recover->w->zone->image->history.distrust, 1);
}


/* They are taken one after the other: none behind the last one ever was. */
static bool
recover_is_beyond(const kube_zone_writer_t *w)
{
    const kube_zone_entry_t  *next;

    if (w->entries_top == w->zone->geometry.entries_n) {
        return false;
    }

    next = kube_zone_entry(w->zone, w->entries_top + 1);

    return kube_half_get(&next->hash) != 0 || kube_word_get(&next->head) != 0;
}


static void
recover_reset(recover_t *recover)
{
    uint32_t             first, top;
    kube_zone_writer_t  *w;

    w = recover->w;

    kube_zone_log_reset(w);

    *w->suspect = false;
    w->revision = kube_zone_revision(w->zone);
    w->entries_used = 0;
    w->refused = 0;
    w->refused_bytes = 0;
    w->outdated = 0;
    w->unused = 0;
    w->quarantine_first = 0;
    w->quarantine_last = 0;

    first = w->zone->geometry.entries_n + 1;
    memset(w->side, 0, (w->entries_top + 1ull) * sizeof(kube_zone_side_t));
    memset(&w->side[first], 0, (kube_zone_server_number(w->zone) + 1ull - first)
                               * sizeof(kube_zone_side_t));

    /* the image's may have been changed by anybody: it is bounded */
    top = kube_zone_top(w->zone);
    w->entries_top = (top > w->entries_top) ? top : w->entries_top;

    while (recover_is_beyond(w)) {
        w->entries_top++;
        recover_distrust(recover);
    }

    kube_word_set(&w->zone->image->entries_top, w->entries_top);
}


/* Notes whom to refuse; what has no readable name is lost. */
static void
recover_poison(recover_t *recover, uint32_t entry)
{
    recover_name_t          *name;
    const kube_record_id_t  *id;

    id = &recover->id;

    if (recover->poison_n == KUBE_POISON_ROWS
        || id->meta.ns.len > KUBE_NAMESPACE_LEN_MAX
        || id->meta.name.len > KUBE_NAME_LEN_MAX
        || id->meta.name.len == 0)
    {
        recover_distrust(recover);
        return;
    }

    name = &recover->poison[recover->poison_n++];
    name->resource = id->resource;
    name->ns_len = id->meta.ns.len;
    name->name_len = id->meta.name.len;
    memcpy(name->text, id->meta.ns.data, name->ns_len);
    memcpy(name->text + name->ns_len, id->meta.name.data, name->name_len);

    recover->w->side[entry].freed_ms |= RECOVER_POISON;

    /* should this process die, too, before the name stands */
    kube_word_set(&recover->w->zone->image->history.distrust, 1);
}


/*
 * Takes a record in hand, by its name, or by its place where it has none that
 * can be read; what is in hand otherwise was looked at.
 */
static bool
recover_enter(void *ctx, uint32_t number, uint32_t offset)
{
    recover_t      *recover = ctx;
    kube_hand_t    *hand;
    kube_record_t   header;

    hand = recover->w->hand;

    if (number == 0 || number > recover_entries(recover->w)) {
        return true;
    }

    if (recover->w->side[number].freed_ms & RECOVER_POISON) {
        return false;
    }

    if (hand == NULL) {
        return true;
    }

    kube_hand_leave(hand);
    memset(&recover->id, 0, sizeof(kube_record_id_t));
    recover->place = (kube_ref_t) { .entry = number, .offset = offset };
    kube_hand_take(hand, &recover->hand, KUBE_STAGE_WALK);

    memset(&header, 0, sizeof(kube_record_t));

    /* its name is what killed them: it is not looked for */

    if (kube_zone_poison_refuses(recover->w->zone, hand)) {
        recover_poison(recover, number);
        return false;
    }

    if (kube_zone_header_at(recover->w->zone, offset, &header)
        && kube_record_id(kube_zone_record_at(recover->w->zone, offset),
                          header.size, &recover->id) != KUBE_OK)
    {
        memset(&recover->id, 0, sizeof(kube_record_id_t));
    }

    hand->resource = recover->id.resource;

    if (header.kind == KUBE_RECORD_REFUSED
        || !kube_zone_poison_refuses(recover->w->zone, hand))
    {
        return true;
    }

    recover_poison(recover, number);

    return false;
}


/* A scope that is cut off is listed; an object is told by no version. */
static void
recover_cut_off(recover_t *recover, uint32_t number)
{
    if (number <= recover_entries(recover->w)) {

        if (!(recover->w->side[number].freed_ms & RECOVER_POISON)) {
            recover_distrust(recover);
        }

        recover->takeover->cut_off++;
    }

    recover->w->side[number].kind = 0;
    recover->w->side[number].outdated = false;
    kube_zone_head_store(recover->w, number, 0);
}


/* A head without a valid record is cut off. */
static void
recover_head(void *ctx, uint32_t number, uint32_t offset,
    const kube_record_t *header)
{
    recover_t  *recover = ctx;

    if (header == NULL) {
        recover_cut_off(recover, number);

    } else {
        recover_note(recover->w, number, offset, header);
    }
}


typedef void (*recover_step_pt)(recover_t *recover, uint32_t entry,
    const kube_record_t *record);


/*
 * Calls step with a copy of each record of the kind that an entry holds, once
 * they are marked.  With wants, which knows the side table alone, only where
 * that is true: most records need no second look.
 */
static void
recover_each(recover_t *recover, kube_record_kind_t kind,
    bool (*wants)(const kube_zone_writer_t *w, uint32_t entry),
    recover_step_pt step)
{
    uint32_t              e;
    const kube_record_t  *record;

    for (e = 1; e <= recover_entries(recover->w); e++) {
        if (recover->w->side[e].kind != kind
            || (wants != NULL && !wants(recover->w, e)))
        {
            continue;
        }

        record = kube_zone_published(recover->w, e);

        if (record != NULL && record->kind == kind) {
            step(recover, e, record);
        }
    }
}


/*
 * The writer may have died between a ref and its Service's head: a reader who
 * has copied the ref before, and is still copying, must see a changed head
 * before the room of what it names is used again.
 */
static void
recover_bump(kube_zone_writer_t *w)
{
    uint32_t  e;

    for (e = 1; e <= recover_entries(w); e++) {
        if (w->side[e].kind == KUBE_RECORD_SERVICE) {
            kube_zone_head_store(w, e, w->side[e].offset);
        }
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
    recover_t           *recover = ctx;
    kube_record_t        now;
    kube_zone_side_t    *side;
    kube_zone_writer_t  *w;

    w = recover->w;

    /* the Service is published again without what is refused */

    if (slice == NULL
        && ref.entry <= recover_entries(w)
        && (w->side[ref.entry].freed_ms & RECOVER_POISON))
    {
        return;
    }

    if (slice == NULL) {
        recover_distrust(recover);
        w->side[service].freed_ms |= RECOVER_BROKEN;
        return;
    }

    side = &w->side[ref.entry];

    if (side->offset != ref.offset
        && (!kube_zone_header_at(w->zone, side->offset, &now)
            || slice->revision >= now.revision))
    {
        kube_zone_head_store(w, ref.entry, ref.offset);
        recover_note(w, ref.entry, ref.offset, slice);
    }
}


/* What holds nothing gets its hash here. */
static void
recover_link(void *ctx, uint32_t entry, uint32_t hash, bool twin)
{
    kube_zone_side_t    *side;
    kube_zone_writer_t  *w = ctx;

    side = &w->side[entry];
    side->linked = true;

    if (side->offset == 0) {
        side->hash = hash;

    } else if (twin) {
        side->freed_ms |= RECOVER_TWIN;
    }
}


/* Entries that hold nothing are in no chain then. */
static void
recover_chains_rebuild(kube_zone_writer_t *w)
{
    uint32_t            e;
    kube_half_t        *bucket;
    kube_zone_side_t   *side;
    kube_zone_entry_t  *entry;

    for (e = 0; e < w->zone->geometry.buckets_n; e++) {
        kube_half_set(kube_zone_bucket(w->zone, e), 0);
    }

    for (e = 1; e <= recover_entries(w); e++) {
        side = &w->side[e];
        side->linked = (side->offset != 0);

        if (side->linked) {
            entry = kube_zone_entry(w->zone, e);
            bucket = kube_zone_bucket(w->zone, side->hash);
            kube_half_set(&entry->hash, side->hash);
            kube_half_set(&entry->next, kube_half_get(bucket));
            kube_half_set(bucket, e);
        }
    }
}


/*
 * While chains are rebuilt reuse is odd: a reader who finds nothing retries.
 * Where something was broken they are, if they look sound or not: who broke it
 * may have changed buckets that the walk does not see.
 */
static void
recover_chains(recover_t *recover)
{
    bool                 sound;
    uint32_t             top;
    uint64_t             odd;
    kube_word_t         *reuse;
    kube_zone_writer_t  *w;

    w = recover->w;

    reuse = &w->zone->image->reuse;
    odd = kube_word_get(reuse) | 1;
    w->reuse = odd + 1;
    top = recover_entries(w);
    sound = kube_zone_walk_chains(w->zone, top, recover_link, w);

    /* no death leaves them so: what else was written there nobody knows */

    if (!sound) {
        recover_distrust(recover);
    }

    if (kube_word_get(&w->zone->image->history.distrust) != 0) {
        kube_word_set(reuse, odd);
        recover_chains_rebuild(w);
        sound = kube_zone_walk_chains(w->zone, top, recover_link, w);
        *w->suspect = *w->suspect || !sound;
        kube_word_set(reuse, odd + 1);

    } else if (kube_word_get(reuse) == odd) {
        kube_word_set(reuse, odd + 1);
    }
}


/* The identity of what an entry holds, before its record is marked. */
static bool
recover_id(const kube_zone_writer_t *w, uint32_t entry, kube_record_id_t *id)
{
    uint32_t       offset;
    kube_record_t  header;

    offset = w->side[entry].offset;

    return offset != 0
           && kube_zone_header_at(w->zone, offset, &header)
           && kube_record_id(kube_zone_record_at(w->zone, offset),
                             header.size, id) == KUBE_OK;
}


/*
 * A writer that did not find an object, for its chain had been changed by
 * somebody else, took another entry for it.  The first in the chain stays.
 */
static void
recover_twin(recover_t *recover, uint32_t entry)
{
    uint32_t             e, hash, steps;
    kube_record_id_t     id, other;
    kube_zone_writer_t  *w;

    w = recover->w;
    hash = w->side[entry].hash;
    steps = 0;

    for (e = kube_half_get(kube_zone_bucket(w->zone, hash));
         e != 0 && e != entry && e <= recover_entries(w)
         && steps < KUBE_ZONE_CHAIN_MAX;
         e = kube_half_get(&kube_zone_entry(w->zone, e)->next))
    {
        steps++;

        if (w->side[e].hash == hash
            && recover_id(w, entry, &id)
            && recover_id(w, e, &other)
            && id.resource == other.resource
            && kube_str_eq(id.meta.name, other.meta.name)
            && kube_str_eq(id.meta.ns, other.meta.ns))
        {
            recover_cut_off(recover, entry);
            return;
        }
    }
}


/* If two records overlap, the one of the lower number stays. */
static void
recover_mark(recover_t *recover)
{
    uint32_t             number;
    kube_zone_side_t    *side;
    kube_zone_writer_t  *w;

    w = recover->w;

    for (number = 1; number <= kube_zone_server_number(w->zone); number++) {

        if (number == recover_entries(w) + 1) {
            number = w->zone->geometry.entries_n + 1;
        }

        side = &w->side[number];

        if (side->offset == 0) {
            continue;
        }

        if (!kube_zone_log_mark(w, side->offset)) {
            recover_cut_off(recover, number);

        } else if (number <= recover_entries(w)) {
            w->entries_used++;
            w->outdated += side->outdated;

            if (side->kind == KUBE_RECORD_REFUSED) {
                w->refused++;
                w->refused_bytes += kube_zone_live_size(w, side->offset);
            }
        }
    }
}


/* True if what the ref names is the slice's record as it is now. */
static bool
recover_is_current(const kube_zone_writer_t *w, kube_ref_t ref)
{
    return ref.entry != 0
           && ref.entry <= recover_entries(w)
           && w->side[ref.entry].offset == ref.offset;
}


/* True if the Service was found to name the slice; the number is anybody's. */
static bool
recover_is_named(const kube_zone_writer_t *w, uint32_t service, uint32_t slice)
{
    return slice <= recover_entries(w) && w->side[slice].service == service;
}


/* Records that a Service names stay live until it is published again. */
static void
recover_mark_refs(recover_t *recover, uint32_t entry,
    const kube_record_t *service)
{
    uint32_t             i;
    kube_record_t        slice;
    kube_record_id_t     id;
    const kube_ref_t    *refs;
    kube_zone_writer_t  *w;

    w = recover->w;

    if (kube_record_id(service, service->size, &id) != KUBE_OK) {
        return;
    }

    refs = kube_record_refs(service);

    for (i = 0; i < service->refs_n; i++) {
        if ((w->side[entry].freed_ms & RECOVER_BROKEN)
            && !kube_zone_walk_slice(w->zone, recover_entries(w), &id, refs[i],
                                     &slice))
        {
            continue;
        }

        /* no writer names a slice twice: which one this was is not known */

        if (recover_is_named(w, entry, refs[i].entry)
            || !kube_zone_log_mark(w, refs[i].offset))
        {
            recover_distrust(recover);
            w->side[entry].freed_ms |= RECOVER_BROKEN;
            continue;
        }

        kube_zone_service_names(w, entry, refs[i].entry);

        if (recover_is_current(w, refs[i])) {
            w->side[refs[i].entry].freed_ms |= RECOVER_NAMED;

        } else {
            w->side[entry].freed_ms |= RECOVER_STALE;
        }
    }
}


/* Without room for a whole record the Service goes; its slices are orphans. */
static void
recover_service_end(recover_t *recover, uint32_t entry)
{
    uint32_t  offset;

    offset = recover->w->side[entry].offset;
    recover_cut_off(recover, entry);
    kube_zone_log_drop(recover->w, offset);
    recover->w->entries_used--;
}


/* The slices of a Service by label, where refs cannot be followed. */
static uint32_t
recover_listed(const kube_zone_writer_t *w, uint32_t entry, uint32_t *slices)
{
    uint32_t  n, slice;

    slice = w->side[entry].next;

    for (n = 0; slice != 0 && n < KUBE_SERVICE_SLICES_MAX; n++) {
        slices[n] = slice;
        slice = w->side[slice].next;
    }

    return n;
}


/* The slices that a Service names as they are now. */
static uint32_t
recover_current(const kube_zone_writer_t *w, const kube_record_t *service,
    uint32_t *slices)
{
    uint32_t           i, n;
    const kube_ref_t  *refs;

    refs = kube_record_refs(service);

    for (i = 0, n = 0;
         i < service->refs_n && n < KUBE_SERVICE_SLICES_MAX;
         i++)
    {
        if (recover_is_current(w, refs[i])) {
            slices[n++] = refs[i].entry;
        }
    }

    return n;
}


/* A Service that has to be published again. */
static bool
recover_is_odd(const kube_zone_writer_t *w, uint32_t entry)
{
    return (w->side[entry].freed_ms & (RECOVER_BROKEN|RECOVER_STALE)) != 0;
}


/*
 * What a broken Service named cannot be known: it is published with all
 * slices that bear its label, until a list says what is true.  A stale one
 * names a slice that was published with another Service since.
 */
static void
recover_service(recover_t *recover, uint32_t entry,
    const kube_record_t *service)
{
    bool                 changed, broken;
    uint32_t             n;
    kube_zone_writer_t  *w;
    uint32_t             slices[KUBE_SERVICE_SLICES_MAX];

    w = recover->w;
    broken = (w->side[entry].freed_ms & RECOVER_BROKEN) != 0;
    recover->renamed = true;

    n = broken ? recover_listed(w, entry, slices)
               : recover_current(w, service, slices);

    if (kube_zone_store_service(w, entry, slices, n, broken, &changed)
        == KUBE_OK)
    {
        recover->takeover->repaired++;

    } else {
        recover_service_end(recover, entry);
    }
}


/* A slice that is not simply one of those that its Service names. */
static bool
recover_is_loose(const kube_zone_writer_t *w, uint32_t entry)
{
    const kube_zone_side_t  *side;

    side = &w->side[entry];

    return !(side->freed_ms & RECOVER_NAMED)
           || side->service == KUBE_ZONE_SEVERAL
           || (w->side[side->service].freed_ms & RECOVER_BROKEN);
}


static void
recover_remove(kube_zone_writer_t *w, uint32_t entry)
{
    kube_zone_store_entry(w, entry, 0);
    w->entries_used--;
}


/*
 * Leaves the name of a slice alone.  Where that has no room it is counted in
 * its scope, which says so of one that was interrupted, and removed.
 */
static void
recover_refuse(kube_zone_writer_t *w, uint32_t entry, unsigned scope,
    kube_reason_t reason)
{
    kube_zone_item_t  item;

    if (kube_zone_item_entry(w, entry, &item) != KUBE_OK
        || kube_zone_refuse(w, &item, item.id.meta.rv,
                            kube_reason_text(reason))
           != KUBE_OK)
    {
        if (reason == KUBE_REASON_INTERRUPTED) {
            kube_zone_scope_interrupted(w, scope);

        } else {
            kube_zone_scope_unnamed(w, scope);
        }

        recover_remove(w, entry);
    }
}


/*
 * Ends a slice that its Service does not name.  Where a list has moved one
 * that was outdated to another Service, that was not published with it yet.
 */
static void
recover_let_go(recover_t *recover, uint32_t entry, const kube_record_t *slice)
{
    kube_record_id_t     id;
    kube_zone_writer_t  *w;

    w = recover->w;
    recover->takeover->repaired++;

    if ((slice->flags & KUBE_RECORD_F_OUTDATED)
        && kube_record_id(slice, slice->size, &id) == KUBE_OK)
    {
        recover_refuse(w, entry,
                       kube_zone_scope_of(w->zone, id.resource, id.meta.ns),
                       KUBE_REASON_INTERRUPTED);

    } else {
        recover_remove(w, entry);
    }
}


/* Lists a broken Service's slices, and removes those that were let go. */
static void
recover_slice(recover_t *recover, uint32_t entry, const kube_record_t *slice)
{
    uint32_t             service;
    kube_zone_writer_t  *w;

    w = recover->w;
    service = kube_zone_service_of(w, slice);

    if (service == 0) {
        return;
    }

    if (w->side[service].freed_ms & RECOVER_BROKEN) {
        w->side[entry].next = w->side[service].next;
        w->side[service].next = entry;

    } else if (!(w->side[entry].freed_ms & RECOVER_NAMED)) {
        recover_let_go(recover, entry, slice);
    }
}


/*
 * An eviction that was begun.  Nothing is to be done where the object is held
 * as before, or its name stands; where neither is, it was counted.
 */
static void
recover_evicting(recover_t *recover)
{
    uint32_t              entry;
    kube_word_t          *word;
    kube_zone_writer_t   *w;
    const kube_record_t  *record;

    w = recover->w;
    word = &w->zone->image->evicting;
    entry = kube_head_get(word);

    if (entry == 0) {
        return;
    }

    record = kube_zone_published(w, entry);

    if (record != NULL
        && record->kind == KUBE_RECORD_SLICE
        && !(w->side[entry].freed_ms & RECOVER_NAMED)
        && kube_zone_service_of(w, record) != 0)
    {
        /* one that is outdated says why, for a list may not help it */
        recover_refuse(w, entry, (unsigned)
                             kube_word_get(&w->zone->image->evicting_scope),
                       (record->flags & KUBE_RECORD_F_OUTDATED)
                       ? kube_record_outdated_reason(record)
                       : KUBE_REASON_ZONE_FULL);
    }

    KUBE_FAILPOINT("recover_evicted");
    kube_head_set(word, 0);
}


static void
recover_free_list(recover_t *recover)
{
    uint32_t             e;
    kube_zone_side_t    *side;
    kube_zone_writer_t  *w;

    w = recover->w;

    for (e = recover_entries(w); e != 0; e--) {
        side = &w->side[e];

        /* recover_names() finds out anew */
        if (recover->renamed || side->offset == 0) {
            side->service = 0;
        }

        side->next = 0;
        side->freed_ms = 0;

        if (side->offset != 0) {
            recover->takeover->records++;

        } else if (side->linked) {
            w->entries_used++;
            kube_zone_entry_free(w, e);

        } else {
            side->next = w->unused;
            w->unused = e;
        }
    }
}


static void
recover_names(recover_t *recover, uint32_t entry,
    const kube_record_t *service)
{
    uint32_t           i;
    const kube_ref_t  *refs;

    refs = kube_record_refs(service);

    for (i = 0; i < service->refs_n; i++) {
        kube_zone_service_names(recover->w, entry, refs[i].entry);
    }
}


/* Names what was not looked at; then nothing of it is lost. */
static void
recover_refuse_poison(recover_t *recover)
{
    unsigned               i;
    kube_zone_item_t       item;
    const recover_name_t  *name;

    for (i = 0; i < recover->poison_n; i++) {
        name = &recover->poison[i];

        if (kube_zone_item_name(recover->w, name->resource,
                                (kube_str_t) { name->text, name->ns_len },
                                (kube_str_t) { name->text + name->ns_len,
                                               name->name_len }, &item)
            != KUBE_OK
            || kube_zone_refuse(recover->w, &item, KUBE_STR_NULL,
                                kube_reason_text(
                                               KUBE_REASON_CRASHED_INFORMER))
               != KUBE_OK)
        {
            recover_distrust(recover);
        }
    }

    if (recover->poison_n == 0) {
        return;
    }

    /* scopes' counts are of before */
    recover->takeover->stores = kube_word_get(&recover->w->zone->image->stores);

    if (!recover->distrust && !recover->distrusted) {
        kube_word_set(&recover->w->zone->image->history.distrust, 0);
    }
}


static void
recover_init(recover_t *recover, kube_zone_writer_t *w,
    kube_takeover_t *takeover)
{
    recover->w = w;
    recover->takeover = takeover;
    recover->renamed = false;
    recover->distrust = false;
    recover->distrusted = (kube_word_get(&w->zone->image->history.distrust)
                           != 0);
    recover->poison_n = 0;
    recover->frame = (kube_str_t) { (const char *) &recover->place,
                                    sizeof(kube_ref_t) };
    recover->hand = (kube_hand_t) {
        .now_ms = w->now_ms,
        .blame = KUBE_BLAME_RECORD,
        .ns = &recover->id.meta.ns,
        .name = &recover->id.meta.name,
        .uid = &recover->id.meta.uid,
        .frame = &recover->frame
    };
}


static void
recover_all(kube_zone_writer_t *w, kube_takeover_t *takeover)
{
    uint32_t   e;
    recover_t  recover;

    recover_init(&recover, w, takeover);
    recover_reset(&recover);

    kube_zone_walk_heads(w->zone, recover_entries(w), recover_enter,
                         recover_head, &recover);
    KUBE_FAILPOINT("recover_walked");

    if (takeover->crashed) {
        recover_bump(w);
    }

    kube_zone_walk_refs(w->zone, recover_entries(w), recover_enter,
                        recover_ref, &recover);
    kube_hand_leave(w->hand);
    recover_chains(&recover);

    for (e = 1; e <= recover_entries(w); e++) {
        if (w->side[e].freed_ms & RECOVER_TWIN) {
            recover_twin(&recover, e);
        }
    }

    KUBE_FAILPOINT("recover_chains");

    recover_mark(&recover);
    recover_each(&recover, KUBE_RECORD_SERVICE, NULL, recover_mark_refs);
    kube_zone_log_open(w);
    KUBE_FAILPOINT("recover_marked");

    recover_evicting(&recover);
    recover_each(&recover, KUBE_RECORD_SLICE, recover_is_loose, recover_slice);
    recover_each(&recover, KUBE_RECORD_SERVICE, recover_is_odd,
                 recover_service);
    recover_free_list(&recover);

    if (recover.renamed) {
        recover_each(&recover, KUBE_RECORD_SERVICE, NULL, recover_names);
    }

    recover_refuse_poison(&recover);

    takeover->distrust = (kube_word_get(&w->zone->image->history.distrust)
                          != 0);
    kube_zone_table_show(w);

    /* what was found up to here is repaired */
    *w->suspect = false;
    w->corrupt = kube_word_get(&w->zone->image->corrupt);
}


void
kube_zone_writer_trust(kube_zone_writer_t *w)
{
    kube_word_set(&w->zone->image->history.distrust, 0);
}


bool
kube_zone_writer_is_disturbed(const kube_zone_writer_t *w)
{
    return *w->suspect
           || kube_word_get(&w->zone->image->corrupt) != w->corrupt;
}


void
kube_zone_writer_distrust(kube_zone_writer_t *w)
{
    kube_word_set(&w->zone->image->history.distrust, 1);
}


void
kube_zone_writer_hand(kube_zone_writer_t *w, kube_hand_t *hand)
{
    w->hand = hand;
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
    takeover->stores = kube_word_get(&w->zone->image->stores);
    takeover->blamed = kube_zone_poison_take(w->zone, now_ms,
                                             &takeover->death);

    recover_all(w, takeover);
    kube_zone_ring_acquire(w, takeover->crashed || takeover->cut_off != 0
                              || takeover->repaired != 0);
    KUBE_FAILPOINT("acquired");

    return KUBE_OK;
}
