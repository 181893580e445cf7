/*
 * test_zone_memory - what a zone costs before and after something is in it:
 * pages touched, of the image and of the writer's own memory.  Its size must
 * not matter.
 *
 * It counts pages, not time, and needs no more memory than it touches.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/mman.h>
#include <unistd.h>

#include "indexer_test.h"
#include "kube_zone_copy.h"
#include "kube_zone_image.h"


#define MEMORY_MAX       KUBE_ZONE_SIZE_MAX
#define MEMORY_BLOCKS    64

/* An empty zone of any size: private bytes, and bytes of the image. */
#define MEMORY_EMPTY     (2u << 20)
#define MEMORY_IMAGE     (256u << 10)

/* An object more: a record, an entry, and a row in each table. */
#define MEMORY_OBJECTS   2000
#define MEMORY_OBJECT    4096


typedef struct {
    char    *p;
    size_t   size;
} memory_block_t;

/* An allocator that knows which of its pages are in use. */
typedef struct {
    kube_alloc_t    alloc;
    memory_block_t  blocks[MEMORY_BLOCKS];
    size_t          heap_bytes;          /* of alloc, in use or not */
} memory_t;


/* Bytes of the pages that are there. */
static size_t
memory_resident(char *p, size_t size)
{
    size_t                at, i, n, part, page, found;
    static unsigned char  there[1u << 14];

    page = (size_t) sysconf(_SC_PAGESIZE);
    found = 0;

    for (at = 0; at < size; at += part) {
        part = size - at;

        if (part > sizeof(there) * page) {
            part = sizeof(there) * page;
        }

        assert_int_equal(mincore(p + at, part, there), 0);
        n = (part + page - 1) / page;

        for (i = 0; i < n; i++) {
            found += (there[i] & 1) ? page : 0;
        }
    }

    return found;
}


static void *
memory_pages(void *ctx, size_t size)
{
    void      *p;
    unsigned   i;
    memory_t  *m = ctx;

    p = mmap(NULL, size, PROT_READ|PROT_WRITE,
             MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);
    assert_true(p != MAP_FAILED);
    (void) madvise(p, size, MADV_NOHUGEPAGE);

    for (i = 0; m->blocks[i].p != NULL; i++) {
        assert_true(i + 1 < MEMORY_BLOCKS);
    }

    m->blocks[i] = (memory_block_t) { p, size };

    return p;
}


static void
memory_pages_free(void *ctx, void *p, size_t size)
{
    unsigned   i;
    memory_t  *m = ctx;

    for (i = 0; m->blocks[i].p != p; i++) {
        assert_true(i + 1 < MEMORY_BLOCKS);
    }

    assert_int_equal(m->blocks[i].size, size);
    m->blocks[i].p = NULL;
    assert_int_equal(munmap(p, size), 0);
}


static void *
memory_alloc(void *ctx, size_t size)
{
    memory_t  *m = ctx;

    m->heap_bytes += size;

    return malloc(size);
}


static void
memory_free(void *ctx, void *p)
{
    (void) ctx;

    free(p);
}


static void
memory_init(memory_t *m)
{
    memset(m, 0, sizeof(memory_t));

    m->alloc = (kube_alloc_t) {
        .alloc = memory_alloc,
        .free = memory_free,
        .ctx = m,
        .pages = memory_pages,
        .pages_free = memory_pages_free
    };
}


/* All that was asked of the heap, and the pages in use of all tables. */
static size_t
memory_private(memory_t *m)
{
    size_t    bytes;
    unsigned  i;

    bytes = m->heap_bytes;

    for (i = 0; i < MEMORY_BLOCKS; i++) {
        if (m->blocks[i].p != NULL) {
            bytes += memory_resident(m->blocks[i].p, m->blocks[i].size);
        }
    }

    return bytes;
}


static void
memory_no_leak(const memory_t *m)
{
    unsigned  i;

    for (i = 0; i < MEMORY_BLOCKS; i++) {
        assert_null(m->blocks[i].p);
    }
}


/* As nginx gives it: shared, zeroed, and not there before it is touched. */
static void
memory_zone(it_t *it, memory_t *m, size_t size)
{
    memset(it, 0, sizeof(it_t));
    memory_init(m);

    it->at.alloc = m->alloc;
    it->size = size;
    it->now_ms = 1000;
    it->mem = mmap(NULL, size, PROT_READ|PROT_WRITE,
                   MAP_SHARED|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);
    assert_true(it->mem != MAP_FAILED);

    assert_int_equal(kube_zone_create(&it->zone, it->mem, size,
                                      (kube_seed_t) { 3, 4 }), KUBE_OK);
}


