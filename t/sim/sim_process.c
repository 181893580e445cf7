/*
 * sim_process - the informer process: its memory, and its ends.
 *
 * SIGKILL leaves what was stored in the zone, and nothing else: the failpoint
 * before each store of the zone jumps out of the informer, its memory is given
 * back as a whole, and its sockets are gone.  A fatal signal says its last
 * words first.  For t/sim only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "kube_failpoint.h"
#include "kube_zone_pause.h"
#include "sim.h"


/* Before each block, in a ring. */
struct sim_block_s {
    _Alignas(16) sim_block_t  *next;
    sim_block_t               *before;
};

/* Whose store that is: a failpoint has no context. */
static sim_t  *process_sim;


static void *
memory_alloc(void *ctx, size_t size)
{
    sim_block_t   *block;
    sim_memory_t  *m = ctx;

    m->calls++;

    if (m->fail_at != 0
        && m->calls >= m->fail_at && m->calls < m->fail_until)
    {
        m->failed = true;
        m->failed_ms = process_sim->now_ms;
        return NULL;
    }

    block = malloc(sizeof(sim_block_t) + size);

    if (block == NULL) {
        abort();
    }

    block->before = NULL;
    block->next = m->blocks;

    if (m->blocks != NULL) {
        m->blocks->before = block;
    }

    m->blocks = block;
    m->live++;

    return block + 1;
}


static void
memory_free(void *ctx, void *p)
{
    sim_block_t   *block;
    sim_memory_t  *m = ctx;

    block = (sim_block_t *) p - 1;

    if (block->next != NULL) {
        block->next->before = block->before;
    }

    if (block->before != NULL) {
        block->before->next = block->next;

    } else {
        m->blocks = block->next;
    }

    m->live--;
    free(block);
}


static void
memory_drop(sim_memory_t *m)
{
    sim_block_t  *block, *next;

    for (block = m->blocks; block != NULL; block = next) {
        next = block->next;
        free(block);
    }

    m->blocks = NULL;
    m->live = 0;
}


void
sim_process_kill(sim_t *s)
{
    siglongjmp(s->process.killed, 1);
}


/* A worker stops where it loads something of the zone. */
void
kube_zone_pause_hit(const void *address)
{
    sim_t  *s;

    (void) address;
    s = process_sim;

    if (s == NULL || s->process.inside || s->check.pause_in == 0
        || --s->check.pause_in != 0)
    {
        return;
    }

    s->check.paused = true;
    sim_meanwhile(s);
}


void
kube_failpoint_hit(const char *name)
{
    sim_t          *s;
    sim_process_t  *process;

    s = process_sim;

    if (s == NULL || !s->process.inside || name[0] != 's'
        || strcmp(name, "store") != 0)
    {
        return;
    }

    process = &s->process;

    /* a worker reads meanwhile */

    if (!s->check.reading && kube_random_range(&s->random, 0, 255) == 0) {
        sim_check_read(s, (unsigned) sim_draw(s, 0, SIM_READERS - 1),
                       (unsigned) sim_draw(s, 0, SIM_NAMESPACES - 1),
                       (unsigned) sim_draw(s, 0, SIM_SERVICES - 1));
    }

    if (process->kill_in != 0 && --process->kill_in == 0) {
        sim_process_kill(s);
    }
}


static void
process_log(void *ctx, kube_log_level_t level, kube_event_id_t id,
    const char *line)
{
    sim_t  *s = ctx;

    (void) level;

    if (s->conf.verbose) {
        sim_say(s, "    %s: %s", kube_event_text(id), line);
    }

    if (id == KUBE_EV_INTERNAL) {
        sim_fail(s, "internal error: %s", line);
    }
}


void
sim_process_init(sim_t *s)
{
    sim_memory_t  *m;

    m = &s->process.memory;
    memset(&s->process, 0, sizeof(sim_process_t));
    m->alloc.alloc = memory_alloc;
    m->alloc.free = memory_free;
    m->alloc.ctx = m;
    m->fail_at = s->conf.fail_at;
    m->fail_until = s->conf.fail_at + 1;
    process_sim = s;
    sim_beside_init(s);
}


