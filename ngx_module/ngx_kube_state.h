/*
 * ngx_kube_state - what the files behind the state file share, and what the
 * master does for it before the informer process exists.
 *
 * The contract towards that process is in ngx_kube.h.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_KUBE_STATE_H
#define NGX_KUBE_STATE_H


#include "ngx_kube.h"

#include "kube_state.h"


typedef struct {
    char    *file;
    char    *prev;
    char    *next;
    char    *lock;
    char    *ask;
} ngx_kube_state_paths_t;

struct ngx_kube_state_s {
    ngx_kube_informer_t     *informer;
    ngx_log_t               *log;
    ngx_kube_state_paths_t   paths;

    int                      lock;           /* -1: not held */
    uint64_t                 locked_ms;      /* by others since; 0: not */
    uint64_t                 look_ms;        /* for the lock again then; 0: no
                                                other holds it */
    ngx_kube_loop_t         *loop;           /* borrowed: of the writer */
    ngx_connection_t        *asks;           /* for it; NULL: not heard */
    int                      fd;             /* -1: nothing being written */
    u_char                  *bytes;
    size_t                   size;
    size_t                   written;

    uint64_t                 next_ms;        /* 0: not synced yet */
    kube_client_t           *client;         /* borrowed: knows the CA */
    kube_state_info_t        info;           /* of what is being written */
    kube_state_omitted_t     omitted;        /* from it */

    uint64_t                 sum;            /* of what was written last */
    uint64_t                 sum_new;
    int64_t                  current_ms;     /* the same: known current then */
    int64_t                  current_new_ms;

    uint64_t                 awaited_ms;     /* of another process, until
                                                then; 0: nothing is */
    dev_t                    before_dev;     /* the file when it was asked */
    ino_t                    before_ino;

    int64_t                  written_ms;     /* as the zone shows it */
    unsigned                 known:1;        /* the zone's values were read */
    unsigned                 ca_said:1;    /* that it is another */
    unsigned                 in_use:1;
    unsigned                 synced:1;       /* all is, as of the last look */
    unsigned                 failed:1;
    unsigned                 said:1;         /* that, by this process */
    unsigned                 asked:1;        /* for a file of now */
    unsigned                 anew:1;         /* for that one was given up */
    unsigned                 leaving:1;      /* this one is the last */
};


/*
 * The end of ngx_kube_state_ask() that is asked.  For the process that holds
 * the lock, and only as long as it does: hear sets asked and wakes the loop
 * whenever someone asks.  Where it cannot, nobody is answered.
 */
void ngx_kube_state_hear(ngx_kube_state_t *state);
void ngx_kube_state_deaf(ngx_kube_state_t *state);

/* Whether the file that is open still goes by that name. */
ngx_uint_t ngx_kube_state_named(int fd, const char *name);

/* Tells the zone what the status shows. */
void ngx_kube_state_show(ngx_kube_state_t *state);

/*
 * Makes the directory of the informer's state file, one level, and gives it
 * to "user": the informer process may not be allowed to.  For init_module;
 * what fails is left to that process to tell.
 */
void ngx_kube_state_prepare(ngx_cycle_t *cycle,
    ngx_kube_informer_t *informer);

/*
 * Warns of a directory that is there and that "user" cannot write to, as after
 * a change of "user": what it holds is another one's, so it is given to nobody.
 * Configuration time.
 */
void ngx_kube_state_check(ngx_cycle_t *cycle, ngx_kube_informer_t *informer);


#endif /* NGX_KUBE_STATE_H */
