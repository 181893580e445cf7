/*
 * kube_transcript - requests and answers as a text.
 *
 * Two parts: a recorder, which stands between an owner of exchanges and the io
 * that carries them out, and writes what passes; and a transcript, which is an
 * io.  Neither looks into a body.
 *
 * A handler may cancel its own exchange: nothing of an exchange is touched
 * after one has run, unless transcript->current says that it is still there.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>

#include "kube_limits.h"
#include "kube_transcript.h"


#define TRANSCRIPT_FIRST_LINE  "nginx-kube-informer transcript 1\n"

/* Entries of a text of 4 GiB: the shortest has 13 bytes. */
#define TRANSCRIPT_ENTRIES_MAX  (UINT32_MAX / 13)

/* Of an entry but for a path: kind, numbers, content type. */
#define TRANSCRIPT_LINE_MAX    512

typedef struct {
    kube_recorder_t                *recorder;
    uint64_t                        number;
    const kube_exchange_handler_t  *handler;
    void                           *ctx;
    kube_exchange_t                *inner;
} record_exchange_t;

struct kube_recorder_s {
    kube_alloc_t   alloc;
    kube_io_t      io;
    uint64_t       requests;
    void         (*write)(void *ctx, const char *data, size_t len);
    void          *write_ctx;
    char           path[KUBE_URL_LEN_MAX];
};

typedef enum {
    TRANSCRIPT_REQUEST = 0,
    TRANSCRIPT_RESPONSE,
    TRANSCRIPT_BYTES,
    TRANSCRIPT_DONE,
    TRANSCRIPT_CANCEL,
    TRANSCRIPT_KINDS
} transcript_kind_t;

/* One line of the text. */
typedef struct {
    transcript_kind_t  kind;
    uint32_t           next;         /* of the same exchange; 0: none */
    uint64_t           ms;
    uint64_t           value;        /* code, or -rc */
    uint32_t           retry_after_s;
    bool               used;         /* a request that was replayed */
    kube_str_t         text;         /* path, content type, bytes */
} transcript_entry_t;

typedef struct transcript_exchange_s  transcript_exchange_t;

struct transcript_exchange_s {
    transcript_exchange_t          *next;
    const kube_exchange_handler_t  *handler;
    void                           *ctx;
    uint32_t                        entry;      /* to be told; 0: nothing */
    bool                            unknown;    /* it was never recorded */
    bool                            paused;
    uint64_t                        request_ms; /* when it was recorded */
    uint64_t                        began_ms;   /* and is replayed */
};

struct kube_transcript_s {
    kube_alloc_t             alloc;
    bool                     at_once;
    uint64_t                 now_ms;
    void                    *entries;     /* transcript_entry_t; [0] is none */
    size_t                   entries_n;
    size_t                   entries_cap;
    void                    *last;        /* uint32_t, by number: of it */
    size_t                   last_n;
    size_t                   last_cap;
    transcript_exchange_t   *exchanges;   /* oldest first */
    transcript_exchange_t   *current;     /* whose handler runs */
    char                     path[KUBE_URL_LEN_MAX];
    char                     other[KUBE_URL_LEN_MAX];
};

static const char *const  transcript_kinds[TRANSCRIPT_KINDS] = {
    [TRANSCRIPT_REQUEST] = "request",
    [TRANSCRIPT_RESPONSE] = "response",
    [TRANSCRIPT_BYTES] = "bytes",
    [TRANSCRIPT_DONE] = "done",
    [TRANSCRIPT_CANCEL] = "cancel"
};


static void
recorder_write(kube_recorder_t *recorder, transcript_kind_t kind,
    uint64_t number, uint64_t now_ms)
{
    int   n;
    char  line[TRANSCRIPT_LINE_MAX];

    n = snprintf(line, sizeof(line), "%s %llu %llu", transcript_kinds[kind],
                 (unsigned long long) number, (unsigned long long) now_ms);

    recorder->write(recorder->write_ctx, line, (size_t) n);
}


static void
recorder_write_text(kube_recorder_t *recorder, const char *text)
{
    recorder->write(recorder->write_ctx, text, strlen(text));
}


