/*
 * sim_beside - models beside two parts of the informer: the FIFO between what
 * is read and what is applied, and the turns of lists.
 *
 * The linker puts these functions before the real ones (ld --wrap, Makefile):
 * each call goes to both, and the real one has to do what its header says,
 * which is written here once more in the plainest way.  The FIFO's limits are
 * lowered in some runs, so that it is full at times; in others a scope is
 * listed beside its watch without need.  For t/sim only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_delta_fifo.h"
#include "kube_list_turn.h"
#include "kube_publisher.h"
#include "sim.h"


/* More never wait: of each key one, and one more for each list that began. */
#define BESIDE_MAX       1024

/* What the FIFO may need for a key beside its record and its names. */
#define BESIDE_OVERHEAD  512

typedef struct {
    kube_delta_kind_t  kind;
    unsigned           scope;
    kube_resource_t    resource;
    char               ns[KUBE_NAMESPACE_LEN_MAX];
    char               name[KUBE_NAME_LEN_MAX];
    char               rv[KUBE_RV_LEN_MAX];
    size_t             ns_len;
    size_t             name_len;
    size_t             rv_len;
    uint64_t           uid_hash;
    uint64_t           deleted_uid;
    uint64_t           read_ms;
    int64_t            trigger_ms;
    size_t             record;        /* its bytes; 0: none */
    bool               listed;        /* a list brought a state of it */
    bool               closed;        /* a list of its scope began behind it */
} beside_delta_t;

typedef struct {
    sim_t            *sim;
    size_t            keys_max;
    size_t            bytes_max;
    size_t            n;
    bool              peeked;         /* the first was looked at, and is what
                                         it was then */
    beside_delta_t    queue[BESIDE_MAX];

    bool              held;           /* a list has the turn: holder */
    unsigned          holder;
    uint64_t          since_ms;       /* he lists */
    uint64_t          moved_ms;       /* its last progress */
    uint64_t          not_before_ms;
    unsigned          waiting[KUBE_SCOPES_MAX];
    unsigned          waiting_n;
} beside_t;

static beside_t  beside;


/* What the linker calls the real function, and the one that is called. */
#define BESIDE(type, name, args)                                              \
    type __real_##name args;                                                  \
    type __wrap_##name args

BESIDE(kube_delta_fifo_t *, kube_delta_fifo_create,
       (const kube_alloc_t *alloc, kube_seed_t seed, size_t keys_max,
        size_t bytes_max));
BESIDE(kube_rc_t, kube_delta_fifo_object,
       (kube_delta_fifo_t *fifo, kube_delta_kind_t kind, unsigned scope,
        const kube_object_t *object, uint64_t read_ms));
BESIDE(kube_rc_t, kube_delta_fifo_put,
       (kube_delta_fifo_t *fifo, const kube_delta_t *delta));
BESIDE(kube_rc_t, kube_delta_fifo_peek,
       (kube_delta_fifo_t *fifo, kube_delta_t *delta));
BESIDE(void, kube_delta_fifo_drop, (kube_delta_fifo_t *fifo));
BESIDE(size_t, kube_delta_fifo_depth, (const kube_delta_fifo_t *fifo));
BESIDE(size_t, kube_delta_fifo_depth_scope,
       (const kube_delta_fifo_t *fifo, unsigned scope));
BESIDE(bool, kube_delta_fifo_high, (const kube_delta_fifo_t *fifo));
BESIDE(bool, kube_delta_fifo_low, (const kube_delta_fifo_t *fifo));

BESIDE(bool, kube_publisher_room_returned,
       (kube_publisher_t *p, unsigned scope, kube_room_ask_t *ask));
BESIDE(void, kube_list_turn_init, (kube_list_turn_t *turn));
BESIDE(void, kube_list_turn_hold, (kube_list_turn_t *turn, uint64_t until_ms));
BESIDE(bool, kube_list_turn_take,
       (kube_list_turn_t *turn, unsigned scope, uint64_t now_ms));
BESIDE(void, kube_list_turn_progress,
       (kube_list_turn_t *turn, unsigned scope, uint64_t now_ms));
BESIDE(void, kube_list_turn_anew,
       (kube_list_turn_t *turn, unsigned scope, uint64_t now_ms));
