/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands, and COMMAND, from which clients learn it. See resp.h. */
#include "server/resp/commands.h"

#include <string.h>

#include "server/resp/checkall.h"
#include "server/resp/counters.h"
#include "server/resp/increx.h"
#include "server/resp/info.h"
#include "server/resp/keys.h"
#include "server/resp/peer.h"
#include "server/resp/reply.h"
#include "server/resp/rules.h"
#include "server/resp/script/script.h"
#include "server/resp/script/sorted.h"
#include "server/resp/session.h"
#include "server/resp/throttle.h"
#include "server/resp/transaction.h"

#define KEYED (WEIR_RESP_WRITE | WEIR_RESP_FAST)
#define LOOKS (WEIR_RESP_READ | WEIR_RESP_FAST)
/* Before AUTH, MULTI is refused in a way that lets nothing up to EXEC run. */
#define GATHERS (WEIR_RESP_FAST | WEIR_RESP_AT_ONCE | WEIR_RESP_NO_AUTH)
#define ALWAYS (WEIR_RESP_NO_AUTH | WEIR_RESP_FAST)

/* The commands called most are first: a name is searched from the top. */
const struct weir_resp_command weir_resp_commands[] = {
    {"CL.THROTTLE", weir_resp_cl_throttle, -5, KEYED | WEIR_RESP_OWN_ARITY, 1, 1, "limit",
     "Decides one request on a bucket, as redis-cell does"},
    {"THROTTLE", weir_resp_throttle, -5, KEYED | WEIR_RESP_OWN_ARITY, 1, 1, "limit",
     "Decides one request on a bucket, as throttlecrab does"},
    {"WEIR.CHECK", weir_resp_check, -1, KEYED, 0, 0, "rules",
     "Decides a request, described by its attributes, under the rules file"},
    {"GCRA", weir_resp_gcra, -5, KEYED, 1, 1, "limit",
     "Decides one request on a bucket, in periods of fractions of a second"},
    {"INCREX", weir_resp_increx, -2, KEYED, 1, 1, "limit",
     "Adds to a counter within bounds, and sets its time to live"},
    {"PING", weir_resp_ping, -1, WEIR_RESP_FAST, 0, 0, "connection",
     "Answers PONG, or what it was given"},
    {"WEIR.CHECKALL", weir_resp_checkall, -7, KEYED | WEIR_RESP_OWN_ARITY, 0, 0, "limit",
     "Decides one request on several buckets: all are charged or none is"},
    {"WEIR.PEEK", weir_resp_peek, -1, LOOKS, 0, 0, "rules",
     "Tells what WEIR.CHECK would, and charges nothing"},
    {"WEIR.REFUND", weir_resp_refund, -1, KEYED, 0, 0, "rules",
     "Gives back what WEIR.CHECK has charged"},
    {"WEIR.RESET", weir_resp_reset_states, -1, KEYED, 0, 0, "rules",
     "Forgets what a request's limits have counted for it"},
    {"WEIR.RELEASE", weir_resp_release, 2, KEYED, 0, 0, "rules",
     "Ends a lease that WEIR.CHECK gave"},
    {"WEIR.RESERVE", weir_resp_reserve, -1, KEYED, 0, 0, "rules",
     "Charges a request's estimated cost; the token settles it"},
    {"WEIR.DECIDE", weir_resp_decide_for_peer, 2, KEYED, 0, 0, "rules",
     "Decides what another node of a fleet asks, by this node's table"},
    {"WEIR.SETTLE", weir_resp_settle_reservation, -4, KEYED, 0, 0, "rules",
     "Settles a reservation by its true COST or COSTS, its STATUS, or both"},
    {"DEL", weir_resp_del, -2, KEYED, 1, -1, "generic", "Forgets keys of commands"},
    {"UNLINK", weir_resp_del, -2, KEYED, 1, -1, "generic", "The same as DEL"},
    {"EXISTS", weir_resp_exists, -2, LOOKS, 1, -1, "generic",
     "Counts the keys that have used something"},
    {"TTL", weir_resp_ttl, 2, LOOKS, 1, 1, "generic", "Tells in how many seconds a key is as new"},
    {"PTTL", weir_resp_pttl, 2, LOOKS, 1, 1, "generic",
     "Tells in how many milliseconds a key is as new"},
    {"DBSIZE", weir_resp_dbsize, 1, LOOKS, 0, 0, "server",
     "Counts the keys of all databases and of the rules, by a sample of them"},
    {"HELLO", weir_resp_hello, -1, ALWAYS, 0, 0, "connection",
     "Chooses the version of the protocol"},
    {"AUTH", weir_resp_auth, -2, ALWAYS, 0, 0, "connection", "Authenticates"},
    {"SELECT", weir_resp_select, 2, WEIR_RESP_FAST, 0, 0, "connection",
     "Chooses one of 16 databases, each with keys of its own"},
    {"CLIENT", weir_resp_client, -2, WEIR_RESP_CONTAINER, 0, 0, "connection",
     "SETNAME, GETNAME, ID, INFO, SETINFO, NO-EVICT, NO-TOUCH"},
    {"ECHO", weir_resp_echo, 2, WEIR_RESP_FAST, 0, 0, "connection", "Answers what it was given"},
    {"QUIT", weir_resp_quit, -1, ALWAYS | WEIR_RESP_AT_ONCE, 0, 0, "connection",
     "Closes the connection"},
    {"RESET", weir_resp_reset, 1, ALWAYS | WEIR_RESP_AT_ONCE, 0, 0, "connection",
     "Makes the connection as it was at first"},
    {"INFO", weir_resp_info, -1, 0, 0, 0, "server", "Tells about the server"},
    {"CONFIG", weir_resp_config, -2, WEIR_RESP_CONTAINER, 0, 0, "server", "GET"},
    {"COMMAND", weir_resp_command, -1, WEIR_RESP_CONTAINER, 0, 0, "server",
     "Tells about the commands: COUNT, DOCS, INFO, LIST"},
    {"INCR", weir_resp_counter, 2, KEYED, 1, 1, "counter", "Adds 1 to a counter"},
    {"EXPIRE", weir_resp_counter, -3, KEYED, 1, 1, "counter",
     "Sets the time to live of a counter, in seconds"},
    {"INCRBY", weir_resp_counter, 3, KEYED, 1, 1, "counter", "Adds to a counter"},
    {"GET", weir_resp_counter, 2, LOOKS, 1, 1, "counter", "Returns the value of a counter"},
    {"SET", weir_resp_counter, -3, KEYED, 1, 1, "counter", "Sets a counter and its time to live"},
    {"PEXPIRE", weir_resp_counter, -3, KEYED, 1, 1, "counter",
     "Sets the time to live of a counter, in milliseconds"},
    {"MULTI", weir_resp_multi, 1, GATHERS, 0, 0, "transactions", "Begins a transaction"},
    {"EXEC", weir_resp_exec, 1, GATHERS, 0, 0, "transactions",
     "Runs the commands queued since MULTI"},
    {"DISCARD", weir_resp_discard, 1, GATHERS, 0, 0, "transactions",
     "Drops the commands queued since MULTI"},
    {"DECR", weir_resp_counter, 2, KEYED, 1, 1, "counter", "Subtracts 1 from a counter"},
    {"DECRBY", weir_resp_counter, 3, KEYED, 1, 1, "counter", "Subtracts from a counter"},
    {"GETDEL", weir_resp_counter, 2, KEYED, 1, 1, "counter",
     "Returns the value of a counter and deletes it"},
    {"SETEX", weir_resp_counter, 4, KEYED, 1, 1, "counter",
     "Sets a counter and its time to live, in seconds"},
    {"PSETEX", weir_resp_counter, 4, KEYED, 1, 1, "counter",
     "Sets a counter and its time to live, in milliseconds"},
    {"SETNX", weir_resp_counter, 3, KEYED, 1, 1, "counter", "Sets a counter unless it exists"},
    {"EXPIREAT", weir_resp_counter, -3, KEYED, 1, 1, "counter",
     "Sets when a counter ends, in seconds since 1970"},
    {"PEXPIREAT", weir_resp_counter, -3, KEYED, 1, 1, "counter",
     "Sets when a counter ends, in milliseconds since 1970"},
    {"PERSIST", weir_resp_counter, 2, KEYED, 1, 1, "counter",
     "Removes the time to live of a counter"},
    {"EVALSHA", weir_resp_evalsha, -3, WEIR_RESP_WRITE, 0, 0, "scripting",
     "Runs the algorithm of a known script, by its SHA-1"},
    {"EVAL", weir_resp_eval, -3, WEIR_RESP_WRITE, 0, 0, "scripting",
     "Runs the algorithm of a known script"},
    {"EVALSHA_RO", weir_resp_evalsha, -3, WEIR_RESP_WRITE, 0, 0, "scripting",
     "The same as EVALSHA"},
    {"EVAL_RO", weir_resp_eval, -3, WEIR_RESP_WRITE, 0, 0, "scripting", "The same as EVAL"},
    {"SCRIPT", weir_resp_script, -2, WEIR_RESP_CONTAINER, 0, 0, "scripting", "LOAD, EXISTS, FLUSH"},
    {"ZCARD", weir_resp_zcard, 2, LOOKS, 1, 1, "generic",
     "Counts the requests of a key of pyrate-limiter"},
    {"HMGET", weir_resp_hmget, -3, LOOKS, 1, 1, "generic",
     "Tells when the buckets of a key of pyrate-limiter will be full"},
    {"ZRANGE", weir_resp_zrange, -4, LOOKS, 1, 1, "generic",
     "Tells when one request of a key of pyrate-limiter was"},
    {"ZREMRANGEBYSCORE", weir_resp_zremrangebyscore, 4, KEYED, 1, 1, "generic",
     "Forgets fixed windows of pyrate-limiter; its logs drop what is over by themselves"},
    {"TIME", weir_resp_time, 1, LOOKS, 0, 0, "server", "Returns the time of this server"},
    {"WATCH", weir_resp_watch, -2, GATHERS, 0, 0, "transactions",
     "Not supported: answers an error"},
    {"UNWATCH", weir_resp_unwatch, 1, WEIR_RESP_FAST, 0, 0, "transactions", "Does nothing"},
};
const uint32_t weir_resp_command_count = sizeof weir_resp_commands / sizeof *weir_resp_commands;

