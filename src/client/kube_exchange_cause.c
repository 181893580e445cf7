/*
 * kube_exchange_cause - why an exchange ended: libcurl's code and how far the
 * exchange had come, to one of our results.
 *
 * libcurl's codes are coarse (a chunk that is none and a lost connection are
 * one) and its texts change from version to version; what the sockets tell
 * does not.  The function is pure: anyone may call it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_exchange.h"


/* What a code says by itself. */
typedef enum {
    CAUSE_GARBLED = 0,      /* any code that is not in the table */
    CAUSE_DONE,
    CAUSE_MEMORY,
    CAUSE_UNREACHABLE,
    CAUSE_TIMEOUT,
    CAUSE_TLS,
    CAUSE_CUT,
    CAUSE_READ,             /* cut or garbled: the peer knows */
    CAUSES
} cause_t;

typedef struct {
    CURLcode  code;
    cause_t   cause;
} cause_code_t;


static const cause_code_t  cause_codes[] = {
    { CURLE_OK,                       CAUSE_DONE },
    { CURLE_OUT_OF_MEMORY,            CAUSE_MEMORY },
    { CURLE_FAILED_INIT,              CAUSE_UNREACHABLE },
    { CURLE_COULDNT_RESOLVE_PROXY,    CAUSE_UNREACHABLE },
    { CURLE_COULDNT_RESOLVE_HOST,     CAUSE_UNREACHABLE },
    { CURLE_COULDNT_CONNECT,          CAUSE_UNREACHABLE },
    { CURLE_PROXY,                    CAUSE_UNREACHABLE },
    { CURLE_OPERATION_TIMEDOUT,       CAUSE_TIMEOUT },
    { CURLE_SSL_CONNECT_ERROR,        CAUSE_TLS },
    { CURLE_PEER_FAILED_VERIFICATION, CAUSE_TLS },
    { CURLE_SSL_CERTPROBLEM,          CAUSE_TLS },
    { CURLE_SSL_CIPHER,               CAUSE_TLS },
    { CURLE_SSL_CACERT_BADFILE,       CAUSE_TLS },
    { CURLE_SSL_ISSUER_ERROR,         CAUSE_TLS },
    { CURLE_SSL_INVALIDCERTSTATUS,    CAUSE_TLS },
    { CURLE_SSL_CLIENTCERT,           CAUSE_TLS },
    { CURLE_USE_SSL_FAILED,           CAUSE_TLS },
    { CURLE_PARTIAL_FILE,             CAUSE_CUT },
    { CURLE_SEND_ERROR,               CAUSE_CUT },
    { CURLE_GOT_NOTHING,              CAUSE_CUT },
    { CURLE_ABORTED_BY_CALLBACK,      CAUSE_CUT },
    { CURLE_WRITE_ERROR,              CAUSE_CUT },
    { CURLE_RECV_ERROR,               CAUSE_READ }
};

/*
 * The columns are the stages: no socket, no peer, peer, ready, head.
 *
 * DONE before the head: libcurl is content with a head that was cut off.
 * MEMORY before the head is, before libcurl 8.4, its answer to a header line
 * of more than 100 KiB.  CUT before the request was due is a proxy that
 * refused.
 */
static const kube_rc_t  cause_results[CAUSES][KUBE_STAGES] = {

    [CAUSE_GARBLED] = { KUBE_IO, KUBE_PROTO, KUBE_PROTO, KUBE_PROTO,
                        KUBE_PROTO },

    [CAUSE_DONE] = { KUBE_IO, KUBE_CLOSED, KUBE_CLOSED, KUBE_CLOSED, KUBE_OK },

    [CAUSE_MEMORY] = { KUBE_NOMEM, KUBE_NOMEM, KUBE_NOMEM, KUBE_PROTO,
                       KUBE_NOMEM },

    [CAUSE_UNREACHABLE] = { KUBE_IO, KUBE_CONNECT, KUBE_CONNECT, KUBE_CONNECT,
                            KUBE_CONNECT },

    [CAUSE_TIMEOUT] = { KUBE_IO, KUBE_CONNECT, KUBE_TIMEOUT, KUBE_TIMEOUT,
                        KUBE_TIMEOUT },

    [CAUSE_TLS] = { KUBE_IO, KUBE_TLS, KUBE_TLS, KUBE_TLS, KUBE_TLS },

    [CAUSE_CUT] = { KUBE_IO, KUBE_CONNECT, KUBE_CONNECT, KUBE_CLOSED,
                    KUBE_CLOSED },

    [CAUSE_READ] = { KUBE_IO, KUBE_CONNECT, KUBE_CONNECT, KUBE_PROTO,
                     KUBE_PROTO }
};


kube_rc_t
kube_exchange_cause(CURLcode code, kube_stage_t stage, bool peer_gone)
{
    size_t   i;
    cause_t  cause;

    cause = CAUSE_GARBLED;

    for (i = 0; i < sizeof(cause_codes) / sizeof(cause_codes[0]); i++) {
        if (cause_codes[i].code == code) {
            cause = cause_codes[i].cause;
            break;
        }
    }

    if (cause == CAUSE_READ && peer_gone) {
        cause = CAUSE_CUT;
    }

    return cause_results[cause][stage];
}
