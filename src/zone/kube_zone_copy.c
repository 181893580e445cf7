/*
 * kube_zone_copy - filling a fresh image from another one that may be live.
 *
 * It reads the other image as any reader does, and writes as the first writer
 * of the new one.
 *
 * Scopes are copied first: their resourceVersions are then not newer than any
 * object copied, and a watch resumed there repeats what came after.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_zone_copy.h"
#include "kube_zone_guard.h"
#include "kube_zone_image.h"
#include "kube_zone_reader.h"
#include "kube_zone_recover.h"
#include "kube_zone_scope.h"
#include "kube_zone_writer.h"


#define COPY_ARENA_MAX  (64u << 20)

/* Less than anybody allows. */
#define COPY_OBJECT_MAX_LESS  1


typedef struct {
    const kube_zone_t   *from;
    kube_zone_t         *to;
    kube_zone_writer_t  *writer;
    kube_arena_t         arena;           /* of one object */
    bool                 left_out;
    uint64_t             evicting;        /* from's, when the copy began */
    uint64_t             epoch;
    uint64_t             corrupt;
    uint64_t             state_in_use;
    uint64_t             object_max;
} copy_t;


static kube_rc_t
copy_scope(copy_t *copy, unsigned scope)
{
    unsigned           c;
    kube_rc_t          rc;
    kube_scope_info_t  info;

    kube_arena_reset(&copy->arena);
    rc = kube_zone_scope_read(copy->from, scope, &copy->arena, &info);

    if (rc != KUBE_OK) {
        /* a scope that cannot be read is left out, and so listed again */
        return (rc == KUBE_NOMEM) ? KUBE_NOMEM : KUBE_OK;
    }

    rc = kube_zone_scope_publish(copy->writer, scope, &info);

    if (rc == KUBE_OK && info.error_at_ms != 0) {
        rc = kube_zone_scope_error(copy->writer, scope, info.error_reason,
                                   info.error_message, info.error_at_ms);
    }

    for (c = 0; c < KUBE_COUNTERS; c++) {
        kube_zone_scope_set(copy->to, scope, (kube_counter_t) c,
                            kube_zone_scope_counter(copy->from, scope,
                                                    (kube_counter_t) c));
    }

    if (rc != KUBE_OK) {
        copy->left_out = true;
    }

    return KUBE_OK;
}


/* Without all objects of a version, the scope must not claim it. */
static kube_rc_t
copy_forget_version(copy_t *copy, unsigned scope)
{
    kube_rc_t          rc;
    kube_scope_info_t  info;

    kube_arena_reset(&copy->arena);
    rc = kube_zone_scope_read(copy->to, scope, &copy->arena, &info);

    if (rc != KUBE_OK) {
        return (rc == KUBE_NOMEM) ? KUBE_NOMEM : KUBE_OK;
    }

    info.rv = KUBE_STR_NULL;

    return kube_zone_scope_publish(copy->writer, scope, &info);
}


static kube_rc_t
copy_scopes(copy_t *copy, kube_rc_t (*step)(copy_t *copy, unsigned scope))
{
    unsigned   i;
    kube_rc_t  rc;

    for (i = 0; i < copy->from->geometry.scopes_n; i++) {
        rc = step(copy, i);

        if (rc != KUBE_OK) {
            return rc;
        }
    }

    return KUBE_OK;
}


