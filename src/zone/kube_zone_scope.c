/*
 * kube_zone_scope - scopes and the server as records, and health.
 *
 * Each _content function is the format of a record's content for both
 * directions: see kube_codec.  It measures nothing.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_zone_counters.h"
#include "kube_zone_image.h"
#include "kube_zone_reader.h"
#include "kube_zone_scope.h"
#include "kube_zone_store.h"


/* An ERROR record has two strings of 255 bytes; a SCOPE record is small. */
#define SCOPE_CONTENT_MAX     640


const char *
kube_scope_state_text(kube_scope_state_t state)
{
    static const char *const  texts[] = {
#define XX(name, text)  text,
        KUBE_SCOPE_STATE_MAP(XX)
#undef XX
    };

    return ((unsigned) state < KUBE_STATES) ? texts[state] : "unknown";
}


static bool
scope_is_valid(const kube_zone_t *zone, unsigned scope)
{
    return scope < zone->geometry.scopes_n;
}


static kube_str_t
scope_cut(kube_str_t s)
{
    if (s.len > KUBE_CODEC_STR_MAX) {
        s.len = KUBE_CODEC_STR_MAX;
    }

    return s;
}


static void
scope_content(kube_codec_t *c, kube_scope_info_t *info)
{
    uint64_t  resource;

    resource = kube_codec_int(c, info->resource, 1);

    if (resource >= KUBE_RESOURCES_ROUTED) {
        c->bad = true;
        return;
    }

    info->resource = (kube_resource_t) resource;
    info->synced = (kube_codec_int(c, info->synced, 1) != 0);
    info->scope_hash = kube_codec_int(c, info->scope_hash, 8);
    info->count = kube_codec_int(c, info->count, 8);
    info->digest.lo = kube_codec_int(c, info->digest.lo, 8);
    info->digest.hi = kube_codec_int(c, info->digest.hi, 8);
    info->refused_unnamed = kube_codec_int(c, info->refused_unnamed, 8);
    info->stores = kube_codec_int(c, info->stores, 8);
    info->ns = kube_codec_str(c, info->ns, KUBE_NAMESPACE_LEN_MAX);
    info->rv = kube_codec_str(c, info->rv, KUBE_RV_LEN_MAX);
    info->floor = kube_codec_str(c, info->floor, KUBE_RV_LEN_MAX);
}


static void
scope_error_content(kube_codec_t *c, kube_scope_info_t *info)
{
    info->error_at_ms = (int64_t) kube_codec_int(c,
                                            (uint64_t) info->error_at_ms, 8);
    info->error_reason = kube_codec_str(c, info->error_reason,
                                        KUBE_CODEC_STR_MAX);
    info->error_message = kube_codec_str(c, info->error_message,
                                         KUBE_CODEC_STR_MAX);
}


kube_rc_t
kube_zone_scope_decode(const void *record, size_t size, kube_scope_info_t *info)
{
    kube_codec_t  c;

    memset(info, 0, sizeof(kube_scope_info_t));

    if (kube_record_content(record, size, KUBE_RECORD_SCOPE, &c) != KUBE_OK) {
        return KUBE_CORRUPT;
    }

    scope_content(&c, info);

    return c.bad ? KUBE_CORRUPT : KUBE_OK;
}


kube_rc_t
kube_zone_scope_load(const kube_zone_t *zone, unsigned scope, uint64_t *buf,
    kube_scope_info_t *info)
{
    size_t     size;
    kube_rc_t  rc;

    size = KUBE_SCOPE_RECORD_MAX;
    rc = kube_zone_load_into(zone, kube_zone_scope_number(zone, scope, false),
                             buf, &size);

    return (rc == KUBE_OK) ? kube_zone_scope_decode(buf, size, info) : rc;
}


kube_rc_t
kube_zone_scope_read(const kube_zone_t *zone, unsigned scope,
    kube_arena_t *arena, kube_scope_info_t *info)
{
    uint64_t              uncounted;
    kube_rc_t             rc;
    kube_codec_t          c;
    const kube_record_t  *record;

    if (!scope_is_valid(zone, scope)) {
        return KUBE_NOT_FOUND;
    }

    /* first: it is taken back once the record has it */
    uncounted = kube_word_get(&kube_zone_scope(zone, scope)->uncounted);

    rc = kube_zone_load(zone, kube_zone_scope_number(zone, scope, false),
                        arena, &record);

    if (rc == KUBE_OK) {
        rc = kube_zone_scope_decode(record, record->size, info);
    }

    if (rc != KUBE_OK) {
        return rc;
    }

    info->refused_unnamed += uncounted;
    info->interrupted = (kube_word_get(&kube_zone_scope(zone,
                                                        scope)->interrupted)
                         != 0);

    rc = kube_zone_load(zone, kube_zone_scope_number(zone, scope, true),
                        arena, &record);

    if (rc == KUBE_NOMEM) {
        return KUBE_NOMEM;
    }

    /* a broken ERROR record must not hide the scope */
    if (rc == KUBE_OK
        && kube_record_content(record, record->size, KUBE_RECORD_ERROR, &c)
           == KUBE_OK)
    {
        scope_error_content(&c, info);
    }

    return KUBE_OK;
}


