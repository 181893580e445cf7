/*
 * kube_exchange - one HTTP exchange over libcurl: what is asked, the head, the
 * bytes, the end, and why it ended as it did.
 *
 * It is no loop and adds no transfer to one: kube_transport.c does, and is the
 * only one to call this but for a test of the causes.  libcurl forbids adding
 * and removing transfers inside its callbacks, which is where handlers run: an
 * exchange that is to end is only flagged there.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_EXCHANGE_H
#define KUBE_EXCHANGE_H


#include <curl/curl.h>

#include "kube_dialer.h"
#include "kube_transport.h"


/* All header lines of an exchange, those of 1xx heads and trailers included. */
#define KUBE_EXCHANGE_HEADER_BYTES_MAX  (64u << 10)

/*
 * What libcurl reads at once is also what a paused exchange may hold, and has
 * taken at once when its turn comes: of many that flood, each delays the others
 * by so much.
 */
#define KUBE_EXCHANGE_BUFFER_BYTES  (64u << 10)

/*
 * How often the socket of an exchange is looked at while it connects, waits for
 * its head, or is suspect: a SYN or a request without an answer for so long is
 * rare where nothing is wrong.
 */
#define KUBE_EXCHANGE_LOOK_MS  1000


/* How far an exchange has come, as its sockets and callbacks tell. */
typedef enum {
    KUBE_STAGE_NO_SOCKET = 0,  /* the process has no descriptor to spare */
    KUBE_STAGE_NO_PEER,        /* no name resolved, or no TCP */
    KUBE_STAGE_PEER,           /* TCP; a proxy's answer or TLS is awaited */
    KUBE_STAGE_READY,          /* the request may be sent */
    KUBE_STAGE_HEAD,           /* the head of the response has come */
    KUBE_STAGES
} kube_stage_t;

/*
 * Why an exchange ended with libcurl's code at that stage.  peer_gone says
 * that the peer has closed or reset the connection.  libcurl's texts play no
 * part: they differ between its versions.
 */
kube_rc_t kube_exchange_cause(CURLcode code, kube_stage_t stage,
    bool peer_gone);


/* A socket that libcurl opened through us, idle connections included. */
typedef struct {
    int               fd;
    kube_exchange_t  *exchange;    /* the last one to use it; NULL: idle */
} kube_socket_t;

/* What all exchanges of one transport share; the transport owns it. */
typedef struct {
    kube_alloc_t           alloc;
    kube_transport_conf_t  conf;           /* connect_timeout_ms is valid */
    kube_log_t             log;
    char                   agent[128];     /* of User-Agent */
    kube_socket_t         *sockets;
    size_t                 sockets_n;
    size_t                 sockets_cap;
    size_t                 unheard;        /* exchanges that use one of those
                                              that look idle: which is known
                                              once libcurl waits for it */
    uint64_t               now_ms;         /* of the host's last call */
    uint64_t               changed_ms;     /* CA, certificate; or KUBE_NEVER */
    unsigned               ca;             /* grows with each new one */
    bool                   answered;       /* a head came, by that CA */
    size_t                 taken_bytes;    /* of bodies, in this process() */
    kube_dialer_t          dialer;
    bool                   heard;          /* a head came, or bytes */
    bool                   more;           /* call process() again at once */
} kube_exchange_env_t;

struct kube_exchange_s {
    kube_exchange_env_t            *env;
    kube_exchange_t                *next;          /* in the transport */
    const kube_exchange_handler_t  *handler;
    void                           *ctx;
    CURL                           *easy;          /* NULL: never to be sent,
                                                      or not yet */
    const char                     *accept;        /* static */
    char                           *path;          /* parked: to be sent once
                                                      credentials are there */
    CURLU                          *url;
    struct curl_slist              *headers;
    struct curl_slist              *connect_to;
    size_t                          server;        /* index of the address */
    unsigned                        ca;            /* env's, at setup */
    uint64_t                        created_ms;
    uint64_t                        look_ms;       /* at its socket, next */
    uint64_t                        relieved_ms;   /* since it is suspect, when
                                                      a connection stood in its
                                                      place; or NEVER */
    size_t                          header_bytes;
    kube_stage_t                    stage;
    kube_rc_t                       rc;            /* of over */
    const char                     *why;           /* of over, static */
    CURLcode                        setup;         /* the first that failed */

