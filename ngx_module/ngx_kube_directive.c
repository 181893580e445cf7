/*
 * ngx_kube_directive - the directives inside a kube_informer block: one table,
 * one setter a kind.
 *
 * Each setter judges its own value; what must hold between directives is
 * ngx_kube_conf.c's.  Configuration time only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube.h"


typedef struct {
    ngx_str_t    name;
    ngx_uint_t   min;          /* arguments */
    ngx_uint_t   max;
    char      *(*set)(ngx_conf_t *cf, ngx_kube_informer_t *block,
                  void *field, ngx_str_t *args, ngx_uint_t n);
    size_t       offset;
} ngx_kube_directive_t;


static char *ngx_kube_set_zone(ngx_conf_t *cf, ngx_kube_informer_t *block,
    void *field, ngx_str_t *args, ngx_uint_t n);
static char *ngx_kube_set_api(ngx_conf_t *cf, ngx_kube_informer_t *block,
    void *field, ngx_str_t *args, ngx_uint_t n);
static char *ngx_kube_set_path(ngx_conf_t *cf, ngx_kube_informer_t *block,
    void *field, ngx_str_t *args, ngx_uint_t n);
static char *ngx_kube_set_name(ngx_conf_t *cf, ngx_kube_informer_t *block,
    void *field, ngx_str_t *args, ngx_uint_t n);
static char *ngx_kube_set_verify(ngx_conf_t *cf, ngx_kube_informer_t *block,
    void *field, ngx_str_t *args, ngx_uint_t n);
static char *ngx_kube_set_namespaces(ngx_conf_t *cf,
    ngx_kube_informer_t *block, void *field, ngx_str_t *args, ngx_uint_t n);
static char *ngx_kube_set_selector(ngx_conf_t *cf,
    ngx_kube_informer_t *block, void *field, ngx_str_t *args, ngx_uint_t n);
static char *ngx_kube_set_page(ngx_conf_t *cf, ngx_kube_informer_t *block,
    void *field, ngx_str_t *args, ngx_uint_t n);
static char *ngx_kube_set_msec(ngx_conf_t *cf, ngx_kube_informer_t *block,
    void *field, ngx_str_t *args, ngx_uint_t n);
static char *ngx_kube_set_backoff(ngx_conf_t *cf, ngx_kube_informer_t *block,
    void *field, ngx_str_t *args, ngx_uint_t n);
static char *ngx_kube_set_object(ngx_conf_t *cf, ngx_kube_informer_t *block,
    void *field, ngx_str_t *args, ngx_uint_t n);
static char *ngx_kube_set_cidr(ngx_conf_t *cf, ngx_kube_informer_t *block,
    void *field, ngx_str_t *args, ngx_uint_t n);
static char *ngx_kube_set_state(ngx_conf_t *cf, ngx_kube_informer_t *block,
    void *field, ngx_str_t *args, ngx_uint_t n);
static char *ngx_kube_set_unbuilt(ngx_conf_t *cf, ngx_kube_informer_t *block,
    void *field, ngx_str_t *args, ngx_uint_t n);


#define NGX_KUBE_ARGS_MAX  64

#define ngx_kube_field(name)  offsetof(ngx_kube_informer_t, name)

