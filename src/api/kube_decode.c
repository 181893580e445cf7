/*
 * kube_decode - one object of the API to the fields used: an object, a watch
 * event, the metadata of a list; in JSON, or in Protocol Buffers.
 *
 * It knows the envelope and leaves the rest to the projection that the
 * resource's row names.  Whoever owns the arena may call it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_decode_impl.h"


typedef void (*decode_projection_pt)(kube_decode_t *d, kube_object_t *object);
typedef void (*decode_message_pt)(kube_decode_t *d, kube_protobuf_t *m,
    kube_object_t *object);

static const decode_projection_pt  decode_projections[] = {
#define XX(name, text, path, version, kind, shape, named, decode)             \
    kube_decode_##decode,
    KUBE_RESOURCE_MAP(XX)
#undef XX
};

static const decode_message_pt  decode_messages[] = {
#define XX(name, text, path, version, kind, shape, named, decode)             \
    kube_decode_##decode##_message,
    KUBE_RESOURCE_MAP(XX)
#undef XX
};


static kube_rc_t
decode_say(kube_rc_t rc, const char *what, kube_error_t *error)
{
    error->rc = rc;
    error->what = what;
    error->offset = 0;

    return rc;
}


void
kube_decode_begin(kube_decode_t *d, kube_arena_t *arena, kube_str_t text)
{
    kube_lexer_init(&d->lx, text);

    d->arena = arena;
    d->dropped = 0;
    d->nomem = false;
    d->stream = false;
    d->inside = false;
    d->surprise = KUBE_SURPRISE_NONE;
}


/* Returns the result of the decoding; error is filled unless KUBE_OK. */
static kube_rc_t
decode_end(kube_decode_t *d, kube_error_t *error)
{
    if (kube_lexer_end(&d->lx)) {
        return KUBE_OK;
    }

    (void) decode_say(d->nomem ? KUBE_NOMEM : KUBE_INVALID, d->lx.what, error);
    error->offset = (size_t) (d->lx.p - d->lx.start);

    return error->rc;
}


const char *
kube_decode_meta(kube_resource_t resource, const kube_envelope_t *envelope,
    kube_meta_t *meta)
{
    kube_rv_t           rv;
    const kube_meta_t  *from;

    from = &envelope->meta;

    if (kube_name_is_label(from->ns)) {
        meta->ns = from->ns;
    }

    if (kube_resource_info(resource)->is_name(from->name)) {
        meta->name = from->name;
    }

    if (kube_decode_is_printable(from->uid, KUBE_UID_LEN_MAX)) {
        meta->uid = from->uid;
    }

    if (kube_rv_parse(from->rv, &rv) == KUBE_OK) {
        meta->rv = from->rv;
    }

    return (envelope->what != NULL) ? envelope->what
           : (meta->ns.len == 0) ? "missing or malformed metadata.namespace"
           : (meta->name.len == 0) ? "missing or malformed metadata.name"
           : (meta->uid.len == 0) ? "missing or malformed metadata.uid"
           : (meta->rv.len == 0) ? "missing or malformed "
                                   "metadata.resourceVersion"
           : NULL;
}


void
kube_decode_reset(kube_object_t *object, kube_resource_t resource,
    const kube_meta_t *meta)
{
    memset(object, 0, sizeof(kube_object_t));
    object->resource = resource;

    /* meta begins every shape */
    object->u.service.meta = *meta;
}


void
kube_decode_project(kube_decode_t *d, kube_object_t *object)
{
    decode_projections[object->resource](d, object);
}


/* It need not say what it is. */
static bool
decode_is_other_kind(kube_resource_t resource,
    const kube_envelope_t *envelope)
{
    return envelope->kind.len != 0
           && !kube_resource_is_kind(resource, envelope->kind);
}


