/* SPDX-License-Identifier: Apache-2.0 */
/* A client of Redis on a loop of its own, for tests: runs until a condition holds, keeps the
 * events, and calls that remember how they ended. A condition that does not come within a
 * minute fails the test: only a fault takes so long, on a busy machine too.
 */
#ifndef TESTS_CLIENT_RIG_H
#define TESTS_CLIENT_RIG_H

#include "store/redis/client/client.h"

#define RIG_EVENTS_MAX 64
#define RIG_PATIENCE_NS UINT64_C(60000000000)

struct rig_event {
    enum redis_event kind;
    char text[320];
};

struct client_rig {
    uv_loop_t loop;
    uv_timer_t guard; /* wakes the loop, so that deadlines are looked at */
    struct redis_client *client;
    struct redis_url url;
    struct rig_event events[RIG_EVENTS_MAX];
    uint32_t event_count;
    uint32_t finished; /* calls whose `done` was called */
    bool closing, closed;
};

struct rig_call {
    struct redis_call call; /* first */
    struct client_rig *rig;
    char bytes[512];
    bool done;
    int error;
    uint8_t type; /* enum weir_resp_type of the reply */
    int64_t integer;
    char text[200];
};

/* A counter: KEYS[1] grows by ARGV[1], which is what it returns. */
extern const struct redis_script rig_script;

/* The loop alone. */
void client_rig_init(struct client_rig *rig);
/* A client of `url`, with rig_script. Options may be changed by the caller before the second. */
struct redis_client_options client_rig_options(struct client_rig *rig, const char *url);
void client_rig_open(struct client_rig *rig, const struct redis_client_options *options);
/* The two: a client of `url`. */
void client_rig_connect(struct client_rig *rig, const char *url);
/* Ends the client if there is one, waits for it, and then ends the loop, on which nothing may be
 * left. */
void client_rig_end(struct client_rig *rig);
/* The first half: the client only. */
void client_rig_close(struct client_rig *rig);
/* Starts to end it; rig->closed says when it has. */
void client_rig_shut(struct client_rig *rig);

/* For cmocka, with the rig as the state: the loop alone; and client_rig_end. */
int client_rig_set_up(void **state);
int client_rig_tear_down(void **state);
#define RIG_TEST(test, rig)                                                                        \
    cmocka_unit_test_prestate_setup_teardown(test, client_rig_set_up, client_rig_tear_down, rig)

/* Runs the loop for a while: what must not happen has time to. */
void client_rig_run_for(struct client_rig *rig, uint64_t ms);

/* Runs the loop until the condition holds. */
#define RIG_UNTIL(rig, condition)                                                                  \
    do {                                                                                           \
        uint64_t rig_deadline = uv_hrtime() + RIG_PATIENCE_NS;                                     \
        while (!(condition)) {                                                                     \
            if (uv_hrtime() > rig_deadline)                                                        \
                client_rig_fail((rig), #condition, __FILE__, __LINE__);                            \
            uv_run(&(rig)->loop, UV_RUN_ONCE);                                                     \
        }                                                                                          \
    } while (0)
void client_rig_fail(struct client_rig *rig, const char *condition, const char *file, int line);

/* Whether an event of the kind was reported since `from`, with `part` in its text. */
bool client_rig_reported(const struct client_rig *rig, uint32_t from, enum redis_event kind,
                         const char *part);

/* Prepares a call of rig_script: adds `amount` to `key`. It may wait a minute for a server. */
void rig_call_count(struct rig_call *call, struct client_rig *rig, const char *key, int amount);
/* A call of words separated by single blanks. */
void rig_call_say(struct rig_call *call, struct client_rig *rig, const char *command);
/* Sends and flushes; returns redis_client_send's result. */
int rig_call_send(struct rig_call *call);
/* Sends, and runs until it is done; returns its error. */
int rig_call_run(struct rig_call *call);

/* Calls rig_script until it is answered; `call` is the last. `wait_ms`: how long each may wait for
 * a server. */
void client_rig_reach(struct client_rig *rig, const char *key);

/* Sends three calls, runs some turns of the loop and ends the client, whatever has come of them. */
void client_rig_close_after(struct client_rig *rig, int turns);

#endif
