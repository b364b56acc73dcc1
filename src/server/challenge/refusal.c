/* SPDX-License-Identifier: Apache-2.0 */
/* see refusal.h */
#include "server/challenge/refusal.h"

#define LINES_PER_SECOND (WEIR_LOG_LINES_PER_SECOND / 10)

const char *weir_challenge_refusal_name(unsigned refusal)
{
    return refusal == WEIR_CHALLENGE_REPLAYED
               ? "replayed"
               : weir_challenge_verdict_name((enum weir_challenge_verdict)refusal);
}

const char *weir_challenge_refusal_text(unsigned refusal)
{
    static const char *const texts[WEIR_CHALLENGE_REFUSALS] = {
        [WEIR_CHALLENGE_MALFORMED] = "The puzzle or its solution is malformed.",
        [WEIR_CHALLENGE_UNKNOWN_KEY] = "The puzzle was signed with a key that is no longer in use.",
        [WEIR_CHALLENGE_FORGED] = "The puzzle was made for another network, or is forged.",
        [WEIR_CHALLENGE_EXPIRED] = "The puzzle has expired.",
        [WEIR_CHALLENGE_UNSOLVED] = "The solution is wrong.",
        [WEIR_CHALLENGE_REPLAYED] = "The solution was used before.",
    };
    return texts[refusal];
}

void weir_challenge_refusal_log(struct weir_log *log, unsigned refusal,
                                const struct weir_address *client)
{
    char text[WEIR_ADDRESS_TEXT_MAX];
    struct weir_log_line line;
    weir_address_format(client, text);
    weir_log_begin_below(&line, log, WEIR_LOG_WARNING, "challenge_refused", LINES_PER_SECOND);
    weir_log_text(&line, "client", text);
    weir_log_text(&line, "reason", weir_challenge_refusal_name(refusal));
    weir_log_end(&line);
}
