/*
 * kube_select - the join of a Service's port with its slices, the policy,
 * and the choice of ready or terminating endpoints.
 *
 * It reads a copy of the zone, never the zone, and keeps nothing.  No state;
 * may be called from any process.  Every endpoint gets a row; an endpoint
 * whose row excludes nothing is an item, and items are sorted and thinned.
 *
 * Source: kube-proxy's rules for EndpointSlices (pkg/proxy/topology.go,
 * endpointslicecache.go): port names join, ready endpoints, else those that
 * serve while they terminate.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_select.h"


static const char  select_not_ready[] = "not ready";
static const char  select_terminating[] = "terminating";
static const char  select_no_port[] = "no such port";
static const char  select_no_number[] = "no port number";
static const char  select_denied[] = "address denied";
static const char  select_duplicate[] = "duplicate";
static const char  select_family[] = "wrong family";
static const char  select_external[] = "external name";


/* An endpoint that may be used, and its row. */
typedef struct {
    const kube_slice_t     *slice;
    const kube_endpoint_t  *endpoint;
    kube_explained_t       *row;
} select_item_t;

typedef struct {
    kube_arena_t                 *arena;
    const kube_snapshot_t        *snapshot;
    const kube_select_options_t  *options;
    kube_explained_t             *rows;
    select_item_t                *items;
    size_t                        rows_n;
    size_t                        items_n;
    size_t                        ready_n;

    /* which kinds of exclusion there were */
    bool                          denied;
    bool                          unready;
    bool                          foreign;
} select_t;


kube_str_t
kube_resolve_error_text(kube_resolve_error_t error)
{
    switch (error) {
#define XX(name, text)  case KUBE_RESOLVE_##name: return KUBE_STR(text);
    KUBE_RESOLVE_MAP(XX)
#undef XX
    default:
        return KUBE_STR("");
    }
}


kube_str_t
kube_endpoint_state_text(kube_endpoint_state_t state)
{
    return (state == KUBE_ENDPOINT_READY) ? KUBE_STR("ready")
                                          : KUBE_STR("terminating");
}


/* The Service's port that is meant; *error tells why there is none. */
static const kube_port_t *
select_service_port(const kube_service_t *service, const kube_key_port_t *port,
    kube_protocol_t protocol, kube_resolve_error_t *error)
{
    bool                named;
    size_t              i;
    const kube_port_t  *p;

    named = port->exact || port->name.len != 0;
    *error = KUBE_RESOLVE_NO_PORT;

    if (!named && port->number == 0 && service->ports_n > 1) {
        *error = KUBE_RESOLVE_PORT_NEEDED;
        return NULL;
    }

    for (i = 0; i < service->ports_n; i++) {
        p = &service->ports[i];

        if (p->protocol == protocol
            && (!named || kube_str_eq(p->name, port->name))
            && (port->number == 0 || p->port == port->number))
        {
            *error = KUBE_RESOLVE_OK;
            return p;
        }
    }

    return NULL;
}


static const kube_port_t *
select_slice_port(const kube_slice_t *slice, const kube_port_t *port)
{
    size_t              i;
    const kube_port_t  *p;

    for (i = 0; i < slice->ports_n; i++) {
        p = &slice->ports[i];

        if (p->protocol == port->protocol && kube_str_eq(p->name, port->name)) {
            return p;
        }
    }

    return NULL;
}


/* The first of the Service's ports that the slice has, with a number. */
static const kube_port_t *
select_any_port(const select_t *s, const kube_slice_t *slice)
{
    size_t              i;
    const kube_port_t  *p, *found;

    found = NULL;

    for (i = 0; i < s->snapshot->service.ports_n; i++) {
        p = &s->snapshot->service.ports[i];

        if (p->protocol != s->options->protocol) {
            continue;
        }

        p = select_slice_port(slice, p);

        if (p != NULL && p->port != 0) {
            return p;
        }

        if (found == NULL) {
            found = p;
        }
    }

    return found;
}


static bool
select_family_is(const select_t *s, const kube_slice_t *slice,
    const kube_endpoint_t *endpoint)
{
    kube_family_t  family;

    family = endpoint->address.family;

    return family != KUBE_FAMILY_NONE
           && family == slice->family
           && (s->options->family == KUBE_FAMILY_NONE
               || s->options->family == family);
}


static bool
select_may_terminate(const select_t *s, const kube_endpoint_t *endpoint)
{
    return !s->options->terminating_never
           && endpoint->serving
           && endpoint->terminating;
}


