/*
 * kube_select - the join of a Service's port with its slices, the policy,
 * and the choice of ready or terminating endpoints.
 *
 * It reads a copy of the zone, never the zone, and keeps nothing.  No state;
 * may be called from any process.  Slices come one after the other: an
 * endpoint that may be used becomes an item, and never more items are held
 * than may be chosen.
 *
 * Source: kube-proxy's rules for EndpointSlices (pkg/proxy/topology.go,
 * endpointslicecache.go): port names join, ready endpoints, else those that
 * serve while they terminate.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_hash.h"
#include "kube_select.h"


static const char  select_not_ready[] = "not ready";
static const char  select_terminating[] = "terminating";
static const char  select_no_port[] = "no such port";
static const char  select_no_number[] = "no port number";
static const char  select_denied[] = "address denied";
static const char  select_duplicate[] = "duplicate";
static const char  select_family[] = "wrong family";
static const char  select_external[] = "external name";
static const char  select_too_many[] = "too many endpoints";


/*
 * The rank of an item; only items of the smallest one there is are chosen.
 * What the other family is worth is more than any state.
 */
#define SELECT_RANK_TERMINATING  1
#define SELECT_RANK_OTHER        2
#define SELECT_RANK_NONE         4


/*
 * Items there is room for at first: a power of two.  All of a slice as large as
 * they are made by default, 100 endpoints.
 */
#define SELECT_ROOM      128

/* Runs of so many keys are sorted in place, longer ones merged. */
#define SELECT_RUN       8

/*
 * Endpoints that are not ready are held, 32 bytes each, for addresses that a
 * terminating one has as well; of more than this the first ones.  So many are
 * looked up a call.
 */
#define SELECT_UNREADY_MAX   (4 * KUBE_SERVICE_BUILT_MAX)
#define SELECT_UNREADY_STEP  4096

/*
 * Strings that items have left behind are swept where they are more than
 * this; an item has at most four of KUBE_STRING_LEN_MAX bytes, and there may
 * be twice as many as are kept.
 */
#define SELECT_TEXT_MIN  (64u << 10)
#define SELECT_TEXT_MAX                                                       \
    ((size_t) 3 * KUBE_SERVICE_BUILT_MAX * (4 * KUBE_STRING_LEN_MAX + 32))


/* An endpoint that may be used; its strings are borrowed or the text's. */
typedef struct {
    kube_choice_t       choice;
    kube_str_t          name;        /* of its slice */
    kube_explained_t   *row;         /* NULL: not explained */
    uint64_t            lot;         /* where there are too many */
    bool                terminating;
    bool                taken;       /* set of the first of its address:
                                        an endpoint that does not terminate
                                        has this address, too */
} select_item_t;

/* An endpoint that is neither ready nor terminating. */
typedef struct {
    uint64_t            place;
    kube_addr_t         addr;
    uint16_t            port;
} select_unready_t;

/* Where an item is in the order of addresses. */
typedef struct {
    uint64_t            place;       /* of IPv6 the beginning */
    uint32_t            item;
} select_key_t;

/*
 * At most max items, and the key of each.  While there are fewer, one endpoint
 * may be there several times: sorted they lie together.  From the moment that
 * there are max items these are distinct, and of more those with the smallest
 * lots stay: table finds an item by its address (open addressing, number + 1),
 * heap has the largest lot first.  These four are not the arena's, which would
 * keep what they have outgrown.
 */
struct kube_selector_s {
    kube_arena_t                 *arena;
    const kube_service_t         *service;
    const kube_select_options_t  *options;
    const kube_port_t            *port;
    kube_family_t                 preferred;   /* NONE: both are alike */
    const kube_port_t           **any;         /* the Service's, by name;
                                                  NULL: one port is meant */
    size_t                        any_n;
    unsigned                      flags;
    kube_resolve_error_t          error;

    kube_explained_t             *rows;
    size_t                        rows_n;
    size_t                        rows_max;
    uint32_t                      slices_n;

    select_item_t                *items;
    select_key_t                 *keys;        /* of items, in their order
                                                  until they are sorted */
    uint32_t                     *table;       /* NULL: not full yet */
    uint32_t                     *heap;
    uint32_t                      n;
    uint32_t                      room;
    uint32_t                      max;
    unsigned                      rank;        /* of all items */
    bool                          truncated;
    bool                          terminates;  /* an item did, once */

    select_unready_t             *unready_at;
    uint32_t                      unready_n;
    uint32_t                      unready_room;
    uint32_t                      unready_done;

    kube_arena_t                  text[2];     /* of items' strings; one is
                                                  in use */
    unsigned                      text_in;
    size_t                        text_used;
    size_t                        text_live;
    bool                          copies;

    select_key_t                 *other;       /* while it is sorted */
    size_t                        width;       /* of sorted runs */

    /* which kinds of exclusion there were */
    bool                          denied;
    bool                          unready;
    bool                          foreign;
};


kube_str_t
kube_resolve_error_text(kube_resolve_error_t error)
{
    switch (error) {
#define XX(name, text)  case KUBE_RESOLVE_##name: return KUBE_STR(text);
    KUBE_RESOLVE_MAP(XX)
#undef XX
    default:
        return KUBE_STR("");
    }
}


