/*
 * kube_cli_verify - kube-informer --verify: what is held, compared with a list
 * of the API server at the same resourceVersion.
 *
 * The list goes through the informer's own lister-watcher, decoder and records,
 * so that equal objects have equal bytes, and equal digests.
 *
 * It blocks, and is for the command line tool alone.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kube_api_lister_watcher.h"
#include "kube_cli_clock.h"
#include "kube_cli_held.h"
#include "kube_cli_verify.h"
#include "kube_map.h"
#include "kube_object_json.h"


/* Of what is read of one object, or of a list's metadata, in bytes. */
#define VERIFY_ARENA_BYTES  (64u << 20)

typedef enum {
    VERIFY_OPEN = 0,         /* not compared yet */
    VERIFY_EQUAL,
    VERIFY_DIFFERENT,
    VERIFY_FAILED            /* cannot be, however often it is tried */
} verify_verdict_t;

/* An object as the server has it. */
typedef struct verify_object_s  verify_object_t;

struct verify_object_s {
    kube_map_link_t   link;
    verify_object_t  *next;       /* of the same list */
    bool              seen;       /* it is held */
    bool              matched;    /* nothing to tell of it */
    uint64_t          record[];   /* a kube_record_t; REFUSED: one that cannot
                                     be held, here as there */
};

/* A version of an object that was not held while the gateway moved on. */
typedef struct {
    uint64_t   key;
    kube_rv_t  rv;
} verify_absent_t;

/* What is known of a scope after some looks. */
typedef struct {
    verify_verdict_t   verdict;
    kube_resource_t    resource;
    char               ns[KUBE_NAMESPACE_LEN_MAX + 1];
    verify_absent_t   *absent;      /* at the last look; NULL: none was */
    size_t             absent_n;
    char               why[512];    /* it is not compared; "": not looked at */
} verify_scope_t;

typedef struct {
    const kube_cli_options_t  *options;
    const kube_config_t       *config;
    kube_alloc_t               alloc;
    kube_client_t             *client;
    kube_cli_held_t            held;
    uint64_t                   ends_ms;
    verify_scope_t             scopes[KUBE_SCOPES_MAX];
    size_t                     scopes_n;

    /* the scope in hand */
    verify_scope_t            *known;
    kube_cli_scope_t           scope;
    verify_object_t           *objects;      /* the server's list */
    kube_map_t                 map;          /* of these */
    uint64_t                   count;        /* of the server's, as below */
    kube_digest_t              digest;
    kube_rv_t                  listed;       /* another version than asked for;
                                                len 0: none was met */
    size_t                     different;    /* whatever has happened since */
    size_t                     unsure;       /* unless the gateway moved on */
    uint64_t                   rows;         /* that are held */
    FILE                      *lines;        /* of what would be different */
    bool                       fatal;        /* no further try helps */
    char                       why[512];
} verify_t;


static bool verify_fails(verify_t *v, const char *fmt, ...)
    KUBE_PRINTF(2, 3);


static bool
verify_fails(verify_t *v, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(v->why, sizeof(v->why), fmt, args);
    va_end(args);

    return false;
}


static const kube_record_t *
verify_record(const verify_object_t *object)
{
    return (const kube_record_t *) (const void *) object->record;
}


static uint64_t
verify_hash(kube_str_t ns, kube_str_t name)
{
    uint64_t  h;

    h = kube_hash64((kube_seed_t) { 0, 0 }, ns.data, ns.len);

    return kube_hash64((kube_seed_t) { h, 1 }, name.data, name.len);
}


static verify_object_t *
verify_find(const verify_t *v, kube_str_t ns, kube_str_t name)
{
    kube_map_link_t   *link;
    verify_object_t   *object;
    kube_record_id_t   id;

    for (link = kube_map_first(&v->map, verify_hash(ns, name));
         link != NULL;
         link = kube_map_next(link))
    {
        object = kube_map_data(link, verify_object_t, link);

        if (kube_record_id(object->record, verify_record(object)->size, &id)
            == KUBE_OK
            && kube_str_eq(id.meta.ns, ns)
            && kube_str_eq(id.meta.name, name))
        {
            return object;
        }
    }

    return NULL;
}


