/*
 * kube_zone_image - the image as it lies in memory, and the writer's own
 * memory beside it, for the files of src/zone and their tests.
 *
 * It holds no step of any protocol: only structs, and where to find them.  A
 * change of a struct above the line "not in the image" is a change of
 * KUBE_ZONE_LAYOUT.  All atomics of the image are written with release and
 * read with acquire stores and loads, but for sums (kube_word_add), which
 * order nothing; which pair orders what is said where it is used.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_IMAGE_H
#define KUBE_ZONE_IMAGE_H


#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "kube_failpoint.h"
#include "kube_record.h"
#include "kube_zone_cause.h"
#include "kube_zone_counters.h"
#include "kube_zone_pause.h"
#include "kube_zone_ring.h"
#include "kube_zone_word.h"


#define KUBE_ZONE_MAGIC     0x656e6f7a6562756bull    /* "kubezone" */

/* Offsets of records are in these, from the begin of the image on. */
#define KUBE_ZONE_UNIT      8

/* Crashes whose times are kept. */
#define KUBE_ZONE_CRASHES   4

/*
 * No writer ever gets there: what is beyond somebody else has written.  One
 * that is found and gone on from is half of it at most, so that none that is
 * given out from there is taken for such.
 */
#define KUBE_ZONE_REVISION_MAX    (1ull << 52)
#define KUBE_ZONE_REVISION_FOUND  (KUBE_ZONE_REVISION_MAX / 2)

typedef _Atomic uint32_t  kube_half_t;

static_assert(ATOMIC_INT_LOCK_FREE == 2,
              "atomics in shared memory must need no lock");
static_assert(sizeof(kube_half_t) == 4,
              "atomics are laid out as plain integers");
static_assert(sizeof(kube_record_t) == 40 && sizeof(kube_ref_t) == 8,
              "records are laid out without holes");


/*
 * Entries are numbered from 1.  A head is sequence << 32 | offset; the
 * sequence grows at every store, offset 0 is no record.  A free entry keeps
 * its sequence, hash and link.
 */
typedef struct {
    kube_word_t  head;
    kube_half_t  next;            /* entry of the same chain; 0: the last */
    kube_half_t  hash;
} kube_zone_entry_t;

typedef struct {
    kube_word_t  record;          /* a head, of a SCOPE record */
    kube_word_t  error;           /* a head, of an ERROR record */
    kube_word_t  uncounted;       /* refused without a name since the record
                                     was stored */
    kube_word_t  interrupted;     /* not 0: one of those without a name was
                                     between two Services, until a list */
    kube_word_t  counters[KUBE_COUNTERS];
} kube_zone_scope_t;

typedef struct {
    kube_word_t  since_ms;
    kube_word_t  last_ms;       /* 0: never */
} kube_zone_mark_t;

typedef struct {
    kube_word_t  last_ms;       /* 0: never */
    kube_word_t  n;             /* of all; of rows, as many as there are */
    kube_word_t  rows[KUBE_TRUNCATED_SHOWN_MAX];    /* seconds << 32 | entry */
} kube_zone_truncated_t;

typedef struct {
    kube_word_t            counters[KUBE_WORKER_COUNTERS];
    kube_zone_mark_t       over_budget;
    kube_zone_truncated_t  truncated;
} kube_zone_worker_t;

typedef struct {
    kube_word_t  buckets[KUBE_HISTOGRAM_BUCKETS + 1];
    kube_word_t  sum;
} kube_zone_histogram_t;

/* In words: a namespace and a name, one behind the other. */
#define KUBE_ZONE_POISON_TEXT  40

/* What a process said as it died, see kube_zone_poison.h. */
typedef struct {
    kube_word_t  said;            /* set last */
    kube_word_t  stage;
    kube_word_t  signal_number;
    kube_word_t  scope;
    kube_word_t  resource;
    kube_word_t  lo;              /* digest of the key, or of the frame */
    kube_word_t  hi;
    kube_word_t  uid;             /* hash; 0: not known */
    kube_word_t  ns_len;
    kube_word_t  name_len;        /* 0: the key is not known */
    kube_word_t  text[KUBE_ZONE_POISON_TEXT];
} kube_zone_words_t;

