/* SPDX-License-Identifier: Apache-2.0 */
/* see operate.h */
#include "table/operate.h"

#include "table/owner.h"

static bool has_state(const struct weir_check *check)
{
    return (check->flags & (WEIR_CHECK_UNLIMITED | WEIR_CHECK_ALWAYS_DENY)) == 0;
}

/* In how long the state will be fresh. Errors: as weir_table_look; it may be fresh already. */
static int look(struct weir_table_owner *owner, uint64_t now_ns, const uint64_t hash[2],
                uint64_t *reset_after_ns)
{
    uint64_t fresh_at_ns;
    int err = weir_table_look(owner, hash, &fresh_at_ns);

    if (err == 0 && fresh_at_ns <= now_ns)
        err = WEIR_ERR_NOT_FOUND;
    if (err == 0)
        *reset_after_ns = fresh_at_ns - now_ns;
    return err;
}

void operate(struct weir_table_owner *owner, struct weir_decision *decision)
{
    bool any = false, stuck = false;

    for (uint32_t i = 0; i < decision->count; i++) {
        const struct weir_check *check = &decision->checks[i];
        struct weir_outcome *outcome = &decision->outcomes[i];
        int err;

        *outcome = (struct weir_outcome){.report = {0, 0, 0, 0}, .reported = true};
        if (!has_state(check))
            err = WEIR_ERR_NOT_FOUND;
        else if (decision->op == WEIR_OP_RELEASE)
            err = weir_table_release(owner, check->hash, decision->lease.id);
        else if (decision->op == WEIR_OP_RESET)
            err = weir_table_reset(owner, decision->now_ns, check->hash);
        else
            err = look(owner, decision->now_ns, check->hash, &outcome->report.reset_after_ns);
        outcome->verdict = err == 0 ? WEIR_ALLOWED : WEIR_DENIED;
        any = any || err == 0;
        stuck = stuck || err == WEIR_ERR_BUSY;
    }
    decision->delay_ns = 0;
    if (stuck) {
        owner_fail(decision);
        return;
    }
    decision->verdict = any ? WEIR_ALLOWED : WEIR_DENIED;
}
