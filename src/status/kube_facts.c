/*
 * kube_facts - the one table of what the status API and the metrics tell of
 * an informer and of its scopes.
 *
 * The names are a contract with users: rows are added, not renamed.
 *
 * Constant data: kube_status_json, kube_prometheus and kube_status_html walk
 * it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <assert.h>
#include <string.h>

#include "kube_facts.h"
#include "kube_report.h"


#define GAUGE    KUBE_FACT_GAUGE, NULL, NULL
#define COUNTER  KUBE_FACT_COUNTER, NULL, NULL
#define NO_HELP  GAUGE, NULL

#define IN_REPORT(field)  offsetof(kube_report_t, field)
#define IN_SCOPE(field)   offsetof(kube_report_scope_t, field)

#define SCOPE_COUNTER(name)  IN_SCOPE(counters[KUBE_COUNTER_##name])


static const kube_fact_t  facts_informer[] = {

    { NULL, "name", NULL, NO_HELP,
      KUBE_FACT_TEXT, IN_REPORT(name) },
    { NULL, "synced", "synced", GAUGE,
      "Whether every watched scope has completed a list.",
      KUBE_FACT_BOOL, IN_REPORT(health.synced) },
    { NULL, "ready", "ready", GAUGE,
      "Whether what the configuration needs has once synced.",
      KUBE_FACT_BOOL, IN_REPORT(ready) },
    { NULL, "reason", NULL, NO_HELP,
      KUBE_FACT_OPTIONAL, IN_REPORT(reason) },
    { NULL, "epoch", "epoch", GAUGE,
      "Take-overs and rollbacks since the zone was made.",
      KUBE_FACT_NUMBER, IN_REPORT(writer.epoch) },
    { NULL, "server", NULL, NO_HELP,
      KUBE_FACT_TEXT, IN_REPORT(server) },
    { NULL, "age_seconds", "cache_age_seconds", GAUGE,
      "Time since the cache was last known to be current.",
      KUBE_FACT_AGE, IN_REPORT(health.age_ms) },
    { NULL, "stale", "stale", GAUGE,
      "Whether evidence is overdue that the cache is current.",
      KUBE_FACT_BOOL, IN_REPORT(health.stale) },
    { NULL, "queue_depth", "queue_depth", GAUGE,
      "Objects that wait to be published.",
      KUBE_FACT_NUMBER, IN_REPORT(writer.queue_depth) },
    { NULL, NULL, "workqueue_depth", GAUGE,
      "Services that wait to be published.",
      KUBE_FACT_NUMBER, IN_REPORT(writer.services_waiting) },
    { NULL, NULL, "workqueue_adds_total", COUNTER,
      "Services that began to wait to be published.",
      KUBE_FACT_NUMBER, IN_REPORT(writer.services_added) },
    { NULL, NULL, "queue_age_seconds", GAUGE,
      "Time since what waits first in the FIFO was read.",
      KUBE_FACT_AGE, IN_REPORT(queue_age_ms) },

    { "writer", "pid", NULL, NO_HELP,
      KUBE_FACT_ID, IN_REPORT(writer.writer_pid) },
    { "writer", "since", NULL, NO_HELP,
      KUBE_FACT_TIME, IN_REPORT(writer.writer_since_ms) },
    { "writer", "takeovers", "takeovers_total", COUNTER,
      "Informer processes that took the zone over.",
      KUBE_FACT_NUMBER, IN_REPORT(writer.takeovers) },
    { "writer", "crashes", "crashes_total", COUNTER,
      "Take-overs from an informer process that died.",
      KUBE_FACT_NUMBER, IN_REPORT(writer.crashes) },
    { "writer", "disturbances", "disturbances_total", COUNTER,
      "Take-overs since another process had changed the zone.",
      KUBE_FACT_NUMBER, IN_REPORT(writer.disturbances) },

    { "zone", "name", NULL, NO_HELP,
      KUBE_FACT_TEXT, IN_REPORT(zone_name) },
    { "zone", "size", NULL, NO_HELP,
      KUBE_FACT_NUMBER, IN_REPORT(zone_size) },
    { "zone", "used", NULL, NO_HELP,
      KUBE_FACT_NUMBER, IN_REPORT(used_bytes) },
    { "zone", "failures", "zone_failures_total", COUNTER,
      "Objects that found no room in the zone.",
      KUBE_FACT_NUMBER, IN_REPORT(usage.failures) },
    { NULL, NULL, "zone_bytes", KUBE_FACT_GAUGE, "state", "tables",
      "Shared memory: tables, records in use, room for records.",
      KUBE_FACT_NUMBER, IN_REPORT(usage.table_bytes) },
    { NULL, NULL, "zone_bytes", KUBE_FACT_GAUGE, "state", "live", NULL,
      KUBE_FACT_NUMBER, IN_REPORT(usage.live_bytes) },
    { NULL, NULL, "zone_bytes", KUBE_FACT_GAUGE, "state", "free", NULL,
      KUBE_FACT_NUMBER, IN_REPORT(free_bytes) },
    { NULL, NULL, "refused_objects", GAUGE,
      "Objects named as refused now, and those served outdated.",
      KUBE_FACT_NUMBER, IN_REPORT(usage.refused) },

    { "state_file", "written", NULL, NO_HELP,
      KUBE_FACT_TIME, IN_REPORT(writer.state_written_ms) },
    { "state_file", "in_use", "state_file_in_use", GAUGE,
      "Whether endpoints come from the state file.",
      KUBE_FACT_BOOL, IN_REPORT(health.state_in_use) },
    { "state_file", "error", NULL, NO_HELP,
      KUBE_FACT_OPTIONAL, IN_REPORT(state_error) },

#define XX(name, text, not_following, grace_ms, remedy)                       \
    { NULL, NULL, "degraded", KUBE_FACT_GAUGE, "cause", text,                 \
      KUBE_CAUSE_##name ? NULL : "Whether the informer is degraded by that "  \
      "cause.", KUBE_FACT_BOOL,                                               \
      IN_REPORT(causes[KUBE_CAUSE_##name]) },
    KUBE_CAUSE_MAP(XX)
#undef XX

#define XX(name, text)                                                        \
    { NULL, NULL, "resolve_total", KUBE_FACT_COUNTER, "result",               \
      KUBE_RESOLVE_##name ? text : "ok",                                      \
      KUBE_RESOLVE_##name ? NULL : "Resolutions for requests, by result: ok, "\
      "or the value of $kube_error.", KUBE_FACT_NUMBER,                       \
      IN_REPORT(resolved[KUBE_RESOLVE_##name]) },
    KUBE_RESOLVE_MAP(XX)
#undef XX

    { NULL, NULL, "instance_rebuilds_total", COUNTER,
      "Upstream instances that workers built anew.",
      KUBE_FACT_NUMBER, IN_REPORT(rebuilds) }
};


static const kube_fact_t  facts_scope[] = {

    { NULL, "resource", NULL, NO_HELP,
      KUBE_FACT_TEXT, IN_SCOPE(resource) },
    { NULL, "namespace", NULL, NO_HELP,
      KUBE_FACT_TEXT, IN_SCOPE(info.ns) },
    { NULL, "state", NULL, NO_HELP,
      KUBE_FACT_TEXT, IN_SCOPE(state) },
    { NULL, "resource_version", NULL, NO_HELP,
      KUBE_FACT_TEXT, IN_SCOPE(info.rv) },
    { NULL, NULL, "store_resource_version", GAUGE,
      "The resourceVersion published, its last 15 digits.",
      KUBE_FACT_NUMBER, IN_SCOPE(version) },
    { NULL, NULL, "queued_items", GAUGE,
      "Events and objects of lists in the FIFO.",
      KUBE_FACT_NUMBER, IN_SCOPE(queued) },
    { NULL, "objects", "objects", GAUGE,
      "Objects held and published.",
      KUBE_FACT_NUMBER, IN_SCOPE(info.count) },
    { NULL, NULL, "watching", GAUGE,
      "Whether a watch is open.",
      KUBE_FACT_BOOL, IN_SCOPE(watching) },
    { NULL, "digest", NULL, NO_HELP,
      KUBE_FACT_TEXT, IN_SCOPE(digest) },
    { NULL, "lists", NULL, NO_HELP,
      KUBE_FACT_NUMBER, SCOPE_COUNTER(LISTS) },
    { NULL, "watches", NULL, NO_HELP,
      KUBE_FACT_NUMBER, SCOPE_COUNTER(WATCHES) },
    { NULL, "relists", NULL, NO_HELP,
      KUBE_FACT_NUMBER, SCOPE_COUNTER(RELISTS) },

#define XX(name, family, text, counts)                                        \
    { "relist_reasons", text, NULL, NO_HELP,                                  \
      KUBE_FACT_NUMBER, SCOPE_COUNTER(name) },
    KUBE_COUNTER_RELIST_MAP(XX)
#undef XX

#define XX(name, family, text, counts)                                        \
    { "events", text, NULL, NO_HELP,                                          \
      KUBE_FACT_NUMBER, SCOPE_COUNTER(name) },
    KUBE_COUNTER_EVENT_MAP(XX)
#undef XX

    { NULL, "skipped", NULL, NO_HELP,
      KUBE_FACT_NUMBER, IN_SCOPE(skipped) },
    { NULL, "refused_total", NULL, NO_HELP,
      KUBE_FACT_NUMBER, IN_SCOPE(refused_total) },
    { NULL, "refused_unnamed", "refused_unnamed", GAUGE,
      "Objects refused without a name since the last list, at most.",
      KUBE_FACT_NUMBER, IN_SCOPE(info.refused_unnamed) },
    { NULL, "last_event_seconds", NULL, NO_HELP,
      KUBE_FACT_AGE, IN_SCOPE(last_event_ms) },
    { NULL, "retry_seconds", NULL, NO_HELP,
      KUBE_FACT_AGE, IN_SCOPE(retry_ms) },

    { "last_error", "reason", NULL, NO_HELP,
      KUBE_FACT_TEXT, IN_SCOPE(info.error_reason) },
    { "last_error", "message", NULL, NO_HELP,
      KUBE_FACT_TEXT, IN_SCOPE(info.error_message) },
    { "last_error", "at", NULL, NO_HELP,
      KUBE_FACT_TIME, IN_SCOPE(info.error_at_ms) },

    /* the zone's table of counters, one metric after the other */

