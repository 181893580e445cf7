/*
 * ngx_kube_state - the state file's writing: what a cold start serves from
 * while the API server is away.
 *
 *   <state_path>/<informer>.state        the file; .prev: the one before it
 *   <state_path>/<informer>.state.new    being written
 *   <state_path>/<informer>.state.lock   held by the one process that writes:
 *                                        two trees live side by side during
 *                                        a binary upgrade
 *   <state_path>/<informer>.state.ask    that one is asked here to write now:
 *                                        ngx_kube_state_ask.c
 *
 * Its bytes are kube_state's; here is what an operating system is asked for.
 * The file is encoded in one piece and written in slices, one a turn of the
 * event loop.  It carries a checksum, so no fsync() is needed: a torn file is
 * not used.  No failure here fails a start; it is logged once and shown in the
 * status.
 *
 * Informer process only, but for prepare and check; one per kube_informer
 * block.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube_state.h"

#include <sys/file.h>

#include "kube_zone_cause.h"
#include "kube_zone_guard.h"


#define NGX_KUBE_STATE_FIRST    5000
#define NGX_KUBE_STATE_PERIOD   60000
#define NGX_KUBE_STATE_SLICE    (256 * 1024)

/*
 * Of so many parts of state_max_age one is the age of a file at most, while the
 * server answers: what is hardly young enough as nginx ends is too old as it
 * starts.  Who asks for a file starts at once: all but one part.
 */
#define NGX_KUBE_STATE_PARTS    4

/*
 * Who waits for the lock looks for it so often: at first as for a predecessor
 * that ends its last file, then as for an old tree that may stay for long.
 */
#define NGX_KUBE_STATE_SOON     100
#define NGX_KUBE_STATE_LATER    1000

/* A binary upgrade may take so long. */
#define NGX_KUBE_STATE_LOCKED   (5 * 60 * 1000)

/* More takes too long at the end of a process: it is copied in one piece. */
#define NGX_KUBE_STATE_LAST     (64 * 1024 * 1024)


static ngx_int_t ngx_kube_state_names(ngx_kube_state_t *state);
static ngx_int_t ngx_kube_state_name(ngx_kube_state_t *state, char **name,
    const char *suffix);
static ngx_uint_t ngx_kube_state_poorer(const ngx_kube_state_t *state,
    bool unconfirmed);
static uint64_t ngx_kube_state_begin(ngx_kube_state_t *state,
    kube_informer_t *inf, uint64_t now_ms);
static void ngx_kube_state_bind(ngx_kube_state_t *state);
static uint64_t ngx_kube_state_sum(ngx_kube_state_t *state);
static int64_t ngx_kube_state_current(ngx_kube_state_t *state,
    ngx_uint_t asked);
static void ngx_kube_state_keep(ngx_kube_state_t *state);
static ngx_int_t ngx_kube_state_lock(ngx_kube_state_t *state,
    uint64_t now_ms);
static uint64_t ngx_kube_state_look(ngx_kube_state_t *state, uint64_t now_ms);
static void ngx_kube_state_locked(ngx_kube_state_t *state, uint64_t now_ms);
static ngx_int_t ngx_kube_state_encode(ngx_kube_state_t *state,
    kube_informer_t *inf);
static ngx_int_t ngx_kube_state_open(ngx_kube_state_t *state);
static uint64_t ngx_kube_state_slice(ngx_kube_state_t *state,
    uint64_t now_ms);
static ngx_int_t ngx_kube_state_replace(ngx_kube_state_t *state);
static void ngx_kube_state_abandon(ngx_kube_state_t *state);
static void ngx_kube_state_failure(ngx_kube_state_t *state, ngx_err_t err,
    const char *what, const char *name);


