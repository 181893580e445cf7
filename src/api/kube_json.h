/*
 * kube_json - a text as a tree of cJSON's, and look-ups as Go does them.
 *
 * For what is rare and small: the Status of a failed request, what an exec
 * plugin says; look-ups also for what a gateway answers to --verify.  Objects
 * go through kube_decode, which cJSON cannot replace: it ends a text at U+0000,
 * refuses lone surrogates, and reads no deeper than 1000.  The tests compare
 * the two where both can read.  Look-ups are case-sensitive and the last
 * duplicate wins.
 *
 * cJSON's allocation hooks are process-global: parsing sets them for the
 * duration of the call and restores the defaults, so that another user of
 * the same libcjson is not captured.  Trees live in the arena: never call
 * cJSON_Delete on them.  Not thread-safe.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_JSON_H
#define KUBE_JSON_H


#include <cjson/cJSON.h>

#include "kube_arena.h"


/*
 * KUBE_OK, KUBE_INVALID (error says what and where; also for a tree larger
 * than the arena may become) or KUBE_NOMEM.  The tree lives until the arena is
 * reset.
 */
kube_rc_t kube_json_parse(kube_arena_t *arena, kube_str_t text, cJSON **tree,
    kube_error_t *error)  KUBE_MUST_CHECK;

/* The last member of that exact name, or NULL; NULL for a non-object. */
const cJSON *kube_json_get(const cJSON *object, const char *name);

/* The member's string, or the empty string where absent, null or not one. */
kube_str_t kube_json_string(const cJSON *object, const char *name);


#endif /* KUBE_JSON_H */
