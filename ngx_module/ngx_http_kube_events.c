/*
 * ngx_http_kube_events - server-sent events of an informer's changes.
 *
 * A client is a cursor on the zone's event ring and one buffer, which is
 * filled only once it was sent: one that reads slowly falls behind on the ring
 * and is told so, and nothing is kept for it.  What an event is about is not
 * looked at here.  Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_status.h"
#include "ngx_kube_feed.h"

#include "kube_json_writer.h"
#include "kube_zone_ring.h"


/* A worker has no more of them: each holds a connection and a buffer. */
#define NGX_HTTP_KUBE_EVENTS_CLIENTS  128

#define NGX_HTTP_KUBE_EVENTS_BUF      (16 * 1024)

/* One event, of which every byte is escaped, is less. */
#define NGX_HTTP_KUBE_EVENTS_ROOM     4096

/* Events that one client looks at before others have their turn. */
#define NGX_HTTP_KUBE_EVENTS_TURN     512

/* ms: proxies close a connection that is silent for a minute. */
#define NGX_HTTP_KUBE_EVENTS_BEAT     15000

/* "<epoch, hexadecimal>-<sequence>" */
#define NGX_HTTP_KUBE_EVENTS_ID_MAX   (16 + 1 + 20)


typedef struct {
    ngx_http_kube_stream_t  stream;       /* the first: it is the client */
    ngx_kube_subscriber_t   subscriber;
    kube_zone_cursor_t      cursor;
    kube_str_t              ns;           /* empty: all */
    const char             *resync;       /* is to be told first; or NULL */
    unsigned                resumed:1;    /* nothing was read since */
    unsigned                beat:1;       /* is due */
    unsigned                more:1;       /* there may be */
} ngx_http_kube_client_t;


static ngx_http_kube_client_t *ngx_http_kube_events_create(
    ngx_http_request_t *r, ngx_kube_informer_t *informer, kube_str_t ns);
static void ngx_http_kube_events_cleanup(ngx_http_kube_stream_t *stream);
static kube_str_t ngx_http_kube_events_last_id(ngx_http_request_t *r);
static ngx_int_t ngx_http_kube_events_cursor(kube_str_t id,
    kube_zone_cursor_t *cursor);
static ngx_int_t ngx_http_kube_events_head(ngx_http_request_t *r);
static void ngx_http_kube_events_handler(ngx_event_t *ev);
static void ngx_http_kube_events_close(ngx_http_kube_client_t *client);
static ngx_chain_t *ngx_http_kube_events_fill(
    ngx_http_kube_client_t *client);
static void ngx_http_kube_events_print(ngx_http_kube_client_t *client,
    const kube_zone_event_t *event);
static void ngx_http_kube_events_tell(ngx_http_kube_client_t *client,
    const char *event, const char *reason);
static void ngx_http_kube_events_id(ngx_http_kube_client_t *client);


static ngx_uint_t  ngx_http_kube_events_clients;


ngx_int_t
ngx_http_kube_events(ngx_http_request_t *r, ngx_http_kube_body_t *body,
    ngx_kube_informer_t *informer, kube_str_t ns)
{
    ngx_int_t                rc;
    ngx_http_kube_client_t  *client;

    if (r != r->main || (ns.len != 0 && !kube_name_is_label(ns))) {
        return ngx_http_kube_body_error(body, NGX_HTTP_BAD_REQUEST,
                                        r != r->main ? "not in a subrequest"
                                                     : "namespace is not a "
                                                       "name");
    }

    if (kube_zone_ring_size(&informer->zone) == 0) {
        return ngx_http_kube_body_error(body, NGX_HTTP_NOT_FOUND,
                                        "the zone is too small for events");
    }

    client = NULL;

    if (r->method != NGX_HTTP_HEAD) {

        if (ngx_http_kube_events_clients == NGX_HTTP_KUBE_EVENTS_CLIENTS) {
            return ngx_http_kube_body_error(body,
                                            NGX_HTTP_SERVICE_UNAVAILABLE,
                                            "too many clients");
        }

        client = ngx_http_kube_events_create(r, informer, ns);
        if (client == NULL) {
            return ngx_http_kube_body_error(body,
                                            NGX_HTTP_SERVICE_UNAVAILABLE,
                                            "this worker leaves, or is full");
        }
    }

    r->main->count++;

    rc = ngx_http_kube_events_head(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only || client == NULL) {
        ngx_http_finalize_request(r, rc);
        return NGX_DONE;
    }

    ngx_http_kube_stream_begin(&client->stream);

    r->connection->log->action = "sending events";

    ngx_post_event(&client->subscriber.event, &ngx_posted_events);

    return NGX_DONE;
}


