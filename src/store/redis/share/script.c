/* SPDX-License-Identifier: Apache-2.0 */
/* see script.h
 *
 *   EVALSHA <sha> 2 <state> <record> <packed check> <packed call> [<""> <time>]
 */
#include "store/redis/share/script.h"

#include <string.h>

#include "store/redis/script/form.h"
#include "store/redis/script/key.h"
#include "store/redis/script/texts.h"
#include "wire/resp/write.h"

enum { CALL_NUMBERS = 13, CALL_SIZE = 8 * CALL_NUMBERS };
enum { REPLY_NUMBERS = 6, REPLY_SIZE = 8 * REPLY_NUMBERS };
enum { FLAG_RENEWABLE = 1, FLAG_TOO_SHORT = 2 };

#define TAG_SIZE (1 + 16 + 1) /* of a key: {tag} */

static size_t record_key_size(const char *prefix, const struct weir_check *check)
{
    return redis_key_size(prefix, check) + 1;
}

size_t share_script_size(const char *prefix, const struct weir_check *check)
{
    return WEIR_RESP_HEAD_MAX + WEIR_RESP_BULK_MAX(sizeof "EVALSHA" - 1) +
           WEIR_RESP_BULK_MAX(REDIS_SHA_HEX) + 2 * WEIR_RESP_BULK_MAX(WEIR_DECIMAL_MAX) +
           WEIR_RESP_BULK_MAX(redis_key_size(prefix, check)) +
           WEIR_RESP_BULK_MAX(record_key_size(prefix, check)) +
           WEIR_RESP_BULK_MAX(REDIS_PACKED_MAX) + WEIR_RESP_BULK_MAX(CALL_SIZE) +
           WEIR_RESP_BULK_MAX(0);
}

static char *put(char *out, uint64_t value)
{
    double number = (double)(value < REDIS_NUMBER_MAX ? value : REDIS_NUMBER_MAX);
    uint64_t word;

    memcpy(&word, &number, sizeof word);
    for (int shift = 0; shift < 64; shift += 8)
        *out++ = (char)(word >> shift);
    return out;
}

static void pack_call(char *out, const struct share_call *ask)
{
    const uint64_t numbers[CALL_NUMBERS] = {
        ask->id,
        ask->holder,
        ask->place,
        ask->need,
        ask->want,
        ask->demand,
        ask->life_ns / 1000,
        ask->life_long_ns / 1000,
        ask->life_min_ns / 1000,
        ask->settled[0].id,
        ask->settled[0].used,
        ask->settled[1].id,
        ask->settled[1].used,
    };

    for (int i = 0; i < CALL_NUMBERS; i++)
        out = put(out, numbers[i]);
}

static char *write_number(char *out, uint64_t number)
{
    char digits[WEIR_DECIMAL_MAX];
    char *end = weir_decimal_write(digits, number);

    return weir_resp_write_bulk(out, digits, (size_t)(end - digits));
}

/* The state's key, and that of the record: '^' behind the tag, which no limit's name begins with.
 */
static char *write_keys(char *out, const char *prefix, const struct weir_check *check)
{
    size_t start_size = strlen(prefix) + TAG_SIZE, size = redis_key_size(prefix, check);
    char *key;

    out = weir_resp_write_head(out, '$', size);
    key = out;
    out = redis_key_write(out, prefix, check);
    out = WEIR_LITERAL_WRITE(out, "\r\n");
    out = weir_resp_write_head(out, '$', size + 1);
    memcpy(out, key, start_size);
    out[start_size] = '^';
    memcpy(out + start_size + 1, key + start_size, size - start_size);
    return WEIR_LITERAL_WRITE(out + size + 1, "\r\n");
}

