/*
 * kube_state - writing and reading the state file's bytes.
 *
 * It opens no file and judges no age: the host does.  Encoding is for the
 * writer; checking and reading accept any bytes, in any process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_state.h"
#include "kube_zone_image.h"
#include "kube_zone_table.h"


#define STATE_MAGIC    0x6574617473627563ull
#define STATE_VERSION  3


/* All fields are in host order: the file does not leave the machine. */
typedef struct {
    uint64_t  magic;
    uint32_t  version;
    uint32_t  layout;          /* of records */
    uint64_t  identity;
    int64_t   written_ms;
    uint64_t  objects;
    uint64_t  size;
    uint64_t  check;           /* of the header before it and all behind */
    uint32_t  ca_n;            /* marks that follow, 8 bytes each */
    uint32_t  scopes_n;        /* records that follow these */
} state_header_t;

static_assert(sizeof(state_header_t) % 8 == 0, "records are aligned");


static uint64_t
state_checksum(const state_header_t *header, const unsigned char *bytes)
{
    kube_seed_t  seed;

    seed.k0 = kube_hash64((kube_seed_t) { STATE_MAGIC, STATE_VERSION },
                          header, offsetof(state_header_t, check));
    seed.k1 = ((uint64_t) header->ca_n << 32) | header->scopes_n;

    return kube_hash64(seed, bytes + sizeof(state_header_t),
                       (size_t) header->size - sizeof(state_header_t));
}


/*
 * For how long the scope was not known to be current; KUBE_NEVER: it never was.
 * What is held of one that was not listed is an older file's, or was listed
 * with other selectors, or from another server, before a reload.
 */
static uint64_t
state_age(const kube_zone_t *zone, unsigned scope,
    const kube_scope_info_t *info, uint64_t now_ms)
{
    return info->synced ? kube_zone_scope_age(zone, scope, now_ms)
                        : KUBE_NEVER;
}


/*
 * For how long none at all was known to be current: an outage makes all older,
 * whatever one of them had answered before.
 */
static uint64_t
state_youngest(const kube_zone_t *zone, uint64_t now_ms)
{
    unsigned           scope;
    uint64_t           age, youngest;
    uint64_t           buf[KUBE_SCOPE_RECORD_MAX / sizeof(uint64_t)];
    kube_scope_info_t  info;

    youngest = KUBE_NEVER;

    for (scope = 0; scope < zone->geometry.scopes_n; scope++) {
        if (kube_zone_scope_load(zone, scope, buf, &info) == KUBE_OK) {
            age = state_age(zone, scope, &info, now_ms);
            youngest = (age < youngest) ? age : youngest;
        }
    }

    return (youngest == KUBE_NEVER) ? 0 : youngest;
}


/* It answers 403, and was not current for longer than that; KUBE_NEVER is. */
static bool
state_is_refused(const kube_zone_t *zone, unsigned scope, uint64_t age_ms,
    uint64_t max_age_ms)
{
    return kube_zone_scope_forbidden(zone, scope) && age_ms > max_age_ms;
}


static void
state_omit(kube_state_omitted_t *omitted, const kube_scope_info_t *info)
{
    omitted->scopes[omitted->n].resource = info->resource;
    omitted->scopes[omitted->n].ns_len = info->ns.len;
    memcpy(omitted->scopes[omitted->n].ns, info->ns.data, info->ns.len);
    omitted->n++;
}


uint64_t
kube_state_omit(const kube_zone_t *zone, uint64_t now_ms,
    uint64_t max_behind_ms, kube_state_omitted_t *omitted)
{
    bool               refused, beside[KUBE_RESOURCES_ROUTED];
    unsigned           scope;
    uint64_t           age, oldest, max_age_ms;
    uint64_t           buf[KUBE_SCOPE_RECORD_MAX / sizeof(uint64_t)];
    kube_scope_info_t  info;

    oldest = 0;
    omitted->n = 0;
    max_age_ms = state_youngest(zone, now_ms) + max_behind_ms;
    memset(beside, 0, sizeof(beside));

    for (scope = 0; scope < zone->geometry.scopes_n; scope++) {
        if (kube_zone_scope_load(zone, scope, buf, &info) == KUBE_OK
            && !state_is_refused(zone, scope,
                                 state_age(zone, scope, &info, now_ms),
                                 max_age_ms))
        {
            beside[info.resource] = true;
        }
    }

    for (scope = 0; scope < zone->geometry.scopes_n; scope++) {

        if (kube_zone_scope_load(zone, scope, buf, &info) != KUBE_OK) {
            continue;
        }

        age = state_age(zone, scope, &info, now_ms);
        refused = state_is_refused(zone, scope, age, max_age_ms);

        if (refused && info.ns.len != 0
            && (age == KUBE_NEVER || beside[info.resource]))
        {
            state_omit(omitted, &info);

        } else if (age > oldest && !(refused && age == KUBE_NEVER)) {
            oldest = age;
        }
    }

    return oldest;
}


