/*
 * kube_publisher_life - what happens to an object: it is put, deleted,
 * refused, evicted, and its Service is published.
 *
 * Each step leaves every member in a state of its life (kube_service_index.h)
 * and queues the Services that are to be published for it.  It knows no lists
 * and no sums.  For the process that holds the zone's guard; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_publisher_impl.h"
#include "kube_zone_counters.h"
#include "kube_zone_writer.h"


/* Each makes room, or gives up: how often is tried for one object. */
#define LIFE_ROUNDS  64


static bool
life_is_service(const kube_item_t *item)
{
    return kube_resource_info(item->zone.id.resource)->shape
           == KUBE_SHAPE_SERVICE;
}


/*
 * Takes a slice out of its group, which is not freed.  One that was refused
 * because the group was full, and will not come by itself, has a place then.
 */
static void
life_unlink(kube_publisher_t *p, uint32_t entry)
{
    kube_room_t         *room;
    const kube_group_t  *group;

    group = p->index.members[entry].group;
    room = &p->publication.scopes[p->index.members[entry].scope].room;

    kube_eviction_size(&p->eviction, entry, 0);
    kube_service_index_unlink(&p->index, entry);

    if (group->name_len != 0
        && group->slices_n == kube_zone_slices_max(p->publication.conf.zone)
                              - 1)
    {
        room->has_place = room->crowded;
    }
}


kube_group_t *
kube_publisher_group(kube_publisher_t *p, const kube_item_t *item)
{
    kube_group_t         *group;
    const kube_member_t  *member;

    member = &p->index.members[item->zone.entry];

    /* no look-up while the label stays; a Service is of its name's group */
    if (member->group != NULL
        && (!item->zone.relabelled || kube_member_is_service(member)))
    {
        return member->group;
    }

    group = kube_service_index_get(&p->index, item->zone.id.meta.ns,
                                   item->service);

    if (group != NULL && kube_eviction_add(&p->eviction, group) != KUBE_OK) {
        kube_eviction_release(&p->eviction, group);
        return NULL;
    }

    return group;
}


kube_member_t *
kube_publisher_link(kube_publisher_t *p, kube_group_t *group,
    const kube_item_t *item)
{
    kube_member_t        *member;
    const kube_record_t  *record;

    member = &p->index.members[item->zone.entry];
    member->resource = (uint8_t) item->zone.id.resource;
    member->scope = (uint8_t) item->scope;
    group->scope[member->resource] = (uint8_t) item->scope;

    if (member->group == NULL) {

        /* a chain that was cut hid the Service's entry, and it got another */
        if (kube_member_is_service(member) && group->service != 0) {
            kube_service_queue_remove(&p->queue, group);
            kube_eviction_size(&p->eviction, group->service, 0);
            kube_publication_end_service(&p->publication, group->service,
                                         NULL);
        }

        kube_service_index_link(&p->index, group, item->zone.entry);
    }

    record = item->zone.record;

    if (record == NULL) {
        record = kube_zone_newest(p->publication.conf.writer,
                                  item->zone.entry);
    }

    kube_eviction_size(&p->eviction, item->zone.entry,
                       kube_eviction_charge(&p->eviction,
                                            kube_record_base(record)));

    return member;
}


/*
 * What the zone lacks, in bytes, for the newest version of an object that ends:
 * 0: that was refused for another reason, and no list would bring it.
 */
static uint32_t
life_lacked(const kube_member_t *member, const kube_record_t *record)
{
    if (member->outdated && !member->lacks_room) {
        return 0;
    }

    return (member->outdated && member->wants != 0)
           ? member->wants * KUBE_WANTS_UNIT
           : (uint32_t) kube_record_base(record);
}


/* Why an object that is held, or was to be, has no room. */
static kube_refusal_t
life_no_room(const kube_publisher_t *p, uint32_t entry)
{
    kube_refusal_t        refusal;
    kube_zone_item_t      item;
    const kube_member_t  *member;
    const kube_record_t  *record;

    refusal = (kube_refusal_t) {
        .reason = kube_reason_text(KUBE_REASON_ZONE_FULL),
        .size = 1
    };
    member = &p->index.members[entry];
    record = kube_zone_newest(p->publication.conf.writer, entry);

    if (kube_zone_item_entry(p->publication.conf.writer, entry, &item)
        == KUBE_OK)
    {
        kube_refusal_set_rv(&refusal, item.id.meta.rv);
        refusal.size = life_lacked(member, record);
    }

    if (member->outdated) {
        refusal.reason = kube_reason_text(kube_record_outdated_reason(record));
    }

    return refusal;
}