/* An object that killed the process. */
typedef struct {
    kube_word_t  crashes;         /* 0: the row is free */
    kube_word_t  lo;              /* as above */
    kube_word_t  hi;
    kube_word_t  uid;
    kube_word_t  scope;
    kube_word_t  resource;
    kube_word_t  ns;              /* hash of the namespace; 0: not known */
    kube_word_t  last_ms;
    kube_word_t  tried;           /* after its time */
} kube_zone_blame_t;

/*
 * An event of the ring (kube_zone_ring.h), in the slot of its sequence modulo
 * their number.
 */
typedef struct {
    kube_word_t  sequence;        /* set last; 0: it is being written */
    kube_word_t  what;            /* kind, resource and lengths: bytes */
    kube_word_t  text[(KUBE_ZONE_EVENT_TEXT + 7) / 8];
} kube_zone_slot_t;

/* Words that a copy of the image into another size keeps as they are. */
typedef struct {
    kube_word_t  failures;
    kube_word_t  distrust;        /* not 0: something was lost, and scopes may
                                     still show a version that has it */
    kube_word_t  epoch;
    kube_word_t  takeovers;
    kube_word_t  crashes;
    kube_word_t  crash_times_ms[KUBE_ZONE_CRASHES];
    kube_word_t  crash_run;
    kube_word_t  disturbances;                  /* take-overs they led to */
    kube_word_t  disturbance_run;
    kube_word_t  disturbed_until_ms;            /* no other one before */
    kube_word_t  crashes_blameless;             /* of the run */
    kube_word_t  start_delay_until_ms;
    kube_word_t  list_delay_until_ms;
    kube_word_t  state_written_ms;
    kube_word_t  state_in_use;
    kube_word_t  state_failed;
    kube_word_t  object_max;         /* bytes: larger objects were refused */
    kube_word_t  ready;              /* KUBE_READY_ bits */
    kube_word_t  cause_since_ms[KUBE_CAUSES];
    kube_word_t  blamed;          /* 0: all rows of blame are free */

    kube_zone_words_t  words;
    kube_zone_blame_t  blame[KUBE_POISON_ROWS];
} kube_zone_history_t;

struct kube_zone_image_s {
    kube_zone_geometry_t    geometry;

    /* a cache line that readers load */
    _Alignas(64)
    kube_word_t             reuse;          /* odd: an entry changes chains */
    kube_word_t             revision;       /* the last given out */
    kube_word_t             live_bytes;
    kube_word_t             entries_used;
    kube_word_t             entries_top;    /* none above was ever taken */
    kube_word_t             refused;        /* names, and outdated objects */
    kube_word_t             server;         /* a head, of an INFO record */
    kube_word_t             events;         /* sequence of the newest event */
    kube_word_t             numbering;      /* how often it began anew */

    /* what a take-over asks of the predecessor */
    kube_word_t             dirty;          /* it did not leave */
    kube_word_t             stores;         /* heads of entries stored, ever */
    kube_word_t             evicting;       /* a head, of an entry's number */
    kube_word_t             evicting_scope; /* set before */

    kube_word_t             writer_pid;
    kube_word_t             writer_since_ms;
    kube_word_t             starting_pid;
    kube_word_t             queue_depth;
    kube_word_t             queue_since_ms;
    kube_word_t             services_waiting;
    kube_word_t             services_added;
    kube_zone_history_t     history;

    /* what readers write, with history.ready */
    _Alignas(64)
    kube_word_t             corrupt;        /* broken records met */

    kube_zone_histogram_t   histograms[KUBE_HISTOGRAMS][KUBE_RESOURCES_ROUTED];
};

