/*
 * kube_record - a record as a whole: header and tail around the content,
 * checking, comparing.
 *
 * It knows no field of an object (kube_record_content.c does) and no zone.
 * No state; any process or thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <assert.h>
#include <string.h>

#include "kube_record_impl.h"


#define RECORD_ALIGN  8

static_assert(KUBE_RECORD_REFUSED_MAX % RECORD_ALIGN == 0
              && KUBE_RECORD_REFUSED_MAX
                 >= sizeof(kube_record_t)
                    + 1 + KUBE_NAMESPACE_LEN_MAX + 1 + KUBE_NAME_LEN_MAX
                    + 1 + KUBE_RECORD_REASON_MAX + 1 + KUBE_RV_LEN_MAX,
              "any name has a REFUSED record");


/* The parts of a record whose lengths agree. */
typedef struct {
    kube_record_t         header;
    const unsigned char  *content;
    kube_str_t            rv;
    size_t                base;       /* size without refs */
} record_view_t;


static const kube_record_kind_t  record_kinds[KUBE_SHAPES] = {
    [KUBE_SHAPE_SERVICE] = KUBE_RECORD_SERVICE,
    [KUBE_SHAPE_SLICE] = KUBE_RECORD_SLICE,
    [KUBE_SHAPE_METADATA] = KUBE_RECORD_METADATA
};


static kube_record_kind_t
record_kind(kube_resource_t resource)
{
    return record_kinds[kube_resource_info(resource)->shape];
}


static size_t
record_size(size_t content, size_t rv, size_t refs)
{
    size_t  base;

    base = sizeof(kube_record_t) + content + 1 + rv;
    base = (base + RECORD_ALIGN - 1) & ~((size_t) RECORD_ALIGN - 1);

    return base + refs * sizeof(kube_ref_t);
}


static uint32_t
record_check(const kube_record_t *header, const unsigned char *content,
    size_t base)
{
    uint64_t  salt;

    salt = (uint64_t) header->content_size << 16
           | (uint64_t) header->kind << 8 | header->resource;

    return (uint32_t) kube_sum128(salt, content,
                                  base - sizeof(kube_record_t)).lo;
}


/* Puts header and tail around content that is written already. */
static void
record_finish(void *buf, kube_record_kind_t kind, uint8_t resource,
    size_t content_size, kube_str_t rv)
{
    size_t          used, base;
    unsigned char  *tail;
    kube_record_t  *record;

    base = record_size(content_size, rv.len, 0);
    used = sizeof(kube_record_t) + content_size + 1 + rv.len;

    tail = (unsigned char *) buf + sizeof(kube_record_t) + content_size;
    tail[0] = (unsigned char) rv.len;

    if (rv.len != 0) {
        memcpy(tail + 1, rv.data, rv.len);
    }

    memset((unsigned char *) buf + used, 0, base - used);

    record = buf;
    memset(record, 0, sizeof(kube_record_t));

    record->size = (uint32_t) base;
    record->kind = (uint8_t) kind;
    record->resource = resource;
    record->content_size = (uint32_t) content_size;
    record->check = record_check(record, (unsigned char *) (record + 1),
                                 base);
}


size_t
kube_record_write(const kube_object_t *object, void *buf, size_t cap)
{
    size_t              size;
    kube_str_t          rv;
    kube_codec_t        c;
    kube_object_t       copy;
    kube_record_kind_t  kind;

    copy = *object;
    kind = record_kind(object->resource);
    rv = kube_object_meta(object)->rv;
    c = (buf != NULL && cap > sizeof(kube_record_t))
        ? kube_codec_writer((kube_record_t *) buf + 1,
                            cap - sizeof(kube_record_t))
        : kube_codec_writer(NULL, 0);

    kube_content_object(&c, kind, &copy);

    if (c.bad || rv.len > KUBE_RV_LEN_MAX) {
        return 0;
    }

    size = record_size(c.size, rv.len, 0);

    if (buf != NULL && size <= cap) {
        record_finish(buf, kind, (uint8_t) object->resource, c.size, rv);
    }

    return size;
}


size_t
kube_record_size(const kube_object_t *object)
{
    return kube_record_write(object, NULL, 0);
}


void
kube_record_encode(const kube_object_t *object, void *buf)
{
    (void) kube_record_write(object, buf, SIZE_MAX);
}


size_t
kube_record_refused_encode(const kube_record_id_t *id, void *buf)
{
    kube_codec_t      c;
    kube_record_id_t  copy;

    copy = *id;

    if (copy.reason.len > KUBE_RECORD_REASON_MAX) {
        copy.reason.len = KUBE_RECORD_REASON_MAX;
    }

    if (copy.meta.rv.len > KUBE_RV_LEN_MAX) {
        copy.meta.rv = KUBE_STR_NULL;
    }

    c = kube_codec_writer((kube_record_t *) buf + 1,
                          KUBE_RECORD_REFUSED_MAX - sizeof(kube_record_t));
    kube_content_id(&c, KUBE_RECORD_REFUSED, &copy);

    if (c.bad) {
        return 0;
    }

    record_finish(buf, KUBE_RECORD_REFUSED, (uint8_t) id->resource, c.size,
                  copy.meta.rv);

    return ((kube_record_t *) buf)->size;
}


