/* SPDX-License-Identifier: Apache-2.0 */
/* `store` and `idempotency`: what they become, and every problem with its line and column. */
#include <unistd.h>

#include "rules_test.h"
#include "temporary.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

TEST("without a store there is none")
{
    struct weir_rules *rules = test_load("limits:\n- {name: l, key: [a], rate: 9/s}\n");
    const struct weir_settings *settings = weir_rules_settings(rules);
    assert_null(settings->store.redis.url);
    assert_int_equal(settings->store.nodes, 0);
    assert_true(settings->idempotency_ns == 600 * S);
    weir_rules_unref(rules);
}

TEST("a url alone has the defaults")
{
    struct weir_rules *rules =
        test_load("store: {redis: redis://127.0.0.1:6379/0, nodes: 3}\nlimits: []\n");
    const struct weir_store_settings *store = &weir_rules_settings(rules)->store;
    assert_string_equal(store->redis.url, "redis://127.0.0.1:6379/0");
    assert_string_equal(store->prefix, "weir:");
    assert_false(store->leased);
    assert_int_equal(store->nodes, 3);
    assert_true(store->deadline_ns == 20 * MS);
    assert_true(store->remember_ns == 100 * MS);
    assert_true(store->lease_ns == S);
    assert_int_equal(store->on_store_error, WEIR_FAIL_LOCAL);
    assert_null(store->redis.user);
    assert_null(store->redis.password);
    assert_null(store->redis.ca_file);
    assert_false(store->redis.insecure);
    weir_rules_unref(rules);
}

TEST("every setting of the store is read")
{
    struct weir_rules *rules =
        test_load("store:\n"
                  "  redis:\n"
                  "    url: rediss-sentinel://a,b:26380/main\n"
                  "    mode: leased\n"
                  "    prefix: 'prod:'\n"
                  "    nodes: 1000\n"
                  "    user: weir\n"
                  "    password: s3cret\n"
                  "    sentinel_user: watcher\n"
                  "    sentinel_password: other\n"
                  "    tls: {ca: /ca.pem, cert: cert.pem, key: /key.pem, server_name: redis.test}\n"
                  "    lease: 500ms\n"
                  "    remember: 50ms\n"
                  "  deadline: 5ms\n"
                  "  on_store_error: open\n"
                  "idempotency: {life: 1h}\n"
                  "limits: []\n");
    const struct weir_settings *settings = weir_rules_settings(rules);
    const struct weir_store_settings *store = &settings->store;
    assert_string_equal(store->redis.url, "rediss-sentinel://a,b:26380/main");
    assert_true(store->leased);
    assert_string_equal(store->prefix, "prod:");
    assert_int_equal(store->nodes, 1000);
    assert_string_equal(store->redis.user, "weir");
    assert_string_equal(store->redis.password, "s3cret");
    assert_string_equal(store->redis.sentinel_user, "watcher");
    assert_string_equal(store->redis.sentinel_password, "other");
    assert_string_equal(store->redis.ca_file, "/ca.pem");
    assert_string_equal(store->redis.cert_file, "cert.pem");
    assert_string_equal(store->redis.key_file, "/key.pem");
    assert_string_equal(store->redis.server_name, "redis.test");
    assert_true(store->lease_ns == 500 * MS);
    assert_true(store->remember_ns == 50 * MS);
    assert_true(store->deadline_ns == 5 * MS);
    assert_int_equal(store->on_store_error, WEIR_FAIL_OPEN);
    assert_true(settings->idempotency_ns == 3600 * S);
    weir_rules_unref(rules);
}

TEST("denials need not be remembered")
{
    struct weir_rules *rules =
        test_load("store: {redis: {url: 'redis://h', remember: off}, nodes: 1}\nlimits: []\n");
    assert_true(weir_rules_settings(rules)->store.remember_ns == 1);
    weir_rules_unref(rules);
}

