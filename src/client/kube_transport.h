/*
 * kube_transport - HTTP(S) exchanges with one API server over libcurl.
 *
 * It owns sockets and a private epoll descriptor, no thread of its own and no
 * clock: the host calls kube_transport_process() when the descriptor is
 * readable or the deadline has come, and sleeps otherwise.  Handlers run
 * inside that call only.  It decides which of several addresses is asked, and
 * that what waits for its head over a silent connection is sent over one that
 * stands; nothing else: no retry of what has failed, no redirect, no pause
 * between requests.
 *
 * TLS is always verified unless the configuration says otherwise; HTTP/1.1,
 * identity encoding, one connection for each exchange in flight, kept for the
 * next one; keepalive so that a dead peer is noticed (kube_tcp.h), and bare
 * connects while none is reached (kube_dialer.h); User-Agent
 * "nginx-kube-informer/VERSION (agent)".  Authorization goes to the configured
 * servers only.
 *
 * docs/internals/transport.md has the whole picture.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_TRANSPORT_H
#define KUBE_TRANSPORT_H


#include "kube_credentials.h"
#include "kube_request.h"


#define KUBE_SERVER_FIRST_MS  1000
#define KUBE_SERVER_MAX_MS    60000

/* Refusals in a row, a second apart, after which an address is bad. */
#define KUBE_SERVER_REFUSALS  3

typedef struct kube_transport_s  kube_transport_t;
typedef struct kube_exchange_s   kube_exchange_t;


/* The head of a final (not 1xx) response. */
typedef struct {
    int         code;
    size_t      server;            /* who answered, for a verdict */
    uint32_t    retry_after_s;     /* 0: none; at most KUBE_RETRY_AFTER_MAX */
    kube_str_t  content_type;      /* borrowed, without parameters */
} kube_response_t;

/* What an answer tells of the address that it came from. */
typedef enum {
    KUBE_SERVER_BAD = 0,  /* another address may do better: 5xx, 401, 404, HTML,
                             a list that has no end */
    KUBE_SERVER_DECLINES, /* this API server's word, and a no: by a head, or an
                             ERROR event that a watch begins with */
    KUBE_SERVER_REFUSES,  /* the same, and not the first to who asked: all who
                             wait in line have been asked for meanwhile */
    KUBE_SERVER_ANSWERS,  /* this API server's head, with a yes */
    KUBE_SERVER_GRANTS    /* what was asked for: an object, a list's metadata */
} kube_server_verdict_t;

typedef enum {
    KUBE_TAKE_MORE = 0,
    KUBE_TAKE_PAUSE,      /* these bytes were taken, and no more for now; if
                             none are left, done() may come nevertheless */
    KUBE_TAKE_ABORT       /* done() follows with KUBE_CLOSED */
} kube_take_t;

/*
 * What an exchange tells its owner, in this order: response once, bytes any
 * number of times, done once and last.  A failure before the head calls done
 * alone.  done's rc:
 *
 *   KUBE_OK       the body ended as HTTP says
 *   KUBE_CLOSED   the peer ended it too early, or the owner aborted it
 *   KUBE_CONNECT  no name, no TCP, or a proxy that refused
 *   KUBE_TLS      no TLS, or not with this peer
 *   KUBE_TIMEOUT  TCP, but no TLS within connect_timeout_ms
 *   KUBE_PROTO    no HTTP, or none that was asked for
 *   KUBE_NOMEM    out of memory
 *   KUBE_IO       out of descriptors
 *   KUBE_NO_CREDENTIALS  none could be read yet
 *
 * text is libcurl's or ours, escaped, "" for KUBE_OK, valid during the call.
 * The exchange is gone when done returns.
 */
typedef struct {
    kube_take_t  (*response)(void *ctx, const kube_response_t *response);
    kube_take_t  (*bytes)(void *ctx, const char *data, size_t len);
    void         (*done)(void *ctx, kube_rc_t rc, const char *text);
} kube_exchange_handler_t;


typedef struct {
    const kube_config_t       *config;               /* borrowed */
    const kube_credentials_t  *credentials;          /* borrowed */
    uint64_t                   connect_timeout_ms;   /* TCP and TLS */
    const char                *agent;                /* "nginx/1.22.1", which
                                                        is copied; NULL: none */
    size_t                     tick_bytes;           /* KUBE_TICK_BYTES */
    uint64_t                   seed;                 /* of jitter */
} kube_transport_conf_t;

/*
 * conf is copied, what it points to is borrowed.  The host ignores SIGPIPE.
 * NULL: out of memory or descriptors, or a configuration without a server.
 */
kube_transport_t *kube_transport_create(const kube_alloc_t *alloc,
    const kube_transport_conf_t *conf, kube_log_sink_t sink)
    KUBE_MUST_CHECK;

/* Ends every exchange without a callback.  No handler may call it. */
void kube_transport_destroy(kube_transport_t *transport);

/* Returns the private epoll descriptor, constant, readable level-triggered. */
int kube_transport_fd(const kube_transport_t *transport);

