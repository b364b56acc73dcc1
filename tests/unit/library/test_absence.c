/* SPDX-License-Identifier: Apache-2.0 */
/* A state file that cannot be opened is a state that does not answer: on_store_error decides, and
 * libweir tries again. The reason is removed while the limiter is open. */
#include "library_place.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <weir/embed.h>

#include "feature/standing/standing.h"
#include "feature/use/edge.h"

#define MINUTE_S 60

static const char by_policy[] =
    "headers: [draft]\n" /* chosen, so that its default is not warned of */
    "limits:\n"
    "  - { name: open, match: { path: /open }, key: [client.ip], rate: 3/day, on_store_error: open "
    "}\n"
    "  - { name: closed, match: { path: /closed }, key: [client.ip], rate: 3/day, on_store_error: "
    "closed }\n"
    "  - { name: local, match: { path: /local }, key: [client.ip], rate: 3/day }\n"
    "  - { name: jobs, match: { path: /jobs }, key: [client.ip], algorithm: concurrency, limit: 2, "
    "life: 1h }\n";

/* --- What is said ----------------------------------------------------------------------------- */

struct said {
    pthread_mutex_t lock;
    pthread_cond_t more;
    int errors, infos, warnings;
    char error[512], info[512];
};

static void note(void *context, enum weir_say level, const char *text)
{
    struct said *said = context;
    pthread_mutex_lock(&said->lock);
    if (level == WEIR_SAY_ERROR) {
        said->errors++;
        snprintf(said->error, sizeof said->error, "%s", text);
    } else if (level == WEIR_SAY_INFO) {
        said->infos++;
        snprintf(said->info, sizeof said->info, "%s", text);
    } else {
        said->warnings++;
    }
    pthread_cond_signal(&said->more);
    pthread_mutex_unlock(&said->lock);
}

static struct said heard;

static int errors_heard(void)
{
    pthread_mutex_lock(&heard.lock);
    int errors = heard.errors;
    pthread_mutex_unlock(&heard.lock);
    return errors;
}

/* --- A limiter without a state ---------------------------------------------------------------- */

struct folder {
    struct place place;
    char inner[96], state[128]; /* a folder that is missing, and the state in it */
};

static int setup(void **state)
{
    struct folder *folder = calloc(1, sizeof *folder);
    assert_non_null(folder);
    temporary_folder(folder->place.folder);
    snprintf(folder->place.rules, sizeof folder->place.rules, "%s/rules.yaml",
             folder->place.folder);
    snprintf(folder->inner, sizeof folder->inner, "%s/run", folder->place.folder);
    snprintf(folder->state, sizeof folder->state, "%s/state", folder->inner);
    memset(&heard, 0, sizeof heard);
    pthread_mutex_init(&heard.lock, NULL);
    pthread_cond_init(&heard.more, NULL);
    write_rules(&folder->place, by_policy);
    *state = folder;
    return 0;
}

static int teardown(void **state)
{
    struct folder *folder = *state;
    temporary_remove(folder->place.folder);
    free(folder);
    return 0;
}

static struct weir *open_in(const struct folder *folder, struct weir_options options)
{
    options.state_file = folder->state;
    options.state_bytes = 1 << 20;
    options.say = note;
    options.say_context = &heard;
    return open_weir(&folder->place, &options);
}

static struct weir_answer_summary ask(struct weir *weir, const char *path)
{
    const struct weir_attribute_value request[] = {{"path", path}, {"client.ip", "192.0.2.1"}};
    struct weir_answer_summary answer;
    assert_int_equal(weir_check(weir, request, 2, 1, &answer), 0);
    return answer;
}

static void expect(struct weir *weir, const char *path, bool allowed, bool failed)
{
    struct weir_answer_summary answer = ask(weir, path);
    assert_int_equal(answer.allowed, allowed);
    assert_int_equal(answer.store_failed, failed);
}

/* Until its thread has said that the state is there, after which it says no more. */
static void wait_for_state(struct weir *weir)
{
    struct timespec until;
    struct weir_reason reason = {""};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += MINUTE_S;
    pthread_mutex_lock(&heard.lock);
    while (heard.infos == 0 &&
           pthread_cond_timedwait(&heard.more, &heard.lock, &until) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&heard.lock);
    if (weir_state_check(weir, &reason) < 0)
        fail_msg("%s", reason.text);
    assert_int_equal(heard.infos, 1);
}