BESIDE(void, kube_list_turn_give, (kube_list_turn_t *turn, unsigned scope));
BESIDE(uint64_t, kube_list_turn_deadline,
       (const kube_list_turn_t *turn, unsigned scope));


void
sim_beside_init(sim_t *s)
{
    beside.sim = s;
}


kube_delta_fifo_t *
__wrap_kube_delta_fifo_create(const kube_alloc_t *alloc, kube_seed_t seed,
    size_t keys_max, size_t bytes_max)
{
    beside.n = 0;
    beside.peeked = false;
    beside.keys_max = beside.sim->narrow ? SIM_NARROW_KEYS : keys_max;
    beside.bytes_max = beside.sim->narrow ? SIM_NARROW_BYTES : bytes_max;

    return __real_kube_delta_fifo_create(alloc, seed, beside.keys_max,
                                         beside.bytes_max);
}


static bool
beside_is_key(const beside_delta_t *waits, const kube_delta_t *delta)
{
    return !kube_delta_is_mark(waits->kind)
           && waits->scope == delta->scope
           && waits->resource == delta->resource
           && kube_str_eq((kube_str_t) { waits->ns, waits->ns_len }, delta->ns)
           && kube_str_eq((kube_str_t) { waits->name, waits->name_len },
                          delta->name);
}


/* Bytes that wait at least, and at most; but for one that is replaced. */
static void
beside_bytes(const beside_delta_t *but, size_t *least, size_t *most)
{
    size_t                 i;
    const beside_delta_t  *waits;

    *least = 0;
    *most = 0;

    for (i = 0; i < beside.n; i++) {
        waits = &beside.queue[i];

        if (waits != but) {
            *least += waits->record;
            *most += waits->record + waits->ns_len + waits->name_len
                     + BESIDE_OVERHEAD;
        }
    }
}


/* Whether the FIFO may say that it is full, and whether it has to. */
static void
beside_limits(const kube_delta_t *delta, const beside_delta_t *old,
    size_t record, kube_rc_t rc)
{
    size_t               others, least, most;
    const sim_memory_t  *m;

    m = &beside.sim->process.memory;
    others = beside.n - (old != NULL);
    beside_bytes(old, &least, &most);

    if (rc == KUBE_OK && others != 0
        && (others >= beside.keys_max || least + record > beside.bytes_max))
    {
        sim_fail(beside.sim, "FIFO: takes %.*s, and is full",
                 (int) delta->name.len, delta->name.data);
    }

    if (rc == KUBE_NOMEM
        && !(m->failed && m->failed_ms == beside.sim->now_ms)
        && (others == 0
            || (others < beside.keys_max
                && most + record + delta->ns.len + delta->name.len
                   + BESIDE_OVERHEAD <= beside.bytes_max)))
    {
        sim_fail(beside.sim, "FIFO: does not take %.*s, and is not full",
                 (int) delta->name.len, delta->name.data);
    }
}


static beside_delta_t *
beside_append(const kube_delta_t *delta)
{
    beside_delta_t  *d;

    if (beside.n == BESIDE_MAX) {
        sim_fail(beside.sim, "FIFO: %d wait", BESIDE_MAX);
    }

    d = &beside.queue[beside.n++];
    memset(d, 0, sizeof(beside_delta_t));
    d->scope = delta->scope;
    d->resource = delta->resource;
    d->read_ms = KUBE_NEVER;

    return d;
}


static void
beside_copy(char *to, size_t *len, kube_str_t from)
{
    *len = from.len;

    if (from.len != 0) {
        memcpy(to, from.data, from.len);
    }
}


