/* SPDX-License-Identifier: Apache-2.0 */
/* What lines of access logs are made of: words, quoted fields, request lines.
 *
 * Each function takes its field from the cursor, or returns false with the cursor anywhere. Quoted
 * fields are unescaped in place, as Apache and nginx escape them: \" \\ \b \f \n \r \t \v \xHH; any
 * other backslash is literal.
 */
#ifndef WEIR_WIRE_LOG_FIELDS_H
#define WEIR_WIRE_LOG_FIELDS_H

#include "wire/log/record.h"

struct log_cursor {
    char *at, *end;
};

bool log_byte_take(struct log_cursor *cursor, char wanted);

/* A word and the space that ends it. */
bool log_word_take(struct log_cursor *cursor, struct weir_bytes *word);

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
struct weir_bytes log_absent_if_dash(struct weir_bytes field);

#endif
