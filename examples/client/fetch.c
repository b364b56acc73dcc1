/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches one URL and keeps to its server's limits:
 *
 *     cc fetch.c $(pkg-config --cflags --libs weir-client) -o fetch && ./fetch https://example.com/
 */
#include <inttypes.h>
#include <stdio.h>

#include <weir/client.h>

int main(int argc, char **argv)
{
    struct weir_client *client;
    struct weir_reason reason;
    struct weir_client_answer answer;
    struct weir_client_request request = {.url = argc > 1 ? argv[1] : "http://127.0.0.1:8080/"};

    if (weir_client_open(&client, NULL, &reason) < 0) {
        fprintf(stderr, "%s\n", reason.text);
        return 1;
    }
    weir_client_fetch(client, &request, &answer);
    printf("%s, status %d, %" PRIu32 " tries\n", weir_client_outcome_text(answer.outcome),
           answer.status, answer.tries);
    if (answer.limit.remaining != WEIR_CLIENT_UNKNOWN)
        printf("%" PRIu64 " requests left\n", answer.limit.remaining);
    if (answer.body)
        printf("%s", answer.body);
    weir_client_answer_free(&answer);
    weir_client_close(client);
    return answer.outcome == WEIR_CLIENT_ANSWERED ? 0 : 1;
}