/* delta->uid_hash is set, of an object too. */
static void
beside_put(const kube_delta_t *delta, size_t record, kube_rc_t rc)
{
    bool             valid;
    size_t           i;
    beside_delta_t  *d;

    valid = delta->scope < KUBE_SCOPES_MAX
            && delta->ns.len <= KUBE_NAMESPACE_LEN_MAX
            && delta->name.len != 0
            && delta->name.len <= KUBE_NAME_LEN_MAX;

    if (valid != (rc != KUBE_INVALID)) {
        sim_fail(beside.sim, "FIFO: what is valid is not, or the other way");
    }

    d = NULL;

    for (i = 0; valid && i < beside.n; i++) {
        if (!beside.queue[i].closed && beside_is_key(&beside.queue[i], delta))
        {
            d = &beside.queue[i];
            break;
        }
    }

    beside_limits(delta, d, record, rc);

    if (rc != KUBE_OK) {
        return;
    }

    if (d == NULL) {
        d = beside_append(delta);
        beside_copy(d->ns, &d->ns_len, delta->ns);
        beside_copy(d->name, &d->name_len, delta->name);

    } else {

        if (d->deleted_uid == 0
            && d->kind == KUBE_DELTA_DELETED
            && delta->kind != KUBE_DELTA_DELETED
            && delta->uid_hash != d->uid_hash)
        {
            d->deleted_uid = d->uid_hash;
        }

        if (i == 0) {
            beside.peeked = false;
        }
    }

    d->listed = d->listed || delta->kind == KUBE_DELTA_REPLACED;
    d->kind = (delta->kind == KUBE_DELTA_UPDATED && d->listed)
              ? KUBE_DELTA_REPLACED : delta->kind;
    d->uid_hash = delta->uid_hash;
    d->trigger_ms = delta->trigger_ms;
    d->record = record;
    d->read_ms = (delta->read_ms < d->read_ms) ? delta->read_ms : d->read_ms;
    beside_copy(d->rv, &d->rv_len, delta->rv.len <= KUBE_RV_LEN_MAX
                                   ? delta->rv : KUBE_STR_NULL);
}


kube_rc_t
__wrap_kube_delta_fifo_object(kube_delta_fifo_t *fifo, kube_delta_kind_t kind,
    unsigned scope, const kube_object_t *object, uint64_t read_ms)
{
    size_t              record;
    kube_rc_t           rc;
    kube_delta_t        delta;
    const kube_meta_t  *meta;

    meta = kube_object_meta(object);
    record = kube_record_size(object);

    delta = (kube_delta_t) {
        .kind = (record != 0) ? kind : KUBE_DELTA_REFUSED,
        .scope = scope,
        .resource = object->resource,
        .ns = meta->ns,
        .name = meta->name,
        .rv = meta->rv,
        .uid_hash = kube_uid_hash(meta->uid),
        .read_ms = read_ms
    };

    if (record != 0 && object->resource == KUBE_RESOURCE_ENDPOINTSLICES) {
        delta.trigger_ms = object->u.slice.trigger_ms;
    }

    rc = __real_kube_delta_fifo_object(fifo, kind, scope, object, read_ms);
    beside_put(&delta, record, rc);

    return rc;
}


kube_rc_t
__wrap_kube_delta_fifo_put(kube_delta_fifo_t *fifo, const kube_delta_t *delta)
{
    bool             begins;
    size_t           i;
    kube_rc_t        rc;
    beside_delta_t  *mark;

    rc = __real_kube_delta_fifo_put(fifo, delta);

    if (!kube_delta_is_mark(delta->kind)) {
        beside_put(delta, 0, rc);
        return rc;
    }

    if (rc != KUBE_OK) {
        return rc;
    }

    begins = (delta->kind == KUBE_DELTA_LIST_BEGIN
              || delta->kind == KUBE_DELTA_REFILL_BEGIN);

    for (i = 0; begins && i < beside.n; i++) {
        if (beside.queue[i].scope == delta->scope) {
            beside.queue[i].closed = true;
        }
    }

    mark = beside_append(delta);
    mark->kind = delta->kind;

    return rc;
}


static bool
beside_is_same(const beside_delta_t *d, const kube_delta_t *delta)
{
    kube_record_id_t  id;

    if (kube_delta_is_mark(d->kind)) {
        return delta->kind == d->kind && delta->scope == d->scope
               && delta->record == NULL;
    }

    if (delta->kind != d->kind
        || !beside_is_key(d, delta)
        || !kube_str_eq(delta->rv, (kube_str_t) { d->rv, d->rv_len })
        || delta->read_ms != d->read_ms
        || delta->trigger_ms != d->trigger_ms
        || delta->deleted_uid != d->deleted_uid
        || (delta->record == NULL) != (d->record == 0))
    {
        return false;
    }

    if (delta->record == NULL) {
        return delta->uid_hash == d->uid_hash;
    }

    return delta->record->size == d->record
           && kube_record_id(delta->record, d->record, &id) == KUBE_OK
           && kube_uid_hash(id.meta.uid) == d->uid_hash
           && kube_str_eq(id.meta.rv, delta->rv);
}


