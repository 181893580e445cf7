/*
 * kube_decode_service - the projection of a Service (core/v1).
 *
 * A bad port, cluster IP or family is left out and counted.  What decides about
 * the whole Service, spec, its type and the list of ports, refuses it where it
 * is bad, so that the last good record can stay.  For kube_decode.c only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_decode_impl.h"


typedef struct {
    kube_service_t       *service;
    kube_decode_array_t   ports;
    kube_str_t            cluster_ip;
    size_t                cluster_ips;   /* elements of clusterIPs */
} service_decode_t;


static void
service_type(kube_decode_t *d, kube_service_t *service)
{
    unsigned    i;
    kube_rc_t   rc;
    kube_str_t  text;

    rc = kube_decode_text(d, &text);

    if (rc == KUBE_NOT_FOUND) {
        return;
    }

    for (i = KUBE_SERVICE_CLUSTER_IP; rc == KUBE_OK
                                      && i <= KUBE_SERVICE_EXTERNAL_NAME; i++)
    {
        service->type = (kube_service_type_t) i;

        if (kube_str_eq(text, kube_str(kube_service_type_text(service->type))))
        {
            return;
        }
    }

    service->type = KUBE_SERVICE_CLUSTER_IP;

    if (rc != KUBE_OK || text.len != 0) {
        kube_lexer_fail(&d->lx, "unknown spec.type");
    }
}


static void
service_cluster_ip(kube_decode_t *d, kube_str_t text, kube_service_t *service)
{
    if (text.len == 0) {
        return;
    }

    if (kube_str_eq(text, KUBE_STR("None"))) {
        service->headless = true;
        return;
    }

    if (service->cluster_ips_n == KUBE_CLUSTER_IPS_MAX
        || kube_addr_parse(text, &service->cluster_ips[service->cluster_ips_n])
           != KUBE_OK)
    {
        d->dropped++;
        return;
    }

    service->cluster_ips_n++;
}


static void
service_cluster_ips(kube_decode_t *d, service_decode_t *s)
{
    kube_rc_t   rc;
    kube_str_t  text;

    s->cluster_ips = 0;
    s->service->cluster_ips_n = 0;
    s->service->headless = false;

    rc = kube_decode_enter(d, '[');

    while (rc == KUBE_OK && kube_lexer_element(&d->lx)) {
        s->cluster_ips++;
        text = KUBE_STR_NULL;

        if (kube_decode_text(d, &text) == KUBE_INVALID) {
            d->dropped++;
        }

        service_cluster_ip(d, text, s->service);
    }

    d->dropped += (rc == KUBE_INVALID);
}


/* The first of them is the Service's own; the others are not needed. */
static void
service_families(kube_decode_t *d, kube_service_t *service)
{
    size_t      n;
    kube_rc_t   rc;
    kube_str_t  text;

    service->family = KUBE_FAMILY_NONE;
    rc = kube_decode_enter(d, '[');

    for (n = 0; rc == KUBE_OK && kube_lexer_element(&d->lx); n++) {

        if (n != 0) {
            kube_lexer_value(&d->lx, NULL);
            continue;
        }

        text = KUBE_STR_NULL;

        if (kube_decode_text(d, &text) == KUBE_OK
            && kube_str_eq(text, KUBE_STR("IPv4")))
        {
            service->family = KUBE_FAMILY_IPV4;

        } else if (kube_str_eq(text, KUBE_STR("IPv6"))) {
            service->family = KUBE_FAMILY_IPV6;

        } else {
            d->dropped++;
        }
    }

    d->dropped += (rc == KUBE_INVALID);
}


static void
service_spec(kube_decode_t *d, service_decode_t *s)
{
    kube_rc_t   rc;
    kube_str_t  name;

    rc = kube_decode_enter(d, '{');

    if (rc == KUBE_INVALID) {
        kube_lexer_fail(&d->lx, "spec is no object");
    }

    while (rc == KUBE_OK && kube_lexer_member(&d->lx, &name)) {
        if (kube_str_eq(name, KUBE_STR("ports"))) {
            kube_decode_ports(d, &s->ports, KUBE_SERVICE_PORTS_MAX, false);

        } else if (kube_str_eq(name, KUBE_STR("type"))) {
            service_type(d, s->service);

        } else if (kube_str_eq(name, KUBE_STR("clusterIPs"))) {
            service_cluster_ips(d, s);

        } else if (kube_str_eq(name, KUBE_STR("ipFamilies"))) {
            service_families(d, s->service);

        } else if (kube_str_eq(name, KUBE_STR("clusterIP"))) {
            if (kube_decode_text(d, &s->cluster_ip) == KUBE_INVALID) {
                d->dropped++;
            }

        } else {
            kube_lexer_value(&d->lx, NULL);
        }
    }
}


void
kube_decode_service(kube_decode_t *d, kube_object_t *object)
{
    kube_str_t               name;
    service_decode_t         s;
    kube_decode_metadata_t   unused;

    s = (service_decode_t) { .service = &object->u.service };

    if (d->inside) {
        unused = (kube_decode_metadata_t) { .label_key = KUBE_STR_NULL };
        kube_decode_metadata(d, &unused);
    }

    while (kube_lexer_member(&d->lx, &name)) {
        if (kube_str_eq(name, KUBE_STR("spec"))) {
            service_spec(d, &s);

        } else {
            kube_decode_other(d, name, object->resource);
        }
    }

    /* clusterIP is clusterIPs[0], for servers that know the latter */
    if (s.cluster_ips == 0) {
        service_cluster_ip(d, s.cluster_ip, s.service);
    }

    kube_decode_ports_end(d, &s.ports, true, &s.service->ports,
                          &s.service->ports_n);
}
