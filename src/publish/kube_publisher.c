/*
 * kube_publisher - the events of the indexer, take-over, and the turns in
 * which Services are published.
 *
 * What an event does to an object is kube_publisher_life.c's, how objects
 * become readable kube_publication's, which Services wait kube_service_queue's,
 * who makes room kube_eviction's.  An event costs its object and its Service's
 * slices, never more.  For the process that holds the zone's guard; one
 * thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_publisher_impl.h"
#include "kube_zone_counters.h"
#include "kube_zone_guard.h"
#include "kube_zone_writer.h"


/* Between two looks for what is outdated too long; for room. */
#define PUBLISHER_EXPIRE_MS  1000
#define PUBLISHER_ROOM_MS    1000

/* So many of what is outdated are looked at, each for an eviction's cost. */
#define PUBLISHER_ROOM_TRIES  64

/* Of the room: less of it is normal churn; so much should not lie idle. */
#define PUBLISHER_CHURN      16
#define PUBLISHER_IDLE       8


kube_publisher_t *
kube_publisher_create(const kube_alloc_t *alloc,
    const kube_publisher_conf_t *conf)
{
    kube_publisher_t   *p;
    kube_zone_usage_t   usage;

    p = kube_zalloc(alloc, sizeof(kube_publisher_t));
    if (p == NULL) {
        return NULL;
    }

    p->alloc = alloc;
    kube_zone_usage(conf->zone, &usage);

    if (kube_service_index_init(&p->index, alloc, conf->seed,
                                (uint32_t) usage.entries)
        != KUBE_OK)
    {
        kube_free(alloc, p);
        return NULL;
    }

    p->eviction.index = &p->index;
    p->eviction.writer = conf->writer;
    p->eviction.static_keys = conf->static_keys;
    p->eviction.static_keys_n = conf->static_keys_n;
    p->eviction.alloc = alloc;
    p->eviction.share = conf->zone_share;

    if (kube_eviction_init(&p->eviction) != KUBE_OK) {
        kube_service_index_done(&p->index, 0);
        kube_free(alloc, p);
        return NULL;
    }

    if (kube_publication_init(&p->publication, alloc, conf, &p->index,
                              &p->eviction)
        != KUBE_OK
        || kube_service_queue_init(&p->queue, alloc, &p->index) != KUBE_OK)
    {
        kube_publisher_destroy(p);
        return NULL;
    }

    return p;
}


void
kube_publisher_destroy(kube_publisher_t *p)
{
    if (p == NULL) {
        return;
    }

    kube_service_queue_done(&p->queue);
    kube_publication_done(&p->publication);
    kube_eviction_done(&p->eviction);
    kube_service_index_done(&p->index, kube_publisher_top(p));
    kube_free(p->alloc, p);
}


static void
publisher_list_end(kube_publisher_t *p, unsigned scope)
{
    kube_publication_list_end(&p->publication, scope);
    kube_publisher_trim(p);
    kube_service_queue_list_end(&p->queue, scope);
}


static void
publisher_load_begin(kube_publisher_t *p)
{
    uint64_t  before;

    kube_eviction_clear(&p->eviction);
    kube_service_index_clear(&p->index, kube_publisher_top(p));
    kube_service_queue_clear(&p->queue);
    kube_publication_reset(&p->publication);

    before = kube_zone_object_max(p->publication.conf.zone);
    p->publication.larger = (before != 0
                             && before < p->publication.conf.object_max);
}


/*
 * The zone says what is allowed once nothing is left that less had refused: who
 * follows before that asks for the lists that are missing.
 */
static void
publisher_object_max(kube_publisher_t *p)
{
    unsigned  i;
    uint64_t  bytes;

    for (i = 0; p->publication.larger && i < KUBE_SCOPES_MAX; i++) {

        if (p->publication.scopes[i].room.larger
            || kube_service_queue_pending(&p->queue, i))
        {
            return;
        }
    }

    p->publication.larger = false;
    bytes = p->publication.conf.object_max;

    if (bytes != 0 && kube_zone_object_max(p->publication.conf.zone) != bytes) {
        kube_zone_set_object_max(p->publication.conf.zone, bytes);
    }
}


/*
 * Who lists what less had refused needs both lists of the namespace: until then
 * nobody makes room for it, were it the first by rank.
 */
static void
publisher_room_larger(kube_publisher_t *p)
{
    unsigned  i;

    for (i = 0; p->publication.larger && i < KUBE_SCOPES_MAX; i++) {

        if (p->publication.scopes[i].room.larger) {
            kube_publication_want(&p->publication, i);
        }
    }
}


