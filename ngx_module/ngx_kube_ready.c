/*
 * ngx_kube_ready - the keys of a configuration, handed to src/route's
 * kube_ready one by one.
 *
 * It decides nothing and remembers nothing.  Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube_ready.h"
#include "ngx_kube_refs.h"


ngx_int_t
ngx_kube_ready(ngx_kube_informer_t *informer, ngx_uint_t allow_state,
    u_char reason[NGX_KUBE_REASON_MAX])
{
    bool               yes;
    ngx_uint_t         i;
    kube_ready_t       ready;
    ngx_kube_ref_t   **refs;
    kube_namespaces_t  named;

    kube_ready_init(&ready, &informer->zone, allow_state, &ngx_kube_alloc,
                    (char *) reason);

    refs = informer->refs.elts;
    yes = true;

    for (i = 0; yes && i < informer->refs.nelts; i++) {

        if (refs[i]->is_static) {
            yes = kube_ready_key(&ready, &refs[i]->resolver, &refs[i]->key);
            continue;
        }

        ngx_memzero(&named, sizeof(kube_namespaces_t));

        if (refs[i]->namespaces != NULL) {
            named.names = refs[i]->namespaces->elts;
            named.names_n = refs[i]->namespaces->nelts;
        }

        yes = kube_ready_namespaces(&ready, &named);
    }

    return kube_ready_done(&ready) ? NGX_OK : NGX_DECLINED;
}
