/*
 * kube_text - a sink for printed text, with the three escapings that the
 * status, the metrics and the command line need.
 *
 * The caller gives the function that takes the bytes; kube_text buffers
 * nothing and allocates nothing.  A failure is remembered, not returned: the
 * caller prints everything, then looks at failed once.  It knows nothing of
 * what is printed; kube_json_writer.h adds the commas of JSON.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_TEXT_H
#define KUBE_TEXT_H


#include "kube_base.h"


/* kube_text_printf() cuts what one call prints to fewer bytes than this. */
#define KUBE_TEXT_PRINTF_MAX  512


/* Takes len > 0 bytes; false: they are lost, and the text has failed. */
typedef bool (*kube_text_write_pt)(void *ctx, const char *data, size_t len);

typedef struct {
    kube_text_write_pt   write;
    void                *ctx;
    size_t               size;        /* bytes taken so far */
    size_t               size_max;    /* a longer text fails */
    bool                 failed;
} kube_text_t;

typedef enum {
    KUBE_ESCAPE_JSON = 0,    /* inside the quotes of a string, RFC 8259 */
    KUBE_ESCAPE_HTML,        /* text and quoted attributes */
    KUBE_ESCAPE_LABEL        /* a Prometheus label's value, format 0.0.4 */
} kube_escape_t;


/* The text is the caller's; ctx is handed to write with each piece. */
void kube_text_init(kube_text_t *text, kube_text_write_pt write, void *ctx,
    size_t size_max);

/* The bytes as they are. */
void kube_text_put(kube_text_t *text, kube_str_t s);

/* printf's formats, for numbers and static texts: nothing is escaped. */
void kube_text_printf(kube_text_t *text, const char *fmt, ...)
    KUBE_PRINTF(2, 3);

/*
 * Any bytes.  What is not UTF-8 becomes U+FFFD, a byte at a time; so do
 * control characters where the format has no escape for them.
 */
void kube_text_escape(kube_text_t *text, kube_str_t s, kube_escape_t how);

/* "2026-01-01T00:00:00Z", UTC; unix_ms is not negative. */
void kube_text_time(kube_text_t *text, int64_t unix_ms);

/* Thousandths as a decimal with three digits: 1500 is "1.500". */
void kube_text_thousandths(kube_text_t *text, uint64_t n);


#endif /* KUBE_TEXT_H */
