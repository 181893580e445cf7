/*
 * kube_cli_held - what is held: by a running gateway, asked over its
 * kube_status location, or by a state file.
 *
 * What a gateway answers comes over the network: each member is bounded before
 * it is used, and no redirect is followed.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kube_cli_clock.h"
#include "kube_cli_held.h"
#include "kube_json.h"
#include "kube_state.h"


#define HELD_URL_MAX  2048

/* One answer, ms. */
#define HELD_ANSWER_MS  30000

typedef struct {
    char   *data;
    size_t  len;
} held_body_t;

typedef struct {
    kube_cli_row_pt    each;
    void              *ctx;
} held_visitor_t;


static bool
held_fails(kube_cli_held_t *held, const char *fmt, ...)
    KUBE_PRINTF(2, 3);


static bool
held_fails(kube_cli_held_t *held, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(held->why, sizeof(held->why), fmt, args);
    va_end(args);

    return false;
}


static bool
held_is_url(const char *from)
{
    return strncasecmp(from, "http://", 7) == 0
           || strncasecmp(from, "https://", 8) == 0;
}


bool
kube_cli_held_open(kube_cli_held_t *held, const char *from,
    const char *informer)
{
    int                 fd;
    void               *bytes;
    int64_t             now;
    struct stat         st;
    kube_state_info_t   info;

    memset(held, 0, sizeof(kube_cli_held_t));
    held->from = from;
    held->informer = informer;

    if (held_is_url(from)) {
        return true;
    }

    bytes = MAP_FAILED;
    fd = open(from, O_RDONLY|O_CLOEXEC|O_NONBLOCK);

    if (fd != -1 && fstat(fd, &st) == 0) {
        errno = EINVAL;

        if (S_ISREG(st.st_mode) && st.st_size > 0
            && st.st_size <= KUBE_CLI_BODY_MAX)
        {
            bytes = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE,
                         fd, 0);
        }
    }

    if (bytes == MAP_FAILED) {
        (void) held_fails(held, "%s%s", strerror(errno), (errno == ENOENT)
                          ? "; a URL begins with http:// or https://" : "");
    }

    if (fd != -1) {
        (void) close(fd);
    }

    if (bytes == MAP_FAILED) {
        return false;
    }

    held->file = (kube_str_t) { bytes, (size_t) st.st_size };

    if (kube_state_check(bytes, held->file.len, &info) != KUBE_OK) {
        return held_fails(held, "it is no state file of this version, or it is "
                          "damaged");
    }

    now = (int64_t) kube_cli_clock_ms(CLOCK_REALTIME);
    held->age_s = (now > info.written_ms)
                  ? (uint64_t) (now - info.written_ms) / 1000 : 0;

    return true;
}


void
kube_cli_held_close(kube_cli_held_t *held)
{
    if (held->file.len != 0) {
        (void) munmap((void *) (uintptr_t) held->file.data, held->file.len);
        held->file.len = 0;
    }
}


static size_t
held_take(char *data, size_t size, size_t n, void *ctx)
{
    char         *more;
    held_body_t  *body = ctx;

    n *= size;

    if (n > KUBE_CLI_BODY_MAX - body->len) {
        return 0;
    }

    /* realloc() moves pages where they are many */

    more = realloc(body->data, body->len + n + 1);

    if (more == NULL) {
        return 0;
    }

    memcpy(more + body->len, data, n);
    body->data = more;
    body->len += n;
    more[body->len] = '\0';

    return n;
}


/* No redirect, no proxy: what is asked is what was named. */
static CURLcode
held_perform(CURL *curl, const char *url, held_body_t *body, char *error,
    long timeout_ms)
{
    (void) curl_easy_setopt(curl, CURLOPT_URL, url);
    (void) curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    (void) curl_easy_setopt(curl, CURLOPT_PROXY, "");
    (void) curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    (void) curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
    (void) curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, held_take);
    (void) curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
    (void) curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);

    return curl_easy_perform(curl);
}


static long
held_timeout(const kube_cli_held_t *held)
{
    uint64_t  now_ms;

    now_ms = kube_cli_now_ms();

    if (now_ms >= held->ends_ms) {
        return 1;
    }

    return held->ends_ms - now_ms < HELD_ANSWER_MS
           ? (long) (held->ends_ms - now_ms) : HELD_ANSWER_MS;
}


