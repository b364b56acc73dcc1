/* SPDX-License-Identifier: Apache-2.0 */
/* The counts of the edge: what a reader sees of living, killed and later writers, and files that
 * are of others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feature/use/edge.h"
#include "rules/counter.h"
#include "temporary.h"
#include "test.h"

#define REPLACE (WEIR_EDGE_REPLACE | WEIR_EDGE_WAIT)

struct place {
    char folder[TEMPORARY_MAX], state[TEMPORARY_MAX + 16], file[TEMPORARY_MAX + 32];
};

static int make_place(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    assert_non_null(place);
    temporary_folder(place->folder);
    snprintf(place->state, sizeof place->state, "%s/state", place->folder);
    snprintf(place->file, sizeof place->file, "%s.edge", place->state);
    int fd = open(place->state, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
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

static struct weir_edge *open_edge(const struct place *place)
{
    struct weir_edge *edge;
    struct weir_reason reason = {{0}};
    int err = weir_edge_open(&edge, place->state, WEIR_EDGE_WAIT, &reason);
    if (err < 0)
        fail_msg("%d: %s", err, reason.text);
    return edge;
}

/* --- What a reader sees ----------------------------------------------------------------------- */

struct seen {
    uint64_t results[WEIR_EDGE_FRONTS][WEIR_EDGE_RESULTS];
    struct weir_edge_sum api, login;
    unsigned others;
};

static void see_limit(void *context, uint64_t name, const struct weir_edge_sum *counts)
{
    struct seen *seen = context;
    struct weir_edge_sum *sum = name == weir_edge_name("api", 3)     ? &seen->api
                                : name == weir_edge_name("login", 5) ? &seen->login
                                                                     : NULL;
    if (!sum) {
        seen->others++;
        return;
    }
    sum->allowed += counts->allowed;
    sum->denied += counts->denied;
    sum->shadow_denied += counts->shadow_denied;
    sum->cost += counts->cost;
    sum->delayed += counts->delayed;
}

static struct seen see(const struct place *place)
{
    struct seen seen;
    memset(&seen, 0, sizeof seen);
    struct weir_edge *edge = open_edge(place);
    assert_int_equal(weir_edge_read(edge, seen.results, see_limit, &seen), 0);
    weir_edge_close(edge);
    return seen;
}

static void count_some(struct weir_edge_slot *slot, enum weir_edge_front front, unsigned requests)
{
    for (unsigned i = 0; i < requests; i++) {
        weir_count(&weir_edge_results(slot, front)->counts[WEIR_EDGE_ALLOWED], 1);
        weir_count(&weir_edge_limit(slot, "api", 3)->allowed, 1);
        weir_count(&weir_edge_limit(slot, "login", 5)->denied, 2);
    }
}

TEST_WITH(make_place, remove_place, "counts of all slots add up")
{
    const struct place *place = *state;
    struct weir_edge *one = open_edge(place), *other = open_edge(place);
    count_some(weir_edge_take(one), WEIR_EDGE_NGINX, 3);
    count_some(weir_edge_take(one), WEIR_EDGE_NGINX, 4);
    count_some(weir_edge_take(other), WEIR_EDGE_LIBRARY, 5);
    struct seen seen = see(place);
    assert_int_equal(seen.results[WEIR_EDGE_NGINX][WEIR_EDGE_ALLOWED], 7);
    assert_int_equal(seen.results[WEIR_EDGE_LIBRARY][WEIR_EDGE_ALLOWED], 5);
    assert_int_equal(seen.results[WEIR_EDGE_NGINX][WEIR_EDGE_DENIED], 0);
    assert_int_equal(seen.api.allowed, 12);
    assert_int_equal(seen.login.denied, 24);
    assert_int_equal(seen.others, 0);
    weir_edge_close(one);
    weir_edge_close(other);
}

