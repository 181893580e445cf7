/*
 * kube_decode_field - what the files of kube_decode share: the state of one
 * decoding and the readers of single members.
 *
 * Private to kube_decode*.c; others include kube_decode.h.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_DECODE_FIELD_H
#define KUBE_DECODE_FIELD_H


#include "kube_json.h"
#include "kube_object.h"


typedef struct {
    kube_arena_t  *arena;
    uint32_t       dropped;   /* endpoints, ports and addresses left out */
    const char    *what;      /* of the last failure; a static text */
} kube_decode_t;

/* Keeps the text; KUBE_INVALID. */
kube_rc_t kube_decode_fail(kube_decode_t *d, const char *what);

/* KUBE_NOMEM, or KUBE_INVALID where it is the arena that is full. */
kube_rc_t kube_decode_nomem(kube_decode_t *d);

/* NULL or null: Go's decoder makes no difference. */
bool kube_decode_is_absent(const cJSON *value);

/* 1..max bytes of visible ASCII, no spaces. */
bool kube_decode_is_printable(kube_str_t s, size_t max);

/* A text that only informs: empty unless it can be shown as it is. */
kube_str_t kube_decode_text(const cJSON *object, const char *name);

/* False unless value is an integer of low..high, 2^53 at most. */
bool kube_decode_integer(const cJSON *value, int64_t low, int64_t high,
    int64_t *out)  KUBE_MUST_CHECK;

/* A bool where null and absent mean otherwise; false: it is something else. */
bool kube_decode_condition(const cJSON *object, const char *name,
    bool otherwise, bool *out)  KUBE_MUST_CHECK;

/*
 * The member name of object as an array of at most max elements; *n is 0
 * where it is absent.  Else *p has room for *n elements of size bytes.
 * KUBE_INVALID (what) where it is no array or has more.
 */
kube_rc_t kube_decode_array(kube_decode_t *d, const cJSON *object,
    const char *name, size_t max, size_t size, const char *what,
    const cJSON **array, size_t *n, void **p)  KUBE_MUST_CHECK;

/* The member "ports" of a Service's spec or of a slice. */
kube_rc_t kube_decode_ports(kube_decode_t *d, const cJSON *object,
    bool service, kube_port_t **ports, size_t *ports_n)  KUBE_MUST_CHECK;

/*
 * A whole object.  KUBE_INVALID: only the readable part of its metadata is
 * filled.  In kube_decode_object.c.
 */
kube_rc_t kube_decode_tree(kube_decode_t *d, const cJSON *root,
    kube_resource_t resource, kube_object_t *object)  KUBE_MUST_CHECK;


#endif /* KUBE_DECODE_FIELD_H */
