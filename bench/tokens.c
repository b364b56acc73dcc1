/* SPDX-License-Identifier: Apache-2.0 */
/* bench/tokens: what a JSON Web Token costs a request.
 *
 *   verify RS256, ES256, HS256   a token that is seen for the first time
 *   refuse expired, key          one that is refused before its signature is looked at
 *   refuse signature             one that is not: what different bad tokens cost each
 *   known                        one that is remembered: a hash, by its algorithm's size
 *   checks header, jwt           one request to one check: keyed by a header, or by a claim of a
 *                                token that is remembered
 *
 * Time is the thread's CPU time; printed are medians of rounds, in nanoseconds, and the size of the
 * token.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/bytes.h"
#include "feature/identity/rules/jwt.h"
#include "rules/compiled.h"
#include "rules/source.h"
#include "token_maker.h"

#define ROUNDS 21
#define NOW_NS (UINT64_C(1700000000) * UINT64_C(1000000000))
#define CLAIMS                                                                                     \
    "{\"iss\":\"https://"                                                                          \
    "id.example.org\",\"sub\":\"auth0|65f2c1d9a7b84e0012345678\",\"aud\":\"api\","                 \
    "\"iat\":1699999000,\"exp\":%s,\"scope\":\"read write\",\"tenant\":\"acme\",\"plan\":\"pro\"}"

static void die(const char *what)
{
    fprintf(stderr, "bench/tokens: %s\n", what);
    exit(1);
}

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What is timed: one call. */
typedef void (*step)(void *context);

static void measure(const char *name, size_t size, int calls, step call, void *context)
{
    double ns[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double began = cpu_ns();
        for (int i = 0; i < calls; i++)
            call(context);
        ns[round] = (cpu_ns() - began) / calls;
    }
    qsort(ns, ROUNDS, sizeof(ns[0]), compare);
    printf("%-18s %5zu bytes %10.0f ns\n", name, size, ns[ROUNDS / 2]);
}

static struct token_maker maker;
static struct weir_rules *rules, *plain;
static struct weir_tokens *tokens;
static struct weir_token_counters counters;

struct call {
    struct weir_bytes token;
    enum weir_token expected;
};

static void verify(void *context)
{
    static struct rules_claims claims;
    const struct call *call = context;
    if (rules_jwt_verify(rules->jwt, call->token, NOW_NS, &claims) != call->expected)
        die("not what was expected");
}

static void know(void *context)
{
    static struct rules_claims claims;
    const struct call *call = context;
    enum weir_token result = rules_tokens_verify(tokens, rules->jwt, call->token, NOW_NS, &claims);
    if (result != call->expected && result != WEIR_TOKEN_VALID) /* which it is once */
        die("not known");
}

struct ask {
    struct weir_rules *rules;
    struct weir_request request;
};

static void check(void *context)
{
    static struct weir_scratch scratch;
    static struct weir_check checks[WEIR_CHECKS_MAX];
    static const uint64_t secret[2] = {1, 2};
    struct ask *ask = context;
    const struct weir_rules_query query = {.rules = ask->rules,
                                           .request = &ask->request,
                                           .secret = secret,
                                           .scratch = &scratch,
                                           .now_ns = NOW_NS,
                                           .tokens = tokens};
    if (weir_rules_checks(&query, checks) != 1)
        die("not one check");
}

static struct weir_rules *parse(const char *folder, const char *text)
{
    struct weir_rules *parsed;
    struct weir_problems problems = {0};
    if (weir_rules_parse(&parsed, "bench", folder, text, strlen(text), &problems) < 0)
        die(problems.count > 0 ? problems.list[0].message : "rules");
    return parsed;
}

static void open_rules(void)
{
    char folder[] = "/tmp/bench-tokens-XXXXXX", path[64], set[TOKEN_SET_MAX];
    token_maker_open(&maker);
    token_maker_set(&maker, 1, set);
    if (mkdtemp(folder) == NULL)
        die(folder);
    snprintf(path, sizeof(path), "%s/set.json", folder);
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(set, file) < 0 || fclose(file) != 0)
        die(path);
    rules = parse(folder, "jwt: {keys: set.json, audience: api}\n"
                          "limits: [{name: a, key: [jwt.sub], rate: 1/s}]\n");
    plain = parse(folder, "limits: [{name: a, key: [header.x-user], rate: 1/s}]\n");
    unlink(path);
    rmdir(folder);
}

static void set_header(struct ask *ask, const char *name, const char *value)
{
    weir_request_clear(&ask->request, weir_rules_attribute_count(ask->rules));
    ask->request.values[weir_rules_field(ask->rules, name, strlen(name)).attribute] =
        weir_bytes_of(value);
}

static void measure_requests(const char *token)
{
    static struct ask by_header, by_token;
    static char value[TOKEN_TEXT_MAX + 8];
    snprintf(value, sizeof(value), "Bearer %s", token);
    by_header.rules = plain;
    set_header(&by_header, "x-user", "auth0|65f2c1d9a7b84e0012345678");
    measure("checks header", 0, 100000, check, &by_header);
    by_token.rules = rules;
    set_header(&by_token, "authorization", value);
    measure("checks jwt", strlen(token), 100000, check, &by_token);
}

int main(void)
{
    static const char *const names[] = {"RS256", "ES256", "HS256"};
    static char token[3][TOKEN_TEXT_MAX], bad[TOKEN_TEXT_MAX];
    char name[32], claims[512];
    open_rules();
    if (weir_tokens_open(&tokens, &counters) < 0)
        die("out of memory");
    snprintf(claims, sizeof(claims), CLAIMS, "1700000060");
    for (int i = TOKEN_RS256; i <= TOKEN_HS256; i++) {
        token_of(&maker, i, claims, token[i]);
        struct call call = {{token[i], strlen(token[i])}, WEIR_TOKEN_VALID};
        snprintf(name, sizeof(name), "verify %s", names[i]);
        measure(name, call.token.size, 500, verify, &call);
        call.expected = WEIR_TOKEN_CACHED;
        snprintf(name, sizeof(name), "known %s", names[i]);
        measure(name, call.token.size, 100000, know, &call);
    }
    strcpy(bad, token[TOKEN_RS256]);
    bad[strlen(bad) - 10] = bad[strlen(bad) - 10] == 'A' ? 'B' : 'A';
    struct call call = {{bad, strlen(bad)}, WEIR_TOKEN_SIGNATURE};
    measure("refuse signature", call.token.size, 500, verify, &call);
    token_make(&maker, TOKEN_RS256, "{\"alg\":\"RS256\",\"kid\":\"x\"}", claims, bad);
    call = (struct call){{bad, strlen(bad)}, WEIR_TOKEN_KEY};
    measure("refuse key", call.token.size, 5000, verify, &call);
    snprintf(claims, sizeof(claims), CLAIMS, "1700000000");
    token_of(&maker, TOKEN_RS256, claims, bad);
    call = (struct call){{bad, strlen(bad)}, WEIR_TOKEN_EXPIRED};
    measure("refuse expired", call.token.size, 5000, verify, &call);
    measure_requests(token[TOKEN_RS256]);
    weir_tokens_close(tokens);
    weir_rules_unref(rules);
    weir_rules_unref(plain);
    token_maker_close(&maker);
    return 0;
}
