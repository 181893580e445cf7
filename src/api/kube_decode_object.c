/*
 * kube_decode_object - the tree of a Service or an EndpointSlice to its view.
 *
 * It judges form only: which address may be used is route's business.  What
 * is wrong with the identity of an object refuses the object; what is wrong
 * with one endpoint or port drops that one; what is wrong with a text that
 * only informs leaves it empty.  For kube_decode.c only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_date.h"
#include "kube_decode_field.h"
#include "kube_rv.h"


static bool
decode_is_or_absent(const cJSON *root, const char *name, kube_str_t expected)
{
    const cJSON  *value;

    value = kube_json_get(root, name);

    return kube_decode_is_absent(value)
           || kube_str_eq(kube_json_string(root, name), expected);
}


static kube_rc_t
decode_type(kube_decode_t *d, const cJSON *root, kube_resource_t resource)
{
    bool        services;
    kube_str_t  kind, version;

    services = (resource == KUBE_RESOURCE_SERVICES);

    kind = services ? KUBE_STR("Service") : KUBE_STR("EndpointSlice");
    version = services ? KUBE_STR("v1") : KUBE_STR("discovery.k8s.io/v1");

    if (!decode_is_or_absent(root, "kind", kind)) {
        return kube_decode_fail(d, "wrong kind");
    }

    if (!decode_is_or_absent(root, "apiVersion", version)) {
        return kube_decode_fail(d, "wrong apiVersion");
    }

    return KUBE_OK;
}


/* Fills what is readable before it says what is not. */
static kube_rc_t
decode_meta(kube_decode_t *d, const cJSON *root, kube_resource_t resource,
    kube_meta_t *meta)
{
    bool          ok;
    kube_rv_t     rv;
    kube_str_t    ns, name, uid, version;
    const cJSON  *object;

    object = kube_json_get(root, "metadata");

    ns = kube_json_string(object, "namespace");
    name = kube_json_string(object, "name");
    uid = kube_json_string(object, "uid");
    version = kube_json_string(object, "resourceVersion");

    if (kube_name_is_label(ns)) {
        meta->ns = ns;
    }

    ok = (resource == KUBE_RESOURCE_SERVICES) ? kube_name_is_label(name)
                                              : kube_name_is_subdomain(name);
    if (ok) {
        meta->name = name;
    }

    if (kube_decode_is_printable(uid, KUBE_UID_LEN_MAX)) {
        meta->uid = uid;
    }

    if (kube_rv_parse(version, &rv) == KUBE_OK) {
        meta->rv = version;
    }

    if (meta->ns.len == 0) {
        return kube_decode_fail(d, "missing or malformed metadata.namespace");
    }

    if (meta->name.len == 0) {
        return kube_decode_fail(d, "missing or malformed metadata.name");
    }

    if (meta->uid.len == 0) {
        return kube_decode_fail(d, "missing or malformed metadata.uid");
    }

    if (meta->rv.len == 0) {
        return kube_decode_fail(d, "missing or malformed "
                              "metadata.resourceVersion");
    }

    return KUBE_OK;
}


static bool
decode_service_type(const cJSON *spec, kube_service_type_t *type)
{
    unsigned      i;
    kube_str_t    text;
    const cJSON  *value;

    value = kube_json_get(spec, "type");
    text = kube_json_string(spec, "type");

    *type = KUBE_SERVICE_CLUSTER_IP;

    if (kube_decode_is_absent(value)
        || (cJSON_IsString(value) && text.len == 0))
    {
        return true;
    }

    for (i = KUBE_SERVICE_CLUSTER_IP; i <= KUBE_SERVICE_EXTERNAL_NAME; i++) {
        *type = (kube_service_type_t) i;

        if (kube_str_eq(text, kube_str(kube_service_type_text(*type)))) {
            return true;
        }
    }

    return false;
}


static void
decode_cluster_ip(kube_decode_t *d, kube_str_t text, kube_service_t *service)
{
    if (text.len == 0) {
        return;
    }

    if (kube_str_eq(text, KUBE_STR("None"))) {
        service->headless = true;
        return;
    }

    if (kube_addr_parse(text, &service->cluster_ips[service->cluster_ips_n])
        != KUBE_OK)
    {
        d->dropped++;
        return;
    }

    service->cluster_ips_n++;
}


