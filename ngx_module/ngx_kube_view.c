/*
 * ngx_kube_view - copies of what the resolver in src/route found.
 *
 * It decides nothing about keys or endpoints, and keeps no view.  Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube_view.h"


#include <malloc.h>
#include <sys/mman.h>


#define NGX_KUBE_VIEW_POOL     768
#define NGX_KUBE_ARENA_MIN     (16 * 1024 * 1024)
#define NGX_KUBE_LOG_PERIOD    10000

/*
 * What is needed only while a view is made comes from the system in pieces of
 * at least so many bytes, and goes back at once: malloc() would put the view
 * behind it, and keep what is between two views.
 */
#define NGX_KUBE_MAP_MIN       (128 * 1024)


/* Before each piece, which is aligned as this is. */
typedef union {
    size_t                  mapped;         /* bytes; 0: by malloc() */
    u_char                  align[16];
} ngx_kube_piece_t;


/* A number as text, and what follows it. */
typedef struct {
    u_char                  text[5];
    u_char                  len;            /* 0: nothing is set yet */
} ngx_kube_number_t;


static void *ngx_kube_view_malloc(void *ctx, size_t size);
static void ngx_kube_view_free(void *ctx, void *p);
static void ngx_kube_view_scratch_free(void *p);
static ngx_kube_view_t *ngx_kube_view_new(void);
static ngx_int_t ngx_kube_view_key(ngx_kube_view_t *view,
    const kube_key_t *key);
static ngx_int_t ngx_kube_view_fill(ngx_kube_view_t *view,
    const kube_zone_t *zone, const kube_resolution_t *resolution);
static ngx_int_t ngx_kube_view_names(ngx_kube_view_t *view,
    const kube_resolution_t *resolution);
static ngx_int_t ngx_kube_view_copy(ngx_kube_view_t *view,
    const kube_selection_t *selection);
static ngx_uint_t ngx_kube_str_is(kube_str_t a, kube_str_t b);
static u_char *ngx_kube_str_put(u_char *p, ngx_str_t *to, kube_str_t from);
static ngx_int_t ngx_kube_str_copy(ngx_pool_t *pool, ngx_str_t *to,
    kube_str_t from);
static size_t ngx_kube_endpoint_ntop(const ngx_kube_endpoint_t *endpoint,
    u_char *text);
static void ngx_kube_octets_init(void);
static u_char *ngx_kube_decimal(u_char *p, unsigned n);


static const kube_alloc_t  ngx_kube_view_alloc = {
    ngx_kube_view_malloc, ngx_kube_view_free, NULL, NULL, NULL
};


/* Of all views in this process, and what counts with them. */

static size_t    ngx_kube_views_bytes;
static uint64_t  ngx_kube_views_gone;

/* Of addresses, each with its dot; and the last port. */

static ngx_kube_number_t  ngx_kube_octets[256];
static ngx_kube_number_t  ngx_kube_port_text;
static in_port_t          ngx_kube_port;


static void *
ngx_kube_view_malloc(void *ctx, size_t size)
{
    size_t             mapped;
    ngx_kube_piece_t  *piece;

    size += sizeof(ngx_kube_piece_t);
    mapped = 0;

    if (size < NGX_KUBE_MAP_MIN) {
        piece = malloc(size);

    } else {
        mapped = size;
        piece = mmap(NULL, size, PROT_READ|PROT_WRITE,
                     MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);

        if (piece == MAP_FAILED) {
            piece = NULL;
        }
    }

    if (piece == NULL) {
        return NULL;
    }

    piece->mapped = mapped;

    return piece + 1;
}


static void
ngx_kube_view_free(void *ctx, void *p)
{
    ngx_kube_piece_t  *piece;

    piece = (ngx_kube_piece_t *) p - 1;

    if (piece->mapped != 0) {
        (void) munmap(piece, piece->mapped);

    } else {
        free(piece);
    }
}


static void
ngx_kube_view_scratch_free(void *p)
{
    ngx_kube_view_free(NULL, p);
}


