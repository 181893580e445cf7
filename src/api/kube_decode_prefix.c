/*
 * kube_decode_prefix - the key of an object of which only the first bytes
 * were kept.
 *
 * It is no decoder and checks no grammar in what it passes over.  Takes no
 * memory; anyone may call it.
 *
 * Every reader leaves r->p at the first byte it does not like, and at r->end
 * where the prefix ended first: this is how a cut is told from a surprise.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_decode_prefix.h"
#include "kube_scan.h"


typedef struct {
    const char  *p;
    const char  *end;
} prefix_t;


static bool
prefix_is_cut(const prefix_t *r)
{
    return r->p == r->end;
}


static void
prefix_space(prefix_t *r)
{
    while (!prefix_is_cut(r)
           && (*r->p == ' ' || *r->p == '\n' || *r->p == '\r'
               || *r->p == '\t'))
    {
        r->p++;
    }
}


/* The next byte that is no space; false: it is not ch, and not taken. */
static bool
prefix_byte(prefix_t *r, char ch)
{
    prefix_space(r);

    if (prefix_is_cut(r) || *r->p != ch) {
        return false;
    }

    r->p++;

    return true;
}


/* A string without escapes; *s borrows. */
static bool
prefix_string(prefix_t *r, kube_str_t *s)
{
    const char  *start;

    if (!prefix_byte(r, '"')) {
        return false;
    }

    start = r->p;

    while (!prefix_is_cut(r) && *r->p != '"') {
        if (*r->p == '\\' || (unsigned char) *r->p < 0x20) {
            return false;
        }

        r->p++;
    }

    if (prefix_is_cut(r)) {
        return false;
    }

    s->data = start;
    s->len = (size_t) (r->p - start);
    r->p++;

    return true;
}


static bool
prefix_member(prefix_t *r, kube_str_t *name)
{
    return prefix_string(r, name) && prefix_byte(r, ':');
}


/* A number, true, false or null. */
static bool
prefix_skip_word(prefix_t *r)
{
    char         ch, lower;
    const char  *start;

    for (start = r->p; !prefix_is_cut(r); r->p++) {
        ch = *r->p;
        lower = (char) (ch | 0x20);

        if (!(lower >= 'a' && lower <= 'z') && !(ch >= '0' && ch <= '9')
            && ch != '-' && ch != '+' && ch != '.')
        {
            return r->p != start;
        }
    }

    return false;
}


/* A value of any type. */
static bool
prefix_skip(prefix_t *r)
{
    kube_scan_t  scan;

    prefix_space(r);

    if (prefix_is_cut(r)) {
        return false;
    }

    if (*r->p != '{' && *r->p != '[' && *r->p != '"') {
        return prefix_skip_word(r);
    }

    kube_scan_init(&scan, false);

    return kube_scan(&scan, &r->p, r->end) == KUBE_OK;
}


/*
 * Into the object that begins here, up to the value of its member name.  A
 * member "type" on the way goes to *type where that is not NULL.
 */
static bool
prefix_enter(prefix_t *r, kube_str_t name, kube_str_t *type)
{
    kube_str_t  member;

    if (!prefix_byte(r, '{')) {
        return false;
    }

    do {
        if (!prefix_member(r, &member)) {
            return false;
        }

        if (kube_str_eq(member, name)) {
            return true;
        }

        if (type != NULL && kube_str_eq(member, KUBE_STR("type"))) {
            if (type->data != NULL || !prefix_string(r, type)) {
                return false;
            }

        } else if (!prefix_skip(r)) {
            return false;
        }

    } while (prefix_byte(r, ','));

    return false;
}


/* Where a member of metadata belongs; NULL: it does not matter. */
static kube_str_t *
prefix_field(kube_meta_t *meta, kube_str_t member)
{
    if (kube_str_eq(member, KUBE_STR("name"))) {
        return &meta->name;
    }

    if (kube_str_eq(member, KUBE_STR("namespace"))) {
        return &meta->ns;
    }

    if (kube_str_eq(member, KUBE_STR("resourceVersion"))) {
        return &meta->rv;
    }

    return NULL;
}


