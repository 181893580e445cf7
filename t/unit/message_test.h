/*
 * message_test - writes Protocol Buffers, and turns the JSON of an object into
 * the message that an API server keeps of the same object.
 *
 * For t/unit only; it holds no assertion about what is read.  t/cluster/decode
 * holds what it writes against Go's own types.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_MESSAGE_TEST_H
#define KUBE_MESSAGE_TEST_H


#include "alloc_test.h"
#include "kube_lexer.h"
#include "kube_protobuf.h"
#include "kube_resource.h"


#define MESSAGE_MAX  16384

typedef struct {
    char    data[MESSAGE_MAX];
    size_t  len;
} message_t;

typedef enum {
    MESSAGE_TEXT = 0,
    MESSAGE_INT,
    MESSAGE_BOOL,
    MESSAGE_MESSAGE,
    MESSAGE_MAP
} message_kind_t;

typedef struct message_field_s  message_field_t;

struct message_field_s {
    const char             *name;       /* NULL ends a table */
    unsigned                number;
    message_kind_t          kind;
    bool                    repeated;
    const message_field_t  *fields;
};


static inline kube_str_t
message_str(const message_t *m)
{
    return (kube_str_t) { m->data, m->len };
}


static inline void
message_put(message_t *m, const void *data, size_t len)
{
    assert_true(m->len + len <= MESSAGE_MAX);

    if (len != 0) {
        memcpy(m->data + m->len, data, len);
        m->len += len;
    }
}


static inline void
message_varint(message_t *m, uint64_t value)
{
    char  byte;

    while (value >= 0x80) {
        byte = (char) (value | 0x80);
        message_put(m, &byte, 1);
        value >>= 7;
    }

    byte = (char) value;
    message_put(m, &byte, 1);
}


static inline void
message_tag(message_t *m, unsigned number, kube_wire_t wire)
{
    message_varint(m, (uint64_t) number << 3 | (unsigned) wire);
}


static inline void
message_bytes(message_t *m, unsigned number, kube_str_t s)
{
    message_tag(m, number, KUBE_WIRE_BYTES);
    message_varint(m, s.len);
    message_put(m, s.data, s.len);
}


static inline void
message_text(message_t *m, unsigned number, const char *text)
{
    message_bytes(m, number, kube_str(text));
}


static inline void
message_number(message_t *m, unsigned number, uint64_t value)
{
    message_tag(m, number, KUBE_WIRE_VARINT);
    message_varint(m, value);
}


/* "k8s", NUL, and runtime.Unknown as the server's serializer writes it. */
static inline void
message_unknown(message_t *m, const char *version, const char *kind,
    kube_str_t raw)
{
    message_t  type;

    type.len = 0;
    message_text(&type, 1, version);
    message_text(&type, 2, kind);

    message_put(m, KUBE_PROTOBUF_MAGIC, KUBE_PROTOBUF_MAGIC_LEN);
    message_bytes(m, 1, message_str(&type));
    message_bytes(m, 2, raw);
    message_text(m, 3, "");
    message_text(m, 4, "");
}


/* A bare WatchEvent of what message_unknown() has written. */
static inline void
message_event(message_t *m, const char *type, kube_str_t object)
{
    message_t  extension;

    extension.len = 0;
    message_bytes(&extension, 1, object);

    message_text(m, 1, type);
    message_bytes(m, 2, message_str(&extension));
}


/* The length that stands before an event in a watch. */
static inline void
message_length(message_t *m, size_t len)
{
    char      bytes[4];
    unsigned  i;

    for (i = 0; i < 4; i++) {
        bytes[i] = (char) (len >> (24 - 8 * i));
    }

    message_put(m, bytes, 4);
}


/* An ObjectMeta of what every object has. */
static inline void
message_meta(message_t *m, unsigned number, const char *ns, const char *name,
    const char *uid, const char *rv)
{
    message_t  meta;

    meta.len = 0;
    message_text(&meta, 1, name);
    message_text(&meta, 3, ns);
    message_text(&meta, 5, uid);
    message_text(&meta, 6, rv);
    message_bytes(m, number, message_str(&meta));
}


static const message_field_t  message_of_meta[] = {
    { "name", 1, MESSAGE_TEXT, false, NULL },
    { "generateName", 2, MESSAGE_TEXT, false, NULL },
    { "namespace", 3, MESSAGE_TEXT, false, NULL },
    { "uid", 5, MESSAGE_TEXT, false, NULL },
    { "resourceVersion", 6, MESSAGE_TEXT, false, NULL },
    { "labels", 11, MESSAGE_MAP, true, NULL },
    { "annotations", 12, MESSAGE_MAP, true, NULL },
    { NULL, 0, MESSAGE_TEXT, false, NULL }
};

