/* SPDX-License-Identifier: Apache-2.0 */
/* Rules files: any bytes load or are refused, with problems that fit on a line; what loads can be
 * asked, with and without the index, and answers the same. */
#include "fuzz.h"

#include <string.h>

#include "rules/charge/borrow.h"
#include "rules/charge/candidate.h"
#include "rules/charge/settle.h"
#include "rules/match/explain.h"

#define ASKED_MAX 1000 /* limits that are explained; a file of more is only loaded */

static const uint64_t secret[2] = {1, 2};

static void check_problems(const struct weir_problems *problems)
{
    for (uint32_t i = 0; i < problems->count; i++) {
        const struct weir_problem *problem = &problems->list[i];
        REQUIRE(problem->file != NULL && problem->message != NULL && problem->message[0] != '\0');
        for (const char *at = problem->message; *at != '\0'; at++)
            REQUIRE((unsigned char)*at >= 0x20);
        if (i > 0) {
            const struct weir_problem *before = &problems->list[i - 1];
            REQUIRE(before->line < problem->line ||
                    (before->line == problem->line && before->column <= problem->column) ||
                    strcmp(before->file, problem->file) != 0);
        }
    }
}

/* What was charged is found again, as a settlement does. */
static void mark(const struct weir_rules *rules, const struct weir_check *check)
{
    struct weir_limit_mark mark;
    struct weir_settling settling;
    if (check->limit == NULL)
        return;
    weir_rules_mark(check, &mark);
    REQUIRE(weir_rules_find_marked(rules, &mark, check->rule, false, &settling));
    REQUIRE(settling.limit->spec.window_ns == check->limit->spec.window_ns);
    for (uint32_t status = WEIR_STATUS_MIN - 1; status <= WEIR_STATUS_MAX + 1; status += 100) {
        bool back = weir_rules_gives_back(rules, settling.rule, status);
        REQUIRE(!back || (settling.cap != NULL && status >= WEIR_STATUS_MIN));
    }
}

/* Schedules: each moment lasts until the next one, and not beyond. */
static void follow_schedules(const struct weir_rules *rules)
{
    struct weir_moment moment;
    uint64_t at_ns = UINT64_C(1700000000) * UINT64_C(1000000000);
    for (int i = 0; i < 20 && at_ns != WEIR_NEVER; i++) {
        weir_rules_moment(rules, at_ns, &moment);
        REQUIRE(moment.until_ns > at_ns);
        at_ns = moment.until_ns;
    }
}

/* What the limits of a request may borrow and try; `checks` are what it meets. */
static void ask_beside(const struct weir_rules *rules, const struct weir_request *request,
                       struct weir_scratch *scratch, const struct weir_check *met, int count)
{
    static struct weir_check checks[WEIR_CHECKS_MAX], tried[WEIR_RATES_MAX];
    static struct weir_loans loans;
    const struct weir_rules_query query = {
        .rules = rules, .request = request, .secret = secret, .scratch = scratch, .loans = &loans};
    int again = weir_rules_checks(&query, checks);
    for (int i = 0; i < count; i++) {
        uint16_t rates = weir_rules_candidate(rules, &met[i], tried);
        REQUIRE(rates <= WEIR_RATES_MAX);
        REQUIRE((rates > 0) == weir_rules_has_candidate(rules, &met[i]));
        for (uint16_t r = 0; r < rates; r++)
            REQUIRE(tried[r].limit != NULL && tried[r].hash[0] != met[i].hash[0]);
    }
    if (again < 0)
        return; /* no room for the pools */
    REQUIRE(again == count && again + loans.check_count <= WEIR_CHECKS_MAX);
    for (uint16_t i = 0; i < loans.count; i++) {
        const struct weir_loan *loan = &loans.loans[i];
        REQUIRE(loan->count > 0 && loan->first + loan->count <= loans.check_count);
        REQUIRE(loan->pool != loan->rule);
        for (uint16_t c = loan->first; c < loan->first + loan->count; c++) {
            REQUIRE(loans.checks[c].rule == loan->pool);
            mark(rules, &loans.checks[c]);
        }
    }
}

/* The texts of keys are the same when they are written later. */
static void ask_with_tuples(const struct weir_rules_query *asked, const struct weir_check *met,
                            int count)
{
    static struct weir_scratch scratch;
    static struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_rules_query query = *asked;
    query.scratch = &scratch;
    query.keep_tuples = true;
    REQUIRE(weir_rules_checks(&query, checks) == count);
    for (int i = 0; i < count; i++) {
        char room[WEIR_KEY_TEXT_MAX];
        struct weir_bytes key = weir_rules_key_text(query.rules, &checks[i], room);
        REQUIRE(key.size == met[i].key.size && memcmp(key.data, met[i].key.data, key.size) == 0);
        REQUIRE(memcmp(checks[i].hash, met[i].hash, sizeof(met[i].hash)) == 0);
    }
}

/* One request that has every attribute of the file. */
static void ask(struct weir_rules *rules)
{
    static struct weir_request request;
    static struct weir_scratch scratch[2];
    static struct weir_check checks[2][WEIR_CHECKS_MAX];
    static struct weir_explanation explanations[ASKED_MAX];
    struct weir_reason reason;
    weir_request_clear(&request, weir_rules_attribute_count(rules));
    for (uint16_t i = 0; i < request.count; i++)
        request.values[i] = (struct weir_bytes){"/a/b", 4};
    request.values[WEIR_ATTR_METHOD] = (struct weir_bytes){"GET", 3};
    request.values[WEIR_ATTR_HOST] = (struct weir_bytes){"Example.com:1", 13};
    REQUIRE(weir_address_parse(&request.client, "10.1.2.3", 8) == 0);
    struct weir_rules_query query = {.rules = rules,
                                     .request = &request,
                                     .secret = secret,
                                     .scratch = &scratch[0],
                                     .reason = &reason};
    int count = weir_rules_checks(&query, checks[0]);
    REQUIRE(count <= WEIR_CHECKS_MAX);
    ask_with_tuples(&query, checks[0], count);
    if (weir_rules_count(rules) > ASKED_MAX)
        return;
    query.scratch = &scratch[1];
    int again = weir_rules_explain(&query, checks[1], explanations);
    REQUIRE(count == again);
    for (int i = 0; i < count; i++) {
        REQUIRE(checks[0][i].rule == checks[1][i].rule);
        REQUIRE(memcmp(checks[0][i].hash, checks[1][i].hash, sizeof(checks[0][i].hash)) == 0);
        REQUIRE(i == 0 || checks[0][i - 1].rule <= checks[0][i].rule); /* several rates */
        mark(rules, &checks[0][i]);
    }
    if (count >= 0)
        ask_beside(rules, &request, &scratch[1], checks[0], count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    char *text = fuzz_copy(data, size);
    /* "keys:" leads nowhere from there, so that an input cannot open files that mean something. */
    int err = weir_rules_parse(&rules, "fuzz.yaml", "/nonexistent", text, size, &problems);
    REQUIRE((err == 0) == (rules != NULL));
    REQUIRE((err == WEIR_ERR_RULES) == (problems.count > problems.deprecated));
    check_problems(&problems);
    if (rules != NULL) {
        follow_schedules(rules);
        ask(rules);
        weir_rules_unref(rules);
    }
    weir_problems_free(&problems);
    free(text);
    return 0;
}