/* Judges one endpoint by itself: NULL where it may be used. */
static const char *
select_judge(select_t *s, const kube_slice_t *slice,
    const kube_endpoint_t *endpoint, const kube_port_t *port,
    const char **denied_because)
{
    *denied_because = NULL;

    if (!select_family_is(s, slice, endpoint)) {
        s->foreign = true;
        return select_family;
    }

    if (port == NULL) {
        return select_no_port;
    }

    if (port->port == 0) {
        return select_no_number;
    }

    if (!endpoint->ready && !select_may_terminate(s, endpoint)) {
        s->unready = true;
        return endpoint->terminating ? select_terminating : select_not_ready;
    }

    *denied_because = kube_policy_denies(s->options->policy,
                                         &endpoint->address);
    if (*denied_because != NULL) {
        s->denied = true;
        return select_denied;
    }

    return NULL;
}


static void
select_slice(select_t *s, uint32_t index, const kube_port_t *port)
{
    size_t                  i;
    select_item_t          *item;
    kube_explained_t       *row;
    const kube_slice_t     *slice;
    const kube_endpoint_t  *endpoint;

    slice = &s->snapshot->slices[index];

    for (i = 0; i < slice->endpoints_n; i++) {
        endpoint = &slice->endpoints[i];
        row = &s->rows[s->rows_n++];

        row->slice = index;
        row->endpoint = (uint32_t) i;
        row->port = (port != NULL) ? port->port : 0;
        row->state = endpoint->ready ? KUBE_ENDPOINT_READY
                                     : KUBE_ENDPOINT_TERMINATING;
        row->excluded_because = select_judge(s, slice, endpoint, port,
                                             &row->denied_because);

        if (row->excluded_because != NULL) {
            continue;
        }

        item = &s->items[s->items_n++];
        item->slice = slice;
        item->endpoint = endpoint;
        item->row = row;

        if (row->state == KUBE_ENDPOINT_READY) {
            s->ready_n++;
        }
    }
}


static int
select_cmp_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}


/* By family, address and port: what makes two items the same endpoint. */
static int
select_cmp_addr(const select_item_t *a, const select_item_t *b)
{
    int                 rc;
    const kube_addr_t  *x, *y;

    x = &a->endpoint->address;
    y = &b->endpoint->address;

    rc = select_cmp_u64(x->family, y->family);

    if (rc == 0) {
        rc = memcmp(x->bytes, y->bytes,
                    x->family == KUBE_FAMILY_IPV4 ? 4 : 16);
    }

    return (rc != 0) ? rc : select_cmp_u64(a->row->port, b->row->port);
}


/* By address, ready ones first; the order of slices decides no tie. */
static int
select_cmp(const select_item_t *a, const select_item_t *b)
{
    int  rc;

    rc = select_cmp_addr(a, b);

    if (rc == 0) {
        rc = select_cmp_u64(a->row->state, b->row->state);
    }

    if (rc == 0) {
        rc = kube_str_cmp(a->endpoint->pod, b->endpoint->pod);
    }

    return (rc != 0) ? rc : kube_str_cmp(a->slice->meta.name,
                                         b->slice->meta.name);
}


static void
select_merge(const select_item_t *from, select_item_t *to, size_t low,
    size_t mid, size_t high)
{
    size_t  i, j, k;

    i = low;
    j = mid;

    for (k = low; k < high; k++) {

        if (i < mid && (j == high || select_cmp(&from[i], &from[j]) <= 0)) {
            to[k] = from[i++];

        } else {
            to[k] = from[j++];
        }
    }
}


/*
 * A merge sort from the bottom up.  It takes n log n steps whatever the order
 * is: anybody who may write a slice chooses the order.
 */
static kube_rc_t
select_sort(select_t *s)
{
    size_t          n, low, mid, high, width;
    select_item_t  *from, *to, *swap;

    n = s->items_n;
    from = s->items;
    to = kube_arena_alloc(s->arena, (n + 1) * sizeof(select_item_t));

    if (to == NULL) {
        return KUBE_NOMEM;
    }

    for (width = 1; width < n; width *= 2) {

        for (low = 0; low < n; low = high) {
            mid = (n - low > width) ? low + width : n;
            high = (n - mid > width) ? mid + width : n;
            select_merge(from, to, low, mid, high);
        }

        swap = from;
        from = to;
        to = swap;
    }

    s->items = from;

    return KUBE_OK;
}


/* Leaves each endpoint once, and only ready ones where there is one. */
static kube_rc_t
select_thin(select_t *s)
{
    size_t          i, n;
    kube_rc_t       rc;
    select_item_t  *item;

    rc = select_sort(s);
    if (rc != KUBE_OK) {
        return rc;
    }

    n = 0;

    for (i = 0; i < s->items_n; i++) {
        item = &s->items[i];

        if (n != 0 && select_cmp_addr(&s->items[n - 1], item) == 0) {
            item->row->excluded_because = select_duplicate;

        } else if (s->ready_n != 0
                   && item->row->state != KUBE_ENDPOINT_READY)
        {
            item->row->excluded_because = select_terminating;

        } else {
            s->items[n++] = *item;
        }
    }

    s->items_n = n;

    return KUBE_OK;
}


