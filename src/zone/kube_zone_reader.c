/*
 * kube_zone_reader - look-up and consistent copies.
 *
 * It writes nothing but one counter of broken records, takes no lock, and
 * interprets no byte of a copy before the head was found unchanged; the
 * header says why that is enough.  Any process or thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_zone_image.h"
#include "kube_zone_reader.h"


#define READER_HEADER_WORDS  (sizeof(kube_record_t) / KUBE_ZONE_UNIT)

/* The first buffer is this large: most records fit at once. */
#define READER_SMALL         1024

/* Of what all slices of a Service take, so much more is reserved: a part. */
#define READER_SPARE         16

/* Slices that may have left a Service between those that two tries find. */
#define READER_LOOK          64

/* Bytes of slices copied in all tries, or so often all there is room for. */
#define READER_COPIED_MAX    (4u << 20)
#define READER_WHOLES_MAX    4

/* The bytes of a namespace and a name, each behind its length. */
#define READER_KEY_MAX                                                        \
    ((1 + KUBE_NAMESPACE_LEN_MAX + 1 + KUBE_NAME_LEN_MAX + 7) / 8 * 8)


/* The first words of the content of any record with this key. */
typedef struct {
    uint64_t  words[READER_KEY_MAX / KUBE_ZONE_UNIT];
    uint64_t  mask;               /* of the last word */
    size_t    n;
    uint32_t  hash;
    bool      refused;            /* of a name alone, or of an object */
} reader_key_t;


/* KUBE_OK, or KUBE_INVALID: no object can have this key. */
static kube_rc_t
reader_key_make(const kube_zone_t *zone, kube_resource_t resource,
    kube_str_t ns, kube_str_t name, reader_key_t *key)
{
    size_t         len;
    unsigned char  bytes[READER_KEY_MAX], mask[KUBE_ZONE_UNIT];

    if (ns.len == 0
        || ns.len > KUBE_NAMESPACE_LEN_MAX
        || name.len == 0
        || name.len > KUBE_NAME_LEN_MAX)
    {
        return KUBE_INVALID;
    }

    len = 2 + ns.len + name.len;
    key->n = (len + KUBE_ZONE_UNIT - 1) / KUBE_ZONE_UNIT;

    memset(bytes + (key->n - 1) * KUBE_ZONE_UNIT, 0, KUBE_ZONE_UNIT);
    bytes[0] = (unsigned char) ns.len;
    memcpy(bytes + 1, ns.data, ns.len);
    bytes[1 + ns.len] = (unsigned char) name.len;
    memcpy(bytes + 2 + ns.len, name.data, name.len);

    memset(mask, 0, KUBE_ZONE_UNIT);
    memset(mask, 0xff, len - (key->n - 1) * KUBE_ZONE_UNIT);

    memcpy(key->words, bytes, key->n * KUBE_ZONE_UNIT);
    memcpy(&key->mask, mask, KUBE_ZONE_UNIT);

    key->hash = kube_key_hash(zone->geometry.seed, resource, ns, name);

    return KUBE_OK;
}


/* Returns the size of the record at offset; 0: no record can be there. */
static size_t
reader_size(const kube_zone_t *zone, uint32_t offset)
{
    size_t         room;
    uint64_t       word;
    kube_record_t  header;

    room = kube_zone_room_at(zone, offset);

    if (room == 0) {
        return 0;
    }

    word = kube_word_get(kube_zone_words(zone, offset));
    memcpy(&header, &word, sizeof(uint64_t));

    if (header.size <= sizeof(kube_record_t)
        || header.size > room
        || header.size % KUBE_ZONE_UNIT != 0)
    {
        return 0;
    }

    return header.size;
}


static void
reader_copy(const kube_zone_t *zone, uint32_t offset, void *buf, size_t size)
{
    size_t              i;
    uint64_t           *to;
    const kube_word_t  *from;

    to = buf;
    from = kube_zone_words(zone, offset);

    for (i = 0; i < size / KUBE_ZONE_UNIT; i++) {
        to[i] = kube_word_get(&from[i]);
    }
}


uint64_t
kube_zone_head(const kube_zone_t *zone, uint32_t entry)
{
    uint64_t  head;

    if (entry == 0 || entry > zone->geometry.entries_n) {
        return 0;
    }

    head = kube_word_get(&kube_zone_entry(zone, entry)->head);

    return (kube_head_offset(head) != 0) ? head : 0;
}


