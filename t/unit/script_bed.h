/*
 * script_bed - a reflector over reflector_bed and what the server says to each
 * request, one line each; and a store that is fed with what leaves the FIFO.
 *
 * For the tests of client-go's reflector, watches, WatchLists and pager; not
 * part of the product.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_SCRIPT_BED_H
#define KUBE_SCRIPT_BED_H


#include "reflector_bed.h"


#define EXPIRED  STATUS(410, "Expired", "")

/*
 * One request and its answer.  asked: see script_asked().  code 0: the
 * connection is refused.  A watch whose code is 200 stays open unless closes.
 */
typedef struct {
    const char  *asked;
    int          code;
    const char  *body;
    bool         closes;
} script_t;

typedef struct {
    char  name[16];
    char  rv[16];
    bool  seen;
} script_row_t;

/* What an informer's store would hold. */
typedef struct {
    script_row_t  rows[1100];
    size_t        n;
    bool          in_list;
} script_store_t;


/*
 * What a request asks for, with nothing left out: "LIST rv=5 NotOlderThan
 * limit=2", "LIST rv= limit=2", "LIST continue=abc limit=2", "WATCH rv=5",
 * "WATCHLIST rv=5".
 */
static inline const char *
script_asked(const io_exchange_t *x)
{
    char        *word, *last;
    char         path[sizeof(x->path)], rv[32], more[64], limit[32];
    uint64_t     seconds;
    unsigned     watch, stream, bookmarks;

    static char  text[160];

    snprintf(path, sizeof(path), "%s", x->path);
    word = strtok_r(path, "?", &last);
    assert_string_equal(word, "/api/v1/services");

    rv[0] = '\0';
    more[0] = '\0';
    limit[0] = '\0';
    watch = 0;
    stream = 0;
    bookmarks = 0;
    seconds = 0;

    while ((word = strtok_r(NULL, "&", &last)) != NULL) {

        if (strcmp(word, "watch=true") == 0) {
            watch++;

        } else if (strcmp(word, "sendInitialEvents=true") == 0) {
            stream++;

        } else if (strcmp(word, "allowWatchBookmarks=true") == 0) {
            bookmarks++;

        } else if (strncmp(word, "timeoutSeconds=", 15) == 0) {
            assert_int_equal(kube_str_to_u64(kube_str(word + 15), UINT32_MAX,
                                             &seconds), KUBE_OK);

        } else if (strncmp(word, "resourceVersion=", 16) == 0) {
            snprintf(rv, sizeof(rv), "%s", word + 16);

        } else if (strcmp(word, "resourceVersionMatch=NotOlderThan") == 0) {
            snprintf(more, sizeof(more), " NotOlderThan");

        } else if (strncmp(word, "continue=", 9) == 0) {
            snprintf(more, sizeof(more), "%s", word);

        } else if (strncmp(word, "limit=", 6) == 0) {
            snprintf(limit, sizeof(limit), " %s", word);

        } else {
            fail_msg("%s: in %s", word, x->path);
        }
    }

    if (watch) {
        assert_int_equal(bookmarks, 1);
        assert_in_range(seconds, 300, 599);
        assert_string_equal(limit, "");
        assert_string_equal(more, stream ? " NotOlderThan" : "");
        snprintf(text, sizeof(text), "WATCH%s rv=%s", stream ? "LIST" : "",
                 rv);

    } else if (strncmp(more, "continue=", 9) == 0) {
        assert_string_equal(rv, "");
        snprintf(text, sizeof(text), "LIST %s%s", more, limit);

    } else {
        assert_int_equal(bookmarks + seconds, 0);
        snprintf(text, sizeof(text), "LIST rv=%s%s%s", rv, more, limit);
    }

    return text;
}


/* The request in flight; sleeps until there is one.  Adds up the sleeps. */
static inline io_exchange_t *
script_next(bed_t *b, unsigned *sleeps)
{
    io_exchange_t  *x;

    x = io_find(&b->io, "/");

    if (x == NULL) {
        (void) bed_sleep(b);
        *sleeps += 1;
        x = bed_x(b);
    }

    return x;
}


