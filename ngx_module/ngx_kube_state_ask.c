/*
 * ngx_kube_state_ask - a state file of now, for who starts on an empty zone
 * beside the process that writes the file: the new tree of a binary upgrade,
 * or a new zone of a reload.
 *
 * The writer reads a FIFO, <state_path>/<informer>.state.ask.  Who wants a file
 * writes a byte into it and looks whether the file is another one: for a short
 * while, for the writer may be stopped, or have no file to give.  A FIFO that
 * nobody reads cannot be opened: where there is no writer, or one of an older
 * version, nobody waits.  No signal is sent to anyone, and whoever may write
 * into the directory may ask.
 *
 * Informer process only; one for each kube_informer block.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube_state.h"

#include "kube_zone_guard.h"


/*
 * ms.  Requests may be waiting for the first list (unsynced_wait, 500 ms by
 * default), which begins after this.
 */
#define NGX_KUBE_STATE_AWAIT  300
#define NGX_KUBE_STATE_LOOK   5


static int ngx_kube_state_fifo(ngx_kube_state_t *state, int flags);
static void ngx_kube_state_asked(ngx_event_t *ev);


void
ngx_kube_state_ask(ngx_kube_state_t *state, uint64_t now_ms)
{
    int                 fd;
    struct stat         st;
    kube_writer_info_t  writer;

    kube_zone_writer_info(&state->informer->zone, &writer);

    /* what a writer has left in a zone is newer than any file */

    if (writer.epoch != 0) {
        return;
    }

    ngx_memzero(&st, sizeof(struct stat));
    (void) lstat(state->paths.file, &st);

    state->before_dev = st.st_dev;
    state->before_ino = st.st_ino;

    fd = ngx_kube_state_fifo(state, O_WRONLY);

    if (fd == -1) {
        return;
    }

    if (write(fd, "w", 1) == 1) {
        state->awaited_ms = now_ms + NGX_KUBE_STATE_AWAIT;
    }

    (void) close(fd);
}


uint64_t
ngx_kube_state_awaited(ngx_kube_state_t *state, uint64_t now_ms)
{
    struct stat  st;

    if (state->awaited_ms == 0) {
        return 0;
    }

    if (lstat(state->paths.file, &st) == 0
        && (st.st_dev != state->before_dev || st.st_ino != state->before_ino))
    {
        state->awaited_ms = 0;
        return 0;
    }

    if (now_ms >= state->awaited_ms) {
        ngx_log_error(NGX_LOG_NOTICE, state->log, 0,
                      "kube informer \"%V\": who holds \"%s\" has written no "
                      "state file within %d ms: the one that is there is as "
                      "new as it is", &state->informer->name,
                      state->paths.lock, NGX_KUBE_STATE_AWAIT);

        state->awaited_ms = 0;
        return 0;
    }

    return now_ms + NGX_KUBE_STATE_LOOK;
}


void
ngx_kube_state_hear(ngx_kube_state_t *state)
{
    int                fd;
    ngx_connection_t  *c;

    c = NULL;
    fd = -1;

    if (mkfifo(state->paths.ask, 0600) == 0 || ngx_errno == NGX_EEXIST) {

        /* for writing, too: else it would be at its end when nobody asks */

        fd = ngx_kube_state_fifo(state, O_RDWR);
    }

    if (fd != -1) {
        c = ngx_get_connection(fd, state->log);
    }

    if (c == NULL) {
        goto failed;
    }

    c->data = state;
    c->log = state->log;
    c->read->log = state->log;
    c->write->log = state->log;
    c->read->handler = ngx_kube_state_asked;

    if (ngx_add_event(c->read, NGX_READ_EVENT, NGX_LEVEL_EVENT) != NGX_OK) {
        ngx_free_connection(c);
        c->fd = (ngx_socket_t) -1;
        goto failed;
    }

    state->asks = c;

    return;

failed:

    ngx_log_error(NGX_LOG_INFO, state->log, ngx_errno,
                  "kube informer \"%V\": nobody can ask for the state file: "
                  "\"%s\" cannot be used", &state->informer->name,
                  state->paths.ask);

    if (fd != -1) {
        (void) close(fd);
    }
}


void
ngx_kube_state_deaf(ngx_kube_state_t *state)
{
    if (state->asks == NULL) {
        return;
    }

    /* in a directory that was made anew it is another's */

    if (ngx_kube_state_named(state->asks->fd, state->paths.ask)) {
        (void) unlink(state->paths.ask);
    }

    ngx_close_connection(state->asks);
    state->asks = NULL;
}


ngx_uint_t
ngx_kube_state_named(int fd, const char *name)
{
    struct stat  held, there;

    return fstat(fd, &held) == 0
           && lstat(name, &there) == 0
           && held.st_dev == there.st_dev
           && held.st_ino == there.st_ino;
}


/* -1: there is none, or it is none of ours; or, for writing, nobody reads. */

static int
ngx_kube_state_fifo(ngx_kube_state_t *state, int flags)
{
    int          fd;
    struct stat  st;

    fd = open(state->paths.ask, flags|O_NONBLOCK|O_NOFOLLOW|O_CLOEXEC);

    if (fd == -1) {
        return -1;
    }

    if (fstat(fd, &st) == -1
        || !S_ISFIFO(st.st_mode)
        || st.st_uid != geteuid())
    {
        (void) close(fd);
        return -1;
    }

    return fd;
}


static void
ngx_kube_state_asked(ngx_event_t *ev)
{
    ssize_t            n;
    u_char             bytes[64];
    ngx_connection_t  *c;
    ngx_kube_state_t  *state;

    c = ev->data;
    state = c->data;

    /* how many have asked does not matter */

    do {
        n = read(c->fd, bytes, sizeof(bytes));
    } while (n == (ssize_t) sizeof(bytes));

    state->asked = 1;
    ngx_kube_loop_wake(state->loop);
}