static ngx_http_kube_client_t *
ngx_http_kube_events_create(ngx_http_request_t *r,
    ngx_kube_informer_t *informer, kube_str_t ns)
{
    kube_str_t               id;
    ngx_event_t             *ev;
    ngx_http_kube_client_t  *client;

    client = ngx_pcalloc(r->pool, sizeof(ngx_http_kube_client_t));

    if (client == NULL
        || ngx_http_kube_stream_create(r, &client->stream,
                                       NGX_HTTP_KUBE_EVENTS_BUF,
                                       &client->subscriber.event)
           != NGX_OK)
    {
        return NULL;
    }

    client->ns = ns;

    ev = &client->subscriber.event;
    ev->handler = ngx_http_kube_events_handler;
    ev->data = client;
    ev->log = r->connection->log;
    ev->cancelable = 1;

    if (ngx_kube_subscribe(&client->subscriber, informer) != NGX_OK) {
        return NULL;
    }

    ngx_http_kube_events_clients++;
    client->stream.cleanup = ngx_http_kube_events_cleanup;

    ngx_add_timer(ev, NGX_HTTP_KUBE_EVENTS_BEAT);

    id = ngx_http_kube_events_last_id(r);

    if (id.len == 0) {
        kube_zone_ring_newest(&informer->zone, &client->cursor);
        client->resync = "start";

    } else if (ngx_http_kube_events_cursor(id, &client->cursor) == NGX_OK) {
        client->resumed = 1;

    } else {
        kube_zone_ring_newest(&informer->zone, &client->cursor);
        client->resync = "unknown_id";
    }

    return client;
}


static void
ngx_http_kube_events_cleanup(ngx_http_kube_stream_t *stream)
{
    ngx_http_kube_client_t  *client;

    client = (ngx_http_kube_client_t *) stream;

    ngx_kube_unsubscribe(&client->subscriber);
    ngx_http_kube_events_clients--;
}


/* A lowcase_key does not end with a NUL: the next one follows it. */

static kube_str_t
ngx_http_kube_events_last_id(ngx_http_request_t *r)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    part = &r->headers_in.headers.part;
    h = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {
            if (part->next == NULL) {
                return KUBE_STR_NULL;
            }

            part = part->next;
            h = part->elts;
            i = 0;
        }

        if (h[i].key.len == sizeof("Last-Event-ID") - 1
            && ngx_memcmp(h[i].lowcase_key, "last-event-id", h[i].key.len)
               == 0)
        {
            return ngx_kube_str(&h[i].value);
        }
    }
}


/* Any bytes of a client; NGX_DECLINED: no id of ours. */

static ngx_int_t
ngx_http_kube_events_cursor(kube_str_t id, kube_zone_cursor_t *cursor)
{
    size_t       dash;
    uint64_t     sequence;
    ngx_uint_t   i;
    kube_str_t   rest;

    if (id.len > NGX_HTTP_KUBE_EVENTS_ID_MAX) {
        return NGX_DECLINED;
    }

    cursor->epoch = 0;

    for (dash = 0; dash < id.len && id.data[dash] != '-'; dash++) {

        i = (u_char) id.data[dash];

        if (i >= '0' && i <= '9') {
            i -= '0';

        } else if (i >= 'a' && i <= 'f') {
            i -= 'a' - 10;

        } else {
            return NGX_DECLINED;
        }

        cursor->epoch = cursor->epoch << 4 | i;
    }

    if (dash != 16 || dash == id.len) {
        return NGX_DECLINED;
    }

    rest.data = id.data + dash + 1;
    rest.len = id.len - dash - 1;

    if (kube_str_to_u64(rest, UINT64_MAX, &sequence) != KUBE_OK) {
        return NGX_DECLINED;
    }

    cursor->sequence = sequence;

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_events_head(ngx_http_request_t *r)
{
    /* a proxy before this nginx is to pass each event on at once */

    if (ngx_http_kube_header(r, "X-Accel-Buffering", "no") == NULL) {
        return NGX_ERROR;
    }

#if (NGX_HTTP_GZIP)

    /* gzip_types may be "*" */

    r->gzip_tested = 1;
    r->gzip_ok = 0;

#endif

    ngx_http_clear_accept_ranges(r);

    return ngx_http_kube_head(r, NGX_HTTP_OK, NGX_HTTP_KUBE_TYPE_EVENTS, -1);
}


/* There may be events, the heart beats, or the worker leaves. */

static void
ngx_http_kube_events_handler(ngx_event_t *ev)
{
    ngx_chain_t             *out;
    ngx_connection_t        *c;
    ngx_http_kube_client_t  *client;

    client = ev->data;
    c = client->stream.request->connection;

    if (ngx_http_kube_stream_lost(&client->stream)) {
        return;
    }

    if (client->subscriber.closing) {
        ngx_http_kube_events_close(client);
        ngx_http_run_posted_requests(c);
        return;
    }

    if (ev->timedout) {
        ev->timedout = 0;
        client->beat = 1;
        ngx_add_timer(ev, NGX_HTTP_KUBE_EVENTS_BEAT);
    }

    /* the write event comes once the buffer was sent */

    if (ngx_http_kube_stream_pending(&client->stream)) {
        return;
    }

    out = ngx_http_kube_events_fill(client);

    if (out != NULL) {
        ngx_http_kube_stream_send(&client->stream, out);
        ngx_http_run_posted_requests(c);

    } else if (client->more) {
        ngx_post_event(ev, &ngx_posted_next_events);
    }
}


/* No worker waits for a client that reads slowly. */

static void
ngx_http_kube_events_close(ngx_http_kube_client_t *client)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = client->stream.request;
    rc = NGX_ERROR;

    if (!ngx_http_kube_stream_pending(&client->stream)) {
        rc = ngx_http_send_special(r, NGX_HTTP_LAST);
    }

    if (ngx_http_kube_stream_pending(&client->stream)) {
        rc = NGX_ERROR;
    }

    ngx_http_finalize_request(r, rc);
}


