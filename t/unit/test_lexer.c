/*
 * test_lexer - the two faces of the lexer: bulk skips, whole and in pieces,
 * and walks, byte by byte where they end.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_lexer.h"


#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

typedef enum {
    WHOLE = KUBE_OK,          /* one value, and nothing behind it */
    OPEN = KUBE_AGAIN,        /* it goes on */
    BROKEN = KUBE_PROTO       /* its brackets do not match */
} lexer_skip_t;

typedef struct {
    const char    *text;
    lexer_skip_t   skip;      /* of what begins with a bracket or a quote */
    const char    *what;      /* part of what a walk says; NULL: it is well */
    size_t         offset;    /* where it says so */
} lexer_case_t;

typedef struct {
    const char  *raw;
    const char  *plain;       /* NULL: not a text */
    size_t       len;         /* of plain, where it has a NUL */
} lexer_text_t;


static const lexer_case_t  lexer_cases[] = {
    { .text = "{}" },
    { .text = "[]" },
    { .text = " {} " },
    { .text = "[1]" },
    { .text = "[1,2]" },
    { .text = "[ 1 , 2 ]" },
    { .text = "[[]]" },
    { .text = "[[],[]]" },
    { .text = "[{},{}]" },
    { .text = "{\"a\":1}" },
    { .text = "{ \"a\" : 1 , \"b\" : [ ] }" },
    { .text = "{\"a\":{\"b\":{\"c\":null}}}" },
    { .text = "{\"a\":1,\"a\":2}" },
    { .text = "{\"\":0}" },
    { .text = "\"\"" },
    { .text = "\"a}]{[\"" },
    { .text = "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"" },
    { .text = "[\"\\\\\",\"\\\\\\\"\",\"01234567\\\"89\",\"0123456\\\\\"]" },
    { .text = "\"\\u0000\\ud83d\\ufFfF\"" },
    { .text = "\"\x7f\xc3\xa4\xff\x01\"" },
    { .text = "[\"a\nb\"]" },

    /* the structure is right, what stands in it is nobody's business */
    { .text = "[01,nan,Infinity,-,1.,.5,0x1,1e+,00,-01,nulL,TRUE]" },
    { .text = "[\"\\x\",\"\\U0041\",\"\\u12\"]" },
    { .text = "{\"\\x\":1,\"\\u00\":2}" },

    /* a walk sees what a skip does not */
    { .text = "[1,]", .what = "value expected", .offset = 3 },
    { .text = "[,1]", .what = "value expected", .offset = 1 },
    { .text = "[1 2]", .what = "comma", .offset = 3 },
    { .text = "[1,,2]", .what = "value expected", .offset = 3 },
    { .text = "['a']", .what = "value expected", .offset = 1 },
    { .text = "[/**/1]", .what = "value expected", .offset = 1 },
    { .text = "[1_0]", .what = "comma", .offset = 2 },
    { .text = "{1:2}", .what = "member name", .offset = 1 },
    { .text = "{a:1}", .what = "member name", .offset = 1 },
    { .text = "{\"a\"}", .what = "colon", .offset = 4 },
    { .text = "{\"a\":}", .what = "value expected", .offset = 5 },
    { .text = "{\"a\" 1}", .what = "colon", .offset = 5 },
    { .text = "{\"a\"::1}", .what = "value expected", .offset = 5 },
    { .text = "{\"a\":1,}", .what = "member name", .offset = 7 },
    { .text = "{,}", .what = "member name", .offset = 1 },
    { .text = "{\"a\":1 \"b\":2}", .what = "comma", .offset = 7 },
    { .text = "{\"a\":1,\"b\"}", .what = "colon", .offset = 10 },
    { .text = "{null:1}", .what = "member name", .offset = 1 },
    { .text = "{\"a\":1,2}", .what = "member name", .offset = 7 },

    { .text = "[", .skip = OPEN, .what = "value", .offset = 1 },
    { .text = "[1", .skip = OPEN, .what = "comma", .offset = 2 },
    { .text = "[1,", .skip = OPEN, .what = "value", .offset = 3 },
    { .text = "[[]", .skip = OPEN, .what = "comma", .offset = 3 },
    { .text = "{", .skip = OPEN, .what = "member name", .offset = 1 },
    { .text = "{\"a\"", .skip = OPEN, .what = "colon", .offset = 4 },
    { .text = "{\"a\":", .skip = OPEN, .what = "value", .offset = 5 },
    { .text = "{\"a\":1", .skip = OPEN, .what = "comma", .offset = 6 },
    { .text = "{\"a\":1,", .skip = OPEN, .what = "member", .offset = 7 },
    { .text = "\"", .skip = OPEN, .what = "unterminated", .offset = 0 },
    { .text = "\"a", .skip = OPEN, .what = "unterminated", .offset = 0 },
    { .text = "\"\\", .skip = OPEN, .what = "unterminated", .offset = 0 },
    { .text = "\"\\\"", .skip = OPEN, .what = "unterminated", .offset = 0 },
    { .text = "\"0123456789\\", .skip = OPEN, .what = "unterminated",
      .offset = 0 },
    { .text = "[\"\xc3", .skip = OPEN, .what = "unterminated", .offset = 1 },

    { .text = "[1}", .skip = BROKEN, .what = "comma", .offset = 2 },
    { .text = "[}", .skip = BROKEN, .what = "value", .offset = 1 },
    { .text = "{]", .skip = BROKEN, .what = "member name", .offset = 1 },
    { .text = "{\"a\":1]", .skip = BROKEN, .what = "comma", .offset = 6 },
    { .text = "{\"a\":[1}", .skip = BROKEN, .what = "comma", .offset = 7 },
    { .text = "[[{\"a\":[{}}]", .skip = BROKEN, .what = "comma",
      .offset = 10 }
};

/* No value at all, or more than one. */
static const lexer_case_t  lexer_others[] = {
    { .text = "0" }, { .text = "-0" }, { .text = "1.5e3" },
    { .text = "true" }, { .text = "null" }, { .text = "\t\r\n 1 \t\r\n" },
    { .text = "123456789012345678901234567890123456789012345678901234567890"
              "12345678901234567890e12345678901234567890" },
    { .text = "", .what = "value expected", .offset = 0 },
    { .text = " ", .what = "value expected", .offset = 1 },
    { .text = "'a'", .what = "value expected", .offset = 0 },
    { .text = "]", .what = "value expected", .offset = 0 },
    { .text = "}", .what = "value expected", .offset = 0 },
    { .text = "\xef\xbb\xbf{}", .what = "value expected", .offset = 0 },
    { .text = "1 2", .what = "behind", .offset = 2 },
    { .text = "1,", .what = "behind", .offset = 1 },
    { .text = "{}{}", .what = "behind", .offset = 2 },
    { .text = "{}\n{}", .what = "behind", .offset = 3 },
    { .text = "[1]]", .what = "behind", .offset = 3 },
    { .text = "{\"a\":1}}", .what = "behind", .offset = 7 }
};

static const lexer_text_t  lexer_texts[] = {
    { .raw = "", .plain = "" },
    { .raw = "abc", .plain = "abc" },
    { .raw = "\\\"\\\\\\/\\b\\f\\n\\r\\t", .plain = "\"\\/\b\f\n\r\t" },
    { .raw = "\\u0041\\u00e4\\u20ac", .plain = "A\xc3\xa4\xe2\x82\xac" },
    { .raw = "\\ufFfF", .plain = "\xef\xbf\xbf" },
    { .raw = "\\u0000", .plain = "\0", .len = 1 },
    { .raw = "a\\u0000b", .plain = "a\0b", .len = 3 },
    { .raw = "\\ud83d\\ude00", .plain = "\xf0\x9f\x98\x80" },
    { .raw = "\\uDBFF\\uDFFF", .plain = "\xf4\x8f\xbf\xbf" },

    /* what is alone becomes U+FFFD, and only that */
    { .raw = "\\ud83d", .plain = "\xef\xbf\xbd" },
    { .raw = "\\ude00", .plain = "\xef\xbf\xbd" },
    { .raw = "\\ud83dx", .plain = "\xef\xbf\xbdx" },
    { .raw = "\\ud83d\\n", .plain = "\xef\xbf\xbd\n" },
    { .raw = "\\ud83d\\u0041", .plain = "\xef\xbf\xbd" "A" },
    { .raw = "\\ud83d\\ud83d\\ude00", .plain = "\xef\xbf\xbd"
                                               "\xf0\x9f\x98\x80" },
    { .raw = "\xff", .plain = "\xef\xbf\xbd" },
    { .raw = "a\xc3" "b", .plain = "a\xef\xbf\xbd" "b" },
    { .raw = "\xed\xa0\x80", .plain = "\xef\xbf\xbd\xef\xbf\xbd"
                                      "\xef\xbf\xbd" },
    { .raw = "\xf0\x9f\x98", .plain = "\xef\xbf\xbd\xef\xbf\xbd"
                                      "\xef\xbf\xbd" },
    { .raw = "\xc3\xa4\x7f\x01", .plain = "\xc3\xa4\x7f\x01" },

    { .raw = "\\x" }, { .raw = "\\U0041" }, { .raw = "\\'" },
    { .raw = "\\0" }, { .raw = "\\" }, { .raw = "a\\" }, { .raw = "\\u" },
    { .raw = "\\u12" }, { .raw = "\\u12g4" }, { .raw = "\\u 123" },
    { .raw = "\\ud83d\\u12" }
};


/* A copy of its exact length: reading one byte further is seen. */
static char *
lexer_copy(const char *text, size_t len)
{
    char  *copy;

    copy = malloc(len != 0 ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);

    return copy;
}


/* Walks all of a value, and gives the sum of what it has seen. */
static size_t
lexer_walk(kube_lexer_t *lx)
{
    bool        plain;
    size_t      n;
    kube_str_t  name, raw;

    n = 1;

    switch (kube_lexer_peek(lx)) {
    case '{':
        assert_true(kube_lexer_enter(lx, '{'));

        while (kube_lexer_member(lx, &name)) {
            n += name.len + lexer_walk(lx);
        }

        break;

    case '[':
        assert_true(kube_lexer_enter(lx, '['));

        while (kube_lexer_element(lx)) {
            n += lexer_walk(lx);
        }

        break;

    case '"':
        assert_false(kube_lexer_enter(lx, '{'));

        if (kube_lexer_string(lx, &raw, &plain)) {
            n += raw.len;
        }

        break;

    default:
        kube_lexer_value(lx, NULL);
    }

    return n;
}


static void
lexer_check_walk(const lexer_case_t *c)
{
    char          *copy;
    kube_str_t     name;
    kube_lexer_t   lx;

    copy = lexer_copy(c->text, strlen(c->text));
    kube_lexer_init(&lx, (kube_str_t) { copy, strlen(c->text) });

    (void) lexer_walk(&lx);
    (void) kube_lexer_end(&lx);

    if ((c->what == NULL) != (lx.what == NULL)
        || (c->what != NULL && strstr(lx.what, c->what) == NULL)
        || (c->what != NULL && (size_t) (lx.p - lx.start) != c->offset))
    {
        fail_msg("%s: %s at %zu", c->text, lx.what ? lx.what : "fine",
                 (size_t) (lx.p - lx.start));
    }

    /* what was wrong stays wrong, and all that follows finds the end */
    if (lx.what != NULL) {
        assert_false(kube_lexer_member(&lx, &name));
        assert_false(kube_lexer_element(&lx));
        assert_int_equal(kube_lexer_peek(&lx), '\0');
        assert_false(kube_lexer_end(&lx));
    }

    free(copy);
}


/* In two pieces, cut at a, each in memory of its own; *n is what was taken. */
static kube_rc_t
lexer_skip_cut(const char *text, size_t len, size_t a, size_t *n)
{
    char               *piece;
    size_t              i;
    kube_rc_t           rc;
    const char         *p;
    kube_lexer_skip_t   skip;
    const size_t        at[3] = { 0, a, len };

    kube_lexer_skip_init(&skip, false);
    rc = KUBE_AGAIN;
    *n = 0;

    for (i = 0; i < 2 && rc == KUBE_AGAIN; i++) {
        piece = lexer_copy(text + at[i], at[i + 1] - at[i]);
        p = piece;

        rc = kube_lexer_skip(&skip, &p, piece + (at[i + 1] - at[i]));
        *n += (size_t) (p - piece);

        free(piece);
    }

    return rc;
}


static void
lexer_skips(void **state)
{
    size_t               i, a, n, len;
    kube_rc_t            rc;
    const char          *text;
    const lexer_case_t  *c;

    (void) state;

    for (i = 0; i < COUNT(lexer_cases); i++) {
        c = &lexer_cases[i];
        text = c->text + strspn(c->text, " ");
        len = strlen(text) - (size_t) (text - c->text);

        for (a = 0; a <= len; a++) {
            rc = lexer_skip_cut(text, len, a, &n);

            if ((int) rc != (int) c->skip) {
                fail_msg("%s cut at %zu: %s", c->text, a, kube_rc_text(rc));
            }

            if (rc == KUBE_OK) {
                assert_int_equal(n, len);
            }
        }
    }
}


static void
lexer_walks(void **state)
{
    size_t  i;

    (void) state;

    for (i = 0; i < COUNT(lexer_cases); i++) {
        lexer_check_walk(&lexer_cases[i]);
    }

    for (i = 0; i < COUNT(lexer_others); i++) {
        lexer_check_walk(&lexer_others[i]);
    }
}


/* A newline in a string, where values are one a line. */
static void
lexer_lines(void **state)
{
    size_t              a;
    kube_rc_t           rc;
    const char         *p;
    kube_lexer_skip_t   skip;
    static const char   text[] = "{\"0123456789\":\n[\"a\",\"bcdefgh\ni\"]}";

    (void) state;

    for (a = 0; a < sizeof(text); a++) {
        kube_lexer_skip_init(&skip, true);
        p = text;
        rc = kube_lexer_skip(&skip, &p, text + a);

        if (rc == KUBE_AGAIN) {
            assert_ptr_equal(p, text + a);
            rc = kube_lexer_skip(&skip, &p, text + sizeof(text) - 1);
        }

        assert_int_equal(rc, KUBE_PROTO);
    }
}


/* The kinds of brackets are known down to the limit; below they are counted. */
static void
lexer_depth(void **state)
{
    char               *text;
    size_t              n, i;
    kube_str_t          s;
    const char         *p;
    kube_lexer_t        lx;
    kube_lexer_skip_t   skip;

    (void) state;

    text = malloc(4 * KUBE_JSON_DEPTH_MAX);
    assert_non_null(text);

    for (n = KUBE_JSON_DEPTH_MAX - 1; n <= KUBE_JSON_DEPTH_MAX + 100; n++) {
        for (i = 0; i < n; i++) {
            text[i] = "[{"[i % 3 == 0];
            text[2 * n - 1 - i] = "]}"[i % 3 == 0];
        }

        s = (kube_str_t) { text, 2 * n };

        kube_lexer_skip_init(&skip, false);
        p = text;
        assert_int_equal(kube_lexer_skip(&skip, &p, text + s.len), KUBE_OK);
        assert_ptr_equal(p, text + s.len);
        assert_int_equal(skip.too_deep, n > KUBE_JSON_DEPTH_MAX);

        kube_lexer_init(&lx, s);
        kube_lexer_value(&lx, NULL);
        assert_int_equal(kube_lexer_end(&lx), n <= KUBE_JSON_DEPTH_MAX);

        if (lx.what != NULL) {
            assert_string_equal(lx.what, "nested too deep");
        }

        /* each bracket knows its fellow */
        for (i = n; i < 2 * n; i += 1 + i % 977) {
            text[i] ^= '}' ^ ']';
            kube_lexer_init(&lx, s);
            kube_lexer_value(&lx, NULL);
            assert_false(kube_lexer_end(&lx));
            text[i] ^= '}' ^ ']';
        }
    }

    free(text);
}


static void
lexer_unescapes(void **state)
{
    char                *raw, *plain;
    size_t               i, len, want, size;
    kube_rc_t            rc;
    const lexer_text_t  *c;

    (void) state;

    for (i = 0; i < COUNT(lexer_texts); i++) {
        c = &lexer_texts[i];
        raw = lexer_copy(c->raw, strlen(c->raw));
        want = (c->plain == NULL) ? SIZE_MAX
               : (c->len != 0) ? c->len : strlen(c->plain);

        /* room for it, and for less */
        for (size = 0; size < 40; size++) {
            plain = malloc(size != 0 ? size : 1);
            assert_non_null(plain);

            rc = kube_lexer_unescape((kube_str_t) { raw, strlen(c->raw) },
                                     plain, size, &len);

            if (rc != (size >= want ? KUBE_OK : KUBE_INVALID)) {
                fail_msg("%s into %zu: %s", c->raw, size, kube_rc_text(rc));
            }

            if (rc == KUBE_OK) {
                assert_int_equal(len, want);
                assert_memory_equal(plain, c->plain, want);
            }

            free(plain);
        }

        free(raw);
    }
}


/* Names with escapes are what they stand for; long ones are none. */
static void
lexer_names(void **state)
{
    kube_str_t    name;
    kube_lexer_t  lx;

    (void) state;

    kube_lexer_init(&lx, KUBE_STR(
        "{\"a\":1,\"\\u0061b\":[2],\"\\x\":3,\"\\n0123456789012345678901234567"
        "890123456789012345678901234567890123456789\":4,\"\xff\":5}"));

    assert_true(kube_lexer_enter(&lx, '{'));

    assert_true(kube_lexer_member(&lx, &name));
    assert_true(kube_str_eq(name, KUBE_STR("a")));
    kube_lexer_value(&lx, &name);
    assert_true(kube_str_eq(name, KUBE_STR("1")));

    assert_true(kube_lexer_member(&lx, &name));
    assert_true(kube_str_eq(name, KUBE_STR("ab")));
    kube_lexer_value(&lx, &name);
    assert_true(kube_str_eq(name, KUBE_STR("[2]")));

    assert_true(kube_lexer_member(&lx, &name));
    assert_int_equal(name.len, 0);
    kube_lexer_value(&lx, NULL);
    assert_true(kube_lexer_member(&lx, &name));
    assert_int_equal(name.len, 0);
    kube_lexer_value(&lx, NULL);
    assert_true(kube_lexer_member(&lx, &name));
    kube_lexer_value(&lx, NULL);

    assert_false(kube_lexer_member(&lx, &name));
    assert_true(kube_lexer_end(&lx));
}


/* Each byte of a small text replaced by each byte, and cut there. */
static void
lexer_mutations(void **state)
{
    char               *text;
    size_t              i, n;
    unsigned            c;
    const char         *p;
    kube_lexer_t        lx;
    kube_lexer_skip_t   skip;
    static const char   sample[] =
        "{\"a\":[1.5e3,true,null,\"\\u00e4\xc3\xa4\"],\"b\":{},\"\\n\":[\"\"]}";

    (void) state;

    n = sizeof(sample) - 1;
    text = lexer_copy(sample, n);

    for (i = 0; i < n; i++) {
        for (c = 0; c < 256; c++) {
            text[i] = (char) c;

            kube_lexer_init(&lx, (kube_str_t) { text, n });
            (void) lexer_walk(&lx);

            /* what can be walked to its end has a structure */
            if (kube_lexer_end(&lx) && (text[0] == '{' || text[0] == '[')) {
                kube_lexer_skip_init(&skip, false);
                p = text;
                assert_int_equal(kube_lexer_skip(&skip, &p, text + n),
                                 KUBE_OK);
            }

            assert_true(lx.p >= text && lx.p <= text + n);
        }

        text[i] = sample[i];

        kube_lexer_init(&lx, (kube_str_t) { text, i });
        (void) lexer_walk(&lx);
        assert_false(kube_lexer_end(&lx));
    }

    free(text);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(lexer_skips),
        cmocka_unit_test(lexer_walks),
        cmocka_unit_test(lexer_lines),
        cmocka_unit_test(lexer_depth),
        cmocka_unit_test(lexer_unescapes),
        cmocka_unit_test(lexer_names),
        cmocka_unit_test(lexer_mutations)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
