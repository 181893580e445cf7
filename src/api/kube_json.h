/*
 * kube_json - a strict grammar before cJSON, and look-ups as Go does them.
 *
 * The grammar is RFC 8259 with valid UTF-8, depth <= KUBE_JSON_DEPTH_MAX,
 * no U+0000 in any string, no lone surrogates, no leading zeros, numbers of
 * at most 60 bytes (cJSON reads no more than 63).  cJSON alone is laxer.
 * Look-ups are case-sensitive and the last duplicate wins, as in Go's
 * encoding/json for exact names.
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


/* Checks the grammar of one whole value; error->offset says where. */
kube_rc_t kube_json_check(kube_str_t text, kube_error_t *error)
    KUBE_MUST_CHECK;

/*
 * Checks and parses.  KUBE_OK, KUBE_INVALID (error says what and where; also
 * for a tree larger than the arena may become) or KUBE_NOMEM.  The tree lives
 * until the arena is reset.
 */
kube_rc_t kube_json_parse(kube_arena_t *arena, kube_str_t text, cJSON **tree,
    kube_error_t *error)  KUBE_MUST_CHECK;

/*
 * Prints a tree again, without spaces; text lives in the arena and is
 * NUL-terminated.  KUBE_OK, KUBE_NOMEM, or KUBE_INVALID as above.
 */
kube_rc_t kube_json_print(kube_arena_t *arena, const cJSON *tree,
    kube_str_t *text)  KUBE_MUST_CHECK;

/* The last member of that exact name, or NULL; NULL for a non-object. */
const cJSON *kube_json_get(const cJSON *object, const char *name);

/* The member's string, or the empty string where absent, null or not one. */
kube_str_t kube_json_string(const cJSON *object, const char *name);


#endif /* KUBE_JSON_H */
