/* SPDX-License-Identifier: Apache-2.0 */
/* see reject.h */
#include "rules/actions/reject.h"

#include "rules/compiled.h"

#define NS_PER_S UINT64_C(1000000000)

const struct weir_reject *weir_rules_reject(const struct weir_rules *rules, uint32_t rule)
{
    return rules->rules[rule].reject;
}

const struct weir_reject *weir_rules_reject_all(const struct weir_rules *rules)
{
    return rules->reject;
}

const struct weir_reject *weir_rules_reject_of(const struct weir_rules *rules, uint32_t rule)
{
    const struct weir_reject *own = weir_rules_reject(rules, rule);
    return own ? own : rules->reject;
}

/* Why a request is denied where no limit is to blame. */
static struct weir_bytes cause(const struct weir_answer *answer)
{
    static const char store[] = "store";
    if (answer->standing.refused)
        return weir_answer_refuser(answer->standing.unknown);
    return (struct weir_bytes){store, sizeof store - 1};
}

void weir_reject_values(const struct weir_answer *answer, struct weir_template_values *values)
{
    uint64_t retry_ns = answer->retry_after_ns;
    bool blamed = answer->denied_by >= 0;
    const struct weir_answer_limit *limit = blamed ? &answer->limits[answer->denied_by] : NULL;
    bool known = blamed && answer->source != WEIR_SOURCE_CLOSED;
    *values = (struct weir_template_values){
        .retry_after_s = retry_ns / NS_PER_S + (retry_ns % NS_PER_S != 0),
        .limit = known ? limit->report.limit : UINT64_MAX,
        .remaining = known ? limit->report.remaining : UINT64_MAX,
        .reason = blamed ? limit->name : cause(answer),
    };
    if (retry_ns == WEIR_NEVER)
        values->retry_after_s = UINT64_MAX;
}

size_t weir_reject_body_write(const struct weir_answer *answer, char *out)
{
    struct weir_template_values values;
    weir_reject_values(answer, &values);
    return weir_template_write(&answer->reject->body, &values, out);
}
