/*
 * ngx_kube_zone - the shared zone's init callback: inherit, attach, create; and
 * the descriptors of its guard and of its wake-ups, one of each in each cycle.
 *
 * The callback runs before it is certain that the new cycle will be used, so
 * on inheritance it takes over the old cycle's handle and changes nothing.
 * What lies in the zone may have been written by any worker: the master reads
 * neither the place nor the geometry of an image from there.  nginx's slab
 * header stays intact (the master unlocks its mutex whenever a child dies);
 * the image is one allocation of all the pages the slab has.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "kube_zone_copy.h"
#include "kube_zone_guard.h"


static void ngx_kube_zone_cleanup(void *data);
static void ngx_kube_zone_close(ngx_kube_informer_t *informer);
#if (KUBE_DEBUG)
static void ngx_kube_zone_read_only(ngx_kube_informer_t *informer,
    uint64_t from, uint64_t to);
#endif
static ngx_int_t ngx_kube_zone_init(ngx_shm_zone_t *shm_zone, void *data);
static ngx_int_t ngx_kube_zone_scopes(ngx_shm_zone_t *shm_zone,
    ngx_kube_informer_t *informer);
static ngx_int_t ngx_kube_zone_make(ngx_shm_zone_t *shm_zone,
    ngx_kube_informer_t *informer);
static ngx_uint_t ngx_kube_zone_same_api(ngx_kube_informer_t *a,
    ngx_kube_informer_t *b);
static ngx_kube_informer_t *ngx_kube_zone_block(ngx_kube_conf_t *kcf,
    ngx_str_t *name);
static ngx_uint_t ngx_kube_zone_moved(ngx_kube_informer_t *informer,
    ngx_kube_conf_t *in, ngx_kube_conf_t *other);
static void ngx_kube_zone_copy_old(ngx_shm_zone_t *shm_zone,
    ngx_kube_informer_t *informer);


ngx_int_t
ngx_kube_zone_add(ngx_conf_t *cf, ngx_kube_informer_t *informer)
{
    ngx_pool_cleanup_t  *cln;

    informer->zone.guard_fd = KUBE_ZONE_PRIVATE;
    informer->events_fd = -1;

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_kube_zone_cleanup;
    cln->data = informer;

    informer->shm_zone->init = ngx_kube_zone_init;
    informer->shm_zone->data = informer;

    return NGX_OK;
}


/*
 * In the process that is the writer this would give the guard up, but that one
 * never destroys its cycle.
 */

static void
ngx_kube_zone_cleanup(void *data)
{
    ngx_kube_informer_t  *informer = data;

    ngx_kube_zone_close(informer);

    if (informer->events_fd != -1) {
        (void) close(informer->events_fd);
        informer->events_fd = -1;
    }
}


static void
ngx_kube_zone_close(ngx_kube_informer_t *informer)
{
    if (informer->zone.guard_fd != KUBE_ZONE_PRIVATE) {
        (void) close(informer->zone.guard_fd);
        informer->zone.guard_fd = KUBE_ZONE_PRIVATE;
    }
}


void
ngx_kube_zone_leave(ngx_kube_informer_t *informer)
{
    ngx_kube_zone_close(informer);

#if (KUBE_DEBUG)

    /* what is left: nginx's slab header, the image's own, and workers' rows */

    ngx_kube_zone_read_only(informer, informer->zone.geometry.buckets,
                            informer->zone.geometry.workers);
    ngx_kube_zone_read_only(informer, informer->zone.geometry.events,
                            informer->zone.size);

#endif
}


#if (KUBE_DEBUG)

/*
 * The whole pages between two places of the image, in this process alone.  A
 * page that a writable part begins or ends in stays writable.  Free of cost,
 * but not for production: a write that nobody would ever read would end a
 * worker there.
 */

static void
ngx_kube_zone_read_only(ngx_kube_informer_t *informer, uint64_t from,
    uint64_t to)
{
    u_char  *begin, *end;

    begin = (u_char *) informer->zone.image + from;
    end = (u_char *) informer->zone.image + to;

    begin = ngx_align_ptr(begin, ngx_pagesize);
    end -= (uintptr_t) end % ngx_pagesize;

    if (begin < end && mprotect(begin, end - begin, PROT_READ) == -1) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                      "kube zone \"%V\": mprotect() failed",
                      &informer->shm_zone->shm.name);
    }
}

#endif