void
ngx_kube_state_prepare(ngx_cycle_t *cycle, ngx_kube_informer_t *informer)
{
    int               fd;
    char             *path;
    ngx_core_conf_t  *ccf;

    path = (char *) informer->state_path.data;

    if (informer->state_path.len == 0
        || mkdir(path, 0700) == -1
        || geteuid() != 0)
    {
        return;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    /* by descriptor: something else may stand under that name by now */

    fd = open(path, O_RDONLY|O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC);

    if (fd == -1 || fchown(fd, ccf->user, (gid_t) -1) == -1) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, ngx_errno,
                      "kube informer \"%V\": \"%s\" cannot be given to the "
                      "user of the workers", &informer->name, path);
    }

    if (fd != -1) {
        (void) close(fd);
    }
}


void
ngx_kube_state_check(ngx_cycle_t *cycle, ngx_kube_informer_t *informer)
{
    struct stat       st;
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    /* a group, or everybody, may be let in: that is not judged here */

    if (ngx_process == NGX_PROCESS_SIGNALLER
        || informer->state_path.len == 0
        || ccf->username == NULL
        || ccf->user == 0
        || lstat((char *) informer->state_path.data, &st) == -1
        || !S_ISDIR(st.st_mode)
        || st.st_uid == ccf->user
        || (st.st_mode & (S_IWGRP|S_IWOTH)) != 0)
    {
        return;
    }

    ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                  "kube_informer \"%V\": \"%V\" belongs to uid %ui, and no "
                  "state file can be written as user \"%s\": give that user "
                  "the directory and what is in it, or name another one with "
                  "\"state_path\"", &informer->name, &informer->state_path,
                  (ngx_uint_t) st.st_uid, ccf->username);
}


ngx_kube_state_t *
ngx_kube_state_create(ngx_kube_informer_t *informer, kube_client_t *client,
    ngx_kube_loop_t *loop, ngx_log_t *log)
{
    ngx_kube_state_t  *state;

    if (informer->state_path.len == 0) {
        return NULL;
    }

    state = calloc(1, sizeof(ngx_kube_state_t));
    if (state == NULL) {
        return NULL;
    }

    /* RLIMIT_FSIZE: write() fails then, as for want of space */

    (void) signal(SIGXFSZ, SIG_IGN);

    state->informer = informer;
    state->client = client;
    state->loop = loop;
    state->log = log;
    state->lock = -1;
    state->fd = -1;

    if (ngx_kube_state_names(state) != NGX_OK) {
        ngx_kube_state_destroy(state);
        return NULL;
    }

    return state;
}


void
ngx_kube_state_destroy(ngx_kube_state_t *state)
{
    if (state == NULL) {
        return;
    }

    ngx_kube_state_abandon(state);
    ngx_kube_state_deaf(state);

    if (state->lock != -1) {
        (void) close(state->lock);
    }

    free(state->paths.file);
    free(state->paths.prev);
    free(state->paths.next);
    free(state->paths.lock);
    free(state->paths.ask);
    free(state);
}


