/*
 * ngx_kube_alias - spellings by text: a tree for each directive, one queue for
 * the worker.
 *
 * It judges no text.  Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube_alias.h"


/* Of this process. */

static struct {
    ngx_queue_t  lru;                  /* the first was used last */
    ngx_uint_t   n;
} ngx_kube_aliases;


ngx_kube_alias_t *
ngx_kube_alias_find(ngx_rbtree_t *tree, ngx_str_t *text)
{
    uint32_t           hash;
    ngx_kube_alias_t  *alias;

    hash = ngx_murmur_hash2(text->data, text->len);

    alias = (ngx_kube_alias_t *) ngx_str_rbtree_lookup(tree, text, hash);

    if (alias != NULL) {
        ngx_queue_remove(&alias->lru);
        ngx_queue_insert_head(&ngx_kube_aliases.lru, &alias->lru);
    }

    return alias;
}


ngx_kube_alias_t *
ngx_kube_alias_add(ngx_rbtree_t *tree, const ngx_str_t *text, void *target,
    ngx_queue_t *siblings)
{
    ngx_queue_t       *last;
    ngx_kube_alias_t  *alias;

    if (ngx_kube_aliases.n == 0) {
        ngx_queue_init(&ngx_kube_aliases.lru);
    }

    alias = ngx_calloc(sizeof(ngx_kube_alias_t) + text->len, ngx_cycle->log);
    if (alias == NULL) {
        return NULL;
    }

    if (ngx_kube_aliases.n == NGX_KUBE_ALIASES_MAX) {
        last = ngx_queue_last(&ngx_kube_aliases.lru);
        ngx_kube_alias_remove(ngx_queue_data(last, ngx_kube_alias_t, lru));
    }

    alias->tree = tree;
    alias->target = target;

    alias->sn.str.len = text->len;
    alias->sn.str.data = (u_char *) (alias + 1);
    ngx_memcpy(alias->sn.str.data, text->data, text->len);
    alias->sn.node.key = ngx_murmur_hash2(text->data, text->len);

    ngx_rbtree_insert(tree, &alias->sn.node);
    ngx_queue_insert_head(&ngx_kube_aliases.lru, &alias->lru);
    ngx_queue_insert_head(siblings, &alias->siblings);
    ngx_kube_aliases.n++;

    return alias;
}


void
ngx_kube_alias_remove(ngx_kube_alias_t *alias)
{
    ngx_rbtree_delete(alias->tree, &alias->sn.node);
    ngx_queue_remove(&alias->lru);
    ngx_queue_remove(&alias->siblings);
    ngx_kube_aliases.n--;

    ngx_free(alias);
}


void
ngx_kube_aliases_remove(ngx_queue_t *siblings)
{
    ngx_queue_t  *q, *next;

    for (q = ngx_queue_head(siblings);
         q != ngx_queue_sentinel(siblings);
         q = next)
    {
        next = ngx_queue_next(q);
        ngx_kube_alias_remove(ngx_queue_data(q, ngx_kube_alias_t, siblings));
    }
}
