/* SPDX-License-Identifier: Apache-2.0 */
/* bench/store: the Redis store without a front end. A closed loop keeps `depth` decisions in
 * flight on one thread: what is decided is asked again, with another key, in the next turn.
 *
 *     store-driver URL exact|leased DEPTH KEYS SECONDS    one JSON object on standard output
 *     store-driver --command                              the script call of one decision, as it is
 *                                                         sent; for redis-benchmark to send too
 *
 * The limit is a gcra that admits everything at these rates. Run by run.py.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/bench/histogram.h"
#include "core/text/siphash.h"
#include "store/redis/redis.h"
#include "store/redis/script/script.h"

#define SECOND UINT64_C(1000000000)
#define RATE UINT64_C(1000000000) /* of every key, in WINDOW_NS */
#define WINDOW_NS (1000 * SECOND)
#define KEY_DIGITS 12
#define WARM_NS (SECOND / 2)

struct entry {
    struct weir_decision decision; /* first */
    struct weir_check check;
    struct weir_outcome outcome;
    char key[32];
    uint64_t asked_ns;
};

static struct {
    uv_loop_t loop;
    uv_prepare_t prepare;
    uv_idle_t idle; /* runs while something is ready: the loop must not wait */
    struct weir_store *store;
    struct weir_limit limit;
    struct entry *entries;
    struct weir_decision **ready, **batch;
    size_t ready_count;
    uint64_t keys, random, now_ns, begin_ns, end_ns;
    bool leased, warm;
    uint64_t decided, denied, failed, calls_before, refills_before, pending;
    double cpu_before;
    struct bench_histogram latency;
} bench;

static void die(const char *what)
{
    fprintf(stderr, "store-driver: %s\n", what);
    exit(1);
}

static uint64_t draw(void)
{
    bench.random ^= bench.random << 13;
    bench.random ^= bench.random >> 7;
    bench.random ^= bench.random << 17;
    return bench.random;
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* What the rules do for a request: the key's text and its hash. */
static void fill(struct entry *entry, uint64_t key)
{
    static const uint64_t secret[2] = {1, 2};
    memcpy(entry->key, "key:", 4);
    for (int i = 3 + KEY_DIGITS; i > 3; i--) {
        entry->key[i] = (char)('0' + key % 10);
        key /= 10;
    }
    entry->check.key = (struct weir_bytes){entry->key, 4 + KEY_DIGITS};
    entry->check.tag = 0; /* the store has filled in that of the key before */
    weir_siphash128(secret, entry->key, 4 + KEY_DIGITS, entry->check.hash);
}

static void set_up(struct entry *entry)
{
    entry->check = (struct weir_check){
        .limit = &bench.limit,
        .cost = 1,
        .rule = 0,
        .flags = bench.leased ? WEIR_CHECK_LEASED : 0,
    };
    entry->decision =
        (struct weir_decision){.checks = &entry->check, .outcomes = &entry->outcome, .count = 1};
}

static void ended(struct entry *entry, int error)
{
    bench.decided++;
    bench.failed += error != 0;
    bench.denied += error == 0 && entry->decision.verdict == WEIR_DENIED;
    if (bench.warm)
        bench_histogram_record(&bench.latency, bench.now_ns - entry->asked_ns);
    bench.ready[bench.ready_count++] = &entry->decision;
}

static void on_done(void *context, struct weir_decision *decision, int error)
{
    (void)context;
    bench.now_ns = uv_hrtime();
    ended((struct entry *)(void *)decision, error);
}

static void on_idle(uv_idle_t *idle)
{
    (void)idle;
}

static void begin_to_count(void)
{
    bench.warm = true;
    bench.begin_ns = bench.now_ns;
    bench.decided = bench.denied = bench.failed = 0;
    bench.pending = 0;
    bench.calls_before = weir_store_redis_stats(bench.store)->calls;
    bench.refills_before = weir_store_redis_stats(bench.store)->share_refills;
    bench.cpu_before = cpu_seconds();
}

static void turn(uv_prepare_t *prepare)
{
    struct weir_decision **batch = bench.ready;
    size_t count = bench.ready_count;
    (void)prepare;
    bench.now_ns = uv_hrtime();
    if (!bench.warm && bench.now_ns >= bench.begin_ns + WARM_NS)
        begin_to_count();
    if (bench.warm && bench.now_ns >= bench.end_ns) {
        uv_stop(&bench.loop);
        return;
    }
    bench.ready = bench.batch;
    bench.batch = batch;
    bench.ready_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct entry *entry = (struct entry *)(void *)batch[i];
        fill(entry, draw() % bench.keys);
        entry->asked_ns = bench.now_ns;
        entry->decision.deadline_ns = bench.now_ns + SECOND;
    }
    bench.pending += bench.store->ops->submit(bench.store, bench.now_ns, batch, count);
    for (size_t i = 0; i < count; i++)
        if (batch[i]->verdict != WEIR_PENDING)
            ended((struct entry *)(void *)batch[i], 0);
    bench.store->ops->flush(bench.store);
    if (bench.ready_count > 0)
        uv_idle_start(&bench.idle, on_idle);
    else
        uv_idle_stop(&bench.idle);
}

