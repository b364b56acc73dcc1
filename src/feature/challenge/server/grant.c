/* SPDX-License-Identifier: Apache-2.0 */
/* see grant.h */
#include "feature/challenge/server/grant.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/text/address.h"
#include "feature/score/rules/score.h"
#include "rules/counted.h"
#include "server/http/reply.h"
#include "server/http/request.h"

#define NS_PER_S UINT64_C(1000000000)
#define BODY_MAX 1024 /* an address and a class are a tenth of it */

struct grant {
    struct weir_address client;
    uint8_t class; /* enum weir_class */
};

const char *weir_challenge_cookie_text(struct weir_challenge_cookie *cookie,
                                       const struct weir_challenge_settings *settings,
                                       const char token[WEIR_CHALLENGE_TOKEN_SIZE])
{
    snprintf(cookie->text, sizeof cookie->text,
             "%.*s=%.*s; Path=/; Max-Age=%llu; HttpOnly; %sSameSite=Lax",
             (int)settings->cookie.size, settings->cookie.data, WEIR_CHALLENGE_TOKEN_SIZE, token,
             (unsigned long long)(settings->life_ns / NS_PER_S),
             settings->secure ? "Secure; " : "");
    return cookie->text;
}

/* --- Reading ---------------------------------------------------------------------------------- */

static bool read_class(const char *name, uint8_t *class)
{
    for (unsigned i = 0; i < WEIR_CLASSES; i++) {
        if (strcmp(name, weir_class_name(i)) == 0) {
            *class = i;
            return true;
        }
    }
    return false;
}

/* Returns what is wrong; NULL: nothing. */
static const char *read_member(const char *name, const json_t *value, struct grant *grant)
{
    const char *text = json_string_value(value);
    if (strcmp(name, "client") == 0)
        return text && weir_address_parse(&grant->client, text, strlen(text)) == 0
                   ? NULL
                   : "client: must be an IPv4 or IPv6 address";
    if (strcmp(name, "class") == 0)
        return text && read_class(text, &grant->class)
                   ? NULL
                   : "class: must be legitimate, suspicious or malicious";
    return "unknown member; use client and class";
}

static const char *read_members(json_t *body, struct grant *grant)
{
    const char *name, *wrong = NULL;
    json_t *value;
    if (!json_is_object(body))
        return "the body must be an object";
    if (!json_object_get(body, "client"))
        return "client: missing";
    json_object_foreach(body, name, value)
    {
        wrong = read_member(name, value, grant);
        if (wrong)
            break;
    }
    return wrong;
}

static const char *read_grant(struct weir_bytes body, struct grant *grant)
{
    json_error_t error;
    *grant = (struct grant){.class = WEIR_CLASS_LEGITIMATE};
    if (body.size > BODY_MAX)
        return "the body is longer than 1024 bytes";
    json_t *tree = json_loadb(body.data, body.size, JSON_REJECT_DUPLICATES, &error);
    const char *wrong = tree ? read_members(tree, grant) : "the body is not JSON";
    json_decref(tree);
    return wrong;
}

/* --- Granting --------------------------------------------------------------------------------- */

static void reply(struct weir_http_call *call, const struct weir_challenge_settings *settings,
                  const struct grant *grant)
{
    struct weir_address inside;
    const struct weir_address *bound =
        weir_rules_counted_by(weir_worker_rules(call->worker), &grant->client, &inside);
    uint64_t life_s = settings->life_ns / NS_PER_S;
    uint64_t now_s = weir_worker_time(call->worker) / NS_PER_S;
    uint8_t difficulty = settings->difficulty[settings->by_class ? grant->class : 0];
    struct weir_challenge_cookie cookie;
    char token[WEIR_CHALLENGE_TOKEN_SIZE], body[1024];
    weir_challenge_token_make(settings->keys, bound, difficulty, now_s + life_s, token);
    int size = snprintf(body, sizeof body,
                        "{\"token\":\"%.*s\",\"expires_in\":%llu,\"set_cookie\":\"%s\"}\n",
                        (int)sizeof token, token, (unsigned long long)life_s,
                        weir_challenge_cookie_text(&cookie, settings, token));
    weir_http_reply(call, WEIR_HTTP_200, "Cache-Control: no-store\r\n", "application/json", body,
                    (size_t)size);
}

void weir_challenge_grant_handle(struct weir_http_call *call)
{
    const struct weir_challenge_settings *settings = &weir_worker_settings(call->worker)->challenge;
    struct grant grant;
    if (!weir_http_json_post(call))
        return;
    if (!settings->keys) {
        weir_http_problem(call, WEIR_HTTP_404, NULL, "the rules file has no `challenge`");
        return;
    }
    if (!weir_listener_trusts(call->connection->listener)) {
        weir_http_problem(call, WEIR_HTTP_403, NULL,
                          "this listener does not trust its callers to say who a client is");
        return;
    }
    const char *wrong = read_grant(call->request->body, &grant);
    if (wrong)
        weir_http_problem(call, WEIR_HTTP_400, NULL, wrong);
    else
        reply(call, settings, &grant);
}
