/*
 * ngx_kube_ready - whether nginx may be sent requests, and what is degraded.
 *
 * It decides nothing: src/route's kube_ready does, which is fed with keys here.
 * Called by kube_ready and kube_status, in workers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_KUBE_READY_H
#define NGX_KUBE_READY_H


#include "ngx_kube.h"


#include "kube_ready.h"
#include "kube_report.h"


#define NGX_KUBE_REASON_MAX  KUBE_READY_REASON_MAX

/*
 * NGX_OK: kube_ready.h's rule holds for the keys of all who use the informer.
 * NGX_DECLINED: reason tells the first thing that is wrong.
 */
ngx_int_t ngx_kube_ready(ngx_kube_informer_t *informer, unsigned flags,
    u_char reason[NGX_KUBE_REASON_MAX]);

/*
 * Fills in a report but ready and reason: what the configuration says, what
 * the zone says, and static keys without a Service as degraded.  Arenas as in
 * kube_report_read().  NGX_OK or NGX_ERROR (no memory).
 */
ngx_int_t ngx_kube_report(ngx_kube_informer_t *informer,
    kube_report_t *report, kube_arena_t *arena, kube_arena_t *scratch);


#endif /* NGX_KUBE_READY_H */
