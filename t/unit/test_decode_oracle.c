/*
 * test_decode_oracle - the decoder against cJSON: the same object from every
 * text that both can read, from tables and from random changes of them.
 *
 * The oracle projects a tree of cJSON's by rules written a second time.  It
 * gives no opinion where cJSON reads other than Go: numbers that are no plain
 * integers, broken escapes, U+0000, surrogates, bytes that are not UTF-8 or
 * below 0x20, and members given twice.
 *
 * With KUBE_DECODE_DUMP=file it writes every text and what came of it there,
 * for t/cluster/decode, which compares with Go's own types.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "decode_cases.h"
#include "decode_change.h"
#include "decode_print.h"
#include "kube_date.h"
#include "kube_json.h"
#include "kube_utf8.h"


#define COUNT(a)       (sizeof(a) / sizeof((a)[0]))

#define ORACLE_ROUNDS  60000

typedef struct {
    kube_arena_t  *arena;
    uint32_t       dropped;
    bool           refused;
} oracle_t;

typedef struct {
    const decode_case_t  *cases;
    size_t                n;
    kube_resource_t       resource;
} oracle_table_t;


static const oracle_table_t  oracle_tables[] = {
    { decode_cases_metadata, COUNT(decode_cases_metadata),
      KUBE_RESOURCE_SERVICES },
    { decode_cases_services, COUNT(decode_cases_services),
      KUBE_RESOURCE_SERVICES },
    { decode_cases_slices, COUNT(decode_cases_slices),
      KUBE_RESOURCE_ENDPOINTSLICES }
};

static FILE  *oracle_dump;


static bool
oracle_absent(const cJSON *value)
{
    return value == NULL || cJSON_IsNull(value);
}


static bool
oracle_is_printable(kube_str_t s, size_t max)
{
    size_t  i;

    for (i = 0; i < s.len && s.data[i] > ' ' && s.data[i] <= '~'; i++) {
        /* void */
    }

    return i == s.len && s.len != 0 && s.len <= max;
}


static kube_str_t
oracle_shown(oracle_t *o, const cJSON *value)
{
    kube_str_t  s;

    if (oracle_absent(value)) {
        return KUBE_STR_NULL;
    }

    s = cJSON_IsString(value) ? kube_str(value->valuestring) : KUBE_STR_NULL;

    if (cJSON_IsString(value)
        && (s.len == 0 || oracle_is_printable(s, KUBE_STRING_LEN_MAX)))
    {
        return s;
    }

    o->dropped++;

    return KUBE_STR_NULL;
}


static bool
oracle_port(oracle_t *o, const cJSON *object, bool service, kube_port_t *port)
{
    unsigned      i;
    const cJSON  *value;

    memset(port, 0, sizeof(*port));

    if (!cJSON_IsObject(object)) {
        return cJSON_IsNull(object) && !service;
    }

    port->app_protocol = oracle_shown(o, kube_json_get(object,
                                                       "appProtocol"));
    value = kube_json_get(object, "protocol");

    if (!oracle_absent(value)
        && !(service && cJSON_IsString(value) && !*value->valuestring))
    {
        for (i = KUBE_PROTOCOL_TCP; i <= KUBE_PROTOCOL_SCTP; i++) {
            if (cJSON_IsString(value)
                && strcmp(value->valuestring,
                          kube_protocol_text((kube_protocol_t) i)) == 0)
            {
                break;
            }
        }

        if (i > KUBE_PROTOCOL_SCTP) {
            return false;
        }

        port->protocol = (kube_protocol_t) i;
    }

    value = kube_json_get(object, "name");
    port->name = kube_json_string(object, "name");

    if ((!oracle_absent(value) && !cJSON_IsString(value))
        || (port->name.len != 0 && !kube_name_is_label(port->name)))
    {
        return false;
    }

    value = kube_json_get(object, "port");

    if (oracle_absent(value)) {
        return !service;
    }

    if (!cJSON_IsNumber(value) || value->valuedouble < 1
        || value->valuedouble > 65535)
    {
        return false;
    }

    port->port = (uint16_t) value->valuedouble;

    return true;
}


