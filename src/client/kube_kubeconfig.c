/*
 * kube_kubeconfig - reads one kubeconfig file into a kube_config_t.
 *
 * libyaml's document is walked along the keys that are needed, never as a
 * whole: aliases cannot make it grow, and depth does not matter.  Keys and
 * names that occur twice are refused: client-go and we could pick different
 * ones.  Merge keys (<<) are followed, as sigs.k8s.io/yaml does.  Lists of
 * files (KUBECONFIG=a:b) are not merged.
 *
 * Sources: client-go tools/clientcmd/api/v1/types.go and conversion.go;
 * go.yaml.in/yaml/v2 decode.go (merge).
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include <yaml.h>

#include "kube_config.h"
#include "kube_limits.h"
#include "kube_secret.h"


/* Mappings that one look-up may go through; a real file needs two or three. */
#define KUBE_KUBECONFIG_MERGES_MAX  100


typedef struct {
    kube_config_t   *config;
    yaml_document_t  document;
    kube_str_t       dir;        /* of the file, with its last slash */
    kube_error_t     error;      /* rc KUBE_OK: nothing was wrong so far */
    unsigned         merges;     /* mappings left for this look-up */
} kubeconfig_t;

typedef enum {
    KUBECONFIG_TEXT,
    KUBECONFIG_PATH,
    KUBECONFIG_LINE,     /* the first of a text */
    KUBECONFIG_COMMAND,  /* a path if it has a slash */
    KUBECONFIG_PEM,      /* base64 of it */
    KUBECONFIG_TOKEN
} kubeconfig_kind_t;

typedef struct {
    const char         *key;
    kubeconfig_kind_t   kind;
    size_t              offset;   /* in kube_config_t */
    const char         *what;     /* the error's text */
} kubeconfig_field_t;

/* Keys that change who we are and are not honoured. */
typedef struct {
    const char  *key;
    bool         mapping;   /* as {} it is as if it were not there */
    const char  *what;
} kubeconfig_refused_t;


static const kubeconfig_field_t  kubeconfig_cluster_fields[] = {

    { "certificate-authority", KUBECONFIG_PATH,
      offsetof(kube_config_t, ca.path),
      "certificate-authority is not a path" },

    { "certificate-authority-data", KUBECONFIG_PEM,
      offsetof(kube_config_t, ca.data),
      "certificate-authority-data is not PEM in base64" },

    { "tls-server-name", KUBECONFIG_TEXT,
      offsetof(kube_config_t, tls_server_name),
      "tls-server-name is not a name" },

    { "proxy-url", KUBECONFIG_TEXT,
      offsetof(kube_config_t, proxy_url),
      "proxy-url is not a URL" },

    { NULL, KUBECONFIG_TEXT, 0, NULL }
};

static const kubeconfig_field_t  kubeconfig_user_fields[] = {

    { "client-certificate", KUBECONFIG_PATH,
      offsetof(kube_config_t, certificate.path),
      "client-certificate is not a path" },

    { "client-certificate-data", KUBECONFIG_PEM,
      offsetof(kube_config_t, certificate.data),
      "client-certificate-data is not PEM in base64" },

    { "client-key", KUBECONFIG_PATH,
      offsetof(kube_config_t, key.path),
      "client-key is not a path" },

    { "client-key-data", KUBECONFIG_PEM,
      offsetof(kube_config_t, key.data),
      "client-key-data is not PEM in base64" },

    { "token", KUBECONFIG_TOKEN,
      offsetof(kube_config_t, token.data),
      "token holds bytes that a header cannot carry" },

    { "tokenFile", KUBECONFIG_PATH,
      offsetof(kube_config_t, token.path),
      "tokenFile is not a path" },

    { NULL, KUBECONFIG_TEXT, 0, NULL }
};

static const kubeconfig_field_t  kubeconfig_exec_fields[] = {

    { "command", KUBECONFIG_COMMAND,
      offsetof(kube_config_t, exec.command),
      "exec's command is not a program" },

    { "apiVersion", KUBECONFIG_TEXT,
      offsetof(kube_config_t, exec.api_version),
      "exec's apiVersion is not a text" },

    { "installHint", KUBECONFIG_LINE,
      offsetof(kube_config_t, exec.install_hint),
      "exec's installHint is not a text" },

    { NULL, KUBECONFIG_TEXT, 0, NULL }
};

