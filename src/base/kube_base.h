/*
 * kube_base - the vocabulary every layer shares: result codes with texts,
 * strings that are not NUL-terminated, the allocator interface.
 *
 * It is not a utility library: a thing belongs here only if two layers use it.
 * It keeps no state; any process or thread may call it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_BASE_H
#define KUBE_BASE_H


#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>


/* Sizes from outside are bounded as 64-bit numbers, and heads are atomic. */
static_assert(sizeof(size_t) == 8 && sizeof(void *) == 8,
              "nginx-kube-informer needs a 64-bit system");


#if defined(__GNUC__)
#define KUBE_MUST_CHECK       __attribute__((warn_unused_result))
#define KUBE_PRINTF(fmt, va)  __attribute__((format(printf, fmt, va)))
#else
#define KUBE_MUST_CHECK
#define KUBE_PRINTF(fmt, va)
#endif


/*
 * KUBE_NEVER is a time or a deadline in milliseconds that does not exist: a
 * timer that is not armed, an event that has not happened.  Time 0 is a time
 * like any other.
 */
#define KUBE_NEVER  UINT64_MAX


/*
 * Result codes.  0 is success; AGAIN is not an error; all others are.
 */
#define KUBE_RC_MAP(XX)                                                       \
    XX(OK,        0,  "ok")                                                   \
    XX(AGAIN,     -1, "more input or time is needed")                         \
    XX(NOMEM,     -2, "out of memory")                                        \
    XX(PROTO,     -3, "the peer broke the protocol")                          \
    XX(TOO_LARGE, -4, "larger than the limit")                                \
    XX(INVALID,   -5, "invalid value")                                        \
    XX(NOT_FOUND, -6, "not found")                                            \
    XX(DENIED,    -7, "denied by policy")                                     \
    XX(FULL,      -8, "no room in the zone")                                  \
    XX(BUSY,      -9, "held by another process")                              \
    XX(CORRUPT,  -10, "not a valid image")                                    \
    XX(IO,       -11, "input/output error")                                   \
    XX(CONNECT,  -12, "cannot connect")                                       \
    XX(TLS,      -13, "TLS failure")                                          \
    XX(CLOSED,   -14, "the peer closed the connection")                       \
    XX(TIMEOUT,  -15, "timed out")                                            \
    XX(CHANGED,  -16, "changed while it was read")                            \
    XX(NO_CREDENTIALS, -17, "credentials cannot be read")

typedef enum {
#define XX(name, value, text)  KUBE_##name = value,
    KUBE_RC_MAP(XX)
#undef XX
} kube_rc_t;

/* Returns a static text, "unknown result" for a value that is no code. */
const char *kube_rc_text(kube_rc_t rc);


/*
 * kube_str_t is a string that is not NUL-terminated.  data may be NULL only
 * if len is 0.  The type does not say who owns the bytes: the header of the
 * structure or of the function does.
 */
typedef struct {
    const char  *data;
    size_t       len;
} kube_str_t;

#define KUBE_STR(literal)  ((kube_str_t) { (literal), sizeof(literal) - 1 })
#define KUBE_STR_NULL      ((kube_str_t) { NULL, 0 })

/* Borrows a NUL-terminated string; NULL gives the empty string. */
kube_str_t kube_str(const char *cstr);

/* Returns -1, 0 or 1: bytewise order, a prefix before what it begins. */
int kube_str_cmp(kube_str_t a, kube_str_t b);

/*
 * Reads a number of decimal digits only: no sign, no leading zero but "0".
 * KUBE_OK, or KUBE_INVALID (*value is unchanged) if s is no such number or
 * the number is above max.
 */
kube_rc_t kube_str_to_u64(kube_str_t s, uint64_t max, uint64_t *value)
    KUBE_MUST_CHECK;

/*
 * Copies s for printing: control bytes, double quotes, backslash and bytes
 * >= 0x7f become \xHH.  What does not fit is cut off, between two escapes.
 * dst is always NUL-terminated; size is at least 1.
 * Returns the number of bytes written without the NUL.
 */
size_t kube_str_escape(char *dst, size_t size, kube_str_t s);


/*
 * kube_alloc_t is where a module gets memory: src/ calls no malloc().  alloc
 * is never asked for 0 bytes, returns NULL on failure, and aligns as malloc()
 * does.  free is never given NULL.
 *
 * pages gives zeroed memory that costs nothing before it is touched, a page at
 * a time: for tables whose size follows from that of a zone, not from what is
 * in it.  Where it is NULL such a table comes from alloc.
 */
typedef struct {
    void  *(*alloc)(void *ctx, size_t size);
    void   (*free)(void *ctx, void *p);
    void    *ctx;
    void  *(*pages)(void *ctx, size_t size);
    void   (*pages_free)(void *ctx, void *p, size_t size);
} kube_alloc_t;

void *kube_alloc(const kube_alloc_t *a, size_t size);
void *kube_zalloc(const kube_alloc_t *a, size_t size);
void kube_free(const kube_alloc_t *a, void *p);

/* Zeroed memory for a table; it ends with kube_pages_free() of that size. */
void *kube_pages_alloc(const kube_alloc_t *a, size_t size);
void kube_pages_free(const kube_alloc_t *a, void *p, size_t size);

/*
 * Copies s into memory of a, with a NUL behind it; the caller owns *copy and
 * ends it with kube_str_free().  KUBE_OK, KUBE_NOMEM or KUBE_TOO_LARGE.
 */
kube_rc_t kube_str_dup(const kube_alloc_t *a, kube_str_t s, kube_str_t *copy)
    KUBE_MUST_CHECK;

/* Frees the bytes of *s, which came from a, and makes *s empty. */
void kube_str_free(const kube_alloc_t *a, kube_str_t *s);

/*
 * Grows the array *p of *cap elements of size bytes to hold at least need
 * elements, doubling, never above max elements.
 * KUBE_OK, KUBE_NOMEM or KUBE_TOO_LARGE; a failure changes nothing.
 */
kube_rc_t kube_array_reserve(const kube_alloc_t *a, void **p, size_t *cap,
    size_t need, size_t size, size_t max)  KUBE_MUST_CHECK;


/* kube_error_t says what was wrong with an input, and where. */
typedef struct {
    kube_rc_t    rc;
    const char  *what;       /* a static text */
    size_t       offset;     /* in bytes, or in lines where a header says so */
} kube_error_t;


/* Inline: most texts differ in length, and many lengths are known here. */
static inline bool
kube_str_eq(kube_str_t a, kube_str_t b)
{
    return a.len == b.len
           && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}


/*
 * memcpy() of len bytes, not 0, without a call where they are few, as names
 * are: two pieces that may overlap.  Most have less than 16.
 */
static inline __attribute__((always_inline)) void
kube_copy_few(void *to, const void *from, size_t len)
{
    char        *t = to;
    const char  *f = from;

    if (len < 4) {
        t[0] = f[0];
        t[len / 2] = f[len / 2];
        t[len - 1] = f[len - 1];

    } else if (len < 8) {
        memcpy(t, f, 4);
        memcpy(t + len - 4, f + len - 4, 4);

    } else if (len <= 16) {
        memcpy(t, f, 8);
        memcpy(t + len - 8, f + len - 8, 8);

    } else if (len <= 32) {
        memcpy(t, f, 16);
        memcpy(t + len - 16, f + len - 16, 16);

    } else {
        memcpy(t, f, len);
    }
}


#endif /* KUBE_BASE_H */