static void make_folder(const struct folder *folder)
{
    assert_int_equal(mkdir(folder->inner, 0700), 0);
}

TEST_WITH(setup, teardown, "each limit decides by its on store error")
{
    struct folder *folder = *state;
    struct weir_reason reason;
    struct weir *weir = open_in(folder, (struct weir_options){.threads = 2});
    assert_int_equal(weir_state_check(weir, &reason), WEIR_ERR_IO);
    assert_non_null(strstr(reason.text, folder->state));
    assert_int_equal(errors_heard(), 1);
    assert_non_null(strstr(heard.error, "cannot open the state, and tries again every second: "));
    assert_non_null(strstr(heard.error, folder->state));
    for (int n = 0; n < 20; n++) {
        expect(weir, "/open", true, true);
        expect(weir, "/closed", false, true);
        expect(weir, "/local", n < 3, true);
        expect(weir, "/none", true, false); /* no limit, so no state is asked */
    }
    assert_int_equal(errors_heard(), 1); /* that it could not be opened: not again in this minute */
    weir_close(weir);
}

TEST_WITH(setup, teardown, "the state decides when it can be opened")
{
    struct folder *folder = *state;
    struct weir *weir = open_in(folder, (struct weir_options){.threads = 2});
    for (int n = 0; n < 4; n++)
        expect(weir, "/local", n < 3, true);
    make_folder(folder);
    wait_for_state(weir);
    for (int n = 0; n < 4; n++) {
        expect(weir, "/local", n < 3, false); /* fresh: what the stand-in counted is gone */
        expect(weir, "/closed", n < 3, false);
    }
    struct weir *other = open_in(folder, (struct weir_options){.threads = 1});
    expect(other, "/closed", false, false); /* one state, for all processes */
    weir_close(other);
    weir_close(weir); /* whose thread has ended, so that it has said all */
    assert_int_equal(heard.infos, 1);
    assert_string_equal(heard.info, "the state can be used again");
}

TEST_WITH(setup, teardown, "leases and reservations end where they began")
{
    static struct weir_answer_summary answer;
    static struct weir_reservation_token reservation;
    struct folder *folder = *state;
    struct weir *weir = open_in(folder, (struct weir_options){.leases_end_with_process = true});
    struct weir_answer_summary lease = ask(weir, "/jobs");
    assert_string_not_equal(lease.lease.text, "");
    ask(weir, "/jobs");
    expect(weir, "/jobs", false, true);
    assert_int_equal(weir_release(weir, &lease.lease), 0);
    expect(weir, "/jobs", true, true);
    const struct weir_value values[] = {{weir_attribute(weir, "path"), "/local", 6},
                                        {weir_attribute(weir, "client.ip"), "192.0.2.9", 9}};
    const struct weir_call call = {.values = values,
                                   .count = 2,
                                   .cost = 3,
                                   .reserve = WEIR_RESERVE_ALWAYS,
                                   .reservation = &reservation};
    assert_int_equal(weir_check_full(weir, &call, &answer), 0);
    assert_true(answer.allowed);
    assert_int_equal(weir_settle(weir, &reservation, 1), 0);
    make_folder(folder);
    wait_for_state(weir);
    assert_int_not_equal(weir_settle(weir, &reservation, 0), 0); /* of another state */
    assert_int_not_equal(weir_release(weir, &lease.lease), 0);
    assert_int_equal(weir_tend(weir), 0);
    expect(weir, "/jobs", true, false);
    weir_close(weir);
}

/* The rules that a reload brings are those that the file is decided by. */
TEST_WITH(setup, teardown, "a reload without a state takes effect now and later")
{
    struct folder *folder = *state;
    struct weir_reason reason;
    struct weir *weir = open_in(folder, (struct weir_options){.threads = 1});
    write_rules(&folder->place,
                "limits: [ { name: a, match: { path: /local }, key: [], rate: 1/day } ]\n");
    assert_int_equal(weir_reload(weir, &reason), 0);
    expect(weir, "/local", true, true);
    expect(weir, "/local", false, true);
    assert_int_equal(unlink(folder->place.rules), 0); /* it is not read again */
    make_folder(folder);
    wait_for_state(weir);
    expect(weir, "/local", true, false);
    expect(weir, "/local", false, false);
    assert_int_equal(weir_reload(weir, &reason), WEIR_ERR_RULES);
    weir_close(weir);
}

