/*
 * kube_objects - /api/v1/objects: what a zone holds, object by object.
 *
 * It judges nothing: what is degraded, kube_report says.  Called by workers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "kube_hash.h"
#include "kube_object_json.h"
#include "kube_objects.h"
#include "kube_zone_reader.h"


/*
 * The walks that a list is made of, one after the other.  "next" is the zone's
 * mark times OBJECTS_WHERE, the number of the walk times OBJECTS_ENTRIES, and
 * that of an entry.
 */
#define OBJECTS_ENTRIES  UINT64_C(0x100000000)
#define OBJECTS_WHERE    (4 * OBJECTS_ENTRIES)

typedef enum {
    OBJECTS_SERVICES = 0,
    OBJECTS_SLICES,
    OBJECTS_REFUSED,
    OBJECTS_WALKS
} objects_walk_t;

static_assert(OBJECTS_WALKS * OBJECTS_ENTRIES <= OBJECTS_WHERE, "a walk fits");


/* Each zone has a seed of its own; 30 bits of what it makes of a word. */
static uint64_t
objects_mark(const kube_zone_t *zone)
{
    return kube_hash64(zone->geometry.seed, "objects", 7)
           / OBJECTS_WHERE * OBJECTS_WHERE;
}


kube_rc_t
kube_objects_after(const kube_zone_t *zone, kube_str_t text, uint64_t *after)
{
    uint64_t  number;

    *after = 0;

    if (text.len == 0) {
        return KUBE_OK;
    }

    if (kube_str_to_u64(text, UINT64_MAX, &number) != KUBE_OK
        || number % OBJECTS_WHERE >= OBJECTS_WALKS * OBJECTS_ENTRIES)
    {
        return KUBE_INVALID;
    }

    *after = number % OBJECTS_WHERE;

    return (number - *after == objects_mark(zone)) ? KUBE_OK : KUBE_CHANGED;
}


static kube_rc_t
objects_next(const kube_zone_t *zone, objects_walk_t walk, uint32_t *cursor,
    kube_arena_t *scratch, const kube_record_t **record)
{
    uint32_t  entry;

    if (walk == OBJECTS_REFUSED) {
        return kube_zone_next_refused(zone, cursor, scratch, record);
    }

    return kube_zone_next(zone, walk == OBJECTS_SERVICES ? KUBE_RECORD_SERVICE
                                                         : KUBE_RECORD_SLICE,
                          cursor, scratch, record, &entry);
}


/* KUBE_OK, or KUBE_NOMEM; a record that cannot be read is left out. */
static kube_rc_t
objects_item(kube_json_writer_t *json, objects_walk_t walk,
    const kube_record_t *record, kube_arena_t *scratch)
{
    kube_rc_t         rc;
    kube_object_t     object;
    kube_record_id_t  id;
    char              digest[33];

    if (kube_record_id(record, record->size, &id) != KUBE_OK) {
        return KUBE_OK;
    }

    if (walk != OBJECTS_REFUSED) {
        rc = kube_record_decode(scratch, record, record->size, &object);

        if (rc != KUBE_OK) {
            return (rc == KUBE_NOMEM) ? rc : KUBE_OK;
        }
    }

    kube_json_open(json, NULL, '{');
    kube_json_put_str(json, "resource",
                      kube_str(kube_resource_text(id.resource)));
    kube_json_put_str(json, "namespace", id.meta.ns);
    kube_json_put_str(json, "name", id.meta.name);
    kube_json_put_str(json, "resource_version", id.meta.rv);

    if (walk == OBJECTS_REFUSED) {
        kube_json_put_str(json, "refused",
                          record->kind == KUBE_RECORD_REFUSED ? id.reason
                          : kube_reason_text(
                                       kube_record_outdated_reason(record)));

    } else {
        kube_digest_hex(kube_record_digest(record), digest);

        kube_json_put_bool(json, "outdated",
                           record->flags & KUBE_RECORD_F_OUTDATED);
        kube_json_put_str(json, "digest", kube_str(digest));
        kube_json_put_object(json, "object", &object);
    }

    kube_json_close(json, '}');

    return KUBE_OK;
}


kube_rc_t
kube_objects_print(kube_text_t *text, const kube_zone_t *zone, uint64_t after,
    size_t limit, kube_arena_t *scratch)
{
    int                   len;
    size_t                n, size_max;
    uint32_t              cursor;
    kube_rc_t             rc;
    unsigned              walk;
    kube_str_t            next;
    kube_json_writer_t    json;
    const kube_record_t  *record;
    char                  number[24];

    walk = (unsigned) (after / OBJECTS_ENTRIES);
    cursor = (uint32_t) after;

    if (cursor > zone->geometry.entries_n) {
        walk++;
        cursor = 0;
    }

    size_max = text->size + KUBE_OBJECTS_BYTES;
    n = 0;

    kube_json_writer_init(&json, text);
    kube_json_open(&json, NULL, '{');
    kube_json_open(&json, "items", '[');

    while (walk < OBJECTS_WALKS && n < limit && text->size < size_max)
    {
        kube_arena_reset(scratch);

        rc = objects_next(zone, (objects_walk_t) walk, &cursor, scratch,
                          &record);

        if (rc == KUBE_NOT_FOUND) {
            walk++;
            cursor = 0;
            continue;
        }

        if (rc == KUBE_OK) {
            rc = objects_item(&json, (objects_walk_t) walk, record, scratch);
            n++;
        }

        if (rc != KUBE_OK) {
            return rc;
        }
    }

    next = KUBE_STR("");

    if (walk < OBJECTS_WALKS) {
        len = snprintf(number, sizeof(number), "%" PRIu64,
                       objects_mark(zone) + walk * OBJECTS_ENTRIES + cursor);
        next = (kube_str_t) { number, (size_t) len };
    }

    kube_json_close(&json, ']');
    kube_json_put_str(&json, "next", next);
    kube_json_close(&json, '}');
    kube_text_put(text, KUBE_STR("\n"));

    return KUBE_OK;
}
