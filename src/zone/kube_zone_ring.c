/*
 * kube_zone_ring - the zone's event ring.
 *
 * It knows no subscriber and publishes nothing.  Who may call what is said in
 * the header.
 *
 * A slot's sequence is 0 while it is written and stored last; then the
 * image's, which makes the event one that readers look for.  A reader who
 * finds a slot's sequence the same before and after copying it has one event:
 * words are stored with release and loaded with acquire order, so who has
 * loaded a word of a later event also sees that the sequence is another.  A
 * writer that dies in between leaves a slot that nobody looks at, and which
 * its successor writes first.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_zone_image.h"
#include "kube_zone_ring.h"


/* No writer ever gets there: in a zone that says so somebody else has. */
#define RING_SEQUENCE_MAX  (1ull << 52)

/* What a slot holds, as one word: a byte each. */
enum {
    RING_KIND,
    RING_RESOURCE,
    RING_NS_LEN,
    RING_NAME_LEN,
    RING_RV_LEN,
    RING_OLD_RV_LEN,
    RING_BYTES
};

static_assert(RING_BYTES <= sizeof(uint64_t),
              "what a slot holds is one word");
static_assert(KUBE_NAME_LEN_MAX <= UINT8_MAX, "a length is one byte");
static_assert(KUBE_ZONE_EVENTS - 1 <= UINT8_MAX
              && KUBE_RESOURCES_ROUTED - 1 <= UINT8_MAX,
              "a kind and a resource are one byte each");


uint32_t
kube_zone_ring_size(const kube_zone_t *zone)
{
    return zone->geometry.events_n;
}


/* The seed is secret, and another one in each zone. */
static uint64_t
ring_epoch(const kube_zone_t *zone)
{
    uint64_t  numbering;

    numbering = kube_word_get(&zone->image->numbering);

    return kube_hash64(zone->geometry.seed, &numbering, sizeof(uint64_t));
}


static kube_zone_slot_t *
ring_slot(const kube_zone_t *zone, uint64_t sequence)
{
    return (kube_zone_slot_t *) kube_zone_at(zone, zone->geometry.events)
           + sequence % zone->geometry.events_n;
}


void
kube_zone_ring_newest(const kube_zone_t *zone, kube_zone_cursor_t *cursor)
{
    cursor->epoch = ring_epoch(zone);
    cursor->sequence = kube_word_get(&zone->image->events);
}


static kube_str_t
ring_take(const char **text, unsigned len)
{
    kube_str_t  s;

    s = (kube_str_t) { *text, len };
    *text += len;

    return s;
}


/* False: no writer has written that. */
static bool
ring_parse(uint64_t word, kube_zone_event_t *event)
{
    unsigned     i;
    uint8_t      what[RING_BYTES];
    const char  *text;

    static const uint8_t  limits[RING_BYTES] = {
        [RING_KIND] = KUBE_ZONE_EVENTS - 1,
        [RING_RESOURCE] = KUBE_RESOURCES_ROUTED - 1,
        [RING_NS_LEN] = KUBE_NAMESPACE_LEN_MAX,
        [RING_NAME_LEN] = KUBE_NAME_LEN_MAX,
        [RING_RV_LEN] = KUBE_RV_LEN_MAX,
        [RING_OLD_RV_LEN] = KUBE_RV_LEN_MAX
    };

    memcpy(what, &word, RING_BYTES);

    for (i = 0; i < RING_BYTES; i++) {
        if (what[i] > limits[i]) {
            return false;
        }
    }

    text = event->text;
    event->kind = (kube_zone_event_kind_t) what[RING_KIND];
    event->resource = (kube_resource_t) what[RING_RESOURCE];
    event->ns = ring_take(&text, what[RING_NS_LEN]);
    event->name = ring_take(&text, what[RING_NAME_LEN]);
    event->rv = ring_take(&text, what[RING_RV_LEN]);
    event->old_rv = ring_take(&text, what[RING_OLD_RV_LEN]);

    return true;
}


static size_t
ring_text_len(const kube_zone_event_t *event)
{
    return event->ns.len + event->name.len + event->rv.len
           + event->old_rv.len;
}


