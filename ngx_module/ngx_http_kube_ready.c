/*
 * ngx_http_kube_ready - the kube_ready directive: 200, or 503 with a line for
 * each informer that is not ready; and a line for each cause of being degraded.
 *
 * What ready means is src/route's kube_ready.  The directive is read at
 * configuration time; it is answered in workers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube.h"
#include "ngx_http_kube_status.h"
#include "ngx_kube_ready.h"
#include "ngx_kube_refs.h"


/* What a report takes; more than that, and nothing is told. */
#define NGX_HTTP_KUBE_READY_ARENA  (4u << 20)


static ngx_uint_t ngx_http_kube_ready_twice(ngx_str_t *value, ngx_uint_t i);
static ngx_int_t ngx_http_kube_ready_max_age(ngx_conf_t *cf,
    ngx_http_kube_loc_conf_t *klcf);
static ngx_int_t ngx_http_kube_ready_handler(ngx_http_request_t *r);
static ngx_uint_t ngx_http_kube_ready_is_asked(const ngx_str_t *name,
    ngx_kube_informer_t *informer);
static void ngx_http_kube_ready_one(ngx_http_kube_loc_conf_t *klcf,
    kube_text_t *text, ngx_kube_informer_t *informer);
static void ngx_http_kube_ready_degraded(kube_text_t *text,
    ngx_kube_informer_t *informer);


/* True where the i-th parameter has the name of one before it. */

static ngx_uint_t
ngx_http_kube_ready_twice(ngx_str_t *value, ngx_uint_t i)
{
    size_t      len;
    ngx_uint_t  j;

    len = 0;

    while (len < value[i].len && value[i].data[len] != '=') {
        len++;
    }

    for (j = 1; j < i; j++) {
        if (value[j].len >= len
            && ngx_strncmp(value[j].data, value[i].data, len) == 0
            && (value[j].len == len || value[j].data[len] == '='))
        {
            return 1;
        }
    }

    return 0;
}


char *
ngx_http_kube_ready(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_kube_loc_conf_t *klcf = conf;

    ngx_str_t                 *value, s;
    ngx_uint_t                 i;
    ngx_http_core_loc_conf_t  *clcf;

    if (klcf->ready) {
        return "is duplicate";
    }

    klcf->ready = 1;

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_http_kube_ready_twice(value, i)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate parameter \"%V\" of %V",
                               &value[i], &value[0]);
            return NGX_CONF_ERROR;
        }

        if (ngx_strcmp(value[i].data, "allow_state") == 0) {
            klcf->ready_flags |= KUBE_READY_ALLOW_STATE;
            continue;
        }

        if (ngx_strcmp(value[i].data, "strict") == 0) {
            klcf->ready_flags |= KUBE_READY_STRICT;
            continue;
        }

        if (ngx_strncmp(value[i].data, "informer=", 9) == 0
            && value[i].len > 9)
        {
            klcf->ready_informer.data = value[i].data + 9;
            klcf->ready_informer.len = value[i].len - 9;

            if (ngx_kube_ref_informer(cf, &klcf->ready_informer) != NGX_OK) {
                return NGX_CONF_ERROR;
            }

            continue;
        }

        if (ngx_strncmp(value[i].data, "max_age=", 8) == 0) {

            s.data = value[i].data + 8;
            s.len = value[i].len - 8;

            klcf->ready_max_age = ngx_parse_time(&s, 0);

            if (klcf->ready_max_age != (ngx_msec_t) NGX_ERROR
                && klcf->ready_max_age != 0)
            {
                continue;
            }
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\": expected "
                           "\"informer=name\", \"max_age=time\", "
                           "\"allow_state\" or \"strict\"", &value[i]);
        return NGX_CONF_ERROR;
    }

    if (klcf->ready_max_age != 0
        && ngx_http_kube_ready_max_age(cf, klcf) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_http_kube_ready_handler;

    return NGX_CONF_OK;
}


/* Blocks of informers may follow: it is judged once the file was read. */

static ngx_int_t
ngx_http_kube_ready_max_age(ngx_conf_t *cf, ngx_http_kube_loc_conf_t *klcf)
{
    ngx_http_kube_max_age_t    *max_age;
    ngx_http_kube_main_conf_t  *kmcf;

    kmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_kube_module);

    max_age = ngx_array_push(&kmcf->max_ages);
    if (max_age == NULL) {
        return NGX_ERROR;
    }

    max_age->informer = klcf->ready_informer;
    max_age->max_age = klcf->ready_max_age;
    max_age->file = cf->conf_file->file.name;
    max_age->line = cf->conf_file->line;

    return NGX_OK;
}