/* False: a surprise.  A cut is none, whatever has been read by then. */
static bool
prefix_fields(prefix_t *r, kube_meta_t *meta)
{
    kube_str_t  member, *field;

    if (!prefix_byte(r, '{')) {
        return prefix_is_cut(r);
    }

    do {
        if (!prefix_member(r, &member)) {
            return prefix_is_cut(r);
        }

        field = prefix_field(meta, member);

        if (field == NULL) {
            if (!prefix_skip(r)) {
                return prefix_is_cut(r);
            }

        } else if (field->data != NULL) {
            return false;

        } else if (!prefix_string(r, field)) {
            return prefix_is_cut(r);
        }

        /* annotations of any size and shape may follow */
        if (meta->name.len != 0 && meta->ns.len != 0 && meta->rv.len != 0) {
            return true;
        }

    } while (prefix_byte(r, ','));

    return prefix_is_cut(r) || *r->p == '}';
}


static kube_rc_t
prefix_object(prefix_t *r, kube_resource_t resource, kube_object_t *object,
    kube_rv_t *rv)
{
    bool         ok;
    kube_meta_t  meta;

    memset(&meta, 0, sizeof(kube_meta_t));

    if (!prefix_enter(r, KUBE_STR("metadata"), NULL)
        || !prefix_fields(r, &meta)
        || !kube_name_is_label(meta.ns))
    {
        return KUBE_INVALID;
    }

    ok = (resource == KUBE_RESOURCE_SERVICES)
             ? kube_name_is_label(meta.name)
             : kube_name_is_subdomain(meta.name);

    if (!ok
        || (meta.rv.data != NULL && kube_rv_parse(meta.rv, rv) != KUBE_OK))
    {
        return KUBE_INVALID;
    }

    if (resource == KUBE_RESOURCE_SERVICES) {
        object->u.service.meta = meta;

    } else {
        object->u.slice.meta = meta;
    }

    return KUBE_OK;
}


kube_rc_t
kube_decode_prefix_object(kube_resource_t resource, kube_str_t prefix,
    kube_object_t *object)
{
    prefix_t   r;
    kube_rv_t  rv;

    memset(object, 0, sizeof(kube_object_t));
    object->resource = resource;

    if (prefix.len == 0) {
        return KUBE_INVALID;
    }

    r.p = prefix.data;
    r.end = prefix.data + prefix.len;

    return prefix_object(&r, resource, object, &rv);
}


static kube_watch_type_t
prefix_type(kube_str_t text)
{
    unsigned                  i;
    static const char *const  texts[] = {
        [KUBE_WATCH_ADDED] = "ADDED",
        [KUBE_WATCH_MODIFIED] = "MODIFIED",
        [KUBE_WATCH_DELETED] = "DELETED"
    };

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (kube_str_eq(text, kube_str(texts[i]))) {
            return (kube_watch_type_t) i;
        }
    }

    return KUBE_WATCH_UNKNOWN;
}


kube_rc_t
kube_decode_prefix_event(kube_resource_t resource, kube_str_t prefix,
    kube_watch_event_t *event)
{
    prefix_t    r;
    kube_str_t  type;

    memset(event, 0, sizeof(kube_watch_event_t));
    event->type = KUBE_WATCH_UNKNOWN;
    event->object_rc = KUBE_TOO_LARGE;
    event->object.resource = resource;

    if (prefix.len == 0) {
        return KUBE_INVALID;
    }

    r.p = prefix.data;
    r.end = prefix.data + prefix.len;
    type = KUBE_STR_NULL;

    if (!prefix_enter(&r, KUBE_STR("object"), &type)) {
        return KUBE_INVALID;
    }

    event->type = prefix_type(type);

    if (event->type == KUBE_WATCH_UNKNOWN) {
        return KUBE_INVALID;
    }

    return prefix_object(&r, resource, &event->object, &event->rv);
}
