/* SPDX-License-Identifier: Apache-2.0 */
/* The table beside a bare loop that hashes the same keys, loads and stores the same cache lines,
 * and does nothing else.
 *
 *     bench-table [-r ROUNDS] [MILLIONS_OF_KEYS ...]          default: 15 rounds of 1 and 20
 *
 * Keys are texts of 12 bytes, live under a gcra limit, in a table that is 75 % full; they come in
 * random order, hashed in the loop with SipHash-1-3-128. The bare loop has an array of as many
 * buckets of 128 bytes; a key loads and stores one word in its bucket's first line, where the table
 * has its lock and tags, and a slot of 16 bytes, which is in the first line for two slots of
 * six. Both prefetch in batches of 32; single calls wait for each other, as a caller that looks at
 * the verdict makes them do.
 *
 * Time is the thread's CPU time, so that other work on the machine disturbs less. All loops take
 * turns; what is printed is the median over the rounds, of the times and of the ratios within one.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/text/siphash.h"
#include "table/submit.h"
#include "table/table.h"

#define BATCH 32
#define CHECKS 3
#define ROUNDS_MAX 101
#define ROUNDS_DEFAULT 15
#define TEXT 12
#define START UINT64_C(1700000000000000000)
#define OPERATIONS (UINT64_C(1) << 19) /* of one loop in one round */

enum loop {
    BARE,
    TABLE,
    TABLE_REPORTS,
    BARE_SINGLE,
    TABLE_SINGLE,
    TABLE_THREE,
    TABLE_HOT,
    TABLE_TWO_THREADS,
    TABLE_HOT_TWO_THREADS,
    LOOPS,
};

static const char *const loop_names[LOOPS] = {
    "bare loop, batches of 32",
    "table, batches of 32, verdicts",
    "table, batches of 32, full reports",
    "bare, single calls",
    "table, single calls",
    "table, 3 checks a decision, batches of 32",
    "table, one hot key, batches of 32",
    "table, two threads, batches of 32, a thread",
    "table, one hot key, two threads, a thread",
};

struct one {
    struct weir_check checks[CHECKS];
    struct weir_outcome outcomes[CHECKS];
    struct weir_decision decision;
};

struct bench {
    struct weir_table *table;
    struct weir_limit limits[CHECKS];
    uint64_t secret[2];
    uint64_t keys, now_ns;
    char (*texts)[TEXT]; /* in the order of use */
    uint64_t text_count;
    uint8_t *bare;
    uint64_t bare_buckets;
    uint64_t sink;
};

struct runner {
    struct bench *bench;
    struct weir_table_owner *owner;
    struct one ones[BATCH];
    struct weir_decision *batch[BATCH];
    uint64_t at; /* in texts */
    uint64_t sum;
    pthread_barrier_t *start;
    double ns;
    bool hot;
};

static void die(const char *what)
{
    fprintf(stderr, "bench-table: %s\n", what);
    exit(1);
}

static uint64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void make_text(char text[TEXT], uint64_t key)
{
    char buffer[24];

    snprintf(buffer, sizeof buffer, "user%08lu", (unsigned long)key % 100000000);
    memcpy(text, buffer, TEXT);
}

static void *map_huge(uint64_t bytes)
{
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (map == MAP_FAILED)
        die("out of memory");
    madvise(map, bytes, MADV_HUGEPAGE);
    memset(map, 0, bytes);
    return map;
}

static const char *next_text(struct runner *runner)
{
    const char *text = runner->bench->texts[runner->at];

    runner->at = runner->at + 1 < runner->bench->text_count ? runner->at + 1 : 0;
    return text;
}

/* --- The bare loop -------------------------------------------------------------------------- */

struct bare_slot {
    uint64_t words[2];
};

__extension__ typedef unsigned __int128 wide_product;

static inline uint8_t *bare_bucket(const struct bench *bench, const uint64_t hash[2])
{
    return bench->bare + 128 * (uint64_t)(((wide_product)hash[0] * bench->bare_buckets) >> 64);
}

