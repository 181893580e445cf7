/*
 * kube_api_lister_watcher - the API server as a source.
 *
 * Three parts: the exchange's handlers, which only keep what arrives; next(),
 * which cuts and decodes it; and the objects, where a refusal is told from a
 * failure.  It decides nothing and stores nothing; kube_reflector owns it.
 *
 * An object that cannot be decoded is that object's fault: it is refused under
 * its key, and what comes behind it is not touched.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>

#include "kube_api_lister_watcher.h"
#include "kube_decode_scan.h"
#include "kube_frame.h"
#include "kube_protobuf_frame.h"


/*
 * The tree of an object of the API takes about three times its text; one of
 * nothing but digits and commas would take thirty: that one is refused.
 */
#define API_ARENA_FACTOR  16

/* A buffer above this is freed once a quarter of it was enough. */
#define API_BUFFER_KEPT   (16u << 10)

/*
 * An item whose end has not arrived stays in the buffer up to this size, in
 * bytes, and so many looks at it: kube_decode_scan begins it anew each time.
 */
#define API_HELD_MAX      (32u << 10)
#define API_LOOKS_MAX     8

/* What is kept of a transport's error. */
#define API_TEXT_MAX      KUBE_MESSAGE_LEN_MAX

/* Two sizes, and what they are of. */
#define API_WHAT_MAX      96

/* Kubernetes: whoever brings no credentials (user.Anonymous). */
#define API_ANONYMOUS     "system:anonymous"

typedef struct {
    kube_alloc_t                     alloc;
    kube_api_lister_watcher_conf_t   conf;
    kube_arena_t                     arena;    /* of one result */
    kube_status_t                    status;   /* of one result */
    kube_frame_item_t                item;     /* of one result */
    kube_decode_scan_t               scan;     /* of one result */
    char                             what[API_WHAT_MAX];    /* of one result */
    bool                             refused;  /* Protocol Buffers, with a 406
                                                  or 415 */
    size_t                           refused_by;   /* the last address that
                                                      granted nothing since */
    uint64_t                         refused_ms;   /* KUBE_NEVER: none */
} api_lw_t;

/* One page of a list, or a watch: struct kube_call_s for those outside. */
typedef struct {
    api_lw_t          *lw;
    kube_exchange_t   *exchange;   /* NULL: not started, or it is gone */
    kube_frame_t      *frame;
    kube_protobuf_frame_t  *messages;   /* NULL: the body is JSON */
    bool               watch;
    bool               paused;     /* the exchange is */
    bool               json;       /* what the head says of the body */
    bool               protobuf;
    bool               opened;     /* OPENED was handed over */
    bool               over;       /* STATUS or END was */
    bool               kind_seen;
    bool               meta_seen;
    bool               end_seen;
    bool               ours_seen;  /* an object of our namespace */
    bool               others_seen;
    bool               ended;      /* nothing more will arrive */
    bool               whole;      /* a list that was read to its end, or the
                                      items that a watch begins with */
    bool               blameless;  /* its end is no word on its address */
    bool               granted;    /* some of what was asked for has come */
    kube_rc_t          ended_rc;
    int                code;       /* 0: no head yet */
    size_t             server;     /* of the head */
    uint32_t           retry_after_s;
    size_t             fresh;      /* bytes that no ALIVE has told of */
    void              *buffer;     /* of the body: the objects, or a Status */
    size_t             cap;
    size_t             used;
    size_t             len;
    size_t             most;       /* of len, since it was empty */
    size_t             held;       /* of these: an item without its end */
    unsigned           looks;      /* at what is held */
    kube_str_t         token;      /* owned */
    kube_request_t     request;    /* rv and continue_token are owned */
    char               text[API_TEXT_MAX];
} api_call_t;


static const char  api_poison[] = "the informer process died of it";


static void
api_ended(api_call_t *call, kube_rc_t rc, const char *text)
{
    if (call->ended) {
        return;
    }

    call->ended = true;
    call->ended_rc = rc;

    (void) snprintf(call->text, sizeof(call->text), "%s", text);
}


static bool
api_is_type(kube_str_t type, const char *text)
{
    size_t      i;
    kube_str_t  known;

    known = kube_str(text);

    for (i = 0; i < known.len && i < type.len; i++) {
        if ((type.data[i] | 0x20) != (known.data[i] | 0x20)) {
            return false;
        }
    }

    return type.len == known.len;
}


static void
api_verdict(const api_call_t *call, kube_server_verdict_t verdict)
{
    const kube_io_t  *io;

    io = &call->lw->conf.io;

    io->verdict(io->ctx, call->server, verdict);
}


