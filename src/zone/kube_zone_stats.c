/*
 * kube_zone_stats - scopes, the writer's identity.
 *
 * It measures nothing itself and formats nothing.  Functions marked (writer)
 * in the header are for the process that holds the guard.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_record_codec.h"
#include "kube_zone_private.h"


#define STATS_SCOPE_MAX        256
#define STATS_CONTENT_MAX      640
#define STATS_STALE_GRACE_MS   30000

#define STATS_CRASH_WINDOW_MS  60000
#define STATS_CRASH_FIRST_MS   1000
#define STATS_CRASH_MAX_MS     30000
#define STATS_CRASHES          4


const char *
kube_scope_state_text(kube_scope_state_t state)
{
    switch (state) {
    case KUBE_STATE_IDLE:
        return "idle";

    case KUBE_STATE_LISTING:
        return "listing";

    case KUBE_STATE_WATCHING:
        return "watching";

    case KUBE_STATE_BACKOFF:
        return "backoff";

    case KUBE_STATE_STOPPED:
        return "stopped";

    default:
        return "unknown";
    }
}


static bool
stats_slot_is_valid(const kube_zone_t *zone, unsigned slot)
{
    return slot < zone->image->geometry.scopes_n;
}


static kube_str_t
stats_cut(kube_str_t s)
{
    if (s.len > KUBE_RECORD_STRING_MAX) {
        s.len = KUBE_RECORD_STRING_MAX;
    }

    return s;
}


static void
stats_put_scope(kube_record_out_t *out, const kube_scope_info_t *info)
{
    kube_record_put_int(out, info->resource, 1);
    kube_record_put_int(out, info->synced, 1);
    kube_record_put_int(out, info->scope_hash, 8);
    kube_record_put_int(out, info->count, 8);
    kube_record_put_int(out, info->digest.lo, 8);
    kube_record_put_int(out, info->digest.hi, 8);
    kube_record_put_str(out, info->ns);
    kube_record_put_str(out, info->rv);
}


static kube_record_in_t
stats_in(const kube_record_view_t *view)
{
    return (kube_record_in_t) {
        view->content, view->content + view->header.content_size, false
    };
}


static kube_rc_t
stats_get_scope(const void *record, size_t size, kube_scope_info_t *info)
{
    kube_record_in_t    in;
    kube_record_view_t  view;

    memset(info, 0, sizeof(kube_scope_info_t));

    if (kube_record_view(record, size, &view) != KUBE_OK
        || view.header.kind != KUBE_RECORD_SCOPE)
    {
        return KUBE_CORRUPT;
    }

    in = stats_in(&view);
    info->resource = (kube_record_get(&in, 1) == KUBE_RESOURCE_SERVICES)
                     ? KUBE_RESOURCE_SERVICES : KUBE_RESOURCE_ENDPOINTSLICES;
    info->synced = (kube_record_get(&in, 1) != 0);
    info->scope_hash = kube_record_get(&in, 8);
    info->count = kube_record_get(&in, 8);
    info->digest.lo = kube_record_get(&in, 8);
    info->digest.hi = kube_record_get(&in, 8);
    info->ns = kube_record_get_str(&in, KUBE_NAMESPACE_LEN_MAX);
    info->rv = kube_record_get_str(&in, KUBE_RV_LEN_MAX);

    return in.bad ? KUBE_CORRUPT : KUBE_OK;
}


/* A broken error record says nothing; it is not worth failing for. */
static kube_rc_t
stats_get_error(const kube_zone_t *zone, unsigned slot, kube_arena_t *arena,
    kube_scope_info_t *info)
{
    kube_rc_t             rc;
    kube_record_in_t      in;
    kube_record_view_t    view;
    const kube_record_t  *record;

    rc = kube_zone_load(zone, &kube_zone_scope(zone, slot)->error, arena,
                        &record);

    if (rc == KUBE_NOMEM) {
        return KUBE_NOMEM;
    }

    if (rc == KUBE_OK
        && record->kind == KUBE_RECORD_ERROR
        && kube_record_view(record, record->size, &view) == KUBE_OK)
    {
        in = stats_in(&view);
        info->error_at_ms = (int64_t) kube_record_get(&in, 8);
        info->error_reason = kube_record_get_str(&in, KUBE_RECORD_STRING_MAX);
        info->error_message = kube_record_get_str(&in,
                                                  KUBE_RECORD_STRING_MAX);
    }

    return KUBE_OK;
}