static inline struct bare_slot *bare_slot(uint8_t *bucket, const uint64_t hash[2])
{
    return (struct bare_slot *)(void *)(bucket + 32 + 16 * ((hash[1] >> 32) * 6 >> 32));
}

static inline uint64_t bare_touch(uint8_t *bucket, struct bare_slot *slot, uint64_t now_ns)
{
    uint64_t *first = (uint64_t *)(void *)bucket;
    struct bare_slot value = *slot;

    *first += 1;
    value.words[0] += now_ns;
    value.words[1] ^= now_ns;
    *slot = value;
    return value.words[0];
}

static void run_bare(struct runner *runner)
{
    struct bench *bench = runner->bench;

    for (uint64_t done = 0; done < OPERATIONS; done += BATCH) {
        uint8_t *buckets[BATCH];
        struct bare_slot *slots[BATCH];

        for (uint32_t i = 0; i < BATCH; i++) {
            uint64_t hash[2];

            weir_siphash128(bench->secret, next_text(runner), TEXT, hash);
            buckets[i] = bare_bucket(bench, hash);
            slots[i] = bare_slot(buckets[i], hash);
            __builtin_prefetch(buckets[i], 1, 3);
            __builtin_prefetch(slots[i], 1, 3);
        }
        for (uint32_t i = 0; i < BATCH; i++)
            runner->sum += bare_touch(buckets[i], slots[i], bench->now_ns);
    }
}

static __attribute__((noinline)) uint64_t bare_call(struct bench *bench, const char *text)
{
    uint64_t hash[2];

    weir_siphash128(bench->secret, text, TEXT, hash);

    uint8_t *bucket = bare_bucket(bench, hash);

    return bare_touch(bucket, bare_slot(bucket, hash), bench->now_ns);
}

/* The next key waits for the result (below 2^63, which the compiler does not know). */
static inline const char *after(const char *text, uint64_t result)
{
    __asm__ volatile("" : "+r"(result));
    return text + (result >> 63);
}

static void run_bare_single(struct runner *runner)
{
    uint64_t result = 0;

    for (uint64_t i = 0; i < OPERATIONS; i++)
        result = bare_call(runner->bench, after(next_text(runner), result)) & INT64_MAX;
    runner->sum += result;
}

/* --- The table ------------------------------------------------------------------------------ */

static inline void fill(struct runner *runner, struct one *one, uint32_t count)
{
    struct bench *bench = runner->bench;

    for (uint32_t i = 0; i < count; i++)
        weir_siphash128(bench->secret, runner->hot ? bench->texts[0] : next_text(runner), TEXT,
                        one->checks[i].hash);
    weir_table_prefetch(runner->owner, &one->decision);
}

/* What stays the same in all decisions of a loop. */
static void prepare(struct runner *runner, uint32_t count)
{
    for (uint32_t b = 0; b < BATCH; b++) {
        runner->ones[b].decision.count = (uint16_t)count;
        for (uint32_t i = 0; i < count; i++) {
            runner->ones[b].checks[i].limit = &runner->bench->limits[i];
            runner->ones[b].checks[i].cost = 1;
        }
    }
}

static void run_batches(struct runner *runner, uint32_t count, bool reports)
{
    struct bench *bench = runner->bench;

    prepare(runner, count);
    for (uint64_t done = 0; done < OPERATIONS; done += BATCH) {
        for (uint32_t i = 0; i < BATCH; i++)
            fill(runner, &runner->ones[i], count);
        weir_table_submit(runner->owner, bench->now_ns, runner->batch, BATCH);
        for (uint32_t i = 0; i < BATCH; i++) {
            runner->sum += runner->ones[i].decision.verdict;
            if (reports) {
                struct weir_report report;

                weir_decision_report(&runner->ones[i].decision, 0, &report);
                runner->sum += report.remaining + report.reset_after_ns;
            }
        }
    }
}

static void run_single(struct runner *runner)
{
    struct bench *bench = runner->bench;
    struct one *one = &runner->ones[0];
    uint64_t result = 0;

    prepare(runner, 1);
    for (uint64_t i = 0; i < OPERATIONS; i++) {
        weir_siphash128(bench->secret, after(next_text(runner), result), TEXT, one->checks[0].hash);
        weir_table_submit(runner->owner, bench->now_ns, runner->batch, 1);
        result = one->decision.verdict;
    }
    runner->sum += result;
}