TEST_WITH(make_place, remove_place, "a killed writers counts stay and its slot is taken again")
{
    const struct place *place = *state;
    for (unsigned round = 1; round <= 2; round++) {
        int ready[2];
        char byte;
        assert_int_equal(pipe(ready), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct weir_edge *edge;
            struct weir_reason reason;
            if (weir_edge_open(&edge, place->state, WEIR_EDGE_WAIT, &reason) < 0)
                _exit(1);
            count_some(weir_edge_take(edge), WEIR_EDGE_NGINX, 10);
            if (write(ready[1], "x", 1) == 1)
                pause();
            _exit(1);
        }
        assert_int_equal(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        close(ready[1]);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        struct seen seen = see(place);
        assert_int_equal(seen.results[WEIR_EDGE_NGINX][WEIR_EDGE_ALLOWED], 10 * round);
        assert_int_equal(seen.api.allowed, 10 * round);
    }
    struct weir_edge *edge = open_edge(place);
    const struct weir_edge_results *results =
        weir_edge_results(weir_edge_take(edge), WEIR_EDGE_NGINX);
    assert_int_equal(results->counts[WEIR_EDGE_ALLOWED], 20); /* the slot of both */
    weir_edge_close(edge);
}

TEST_WITH(make_place, remove_place, "no two writers have one slot")
{
    const struct place *place = *state;
    struct weir_edge *one = open_edge(place), *other = open_edge(place);
    for (unsigned i = 0; i < WEIR_EDGE_SLOTS / 2; i++) {
        count_some(weir_edge_take(one), WEIR_EDGE_LIBRARY, 1);
        struct weir_edge_slot *slot = weir_edge_take(other);
        assert_int_equal(weir_edge_results(slot, WEIR_EDGE_LIBRARY)->counts[WEIR_EDGE_ALLOWED], 0);
        count_some(slot, WEIR_EDGE_LIBRARY, 1);
    }
    assert_null(weir_edge_take(one));
    assert_null(weir_edge_take(other));
    assert_int_equal(see(place).api.allowed, WEIR_EDGE_SLOTS);
    weir_edge_close(one);
    weir_edge_close(other);
}

TEST_WITH(make_place, remove_place, "a slot that is free again is found after the last")
{
    const struct place *place = *state;
    struct weir_edge *other = open_edge(place), *one = open_edge(place);
    count_some(weir_edge_take(other), WEIR_EDGE_NGINX, 1);
    for (unsigned i = 1; i < WEIR_EDGE_SLOTS; i++)
        count_some(weir_edge_take(one), WEIR_EDGE_LIBRARY, 1);
    assert_null(weir_edge_take(one));
    weir_edge_close(other);
    struct weir_edge_slot *slot = weir_edge_take(one);
    assert_non_null(slot);
    assert_int_equal(weir_edge_results(slot, WEIR_EDGE_NGINX)->counts[WEIR_EDGE_ALLOWED], 1);
    assert_null(weir_edge_take(one)); /* none of its own twice */
    weir_edge_close(one);
}

TEST_WITH(make_place, remove_place, "a name beyond the last place has no counts")
{
    const struct place *place = *state;
    struct weir_edge *edge = open_edge(place);
    struct weir_edge_slot *slot = weir_edge_take(edge);
    char name[16];
    for (unsigned i = 0; i < WEIR_EDGE_LIMITS; i++) {
        snprintf(name, sizeof name, "limit%u", i);
        assert_non_null(weir_edge_limit(slot, name, strlen(name)));
    }
    assert_null(weir_edge_limit(slot, "one more", 8));
    assert_non_null(weir_edge_limit(slot, "limit0", 6));
    assert_int_equal(see(place).others, WEIR_EDGE_LIMITS);
    weir_edge_close(edge);
}

/* --- Files ------------------------------------------------------------------------------------ */

TEST_WITH(make_place, remove_place, "the file has the access of the state")
{
    const struct place *place = *state;
    struct stat status;
    weir_edge_close(open_edge(place));
    assert_int_equal(stat(place->file, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
}

static void write_file(const struct place *place, const char *text)
{
    FILE *file = fopen(place->file, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    fclose(file);
}

TEST_WITH(make_place, remove_place, "a foreign file is refused or replaced")
{
    const struct place *place = *state;
    struct weir_edge *edge;
    struct weir_reason reason = {{0}};
    write_file(place, "someone's diary");
    assert_int_equal(weir_edge_open(&edge, place->state, WEIR_EDGE_WAIT, &reason), WEIR_ERR_FORMAT);
    assert_non_null(strstr(reason.text, place->file));
    assert_null(edge);
    assert_int_equal(weir_edge_open(&edge, place->state, REPLACE, &reason), 0);
    assert_non_null(weir_edge_take(edge));
    weir_edge_close(edge);
    assert_int_equal(unlink(place->file), 0);
    assert_int_equal(symlink("/dev/null", place->file), 0);
    assert_int_equal(weir_edge_open(&edge, place->state, REPLACE, &reason), WEIR_ERR_IO);
}

/* The process that made it ended before it wrote the header. */
TEST_WITH(make_place, remove_place, "a half made file is recreated")
{
    const struct place *place = *state;
    write_file(place, "");
    assert_int_equal(truncate(place->file, 12345), 0);
    struct weir_edge *edge = open_edge(place);
    count_some(weir_edge_take(edge), WEIR_EDGE_LIBRARY, 1);
    assert_int_equal(see(place).api.allowed, 1);
    weir_edge_close(edge);
}

/* By a member of the group, while others have mapped the file. */
TEST_WITH(make_place, remove_place, "a cleared header is recreated and the counts stay")
{
    const struct place *place = *state;
    const uint64_t zero = 0;
    struct stat before, after;
    struct weir_edge *edge = open_edge(place);
    count_some(weir_edge_take(edge), WEIR_EDGE_LIBRARY, 3);
    int fd = open(place->file, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &before) == 0);
    assert_int_equal(pwrite(fd, &zero, sizeof zero, 0), sizeof zero);
    struct seen seen = see(place);
    assert_int_equal(seen.api.allowed, 3);
    assert_int_equal(seen.results[WEIR_EDGE_LIBRARY][WEIR_EDGE_ALLOWED], 3);
    assert_true(fstat(fd, &after) == 0 && after.st_size == before.st_size);
    assert_true(weir_edge_is_current(edge));
    close(fd);
    weir_edge_close(edge);
}

TEST_WITH(make_place, remove_place, "an empty file that is too long is foreign")
{
    const struct place *place = *state;
    struct weir_edge *edge;
    struct weir_reason reason = {{0}};
    write_file(place, "");
    assert_int_equal(truncate(place->file, 16 << 20), 0);
    assert_int_equal(weir_edge_open(&edge, place->state, WEIR_EDGE_WAIT, &reason), WEIR_ERR_FORMAT);
    assert_int_equal(weir_edge_open(&edge, place->state, REPLACE, &reason), 0);
    weir_edge_close(edge);
}

TEST_WITH(make_place, remove_place, "an empty file with a second name is left alone")
{
    const struct place *place = *state;
    struct weir_edge *edge;
    struct weir_reason reason = {{0}};
    struct stat status;
    char other[TEMPORARY_MAX + 48];
    snprintf(other, sizeof other, "%s/other", place->folder);
    write_file(place, "");
    assert_int_equal(chmod(place->file, 0600), 0);
    assert_int_equal(link(place->file, other), 0);
    assert_int_equal(weir_edge_open(&edge, place->state, WEIR_EDGE_WAIT, &reason), WEIR_ERR_FORMAT);
    assert_int_equal(weir_edge_open(&edge, place->state, REPLACE, &reason), 0);
    weir_edge_close(edge);
    assert_int_equal(stat(other, &status), 0);
    assert_int_equal(status.st_size, 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(unlink(place->file), 0);
    assert_int_equal(mkfifo(place->file, 0600), 0);
    assert_int_equal(weir_edge_open(&edge, place->state, WEIR_EDGE_WAIT, &reason), WEIR_ERR_FORMAT);
    assert_int_equal(weir_edge_open(&edge, place->state, REPLACE, &reason), 0);
    weir_edge_close(edge);
}

/* Opens with `replace` what another process has replaced while this one waited for its lock. */
static void *replace_file(void *context)
{
    const struct place *place = context;
    struct weir_edge *edge;
    struct weir_reason reason;
    int err;
    do /* the one that makes it may be slow on a machine under load */
        err = weir_edge_open(&edge, place->state, REPLACE, &reason);
    while (err == WEIR_ERR_BUSY);
    return edge;
}

TEST_WITH(make_place, remove_place, "two that replace a foreign file have one file")
{
    struct place *place = *state;
    for (unsigned round = 0; round < 200; round++) {
        void *edges[4];
        pthread_t threads[4];
        (void)unlink(place->file);
        write_file(place, "someone's diary");
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, replace_file, place), 0);
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(pthread_join(threads[i], &edges[i]), 0);
        for (unsigned i = 0; i < 4; i++) {
            assert_non_null(edges[i]);
            assert_true(weir_edge_is_current(edges[i]));
            weir_edge_close(edges[i]);
        }
    }
}

TEST_WITH(make_place, remove_place, "another file in its place is noticed")
{
    const struct place *place = *state;
    struct weir_edge *edge = open_edge(place);
    assert_true(weir_edge_is_current(edge));
    assert_int_equal(unlink(place->file), 0);
    assert_false(weir_edge_is_current(edge));
    struct weir_edge *next = open_edge(place);
    assert_false(weir_edge_is_current(edge));
    assert_true(weir_edge_is_current(next));
    assert_int_equal(truncate(place->file, 4096), 0);
    struct seen seen;
    assert_false(weir_edge_is_current(next));
    struct weir_edge_slot *slot = weir_edge_take(edge); /* of the file that is gone */
    assert_non_null(slot);
    weir_edge_close(edge);
    assert_int_equal(weir_edge_read(next, seen.results, see_limit, &seen), 0); /* no slot is used */
    weir_edge_close(next);
}

TEST_WITH(make_place, remove_place, "a file that is cut short is an error for readers")
{
    const struct place *place = *state;
    struct weir_edge *edge = open_edge(place);
    struct seen seen;
    count_some(weir_edge_take(edge), WEIR_EDGE_LIBRARY, 1);
    assert_int_equal(truncate(place->file, 5000), 0);
    assert_int_equal(weir_edge_read(edge, seen.results, see_limit, &seen), WEIR_ERR_IO);
    weir_edge_close(edge);
}

RUN_TESTS()
