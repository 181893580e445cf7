/*
 * kube_zone_scrub - looking for what another process has changed.
 *
 * It follows nothing in the image that the side table does not know, and
 * changes no record.  For the writer only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_zone_image.h"
#include "kube_zone_live.h"
#include "kube_zone_scrub.h"
#include "kube_zone_table.h"


/* The words of which the writer keeps its own. */
static void
scrub_words(kube_zone_writer_t *w)
{
    kube_zone_image_t  *image;

    image = w->zone->image;
    kube_zone_geometry_heal(w->zone);

    if (kube_word_get(&image->entries_top) != w->entries_top) {
        kube_word_set(&image->entries_top, w->entries_top);
    }

    if (kube_word_get(&image->reuse) != w->reuse) {
        kube_word_set(&image->reuse, w->reuse);
    }

    kube_zone_table_show(w);
}


/* True if each ref names a live record of the slice that it says. */
static bool
scrub_refs(const kube_zone_writer_t *w, const kube_record_t *service)
{
    uint32_t           i;
    kube_record_t      slice;
    const kube_ref_t  *refs;

    refs = kube_record_refs(service);

    for (i = 0; i < service->refs_n; i++) {
        if (!kube_zone_live_header(w, refs[i].offset, &slice)
            || slice.kind != KUBE_RECORD_SLICE
            || slice.entry != refs[i].entry)
        {
            return false;
        }
    }

    return true;
}


static bool
scrub_entry(const kube_zone_writer_t *w, uint32_t entry)
{
    const kube_record_t  *record;

    if (!kube_zone_entry_is_intact(w, entry)) {
        return false;
    }

    record = kube_zone_published(w, entry);

    return record == NULL
           || (record->kind == w->side[entry].kind
               && kube_record_verify(record, record->size) == KUBE_OK
               && scrub_refs(w, record));
}


/* A scope's or the server's record. */
static bool
scrub_other(const kube_zone_writer_t *w, uint32_t number)
{
    uint32_t       offset;
    kube_record_t  header;

    offset = w->side[number].offset;

    return kube_head_get(kube_zone_head_of(w->zone, number)) == offset
           && (offset == 0
               || (kube_zone_live_header(w, offset, &header)
                   && header.entry == number));
}


void
kube_zone_writer_scrub(kube_zone_writer_t *w, uint32_t n)
{
    uint32_t  number;

    scrub_words(w);

    for ( /* void */ ; n != 0; n--) {
        number = w->scrubbed + 1;

        if (number > kube_zone_server_number(w->zone)) {
            number = 1;
        }

        if (number > w->entries_top && number <= w->zone->geometry.entries_n) {
            number = w->zone->geometry.entries_n + 1;
        }

        w->scrubbed = number;

        if (!((number <= w->entries_top) ? scrub_entry(w, number)
                                         : scrub_other(w, number)))
        {
            *w->suspect = true;
        }
    }
}