static kube_rc_t
publisher_found(kube_publisher_t *p, const kube_item_t *item)
{
    kube_group_t         *group;
    const kube_record_t  *record;

    record = kube_zone_newest(p->publication.conf.writer, item->zone.entry);

    group = kube_publisher_group(p, item);
    if (group == NULL) {
        return KUBE_NOMEM;
    }

    if (record->kind == KUBE_RECORD_REFUSED) {
        kube_publication_found_refused(&p->publication, item);
        kube_publisher_found_refused(p, group, item);
        return KUBE_OK;
    }

    kube_member_set(kube_publisher_link(p, group, item), KUBE_LIFE_LINKED);
    kube_publication_found(&p->publication, item->zone.entry);

    return KUBE_OK;
}


/* Notes which slices a published Service references. */
static void
publisher_load_refs(kube_publisher_t *p, uint32_t service)
{
    size_t          i, n;
    kube_member_t  *member;

    n = kube_publication_refs(&p->publication, service);
    p->index.members[service].group->shown = (uint16_t) n;

    for (i = 0; i < n; i++) {
        member = &p->index.members[p->publication.refs[i]];

        if (member->group == NULL || kube_member_is_service(member)) {
            continue;
        }

        member->referenced_by = service;

        if (member->group->service == service) {
            kube_member_set(member, KUBE_LIFE_REFERENCED);
        }
    }
}


/*
 * Queues what is not as it should be.  The zone repairs this at take-over;
 * this is for what it could not.
 */
static void
publisher_load_check(kube_publisher_t *p, const kube_member_t *member)
{
    if (member->group == NULL
        || kube_member_is_service(member)
        || member->referenced_by == member->group->service)
    {
        return;
    }

    kube_service_queue_add(&p->queue, member->group, member->resource,
                           KUBE_NEVER);

    if (member->referenced_by != 0) {
        kube_service_queue_add(&p->queue,
                               p->index.members[member->referenced_by].group,
                               member->resource, KUBE_NEVER);
    }
}


static void
publisher_load_end(kube_publisher_t *p)
{
    uint32_t        i;
    kube_room_t    *room;
    kube_member_t  *member;

    for (i = 1; i <= kube_publisher_top(p); i++) {
        member = &p->index.members[i];

        if (member->group != NULL && kube_member_is_service(member)) {
            publisher_load_refs(p, i);
        }
    }

    for (i = 0; i < KUBE_SCOPES_MAX; i++) {
        room = &p->publication.scopes[i].room;
        room->has_place = room->crowded;
    }

    for (i = 1; i <= kube_publisher_top(p); i++) {
        member = &p->index.members[i];
        publisher_load_check(p, member);

        /* the next one that goes from it tells */
        if (member->group != NULL
            && member->group->slices_n
               >= kube_zone_slices_max(p->publication.conf.zone)
            && member->group->name_len != 0)
        {
            p->publication.scopes[member->scope].room.has_place = false;
        }
    }

    p->found = true;

    /* what has no name is told of later */

    if (!p->publication.larger) {
        publisher_object_max(p);
    }
}


/*
 * The first turn after a load: until then the zone holds what the predecessor
 * left, which is compared with what it wrote down.
 */
static void
publisher_found_end(kube_publisher_t *p)
{
    unsigned  i;

    if (!p->found) {
        return;
    }

    p->found = false;
    kube_publisher_finish(p);

    for (i = 0; i < KUBE_SCOPES_MAX; i++) {
        p->publication.scopes[i].room.found_bytes = p->eviction.bytes;
    }
}


/*
 * Ends what was outdated too long.  The rows are walked at most once a second,
 * and only while there are any of these.
 */
static void
publisher_expire(kube_publisher_t *p, uint64_t now_ms)
{
    uint32_t              i;
    uint64_t              until_ms;
    const kube_record_t  *record;

    if (!p->publication.outdated || now_ms < p->expire_ms) {
        return;
    }

    p->publication.outdated = false;
    p->expire_ms = KUBE_NEVER;

    for (i = 1; i <= kube_publisher_top(p); i++) {

        if (!p->index.members[i].outdated) {
            continue;
        }

        record = kube_zone_newest(p->publication.conf.writer, i);
        until_ms = kube_record_outdated_since(record)
                   + p->publication.conf.max_outdated_ms;

        if (until_ms <= now_ms && kube_publisher_expire(p, i) == KUBE_OK) {
            continue;
        }

        p->publication.outdated = true;

        if (until_ms < p->expire_ms) {
            p->expire_ms = until_ms;
        }
    }

    if (p->expire_ms < now_ms + PUBLISHER_EXPIRE_MS) {
        p->expire_ms = now_ms + PUBLISHER_EXPIRE_MS;
    }
}