void *
ngx_kube_view_scratch(ngx_pool_t *pool, size_t size)
{
    void                *p;
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(pool, 0);
    if (cln == NULL) {
        return NULL;
    }

    p = ngx_kube_view_malloc(NULL, size);
    if (p == NULL) {
        return NULL;
    }

    cln->handler = ngx_kube_view_scratch_free;
    cln->data = p;

    return p;
}


void
ngx_kube_view_begin(ngx_kube_reading_t *reading, ngx_kube_ref_t *ref,
    const kube_key_t *key)
{
    reading->view = NULL;

    /* a copy is no larger than the zone; what is made of it, some times that */

    kube_resolving_init(&reading->resolving, &ref->resolver, key,
                        &ngx_kube_view_alloc,
                        NGX_KUBE_ARENA_MIN + 4 * ref->informer->zone_size);
}


ngx_int_t
ngx_kube_view_step(ngx_kube_reading_t *reading)
{
    kube_rc_t         rc;
    ngx_kube_view_t  *view;

    rc = kube_resolving_step(&reading->resolving);

    if (rc == KUBE_AGAIN) {
        return NGX_AGAIN;
    }

    if (rc != KUBE_OK) {
        return NGX_ERROR;
    }

    view = ngx_kube_view_new();
    if (view == NULL) {
        return NGX_ERROR;
    }

    if (ngx_kube_view_key(view, &reading->resolving.key) != NGX_OK
        || ngx_kube_view_fill(view, reading->resolving.resolver->zone,
                              &reading->resolving.resolution)
           != NGX_OK)
    {
        ngx_kube_view_release(view);
        return NGX_ERROR;
    }

    /* all is copied: of a large Service that was more than the view is */

    kube_resolving_done(&reading->resolving);

    reading->view = view;

    return NGX_OK;
}


void
ngx_kube_view_end(ngx_kube_reading_t *reading)
{
    kube_resolving_done(&reading->resolving);

    if (reading->view != NULL) {
        ngx_kube_view_release(reading->view);
        reading->view = NULL;
    }
}


ngx_kube_view_t *
ngx_kube_view_empty(void)
{
    ngx_kube_view_t  *view;

    view = ngx_kube_view_new();

    if (view != NULL) {
        view->error = KUBE_RESOLVE_NO_SERVICE;
    }

    return view;
}