const _Atomic uint64_t *
kube_zone_head_word(const kube_zone_t *zone, uint32_t entry)
{
    if (entry == 0 || entry > zone->geometry.entries_n) {
        return NULL;
    }

    return &kube_zone_entry(zone, entry)->head;
}


/* KUBE_OK if the record under head is of an object with this key. */
static kube_rc_t
reader_key_match(const kube_zone_t *zone, const kube_word_t *word,
    uint64_t head, kube_resource_t resource, const reader_key_t *key)
{
    bool                same;
    size_t              i, size;
    uint64_t            first, w;
    kube_record_t       header;
    const kube_word_t  *words;

    size = reader_size(zone, kube_head_offset(head));

    if (size < sizeof(kube_record_t) + key->n * KUBE_ZONE_UNIT) {
        return (kube_word_get(word) == head) ? KUBE_NOT_FOUND : KUBE_CHANGED;
    }

    words = kube_zone_words(zone, kube_head_offset(head));
    first = kube_word_get(&words[0]);
    memcpy(&header, &first, sizeof(uint64_t));

    same = (header.resource == resource
            && (header.kind == KUBE_RECORD_REFUSED) == key->refused);
    words += READER_HEADER_WORDS;

    for (i = 0; same && i < key->n; i++) {
        w = kube_word_get(&words[i]) ^ key->words[i];
        same = ((i + 1 == key->n ? w & key->mask : w) == 0);
    }

    if (kube_word_get(word) != head) {
        return KUBE_CHANGED;
    }

    return same ? KUBE_OK : KUBE_NOT_FOUND;
}


static kube_rc_t
reader_entry_match(const kube_zone_t *zone, const kube_zone_entry_t *entry,
    kube_resource_t resource, const reader_key_t *key)
{
    unsigned   tries;
    uint64_t   head;
    kube_rc_t  rc;

    for (tries = 0; tries < KUBE_ZONE_TRIES; tries++) {
        head = kube_word_get(&entry->head);

        if (kube_head_offset(head) == 0) {
            return KUBE_NOT_FOUND;
        }

        rc = reader_key_match(zone, &entry->head, head, resource, key);

        if (rc != KUBE_CHANGED) {
            return rc;
        }
    }

    return KUBE_NOT_FOUND;
}


static kube_rc_t
reader_chain_find(const kube_zone_t *zone, kube_resource_t resource,
    const reader_key_t *key, uint32_t *found)
{
    uint32_t                  e, steps;
    const kube_zone_entry_t  *entry;

    steps = KUBE_ZONE_CHAIN_MAX;
    e = kube_half_get(kube_zone_bucket(zone, key->hash));

    while (e != 0 && e <= zone->geometry.entries_n && steps-- != 0) {
        entry = kube_zone_entry(zone, e);

        if (kube_half_get(&entry->hash) == key->hash
            && reader_entry_match(zone, entry, resource, key) == KUBE_OK)
        {
            *found = e;
            return KUBE_OK;
        }

        e = kube_half_get(&entry->next);
    }

    return KUBE_NOT_FOUND;
}


static kube_rc_t
reader_find(const kube_zone_t *zone, kube_resource_t resource, kube_str_t ns,
    kube_str_t name, bool refused, uint32_t *entry)
{
    unsigned      tries;
    uint64_t      reuse;
    reader_key_t  key;

    if (reader_key_make(zone, resource, ns, name, &key) != KUBE_OK) {
        return KUBE_NOT_FOUND;
    }

    key.refused = refused;

    for (tries = 0; tries < KUBE_ZONE_TRIES; tries++) {
        reuse = kube_word_get(&zone->image->reuse);

        if (reader_chain_find(zone, resource, &key, entry) == KUBE_OK) {
            return KUBE_OK;
        }

        /* an entry may have taken this walk into another chain: try again */
        if (reuse % 2 == 0 && kube_word_get(&zone->image->reuse) == reuse) {
            return KUBE_NOT_FOUND;
        }
    }

    /* chains are rebuilt: what was not seen may be there */
    return KUBE_CHANGED;
}


kube_rc_t
kube_zone_find(const kube_zone_t *zone, kube_resource_t resource,
    kube_str_t ns, kube_str_t name, uint32_t *entry)
{
    return reader_find(zone, resource, ns, name, false, entry);
}