size_t
kube_record_raw_size(size_t content_size)
{
    return record_size(content_size, 0, 0);
}


void
kube_record_raw_encode(kube_record_kind_t kind, const void *content,
    size_t content_size, void *buf)
{
    memcpy((kube_record_t *) buf + 1, content, content_size);
    record_finish(buf, kind, 0, content_size, KUBE_STR_NULL);
}


static bool
record_kind_is_valid(const kube_record_t *h)
{
    if (h->resource >= KUBE_RESOURCES) {
        return false;
    }

    switch (h->kind) {
    case KUBE_RECORD_SERVICE:
    case KUBE_RECORD_SLICE:
    case KUBE_RECORD_METADATA:
        return h->kind == record_kind((kube_resource_t) h->resource);

    case KUBE_RECORD_REFUSED:
    case KUBE_RECORD_SCOPE:
    case KUBE_RECORD_ERROR:
    case KUBE_RECORD_INFO:
        return true;

    default:
        return false;
    }
}


static kube_rc_t
record_view(const void *bytes, size_t len, record_view_t *view)
{
    size_t                rv_len;
    kube_record_t        *h;
    const unsigned char  *tail;

    h = &view->header;

    if (len < sizeof(kube_record_t)) {
        return KUBE_CORRUPT;
    }

    memcpy(h, bytes, sizeof(kube_record_t));

    if (h->size > len
        || h->size <= sizeof(kube_record_t)
        || h->size % RECORD_ALIGN != 0
        || h->content_size >= h->size - sizeof(kube_record_t)
        || h->refs_n > KUBE_SERVICE_SLICES_MAX
        || (h->refs_n != 0 && h->kind != KUBE_RECORD_SERVICE)
        || !record_kind_is_valid(h))
    {
        return KUBE_CORRUPT;
    }

    view->content = (const unsigned char *) bytes + sizeof(kube_record_t);
    tail = view->content + h->content_size;
    rv_len = tail[0];

    if (rv_len > KUBE_RV_LEN_MAX
        || record_size(h->content_size, rv_len, h->refs_n) != h->size)
    {
        return KUBE_CORRUPT;
    }

    view->rv = (kube_str_t) { (const char *) tail + 1, rv_len };
    view->base = h->size - h->refs_n * sizeof(kube_ref_t);

    return KUBE_OK;
}


static bool
record_is_object(const record_view_t *view)
{
    return view->header.kind == KUBE_RECORD_SERVICE
           || view->header.kind == KUBE_RECORD_SLICE
           || view->header.kind == KUBE_RECORD_METADATA;
}


/* *len is how many bytes of the content it has. */
static kube_rc_t
record_get_id(const record_view_t *view, kube_record_id_t *id, size_t *len)
{
    *len = 0;
    memset(id, 0, sizeof(kube_record_id_t));

    if (!record_is_object(view) && view->header.kind != KUBE_RECORD_REFUSED) {
        return KUBE_CORRUPT;
    }

    *len = kube_content_id_read(view->content, view->header.content_size,
                                view->header.kind, id);
    id->resource = (kube_resource_t) view->header.resource;
    id->meta.rv = view->rv;

    return (*len != 0) ? KUBE_OK : KUBE_CORRUPT;
}


/* Without an arena, object is filled without arrays. */
static kube_rc_t
record_get_object(kube_arena_t *arena, const record_view_t *view,
    kube_object_t *object)
{
    kube_codec_t  c;

    memset(object, 0, sizeof(kube_object_t));

    c = kube_codec_reader(view->content, view->header.content_size, arena);
    kube_content_object(&c, view->header.kind, object);
    object->resource = (kube_resource_t) view->header.resource;
    object->u.meta.rv = view->rv;

    /* a string without memory is empty, so that the next one looks broken */
    if (c.nomem) {
        return KUBE_NOMEM;
    }

    /* nothing may follow: equal objects have equal bytes */
    return kube_codec_is_done(&c) ? KUBE_OK : KUBE_CORRUPT;
}


/* As record_view(); the checksum is right, too. */
static kube_rc_t
record_view_checked(const void *bytes, size_t len, record_view_t *view)
{
    if (record_view(bytes, len, view) != KUBE_OK
        || record_check(&view->header, view->content, view->base)
           != view->header.check)
    {
        return KUBE_CORRUPT;
    }

    return KUBE_OK;
}


kube_rc_t
kube_record_verify(const void *bytes, size_t len)
{
    record_view_t  view;

    return record_view_checked(bytes, len, &view);
}