ngx_int_t
ngx_http_kube_ready_check(ngx_cycle_t *cycle)
{
    ngx_uint_t                  i, j;
    ngx_kube_conf_t            *kcf;
    ngx_kube_informer_t       **informers;
    ngx_http_kube_max_age_t    *max_ages;
    ngx_http_kube_main_conf_t  *kmcf;

    kmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_kube_module);

    if (kmcf == NULL) {
        return NGX_OK;
    }

    kcf = ngx_kube_get_conf(cycle);
    informers = kcf->informers.elts;
    max_ages = kmcf->max_ages.elts;

    for (i = 0; i < kmcf->max_ages.nelts; i++) {
        for (j = 0; j < kcf->informers.nelts; j++) {

            if (ngx_http_kube_ready_is_asked(&max_ages[i].informer,
                                             informers[j])
                && max_ages[i].max_age
                   < informers[j]->idle_timeout + KUBE_STALE_GRACE_MS)
            {
                ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                              "\"max_age\" of kube_ready in %V:%ui is below "
                              "\"idle_timeout\" and %d s of kube_informer "
                              "\"%V\": a quiet cluster may exceed it; use "
                              "%M s or more",
                              &max_ages[i].file, max_ages[i].line,
                              KUBE_STALE_GRACE_MS / 1000,
                              &informers[j]->name,
                              (informers[j]->idle_timeout
                               + KUBE_STALE_GRACE_MS) / 1000);
            }
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_ready_handler(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_uint_t                 i, n;
    ngx_kube_conf_t           *kcf;
    ngx_kube_informer_t      **informers;
    ngx_http_kube_body_t       body;
    ngx_http_kube_loc_conf_t  *klcf;

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    ngx_http_kube_body_init(&body, r->pool);

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        rc = ngx_http_kube_not_allowed(r, &body);
        return ngx_http_kube_send(r, rc, NGX_HTTP_KUBE_TYPE_JSON, &body);
    }

    klcf = ngx_http_get_module_loc_conf(r, ngx_http_kube_module);
    kcf = ngx_kube_get_conf(ngx_cycle);
    informers = kcf->informers.elts;
    n = 0;

    for (i = 0; i < kcf->informers.nelts; i++) {

        if (ngx_http_kube_ready_is_asked(&klcf->ready_informer, informers[i]))
        {
            n++;
            ngx_http_kube_ready_one(klcf, &body.text, informers[i]);
        }
    }

    if (n == 0) {
        kube_text_put(&body.text, KUBE_STR("no such kube_informer\n"));
    }

    rc = NGX_HTTP_SERVICE_UNAVAILABLE;

    if (body.text.size == 0) {
        kube_text_put(&body.text, KUBE_STR("ready\n"));
        rc = NGX_HTTP_OK;
    }

    /* "not_synced" alone does not say what to do about it */

    for (i = 0; i < kcf->informers.nelts; i++) {

        if (ngx_http_kube_ready_is_asked(&klcf->ready_informer, informers[i]))
        {
            ngx_http_kube_ready_degraded(&body.text, informers[i]);
        }
    }

    return ngx_http_kube_send(r, rc, NGX_HTTP_KUBE_TYPE_TEXT, &body);
}


static ngx_uint_t
ngx_http_kube_ready_is_asked(const ngx_str_t *name,
    ngx_kube_informer_t *informer)
{
    return name->len == 0
           || (name->len == informer->name.len
               && ngx_strncmp(name->data, informer->name.data, name->len)
                  == 0);
}


/* Prints nothing where it is ready. */

static void
ngx_http_kube_ready_one(ngx_http_kube_loc_conf_t *klcf, kube_text_t *text,
    ngx_kube_informer_t *informer)
{
    kube_health_t  health;
    u_char         reason[NGX_KUBE_REASON_MAX];

    if (ngx_kube_ready(informer, klcf->ready_flags, reason) != NGX_OK) {
        kube_text_printf(text, "%.*s: %s\n", (int) informer->name.len,
                         informer->name.data, reason);
        return;
    }

    ngx_kube_informer_health(informer, &health);

    if (klcf->ready_max_age == 0 || health.age_ms <= klcf->ready_max_age) {
        return;
    }

    kube_text_printf(text, "%.*s: max_age: ", (int) informer->name.len,
                     informer->name.data);

    if (health.age_ms == KUBE_NEVER) {
        kube_text_put(text, KUBE_STR("never current\n"));
        return;
    }

    kube_text_printf(text, "not current for %lu s\n",
                     (unsigned long) (health.age_ms / 1000));
}


/* A line for each cause that lasts, whether it is ready or not. */

static void
ngx_http_kube_ready_degraded(kube_text_t *text, ngx_kube_informer_t *informer)
{
    size_t                  i;
    kube_arena_t            arena, scratch;
    kube_report_t           report;
    const kube_degraded_t  *d;

    ngx_memzero(&report, sizeof(kube_report_t));
    kube_arena_init(&arena, &ngx_kube_alloc, NGX_HTTP_KUBE_READY_ARENA);
    kube_arena_init(&scratch, &ngx_kube_alloc, NGX_HTTP_KUBE_READY_ARENA);

    if (ngx_kube_report(informer, &report, &arena, &scratch) == NGX_OK) {

        for (i = 0; i < report.degraded_n; i++) {
            d = &report.degraded[i];

            kube_text_printf(text, "%.*s: degraded: %s: %.*s\n",
                             (int) informer->name.len, informer->name.data,
                             kube_cause_text(d->cause), (int) d->text.len,
                             d->text.data);
        }
    }

    kube_arena_done(&scratch);
    kube_arena_done(&arena);
}
