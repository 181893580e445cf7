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
ngx_kube_ready(ngx_kube_informer_t *informer, unsigned flags,
    u_char reason[NGX_KUBE_REASON_MAX])
{
    bool               yes;
    ngx_uint_t         i;
    kube_ready_t       ready;
    ngx_kube_ref_t   **refs;
    kube_namespaces_t  named;

    kube_ready_init(&ready, &informer->zone, flags, &ngx_kube_alloc,
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


/* Since when a Service is missing nobody has noted. */

static ngx_int_t
ngx_kube_report_missing(ngx_kube_informer_t *informer, ngx_kube_ref_t *ref,
    kube_report_t *report, kube_arena_t *arena)
{
    kube_ready_t  ready;
    char          reason[NGX_KUBE_REASON_MAX];

    kube_ready_init(&ready, &informer->zone, KUBE_READY_STRICT,
                    &ngx_kube_alloc, reason);
    (void) kube_ready_key(&ready, &ref->resolver, &ref->key);
    (void) kube_ready_done(&ready);

    if (!ready.missing) {
        return NGX_OK;
    }

    return kube_report_degrade(report, arena, KUBE_CAUSE_MISSING_SERVICE, 0,
                               "%s", reason) == KUBE_OK ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_kube_report(ngx_kube_informer_t *informer, kube_report_t *report,
    kube_arena_t *arena, kube_arena_t *scratch)
{
    ngx_uint_t        i;
    ngx_kube_ref_t  **refs;

    report->name = ngx_kube_str(&informer->name);
    report->zone_name = ngx_kube_str(&informer->zone_name);
    report->zone_size = informer->zone_size;
    report->idle_timeout_ms = informer->idle_timeout;
    report->now_ms = ngx_kube_now();
    report->now_unix_ms = ngx_kube_unix_ms();

    if (kube_report_read(report, &informer->zone, arena, scratch) != KUBE_OK) {
        return NGX_ERROR;
    }

    refs = informer->refs.elts;

    for (i = 0; i < informer->refs.nelts; i++) {

        if (refs[i]->is_static
            && ngx_kube_report_missing(informer, refs[i], report, arena)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