kube_rc_t
kube_record_validate(const void *bytes, size_t len)
{
    kube_object_t     object;
    record_view_t     view;
    kube_record_id_t  id;

    if (record_view_checked(bytes, len, &view) != KUBE_OK) {
        return KUBE_CORRUPT;
    }

    if (record_is_object(&view)) {
        return record_get_object(NULL, &view, &object);
    }

    if (view.header.kind == KUBE_RECORD_REFUSED) {
        return (record_get_id(&view, &id, &len) == KUBE_OK
                && len == view.header.content_size) ? KUBE_OK : KUBE_CORRUPT;
    }

    return KUBE_OK;
}


kube_rc_t
kube_record_measure(const void *bytes, size_t len)
{
    record_view_t  view;

    return record_view(bytes, len, &view);
}


kube_rc_t
kube_record_id(const void *bytes, size_t len, kube_record_id_t *id)
{
    size_t         content;
    record_view_t  view;

    if (record_view(bytes, len, &view) != KUBE_OK) {
        return KUBE_CORRUPT;
    }

    return record_get_id(&view, id, &content);
}


kube_rc_t
kube_record_verify_id(const void *bytes, size_t len, kube_record_id_t *id)
{
    size_t         content;
    record_view_t  view;

    if (record_view_checked(bytes, len, &view) != KUBE_OK) {
        return KUBE_CORRUPT;
    }

    return record_get_id(&view, id, &content);
}


kube_rc_t
kube_record_rv(const void *bytes, size_t len, kube_str_t *rv)
{
    record_view_t  view;

    if (record_view(bytes, len, &view) != KUBE_OK) {
        *rv = KUBE_STR_NULL;
        return KUBE_CORRUPT;
    }

    *rv = view.rv;

    return KUBE_OK;
}


kube_rc_t
kube_record_decode(kube_arena_t *arena, const void *bytes, size_t len,
    kube_object_t *object)
{
    record_view_t  view;

    if (record_view(bytes, len, &view) != KUBE_OK
        || !record_is_object(&view))
    {
        return KUBE_CORRUPT;
    }

    return record_get_object(arena, &view, object);
}


kube_rc_t
kube_record_content(const void *bytes, size_t len, kube_record_kind_t kind,
    kube_codec_t *content)
{
    record_view_t  view;

    if (record_view(bytes, len, &view) != KUBE_OK
        || view.header.kind != kind)
    {
        return KUBE_CORRUPT;
    }

    *content = kube_codec_reader(view.content, view.header.content_size,
                                 NULL);
    return KUBE_OK;
}


size_t
kube_record_base(const kube_record_t *record)
{
    return record->size - record->refs_n * sizeof(kube_ref_t);
}


const kube_ref_t *
kube_record_refs(const kube_record_t *record)
{
    return (const kube_ref_t *) (const void *)
               ((const char *) record + kube_record_base(record));
}


bool
kube_record_same(const kube_record_t *a, const kube_record_t *b)
{
    return a->kind == b->kind
           && a->resource == b->resource
           && a->content_size == b->content_size
           && memcmp(a + 1, b + 1, a->content_size) == 0;
}


bool
kube_record_same_version(const kube_record_t *a, const kube_record_t *b)
{
    size_t  base;

    base = kube_record_base(a);

    /* between content and refs there is the resourceVersion alone */
    return kube_record_same(a, b)
           && kube_record_base(b) == base
           && memcmp(a + 1, b + 1, base - sizeof(kube_record_t)) == 0;
}


kube_str_t
kube_reason_text(kube_reason_t reason)
{
    static const char *const  texts[] = {
#define XX(name, text)  text,
        KUBE_REASON_MAP(XX)
#undef XX
    };

    return kube_str(texts[(unsigned) reason < KUBE_REASONS ? reason
                                                           : 0]);
}


kube_reason_t
kube_reason_of(kube_str_t text)
{
    kube_reason_t  reason;

    for (reason = KUBE_REASON_OTHER; reason < KUBE_REASONS; reason++) {
        if (kube_str_eq(kube_reason_text(reason), text)) {
            return reason;
        }
    }

    return KUBE_REASON_OTHER;
}


uint64_t
kube_uid_hash(kube_str_t uid)
{
    uint64_t  hash;

    if (uid.len == 0) {
        return 0;
    }

    hash = kube_hash64((kube_seed_t) { 0, 0 }, uid.data, uid.len);

    return (hash != 0) ? hash : 1;
}


uint64_t
kube_record_outdated(kube_reason_t reason, uint64_t since_ms)
{
    return since_ms << 16 | reason;
}


uint64_t
kube_record_outdated_since(const kube_record_t *record)
{
    return record->outdated >> 16;
}


kube_reason_t
kube_record_outdated_reason(const kube_record_t *record)
{
    return (kube_reason_t) (record->outdated & 0xffff);
}


kube_digest_t
kube_record_digest(const kube_record_t *record)
{
    return kube_record_content_digest(record + 1, record->content_size);
}


kube_digest_t
kube_record_content_digest(const void *content, size_t content_size)
{
    return kube_sum128(0, content, content_size);
}
