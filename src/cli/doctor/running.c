/* SPDX-License-Identifier: Apache-2.0 */
/* see running.h */
#include "cli/doctor/running.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "cli/admin_client.h"
#include "server/daemon/server.h"

static void judge_proxies(struct findings *findings, json_t *answer)
{
    json_t *proxies = json_object_get(answer, "untrusted_proxies");
    json_int_t requests = json_integer_value(json_object_get(proxies, "requests"));
    const char *peer = json_string_value(json_object_get(proxies, "peer"));
    if (requests > 0 && peer)
        findings_add(findings, FINDING_ERROR, "untrusted_proxy",
                     "if it is your proxy, add it to `server.trusted_proxies`: until then all its "
                     "customers get 403",
                     "/v1/auth has refused %" JSON_INTEGER_FORMAT
                     " requests since the start; the last peer that was not trusted: %s",
                     requests, peer);
}

static void judge_names(struct findings *findings, json_t *answer)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(answer, "unknown_attributes"), i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        const char *near = json_string_value(json_object_get(one, "did_you_mean"));
        findings_add(findings, FINDING_WARNING, "unknown_attribute",
                     "correct the name where it is sent, or declare it in `attributes`",
                     "requests gave %" JSON_INTEGER_FORMAT
                     " values of the attribute `%s`, which is neither built in nor declared%s%s%s",
                     json_integer_value(json_object_get(one, "values")), name ? name : "(others)",
                     near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
    }
}

void running_examine(struct findings *findings, const struct weir_rules *rules)
{
    const struct weir_listener_settings *admin = &weir_rules_settings(rules)->admin;
    const char *address = admin->address ? admin->address : WEIR_ADMIN_ADDRESS_DEFAULT;
    struct admin_client *client;
    struct weir_reason reason;
    json_t *answer = NULL;
    if (strcmp(address, "off") == 0 || admin_client_open(&client, address, admin->token) < 0)
        return;
    if (admin_client_call(client, "GET", "/v1/overlooked", NULL, 0, NULL, &answer, &reason) == 0) {
        judge_proxies(findings, answer);
        judge_names(findings, answer);
    }
    json_decref(answer);
    admin_client_close(client);
}
