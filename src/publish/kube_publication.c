/*
 * kube_publication - how objects become readable, and cease to be.
 *
 * Order of stores: what is new goes out with the Service's head, what is gone
 * goes out of the zone only then (kube_publication.h says why).  For the files
 * of src/publish; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>

#include "kube_publication.h"
#include "kube_zone_counters.h"
#include "kube_zone_ring.h"
#include "kube_zone_scope.h"
#include "kube_zone_writer.h"


/* Of publication_key_text(); escaped, a key may be longer and is cut. */
#define PUBLICATION_KEY_MAX       384

/* last-change-trigger-time has whole seconds. */
#define PUBLICATION_TRIGGER_MS    1000


typedef enum {
    PUBLICATION_SAME = 0,
    PUBLICATION_ADD,
    PUBLICATION_UPDATE
} publication_change_t;

/* What a publication changes in the sums of one scope. */
typedef struct {
    uint64_t       added;         /* modulo 2^64: objects may go, too */
    kube_digest_t  more;
    kube_digest_t  less;
    bool           changed;
} publication_diff_t;


kube_rc_t
kube_publication_init(kube_publication_t *p, const kube_alloc_t *alloc,
    const kube_publisher_conf_t *conf, kube_service_index_t *index,
    kube_eviction_t *eviction)
{
    memset(p, 0, sizeof(kube_publication_t));

    p->alloc = alloc;
    p->conf = *conf;
    p->index = index;
    p->eviction = eviction;
    p->unnamed.alloc = alloc;
    p->unnamed.seed = conf->seed;
    kube_log_init(&p->log, conf->sink);

    return kube_unnamed_init(&p->unnamed);
}


void
kube_publication_done(kube_publication_t *p)
{
    kube_unnamed_done(&p->unnamed);
}


void
kube_publication_reset(kube_publication_t *p)
{
    memset(p->scopes, 0, sizeof(p->scopes));
    kube_unnamed_clear(&p->unnamed);
}


/* What readers find of an entry, but for the name of a refused object. */
static const kube_record_t *
publication_readable(const kube_publication_t *p, uint32_t entry)
{
    const kube_record_t  *record;

    record = kube_zone_published(p->conf.writer, entry);

    if (record == NULL || record->kind == KUBE_RECORD_REFUSED) {
        return NULL;
    }

    return record;
}


/* True if the record is one of those that count and digest are about. */
static bool
publication_counts(const kube_record_t *record)
{
    return record != NULL && !(record->flags & KUBE_RECORD_F_OUTDATED);
}


/* The same, where it lies. */
static bool
publication_place(const kube_publication_t *p, uint32_t entry,
    kube_zone_place_t *place)
{
    return kube_zone_place_published(p->conf.writer, entry, place)
           && place->header.kind != KUBE_RECORD_REFUSED;
}


static void
publication_sum_less(kube_scope_sum_t *sum, const kube_record_t *record)
{
    sum->count--;
    kube_digest_sub(&sum->digest, kube_record_digest(record));
}


/*
 * Compares what is staged of an entry with what readers see of it; before_rv
 * is the version of that.
 */
static publication_change_t
publication_diff(const kube_publication_t *p, uint32_t entry,
    publication_diff_t *diff, kube_rv_t *before_rv)
{
    bool                  is_update;
    kube_zone_place_t     before, staged;
    publication_change_t  change;

    before_rv->len = 0;

    if (p->index->members[entry].life != KUBE_LIFE_STAGED
        || !kube_zone_place_staged(p->conf.writer, entry, &staged))
    {
        return PUBLICATION_SAME;
    }

    is_update = publication_place(p, entry, &before);

    if (is_update
        && kube_rv_parse(kube_zone_place_rv(p->conf.writer, &before),
                         before_rv) != KUBE_OK)
    {
        before_rv->len = 0;
    }

    if (is_update && publication_counts(&before.header)) {
        diff->added--;
        kube_digest_add(&diff->less,
                        kube_zone_place_digest(p->conf.writer, &before));
    }

    if (publication_counts(&staged.header)) {
        diff->added++;
        kube_digest_add(&diff->more,
                        kube_zone_place_digest(p->conf.writer, &staged));
    }

    /* what is staged has the revision of what it does not change */
    change = !is_update ? PUBLICATION_ADD
             : (before.header.revision == staged.header.revision)
             ? PUBLICATION_SAME : PUBLICATION_UPDATE;

    if (change != PUBLICATION_SAME) {
        diff->changed = true;
    }

    return change;
}