static const kubeconfig_refused_t  kubeconfig_user_refused[] = {

    { "auth-provider", false,
      "the user logs in with an auth-provider, which is not supported: use a "
      "token or a client certificate" },

    { "username", false,
      "username and password are not supported: use a token or a client "
      "certificate" },

    { "password", false,
      "username and password are not supported: use a token or a client "
      "certificate" },

    { "as", false, "impersonation (as) is not supported" },
    { "as-uid", false, "impersonation (as-uid) is not supported" },
    { "as-groups", false, "impersonation (as-groups) is not supported" },

    /* old versions of kubectl wrote it as {} */

    { "as-user-extra", true,
      "impersonation (as-user-extra) is not supported" },

    { NULL, false, NULL }
};


/*
 * Keeps the first thing that was wrong.  Once there is one, the functions
 * below find and set nothing: callers look at error.rc when it suits them.
 */
static void
kubeconfig_fail(kubeconfig_t *k, const yaml_node_t *node, kube_rc_t rc,
    const char *what)
{
    if (k->error.rc == KUBE_OK) {
        k->error.rc = rc;
        k->error.what = what;
        k->error.offset = node != NULL ? node->start_mark.line + 1 : 0;
    }
}


static kube_str_t
kubeconfig_scalar(const yaml_node_t *node)
{
    return (kube_str_t) { (const char *) node->data.scalar.value,
                          node->data.scalar.length };
}


static bool
kubeconfig_is_plain(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE
           && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}


static bool
kubeconfig_is_null(const yaml_node_t *node)
{
    kube_str_t  s;

    if (!kubeconfig_is_plain(node)) {
        return false;
    }

    s = kubeconfig_scalar(node);

    return s.len == 0 || kube_str_eq(s, KUBE_STR("~"))
           || kube_str_eq(s, KUBE_STR("null"))
           || kube_str_eq(s, KUBE_STR("Null"))
           || kube_str_eq(s, KUBE_STR("NULL"));
}


/*
 * Returns the value of the key, or NULL; map may be what a merge names.  A key
 * of the mapping itself counts more than a merge, and has to stand behind it:
 * written before, the merge would win in Go, and the key by YAML's own rule.
 */
static yaml_node_t *
kubeconfig_find_raw(kubeconfig_t *k, yaml_node_t *map, const char *key)
{
    yaml_node_t       *name, *own, *value, *node;
    yaml_node_pair_t  *pair;
    yaml_node_item_t  *merge, *end;

    if (map == NULL || map->type != YAML_MAPPING_NODE) {
        kubeconfig_fail(k, map, KUBE_INVALID,
                        "a merge (<<) takes a mapping or a list of mappings");
        return NULL;
    }

    if (k->merges-- == 0) {
        kubeconfig_fail(k, map, KUBE_INVALID, "too many merges (<<)");
    }

    own = NULL;
    value = NULL;

    for (pair = map->data.mapping.pairs.start;
         pair < map->data.mapping.pairs.top && k->error.rc == KUBE_OK;
         pair++)
    {
        name = yaml_document_get_node(&k->document, pair->key);
        node = yaml_document_get_node(&k->document, pair->value);

        if (name == NULL || node == NULL || name->type != YAML_SCALAR_NODE) {
            continue;
        }

        if (kube_str_eq(kubeconfig_scalar(name), kube_str(key))) {

            if (own != NULL) {
                kubeconfig_fail(k, name, KUBE_INVALID,
                                "the same key stands here twice");
            }

            own = name;
            value = node;

        } else if (kubeconfig_is_plain(name)
                   && kube_str_eq(kubeconfig_scalar(name), KUBE_STR("<<")))
        {
            merge = &pair->value;
            end = merge + 1;

            if (node->type == YAML_SEQUENCE_NODE) {
                merge = node->data.sequence.items.start;
                end = node->data.sequence.items.top;
            }

            /* of a list, the first mapping that has the key counts */

            for (node = NULL; merge < end && node == NULL; merge++) {
                node = yaml_document_get_node(&k->document, *merge);
                node = kubeconfig_find_raw(k, node, key);
            }

            if (node != NULL && own != NULL) {
                kubeconfig_fail(k, own, KUBE_INVALID, "this key stands before "
                                "a merge (<<) that has it too: put << first");
            }

            value = (node != NULL) ? node : value;
        }
    }

    return value;
}