/* True if readers find an object: one that was a name is staged over that. */
static bool
life_is_readable(const kube_publisher_t *p, uint32_t entry)
{
    const kube_record_t  *record;

    record = kube_zone_published(p->publication.conf.writer, entry);

    return record != NULL && record->kind != KUBE_RECORD_REFUSED;
}


/* Ends the group's Service, and the group if it has no slice. */
static void
life_end_service(kube_publisher_t *p, kube_group_t *group,
    const kube_refusal_t *refusal)
{
    unsigned             scope;
    uint32_t             service;
    kube_zone_writer_t  *writer;

    service = group->service;
    scope = p->index.members[service].scope;
    writer = p->publication.conf.writer;

    if (refusal != NULL) {
        kube_zone_evict_begin(writer, service, scope);
    }

    kube_service_queue_remove(&p->queue, group);
    kube_eviction_size(&p->eviction, service, 0);

    /* what goes with it may lack it, or there is no memory for that */
    group->pins++;
    kube_publication_end_service(&p->publication, service, refusal);
    group->pins--;
    kube_eviction_release(&p->eviction, group);

    if (refusal != NULL) {
        kube_zone_evict_end(writer);
    }
}


/*
 * Why a slice is refused is kept while it is there, and who wants it meanwhile.
 * KUBE_OK, or KUBE_NOMEM: nothing changed.
 */
static kube_rc_t
life_keep_refusal(kube_publisher_t *p, kube_member_t *member,
    const kube_refusal_t *refusal)
{
    kube_lack_t  wish;

    if (member->refusal == NULL) {
        member->refusal = kube_zalloc(p->alloc, sizeof(kube_refusal_t));

        if (member->refusal == NULL) {
            return KUBE_NOMEM;
        }
    }

    wish = member->refusal->wish;
    *member->refusal = *refusal;
    member->refusal->wish = wish;

    return KUBE_OK;
}


/*
 * Ends a slice at once, or with the next publication of the Service that
 * references it.  KUBE_OK; with a refusal also KUBE_NOMEM: nothing changed.
 */
static kube_rc_t
life_end_slice(kube_publisher_t *p, uint32_t entry,
    const kube_refusal_t *refusal, uint64_t read_ms)
{
    kube_rc_t       rc;
    kube_group_t   *group, *owner;
    kube_member_t  *member;

    member = &p->index.members[entry];
    group = member->group;

    if (refusal == NULL) {
        kube_publication_unwish(&p->publication, entry);
        kube_free(p->alloc, member->refusal);
        member->refusal = NULL;

    } else if (member->refusal != NULL
               || kube_service_index_owner(&p->index, entry) != 0)
    {
        rc = life_keep_refusal(p, member, refusal);
        if (rc != KUBE_OK) {
            return rc;
        }

        refusal = member->refusal;
    }

    if (member->life == KUBE_LIFE_DELETING) {
        return KUBE_OK;
    }

    /* its Service may come, again, while the list goes on */
    kube_service_queue_hold(&p->queue, group, member, read_ms);
    life_unlink(p, entry);
    group->pins++;

    if (kube_service_index_owner(&p->index, entry) == 0) {
        kube_publication_end(&p->publication, entry, refusal);

    } else {
        kube_member_set(member, KUBE_LIFE_DELETING);

        owner = p->index.members[member->referenced_by].group;
        kube_service_queue_hold(&p->queue, owner, member, read_ms);
        kube_service_queue_add(&p->queue, owner, member->resource, read_ms);
    }

    group->pins--;
    kube_eviction_release(&p->eviction, group);

    return KUBE_OK;
}


/* True if what is held stays, as the last good state of the same object. */
static bool
life_stays(const kube_publisher_t *p, uint32_t entry,
    const kube_refusal_t *refusal)
{
    kube_zone_item_t  item;

    return p->publication.conf.max_outdated_ms != 0
           && p->index.members[entry].life != KUBE_LIFE_DELETING
           && kube_zone_item_entry(p->publication.conf.writer, entry, &item)
              == KUBE_OK
           && (refusal->uid_hash == 0
               || refusal->uid_hash == kube_uid_hash(item.held.meta.uid));
}


/*
 * Notes which group wants what is there, if it is another one than that which
 * holds it; no third one wants it.  KUBE_OK, or KUBE_NOMEM: nothing changed.
 */
static kube_rc_t
life_wish(kube_publisher_t *p, kube_group_t *group, const kube_item_t *item,
    const kube_refusal_t *refusal)
{
    kube_rc_t       rc;
    kube_member_t  *member;

    member = &p->index.members[item->zone.entry];

    if (group == NULL || group == member->group || refusal->size == 0) {
        kube_publication_unwish(&p->publication, item->zone.entry);
        return KUBE_OK;
    }

    rc = life_keep_refusal(p, member, refusal);

    if (rc == KUBE_OK) {
        group->scope[member->resource] = (uint8_t) item->scope;
        kube_eviction_lacks(&p->eviction, &member->refusal->wish, group,
                            kube_eviction_charge(&p->eviction, refusal->size));
    }

    return rc;
}