/* A module of another release may find this image, at a reload. */
static_assert(KUBE_ZONE_LAYOUT == 24
              && sizeof(kube_zone_image_t) == 7552
              && sizeof(kube_zone_scope_t) == 464
              && sizeof(kube_zone_worker_t) == 352,
              "another image has another KUBE_ZONE_LAYOUT");


/* The rest of this header is not in the image. */

/*
 * What the writer knows of a number: entries, then scopes and the server,
 * which have offset alone.  It is the truth: what readers see of it in the
 * image may have been changed by any process that has the zone mapped, so the
 * writer reads no length, link or count there that it does not bound.
 *
 * service is the published Service that
 * names a record of this slice, so that no label is read for it; 0: none.
 * Where more than one may (while a slice changes its label), each record's
 * label tells: KUBE_ZONE_SEVERAL.
 */
typedef struct {
    uint32_t  offset;         /* of the published record, as in the head; 0 */
    uint32_t  hash;           /* of the key that the entry was taken for */
    uint8_t   kind;           /* of the published record; 0: none */
    bool      outdated;       /* it is flagged so */
    bool      linked;         /* the entry is in the chain of hash */
    bool      freed;          /* it is in quarantine */
    uint32_t  staged;         /* offset of a record not published; 0 */
    uint32_t  service;
    uint32_t  next;           /* free entries: in unused or in quarantine */
    uint32_t  prev;           /* in quarantine */
    uint32_t  freed_ms;       /* in quarantine: since, modulo 2^32 */
} kube_zone_side_t;

#define KUBE_ZONE_SEVERAL  UINT32_MAX

typedef struct {
    uint32_t  live;           /* bytes of records in use */
    uint32_t  used;           /* bytes appended */
} kube_zone_segment_t;

#define KUBE_ZONE_NO_SEGMENT  UINT32_MAX

/*
 * Nobody follows a chain further.  There are three entries for two buckets at
 * most, and the hash's seed is secret: a chain of 32 is not to be expected in
 * the largest zone.
 */
#define KUBE_ZONE_CHAIN_MAX   1024

/*
 * Invariants, outside of a call: open_segment is not counted in free_n; a
 * segment with live 0 that is not open is free; free_n >= 1, so that an
 * evacuation has a place to go to.  All but the first four fields are made
 * anew by the walk at acquire.
 */
enum {
    KUBE_ZONE_COPY_NEWEST,
    KUBE_ZONE_COPY_PUBLISHED,
    KUBE_ZONE_COPIES
};

struct kube_zone_writer_s {
    const kube_alloc_t   *alloc;
    kube_zone_t          *zone;
    bool                  held;
    uint64_t              now_ms;           /* kube_zone_writer_now() */
    struct kube_hand_s   *hand;             /* borrowed; NULL: none */

    kube_zone_side_t     *side;             /* by number; [0] is not used */
    uint64_t             *bits;             /* a live record begins here */
    uint64_t             *ends;             /* a live record's last unit */
    kube_zone_segment_t  *segments;

    uint32_t              open_segment;     /* KUBE_ZONE_NO_SEGMENT: none */
    uint32_t              segments_top;     /* none from here on was opened */
    uint32_t              free_n;
    uint64_t              live_bytes;
    uint64_t              revision;         /* the last given out */
    uint64_t              reuse;            /* even */
    bool                  suspicion;
    uint64_t              corrupt;          /* the image's, after the walk */
    uint64_t              events;           /* the image's */

    uint32_t              entries_top;      /* never falls; see the image's */
    uint32_t              entries_used;
    uint32_t              refused;          /* names */
    uint64_t              refused_bytes;    /* of their records */
    uint32_t              outdated;         /* published, flagged so */
    uint32_t              unused;           /* in no chain; a list, without
                                               those above entries_top */
    uint32_t              quarantine_first; /* freed, oldest first; a list */
    uint32_t              quarantine_last;
    uint32_t              scrubbed;         /* the number looked at last */

