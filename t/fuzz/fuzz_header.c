/*
 * fuzz_header - any lines to libcurl's header callback, and bodies to that of
 * bytes: of heads that announce another, that are too long, that never end, of
 * trailers, with the owner holding, ending or cancelling at any time.
 *
 * No network and no libcurl: the two calls that ask libcurl of a head are this
 * file's.  What the owner is told is compared with a reading of its own.
 *
 * The first bytes choose what the owner does.  Then lines come as they
 * are; 0x1e changes between lines and bytes of the body, and 0x1f with the byte
 * behind it stands for so many times 512 letters.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define CURL_DISABLE_TYPECHECK

#include <curl/curl.h>

#undef curl_easy_getinfo
#undef curl_easy_setopt
#define curl_easy_header   fuzz_easy_header
#define curl_easy_getinfo  fuzz_easy_getinfo
#define curl_easy_setopt   fuzz_easy_setopt

static CURLHcode fuzz_easy_header(CURL *easy, const char *name, size_t index,
    unsigned int origin, int request, struct curl_header **header);
static CURLcode fuzz_easy_getinfo(CURL *easy, CURLINFO info, ...);
static CURLcode fuzz_easy_setopt(CURL *easy, CURLoption option, ...);

#include "kube_exchange.c"

#include <ctype.h>
#include <stdarg.h>

#include "fuzz.h"


#define FUZZ_HEADERS     64       /* of a head; of more libcurl has the first */
#define FUZZ_TEXT_MAX    (256u << 10)
#define FUZZ_TOKEN       "Authorization: Bearer s3cret"

typedef struct {
    char  *name;
    char  *value;
} fuzz_header_t;

/* A reading of what has come, beside that of the callback. */
typedef struct {
    fuzz_header_t       headers[FUZZ_HEADERS];
    size_t              n;
    long                code;
    bool                ended;         /* the final head has */
    curl_off_t          retry_after;   /* of any head, as libcurl's */
    size_t              bytes;

    kube_exchange_t    *e;
    struct curl_header  found;
    kube_take_t         on_response;
    kube_take_t         on_bytes;
    unsigned            cancel_at;     /* calls of the owner until then */
    unsigned            responses;
    unsigned            dones;
    size_t              body;          /* bytes that the owner took */
    kube_rc_t           rc;
} fuzz_head_t;

static fuzz_head_t  head;


static CURLHcode
fuzz_easy_header(CURL *easy, const char *name, size_t index,
    unsigned int origin, int request, struct curl_header **header)
{
    size_t  i;

    (void) easy;
    fuzz_assert(origin == CURLH_HEADER && request == -1);

    for (i = 0; i < head.n; i++) {
        if (strcasecmp(head.headers[i].name, name) == 0 && index-- == 0) {
            head.found.name = head.headers[i].name;
            head.found.value = head.headers[i].value;
            *header = &head.found;
            return CURLHE_OK;
        }
    }

    return CURLHE_MISSING;
}


static CURLcode
fuzz_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
    va_list  args;

    (void) easy;
    va_start(args, info);

    if (info == CURLINFO_RESPONSE_CODE) {
        *va_arg(args, long *) = head.code;

    } else {
        fuzz_assert(info == CURLINFO_RETRY_AFTER);
        *va_arg(args, curl_off_t *) = head.retry_after;
    }

    va_end(args);

    return CURLE_OK;
}


/* A head has its connection closed, and asks for nothing else. */
static CURLcode
fuzz_easy_setopt(CURL *easy, CURLoption option, ...)
{
    long     on;
    va_list  args;

    (void) easy;
    va_start(args, option);
    on = va_arg(args, long);
    va_end(args);

    fuzz_assert(option == CURLOPT_FORBID_REUSE && on == 1);

    return CURLE_OK;
}


static void
head_clear(void)
{
    while (head.n != 0) {
        head.n--;
        free(head.headers[head.n].name);
        free(head.headers[head.n].value);
    }
}


