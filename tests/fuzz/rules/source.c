/* SPDX-License-Identifier: Apache-2.0 */
/* Names and values of a request, as doors give them: a line for each, whose first byte says by whom
 * and how. Nobody sets what his trust does not let him, and what becomes of a request is the same
 * each time. */
#include "fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "rules/match/checks.h"
#include "rules/source.h"

static const char text[] =
    "version: 1\n"
    "attributes: [tenant]\n"
    "repeated_credentials: deny\n"
    "standing: { by: [user] }\n"
    "limits:\n"
    "  - { name: a, key: [user, org, plan], rate: 1/s, on_missing: shared }\n"
    "  - { name: b, key: [header.authorization], rate: 1/s }\n"
    "  - { name: c, key: [header.x-a, cookie.c, query.q], rate: 1/s, on_missing: shared }\n"
    "  - { name: d, key: [client.ip/64, tenant], rate: 1/s, on_missing: shared }\n"
    "  - { name: e, match: { header.user-agent: absent, path: '/a/**' }, key: [standing], rate: "
    "1/s }\n"
    "  - { name: f, key: [tls.client.cn, host], rate: 1/s }\n";
static const uint64_t secret[2] = {3, 4};

static struct weir_rules *load(void)
{
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    int err =
        weir_rules_parse(&rules, "fuzz.yaml", "/nonexistent", text, sizeof text - 1, &problems);
    for (uint32_t i = 0; i < problems.count; i++)
        fprintf(stderr, "%s\n", problems.list[i].message);
    weir_problems_free(&problems);
    REQUIRE(err == 0);
    return rules;
}

struct told {
    int err, count;
    uint64_t hashes[WEIR_CHECKS_MAX];
};

/* One line: the first byte has the trust in its lowest bits, and how it is given above. */
static void give(struct weir_request *request, struct weir_bytes line)
{
    const char *colon = memchr(line.data, ':', line.size);
    struct weir_bytes value = {NULL, 0};
    enum weir_trust trust = (enum weir_trust)((unsigned char)line.data[0] % 5);
    struct weir_bytes name = {line.data + 1, line.size - 1};
    if (colon && colon > line.data) {
        name.size = (size_t)(colon - name.data);
        value = (struct weir_bytes){colon + 1, line.size - name.size - 2};
    }
    if ((line.data[0] & 0x10) != 0)
        weir_request_put_field(request, name, value, trust);
    else
        weir_request_put_name(request, name, value, trust);
}

static void ask(const struct weir_rules *rules, struct weir_bytes lines, struct told *told)
{
    static char joined[4096];
    static struct weir_scratch scratch;
    static struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_request request;
    struct weir_reason reason = {""};
    memset(told, 0, sizeof *told);
    weir_request_begin(&request, rules, WEIR_FIELDS_ALL, (struct weir_room){joined, sizeof joined});
    while (lines.size > 0) {
        const char *end = memchr(lines.data, '\n', lines.size);
        size_t size = end ? (size_t)(end - lines.data) : lines.size;
        if (size > 1)
            give(&request, (struct weir_bytes){lines.data, size});
        lines.data += end ? size + 1 : size;
        lines.size -= end ? size + 1 : size;
    }
    told->err = weir_request_end(&request, &reason);
    REQUIRE(told->err == 0 || (told->err == WEIR_ERR_SYNTAX && reason.text[0] != '\0') ||
            told->err == WEIR_ERR_TOO_LARGE);
    const struct weir_rules_query query = {.rules = rules,
                                           .request = &request,
                                           .secret = secret,
                                           .scratch = &scratch,
                                           .reason = &reason};
    told->count = told->err == 0 ? weir_rules_checks(&query, checks) : 0;
    for (int i = 0; i < told->count; i++)
        told->hashes[i] = checks[i].hash[0] ^ checks[i].hash[1];
}

/* What clients say of themselves is as if they had not said it. */
static void check_trust(const struct weir_rules *rules)
{
    static const char *const forbidden[] = {"user:root", "org:o", "plan:p", "tls.client.cn:c",
                                            "standing:trusted"};
    struct told nothing, told;
    ask(rules, (struct weir_bytes){"", 0}, &nothing);
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++) {
        char line[64];
        int size = snprintf(line, sizeof line, "%c%s", 0x20 + 3, forbidden[i]); /* 0x23 % 5 == 0 */
        ask(rules, (struct weir_bytes){line, (size_t)size}, &told);
        REQUIRE(memcmp(&told, &nothing, sizeof told) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct weir_rules *rules;
    struct told once, again;
    if (!rules) {
        rules = load();
        check_trust(rules);
    }
    char *lines = fuzz_copy(data, size);
    ask(rules, (struct weir_bytes){lines, size}, &once);
    ask(rules, (struct weir_bytes){lines, size}, &again);
    REQUIRE(memcmp(&once, &again, sizeof once) == 0);
    free(lines);
    return 0;
}
