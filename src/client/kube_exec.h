/*
 * kube_exec - logs in by a program: the exec plugin of a kubeconfig, such as
 * "aws eks get-token".
 *
 * It starts the program, reads what it prints and judges it.  When to ask, and
 * what the answer replaces, is kube_credentials' to decide.  Nothing here
 * blocks: the host waits for a descriptor.  The informer process alone calls
 * it, with its own rights and environment.
 *
 * Sources: client-go plugin/pkg/client/auth/exec/exec.go,
 * pkg/apis/clientauthentication/v1/types.go, KEP-541.  It differs: a program
 * has KUBE_EXEC_TIMEOUT_MS, no terminal, and ends with who asked it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_EXEC_H
#define KUBE_EXEC_H


#include "kube_config.h"


/* What it may print: a token, a certificate and a key, in base64 of JSON. */
#define KUBE_EXEC_OUTPUT_MAX   (512u << 10)
#define KUBE_EXEC_TIMEOUT_MS   60000

/* What has expired by our clock is used, and asked for again so much later. */
#define KUBE_EXEC_EXPIRED_MS   30000

typedef struct kube_exec_s  kube_exec_t;

/* Borrowed until the next start, or the end. */
typedef struct {
    kube_str_t  token;           /* empty: none */
    kube_str_t  certificate;     /* PEM, with its key; empty: none */
    kube_str_t  key;
    uint64_t    lifetime_ms;     /* from now on; KUBE_NEVER: not said */
} kube_exec_result_t;

/* config, whose exec is set, is borrowed.  NULL: out of memory. */
kube_exec_t *kube_exec_create(const kube_alloc_t *alloc,
    const kube_config_t *config)  KUBE_MUST_CHECK;

/* Ends the program if it runs. */
void kube_exec_destroy(kube_exec_t *exec);

/*
 * Starts the program; one that runs is ended.  What the last one said is gone.
 * KUBE_OK, KUBE_IO (no process or descriptor, or the cluster's CA cannot be
 * read) or KUBE_NOMEM.
 */
kube_rc_t kube_exec_start(kube_exec_t *exec, uint64_t now_ms)
    KUBE_MUST_CHECK;

/* Readable, level-triggered, when a poll is due; -1: nothing runs. */
int kube_exec_fd(const kube_exec_t *exec);

/* When one that runs is to be polled even if the descriptor stays quiet. */
uint64_t kube_exec_deadline(const kube_exec_t *exec);

/*
 * KUBE_AGAIN: it runs.  Anything else ends it:
 *
 *   KUBE_OK         *result
 *   KUBE_IO         it could not be started, or failed
 *   KUBE_TIMEOUT    it took too long, and was killed
 *   KUBE_INVALID    it printed no ExecCredential of the version asked for
 *   KUBE_TOO_LARGE  it printed too much
 *   KUBE_NOMEM
 */
kube_rc_t kube_exec_poll(kube_exec_t *exec, uint64_t now_ms,
    kube_exec_result_t *result)  KUBE_MUST_CHECK;

/* What went wrong, for people, escaped: with the end of what it wrote to its
   standard error.  Empty: nothing. */
const char *kube_exec_why(const kube_exec_t *exec);

/* What helps against that: static; NULL: nothing has ever gone wrong. */
const char *kube_exec_remedy(const kube_exec_t *exec);


#endif /* KUBE_EXEC_H */
