/*
 * kube_cli_json - what the informer tells, a line of JSON each, on a stdio
 * stream.
 *
 * For the command line tool only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_cli_json.h"
#include "kube_object_json.h"


static bool
json_write(void *ctx, const char *data, size_t len)
{
    return fwrite(data, 1, len, ctx) == len;
}


/* Opens a line; text and json are the caller's to fill and to close. */
static void
json_line(FILE *out, kube_text_t *text, kube_json_writer_t *json,
    const char *type, kube_resource_t resource, kube_str_t ns)
{
    kube_text_init(text, json_write, out, SIZE_MAX);
    kube_json_writer_init(json, text);

    kube_json_open(json, NULL, '{');
    kube_json_put_str(json, "type", kube_str(type));
    kube_json_put_str(json, "resource",
                      kube_str(kube_resource_text(resource)));
    kube_json_put_str(json, "namespace", ns);
}


static void
json_slice(kube_json_writer_t *json, const kube_slice_t *slice)
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
json_partial(kube_json_writer_t *json, const kube_partial_t *partial)
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
kube_cli_json_change(FILE *out, const char *type, const kube_record_id_t *id,
    const kube_object_t *object)
{
    kube_text_t            text;
    kube_json_writer_t     json;
    const kube_service_t  *service;

    json_line(out, &text, &json, type, id->resource, id->meta.ns);
    kube_json_put_str(&json, "name", id->meta.name);
    kube_json_put_str(&json, "resource_version", id->meta.rv);
    kube_json_open(&json, "object", '{');

    switch (kube_resource_info(object->resource)->shape) {

    case KUBE_SHAPE_SERVICE:
        service = &object->u.service;

        kube_json_put_service(&json, service);
        kube_json_put_ports(&json, service->ports, service->ports_n, true);
        break;

    case KUBE_SHAPE_SLICE:
        json_slice(&json, &object->u.slice);
        break;

    default:
        json_partial(&json, &object->u.partial);
    }

    kube_json_close(&json, '}');
    kube_json_close(&json, '}');
    kube_text_put(&text, KUBE_STR("\n"));
}


void
kube_cli_json_synced(FILE *out, const kube_scope_info_t *info)
{
    kube_text_t         text;
    kube_json_writer_t  json;
    char                digest[33];

    kube_digest_hex(info->digest, digest);

    json_line(out, &text, &json, "synced", info->resource, info->ns);
    kube_json_put_str(&json, "resource_version", info->rv);
    kube_json_put_num(&json, "count", info->count);
    kube_json_put_str(&json, "digest", kube_str(digest));
    kube_json_close(&json, '}');
    kube_text_put(&text, KUBE_STR("\n"));
}
