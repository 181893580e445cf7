/*
 * ngx_kube_alias - spellings by text, in one tree and one queue for the worker.
 *
 * It judges no text.  Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube_alias.h"


typedef struct {
    ngx_rbtree_t        tree;
    ngx_rbtree_node_t   sentinel;
    ngx_queue_t         lru;           /* the first was used last */
    ngx_uint_t          n;
} ngx_kube_aliases_t;


static ngx_int_t ngx_kube_alias_cmp(const void *owner, const u_char *text,
    size_t len, ngx_rbtree_node_t *node);
static void ngx_kube_alias_place(ngx_rbtree_node_t *root,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);


/* Of this process. */

static ngx_kube_aliases_t  ngx_kube_aliases;


/* Clients can make hashes equal: owner and text decide then. */

static ngx_int_t
ngx_kube_alias_cmp(const void *owner, const u_char *text, size_t len,
    ngx_rbtree_node_t *node)
{
    ngx_kube_alias_t  *alias;

    alias = (ngx_kube_alias_t *) node;

    if (owner != alias->owner) {
        return owner < alias->owner ? -1 : 1;
    }

    if (len != alias->len) {
        return len < alias->len ? -1 : 1;
    }

    return ngx_memcmp(text, alias->text, len);
}


static void
ngx_kube_alias_place(ngx_rbtree_node_t *root, ngx_rbtree_node_t *node,
    ngx_rbtree_node_t *sentinel)
{
    ngx_int_t            rc;
    ngx_kube_alias_t    *alias;
    ngx_rbtree_node_t  **p;

    alias = (ngx_kube_alias_t *) node;

    for ( ;; ) {

        if (node->key != root->key) {
            rc = node->key < root->key ? -1 : 1;

        } else {
            rc = ngx_kube_alias_cmp(alias->owner, alias->text, alias->len,
                                    root);
        }

        p = (rc < 0) ? &root->left : &root->right;

        if (*p == sentinel) {
            break;
        }

        root = *p;
    }

    *p = node;
    node->parent = root;
    node->left = sentinel;
    node->right = sentinel;
    ngx_rbt_red(node);
}


ngx_kube_alias_t *
ngx_kube_alias_find(const void *owner, const ngx_str_t *text)
{
    uint32_t             hash;
    ngx_int_t            rc;
    ngx_kube_alias_t    *alias;
    ngx_rbtree_node_t   *node;
    ngx_kube_aliases_t  *aliases;

    aliases = &ngx_kube_aliases;

    if (aliases->n == 0) {
        return NULL;
    }

    hash = ngx_murmur_hash2(text->data, text->len);
    node = aliases->tree.root;

    while (node != aliases->tree.sentinel) {

        if (hash != node->key) {
            node = (hash < node->key) ? node->left : node->right;
            continue;
        }

        rc = ngx_kube_alias_cmp(owner, text->data, text->len, node);

        if (rc == 0) {
            alias = (ngx_kube_alias_t *) node;

            ngx_queue_remove(&alias->lru);
            ngx_queue_insert_head(&aliases->lru, &alias->lru);

            return alias;
        }

        node = (rc < 0) ? node->left : node->right;
    }

    return NULL;
}


ngx_kube_alias_t *
ngx_kube_alias_add(const void *owner, const ngx_str_t *text, void *target,
    ngx_queue_t *siblings)
{
    ngx_queue_t         *last;
    ngx_kube_alias_t    *alias;
    ngx_kube_aliases_t  *aliases;

    aliases = &ngx_kube_aliases;

    if (aliases->n == 0) {
        ngx_rbtree_init(&aliases->tree, &aliases->sentinel,
                        ngx_kube_alias_place);
        ngx_queue_init(&aliases->lru);
    }

    alias = ngx_alloc(offsetof(ngx_kube_alias_t, text) + text->len,
                      ngx_cycle->log);
    if (alias == NULL) {
        return NULL;
    }

    if (aliases->n == NGX_KUBE_ALIASES_MAX) {
        last = ngx_queue_last(&aliases->lru);
        ngx_kube_alias_remove(ngx_queue_data(last, ngx_kube_alias_t, lru));
    }

    alias->owner = owner;
    alias->target = target;
    alias->revision = 0;
    alias->lasts = 0;
    alias->len = text->len;
    ngx_memcpy(alias->text, text->data, text->len);

    alias->node.key = ngx_murmur_hash2(alias->text, alias->len);

    ngx_rbtree_insert(&aliases->tree, &alias->node);
    ngx_queue_insert_head(&aliases->lru, &alias->lru);
    ngx_queue_insert_head(siblings, &alias->siblings);
    aliases->n++;

    return alias;
}


void
ngx_kube_alias_remove(ngx_kube_alias_t *alias)
{
    ngx_rbtree_delete(&ngx_kube_aliases.tree, &alias->node);
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
