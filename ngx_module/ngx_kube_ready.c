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


ngx_int_t
ngx_kube_ready(ngx_kube_informer_t *informer, ngx_uint_t allow_state,
    u_char reason[NGX_KUBE_REASON_MAX])
{
    bool                yes;
    ngx_uint_t          i;
    kube_ready_t        ready;
    ngx_kube_use_t    **uses, *use;
    kube_namespaces_t   named;

    kube_ready_init(&ready, &informer->zone, allow_state, &ngx_kube_alloc,
                    (char *) reason);

    uses = informer->uses.elts;
    yes = true;

    for (i = 0; yes && i < informer->uses.nelts; i++) {
        use = uses[i];

        if (use->is_static) {
            yes = kube_ready_key(&ready, &use->resolver, &use->key);
            continue;
        }

        named.all = false;
        named.names = use->namespaces.elts;
        named.names_n = use->namespaces.nelts;

        yes = kube_ready_namespaces(&ready, &named);
    }

    return kube_ready_done(&ready) ? NGX_OK : NGX_DECLINED;
}
