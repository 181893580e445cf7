/*
 * ngx_kube_ready - whether every upstream's Service can be resolved.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_KUBE_READY_H
#define NGX_KUBE_READY_H


#include "ngx_kube.h"


#include "kube_ready.h"


#define NGX_KUBE_REASON_MAX  KUBE_READY_REASON_MAX

/*
 * NGX_OK: kube_ready.h's rule holds for the keys of all who use the informer.
 * NGX_DECLINED: reason tells the first thing that is wrong.
 */
ngx_int_t ngx_kube_ready(ngx_kube_informer_t *informer,
    ngx_uint_t allow_state, u_char reason[NGX_KUBE_REASON_MAX]);


#endif /* NGX_KUBE_READY_H */