/* One that comes at once after another, as a list's, is the same. */
static void
api_refusing(api_call_t *call)
{
    bool       again;
    uint64_t   now_ms;
    api_lw_t  *lw;

    lw = call->lw;
    now_ms = lw->conf.io.now(lw->conf.io.ctx);
    again = (lw->refused_ms != KUBE_NEVER && lw->refused_by == call->server);

    if (again && now_ms - lw->refused_ms < KUBE_SERVER_FIRST_MS) {
        api_verdict(call, KUBE_SERVER_DECLINES);
        return;
    }

    lw->refused_by = call->server;
    lw->refused_ms = now_ms;

    api_verdict(call, again ? KUBE_SERVER_REFUSES : KUBE_SERVER_DECLINES);
}


static kube_take_t
api_on_response(void *ctx, const kube_response_t *response)
{
    bool         known;
    api_call_t  *call = ctx;

    call->code = response->code;
    call->server = response->server;
    call->retry_after_s = response->retry_after_s;
    call->json = api_is_type(response->content_type, "application/json");
    call->protobuf = api_is_type(response->content_type,
                                 "application/vnd.kubernetes.protobuf");

    /*
     * Another address may do better where this one is ill, does not know the
     * credentials, is not for us (RFC 9110: 408, 421), or is no API server; a
     * 429 of one is plain text.
     */

    known = call->code < 500 && call->code != 401 && call->code != 404
            && call->code != 408 && call->code != 421
            && (call->json || call->protobuf || call->code == 429);

    if (known && call->code != 200) {
        api_refusing(call);

    } else {
        api_verdict(call, known ? KUBE_SERVER_ANSWERS : KUBE_SERVER_BAD);
    }

    return KUBE_TAKE_MORE;
}


/* Keeps what arrives.  Of a Status only the beginning is read. */
static kube_take_t
api_on_bytes(void *ctx, const char *data, size_t len)
{
    size_t       max;
    kube_rc_t    rc;
    api_call_t  *call = ctx;

    if (call->over || call->ended) {
        return KUBE_TAKE_ABORT;
    }

    max = SIZE_MAX;

    if (call->code != 200) {
        max = KUBE_STATUS_BYTES_MAX;
        len = (len < max - call->len) ? len : max - call->len;

    } else {
        call->fresh += len;
    }

    if (call->used != 0) {
        call->len -= call->used;
        memmove(call->buffer, (char *) call->buffer + call->used, call->len);
        call->used = 0;
    }

    rc = kube_array_reserve(&call->lw->alloc, &call->buffer, &call->cap,
                            call->len + len, 1, max);

    if (rc != KUBE_OK) {
        api_ended(call, rc, "");
        return KUBE_TAKE_ABORT;
    }

    memcpy((char *) call->buffer + call->len, data, len);
    call->len += len;
    call->most = (call->len > call->most) ? call->len : call->most;

    /* no item ends without a bracket that closes */

    if (call->held != 0 && call->held + len <= API_HELD_MAX
        && memchr(data, '}', len) == NULL)
    {
        call->held += len;
    }

    if (call->len == max) {
        api_ended(call, KUBE_OK, "");
        return KUBE_TAKE_ABORT;
    }

    call->paused = (call->code == 200 && call->len >= KUBE_TICK_BYTES);

    return call->paused ? KUBE_TAKE_PAUSE : KUBE_TAKE_MORE;
}


static void
api_on_done(void *ctx, kube_rc_t rc, const char *text)
{
    api_call_t  *call = ctx;

    call->exchange = NULL;
    call->paused = false;

    api_ended(call, rc, text);
}


static const kube_exchange_handler_t  api_handler = {
    api_on_response,
    api_on_bytes,
    api_on_done
};


static void
api_hang_up(api_call_t *call)
{
    kube_io_t  *io;

    io = &call->lw->conf.io;

    if (call->exchange != NULL) {
        io->cancel(io->ctx, call->exchange);
        call->exchange = NULL;
    }
}


/* A watch that is refused by its first event: its 200 was no yes. */
static void
api_refused(api_call_t *call)
{
    if (!call->granted) {
        api_hang_up(call);
        api_refusing(call);
    }
}


/* The first of what was asked for is told. */
static void
api_note(api_call_t *call, kube_result_kind_t kind)
{
    switch (kind) {

    case KUBE_RESULT_META:
    case KUBE_RESULT_ITEM:
    case KUBE_RESULT_EVENT:
    case KUBE_RESULT_BOOKMARK:

        if (!call->granted) {
            call->granted = true;
            call->lw->refused_ms = KUBE_NEVER;
            api_verdict(call, KUBE_SERVER_GRANTS);
        }

        break;

    default:
        break;
    }
}


