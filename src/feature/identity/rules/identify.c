/* SPDX-License-Identifier: Apache-2.0 */
/* see identify.h */
#include "feature/identity/rules/identify.h"

#include <string.h>

#include "core/bytes.h"
#include "core/text/credential.h"
#include "feature/identity/rules/tokens.h"
#include "feature/standing/rules/match.h"

/* --- Claims of the token ---------------------------------------------------------------------- */

static struct weir_bytes token_at(const struct weir_rules *rules,
                                  const struct weir_request *request, uint8_t source)
{
    const struct rules_jwt *jwt = rules->jwt;
    return rules_jwt_cut(jwt, source, rules_supplied_plain(rules, request, jwt->sources[source]));
}

static bool is_valid(enum weir_token result)
{
    return result == WEIR_TOKEN_VALID || result == WEIR_TOKEN_CACHED;
}

/* A copy in scratch; data == NULL: nothing to copy, or no room. */
static struct weir_bytes scratch_copy(struct weir_scratch *scratch, struct weir_bytes text)
{
    char *copy = scratch->bytes + scratch->used;
    if (!text.data || text.size > sizeof(scratch->bytes) - scratch->used)
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
        struct weir_bytes token = token_at(evaluation->rules, request, i);
        if (token.data) {
            result = rules_tokens_verify(evaluation->query->tokens, jwt, token,
                                         evaluation->query->now_ns, &evaluation->claims);
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
        evaluation->claims.values[i] = scratch_copy(scratch, value);
    }
}

const char *weir_rules_token_state(const struct weir_rules *rules,
                                   const struct weir_request *request, uint64_t now_ns)
{
    const char *name = NULL;
    struct rules_claims claims;
    for (uint8_t i = 0; rules->jwt && i < rules->jwt->source_count; i++) {
        struct weir_bytes token = token_at(rules, request, i);
        if (!token.data)
            continue;
        enum weir_token result = rules_jwt_verify(rules->jwt, token, now_ns, &claims);
        name = weir_token_names[result];
        if (result == WEIR_TOKEN_VALID)
            break;
    }
    return name;
}

/* --- Who the caller is ------------------------------------------------------------------------ */

static bool from_address(struct rules_evaluation *evaluation, const struct rules_identify *source)
{
    const struct weir_address *client = evaluation->client;
    struct weir_scratch *scratch = evaluation->scratch;
    if (client->family == 0 || sizeof(scratch->bytes) - scratch->used < WEIR_ADDRESS_TEXT_MAX + 4)
        return false;
    evaluation->user_is_address = true;
    evaluation->user_bits = client->family == 6 ? source->bits6 : source->bits4;
    evaluation->user_address = *client;
    weir_address_mask(&evaluation->user_address, evaluation->user_bits);
    char *text = scratch->bytes + scratch->used;
    size_t size = weir_address_format(&evaluation->user_address, text);
    scratch->used += (uint32_t)size;
    evaluation->identity.user = (struct weir_bytes){text, size};
    return true;
}

static void use_caller(struct rules_evaluation *evaluation, const struct weir_caller *caller)
{
    evaluation->identity.user = caller->user;
    evaluation->identity.org = caller->org;
    evaluation->overrides = caller->overrides;
    evaluation->override_count = caller->override_count;
}

/* A plan that the file does not know is matched as it is, and limited as the default. */
static void use_plan(struct rules_evaluation *evaluation, struct weir_bytes name)
{
    evaluation->identity.plan = name;
    evaluation->plan = rules_plan_find(evaluation->rules, name);
}

/* In the keys file, then in the directory of callers that Redis has. */
static bool find_key(struct rules_evaluation *evaluation, struct weir_bytes key)
{
    struct weir_directory *directory = evaluation->query->directory;
    struct weir_caller caller;
    uint8_t digest[WEIR_DIGEST_BYTES];
    rules_sha256(key, digest);
    if (rules_keys_find(&evaluation->rules->keys, digest, &caller, &evaluation->plan)) {
        use_caller(evaluation, &caller);
        return true;
    }
    int found = directory ? directory->ops->find(directory, evaluation->rules, digest, &caller) : 0;
    if (found > 0) {
        use_caller(evaluation, &caller);
        if (caller.plan.data)
            use_plan(evaluation, caller.plan);
    }
    evaluation->error = found < 0 ? found : 0;
    evaluation->unanswered |=
        directory ? directory->guessed : evaluation->rules->settings.identities.redis.url != NULL;
    return found > 0;
}

/* A value of Authorization: in its canonical form; as it is written, which older files may list;
 * and what comes behind the scheme alone. */
static bool find_credential(struct rules_evaluation *evaluation, struct weir_bytes value)
{
    struct weir_scratch *scratch = evaluation->scratch;
    struct weir_credential credential;
    char *room = scratch->bytes + scratch->used;
    weir_credential_read(&credential, value);
    if (sizeof(scratch->bytes) - scratch->used < value.size)
        return find_key(evaluation, value);
    struct weir_bytes form = {room, weir_credential_write(&credential, room)};
    return find_key(evaluation, form) ||
           (evaluation->error == 0 && !weir_bytes_equal(form, value) &&
            find_key(evaluation, value)) ||
           (evaluation->error == 0 && credential.scheme.size > 0 &&
            find_key(evaluation, credential.token));
}

