/*
 * sim - one run: what there is, what may go wrong, and one step after the
 * other.
 *
 * The seed decides everything: two runs of one seed are the same.  For t/sim
 * only; sim_main.c and t/unit/test_sim.c call sim_run().
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"


/* A step, by weight; the faults' are drawn beside. */
typedef enum {
    SIM_STEP_WRITE = 0,
    SIM_STEP_APPLY,
    SIM_STEP_PUMP,
    SIM_STEP_PUMP_ALL,
    SIM_STEP_SLEEP,
    SIM_STEP_SLEEP_LONG,
    SIM_STEP_READ,
    SIM_STEP_FAULT,
    SIM_STEPS
} sim_step_t;

static const unsigned  sim_weights[SIM_STEPS] = { 16, 12, 30, 8, 12, 3, 12,
                                                  7 };

static const char *const  sim_faults[SIM_FAULTS] = {
#define XX(name, text)  [SIM_FAULT_##name] = text,
    SIM_FAULT_MAP(XX)
#undef XX
};


const char *
sim_fault_text(sim_fault_t fault)
{
    return sim_faults[fault];
}


void
sim_fail(sim_t *s, const char *fmt, ...)
{
    int      n;
    va_list  args;

    n = snprintf(s->why, sizeof(s->why), "step %llu, at %llu ms: ",
                 (unsigned long long) s->step,
                 (unsigned long long) s->now_ms);

    va_start(args, fmt);
    (void) vsnprintf(s->why + n, sizeof(s->why) - (size_t) n, fmt, args);
    va_end(args);

    siglongjmp(s->failed, 1);
}


void
sim_say(sim_t *s, const char *fmt, ...)
{
    va_list      args;
    const char  *p;

    for (p = fmt; *p != '\0'; p++) {
        s->trace = (s->trace ^ (unsigned char) *p) * 0x100000001b3ull;
    }

    s->trace ^= s->now_ms;

    if (!s->conf.verbose) {
        return;
    }

    printf("%6llu %8llu  ", (unsigned long long) s->step,
           (unsigned long long) s->now_ms);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
}


uint64_t
sim_draw(sim_t *s, uint64_t low, uint64_t high)
{
    return kube_random_range(&s->random, low, high);
}


bool
sim_once_in(sim_t *s, unsigned n)
{
    return kube_random_range(&s->random, 1, n) == 1;
}


bool
sim_fault(sim_t *s, sim_fault_t fault, unsigned n)
{
    if (s->quiet || !(s->faults & (1u << fault)) || !sim_once_in(s, n)) {
        return false;
    }

    s->conf.totals->fired[fault]++;

    return true;
}


/* Any of what is in flight, a watch or not; NULL: there is none. */
static sim_exchange_t *
sim_some_exchange(sim_t *s, bool (*is)(const sim_exchange_t *))
{
    unsigned         i, n;
    sim_exchange_t  *x, *found;

    found = NULL;

    for (i = 0, n = 0; i < SIM_EXCHANGES; i++) {
        x = &s->exchanges[i];

        if (x->live && (is == NULL || is(x)) && sim_once_in(s, ++n)) {
            found = x;
        }
    }

    return found;
}


/* What a watch says can be followed by something. */
static bool
sim_is_open_watch(const sim_exchange_t *x)
{
    return x->watch && x->headed && !x->last && !x->mute
           && x->dead_ms == KUBE_NEVER;
}


static bool
sim_is_alive(const sim_exchange_t *x)
{
    return x->dead_ms == KUBE_NEVER;
}


static void
sim_fault_mode(sim_t *s)
{
    unsigned        i, first, last;
    sim_replica_t  *r;

    static const struct {
        int       code;
        uint32_t  retry_after_s;
    } codes[] = {
        { 500, 0 }, { 503, 0 }, { 503, 4 }, { 429, 1 }, { 403, 0 },
        { 404, 0 }, { 400, 0 }, { 401, 0 }, { 410, 0 }, { 504, 0 }
    };

    /* one, or what all of them stand behind */

    first = (unsigned) sim_draw(s, 0, SIM_REPLICAS - 1);
    last = first;

    if (sim_once_in(s, 2)) {
        first = 0;
        last = SIM_REPLICAS - 1;
    }

    for (i = first; i <= last; i++) {
        r = &s->replicas[i];
        r->mode = (sim_mode_t) sim_draw(s, 1, SIM_MODES - 1);

        if (i != first) {
            r->mode = s->replicas[first].mode;
        }

        r->until_ms = s->now_ms + sim_draw(s, 100, sim_once_in(s, 4) ? 120000
                                                                     : 8000);
        r->code = codes[s->started % 10].code;
        r->retry_after_s = codes[s->started % 10].retry_after_s;

        sim_say(s, "server %u is in mode %d, %d", i, (int) r->mode, r->code);

        if (r->mode == SIM_MODE_REFUSED) {
            sim_net_cut(s, i, KUBE_CLOSED);
        }
    }
}