bool
kube_zone_is_refused(const kube_zone_t *zone, kube_resource_t resource,
    kube_str_t ns, kube_str_t name)
{
    uint32_t  entry;

    return reader_find(zone, resource, ns, name, true, &entry) == KUBE_OK;
}


/*
 * True if the size bytes that were copied are one whole record, as its writer
 * wrote it: another process may have written since.
 */
static bool
reader_is_sound(const void *copy, size_t size)
{
    const kube_record_t  *record;

    record = copy;

    return size != 0
           && record->size == size
           && kube_record_verify(record, size) == KUBE_OK;
}


/*
 * Copies the record that head names if head is *word afterwards.  KUBE_OK,
 * KUBE_CHANGED, KUBE_TOO_LARGE (*size is what is needed), KUBE_CORRUPT (the
 * head names no record at all).
 */
static kube_rc_t
reader_copy_record(const kube_zone_t *zone, const kube_word_t *word,
    uint64_t head, void *buf, size_t *size)
{
    size_t  room, need;

    room = *size;
    need = reader_size(zone, kube_head_offset(head));
    *size = need;

    if (need <= room) {
        reader_copy(zone, kube_head_offset(head), buf, need);
    }

    if (kube_word_get(word) != head) {
        return KUBE_CHANGED;
    }

    if (need > room) {
        return KUBE_TOO_LARGE;
    }

    return reader_is_sound(buf, need) ? KUBE_OK : KUBE_CORRUPT;
}


static kube_rc_t
reader_corrupt(const kube_zone_t *zone)
{
    kube_word_add(&zone->image->corrupt, 1);

    return KUBE_CORRUPT;
}


kube_rc_t
kube_zone_load_into(const kube_zone_t *zone, uint32_t number, void *buf,
    size_t *size)
{
    size_t              room;
    unsigned            tries;
    uint64_t            head;
    kube_rc_t           rc;
    const kube_word_t  *word;

    room = *size;
    word = kube_zone_head_of(zone, number);

    for (tries = 0; tries < KUBE_ZONE_TRIES; tries++) {
        head = kube_word_get(word);

        if (kube_head_offset(head) == 0) {
            return KUBE_NOT_FOUND;
        }

        *size = room;
        rc = reader_copy_record(zone, word, head, buf, size);

        if (rc == KUBE_OK && ((const kube_record_t *) buf)->entry != number) {
            rc = KUBE_CORRUPT;
        }

        if (rc != KUBE_CHANGED) {
            return (rc == KUBE_CORRUPT) ? reader_corrupt(zone) : rc;
        }
    }

    return KUBE_CHANGED;
}


kube_rc_t
kube_zone_load(const kube_zone_t *zone, uint32_t number, kube_arena_t *arena,
    const kube_record_t **record)
{
    void      *buf;
    size_t     room, size;
    unsigned   tries;
    kube_rc_t  rc;

    buf = NULL;
    room = 0;

    for (tries = 0; tries < KUBE_ZONE_TRIES; tries++) {
        size = room;
        rc = kube_zone_load_into(zone, number, buf, &size);

        if (rc != KUBE_TOO_LARGE) {
            *record = buf;
            return rc;
        }

        room = (size > READER_SMALL) ? size : READER_SMALL;
        buf = kube_arena_alloc(arena, room);

        if (buf == NULL) {
            return KUBE_NOMEM;
        }
    }

    return KUBE_CHANGED;
}


/* A buffer that is kept from try to try, and grows. */
typedef struct {
    kube_arena_t  *arena;
    char          *buf;
    size_t         room;
} reader_space_t;


static kube_rc_t
reader_space_reserve(reader_space_t *space, size_t need)
{
    if (space->buf != NULL && need <= space->room) {
        return KUBE_OK;
    }

    space->buf = kube_arena_alloc(space->arena, need);

    if (space->buf == NULL) {
        space->room = 0;
        return KUBE_NOMEM;
    }

    space->room = need;

    return KUBE_OK;
}


/* Where the record that ref names was copied to. */
typedef struct {
    kube_ref_t             ref;         /* offset 0: to no avail */
    uint32_t               size;        /* of what is to be copied; 0: of no
                                           record */
    uint32_t               room;        /* at place */
    char                  *place;       /* NULL: it has none yet */
} reader_row_t;

/* What a try has copied: the next one keeps of it what is still there. */
typedef struct {
    reader_space_t         space;
    reader_row_t          *rows;
    const kube_record_t  **copies;
    size_t                 n;
} reader_rows_t;