static kube_take_t
record_response(void *ctx, const kube_response_t *response)
{
    char                line[TRANSCRIPT_LINE_MAX];
    char                type[TRANSCRIPT_LINE_MAX / 2];
    record_exchange_t  *x = ctx;

    (void) kube_str_escape(type, sizeof(type), response->content_type);
    (void) snprintf(line, sizeof(line), " %d %u %s\n", response->code,
                    (unsigned) response->retry_after_s, type);

    recorder_write(x->recorder, TRANSCRIPT_RESPONSE, x->number,
                   x->recorder->io.now(x->recorder->io.ctx));
    recorder_write_text(x->recorder, line);

    return x->handler->response(x->ctx, response);
}


static kube_take_t
record_bytes(void *ctx, const char *data, size_t len)
{
    char                line[TRANSCRIPT_LINE_MAX];
    record_exchange_t  *x = ctx;

    (void) snprintf(line, sizeof(line), " %zu\n", len);

    recorder_write(x->recorder, TRANSCRIPT_BYTES, x->number,
                   x->recorder->io.now(x->recorder->io.ctx));
    recorder_write_text(x->recorder, line);
    x->recorder->write(x->recorder->write_ctx, data, len);
    recorder_write_text(x->recorder, "\n");

    return x->handler->bytes(x->ctx, data, len);
}


static void
record_done(void *ctx, kube_rc_t rc, const char *text)
{
    char                            line[TRANSCRIPT_LINE_MAX];
    void                           *handler_ctx;
    record_exchange_t              *x = ctx;
    const kube_exchange_handler_t  *handler;

    (void) snprintf(line, sizeof(line), " %d\n", -(int) rc);

    recorder_write(x->recorder, TRANSCRIPT_DONE, x->number,
                   x->recorder->io.now(x->recorder->io.ctx));
    recorder_write_text(x->recorder, line);

    handler = x->handler;
    handler_ctx = x->ctx;
    kube_free(&x->recorder->alloc, x);

    handler->done(handler_ctx, rc, text);
}


static const kube_exchange_handler_t  record_handler = {
    record_response,
    record_bytes,
    record_done
};


static kube_rc_t
recorder_start(void *ctx, const kube_request_t *request,
    const kube_exchange_handler_t *handler, void *handler_ctx,
    uint64_t now_ms, kube_exchange_t **exchange)
{
    kube_rc_t           rc;
    kube_recorder_t    *recorder = ctx;
    record_exchange_t  *x;

    x = kube_zalloc(&recorder->alloc, sizeof(record_exchange_t));
    if (x == NULL) {
        return KUBE_NOMEM;
    }

    x->recorder = recorder;
    x->handler = handler;
    x->ctx = handler_ctx;

    rc = kube_request_path(request, recorder->path, sizeof(recorder->path));

    if (rc == KUBE_OK) {
        rc = recorder->io.start(recorder->io.ctx, request, &record_handler, x,
                                now_ms, &x->inner);
    }

    if (rc != KUBE_OK) {
        kube_free(&recorder->alloc, x);
        return rc;
    }

    x->number = ++recorder->requests;

    recorder_write(recorder, TRANSCRIPT_REQUEST, x->number, now_ms);
    recorder_write_text(recorder, " ");
    recorder_write_text(recorder, recorder->path);
    recorder_write_text(recorder, "\n");

    *exchange = (void *) x;

    return KUBE_OK;
}


static void
recorder_cancel(void *ctx, kube_exchange_t *exchange)
{
    kube_recorder_t    *recorder = ctx;
    record_exchange_t  *x = (void *) exchange;

    recorder_write(recorder, TRANSCRIPT_CANCEL, x->number,
                   recorder->io.now(recorder->io.ctx));
    recorder_write_text(recorder, "\n");

    recorder->io.cancel(recorder->io.ctx, x->inner);
    kube_free(&recorder->alloc, x);
}


static void
recorder_resume(void *ctx, kube_exchange_t *exchange)
{
    kube_recorder_t    *recorder = ctx;
    record_exchange_t  *x = (void *) exchange;

    recorder->io.resume(recorder->io.ctx, x->inner);
}


