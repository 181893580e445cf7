/*
 * kube_object_json - the parts of a Service and a slice that look alike
 * wherever they are printed as JSON.
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
