/* SPDX-License-Identifier: Apache-2.0 */
/* Who is connected, and how it talks: HELLO, AUTH, CLIENT, SELECT, RESET, QUIT, PING, ECHO. See
 * resp.h. Words of errors are Redis'. */
#include "server/resp/session.h"

#include <stdio.h>
#include <string.h>

#include "server/net/guesses.h"
#include "server/net/secret.h"
#include "server/resp/decide.h"
#include "server/resp/reply.h"
#include "server/resp/transaction.h"

/* Room for HELLO, CLIENT INFO. */
#define SHORT_REPLY 1024

/* --- AUTH ------------------------------------------------------------------------------------- */

static bool authenticate(struct weir_resp_call *call, struct weir_bytes user,
                         struct weir_bytes password)
{
    const char *token = weir_listener_settings(call->connection->listener)->token;
    /* Without a password every user is the default one and needs none, as in Redis' `nopass`. */
    bool right = !token || weir_secret_equal(password, token);
    right = weir_resp_is(user, "DEFAULT") && right;
    struct weir_guess guess = weir_guess_of(call->connection, right);
    call->hold_ms = guess.wait_ms;
    call->close |= guess.last;
    if (guess.refused) {
        weir_resp_error(call, "ERR too many wrong passwords from this address: try again later");
        return false;
    }
    if (!right) {
        weir_resp_error(call, "WRONGPASS invalid username-password pair or user is disabled.");
        return false;
    }
    call->session->authenticated = true;
    call->session->parser.unauthenticated = false;
    return true;
}

void weir_resp_auth(struct weir_resp_call *call)
{
    if (call->count > 3) {
        weir_resp_syntax_error(call);
        return;
    }
    struct weir_bytes user = {"default", 7};
    if (call->count == 3)
        user = call->args[1];
    else if (!weir_listener_settings(call->connection->listener)->token) {
        weir_resp_error(call, "ERR AUTH <password> called without any password configured for the "
                              "default user. Are you sure your configuration is correct?");
        return;
    }
    if (authenticate(call, user, call->args[call->count - 1]))
        weir_resp_text(call, "OK");
}

/* --- Names ------------------------------------------------------------------------------------ */

/* As Redis: printable, without spaces. False: it was answered. */
static bool name_check(struct weir_resp_call *call, struct weir_bytes name)
{
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] > ' ' && name.data[i] < 0x7f)
            continue;
        weir_resp_error(call,
                        "ERR Client names cannot contain spaces, newlines or special characters.");
        return false;
    }
    if (name.size <= WEIR_RESP_NAME_MAX)
        return true;
    weir_resp_error(call, "ERR Client names have at most %d characters", WEIR_RESP_NAME_MAX);
    return false;
}

static void name_set(struct weir_resp_session *session, struct weir_bytes name)
{
    session->name_size = (uint8_t)name.size;
    if (name.size)
        memcpy(session->name, name.data, name.size);
}

/* --- HELLO ------------------------------------------------------------------------------------ */

static void hello_reply(struct weir_resp_call *call)
{
    int version = call->session->version;
    char *out = weir_resp_begin(call, SHORT_REPLY);
    if (!out)
        return;
    out = weir_resp_write_map(out, version, 7);
    out = WEIR_RESP_WRITE_WORD(out, "server");
    out = WEIR_RESP_WRITE_WORD(out, "weir");
    out = WEIR_RESP_WRITE_WORD(out, "version");
    out = WEIR_RESP_WRITE_WORD(out, WEIR_RESP_COMPATIBLE);
    out = WEIR_RESP_WRITE_WORD(out, "proto");
    out = weir_resp_write_integer(out, version);
    out = WEIR_RESP_WRITE_WORD(out, "id");
    out = weir_resp_write_integer(out, (int64_t)call->session->id);
    out = WEIR_RESP_WRITE_WORD(out, "mode");
    out = WEIR_RESP_WRITE_WORD(out, "standalone");
    out = WEIR_RESP_WRITE_WORD(out, "role");
    out = WEIR_RESP_WRITE_WORD(out, "master");
    out = WEIR_RESP_WRITE_WORD(out, "modules");
    weir_resp_end(call, weir_resp_write_array(out, 0));
}

/* HELLO [version [AUTH user password] [SETNAME name]]: changes nothing unless all is right. */
void weir_resp_hello(struct weir_resp_call *call)
{
    struct weir_resp_session *session = call->session;
    struct weir_bytes user = {NULL, 0}, password = {NULL, 0}, name = {NULL, 0};
    int64_t version = session->version;
    if (call->count > 1 && !weir_resp_number(call->args[1], &version)) {
        weir_resp_error(call, "ERR Protocol version is not an integer or out of range");
        return;
    }
    if (version < 2 || version > 3) {
        weir_resp_error(call, "NOPROTO unsupported protocol version");
        return;
    }
    for (uint32_t i = 2; i < call->count; i++) {
        if (weir_resp_is(call->args[i], "AUTH") && i + 2 < call->count) {
            user = call->args[++i];
            password = call->args[++i];
        } else if (weir_resp_is(call->args[i], "SETNAME") && i + 1 < call->count) {
            name = call->args[++i];
        } else {
            weir_resp_error(call, "ERR Syntax error in HELLO option '%.*s'",
                            WEIR_RESP_SHOWN(call->args[i]));
            return;
        }
    }
    if (name.data && !name_check(call, name))
        return;
    if (user.data && !authenticate(call, user, password))
        return;
    if (!session->authenticated) {
        weir_resp_error(call, "NOAUTH HELLO must be called with the client already authenticated, "
                              "otherwise the HELLO <proto> AUTH <user> <pass> option can be used "
                              "to authenticate the client and select the RESP protocol version at "
                              "the same time");
        return;
    }
    if (name.data)
        name_set(session, name);
    session->version = (uint8_t)version;
    hello_reply(call);
}

