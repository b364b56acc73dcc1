/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of limits: a tuple that is hashed, and a text that people read
 *
 * The tuple names a state. Every piece says how long it is or has a fixed size, so two different
 * tuples are never the same bytes:
 *
 *   name      size (1) | bytes                      the limit
 *   then for each attribute of the key
 *   TEXT      1 | size (2) | bytes                  up to TEXT_MAX bytes
 *   LONG      2 | size (4) | hash of it             longer: hashed, never cut
 *   ADDRESS   3 | family (1) | prefix length (1) | its 4 or 16 bytes
 *   MISSING   4                                     on_missing: shared
 *   and + i x INSTEAD where the attribute i of on_missing (from 1) takes its place, so that a
 *   session "bob" is not the user "bob"
 *
 * The hash of a long value is SipHash under the node's secret (16 bytes): fast, and nobody outside
 * finds two values of one hash. Where nodes share a store it is SHA-256 (32 bytes): all nodes have
 * to find the same. Then the text names the state too, so what is hashed in it is SHA-256 as well.
 *
 * The text is for logs, /top and remote stores: "user=alice,client.ip=2001:db8::/64", "user=-"
 * for a missing value, "user=ip:192.0.2.1" for a user that is an address,
 * "header.x-api-key=sha256:…" for a secret. What could be mistaken for syntax is percent-encoded,
 * so different tuples have different texts too (of secrets up to collisions of 64 bits, 128
 * where nodes share a store). Of a LONG value the text has the first 96 bytes, "~" and the first
 * digits of its SHA-256; all of it where nodes share a store, since their states have these names.
 * Texts of WEIR_KEY_TEXT_MAX bytes or more end in "~" and a hash of the tuple: the state's, or half
 * a SHA-256. The text is written from the tuple.
 *
 * Where the table is the store, only denials, warnings and the like show the text. Then a query may
 * ask for the tuple in its place (keep_tuples), and code that needs the text writes it:
 * weir_rules_key_text. In the tuple that is kept, a LONG piece is
 *   TEXT      1 | size (2) | bytes                  where all of it has room
 *   HASHED    5 | size (1) | SHA-256 | id (16) | bytes   else its first bytes, its hash, and the id
 *                                                   that standing knows it by
 *
 * The tag is a hash of the tuple's pieces that `hash_tag` names, under a secret that everyone
 * knows: it chooses a server and tells no states apart.
 */
#ifndef WEIR_RULES_MATCH_KEY_H
#define WEIR_RULES_MATCH_KEY_H

#include "rules/match/evaluate.h"

#define RULES_PIECE_HASHED_HEAD (2 + WEIR_DIGEST_BYTES + 16)

/* What a piece of a tuple begins with. */
enum rules_piece {
    RULES_PIECE_TEXT = 1,
    RULES_PIECE_LONG,
    RULES_PIECE_ADDRESS,
    RULES_PIECE_MISSING,
    RULES_PIECE_HASHED,         /* in a tuple that is kept */
    RULES_PIECE_INSTEAD = 0x10, /* times the number of the attribute in on_missing, from 1 */
};
_Static_assert(RULES_INSTEAD_MAX *RULES_PIECE_INSTEAD < 256, "a byte says what a piece is");

static inline uint8_t rules_piece_kind(uint8_t first)
{
    return first % RULES_PIECE_INSTEAD;
}

/* What has the value of a piece: the part of the key, or that which takes its place. */
static inline const struct rules_key_part *
rules_piece_part(const struct rules_rule *rule, const struct rules_key_part *part, uint8_t first)
{
    uint8_t number = first / RULES_PIECE_INSTEAD;
    return number > 0 ? &rule->instead[number - 1] : part;
}

/* Fills hash, key and flags of a check; as above. Returns 0, or RULES_KEY_MISSING: an attribute of
 * the key is missing, so that the limit does not apply. Errors: WEIR_ERR_TOO_LARGE (scratch is
 * full). */
#define RULES_KEY_MISSING 1
int rules_key_build(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                    struct weir_check *check);

/* The hash alone, without its text. Returns 0 or RULES_KEY_MISSING. */
int rules_key_hash(struct rules_evaluation *evaluation, const struct rules_rule *rule,
                   uint64_t hash[2]);

/* The text of the key of a check that has the tuple, by its rule; written into `room`. */
struct weir_bytes rules_key_text(const struct weir_rules *rules, const struct rules_rule *rule,
                                 const struct weir_check *check, char room[WEIR_KEY_TEXT_MAX]);

/* Sets keeps_tuple and key_at_hand of a rule, once all of the file is loaded. `keeps_tuple`: code
 * that needs the text of a key knows this rule. */
void rules_key_prepare(const struct weir_rules *rules, struct rules_rule *rule, bool keeps_tuple);

/* How a secret is shown: "sha256:" and 16 digits. Where its text names a state that nodes share,
 * 32: nobody finds two of one text. Returns the text's size. */
#define RULES_SECRET_TEXT 23
#define RULES_SECRET_TEXT_SHARED 39
size_t rules_secret_text(struct weir_bytes value, bool shared, char *text);

/* "2001:db8::/64"; without the length where it is all of the address. Returns the size; writes a
 * NUL. */
size_t rules_address_text(const struct weir_address *address, uint8_t bits,
                          char text[WEIR_ADDRESS_TEXT_MAX]);

#endif