static char *
fuzz_copy(const char *data, size_t len)
{
    char  *copy;

    while (len != 0 && strchr(" \t\r\n", data[len - 1]) != NULL) {
        len--;
    }

    while (len != 0 && (*data == ' ' || *data == '\t')) {
        data++;
        len--;
    }

    copy = malloc(len + 1);
    fuzz_assert(copy != NULL);
    memcpy(copy, data, len);
    copy[len] = '\0';

    return copy;
}


static bool
head_is_final(void)
{
    return head.code < 100 || head.code >= 200;
}


/* One line, as libcurl reads it before it hands it over. */
static void
head_line(const char *line, size_t len)
{
    size_t          i;
    const char     *colon;
    fuzz_header_t  *h;

    if (head.ended) {
        return;
    }

    if (len > 5 && memcmp(line, "HTTP/", 5) == 0) {
        head_clear();
        head.code = 0;

        for (i = 5; i < len && line[i] != ' '; i++) { /* void */ }

        for (i++; i < len && isdigit((unsigned char) line[i])
                  && head.code < 100; i++)
        {
            head.code = head.code * 10 + line[i] - '0';
        }

        return;
    }

    colon = memchr(line, ':', len);

    if (colon == NULL || colon == line || head.n == FUZZ_HEADERS) {
        return;
    }

    h = &head.headers[head.n];
    h->name = fuzz_copy(line, (size_t) (colon - line));
    h->value = fuzz_copy(colon + 1, len - (size_t) (colon - line) - 1);

    if (strcasecmp(h->name, "Retry-After") == 0) {
        head.retry_after = strtoll(h->value, NULL, 10);
    }

    /* libcurl keeps none of a 1xx among those of the head */

    if (head_is_final()) {
        head.n++;

    } else {
        free(h->name);
        free(h->value);
    }
}


/* The n-th of that name, NULL: none. */
static const char *
head_value(const char *name, size_t n)
{
    size_t  i;

    for (i = 0; i < head.n; i++) {
        if (strcasecmp(head.headers[i].name, name) == 0 && n-- == 0) {
            return head.headers[i].value;
        }
    }

    return NULL;
}


static bool
head_is_one_of(const char *name, const char *a, const char *b)
{
    size_t       n;
    const char  *value;

    for (n = 0; (value = head_value(name, n)) != NULL; n++) {
        if (strcasecmp(value, a) != 0 && strcasecmp(value, b) != 0) {
            return false;
        }
    }

    return true;
}


/* Digits alone, all of them the same number, which fits. */
static bool
head_has_one_length(void)
{
    size_t        n;
    const char   *value, *first;

    first = NULL;

    for (n = 0; (value = head_value("Content-Length", n)) != NULL; n++) {
        if (value[0] == '\0' || value[strspn(value, "0123456789")] != '\0') {
            return false;
        }

        value += strspn(value, "0");

        if (strlen(value) > 19
            || (strlen(value) == 19
                && strcmp(value, "9223372036854775807") > 0)
            || (first != NULL && strcmp(first, value) != 0))
        {
            return false;
        }

        first = value;
    }

    return true;
}


static bool
head_is_readable(void)
{
    return head_is_one_of("Content-Encoding", "", "identity")
           && head_is_one_of("Transfer-Encoding", "chunked", "identity")
           && head_has_one_length();
}


static void
owner_cancels(void)
{
    if (head.cancel_at != 0 && --head.cancel_at == 0) {
        head.e->cancelled = 1;
    }
}


