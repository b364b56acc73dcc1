/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of strikes: what arrives, what is lost and counted, and writers that die, lag behind or
 * write anything into the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "feature/standing/strike_ring.h"
#include "temporary.h"
#include "test.h"

#define S UINT64_C(1000000000)
#define NOW (UINT64_C(5000) * S)
#define WORDS_AT 64
#define SLOTS_AT (WORDS_AT + 8 * WEIR_STRIKE_SLOTS)
#define SLOT_BYTES (8 + sizeof(struct weir_ring_strike))

struct place {
    char folder[TEMPORARY_MAX], state[TEMPORARY_MAX + 16], ring[TEMPORARY_MAX + 32];
};

static int make_place(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    int fd;

    assert_non_null(place);
    temporary_folder(place->folder);
    snprintf(place->state, sizeof place->state, "%s/state", place->folder);
    snprintf(place->ring, sizeof place->ring, "%s.strikes", place->state);
    fd = open(place->state, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    assert_true(fd >= 0 && fchmod(fd, 0640) == 0);
    close(fd);
    *state = place;
    return 0;
}

static int remove_place(void **state)
{
    struct place *place = *state;

    temporary_remove(place->folder);
    free(place);
    return 0;
}

static struct weir_strike_ring *keep(const struct place *place)
{
    struct weir_strike_ring *ring;
    struct weir_reason reason = {{0}};
    int err = weir_strike_ring_keep(&ring, place->state, &reason);

    if (err < 0)
        fail_msg("%d: %s", err, reason.text);
    assert_int_equal(weir_strike_ring_beat(ring, NOW), 0);
    return ring;
}

static struct weir_strike_ring *open_ring(const struct place *place)
{
    struct weir_strike_ring *ring;
    struct weir_reason reason = {{0}};
    int err = weir_strike_ring_open(&ring, place->state, &reason);

    if (err < 0)
        fail_msg("%d: %s", err, reason.text);
    return ring;
}

static struct weir_ring_strike strike(uint64_t number, bool moves)
{
    struct weir_ring_strike strike;

    memset(&strike, 0, sizeof strike);
    strike.penalty = number;
    strike.now_ns = NOW;
    strike.moves = moves;
    strike.size = (uint16_t)snprintf(strike.text, sizeof strike.text, "user-%u", (unsigned)number);
    return strike;
}

static bool put(struct weir_strike_ring *ring, uint64_t number, bool moves)
{
    struct weir_ring_strike one = strike(number, moves);

    return weir_strike_ring_put(ring, &one, NOW);
}

struct taken {
    unsigned count, moves;
    uint64_t sum;
};

static bool take(void *context, const struct weir_ring_strike *one, bool again)
{
    struct taken *taken = context;

    assert_true(one->size <= WEIR_STRIKE_TEXT_MAX && one->moves <= 1);
    taken->count++;
    taken->moves += one->moves;
    taken->sum += one->penalty;
    return true;
}

static struct taken poll_at(struct weir_strike_ring *ring, uint64_t now_ns)
{
    struct taken taken = {0, 0, 0};

    assert_int_equal(weir_strike_ring_poll(ring, now_ns, take, &taken), 0);
    return taken;
}

static bool take_equal(void *context, const struct weir_ring_strike *one, bool again)
{
    assert_memory_equal(context, one, sizeof *one);
    return true;
}

TEST_WITH(make_place, remove_place, "a strike arrives as it was put")
{
    struct weir_strike_ring *keeper = keep(*state), *writer = open_ring(*state);
    struct weir_ring_strike one = strike(7, true);

    one.id[0] = 1;
    one.id[1] = UINT64_MAX;
    one.network.address.family = 6;
    one.network.address.bytes[0] = 0x20;
    one.network.bits = 64;
    one.size = WEIR_STRIKE_TEXT_MAX;
    memset(one.text, 'x', sizeof one.text);
    assert_true(weir_strike_ring_put(writer, &one, NOW));
    assert_int_equal(weir_strike_ring_poll(keeper, NOW, take_equal, &one), 0);
    assert_int_equal(poll_at(keeper, NOW).count, 0);
    assert_int_equal(weir_strike_ring_lost(keeper), 0);
    weir_strike_ring_close(writer);
    weir_strike_ring_close(keeper);
}

TEST_WITH(make_place, remove_place, "the file has the rights of the state file")
{
    const struct place *place = *state;
    struct weir_strike_ring *keeper = keep(place);
    struct stat status;

    assert_int_equal(stat(place->ring, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
    weir_strike_ring_close(keeper);
}

TEST_WITH(make_place, remove_place, "a flood of strikes leaves room for moves")
{
    struct weir_strike_ring *keeper = keep(*state), *writer = open_ring(*state);
    unsigned put_count = 0, moves = 0;

    for (unsigned i = 0; i < 3 * WEIR_STRIKE_SLOTS; i++)
        put_count += put(writer, i, false);
    assert_int_equal(put_count, WEIR_STRIKE_SLOTS / 2);
    for (unsigned i = 0; i < WEIR_STRIKE_SLOTS / 2; i++)
        moves += put(writer, i, true);
    assert_int_equal(moves, WEIR_STRIKE_SLOTS / 2);
    assert_false(put(writer, 1, true));

    struct taken taken = poll_at(keeper, NOW);

    assert_int_equal(taken.count, WEIR_STRIKE_SLOTS);
    assert_int_equal(taken.moves, WEIR_STRIKE_SLOTS / 2);
    assert_int_equal(weir_strike_ring_lost(keeper), 3 * WEIR_STRIKE_SLOTS - put_count);
    assert_int_equal(weir_strike_ring_deferred(keeper), 1);
    assert_true(put(writer, 1, false));
    weir_strike_ring_close(writer);
    weir_strike_ring_close(keeper);
}

struct room {
    unsigned left, again; /* strikes that have room; how many were there before */
};

static bool take_some(void *context, const struct weir_ring_strike *one, bool again)
{
    struct room *room = context;

    room->again += again;
    if (room->left == 0)
        return false;
    room->left--;
    return true;
}

TEST_WITH(make_place, remove_place, "what the keeper has no room for comes again")
{
    struct weir_strike_ring *keeper = keep(*state), *writer = open_ring(*state);
    struct room room = {.left = 3};

    for (unsigned i = 0; i < 10; i++)
        assert_true(put(writer, i, true));
    assert_int_equal(weir_strike_ring_poll(keeper, NOW, take_some, &room), 0);
    assert_int_equal(room.left, 0);
    assert_int_equal(room.again, 0);
    assert_true(put(writer, 10, true)); /* in one of those that are free again, or another */
    assert_int_equal(weir_strike_ring_poll(keeper, NOW, take_some, &room), 0);
    assert_int_equal(room.again, 7);
    assert_int_equal(poll_at(keeper, NOW).count, 8);
    assert_int_equal(poll_at(keeper, NOW).count, 0);
    assert_int_equal(weir_strike_ring_lost(keeper), 0);
    weir_strike_ring_close(writer);
    weir_strike_ring_close(keeper);
}

TEST_WITH(make_place, remove_place, "nothing is put where no keeper beats")
{
    struct weir_strike_ring *keeper = keep(*state), *writer = open_ring(*state);

    assert_true(weir_strike_ring_kept(writer, NOW + WEIR_STRIKE_BEAT_OLD_NS - 1));
    assert_false(weir_strike_ring_kept(writer, NOW + WEIR_STRIKE_BEAT_OLD_NS));
    assert_false(weir_strike_ring_kept(writer, 1)); /* after a reboot */
    weir_strike_ring_close(keeper);
    assert_false(weir_strike_ring_kept(writer, NOW));
    assert_false(put(writer, 1, true));
    weir_strike_ring_close(writer);
}

TEST_WITH(make_place, remove_place, "a ring has one keeper and outlives it")
{
    struct place *place = *state;
    struct weir_strike_ring *keeper = keep(place), *writer = open_ring(place), *other;
    struct weir_reason reason;

    assert_int_equal(weir_strike_ring_keep(&other, place->state, &reason), WEIR_ERR_BUSY);
    assert_non_null(strstr(reason.text, place->ring));
    assert_true(put(writer, 3, true));
    weir_strike_ring_close(keeper);
    keeper = keep(place);
    assert_int_equal(poll_at(keeper, NOW).sum, 3);
    assert_true(put(writer, 4, true));
    assert_int_equal(poll_at(keeper, NOW).sum, 4);
    weir_strike_ring_close(writer);
    weir_strike_ring_close(keeper);
}

TEST_WITH(make_place, remove_place, "a file that is cut or removed or foreign is recreated")
{
    struct place *place = *state;
    struct weir_strike_ring *keeper, *writer;
    struct weir_reason reason;

    for (int damage = 0; damage < 3; damage++) {
        keeper = keep(place);
        writer = open_ring(place);
        if (damage == 0)
            assert_int_equal(truncate(place->ring, 4000), 0);
        else if (damage == 1)
            assert_int_equal(unlink(place->ring), 0);
        if (damage < 2) {
            assert_int_equal(weir_strike_ring_beat(keeper, NOW), WEIR_ERR_IO);
            assert_int_equal(put(writer, 1, true), damage == 1); /* no signal */
        } else {
            int fd = open(place->ring, O_WRONLY | O_CLOEXEC);

            assert_int_equal(write(fd, "a diary", 7), 7);
            close(fd);
        }
        weir_strike_ring_close(keeper);
        weir_strike_ring_close(writer);
        if (damage != 1)
            assert_int_equal(weir_strike_ring_open(&writer, place->state, &reason),
                             WEIR_ERR_FORMAT);
        else
            assert_int_equal(weir_strike_ring_open(&writer, place->state, &reason),
                             WEIR_ERR_NOT_FOUND);
        keeper = keep(place);
        writer = open_ring(place);
        assert_true(put(writer, 1, true));
        assert_int_equal(poll_at(keeper, NOW).count, 1);
        weir_strike_ring_close(keeper);
        weir_strike_ring_close(writer);
    }
}

/* --- Writers that do not finish --------------------------------------------------------------- */

static uint8_t *map_ring(const struct place *place, size_t *bytes)
{
    int fd = open(place->ring, O_RDWR | O_CLOEXEC);
    struct stat status;
    void *map;

    assert_true(fd >= 0 && fstat(fd, &status) == 0);
    *bytes = (size_t)status.st_size;
    map = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(map != MAP_FAILED);
    close(fd);
    return map;
}

TEST_WITH(make_place, remove_place,
          "a slot of a writer that was killed is free again after a while")
{
    struct weir_strike_ring *keeper = keep(*state);
    size_t bytes;
    uint8_t *map = map_ring(*state, &bytes);
    const uint64_t writing = UINT64_C(77) << 2 | 1, none = 0;

    memcpy(map + WORDS_AT + 8 * 5, &writing, 8);
    assert_int_equal(poll_at(keeper, NOW + 6 * S).count, 0);
    assert_int_equal(poll_at(keeper, NOW + 11 * S - 1).count, 0);
    assert_memory_equal(map + WORDS_AT + 8 * 5, &writing, 8);
    assert_int_equal(poll_at(keeper, NOW + 11 * S).count, 0);
    assert_memory_equal(map + WORDS_AT + 8 * 5, &none, 8);
    assert_int_equal(weir_strike_ring_lost(keeper), 1);
    munmap(map, bytes);
    weir_strike_ring_close(keeper);
}

TEST_WITH(make_place, remove_place, "a torn strike is lost and counted")
{
    struct weir_strike_ring *keeper = keep(*state), *writer = open_ring(*state);
    size_t bytes;
    uint8_t *map = map_ring(*state, &bytes);

    assert_true(put(writer, 1, true));
    for (unsigned i = 0; i < WEIR_STRIKE_SLOTS; i++)
        map[SLOTS_AT + i * SLOT_BYTES + 100] ^= 1;
    assert_int_equal(poll_at(keeper, NOW).count, 0);
    assert_int_equal(weir_strike_ring_lost(keeper), 1);
    assert_true(put(writer, 2, true));
    assert_int_equal(poll_at(keeper, NOW).count, 1);
    munmap(map, bytes);
    weir_strike_ring_close(writer);
    weir_strike_ring_close(keeper);
}

/* --- Hostile writers -------------------------------------------------------------------------- */

TEST_WITH(make_place, remove_place, "no bytes in the file harm the keeper or a writer")
{
    struct weir_strike_ring *keeper = keep(*state), *writer = open_ring(*state);
    size_t bytes;
    uint8_t *map = map_ring(*state, &bytes);
    uint64_t random = 88172645463325252U;
    uint64_t now_ns = NOW;

    for (unsigned round = 0; round < 3000; round++) {
        for (unsigned i = 0; i < 40; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            size_t most = round % 3 == 0 ? bytes : SLOTS_AT; /* words are worth more than texts */
            map[random % most] = (uint8_t)(random >> 32);
        }
        now_ns += S / 10;
        (void)!weir_strike_ring_beat(keeper, now_ns);
        struct weir_ring_strike one = strike(round, round % 2);
        (void)weir_strike_ring_put(writer, &one, now_ns);
        struct taken taken = poll_at(keeper, now_ns);
        assert_true(taken.count <= WEIR_STRIKE_SLOTS);
    }
    munmap(map, bytes);
    weir_strike_ring_close(writer);
    weir_strike_ring_close(keeper);
}

/* --- Threads ---------------------------------------------------------------------------------- */

#define WRITERS 4
#define EACH 20000

struct writing {
    const struct place *place;
    uint64_t sum, count;
};

static void *write_many(void *context)
{
    struct writing *writing = context;
    struct weir_strike_ring *ring = open_ring(writing->place);

    for (uint64_t i = 1; i <= EACH; i++)
        if (put(ring, i, i % 3 == 0)) {
            writing->sum += i;
            writing->count++;
        }
    weir_strike_ring_close(ring);
    return NULL;
}

TEST_WITH(make_place, remove_place, "every strike of many writers arrives once or is counted")
{
    struct weir_strike_ring *keeper = keep(*state);
    struct writing writing[WRITERS];
    pthread_t threads[WRITERS];
    uint64_t sum = 0, count = 0, wrote_sum = 0, wrote = 0;
    struct taken taken;

    for (unsigned i = 0; i < WRITERS; i++) {
        writing[i] = (struct writing){.place = *state};
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, &writing[i]), 0);
    }
    for (unsigned i = 0; i < 2000; i++) {
        taken = poll_at(keeper, NOW);
        sum += taken.sum;
        count += taken.count;
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
        wrote += writing[i].count;
        wrote_sum += writing[i].sum;
    }
    taken = poll_at(keeper, NOW + 10 * S);
    assert_int_equal(count + taken.count, wrote);
    assert_int_equal(sum + taken.sum, wrote_sum);
    (void)poll_at(keeper, NOW + 10 * S);
    assert_int_equal(wrote + weir_strike_ring_lost(keeper) + weir_strike_ring_deferred(keeper),
                     WRITERS * EACH);
    weir_strike_ring_close(keeper);
}

RUN_TESTS()
