/* SPDX-License-Identifier: Apache-2.0 */
/* see state.h: what a node wants to know of the store before it decides anything: the secret that
 * tokens are signed with (secret.h), and what the time is there
 *
 *   connected, no secret known   SET NX, GET and TIME, in one write: the answers come before that
 *                                of any decision that is asked then
 *   later, every two seconds     GET and TIME; where no secret is there any more, SET NX and GET
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/client/refusal.h"
#include "store/redis/script/pack.h"
#include "store/redis/state.h"
#include "wire/resp/write.h"

#define RETRY_NS UINT64_C(100000000) /* no server for it, or no answer */

enum { ASK_GET, ASK_GET_MADE, ASK_SET, ASK_TIME };

static size_t key_size(const struct store *store)
{
    return strlen(store->prefix) + sizeof SECRET_KEY - 1;
}

static char *write_words(const struct store *store, char *out, const char *key, uint8_t action)
{
    char text[REDIS_SECRET_TEXT_MAX];

    if (action == ASK_TIME)
        return WEIR_RESP_WRITE_WORD(weir_resp_write_array(out, 1), "TIME");
    out = weir_resp_write_array(out, action == ASK_SET ? 4 : 2);
    out = weir_resp_write_bulk(out, action == ASK_SET ? "SET" : "GET", 3);
    out = weir_resp_write_bulk(out, key, key_size(store));
    if (action != ASK_SET)
        return out;
    out = weir_resp_write_bulk(out, text, redis_secret_text(store->secret, text));
    return WEIR_RESP_WRITE_WORD(out, "NX");
}

static bool send_one(struct store *store, uint8_t action)
{
    char key[REDIS_PREFIX_MAX + sizeof SECRET_KEY];
    struct store_call *call =
        call_take(store, CALL_SERVER_INFO,
                  WEIR_RESP_HEAD_MAX + 2 * WEIR_RESP_BULK_MAX(3) + WEIR_RESP_BULK_MAX(sizeof key) +
                      WEIR_RESP_BULK_MAX(REDIS_SECRET_TEXT_MAX));

    if (call == NULL)
        return false;
    snprintf(key, sizeof key, "%s" SECRET_KEY, store->prefix);
    call->call.size = (size_t)(write_words(store, call->bytes, key, action) - call->bytes);
    call->call.cluster_slot = redis_cluster_slot(key, key_size(store));
    call->action = action;
    return background_send(store, call) == 0;
}

/* The secret, and first of all one to be made. */
static bool ask_secret(struct store *store, bool make)
{
    return (!make || send_one(store, ASK_SET)) && send_one(store, make ? ASK_GET_MADE : ASK_GET);
}

static void ask(struct store *store)
{
    uint64_t words[2];
    bool known = redis_secret_at(store->secret, 0, store_now(store), words);
    bool sent = ask_secret(store, !known) && send_one(store, ASK_TIME);

    store->server_info_hr = store_hr(store) + (sent ? REDIS_SECRET_EVERY_NS : RETRY_NS);
    store_flush_soon(store);
}

uint64_t server_info_tick(struct store *store, uint64_t hr)
{
    if (store->secret == NULL)
        return UINT64_MAX;
    if (hr >= store->server_info_hr) {
        if (store->connected && redis_breaker_closed(&store->breaker))
            ask(store);
        else
            store->server_info_hr =
                hr + REDIS_SECRET_EVERY_NS; /* sooner when it is: store_update */
    }
    return store->server_info_hr;
}

static void take_secret(struct store *store, struct weir_bytes text)
{
    switch (redis_secret_tell(store->secret, text, store_now(store))) {
    case REDIS_SECRET_OTHER:
        store_tell(store, "store_secret",
                   "%s" SECRET_KEY " is another: what the last one has signed stays good",
                   store->prefix);
        break;
    case REDIS_SECRET_NONE:
        store_tell(store, "store_error",
                   "%s" SECRET_KEY " is no secret of %d to %d bytes: reservations can be settled "
                   "only at the node that made them",
                   store->prefix, REDIS_SECRET_TEXT_MIN, REDIS_SECRET_TEXT_MAX);
        break;
    default:
        break;
    }
}

/* Up to `max`; 0: it is none. */
static uint64_t number_of(const struct weir_resp_node *node, uint64_t max)
{
    uint64_t value = 0;

    for (size_t i = 0; node->type == WEIR_RESP_BULK && i < node->text.size && value <= max; i++) {
        if (node->text.data[i] < '0' || node->text.data[i] > '9')
            return 0;
        value = 10 * value + (uint64_t)(node->text.data[i] - '0');
    }
    return value <= max ? value : 0;
}

static void take_time(struct store *store, const struct weir_resp_node *nodes, uint32_t count)
{
    uint64_t seconds = count == 3 ? number_of(&nodes[1], REDIS_TIME_MAX_US / 1000000 - 1) : 0;

    if (seconds == 0)
        return;
    store->server_ns = (seconds * 1000000 + number_of(&nodes[2], 999999)) * 1000;
    store->server_at_ns = store_now(store);
    store->server_told = true;
}

void server_info_answered(struct store *store, const struct store_call *call, int error,
                          const struct weir_resp_node *nodes, uint32_t count)
{
    if (error != 0) {
        server_info_failed(store);
    } else if (nodes[0].type == WEIR_RESP_ERROR) {
        char text[WEIR_REASON_MAX / 2];

        store_tell(store, "store_error", "%s" SECRET_KEY ": %s", store->prefix,
                   redis_quote(text, sizeof text, nodes[0].text));
    } else if (call->action == ASK_TIME) {
        take_time(store, nodes, count);
    } else if (call->action != ASK_SET && nodes[0].type == WEIR_RESP_BULK) {
        take_secret(store, nodes[0].text);
    } else if (call->action == ASK_GET && ask_secret(store, true)) {
        store_flush_soon(store);
    }
}

void server_info_failed(struct store *store)
{
    store->server_info_hr = store_hr(store) + RETRY_NS;
    store_arm(store, store->server_info_hr);
}

bool server_info_secret(const struct weir_store *base, unsigned i, uint64_t words[2])
{
    struct store *store = store_of(base);

    return store->secret != NULL && redis_secret_at(store->secret, i, store_now(store), words);
}