static void
verify_forget(verify_t *v)
{
    verify_object_t  *object;

    while (v->objects != NULL) {
        object = v->objects;
        v->objects = object->next;

        kube_map_remove(&v->map, &object->link);
        kube_free(&v->alloc, object);
    }

    v->count = 0;
    v->digest = (kube_digest_t) { 0, 0 };
}


/* Keeps an item of the list; one without a key is counted nowhere. */
static bool
verify_item(verify_t *v, const kube_result_t *result)
{
    size_t              size;
    kube_record_id_t    id;
    verify_object_t    *object;
    const kube_meta_t  *meta;

    meta = kube_object_meta(&result->object);

    if (meta->name.len == 0) {
        return true;
    }

    size = (result->refusal == KUBE_REFUSAL_NONE)
           ? kube_record_size(&result->object) : 0;

    object = kube_zalloc(&v->alloc, sizeof(verify_object_t)
                                    + (size ? size
                                            : KUBE_RECORD_REFUSED_MAX));
    if (object == NULL) {
        return verify_fails(v, "out of memory");
    }

    if (size != 0) {
        kube_record_encode(&result->object, object->record);
        kube_digest_add(&v->digest, kube_record_digest(verify_record(object)));
        v->count++;

    } else {
        memset(&id, 0, sizeof(kube_record_id_t));
        id.resource = v->scope.resource;
        id.meta = *meta;
        id.reason = kube_reason_text(KUBE_REASON_MALFORMED);

        if (kube_record_refused_encode(&id, object->record) == 0) {
            kube_free(&v->alloc, object);
            return true;
        }
    }

    object->next = v->objects;
    v->objects = object;
    kube_map_insert(&v->map, &object->link, verify_hash(meta->ns, meta->name));

    return true;
}


static bool
verify_refused(verify_t *v, const kube_status_t *status)
{
    switch (status->verdict) {

    case KUBE_VERDICT_EXPIRED:
        /* a gateway gets there; a file stays as old as it is */
        v->fatal = (v->held.file.len != 0);
        return verify_fails(v, "the server does not know version %.*s any "
                            "more: %s", (int) v->scope.rv.len,
                            v->scope.rv.data, status->message);

    case KUBE_VERDICT_TOO_LARGE_RV:
        return verify_fails(v, "the server does not know version %.*s yet: is "
                            "it the same cluster? %s", (int) v->scope.rv.len,
                            v->scope.rv.data, status->message);

    case KUBE_VERDICT_FORBIDDEN:
    case KUBE_VERDICT_NOT_FOUND:
    case KUBE_VERDICT_INVALID:
        v->fatal = true;
        break;

    default:
        break;
    }

    return verify_fails(v, "the server answered %d (%s): %s", status->code,
                        kube_verdict_text(status->verdict), status->message);
}


/* What the server answers to a page.  token: of the next page, "" none. */
static bool
verify_results(verify_t *v, const kube_lister_watcher_t *lw,
    kube_call_t *call, char token[KUBE_CONTINUE_LEN_MAX + 1], bool *over)
{
    kube_result_t  result;

    while (lw->next(lw->ctx, call, &result) == KUBE_OK) {

        switch (result.kind) {

        case KUBE_RESULT_META:

            if (kube_rv_cmp(&result.rv, &v->scope.rv) != 0) {
                v->listed = result.rv;
            }

            break;

        case KUBE_RESULT_ITEM:

            if (!verify_item(v, &result)) {
                return false;
            }

            break;

        case KUBE_RESULT_STATUS:

            if (result.status->verdict == KUBE_VERDICT_UNAUTHORIZED) {
                lw->credentials(lw->ctx, kube_cli_now_ms());
            }

            return verify_refused(v, result.status);

        case KUBE_RESULT_END:

            if (result.rc != KUBE_OK) {
                return verify_fails(v, "%s%s%s", kube_rc_text(result.rc),
                                    result.text[0] ? ": " : "", result.text);
            }

            (void) snprintf(token, KUBE_CONTINUE_LEN_MAX + 1, "%.*s",
                            (int) result.continue_token.len,
                            result.continue_token.data != NULL
                            ? result.continue_token.data : "");
            *over = true;
            return true;

        default:
            break;
        }
    }

    return true;
}


