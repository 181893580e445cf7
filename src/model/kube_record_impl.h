/*
 * kube_record_impl - the content of a record, for kube_record.c alone.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_RECORD_IMPL_H
#define KUBE_RECORD_IMPL_H


#include "kube_record.h"


/*
 * The identity at the head of the content of an object's or a REFUSED record,
 * but for what header and tail say: resource and resourceVersion.
 */
void kube_content_id(kube_codec_t *c, unsigned kind, kube_record_id_t *id);

/*
 * The same, read from len bytes, without a cursor of the caller's.  Returns how
 * many bytes it has, more than 0; 0: it is none.
 */
size_t kube_content_id_read(const unsigned char *content, size_t len,
    unsigned kind, kube_record_id_t *id);

/*
 * The whole content of an object's record.  Writing, object is a copy
 * that the caller gives up; what its pointers lead to is not changed.
 */
void kube_content_object(kube_codec_t *c, unsigned kind,
    kube_object_t *object);


#endif /* KUBE_RECORD_IMPL_H */
