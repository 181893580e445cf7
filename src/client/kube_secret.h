/*
 * kube_secret - bytes that must not outlive their use: read from a file,
 * decoded, checked, zeroed.
 *
 * It does no caching and writes no log.  For src/client only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_SECRET_H
#define KUBE_SECRET_H


#include "kube_base.h"


/*
 * Reads the whole of a regular file of at most max bytes (a link to one is
 * followed); the caller owns *out, which has a NUL behind it.  It never
 * blocks: what is not a regular file is refused.
 * KUBE_OK, KUBE_NOMEM, KUBE_TOO_LARGE or KUBE_IO; *what gets a static text.
 * KUBE_IO: errno says why, EISDIR, EINVAL (of another kind) and EBUSY (it was
 * being written) where no call of the system does.
 */
kube_rc_t kube_secret_read(const kube_alloc_t *alloc, const char *path,
    size_t max, kube_str_t *out, const char **what)  KUBE_MUST_CHECK;

/*
 * Decodes standard base64 with padding; line feeds and carriage returns are
 * skipped, as Go does.  The caller owns *out, which has a NUL behind it.
 * KUBE_OK, KUBE_NOMEM or KUBE_INVALID.
 */
kube_rc_t kube_secret_base64(const kube_alloc_t *alloc, kube_str_t text,
    kube_str_t *out)  KUBE_MUST_CHECK;

/* Returns s without the white space around it. */
kube_str_t kube_secret_trim(kube_str_t s);

/* Says whether a header can carry it: 1..KUBE_TOKEN_BYTES_MAX visible bytes. */
bool kube_secret_is_token(kube_str_t s);

/* Says whether it has a PEM boundary; the TLS library finds out the rest. */
bool kube_secret_is_pem(kube_str_t s);

/* What a call says of a path, as a static text; other: of any other err. */
const char *kube_secret_errno_text(int err, const char *other);

/* Zeroes and frees the bytes of *s, which becomes empty. */
void kube_secret_free(const kube_alloc_t *alloc, kube_str_t *s);


#endif /* KUBE_SECRET_H */