static kube_frame_mode_t
api_mode(const api_call_t *call)
{
    return call->watch ? KUBE_FRAME_WATCH : KUBE_FRAME_LIST;
}


static kube_rc_t
api_end(api_call_t *call, kube_result_t *result, kube_rc_t rc,
    const char *text)
{
    call->over = true;
    call->whole = call->whole || (rc == KUBE_OK && !call->watch);

    /* bytes that are none of this API's, behind a head that looked good */

    if (rc == KUBE_PROTO && call->code == 200) {
        api_verdict(call, KUBE_SERVER_BAD);
    }

    result->kind = KUBE_RESULT_END;
    result->rc = rc;
    result->text = text;
    result->remedy = (rc == KUBE_NO_CREDENTIALS || rc == KUBE_TLS)
                     ? call->lw->conf.io.remedy(call->lw->conf.io.ctx, rc)
                     : NULL;
    result->continue_token = call->token;

    return KUBE_OK;
}


/* What helps where the answer says more than that the server is in trouble. */
static const char *
api_remedy(const api_call_t *call, const kube_status_t *status, int code)
{
    if ((code == 406 || code == 415)
        && call->request.encoding == KUBE_ENCODING_PROTOBUF)
    {
        return "set \"encoding\" to \"auto\": the server has no "
               "Protocol Buffers";
    }

    switch (status->verdict) {

    case KUBE_VERDICT_FORBIDDEN:
        if (strstr(status->message, API_ANONYMOUS) != NULL) {
            return "name a token or a client certificate, for none has come "
                   "to the server";
        }

        return (call->lw->conf.ns.len != 0) ? NULL
               : "grant list and watch of it to this user by a ClusterRole, "
                 "or name the namespaces that it may list";

    case KUBE_VERDICT_REDIRECT:
        return "name the API server itself, for redirects are not followed";

    case KUBE_VERDICT_NOT_FOUND:
        return "see that the address, and its path, are an API server's that "
               "has this resource";

    case KUBE_VERDICT_INVALID:
        return "the request was refused: see whether \"label_selector\" is one";

    case KUBE_VERDICT_TOO_MANY:
        return "the server has too many requests: see its flow control "
               "(API Priority and Fairness)";

    default:
        return NULL;
    }
}


static kube_rc_t
api_status(api_call_t *call, kube_result_t *result, int code,
    kube_str_t body)
{
    kube_status_t  *status;

    status = &call->lw->status;
    call->over = true;
    call->blameless = (call->blameless || call->watch);    /* it is refused */

    kube_status_judge(&call->lw->arena, code, body, status);

    /* 204, 206: success, but not with what was asked for */

    if (status->verdict == KUBE_VERDICT_OK) {
        status->verdict = KUBE_VERDICT_OTHER;
    }

    /* the answer of a proxy, most often: the line would name no cause */

    if (status->message[0] == '\0' && code != 0) {
        (void) snprintf(status->message, sizeof(status->message),
                        "HTTP status %d (%s), and no text of an API server",
                        code, kube_verdict_text(status->verdict));
    }

    status->remedy = api_remedy(call, status, code);

    if (code != 0 && call->retry_after_s > status->retry_after_s) {
        status->retry_after_s = call->retry_after_s;
    }

    result->kind = KUBE_RESULT_STATUS;
    result->status = status;

    return KUBE_OK;
}


/*
 * Refuses an object that has no key, or one of another namespace, as one
 * without a key: it is not ours to name.
 */
static void
api_judge(api_call_t *call, kube_result_t *result)
{
    bool                ours;
    const kube_meta_t  *meta;

    meta = kube_object_meta(&result->object);

    if (meta->ns.len != 0) {
        ours = (call->lw->conf.ns.len == 0
                || kube_str_eq(meta->ns, call->lw->conf.ns));

        call->ours_seen = (call->ours_seen || ours);
        call->others_seen = (call->others_seen || !ours);

        if (ours && meta->name.len != 0) {
            return;
        }
    }

    if (result->refusal == KUBE_REFUSAL_NONE) {
        result->refusal = KUBE_REFUSAL_MALFORMED;
        result->what = "it is of another namespace";
    }

    memset(&result->object, 0, sizeof(kube_object_t));
    result->object.resource = call->lw->conf.resource;
}


/*
 * What the decoder's rc says of the object.  KUBE_NOMEM is a failure of ours,
 * but where the arena's ceiling was met it is the object's fault, and would
 * come again for ever.
 */