kube_str_t
kube_endpoint_state_text(kube_endpoint_state_t state)
{
    return (state == KUBE_ENDPOINT_READY) ? KUBE_STR("ready")
                                          : KUBE_STR("terminating");
}


/* The Service's port that is meant; *error tells why there is none. */
static const kube_port_t *
select_service_port(const kube_service_t *service, const kube_key_port_t *port,
    kube_protocol_t protocol, kube_resolve_error_t *error)
{
    bool                named;
    size_t              i;
    const kube_port_t  *p;

    named = port->exact || port->name.len != 0;
    *error = KUBE_RESOLVE_NO_PORT;

    if (!named && port->number == 0 && service->ports_n > 1) {
        *error = KUBE_RESOLVE_PORT_NEEDED;
        return NULL;
    }

    for (i = 0; i < service->ports_n; i++) {
        p = &service->ports[i];

        if (p->protocol == protocol
            && (!named || kube_str_eq(p->name, port->name))
            && (port->number == 0 || p->port == port->number))
        {
            *error = KUBE_RESOLVE_OK;
            return p;
        }
    }

    return NULL;
}


static const kube_port_t *
select_slice_port(const kube_slice_t *slice, const kube_port_t *port)
{
    size_t              i;
    const kube_port_t  *p;

    for (i = 0; i < slice->ports_n; i++) {
        p = &slice->ports[i];

        if (p->protocol == port->protocol && kube_str_eq(p->name, port->name)) {
            return p;
        }
    }

    return NULL;
}


/* By name; of the same one the Service's first. */
static int
select_cmp_any(const kube_port_t *a, const kube_port_t *b)
{
    int  rc;

    rc = kube_str_cmp(a->name, b->name);

    return (rc != 0) ? rc : (a > b) - (a < b);
}


static void
select_any_sink(const kube_port_t **any, size_t i, size_t n)
{
    size_t              child;
    const kube_port_t  *swap;

    for (child = 2 * i + 1; child < n; child = 2 * i + 1) {

        child += (child + 1 < n
                  && select_cmp_any(any[child + 1], any[child]) > 0);

        if (select_cmp_any(any[child], any[i]) <= 0) {
            return;
        }

        swap = any[i];
        any[i] = any[child];
        any[child] = swap;
        i = child;
    }
}


/* Heap sort: the Service and its slices may have thousands of ports each. */
static kube_rc_t
select_any_sort(kube_selector_t *s)
{
    size_t              i;
    const kube_port_t  *last;

    s->any = kube_arena_alloc(s->arena, (s->service->ports_n + 1)
                                        * sizeof(kube_port_t *));
    if (s->any == NULL) {
        return KUBE_NOMEM;
    }

    for (i = 0; i < s->service->ports_n; i++) {
        if (s->service->ports[i].protocol == s->options->protocol) {
            s->any[s->any_n++] = &s->service->ports[i];
        }
    }

    for (i = s->any_n / 2; i != 0; i--) {
        select_any_sink(s->any, i - 1, s->any_n);
    }

    for (i = s->any_n; i > 1; i--) {
        last = s->any[i - 1];
        s->any[i - 1] = s->any[0];
        s->any[0] = last;
        select_any_sink(s->any, 0, i - 1);
    }

    return KUBE_OK;
}


/* The Service's port of a name, NULL if it has none. */
static const kube_port_t *
select_any_named(const kube_selector_t *s, kube_str_t name)
{
    size_t  low, high, mid;

    low = 0;
    high = s->any_n;

    while (low < high) {
        mid = low + (high - low) / 2;

        if (kube_str_cmp(s->any[mid]->name, name) < 0) {
            low = mid + 1;

        } else {
            high = mid;
        }
    }

    return (low < s->any_n && kube_str_eq(s->any[low]->name, name))
           ? s->any[low] : NULL;
}


/* The first of the Service's ports that the slice has, with a number. */
static const kube_port_t *
select_any_port(const kube_selector_t *s, const kube_slice_t *slice)
{
    size_t              i;
    const kube_port_t  *p, *own, *first, *found;

    first = NULL;
    found = NULL;

    for (i = 0; i < slice->ports_n; i++) {
        p = &slice->ports[i];
        own = (p->protocol == s->options->protocol)
              ? select_any_named(s, p->name) : NULL;

        if (own != NULL
            && (first == NULL
                || (found->port == 0 && p->port != 0)
                || (own < first && (found->port == 0 || p->port != 0))))
        {
            first = own;
            found = p;
        }
    }

    return found;
}


static bool
select_family_is(const kube_selector_t *s, const kube_slice_t *slice,
    const kube_endpoint_t *endpoint)
{
    kube_family_t  family;

    family = endpoint->address.family;

    return family != KUBE_FAMILY_NONE
           && family == slice->family
           && (s->options->family == KUBE_SELECT_FAMILY_OWN
               || s->options->family == KUBE_SELECT_FAMILY_ANY
               || (unsigned) s->options->family == (unsigned) family);
}


