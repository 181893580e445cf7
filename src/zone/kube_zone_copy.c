/*
 * kube_zone_copy - filling a fresh image from another one that may be live.
 *
 * It reads the other image as any reader does, and writes as the first writer
 * of the new one.
 *
 * Scopes are read first: their resourceVersions are then not newer than any
 * object copied, and a watch resumed there repeats what came after.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_zone_copy.h"
#include "kube_zone_image.h"
#include "kube_zone_reader.h"
#include "kube_zone_recover.h"
#include "kube_zone_scope.h"
#include "kube_zone_writer.h"


#define COPY_ARENA_MAX  (64u << 20)


typedef struct {
    const kube_zone_t   *from;
    kube_zone_t         *to;
    kube_zone_writer_t  *writer;
    kube_arena_t         arena;           /* of one object */
    kube_arena_t         scopes_arena;
    kube_scope_info_t   *scopes;
    bool                *scope_used;
    unsigned             scopes_n;
    bool                 left_out;
} copy_t;


static kube_rc_t
copy_scopes_read(copy_t *copy)
{
    unsigned   i;
    kube_rc_t  rc;

    copy->scopes_n = copy->from->image->geometry.scopes_n;
    copy->scopes = kube_arena_alloc(&copy->scopes_arena, copy->scopes_n
                                                  * sizeof(kube_scope_info_t));
    copy->scope_used = kube_arena_alloc(&copy->scopes_arena,
                                        copy->scopes_n * sizeof(bool));

    if (copy->scopes == NULL || copy->scope_used == NULL) {
        return KUBE_NOMEM;
    }

    for (i = 0; i < copy->scopes_n; i++) {
        rc = kube_zone_scope_read(copy->from, i, &copy->scopes_arena,
                                  &copy->scopes[i]);
        if (rc == KUBE_NOMEM) {
            return KUBE_NOMEM;
        }

        /* a scope that cannot be read is listed anew */
        copy->scope_used[i] = (rc == KUBE_OK);
    }

    return KUBE_OK;
}


/* The entry; 0: no room. */
static uint32_t
copy_stage(copy_t *copy, const kube_record_t *record)
{
    uint32_t  entry;

    if (kube_zone_stage(copy->writer, record, 0, &entry) != KUBE_OK)
    {
        copy->left_out = true;
        return 0;
    }

    return entry;
}


static void
copy_bundle(copy_t *copy, const kube_zone_bundle_t *bundle)
{
    bool      changed;
    size_t    i, n;
    uint32_t  service, slices[KUBE_SERVICE_SLICES_MAX];

    service = copy_stage(copy, bundle->service);

    if (service == 0) {
        return;
    }

    for (i = 0, n = 0; i < bundle->slices_n; i++) {
        slices[n] = copy_stage(copy, bundle->slices[i]);
        n += (slices[n] != 0);
    }

    if (kube_zone_publish(copy->writer, service, slices, n, &changed)
        != KUBE_OK)
    {
        copy->left_out = true;

        for (i = 0; i < n; i++) {
            kube_zone_remove(copy->writer, slices[i]);
        }

        kube_zone_remove(copy->writer, service);
    }
}


static kube_rc_t
copy_services(copy_t *copy)
{
    uint32_t              cursor, entry;
    kube_rc_t             rc;
    kube_zone_bundle_t    bundle;
    const kube_record_t  *record;

    cursor = 0;

    for ( ;; ) {
        kube_arena_reset(&copy->arena);

        rc = kube_zone_next(copy->from, KUBE_RECORD_SERVICE, &cursor,
                            &copy->arena, &record, &entry);
        if (rc != KUBE_OK) {
            return (rc == KUBE_NOT_FOUND) ? KUBE_OK : rc;
        }

        rc = kube_zone_load_service(copy->from, entry, KUBE_STR_NULL,
                                    KUBE_STR_NULL, &copy->arena, &bundle);

        if (rc == KUBE_NOMEM) {
            return KUBE_NOMEM;
        }

        if (rc == KUBE_OK) {
            copy_bundle(copy, &bundle);

        } else if (rc != KUBE_NOT_FOUND) {
            copy->left_out = true;
        }
    }
}


/* A slice that came with its Service is there already. */
static void
copy_one(copy_t *copy, const kube_record_t *record)
{
    kube_zone_item_t  item;

    if (kube_zone_item(copy->writer, record, &item) != KUBE_OK
        || item.entry != 0)
    {
        return;
    }

    if (record->kind == KUBE_RECORD_REFUSED) {
        if (kube_zone_refuse(copy->writer, &item, item.id.meta.rv,
                             item.id.reason)
            != KUBE_OK)
        {
            copy->left_out = true;
        }

    } else if (kube_zone_stage_item(copy->writer, &item, 0) == KUBE_OK) {
        kube_zone_publish_orphan(copy->writer, item.entry);

    } else {
        copy->left_out = true;
    }
}