/* False: the slot holds another event, or none that a writer has written. */
static bool
ring_read(const kube_zone_t *zone, uint64_t sequence,
    kube_zone_event_t *event)
{
    bool                     sound;
    size_t                   i, n, len;
    uint64_t                 word;
    const kube_zone_slot_t  *slot;

    slot = ring_slot(zone, sequence);

    if (kube_word_get(&slot->sequence) != sequence) {
        return false;
    }

    sound = ring_parse(kube_word_get(&slot->what), event);
    n = sound ? ring_text_len(event) : 0;

    for (i = 0; i < n; i += sizeof(uint64_t)) {
        word = kube_word_get(&slot->text[i / sizeof(uint64_t)]);
        len = (n - i < sizeof(uint64_t)) ? n - i : sizeof(uint64_t);
        memcpy(&event->text[i], &word, len);
    }

    return sound && kube_word_get(&slot->sequence) == sequence;
}


kube_rc_t
kube_zone_ring_next(const kube_zone_t *zone, kube_zone_cursor_t *cursor,
    kube_zone_event_t *event)
{
    kube_zone_cursor_t  newest;

    kube_zone_ring_newest(zone, &newest);

    if (newest.epoch == cursor->epoch && newest.sequence == cursor->sequence) {
        return KUBE_NOT_FOUND;
    }

    if (newest.epoch != cursor->epoch
        || newest.sequence < cursor->sequence
        || newest.sequence - cursor->sequence > zone->geometry.events_n
        || !ring_read(zone, cursor->sequence + 1, event))
    {
        *cursor = newest;
        return KUBE_CHANGED;
    }

    cursor->sequence++;

    return KUBE_OK;
}


static kube_str_t
ring_put(char **text, kube_str_t s, size_t max)
{
    kube_str_t  copy;

    copy = (kube_str_t) { *text, (s.len < max) ? s.len : max };

    if (copy.len != 0) {
        memcpy(*text, s.data, copy.len);
        *text += copy.len;
    }

    return copy;
}


void
kube_zone_event_set(kube_zone_event_t *event, kube_zone_event_kind_t kind,
    const kube_record_id_t *id, kube_str_t old_rv)
{
    char  *text;

    text = event->text;
    event->kind = kind;
    event->resource = id->resource;
    event->ns = ring_put(&text, id->meta.ns, KUBE_NAMESPACE_LEN_MAX);
    event->name = ring_put(&text, id->meta.name, KUBE_NAME_LEN_MAX);
    event->rv = ring_put(&text, id->meta.rv, KUBE_RV_LEN_MAX);
    event->old_rv = ring_put(&text, old_rv, KUBE_RV_LEN_MAX);
}


void
kube_zone_ring_append(kube_zone_writer_t *w, const kube_zone_event_t *event)
{
    size_t             i, n, len;
    uint8_t            what[sizeof(uint64_t)];
    uint64_t           word;
    kube_zone_slot_t  *slot;

    if (w->zone->geometry.events_n == 0) {
        return;
    }

    memset(what, 0, sizeof(what));
    what[RING_KIND] = (uint8_t) event->kind;
    what[RING_RESOURCE] = (uint8_t) event->resource;
    what[RING_NS_LEN] = (uint8_t) event->ns.len;
    what[RING_NAME_LEN] = (uint8_t) event->name.len;
    what[RING_RV_LEN] = (uint8_t) event->rv.len;
    what[RING_OLD_RV_LEN] = (uint8_t) event->old_rv.len;
    memcpy(&word, what, sizeof(uint64_t));

    w->events++;
    slot = ring_slot(w->zone, w->events);

    kube_word_set(&slot->sequence, 0);
    kube_word_set(&slot->what, word);
    n = ring_text_len(event);

    for (i = 0; i < n; i += sizeof(uint64_t)) {
        word = 0;
        len = (n - i < sizeof(uint64_t)) ? n - i : sizeof(uint64_t);
        memcpy(&word, &event->text[i], len);
        kube_word_set(&slot->text[i / sizeof(uint64_t)], word);
    }

    kube_word_set(&slot->sequence, w->events);
    KUBE_FAILPOINT("event_written");
    kube_word_set(&w->zone->image->events, w->events);
}


void
kube_zone_ring_acquire(kube_zone_writer_t *w, bool lost)
{
    kube_record_id_t    id;
    kube_zone_event_t   event;
    kube_zone_image_t  *image;

    image = w->zone->image;
    w->events = kube_word_get(&image->events);

    if (w->events > RING_SEQUENCE_MAX) {
        w->events = 0;
        kube_word_set(&image->numbering,
                      kube_word_get(&image->numbering) + 1);
        kube_word_set(&image->events, 0);
    }

    if (lost) {
        memset(&id, 0, sizeof(kube_record_id_t));
        kube_zone_event_set(&event, KUBE_ZONE_EVENT_RESYNC, &id,
                            KUBE_STR_NULL);
        kube_zone_ring_append(w, &event);
    }
}
