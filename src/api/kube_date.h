/*
 * kube_date - the two forms of dates that come over the wire.
 *
 * HTTP-date (RFC 9110 5.6.7, all three forms) and RFC 3339 as Go prints it.
 * It formats nothing and knows no clock and no time zone but the offset
 * written in the text.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_DATE_H
#define KUBE_DATE_H


#include "kube_base.h"


/*
 * Years 1970..9999.  now_unix_s resolves the two-digit year of the obsolete
 * RFC 850 form: never more than 50 years ahead.  KUBE_OK or KUBE_INVALID.
 */
kube_rc_t kube_date_parse_http(kube_str_t s, int64_t now_unix_s,
    int64_t *unix_s)  KUBE_MUST_CHECK;

/* "2006-01-02T15:04:05[.fraction](Z|+hh:mm)"; finer than ms is cut off. */
kube_rc_t kube_date_parse_rfc3339(kube_str_t s, int64_t *unix_ms)
    KUBE_MUST_CHECK;


#endif /* KUBE_DATE_H */
