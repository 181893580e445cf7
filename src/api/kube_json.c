/*
 * kube_json - a text as a tree of cJSON's, in an arena.
 *
 * The lexer says whether the text is one whole value; what cJSON makes of it
 * is cJSON's business.  Whoever owns the arena may call it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_json.h"
#include "kube_lexer.h"


/*
 * The one mutable global of src: cJSON's hooks carry no context.  Set and
 * used only inside json_hooks_set() .. json_hooks_restore().
 */
static _Thread_local struct {
    kube_arena_t  *arena;
    bool           refused;
} json_memory;


static void *
json_hook_malloc(size_t size)
{
    void  *p;

    p = kube_arena_alloc(json_memory.arena, size);

    if (p == NULL) {
        json_memory.refused = true;
    }

    return p;
}


static void
json_hook_free(void *p)
{
    (void) p;
}


static void
json_hooks_set(kube_arena_t *arena)
{
    cJSON_Hooks  hooks;

    json_memory.arena = arena;
    json_memory.refused = false;

    hooks.malloc_fn = json_hook_malloc;
    hooks.free_fn = json_hook_free;

    cJSON_InitHooks(&hooks);
}


static void
json_hooks_restore(void)
{
    cJSON_InitHooks(NULL);
    json_memory.arena = NULL;
}


static kube_rc_t
json_say(kube_rc_t rc, const char *what, size_t offset, kube_error_t *error)
{
    error->rc = rc;
    error->what = what;
    error->offset = offset;

    return rc;
}


kube_rc_t
kube_json_parse(kube_arena_t *arena, kube_str_t text, cJSON **tree,
    kube_error_t *error)
{
    cJSON         *root;
    kube_lexer_t   lx;

    kube_lexer_init(&lx, text);
    kube_lexer_value(&lx, NULL);

    if (!kube_lexer_end(&lx)) {
        return json_say(KUBE_INVALID, lx.what, (size_t) (lx.p - lx.start),
                        error);
    }

    json_hooks_set(arena);
    root = cJSON_ParseWithLength(text.data, text.len);
    json_hooks_restore();

    if (root != NULL) {
        *tree = root;
        return KUBE_OK;
    }

    if (!json_memory.refused) {
        return json_say(KUBE_INVALID, "cJSON cannot read it", 0, error);
    }

    /* what the ceiling refuses it will refuse for ever: no NOMEM */
    if (arena->full) {
        return json_say(KUBE_INVALID, "too large as a tree", 0, error);
    }

    return json_say(KUBE_NOMEM, "out of memory", 0, error);
}


const cJSON *
kube_json_get(const cJSON *object, const char *name)
{
    const cJSON  *child, *found;

    if (!cJSON_IsObject(object)) {
        return NULL;
    }

    found = NULL;

    for (child = object->child; child != NULL; child = child->next) {
        if (child->string != NULL && strcmp(child->string, name) == 0) {
            found = child;
        }
    }

    return found;
}


kube_str_t
kube_json_string(const cJSON *object, const char *name)
{
    const cJSON  *value;

    value = kube_json_get(object, name);

    if (!cJSON_IsString(value)) {
        return KUBE_STR_NULL;
    }

    return kube_str(value->valuestring);
}
