/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: each allocation in turn fails cleanly; the path of a request makes none. */
#include <openssl/crypto.h>
#include <unistd.h>

#include "rules_test.h"
#include "temporary.h"

static long fail_at; /* the allocation that fails; 0: none */
static long allocations, alive;

static bool fails(void)
{
    return ++allocations == fail_at;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t size);
void __wrap_free(void *memory);

static void *made(void *memory)
{
    alive += memory != NULL;
    return memory;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : made(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : made(__real_calloc(count, size));
}

void *__wrap_realloc(void *old, size_t size)
{
    if (fails())
        return NULL;
    void *memory = __real_realloc(old, size);
    alive += old == NULL && memory != NULL;
    return memory;
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : made(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t size)
{
    return fails() ? NULL : made(__real_strndup(text, size));
}

void __wrap_free(void *memory)
{
    alive -= memory != NULL;
    __real_free(memory);
}

/* What OpenSSL would allocate counts too. */
static void *crypto_malloc(size_t size, const char *file, int line)
{
    allocations++;
    return __real_malloc(size);
}

static void *crypto_realloc(void *old, size_t size, const char *file, int line)
{
    allocations++;
    return __real_realloc(old, size);
}

static void crypto_free(void *memory, const char *file, int line)
{
    __real_free(memory);
}

static char folder[TEMPORARY_MAX];
static char rules_path[128], keys_path[128], broken_path[128];

static const char keys_text[] = /* the SHA-256 of "alice-key" */
    "72ee9d4355ccb9d3a4c9dbf37382e38e75c1b1a225b5bd1f729ee91bbda30c20: { user: alice, org: acme, "
    "plan: pro }\n"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef: { user: b, org: acme, "
    "limits: { api: 5/s, l3: [7/s, 100/min] } }\n";

/* The same as no program writes it, for the other reader. */
static const char yaml_keys_text[] =
    "'72ee9d4355ccb9d3a4c9dbf37382e38e75c1b1a225b5bd1f729ee91bbda30c20': { user: alice }\n"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef: { user: b, org: acme, "
    "limits: { api: 5/s, l3: [7/s, 100/min] } }\n";
static const char broken_keys_text[] =
    "72ee9d4355ccb9d3a4c9dbf37382e38e75c1b1a225b5bd1f729ee91bbda30c20: { user: alice, plan: prro,"
    " limits: { apii: 5/s, conc: x } }\n";

static const char good_text[] =
    "version: 1\n"
    "server: { http: '127.0.0.1:80', admin: { address: 'localhost:9090', token: x },\n"
    "          trusted_proxies: [10.0.0.0/8, unix] }\n"
    "state: { file: /tmp/x, size: 1MiB }\n"
    "regions: { self: eu, eu: { redis: {url: 'rediss://h', password: x, tls: {ca: ca.pem},"
    " mode: leased} }, us: { redis: 'redis://i', weight: 2 } }\n"
    "store: { nodes: 3 }\n"
    "identify: [header.x-api-key, client.ip]\n"
    "keys: keys.yaml\n"
    "default_plan: free\n"
    "plans: { free: {api: 1/s burst 5}, pro: {api: unlimited} }\n"
    "standing: { by: [client.ip/64, user, header.x-api-key], file: x.db, entries: 100,"
    " answer: {revoked: {body: x, content_type: a/b}},"
    " lists: [{file: keys.yaml, by: user, level: warned, reason: r}] }\n"
    "penalties:\n"
    "- {name: tries, key: user, strikes: 5/h, for: [all], outcomes: [401, 5xx],"
    " ladder: [warn 1h, revoke]}\n"
    "score: { key: [client.ip/64, user], routes: ['/x/:id'], signals: ["
    "{name: a, when: {header.a: [absent, 'x*'], list: {not: keys}}, add: 5},"
    " {name: b, regular: {over: 9, within: 5ms}, same_route: 9, add: 9}] }\n"
    "limits:\n"
    "- {name: who, match: {list: keys, client.class: malicious, client.score: {at_least: 9}},"
    " key: [client.class], rate: 1/s, by_class: {malicious: 9%}}\n"
    "- {name: all, match: {standing: [warned, throttled]}, key: [standing], rate: 1/s,"
    " mode: exact, by_standing: {warned: 5%}}\n"
    "- {name: login, match: &m {method: [POST, PUT], path: ['/login', '/x/:id', '/y/**'],"
    "   path.id: '7*', host: ['*.example.com', example.com], client.ip: [10.0.0.0/8, '::1'],"
    "   header.a: [x, 'y*']}, key: [client.ip/64], rate: 5/min, algorithm: sliding_log}\n"
    "- {name: api, key: [user], algorithm: gcra, rate: plan, on_missing: header.other}\n"
    "- {name: l3, match: {path: /login, method: GET}, key: [], rate: 1/s, unless: [login]}\n"
    "- {name: l4, match: {path: /login, method: PUT}, key: [], rate: 1/s}\n"
    "- {name: l5, match: {path: /login, method: HEAD}, key: [], rate: 1/s}\n"
    "- {name: l6, match: {path: /login, method: A}, key: [], rate: 1/s}\n"
    "- {name: l7, match: {path: /login, method: B}, key: [], rate: 1/s}\n"
    "- {name: l8, match: {path: /login, method: C}, key: [], rate: 1/s}\n"
    "- {name: l9, match: {path: /login, method: D}, key: [header.x-api-key, path], rate: 1/s}\n"
    "- {name: l10, match: {path: '/x/:id', method: POST}, key: [header.x-api-key, path], rate: "
    "1/s, hash_tag: [path, header.x-api-key]}\n"
    "- {name: shared, match: {path: '/x/:id', method: DELETE}, key: [org], rate: [99/s, 999/min],"
    " global: {floor: 10%, home_share: 80%, home: us}}\n"
    "- {name: conc, key: [org], algorithm: concurrency, limit: 5}\n"
    "- {name: lent, match: {path: /lent, plan: free}, key: [plan], rate: [9/s, 99/h],"
    " borrow: true, reserve: 10%}\n"
    "- {name: own, match: {path: /lent, plan: pro}, key: [user], rate: 1/s, pool: lent,"
    " candidate: {rate: [2/s, 9/min], segments: 2}}\n";

static const char broken_text[] = "limits:\n"
                                  "- {name: Bad, key: [user], rate: 5/minn}\n"
                                  "- {name: a, key: &k [usr, path.x], match: {path: '/**/x'}}\n"
                                  "- {name: a, key: *k, rate: 1/s, brst: 3}\n"
                                  "foo: bar\n"
                                  "keys: missing.yaml\n";

static void load_failing_each_allocation(const char *path, int expected)
{
    for (long n = 1;; n++) {
        struct weir_rules *rules;
        struct weir_problems problems = {0};
        long before = alive;
        allocations = 0;
        fail_at = n;
        int err = weir_rules_load(&rules, path, &problems);
        bool failed = allocations >= n;
        fail_at = 0;
        assert_true(failed ? err == WEIR_ERR_MEMORY : err == expected);
        assert_true((rules != NULL) == (err == 0));
        weir_rules_unref(rules);
        weir_problems_free(&problems);
        assert_int_equal(alive, before);
        if (!failed) {
            assert_true(n > 20); /* else nothing was wrapped */
            return;
        }
    }
}

static void each_allocation_of_a_load_fails_cleanly(void **state)
{
    load_failing_each_allocation(rules_path, 0);
}

static void each_allocation_of_a_load_with_problems_fails_cleanly(void **state)
{
    load_failing_each_allocation(broken_path, WEIR_ERR_RULES);
}

static int write_file(char *path, const char *name, const char *text, size_t size);

static void each_allocation_of_a_load_with_other_keys_fails_cleanly(void **state)
{
    assert_int_equal(write_file(keys_path, "keys.yaml", yaml_keys_text, sizeof(yaml_keys_text) - 1),
                     0);
    load_failing_each_allocation(rules_path, 0);
    assert_int_equal(
        write_file(keys_path, "keys.yaml", broken_keys_text, sizeof(broken_keys_text) - 1), 0);
    load_failing_each_allocation(rules_path, WEIR_ERR_RULES);
    assert_int_equal(write_file(keys_path, "keys.yaml", keys_text, sizeof(keys_text) - 1), 0);
}

static void the_path_of_a_request_allocates_nothing(void **state)
{
    static const char *const pairs[] = {"method",
                                        "POST",
                                        "path",
                                        "//x/7%30?q",
                                        "client.ip",
                                        "10.1.2.3",
                                        "header.x-api-key",
                                        "alice-key",
                                        "host",
                                        "WWW.example.com:80",
                                        "header.a",
                                        "yy",
                                        NULL};
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    assert_int_equal(weir_rules_load(&rules, rules_path, &problems), 0);
    test_expect(
        test_ask(rules, pairs),
        "login{client.ip=10.1.2.3} api{user=alice} "
        "l10{header.x-api-key=sha256:72ee9d4355ccb9d3a4c9dbf37382e38e,path=/x/70} conc{org=acme}");
    struct test_request *test = test_ask(rules, pairs);
    allocations = 0;
    for (int i = 0; i < 1000; i++) {
        test->count = weir_rules_checks(&test->query, test->checks);
        assert_int_equal(test->count, 4);
    }
    assert_int_equal(allocations, 0);
    weir_rules_unref(rules);
}

static int write_file(char *path, const char *name, const char *text, size_t size)
{
    snprintf(path, 128, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return -1;
    size_t written = fwrite(text, 1, size, file);
    return fclose(file) != 0 || written != size ? -1 : 0;
}

static int make_files(void **state)
{
    temporary_folder(folder);
    if (write_file(keys_path, "keys.yaml", keys_text, sizeof(keys_text) - 1) < 0 ||
        write_file(rules_path, "weir.yaml", good_text, sizeof(good_text) - 1) < 0 ||
        write_file(broken_path, "broken.yaml", broken_text, sizeof(broken_text) - 1) < 0)
        return -1;
    return 0;
}

static int remove_files(void **state)
{
    temporary_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_of_a_load_fails_cleanly),
        cmocka_unit_test(each_allocation_of_a_load_with_problems_fails_cleanly),
        cmocka_unit_test(each_allocation_of_a_load_with_other_keys_fails_cleanly),
        cmocka_unit_test(the_path_of_a_request_allocates_nothing),
    };
    if (CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free) != 1)
        return 1;
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