static const message_field_t  message_of_reference[] = {
    { "kind", 1, MESSAGE_TEXT, false, NULL },
    { "namespace", 2, MESSAGE_TEXT, false, NULL },
    { "name", 3, MESSAGE_TEXT, false, NULL },
    { "uid", 4, MESSAGE_TEXT, false, NULL },
    { NULL, 0, MESSAGE_TEXT, false, NULL }
};

static const message_field_t  message_of_conditions[] = {
    { "ready", 1, MESSAGE_BOOL, false, NULL },
    { "serving", 2, MESSAGE_BOOL, false, NULL },
    { "terminating", 3, MESSAGE_BOOL, false, NULL },
    { NULL, 0, MESSAGE_TEXT, false, NULL }
};

static const message_field_t  message_of_endpoint[] = {
    { "addresses", 1, MESSAGE_TEXT, true, NULL },
    { "conditions", 2, MESSAGE_MESSAGE, false, message_of_conditions },
    { "hostname", 3, MESSAGE_TEXT, false, NULL },
    { "targetRef", 4, MESSAGE_MESSAGE, false, message_of_reference },
    { "nodeName", 6, MESSAGE_TEXT, false, NULL },
    { "zone", 7, MESSAGE_TEXT, false, NULL },
    { NULL, 0, MESSAGE_TEXT, false, NULL }
};

static const message_field_t  message_of_slice_port[] = {
    { "name", 1, MESSAGE_TEXT, false, NULL },
    { "protocol", 2, MESSAGE_TEXT, false, NULL },
    { "port", 3, MESSAGE_INT, false, NULL },
    { "appProtocol", 4, MESSAGE_TEXT, false, NULL },
    { NULL, 0, MESSAGE_TEXT, false, NULL }
};

static const message_field_t  message_of_slice[] = {
    { "metadata", 1, MESSAGE_MESSAGE, false, message_of_meta },
    { "endpoints", 2, MESSAGE_MESSAGE, true, message_of_endpoint },
    { "ports", 3, MESSAGE_MESSAGE, true, message_of_slice_port },
    { "addressType", 4, MESSAGE_TEXT, false, NULL },
    { NULL, 0, MESSAGE_TEXT, false, NULL }
};

static const message_field_t  message_of_service_port[] = {
    { "name", 1, MESSAGE_TEXT, false, NULL },
    { "protocol", 2, MESSAGE_TEXT, false, NULL },
    { "port", 3, MESSAGE_INT, false, NULL },
    { "nodePort", 5, MESSAGE_INT, false, NULL },
    { "appProtocol", 6, MESSAGE_TEXT, false, NULL },
    { NULL, 0, MESSAGE_TEXT, false, NULL }
};

static const message_field_t  message_of_spec[] = {
    { "ports", 1, MESSAGE_MESSAGE, true, message_of_service_port },
    { "selector", 2, MESSAGE_MAP, true, NULL },
    { "clusterIP", 3, MESSAGE_TEXT, false, NULL },
    { "type", 4, MESSAGE_TEXT, false, NULL },
    { "sessionAffinity", 7, MESSAGE_TEXT, false, NULL },
    { "clusterIPs", 18, MESSAGE_TEXT, true, NULL },
    { "ipFamilies", 19, MESSAGE_TEXT, true, NULL },
    { NULL, 0, MESSAGE_TEXT, false, NULL }
};

static const message_field_t  message_of_service[] = {
    { "metadata", 1, MESSAGE_MESSAGE, false, message_of_meta },
    { "spec", 2, MESSAGE_MESSAGE, false, message_of_spec },
    { NULL, 0, MESSAGE_TEXT, false, NULL }
};

static const message_field_t  message_of_address[] = {
    { "ip", 1, MESSAGE_TEXT, false, NULL },
    { "targetRef", 2, MESSAGE_MESSAGE, false, message_of_reference },
    { "hostname", 3, MESSAGE_TEXT, false, NULL },
    { "nodeName", 4, MESSAGE_TEXT, false, NULL },
    { NULL, 0, MESSAGE_TEXT, false, NULL }
};

static const message_field_t  message_of_endpoints_port[] = {
    { "name", 1, MESSAGE_TEXT, false, NULL },
    { "port", 2, MESSAGE_INT, false, NULL },
    { "protocol", 3, MESSAGE_TEXT, false, NULL },
    { "appProtocol", 4, MESSAGE_TEXT, false, NULL },
    { NULL, 0, MESSAGE_TEXT, false, NULL }
};

static const message_field_t  message_of_subset[] = {
    { "addresses", 1, MESSAGE_MESSAGE, true, message_of_address },
    { "notReadyAddresses", 2, MESSAGE_MESSAGE, true, message_of_address },
    { "ports", 3, MESSAGE_MESSAGE, true, message_of_endpoints_port },
    { NULL, 0, MESSAGE_TEXT, false, NULL }
};

static const message_field_t  message_of_endpoints[] = {
    { "metadata", 1, MESSAGE_MESSAGE, false, message_of_meta },
    { "subsets", 2, MESSAGE_MESSAGE, true, message_of_subset },
    { NULL, 0, MESSAGE_TEXT, false, NULL }
};

