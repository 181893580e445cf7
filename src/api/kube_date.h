/*
 * kube_date - RFC 3339 as Go prints it, to milliseconds since 1970.
 *
 * It formats nothing and knows no clock and no time zone but the offset
 * written in the text.  HTTP's dates are libcurl's business.  It keeps no
 * state; any process or thread may call it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_DATE_H
#define KUBE_DATE_H


#include "kube_base.h"


/*
 * Reads "2006-01-02T15:04:05[.fraction](Z|+hh:mm|-hh:mm)", years 1970 to
 * 9999; what is finer than a millisecond is cut off.
 * KUBE_OK, or KUBE_INVALID (*unix_ms is unchanged).
 */
kube_rc_t kube_date_parse_rfc3339(kube_str_t s, int64_t *unix_ms)
    KUBE_MUST_CHECK;


#endif /* KUBE_DATE_H */