static kube_rc_t
copy_rest(copy_t *copy, kube_record_kind_t kind)
{
    uint32_t              cursor, entry;
    kube_rc_t             rc;
    const kube_record_t  *record;

    cursor = 0;

    for ( ;; ) {
        kube_arena_reset(&copy->arena);

        rc = kube_zone_next(copy->from, kind, &cursor, &copy->arena, &record,
                            &entry);
        if (rc != KUBE_OK) {
            return (rc == KUBE_NOT_FOUND) ? KUBE_OK : rc;
        }

        copy_one(copy, record);
    }
}


static void
copy_scopes_write(copy_t *copy)
{
    unsigned            i, c;
    kube_scope_info_t  *info;

    for (i = 0; i < copy->scopes_n; i++) {
        if (!copy->scope_used[i]) {
            continue;
        }

        info = &copy->scopes[i];

        if (copy->left_out) {
            info->rv = KUBE_STR_NULL;
        }

        if (kube_zone_scope_publish(copy->writer, i, info) != KUBE_OK) {
            copy->left_out = true;
            continue;
        }

        /* an error's text is not worth failing for */
        if (info->error_at_ms != 0
            && kube_zone_scope_error(copy->writer, i, info->error_reason,
                                     info->error_message, info->error_at_ms)
               != KUBE_OK)
        {
            info->error_at_ms = 0;
        }

        for (c = 0; c < KUBE_COUNTERS; c++) {
            kube_zone_scope_set(copy->to, i, (kube_counter_t) c,
                                kube_zone_scope_counter(copy->from, i,
                                                        (kube_counter_t) c));
        }
    }
}


static void
copy_words(kube_word_t *to, const kube_word_t *from, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        kube_word_set(&to[i], kube_word_get(&from[i]));
    }
}


static void
copy_header(copy_t *copy)
{
    unsigned                  i, k;
    kube_str_t                server;
    kube_zone_image_t        *to;
    const kube_zone_image_t  *from;

    to = copy->to->image;
    from = copy->from->image;

    copy_words(&to->epoch, &from->epoch, 1);
    copy_words(&to->takeovers, &from->takeovers, 1);
    copy_words(&to->failures, &from->failures, 1);
    copy_words(&to->crashes, &from->crashes, 1);
    copy_words(to->crash_times_ms, from->crash_times_ms, KUBE_ZONE_CRASHES);
    copy_words(&to->crash_run, &from->crash_run, 1);
    copy_words(&to->start_delay_until_ms, &from->start_delay_until_ms, 1);
    copy_words(&to->state_written_ms, &from->state_written_ms, 1);
    copy_words(&to->state_in_use, &from->state_in_use, 1);
    copy_words(&to->state_failed, &from->state_failed, 1);

    for (i = 0; i < KUBE_HISTOGRAMS; i++) {
        for (k = 0; k < KUBE_RESOURCES; k++) {
            copy_words(to->histograms[i][k].buckets,
                       from->histograms[i][k].buckets,
                       KUBE_HISTOGRAM_BUCKETS + 1);
            copy_words(&to->histograms[i][k].sum, &from->histograms[i][k].sum,
                       1);
        }
    }

    for (i = 0; i < KUBE_WORKER_COUNTERS; i++) {
        kube_zone_worker_add(copy->to, 0, i,
                             kube_zone_worker_sum(copy->from, i));
    }

    kube_arena_reset(&copy->arena);
    server = kube_zone_server(copy->from, &copy->arena);

    if (server.len != 0
        && kube_zone_server_set(copy->writer, server) != KUBE_OK)
    {
        copy->left_out = true;
    }
}


static kube_rc_t
copy_all(copy_t *copy)
{
    kube_rc_t        rc;
    kube_takeover_t  takeover;

    rc = copy_scopes_read(copy);

    if (rc == KUBE_OK) {
        rc = kube_zone_writer_acquire(copy->writer, 0, &takeover);
    }

    if (rc != KUBE_OK) {
        return rc;
    }

    /* what users saw as a generation must not go back */
    kube_word_set(&copy->to->image->revision,
                  kube_word_get(&copy->from->image->revision));

    rc = copy_services(copy);

    if (rc == KUBE_OK) {
        rc = copy_rest(copy, KUBE_RECORD_SLICE);
    }

    if (rc == KUBE_OK) {
        rc = copy_rest(copy, KUBE_RECORD_REFUSED);
    }

    if (rc == KUBE_OK) {
        copy_scopes_write(copy);
        copy_header(copy);
    }

    return rc;
}


kube_rc_t
kube_zone_copy(kube_zone_t *to, const kube_zone_t *from,
    const kube_alloc_t *alloc)
{
    copy_t     copy;
    kube_rc_t  rc;

    memset(&copy, 0, sizeof(copy_t));
    copy.to = to;
    copy.from = from;
    copy.writer = kube_zone_writer_create(alloc, to);

    if (copy.writer == NULL) {
        return KUBE_NOMEM;
    }

    kube_arena_init(&copy.arena, alloc, COPY_ARENA_MAX);
    kube_arena_init(&copy.scopes_arena, alloc, COPY_ARENA_MAX);

    rc = copy_all(&copy);

    kube_arena_done(&copy.scopes_arena);
    kube_arena_done(&copy.arena);
    kube_zone_writer_destroy(copy.writer);

    return (rc == KUBE_OK && copy.left_out) ? KUBE_FULL : rc;
}