static kube_rc_t
select_init(select_t *s, kube_arena_t *arena, const kube_snapshot_t *snapshot,
    const kube_select_options_t *options)
{
    size_t  i, n;

    memset(s, 0, sizeof(select_t));

    s->arena = arena;
    s->snapshot = snapshot;
    s->options = options;

    n = 0;

    for (i = 0; i < snapshot->slices_n; i++) {
        n += snapshot->slices[i].endpoints_n;
    }

    if (n > (size_t) KUBE_SERVICE_SLICES_MAX * KUBE_SLICE_ENDPOINTS_MAX) {
        return KUBE_TOO_LARGE;
    }

    s->rows = kube_arena_alloc(arena, (n + 1) * sizeof(kube_explained_t));
    s->items = kube_arena_alloc(arena, (n + 1) * sizeof(select_item_t));

    return (s->rows != NULL && s->items != NULL) ? KUBE_OK : KUBE_NOMEM;
}


/* The most that can be said of a selection without endpoints. */
static kube_resolve_error_t
select_nothing(const select_t *s)
{
    if (s->denied) {
        return KUBE_RESOLVE_ADDRESS_DENIED;
    }

    if (s->unready) {
        return KUBE_RESOLVE_NO_READY_ENDPOINT;
    }

    return s->foreign ? KUBE_RESOLVE_NO_FAMILY : KUBE_RESOLVE_NO_ENDPOINTS;
}


static kube_rc_t
select_output(select_t *s, kube_selection_t *selection)
{
    size_t           i;
    kube_choice_t   *choice;
    select_item_t   *item;

    if (s->items_n == 0) {
        selection->error = select_nothing(s);
        return KUBE_OK;
    }

    selection->endpoints = kube_arena_alloc(s->arena, s->items_n
                                                    * sizeof(kube_choice_t));
    if (selection->endpoints == NULL) {
        return KUBE_NOMEM;
    }

    selection->n = s->items_n;

    for (i = 0; i < s->items_n; i++) {
        item = &s->items[i];
        choice = &selection->endpoints[i];

        choice->addr = item->endpoint->address;
        choice->port = item->row->port;
        choice->state = item->row->state;
        choice->slice = item->row->slice;
        choice->pod = item->endpoint->pod;
        choice->node = item->endpoint->node;
        choice->zone = item->endpoint->zone;
    }

    return KUBE_OK;
}


kube_rc_t
kube_select(kube_arena_t *arena, const kube_snapshot_t *snapshot,
    const kube_key_port_t *port, const kube_select_options_t *options,
    unsigned flags, kube_selection_t *selection)
{
    size_t               i;
    select_t             s;
    kube_rc_t            rc;
    const kube_port_t   *slice_port;
    const kube_slice_t  *slice;

    memset(selection, 0, sizeof(kube_selection_t));

    if (!(flags & KUBE_SELECT_ANY_PORT)) {
        selection->port = select_service_port(&snapshot->service, port,
                                              options->protocol,
                                              &selection->error);
    }

    if (snapshot->service.type == KUBE_SERVICE_EXTERNAL_NAME) {
        selection->error = KUBE_RESOLVE_EXTERNAL_NAME;
    }

    if ((flags & KUBE_SELECT_PORT)
        || (selection->error != KUBE_RESOLVE_OK
            && !(flags & KUBE_SELECT_EXPLAIN)))
    {
        return KUBE_OK;
    }

    rc = select_init(&s, arena, snapshot, options);
    if (rc != KUBE_OK) {
        return rc;
    }

    for (i = 0; i < snapshot->slices_n; i++) {
        slice = &snapshot->slices[i];

        if (flags & KUBE_SELECT_ANY_PORT) {
            slice_port = select_any_port(&s, slice);

        } else {
            slice_port = (selection->port != NULL)
                         ? select_slice_port(slice, selection->port) : NULL;
        }

        select_slice(&s, (uint32_t) i, slice_port);
    }

    rc = select_thin(&s);
    if (rc != KUBE_OK) {
        return rc;
    }

    selection->rows = s.rows;
    selection->rows_n = s.rows_n;

    if (selection->error == KUBE_RESOLVE_OK) {
        return select_output(&s, selection);
    }

    for (i = 0; i < s.rows_n; i++) {
        if (selection->error == KUBE_RESOLVE_EXTERNAL_NAME) {
            s.rows[i].excluded_because = select_external;
        }
    }

    return KUBE_OK;
}
