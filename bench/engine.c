/* SPDX-License-Identifier: Apache-2.0 */
/* bench/engine: one request through the rules and the table. What is timed is what a front end does
 * for a request: fill the attributes, take a decision, apply the rules, queue; once in BATCH a run;
 * give it back. No codec, no socket.
 *
 *   rules_10      10 rules, three of which match. Goal: under 500 ns
 *   rules_10000   10,000 rules, the same three of which match. Goal: within 1.5x of the row above
 *   fair          who is calling is looked up by the SHA-256 of an API key among 100,000, and has a
 *                 plan; three dimensions: the key (token bucket), the network (sliding window), the
 *                 organisation of 100 keys (sliding window), two of them at the plan's rates.
 *                 Goal: under 1,200 ns
 *   standing      rules_10 with `standing` by network and by API key, in a map of 100,000 entries:
 *                 of each four callers one is throttled, by its network or by its key, and gets a
 *                 part of a limit; the others are good. Goal: under 3x rules_10
 *   pressure      the row above with a score of three signals and a penalty, and in each of the
 * three limits one of the other keywords that say what a request may use or what it gets: `steps`
 * with `reject`, `shed` by a priority in a header field, `adaptive` with `by_class`. Goal: under 3x
 * rules_10 use           rules_10 with an observer of use (feature/use/server/observer.h), as
 * workers have it, and counters of keys. Goal: 5 ns a decision of one limit more than rules_10
 *
 * Time is the thread's CPU time. The sides take turns, so that all see the same machine; printed
 * are the medians of their rounds, and what a decision allocates (goal: nothing): whatever malloc
 * and its kind are asked for in this process, shared libraries included. With names as arguments,
 * only those sides, for profilers; with a number before them, that many rounds, and nothing is
 * printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/bytes.h"
#include "engine/engine.h"
#include "engine/open.h"
#include "feature/identity/rules/keys.h"
#include "feature/standing/standing.h"
#include "feature/use/server/observer.h"
#include "rules/source.h"
#include "table/table.h"

#define BATCH 32
#define ROUNDS 41
#define ROUND_REQUESTS (BATCH * 1000)
#define CLIENTS 100000
#define ORG_CLIENTS 100
#define SECOND UINT64_C(1000000000)

enum { RULES_10, RULES_10000, FAIR, STANDING, PRESSURE, USE, SIDES };
static const char *const names[SIDES] = {"rules_10", "rules_10000", "fair",
                                         "standing", "pressure",    "use"};

struct side {
    struct weir_rules *rules;
    struct weir_standing *standing; /* NULL: none */
    struct weir_table *table;
    struct weir_store *store;
    struct weir_engine *engine;
    struct weir_observer *observer; /* NULL: none */
    struct weir_distinct_set *keys;
    _Atomic(struct weir_distinct_set *) writing;
    struct weir_observer_settings settings;
    uint64_t tended_ns;
    uint64_t allowed, checks, strikes, allocations;
    bool fair, pressure, asked;
    double ns[ROUNDS];
};

/* One round's requests, in the order in which they come: a front end has just parsed the bytes that
 * it hands on, so they are near. */
struct sample {
    char key[16];
    uint32_t address;
};
static struct sample *samples;
static uint64_t now_ns = UINT64_C(1700000000) * SECOND;
static uint64_t allocations;
static const char *const counted[] = {"login", "key", "client"};

