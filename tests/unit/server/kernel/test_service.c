/* SPDX-License-Identifier: Apache-2.0 */
/* Bans in the kernel, against a helper that the test plays, at times of the test's choice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <weir/limit.h>

#include "feature/kernel/server/service.h"
#include "temporary.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define START (UINT64_C(1700000000) * S)
#define TURNS_MAX 30000 /* of 1 ms at least, and with a load more */

struct rig {
    char folder[TEMPORARY_MAX], path[TEMPORARY_MAX + 16], logged[TEMPORARY_MAX + 16];
    uv_loop_t loop;
    uv_timer_t turns;
    struct weir_log log;
    struct weir_standing_service standing;
    struct weir_kernel_service *service;
    struct weir_kernel_nftables settings;
    uint64_t now_ns;
    int listener, helper; /* -1: no server is connected */
    struct weir_kernel_message message;
};

static uint64_t now_of(void *context)
{
    return ((struct rig *)context)->now_ns;
}

static void on_turn(uv_timer_t *timer)
{
    (void)timer;
}

static void open_listener(struct rig *rig)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof address.sun_path, "%s", rig->path);
    rig->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(rig->listener >= 0);
    assert_int_equal(bind(rig->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(rig->listener, 4), 0);
}

static int open_rig(void **state)
{
    struct weir_standing_options options = {.entries_max = 1000, .secret = {1, 2}};
    struct rig *rig = calloc(1, sizeof *rig);

    *state = rig;
    temporary_folder(rig->folder);
    snprintf(rig->path, sizeof rig->path, "%s/kernel.sock", rig->folder);
    rig->helper = -1;
    rig->now_ns = START;
    open_listener(rig);
    uv_loop_init(&rig->loop);
    uv_timer_init(&rig->loop, &rig->turns);
    uv_timer_start(&rig->turns, on_turn, 0, 1);
    snprintf(rig->logged, sizeof rig->logged, "%s/log", rig->folder);
    weir_log_init(&rig->log, open(rig->logged, O_RDWR | O_CREAT | O_CLOEXEC, 0600), WEIR_LOG_TEXT);
    assert_int_equal(weir_standing_create(&rig->standing.map, &options, NULL), 0);
    assert_int_equal(weir_bans_open(&rig->standing.bans), 0);
    assert_int_equal(weir_bans_protect(rig->standing.bans, NULL, 0), 0);
    assert_int_equal(
        weir_kernel_service_open(&rig->service, &rig->standing, &rig->log, now_of, rig, &rig->loop),
        0);
    rig->settings = (struct weir_kernel_nftables){
        .on = true, .hook = WEIR_KERNEL_INET, .table = "weir", .helper = rig->path};
    return 0;
}

