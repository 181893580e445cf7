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


/*
 * Since when a Service is missing nobody has noted.  Scopes are read once, not
 * for each of what may be hundreds of keys.
 */

static ngx_int_t
ngx_kube_report_missing(ngx_kube_informer_t *informer, kube_report_t *report,
    kube_arena_t *arena)
{
    kube_rc_t         rc;
    ngx_uint_t        i;
    kube_ready_t      ready;
    ngx_kube_ref_t  **refs;
    char              reason[NGX_KUBE_REASON_MAX];

    rc = KUBE_OK;
    refs = informer->refs.elts;

    kube_ready_init(&ready, &informer->zone, KUBE_READY_STRICT,
                    &ngx_kube_alloc, reason);

    for (i = 0; rc == KUBE_OK && i < informer->refs.nelts; i++) {

        if (!refs[i]->is_static
            || kube_ready_key(&ready, &refs[i]->resolver, &refs[i]->key))
        {
            continue;
        }

        if (ready.missing) {
            rc = kube_report_degrade(report, arena, KUBE_CAUSE_MISSING_SERVICE,
                                     0, "%s", reason);
        }

        kube_ready_again(&ready);
    }

    (void) kube_ready_done(&ready);

    return rc == KUBE_OK ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_kube_report(ngx_kube_informer_t *informer, kube_report_t *report,
    kube_arena_t *arena, kube_arena_t *scratch)
{
    report->name = ngx_kube_str(&informer->name);
    report->zone_name = ngx_kube_str(&informer->zone_name);
    report->zone_size = informer->zone_size;
    report->idle_timeout_ms = informer->idle_timeout;
    report->now_ms = ngx_kube_now();
    report->now_unix_ms = ngx_kube_unix_ms();

    if (kube_report_read(report, &informer->zone, arena, scratch) != KUBE_OK) {
        return NGX_ERROR;
    }

    return ngx_kube_report_missing(informer, report, arena);
}
