/*
 * An informer of Services: prints what is there, and what changes.
 *
 *     cc -o example example.c $(pkg-config --cflags --libs kube)
 *     ./example ~/.kube/config [namespace]
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <signal.h>
#include <stdio.h>

#include <kube/kube.h>


static volatile sig_atomic_t  ended;


static void
end(int signal_number)
{
    (void) signal_number;
    ended = 1;
}


static void
say(const char *what, const kube_v1_object_t *o)
{
    printf("%s %s/%s %lu\n", what, o->ns, o->name,
           (unsigned long) o->service->ports_n);
    fflush(stdout);
}


static void
added(void *ctx, const kube_v1_object_t *object, int in_initial_list)
{
    (void) ctx;
    say(in_initial_list ? "there" : "added", object);
}


static void
updated(void *ctx, const kube_v1_object_t *old_object,
    const kube_v1_object_t *new_object)
{
    (void) ctx;
    (void) old_object;
    say("updated", new_object);
}


static void
deleted(void *ctx, const kube_v1_object_t *object, int final_state_unknown)
{
    (void) ctx;
    (void) final_state_unknown;
    say("deleted", object);
}


int
main(int argc, char **argv)
{
    int               rc;
    char              why[256] = "";
    kube_t           *kube = NULL;
    kube_informer_t  *services;
    kube_options_t    options = { .size = sizeof(options) };
    kube_handlers_t   handlers = { .size = sizeof(handlers), .added = added,
                                   .updated = updated, .deleted = deleted };

    if (argc < 2) {
        fprintf(stderr, "usage: example kubeconfig [namespace]\n");
        return 2;
    }

    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, end);
    signal(SIGINT, end);

    options.kubeconfig = argv[1];
    rc = kube_create(&options, &kube, why, sizeof(why));

    if (rc == KUBE_E_OK) {
        rc = kube_informer(kube, KUBE_V1_SERVICE, argv[2], &services);
    }

    if (rc == KUBE_E_OK) {
        rc = kube_informer_add_handlers(services, &handlers, NULL);
    }

    if (rc == KUBE_E_OK) {
        rc = kube_start(kube);
    }

    while (rc == KUBE_E_OK && !ended) {
        rc = kube_run_once(kube, 500);
    }

    if (rc != KUBE_E_OK) {
        fprintf(stderr, "example: %s: %s\n", kube_strerror(rc), why);
    }

    kube_destroy(kube);

    return rc != KUBE_E_OK;
}