/* Returns the entry; 0: there was no room. */
static uint32_t
copy_stage(copy_t *copy, const kube_record_t *record)
{
    uint32_t  entry;

    if (kube_zone_stage(copy->writer, record, 0, &entry) != KUBE_OK) {
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
copy_service(copy_t *copy, uint32_t entry)
{
    kube_rc_t           rc;
    kube_zone_bundle_t  bundle;

    rc = kube_zone_load_service(copy->from, entry, KUBE_STR_NULL,
                                KUBE_STR_NULL, &copy->arena, &copy->arena,
                                &bundle);

    if (rc == KUBE_OK) {
        copy_bundle(copy, &bundle);

    } else if (rc != KUBE_NOT_FOUND && rc != KUBE_NOMEM) {
        copy->left_out = true;
    }

    return (rc == KUBE_NOMEM) ? KUBE_NOMEM : KUBE_OK;
}


/*
 * Passes over a slice that has come with its Service.  One that has not come
 * since, of which no event may tell: a list beside the watch brings what had
 * been refused.  Without its Service's ref a take-over would let it go.
 */
static void
copy_alone(copy_t *copy, const kube_record_t *record)
{
    kube_rc_t         rc;
    kube_zone_item_t  item;

    if (kube_zone_item(copy->writer, record, &item) != KUBE_OK
        || item.entry != 0)
    {
        return;
    }

    if (record->kind == KUBE_RECORD_REFUSED) {
        rc = kube_zone_refuse(copy->writer, &item, item.id.meta.rv,
                              item.id.reason);

    } else if (kube_zone_service_of(copy->writer, record) != 0) {
        rc = kube_zone_refuse(copy->writer, &item, item.id.meta.rv,
                              kube_reason_text(KUBE_REASON_INTERRUPTED));

    } else {
        rc = kube_zone_stage_item(copy->writer, &item, 0);

        if (rc == KUBE_OK) {
            kube_zone_publish_orphan(copy->writer, item.entry);
        }
    }

    if (rc != KUBE_OK) {
        copy->left_out = true;
    }
}


static bool
copy_has(copy_t *copy, const kube_record_t *record)
{
    kube_zone_item_t  item;

    return kube_zone_item(copy->writer, record, &item) == KUBE_OK
           && item.entry != 0;
}


static kube_rc_t
copy_objects(copy_t *copy, kube_record_kind_t kind)
{
    uint32_t              cursor, entry;
    kube_rc_t             rc;
    const kube_record_t  *record;

    cursor = 0;

    do {
        kube_arena_reset(&copy->arena);
        rc = kube_zone_next(copy->from, kind, &cursor, &copy->arena, &record,
                            &entry);

        if (rc == KUBE_OK && kind != KUBE_RECORD_SERVICE) {
            copy_alone(copy, record);

        } else if (rc == KUBE_OK && !copy_has(copy, record)) {
            rc = copy_service(copy, entry);
        }

    } while (rc == KUBE_OK);

    return (rc == KUBE_NOT_FOUND) ? KUBE_OK : rc;
}


static void
copy_words(void *to, const void *from, size_t size)
{
    size_t              i;
    kube_word_t        *t;
    const kube_word_t  *f;

    t = to;
    f = from;

    for (i = 0; i < size / sizeof(kube_word_t); i++) {
        kube_word_set(&t[i], kube_word_get(&f[i]));
    }
}


static void
copy_header(copy_t *copy)
{
    unsigned                  i;
    kube_str_t                server;
    kube_zone_image_t        *to;
    const kube_zone_image_t  *from;

    to = copy->to->image;
    from = copy->from->image;

    /*
     * A slice on its way out, or lost to a take-over, may have been copied or
     * not, and no event after the scopes' versions says so.  A record that is
     * not as it was written was passed over, and counted.
     */
    if (kube_head_offset(copy->evicting) != 0
        || kube_word_get(&from->evicting) != copy->evicting
        || kube_word_get(&from->history.epoch) != copy->epoch
        || kube_word_get(&from->corrupt) != copy->corrupt)
    {
        copy->left_out = true;
    }

    copy_words(&to->history, &from->history, sizeof(kube_zone_history_t));

    /* what was listed since, as more is allowed, may be a name in the copy */
    kube_zone_set_object_max(copy->to, copy->object_max);

    /* what was whole by the end only may have been copied in part */
    if (copy->state_in_use != KUBE_STATE_FILE_WHOLE
        && kube_word_get(&to->history.state_in_use) == KUBE_STATE_FILE_WHOLE)
    {
        kube_zone_set_state_loading(copy->to, true);
    }

    copy_words(to->histograms, from->histograms, sizeof(to->histograms));

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


/*
 * What was too large for a record may have room in a larger one, of which no
 * event tells: who follows lists it, as where less had been allowed.
 */
static uint64_t
copy_object_max(const copy_t *copy)
{
    if (kube_zone_record_max(copy->to) > kube_zone_record_max(copy->from)) {
        return COPY_OBJECT_MAX_LESS;
    }

    return kube_zone_object_max(copy->from);
}


static kube_rc_t
copy_all(copy_t *copy)
{
    size_t           i;
    kube_rc_t        rc;
    kube_takeover_t  takeover;

    /* what was refused, and is not any more when its turn comes, has come */

    static const kube_record_kind_t  kinds[] = {
        KUBE_RECORD_SERVICE, KUBE_RECORD_SLICE, KUBE_RECORD_REFUSED,
        KUBE_RECORD_SERVICE, KUBE_RECORD_SLICE
    };

    rc = kube_zone_writer_acquire(copy->writer, 0, &takeover);

    if (rc == KUBE_OK) {
        /* revisions are shown as generations: they must not go back */
        copy->writer->revision = kube_zone_revision(copy->from);
        kube_word_set(&copy->to->image->revision, copy->writer->revision);

        copy->evicting = kube_word_get(&copy->from->image->evicting);
        copy->epoch = kube_word_get(&copy->from->image->history.epoch);
        copy->corrupt = kube_word_get(&copy->from->image->corrupt);
        copy->state_in_use =
                   kube_word_get(&copy->from->image->history.state_in_use);
        copy->object_max = copy_object_max(copy);
        rc = copy_scopes(copy, copy_scope);
    }

    for (i = 0; rc == KUBE_OK && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        rc = copy_objects(copy, kinds[i]);
    }

    if (rc == KUBE_OK) {
        copy_header(copy);
    }

    if (rc == KUBE_OK && copy->left_out) {
        rc = copy_scopes(copy, copy_forget_version);
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
    rc = copy_all(&copy);

    kube_arena_done(&copy.arena);
    kube_zone_writer_destroy(copy.writer);

    return (rc == KUBE_OK && copy.left_out) ? KUBE_FULL : rc;
}