bool
kube_state_is_omitted(const kube_state_omitted_t *omitted,
    kube_resource_t resource, kube_str_t ns)
{
    unsigned    i;
    kube_str_t  all;

    for (i = 0; i < omitted->n; i++) {
        all.data = omitted->scopes[i].ns;
        all.len = omitted->scopes[i].ns_len;

        if (omitted->scopes[i].resource == resource
            && (all.len == 0 || kube_str_eq(all, ns)))
        {
            return true;
        }
    }

    return false;
}


size_t
kube_state_size(const kube_zone_writer_t *w)
{
    return sizeof(state_header_t) + KUBE_CA_MARKS_MAX * sizeof(uint64_t)
           + KUBE_SCOPES_MAX * KUBE_SCOPE_RECORD_MAX + (size_t) w->live_bytes;
}


/* Writes the record as kube_zone_stage() takes it: without refs. */
static size_t
state_put(unsigned char *to, const kube_record_t *record)
{
    size_t         base;
    kube_record_t  header;

    base = kube_record_base(record);

    header = *record;
    header.size = (uint32_t) base;
    header.refs_n = 0;
    header.entry = 0;
    header.revision = 0;
    header.flags |= KUBE_RECORD_F_STATE_FILE;

    memcpy(to, &header, sizeof(kube_record_t));
    memcpy(to + sizeof(kube_record_t), record + 1,
           base - sizeof(kube_record_t));

    return base;
}


/* Of an object; what cannot be read is not judged here. */
static bool
state_omits(const kube_state_omitted_t *omitted, const kube_record_t *record)
{
    kube_record_id_t  id;

    return omitted->n != 0
           && kube_record_id(record, record->size, &id) == KUBE_OK
           && kube_state_is_omitted(omitted, id.resource, id.meta.ns);
}


static kube_rc_t
state_put_all(const kube_zone_writer_t *w, kube_record_kind_t kind,
    const kube_state_omitted_t *omitted, unsigned char *buf, size_t size,
    state_header_t *header)
{
    uint32_t              e;
    const kube_record_t  *record;

    for (e = kube_zone_writer_next(w, 0); e != 0;
         e = kube_zone_writer_next(w, e))
    {
        record = kube_zone_published(w, e);

        if (record == NULL || record->kind != kind) {
            continue;
        }

        /* its time is the running system's: read later it would have none */
        if ((record->flags & KUBE_RECORD_F_OUTDATED)
            || state_omits(omitted, record))
        {
            continue;
        }

        if (kube_record_base(record) > size - header->size) {
            return KUBE_TOO_LARGE;
        }

        header->size += state_put(buf + header->size, record);
        header->objects++;
    }

    return KUBE_OK;
}


static kube_rc_t
state_put_scopes(const kube_zone_writer_t *w,
    const kube_state_omitted_t *omitted, unsigned char *buf, size_t size,
    state_header_t *header)
{
    unsigned            scope;
    kube_record_t      *record;
    uint64_t            bytes[KUBE_SCOPE_RECORD_MAX / sizeof(uint64_t)];
    kube_scope_info_t   info;

    for (scope = 0; scope < w->zone->geometry.scopes_n; scope++) {

        if (kube_zone_scope_load(w->zone, scope, bytes, &info) != KUBE_OK
            || kube_state_is_omitted(omitted, info.resource, info.ns))
        {
            continue;
        }

        record = (kube_record_t *) (void *) bytes;

        if (kube_record_base(record) > size - header->size) {
            return KUBE_TOO_LARGE;
        }

        header->size += state_put(buf + header->size, record);
        header->scopes_n++;
    }

    return KUBE_OK;
}


