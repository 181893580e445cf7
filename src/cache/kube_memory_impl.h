/*
 * kube_memory_impl - what a source in memory and the calls of its
 * lister-watchers share.  For kube_memory_source.c, which calls nothing of
 * the other, and kube_memory_lister_watcher.c alone.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_MEMORY_IMPL_H
#define KUBE_MEMORY_IMPL_H


#include <stdalign.h>

#include "kube_memory_lister_watcher.h"
#include "kube_record.h"


/* "18446744073709551615/namespace/name" */
#define MEMORY_TOKEN_MAX  (20 + 1 + KUBE_KEY_LEN_MAX + 1)

/* One state of an object; id borrows from the record. */
typedef struct {
    unsigned             refs;
    uint64_t             rv;
    int64_t              trigger_ms;
    kube_record_id_t     id;
    alignas(8) unsigned char  record[];
} memory_state_t;

typedef struct {
    kube_watch_type_t    type;
    bool                 quiet;
    memory_state_t      *state;        /* of DELETED: the last */
    memory_state_t      *before;       /* NULL: there was none */
} memory_change_t;

/* A page of a list, or a watch: struct kube_call_s for those outside. */
typedef struct memory_call_s  memory_call_t;

struct memory_call_s {
    memory_call_t       *next;         /* of the source */
    bool                 watch;
    bool                 opened;       /* OPENED was handed over */
    bool                 meta;         /* so was META */
    bool                 over;         /* so was STATUS or END */
    bool                 ended;        /* END is all that is left: ended_rc */
    bool                 initial_end;  /* a bookmark is due that says so */
    bool                 bookmark;     /* one is due */
    bool                 more;         /* the list has another page */
    kube_rc_t            ended_rc;
    kube_verdict_t       verdict;      /* OK, or a STATUS is all that is left */
    int                  code;
    uint32_t             retry_after_s;
    uint64_t             rv;           /* of a list; a watch: told up to it */
    uint64_t             deadline_ms;  /* of a watch */
    uint64_t             bookmark_ms;
    size_t               fresh;        /* bytes that no ALIVE has told of */
    memory_state_t     **items;        /* owned, with a reference each */
    size_t               items_n;
    size_t               at;
    memory_state_t      *held;         /* of the result handed over last */
    char                 token[MEMORY_TOKEN_MAX];
};

typedef struct {
    unsigned             n;            /* calls that are refused */
    int                  code;
    uint32_t             retry_after_s;
} memory_refusal_t;

typedef struct memory_lw_s  memory_lw_t;

struct memory_lw_s {
    kube_memory_source_t  *source;
    memory_lw_t           *next;       /* of the source */
    kube_str_t             ns;         /* owned; empty: all */
    memory_call_t         *calls;
    kube_arena_t           arena;      /* of one result */
    kube_status_t          status;     /* of one result */
    kube_rv_t              rv;         /* of one result */
};

struct kube_memory_source_s {
    kube_alloc_t           alloc;
    kube_resource_t        resource;
    bool                   quiet;
    uint64_t               rv;
    uint64_t               forgotten;  /* the changes up to it are */
    memory_lw_t           *lws;
    void                  *objects;    /* memory_state_t *, in order */
    size_t                 objects_n;
    size_t                 objects_cap;
    memory_change_t       *changes;
    size_t                 changes_max;
    memory_refusal_t       refusals[2];    /* of lists, of watches */
};


/* A state's references; NULL is accepted. */
void kube_memory_release(const kube_alloc_t *alloc, memory_state_t *state);
memory_state_t *kube_memory_hold(memory_state_t *state);

/* Less than, equal to or more than 0, as the key of the state is. */
int kube_memory_cmp(const memory_state_t *state, kube_str_t ns,
    kube_str_t name);

/*
 * The place of a key among n states: of the state that has it, or where it
 * would stand.
 */
size_t kube_memory_place(memory_state_t *const *states, size_t n,
    kube_str_t ns, kube_str_t name, bool *found);

/* The change that made version rv, which is not forgotten yet. */
memory_change_t *kube_memory_change(const kube_memory_source_t *source,
    uint64_t rv);

/* True of an object of the lister-watcher's namespace. */
bool kube_memory_is_in(const memory_lw_t *lw, const memory_state_t *state);

/* Moves a watch over the changes that it does not tell. */
void kube_memory_skip(const memory_lw_t *lw, memory_call_t *call);


#endif /* KUBE_MEMORY_IMPL_H */