static void
sim_fault_half_open(sim_t *s)
{
    sim_exchange_t  *x;

    x = sim_some_exchange(s, sim_is_alive);

    if (x != NULL) {
        x->dead_ms = s->now_ms;
        sim_say(s, "#%llu: the peer is gone", (unsigned long long) x->number);
    }
}


static void
sim_fault_stall(sim_t *s)
{
    sim_exchange_t  *x;

    x = sim_some_exchange(s, sim_is_alive);

    if (x != NULL) {
        sim_net_pump(s, x, (size_t) sim_draw(s, 0, 2000));
        x->mute = x->headed;
    }
}


static void
sim_fault_bytes(sim_t *s, void (*say)(sim_t *, sim_exchange_t *))
{
    sim_exchange_t  *x;

    x = sim_some_exchange(s, sim_is_open_watch);

    if (x != NULL && x->out_at == x->out_len) {
        x->out_at = 0;
        x->out_len = 0;
        say(s, x);
        sim_net_pump(s, x, SIZE_MAX);
    }
}


static void
sim_fault_cut(sim_t *s)
{
    sim_exchange_t  *x;

    static const kube_rc_t  rcs[] = {
        KUBE_CLOSED, KUBE_CLOSED, KUBE_CLOSED, KUBE_OK, KUBE_TIMEOUT,
        KUBE_PROTO, KUBE_NOMEM, KUBE_IO
    };

    x = sim_some_exchange(s, NULL);

    if (x == NULL) {
        return;
    }

    if (sim_is_alive(x)) {
        sim_net_pump(s, x, (size_t) sim_draw(s, 0, 2000));
    }

    if (x->live) {
        sim_net_end(s, x, rcs[sim_draw(s, 0, 7)]);
    }
}


static void
sim_fault_restart(sim_t *s, unsigned replica)
{
    sim_say(s, "server %u restarts", replica);
    sim_net_cut(s, replica, sim_once_in(s, 2) ? KUBE_OK : KUBE_CLOSED);
    sim_server_restart(s, replica);

    if (!s->quiet && sim_once_in(s, 2)) {
        s->replicas[replica].mode = SIM_MODE_REFUSED;
        s->replicas[replica].until_ms = s->now_ms + sim_draw(s, 100, 20000);
    }
}


static void
sim_fault_restore(sim_t *s, bool ahead)
{
    unsigned  i;

    if (!ahead && s->etcd.point == 0) {
        sim_etcd_jump(s);
        return;
    }

    if (!sim_etcd_restore(s, ahead)) {
        return;
    }

    s->conf.totals->restores++;

    for (i = 0; i < SIM_REPLICAS; i++) {
        sim_fault_restart(s, i);
    }
}


static void
sim_fault_compact(sim_t *s)
{
    unsigned        i;
    sim_replica_t  *r;

    for (i = 0; i < SIM_REPLICAS; i++) {
        r = &s->replicas[i];

        if (r->applied != 0) {
            r->window = s->etcd.eras[r->era].log[r->applied - 1].at;
        }
    }

    sim_say(s, "what is older is gone");

    /* those that are behind are ended, too */

    if (sim_once_in(s, 3)) {
        sim_net_cut(s, SIM_REPLICAS, KUBE_OK);
    }
}


/* At once, or at some store of what the process does next. */
static void
sim_fault_kill(sim_t *s, bool words)
{
    static const unsigned  stores[] = { 1, 8, 40, 200, 1000 };

    if (s->process.inf != NULL) {
        s->process.words = words;
        s->process.kill_in = sim_draw(s, 1, stores[sim_draw(s, 0, 4)]);
    }
}


static void
sim_fault_memory(sim_t *s)
{
    sim_memory_t  *m;

    m = &s->process.memory;

    if (s->conf.fail_at != 0) {
        return;
    }

    m->fail_at = m->calls + sim_draw(s, 1, 60);
    m->fail_until = m->fail_at + (sim_once_in(s, 2) ? 1
                                                    : sim_draw(s, 1, 200));
}


