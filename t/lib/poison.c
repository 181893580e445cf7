/*
 * poison - what a bug in the informer would be like: an object of one name
 * that kills the process.  Loaded before nginx's modules (LD_PRELOAD) by
 * test_crashes.py, so that nothing of it is in what we build.
 *
 *   KUBE_POISON=decode:NAME    SIGSEGV while its frame is decoded
 *   KUBE_POISON=apply:NAME     abort() while it is put into the zone
 *   KUBE_POISON=publish:NAME   while the Service of that name is published
 *   KUBE_POISON=walk:NAME      while a zone is taken over that holds it
 *   KUBE_POISON=state_file:NAME  while it is taken from a state file
 *
 *   KUBE_POISON=stall:NAME     it stays there, and says so on stderr
 *   KUBE_POISON_FILE=PATH      only while there is such a file
 *
 * NAME is how the object's name begins.  Deletions and refusals kill nobody.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define _GNU_SOURCE

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload.h"

#include "kube_decode_scan.h"
#include "kube_indexer.h"
#include "kube_publication.h"
#include "kube_zone_recover.h"


static char  poison_what[256];
static char  poison_file[256];


__attribute__((constructor))
static void
poison_init(void)
{
    preload_env(poison_what, sizeof(poison_what), "KUBE_POISON");
    preload_env(poison_file, sizeof(poison_file), "KUBE_POISON_FILE");
}


static int
poison_is(const char *stage, kube_str_t name)
{
    size_t       len;
    const char  *what;

    what = poison_what;
    len = strlen(stage);

    if (strncmp(what, stage, len) != 0
        || what[len] != ':'
        || (poison_file[0] != '\0' && access(poison_file, F_OK) != 0))
    {
        return 0;
    }

    what += len + 1;
    len = strlen(what);

    return len != 0 && name.len >= len && memcmp(name.data, what, len) == 0;
}


static void
poison_decode(const kube_envelope_t *envelope)
{
    if (!envelope->too_large && poison_is("decode", envelope->meta.name)) {
        *(volatile int *) (size_t) 8 = 1;
    }
}


kube_rc_t
kube_decode_object(kube_arena_t *arena, kube_resource_t resource,
    const kube_envelope_t *envelope, kube_object_t *object,
    uint32_t *dropped, kube_error_t *error)
{
    poison_decode(envelope);

    return PRELOAD_NEXT(kube_decode_object)(arena, resource, envelope, object,
                                           dropped, error);
}


kube_rc_t
kube_decode_watch_event(kube_arena_t *arena, kube_resource_t resource,
    const kube_envelope_t *envelope, kube_watch_event_t *event,
    uint32_t *dropped, kube_error_t *error)
{
    if (!kube_str_eq(envelope->type, KUBE_STR("DELETED"))) {
        poison_decode(envelope);
    }

    return PRELOAD_NEXT(kube_decode_watch_event)(arena, resource, envelope,
                                                event, dropped, error);
}


kube_rc_t
kube_decode_scan_body(kube_decode_scan_t *scan, kube_arena_t *arena,
    kube_envelope_t *envelope, kube_object_t *object, uint32_t *dropped,
    size_t *len)
{
    if (scan->type != KUBE_WATCH_DELETED) {
        poison_decode(envelope);
    }

    return PRELOAD_NEXT(kube_decode_scan_body)(scan, arena, envelope, object,
                                              dropped, len);
}


kube_rc_t
kube_indexer_apply(kube_indexer_t *indexer, const kube_delta_t *delta,
    uint64_t now_ms)
{
    static const char  stalled[] = "poison: stalled\n";

    if (delta->record != NULL && poison_is("apply", delta->name)) {
        abort();
    }

    if (delta->record != NULL && poison_is("stall", delta->name)) {
        (void) !write(STDERR_FILENO, stalled, sizeof(stalled) - 1);

        while (poison_is("stall", delta->name)) {
            (void) usleep(10000);
        }
    }

    return PRELOAD_NEXT(kube_indexer_apply)(indexer, delta, now_ms);
}


kube_rc_t
kube_publication_run(kube_publication_t *publication, kube_group_t *group,
    uint64_t read_ms)
{
    if (poison_is("publish", kube_group_name(group))) {
        abort();
    }

    return PRELOAD_NEXT(kube_publication_run)(publication, group, read_ms);
}


/* Records are validated elsewhere, too: only while the zone is taken over. */
static int  poison_walks;


kube_rc_t
kube_zone_writer_acquire(kube_zone_writer_t *writer, uint64_t now_ms,
    kube_takeover_t *takeover)
{
    kube_rc_t  rc;

    poison_walks = 1;
    rc = PRELOAD_NEXT(kube_zone_writer_acquire)(writer, now_ms, takeover);
    poison_walks = 0;

    return rc;
}


kube_rc_t
kube_record_validate(const void *bytes, size_t len)
{
    kube_record_id_t  id;

    if (poison_walks
        && kube_record_id(bytes, len, &id) == KUBE_OK
        && poison_is("walk", id.meta.name))
    {
        abort();
    }

    return PRELOAD_NEXT(kube_record_validate)(bytes, len);
}


kube_rc_t
kube_indexer_put_state(kube_indexer_t *indexer, const kube_record_t *record,
    unsigned scope, uint64_t now_ms)
{
    kube_record_id_t  id;

    if (kube_record_id(record, record->size, &id) == KUBE_OK
        && poison_is("state_file", id.meta.name))
    {
        abort();
    }

    return PRELOAD_NEXT(kube_indexer_put_state)(indexer, record, scope, now_ms);
}