static void
publication_sum(kube_scope_sum_t *sum, const publication_diff_t *diff)
{
    sum->count += diff->added;
    kube_digest_add(&sum->digest, diff->more);
    kube_digest_sub(&sum->digest, diff->less);
}


/* Readers see the change: the listener and the event ring are told. */
static void
publication_tell(kube_publication_t *p, uint32_t entry,
    publication_change_t change, const kube_rv_t *before_rv)
{
    kube_record_id_t   id;
    kube_zone_event_t  event;

    if (change == PUBLICATION_SAME) {
        return;
    }

    if (kube_zone_entry_id(p->conf.writer, entry, &id) == KUBE_OK) {
        kube_zone_event_set(&event, change == PUBLICATION_ADD
                                    ? KUBE_ZONE_EVENT_ADD
                                    : KUBE_ZONE_EVENT_UPDATE,
                            &id, kube_rv_str(before_rv));
        kube_zone_ring_append(p->conf.writer, &event);
    }

    if (p->conf.change != NULL) {
        p->conf.change(p->conf.change_ctx,
                       change == PUBLICATION_ADD ? KUBE_CHANGE_ADD
                                                 : KUBE_CHANGE_UPDATE,
                       kube_zone_published(p->conf.writer, entry));
    }
}


static size_t
publication_gather(kube_publication_t *p, const kube_group_t *group)
{
    size_t                n;
    uint32_t              i;
    const kube_member_t  *member;

    n = 0;

    for (i = group->slices; i != 0; i = member->next) {
        member = &p->index->members[i];

        if (n < KUBE_SERVICE_SLICES_MAX
            && (member->referenced_by == 0
                || member->referenced_by == group->service))
        {
            p->slices[n++] = i;
        }
    }

    return n;
}


size_t
kube_publication_refs(kube_publication_t *p, uint32_t service)
{
    size_t             n;
    uint32_t           i;
    kube_ref_t         ref;
    kube_zone_place_t  place;

    if (!publication_place(p, service, &place)) {
        return 0;
    }

    n = 0;

    for (i = 0; i < place.header.refs_n && n < KUBE_SERVICE_SLICES_MAX; i++) {
        ref = kube_zone_place_ref(p->conf.writer, &place, i);

        if (ref.entry != 0 && ref.entry <= p->index->entries_n) {
            p->refs[n++] = ref.entry;
        }
    }

    return n;
}


void
kube_publication_orphan(kube_publication_t *p, uint32_t slice)
{
    kube_rv_t              before_rv;
    kube_member_t         *member;
    publication_diff_t     diff;
    publication_change_t   change;

    memset(&diff, 0, sizeof(publication_diff_t));

    member = &p->index->members[slice];
    change = publication_diff(p, slice, &diff, &before_rv);

    kube_zone_publish_orphan(p->conf.writer, slice);
    kube_member_set(member, KUBE_LIFE_LINKED);

    publication_sum(&p->scopes[member->scope].sum, &diff);
    publication_tell(p, slice, change, &before_rv);
}


/* Ends or re-publishes a slice that its Service references no more. */
static void
publication_unreference(kube_publication_t *p, uint32_t slice)
{
    kube_member_t  *member;

    member = &p->index->members[slice];
    member->referenced_by = 0;

    if (member->life == KUBE_LIFE_DELETING) {
        kube_publication_end(p, slice, member->refusal);

    } else if (member->group->service == 0) {
        kube_publication_orphan(p, slice);
    }
}


