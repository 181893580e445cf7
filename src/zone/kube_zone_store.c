/*
 * kube_zone_store - the stores that readers see, in the order that makes a
 * death between any two of them harmless.
 *
 * It finds no key and judges no record.  For the writer only.
 *
 * Order of a Service's publication: its new record, with the new places of
 * its slices, under one store of the Service's head; then the slices' own
 * heads; old records are counted dead afterwards.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stddef.h>
#include <string.h>

#include "kube_zone_image.h"
#include "kube_zone_live.h"
#include "kube_zone_log.h"
#include "kube_zone_store.h"
#include "kube_zone_table.h"


/* SCOPE, ERROR and INFO records are built on the stack. */
#define STORE_RAW_MAX  1024


/* What a publication would change. */
typedef struct {
    bool  same_refs;         /* nothing at all */
    bool  same_revisions;    /* versions and places only */
} store_diff_t;


uint64_t
kube_zone_store_revision(kube_zone_writer_t *w)
{
    uint64_t  revision;

    revision = ++w->revision;
    kube_word_set(&w->zone->image->revision, revision);

    return revision;
}


static uint32_t
store_newest_offset(const kube_zone_writer_t *w, uint32_t entry)
{
    return (w->side[entry].staged != 0)
           ? w->side[entry].staged : w->side[entry].offset;
}


/* True if the live records at both offsets show one revision. */
static bool
store_same_revision(const kube_zone_writer_t *w, uint32_t a, uint32_t b)
{
    kube_record_t  header_a, header_b;

    return kube_zone_live_header(w, a, &header_a)
           && kube_zone_live_header(w, b, &header_b)
           && header_a.revision == header_b.revision;
}


/*
 * Where the published Service has the slice's record, which is at hint if no
 * slice came or went; 0: it names none of it.
 */
static uint32_t
store_ref_of(const kube_zone_writer_t *w, const kube_zone_place_t *published,
    size_t hint, uint32_t entry)
{
    uint32_t    i;
    kube_ref_t  ref;

    ref = kube_zone_place_ref(w, published, (uint32_t) hint);

    for (i = 0; ref.entry != entry && i < published->header.refs_n; i++) {
        ref = kube_zone_place_ref(w, published, i);
    }

    return (ref.entry == entry) ? ref.offset : 0;
}


static store_diff_t
store_diff(const kube_zone_writer_t *w, const kube_zone_place_t *published,
    const uint32_t *slices, size_t n)
{
    size_t        i;
    uint32_t      offset, old;
    store_diff_t  diff;

    diff.same_refs = (published->header.refs_n == n);
    diff.same_revisions = diff.same_refs;

    for (i = 0; i < n && diff.same_revisions; i++) {
        offset = store_newest_offset(w, slices[i]);
        old = store_ref_of(w, published, i, slices[i]);

        if (old != offset) {
            diff.same_refs = false;
            diff.same_revisions = old != 0
                                  && store_same_revision(w, old, offset);
        }
    }

    return diff;
}


/* Appends the newest record of a Service with refs to its slices. */
static uint32_t
store_service_append(kube_zone_writer_t *w, uint32_t service,
    const kube_record_t *newest, const uint32_t *slices, size_t n,
    uint64_t revision)
{
    size_t      i, base;
    uint32_t    offset;
    kube_ref_t  ref;

    base = kube_record_base(newest);
    offset = kube_zone_log_append(w, newest, service, revision, n);

    for (i = 0; i < n; i++) {
        ref.entry = slices[i];
        ref.offset = store_newest_offset(w, slices[i]);
        kube_zone_log_store(w, offset, base + i * sizeof(kube_ref_t), &ref,
                            sizeof(kube_ref_t));
    }

    return offset;
}


