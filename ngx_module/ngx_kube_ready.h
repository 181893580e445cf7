/*
 * ngx_kube_ready - whether every upstream's Service can be resolved.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_KUBE_READY_H
#define NGX_KUBE_READY_H


#include "ngx_kube.h"


/* "not_synced: endpointslices in shop", "no_service: shop/web:http" and NUL */
#define NGX_KUBE_REASON_MAX  512

/*
 * NGX_OK: each static key of the informer's users names a Service and port of
 * synced data, and all that keys made of variables may name has synced.  A
 * Service scaled to zero is no reason; a namespace that answers 403 is one
 * only where a user names it.  allow_state: data of a state file in use count
 * as well.  Nobody uses the informer: NGX_OK once it has synced.
 *
 * NGX_DECLINED: not so; reason tells the first thing that is wrong.
 */
ngx_int_t ngx_kube_ready(ngx_kube_informer_t *informer,
    ngx_uint_t allow_state, u_char reason[NGX_KUBE_REASON_MAX]);


#endif /* NGX_KUBE_READY_H */