size_t share_script_write(const char *prefix, const struct weir_check *check,
                          const struct share_call *ask, uint64_t test_now_us, char *out,
                          const struct redis_script **script, uint16_t *slot)
{
    const char *start = out;
    struct weir_check needed = *check;
    struct weir_lease none = {0, 0};
    char packed[REDIS_PACKED_MAX], call[CALL_SIZE], *end;

    needed.cost = ask->need;
    *script = &redis_script_share;
    *slot = redis_key_cluster_slot(redis_key_tag(check));
    out = weir_resp_write_array(out, test_now_us != 0 ? 9 : 7);
    out = WEIR_RESP_WRITE_WORD(out, "EVALSHA");
    out = weir_resp_write_bulk(out, (*script)->sha, REDIS_SHA_HEX);
    out = write_number(out, 2);
    out = write_keys(out, prefix, check);
    end = redis_pack_check(packed, &needed, &none, 0); /* no quota is shared */
    out = weir_resp_write_bulk(out, packed, (size_t)(end - packed));
    pack_call(call, ask);
    out = weir_resp_write_bulk(out, call, CALL_SIZE);
    if (test_now_us != 0) {
        out = weir_resp_write_bulk(out, NULL, 0);
        out = write_number(out, test_now_us);
    }
    return (size_t)(out - start);
}

/* The state after the call, as exact mode reads it: as of a decision that needed so much. */
static int read_state(const struct weir_check *check, const struct share_call *ask,
                      const struct weir_resp_node *part, struct share_reply *reply,
                      struct weir_reason *reason)
{
    static const uint16_t first = 0;
    struct weir_check needed = *check;
    struct weir_outcome outcome;
    struct weir_decision decision = {.checks = &needed, .outcomes = &outcome, .count = 1};
    struct redis_batch batch = {.decision = &decision, .checks = &first, .count = 1};
    struct weir_report report;
    bool repeated;
    int err;

    needed.cost = ask->need;
    err = redis_script_read(&batch, &decision, part, 1, &decision.now_ns, &repeated, reason);
    if (err < 0)
        return err;
    weir_decision_report(&decision, 0, &report);
    reply->remaining = report.remaining;
    reply->reset_ns = report.reset_after_ns;
    if (!reply->too_short)
        reply->retry_ns = report.retry_after_ns;
    return 0;
}

static bool read_numbers(struct weir_bytes text, const struct share_call *ask,
                         struct share_reply *reply)
{
    const char *at = text.data;
    uint64_t numbers[REPLY_NUMBERS];

    if (text.size != REPLY_SIZE)
        return false;
    for (int i = 0; i < REPLY_NUMBERS; i++)
        if (!redis_unpack(&at, REDIS_NUMBER_MAX, &numbers[i]))
            return false;
    reply->id = numbers[0];
    reply->amount = numbers[1];
    reply->life_ns = numbers[2] * 1000;
    reply->renewable = (numbers[3] & FLAG_RENEWABLE) != 0;
    reply->too_short = (numbers[3] & FLAG_TOO_SHORT) != 0;
    reply->retry_ns = numbers[4] * 1000;
    reply->forfeited = numbers[5];
    return reply->life_ns <= (ask->life_ns > ask->life_long_ns ? ask->life_ns : ask->life_long_ns);
}

int share_script_read(const struct weir_check *check, const struct share_call *ask,
                      const struct weir_resp_node *nodes, uint32_t count, struct share_reply *reply,
                      struct weir_reason *reason)
{
    int err = 0;

    memset(reply, 0, sizeof *reply);
    if (count == 3 && nodes[0].type == WEIR_RESP_ARRAY && nodes[0].count == 2 &&
        nodes[1].type == WEIR_RESP_BULK && read_numbers(nodes[1].text, ask, reply) &&
        reply->id == ask->id && reply->amount <= ask->want)
        return read_state(check, ask, &nodes[2], reply, reason);
    /* Errors are reported as in exact mode. */
    if (count > 0 && nodes[0].type == WEIR_RESP_ERROR)
        err = read_state(check, ask, nodes, reply, reason);
    return err < 0 ? err : WEIR_ERR_SYNTAX;
}