/* The group, which may be NULL, is that whose the item is to be. */
static kube_rc_t
life_refuse(kube_publisher_t *p, kube_group_t *group, kube_item_t *item,
    const kube_refusal_t *refusal)
{
    kube_rc_t       rc;
    kube_member_t  *member;

    member = &p->index.members[item->zone.entry];

    if (member->life == KUBE_LIFE_NONE || member->life == KUBE_LIFE_REFUSED) {
        kube_publication_refuse(&p->publication, &item->zone, item->scope,
                                refusal);
        return KUBE_OK;
    }

    rc = life_wish(p, group, item, refusal);
    if (rc != KUBE_OK) {
        return rc;
    }

    if (life_stays(p, item->zone.entry, refusal)) {
        kube_publication_outdate(&p->publication, item->zone.entry, refusal);
        p->expire_ms = 0;
        return KUBE_OK;
    }

    if (kube_member_is_service(member)) {
        life_end_service(p, member->group, refusal);
        return KUBE_OK;
    }

    return life_end_slice(p, item->zone.entry, refusal, item->read_ms);
}


kube_rc_t
kube_publisher_refused(kube_publisher_t *p, kube_item_t *item)
{
    kube_refusal_t  refusal;

    refusal = (kube_refusal_t) {
        .reason = item->reason,
        .uid_hash = item->uid_hash
    };
    kube_refusal_set_rv(&refusal, item->zone.id.meta.rv);

    return life_refuse(p, NULL, item, &refusal);
}


void
kube_publisher_deleted(kube_publisher_t *p, const kube_item_t *item)
{
    kube_rc_t       rc;
    kube_member_t  *member;

    member = &p->index.members[item->zone.entry];

    switch (member->life) {

    case KUBE_LIFE_NONE:
        kube_publication_end_unnamed(&p->publication, &item->zone.id);
        return;

    case KUBE_LIFE_REFUSED:
        kube_publication_end_refused(&p->publication, item->zone.entry);
        return;
    }

    /* a Service goes with its next publication, and takes no room any more */
    if (kube_member_is_service(member)) {
        kube_member_set(member, KUBE_LIFE_DELETING);
        kube_eviction_size(&p->eviction, item->zone.entry, 0);
        kube_service_queue_add(&p->queue, member->group, member->resource,
                               item->read_ms);
        return;
    }

    /* without a refusal to keep no memory is needed: always KUBE_OK */
    rc = life_end_slice(p, item->zone.entry, NULL, item->read_ms);
    (void) rc;
}


/* Publishes the group's Service, or refuses it if the zone has no room. */
static void
life_publish_or_end(kube_publisher_t *p, kube_group_t *group,
    uint64_t read_ms)
{
    kube_rc_t       rc;
    kube_refusal_t  refusal;

    if (p->index.members[group->service].life == KUBE_LIFE_DELETING) {
        life_end_service(p, group, NULL);
        return;
    }

    rc = kube_publication_run(&p->publication, group, read_ms);

    if (rc != KUBE_OK) {
        refusal = life_no_room(p, group->service);

        /* that of an older version: no list would bring it */
        if (rc == KUBE_TOO_LARGE) {
            refusal.reason = kube_reason_text(KUBE_REASON_TOO_LARGE);
            refusal.size = 0;
        }

        life_end_service(p, group, &refusal);
    }
}


/*
 * Ends an object that no event ends: a death in the middle must not lose its
 * name.  KUBE_OK; KUBE_NOMEM: nothing changed.
 */
static kube_rc_t
life_let_go(kube_publisher_t *p, uint32_t entry,
    const kube_refusal_t *refusal)
{
    unsigned             scope;
    uint32_t             owner;
    kube_rc_t            rc;
    kube_member_t       *member;
    kube_zone_writer_t  *writer;

    member = &p->index.members[entry];

    if (kube_member_is_service(member)) {
        life_end_service(p, member->group, refusal);
        return KUBE_OK;
    }

    writer = p->publication.conf.writer;
    owner = kube_service_index_owner(&p->index, entry);
    scope = member->scope;
    kube_zone_evict_begin(writer, entry, scope);
    rc = life_end_slice(p, entry, refusal, KUBE_NEVER);

    /* its room returns once its Service was published without it */
    if (rc == KUBE_OK && owner != 0) {
        life_publish_or_end(p, p->index.members[owner].group, KUBE_NEVER);
    }

    kube_zone_evict_end(writer);

    return rc;
}