/* Returns NULL if the key is absent or null. */
static yaml_node_t *
kubeconfig_find(kubeconfig_t *k, yaml_node_t *map, const char *key)
{
    yaml_node_t  *value;

    k->merges = KUBE_KUBECONFIG_MERGES_MAX;

    value = kubeconfig_find_raw(k, map, key);

    return k->error.rc == KUBE_OK && value != NULL && !kubeconfig_is_null(value)
           ? value : NULL;
}


/* Returns a text without control bytes; empty if it is absent. */
static kube_str_t
kubeconfig_text(kubeconfig_t *k, yaml_node_t *map, const char *key,
    const char *what, yaml_node_t **node)
{
    size_t      i;
    kube_str_t  text;

    *node = kubeconfig_find(k, map, key);

    if (*node == NULL) {
        return KUBE_STR_NULL;
    }

    /* of !!binary the text would be another one, its base64 */

    if ((*node)->type != YAML_SCALAR_NODE
        || strcmp((const char *) (*node)->tag, "tag:yaml.org,2002:binary")
           == 0)
    {
        kubeconfig_fail(k, *node, KUBE_INVALID, what);
        return KUBE_STR_NULL;
    }

    text = kubeconfig_scalar(*node);

    for (i = 0; i < text.len; i++) {
        if ((unsigned char) text.data[i] < 0x20 && text.data[i] != '\n'
            && text.data[i] != '\r')
        {
            kubeconfig_fail(k, *node, KUBE_INVALID, what);
            return KUBE_STR_NULL;
        }
    }

    return text;
}


/* A relative path counts from where the file is, not from where we are. */
static kube_rc_t
kubeconfig_set_path(kubeconfig_t *k, kube_str_t *field, kube_str_t path)
{
    char  joined[2 * KUBE_URL_LEN_MAX];

    if (path.data[0] == '/' || k->dir.len == 0) {
        return kube_config_set(k->config, field, path);
    }

    memcpy(joined, k->dir.data, k->dir.len);
    memcpy(joined + k->dir.len, path.data, path.len);

    return kube_config_set(k->config, field,
                           (kube_str_t) { joined, k->dir.len + path.len });
}


static kube_rc_t
kubeconfig_set_pem(kubeconfig_t *k, kube_str_t *field, kube_str_t text)
{
    kube_rc_t   rc;
    kube_str_t  pem;

    rc = kube_secret_base64(&k->config->alloc, text, &pem);
    if (rc != KUBE_OK) {
        return rc;
    }

    if (!kube_secret_is_pem(pem)) {
        kube_secret_free(&k->config->alloc, &pem);
        return KUBE_INVALID;
    }

    kube_secret_free(&k->config->alloc, field);
    *field = pem;

    return KUBE_OK;
}


static kube_rc_t
kubeconfig_set(kubeconfig_t *k, const kubeconfig_field_t *f, kube_str_t text)
{
    kube_str_t  *field;
    const char  *end;

    field = (kube_str_t *) (void *) ((char *) k->config + f->offset);

    switch (f->kind) {

    case KUBECONFIG_PEM:
        return kubeconfig_set_pem(k, field, text);

    case KUBECONFIG_TOKEN:
        text = kube_secret_trim(text);

        return kube_secret_is_token(text)
               ? kube_config_set(k->config, field, text) : KUBE_INVALID;

    case KUBECONFIG_LINE:

        /* az writes an installHint whose first line is empty */

        text = kube_secret_trim(text);
        end = memchr(text.data, '\n', text.len);
        text.len = (end != NULL) ? (size_t) (end - text.data) : text.len;
        break;

    default:
        break;
    }

    if (text.len >= KUBE_URL_LEN_MAX
        || memchr(text.data, '\n', text.len) != NULL
        || memchr(text.data, '\r', text.len) != NULL)
    {
        return KUBE_INVALID;
    }

    if (f->kind == KUBECONFIG_PATH
        || (f->kind == KUBECONFIG_COMMAND
            && memchr(text.data, '/', text.len) != NULL))
    {
        return kubeconfig_set_path(k, field, text);
    }

    return kube_config_set(k->config, field, text);
}