static kube_refusal_t
api_refusal(const api_call_t *call, kube_rc_t rc)
{
    switch (rc) {

    case KUBE_OK:
        return KUBE_REFUSAL_NONE;

    case KUBE_TOO_LARGE:
        return KUBE_REFUSAL_TOO_LARGE;

    case KUBE_NOMEM:
        return call->lw->arena.full ? KUBE_REFUSAL_TOO_LARGE
                                    : KUBE_REFUSAL_NONE;

    default:
        return KUBE_REFUSAL_MALFORMED;
    }
}


/* Poison, and what the hand is given of it, is told from the envelope. */
static bool
api_take(api_call_t *call)
{
    bool              poison;
    api_lw_t         *lw;
    kube_hand_t       what;
    kube_envelope_t  *envelope;

    lw = call->lw;
    envelope = &lw->item.envelope;

    if (lw->conf.hand == NULL) {
        return false;
    }

    what = (kube_hand_t) {
        .now_ms = lw->conf.hand->now_ms,
        .scope = lw->conf.scope,
        .resource = lw->conf.resource,
        .ns = &envelope->meta.ns,
        .name = &envelope->meta.name,
        .uid = &envelope->meta.uid,
        .frame = &lw->item.bytes
    };

    poison = kube_zone_poison_refuses(lw->conf.zone, &what);

    kube_hand_take(lw->conf.hand, &what, KUBE_STAGE_DECODE);

    return poison;
}


static kube_rc_t
api_list_item(api_call_t *call, const kube_envelope_t *envelope,
    kube_result_t *result)
{
    kube_rc_t     rc;
    kube_error_t  error;

    error.what = "";

    rc = kube_decode_object(&call->lw->arena, call->lw->conf.resource,
                            envelope, &result->object, &result->dropped,
                            &error);

    result->kind = KUBE_RESULT_ITEM;
    result->type = KUBE_WATCH_ADDED;
    result->refusal = api_refusal(call, rc);
    result->what = error.what;

    if (rc != KUBE_OK && result->refusal == KUBE_REFUSAL_NONE) {
        return api_end(call, result, rc, "");
    }

    api_judge(call, result);

    return KUBE_OK;
}


static kube_rc_t
api_event(api_call_t *call, const kube_envelope_t *envelope,
    kube_result_t *result)
{
    kube_rc_t            rc;
    kube_error_t         error;
    kube_watch_event_t   event;

    error.what = "";

    rc = kube_decode_watch_event(&call->lw->arena, call->lw->conf.resource,
                                 envelope, &event, &result->dropped, &error);

    if (rc == KUBE_NOMEM && !call->lw->arena.full) {
        return api_end(call, result, rc, "");
    }

    result->kind = KUBE_RESULT_EVENT;
    result->type = event.type;
    result->object = event.object;
    result->rv = event.rv;
    result->refusal = api_refusal(call, (rc == KUBE_NOMEM) ? rc
                                                           : event.object_rc);
    result->what = error.what;

    if (rc == KUBE_INVALID) {
        result->kind = KUBE_RESULT_UNREADABLE;
        return KUBE_OK;
    }

    switch (event.type) {

    case KUBE_WATCH_DELETED:
        /* of what is deleted nothing but the key counts */
        result->refusal = KUBE_REFUSAL_NONE;
        break;

    case KUBE_WATCH_BOOKMARK:
        result->kind = KUBE_RESULT_BOOKMARK;
        result->initial_events_end = event.initial_events_end;
        call->whole = call->whole || event.initial_events_end;

        if (event.initial_events_end) {
            call->most = 0;    /* events need less than a list */
        }

        return KUBE_OK;

    case KUBE_WATCH_ERROR:
        api_refused(call);
        return api_status(call, result, 0, event.status_text);

    case KUBE_WATCH_UNKNOWN:
        result->refusal = KUBE_REFUSAL_MALFORMED;
        result->what = "an event of an unknown type";
        memset(&result->object, 0, sizeof(kube_object_t));
        break;

    default:
        break;
    }

    api_judge(call, result);

    return KUBE_OK;
}


static kube_rc_t
api_metadata(api_call_t *call, kube_str_t text, kube_result_t *result)
{
    kube_rc_t         rc;
    kube_error_t      error;
    kube_list_meta_t  meta;

    rc = (call->messages != NULL)
             ? kube_decode_list_meta_message(text, &meta, &error)
             : kube_decode_list_meta(&call->lw->arena, text, &meta, &error);

    if (rc == KUBE_NOMEM && !call->lw->arena.full) {
        return api_end(call, result, rc, "");
    }

    if (rc != KUBE_OK || meta.continue_token.len > KUBE_CONTINUE_LEN_MAX) {
        return api_end(call, result, KUBE_PROTO,
                       "a list with unusable metadata");
    }

    kube_str_free(&call->lw->alloc, &call->token);

    if (kube_str_dup(&call->lw->alloc, meta.continue_token, &call->token)
        != KUBE_OK)
    {
        return api_end(call, result, KUBE_NOMEM, "");
    }

    call->meta_seen = true;

    result->kind = KUBE_RESULT_META;
    result->rv = meta.rv;

    return KUBE_OK;
}