static unsigned
select_rank(const kube_selector_t *s, const kube_choice_t *choice)
{
    unsigned  rank;

    rank = (choice->state == KUBE_ENDPOINT_READY) ? 0
                                                  : SELECT_RANK_TERMINATING;

    if (s->preferred != KUBE_FAMILY_NONE && s->preferred != choice->addr.family)
    {
        rank += SELECT_RANK_OTHER;
    }

    return rank;
}


/* Why an item is not used beside those of a smaller rank. */
static const char *
select_outranked(unsigned rank, unsigned smaller)
{
    return ((rank ^ smaller) & SELECT_RANK_OTHER) ? select_family
                                                  : select_terminating;
}


static bool
select_may_terminate(const kube_selector_t *s, const kube_endpoint_t *endpoint)
{
    return !s->options->terminating_never
           && endpoint->serving
           && endpoint->terminating;
}


/*
 * Judges one endpoint by itself: NULL where it may be used.  own_port: the port
 * where the gateway listens at it, at whatever address; else 0.
 */
static const char *
select_judge(kube_selector_t *s, const kube_slice_t *slice,
    const kube_endpoint_t *endpoint, const kube_addr_number_t *number,
    const kube_port_t *port, uint16_t own_port, const char **denied_because)
{
    *denied_because = NULL;

    if (!select_family_is(s, slice, endpoint)) {
        s->foreign = true;
        return select_family;
    }

    if (port == NULL) {
        return select_no_port;
    }

    if (port->port == 0) {
        return select_no_number;
    }

    if (!endpoint->ready && !select_may_terminate(s, endpoint)) {
        s->unready = true;
        return endpoint->terminating ? select_terminating : select_not_ready;
    }

    *denied_because = kube_policy_denies(s->options->policy, number, own_port);

    if (*denied_because != NULL) {
        s->denied = true;
        return select_denied;
    }

    return NULL;
}


static int
select_cmp_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}


/* IPv4 with its port; behind all of these, 63 bits of IPv6. */
static inline uint64_t
select_place(const kube_addr_number_t *number, uint16_t port)
{
    if (number->family == KUBE_FAMILY_IPV4) {
        return number->high >> 16 | port;
    }

    return (uint64_t) 1 << 63 | number->high >> 1;
}


/* By address and port, of two of IPv6 whose places are the same. */
static int
select_cmp_rest(const kube_choice_t *a, const kube_addr_t *addr, uint16_t port)
{
    int  rc;

    rc = memcmp(a->addr.bytes, addr->bytes, sizeof(addr->bytes));

    return (rc != 0) ? rc : select_cmp_u64(a->port, port);
}


/* Not inline, so that those of IPv4 keep no register for it. */
static __attribute__((noinline)) bool
select_less_rest(const kube_selector_t *s, const select_key_t *a,
    const select_key_t *b)
{
    const kube_choice_t  *other;

    other = &s->items[b->item].choice;

    return select_cmp_rest(&s->items[a->item].choice, &other->addr,
                           other->port) < 0;
}


/* By family, address and port. */
static inline bool
select_less(const kube_selector_t *s, const select_key_t *a,
    const select_key_t *b)
{
    if (a->place != b->place || a->place >> 63 == 0) {
        return a->place < b->place;
    }

    return select_less_rest(s, a, b);
}


/* The key beside an endpoint that is not ready. */
static int
select_cmp_unready(const kube_selector_t *s, const select_key_t *key,
    const select_unready_t *unready)
{
    if (key->place != unready->place || key->place >> 63 == 0) {
        return select_cmp_u64(key->place, unready->place);
    }

    return select_cmp_rest(&s->items[key->item].choice, &unready->addr,
                           unready->port);
}


/*
 * Of the same endpoint: which stays.  As with kube-proxy an address that a Pod
 * has left before it was deleted is the next Pod's; else the order of slices
 * decides no tie.
 */
static int
select_cmp_same(const select_item_t *a, const select_item_t *b)
{
    int  rc;

    if (a->terminating != b->terminating) {
        return a->terminating ? 1 : -1;
    }

    rc = kube_str_cmp(a->choice.pod, b->choice.pod);

    return (rc != 0) ? rc : kube_str_cmp(a->name, b->name);
}


/* By family, address and port, of different ones. */
static int
select_cmp_addr(const kube_choice_t *a, const kube_choice_t *b)
{
    uint64_t            i, j;
    kube_addr_number_t  m, n;

    m = kube_addr_number(&a->addr);
    n = kube_addr_number(&b->addr);
    i = select_place(&m, a->port);
    j = select_place(&n, b->port);

    return (i != j || i >> 63 == 0) ? select_cmp_u64(i, j)
                                    : select_cmp_rest(a, &b->addr, b->port);
}


/* Of different ones, where there are too many. */
static int
select_cmp_lot(const select_item_t *a, const select_item_t *b)
{
    int  rc;

    rc = select_cmp_u64(a->lot, b->lot);

    return (rc != 0) ? rc : select_cmp_addr(&a->choice, &b->choice);
}