kube_rc_t
kube_state_encode(const kube_zone_writer_t *w, const kube_state_info_t *info,
    const kube_state_omitted_t *omitted, void *buf, size_t size, size_t *len)
{
    state_header_t  header;

    if (size < sizeof(state_header_t) + info->ca_n * sizeof(uint64_t)) {
        return KUBE_TOO_LARGE;
    }

    memset(&header, 0, sizeof(state_header_t));
    header.magic = STATE_MAGIC;
    header.version = STATE_VERSION;
    header.layout = KUBE_ZONE_LAYOUT;
    header.identity = info->identity;
    header.written_ms = info->written_ms;
    header.ca_n = (uint32_t) info->ca_n;
    header.size = sizeof(state_header_t) + info->ca_n * sizeof(uint64_t);

    memcpy((unsigned char *) buf + sizeof(state_header_t), info->ca,
           info->ca_n * sizeof(uint64_t));

    if (state_put_scopes(w, omitted, buf, size, &header) != KUBE_OK
        || state_put_all(w, KUBE_RECORD_SERVICE, omitted, buf, size, &header)
           != KUBE_OK
        || state_put_all(w, KUBE_RECORD_SLICE, omitted, buf, size, &header)
           != KUBE_OK)
    {
        return KUBE_TOO_LARGE;
    }

    header.check = state_checksum(&header, buf);
    memcpy(buf, &header, sizeof(state_header_t));
    *len = (size_t) header.size;

    return KUBE_OK;
}


kube_rc_t
kube_state_check(const void *bytes, size_t len, kube_state_info_t *info)
{
    state_header_t  header;

    if (len < sizeof(state_header_t)) {
        return KUBE_CORRUPT;
    }

    memcpy(&header, bytes, sizeof(state_header_t));

    if (header.magic != STATE_MAGIC
        || header.version != STATE_VERSION
        || header.layout != KUBE_ZONE_LAYOUT
        || header.size != len
        || header.ca_n > KUBE_CA_MARKS_MAX
        || header.ca_n * sizeof(uint64_t) > len - sizeof(state_header_t)
        || state_checksum(&header, bytes) != header.check)
    {
        return KUBE_CORRUPT;
    }

    info->identity = header.identity;
    info->ca_n = header.ca_n;
    memcpy(info->ca, (const char *) bytes + sizeof(state_header_t),
           header.ca_n * sizeof(uint64_t));
    info->written_ms = header.written_ms;
    info->objects = header.objects;
    info->size = header.size;

    return KUBE_OK;
}


/* The record at *at, which moves behind it; NULL: the bytes are no file. */
static const kube_record_t *
state_next(const void *bytes, size_t len, size_t *at)
{
    const kube_record_t  *record;

    record = (const kube_record_t *) (const void *)
                 ((const char *) bytes + *at);

    if (kube_record_validate(record, len - *at) != KUBE_OK
        || record->refs_n != 0)
    {
        return NULL;
    }

    *at += record->size;

    return record;
}


/* Where the records of a checked file begin; 0: bytes is not aligned. */
static size_t
state_records(const void *bytes, uint32_t *scopes_n)
{
    state_header_t  header;

    if ((uintptr_t) bytes % KUBE_ZONE_UNIT != 0) {
        return 0;
    }

    memcpy(&header, bytes, sizeof(state_header_t));
    *scopes_n = header.scopes_n;

    return sizeof(state_header_t) + header.ca_n * sizeof(uint64_t);
}


kube_rc_t
kube_state_each(const void *bytes, size_t len, kube_state_put_pt put,
    void *ctx)
{
    size_t                at;
    uint32_t              scopes_n;
    kube_rc_t             rc;
    const kube_record_t  *record;

    at = state_records(bytes, &scopes_n);

    if (at == 0) {
        return KUBE_INVALID;
    }

    while (at < len) {
        record = state_next(bytes, len, &at);

        if (record == NULL) {
            return KUBE_CORRUPT;
        }

        if (scopes_n != 0) {
            scopes_n--;
            continue;
        }

        rc = put(ctx, record);

        if (rc != KUBE_OK) {
            return rc;
        }
    }

    return KUBE_OK;
}


kube_rc_t
kube_state_scopes(const void *bytes, size_t len, kube_state_scope_pt put,
    void *ctx)
{
    size_t                at;
    uint32_t              scopes_n;
    kube_rc_t             rc;
    kube_scope_info_t     info;
    const kube_record_t  *record;

    at = state_records(bytes, &scopes_n);

    if (at == 0) {
        return KUBE_INVALID;
    }

    for (rc = KUBE_OK; rc == KUBE_OK && scopes_n != 0; scopes_n--) {
        record = (at < len) ? state_next(bytes, len, &at) : NULL;

        if (record == NULL
            || kube_zone_scope_decode(record, record->size, &info) != KUBE_OK)
        {
            return KUBE_CORRUPT;
        }

        rc = put(ctx, &info);
    }

    return rc;
}


bool
kube_state_same_ca(const kube_state_info_t *a, const kube_state_info_t *b)
{
    size_t  i, k;

    for (i = 0; i < a->ca_n; i++) {
        for (k = 0; k < b->ca_n; k++) {
            if (a->ca[i] == b->ca[k]) {
                return true;
            }
        }
    }

    return false;
}
