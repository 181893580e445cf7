/*
 * kube_cli_json - what the informer tells, a line of JSON each, on a stdio
 * stream.
 *
 * For the command line tool only: it prints, src/ elsewhere does not.
 * Whether the stream took it is found out by the caller, with ferror().
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_CLI_JSON_H
#define KUBE_CLI_JSON_H


#include <stdio.h>

#include "kube_record.h"
#include "kube_zone_scope.h"


/*
 * type is "add", "update", "delete" or "refused"; object is the record's,
 * decoded.
 */
void kube_cli_json_change(FILE *out, const char *type,
    const kube_record_id_t *id, const kube_object_t *object);

/* A scope whose list has ended, or whose version has moved. */
void kube_cli_json_synced(FILE *out, const kube_scope_info_t *info);


#endif /* KUBE_CLI_JSON_H */