static bool from_key(struct rules_evaluation *evaluation, const struct rules_identify *source)
{
    struct weir_bytes key = rules_supplied(evaluation, source->attribute);
    if (!key.data)
        return false;
    evaluation->presented |= key.size > 0;
    return source->credential ? find_credential(evaluation, key) : find_key(evaluation, key);
}

/* A claim that says who it is, as long as a decision needs it; data == NULL: none, or too long. */
static struct weir_bytes identity_claim(struct rules_evaluation *evaluation, uint8_t claim,
                                        size_t most)
{
    struct weir_bytes none = {NULL, 0};
    struct weir_bytes value = claim != RULES_CLAIM_NONE ? rules_claim(evaluation, claim) : none;
    bool good = value.size > 0 && value.size <= most;
    return good ? scratch_copy(evaluation->scratch, value) : none;
}

/* By the claims of a valid token. */
static bool from_token(struct rules_evaluation *evaluation)
{
    const struct rules_jwt *jwt = evaluation->rules->jwt;
    for (uint8_t i = 0; i < jwt->source_count; i++)
        evaluation->presented |= token_at(evaluation->rules, evaluation->request, i).size > 0;
    struct weir_bytes user = identity_claim(evaluation, jwt->user, WEIR_IDENTITY_MAX);
    if (!user.data)
        return false;
    struct weir_bytes plan = identity_claim(evaluation, jwt->plan, RULES_NAME_MAX);
    evaluation->identity.user = user;
    evaluation->identity.org = identity_claim(evaluation, jwt->org, WEIR_IDENTITY_MAX);
    if (plan.data)
        use_plan(evaluation, plan);
    return true;
}

static bool identify_by(struct rules_evaluation *evaluation, const struct rules_identify *source)
{
    switch (source->kind) {
    case RULES_BY_ADDRESS:
        return from_address(evaluation, source);
    case RULES_BY_TOKEN:
        return from_token(evaluation);
    default:
        return from_key(evaluation, source);
    }
}

/* What a trusted front end says of the caller goes before what was found. Overrides are of who was
 * found, and so do not count for another user. */
static void use_request(struct rules_evaluation *evaluation)
{
    const struct weir_request *request = evaluation->request;
    struct weir_identity *identity = &evaluation->identity;
    if (request->count > WEIR_ATTR_USER && request->values[WEIR_ATTR_USER].data) {
        struct weir_bytes user = request->values[WEIR_ATTR_USER];
        bool same = identity->user.data && weir_bytes_equal(identity->user, user);
        evaluation->override_count *= same;
        identity->user = user;
        evaluation->user_is_address = false;
        evaluation->unknown = false;
    }
    if (request->count > WEIR_ATTR_ORG && request->values[WEIR_ATTR_ORG].data)
        identity->org = request->values[WEIR_ATTR_ORG];
    if (request->count > WEIR_ATTR_PLAN && request->values[WEIR_ATTR_PLAN].data)
        use_plan(evaluation, request->values[WEIR_ATTR_PLAN]);
}

void rules_identify(struct rules_evaluation *evaluation)
{
    if (evaluation->caller_known)
        return;
    const struct weir_rules *rules = evaluation->rules;
    evaluation->caller_known = true;
    evaluation->plan = RULES_NONE;
    bool known = false;
    for (uint32_t i = 0; i < rules->identify_count && !known && evaluation->error == 0; i++)
        known = identify_by(evaluation, &rules->identify[i]);
    evaluation->unknown = evaluation->presented && !evaluation->unanswered &&
                          evaluation->error == 0 && (!known || evaluation->user_is_address);
    use_request(evaluation);
    if (evaluation->plan == RULES_NONE)
        evaluation->plan = rules->default_plan;
    if (!evaluation->identity.plan.data && evaluation->plan != RULES_NONE) {
        const char *name = rules->plan_names[evaluation->plan];
        evaluation->identity.plan = weir_bytes_of(name);
    }
}

bool rules_refuse_unknown(struct rules_evaluation *evaluation)
{
    static const char reason[] = "the credentials are unknown";
    struct weir_caller_standing *standing = evaluation->query->standing;
    rules_identify(evaluation);
    if (!evaluation->unknown)
        return false;
    standing->refused = standing->unknown = true;
    standing->by = (struct weir_bytes){NULL, 0};
    standing->hash[0] = standing->hash[1] = 0;
    standing->entry.level = WEIR_STANDING_GOOD;
    standing->entry.until_ns = WEIR_NEVER;
    standing->entry.reason_size = sizeof reason - 1;
    memcpy(standing->entry.reason, reason, sizeof reason - 1);
    return true;
}
