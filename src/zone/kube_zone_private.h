/*
 * kube_zone_private - the writer's own state and the steps its files share.
 *
 * Private to src/zone.  None of this is in the image: it is made anew by the
 * walk at acquire.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_PRIVATE_H
#define KUBE_ZONE_PRIVATE_H


#include "kube_record_codec.h"
#include "kube_zone_layout.h"


#define KUBE_ZONE_NO_SEGMENT    UINT32_MAX

/* Segments moved at most: by an ordinary put; where the reserve is used. */
#define KUBE_ZONE_MOVES         1
#define KUBE_ZONE_MOVES_FORCED  8


/*
 * What the writer knows of an entry.  service is the published Service that
 * names a record of this slice, so that no label is read for it; 0: none.
 * Where more than one may (while a slice changes its label), each record's
 * label tells: KUBE_ZONE_SEVERAL.
 */
typedef struct {
    uint32_t  staged;         /* offset of a record not published; 0 */
    uint32_t  service;
    uint32_t  next;           /* free entries: in unused or in quarantine */
    uint32_t  freed_ms;       /* in quarantine: since, modulo 2^32 */
} kube_zone_side_t;

#define KUBE_ZONE_SEVERAL  UINT32_MAX

typedef struct {
    uint32_t  live;           /* bytes of records in use */
    uint32_t  used;           /* bytes appended */
} kube_zone_segment_t;

/*
 * Invariants, outside of a call: open_segment is not counted in free_n; a
 * segment with live 0 that is not open is free; free_n >= 1, so that an
 * evacuation has a place to go to.
 */
struct kube_zone_writer_s {
    const kube_alloc_t   *alloc;
    kube_zone_t          *zone;
    bool                  held;
    uint64_t              now_ms;           /* kube_zone_writer_now() */

    kube_zone_side_t     *side;             /* by entry; [0] is not used */
    uint64_t             *bits;             /* a live record begins here */
    kube_zone_segment_t  *segments;

    uint32_t              open_segment;     /* KUBE_ZONE_NO_SEGMENT: none */
    uint32_t              free_n;
    uint64_t              live_bytes;

    uint32_t              entries_used;
    uint32_t              refused;
    uint32_t              unused;           /* in no chain; a list */
    uint32_t              quarantine_first; /* freed, oldest first; a list */
    uint32_t              quarantine_last;
};


static inline kube_record_t *
kube_zone_record_at(const kube_zone_writer_t *w, uint32_t offset)
{
    return kube_zone_at(w->zone, (uint64_t) offset * KUBE_ZONE_UNIT);
}


static inline uint32_t
kube_zone_entry_offset(const kube_zone_writer_t *w, uint32_t entry)
{
    return kube_head_offset(kube_word_get(
                                &kube_zone_entry(w->zone, entry)->head));
}


/* Segments: kube_zone_segment.c */

/* Makes room for one record of size bytes.  KUBE_OK or KUBE_FULL. */
kube_rc_t kube_zone_log_reserve(kube_zone_writer_t *w, size_t size,
    unsigned moves)  KUBE_MUST_CHECK;

/* True where reserve with one move would find room. */
bool kube_zone_log_has_room(const kube_zone_writer_t *w, size_t size);

/* Bytes of records that an ordinary put may fill. */
uint64_t kube_zone_log_limit(const kube_zone_writer_t *w);

/* Takes size bytes that were reserved; returns the offset. */
uint32_t kube_zone_log_take(kube_zone_writer_t *w, size_t size);

/* Stores size bytes (a multiple of 8) at offset + skip bytes. */
void kube_zone_log_store(kube_zone_writer_t *w, uint32_t offset, size_t skip,
    const void *data, size_t size);

/* Takes room for a copy of record (without refs) and writes it. */
uint32_t kube_zone_log_append(kube_zone_writer_t *w,
    const kube_record_t *record, uint32_t number, uint64_t revision);

/*
 * Notes a valid record found by the walk, also twice.  False: it overlaps
 * another one, so one of them is not what it seems.
 */
bool kube_zone_log_mark(kube_zone_writer_t *w, uint32_t offset)
    KUBE_MUST_CHECK;

/* Chooses the open segment after the walk, and wins back a free one. */
void kube_zone_log_open(kube_zone_writer_t *w);

/* Forgets the record at offset if nothing names it any more; 0: nothing. */
void kube_zone_log_drop(kube_zone_writer_t *w, uint32_t offset);

/* The same, and with refs what a Service's record alone has named. */
void kube_zone_log_drop_service(kube_zone_writer_t *w, uint32_t offset,
    bool refs);


/* Entries: kube_zone_table.c */

/* The published Service that a slice's label names; 0: none. */
uint32_t kube_zone_service_of(const kube_zone_writer_t *w,
    const kube_record_t *slice);

/*
 * The ref of a published Service to the slice's record at offset, and the
 * Service; NULL: none names it.
 */
const kube_ref_t *kube_zone_ref_to(const kube_zone_writer_t *w,
    uint32_t offset, uint32_t *service);

/* Notes that the published Service names a record of the slice. */
void kube_zone_service_names(kube_zone_writer_t *w, uint32_t service,
    uint32_t slice);

/* True where an entry could be had. */
bool kube_zone_entry_available(const kube_zone_writer_t *w);

/* Takes an available entry and links it in. */
uint32_t kube_zone_entry_take(kube_zone_writer_t *w, uint32_t hash);

/* Puts an entry that holds nothing in quarantine. */
void kube_zone_entry_free(kube_zone_writer_t *w, uint32_t entry);

/* Stores the head (offset 0: none) and keeps count of the refused. */
void kube_zone_entry_publish(kube_zone_writer_t *w, uint32_t entry,
    uint32_t offset);

/* Shows entries_used, refused, live_bytes to readers. */
void kube_zone_table_show(kube_zone_writer_t *w);


/* Writing: kube_zone_writer.c */

uint64_t kube_zone_revision_next(kube_zone_writer_t *w);

/*
 * As kube_zone_publish; broken: the published record's refs are not to be
 * followed.
 */
kube_rc_t kube_zone_service_publish(kube_zone_writer_t *w, uint32_t service,
    const uint32_t *slices, size_t n, bool broken, bool *changed)
    KUBE_MUST_CHECK;

/* Replaces the record under one of the numbers above the entries'. */
kube_rc_t kube_zone_put_raw(kube_zone_writer_t *w, uint32_t number,
    kube_record_kind_t kind, kube_resource_t resource, const void *content,
    size_t size)  KUBE_MUST_CHECK;
void kube_zone_clear_raw(kube_zone_writer_t *w, uint32_t number);


/* The walk: kube_zone_recover.c */

void kube_zone_recover(kube_zone_writer_t *w, kube_takeover_t *takeover);


#endif /* KUBE_ZONE_PRIVATE_H */