static ngx_kube_directive_t  ngx_kube_directives[] = {

    { ngx_string("zone"), 1, 2, ngx_kube_set_zone, 0 },
    { ngx_string("api"), 1, KUBE_SERVERS_MAX, ngx_kube_set_api, 0 },
    { ngx_string("token_file"), 1, 1, ngx_kube_set_path,
      ngx_kube_field(config.token.path) },
    { ngx_string("ca_file"), 1, 1, ngx_kube_set_path,
      ngx_kube_field(config.ca.path) },
    { ngx_string("client_certificate"), 1, 1, ngx_kube_set_path,
      ngx_kube_field(config.certificate.path) },
    { ngx_string("client_certificate_key"), 1, 1, ngx_kube_set_path,
      ngx_kube_field(config.key.path) },
    { ngx_string("tls_server_name"), 1, 1, ngx_kube_set_name,
      ngx_kube_field(config.tls_server_name) },
    { ngx_string("tls_verify"), 1, 1, ngx_kube_set_verify, 0 },
    { ngx_string("namespaces"), 1, KUBE_NAMESPACES_MAX,
      ngx_kube_set_namespaces, 0 },
    { ngx_string("label_selector"), 1, 2, ngx_kube_set_selector, 0 },
    { ngx_string("page_size"), 1, 1, ngx_kube_set_page, 0 },
    { ngx_string("watch_timeout"), 1, 1, ngx_kube_set_msec,
      ngx_kube_field(watch_timeout) },
    { ngx_string("connect_timeout"), 1, 1, ngx_kube_set_msec,
      ngx_kube_field(connect_timeout) },
    { ngx_string("idle_timeout"), 1, 1, ngx_kube_set_msec,
      ngx_kube_field(idle_timeout) },
    { ngx_string("backoff"), 2, 3, ngx_kube_set_backoff, 0 },
    { ngx_string("max_object"), 1, 1, ngx_kube_set_object, 0 },
    { ngx_string("allow_address"), 1, NGX_KUBE_ARGS_MAX, ngx_kube_set_cidr,
      ngx_kube_field(allow) },
    { ngx_string("deny_address"), 1, NGX_KUBE_ARGS_MAX, ngx_kube_set_cidr,
      ngx_kube_field(deny) },
    { ngx_string("state_path"), 1, 1, ngx_kube_set_state, 0 },
    { ngx_string("state_max_age"), 1, 1, ngx_kube_set_msec,
      ngx_kube_field(state_max_age) },

    { ngx_string("field_selector"), 0, 64, ngx_kube_set_unbuilt, 0 },
    { ngx_string("endpoints"), 0, 64, ngx_kube_set_unbuilt, 0 },
    { ngx_string("watch_list"), 0, 64, ngx_kube_set_unbuilt, 0 },
    { ngx_string("resync"), 0, 64, ngx_kube_set_unbuilt, 0 },
    { ngx_string("max_stale"), 0, 64, ngx_kube_set_unbuilt, 0 },
    { ngx_string("topology_node"), 0, 64, ngx_kube_set_unbuilt, 0 },
    { ngx_string("topology_zone"), 0, 64, ngx_kube_set_unbuilt, 0 },

    { ngx_null_string, 0, 0, NULL, 0 }
};


char *
ngx_kube_directive_handler(ngx_conf_t *cf, ngx_command_t *dummy, void *conf)
{
    ngx_kube_informer_t *block = conf;

    char                  *rv;
    ngx_str_t             *value;
    ngx_uint_t             n;
    ngx_kube_directive_t  *d;

    value = cf->args->elts;
    n = cf->args->nelts - 1;

    if (value[0].len == 7 && ngx_strncmp(value[0].data, "include", 7) == 0) {
        return ngx_conf_include(cf, dummy, conf);
    }

    for (d = ngx_kube_directives; d->name.len; d++) {

        if (d->name.len != value[0].len
            || ngx_strncmp(d->name.data, value[0].data, value[0].len) != 0)
        {
            continue;
        }

        if (n < d->min || n > d->max) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid number of arguments in \"%V\" "
                               "directive", &value[0]);
            return NGX_CONF_ERROR;
        }

        rv = d->set(cf, block, (u_char *) block + d->offset, &value[1], n);

        if (rv == NGX_CONF_OK || rv == NGX_CONF_ERROR) {
            return rv;
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" directive %s",
                           &value[0], rv);
        return NGX_CONF_ERROR;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "unknown directive \"%V\" in kube_informer",
                       &value[0]);

    return NGX_CONF_ERROR;
}


static char *
ngx_kube_set_unbuilt(ngx_conf_t *cf, ngx_kube_informer_t *block, void *field,
    ngx_str_t *args, ngx_uint_t n)
{
    ngx_str_t  *value;

    value = cf->args->elts;

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "unknown directive \"%V\": it is planned, but version "
                       KUBE_VERSION " does not have it; remove it",
                       &value[0]);

    return NGX_CONF_ERROR;
}


static char *
ngx_kube_set_zone(ngx_conf_t *cf, ngx_kube_informer_t *block, void *field,
    ngx_str_t *args, ngx_uint_t n)
{
    ssize_t  size;

    if (block->zone_name.len) {
        return "is duplicate";
    }

    if (args[0].len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "zone needs a name: \"zone name size;\"");
        return NGX_CONF_ERROR;
    }

    block->zone_name = args[0];

    if (n == 1) {
        return NGX_CONF_OK;
    }

    size = ngx_parse_size(&args[1]);

    if (size == NGX_ERROR
        || size < (ssize_t) (2 * KUBE_ZONE_SIZE_MIN)
        || (uint64_t) size > KUBE_ZONE_SIZE_MAX)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid zone size \"%V\": from 128k to 4096m",
                           &args[1]);
        return NGX_CONF_ERROR;
    }

    block->zone_size = (size_t) size;

    return NGX_CONF_OK;
}


