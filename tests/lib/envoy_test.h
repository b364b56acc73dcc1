/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of Envoy's configuration share: loading texts, asking, a store of plain cells. */
#ifndef RULES_ENVOY_TEST_H
#define RULES_ENVOY_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "core/cell.h"
#include "feature/envoy/rules/envoy.h"
#include "feature/envoy/rules/plan.h"
#include "feature/envoy/rules/respond.h"

#define NS UINT64_C(1000000000)

static const struct weir_envoy_options envoy_defaults;

/* --- Loading ---------------------------------------------------------------------------------- */

/* Loads texts as the files 1.yaml, 2.yaml, …; NULL after an error, whose text goes to `error`. */
static inline struct weir_envoy *envoy_try(const char *const *texts,
                                           const struct weir_envoy_options *options,
                                           struct weir_envoy_error *error)
{
    static const char *const names[] = {"1.yaml", "2.yaml", "3.yaml", "4.yaml"};
    struct weir_envoy_file files[4];
    struct weir_envoy *envoy;
    uint32_t count = 0;
    for (; texts[count] != NULL; count++)
        files[count] =
            (struct weir_envoy_file){names[count], texts[count], strlen(texts[count]), NULL};
    int err = weir_envoy_parse(&envoy, files, count, options, error);
    assert_int_equal(err, envoy == NULL ? WEIR_ERR_RULES : 0);
    assert_int_equal(error->text[0] == '\0', envoy != NULL);
    return envoy;
}

static inline struct weir_envoy *envoy_load(const char *text,
                                            const struct weir_envoy_options *options)
{
    struct weir_envoy_error error;
    struct weir_envoy *envoy = envoy_try((const char *const[]){text, NULL}, options, &error);
    if (envoy == NULL)
        print_error("%s\n", error.text);
    assert_non_null(envoy);
    return envoy;
}

/* Expects exactly this refusal. */
static inline void envoy_refused_with(const struct weir_envoy_options *options,
                                      const char *expected, const char *const *texts)
{
    struct weir_envoy_error error;
    struct weir_envoy *envoy = envoy_try(texts, options, &error);
    assert_string_equal(error.text, expected);
    assert_null(envoy);
}
#define REFUSED(expected, ...)                                                                     \
    envoy_refused_with(&envoy_defaults, expected, (const char *const[]){__VA_ARGS__, NULL})

/* --- A store of plain cells ------------------------------------------------------------------- */

#define CELLS_MAX 4096

struct envoy_state {
    uint64_t hash[2];
    struct weir_cell cell;
};

/* One server: a configuration, what was counted, a time. */
struct envoy_server {
    struct weir_envoy *envoy;
    uint64_t now_ns;
    struct envoy_state states[CELLS_MAX];
    uint32_t count;
    int fail; /* what the store answers; 0: it works */
    struct weir_limit overrides[16];
    uint32_t override_count;

    /* Of the last request. */
    struct weir_envoy_request request;
    struct weir_envoy_descriptor descriptors[64];
    struct weir_envoy_entry entries[256];
    struct weir_envoy_plan plan;
    struct weir_envoy_response response;
    struct weir_reason reason;
    bool shadowed;
    void *memory;
    char text[4096];
};

static inline struct weir_cell *envoy_cell(struct envoy_server *server, const uint64_t hash[2])
{
    for (uint32_t i = 0; i < server->count; i++)
        if (memcmp(server->states[i].hash, hash, 16) == 0)
            return &server->states[i].cell;
    assert_true(server->count < CELLS_MAX);
    struct envoy_state *state = &server->states[server->count++];
    memset(state, 0, sizeof(*state));
    memcpy(state->hash, hash, 16);
    return &state->cell;
}

