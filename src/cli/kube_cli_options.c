/*
 * kube_cli_options - what the command line of kube-informer says.
 *
 * It reads no file and connects to nothing: kube_informer_main.c, the only one
 * to call it, does that with what is found here.  What is wrong is said on
 * standard error, by the option's name.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "kube_cli_options.h"
#include "kube_zone.h"


enum {
    OPTION_KUBECONFIG = 1,
    OPTION_CONTEXT,
    OPTION_SERVER,
    OPTION_TOKEN_FILE,
    OPTION_CA_FILE,
    OPTION_IN_CLUSTER,
    OPTION_NAMESPACE,
    OPTION_SELECTOR,
    OPTION_ZONE_SIZE,
    OPTION_PAGE_SIZE,
    OPTION_WATCH_LIST,
    OPTION_ENDPOINTS,
    OPTION_PODS,
    OPTION_ENCODING,
    OPTION_RECORD,
    OPTION_REPLAY,
    OPTION_VERIFY,
    OPTION_INFORMER,
    OPTION_TIMEOUT,
    OPTION_UNTIL_SYNCED,
    OPTION_DIGEST,
    OPTION_QUIET,
    OPTION_VERBOSE,
    OPTION_VERSION,
    OPTION_HELP
};

static const struct option  options_known[] = {
    { "kubeconfig",   required_argument, NULL, OPTION_KUBECONFIG },
    { "context",      required_argument, NULL, OPTION_CONTEXT },
    { "server",       required_argument, NULL, OPTION_SERVER },
    { "token-file",   required_argument, NULL, OPTION_TOKEN_FILE },
    { "ca-file",      required_argument, NULL, OPTION_CA_FILE },
    { "in-cluster",   no_argument,       NULL, OPTION_IN_CLUSTER },
    { "namespace",    required_argument, NULL, OPTION_NAMESPACE },
    { "selector",     required_argument, NULL, OPTION_SELECTOR },
    { "zone-size",    required_argument, NULL, OPTION_ZONE_SIZE },
    { "page-size",    required_argument, NULL, OPTION_PAGE_SIZE },
    { "watch-list",   required_argument, NULL, OPTION_WATCH_LIST },
    { "endpoints",    required_argument, NULL, OPTION_ENDPOINTS },
    { "pods",         no_argument,       NULL, OPTION_PODS },
    { "encoding",     required_argument, NULL, OPTION_ENCODING },
    { "record",       required_argument, NULL, OPTION_RECORD },
    { "replay",       required_argument, NULL, OPTION_REPLAY },
    { "verify",       required_argument, NULL, OPTION_VERIFY },
    { "informer",     required_argument, NULL, OPTION_INFORMER },
    { "timeout",      required_argument, NULL, OPTION_TIMEOUT },
    { "until-synced", no_argument,       NULL, OPTION_UNTIL_SYNCED },
    { "digest",       no_argument,       NULL, OPTION_DIGEST },
    { "quiet",        no_argument,       NULL, OPTION_QUIET },
    { "verbose",      no_argument,       NULL, OPTION_VERBOSE },
    { "version",      no_argument,       NULL, OPTION_VERSION },
    { "help",         no_argument,       NULL, OPTION_HELP },
    { NULL, 0, NULL, 0 }
};


void
kube_cli_usage(void)
{
    fputs(
"usage: kube-informer --kubeconfig FILE [--context NAME] [option ...]\n"
"       kube-informer --server URL [--token-file FILE] [--ca-file FILE] ...\n"
"       kube-informer --in-cluster ...\n"
"       kube-informer --replay FILE ...\n"
"       kube-informer --verify URL|FILE --server URL ...\n"
"\n"
"Prints one JSON line for each change of a Service or of its endpoints;\n"
"\"refused\": it is held no more, though the cluster has it still.\n"
"\n"
"  --namespace NS        watch this namespace; may be repeated (default: all)\n"
"  --selector RES=EXPR   label selector of services, endpointslices,\n"
"                        endpoints or pods\n"
"  --zone-size SIZE      room for objects, 64k to 4g (default: 64m)\n"
"  --page-size N         objects a page, 0: one piece (default: 500)\n"
"  --watch-list HOW      lists as streams: on, off, or auto: unless the\n"
"                        server is found to have none (default: auto)\n"
"  --endpoints WHAT      slices, endpoints, or auto: Endpoints where there\n"
"                        are no EndpointSlices (default: auto)\n"
"  --pods                the metadata of Pods, too\n"
"  --encoding HOW        of objects: json, protobuf, or auto: Protocol\n"
"                        Buffers where the server has them (default: auto)\n"
"  --record FILE         write what is asked and answered: objects, but no\n"
"                        credentials; --replay FILE answers from it what\n"
"                        is asked with the same options\n"
"  --until-synced        end once everything was listed; it is a failure if a\n"
"                        part is refused, by the server or for want of room\n"
"  --digest              also a line whenever a resourceVersion is complete\n"
"  --quiet               no line for a change\n"
"  --timeout SECONDS     end then; with --until-synced that is a failure\n"
"  --verbose             say on stderr what happens\n"
"  --version, --help (-h)\n"
"\n"
"Exit codes: 0 as asked, 1 failure, 2 wrong usage.\n"
"\n"
"  --verify URL|FILE     compare what a gateway holds, or a state file, with\n"
"                        the API server at the same resourceVersion, and end;\n"
"                        URL is that of its kube_status location.  A line for\n"
"                        each object that differs (what is held, what the\n"
"                        server has), for each that the gateway says it\n"
"                        refused, and for each resource and namespace.  The\n"
"                        gateway's selectors are given with --selector;\n"
"                        --timeout is 60 where it is not given\n"
"  --informer NAME       the kube_informer block of the gateway (default: the\n"
"                        one of the name \"default\", or the first)\n"
"\n"
"Exit codes then: 0 equal, 1 different, 2 not compared: stderr says why.\n",
          stdout);
}


static bool
options_bad(const char *name, const char *what, const char *value)
{
    fprintf(stderr, "kube-informer: %s: %s \"%s\"\n", name, what, value);
    return false;
}


static bool
options_size(const char *text, uint64_t *size)
{
    uint64_t    unit;
    kube_str_t  s;

    s = kube_str(text);
    unit = 1;

    if (s.len != 0) {

        switch (s.data[s.len - 1] | 0x20) {

        case 'k':
            unit = 1u << 10;
            s.len--;
            break;

        case 'm':
            unit = 1u << 20;
            s.len--;
            break;

        case 'g':
            unit = 1u << 30;
            s.len--;
            break;

        default:
            break;
        }
    }

    if (kube_str_to_u64(s, KUBE_ZONE_SIZE_MAX / unit, size) != KUBE_OK) {
        return false;
    }

    *size *= unit;

    return *size >= KUBE_ZONE_SIZE_MIN;
}


static bool
options_selector(kube_cli_options_t *o, const char *text)
{
    size_t      len;
    unsigned    r;
    kube_str_t  s, name;

    s = kube_str(text);

    for (r = 0; r < KUBE_RESOURCES; r++) {
        name = kube_str(kube_resource_text((kube_resource_t) r));
        len = name.len;

        if (s.len > len + 1
            && s.len - len - 1 <= KUBE_SELECTOR_LEN_MAX
            && memcmp(s.data, name.data, len) == 0
            && s.data[len] == '=')
        {
            o->selectors[r].data = s.data + len + 1;
            o->selectors[r].len = s.len - len - 1;
            return true;
        }
    }

    return options_bad("--selector",
                       "neither services=..., endpointslices=..., "
                       "endpoints=... nor pods=...", text);
}


static bool
options_list(kube_cli_options_t *o, int option, const char *value)
{
    kube_str_t  ns;

    if (option == OPTION_SERVER) {

        if (o->servers_n == KUBE_CLI_SERVERS_MAX) {
            return options_bad("--server", "one too many", value);
        }

        o->servers[o->servers_n++] = value;

        return true;
    }

    ns = kube_str(value);

    if (!kube_name_is_label(ns)) {
        return options_bad("--namespace", "not a namespace", value);
    }

    if (o->namespaces_n == KUBE_NAMESPACES_MAX) {
        return options_bad("--namespace", "one too many", value);
    }

    o->namespaces[o->namespaces_n++] = ns;

    return true;
}


static bool
options_watch_list(kube_cli_options_t *o, const char *value)
{
    size_t  i;

    static const struct {
        const char         *word;
        kube_watch_list_t   watch_list;
    } words[] = {
        { "auto", KUBE_WATCH_LIST_AUTO },
        { "on", KUBE_WATCH_LIST_ON },
        { "off", KUBE_WATCH_LIST_OFF }
    };

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i].word, value) == 0) {
            o->watch_list = words[i].watch_list;
            return true;
        }
    }

    return options_bad("--watch-list", "none of auto, on and off", value);
}


static bool
options_endpoints(kube_cli_options_t *o, const char *value)
{
    unsigned  i;

    static const char *const  words[] = {
        [KUBE_ENDPOINTS_AUTO] = "auto",
        [KUBE_ENDPOINTS_SLICES] = "slices",
        [KUBE_ENDPOINTS_ENDPOINTS] = "endpoints"
    };

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i], value) == 0) {
            o->endpoints = (kube_endpoints_t) i;
            return true;
        }
    }

    return options_bad("--endpoints", "none of auto, slices and endpoints",
                       value);
}


static bool
options_encoding(kube_cli_options_t *o, const char *value)
{
    unsigned  i;

    static const char *const  words[] = {
        [KUBE_ENCODING_AUTO] = "auto",
        [KUBE_ENCODING_JSON] = "json",
        [KUBE_ENCODING_PROTOBUF] = "protobuf"
    };

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i], value) == 0) {
            o->encoding = (kube_encoding_t) i;
            return true;
        }
    }

    return options_bad("--encoding", "none of auto, json and protobuf", value);
}


static bool
options_number(kube_cli_options_t *o, int option, const char *value)
{
    switch (option) {

    case OPTION_ZONE_SIZE:
        return options_size(value, &o->zone_size)
               || options_bad("--zone-size", "not a size from 64k to 4g",
                              value);

    case OPTION_PAGE_SIZE:
        return kube_str_to_u64(kube_str(value), 100000, &o->page_size)
                   == KUBE_OK
               || options_bad("--page-size", "not a number up to 100000",
                              value);

    default:

        if (kube_str_to_u64(kube_str(value), 31536000, &o->timeout_ms)
                != KUBE_OK
            || o->timeout_ms == 0)
        {
            return options_bad("--timeout", "not a number of seconds", value);
        }

        o->timeout_ms *= 1000;

        return true;
    }
}


static bool
options_one(kube_cli_options_t *o, int option, const char *value)
{
    switch (option) {

    case OPTION_KUBECONFIG:
        o->kubeconfig = value;
        return true;

    case OPTION_CONTEXT:
        o->context = value;
        return true;

    case OPTION_TOKEN_FILE:
        o->token_file = value;
        return true;

    case OPTION_CA_FILE:
        o->ca_file = value;
        return true;

    case OPTION_RECORD:
        o->record = value;
        return true;

    case OPTION_REPLAY:
        o->replay = value;
        return true;

    case OPTION_VERIFY:
        o->verify = value;
        return value[0] != '\0'
               || options_bad("--verify", "neither a URL nor a file", value);

    case OPTION_INFORMER:
        o->informer = value;
        return kube_name_is_label(kube_str(value))
               || options_bad("--informer", "not a name", value);

    case OPTION_SERVER:
    case OPTION_NAMESPACE:
        return options_list(o, option, value);

    case OPTION_SELECTOR:
        return options_selector(o, value);

    case OPTION_ZONE_SIZE:
    case OPTION_PAGE_SIZE:
    case OPTION_TIMEOUT:
        return options_number(o, option, value);

    case OPTION_WATCH_LIST:
        return options_watch_list(o, value);

    case OPTION_ENDPOINTS:
        return options_endpoints(o, value);

    case OPTION_ENCODING:
        return options_encoding(o, value);

    case OPTION_IN_CLUSTER:
        o->in_cluster = true;
        return true;

    case OPTION_PODS:
        o->pods = true;
        return true;

    case OPTION_UNTIL_SYNCED:
        o->until_synced = true;
        return true;

    case OPTION_DIGEST:
        o->digest = true;
        return true;

    case OPTION_QUIET:
        o->quiet = true;
        return true;

    case OPTION_VERBOSE:
        o->verbose = true;
        return true;

    case OPTION_VERSION:
        o->version = true;
        return true;

    case OPTION_HELP:
    case 'h':
        o->help = true;
        return true;

    default:
        /* getopt has said why */
        fputs("kube-informer: see --help\n", stderr);
        return false;
    }
}


