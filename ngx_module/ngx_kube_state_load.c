/*
 * ngx_kube_state_load - the state file's reading, once, by an informer that
 * took over a zone without any object, or with a part of those of the file.
 *
 * A file is used only where it is sound, of the same server, CA and scopes,
 * young enough, and where nobody but its owner could have written it.  The one
 * before it takes its place when it is damaged.  Informer process only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube_state.h"


/* The clock may have been set back by at most this since the writing. */
#define NGX_KUBE_STATE_SKEW     (5 * 60 * 1000)

/* The file of a larger zone is accepted, but not one of any size. */
#define NGX_KUBE_STATE_SIZE_MAX(zone_size)  (4 * (zone_size) + (1 << 20))


static ngx_int_t ngx_kube_state_load_file(ngx_kube_state_t *state,
    kube_informer_t *inf, const char *name);
static u_char *ngx_kube_state_read(ngx_kube_state_t *state, const char *name,
    size_t *size);
static u_char *ngx_kube_state_read_fd(ngx_kube_state_t *state,
    const char *name, int fd, size_t *size);
static const char *ngx_kube_state_unusable(ngx_kube_state_t *state,
    kube_informer_t *inf, const kube_state_info_t *info);


void
ngx_kube_state_load(ngx_kube_state_t *state, kube_informer_t *inf)
{
    if (ngx_kube_state_load_file(state, inf, state->paths.file)
        == NGX_DECLINED)
    {
        (void) ngx_kube_state_load_file(state, inf, state->paths.prev);
    }
}


/*
 * NGX_DECLINED: the file is missing or damaged, and the previous one may be
 * good.  NGX_ERROR: it is sound but must not be used, nor an older one.
 */

static ngx_int_t
ngx_kube_state_load_file(ngx_kube_state_t *state, kube_informer_t *inf,
    const char *name)
{
    size_t              size;
    u_char             *bytes;
    kube_rc_t           rc;
    const char         *why;
    kube_state_info_t   info;

    bytes = ngx_kube_state_read(state, name, &size);
    if (bytes == NULL) {
        return NGX_DECLINED;
    }

    if (kube_state_check(bytes, size, &info) != KUBE_OK) {
        ngx_log_error(NGX_LOG_WARN, state->log, 0,
                      "kube informer \"%V\": state file \"%s\" is damaged or "
                      "of another version: it is not used",
                      &state->informer->name, name);
        free(bytes);
        return NGX_DECLINED;
    }

    why = ngx_kube_state_unusable(state, inf, &info);

    if (why != NULL) {
        ngx_log_error(NGX_LOG_NOTICE, state->log, 0,
                      "kube informer \"%V\": state file \"%s\" is not used: "
                      "%s", &state->informer->name, name, why);
        free(bytes);
        return NGX_ERROR;
    }

    rc = kube_state_each(bytes, size, kube_informer_put_state, inf);

    free(bytes);

    ngx_log_error(NGX_LOG_NOTICE, state->log, 0,
                  "kube informer \"%V\": %uL objects of state file \"%s\" "
                  "are in use until the API server answers%s%s",
                  &state->informer->name, info.objects, name,
                  rc == KUBE_OK ? "" : "; not all of them: ",
                  rc == KUBE_OK ? "" : kube_rc_text(rc));

    state->known = 1;
    state->in_use = 1;
    state->written_ms = info.written_ms;

    ngx_kube_state_show(state);

    return NGX_OK;
}


/* NULL: the file is missing, or it is not to be trusted, which is logged. */

static u_char *
ngx_kube_state_read(ngx_kube_state_t *state, const char *name, size_t *size)
{
    int      fd;
    u_char  *bytes;

    /* O_NONBLOCK: opening a FIFO would block for ever */

    fd = open(name, O_RDONLY|O_NOFOLLOW|O_CLOEXEC|O_NONBLOCK);

    if (fd == -1) {
        if (ngx_errno != NGX_ENOENT) {
            ngx_log_error(NGX_LOG_WARN, state->log, ngx_errno,
                          "kube informer \"%V\": state file \"%s\" cannot be "
                          "opened", &state->informer->name, name);
        }

        return NULL;
    }

    bytes = ngx_kube_state_read_fd(state, name, fd, size);

    (void) close(fd);

    return bytes;
}


static u_char *
ngx_kube_state_read_fd(ngx_kube_state_t *state, const char *name, int fd,
    size_t *size)
{
    size_t        max;
    u_char       *bytes;
    ssize_t       n;
    const char   *what;
    struct stat   st;

    max = NGX_KUBE_STATE_SIZE_MAX(state->informer->zone_size);
    bytes = NULL;

    if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) {
        what = "is not a file";
        goto refused;
    }

    if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & S_IWOTH))
    {
        what = "belongs to another user, or everybody may write it";
        goto refused;
    }

    if (st.st_size <= 0 || (uint64_t) st.st_size > max) {
        what = "is empty or too large";
        goto refused;
    }

    max = (size_t) st.st_size;
    what = "cannot be read";

    bytes = malloc(max);
    if (bytes == NULL) {
        goto refused;
    }

    for (*size = 0; *size < max; *size += (size_t) n) {

        n = read(fd, bytes + *size, max - *size);

        if (n <= 0) {
            goto refused;
        }
    }

    return bytes;

refused:

    ngx_log_error(NGX_LOG_WARN, state->log, 0,
                  "kube informer \"%V\": state file \"%s\" %s: it is not "
                  "used", &state->informer->name, name, what);

    free(bytes);

    return NULL;
}


/* Returns why a sound file must not be used; NULL: it may. */

static const char *
ngx_kube_state_unusable(ngx_kube_state_t *state, kube_informer_t *inf,
    const kube_state_info_t *info)
{
    int64_t            now;
    kube_state_info_t  current;

    now = ngx_kube_unix_ms();

    if (!kube_informer_accepts_state(inf, info->identity)) {
        return "it is of another server, or other namespaces or selectors";
    }

    /*
     * Another cluster may answer at the same address: each has 10.96.0.1.  A CA
     * that is being replaced stands beside its successor for a while, and the
     * file is written again as soon as either changes: one shared certificate
     * is enough.
     */

    current.ca_n = kube_client_ca_marks(state->client, current.ca);

    if (current.ca_n == 0) {
        return "the CA cannot be read that it is to be of";
    }

    if (!kube_state_same_ca(info, &current)) {
        return "it is of a server with another CA";
    }

    if (info->written_ms > now + NGX_KUBE_STATE_SKEW) {
        return "it is from the future: look at the clock";
    }

    if (now - info->written_ms > (int64_t) state->informer->state_max_age) {
        return "it is older than state_max_age";
    }

    if (info->objects == 0) {
        return "it is empty";
    }

    return NULL;
}