static ngx_int_t
ngx_kube_state_names(ngx_kube_state_t *state)
{
    if (ngx_kube_state_name(state, &state->paths.file, "") != NGX_OK
        || ngx_kube_state_name(state, &state->paths.prev, ".prev") != NGX_OK
        || ngx_kube_state_name(state, &state->paths.next, ".new") != NGX_OK
        || ngx_kube_state_name(state, &state->paths.lock, ".lock") != NGX_OK
        || ngx_kube_state_name(state, &state->paths.ask, ".ask") != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_kube_state_name(ngx_kube_state_t *state, char **name, const char *suffix)
{
    size_t                size;
    ngx_kube_informer_t  *informer;

    informer = state->informer;

    size = informer->state_path.len + 1 + informer->name.len
           + sizeof(".state") + ngx_strlen(suffix);

    *name = malloc(size);
    if (*name == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_snprintf((u_char *) *name, size, "%V/%V.state%s%Z",
                        &informer->state_path, &informer->name, suffix);

    return NGX_OK;
}


void
ngx_kube_state_show(ngx_kube_state_t *state)
{
    kube_zone_t  *zone;

    zone = &state->informer->zone;

    kube_zone_set_state_file(zone, state->written_ms, state->in_use,
                             state->failed);

    if (!state->failed) {
        kube_zone_cause_set(zone, KUBE_CAUSE_STATE_FILE, 0);

    } else if (kube_zone_cause_since(zone, KUBE_CAUSE_STATE_FILE) == 0) {
        kube_zone_cause_set(zone, KUBE_CAUSE_STATE_FILE, ngx_kube_now());
    }
}


/*
 * There is none any more, since a reload: what was said of its writing is over,
 * and what it brought serves until the server has answered, as ever.
 */

void
ngx_kube_state_off(ngx_kube_informer_t *informer, kube_informer_t *inf)
{
    bool                unconfirmed;
    ngx_uint_t          in_use;
    kube_writer_info_t  writer;

    kube_zone_writer_info(&informer->zone, &writer);

    in_use = (writer.state_in_use != 0
              && (!kube_informer_settled(inf, &unconfirmed) || unconfirmed));

    if (writer.state_failed == 0
        && in_use == (writer.state_in_use != 0)
        && (in_use || writer.state_written_ms == 0))
    {
        return;
    }

    kube_zone_set_state_file(&informer->zone,
                             in_use ? writer.state_written_ms : 0, in_use, 0);
    kube_zone_cause_set(&informer->zone, KUBE_CAUSE_STATE_FILE, 0);
}


uint64_t
ngx_kube_state_process(ngx_kube_state_t *state, kube_informer_t *inf,
    uint64_t now_ms)
{
    bool                synced, unconfirmed;
    uint64_t            next_ms;
    kube_writer_info_t  writer;

    if (!state->known) {

        /* a predecessor may have written the file, or have loaded it */

        kube_zone_writer_info(&state->informer->zone, &writer);

        state->known = 1;
        state->written_ms = writer.state_written_ms;
        state->in_use = writer.state_in_use != 0;
        state->failed = writer.state_failed != 0;
    }

    if (state->fd != -1 && (!state->asked || state->anew)) {
        next_ms = ngx_kube_state_slice(state, now_ms);
        return (state->fd == -1 && state->asked) ? now_ms : next_ms;
    }

    /*
     * Who asks meanwhile would take what was begun before for the file of now.
     * Once a file: there is an end to it, however often one asks.
     */

    state->anew = (state->fd != -1);
    ngx_kube_state_abandon(state);

    if (!kube_informer_settled(inf, &unconfirmed)) {
        return UINT64_MAX;
    }

    if (state->in_use && !unconfirmed) {
        state->in_use = 0;
        ngx_kube_state_show(state);
    }

    synced = kube_informer_synced(inf);

    if (state->next_ms == 0) {

        /* who may be asked for a file need not have written one */

        state->next_ms = now_ms + (synced ? NGX_KUBE_STATE_FIRST
                                          : NGX_KUBE_STATE_PERIOD);
        (void) ngx_kube_state_lock(state, now_ms);
    }

    /* rights that come late: a good file is not replaced by less at once */

    if (synced && !state->synced
        && state->next_ms > now_ms + NGX_KUBE_STATE_FIRST)
    {
        state->next_ms = now_ms + NGX_KUBE_STATE_FIRST;
    }

    state->synced = synced;

    if (state->lock == -1 && state->look_ms != 0) {
        return ngx_kube_state_look(state, now_ms);
    }

    if (now_ms < state->next_ms
        && (!state->asked || ngx_kube_state_poorer(state, unconfirmed)))
    {
        return state->next_ms;
    }

    return ngx_kube_state_begin(state, inf, now_ms);
}


/*
 * The first file of this process would have less than the one that stands: that
 * is not replaced before its time.
 */

static ngx_uint_t
ngx_kube_state_poorer(const ngx_kube_state_t *state, bool unconfirmed)
{
    return unconfirmed && state->sum == 0;
}


void
ngx_kube_state_last(ngx_kube_state_t *state, kube_informer_t *inf,
    uint64_t now_ms)
{
    bool                 unconfirmed;
    kube_zone_writer_t  *writer;

    if (state == NULL
        || inf == NULL
        || !kube_informer_settled(inf, &unconfirmed))
    {
        return;
    }

    if (ngx_kube_state_poorer(state, unconfirmed)
        && (state->next_ms == 0 || now_ms < state->next_ms))
    {
        return;
    }

    writer = kube_informer_writer(inf);

    if (writer == NULL || kube_state_size(writer) > NGX_KUBE_STATE_LAST) {
        return;
    }

    state->leaving = 1;

    ngx_kube_state_abandon(state);
    (void) ngx_kube_state_begin(state, inf, now_ms);
}


/*
 * A file of one slice is written, however long all else has taken; a slice that
 * ends none is not: of many files on a slow disk each would have one more.
 */

void
ngx_kube_state_finish(ngx_kube_state_t *state, uint64_t deadline_ms)
{
    uint64_t  now_ms;

    while (state != NULL && state->fd != -1) {
        now_ms = ngx_kube_now();

        if (now_ms >= deadline_ms
            && state->size - state->written > NGX_KUBE_STATE_SLICE)
        {
            break;
        }

        (void) ngx_kube_state_slice(state, now_ms);
    }
}


static uint64_t
ngx_kube_state_begin(ngx_kube_state_t *state, kube_informer_t *inf,
    uint64_t now_ms)
{
    int64_t     refresh, age;
    ngx_uint_t  asked;

    state->next_ms = now_ms + NGX_KUBE_STATE_PERIOD;

    ngx_kube_state_keep(state);
    ngx_kube_state_bind(state);

    /* who asks so early, as a successor does, has one once it is bound */

    if (state->info.ca_n == 0) {
        return state->next_ms;
    }

    asked = state->asked;
    state->asked = 0;

    state->current_new_ms = ngx_kube_state_current(state, asked);
    state->sum_new = ngx_kube_state_sum(state);

    /*
     * An unchanged file is written again before it is too old to be used, and
     * where the clock was set back: it would be of the future.
     */

    refresh = (int64_t) state->informer->state_max_age / NGX_KUBE_STATE_PARTS;
    age = state->current_new_ms - state->current_ms;

    if (state->sum_new == state->sum && !state->failed && !asked
        && age > -NGX_KUBE_STATE_PERIOD && age < refresh)
    {
        return state->next_ms;
    }

    if (ngx_kube_state_lock(state, now_ms) != NGX_OK
        || ngx_kube_state_encode(state, inf) != NGX_OK
        || ngx_kube_state_open(state) != NGX_OK)
    {
        ngx_kube_state_abandon(state);
        return state->next_ms;
    }

    return now_ms;
}


/*
 * Binds what is written to those who vouch for the server.  A bundle that was
 * spoilt meanwhile has no certificate: a file without marks could not be used
 * by anybody, and it would take a good one's place.  One that has no
 * certificate in common with the one before does not vouch for what is held: it
 * may be another cluster's, until a server has answered under it.
 */

static void
ngx_kube_state_bind(ngx_kube_state_t *state)
{
    kube_state_info_t  now;

    now.ca_n = kube_client_ca_marks(state->client, now.ca);

    if (now.ca_n == 0) {
        return;
    }

    if (kube_state_same_ca(&state->info, &now)
        || kube_client_answered(state->client))
    {
        ngx_memcpy(state->info.ca, now.ca, now.ca_n * sizeof(uint64_t));
        state->info.ca_n = now.ca_n;
        state->ca_said = 0;

    } else if (state->info.ca_n != 0 && !state->ca_said) {
        state->ca_said = 1;
        ngx_log_error(NGX_LOG_WARN, state->log, 0,
                      "kube informer \"%V\": the CA was replaced by one that "
                      "has no certificate in common with it, and the API "
                      "server has not answered under the new one yet: the "
                      "state file stays bound to the old one",
                      &state->informer->name);
    }
}


/*
 * A hash over the CA, the scopes of a new file and their digests: it changes
 * whenever the contents of that would.  It is never 0, which means "nothing
 * written yet".
 */

static uint64_t
ngx_kube_state_sum(ngx_kube_state_t *state)
{
    uint64_t           sum, words[4];
    unsigned           slot;
    kube_zone_t       *zone;
    kube_seed_t        seed;
    kube_arena_t       arena;
    kube_scope_info_t  info;

    zone = &state->informer->zone;
    seed.k0 = 0;
    seed.k1 = 0;
    sum = kube_hash64(seed, state->info.ca,
                      state->info.ca_n * sizeof(uint64_t)) | 1;

    kube_arena_init(&arena, &ngx_kube_alloc, 1 << 20);

    for (slot = 0; slot < KUBE_SCOPES_MAX; slot++) {

        kube_arena_reset(&arena);

        if (kube_zone_scope_read(zone, slot, &arena, &info) != KUBE_OK
            || kube_state_is_omitted(&state->omitted, info.resource,
                                     info.ns))
        {
            continue;
        }

        words[0] = sum;
        words[1] = info.scope_hash ^ info.count;
        words[2] = info.digest.lo;
        words[3] = info.digest.hi;

        sum = kube_hash64(seed, words, sizeof(words)) | 1;
    }

    kube_arena_done(&arena);

    return sum;
}


/*
 * Returns the unix ms at which what is not omitted was last known to be
 * current.  The age of a file counts from there, not from the moment of
 * writing.
 */

static int64_t
ngx_kube_state_current(ngx_kube_state_t *state, ngx_uint_t asked)
{
    int64_t   now;
    uint64_t  part_ms, age_ms;

    now = ngx_kube_unix_ms();
    part_ms = state->informer->state_max_age / NGX_KUBE_STATE_PARTS;

    age_ms = kube_state_omit(&state->informer->zone, ngx_kube_now(),
                             asked ? part_ms * (NGX_KUBE_STATE_PARTS - 1)
                                   : part_ms,
                             &state->omitted);

    if (age_ms > (uint64_t) now) {
        return now;
    }

    return now - (int64_t) age_ms;
}


/*
 * A directory that was removed, or made anew, meanwhile: what is locked and
 * heard is nobody else's to find, and nothing has been written there.
 */

static void
ngx_kube_state_keep(ngx_kube_state_t *state)
{
    if (state->lock == -1
        || ngx_kube_state_named(state->lock, state->paths.lock))
    {
        return;
    }

    ngx_kube_state_deaf(state);

    (void) close(state->lock);
    state->lock = -1;

    state->sum = 0;
}


/*
 * Makes the directory if it is missing (one level, no parents) and takes the
 * lock.  During a binary upgrade the other tree may hold it: no failure.
 */

static ngx_int_t
ngx_kube_state_lock(ngx_kube_state_t *state, uint64_t now_ms)
{
    int    fd;
    char  *slash;

    if (state->lock != -1) {
        return NGX_OK;
    }

    slash = strrchr(state->paths.lock, '/');
    *slash = '\0';

    if (mkdir(state->paths.lock, 0700) == -1 && ngx_errno != NGX_EEXIST) {
        ngx_kube_state_failure(state, ngx_errno, "mkdir()",
                               state->paths.lock);
        *slash = '/';
        return NGX_ERROR;
    }

    *slash = '/';

    fd = open(state->paths.lock, O_RDWR|O_CREAT|O_NOFOLLOW|O_CLOEXEC, 0600);

    if (fd == -1) {
        ngx_kube_state_failure(state, ngx_errno, "open()",
                               state->paths.lock);
        return NGX_ERROR;
    }

    if (flock(fd, LOCK_EX|LOCK_NB) == -1) {

        if (ngx_errno == EWOULDBLOCK) {
            ngx_kube_state_locked(state, now_ms);
        } else {
            ngx_kube_state_failure(state, ngx_errno, "flock()",
                                   state->paths.lock);
        }

        (void) close(fd);
        return NGX_ERROR;
    }

    state->lock = fd;
    state->locked_ms = 0;
    state->look_ms = 0;

    /* there are no connections any more, nor anybody to ask, at the end */

    if (!state->leaving) {
        ngx_kube_state_hear(state);
    }

    return NGX_OK;
}


/*
 * As long as nobody hears, the file of who is asked is an old one.  What is
 * written is written a while later, as after any other start.
 */

static uint64_t
ngx_kube_state_look(ngx_kube_state_t *state, uint64_t now_ms)
{
    if (now_ms >= state->look_ms) {
        state->look_ms = 0;
        (void) ngx_kube_state_lock(state, now_ms);
    }

    return (state->look_ms != 0) ? state->look_ms : state->next_ms;
}


/* One that stays locked belongs to another nginx: this one never writes. */

static void
ngx_kube_state_locked(ngx_kube_state_t *state, uint64_t now_ms)
{
    state->next_ms = now_ms + NGX_KUBE_STATE_FIRST;

    if (state->locked_ms == 0) {
        state->locked_ms = now_ms;
    }

    state->look_ms = now_ms
                     + (now_ms - state->locked_ms < NGX_KUBE_STATE_FIRST
                            ? NGX_KUBE_STATE_SOON : NGX_KUBE_STATE_LATER);

    if (state->said || now_ms - state->locked_ms < NGX_KUBE_STATE_LOCKED) {
        return;
    }

    ngx_log_error(NGX_LOG_WARN, state->log, 0,
                  "kube informer \"%V\": state file is not written: another "
                  "nginx holds \"%s\"; \"state_path dir;\" gives each its own",
                  &state->informer->name, state->paths.lock);

    state->failed = 1;
    state->said = 1;

    ngx_kube_state_show(state);
}


static ngx_int_t
ngx_kube_state_encode(ngx_kube_state_t *state, kube_informer_t *inf)
{
    size_t               size;
    kube_rc_t            rc;
    kube_zone_writer_t  *writer;

    writer = kube_informer_writer(inf);
    if (writer == NULL) {
        return NGX_ERROR;
    }

    size = kube_state_size(writer);

    state->bytes = malloc(size);

    if (state->bytes == NULL) {
        ngx_kube_state_failure(state, ngx_errno, "malloc()",
                               state->paths.file);
        return NGX_ERROR;
    }

    state->info.identity = kube_informer_identity(inf);
    state->info.written_ms = state->current_new_ms;

    rc = kube_state_encode(writer, &state->info, &state->omitted, state->bytes,
                           size, &state->size);

    if (rc != KUBE_OK) {
        ngx_kube_state_failure(state, 0, kube_rc_text(rc),
                               state->paths.file);
        return NGX_ERROR;
    }

    state->written = 0;

    return NGX_OK;
}


/*
 * Opens the new file.  One that is there already was left by a process that
 * died while it wrote: the lock is held, so nobody else writes it.
 */

static ngx_int_t
ngx_kube_state_open(ngx_kube_state_t *state)
{
    if (unlink(state->paths.next) == -1 && ngx_errno != NGX_ENOENT) {
        ngx_kube_state_failure(state, ngx_errno, "unlink()",
                               state->paths.next);
        return NGX_ERROR;
    }

    state->fd = open(state->paths.next,
                     O_WRONLY|O_CREAT|O_EXCL|O_NOFOLLOW|O_CLOEXEC, 0600);

    if (state->fd == -1) {
        ngx_kube_state_failure(state, ngx_errno, "open()",
                               state->paths.next);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static uint64_t
ngx_kube_state_slice(ngx_kube_state_t *state, uint64_t now_ms)
{
    ssize_t  n;

    n = write(state->fd, state->bytes + state->written,
              ngx_min(state->size - state->written, NGX_KUBE_STATE_SLICE));

    if (n == -1 && ngx_errno == NGX_EINTR) {
        return now_ms;
    }

    if (n <= 0) {
        ngx_kube_state_failure(state, ngx_errno, "write()",
                               state->paths.next);
        ngx_kube_state_abandon(state);
        return state->next_ms;
    }

    state->written += (size_t) n;

    if (state->written < state->size) {
        return now_ms;
    }

    if (ngx_kube_state_replace(state) == NGX_OK) {

        if (state->failed) {
            ngx_log_error(NGX_LOG_NOTICE, state->log, 0,
                          "kube informer \"%V\": state file \"%s\" is written "
                          "again", &state->informer->name, state->paths.file);
        }

        state->failed = 0;
        state->said = 0;
        state->sum = state->sum_new;
        state->current_ms = state->current_new_ms;
        state->written_ms = ngx_kube_unix_ms();

        ngx_kube_state_show(state);
    }

    ngx_kube_state_abandon(state);

    return state->next_ms;
}


static ngx_int_t
ngx_kube_state_replace(ngx_kube_state_t *state)
{
    int  fd;

    fd = state->fd;
    state->fd = -1;

    /* a network file system may tell of its failures only now */

    if (close(fd) == -1) {
        ngx_kube_state_failure(state, ngx_errno, "close()",
                               state->paths.next);
        (void) unlink(state->paths.next);
        return NGX_ERROR;
    }

    /*
     * The previous file is kept under a second name, so that there is no
     * moment without one; where links cannot be made, it is not kept.
     */

    if (unlink(state->paths.prev) == -1 && ngx_errno != NGX_ENOENT) {
        ngx_kube_state_failure(state, ngx_errno, "unlink()",
                               state->paths.prev);
        (void) unlink(state->paths.next);
        return NGX_ERROR;
    }

    if (link(state->paths.file, state->paths.prev) == -1
        && ngx_errno != NGX_ENOENT)
    {
        ngx_log_error(NGX_LOG_INFO, state->log, ngx_errno,
                      "kube informer \"%V\": the previous state file is not "
                      "kept: link() \"%s\" failed",
                      &state->informer->name, state->paths.prev);
    }

    if (rename(state->paths.next, state->paths.file) == -1) {
        ngx_kube_state_failure(state, ngx_errno, "rename()",
                               state->paths.next);
        (void) unlink(state->paths.next);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static void
ngx_kube_state_abandon(ngx_kube_state_t *state)
{
    if (state->fd != -1) {
        (void) close(state->fd);
        (void) unlink(state->paths.next);
        state->fd = -1;
    }

    free(state->bytes);
    state->bytes = NULL;
}


/*
 * Logs a failure once a process, until writing succeeds again: after a reload
 * it may be another directory that cannot be written.  The user did not ask for
 * the default path, so a failure there is a notice and names the remedy.
 */

static void
ngx_kube_state_failure(ngx_kube_state_t *state, ngx_err_t err,
    const char *what, const char *name)
{
    ngx_uint_t  level;

    if (state->said) {
        return;
    }

    level = state->informer->state_named ? NGX_LOG_WARN : NGX_LOG_NOTICE;

    ngx_log_error(level, state->log, err,
                  "kube informer \"%V\": state file is not written: %s \"%s\" "
                  "failed%s", &state->informer->name, what, name,
                  state->informer->state_named
                  ? "" : "; \"state_path dir;\" says where it may be, "
                         "\"state_path off;\" that it need not");

    state->failed = 1;
    state->said = 1;

    ngx_kube_state_show(state);
}