/*
 * What is compared, and how, is the gateway's: an option that would say so
 * otherwise is refused by its name.  given: a bit for each option.
 */
static bool
options_verify(uint64_t given)
{
    size_t  i;

    static const struct {
        int          option;
        const char  *why;
    } refused[] = {
        { OPTION_NAMESPACE, "the gateway's namespaces are compared" },
        { OPTION_ZONE_SIZE, "nothing is held in a zone" },
        { OPTION_WATCH_LIST, "a list at one version is asked for" },
        { OPTION_ENDPOINTS, "what the gateway follows is compared" },
        { OPTION_PODS, "a gateway holds no Pods" },
        { OPTION_ENCODING, "the list is asked for as JSON" },
        { OPTION_RECORD, "no transcript is written" },
        { OPTION_REPLAY, "a server is needed, not a transcript" },
        { OPTION_UNTIL_SYNCED, "it ends by itself" },
        { OPTION_DIGEST, "digests are printed in any case" }
    };

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        if (given & (uint64_t) 1 << refused[i].option) {
            fprintf(stderr, "kube-informer: --%s with --verify: %s\n",
                    options_known[refused[i].option - 1].name,
                    refused[i].why);
            return false;
        }
    }

    return true;
}


bool
kube_cli_options_parse(kube_cli_options_t *options, int argc,
    char *const argv[])
{
    int       option, sources;
    uint64_t  given;

    memset(options, 0, sizeof(kube_cli_options_t));

    options->zone_size = 64u << 20;
    options->page_size = kube_reflector_conf_defaults(0).page_size;
    options->watch_list = KUBE_WATCH_LIST_AUTO;
    given = 0;

    for ( ;; ) {
        option = getopt_long(argc, argv, "h", options_known, NULL);

        if (option == -1) {
            break;
        }

        if (!options_one(options, option, optarg)) {
            return false;
        }

        if (option < OPTION_HELP) {
            given |= (uint64_t) 1 << option;
        }
    }

    if (options->help || options->version) {
        return true;
    }

    if (options->verify != NULL && !options_verify(given)) {
        return false;
    }

    if (options->verify == NULL && options->informer != NULL) {
        return options_bad("--informer", "without --verify:",
                           options->informer);
    }

    if (options->selectors[KUBE_RESOURCE_PODS].len != 0 && !options->pods) {
        return options_bad("--selector", "of pods, without --pods:",
                           options->selectors[KUBE_RESOURCE_PODS].data);
    }

    if (optind != argc) {
        return options_bad("argument", "not an option:", argv[optind]);
    }

    sources = (options->kubeconfig != NULL) + (options->servers_n != 0)
              + options->in_cluster + (options->replay != NULL);

    if (sources == 0) {
        fprintf(stderr, "kube-informer: one of --kubeconfig, --server%s "
                "is needed; see --help\n",
                (options->verify != NULL) ? " and --in-cluster"
                                          : ", --in-cluster and --replay");
        return false;
    }

    if (sources != 1) {
        fputs("kube-informer: only one of --kubeconfig, --server, "
              "--in-cluster and --replay can be given; see --help\n", stderr);
        return false;
    }

    if (options->servers_n == 0
        && (options->token_file != NULL || options->ca_file != NULL))
    {
        fputs("kube-informer: --token-file and --ca-file need --server; "
              "a kubeconfig or a pod names its own\n", stderr);
        return false;
    }

    if (options->context != NULL && options->kubeconfig == NULL) {
        return options_bad("--context", "without --kubeconfig:",
                           options->context);
    }

    return true;
}