static bool
verify_wait(verify_t *v)
{
    uint64_t        now_ms, until_ms;
    struct pollfd   fd;

    now_ms = kube_cli_now_ms();

    if (now_ms >= v->ends_ms) {
        return verify_fails(v, "the server did not answer in time");
    }

    until_ms = kube_client_deadline(v->client);
    until_ms = (until_ms < v->ends_ms) ? until_ms : v->ends_ms;

    fd.fd = kube_client_fd(v->client);
    fd.events = POLLIN;

    if (poll(&fd, 1, until_ms <= now_ms ? 0 : (int) (until_ms - now_ms)) == -1
        && errno != EINTR)
    {
        return verify_fails(v, "poll() failed: %s", strerror(errno));
    }

    kube_client_process(v->client, kube_cli_now_ms());

    return true;
}


static bool
verify_page(verify_t *v, const kube_lister_watcher_t *lw,
    char token[KUBE_CONTINUE_LEN_MAX + 1])
{
    bool                 ok, over;
    kube_call_t         *call;
    kube_list_options_t  options;

    memset(&options, 0, sizeof(kube_list_options_t));
    options.rv = kube_rv_str(&v->scope.rv);
    options.exact = true;
    options.limit = (uint32_t) v->options->page_size;
    options.continue_token = kube_str(token);

    call = lw->list(lw->ctx, &options, kube_cli_now_ms());

    if (call == NULL) {
        return verify_fails(v, "out of memory");
    }

    over = false;

    do {
        ok = verify_results(v, lw, call, token, &over)
             && (over || verify_wait(v));

    } while (ok && !over);

    lw->cancel(lw->ctx, call);

    return ok;
}


/* Lists the scope at the version that is held. */
static bool
verify_list(verify_t *v)
{
    bool                             ok;
    kube_lister_watcher_t            lw;
    kube_api_lister_watcher_conf_t   conf;
    char                             token[KUBE_CONTINUE_LEN_MAX + 1];

    memset(&conf, 0, sizeof(kube_api_lister_watcher_conf_t));

    conf.io = kube_client_io(v->client);
    conf.encoding = KUBE_ENCODING_JSON;
    conf.resource = v->scope.resource;
    conf.ns = kube_str(v->scope.ns);
    conf.label_selector = v->options->selectors[v->scope.resource];
    conf.object_bytes_max = KUBE_OBJECT_BYTES_MAX;

    if (kube_api_lister_watcher_create(&v->alloc, &conf, &lw) != KUBE_OK) {
        return verify_fails(v, "out of memory");
    }

    verify_forget(v);
    v->listed.len = 0;
    token[0] = '\0';

    ok = verify_page(v, &lw, token);

    while (ok && token[0] != '\0') {
        ok = verify_page(v, &lw, token);
    }

    lw.destroy(lw.ctx);

    return ok;
}


static bool
verify_write(void *ctx, const char *data, size_t len)
{
    return fwrite(data, 1, len, ctx) == len;
}


/* Opens a line of the scope in hand. */
static void
verify_open(verify_t *v, FILE *out, kube_text_t *text,
    kube_json_writer_t *json, const char *type, kube_str_t ns)
{
    kube_text_init(text, verify_write, out, SIZE_MAX);
    kube_json_writer_init(json, text);

    kube_json_open(json, NULL, '{');
    kube_json_put_str(json, "type", kube_str(type));
    kube_json_put_str(json, "resource",
                      kube_str(kube_resource_text(v->scope.resource)));
    kube_json_put_str(json, "namespace", ns);
}


