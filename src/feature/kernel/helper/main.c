/* SPDX-License-Identifier: Apache-2.0 */
/* weir-kernel: does what `weir serve` decides in the kernel's packet filter, so that the server
 * itself needs no right to. See feature/kernel/message.h for what the two say to each other.
 *
 *   weir-kernel --fd N          the socket of the server that started it
 *   weir-kernel --listen        the listening socket that systemd gives it: it serves root and the
 *                               owner of the socket's file
 *   weir-kernel --remove TABLE  removes weir's table, and ends
 *
 * When the server is gone, it ends, or waits for the next one. The table stays: its bans end by
 * themselves, and the next server makes it anew in one transaction.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "feature/kernel/helper/addresses.h"
#include "feature/kernel/helper/sandbox.h"
#include "feature/kernel/helper/table.h"
#include "feature/kernel/names.h"

#define SERVER_FD 3 /* as systemd has it */
/* How often it looks whether its table is as it was. */
#define LOOK_MS 200
/* And at most how often, which addresses this machine has. */
#define ADDRESSES_MS 1000
/* A server that takes no answer for so long is taken for gone. */
#define SEND_PATIENCE_S 10

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* What one helper works with. */
struct helper {
    struct netlink netlink;
    struct addresses addresses;
    struct kernel_protected protected;
    uint64_t read_ms; /* when the addresses were read last */
};

/* Reads this machine's addresses. Returns 1 when there is a new one, 0, or -errno: nothing is
 * known, and no ban is added. */
static int read_addresses(struct helper *helper)
{
    struct kernel_ranges own = {.list = NULL};
    int err = addresses_read(&helper->addresses, &own);

    helper->read_ms = now_ms();
    if (err < 0) {
        helper->protected.known = false;
        free(own.list);
        return err;
    }
    return kernel_protected_own(&helper->protected, &own);
}

/* False: the server is gone. */
static bool answer(int fd, const struct weir_kernel_message *message)
{
    size_t size = weir_kernel_message_size(message);

    return send(fd, message, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static bool answer_done(int fd, struct weir_kernel_message *message, int result, uint32_t skipped,
                        const char *text)
{
    uint32_t number = message->head.number;

    weir_kernel_message_begin(message, WEIR_KERNEL_DONE);
    message->head.number = number;
    message->head.count = 1;
    memset(&message->done, 0, sizeof message->done);
    message->done.result = -result;
    message->done.skipped = skipped;
    snprintf(message->done.text, sizeof message->done.text, "%s", text);
    return answer(fd, message);
}

static int apply(struct helper *helper, struct kernel_table *table,
                 struct weir_kernel_message *message, char text[WEIR_KERNEL_TEXT_MAX + 1])
{
    int err = helper->protected.known ? 0 : read_addresses(helper);

    if (err >= 0)
        return kernel_table_apply(table, message, text);
    snprintf(text, WEIR_KERNEL_TEXT_MAX + 1, "to say this machine's addresses, so no ban is added");
    table->building = table->known = false;
    return err;
}

/* Does one message, which is valid. */
static bool handle(int fd, struct helper *helper, struct kernel_table *table,
                   struct weir_kernel_message *message)
{
    char text[WEIR_KERNEL_TEXT_MAX + 1] = "";
    int result;

    switch (message->head.type) {
    case WEIR_KERNEL_OPEN:
        (void)read_addresses(helper); /* the first transaction reports a failure */
        kernel_table_open(table, &helper->netlink, &helper->protected, &message->open);
        return true;
    case WEIR_KERNEL_PROTECT:
        return kernel_protected_name(&helper->protected, message) == 0;
    case WEIR_KERNEL_APPLY:
        result = apply(helper, table, message, text);
        return result == 1 ||
               answer_done(fd, message, result, result == 0 ? table->skipped : 0, text);
    case WEIR_KERNEL_REMOVE:
        result = table->opened ? kernel_table_remove(table) : -ENOENT;
        return answer_done(fd, message, result, 0, "removing the table");
    default: /* COUNT */
        return kernel_table_counts(table, message) < 0 || answer(fd, message);
    }
}

/* Whether the table has to be recreated, and why: cause 0: it has not. */
static struct weir_kernel_loss find_loss(struct helper *helper, struct kernel_table *table)
{
    int found;

    if (!kernel_table_holds(table))
        return (struct weir_kernel_loss){.cause = WEIR_KERNEL_LOST_CHANGED};
    if (!table->known || now_ms() - helper->read_ms < ADDRESSES_MS)
        return (struct weir_kernel_loss){.cause = 0};
    found = read_addresses(helper);
    if (found < 0)
        return (struct weir_kernel_loss){.cause = WEIR_KERNEL_LOST_UNREAD, .error = -found};
    return (struct weir_kernel_loss){.cause = found > 0 ? WEIR_KERNEL_LOST_ADDRESS : 0};
}

/* Looks whether the table is still as it was, and now and then whether this machine has a new
 * address, which a ban in the table may hold. False: the server is gone. */
static bool look(int fd, struct helper *helper, struct kernel_table *table,
                 struct weir_kernel_message *message)
{
    struct weir_kernel_loss loss = find_loss(helper, table);

    if (loss.cause == 0)
        return true;
    table->known = false;
    weir_kernel_message_begin(message, WEIR_KERNEL_LOST);
    message->head.count = 1;
    message->loss = loss;
    return answer(fd, message);
}

/* Serves one server until it is gone. */
static void serve(int fd, struct helper *helper)
{
    static struct weir_kernel_message message;
    struct kernel_table table = {.netlink = &helper->netlink, .protected = &helper->protected};
    struct timeval patience = {.tv_sec = SEND_PATIENCE_S};
    uint64_t looked_ms = now_ms();

    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int ready = poll(&wait, 1, LOOK_MS);

        if (ready < 0 && errno != EINTR)
            return;
        if (ready > 0) {
            ssize_t size = recv(fd, &message, sizeof message, MSG_DONTWAIT | MSG_TRUNC);

            if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
                return;
            if (size > 0 && (!weir_kernel_message_valid(&message, (size_t)size, true) ||
                             !handle(fd, helper, &table, &message)))
                return;
        }
        if (now_ms() - looked_ms < LOOK_MS)
            continue;
        looked_ms = now_ms();
        if (!look(fd, helper, &table, &message))
            return;
    }
}

/* Finds the user whose servers are served beside root's: the one that the socket's file belongs to,
 * also where its mode lets others in. */
static int read_owner(int listener, uid_t *owner)
{
    struct sockaddr_un address;
    socklen_t size = sizeof address;
    struct stat file;
    int listens = 0;
    socklen_t listens_size = sizeof listens;

    *owner = 0;
    if (getsockopt(listener, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_size) < 0)
        return -errno;
    if (!listens)
        return -EINVAL;
    memset(&address, 0, sizeof address);
    if (getsockname(listener, (struct sockaddr *)&address, &size) < 0)
        return -errno;
    if (address.sun_family == AF_UNIX && size < sizeof address && address.sun_path[0] == '/' &&
        stat(address.sun_path, &file) == 0)
        *owner = file.st_uid;
    return 0;
}

static bool may_serve(int fd, uid_t owner)
{
    struct ucred peer;
    socklen_t size = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == 0 || peer.uid == owner);
}

