/*
 * fuzz_decode - libFuzzer target: an item decodes to the same whatever pieces
 * its envelope was read in, what is taken keeps within its limits, and text
 * that is not used changes nothing.
 *
 * The first byte chooses what the rest is: an object of a resource, a
 * watch event, a list's metadata.  No test: an aid to find what the tests
 * lack.  test_decode_oracle compares with another decoder.
 *
 * make fuzz FUZZ=decode
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "fuzz.h"
#include "kube_decode_scan.h"
#include "kube_record.h"


static void
fuzz_check_object(const kube_object_t *o)
{
    size_t              i;
    kube_rv_t           rv;
    const kube_meta_t  *meta;

    meta = kube_object_meta(o);

    fuzz_assert(kube_name_is_label(meta->ns));
    fuzz_assert(kube_name_is_subdomain(meta->name));
    fuzz_assert(meta->uid.len >= 1 && meta->uid.len <= KUBE_UID_LEN_MAX);
    fuzz_assert(kube_rv_parse(meta->rv, &rv) == KUBE_OK);

    if (kube_resource_info(o->resource)->shape == KUBE_SHAPE_SERVICE) {
        fuzz_assert(o->u.service.cluster_ips_n <= KUBE_CLUSTER_IPS_MAX);
        fuzz_assert(o->u.service.ports_n <= KUBE_SERVICE_PORTS_MAX);

        for (i = 0; i < o->u.service.ports_n; i++) {
            fuzz_assert(o->u.service.ports[i].port != 0);
        }

        return;
    }

    if (kube_resource_info(o->resource)->shape == KUBE_SHAPE_METADATA) {
        fuzz_assert(o->u.partial.labels_n <= KUBE_LABELS_MAX);

        for (i = 0; i < o->u.partial.labels_n; i++) {
            fuzz_assert(o->u.partial.labels[i].name.len != 0
                        && o->u.partial.labels[i].name.len
                           <= KUBE_LABEL_NAME_MAX
                        && o->u.partial.labels[i].value.len
                           <= KUBE_LABEL_VALUE_MAX);
            fuzz_assert(i == 0
                        || kube_str_cmp(o->u.partial.labels[i - 1].name,
                                        o->u.partial.labels[i].name) < 0);
        }

        return;
    }

    fuzz_assert(o->u.slice.ports_n <= KUBE_SLICE_PORTS_MAX);
    fuzz_assert(o->u.slice.endpoints_n <= KUBE_SLICE_ENDPOINTS_MAX);

    for (i = 0; i < o->u.slice.endpoints_n; i++) {
        fuzz_assert(o->u.slice.endpoints[i].address.family
                    == o->u.slice.family
                    || (o->resource == KUBE_RESOURCE_ENDPOINTS
                        && o->u.slice.endpoints[i].address.family
                           != KUBE_FAMILY_NONE));
        fuzz_assert(o->u.slice.endpoints[i].node.len <= KUBE_STRING_LEN_MAX);
    }
}


/* False: it is no item, or not that alone. */
static bool
fuzz_envelope(kube_envelope_reader_t *r, bool event, kube_str_t text,
    size_t step, kube_envelope_t *envelope)
{
    size_t       n;
    kube_rc_t    rc;
    const char  *p, *end;

    kube_envelope_reader_init(r, event);
    rc = KUBE_AGAIN;
    end = text.data + text.len;

    for (p = text.data; p < end && rc == KUBE_AGAIN; /* void */ ) {
        n = (size_t) (end - p);
        rc = kube_envelope_read(r, &p, p + (n < step ? n : step));
    }

    kube_envelope_get(r, text, envelope);

    return rc == KUBE_OK && p == end;
}


static void
fuzz_same(kube_str_t a, kube_str_t b)
{
    fuzz_assert(kube_str_eq(a, b));
}


static bool
fuzz_envelopes(bool event, kube_str_t text, kube_envelope_t *e)
{
    bool                           good;
    kube_envelope_t                other;
    static kube_envelope_reader_t  r, byte;

    good = fuzz_envelope(&r, event, text, text.len, e);

    fuzz_assert(fuzz_envelope(&byte, event, text, 1, &other) == good);

    if (good) {
        fuzz_same(e->type, other.type);
        fuzz_same(e->kind, other.kind);
        fuzz_same(e->meta.ns, other.meta.ns);
        fuzz_same(e->meta.name, other.meta.name);
        fuzz_same(e->meta.uid, other.meta.uid);
        fuzz_same(e->meta.rv, other.meta.rv);
        fuzz_same(e->object, other.object);
        fuzz_assert(e->what == other.what);
    }

    return good;
}


static void
fuzz_records(const kube_object_t *a, const kube_object_t *b)
{
    void    *p, *q;
    size_t   size;

    size = kube_record_size(a);
    fuzz_assert(size != 0 && size == kube_record_size(b));

    p = aligned_alloc(8, size);
    q = aligned_alloc(8, size);
    fuzz_assert(p != NULL && q != NULL);

    kube_record_encode(a, p);
    kube_record_encode(b, q);
    fuzz_assert(memcmp(p, q, size) == 0);

    if (kube_resource_info(a->resource)->shape == KUBE_SHAPE_SLICE) {
        fuzz_assert(a->u.slice.trigger_ms == b->u.slice.trigger_ms);
    }

    free(p);
    free(q);
}


/*
 * What is read where it stands in a stream is what the slow way made of it;
 * object is NULL where that refused it, or found no end (whole: it has one).
 */