static kube_take_t
owner_response(void *ctx, const kube_response_t *response)
{
    size_t       len;
    uint32_t     seconds;
    const char  *type, *retry;

    fuzz_assert(ctx == &head && head.responses++ == 0 && head.dones == 0);
    fuzz_assert(!head.e->over && !head.e->cancelled);
    fuzz_assert(head_is_final() && head_is_readable());
    fuzz_assert(response->code == (int) head.code);
    fuzz_assert(response->server == 1);

    type = head_value("Content-Type", 0);
    type = (type != NULL) ? type : "";
    len = strcspn(type, ";");
    len = (strcspn(type, " \t") < len) ? strcspn(type, " \t") : len;
    fuzz_assert(kube_str_eq(response->content_type,
                            (kube_str_t) { type, len }));

    retry = head_value("Retry-After", 0);
    seconds = (retry == NULL || head.retry_after < 0) ? 0
              : head.retry_after > KUBE_RETRY_AFTER_MAX
                ? KUBE_RETRY_AFTER_MAX : (uint32_t) head.retry_after;
    fuzz_assert(response->retry_after_s == seconds);

    /* the token is not kept for as long as a watch lasts */
    fuzz_assert(head.e->headers->data[0] == '\0'
                && memcmp(head.e->headers->data, head.e->headers->data + 1,
                          sizeof(FUZZ_TOKEN) - 2) == 0);

    owner_cancels();

    return head.on_response;
}


static kube_take_t
owner_bytes(void *ctx, const char *data, size_t len)
{
    (void) ctx;
    (void) data;
    fuzz_assert(len != 0 && !head.e->over && !head.e->cancelled);

    head.body += len;
    owner_cancels();

    return head.on_bytes;
}


static void
owner_done(void *ctx, kube_rc_t rc, const char *text)
{
    size_t  i;

    (void) ctx;
    fuzz_assert(head.dones++ == 0 && !head.e->cancelled);
    fuzz_assert((rc == KUBE_OK) == (text[0] == '\0'));
    head.rc = rc;

    for (i = 0; text[i] != '\0'; i++) {
        fuzz_assert(text[i] >= 0x20 && text[i] < 0x7f);
    }
}


/* Returns whether libcurl would go on. */
static bool
fuzz_line(const char *data, size_t len)
{
    char       *copy;
    bool        ends, taken, told;
    size_t      n;

    copy = malloc(len);
    fuzz_assert(copy != NULL);
    memcpy(copy, data, len);

    head_line(copy, len);
    head.bytes += len;
    told = (head.responses != 0);
    ends = (!head.ended && (data[0] == '\r' || data[0] == '\n')
            && head_is_final());

    n = exchange_header_cb(copy, 1, len, head.e);
    free(copy);

    taken = (n == len);
    fuzz_assert(taken || n == 0);
    fuzz_assert(taken == (!head.e->over && !head.e->cancelled));

    if (head.bytes > KUBE_EXCHANGE_HEADER_BYTES_MAX) {
        fuzz_assert(!taken && head.e->rc == KUBE_PROTO);
        return false;
    }

    head.ended |= ends;

    /* told at the end of a head that can be read, and then only */
    fuzz_assert((head.responses != 0) == (told
                                          || (ends && head_is_readable())));
    fuzz_assert(!ends || head_is_readable() || head.e->rc == KUBE_PROTO);
    fuzz_assert(head.e->responded == (head.responses != 0));
    fuzz_assert((head.e->stage == KUBE_STAGE_HEAD) == (head.responses != 0));

    return taken;
}


/* Bytes behind the head; a transfer that is held is resumed once. */
static bool
fuzz_body(const char *data, size_t len)
{
    char      *copy;
    size_t     n, had;
    unsigned   tries;

    if (!head.e->responded || len == 0) {
        return true;
    }

    copy = malloc(len);
    fuzz_assert(copy != NULL);
    memcpy(copy, data, len);
    had = head.body;
    n = 0;

    for (tries = 0; tries < 2; tries++) {
        n = exchange_write_cb(copy, 1, len, head.e);

        if (n != CURL_WRITEFUNC_PAUSE) {
            break;
        }

        fuzz_assert(tries == 0 && head.e->paused && head.body == had);
        head.e->held = 0;
        head.e->paused = 0;
        head.e->env->taken_bytes = 0;
    }

    free(copy);
    fuzz_assert(n == len || (n == 0 && (head.e->over || head.e->cancelled)));
    fuzz_assert(head.body == had + len);

    return n == len;
}