/* The JSON of a path below the kube_status location; NULL: why says it. */
static cJSON *
held_get(kube_cli_held_t *held, const char *path, const char *args)
{
    long          code;
    CURL         *curl;
    cJSON        *tree;
    size_t        len;
    CURLcode      rc;
    held_body_t   body;
    char          url[HELD_URL_MAX], error[CURL_ERROR_SIZE];

    len = strlen(held->from);
    (void) snprintf(url, sizeof(url), "%s%sapi/v1/%s%s", held->from,
                    held->from[len - 1] == '/' ? "" : "/", path, args);

    curl = curl_easy_init();

    if (curl == NULL) {
        (void) held_fails(held, "out of memory");
        return NULL;
    }

    memset(&body, 0, sizeof(held_body_t));
    error[0] = '\0';
    code = 0;
    tree = NULL;

    rc = held_perform(curl, url, &body, error, held_timeout(held));
    (void) curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);

    if (rc != CURLE_OK) {
        (void) held_fails(held, "%s: %s", url,
                          error[0] ? error : curl_easy_strerror(rc));

    } else if (code != 200) {
        (void) held_fails(held, "%s: the answer is %ld%s", url, code,
                          code == 404 ? ": is it a kube_status location with "
                                        "\"api\", and of this version?"
                          : code == 410 ? ": its zone was replaced meanwhile"
                          : "");

    } else {
        tree = (body.len != 0) ? cJSON_Parse(body.data) : NULL;

        if (tree == NULL) {
            (void) held_fails(held, "%s: the answer is no JSON", url);
        }
    }

    curl_easy_cleanup(curl);
    free(body.data);

    return tree;
}


static bool
held_resource(kube_str_t text, kube_resource_t *resource)
{
    unsigned  r;

    for (r = 0; r < KUBE_RESOURCES; r++) {
        *resource = (kube_resource_t) r;

        if (kube_str_eq(text, kube_str(kube_resource_text(*resource)))) {
            return true;
        }
    }

    return false;
}


static bool
held_copy(char *to, size_t size, kube_str_t from)
{
    if (from.len >= size) {
        return false;
    }

    if (from.len != 0) {
        memcpy(to, from.data, from.len);
    }

    to[from.len] = '\0';

    return true;
}


static uint64_t
held_number(const cJSON *object, const char *name)
{
    const cJSON  *value;

    value = kube_json_get(object, name);

    /* what a double holds exactly */

    return (cJSON_IsNumber(value) && value->valuedouble >= 0
            && value->valuedouble < 9007199254740992.0)
           ? (uint64_t) value->valuedouble : 0;
}


static bool
held_scope(kube_cli_held_t *held, const cJSON *json)
{
    kube_str_t         rv;
    kube_cli_scope_t  *scope;

    if (held->scopes_n == KUBE_SCOPES_MAX) {
        return false;
    }

    scope = &held->scopes[held->scopes_n++];
    memset(scope, 0, sizeof(kube_cli_scope_t));

    rv = kube_json_string(json, "resource_version");
    scope->count = held_number(json, "objects");
    scope->refused = held_number(json, "refused_total");
    scope->unnamed = held_number(json, "refused_unnamed");

    return held_resource(kube_json_string(json, "resource"), &scope->resource)
           && held_copy(scope->ns, sizeof(scope->ns),
                        kube_json_string(json, "namespace"))
           && held_copy(scope->digest, sizeof(scope->digest),
                        kube_json_string(json, "digest"))
           && (rv.len == 0 || kube_rv_parse(rv, &scope->rv) == KUBE_OK);
}


/* The informer asked for; without a name "default", or the first. */
static const cJSON *
held_informer(const kube_cli_held_t *held, const cJSON *tree)
{
    const char   *name;
    const cJSON  *informers, *i;

    informers = kube_json_get(tree, "informers");
    name = (held->informer != NULL) ? held->informer : "default";

    cJSON_ArrayForEach(i, informers) {
        if (kube_str_eq(kube_json_string(i, "name"), kube_str(name))) {
            return i;
        }
    }

    return (held->informer == NULL) ? cJSON_GetArrayItem(informers, 0) : NULL;
}


static kube_rc_t
held_file_scope(void *ctx, const kube_scope_info_t *info)
{
    kube_cli_held_t   *held = ctx;
    kube_cli_scope_t  *scope;

    if (held->scopes_n == KUBE_SCOPES_MAX) {
        return KUBE_CORRUPT;
    }

    scope = &held->scopes[held->scopes_n++];
    memset(scope, 0, sizeof(kube_cli_scope_t));

    scope->resource = info->resource;
    scope->count = info->count;
    scope->unnamed = info->refused_unnamed;
    kube_digest_hex(info->digest, scope->digest);

    if (!held_copy(scope->ns, sizeof(scope->ns), info->ns)
        || (info->rv.len != 0
            && kube_rv_parse(info->rv, &scope->rv) != KUBE_OK))
    {
        return KUBE_CORRUPT;
    }

    return KUBE_OK;
}


