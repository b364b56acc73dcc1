/* Who the caller is; see evaluate.h */
#include <string.h>

#include "rules/evaluate.h"

static bool from_address(struct rules_evaluation *evaluation, const struct rules_identify *source)
{
    const struct weir_address *client = &evaluation->request->client;
    struct weir_scratch *scratch = evaluation->scratch;
    if (client->family == 0 || sizeof(scratch->bytes) - scratch->used < WEIR_ADDRESS_TEXT_MAX + 4) {
        return false;
    }
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

static bool from_key(struct rules_evaluation *evaluation, const struct rules_identify *source)
{
    const struct weir_rules *rules = evaluation->rules;
    struct weir_bytes key = {NULL, 0};
    if (source->attribute < evaluation->request->count) {
        key = evaluation->request->values[source->attribute];
    }
    const struct rules_caller *caller =
        key.data == NULL ? NULL : rules_keys_find(&rules->keys, key);
    if (caller == NULL) {
        return false;
    }
    evaluation->identity.user = (struct weir_bytes){caller->user, caller->user_size};
    evaluation->identity.org = (struct weir_bytes){caller->org, caller->org_size};
    evaluation->plan = caller->plan;
    return true;
}

/* What a trusted front end says of the caller goes before what was found. */
static void override(struct rules_evaluation *evaluation)
{
    const struct weir_request *request = evaluation->request;
    struct weir_identity *identity = &evaluation->identity;
    if (request->count > WEIR_ATTR_USER && request->values[WEIR_ATTR_USER].data != NULL) {
        identity->user = request->values[WEIR_ATTR_USER];
        evaluation->user_is_address = false;
    }
    if (request->count > WEIR_ATTR_ORG && request->values[WEIR_ATTR_ORG].data != NULL) {
        identity->org = request->values[WEIR_ATTR_ORG];
    }
    if (request->count > WEIR_ATTR_PLAN && request->values[WEIR_ATTR_PLAN].data != NULL) {
        identity->plan = request->values[WEIR_ATTR_PLAN];
        evaluation->plan = rules_words_find(
            &evaluation->rules->plans, 0, rules_text_hash(identity->plan.data, identity->plan.size),
            identity->plan.data, identity->plan.size);
    }
}

void rules_identify(struct rules_evaluation *evaluation)
{
    if (evaluation->caller_known) {
        return;
    }
    const struct weir_rules *rules = evaluation->rules;
    evaluation->caller_known = true;
    evaluation->plan = RULES_NONE;
    for (uint32_t i = 0; i < rules->identify_count; i++) {
        const struct rules_identify *source = &rules->identify[i];
        if (source->address ? from_address(evaluation, source) : from_key(evaluation, source)) {
            break;
        }
    }
    override(evaluation);
    /* A plan that the file does not know is matched as it is, and limited as the default. */
    if (evaluation->plan == RULES_NONE) {
        evaluation->plan = rules->default_plan;
    }
    if (evaluation->identity.plan.data == NULL && evaluation->plan != RULES_NONE) {
        const char *name = rules->plan_names[evaluation->plan];
        evaluation->identity.plan = (struct weir_bytes){name, strlen(name)};
    }
}
