/*
 * kube_decode_partial - the projection of any object to its metadata.
 *
 * It serves each resource of which nothing else is used, whether the server
 * sent meta/v1 PartialObjectMetadata, as it was asked to, or the whole object.
 * For kube_decode.c, through KUBE_RESOURCE_MAP.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_decode_impl.h"


void
kube_decode_partial(kube_decode_t *d, kube_object_t *object)
{
    kube_str_t              name;
    kube_decode_metadata_t  meta;

    meta = (kube_decode_metadata_t) { .partial = &object->u.partial };

    if (d->inside) {
        kube_decode_metadata(d, &meta);
    }

    while (kube_lexer_member(&d->lx, &name)) {
        if (kube_str_eq(name, KUBE_STR("metadata"))) {
            kube_decode_metadata(d, &meta);

        } else {
            kube_decode_other(d, name, object->resource);
        }
    }
}


/* They are asked for in JSON: see kube_request_accept(). */
void
kube_decode_partial_message(kube_decode_t *d, kube_protobuf_t *m,
    kube_object_t *object)
{
    (void) m;
    (void) object;

    kube_lexer_fail(&d->lx, "in Protocol Buffers, which was not asked for");
}