static void
publisher_turn_begin(kube_publisher_t *p, uint64_t now_ms)
{
    p->publication.now_ms = now_ms;
    p->queue.now_ms = now_ms;
    kube_zone_writer_now(p->publication.conf.writer, now_ms);
}


/* The list of its scope, where one goes on, has the item. */
static void
publisher_see(kube_publisher_t *p, const kube_item_t *item)
{
    if (item->zone.entry != 0 && item->scope < KUBE_SCOPES_MAX) {
        p->index.members[item->zone.entry].list =
                     (uint8_t) p->publication.scopes[item->scope].room.list;
    }
}


kube_rc_t
kube_publisher_on_change(void *ctx, kube_item_event_t event,
    kube_item_t *item)
{
    kube_rc_t          rc;
    kube_publisher_t  *p = ctx;

    publisher_turn_begin(p, item->now_ms);
    rc = KUBE_OK;

    switch (event) {

    case KUBE_ITEM_PUT:
        publisher_see(p, item);
        rc = kube_publisher_put(p, item);
        publisher_see(p, item);
        break;

    case KUBE_ITEM_SEEN:
        publisher_see(p, item);
        break;

    case KUBE_ITEM_DELETED:
        kube_publisher_deleted(p, item);
        break;

    case KUBE_ITEM_REFUSED:
        publisher_see(p, item);
        rc = kube_publisher_refused(p, item);
        break;

    case KUBE_ITEM_LIST_BEGIN:
        kube_publication_list_begin(&p->publication, item->scope);
        kube_service_queue_list_begin(&p->queue, item->scope);
        break;

    case KUBE_ITEM_LIST_END:
        publisher_list_end(p, item->scope);
        break;

    case KUBE_ITEM_REFILL_BEGIN:
        kube_publication_refill_begin(&p->publication, item->scope);
        kube_service_queue_refill_begin(&p->queue, item->scope);
        break;

    case KUBE_ITEM_REFILL_END:
    case KUBE_ITEM_REFILL_BROKEN:
        kube_publication_refill_end(&p->publication, item->scope,
                                    event == KUBE_ITEM_REFILL_END);
        kube_service_queue_refill_end(&p->queue, item->scope);
        break;

    case KUBE_ITEM_LOAD_BEGIN:
        publisher_load_begin(p);
        break;

    case KUBE_ITEM_FOUND:
        rc = publisher_found(p, item);
        break;

    case KUBE_ITEM_LOAD_END:
        publisher_load_end(p);
        break;
    }

    return rc;
}


/*
 * Publishes one Service, in hand meanwhile: the caller's pin keeps its names.
 * What the process has died of is not published, unless it is deleted; false:
 * it is that.
 */
static bool
publisher_publish(kube_publisher_t *p, kube_group_t *group, uint64_t read_ms)
{
    kube_hand_t             *hand;
    kube_publisher_blame_t   blame;

    hand = p->publication.conf.hand;

    if (hand == NULL
        || p->index.members[group->service].life == KUBE_LIFE_DELETING)
    {
        kube_publisher_publish(p, group, read_ms);
        return true;
    }

    kube_publisher_blame(p, group, &blame);

    if (kube_zone_poison_refuses(p->publication.conf.zone, &blame.what)) {
        return false;
    }

    kube_hand_take(hand, &blame.what, KUBE_STAGE_PUBLISH);
    kube_publisher_publish(p, group, read_ms);
    kube_hand_leave(hand);

    return true;
}


/*
 * True if a list holds a Service that the group waits for: that one would
 * show, without a slice of this group, what the list has brought so far.
 */
static bool
publisher_is_held(kube_publisher_t *p, kube_group_t *group,
    const kube_chain_t *chain, uint64_t read_ms)
{
    unsigned  i;

    for (i = 0; i < chain->n; i++) {
        if (kube_service_queue_hold_with(&p->queue, group, chain->groups[i])) {
            kube_service_queue_again(&p->queue, group, read_ms);
            return true;
        }
    }

    return false;
}