static kube_rc_t
scope_store(kube_zone_writer_t *w, unsigned scope, kube_scope_info_t *info)
{
    kube_codec_t   c;
    unsigned char  content[SCOPE_CONTENT_MAX];

    c = kube_codec_writer(content, SCOPE_CONTENT_MAX);
    scope_content(&c, info);

    if (c.bad) {
        return KUBE_INVALID;
    }

    return kube_zone_store_raw(w, kube_zone_scope_number(w->zone, scope, false),
                               KUBE_RECORD_SCOPE, content, c.size);
}


kube_rc_t
kube_zone_scope_publish(kube_zone_writer_t *w, unsigned scope,
    const kube_scope_info_t *info)
{
    kube_rc_t           rc;
    kube_scope_info_t   copy;
    kube_zone_scope_t  *words;

    if (!scope_is_valid(w->zone, scope)) {
        return KUBE_FULL;
    }

    copy = *info;
    copy.stores = info->behind ? 0 : kube_word_get(&w->zone->image->stores);
    words = kube_zone_scope(w->zone, scope);

    /* before the record that it is true of, and taken back after it */

    if (info->interrupted) {
        kube_word_set(&words->interrupted, 1);
    }

    rc = scope_store(w, scope, &copy);

    if (rc == KUBE_OK) {
        kube_word_set(&words->uncounted, 0);
        kube_word_set(&words->interrupted, info->interrupted);
    }

    return rc;
}


kube_rc_t
kube_zone_scope_floor(kube_zone_writer_t *w, unsigned scope, kube_str_t rv)
{
    kube_rc_t          rc;
    uint64_t           buf[KUBE_SCOPE_RECORD_MAX / sizeof(uint64_t)];
    kube_scope_info_t  info;

    if (!scope_is_valid(w->zone, scope)) {
        return KUBE_NOT_FOUND;
    }

    rc = kube_zone_scope_load(w->zone, scope, buf, &info);

    if (rc != KUBE_OK) {
        return rc;
    }

    info.floor = rv;

    return scope_store(w, scope, &info);
}


void
kube_zone_scope_unnamed(kube_zone_writer_t *w, unsigned scope)
{
    if (scope_is_valid(w->zone, scope)) {
        kube_word_add(&kube_zone_scope(w->zone, scope)->uncounted, 1);
    }
}


void
kube_zone_scope_interrupted(kube_zone_writer_t *w, unsigned scope)
{
    if (scope_is_valid(w->zone, scope)) {
        kube_word_set(&kube_zone_scope(w->zone, scope)->interrupted, 1);
        kube_zone_scope_unnamed(w, scope);
    }
}


unsigned
kube_zone_scope_of(const kube_zone_t *zone, kube_resource_t resource,
    kube_str_t ns)
{
    unsigned           scope;
    uint64_t           buf[KUBE_SCOPE_RECORD_MAX / sizeof(uint64_t)];
    kube_scope_info_t  info;

    for (scope = 0; scope < zone->geometry.scopes_n; scope++) {

        if (kube_zone_scope_load(zone, scope, buf, &info) == KUBE_OK
            && info.resource == resource
            && (info.ns.len == 0 || kube_str_eq(info.ns, ns)))
        {
            return scope;
        }
    }

    return KUBE_SCOPES_MAX;
}


kube_rc_t
kube_zone_scope_error(kube_zone_writer_t *w, unsigned scope,
    kube_str_t reason, kube_str_t message, int64_t at_ms)
{
    kube_codec_t       c;
    unsigned char      content[SCOPE_CONTENT_MAX];
    kube_scope_info_t  info;

    if (!scope_is_valid(w->zone, scope)) {
        return KUBE_FULL;
    }

    info.error_at_ms = at_ms;
    info.error_reason = scope_cut(reason);
    info.error_message = scope_cut(message);

    c = kube_codec_writer(content, SCOPE_CONTENT_MAX);
    scope_error_content(&c, &info);

    return kube_zone_store_raw(w, kube_zone_scope_number(w->zone, scope,
                                                         true),
                               KUBE_RECORD_ERROR, content, c.size);
}


