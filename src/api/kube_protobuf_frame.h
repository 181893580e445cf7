/*
 * kube_protobuf_frame - cuts list items and watch events out of a stream of
 * Protocol Buffers as it arrives, and reads their envelopes: what kube_frame is
 * for JSON.
 *
 * A list is four bytes ("k8s", NUL) and one message, runtime.Unknown, whose raw
 * is the list: its items are handed out before its end has arrived.  A watch
 * is a sequence of frames, each a length of four bytes, most significant first,
 * and that many bytes of metav1.WatchEvent (apimachinery,
 * pkg/util/framer's length-delimited frames).
 *
 * It decodes nothing (kube_decode does), holds one item at most, and none above
 * the limit: of such an item the first KUBE_PROTOBUF_HEAD bytes are kept, where
 * a server writes what is in an envelope.  What an item holds is no matter for
 * the stream: its length says where the next one begins.  Not thread-safe; the
 * caller, src/cache, owns the struct.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_PROTOBUF_FRAME_H
#define KUBE_PROTOBUF_FRAME_H


#include "kube_frame.h"


/*
 * Bytes kept of what is too large: metadata begins with name, generateName,
 * namespace, uid and resourceVersion, of less than a kilobyte, and at most
 * 100 bytes stand before it.
 */
#define KUBE_PROTOBUF_HEAD  KUBE_OBJECT_BYTES_MIN

/*
 * No item or event is longer: etcd refuses objects of 1.5 MiB.  A text that is
 * taken for a length by mistake begins at 512 MiB.
 */
#define KUBE_PROTOBUF_LENGTH_MAX  (256u << 20)

typedef struct kube_protobuf_frame_s  kube_protobuf_frame_t;

/*
 * As kube_frame_create().  destroy accepts NULL.
 */
kube_protobuf_frame_t *kube_protobuf_frame_create(const kube_alloc_t *alloc,
    kube_frame_mode_t mode, size_t item_bytes_max)  KUBE_MUST_CHECK;
void kube_protobuf_frame_destroy(kube_protobuf_frame_t *frame);

/*
 * As kube_frame_next(), but: bytes of KUBE_FRAME_KIND are the kind alone, those
 * of KUBE_FRAME_METADATA are a message, and there is no KUBE_FRAME_END, for
 * what ends a list need not be followed by anything; see below.
 */
kube_rc_t kube_protobuf_frame_next(kube_protobuf_frame_t *frame,
    kube_str_t *in, kube_frame_item_t *item)  KUBE_MUST_CHECK;

/* All of a list was seen. */
bool kube_protobuf_frame_end(const kube_protobuf_frame_t *frame);

/* True inside a started object: an end of input now is a truncation. */
bool kube_protobuf_frame_partial(const kube_protobuf_frame_t *frame);


#endif /* KUBE_PROTOBUF_FRAME_H */
