/*
 * ngx_kube_alias - what spellings of keys mean, for one worker: at most
 * NGX_KUBE_ALIASES_MAX texts, the least recently used one goes first.
 *
 * Clients choose how they spell a Service ("$host", a port left out or by
 * number), so nothing larger than a row here may depend on a spelling.  It
 * knows neither keys nor views: a text in a tree leads to a target, which takes
 * its texts along when it goes.  Workers only.
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
    ngx_str_node_t      sn;            /* str: the text */
    ngx_rbtree_t       *tree;
    ngx_queue_t         lru;
    ngx_queue_t         siblings;      /* of the same target */
    void               *target;
    uint64_t            revision;      /* the caller's: as of when */
    unsigned            lasts:1;       /* the caller's: at every revision */
} ngx_kube_alias_t;


/*
 * The row of a text, which is now the one used last; NULL: none.  tree: one of
 * ngx_str_rbtree_insert_value().
 */
ngx_kube_alias_t *ngx_kube_alias_find(ngx_rbtree_t *tree, ngx_str_t *text);

/*
 * Adds a row that is not there, to the queue of its target's rows.  NULL: no
 * memory; that costs time, no more.
 */
ngx_kube_alias_t *ngx_kube_alias_add(ngx_rbtree_t *tree,
    const ngx_str_t *text, void *target, ngx_queue_t *siblings);

void ngx_kube_alias_remove(ngx_kube_alias_t *alias);

/* Removes all rows of a target's queue. */
void ngx_kube_aliases_remove(ngx_queue_t *siblings);


#endif /* NGX_KUBE_ALIAS_H */