/* The elements of a list; none, and refused, where it is something else. */
static const cJSON *
oracle_list(oracle_t *o, const cJSON *object, const char *name, size_t max,
    size_t size, void **p)
{
    const cJSON  *array;

    *p = NULL;
    array = kube_json_get(object, name);

    if (oracle_absent(array)) {
        return NULL;
    }

    if (!cJSON_IsArray(array) || (size_t) cJSON_GetArraySize(array) > max) {
        o->refused = true;
        return NULL;
    }

    if (array->child != NULL) {
        *p = kube_arena_alloc(o->arena,
                              (size_t) cJSON_GetArraySize(array) * size);
        assert_non_null(*p);
    }

    return array->child;
}


static void
oracle_ports(oracle_t *o, const cJSON *object, bool service,
    kube_port_t **ports, size_t *n)
{
    void         *p;
    const cJSON  *child;

    child = oracle_list(o, object, "ports",
                        service ? KUBE_SERVICE_PORTS_MAX
                                : KUBE_SLICE_PORTS_MAX,
                        sizeof(kube_port_t), &p);
    *ports = p;

    for ( /* void */ ; child != NULL; child = child->next) {
        if (oracle_port(o, child, service, *ports + *n)) {
            (*n)++;

        } else {
            o->dropped++;
        }
    }
}


static void
oracle_cluster_ip(oracle_t *o, kube_str_t text, kube_service_t *service)
{
    kube_addr_t  addr;

    if (kube_str_eq(text, KUBE_STR("None"))) {
        service->headless = true;

    } else if (text.len != 0) {
        if (kube_addr_parse(text, &addr) == KUBE_OK
            && service->cluster_ips_n < KUBE_CLUSTER_IPS_MAX)
        {
            service->cluster_ips[service->cluster_ips_n++] = addr;

        } else {
            o->dropped++;
        }
    }
}


static void
oracle_family(oracle_t *o, const cJSON *value, kube_service_t *service)
{
    kube_str_t  text;

    if (!cJSON_IsArray(value)) {
        o->dropped += !oracle_absent(value);
        return;
    }

    if (value->child != NULL) {
        text = kube_str(cJSON_GetStringValue(value->child));
        service->family = kube_str_eq(text, KUBE_STR("IPv4"))
                          ? KUBE_FAMILY_IPV4
                          : kube_str_eq(text, KUBE_STR("IPv6"))
                          ? KUBE_FAMILY_IPV6 : KUBE_FAMILY_NONE;
        o->dropped += (service->family == KUBE_FAMILY_NONE);
    }
}


static void
oracle_service(oracle_t *o, const cJSON *root, kube_service_t *service)
{
    unsigned      i;
    kube_str_t    text;
    const cJSON  *spec, *value, *child;

    spec = kube_json_get(root, "spec");
    o->refused |= !oracle_absent(spec) && !cJSON_IsObject(spec);

    value = kube_json_get(spec, "type");
    text = kube_json_string(spec, "type");

    if (!oracle_absent(value) && !(cJSON_IsString(value) && text.len == 0)) {
        for (i = KUBE_SERVICE_CLUSTER_IP; i <= KUBE_SERVICE_EXTERNAL_NAME;
             i++)
        {
            service->type = (kube_service_type_t) i;

            if (kube_str_eq(text,
                            kube_str(kube_service_type_text(service->type))))
            {
                break;
            }
        }

        o->refused |= (i > KUBE_SERVICE_EXTERNAL_NAME);
    }

    value = kube_json_get(spec, "clusterIP");
    o->dropped += !oracle_absent(value) && !cJSON_IsString(value);

    value = kube_json_get(spec, "clusterIPs");
    o->dropped += !oracle_absent(value) && !cJSON_IsArray(value);

    if (!cJSON_IsArray(value) || value->child == NULL) {
        oracle_cluster_ip(o, kube_json_string(spec, "clusterIP"), service);

    } else {
        for (child = value->child; child != NULL; child = child->next) {
            o->dropped += !cJSON_IsNull(child) && !cJSON_IsString(child);
            oracle_cluster_ip(o, kube_str(cJSON_GetStringValue(child)),
                              service);
        }
    }

    oracle_family(o, kube_json_get(spec, "ipFamilies"), service);
    oracle_ports(o, spec, true, &service->ports, &service->ports_n);
}