static void close_handle(uv_handle_t *handle, void *context)
{
    (void)context;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void hang_up(struct rig *rig)
{
    close(rig->helper);
    rig->helper = -1;
}

static int close_rig(void **state)
{
    struct rig *rig = *state;

    weir_kernel_service_stop(rig->service);
    uv_walk(&rig->loop, close_handle, NULL);
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    weir_kernel_service_close(rig->service);
    weir_bans_close(rig->standing.bans);
    weir_standing_close(rig->standing.map);
    close(rig->log.fd);
    if (rig->helper >= 0)
        close(rig->helper);
    close(rig->listener);
    temporary_remove(rig->folder);
    free(rig);
    return 0;
}

/* --- The helper ------------------------------------------------------------------------------- */

/* Lets the server work, and 20 ms of its time pass. */
static void turn(struct rig *rig)
{
    rig->now_ns += 20 * MS;
    uv_run(&rig->loop, UV_RUN_ONCE);
}

static void accept_server(struct rig *rig)
{
    assert_int_equal(rig->helper, -1);
    for (int i = 0; i < TURNS_MAX && rig->helper < 0; i++) {
        turn(rig);
        rig->helper = accept4(rig->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    }
    assert_true(rig->helper >= 0);
}

/* The next message of this type; those that ask for counts, or name what is protected, are skipped.
 * False: the server has closed the connection. */
static bool receive(struct rig *rig, enum weir_kernel_type type)
{
    for (int i = 0; i < TURNS_MAX; i++) {
        ssize_t size = recv(rig->helper, &rig->message, sizeof rig->message, MSG_DONTWAIT);

        if (size == 0 || (size < 0 && errno == ECONNRESET))
            return false;
        if (size < 0) {
            turn(rig);
            continue;
        }
        assert_true(weir_kernel_message_valid(&rig->message, (size_t)size, true));
        if (rig->message.head.type == type)
            return true;
        assert_true(rig->message.head.type == WEIR_KERNEL_COUNT ||
                    rig->message.head.type == WEIR_KERNEL_PROTECT);
    }
    fail_msg("no message of type %d came", type);
    return false;
}

static void answer(struct rig *rig, const struct weir_kernel_message *message)
{
    size_t size = weir_kernel_message_size(message);

    assert_int_equal(send(rig->helper, message, size, MSG_NOSIGNAL), size);
}

static void answer_done(struct rig *rig, uint32_t number, int result)
{
    static struct weir_kernel_message message;

    weir_kernel_message_begin(&message, WEIR_KERNEL_DONE);
    message.head.count = 1;
    message.head.number = number;
    message.done = (struct weir_kernel_done){.result = result, .text = "the sets"};
    answer(rig, &message);
}

static void answer_lost(struct rig *rig, enum weir_kernel_loss_cause cause, int error)
{
    static struct weir_kernel_message message;

    weir_kernel_message_begin(&message, WEIR_KERNEL_LOST);
    message.head.count = 1;
    message.loss = (struct weir_kernel_loss){.cause = cause, .error = error};
    answer(rig, &message);
}

/* How many lines of the log have this text. */
static int logged(const struct rig *rig, const char *text)
{
    static char log[65536];
    ssize_t size = pread(rig->log.fd, log, sizeof log - 1, 0);
    int count = 0;

    assert_true(size >= 0 && (size_t)size < sizeof log - 1);
    log[size] = '\0';
    for (const char *at = log; (at = strstr(at, text)); at++)
        count++;
    return count;
}

static void answer_counts(struct rig *rig, uint64_t packets)
{
    static struct weir_kernel_message message;

    weir_kernel_message_begin(&message, WEIR_KERNEL_COUNTS);
    message.head.count = 1;
    message.counters[0] = (struct weir_kernel_counter){
        .family = 4, .bits = 32, .packets = packets, .bytes = 60 * packets};
    answer(rig, &message);
}

static const struct weir_kernel_element *element_of(const struct rig *rig, uint8_t set,
                                                    const uint8_t address[4])
{
    for (uint16_t i = 0; i < rig->message.head.count; i++) {
        const struct weir_kernel_element *element = &rig->message.elements[i];

        if (element->set == set && element->family == 4 &&
            memcmp(element->address, address, 4) == 0)
            return element;
    }
    return NULL;
}

static struct weir_kernel_stats stats_of(struct rig *rig)
{
    struct weir_kernel_stats stats;

    weir_kernel_service_stats(rig->service, &stats);
    return stats;
}

static void answer_skipped(struct rig *rig, uint32_t number, uint32_t skipped)
{
    static struct weir_kernel_message message;

    weir_kernel_message_begin(&message, WEIR_KERNEL_DONE);
    message.head.count = 1;
    message.head.number = number;
    message.done = (struct weir_kernel_done){.skipped = skipped};
    answer(rig, &message);
}

/* Connects, and does the first transaction. */
static void begin(struct rig *rig)
{
    weir_kernel_service_configure(rig->service, &rig->settings);
    accept_server(rig);
    assert_true(receive(rig, WEIR_KERNEL_OPEN));
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
    answer_done(rig, rig->message.head.number, 0);
    for (int i = 0; i < TURNS_MAX && !stats_of(rig).works; i++)
        turn(rig);
    assert_true(stats_of(rig).works);
}

static const uint8_t peer[4] = {192, 0, 2, 7}, loopback[4] = {127};

static struct weir_cidr peer_network(void)
{
    struct weir_cidr network = {.address = {.family = 4}, .bits = 32};

    memcpy(network.address.bytes, peer, sizeof peer);
    return network;
}

static void ban(struct rig *rig, uint8_t level, uint64_t until_ns)
{
    const struct weir_cidr network = peer_network();
    struct weir_standing_entry entry = {.since_ns = rig->now_ns,
                                        .until_ns = until_ns,
                                        .level = level,
                                        .origin = WEIR_STANDING_BY_OPERATOR};

    assert_int_equal(weir_standing_set_network(rig->standing.map, &network, &entry), 0);
}

/* --- Tests ------------------------------------------------------------------------------------ */

static void the_first_transaction_has_bans_and_what_is_always_allowed(void **state)
{
    struct rig *rig = *state;
    struct weir_kernel_stats stats;
    const struct weir_cidr network = peer_network();

    ban(rig, WEIR_STANDING_SUSPENDED, START + 3600 * S);
    weir_kernel_service_configure(rig->service, &rig->settings);
    accept_server(rig);
    assert_true(receive(rig, WEIR_KERNEL_OPEN));
    assert_string_equal(rig->message.open.table, "weir");
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
    assert_int_equal(rig->message.head.flags, WEIR_KERNEL_REPLACE);
    const struct weir_kernel_element *banned = element_of(rig, WEIR_KERNEL_BAN, peer);

    assert_non_null(banned);
    assert_in_range(banned->timeout_ms, 1800 * 1000, 3600 * 1000);
    assert_non_null(element_of(rig, WEIR_KERNEL_ALLOW, loopback));
    /* Nothing is in force before the helper says that it is. */
    stats = stats_of(rig);
    assert_true(stats.on && stats.connected && !stats.works && !stats.plan.agrees);
    assert_false(weir_kernel_service_bans(rig->service, &network));
    answer_done(rig, rig->message.head.number + 1, 0); /* of another transaction */
    for (int i = 0; i < 100; i++)
        turn(rig);
    assert_false(stats_of(rig).works);
    answer_done(rig, rig->message.head.number, 0);
    while (!stats_of(rig).works)
        turn(rig);
    assert_true(weir_kernel_service_bans(rig->service, &network));
    assert_int_equal(stats_of(rig).plan.present[WEIR_KERNEL_BAN], 1);
}

static const struct weir_kernel_element *element6_of(const struct rig *rig, const uint8_t start[12],
                                                     const uint8_t inside[4])
{
    for (uint16_t i = 0; i < rig->message.head.count; i++) {
        const struct weir_kernel_element *element = &rig->message.elements[i];

        if (element->set == WEIR_KERNEL_BAN && element->family == 6 &&
            memcmp(element->address, start, 12) == 0 &&
            memcmp(element->address + 12, inside, 4) == 0)
            return element;
    }
    return NULL;
}

/* Clients behind a translator come in IPv6 packets. What is not global is in no translator's
 * prefix, and without `nat64` in the file there is no translator here. */
static void a_ban_has_its_forms_of_translators_where_the_file_names_them(void **state)
{
    static const struct weir_cidr prefix = {{6, {0, 0x64, 0xff, 0x9b}}, 96};
    static const uint8_t inside[4] = {8, 8, 8, 8};
    struct rig *rig = *state;
    const struct weir_standing_entry entry = {.since_ns = rig->now_ns,
                                              .until_ns = START + 3600 * S,
                                              .level = WEIR_STANDING_SUSPENDED,
                                              .origin = WEIR_STANDING_BY_OPERATOR};
    const struct weir_cidr global = {{4, {8, 8, 8, 8}}, 32};
    struct weir_settings settings = {.nat64 = &prefix, .nat64_count = 1, .nat64_given = true};

    ban(rig, WEIR_STANDING_SUSPENDED, START + 3600 * S); /* 192.0.2.7, which is not global */
    assert_int_equal(weir_standing_set_network(rig->standing.map, &global, &entry), 0);
    weir_kernel_service_translate(rig->service, &settings);
    weir_kernel_service_configure(rig->service, &rig->settings);
    accept_server(rig);
    assert_true(receive(rig, WEIR_KERNEL_OPEN));
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
    assert_non_null(element_of(rig, WEIR_KERNEL_BAN, peer));
    assert_non_null(element_of(rig, WEIR_KERNEL_BAN, inside));
    const struct weir_kernel_element *form = element6_of(rig, prefix.address.bytes, inside);
    assert_non_null(form);
    assert_in_range(form->timeout_ms, 1800 * 1000, 3600 * 1000);
    assert_null(element6_of(rig, prefix.address.bytes, peer));
}

static void a_ban_has_one_form_where_the_file_names_no_translator(void **state)
{
    static const struct weir_cidr prefix = {{6, {0, 0x64, 0xff, 0x9b}}, 96};
    static const uint8_t inside[4] = {8, 8, 8, 8};
    struct rig *rig = *state;
    const struct weir_standing_entry entry = {.since_ns = rig->now_ns,
                                              .until_ns = START + 3600 * S,
                                              .level = WEIR_STANDING_SUSPENDED,
                                              .origin = WEIR_STANDING_BY_OPERATOR};
    const struct weir_cidr global = {{4, {8, 8, 8, 8}}, 32};
    struct weir_settings settings = {.nat64 = &prefix, .nat64_count = 1}; /* the default */

    assert_int_equal(weir_standing_set_network(rig->standing.map, &global, &entry), 0);
    weir_kernel_service_translate(rig->service, &settings);
    weir_kernel_service_configure(rig->service, &rig->settings);
    accept_server(rig);
    assert_true(receive(rig, WEIR_KERNEL_OPEN));
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
    assert_non_null(element_of(rig, WEIR_KERNEL_BAN, inside));
    assert_null(element6_of(rig, prefix.address.bytes, inside));
}

static void a_ban_of_the_queue_and_its_end_are_changes(void **state)
{
    struct rig *rig = *state;
    const struct weir_cidr network = peer_network();

    begin(rig);
    ban(rig, WEIR_STANDING_SUSPENDED, rig->now_ns + 3600 * S);
    assert_true(weir_bans_publish(rig->standing.bans, &network, rig->now_ns + 3600 * S, true));
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
    assert_int_equal(rig->message.head.flags, 0);
    assert_int_equal(rig->message.head.count, 1);
    assert_non_null(element_of(rig, WEIR_KERNEL_BAN, peer));
    answer_done(rig, rig->message.head.number, 0);
    assert_true(
        weir_standing_clear_network(rig->standing.map, &network, WEIR_STANDING_BY_OPERATOR));
    assert_true(weir_bans_publish(rig->standing.bans, &network, 0, true));
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
    assert_int_equal(rig->message.head.count, 1);
    assert_int_equal(rig->message.elements[0].removed, 1);
}

static void what_becomes_trusted_is_read_with_the_map(void **state)
{
    struct rig *rig = *state;

    begin(rig);
    ban(rig, WEIR_STANDING_TRUSTED, WEIR_NEVER);
    rig->standing.network_moves++;
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
    assert_int_equal(rig->message.head.count, 1);
    assert_non_null(element_of(rig, WEIR_KERNEL_ALLOW, peer));
}

static void a_ban_of_a_penalty_needs_the_word_of_the_operator(void **state)
{
    struct rig *rig = *state;
    struct weir_standing_entry entry = {.since_ns = START,
                                        .until_ns = WEIR_NEVER,
                                        .level = WEIR_STANDING_SUSPENDED,
                                        .origin = WEIR_STANDING_BY_PENALTY};
    const struct weir_cidr network = peer_network();

    assert_int_equal(weir_standing_set_network(rig->standing.map, &network, &entry), 0);
    for (int penalties = 0; penalties < 2; penalties++) {
        rig->settings.penalties = penalties == 1;
        weir_kernel_service_configure(rig->service, &rig->settings);
        if (penalties == 0) {
            accept_server(rig);
            assert_true(receive(rig, WEIR_KERNEL_OPEN));
        }
        assert_true(receive(rig, WEIR_KERNEL_APPLY));
        assert_int_equal(element_of(rig, WEIR_KERNEL_BAN, peer) != NULL, penalties == 1);
        answer_done(rig, rig->message.head.number, 0);
    }
}

/* Its other clients count by the IPv4 addresses inside, and did nothing. */
static void a_ban_of_a_penalty_never_drops_all_clients_of_a_translator(void **state)
{
    static const struct weir_cidr prefix = {{6, {0, 0x64, 0xff, 0x9b}}, 96};
    static const uint8_t nothing[4];
    struct rig *rig = *state;
    struct weir_standing_entry entry = {.since_ns = START,
                                        .until_ns = WEIR_NEVER,
                                        .level = WEIR_STANDING_SUSPENDED,
                                        .origin = WEIR_STANDING_BY_PENALTY};
    const struct weir_cidr around = {prefix.address, 64};

    weir_bans_translate(rig->standing.bans, &prefix, 1);
    assert_int_equal(weir_standing_set_network(rig->standing.map, &around, &entry), 0);
    rig->settings.penalties = true;
    for (int named = 0; named < 2; named++) {
        if (named == 1) {
            entry.origin = WEIR_STANDING_BY_OPERATOR;
            entry.level = WEIR_STANDING_REVOKED;
            assert_int_equal(weir_standing_set_network(rig->standing.map, &around, &entry), 0);
        }
        begin(rig);
        assert_int_equal(element6_of(rig, prefix.address.bytes, nothing) != NULL, named == 1);
        hang_up(rig);
    }
}

static void an_error_is_shown_and_all_is_sent_anew_later(void **state)
{
    struct rig *rig = *state;
    uint64_t began_ns;

    begin(rig);
    ban(rig, WEIR_STANDING_REVOKED, WEIR_NEVER);
    rig->standing.network_moves++;
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
    began_ns = rig->now_ns;
    answer_done(rig, rig->message.head.number, ENOSPC);
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
    assert_int_equal(rig->message.head.flags, WEIR_KERNEL_REPLACE);
    assert_true(rig->now_ns - began_ns >= WEIR_PLAN_RETRY_NS);
    assert_non_null(element_of(rig, WEIR_KERNEL_BAN, peer));
    assert_string_equal(stats_of(rig).failed,
                        "the kernel refused the sets: No space left on device");
    assert_false(stats_of(rig).works);
    answer_done(rig, rig->message.head.number, 0);
    while (!stats_of(rig).works)
        turn(rig);
    assert_null(stats_of(rig).failed);
    assert_int_equal(stats_of(rig).plan.failures, 1);
}

/* Waits until the tally is no longer what it was. */
static uint64_t next_packets(struct rig *rig, uint64_t before)
{
    for (int i = 0; i < TURNS_MAX; i++, turn(rig)) {
        struct weir_kernel_stats stats = stats_of(rig);

        if (stats.tallies_count > 0 && stats.tallies[0].packets != before)
            return stats.tallies[0].packets;
    }
    return before;
}

static void counts_go_on_when_the_table_is_made_anew(void **state)
{
    struct rig *rig = *state;

    begin(rig);
    answer_counts(rig, 10);
    assert_int_equal(next_packets(rig, 0), 10);
    answer_counts(rig, 15);
    assert_int_equal(next_packets(rig, 10), 15);
    /* A transaction that failed: the next one makes the table anew, and its counts begin at 0. */
    ban(rig, WEIR_STANDING_REVOKED, WEIR_NEVER);
    rig->standing.network_moves++;
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
    answer_done(rig, rig->message.head.number, ENOSPC);
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
    answer_done(rig, rig->message.head.number, 0);
    answer_counts(rig, 20);
    assert_int_equal(next_packets(rig, 15), 35);
    answer_lost(rig, WEIR_KERNEL_LOST_CHANGED, 0);
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
    assert_int_equal(rig->message.head.flags, WEIR_KERNEL_REPLACE);
    answer_done(rig, rig->message.head.number, 0);
    answer_counts(rig, 30);
    assert_int_equal(next_packets(rig, 35), 65);
    assert_int_equal(stats_of(rig).tallies[0].bytes, 65 * 60);
    assert_int_equal(stats_of(rig).lost, 1);
}

static void a_helper_that_ends_is_followed_by_another(void **state)
{
    struct rig *rig = *state;

    begin(rig);
    hang_up(rig);
    accept_server(rig);
    assert_true(receive(rig, WEIR_KERNEL_OPEN));
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
    assert_int_equal(rig->message.head.flags, WEIR_KERNEL_REPLACE);
    assert_false(stats_of(rig).works);
    assert_int_equal(stats_of(rig).helpers, 2);
}

static void a_helper_that_says_what_it_may_not_is_left(void **state)
{
    struct rig *rig = *state;
    static struct weir_kernel_message wrong;

    begin(rig);
    weir_kernel_message_begin(&wrong, WEIR_KERNEL_REMOVE);
    answer(rig, &wrong);
    assert_false(receive(rig, WEIR_KERNEL_APPLY));
    hang_up(rig);
    accept_server(rig);
    assert_true(receive(rig, WEIR_KERNEL_OPEN));
}

static void helpers_that_end_at_once_come_later_and_later(void **state)
{
    struct rig *rig = *state;
    uint64_t last_ns, wait_ns = 0;

    weir_kernel_service_configure(rig->service, &rig->settings);
    accept_server(rig);
    for (int i = 0; i < 6; i++) {
        last_ns = rig->now_ns;
        hang_up(rig);
        accept_server(rig);
        assert_true(rig->now_ns - last_ns >= wait_ns);
        wait_ns = (UINT64_C(200) << i) * MS;
        if (i < 3)
            assert_null(stats_of(rig).failed);
    }
    assert_non_null(strstr(stats_of(rig).failed, "CAP_NET_ADMIN"));
}

static void a_socket_that_nothing_listens_on_is_tried_again(void **state)
{
    struct rig *rig = *state;

    close(rig->listener);
    weir_kernel_service_configure(rig->service, &rig->settings);
    while (!stats_of(rig).failed)
        turn(rig);
    assert_non_null(strstr(stats_of(rig).failed, "cannot connect to"));
    assert_false(stats_of(rig).connected);
    unlink(rig->path);
    open_listener(rig);
    begin(rig);
    assert_null(stats_of(rig).failed);
}

static void other_settings_remove_the_table_that_was(void **state)
{
    struct rig *rig = *state;

    begin(rig);
    rig->settings.table = "bans";
    weir_kernel_service_configure(rig->service, &rig->settings);
    assert_true(receive(rig, WEIR_KERNEL_REMOVE));
    assert_false(receive(rig, WEIR_KERNEL_APPLY));
    hang_up(rig);
    accept_server(rig);
    assert_true(receive(rig, WEIR_KERNEL_OPEN));
    assert_string_equal(rig->message.open.table, "bans");
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
    rig->settings.on = false;
    weir_kernel_service_configure(rig->service, &rig->settings);
    assert_true(receive(rig, WEIR_KERNEL_REMOVE));
    assert_false(receive(rig, WEIR_KERNEL_APPLY));
    assert_false(stats_of(rig).on);
}

static void protect_proxies(struct rig *rig, const struct weir_cidr *proxies, size_t count)
{
    assert_int_equal(weir_bans_protect(rig->standing.bans, proxies, count), 0);
    weir_kernel_service_configure(rig->service, &rig->settings); /* as a reload does */
}

static void
what_is_protected_is_named_before_the_first_transaction_and_when_it_changes(void **state)
{
    struct rig *rig = *state;
    const struct weir_cidr proxy = {.address = {.family = 4, .bytes = {192, 0, 2, 200}},
                                    .bits = 24};
    static const uint8_t proxies[4] = {192, 0, 2, 0};

    weir_kernel_service_configure(rig->service, &rig->settings);
    accept_server(rig);
    assert_true(receive(rig, WEIR_KERNEL_OPEN));
    assert_true(receive(rig, WEIR_KERNEL_PROTECT));
    assert_int_equal(rig->message.head.flags, WEIR_KERNEL_REPLACE);
    assert_non_null(element_of(rig, WEIR_KERNEL_ALLOW, loopback));
    assert_null(element_of(rig, WEIR_KERNEL_ALLOW, proxies));
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
    answer_done(rig, rig->message.head.number, 0);
    protect_proxies(rig, &proxy, 1);
    assert_true(receive(rig, WEIR_KERNEL_PROTECT));
    assert_int_equal(rig->message.head.flags, WEIR_KERNEL_REPLACE);
    assert_non_null(element_of(rig, WEIR_KERNEL_ALLOW, proxies)); /* without the bits behind */
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
    hang_up(rig);
    accept_server(rig); /* another helper knows nothing */
    assert_true(receive(rig, WEIR_KERNEL_OPEN));
    assert_true(receive(rig, WEIR_KERNEL_PROTECT));
    assert_non_null(element_of(rig, WEIR_KERNEL_ALLOW, proxies));
}

static void more_than_one_message_of_what_is_protected(void **state)
{
    enum { PROXIES = 2500 };
    static struct weir_cidr proxies[PROXIES];
    struct rig *rig = *state;
    size_t count = 0;

    for (int i = 0; i < PROXIES; i++)
        proxies[i] = (struct weir_cidr){
            .address = {.family = 4, .bytes = {10, 1, (uint8_t)(i >> 8), (uint8_t)i}}, .bits = 32};
    protect_proxies(rig, proxies, PROXIES);
    accept_server(rig);
    assert_true(receive(rig, WEIR_KERNEL_OPEN));
    while (count < PROXIES) {
        assert_true(receive(rig, WEIR_KERNEL_PROTECT));
        assert_int_equal(rig->message.head.flags, count == 0 ? WEIR_KERNEL_REPLACE : 0);
        count += rig->message.head.count;
    }
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
}

/* So many that the socket does not take all of them before the helper reads. */
static void what_is_protected_is_named_anew_after_a_table_that_is_lost(void **state)
{
    enum { PROXIES = 10000, TURNS = 20 };
    static struct weir_cidr proxies[PROXIES];
    struct rig *rig = *state;
    size_t count = 0;

    for (int i = 0; i < PROXIES; i++)
        proxies[i] = (struct weir_cidr){
            .address = {.family = 4, .bytes = {10, 1, (uint8_t)(i >> 8), (uint8_t)i}}, .bits = 32};
    protect_proxies(rig, proxies, PROXIES);
    accept_server(rig);
    for (int i = 0; i < TURNS; i++)
        turn(rig);
    answer_lost(rig, WEIR_KERNEL_LOST_CHANGED, 0);
    for (int i = 0; i < TURNS_MAX && stats_of(rig).lost == 0; i++)
        turn(rig);
    assert_int_equal(stats_of(rig).lost, 1);
    assert_true(receive(rig, WEIR_KERNEL_OPEN));
    while (count < PROXIES) {
        assert_true(receive(rig, WEIR_KERNEL_PROTECT));
        if (rig->message.head.flags == WEIR_KERNEL_REPLACE)
            count = 0;
        count += rig->message.head.count;
    }
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
}

static void bans_that_the_helper_leaves_out_are_counted(void **state)
{
    struct rig *rig = *state;

    ban(rig, WEIR_STANDING_SUSPENDED, START + 3600 * S);
    weir_kernel_service_configure(rig->service, &rig->settings);
    accept_server(rig);
    assert_true(receive(rig, WEIR_KERNEL_OPEN));
    assert_true(receive(rig, WEIR_KERNEL_APPLY));
    answer_skipped(rig, rig->message.head.number, 3);
    for (int i = 0; i < TURNS_MAX && !stats_of(rig).works; i++)
        turn(rig);
    assert_true(stats_of(rig).works);
    assert_int_equal(stats_of(rig).skipped, 3);
}

/* The first line at once, one for all others ten seconds later. */
static void lines_about_bans_that_are_left_out_are_paced(void **state)
{
    struct rig *rig = *state;

    begin(rig);
    for (int i = 0; i < 50; i++)
        answer_skipped(rig, 0, 1);
    for (int i = 0; i < TURNS_MAX && stats_of(rig).skipped < 50; i++)
        turn(rig);
    for (int i = 0; i < 10; i++) {
        turn(rig);
        answer_skipped(rig, 0, 1);
    }
    for (int i = 0; i < TURNS_MAX && stats_of(rig).skipped < 60; i++)
        turn(rig);
    assert_int_equal(stats_of(rig).skipped, 60);
    assert_int_equal(logged(rig, "kernel_bans_skipped"), 1);
    rig->now_ns += 10 * S;
    for (int i = 0; i < TURNS_MAX && logged(rig, "kernel_bans_skipped") == 1; i++)
        turn(rig);
    rig->now_ns += 10 * S;
    for (int i = 0; i < 10; i++)
        turn(rig);
    assert_int_equal(logged(rig, "kernel_bans_skipped"), 2);
}

static void why_a_table_is_lost_is_logged(void **state)
{
    static const struct {
        enum weir_kernel_loss_cause cause;
        int error;
        const char *text;
    } cases[] = {{WEIR_KERNEL_LOST_CHANGED, 0, "another program has changed or removed the table"},
                 {WEIR_KERNEL_LOST_ADDRESS, 0, "this machine has a new address"},
                 {WEIR_KERNEL_LOST_UNREAD, ENOMEM, "cannot be read\" error=\"Cannot allocate"}};
    struct rig *rig = *state;

    begin(rig);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        answer_lost(rig, cases[i].cause, cases[i].error);
        for (int turns = 0; turns < TURNS_MAX && stats_of(rig).lost == i; turns++)
            turn(rig);
        assert_int_equal(logged(rig, "kernel_table_lost"), i + 1);
        assert_int_equal(logged(rig, cases[i].text), 1);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        TEST(the_first_transaction_has_bans_and_what_is_always_allowed),
        TEST(a_ban_has_its_forms_of_translators_where_the_file_names_them),
        TEST(a_ban_has_one_form_where_the_file_names_no_translator),
        TEST(a_ban_of_the_queue_and_its_end_are_changes),
        TEST(what_becomes_trusted_is_read_with_the_map),
        TEST(a_ban_of_a_penalty_needs_the_word_of_the_operator),
        TEST(a_ban_of_a_penalty_never_drops_all_clients_of_a_translator),
        TEST(an_error_is_shown_and_all_is_sent_anew_later),
        TEST(counts_go_on_when_the_table_is_made_anew),
        TEST(a_helper_that_ends_is_followed_by_another),
        TEST(a_helper_that_says_what_it_may_not_is_left),
        TEST(helpers_that_end_at_once_come_later_and_later),
        TEST(a_socket_that_nothing_listens_on_is_tried_again),
        TEST(other_settings_remove_the_table_that_was),
        TEST(what_is_protected_is_named_before_the_first_transaction_and_when_it_changes),
        TEST(more_than_one_message_of_what_is_protected),
        TEST(what_is_protected_is_named_anew_after_a_table_that_is_lost),
        TEST(bans_that_the_helper_leaves_out_are_counted),
        TEST(lines_about_bans_that_are_left_out_are_paced),
        TEST(why_a_table_is_lost_is_logged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