typedef struct {
    reader_space_t         service;
    reader_space_t         slices;
    size_t                 used;        /* of the latter */
    uint64_t               copied;      /* bytes of slices, in all tries */
    bool                   kept;        /* a copy is that of an earlier try */
    unsigned               turn;        /* rows of the last try */
    reader_rows_t          rows[2];
} reader_load_t;


static void
reader_load_init(reader_load_t *load, kube_arena_t *arena,
    kube_arena_t *slices)
{
    memset(load, 0, sizeof(reader_load_t));

    load->service.arena = arena;
    load->slices.arena = slices;
    load->rows[0].space.arena = slices;
    load->rows[1].space.arena = slices;
}


/* Nothing that was copied is kept. */
static void
reader_load_forget(reader_load_t *load)
{
    load->rows[load->turn].n = 0;
    load->used = 0;
    load->kept = false;
}


/* Room for n rows in this try and in the next one. */
static kube_rc_t
reader_rows_reserve(reader_load_t *load, size_t n)
{
    size_t          size, more;
    unsigned        i;
    reader_rows_t  *rows;

    size = sizeof(kube_record_t *) + sizeof(reader_row_t);
    more = n + n / READER_SPARE + 1;

    for (i = 0; i < 2; i++) {
        rows = &load->rows[i];

        if (rows->rows != NULL && n * size <= rows->space.room) {
            continue;
        }

        rows->n = 0;

        if (reader_space_reserve(&rows->space, more * size) != KUBE_OK) {
            return KUBE_NOMEM;
        }

        rows->rows = (reader_row_t *) (void *) rows->space.buf;
        rows->copies = (const kube_record_t **) (void *) (rows->rows + more);
    }

    return KUBE_OK;
}


/* True if the record at offset begins as its copy does. */
static bool
reader_is_same(const kube_zone_t *zone, uint32_t offset,
    const kube_record_t *copy)
{
    size_t              i;
    uint64_t            words[READER_HEADER_WORDS];
    const kube_word_t  *from;

    memcpy(words, copy, sizeof(kube_record_t));
    from = kube_zone_words(zone, offset);

    for (i = 0; i < READER_HEADER_WORDS; i++) {
        if (kube_word_get(&from[i]) != words[i]) {
            return false;
        }
    }

    return true;
}


/*
 * The copy that an earlier try made of what the row's ref names; NULL: it has
 * none, or the record is another one now, and gets its place.  Rows are in one
 * order: *at is where the last one was found.
 */
static const kube_record_t *
reader_kept(const kube_zone_t *zone, const reader_rows_t *old,
    reader_row_t *row, size_t *at)
{
    size_t               i;
    const reader_row_t  *last;

    for (i = *at; i < old->n && i - *at < READER_LOOK; i++) {
        last = &old->rows[i];

        if (last->ref.entry != row->ref.entry) {
            continue;
        }

        *at = i + 1;
        row->place = last->place;
        row->room = last->room;

        return (old->copies[i] != NULL
                && last->ref.offset == row->ref.offset
                && reader_is_same(zone, row->ref.offset, old->copies[i]))
               ? old->copies[i] : NULL;
    }

    return NULL;
}


/* Begins rows for refs; returns what those take that have no place. */
static size_t
reader_rows_begin(const kube_zone_t *zone, reader_load_t *load,
    const kube_ref_t *refs, size_t n)
{
    size_t                i, at, need;
    reader_row_t         *row;
    reader_rows_t        *rows;
    const reader_rows_t  *old;

    old = &load->rows[load->turn];
    rows = &load->rows[1 - load->turn];
    load->kept = false;
    need = 0;
    at = 0;

    for (i = 0; i < n; i++) {
        row = &rows->rows[i];
        *row = (reader_row_t) { .ref = refs[i] };
        rows->copies[i] = (old->n != 0) ? reader_kept(zone, old, row, &at)
                                        : NULL;

        if (rows->copies[i] != NULL) {
            load->kept = true;
            continue;
        }

        row->size = (uint32_t) reader_size(zone, refs[i].offset);
        need += (row->size > row->room) ? row->size : 0;
    }

    rows->n = n;

    return need;
}


/*
 * Copies a slice to its place, for which there is room; NULL: it cannot be one
 * any more.
 */
