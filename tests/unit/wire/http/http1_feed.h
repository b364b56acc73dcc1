/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds requests to wire/http1 whole and in pieces, always against an unmapped page. */
#ifndef HTTP1_FEED_H
#define HTTP1_FEED_H

#include "../unit_wire.h"

#include "http1_text.h"
#include "wire/http/http1.h"

static struct guarded guarded;

static inline int room_open(void **state)
{
    guarded = guarded_new(4 << 20);
    return 0;
}

static inline int room_close(void **state)
{
    guarded_free(&guarded);
    return 0;
}

struct parsed {
    struct weir_http1_parser parser;
    struct weir_http1_request request;
    long taken;
};

static inline void parse_whole(struct parsed *parsed, const char *text, size_t size)
{
    memset(parsed, 0, sizeof *parsed);
    char *data = guarded_put(&guarded, text, size);
    parsed->taken = weir_http1_parse(&parsed->parser, data, size, &parsed->request);
}

/* Feeds text in pieces that end at the given offsets; the buffer moves each time, so that every
 * piece ends at the guard page. */
static inline char *text_in_pieces(const char *text, size_t size, const size_t *ends, size_t count)
{
    struct parsed *parsed = memory_new(sizeof *parsed);
    char *data = guarded.end, *described;
    size_t have = 0;
    for (size_t i = 0; i < count && parsed->taken == 0; i++) {
        size_t more = ends[i] - have;
        memmove(guarded.end - ends[i], data, have);
        data = guarded.end - ends[i];
        memcpy(data + have, text + have, more);
        have += more;
        parsed->taken = weir_http1_parse(&parsed->parser, data, have, &parsed->request);
    }
    described = http1_text(parsed->taken, &parsed->parser, &parsed->request);
    free(parsed);
    return described;
}

/* The text in one piece, in two at every place, and byte by byte: always the same. */
static inline void assert_same_however_split(const char *text, size_t size)
{
    size_t *ends = memory_new((size + 2) * sizeof *ends);
    ends[0] = size;
    char *whole = text_in_pieces(text, size, ends, 1);
    for (size_t at = 0; at <= size; at++) {
        ends[0] = at;
        ends[1] = size;
        char *split = text_in_pieces(text, size, ends, 2);
        assert_string_equal(split, whole);
        free(split);
    }
    for (size_t at = 0; at < size; at++)
        ends[at] = at + 1;
    char *bytewise = text_in_pieces(text, size, ends, size);
    if (size > 0)
        assert_string_equal(bytewise, whole);
    free(bytewise);
    free(whole);
    free(ends);
}

static inline void assert_refused_bytes(const char *text, size_t size, uint16_t status)
{
    struct parsed *parsed = memory_new(sizeof *parsed);
    parse_whole(parsed, text, size);
    if (parsed->taken >= 0 || parsed->parser.status != status) {
        fail_msg("taken %ld, status %u (wanted %u): %.*s", parsed->taken, parsed->parser.status,
                 status, (int)size, text);
    }
    assert_non_null(parsed->parser.problem);
    /* A parser that has refused keeps refusing. */
    assert_int_equal(weir_http1_parse(&parsed->parser, guarded.end - size, size, &parsed->request),
                     parsed->taken);
    free(parsed);
    if (size < 2000)
        assert_same_however_split(text, size);
}

static inline void assert_refused(const char *text, uint16_t status)
{
    assert_refused_bytes(text, strlen(text), status);
}

static inline void assert_accepted(const char *text)
{
    struct parsed *parsed = memory_new(sizeof *parsed);
    parse_whole(parsed, text, strlen(text));
    if (parsed->taken != (long)strlen(text)) {
        fail_msg("taken %ld, %s: %s", parsed->taken,
                 parsed->parser.problem ? parsed->parser.problem : "-", text);
    }
    free(parsed);
    assert_same_however_split(text, strlen(text));
}

#define GET "GET / HTTP/1.1\r\nHost: a\r\n"
#define POST "POST / HTTP/1.1\r\nHost: a\r\n"

#endif
