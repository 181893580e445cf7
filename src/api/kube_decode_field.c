/*
 * kube_decode_field - readers of values that the projections share.
 *
 * It knows no resource: what a bad value costs is the projections' business,
 * but for ports, which Service and slice have in common.  For kube_decode*.c
 * only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_date.h"
#include "kube_decode_impl.h"
#include "kube_utf8.h"


/* Elements that an array has room for at first. */
#define DECODE_ARRAY_FIRST  8

/* A bad port is known by its name, which points here. */
static const char  decode_port_bad[] = "";


/* A byte of each of the eight. */
#define FIELD_EACH(byte)  (0x0101010101010101ull * (byte))


/*
 * Whether one of eight bytes is no visible ASCII: below 0x21, above 0x7e.  What
 * carries to the next byte comes from one that is odd itself.
 */
static inline bool
field_eight_are_odd(uint64_t x)
{
    return ((x | (x + FIELD_EACH(0x01)) | (x - FIELD_EACH(0x21)))
            & FIELD_EACH(0x80)) != 0;
}


/* Whether one of n bytes, 4 to 15, is: two words, which may overlap. */
static inline bool
field_some_are_odd(const char *p, size_t n)
{
    uint32_t  a, b;
    uint64_t  x, y;

    if (n >= 8) {
        memcpy(&x, p, 8);
        memcpy(&y, p + n - 8, 8);

        return field_eight_are_odd(x) || field_eight_are_odd(y);
    }

    memcpy(&a, p, 4);
    memcpy(&b, p + n - 4, 4);

    return field_eight_are_odd((uint64_t) a << 32 | b);
}


bool
kube_decode_is_printable(kube_str_t s, size_t max)
{
    size_t  i;

    if (s.len == 0 || s.len > max) {
        return false;
    }

    if (s.len >= KUBE_SIMD_TEXT) {

        for (i = 0; i + KUBE_SIMD_TEXT < s.len; i += KUBE_SIMD_TEXT) {
            if (kube_simd_hidden(s.data + i) != 0) {
                return false;
            }
        }

        /* the last ones may overlap those before */
        return kube_simd_hidden(s.data + s.len - KUBE_SIMD_TEXT) == 0;
    }

    if (s.len >= 4) {
        return !field_some_are_odd(s.data, s.len);
    }

    for (i = 0; i < s.len; i++) {
        if (s.data[i] <= ' ' || s.data[i] > '~') {
            return false;
        }
    }

    return true;
}


/* Takes a value of the wrong type, or null. */
static kube_rc_t
decode_pass(kube_decode_t *d)
{
    kube_str_t  text;

    kube_lexer_value(&d->lx, &text);

    return kube_str_eq(text, KUBE_STR("null")) ? KUBE_NOT_FOUND
                                               : KUBE_INVALID;
}


/* Ends the decoding: no memory, or the arena's ceiling. */
static void
decode_nomem(kube_decode_t *d)
{
    d->nomem = !d->arena->full;

    kube_lexer_fail(&d->lx, d->nomem ? "out of memory" : "too large");
}


kube_rc_t
kube_decode_enter(kube_decode_t *d, char open)
{
    return kube_lexer_enter(&d->lx, open) ? KUBE_OK : decode_pass(d);
}


kube_rc_t
kube_decode_text(kube_decode_t *d, kube_str_t *s)
{
    bool        plain;
    char       *text;
    size_t      size, len;
    kube_str_t  raw;

    if (!kube_lexer_string(&d->lx, &raw, &plain)) {
        return decode_pass(d);
    }

    if (plain && kube_utf8_check(raw)) {
        *s = raw;
        return KUBE_OK;
    }

    /* at worst every byte is invalid and becomes U+FFFD */
    size = 3 * raw.len;

    text = kube_arena_alloc(d->arena, size);
    if (text == NULL) {
        decode_nomem(d);
        return KUBE_INVALID;
    }

    if (kube_lexer_unescape(raw, text, size, &len) != KUBE_OK) {
        return KUBE_INVALID;
    }

    *s = (kube_str_t) { text, len };

    return KUBE_OK;
}