static char *
ngx_kube_set_api(ngx_conf_t *cf, ngx_kube_informer_t *block, void *field,
    ngx_str_t *args, ngx_uint_t n)
{
    ngx_uint_t    i;
    kube_error_t  error;

    if (block->api_set) {
        return "is duplicate: name all addresses in one";
    }

    block->api_set = 1;

    if (args[0].len == 10 && ngx_strncmp(args[0].data, "in_cluster", 10) == 0)
    {
        if (n != 1) {
            return "\"in_cluster\" takes no more arguments";
        }

        return NGX_CONF_OK;
    }

    if (args[0].len > 11 && ngx_strncmp(args[0].data, "kubeconfig=", 11) == 0)
    {
        block->kubeconfig.data = args[0].data + 11;
        block->kubeconfig.len = args[0].len - 11;

        if (ngx_conf_full_name(cf->cycle, &block->kubeconfig, 1) != NGX_OK) {
            return NGX_CONF_ERROR;
        }

        for (i = 1; i < n; i++) {
            if (args[i].len > 8
                && ngx_strncmp(args[i].data, "context=", 8) == 0)
            {
                block->context.data = args[i].data + 8;
                block->context.len = args[i].len - 8;
                continue;
            }

            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\": after kubeconfig= "
                               "only context= may follow", &args[i]);
            return NGX_CONF_ERROR;
        }

        return NGX_CONF_OK;
    }

    for (i = 0; i < n; i++) {
        if (kube_config_add_server(&block->config, ngx_kube_str(&args[i]),
                                   &error)
            != KUBE_OK)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid api address \"%V\": %s; expected "
                               "\"in_cluster\", \"kubeconfig=path\" or "
                               "\"https://host[:port]\"",
                               &args[i], error.what);
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_kube_set_path(ngx_conf_t *cf, ngx_kube_informer_t *block, void *field,
    ngx_str_t *args, ngx_uint_t n)
{
    kube_str_t *str = field;

    ngx_str_t        path;
    ngx_file_info_t  fi;

    if (str->len) {
        return "is duplicate";
    }

    if (args[0].len == 0) {
        return "needs a path";
    }

    path = args[0];

    if (ngx_conf_full_name(cf->cycle, &path, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (ngx_file_info(path.data, &fi) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, ngx_errno,
                           "\"%V\" cannot be found now; the informer will "
                           "look for it again", &path);

    } else if (ngx_is_dir(&fi)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" is a directory, not a file", &path);
        return NGX_CONF_ERROR;
    }

    if (kube_config_set(&block->config, str, ngx_kube_str(&path)) != KUBE_OK)
    {
        return "is too long";
    }

    return NGX_CONF_OK;
}


static char *
ngx_kube_set_name(ngx_conf_t *cf, ngx_kube_informer_t *block, void *field,
    ngx_str_t *args, ngx_uint_t n)
{
    kube_str_t *str = field;

    if (str->len) {
        return "is duplicate";
    }

    if (!kube_name_is_subdomain(ngx_kube_str(&args[0]))) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid host name \"%V\"", &args[0]);
        return NGX_CONF_ERROR;
    }

    if (kube_config_set(&block->config, str, ngx_kube_str(&args[0]))
        != KUBE_OK)
    {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_kube_set_verify(ngx_conf_t *cf, ngx_kube_informer_t *block, void *field,
    ngx_str_t *args, ngx_uint_t n)
{
    if (args[0].len == 3 && ngx_strncmp(args[0].data, "off", 3) == 0) {
        block->config.tls_verify_off = true;

        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "tls_verify is off: whoever can reach the network "
                           "can read the token and choose the endpoints");
        return NGX_CONF_OK;
    }

    if (args[0].len == 2 && ngx_strncmp(args[0].data, "on", 2) == 0) {
        block->config.tls_verify_off = false;
        return NGX_CONF_OK;
    }

    return "must be \"on\" or \"off\"";
}