/* Before the C library's own, for all that is loaded. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    allocations++;
    return __libc_realloc(memory, size);
}

static void die(const char *what)
{
    fprintf(stderr, "bench/engine: %s\n", what);
    exit(1);
}

static void done(void *context, struct weir_decision *decision)
{
    struct side *side = context;
    side->allowed += decision->verdict == WEIR_ALLOWED;
    side->checks += decision->count;
    weir_engine_release(side->engine, decision);
}

/* Three limits that match, and others for paths, methods, hosts and keys of other requests. */
static char *rules_text(int count, bool standing, bool pressure, size_t *size)
{
    char *text;
    FILE *file = open_memstream(&text, size);
    if (file == NULL)
        die("out of memory");
    if (standing)
        fprintf(file, "standing: { by: [client.ip/64, header.x-api-key]%s }\n",
                pressure ? ", file: unopened.db" : "");
    if (pressure)
        fputs("priority: { from: header.x-priority }\n"
              "adaptive: { backend: { signals: { queue: pushed }, table: [{ queue: 9, x: 50% }] } "
              "}\n"
              "penalties: [{ name: abuse, key: client.ip/64, strikes: 5/h, ladder: [warn 1h] }]\n"
              "score:\n"
              "  key: [client.ip/64]\n"
              "  signals:\n"
              "    - { name: keyed, when: { header.x-api-key: '*-7' }, add: 40 }\n"
              "    - { name: steady, regular: { over: 10, within: 50ms }, add: 30 }\n"
              "    - { name: one-route, same_route: 20, add: 15 }\n",
              file);
    fputs("version: 1\nlimits:\n"
          "  - { name: login, match: { method: POST, path: /login }, key: [client.ip/64],"
          " algorithm: gcra, rate: 100000/s",
          file);
    fputs(standing ? ", by_standing: { throttled: 50% }" : "", file);
    fputs(pressure ? ", steps: [{ at: 50%, mark: true }, { at: 75%, delay: true }],"
                     " reject: { status: 403, tarpit: 1s } }\n"
                   : " }\n",
          file);
    fputs("  - { name: key, key: [header.x-api-key], algorithm: token_bucket, rate: 1000000/s",
          file);
    fputs(pressure ? ", shed: { sheddable: 60% } }\n" : " }\n", file);
    fputs("  - { name: client, key: [client.ip], rate: 100000/min", file);
    fputs(pressure ? ", adaptive: backend, by_class: { suspicious: 50% },"
                     " steps: [{ at: 50%, mark: true }] }\n"
                   : " }\n",
          file);
    for (int i = 3; i < count; i++)
        switch (i % 4) {
        case 0:
            fprintf(file, "  - { name: r%d, match: { path: '/v1/r%d/:id' }, key: [client.ip],", i,
                    i);
            fputs(" rate: 10/s }\n", file);
            break;
        case 1:
            fprintf(file, "  - { name: r%d, match: { host: h%d.example }, key: [client.ip],", i, i);
            fputs(" rate: 10/s }\n", file);
            break;
        case 2:
            fprintf(file, "  - { name: r%d, match: { header.x-tenant: t%d }, key: [],", i, i);
            fputs(" rate: 10/s }\n", file);
            break;
        default:
            fprintf(file, "  - { name: r%d, match: { method: POST, path: '/login/r%d' },", i, i);
            fputs(" key: [client.ip], rate: 10/s }\n", file);
            break;
        }
    if (fclose(file) != 0)
        die("out of memory");
    return text;
}

/* The keys of all clients, each with an organisation and a plan. */
static void keys_write(const char *path)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        die(path);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        char key[16];
        uint8_t digest[WEIR_DIGEST_BYTES];
        int size = snprintf(key, sizeof key, "key-%08u", i * 7);
        rules_sha256((struct weir_bytes){key, (size_t)size}, digest);
        for (int j = 0; j < WEIR_DIGEST_BYTES; j++)
            fprintf(file, "%02x", digest[j]);
        fprintf(file, ": { user: user-%u, org: org-%u, plan: %s }\n", i, i / ORG_CLIENTS,
                i / ORG_CLIENTS % 4 == 0 ? "pro" : "free");
    }
    if (fclose(file) != 0)
        die(path);
}

static int fair_parse(struct weir_rules **rules, struct weir_problems *problems)
{
    static const char text[] =
        "version: 1\n"
        "identify: [header.x-api-key]\n"
        "keys: keys.yaml\n"
        "default_plan: free\n"
        "plans:\n"
        "  free: { key: 1000000/s, organisation: 100000000/min }\n"
        "  pro: { key: 2000000/s, organisation: 200000000/min }\n"
        "limits:\n"
        "  - { name: key, key: [user], algorithm: token_bucket, rate: plan }\n"
        "  - { name: network, key: [client.ip/48], rate: 1000000/min }\n"
        "  - { name: organisation, key: [org], rate: plan }\n";
    char folder[] = "/tmp/bench-engine-XXXXXX", path[sizeof folder + 16];
    if (mkdtemp(folder) == NULL)
        die(folder);
    snprintf(path, sizeof path, "%s/keys.yaml", folder);
    keys_write(path);
    int err = weir_rules_parse(rules, "bench", folder, text, sizeof text - 1, problems);
    unlink(path);
    rmdir(folder);
    return err;
}

static int many_parse(struct weir_rules **rules, int count, bool standing, bool pressure,
                      struct weir_problems *problems)
{
    size_t size;
    char *text = rules_text(count, standing, pressure, &size);
    int err = weir_rules_parse(rules, "bench", ".", text, size, problems);
    free(text);
    return err;
}