static void
kubeconfig_read_fields(kubeconfig_t *k, yaml_node_t *map,
    const kubeconfig_field_t *f)
{
    kube_rc_t     rc;
    kube_str_t    text;
    yaml_node_t  *node;

    for ( /* void */ ; f->key != NULL; f++) {
        text = kubeconfig_text(k, map, f->key, f->what, &node);

        if (text.len == 0) {
            continue;
        }

        rc = kubeconfig_set(k, f, text);

        if (rc != KUBE_OK) {
            kubeconfig_fail(k, node, rc,
                            rc == KUBE_NOMEM ? "out of memory" : f->what);
        }
    }
}


/* YAML 1.1's words, as client-go's parser takes them. */
static bool
kubeconfig_bool(kubeconfig_t *k, yaml_node_t *map, const char *key,
    const char *what)
{
    size_t                    i;
    kube_str_t                text;
    yaml_node_t              *node;
    static const char *const  words[] = {
        "false", "true", "False", "True", "FALSE", "TRUE",
        "no", "yes", "No", "Yes", "NO", "YES", "off", "on", "Off", "On",
        "OFF", "ON", "n", "y", "N", "Y"
    };

    text = kubeconfig_text(k, map, key, what, &node);

    if (node == NULL) {
        return false;
    }

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (kube_str_eq(text, kube_str(words[i])) && kubeconfig_is_plain(node))
        {
            return i % 2 == 1;
        }
    }

    kubeconfig_fail(k, node, KUBE_INVALID, what);

    return false;
}


/*
 * Returns the body of the one item of that name in a list of the file; NULL
 * without an error if the body is null.
 */
static yaml_node_t *
kubeconfig_lookup(kubeconfig_t *k, const char *list_key, const char *body_key,
    kube_str_t name, const char *missing)
{
    kube_str_t         text;
    yaml_node_t       *root, *list, *item, *found, *node;
    yaml_node_item_t  *i;

    root = yaml_document_get_root_node(&k->document);
    list = kubeconfig_find(k, root, list_key);

    if (list == NULL) {
        kubeconfig_fail(k, NULL, KUBE_NOT_FOUND, missing);
        return NULL;
    }

    if (list->type != YAML_SEQUENCE_NODE) {
        kubeconfig_fail(k, list, KUBE_INVALID,
                        "clusters, users and contexts are lists");
        return NULL;
    }

    found = NULL;

    for (i = list->data.sequence.items.start;
         i < list->data.sequence.items.top && k->error.rc == KUBE_OK;
         i++)
    {
        item = yaml_document_get_node(&k->document, *i);

        if (item == NULL || item->type != YAML_MAPPING_NODE) {
            kubeconfig_fail(k, item, KUBE_INVALID,
                            "an entry of the list is not a mapping");
            return NULL;
        }

        text = kubeconfig_text(k, item, "name", "name is not a text", &node);

        if (k->error.rc != KUBE_OK || !kube_str_eq(text, name)) {
            continue;
        }

        if (found != NULL) {
            kubeconfig_fail(k, item, KUBE_INVALID,
                            "this name stands in the list twice");
        }

        found = item;
    }

    if (found == NULL) {
        kubeconfig_fail(k, list, KUBE_NOT_FOUND, missing);
        return NULL;
    }

    node = kubeconfig_find(k, found, body_key);

    if (node != NULL && node->type != YAML_MAPPING_NODE) {
        kubeconfig_fail(k, node, KUBE_INVALID,
                        "a cluster, user or context is a mapping");
        return NULL;
    }

    return node;
}


