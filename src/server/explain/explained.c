/* SPDX-License-Identifier: Apache-2.0 */
/* see explained.h */
#include "server/explain/explained.h"

#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/http/check_request.h"

static int look_up(struct weir_directory *directory, const struct weir_rules *rules,
                   const uint8_t digest[WEIR_DIGEST_BYTES], struct weir_caller *caller)
{
    struct weir_looked_up *looked_up = (struct weir_looked_up *)directory;
    uint32_t i = 0;
    while (i < looked_up->count && memcmp(looked_up->digests[i], digest, WEIR_DIGEST_BYTES) != 0)
        i++;
    if (i == looked_up->count && i < WEIR_LOOKED_UP_MAX)
        memcpy(looked_up->digests[looked_up->count++], digest, WEIR_DIGEST_BYTES);
    return 0;
}

int weir_explained_open(struct weir_explained **out, struct weir_rules *rules,
                        const struct weir_check_json *given, struct weir_reason *reason)
{
    static const struct weir_directory_ops ops = {.find = look_up}; /* it is never PENDING */
    struct weir_explained *explained = calloc(1, sizeof *explained);
    *out = explained;
    if (!explained)
        return WEIR_ERR_MEMORY;
    explained->rules = weir_rules_ref(rules);
    explained->given = given;
    explained->looked_up.base.ops = &ops;
    explained->explanations =
        calloc((size_t)weir_rules_count(rules) + 1, sizeof *explained->explanations);
    if (!explained->explanations)
        return WEIR_ERR_MEMORY;
    return weir_check_request_fill(&explained->request, rules, given, WEIR_TRUST_RECORDED,
                                   (struct weir_room){explained->joined, sizeof explained->joined},
                                   reason);
}

void weir_explained_close(struct weir_explained *explained)
{
    if (!explained)
        return;
    weir_rules_unref(explained->rules);
    free(explained->explanations);
    free(explained);
}

/* NULL: the rules keep no callers in Redis. */
static struct weir_directory *directory_of(struct weir_explained *explained,
                                           const struct weir_explained_with *with)
{
    if (!weir_rules_settings(explained->rules)->identities.redis.url)
        return NULL;
    return with->directory ? with->directory : &explained->looked_up.base;
}

int weir_explained_match(struct weir_explained *explained, const struct weir_explained_with *with,
                         struct weir_reason *reason)
{
    struct weir_moment moment;
    weir_rules_moment(explained->rules, with->now_ns, &moment);
    explained->query = (struct weir_rules_query){.rules = explained->rules,
                                                 .request = &explained->request,
                                                 .secret = with->secret,
                                                 .scratch = &explained->scratch,
                                                 .now_ns = with->now_ns,
                                                 .resting = moment.resting,
                                                 .directory = directory_of(explained, with),
                                                 .map = with->map,
                                                 .standing = &explained->caller,
                                                 .refuses = true,
                                                 .score = &explained->score,
                                                 .identity = &explained->identity,
                                                 .reason = reason};
    int count = weir_rules_explain(&explained->query, explained->checks, explained->explanations);
    explained->query.reason = NULL;
    int error =
        count < 0 ? count : weir_explain_find_strikes(&explained->strikes, &explained->query);
    if (error == 0)
        weir_engine_answer(explained->decision, &explained->answer,
                           (char[WEIR_LEASE_TOKEN_MAX]){0}); /* a peek gets no lease */
    return error < 0 ? error : count;
}

bool weir_explained_denied(const struct weir_explained *explained)
{
    return (explained->query.map && explained->caller.refused) ||
           explained->decision->verdict != WEIR_ALLOWED;
}

uint16_t weir_explained_find(const struct weir_explained *explained, uint32_t rule)
{
    const struct weir_decision *decision = explained->decision;
    for (uint16_t i = 0; i < weir_decision_limits(decision); i++)
        if (decision->checks[i].rule == rule)
            return i;
    return UINT16_MAX;
}

bool weir_explained_applies(const struct weir_explained *explained, uint32_t rule)
{
    return explained->explanations[rule].check >= 0 ||
           weir_explained_find(explained, rule) != UINT16_MAX;
}

bool weir_explained_has_strikes(const struct weir_explained *explained)
{
    return explained->query.map && weir_rules_penalty_count(explained->rules) > 0;
}