/* An address of each client, and the client's key, in turn; of callers that never come as many. */
static struct weir_standing *standing_make(void)
{
    const struct weir_standing_options options = {.entries_max = 2 * CLIENTS, .secret = {1, 2}};
    const struct weir_standing_entry entry = {
        .until_ns = WEIR_NEVER, .level = WEIR_STANDING_THROTTLED, .origin = WEIR_STANDING_BY_LIST};
    struct weir_standing *standing;
    struct weir_reason reason;
    if (weir_standing_create(&standing, &options, &reason) < 0)
        die(reason.text);
    weir_standing_begin_lists(standing);
    for (uint32_t i = 0; i < 4 * CLIENTS; i += 4) {
        struct weir_cidr network = {{.family = 4, .bytes = {10}}, 32};
        char key[16];
        uint64_t id[2];
        int size = snprintf(key, sizeof key, "key-%08u", i * 7);
        memcpy(network.address.bytes + 1, &i, 3);
        weir_standing_id(standing, (struct weir_bytes){"header.x-api-key", 16},
                         (struct weir_bytes){key, (size_t)size}, id);
        int err = i % 8 == 0 ? weir_standing_set_network(standing, &network, &entry)
                             : weir_standing_set(standing, id, &entry);
        if (err < 0)
            die("standing");
    }
    weir_standing_end_lists(standing);
    return standing;
}

static int prepare(void *context, struct weir_limit *limit, const char *name)
{
    return weir_table_intern(context, limit);
}

/* A penalty of the server would take it; no request of these is denied. */
static enum weir_strike_answer on_strike(void *context, const struct weir_struck *struck)
{
    struct side *side = context;
    (void)struck;
    side->strikes++;
    return WEIR_STRIKE_DONE;
}

static void side_open(struct side *side, int which)
{
    struct weir_problems problems = {0};
    struct weir_table_options table = {.bytes = 64 << 20, .wall_ns = now_ns, .boot_ns = 1};
    struct weir_reason reason;
    side->fair = which == FAIR;
    side->pressure = which == PRESSURE;
    if ((side->fair ? fair_parse(&side->rules, &problems)
                    : many_parse(&side->rules, which == RULES_10000 ? 10000 : 10,
                                 which == STANDING || which == PRESSURE, which == PRESSURE,
                                 &problems)) < 0)
        die(problems.count > 0 ? problems.list[0].message : "rules");
    if (weir_table_open(&side->table, &table, &reason) < 0)
        die(reason.text);
    if (weir_rules_prepare(side->rules, prepare, side->table) < 0)
        die("too many limits");
    if (weir_store_embedded_open(&side->store, side->table) < 0)
        die("store");
    if (which == STANDING || which == PRESSURE)
        side->standing = standing_make();
    struct weir_engine_options options = {.store = side->store,
                                          .rules = side->rules,
                                          .standing = side->standing,
                                          .secret = weir_table_secret(side->table),
                                          .done = done,
                                          .done_context = side,
                                          .strike = on_strike,
                                          .strike_context = side};
    if (which == USE) {
        side->keys = calloc(1, sizeof *side->keys);
        atomic_init(&side->settings.per_key, 5);
        if (!side->keys || weir_observer_open(&side->observer, &side->settings, 1) < 0)
            die("observer");
        atomic_store(&side->writing, side->keys);
        options.observe = weir_observer_see;
        options.observe_context = side->observer;
        options.distinct = &side->writing;
    }
    if (weir_engine_open(&side->engine, &options) < 0)
        die("engine");
    for (uint8_t i = 0; which == USE && i < 3; i++)
        weir_engine_count_keys(side->engine, counted[i], strlen(counted[i]), i, WEIR_DISTINCT_ALL);
}

static void side_close(struct side *side)
{
    weir_engine_close(side->engine);
    weir_observer_close(side->observer);
    free(side->keys);
    side->store->ops->close(side->store);
    weir_table_close(side->table);
    weir_standing_close(side->standing);
    weir_rules_unref(side->rules);
}

static void samples_make(void)
{
    uint32_t random = 1;
    samples = malloc(ROUND_REQUESTS * sizeof *samples);
    if (samples == NULL)
        die("out of memory");
    for (uint32_t i = 0; i < ROUND_REQUESTS; i++) {
        random = random * 1664525 + 1013904223;
        samples[i].address = (random >> 8) % CLIENTS;
        snprintf(samples[i].key, sizeof samples[i].key, "key-%08u", samples[i].address * 7);
    }
}

