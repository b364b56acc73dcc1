/* SPDX-License-Identifier: Apache-2.0 */
/* see strike_ring.h */
#include "feature/standing/strike_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/draft.h"
#include "base/shared_file.h"
#include "core/text/siphash.h"

#define MAGIC UINT64_C(0x736b697274736577) /* "westriks" */
#define VERSION 2                          /* 1: no hash of the count */
#define HALF (WEIR_STRIKE_SLOTS / 2)
#define PROBES 16 /* slots that a writer looks at in each half */

/* A word: what the slot is, and above that whose turn it is, so that a writer that comes back from
 * a long stop does not finish the strike of another one. */
enum { FREE, WRITING, READY };
#define STATE_BITS 2
#define STATE_MASK UINT64_C(3)

struct header {
    uint64_t magic, version, bytes;
    uint64_t beat_ns;     /* 0: no keeper */
    uint64_t turns, lost; /* of writers */
    uint64_t posted;      /* rises with each strike */
    uint64_t deferred;    /* moves for which a writer found no room */
};

struct slot {
    uint64_t check; /* of the word and the strike */
    struct weir_ring_strike strike;
};

struct file {
    struct header header;
    uint64_t words[WEIR_STRIKE_SLOTS];
    struct slot slots[WEIR_STRIKE_SLOTS];
};

struct weir_strike_ring {
    int fd;
    struct file *map; /* a writer's; NULL: the keeper's */
    /* The keeper's. */
    uint64_t posted, looked_ns; /* at the last whole look */
    uint64_t lost, theirs;      /* lost here; what writers have counted */
    uint64_t deferred;          /* likewise: moves that were put off */
    bool left;                  /* some had no room at the last look */
    /* Of each slot the word that was found WRITING, and since when, or whose strike had no room. */
    uint64_t seen_ns[WEIR_STRIKE_SLOTS], words[WEIR_STRIKE_SLOTS];
};

static int name_file(char path[PATH_MAX], const char *state_file, struct weir_reason *reason)
{
    if ((size_t)snprintf(path, PATH_MAX, "%s.strikes", state_file) < PATH_MAX)
        return 0;
    return weir_file_fail(reason, WEIR_ERR_IO, state_file, "the path is too long");
}

/* Finds torn strikes, not forged ones. */
static uint64_t check_of(uint64_t turn, const struct weir_ring_strike *strike)
{
    const uint64_t key[2] = {MAGIC, turn};
    uint64_t hash[2];

    weir_siphash128(key, strike, sizeof *strike, hash);
    return hash[0];
}

static bool is_whole(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_size == sizeof(struct file);
}

static bool is_ours(int fd)
{
    struct header header;

    return is_whole(fd) && pread(fd, &header, sizeof header, 0) == sizeof header &&
           header.magic == MAGIC && header.version == VERSION &&
           header.bytes == sizeof(struct file);
}

static int ring_new(struct weir_strike_ring **ring, int fd)
{
    *ring = calloc(1, sizeof **ring);
    if (!*ring)
        return WEIR_ERR_MEMORY;
    (*ring)->fd = fd;
    return 0;
}

void weir_strike_ring_close(struct weir_strike_ring *ring)
{
    if (!ring)
        return;
    if (ring->map)
        munmap(ring->map, sizeof *ring->map);
    else
        (void)!weir_strike_ring_beat(ring, 0);
    close(ring->fd);
    free(ring);
}

/* --- The keeper ------------------------------------------------------------------------------- */

static int lock(int fd, const char *path, struct weir_reason *reason)
{
    return weir_file_lock_writer(fd, path, "another weir serve takes its strikes", reason);
}

/* Writes a new file beside the old one and puts it in its place, so that a writer never sees half
 * of one. */