/* Evicts one object; its group goes on lacking it. */
static kube_rc_t
life_evict(kube_publisher_t *p, uint32_t entry)
{
    kube_refusal_t  refusal;

    refusal = life_no_room(p, entry);

    return life_let_go(p, entry, &refusal);
}


/*
 * Evicts a Service with all its slices, itself first: a Service that lost a
 * part of its slices would send all requests to the others.
 */
static kube_rc_t
life_evict_group(kube_publisher_t *p, kube_group_t *group)
{
    kube_rc_t  rc;

    rc = KUBE_OK;
    group->pins++;

    if (group->service != 0
        && p->index.members[group->service].life == KUBE_LIFE_DELETING)
    {
        life_end_service(p, group, NULL);
    }

    if (group->service != 0) {
        rc = life_evict(p, group->service);
    }

    while (rc == KUBE_OK && group->slices != 0) {
        rc = life_evict(p, group->slices);
    }

    group->pins--;
    kube_eviction_release(&p->eviction, group);

    return rc;
}


/*
 * Makes need bytes of room for the group, which is to grow by more bytes.
 * KUBE_OK, KUBE_FULL (nothing was evicted), KUBE_NOMEM.
 */
static kube_rc_t
life_make_room(kube_publisher_t *p, kube_group_t *group, uint64_t more,
    uint64_t need)
{
    kube_rc_t      rc;
    kube_group_t  *victims, *victim, *next;

    rc = kube_eviction_choose(&p->eviction, group, more, need, &victims);

    /* one may end as another one goes, that it shares a slice with */
    for (victim = victims; victim != NULL; victim = victim->victim) {
        victim->pins++;
    }

    for (victim = victims; victim != NULL; victim = next) {
        next = victim->victim;

        if (rc == KUBE_OK) {
            rc = life_evict_group(p, victim);
        }

        victim->pins--;
        kube_eviction_release(&p->eviction, victim);
    }

    return rc;
}


void
kube_publisher_found_refused(kube_publisher_t *p, kube_group_t *group,
    const kube_item_t *item)
{
    kube_member_t  *member;

    member = &p->index.members[item->zone.entry];

    /* the name of a slice does not say whose it was, nor one how large */
    if (member->lacks_room && kube_member_is_service(member)) {
        kube_eviction_lacks(&p->eviction, &member->lack, group,
                            kube_eviction_charge(&p->eviction, 0));
    }

    kube_eviction_release(&p->eviction, group);
}


void
kube_publisher_finish(kube_publisher_t *p)
{
    uint32_t              i;
    kube_group_t         *group;
    const kube_member_t  *member;

    for (i = 1; i <= kube_publisher_top(p); i++) {
        member = &p->index.members[i];
        group = (member->life == KUBE_LIFE_REFUSED) ? member->lack.group
                                                    : NULL;

        /* what is not evicted for want of memory is by the next list */
        if (group != NULL
            && group->service == 0
            && group->slices != 0
            && life_evict_group(p, group) != KUBE_OK)
        {
            return;
        }
    }
}


void
kube_publisher_trim(kube_publisher_t *p)
{
    unsigned       n;
    uint64_t       room;
    kube_rc_t      rc;
    kube_group_t  *last;

    rc = KUBE_OK;
    room = kube_zone_room(p->publication.conf.writer);

    for (n = 0;
         rc == KUBE_OK && n < LIFE_ROUNDS && p->eviction.bytes > room;
         n++)
    {
        last = kube_eviction_last(&p->eviction);

        /* what it lacks is wanted, but takes no room */
        if (last == NULL || p->eviction.bytes <= room + last->lacking) {
            break;
        }

            /* one that lacks a part already, for it is larger than the room */
        rc = (last->lacking != 0 && last->slices_n > 1)
             ? life_evict(p, last->slices)
             : life_evict_group(p, last);
    }
}


kube_rc_t
kube_publisher_expire(kube_publisher_t *p, uint32_t entry)
{
    kube_member_t        *member;
    kube_refusal_t        refusal;
    const kube_record_t  *record;

    member = &p->index.members[entry];

    if (member->life == KUBE_LIFE_DELETING) {
        return KUBE_OK;
    }

    record = kube_zone_newest(p->publication.conf.writer, entry);
    refusal = (kube_refusal_t) {
        .reason = kube_reason_text(kube_record_outdated_reason(record)),
        .size = life_lacked(member, record)
    };

    return life_let_go(p, entry, &refusal);
}


/* What the zone lacks if a group grows by more bytes. */
static uint64_t
life_excess(const kube_publisher_t *p, uint64_t more)
{
    uint64_t  room;

    room = kube_zone_room(p->publication.conf.writer);

    return (p->eviction.bytes + more > room)
           ? p->eviction.bytes + more - room : 0;
}


