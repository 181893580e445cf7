/*
 * kube_config - who we talk to and as whom: in-cluster, a kubeconfig file, or
 * plain URLs, all into one structure.
 *
 * It reads a kubeconfig (libyaml) but no credential file that is named in it:
 * kube_credentials does, in the informer process alone.  Inline secrets of a
 * kubeconfig are held here: kube_config_done() zeroes them.  Any process may
 * call it.
 *
 * Sources: client-go rest/config.go (InClusterConfig), tools/clientcmd/api/v1.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_CONFIG_H
#define KUBE_CONFIG_H


#include "kube_base.h"


#define KUBE_SERVERS_MAX  8

/* Where the service account of a pod is mounted. */
#define KUBE_SERVICE_ACCOUNT_DIR                                              \
    "/var/run/secrets/kubernetes.io/serviceaccount"


/*
 * A file, or inline bytes (decoded from base64), or both: kube_credentials.h
 * says which one wins.
 */
typedef struct {
    kube_str_t  path;        /* NUL-terminated; empty: none */
    kube_str_t  data;        /* empty: none */
} kube_source_t;

/* Of arguments, and of what stands in its environment. */
#define KUBE_EXEC_WORDS_MAX  64

/* A program that logs in: a kubeconfig's exec; kube_exec.h runs it. */
typedef struct {
    kube_str_t  command;       /* with a slash: where it is; without: a name
                                  for PATH; empty: there is none */
    kube_str_t  args[KUBE_EXEC_WORDS_MAX];
    size_t      args_n;
    kube_str_t  env[KUBE_EXEC_WORDS_MAX];    /* NAME=value */
    size_t      env_n;
    kube_str_t  api_version;   /* client.authentication.k8s.io/v1, v1beta1 */
    kube_str_t  install_hint;
    bool        cluster_info;  /* it is told of the cluster */
} kube_exec_conf_t;

typedef struct {
    kube_alloc_t   alloc;
    kube_str_t     servers[KUBE_SERVERS_MAX];   /* as add_server() left them */
    size_t         servers_n;
    kube_source_t  ca;
    kube_source_t  certificate;
    kube_source_t  key;
    kube_source_t  token;
    kube_str_t     tls_server_name;             /* empty: the host's name */
    kube_str_t     proxy_url;                   /* for https:// servers; empty:
                                                   none, whatever the
                                                   environment says */
    bool           tls_verify_off;
    kube_exec_conf_t  exec;
} kube_config_t;

/*
 * init copies alloc.  done zeroes and frees all strings, and may repeat.
 *
 * Below, error may be NULL wherever it is an argument.
 */
void kube_config_init(kube_config_t *config, const kube_alloc_t *alloc);
void kube_config_done(kube_config_t *config);

/*
 * Fills config as a pod does: from KUBERNETES_SERVICE_HOST (an IPv6 address
 * without brackets) and _PORT, and the files in dir, which is
 * KUBE_SERVICE_ACCOUNT_DIR but in tests.  As with a kubeconfig, success
 * replaces all that config held, failure leaves it.
 * KUBE_OK, KUBE_INVALID (NULL or "" included), KUBE_TOO_LARGE or KUBE_NOMEM.
 */
kube_rc_t kube_config_in_cluster(kube_config_t *config, const char *host,
    const char *port, const char *dir, kube_error_t *error)  KUBE_MUST_CHECK;

/*
 * Fills config from a kubeconfig file; context NULL: its current-context.
 * Relative paths in it are relative to the file.  Known: server,
 * certificate-authority[-data], tls-server-name, insecure-skip-tls-verify
 * (refused with a CA), proxy-url, token, tokenFile, client-certificate[-data],
 * client-key[-data], exec.  auth-provider, username/password and impersonation
 * are refused with a text that names them: a half-working login is worse than
 * none.  Merge keys (<<) are followed.
 *
 * On success all that config held before is replaced, and kube_config_check()
 * has passed; on failure it is as it was.
 *
 * KUBE_IO (cannot be read), KUBE_TOO_LARGE, KUBE_INVALID, KUBE_NOT_FOUND (the
 * context, cluster or user), KUBE_NOMEM; error->what is a static text,
 * error->offset the line (1..) where known, else 0.
 */
kube_rc_t kube_config_kubeconfig(kube_config_t *config, const char *path,
    const char *context, kube_error_t *error)  KUBE_MUST_CHECK;

/*
 * Adds one address: https://host[:port][/prefix]; http:// for loopback
 * addresses, "localhost" and unix sockets (http://unix:/path.sock) only.  User
 * info, query, fragment and escapes are refused, and every spelling that
 * libcurl reads as another one.  What is kept is libcurl's spelling without a
 * slash at its end.
 *
 * KUBE_OK, KUBE_INVALID, KUBE_TOO_LARGE (too long, or too many), KUBE_NOMEM.
 */
kube_rc_t kube_config_add_server(kube_config_t *config, kube_str_t url,
    kube_error_t *error)  KUBE_MUST_CHECK;

/* The path of an address that was added, where it is a unix socket; or NULL. */
const char *kube_config_unix_path(const char *server);

/*
 * Copies a path or a name into the field (of this config), freeing what it
 * held; an empty value clears it.  KUBE_OK or KUBE_NOMEM (unchanged).
 */
kube_rc_t kube_config_set(kube_config_t *config, kube_str_t *field,
    kube_str_t value)  KUBE_MUST_CHECK;

/*
 * What must hold before use: a server; certificate and key both or neither;
 * no CA with tls_verify_off; a usable TLS server name and proxy URL.
 * error->what says the remedy.  KUBE_OK, KUBE_INVALID or KUBE_NOMEM.
 */
kube_rc_t kube_config_check(const kube_config_t *config, kube_error_t *error)
    KUBE_MUST_CHECK;


#endif /* KUBE_CONFIG_H */