const struct weir_resp_command *weir_resp_command_find(struct weir_bytes name)
{
    /* What nearly every command is, as nearly every program writes it: two compares. */
    if (name.size == 11 &&
        (!memcmp(name.data, "CL.THROTTLE", 11) || !memcmp(name.data, "cl.throttle", 11)))
        return &weir_resp_commands[0];
    for (uint32_t i = 0; i < weir_resp_command_count; i++)
        if (weir_resp_is(name, weir_resp_commands[i].name))
            return &weir_resp_commands[i];
    return NULL;
}

/* --- COMMAND ---------------------------------------------------------------------------------- */

/* More than the description of any one command takes. */
#define ENTRY_MAX 512

static char *write_name(char *out, const char *name)
{
    size_t size = strlen(name);
    out = weir_resp_write_head(out, '$', size);
    for (size_t i = 0; i < size; i++)
        *out++ = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] | 0x20 : name[i]);
    return WEIR_LITERAL_WRITE(out, "\r\n");
}

static char *write_text(char *out, const char *text)
{
    return weir_resp_write_bulk(out, text, strlen(text));
}

static char *write_flags(char *out, int version, uint16_t flags)
{
    static const struct {
        uint16_t flag;
        const char *name;
    } names[] = {{WEIR_RESP_WRITE, "write"},
                 {WEIR_RESP_READ, "readonly"},
                 {WEIR_RESP_FAST, "fast"},
                 {WEIR_RESP_NO_AUTH, "no_auth"}};
    uint64_t count = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        count += (flags & names[i].flag) != 0;
    out = weir_resp_write_head(out, version >= 3 ? '~' : '*', count);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (flags & names[i].flag)
            out = weir_resp_write_simple(out, names[i].name, strlen(names[i].name));
    return out;
}

