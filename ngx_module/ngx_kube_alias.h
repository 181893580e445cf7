/*
 * ngx_kube_alias - what spellings of keys mean, for one worker: at most
 * NGX_KUBE_ALIASES_MAX texts, the least recently used one goes first.
 *
 * Clients choose how they spell a Service ("$host", a port left out or by
 * number), so nothing larger than a row here may depend on a spelling.  It
 * knows neither keys nor views: a text of an owner leads to a target, and a
 * target that goes takes its texts along.  Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_KUBE_ALIAS_H
#define NGX_KUBE_ALIAS_H


#include <ngx_config.h>
#include <ngx_core.h>


/*
 * As many as views a worker had at most before spellings had a table of their
 * own; about 200 bytes each.
 */
#define NGX_KUBE_ALIASES_MAX  4096


typedef struct {
    ngx_rbtree_node_t   node;          /* key: hash of the text */
    ngx_queue_t         lru;
    ngx_queue_t         siblings;      /* of the same target */
    const void         *owner;
    void               *target;
    uint64_t            revision;      /* the caller's: as of when */
    unsigned            lasts:1;       /* the caller's: at every revision */
    size_t              len;
    u_char              text[1];
} ngx_kube_alias_t;


/* The row of a text, which is now the one used last; NULL: none. */
ngx_kube_alias_t *ngx_kube_alias_find(const void *owner, const ngx_str_t *text);

/*
 * Adds a row that is not there, to the queue of its target's rows.  NULL: no
 * memory; that costs time, no more.
 */
ngx_kube_alias_t *ngx_kube_alias_add(const void *owner, const ngx_str_t *text,
    void *target, ngx_queue_t *siblings);

void ngx_kube_alias_remove(ngx_kube_alias_t *alias);

/* Removes all rows of a target's queue. */
void ngx_kube_aliases_remove(ngx_queue_t *siblings);


#endif /* NGX_KUBE_ALIAS_H */
