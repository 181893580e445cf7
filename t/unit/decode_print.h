/*
 * decode_print - an object that was decoded as a text, which t/cluster/decode
 * compares with what Go's own types come to.
 *
 * For t/unit only: test_decode, test_decode_oracle and test_decode_message.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_DECODE_PRINT_H
#define KUBE_DECODE_PRINT_H


#include <stdio.h>

#include "alloc_test.h"
#include "kube_object.h"


/* One port as name|protocol|number|appProtocol. */
static inline void
decode_print_ports(FILE *out, const kube_port_t *p, size_t n)
{
    size_t  i;

    fprintf(out, " ports=");

    for (i = 0; i < n; i++) {
        fprintf(out, "%.*s|%s|%u|%.*s;", (int) p[i].name.len, p[i].name.data,
                kube_protocol_text(p[i].protocol), (unsigned) p[i].port,
                (int) p[i].app_protocol.len, p[i].app_protocol.data);
    }
}


/* What t/cluster/decode prints of the same object. */
static inline void
decode_print(FILE *out, const kube_object_t *o)
{
    char                    text[KUBE_ADDR_TEXT_MAX];
    size_t                  i;
    const kube_meta_t      *m;
    const kube_endpoint_t  *e;

    m = kube_object_meta(o);
    fprintf(out, "%.*s/%.*s uid=%.*s rv=%.*s", (int) m->ns.len, m->ns.data,
            (int) m->name.len, m->name.data, (int) m->uid.len, m->uid.data,
            (int) m->rv.len, m->rv.data);

    if (kube_resource_info(o->resource)->shape == KUBE_SHAPE_SERVICE) {
        fprintf(out, " type=%s headless=%d family=%d ips=",
                kube_service_type_text(o->u.service.type),
                o->u.service.headless, (int) o->u.service.family);

        for (i = 0; i < o->u.service.cluster_ips_n; i++) {
            (void) kube_addr_text(&o->u.service.cluster_ips[i], text);
            fprintf(out, "%s;", text);
        }

        decode_print_ports(out, o->u.service.ports, o->u.service.ports_n);
        return;
    }

    fprintf(out, " service=%.*s family=%d", (int) o->u.slice.service.len,
            o->u.slice.service.data, (int) o->u.slice.family);
    decode_print_ports(out, o->u.slice.ports, o->u.slice.ports_n);
    fprintf(out, " endpoints=");

    for (i = 0; i < o->u.slice.endpoints_n; i++) {
        e = &o->u.slice.endpoints[i];
        (void) kube_addr_text(&e->address, text);
        fprintf(out, "%s|%d%d%d|%.*s|%.*s|%.*s;", text, e->ready, e->serving,
                e->terminating, (int) e->pod.len, e->pod.data,
                (int) e->node.len, e->node.data, (int) e->zone.len,
                e->zone.data);
    }
}


#endif /* KUBE_DECODE_PRINT_H */