/*
 * True if the item is not to be taken yet, for which need bytes are missing: a
 * predecessor has refused objects, and what their Services demand is not known
 * until both resources are listed.  Nobody is evicted for what a list shows
 * until then, and of a Service that may be one of those no part is taken, with
 * which it would seem to have no endpoints.  Where an event tells of such a
 * Service, the lists are asked for.
 */
static bool
life_is_unranked(kube_publisher_t *p, const kube_group_t *group,
    const kube_item_t *item, uint64_t need)
{
    uint64_t              unnamed;
    const kube_member_t  *member;

    if (!kube_publication_guesses(&p->publication, item->scope, &unnamed)) {
        return false;
    }

    if (need != 0 && item->read_ms == KUBE_NEVER) {
        return true;
    }

    member = &p->index.members[item->zone.entry];

    if (group->bytes != 0
        || (unnamed == 0
            && group->lacking == 0
            && member->life != KUBE_LIFE_REFUSED)
        || kube_publisher_was_copied(p))
    {
        return false;
    }

    if (item->read_ms != KUBE_NEVER
        && life_is_service(item))
    {
        kube_publication_want(&p->publication, item->scope);
    }

    return true;
}


/*
 * Stages a newer record of what is held.  It may use the reserve while the
 * older one is there, but must fit in the end.
 */
static kube_rc_t
life_stage_update(kube_publisher_t *p, kube_group_t *group,
    kube_item_t *item, uint64_t more)
{
    kube_rc_t  rc;

    /* for want of room it is older than it could be */
    if (p->index.members[item->zone.entry].lacks_room
        && life_is_unranked(p, group, item, life_excess(p, more)))
    {
        return KUBE_FULL;
    }

    rc = (more != 0) ? life_make_room(p, group, more,
                                      life_excess(p, more))
                     : KUBE_OK;

    if (rc == KUBE_OK) {
        rc = kube_zone_stage_item(p->publication.conf.writer, &item->zone,
                                  KUBE_STAGE_USE_RESERVE);
    }

    return rc;
}


/*
 * A Service without its refs: were it taken first, no room that others make
 * would be enough for it with them.
 */
static size_t
life_record_max(const kube_publisher_t *p, const kube_item_t *item)
{
    const kube_zone_t  *zone;

    zone = p->publication.conf.zone;

    return life_is_service(item) ? kube_zone_service_max(zone)
                                 : kube_zone_record_max(zone);
}


/*
 * Stages the item's record, of another group or new; if need be, room is made
 * for it first.  It is taken where all that its Service lacks has room.
 */
static kube_rc_t
life_stage_new(kube_publisher_t *p, kube_group_t *group, kube_item_t *item,
    uint64_t more)
{
    unsigned   n;
    uint64_t   need;
    kube_rc_t  rc;

    more += kube_eviction_lacking(group, kube_publication_lack(
                                             &p->publication, &item->zone));
    more -= (group->bytes != 0) ? group->lacking : 0;
    rc = KUBE_FULL;

    for (n = 0; n < LIFE_ROUNDS; n++) {
        need = life_excess(p, more);

        if ((need != 0 && item->optional)
            || life_is_unranked(p, group, item, need))
        {
            return KUBE_FULL;
        }

        rc = life_make_room(p, group, more, need);

        if (rc != KUBE_OK || need == 0) {
            break;
        }
    }

    /* the reserve is there for what is in between: two versions of a record */
    return (rc == KUBE_OK) ? kube_zone_stage_item(p->publication.conf.writer,
                                                  &item->zone,
                                                  KUBE_STAGE_USE_RESERVE)
                           : rc;
}


/*
 * The same of what leaves another group: its older record goes once that was
 * published without it.  Were it counted in both, others would make room for
 * what has some, and get it back by a list.
 */
static kube_rc_t
life_stage_moved(kube_publisher_t *p, kube_group_t *group, kube_item_t *item,
    uint64_t more)
{
    uint32_t        entry, bytes;
    kube_rc_t       rc;
    kube_member_t  *member;

    entry = item->zone.entry;
    member = &p->index.members[entry];
    bytes = member->bytes;

    kube_eviction_size(&p->eviction, entry, 0);
    rc = life_stage_new(p, group, item, more);

    /* it may have made room for itself, and be in none */
    if (rc != KUBE_OK && member->group != NULL) {
        kube_eviction_size(&p->eviction, entry, bytes);
    }

    return rc;
}


