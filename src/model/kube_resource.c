/*
 * kube_resource - the rows of the resource table, and the checks of names.
 *
 * It holds no projection: kube_decode has those.  No state; may be called
 * from any process or thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_resource.h"

#include "kube_limits.h"


static const kube_resource_info_t  resource_infos[] = {
#define XX(name, text, path, version, kind, shape, named, decode)             \
    { text, path, version, kind, kind "List", KUBE_SHAPE_##shape,             \
      kube_name_is_##named },
    KUBE_RESOURCE_MAP(XX)
#undef XX
};


const kube_resource_info_t *
kube_resource_info(kube_resource_t r)
{
    return &resource_infos[r];
}


const char *
kube_resource_text(kube_resource_t r)
{
    return r < KUBE_RESOURCES ? resource_infos[r].text : "unknown";
}


static bool
resource_is_partial(kube_resource_t r)
{
    return resource_infos[r].shape == KUBE_SHAPE_METADATA;
}


const char *
kube_resource_accept(kube_resource_t r, bool watch)
{
    if (!resource_is_partial(r)) {
        return "application/json";
    }

    return watch ? "application/json;as=PartialObjectMetadata;"
                   "g=meta.k8s.io;v=v1,application/json"
                 : "application/json;as=PartialObjectMetadataList;"
                   "g=meta.k8s.io;v=v1,application/json";
}


bool
kube_resource_is_kind(kube_resource_t r, kube_str_t kind)
{
    return kube_str_eq(kind, kube_str(resource_infos[r].kind))
           || (resource_is_partial(r)
               && kube_str_eq(kind, KUBE_STR("PartialObjectMetadata")));
}


bool
kube_resource_is_version(kube_resource_t r, kube_str_t version)
{
    return kube_str_eq(version, kube_str(resource_infos[r].version))
           || (resource_is_partial(r)
               && kube_str_eq(version, KUBE_STR("meta.k8s.io/v1")));
}


bool
kube_resource_is_list(kube_resource_t r, kube_str_t kind)
{
    return kube_str_eq(kind, kube_str(resource_infos[r].list_kind))
           || (resource_is_partial(r)
               && kube_str_eq(kind, KUBE_STR("PartialObjectMetadataList")));
}


static bool
name_byte_is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}


/* Parts of [a-z0-9]([-a-z0-9]*[a-z0-9])?, joined by dots where allowed. */
static bool
name_is_valid(kube_str_t s, size_t max, bool dots)
{
    char    c;
    bool    edge;
    size_t  i;

    if (s.len == 0 || s.len > max) {
        return false;
    }

    /* true where only a letter or digit may stand or may have stood */
    edge = true;

    for (i = 0; i < s.len; i++) {
        c = s.data[i];

        if (name_byte_is_alnum(c)) {
            edge = false;

        } else if (c == '-') {
            if (edge) {
                return false;
            }

            if (i + 1 == s.len || s.data[i + 1] == '.') {
                return false;
            }

        } else if (c == '.' && dots && !edge) {
            edge = true;

        } else {
            return false;
        }
    }

    return !edge;
}


bool
kube_name_is_label(kube_str_t s)
{
    return name_is_valid(s, KUBE_NAMESPACE_LEN_MAX, false);
}


bool
kube_name_is_subdomain(kube_str_t s)
{
    return name_is_valid(s, KUBE_NAME_LEN_MAX, true);
}