/* One may be ended, and freed, as another one has its turn. */
static void
publisher_publish_chain(kube_publisher_t *p, const kube_chain_t *chain)
{
    unsigned       i;
    kube_group_t  *group;

    for (i = 0; i < chain->n; i++) {
        chain->groups[i]->pins++;
    }

    for (i = 0; i < chain->n; i++) {
        group = chain->groups[i];

        if (group->service != 0) {
            (void) publisher_publish(p, group, KUBE_NEVER);
        }

        group->pins--;
        kube_eviction_release(&p->eviction, group);
    }
}


/* Publishes one Service, after those that it waits for: so many in all. */
static unsigned
publisher_turn(kube_publisher_t *p, kube_group_t *group, uint64_t read_ms)
{
    kube_chain_t  chain;

    chain.n = 0;

    /* one that ends shows none of its slices, and waits for nobody */
    if (p->index.members[group->service].life != KUBE_LIFE_DELETING) {
        kube_service_index_chain(&p->index, group, &chain);
    }

    if (publisher_is_held(p, group, &chain, read_ms)) {
        return 1;
    }

    group->pins++;
    publisher_publish_chain(p, &chain);

    if (group->service != 0 && !publisher_publish(p, group, read_ms)) {
        kube_publisher_crashed(p, group);
    }

    group->pins--;
    kube_eviction_release(&p->eviction, group);

    return chain.n + 1;
}


unsigned
kube_publisher_run(kube_publisher_t *p, unsigned max, uint64_t now_ms,
    int64_t now_unix_ms)
{
    unsigned       n;
    uint32_t       waiting;
    uint64_t       read_ms, added;
    kube_group_t  *group;

    publisher_turn_begin(p, now_ms);
    p->publication.now_unix_ms = now_unix_ms;
    publisher_found_end(p);
    publisher_expire(p, now_ms);

    for (n = 0; n < max; n += publisher_turn(p, group, read_ms)) {
        group = kube_service_queue_next(&p->queue, &read_ms);

        if (group == NULL) {
            break;
        }

        /* 0: adopted by a take-over, before the first turn */

        if (group->added_ms != 0) {
            kube_zone_histogram_observe(p->publication.conf.zone,
                                        KUBE_HISTOGRAM_WORKQUEUE,
                                        KUBE_RESOURCE_SERVICES,
                                        (now_ms - group->added_ms) * 1000);
        }
    }

    waiting = kube_service_queue_depth(&p->queue, &added);
    kube_zone_set_services(p->publication.conf.zone, waiting, added);

    return n;
}


bool
kube_publisher_pending(const kube_publisher_t *p, unsigned scope)
{
    return scope < KUBE_SCOPES_MAX
           && kube_service_queue_pending(&p->queue, scope);
}


static bool
publisher_lacks(const kube_room_t *room)
{
    return room->refused + room->unnamed + room->more != 0;
}


void
kube_publisher_sum(const kube_publisher_t *p, unsigned scope,
    kube_scope_sum_t *sum)
{
    const kube_room_t  *room;

    *sum = (kube_scope_sum_t) { .count = 0 };

    if (scope < KUBE_SCOPES_MAX) {
        room = &p->publication.scopes[scope].room;
        *sum = p->publication.scopes[scope].sum;
        sum->refused_unnamed = room->unnamed + room->more;
        sum->interrupted = room->interrupted;
        sum->lacks_room = room->refused + (room->unnamed - room->nameless)
                          + room->more != 0;
    }
}


const char *
kube_publisher_lacking(const kube_publisher_t *p)
{
    return p->publication.lacking;
}


void
kube_publisher_found_unnamed(kube_publisher_t *p, unsigned scope, uint64_t n,
    bool interrupted)
{
    kube_room_t  *room;

    room = &p->publication.scopes[scope].room;

    /* nobody knows for what reason they were refused */

    room->more = n;
    room->unknown += n;
    room->wanted |= interrupted;
    room->larger |= (p->publication.larger && n != 0);
    room->interrupted |= interrupted;
}


/* What a group lacks and a predecessor has refused is not known to be all. */
static void
publisher_room_found(void *ctx, const kube_group_t *group)
{
    unsigned           r;
    uint64_t           unnamed;
    kube_publisher_t  *p = ctx;

    for (r = 0; r < KUBE_RESOURCES_ROUTED; r++) {
        if (kube_publication_guesses(&p->publication, group->scope[r],
                                     &unnamed))
        {
            return;
        }
    }

    for (r = 0; r < KUBE_RESOURCES_ROUTED; r++) {
        p->publication.scopes[group->scope[r]].room.returned = true;
    }
}