/* The same in every process and on every gateway: no seed of its own. */
static uint64_t
select_lot(const kube_choice_t *choice)
{
    size_t         len;
    unsigned char  bytes[19];

    static const kube_seed_t  seed = { 0x6b7562652d736c69, 0x63652d686173682e };

    len = (choice->addr.family == KUBE_FAMILY_IPV4) ? 4 : 16;

    bytes[0] = (unsigned char) choice->addr.family;
    bytes[1] = (unsigned char) (choice->port >> 8);
    bytes[2] = (unsigned char) choice->port;
    memcpy(bytes + 3, choice->addr.bytes, len);

    return kube_hash64(seed, bytes, 3 + len);
}


/*
 * Whoever may write a slice chooses addresses: without the seed nobody finds
 * some that meet in the table.
 */
static uint32_t
select_hash(const kube_selector_t *s, const kube_choice_t *choice,
    uint64_t place)
{
    uint64_t            rest;
    kube_addr_number_t  number;
    const kube_seed_t  *seed;

    /* not 0, for which all would meet */
    static const kube_seed_t  none = { 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93 };

    seed = (s->options->seed != NULL) ? s->options->seed : &none;
    rest = 0;

    if (choice->addr.family != KUBE_FAMILY_IPV4) {
        number = kube_addr_number(&choice->addr);
        rest = kube_mix64(number.low ^ seed->k0, seed->k1 ^ choice->port)
               ^ (number.high & 0xff);
    }

    return (uint32_t) kube_mix64(place ^ seed->k0, rest ^ seed->k1);
}


static uint32_t
table_mask(const kube_selector_t *s)
{
    return 2 * s->room - 1;
}


/* Where the choice is, or the free place where it would be. */
static uint32_t
table_find(const kube_selector_t *s, const kube_choice_t *choice,
    uint64_t place)
{
    uint32_t             i;
    const select_key_t  *key;

    for (i = select_hash(s, choice, place) & table_mask(s);
         s->table[i] != 0;
         i = (i + 1) & table_mask(s))
    {
        key = &s->keys[s->table[i] - 1];

        if (key->place == place
            && (place >> 63 == 0
                || select_cmp_rest(&s->items[key->item].choice, &choice->addr,
                                   choice->port) == 0))
        {
            break;
        }
    }

    return i;
}


/* Moves those back that stand behind a place that has become free. */
static void
table_remove(kube_selector_t *s, uint32_t at)
{
    uint32_t             i, home, mask;
    const select_key_t  *key;

    mask = table_mask(s);

    for (i = (at + 1) & mask; s->table[i] != 0; i = (i + 1) & mask) {
        key = &s->keys[s->table[i] - 1];
        home = select_hash(s, &s->items[key->item].choice, key->place) & mask;

        if (((i - home) & mask) >= ((i - at) & mask)) {
            s->table[at] = s->table[i];
            at = i;
        }
    }

    s->table[at] = 0;
}


static void
heap_sink(kube_selector_t *s, uint32_t i)
{
    uint32_t  child, swap;

    for (child = 2 * i + 1; child < s->n; child = 2 * i + 1) {

        if (child + 1 < s->n
            && select_cmp_lot(&s->items[s->heap[child + 1]],
                              &s->items[s->heap[child]]) > 0)
        {
            child++;
        }

        if (select_cmp_lot(&s->items[s->heap[child]],
                           &s->items[s->heap[i]]) <= 0)
        {
            return;
        }

        swap = s->heap[i];
        s->heap[i] = s->heap[child];
        s->heap[child] = swap;
        i = child;
    }
}


static kube_rc_t
heap_make(kube_selector_t *s)
{
    uint32_t  i;

    s->heap = kube_alloc(s->arena->alloc, s->n * sizeof(uint32_t));
    if (s->heap == NULL) {
        return KUBE_NOMEM;
    }

    for (i = 0; i < s->n; i++) {
        s->items[i].lot = select_lot(&s->items[i].choice);
        s->heap[i] = i;
    }

    for (i = s->n / 2; i != 0; i--) {
        heap_sink(s, i - 1);
    }

    return KUBE_OK;
}


/* Room for one item more, below max. */
static kube_rc_t
select_grow(kube_selector_t *s)
{
    uint32_t        room;
    select_key_t   *keys;
    select_item_t  *items;

    room = (s->room != 0) ? 2 * s->room : SELECT_ROOM;
    items = kube_alloc(s->arena->alloc, room * sizeof(select_item_t));
    keys = kube_alloc(s->arena->alloc, room * sizeof(select_key_t));

    if (items == NULL || keys == NULL) {
        kube_free(s->arena->alloc, items);
        kube_free(s->arena->alloc, keys);
        return KUBE_NOMEM;
    }

    if (s->n != 0) {
        memcpy(items, s->items, s->n * sizeof(select_item_t));
        memcpy(keys, s->keys, s->n * sizeof(select_key_t));
    }

    kube_free(s->arena->alloc, s->items);
    kube_free(s->arena->alloc, s->keys);

    s->items = items;
    s->keys = keys;
    s->room = room;

    return KUBE_OK;
}


static size_t
item_text(const select_item_t *item)
{
    return item->choice.pod.len + item->choice.node.len
           + item->choice.zone.len + item->name.len;
}


