/*
 * kube_lib - what the files of the library for programs share, and a way to
 * make a kube_t whose memory, time and sources are the caller's own.
 *
 * kube.h is what programs see, and nothing else of ours is; this is for the
 * files of src/lib and their test.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_LIB_H
#define KUBE_LIB_H


#include "kube.h"
#include "kube_client.h"
#include "kube_factory.h"
#include "kube_memory_lister_watcher.h"


/* What an object may take decoded, in bytes: api_arena's ceiling. */
#define KUBE_LIB_ARENA_BYTES     (64u << 20)

/* Handlers that lacked memory are called again after this, in ms. */
#define KUBE_LIB_RETRY_MS        1000

#define KUBE_LIB_QUEUE_KEYS_MAX  1000000
#define KUBE_LIB_QUEUE_KEY_MAX   1024

/* The sizes of structs that have grown, as they first were. */
#define KUBE_LIB_OPTIONS_FIRST   offsetof(kube_options_t, endpoints_selector)

/* What a kube_t takes from the system. */
typedef struct {
    kube_alloc_t   alloc;
    uint64_t     (*now)(void *ctx);

    /* As kube_factory_conf_t; NULL: the API server of the options. */
    kube_rc_t    (*lister_watcher)(void *ctx, kube_resource_t resource,
                      kube_str_t ns, kube_lister_watcher_t *lw);
    void          *ctx;
} kube_lib_env_t;

typedef struct kube_lib_handler_s  kube_lib_handler_t;
typedef struct kube_lib_index_s    kube_lib_index_t;

struct kube_local_source_s {
    kube_alloc_t            alloc;
    kube_resource_t         resource;
    kube_memory_source_t   *memory;
    kube_arena_t            arena;     /* of one object, while it is put */
};

struct kube_s {
    kube_lib_env_t      env;
    kube_options_t      options;       /* strings are not valid but for: */
    kube_str_t          selectors[KUBE_RESOURCES];     /* owned */
    kube_local_source_t      *sources[KUBE_RESOURCES];       /* the program's */
    kube_arena_t        transforming;  /* what a transform has made */
    kube_v1_object_t   *transformed;   /* that it was called for last */
    kube_config_t       config;
    bool                curl;          /* libcurl is initialised for it */
    kube_client_t      *client;        /* NULL: there are sources alone */
    kube_factory_t     *factory;
    kube_informer_t    *informers;
    kube_arena_t        arena;         /* of one object, while it is read */
    uint64_t            handler_id;    /* the last that was given */
    uint64_t            retry_ms;      /* or KUBE_NEVER */
    int                 epoll;
    int                 event;         /* of kube_wake() */
    bool                processing;
};

/* kube_create() with that.  alloc is copied. */
int kube_lib_create(const kube_lib_env_t *env, const kube_options_t *options,
    kube_t **kube, char *why, size_t why_size)  KUBE_MUST_CHECK;

/* kube_local_source_create() with that. */
kube_local_source_t *kube_lib_local_source_create(const kube_lib_env_t *env,
    kube_v1_resource_t resource, uint32_t changes_max)  KUBE_MUST_CHECK;

/* kube_queue_create() with that. */
kube_queue_t *kube_lib_queue_create(const kube_lib_env_t *env,
    uint32_t keys_max)  KUBE_MUST_CHECK;

/* malloc() and the monotonic clock. */
kube_lib_env_t kube_lib_system(void);
kube_seed_t kube_lib_seed(void);

/*
 * The object as programs see it, which wants a kube_v1_object_release().
 * KUBE_OK, KUBE_NOMEM, KUBE_CORRUPT.
 */
kube_rc_t kube_lib_object(kube_arena_t *arena, const kube_stored_t *stored,
    const kube_v1_object_t **object)  KUBE_MUST_CHECK;

/* As above, of a decoded object.  NULL: out of memory. */
kube_v1_object_t *kube_lib_object_of(const kube_alloc_t *alloc,
    const kube_object_t *from)  KUBE_MUST_CHECK;

/*
 * The content of a program's object, into *to, whose resource and metadata
 * are filled and the rest is zero or that of the object before it.  Strings are
 * the program's, arrays the arena's.  KUBE_OK, KUBE_NOMEM, KUBE_INVALID.
 */
kube_rc_t kube_lib_import(kube_arena_t *arena, const kube_v1_object_t *from,
    kube_object_t *to)  KUBE_MUST_CHECK;

/* Frees handlers that were removed from within one of them. */
void kube_lib_informers_sweep(kube_t *kube);

/* Frees all that informers of a kube_t have beside the factory's. */
void kube_lib_informers_done(kube_t *kube);


#endif /* KUBE_LIB_H */
