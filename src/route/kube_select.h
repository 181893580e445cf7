/*
 * kube_select - from a Service and its slices to the endpoints to use.
 *
 * Joins a Service's port with the slices' by name and protocol (as kube-proxy
 * does; never by number), applies the address policy, chooses ready
 * endpoints or, where there is none, serving and terminating ones.  It picks
 * none of them: balancers do.
 *
 * The same snapshot gives the same result in the same order in every
 * process.  No state; may be called from any process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_SELECT_H
#define KUBE_SELECT_H


#include "kube_key.h"
#include "kube_policy.h"
#include "kube_zone_reader.h"


/* Why nothing could be resolved: the values of $kube_error. */
#define KUBE_RESOLVE_MAP(XX)                                                  \
    XX(OK, "")                                                                \
    XX(NO_KEY, "no_key")                                                      \
    XX(BAD_KEY, "bad_key")                                                    \
    XX(NAMESPACE_DENIED, "namespace_denied")                                  \
    XX(NO_SERVICE, "no_service")                                              \
    XX(NO_PORT, "no_port")                                                    \
    XX(NO_ENDPOINTS, "no_endpoints")                                          \
    XX(ADDRESS_DENIED, "address_denied")                                      \
    XX(EXTERNAL_NAME, "external_name")                                        \
    XX(NOT_SYNCED, "not_synced")

typedef enum {
#define XX(name, text)  KUBE_RESOLVE_##name,
    KUBE_RESOLVE_MAP(XX)
#undef XX
    KUBE_RESOLVE_ERRORS
} kube_resolve_error_t;

/* The text as in the map; "" for OK and for a foreign value. */
kube_str_t kube_resolve_error_text(kube_resolve_error_t error);


typedef enum {
    KUBE_ENDPOINT_READY = 0,
    KUBE_ENDPOINT_TERMINATING     /* serving, though it goes */
} kube_endpoint_state_t;

/* "ready", "terminating": the values of $kube_endpoint_state. */
kube_str_t kube_endpoint_state_text(kube_endpoint_state_t state);


/* Zeroed: any family, TCP, terminating=fallback, the default policy. */
typedef struct {
    kube_family_t         family;              /* NONE: any */
    kube_protocol_t       protocol;
    bool                  terminating_never;
    const kube_policy_t  *policy;              /* NULL: the defaults */
} kube_select_options_t;

/* Strings borrow from the snapshot. */
typedef struct {
    kube_addr_t            addr;
    uint16_t               port;
    kube_endpoint_state_t  state;
    uint32_t               slice;     /* index into the snapshot's slices */
    kube_str_t             pod;
    kube_str_t             node;
    kube_str_t             zone;
} kube_choice_t;

typedef struct {
    kube_choice_t         *endpoints;    /* by family, address, port */
    size_t                 n;            /* each address:port once */
    kube_resolve_error_t   error;        /* why n is 0; else OK */
} kube_selection_t;

/*
 * port none: the Service must have exactly one.  error may be NO_PORT,
 * NO_ENDPOINTS, ADDRESS_DENIED, EXTERNAL_NAME.  All of one selection are in
 * the same state.  Memory is the arena's.  KUBE_OK (also where error tells
 * why nothing was chosen) or KUBE_NOMEM.
 */
kube_rc_t kube_select(kube_arena_t *arena, const kube_snapshot_t *snapshot,
    const kube_key_port_t *port, const kube_select_options_t *options,
    kube_selection_t *selection)  KUBE_MUST_CHECK;


/* One row per endpoint, in the order of slices and endpoints. */
typedef struct {
    uint32_t               slice;        /* index into snapshot->slices */
    uint32_t               endpoint;     /* index into its endpoints */
    uint16_t               port;         /* 0: none */
    kube_endpoint_state_t  state;        /* where used */
    const char            *excluded_because;    /* NULL: used; static text */
} kube_explained_t;

/*
 * The same decision for each endpoint, for the status page.  port NULL: for
 * each slice the first of the Service's ports it has.  excluded_because is
 * one of "not ready", "terminating", "no such port", "no port number",
 * "address denied", "duplicate", "wrong family", "external name".
 * KUBE_OK or KUBE_NOMEM.
 */
kube_rc_t kube_select_explain(kube_arena_t *arena,
    const kube_snapshot_t *snapshot, const kube_key_port_t *port,
    const kube_select_options_t *options, kube_explained_t **rows, size_t *n)
    KUBE_MUST_CHECK;


#endif /* KUBE_SELECT_H */