static char *
ngx_kube_set_namespaces(ngx_conf_t *cf, ngx_kube_informer_t *block,
    void *field, ngx_str_t *args, ngx_uint_t n)
{
    ngx_uint_t   i, j;
    kube_str_t  *ns;

    if (block->namespaces_mode != NGX_KUBE_NAMESPACES_AUTO) {
        return "is duplicate: name all namespaces in one";
    }

    if (n == 1 && args[0].len == 4
        && ngx_strncmp(args[0].data, "auto", 4) == 0)
    {
        return NGX_CONF_OK;
    }

    if (n == 1 && args[0].len == 3
        && ngx_strncmp(args[0].data, "all", 3) == 0)
    {
        block->namespaces_mode = NGX_KUBE_NAMESPACES_ALL;
        return NGX_CONF_OK;
    }

    block->namespaces_mode = NGX_KUBE_NAMESPACES_NAMED;

    for (i = 0; i < n; i++) {

        if (n > 1 && (ngx_strcmp(args[i].data, "auto") == 0
                      || ngx_strcmp(args[i].data, "all") == 0))
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"%V\" stands alone: remove it, or the names "
                               "of namespaces beside it", &args[i]);
            return NGX_CONF_ERROR;
        }

        if (!kube_name_is_label(ngx_kube_str(&args[i]))) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid namespace \"%V\": expected \"auto\", "
                               "\"all\" or names of lower case letters, "
                               "digits and \"-\"", &args[i]);
            return NGX_CONF_ERROR;
        }

        for (j = 0; j < i; j++) {
            if (args[j].len == args[i].len
                && ngx_strncmp(args[j].data, args[i].data, args[i].len) == 0)
            {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "namespace \"%V\" is named twice",
                                   &args[i]);
                return NGX_CONF_ERROR;
            }
        }

        ns = ngx_array_push(&block->namespaces);
        if (ns == NULL) {
            return NGX_CONF_ERROR;
        }

        *ns = ngx_kube_str(&args[i]);
    }

    return NGX_CONF_OK;
}


static char *
ngx_kube_set_selector(ngx_conf_t *cf, ngx_kube_informer_t *block, void *field,
    ngx_str_t *args, ngx_uint_t n)
{
    kube_str_t  expr;
    ngx_uint_t  r, from, to;

    from = 0;
    to = KUBE_RESOURCES;

    if (n == 2) {
        for (r = 0; r < KUBE_RESOURCES; r++) {
            if (kube_str_eq(ngx_kube_str(&args[0]),
                            kube_str(kube_resource_text(r))))
            {
                break;
            }
        }

        if (r == KUBE_RESOURCES) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "unknown resource \"%V\": expected "
                               "\"services\" or \"endpointslices\"",
                               &args[0]);
            return NGX_CONF_ERROR;
        }

        from = r;
        to = r + 1;
    }

    expr = ngx_kube_str(&args[n - 1]);

    if (expr.len == 0 || expr.len > KUBE_SELECTOR_LEN_MAX) {
        return "is empty or longer than 1024 bytes";
    }

    for (r = 0; r < expr.len; r++) {
        if ((u_char) expr.data[r] < 0x20 || (u_char) expr.data[r] > 0x7e) {
            return "has a byte that no selector has";
        }
    }

    for (r = from; r < to; r++) {
        if (block->label_selector[r].len) {
            return "is duplicate";
        }

        block->label_selector[r] = expr;
    }

    return NGX_CONF_OK;
}


static char *
ngx_kube_set_page(ngx_conf_t *cf, ngx_kube_informer_t *block, void *field,
    ngx_str_t *args, ngx_uint_t n)
{
    if (block->page_size != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    block->page_size = ngx_atoi(args[0].data, args[0].len);

    if (block->page_size == NGX_ERROR || block->page_size > 100000) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid page_size \"%V\": from 0 (one piece) to "
                           "100000", &args[0]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_kube_set_msec(ngx_conf_t *cf, ngx_kube_informer_t *block, void *field,
    ngx_str_t *args, ngx_uint_t n)
{
    ngx_msec_t *msp = field;

    ngx_int_t   value;
    ngx_uint_t  min, max;

    if (*msp != NGX_CONF_UNSET_MSEC) {
        return "is duplicate";
    }

    min = 1000;
    max = 24 * 3600 * 1000;

    if (msp == &block->connect_timeout) {
        min = 100;
        max = 60 * 1000;

    } else if (msp == &block->state_max_age) {
        max = (ngx_uint_t) 30 * 24 * 3600 * 1000;
    }

    value = ngx_parse_time(&args[0], 0);

    if (value == NGX_ERROR || (ngx_uint_t) value < min
        || (ngx_uint_t) value > max)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid time \"%V\": from %uims to %uis",
                           &args[0], min, max / 1000);
        return NGX_CONF_ERROR;
    }

    *msp = (ngx_msec_t) value;

    return NGX_CONF_OK;
}