static ngx_kube_view_t *
ngx_kube_view_new(void)
{
    ngx_pool_t       *pool;
    ngx_kube_view_t  *view;

    /* it outlives the request: not the request's log */

    pool = ngx_create_pool(NGX_KUBE_VIEW_POOL, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    view = ngx_pcalloc(pool, sizeof(ngx_kube_view_t));
    if (view == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    view->pool = pool;
    view->refs = 1;
    ngx_queue_init(&view->readers);
    view->turn = ngx_random();

    return view;
}


ngx_uint_t
ngx_kube_view_same(const ngx_kube_view_t *a, const ngx_kube_view_t *b)
{
    ngx_uint_t  i;

    if (a->n != b->n) {
        return 0;
    }

    for (i = 0; i < a->n; i++) {
        if (a->endpoints[i].port != b->endpoints[i].port
            || a->endpoints[i].addr.family != b->endpoints[i].addr.family
            || ngx_memcmp(a->endpoints[i].addr.bytes,
                          b->endpoints[i].addr.bytes,
                          a->endpoints[i].addr.family == KUBE_FAMILY_IPV4
                          ? 4 : 16)
               != 0)
        {
            return 0;
        }
    }

    return 1;
}


void
ngx_kube_view_share(ngx_kube_view_t *view, ngx_kube_view_t *maker)
{
    /* never a chain: what was made of the first is handed on */

    if (maker->maker != NULL) {
        maker = maker->maker;
    }

    view->data = maker->data;
    view->maker = maker;
    maker->refs++;
}


void
ngx_kube_view_measure(ngx_kube_view_t *view)
{
    size_t             bytes;
    ngx_pool_t        *p;
    ngx_pool_large_t  *l;

    bytes = 0;

    p = view->pool;

    do {
        bytes += (size_t) (p->d.end - (u_char *) p);
        p = p->d.next;
    } while (p != NULL);

    for (l = view->pool->large; l != NULL; l = l->next) {
        if (l->alloc != NULL) {
            bytes += malloc_usable_size(l->alloc);
        }
    }

    ngx_kube_views_bytes += bytes - view->bytes;
    view->bytes = bytes;
}


void
ngx_kube_view_bytes_more(size_t bytes)
{
    ngx_kube_views_bytes += bytes;
}


void
ngx_kube_view_bytes_less(size_t bytes)
{
    ngx_kube_views_bytes -= bytes;
    ngx_kube_views_gone += bytes;
}


size_t
ngx_kube_view_bytes(void)
{
    return ngx_kube_views_bytes;
}


uint64_t
ngx_kube_view_bytes_gone(void)
{
    return ngx_kube_views_gone;
}


void
ngx_kube_view_destroy(ngx_kube_view_t *view)
{
    ngx_queue_t        *q;
    ngx_kube_view_t    *maker;
    ngx_kube_reader_t  *reader;

    while (!ngx_queue_empty(&view->readers)) {
        q = ngx_queue_head(&view->readers);
        ngx_queue_remove(q);

        reader = ngx_queue_data(q, ngx_kube_reader_t, queue);
        reader->ended(reader);
    }

    maker = view->maker;

    ngx_kube_view_bytes_less(view->bytes);
    ngx_destroy_pool(view->pool);

    if (maker != NULL) {
        ngx_kube_view_release(maker);
    }
}


/* The key's own copy lies in its text: it is not parsed again. */

static ngx_int_t
ngx_kube_view_key(ngx_kube_view_t *view, const kube_key_t *key)
{
    char        text[KUBE_KEY_TEXT_MAX];
    ngx_str_t   copy;
    kube_str_t  s;

    s.data = text;
    s.len = kube_key_text(key, text);

    if (ngx_kube_str_copy(view->pool, &copy, s) != NGX_OK) {
        return NGX_ERROR;
    }

    view->key = *key;
    view->key.ns.data = (char *) copy.data;
    view->key.name.data = view->key.ns.data + key->ns.len + 1;
    view->key.port.name.data = view->key.name.data + key->name.len + 1;

    return NGX_OK;
}


static ngx_int_t
ngx_kube_view_fill(ngx_kube_view_t *view, const kube_zone_t *zone,
    const kube_resolution_t *resolution)
{
    view->error = resolution->error;
    view->entry = resolution->entry;
    view->head = resolution->head;

    if (view->head != 0) {
        view->head_word = kube_zone_head_word(zone, view->entry);
    }

    if (ngx_kube_view_names(view, resolution) != NGX_OK) {
        return NGX_ERROR;
    }

    if (!resolution->found) {
        return NGX_OK;
    }

    view->revision = resolution->snapshot.revision;
    view->from_state_file = resolution->snapshot.from_state_file;
    view->truncated = resolution->selection.truncated;

    return ngx_kube_view_copy(view, &resolution->selection);
}


/* What is shown, and what outlives renumbering. */

static ngx_int_t
ngx_kube_view_names(ngx_kube_view_t *view,
    const kube_resolution_t *resolution)
{
    kube_str_t  s;
    kube_key_t  exact;
    char        text[KUBE_KEY_TEXT_MAX];

    s.data = text;
    s.len = kube_resolution_text(&view->key, resolution, text);

    if (ngx_kube_str_copy(view->pool, &view->name, s) != NGX_OK) {
        return NGX_ERROR;
    }

    if (!resolution->found || resolution->selection.port == NULL) {
        return NGX_OK;
    }

    exact = view->key;
    exact.port.name = resolution->selection.port->name;
    exact.port.exact = true;

    s.len = kube_key_text(&exact, text);

    return ngx_kube_str_copy(view->pool, &view->identity, s);
}


/* Nodes and zones that neighbours share are there once. */

static ngx_int_t
ngx_kube_view_copy(ngx_kube_view_t *view, const kube_selection_t *selection)
{
    size_t                     i, len;
    u_char                    *text;
    const kube_choice_t       *from, *last;
    ngx_kube_endpoint_t       *to;
    const ngx_kube_endpoint_t *copied;

    static const kube_choice_t        nothing;
    static const ngx_kube_endpoint_t  nowhere;

    if (selection->n == 0) {
        return NGX_OK;
    }

    /* one text for all: thousands of small pieces would take longer */

    len = 0;
    last = &nothing;

    for (i = 0; i < selection->n; i++) {
        from = &selection->endpoints[i];

        len += from->pod.len;
        len += ngx_kube_str_is(from->node, last->node) ? 0 : from->node.len;
        len += ngx_kube_str_is(from->zone, last->zone) ? 0 : from->zone.len;

        last = from;
    }

    to = ngx_palloc(view->pool, selection->n * sizeof(ngx_kube_endpoint_t));
    text = ngx_pnalloc(view->pool, len + 1);

    if (to == NULL || text == NULL) {
        return NGX_ERROR;
    }

    view->endpoints = to;
    view->n = selection->n;

    last = &nothing;
    copied = &nowhere;

    for (i = 0; i < selection->n; i++) {
        from = &selection->endpoints[i];

        to[i].addr = from->addr;
        to[i].port = from->port;
        to[i].state = from->state;

        text = ngx_kube_str_put(text, &to[i].pod, from->pod);

        if (ngx_kube_str_is(from->node, last->node)) {
            to[i].node = copied->node;

        } else {
            text = ngx_kube_str_put(text, &to[i].node, from->node);
        }

        if (ngx_kube_str_is(from->zone, last->zone)) {
            to[i].zone = copied->zone;

        } else {
            text = ngx_kube_str_put(text, &to[i].zone, from->zone);
        }

        last = from;
        copied = &to[i];
    }

    return NGX_OK;
}


/* The very same bytes: no text is compared. */

static ngx_inline ngx_uint_t
ngx_kube_str_is(kube_str_t a, kube_str_t b)
{
    return a.data == b.data && a.len == b.len;
}


static ngx_inline u_char *
ngx_kube_str_put(u_char *p, ngx_str_t *to, kube_str_t from)
{
    to->len = from.len;
    to->data = p;

    if (from.len != 0) {
        kube_copy_few(p, from.data, from.len);
    }

    return p + from.len;
}


static ngx_int_t
ngx_kube_str_copy(ngx_pool_t *pool, ngx_str_t *to, kube_str_t from)
{
    to->len = from.len;

    if (from.len == 0) {
        to->data = NULL;
        return NGX_OK;
    }

    to->data = ngx_pnalloc(pool, from.len);
    if (to->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(to->data, from.data, from.len);

    return NGX_OK;
}


/*
 * Texts are made for each endpoint of each new view: ngx_sock_ntop() costs what
 * a third of building a server from it does.
 */

size_t
ngx_kube_endpoint_text(const ngx_kube_endpoint_t *endpoint, u_char *text)
{
    u_char                   *p;
    unsigned                  i;
    const ngx_kube_number_t  *octet;

    if (endpoint->addr.family != KUBE_FAMILY_IPV4) {
        return ngx_kube_endpoint_ntop(endpoint, text);
    }

    if (ngx_kube_octets[0].len == 0) {
        ngx_kube_octets_init();
    }

    if (endpoint->port != ngx_kube_port || ngx_kube_port_text.len == 0) {
        ngx_kube_port = endpoint->port;
        p = ngx_kube_decimal(ngx_kube_port_text.text, ngx_kube_port);
        ngx_kube_port_text.len = (u_char) (p - ngx_kube_port_text.text);
    }

    p = text;

    for (i = 0; i < 4; i++) {

        /* what is not of the number is overwritten by the next one */

        octet = &ngx_kube_octets[endpoint->addr.bytes[i]];
        ngx_memcpy(p, octet->text, 4);
        p += octet->len;
    }

    p[-1] = ':';
    ngx_memcpy(p, ngx_kube_port_text.text, 5);
    p += ngx_kube_port_text.len;

    return (size_t) (p - text);
}


static size_t
ngx_kube_endpoint_ntop(const ngx_kube_endpoint_t *endpoint, u_char *text)
{
    socklen_t            socklen;
    ngx_kube_sockaddr_t  sa;

    if (ngx_kube_endpoint_sockaddr(endpoint, &sa, &socklen) != NGX_OK) {
        return 0;
    }

    return ngx_sock_ntop(&sa.sockaddr, socklen, text, NGX_SOCKADDR_STRLEN, 1);
}


static void
ngx_kube_octets_init(void)
{
    u_char    *p;
    unsigned   n;

    for (n = 0; n < 256; n++) {
        p = ngx_kube_decimal(ngx_kube_octets[n].text, n);
        *p++ = '.';
        ngx_kube_octets[n].len = (u_char) (p - ngx_kube_octets[n].text);
    }
}


/* At most 65535. */

static u_char *
ngx_kube_decimal(u_char *p, unsigned n)
{
    if (n >= 10000) {
        *p++ = (u_char) ('0' + n / 10000);
    }

    if (n >= 1000) {
        *p++ = (u_char) ('0' + n / 1000 % 10);
    }

    if (n >= 100) {
        *p++ = (u_char) ('0' + n / 100 % 10);
    }

    if (n >= 10) {
        *p++ = (u_char) ('0' + n / 10 % 10);
    }

    *p++ = (u_char) ('0' + n % 10);

    return p;
}


ngx_int_t
ngx_kube_endpoint_sockaddr(const ngx_kube_endpoint_t *endpoint,
    ngx_kube_sockaddr_t *sockaddr, socklen_t *socklen)
{
    ngx_memzero(sockaddr, sizeof(ngx_kube_sockaddr_t));

#if (NGX_HAVE_INET6)
    if (endpoint->addr.family == KUBE_FAMILY_IPV6) {
        sockaddr->sockaddr_in6.sin6_family = AF_INET6;
        sockaddr->sockaddr_in6.sin6_port = htons(endpoint->port);
        ngx_memcpy(&sockaddr->sockaddr_in6.sin6_addr, endpoint->addr.bytes,
                   16);
        *socklen = sizeof(struct sockaddr_in6);
        return NGX_OK;
    }
#endif

    if (endpoint->addr.family != KUBE_FAMILY_IPV4) {
        return NGX_DECLINED;
    }

    sockaddr->sockaddr_in.sin_family = AF_INET;
    sockaddr->sockaddr_in.sin_port = htons(endpoint->port);
    ngx_memcpy(&sockaddr->sockaddr_in.sin_addr, endpoint->addr.bytes, 4);
    *socklen = sizeof(struct sockaddr_in);

    return NGX_OK;
}


_Atomic uint64_t *
ngx_kube_counters(ngx_kube_informer_t *informer)
{
    informer->counters = kube_zone_worker_row(&informer->zone,
                                              (unsigned) ngx_worker);

    return informer->counters;
}


ngx_uint_t
ngx_kube_unresolved(ngx_kube_ref_t *ref, ngx_log_t *log,
    kube_resolve_error_t error, const ngx_str_t *text, const char *but)
{
    char                 escaped[KUBE_KEY_INPUT_MAX * 4 + 1];
    char                 why[KUBE_RESOLVER_WHY_MAX];
    kube_str_t           s;
    kube_arena_t         arena;
    ngx_kube_ref_log_t  *held;

    held = &ref->log[error];

    if (held->written
        && (ngx_msec_int_t) (ngx_current_msec - held->last)
           < NGX_KUBE_LOG_PERIOD)
    {
        held->held++;
        return 0;
    }

    kube_arena_init(&arena, &ngx_kube_alloc,
                    NGX_KUBE_ARENA_MIN + 4 * ref->informer->zone_size);

    s = ngx_kube_str(text);

    if (kube_resolver_why(&ref->resolver, s, error, &arena, why) != error) {

        /* it has changed in the meantime */

        why[0] = '\0';
    }

    kube_arena_done(&arena);

    s.len = ngx_min(s.len, KUBE_KEY_INPUT_MAX);
    (void) kube_str_escape(escaped, sizeof(escaped), s);

    s = kube_resolve_error_text(error);

    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "key \"%V\" of %s \"%V\" in %V:%ui: \"%s\" cannot be "
                  "resolved: %*s%s%s%s (%ui more in the last 10 seconds)",
                  &ref->expression, ref->kind, &ref->name, &ref->file,
                  ref->line,
                  escaped, s.len, s.data, why[0] != '\0' ? ": " : "", why,
                  but, held->held);

    held->last = ngx_current_msec;
    held->held = 0;
    held->written = 1;

    return 1;
}