/* Ten elements, as Redis 7 gives them; of those about access, tips, key specifications and
 * subcommands there is nothing to tell. */
static char *write_info(char *out, int version, const struct weir_resp_command *command)
{
    out = weir_resp_write_array(out, 10);
    out = write_name(out, command->name);
    out = weir_resp_write_integer(out, command->arity);
    out = write_flags(out, version, command->flags);
    out = weir_resp_write_integer(out, command->key);
    out = weir_resp_write_integer(out, command->last_key);
    out = weir_resp_write_integer(out, command->key != 0);
    for (int i = 0; i < 4; i++)
        out = weir_resp_write_array(out, 0);
    return out;
}

static char *write_docs(char *out, int version, const struct weir_resp_command *command)
{
    out = write_name(out, command->name);
    out = weir_resp_write_map(out, version, 3);
    out = WEIR_RESP_WRITE_WORD(out, "summary");
    out = write_text(out, command->summary);
    out = WEIR_RESP_WRITE_WORD(out, "since");
    out = WEIR_RESP_WRITE_WORD(out, "1.0.0");
    out = WEIR_RESP_WRITE_WORD(out, "group");
    return write_text(out, command->group);
}

static void answer_info(struct weir_resp_call *call, uint32_t first)
{
    uint32_t named = call->count > first ? call->count - first : 0;
    uint32_t count = named ? named : weir_resp_command_count;
    int version = call->session->version;
    char *out = weir_resp_begin(call, (size_t)(count + 1) * ENTRY_MAX);
    if (!out)
        return;
    out = weir_resp_write_array(out, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_resp_command *command =
            named ? weir_resp_command_find(call->args[first + i]) : &weir_resp_commands[i];
        if (command)
            out = write_info(out, version, command);
        else
            out = version >= 3 ? weir_resp_write_null(out, version)
                               : WEIR_LITERAL_WRITE(out, "*-1\r\n");
    }
    weir_resp_end(call, out);
}

