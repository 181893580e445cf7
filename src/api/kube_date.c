/*
 * kube_date - RFC 3339 as Go prints it, to milliseconds since 1970.
 *
 * It formats nothing and knows no clock and no time zone but the offset
 * written in the text.  It keeps no state; any process or thread may call it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_date.h"


/* The fields of a date, in the order of the text. */
enum {
    DATE_YEAR = 0,
    DATE_MONTH,
    DATE_DAY,
    DATE_HOUR,
    DATE_MINUTE,
    DATE_SECOND,      /* 60 is a leap second */
    DATE_FIELDS
};


static bool
date_is_digit(char c)
{
    return c >= '0' && c <= '9';
}


/* Takes n digits and the byte behind them off the front; '\0' is any byte. */
static inline bool
date_number(kube_str_t *s, size_t n, char after, unsigned *value)
{
    size_t  i;

    if (s->len < n + (after != '\0')) {
        return false;
    }

    *value = 0;

    for (i = 0; i < n; i++) {
        if (!date_is_digit(s->data[i])) {
            return false;
        }

        *value = *value * 10 + (unsigned) (s->data[i] - '0');
    }

    if (after != '\0' && s->data[n++] != after) {
        return false;
    }

    s->data += n;
    s->len -= n;

    return true;
}


static bool
date_is_valid(const unsigned d[DATE_FIELDS])
{
    bool      leap;
    unsigned  y, days;

    static const unsigned char  lengths[] = {
        31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31
    };

    y = d[DATE_YEAR];

    if (y < 1970 || d[DATE_MONTH] < 1 || d[DATE_MONTH] > 12) {
        return false;
    }

    leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    days = lengths[d[DATE_MONTH] - 1];

    if (d[DATE_MONTH] == 2 && leap) {
        days++;
    }

    return d[DATE_DAY] >= 1 && d[DATE_DAY] <= days && d[DATE_HOUR] <= 23
           && d[DATE_MINUTE] <= 59 && d[DATE_SECOND] <= 60;
}


static int64_t
date_to_unix(const unsigned d[DATE_FIELDS])
{
    int64_t   days, y;
    unsigned  m;

    /* a year that begins with March has its leap day last */

    m = (d[DATE_MONTH] + 9) % 12;
    y = (int64_t) d[DATE_YEAR] - (d[DATE_MONTH] <= 2);

    days = 365 * y + y / 4 - y / 100 + y / 400
           + (153 * (int64_t) m + 2) / 5 + (int64_t) d[DATE_DAY] - 1 - 719468;

    return ((days * 24 + d[DATE_HOUR]) * 60 + d[DATE_MINUTE]) * 60
           + d[DATE_SECOND];
}


/* Takes "[.digits]" off the front of *s. */
static bool
date_fraction(kube_str_t *s, int64_t *ms)
{
    size_t   n;
    int64_t  scale;

    *ms = 0;

    if (s->len == 0 || s->data[0] != '.') {
        return true;
    }

    scale = 100;

    for (n = 1; n < s->len && date_is_digit(s->data[n]); n++) {
        *ms += scale * (s->data[n] - '0');
        scale /= 10;
    }

    s->data += n;
    s->len -= n;

    return n > 1;
}


/* Takes "Z", "+hh:mm" or "-hh:mm" off the front; *offset_s is east of UTC. */
static bool
date_offset(kube_str_t *s, int64_t *offset_s)
{
    char      sign;
    unsigned  hour, minute;

    *offset_s = 0;

    if (s->len == 0) {
        return false;
    }

    sign = s->data[0];
    s->data++;
    s->len--;

    if (sign == 'Z') {
        return true;
    }

    if ((sign != '+' && sign != '-')
        || !date_number(s, 2, ':', &hour)
        || !date_number(s, 2, '\0', &minute)
        || hour > 23
        || minute > 59)
    {
        return false;
    }

    *offset_s = (int64_t) (hour * 60 + minute) * (sign == '-' ? -60 : 60);

    return true;
}


kube_rc_t
kube_date_parse_rfc3339(kube_str_t s, int64_t *unix_ms)
{
    int64_t   ms, offset_s;
    unsigned  d[DATE_FIELDS];

    if (!date_number(&s, 4, '-', &d[DATE_YEAR])
        || !date_number(&s, 2, '-', &d[DATE_MONTH])
        || !date_number(&s, 2, 'T', &d[DATE_DAY])
        || !date_number(&s, 2, ':', &d[DATE_HOUR])
        || !date_number(&s, 2, ':', &d[DATE_MINUTE])
        || !date_number(&s, 2, '\0', &d[DATE_SECOND])
        || !date_fraction(&s, &ms)
        || !date_offset(&s, &offset_s)
        || s.len != 0
        || !date_is_valid(d))
    {
        return KUBE_INVALID;
    }

    *unix_ms = (date_to_unix(d) - offset_s) * 1000 + ms;

    return KUBE_OK;
}