/* The process is gone; words: what became of it. */
static void
process_gone(sim_t *s, const char *how)
{
    sim_process_t  *process;

    process = &s->process;

    sim_say(s, "the informer process %s", how);
    sim_net_forget(s);
    sim_check_died(s);
    memory_drop(&process->memory);

    process->inf = NULL;
    process->inside = false;
    process->kill_in = 0;
    process->start_ms = s->now_ms + (sim_once_in(s, 3) ? 0
                                     : sim_draw(s, 1, 3000));
}


void
sim_process_drop(sim_t *s)
{
    process_sim = NULL;
    memory_drop(&s->process.memory);
}


void
sim_process_start(sim_t *s)
{
    sim_process_t         *process;
    kube_informer_conf_t   conf;

    process = &s->process;
    process->zone = s->zone;
    process->number++;
    process->calls = 0;

    memset(&conf, 0, sizeof(conf));

    conf.io = sim_net_io(s);
    conf.zone = &process->zone;
    conf.server = KUBE_STR("https://10.0.0.1:443");
    conf.namespaces = s->names;
    conf.namespaces_n = s->by_namespace ? s->namespaces : 0;
    conf.endpoints = KUBE_ENDPOINTS_SLICES;
    conf.object_bytes_max = s->object_max;
    conf.max_outdated_ms = KUBE_OUTDATED_MS_DEFAULT;
    conf.reflector.page_size = s->page_size;
    conf.reflector.watch_list = s->ask;
    conf.reflector.watch_timeout_ms = 300000;
    conf.reflector.idle_timeout_ms = 90000;
    conf.reflector.backoff.first_ms = 800;
    conf.reflector.backoff.max_ms = 30000;
    conf.reflector.backoff.unreachable_ms = 4000;
    conf.reflector.seed = sim_draw(s, 1, UINT32_MAX);
    conf.reflector.coverage = s->conf.totals->cells;
    conf.sink.write = process_log;
    conf.sink.ctx = s;
    conf.change = sim_check_change;
    conf.change_ctx = s;
    conf.pid = process->number;

    process->inf = kube_informer_create(&process->memory.alloc, &conf);

    sim_say(s, "informer process %u %s", process->number,
            process->inf != NULL ? "starts" : "has no memory");

    if (process->inf == NULL) {

        if (!process->memory.failed || process->memory.live != 0) {
            sim_fail(s, "no informer, and %zu blocks are left",
                     process->memory.live);
        }

        process->memory.failed = false;
        process->start_ms = s->now_ms + 100;
        return;
    }

    sim_check_started(s);
}


static void
process_killed(sim_t *s)
{
    if (s->process.words) {
        s->process.words = false;
        s->process.inside = false;
        kube_informer_last_words(s->process.inf, SIGSEGV);
        s->conf.totals->crashes++;
        process_gone(s, "crashes");

    } else {
        s->conf.totals->kills++;
        process_gone(s, "is killed");
    }
}


void
sim_process_run(sim_t *s)
{
    kube_rc_t       rc;
    sim_process_t  *process;

    process = &s->process;

    if (process->inf == NULL) {
        return;
    }

    if (sigsetjmp(process->killed, 0) != 0) {
        s->check.reading = false;
        process_killed(s);
        sim_check_zone(s, false);
        return;
    }

    process->inside = true;
    process->calls++;
    rc = kube_informer_process(process->inf, s->now_ms,
                               s->wall_ms + (int64_t) s->now_ms);
    process->inside = false;

    if (rc != KUBE_OK && rc != KUBE_BUSY
        && !(rc == KUBE_NOMEM && process->memory.failed))
    {
        sim_fail(s, "the informer says: %s", kube_rc_text(rc));
    }

    sim_check_zone(s, true);

    if (sim_once_in(s, 16)) {
        sim_check_image(s);
    }
}


void
sim_process_stop(sim_t *s)
{
    sim_process_t  *process;

    process = &s->process;

    if (process->inf == NULL) {
        return;
    }

    if (sigsetjmp(process->killed, 0) != 0) {
        process_killed(s);
        sim_check_zone(s, false);
        return;
    }

    process->inside = true;
    kube_informer_destroy(process->inf);
    process->inside = false;

    if (process->memory.live != 0) {
        sim_fail(s, "%zu blocks are left", process->memory.live);
    }

    s->conf.totals->stops++;
    process_gone(s, "has left");
    sim_check_zone(s, false);
}
