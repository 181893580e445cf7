/*
 * kube_status_json - /api/v1/status: the informers, their scopes, what is
 * degraded, and what each key of this nginx resolves to now.
 *
 * It gathers nothing: the figures are those of a kube_report_t, by the names
 * of kube_facts.  Called by workers; the members printed are a contract with
 * users.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_facts.h"
#include "kube_json_writer.h"
#include "kube_status_json.h"
#include "kube_version.h"


/* Beside four times the zone: what a worker may use for one view. */
#define STATUS_RESOLVING_MIN  (16u << 20)


static void
status_fact(kube_json_writer_t *json, const kube_fact_t *fact, const void *of)
{
    uint64_t  n;

    switch (fact->form) {

    case KUBE_FACT_BOOL:
        kube_json_put_bool(json, fact->key, kube_fact_bool(fact, of));
        break;

    case KUBE_FACT_NUMBER:
        kube_json_put_num(json, fact->key, kube_fact_number(fact, of));
        break;

    case KUBE_FACT_ID:
        n = kube_fact_number(fact, of);

        if (n == 0) {
            kube_json_put_null(json, fact->key);

        } else {
            kube_json_put_num(json, fact->key, n);
        }

        break;

    case KUBE_FACT_AGE:
        kube_json_put_seconds(json, fact->key, kube_fact_number(fact, of));
        break;

    case KUBE_FACT_TIME:
        kube_json_put_time(json, fact->key, kube_fact_time(fact, of));
        break;

    case KUBE_FACT_TEXT:
        kube_json_put_str(json, fact->key, kube_fact_text(fact, of));
        break;

    case KUBE_FACT_OPTIONAL:
        kube_json_put_optional(json, fact->key, kube_fact_text(fact, of));
    }
}


/* Members of the object that is open, those of a group in one of their own. */
static void
status_facts(kube_json_writer_t *json, const kube_fact_t *facts, size_t n,
    const void *of)
{
    size_t       i;
    const char  *group;

    group = NULL;

    for (i = 0; i < n; i++) {

        if (facts[i].key == NULL) {
            continue;
        }

        if (group != NULL
            && (facts[i].group == NULL
                || strcmp(facts[i].group, group) != 0))
        {
            kube_json_close(json, '}');
            group = NULL;
        }

        if (facts[i].group != NULL && group == NULL) {
            group = facts[i].group;
            kube_json_open(json, group, '{');
        }

        status_fact(json, &facts[i], of);
    }

    if (group != NULL) {
        kube_json_close(json, '}');
    }
}


static void
status_scope(kube_json_writer_t *json, const kube_report_scope_t *scope)
{
    size_t              i, n;
    const kube_fact_t  *facts;

    facts = kube_facts_scope(&n);

    kube_json_open(json, NULL, '{');
    status_facts(json, facts, n, scope);
    kube_json_open(json, "refused", '[');

    for (i = 0; i < scope->refused_n; i++) {
        kube_json_open(json, NULL, '{');
        kube_json_put_str(json, "key", scope->refused[i].key);
        kube_json_put_str(json, "reason", scope->refused[i].reason);

        if (scope->refused[i].outdated_ms != KUBE_NEVER) {
            kube_json_put_bool(json, "outdated", true);
            kube_json_put_seconds(json, "age_seconds",
                                  scope->refused[i].outdated_ms);
        }

        kube_json_close(json, '}');
    }

    kube_json_close(json, ']');
    kube_json_close(json, '}');
}


static void
status_informer(kube_json_writer_t *json, const kube_report_t *report)
{
    size_t                  i, n;
    const kube_fact_t      *facts;
    const kube_degraded_t  *d;

    facts = kube_facts_informer(&n);

    kube_json_open(json, NULL, '{');
    status_facts(json, facts, n, report);
    kube_json_open(json, "degraded", '[');

    for (i = 0; i < report->degraded_n; i++) {
        d = &report->degraded[i];

        kube_json_open(json, NULL, '{');
        kube_json_put_str(json, "cause", kube_str(kube_cause_text(d->cause)));
        kube_json_put_bool(json, "following",
                           !kube_cause_info(d->cause)->not_following);
        kube_json_put_time(json, "since", d->since_ms);
        kube_json_put_str(json, "text", d->text);
        kube_json_close(json, '}');
    }

    kube_json_close(json, ']');
    kube_json_open(json, "resources", '[');

    for (i = 0; i < report->scopes_n; i++) {
        status_scope(json, &report->scopes[i]);
    }

    kube_json_close(json, ']');
    kube_json_close(json, '}');
}


/*
 * Resolves a key as a worker does for requests: piece by piece, and "too large"
 * where it is that for them.  Memory is that of scratch's allocator, whatever
 * scratch itself may hold.  Results as kube_resolve(); the caller calls
 * kube_resolving_done() whatever they are.
 */
