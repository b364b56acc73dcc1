/* SPDX-License-Identifier: Apache-2.0 */
/* docs/operations/defaults.md: each value there is what the loader takes without it. The page is
 * the argument. */
#include "rules_test.h"

#include "feature/kernel/settings.h"
#include "feature/score/rules/score.h"
#include "feature/standing/settings.h"
#include "feature/standing/standing.h"
#include "rules/compiled.h"

#define TEXT_MAX 8192
#define LINE_MAX 1024

#define TOP "{ limits: []@ }"
#define SERVER "{ limits: [], server: { http: off@ } }"
#define DENIALS "{ limits: [], denials: { file: f@ } }"
#define STORE "{ limits: [], store: { redis: 'redis://h', nodes: 1@ } }"
#define REDIS "{ limits: [], store: { redis: { url: 'redis://h'@ }, nodes: 1 } }"
#define IDENTITIES                                                                                 \
    "{ limits: [], identify: [header.x-api-key], identities: { redis: 'redis://h'@ } }"
#define LIMIT "{ limits: [{ name: a, key: [user], rate: 100/min@ }] }"
#define BUCKET "{ limits: [{ name: a, key: [user], rate: 100/min, algorithm: leaky_bucket@ }] }"
#define REFUND "{ limits: [{ name: a, key: [user], rate: 100/min, refund_on: [5xx]@ }] }"
#define LEASES "{ limits: [{ name: a, key: [user], limit: 10, algorithm: concurrency@ }] }"
#define STANDING "{ limits: [], standing: { by: [user], file: f@ } }"
#define PENALTY                                                                                    \
    "{ limits: [{ name: a, key: [user], rate: 1/s }], standing: { by: [user], file: f }, "         \
    "penalties: [{ name: p, key: user, strikes: 5/min, ladder: [suspend 1min]@ }] }"
#define SCORE                                                                                      \
    "{ limits: [], score: { key: [user], "                                                         \
    "signals: [{ name: s, add: 1, when: { method: GET } }]@ } }"
#define WEBHOOK                                                                                    \
    "{ limits: [{ name: a, key: [user], rate: 1/s, warn_at: 80% }], "                              \
    "webhook: { url: 'https://h', secret: whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA@ } }"
#define NFTABLES                                                                                   \
    "{ limits: [], standing: { by: [client.ip], file: f }, kernel: { nftables: { helper: /h@ } } " \
    "}"
#define KERNEL "{ limits: [], kernel: { limits: [{ name: a, packets: 5/s@ }] } }"

/* A row of the page: a file, where `put`, or else `, NAME: VALUE`, goes in place of the @; and
 * another value, which makes a difference. */
static const struct row {
    const char *key, *file, *other, *put;
} rows[] = {
    {"server.redis", SERVER, "127.0.0.1:1", NULL},
    {"server.grpc", SERVER, "127.0.0.1:1", NULL},
    {"server.workers", SERVER, "2", NULL},
    {"server.trusted_proxies", SERVER, "[unix]", NULL},
    {"headers", TOP, "[]", NULL},
    {"idempotency.life", TOP, "1min", ", idempotency: { life: %s }"},
    {"denials.keep", DENIALS, "1d", NULL},
    {"denials.size", DENIALS, "1MiB", NULL},
    {"denials.sample", DENIALS, "4", NULL},
    {"denials.series", DENIALS, "1", NULL},
    {"denials.top", DENIALS, "1", NULL},
    {"limits.algorithm", LIMIT, "fixed_window", NULL},
    {"limits.segments", LIMIT, "2", NULL},
    {"limits.strict", LIMIT, "true", NULL},
    {"limits.queue", BUCKET, "true", NULL},
    {"limits.life", LEASES, "31s", NULL},
    {"limits.cost", LIMIT, "2", NULL},
    {"limits.on_missing", LIMIT, "deny", NULL},
    {"limits.on_deny", LIMIT, "charge", NULL},
    {"limits.on_store_error", LIMIT, "open", NULL},
    {"limits.refund_cap", REFUND, "11%", NULL},
    {"limits.debt", LIMIT, "50%", NULL},
    {"limits.shadow", LIMIT, "true", NULL},
    {"limits.enforce", LIMIT, "50%", NULL},
    {"store.deadline", STORE, "30ms", NULL},
    {"store.on_store_error", STORE, "open", NULL},
    {"store.redis.mode", REDIS, "leased", NULL},
    {"store.redis.prefix", REDIS, "x", NULL},
    {"store.redis.lease", REDIS, "500ms", NULL},
    {"store.redis.remember", REDIS, "50ms", NULL},
    {"identities.prefix", IDENTITIES, "x", NULL},
    {"identities.life", IDENTITIES, "1s", NULL},
    {"identities.unknown_life", IDENTITIES, "1s", NULL},
    {"identities.stale", IDENTITIES, "off", NULL},
    {"identities.deadline", IDENTITIES, "1s", NULL},
    {"identities.max_keys", IDENTITIES, "99999", NULL},
    {"identities.on_error", IDENTITIES, "deny", NULL},
    {"standing.entries", STANDING, "16", NULL},
    {"standing.answer.suspended.status", STANDING, "429",
     ", answer: { suspended: { status: %s } }"},
    {"penalties.forgive", PENALTY, "2d", NULL},
    {"penalties.strikes_while_suspended", PENALTY, "true", NULL},
    {"score.clients", SCORE, "5000", NULL},
    {"score.debug", SCORE, "true", NULL},
    {"score.classes", SCORE, "{ suspicious: 20 }", NULL},
    {"webhook.timeout", WEBHOOK, "6s", NULL},
    {"kernel.nftables.table", NFTABLES, "x", NULL},
    {"kernel.nftables.hook", NFTABLES, "netdev, interfaces: [eth0]", NULL},
    {"kernel.nftables.penalties", NFTABLES, "true", NULL},
    {"kernel.limits.prefix4", KERNEL, "24", NULL},
    {"kernel.limits.prefix6", KERNEL, "48", NULL},
    {"kernel.limits.sources", KERNEL, "128", NULL},
    {"kernel.limits.dry_run", KERNEL, "true", NULL},
};
#define ROWS (sizeof rows / sizeof *rows)