/* For how long the watch is open that brought the group's slices. */
static uint64_t
publication_watched_ms(const kube_publication_t *p, const kube_group_t *group)
{
    uint64_t  since_ms;

    since_ms = kube_zone_scope_counter(p->conf.zone,
                                       group->scope[group->trigger],
                                       KUBE_COUNTER_GAUGE_WATCH_OPEN);

    return (since_ms != 0 && since_ms < p->now_ms) ? p->now_ms - since_ms : 0;
}


static void
publication_observe(kube_publication_t *p, kube_group_t *group,
    const publication_diff_t *diff, uint64_t read_ms)
{
    int64_t               took_ms;
    kube_resource_t       r, resource;
    const kube_member_t  *service;

    service = &p->index->members[group->service];
    resource = (kube_resource_t) service->resource;

    /* most changes are of slices: a Service's own counts only alone */
    for (r = 0; r < KUBE_RESOURCES_ROUTED; r++) {
        if (diff[r].changed
            && kube_resource_info(r)->shape == KUBE_SHAPE_SLICE)
        {
            resource = r;
            break;
        }
    }

    if (read_ms != KUBE_NEVER && read_ms <= p->now_ms) {
        kube_zone_histogram_observe(p->conf.zone,
                                    KUBE_HISTOGRAM_PUBLISH_LATENCY, resource,
                                    (p->now_ms - read_ms) * 1000);
    }

    if (group->trigger_ms == 0) {
        return;
    }

    took_ms = p->now_unix_ms - group->trigger_ms;
    group->trigger_ms = 0;

    if (took_ms < 0
        || (uint64_t) took_ms > publication_watched_ms(p, group)
                                + PUBLICATION_TRIGGER_MS)
    {
        kube_zone_scope_add(p->conf.zone, group->scope[group->trigger],
                            KUBE_COUNTER_TRIGGERS_IGNORED, 1);
        return;
    }

    kube_zone_histogram_observe(p->conf.zone,
                                KUBE_HISTOGRAM_PROGRAMMING_LATENCY,
                                (kube_resource_t) group->trigger,
                                (uint64_t) took_ms * 1000);
}


kube_rc_t
kube_publication_run(kube_publication_t *p, kube_group_t *group,
    uint64_t read_ms)
{
    bool                   changed;
    size_t                 i, n, refs_n;
    uint32_t               service;
    kube_rc_t              rc;
    kube_rv_t              before_rv;
    kube_member_t         *member;
    publication_diff_t     diff[KUBE_RESOURCES_ROUTED];
    publication_change_t   service_change;

    service = group->service;
    memset(diff, 0, sizeof(diff));

    n = publication_gather(p, group);
    refs_n = kube_publication_refs(p, service);

    member = &p->index->members[service];
    service_change = publication_diff(p, service, &diff[member->resource],
                                      &before_rv);

    for (i = 0; i < n; i++) {
        member = &p->index->members[p->slices[i]];
        p->changes[i] = (uint8_t) publication_diff(p, p->slices[i],
                                                   &diff[member->resource],
                                                   &p->before_rvs[i]);
    }

    rc = kube_zone_publish(p->conf.writer, service, p->slices, n, &changed);
    if (rc != KUBE_OK) {
        return rc;
    }

    for (i = 0; i < KUBE_RESOURCES_ROUTED; i++) {
        publication_sum(&p->scopes[group->scope[i]].sum, &diff[i]);
    }

    group->shown = (uint16_t) n;
    kube_member_set(&p->index->members[service], KUBE_LIFE_LINKED);
    publication_tell(p, service, service_change, &before_rv);

    for (i = 0; i < n; i++) {
        member = &p->index->members[p->slices[i]];
        member->referenced_by = service;
        kube_member_set(member, KUBE_LIFE_REFERENCED);
        publication_tell(p, p->slices[i],
                         (publication_change_t) p->changes[i],
                         &p->before_rvs[i]);
    }

    for (i = 0; i < refs_n; i++) {
        member = &p->index->members[p->refs[i]];

        if (member->referenced_by == service
            && member->life != KUBE_LIFE_REFERENCED)
        {
            publication_unreference(p, p->refs[i]);
        }
    }

    if (changed) {
        publication_observe(p, group, diff, read_ms);
    }

    return KUBE_OK;
}


