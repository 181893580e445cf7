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
#include "kube_zone_reader.h"


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


/* What was found; where it changes faster than it can be read entry is 0. */
static void
status_keep(const kube_key_t *key, const kube_resolution_t *r, kube_rc_t rc,
    kube_status_kept_t *kept)
{
    kept->entry = (rc == KUBE_OK) ? r->entry : 0;
    kept->head = r->head;
    kept->revision = r->snapshot.revision;
    kept->n = r->selection.n;
    kept->error = r->error;
    kept->len = kube_resolution_text(key, r, kept->service);
    kept->state = (r->selection.n != 0)
                  ? kube_endpoint_state_text(r->selection.endpoints[0].state)
                  : KUBE_STR_NULL;
}


/* What a key resolves to, into *kept, of which entry is set. */
static kube_rc_t
status_look(const kube_status_json_t *status, const kube_resolver_t *resolver,
    const kube_key_t *key, const kube_arena_t *scratch,
    kube_status_kept_t *kept)
{
    bool              few;
    uint64_t          begun;
    kube_rc_t         rc;
    kube_resolving_t  resolving;

    begun = status->worked_us();
    rc = status_resolve(resolver, key, scratch, &resolving);

    if (rc != KUBE_NOMEM && (rc == KUBE_OK || kept->entry == 0)) {
        status_keep(key, &resolving.resolution, rc, kept);
    }

    few = kube_resolving_is_few(&resolving);
    kube_resolving_done(&resolving);

    kept->next_ms = status->now_ms
                    + kube_resolving_pause(status->worked_us() - begun, few);

    return (rc == KUBE_NOMEM) ? KUBE_NOMEM : KUBE_OK;
}


/*
 * A Service may have a million endpoints, many directives may name it, and
 * nobody else has a turn while it is read.
 */
static bool
status_stays(const kube_status_json_t *status, const kube_resolver_t *resolver,
    const kube_status_kept_t *kept)
{
    uint64_t  head;

    if (kept->entry == 0) {
        return false;
    }

    head = kube_zone_head(resolver->zone, kept->entry);

    return head == kept->head || (head != 0 && status->now_ms < kept->next_ms);
}


/* Prints it, or why there is nothing. */
static void
status_kept(kube_json_writer_t *json, const kube_resolver_t *resolver,
    const kube_status_kept_t *kept, kube_str_t text, kube_arena_t *scratch)
{
    char  why[KUBE_RESOLVER_WHY_MAX];

    kube_json_put_optional(json, "service",
                           (kube_str_t) { kept->service, kept->len });
    kube_json_put_num(json, "endpoints", kept->n);
    kube_json_put_optional(json, "state", kept->state);
    kube_json_put_num(json, "generation", kept->revision);
    kube_json_put_optional(json, "error",
                           kube_resolve_error_text(kept->error));

    why[0] = '\0';

    if (kept->error != KUBE_RESOLVE_OK) {
        kube_arena_reset(scratch);
        (void) kube_resolver_why(resolver, text, kept->error, scratch, why);
    }

    kube_json_put_optional(json, "why", kube_str(why));
}


/* One of the keys that an expression has been lately. */
static kube_rc_t
status_key(kube_json_writer_t *json, const kube_status_json_t *status,
    const kube_resolver_t *resolver, kube_str_t text, kube_arena_t *scratch)
{
    kube_rc_t             rc;
    kube_key_t            key;
    kube_status_kept_t    kept;

    rc = KUBE_OK;
    memset(&kept, 0, sizeof(kube_status_kept_t));

    kept.error = kube_resolver_key(resolver, text, &key);

    if (kept.error == KUBE_RESOLVE_OK) {
        rc = status_look(status, resolver, &key, scratch, &kept);
    }

    if (rc == KUBE_OK) {
        status_kept(json, resolver, &kept, text, scratch);
    }

    return rc;
}


static kube_rc_t
status_static(kube_json_writer_t *json, const kube_status_json_t *status,
    const kube_status_use_t *use, kube_arena_t *scratch)
{
    kube_rc_t            rc;
    kube_str_t           text;
    kube_status_kept_t   own, *kept;
    char                 canonical[KUBE_KEY_TEXT_MAX];

    own.entry = 0;
    kept = (use->kept != NULL) ? use->kept : &own;

    if (!status_stays(status, use->resolver, kept)) {
        rc = status_look(status, use->resolver, use->static_key, scratch,
                         kept);
        if (rc != KUBE_OK) {
            return rc;
        }
    }

    text.data = canonical;
    text.len = kube_key_text(use->static_key, canonical);

    status_kept(json, use->resolver, kept, text, scratch);

    return KUBE_OK;
}


static kube_rc_t
status_use(kube_json_writer_t *json, const kube_status_json_t *status,
    const kube_status_use_t *use, kube_arena_t *scratch)
{
    size_t     i;
    kube_rc_t  rc;

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
        rc = status_static(json, status, use, scratch);

    } else {
        kube_json_open(json, "keys", '[');

        for (i = 0; i < use->keys_n && rc == KUBE_OK; i++) {
            kube_json_open(json, NULL, '{');
            kube_json_put_str(json, "key", use->keys[i]);
            rc = status_key(json, status, use->resolver, use->keys[i],
                            scratch);
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
        rc = status_use(&json, status, &status->uses[i], scratch);
    }

    kube_json_close(&json, ']');
    kube_json_close(&json, '}');
    kube_text_put(text, KUBE_STR("\n"));

    return rc;
}
