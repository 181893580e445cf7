/*
 * A controller: counts the ready endpoints of each Service, over all of its
 * slices, and prints the count when it may be another.
 *
 *     cc -o ready ready.c $(pkg-config --cflags --libs kube)
 *     ./ready ~/.kube/config [namespace]
 *
 * A handler only names the Service whose count may have changed; the loop works
 * through the names, and finds a Service's slices by an index.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <signal.h>
#include <stdio.h>

#include <kube/kube.h>


#define TRIES  5

static volatile sig_atomic_t  ended;
static kube_queue_t          *queue;


static void
end(int signal_number)
{
    (void) signal_number;
    ended = 1;
}


/* A slice may leave one Service for another: both have changed. */
static void
changed(const kube_v1_object_t *slice)
{
    char  key[512];

    if (slice->slice->service[0] == '\0') {
        return;
    }

    snprintf(key, sizeof(key), "%s/%s", slice->ns, slice->slice->service);

    if (kube_queue_add(queue, key) != KUBE_E_OK) {
        fprintf(stderr, "ready: no room for %s\n", key);
    }
}


static void
added(void *ctx, const kube_v1_object_t *slice, int in_initial_list)
{
    (void) ctx;
    (void) in_initial_list;
    changed(slice);
}


static void
updated(void *ctx, const kube_v1_object_t *old_slice,
    const kube_v1_object_t *new_slice)
{
    (void) ctx;
    changed(old_slice);
    changed(new_slice);
}


static void
deleted(void *ctx, const kube_v1_object_t *slice, int final_state_unknown)
{
    (void) ctx;
    (void) final_state_unknown;
    changed(slice);
}


static int
count(void *ctx, const kube_v1_object_t *slice)
{
    size_t         i;
    unsigned long *ready = ctx;

    for (i = 0; i < slice->slice->endpoints_n; i++) {
        *ready += slice->slice->endpoints[i].ready != 0;
    }

    return 0;
}


/* What the queue has; what fails is tried again later, a few times. */
static void
work(const kube_informer_t *slices)
{
    int            rc;
    const char    *key;
    unsigned long  ready;

    while ((key = kube_queue_get(queue)) != NULL) {
        ready = 0;
        rc = kube_informer_by_index(slices, "service", key, count, &ready);

        if (rc == KUBE_E_OK) {
            printf("%s %lu\n", key, ready);
            kube_queue_forget(queue, key);

        } else if (kube_queue_failures(queue, key) < TRIES) {
            rc = kube_queue_add_failed(queue, key);

        } else {
            fprintf(stderr, "ready: %s: %s\n", key, kube_strerror(rc));
            kube_queue_forget(queue, key);
        }

        kube_queue_done(queue, key);
    }

    fflush(stdout);
}


/* Milliseconds until the queue has a key, a second at most. */
static int
pause_ms(void)
{
    uint64_t  due = kube_queue_deadline_ms(queue), now = kube_now_ms();

    return (due <= now) ? 0 : (due - now < 1000) ? (int) (due - now) : 1000;
}


int
main(int argc, char **argv)
{
    int               rc;
    char              why[256] = "";
    kube_t           *kube = NULL;
    kube_informer_t  *slices;
    kube_options_t    options = { .size = sizeof(options) };
    kube_handlers_t   handlers = { .size = sizeof(handlers), .added = added,
                                   .updated = updated, .deleted = deleted };

    if (argc < 2) {
        fprintf(stderr, "usage: ready kubeconfig [namespace]\n");
        return 2;
    }

    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, end);
    signal(SIGINT, end);

    queue = kube_queue_create(100000);
    options.kubeconfig = argv[1];
    rc = (queue != NULL) ? kube_create(&options, &kube, why, sizeof(why))
                         : KUBE_E_NOMEM;

    if (rc == KUBE_E_OK) {
        rc = kube_informer(kube, KUBE_V1_ENDPOINTSLICE, argv[2], &slices);
    }

    if (rc == KUBE_E_OK) {
        rc = kube_informer_add_index(slices, "service", NULL, NULL);
    }

    if (rc == KUBE_E_OK) {
        rc = kube_informer_add_handlers(slices, &handlers, NULL);
    }

    if (rc == KUBE_E_OK) {
        rc = kube_start(kube);
    }

    /* not kube_wait_for_sync(), which no signal ends */

    while (rc == KUBE_E_OK && !ended
           && !kube_has_synced(kube, why, sizeof(why)))
    {
        rc = kube_run_once(kube, 1000);
    }

    while (rc == KUBE_E_OK && !ended) {
        work(slices);
        rc = kube_run_once(kube, pause_ms());
    }

    if (rc != KUBE_E_OK) {
        fprintf(stderr, "ready: %s: %s\n", kube_strerror(rc), why);
    }

    kube_destroy(kube);
    kube_queue_destroy(queue);

    return rc != KUBE_E_OK;
}
