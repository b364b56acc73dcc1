/* SPDX-License-Identifier: Apache-2.0 */
/* see reject.h */
#include "rules/actions/reject.h"

#include "rules/compiled.h"

#define NS_PER_S UINT64_C(1000000000)

const struct weir_reject *weir_rules_reject(const struct weir_rules *rules, uint32_t rule)
{
    return rules->rules[rule].reject;
}

size_t weir_reject_body_write(const struct weir_answer *answer, char *out)
{
    const struct weir_answer_limit *limit = &answer->limits[answer->denied_by];
    uint64_t retry_ns = answer->retry_after_ns;
    struct weir_template_values values = {
        .retry_after_s = retry_ns / NS_PER_S + (retry_ns % NS_PER_S != 0),
        .limit = limit->report.limit,
        .remaining = limit->report.remaining,
        .reason = limit->name,
    };
    if (retry_ns == WEIR_NEVER)
        values.retry_after_s = UINT64_MAX;
    return weir_template_write(&answer->reject->body, &values, out);
}