static void
sim_step_fault(sim_t *s)
{
    unsigned     n;
    sim_fault_t  fault;

    for (n = 0; n < 4; n++) {
        fault = (sim_fault_t) sim_draw(s, 0, SIM_FAULTS - 1);

        if (s->faults & (1u << fault)) {
            break;
        }
    }

    if (n == 4) {
        return;
    }

    s->conf.totals->fired[fault]++;

    switch (fault) {

    case SIM_FAULT_CUT:
        sim_fault_cut(s);
        break;

    case SIM_FAULT_HALF_OPEN:
        sim_fault_half_open(s);
        break;

    case SIM_FAULT_STALL:
        sim_fault_stall(s);
        break;

    case SIM_FAULT_STATUS:
        sim_fault_bytes(s, sim_server_error_event);
        break;

    case SIM_FAULT_MODE:
        sim_fault_mode(s);
        break;

    case SIM_FAULT_RESTART:
        sim_fault_restart(s, (unsigned) sim_draw(s, 0, SIM_REPLICAS - 1));
        break;

    case SIM_FAULT_COMPACT:
        sim_fault_compact(s);
        break;

    case SIM_FAULT_RESTORE:
        sim_fault_restore(s, false);
        break;

    case SIM_FAULT_AHEAD:
        if (sim_once_in(s, 4)) {
            sim_fault_restore(s, true);
        }

        break;

    case SIM_FAULT_TOKEN:
        s->token++;
        break;

    case SIM_FAULT_LAG:
        s->replicas[sim_draw(s, 0, SIM_REPLICAS - 1)].lag_until_ms
            = s->now_ms + sim_draw(s, 10, 20000);
        break;

    case SIM_FAULT_GARBAGE:
        sim_fault_bytes(s, sim_server_garbage);
        break;

    case SIM_FAULT_UNREADABLE:
        sim_fault_bytes(s, sim_server_unreadable);
        break;

    case SIM_FAULT_KILL:
    case SIM_FAULT_CRASH:
        sim_fault_kill(s, fault == SIM_FAULT_CRASH);
        break;

    case SIM_FAULT_STOP:
        sim_process_stop(s);
        break;

    case SIM_FAULT_MEMORY:
        sim_fault_memory(s);
        break;

    case SIM_FAULT_CLOCK:
        s->wall_ms += (int64_t) sim_draw(s, 0, 7200000) - 3600000;
        break;

    default:
        /* those that are in what is answered, or in what there is */
        break;
    }
}


static void
sim_sleep(sim_t *s, uint64_t ms)
{
    s->now_ms += ms;
    sim_net_time(s);
}


/* Up to what is due next, a minute at most. */
static void
sim_sleep_long(sim_t *s, uint64_t max_ms)
{
    uint64_t  ms, net_ms;

    ms = s->process.start_ms;

    if (s->process.inf != NULL) {
        ms = kube_informer_deadline(s->process.inf);
    }

    net_ms = sim_net_deadline(s);
    ms = (net_ms < ms) ? net_ms : ms;
    ms = (ms > s->now_ms) ? ms - s->now_ms : 0;
    sim_sleep(s, (ms < max_ms) ? ms : max_ms);
}


/* Nothing is delivered meanwhile. */
static void
sim_sleep_on(sim_t *s, unsigned n)
{
    for ( ;; ) {
        sim_sleep_long(s, 10000);

        if (--n == 0) {
            return;
        }

        sim_process_run(s);
    }
}


static void
sim_pump(sim_t *s, bool all)
{
    unsigned         i;
    sim_exchange_t  *x;

    if (!all) {
        x = sim_some_exchange(s, NULL);

        if (x != NULL) {
            sim_net_pump(s, x, sim_once_in(s, 3)
                               ? (size_t) sim_draw(s, 1, 700) : SIZE_MAX);
        }

        return;
    }

    for (i = 0; i < SIM_EXCHANGES; i++) {
        sim_net_pump(s, &s->exchanges[i], SIZE_MAX);
    }
}


static void
sim_apply(sim_t *s, unsigned replica, size_t n)
{
    if (s->now_ms >= s->replicas[replica].lag_until_ms) {
        sim_server_apply(s, replica, n);
    }
}


static void
sim_step_apply(sim_t *s)
{
    unsigned  i;

    if (sim_once_in(s, 3)) {
        sim_apply(s, (unsigned) sim_draw(s, 0, SIM_REPLICAS - 1), 1);
        return;
    }

    for (i = 0; i < SIM_REPLICAS; i++) {
        sim_apply(s, i, SIZE_MAX);
    }
}