static void *run_thread(void *argument)
{
    struct runner *runner = argument;

    pthread_barrier_wait(runner->start);

    uint64_t begin = cpu_ns();

    run_batches(runner, 1, false);
    runner->ns = (double)(cpu_ns() - begin) / (double)OPERATIONS;
    return NULL;
}

/* Two threads at the same time; the mean of their times an operation. */
static double time_two_threads(struct runner runners[2], bool hot)
{
    pthread_t threads[2];
    pthread_barrier_t start;

    pthread_barrier_init(&start, NULL, 2);
    for (uint32_t i = 0; i < 2; i++) {
        runners[i].start = &start;
        runners[i].hot = hot;
        if (pthread_create(&threads[i], NULL, run_thread, &runners[i]) != 0)
            die("no thread");
    }
    for (uint32_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        runners[i].hot = false;
    }
    pthread_barrier_destroy(&start);
    return (runners[0].ns + runners[1].ns) / 2;
}

static double time_loop(struct runner runners[2], enum loop loop)
{
    struct runner *runner = &runners[0];
    struct bench *bench = runner->bench;

    bench->now_ns += 1000;
    if (loop == TABLE_TWO_THREADS || loop == TABLE_HOT_TWO_THREADS)
        return time_two_threads(runners, loop == TABLE_HOT_TWO_THREADS);

    uint64_t begin = cpu_ns();

    if (loop == BARE)
        run_bare(runner);
    else if (loop == BARE_SINGLE)
        run_bare_single(runner);
    else if (loop == TABLE_SINGLE)
        run_single(runner);
    else if (loop == TABLE_THREE)
        run_batches(runner, CHECKS, false);
    else {
        runner->hot = loop == TABLE_HOT;
        run_batches(runner, 1, loop == TABLE_REPORTS);
        runner->hot = false;
    }
    return (double)(cpu_ns() - begin) / (double)OPERATIONS;
}

/* --- Setting up and printing ---------------------------------------------------------------- */

/* Every key gets its slot, and the texts an order of use that has no order. */
static void fill_table(struct bench *bench, struct weir_table_owner *owner)
{
    uint64_t random = 88172645463325252u;
    struct one one = {.checks = {{.limit = &bench->limits[0], .cost = 1}}};
    struct weir_decision *decision = &one.decision;

    decision->checks = one.checks;
    decision->outcomes = one.outcomes;
    decision->count = 1;
    for (uint64_t key = 0; key < bench->keys; key++) {
        char text[TEXT];

        make_text(text, key);
        weir_siphash128(bench->secret, text, TEXT, one.checks[0].hash);
        weir_table_submit(owner, bench->now_ns, &decision, 1);
    }
    for (uint64_t i = 0; i < bench->text_count; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        make_text(bench->texts[i], random % bench->keys);
    }
}

static struct weir_limit make_limit(struct bench *bench, uint64_t rate)
{
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_GCRA, .rate = rate, .window_ns = UINT64_C(3600) * 1000000000};
    struct weir_limit limit;

    if (weir_limit_init(&limit, &spec, NULL) < 0 || weir_table_intern(bench->table, &limit) < 0)
        die("no limit");
    return limit;
}

static void open_bench(struct bench *bench, uint64_t keys)
{
    struct weir_table_options options = {
        .bytes = keys * 4 / 3 / 6 * 128 * 108 / 100, .wall_ns = START, .secret = {7, 9}};
    struct weir_reason reason;
    struct weir_table_stats stats;

    *bench = (struct bench){.keys = keys, .now_ns = START};
    if (weir_table_open(&bench->table, &options, &reason) < 0)
        die(reason.text);
    memcpy(bench->secret, weir_table_secret(bench->table), sizeof bench->secret);
    for (uint32_t i = 0; i < CHECKS; i++)
        bench->limits[i] = make_limit(bench, 1000);
    weir_table_stats(bench->table, START, &stats);
    bench->keys = stats.slots * 3 / 4;
    bench->bare_buckets = stats.slots / 6;
    bench->bare = map_huge(bench->bare_buckets * 128);
    bench->text_count = keys < 8000000 ? keys : 8000000;
    bench->texts = map_huge(bench->text_count * TEXT + 8);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const double *values, uint32_t count)
{
    double sorted[ROUNDS_MAX];

    memcpy(sorted, values, count * sizeof *values);
    qsort(sorted, count, sizeof *sorted, compare_doubles);
    return sorted[count / 2];
}