/* Stages the item's record; if need be, room is made for it first. */
static kube_rc_t
life_stage(kube_publisher_t *p, kube_group_t *group, kube_item_t *item)
{
    uint64_t              more, grows;
    kube_rc_t             rc;
    const kube_member_t  *member;

    if (item->zone.record->size > life_record_max(p, item)) {
        return KUBE_TOO_LARGE;
    }

    member = &p->index.members[item->zone.entry];
    more = kube_eviction_charge(&p->eviction,
                                kube_record_base(item->zone.record));

    if (member->group != NULL && member->group != group) {
        return life_stage_moved(p, group, item, more);
    }

    if (member->group == group) {
        grows = (more > member->bytes) ? more - member->bytes : 0;
        rc = life_stage_update(p, group, item, grows);

        if (rc != KUBE_FULL) {
            return rc;
        }

        more = grows;
    }

    return life_stage_new(p, group, item, more);
}


/*
 * A Service enters its group: slices that came before it, and that another one
 * names, are readable with it alone, though that other one may go first.
 */
static void
life_await_slices(kube_publisher_t *p, kube_group_t *group, uint64_t read_ms)
{
    uint32_t              i;
    const kube_member_t  *member;

    for (i = group->slices; i != 0; i = member->next) {
        member = &p->index.members[i];

        if (member->life == KUBE_LIFE_STAGED) {
            kube_service_queue_add(&p->queue, group, member->resource,
                                   read_ms);
        }
    }
}


/* The item's record is staged: its member follows. */
static void
life_enter(kube_publisher_t *p, kube_group_t *group, const kube_item_t *item)
{
    kube_group_t   *old;
    kube_member_t  *member;

    member = &p->index.members[item->zone.entry];
    old = member->group;

    if (member->life == KUBE_LIFE_REFUSED) {
        kube_publication_unrefuse(&p->publication, item->zone.entry);

    } else {
        kube_publication_end_unnamed(&p->publication, &item->zone.id);
    }

    kube_publication_current(&p->publication, item->zone.entry);
    kube_publication_unwish(&p->publication, item->zone.entry);
    kube_free(p->alloc, member->refusal);
    member->refusal = NULL;

    if (old != NULL && old != group) {
        life_unlink(p, item->zone.entry);
        kube_service_queue_hold(&p->queue, old, member, item->read_ms);
        kube_service_queue_add(&p->queue, old, member->resource,
                               item->read_ms);
        kube_eviction_release(&p->eviction, old);
    }

    kube_member_set(kube_publisher_link(p, group, item), KUBE_LIFE_STAGED);

    if (kube_member_is_service(member)) {

        if (old == NULL) {
            life_await_slices(p, group, item->read_ms);
        }

    } else {
        kube_service_queue_hold(&p->queue, group, member, item->read_ms);

        if (group->service == 0 && member->referenced_by == 0) {
            kube_publication_orphan(&p->publication, item->zone.entry);

        } else if (group->service != 0
                   && item->trigger_ms > 0
                   && (group->trigger_ms == 0
                       || item->trigger_ms < group->trigger_ms))
        {
            group->trigger_ms = item->trigger_ms;
            group->trigger = (uint8_t) item->zone.id.resource;
        }
    }

    kube_service_queue_add(&p->queue, group, member->resource, item->read_ms);
}


/* True if the group can have the item: one publication has an end. */
static bool
life_has_place(const kube_publisher_t *p, const kube_group_t *group,
    const kube_item_t *item)
{
    return life_is_service(item)
           || group->name_len == 0
           || group->slices_n < kube_zone_slices_max(p->publication.conf.zone)
           || p->index.members[item->zone.entry].group == group;
}


/*
 * Refuses what could not be staged: KUBE_FULL or KUBE_TOO_LARGE, for which
 * there is a reason.  KUBE_FULL, or KUBE_NOMEM: nothing changed.
 */
static kube_rc_t
life_put_refused(kube_publisher_t *p, kube_group_t *group, kube_item_t *item,
    kube_rc_t rc, kube_reason_t reason)
{
    kube_refusal_t  refusal;

    refusal = (kube_refusal_t) {
        .uid_hash = kube_uid_hash(item->zone.id.meta.uid)
    };

    if (rc == KUBE_FULL) {
        reason = KUBE_REASON_ZONE_FULL;
        refusal.size = (uint32_t) kube_record_base(item->zone.record);
    }

    refusal.reason = kube_reason_text(reason);
    kube_refusal_set_rv(&refusal, item->zone.id.meta.rv);
    rc = life_refuse(p, group, item, &refusal);

    if (rc != KUBE_OK) {
        return rc;
    }

    /* a Service without a slice serves nothing, nor do slices without it */
    if (refusal.size != 0
        && (group->slices == 0
            || (group->service == 0 && life_is_service(item))))
    {
        rc = life_evict_group(p, group);
    }

    return (rc == KUBE_OK) ? KUBE_FULL : rc;
}


