/*
 * kube_zone_scope - what the informer follows and where it stands: scopes,
 * the server, and the health that follows from them.
 *
 * A scope is one list+watch: a resource in one namespace, or in all.  Its
 * resourceVersion, count and digest are one record under one head and never
 * read torn.  Scopes are numbered 0 .. KUBE_SCOPES_MAX - 1, fewer in zones
 * below 1 MiB (one for each 8 KiB).  A scope's counters are
 * kube_zone_counters'.
 *
 * Functions that take the writer are for the process that holds the guard;
 * the others are for any process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_SCOPE_H
#define KUBE_ZONE_SCOPE_H


#include "kube_arena.h"
#include "kube_zone.h"


/* What a scope does now; the text is the status API's. */
#define KUBE_SCOPE_STATE_MAP(XX)                                              \
    XX(IDLE, "idle")                                                          \
    XX(LISTING, "listing")                                                    \
    XX(WATCHING, "watching")                                                  \
    XX(BACKOFF, "backoff")                                                    \
    XX(DAMPED, "damped")      /* the informer crashed too often */            \
    XX(STOPPED, "stopped")                                                    \
    XX(STREAMING, "streaming")    /* a list, as a WatchList */

typedef enum {
#define XX(name, text)  KUBE_STATE_##name,
    KUBE_SCOPE_STATE_MAP(XX)
#undef XX
    KUBE_STATES
} kube_scope_state_t;

/* The text; "unknown" for a foreign value. */
const char *kube_scope_state_text(kube_scope_state_t state);


/* What a scope is and where it stands; strings borrow from the arena. */
typedef struct {
    kube_resource_t  resource;
    kube_str_t       ns;              /* empty: all */
    uint64_t         scope_hash;      /* of resource, namespace, selectors,
                                         server */
    bool             synced;          /* has completed a list in this zone */
    kube_str_t       rv;              /* published resourceVersion; "": none */
    kube_str_t       floor;           /* readers may have seen the scope as of
                                         it: kube_zone_scope_floor() */
    uint64_t         count;
    kube_digest_t    digest;
    uint64_t         refused_unnamed; /* at most so many objects were refused
                                         without a name since the last list */
    bool             interrupted;     /* one of these was between two Services
                                         as an informer ended: a list is to
                                         tell, whatever room there is */
    bool             behind;          /* of publish, not read back: the zone
                                         holds what was stored since, which
                                         count and digest do not have */
    uint64_t         stores;          /* heads of entries that the zone had
                                         stored by then; 0: it was behind.
                                         Publish sets it */
    kube_str_t       error_reason;    /* last error; empty: none */
    kube_str_t       error_message;
    int64_t          error_at_ms;     /* unix ms; 0: none */
} kube_scope_info_t;

/*
 * KUBE_OK, KUBE_NOT_FOUND (no such scope), KUBE_CHANGED (it was replaced
 * again and again meanwhile), KUBE_NOMEM, KUBE_CORRUPT.
 */
kube_rc_t kube_zone_scope_read(const kube_zone_t *zone, unsigned scope,
    kube_arena_t *arena, kube_scope_info_t *info)  KUBE_MUST_CHECK;

/* What a SCOPE record takes at most, in bytes; a multiple of 8. */
#define KUBE_SCOPE_RECORD_MAX  256

/*
 * Decodes a SCOPE record of any size bytes; the strings of info point into it.
 * KUBE_OK or KUBE_CORRUPT.
 */
kube_rc_t kube_zone_scope_decode(const void *record, size_t size,
    kube_scope_info_t *info)  KUBE_MUST_CHECK;

/*
 * The same without an arena and errors: the record is read into buf of
 * KUBE_SCOPE_RECORD_MAX bytes, and the strings of info point into it.
 */
kube_rc_t kube_zone_scope_load(const kube_zone_t *zone, unsigned scope,
    uint64_t *buf, kube_scope_info_t *info)  KUBE_MUST_CHECK;

/*
 * One store makes all of info visible, but the error_* fields.  KUBE_OK,
 * KUBE_FULL (also: the zone has not so many scopes), KUBE_INVALID (ns or rv
 * is too long).
 */
kube_rc_t kube_zone_scope_publish(kube_zone_writer_t *writer, unsigned scope,
    const kube_scope_info_t *info)  KUBE_MUST_CHECK;

/*
 * Before an object ceases to be readable, which leaves no trace: notes a
 * version that is not older than its deletion, for a successor to take no list
 * that is.  One store; nothing else of the record changes.  KUBE_OK, KUBE_FULL,
 * KUBE_INVALID (rv is too long), or KUBE_NOT_FOUND: there is no such record.
 */
kube_rc_t kube_zone_scope_floor(kube_zone_writer_t *writer, unsigned scope,
    kube_str_t rv)  KUBE_MUST_CHECK;

/*
 * Counts an object that is refused without a name, before it ceases to be
 * readable: kube_zone_scope_read() adds it until info is published with it.
 */
void kube_zone_scope_unnamed(kube_zone_writer_t *writer, unsigned scope);

/*
 * The same of one that was between two Services: info.interrupted from now on,
 * until info is published without.
 */
void kube_zone_scope_interrupted(kube_zone_writer_t *writer, unsigned scope);

/* The scope of a resource in a namespace; KUBE_SCOPES_MAX: there is none. */
unsigned kube_zone_scope_of(const kube_zone_t *zone, kube_resource_t resource,
    kube_str_t ns);

/* Sets the last error, both texts cut to 255 bytes.  KUBE_OK or KUBE_FULL. */
kube_rc_t kube_zone_scope_error(kube_zone_writer_t *writer, unsigned scope,
    kube_str_t reason, kube_str_t message, int64_t at_ms)  KUBE_MUST_CHECK;

/* Clears all that a scope's number stands for: records and counters. */
void kube_zone_scope_clear(kube_zone_writer_t *writer, unsigned scope);


/* The server's address as shown, cut to 255 bytes; empty: not set. */
kube_rc_t kube_zone_server_set(kube_zone_writer_t *writer, kube_str_t server)
    KUBE_MUST_CHECK;
kube_str_t kube_zone_server(const kube_zone_t *zone, kube_arena_t *arena);


/*
 * The words of the interface, defined in one place.
 *   synced  every watched scope has completed a list since the zone was made
 *   age     time since evidence that the cache is current (bytes on a watch,
 *           or a watch re-opened), the oldest scope counting
 *   stale   of a scope that was current once above idle_timeout + 30 s, or
 *           never any evidence once synced
 * A scope that answers 403 and never had any evidence does not count for age.
 */
typedef struct {
    bool      synced;
    bool      stale;
    bool      state_in_use;
    uint64_t  age_ms;          /* KUBE_NEVER: never current */
    unsigned  scopes;
    unsigned  forbidden;       /* scopes answered 403 */
} kube_health_t;

void kube_zone_health(const kube_zone_t *zone, uint64_t now_ms,
    uint64_t idle_timeout_ms, kube_health_t *health);

/*
 * Of one scope: for how many ms there was no such evidence (KUBE_NEVER: there
 * never was), and whether it answers 403 now.
 */
uint64_t kube_zone_scope_age(const kube_zone_t *zone, unsigned scope,
    uint64_t now_ms);
bool kube_zone_scope_forbidden(const kube_zone_t *zone, unsigned scope);


#endif /* KUBE_ZONE_SCOPE_H */