static kube_rc_t
text_copy(kube_arena_t *arena, select_item_t *item)
{
    char        *p;
    size_t       i;
    kube_str_t  *s[4];

    p = kube_arena_alloc(arena, item_text(item) + 1);
    if (p == NULL) {
        return KUBE_NOMEM;
    }

    s[0] = &item->choice.pod;
    s[1] = &item->choice.node;
    s[2] = &item->choice.zone;
    s[3] = &item->name;

    for (i = 0; i < 4; i++) {

        if (s[i]->len != 0) {
            memcpy(p, s[i]->data, s[i]->len);
        }

        s[i]->data = p;
        p += s[i]->len;
    }

    return KUBE_OK;
}


/* What items have left behind goes when it is more than what they have. */
static kube_rc_t
text_sweep(kube_selector_t *s)
{
    uint32_t       i;
    kube_arena_t  *to;

    if (s->text_used <= 2 * s->text_live + SELECT_TEXT_MIN) {
        return KUBE_OK;
    }

    to = &s->text[1 - s->text_in];

    for (i = 0; i < s->n; i++) {
        if (text_copy(to, &s->items[i]) != KUBE_OK) {
            return KUBE_NOMEM;
        }
    }

    kube_arena_done(&s->text[s->text_in]);

    s->text_in = 1 - s->text_in;
    s->text_used = s->text_live;

    return KUBE_OK;
}


/* Writes an item and its key; its strings become its own. */
static inline kube_rc_t
select_store(kube_selector_t *s, uint32_t at, const select_item_t *item,
    uint64_t place, size_t replaced)
{
    select_item_t  *to;

    to = &s->items[at];
    *to = *item;

    s->keys[at].place = place;
    s->keys[at].item = at;

    if (!s->copies) {
        return KUBE_OK;
    }

    s->text_used += item_text(to);
    s->text_live += item_text(to) - replaced;

    return text_copy(&s->text[s->text_in], to);
}


static void
select_exclude(kube_explained_t *row, const char *why)
{
    if (row != NULL) {
        row->excluded_because = why;
    }
}


/* Of two of the same endpoint: true where the second stays. */
static bool
select_replaces(const select_item_t *held, const select_item_t *item)
{
    bool  replaces;

    replaces = select_cmp_same(held, item) > 0;
    select_exclude(replaces ? held->row : item->row, select_duplicate);

    return replaces;
}


/* There are as many as may be: from now on they are distinct. */
static kube_rc_t
select_distinct(kube_selector_t *s)
{
    uint32_t        i, n, at, held;
    uint64_t        place;
    select_item_t  *item;

    s->table = kube_zalloc(s->arena->alloc, 2 * s->room * sizeof(uint32_t));
    if (s->table == NULL) {
        return KUBE_NOMEM;
    }

    n = s->n;
    s->n = 0;

    for (i = 0; i < n; i++) {
        item = &s->items[i];
        place = s->keys[i].place;
        at = table_find(s, &item->choice, place);
        held = s->table[at];

        if (held == 0) {
            held = ++s->n;
            s->table[at] = held;

        } else if (!select_replaces(&s->items[held - 1], item)) {
            s->text_live -= item_text(item);
            continue;

        } else {
            s->text_live -= item_text(&s->items[held - 1]);
        }

        s->items[held - 1] = *item;
        s->keys[held - 1].place = place;
        s->keys[held - 1].item = held - 1;
    }

    return KUBE_OK;
}


/* One too many: the largest lot goes. */
static kube_rc_t
select_displace(kube_selector_t *s, select_item_t *item, uint64_t place)
{
    uint32_t        at;
    kube_rc_t       rc;
    select_item_t  *last;

    s->truncated = true;

    if (s->heap == NULL && heap_make(s) != KUBE_OK) {
        return KUBE_NOMEM;
    }

    at = s->heap[0];
    last = &s->items[at];
    item->lot = select_lot(&item->choice);

    if (select_cmp_lot(item, last) > 0) {
        select_exclude(item->row, select_too_many);
        return KUBE_OK;
    }

    select_exclude(last->row, select_too_many);
    table_remove(s, table_find(s, &last->choice, s->keys[at].place));

    rc = select_store(s, at, item, place, item_text(last));

    if (rc == KUBE_OK) {
        s->table[table_find(s, &item->choice, place)] = at + 1;
        heap_sink(s, 0);
    }

    return rc;
}


/* Where there were as many as may be, once. */
static kube_rc_t
select_item_full(kube_selector_t *s, select_item_t *item, uint64_t place)
{
    uint32_t        at;
    select_item_t  *held;

    if (s->table == NULL && select_distinct(s) != KUBE_OK) {
        return KUBE_NOMEM;
    }

    at = table_find(s, &item->choice, place);

    if (s->table[at] != 0) {
        held = &s->items[s->table[at] - 1];

        if (!select_replaces(held, item)) {
            return KUBE_OK;
        }

        item->lot = held->lot;

        return select_store(s, s->table[at] - 1, item, place,
                            item_text(held));
    }

    if (s->n == s->max) {
        return select_displace(s, item, place);
    }

    s->table[at] = ++s->n;

    return select_store(s, s->n - 1, item, place, 0);
}


