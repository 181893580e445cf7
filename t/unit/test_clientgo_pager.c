/*
 * test_clientgo_pager - the scenarios of client-go's pager_test.go: how a list
 * comes by pages, and how far ahead pages are asked for.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "script_bed.h"


#define PAGE  2     /* of reflector_bed */


/* Items first to last, then the end or the token "c<last>". */
static const char *
page_of(unsigned first, unsigned last, unsigned total, unsigned rv)
{
    size_t    n;
    unsigned  i;
    char      token[32];

    static char  text[4096];

    snprintf(token, sizeof(token), ",\"continue\":\"c%u\"", last);
    n = (size_t) snprintf(text, sizeof(text), "{\"kind\":\"ServiceList\","
                          "\"apiVersion\":\"v1\",\"metadata\":{"
                          "\"resourceVersion\":\"%u\"%s},\"items\":[", rv,
                          last < total ? token : "");

    for (i = first; i < last; i++) {
        n += (size_t) snprintf(text + n, sizeof(text) - n, "%s{\"metadata\":{"
                               "\"name\":\"s%u\",\"namespace\":\"shop\","
                               "\"uid\":\"u\",\"resourceVersion\":\"%u\"},"
                               "\"spec\":{\"ports\":[{\"port\":80}]}}",
                               i > first ? "," : "", i, i + 1);
    }

    snprintf(text + n, sizeof(text) - n, "]}");

    return text;
}


static const struct {
    const char  *title;
    const char  *first;            /* the first request of the list */
    unsigned     items;
    unsigned     expires;          /* so many continued pages are refused */
    unsigned     requests;         /* all */
} lists[] = {
    { "empty page", "LIST rv=0 limit=2", 0, 0, 1 },
    { "one page", "LIST rv=0 limit=2", 1, 0, 1 },
    { "one full page", "LIST rv=0 limit=2", 2, 0, 1 },
    { "two pages", "LIST rv=0 limit=2", 3, 0, 2 },
    { "three pages", "LIST rv=0 limit=2", 5, 0, 3 },
    { "expires on second page and then lists", "LIST rv=0 limit=2", 5, 1, 3 },
    { "two pages with resourceVersion and resourceVersionMatch",
      "LIST rv=10 NotOlderThan limit=2", 3, 0, 2 },
    { "expires on second page, with resourceVersion",
      "LIST rv=10 NotOlderThan limit=2", 5, 1, 3 }
};


/* The version is that of the first page; continued ones have neither. */
static void
test_list_pager_list(void **state)
{
    bed_t           b;
    char            text[64];
    size_t          i;
    unsigned        done, requests, expires, last;
    const char     *asked;
    io_exchange_t  *x;
    script_store_t  store;

    (void) state;

    for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {

        memset(&store, 0, sizeof(store));
        bed_init(&b);

        if (strstr(lists[i].first, "rv=10") == NULL) {
            bed_start(&b, "");

        } else {
            bed_start(&b, "10");
            io_answer(&b.io, bed_x(&b), 410, EXPIRED);
            bed_process(&b);
        }

        assert_string_equal(script_asked(bed_x(&b)), lists[i].first);
        expires = lists[i].expires;
        done = 0;

        for (requests = 0; /* void */ ; requests++) {
            x = bed_x(&b);
            asked = script_asked(x);

            if (strncmp(asked, "WATCH", 5) == 0) {
                break;
            }

            if (strncmp(asked, "LIST continue", 13) == 0) {
                snprintf(text, sizeof(text), "LIST continue=c%u limit=2",
                         done);
                assert_string_equal(asked, text);

                if (expires != 0) {
                    expires--;
                    io_answer(&b.io, x, 410, EXPIRED);
                    bed_process(&b);
                    continue;
                }

            } else {

                /* a list that begins anew, in one piece the second time */
                assert_int_equal(requests == 0 ? 0 : 2, requests);
                assert_true(requests == 0 || strstr(asked, "limit") == NULL);
                done = 0;
            }

            last = (strstr(asked, "limit") == NULL) ? lists[i].items
                                                    : done + PAGE;
            last = (last < lists[i].items) ? last : lists[i].items;
            io_answer(&b.io, x, 200, page_of(done, last, lists[i].items,
                                             20 + requests));
            done = last;
            bed_process(&b);
        }

        (void) script_take(&b, &store);

        if (store.n != lists[i].items || requests != lists[i].requests) {
            fail_msg("%s: %zu items, %u requests", lists[i].title, store.n,
                     requests);
        }

        assert_true(bed_listed(&b));
        assert_rv(&b, lists[i].expires ? "22" : "20");
        bed_done(&b);
    }
}


/* One item that cannot be read ends nothing: it is named. */
static void
test_error_processing_item(void **state)
{
    bed_t  b;

    static const script_t  lines[] = {
        { "LIST rv=0 limit=2", 200,
          LIST("7", ",\"continue\":\"c1\"", SERVICE("a", "1") ",{"
               META("bad", "2") ",\"spec\":[]}"), false },
        { "LIST continue=c1 limit=2", 200, LIST("7", "", SERVICE("c", "3")),
          false },
        { "WATCH rv=7", 200, "", false }
    };

    (void) state;

    bed_init(&b);
    bed_start(&b, "");
    assert_int_equal(SCRIPT(&b, lines), 0);
    assert_string_equal(drained(&b), "[ R:shop/a@1 X:shop/bad(malformed) "
                                     "R:shop/c@3 ]");
    bed_done(&b);
}


/*
 * No page is asked for ahead: the next one only when the FIFO has taken the
 * last item of the one before.
 */
static void
test_each_list_page_buffered(void **state)
{
    bed_t           b;
    unsigned        pages, gone, rounds;
    kube_delta_t    d;
    io_exchange_t  *x;

    (void) state;

    bed_make(&b, NULL, "", 4);
    assert_non_null(b.r);
    bed_start(&b, "");
    pages = 0;
    gone = 0;

    for (rounds = 0; rounds < 100 && !bed_listed(&b); rounds++) {
        x = io_find(&b.io, "/services?");

        if (x != NULL && !x->headed) {

            /* the items of the pages before, and the mark in front of them */
            assert_int_equal(gone + kube_delta_fifo_depth(b.fifo),
                             PAGE * pages + (pages != 0));
            assert_true(io_head(x, 200, "application/json", 0));
            assert_true(io_body(&b.io, x, page_of(PAGE * pages,
                                                  PAGE * pages + PAGE, 10,
                                                  20)));
            pages++;
        }

        if (x != NULL && x->held_len == 0 && !x->paused) {
            io_done(x, KUBE_OK, "");
        }

        bed_process(&b);
        assert_true(b.io.started <= pages + 1);

        /* one at a time is taken, every third round */
        if (rounds % 3 == 2 && kube_delta_fifo_peek(b.fifo, &d) == KUBE_OK) {
            kube_delta_fifo_drop(b.fifo);
            gone++;
        }
    }

    assert_true(bed_listed(&b));
    assert_int_equal(pages, 5);
    bed_done(&b);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_list_pager_list),
        cmocka_unit_test(test_error_processing_item),
        cmocka_unit_test(test_each_list_page_buffered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