kube_rc_t
kube_zone_scope_read(const kube_zone_t *zone, unsigned slot,
    kube_arena_t *arena, kube_scope_info_t *info)
{
    kube_rc_t             rc;
    const kube_record_t  *record;

    if (!stats_slot_is_valid(zone, slot)) {
        return KUBE_NOT_FOUND;
    }

    rc = kube_zone_load(zone, &kube_zone_scope(zone, slot)->record, arena,
                        &record);

    if (rc == KUBE_OK) {
        rc = stats_get_scope(record, record->size, info);
    }

    return (rc == KUBE_OK) ? stats_get_error(zone, slot, arena, info) : rc;
}


kube_rc_t
kube_zone_scope_publish(kube_zone_writer_t *w, unsigned slot,
    const kube_scope_info_t *info)
{
    unsigned char      content[STATS_SCOPE_MAX];
    kube_record_out_t  out;

    if (!stats_slot_is_valid(w->zone, slot)) {
        return KUBE_FULL;
    }

    if (info->ns.len > KUBE_NAMESPACE_LEN_MAX
        || info->rv.len > KUBE_RV_LEN_MAX)
    {
        return KUBE_INVALID;
    }

    out = (kube_record_out_t) { content, 0 };
    stats_put_scope(&out, info);

    return kube_zone_put_raw(w, kube_zone_scope_number(w->zone, slot, false),
                             KUBE_RECORD_SCOPE, info->resource, content,
                             out.size);
}


kube_rc_t
kube_zone_scope_error(kube_zone_writer_t *w, unsigned slot,
    kube_str_t reason, kube_str_t message, int64_t at_ms)
{
    unsigned char      content[STATS_CONTENT_MAX];
    kube_record_out_t  out;

    if (!stats_slot_is_valid(w->zone, slot)) {
        return KUBE_FULL;
    }

    out = (kube_record_out_t) { content, 0 };
    kube_record_put_int(&out, (uint64_t) at_ms, 8);
    kube_record_put_str(&out, stats_cut(reason));
    kube_record_put_str(&out, stats_cut(message));

    return kube_zone_put_raw(w, kube_zone_scope_number(w->zone, slot, true),
                             KUBE_RECORD_ERROR, KUBE_RESOURCE_SERVICES,
                             content, out.size);
}


void
kube_zone_scope_clear(kube_zone_writer_t *w, unsigned slot)
{
    unsigned            i;
    kube_zone_scope_t  *scope;

    if (!stats_slot_is_valid(w->zone, slot)) {
        return;
    }

    kube_zone_clear_raw(w, kube_zone_scope_number(w->zone, slot, false));
    kube_zone_clear_raw(w, kube_zone_scope_number(w->zone, slot, true));

    scope = kube_zone_scope(w->zone, slot);

    for (i = 0; i < KUBE_COUNTERS; i++) {
        kube_word_set(&scope->counters[i], 0);
    }
}


void
kube_zone_writer_info(const kube_zone_t *zone, kube_writer_info_t *info)
{
    unsigned                  i;
    const kube_zone_image_t  *image;

    image = zone->image;

    info->epoch = kube_word_get(&image->epoch);
    info->takeovers = kube_word_get(&image->takeovers);
    info->writer_pid = kube_word_get(&image->writer_pid);
    info->writer_since_ms = (int64_t) kube_word_get(&image->writer_since_ms);
    info->crashes = kube_word_get(&image->crashes);
    info->start_delay_until_ms =
                           kube_word_get(&image->start_delay_until_ms);
    info->state_written_ms =
                           (int64_t) kube_word_get(&image->state_written_ms);
    info->state_in_use = kube_word_get(&image->state_in_use);
    info->state_failed = kube_word_get(&image->state_failed);
    info->queue_depth = kube_word_get(&image->queue_depth);

    for (i = 0; i < STATS_CRASHES; i++) {
        info->crash_times_ms[i] = kube_word_get(&image->crash_times_ms[i]);
    }
}


