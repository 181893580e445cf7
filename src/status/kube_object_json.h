/*
 * kube_object_json - the parts of a Service and a slice that look alike
 * wherever they are printed as JSON.
 *
 * Called by kube_services, kube_objects and the command line tool.  It prints
 * what it is given; which objects are shown, and in what frame, is theirs.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_OBJECT_JSON_H
#define KUBE_OBJECT_JSON_H


#include "kube_json_writer.h"
#include "kube_object.h"


void kube_json_put_address(kube_json_writer_t *json, const char *key,
    const kube_addr_t *addr);

/*
 * "ports": [{name, port, protocol}]; a port without a number is null.
 * app_protocol: the member of that name as well, null where there is none.
 */
void kube_json_put_ports(kube_json_writer_t *json, const kube_port_t *ports,
    size_t n, bool app_protocol);

/* type, cluster_ips and headless: members of the object that is open. */
void kube_json_put_service(kube_json_writer_t *json,
    const kube_service_t *service);

/* ready, serving and terminating: members of the object that is open. */
void kube_json_put_conditions(kube_json_writer_t *json,
    const kube_endpoint_t *endpoint);

/* {…}: all that is kept of an object but its metadata. */
void kube_json_put_object(kube_json_writer_t *json, const char *key,
    const kube_object_t *object);


#endif /* KUBE_OBJECT_JSON_H */