static void
recorder_verdict(void *ctx, size_t server, kube_server_verdict_t verdict)
{
    kube_recorder_t  *recorder = ctx;

    recorder->io.verdict(recorder->io.ctx, server, verdict);
}


static bool
recorder_suspect(void *ctx, const kube_exchange_t *exchange)
{
    kube_recorder_t          *recorder = ctx;
    const record_exchange_t  *x = (const void *) exchange;

    return recorder->io.suspect(recorder->io.ctx, x->inner);
}


static uint64_t
recorder_healed(void *ctx)
{
    kube_recorder_t  *recorder = ctx;

    return recorder->io.healed(recorder->io.ctx);
}


static kube_rc_t
recorder_credentials(void *ctx, uint64_t now_ms)
{
    kube_recorder_t  *recorder = ctx;

    return recorder->io.credentials(recorder->io.ctx, now_ms);
}


static const char *
recorder_remedy(void *ctx, kube_rc_t rc)
{
    kube_recorder_t  *recorder = ctx;

    return recorder->io.remedy(recorder->io.ctx, rc);
}


static uint64_t
recorder_now(void *ctx)
{
    kube_recorder_t  *recorder = ctx;

    return recorder->io.now(recorder->io.ctx);
}


kube_recorder_t *
kube_recorder_create(const kube_alloc_t *alloc, const kube_io_t *io,
    kube_recorder_write_pt write, void *write_ctx)
{
    kube_recorder_t  *recorder;

    recorder = kube_zalloc(alloc, sizeof(kube_recorder_t));
    if (recorder == NULL) {
        return NULL;
    }

    recorder->alloc = *alloc;
    recorder->io = *io;
    recorder->write = write;
    recorder->write_ctx = write_ctx;

    recorder_write_text(recorder, TRANSCRIPT_FIRST_LINE);

    return recorder;
}


void
kube_recorder_destroy(kube_recorder_t *recorder)
{
    if (recorder != NULL) {
        kube_free(&recorder->alloc, recorder);
    }
}


kube_io_t
kube_recorder_io(kube_recorder_t *recorder)
{
    return KUBE_IO(recorder_start, recorder_cancel, recorder_resume,
                   recorder_verdict, recorder_suspect, recorder_healed,
                   recorder_credentials, recorder_remedy, recorder_now,
                   recorder);
}


/* Cuts the word, up to a space or the end, off the front of *line. */
static kube_str_t
transcript_word(kube_str_t *line)
{
    kube_str_t   word;
    const char  *end;

    end = memchr(line->data, ' ', line->len);

    word.data = line->data;
    word.len = (end != NULL) ? (size_t) (end - line->data) : line->len;

    line->data += word.len + (end != NULL);
    line->len -= word.len + (end != NULL);

    return word;
}


/* True if the next word is a number up to max. */
static bool
transcript_number(kube_str_t *line, uint64_t max, uint64_t *value)
{
    return kube_str_to_u64(transcript_word(line), max, value) == KUBE_OK;
}


/* Links the entry behind the others of its exchange. */
static kube_rc_t
transcript_link(kube_transcript_t *t, const transcript_entry_t *entry,
    uint64_t number)
{
    uint32_t            *last;
    kube_rc_t            rc;
    transcript_entry_t  *entries;

    rc = kube_array_reserve(&t->alloc, &t->entries, &t->entries_cap,
                            t->entries_n + 1, sizeof(transcript_entry_t),
                            TRANSCRIPT_ENTRIES_MAX);

    if (rc == KUBE_OK && entry->kind == TRANSCRIPT_REQUEST) {
        rc = kube_array_reserve(&t->alloc, &t->last, &t->last_cap,
                                t->last_n + 1, sizeof(uint32_t),
                                TRANSCRIPT_ENTRIES_MAX);
    }

    if (rc != KUBE_OK) {
        return rc;
    }

    entries = t->entries;
    last = t->last;

    if (entry->kind == TRANSCRIPT_REQUEST) {
        t->last_n++;

    } else {
        entries[last[number - 1]].next = (uint32_t) t->entries_n;
    }

    entries[t->entries_n] = *entry;
    last[number - 1] = (uint32_t) t->entries_n;
    t->entries_n++;

    return KUBE_OK;
}