TEST("every scheme is taken")
{
    static const char *const urls[] = {
        "redis://h",
        "rediss://:p@[::1]:1/3",
        "unix:/run/redis.sock",
        "redis-cluster://h",
        "rediss-cluster://h:1,i:2",
        "redis-sentinel://h/g",
        "rediss-sentinel://h/g",
        "unix:/run/redis.sock?db=1",
        "redis://user:p%40ss@h",
    };
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "store: {redis: '%s', nodes: 1}\nlimits: []\n", urls[i]);
        struct weir_rules *rules = test_load(text);
        assert_string_equal(weir_rules_settings(rules)->store.redis.url, urls[i]);
        weir_rules_unref(rules);
    }
}

/* Loads rules that name the file "secret", which has these bytes and is beside them. */
static struct weir_rules *load_beside(const char *text, const char *bytes, size_t size,
                                      char *message)
{
    char folder[TEMPORARY_MAX], path[TEMPORARY_MAX + 8];
    temporary_folder(folder);
    snprintf(path, sizeof(path), "%s/secret", folder);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    int err = weir_rules_parse(&rules, "test.yaml", folder, text, strlen(text), &problems);
    assert_int_equal(err, rules != NULL ? 0 : WEIR_ERR_RULES);
    if (rules == NULL) {
        assert_int_equal(problems.count, 1);
        const char *result = problems.list[0].message;
        assert_memory_equal(result, path, strlen(path));
        strcpy(message, result + strlen(path));
    }
    weir_problems_free(&problems);
    temporary_remove(folder);
    return rules;
}

/* Loads a store whose password is in a file of these bytes, beside the rules. */
static struct weir_rules *load_with_file(const char *bytes, size_t size, char *message)
{
    return load_beside("store: {redis: {url: 'redis://h', password_file: secret}, nodes: 2}\n"
                       "limits: []\n",
                       bytes, size, message);
}

TEST("every secret may be in a file that the settings list")
{
    static const char text[] =
        "server: {http: {address: '0.0.0.0:1', token_file: secret}}\n"
        "store: {redis: {url: 'redis-sentinel://h/m', sentinel_password_file: secret}, nodes: 2}\n"
        "webhook: {url: 'https://h/', secret_file: secret}\n"
        "jwt: {keys: [{secret_file: secret}], audience: a}\n"
        "challenge: {secret_file: secret}\n"
        "limits: []\n";
    static const char secret[] = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    static const char *const keys[] = {"secret_file", "sentinel_password_file", "token_file"};
    char message[256];
    struct weir_rules *rules = load_beside(text, secret, strlen(secret), message);
    assert_non_null(rules);
    const struct weir_settings *settings = weir_rules_settings(rules);
    assert_string_equal(settings->http.token, secret);
    assert_string_equal(settings->store.redis.sentinel_password, secret);
    assert_false(settings->webhook.secret_inline);
    size_t seen[3] = {0};
    const struct weir_secret_file *file = settings->secret_files;
    for (; file; file = file->next) {
        assert_string_equal(file->path + strlen(file->path) - strlen("/secret"), "/secret");
        for (size_t i = 0; i < 3; i++)
            seen[i] += strcmp(file->key, keys[i]) == 0;
    }
    assert_int_equal(seen[0], 3);
    assert_int_equal(seen[1], 1);
    assert_int_equal(seen[2], 1);
    weir_rules_unref(rules);
}

TEST("a password may be in a file")
{
    static const struct {
        const char *bytes, *password;
    } good[] = {{"s3 cret\n", "s3 cret"}, {"s3cret", "s3cret"}, {"s3cret\r\n", "s3cret"}};
    char message[256];
    for (size_t i = 0; i < 3; i++) {
        struct weir_rules *rules = load_with_file(good[i].bytes, strlen(good[i].bytes), message);
        assert_non_null(rules);
        assert_string_equal(weir_rules_settings(rules)->store.redis.password, good[i].password);
        weir_rules_unref(rules);
    }
    char longest[600];
    memset(longest, 'x', sizeof(longest));
    struct weir_rules *rules = load_with_file(longest, 512, message);
    assert_non_null(rules);
    assert_int_equal(strlen(weir_rules_settings(rules)->store.redis.password), 512);
    weir_rules_unref(rules);
}

