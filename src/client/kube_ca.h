/*
 * kube_ca - what tells one CA from another: a mark for each certificate of a
 * bundle.
 *
 * A mark is a hash of the certificate's bytes, without a secret: the same in
 * each process, whatever the order, the line lengths and the remarks of the
 * file.  It tells apart what an operator has configured; it verifies nothing,
 * libcurl does.  Pure; anyone may call it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_CA_H
#define KUBE_CA_H


#include "kube_base.h"
#include "kube_limits.h"


/*
 * Writes the marks of the certificates in a PEM text (RFC 7468; any bytes) in
 * ascending order, each once, and returns how many; of more than
 * KUBE_CA_MARKS_MAX the smallest.
 */
size_t kube_ca_marks(kube_str_t pem, uint64_t marks[KUBE_CA_MARKS_MAX]);

/* The mark of what stands in place of a bundle, such as "system". */
uint64_t kube_ca_mark(const char *name);


#endif /* KUBE_CA_H */
