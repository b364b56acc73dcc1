/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of webhooks: an event as JSON, and its signature.
 *
 * Source: Standard Webhooks 1.0.0 (github.com/standard-webhooks/standard-webhooks,
 * spec/standard-webhooks.md): payload with type, timestamp and data; the fields webhook-id,
 * webhook-timestamp, webhook-signature; "v1," and the base64 of HMAC-SHA256 over
 * "id.timestamp.payload", one for each secret, separated by spaces.
 *
 *   {"type":"limit.warning","timestamp":"2026-11-20T10:00:00.123Z","data":{"threshold":80,
 *    "limit":"month","key":"user=alice","used":80,"capacity":100,"remaining":20,
 *    "resets_at":"2026-12-01T00:00:00.000Z","user":"alice","org":"acme","plan":"pro"}}
 *
 *   {"type":"penalty.move","timestamp":"2026-11-20T10:00:00.123Z","data":{"penalty":"brute-force",
 *    "kind":"client.ip","value":"192.0.2.0/24","step":3,"steps":5,"standing":"suspended",
 *    "ends_at":"2026-11-20T10:10:00.123Z"}}
 *
 * ends_at is null for never. user, org and plan are there if they are known. The id is of the event
 * and stays the same over attempts; the timestamp in the field is the attempt's.
 *
 * Memory: an event of a fixed size, with copies of its texts. Threads: pure functions.
 */
#ifndef WEIR_FEATURE_WEBHOOK_SERVER_MESSAGE_H
#define WEIR_FEATURE_WEBHOOK_SERVER_MESSAGE_H

#include "engine/effect/warning.h"
#include "feature/standing/standing.h"
#include "rules/rules.h"
#include "wire/json/string.h"

#define WEIR_WEBHOOK_ID_SIZE 36 /* "msg_" and 32 hex digits */

struct weir_webhook_text {
    uint16_t size; /* 0: not known */
    char bytes[WEIR_IDENTITY_MAX];
};
_Static_assert(WEIR_WARNING_KEY_MAX <= WEIR_IDENTITY_MAX, "a key's text fits");

/* A caller has come one step up the ladder of a penalty. */
struct weir_penalty_move {
    struct weir_bytes penalty, kind, value; /* the value as it is shown: of secrets the SHA-256 */
    uint64_t now_ns, until_ns;              /* until: WEIR_NEVER: without an end */
    uint8_t step, steps, level;             /* level: enum weir_standing_level */
};

enum weir_webhook_type { WEIR_WEBHOOK_WARNING, WEIR_WEBHOOK_MOVE };

struct weir_webhook_event {
    enum weir_webhook_type type;
    char id[WEIR_WEBHOOK_ID_SIZE];
    uint8_t percent;            /* of a warning */
    uint8_t step, steps, level; /* of a move */
    uint32_t attempts;          /* so far */
    uint64_t queued_ns;         /* on the clock of the sender */
    uint64_t at_ns;
    uint64_t resets_at_ns; /* of a move: the end of the standing */
    uint64_t used, capacity;
    struct weir_webhook_text limit, key, user, org, plan; /* of a move: limit is the penalty, user
                                                             the kind, and key the value */
};

/* Copies a warning; the id is made of two numbers that are nowhere used together again. */
void weir_webhook_event_set(struct weir_webhook_event *event, const struct weir_warning *warning,
                            uint64_t id_high, uint64_t id_low);

/* The same for a move; a value longer than WEIR_IDENTITY_MAX is left out. */
void weir_webhook_event_set_move(struct weir_webhook_event *event,
                                 const struct weir_penalty_move *move, uint64_t id_high,
                                 uint64_t id_low);

/* Five texts, all escaped, and the rest. */
#define WEIR_WEBHOOK_BODY_MAX (5 * WEIR_JSON_STRING_MAX(WEIR_IDENTITY_MAX) + 512)

/* Returns the length. */
size_t weir_webhook_body(const struct weir_webhook_event *event, char out[WEIR_WEBHOOK_BODY_MAX]);

/* "v1,", 44 characters of base64, a space; for each secret; and a NUL. */
#define WEIR_WEBHOOK_SIGNATURE_MAX (WEIR_WEBHOOK_SECRETS_MAX * 48 + 1)

/* The value of webhook-signature, with a NUL. Errors: WEIR_ERR_MEMORY. */
int weir_webhook_sign(const struct weir_webhook_secret *secrets, uint32_t count,
                      const struct weir_webhook_event *event, uint64_t attempt_s, const char *body,
                      size_t size, char out[WEIR_WEBHOOK_SIGNATURE_MAX])
    __attribute__((warn_unused_result));

#endif