void
sim_meanwhile(sim_t *s)
{
    if (sim_once_in(s, 2)) {
        sim_etcd_write(s);
    }

    sim_step_apply(s);
    sim_pump(s, true);

    if (s->process.inf == NULL && s->now_ms >= s->process.start_ms) {
        sim_process_start(s);
    }

    sim_process_run(s);
}


static void
sim_read_some(sim_t *s)
{
    if (!s->quiet && sim_once_in(s, 2)) {
        s->check.pause_in = (unsigned) sim_draw(s, 1, 48);
    }

    sim_check_read(s, (unsigned) sim_draw(s, 0, SIM_READERS - 1),
                   (unsigned) sim_draw(s, 0, SIM_NAMESPACES - 1),
                   (unsigned) sim_draw(s, 0, SIM_SERVICES - 1));
}


static void
sim_one_step(sim_t *s)
{
    unsigned    weight;
    sim_step_t  step;

    s->step++;
    weight = (unsigned) sim_draw(s, 0, 99);

    for (step = 0; weight >= sim_weights[step]; step++) {
        weight -= sim_weights[step];
    }

    switch (step) {

    case SIM_STEP_WRITE:
        sim_etcd_write(s);
        break;

    case SIM_STEP_APPLY:
        sim_step_apply(s);
        break;

    case SIM_STEP_PUMP:
    case SIM_STEP_PUMP_ALL:
        sim_pump(s, step == SIM_STEP_PUMP_ALL);
        break;

    case SIM_STEP_SLEEP:
        sim_sleep(s, sim_draw(s, 1, 150));
        break;

    case SIM_STEP_SLEEP_LONG:
        sim_sleep_on(s, sim_once_in(s, 8) ? 12 : 1);
        break;

    case SIM_STEP_READ:
        sim_read_some(s);
        break;

    default:
        sim_step_fault(s);
        break;
    }

    if (s->process.inf == NULL) {
        if (s->now_ms >= s->process.start_ms) {
            sim_process_start(s);
        }

    } else if (s->narrow ? sim_once_in(s, 6) : !sim_once_in(s, 3)) {
        sim_process_run(s);
    }
}


/* No fault any more: everything that was one is over, but for its effects. */
static void
sim_heal(sim_t *s)
{
    unsigned         i;
    sim_exchange_t  *x;

    s->quiet = true;
    s->process.kill_in = 0;
    s->process.words = false;
    s->process.memory.fail_at = (s->conf.fail_at != 0) ? s->conf.fail_at : 0;

    for (i = 0; i < SIM_REPLICAS; i++) {
        s->replicas[i].until_ms = s->now_ms;
        s->replicas[i].lag_until_ms = 0;
    }

    for (i = 0; i < SIM_EXCHANGES; i++) {

        x = &s->exchanges[i];

        /* a proxy that held bodies back has lost them */

        if (x->live && x->mute) {
            sim_net_end(s, x, KUBE_CLOSED);

        } else if (x->live && sim_is_open_watch(x)) {
            sim_server_expire(s, x);
        }
    }

    sim_say(s, "no fault any more");
}


/* The check of life: C3, C9. */
static void
sim_settle(sim_t *s)
{
    unsigned     i, n;
    uint64_t     began_ms, started;
    const char  *what;

    kube_zone_usage_t  usage;

    sim_heal(s);
    began_ms = s->now_ms;

    for (n = 0; ; n++) {
        started = s->started;
        s->step++;
        sim_net_time(s);

        for (i = 0; i < SIM_REPLICAS; i++) {
            sim_apply(s, i, SIZE_MAX);
        }

        sim_pump(s, true);

        if (s->process.inf == NULL && s->now_ms >= s->process.start_ms) {
            sim_process_start(s);
        }

        sim_process_run(s);
        sim_read_some(s);

        if (s->started != started || n % 8 != 7) {
            continue;
        }

        what = sim_check_equal(s);

        if (what == NULL) {
            break;
        }

        if (s->now_ms - began_ms > SIM_SETTLE_MS) {
            sim_fail(s, "C9: not equal after %u s: %s", SIM_SETTLE_MS / 1000,
                     what);
        }

        if (n > 200000) {
            sim_fail(s, "C9: no end of it");
        }

        sim_sleep_long(s, 1000);
    }

    if (s->now_ms - began_ms > s->conf.totals->settle_ms) {
        s->conf.totals->settle_ms = s->now_ms - began_ms;
    }

    if (!s->restored && s->now_ms - began_ms > s->conf.totals->plain_ms
        && !(s->faults & (SIM_FAULT(KILL) | SIM_FAULT(CRASH)
                          | SIM_FAULT(MEMORY))))
    {
        s->conf.totals->plain_ms = s->now_ms - began_ms;
    }

    kube_zone_usage(&s->zone, &usage);
    sim_say(s, "equal after %llu ms; %llu of %llu bytes used, %llu refused",
            (unsigned long long) (s->now_ms - began_ms),
            (unsigned long long) usage.live_bytes,
            (unsigned long long) usage.records_bytes,
            (unsigned long long) usage.refused);
    s->quiet = false;
    s->restored = false;
}