static void
memory_start(it_t *it)
{
    assert_int_equal(it_start(it), KUBE_OK);
    assert_int_equal(it_scopes(it), KUBE_OK);
    assert_int_equal(kube_indexer_load(it->ix, it->now_ms), KUBE_OK);
}


static void
memory_done(it_t *it, memory_t *m)
{
    it_stop(it);
    memory_no_leak(m);
    assert_int_equal(munmap(it->mem, it->size), 0);
}


/* Lists n objects: Services without slices. */
static void
memory_list(it_t *it, unsigned n)
{
    char         name[24];
    unsigned     i;
    it_object_t  o;

    (void) it_mark(it, KUBE_DELTA_LIST_BEGIN, IT_SERVICES);

    for (i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);
        o = it_service(it, "shop", name);
        (void) it_apply(it, KUBE_DELTA_REPLACED, &o);
    }

    (void) it_mark(it, KUBE_DELTA_SYNC, IT_SERVICES);

    while (kube_publisher_run(it->publisher, 64, it->now_ms, 0) != 0) {
        /* void */
    }
}


static void
test_memory_of_an_empty_zone(void **state)
{
    it_t      it;
    size_t    size;
    memory_t  m;

    (void) state;

    for (size = 1u << 20; size <= MEMORY_MAX; size *= 8) {
        memory_zone(&it, &m, size);
        memory_start(&it);

        print_message("zone of %zu MiB, empty: %zu KiB of the image, %zu KiB "
                      "private\n", size >> 20,
                      memory_resident(it.mem, size) >> 10,
                      memory_private(&m) >> 10);
        assert_true(memory_resident(it.mem, size) <= MEMORY_IMAGE);
        assert_true(memory_private(&m) <= MEMORY_EMPTY);

        /* and the next one touches no more */
        it_stop(&it);
        m.heap_bytes = 0;
        memory_start(&it);
        assert_int_equal(kube_zone_validate(it.mem, size), KUBE_OK);
        assert_true(memory_resident(it.mem, size) <= MEMORY_IMAGE);
        assert_true(memory_private(&m) <= MEMORY_EMPTY);
        memory_done(&it, &m);
    }
}


/* What is held counts, also for who takes over, and not who held it before. */
static void
test_memory_follows_what_is_held(void **state)
{
    it_t      it;
    size_t    full, image;
    memory_t  m;

    (void) state;
    memory_zone(&it, &m, MEMORY_MAX);
    memory_start(&it);

    m.heap_bytes = 0;
    memory_list(&it, MEMORY_OBJECTS);
    full = memory_private(&m);
    image = memory_resident(it.mem, it.size);

    print_message("zone of %llu MiB, %u Services: %zu KiB of the image, "
                  "%zu KiB private\n", MEMORY_MAX >> 20, MEMORY_OBJECTS,
                  image >> 10, full >> 10);
    assert_true(full <= MEMORY_EMPTY + MEMORY_OBJECTS * MEMORY_OBJECT);

    /* a page of buckets each, at most */
    assert_true(image <= MEMORY_IMAGE + 2 * MEMORY_OBJECTS * MEMORY_OBJECT);

    it_stop(&it);
    m.heap_bytes = 0;
    memory_start(&it);
    assert_int_equal(kube_zone_writer_top(it.writer), MEMORY_OBJECTS);
    assert_true(memory_private(&m) <= full + MEMORY_EMPTY);
    assert_true(memory_resident(it.mem, it.size) <= image + MEMORY_IMAGE);
    memory_done(&it, &m);
}


/* Objects that come and go take the entries of those before them. */
static void
test_memory_of_coming_and_going(void **state)
{
    it_t         it;
    char         name[24];
    unsigned     i;
    memory_t     m;
    it_object_t  o;

    (void) state;
    memory_zone(&it, &m, 64u << 20);
    memory_start(&it);

    for (i = 0; i < MEMORY_OBJECTS; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);
        o = it_service(&it, "shop", name);
        (void) it_apply(&it, KUBE_DELTA_UPDATED, &o);
        (void) kube_publisher_run(it.publisher, 64, it.now_ms, 0);

        o.there = false;
        it_stamp(&it, &o);
        (void) it_apply(&it, KUBE_DELTA_DELETED, &o);
        (void) kube_publisher_run(it.publisher, 64, it.now_ms, 0);
        it.now_ms += 500;
    }

    /* what was freed rests for ten seconds */
    assert_in_range(kube_zone_writer_top(it.writer), 1, 30);
    assert_int_equal(kube_zone_validate(it.mem, it.size), KUBE_OK);
    memory_done(&it, &m);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_memory_of_an_empty_zone),
        cmocka_unit_test(test_memory_follows_what_is_held),
        cmocka_unit_test(test_memory_of_coming_and_going),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
