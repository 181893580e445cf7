/*
 * kube_date - the two forms of dates that come over the wire.
 *
 * A pattern is matched byte for byte; letters after '%' take fields.  It is
 * no strptime(): it has only what the forms need.  No state; may be called
 * from any process or thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_date.h"


#define KUBE_DATE_50_YEARS_S  (50 * INT64_C(31557600))


typedef struct {
    unsigned  year;
    unsigned  month;      /* 1..12 */
    unsigned  day;
    unsigned  hour;
    unsigned  minute;
    unsigned  second;     /* 60 is a leap second */
} date_t;


static bool
date_digits(kube_str_t *s, size_t n, unsigned *value)
{
    size_t  i;

    if (s->len < n) {
        return false;
    }

    *value = 0;

    for (i = 0; i < n; i++) {
        if (s->data[i] < '0' || s->data[i] > '9') {
            return false;
        }

        *value = *value * 10 + (unsigned) (s->data[i] - '0');
    }

    s->data += n;
    s->len -= n;

    return true;
}


static bool
date_month(kube_str_t *s, unsigned *month)
{
    unsigned           i;
    static const char  names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

    if (s->len < 3) {
        return false;
    }

    for (i = 0; i < 12; i++) {
        if (memcmp(s->data, names + 3 * i, 3) == 0) {
            *month = i + 1;
            s->data += 3;
            s->len -= 3;
            return true;
        }
    }

    return false;
}


/* The day's name is not checked against the date: it decides nothing. */
static bool
date_weekday(kube_str_t *s)
{
    size_t  n;

    for (n = 0; n < s->len; n++) {
        if ((s->data[n] | 0x20) < 'a' || (s->data[n] | 0x20) > 'z') {
            break;
        }
    }

    if (n < 3 || n > 9) {
        return false;
    }

    s->data += n;
    s->len -= n;

    return true;
}


static bool
date_field(kube_str_t *s, char field, date_t *d)
{
    switch (field) {
    case 'a':
        return date_weekday(s);

    case 'b':
        return date_month(s, &d->month);

    case 'Y':
        return date_digits(s, 4, &d->year);

    case 'y':
        return date_digits(s, 2, &d->year);

    case 'm':
        return date_digits(s, 2, &d->month);

    case 'd':
        return date_digits(s, 2, &d->day);

    case 'e':
        if (s->len != 0 && s->data[0] == ' ') {
            s->data++;
            s->len--;
            return date_digits(s, 1, &d->day);
        }

        return date_digits(s, 2, &d->day);

    case 'H':
        return date_digits(s, 2, &d->hour);

    case 'M':
        return date_digits(s, 2, &d->minute);

    default:
        return date_digits(s, 2, &d->second);
    }
}


/* Takes what pattern describes off the front of *s. */
static bool
date_match(kube_str_t *s, const char *pattern, date_t *d)
{
    for ( /* void */ ; *pattern != '\0'; pattern++) {
        if (*pattern == '%') {
            pattern++;

            if (!date_field(s, *pattern, d)) {
                return false;
            }

            continue;
        }

        if (s->len == 0 || s->data[0] != *pattern) {
            return false;
        }

        s->data++;
        s->len--;
    }

    return true;
}


static bool
date_is_leap(unsigned year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}


static bool
date_is_valid(const date_t *d)
{
    unsigned                    days;
    static const unsigned char  lengths[] = {
        31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31
    };

    if (d->year < 1970 || d->year > 9999 || d->month < 1 || d->month > 12) {
        return false;
    }

    days = lengths[d->month - 1];

    if (d->month == 2 && date_is_leap(d->year)) {
        days++;
    }

    return d->day >= 1 && d->day <= days && d->hour <= 23
           && d->minute <= 59 && d->second <= 60;
}


static int64_t
date_to_unix(const date_t *d)
{
    int64_t   days, y;
    unsigned  m;

    /* counting from March puts the leap day last */
    m = (d->month + 9) % 12;
    y = (int64_t) d->year - ((d->month <= 2) ? 1 : 0);

    days = 365 * y + y / 4 - y / 100 + y / 400
           + (153 * (int64_t) m + 2) / 5 + (int64_t) d->day - 1 - 719468;

    return ((days * 24 + (int64_t) d->hour) * 60 + (int64_t) d->minute) * 60
           + (int64_t) d->second;
}


kube_rc_t
kube_date_parse_http(kube_str_t s, int64_t now_unix_s, int64_t *unix_s)
{
    date_t             d;
    size_t             i;
    kube_str_t         rest;
    static const char  *const patterns[] = {
        "%a, %d %b %Y %H:%M:%S GMT",
        "%a, %d-%b-%y %H:%M:%S GMT",
        "%a %b %e %H:%M:%S %Y"
    };

    for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        memset(&d, 0, sizeof(date_t));
        rest = s;

        if (!date_match(&rest, patterns[i], &d) || rest.len != 0) {
            continue;
        }

        if (i == 1) {
            d.year += 2000;

            /* RFC 9110 5.6.7: more than 50 years ahead means the past */
            if (date_to_unix(&d) - now_unix_s > KUBE_DATE_50_YEARS_S) {
                d.year -= 100;
            }
        }

        if (!date_is_valid(&d)) {
            return KUBE_INVALID;
        }

        *unix_s = date_to_unix(&d);

        return KUBE_OK;
    }

    return KUBE_INVALID;
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

    s->data++;
    s->len--;
    scale = 100;

    for (n = 0; n < s->len && s->data[n] >= '0' && s->data[n] <= '9'; n++) {
        *ms += scale * (s->data[n] - '0');
        scale /= 10;
    }

    s->data += n;
    s->len -= n;

    return n != 0;
}


/* Takes "Z" or "+hh:mm"; *offset_s is to be subtracted. */
static bool
date_offset(kube_str_t *s, int64_t *offset_s)
{
    char    sign;
    date_t  d;

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

    memset(&d, 0, sizeof(date_t));

    if ((sign != '+' && sign != '-')
        || !date_match(s, "%H:%M", &d) || d.hour > 23 || d.minute > 59)
    {
        return false;
    }

    *offset_s = (int64_t) (d.hour * 60 + d.minute) * 60;

    if (sign == '-') {
        *offset_s = -*offset_s;
    }

    return true;
}


kube_rc_t
kube_date_parse_rfc3339(kube_str_t s, int64_t *unix_ms)
{
    date_t   d;
    int64_t  ms, offset_s;

    memset(&d, 0, sizeof(date_t));

    if (!date_match(&s, "%Y-%m-%dT%H:%M:%S", &d)
        || !date_fraction(&s, &ms)
        || !date_offset(&s, &offset_s)
        || s.len != 0
        || !date_is_valid(&d))
    {
        return KUBE_INVALID;
    }

    *unix_ms = (date_to_unix(&d) - offset_s) * 1000 + ms;

    return KUBE_OK;
}