bool
kube_cli_held_scopes(kube_cli_held_t *held)
{
    bool          ok;
    cJSON        *tree;
    const cJSON  *informer, *scope;

    held->scopes_n = 0;

    if (held->file.len != 0) {
        return (kube_state_scopes(held->file.data, held->file.len,
                                  held_file_scope, held)
                == KUBE_OK && held->scopes_n != 0)
               || held_fails(held, "it does not say of which versions it is");
    }

    tree = held_get(held, "status", "");

    if (tree == NULL) {
        return false;
    }

    informer = held_informer(held, tree);
    ok = (informer != NULL);

    if (!cJSON_IsArray(kube_json_get(tree, "informers"))) {
        (void) held_fails(held,
                          "%s: the answer is JSON, but no status: is it a "
                          "kube_status location?", held->from);

    } else if (!ok) {
        (void) held_fails(held, "%s has no kube_informer \"%s\"", held->from,
                          held->informer ? held->informer : "default");
    }

    held->stale = cJSON_IsTrue(kube_json_get(informer, "stale"));
    held->age_s = held_number(informer, "age_seconds");

    cJSON_ArrayForEach(scope, kube_json_get(informer, "resources")) {
        ok = ok && (held_scope(held, scope)
                    || held_fails(held, "%s: a status of another version",
                                  held->from));
    }

    cJSON_Delete(tree);

    return ok && (held->scopes_n != 0
                  || held_fails(held, "%s follows nothing yet", held->from));
}


static bool
held_row(kube_cli_held_t *held, const cJSON *json,
    const held_visitor_t *visitor)
{
    kube_cli_row_t  row;

    memset(&row, 0, sizeof(kube_cli_row_t));

    row.ns = kube_json_string(json, "namespace");
    row.name = kube_json_string(json, "name");
    row.rv = kube_json_string(json, "resource_version");
    row.refused = kube_json_string(json, "refused");
    row.outdated = cJSON_IsTrue(kube_json_get(json, "outdated"));
    row.json = kube_json_get(json, "object");

    if (!held_resource(kube_json_string(json, "resource"), &row.resource)
        || row.name.len == 0
        || row.name.len > KUBE_NAME_LEN_MAX
        || row.ns.len > KUBE_NAMESPACE_LEN_MAX
        || !held_copy(row.digest, sizeof(row.digest),
                      kube_json_string(json, "digest"))
        || (row.refused.len == 0 && row.json == NULL))
    {
        return held_fails(held, "%s: objects of another version", held->from);
    }

    return visitor->each(visitor->ctx, &row);
}


static kube_rc_t
held_file_row(void *ctx, const kube_record_t *record)
{
    kube_cli_row_t         row;
    kube_record_id_t       id;
    const held_visitor_t  *visitor = ctx;

    if (kube_record_id(record, record->size, &id) != KUBE_OK) {
        return KUBE_CORRUPT;
    }

    memset(&row, 0, sizeof(kube_cli_row_t));

    row.resource = id.resource;
    row.ns = id.meta.ns;
    row.name = id.meta.name;
    row.rv = id.meta.rv;
    row.record = record;
    kube_digest_hex(kube_record_digest(record), row.digest);

    return visitor->each(visitor->ctx, &row) ? KUBE_OK : KUBE_NOMEM;
}


static bool
held_part(kube_cli_held_t *held, const held_visitor_t *visitor,
    char *after, size_t size)
{
    int           len;
    bool          ok;
    cJSON        *tree;
    const cJSON  *item;
    kube_str_t    next;
    char          args[256];

    len = snprintf(args, sizeof(args), "?after=%s%s%s", after,
                   held->informer ? "&informer=" : "",
                   held->informer ? held->informer : "");

    if (len < 0 || (size_t) len >= sizeof(args)) {
        return held_fails(held, "the informer's name is too long");
    }

    tree = held_get(held, "objects", args);

    if (tree == NULL) {
        return false;
    }

    ok = true;

    cJSON_ArrayForEach(item, kube_json_get(tree, "items")) {
        ok = ok && held_row(held, item, visitor);
    }

    next = kube_json_string(tree, "next");

    /* a number: anything else would be part of a URL */

    if (next.len != strspn(next.len ? next.data : "", "0123456789")
        || !held_copy(after, size, next))
    {
        ok = held_fails(held, "%s: objects of another version", held->from);
    }

    cJSON_Delete(tree);

    return ok;
}


bool
kube_cli_held_rows(kube_cli_held_t *held, kube_cli_row_pt each, void *ctx)
{
    char            after[24];
    held_visitor_t  visitor;

    visitor.each = each;
    visitor.ctx = ctx;
    held->why[0] = '\0';

    if (held->file.len != 0) {
        return kube_state_each(held->file.data, held->file.len, held_file_row,
                               &visitor) == KUBE_OK
               || held_fails(held, "the file is damaged");
    }

    after[0] = '\0';

    do {
        if (!held_part(held, &visitor, after, sizeof(after))) {
            return false;
        }

    } while (after[0] != '\0');

    return true;
}