kube_rc_t
__wrap_kube_delta_fifo_peek(kube_delta_fifo_t *fifo, kube_delta_t *delta)
{
    kube_rc_t  rc;

    rc = __real_kube_delta_fifo_peek(fifo, delta);

    if ((rc == KUBE_OK) != (beside.n != 0)) {
        sim_fail(beside.sim, "FIFO: %zu wait, and %s is there", beside.n,
                 rc == KUBE_OK ? "one" : "none");
    }

    if (rc == KUBE_OK) {

        if (!beside_is_same(&beside.queue[0], delta)) {
            sim_fail(beside.sim, "FIFO: %.*s@%.*s of kind %d comes, and not "
                     "what was put", (int) delta->name.len, delta->name.data,
                     (int) delta->rv.len, delta->rv.data, (int) delta->kind);
        }

        beside.peeked = true;
    }

    return rc;
}


void
__wrap_kube_delta_fifo_drop(kube_delta_fifo_t *fifo)
{
    __real_kube_delta_fifo_drop(fifo);

    if (beside.peeked) {
        beside.peeked = false;
        beside.n--;
        memmove(&beside.queue[0], &beside.queue[1],
                beside.n * sizeof(beside_delta_t));
    }
}


size_t
__wrap_kube_delta_fifo_depth(const kube_delta_fifo_t *fifo)
{
    size_t  n;

    n = __real_kube_delta_fifo_depth(fifo);

    if (n != beside.n) {
        sim_fail(beside.sim, "FIFO: says %zu, and %zu wait", n, beside.n);
    }

    return n;
}


size_t
__wrap_kube_delta_fifo_depth_scope(const kube_delta_fifo_t *fifo,
    unsigned scope)
{
    size_t  n, i, waiting;

    n = __real_kube_delta_fifo_depth_scope(fifo, scope);

    for (waiting = 0, i = 0; i < beside.n; i++) {
        waiting += (beside.queue[i].scope == scope);
    }

    if (n != waiting) {
        sim_fail(beside.sim, "FIFO: says %zu, and %zu wait of scope %u", n,
                 waiting, scope);
    }

    return n;
}


bool
__wrap_kube_delta_fifo_high(const kube_delta_fifo_t *fifo)
{
    bool    high;
    size_t  least, most;

    high = __real_kube_delta_fifo_high(fifo);
    beside_bytes(NULL, &least, &most);

    if (high ? beside.n * 4 <= beside.keys_max * 3
               && most * 4 <= beside.bytes_max * 3
             : (beside.n > beside.keys_max - beside.keys_max / 4
                || least > beside.bytes_max - beside.bytes_max / 4))
    {
        sim_fail(beside.sim, "FIFO: %s with %zu keys of %zu",
                 high ? "high" : "not high", beside.n, beside.keys_max);
    }

    return high;
}


bool
__wrap_kube_delta_fifo_low(const kube_delta_fifo_t *fifo)
{
    bool    low;
    size_t  least, most;

    low = __real_kube_delta_fifo_low(fifo);
    beside_bytes(NULL, &least, &most);

    if (low ? beside.n >= beside.keys_max / 2 + 1
              || least >= beside.bytes_max / 2 + 1
            : beside.n * 2 < beside.keys_max && most * 2 < beside.bytes_max)
    {
        sim_fail(beside.sim, "FIFO: %s with %zu keys of %zu",
                 low ? "low" : "not low", beside.n, beside.keys_max);
    }

    return low;
}


void
__wrap_kube_list_turn_init(kube_list_turn_t *turn)
{
    beside.held = false;
    beside.not_before_ms = 0;
    beside.waiting_n = 0;
    __real_kube_list_turn_init(turn);
}


void
__wrap_kube_list_turn_hold(kube_list_turn_t *turn, uint64_t until_ms)
{
    beside.not_before_ms = until_ms;
    __real_kube_list_turn_hold(turn, until_ms);
}