/*
 * Reads what follows the times of an entry; of bytes it takes these off *rest.
 * False: it is none.
 */
static bool
transcript_value(transcript_entry_t *entry, kube_str_t line,
    kube_str_t *rest)
{
    uint64_t  retry;

    switch (entry->kind) {

    case TRANSCRIPT_REQUEST:
        entry->text = line;
        return line.len != 0 && line.len < KUBE_URL_LEN_MAX;

    case TRANSCRIPT_RESPONSE:
        if (!transcript_number(&line, 999, &entry->value)
            || !transcript_number(&line, KUBE_RETRY_AFTER_MAX, &retry))
        {
            return false;
        }

        entry->retry_after_s = (uint32_t) retry;
        entry->text = line;
        return true;

    case TRANSCRIPT_BYTES:
        if (rest->len == 0
            || !transcript_number(&line, rest->len - 1, &entry->value)
            || rest->data[entry->value] != '\n')
        {
            return false;
        }

        entry->text = (kube_str_t) { rest->data, entry->value };
        rest->data += entry->value + 1;
        rest->len -= entry->value + 1;
        return line.len == 0;

    case TRANSCRIPT_DONE:
        return transcript_number(&line, INT32_MAX, &entry->value)
               && line.len == 0;

    default:
        return line.len == 0;
    }
}


/* Reads the entry that *rest begins with. */
static kube_rc_t
transcript_read(kube_transcript_t *t, kube_str_t *rest)
{
    uint64_t             number;
    kube_str_t           line, kind;
    const char          *end;
    transcript_entry_t   entry;

    end = memchr(rest->data, '\n', rest->len);

    if (end == NULL) {
        return KUBE_INVALID;
    }

    line = (kube_str_t) { rest->data, (size_t) (end - rest->data) };
    rest->data += line.len + 1;
    rest->len -= line.len + 1;

    memset(&entry, 0, sizeof(transcript_entry_t));
    kind = transcript_word(&line);

    for (entry.kind = TRANSCRIPT_REQUEST;
         entry.kind < TRANSCRIPT_KINDS
         && !kube_str_eq(kind, kube_str(transcript_kinds[entry.kind]));
         entry.kind++)
    {
        /* void */
    }

    if (entry.kind == TRANSCRIPT_KINDS
        || !transcript_number(&line, UINT64_MAX, &number)
        || !transcript_number(&line, UINT64_MAX, &entry.ms)
        || number == 0
        || (entry.kind == TRANSCRIPT_REQUEST ? number != t->last_n + 1
                                             : number > t->last_n)
        || !transcript_value(&entry, line, rest))
    {
        return KUBE_INVALID;
    }

    return transcript_link(t, &entry, number);
}


kube_transcript_t *
kube_transcript_create(const kube_alloc_t *alloc, kube_str_t text,
    bool at_once, kube_error_t *error)
{
    size_t              first;
    kube_rc_t           rc;
    kube_str_t          rest;
    kube_transcript_t  *t;

    error->rc = KUBE_NOMEM;
    error->what = "out of memory";
    error->offset = 0;

    t = kube_zalloc(alloc, sizeof(kube_transcript_t));
    if (t == NULL) {
        return NULL;
    }

    t->alloc = *alloc;
    t->at_once = at_once;
    t->entries_n = 1;

    first = sizeof(TRANSCRIPT_FIRST_LINE) - 1;
    rc = KUBE_OK;

    if (text.len < first
        || memcmp(text.data, TRANSCRIPT_FIRST_LINE, first) != 0)
    {
        rc = KUBE_INVALID;
        first = 0;
    }

    rest = (kube_str_t) { text.data + first, text.len - first };

    while (rc == KUBE_OK && rest.len != 0) {
        error->offset = (size_t) (rest.data - text.data);
        rc = transcript_read(t, &rest);
    }

    if (rc == KUBE_OK) {
        return t;
    }

    error->rc = rc;
    error->what = (rc == KUBE_INVALID) ? "not a transcript"
                                       : kube_rc_text(rc);
    kube_transcript_destroy(t);

    return NULL;
}


