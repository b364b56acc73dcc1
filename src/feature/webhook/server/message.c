/* SPDX-License-Identifier: Apache-2.0 */
/* see message.h */
#include "feature/webhook/server/message.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

#include "core/text/hex.h"
#include "server/daemon/clock.h"

#define MAC_SIZE 32

static void text_set(struct weir_webhook_text *text, struct weir_bytes bytes)
{
    text->size = bytes.size <= sizeof text->bytes ? (uint16_t)bytes.size : 0;
    if (text->size)
        memcpy(text->bytes, bytes.data, text->size);
}

static void event_begin(struct weir_webhook_event *event, enum weir_webhook_type type,
                        uint64_t id_high, uint64_t id_low)
{
    event->type = type;
    memcpy(event->id, "msg_", 4);
    weir_hex_write64(weir_hex_write64(event->id + 4, id_high), id_low);
    event->attempts = 0;
}

void weir_webhook_event_set(struct weir_webhook_event *event, const struct weir_warning *warning,
                            uint64_t id_high, uint64_t id_low)
{
    event_begin(event, WEIR_WEBHOOK_WARNING, id_high, id_low);
    event->percent = warning->percent;
    event->at_ns = warning->now_ns;
    event->resets_at_ns = warning->resets_at_ns;
    event->used = warning->used;
    event->capacity = warning->capacity;
    text_set(&event->limit, warning->limit);
    text_set(&event->key, warning->key);
    text_set(&event->user, warning->identity->user);
    text_set(&event->org, warning->identity->org);
    text_set(&event->plan, warning->identity->plan);
}

void weir_webhook_event_set_move(struct weir_webhook_event *event,
                                 const struct weir_penalty_move *move, uint64_t id_high,
                                 uint64_t id_low)
{
    event_begin(event, WEIR_WEBHOOK_MOVE, id_high, id_low);
    event->step = move->step;
    event->steps = move->steps;
    event->level = move->level;
    event->at_ns = move->now_ns;
    event->resets_at_ns = move->until_ns;
    text_set(&event->limit, move->penalty);
    text_set(&event->user, move->kind);
    text_set(&event->key, move->value);
}

static size_t put_text(char *out, const char *name, const struct weir_webhook_text *text)
{
    size_t size = (size_t)sprintf(out, ",\"%s\":", name);
    return size + weir_json_string_write(text->bytes, text->size, out + size);
}

static size_t put_known(char *out, const char *name, const struct weir_webhook_text *text)
{
    return text->size ? put_text(out, name, text) : 0;
}

static size_t put_move(const struct weir_webhook_event *event, char *out)
{
    char at[WEIR_TIMESTAMP_SIZE];
    weir_clock_timestamp(event->at_ns, at);
    size_t size = (size_t)sprintf(
        out, "{\"type\":\"penalty.move\",\"timestamp\":\"%.*s\",\"data\":{\"penalty\":",
        WEIR_TIMESTAMP_SIZE, at);
    size += weir_json_string_write(event->limit.bytes, event->limit.size, out + size);
    size += put_text(out + size, "kind", &event->user);
    size += put_known(out + size, "value", &event->key);
    size += (size_t)sprintf(out + size, ",\"step\":%u,\"steps\":%u,\"standing\":\"%s\"",
                            (unsigned)event->step, (unsigned)event->steps,
                            weir_standing_level_name(event->level));
    if (event->resets_at_ns == WEIR_NEVER)
        return size + (size_t)sprintf(out + size, ",\"ends_at\":null}}");
    weir_clock_timestamp(event->resets_at_ns, at);
    return size + (size_t)sprintf(out + size, ",\"ends_at\":\"%.*s\"}}", WEIR_TIMESTAMP_SIZE, at);
}

size_t weir_webhook_body(const struct weir_webhook_event *event, char out[WEIR_WEBHOOK_BODY_MAX])
{
    if (event->type == WEIR_WEBHOOK_MOVE)
        return put_move(event, out);
    char at[WEIR_TIMESTAMP_SIZE], resets_at[WEIR_TIMESTAMP_SIZE];
    uint64_t remaining = event->used < event->capacity ? event->capacity - event->used : 0;
    weir_clock_timestamp(event->at_ns, at);
    weir_clock_timestamp(event->resets_at_ns, resets_at);
    size_t size = (size_t)sprintf(out, "{\"type\":\"limit.warning\",\"timestamp\":\"%.*s\"",
                                  WEIR_TIMESTAMP_SIZE, at);
    size += (size_t)sprintf(out + size, ",\"data\":{\"threshold\":%u", (unsigned)event->percent);
    size += put_text(out + size, "limit", &event->limit);
    size += put_text(out + size, "key", &event->key);
    size +=
        (size_t)sprintf(out + size,
                        ",\"used\":%" PRIu64 ",\"capacity\":%" PRIu64 ",\"remaining\":%" PRIu64
                        ",\"resets_at\":\"%.*s\"",
                        event->used, event->capacity, remaining, WEIR_TIMESTAMP_SIZE, resets_at);
    size += put_known(out + size, "user", &event->user);
    size += put_known(out + size, "org", &event->org);
    size += put_known(out + size, "plan", &event->plan);
    out[size++] = '}';
    out[size++] = '}';
    return size;
}

int weir_webhook_sign(const struct weir_webhook_secret *secrets, uint32_t count,
                      const struct weir_webhook_event *event, uint64_t attempt_s, const char *body,
                      size_t size, char out[WEIR_WEBHOOK_SIGNATURE_MAX])
{
    char content[WEIR_WEBHOOK_ID_SIZE + 24 + WEIR_WEBHOOK_BODY_MAX];
    int head = snprintf(content, sizeof content, "%.*s.%" PRIu64 ".", WEIR_WEBHOOK_ID_SIZE,
                        event->id, attempt_s);
    memcpy(content + head, body, size);
    *out = '\0';
    for (uint32_t i = 0; i < count; i++) {
        unsigned char mac[MAC_SIZE];
        if (!HMAC(EVP_sha256(), secrets[i].bytes, secrets[i].size, (unsigned char *)content,
                  (size_t)head + size, mac, NULL))
            return WEIR_ERR_MEMORY;
        out += sprintf(out, "%sv1,", i ? " " : "");
        out += EVP_EncodeBlock((unsigned char *)out, mac, sizeof mac);
    }
    return 0;
}