static void
fuzz_scan(kube_resource_t resource, bool event, kube_str_t text, bool whole,
    const kube_object_t *object, uint32_t dropped)
{
    size_t               len;
    uint32_t             scan_dropped;
    kube_rc_t            rc;
    kube_arena_t         arena;
    kube_object_t        scanned;
    kube_envelope_t      e;
    kube_decode_scan_t   scan;

    kube_arena_init(&arena, &fuzz_heap, 256u << 20);
    rc = kube_decode_scan_head(&scan, resource, event, text, &e);

    if (rc == KUBE_OK) {
        rc = kube_decode_scan_body(&scan, &arena, &e, &scanned,
                                   &scan_dropped, &len);
    }

    if (rc == KUBE_OK && whole) {
        fuzz_assert(object != NULL && len == text.len
                    && scan_dropped == dropped);
        fuzz_records(&scanned, object);
    }

    kube_arena_done(&arena);
}


/* A member that is not used, before all others, changes nothing. */
static void
fuzz_object(kube_arena_t *arena, kube_resource_t resource, kube_str_t text)
{
    char             *more;
    uint32_t          dropped, again_dropped;
    kube_rc_t         rc;
    kube_error_t      error;
    kube_object_t     object, again;
    kube_envelope_t   e;
    static const char head[] = "{\"\\ud800\":[{\"]\\\"\":-1e9999}],";

    if (!fuzz_envelopes(false, text, &e)) {
        fuzz_scan(resource, false, text, false, NULL, 0);
        return;
    }

    rc = kube_decode_object(arena, resource, &e, &object, &dropped, &error);
    fuzz_assert(rc == KUBE_OK || rc == KUBE_INVALID);

    fuzz_scan(resource, false, text, true, (rc == KUBE_OK) ? &object : NULL,
              dropped);

    if (rc != KUBE_OK) {
        fuzz_assert(error.offset <= text.len && error.what != NULL);
        return;
    }

    fuzz_check_object(&object);

    more = malloc(sizeof(head) - 1 + text.len);
    fuzz_assert(more != NULL);
    memcpy(more, head, sizeof(head) - 1);
    memcpy(more + sizeof(head) - 1, text.data + 1, text.len - 1);

    fuzz_assert(fuzz_envelopes(false,
                               (kube_str_t) { more, sizeof(head) - 2
                                                    + text.len }, &e));
    fuzz_assert(kube_decode_object(arena, resource, &e, &again,
                                   &again_dropped, &error) == KUBE_OK);
    fuzz_assert(again_dropped == dropped);

    if (kube_resource_info(resource)->shape == KUBE_SHAPE_SLICE) {
        fuzz_assert(again.u.slice.endpoints_n == object.u.slice.endpoints_n);
        fuzz_assert(again.u.slice.ports_n == object.u.slice.ports_n);
        fuzz_same(again.u.slice.service, object.u.slice.service);

    } else if (kube_resource_info(resource)->shape == KUBE_SHAPE_METADATA) {
        fuzz_assert(again.u.partial.labels_n == object.u.partial.labels_n);
        fuzz_assert(again.u.partial.deletion_ms
                    == object.u.partial.deletion_ms);

    } else {
        fuzz_assert(again.u.service.ports_n == object.u.service.ports_n);
        fuzz_assert(again.u.service.type == object.u.service.type);
    }

    free(more);
}


static void
fuzz_event(kube_arena_t *arena, kube_resource_t resource, kube_str_t text)
{
    uint32_t            dropped;
    kube_rc_t           rc;
    kube_error_t        error;
    kube_envelope_t     e;
    kube_watch_event_t  event;

    if (!fuzz_envelopes(true, text, &e)) {
        fuzz_scan(resource, true, text, false, NULL, 0);
        return;
    }

    rc = kube_decode_watch_event(arena, resource, &e, &event, &dropped,
                                 &error);
    fuzz_assert(rc == KUBE_OK || rc == KUBE_INVALID);

    fuzz_scan(resource, true, text, true,
              (rc == KUBE_OK && event.object_rc == KUBE_OK
               && event.type <= KUBE_WATCH_DELETED) ? &event.object : NULL,
              dropped);

    if (rc == KUBE_OK && event.type <= KUBE_WATCH_DELETED) {
        fuzz_assert(event.rv.len != 0);
        fuzz_assert(kube_name_is_label(kube_object_meta(&event.object)->ns));

        if (event.object_rc == KUBE_OK) {
            fuzz_check_object(&event.object);
        }
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char              *copy;
    unsigned           what;
    kube_rc_t          rc;
    kube_str_t         text;
    kube_arena_t       arena;
    kube_error_t       error;
    kube_resource_t    resource;
    kube_list_meta_t   meta;

    if (size < 2) {
        return 0;
    }

    what = data[0];
    resource = (what & 1) ? KUBE_RESOURCE_SERVICES
               : (what & 0xc0) == 0xc0 ? KUBE_RESOURCE_ENDPOINTS
               : (what & 0x80) ? KUBE_RESOURCE_PODS
               : KUBE_RESOURCE_ENDPOINTSLICES;

    copy = malloc(size - 1);
    fuzz_assert(copy != NULL);
    memcpy(copy, data + 1, size - 1);

    text.data = copy;
    text.len = size - 1;

    /* an item begins with its brace, as the frame hands it out */
    if (((what >> 1) % 3) != 2 && copy[0] != '{') {
        free(copy);
        return 0;
    }

    kube_arena_init(&arena, &fuzz_heap, 256u << 20);

    switch ((what >> 1) % 3) {
    case 0:
        fuzz_object(&arena, resource, text);
        break;

    case 1:
        fuzz_event(&arena, resource, text);
        break;

    default:
        rc = kube_decode_list_meta(&arena, text, &meta, &error);
        fuzz_assert(rc == KUBE_OK || rc == KUBE_INVALID);
        fuzz_assert(rc != KUBE_OK || meta.rv.len != 0);
        break;
    }

    kube_arena_done(&arena);
    free(copy);

    return 0;
}
