/*
 * kube_decode_scan - reads an item where it stands in the stream.
 *
 * The head is compared with what API servers write; behind it the projection
 * walks on to the object's end, which is the item's.  A walk that succeeds has
 * closed every bracket with its kind, so it ends where kube_frame would cut.
 * For src/cache.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_decode_impl.h"
#include "kube_decode_scan.h"


/* Says which of the two it is, once something was not as expected. */
static kube_rc_t
scan_stop(const kube_decode_scan_t *scan)
{
    kube_rc_t           rc;
    const char         *p;
    kube_lexer_skip_t   skip;

    p = scan->in.data;
    kube_lexer_skip_init(&skip, scan->event);
    rc = kube_lexer_skip(&skip, &p, p + scan->in.len);

    return (rc == KUBE_AGAIN) ? KUBE_AGAIN : KUBE_INVALID;
}


/* Reads what is between the quotes of a text; the first was taken. */
static bool
scan_text(kube_expect_t *x, kube_str_t *s)
{
    return kube_expect_text(x, KUBE_NAME_LEN_MAX, s) && KUBE_EXPECT(x, "\"");
}


/* Reads an event up to its object. */
static bool
scan_event(kube_expect_t *x, kube_envelope_t *envelope,
    kube_watch_type_t *type)
{
    if (!KUBE_EXPECT(x, "{\"type\":\"")
        || !scan_text(x, &envelope->type)
        || !KUBE_EXPECT(x, ",\"object\":"))
    {
        return false;
    }

    *type = kube_decode_watch_type(envelope->type);

    return *type == KUBE_WATCH_ADDED || *type == KUBE_WATCH_MODIFIED
           || *type == KUBE_WATCH_DELETED;
}


/* Reads the object's kind and apiVersion, which a list's items have not. */
static bool
scan_kind(kube_expect_t *x, kube_resource_t resource,
    kube_envelope_t *envelope)
{
    kube_str_t  version;

    if (!KUBE_EXPECT(x, "{")) {
        return false;
    }

    if (!KUBE_EXPECT(x, "\"kind\":\"")) {
        return true;
    }

    return scan_text(x, &envelope->kind)
           && KUBE_EXPECT(x, ",\"apiVersion\":\"")
           && scan_text(x, &version)
           && KUBE_EXPECT(x, ",")
           && kube_resource_is_kind(resource, envelope->kind)
           && kube_resource_is_version(resource, version);
}


static bool
scan_metadata(kube_expect_t *x, kube_meta_t *meta)
{
    kube_str_t  generate;

    return KUBE_EXPECT(x, "\"metadata\":{\"name\":\"")
           && scan_text(x, &meta->name)
           && (!KUBE_EXPECT(x, ",\"generateName\":\"")
               || scan_text(x, &generate))
           && KUBE_EXPECT(x, ",\"namespace\":\"")
           && scan_text(x, &meta->ns)
           && KUBE_EXPECT(x, ",\"uid\":\"")
           && scan_text(x, &meta->uid)
           && KUBE_EXPECT(x, ",\"resourceVersion\":\"")
           && scan_text(x, &meta->rv);
}


kube_rc_t
kube_decode_scan_head(kube_decode_scan_t *scan, kube_resource_t resource,
    bool event, kube_str_t in, kube_envelope_t *envelope)
{
    kube_meta_t    meta;
    kube_expect_t  x;

    memset(scan, 0, sizeof(kube_decode_scan_t));
    memset(envelope, 0, sizeof(kube_envelope_t));
    memset(&meta, 0, sizeof(kube_meta_t));

    scan->in = in;
    scan->resource = resource;
    scan->event = event;
    scan->surprise = KUBE_SURPRISE_HEAD;

    x = (kube_expect_t) { in.data, in.data + in.len, false };

    if (event && !scan_event(&x, envelope, &scan->type)) {
        return scan_stop(scan);
    }

    scan->object = x.p;

    if (!scan_kind(&x, resource, envelope)
        || !scan_metadata(&x, &envelope->meta)
        || kube_decode_meta(resource, envelope, &meta) != NULL
        || kube_rv_parse(meta.rv, &scan->rv) != KUBE_OK)
    {
        return scan_stop(scan);
    }

    scan->inside = x.p;
    scan->surprise = KUBE_SURPRISE_NONE;

    return KUBE_OK;
}


kube_rc_t
kube_decode_scan_body(kube_decode_scan_t *scan, kube_arena_t *arena,
    kube_envelope_t *envelope, kube_object_t *object, uint32_t *dropped,
    size_t *len)
{
    const char     *end;
    kube_decode_t   d;

    end = scan->in.data + scan->in.len;

    kube_decode_begin(&d, arena,
                      (kube_str_t) { scan->inside,
                                     (size_t) (end - scan->inside) });
    d.stream = true;
    d.inside = true;

    kube_decode_reset(object, scan->resource, &envelope->meta);
    kube_decode_project(&d, object);

    if (d.lx.what == NULL && scan->event) {
        envelope->object.len = (size_t) (d.lx.p - scan->object);
        d.lx.p = kube_lexer_space(d.lx.p, end);

        if (d.lx.p < end && *d.lx.p == '}') {
            d.lx.p++;

        } else {
            kube_decode_surprise(&d, KUBE_SURPRISE_OBJECT);
        }
    }

    /* a newline may be one in a string, which breaks a stream of lines */

    if (d.lx.what == NULL && scan->event
        && memchr(scan->in.data, '\n', (size_t) (d.lx.p - scan->in.data))
           != NULL)
    {
        kube_decode_surprise(&d, KUBE_SURPRISE_OBJECT);
    }

    scan->surprise = d.surprise;

    if (d.lx.what != NULL) {
        if (scan->surprise == KUBE_SURPRISE_NONE) {
            scan->surprise = KUBE_SURPRISE_OBJECT;
        }

        return scan_stop(scan);
    }

    *len = (size_t) (d.lx.p - scan->in.data);
    *dropped = d.dropped;

    envelope->object.data = scan->object;

    if (!scan->event) {
        envelope->object.len = *len;
    }

    return KUBE_OK;
}