static void one_request(struct side *side, struct weir_request *request,
                        const struct sample *sample)
{
    int header = weir_rules_field(side->rules, "X-Api-Key", 9).attribute;
    weir_request_clear(request, weir_rules_attribute_count(side->rules));
    request->values[WEIR_ATTR_METHOD] = (struct weir_bytes){"POST", 4};
    request->values[WEIR_ATTR_PATH] = (struct weir_bytes){"/login", 6};
    request->values[WEIR_ATTR_HOST] = (struct weir_bytes){"api.example.com", 15};
    request->values[header] = weir_bytes_of(sample->key);
    int priority = side->pressure ? weir_rules_field(side->rules, "X-Priority", 10).attribute : -1;
    memset(request->trusted, side->pressure ? 0xff : 0, sizeof request->trusted);
    if (priority >= 0)
        request->values[priority] = sample->address % 2 == 0 ? (struct weir_bytes){"sheddable", 9}
                                                             : (struct weir_bytes){"critical", 8};
    request->client = (struct weir_address){.family = side->fair ? 6 : 4, .bytes = {10}};
    memcpy(request->client.bytes + 1, &sample->address, 3);
    struct weir_decision *decision = weir_engine_take(side->engine);
    if (weir_engine_apply_rules(side->engine, decision, request, NULL) < 0)
        die("request");
    weir_engine_queue(side->engine, decision);
}

/* What the main thread does beside the worker, four times a second (feature/use/server/history.h).
 */
static void tend(struct side *side)
{
    const uint64_t quarter = now_ns / (SECOND / 4);
    if (!side->keys || quarter == side->tended_ns / (SECOND / 4))
        return;
    side->tended_ns = now_ns;
    for (uint8_t i = 0; i < 3; i++) {
        if (quarter % 4 == 0)
            weir_distinct_clear(&side->keys->limits[i]);
        weir_engine_count_keys(side->engine, counted[i], strlen(counted[i]), i,
                               weir_distinct_below(&side->keys->limits[i]));
    }
}

/* Returns the CPU time of a request. */
static double round_ns(struct side *side)
{
    static struct weir_request request;
    struct timespec begin, end;
    uint64_t before = allocations;
    tend(side);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (int i = 0; i < ROUND_REQUESTS; i += BATCH) {
        for (int j = 0; j < BATCH; j++)
            one_request(side, &request, &samples[i + j]);
        now_ns += 10000;
        weir_engine_run(side->engine, now_ns);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    side->allocations += allocations - before;
    double ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
    return ns / ROUND_REQUESTS;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void print(struct side *side, int which)
{
    const uint64_t requests = (uint64_t)(ROUNDS + 1) * ROUND_REQUESTS;
    if (side->checks != requests * 3 || side->allowed != requests)
        die("not three checks a request, or a denial");
    qsort(side->ns, ROUNDS, sizeof *side->ns, by_value);
    printf("engine/%-12s  %7.1f ns/request  %g allocations/request\n", names[which],
           side->ns[ROUNDS / 2], (double)side->allocations / (double)requests);
}

int main(int argc, char **argv)
{
    static struct side sides[SIDES];
    int rounds = argc > 1 ? atoi(argv[1]) : 0;
    bool counts = rounds > 0 && rounds <= ROUNDS;
    rounds = counts ? rounds : ROUNDS;
    samples_make();
    for (int i = 0; i < SIDES; i++) {
        for (int arg = 1; arg < argc; arg++)
            sides[i].asked |= strcmp(argv[arg], names[i]) == 0;
        sides[i].asked |= argc == 1;
        if (!sides[i].asked)
            continue;
        side_open(&sides[i], i);
        round_ns(&sides[i]);
    }
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < SIDES; i++)
            if (sides[i].asked)
                sides[i].ns[round] = round_ns(&sides[i]);
    for (int i = 0; i < SIDES; i++)
        if (sides[i].asked) {
            if (!counts)
                print(&sides[i], i);
            side_close(&sides[i]);
        }
    if (argc == 1) {
        printf("engine/ratio         %7.2f (10,000 rules to 10; goal: at most 1.5)\n",
               sides[RULES_10000].ns[ROUNDS / 2] / sides[RULES_10].ns[ROUNDS / 2]);
        printf("engine/ratio         %7.2f (pressure to rules_10; goal: at most 3)\n",
               sides[PRESSURE].ns[ROUNDS / 2] / sides[RULES_10].ns[ROUNDS / 2]);
    }
    free(samples);
    return 0;
}