void
kube_zone_writer_announce(kube_zone_writer_t *w, uint64_t pid,
    int64_t since_ms)
{
    kube_word_set(&w->zone->image->writer_since_ms, (uint64_t) since_ms);
    kube_word_set(&w->zone->image->writer_pid, pid);
}


void
kube_zone_writer_epoch(kube_zone_writer_t *w)
{
    kube_word_add(&w->zone->image->epoch, 1);
}


void
kube_zone_set_state_file(kube_zone_t *zone, int64_t written_ms, bool in_use,
    bool failed)
{
    kube_word_set(&zone->image->state_written_ms, (uint64_t) written_ms);
    kube_word_set(&zone->image->state_in_use, in_use);
    kube_word_set(&zone->image->state_failed, failed);
}


void
kube_zone_set_queue_depth(kube_zone_t *zone, uint64_t depth)
{
    kube_word_set(&zone->image->queue_depth, depth);
}


/* How many crashes lie within the window that ends now, this one included. */
static unsigned
stats_crashes_near(const kube_zone_image_t *image, uint64_t now_ms)
{
    unsigned  i;
    uint64_t  at;

    for (i = 0; i < STATS_CRASHES; i++) {
        at = kube_word_get(&image->crash_times_ms[i]);

        if (at == 0 || now_ms - at > STATS_CRASH_WINDOW_MS) {
            break;
        }
    }

    return i;
}


/*
 * The times waited do not end the loop: a crash within the window after the
 * start that was put off counts as the next of the same row.
 */
static void
stats_crash_note(kube_zone_image_t *image, uint64_t now_ms)
{
    unsigned  i;
    uint64_t  run, until, delay;

    for (i = STATS_CRASHES - 1; i > 0; i--) {
        kube_word_set(&image->crash_times_ms[i],
                      kube_word_get(&image->crash_times_ms[i - 1]));
    }

    kube_word_set(&image->crash_times_ms[0], (now_ms != 0) ? now_ms : 1);
    kube_word_add(&image->crashes, 1);

    run = kube_word_get(&image->crash_run);
    until = kube_word_get(&image->start_delay_until_ms);

    if (run != 0 && now_ms <= until + STATS_CRASH_WINDOW_MS) {
        run++;

    } else {
        run = (stats_crashes_near(image, now_ms) == STATS_CRASHES);
    }

    delay = 0;

    if (run != 0) {
        delay = (run <= 5) ? (uint64_t) STATS_CRASH_FIRST_MS << (run - 1)
                           : STATS_CRASH_MAX_MS;
    }

    kube_word_set(&image->crash_run, run);
    kube_word_set(&image->start_delay_until_ms,
                  (delay != 0) ? now_ms + delay : 0);
}


uint64_t
kube_zone_crash_delay(kube_zone_t *zone, bool crashed, uint64_t now_ms)
{
    uint64_t  until;

    if (crashed) {
        stats_crash_note(zone->image, now_ms);
    }

    until = kube_word_get(&zone->image->start_delay_until_ms);

    /* a clock that began anew must not put a start off for ever */
    if (until <= now_ms || until - now_ms > STATS_CRASH_MAX_MS) {
        return 0;
    }

    return until - now_ms;
}


uint64_t
kube_zone_starting(kube_zone_t *zone, uint64_t pid)
{
    return atomic_exchange_explicit(&zone->image->starting_pid, pid,
                                    memory_order_acq_rel);
}


void
kube_zone_started(kube_zone_t *zone, uint64_t pid)
{
    /* another one may have noted itself since: its note stays */
    (void) atomic_compare_exchange_strong_explicit(
               &zone->image->starting_pid, &pid, 0, memory_order_acq_rel,
               memory_order_acquire);
}


