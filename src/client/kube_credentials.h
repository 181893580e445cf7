/*
 * kube_credentials - token, CA and client certificate as they are now.
 *
 * Files are read by whoever calls this, which is the informer process alone:
 * again when KUBE_CREDENTIALS_PERIOD_MS have passed (client-go: a minute for
 * tokens) and at once after a 401.  What cannot be read, or is empty or
 * malformed, leaves the last good value in place and is reported.  Secrets are
 * zeroed before they are freed, and are never logged.
 *
 * Where the configuration has an exec plugin, token and client certificate are
 * what it said last.  It is asked again a tenth of their lifetime before they
 * expire, at most a minute; after a 401; and after a failure, when 1 to 30 s
 * have passed.  What it said serves until it says something else.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_CREDENTIALS_H
#define KUBE_CREDENTIALS_H


#include "kube_config.h"
#include "kube_limits.h"
#include "kube_log.h"


#define KUBE_CREDENTIALS_PERIOD_MS  60000

typedef enum {
    KUBE_CREDENTIAL_TOKEN = 0,
    KUBE_CREDENTIAL_CA,
    KUBE_CREDENTIAL_CERTIFICATE,     /* and KEY: replaced together */
    KUBE_CREDENTIAL_KEY,
    KUBE_CREDENTIALS
} kube_credential_t;

/* What has changed; the certificate's bit stands for its key as well. */
#define KUBE_CREDENTIALS_TOKEN        (1u << KUBE_CREDENTIAL_TOKEN)
#define KUBE_CREDENTIALS_CA           (1u << KUBE_CREDENTIAL_CA)
#define KUBE_CREDENTIALS_CERTIFICATE  (1u << KUBE_CREDENTIAL_CERTIFICATE)

typedef struct kube_credentials_s  kube_credentials_t;

/* config is borrowed for the life of the object.  Nothing is read yet. */
kube_credentials_t *kube_credentials_create(const kube_alloc_t *alloc,
    const kube_config_t *config, kube_log_sink_t sink)  KUBE_MUST_CHECK;
void kube_credentials_destroy(kube_credentials_t *credentials);

/*
 * Reads what is due (everything with force).  *changed gets the bits of what
 * differs from before.
 *
 * As in client-go, inline data wins over a file for the CA, the certificate
 * and its key; a token file wins over an inline token, which is used as long
 * as the file has never been readable.
 *
 * KUBE_OK; KUBE_IO, KUBE_INVALID, KUBE_TOO_LARGE or KUBE_NOMEM if a needed
 * file has never been readable: then the next call reads again whatever the
 * time; KUBE_AGAIN if an exec plugin has yet to say its first word.  A refused
 * handshake (KUBE_TLS) is a reason to force: certificate and key may have been
 * read in mid-rotation.
 */
kube_rc_t kube_credentials_refresh(kube_credentials_t *credentials,
    uint64_t now_ms, bool force, unsigned *changed)  KUBE_MUST_CHECK;

/*
 * An exec plugin that runs: a descriptor, readable when a poll is due; -1: none
 * runs.
 */
int kube_credentials_fd(const kube_credentials_t *credentials);

/* Hears what it says.  True: it has ended, and a refresh is due. */
bool kube_credentials_poll(kube_credentials_t *credentials, uint64_t now_ms);

/* When an exec plugin is to be polled or asked; KUBE_NEVER: there is none. */
uint64_t kube_credentials_due(const kube_credentials_t *credentials);

/*
 * Which credential could not be read the last time, and why: for people,
 * escaped, without its content.  Borrowed until the next refresh; empty: all
 * could.
 */
const char *kube_credentials_why(const kube_credentials_t *credentials);

/*
 * What helps against that (KUBE_NO_CREDENTIALS), or against a handshake that
 * failed (KUBE_TLS): static; NULL: what helps against the cause.
 */
const char *kube_credentials_remedy(const kube_credentials_t *credentials,
    kube_rc_t rc);

/*
 * The marks (kube_ca.h) of those who may vouch for the server now: of the CA,
 * or one that says that the system's store does, or that nobody has to.
 * Returns how many; 0: there is a CA, and it has not been read.
 */
size_t kube_credentials_ca_marks(const kube_credentials_t *credentials,
    uint64_t marks[KUBE_CA_MARKS_MAX]);

/* Borrowed until the next refresh; empty if there is none. */
kube_str_t kube_credentials_get(const kube_credentials_t *credentials,
    kube_credential_t which);


#endif /* KUBE_CREDENTIALS_H */
