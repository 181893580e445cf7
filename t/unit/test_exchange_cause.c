/*
 * Tests of kube_exchange_cause: libcurl's code and how far the exchange had
 * come, to a result.  test_transport*.c provoke what can be provoked.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"

#include "kube_exchange.h"


/* The results are those of no socket, no peer, peer, ready, head. */
typedef struct {
    CURLcode   code;
    bool       peer_gone;
    kube_rc_t  rc[KUBE_STAGES];
} cause_case_t;


#define UNREACHABLE                                                           \
    { KUBE_IO, KUBE_CONNECT, KUBE_CONNECT, KUBE_CONNECT, KUBE_CONNECT }

#define TLS      { KUBE_IO, KUBE_TLS, KUBE_TLS, KUBE_TLS, KUBE_TLS }
#define GARBLED  { KUBE_IO, KUBE_PROTO, KUBE_PROTO, KUBE_PROTO, KUBE_PROTO }

#define CUT                                                                   \
    { KUBE_IO, KUBE_CONNECT, KUBE_CONNECT, KUBE_CLOSED, KUBE_CLOSED }

static const cause_case_t  cause_cases[] = {

    { CURLE_OK, false,
      { KUBE_IO, KUBE_CLOSED, KUBE_CLOSED, KUBE_CLOSED, KUBE_OK } },

    { CURLE_OUT_OF_MEMORY, false,
      { KUBE_NOMEM, KUBE_NOMEM, KUBE_NOMEM, KUBE_PROTO, KUBE_NOMEM } },

    { CURLE_COULDNT_RESOLVE_HOST, false, UNREACHABLE },
    { CURLE_COULDNT_RESOLVE_PROXY, false, UNREACHABLE },
    { CURLE_COULDNT_CONNECT, false, UNREACHABLE },
    { CURLE_COULDNT_CONNECT, true, UNREACHABLE },
    { CURLE_FAILED_INIT, false, UNREACHABLE },
    { CURLE_PROXY, false, UNREACHABLE },

    /* TCP but no TLS in time is another matter than nobody there */

    { CURLE_OPERATION_TIMEDOUT, false,
      { KUBE_IO, KUBE_CONNECT, KUBE_TIMEOUT, KUBE_TIMEOUT, KUBE_TIMEOUT } },

    { CURLE_SSL_CONNECT_ERROR, false, TLS },
    { CURLE_SSL_CONNECT_ERROR, true, TLS },
    { CURLE_PEER_FAILED_VERIFICATION, false, TLS },
    { CURLE_SSL_CERTPROBLEM, false, TLS },
    { CURLE_SSL_CIPHER, false, TLS },
    { CURLE_SSL_CACERT_BADFILE, false, TLS },
    { CURLE_SSL_ISSUER_ERROR, false, TLS },
    { CURLE_SSL_INVALIDCERTSTATUS, false, TLS },
    { CURLE_SSL_CLIENTCERT, false, TLS },
    { CURLE_USE_SSL_FAILED, false, TLS },

    { CURLE_PARTIAL_FILE, false, CUT },
    { CURLE_SEND_ERROR, false, CUT },
    { CURLE_GOT_NOTHING, false, CUT },
    { CURLE_ABORTED_BY_CALLBACK, false, CUT },
    { CURLE_WRITE_ERROR, false, CUT },

    /* one code for a lost connection, a refusing proxy, a chunk that is none */

    { CURLE_RECV_ERROR, true, CUT },
    { CURLE_RECV_ERROR, false,
      { KUBE_IO, KUBE_CONNECT, KUBE_CONNECT, KUBE_PROTO, KUBE_PROTO } },

    { CURLE_WEIRD_SERVER_REPLY, false, GARBLED },
    { CURLE_UNSUPPORTED_PROTOCOL, true, GARBLED },
    { CURLE_BAD_CONTENT_ENCODING, false, GARBLED },
    { CURL_LAST, false, GARBLED },
};


static void
test_cause_table(void **state)
{
    size_t               i;
    unsigned             stage;
    kube_rc_t            rc;
    const cause_case_t  *c;

    (void) state;

    for (i = 0; i < sizeof(cause_cases) / sizeof(cause_cases[0]); i++) {
        c = &cause_cases[i];

        for (stage = 0; stage < KUBE_STAGES; stage++) {
            rc = kube_exchange_cause(c->code, (kube_stage_t) stage,
                                     c->peer_gone);

            if (rc != c->rc[stage]) {
                print_error("code %d at stage %u: %d\n", (int) c->code, stage,
                            (int) rc);
                fail();
            }
        }
    }
}


/* Only a whole exchange is a success. */
static void
test_cause_success(void **state)
{
    int       code;
    unsigned  stage;

    (void) state;

    for (code = 0; code <= CURL_LAST; code++) {
        for (stage = 0; stage < KUBE_STAGES; stage++) {
            assert_int_equal(kube_exchange_cause((CURLcode) code,
                                                 (kube_stage_t) stage, false)
                             == KUBE_OK,
                             code == CURLE_OK && stage == KUBE_STAGE_HEAD);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_cause_table),
        cmocka_unit_test(test_cause_success),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
