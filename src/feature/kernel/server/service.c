/* SPDX-License-Identifier: Apache-2.0 */
/* see service.h */
#include "feature/kernel/server/service.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "core/text/nat64.h"
#include <time.h>

#include "feature/kernel/server/link.h"
#include "server/net/seed.h"

#define TICK_MS 20
#define NS_PER_MS UINT64_C(1000000)
#define COUNT_NS (1000 * NS_PER_MS)
/* Between two readings of all of standing after a change, and without one: of two entries of a
 * network the one that ends last may be the weaker one, and a full plan may have room again. A
 * reading takes milliseconds with a million entries; longer ones come less often. */
#define READ_NS (200 * NS_PER_MS)
#define READ_AGAIN_NS (10000 * NS_PER_MS)
#define READ_SHARE 50 /* 2 % of the time */
/* The first and the longest wait before another helper is started. */
#define START_NS (100 * NS_PER_MS)
#define START_MAX_NS (10000 * NS_PER_MS)
#define REMOVE_WAIT_MS 1000
/* A ban that is put and ended again and again leaves a line of its skips every so often. */
#define SKIPPED_NS (10000 * NS_PER_MS)

struct weir_kernel_service {
    struct weir_standing_service *standing;
    struct weir_log *log;
    uint64_t (*now_ns)(void *context);
    void *context;
    uv_timer_t timer;
    bool stopped;

    struct weir_cidr nat64[WEIR_NAT64_MAX]; /* prefixes in which bans have another form */
    uint32_t nat64_count;
    struct weir_kernel_nftables settings; /* its texts are those below */
    char *helper;
    struct weir_kernel_open open;

    struct weir_plan *plan;
    struct weir_kernel_link link;
    bool worked; /* the helper has done a transaction */
    uint64_t start_at_ns, start_wait_ns;
    uint64_t count_at_ns;

    uint64_t read_ns, moves, full; /* when all was read, and what the counts were then */
    uint64_t read_took_ns;
    bool read_wanted;

    struct weir_kernel_element *protected; /* what the helper never bans */
    size_t protected_count, protected_room;
    size_t protected_sent; /* to this helper */

    uint32_t number; /* of the transaction in flight */
    bool more;       /* it has messages to come */
    bool unsent;     /* `message` is to be sent */
    struct weir_kernel_message message, received;

    uint64_t helpers, lost, skipped;
    uint64_t skipped_logged, skipped_at_ns; /* of `skipped`, and when the next line may follow */
    char failed[WEIR_REASON_MAX];
    size_t tallies_count;
    struct weir_kernel_tally tallies[WEIR_KERNEL_SETS_MAX], before[WEIR_KERNEL_SETS_MAX];
};

/* --- What should be in the kernel ------------------------------------------------------------- */

struct reading {
    struct weir_kernel_service *service;
    uint64_t now_ns;
};

/* A ban, and its IPv6 forms where clients behind translators are. */
static void want_ban(struct weir_kernel_service *service, const struct weir_cidr *network,
                     uint64_t until_ns)
{
    (void)weir_plan_want(service->plan, WEIR_KERNEL_BAN, network, until_ns);
    if (!weir_address_is_global4(&network->address))
        return;
    for (uint32_t i = 0; i < service->nat64_count; i++) {
        struct weir_cidr form;
        weir_nat64_embed(&service->nat64[i], network, &form);
        if (until_ns == 0 || weir_bans_may_hold(service->standing->bans, &form))
            (void)weir_plan_want(service->plan, WEIR_KERNEL_BAN, &form, until_ns);
    }
}

static void read_network(void *context, const struct weir_cidr *network)
{
    const struct reading *reading = context;
    struct weir_kernel_service *service = reading->service;
    struct weir_standing_entry entry;

    if (!weir_standing_find_network(service->standing->map, network, reading->now_ns, &entry))
        return;
    if (entry.level == WEIR_STANDING_TRUSTED)
        (void)weir_plan_want(service->plan, WEIR_KERNEL_ALLOW, network, entry.until_ns);
    else if ((entry.level == WEIR_STANDING_SUSPENDED || entry.level == WEIR_STANDING_REVOKED) &&
             weir_standing_service_proves(service->standing, network, &entry) &&
             weir_bans_may_hold(service->standing->bans, network))
        want_ban(service, network, entry.until_ns);
}

/* What is protected, as it is read. */
struct protecting {
    struct weir_kernel_service *service;
    size_t count;
    bool differs; /* from what the helper knows */
};