static const message_field_t *const  message_of[KUBE_RESOURCES] = {
    [KUBE_RESOURCE_SERVICES] = message_of_service,
    [KUBE_RESOURCE_ENDPOINTSLICES] = message_of_slice,
    [KUBE_RESOURCE_ENDPOINTS] = message_of_endpoints
};


/* Takes what begins with n; false: it is not null. */
static inline bool
message_null(kube_lexer_t *lx)
{
    kube_str_t  text;

    kube_lexer_value(lx, &text);

    return kube_str_eq(text, KUBE_STR("null"));
}


/* What Go would read of the string that is next; false: it is none. */
static inline bool
message_string(kube_lexer_t *lx, char *out, size_t size, kube_str_t *s)
{
    bool        plain;
    kube_str_t  raw;

    if (!kube_lexer_string(lx, &raw, &plain)
        || kube_lexer_unescape(raw, out, size, &s->len) != KUBE_OK)
    {
        return false;
    }

    s->data = out;

    return true;
}


static inline bool message_convert(kube_str_t text,
    const message_field_t *fields, message_t *out);


/* A value other than null.  False: Go would not read it, or differently. */
static inline bool
message_value(kube_lexer_t *lx, const message_field_t *f, message_t *out)
{
    char        text[MESSAGE_MAX];
    bool        minus;
    uint64_t    number;
    kube_str_t  s, key;
    message_t   inner;

    switch (f->kind) {

    case MESSAGE_TEXT:

        if (!message_string(lx, text, sizeof(text), &s)) {
            return false;
        }

        message_bytes(out, f->number, s);
        return true;

    case MESSAGE_INT:
        kube_lexer_value(lx, &s);
        minus = (s.len > 1 && s.data[0] == '-');
        s.data += minus;
        s.len -= minus;

        if (kube_str_to_u64(s, INT32_MAX, &number) != KUBE_OK) {
            return false;
        }

        message_number(out, f->number, minus ? 0 - number : number);
        return true;

    case MESSAGE_BOOL:
        kube_lexer_value(lx, &s);
        message_number(out, f->number, kube_str_eq(s, KUBE_STR("true")));

        return kube_str_eq(s, KUBE_STR("true"))
               || kube_str_eq(s, KUBE_STR("false"));

    case MESSAGE_MESSAGE:
        kube_lexer_value(lx, &s);
        inner.len = 0;

        if (!message_convert(s, f->fields, &inner)) {
            return false;
        }

        message_bytes(out, f->number, message_str(&inner));
        return true;

    default:

        if (!kube_lexer_enter(lx, '{')) {
            return false;
        }

        while (kube_lexer_member(lx, &key)) {
            inner.len = 0;

            if (key.len == 0) {
                return false;
            }

            message_bytes(&inner, 1, key);

            if (!message_string(lx, text, sizeof(text), &s)) {
                return false;
            }

            message_bytes(&inner, 2, s);
            message_bytes(out, f->number, message_str(&inner));
        }

        return true;
    }
}


static inline bool
message_member(kube_lexer_t *lx, const message_field_t *f, message_t *out)
{
    if (kube_lexer_peek(lx) == 'n') {
        return message_null(lx);
    }

    if (!f->repeated || f->kind == MESSAGE_MAP) {
        return message_value(lx, f, out);
    }

    if (!kube_lexer_enter(lx, '[')) {
        return false;
    }

    while (kube_lexer_element(lx)) {

        if (kube_lexer_peek(lx) == 'n') {

            if (!message_null(lx)) {
                return false;
            }

            message_text(out, f->number, "");

        } else if (!message_value(lx, f, out)) {
            return false;
        }
    }

    return true;
}


/*
 * Appends the object to *out.  False: Go would refuse the text, or read it
 * otherwise than member by member: what is given twice is merged there.  A
 * member that is not known becomes a field that is not.
 */
static inline bool
message_convert(kube_str_t text, const message_field_t *fields, message_t *out)
{
    uint64_t                seen;
    kube_str_t              name, value;
    kube_lexer_t            lx;
    const message_field_t  *f;

    kube_lexer_init(&lx, text);
    seen = 0;

    if (!kube_lexer_enter(&lx, '{')) {
        return false;
    }

    while (kube_lexer_member(&lx, &name)) {

        for (f = fields; f->name != NULL
                         && !kube_str_eq(name, kube_str(f->name)); f++);

        if (f->name == NULL) {
            kube_lexer_value(&lx, &value);

            if (value.len < 1024) {
                message_bytes(out, 1000, value);
            }

            continue;
        }

        if (seen & (1ull << (f - fields)) || !message_member(&lx, f, out)) {
            return false;
        }

        seen |= 1ull << (f - fields);
    }

    return kube_lexer_end(&lx);
}


#endif /* KUBE_MESSAGE_TEST_H */
