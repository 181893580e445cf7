/*
 * ngx_http_kube_status - kube_status and kube_ready: the directives, the
 * paths below a location, and the sending of what other files print.
 *
 * Read-only: GET and HEAD.  Nothing blocks and nothing is asked of the API
 * server; a body is whole in memory, and bounded, before its head is sent.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_status.h"


typedef enum {
    NGX_HTTP_KUBE_TYPE_JSON = 0,
    NGX_HTTP_KUBE_TYPE_HTML,
    NGX_HTTP_KUBE_TYPE_METRICS,
    NGX_HTTP_KUBE_TYPE_TEXT
} ngx_http_kube_type_e;

typedef struct {
    ngx_str_t               path;
    ngx_uint_t              part;        /* NGX_HTTP_KUBE_* */
    ngx_http_kube_type_e    type;
    ngx_int_t             (*body)(ngx_http_request_t *r,
                              ngx_http_kube_print_t *p);
} ngx_http_kube_path_t;


static char *ngx_http_kube_status_location(ngx_conf_t *cf,
    ngx_command_t *cmd);
static ngx_int_t ngx_http_kube_allow(ngx_http_request_t *r);
static ngx_int_t ngx_http_kube_below(ngx_http_request_t *r, ngx_str_t *path);
static ngx_int_t ngx_http_kube_route(ngx_http_request_t *r, ngx_str_t *path,
    ngx_http_kube_print_t *p, ngx_http_kube_type_e *type);
static ngx_int_t ngx_http_kube_redirect(ngx_http_request_t *r);
static ngx_int_t ngx_http_kube_ready_print(ngx_http_request_t *r,
    ngx_http_kube_print_t *p);
static ngx_int_t ngx_http_kube_ready_one(ngx_http_kube_loc_conf_t *klcf,
    ngx_http_kube_print_t *p, ngx_kube_informer_t *informer);
static ngx_int_t ngx_http_kube_send(ngx_http_request_t *r, ngx_int_t status,
    ngx_http_kube_type_e type, ngx_http_kube_print_t *p);
static ngx_int_t ngx_http_kube_header(ngx_http_request_t *r,
    const char *name, ngx_str_t *value);


static ngx_http_kube_path_t  ngx_http_kube_paths[] = {

    { ngx_string(""), NGX_HTTP_KUBE_PAGE,
      NGX_HTTP_KUBE_TYPE_HTML, ngx_http_kube_body_page },
    { ngx_string("api/v1/status"), NGX_HTTP_KUBE_API,
      NGX_HTTP_KUBE_TYPE_JSON, ngx_http_kube_body_status },
    { ngx_string("api/v1/services"), NGX_HTTP_KUBE_API,
      NGX_HTTP_KUBE_TYPE_JSON, ngx_http_kube_body_services },
    { ngx_string("metrics"), NGX_HTTP_KUBE_METRICS,
      NGX_HTTP_KUBE_TYPE_METRICS, ngx_http_kube_body_metrics },

    { ngx_null_string, 0, NGX_HTTP_KUBE_TYPE_JSON, NULL }
};

static ngx_str_t  ngx_http_kube_types[] = {
    ngx_string("application/json"),
    ngx_string("text/html; charset=utf-8"),
    ngx_string("text/plain; version=0.0.4; charset=utf-8"),
    ngx_string("text/plain; charset=utf-8")
};

static ngx_str_t  ngx_http_kube_no_store = ngx_string("no-store");
static ngx_str_t  ngx_http_kube_nosniff = ngx_string("nosniff");
static ngx_str_t  ngx_http_kube_methods = ngx_string("GET, HEAD");