/* The first endpoint of a smaller rank: none of the former is needed. */
static void
select_only_rank(kube_selector_t *s, unsigned rank)
{
    uint32_t  i;

    for (i = 0; i < s->n; i++) {
        select_exclude(s->items[i].row, select_outranked(s->rank, rank));
    }

    kube_free(s->arena->alloc, s->table);
    kube_free(s->arena->alloc, s->heap);

    s->n = 0;
    s->table = NULL;
    s->heap = NULL;
    s->text_live = 0;
    s->rank = rank;
    s->truncated = false;
}


static kube_rc_t
select_item(kube_selector_t *s, select_item_t *item, uint64_t place)
{
    unsigned   rank;

    rank = select_rank(s, &item->choice);

    if (rank > s->rank) {
        select_exclude(item->row, select_outranked(rank, s->rank));
        return KUBE_OK;
    }

    if (rank < s->rank) {
        select_only_rank(s, rank);
    }

    if (s->n == s->max || s->table != NULL) {
        return select_item_full(s, item, place);
    }

    if (s->n == s->room && select_grow(s) != KUBE_OK) {
        return KUBE_NOMEM;
    }

    return select_store(s, s->n++, item, place, 0);
}


/*
 * Keeps the address of an endpoint that is neither ready nor terminating: with
 * kube-proxy none that terminates is used in its place.
 */
static kube_rc_t
select_unready_add(kube_selector_t *s, const kube_endpoint_t *endpoint,
    uint16_t port, uint64_t place)
{
    uint32_t           room;
    select_unready_t  *grown;

    if (s->unready_n == SELECT_UNREADY_MAX) {
        return KUBE_OK;
    }

    if (s->unready_n == s->unready_room) {
        room = (s->unready_room != 0) ? 2 * s->unready_room : SELECT_ROOM;
        grown = kube_alloc(s->arena->alloc, room * sizeof(select_unready_t));

        if (grown == NULL) {
            return KUBE_NOMEM;
        }

        if (s->unready_n != 0) {
            memcpy(grown, s->unready_at,
                   s->unready_n * sizeof(select_unready_t));
        }

        kube_free(s->arena->alloc, s->unready_at);

        s->unready_at = grown;
        s->unready_room = room;
    }

    s->unready_at[s->unready_n].place = place;
    s->unready_at[s->unready_n].addr = endpoint->address;
    s->unready_at[s->unready_n].port = port;
    s->unready_n++;

    return KUBE_OK;
}


/* Marks the first of the sorted items with the address that is not ready. */
static void
select_unready_mark(kube_selector_t *s, const select_unready_t *unready)
{
    size_t  low, high, mid;

    low = 0;
    high = s->n;

    while (low < high) {
        mid = low + (high - low) / 2;

        if (select_cmp_unready(s, &s->keys[mid], unready) < 0) {
            low = mid + 1;

        } else {
            high = mid;
        }
    }

    if (low < s->n && select_cmp_unready(s, &s->keys[low], unready) == 0) {
        s->items[s->keys[low].item].taken = true;
    }
}


/* Some thousands at a time, after the sort. */
static kube_rc_t
select_unready_step(kube_selector_t *s)
{
    uint32_t  n;

    if (!s->terminates) {
        return KUBE_OK;
    }

    for (n = 0; n < SELECT_UNREADY_STEP && s->unready_done < s->unready_n;
         n++)
    {
        select_unready_mark(s, &s->unready_at[s->unready_done++]);
    }

    return (s->unready_done < s->unready_n) ? KUBE_AGAIN : KUBE_OK;
}


static kube_explained_t *
select_row(kube_selector_t *s, uint32_t endpoint, const kube_port_t *port)
{
    kube_explained_t  *row;

    if (s->rows_n == s->rows_max) {
        return NULL;
    }

    row = &s->rows[s->rows_n++];

    row->slice = s->slices_n;
    row->endpoint = endpoint;
    row->port = (port != NULL) ? port->port : 0;

    return row;
}


kube_rc_t
kube_selector_add(kube_selector_t *s, const kube_slice_t *slice)
{
    size_t                  i;
    uint16_t                own_port;
    kube_rc_t               rc;
    const char             *why, *denied;
    select_item_t           item;
    const kube_port_t      *port;
    kube_addr_number_t      number;
    const kube_endpoint_t  *endpoint;

    if (s->flags & KUBE_SELECT_ANY_PORT) {
        port = select_any_port(s, slice);

    } else {
        port = (s->port != NULL) ? select_slice_port(slice, s->port) : NULL;
    }

    own_port = (port != NULL
                && kube_policy_listens(s->options->policy, port->port))
               ? port->port : 0;
    item.name = slice->meta.name;
    item.choice.slice = s->slices_n;
    item.lot = 0;
    item.taken = false;
    rc = KUBE_OK;

    for (i = 0; i < slice->endpoints_n && rc == KUBE_OK; i++) {
        endpoint = &slice->endpoints[i];
        number = kube_addr_number(&endpoint->address);

        item.row = select_row(s, (uint32_t) i, port);
        item.choice.state = endpoint->ready ? KUBE_ENDPOINT_READY
                                            : KUBE_ENDPOINT_TERMINATING;
        why = select_judge(s, slice, endpoint, &number, port, own_port,
                           &denied);

        if (item.row != NULL) {
            item.row->state = item.choice.state;
            item.row->excluded_because = why;
            item.row->denied_because = denied;
        }

        /* without a port there is a reason, which analysers do not see */

        if (port == NULL) {
            continue;
        }

        if (why == select_not_ready) {
            rc = select_unready_add(s, endpoint, port->port,
                                    select_place(&number, port->port));
        }

        if (why != NULL) {
            continue;
        }

        item.terminating = endpoint->terminating;
        s->terminates = s->terminates || item.terminating;

        item.choice.addr = endpoint->address;
        item.choice.port = port->port;
        item.choice.pod = endpoint->pod;
        item.choice.node = endpoint->node;
        item.choice.zone = endpoint->zone;

        rc = select_item(s, &item, select_place(&number, port->port));
    }

    s->slices_n++;

    return (rc == KUBE_OK && s->copies) ? text_sweep(s) : rc;
}


