/* SPDX-License-Identifier: Apache-2.0 */
/* What a packet costs: xdp-driver CASE INTERFACE
 *
 * Prints nanoseconds a packet, of one core; run.py sets up namespaces, nftables and iptables.
 *   empty, one, many, four  the program alone (BPF_PROG_TEST_RUN): one that drops at once; weir's,
 *                           which admits, with one source and with 32,768, and by four limits
 *   live-drop, live-weir    frames from a driver's page pool (BPF_F_TEST_XDP_LIVE_FRAMES), dropped
 * by a program that does nothing else, and by weir's, at its limit live-pass               the same
 * frames, passed up to what the kernel does with them
 */
#include <endian.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "feature/xdp/compile.h"
#include "feature/xdp/object.h"

#define PACKETS 500000
#define ROUNDS 5
#define SOURCES 32768

static uint8_t packet[60] = {
    [12] = 0x08, 0x00, 0x45, 0x00, 0x00, 46,   [22] = 64, 17,   [26] = 198, 18, 0,
    1,           10,   9,    0,    1,    0x13, 0x88,      0x00, 9,          0,  26};

/* CPU time: the machine may do other things besides. */
static double now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* A program that returns a constant. */
static int constant(int verdict)
{
    const struct bpf_insn code[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = verdict},
        {.code = BPF_JMP | BPF_EXIT},
    };

    return bpf_prog_load(BPF_PROG_TYPE_XDP, "constant", "Apache-2.0", code, 2, NULL);
}

/* weir's program: `count` limits of `rate` packets a second. */
static int weir(uint32_t count, uint64_t rate, uint32_t spread)
{
    static const char *const names[WEIR_XDP_LIMITS_MAX] = {"a", "b", "c", "d"};
    static struct weir_xdp_object *object;
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_GCRA, .rate = rate, .window_ns = 1000000000, .burst = rate};
    struct weir_xdp_limit limits[WEIR_XDP_LIMITS_MAX];
    const struct weir_xdp_settings settings = {.limits = limits,
                                               .limits_count = count,
                                               .states = 65536,
                                               .sample = 1 << 20,
                                               .percent = 100};
    const uint64_t secret[2] = {1, 2};
    struct weir_reason reason = {{0}};
    struct xdp_filter filter;

    for (uint32_t i = 0; i < count; i++) {
        limits[i] = (struct weir_xdp_limit){.name = names[i], .bits4 = 32, .bits6 = 64};
        if (weir_limit_init(&limits[i].limit, &spec, &reason) < 0)
            return -1;
    }
    weir_xdp_compile(&filter, &settings, secret, NULL);
    filter.spread = spread;
    if (weir_xdp_object_load(&object, &filter, &settings, NULL, &reason) < 0) {
        fprintf(stderr, "%s\n", reason.text);
        return -1;
    }
    return weir_xdp_object_program(object);
}

/* IP takes only what is for the interface, with a right checksum. */
static void address(const char *name)
{
    struct ifreq request = {0};
    uint32_t sum = 0;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &request) < 0) {
        perror(name);
        exit(EXIT_FAILURE);
    }
    memcpy(packet, request.ifr_hwaddr.sa_data, 6);
    packet[6] = 2;
    for (int i = 14; i < 34; i += 2)
        sum += (uint32_t)(packet[i] << 8 | packet[i + 1]);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~(sum + (sum >> 16)) & 0xffff;
    packet[24] = (uint8_t)(sum >> 8);
    packet[25] = (uint8_t)sum;
}

/* The least of some rounds: what the machine does besides only adds. */
static double measure(int program, int interface)
{
    struct xdp_md context = {.data_end = sizeof packet, .ingress_ifindex = (uint32_t)interface};
    double best = 1e18;

    for (int i = 0; i <= ROUNDS; i++) {
        LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = packet, .data_size_in = sizeof packet,
                    .repeat = PACKETS);
        if (interface > 0) {
            options.flags = BPF_F_TEST_XDP_LIVE_FRAMES;
            options.ctx_in = &context;
            options.ctx_size_in = sizeof context;
        }
        double began_ns = now_ns();

        if (bpf_prog_test_run_opts(program, &options) < 0) {
            perror("xdp-driver");
            exit(EXIT_FAILURE);
        }
        double ns = (now_ns() - began_ns) / PACKETS;

        if (i > 0 && ns < best)
            best = ns;
    }
    return best;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    int interface = argc > 2 ? (int)if_nametoindex(argv[2]) : 0, program = -1;
    const uint64_t all = 1000000000;

    if (interface > 0)
        address(argv[2]);

    if (!strcmp(name, "empty") || !strcmp(name, "live-drop"))
        program = constant(XDP_DROP);
    else if (!strcmp(name, "live-pass"))
        program = constant(XDP_PASS);
    else if (!strcmp(name, "live-weir"))
        program = weir(1, 1, 0);
    else if (!strcmp(name, "one"))
        program = weir(1, all, 0);
    else if (!strcmp(name, "many"))
        program = weir(1, all, htobe32(SOURCES - 1));
    else if (!strcmp(name, "four"))
        program = weir(WEIR_XDP_LIMITS_MAX, all, 0);
    if (program < 0) {
        fprintf(stderr, "usage: xdp-driver CASE INTERFACE, as root\n");
        return EXIT_FAILURE;
    }
    printf("%.1f\n", measure(program, strncmp(name, "live", 4) == 0 ? interface : 0));
    return EXIT_SUCCESS;
}
