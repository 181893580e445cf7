/*
 * kube_credentials - token, CA and client certificate as they are now.
 *
 * Files are read by whoever calls this, which is the informer process alone.
 * They are read again when KUBE_CREDENTIALS_PERIOD_MS have passed (client-go:
 * a minute for tokens) and at once after a 401.  What cannot be read, or is
 * empty or malformed, leaves the last good value in place and is reported.
 * Secrets are zeroed before they are freed, and are never logged.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_CREDENTIALS_H
#define KUBE_CREDENTIALS_H


#include "kube_config.h"
#include "kube_log.h"


#define KUBE_CREDENTIALS_PERIOD_MS  60000

#define KUBE_CREDENTIALS_TOKEN        0x1
#define KUBE_CREDENTIALS_CA           0x2
#define KUBE_CREDENTIALS_CERTIFICATE  0x4

typedef struct kube_credentials_s  kube_credentials_t;

/* config is borrowed for the life of the object.  Nothing is read yet. */
kube_credentials_t *kube_credentials_create(const kube_alloc_t *alloc,
    const kube_config_t *config, kube_log_sink_t sink)  KUBE_MUST_CHECK;
void kube_credentials_destroy(kube_credentials_t *credentials);

/*
 * Reads what is due (everything when force).  *changed gets the bits of what
 * differs from before.  KUBE_OK; KUBE_IO, KUBE_INVALID, KUBE_TOO_LARGE or
 * KUBE_NOMEM where a needed file has never been readable: then the next call
 * reads again whatever the time.  A refused handshake (KUBE_TLS) is a reason
 * to force: certificate and key may have been read in mid-rotation.
 */
kube_rc_t kube_credentials_refresh(kube_credentials_t *credentials,
    uint64_t now_ms, bool force, unsigned *changed)  KUBE_MUST_CHECK;

/* Borrowed until the next refresh; empty where there is none. */
kube_str_t kube_credentials_token(const kube_credentials_t *credentials);
kube_str_t kube_credentials_ca(const kube_credentials_t *credentials);
kube_str_t kube_credentials_certificate(const kube_credentials_t *c);
kube_str_t kube_credentials_key(const kube_credentials_t *credentials);


#endif /* KUBE_CREDENTIALS_H */