void
kube_zone_scope_clear(kube_zone_writer_t *w, unsigned scope)
{
    unsigned  i;

    if (!scope_is_valid(w->zone, scope)) {
        return;
    }

    kube_zone_store_raw_clear(w, kube_zone_scope_number(w->zone, scope,
                                                        false));
    kube_zone_store_raw_clear(w, kube_zone_scope_number(w->zone, scope,
                                                        true));
    kube_word_set(&kube_zone_scope(w->zone, scope)->uncounted, 0);
    kube_word_set(&kube_zone_scope(w->zone, scope)->interrupted, 0);

    for (i = 0; i < KUBE_COUNTERS; i++) {
        kube_zone_scope_set(w->zone, scope, (kube_counter_t) i, 0);
    }
}


kube_rc_t
kube_zone_server_set(kube_zone_writer_t *w, kube_str_t server)
{
    kube_codec_t   c;
    unsigned char  content[SCOPE_CONTENT_MAX];

    c = kube_codec_writer(content, SCOPE_CONTENT_MAX);
    (void) kube_codec_str(&c, scope_cut(server), KUBE_CODEC_STR_MAX);

    return kube_zone_store_raw(w, kube_zone_server_number(w->zone),
                               KUBE_RECORD_INFO, content, c.size);
}


kube_str_t
kube_zone_server(const kube_zone_t *zone, kube_arena_t *arena)
{
    kube_codec_t          c;
    const kube_record_t  *record;

    if (kube_zone_load(zone, kube_zone_server_number(zone), arena, &record)
        != KUBE_OK
        || kube_record_content(record, record->size, KUBE_RECORD_INFO, &c)
           != KUBE_OK)
    {
        return KUBE_STR_NULL;
    }

    return kube_codec_str(&c, KUBE_STR_NULL, KUBE_CODEC_STR_MAX);
}


uint64_t
kube_zone_scope_age(const kube_zone_t *zone, unsigned scope, uint64_t now_ms)
{
    uint64_t  contact_ms;

    contact_ms = kube_zone_scope_counter(zone, scope,
                                         KUBE_COUNTER_GAUGE_CONTACT_MS);
    if (contact_ms == 0) {
        return KUBE_NEVER;
    }

    /* a contact may be noted a moment after now was taken */
    return (contact_ms > now_ms) ? 0 : now_ms - contact_ms;
}


bool
kube_zone_scope_forbidden(const kube_zone_t *zone, unsigned scope)
{
    return kube_zone_scope_counter(zone, scope, KUBE_COUNTER_GAUGE_FORBIDDEN)
           != 0;
}


void
kube_zone_health(const kube_zone_t *zone, uint64_t now_ms,
    uint64_t idle_timeout_ms, kube_health_t *health)
{
    bool               forbidden;
    unsigned           i;
    uint64_t           age, known;
    kube_rc_t          rc;
    uint64_t           buf[KUBE_SCOPE_RECORD_MAX / sizeof(uint64_t)];
    kube_scope_info_t  info;

    known = 0;
    memset(health, 0, sizeof(kube_health_t));
    health->synced = true;
    health->state_in_use =
                      kube_word_get(&zone->image->history.state_in_use) != 0;

    for (i = 0; i < zone->geometry.scopes_n; i++) {
        rc = kube_zone_scope_load(zone, i, buf, &info);

        if (rc == KUBE_NOT_FOUND) {
            continue;
        }

        age = kube_zone_scope_age(zone, i, now_ms);
        forbidden = kube_zone_scope_forbidden(zone, i);

        health->scopes++;
        health->forbidden += forbidden;
        health->synced = health->synced && rc == KUBE_OK && info.synced;

        /* a scope that was never allowed makes the cache degraded, not stale */
        if (age == KUBE_NEVER && forbidden) {
            continue;
        }

        if (age != KUBE_NEVER && age > known) {
            known = age;
        }

        if (age > health->age_ms) {
            health->age_ms = age;
        }
    }

    if (health->scopes == 0) {
        health->synced = false;
        health->age_ms = KUBE_NEVER;
    }

    /* beside a scope that was never current the others grow old, too */
    health->stale = known > idle_timeout_ms + KUBE_STALE_GRACE_MS
                    || (health->age_ms == KUBE_NEVER && health->synced);
}