static int make(const char *path, const char *state_file, int *fd, struct weir_reason *reason)
{
    const struct header header = {.magic = MAGIC, .version = VERSION, .bytes = sizeof(struct file)};
    char draft[PATH_MAX];
    int err;

    if (!weir_draft_name(draft, path))
        return weir_file_fail(reason, WEIR_ERR_IO, path, "the path is too long");
    (void)unlink(draft);
    *fd = open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (*fd < 0)
        return weir_file_fail_errno(reason, draft, "create it");
    err = lock(*fd, draft, reason);
    if (err < 0)
        goto remove;
    weir_file_take_access(*fd, state_file);
    errno = posix_fallocate(*fd, 0, sizeof(struct file));
    if (errno != 0 || pwrite(*fd, &header, sizeof header, 0) != sizeof header ||
        rename(draft, path) != 0) {
        err = weir_file_fail_errno(reason, path, "write it");
        goto remove;
    }
    return 0;

remove:
    unlink(draft);
    close(*fd);
    return err;
}

int weir_strike_ring_keep(struct weir_strike_ring **ring, const char *state_file,
                          struct weir_reason *reason)
{
    char path[PATH_MAX];
    int err = name_file(path, state_file, reason), fd;

    if (err < 0)
        return err;
    fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    err = fd < 0 ? 0 : lock(fd, path, reason);
    if (err == 0 && (fd < 0 || !is_ours(fd))) {
        if (fd >= 0)
            close(fd);
        fd = -1;
        err = make(path, state_file, &fd, reason);
    }
    if (err == 0)
        err = ring_new(ring, fd);
    if (err < 0 && fd >= 0)
        close(fd);
    return err;
}

int weir_strike_ring_beat(struct weir_strike_ring *ring, uint64_t now_ns)
{
    struct stat status;

    if (fstat(ring->fd, &status) != 0 || status.st_nlink == 0 ||
        status.st_size != sizeof(struct file))
        return WEIR_ERR_IO;
    return pwrite(ring->fd, &now_ns, sizeof now_ns, offsetof(struct file, header.beat_ns)) ==
                   sizeof now_ns
               ? 0
               : WEIR_ERR_IO;
}

static int set_free(struct weir_strike_ring *ring, unsigned i)
{
    const uint64_t none = FREE;

    return pwrite(ring->fd, &none, sizeof none,
                  (off_t)(offsetof(struct file, words) + i * sizeof none)) == sizeof none
               ? 0
               : WEIR_ERR_IO;
}

/* A copy may hold anything. */
static bool is_sound(const struct weir_ring_strike *strike)
{
    const struct weir_cidr *network = &strike->network;
    uint8_t bits = network->address.family == 4 ? 32 : network->address.family == 6 ? 128 : 0;
    struct weir_address masked = network->address;

    if (strike->size > WEIR_STRIKE_TEXT_MAX || strike->moves > 1 || network->bits > bits)
        return false;
    if (network->address.family == 0)
        return true;
    weir_address_mask(&masked, network->bits);
    return memcmp(&masked, &network->address, sizeof masked) == 0;
}

static int take_one(struct weir_strike_ring *ring, unsigned i, uint64_t word,
                    weir_strike_ring_take take, void *context)
{
    struct slot copy;

    if (pread(ring->fd, &copy, sizeof copy,
              (off_t)(offsetof(struct file, slots) + i * sizeof copy)) != sizeof copy)
        return WEIR_ERR_IO;
    if (copy.check != check_of(word >> STATE_BITS, &copy.strike) || !is_sound(&copy.strike)) {
        ring->lost++;
    } else if (!take(context, &copy.strike, ring->words[i] == word)) {
        ring->words[i] = word;
        ring->left = true;
        return 0;
    }
    return set_free(ring, i);
}

/* One that is being written: for how long? */
static int watch(struct weir_strike_ring *ring, unsigned i, uint64_t word, uint64_t now_ns)
{
    if (ring->words[i] != word) {
        ring->words[i] = word;
        ring->seen_ns[i] = now_ns;
        return 0;
    }
    if (now_ns - ring->seen_ns[i] < WEIR_STRIKE_STUCK_NS)
        return 0;
    ring->words[i] = FREE;
    ring->lost++;
    return set_free(ring, i);
}

