/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of reservations: what a settlement has to know, and a client keeps for it.
 *
 * base64url of
 *   byte 0      version << 4 | place (enum weir_lease_token_place)
 *   id, charged at, end of life, estimate (8 each, big-endian), number of limits (1)
 *   network of the client (4; weir_address_network)
 *   for each    mark of the limit (16), its place in the rules and, as the highest bit, whether its
 *               key says that network (4), hash of the key (16), cost of one unit (8),
 *               scale (1; core/scale.h) with its kind as the highest bit; REMOTE
 *               also when it was charged by its server's time (8), the tag (8), size (2) and text
 *               of the key
 *   with bit 1 of the version also whose request it is (8; caller.h)
 *   with bit 0 of the version also the number of strikes that it may be (1) and each of them
 *               (strike_token.h); the version is 4 without either
 *   MAC         16: SipHash with a key derived from the secret of where the states are
 *
 * Threads: pure.
 */
#ifndef WEIR_FEATURE_RESERVE_ENGINE_RESERVATION_TOKEN_H
#define WEIR_FEATURE_RESERVE_ENGINE_RESERVATION_TOKEN_H

#include "core/text/base64url.h"
#include "engine/token/lease_token.h"
#include "engine/token/strike_token.h"
#include "rules/charge/settle.h"

/* One limit of a table takes 99 bytes, 31 take 1,449; the caller takes 8 more. Longer ones are
 * refused. */
#define WEIR_RESERVATION_BYTES_MAX 2048
/* Of those, the head and the MAC; and of a limit, without the text of its key. */
#define WEIR_RESERVATION_FIXED_BYTES 62
#define WEIR_RESERVATION_LIMIT_BYTES 63
#define WEIR_RESERVATION_TEXT_MAX WEIR_BASE64URL_SIZE(WEIR_RESERVATION_BYTES_MAX)

/* One limit that was charged. */
struct weir_reserved {
    struct weir_limit_mark mark;
    uint32_t rule;
    bool network;              /* WEIR_CHECK_NETWORK */
    uint8_t scale, scale_kind; /* as in struct weir_check: it is settled by the same weight */
    bool scale_alone;
    uint64_t hash[2], unit;      /* unit: what a request of cost 1 takes */
    uint64_t charged_at_ns, tag; /* REMOTE */
    struct weir_bytes key;       /* REMOTE */
};

struct weir_reservation {
    uint64_t id, charged_at_ns, ends_at_ns, estimate;
    uint32_t network; /* weir_decision.network: a debit counts in overflow where the charge did */
    uint64_t caller;  /* weir_decision_caller */
    uint16_t count;
    uint8_t place;                               /* enum weir_lease_token_place */
    struct weir_reserved parts[WEIR_CHECKS_MAX]; /* at most WEIR_CHECKS_MAX - 1: and the record */
    struct weir_reserved_strikes strikes;
};

/* Writes a token; `text` has WEIR_RESERVATION_TEXT_MAX bytes. Returns its length. Errors:
 * WEIR_ERR_TOO_LARGE (the keys are too long together). */
long weir_reservation_write(const struct weir_reservation *reservation, const uint64_t secret[2],
                            char *text) __attribute__((warn_unused_result));

/* Reads a token into `bytes` (WEIR_RESERVATION_BYTES_MAX), where the keys then stand. Returns their
 * number. `secret` NULL: the token never left this process. Errors: WEIR_ERR_SYNTAX (no token that
 * this secret has signed). */
long weir_reservation_read(struct weir_reservation *reservation, const uint64_t secret[2],
                           struct weir_bytes text, unsigned char *bytes)
    __attribute__((warn_unused_result));

/* Unpacks the bytes of a token that was read before. */
void weir_reservation_unpack(struct weir_reservation *reservation, const unsigned char *bytes);

#endif
