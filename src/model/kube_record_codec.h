/*
 * kube_record_codec - the structure of a record and the cursor its content is
 * read through: shared by encoding, decoding and the zone's own records.
 *
 * Private to src/zone.  Not the contract: that is kube_record.h.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_RECORD_CODEC_H
#define KUBE_RECORD_CODEC_H


#include "kube_record.h"


#define KUBE_RECORD_HEADER_SIZE   sizeof(kube_record_t)

/* Lengths are one byte. */
#define KUBE_RECORD_STRING_MAX    255

/* Flags of an endpoint; the family is in the two highest bits. */
#define KUBE_RECORD_EP_READY        0x01
#define KUBE_RECORD_EP_SERVING      0x02
#define KUBE_RECORD_EP_TERMINATING  0x04
#define KUBE_RECORD_EP_POD          0x08
#define KUBE_RECORD_EP_NODE         0x10
#define KUBE_RECORD_EP_ZONE         0x20
#define KUBE_RECORD_EP_IPV4         0x40
#define KUBE_RECORD_EP_IPV6         0x80

/* A Service's type is in the lower bits of the byte. */
#define KUBE_RECORD_SVC_HEADLESS    0x80


/* A record whose lengths agree with each other and with the bytes given. */
typedef struct {
    kube_record_t         header;
    const unsigned char  *content;
    kube_str_t            rv;
    size_t                base;       /* size without refs */
} kube_record_view_t;

kube_rc_t kube_record_view(const void *bytes, size_t len,
    kube_record_view_t *view)  KUBE_MUST_CHECK;

/* Size of a valid record without its refs. */
size_t kube_record_base(const kube_record_t *record);

/* Reads content; bad is set by the first read beyond its end and stays. */
typedef struct {
    const unsigned char  *p;
    const unsigned char  *end;
    bool                  bad;
} kube_record_in_t;

uint64_t kube_record_get(kube_record_in_t *in, size_t bytes);
kube_str_t kube_record_get_str(kube_record_in_t *in, size_t max);

/* Checks the content of an object's record without decoding it. */
kube_rc_t kube_record_content_check(const kube_record_view_t *view)
    KUBE_MUST_CHECK;

/* Reads the identity at the head of the content. */
void kube_record_get_id(kube_record_in_t *in, const kube_record_view_t *view,
    kube_record_id_t *id);


/* Writes content; with p NULL it counts only. */
typedef struct {
    unsigned char  *p;
    size_t          size;
} kube_record_out_t;

void kube_record_put(kube_record_out_t *out, const void *data, size_t len);
void kube_record_put_int(kube_record_out_t *out, uint64_t value,
    size_t bytes);
void kube_record_put_str(kube_record_out_t *out, kube_str_t s);

/* A record of a kind whose content its caller defines. */
size_t kube_record_raw_size(size_t content_size);
void kube_record_raw_encode(kube_record_kind_t kind,
    kube_resource_t resource, const void *content, size_t content_size,
    void *buf);


#endif /* KUBE_RECORD_CODEC_H */
