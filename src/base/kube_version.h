/*
 * kube_version - the version of the project, in one place.
 *
 * A constant, and no version of any format; anyone may include it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_VERSION_H
#define KUBE_VERSION_H


#define KUBE_VERSION  "0.1.0"


#endif /* KUBE_VERSION_H */