/* Decodes the object of a good envelope; its metadata is filled already. */
static kube_rc_t
decode_body(kube_arena_t *arena, const kube_envelope_t *envelope,
    kube_object_t *object, uint32_t *dropped, kube_error_t *error)
{
    kube_rc_t        rc;
    kube_meta_t      meta;
    kube_decode_t    d;
    kube_protobuf_t  m;

    if (decode_is_other_kind(object->resource, envelope)) {
        return decode_say(KUBE_INVALID, "wrong kind", error);
    }

    if (envelope->version.len != 0
        && !kube_resource_is_version(object->resource, envelope->version))
    {
        return decode_say(KUBE_INVALID, "wrong apiVersion", error);
    }

    if (envelope->too_large) {
        return decode_say(KUBE_TOO_LARGE, "it is larger than max_object",
                          error);
    }

    meta = *kube_object_meta(object);
    kube_decode_begin(&d, arena, envelope->object);

    if (envelope->protobuf) {
        kube_protobuf_init(&m, envelope->object);
        decode_messages[object->resource](&d, &m, object);
        d.lx.p = m.p;
        d.lx.end = m.p;

    } else if (kube_lexer_enter(&d.lx, '{')) {
        kube_decode_project(&d, object);

    } else {
        kube_lexer_fail(&d.lx, "not an object");
    }

    rc = decode_end(&d, error);
    *dropped = d.dropped;

    if (rc != KUBE_OK) {
        kube_decode_reset(object, object->resource, &meta);
    }

    return rc;
}


kube_rc_t
kube_decode_object(kube_arena_t *arena, kube_resource_t resource,
    const kube_envelope_t *envelope, kube_object_t *object,
    uint32_t *dropped, kube_error_t *error)
{
    const char   *what;
    kube_meta_t   meta;

    memset(&meta, 0, sizeof(kube_meta_t));
    *dropped = 0;

    what = kube_decode_meta(resource, envelope, &meta);
    kube_decode_reset(object, resource, &meta);

    if (what != NULL) {
        return decode_say(KUBE_INVALID, what, error);
    }

    return decode_body(arena, envelope, object, dropped, error);
}


kube_watch_type_t
kube_decode_watch_type(kube_str_t text)
{
    unsigned                  i;
    static const char *const  texts[] = {
        [KUBE_WATCH_ADDED] = "ADDED",
        [KUBE_WATCH_MODIFIED] = "MODIFIED",
        [KUBE_WATCH_DELETED] = "DELETED",
        [KUBE_WATCH_BOOKMARK] = "BOOKMARK",
        [KUBE_WATCH_ERROR] = "ERROR"
    };

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (kube_str_eq(text, kube_str(texts[i]))) {
            return (kube_watch_type_t) i;
        }
    }

    return KUBE_WATCH_UNKNOWN;
}


static kube_rc_t
decode_bookmark(kube_arena_t *arena, const kube_envelope_t *envelope,
    kube_watch_event_t *event, kube_error_t *error)
{
    kube_str_t              name;
    kube_decode_t           d;
    kube_protobuf_t         message;
    kube_protobuf_field_t   f;
    kube_decode_metadata_t  m;

    kube_decode_begin(&d, arena, envelope->object);

    m = (kube_decode_metadata_t) {
        .annotation_key = KUBE_STR("k8s.io/initial-events-end")
    };

    if (envelope->protobuf) {
        kube_protobuf_init(&message, envelope->object);

        while (kube_decode_field(&d, &message, &f)) {
            if (f.number == KUBE_PROTOBUF_METADATA) {
                kube_decode_message_metadata(&d, &message, &f, &m);
            }
        }

        d.lx.p = d.lx.end;

    } else if (kube_lexer_enter(&d.lx, '{')) {
        while (kube_lexer_member(&d.lx, &name)) {
            if (kube_str_eq(name, KUBE_STR("metadata"))) {
                kube_decode_metadata(&d, &m);

            } else {
                kube_lexer_value(&d.lx, NULL);
            }
        }
    }

    event->initial_events_end = kube_str_eq(m.annotation, KUBE_STR("true"));

    return decode_end(&d, error);
}


kube_rc_t
kube_decode_watch_event(kube_arena_t *arena, kube_resource_t resource,
    const kube_envelope_t *envelope, kube_watch_event_t *event,
    uint32_t *dropped, kube_error_t *error)
{
    const char   *what;
    kube_meta_t   meta;

    memset(event, 0, sizeof(kube_watch_event_t));
    memset(&meta, 0, sizeof(kube_meta_t));

    event->type = kube_decode_watch_type(envelope->type);
    *dropped = 0;

    what = kube_decode_meta(resource, envelope, &meta);
    kube_decode_reset(&event->object, resource, &meta);

    if (envelope->type.len == 0) {
        return decode_say(KUBE_INVALID, "not a watch event", error);
    }

    if (event->type == KUBE_WATCH_UNKNOWN) {
        return KUBE_OK;
    }

    if (event->type == KUBE_WATCH_ERROR) {
        event->status_text = envelope->object;
        return KUBE_OK;
    }

    if (kube_rv_parse(envelope->meta.rv, &event->rv) != KUBE_OK) {
        event->rv.len = 0;
    }

    if (event->type == KUBE_WATCH_BOOKMARK) {
        return (envelope->what == NULL)
                   ? decode_bookmark(arena, envelope, event, error)
                   : decode_say(KUBE_INVALID, envelope->what, error);
    }

    /* an object that cannot be named must not be passed over silently */
    if (meta.ns.len == 0 || meta.name.len == 0 || meta.rv.len == 0) {
        return decode_say(KUBE_INVALID, what, error);
    }

    /* of a deletion the key is enough, but it is the key of another object */
    if (event->type == KUBE_WATCH_DELETED
        && decode_is_other_kind(resource, envelope))
    {
        return decode_say(KUBE_INVALID, "wrong kind", error);
    }

    event->object_rc = (what == NULL)
                           ? decode_body(arena, envelope, &event->object,
                                         dropped, error)
                           : decode_say(KUBE_INVALID, what, error);

    return (event->object_rc == KUBE_NOMEM) ? KUBE_NOMEM : KUBE_OK;
}