static bool
oracle_condition(const cJSON *object, const char *name, bool otherwise,
    bool *out)
{
    const cJSON  *value;

    value = kube_json_get(object, name);
    *out = oracle_absent(value) ? otherwise : cJSON_IsTrue(value);

    return oracle_absent(value) || cJSON_IsBool(value);
}


static bool
oracle_endpoint(oracle_t *o, const cJSON *object, kube_family_t family,
    kube_endpoint_t *e)
{
    bool          good;
    const cJSON  *value, *first, *kind, *name;

    memset(e, 0, sizeof(*e));

    e->node = oracle_shown(o, kube_json_get(object, "nodeName"));
    e->zone = oracle_shown(o, kube_json_get(object, "zone"));

    value = kube_json_get(object, "targetRef");
    kind = kube_json_get(value, "kind");
    name = kube_json_get(value, "name");

    o->dropped += (!oracle_absent(value) && !cJSON_IsObject(value))
                  || (!oracle_absent(kind) && !cJSON_IsString(kind))
                  || (!oracle_absent(name) && !cJSON_IsString(name));

    if (kube_str_eq(kube_json_string(value, "kind"), KUBE_STR("Pod"))
        && cJSON_IsString(name))
    {
        e->pod = oracle_shown(o, name);
    }

    value = kube_json_get(object, "conditions");
    good = oracle_absent(value) || cJSON_IsObject(value);
    good &= oracle_condition(value, "ready", true, &e->ready);
    good &= oracle_condition(value, "serving", true, &e->serving);
    good &= oracle_condition(value, "terminating", false, &e->terminating);

    value = kube_json_get(object, "addresses");
    first = cJSON_IsArray(value) ? value->child : NULL;

    return good && cJSON_IsString(first)
           && kube_addr_parse(kube_str(first->valuestring), &e->address)
              == KUBE_OK
           && e->address.family == family;
}


static void
oracle_slice(oracle_t *o, const cJSON *root, kube_slice_t *slice)
{
    void         *p;
    size_t        i;
    int64_t       ms;
    oracle_t      lost;
    kube_str_t    text;
    const cJSON  *meta, *child;

    meta = kube_json_get(root, "metadata");
    text = kube_json_string(kube_json_get(meta, "labels"),
                            "kubernetes.io/service-name");

    for (i = 0; i < text.len; i++) {
        o->refused |= (unsigned char) text.data[i] < 0x20
                      || text.data[i] == 0x7f;
    }

    if (kube_name_is_label(text)) {
        slice->service = text;
    }

    text = kube_json_string(kube_json_get(meta, "annotations"),
                            "endpoints.kubernetes.io/"
                            "last-change-trigger-time");

    if (kube_date_parse_rfc3339(text, &ms) == KUBE_OK) {
        slice->trigger_ms = ms;
    }

    text = kube_json_string(root, "addressType");

    if (kube_str_eq(text, KUBE_STR("IPv4"))) {
        slice->family = KUBE_FAMILY_IPV4;

    } else if (kube_str_eq(text, KUBE_STR("IPv6"))) {
        slice->family = KUBE_FAMILY_IPV6;

    } else {
        o->refused |= !kube_str_eq(text, KUBE_STR("FQDN"));
    }

    oracle_ports(o, root, false, &slice->ports, &slice->ports_n);

    child = oracle_list(o, root, "endpoints", KUBE_SLICE_ENDPOINTS_MAX,
                        sizeof(kube_endpoint_t), &p);
    slice->endpoints = p;

    for ( /* void */ ; child != NULL; child = child->next) {
        lost = *o;

        if (oracle_endpoint(o, child, slice->family,
                            slice->endpoints + slice->endpoints_n))
        {
            slice->endpoints_n++;

        } else if (slice->family != KUBE_FAMILY_NONE) {
            o->dropped++;
        }

        assert_true(o->dropped >= lost.dropped);
    }
}


static bool
oracle_is_text_or(const cJSON *root, const char *name, kube_str_t expected)
{
    kube_str_t    text;
    const cJSON  *value;

    value = kube_json_get(root, name);
    text = kube_json_string(root, name);

    return oracle_absent(value)
           || (cJSON_IsString(value)
               && (text.len == 0 || kube_str_eq(text, expected)));
}