/* "server" or "held": the object of a record. */
static void
verify_put_record(verify_t *v, kube_json_writer_t *json, const char *key,
    const kube_record_t *record)
{
    kube_arena_t      arena;
    kube_object_t     object;
    kube_record_id_t  id;

    kube_arena_init(&arena, &v->alloc, VERIFY_ARENA_BYTES);

    if (kube_record_id(record, record->size, &id) == KUBE_OK
        && kube_record_decode(&arena, record, record->size, &object)
           == KUBE_OK)
    {
        kube_json_open(json, key, '{');
        kube_json_put_str(json, "resource_version", id.meta.rv);
        kube_json_put_object(json, "object", &object);
        kube_json_close(json, '}');

    } else {
        kube_json_put_null(json, key);
    }

    kube_arena_done(&arena);
}


static void
verify_put_row(verify_t *v, kube_json_writer_t *json,
    const kube_cli_row_t *row)
{
    char  *text;

    if (row == NULL) {
        kube_json_put_null(json, "held");
        return;
    }

    if (row->record != NULL) {
        verify_put_record(v, json, "held", row->record);
        return;
    }

    text = cJSON_PrintUnformatted(row->json);

    kube_json_open(json, "held", '{');
    kube_json_put_str(json, "resource_version", row->rv);
    kube_text_put(json->text, KUBE_STR(",\"object\":"));
    kube_text_put(json->text, text ? kube_str(text) : KUBE_STR("null"));
    kube_json_close(json, '}');

    cJSON_free(text);
}


/* One of the two may be NULL: it is not there. */
static void
verify_difference(verify_t *v, kube_str_t ns, kube_str_t name,
    const kube_cli_row_t *row, const verify_object_t *object)
{
    kube_text_t         text;
    kube_json_writer_t  json;

    if (v->different + v->unsure > KUBE_CLI_VERIFY_SHOWN) {
        return;
    }

    verify_open(v, v->lines, &text, &json, "different", ns);
    kube_json_put_str(&json, "name", name);
    verify_put_row(v, &json, row);

    if (object != NULL) {
        verify_put_record(v, &json, "server", verify_record(object));

    } else {
        kube_json_put_null(&json, "server");
    }

    kube_json_close(&json, '}');
    kube_text_put(&text, KUBE_STR("\n"));
}


/* The name is no news: the gateway says itself what it refused. */
static void
verify_named(verify_t *v, const kube_cli_row_t *row)
{
    kube_text_t         text;
    kube_json_writer_t  json;

    verify_open(v, v->lines, &text, &json, "refused", row->ns);
    kube_json_put_str(&json, "name", row->name);
    kube_json_put_str(&json, "reason", row->refused);
    kube_json_close(&json, '}');
    kube_text_put(&text, KUBE_STR("\n"));
}


static bool
verify_is_hex(const char *text, const verify_object_t *object)
{
    char  hex[33];

    kube_digest_hex(kube_record_digest(verify_record(object)), hex);

    return strcmp(text, hex) == 0;
}


/*
 * One that is held.  What changed after the version that was listed has a newer
 * version itself: that is no difference.
 */
static bool
verify_row(void *ctx, const kube_cli_row_t *row)
{
    verify_t         *v = ctx;
    kube_rv_t         rv;
    verify_object_t  *object;

    if (row->resource != v->scope.resource
        || (v->scope.ns[0] != '\0'
            && !kube_str_eq(row->ns, kube_str(v->scope.ns))))
    {
        return true;
    }

    object = verify_find(v, row->ns, row->name);

    if (row->refused.len != 0) {

        if (object != NULL && !object->matched) {
            object->matched = true;
            verify_named(v, row);
        }

        return true;
    }

    if (object != NULL) {
        object->seen = true;
    }

    /* of one that is gone no older state is held either */

    if (row->outdated && object != NULL) {
        return true;
    }

    v->rows++;

    if (object != NULL
        && verify_record(object)->kind != KUBE_RECORD_REFUSED
        && verify_is_hex(row->digest, object))
    {
        object->matched = true;
        return true;
    }

    if (kube_rv_parse(row->rv, &rv) != KUBE_OK
        || kube_rv_cmp(&rv, &v->scope.rv) > 0)
    {
        v->unsure++;
        return true;
    }

    v->different++;
    verify_difference(v, row->ns, row->name, row, object);

    return true;
}