/* The place among those that wait; waiting_n: none. */
static unsigned
beside_place(unsigned scope)
{
    unsigned  i;

    for (i = 0; i < beside.waiting_n; i++) {
        if (beside.waiting[i] == scope) {
            break;
        }
    }

    return i;
}


static void
beside_leave(unsigned scope)
{
    unsigned  i;

    i = beside_place(scope);

    if (i == beside.waiting_n) {
        return;
    }

    for (beside.waiting_n--; i < beside.waiting_n; i++) {
        beside.waiting[i] = beside.waiting[i + 1];
    }
}


/* Who lists loses the turn then to the first one that waits. */
static uint64_t
beside_end(void)
{
    uint64_t  idle_ms, end_ms;

    idle_ms = beside.moved_ms + KUBE_LIST_TURN_MS;
    end_ms = beside.since_ms + KUBE_LIST_TURN_MAX_MS;

    return (idle_ms < end_ms) ? idle_ms : end_ms;
}


bool
__wrap_kube_list_turn_take(kube_list_turn_t *turn, unsigned scope,
    uint64_t now_ms)
{
    bool  taken, mine, others;

    taken = __real_kube_list_turn_take(turn, scope, now_ms);
    mine = beside.held && beside.holder == scope;
    others = beside.held && !mine && now_ms < beside_end();

    if (!mine && beside_place(scope) == beside.waiting_n) {
        beside.waiting[beside.waiting_n++] = scope;
    }

    if (taken != (mine || (beside.waiting[0] == scope && !others
                           && now_ms >= beside.not_before_ms)))
    {
        sim_fail(beside.sim, "turns: scope %u %s one", scope,
                 taken ? "gets" : "does not get");
    }

    if (taken && !mine) {
        beside_leave(scope);
        beside.held = true;
        beside.holder = scope;
        beside.since_ms = now_ms;
        beside.moved_ms = now_ms;
    }

    return taken;
}


void
__wrap_kube_list_turn_progress(kube_list_turn_t *turn, unsigned scope,
    uint64_t now_ms)
{
    __real_kube_list_turn_progress(turn, scope, now_ms);

    if (beside.held && beside.holder == scope) {
        beside.moved_ms = now_ms;
    }
}


void
__wrap_kube_list_turn_anew(kube_list_turn_t *turn, unsigned scope,
    uint64_t now_ms)
{
    __real_kube_list_turn_anew(turn, scope, now_ms);

    if (beside.held && beside.holder == scope) {
        beside.since_ms = now_ms;
        beside.moved_ms = now_ms;
    }
}


void
__wrap_kube_list_turn_give(kube_list_turn_t *turn, unsigned scope)
{
    __real_kube_list_turn_give(turn, scope);

    beside_leave(scope);

    if (beside.held && beside.holder == scope) {
        beside.held = false;
    }
}


uint64_t
__wrap_kube_list_turn_deadline(const kube_list_turn_t *turn, unsigned scope)
{
    bool      next;
    uint64_t  at_ms, wanted_ms;

    at_ms = __real_kube_list_turn_deadline(turn, scope);
    next = (beside_place(scope) == 0);
    wanted_ms = beside.held ? beside_end() : 0;
    wanted_ms = (wanted_ms > beside.not_before_ms) ? wanted_ms
                                                   : beside.not_before_ms;

    if (at_ms != (next ? wanted_ms : KUBE_NEVER)) {
        sim_fail(beside.sim, "turns: scope %u wakes at %llu", scope,
                 (unsigned long long) at_ms);
    }

    return at_ms;
}


/*
 * Lists for room more often than room returns, beside watches to which anything
 * happens: they bring nothing, and are to change nothing.
 */
bool
__wrap_kube_publisher_room_returned(kube_publisher_t *p, unsigned scope,
    kube_room_ask_t *ask)
{
    if (__real_kube_publisher_room_returned(p, scope, ask)) {
        return true;
    }

    if (!beside.sim->fills || !sim_once_in(beside.sim, 8)) {
        return false;
    }

    *ask = (kube_room_ask_t) { .urgent = true };

    return true;
}