/* Rows of what the server takes, not the loader: tests/integration/project/test_operations.py. */
static const char *const of_the_server[] = {"server.http", "server.admin", "state.size"};

static const char *page;

/* --- What a file becomes ---------------------------------------------------------------------- */

struct writer {
    char text[TEXT_MAX];
    size_t used;
};

static void __attribute__((format(printf, 2, 3))) put(struct writer *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(out->text + out->used, sizeof(out->text) - out->used, format, arguments);
    va_end(arguments);
    assert_true(size >= 0 && (size_t)size < sizeof(out->text) - out->used);
    out->used += (size_t)size;
}

static void put_number(struct writer *out, uint64_t number)
{
    put(out, " %llu", (unsigned long long)number);
}

static const char *address_of(const struct weir_listener_settings *listener)
{
    return listener->address ? listener->address : "off";
}

static void put_server(struct writer *out, const struct weir_settings *settings)
{
    put(out, "%s %s", address_of(&settings->redis), address_of(&settings->grpc));
    const uint64_t numbers[] = {settings->workers,
                                settings->trusted_proxy_count,
                                settings->trust_unix,
                                settings->headers,
                                settings->idempotency_ns,
                                settings->denials.keep_ns,
                                settings->denials.size_bytes,
                                settings->denials.sample,
                                settings->denials.series,
                                settings->denials.top,
                                settings->webhook.timeout_ns,
                                settings->standing->entries_max ? settings->standing->entries_max
                                                                : WEIR_STANDING_ENTRIES_DEFAULT};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        put_number(out, numbers[i]);
    for (uint32_t i = 0; i < settings->trusted_proxy_count; i++) {
        put_number(out, settings->trusted_proxies[i].bits);
        for (size_t j = 0; j < sizeof(settings->trusted_proxies[i].address.bytes); j++)
            put(out, "%02x", settings->trusted_proxies[i].address.bytes[j]);
    }
}

static void put_redis(struct writer *out, const struct weir_settings *settings)
{
    const struct weir_store_settings *store = &settings->store;
    const struct weir_identities_settings *identities = &settings->identities;
    put(out, "\n%s %s", store->prefix ? store->prefix : "",
        identities->prefix ? identities->prefix : "");
    const uint64_t numbers[] = {store->leased,
                                store->lease_ns,
                                store->remember_ns,
                                store->deadline_ns,
                                store->on_store_error,
                                identities->life_ns,
                                identities->unknown_life_ns,
                                identities->stale_ns,
                                identities->deadline_ns,
                                identities->max_keys,
                                identities->deny};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        put_number(out, numbers[i]);
}

static void put_kernel(struct writer *out, const struct weir_kernel_settings *kernel)
{
    const struct weir_kernel_nftables *nftables = &kernel->nftables;
    put(out, "\n%s %u %u", nftables->table ? nftables->table : "", nftables->hook,
        nftables->penalties);
    for (uint32_t i = 0; i < kernel->limits_count; i++) {
        const struct weir_kernel_limit *limit = &kernel->limits[i];
        put(out, " %u %u %u %u", limit->prefix4, limit->prefix6, limit->sources, limit->dry_run);
    }
}