    /*
     * What reading may change: the copies that kube_zone_newest() and
     * kube_zone_published() return, and whether something was found that is
     * not as this writer left it (it points to suspicion).
     */
    kube_record_t        *copies[KUBE_ZONE_COPIES];
    bool                 *suspect;
};


static inline void
kube_word_set(kube_word_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
    KUBE_FAILPOINT("store");
}


static inline uint32_t
kube_half_get(const kube_half_t *half)
{
    KUBE_ZONE_PAUSE(half);

    return atomic_load_explicit(half, memory_order_acquire);
}


static inline void
kube_half_set(kube_half_t *half, uint32_t value)
{
    atomic_store_explicit(half, value, memory_order_release);
    KUBE_FAILPOINT("store");
}


static inline uint32_t
kube_head_offset(uint64_t head)
{
    return (uint32_t) head;
}


/* The offset under a head now; 0: no record. */
static inline uint32_t
kube_head_get(const kube_word_t *word)
{
    return kube_head_offset(kube_word_get(word));
}


/* Only the writer stores heads: it may read the sequence relaxed. */
static inline void
kube_head_set(kube_word_t *word, uint32_t offset)
{
    uint64_t  head;

    head = atomic_load_explicit(word, memory_order_relaxed);
    kube_word_set(word, ((head >> 32) + 1) << 32 | offset);
}


static inline void *
kube_zone_at(const kube_zone_t *zone, uint64_t offset)
{
    return (char *) zone->image + offset;
}


static inline kube_half_t *
kube_zone_bucket(const kube_zone_t *zone, uint32_t hash)
{
    const kube_zone_geometry_t  *g;

    g = &zone->geometry;

    return (kube_half_t *) kube_zone_at(zone, g->buckets)
           + (hash & (g->buckets_n - 1));
}


/* What the image says of the highest entry that was ever taken, bounded. */
static inline uint32_t
kube_zone_top(const kube_zone_t *zone)
{
    uint64_t  top;

    top = kube_word_get(&zone->image->entries_top);

    return (top < zone->geometry.entries_n) ? (uint32_t) top
                                            : zone->geometry.entries_n;
}


/* The last revision given out as the image says; 0: it cannot be that. */
static inline uint64_t
kube_zone_revision(const kube_zone_t *zone)
{
    uint64_t  revision;

    revision = kube_word_get(&zone->image->revision);

    return (revision <= KUBE_ZONE_REVISION_FOUND) ? revision : 0;
}


/* entry is 1 .. entries_n. */
static inline kube_zone_entry_t *
kube_zone_entry(const kube_zone_t *zone, uint32_t entry)
{
    return (kube_zone_entry_t *)
               kube_zone_at(zone, zone->geometry.entries) + entry - 1;
}


/* scope is 0 .. scopes_n - 1. */
static inline kube_zone_scope_t *
kube_zone_scope(const kube_zone_t *zone, unsigned scope)
{
    return (kube_zone_scope_t *)
               kube_zone_at(zone, zone->geometry.scopes) + scope;
}


/* The words of a record; the caller bounds offset. */
static inline kube_word_t *
kube_zone_words(const kube_zone_t *zone, uint32_t offset)
{
    return kube_zone_at(zone, (uint64_t) offset * KUBE_ZONE_UNIT);
}


/* The writer, or a walk without one, reads records as plain memory. */
static inline kube_record_t *
kube_zone_record_at(const kube_zone_t *zone, uint32_t offset)
{
    return kube_zone_at(zone, (uint64_t) offset * KUBE_ZONE_UNIT);
}


/* The offset of an entry's published record; 0: none. */
static inline uint32_t
kube_zone_entry_offset(const kube_zone_t *zone, uint32_t entry)
{
    return kube_head_get(&kube_zone_entry(zone, entry)->head);
}


/*
 * Records that belong to no entry have numbers above the entries': two for
 * each scope, one for the server.
 */
static inline uint32_t
kube_zone_scope_number(const kube_zone_t *zone, unsigned scope, bool error)
{
    return zone->geometry.entries_n + 1 + 2 * scope + (error ? 1 : 0);
}