/* NULL: there is nothing to say. */

static ngx_chain_t *
ngx_http_kube_events_fill(ngx_http_kube_client_t *client)
{
    ngx_buf_t          *b;
    kube_rc_t           rc;
    ngx_uint_t          n;
    kube_zone_event_t   event;

    ngx_http_kube_stream_rewind(&client->stream);

    b = &client->stream.buf;
    client->more = 0;

    if (client->resync != NULL || client->resumed) {
        kube_text_put(&client->stream.text, KUBE_STR("retry: 1000\n\n"));
    }

    if (client->resync != NULL) {
        ngx_http_kube_events_tell(client, "resync", client->resync);
        client->resync = NULL;
    }

    rc = KUBE_OK;

    for (n = 0; n < NGX_HTTP_KUBE_EVENTS_TURN
                && b->end - b->last >= NGX_HTTP_KUBE_EVENTS_ROOM; n++)
    {
        rc = kube_zone_ring_next(&client->subscriber.informer->zone,
                                 &client->cursor, &event);

        if (rc != KUBE_OK) {
            break;
        }

        ngx_http_kube_events_print(client, &event);
    }

    /*
     * Who was late is told once a turn, however often the zone says so; what
     * is appended from now on wakes again.
     */

    if (rc == KUBE_CHANGED) {
        ngx_http_kube_events_tell(client, client->resumed ? "resync"
                                                          : "overflow",
                                  client->resumed ? "unknown_id" : "slow");
    }

    if (client->beat) {
        kube_text_put(&client->stream.text, KUBE_STR(":\n"));
        ngx_http_kube_events_id(client);
        kube_text_put(&client->stream.text, KUBE_STR("\n"));
    }

    client->more = (rc == KUBE_OK);
    client->resumed = 0;
    client->beat = 0;

    return b->last != b->pos ? &client->stream.out : NULL;
}


static void
ngx_http_kube_events_print(ngx_http_kube_client_t *client,
    const kube_zone_event_t *event)
{
    kube_text_t         *text;
    kube_json_writer_t   json;

    static const char *const  names[KUBE_ZONE_EVENTS] = {
        [KUBE_ZONE_EVENT_ADD] = "add",
        [KUBE_ZONE_EVENT_UPDATE] = "update",
        [KUBE_ZONE_EVENT_DELETE] = "delete",
        [KUBE_ZONE_EVENT_REFUSE] = "delete",
        [KUBE_ZONE_EVENT_RESYNC] = "resync"
    };

    if (event->kind == KUBE_ZONE_EVENT_RESYNC) {
        ngx_http_kube_events_tell(client, names[event->kind], "takeover");
        return;
    }

    if (client->ns.len != 0 && !kube_str_eq(client->ns, event->ns)) {
        return;
    }

    text = &client->stream.text;

    ngx_http_kube_events_id(client);
    kube_text_printf(text, "event: %s\ndata: ", names[event->kind]);

    kube_json_writer_init(&json, text);
    kube_json_open(&json, NULL, '{');
    kube_json_put_str(&json, "resource",
                      kube_str(kube_resource_text(event->resource)));
    kube_json_put_str(&json, "namespace", event->ns);
    kube_json_put_str(&json, "name", event->name);
    kube_json_put_str(&json, "resource_version", event->rv);

    if (event->kind == KUBE_ZONE_EVENT_UPDATE) {
        kube_json_put_optional(&json, "old_resource_version", event->old_rv);
    }

    if (event->kind == KUBE_ZONE_EVENT_REFUSE) {
        kube_json_put_bool(&json, "refused", true);
    }

    kube_json_close(&json, '}');
    kube_text_put(text, KUBE_STR("\n\n"));
}


static void
ngx_http_kube_events_tell(ngx_http_kube_client_t *client, const char *event,
    const char *reason)
{
    ngx_http_kube_events_id(client);
    kube_text_printf(&client->stream.text,
                     "event: %s\ndata: {\"reason\":\"%s\"}\n\n", event,
                     reason);
}


static void
ngx_http_kube_events_id(ngx_http_kube_client_t *client)
{
    kube_text_printf(&client->stream.text, "id: %016llx-%llu\n",
                     (unsigned long long) client->cursor.epoch,
                     (unsigned long long) client->cursor.sequence);
}