static void
kubeconfig_read_cluster(kubeconfig_t *k, kube_str_t name)
{
    kube_rc_t      rc;
    kube_str_t     server;
    yaml_node_t   *cluster, *node;
    kube_error_t   error;

    cluster = kubeconfig_lookup(k, "clusters", "cluster", name,
                                "the context's cluster is not in the file");

    if (cluster == NULL) {
        kubeconfig_fail(k, NULL, KUBE_INVALID, "the cluster is empty");
        return;
    }

    server = kubeconfig_text(k, cluster, "server", "server is not a URL",
                             &node);

    if (server.len == 0) {
        kubeconfig_fail(k, cluster, KUBE_INVALID, "the cluster has no server");
        return;
    }

    rc = kube_config_add_server(k->config, server, &error);

    if (rc != KUBE_OK) {
        kubeconfig_fail(k, node, rc, error.what);
    }

    k->config->tls_verify_off =
        kubeconfig_bool(k, cluster, "insecure-skip-tls-verify",
                        "insecure-skip-tls-verify is neither true nor false");

    kubeconfig_read_fields(k, cluster, kubeconfig_cluster_fields);
}


/* A word that a program is given: any text, on one line or several. */
static void
kubeconfig_add_word(kubeconfig_t *k, const yaml_node_t *node, kube_str_t name,
    kube_str_t value, kube_str_t *words, size_t *n)
{
    char         *p;
    size_t        size;
    const char   *what;

    what = "exec has more than 64 args or env, or one with a zero byte, or "
           "one of more than 8192 bytes";

    size = name.len + value.len + 2;

    if (*n == KUBE_EXEC_WORDS_MAX
        || size > KUBE_URL_LEN_MAX
        || memchr(name.data, '\0', name.len) != NULL
        || memchr(value.data, '\0', value.len) != NULL)
    {
        kubeconfig_fail(k, node, KUBE_INVALID, what);
        return;
    }

    p = kube_alloc(&k->config->alloc, size);

    if (p == NULL) {
        kubeconfig_fail(k, node, KUBE_NOMEM, "out of memory");
        return;
    }

    words[*n].data = p;

    if (name.len != 0) {
        memcpy(p, name.data, name.len);
        p += name.len;
        *p++ = '=';
    }

    memcpy(p, value.data, value.len);
    p += value.len;
    *p = '\0';

    words[*n].len = (size_t) (p - words[*n].data);
    (*n)++;
}


static void
kubeconfig_read_args(kubeconfig_t *k, yaml_node_t *exec)
{
    yaml_node_t       *list, *node;
    yaml_node_item_t  *i;

    list = kubeconfig_find(k, exec, "args");

    if (list == NULL) {
        return;
    }

    if (list->type != YAML_SEQUENCE_NODE) {
        kubeconfig_fail(k, list, KUBE_INVALID, "exec's args are a list");
        return;
    }

    for (i = list->data.sequence.items.start;
         i < list->data.sequence.items.top && k->error.rc == KUBE_OK;
         i++)
    {
        node = yaml_document_get_node(&k->document, *i);

        if (node == NULL || node->type != YAML_SCALAR_NODE) {
            kubeconfig_fail(k, node, KUBE_INVALID,
                            "one of exec's args is not a text");
            return;
        }

        kubeconfig_add_word(k, node, KUBE_STR(""),
                            kubeconfig_is_null(node) ? KUBE_STR("")
                                                : kubeconfig_scalar(node),
                            k->config->exec.args, &k->config->exec.args_n);
    }
}


static void
kubeconfig_read_env(kubeconfig_t *k, yaml_node_t *exec)
{
    kube_str_t         name, value;
    yaml_node_t       *list, *item, *node;
    yaml_node_item_t  *i;

    list = kubeconfig_find(k, exec, "env");

    if (list == NULL) {
        return;
    }

    if (list->type != YAML_SEQUENCE_NODE) {
        kubeconfig_fail(k, list, KUBE_INVALID, "exec's env is a list");
        return;
    }

    for (i = list->data.sequence.items.start;
         i < list->data.sequence.items.top && k->error.rc == KUBE_OK;
         i++)
    {
        item = yaml_document_get_node(&k->document, *i);
        name = kubeconfig_text(k, item, "name", "a name in exec's env is not "
                               "a text", &node);
        value = kubeconfig_text(k, item, "value", "a value in exec's env is "
                                "not a text", &node);

        if (name.len == 0 || memchr(name.data, '=', name.len) != NULL) {
            kubeconfig_fail(k, item, KUBE_INVALID,
                            "a name in exec's env is empty, or has a \"=\"");
            return;
        }

        kubeconfig_add_word(k, item, name,
                            value.len != 0 ? value : KUBE_STR(""),
                            k->config->exec.env, &k->config->exec.env_n);
    }
}


