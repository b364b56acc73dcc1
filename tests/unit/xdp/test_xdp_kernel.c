/* SPDX-License-Identifier: Apache-2.0 */
/* The program in the kernel (BPF_PROG_TEST_RUN), in virtual time and from two CPUs. Needs root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <endian.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "draw.h"
#include "feature/xdp/attach.h"
#include "feature/xdp/compile.h"
#include "feature/xdp/packet.h"
#include "feature/xdp/samples.h"
#include "feature/xdp/take.h"
#include "frame.h"
#include "model.h"

#define S UINT64_C(1000000000)
#define START (UINT64_C(1700000000) * S)
#define INSTRUCTIONS_MAX 10000 /* that the verifier looks at */

static const uint64_t secret[2] = {1, 2};

static struct weir_xdp_limit limit_of(const char *name, struct weir_limit_spec spec)
{
    struct weir_xdp_limit limit = {.name = name, .bits4 = 32, .bits6 = 64};

    spec.algorithm = WEIR_GCRA;
    assert_int_equal(weir_limit_init(&limit.limit, &spec, NULL), 0);
    return limit;
}

static struct weir_xdp_settings settings_of(const struct weir_xdp_limit *limits, uint32_t count)
{
    return (struct weir_xdp_settings){
        .limits = limits, .limits_count = count, .states = 1024, .sample = 1, .percent = 100};
}

/* Loads the program; skips the test where the kernel admits none. */
static struct weir_xdp_object *load(const struct weir_xdp_settings *settings, bool virtual_clock,
                                    struct xdp_filter *filter)
{
    struct weir_reason reason = {{0}};
    struct weir_xdp_object *object;

    weir_xdp_compile(filter, settings, secret, NULL);
    filter->virtual_clock = virtual_clock;
    int error = weir_xdp_object_load(&object, filter, settings, NULL, &reason);

    if (error < 0 && strstr(reason.text, "not permitted")) {
        print_message("SKIPPED: %s\n", reason.text);
        skip();
    }
    if (error < 0)
        fail_msg("%s", reason.text);
    return object;
}

static bool passes(const struct weir_xdp_object *object, const struct frame *frame, size_t size)
{
    LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame->bytes, .data_size_in = (uint32_t)size,
                .repeat = 1);

    assert_int_equal(bpf_prog_test_run_opts(weir_xdp_object_program(object), &options), 0);
    assert_true(options.retval == XDP_PASS || options.retval == XDP_DROP);
    return options.retval == XDP_PASS;
}

static void set_clock(const struct weir_xdp_object *object, uint64_t now_ns)
{
    uint32_t first = 0;
    int map = weir_xdp_object_map(object, WEIR_XDP_MAP_CLOCK);

    assert_int_equal(bpf_map_update_elem(map, &first, &now_ns, BPF_ANY), 0);
}

static struct xdp_count count_of(const struct weir_xdp_object *object, uint32_t index)
{
    struct weir_xdp_running running = {.maps.fds = {0}};
    struct xdp_count counts[XDP_COUNTS];
    struct weir_reason reason;

    running.maps.fds[WEIR_XDP_MAP_COUNTS] = weir_xdp_object_map(object, WEIR_XDP_MAP_COUNTS);
    if (weir_xdp_counts(&running, counts, &reason) < 0)
        fail_msg("%s", reason.text);
    return counts[index];
}

static void ipv4_frame(struct frame *frame, uint32_t source)
{
    frame_begin(frame);
    frame_ipv4(frame, source, XDP_UDP, 0, 0);
    frame_ports(frame, 53, 0);
}

/* --- Exactness -----------------------------------------------------------------------------------
 */

#define SOURCES 24

