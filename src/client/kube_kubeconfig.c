/*
 * kube_kubeconfig - reads one kubeconfig file into a kube_config_t.
 *
 * libyaml's document is walked along the keys that are needed, never as a
 * whole: aliases cannot make it grow, and depth does not matter.  Keys and
 * names that occur twice are refused: client-go and we could pick different
 * ones.  Lists of files (KUBECONFIG=a:b) are not merged.
 *
 * Source: client-go tools/clientcmd/api/v1/types.go and conversion.go.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include <yaml.h>

#include "kube_config.h"
#include "kube_secret_private.h"


typedef struct {
    kube_config_t   *config;
    yaml_document_t  document;
    kube_str_t       dir;        /* of the file, with its last slash */
    kube_error_t    *error;
} kubeconfig_t;

typedef enum {
    KUBECONFIG_TEXT,
    KUBECONFIG_PATH,
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

static const kubeconfig_refused_t  kubeconfig_user_refused[] = {
    { "exec", "the user logs in with an exec plugin, which is not supported: "
              "use a token, tokenFile or a client certificate" },
    { "auth-provider", "the user logs in with an auth-provider, which is not "
                       "supported: use a token or a client certificate" },
    { "username", "username and password are not supported: use a token or a "
                  "client certificate" },
    { "password", "username and password are not supported: use a token or a "
                  "client certificate" },
    { "as", "impersonation (as) is not supported" },
    { "as-uid", "impersonation (as-uid) is not supported" },
    { "as-groups", "impersonation (as-groups) is not supported" },
    { "as-user-extra", "impersonation (as-user-extra) is not supported" },
    { NULL, NULL }
};


static kube_rc_t
kubeconfig_fail(kubeconfig_t *k, const yaml_node_t *node, kube_rc_t rc,
    const char *what)
{
    if (k->error != NULL) {
        k->error->rc = rc;
        k->error->what = what;
        k->error->offset = node != NULL ? node->start_mark.line + 1 : 0;
    }

    return rc;
}


static kube_str_t
kubeconfig_scalar(const yaml_node_t *node)
{
    return (kube_str_t) { (const char *) node->data.scalar.value,
                          node->data.scalar.length };
}


static bool
kubeconfig_is_null(const yaml_node_t *node)
{
    kube_str_t  s;

    if (node->type != YAML_SCALAR_NODE
        || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
    {
        return false;
    }

    s = kubeconfig_scalar(node);

    return s.len == 0 || kube_str_eq(s, KUBE_STR("~"))
           || kube_str_eq(s, KUBE_STR("null"))
           || kube_str_eq(s, KUBE_STR("Null"))
           || kube_str_eq(s, KUBE_STR("NULL"));
}


/* *value is NULL where the key is absent or null. */
static kube_rc_t
kubeconfig_find(kubeconfig_t *k, yaml_node_t *map, const char *key,
    yaml_node_t **value)
{
    bool               seen;
    yaml_node_t       *name;
    yaml_node_pair_t  *pair;

    *value = NULL;
    seen = false;

    for (pair = map->data.mapping.pairs.start;
         pair < map->data.mapping.pairs.top;
         pair++)
    {
        name = yaml_document_get_node(&k->document, pair->key);

        if (name == NULL || name->type != YAML_SCALAR_NODE
            || !kube_str_eq(kubeconfig_scalar(name), kube_str(key)))
        {
            continue;
        }

        if (seen) {
            return kubeconfig_fail(k, name, KUBE_INVALID,
                                   "the same key stands here twice");
        }

        seen = true;
        *value = yaml_document_get_node(&k->document, pair->value);

        if (*value != NULL && kubeconfig_is_null(*value)) {
            *value = NULL;
        }
    }

    return KUBE_OK;
}


/* The same for a text without control bytes; empty where absent. */
static kube_rc_t
kubeconfig_text(kubeconfig_t *k, yaml_node_t *map, const char *key,
    const char *what, kube_str_t *text, yaml_node_t **node)
{
    size_t     i;
    kube_rc_t  rc;

    *text = KUBE_STR_NULL;

    rc = kubeconfig_find(k, map, key, node);
    if (rc != KUBE_OK || *node == NULL) {
        return rc;
    }

    if ((*node)->type != YAML_SCALAR_NODE) {
        return kubeconfig_fail(k, *node, KUBE_INVALID, what);
    }

    *text = kubeconfig_scalar(*node);

    for (i = 0; i < text->len; i++) {
        if ((unsigned char) text->data[i] < 0x20 && text->data[i] != '\n'
            && text->data[i] != '\r')
        {
            return kubeconfig_fail(k, *node, KUBE_INVALID, what);
        }
    }

    return KUBE_OK;
}


static bool
kubeconfig_is_one_line(kube_str_t s)
{
    return s.len < KUBE_URL_LEN_MAX
           && (s.len == 0 || (memchr(s.data, '\n', s.len) == NULL
                              && memchr(s.data, '\r', s.len) == NULL));
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

    field = (kube_str_t *) (void *) ((char *) k->config + f->offset);

    switch (f->kind) {

    case KUBECONFIG_PEM:
        return kubeconfig_set_pem(k, field, text);

    case KUBECONFIG_TOKEN:
        text = kube_secret_trim(text);

        return kube_secret_is_token(text)
               ? kube_config_set(k->config, field, text) : KUBE_INVALID;

    case KUBECONFIG_PATH:
        return kubeconfig_is_one_line(text)
               ? kubeconfig_set_path(k, field, text) : KUBE_INVALID;

    case KUBECONFIG_TEXT:
        break;
    }

    return kubeconfig_is_one_line(text)
           ? kube_config_set(k->config, field, text) : KUBE_INVALID;
}


static kube_rc_t
kubeconfig_read_fields(kubeconfig_t *k, yaml_node_t *map,
    const kubeconfig_field_t *f)
{
    kube_rc_t     rc;
    kube_str_t    text;
    yaml_node_t  *node;

    for ( /* void */ ; f->key != NULL; f++) {
        rc = kubeconfig_text(k, map, f->key, f->what, &text, &node);
        if (rc != KUBE_OK) {
            return rc;
        }

        if (text.len == 0) {
            continue;
        }

        rc = kubeconfig_set(k, f, text);
        if (rc != KUBE_OK) {
            return kubeconfig_fail(k, node, rc, rc == KUBE_NOMEM
                                                ? "out of memory" : f->what);
        }
    }

    return KUBE_OK;
}


/* YAML 1.1's words, as client-go's parser takes them. */
static kube_rc_t
kubeconfig_bool(kubeconfig_t *k, yaml_node_t *map, const char *key,
    const char *what, bool *value)
{
    size_t                    i;
    kube_rc_t                 rc;
    kube_str_t                text;
    yaml_node_t              *node;
    static const char *const  words[] = {
        "false", "true", "False", "True", "FALSE", "TRUE",
        "no", "yes", "No", "Yes", "NO", "YES", "off", "on", "Off", "On"
    };

    *value = false;

    rc = kubeconfig_text(k, map, key, what, &text, &node);
    if (rc != KUBE_OK || node == NULL) {
        return rc;
    }

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (kube_str_eq(text, kube_str(words[i]))
            && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        {
            *value = (i % 2 == 1);
            return KUBE_OK;
        }
    }

    return kubeconfig_fail(k, node, KUBE_INVALID, what);
}


/*
 * In the list at list_key, the item of that name; *body is its member at
 * body_key, NULL where that is null.
 */
static kube_rc_t
kubeconfig_pick(kubeconfig_t *k, yaml_node_t *list, const char *body_key,
    kube_str_t name, yaml_node_t **body, const char *missing)
{
    bool               found;
    kube_rc_t          rc;
    kube_str_t         text;
    yaml_node_t       *item, *node;
    yaml_node_item_t  *i;

    found = false;
    *body = NULL;

    for (i = list->data.sequence.items.start;
         i < list->data.sequence.items.top;
         i++)
    {
        item = yaml_document_get_node(&k->document, *i);

        if (item == NULL || item->type != YAML_MAPPING_NODE) {
            return kubeconfig_fail(k, item, KUBE_INVALID,
                                   "an entry of the list is not a mapping");
        }

        rc = kubeconfig_text(k, item, "name", "name is not a text", &text,
                             &node);
        if (rc != KUBE_OK) {
            return rc;
        }

        if (!kube_str_eq(text, name)) {
            continue;
        }

        if (found) {
            return kubeconfig_fail(k, item, KUBE_INVALID,
                                   "this name stands in the list twice");
        }

        found = true;

        rc = kubeconfig_find(k, item, body_key, body);
        if (rc != KUBE_OK) {
            return rc;
        }
    }

    return found ? KUBE_OK : kubeconfig_fail(k, list, KUBE_NOT_FOUND, missing);
}


static kube_rc_t
kubeconfig_lookup(kubeconfig_t *k, const char *list_key, const char *body_key,
    kube_str_t name, yaml_node_t **body, const char *missing)
{
    kube_rc_t     rc;
    yaml_node_t  *root, *list;

    *body = NULL;
    root = yaml_document_get_root_node(&k->document);

    rc = kubeconfig_find(k, root, list_key, &list);
    if (rc != KUBE_OK) {
        return rc;
    }

    if (list == NULL) {
        return kubeconfig_fail(k, NULL, KUBE_NOT_FOUND, missing);
    }

    if (list->type != YAML_SEQUENCE_NODE) {
        return kubeconfig_fail(k, list, KUBE_INVALID,
                               "clusters, users and contexts are lists");
    }

    rc = kubeconfig_pick(k, list, body_key, name, body, missing);
    if (rc != KUBE_OK) {
        return rc;
    }

    if (*body != NULL && (*body)->type != YAML_MAPPING_NODE) {
        return kubeconfig_fail(k, *body, KUBE_INVALID,
                               "a cluster, user or context is a mapping");
    }

    return KUBE_OK;
}


static kube_rc_t
kubeconfig_read_cluster(kubeconfig_t *k, kube_str_t name)
{
    kube_rc_t     rc;
    kube_str_t    server;
    yaml_node_t  *cluster, *node;

    rc = kubeconfig_lookup(k, "clusters", "cluster", name, &cluster,
                           "the context's cluster is not in the file");
    if (rc != KUBE_OK) {
        return rc;
    }

    if (cluster == NULL) {
        return kubeconfig_fail(k, NULL, KUBE_INVALID, "the cluster is empty");
    }

    rc = kubeconfig_text(k, cluster, "server", "server is not a URL", &server,
                         &node);
    if (rc != KUBE_OK) {
        return rc;
    }

    if (server.len == 0) {
        return kubeconfig_fail(k, cluster, KUBE_INVALID,
                               "the cluster has no server");
    }

    rc = kube_config_add_server(k->config, server, k->error);
    if (rc != KUBE_OK) {
        return kubeconfig_fail(k, node, rc, k->error != NULL ? k->error->what
                                                             : NULL);
    }

    rc = kubeconfig_bool(k, cluster, "insecure-skip-tls-verify",
                         "insecure-skip-tls-verify is neither true nor false",
                         &k->config->tls_verify_off);
    if (rc != KUBE_OK) {
        return rc;
    }

    return kubeconfig_read_fields(k, cluster, kubeconfig_cluster_fields);
}


static kube_rc_t
kubeconfig_read_user(kubeconfig_t *k, kube_str_t name)
{
    kube_rc_t                    rc;
    yaml_node_t                 *user, *node;
    const kubeconfig_refused_t  *r;

    if (name.len == 0) {
        return KUBE_OK;
    }

    rc = kubeconfig_lookup(k, "users", "user", name, &user,
                           "the context's user is not in the file");
    if (rc != KUBE_OK || user == NULL) {
        return rc;
    }

    for (r = kubeconfig_user_refused; r->key != NULL; r++) {
        rc = kubeconfig_find(k, user, r->key, &node);
        if (rc != KUBE_OK) {
            return rc;
        }

        if (node != NULL && !(node->type == YAML_SCALAR_NODE
                              && node->data.scalar.length == 0))
        {
            return kubeconfig_fail(k, node, KUBE_INVALID, r->what);
        }
    }

    return kubeconfig_read_fields(k, user, kubeconfig_user_fields);
}


static kube_rc_t
kubeconfig_read_context(kubeconfig_t *k, const char *name)
{
    kube_rc_t     rc;
    kube_str_t    context, cluster, user;
    yaml_node_t  *root, *body, *node;

    root = yaml_document_get_root_node(&k->document);

    if (root == NULL || root->type != YAML_MAPPING_NODE) {
        return kubeconfig_fail(k, root, KUBE_INVALID,
                               "the file is not a kubeconfig");
    }

    rc = kubeconfig_text(k, root, "current-context",
                         "current-context is not a name", &context, &node);
    if (rc != KUBE_OK) {
        return rc;
    }

    if (name != NULL) {
        context = kube_str(name);
    }

    if (context.len == 0) {
        return kubeconfig_fail(k, NULL, KUBE_NOT_FOUND, "the file has no "
                               "current-context: name one with context=");
    }

    rc = kubeconfig_lookup(k, "contexts", "context", context, &body,
                           "the context is not in the file");
    if (rc != KUBE_OK) {
        return rc;
    }

    if (body == NULL) {
        return kubeconfig_fail(k, NULL, KUBE_INVALID, "the context is empty");
    }

    rc = kubeconfig_text(k, body, "cluster", "cluster is not a name", &cluster,
                         &node);
    if (rc != KUBE_OK) {
        return rc;
    }

    rc = kubeconfig_text(k, body, "user", "user is not a name", &user, &node);
    if (rc != KUBE_OK) {
        return rc;
    }

    rc = kubeconfig_read_cluster(k, cluster);
    if (rc != KUBE_OK) {
        return rc;
    }

    return kubeconfig_read_user(k, user);
}


/* The nodes are libyaml's memory: it would free secrets as they are. */
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


static kube_rc_t
kubeconfig_parse(kubeconfig_t *k, kube_str_t text, const char *context)
{
    kube_rc_t      rc;
    yaml_parser_t  parser;

    if (!yaml_parser_initialize(&parser)) {
        return kubeconfig_fail(k, NULL, KUBE_NOMEM, "out of memory");
    }

    yaml_parser_set_input_string(&parser, (const unsigned char *) text.data,
                                 text.len);

    if (!yaml_parser_load(&parser, &k->document)) {
        rc = parser.error == YAML_MEMORY_ERROR ? KUBE_NOMEM : KUBE_INVALID;
        (void) kubeconfig_fail(k, NULL, rc, rc == KUBE_NOMEM
                                            ? "out of memory"
                                            : "the file is not valid YAML");
        if (k->error != NULL) {
            k->error->offset = parser.problem_mark.line + 1;
        }

        yaml_parser_delete(&parser);
        return rc;
    }

    rc = kubeconfig_read_context(k, context);

    kubeconfig_delete_document(&k->document);
    yaml_parser_delete(&parser);

    return rc;
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
    k.error = error;

    slash = strrchr(path, '/');
    k.dir.data = path;
    k.dir.len = slash != NULL ? (size_t) (slash - path) + 1 : 0;

    if (k.dir.len >= KUBE_URL_LEN_MAX) {
        return kubeconfig_fail(&k, NULL, KUBE_TOO_LARGE,
                               "the path is too long");
    }

    rc = kube_secret_read(&config->alloc, path, KUBE_CREDENTIAL_BYTES_MAX,
                          &text, &what);
    if (rc != KUBE_OK) {
        return kubeconfig_fail(&k, NULL, rc, what);
    }

    rc = kubeconfig_parse(&k, text, context);
    kube_secret_free(&config->alloc, &text);

    if (rc == KUBE_OK) {
        rc = kube_config_check(&filled, error);
    }

    if (rc != KUBE_OK) {
        kube_config_done(&filled);
        return rc;
    }

    kube_config_done(config);
    *config = filled;

    return KUBE_OK;
}
