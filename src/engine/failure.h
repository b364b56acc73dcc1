/* SPDX-License-Identifier: Apache-2.0 */
/* What a decision becomes when its store cannot decide it: `on_store_error` of each check.
 *
 *   open    admitted, not charged
 *   closed  denied, not charged
 *   local   decided by the local store, all such checks of the decision as one atomic decision, on
 *           one node's part of the limit (limit->local) where it has one, and reported as that
 *
 * Under WEIR_POLICY_ALL the parts are joined without breaking all-or-nothing: when a closed check
 * denies the request, the local part is only peeked at, so that nothing is charged for a request
 * that will not pass. Shadow checks never deny. Checks without a state keep their verdict.
 *
 *   closed (not shadow)   local part   verdict             source
 *   yes                   peeked       denied              closed
 *   no                    denies       denied              local
 *   no                    allows       allowed, charged    local
 *   no                    none         allowed             open
 *
 * Under EACH and QUOTA every check is decided on its own, as at a store; `source` is closed
 * only where the whole is denied.
 *
 * A refund (WEIR_OP_REFUND) is open, whatever its checks say: what it is to give back was charged
 * at the store, and to credit anything here would be a gift. `error` says that nothing was done.
 *
 * An open check is reported as a fresh limit; a closed one as a limit of which nothing remains, to
 * be tried again after WEIR_FAILURE_RETRY_NS: it is unknown when the store will be back, and
 * "never" would be wrong.
 */
#ifndef WEIR_ENGINE_FAILURE_H
#define WEIR_ENGINE_FAILURE_H

#include "store/store.h"

#define WEIR_FAILURE_RETRY_NS UINT64_C(1000000000)

/* Working memory for the local part. */
struct weir_failure {
    struct weir_decision part;
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_outcome outcomes[WEIR_CHECKS_MAX];
    uint8_t place[WEIR_CHECKS_MAX]; /* of each check of the part in the whole */
};

/* Where the local store fails too (it is a state file, and another process on it is stopped), its
 * checks are open.
 *
 * Settles `decision`, which is of a request: fills outcomes, verdict, delay_ns, now_ns, source,
 * error. `local` may be NULL: its checks are then open. */
void weir_failure_settle(struct weir_failure *failure, struct weir_store *local, uint64_t now_ns,
                         struct weir_decision *decision, int error);

#endif
