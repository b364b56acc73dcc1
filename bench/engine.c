/* bench/engine: one request through the rules and the table, with 10 rules and with 10,000, three
 * of which match. What is timed is what a front end does for a request: fill the attributes, take a
 * decision, apply the rules, queue; once in BATCH a run; give it back. No codec, no socket.
 *
 * Time is the thread's CPU time. The two sides take turns, so that both see the same machine;
 * printed are the medians of their rounds and the ratio. Goal: under 500 ns, and within 1.5x of
 * each other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/engine.h"
#include "table/table.h"

#define BATCH 32
#define ROUNDS 41
#define ROUND_REQUESTS (BATCH * 1000)
#define CLIENTS 100000
#define SECOND UINT64_C(1000000000)

struct side {
    struct weir_rules *rules;
    struct weir_table *table;
    struct weir_store *store;
    struct weir_engine *engine;
    uint64_t allowed, checks;
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
static char *rules_text(int count, size_t *size)
{
    char *text;
    FILE *file = open_memstream(&text, size);
    if (file == NULL)
        die("out of memory");
    fputs("version: 1\nlimits:\n"
          "  - { name: login, match: { method: POST, path: /login }, key: [client.ip/64],"
          " algorithm: gcra, rate: 100000/s }\n"
          "  - { name: key, key: [header.x-api-key], algorithm: token_bucket, rate: 1000000/s }\n"
          "  - { name: client, key: [client.ip], rate: 100000/min }\n",
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

static int prepare(void *context, struct weir_limit *limit, const char *name)
{
    return weir_table_intern(context, limit);
}

static void side_open(struct side *side, int count)
{
    struct weir_problems problems = {0};
    struct weir_table_options table = {.bytes = 64 << 20, .wall_ns = now_ns, .boot_ns = 1};
    struct weir_reason reason;
    size_t size;
    char *text = rules_text(count, &size);
    if (weir_rules_parse(&side->rules, "bench", ".", text, size, &problems) < 0)
        die(problems.count > 0 ? problems.list[0].message : "rules");
    free(text);
    if (weir_table_open(&side->table, &table, &reason) < 0)
        die(reason.text);
    if (weir_rules_prepare(side->rules, prepare, side->table) < 0)
        die("too many limits");
    if (weir_store_embedded_open(&side->store, side->table) < 0)
        die("store");
    struct weir_engine_options options = {.store = side->store,
                                          .rules = side->rules,
                                          .secret = weir_table_secret(side->table),
                                          .done = done,
                                          .done_context = side};
    if (weir_engine_open(&side->engine, &options) < 0)
        die("engine");
}

static void side_close(struct side *side)
{
    weir_engine_close(side->engine);
    side->store->ops->close(side->store);
    weir_table_close(side->table);
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
    int header = weir_rules_header(side->rules, "X-Api-Key", 9);
    weir_request_clear(request, weir_rules_attribute_count(side->rules));
    request->values[WEIR_ATTR_METHOD] = (struct weir_bytes){"POST", 4};
    request->values[WEIR_ATTR_PATH] = (struct weir_bytes){"/login", 6};
    request->values[WEIR_ATTR_HOST] = (struct weir_bytes){"api.example.com", 15};
    request->values[header] = (struct weir_bytes){sample->key, strlen(sample->key)};
    request->client = (struct weir_address){.family = 4, .bytes = {10}};
    memcpy(request->client.bytes + 1, &sample->address, 3);
    struct weir_decision *decision = weir_engine_take(side->engine);
    if (weir_engine_apply_rules(side->engine, decision, request, NULL) < 0)
        die("request");
    weir_engine_queue(side->engine, decision);
}

static double round_ns(struct side *side)
{
    static struct weir_request request;
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (int i = 0; i < ROUND_REQUESTS; i += BATCH) {
        for (int j = 0; j < BATCH; j++)
            one_request(side, &request, &samples[i + j]);
        now_ns += 10000;
        weir_engine_run(side->engine, now_ns);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    double ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
    return ns / ROUND_REQUESTS;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(struct side *side)
{
    qsort(side->ns, ROUNDS, sizeof *side->ns, by_value);
    return side->ns[ROUNDS / 2];
}

int main(void)
{
    static const int counts[2] = {10, 10000};
    static struct side sides[2];
    samples_make();
    for (int i = 0; i < 2; i++) {
        side_open(&sides[i], counts[i]);
        round_ns(&sides[i]);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < 2; i++)
            sides[i].ns[round] = round_ns(&sides[i]);
    double few = median(&sides[0]), many = median(&sides[1]);
    for (int i = 0; i < 2; i++)
        if (sides[i].checks != (uint64_t)(ROUNDS + 1) * ROUND_REQUESTS * 3)
            die("not three checks a request");
    printf("engine/rules_10      %7.1f ns/request\n", few);
    printf("engine/rules_10000   %7.1f ns/request\n", many);
    printf("engine/ratio         %7.2f (10,000 rules to 10; goal: at most 1.5)\n", many / few);
    for (int i = 0; i < 2; i++)
        side_close(&sides[i]);
    free(samples);
    return 0;
}