/* The same as a network for the helper. */
static void protect(struct protecting *protecting, const struct weir_cidr *network)
{
    struct weir_kernel_service *service = protecting->service;
    struct weir_kernel_element element = {
        .family = network->address.family, .bits = network->bits, .set = WEIR_KERNEL_ALLOW};
    struct weir_address masked = network->address;

    weir_address_mask(&masked, network->bits);
    memcpy(element.address, masked.bytes, masked.family == 4 ? 4 : 16);
    if (weir_kernel_is_mark(element.address, element.family, element.bits))
        return;
    if (protecting->count == service->protected_room) {
        size_t room = service->protected_room ? 2 * service->protected_room : 64;
        struct weir_kernel_element *list = realloc(service->protected, room * sizeof *list);

        if (!list)
            return; /* standing itself protects it */
        service->protected = list;
        service->protected_room = room;
    }
    if (protecting->count >= service->protected_count ||
        memcmp(&service->protected[protecting->count], &element, sizeof element) != 0)
        protecting->differs = true;
    service->protected[protecting->count++] = element;
}

static void read_protected(void *context, const struct weir_cidr *network)
{
    struct protecting *protecting = context;

    (void)weir_plan_want(protecting->service->plan, WEIR_KERNEL_ALLOW, network, WEIR_NEVER);
    protect(protecting, network);
}

/* Names what is protected; where it has changed, the helper gets all of it anew. */
static void read_all_protected(struct weir_kernel_service *service)
{
    struct protecting protecting = {.service = service};

    weir_bans_each_protected(service->standing->bans, read_protected, &protecting);
    if (protecting.differs || protecting.count != service->protected_count)
        service->protected_sent = 0;
    service->protected_count = protecting.count;
}

/* The time that this thread has worked: on a busy machine a reading takes no longer by it. */
static uint64_t worked_ns(void)
{
    struct timespec worked = {0};

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &worked);
    return (uint64_t)worked.tv_sec * 1000 * NS_PER_MS + (uint64_t)worked.tv_nsec;
}

/* Names all that should be in the kernel; what is in the queue of bans is older than that. */
static void read_all(struct weir_kernel_service *service, uint64_t now_ns)
{
    struct reading reading = {service, now_ns};
    struct weir_bans *bans = service->standing->bans;
    struct weir_bans_counts counts;
    uint64_t began_ns = worked_ns();
    struct weir_ban ban;

    while (weir_bans_take(bans, &ban))
        ;
    weir_plan_begin_all(service->plan);
    read_all_protected(service);
    weir_standing_each_network(service->standing->map, read_network, &reading);
    weir_plan_end_all(service->plan);
    weir_bans_counts(bans, &counts);
    service->full = counts.full;
    service->moves = service->standing->network_moves;
    service->read_ns = now_ns;
    service->read_took_ns = worked_ns() - began_ns;
    service->read_wanted = false;
}

static bool should_read_all(struct weir_kernel_service *service, uint64_t now_ns)
{
    struct weir_bans_counts counts;
    uint64_t least_ns;

    weir_bans_counts(service->standing->bans, &counts);
    if (counts.full != service->full || service->moves != service->standing->network_moves)
        service->read_wanted = true;
    least_ns = service->read_wanted ? READ_NS : READ_AGAIN_NS;
    return now_ns - service->read_ns >= least_ns + READ_SHARE * service->read_took_ns;
}

/* Takes what has changed in standing. */
static void follow(struct weir_kernel_service *service, uint64_t now_ns)
{
    struct weir_ban ban;

    if (should_read_all(service, now_ns)) {
        read_all(service, now_ns);
        return;
    }
    while (weir_bans_take(service->standing->bans, &ban))
        if (ban.network.address.family == 0)
            service->read_wanted = true; /* all ended: which ones, the map knows */
        else
            want_ban(service, &ban.network, ban.until_ns);
}

/* --- The helper ------------------------------------------------------------------------------- */

static void log_failure(struct weir_kernel_service *service, const char *reason)
{
    if (strcmp(service->failed, reason) == 0)
        return; /* it was logged */
    snprintf(service->failed, sizeof service->failed, "%s", reason);
    weir_log_event(service->log, WEIR_LOG_ERROR, "kernel_failed", "reason", reason);
}

/* The next transaction makes the table anew. */
static void forget_table(struct weir_kernel_service *service)
{
    service->protected_sent = 0; /* a part may be `message`, which is forgotten as well */
    weir_plan_lost(service->plan);
    service->more = service->unsent = false;
    memset(service->before, 0, sizeof service->before);
}

