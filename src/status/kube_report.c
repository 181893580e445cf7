/*
 * kube_report - what the zone of one informer says, read at one moment: the
 * figures behind the status, the metrics and the page.
 *
 * It prints nothing and knows no format.  Called by workers; takes no lock, and
 * the writer goes on meanwhile.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kube_hash.h"
#include "kube_report.h"
#include "kube_zone_damping.h"
#include "kube_zone_reader.h"


#define REPORT_TEXT_MAX        (KUBE_MESSAGE_LEN_MAX + 128)

/* As client-go's informer_store_resource_version. */
#define REPORT_VERSION_DIGITS  15

static_assert(KUBE_WORKER_REBUILDS < KUBE_WORKER_COUNTERS,
              "the zone has too few counters for workers");


static kube_rc_t
report_copy(kube_arena_t *arena, kube_str_t from, kube_str_t *to)
{
    kube_alloc_t  alloc;

    alloc = kube_arena_allocator(arena);

    return kube_str_dup(&alloc, from, to);
}


/* The unix time of a moment of the zone's clock; 0: none. */
static int64_t
report_unix_ms(const kube_report_t *report, uint64_t ms)
{
    return (ms == 0) ? 0
                     : report->now_unix_ms - (int64_t) (report->now_ms - ms);
}


/* The unix time since when there is a cause; 0: there is not. */
static int64_t
report_since(const kube_report_t *report, kube_cause_t cause)
{
    return report_unix_ms(report, kube_zone_cause_since(report->zone, cause));
}


/* The last digits of a version, as many as a double holds. */
static uint64_t
report_version(kube_str_t rv)
{
    size_t    i;
    uint64_t  version;

    version = 0;
    i = (rv.len > REPORT_VERSION_DIGITS) ? rv.len - REPORT_VERSION_DIGITS : 0;

    for ( /* void */ ; i < rv.len; i++) {

        if (rv.data[i] < '0' || rv.data[i] > '9') {
            return 0;
        }

        version = version * 10 + (uint64_t) (rv.data[i] - '0');
    }

    return version;
}


static kube_rc_t
report_scope(kube_report_t *report, unsigned slot, kube_arena_t *arena,
    kube_report_scope_t *scope)
{
    uint64_t   ms;
    unsigned   i;
    uint64_t  *c;
    char       digest[33];

    c = scope->counters;

    for (i = 0; i < KUBE_COUNTERS; i++) {
        c[i] = kube_zone_scope_counter(report->zone, slot,
                                       (kube_counter_t) i);
    }

    scope->resource = kube_str(kube_resource_text(scope->info.resource));
    scope->state = kube_str(kube_scope_state_text((kube_scope_state_t)
                                       c[KUBE_COUNTER_GAUGE_STATE]));
    scope->version = report_version(scope->info.rv);
    scope->queued = c[KUBE_COUNTER_GAUGE_QUEUED];
    scope->watching = (c[KUBE_COUNTER_GAUGE_WATCH_OPEN] != 0);
    scope->skipped = c[KUBE_COUNTER_SKIPPED_TOO_LARGE]
                     + c[KUBE_COUNTER_SKIPPED_MALFORMED]
                     + c[KUBE_COUNTER_SKIPPED_CRASHED]
                     + c[KUBE_COUNTER_SKIPPED_ENDPOINTS];

    ms = c[KUBE_COUNTER_GAUGE_LAST_EVENT_MS];
    scope->last_event_ms = (ms == 0) ? KUBE_NEVER
                           : (ms < report->now_ms) ? report->now_ms - ms : 0;

    ms = c[KUBE_COUNTER_GAUGE_RETRY_AT_MS];
    scope->retry_ms = (ms == 0 || (c[KUBE_COUNTER_GAUGE_STATE]
                                   != KUBE_STATE_BACKOFF
                                   && c[KUBE_COUNTER_GAUGE_STATE]
                                      != KUBE_STATE_DAMPED))
                      ? KUBE_NEVER
                      : (ms > report->now_ms) ? ms - report->now_ms : 0;

    kube_digest_hex(scope->info.digest, digest);

    return report_copy(arena, kube_str(digest), &scope->digest);
}


