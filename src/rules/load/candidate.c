/* SPDX-License-Identifier: Apache-2.0 */
/* `candidate` of a limit; see loader.h and charge/candidate.h */
#include <stdio.h>
#include <string.h>

#include "rules/load/loader.h"

#define NO_LEASES "nobody would end the leases of a candidate: it does not go with concurrency"

/* What a mapping may say. */
static const struct {
    const char *name;
    enum rules_limit_field field;
} parts[] = {
    {"rate", RULES_LIMIT_RATE},           {"quota", RULES_LIMIT_QUOTA},
    {"algorithm", RULES_LIMIT_ALGORITHM}, {"burst", RULES_LIMIT_BURST},
    {"segments", RULES_LIMIT_SEGMENTS},   {"strict", RULES_LIMIT_STRICT},
    {"queue", RULES_LIMIT_QUEUE},         {"timezone", RULES_LIMIT_TIMEZONE},
    {"anchor", RULES_LIMIT_ANCHOR},       {"rollover", RULES_LIMIT_ROLLOVER},
};
#define PART_COUNT (sizeof(parts) / sizeof(parts[0]))
enum { PART_RATE, PART_QUOTA, PART_ALGORITHM };

static void leave_out(struct rules_field *fields, const enum rules_limit_field *which, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fields[which[i]].value = NULL;
}

/* Options of an algorithm, and of a calendar, say nothing about another. */
static void leave_options(struct rules_field *fields)
{
    static const enum rules_limit_field options[] = {RULES_LIMIT_BURST, RULES_LIMIT_SEGMENTS,
                                                     RULES_LIMIT_STRICT, RULES_LIMIT_QUEUE};
    leave_out(fields, options, sizeof(options) / sizeof(options[0]));
}

static void leave_calendar(struct rules_field *fields)
{
    static const enum rules_limit_field calendar[] = {RULES_LIMIT_QUOTA, RULES_LIMIT_TIMEZONE,
                                                      RULES_LIMIT_ANCHOR, RULES_LIMIT_ROLLOVER};
    leave_out(fields, calendar, sizeof(calendar) / sizeof(calendar[0]));
}

/* Puts what a mapping says over what the limit says; false after a problem. */
static bool read_parts(struct rules_loader *loader, const struct rules_node *node,
                       struct rules_field *fields)
{
    struct rules_field said[PART_COUNT];
    for (size_t i = 0; i < PART_COUNT; i++)
        said[i] = (struct rules_field){parts[i].name, NULL, NULL};
    if (!rules_fields(loader, node, "candidate", said, PART_COUNT))
        return false;
    if (said[PART_RATE].value != NULL) {
        leave_calendar(fields);
    } else if (said[PART_QUOTA].value != NULL) {
        fields[RULES_LIMIT_RATE].value = fields[RULES_LIMIT_ALGORITHM].value = NULL;
        leave_options(fields);
    }
    if (said[PART_ALGORITHM].value != NULL)
        leave_options(fields);
    for (size_t i = 0; i < PART_COUNT; i++)
        if (said[i].value != NULL)
            fields[parts[i].field] = said[i];
    return true;
}

/* What its states are called elsewhere: no name of a limit has a '~'. */
static void name_limits(struct rules_loader *loader, const struct rules_rule *rule,
                        struct rules_rates *rates)
{
    char text[RULES_NAME_MAX + 16];
    for (uint8_t i = 0; i < rates->count; i++) {
        int size = i == 0 ? snprintf(text, sizeof(text), "%s~candidate", rule->name)
                          : snprintf(text, sizeof(text), "%s~candidate#%u", rule->name, i + 1U);
        rates->limits[i].name = rules_keep_text(loader, text, (size_t)size);
    }
}

void rules_load_candidate(struct rules_loader *loader, const struct rules_field *fields,
                          struct rules_rule *rule)
{
    const struct rules_field *field = &fields[RULES_LIMIT_CANDIDATE];
    const struct rules_field *borrow = &fields[RULES_LIMIT_BORROW];
    struct rules_field tried[RULES_LIMIT_FIELDS];
    struct rules_rule candidate = *rule;
    memcpy(tried, fields, sizeof(tried));
    if (borrow->value != NULL) {
        rules_problem(loader, field->key,
                      "a limit that others borrow from has no candidate: what they would borrow "
                      "from it then is not known");
        return;
    }
    if (rule->algorithm == WEIR_CONCURRENCY) {
        rules_problem(loader, field->key, NO_LEASES);
        return;
    }
    if (field->value->kind == RULES_MAP) {
        if (!read_parts(loader, field->value, tried))
            return;
    } else {
        bool quota = fields[RULES_LIMIT_QUOTA].value != NULL;
        tried[quota ? RULES_LIMIT_QUOTA : RULES_LIMIT_RATE] = *field;
    }
    candidate.plans = NULL;
    memset(&candidate.rates, 0, sizeof(candidate.rates));
    uint32_t wrong = loader->wrong;
    rules_load_rate(loader, field->value, tried, &candidate);
    if (loader->wrong != wrong || loader->no_memory)
        return;
    if (candidate.algorithm == WEIR_CONCURRENCY) {
        rules_problem(loader, field->value, NO_LEASES);
    } else if (candidate.rates.limits == NULL) {
        rules_problem(loader, field->value,
                      "a candidate has numbers of its own: `50/min`, not `plan` or `unlimited`");
    } else {
        name_limits(loader, rule, &candidate.rates);
        rule->candidate = candidate.rates;
        loader->rules->tries = true;
    }
}