static inline void
script_say(bed_t *b, io_exchange_t *x, const script_t *line)
{
    if (line->code == 0) {
        io_done(x, KUBE_CONNECT, "refused");

    } else if (strstr(x->path, "watch=true") == NULL || line->code != 200) {
        io_answer(&b->io, x, line->code, line->body);

    } else if (io_head(x, 200, "application/json", 0)
               && io_body(&b->io, x, line->body) && line->closes)
    {
        io_done(x, KUBE_OK, "");
    }
}


/* Runs the lines; returns how often it slept before a request. */
static inline unsigned
script_run(bed_t *b, const script_t *lines, size_t n)
{
    size_t          i;
    unsigned        sleeps;
    const char     *asked;
    io_exchange_t  *x;

    sleeps = 0;

    for (i = 0; i < n; i++) {
        x = script_next(b, &sleeps);
        asked = script_asked(x);

        if (strcmp(asked, lines[i].asked) != 0) {
            fail_msg("line %zu: %s, not %s", i, asked, lines[i].asked);
        }

        script_say(b, x, &lines[i]);
        bed_process(b);
    }

    return sleeps;
}


#define SCRIPT(b, lines)                                                      \
    script_run(b, lines, sizeof(lines) / sizeof((lines)[0]))


static inline script_row_t *
script_row(script_store_t *s, const char *name)
{
    size_t  i;

    for (i = 0; i < s->n; i++) {
        if (strcmp(s->rows[i].name, name) == 0) {
            return &s->rows[i];
        }
    }

    return NULL;
}


/* One word of drained(): "[", "]", "R:ns/name@rv", "U:…", "D:…". */
static inline void
script_apply(script_store_t *s, const char *word)
{
    char           name[16], rv[16];
    size_t         i;
    const char    *at;
    script_row_t  *row;

    if (word[0] == '[') {
        s->in_list = true;

        for (i = 0; i < s->n; i++) {
            s->rows[i].seen = false;
        }

        return;
    }

    if (word[0] == ']') {
        assert_true(s->in_list);
        s->in_list = false;

        for (i = 0; i < s->n; /* void */ ) {
            if (s->rows[i].seen) {
                i++;

            } else {
                s->rows[i] = s->rows[--s->n];
            }
        }

        return;
    }

    assert_int_equal(strncmp(word + 1, ":shop/", 6), 0);
    at = strchr(word, '@');
    assert_non_null(at);
    snprintf(name, sizeof(name), "%.*s", (int) (at - word - 7), word + 7);
    snprintf(rv, sizeof(rv), "%s", at + 1);
    row = script_row(s, name);

    if (word[0] == 'D') {
        if (row != NULL) {
            *row = s->rows[--s->n];
        }

        return;
    }

    assert_true(word[0] == 'R' || word[0] == 'U');

    if (row == NULL) {
        assert_true(s->n < sizeof(s->rows) / sizeof(s->rows[0]));
        row = &s->rows[s->n++];
        snprintf(row->name, sizeof(row->name), "%s", name);
    }

    snprintf(row->rv, sizeof(row->rv), "%s", rv);
    row->seen = true;
}


/* Takes all that came into the store; returns how many words that were. */
static inline unsigned
script_take(bed_t *b, script_store_t *s)
{
    char      *word, *last;
    unsigned   n;

    (void) drained(b);
    n = 0;

    for (word = strtok_r(b->dump, " ", &last);
         word != NULL;
         word = strtok_r(NULL, " ", &last))
    {
        script_apply(s, word);
        n++;
    }

    return n;
}


/* "a@3 b@4", in the order of the names. */
static inline const char *
script_holds(const script_store_t *s)
{
    size_t               i, j, n;
    const script_row_t  *rows[32], *row;

    static char  text[1024];

    assert_true(s->n <= sizeof(rows) / sizeof(rows[0]));
    n = 0;
    text[0] = '\0';

    for (i = 0; i < s->n; i++) {
        row = &s->rows[i];

        for (j = i; j > 0 && strcmp(rows[j - 1]->name, row->name) > 0; j--) {
            rows[j] = rows[j - 1];
        }

        rows[j] = row;
    }

    for (i = 0; i < s->n; i++) {
        n += (size_t) snprintf(text + n, sizeof(text) - n, "%s%s@%s",
                               i ? " " : "", rows[i]->name, rows[i]->rv);
    }

    return text;
}


#endif /* KUBE_SCRIPT_BED_H */