/* What there is in this run, and which faults. */
static void
sim_setup(sim_t *s)
{
    unsigned     i;
    kube_seed_t  seed;

    static const kube_watch_list_t  asks[] = {
        KUBE_WATCH_LIST_AUTO, KUBE_WATCH_LIST_OFF, KUBE_WATCH_LIST_ON,
        KUBE_WATCH_LIST_AUTO
    };

    s->now_ms = 7000000;
    s->wall_ms = 1700000000000;
    s->bookmarks = !sim_once_in(s, 4);
    s->watch_list = !sim_once_in(s, 3);
    s->by_namespace = sim_once_in(s, 3);
    s->namespaces = 2;
    s->endpoints = sim_once_in(s, 3) ? 12 : 3;
    s->object_max = KUBE_OBJECT_BYTES_MIN;
    s->page_size = (uint32_t) sim_draw(s, 0, 6);
    s->ask = asks[sim_draw(s, 0, 3)];

    for (i = 0; i < SIM_NAMESPACES; i++) {
        s->names[i] = kube_str(sim_namespace(i));
    }

    /* a few at times, many at others */

    s->faults = (uint32_t) kube_random_next(&s->random);

    if (sim_once_in(s, 3)) {
        s->faults &= (uint32_t) kube_random_next(&s->random);
    }

    if (sim_once_in(s, 8)) {
        s->faults = 0;
    }

    s->faults &= s->conf.faults;

    /* much waits, and little may */
    s->narrow = sim_once_in(s, 4) && !(s->faults & SIM_FAULT(FULL));
    s->fills = sim_once_in(s, 4);

    if (s->faults & SIM_FAULT(FULL)) {
        s->endpoints = SIM_ENDPOINTS;
        s->object_max = 32u << 10;
        s->mem_size = KUBE_ZONE_SIZE_MIN;

    } else {
        s->mem_size = 512u << 10;
    }

    s->mem = calloc(1, s->mem_size);

    if (s->mem == NULL) {
        abort();
    }

    seed.k0 = kube_random_next(&s->random);
    seed.k1 = s->conf.seed;

    if (kube_zone_create(&s->zone, s->mem, s->mem_size, seed) != KUBE_OK) {
        sim_fail(s, "no zone");
    }

    s->token_ms = s->now_ms;
    sim_check_init(s);
    sim_process_init(s);
    sim_etcd_init(s);
    sim_servers_init(s);
}


static void
sim_rounds(sim_t *s)
{
    unsigned  round, i;

    for (round = 0; round < s->conf.rounds; round++) {

        for (i = 0; i < s->conf.steps; i++) {
            sim_one_step(s);
        }

        sim_settle(s);
    }

    /* what is left of memory is seen by this */
    s->quiet = true;
    sim_process_stop(s);
}


static void
sim_total(const sim_t *s)
{
    sim_totals_t  *totals;

    totals = s->conf.totals;

    totals->runs++;
    totals->steps += s->step;
    totals->changes += s->etcd.changes;
    totals->requests += s->started;
    totals->checks += s->check.checks;
    totals->reads += s->check.reads;
    totals->allocations += s->process.memory.calls;
    totals->failures += s->process.memory.failed;
}


bool
sim_run(const sim_conf_t *conf, char why[512], uint64_t *trace)
{
    bool    ok;
    sim_t  *s;

    s = calloc(1, sizeof(sim_t));

    if (s == NULL) {
        abort();
    }

    s->conf = *conf;
    kube_random_init(&s->random, conf->seed);

    ok = (sigsetjmp(s->failed, 0) == 0);

    if (ok) {
        sim_setup(s);
        sim_rounds(s);
    }

    sim_total(s);
    (void) snprintf(why, 512, "%s", s->why);
    *trace = s->trace;

    sim_process_drop(s);
    sim_check_done(s);
    sim_net_done(s);
    sim_etcd_done(s);
    free(s->mem);
    free(s);

    return ok;
}
