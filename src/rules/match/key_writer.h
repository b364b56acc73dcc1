/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the texts of keys: plain bytes, and values with what could be read as syntax
 * percent-encoded ("%2C"), so that different keys have different texts.
 *
 * Two sets of bytes are syntax, because two forms of text exist. Both name states in Redis, so
 * neither may change: nodes of different versions share the states while they are upgraded.
 *
 *   of limits    user=alice,client.ip=2001:db8::/64       the comma separates attributes. Labels
 *                come from the rules file, so a value may have '=' and ':' (addresses do)
 *   of Envoy     fixed_window-60s:domain|key=v,key=~p     domain, keys and values all come from the
 *                request, so '=', '|', '~' and ':' are syntax too
 *
 * In both, '%' and every byte that is not graphic ASCII is encoded.
 */
#ifndef WEIR_RULES_MATCH_KEY_WRITER_H
#define WEIR_RULES_MATCH_KEY_WRITER_H

#include <stdbool.h>

#include <weir/bytes.h>

/* OF_LONG: of a limit, of a value that may be mistaken for one that ends in "~" and a hash. */
enum rules_key_syntax { RULES_KEY_OF_LIMIT, RULES_KEY_OF_ENVOY, RULES_KEY_OF_LONG };

/* Text is written from `end` up to `limit`; `full` is set when something did not fit. Bytes before
 * `limit` may be cut anywhere then. */
struct rules_key_writer {
    char *end, *limit;
    bool full;
};

void rules_key_put(struct rules_key_writer *writer, const char *bytes, size_t size);
void rules_key_put_encoded(struct rules_key_writer *writer, struct weir_bytes value,
                           enum rules_key_syntax syntax);

/* Encodes the byte, syntax or not. */
void rules_key_put_byte(struct rules_key_writer *writer, unsigned char byte);

#endif