static const kube_record_t *
reader_copy_slice(const kube_zone_t *zone, reader_load_t *load,
    reader_row_t *row)
{
    const kube_record_t  *copy;

    if (row->size == 0) {
        return NULL;
    }

    if (row->size > row->room) {
        row->place = load->slices.buf + load->used;
        row->room = row->size;
        load->used += row->size;
    }

    reader_copy(zone, row->ref.offset, row->place, row->size);
    load->copied += row->size;
    copy = (const kube_record_t *) (void *) row->place;

    /* overwritten since its size was read: no byte of it is looked at */
    return (copy->size == row->size) ? copy : NULL;
}


/*
 * The refs come from a copy whose head was found unchanged.  What is reserved
 * is a bit more than they take: where the next try finds some changed, or
 * longer, it is not all copied, and reserved, once more.  A Service of many
 * slices that changes all the time would never be read otherwise, and each try
 * would hold up whoever reads it for as long as the first.
 */
static kube_rc_t
reader_load_slices(const kube_zone_t *zone, const kube_record_t *service,
    reader_load_t *load, kube_zone_bundle_t *bundle)
{
    size_t             i, n, need;
    kube_rc_t          rc;
    reader_rows_t     *rows;
    const kube_ref_t  *refs;

    n = service->refs_n;
    refs = kube_record_refs(service);

    bundle->service = service;
    bundle->slices = NULL;
    bundle->slices_n = n;

    if (n == 0) {
        return KUBE_OK;
    }

    if (reader_rows_reserve(load, n) != KUBE_OK) {
        return KUBE_NOMEM;
    }

    need = reader_rows_begin(zone, load, refs, n);

    if (need > load->slices.room - load->used) {

        if (load->used != 0) {
            reader_load_forget(load);
            need = reader_rows_begin(zone, load, refs, n);
        }

        if (need > load->slices.room
            && reader_space_reserve(&load->slices, need + need / READER_SPARE)
               != KUBE_OK)
        {
            return KUBE_NOMEM;
        }
    }

    load->turn = 1 - load->turn;
    rows = &load->rows[load->turn];
    rc = KUBE_OK;

    for (i = 0; i < n; i++) {

        if (rows->copies[i] == NULL) {
            rows->copies[i] = reader_copy_slice(zone, load, &rows->rows[i]);
        }

        if (rows->copies[i] == NULL) {
            rows->rows[i].ref.offset = 0;
            rc = KUBE_CHANGED;
        }
    }

    bundle->slices = rows->copies;

    return rc;
}


/* Checks the copies of slices, once the head was found unchanged. */
static kube_rc_t
reader_bundle_check(const kube_zone_bundle_t *bundle)
{
    size_t                i;
    kube_record_id_t      id, service;
    const kube_ref_t     *refs;
    const kube_record_t  *slice;

    if (kube_record_id(bundle->service, bundle->service->size, &service)
        != KUBE_OK)
    {
        return KUBE_CORRUPT;
    }

    refs = kube_record_refs(bundle->service);

    for (i = 0; i < bundle->slices_n; i++) {
        slice = bundle->slices[i];

        if (slice->kind != KUBE_RECORD_SLICE
            || slice->entry != refs[i].entry
            || kube_record_verify_id(slice, slice->size, &id) != KUBE_OK
            || !kube_str_eq(id.service, service.meta.name)
            || !kube_str_eq(id.meta.ns, service.meta.ns))
        {
            return KUBE_CORRUPT;
        }
    }

    return KUBE_OK;
}


static kube_rc_t
reader_service_check(const kube_record_t *record, kube_str_t ns,
    kube_str_t name)
{
    kube_record_id_t  id;

    if (kube_record_id(record, record->size, &id) != KUBE_OK) {
        return KUBE_CORRUPT;
    }

    if (record->kind != KUBE_RECORD_SERVICE
        || (ns.len != 0 && (!kube_str_eq(id.meta.ns, ns)
                            || !kube_str_eq(id.meta.name, name))))
    {
        return KUBE_NOT_FOUND;
    }

    return KUBE_OK;
}


