/* SPDX-License-Identifier: Apache-2.0 */
/* What lines of access logs are made of: words, quoted fields, request lines.
 *
 * Each function takes its field from the cursor, or returns false with the cursor anywhere. Quoted
 * fields are unescaped in place, as Apache and nginx escape them: \" \\ \b \f \n \r \t \v \xHH; any
 * other backslash is literal.
 */
#ifndef WEIR_WIRE_LOG_FIELDS_H
#define WEIR_WIRE_LOG_FIELDS_H

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "wire/log/record.h"

struct log_cursor {
    char *at, *end;
};

static inline bool log_byte_take(struct log_cursor *cursor, char wanted)
{
    if (cursor->at == cursor->end || *cursor->at != wanted)
        return false;
    cursor->at++;
    return true;
}

/* The first byte that is one of two; `end`: there is none. Not memchr: fields are short, and most
 * end among the first 16 bytes. */
static inline char *log_find_either(char *at, char *end, char one, char other)
{
#ifdef __SSE2__
    const __m128i ones = _mm_set1_epi8(one), others = _mm_set1_epi8(other);
    for (; end - at >= 16; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        int found = _mm_movemask_epi8(
            _mm_or_si128(_mm_cmpeq_epi8(bytes, ones), _mm_cmpeq_epi8(bytes, others)));
        if (found != 0)
            return at + __builtin_ctz((unsigned)found);
    }
#endif
    while (at < end && *at != one && *at != other)
        at++;
    return at;
}

static inline char *log_find(char *at, char *end, char wanted)
{
    return log_find_either(at, end, wanted, wanted);
}

/* A word and the space that ends it. */
static inline bool log_word_take(struct log_cursor *cursor, struct weir_bytes *word)
{
    char *space = log_find(cursor->at, cursor->end, ' ');
    if (space == cursor->end || space == cursor->at)
        return false;
    *word = (struct weir_bytes){cursor->at, (size_t)(space - cursor->at)};
    cursor->at = space + 1;
    return true;
}

/* A word, or a list of words with a comma behind each but the last ("a, b"), and a space. */
bool log_list_take(struct log_cursor *cursor, struct weir_bytes *list);

bool log_quoted_take(struct log_cursor *cursor, struct weir_bytes *field);

/* A number, or "-", which is 0; it ends before a space or at the end, which stay. */
bool log_number_take(struct log_cursor *cursor, uint64_t *number);

/* METHOD SP target [SP HTTP/x]. A target may hold spaces, as servers log what they got; of an
 * absolute one (http://host/path) the host becomes the record's. What is no request line sets no
 * field. */
void log_request_split(struct weir_log_record *record, struct weir_bytes request);

/* Nothing for "-". */
static inline struct weir_bytes log_absent_if_dash(struct weir_bytes field)
{
    return field.size == 1 && field.data[0] == '-' ? (struct weir_bytes){NULL, 0} : field;
}

#endif
