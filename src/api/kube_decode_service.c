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
    size_t                families;      /* of a message, in ipFamilies */
} service_decode_t;


/* The empty text means ClusterIP. */
static void
service_type(kube_decode_t *d, kube_str_t text, kube_service_t *service)
{
    unsigned  i;

    for (i = KUBE_SERVICE_CLUSTER_IP; i <= KUBE_SERVICE_EXTERNAL_NAME; i++) {

        service->type = (kube_service_type_t) i;

        if (kube_str_eq(text, kube_str(kube_service_type_text(service->type))))
        {
            return;
        }
    }

    service->type = KUBE_SERVICE_CLUSTER_IP;

    if (text.len != 0) {
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


static void
service_family(kube_decode_t *d, kube_str_t text, kube_service_t *service)
{
    if (kube_str_eq(text, KUBE_STR("IPv4"))) {
        service->family = KUBE_FAMILY_IPV4;

    } else if (kube_str_eq(text, KUBE_STR("IPv6"))) {
        service->family = KUBE_FAMILY_IPV6;

    } else {
        d->dropped++;
    }
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

        if (kube_decode_text(d, &text) != KUBE_OK) {
            text = KUBE_STR_NULL;
        }

        service_family(d, text, service);
    }

    d->dropped += (rc == KUBE_INVALID);
}


static void
service_spec(kube_decode_t *d, service_decode_t *s)
{
    kube_rc_t   rc, found;
    kube_str_t  name, text;

    rc = kube_decode_enter(d, '{');

    if (rc == KUBE_INVALID) {
        kube_lexer_fail(&d->lx, "spec is no object");
    }

    while (rc == KUBE_OK && kube_lexer_member(&d->lx, &name)) {
        if (kube_str_eq(name, KUBE_STR("ports"))) {
            kube_decode_ports(d, &s->ports, KUBE_SERVICE_PORTS_MAX, false);

        } else if (kube_str_eq(name, KUBE_STR("type"))) {
            found = kube_decode_text(d, &text);

            if (found == KUBE_OK) {
                service_type(d, text, s->service);

            } else if (found == KUBE_INVALID) {
                kube_lexer_fail(&d->lx, "unknown spec.type");
            }

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


static void
service_end(kube_decode_t *d, service_decode_t *s)
{
    /* clusterIP is clusterIPs[0], for servers that know the latter */
    if (s->cluster_ips == 0) {
        service_cluster_ip(d, s->cluster_ip, s->service);
    }

    kube_decode_ports_end(d, &s->ports, true, &s->service->ports,
                          &s->service->ports_n);
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

    service_end(d, &s);
}


/* The numbers of core/v1's Service, ServiceSpec, and ServicePort. */
enum {
    SERVICE_SPEC = 2
};

enum {
    SPEC_PORTS = 1,
    SPEC_CLUSTER_IP = 3,
    SPEC_TYPE = 4,
    SPEC_CLUSTER_IPS = 18,
    SPEC_FAMILIES = 19
};

static const kube_decode_port_numbers_t  service_port_numbers = {
    .name = 1,
    .protocol = 2,
    .port = 3,
    .app_protocol = 6
};


static void
service_message_spec(kube_decode_t *d, kube_protobuf_t *m,
    const kube_protobuf_field_t *f, service_decode_t *s)
{
    kube_str_t             text;
    kube_protobuf_t        inner;
    kube_protobuf_field_t  part;

    if (!kube_protobuf_enter(m, f, &inner)) {
        return;
    }

    while (kube_decode_field(d, &inner, &part)) {

        switch (part.number) {

        case SPEC_PORTS:
            kube_decode_message_port(d, &inner, &part, &service_port_numbers,
                                     &s->ports, KUBE_SERVICE_PORTS_MAX, false);
            break;

        case SPEC_CLUSTER_IP:
            (void) kube_protobuf_bytes(&inner, &part, &s->cluster_ip);
            break;

        case SPEC_TYPE:

            if (kube_protobuf_bytes(&inner, &part, &text)) {
                service_type(d, text, s->service);
            }

            break;

        case SPEC_CLUSTER_IPS:

            if (kube_protobuf_bytes(&inner, &part, &text)) {
                s->cluster_ips++;
                service_cluster_ip(d, text, s->service);
            }

            break;

        case SPEC_FAMILIES:

            if (kube_protobuf_bytes(&inner, &part, &text)
                && s->families++ == 0)
            {
                service_family(d, text, s->service);
            }

            break;

        default:
            break;
        }
    }
}


void
kube_decode_service_message(kube_decode_t *d, kube_protobuf_t *m,
    kube_object_t *object)
{
    service_decode_t       s;
    kube_protobuf_field_t  f;

    s = (service_decode_t) { .service = &object->u.service };

    while (kube_decode_field(d, m, &f)) {
        if (f.number == SERVICE_SPEC) {
            service_message_spec(d, m, &f, &s);
        }
    }

    service_end(d, &s);
}