char *
ngx_http_kube_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_kube_loc_conf_t *klcf = conf;

    char                      *rv;
    ngx_str_t                 *value;
    ngx_uint_t                 i, bit;
    ngx_http_core_loc_conf_t  *clcf;

    if (klcf->status) {
        return "is duplicate";
    }

    rv = ngx_http_kube_status_location(cf, cmd);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_strcmp(value[i].data, "page") == 0) {
            bit = NGX_HTTP_KUBE_PAGE;

        } else if (ngx_strcmp(value[i].data, "api") == 0) {
            bit = NGX_HTTP_KUBE_API;

        } else if (ngx_strcmp(value[i].data, "metrics") == 0) {
            bit = NGX_HTTP_KUBE_METRICS;

        } else if (ngx_strcmp(value[i].data, "events") == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "unknown parameter \"events\": it is planned, "
                               "but version " KUBE_VERSION " does not have "
                               "it; remove it");
            return NGX_CONF_ERROR;

        } else {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\": expected \"page\", "
                               "\"api\" or \"metrics\"", &value[i]);
            return NGX_CONF_ERROR;
        }

        klcf->status |= bit;
    }

    if (klcf->status == 0) {
        klcf->status = NGX_HTTP_KUBE_PAGE|NGX_HTTP_KUBE_API
                       |NGX_HTTP_KUBE_METRICS;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_http_kube_status_handler;

    return NGX_CONF_OK;
}


/* Paths are what follows the location's prefix: it must have one. */

static char *
ngx_http_kube_status_location(ngx_conf_t *cf, ngx_command_t *cmd)
{
    ngx_uint_t                 regex;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

#if (NGX_PCRE)
    regex = clcf->regex != NULL;
#else
    regex = 0;
#endif

    if (regex || clcf->named || clcf->noname) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" needs a prefix or exact location, such as "
                           "\"location /kube/ {}\"", &cmd->name);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
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

        if (ngx_strcmp(value[i].data, "allow_state") == 0) {
            klcf->ready_allow_state = 1;
            continue;
        }

        if (ngx_strncmp(value[i].data, "informer=", 9) == 0
            && value[i].len > 9)
        {
            klcf->ready_informer.data = value[i].data + 9;
            klcf->ready_informer.len = value[i].len - 9;

            if (ngx_kube_name_add(cf, &klcf->ready_informer) != NGX_OK) {
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
                           "\"informer=name\", \"max_age=time\" or "
                           "\"allow_state\"", &value[i]);
        return NGX_CONF_ERROR;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_http_kube_ready_handler;

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_kube_status_handler(ngx_http_request_t *r)
{
    ngx_int_t              rc;
    ngx_str_t              path;
    ngx_http_kube_print_t  p;
    ngx_http_kube_type_e   type;

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    ngx_http_kube_print_init(&p, r->pool);
    type = NGX_HTTP_KUBE_TYPE_JSON;

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        rc = ngx_http_kube_allow(r);
        if (rc == NGX_OK) {
            rc = ngx_http_kube_body_error(&p, NGX_HTTP_NOT_ALLOWED,
                                          "only GET and HEAD");
        }

        return ngx_http_kube_send(r, rc, type, &p);
    }

    rc = ngx_http_kube_below(r, &path);

    if (rc == NGX_AGAIN) {
        return ngx_http_kube_redirect(r);
    }

    rc = rc == NGX_OK ? ngx_http_kube_route(r, &path, &p, &type)
                      : ngx_http_kube_body_error(&p, NGX_HTTP_NOT_FOUND,
                                                 "no such path");

    return ngx_http_kube_send(r, rc, type, &p);
}


/*
 * What follows the location's prefix.  NGX_AGAIN: the page is asked for
 * without the slash that its links need; NGX_DECLINED: another path that the
 * prefix happens to begin.
 */