/* Three limits, of packets, of bytes and of a /24, charged together or not at all. */
static void decisions_are_those_of_the_exact_model(void **state)
{
    struct weir_xdp_limit limits[3] = {
        limit_of("packets", (struct weir_limit_spec){.rate = 7, .window_ns = S}),
        limit_of("bytes",
                 (struct weir_limit_spec){.rate = 10007, .window_ns = 3 * S, .burst = 9000}),
        limit_of("network", (struct weir_limit_spec){.rate = 30, .window_ns = S, .burst = 40})};
    struct weir_xdp_settings settings = settings_of(limits, 3);
    struct xdp_filter filter;
    struct model models[3][SOURCES];
    uint64_t random = 1, now_ns = START;
    int passed = 0;

    limits[1].bytes = true;
    limits[2].bits4 = 24;
    struct weir_xdp_object *object = load(&settings, true, &filter);

    for (int i = 0; i < 3 * SOURCES; i++)
        model_init(&models[i / SOURCES][i % SOURCES], &limits[i / SOURCES].limit.spec);
    for (int i = 0; i < 20000; i++) {
        uint32_t source = (uint32_t)draw_below(&random, SOURCES);
        uint32_t group[3] = {source, source, source / 8};
        uint64_t size = 60 + draw_below(&random, 1455);
        bool expected = true;
        struct frame frame;

        for (int j = 0; j < 3; j++)
            expected = expected && model_admits(&models[j][group[j]], now_ns, j == 1 ? size : 1);
        for (int j = 0; j < 3 && expected; j++)
            model_charge(&models[j][group[j]],
                         &(struct weir_use){.now_ns = now_ns, .cost = j == 1 ? size : 1});
        ipv4_frame(&frame, 0xc0000200 + (source / 8 << 8) + source);
        set_clock(object, now_ns);
        assert_int_equal(passes(object, &frame, size), expected);
        passed += expected;
        now_ns += draw_below(&random, S / 150);
    }
    assert_int_equal(count_of(object, XDP_PASS_LIMITS).packets, passed);
    assert_in_range(passed, 3000, 17000);
    for (int i = 0; i < 3 * SOURCES; i++)
        model_free(&models[i / SOURCES][i % SOURCES]);
    weir_xdp_object_free(object);
}

#define EACH 100000
#define BURST 50000

struct sender {
    int program, cpu, error;
};

static void *send(void *context)
{
    struct sender *sender = context;
    struct frame frame;
    cpu_set_t cpus;

    ipv4_frame(&frame, 0xc0000201);
    LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame.bytes, .data_size_in = 60,
                .repeat = EACH);
    CPU_ZERO(&cpus);
    CPU_SET(sender->cpu, &cpus);
    pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus); /* one CPU will do as well */
    sender->error = bpf_prog_test_run_opts(sender->program, &options);
    return NULL;
}