/* Both sizes: what to set max_object to is for the log to say. */
static const char *
api_too_large(api_lw_t *lw)
{
    (void) snprintf(lw->what, sizeof(lw->what),
                    "its %zu bytes are more than max_object, %zu",
                    lw->item.size_bytes,
                    kube_frame_item_bytes(lw->conf.object_bytes_max));

    return lw->what;
}


/*
 * An item of a list, or an event.  It stays in hand until the reflector is
 * done with the result.  One that the process has died of is not decoded: as
 * if its text were too large to be held, but for the reason.
 */
static kube_rc_t
api_object(api_call_t *call, kube_result_t *result)
{
    bool              poison;
    kube_rc_t         rc;
    kube_envelope_t  *envelope;

    envelope = &call->lw->item.envelope;
    result->refusal = KUBE_REFUSAL_NONE;

    poison = api_take(call);
    envelope->too_large = (envelope->too_large || poison);

    if (poison && call->watch && envelope->meta.name.len == 0) {
        result->kind = KUBE_RESULT_UNREADABLE;
        result->what = api_poison;
        return KUBE_OK;
    }

    rc = call->watch ? api_event(call, envelope, result)
                     : api_list_item(call, envelope, result);

    if (poison && result->refusal == KUBE_REFUSAL_TOO_LARGE) {
        result->refusal = KUBE_REFUSAL_CRASHED;
        result->what = api_poison;

    } else if (envelope->too_large
               && result->refusal == KUBE_REFUSAL_TOO_LARGE)
    {
        result->what = api_too_large(call->lw);
    }

    return rc;
}


/* One item of the frame.  KUBE_AGAIN: it yields nothing. */
static kube_rc_t
api_item(api_call_t *call, kube_result_t *result)
{
    kube_str_t                kind;
    const kube_frame_item_t  *item;

    item = &call->lw->item;

    switch (item->kind) {

    case KUBE_FRAME_ITEM:
    case KUBE_FRAME_SKIPPED:
        return api_object(call, result);

    case KUBE_FRAME_METADATA:
        return api_metadata(call, item->bytes, result);

    case KUBE_FRAME_KIND:
        kind = item->bytes;

        /* in JSON it has its quotes */

        if (call->messages == NULL && kind.len > 2) {
            kind = (kube_str_t) { kind.data + 1, kind.len - 2 };
        }

        if (!kube_resource_is_list(call->lw->conf.resource, kind)) {
            return api_end(call, result, KUBE_PROTO,
                           "not a list of this resource");
        }

        call->kind_seen = true;
        return KUBE_AGAIN;

    default:
        call->end_seen = true;
        return KUBE_AGAIN;
    }
}


/*
 * Reads the item or event that *in begins with where it stands.  KUBE_OK: it
 * is the result.  KUBE_AGAIN: its end has not arrived.  KUBE_INVALID: it is for
 * the frame, and surprise says why.
 */
static kube_rc_t
api_scan(api_call_t *call, kube_str_t *in, kube_result_t *result)
{
    size_t              len;
    api_lw_t           *lw;
    kube_rc_t           rc;
    kube_frame_item_t  *item;

    lw = call->lw;
    item = &lw->item;

    item->bytes = (kube_str_t) { in->data, 0 };

    rc = kube_decode_scan_head(&lw->scan, lw->conf.resource, call->watch,
                               *in, &item->envelope);
    if (rc != KUBE_OK) {
        return rc;
    }

    if (api_take(call)) {
        lw->scan.surprise = KUBE_SURPRISE_NONE;
        return KUBE_INVALID;
    }

    rc = kube_decode_scan_body(&lw->scan, &lw->arena, &item->envelope,
                               &result->object, &result->dropped, &len);

    if (rc == KUBE_OK && !kube_frame_take(call->frame, in, len)) {
        rc = KUBE_INVALID;
    }

    if (rc != KUBE_OK) {
        kube_hand_leave(lw->conf.hand);
        kube_arena_reset(&lw->arena);
        return rc;
    }

    result->kind = call->watch ? KUBE_RESULT_EVENT : KUBE_RESULT_ITEM;
    result->type = lw->scan.type;
    result->rv = lw->scan.rv;
    result->refusal = KUBE_REFUSAL_NONE;
    result->what = "";
    result->surprise = lw->scan.surprise;

    api_judge(call, result);

    return KUBE_OK;
}