static ngx_int_t
ngx_http_kube_below(ngx_http_request_t *r, ngx_str_t *path)
{
    size_t                     len;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_kube_loc_conf_t  *klcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    klcf = ngx_http_get_module_loc_conf(r, ngx_http_kube_module);

    len = ngx_min(clcf->name.len, r->uri.len);

    path->data = r->uri.data + len;
    path->len = r->uri.len - len;

    if (len != 0 && r->uri.data[len - 1] == '/') {
        return NGX_OK;
    }

    if (path->len != 0) {

        if (path->data[0] != '/') {
            return NGX_DECLINED;
        }

        path->data++;
        path->len--;

        return NGX_OK;
    }

    if (!clcf->exact_match && (klcf->status & NGX_HTTP_KUBE_PAGE)) {
        return NGX_AGAIN;
    }

    /* location = /metrics { kube_status metrics; } */

    if (clcf->exact_match && klcf->status == NGX_HTTP_KUBE_METRICS) {
        ngx_str_set(path, "metrics");
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_route(ngx_http_request_t *r, ngx_str_t *path,
    ngx_http_kube_print_t *p, ngx_http_kube_type_e *type)
{
    ngx_int_t                  rc;
    ngx_str_t                  key;
    ngx_http_kube_path_t      *known;
    ngx_http_kube_loc_conf_t  *klcf;

    klcf = ngx_http_get_module_loc_conf(r, ngx_http_kube_module);

    for (known = ngx_http_kube_paths; known->body != NULL; known++) {

        if (!(klcf->status & known->part)
            || known->path.len != path->len
            || ngx_strncmp(known->path.data, path->data, path->len) != 0)
        {
            continue;
        }

        rc = known->body(r, p);

        if (rc == NGX_HTTP_OK) {
            *type = known->type;
        }

        return rc;
    }

    if (klcf->status & NGX_HTTP_KUBE_API) {

        if (path->len > sizeof("api/v1/services/") - 1
            && ngx_strncmp(path->data, "api/v1/services/",
                           sizeof("api/v1/services/") - 1)
               == 0)
        {
            key.data = path->data + sizeof("api/v1/services/") - 1;
            key.len = path->len - (sizeof("api/v1/services/") - 1);

            return ngx_http_kube_body_service(r, p, &key);
        }

        if (path->len == sizeof("api/v1/events") - 1
            && ngx_strncmp(path->data, "api/v1/events", path->len) == 0)
        {
            return ngx_http_kube_body_error(p, NGX_HTTP_NOT_FOUND,
                                            "events are planned: version "
                                            KUBE_VERSION
                                            " does not have them");
        }
    }

    return ngx_http_kube_body_error(p, NGX_HTTP_NOT_FOUND, "no such path");
}


static ngx_int_t
ngx_http_kube_redirect(ngx_http_request_t *r)
{
    u_char  *p;

    ngx_http_clear_location(r);

    r->headers_out.location = ngx_list_push(&r->headers_out.headers);
    p = ngx_pnalloc(r->pool, r->uri.len + 1);

    if (r->headers_out.location == NULL || p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memzero(r->headers_out.location, sizeof(ngx_table_elt_t));

    r->headers_out.location->hash = 1;
    ngx_str_set(&r->headers_out.location->key, "Location");
    r->headers_out.location->value.data = p;
    r->headers_out.location->value.len = r->uri.len + 1;

    p = ngx_cpymem(p, r->uri.data, r->uri.len);
    *p = '/';

    return NGX_HTTP_MOVED_PERMANENTLY;
}


ngx_int_t
ngx_http_kube_ready_handler(ngx_http_request_t *r)
{
    ngx_int_t              rc;
    ngx_http_kube_print_t  p;

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    ngx_http_kube_print_init(&p, r->pool);

    if (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD)) {
        rc = ngx_http_kube_ready_print(r, &p);

    } else {
        rc = ngx_http_kube_allow(r);
        if (rc == NGX_OK) {
            ngx_http_kube_puts(&p, "only GET and HEAD\n");
            rc = NGX_HTTP_NOT_ALLOWED;
        }
    }

    return ngx_http_kube_send(r, rc, NGX_HTTP_KUBE_TYPE_TEXT, &p);
}


/* "ready", or a line for each informer that is not. */

static ngx_int_t
ngx_http_kube_ready_print(ngx_http_request_t *r, ngx_http_kube_print_t *p)
{
    ngx_uint_t                 i, n;
    ngx_kube_conf_t           *kcf;
    ngx_kube_informer_t      **informers;
    ngx_http_kube_loc_conf_t  *klcf;

    klcf = ngx_http_get_module_loc_conf(r, ngx_http_kube_module);
    kcf = ngx_kube_get_conf(ngx_cycle);
    informers = kcf->informers.elts;
    n = 0;

    for (i = 0; i < kcf->informers.nelts; i++) {

        if (klcf->ready_informer.len != 0
            && (klcf->ready_informer.len != informers[i]->name.len
                || ngx_strncmp(klcf->ready_informer.data,
                               informers[i]->name.data,
                               informers[i]->name.len)
                   != 0))
        {
            continue;
        }

        n++;

        (void) ngx_http_kube_ready_one(klcf, p, informers[i]);
    }

    if (n == 0) {
        ngx_http_kube_puts(p, "no such kube_informer\n");
    }

    if (p->size != 0) {
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    }

    ngx_http_kube_puts(p, "ready\n");

    return NGX_HTTP_OK;
}


static ngx_int_t
ngx_http_kube_ready_one(ngx_http_kube_loc_conf_t *klcf,
    ngx_http_kube_print_t *p, ngx_kube_informer_t *informer)
{
    kube_health_t  health;
    u_char         reason[NGX_KUBE_REASON_MAX];

    if (ngx_kube_ready(informer, klcf->ready_allow_state, reason) != NGX_OK) {
        ngx_http_kube_print(p, "%V: %s\n", &informer->name, reason);
        return NGX_DECLINED;
    }

    if (klcf->ready_max_age == 0) {
        return NGX_OK;
    }

    ngx_kube_informer_health(informer, &health);

    if (health.age_ms <= klcf->ready_max_age) {
        return NGX_OK;
    }

    if (health.age_ms == UINT64_MAX) {
        ngx_http_kube_print(p, "%V: max_age: never current\n",
                            &informer->name);

    } else {
        ngx_http_kube_print(p, "%V: max_age: not current for %uL s\n",
                            &informer->name, health.age_ms / 1000);
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_kube_allow(ngx_http_request_t *r)
{
    return ngx_http_kube_header(r, "Allow", &ngx_http_kube_methods);
}


/* rc: an HTTP status whose body is printed, or NGX_ERROR. */

static ngx_int_t
ngx_http_kube_send(ngx_http_request_t *r, ngx_int_t status,
    ngx_http_kube_type_e type, ngx_http_kube_print_t *p)
{
    ngx_int_t  rc;

    if (status < NGX_HTTP_OK || p->failed || p->out == NULL) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "kube status could not be printed: no memory, or more "
                      "than %d bytes", NGX_HTTP_KUBE_BODY_MAX);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.status = (ngx_uint_t) status;
    r->headers_out.content_length_n = (off_t) p->size;
    r->headers_out.content_type = ngx_http_kube_types[type];
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    if (ngx_http_kube_header(r, "Cache-Control", &ngx_http_kube_no_store)
        != NGX_OK
        || ngx_http_kube_header(r, "X-Content-Type-Options",
                                &ngx_http_kube_nosniff)
           != NGX_OK
        || (type == NGX_HTTP_KUBE_TYPE_HTML
            && ngx_http_kube_header(r, "Content-Security-Policy",
                                    &ngx_http_kube_page_policy)
               != NGX_OK))
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    p->buf->last_buf = (r == r->main);
    p->buf->last_in_chain = 1;

    return ngx_http_output_filter(r, p->out);
}


static ngx_int_t
ngx_http_kube_header(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->hash = 1;
    h->key.data = (u_char *) name;
    h->key.len = ngx_strlen(name);
    h->value = *value;

    return NGX_OK;
}