static void two_cpus_get_exactly_the_burst_of_200000_packets(void **state)
{
    struct weir_xdp_limit limit = limit_of(
        "packets", (struct weir_limit_spec){
                       .rate = 1, .window_ns = WEIR_WINDOW_MAX_NS / 60000, .burst = BURST});
    struct weir_xdp_settings settings = settings_of(&limit, 1);
    struct xdp_filter filter;
    struct weir_xdp_object *object = load(&settings, true, &filter);
    struct sender senders[2];
    pthread_t threads[2];

    set_clock(object, START);
    for (int i = 0; i < 2; i++) {
        senders[i] = (struct sender){.program = weir_xdp_object_program(object), .cpu = i};
        assert_int_equal(pthread_create(&threads[i], NULL, send, &senders[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(senders[i].error, 0);
    }
    assert_int_equal(count_of(object, XDP_PASS_LIMITS).packets, BURST);
    assert_int_equal(count_of(object, XDP_DROP_LIMIT).packets, 2 * EACH - BURST);
    assert_int_equal(count_of(object, XDP_REASON_COUNT).packets, 2 * EACH - BURST);
    weir_xdp_object_free(object);
}

/* Their states take room from each other, and never from one that denies. */
static void a_flood_of_spoofed_sources_pardons_none_that_is_denied(void **state)
{
    struct weir_xdp_limit limit =
        limit_of("packets", (struct weir_limit_spec){.rate = 3, .window_ns = WEIR_WINDOW_MAX_NS});
    struct weir_xdp_settings settings = settings_of(&limit, 1);
    struct xdp_filter filter;
    struct weir_xdp_object *object = load(&settings, false, &filter);
    uint64_t random = 1;
    struct frame frame;

    for (int round = 0; round < 5; round++) {
        for (uint32_t source = 1; source <= 100; source++) {
            ipv4_frame(&frame, 0xc0000200 + source);
            assert_int_equal(passes(object, &frame, 60), round < 3);
        }
        for (int i = 0; round >= 3 && i < 20000; i++) {
            ipv4_frame(&frame, 0x0a000000 + (uint32_t)draw_below(&random, 1 << 24));
            (void)passes(object, &frame, 60);
        }
    }
    for (uint32_t source = 1; source <= 100; source++) {
        ipv4_frame(&frame, 0xc0000200 + source);
        assert_false(passes(object, &frame, 60));
    }
    weir_xdp_object_free(object);
}

/* As where a CPU of a guest stops in a set. */
static void a_set_that_stays_locked_is_one_without_room(void **state)
{
    struct weir_xdp_limit limit =
        limit_of("packets", (struct weir_limit_spec){.rate = 3, .window_ns = WEIR_WINDOW_MAX_NS});
    struct weir_xdp_settings settings = settings_of(&limit, 1);

    for (int passing = 0; passing < 2; passing++) {
        struct xdp_packet packet = {.family = 4};
        struct xdp_filter filter;
        struct xdp_set set;
        struct frame frame;

        settings.no_room_passes = passing == 1;
        struct weir_xdp_object *object = load(&settings, false, &filter);
        int map = weir_xdp_object_map(object, WEIR_XDP_MAP_SETS);

        ipv4_frame(&frame, 0xc0000201);
        memcpy(&packet.source[3], (uint8_t[4]){192, 0, 2, 1}, 4);
        uint32_t index = (uint32_t)source_hash(&filter.limits[0], &packet) & filter.sets_mask;

        assert_true(passes(object, &frame, 60));
        assert_int_equal(bpf_map_lookup_elem(map, &index, &set), 0);
        uint64_t first = set.keys[0];

        assert_true(first & XDP_WAY_USED);
        set.keys[0] = XDP_LOCKED;
        assert_int_equal(bpf_map_update_elem(map, &index, &set, BPF_ANY), 0);
        assert_int_equal(passes(object, &frame, 60), passing);
        assert_int_equal(count_of(object, XDP_DROP_NO_ROOM).packets, !passing);
        set.keys[0] = first;
        assert_int_equal(bpf_map_update_elem(map, &index, &set, BPF_ANY), 0);
        for (int i = 0; i < 3; i++)
            assert_int_equal(passes(object, &frame, 60), i < 2);
        weir_xdp_object_free(object);
    }
}

/* --- Which packets -------------------------------------------------------------------------------
 */

static void lists_come_before_limits_and_allow_wins(void **state)
{
    static const struct {
        uint32_t source;
        uint32_t reason;
    } cases[] = {
        {0x0a010203, XDP_PASS_ALLOWED}, /* in both lists */
        {0x0a020203, XDP_DROP_BANNED},
        {0xc0000201, XDP_DROP_LIMIT}, /* ::/0 is banned, which is no IPv4 network */
    };
    struct weir_xdp_limit limit =
        limit_of("none", (struct weir_limit_spec){.rate = 0, .window_ns = S});
    struct weir_xdp_settings settings = settings_of(&limit, 1);
    struct weir_cidr allow = {{4, {10, 1}}, 16};
    struct weir_cidr ban[] = {{{4, {10}}, 8}, {{4, {10, 1, 2}}, 24}, {{6, {0}}, 0}};
    struct xdp_filter filter;
    struct frame frame;

    settings.allow = &allow;
    settings.allow_count = 1;
    settings.ban = ban;
    settings.ban_count = 3;
    struct weir_xdp_object *object = load(&settings, false, &filter);

    for (uint32_t i = 0; i < 3; i++) {
        ipv4_frame(&frame, cases[i].source);
        assert_int_equal(passes(object, &frame, 60), cases[i].reason == XDP_PASS_ALLOWED);
        assert_int_equal(count_of(object, cases[i].reason).packets, 1);
        assert_int_equal(count_of(object, cases[i].reason).bytes, 60);
    }
    weir_xdp_object_free(object);
}

static void a_limit_meets_only_its_protocol_and_ports(void **state)
{
    static const struct {
        uint8_t protocol;
        uint16_t port;
        uint8_t flags;
        bool passes;
    } cases[] = {
        {XDP_UDP, 53, 0, false},    {XDP_UDP, 54, 0, true},      {XDP_UDP, 99, 0, true},
        {XDP_UDP, 100, 0, false},   {XDP_UDP, 200, 0, false},    {XDP_UDP, 201, 0, true},
        {XDP_TCP, 53, 0x10, true},  {XDP_TCP, 443, 0x02, false}, {XDP_TCP, 443, 0x12, true},
        {XDP_ICMP, 53, 0x10, true},
    };
    struct weir_xdp_limit limits[2] = {
        limit_of("dns", (struct weir_limit_spec){.rate = 0, .window_ns = S}),
        limit_of("syn", (struct weir_limit_spec){.rate = 0, .window_ns = S})};
    struct weir_xdp_settings settings = settings_of(limits, 2);
    struct xdp_filter filter;

    limits[0].protocol = WEIR_XDP_UDP;
    limits[0].ports_count = 2;
    limits[0].ports[0] = (struct weir_xdp_ports){53, 53};
    limits[0].ports[1] = (struct weir_xdp_ports){100, 200};
    limits[1].syn = true;
    struct weir_xdp_object *object = load(&settings, false, &filter);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct frame frame;

        frame_begin(&frame);
        frame_ipv4(&frame, 0xc0000201, cases[i].protocol, 0, 0);
        frame_ports(&frame, cases[i].port, cases[i].flags);
        assert_int_equal(passes(object, &frame, frame.size), cases[i].passes);
    }
    weir_xdp_object_free(object);
}

/* Nothing that a sender may write keeps a packet from a limit of its protocol or ports. */
static void a_packet_that_hides_its_transport_meets_every_limit(void **state)
{
    static const uint8_t site[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};

    for (int kind = 0; kind < 3; kind++) {
        for (int headers = XDP_HEADERS_MAX; headers <= XDP_HEADERS_MAX + 1; headers++) {
            struct weir_xdp_limit limit =
                limit_of("none", (struct weir_limit_spec){.rate = 0, .window_ns = S});
            struct weir_xdp_settings settings = settings_of(&limit, 1);
            struct xdp_filter filter;
            struct frame frame;

            limit.protocol = kind == 0 ? WEIR_XDP_TCP : WEIR_XDP_ANY;
            limit.ports_count = kind == 1;
            limit.ports[0] = (struct weir_xdp_ports){443, 443};
            limit.syn = kind == 2;
            struct weir_xdp_object *object = load(&settings, false, &filter);

            frame_begin(&frame);
            frame_ipv6(&frame, site, 60);
            for (int i = 1; i <= headers; i++)
                frame_put(&frame, (uint8_t[8]){i < headers ? 60 : XDP_UDP}, 8);
            frame_ports(&frame, 53, 0);
            assert_int_equal(passes(object, &frame, frame.size), headers <= XDP_HEADERS_MAX);
            weir_xdp_object_free(object);
        }
    }
}

static void neighbours_and_other_protocols_pass(void **state)
{
    static const uint8_t local[16] = {0xfe, 0x80, [15] = 1}, none[16] = {0};
    struct weir_xdp_limit limit =
        limit_of("none", (struct weir_limit_spec){.rate = 0, .window_ns = S});
    struct weir_xdp_settings settings = settings_of(&limit, 1);
    struct xdp_filter filter;
    struct weir_xdp_object *object = load(&settings, false, &filter);
    struct frame frame;

    ipv4_frame(&frame, 0);
    assert_true(passes(object, &frame, 60));
    frame_begin(&frame);
    frame_ipv6(&frame, local, XDP_UDP);
    assert_true(passes(object, &frame, 60));
    frame_begin(&frame);
    frame_ipv6(&frame, none, XDP_UDP);
    assert_true(passes(object, &frame, 60));
    assert_int_equal(count_of(object, XDP_PASS_LINK).packets, 3);
    frame_begin(&frame);
    frame_number(&frame, 0x0806);
    assert_true(passes(object, &frame, 60));
    assert_int_equal(count_of(object, XDP_PASS_NO_IP).packets, 1);
    ipv4_frame(&frame, 0xc0000201);
    assert_true(passes(object, &frame, 30));
    assert_int_equal(count_of(object, XDP_PASS_MALFORMED).packets, 1);
    assert_false(passes(object, &frame, 60));
    weir_xdp_object_free(object);
}

/* --- Rollout -------------------------------------------------------------------------------------
 */

static void a_dry_run_counts_and_drops_nothing(void **state)
{
    struct weir_xdp_limit limit =
        limit_of("few", (struct weir_limit_spec){.rate = 3, .window_ns = WEIR_WINDOW_MAX_NS});
    struct weir_xdp_settings settings = settings_of(&limit, 1);

    for (int of_limit = 0; of_limit < 2; of_limit++) {
        struct xdp_filter filter;
        struct frame frame;

        limit.dry_run = of_limit == 1;
        settings.dry_run = of_limit == 0;
        struct weir_xdp_object *object = load(&settings, false, &filter);

        ipv4_frame(&frame, 0xc0000201);
        for (int i = 0; i < 10; i++)
            assert_true(passes(object, &frame, 60));
        assert_int_equal(count_of(object, XDP_DRY_LIMIT).packets, 7);
        assert_int_equal(count_of(object, XDP_DROP_LIMIT).packets, 0);
        weir_xdp_object_free(object);
    }
}

static void the_share_of_sources_grows_and_keeps_those_it_had(void **state)
{
    struct weir_xdp_limit limit =
        limit_of("none", (struct weir_limit_spec){.rate = 0, .window_ns = S});
    struct weir_xdp_settings settings = settings_of(&limit, 1);
    static const uint32_t percents[] = {0, 10, 50, 100};
    static bool dropped[1000];
    int count = 0;

    memset(dropped, 0, sizeof dropped);
    for (int i = 0; i < 4; i++) {
        struct xdp_filter filter;

        settings.percent = percents[i];
        struct weir_xdp_object *object = load(&settings, false, &filter);

        for (uint32_t source = 0; source < 1000; source++) {
            struct frame frame;

            ipv4_frame(&frame, 0xc0000201 + source);
            bool drop = !passes(object, &frame, 60);

            assert_true(drop || !dropped[source]);
            count += drop && !dropped[source];
            dropped[source] |= drop;
        }
        /* Six standard deviations around the share. */
        assert_in_range(count + 100, (int)percents[i] * 10 + 5, (int)percents[i] * 10 + 195);
        if (percents[i] % 100 == 0)
            assert_int_equal(count, percents[i] * 10);
        weir_xdp_object_free(object);
    }
}

static void count_source(void *context, const struct xdp_sample *sample)
{
    int *counts = context;

    counts[be32toh(sample->source[3]) & 63]++;
}

/* A flood that takes its sources in turn hides none of them. */
static void one_drop_in_64_is_sampled_of_every_source(void **state)
{
    struct weir_xdp_limit limit =
        limit_of("none", (struct weir_limit_spec){.rate = 0, .window_ns = S});
    struct weir_xdp_settings settings = settings_of(&limit, 1);
    struct weir_xdp_running running = {.maps.fds = {0}};
    struct weir_reason reason;
    struct xdp_filter filter;
    int counts[64] = {0}, sum = 0;
    cpu_set_t cpus, first;

    settings.sample = 64;
    struct weir_xdp_object *object = load(&settings, false, &filter);

    /* The counters are those of a CPU. */
    assert_int_equal(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    CPU_ZERO(&first);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&first) == 0; cpu++)
        if (CPU_ISSET(cpu, &cpus))
            CPU_SET(cpu, &first);
    assert_int_equal(sched_setaffinity(0, sizeof first, &first), 0);
    for (uint32_t i = 0; i < 64 * 64 * 4; i++) {
        struct frame frame;

        ipv4_frame(&frame, 0xc0000200 + i % 64);
        assert_false(passes(object, &frame, 60));
    }
    assert_int_equal(sched_setaffinity(0, sizeof cpus, &cpus), 0);
    running.maps.fds[WEIR_XDP_MAP_DROPS] = weir_xdp_object_map(object, WEIR_XDP_MAP_DROPS);
    assert_int_equal(weir_xdp_samples(&running, 0, count_source, counts, &reason), 0);
    for (int i = 0; i < 64; i++) {
        assert_in_range(counts[i], 1, 8);
        sum += counts[i];
    }
    assert_in_range(sum, 250, 262); /* 256, less or more by the ends of the row */
    weir_xdp_object_free(object);
}

/* --- Without /sys --------------------------------------------------------------------------------
 */

#define CHILD_MAY_NOT 77

/* In a process of its own, as libbpf reads the number of processors once. Returns its exit status.
 */
static int count_without_sys(void)
{
    struct weir_xdp_running running = {.maps.fds = {0}};
    struct xdp_count counts[XDP_COUNTS];
    struct weir_reason reason = {{0}};

    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", "/sys", "tmpfs", 0, NULL) < 0)
        return CHILD_MAY_NOT;
    int error = weir_xdp_counts(&running, counts, &reason);

    fprintf(stderr, "%s\n", reason.text);
    return error != WEIR_ERR_IO || !strstr(reason.text, "/sys/devices/system/cpu/possible") ||
           !strstr(reason.text, "No such file");
}

/* As in a chroot or a container. Comes before what makes libbpf read it. */
static void counters_without_sys_say_what_is_missing(void **state)
{
    int status;
    pid_t child = fork();

    if (child == 0)
        _exit(count_without_sys());
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CHILD_MAY_NOT)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- The verifier --------------------------------------------------------------------------------
 */

static void the_verifier_looks_at_few_instructions(void **state)
{
    struct weir_xdp_limit limits[XDP_LIMITS_MAX];
    struct weir_xdp_settings settings = settings_of(limits, XDP_LIMITS_MAX);
    struct weir_cidr allow = {{4, {10}}, 8};
    static const char *const names[] = {"a", "b", "c", "d"};
    struct xdp_filter filter;
    struct bpf_prog_info info;
    uint32_t size = sizeof info;

    for (int i = 0; i < XDP_LIMITS_MAX; i++) {
        limits[i] = limit_of(names[i], (struct weir_limit_spec){.rate = 7, .window_ns = S});
        limits[i].bytes = i % 2 == 1;
        limits[i].ports_count = WEIR_XDP_PORTS_MAX;
        for (int j = 0; j < WEIR_XDP_PORTS_MAX; j++)
            limits[i].ports[j] = (struct weir_xdp_ports){(uint16_t)(j + 1), (uint16_t)(j + 2)};
    }
    settings.allow = &allow;
    settings.allow_count = 1;
    settings.percent = 50;
    /* One limit alone is inlined into the program. */
    for (int i = 0; i < 4; i++) {
        settings.limits_count = i % 2 == 0 ? XDP_LIMITS_MAX : 1;
        settings.drop_fragments = i < 2;
        limits[0].bytes = i < 2;
        struct weir_xdp_object *object = load(&settings, false, &filter);

        memset(&info, 0, sizeof info);
        assert_int_equal(bpf_obj_get_info_by_fd(weir_xdp_object_program(object), &info, &size), 0);
        print_message("%u verified instructions\n", info.verified_insns);
        assert_in_range(info.verified_insns, 1, INSTRUCTIONS_MAX);
        weir_xdp_object_free(object);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_without_sys_say_what_is_missing),
        cmocka_unit_test(decisions_are_those_of_the_exact_model),
        cmocka_unit_test(two_cpus_get_exactly_the_burst_of_200000_packets),
        cmocka_unit_test(a_flood_of_spoofed_sources_pardons_none_that_is_denied),
        cmocka_unit_test(a_set_that_stays_locked_is_one_without_room),
        cmocka_unit_test(lists_come_before_limits_and_allow_wins),
        cmocka_unit_test(a_limit_meets_only_its_protocol_and_ports),
        cmocka_unit_test(a_packet_that_hides_its_transport_meets_every_limit),
        cmocka_unit_test(neighbours_and_other_protocols_pass),
        cmocka_unit_test(a_dry_run_counts_and_drops_nothing),
        cmocka_unit_test(the_share_of_sources_grows_and_keeps_those_it_had),
        cmocka_unit_test(one_drop_in_64_is_sampled_of_every_source),
        cmocka_unit_test(the_verifier_looks_at_few_instructions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