static char *
ngx_kube_set_backoff(ngx_conf_t *cf, ngx_kube_informer_t *block, void *field,
    ngx_str_t *args, ngx_uint_t n)
{
    ngx_str_t  s;
    ngx_int_t  first, max, unreachable;

    if (block->backoff_first != NGX_CONF_UNSET_MSEC) {
        return "is duplicate";
    }

    first = ngx_parse_time(&args[0], 0);
    max = ngx_parse_time(&args[1], 0);
    unreachable = KUBE_BACKOFF_UNREACHABLE_MS;

    if (n == 3) {
        if (args[2].len <= 12
            || ngx_strncmp(args[2].data, "unreachable=", 12) != 0)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\": expected "
                               "unreachable=time", &args[2]);
            return NGX_CONF_ERROR;
        }

        s.data = args[2].data + 12;
        s.len = args[2].len - 12;
        unreachable = ngx_parse_time(&s, 0);
    }

    if (first == NGX_ERROR || max == NGX_ERROR || unreachable == NGX_ERROR
        || first < 10 || max < first || unreachable < first
        || max > 3600 * 1000 || unreachable > 3600 * 1000)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid backoff: \"backoff first max "
                           "[unreachable=time]\" with 10ms <= first <= max, "
                           "first <= unreachable, all at most 1h");
        return NGX_CONF_ERROR;
    }

    block->backoff_first = (ngx_msec_t) first;
    block->backoff_max = (ngx_msec_t) max;
    block->backoff_unreachable = (ngx_msec_t) unreachable;

    return NGX_CONF_OK;
}


static char *
ngx_kube_set_object(ngx_conf_t *cf, ngx_kube_informer_t *block, void *field,
    ngx_str_t *args, ngx_uint_t n)
{
    ssize_t  size;

    if (block->max_object != NGX_KUBE_UNSET_SIZE) {
        return "is duplicate";
    }

    size = ngx_parse_size(&args[0]);

    if (size == NGX_ERROR || size < (ssize_t) KUBE_OBJECT_BYTES_MIN
        || size > (ssize_t) KUBE_OBJECT_BYTES_MAX)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid max_object \"%V\": from 4k to 64m",
                           &args[0]);
        return NGX_CONF_ERROR;
    }

    block->max_object = (size_t) size;

    return NGX_CONF_OK;
}


static char *
ngx_kube_set_cidr(ngx_conf_t *cf, ngx_kube_informer_t *block, void *field,
    ngx_str_t *args, ngx_uint_t n)
{
    ngx_array_t *cidrs = field;

    ngx_uint_t    i;
    kube_cidr_t  *cidr;
    kube_error_t  error;

    for (i = 0; i < n; i++) {

        cidr = ngx_array_push(cidrs);
        if (cidr == NULL) {
            return NGX_CONF_ERROR;
        }

        if (kube_cidr_parse(ngx_kube_str(&args[i]), cidr, &error) != KUBE_OK)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid address range \"%V\": %s; expected "
                               "something like 10.0.0.0/8 or fd00::/8",
                               &args[i], error.what);
            return NGX_CONF_ERROR;
        }

        if (cidr->low_bits) {
            ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                               "low address bits of \"%V\" are meaningless",
                               &args[i]);
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_kube_set_state(ngx_conf_t *cf, ngx_kube_informer_t *block, void *field,
    ngx_str_t *args, ngx_uint_t n)
{
    if (block->state_named) {
        return "is duplicate";
    }

    block->state_named = 1;

    if (args[0].len == 0) {
        return "needs a directory or \"off\"";
    }

    if (args[0].len == 3 && ngx_strncmp(args[0].data, "off", 3) == 0) {
        return NGX_CONF_OK;
    }

    block->state_path = args[0];

    if (ngx_conf_full_name(cf->cycle, &block->state_path, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}