static kube_rc_t
status_resolve(const kube_resolver_t *resolver, const kube_key_t *key,
    const kube_arena_t *scratch, kube_resolving_t *resolving)
{
    size_t     max;
    kube_rc_t  rc;

    max = STATUS_RESOLVING_MIN + 4 * (size_t) resolver->zone->geometry.size;
    kube_resolving_init(resolving, resolver, key, scratch->alloc, max);

    do {
        rc = kube_resolving_step(resolving);
    } while (rc == KUBE_AGAIN);

    return rc;
}


/* What a key resolves to, or why not; error is the key's own. */
static kube_rc_t
status_resolution(kube_json_writer_t *json, const kube_resolver_t *resolver,
    const kube_key_t *key, kube_str_t text, kube_resolve_error_t error,
    kube_arena_t *scratch)
{
    size_t              len;
    kube_rc_t           rc;
    kube_str_t          state;
    kube_resolving_t    resolving;
    kube_resolution_t  *r;
    char                service[KUBE_KEY_TEXT_MAX];
    char                why[KUBE_RESOLVER_WHY_MAX];

    memset(&resolving, 0, sizeof(kube_resolving_t));
    r = &resolving.resolution;
    r->error = error;
    rc = KUBE_OK;
    len = 0;

    kube_arena_reset(scratch);

    if (error == KUBE_RESOLVE_OK) {
        rc = status_resolve(resolver, key, scratch, &resolving);
        len = kube_resolution_text(key, r, service);
    }

    if (rc == KUBE_NOMEM) {
        kube_resolving_done(&resolving);
        return rc;
    }

    state = (r->selection.n == 0)
            ? KUBE_STR_NULL
            : kube_endpoint_state_text(r->selection.endpoints[0].state);

    kube_json_put_optional(json, "service", (kube_str_t) { service, len });
    kube_json_put_num(json, "endpoints", r->selection.n);
    kube_json_put_optional(json, "state", state);
    kube_json_put_num(json, "generation", r->snapshot.revision);
    kube_json_put_optional(json, "error", kube_resolve_error_text(r->error));

    why[0] = '\0';

    if (r->error != KUBE_RESOLVE_OK) {
        kube_arena_reset(scratch);
        (void) kube_resolver_why(resolver, text, r->error, scratch, why);
    }

    kube_json_put_optional(json, "why", kube_str(why));
    kube_resolving_done(&resolving);

    return KUBE_OK;
}


static kube_rc_t
status_use(kube_json_writer_t *json, const kube_status_use_t *use,
    kube_arena_t *scratch)
{
    size_t                i;
    kube_rc_t             rc;
    kube_key_t            key;
    kube_str_t            text;
    kube_resolve_error_t  error;
    char                  canonical[KUBE_KEY_TEXT_MAX];

    rc = KUBE_OK;

    kube_json_open(json, NULL, '{');
    kube_json_put_str(json, "directive", use->directive);
    kube_json_put_str(json, "name", use->name);
    kube_json_put_str(json, "informer", use->informer);
    kube_json_put_str(json, "file", use->file);
    kube_json_put_num(json, "line", use->line);
    kube_json_put_str(json, "key", use->key);
    kube_json_put_bool(json, "static", use->static_key != NULL);

    if (use->static_key != NULL) {
        text.data = canonical;
        text.len = kube_key_text(use->static_key, canonical);

        rc = status_resolution(json, use->resolver, use->static_key, text,
                               KUBE_RESOLVE_OK, scratch);

    } else {
        kube_json_open(json, "keys", '[');

        for (i = 0; i < use->keys_n && rc == KUBE_OK; i++) {
            error = kube_resolver_key(use->resolver, use->keys[i], &key);

            kube_json_open(json, NULL, '{');
            kube_json_put_str(json, "key", use->keys[i]);
            rc = status_resolution(json, use->resolver, &key, use->keys[i],
                                   error, scratch);
            kube_json_close(json, '}');
        }

        kube_json_close(json, ']');
    }

    kube_json_close(json, '}');

    return rc;
}


kube_rc_t
kube_status_json_print(kube_text_t *text, const kube_status_json_t *status,
    kube_arena_t *scratch)
{
    size_t              i;
    kube_rc_t           rc;
    kube_json_writer_t  json;

    rc = KUBE_OK;
    kube_json_writer_init(&json, text);

    kube_json_open(&json, NULL, '{');
    kube_json_put_str(&json, "version", KUBE_STR(KUBE_VERSION));
    kube_json_put_str(&json, "nginx", status->nginx);
    kube_json_put_num(&json, "worker", status->worker);
    kube_json_put_time(&json, "time", status->now_unix_ms);
    kube_json_open(&json, "informers", '[');

    for (i = 0; i < status->reports_n; i++) {
        status_informer(&json, &status->reports[i]);
    }

    kube_json_close(&json, ']');
    kube_json_open(&json, "upstreams", '[');

    for (i = 0; i < status->uses_n && rc == KUBE_OK; i++) {
        rc = status_use(&json, &status->uses[i], scratch);
    }

    kube_json_close(&json, ']');
    kube_json_close(&json, '}');
    kube_text_put(text, KUBE_STR("\n"));

    return rc;
}
