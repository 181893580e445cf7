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


void
kube_cli_json_change(FILE *out, const char *type, const kube_record_id_t *id,
    const kube_object_t *object)
{
    kube_text_t         text;
    kube_json_writer_t  json;

    json_line(out, &text, &json, type, id->resource, id->meta.ns);
    kube_json_put_str(&json, "name", id->meta.name);
    kube_json_put_str(&json, "resource_version", id->meta.rv);
    kube_json_put_object(&json, "object", object);
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