void
kube_transcript_destroy(kube_transcript_t *t)
{
    transcript_exchange_t  *x, *next;

    if (t == NULL) {
        return;
    }

    for (x = t->exchanges; x != NULL; x = next) {
        next = x->next;
        kube_free(&t->alloc, x);
    }

    kube_free(&t->alloc, t->entries);
    kube_free(&t->alloc, t->last);
    kube_free(&t->alloc, t);
}


/* Copies a path without its timeoutSeconds, which is never its first. */
static void
transcript_path(kube_str_t path, char out[KUBE_URL_LEN_MAX])
{
    bool    drawn;
    size_t  i, n;

    static const char  name[] = "&timeoutSeconds=";

    drawn = false;

    for (i = 0, n = 0; i < path.len && n + 1 < KUBE_URL_LEN_MAX; i++) {

        if (path.data[i] == '&') {
            drawn = path.len - i >= sizeof(name) - 1
                    && memcmp(path.data + i, name, sizeof(name) - 1) == 0;
        }

        if (!drawn) {
            out[n++] = path.data[i];
        }
    }

    out[n] = '\0';
}


/* The first request of the path in t->path that was not replayed; 0: none. */
static uint32_t
transcript_find(kube_transcript_t *t)
{
    uint32_t             i;
    transcript_entry_t  *entries;

    entries = t->entries;

    for (i = 1; i < t->entries_n; i++) {

        if (entries[i].kind != TRANSCRIPT_REQUEST || entries[i].used) {
            continue;
        }

        transcript_path(entries[i].text, t->other);

        if (strcmp(t->path, t->other) == 0) {
            entries[i].used = true;
            return i;
        }
    }

    return 0;
}


static kube_rc_t
transcript_start(void *ctx, const kube_request_t *request,
    const kube_exchange_handler_t *handler, void *handler_ctx,
    uint64_t now_ms, kube_exchange_t **exchange)
{
    uint32_t                      entry;
    kube_rc_t                     rc;
    transcript_exchange_t        *x, **p;
    const transcript_entry_t     *entries;
    kube_transcript_t            *t = ctx;

    rc = kube_request_path(request, t->other, sizeof(t->other));

    if (rc != KUBE_OK) {
        return rc;
    }

    x = kube_zalloc(&t->alloc, sizeof(transcript_exchange_t));
    if (x == NULL) {
        return KUBE_NOMEM;
    }

    transcript_path(kube_str(t->other), t->path);

    entry = transcript_find(t);
    entries = t->entries;

    x->handler = handler;
    x->ctx = handler_ctx;
    x->began_ms = now_ms;
    x->unknown = (entry == 0);

    if (entry != 0) {
        x->entry = entries[entry].next;
        x->request_ms = entries[entry].ms;
    }

    for (p = &t->exchanges; *p != NULL; p = &(*p)->next) {
        /* void */
    }

    *p = x;
    *exchange = (void *) x;

    return KUBE_OK;
}


static void
transcript_cancel(void *ctx, kube_exchange_t *exchange)
{
    transcript_exchange_t   *x = (void *) exchange;
    transcript_exchange_t  **p;
    kube_transcript_t       *t = ctx;

    for (p = &t->exchanges; *p != x; p = &(*p)->next) {
        /* void */
    }

    *p = x->next;

    if (t->current == x) {
        t->current = NULL;
    }

    kube_free(&t->alloc, x);
}


static void
transcript_resume(void *ctx, kube_exchange_t *exchange)
{
    transcript_exchange_t  *x = (void *) exchange;

    (void) ctx;

    x->paused = false;
}


static void
transcript_verdict(void *ctx, size_t server, kube_server_verdict_t verdict)
{
    (void) ctx;
    (void) server;
    (void) verdict;
}


/* No connection is silent, and none was ever down. */
static bool
transcript_suspect(void *ctx, const kube_exchange_t *exchange)
{
    (void) ctx;
    (void) exchange;

    return false;
}


static uint64_t
transcript_healed(void *ctx)
{
    (void) ctx;

    return 0;
}


