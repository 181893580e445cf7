/*
 * kube_select - from a Service and its slices to the endpoints to use, and
 * for each endpoint why it is not used.
 *
 * It joins a Service's port with the slices' by name and protocol (as
 * kube-proxy does; never by number), applies the address policy, and chooses
 * ready endpoints or, where there is none, serving and terminating ones.  It
 * picks none of them: balancers do.  Only kube_resolver calls it, but for the
 * texts of errors.
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


/*
 * Why nothing could be resolved: the values of $kube_error.
 *
 *   NO_ENDPOINTS        no slice has an endpoint at the port
 *   NO_READY_ENDPOINT   there are some, but none is ready or may be used
 *                       while it terminates
 *   NO_FAMILY           there are some, but of another address family only
 *   ADDRESS_DENIED      some could be used if the policy let them
 *   NOT_SYNCED          what is missing may not have been listed yet
 *   FORBIDDEN           the API server refuses to list it
 */
#define KUBE_RESOLVE_MAP(XX)                                                  \
    XX(OK, "")                                                                \
    XX(NO_KEY, "no_key")                                                      \
    XX(BAD_KEY, "bad_key")                                                    \
    XX(NAMESPACE_DENIED, "namespace_denied")                                  \
    XX(NO_SERVICE, "no_service")                                              \
    XX(NO_PORT, "no_port")                                                    \
    XX(PORT_NEEDED, "port_needed")                                            \
    XX(NO_ENDPOINTS, "no_endpoints")                                          \
    XX(NO_READY_ENDPOINT, "no_ready_endpoint")                                \
    XX(NO_FAMILY, "no_family")                                                \
    XX(ADDRESS_DENIED, "address_denied")                                      \
    XX(EXTERNAL_NAME, "external_name")                                        \
    XX(TOO_LARGE, "too_large")                                                \
    XX(NOT_SYNCED, "not_synced")                                              \
    XX(FORBIDDEN, "forbidden")

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


/*
 * Which address families.  By default the Service's own, the first of its
 * ipFamilies, and where no endpoint of that may be used, the other one; any
 * where the Service has none.  A family that is named is exact.
 */
typedef enum {
    KUBE_SELECT_FAMILY_OWN = 0,
    KUBE_SELECT_FAMILY_ANY,
    KUBE_SELECT_FAMILY_IPV4 = KUBE_FAMILY_IPV4,
    KUBE_SELECT_FAMILY_IPV6 = KUBE_FAMILY_IPV6
} kube_select_family_t;

/* Zeroed: its own family, TCP, terminating=fallback, the default policy. */
typedef struct {
    kube_select_family_t  family;
    kube_protocol_t       protocol;
    bool                  terminating_never;
    const kube_policy_t  *policy;              /* NULL: the defaults */
    uint32_t              max;                 /* endpoints chosen at most;
                                                  0: KUBE_SERVICE_BUILT_MAX */
    const kube_seed_t    *seed;                /* secret, such as the zone's;
                                                  NULL: a known one */
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

/* One row for each endpoint, in the order of slices and endpoints. */
typedef struct {
    uint32_t               slice;        /* index into snapshot->slices */
    uint32_t               endpoint;     /* index into its endpoints */
    uint16_t               port;         /* 0: none */
    kube_endpoint_state_t  state;        /* where used */
    const char            *excluded_because;    /* NULL: used; static text */
    const char            *denied_because;      /* "address denied": by what
                                                   rule; else NULL */
} kube_explained_t;


typedef struct {
    const kube_port_t     *port;         /* the Service's; NULL: none */
    kube_choice_t         *endpoints;    /* by family, address, port */
    size_t                 n;            /* each address:port once */
    bool                   truncated;    /* there are more than options.max */
    kube_explained_t      *rows;
    size_t                 rows_n;
    kube_resolve_error_t   error;        /* why n is 0; else OK */
} kube_selection_t;


/* A row for every endpoint of a snapshot, also where error is NO_PORT. */
#define KUBE_SELECT_EXPLAIN   0x01

/* The Service's port alone; slices are not looked at. */
#define KUBE_SELECT_PORT      0x04

/* Of each slice the first of the Service's ports it has; port is not used. */
#define KUBE_SELECT_ANY_PORT  0x02

/* Strings of slices stay where they are, longer than the selector. */
#define KUBE_SELECT_BORROW    0x08

/*
 * Selects the endpoints behind one port of the Service.  A port that names
 * nothing stands for the only one the Service has.  flags: KUBE_SELECT_*.
 *
 * error may be NO_PORT, PORT_NEEDED, NO_ENDPOINTS, NO_READY_ENDPOINT,
 * NO_FAMILY, ADDRESS_DENIED or EXTERNAL_NAME.  All endpoints of one selection
 * are in the same state.  As with kube-proxy, which balances each family by
 * itself, an endpoint of the Service's own family that terminates is used
 * before a ready one of the other.
 *
 * Where a terminating endpoint has the address and port of one that does not
 * terminate, the latter decides, as with kube-proxy (addEndpoints() of
 * endpointslicecache.go): the pod network has given the address away.  Of two
 * that do not terminate a ready one does.  What was outranked by a
 * terminating endpoint stays so, even if that one is a duplicate of one that
 * is not ready.  Of more than options.max those are chosen
 * whose addresses and ports have the smallest hashes: the same ones in every
 * process of every gateway, and a change of others moves few.
 *
 * excluded_because is one of "not ready", "terminating", "no such port", "no
 * port number", "address denied", "duplicate", "wrong family", "external
 * name", "too many endpoints".
 *
 * The memory is the arena's.  KUBE_OK (also where error tells why nothing was
 * selected) or KUBE_NOMEM.
 */
kube_rc_t kube_select(kube_arena_t *arena, const kube_snapshot_t *snapshot,
    const kube_key_port_t *port, const kube_select_options_t *options,
    unsigned flags, kube_selection_t *selection)  KUBE_MUST_CHECK;


/*
 * The same piece by piece, for a Service of which only one slice at a time is
 * at hand.  What is needed of a slice is copied, but for KUBE_SELECT_BORROW; of
 * the Service and options nothing is.  The arena's allocator gives what is
 * larger than the result: done() gives it back, and the strings of a result
 * with it.  The arena lasts longer.
 */
typedef struct kube_selector_s  kube_selector_t;

kube_rc_t kube_selector_create(kube_arena_t *arena,
    const kube_service_t *service, const kube_key_port_t *port,
    const kube_select_options_t *options, unsigned flags,
    kube_selector_t **selector)  KUBE_MUST_CHECK;

/* What is wrong with the Service or its port; slices need not be added. */
kube_resolve_error_t kube_selector_error(const kube_selector_t *selector);

/* KUBE_OK or KUBE_NOMEM.  At most some 0.3 us an endpoint. */
kube_rc_t kube_selector_add(kube_selector_t *selector,
    const kube_slice_t *slice)  KUBE_MUST_CHECK;

/* After the last slice, until it no longer returns KUBE_AGAIN. */
kube_rc_t kube_selector_sort(kube_selector_t *selector)  KUBE_MUST_CHECK;

/* The end but for done().  KUBE_OK or KUBE_NOMEM. */
kube_rc_t kube_selector_result(kube_selector_t *selector,
    kube_selection_t *selection)  KUBE_MUST_CHECK;

void kube_selector_done(kube_selector_t *selector);


#endif /* KUBE_SELECT_H */
