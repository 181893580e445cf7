/*
 * kube_cli_options - what the command line of kube-informer says.
 *
 * It parses and checks; it opens no file (kube_config_kubeconfig() does) and
 * prints to stderr only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_CLI_OPTIONS_H
#define KUBE_CLI_OPTIONS_H


#include "kube_informer.h"
#include "kube_limits.h"


#define KUBE_CLI_SERVERS_MAX  8

typedef struct {
    const char         *kubeconfig;     /* NULL: none */
    const char         *context;
    const char         *token_file;
    const char         *ca_file;
    const char         *record;         /* NULL: no transcript is written */
    const char         *replay;         /* NULL: there is a server */
    const char         *verify;         /* URL or file; NULL: not asked for */
    const char         *informer;       /* of what is verified; NULL: any */
    const char         *servers[KUBE_CLI_SERVERS_MAX];
    size_t              servers_n;
    bool                in_cluster;
    kube_str_t          namespaces[KUBE_NAMESPACES_MAX];
    size_t              namespaces_n;   /* 0: all */
    kube_str_t          selectors[KUBE_RESOURCES];
    uint64_t            zone_size;      /* bytes */
    uint64_t            timeout_ms;     /* 0: none */
    uint64_t            page_size;
    kube_watch_list_t   watch_list;
    kube_endpoints_t    endpoints;
    bool                pods;
    kube_encoding_t     encoding;
    bool                until_synced;
    bool                digest;
    bool                quiet;
    bool                verbose;
    bool                help;
    bool                version;
} kube_cli_options_t;

/* Views into argv.  False: an error was printed (exit code 2). */
bool kube_cli_options_parse(kube_cli_options_t *options, int argc,
    char *const argv[])  KUBE_MUST_CHECK;

void kube_cli_usage(void);


#endif /* KUBE_CLI_OPTIONS_H */
