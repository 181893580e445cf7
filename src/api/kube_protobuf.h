/*
 * kube_protobuf - the one reader of Protocol Buffers: the fields of a message,
 * and what of an object is known before it is decoded.
 *
 * It walks a message that lies in memory whole, field by field, and takes no
 * memory.  It knows no resource: kube_decode gives the numbers a meaning.  What
 * has no use is passed over by its wire type, as the code does that
 * k8s.io/api's generated.pb.go has for it (gogo/protobuf), groups included.
 * Only src/api uses it.
 *
 * Sources: protobuf.dev/programming-guides/encoding; the "Protocol Buffers"
 * chapter of kubernetes.io/docs/reference/using-api/api-concepts for the four
 * bytes and runtime.Unknown around an object; generated.proto of
 * k8s.io/apimachinery and k8s.io/api for the numbers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_PROTOBUF_H
#define KUBE_PROTOBUF_H


#include "kube_envelope.h"


typedef enum {
    KUBE_WIRE_VARINT = 0,
    KUBE_WIRE_FIXED64,
    KUBE_WIRE_BYTES,
    KUBE_WIRE_GROUP,
    KUBE_WIRE_GROUP_END,
    KUBE_WIRE_FIXED32
} kube_wire_t;

/* Of a varint: seven bits a byte, of 64. */
#define KUBE_VARINT_MAX  10

/*
 * A walk.  The first thing that is wrong ends it: what is set, and later calls
 * find the end.
 */
typedef struct {
    const char  *p;
    const char  *end;
    const char  *what;     /* a static text; NULL: nothing is wrong so far */
    bool         cut;      /* more of the message follows, which is not held:
                              that it ends inside of a field is not wrong */
} kube_protobuf_t;

/* What does not belong to the wire type is undefined. */
typedef struct {
    int32_t      number;   /* 1 and above, with the top cut off as Go does */
    kube_wire_t  wire;     /* never GROUP_END */
    uint64_t     value;    /* of a varint */
    kube_str_t   bytes;    /* of KUBE_WIRE_BYTES; points into the message */
    bool         cut;      /* of bytes only the beginning is held */
} kube_protobuf_field_t;


static inline void
kube_protobuf_init(kube_protobuf_t *m, kube_str_t message)
{
    m->p = message.data;
    m->end = (message.len != 0) ? message.data + message.len : m->p;
    m->what = NULL;
    m->cut = false;
}


/* Does what kube_protobuf_next() does, for any field. */
bool kube_protobuf_next_any(kube_protobuf_t *m, kube_protobuf_field_t *f);


/*
 * Takes the next field; false at the end of the message.  Most fields have a
 * number below 16, and are numbers below 128 or have less than 16 KiB.
 */
static inline bool
kube_protobuf_next(kube_protobuf_t *m, kube_protobuf_field_t *f)
{
    size_t          left, len;
    const uint8_t  *p;

    p = (const uint8_t *) m->p;
    left = (size_t) (m->end - m->p);

    if (left == 0) {
        return false;
    }

    if (left >= 2 && p[0] >= 8 && p[0] < 0x80 && p[1] < 0x80) {

        if ((p[0] & 7) == KUBE_WIRE_BYTES && (size_t) p[1] + 2 <= left) {
            f->number = p[0] >> 3;
            f->wire = KUBE_WIRE_BYTES;
            f->cut = false;
            f->bytes.data = m->p + 2;
            f->bytes.len = p[1];
            m->p += 2 + (size_t) p[1];

            return true;
        }

        if ((p[0] & 7) == KUBE_WIRE_VARINT) {
            f->number = p[0] >> 3;
            f->wire = KUBE_WIRE_VARINT;
            f->cut = false;
            f->value = p[1];
            m->p += 2;

            return true;
        }

    } else if (left >= 3 && p[0] >= 8 && p[0] < 0x80 && p[2] < 0x80
               && (p[0] & 7) == KUBE_WIRE_BYTES)
    {
        len = (size_t) (p[1] & 0x7f) | (size_t) p[2] << 7;

        if (len + 3 <= left) {
            f->number = p[0] >> 3;
            f->wire = KUBE_WIRE_BYTES;
            f->cut = false;
            f->bytes.data = m->p + 3;
            f->bytes.len = len;
            m->p += 3 + len;

            return true;
        }
    }

    return kube_protobuf_next_any(m, f);
}


/* Ends the walk: what, a static text, is wrong.  Returns false. */
bool kube_protobuf_fail(kube_protobuf_t *m, const char *what);


/* Ends the walk where the field is not length-delimited. */
static inline bool
kube_protobuf_delimited(kube_protobuf_t *m, const kube_protobuf_field_t *f)
{
    if (f->wire == KUBE_WIRE_BYTES) {
        return true;
    }

    (void) kube_protobuf_fail(m, "a field of the wrong wire type");

    return false;
}


/*
 * *s is what the length-delimited field holds.  False, with *s as it was: the
 * field is of another wire type, which ends the walk, or is not held whole.
 */
static inline bool
kube_protobuf_bytes(kube_protobuf_t *m, const kube_protobuf_field_t *f,
    kube_str_t *s)
{
    if (!kube_protobuf_delimited(m, f) || f->cut) {
        return false;
    }

    *s = f->bytes;

    return true;
}


/* Begins the walk of the message that the field holds; false: as above. */
static inline bool
kube_protobuf_enter(kube_protobuf_t *m, const kube_protobuf_field_t *f,
    kube_protobuf_t *inner)
{
    if (!kube_protobuf_delimited(m, f)) {
        return false;
    }

    kube_protobuf_init(inner, f->bytes);
    inner->cut = f->cut;

    return true;
}


/* The same for the value of a varint. */
bool kube_protobuf_number(kube_protobuf_t *m, const kube_protobuf_field_t *f,
    uint64_t *value);


/* Under this number each object has its metadata, and so has a list. */
#define KUBE_PROTOBUF_METADATA   1

/* What stands before an object that is no member of another one. */
#define KUBE_PROTOBUF_MAGIC      "k8s\0"
#define KUBE_PROTOBUF_MAGIC_LEN  4

/* apimachinery's runtime.Unknown. */
typedef struct {
    kube_str_t  version;    /* "apiVersion" */
    kube_str_t  kind;
    kube_str_t  raw;        /* the object's own message; NULL data: none */
} kube_protobuf_unknown_t;

/*
 * text is an object with the four bytes before it.  NULL, or what is wrong;
 * what was read up to there is filled.
 */
const char *kube_protobuf_unknown(kube_str_t text,
    kube_protobuf_unknown_t *unknown);

/* Fills version and kind from an Unknown's typeMeta; as above. */
const char *kube_protobuf_type_meta(kube_str_t message,
    kube_protobuf_unknown_t *unknown);

/*
 * Reads the envelope of an item of a list, or of a watch's event.  cut: only
 * its beginning is held, so that it is too large: what is not there is not
 * wrong then.  Everything in *envelope points into bytes.  The object of an
 * ERROR is given with its four bytes, as kube_status_judge() takes it.
 */
void kube_protobuf_envelope(kube_str_t bytes, bool event, bool cut,
    kube_envelope_t *envelope);


#endif /* KUBE_PROTOBUF_H */