static kube_rc_t
report_scopes(kube_report_t *report, kube_arena_t *arena)
{
    unsigned              slot;
    kube_rc_t             rc;
    kube_report_scope_t  *scope;

    report->scopes = kube_arena_alloc(arena, KUBE_SCOPES_MAX
                                             * sizeof(kube_report_scope_t));
    if (report->scopes == NULL) {
        return KUBE_NOMEM;
    }

    for (slot = 0; slot < KUBE_SCOPES_MAX; slot++) {

        scope = &report->scopes[report->scopes_n];
        memset(scope, 0, sizeof(kube_report_scope_t));

        rc = kube_zone_scope_read(report->zone, slot, arena, &scope->info);

        if (rc == KUBE_OK) {
            rc = report_scope(report, slot, arena, scope);
            report->scopes_n++;
        }

        if (rc == KUBE_NOMEM) {
            return rc;
        }
    }

    return KUBE_OK;
}


/* The scope that an object would be in; NULL: it is not watched any more. */
static kube_report_scope_t *
report_scope_of(kube_report_t *report, const kube_record_id_t *id)
{
    size_t      i;
    kube_str_t  ns;

    for (i = 0; i < report->scopes_n; i++) {

        ns = report->scopes[i].info.ns;

        if (report->scopes[i].info.resource == id->resource
            && (ns.len == 0 || kube_str_eq(ns, id->meta.ns)))
        {
            return &report->scopes[i];
        }
    }

    return NULL;
}


/* How many of the first n rows are of the namespace. */
static size_t
report_rows_of(const kube_report_scope_t *scope, size_t n, uint64_t ns)
{
    size_t  i, found;

    found = 0;

    for (i = 0; i < n; i++) {
        found += (scope->refused[i].ns == ns);
    }

    return found;
}


/*
 * The row that gives way to one of a namespace that has fewer: the last one of
 * the namespace with the most.  KUBE_REFUSED_SHOWN_MAX: none does.
 */
static size_t
report_crowded(kube_report_scope_t *scope, uint64_t ns)
{
    size_t                        i, n, most, last;
    const kube_report_refused_t  *rows;

    rows = scope->refused;
    n = report_rows_of(scope, scope->refused_n, ns);

    /* refused_most is no less than what is counted here */
    if (n + 1 >= scope->refused_most) {
        return KUBE_REFUSED_SHOWN_MAX;
    }

    most = 0;
    last = 0;

    for (i = scope->refused_n; i != 0; i--) {
        n = report_rows_of(scope, i, rows[i - 1].ns);

        if (n > most) {
            most = n;
            last = i - 1;
        }
    }

    scope->refused_most = most;
    n = report_rows_of(scope, scope->refused_n, ns);

    return (n + 1 < most) ? last : KUBE_REFUSED_SHOWN_MAX;
}


/*
 * Where an object of the namespace is named; NULL: it is only counted, or,
 * where there are no rows at all, memory is missing.
 */
static kube_report_refused_t *
report_row(kube_report_scope_t *scope, uint64_t ns, kube_arena_t *arena)
{
    size_t                  i;
    kube_report_refused_t  *row;

    if (scope->refused == NULL) {
        scope->refused = kube_arena_alloc(arena, KUBE_REFUSED_SHOWN_MAX
                                          * sizeof(kube_report_refused_t));
        if (scope->refused == NULL) {
            return NULL;
        }

        scope->refused_most = KUBE_REFUSED_SHOWN_MAX;
    }

    i = (scope->refused_n < KUBE_REFUSED_SHOWN_MAX)
        ? scope->refused_n++ : report_crowded(scope, ns);

    if (i == KUBE_REFUSED_SHOWN_MAX) {
        return NULL;
    }

    row = &scope->refused[i];
    memset(row, 0, sizeof(kube_report_refused_t));
    row->ns = ns;

    return row;
}


/*
 * One namespace's rows after the other's in turn: who shows the first few only
 * shows each namespace, too.
 */
static kube_rc_t
report_turns(kube_report_scope_t *scope, kube_arena_t *arena)
{
    size_t                  i, n, turn;
    kube_report_refused_t  *rows;

    if (scope->refused_n == 0) {
        return KUBE_OK;
    }

    rows = kube_arena_alloc(arena, scope->refused_n
                                   * sizeof(kube_report_refused_t));
    if (rows == NULL) {
        return KUBE_NOMEM;
    }

    n = 0;

    for (turn = 0; n < scope->refused_n; turn++) {
        for (i = 0; i < scope->refused_n; i++) {
            if (report_rows_of(scope, i, scope->refused[i].ns) == turn) {
                rows[n++] = scope->refused[i];
            }
        }
    }

    scope->refused = rows;

    return KUBE_OK;
}


