/*
 * kube_decode_message - readers of Protocol Buffers that the projections share,
 * as kube_decode_field has them of JSON.
 *
 * It knows numbers and wire types; which texts and numbers are good is said
 * where JSON's are judged.  A field given twice is read as Go reads it: a text
 * or number is the last one, a message is merged, what is repeated goes on.
 * For kube_decode*.c only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_decode_impl.h"


/* The numbers of metav1.ObjectMeta. */
enum {
    META_LABELS = 11,
    META_ANNOTATIONS = 12
};

/* Those of each entry of a map. */
enum {
    ENTRY_KEY = 1,
    ENTRY_VALUE = 2
};

/* Those of core/v1's ObjectReference. */
enum {
    REFERENCE_KIND = 1,
    REFERENCE_NAME = 3
};


/* Keeps the value of an entry of a map of texts, if its key is that. */
static void
message_entry(kube_decode_t *d, kube_protobuf_t *m,
    const kube_protobuf_field_t *f, kube_str_t key, kube_str_t *value)
{
    kube_str_t             name, text;
    kube_protobuf_t        entry;
    kube_protobuf_field_t  part;

    name = KUBE_STR_NULL;
    text = KUBE_STR_NULL;

    if (!kube_protobuf_enter(m, f, &entry)) {
        return;
    }

    while (kube_decode_field(d, &entry, &part)) {

        if (part.number == ENTRY_KEY) {
            (void) kube_protobuf_bytes(&entry, &part, &name);

        } else if (part.number == ENTRY_VALUE) {
            (void) kube_protobuf_bytes(&entry, &part, &text);
        }
    }

    if (key.len != 0 && kube_str_eq(name, key)) {
        *value = text;
    }
}


void
kube_decode_message_metadata(kube_decode_t *d, kube_protobuf_t *m,
    const kube_protobuf_field_t *f, kube_decode_metadata_t *meta)
{
    kube_protobuf_t        inner;
    kube_protobuf_field_t  part;

    if (!kube_protobuf_enter(m, f, &inner)) {
        return;
    }

    while (kube_decode_field(d, &inner, &part)) {

        if (part.number == META_LABELS) {
            message_entry(d, &inner, &part, meta->label_key, &meta->label);

        } else if (part.number == META_ANNOTATIONS) {
            message_entry(d, &inner, &part, meta->annotation_key,
                          &meta->annotation);
        }
    }
}


void
kube_decode_message_shown(kube_decode_t *d, kube_protobuf_t *m,
    const kube_protobuf_field_t *f, kube_str_t *s)
{
    kube_str_t  text;

    if (kube_protobuf_bytes(m, f, &text)) {
        *s = kube_decode_showable(d, text);
    }
}


void
kube_decode_message_target(kube_decode_t *d, kube_protobuf_t *m,
    const kube_protobuf_field_t *f, kube_decode_target_t *target)
{
    kube_protobuf_t        inner;
    kube_protobuf_field_t  part;

    if (!kube_protobuf_enter(m, f, &inner)) {
        return;
    }

    while (kube_decode_field(d, &inner, &part)) {

        if (part.number == REFERENCE_KIND) {
            (void) kube_protobuf_bytes(&inner, &part, &target->kind);

        } else if (part.number == REFERENCE_NAME) {
            (void) kube_protobuf_bytes(&inner, &part, &target->name);
        }
    }
}


/* Reads a field of a port; false if it makes the port a bad one. */
static bool
message_port_field(kube_decode_t *d, kube_protobuf_t *m,
    const kube_protobuf_field_t *f, const kube_decode_port_numbers_t *numbers,
    bool pointers, kube_port_t *port)
{
    int32_t     number;
    uint64_t    value;
    kube_str_t  text;

    if (f->number == numbers->name) {
        return !kube_protobuf_bytes(m, f, &port->name)
               || port->name.len == 0 || kube_name_is_label(port->name);
    }

    if (f->number == numbers->protocol) {
        return !kube_protobuf_bytes(m, f, &text)
               || kube_decode_protocol(text, pointers, &port->protocol);
    }

    if (f->number == numbers->port) {

        if (!kube_protobuf_number(m, f, &value)) {
            return true;
        }

        number = (int32_t) (uint32_t) value;
        port->port = (uint16_t) number;

        return number >= 1 && number <= 65535;
    }

    if (f->number == numbers->app_protocol) {
        kube_decode_message_shown(d, m, f, &port->app_protocol);
    }

    return true;
}


void
kube_decode_message_port(kube_decode_t *d, kube_protobuf_t *m,
    const kube_protobuf_field_t *f, const kube_decode_port_numbers_t *numbers,
    kube_decode_array_t *array, size_t max, bool pointers)
{
    bool                    good;
    kube_port_t            *port;
    kube_protobuf_t         inner;
    kube_protobuf_field_t   part;

    if (!kube_protobuf_enter(m, f, &inner)) {
        return;
    }

    port = kube_decode_more(d, array, sizeof(kube_port_t), max,
                            "ports has too many elements");
    if (port == NULL) {
        return;
    }

    memset(port, 0, sizeof(kube_port_t));
    good = true;

    while (kube_decode_field(d, &inner, &part)) {
        good &= message_port_field(d, &inner, &part, numbers, pointers, port);
    }

    if (!good) {
        kube_decode_port_is_bad(port);
    }
}