kube_rc_t
kube_zone_server_set(kube_zone_writer_t *w, kube_str_t server)
{
    unsigned char      content[STATS_CONTENT_MAX];
    kube_record_out_t  out;

    out = (kube_record_out_t) { content, 0 };
    kube_record_put_str(&out, stats_cut(server));

    return kube_zone_put_raw(w, kube_zone_server_number(w->zone),
                             KUBE_RECORD_INFO, KUBE_RESOURCE_SERVICES,
                             content, out.size);
}


kube_str_t
kube_zone_server(const kube_zone_t *zone, kube_arena_t *arena)
{
    kube_record_in_t      in;
    kube_record_view_t    view;
    const kube_record_t  *record;

    if (kube_zone_load(zone, &zone->image->server, arena, &record) != KUBE_OK
        || kube_record_view(record, record->size, &view) != KUBE_OK)
    {
        return KUBE_STR_NULL;
    }

    in = stats_in(&view);

    return kube_record_get_str(&in, KUBE_RECORD_STRING_MAX);
}


/* KUBE_OK; KUBE_NOT_FOUND: no scope is in the slot. */
static kube_rc_t
stats_scope_peek(const kube_zone_t *zone, unsigned slot,
    kube_scope_info_t *info)
{
    size_t              size;
    unsigned            tries;
    uint64_t            head;
    kube_rc_t           rc;
    kube_record_t       buf[STATS_SCOPE_MAX / sizeof(kube_record_t) + 2];
    const kube_word_t  *word;

    word = &kube_zone_scope(zone, slot)->record;

    for (tries = 0; tries < KUBE_ZONE_TRIES; tries++) {
        head = kube_word_get(word);

        if (kube_head_offset(head) == 0) {
            return KUBE_NOT_FOUND;
        }

        size = sizeof(buf);
        rc = kube_zone_copy_record(zone, word, head, buf, &size);

        if (rc == KUBE_OK) {
            rc = stats_get_scope(buf, size, info);

            /* the strings point into buf */
            info->ns = KUBE_STR_NULL;
            info->rv = KUBE_STR_NULL;

            return rc;
        }
    }

    return KUBE_CHANGED;
}


void
kube_zone_health(const kube_zone_t *zone, uint64_t now_ms,
    uint64_t idle_timeout_ms, kube_health_t *health)
{
    bool               forbidden;
    unsigned           i;
    uint64_t           contact, age;
    kube_rc_t          rc;
    kube_scope_info_t  info;

    memset(health, 0, sizeof(kube_health_t));
    health->synced = true;
    health->state_in_use = kube_word_get(&zone->image->state_in_use) != 0;

    for (i = 0; i < zone->image->geometry.scopes_n; i++) {
        rc = stats_scope_peek(zone, i, &info);

        if (rc == KUBE_NOT_FOUND) {
            continue;
        }

        health->scopes++;

        if (rc != KUBE_OK || !info.synced) {
            health->synced = false;
        }

        forbidden = kube_zone_scope_counter(zone, i,
                                            KUBE_COUNTER_GAUGE_FORBIDDEN)
                    != 0;
        health->forbidden += forbidden;

        contact = kube_zone_scope_counter(zone, i,
                                          KUBE_COUNTER_GAUGE_CONTACT_MS);

        /* what was never allowed was never current: degraded, not stale */
        if (contact == 0 && forbidden) {
            continue;
        }

        age = (contact == 0) ? UINT64_MAX
              : (contact > now_ms) ? 0 : now_ms - contact;

        if (age > health->age_ms) {
            health->age_ms = age;
        }
    }

    if (health->scopes == 0) {
        health->synced = false;
        health->age_ms = UINT64_MAX;
    }

    health->stale = (health->age_ms == UINT64_MAX)
                    ? health->synced
                    : health->age_ms > idle_timeout_ms
                                       + STATS_STALE_GRACE_MS;
}