/* Names that are no command are left out, as Redis does. */
static void answer_docs(struct weir_resp_call *call)
{
    uint32_t named = call->count - 2, known = weir_resp_command_count;
    int version = call->session->version;
    if (named) {
        known = 0;
        for (uint32_t i = 2; i < call->count; i++)
            known += weir_resp_command_find(call->args[i]) != NULL;
    }
    char *out = weir_resp_begin(call, (size_t)(known + 1) * ENTRY_MAX);
    if (!out)
        return;
    out = weir_resp_write_map(out, version, known);
    for (uint32_t i = 0; i < (named ? named : known); i++) {
        const struct weir_resp_command *command =
            named ? weir_resp_command_find(call->args[2 + i]) : &weir_resp_commands[i];
        if (command)
            out = write_docs(out, version, command);
    }
    weir_resp_end(call, out);
}

static void answer_list(struct weir_resp_call *call)
{
    char *out = weir_resp_begin(call, (size_t)(weir_resp_command_count + 1) * 64);
    if (!out)
        return;
    out = weir_resp_write_array(out, weir_resp_command_count);
    for (uint32_t i = 0; i < weir_resp_command_count; i++)
        out = write_name(out, weir_resp_commands[i].name);
    weir_resp_end(call, out);
}

void weir_resp_command(struct weir_resp_call *call)
{
    if (call->count == 1)
        answer_info(call, 1);
    else if (weir_resp_is(call->args[1], "INFO"))
        answer_info(call, 2);
    else if (weir_resp_is(call->args[1], "DOCS"))
        answer_docs(call);
    else if (weir_resp_is(call->args[1], "COUNT") && call->count == 2)
        weir_resp_integer(call, weir_resp_command_count);
    else if (weir_resp_is(call->args[1], "LIST") && call->count == 2)
        answer_list(call);
    else
        weir_resp_error(call, "ERR unknown subcommand or wrong number of arguments for '%.*s'",
                        WEIR_RESP_SHOWN(call->args[1]));
}