/* There is no terminal to ask at. */
static void
kubeconfig_read_mode(kubeconfig_t *k, yaml_node_t *exec)
{
    kube_str_t    mode;
    yaml_node_t  *node;

    mode = kubeconfig_text(k, exec, "interactiveMode",
                           "exec's interactiveMode is not a text", &node);

    if (kube_str_eq(mode, KUBE_STR("Always"))) {
        kubeconfig_fail(k, node, KUBE_INVALID, "the exec plugin asks at a "
                        "terminal (interactiveMode: Always): there is none");

    } else if (mode.len != 0 && !kube_str_eq(mode, KUBE_STR("Never"))
               && !kube_str_eq(mode, KUBE_STR("IfAvailable")))
    {
        kubeconfig_fail(k, node, KUBE_INVALID, "exec's interactiveMode is "
                        "Never, IfAvailable or Always");

    } else if (mode.len == 0
               && kube_str_eq(k->config->exec.api_version,
                              KUBE_STR("client.authentication.k8s.io/v1")))
    {
        kubeconfig_fail(k, exec, KUBE_INVALID, "exec of v1 needs an "
                        "interactiveMode: Never or IfAvailable");
    }
}


static void
kubeconfig_read_exec(kubeconfig_t *k, yaml_node_t *user)
{
    kube_str_t         version;
    yaml_node_t       *exec;
    kube_exec_conf_t  *conf = &k->config->exec;

    exec = kubeconfig_find(k, user, "exec");

    if (exec == NULL) {
        return;
    }

    kubeconfig_read_fields(k, exec, kubeconfig_exec_fields);

    if (conf->command.len == 0) {
        kubeconfig_fail(k, exec, KUBE_INVALID, "exec names no command");
    }

    version = conf->api_version;

    if (!kube_str_eq(version, KUBE_STR("client.authentication.k8s.io/v1"))
        && !kube_str_eq(version,
                        KUBE_STR("client.authentication.k8s.io/v1beta1")))
    {
        kubeconfig_fail(k, exec, KUBE_INVALID, "exec's apiVersion is neither "
                        "client.authentication.k8s.io/v1 nor v1beta1");
    }

    kubeconfig_read_mode(k, exec);

    conf->cluster_info = kubeconfig_bool(k, exec, "provideClusterInfo",
                                         "provideClusterInfo is neither true "
                                         "nor false");

    kubeconfig_read_args(k, exec);
    kubeconfig_read_env(k, exec);
}


/* mapping: whether an empty one says nothing, too. */
static bool
kubeconfig_is_empty(const yaml_node_t *node, bool mapping)
{
    switch (node->type) {

    case YAML_SCALAR_NODE:
        return node->data.scalar.length == 0;

    case YAML_SEQUENCE_NODE:
        return node->data.sequence.items.start
               == node->data.sequence.items.top;

    default:
        return mapping && node->data.mapping.pairs.start
                          == node->data.mapping.pairs.top;
    }
}


static void
kubeconfig_read_user(kubeconfig_t *k, kube_str_t name)
{
    yaml_node_t                 *user, *node;
    const kubeconfig_refused_t  *r;

    if (name.len == 0) {
        return;
    }

    user = kubeconfig_lookup(k, "users", "user", name,
                             "the context's user is not in the file");
    if (user == NULL) {
        return;
    }

    for (r = kubeconfig_user_refused; r->key != NULL; r++) {
        node = kubeconfig_find(k, user, r->key);

        if (node != NULL && !kubeconfig_is_empty(node, r->mapping)) {
            kubeconfig_fail(k, node, KUBE_INVALID, r->what);
        }
    }

    kubeconfig_read_fields(k, user, kubeconfig_user_fields);
    kubeconfig_read_exec(k, user);
}