static kube_rc_t
decode_cluster_ips(kube_decode_t *d, const cJSON *spec,
    kube_service_t *service)
{
    size_t        n;
    const cJSON  *array, *child;

    array = kube_json_get(spec, "clusterIPs");

    if (kube_decode_is_absent(array)
        || (cJSON_IsArray(array) && array->child == NULL))
    {
        decode_cluster_ip(d, kube_json_string(spec, "clusterIP"), service);
        return KUBE_OK;
    }

    if (!cJSON_IsArray(array)) {
        return kube_decode_fail(d, "clusterIPs is no array");
    }

    n = 0;

    for (child = array->child; child != NULL; child = child->next) {
        if (++n > KUBE_CLUSTER_IPS_MAX) {
            return kube_decode_fail(d, "clusterIPs has too many elements");
        }

        if (!cJSON_IsString(child)) {
            return kube_decode_fail(d, "clusterIPs has an element that is no "
                                  "string");
        }

        decode_cluster_ip(d, kube_str(child->valuestring), service);
    }

    return KUBE_OK;
}


static kube_rc_t
decode_service(kube_decode_t *d, const cJSON *root, kube_service_t *service)
{
    kube_rc_t     rc;
    const cJSON  *spec;

    spec = kube_json_get(root, "spec");

    if (!kube_decode_is_absent(spec) && !cJSON_IsObject(spec)) {
        return kube_decode_fail(d, "spec is no object");
    }

    if (!decode_service_type(spec, &service->type)) {
        return kube_decode_fail(d, "unknown spec.type");
    }

    rc = decode_cluster_ips(d, spec, service);
    if (rc != KUBE_OK) {
        return rc;
    }

    return kube_decode_ports(d, spec, true, &service->ports,
                             &service->ports_n);
}


/* addresses[0]; the others mean nothing.  KUBE_NOT_FOUND: drop it. */
static kube_rc_t
decode_address(kube_decode_t *d, const cJSON *object, kube_family_t family,
    kube_addr_t *addr)
{
    size_t        n;
    const cJSON  *array, *first, *child;

    array = kube_json_get(object, "addresses");
    first = cJSON_IsArray(array) ? array->child : NULL;

    if (first == NULL || !cJSON_IsString(first)) {
        return KUBE_NOT_FOUND;
    }

    n = 0;

    for (child = first; child != NULL; child = child->next) {
        if (++n > KUBE_SLICE_ADDRESSES_MAX) {
            return kube_decode_fail(d, "addresses has too many elements");
        }
    }

    if (kube_addr_parse(kube_str(first->valuestring), addr) != KUBE_OK
        || addr->family != family)
    {
        return KUBE_NOT_FOUND;
    }

    return KUBE_OK;
}


static bool
decode_conditions(const cJSON *object, kube_endpoint_t *endpoint)
{
    const cJSON  *conditions;

    conditions = kube_json_get(object, "conditions");

    if (!kube_decode_is_absent(conditions) && !cJSON_IsObject(conditions)) {
        return false;
    }

    return kube_decode_condition(conditions, "ready", true, &endpoint->ready)
           && kube_decode_condition(conditions, "serving", true,
                               &endpoint->serving)
           && kube_decode_condition(conditions, "terminating", false,
                               &endpoint->terminating);
}


/* KUBE_NOT_FOUND: the endpoint is to be dropped. */
static kube_rc_t
decode_endpoint(kube_decode_t *d, const cJSON *object, kube_family_t family,
    kube_endpoint_t *endpoint)
{
    kube_rc_t     rc;
    kube_str_t    kind;
    const cJSON  *target;

    memset(endpoint, 0, sizeof(kube_endpoint_t));

    rc = decode_address(d, object, family, &endpoint->address);
    if (rc != KUBE_OK) {
        return rc;
    }

    if (!decode_conditions(object, endpoint)) {
        return KUBE_NOT_FOUND;
    }

    endpoint->node = kube_decode_text(object, "nodeName");
    endpoint->zone = kube_decode_text(object, "zone");

    target = kube_json_get(object, "targetRef");
    kind = kube_json_string(target, "kind");

    if (kube_str_eq(kind, KUBE_STR("Pod"))) {
        endpoint->pod = kube_decode_text(target, "name");
    }

    return KUBE_OK;
}