/* Lines and bodies, until one of them ends it; true: it came to its end. */
static bool
fuzz_feed(const char *text, size_t size)
{
    bool         body, goes_on;
    size_t       len;
    const char  *end, *mark;

    body = false;
    goes_on = true;

    while (size != 0 && goes_on) {
        mark = memchr(text, 0x1e, size);
        len = (mark != NULL) ? (size_t) (mark - text) : size;

        if (len == 0) {
            body = !body;
            text++;
            size--;
            continue;
        }

        end = body ? NULL : memchr(text, '\n', len);
        len = (end != NULL) ? (size_t) (end - text) + 1 : len;
        goes_on = body ? fuzz_body(text, len) : fuzz_line(text, len);
        text += len;
        size -= len;
    }

    return goes_on;
}


static size_t
fuzz_expand(const fuzz_input_t *in, char *text)
{
    size_t  i, n, len;

    len = 0;

    for (i = 0; i < in->size && len < FUZZ_TEXT_MAX; i++) {

        if (in->data[i] != 0x1f || i + 1 == in->size) {
            text[len++] = (char) in->data[i];
            continue;
        }

        n = (size_t) in->data[++i] * 512;
        n = (n < FUZZ_TEXT_MAX - len) ? n : FUZZ_TEXT_MAX - len;
        memset(text + len, 'a', n);
        len += n;
    }

    return len;
}


static void
fuzz_finish(kube_exchange_env_t *env, bool complete)
{
    bool       blamed;
    CURLcode   code;

    code = complete ? CURLE_OK : CURLE_WRITE_ERROR;
    head.e->easy = NULL;
    blamed = kube_exchange_finish(head.e, code);

    fuzz_assert(head.dones == !head.e->cancelled);
    fuzz_assert(!blamed || (head.responses == 0 && !head.e->cancelled));

    if (head.dones != 0) {
        fuzz_assert((head.rc == KUBE_OK) == (complete && head.responses != 0));
        fuzz_assert(blamed == (head.responses == 0));
    }

    fuzz_assert(env->heard == (head.responses != 0));
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char                 *text;
    size_t                len;
    bool                  complete;
    unsigned              what;
    fuzz_input_t          in;
    kube_exchange_env_t   env;

    static const kube_take_t              takes[] = {
        KUBE_TAKE_MORE, KUBE_TAKE_PAUSE, KUBE_TAKE_ABORT, KUBE_TAKE_MORE
    };
    static const kube_exchange_handler_t  owner = {
        owner_response, owner_bytes, owner_done
    };

    in = (fuzz_input_t) { data, size };
    memset(&env, 0, sizeof(kube_exchange_env_t));
    memset(&head, 0, sizeof(fuzz_head_t));
    env.alloc = fuzz_heap;

    what = fuzz_pick(&in, 256);
    head.on_response = takes[what & 3];
    head.on_bytes = takes[what >> 2 & 3];
    head.cancel_at = (what & 0x10) ? fuzz_pick(&in, 8) : 0;
    env.conf.tick_bytes = (what & 0x20) ? 1 + fuzz_pick(&in, 256) : SIZE_MAX;

    head.e = exchange_alloc(&env, &owner, &head);
    fuzz_assert(head.e != NULL);
    head.e->server = 1;
    head.e->easy = head.e;                 /* nobody looks into it */
    head.e->stage = KUBE_STAGE_READY;
    head.e->headers = curl_slist_append(NULL, FUZZ_TOKEN);
    fuzz_assert(head.e->headers != NULL);

    text = malloc(FUZZ_TEXT_MAX);
    fuzz_assert(text != NULL);
    len = fuzz_expand(&in, text);
    complete = fuzz_feed(text, len);
    free(text);

    fuzz_finish(&env, complete);
    head_clear();
    kube_exchange_destroy(head.e);

    return 0;
}