/* One check as a store of core/check.h decides it, after the request was allowed or not. */
static inline void envoy_charge(struct envoy_server *server, const struct weir_decision *decision,
                                uint16_t i, bool allowed)
{
    const struct weir_check *check = &decision->checks[i];
    struct weir_outcome *outcome = &decision->outcomes[i];
    struct weir_cell *cell = envoy_cell(server, check->hash);
    bool admits = outcome->verdict == WEIR_ALLOWED;
    outcome->charged = true;
    if (decision->op == WEIR_OP_REFUND)
        weir_cell_refund(check->limit, cell, server->now_ns, decision->charged_at_ns, check->cost);
    else if (allowed && admits)
        weir_cell_charge(check->limit, cell, server->now_ns, check->cost);
    else if ((check->flags & WEIR_CHECK_CHARGE_ON_DENY) != 0)
        if (admits)
            weir_cell_charge(check->limit, cell, server->now_ns, check->cost);
        else
            weir_cell_charge_denied(check->limit, cell, server->now_ns, check->cost);
    else
        outcome->charged = false;
    outcome->charged = outcome->charged && check->cost > 0;
    outcome->cell = *cell;
}

static inline bool envoy_test(struct envoy_server *server, const struct weir_decision *decision,
                              uint16_t i)
{
    const struct weir_check *check = &decision->checks[i];
    uint64_t delay_ns;
    bool admits = decision->op == WEIR_OP_REFUND ||
                  weir_cell_test(check->limit, envoy_cell(server, check->hash), server->now_ns,
                                 check->cost, &delay_ns);
    memset(&decision->outcomes[i], 0, sizeof(decision->outcomes[i]));
    decision->outcomes[i].verdict = admits ? WEIR_ALLOWED : WEIR_DENIED;
    return admits || (check->flags & WEIR_CHECK_SHADOW) != 0;
}

static inline void envoy_decide(struct envoy_server *server, struct weir_decision *decision)
{
    bool together = decision->policy == WEIR_POLICY_ALL, allowed = true;
    decision->now_ns = server->now_ns;
    decision->error = (int8_t)server->fail;
    for (uint16_t i = 0; i < decision->count; i++) {
        bool passes = envoy_test(server, decision, i);
        allowed = allowed && passes;
        if (!together)
            envoy_charge(server, decision, i, passes);
    }
    for (uint16_t i = 0; together && i < decision->count; i++)
        envoy_charge(server, decision, i, allowed);
}

static inline const struct weir_limit *envoy_override(void *context, uint32_t requests,
                                                      uint32_t seconds, struct weir_reason *reason)
{
    struct envoy_server *server = context;
    struct weir_limit_spec spec = {.rate = requests, .window_ns = seconds * NS};
    assert_true(server->override_count < 16);
    struct weir_limit *limit = &server->overrides[server->override_count++];
    assert_int_equal(weir_limit_init(limit, &spec, reason), 0);
    return limit;
}

/* --- Asking ----------------------------------------------------------------------------------- */

static inline struct envoy_server *envoy_start(const char *text,
                                               const struct weir_envoy_options *options)
{
    struct envoy_server *server = calloc(1, sizeof(*server));
    assert_non_null(server);
    server->envoy = envoy_load(text, options);
    server->now_ns = 1234 * NS;
    return server;
}

static inline void envoy_stop(struct envoy_server *server)
{
    weir_envoy_unref(server->envoy);
    free(server->memory);
    free(server);
}

/* "k=v,k2=v2" */
static inline void envoy_parse_descriptor(struct envoy_server *server, const char *text,
                                          uint32_t *entry)
{
    struct weir_envoy_descriptor *of = &server->descriptors[server->request.descriptor_count++];
    memset(of, 0, sizeof(*of));
    of->entries = &server->entries[*entry];
    while (*text != '\0') {
        size_t size = strcspn(text, ","), key = strcspn(text, "=");
        server->entries[*entry].key = (struct weir_bytes){text, key};
        server->entries[(*entry)++].value = (struct weir_bytes){text + key + 1, size - key - 1};
        of->entry_count++;
        text += size + (text[size] == ',');
    }
}

/* Fills server->request; `descriptors` ends with NULL. */
static inline void envoy_request(struct envoy_server *server, const char *domain,
                                 const char *const *descriptors)
{
    uint32_t entry = 0;
    memset(&server->request, 0, sizeof(server->request));
    server->request.domain = weir_bytes_of(domain);
    server->request.descriptors = server->descriptors;
    for (uint32_t i = 0; descriptors[i] != NULL; i++)
        envoy_parse_descriptor(server, descriptors[i], &entry);
}