static kube_rc_t
decode_endpoints(kube_decode_t *d, const cJSON *root, kube_slice_t *slice)
{
    void         *p;
    size_t        n;
    kube_rc_t     rc;
    const cJSON  *array, *child;

    rc = kube_decode_array(d, root, "endpoints", KUBE_SLICE_ENDPOINTS_MAX,
                      sizeof(kube_endpoint_t),
                      "endpoints is no array or has too many elements",
                      &array, &n, &p);

    /* no client can connect to the names of a slice of type FQDN */
    if (rc != KUBE_OK || n == 0 || slice->family == KUBE_FAMILY_NONE) {
        return rc;
    }

    slice->endpoints = p;

    for (child = array->child; child != NULL; child = child->next) {
        rc = decode_endpoint(d, child, slice->family,
                             slice->endpoints + slice->endpoints_n);

        if (rc == KUBE_OK) {
            slice->endpoints_n++;

        } else if (rc == KUBE_NOT_FOUND) {
            d->dropped++;

        } else {
            return rc;
        }
    }

    return KUBE_OK;
}


static kube_rc_t
decode_family(kube_decode_t *d, const cJSON *root, kube_family_t *family)
{
    kube_str_t  type;

    type = kube_json_string(root, "addressType");

    if (kube_str_eq(type, KUBE_STR("IPv4"))) {
        *family = KUBE_FAMILY_IPV4;

    } else if (kube_str_eq(type, KUBE_STR("IPv6"))) {
        *family = KUBE_FAMILY_IPV6;

    } else if (kube_str_eq(type, KUBE_STR("FQDN"))) {
        *family = KUBE_FAMILY_NONE;

    } else {
        return kube_decode_fail(d, "missing or unknown addressType");
    }

    return KUBE_OK;
}


static kube_rc_t
decode_slice(kube_decode_t *d, const cJSON *root, kube_slice_t *slice)
{
    int64_t       ms;
    kube_rc_t     rc;
    kube_str_t    service, trigger;
    const cJSON  *meta;

    meta = kube_json_get(root, "metadata");

    service = kube_json_string(kube_json_get(meta, "labels"),
                               "kubernetes.io/service-name");

    if (kube_name_is_label(service)) {
        slice->service = service;
    }

    trigger = kube_json_string(kube_json_get(meta, "annotations"),
                               "endpoints.kubernetes.io/"
                               "last-change-trigger-time");

    if (kube_date_parse_rfc3339(trigger, &ms) == KUBE_OK) {
        slice->trigger_ms = ms;
    }

    rc = decode_family(d, root, &slice->family);
    if (rc != KUBE_OK) {
        return rc;
    }

    rc = kube_decode_ports(d, root, false, &slice->ports, &slice->ports_n);
    if (rc != KUBE_OK) {
        return rc;
    }

    return decode_endpoints(d, root, slice);
}


/* Of a refused object only the metadata stays. */
static void
decode_strip(kube_object_t *object)
{
    kube_meta_t      meta;
    kube_resource_t  resource;

    meta = *kube_object_meta(object);
    resource = object->resource;

    memset(object, 0, sizeof(kube_object_t));
    object->resource = resource;

    if (resource == KUBE_RESOURCE_SERVICES) {
        object->u.service.meta = meta;

    } else {
        object->u.slice.meta = meta;
    }
}


kube_rc_t
kube_decode_tree(kube_decode_t *d, const cJSON *root, kube_resource_t resource,
    kube_object_t *object)
{
    bool          services;
    kube_rc_t     rc, type_rc;
    const char   *type_what;
    kube_meta_t  *meta;

    memset(object, 0, sizeof(kube_object_t));
    object->resource = resource;

    if (!cJSON_IsObject(root)) {
        return kube_decode_fail(d, "not an object");
    }

    services = (resource == KUBE_RESOURCE_SERVICES);
    meta = services ? &object->u.service.meta : &object->u.slice.meta;

    type_rc = decode_type(d, root, resource);
    type_what = d->what;

    rc = decode_meta(d, root, resource, meta);

    if (type_rc != KUBE_OK) {
        return kube_decode_fail(d, type_what);
    }

    if (rc != KUBE_OK) {
        return rc;
    }

    rc = services ? decode_service(d, root, &object->u.service)
                  : decode_slice(d, root, &object->u.slice);

    if (rc != KUBE_OK) {
        decode_strip(object);
    }

    return rc;
}
