/*
 * test_zone_live - kube_zone_live: which records are live, against a plain list
 * of them, at any offset and over words of the bitmaps.  It allocates nothing.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_zone_live.h"
#include "zone_test.h"


#define LIVE_RECORDS  64
#define LIVE_TURNS    4000


typedef struct {
    uint32_t  offset;          /* in units; 0: none */
    uint32_t  size;            /* bytes */
} live_t;


static uint32_t
live_first(const zone_test_t *t)
{
    return (uint32_t) (t->zone.geometry.segments / KUBE_ZONE_UNIT);
}


static uint32_t
live_units(const zone_test_t *t)
{
    return t->zone.geometry.segments_n * t->zone.geometry.segment_size
           / KUBE_ZONE_UNIT;
}


/* What begins at an offset, or shares a byte with a range, by the list. */
static const live_t *
live_begins(const live_t *list, uint32_t offset)
{
    unsigned  i;

    for (i = 0; i < LIVE_RECORDS; i++) {
        if (list[i].size != 0 && list[i].offset == offset) {
            return &list[i];
        }
    }

    return NULL;
}


static bool
live_shares(const live_t *list, uint32_t offset, uint32_t size)
{
    unsigned  i;

    for (i = 0; i < LIVE_RECORDS; i++) {
        if (list[i].size != 0
            && list[i].offset < offset + size / KUBE_ZONE_UNIT
            && offset < list[i].offset + list[i].size / KUBE_ZONE_UNIT)
        {
            return true;
        }
    }

    return false;
}


/* Where the first record of the list begins from offset on, before end. */
static uint32_t
live_next(const live_t *list, uint32_t offset, uint32_t end)
{
    unsigned  i;

    for (i = 0; i < LIVE_RECORDS; i++) {
        if (list[i].size != 0
            && list[i].offset >= offset
            && list[i].offset < end)
        {
            end = list[i].offset;
        }
    }

    return end;
}


/* A place in one segment, of a size that a record may have. */
static live_t
live_place(const zone_test_t *t, kube_random_t *r)
{
    live_t    place;
    uint32_t  units, at;

    units = t->zone.geometry.segment_size / KUBE_ZONE_UNIT;
    at = (uint32_t) kube_random_range(r, 0, units - 7);

    place.size = (uint32_t) kube_random_range(r, 6, units - at);
    place.size = KUBE_ZONE_UNIT * ((kube_random_next(r) % 4 != 0)
                                   ? 6 + place.size % 90 : place.size);

    if (place.size / KUBE_ZONE_UNIT > units - at) {
        place.size = KUBE_ZONE_UNIT * (units - at);
    }

    place.offset = live_first(t) + at
                   + units * (uint32_t) kube_random_range(
                                 r, 0, t->zone.geometry.segments_n - 1);
    return place;
}


static void
test_live_model(void **state)
{
    live_t         list[LIVE_RECORDS], place;
    unsigned       i, n;
    uint32_t       at;
    zone_test_t    t;
    const live_t  *begins;
    kube_random_t  r;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    memset(list, 0, sizeof(list));
    kube_random_init(&r, 9);

    for (n = 0; n < LIVE_TURNS; n++) {
        i = (unsigned) kube_random_range(&r, 0, LIVE_RECORDS - 1);
        place = live_place(&t, &r);

        if (list[i].size != 0) {
            kube_zone_live_flip(t.writer, list[i].offset, list[i].size);
            list[i].size = 0;

        } else if (!live_shares(list, place.offset, place.size)) {
            kube_zone_live_flip(t.writer, place.offset, place.size);
            list[i] = place;
        }

        place = live_place(&t, &r);
        assert_int_equal(kube_zone_live_overlaps(t.writer, place.offset,
                                                 place.size),
                         live_shares(list, place.offset, place.size));

        at = place.offset + place.size / KUBE_ZONE_UNIT;
        assert_int_equal(kube_zone_live_next(t.writer, place.offset, at),
                         live_next(list, place.offset, at));

        /* any number may be asked for */
        at = (n % 2 == 0) ? live_first(&t) + (uint32_t)
                                kube_random_range(&r, 0, live_units(&t))
                          : list[i].offset;
        begins = live_begins(list, at);
        assert_int_equal(kube_zone_live_at(t.writer, at), begins != NULL);
        assert_int_equal(kube_zone_live_size(t.writer, at),
                         (begins != NULL) ? begins->size : 0);
    }

    for (i = 0; i < LIVE_RECORDS; i++) {
        if (list[i].size != 0) {
            kube_zone_live_flip(t.writer, list[i].offset, list[i].size);
        }
    }

    zone_test_close(&t);
}


static void
test_live_any_offset(void **state)
{
    unsigned       i;
    zone_test_t    t;
    kube_record_t  header;

    static const uint32_t  offsets[] = {
        0, 1, 7, 1u << 20, INT32_MAX, 1u << 31, UINT32_MAX - 1, UINT32_MAX
    };

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);

    for (i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        assert_false(kube_zone_live_at(t.writer, offsets[i]));
        assert_int_equal(kube_zone_live_size(t.writer, offsets[i]), 0);
        *t.writer->suspect = false;
        assert_false(kube_zone_live_header(t.writer, offsets[i], &header));
        assert_true(*t.writer->suspect);
    }

    zone_test_close(&t);
}


/* A header that is not as it was written is not followed. */
static void
test_live_header(void **state)
{
    unsigned        i;
    uint32_t        offset;
    zone_test_t     t;
    kube_record_t   header, was, *record;

    static const struct {
        const char  *name;
        size_t       at;
        uint32_t     value;
    } table[] = {
        { "larger", offsetof(kube_record_t, size), 4096 },
        { "smaller", offsetof(kube_record_t, size), 48 },
        { "nothing", offsetof(kube_record_t, size), 0 },
        { "odd", offsetof(kube_record_t, size), 77 },
        { "no entry", offsetof(kube_record_t, entry), 0 },
        { "beyond all", offsetof(kube_record_t, entry), UINT32_MAX },
    };

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 1, 3, 1000),
                     KUBE_OK);
    offset = t.writer->side[1].offset;
    record = kube_zone_record_at(&t.zone, offset);
    was = *record;

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        assert_true(kube_zone_live_header(t.writer, offset, &header));
        assert_false(*t.writer->suspect);
        memcpy((char *) record + table[i].at, &table[i].value,
               sizeof(uint32_t));

        if (kube_zone_live_header(t.writer, offset, &header)
            || !*t.writer->suspect)
        {
            fail_msg("%s", table[i].name);
        }

        *t.writer->suspect = false;
        *record = was;
    }

    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_live_model),
        cmocka_unit_test(test_live_any_offset),
        cmocka_unit_test(test_live_header),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