kube_rc_t
kube_decode_integer(kube_decode_t *d, uint64_t low, uint64_t high,
    uint64_t *value)
{
    uint64_t    v;
    kube_str_t  text;

    if (kube_lexer_peek(&d->lx) != '0') {
        return decode_pass(d);
    }

    kube_lexer_value(&d->lx, &text);

    if (kube_str_to_u64(text, high, &v) != KUBE_OK || v < low) {
        return KUBE_INVALID;
    }

    *value = v;

    return KUBE_OK;
}


kube_str_t
kube_decode_showable(kube_decode_t *d, kube_str_t text)
{
    if (text.len == 0
        || kube_decode_is_printable(text, KUBE_STRING_LEN_MAX))
    {
        return text;
    }

    d->dropped++;

    return KUBE_STR_NULL;
}


void
kube_decode_shown(kube_decode_t *d, kube_str_t *s)
{
    kube_str_t  text;

    text = KUBE_STR_NULL;
    d->dropped += (kube_decode_text(d, &text) == KUBE_INVALID);

    *s = kube_decode_showable(d, text);
}


void
kube_decode_other(kube_decode_t *d, kube_str_t name, kube_resource_t resource)
{
    kube_rc_t   rc;
    kube_str_t  text;

    if (d->stream && (kube_str_eq(name, KUBE_STR("metadata"))
                      || kube_str_eq(name, KUBE_STR("kind"))))
    {
        kube_decode_surprise(d, KUBE_SURPRISE_OBJECT);
        return;
    }

    if (!kube_str_eq(name, KUBE_STR("apiVersion"))) {
        kube_lexer_value(&d->lx, NULL);
        return;
    }

    text = KUBE_STR_NULL;
    rc = kube_decode_text(d, &text);

    if (rc == KUBE_INVALID
        || (text.len != 0 && !kube_resource_is_version(resource, text)))
    {
        kube_lexer_fail(&d->lx, "wrong apiVersion");
    }
}


/* Reads a map of texts and keeps the value of key. */
static void
decode_map(kube_decode_t *d, kube_str_t key, kube_str_t *value)
{
    kube_str_t  name;

    if (kube_decode_enter(d, '{') != KUBE_OK) {
        *value = KUBE_STR_NULL;
        return;
    }

    while (kube_lexer_member(&d->lx, &name)) {
        if (key.len == 0 || !kube_str_eq(name, key)) {
            kube_lexer_value(&d->lx, NULL);

        } else if (kube_decode_text(d, value) != KUBE_OK) {
            *value = KUBE_STR_NULL;
        }
    }
}


void
kube_decode_surprise(kube_decode_t *d, kube_surprise_t surprise)
{
    if (d->surprise == KUBE_SURPRISE_NONE) {
        d->surprise = surprise;
    }

    kube_lexer_fail(&d->lx, "unexpected");
}