/* Sorts runs of SELECT_RUN keys. */
static void
select_runs(kube_selector_t *s)
{
    size_t         i, k, low;
    select_key_t   key, *keys;

    keys = s->keys;

    for (i = 0; i < s->n; i++) {
        key = keys[i];
        low = i - i % SELECT_RUN;

        for (k = i; k > low && select_less(s, &key, &keys[k - 1]); k--) {
            keys[k] = keys[k - 1];
        }

        keys[k] = key;
    }
}


/* The keys of [low, mid) and of [mid, high), which are sorted, into other. */
static void
select_merge(const kube_selector_t *s, size_t low, size_t mid, size_t high)
{
    select_key_t        *to;
    const select_key_t  *a, *b, *a_end, *b_end;

    to = &s->other[low];
    a = &s->keys[low];
    a_end = &s->keys[mid];
    b = a_end;
    b_end = &s->keys[high];

    while (a < a_end && b < b_end) {
        if (select_less(s, b, a)) {
            *to++ = *b++;

        } else {
            *to++ = *a++;
        }
    }

    /* one of both is empty */

    memcpy(to, a, (size_t) (a_end - a) * sizeof(select_key_t));
    to += a_end - a;
    memcpy(to, b, (size_t) (b_end - b) * sizeof(select_key_t));
}


/*
 * A merge sort from the bottom up, one pass a call.  It takes n log n steps
 * whatever the order is: anybody who may write a slice chooses the order.
 */
kube_rc_t
kube_selector_sort(kube_selector_t *s)
{
    size_t         low, mid, high;
    select_key_t  *swap;

    if (s->width == 0) {
        select_runs(s);
        s->width = SELECT_RUN;

    } else if (s->width < s->n) {

        for (low = 0; low < s->n; low = high) {
            mid = (s->n - low > s->width) ? low + s->width : s->n;
            high = (s->n - mid > s->width) ? mid + s->width : s->n;
            select_merge(s, low, mid, high);
        }

        swap = s->keys;
        s->keys = s->other;
        s->other = swap;
        s->width *= 2;
    }

    if (s->width >= s->n) {
        return select_unready_step(s);
    }

    if (s->other == NULL) {
        s->other = kube_alloc(s->arena->alloc, s->n * sizeof(select_key_t));

        if (s->other == NULL) {
            return KUBE_NOMEM;
        }
    }

    return KUBE_AGAIN;
}


/* The most that can be said of a selection without endpoints. */
static kube_resolve_error_t
select_nothing(const kube_selector_t *s)
{
    if (s->denied) {
        return KUBE_RESOLVE_ADDRESS_DENIED;
    }

    if (s->unready) {
        return KUBE_RESOLVE_NO_READY_ENDPOINT;
    }

    return s->foreign ? KUBE_RESOLVE_NO_FAMILY : KUBE_RESOLVE_NO_ENDPOINTS;
}


kube_rc_t
kube_selector_create(kube_arena_t *arena, const kube_service_t *service,
    const kube_key_port_t *port, const kube_select_options_t *options,
    unsigned flags, kube_selector_t **made)
{
    kube_selector_t  *s;

    s = kube_arena_alloc(arena, sizeof(kube_selector_t));
    if (s == NULL) {
        return KUBE_NOMEM;
    }

    memset(s, 0, sizeof(kube_selector_t));

    s->arena = arena;
    s->service = service;
    s->options = options;
    s->flags = flags;
    s->copies = !(flags & KUBE_SELECT_BORROW);
    s->rank = SELECT_RANK_NONE;
    s->preferred = (options->family == KUBE_SELECT_FAMILY_OWN)
                   ? service->family : KUBE_FAMILY_NONE;
    s->max = (options->max != 0) ? options->max : KUBE_SERVICE_BUILT_MAX;

    kube_arena_init(&s->text[0], arena->alloc, SELECT_TEXT_MAX);
    kube_arena_init(&s->text[1], arena->alloc, SELECT_TEXT_MAX);

    if (!(flags & KUBE_SELECT_ANY_PORT)) {
        s->port = select_service_port(service, port, options->protocol,
                                      &s->error);

    } else if (select_any_sort(s) != KUBE_OK) {
        return KUBE_NOMEM;
    }

    if (service->type == KUBE_SERVICE_EXTERNAL_NAME) {
        s->error = KUBE_RESOLVE_EXTERNAL_NAME;
    }

    *made = s;

    return KUBE_OK;
}


