/*
 * kube_protobuf - the fields of a message, and the envelope of an object.
 *
 * Every length is compared with what is left before it is used; what is wrong
 * with a message is said, and what it costs is the caller's business.  No
 * state, no memory.  Only src/api uses it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_protobuf.h"


static const char  protobuf_cut[] = "a field goes beyond its message";


bool
kube_protobuf_fail(kube_protobuf_t *m, const char *what)
{
    m->what = (what == protobuf_cut && m->cut) ? NULL : what;
    m->end = m->p;

    return false;
}


/* Reads a varint of any length, or none. */
static bool
protobuf_long_varint(kube_protobuf_t *m, uint64_t *value)
{
    uint8_t   byte;
    uint64_t  v;
    unsigned  i;

    v = 0;

    for (i = 0; i < KUBE_VARINT_MAX; i++) {

        if (m->p == m->end) {
            return kube_protobuf_fail(m, protobuf_cut);
        }

        byte = (uint8_t) *m->p++;

        /* what does not fit into 64 bits is lost, for Go too */
        v |= (uint64_t) (byte & 0x7f) << (7 * i);

        if (byte < 0x80) {
            *value = v;
            return true;
        }
    }

    return kube_protobuf_fail(m, "a number of more than ten bytes");
}


static inline bool
protobuf_varint(kube_protobuf_t *m, uint64_t *value)
{
    size_t          left;
    const uint8_t  *p;

    p = (const uint8_t *) m->p;
    left = (size_t) (m->end - m->p);

    if (left >= 1 && p[0] < 0x80) {
        *value = p[0];
        m->p += 1;

        return true;
    }

    if (left >= 2 && p[1] < 0x80) {
        *value = (uint64_t) (p[0] & 0x7f) | (uint64_t) p[1] << 7;
        m->p += 2;

        return true;
    }

    return protobuf_long_varint(m, value);
}


static bool
protobuf_skip(kube_protobuf_t *m, uint64_t len)
{
    if (len > (uint64_t) (m->end - m->p)) {
        return kube_protobuf_fail(m, protobuf_cut);
    }

    m->p += len;

    return true;
}


/* Takes number and wire type of the next field. */
static inline bool
protobuf_tag(kube_protobuf_t *m, kube_protobuf_field_t *f)
{
    uint64_t  tag;

    tag = 0;

    if (!protobuf_varint(m, &tag)) {
        return false;
    }

    f->number = (int32_t) (uint32_t) (tag >> 3);
    f->wire = (kube_wire_t) (tag & 7);

    return true;
}


/* Takes what a field holds; of a group nothing. */
static inline bool
protobuf_value(kube_protobuf_t *m, kube_protobuf_field_t *f)
{
    uint64_t  len;

    switch (f->wire) {

    case KUBE_WIRE_BYTES:

        if (!protobuf_varint(m, &len)) {
            return false;
        }

        f->bytes.data = m->p;
        f->cut = (m->cut && len > (uint64_t) (m->end - m->p));

        if (f->cut) {
            len = (uint64_t) (m->end - m->p);
        }

        f->bytes.len = (size_t) len;

        return protobuf_skip(m, len);

    case KUBE_WIRE_VARINT:
        return protobuf_varint(m, &f->value);

    case KUBE_WIRE_FIXED64:
        return protobuf_skip(m, 8);

    case KUBE_WIRE_FIXED32:
        return protobuf_skip(m, 4);

    case KUBE_WIRE_GROUP:
        return true;

    default:
        return kube_protobuf_fail(m, "an unknown wire type");
    }
}


/*
 * Passes over a group to its end, however deep it is.  Go minds only how many
 * have ended, not which ones.
 */
static bool
protobuf_group(kube_protobuf_t *m)
{
    size_t                 depth;
    kube_protobuf_field_t  f;

    for (depth = 1; depth != 0; /* void */ ) {

        if (!protobuf_tag(m, &f)) {
            return false;
        }

        if (f.wire == KUBE_WIRE_GROUP_END) {
            depth--;
            continue;
        }

        if (!protobuf_value(m, &f)) {
            return false;
        }

        depth += (f.wire == KUBE_WIRE_GROUP);
    }

    return true;
}


bool
kube_protobuf_next_any(kube_protobuf_t *m, kube_protobuf_field_t *f)
{
    if (m->p == m->end) {
        return false;
    }

    if (!protobuf_tag(m, f)) {
        return false;
    }

    if (f->number <= 0) {
        return kube_protobuf_fail(m, "a field without a number");
    }

    return protobuf_value(m, f)
           && (f->wire != KUBE_WIRE_GROUP || protobuf_group(m));
}


/*
 * Says of *m what was wrong with the message in it.  One that is there whole
 * has no excuse, though *m goes on beyond what is held.
 */
static void
protobuf_leave(kube_protobuf_t *m, const kube_protobuf_t *inner)
{
    if (inner->what != NULL) {
        m->what = inner->what;
        m->end = m->p;
    }
}


bool
kube_protobuf_number(kube_protobuf_t *m, const kube_protobuf_field_t *f,
    uint64_t *value)
{
    if (f->wire != KUBE_WIRE_VARINT) {
        return kube_protobuf_fail(m, "a field of the wrong wire type");
    }

    *value = f->value;

    return true;
}


/* The numbers of metav1.ObjectMeta. */
enum {
    META_NAME = 1,
    META_NAMESPACE = 3,
    META_UID = 5,
    META_RV = 6
};