static ngx_int_t
ngx_kube_zone_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_kube_informer_t  *old = data;
    ngx_kube_informer_t  *informer;

    informer = shm_zone->data;

    /* Angie hands the old data on to new memory, too */

    if (old != NULL && !shm_zone->noreuse) {
        informer->zone = old->zone;

        /* each cycle closes its own, in ngx_kube_zone_cleanup() */

        if (old->events_fd != -1) {
            informer->events_fd = fcntl(old->events_fd, F_DUPFD_CLOEXEC, 0);
        }

        informer->zone.guard_fd = fcntl(old->zone.guard_fd, F_DUPFD_CLOEXEC,
                                        0);
        if (informer->zone.guard_fd != -1) {
            return ngx_kube_zone_scopes(shm_zone, informer);
        }

        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, ngx_errno,
                      "kube zone \"%V\": fcntl(F_DUPFD_CLOEXEC) failed",
                      &shm_zone->shm.name);

        return NGX_ERROR;
    }

    return ngx_kube_zone_make(shm_zone, informer);
}


/* A scope has a place in the image: without one no reader would know of it. */

static ngx_int_t
ngx_kube_zone_scopes(ngx_shm_zone_t *shm_zone, ngx_kube_informer_t *informer)
{
    ngx_uint_t  n;

    n = informer->namespaces.nelts;

    if (n * KUBE_SCOPES_A_NAMESPACE
        <= informer->zone.geometry.scopes_n) {
        return NGX_OK;
    }

    /* a scope takes 8 KiB of zone; nginx's allocator needs a few pages */

    ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                  "zone \"%V\" of the kube_informer in %V:%ui has no room "
                  "for %ui namespaces: give it %uik or more",
                  &shm_zone->shm.name, &informer->file, informer->line, n,
                  (n + 1) * KUBE_SCOPES_A_NAMESPACE * 8);

    return NGX_ERROR;
}


static ngx_int_t
ngx_kube_zone_make(ngx_shm_zone_t *shm_zone, ngx_kube_informer_t *informer)
{
    void             *image;
    size_t            size;
    kube_seed_t       seed;
    ngx_slab_pool_t  *shpool;

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    /* nginx must not log an allocation that is expected to fail */

    shpool->log_nomem = 0;

    /* all free pages are one run: nothing was allocated yet */

    image = NULL;

    for (size = shpool->pfree * ngx_pagesize; size >= KUBE_ZONE_SIZE_MIN / 2;
         size -= ngx_pagesize)
    {
        image = ngx_slab_alloc(shpool, size);
        if (image != NULL) {
            break;
        }
    }

    if (image == NULL) {
        goto too_small;
    }

    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t) sizeof(seed)) {
        seed.k0 = ((uint64_t) ngx_random() << 32) ^ (uint64_t) ngx_random();
        seed.k1 = ngx_kube_now() ^ ((uint64_t) ngx_pid << 32);
    }

    if (kube_zone_create(&informer->zone, image, size, seed) != KUBE_OK) {
        goto too_small;
    }

    informer->zone.guard_fd = kube_zone_guard_open();

    if (informer->zone.guard_fd == -1) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, ngx_errno,
                      "kube zone \"%V\": memfd_create() failed",
                      &shm_zone->shm.name);
        return NGX_ERROR;
    }

    if (ngx_kube_zone_scopes(shm_zone, informer) != NGX_OK) {
        return NGX_ERROR;
    }

    /* subscribers look now and then where there is none */

    informer->events_fd = eventfd(0, EFD_NONBLOCK|EFD_CLOEXEC);

    ngx_kube_zone_copy_old(shm_zone, informer);

    return NGX_OK;

too_small:

    ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                  "kube zone \"%V\" is too small", &shm_zone->shm.name);

    return NGX_ERROR;
}


static ngx_uint_t
ngx_kube_zone_same_api(ngx_kube_informer_t *a, ngx_kube_informer_t *b)
{
    ngx_uint_t  i;

    if (a->config.servers_n != b->config.servers_n
        || !kube_str_eq(ngx_kube_str(&a->kubeconfig),
                        ngx_kube_str(&b->kubeconfig))
        || !kube_str_eq(ngx_kube_str(&a->context), ngx_kube_str(&b->context)))
    {
        return 0;
    }

    for (i = 0; i < a->config.servers_n; i++) {
        if (!kube_str_eq(a->config.servers[i], b->config.servers[i])) {
            return 0;
        }
    }

    return 1;
}


/* The block whose zone has the name, or NULL. */

static ngx_kube_informer_t *
ngx_kube_zone_block(ngx_kube_conf_t *kcf, ngx_str_t *name)
{
    ngx_uint_t             i;
    ngx_kube_informer_t  **blocks;

    blocks = kcf->informers.elts;

    for (i = 0; i < kcf->informers.nelts; i++) {
        if (kube_str_eq(ngx_kube_str(&blocks[i]->zone_name),
                        ngx_kube_str(name)))
        {
            return blocks[i];
        }
    }

    return NULL;
}


/*
 * True where a block of "in" has the API server of this one, in a zone that
 * another API server, or nobody, has in the other configuration.
 */