/* "services shop/web", for the log. */
static void
publication_key_text(char *text, size_t size, const kube_record_id_t *id)
{
    char  ns[KUBE_NAMESPACE_LEN_MAX + 1];
    char  name[KUBE_NAME_LEN_MAX + 1];

    (void) kube_str_escape(ns, sizeof(ns), id->meta.ns);
    (void) kube_str_escape(name, sizeof(name), id->meta.name);
    (void) snprintf(text, size, "%s %s/%s", kube_resource_text(id->resource),
                    ns, name);
}


static void
publication_log_refused(kube_publication_t *p, const char *key,
    const kube_refusal_t *refusal, const char *what)
{
    kube_log_event(&p->log, p->now_ms, KUBE_LOG_WARN,
                   refusal->size != 0 ? KUBE_EV_ZONE_FULL : KUBE_EV_REFUSED,
                   "%s is not held: %.*s%s", key, (int) refusal->reason.len,
                   refusal->reason.data, what);

    if (refusal->size != 0) {
        (void) snprintf(p->lacking, sizeof(p->lacking), "%s", key);
    }
}


/* Counts a name or an outdated object. */
static void
publication_count_refused(kube_publication_t *p, kube_member_t *member,
    bool lacks_room)
{
    kube_publication_scope_t  *scope;

    scope = &p->scopes[member->scope];
    scope->sum.refused++;
    scope->room.refused += lacks_room;
    member->lacks_room = lacks_room;
}


static void
publication_uncount_refused(kube_publication_t *p, kube_member_t *member)
{
    kube_publication_scope_t  *scope;

    scope = &p->scopes[member->scope];
    scope->sum.refused--;
    scope->room.refused -= member->lacks_room;
    member->lacks_room = false;
}


static void
publication_set_refused(kube_publication_t *p, uint32_t entry,
    kube_resource_t resource, unsigned scope, bool lacks_room)
{
    kube_member_t  *member;

    member = &p->index->members[entry];
    kube_member_set(member, KUBE_LIFE_REFUSED);

    member->resource = (uint8_t) resource;
    member->scope = (uint8_t) scope;
    publication_count_refused(p, member, lacks_room);
}


/* What an object lacks is not lacking any more. */
static void
publication_lacks_no_more(kube_publication_t *p, kube_lack_t *lack)
{
    kube_group_t  *group;

    group = lack->group;

    if (group != NULL) {
        kube_eviction_lacks(p->eviction, lack, group, 0);
        kube_eviction_release(p->eviction, group);
    }
}


void
kube_publication_unrefuse(kube_publication_t *p, uint32_t entry)
{
    publication_lacks_no_more(p, &p->index->members[entry].lack);
    publication_uncount_refused(p, &p->index->members[entry]);
    kube_service_index_forget(p->index, entry);
}


static void
publication_unnamed_remove(kube_publication_t *p, kube_unnamed_row_t *row)
{
    kube_room_t  *room;

    room = &p->scopes[row->scope].room;
    room->unnamed--;
    room->nameless -= (row->lack.group == NULL);
    publication_lacks_no_more(p, &row->lack);
    kube_unnamed_remove(&p->unnamed, row);
}


void
kube_publication_end_unnamed(kube_publication_t *p,
    const kube_record_id_t *id)
{
    kube_unnamed_row_t  *row;

    row = kube_unnamed_find(&p->unnamed, id);

    if (row != NULL) {
        publication_unnamed_remove(p, row);
    }
}


