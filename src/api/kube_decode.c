/*
 * kube_decode - one JSON text of the API to the fields used: an object, a
 * watch event, the metadata of a list.
 *
 * It judges form only: which event may be applied is the reflector's
 * business.  Whoever owns the arena may call it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_decode.h"
#include "kube_decode_field.h"


static kube_rc_t
decode_report(const kube_decode_t *d, kube_rc_t rc, kube_error_t *error)
{
    if (rc != KUBE_OK) {
        error->rc = rc;
        error->what = d->what;
        error->offset = 0;
    }

    return rc;
}


kube_rc_t
kube_decode_object(kube_arena_t *arena, kube_resource_t resource,
    kube_str_t text, kube_object_t *object, uint32_t *dropped,
    kube_error_t *error)
{
    cJSON          *root;
    kube_rc_t       rc;
    kube_decode_t   d;

    memset(object, 0, sizeof(kube_object_t));
    object->resource = resource;
    *dropped = 0;

    rc = kube_json_parse(arena, text, &root, error);
    if (rc != KUBE_OK) {
        return rc;
    }

    d = (kube_decode_t) { arena, 0, NULL };

    rc = kube_decode_tree(&d, root, resource, object);
    *dropped = d.dropped;

    return decode_report(&d, rc, error);
}


static kube_watch_type_t
decode_watch_type(kube_str_t text)
{
    if (kube_str_eq(text, KUBE_STR("ADDED"))) {
        return KUBE_WATCH_ADDED;
    }

    if (kube_str_eq(text, KUBE_STR("MODIFIED"))) {
        return KUBE_WATCH_MODIFIED;
    }

    if (kube_str_eq(text, KUBE_STR("DELETED"))) {
        return KUBE_WATCH_DELETED;
    }

    if (kube_str_eq(text, KUBE_STR("BOOKMARK"))) {
        return KUBE_WATCH_BOOKMARK;
    }

    if (kube_str_eq(text, KUBE_STR("ERROR"))) {
        return KUBE_WATCH_ERROR;
    }

    return KUBE_WATCH_UNKNOWN;
}


static void
decode_bookmark(const cJSON *meta, kube_watch_event_t *event)
{
    kube_str_t  end;

    end = kube_json_string(kube_json_get(meta, "annotations"),
                           "k8s.io/initial-events-end");

    event->initial_events_end = kube_str_eq(end, KUBE_STR("true"));
}


static kube_rc_t
decode_event(kube_decode_t *d, const cJSON *root, kube_resource_t resource,
    kube_watch_event_t *event)
{
    kube_rv_t     rv;
    const cJSON  *type, *object, *meta;

    type = kube_json_get(root, "type");

    if (!cJSON_IsString(type)) {
        return kube_decode_fail(d, "not a watch event");
    }

    event->type = decode_watch_type(kube_str(type->valuestring));

    object = kube_json_get(root, "object");

    if (event->type == KUBE_WATCH_UNKNOWN) {
        return KUBE_OK;
    }

    if (event->type == KUBE_WATCH_ERROR) {
        if (object == NULL) {
            return KUBE_OK;
        }

        if (kube_json_print(d->arena, object, &event->status_text)
            != KUBE_OK)
        {
            return kube_decode_nomem(d);
        }

        return KUBE_OK;
    }

    meta = kube_json_get(object, "metadata");

    if (kube_rv_parse(kube_json_string(meta, "resourceVersion"), &rv)
        == KUBE_OK)
    {
        event->rv = rv;
    }

    if (event->type == KUBE_WATCH_BOOKMARK) {
        decode_bookmark(meta, event);
        return KUBE_OK;
    }

    event->object_rc = kube_decode_tree(d, object, resource, &event->object);

    return (event->object_rc == KUBE_NOMEM) ? KUBE_NOMEM : KUBE_OK;
}


kube_rc_t
kube_decode_watch_event(kube_arena_t *arena, kube_resource_t resource,
    kube_str_t text, kube_watch_event_t *event, uint32_t *dropped,
    kube_error_t *error)
{
    cJSON          *root;
    kube_rc_t       rc;
    kube_decode_t   d;

    memset(event, 0, sizeof(kube_watch_event_t));
    event->type = KUBE_WATCH_UNKNOWN;
    event->object.resource = resource;
    *dropped = 0;

    rc = kube_json_parse(arena, text, &root, error);
    if (rc != KUBE_OK) {
        return rc;
    }

    d = (kube_decode_t) { arena, 0, NULL };

    rc = decode_event(&d, root, resource, event);
    *dropped = d.dropped;

    if (rc == KUBE_OK) {
        (void) decode_report(&d, event->object_rc, error);
        return KUBE_OK;
    }

    return decode_report(&d, rc, error);
}


static kube_rc_t
decode_list_meta(kube_decode_t *d, const cJSON *root, kube_list_meta_t *meta)
{
    int64_t       remaining;
    kube_str_t    token;
    const cJSON  *value;

    if (kube_rv_parse(kube_json_string(root, "resourceVersion"), &meta->rv)
        != KUBE_OK)
    {
        return kube_decode_fail(d, "missing or malformed resourceVersion");
    }

    value = kube_json_get(root, "continue");
    token = kube_json_string(root, "continue");

    if (!kube_decode_is_absent(value) && !cJSON_IsString(value)) {
        return kube_decode_fail(d, "malformed continue token");
    }

    if (token.len != 0
        && !kube_decode_is_printable(token, KUBE_CONTINUE_LEN_MAX))
    {
        return kube_decode_fail(d, "malformed continue token");
    }

    meta->continue_token = token;

    value = kube_json_get(root, "remainingItemCount");

    if (kube_decode_integer(value, 0, INT64_MAX, &remaining)) {
        meta->remaining = remaining;
    }

    return KUBE_OK;
}


kube_rc_t
kube_decode_list_meta(kube_arena_t *arena, kube_str_t text,
    kube_list_meta_t *meta, kube_error_t *error)
{
    cJSON          *root;
    kube_rc_t       rc;
    kube_decode_t   d;

    memset(meta, 0, sizeof(kube_list_meta_t));
    meta->remaining = -1;

    rc = kube_json_parse(arena, text, &root, error);
    if (rc != KUBE_OK) {
        return rc;
    }

    d = (kube_decode_t) { arena, 0, NULL };

    return decode_report(&d, decode_list_meta(&d, root, meta), error);
}


const char *
kube_decode_list_kind(kube_resource_t resource)
{
    switch (resource) {
    case KUBE_RESOURCE_SERVICES:
        return "ServiceList";

    case KUBE_RESOURCE_ENDPOINTSLICES:
        return "EndpointSliceList";

    default:
        return "unknown";
    }
}
