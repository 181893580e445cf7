/*
 * kube_zone_cause - why an informer is degraded: the one table of causes, and
 * the words of the zone that tell since when each lasts.
 *
 * A cause that concerns one scope stands in that scope's gauges
 * (kube_zone_counters.h: CAUSE and SINCE_MS); what concerns the whole informer
 * stands here.  It judges nothing: kube_trouble (informer process) and
 * kube_report (workers) do.  Any process may read.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_CAUSE_H
#define KUBE_ZONE_CAUSE_H


#include "kube_zone.h"


/*
 * A watch that ends is opened again within this time, and a rotated token is
 * read again within the other: neither is trouble yet.
 */
#define KUBE_UNREACHABLE_MS    5000
#define KUBE_CAUSE_GRACE_MS    1000

/*
 * Columns: the enumerator behind KUBE_CAUSE_; the word of the API, the metrics
 * and the log; whether the informer does not follow the API server while it
 * lasts; for how many ms it must last before it is said; what helps.
 *
 *   UNREACHABLE      requests fail, get no answer, or an error for one
 *   CREDENTIALS      what the informer shall identify itself with cannot be
 *                    read
 *   ZONE_FULL        objects are refused for want of room
 *   CRASH_LOOP       the informer process died four times in a minute
 *   TRUNCATED        a Service has more endpoints than are used
 *   INSTANCE_BUDGET  a worker has no room for another instance
 *   MISSING_SERVICE  a key of the configuration has no Service
 *   STATE_FILE       the state file could not be written
 */
#define KUBE_CAUSE_MAP(XX)                                                    \
    XX(UNREACHABLE, "unreachable", true, KUBE_UNREACHABLE_MS,                 \
       "see that the API server runs and can be reached from here")           \
    XX(UNAUTHORIZED, "unauthorized", true, KUBE_CAUSE_GRACE_MS,               \
       "renew the token or the client certificate, or name one")              \
    XX(FORBIDDEN, "forbidden", true, KUBE_CAUSE_GRACE_MS,                     \
       "grant list and watch of it to this user, or name another namespace")  \
    XX(TLS, "tls", true, KUBE_CAUSE_GRACE_MS,                                 \
       "compare the CA, the server's name and its port with its "             \
       "certificate, and ours with its key")                                  \
    XX(CREDENTIALS, "credentials", true, KUBE_CAUSE_GRACE_MS,                 \
       "see that the file is there, and that nginx's \"user\" may read it")    \
    XX(CRASH_LOOP, "crash_loop", true, 0,                                     \
       "report the lines before each \"exited on signal\"")                   \
    XX(ZONE_FULL, "zone_full", false, 0,                                      \
       "enlarge the zone, or watch fewer namespaces")                         \
    XX(TRUNCATED, "truncated", false, 0,                                      \
       "split the Service")                                                   \
    XX(INSTANCE_BUDGET, "instance_budget", false, 0,                          \
       "raise the size of \"kube_instances\"")                                \
    XX(MISSING_SERVICE, "missing_service", false, 0,                          \
       "create the Service, or correct the key")                              \
    XX(STATE_FILE, "state_file", false, 0,                                    \
       "make \"state_path\" writable for the \"user\" of nginx")

typedef enum {
#define XX(name, text, not_following, grace_ms, remedy)  KUBE_CAUSE_##name,
    KUBE_CAUSE_MAP(XX)
#undef XX
    KUBE_CAUSES                     /* also: none of them */
} kube_cause_t;

typedef struct {
    const char  *text;
    bool         not_following;
    uint64_t     grace_ms;
    const char  *remedy;
} kube_cause_info_t;

/* The row of a cause; cause is below KUBE_CAUSES. */
const kube_cause_info_t *kube_cause_info(kube_cause_t cause);
const char *kube_cause_text(kube_cause_t cause);

/*
 * Since when the informer as a whole suffers from a cause: the zone's clock in
 * ms; 0: it does not.  Only the informer process sets it.
 */
void kube_zone_cause_set(kube_zone_t *zone, kube_cause_t cause,
    uint64_t since_ms);
uint64_t kube_zone_cause_since(const kube_zone_t *zone, kube_cause_t cause);


/*
 * What was once answered "ready" stays so for the zone's life: it outlives
 * reloads and take-overs, and ends with the zone.  Bits: ready from synced
 * data; ready from a state file, where that is allowed.  Workers set them.  The
 * informer process sets the third: the first list of each of its scopes was
 * completed, or is forbidden; what a reload adds later is listed beside that.
 */
#define KUBE_READY_SYNCED  1u
#define KUBE_READY_STATE   2u
#define KUBE_READY_LISTED  4u

void kube_zone_ready_add(kube_zone_t *zone, unsigned bits);
unsigned kube_zone_ready(const kube_zone_t *zone);


#endif /* KUBE_ZONE_CAUSE_H */