/*
 * One result from the front of *in.  KUBE_AGAIN: it is used up, but for what
 * is held.
 */
static kube_rc_t
api_next_item(api_call_t *call, kube_str_t *in, kube_result_t *result)
{
    kube_rc_t  rc;

    call->lw->scan.surprise = KUBE_SURPRISE_NONE;

    if (call->messages == NULL && kube_frame_at_item(call->frame, in)) {

        rc = api_scan(call, in, result);

        if (rc == KUBE_AGAIN && !call->ended && in->len <= API_HELD_MAX
            && call->looks < API_LOOKS_MAX)
        {
            call->held = in->len;
            call->looks++;
            return KUBE_AGAIN;
        }

        call->held = 0;
        call->looks = 0;

        if (rc == KUBE_OK) {
            return KUBE_OK;
        }
    }

    rc = (call->messages != NULL)
             ? kube_protobuf_frame_next(call->messages, in, &call->lw->item)
             : kube_frame_next(call->frame, in, &call->lw->item);

    result->surprise = call->lw->scan.surprise;

    if (rc == KUBE_OK) {
        rc = api_item(call, result);

    } else if (rc != KUBE_AGAIN) {
        rc = api_end(call, result, rc,
                     (rc == KUBE_NOMEM) ? ""
                     : (call->messages != NULL) ? "unreadable Protocol Buffers"
                     : kube_frame_other(call->frame) ? "JSON, but not a list"
                                                     : "unreadable JSON");
    }

    return rc;
}


/*
 * Nothing is in the buffer: one that was filled is likely to be filled again,
 * as in a list, and not to be made anew each time.
 */
static void
api_spare(api_call_t *call)
{
    if (call->cap > API_BUFFER_KEPT && call->most <= call->cap / 4) {
        kube_free(&call->lw->alloc, call->buffer);
        call->buffer = NULL;
        call->cap = 0;
    }

    call->most = 0;
}


/* The buffer up to the next result.  KUBE_AGAIN: it is used up. */
static kube_rc_t
api_parse(api_call_t *call, kube_result_t *result)
{
    kube_rc_t   rc;
    kube_str_t  in;

    while (call->used != call->len
           && (call->ended || call->used + call->held != call->len))
    {
        in.data = (const char *) call->buffer + call->used;
        in.len = call->len - call->used;

        rc = api_next_item(call, &in, result);
        call->used = call->len - in.len;

        if (rc == KUBE_OK) {
            return KUBE_OK;
        }

        if (call->held != 0) {
            break;
        }
    }

    if (call->held == 0) {
        call->used = 0;
        call->len = 0;
    }

    if (call->len == 0) {
        api_spare(call);
    }

    if (call->paused) {
        call->paused = false;
        call->lw->conf.io.resume(call->lw->conf.io.ctx, call->exchange);
    }

    return KUBE_AGAIN;
}


/* Something has begun and is not complete. */
static bool
api_partial(const api_call_t *call)
{
    return (call->messages != NULL)
               ? kube_protobuf_frame_partial(call->messages)
               : call->held != 0 || kube_frame_partial(call->frame);
}


/* Everything that arrived was looked at, and nothing more will. */
static kube_rc_t
api_finish(api_call_t *call, kube_result_t *result)
{
    if (call->messages != NULL && kube_protobuf_frame_end(call->messages)) {
        call->end_seen = true;
    }

    if (call->watch) {

        if (call->ended_rc == KUBE_OK && api_partial(call)) {
            return api_end(call, result, KUBE_CLOSED, "an event was cut off");
        }

        return api_end(call, result, call->ended_rc, call->text);
    }

    if (call->end_seen && call->kind_seen && call->meta_seen) {

        /* the answer to another request: ours may have all that we hold */

        if (call->others_seen && !call->ours_seen) {
            return api_end(call, result, KUBE_PROTO,
                           "a list of another namespace");
        }

        return api_end(call, result, KUBE_OK, "");
    }

    if (call->ended_rc != KUBE_OK) {
        return api_end(call, result, call->ended_rc, call->text);
    }

    return api_end(call, result, KUBE_PROTO,
                   call->end_seen ? "not a list" : "a list was cut off");
}