/* What was said to this helper counts no more. */
static void forget_connection(struct weir_kernel_service *service)
{
    weir_kernel_link_close(&service->link);
    forget_table(service);
}

static void lose_helper(struct weir_kernel_service *service, uint64_t now_ns)
{
    bool lived = service->worked;

    forget_connection(service);
    service->start_wait_ns =
        lived ? START_NS : weir_backoff_longer(service->start_wait_ns, START_MAX_NS);
    service->start_at_ns = lived ? now_ns : now_ns + service->start_wait_ns;
    if (!lived && service->start_wait_ns > 16 * START_NS)
        log_failure(service, "weir-kernel ends at once: it needs CAP_NET_ADMIN, and a kernel with "
                             "nf_tables; its own message is above this line");
}

static void send_open(struct weir_kernel_service *service, uint64_t now_ns)
{
    weir_kernel_message_begin(&service->message, WEIR_KERNEL_OPEN);
    service->message.head.count = 1;
    service->message.open = service->open;
    if (weir_kernel_link_send(&service->link, &service->message) != 1)
        lose_helper(service, now_ns);
}

static void connect_helper(struct weir_kernel_service *service, uint64_t now_ns)
{
    struct weir_reason reason = {{0}};

    if (now_ns < service->start_at_ns || service->link.pid != 0)
        return; /* the last one ends by itself */
    service->worked = false;
    if (weir_kernel_link_open(&service->link, service->settings.helper, &reason) < 0) {
        log_failure(service, reason.text);
        lose_helper(service, now_ns);
        return;
    }
    service->helpers++;
    send_open(service, now_ns);
}

/* --- Answers ---------------------------------------------------------------------------------- */

/* One line for all bans that were left out since the last one. */
static void log_skipped(struct weir_kernel_service *service, uint64_t now_ns)
{
    struct weir_log_line line;

    if (service->skipped == service->skipped_logged || now_ns < service->skipped_at_ns)
        return;
    weir_log_begin(&line, service->log, WEIR_LOG_WARNING, "kernel_bans_skipped");
    weir_log_number(&line, "bans", (int64_t)(service->skipped - service->skipped_logged));
    weir_log_text(&line, "reason",
                  "they hold loopback, an address of this machine or a trusted proxy");
    weir_log_end(&line);
    service->skipped_logged = service->skipped;
    service->skipped_at_ns = now_ns + SKIPPED_NS;
}

static void take_done(struct weir_kernel_service *service,
                      const struct weir_kernel_message *message, uint64_t now_ns)
{
    char reason[WEIR_REASON_MAX];

    service->skipped += message->done.skipped;
    if (message->head.number != service->number)
        return; /* of a transaction that was given up */
    weir_plan_done(service->plan, now_ns, message->done.result);
    if (message->done.result != 0) {
        /* The next transaction makes the table anew. */
        memset(service->before, 0, sizeof service->before);
        snprintf(reason, sizeof reason, "the kernel refused %.119s: %s", message->done.text,
                 strerror(message->done.result));
        log_failure(service, reason);
        return;
    }
    service->worked = true;
    service->failed[0] = '\0';
}

static struct weir_kernel_tally *tally_of(struct weir_kernel_tally *tallies, size_t *count,
                                          const struct weir_kernel_counter *counter)
{
    for (size_t i = 0; i < *count; i++)
        if (tallies[i].family == counter->family && tallies[i].bits == counter->bits &&
            tallies[i].set == counter->set)
            return &tallies[i];
    tallies[*count] = (struct weir_kernel_tally){
        .family = counter->family, .bits = counter->bits, .set = counter->set};
    return &tallies[(*count)++];
}

/* Adds what was matched since the last look; a table recreated begins at 0. */
static void take_counts(struct weir_kernel_service *service,
                        const struct weir_kernel_message *message)
{
    for (uint16_t i = 0; i < message->head.count; i++) {
        const struct weir_kernel_counter *counter = &message->counters[i];
        struct weir_kernel_tally *tally =
            tally_of(service->tallies, &service->tallies_count, counter);
        struct weir_kernel_tally *before = &service->before[tally - service->tallies];
        bool anew = counter->packets < before->packets;

        tally->packets += counter->packets - (anew ? 0 : before->packets);
        tally->bytes += counter->bytes - (anew ? 0 : before->bytes);
        before->packets = counter->packets;
        before->bytes = counter->bytes;
    }
}