const kube_lack_t *
kube_publication_lack(const kube_publication_t *p,
    const kube_zone_item_t *item)
{
    const kube_member_t       *member;
    const kube_unnamed_row_t  *row;

    if (item->entry != 0) {
        member = &p->index->members[item->entry];
        return (member->life == KUBE_LIFE_REFUSED) ? &member->lack
                                                   : kube_member_wish(member);
    }

    row = kube_unnamed_find(&p->unnamed, &item->id);

    return (row != NULL) ? &row->lack : NULL;
}


bool
kube_publication_guesses(const kube_publication_t *p, unsigned scope,
    uint64_t *unnamed)
{
    bool                guesses;
    unsigned            i, end;
    const kube_room_t  *room;

    guesses = false;
    *unnamed = 0;
    i = scope - scope % KUBE_SCOPES_A_NAMESPACE;
    end = i + KUBE_SCOPES_A_NAMESPACE;

    for ( /* void */ ; i < end && i < KUBE_SCOPES_MAX; i++) {
        room = &p->scopes[i].room;
        guesses |= (room->unknown != 0);
        *unnamed += room->more;
    }

    return guesses;
}


void
kube_publication_want(kube_publication_t *p, unsigned scope)
{
    unsigned      i, end;
    kube_room_t  *room;

    i = scope - scope % KUBE_SCOPES_A_NAMESPACE;
    end = i + KUBE_SCOPES_A_NAMESPACE;

    for ( /* void */ ; i < end && i < KUBE_SCOPES_MAX; i++) {
        room = &p->scopes[i].room;
        room->wanted = (room->unknown != 0);
    }
}


void
kube_publication_list_begin(kube_publication_t *p, unsigned scope)
{
    kube_room_t  *room;

    room = &p->scopes[scope].room;
    room->list++;
    room->more_listed = 0;
    room->crowded = false;
    room->has_place = false;
    room->wanted = false;
    room->returned = false;
    room->asked = false;
    room->urgent = false;
}


void
kube_publication_list_end(kube_publication_t *p, unsigned scope)
{
    size_t               bucket;
    kube_room_t         *room;
    kube_unnamed_row_t  *row;

    room = &p->scopes[scope].room;
    room->more = room->more_listed;
    room->unknown = 0;
    room->wanted = false;
    room->larger = false;
    room->interrupted = false;
    bucket = 0;

    while ((row = kube_unnamed_unseen(&p->unnamed, scope, room->list, &bucket))
           != NULL)
    {
        publication_unnamed_remove(p, row);
    }
}


void
kube_publication_refill_begin(kube_publication_t *p, unsigned scope)
{
    kube_room_t  *room;

    room = &p->scopes[scope].room;
    room->crowded_listed = false;
    room->has_place = false;
    room->returned = false;
    room->asked = false;
    room->urgent = false;
}


void
kube_publication_refill_end(kube_publication_t *p, unsigned scope, bool whole)
{
    kube_room_t  *room;

    room = &p->scopes[scope].room;

    if (whole) {
        room->crowded = room->crowded_listed;

    } else {
        room->has_place = room->crowded;
    }
}


/*
 * The group that lacks an object of this identity, in use until it is left;
 * NULL: it belongs to none, or memory is missing.
 */
static kube_group_t *
publication_group(kube_publication_t *p, const kube_record_id_t *id,
    unsigned scope)
{
    kube_str_t     service;
    kube_group_t  *group;

    service = (kube_resource_info(id->resource)->shape == KUBE_SHAPE_SERVICE)
              ? id->meta.name : id->service;

    if (id->meta.ns.len > KUBE_NAMESPACE_LEN_MAX
        || service.len > KUBE_NAME_LEN_MAX)
    {
        return NULL;
    }

    group = kube_service_index_get(p->index, id->meta.ns, service);

    if (group == NULL) {
        return NULL;
    }

    if (kube_eviction_add(p->eviction, group) != KUBE_OK) {
        kube_eviction_release(p->eviction, group);
        return NULL;
    }

    group->scope[id->resource] = (uint8_t) scope;
    group->pins++;

    return group;
}