/*
 * True if the version was not held at the last look either: the object was
 * there at that time, and still is, so that it was not deleted in between.
 */
static bool
verify_was_absent(const verify_t *v, uint64_t key, const kube_rv_t *rv)
{
    size_t                  i;
    const verify_absent_t  *absent;

    for (i = 0; i < v->known->absent_n; i++) {
        absent = &v->known->absent[i];

        if (absent->key == key && kube_rv_cmp(&absent->rv, rv) == 0) {
            return true;
        }
    }

    return false;
}


/*
 * What the server has and nobody holds or names.  It may have been deleted
 * since: only where the gateway has not moved, or where it was not held before
 * either, is it at fault.  Others are remembered.  Returns how many there are.
 */
static size_t
verify_missing(verify_t *v, bool still)
{
    size_t             n, kept;
    kube_rv_t          rv;
    verify_absent_t   *absent;
    kube_record_id_t   id;
    verify_object_t   *object;

    n = 0;
    kept = 0;

    absent = kube_alloc(&v->alloc, KUBE_CLI_VERIFY_SHOWN
                                   * sizeof(verify_absent_t));

    for (object = v->objects; object != NULL; object = object->next) {

        if (object->seen || object->matched
            || kube_record_id(object->record, verify_record(object)->size,
                              &id) != KUBE_OK
            || kube_rv_parse(id.meta.rv, &rv) != KUBE_OK)
        {
            continue;
        }

        n++;

        if (v->scope.unnamed == 0
            && (still || verify_was_absent(v, object->link.hash, &rv)))
        {
            v->different++;
            verify_difference(v, id.meta.ns, id.meta.name, NULL, object);

        } else if (absent != NULL && kept < KUBE_CLI_VERIFY_SHOWN) {
            absent[kept].key = object->link.hash;
            absent[kept++].rv = rv;
        }
    }

    kube_free(&v->alloc, v->known->absent);
    v->known->absent = absent;
    v->known->absent_n = kept;

    return n;
}


/* Whether the scope in hand is where it was when its version was read. */
static bool
verify_is_still(verify_t *v, bool *still)
{
    size_t                   i;
    const kube_cli_scope_t  *scope;

    *still = false;

    if (v->held.file.len != 0) {
        *still = (v->rows == v->scope.count);
        return true;
    }

    if (!kube_cli_held_scopes(&v->held)) {
        return verify_fails(v, "%s", v->held.why);
    }

    for (i = 0; i < v->held.scopes_n; i++) {
        scope = &v->held.scopes[i];

        if (scope->resource == v->scope.resource
            && strcmp(scope->ns, v->scope.ns) == 0)
        {
            *still = (strcmp(scope->digest, v->scope.digest) == 0
                      && scope->count == v->scope.count
                      && scope->unnamed == v->scope.unnamed);
        }
    }

    return true;
}


/* Compares the objects, the digests having been different. */
static verify_verdict_t
verify_objects(verify_t *v)
{
    bool    still;
    size_t  missing;

    v->different = 0;
    v->unsure = 0;
    v->rows = 0;

    if (!kube_cli_held_rows(&v->held, verify_row, v)) {
        (void) verify_fails(v, "%s", v->held.why);
        return VERIFY_OPEN;
    }

    if (!verify_is_still(v, &still)) {
        return VERIFY_OPEN;
    }

    missing = verify_missing(v, still);

    if (v->different != 0) {
        return VERIFY_DIFFERENT;
    }

    /* so many at most were refused, and have no name */

    if (v->unsure == 0 && missing <= v->scope.unnamed) {
        return VERIFY_EQUAL;
    }

    if (still && v->unsure == 0) {
        fprintf(stderr, "kube-informer: %s: %zu objects are not held, and no "
                "more than %llu were refused without a name\n",
                kube_resource_text(v->scope.resource), missing,
                (unsigned long long) v->scope.unnamed);
        return VERIFY_DIFFERENT;
    }

    v->fatal = (v->held.file.len != 0);
    (void) verify_fails(v, v->fatal
                        ? "the file was written while objects changed"
                        : "the gateway moves on faster than it can be read");

    return VERIFY_OPEN;
}