/* The place of a label by its name, or where it would stand. */
static size_t
field_label_place(const kube_partial_t *partial, kube_str_t name)
{
    size_t  low, high, middle;

    low = 0;
    high = partial->labels_n;

    /* they come in order: Go sorts the keys of a map */

    if (high != 0
        && kube_str_cmp(partial->labels[high - 1].name, name) < 0)
    {
        return high;
    }

    while (low < high) {
        middle = low + (high - low) / 2;

        if (kube_str_cmp(partial->labels[middle].name, name) < 0) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return low;
}


/* Reads a label, whose name is valid until the next member. */
static void
field_label(kube_decode_t *d, kube_partial_t *partial, kube_str_t name)
{
    char          *copy;
    size_t         i;
    kube_str_t     value;
    kube_label_t  *labels;

    if (!kube_decode_is_printable(name, KUBE_LABEL_NAME_MAX)) {
        kube_lexer_value(&d->lx, NULL);
        d->dropped++;
        return;
    }

    copy = kube_arena_alloc(d->arena, name.len);

    if (copy == NULL) {
        decode_nomem(d);
        return;
    }

    memcpy(copy, name.data, name.len);
    name.data = copy;
    value = KUBE_STR_NULL;

    if (kube_decode_text(d, &value) == KUBE_INVALID
        || (value.len != 0
            && !kube_decode_is_printable(value, KUBE_LABEL_VALUE_MAX)))
    {
        d->dropped++;
        return;
    }

    labels = partial->labels;
    i = field_label_place(partial, name);

    if (i == partial->labels_n || !kube_str_eq(labels[i].name, name)) {

        if (partial->labels_n == KUBE_LABELS_MAX) {
            kube_lexer_fail(&d->lx, "metadata has too many labels");
            return;
        }

        memmove(&labels[i + 1], &labels[i],
                (partial->labels_n - i) * sizeof(kube_label_t));
        partial->labels_n++;
    }

    labels[i] = (kube_label_t) { name, value };
}


/* Reads all labels; a map that comes again adds to the one before. */
static void
field_labels(kube_decode_t *d, kube_partial_t *partial)
{
    kube_rc_t   rc;
    kube_str_t  name;

    rc = kube_decode_enter(d, '{');

    if (rc != KUBE_OK) {
        d->dropped += (rc == KUBE_INVALID);
        partial->labels_n = 0;
        return;
    }

    if (partial->labels == NULL) {
        partial->labels = kube_arena_alloc(d->arena, KUBE_LABELS_MAX
                                                     * sizeof(kube_label_t));
        if (partial->labels == NULL) {
            decode_nomem(d);
            return;
        }
    }

    while (kube_lexer_member(&d->lx, &name)) {
        field_label(d, partial, name);
    }
}


static void
field_deletion(kube_decode_t *d, int64_t *deletion_ms)
{
    kube_rc_t   rc;
    kube_str_t  text;

    *deletion_ms = 0;
    rc = kube_decode_text(d, &text);

    if (rc == KUBE_OK) {
        rc = kube_date_parse_rfc3339(text, deletion_ms);
    }

    d->dropped += (rc == KUBE_INVALID);
}


/* Is it a member of metadata that the envelope has? */
static bool
decode_in_envelope(kube_str_t name)
{
    return kube_str_eq(name, KUBE_STR("name"))
           || kube_str_eq(name, KUBE_STR("namespace"))
           || kube_str_eq(name, KUBE_STR("uid"))
           || kube_str_eq(name, KUBE_STR("resourceVersion"));
}


void
kube_decode_metadata(kube_decode_t *d, kube_decode_metadata_t *m)
{
    kube_str_t  name;

    if (d->inside) {
        d->inside = false;

    } else if (d->stream) {
        kube_decode_surprise(d, KUBE_SURPRISE_OBJECT);

    } else if (kube_decode_enter(d, '{') != KUBE_OK) {
        return;
    }

    while (kube_lexer_member(&d->lx, &name)) {
        if (d->stream && decode_in_envelope(name)) {
            kube_decode_surprise(d, KUBE_SURPRISE_OBJECT);

        } else if (m->partial != NULL
                   && kube_str_eq(name, KUBE_STR("labels")))
        {
            field_labels(d, m->partial);

        } else if (m->partial != NULL
                   && kube_str_eq(name, KUBE_STR("deletionTimestamp")))
        {
            field_deletion(d, &m->partial->deletion_ms);

        } else if (kube_str_eq(name, KUBE_STR("labels"))) {
            decode_map(d, m->label_key, &m->label);

        } else if (kube_str_eq(name, KUBE_STR("annotations"))) {
            decode_map(d, m->annotation_key, &m->annotation);

        } else {
            kube_lexer_value(&d->lx, NULL);
        }
    }
}


void
kube_decode_target_begin(kube_decode_target_t *target, kube_str_t pod)
{
    *target = (kube_decode_target_t) { .name = pod };

    if (pod.len != 0) {
        target->kind = KUBE_STR("Pod");
    }
}


void
kube_decode_target(kube_decode_t *d, kube_decode_target_t *target)
{
    kube_rc_t   rc;
    kube_str_t  name, *text;

    rc = kube_decode_enter(d, '{');

    if (rc != KUBE_OK) {
        *target = (kube_decode_target_t) { .bad = (rc == KUBE_INVALID) };
    }

    while (rc == KUBE_OK && kube_lexer_member(&d->lx, &name)) {
        text = kube_str_eq(name, KUBE_STR("kind")) ? &target->kind
               : kube_str_eq(name, KUBE_STR("name")) ? &target->name
               : NULL;

        if (text == NULL) {
            kube_lexer_value(&d->lx, NULL);

        } else if (kube_decode_text(d, text) == KUBE_INVALID) {
            target->bad = true;
        }
    }
}


kube_str_t
kube_decode_target_pod(kube_decode_t *d, const kube_decode_target_t *target)
{
    d->dropped += target->bad;

    return kube_str_eq(target->kind, KUBE_STR("Pod"))
               ? kube_decode_showable(d, target->name) : KUBE_STR_NULL;
}


bool
kube_decode_array(kube_decode_t *d, kube_decode_array_t *array,
    const char *what)
{
    kube_rc_t  rc;

    rc = kube_decode_enter(d, '[');
    array->n = 0;

    if (rc == KUBE_NOT_FOUND) {
        array->made = 0;

    } else if (rc != KUBE_OK) {
        kube_lexer_fail(&d->lx, what);
    }

    return rc == KUBE_OK;
}


bool
kube_decode_grow(kube_decode_t *d, kube_decode_array_t *array, size_t size,
    size_t max, const char *what)
{
    kube_rc_t      rc;
    kube_alloc_t   alloc;

    alloc = kube_arena_allocator(d->arena);
    rc = kube_array_reserve(&alloc, &array->p, &array->cap,
                            (array->n == 0) ? DECODE_ARRAY_FIRST
                                            : array->n + 1,
                            size, max);

    if (rc == KUBE_TOO_LARGE) {
        kube_lexer_fail(&d->lx, what);

    } else if (rc != KUBE_OK) {
        decode_nomem(d);
    }

    return rc == KUBE_OK;
}


void *
kube_decode_next(kube_decode_t *d, kube_decode_array_t *array, size_t size,
    size_t max, const char *what, bool *fresh)
{
    char  *p;

    if (!kube_lexer_element(&d->lx)) {
        array->made = (array->n != 0) ? array->made : 0;
        return NULL;
    }

    p = kube_decode_more(d, array, size, max, what);

    if (p == NULL) {
        return NULL;
    }

    *fresh = (array->n > array->made);

    if (*fresh) {
        memset(p, 0, size);
        array->made = array->n;
    }

    return p;
}


bool
kube_decode_protocol(kube_str_t text, bool pointers, kube_protocol_t *protocol)
{
    unsigned  i;

    if (text.len == 0 && !pointers) {
        *protocol = KUBE_PROTOCOL_TCP;
        return true;
    }

    for (i = KUBE_PROTOCOL_TCP; i <= KUBE_PROTOCOL_SCTP; i++) {
        if (kube_str_eq(text,
                        kube_str(kube_protocol_text((kube_protocol_t) i))))
        {
            *protocol = (kube_protocol_t) i;
            return true;
        }
    }

    return false;
}


/*
 * Returns false if the port is bad.  A port without a usable name is not
 * taken for the unnamed one: it would be joined with a port of another name.
 */
static bool
decode_port_member(kube_decode_t *d, kube_str_t name, bool pointers,
    kube_port_t *port)
{
    uint64_t    number;
    kube_rc_t   rc;
    kube_str_t  text;

    if (kube_str_eq(name, KUBE_STR("name"))) {
        rc = kube_decode_text(d, &port->name);

        if (rc == KUBE_NOT_FOUND && pointers) {
            port->name = KUBE_STR_NULL;
        }

        return rc != KUBE_INVALID
               && (port->name.len == 0 || kube_name_is_label(port->name));
    }

    if (kube_str_eq(name, KUBE_STR("protocol"))) {
        rc = kube_decode_text(d, &text);

        if (rc == KUBE_NOT_FOUND && pointers) {
            port->protocol = KUBE_PROTOCOL_TCP;
        }

        return rc == KUBE_NOT_FOUND
               || (rc == KUBE_OK
                   && kube_decode_protocol(text, pointers, &port->protocol));
    }

    if (kube_str_eq(name, KUBE_STR("port"))) {
        rc = kube_decode_integer(d, 1, 65535, &number);

        if (rc == KUBE_OK) {
            port->port = (uint16_t) number;

        } else if (rc == KUBE_NOT_FOUND && pointers) {
            port->port = 0;
        }

        return rc != KUBE_INVALID;
    }

    if (kube_str_eq(name, KUBE_STR("appProtocol"))) {
        kube_decode_shown(d, &port->app_protocol);

    } else {
        kube_lexer_value(&d->lx, NULL);
    }

    return true;
}


void
kube_decode_port_is_bad(kube_port_t *port)
{
    port->name = (kube_str_t) { decode_port_bad, 0 };
}


/*
 * Reads a port as API servers write one, of a Service or a slice, good in every
 * field: the same that decode_port_member() makes of it.  False: it is another
 * one, nothing is taken, and *port is not to be used.
 */
static bool
decode_port_expected(kube_decode_t *d, kube_port_t *port)
{
    unsigned       number, unused;
    kube_expect_t  x;

    x = (kube_expect_t) { d->lx.p, d->lx.end, false };

    if (!KUBE_EXPECT(&x, "{\"name\":\"")
        || !kube_expect_text(&x, KUBE_NAME_LEN_MAX, &port->name)
        || !kube_name_is_label(port->name)
        || !KUBE_EXPECT(&x, "\",\"protocol\":\"TCP\"")
        || (KUBE_EXPECT(&x, ",\"appProtocol\":\"")
            && (!kube_expect_text(&x, KUBE_STRING_LEN_MAX, &port->app_protocol)
                || !KUBE_EXPECT(&x, "\"")))
        || !KUBE_EXPECT(&x, ",\"port\":")
        || !kube_expect_number(&x, 65535, &number))
    {
        return false;
    }

    /* of a slice it comes here, of a Service what is not used */

    if (KUBE_EXPECT(&x, ",\"appProtocol\":\"")
        && (!kube_expect_text(&x, KUBE_STRING_LEN_MAX, &port->app_protocol)
            || !KUBE_EXPECT(&x, "\"")))
    {
        return false;
    }

    if (KUBE_EXPECT(&x, ",\"targetPort\":")
        && !kube_expect_number(&x, 65535, &unused)
        && (!KUBE_EXPECT(&x, "\"") || !kube_expect_unused(&x)
            || !KUBE_EXPECT(&x, "\"")))
    {
        return false;
    }

    if ((KUBE_EXPECT(&x, ",\"nodePort\":")
         && !kube_expect_number(&x, 65535, &unused))
        || !KUBE_EXPECT(&x, "}"))
    {
        return false;
    }

    port->protocol = KUBE_PROTOCOL_TCP;
    port->port = (uint16_t) number;
    d->lx.p = x.p;

    return true;
}


void
kube_decode_ports(kube_decode_t *d, kube_decode_array_t *array, size_t max,
    bool pointers)
{
    bool          bad, fresh;
    kube_rc_t     rc;
    kube_str_t    name;
    kube_port_t  *port;

    if (!kube_decode_array(d, array, "ports is no array")) {
        return;
    }

    for ( ;; ) {
        port = kube_decode_next(d, array, sizeof(kube_port_t), max,
                                "ports has too many elements", &fresh);
        if (port == NULL) {
            return;
        }

        if (fresh && d->stream) {

            if (decode_port_expected(d, port)) {
                continue;
            }

            memset(port, 0, sizeof(kube_port_t));
        }

        rc = kube_decode_enter(d, '{');
        bad = (rc == KUBE_INVALID);

        while (rc == KUBE_OK && kube_lexer_member(&d->lx, &name)) {
            bad |= !decode_port_member(d, name, pointers, port);
        }

        if (bad) {
            kube_decode_port_is_bad(port);
        }
    }
}


void
kube_decode_ports_end(kube_decode_t *d, const kube_decode_array_t *array,
    bool number_required, kube_port_t **ports, size_t *ports_n)
{
    size_t        i;
    kube_port_t  *p;

    p = array->p;
    *ports = p;

    for (i = 0; i < array->n; i++) {
        if (p[i].name.data == decode_port_bad
            || (number_required && p[i].port == 0))
        {
            d->dropped++;

        } else {
            p[(*ports_n)++] = p[i];
        }
    }
}