static void
publication_group_leave(kube_publication_t *p, kube_group_t *group)
{
    if (group != NULL) {
        group->pins--;
        kube_eviction_release(p->eviction, group);
    }
}


/* The same for what is refused: for want of room, or nobody lacks it. */
static kube_group_t *
publication_group_lacking(kube_publication_t *p, const kube_record_id_t *id,
    unsigned scope, const kube_refusal_t *refusal)
{
    if (refusal->size == 0) {
        return NULL;
    }

    if (refusal->wish.group == NULL) {
        return publication_group(p, id, scope);
    }

    refusal->wish.group->pins++;

    return refusal->wish.group;
}


/* The group lacks one object more; NULL: nobody does. */
static void
publication_lacks(kube_publication_t *p, kube_lack_t *lack,
    kube_group_t *group, uint32_t size)
{
    if (group != NULL) {
        kube_eviction_lacks(p->eviction, lack, group,
                            kube_eviction_charge(p->eviction, size));
    }
}


/*
 * Counts an object that is refused without a name: before it ends.  list: the
 * one of its scope that saw it last.
 */
static void
publication_count_unnamed(kube_publication_t *p, const kube_record_id_t *id,
    unsigned scope, kube_group_t *group, uint32_t size, uint32_t list)
{
    kube_room_t         *room;
    kube_unnamed_row_t  *row;

    room = &p->scopes[scope].room;
    row = kube_unnamed_find(&p->unnamed, id);

    if (row == NULL) {
        kube_zone_scope_unnamed(p->conf.writer, scope);
        row = kube_unnamed_add(&p->unnamed, id);

        if (row == NULL) {
            room->more++;
            room->more_listed++;
            return;
        }

        row->scope = (uint8_t) scope;
        room->unnamed++;

    } else {
        room->nameless -= (row->lack.group == NULL);
        publication_lacks_no_more(p, &row->lack);
    }

    row->list = list;
    publication_lacks(p, &row->lack, group, size);
    room->nameless += (row->lack.group == NULL);
}


void
kube_publication_outdate(kube_publication_t *p, uint32_t entry,
    const kube_refusal_t *refusal)
{
    char                  key[PUBLICATION_KEY_MAX];
    uint64_t              since_ms;
    kube_member_t        *member;
    kube_zone_item_t      item;
    const kube_record_t  *record;

    member = &p->index->members[entry];
    record = kube_zone_newest(p->conf.writer, entry);
    since_ms = p->now_ms;

    if (member->outdated) {
        since_ms = kube_record_outdated_since(record);
        publication_uncount_refused(p, member);

    } else if (record->kind != KUBE_RECORD_REFUSED
               && !kube_zone_is_staged(p->conf.writer, entry)
               && publication_counts(record))
    {
        publication_sum_less(&p->scopes[member->scope].sum, record);
    }

    kube_zone_outdate(p->conf.writer, entry, kube_reason_of(refusal->reason),
                      since_ms);
    member->outdated = true;
    member->wants = (uint16_t) (refusal->size / KUBE_WANTS_UNIT);
    p->outdated = true;
    publication_count_refused(p, member, refusal->size != 0);

    if (kube_zone_item_entry(p->conf.writer, entry, &item) == KUBE_OK) {
        publication_key_text(key, sizeof(key), &item.id);
        publication_log_refused(p, key, refusal,
                                "; its last good version is served");
    }
}


void
kube_publication_unwish(kube_publication_t *p, uint32_t entry)
{
    if (p->index->members[entry].refusal != NULL) {
        publication_lacks_no_more(p, &p->index->members[entry].refusal->wish);
    }
}


void
kube_publication_current(kube_publication_t *p, uint32_t entry)
{
    kube_member_t  *member;

    member = &p->index->members[entry];

    if (member->outdated) {
        member->outdated = false;
        publication_uncount_refused(p, member);
    }
}