/* False: the object is refused. */
static bool
oracle_object(oracle_t *o, const cJSON *root, kube_object_t *object)
{
    size_t                        i;
    kube_rv_t                     rv;
    kube_meta_t                   meta;
    const cJSON                  *value;
    const kube_resource_info_t   *info;
    static const char *const      names[] = {
        "name", "namespace", "uid", "resourceVersion"
    };

    info = kube_resource_info(object->resource);
    value = kube_json_get(root, "metadata");

    for (i = 0; i < COUNT(names); i++) {
        o->refused |= !cJSON_IsString(kube_json_get(value, names[i]));
    }

    meta.name = kube_json_string(value, "name");
    meta.ns = kube_json_string(value, "namespace");
    meta.uid = kube_json_string(value, "uid");
    meta.rv = kube_json_string(value, "resourceVersion");

    if (o->refused
        || !kube_name_is_label(meta.ns)
        || !info->is_name(meta.name)
        || !oracle_is_printable(meta.uid, KUBE_UID_LEN_MAX)
        || kube_rv_parse(meta.rv, &rv) != KUBE_OK
        || !oracle_is_text_or(root, "kind", kube_str(info->kind))
        || !oracle_is_text_or(root, "apiVersion", kube_str(info->version)))
    {
        return false;
    }

    object->u.service.meta = meta;

    if (info->shape == KUBE_SHAPE_SERVICE) {
        oracle_service(o, root, &object->u.service);

    } else {
        oracle_slice(o, root, &object->u.slice);
    }

    return !o->refused;
}


/* False for a member given twice, anywhere. */
static bool
oracle_is_unique(const cJSON *tree)
{
    const cJSON  *child, *other;

    for (child = tree->child; child != NULL; child = child->next) {
        if (!oracle_is_unique(child)) {
            return false;
        }

        for (other = child->next;
             other != NULL && cJSON_IsObject(tree);
             other = other->next)
        {
            if (strcmp(child->string, other->string) == 0) {
                return false;
            }
        }
    }

    return true;
}


/* False where cJSON reads strings or numbers otherwise than Go. */
static bool
oracle_is_plain(kube_str_t text)
{
    bool    in_string, word;
    size_t  i, n;

    in_string = false;
    word = false;

    for (i = 0; i < text.len; i++) {
        if (in_string && text.data[i] == '\\') {
            if (text.data[i + 1] == 'u'
                && (strspn(text.data + i + 2, "0123456789abcdefABCDEF") < 4
                    || strncmp(text.data + i + 2, "0000", 4) == 0
                    || (text.data[i + 2] | 0x20) == 'd'))
            {
                return false;
            }

            i++;

        } else if (text.data[i] == '"') {
            in_string = !in_string;
            word = false;

        } else if (in_string) {
            if ((unsigned char) text.data[i] < 0x20) {
                return false;
            }

        } else if (strchr("+-.0123456789Ee", text.data[i]) != NULL) {
            n = strspn(text.data + i, "0123456789");

            if (!word && (n > 15 || strchr("+.Ee", text.data[i]) != NULL
                          || (text.data[i] == '0' && n > 1)
                          || strncmp(text.data + i, "-0", 2) == 0))
            {
                return false;
            }

            if (n != 0 && strchr(".eE", text.data[i + n]) != NULL) {
                return false;
            }

            word = true;

        } else {
            word = (text.data[i] >= 'a' && text.data[i] <= 'z');
        }
    }

    return kube_utf8_check(text);
}


static void
oracle_dump_line(kube_resource_t resource, const char *text, size_t len,
    kube_rc_t rc, const decode_test_t *t, const decode_case_t *c)
{
    size_t  i;

    if (oracle_dump == NULL) {
        return;
    }

    fprintf(oracle_dump, "%s\t%s\t%d\t%u\t",
            c == NULL ? "random" : c->lax ? "lax" : "case",
            kube_resource_text(resource), rc == KUBE_OK,
            (unsigned) t->dropped);

    for (i = 0; i < len; i++) {
        fprintf(oracle_dump, "%02x", (unsigned char) text[i]);
    }

    fputc('\t', oracle_dump);

    if (rc == KUBE_OK) {
        decode_print(oracle_dump, &t->object);
    }

    fputc('\n', oracle_dump);
}


