/*
 * kube_unnamed - refused objects for whose names the zone has no room: which
 * they are, and what they want.
 *
 * It makes their count exact while the process lives, and a Service's rank the
 * same whether the zone has room for its names or not.  A row knows its key by
 * a hash of 64 bits alone.  There are KUBE_UNNAMED_MAX rows; what has none is
 * counted by its scope (kube_room_t), and no more is known of it.
 *
 * It counts nothing and judges nothing.  For the files of src/publish; one
 * thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_UNNAMED_H
#define KUBE_UNNAMED_H


#include "kube_record.h"
#include "kube_service_index.h"


typedef struct {
    kube_map_link_t  link;
    kube_lack_t      lack;           /* kube_eviction's */
    uint32_t         list;           /* of its scope, that saw it last */
    uint8_t          scope;
} kube_unnamed_row_t;

typedef struct {
    const kube_alloc_t  *alloc;
    kube_seed_t          seed;       /* secret */
    kube_map_t           map;
} kube_unnamed_t;

/* alloc and seed are set.  KUBE_OK or KUBE_NOMEM. */
kube_rc_t kube_unnamed_init(kube_unnamed_t *unnamed)  KUBE_MUST_CHECK;

/* Frees all rows, whatever they lack.  A zeroed one is accepted. */
void kube_unnamed_clear(kube_unnamed_t *unnamed);
void kube_unnamed_done(kube_unnamed_t *unnamed);

/* The row of a key; NULL: it has none. */
kube_unnamed_row_t *kube_unnamed_find(const kube_unnamed_t *unnamed,
    const kube_record_id_t *id);

/* A new row of a key that has none; NULL: no memory, or there are too many. */
kube_unnamed_row_t *kube_unnamed_add(kube_unnamed_t *unnamed,
    const kube_record_id_t *id)  KUBE_MUST_CHECK;

/* The row lacks nothing any more. */
void kube_unnamed_remove(kube_unnamed_t *unnamed, kube_unnamed_row_t *row);

/*
 * A row of the scope that no list since the one of that number has seen; NULL:
 * there is none.  The caller keeps *bucket, 0 at first, and removes the row.
 */
kube_unnamed_row_t *kube_unnamed_unseen(const kube_unnamed_t *unnamed,
    unsigned scope, uint32_t list, size_t *bucket);


#endif /* KUBE_UNNAMED_H */