static kube_rc_t
report_refuse(kube_report_t *report, const kube_record_t *record,
    const kube_record_id_t *id, kube_arena_t *arena)
{
    int                     len;
    uint64_t                ns, since_ms;
    kube_rc_t               rc;
    kube_str_t              key, reason;
    kube_report_scope_t    *scope;
    kube_report_refused_t  *refused;
    char                    text[KUBE_KEY_LEN_MAX + 1];

    reason = id->reason;
    since_ms = KUBE_NEVER;

    if (record->flags & KUBE_RECORD_F_OUTDATED) {
        reason = kube_reason_text(kube_record_outdated_reason(record));
        since_ms = kube_record_outdated_since(record);
    }

    if (kube_reason_of(reason) == KUBE_REASON_ZONE_FULL) {
        report->causes[KUBE_CAUSE_ZONE_FULL] = true;
    }

    scope = report_scope_of(report, id);

    if (scope == NULL) {
        return KUBE_OK;
    }

    scope->refused_total++;
    ns = kube_hash64(report->zone->geometry.seed, id->meta.ns.data,
                     id->meta.ns.len);
    refused = report_row(scope, ns, arena);

    if (refused == NULL) {
        return (scope->refused != NULL) ? KUBE_OK : KUBE_NOMEM;
    }

    len = snprintf(text, sizeof(text), "%.*s/%.*s", (int) id->meta.ns.len,
                   id->meta.ns.data, (int) id->meta.name.len,
                   id->meta.name.data);

    key.data = text;
    key.len = ((size_t) len < sizeof(text)) ? (size_t) len
                                            : sizeof(text) - 1;

    refused->outdated_ms = KUBE_NEVER;

    if (since_ms != KUBE_NEVER) {
        refused->outdated_ms = (since_ms < report->now_ms)
                               ? report->now_ms - since_ms : 0;
    }

    rc = report_copy(arena, key, &refused->key);

    return (rc == KUBE_OK) ? report_copy(arena, reason, &refused->reason) : rc;
}


static kube_rc_t
report_refused(kube_report_t *report, kube_arena_t *arena,
    kube_arena_t *scratch)
{
    size_t                i;
    uint32_t              cursor;
    kube_rc_t             rc;
    kube_record_id_t      id;
    const kube_record_t  *record;

    if (report->usage.refused == 0) {
        return KUBE_OK;
    }

    cursor = 0;

    for ( ;; ) {

        kube_arena_reset(scratch);

        rc = kube_zone_next_refused(report->zone, &cursor, scratch, &record);

        if (rc != KUBE_OK) {
            break;
        }

        if (kube_record_id(record, record->size, &id) == KUBE_OK) {

            rc = report_refuse(report, record, &id, arena);

            if (rc != KUBE_OK) {
                return rc;
            }
        }
    }

    rc = (rc == KUBE_NOT_FOUND) ? KUBE_OK : rc;

    for (i = 0; i < report->scopes_n && rc == KUBE_OK; i++) {
        rc = report_turns(&report->scopes[i], arena);
    }

    return rc;
}


kube_rc_t
kube_report_degrade(kube_report_t *report, kube_arena_t *arena,
    kube_cause_t cause, int64_t since_ms, const char *fmt, ...)
{
    size_t            i;
    va_list           args;
    kube_degraded_t  *d;
    char              text[REPORT_TEXT_MAX];

    va_start(args, fmt);
    (void) vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    report->causes[cause] = true;

    for (i = 0; i < report->degraded_n; i++) {

        d = &report->degraded[i];

        if (d->cause == cause && kube_str_eq(d->text, kube_str(text))) {
            d->since_ms = (since_ms < d->since_ms) ? since_ms : d->since_ms;
            return KUBE_OK;
        }
    }

    if (report->degraded_n == KUBE_REPORT_DEGRADED_MAX) {
        return KUBE_OK;
    }

    d = &report->degraded[report->degraded_n++];

    d->cause = cause;
    d->since_ms = since_ms;

    return report_copy(arena, kube_str(text), &d->text);
}


/* Passes over the digits at *i: whether there were any. */
static bool
report_digits(kube_str_t s, size_t *i)
{
    size_t  first;

    first = *i;

    while (*i < s.len && s.data[*i] >= '0' && s.data[*i] <= '9') {
        (*i)++;
    }

    return *i != first;
}


/* Whether two texts differ in numbers alone. */
static bool
report_same_but_numbers(kube_str_t a, kube_str_t b)
{
    size_t  i, j;

    i = 0;
    j = 0;

    while (i < a.len && j < b.len) {

        if (report_digits(a, &i) != report_digits(b, &j)) {
            return false;
        }

        if (i == a.len || j == b.len) {
            break;
        }

        if (a.data[i++] != b.data[j++]) {
            return false;
        }
    }

    return i == a.len && j == b.len;
}