static bool
api_ready(void *ctx, const kube_call_t *handle)
{
    const api_call_t  *call = (const void *) handle;

    (void) ctx;

    if (call->over) {
        return false;
    }

    return call->ended
           || (call->code == 200
               && (!call->opened || call->used + call->held != call->len
                   || call->fresh != 0));
}


static void
api_send(api_call_t *call, uint64_t now_ms)
{
    kube_rc_t   rc;
    kube_io_t  *io;

    io = &call->lw->conf.io;

    rc = io->start(io->ctx, &call->request, &api_handler, call, now_ms,
                   &call->exchange);

    if (rc != KUBE_OK) {
        call->exchange = NULL;
        api_ended(call, rc, "");
    }
}


/*
 * A server, or what stands before it, that cannot do without an Accept it
 * knows, is asked once more, for JSON, and from then on for nothing else.
 */
static bool
api_ask_for_json(api_call_t *call)
{
    api_lw_t  *lw;

    lw = call->lw;

    if ((call->code != 406 && call->code != 415)
        || call->request.encoding != KUBE_ENCODING_AUTO)
    {
        return false;
    }

    api_hang_up(call);

    lw->refused = true;

    call->request.encoding = KUBE_ENCODING_JSON;
    call->ended = false;
    call->code = 0;
    call->retry_after_s = 0;
    call->used = 0;
    call->len = 0;

    api_send(call, lw->conf.io.now(lw->conf.io.ctx));

    return true;
}


static kube_rc_t
api_next(void *ctx, kube_call_t *handle, kube_result_t *result)
{
    kube_str_t   body;
    api_call_t  *call = (void *) handle;

    if (!api_ready(ctx, handle)) {
        return KUBE_AGAIN;
    }

    kube_arena_reset(&call->lw->arena);

    if (call->code == 0) {
        return api_end(call, result,
                       (call->ended_rc == KUBE_OK) ? KUBE_PROTO
                                                   : call->ended_rc,
                       call->text);
    }

    if (api_ask_for_json(call)) {
        return KUBE_AGAIN;
    }

    if (call->code != 200) {
        body.data = call->buffer;
        body.len = call->len;
        return api_status(call, result, call->code, body);
    }

    if (!call->opened) {

        if (!call->json && !call->protobuf) {
            return api_end(call, result, KUBE_PROTO,
                           "the answer is neither application/json nor "
                           "application/vnd.kubernetes.protobuf");
        }

        if (call->protobuf) {
            call->messages = kube_protobuf_frame_create(&call->lw->alloc,
                                                        api_mode(call),
                                                        call->lw->conf
                                                        .object_bytes_max);

            if (call->messages == NULL) {
                return api_end(call, result, KUBE_NOMEM, "");
            }
        }

        call->opened = true;
        result->kind = KUBE_RESULT_OPENED;

        return KUBE_OK;
    }

    if (api_parse(call, result) == KUBE_OK) {
        api_note(call, result->kind);
        return KUBE_OK;
    }

    if (call->fresh != 0) {
        result->kind = KUBE_RESULT_ALIVE;
        result->size_bytes = call->fresh;
        result->partial = (!call->watch || api_partial(call));
        call->fresh = 0;

        return KUBE_OK;
    }

    return call->ended ? api_finish(call, result) : KUBE_AGAIN;
}


/* A head that refuses says why, and for how long; the text may be missing. */
static bool
api_cut(void *ctx, kube_call_t *handle)
{
    api_call_t  *call = (void *) handle;

    (void) ctx;

    if (call->over || call->ended || call->code == 0 || call->code == 200) {
        return false;
    }

    api_hang_up(call);
    api_ended(call, KUBE_OK, "");

    return true;
}


static void
api_free(api_call_t *call)
{
    api_lw_t  *lw;

    lw = call->lw;

    kube_frame_destroy(call->frame);
    kube_protobuf_frame_destroy(call->messages);
    kube_str_free(&lw->alloc, &call->request.rv);
    kube_str_free(&lw->alloc, &call->request.continue_token);
    kube_str_free(&lw->alloc, &call->token);
    kube_free(&lw->alloc, call->buffer);
    kube_free(&lw->alloc, call);
}


static void
api_cancel(void *ctx, kube_call_t *handle)
{
    api_call_t  *call = (void *) handle;

    (void) ctx;

    api_hang_up(call);

    /* cut off, stalled or older than ours: another address may do better */

    if (call->code == 200 && !call->whole && !call->blameless
        && (!call->watch || call->request.initial_events))
    {
        api_verdict(call, KUBE_SERVER_BAD);
    }

    api_free(call);
}


static kube_rc_t
api_keep(api_lw_t *lw, kube_str_t s, kube_str_t *copy)
{
    return (s.len != 0) ? kube_str_dup(&lw->alloc, s, copy) : KUBE_OK;
}