void
kube_publisher_blame(const kube_publisher_t *p, const kube_group_t *group,
    kube_publisher_blame_t *blame)
{
    kube_record_id_t      id;
    const kube_member_t  *member;

    member = &p->index.members[group->service];
    blame->ns = kube_group_ns(group);
    blame->name = kube_group_name(group);
    blame->uid = KUBE_STR_NULL;

    if (kube_zone_entry_id(p->publication.conf.writer, group->service, &id)
        == KUBE_OK
        && id.meta.uid.len <= sizeof(blame->buf))
    {
        memcpy(blame->buf, id.meta.uid.data, id.meta.uid.len);
        blame->uid = (kube_str_t) { blame->buf, id.meta.uid.len };
    }

    blame->what = (kube_hand_t) {
        .now_ms = p->publication.now_ms,
        .scope = member->scope,
        .resource = (kube_resource_t) member->resource,
        .blame = KUBE_BLAME_SERVICE,
        .ns = &blame->ns,
        .name = &blame->name,
        .uid = &blame->uid
    };
}


/*
 * True if the item would be given up by its Service's next turn, of which the
 * process has died (kube_publisher_crashed()).  Were it staged all the same,
 * others would make room for it, and get that back by a list, which brings it
 * again: without end.
 */
static bool
life_is_given_up(const kube_publisher_t *p, const kube_group_t *group,
    const kube_item_t *item, const kube_refusal_t *refusal)
{
    const kube_member_t     *member;
    kube_publisher_blame_t   blame;

    member = &p->index.members[item->zone.entry];

    if (p->publication.conf.hand == NULL
        || p->publication.conf.max_outdated_ms == 0
        || group->service == 0
        || p->index.members[group->service].life == KUBE_LIFE_DELETING
        || !life_is_readable(p, group->service))
    {
        return false;
    }

    /* one that moves, or is made anew, ends what another one names */
    if (member->life != KUBE_LIFE_NONE
        && member->life != KUBE_LIFE_REFUSED
        && (member->group != group
            || (member->referenced_by == 0 && !kube_member_is_service(member))
            || !life_stays(p, item->zone.entry, refusal)))
    {
        return false;
    }

    kube_publisher_blame(p, group, &blame);

    return kube_zone_poison_refuses(p->publication.conf.zone, &blame.what);
}


/*
 * Refuses what its Service would give up.  KUBE_FULL, or KUBE_NOMEM: nothing
 * changed; KUBE_NOT_FOUND: it is to be taken.
 */
static kube_rc_t
life_put_crashed(kube_publisher_t *p, kube_group_t *group, kube_item_t *item)
{
    kube_rc_t       rc;
    kube_refusal_t  refusal;

    refusal = (kube_refusal_t) {
        .reason = kube_reason_text(KUBE_REASON_CRASHED_INFORMER),
        .uid_hash = kube_uid_hash(item->zone.id.meta.uid)
    };
    kube_refusal_set_rv(&refusal, item->zone.id.meta.rv);

    if (!life_is_given_up(p, group, item, &refusal)) {
        return KUBE_NOT_FOUND;
    }

    rc = life_refuse(p, group, item, &refusal);

    if (rc != KUBE_OK) {
        return rc;
    }

    /* the Service says so itself in its turn; it may be its first slice */
    group->scope[item->zone.id.resource] = (uint8_t) item->scope;
    kube_service_queue_add(&p->queue, group,
                           (unsigned) item->zone.id.resource, item->read_ms);

    return KUBE_FULL;
}


kube_rc_t
kube_publisher_put(kube_publisher_t *p, kube_item_t *item)
{
    kube_rc_t           rc;
    kube_group_t       *group;
    kube_reason_t       reason;
    const kube_lack_t  *wish;

    group = kube_publisher_group(p, item);
    if (group == NULL) {
        return KUBE_NOMEM;
    }

    if (kube_zone_poison_is_known(p->publication.conf.zone)) {
        rc = life_put_crashed(p, group, item);

        if (rc != KUBE_NOT_FOUND) {
            return rc;
        }
    }

    group->pins++;
    wish = kube_member_wish(&p->index.members[item->zone.entry]);

    /* whoever else wanted an older version does not want this one */
    if (wish != NULL && wish->group != group) {
        kube_publication_unwish(&p->publication, item->zone.entry);
    }

    if (life_has_place(p, group, item)) {
        reason = KUBE_REASON_TOO_LARGE;
        rc = life_stage(p, group, item);

    } else {
        reason = KUBE_REASON_TOO_MANY_SLICES;
        rc = KUBE_TOO_LARGE;
        p->publication.scopes[item->scope].room.crowded = true;
        p->publication.scopes[item->scope].room.crowded_listed = true;
    }

    if (rc == KUBE_OK) {
        life_enter(p, group, item);
    }

    if (rc == KUBE_FULL) {
        kube_zone_count_failure(p->publication.conf.writer);
    }

    if (rc != KUBE_OK && rc != KUBE_NOMEM && !item->optional) {
        rc = life_put_refused(p, group, item, rc, reason);
    }

    group->pins--;
    kube_eviction_release(&p->eviction, group);

    return (rc == KUBE_OK || rc == KUBE_NOMEM) ? rc : KUBE_FULL;
}