/* --- CLIENT ----------------------------------------------------------------------------------- */

static void client_info(struct weir_resp_call *call)
{
    const struct weir_connection *connection = call->connection;
    const struct weir_resp_session *session = call->session;
    char peer[WEIR_ADDRESS_TEXT_MAX], text[512];
    size_t peer_size = connection->peer.family ? weir_address_format(&connection->peer, peer)
                                               : (size_t)snprintf(peer, sizeof peer, "unix");
    int size = snprintf(text, sizeof text,
                        "id=%llu addr=%.*s name=%.*s db=%u resp=%u user=default cmd=client|info\n",
                        (unsigned long long)session->id, (int)peer_size, peer, session->name_size,
                        session->name, session->database, session->version);
    if (session->version < 3) {
        weir_resp_bulk(call, (struct weir_bytes){text, (size_t)size});
        return;
    }
    char *out = weir_resp_begin(call, SHORT_REPLY);
    if (!out)
        return;
    out = weir_resp_write_head(out, '=', (uint64_t)size + 4);
    memcpy(out, "txt:", 4);
    memcpy(out + 4, text, (size_t)size);
    weir_resp_end(call, WEIR_LITERAL_WRITE(out + 4 + size, "\r\n"));
}

static void client_setname(struct weir_resp_call *call)
{
    if (!name_check(call, call->args[2]))
        return;
    name_set(call->session, call->args[2]);
    weir_resp_text(call, "OK");
}

static void client_getname(struct weir_resp_call *call)
{
    const struct weir_resp_session *session = call->session;
    char *out;
    if (session->name_size)
        weir_resp_bulk(call, (struct weir_bytes){session->name, session->name_size});
    else if ((out = weir_resp_begin(call, WEIR_RESP_NULL_MAX)))
        weir_resp_end(call, weir_resp_write_null(out, session->version));
}

static void client_id(struct weir_resp_call *call)
{
    weir_resp_integer(call, (int64_t)call->session->id);
}

/* What a library says of itself: checked and not kept, as nothing here would show it. */
static void client_setinfo(struct weir_resp_call *call)
{
    if (weir_resp_is(call->args[2], "LIB-NAME") || weir_resp_is(call->args[2], "LIB-VER"))
        weir_resp_text(call, "OK");
    else
        weir_resp_error(call, "ERR Unrecognized option '%.*s'", WEIR_RESP_SHOWN(call->args[2]));
}

/* No connection is evicted here, and no key is touched, so both settings are true already. */
static void client_switch(struct weir_resp_call *call)
{
    if (weir_resp_is(call->args[2], "ON") || weir_resp_is(call->args[2], "OFF"))
        weir_resp_text(call, "OK");
    else
        weir_resp_syntax_error(call);
}

void weir_resp_client(struct weir_resp_call *call)
{
    static const struct {
        const char *name;
        uint32_t count;
        void (*run)(struct weir_resp_call *call);
    } subcommands[] = {
        {"SETINFO", 4, client_setinfo}, {"SETNAME", 3, client_setname},
        {"GETNAME", 2, client_getname}, {"ID", 2, client_id},
        {"INFO", 2, client_info},       {"NO-EVICT", 3, client_switch},
        {"NO-TOUCH", 3, client_switch},
    };
    for (size_t i = 0; i < sizeof subcommands / sizeof *subcommands; i++) {
        if (!weir_resp_is(call->args[1], subcommands[i].name))
            continue;
        if (call->count == subcommands[i].count)
            subcommands[i].run(call);
        else
            weir_resp_wrong_arity(call);
        return;
    }
    weir_resp_error(call, "ERR unknown subcommand '%.*s'. Try COMMAND DOCS CLIENT.",
                    WEIR_RESP_SHOWN(call->args[1]));
}

/* --- The rest --------------------------------------------------------------------------------- */

void weir_resp_select(struct weir_resp_call *call)
{
    int64_t database;
    if (!weir_resp_number(call->args[1], &database)) {
        weir_resp_error(call, "ERR value is not an integer or out of range");
    } else if (database < 0 || database >= WEIR_RESP_DATABASES) {
        weir_resp_error(call, "ERR DB index is out of range");
    } else {
        call->session->database = (uint8_t)database;
        weir_resp_text(call, "OK");
    }
}

void weir_resp_reset(struct weir_resp_call *call)
{
    struct weir_resp_session *session = call->session;
    session->version = 2;
    session->database = 0;
    weir_resp_transaction_end(call->redis, session);
    session->name_size = 0;
    session->authenticated = !weir_listener_settings(call->connection->listener)->token;
    session->parser.unauthenticated = !session->authenticated;
    weir_resp_text(call, "RESET");
}

void weir_resp_quit(struct weir_resp_call *call)
{
    weir_resp_text(call, "OK");
    call->close = true;
}

void weir_resp_ping(struct weir_resp_call *call)
{
    if (call->count > 2)
        weir_resp_wrong_arity(call);
    else if (call->count == 2)
        weir_resp_bulk(call, call->args[1]);
    else
        weir_resp_text(call, "PONG");
}

void weir_resp_echo(struct weir_resp_call *call)
{
    weir_resp_bulk(call, call->args[1]);
}
