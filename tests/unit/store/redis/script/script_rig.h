/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the scripts share: a private server that knows them, and decisions through it.
 */
#ifndef SCRIPT_RIG_H
#define SCRIPT_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "draw.h"
#include "redis_server.h"
#include "store/redis/script/script.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

/* Some whole microsecond that is no border of any window. */
#define START UINT64_C(1700000000123456000)

struct script_rig {
    struct redis_server server;
    struct redis_link link;
};

/* One decision with room for its checks and their keys. */
struct one {
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_outcome outcomes[WEIR_CHECKS_MAX];
    struct weir_decision decision;
    uint16_t indexes[WEIR_CHECKS_MAX];
    char keys[WEIR_CHECKS_MAX][32];
};

static inline void rig_load_scripts(struct script_rig *rig)
{
    for (unsigned i = 0; i < redis_script_count; i++) {
        const char *const words[] = {"SCRIPT", "LOAD", redis_scripts[i]->text};
        const struct weir_resp_node *node = redis_link_ask(&rig->link, words, NULL, 3);

        if (node->type != WEIR_RESP_BULK)
            fail_msg("%s: %.*s", redis_scripts[i]->name, (int)node->text.size, node->text.data);
        assert_memory_equal(node->text.data, redis_scripts[i]->sha, REDIS_SHA_HEX);
    }
}

static inline void rig_open(struct script_rig *rig, const char *const *arguments)
{
    redis_server_start(&rig->server, arguments);
    redis_link_open(&rig->link, &rig->server);
    rig_load_scripts(rig);
}

static inline void rig_close(struct script_rig *rig)
{
    redis_link_close(&rig->link);
    redis_server_stop(&rig->server);
}

static inline void begin_one(struct one *one)
{
    memset(one, 0, sizeof *one);
    one->decision.checks = one->checks;
    one->decision.outcomes = one->outcomes;
}

static inline struct weir_check *add_check(struct one *one, const struct weir_limit *limit,
                                           unsigned key, uint64_t cost)
{
    uint16_t i = one->decision.count++;
    struct weir_check *check = &one->checks[i];

    snprintf(one->keys[i], sizeof one->keys[i], "key=%u", key);
    *check = (struct weir_check){.limit = limit, .cost = cost, .rule = i};
    check->key = weir_bytes_of(one->keys[i]);
    check->hash[0] = (key + 1) * UINT64_C(0x9e3779b97f4a7c15);
    check->hash[1] = (key + 1) * UINT64_C(0xd1b54a32d192ed03);
    return check;
}

static inline struct weir_limit limit_of(struct weir_limit_spec spec)
{
    struct weir_limit limit;
    struct weir_reason reason = {""};

    if (weir_limit_init(&limit, &spec, &reason) != 0)
        fail_msg("%s", reason.text);
    assert_int_equal(redis_script_accepts(&limit, &reason), 0);
    return limit;
}

/* The call of a decision's checks with a state. */
static inline struct redis_batch batch_of(struct one *one, uint8_t action, uint64_t id,
                                          uint64_t now_ns)
{
    uint16_t count = 0;

    for (uint16_t i = 0; i < one->decision.count; i++)
        if (!(one->checks[i].flags & (WEIR_CHECK_UNLIMITED | WEIR_CHECK_ALWAYS_DENY)))
            one->indexes[count++] = i;
    return (struct redis_batch){.decision = &one->decision,
                                .checks = one->indexes,
                                .count = count,
                                .action = action,
                                .id = id,
                                .prefix = "weir:",
                                .now_ns = now_ns,
                                .test_now_us = now_ns / 1000};
}

/* Sends the call and reads the reply as the store does. now_ns = 0: the server's time. Returns what
 * redis_script_read does, and sets decision.now_ns and .repeated. */
static inline int rig_call(struct script_rig *rig, struct one *one, uint8_t action, uint64_t id,
                           uint64_t now_ns, struct weir_reason *reason)
{
    struct redis_batch batch = batch_of(one, action, id, now_ns);
    size_t room = redis_script_size(&batch);
    char *bytes = malloc(room);
    const struct redis_script *script = NULL;
    uint16_t slot;
    size_t size = redis_script_write(&batch, bytes, &script, &slot);

    assert_true(size <= room);
    assert_non_null(script);
    redis_link_exchange(&rig->link, bytes, size);
    free(bytes);
    return redis_script_read(&batch, &one->decision, rig->link.nodes, rig->link.count,
                             &one->decision.now_ns, &one->decision.repeated, reason);
}

/* The same where an error is a failure of the test. */
static inline int rig_decide(struct script_rig *rig, struct one *one, uint64_t now_ns)
{
    struct weir_reason reason = {""};
    int verdict = rig_call(rig, one, REDIS_DECIDE, 0, now_ns, &reason);

    if (verdict < 0)
        fail_msg("%s", reason.text);
    if (now_ns != 0)
        assert_int_equal(one->decision.now_ns, now_ns);
    return verdict;
}

/* For cmocka, with the rig as the state. */
static inline int rig_set_up(void **state)
{
    struct script_rig *rig = calloc(1, sizeof *rig);

    rig_open(rig, NULL);
    *state = rig;
    return 0;
}

static inline int rig_tear_down(void **state)
{
    rig_close(*state);
    free(*state);
    return 0;
}

#endif
