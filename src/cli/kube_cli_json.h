/*
 * kube_cli_json - records of the zone as JSON text on a stdio stream.
 *
 * For the command line tool only: it prints, src/ elsewhere does not.  Every
 * string is escaped, whatever bytes it has: invalid UTF-8 becomes U+FFFD.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_CLI_JSON_H
#define KUBE_CLI_JSON_H


#include <stdio.h>

#include "kube_record.h"


/* With the quotes. */
void kube_cli_json_string(FILE *out, kube_str_t s);

/* Type, ports, endpoints: an object of what the zone holds. */
void kube_cli_json_object(FILE *out, const kube_object_t *object);


#endif /* KUBE_CLI_JSON_H */
