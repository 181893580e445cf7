/*
 * kube_secret - bytes that must not outlive their use.
 *
 * It does no caching and writes no log.  Every buffer that held a secret,
 * the one of a failed read included, is zeroed before it is freed.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kube_limits.h"
#include "kube_secret.h"


/* Static texts: those of strerror() are not. */
static const struct {
    int          err;
    const char  *text;
} secret_errors[] = {
    { ENOENT,  "no such file" },
    { ENOTDIR, "no such file" },
    { EACCES,  "permission denied" },
    { EPERM,   "permission denied" },
    { EMFILE,  "out of file descriptors" },
    { ENFILE,  "out of file descriptors" },
    { ELOOP,   "too many symbolic links" }
};


static void
secret_free_bytes(const kube_alloc_t *alloc, char *p, size_t size)
{
    explicit_bzero(p, size);
    kube_free(alloc, p);
}


void
kube_secret_free(const kube_alloc_t *alloc, kube_str_t *s)
{
    if (s->data != NULL) {
        explicit_bzero((char *) (uintptr_t) s->data, s->len);
    }

    kube_str_free(alloc, s);
}


const char *
kube_secret_errno_text(int err, const char *other)
{
    size_t  i;

    for (i = 0; i < sizeof(secret_errors) / sizeof(secret_errors[0]); i++) {
        if (secret_errors[i].err == err) {
            return secret_errors[i].text;
        }
    }

    return other;
}


/*
 * Opens without blocking: opening a FIFO that nobody writes to would stop the
 * event loop for ever.  Whatever is no regular file is refused right after.
 */
static int
secret_open(const char *path, size_t max, size_t *size, const char **what,
    kube_rc_t *rc)
{
    int          fd, err;
    struct stat  st;

    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd == -1) {
        *what = kube_secret_errno_text(errno, "cannot be read");
        *rc = KUBE_IO;
        return -1;
    }

    err = 0;

    if (fstat(fd, &st) == -1) {
        err = errno;
        *what = "cannot be read";
        *rc = KUBE_IO;

    } else if (S_ISDIR(st.st_mode)) {
        err = EISDIR;
        *what = "a directory, not a file";
        *rc = KUBE_IO;

    } else if (!S_ISREG(st.st_mode)) {
        err = EINVAL;
        *what = "not a regular file";
        *rc = KUBE_IO;

    } else if (st.st_size < 0 || (uint64_t) st.st_size > max) {
        *what = "larger than the limit";
        *rc = KUBE_TOO_LARGE;

    } else {
        *size = (size_t) st.st_size;
        return fd;
    }

    close(fd);
    errno = err;

    return -1;
}


/* Reads size bytes; KUBE_CHANGED: the file has grown since it was opened. */
static kube_rc_t
secret_read_fd(int fd, char *p, size_t size, size_t *len)
{
    ssize_t  n;

    for (*len = 0; *len <= size; *len += (size_t) n) {
        n = read(fd, p + *len, size + 1 - *len);

        if (n == 0) {
            p[*len] = '\0';
            return KUBE_OK;
        }

        if (n < 0) {
            if (errno != EINTR) {
                return KUBE_IO;
            }

            n = 0;
        }
    }

    return KUBE_CHANGED;
}


kube_rc_t
kube_secret_read(const kube_alloc_t *alloc, const char *path, size_t max,
    kube_str_t *out, const char **what)
{
    int        fd, err;
    char      *p;
    size_t     size, len;
    kube_rc_t  rc;

    *out = KUBE_STR_NULL;

    fd = secret_open(path, max, &size, what, &rc);
    if (fd == -1) {
        return rc;
    }

    p = kube_alloc(alloc, size + 1);
    if (p == NULL) {
        close(fd);
        *what = "out of memory";
        return KUBE_NOMEM;
    }

    rc = secret_read_fd(fd, p, size, &len);
    err = (rc == KUBE_CHANGED) ? EBUSY : errno;
    close(fd);

    if (rc != KUBE_OK) {
        secret_free_bytes(alloc, p, size + 1);
        errno = err;
        *what = rc == KUBE_CHANGED ? "it is being written" : "cannot be read";
        return KUBE_IO;
    }

    out->data = p;
    out->len = len;

    return KUBE_OK;
}


static int
secret_base64_value(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }

    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }

    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }

    return c == '+' ? 62 : c == '/' ? 63 : -1;
}


/* p has room for 3/4 of the text, rounded up; false: that is not base64. */
static bool
secret_base64_decode(kube_str_t text, char *p, size_t *len)
{
    int       v;
    char      c;
    size_t    i, n, pad;
    uint32_t  bits;

    *len = 0;
    n = 0;
    pad = 0;
    bits = 0;

    for (i = 0; i < text.len; i++) {
        c = text.data[i];

        if (c == '\r' || c == '\n') {
            continue;
        }

        v = c == '=' ? 0 : secret_base64_value(c);

        if (v < 0 || (c != '=' && pad != 0) || (c == '=' && n % 4 < 2)) {
            return false;
        }

        pad += (c == '=');
        bits = (bits << 6) | (uint32_t) v;

        if (++n % 4 == 0) {
            p[(*len)++] = (char) (uint8_t) (bits >> 16);
            p[(*len)++] = (char) (uint8_t) (bits >> 8);
            p[(*len)++] = (char) (uint8_t) bits;
        }
    }

    /* only the last group can have padding: n % 4 < 2 saw to that */

    *len -= pad;

    return n % 4 == 0;
}


kube_rc_t
kube_secret_base64(const kube_alloc_t *alloc, kube_str_t text, kube_str_t *out)
{
    char    *p;
    size_t   size, len;

    *out = KUBE_STR_NULL;

    size = text.len / 4 * 3 + 4;

    p = kube_alloc(alloc, size);
    if (p == NULL) {
        return KUBE_NOMEM;
    }

    if (!secret_base64_decode(text, p, &len)) {
        secret_free_bytes(alloc, p, size);
        return KUBE_INVALID;
    }

    p[len] = '\0';
    out->data = p;
    out->len = len;

    return KUBE_OK;
}


static bool
secret_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}


kube_str_t
kube_secret_trim(kube_str_t s)
{
    while (s.len != 0 && secret_is_space(s.data[0])) {
        s.data++;
        s.len--;
    }

    while (s.len != 0 && secret_is_space(s.data[s.len - 1])) {
        s.len--;
    }

    return s;
}


bool
kube_secret_is_token(kube_str_t s)
{
    size_t  i;

    if (s.len == 0 || s.len > KUBE_TOKEN_BYTES_MAX) {
        return false;
    }

    for (i = 0; i < s.len; i++) {
        if (s.data[i] <= 0x20 || s.data[i] >= 0x7f) {
            return false;
        }
    }

    return true;
}


bool
kube_secret_is_pem(kube_str_t s)
{
    size_t             i;
    static const char  boundary[] = "-----BEGIN ";

    for (i = 0; i + sizeof(boundary) - 1 <= s.len; i++) {
        if (memcmp(s.data + i, boundary, sizeof(boundary) - 1) == 0) {
            return true;
        }
    }

    return false;
}
