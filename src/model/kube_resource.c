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


/* Classes of the bytes of names; 0: no name has it. */
enum {
    NAME_ALNUM = 1,
    NAME_DASH,
    NAME_DOT
};

static const uint8_t  name_bytes[256] = {
    ['0'] = NAME_ALNUM, ['1'] = NAME_ALNUM, ['2'] = NAME_ALNUM,
    ['3'] = NAME_ALNUM, ['4'] = NAME_ALNUM, ['5'] = NAME_ALNUM,
    ['6'] = NAME_ALNUM, ['7'] = NAME_ALNUM, ['8'] = NAME_ALNUM,
    ['9'] = NAME_ALNUM,
    ['a'] = NAME_ALNUM, ['b'] = NAME_ALNUM, ['c'] = NAME_ALNUM,
    ['d'] = NAME_ALNUM, ['e'] = NAME_ALNUM, ['f'] = NAME_ALNUM,
    ['g'] = NAME_ALNUM, ['h'] = NAME_ALNUM, ['i'] = NAME_ALNUM,
    ['j'] = NAME_ALNUM, ['k'] = NAME_ALNUM, ['l'] = NAME_ALNUM,
    ['m'] = NAME_ALNUM, ['n'] = NAME_ALNUM, ['o'] = NAME_ALNUM,
    ['p'] = NAME_ALNUM, ['q'] = NAME_ALNUM, ['r'] = NAME_ALNUM,
    ['s'] = NAME_ALNUM, ['t'] = NAME_ALNUM, ['u'] = NAME_ALNUM,
    ['v'] = NAME_ALNUM, ['w'] = NAME_ALNUM, ['x'] = NAME_ALNUM,
    ['y'] = NAME_ALNUM, ['z'] = NAME_ALNUM,
    ['-'] = NAME_DASH,
    ['.'] = NAME_DOT
};


/* Parts of [a-z0-9]([-a-z0-9]*[a-z0-9])?, joined by dots where allowed. */
static bool
name_is_valid(kube_str_t s, size_t max, bool dots)
{
    size_t    i;
    unsigned  class, before;

    if (s.len == 0 || s.len > max) {
        return false;
    }

    /* what ends a part stands before the first byte and behind the last */
    before = NAME_DOT;

    for (i = 0; i < s.len; i++) {
        class = name_bytes[(unsigned char) s.data[i]];

        if (class != NAME_ALNUM
            && (class == 0 || (class == NAME_DOT && !dots)
                || before == NAME_DOT
                || (class == NAME_DOT && before == NAME_DASH)))
        {
            return false;
        }

        before = class;
    }

    return before == NAME_ALNUM;
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