/*
 * Room for what no group is known to lack: found at take-over, without a row,
 * or refused for another reason and without a name.  It may have returned while
 * the predecessor was there, who asked for nothing any more.
 */
static bool
publisher_room_unknown(const kube_publisher_t *p, const kube_room_t *room)
{
    uint64_t  size, held;

    size = kube_zone_room(p->publication.conf.writer);
    held = p->eviction.bytes;

    if (room->unknown != 0
        && (kube_publisher_was_copied(p)
            || held + size / PUBLISHER_CHURN <= size
            || held + size / PUBLISHER_CHURN <= room->found_bytes))
    {
        return true;
    }

    return room->nameless != 0
           && kube_zone_names_left(p->publication.conf.writer)
              >= room->nameless;
}


/*
 * By how much one that is outdated would grow.  After a take-over nobody knows
 * how large its newest version is, but no larger than a segment.
 */
static uint64_t
publisher_outdated_more(const kube_publisher_t *p, const kube_member_t *member)
{
    size_t    size;
    uint64_t  wanted;

    size = (member->wants != 0) ? member->wants * KUBE_WANTS_UNIT
           : kube_zone_record_max(p->publication.conf.zone);
    wanted = kube_eviction_charge(&p->eviction, size);

    return (wanted > member->bytes) ? wanted - member->bytes : 0;
}


/* The same for what is outdated for want of room: no group lacks it. */
static void
publisher_room_outdated(kube_publisher_t *p)
{
    uint32_t              i, n, top;
    const kube_member_t  *member;

    if (!p->publication.outdated) {
        return;
    }

    top = kube_publisher_top(p);

    for (i = 0, n = 0; i < top && n < PUBLISHER_ROOM_TRIES; i++) {
        p->room_row = p->room_row % top + 1;
        member = &p->index.members[p->room_row];

        /* one on its way out wants nothing, and may be in no group */

        if (member->outdated
            && member->lacks_room
            && member->life != KUBE_LIFE_DELETING
            && !p->publication.scopes[member->scope].room.returned)
        {
            n++;

            /*
             * How large one of a predecessor's would be, its lists tell; and
             * until then none is brought that an event has left so since.
             */

            kube_publication_want(&p->publication, member->scope);

            /* what another group wants, that one lacks */
            if (kube_member_wish(member) == NULL
                && kube_eviction_takes(&p->eviction, member->group,
                                       publisher_outdated_more(p, member)))
            {
                publisher_room_found(p, member->group);
            }
        }
    }
}


void
kube_publisher_look_for_room(kube_publisher_t *p)
{
    bool          idle;
    unsigned      i;
    kube_room_t  *room;

    if (p->publication.now_ms < p->room_ms) {
        return;
    }

    p->room_ms = p->publication.now_ms + PUBLISHER_ROOM_MS;
    publisher_object_max(p);
    publisher_room_larger(p);
    kube_eviction_returned(&p->eviction, publisher_room_found, p);
    publisher_room_outdated(p);
    idle = kube_eviction_free(&p->eviction)
           >= kube_zone_room(p->publication.conf.writer) / PUBLISHER_IDLE;

    for (i = 0; i < KUBE_SCOPES_MAX; i++) {
        room = &p->publication.scopes[i].room;
        room->returned = !kube_service_queue_listing(&p->queue, i)
                         && (room->wanted
                             || (publisher_lacks(room)
                                 && (room->returned
                                     || publisher_room_unknown(p, room))));
        room->idle = idle;
    }
}


bool
kube_publisher_room_returned(kube_publisher_t *p, unsigned scope,
    kube_room_ask_t *ask)
{
    bool          place;
    kube_room_t  *room;

    if (scope >= KUBE_SCOPES_MAX) {
        return false;
    }

    room = &p->publication.scopes[scope].room;

    /* a place among its slices is a tenant's to give, and to take: no haste */

    place = room->has_place && !room->asked
            && !kube_service_queue_listing(&p->queue, scope);

    if (!place
        && (!room->returned
            || (room->asked && (room->urgent || !room->idle))))
    {
        return false;
    }

    room->asked = true;
    room->urgent = room->returned && room->idle;
    room->returned = false;

    /* what has no row ends with a whole list alone */

    *ask = (kube_room_ask_t) {
        .urgent = room->urgent,
        .whole = room->wanted || room->unknown != 0 || room->more != 0
    };

    kube_log_event(&p->publication.log, p->publication.now_ms,
                   KUBE_LOG_INFO, KUBE_EV_ROOM_RETURNED,
                   "room for what was refused of scope %u", scope);

    return true;
}