/* Makes one try. */
static kube_rc_t
reader_load_bundle(const kube_zone_t *zone, const kube_word_t *word,
    kube_str_t ns, kube_str_t name, reader_load_t *load,
    kube_zone_bundle_t *bundle)
{
    size_t                size;
    kube_rc_t             rc;
    const kube_record_t  *service;

    size = load->service.room;
    rc = reader_copy_record(zone, word, bundle->head, load->service.buf,
                            &size);

    if (rc == KUBE_TOO_LARGE) {
        rc = reader_space_reserve(&load->service,
                                  size > READER_SMALL ? size : READER_SMALL);
        return (rc == KUBE_OK) ? KUBE_CHANGED : rc;
    }

    if (rc != KUBE_OK) {
        return rc;
    }

    service = (const kube_record_t *) (void *) load->service.buf;
    rc = reader_service_check(service, ns, name);

    if (rc == KUBE_OK) {
        rc = reader_load_slices(zone, service, load, bundle);
    }

    /* a slice that cannot be read may have moved: only the head can tell */
    if (rc == KUBE_CHANGED || rc == KUBE_OK) {
        if (kube_word_get(word) != bundle->head) {
            return KUBE_CHANGED;
        }

        rc = (rc == KUBE_OK) ? reader_bundle_check(bundle) : KUBE_CORRUPT;
    }

    /* what an earlier try copied may have been overwritten, and be back */
    if (rc == KUBE_CORRUPT && load->kept) {
        reader_load_forget(load);
        return KUBE_CHANGED;
    }

    return rc;
}


/* True if what goes on changing has taken as much time as it may. */
static bool
reader_gives_up(const reader_load_t *load)
{
    return load->copied > READER_COPIED_MAX
           && load->copied / READER_WHOLES_MAX > load->slices.room;
}


kube_rc_t
kube_zone_load_service(const kube_zone_t *zone, uint32_t entry,
    kube_str_t ns, kube_str_t name, kube_arena_t *arena,
    kube_arena_t *slices, kube_zone_bundle_t *bundle)
{
    unsigned            tries;
    kube_rc_t           rc;
    reader_load_t       load;
    const kube_word_t  *word;

    if (entry == 0 || entry > zone->geometry.entries_n) {
        return KUBE_NOT_FOUND;
    }

    word = &kube_zone_entry(zone, entry)->head;
    reader_load_init(&load, arena, slices);

    for (tries = 0; tries < KUBE_ZONE_TRIES && !reader_gives_up(&load);
         tries++)
    {
        bundle->head = kube_word_get(word);

        if (kube_head_offset(bundle->head) == 0) {
            return KUBE_NOT_FOUND;
        }

        rc = reader_load_bundle(zone, word, ns, name, &load, bundle);

        if (rc == KUBE_CORRUPT) {
            return reader_corrupt(zone);
        }

        if (rc != KUBE_CHANGED) {
            return rc;
        }
    }

    return KUBE_CHANGED;
}


/* Replaces slices that have several parts by these, a slice each. */
static kube_rc_t
reader_parts(kube_arena_t *arena, kube_snapshot_t *snapshot)
{
    size_t         i, k, n;
    kube_slice_t  *parts;

    for (i = 0, n = 0; i < snapshot->slices_n; i++) {
        n += snapshot->slices[i].subsets_n ? snapshot->slices[i].subsets_n : 1;
    }

    if (n == snapshot->slices_n) {
        return KUBE_OK;
    }

    /* the step that finds no more part writes, too */

    parts = kube_arena_alloc(arena, (n + 1) * sizeof(kube_slice_t));
    if (parts == NULL) {
        return KUBE_NOMEM;
    }

    for (i = 0, n = 0; i < snapshot->slices_n; i++) {

        for (k = 0; kube_slice_part(&snapshot->slices[i], &k, &parts[n]); ) {
            n++;
            parts[n] = parts[n - 1];
        }
    }

    snapshot->slices = parts;
    snapshot->slices_n = n;

    return KUBE_OK;
}


static kube_rc_t
reader_decode_slices(kube_arena_t *arena, const kube_zone_bundle_t *bundle,
    kube_snapshot_t *snapshot)
{
    size_t         i;
    kube_rc_t      rc;
    kube_object_t  object;

    snapshot->slices_n = bundle->slices_n;
    snapshot->slices = NULL;

    if (bundle->slices_n == 0) {
        return KUBE_OK;
    }

    snapshot->slices = kube_arena_alloc(arena, bundle->slices_n
                                               * sizeof(kube_slice_t));
    if (snapshot->slices == NULL) {
        return KUBE_NOMEM;
    }

    for (i = 0; i < bundle->slices_n; i++) {
        rc = kube_record_decode(arena, bundle->slices[i],
                                bundle->slices[i]->size, &object);
        if (rc != KUBE_OK) {
            return rc;
        }

        snapshot->slices[i] = object.u.slice;

        if (bundle->slices[i]->flags & KUBE_RECORD_F_STATE_FILE) {
            snapshot->from_state_file = true;
        }
    }

    return reader_parts(arena, snapshot);
}