static void
verify_say(verify_t *v, const char *type)
{
    kube_text_t         text;
    kube_json_writer_t  json;
    char                digest[33];

    kube_digest_hex(v->digest, digest);

    verify_open(v, stdout, &text, &json, type, kube_str(v->scope.ns));
    kube_json_put_str(&json, "resource_version", kube_rv_str(&v->scope.rv));
    kube_json_put_num(&json, "count", v->scope.count);
    kube_json_put_str(&json, "digest", kube_str(v->scope.digest));
    kube_json_put_num(&json, "server_count", v->count);
    kube_json_put_str(&json, "server_digest", kube_str(digest));
    kube_json_put_num(&json, "age_seconds", v->held.age_s);
    kube_json_close(&json, '}');
    kube_text_put(&text, KUBE_STR("\n"));
}


/* One look at a scope. */
static verify_verdict_t
verify_scope(verify_t *v)
{
    char              *lines, digest[33];
    size_t             len;
    verify_verdict_t   verdict;

    v->fatal = false;

    if (v->scope.rv.len == 0) {
        (void) verify_fails(v, "it has not been listed yet");
        return VERIFY_OPEN;
    }

    if (!verify_list(v)) {
        return v->fatal ? VERIFY_FAILED : VERIFY_OPEN;
    }

    kube_digest_hex(v->digest, digest);

    if (v->scope.refused == 0
        && v->count == v->scope.count
        && strcmp(digest, v->scope.digest) == 0)
    {
        verify_say(v, "equal");
        return VERIFY_EQUAL;
    }

    if (v->listed.len != 0) {
        v->fatal = (v->held.file.len != 0);
        (void) verify_fails(v, "asked for version %.*s, the server listed "
                            "%.*s: it takes no notice of "
                            "resourceVersionMatch=Exact",
                            (int) v->scope.rv.len, v->scope.rv.data,
                            (int) v->listed.len, v->listed.data);
        return v->fatal ? VERIFY_FAILED : VERIFY_OPEN;
    }

    lines = NULL;
    v->lines = open_memstream(&lines, &len);

    if (v->lines == NULL) {
        (void) verify_fails(v, "out of memory");
        return VERIFY_FAILED;
    }

    verdict = verify_objects(v);
    (void) fclose(v->lines);

    if (verdict == VERIFY_EQUAL || verdict == VERIFY_DIFFERENT) {
        verify_say(v, verdict == VERIFY_EQUAL ? "equal" : "unequal");

        if (!v->options->quiet) {
            (void) fwrite(lines, 1, len, stdout);
        }
    }

    free(lines);

    return (verdict == VERIFY_OPEN && v->fatal) ? VERIFY_FAILED : verdict;
}


/* What is known of a scope, if it is still the one of the last look. */
static verify_scope_t *
verify_known(verify_t *v, size_t i, const kube_cli_scope_t *scope)
{
    verify_scope_t  *known;

    known = &v->scopes[i];

    if (known->resource != scope->resource
        || strcmp(known->ns, scope->ns) != 0)
    {
        kube_free(&v->alloc, known->absent);
        memset(known, 0, sizeof(verify_scope_t));
        known->resource = scope->resource;
        memcpy(known->ns, scope->ns, sizeof(known->ns));
    }

    return known;
}


/* One look at all scopes that are still open; returns how many stay so. */
static size_t
verify_look(verify_t *v)
{
    size_t             i, open;
    kube_cli_scope_t   scopes[KUBE_SCOPES_MAX];

    open = 0;

    /* a copy: what is held is read again where a scope is looked at closely */

    v->scopes_n = v->held.scopes_n;
    memcpy(scopes, v->held.scopes, sizeof(scopes));

    for (i = 0; i < v->scopes_n; i++) {

        v->known = verify_known(v, i, &scopes[i]);
        v->scope = scopes[i];

        if (v->known->verdict != VERIFY_OPEN) {
            continue;
        }

        v->known->verdict = verify_scope(v);

        open += (v->known->verdict == VERIFY_OPEN);

        /* that the time is over would hide what kept us until then */

        if (v->known->why[0] == '\0' || kube_cli_now_ms() < v->ends_ms) {
            memcpy(v->known->why, v->why, sizeof(v->why));
        }
    }

    return open;
}