/*
 * Names a key whose row is NONE.  Where its name has no room: it is still
 * there if it is named already, else it is counted.  False: it is not there.
 */
static bool
publication_name(kube_publication_t *p, kube_zone_item_t *item, unsigned scope,
    const kube_refusal_t *refusal, bool named, uint32_t list)
{
    char                 key[PUBLICATION_KEY_MAX];
    kube_rc_t            rc;
    kube_group_t        *group;
    kube_resource_t      resource;
    kube_unnamed_row_t  *row;

    /* the item's names may lie in the record that is replaced */
    resource = item->id.resource;
    publication_key_text(key, sizeof(key), &item->id);
    row = kube_unnamed_find(&p->unnamed, &item->id);
    group = publication_group_lacking(p, &item->id, scope, refusal);

    rc = kube_zone_refuse(p->conf.writer, item, kube_rv_str(&refusal->rv),
                          refusal->reason);
    named = named || rc == KUBE_OK;

    if (!named) {
        publication_count_unnamed(p, &item->id, scope, group, refusal->size,
                                  list);

    } else {
        if (row != NULL) {
            publication_unnamed_remove(p, row);
        }

        publication_set_refused(p, item->entry, resource, scope,
                                refusal->size != 0);
        publication_lacks(p, &p->index->members[item->entry].lack, group,
                          refusal->size);
    }

    publication_log_refused(p, key, refusal, named
                            ? "" : ", and the zone has no room for its name");
    publication_group_leave(p, group);

    return named;
}


void
kube_publication_refuse(kube_publication_t *p, kube_zone_item_t *item,
    unsigned scope, const kube_refusal_t *refusal)
{
    bool  named;

    named = (p->index->members[item->entry].life == KUBE_LIFE_REFUSED);

    if (named) {
        kube_publication_unrefuse(p, item->entry);
    }

    named = publication_name(p, item, scope, refusal, named,
                             p->scopes[scope].room.list);
    (void) named;
}


/*
 * What the scope is found to lack, or to have outdated, for a reason.  A
 * predecessor that allowed less has refused what may fit: that is listed.
 */
static void
publication_found_reason(kube_publication_t *p, unsigned scope,
    kube_reason_t reason, bool lacks_room)
{
    bool          larger;
    kube_room_t  *room;

    room = &p->scopes[scope].room;
    larger = (p->larger && reason == KUBE_REASON_TOO_LARGE);

    room->unknown += (lacks_room || larger);
    room->wanted |= larger;
    room->larger |= larger;
    room->crowded |= (reason == KUBE_REASON_TOO_MANY_SLICES);
}


void
kube_publication_found_refused(kube_publication_t *p, const kube_item_t *item)
{
    bool            lacks_room;
    kube_reason_t   reason;

    reason = kube_reason_of(item->zone.id.reason);

    /* the room that the latter was to have is not known to be there still */
    lacks_room = (reason == KUBE_REASON_ZONE_FULL
                  || reason == KUBE_REASON_INTERRUPTED);

    publication_set_refused(p, item->zone.entry, item->zone.id.resource,
                            item->scope, lacks_room);
    publication_found_reason(p, item->scope, reason, lacks_room);
    p->scopes[item->scope].room.wanted |= (reason == KUBE_REASON_INTERRUPTED);
}


void
kube_publication_found(kube_publication_t *p, uint32_t entry)
{
    kube_member_t        *member;
    kube_reason_t         reason;
    kube_scope_sum_t     *sum;
    const kube_record_t  *record;

    member = &p->index->members[entry];
    record = kube_zone_newest(p->conf.writer, entry);

    if (publication_counts(record)) {
        sum = &p->scopes[member->scope].sum;
        sum->count++;
        kube_digest_add(&sum->digest, kube_record_digest(record));
        return;
    }

    member->outdated = true;
    p->outdated = true;
    reason = kube_record_outdated_reason(record);
    publication_count_refused(p, member, reason == KUBE_REASON_ZONE_FULL);
    publication_found_reason(p, member->scope, reason, member->lacks_room);
}