static kube_call_t *
api_begin(api_lw_t *lw, bool watch, const kube_list_options_t *options,
    uint64_t now_ms)
{
    api_call_t      *call;
    kube_request_t  *request;

    call = kube_zalloc(&lw->alloc, sizeof(api_call_t));
    if (call == NULL) {
        return NULL;
    }

    call->lw = lw;
    call->watch = watch;
    call->blameless = options->beside;
    call->frame = kube_frame_create(&lw->alloc, api_mode(call),
                                    lw->conf.object_bytes_max);

    request = &call->request;

    request->resource = lw->conf.resource;
    request->encoding = lw->refused ? KUBE_ENCODING_JSON : lw->conf.encoding;
    request->ns = lw->conf.ns;
    request->label_selector = lw->conf.label_selector;
    request->field_selector = lw->conf.field_selector;
    request->watch = watch;
    request->bookmarks = watch;
    request->initial_events = (watch && options->initial_events);
    request->not_older_than = options->not_older_than;
    request->exact = options->exact;
    request->limit = options->limit;
    request->timeout_s = options->timeout_s;

    if (call->frame == NULL
        || api_keep(lw, options->rv, &request->rv) != KUBE_OK
        || api_keep(lw, options->continue_token, &request->continue_token)
           != KUBE_OK)
    {
        api_free(call);
        return NULL;
    }

    api_send(call, now_ms);

    return (void *) call;
}


static kube_call_t *
api_list(void *ctx, const kube_list_options_t *options, uint64_t now_ms)
{
    return api_begin(ctx, false, options, now_ms);
}


static kube_call_t *
api_watch(void *ctx, const kube_list_options_t *options, uint64_t now_ms)
{
    return api_begin(ctx, true, options, now_ms);
}


static void
api_credentials(void *ctx, uint64_t now_ms)
{
    api_lw_t  *lw = ctx;

    (void) lw->conf.io.credentials(lw->conf.io.ctx, now_ms);
}


static bool
api_suspect(void *ctx, const kube_call_t *handle)
{
    api_lw_t          *lw = ctx;
    const api_call_t  *call = (const void *) handle;

    return call->exchange != NULL
           && lw->conf.io.suspect(lw->conf.io.ctx, call->exchange);
}


static uint64_t
api_healed(void *ctx)
{
    api_lw_t  *lw = ctx;

    return lw->conf.io.healed(lw->conf.io.ctx);
}


static void
api_destroy(void *ctx)
{
    api_lw_t      *lw = ctx;
    kube_alloc_t   alloc;

    alloc = lw->alloc;

    kube_arena_done(&lw->arena);

    kube_str_free(&alloc, &lw->conf.ns);
    kube_str_free(&alloc, &lw->conf.label_selector);
    kube_str_free(&alloc, &lw->conf.field_selector);
    kube_free(&alloc, lw);
}


kube_rc_t
kube_api_lister_watcher_create(const kube_alloc_t *alloc,
    const kube_api_lister_watcher_conf_t *conf, kube_lister_watcher_t *lw)
{
    api_lw_t  *api;

    api = kube_zalloc(alloc, sizeof(api_lw_t));
    if (api == NULL) {
        return KUBE_NOMEM;
    }

    api->alloc = *alloc;
    api->conf = *conf;
    api->refused_ms = KUBE_NEVER;
    api->conf.ns = KUBE_STR_NULL;
    api->conf.label_selector = KUBE_STR_NULL;
    api->conf.field_selector = KUBE_STR_NULL;

    kube_arena_init(&api->arena, &api->alloc,
                    (conf->object_bytes_max + KUBE_STATUS_BYTES_MAX)
                    * API_ARENA_FACTOR);

    if (kube_str_dup(alloc, conf->ns, &api->conf.ns) != KUBE_OK
        || kube_str_dup(alloc, conf->label_selector,
                        &api->conf.label_selector) != KUBE_OK
        || kube_str_dup(alloc, conf->field_selector,
                        &api->conf.field_selector) != KUBE_OK)
    {
        api_destroy(api);
        return KUBE_NOMEM;
    }

    lw->list = api_list;
    lw->watch = api_watch;
    lw->next = api_next;
    lw->ready = api_ready;
    lw->cut = api_cut;
    lw->cancel = api_cancel;
    lw->credentials = api_credentials;
    lw->suspect = api_suspect;
    lw->healed = api_healed;
    lw->local = false;
    lw->destroy = api_destroy;
    lw->ctx = api;

    return KUBE_OK;
}