static void make_limit(void)
{
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_GCRA, .rate = RATE, .window_ns = WINDOW_NS};
    if (weir_limit_init(&bench.limit, &spec, NULL) != 0)
        die("limit");
    bench.limit.name = "bench";
}

static int print_command(void)
{
    static const uint16_t first = 0;
    struct entry entry;
    const struct redis_script *script;
    uint16_t slot;
    set_up(&entry);
    fill(&entry, 0);
    entry.check.tag = 1; /* the same for all keys: redis-benchmark fills in one number */
    const struct redis_batch batch = {
        .decision = &entry.decision, .checks = &first, .count = 1, .prefix = "weir:"};
    char *bytes = malloc(redis_script_size(&batch));
    if (bytes == NULL)
        die("out of memory");
    size_t size = redis_script_write(&batch, bytes, &script, &slot);
    /* the script's text follows, to be loaded */
    if (fwrite(bytes, 1, size, stdout) != size ||
        fwrite(script->text, 1, script->size, stdout) != script->size)
        die("cannot write");
    free(bytes);
    return 0;
}

static void open_store(const char *text)
{
    static struct redis_url url;
    struct weir_reason reason = {""};
    if (redis_url_parse(&url, text, &reason) != 0)
        die(reason.text);
    const struct weir_store_redis_options options = {
        .loop = &bench.loop,
        .url = &url,
        .deadline_ns = SECOND,
        .random_seed = uv_hrtime(),
    };
    if (weir_store_redis_open(&bench.store, &options, &reason) != 0)
        die(reason.text);
    bench.store->done = on_done;
    while (weir_store_redis_stats(bench.store)->up == 0)
        uv_run(&bench.loop, UV_RUN_ONCE);
}

static void report(void)
{
    double seconds = (double)(bench.now_ns - bench.begin_ns) / 1e9;
    double decisions = (double)bench.decided;
    double cpu = cpu_seconds() - bench.cpu_before;
    uint64_t calls = weir_store_redis_stats(bench.store)->calls - bench.calls_before;
    uint64_t refills = weir_store_redis_stats(bench.store)->share_refills - bench.refills_before;
    printf("{ \"decisions\": %" PRIu64 ", \"denied\": %" PRIu64 ", \"failed\": %" PRIu64
           ", \"calls\": %" PRIu64 ", \"refills\": %" PRIu64 ", \"waited\": %" PRIu64
           ", \"seconds\": %.6f, \"throughput\": %.1f,"
           " \"cpu_us\": %.4f, \"p50_us\": %.1f, \"p99_us\": %.1f }\n",
           bench.decided, bench.denied, bench.failed, calls, refills, bench.pending, seconds,
           decisions / seconds, cpu / decisions * 1e6,
           (double)bench_histogram_quantile(&bench.latency, 0.5) / 1e3,
           (double)bench_histogram_quantile(&bench.latency, 0.99) / 1e3);
}

static void on_closed(void *context)
{
    (void)context;
    uv_stop(&bench.loop);
}

int main(int argc, char **argv)
{
    make_limit();
    if (argc == 2 && strcmp(argv[1], "--command") == 0)
        return print_command();
    if (argc != 6)
        die("usage: store-driver URL exact|leased DEPTH KEYS SECONDS, or --command");
    size_t depth = strtoul(argv[3], NULL, 10);
    bench.leased = strcmp(argv[2], "leased") == 0;
    bench.keys = strtoull(argv[4], NULL, 10);
    bench.random = 88172645463325252;
    if (depth < 1 || depth > 65536 || bench.keys < 1)
        die("depth is 1 to 65536, keys 1 or more");
    bench.entries = calloc(depth, sizeof *bench.entries);
    bench.ready = calloc(depth, sizeof *bench.ready);
    bench.batch = calloc(depth, sizeof *bench.batch);
    if (bench.entries == NULL || bench.ready == NULL || bench.batch == NULL)
        die("out of memory");
    uv_loop_init(&bench.loop);
    open_store(argv[1]);
    for (size_t i = 0; i < depth; i++) {
        set_up(&bench.entries[i]);
        bench.ready[bench.ready_count++] = &bench.entries[i].decision;
    }
    bench.begin_ns = uv_hrtime();
    bench.end_ns = bench.begin_ns + WARM_NS + (uint64_t)(strtod(argv[5], NULL) * 1e9);
    uv_prepare_init(&bench.loop, &bench.prepare);
    uv_idle_init(&bench.loop, &bench.idle);
    uv_prepare_start(&bench.prepare, turn);
    uv_idle_start(&bench.idle, on_idle);
    uv_run(&bench.loop, UV_RUN_DEFAULT);
    report();
    uv_prepare_stop(&bench.prepare);
    uv_idle_stop(&bench.idle);
    weir_store_redis_shutdown(bench.store, on_closed, NULL);
    uv_run(&bench.loop, UV_RUN_DEFAULT);
    return bench.failed > 0;
}