void
kube_publication_end_refused(kube_publication_t *p, uint32_t entry)
{
    kube_publication_unrefuse(p, entry);
    kube_zone_remove(p->conf.writer, entry);
}


/*
 * An object ends, but for its name where it is refused, by which who wanted it
 * lacks it from then on.
 */
static void
publication_remove(kube_publication_t *p, uint32_t entry, unsigned scope,
    const kube_refusal_t *refusal)
{
    bool              named;
    uint32_t          list;
    kube_refusal_t   *own;
    kube_zone_item_t  item;

    named = false;

    /* one that a list has not shown yet may be gone */

    list = p->scopes[scope].room.list;
    list -= (p->index->members[entry].list != (uint8_t) list);

    /* it may be the refusal */
    own = p->index->members[entry].refusal;
    p->index->members[entry].refusal = NULL;
    kube_service_index_forget(p->index, entry);

    if (refusal != NULL) {

        if (kube_zone_item_entry(p->conf.writer, entry, &item) != KUBE_OK) {
            kube_zone_scope_unnamed(p->conf.writer, scope);
            p->scopes[scope].room.more++;
            p->scopes[scope].room.more_listed++;

        } else {
            named = publication_name(p, &item, scope, refusal, false, list);
        }
    }

    if (!named) {
        kube_zone_remove(p->conf.writer, entry);
    }

    if (own != NULL) {
        publication_lacks_no_more(p, &own->wish);
        kube_free(p->alloc, own);
    }
}


void
kube_publication_end(kube_publication_t *p, uint32_t entry,
    const kube_refusal_t *refusal)
{
    bool                  readable;
    unsigned              scope;
    kube_record_id_t      id;
    kube_zone_event_t     event;
    const kube_record_t  *record;

    scope = p->index->members[entry].scope;
    record = publication_readable(p, entry);
    kube_publication_current(p, entry);

    if (publication_counts(record)) {
        publication_sum_less(&p->scopes[scope].sum, record);
    }

    /* now, for afterwards the record's memory is the zone's */
    readable = (record != NULL
                && kube_record_id(record, record->size, &id) == KUBE_OK);

    if (readable) {
        kube_zone_event_set(&event, (refusal == NULL)
                                    ? KUBE_ZONE_EVENT_DELETE
                                    : KUBE_ZONE_EVENT_REFUSE,
                            &id, KUBE_STR_NULL);
    }

    if (record != NULL && p->conf.change != NULL) {
        p->conf.change(p->conf.change_ctx, (refusal == NULL)
                                           ? KUBE_CHANGE_DELETE
                                           : KUBE_CHANGE_REFUSE, record);
    }

    publication_remove(p, entry, scope, refusal);

    if (readable) {
        kube_zone_ring_append(p->conf.writer, &event);
    }
}


void
kube_publication_end_service(kube_publication_t *p, uint32_t service,
    const kube_refusal_t *refusal)
{
    size_t          i, n;
    uint32_t        slice;
    kube_group_t   *group;
    kube_member_t  *member;

    group = p->index->members[service].group;
    n = kube_publication_refs(p, service);

    kube_service_index_unlink(p->index, service);
    group->trigger_ms = 0;
    group->shown = 0;

    kube_publication_end(p, service, refusal);

    for (i = 0; i < n; i++) {
        member = &p->index->members[p->refs[i]];

        if (member->referenced_by == service) {
            publication_unreference(p, p->refs[i]);
        }
    }

    /* those that were staged and waited for this Service */
    for (slice = group->slices; slice != 0; slice = member->next) {
        member = &p->index->members[slice];

        if (member->referenced_by == 0 && member->life == KUBE_LIFE_STAGED) {
            kube_publication_orphan(p, slice);
        }
    }
}
