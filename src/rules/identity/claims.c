/* SPDX-License-Identifier: Apache-2.0 */
/* The claims of a request's token; see match/evaluate.h and jwt.h */
#include <string.h>

#include "rules/identity/tokens.h"
#include "rules/match/evaluate.h"

static struct weir_bytes token_at(const struct rules_jwt *jwt, const struct weir_request *request,
                                  uint8_t source)
{
    uint16_t attribute = jwt->sources[source];
    struct weir_bytes value = {NULL, 0};
    if (attribute < request->count)
        value = request->values[attribute];
    return rules_jwt_cut(jwt, source, value);
}

static bool is_valid(enum weir_token result)
{
    return result == WEIR_TOKEN_VALID || result == WEIR_TOKEN_CACHED;
}

struct weir_bytes rules_scratch_copy(struct weir_scratch *scratch, struct weir_bytes text)
{
    char *copy = scratch->bytes + scratch->used;
    if (text.data == NULL || text.size > sizeof(scratch->bytes) - scratch->used)
        return (struct weir_bytes){NULL, 0};
    memcpy(copy, text.data, text.size);
    scratch->used += (uint32_t)text.size;
    return (struct weir_bytes){copy, text.size};
}

struct weir_bytes rules_claim(struct rules_evaluation *evaluation, uint8_t claim)
{
    const struct rules_jwt *jwt = evaluation->rules->jwt;
    const struct weir_request *request = evaluation->request;
    if (evaluation->claims_known)
        return evaluation->claims.values[claim];
    enum weir_token result = WEIR_TOKEN_MALFORMED;
    for (uint8_t i = 0; i < jwt->source_count && !is_valid(result); i++) {
        struct weir_bytes token = token_at(jwt, request, i);
        if (token.data != NULL) {
            result = rules_tokens_verify(request->tokens, jwt, token, request->now_ns,
                                         &evaluation->claims);
        }
    }
    if (!is_valid(result))
        memset(evaluation->claims.values, 0, jwt->claim_count * sizeof(struct weir_bytes));
    evaluation->claims_known = true;
    return evaluation->claims.values[claim];
}

void rules_claims_keep(struct rules_evaluation *evaluation)
{
    const struct rules_jwt *jwt = evaluation->rules->jwt;
    struct weir_scratch *scratch = evaluation->scratch;
    for (uint8_t i = 0; i < jwt->claim_count; i++) {
        struct weir_bytes value = rules_claim(evaluation, i);
        evaluation->claims.values[i] = rules_scratch_copy(scratch, value);
    }
}

const char *weir_rules_token_state(const struct weir_rules *rules,
                                   const struct weir_request *request)
{
    const char *name = NULL;
    struct rules_claims claims;
    for (uint8_t i = 0; rules->jwt != NULL && i < rules->jwt->source_count; i++) {
        struct weir_bytes token = token_at(rules->jwt, request, i);
        if (token.data == NULL)
            continue;
        enum weir_token result = rules_jwt_verify(rules->jwt, token, request->now_ns, &claims);
        name = weir_token_names[result];
        if (result == WEIR_TOKEN_VALID)
            break;
    }
    return name;
}
