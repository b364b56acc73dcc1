/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of a key or a caller (core/text/shown.h), as JSON:
 *
 *   {"kind":"user","value":"ann"}                      the real value
 *   {"kind":"client.ip","value":"192.0.2.1","as":"user"}   an address in the place of a user
 *   {"kind":"user","value":null}                       the request had none
 *   {"kind":"user","encoded":"%F0ab"}                  the same, of one that is not UTF-8
 *   {"kind":"header.user-agent","begins":"Mozilla/5.0 (…","sha256":"…"}   a long one; without
 *                                                      `sha256` where only that is known
 *   {"kind":"header.x-api-key","sha256":"…"}           a secret
 *   {"more":true}                                      further values found no room
 *
 * Threads: plain functions.
 */
#ifndef WEIR_FEATURE_USE_SERVER_SHOWN_JSON_H
#define WEIR_FEATURE_USE_SERVER_SHOWN_JSON_H

#include <jansson.h>

#include "core/text/shown.h"

/* The array; NULL: no memory. */
json_t *weir_shown_json(struct weir_bytes packed);
/* The text for people, which is always UTF-8. */
json_t *weir_shown_text_json(struct weir_bytes packed);

/* Reads such an array, whatever it has; what cannot be read is left out. */
void weir_shown_read(struct weir_shown_list *list, const json_t *array);

#endif