/*
 * What concerns the server, of one scope.  Texts of libcurl tell how long it
 * took, to the millisecond: scopes that failed alike are one line all the same.
 */
static kube_rc_t
report_degraded_server(kube_report_t *report, kube_cause_t cause,
    int64_t since_ms, kube_str_t text, kube_arena_t *arena)
{
    size_t            i;
    kube_degraded_t  *d;

    for (i = 0; i < report->degraded_n; i++) {

        d = &report->degraded[i];

        if (d->cause == cause && report_same_but_numbers(d->text, text)) {
            text = d->text;
            break;
        }
    }

    return kube_report_degrade(report, arena, cause, since_ms, "%.*s",
                               (int) text.len, text.data);
}


/* What a scope suffers from is the informer's judgement: kube_trouble. */
static kube_rc_t
report_degraded_scope(kube_report_t *report,
    const kube_report_scope_t *scope, kube_arena_t *arena)
{
    uint64_t      since_ms, cause;
    kube_str_t    ns, message;

    ns = scope->info.ns;
    message = scope->info.error_message;
    cause = scope->counters[KUBE_COUNTER_GAUGE_CAUSE];
    since_ms = scope->counters[KUBE_COUNTER_GAUGE_SINCE_MS];

    /* a moment of this zone's clock, and a row of our table */

    if (cause == 0 || cause > KUBE_CAUSES || since_ms > report->now_ms) {
        return KUBE_OK;
    }

    cause--;

    if (report->now_ms - since_ms
        < kube_cause_info((kube_cause_t) cause)->grace_ms)
    {
        return KUBE_OK;
    }

    if (cause == KUBE_CAUSE_FORBIDDEN) {
        return kube_report_degrade(report, arena, KUBE_CAUSE_FORBIDDEN,
                                   report_unix_ms(report, since_ms),
                                   "%s in %s%.*s", scope->resource.data,
                                   ns.len ? "" : "all namespaces",
                                   (int) ns.len, ns.data);
    }

    if (message.len == 0) {
        message = scope->info.error_reason;
    }

    return report_degraded_server(report, (kube_cause_t) cause,
                                  report_unix_ms(report, since_ms), message,
                                  arena);
}


/* What concerns the informer as a whole, by the zone's words. */
static kube_rc_t
report_degraded_zone(kube_report_t *report, kube_arena_t *arena)
{
    int64_t    since_ms;
    kube_rc_t  rc;

    rc = KUBE_OK;
    since_ms = report_since(report, KUBE_CAUSE_ZONE_FULL);

    if (since_ms != 0 || report->causes[KUBE_CAUSE_ZONE_FULL]) {
        rc = kube_report_degrade(report, arena, KUBE_CAUSE_ZONE_FULL, since_ms,
                                 "the zone \"%.*s\" is full: objects are "
                                 "refused", (int) report->zone_name.len,
                                 report->zone_name.data);
    }

    since_ms = report_since(report, KUBE_CAUSE_CREDENTIALS);

    if (rc == KUBE_OK && since_ms != 0) {
        rc = kube_report_degrade(report, arena, KUBE_CAUSE_CREDENTIALS,
                                 since_ms, "the kubeconfig cannot be read: "
                                 "see the log");
    }

    return rc;
}


/* The Service may have gone since. */
static kube_rc_t
report_truncated(kube_report_t *report, uint32_t entry, uint64_t since_ms,
    kube_arena_t *arena)
{
    kube_rc_t             rc;
    kube_record_id_t      id;
    const kube_record_t  *record;

    if (since_ms > report->now_ms
        || kube_zone_head(report->zone, entry) == 0)
    {
        return KUBE_OK;
    }

    rc = kube_zone_load(report->zone, entry, arena, &record);

    if (rc == KUBE_OK) {
        rc = kube_record_id(record, record->size, &id);
    }

    if (rc != KUBE_OK) {
        return (rc == KUBE_NOMEM) ? KUBE_NOMEM : KUBE_OK;
    }

    return kube_report_degrade(report, arena, KUBE_CAUSE_TRUNCATED,
                               report_unix_ms(report, since_ms),
                               "Service %.*s/%.*s has more endpoints than are "
                               "used", (int) id.meta.ns.len, id.meta.ns.data,
                               (int) id.meta.name.len, id.meta.name.data);
}