/*
 * Publishes Services that still reference slices of this group, but without
 * them; these Services wait themselves and are published again in their turn.
 * Most had theirs before (kube_service_index_chain()): not who waits for this
 * one, nor of whom the process has died.
 */
static void
life_free_slices(kube_publisher_t *p, const kube_group_t *group)
{
    uint32_t              i, owner;
    const kube_member_t  *member;

    for (i = group->slices; i != 0; i = member->next) {
        member = &p->index.members[i];
        owner = kube_service_index_owner(&p->index, i);

        if (owner != 0 && owner != group->service) {
            life_publish_or_end(p, p->index.members[owner].group, KUBE_NEVER);
        }
    }
}


void
kube_publisher_publish(kube_publisher_t *p, kube_group_t *group,
    uint64_t read_ms)
{
    unsigned   n;
    kube_rc_t  rc;

    if (p->index.members[group->service].life == KUBE_LIFE_DELETING) {
        life_end_service(p, group, NULL);
        return;
    }

    group->pins++;
    life_free_slices(p, group);
    rc = KUBE_FULL;

    /* evicting a slice that this Service still references may end it, too */
    for (n = 0; n < LIFE_ROUNDS && group->service != 0; n++) {
        rc = kube_publication_run(&p->publication, group, read_ms);

        /* a record that was changed in the zone is no want of room */
        if (rc != KUBE_FULL || life_make_room(p, group, 0, 1) != KUBE_OK) {
            break;
        }
    }

    if (rc != KUBE_OK && group->service != 0) {
        life_publish_or_end(p, group, read_ms);
    }

    group->pins--;
    kube_eviction_release(&p->eviction, group);
}


/*
 * Gives up what is staged of a member that is published: its older record is
 * the newest, and outdated.
 */
static void
life_withdraw(kube_publisher_t *p, uint32_t entry,
    const kube_refusal_t *refusal)
{
    kube_member_t       *member;
    kube_zone_writer_t  *writer;

    member = &p->index.members[entry];
    writer = p->publication.conf.writer;

    if (member->life == KUBE_LIFE_STAGED) {
        kube_publication_current(&p->publication, entry);
        kube_zone_unstage(writer, entry);
        kube_member_set(member, member->referenced_by != 0
                                ? KUBE_LIFE_REFERENCED : KUBE_LIFE_LINKED);
        kube_eviction_size(&p->eviction, entry,
                           kube_eviction_charge(&p->eviction,
                               kube_record_base(kube_zone_newest(writer,
                                                                 entry))));
    }

    kube_publication_outdate(&p->publication, entry, refusal);
    p->expire_ms = 0;
}


void
kube_publisher_crashed(kube_publisher_t *p, kube_group_t *group)
{
    uint32_t              i, next;
    kube_rc_t             rc;
    kube_refusal_t        refusal, wanted;
    const kube_member_t  *member;

    refusal = (kube_refusal_t) {
        .reason = kube_reason_text(KUBE_REASON_CRASHED_INFORMER)
    };

    kube_zone_scope_add(p->publication.conf.zone,
                        p->index.members[group->service].scope,
                        KUBE_COUNTER_SKIPPED_CRASHED, 1);

    if (p->publication.conf.max_outdated_ms == 0
        || !life_is_readable(p, group->service))
    {
        life_end_service(p, group, &refusal);
        return;
    }

    group->pins++;

    for (i = group->slices; i != 0; i = next) {
        member = &p->index.members[i];
        next = member->next;

        if (member->life != KUBE_LIFE_STAGED) {
            continue;
        }

        /*
         * A new one is a name: a slice that its Service does not name is let
         * go at the next take-over.  One that another Service still names
         * waits.  What another one wants, and has no room for, goes on lacking
         * there: its newest version is not of the Service that crashed.
         */

        wanted = (kube_member_wish(member) != NULL) ? life_no_room(p, i)
                                                    : refusal;

        if (!life_is_readable(p, i)) {
            rc = life_end_slice(p, i, &wanted, KUBE_NEVER);
            (void) rc;

        } else if (member->referenced_by == 0
                   || member->referenced_by == group->service)
        {
            life_withdraw(p, i, &wanted);
        }
    }

    life_withdraw(p, group->service, &refusal);
    group->pins--;
}