/*
 * Starts an exchange, with the credentials and the address of this moment.
 * handler and ctx must live until done or cancel.  No callback runs inside
 * this call, and nothing is sent before the next process(): the deadline is
 * due at once.  A handler may call it.
 * KUBE_OK, KUBE_NOMEM, KUBE_TOO_LARGE, KUBE_INVALID (as kube_request_path, or
 * the credentials name a CA that has never been read).
 */
kube_rc_t kube_transport_start(kube_transport_t *transport,
    const kube_request_t *request, const kube_exchange_handler_t *handler,
    void *ctx, uint64_t now_ms, kube_exchange_t **exchange)  KUBE_MUST_CHECK;

/*
 * Starts an exchange that is never sent: the next process() calls its done()
 * with rc and the static text.  KUBE_OK or KUBE_NOMEM.
 */
kube_rc_t kube_transport_refuse(kube_transport_t *transport, kube_rc_t rc,
    const char *why, const kube_exchange_handler_t *handler, void *ctx,
    kube_exchange_t **exchange)  KUBE_MUST_CHECK;

/*
 * Starts an exchange that waits for credentials: nothing is sent before
 * kube_transport_unpark(), which sends all that wait (KUBE_OK), or ends them
 * with rc and the static text at the next process().  KUBE_OK, KUBE_NOMEM,
 * KUBE_TOO_LARGE or KUBE_INVALID, as start.
 */
kube_rc_t kube_transport_park(kube_transport_t *transport,
    const kube_request_t *request, const kube_exchange_handler_t *handler,
    void *ctx, kube_exchange_t **exchange)  KUBE_MUST_CHECK;
void kube_transport_unpark(kube_transport_t *transport, kube_rc_t rc,
    const char *why);

/* Has the transport's descriptor readable when fd is; -1: none any more. */
void kube_transport_watch(kube_transport_t *transport, int fd);

/*
 * Ends an exchange without a callback; the pointer is dead afterwards.  A
 * handler may call it, even for its own exchange.
 */
void kube_transport_cancel(kube_transport_t *transport,
    kube_exchange_t *exchange);

/*
 * Takes bytes again after KUBE_TAKE_PAUSE, from the next process() on: the
 * deadline is due at once.
 */
void kube_transport_resume(kube_transport_t *transport,
    kube_exchange_t *exchange);

/*
 * Does what is ready, at most about tick_bytes of body, and returns.
 * Deadline: the monotonic ms at which it must be called even if the
 * descriptor stays quiet; if that is not after now_ms, more is ready; or
 * KUBE_NEVER.  Ask again after start, resume and cancel.
 */
void kube_transport_process(kube_transport_t *transport, uint64_t now_ms);
uint64_t kube_transport_deadline(const kube_transport_t *transport);

/*
 * Tells that credentials have changed: exchanges started from here on use
 * connections made from here on, unless only the token changed.  Those in
 * flight go on.
 */
void kube_transport_credentials_changed(kube_transport_t *transport,
    unsigned changed);

/*
 * True: a server has answered over a connection that was made with the CA of
 * now; so nothing is known yet of a CA that is new.
 */
bool kube_transport_answered(const kube_transport_t *transport);

/*
 * Says what the answer of an address was worth.  An exchange that failed
 * before its head counts as bad by itself, and so does one that is cancelled
 * when it had waited for its head for long.
 *
 * A refusal alone says nothing of the address: what is forbidden here may be so
 * everywhere.  It counts only while no exchange has a 200 of that address, and
 * once in KUBE_SERVER_FIRST_MS; KUBE_SERVER_REFUSALS of them with nothing
 * granted in between are bad, but not before one is KUBE_SERVER_REFUSES: what
 * comes first in the line may be forbidden, and all that comes behind granted.
 * The caller cancels the exchange of an ERROR event before it says so, for that
 * one's 200 was no yes.
 *
 * Where an answer turns out bad once it is over, connections that nobody uses
 * are closed: what is to come over one of them may be an answer that is late.
 *
 * The address in use stays in use until it is bad.  A bad one is passed over
 * by kube_backoff, of KUBE_SERVER_FIRST_MS to KUBE_SERVER_MAX_MS, unless
 * all are bad: then the one whose time is over first is asked.
 */
void kube_transport_verdict(kube_transport_t *transport, size_t server,
    kube_server_verdict_t verdict);

/*
 * True: the peer of that exchange, whose head has come, is silent (probes get
 * no answer), while another connection stands for the next exchange.  False for
 * what goes through a proxy or a unix socket, of which nothing is known.  It
 * lasts 10 s at most, or until something comes.
 */
bool kube_transport_suspect(const kube_transport_t *transport,
    const kube_exchange_t *exchange);

/*
 * How often a connection came about by a bare connect, after connecting had
 * failed or a peer was silent: where it grows, what could not be connected is
 * worth a try at once.
 */
uint64_t kube_transport_healed(const kube_transport_t *transport);

/* The address the next exchange will be sent to, as in the configuration. */
kube_str_t kube_transport_server(const kube_transport_t *transport);


#endif /* KUBE_TRANSPORT_H */