static ngx_uint_t
ngx_kube_zone_moved(ngx_kube_informer_t *informer, ngx_kube_conf_t *in,
    ngx_kube_conf_t *other)
{
    ngx_uint_t             i;
    ngx_kube_informer_t   *there, **blocks;

    blocks = in->informers.elts;

    for (i = 0; i < in->informers.nelts; i++) {

        if (!ngx_kube_zone_same_api(blocks[i], informer)) {
            continue;
        }

        there = ngx_kube_zone_block(other, &blocks[i]->zone_name);

        if (there == NULL || !ngx_kube_zone_same_api(there, blocks[i])) {
            return 1;
        }
    }

    return 0;
}


/*
 * A block whose API server alone is another one goes on with what its zone
 * holds: it may be another address of the same cluster.  Where the old
 * server has moved to another zone, or the new one comes from another, these
 * are two clusters, and the Pods of one are not the other's: such a zone is
 * new memory, and only old workers have the old one.
 */

void
ngx_kube_zone_exchanged(ngx_cycle_t *cycle, ngx_kube_conf_t *kcf)
{
    ngx_uint_t             i;
    ngx_kube_conf_t       *old_kcf;
    ngx_kube_informer_t   *old, **informers;

    if (cycle->old_cycle == NULL || cycle->old_cycle->conf_ctx == NULL) {
        return;
    }

    old_kcf = ngx_kube_get_conf(cycle->old_cycle);

    if (old_kcf == NULL) {
        return;
    }

    informers = kcf->informers.elts;

    for (i = 0; i < kcf->informers.nelts; i++) {

        old = ngx_kube_zone_block(old_kcf, &informers[i]->zone_name);

        if (old == NULL || ngx_kube_zone_same_api(old, informers[i])) {
            continue;
        }

        if (ngx_kube_zone_moved(old, kcf, old_kcf)
            || ngx_kube_zone_moved(informers[i], old_kcf, kcf))
        {
            informers[i]->shm_zone->noreuse = 1;

            ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                          "kube zone \"%V\" was that of another cluster: "
                          "kube_informer \"%V\" begins with an empty one",
                          &informers[i]->zone_name, &informers[i]->name);
        }
    }
}


/*
 * From here on the configuration is the one that runs.  Whether memory is freed
 * nginx asks the old zone, not the one in its place: "noreuse" passes to it,
 * else the next reload would free what it has taken over itself.
 */

void
ngx_kube_zone_settled(ngx_cycle_t *cycle, ngx_kube_conf_t *kcf)
{
    ngx_uint_t             i;
    ngx_kube_conf_t       *old_kcf;
    ngx_kube_informer_t   *old, **informers;

    informers = kcf->informers.elts;

    for (i = 0; i < kcf->informers.nelts; i++) {

        if (!informers[i]->shm_zone->noreuse) {
            continue;
        }

        informers[i]->shm_zone->noreuse = 0;

        old_kcf = ngx_kube_get_conf(cycle->old_cycle);
        old = ngx_kube_zone_block(old_kcf, &informers[i]->zone_name);
        old->shm_zone->noreuse = 1;
    }
}


/*
 * Copies the records of the zone of the same name whose size was another one in
 * the running configuration.  The old informer goes on writing to its mapping.
 */

static void
ngx_kube_zone_copy_old(ngx_shm_zone_t *shm_zone,
    ngx_kube_informer_t *informer)
{
    kube_rc_t         rc;
    ngx_uint_t        i, level;
    kube_zone_t      *from;
    ngx_shm_zone_t   *old;
    ngx_list_part_t  *part;

    if (ngx_cycle == NULL || ngx_cycle->shared_memory.part.elts == NULL
        || shm_zone->noreuse)
    {
        return;
    }

    part = (ngx_list_part_t *) &ngx_cycle->shared_memory.part;
    old = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {
            if (part->next == NULL) {
                return;
            }

            part = part->next;
            old = part->elts;
            i = 0;
        }

        if (&old[i] != shm_zone
            && old[i].tag == shm_zone->tag
            && old[i].shm.addr != NULL
            && old[i].shm.addr != shm_zone->shm.addr
            && old[i].shm.name.len == shm_zone->shm.name.len
            && ngx_strncmp(old[i].shm.name.data, shm_zone->shm.name.data,
                           shm_zone->shm.name.len)
               == 0)
        {
            break;
        }
    }

    from = &((ngx_kube_informer_t *) old[i].data)->zone;
    rc = kube_zone_copy(&informer->zone, from, &ngx_kube_alloc);

    level = (rc == KUBE_OK) ? NGX_LOG_NOTICE : NGX_LOG_WARN;

    ngx_log_error(level, shm_zone->shm.log, 0,
                  "kube zone \"%V\": copied from %uz to %uz bytes: %s",
                  &shm_zone->shm.name, from->size, informer->zone.size,
                  kube_rc_text(rc));
}


void
ngx_kube_informer_health(ngx_kube_informer_t *informer,
    kube_health_t *health)
{
    kube_zone_health(&informer->zone, ngx_kube_now(), informer->idle_timeout,
                     health);
}
