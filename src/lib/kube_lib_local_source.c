/*
 * kube_lib_local_source - objects of the program's own as a source of
 * informers, as programs see it.
 *
 * kube_memory_lister_watcher is the source; here objects are put into its
 * words.  For programs, through kube.h.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_lib.h"


/* Changes that are remembered for watches, where the program does not say. */
#define SOURCE_CHANGES      1024
#define SOURCE_CHANGES_MAX  1000000


kube_local_source_t *
kube_lib_local_source_create(const kube_lib_env_t *env,
    kube_v1_resource_t resource, uint32_t changes_max)
{
    kube_local_source_t  *source;

    if ((unsigned) resource >= KUBE_RESOURCES
        || changes_max > SOURCE_CHANGES_MAX)
    {
        return NULL;
    }

    source = kube_zalloc(&env->alloc, sizeof(kube_local_source_t));
    if (source == NULL) {
        return NULL;
    }

    source->alloc = env->alloc;
    source->resource = (kube_resource_t) resource;
    kube_arena_init(&source->arena, &source->alloc, KUBE_LIB_ARENA_BYTES);

    source->memory = kube_memory_source_create(&source->alloc,
                         source->resource,
                         (changes_max != 0) ? changes_max : SOURCE_CHANGES);

    if (source->memory == NULL) {
        kube_local_source_destroy(source);
        return NULL;
    }

    return source;
}


kube_local_source_t *
kube_local_source_create(kube_v1_resource_t resource, uint32_t changes_max)
{
    kube_lib_env_t  env;

    env = kube_lib_system();

    return kube_lib_local_source_create(&env, resource, changes_max);
}


void
kube_local_source_destroy(kube_local_source_t *source)
{
    kube_alloc_t  alloc;

    if (source == NULL) {
        return;
    }

    alloc = source->alloc;

    kube_memory_source_destroy(source->memory);
    kube_arena_done(&source->arena);
    kube_free(&alloc, source);
}


int
kube_local_source_put(kube_local_source_t *source,
    const kube_v1_object_t *object)
{
    kube_rc_t      rc;
    kube_object_t  made;

    if ((unsigned) object->resource != (unsigned) source->resource) {
        return KUBE_E_INVALID;
    }

    memset(&made, 0, sizeof(kube_object_t));

    made.resource = source->resource;
    made.u.meta = (kube_meta_t) {
        .ns = kube_str(object->ns),
        .name = kube_str(object->name),
        .uid = kube_str(object->uid)
    };

    kube_arena_reset(&source->arena);
    rc = kube_lib_import(&source->arena, object, &made);

    return (rc == KUBE_OK) ? kube_memory_source_put(source->memory, &made)
                           : rc;
}


int
kube_local_source_remove(kube_local_source_t *source, const char *ns,
    const char *name)
{
    return kube_memory_source_remove(source->memory, kube_str(ns),
                                     kube_str(name));
}
