/* SPDX-License-Identifier: Apache-2.0 */
/* see handshake.h */
#include "store/redis/client/handshake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/client/client_state.h"
#include "store/redis/client/refusal.h"
#include "wire/resp/write.h"

#define SMALL_MAX 64 /* bytes of any command here but AUTH and SCRIPT LOAD */

size_t redis_auth_write(char *out, const char *user, const char *password)
{
    char *at = out;
    if (password[0] == '\0')
        return 0;
    at = weir_resp_write_array(at, user[0] != '\0' ? 3 : 2);
    at = WEIR_RESP_WRITE_WORD(at, "AUTH");
    if (user[0] != '\0')
        at = weir_resp_write_bulk(at, user, strlen(user));
    at = weir_resp_write_bulk(at, password, strlen(password));
    return (size_t)(at - out);
}

static void step_add(struct redis_handshake *handshake, enum redis_handshake_kind kind,
                     const char *end)
{
    size_t size = (size_t)(end - handshake->bytes) - handshake->size;
    if (size > 0) {
        handshake->steps[handshake->count++] = (struct redis_handshake_step){
            .kind = (uint8_t)kind, .at = handshake->size, .size = size};
        handshake->size += size;
    }
}

static void scripts_add(struct redis_handshake *handshake,
                        const struct redis_client_options *options)
{
    handshake->script_first = handshake->count;
    for (unsigned i = 0; i < options->script_count; i++) {
        char *at = weir_resp_write_array(handshake->bytes + handshake->size, 3);
        at = WEIR_RESP_WRITE_WORD(at, "SCRIPT");
        at = WEIR_RESP_WRITE_WORD(at, "LOAD");
        at = weir_resp_write_bulk(at, options->scripts[i]->text, options->scripts[i]->size);
        step_add(handshake, REDIS_HANDSHAKE_SCRIPT, at);
        handshake->steps[handshake->count - 1].script = (uint8_t)i;
    }
}

int redis_handshake_make(struct redis_handshake *handshake, const struct redis_client *client)
{
    const struct redis_url *url = &client->url;
    struct weir_bytes rights = client->options.rights;
    size_t room = REDIS_AUTH_MAX + 3 * SMALL_MAX + rights.size;
    char number[16], *at;

    for (unsigned i = 0; i < client->options.script_count; i++)
        room += client->options.scripts[i]->size + SMALL_MAX + WEIR_RESP_HEAD_MAX;
    handshake->bytes = malloc(room);
    if (!handshake->bytes)
        return WEIR_ERR_MEMORY;
    at = handshake->bytes + redis_auth_write(handshake->bytes, url->user, url->password);
    step_add(handshake, REDIS_HANDSHAKE_AUTH, at);
    at = weir_resp_write_array(at, 3);
    at = WEIR_RESP_WRITE_WORD(at, "CLIENT");
    at = WEIR_RESP_WRITE_WORD(at, "SETNAME");
    at = WEIR_RESP_WRITE_WORD(at, "weir");
    step_add(handshake, REDIS_HANDSHAKE_NAME, at);
    if (url->db != 0) {
        int digits = snprintf(number, sizeof number, "%u", url->db);
        at = weir_resp_write_array(at, 2);
        at = WEIR_RESP_WRITE_WORD(at, "SELECT");
        at = weir_resp_write_bulk(at, number, (size_t)digits);
        step_add(handshake, REDIS_HANDSHAKE_SELECT, at);
    }
    if (url->kind != REDIS_CLUSTER) {
        at = weir_resp_write_array(at, 1);
        at = WEIR_RESP_WRITE_WORD(at, "ROLE");
        step_add(handshake, REDIS_HANDSHAKE_ROLE, at);
    }
    scripts_add(handshake, &client->options);
    if (rights.size > 0) {
        memcpy(handshake->bytes + handshake->size, rights.data, rights.size);
        step_add(handshake, REDIS_HANDSHAKE_RIGHTS,
                 handshake->bytes + handshake->size + rights.size);
    }
    return 0;
}

void redis_handshake_free(struct redis_handshake *handshake)
{
    if (handshake->bytes) {
        explicit_bzero(handshake->bytes, handshake->size); /* it has the password */
        free(handshake->bytes);
    }
}

static int refuse(struct weir_reason *reason, const char *command, struct weir_bytes text)
{
    char quote[160];
    snprintf(reason->text, sizeof reason->text, "%s: %s", command,
             redis_quote(quote, sizeof quote, text));
    return WEIR_ERR_STORE;
}

static bool error_begins(const struct weir_resp_node *node, const char *word)
{
    return node->text.size >= strlen(word) && memcmp(node->text.data, word, strlen(word)) == 0;
}

/* The role matters where the server is chosen by it: a sentinel may be mistaken or late. Of a
 * single server it is asked so as to notice that it has become a replica; a proxy, or an account
 * that may not ask, is let pass. */
static int role_check(const struct redis_client *client, const struct weir_resp_node *nodes,
                      uint32_t count, struct weir_reason *reason)
{
    if (client->url.kind != REDIS_SENTINEL && nodes[0].type == WEIR_RESP_ERROR &&
        !error_begins(nodes, "NOAUTH") && !error_begins(nodes, "LOADING"))
        return 0;
    return redis_role_read(nodes, count, reason) == 0 ? 0 : WEIR_ERR_STORE;
}

/* Whatever else a server says: it may be one of a Cluster that has not the key, or be loading. */
static int rights_check(const struct weir_resp_node *nodes, struct weir_reason *reason)
{
    if (nodes[0].type != WEIR_RESP_ERROR || !redis_lacks_rights(nodes[0].text))
        return 0;
    return refuse(reason, "EVALSHA", nodes[0].text);
}

int redis_handshake_check(const struct redis_client *client, uint32_t step,
                          const struct weir_resp_node *nodes, uint32_t count,
                          struct weir_reason *reason)
{
    static const char *const commands[] = {
        [REDIS_HANDSHAKE_AUTH] = "AUTH",          [REDIS_HANDSHAKE_NAME] = "CLIENT SETNAME",
        [REDIS_HANDSHAKE_SELECT] = "SELECT",      [REDIS_HANDSHAKE_ROLE] = "ROLE",
        [REDIS_HANDSHAKE_SCRIPT] = "SCRIPT LOAD",
    };
    const struct redis_handshake_step *said = &client->handshake.steps[step];

    if (said->kind == REDIS_HANDSHAKE_RIGHTS)
        return rights_check(nodes, reason);

    const char *command = commands[said->kind];

    if (said->kind == REDIS_HANDSHAKE_ROLE)
        return role_check(client, nodes, count, reason);
    if (said->kind == REDIS_HANDSHAKE_NAME && nodes[0].type == WEIR_RESP_ERROR &&
        (error_begins(nodes, "NOPERM") || error_begins(nodes, "ERR unknown")))
        return 0; /* a name is a help to people, no need */
    if (nodes[0].type == WEIR_RESP_ERROR)
        return refuse(reason, command, nodes[0].text);
    if (said->kind == REDIS_HANDSHAKE_SCRIPT) {
        const struct redis_script *script = client->options.scripts[said->script];
        if (nodes[0].type != WEIR_RESP_BULK || nodes[0].text.size != REDIS_SHA_HEX ||
            memcmp(nodes[0].text.data, script->sha, REDIS_SHA_HEX) != 0)
            return refuse(reason, command, (struct weir_bytes){"unexpected SHA-1", 16});
        return 0;
    }
    if (nodes[0].type != WEIR_RESP_SIMPLE)
        return refuse(reason, command, (struct weir_bytes){"not an answer of Redis", 22});
    return 0;
}
