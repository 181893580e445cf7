/*
 * fuzz_zone_image - an image with any bytes behind its header: readers and
 * validate stay inside, a take-over leaves an image that is valid.
 *
 * The input is a list of changes to an image with objects: 4 bytes where, 1
 * byte how many, then the bytes.  Build as fuzz_record.c says.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube_zone_image.h"
#include "kube_zone_reader.h"
#include "kube_zone_recover.h"
#include "kube_zone_scope.h"
#include "kube_zone_walk.h"
#include "kube_zone_writer.h"


#define FUZZ_SIZE      KUBE_ZONE_SIZE_MIN
#define FUZZ_SERVICES  12


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void *
fuzz_heap_alloc(void *ctx, size_t size)
{
    (void) ctx;

    return malloc(size);
}


static void
fuzz_heap_free(void *ctx, void *p)
{
    (void) ctx;
    free(p);
}


static const kube_alloc_t  fuzz_alloc = {
    .alloc = fuzz_heap_alloc,
    .free = fuzz_heap_free
};


static void
fuzz_require(bool what)
{
    if (!what) {
        abort();
    }
}


static uint32_t
fuzz_stage(kube_zone_writer_t *w, const kube_object_t *object)
{
    size_t    size;
    uint32_t  entry;
    uint64_t  buf[128];

    size = kube_record_size(object);
    fuzz_require(size != 0 && size <= sizeof(buf));
    kube_record_encode(object, buf);

    kube_zone_writer_now(w, 20000);

    if (kube_zone_stage(w, (kube_record_t *) (void *) buf, 0, &entry)
        != KUBE_OK)
    {
        return 0;
    }

    return entry;
}


static void
fuzz_put(kube_zone_writer_t *w, unsigned i)
{
    bool             changed;
    char             name[16], slice[24];
    uint32_t         service, slices[1];
    kube_object_t    object;
    kube_endpoint_t  ep;

    snprintf(name, sizeof(name), "svc-%u", i);
    snprintf(slice, sizeof(slice), "%s-x", name);

    memset(&object, 0, sizeof(object));
    object.u.service.meta.ns = KUBE_STR("shop");
    object.u.service.meta.name = kube_str(name);
    service = fuzz_stage(w, &object);

    memset(&object, 0, sizeof(object));
    memset(&ep, 0, sizeof(ep));
    ep.pod = kube_str(name);
    object.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    object.u.slice.meta.ns = KUBE_STR("shop");
    object.u.slice.meta.name = kube_str(slice);
    object.u.slice.service = kube_str(name);
    object.u.slice.endpoints = &ep;
    object.u.slice.endpoints_n = 1;
    slices[0] = fuzz_stage(w, &object);

    if (service != 0) {
        (void) !kube_zone_publish(w, service, slices, slices[0] != 0,
                                  &changed);
    }
}


static void
fuzz_mutate(unsigned char *mem, const uint8_t *data, size_t size)
{
    size_t    from, at, n;
    uint32_t  where;

    from = offsetof(kube_zone_image_t, reuse);

    while (size > 5) {
        memcpy(&where, data, 4);
        n = data[4];
        data += 5;
        size -= 5;
        n = (n < size) ? n : size;
        at = from + where % (FUZZ_SIZE - from);
        n = (n < FUZZ_SIZE - at) ? n : FUZZ_SIZE - at;
        memcpy(mem + at, data, n);
        data += n;
        size -= n;
    }
}


static void
fuzz_read(const kube_zone_t *zone, kube_arena_t *arena)
{
    char                  name[16];
    uint32_t              entry, cursor;
    unsigned              i;
    kube_health_t         health;
    kube_snapshot_t       s;
    kube_scope_info_t     info;
    const kube_record_t  *record;

    for (i = 0; i < FUZZ_SERVICES; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);

        if (kube_zone_find(zone, KUBE_RESOURCE_SERVICES, KUBE_STR("shop"),
                           kube_str(name), &entry) == KUBE_OK)
        {
            (void) !kube_zone_read(zone, entry, KUBE_STR("shop"),
                                   kube_str(name), arena, &s);
        }
    }

    cursor = 0;

    while (kube_zone_next(zone, KUBE_RECORD_SLICE, &cursor, arena, &record,
                          &entry) == KUBE_OK)
    {
        /* void */
    }

    (void) !kube_zone_scope_read(zone, 0, arena, &info);
    kube_zone_health(zone, 1, 1, &health);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    void                *mem;
    unsigned             i;
    kube_zone_t          zone;
    kube_arena_t         arena;
    kube_takeover_t      takeover;
    kube_zone_writer_t  *w;

    mem = calloc(1, FUZZ_SIZE);
    fuzz_require(mem != NULL);
    fuzz_require(kube_zone_create(&zone, mem, FUZZ_SIZE,
                                  (kube_seed_t) { 1, 2 }) == KUBE_OK);
    w = kube_zone_writer_create(&fuzz_alloc, &zone);
    fuzz_require(w != NULL);
    fuzz_require(kube_zone_writer_acquire(w, 1000, &takeover) == KUBE_OK);

    for (i = 0; i < FUZZ_SERVICES; i++) {
        fuzz_put(w, i);
    }

    kube_zone_writer_release(w);
    fuzz_mutate(mem, data, size);
    kube_arena_init(&arena, &fuzz_alloc, 16u << 20);

    if (kube_zone_validate(mem, FUZZ_SIZE) == KUBE_OK) {
        fuzz_read(&zone, &arena);
    }

    kube_arena_reset(&arena);
    fuzz_read(&zone, &arena);

    fuzz_require(kube_zone_writer_acquire(w, 2000, &takeover) == KUBE_OK);
    fuzz_require(kube_zone_validate(mem, FUZZ_SIZE) == KUBE_OK);

    for (i = 0; i < 2 * FUZZ_SERVICES; i++) {
        fuzz_put(w, i);
    }

    kube_arena_reset(&arena);
    fuzz_read(&zone, &arena);
    fuzz_require(kube_zone_validate(mem, FUZZ_SIZE) == KUBE_OK);

    kube_arena_done(&arena);
    kube_zone_writer_destroy(w);
    free(mem);

    return 0;
}
