/* see operate.h */
#include "table/operate.h"

#include "table/owner.h"

static bool has_state(const struct weir_check *check)
{
    return (check->flags & (WEIR_CHECK_UNLIMITED | WEIR_CHECK_ALWAYS_DENY)) == 0;
}

/* Returns whether the state is not fresh, and in how long it will be. */
static bool look(struct weir_table_owner *owner, uint64_t now_ns, const uint64_t hash[2],
                 uint64_t *reset_after_ns)
{
    uint64_t fresh_at_ns;

    if (weir_table_look(owner, hash, &fresh_at_ns) != 0 || fresh_at_ns <= now_ns)
        return false;
    *reset_after_ns = fresh_at_ns - now_ns;
    return true;
}

void operate(struct weir_table_owner *owner, struct weir_decision *decision)
{
    bool any = false;

    for (uint32_t i = 0; i < decision->count; i++) {
        const struct weir_check *check = &decision->checks[i];
        struct weir_outcome *outcome = &decision->outcomes[i];
        bool found;

        *outcome = (struct weir_outcome){.report = {0, 0, 0, 0}, .reported = true};
        if (!has_state(check))
            found = false;
        else if (decision->op == WEIR_OP_RELEASE)
            found = weir_table_release(owner, check->hash, decision->lease.id) == 0;
        else if (decision->op == WEIR_OP_RESET)
            found = weir_table_reset(owner, decision->now_ns, check->hash) == 0;
        else
            found = look(owner, decision->now_ns, check->hash, &outcome->report.reset_after_ns);
        outcome->verdict = found ? WEIR_ALLOWED : WEIR_DENIED;
        any = any || found;
    }
    decision->delay_ns = 0;
    decision->verdict = any ? WEIR_ALLOWED : WEIR_DENIED;
}