static void note_loss(struct weir_kernel_service *service, const struct weir_kernel_loss *loss)
{
    static const char *const causes[] = {
        [WEIR_KERNEL_LOST_CHANGED] = "another program has changed or removed the table",
        [WEIR_KERNEL_LOST_ADDRESS] = "this machine has a new address, which a ban may hold",
        [WEIR_KERNEL_LOST_UNREAD] = "this machine's addresses cannot be read",
    };
    struct weir_log_line line;

    service->lost++;
    weir_log_begin(&line, service->log, WEIR_LOG_WARNING, "kernel_table_lost");
    weir_log_text(&line, "reason", causes[loss->cause]);
    if (loss->error != 0)
        weir_log_text(&line, "error", strerror(loss->error));
    weir_log_end(&line);
}

static void take_answer(struct weir_kernel_service *service,
                        const struct weir_kernel_message *message, uint64_t now_ns)
{
    switch (message->head.type) {
    case WEIR_KERNEL_DONE:
        take_done(service, message, now_ns);
        return;
    case WEIR_KERNEL_COUNTS:
        take_counts(service, message);
        return;
    default: /* LOST */
        note_loss(service, &message->loss);
        forget_table(service);
    }
}

/* False: the helper is gone. */
static bool receive(struct weir_kernel_service *service, uint64_t now_ns)
{
    int received;

    while ((received = weir_kernel_link_receive(&service->link, &service->received)) == 1)
        take_answer(service, &service->received, now_ns);
    return received == 0;
}

/* The next part of what is protected: before any ban. */
static void fill_protect(struct weir_kernel_service *service)
{
    struct weir_kernel_message *message = &service->message;
    size_t left = service->protected_count - service->protected_sent;

    weir_kernel_message_begin(message, WEIR_KERNEL_PROTECT);
    message->head.flags = service->protected_sent == 0 ? WEIR_KERNEL_REPLACE : 0;
    message->head.count = (uint16_t)(left < WEIR_KERNEL_BATCH_MAX ? left : WEIR_KERNEL_BATCH_MAX);
    memcpy(message->elements, service->protected + service->protected_sent,
           message->head.count * sizeof *message->elements);
    service->protected_sent += message->head.count;
}

/* Fills the next message. False: there is none. */
static bool next_message(struct weir_kernel_service *service, uint64_t now_ns)
{
    if (service->protected_sent < service->protected_count) {
        fill_protect(service);
        return true;
    }
    if (weir_plan_next(service->plan, now_ns, &service->message)) {
        if (!service->more)
            service->number++;
        service->message.head.number = service->number;
        service->more = (service->message.head.flags & WEIR_KERNEL_MORE) != 0;
        return true;
    }
    if (service->more || now_ns < service->count_at_ns)
        return false;
    service->count_at_ns = now_ns + COUNT_NS;
    weir_kernel_message_begin(&service->message, WEIR_KERNEL_COUNT);
    return true;
}