/* What workers mark.  Each names so many Services and counts the others. */
static kube_rc_t
report_degraded_workers(kube_report_t *report, kube_arena_t *arena)
{
    size_t            i, more;
    unsigned          row;
    uint64_t          since_ms;
    kube_rc_t         rc;
    kube_truncated_t  truncated;

    rc = KUBE_OK;
    since_ms = kube_zone_worker_over_budget_since(report->zone,
                                                  report->now_ms);
    if (since_ms != 0) {
        rc = kube_report_degrade(report, arena, KUBE_CAUSE_INSTANCE_BUDGET,
                                 report_unix_ms(report, since_ms),
                                 "what a worker keeps of Services is more "
                                 "than \"kube_instances\" allows");
    }

    more = 0;

    for (row = 0; row < KUBE_WORKER_ROWS && rc == KUBE_OK; row++) {

        kube_zone_worker_truncated_read(report->zone, row, report->now_ms,
                                        &truncated);

        for (i = 0; i < truncated.n && i < KUBE_TRUNCATED_SHOWN_MAX
                    && rc == KUBE_OK; i++)
        {
            rc = report_truncated(report, truncated.rows[i].entry,
                                  truncated.rows[i].since_ms, arena);
        }

        if (truncated.n - i > more) {
            more = truncated.n - i;
        }
    }

    if (rc == KUBE_OK && more != 0) {
        rc = kube_report_degrade(report, arena, KUBE_CAUSE_TRUNCATED, 0,
                                 "%zu more Services have more endpoints than "
                                 "are used", more);
    }

    return rc;
}


static kube_rc_t
report_degraded(kube_report_t *report, kube_arena_t *arena)
{
    size_t     i;
    kube_rc_t  rc;

    rc = KUBE_OK;

    report->degraded = kube_arena_alloc(arena, KUBE_REPORT_DEGRADED_MAX
                                               * sizeof(kube_degraded_t));
    if (report->degraded == NULL) {
        return KUBE_NOMEM;
    }

    for (i = 0; i < report->scopes_n && rc == KUBE_OK; i++) {
        rc = report_degraded_scope(report, &report->scopes[i], arena);
    }

    if (rc == KUBE_OK && kube_zone_crash_loop(report->zone, report->now_ms)) {
        rc = kube_report_degrade(report, arena, KUBE_CAUSE_CRASH_LOOP,
                                 report_since(report, KUBE_CAUSE_CRASH_LOOP),
                                 "the informer process dies again and again; "
                                 "its start is delayed");
    }

    if (rc == KUBE_OK) {
        rc = report_degraded_zone(report, arena);
    }

    if (rc == KUBE_OK) {
        rc = report_degraded_workers(report, arena);
    }

    if (rc == KUBE_OK && report->writer.state_failed) {
        rc = kube_report_degrade(report, arena, KUBE_CAUSE_STATE_FILE,
                                 report_since(report, KUBE_CAUSE_STATE_FILE),
                                 "the state file could not be written");
    }

    return rc;
}


kube_rc_t
kube_report_read(kube_report_t *report, const kube_zone_t *zone,
    kube_arena_t *arena, kube_arena_t *scratch)
{
    unsigned            i;
    uint64_t            ms;
    kube_rc_t           rc;
    kube_zone_usage_t  *usage;

    usage = &report->usage;

    report->zone = zone;
    report->scopes_n = 0;
    report->degraded_n = 0;
    report->state_error = KUBE_STR_NULL;
    memset(report->causes, 0, sizeof(report->causes));

    kube_zone_health(zone, report->now_ms, report->idle_timeout_ms,
                     &report->health);
    kube_zone_writer_info(zone, &report->writer);
    kube_zone_usage(zone, usage);

    report->server = kube_zone_server(zone, arena);
    report->used_bytes = usage->table_bytes + usage->live_bytes;
    report->free_bytes = (usage->records_bytes > usage->live_bytes)
                         ? usage->records_bytes - usage->live_bytes : 0;

    ms = report->writer.queue_since_ms;
    report->queue_age_ms = (ms != 0 && ms < report->now_ms)
                           ? report->now_ms - ms : 0;

    if (report->writer.state_failed) {
        report->state_error = KUBE_STR("it could not be written: the log "
                                       "says why, at level \"warn\" or "
                                       "\"notice\"");
    }

    for (i = 0; i < KUBE_RESOLVE_ERRORS; i++) {
        report->resolved[i] = kube_zone_worker_sum(zone,
                                                   KUBE_WORKER_RESOLVED(i));
    }

    report->rebuilds = kube_zone_worker_sum(zone, KUBE_WORKER_REBUILDS);

    rc = report_scopes(report, arena);

    if (rc == KUBE_OK) {
        rc = report_refused(report, arena, scratch);
    }

    return (rc == KUBE_OK) ? report_degraded(report, arena) : rc;
}