#define ROW(name, value, metric, label, help)                                 \
    { NULL, NULL, metric, KUBE_FACT_COUNTER, label, value, help,              \
      KUBE_FACT_NUMBER, SCOPE_COUNTER(name) },
#define ROW_OF(name, value, ...)  ROW(name, value, __VA_ARGS__)
#define XX(name, family, value, counts)                                       \
    ROW_OF(name, value, family)
    KUBE_COUNTER_MAP(XX)
#undef XX
#undef ROW_OF
#undef ROW
};


const kube_fact_t *
kube_facts_informer(size_t *n)
{
    *n = sizeof(facts_informer) / sizeof(kube_fact_t);

    return facts_informer;
}


const kube_fact_t *
kube_facts_scope(size_t *n)
{
    *n = sizeof(facts_scope) / sizeof(kube_fact_t);

    return facts_scope;
}


static const void *
fact_at(const kube_fact_t *fact, const void *of)
{
    return (const char *) of + fact->offset;
}


bool
kube_fact_bool(const kube_fact_t *fact, const void *of)
{
    assert(fact->form == KUBE_FACT_BOOL);

    return *(const bool *) fact_at(fact, of);
}


uint64_t
kube_fact_number(const kube_fact_t *fact, const void *of)
{
    assert(fact->form == KUBE_FACT_NUMBER || fact->form == KUBE_FACT_ID
           || fact->form == KUBE_FACT_AGE);

    return *(const uint64_t *) fact_at(fact, of);
}


int64_t
kube_fact_time(const kube_fact_t *fact, const void *of)
{
    assert(fact->form == KUBE_FACT_TIME);

    return *(const int64_t *) fact_at(fact, of);
}


kube_str_t
kube_fact_text(const kube_fact_t *fact, const void *of)
{
    assert(fact->form == KUBE_FACT_TEXT || fact->form == KUBE_FACT_OPTIONAL);

    return *(const kube_str_t *) fact_at(fact, of);
}