TEST_WITH(setup, teardown, "rules and options that are wrong are errors still")
{
    struct folder *folder = *state;
    struct weir *weir;
    struct weir_reason reason;
    struct weir_options options = {.state_file = folder->state, .state_must_open = true};
    assert_int_equal(weir_open(&weir, folder->place.rules, &options, &reason), WEIR_ERR_IO);
    options = (struct weir_options){.state_file = folder->state, .state_bytes = 1};
    assert_int_equal(weir_open(&weir, folder->place.rules, &options, &reason), WEIR_ERR_RANGE);
    write_rules(&folder->place, "limits: nonsense\n");
    options = (struct weir_options){.state_file = folder->state};
    assert_int_equal(weir_open(&weir, folder->place.rules, &options, &reason), WEIR_ERR_RULES);
    write_rules(&folder->place, by_policy);
    options = (struct weir_options){.state_file = folder->state, .state_group = "no-such-group"};
    assert_int_equal(weir_open(&weir, folder->place.rules, &options, &reason), WEIR_ERR_NOT_FOUND);
    assert_non_null(strstr(reason.text, "no-such-group"));
    make_folder(folder);
    assert_int_equal(weir_open(&weir, folder->place.rules, &options, &reason), WEIR_ERR_NOT_FOUND);
}

static void write_state(const struct folder *folder, const char *text)
{
    FILE *file = fopen(folder->state, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* The file stays as it is, and is named. */
TEST_WITH(setup, teardown, "a file that is no state is named")
{
    struct folder *folder = *state;
    struct weir_reason reason;
    make_folder(folder);
    write_state(folder, "something else");
    struct weir *weir = open_in(folder, (struct weir_options){.threads = 1});
    expect(weir, "/closed", false, true);
    assert_int_equal(weir_state_check(weir, &reason), WEIR_ERR_FORMAT);
    assert_non_null(strstr(reason.text, "not a state file of weir"));
    assert_int_equal(unlink(folder->state), 0);
    wait_for_state(weir);
    expect(weir, "/closed", true, false);
    weir_close(weir);
}

/* Another size than the one that other processes have open. */
TEST_WITH(setup, teardown, "a size that cannot change now is taken when it can")
{
    struct folder *folder = *state;
    struct weir_reason reason;
    struct weir *weir, *other;
    const struct weir_options larger = {
        .state_file = folder->state, .state_bytes = 1 << 21, .say = note, .say_context = &heard};
    make_folder(folder);
    other = open_in(folder, (struct weir_options){.threads = 1});
    weir = open_weir(&folder->place, &larger);
    assert_int_equal(weir_state_check(weir, &reason), WEIR_ERR_BUSY);
    assert_non_null(strstr(reason.text, "stop that one first"));
    expect(weir, "/closed", false, true);
    weir_close(other);
    wait_for_state(weir);
    expect(weir, "/closed", true, false);
    weir_close(weir);
}

TEST_WITH(setup, teardown, "a folder that bars this user is said with user and mode")
{
    struct folder *folder = *state;
    struct weir_reason reason;
    if (geteuid() != 0)
        skip();
    make_folder(folder);
    weir_close(open_in(folder, (struct weir_options){.threads = 1}));
    assert_int_equal(chmod(folder->place.folder, 0755), 0);
    assert_int_equal(chmod(folder->place.rules, 0644), 0);
    assert_int_equal(chmod(folder->inner, 0755), 0);
    assert_int_equal(seteuid(65534), 0);
    struct weir *weir = open_in(folder, (struct weir_options){.threads = 1});
    int err = weir_state_check(weir, &reason);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(err, WEIR_ERR_IO);
    assert_non_null(strstr(reason.text, "mode 0600"));
    weir_close(weir);
}

static uint64_t failures_of(const char *state_file)
{
    uint64_t failed[WEIR_EDGE_FRONTS];
    struct weir_edge *edge;
    struct weir_reason reason;
    assert_int_equal(weir_edge_open(&edge, state_file, 0, &reason), 0);
    weir_edge_failures(edge, failed);
    weir_edge_close(edge);
    assert_int_equal(failed[WEIR_EDGE_NGINX], 0);
    return failed[WEIR_EDGE_LIBRARY];
}

/* Beside a file of another version there is room to count. */
TEST_WITH(setup, teardown, "what on store error decides is counted beside the state")
{
    struct folder *folder = *state;
    make_folder(folder);
    write_state(folder, "something else");
    struct weir *weir = open_in(folder, (struct weir_options){.threads = 1});
    for (int n = 0; n < 5; n++)
        expect(weir, "/open", true, true);
    assert_int_equal(failures_of(folder->state), 5);
    assert_int_equal(unlink(folder->state), 0);
    wait_for_state(weir);
    expect(weir, "/open", true, false);
    assert_int_equal(failures_of(folder->state), 5);
    weir_close(weir);
}

/* --- Many threads ----------------------------------------------------------------------------- */

#define THREADS 4

struct asking {
    struct weir *weir;
    atomic_bool stop;
    atomic_uint wrong;
};

/* A closed limit denies while there is no state, and admits three afterwards; whatever is decided
 * has one of the two as its cause. */
static void *ask_always(void *context)
{
    struct asking *asking = context;
    while (!atomic_load(&asking->stop)) {
        struct weir_answer_summary answer = ask(asking->weir, "/closed");
        if (answer.store_failed && answer.allowed)
            atomic_fetch_add(&asking->wrong, 1);
    }
    return NULL;
}

TEST_WITH(setup, teardown, "requests go on while the state comes")
{
    struct folder *folder = *state;
    struct asking asking = {.weir = open_in(folder, (struct weir_options){.threads = THREADS})};
    struct weir_reason reason;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_always, &asking), 0);
    make_folder(folder);
    for (int n = 0; n < 3; n++)
        assert_int_equal(weir_reload(asking.weir, &reason), 0);
    wait_for_state(asking.weir);
    assert_int_equal(weir_reload(asking.weir, &reason), 0);
    atomic_store(&asking.stop, true);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(asking.wrong, 0);
    expect(asking.weir, "/closed", false, false); /* three were admitted, by all together */
    assert_int_equal(errors_heard(), 1); /* and nobody took the wait for a stopped process */
    weir_close(asking.weir);
}