static int listen_for_servers(int listener, uid_t owner, struct helper *helper)
{
    bool warned = false;

    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0)
            return -errno;
        if (may_serve(fd, owner)) {
            serve(fd, helper);
            helper->protected.named.count = 0; /* the next server names its own */
        } else if (!warned) {
            fputs("weir-kernel: refused a user who is neither root nor the socket's owner: set "
                  "SocketUser= to the user of weir serve\n",
                  stderr);
            warned = true;
        }
        close(fd);
    }
}

static int remove_table(struct netlink *netlink, const char *name)
{
    struct weir_kernel_open open = {.hook = WEIR_KERNEL_INET};
    struct kernel_table table;

    if (!weir_kernel_table_valid(name, strlen(name)))
        return -EINVAL;
    memcpy(open.table, name, strlen(name));
    kernel_table_open(&table, netlink, NULL, &open);
    return kernel_table_remove(&table);
}

static int fail(const char *what, int err)
{
    fprintf(stderr, "weir-kernel: %s: %s\n", what, strerror(-err));
    return 1;
}

int main(int argc, char **argv)
{
    struct helper helper = {.read_ms = 0};
    bool listens = argc == 2 && !strcmp(argv[1], "--listen");
    bool removes = argc == 3 && !strcmp(argv[1], "--remove");
    bool serves = argc == 3 && !strcmp(argv[1], "--fd");
    uid_t owner = 0;
    int err;

    if (!listens && !removes && !serves) {
        fputs("Usage: weir-kernel --fd N | --listen | --remove TABLE\n"
              "Changes the kernel's packet filter for weir serve, which starts it.\n",
              stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    if (serves && dup2((int)strtol(argv[2], NULL, 10), SERVER_FD) < 0)
        return fail("--fd", -errno);
    (void)close_range(SERVER_FD + 1, ~0U, 0); /* what the one that started it has left open */
    err = listens ? read_owner(SERVER_FD, &owner) : 0;
    if (err < 0)
        return fail("--listen needs a socket that listens as descriptor 3: let systemd start it "
                    "(docs/kernel.md)",
                    err);
    err = netlink_open(&helper.netlink);
    if (err == 0)
        err = addresses_open(&helper.addresses);
    if (err < 0)
        return fail("cannot open netlink", err);
    err = sandbox_enter();
    if (err < 0)
        return fail("needs CAP_NET_ADMIN: run it as root, or with that capability", err);
    if (removes)
        err = remove_table(&helper.netlink, argv[2]);
    else if (listens)
        err = listen_for_servers(SERVER_FD, owner, &helper);
    else
        serve(SERVER_FD, &helper);
    if (removes && err == -EEXIST) {
        fprintf(stderr, "weir-kernel: another program made the table %s: nothing is removed\n",
                argv[2]);
        return 1;
    }
    return err < 0 ? fail(removes ? "cannot remove the table" : "cannot accept", err) : 0;
}
