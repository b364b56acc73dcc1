/* SPDX-License-Identifier: Apache-2.0 */
/* A decision that one node asks another one for, and the answer, as bytes.
 *
 * The message is the argument of the command WEIR.DECIDE, the answer its bulk string. Numbers are
 * little-endian. A state is named by a digest of its limit's name and its key's text, which all
 * nodes make alike; the hash that the table knows it by is made from that by the node that has it.
 * A limit comes with its numbers, so that nodes with different files decide by those of the node
 * that asks.
 *
 *   message  version 1 | op 1 | policy 1 | count 1 | network 4 | charged_at 8 | checks
 *   check    flags 1 | scale 1 | scale kind 1 | floor 2 | algorithm 1 | strict 1 | segments 4
 *            | cost 8 | rate 8 | window 8 | burst 8 | rollover 8 | calendar 8 | digest 16
 *            | size of the name 1 | name
 *   answer   version 1 | verdict 1 | repeated 1 | count 1 | now 8 | outcomes
 *   outcome  verdict 1 | bits 1 | delay 8 | next 8 | charged cost 8 | four words 32
 *
 * An outcome's words are its report, or the cell of its state: both sides make the report of a cell
 * by the same limit, so the answer to a client is the same at either.
 *
 * Threads: pure.
 */
#ifndef WEIR_FEATURE_STICKY_STORE_PEER_MESSAGE_H
#define WEIR_FEATURE_STICKY_STORE_PEER_MESSAGE_H

#include "core/check.h"

#define STICKY_DIGEST 16
#define STICKY_NAME_MAX 255
#define STICKY_CHECK_MAX (11 + 6 * 8 + STICKY_DIGEST + 1 + STICKY_NAME_MAX)
#define STICKY_MESSAGE_MAX (16 + WEIR_CHECKS_MAX * STICKY_CHECK_MAX)
#define STICKY_OUTCOME_SIZE (2 + 7 * 8)
#define STICKY_ANSWER_MAX (12 + WEIR_CHECKS_MAX * STICKY_OUTCOME_SIZE)

/* A check as it was read; the name points into the message. */
struct sticky_check {
    struct weir_limit_spec spec; /* without the bounds of a calendar */
    unsigned char digest[STICKY_DIGEST];
    struct weir_bytes name; /* of the limit's state; size 0: it has none */
    struct weir_limit made; /* room for a limit that only this decision has; see sticky.h */
};

/* Whether a decision can be sent: its operation, and that every check has a limit and no lease. */
bool sticky_message_fits(const struct weir_decision *decision);

/* Writes a decision for which that holds; `digests` has one for each check. `out` has room for
 * STICKY_MESSAGE_MAX bytes. Returns the size. */
size_t sticky_message_write(char *out, const struct weir_decision *decision,
                            const unsigned char (*digests)[STICKY_DIGEST]);

/* Reads a message: of `decision`, whose checks and outcomes have room for WEIR_CHECKS_MAX, all but
 * the limits and hashes of its checks. Errors: WEIR_ERR_SYNTAX (no such message, or of another
 * version). */
int sticky_message_read(struct weir_bytes message, struct weir_decision *decision,
                        struct sticky_check checks[WEIR_CHECKS_MAX])
    __attribute__((warn_unused_result));

/* Writes the answer to a decision that was made. `out` has room for STICKY_ANSWER_MAX bytes.
 * Returns the size. */
size_t sticky_answer_write(char *out, const struct weir_decision *decision);

/* Enters an answer into the decision that it is for. Errors: WEIR_ERR_SYNTAX: it is no answer to
 * it, and the decision is unchanged. */
int sticky_answer_read(struct weir_bytes answer, struct weir_decision *decision)
    __attribute__((warn_unused_result));

#endif