/* --- The map of standing ---------------------------------------------------------------------- */

/* Where the section says that nobody passes without it, nobody does. */
TEST_WITH(setup, teardown, "a map that cannot be read is decided by its on store error")
{
    struct folder *folder = *state;
    char map[192], text[1024];
    for (int closed = 0; closed < 2; closed++) {
        snprintf(map, sizeof map, "%s/history.map", folder->place.folder);
        snprintf(text, sizeof text,
                 "standing: { file: %s/history, by: [client.ip], on_store_error: %s }\n%s",
                 folder->place.folder, closed ? "closed" : "open", by_policy);
        write_rules(&folder->place, text);
        FILE *file = fopen(map, "w");
        assert_non_null(file);
        fputs("something else", file);
        assert_int_equal(fclose(file), 0);
        const struct weir_options options = {.say = note, .say_context = &heard};
        int before = errors_heard();
        struct weir *weir = open_weir(&folder->place, &options);
        assert_int_equal(errors_heard(), before + 1);
        assert_non_null(strstr(heard.error, "cannot read the map of standing"));
        assert_int_equal(ask(weir, "/open").allowed, !closed);
        weir_close(weir);
    }
}

/* The state, which is absent, too, would say whether there is to be a map. */
TEST_WITH(setup, teardown, "without state and map standing is decided by its on store error")
{
    struct folder *folder = *state;
    char text[1024];
    for (int closed = 0; closed < 2; closed++) {
        snprintf(text, sizeof text,
                 "standing: { file: %s/history, by: [client.ip], on_store_error: %s }\n%s",
                 folder->inner, closed ? "closed" : "open", by_policy);
        write_rules(&folder->place, text);
        struct weir *weir = open_in(folder, (struct weir_options){.threads = 1});
        assert_int_equal(ask(weir, "/none").allowed, !closed);
        if (closed) {
            make_folder(folder);
            wait_for_state(weir);
            expect(weir, "/none", true, false); /* whose state says that there is none yet */
        }
        weir_close(weir);
    }
}

RUN_TESTS()