kube_resolve_error_t
kube_selector_error(const kube_selector_t *s)
{
    return s->error;
}


static void
select_free_items(kube_selector_t *s)
{
    kube_free(s->arena->alloc, s->items);
    kube_free(s->arena->alloc, s->keys);
    kube_free(s->arena->alloc, s->other);
    kube_free(s->arena->alloc, s->table);
    kube_free(s->arena->alloc, s->heap);
    kube_free(s->arena->alloc, s->unready_at);

    s->unready_at = NULL;
    s->items = NULL;
    s->keys = NULL;
    s->other = NULL;
    s->table = NULL;
    s->heap = NULL;
}


/* 1 where what was left of an endpoint's duplicates is used. */
static size_t
select_stays(select_item_t *item, bool taken)
{
    if (item == NULL) {
        return 0;
    }

    if (item->terminating && taken) {
        select_exclude(item->row, select_duplicate);
        return 0;
    }

    return 1;
}


kube_rc_t
kube_selector_result(kube_selector_t *s, kube_selection_t *selection)
{
    bool            taken;
    size_t          i;
    select_item_t  *item, *last;

    memset(selection, 0, sizeof(kube_selection_t));

    selection->port = s->port;
    selection->error = s->error;
    selection->rows = s->rows;
    selection->rows_n = s->rows_n;

    if (s->error != KUBE_RESOLVE_OK || (s->flags & KUBE_SELECT_PORT)) {
        return KUBE_OK;
    }

    if (s->n == 0) {
        selection->error = select_nothing(s);
        return KUBE_OK;
    }

    selection->endpoints = kube_arena_alloc(s->arena,
                                            s->n * sizeof(kube_choice_t));
    if (selection->endpoints == NULL) {
        return KUBE_NOMEM;
    }

    selection->truncated = s->truncated;
    last = NULL;
    taken = false;

    for (i = 0; i < s->n; i++) {
        item = &s->items[s->keys[i].item];

        if (last == NULL
            || select_less(s, &s->keys[i - 1], &s->keys[i]))
        {
            selection->n += select_stays(last, taken);
            taken = item->taken;

        } else if (!select_replaces(last, item)) {
            continue;
        }

        selection->endpoints[selection->n] = item->choice;
        last = item;
    }

    selection->n += select_stays(last, taken);

    if (selection->n == 0) {
        selection->error = select_nothing(s);
    }

    select_free_items(s);

    return KUBE_OK;
}


void
kube_selector_done(kube_selector_t *s)
{
    select_free_items(s);
    kube_arena_done(&s->text[0]);
    kube_arena_done(&s->text[1]);
}


/* Makes a row for each endpoint. */
static kube_rc_t
select_explain(kube_selector_t *s, const kube_snapshot_t *snapshot)
{
    size_t  i, n;

    n = 0;

    for (i = 0; i < snapshot->slices_n; i++) {
        n += snapshot->slices[i].endpoints_n;
    }

    s->rows = kube_arena_alloc(s->arena, (n + 1) * sizeof(kube_explained_t));
    s->rows_max = n;

    return (s->rows != NULL) ? KUBE_OK : KUBE_NOMEM;
}


static kube_rc_t
select_snapshot(kube_selector_t *s, const kube_snapshot_t *snapshot,
    kube_selection_t *selection)
{
    size_t     i;
    kube_rc_t  rc;

    rc = KUBE_OK;

    if (!(s->flags & KUBE_SELECT_PORT)
        && (s->error == KUBE_RESOLVE_OK || (s->flags & KUBE_SELECT_EXPLAIN)))
    {
        rc = (s->flags & KUBE_SELECT_EXPLAIN) ? select_explain(s, snapshot)
                                              : KUBE_OK;

        for (i = 0; i < snapshot->slices_n && rc == KUBE_OK; i++) {
            rc = kube_selector_add(s, &snapshot->slices[i]);
        }

        for (i = 0; i < s->rows_n && s->error == KUBE_RESOLVE_EXTERNAL_NAME;
             i++)
        {
            s->rows[i].excluded_because = select_external;
        }
    }

    if (rc == KUBE_OK) {
        do {
            rc = kube_selector_sort(s);
        } while (rc == KUBE_AGAIN);
    }

    return (rc == KUBE_OK) ? kube_selector_result(s, selection) : rc;
}


kube_rc_t
kube_select(kube_arena_t *arena, const kube_snapshot_t *snapshot,
    const kube_key_port_t *port, const kube_select_options_t *options,
    unsigned flags, kube_selection_t *selection)
{
    kube_rc_t         rc;
    kube_selector_t  *s;

    rc = kube_selector_create(arena, &snapshot->service, port, options,
                              flags | KUBE_SELECT_BORROW, &s);

    if (rc == KUBE_OK) {
        rc = select_snapshot(s, snapshot, selection);
        kube_selector_done(s);
    }

    return rc;
}
