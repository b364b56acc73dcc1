/* SPDX-License-Identifier: Apache-2.0 */
/* JSON strings (RFC 8259 section 7), written. */
#ifndef WEIR_WIRE_JSON_STRING_H
#define WEIR_WIRE_JSON_STRING_H

#include <stddef.h>

/* The most that a string of `size` bytes becomes. */
#define WEIR_JSON_STRING_MAX(size) (6 * (size) + 2)

/* Writes `text` as a JSON string with its quotes; each byte that is no UTF-8 becomes U+FFFD.
 * Returns the length, at most WEIR_JSON_STRING_MAX(size). */
size_t weir_json_string_write(const char *text, size_t size, char *out);

#endif