/* True where the oracle had an opinion. */
static bool
oracle_compare(decode_test_t *t, kube_resource_t resource, const char *text,
    const decode_case_t *c)
{
    bool           good;
    cJSON         *tree;
    size_t         len;
    oracle_t       o;
    kube_rc_t      rc;
    kube_error_t   error;
    kube_object_t  object;

    len = strlen(text);
    rc = decode_run(t, resource, text, len);
    assert_true(rc == KUBE_OK || rc == KUBE_INVALID);

    oracle_dump_line(resource, text, len, rc, t, c);

    if (!oracle_is_plain((kube_str_t) { text, len })
        || kube_json_parse(&t->arena, (kube_str_t) { text, len }, &tree,
                           &error) != KUBE_OK
        || !cJSON_IsObject(tree)
        || !oracle_is_unique(tree))
    {
        return false;
    }

    memset(&object, 0, sizeof(object));
    object.resource = resource;
    o = (oracle_t) { &t->arena, 0, false };

    good = oracle_object(&o, tree, &object);

    if (good != (rc == KUBE_OK)) {
        fail_msg("%s: %s, but not for cJSON", text,
                 rc == KUBE_OK ? "taken" : t->error.what);
    }

    if (good) {
        change_same(&t->object, &object, text);

        if (o.dropped != t->dropped) {
            fail_msg("%s: %u left out, not %u", text, (unsigned) t->dropped,
                     (unsigned) o.dropped);
        }
    }

    return true;
}


static void
oracle_of_cases(void **state)
{
    size_t                 i, k, n;
    decode_test_t          t;
    const oracle_table_t  *table;

    (void) state;

    decode_start(&t);
    n = 0;

    for (i = 0; i < COUNT(oracle_tables); i++) {
        table = &oracle_tables[i];

        for (k = 0; k < table->n; k++) {
            n += oracle_compare(&t, table->resource, table->cases[k].text,
                                &table->cases[k]);
        }
    }

    assert_true(oracle_compare(&t, KUBE_RESOURCE_SERVICES, decode_service,
                               NULL));
    assert_true(oracle_compare(&t, KUBE_RESOURCE_ENDPOINTSLICES, decode_slice,
                               NULL));
    assert_in_range(n, 70, 200);

    decode_stop(&t);
}


static void
oracle_of_changes(void **state)
{
    char                   text[CHANGE_MAX];
    size_t                 i, k, n, changes;
    uint64_t               seed;
    const char            *from;
    decode_test_t          t;
    kube_resource_t        resource;
    const oracle_table_t  *table;

    (void) state;

    decode_start(&t);
    seed = 20260301;
    n = 0;

    for (i = 0; i < ORACLE_ROUNDS; i++) {
        k = change_random(&seed, 5);

        if (k < COUNT(oracle_tables)) {
            table = &oracle_tables[k];
            resource = table->resource;
            from = table->cases[change_random(&seed,
                                              (uint32_t) table->n)].text;

        } else {
            resource = (k == 3) ? KUBE_RESOURCE_SERVICES
                                : KUBE_RESOURCE_ENDPOINTSLICES;
            from = (k == 3) ? decode_service : decode_slice;
        }

        (void) snprintf(text, sizeof(text), "%s", from);

        changes = 1 + change_random(&seed, 3);

        while (changes-- != 0) {
            change_text(&seed, text);
        }

        n += oracle_compare(&t, resource, text, NULL);
    }

    /* enough of them were for both to read */
    assert_in_range(n, ORACLE_ROUNDS / 8, ORACLE_ROUNDS);

    decode_stop(&t);
}


int
main(void)
{
    int                      rc;
    const char              *path;
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(oracle_of_cases),
        cmocka_unit_test(oracle_of_changes)
    };

    path = getenv("KUBE_DECODE_DUMP");
    oracle_dump = (path != NULL) ? fopen(path, "w") : NULL;

    rc = cmocka_run_group_tests(tests, NULL, NULL);

    if (oracle_dump != NULL) {
        fclose(oracle_dump);
    }

    return rc;
}
