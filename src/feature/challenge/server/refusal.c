/* SPDX-License-Identifier: Apache-2.0 */
/* see refusal.h */
#include "feature/challenge/server/refusal.h"

#define LINES_PER_SECOND (WEIR_LOG_LINES_PER_SECOND / 10)

const char *weir_challenge_refusal_name(unsigned refusal)
{
    return refusal == WEIR_CHALLENGE_REPLAYED
               ? "replayed"
               : weir_challenge_verdict_name((enum weir_challenge_verdict)refusal);
}

struct weir_person_trouble weir_challenge_refusal_trouble(unsigned refusal, struct weir_bytes to)
{
    static const struct {
        enum weir_page_words reason;
        const char *detail;
    } words[WEIR_CHALLENGE_REFUSALS] = {
        [WEIR_CHALLENGE_MALFORMED] = {WEIR_WORDS_UNSOLVED,
                                      "The puzzle or its solution is malformed."},
        [WEIR_CHALLENGE_UNKNOWN_KEY] =
            {WEIR_WORDS_KEY_CHANGED, "The puzzle was signed with a key that is no longer in use."},
        [WEIR_CHALLENGE_FORGED] = {WEIR_WORDS_OTHER_NETWORK,
                                   "The puzzle was made for another network, or is forged."},
        [WEIR_CHALLENGE_EXPIRED] = {WEIR_WORDS_EXPIRED, "The puzzle has expired."},
        [WEIR_CHALLENGE_UNSOLVED] = {WEIR_WORDS_UNSOLVED, "The solution is wrong."},
        [WEIR_CHALLENGE_REPLAYED] = {WEIR_WORDS_REPLAYED, "The solution was used before."},
    };
    return (struct weir_person_trouble){
        .status = WEIR_HTTP_403,
        .reason = words[refusal].reason,
        .label = refusal == WEIR_CHALLENGE_REPLAYED ? WEIR_WORDS_GO_ON : WEIR_WORDS_AGAIN,
        .detail = words[refusal].detail,
        .link = to,
    };
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