static kube_rc_t
transcript_credentials(void *ctx, uint64_t now_ms)
{
    (void) ctx;
    (void) now_ms;

    return KUBE_OK;
}


/* It is not written. */
static const char *
transcript_remedy(void *ctx, kube_rc_t rc)
{
    (void) ctx;
    (void) rc;

    return NULL;
}


static uint64_t
transcript_now(void *ctx)
{
    const kube_transcript_t  *t = ctx;

    return t->now_ms;
}


kube_io_t
kube_transcript_io(kube_transcript_t *t)
{
    return KUBE_IO(transcript_start, transcript_cancel, transcript_resume,
                   transcript_verdict, transcript_suspect, transcript_healed,
                   transcript_credentials, transcript_remedy, transcript_now,
                   t);
}


/* When the exchange has something to tell; KUBE_NEVER. */
static uint64_t
transcript_due(const kube_transcript_t *t, const transcript_exchange_t *x)
{
    uint64_t                   ms;
    const transcript_entry_t  *entry;

    if (x->unknown) {
        return 0;
    }

    entry = (const transcript_entry_t *) t->entries + x->entry;

    if (x->entry == 0 || x->paused || entry->kind == TRANSCRIPT_CANCEL) {
        return KUBE_NEVER;
    }

    ms = (entry->ms > x->request_ms) ? entry->ms - x->request_ms : 0;

    return (t->at_once || ms >= KUBE_NEVER - x->began_ms) ? 0
           : x->began_ms + ms;
}


static void
transcript_done(kube_transcript_t *t, transcript_exchange_t *x, kube_rc_t rc,
    const char *text)
{
    void                           *ctx;
    const kube_exchange_handler_t  *handler;

    handler = x->handler;
    ctx = x->ctx;

    transcript_cancel(t, (void *) x);
    handler->done(ctx, rc, text);
}


/* Tells the owner of the exchange the next entry. */
static void
transcript_tell(kube_transcript_t *t, transcript_exchange_t *x)
{
    bool                       ended;
    kube_take_t                take;
    kube_response_t            response;
    const transcript_entry_t  *entry;

    if (x->unknown) {
        transcript_done(t, x, KUBE_CLOSED, "not in the transcript");
        return;
    }

    entry = (const transcript_entry_t *) t->entries + x->entry;

    if (entry->kind == TRANSCRIPT_DONE) {
        transcript_done(t, x, (kube_rc_t) -(int) entry->value,
                        (entry->value == 0) ? "" : "as it was recorded");
        return;
    }

    x->entry = entry->next;
    t->current = x;

    if (entry->kind == TRANSCRIPT_RESPONSE) {
        response = (kube_response_t) {
            .code = (int) entry->value,
            .retry_after_s = entry->retry_after_s,
            .content_type = entry->text
        };

        take = x->handler->response(x->ctx, &response);

    } else {
        take = x->handler->bytes(x->ctx, entry->text.data, entry->text.len);
    }

    /* a handler that cancels it has taken it from here */

    ended = (t->current != x);
    t->current = NULL;

    if (ended) {
        return;
    }

    x->paused = (take == KUBE_TAKE_PAUSE);

    if (take == KUBE_TAKE_ABORT) {
        transcript_done(t, x, KUBE_CLOSED, "");
    }
}


void
kube_transcript_process(kube_transcript_t *t, uint64_t now_ms)
{
    transcript_exchange_t  *x, *next;

    t->now_ms = now_ms;
    next = NULL;

    for (x = t->exchanges; x != NULL; x = x->next) {

        if (transcript_due(t, x) <= now_ms
            && (next == NULL || x->entry < next->entry))
        {
            next = x;
        }
    }

    if (next != NULL) {
        transcript_tell(t, next);
    }
}


uint64_t
kube_transcript_deadline(const kube_transcript_t *t)
{
    uint64_t                      ms, due_ms;
    const transcript_exchange_t  *x;

    ms = KUBE_NEVER;

    for (x = t->exchanges; x != NULL; x = x->next) {
        due_ms = transcript_due(t, x);
        ms = (due_ms < ms) ? due_ms : ms;
    }

    return ms;
}
