/*
 * fuzz_decode - libFuzzer target: what the written grammar lets pass cJSON
 * parses as well, printed again it decodes to the same, and every view keeps
 * within its limits.
 *
 * The first byte chooses what the rest is: an object of either resource, a
 * watch event, a list's metadata.  A faster decoder is to be compared with
 * kube_decode_object() here.  No test: an aid to find what the tests lack.
 *
 * clang -g -O1 -fsanitize=fuzzer,address,undefined -Isrc/base -Isrc/api
 *     t/fuzz/fuzz_decode.c src/base/kube_*.c src/api/kube_*.c -lcjson
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "kube_decode.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void *
fuzz_alloc(void *ctx, size_t size)
{
    (void) ctx;

    return malloc(size);
}


static void
fuzz_free(void *ctx, void *p)
{
    (void) ctx;

    free(p);
}


static const kube_alloc_t  fuzz_heap = { fuzz_alloc, fuzz_free, NULL };


static void
fuzz_assert(bool ok)
{
    if (!ok) {
        abort();
    }
}


static void
fuzz_check_object(const kube_object_t *o)
{
    size_t              i;
    kube_rv_t           rv;
    const kube_meta_t  *meta;

    meta = kube_object_meta(o);

    fuzz_assert(kube_name_is_label(meta->ns));
    fuzz_assert(kube_name_is_subdomain(meta->name));
    fuzz_assert(meta->uid.len >= 1 && meta->uid.len <= KUBE_UID_LEN_MAX);
    fuzz_assert(kube_rv_parse(meta->rv, &rv) == KUBE_OK);

    if (o->resource == KUBE_RESOURCE_SERVICES) {
        fuzz_assert(o->u.service.cluster_ips_n <= KUBE_CLUSTER_IPS_MAX);
        fuzz_assert(o->u.service.ports_n <= KUBE_SERVICE_PORTS_MAX);

        for (i = 0; i < o->u.service.ports_n; i++) {
            fuzz_assert(o->u.service.ports[i].port != 0);
        }

        return;
    }

    fuzz_assert(o->u.slice.ports_n <= KUBE_SLICE_PORTS_MAX);
    fuzz_assert(o->u.slice.endpoints_n <= KUBE_SLICE_ENDPOINTS_MAX);

    for (i = 0; i < o->u.slice.endpoints_n; i++) {
        fuzz_assert(o->u.slice.endpoints[i].address.family
                    == o->u.slice.family);
        fuzz_assert(o->u.slice.endpoints[i].node.len <= KUBE_STRING_LEN_MAX);
    }
}


/* cJSON prints 1e999 as null: such a tree does not come back. */
static bool
fuzz_is_finite(const cJSON *tree)
{
    const cJSON  *child;

    if (cJSON_IsNumber(tree)) {
        return tree->valuedouble - tree->valuedouble == 0.0;
    }

    for (child = tree->child; child != NULL; child = child->next) {
        if (!fuzz_is_finite(child)) {
            return false;
        }
    }

    return true;
}


/* Printed by cJSON and read again: the same verdict, the same counts. */
static void
fuzz_object(kube_arena_t *arena, kube_resource_t resource, kube_str_t text)
{
    cJSON          *tree;
    uint32_t        dropped, again_dropped;
    kube_rc_t       rc, again_rc;
    kube_str_t      printed;
    kube_error_t    error;
    kube_object_t   object, again;

    rc = kube_decode_object(arena, resource, text, &object, &dropped, &error);
    fuzz_assert(rc == KUBE_OK || rc == KUBE_INVALID);

    if (rc == KUBE_OK) {
        fuzz_check_object(&object);
    }

    if (kube_json_check(text, &error) != KUBE_OK) {
        fuzz_assert(rc == KUBE_INVALID && error.offset <= text.len);
        return;
    }

    fuzz_assert(kube_json_parse(arena, text, &tree, &error) == KUBE_OK);

    if (!fuzz_is_finite(tree)) {
        return;
    }

    fuzz_assert(kube_json_print(arena, tree, &printed) == KUBE_OK);
    fuzz_assert(kube_json_check(printed, &error) == KUBE_OK);

    again_rc = kube_decode_object(arena, resource, printed, &again,
                                  &again_dropped, &error);
    fuzz_assert(again_rc == rc && again_dropped == dropped);
    fuzz_assert(kube_str_eq(kube_object_meta(&again)->name,
                            kube_object_meta(&object)->name));

    if (rc == KUBE_OK && resource == KUBE_RESOURCE_ENDPOINTSLICES) {
        fuzz_assert(again.u.slice.endpoints_n == object.u.slice.endpoints_n);
        fuzz_assert(again.u.slice.ports_n == object.u.slice.ports_n);
    }
}


static void
fuzz_event(kube_arena_t *arena, kube_resource_t resource, kube_str_t text)
{
    uint32_t            dropped;
    kube_rc_t           rc;
    kube_error_t        error;
    kube_watch_event_t  event;

    rc = kube_decode_watch_event(arena, resource, text, &event, &dropped,
                                 &error);
    fuzz_assert(rc == KUBE_OK || rc == KUBE_INVALID);

    if (rc == KUBE_OK && event.type <= KUBE_WATCH_DELETED
        && event.object_rc == KUBE_OK)
    {
        fuzz_check_object(&event.object);
        fuzz_assert(event.rv.len != 0);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char              *copy;
    unsigned           what;
    kube_rc_t          rc;
    kube_str_t         text;
    kube_arena_t       arena;
    kube_error_t       error;
    kube_resource_t    resource;
    kube_list_meta_t   meta;

    if (size < 2) {
        return 0;
    }

    what = data[0];
    resource = (what & 1) ? KUBE_RESOURCE_SERVICES
                          : KUBE_RESOURCE_ENDPOINTSLICES;

    copy = malloc(size - 1);
    fuzz_assert(copy != NULL);
    memcpy(copy, data + 1, size - 1);

    text.data = copy;
    text.len = size - 1;

    kube_arena_init(&arena, &fuzz_heap, 256u << 20);

    switch ((what >> 1) % 3) {
    case 0:
        fuzz_object(&arena, resource, text);
        break;

    case 1:
        fuzz_event(&arena, resource, text);
        break;

    default:
        rc = kube_decode_list_meta(&arena, text, &meta, &error);
        fuzz_assert(rc == KUBE_OK || rc == KUBE_INVALID);
        fuzz_assert(rc != KUBE_OK || meta.rv.len != 0);
        break;
    }

    kube_arena_done(&arena);
    free(copy);

    return 0;
}