/* The loop that another one is compared with. */
static enum loop base_of(enum loop loop)
{
    if (loop == TABLE_SINGLE || loop == BARE_SINGLE)
        return BARE_SINGLE;
    return BARE;
}

static void print_results(double times[LOOPS][ROUNDS_MAX], uint32_t rounds)
{
    double speedup[ROUNDS_MAX];

    for (uint32_t loop = 0; loop < LOOPS; loop++) {
        double ratios[ROUNDS_MAX];

        for (uint32_t i = 0; i < rounds; i++)
            ratios[i] = times[loop][i] / times[base_of(loop)][i];
        printf("  %-46s %7.1f ns  %5.2fx\n", loop_names[loop], median(times[loop], rounds),
               median(ratios, rounds));
    }
    for (uint32_t i = 0; i < rounds; i++)
        speedup[i] = 2 * times[TABLE][i] / times[TABLE_TWO_THREADS][i];
    printf("  two threads do %.2fx of one\n", median(speedup, rounds));
}

static void run_bench(uint64_t keys, uint32_t rounds)
{
    static double times[LOOPS][ROUNDS_MAX];
    struct bench bench;
    static struct runner runners[2];
    struct weir_table_stats stats;

    open_bench(&bench, keys);
    for (uint32_t t = 0; t < 2; t++) {
        runners[t] = (struct runner){.bench = &bench, .at = t * bench.text_count / 2};
        if (weir_table_attach(bench.table, &runners[t].owner) < 0)
            die("cannot attach");
        for (uint32_t i = 0; i < BATCH; i++) {
            runners[t].ones[i].decision.checks = runners[t].ones[i].checks;
            runners[t].ones[i].decision.outcomes = runners[t].ones[i].outcomes;
            runners[t].batch[i] = &runners[t].ones[i].decision;
        }
    }
    fill_table(&bench, runners[0].owner);
    weir_table_stats(bench.table, START, &stats);
    printf("%.1f million keys, %.1f bytes of region a key, %.4f %% evicted on the way\n",
           (double)bench.keys / 1e6, (double)stats.bytes / (double)bench.keys,
           100.0 * (double)stats.evictions / (double)bench.keys);
    for (uint32_t round = 0; round < rounds + 1; round++) /* the first warms up */
        for (uint32_t loop = 0; loop < LOOPS; loop++)
            times[loop][round > 0 ? round - 1 : 0] = time_loop(runners, (enum loop)loop);
    print_results(times, rounds);
    for (uint32_t t = 0; t < 2; t++) {
        bench.sink += runners[t].sum;
        weir_table_detach(runners[t].owner);
    }
    weir_table_close(bench.table);
    munmap(bench.bare, bench.bare_buckets * 128);
    munmap(bench.texts, bench.text_count * TEXT + 8);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    uint32_t rounds = ROUNDS_DEFAULT;
    int option;

    while ((option = getopt(argc, argv, "r:")) != -1) {
        if (option != 'r' || atoi(optarg) < 1 || atoi(optarg) >= ROUNDS_MAX) {
            fprintf(stderr, "usage: bench-table [-r ROUNDS] [MILLIONS_OF_KEYS ...]\n");
            return 2;
        }
        rounds = (uint32_t)atoi(optarg);
    }
    if (optind == argc) {
        run_bench(1000000, rounds);
        run_bench(20000000, rounds);
    }
    for (int i = optind; i < argc; i++)
        run_bench((uint64_t)(atof(argv[i]) * 1e6), rounds);
    return 0;
}
