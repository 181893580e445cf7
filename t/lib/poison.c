/*
 * poison - what a bug in the informer would be like: an object of one name
 * that kills the process.  Loaded before nginx's modules (LD_PRELOAD) by
 * test_crashes.py, so that nothing of it is in what we build.
 *
 *   KUBE_POISON=decode:NAME    SIGSEGV while its frame is decoded
 *   KUBE_POISON=apply:NAME     abort() while it is put into the zone
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

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kube_decode.h"
#include "kube_indexer.h"


/* The function of that name behind us: the module's. */
#define POISON_NEXT(name)  ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))


static char  poison_what[256];
static char  poison_file[256];


/* Before main(): nginx leaves nothing of the environment to its children. */
__attribute__((constructor))
static void
poison_init(void)
{
    const char  *what;

    what = getenv("KUBE_POISON");

    if (what != NULL) {
        strncpy(poison_what, what, sizeof(poison_what) - 1);
    }

    what = getenv("KUBE_POISON_FILE");

    if (what != NULL) {
        strncpy(poison_file, what, sizeof(poison_file) - 1);
    }
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

    return POISON_NEXT(kube_decode_object)(arena, resource, envelope, object,
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

    return POISON_NEXT(kube_decode_watch_event)(arena, resource, envelope,
                                                event, dropped, error);
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

    return POISON_NEXT(kube_indexer_apply)(indexer, delta, now_ms);
}