int weir_strike_ring_poll(struct weir_strike_ring *ring, uint64_t now_ns,
                          weir_strike_ring_take take, void *context)
{
    struct header header;
    uint64_t words[WEIR_STRIKE_SLOTS];
    int err = 0;

    if (pread(ring->fd, &header, sizeof header, 0) != sizeof header)
        return WEIR_ERR_IO;
    ring->theirs = header.lost;
    ring->deferred = header.deferred;
    if (header.posted == ring->posted && !ring->left &&
        now_ns - ring->looked_ns < WEIR_STRIKE_STUCK_NS)
        return 0;
    ring->posted = header.posted;
    ring->left = false;
    ring->looked_ns = now_ns;
    if (pread(ring->fd, words, sizeof words, offsetof(struct file, words)) != sizeof words)
        return WEIR_ERR_IO;
    for (unsigned i = 0; i < WEIR_STRIKE_SLOTS && err == 0; i++)
        if ((words[i] & STATE_MASK) == READY)
            err = take_one(ring, i, words[i], take, context);
        else if (words[i] != FREE)
            err = watch(ring, i, words[i], now_ns);
    return err;
}

uint64_t weir_strike_ring_lost(const struct weir_strike_ring *ring)
{
    return ring->lost + ring->theirs;
}

uint64_t weir_strike_ring_deferred(const struct weir_strike_ring *ring)
{
    return ring->deferred;
}

/* --- Writers ---------------------------------------------------------------------------------- */

int weir_strike_ring_open(struct weir_strike_ring **ring, const char *state_file,
                          struct weir_reason *reason)
{
    char path[PATH_MAX];
    int err = name_file(path, state_file, reason), fd;
    void *map;

    if (err < 0)
        return err;
    fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return weir_file_fail_errno(reason, path, "open it");
    if (!is_ours(fd)) {
        err = weir_file_fail(reason, WEIR_ERR_FORMAT, path,
                             "not a ring of strikes of this version of weir");
        goto close_file;
    }
    map = mmap(NULL, sizeof(struct file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        err = weir_file_fail_errno(reason, path, "map it");
        goto close_file;
    }
    err = ring_new(ring, fd);
    if (err < 0)
        goto unmap;
    (*ring)->map = map;
    return 0;

unmap:
    munmap(map, sizeof(struct file));
close_file:
    close(fd);
    return err;
}

bool weir_strike_ring_kept(const struct weir_strike_ring *ring, uint64_t now_ns)
{
    uint64_t beat_ns;

    if (!is_whole(ring->fd))
        return false;
    beat_ns = __atomic_load_n(&ring->map->header.beat_ns, __ATOMIC_RELAXED);
    return beat_ns != 0 &&
           (beat_ns >= now_ns ? beat_ns - now_ns : now_ns - beat_ns) < WEIR_STRIKE_BEAT_OLD_NS;
}

/* Makes a free slot of a half this writer's. -1: it finds none. */
static int claim(struct file *file, unsigned half, uint64_t turn)
{
    for (unsigned i = 0; i < PROBES; i++) {
        unsigned at = half + (unsigned)((turn + i) % HALF);
        uint64_t expected = FREE;

        if (__atomic_compare_exchange_n(&file->words[at], &expected, turn << STATE_BITS | WRITING,
                                        false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return (int)at;
    }
    return -1;
}

bool weir_strike_ring_put(struct weir_strike_ring *ring, const struct weir_ring_strike *strike,
                          uint64_t now_ns)
{
    struct file *file = ring->map;
    uint64_t turn, expected;
    int at;

    if (!weir_strike_ring_kept(ring, now_ns))
        return false;
    turn = __atomic_fetch_add(&file->header.turns, 1, __ATOMIC_RELAXED) & (UINT64_MAX >> 2);
    at = strike->moves ? claim(file, HALF, turn) : -1;
    if (at < 0)
        at = claim(file, 0, turn);
    if (at < 0) {
        __atomic_fetch_add(strike->moves ? &file->header.deferred : &file->header.lost, 1,
                           __ATOMIC_RELAXED);
        return false;
    }
    memcpy(&file->slots[at].strike, strike, sizeof *strike);
    file->slots[at].check = check_of(turn, strike);
    expected = turn << STATE_BITS | WRITING;
    if (!__atomic_compare_exchange_n(&file->words[at], &expected, turn << STATE_BITS | READY, false,
                                     __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        return false; /* the keeper has given it up, and counted it */
    __atomic_fetch_add(&file->header.posted, 1, __ATOMIC_RELEASE);
    return true;
}