    unsigned                        tls:1;
    unsigned                        direct:1;      /* by no proxy, no unix
                                                      socket */
    unsigned                        tried:1;       /* an address */
    unsigned                        claims:1;      /* what was dialed */
    unsigned                        suspect:1;     /* its peer is silent */
    unsigned                        peer_gone:1;
    unsigned                        added:1;       /* to the multi handle */
    unsigned                        responded:1;   /* response() was called */
    unsigned                        granted:1;     /* with a 200 */
    unsigned                        cancelled:1;   /* no callback any more */
    unsigned                        held:1;        /* paused by the owner */
    unsigned                        paused:1;      /* inside libcurl */
    unsigned                        over:1;        /* ends with rc, by us */
    unsigned                        unheard:1;     /* counted in the env's */

    char                            error[CURL_ERROR_SIZE];
};


/*
 * Makes an exchange for a path of the address at that index, neither linked
 * nor added; accept, which is static, is the header of that name.  KUBE_OK,
 * KUBE_NOMEM, KUBE_TOO_LARGE or KUBE_INVALID, as kube_transport_start().
 */
kube_rc_t kube_exchange_create(kube_exchange_env_t *env, size_t server,
    const char *path, const char *accept,
    const kube_exchange_handler_t *handler, void *ctx,
    kube_exchange_t **exchange)  KUBE_MUST_CHECK;

/*
 * Makes one without a handle of libcurl, to be ended with rc and the static
 * text instead of being added.  NULL: out of memory.
 */
kube_exchange_t *kube_exchange_create_failed(kube_exchange_env_t *env,
    kube_rc_t rc, const char *why, const kube_exchange_handler_t *handler,
    void *ctx)  KUBE_MUST_CHECK;

/*
 * Makes one for later: kube_exchange_unpark() does what create() does but for
 * the memory, and returns the same.  NULL: out of memory.
 */
kube_exchange_t *kube_exchange_park(kube_exchange_env_t *env,
    const char *path, const char *accept,
    const kube_exchange_handler_t *handler, void *ctx)  KUBE_MUST_CHECK;
kube_rc_t kube_exchange_unpark(kube_exchange_t *exchange, size_t server)
    KUBE_MUST_CHECK;

/* Frees an exchange that is neither linked nor added; calls no handler. */
void kube_exchange_destroy(kube_exchange_t *exchange);

/* Flags it for the loop to end it with rc; the first verdict stays. */
void kube_exchange_fail(kube_exchange_t *exchange, kube_rc_t rc,
    const char *why);

/*
 * Calls done(), unless it was cancelled.  code is libcurl's if libcurl ended
 * it; our own verdict comes first.  Returns whether the address is to blame:
 * nothing came from it that looks like an API server.
 */
bool kube_exchange_finish(kube_exchange_t *exchange, CURLcode code)
    KUBE_MUST_CHECK;

/* The socket that it uses; -1: none. */
int kube_exchange_socket(const kube_exchange_t *exchange);

/* Has it begin anew, over another connection; it is not added any more. */
void kube_exchange_restart(kube_exchange_t *exchange);

/*
 * Has it take the connection that was dialed, when it asks for a socket, and
 * none that libcurl has kept: those may be as dead as the one before.
 */
void kube_exchange_claim(kube_exchange_t *exchange);

/*
 * Notes that libcurl now uses fd for the exchange.  A descriptor that is not
 * in env->sockets is not a connection's and is passed over.
 */
void kube_exchange_use_socket(kube_exchange_t *exchange, int fd);

/*
 * Shuts the connections that nobody uses, unless it is unknown which these are.
 * libcurl has no call that closes them; it frees one, and its copy of the
 * client's key, once it finds it dead.
 */
void kube_exchange_shut_idle(const kube_exchange_env_t *env);

/*
 * The same for those of them that something has come over: it answers nothing
 * that was asked, and the next request would be given it (libcurl before 8.0).
 */
void kube_exchange_shut_unasked(const kube_exchange_env_t *env);

/*
 * For kube_exchange.c: sets every option but the callbacks of that file.
 * exchange->setup says what failed.
 */
void kube_exchange_set_options(kube_exchange_t *exchange, const char *path);


#endif /* KUBE_EXCHANGE_H */