/* False: the helper is gone. */
static bool send_some(struct weir_kernel_service *service, uint64_t now_ns)
{
    for (;;) {
        int sent;

        if (!service->unsent && !next_message(service, now_ns))
            return true;
        sent = weir_kernel_link_send(&service->link, &service->message);
        service->unsent = sent == 0;
        if (sent != 1)
            return sent == 0;
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct weir_kernel_service *service = timer->data;
    uint64_t now_ns = service->now_ns(service->context);

    if (!service->settings.on) { /* until the last helper has ended */
        weir_kernel_link_reap(&service->link);
        if (service->link.pid == 0)
            (void)uv_timer_stop(&service->timer);
        return;
    }
    log_skipped(service, now_ns);
    follow(service, now_ns);
    weir_kernel_link_reap(&service->link);
    if (service->link.fd < 0)
        connect_helper(service, now_ns);
    if (service->link.fd >= 0 && (!receive(service, now_ns) || !send_some(service, now_ns)))
        lose_helper(service, now_ns);
}

/* --- Settings --------------------------------------------------------------------------------- */

/* Removes the table, if a helper can be asked to. */
static void remove_table(struct weir_kernel_service *service)
{
    struct pollfd wait = {.fd = service->link.fd, .events = POLLOUT};

    if (service->link.fd < 0)
        return;
    weir_kernel_message_begin(&service->message, WEIR_KERNEL_REMOVE);
    if (weir_kernel_link_send(&service->link, &service->message) == 0 &&
        poll(&wait, 1, REMOVE_WAIT_MS) == 1)
        (void)!weir_kernel_link_send(&service->link, &service->message);
}

static bool text_differs(const char *one, const char *other)
{
    return !one != !other || (one && strcmp(one, other) != 0);
}

static void fill_open(struct weir_kernel_open *open, const struct weir_kernel_nftables *settings)
{
    memset(open, 0, sizeof *open);
    snprintf(open->table, sizeof open->table, "%s", settings->table);
    open->hook = settings->hook;
    open->interfaces_count = settings->interfaces_count;
    for (uint8_t i = 0; i < settings->interfaces_count; i++)
        snprintf(open->interfaces[i], sizeof open->interfaces[i], "%s", settings->interfaces[i]);
}

/* Begins with these settings and no connection. */
static void take_settings(struct weir_kernel_service *service,
                          const struct weir_kernel_nftables *settings,
                          const struct weir_kernel_open *open)
{
    forget_connection(service);
    free(service->helper);
    service->helper = settings->helper ? strdup(settings->helper) : NULL;
    service->settings = *settings;
    service->settings.helper = service->helper;
    service->open = *open;
    service->settings.table = service->open.table;
    memset(service->settings.interfaces, 0, sizeof service->settings.interfaces);
    service->start_wait_ns = START_NS;
    service->start_at_ns = 0;
    service->failed[0] = '\0';
}

void weir_kernel_service_configure(struct weir_kernel_service *service,
                                   const struct weir_kernel_nftables *settings)
{
    struct weir_kernel_open open = {.hook = 0};

    if (settings->on)
        fill_open(&open, settings);
    service->standing->penalties_proven = settings->on && settings->penalties;
    service->read_wanted = true;
    if (service->settings.on && (!settings->on || strcmp(open.table, service->open.table) != 0))
        remove_table(service);
    if (service->settings.on != settings->on || memcmp(&open, &service->open, sizeof open) != 0 ||
        text_differs(settings->helper, service->helper))
        take_settings(service, settings, &open);
    (void)uv_timer_start(&service->timer, on_tick, 0, TICK_MS);
}

void weir_kernel_service_translate(struct weir_kernel_service *service,
                                   const struct weir_settings *settings)
{
    service->nat64_count = settings->nat64_given ? settings->nat64_count : 0;
    memcpy(service->nat64, settings->nat64, service->nat64_count * sizeof *service->nat64);
}

/* --- Start and end ---------------------------------------------------------------------------- */

int weir_kernel_service_open(struct weir_kernel_service **out,
                             struct weir_standing_service *standing, struct weir_log *log,
                             uint64_t (*now_ns)(void *context), void *context, uv_loop_t *loop)
{
    const uint64_t secret[2] = {weir_seed_draw(1), weir_seed_draw(2)};
    struct weir_kernel_service *service = calloc(1, sizeof *service);

    *out = NULL;
    if (!service || weir_plan_open(&service->plan, secret) < 0) {
        free(service);
        return WEIR_ERR_MEMORY;
    }
    service->standing = standing;
    service->log = log;
    service->now_ns = now_ns;
    service->context = context;
    service->link = WEIR_KERNEL_LINK_NONE;
    uv_timer_init(loop, &service->timer); /* never fails */
    uv_unref((uv_handle_t *)&service->timer);
    service->timer.data = service;
    *out = service;
    return 0;
}

void weir_kernel_service_stop(struct weir_kernel_service *service)
{
    if (!service || service->stopped)
        return;
    service->stopped = true;
    uv_close((uv_handle_t *)&service->timer, NULL);
    weir_kernel_link_end(&service->link);
}

void weir_kernel_service_close(struct weir_kernel_service *service)
{
    if (!service)
        return;
    weir_plan_close(service->plan);
    free(service->helper);
    free(service->protected);
    free(service);
}

/* --- What it shows ---------------------------------------------------------------------------- */

bool weir_kernel_service_bans(const struct weir_kernel_service *service,
                              const struct weir_cidr *network)
{
    return service && service->settings.on &&
           weir_plan_has(service->plan, WEIR_KERNEL_BAN, network,
                         service->now_ns(service->context));
}

void weir_kernel_service_stats(const struct weir_kernel_service *service,
                               struct weir_kernel_stats *stats)
{
    *stats = (struct weir_kernel_stats){.on = false};
    if (!service || !service->settings.on)
        return;
    stats->on = true;
    stats->connected = service->link.fd >= 0;
    stats->works = stats->connected && service->worked && !service->failed[0];
    weir_plan_stats(service->plan, &stats->plan);
    stats->helpers = service->helpers;
    stats->lost = service->lost;
    stats->skipped = service->skipped;
    stats->failed = service->failed[0] ? service->failed : NULL;
    stats->tallies = service->tallies;
    stats->tallies_count = service->tallies_count;
}