static void
protobuf_meta(kube_protobuf_t *m, kube_meta_t *meta)
{
    kube_str_t             *s;
    kube_protobuf_field_t   f;

    while (kube_protobuf_next(m, &f)) {

        switch (f.number) {

        case META_NAME:
            s = &meta->name;
            break;

        case META_NAMESPACE:
            s = &meta->ns;
            break;

        case META_UID:
            s = &meta->uid;
            break;

        case META_RV:
            s = &meta->rv;
            break;

        default:
            continue;
        }

        (void) kube_protobuf_bytes(m, &f, s);
    }
}


static void
protobuf_object(kube_protobuf_t *m, kube_meta_t *meta)
{
    kube_protobuf_t        inner;
    kube_protobuf_field_t  f;

    while (kube_protobuf_next(m, &f)) {

        if (f.number == KUBE_PROTOBUF_METADATA
            && kube_protobuf_enter(m, &f, &inner))
        {
            protobuf_meta(&inner, meta);
            protobuf_leave(m, &inner);
        }
    }
}


static void
protobuf_type_meta(kube_protobuf_t *m, kube_protobuf_unknown_t *unknown)
{
    kube_protobuf_field_t  f;

    while (kube_protobuf_next(m, &f)) {

        if (f.number == 1) {
            (void) kube_protobuf_bytes(m, &f, &unknown->version);

        } else if (f.number == 2) {
            (void) kube_protobuf_bytes(m, &f, &unknown->kind);
        }
    }
}


/* *raw is the object's message, NULL data if it has none. */
static void
protobuf_unknown(kube_protobuf_t *m, kube_protobuf_unknown_t *unknown,
    kube_protobuf_t *raw)
{
    kube_protobuf_t        inner;
    kube_protobuf_field_t  f;

    if (m->end - m->p < KUBE_PROTOBUF_MAGIC_LEN
        || memcmp(m->p, KUBE_PROTOBUF_MAGIC, KUBE_PROTOBUF_MAGIC_LEN) != 0)
    {
        (void) kube_protobuf_fail(m, "not an object of Kubernetes");
        return;
    }

    m->p += KUBE_PROTOBUF_MAGIC_LEN;

    while (kube_protobuf_next(m, &f)) {

        if (f.number == 1 && kube_protobuf_enter(m, &f, &inner)) {
            protobuf_type_meta(&inner, unknown);
            protobuf_leave(m, &inner);

        } else if (f.number == 2 && kube_protobuf_enter(m, &f, raw)) {
            unknown->raw = f.bytes;
        }
    }
}


const char *
kube_protobuf_unknown(kube_str_t text, kube_protobuf_unknown_t *unknown)
{
    kube_protobuf_t  m, raw;

    memset(unknown, 0, sizeof(kube_protobuf_unknown_t));

    kube_protobuf_init(&m, text);
    protobuf_unknown(&m, unknown, &raw);

    return m.what;
}


const char *
kube_protobuf_type_meta(kube_str_t message, kube_protobuf_unknown_t *unknown)
{
    kube_protobuf_t  m;

    kube_protobuf_init(&m, message);
    protobuf_type_meta(&m, unknown);

    return m.what;
}


/* Reads metav1.WatchEvent; *object is what its RawExtension holds. */
static void
protobuf_event(kube_protobuf_t *m, kube_str_t *type, kube_protobuf_t *object)
{
    kube_protobuf_t        inner;
    kube_protobuf_field_t  f, raw;

    while (kube_protobuf_next(m, &f)) {

        if (f.number == 1) {
            (void) kube_protobuf_bytes(m, &f, type);

        } else if (f.number == 2 && kube_protobuf_enter(m, &f, &inner)) {

            while (kube_protobuf_next(&inner, &raw)) {
                if (raw.number == 1) {
                    (void) kube_protobuf_enter(&inner, &raw, object);
                }
            }

            protobuf_leave(m, &inner);
        }
    }
}


void
kube_protobuf_envelope(kube_str_t bytes, bool event, bool cut,
    kube_envelope_t *envelope)
{
    kube_str_t                text;
    kube_protobuf_t           m, object, raw;
    kube_protobuf_unknown_t   unknown;

    memset(envelope, 0, sizeof(kube_envelope_t));
    memset(&unknown, 0, sizeof(kube_protobuf_unknown_t));

    envelope->protobuf = true;
    envelope->too_large = cut;

    kube_protobuf_init(&m, bytes);
    m.cut = cut;
    raw = m;
    text = bytes;

    if (event) {
        kube_protobuf_init(&object, KUBE_STR_NULL);
        kube_protobuf_init(&raw, KUBE_STR_NULL);

        protobuf_event(&m, &envelope->type, &object);

        text = (kube_str_t) { object.p, (size_t) (object.end - object.p) };

        if (!kube_str_eq(envelope->type, KUBE_STR("ERROR"))) {

            if (m.what == NULL && text.data != NULL) {
                protobuf_unknown(&object, &unknown, &raw);
                protobuf_leave(&m, &object);
            }

            text = unknown.raw;
        }
    }

    if (m.what == NULL) {
        protobuf_object(&raw, &envelope->meta);
        protobuf_leave(&m, &raw);
    }

    envelope->kind = unknown.kind;
    envelope->version = unknown.version;
    envelope->what = m.what;
    envelope->object = cut ? KUBE_STR_NULL : text;
}