TEST("a file without a password is a problem")
{
    static const char wanted[] = " must hold a password of 1 to 512 bytes on one line";
    char message[256], longer[600];
    memset(longer, 'x', sizeof(longer));
    static const struct {
        const char *bytes;
        size_t size;
    } bad[] = {{"", 0}, {"\n", 1}, {"a\nb", 3}, {"a\0b", 3}, {"a\n\n", 3}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_null(load_with_file(bad[i].bytes, bad[i].size, message));
        assert_string_equal(message, wanted);
    }
    assert_null(load_with_file(longer, 513, message));
    assert_string_equal(message, wanted);
    assert_null(load_with_file(longer, sizeof(longer), message));
    assert_string_equal(message, wanted);
}

#define SCHEMES                                                                                    \
    "the URL of Redis begins with redis://, rediss://, unix:/, redis-sentinel://, "                \
    "rediss-sentinel://, redis-cluster:// or rediss-cluster://"

static const struct test_problem_case cases[] = {
    {"store: x\n", "1:8: store must be a mapping, not a text\n"},
    {"store: {}\n",
     "1:8: `redis` is missing; without `store`, states are in this machine's memory\n"},
    {"store: {nodes: 3, deadlin: 5ms}\n",
     "1:8: `redis` is missing; without `store`, states are in this machine's memory\n"
     "1:19: store has no key `deadlin`; did you mean `deadline`?\n"},
    {"store: {redis: {}, nodes: 3}\n", "1:16: `url` is missing\n"},
    {"store: {redis: [a], nodes: 3}\n", "1:16: `redis` must be a text, not a list\n"},
    {"store: {redis: {urll: 'redis://h'}, nodes: 3}\n",
     "1:16: `url` is missing\n"
     "1:17: redis has no key `urll`; did you mean `url`?\n"},
    /* URLs. None is quoted except for its scheme: it may hold a password. */
    {"store: {redis: 'http://h', nodes: 3}\n", "1:16: " SCHEMES ", not `http`\n"},
    {"store: {redis: 'reds://h', nodes: 3}\n",
     "1:16: " SCHEMES ", not `reds`; did you mean `redis`?\n"},
    {"store: {redis: '127.0.0.1', nodes: 3}\n", "1:16: " SCHEMES "\n"},
    {"store: {redis: '', nodes: 3}\n", "1:16: " SCHEMES "\n"},
    {"store: {redis: 'averylongpasswordthatstands:here', nodes: 3}\n", "1:16: " SCHEMES "\n"},
    {"store: {redis: 'redis:', nodes: 3}\n",
     "1:16: the URL of Redis has no host; as in `redis://127.0.0.1:6379/0`\n"},
    {"store: {redis: 'redis:///0', nodes: 3}\n",
     "1:16: the URL of Redis has no host; as in `redis://127.0.0.1:6379/0`\n"},
    {"store: {redis: 'unix:redis.sock', nodes: 3}\n",
     "1:16: the URL of Redis has no socket; as in `unix:/run/redis/redis.sock`\n"},
    /* The rest of it. */
    {"store: {redis: {url: 'redis://h', mode: lease}, nodes: 3}\n",
     "1:41: `mode` must be one of exact, leased, not `lease`; did you mean `leased`?\n"},
    {"store: {redis: {url: 'redis://h', prefix: 'a{b}'}, nodes: 3}\n",
     "1:43: `prefix` has at most 64 graphic ASCII characters, and no braces, which choose the slot "
     "of a key\n"},
    {"store: {redis: {url: 'redis://h', prefix: 'a b'}, nodes: 3}\n",
     "1:43: `prefix` has at most 64 graphic ASCII characters, and no braces, which choose the slot "
     "of a key\n"},
    {"store: {redis: {url: 'redis://h', nodes: 0}}\n",
     "1:42: `nodes` must be 1 to 1000, not `0`\n"},
    {"store: {redis: {url: 'redis://h', nodes: 2}, nodes: 1001}\n",
     "1:53: `nodes` must be 1 to 1000, not `1001`\n"},
    {"store: {redis: {url: 'redis://h', nodes: 2}, nodes: 2}\n",
     "1:35: `nodes` is given twice, in `store` and in `redis`\n"},
    {"store: {redis: {url: 'redis://h', user: '', password: [a]}, nodes: 3}\n",
     "1:41: `user` must have 1 to 512 bytes\n"
     "1:55: `password` must be a text, not a list\n"},
    {"store: {redis: {url: 'redis://h', password: a, password_file: b}, nodes: 3}\n",
     "1:48: `password` and `password_file` are the same; give one\n"},
    {"store: {redis: {url: 'redis-sentinel://h/m', sentinel_password: a,\n"
     "  sentinel_password_file: b}, nodes: 3}\n",
     "2:3: `sentinel_password` and `sentinel_password_file` are the same; give one\n"},
    {"store: {redis: {url: 'redis://h', password_file: /nonexistent/b}, nodes: 3}\n",
     "1:50: cannot read /nonexistent/b: No such file or directory\n"},
    {"store: {redis: {url: 'redis://h', password_file: /}, nodes: 3}\n",
     "1:50: cannot read /: it is a directory; give a regular file\n"},
    {"store: {redis: {url: 'redis://u:p@h', user: u, password: p}, nodes: 3}\n",
     "1:39: `user` is also in the URL; give it once\n"
     "1:48: `password` is also in the URL; give it once\n"},
    {"store: {redis: {url: 'redis://h', sentinel_user: u, sentinel_password: p}, nodes: 3}\n",
     "1:35: `sentinel_user` belongs to redis-sentinel://, not to redis:\n"
     "1:53: `sentinel_password` belongs to redis-sentinel://, not to redis:\n"},
    {"store: {redis: {url: 'redis://h', tls: {insecure: true}}, nodes: 3}\n",
     "1:35: `tls` belongs to rediss://, rediss-sentinel:// and rediss-cluster://, not to redis:\n"},
    {"store: {redis: {url: 'rediss://h', tls: {cert: a, insecure: 1}}, nodes: 3}\n",
     "1:42: `cert` and `key` belong together; give both\n"
     "1:61: `insecure` must be true or false, not `1`\n"},
    {"store: {redis: {url: 'rediss://h', tls: {key: a}}, nodes: 3}\n",
     "1:42: `cert` and `key` belong together; give both\n"},
    {"store: {redis: {url: 'rediss://h', tls: {ca: '', insecure: true}}, nodes: 3}\n",
     "1:46: `ca` is empty\n"
     "1:50: `insecure` verifies nothing, so `ca` has no effect; give one\n"},
    {"store: {redis: {url: 'rediss://h', tls: x}, nodes: 3}\n",
     "1:41: tls must be a mapping, not a text\n"},
    {"store: {redis: {url: 'redis://h', lease: 10ms, remember: 101ms}, nodes: 3}\n",
     "1:42: `lease` must be 20ms to 1s, not `10ms`\n"
     "1:58: `remember` must be 1ms to 100ms, or off, not `101ms`\n"},
    {"store: {redis: {url: 'redis://h', lease: soon}, nodes: 3}\n",
     "1:42: `soon` is not a duration; write a number and a unit, as in `30s`\n"},
    {"store: {redis: 'redis://h', nodes: 3, deadline: 11s, on_store_error: shut}\n",
     "1:49: `deadline` must be 1ms to 10s, not `11s`\n"
     "1:70: `on_store_error` must be one of local, open, closed, not `shut`\n"},
    {"idempotency: {life: 31d}\n", "1:21: `life` must be 1s to 30d, not `31d`\n"},
    {"idempotency: 10min\n", "1:14: idempotency must be a mapping, not a text\n"},
    {"idempotency: {lif: 1s}\n", "1:15: idempotency has no key `lif`; did you mean `life`?\n"},
};

TEST("every problem of the store is reported")
{
    char text[1024];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(text, sizeof(text), "%slimits: []\n", cases[i].text);
        test_refused(text, cases[i].problems);
    }
}

RUN_TESTS()