kube_rc_t
kube_zone_store_service(kube_zone_writer_t *w, uint32_t service,
    const uint32_t *slices, size_t n, bool broken, bool *changed)
{
    size_t                i, size;
    uint32_t              offset, old;
    uint64_t              revision;
    store_diff_t          diff;
    kube_zone_place_t     published;
    const kube_record_t  *newest;

    newest = kube_zone_newest(w, service);
    *changed = false;

    if (newest == NULL || newest->kind != KUBE_RECORD_SERVICE) {
        return KUBE_INVALID;
    }

    *changed = true;

    if (!broken
        && kube_zone_place_published(w, service, &published)
        && published.header.kind == KUBE_RECORD_SERVICE)
    {
        diff = store_diff(w, &published, slices, n);
        *changed = !diff.same_revisions
                   || !kube_zone_place_same(w, &published, newest, false);

        if (diff.same_refs && w->side[service].staged == 0) {
            return KUBE_OK;
        }
    }

    size = kube_record_base(newest) + n * sizeof(kube_ref_t);

    if (size > kube_zone_record_max(w->zone)) {
        *changed = false;
        return KUBE_TOO_LARGE;
    }

    if (kube_zone_log_reserve(w, size, KUBE_ZONE_MOVES_FORCED) != KUBE_OK) {
        kube_word_add(&w->zone->image->history.failures, 1);
        *changed = false;
        return KUBE_FULL;
    }

    revision = *changed ? kube_zone_store_revision(w)
                        : published.header.revision;

    offset = store_service_append(w, service, newest, slices, n, revision);
    KUBE_FAILPOINT("service_written");

    old = w->side[service].offset;
    kube_zone_entry_publish(w, service, offset);
    KUBE_FAILPOINT("service_head");

    for (i = 0; i < n; i++) {
        kube_zone_store_staged(w, slices[i]);
        KUBE_FAILPOINT("slice_head");
    }

    kube_zone_store_unstage(w, service);

    if (!broken) {
        kube_zone_log_drop_refs(w, old);
    }

    kube_zone_log_drop(w, old);

    for (i = 0; i < n; i++) {
        kube_zone_service_names(w, service, slices[i]);
    }

    kube_zone_table_show(w);

    return KUBE_OK;
}


void
kube_zone_store_staged(kube_zone_writer_t *w, uint32_t entry)
{
    uint32_t  old, offset;

    offset = w->side[entry].staged;

    if (offset == 0) {
        return;
    }

    old = w->side[entry].offset;
    kube_zone_entry_publish(w, entry, offset);
    w->side[entry].staged = 0;

    kube_zone_log_drop(w, old);
    kube_zone_table_show(w);
}


void
kube_zone_store_entry(kube_zone_writer_t *w, uint32_t entry, uint32_t offset)
{
    uint32_t  old;

    old = w->side[entry].offset;

    if (old != offset) {
        kube_zone_entry_publish(w, entry, offset);
        KUBE_FAILPOINT("entry_head");
    }

    kube_zone_store_unstage(w, entry);
    kube_zone_log_drop_refs(w, old);
    kube_zone_log_drop(w, old);
    kube_zone_table_show(w);
}


void
kube_zone_store_outdated(kube_zone_writer_t *w, uint32_t entry, uint64_t word)
{
    uint64_t        first;
    uint32_t        offset;
    kube_word_t    *words;
    kube_record_t   header;

    offset = store_newest_offset(w, entry);

    if (!kube_zone_live_header(w, offset, &header)) {
        return;
    }

    if (w->side[entry].staged == 0 && !w->side[entry].outdated) {
        w->side[entry].outdated = true;
        w->outdated++;
    }

    header.flags |= KUBE_RECORD_F_OUTDATED;
    memcpy(&first, &header, sizeof(uint64_t));

    /* a scope's count and digest leave it out: a store like others */
    kube_word_set(&w->zone->image->stores,
                  kube_word_get(&w->zone->image->stores) + 1);

    words = kube_zone_words(w->zone, offset);
    kube_word_set(&words[offsetof(kube_record_t, outdated) / KUBE_ZONE_UNIT],
                  word);
    kube_word_set(&words[0], first);
    kube_zone_table_show(w);
}


void
kube_zone_store_unstage(kube_zone_writer_t *w, uint32_t entry)
{
    uint32_t  offset;

    offset = w->side[entry].staged;
    w->side[entry].staged = 0;

    kube_zone_log_drop(w, offset);
}


kube_rc_t
kube_zone_store_raw(kube_zone_writer_t *w, uint32_t number,
    kube_record_kind_t kind, const void *content, size_t size)
{
    uint32_t  old, offset;

    union {
        kube_record_t  record;
        unsigned char  bytes[STORE_RAW_MAX];
    } raw;

    if (kube_record_raw_size(size) > STORE_RAW_MAX) {
        return KUBE_TOO_LARGE;
    }

    kube_record_raw_encode(kind, content, size, raw.bytes);

    if (kube_zone_log_reserve(w, raw.record.size, KUBE_ZONE_MOVES_FORCED)
        != KUBE_OK)
    {
        return KUBE_FULL;
    }

    offset = kube_zone_log_append(w, &raw.record, number, 0, 0);
    old = w->side[number].offset;
    kube_zone_head_store(w, number, offset);
    KUBE_FAILPOINT("raw_head");

    kube_zone_log_drop(w, old);
    kube_zone_table_show(w);

    return KUBE_OK;
}


void
kube_zone_store_raw_clear(kube_zone_writer_t *w, uint32_t number)
{
    uint32_t  old;

    old = w->side[number].offset;

    if (old != 0) {
        kube_zone_head_store(w, number, 0);
        kube_zone_log_drop(w, old);
        kube_zone_table_show(w);
    }
}