/* False: nothing could be read of what is held. */
static bool
verify_run(verify_t *v)
{
    bool      read;
    unsigned  n;

    for (n = 1; /* void */ ; n++) {

        read = kube_cli_held_scopes(&v->held);

        if (read && verify_look(v) == 0) {
            return true;
        }

        if (n == KUBE_CLI_VERIFY_TRIES
            || kube_cli_now_ms() + KUBE_CLI_VERIFY_PAUSE_MS >= v->ends_ms)
        {
            return v->scopes_n != 0 || verify_fails(v, "%s", v->held.why);
        }

        (void) usleep(KUBE_CLI_VERIFY_PAUSE_MS * 1000);
    }
}


static int
verify_code(const verify_t *v)
{
    int                    code;
    size_t                 i;
    const verify_scope_t  *scope;

    code = 0;

    if (v->held.stale) {
        fprintf(stderr, "kube-informer: the gateway is stale: what it holds is "
                "compared at a version that it had %llu seconds ago\n",
                (unsigned long long) v->held.age_s);
    }

    for (i = 0; i < v->scopes_n; i++) {
        scope = &v->scopes[i];

        if (scope->verdict == VERIFY_DIFFERENT) {
            code = 1;
            continue;
        }

        if (scope->verdict == VERIFY_EQUAL) {
            continue;
        }

        fprintf(stderr, "kube-informer: not compared: %s in %s: %s\n",
                kube_resource_text(scope->resource),
                scope->ns[0] ? scope->ns : "all namespaces", scope->why);

        code = (code == 0) ? 2 : code;
    }

    return code;
}


int
kube_cli_verify(const kube_cli_options_t *options,
    const kube_config_t *config, const kube_alloc_t *alloc,
    kube_log_sink_t sink)
{
    int                  code;
    size_t               i;
    verify_t            *v;
    kube_client_conf_t   client;

    v = kube_zalloc(alloc, sizeof(verify_t));

    if (v == NULL) {
        return 2;
    }

    v->options = options;
    v->alloc = *alloc;
    v->ends_ms = kube_cli_now_ms()
                 + (options->timeout_ms ? options->timeout_ms
                                        : KUBE_CLI_VERIFY_MS);
    code = 2;

    memset(&client, 0, sizeof(kube_client_conf_t));
    client.config = config;
    client.connect_timeout_ms = 3000;

    v->client = kube_client_create(&v->alloc, &client, sink);

    if (v->client == NULL || kube_map_init(&v->map, &v->alloc) != KUBE_OK) {
        (void) verify_fails(v, "out of memory or descriptors");

    } else if (!kube_cli_held_open(&v->held, options->verify,
                                   options->informer))
    {
        (void) verify_fails(v, "%s", v->held.why);

    } else {
        v->held.ends_ms = v->ends_ms;

        if (verify_run(v)) {
            v->why[0] = '\0';
            code = verify_code(v);
        }
    }

    if (fflush(stdout) != 0 || ferror(stdout)) {
        (void) verify_fails(v, "stdout: %s", strerror(errno));
        code = 2;
    }

    if (v->why[0] != '\0') {
        fprintf(stderr, "kube-informer: not compared: %s: %s\n",
                options->verify, v->why);
    }

    for (i = 0; i < KUBE_SCOPES_MAX; i++) {
        kube_free(&v->alloc, v->scopes[i].absent);
    }

    kube_cli_held_close(&v->held);
    verify_forget(v);
    kube_map_done(&v->map);
    kube_client_destroy(v->client);
    kube_free(alloc, v);

    return code;
}
