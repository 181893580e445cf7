/*
 * kube_text - a sink for printed text, with the three escapings that the
 * status, the metrics and the command line need.
 *
 * No state of its own and no memory; may be called from any process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kube_text.h"
#include "kube_utf8.h"


/* What stands for one byte needs no more than this: "\u001f". */
#define TEXT_ESCAPE_MAX  8

#define TEXT_REPLACEMENT  "\xef\xbf\xbd"    /* U+FFFD */


void
kube_text_init(kube_text_t *text, kube_text_write_pt write, void *ctx,
    size_t size_max)
{
    memset(text, 0, sizeof(kube_text_t));

    text->write = write;
    text->ctx = ctx;
    text->size_max = size_max;
}


void
kube_text_put(kube_text_t *text, kube_str_t s)
{
    if (s.len == 0 || text->failed) {
        return;
    }

    if (s.len > text->size_max - text->size
        || !text->write(text->ctx, s.data, s.len))
    {
        text->failed = true;
        return;
    }

    text->size += s.len;
}


void
kube_text_printf(kube_text_t *text, const char *fmt, ...)
{
    int         n;
    va_list     args;
    kube_str_t  s;
    char        buf[KUBE_TEXT_PRINTF_MAX];

    va_start(args, fmt);
    n = vsnprintf(buf, sizeof(buf), fmt, args);
    va_end(args);

    if (n < 0) {
        text->failed = true;
        return;
    }

    s.data = buf;
    s.len = ((size_t) n < sizeof(buf)) ? (size_t) n : sizeof(buf) - 1;

    kube_text_put(text, s);
}


/* Writes what stands for the ASCII character c; 0: c itself. */
static size_t
text_escape_byte(unsigned char c, kube_escape_t how,
    char out[TEXT_ESCAPE_MAX])
{
    bool         control;
    const char  *fmt;

    control = (c < 0x20 || c == 0x7f);
    fmt = NULL;

    switch (how) {

    case KUBE_ESCAPE_JSON:
        /* '<' as well: a JSON text may be put inside HTML by its readers */
        fmt = (c == '"' || c == '\\') ? "\\%c"
              : (control || c == '<') ? "\\u%04x" : NULL;
        break;

    case KUBE_ESCAPE_HTML:
        fmt = (c != '\0' && strchr("<>&\"'", c) != NULL) ? "&#%d;"
              : control ? TEXT_REPLACEMENT : NULL;
        break;

    case KUBE_ESCAPE_LABEL:
        fmt = (c == '"' || c == '\\') ? "\\%c"
              : (c == '\n') ? "\\n"
              : control ? TEXT_REPLACEMENT : NULL;
    }

    if (fmt == NULL) {
        return 0;
    }

    return (size_t) snprintf(out, TEXT_ESCAPE_MAX, fmt, c);
}


void
kube_text_escape(kube_text_t *text, kube_str_t s, kube_escape_t how)
{
    char                  out[TEXT_ESCAPE_MAX];
    size_t                i, n, len, start;
    uint32_t              code;
    kube_str_t            rest;
    const unsigned char  *p;

    p = (const unsigned char *) s.data;
    start = 0;

    for (i = 0; i < s.len; i += n) {

        n = 1;

        if (p[i] < 0x80) {
            len = text_escape_byte(p[i], how, out);

            if (len == 0) {
                continue;
            }

        } else {
            rest = (kube_str_t) { s.data + i, s.len - i };
            code = kube_utf8_next(&rest);
            n = s.len - i - rest.len;

            /* U+FFFD itself has three bytes */
            if (code != KUBE_UTF8_REPLACEMENT || n != 1) {
                continue;
            }

            len = sizeof(TEXT_REPLACEMENT) - 1;
            memcpy(out, TEXT_REPLACEMENT, len);
        }

        kube_text_put(text, (kube_str_t) { s.data + start, i - start });
        kube_text_put(text, (kube_str_t) { out, len });
        start = i + n;
    }

    if (start < s.len) {
        kube_text_put(text, (kube_str_t) { s.data + start, s.len - start });
    }
}


/*
 * The Gregorian calendar with years that begin in March: the leap day is then
 * a year's last, and the months before it are 31, 30, 31, 30, 31 days in turn.
 */
void
kube_text_time(kube_text_t *text, int64_t unix_ms)
{
    uint64_t  s, days, era, day, year, month;

    s = (uint64_t) unix_ms / 1000;

    days = s / 86400 + 719468;        /* since 0000-03-01 */
    era = days / 146097;              /* of 400 years */
    day = days % 146097;

    year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    day -= 365 * year + year / 4 - year / 100;
    month = (5 * day + 2) / 153;
    day -= (153 * month + 2) / 5;

    year += era * 400 + (month >= 10);
    month = (month < 10) ? month + 3 : month - 9;

    kube_text_printf(text, "%04u-%02u-%02uT%02u:%02u:%02uZ",
                     (unsigned) year, (unsigned) month, (unsigned) day + 1,
                     (unsigned) (s / 3600 % 24), (unsigned) (s / 60 % 60),
                     (unsigned) (s % 60));
}


void
kube_text_thousandths(kube_text_t *text, uint64_t n)
{
    kube_text_printf(text, "%" PRIu64 ".%03" PRIu64, n / 1000, n % 1000);
}