/* A list without both can be neither watched from nor continued. */
static kube_rc_t
decode_list_meta_end(kube_decode_t *d, kube_str_t rv, kube_list_meta_t *meta,
    kube_error_t *error)
{
    if (kube_rv_parse(rv, &meta->rv) != KUBE_OK) {
        kube_lexer_fail(&d->lx, "missing or malformed resourceVersion");
    }

    if (meta->continue_token.len != 0
        && !kube_decode_is_printable(meta->continue_token,
                                     KUBE_CONTINUE_LEN_MAX))
    {
        kube_lexer_fail(&d->lx, "malformed continue token");
    }

    return decode_end(d, error);
}


kube_rc_t
kube_decode_list_meta(kube_arena_t *arena, kube_str_t text,
    kube_list_meta_t *meta, kube_error_t *error)
{
    uint64_t       remaining;
    kube_rc_t      rc;
    kube_str_t     name, rv;
    kube_decode_t  d;

    memset(meta, 0, sizeof(kube_list_meta_t));
    meta->remaining = -1;
    rv = KUBE_STR_NULL;

    kube_decode_begin(&d, arena, text);

    if (!kube_lexer_enter(&d.lx, '{')) {
        kube_lexer_fail(&d.lx, "not an object");
    }

    while (kube_lexer_member(&d.lx, &name)) {
        rc = KUBE_OK;

        if (kube_str_eq(name, KUBE_STR("resourceVersion"))) {
            rc = kube_decode_text(&d, &rv);

        } else if (kube_str_eq(name, KUBE_STR("continue"))) {
            rc = kube_decode_text(&d, &meta->continue_token);

        } else if (kube_str_eq(name, KUBE_STR("remainingItemCount"))) {
            if (kube_decode_integer(&d, 0, INT64_MAX, &remaining) == KUBE_OK) {
                meta->remaining = (int64_t) remaining;
            }

        } else {
            kube_lexer_value(&d.lx, NULL);
        }

        if (rc == KUBE_INVALID) {
            kube_lexer_fail(&d.lx, "malformed resourceVersion or continue "
                                   "token");
        }
    }

    return decode_list_meta_end(&d, rv, meta, error);
}


/* The numbers of metav1.ListMeta. */
enum {
    LIST_RV = 2,
    LIST_CONTINUE = 3,
    LIST_REMAINING = 4
};


kube_rc_t
kube_decode_list_meta_message(kube_str_t message, kube_list_meta_t *meta,
    kube_error_t *error)
{
    uint64_t               remaining;
    kube_str_t             rv;
    kube_decode_t          d;
    kube_protobuf_t        m;
    kube_protobuf_field_t  f;

    memset(meta, 0, sizeof(kube_list_meta_t));
    meta->remaining = -1;
    rv = KUBE_STR_NULL;

    kube_decode_begin(&d, NULL, message);
    kube_protobuf_init(&m, message);

    while (kube_decode_field(&d, &m, &f)) {

        if (f.number == LIST_RV) {
            (void) kube_protobuf_bytes(&m, &f, &rv);

        } else if (f.number == LIST_CONTINUE) {
            (void) kube_protobuf_bytes(&m, &f, &meta->continue_token);

        } else if (f.number == LIST_REMAINING
                   && kube_protobuf_number(&m, &f, &remaining)
                   && remaining <= INT64_MAX)
        {
            meta->remaining = (int64_t) remaining;
        }
    }

    d.lx.p = d.lx.end;

    return decode_list_meta_end(&d, rv, meta, error);
}