/* Sends server->request. Returns 0, or the error of the plan or of the response. */
static inline int envoy_send(struct envoy_server *server)
{
    static const uint64_t secret[2] = {1, 2};
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_outcome outcomes[WEIR_CHECKS_MAX];
    long first;
    int err = weir_envoy_request_check(&server->request, &server->reason);
    if (err < 0)
        return err;
    size_t size = weir_envoy_plan_size(server->envoy, &server->request);
    free(server->memory);
    server->memory = malloc(size);
    assert_non_null(server->memory);
    server->override_count = 0;
    err = weir_envoy_plan_make(&server->plan, server->envoy, &server->request, server->memory,
                               envoy_override, server, &server->reason);
    if (err < 0)
        return err;
    for (;;) {
        struct weir_decision decision = {.checks = checks, .outcomes = outcomes};
        first = weir_envoy_plan_fill(&server->plan, &decision, secret, server->now_ns);
        if (first < 0)
            break;
        assert_true(decision.count > 0 && decision.count <= WEIR_CHECKS_MAX);
        envoy_decide(server, &decision);
        weir_envoy_plan_take(&server->plan, first, &decision);
    }
    err = weir_envoy_respond(&server->plan, &server->response, &server->shadowed);
    assert_true(server->plan.memory <= (char *)server->memory + size);
    return err;
}

/* "OVER_LIMIT: OK 10/MINUTE 9 26s name; OVER_LIMIT …" */
static inline const char *envoy_show(struct envoy_server *server)
{
    static const char *const codes[] = {"UNKNOWN", "OK", "OVER_LIMIT"};
    static const char *const units[] = {"UNKNOWN", "SECOND", "MINUTE", "HOUR",
                                        "DAY",     "MONTH",  "YEAR",   "WEEK"};
    size_t used = (size_t)snprintf(server->text, sizeof(server->text),
                                   "%s:", codes[server->response.overall_code]);
    for (uint32_t i = 0; i < server->response.status_count; i++) {
        const struct weir_envoy_status *status = &server->response.statuses[i];
        char limit[128] = "";
        if (status->has_limit) {
            snprintf(limit, sizeof(limit), " %u/%s %us", status->requests_per_unit,
                     units[status->unit], (unsigned)status->duration_until_reset_s);
        }
        used += (size_t)snprintf(server->text + used, sizeof(server->text) - used,
                                 "%s %s%s %u%s%.*s", i > 0 ? ";" : "", codes[status->code], limit,
                                 status->limit_remaining, status->name.size > 0 ? " " : "",
                                 (int)status->name.size, status->name.data);
    }
    return server->text;
}

static inline const char *envoy_ask(struct envoy_server *server, const char *domain,
                                    const char *const *descriptors)
{
    envoy_request(server, domain, descriptors);
    int err = envoy_send(server);
    if (err < 0) {
        snprintf(server->text, sizeof(server->text), "%d %s", err, server->reason.text);
        return server->text;
    }
    return envoy_show(server);
}
#define ASK(server, domain, ...) envoy_ask(server, domain, (const char *const[]){__VA_ARGS__, NULL})

/* The key of the counters of the last request's first descriptor. */
static inline const char *envoy_stat_of(struct envoy_server *server)
{
    struct weir_bytes stat = server->plan.items[0].stat;
    snprintf(server->text, sizeof(server->text), "%.*s", (int)stat.size,
             stat.data != NULL ? stat.data : "");
    return server->text;
}

/* "total 3 over 1 near 2 local 0 within 2 shadow 0" of one of its descriptors. */
static inline const char *envoy_counts(struct envoy_server *server, uint32_t item)
{
    struct weir_envoy_tally tally;
    weir_envoy_tally(&server->plan, item, &tally);
    snprintf(server->text, sizeof(server->text),
             "total %llu over %llu near %llu local %llu within %llu shadow %llu",
             (unsigned long long)tally.total_hits, (unsigned long long)tally.over_limit,
             (unsigned long long)tally.near_limit,
             (unsigned long long)tally.over_limit_with_local_cache,
             (unsigned long long)tally.within_limit, (unsigned long long)tally.shadow_mode);
    return server->text;
}

#endif