static void put_rates(struct writer *out, const struct rules_rates *rates)
{
    for (uint32_t i = 0; i < rates->count && rates->limits; i++) {
        const struct weir_limit_spec *spec = &rates->limits[i].spec;
        put(out, " [%u %llu %llu %u %u %u]", spec->algorithm, (unsigned long long)spec->rate,
            (unsigned long long)spec->window_ns, spec->segments, spec->strict,
            rates->limits[i].capacity == 0);
        put_number(out, rates->limits[i].capacity);
    }
}

static void put_rule(struct writer *out, const struct rules_rule *rule)
{
    put(out, "\n%u %u %u %u %u %u %llu", rule->missing, rule->on_store_error, rule->algorithm,
        rule->flags, rule->enforce, rule->floor, (unsigned long long)rule->cost);
    put_rates(out, &rule->rates);
    if (rule->refund)
        put_rates(out, &rule->refund->caps);
}

static void put_conduct(struct writer *out, const struct weir_rules *rules)
{
    put(out, "\n%u %u", rules->standing.suspended.status, rules->standing.revoked.status);
    for (uint32_t i = 0; i < rules->penalty_count; i++) {
        const struct weir_penalty *penalty = &rules->penalties[i].penalty;
        put_number(out, penalty->ladder.forgive_ns);
        put_number(out, penalty->while_suspended);
    }
    if (rules->score) {
        put_number(out, rules->score->clients);
        put_number(out, rules->score->info.debug);
        for (int i = 0; i < WEIR_CLASSES; i++)
            put_number(out, rules->score->info.from[i]);
    }
}

/* Puts the row's setting. */
static void put_setting(struct writer *out, const struct row *row, const char *value)
{
    const char *at = row->put ? strstr(row->put, "%s") : NULL, *last = strrchr(row->key, '.');
    if (at)
        put(out, "%.*s%s%s", (int)(at - row->put), row->put, value, at + strlen("%s"));
    else
        put(out, ", %s: %s", last ? last + 1 : row->key, value);
}

/* All that the rows set, of the row's file with or without that setting. */
static void describe(struct writer *out, const struct row *row, const char *value)
{
    struct writer document = {.used = 0};
    const char *place = strchr(row->file, '@');
    assert_non_null(place);
    put(&document, "%.*s", (int)(place - row->file), row->file);
    if (value)
        put_setting(&document, row, value);
    put(&document, "%s\n", place + 1);
    struct weir_rules *rules = test_load(document.text);
    *out = (struct writer){.used = 0};
    put_server(out, weir_rules_settings(rules));
    put_redis(out, weir_rules_settings(rules));
    put_kernel(out, weir_rules_settings(rules)->kernel);
    for (uint32_t i = 0; i < rules->rule_count; i++)
        put_rule(out, &rules->rules[i]);
    put_conduct(out, rules);
    weir_rules_unref(rules);
}

/* --- The page --------------------------------------------------------------------------------- */

/* The next row "| `key` | `value` | why |" of the page. */
static bool next_row(FILE *file, char key[LINE_MAX], char value[LINE_MAX])
{
    char line[LINE_MAX];
    while (fgets(line, sizeof(line), file))
        if (sscanf(line, "| `%[^`]` | `%[^`]` | ", key, value) == 2)
            return true;
    return false;
}

static const struct row *find_row(const char *key)
{
    for (size_t i = 0; i < ROWS; i++)
        if (!strcmp(rows[i].key, key))
            return &rows[i];
    return NULL;
}

static bool is_of_the_server(const char *key)
{
    for (size_t i = 0; i < sizeof(of_the_server) / sizeof(*of_the_server); i++)
        if (!strcmp(of_the_server[i], key))
            return true;
    return false;
}

static void every_default_of_the_page_is_what_counts_without_it(void **state)
{
    static struct writer without, with, different;
    char key[LINE_MAX], value[LINE_MAX];
    size_t count = 0;
    FILE *file = fopen(page, "r");
    assert_non_null(file);
    while (next_row(file, key, value)) {
        const struct row *row = find_row(key);
        if (is_of_the_server(key))
            continue;
        if (!row)
            fail_msg("%s: no case here", key);
        describe(&without, row, NULL);
        describe(&with, row, value);
        describe(&different, row, row->other);
        if (strcmp(without.text, with.text))
            fail_msg("%s is not %s:\n%s\n%s", key, value, without.text, with.text);
        if (!strcmp(without.text, different.text))
            fail_msg("%s: %s makes no difference here", key, row->other);
        count++;
    }
    fclose(file);
    assert_int_equal(count, ROWS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_default_of_the_page_is_what_counts_without_it),
    };
    if (argc != 2)
        return 2;
    page = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