kube_rc_t
kube_zone_read(const kube_zone_t *zone, uint32_t entry, kube_str_t ns,
    kube_str_t name, kube_arena_t *arena, kube_snapshot_t *snapshot)
{
    kube_rc_t           rc;
    kube_object_t       object;
    kube_zone_bundle_t  bundle;

    rc = kube_zone_load_service(zone, entry, ns, name, arena, arena, &bundle);

    if (rc != KUBE_OK) {
        return rc;
    }

    rc = kube_record_decode(arena, bundle.service, bundle.service->size,
                            &object);

    if (rc == KUBE_OK) {
        snapshot->entry = entry;
        snapshot->head = bundle.head;
        snapshot->revision = bundle.service->revision;
        snapshot->from_state_file = (bundle.service->flags
                                     & KUBE_RECORD_F_STATE_FILE) != 0;
        snapshot->service = object.u.service;

        rc = reader_decode_slices(arena, &bundle, snapshot);
    }

    return (rc == KUBE_CORRUPT) ? reader_corrupt(zone) : rc;
}


/* No kind of record: all that is refused. */
#define READER_REFUSED  0

static bool
reader_is_of(const kube_record_t *header, unsigned kind)
{
    if (kind == READER_REFUSED) {
        return header->kind == KUBE_RECORD_REFUSED
               || (header->flags & KUBE_RECORD_F_OUTDATED) != 0;
    }

    return header->kind == kind;
}


/* True if the record under a head, not copied, may be one that is wanted. */
static bool
reader_is_wanted(const kube_zone_t *zone, const kube_word_t *word,
    unsigned kind)
{
    uint64_t       head, first;
    kube_record_t  header;

    head = kube_word_get(word);

    if (kube_head_offset(head) == 0
        || kube_zone_room_at(zone, kube_head_offset(head)) == 0)
    {
        return false;
    }

    first = kube_word_get(kube_zone_words(zone, kube_head_offset(head)));
    memcpy(&header, &first, sizeof(uint64_t));

    /* what was read may be of another record by now: a copy tells */
    return reader_is_of(&header, kind) || kube_word_get(word) != head;
}


/* Finds the next record of the kind up to last, or any that is refused. */
static kube_rc_t
reader_next(const kube_zone_t *zone, unsigned kind, uint32_t last,
    uint32_t *cursor, kube_arena_t *arena, const kube_record_t **record)
{
    uint32_t              e, top;
    kube_rc_t             rc, end;
    const kube_record_t  *found;

    top = kube_zone_top(zone);
    end = (last < top) ? KUBE_AGAIN : KUBE_NOT_FOUND;
    top = (last < top) ? last : top;

    for (e = *cursor + 1; e <= top; e++) {

        if (!reader_is_wanted(zone, &kube_zone_entry(zone, e)->head, kind)) {
            continue;
        }

        found = NULL;
        rc = kube_zone_load(zone, e, arena, &found);

        if (rc == KUBE_NOMEM) {
            return KUBE_NOMEM;
        }

        if (rc == KUBE_OK && found != NULL && reader_is_of(found, kind)) {
            *cursor = e;
            *record = found;
            return KUBE_OK;
        }
    }

    *cursor = e - 1;

    return end;
}


kube_rc_t
kube_zone_next(const kube_zone_t *zone, kube_record_kind_t kind,
    uint32_t *cursor, kube_arena_t *arena, const kube_record_t **record,
    uint32_t *entry)
{
    kube_rc_t  rc;

    rc = reader_next(zone, kind, UINT32_MAX, cursor, arena, record);
    *entry = *cursor;

    return rc;
}


kube_rc_t
kube_zone_next_within(const kube_zone_t *zone, kube_record_kind_t kind,
    uint32_t last, uint32_t *cursor, kube_arena_t *arena,
    const kube_record_t **record)
{
    return reader_next(zone, kind, last, cursor, arena, record);
}


kube_rc_t
kube_zone_next_refused(const kube_zone_t *zone, uint32_t *cursor,
    kube_arena_t *arena, const kube_record_t **record)
{
    return reader_next(zone, READER_REFUSED, UINT32_MAX, cursor, arena, record);
}