static inline uint32_t
kube_zone_server_number(const kube_zone_t *zone)
{
    return zone->geometry.entries_n + 1
           + 2 * zone->geometry.scopes_n;
}


/* The head of number 1 .. kube_zone_server_number(). */
static inline kube_word_t *
kube_zone_head_of(const kube_zone_t *zone, uint32_t number)
{
    uint32_t            n;
    kube_zone_scope_t  *scope;

    if (number <= zone->geometry.entries_n) {
        return &kube_zone_entry(zone, number)->head;
    }

    if (number >= kube_zone_server_number(zone)) {
        return &zone->image->server;
    }

    n = number - zone->geometry.entries_n - 1;
    scope = kube_zone_scope(zone, n / 2);

    return (n % 2 == 0) ? &scope->record : &scope->error;
}


/* The hash that an object's entry bears; the same for all kinds of record. */
static inline uint32_t
kube_zone_hash(const kube_zone_t *zone, const kube_record_id_t *id)
{
    return kube_key_hash(zone->geometry.seed, id->resource,
                         id->meta.ns, id->meta.name);
}


/* Bytes that a record at offset may have; 0: no record can begin there. */
static inline size_t
kube_zone_room_at(const kube_zone_t *zone, uint32_t offset)
{
    uint64_t                     at;
    const kube_zone_geometry_t  *g;

    g = &zone->geometry;
    at = (uint64_t) offset * KUBE_ZONE_UNIT - g->segments;

    /* an offset below the segments wraps, and is beyond them */
    if (at >= (uint64_t) g->segments_n * g->segment_size) {
        return 0;
    }

    /* a power of two, as create makes it */
    at = g->segment_size - (at & (g->segment_size - 1));

    return (at > sizeof(kube_record_t)) ? (size_t) at : 0;
}


/* True if the header's refs lie within its size. */
static inline bool
kube_zone_refs_fit(const kube_record_t *header)
{
    return header->refs_n <= KUBE_SERVICE_SLICES_MAX
           && sizeof(kube_record_t) + header->refs_n * sizeof(kube_ref_t)
              < header->size;
}


/*
 * Ref i of the record at offset with this header, which was checked; what the
 * ref says is not.
 */
static inline kube_ref_t
kube_zone_ref_at(const kube_zone_t *zone, uint32_t offset,
    const kube_record_t *header, uint32_t i)
{
    uint64_t    word;
    kube_ref_t  ref;

    word = kube_word_get(kube_zone_words(zone, offset)
                         + kube_record_base(header) / KUBE_ZONE_UNIT + i);
    memcpy(&ref, &word, sizeof(kube_ref_t));

    return ref;
}


/*
 * Reads the header of the record at offset, word by word: of an image that
 * changes it is one that can be checked, whatever is there a moment later.
 * The caller bounds offset.
 */
static inline void
kube_zone_header_load(const kube_zone_t *zone, uint32_t offset,
    kube_record_t *header)
{
    size_t              i;
    uint64_t            words[sizeof(kube_record_t) / KUBE_ZONE_UNIT];
    const kube_word_t  *from;

    from = kube_zone_words(zone, offset);

    for (i = 0; i < sizeof(kube_record_t) / KUBE_ZONE_UNIT; i++) {
        words[i] = kube_word_get(&from[i]);
    }

    memcpy(header, words, sizeof(kube_record_t));
}


/* The same of any offset.  False: no record with such a size can be there. */
static inline bool
kube_zone_header_at(const kube_zone_t *zone, uint32_t offset,
    kube_record_t *header)
{
    size_t  room;

    room = kube_zone_room_at(zone, offset);

    if (room == 0) {
        return false;
    }

    kube_zone_header_load(zone, offset, header);

    return header->size > sizeof(kube_record_t)
           && header->size <= room
           && header->size % KUBE_ZONE_UNIT == 0;
}


#endif /* KUBE_ZONE_IMAGE_H */
