/*
 * kube_object_json - the parts of a Service and a slice that look alike
 * wherever they are printed as JSON.
 *
 * Which objects are shown, and in what frame, is up to its callers:
 * kube_services, kube_objects and the command line tool.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_object_json.h"


void
kube_json_put_address(kube_json_writer_t *json, const char *key,
    const kube_addr_t *addr)
{
    size_t  len;
    char    text[KUBE_ADDR_TEXT_MAX];

    len = kube_addr_text(addr, text);
    kube_json_put_str(json, key, (kube_str_t) { text, len });
}


void
kube_json_put_ports(kube_json_writer_t *json, const kube_port_t *ports,
    size_t n, bool app_protocol)
{
    size_t  i;

    kube_json_open(json, "ports", '[');

    for (i = 0; i < n; i++) {

        kube_json_open(json, NULL, '{');
        kube_json_put_str(json, "name", ports[i].name);

        if (ports[i].port == 0) {
            kube_json_put_null(json, "port");

        } else {
            kube_json_put_num(json, "port", ports[i].port);
        }

        kube_json_put_str(json, "protocol",
                          kube_str(kube_protocol_text(ports[i].protocol)));

        if (app_protocol) {
            kube_json_put_optional(json, "app_protocol",
                                   ports[i].app_protocol);
        }

        kube_json_close(json, '}');
    }

    kube_json_close(json, ']');
}


void
kube_json_put_service(kube_json_writer_t *json,
    const kube_service_t *service)
{
    size_t  i;

    kube_json_put_str(json, "type",
                      kube_str(kube_service_type_text(service->type)));
    kube_json_open(json, "cluster_ips", '[');

    for (i = 0; i < service->cluster_ips_n; i++) {
        kube_json_put_address(json, NULL, &service->cluster_ips[i]);
    }

    kube_json_close(json, ']');
    kube_json_put_bool(json, "headless", service->headless);
}


void
kube_json_put_conditions(kube_json_writer_t *json,
    const kube_endpoint_t *endpoint)
{
    kube_json_put_bool(json, "ready", endpoint->ready);
    kube_json_put_bool(json, "serving", endpoint->serving);
    kube_json_put_bool(json, "terminating", endpoint->terminating);
}


static void
object_slice(kube_json_writer_t *json, const kube_slice_t *slice)
{
    size_t                  i;
    const kube_endpoint_t  *e;

    kube_json_put_str(json, "service", slice->service);
    kube_json_put_str(json, "address_type",
                      slice->family == KUBE_FAMILY_IPV4 ? KUBE_STR("IPv4")
                      : slice->family == KUBE_FAMILY_IPV6 ? KUBE_STR("IPv6")
                      : KUBE_STR("FQDN"));
    kube_json_put_ports(json, slice->ports, slice->ports_n, true);
    kube_json_open(json, "endpoints", '[');

    for (i = 0; i < slice->endpoints_n; i++) {
        e = &slice->endpoints[i];

        kube_json_open(json, NULL, '{');
        kube_json_put_address(json, "address", &e->address);
        kube_json_put_conditions(json, e);
        kube_json_put_str(json, "pod", e->pod);
        kube_json_put_str(json, "node", e->node);
        kube_json_put_str(json, "zone", e->zone);
        kube_json_close(json, '}');
    }

    kube_json_close(json, ']');

    if (slice->subsets_n == 0) {
        return;
    }

    kube_json_open(json, "subsets", '[');

    for (i = 0; i < slice->subsets_n; i++) {
        kube_json_open(json, NULL, '{');
        kube_json_put_num(json, "ports", slice->subsets[i].ports_n);
        kube_json_put_num(json, "endpoints", slice->subsets[i].endpoints_n);
        kube_json_close(json, '}');
    }

    kube_json_close(json, ']');
}


static void
object_partial(kube_json_writer_t *json, const kube_partial_t *partial)
{
    size_t  i;

    kube_json_put_str(json, "uid", partial->meta.uid);
    kube_json_open(json, "labels", '[');

    for (i = 0; i < partial->labels_n; i++) {
        kube_json_open(json, NULL, '{');
        kube_json_put_str(json, "name", partial->labels[i].name);
        kube_json_put_str(json, "value", partial->labels[i].value);
        kube_json_close(json, '}');
    }

    kube_json_close(json, ']');
    kube_json_put_bool(json, "deleting", partial->deletion_ms != 0);
}


void
kube_json_put_object(kube_json_writer_t *json, const char *key,
    const kube_object_t *object)
{
    const kube_service_t  *service;

    kube_json_open(json, key, '{');

    switch (kube_resource_info(object->resource)->shape) {

    case KUBE_SHAPE_SERVICE:
        service = &object->u.service;

        kube_json_put_service(json, service);
        kube_json_put_ports(json, service->ports, service->ports_n, true);
        break;

    case KUBE_SHAPE_SLICE:
        object_slice(json, &object->u.slice);
        break;

    default:
        object_partial(json, &object->u.partial);
    }

    kube_json_close(json, '}');
}
