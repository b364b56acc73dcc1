/* SPDX-License-Identifier: Apache-2.0 */
/* MULTI, EXEC, DISCARD, and WATCH between them: transactions, which are refused as a whole. See
 * resp.h.
 *
 * A client library sends MULTI, its commands and EXEC in one write (redis-py does so for every
 * pipeline), before it reads that MULTI was refused. So what follows a refused MULTI must not run:
 * it is answered by an error, until EXEC, DISCARD or RESET. HELLO, AUTH and QUIT run: they decide
 * nothing, and a client that was refused for want of a password must be able to give it.
 */
#include "server/resp/transaction.h"

#include "server/resp/reply.h"

static bool arity_is_one(struct weir_resp_call *call)
{
    if (call->count == 1)
        return true;
    weir_resp_wrong_arity(call);
    return false;
}

static void multi(struct weir_resp_call *call)
{
    if (call->session->refused_multi) {
        weir_resp_error(call, "ERR MULTI calls can not be nested");
        return;
    }
    call->session->refused_multi = true;
    if (!call->session->authenticated)
        weir_resp_error(call, "NOAUTH Authentication required.");
    else if (arity_is_one(call))
        weir_resp_error(call, "ERR MULTI is not supported, and nothing up to EXEC is run: send "
                              "the commands without it; WEIR.CHECKALL decides several limits as "
                              "one");
}

static void exec(struct weir_resp_call *call)
{
    if (!arity_is_one(call))
        return;
    if (call->session->refused_multi)
        weir_resp_error(call, "EXECABORT Transaction discarded because of previous errors.");
    else
        weir_resp_error(call, "ERR EXEC without MULTI");
    call->session->refused_multi = false;
}

static void discard(struct weir_resp_call *call)
{
    if (!arity_is_one(call))
        return;
    if (call->session->refused_multi)
        weir_resp_text(call, "OK");
    else
        weir_resp_error(call, "ERR DISCARD without MULTI");
    call->session->refused_multi = false;
}

bool weir_resp_transaction(struct weir_resp_call *call, const struct weir_resp_command *command)
{
    struct weir_bytes name = call->args[0];
    bool refused = call->session->refused_multi;
    if (command) {
        if (!refused || command->flags & WEIR_RESP_NO_AUTH)
            return false;
        weir_resp_error(call, "ERR not run: MULTI was refused before it");
    } else if (weir_resp_is(name, "MULTI")) {
        multi(call);
    } else if (weir_resp_is(name, "EXEC")) {
        exec(call);
    } else if (weir_resp_is(name, "DISCARD")) {
        discard(call);
    } else if (refused && weir_resp_is(name, "WATCH")) {
        weir_resp_error(call, "ERR WATCH inside MULTI is not allowed");
    } else if (refused) {
        weir_resp_error(call, "ERR not run: MULTI was refused before it");
    } else {
        return false;
    }
    return true;
}
