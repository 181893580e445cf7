/*
 * ngx_kube_directive - the directives inside a kube_informer block, as a table
 * of nginx's own kind: nginx finds the directive and counts its arguments.
 *
 * A setter judges its own value alone; what must hold between directives is
 * judged at the end of the block (ngx_kube_conf.c).  conf of every setter is
 * the block's ngx_kube_informer_t.  Configuration time only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube.h"

#include "kube_version.h"


/* The values that a number, a size or a time may have. */
typedef struct {
    ssize_t    (*parse)(ngx_str_t *value);
    ssize_t      min;
    ssize_t      max;
    const char  *what;
    const char  *range;           /* min and max as the user would write them */
} ngx_kube_bounds_t;


static ssize_t ngx_kube_parse_number(ngx_str_t *value);
static ssize_t ngx_kube_parse_msec(ngx_str_t *value);
static char *ngx_kube_set_bounded(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_kube_set_word(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_kube_set_zone(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_kube_set_api(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *ngx_kube_set_file(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_kube_set_host(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_kube_warn_verify(ngx_conf_t *cf, void *post, void *data);
static char *ngx_kube_set_namespaces(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_kube_set_selector(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_kube_set_backoff(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_kube_set_cidr(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_kube_set_state_path(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_kube_refuse_planned(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


#define NGX_KUBE_SECOND  1000
#define NGX_KUBE_MINUTE  (60 * NGX_KUBE_SECOND)
#define NGX_KUBE_HOUR    (60 * NGX_KUBE_MINUTE)
#define NGX_KUBE_DAY     (24 * NGX_KUBE_HOUR)

static const ngx_kube_bounds_t  ngx_kube_page_bounds = {
    ngx_kube_parse_number, 0, 100000,
    "page_size", "from 0 (one piece) to 100000"
};

static const ngx_kube_bounds_t  ngx_kube_object_bounds = {
    ngx_parse_size, KUBE_OBJECT_BYTES_MIN, KUBE_OBJECT_BYTES_MAX,
    "max_object", "from 4k to 64m"
};

static const ngx_kube_bounds_t  ngx_kube_connect_bounds = {
    ngx_kube_parse_msec, 100, NGX_KUBE_MINUTE, "time", "from 100ms to 60s"
};

static const ngx_kube_bounds_t  ngx_kube_timeout_bounds = {
    ngx_kube_parse_msec, NGX_KUBE_SECOND, NGX_KUBE_DAY,
    "time", "from 1s to 24h"
};

static const ngx_kube_bounds_t  ngx_kube_age_bounds = {
    ngx_kube_parse_msec, NGX_KUBE_SECOND, (ssize_t) 30 * NGX_KUBE_DAY,
    "time", "from 1s to 30d"
};

static const ngx_kube_bounds_t  ngx_kube_share_bounds = {
    ngx_kube_parse_number, 1, 100, "zone_share", "from 1 to 100 (percent)"
};

static const ngx_kube_bounds_t  ngx_kube_outdated_bounds = {
    ngx_kube_parse_msec, 0, NGX_KUBE_DAY, "time", "from 0 to 24h"
};

static ngx_conf_enum_t  ngx_kube_watch_lists[] = {
    { ngx_string("auto"), KUBE_WATCH_LIST_AUTO },
    { ngx_string("on"), KUBE_WATCH_LIST_ON },
    { ngx_string("off"), KUBE_WATCH_LIST_OFF },
    { ngx_null_string, 0 }
};

static ngx_conf_enum_t  ngx_kube_endpoints[] = {
    { ngx_string("auto"), KUBE_ENDPOINTS_AUTO },
    { ngx_string("slices"), KUBE_ENDPOINTS_SLICES },
    { ngx_string("endpoints"), KUBE_ENDPOINTS_ENDPOINTS },
    { ngx_null_string, 0 }
};

static ngx_conf_enum_t  ngx_kube_encodings[] = {
    { ngx_string("auto"), KUBE_ENCODING_AUTO },
    { ngx_string("json"), KUBE_ENCODING_JSON },
    { ngx_string("protobuf"), KUBE_ENCODING_PROTOBUF },
    { ngx_null_string, 0 }
};

static ngx_conf_post_t  ngx_kube_verify_post = { ngx_kube_warn_verify };


#define ngx_kube_field(name)  offsetof(ngx_kube_informer_t, name)

/* conf stands in the array that the block is parsed with, by module index. */
#define NGX_KUBE_DIRECTIVE    (NGX_KUBE_BLOCK_CONF|NGX_DIRECT_CONF)

static ngx_command_t  ngx_kube_block_commands[] = {

    { ngx_string("zone"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE12,
      ngx_kube_set_zone, 0, 0, NULL },

    { ngx_string("api"), NGX_KUBE_DIRECTIVE|NGX_CONF_1MORE,
      ngx_kube_set_api, 0, 0, NULL },

    { ngx_string("token_file"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE1,
      ngx_kube_set_file, 0, ngx_kube_field(config.token.path), NULL },

    { ngx_string("ca_file"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE1,
      ngx_kube_set_file, 0, ngx_kube_field(config.ca.path), NULL },

    { ngx_string("client_certificate"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE1,
      ngx_kube_set_file, 0, ngx_kube_field(config.certificate.path), NULL },

    { ngx_string("client_certificate_key"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE1,
      ngx_kube_set_file, 0, ngx_kube_field(config.key.path), NULL },

    { ngx_string("tls_server_name"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE1,
      ngx_kube_set_host, 0, ngx_kube_field(config.tls_server_name), NULL },

    { ngx_string("tls_verify"), NGX_KUBE_DIRECTIVE|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot, 0, ngx_kube_field(tls_verify),
      &ngx_kube_verify_post },

    { ngx_string("namespaces"), NGX_KUBE_DIRECTIVE|NGX_CONF_1MORE,
      ngx_kube_set_namespaces, 0, 0, NULL },

    { ngx_string("label_selector"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE12,
      ngx_kube_set_selector, 0, ngx_kube_field(label_selector), NULL },

    { ngx_string("page_size"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE1,
      ngx_kube_set_bounded, 0, ngx_kube_field(page_size),
      (void *) &ngx_kube_page_bounds },

    { ngx_string("watch_list"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE1,
      ngx_kube_set_word, 0, ngx_kube_field(watch_list),
      ngx_kube_watch_lists },

    { ngx_string("endpoints"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE1,
      ngx_kube_set_word, 0, ngx_kube_field(endpoints),
      ngx_kube_endpoints },

    { ngx_string("encoding"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE1,
      ngx_kube_set_word, 0, ngx_kube_field(encoding),
      ngx_kube_encodings },

    { ngx_string("max_object"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE1,
      ngx_kube_set_bounded, 0, ngx_kube_field(max_object),
      (void *) &ngx_kube_object_bounds },

    { ngx_string("connect_timeout"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE1,
      ngx_kube_set_bounded, 0, ngx_kube_field(connect_timeout),
      (void *) &ngx_kube_connect_bounds },

    { ngx_string("watch_timeout"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE1,
      ngx_kube_set_bounded, 0, ngx_kube_field(watch_timeout),
      (void *) &ngx_kube_timeout_bounds },

    { ngx_string("idle_timeout"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE1,
      ngx_kube_set_bounded, 0, ngx_kube_field(idle_timeout),
      (void *) &ngx_kube_timeout_bounds },

    { ngx_string("zone_share"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE1,
      ngx_kube_set_bounded, 0, ngx_kube_field(zone_share),
      (void *) &ngx_kube_share_bounds },

    { ngx_string("max_outdated"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE1,
      ngx_kube_set_bounded, 0, ngx_kube_field(max_outdated),
      (void *) &ngx_kube_outdated_bounds },

    { ngx_string("state_max_age"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE1,
      ngx_kube_set_bounded, 0, ngx_kube_field(state_max_age),
      (void *) &ngx_kube_age_bounds },

    { ngx_string("state_path"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE1,
      ngx_kube_set_state_path, 0, 0, NULL },

    { ngx_string("backoff"), NGX_KUBE_DIRECTIVE|NGX_CONF_TAKE23,
      ngx_kube_set_backoff, 0, 0, NULL },

    { ngx_string("allow_address"), NGX_KUBE_DIRECTIVE|NGX_CONF_1MORE,
      ngx_kube_set_cidr, 0, ngx_kube_field(allow), NULL },

    { ngx_string("deny_address"), NGX_KUBE_DIRECTIVE|NGX_CONF_1MORE,
      ngx_kube_set_cidr, 0, ngx_kube_field(deny), NULL },

#define ngx_kube_planned(name)                                                \
    { ngx_string(name), NGX_KUBE_DIRECTIVE|NGX_CONF_ANY,                      \
      ngx_kube_refuse_planned, 0, 0, NULL }

    ngx_kube_planned("field_selector"),
    ngx_kube_planned("resync"),
    ngx_kube_planned("max_stale"),
    ngx_kube_planned("topology_node"),
    ngx_kube_planned("topology_zone"),

      ngx_null_command
};


/* A module for the sake of its commands: it has no life of its own. */

static ngx_core_module_t  ngx_kube_block_module_ctx = {
    ngx_string("kube_informer"),
    NULL,
    NULL
};


ngx_module_t  ngx_kube_block_module = {
    NGX_MODULE_V1,
    &ngx_kube_block_module_ctx,            /* module context */
    ngx_kube_block_commands,               /* module directives */
    NGX_KUBE_BLOCK_MODULE,                 /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static char *
ngx_kube_refuse_planned(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "unknown directive \"%V\": it is planned, but version "
                       KUBE_VERSION " does not have it; remove it",
                       &cmd->name);

    return NGX_CONF_ERROR;
}


static ssize_t
ngx_kube_parse_number(ngx_str_t *value)
{
    return ngx_atoi(value->data, value->len);
}


static ssize_t
ngx_kube_parse_msec(ngx_str_t *value)
{
    return ngx_parse_time(value, 0);
}


/*
 * One slot for ngx_int_t, size_t and ngx_msec_t, which are all as wide as
 * ssize_t; nginx's own slots do not say which values would be right.
 */

static char *
ngx_kube_set_bounded(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ssize_t                  *field;
    ngx_str_t                *value;
    const ngx_kube_bounds_t  *bounds;

    field = (ssize_t *) ((char *) conf + cmd->offset);
    bounds = cmd->post;
    value = cf->args->elts;

    if (*field != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    *field = bounds->parse(&value[1]);

    if (*field == NGX_ERROR || *field < bounds->min || *field > bounds->max) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid %s \"%V\": %s",
                           bounds->what, &value[1], bounds->range);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* As ngx_conf_set_enum_slot(), and says which words there are. */

static char *
ngx_kube_set_word(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    u_char            names[64], *p, *last;
    ngx_str_t        *value;
    ngx_uint_t       *field, i;
    ngx_conf_enum_t  *words;

    field = (ngx_uint_t *) ((char *) conf + cmd->offset);
    words = cmd->post;
    value = cf->args->elts;

    if (*field != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    p = names;
    last = names + sizeof(names);

    for (i = 0; words[i].name.len; i++) {
        if (words[i].name.len == value[1].len
            && ngx_strcmp(words[i].name.data, value[1].data) == 0)
        {
            *field = words[i].value;
            return NGX_CONF_OK;
        }

        p = ngx_slprintf(p, last, "%s\"%V\"", p == names ? "" : ", ",
                         &words[i].name);
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V\": expected one of %*s",
                       &value[1], p - names, names);
    return NGX_CONF_ERROR;
}


/* Whether it ends as "name:size", which zones of other modules are written. */
static ngx_uint_t
ngx_kube_zone_sized(const ngx_str_t *name)
{
    size_t     i;
    ngx_str_t  size;

    for (i = name->len; i > 0; i--) {

        if (name->data[i - 1] == ':' || name->data[i - 1] == '=') {
            size.data = name->data + i;
            size.len = name->len - i;

            return size.len != 0 && ngx_parse_size(&size) != NGX_ERROR;
        }
    }

    return 0;
}


static char *
ngx_kube_set_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_kube_informer_t *block = conf;

    ssize_t     size;
    ngx_str_t  *value;

    value = cf->args->elts;

    if (block->zone_name.len) {
        return "is duplicate";
    }

    if (value[1].len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "zone needs a name: \"zone name size;\"");
        return NGX_CONF_ERROR;
    }

    block->zone_name = value[1];

    if (cf->args->nelts == 2) {

        /* it would be a zone of that name, and of the default's size */

        if (ngx_parse_size(&value[1]) != NGX_ERROR) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"%V\" is a size, and the zone's name is "
                               "missing: \"zone name size;\"", &value[1]);
            return NGX_CONF_ERROR;
        }

        if (ngx_kube_zone_sized(&value[1])) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"%V\" would be the name of a zone of the "
                               "default size: \"zone name size;\"", &value[1]);
            return NGX_CONF_ERROR;
        }

        return NGX_CONF_OK;
    }

    size = ngx_parse_size(&value[2]);

    if (size == NGX_ERROR
        || size < (ssize_t) (2 * KUBE_ZONE_SIZE_MIN)
        || (uint64_t) size > KUBE_ZONE_SIZE_MAX)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid zone size \"%V\": from 128k to 4096m",
                           &value[2]);
        return NGX_CONF_ERROR;
    }

    block->zone_size = (size_t) size;

    return NGX_CONF_OK;
}


static char *
ngx_kube_set_api(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_kube_informer_t *block = conf;

    ngx_str_t     *args;
    ngx_uint_t     i, n;
    kube_error_t   error;

    args = (ngx_str_t *) cf->args->elts + 1;
    n = cf->args->nelts - 1;

    if (block->api_set) {
        return "is duplicate: name all addresses in one";
    }

    block->api_set = 1;
    block->api_line = cf->conf_file->line;

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
ngx_kube_set_file(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_kube_informer_t *block = conf;

    ngx_str_t         path;
    kube_str_t       *field;
    ngx_file_info_t   fi;

    field = (kube_str_t *) ((char *) conf + cmd->offset);
    path = ((ngx_str_t *) cf->args->elts)[1];

    if (field->len) {
        return "is duplicate";
    }

    if (path.len == 0) {
        return "needs a path";
    }

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

    if (kube_config_set(&block->config, field, ngx_kube_str(&path)) != KUBE_OK)
    {
        return "is too long";
    }

    return NGX_CONF_OK;
}


static char *
ngx_kube_set_host(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_kube_informer_t *block = conf;

    ngx_str_t   *value;
    kube_str_t  *field;

    field = (kube_str_t *) ((char *) conf + cmd->offset);
    value = cf->args->elts;

    if (field->len) {
        return "is duplicate";
    }

    if (!kube_name_is_subdomain(ngx_kube_str(&value[1]))) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid host name \"%V\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    if (kube_config_set(&block->config, field, ngx_kube_str(&value[1]))
        != KUBE_OK)
    {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_kube_warn_verify(ngx_conf_t *cf, void *post, void *data)
{
    ngx_flag_t  *verify = data;

    if (!*verify) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "tls_verify is off: whoever can reach the network "
                           "can read the token and choose the endpoints");
    }

    return NGX_CONF_OK;
}


static char *
ngx_kube_set_namespaces(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_kube_informer_t *block = conf;

    ngx_str_t   *args;
    ngx_uint_t   i, j, n;
    kube_str_t  *ns;

    args = (ngx_str_t *) cf->args->elts + 1;
    n = cf->args->nelts - 1;

    if (block->namespaces_set) {
        return "is duplicate: name all namespaces in one";
    }

    block->namespaces_set = 1;

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

    if (n > KUBE_NAMESPACES_MAX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "more than %d namespaces: name fewer, or \"all\"",
                           KUBE_NAMESPACES_MAX);
        return NGX_CONF_ERROR;
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
                               "digits and \"-\", 63 of them at most",
                               &args[i]);
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
ngx_kube_set_selector(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    kube_str_t   expr, *selectors;
    ngx_str_t   *args;
    ngx_uint_t   i, r, n, from, to;

    selectors = (kube_str_t *) ((char *) conf + cmd->offset);
    args = (ngx_str_t *) cf->args->elts + 1;
    n = cf->args->nelts - 1;

    from = 0;
    to = KUBE_RESOURCES_ROUTED;

    for (r = 0; r < KUBE_RESOURCES_ROUTED; r++) {
        if (kube_str_eq(ngx_kube_str(&args[0]),
                        kube_str(kube_resource_text(r))))
        {
            break;
        }
    }

    if (n == 1 && r != KUBE_RESOURCES_ROUTED) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" is a resource, and the expression is "
                           "missing: \"label_selector [resource] expr;\"",
                           &args[0]);
        return NGX_CONF_ERROR;
    }

    if (n == 2) {
        if (r == KUBE_RESOURCES_ROUTED) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "unknown resource \"%V\": expected "
                               "\"services\", \"endpointslices\" or "
                               "\"endpoints\"",
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

    for (i = 0; i < expr.len; i++) {
        if ((u_char) expr.data[i] < 0x20 || (u_char) expr.data[i] > 0x7e) {
            return "has a byte that no selector has";
        }
    }

    for (r = from; r < to; r++) {
        if (selectors[r].len) {
            return "is duplicate";
        }

        selectors[r] = expr;
    }

    return NGX_CONF_OK;
}


static char *
ngx_kube_set_backoff(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_kube_informer_t *block = conf;

    ngx_str_t   s, *args;
    ngx_int_t   first, max, unreachable;

    args = (ngx_str_t *) cf->args->elts + 1;

    if (block->backoff_first != NGX_CONF_UNSET_MSEC) {
        return "is duplicate";
    }

    first = ngx_parse_time(&args[0], 0);
    max = ngx_parse_time(&args[1], 0);
    unreachable = KUBE_BACKOFF_UNREACHABLE_MS;

    if (cf->args->nelts == 3 && max >= first && first > unreachable) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"unreachable=%ims\", the default, is less than "
                           "\"%V\": add \"unreachable=%V\" or more",
                           unreachable, &args[0], &args[0]);
        return NGX_CONF_ERROR;
    }

    if (cf->args->nelts == 4) {
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
ngx_kube_set_cidr(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t     *value;
    ngx_uint_t     i;
    const char    *special;
    ngx_array_t   *cidrs;
    kube_cidr_t   *cidr;
    kube_error_t   error;

    cidrs = (ngx_array_t *) ((char *) conf + cmd->offset);
    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        cidr = ngx_array_push(cidrs);
        if (cidr == NULL) {
            return NGX_CONF_ERROR;
        }

        if (kube_cidr_parse(ngx_kube_str(&value[i]), cidr, &error) != KUBE_OK)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid address range \"%V\": %s; expected "
                               "something like 10.0.0.0/8 or fd00::/8",
                               &value[i], error.what);
            return NGX_CONF_ERROR;
        }

        if (cidr->low_bits) {
            ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                               "low address bits of \"%V\" are meaningless",
                               &value[i]);
        }

        special = kube_policy_wider(cidr);

        if (special != NULL
            && cmd->offset == offsetof(ngx_kube_informer_t, allow))
        {
            ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                               "\"allow_address %V\" does not permit %s, nor "
                               "any other special network: name those that "
                               "are meant", &value[i], special);
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_kube_set_state_path(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_kube_informer_t *block = conf;

    ngx_str_t  *value;

    value = cf->args->elts;

    if (block->state_named) {
        return "is duplicate";
    }

    block->state_named = 1;

    if (value[1].len == 0) {
        return "needs a directory or \"off\"";
    }

    if (value[1].len == 3 && ngx_strncmp(value[1].data, "off", 3) == 0) {
        return NGX_CONF_OK;
    }

    block->state_path = value[1];

    if (ngx_conf_full_name(cf->cycle, &block->state_path, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}