static void
kubeconfig_read_context(kubeconfig_t *k, const char *name)
{
    kube_str_t    context, cluster, user;
    yaml_node_t  *root, *body, *node;

    root = yaml_document_get_root_node(&k->document);

    if (root == NULL || root->type != YAML_MAPPING_NODE) {
        kubeconfig_fail(k, root, KUBE_INVALID, "the file is not a kubeconfig");
        return;
    }

    context = kubeconfig_text(k, root, "current-context",
                              "current-context is not a name", &node);

    if (name != NULL) {
        context = kube_str(name);
    }

    if (context.len == 0) {
        kubeconfig_fail(k, NULL, KUBE_NOT_FOUND, "the file has no "
                        "current-context: name one with context=");
        return;
    }

    body = kubeconfig_lookup(k, "contexts", "context", context,
                             "the context is not in the file");
    if (body == NULL) {
        kubeconfig_fail(k, NULL, KUBE_INVALID, "the context is empty");
        return;
    }

    cluster = kubeconfig_text(k, body, "cluster", "cluster is not a name",
                              &node);
    user = kubeconfig_text(k, body, "user", "user is not a name", &node);

    if (k->error.rc == KUBE_OK) {
        kubeconfig_read_cluster(k, cluster);
    }

    if (k->error.rc == KUBE_OK) {
        kubeconfig_read_user(k, user);
    }
}


/* libyaml would free the nodes, secrets among them, as they are. */
static void
kubeconfig_delete_document(yaml_document_t *document)
{
    yaml_node_t  *node;

    for (node = document->nodes.start; node < document->nodes.top; node++) {
        if (node->type == YAML_SCALAR_NODE) {
            explicit_bzero(node->data.scalar.value, node->data.scalar.length);
        }
    }

    yaml_document_delete(document);
}


static void
kubeconfig_parse(kubeconfig_t *k, kube_str_t text, const char *context)
{
    bool           nomem;
    yaml_parser_t  parser;

    if (!yaml_parser_initialize(&parser)) {
        kubeconfig_fail(k, NULL, KUBE_NOMEM, "out of memory");
        return;
    }

    yaml_parser_set_input_string(&parser, (const unsigned char *) text.data,
                                 text.len);

    if (yaml_parser_load(&parser, &k->document)) {
        kubeconfig_read_context(k, context);
        kubeconfig_delete_document(&k->document);

    } else {
        nomem = (parser.error == YAML_MEMORY_ERROR);

        kubeconfig_fail(k, NULL, nomem ? KUBE_NOMEM : KUBE_INVALID,
                        nomem ? "out of memory"
                              : "the file is not valid YAML");
        k->error.offset = parser.problem_mark.line + 1;
    }

    yaml_parser_delete(&parser);
}


kube_rc_t
kube_config_kubeconfig(kube_config_t *config, const char *path,
    const char *context, kube_error_t *error)
{
    kube_rc_t      rc;
    kube_str_t     text;
    const char    *what, *slash;
    kube_config_t  filled;
    kubeconfig_t   k;

    kube_config_init(&filled, &config->alloc);
    memset(&k, 0, sizeof(kubeconfig_t));

    k.config = &filled;

    slash = strrchr(path, '/');
    k.dir.data = path;
    k.dir.len = slash != NULL ? (size_t) (slash - path) + 1 : 0;

    if (k.dir.len >= KUBE_URL_LEN_MAX) {
        kubeconfig_fail(&k, NULL, KUBE_TOO_LARGE, "the path is too long");

    } else {
        rc = kube_secret_read(&config->alloc, path, KUBE_CREDENTIAL_BYTES_MAX,
                              &text, &what);

        if (rc == KUBE_OK) {
            kubeconfig_parse(&k, text, context);
            kube_secret_free(&config->alloc, &text);

        } else {
            kubeconfig_fail(&k, NULL, rc, what);
        }
    }

    if (k.error.rc == KUBE_OK
        && kube_config_check(&filled, &k.error) == KUBE_OK)
    {
        kube_config_done(config);
        *config = filled;

        return KUBE_OK;
    }

    kube_config_done(&filled);

    if (error != NULL) {
        *error = k.error;
    }

    return k.error.rc;
}
