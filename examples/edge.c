/* SPDX-License-Identifier: Apache-2.0 */
/* Answers requests as an HTTP edge would: status, header fields and body of weir's own front, and
 * what a request is charged settled by its outcome.
 *
 *     cc edge.c $(pkg-config --cflags --libs weir) -o edge
 *     ./edge weir.yaml 192.0.2.1 /login /login /api
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <weir/embed.h>

/* Large: once for each thread, not on its stack. */
static struct weir_reservation_token reservation;
static char fields[WEIR_FIELDS_MAX], body[WEIR_BODY_MAX];

/* Handles are found once, not for each request. */
struct edge {
    struct weir *weir;
    int method, path;
    bool settles;
};

static void handle(const struct edge *edge, const struct sockaddr *client, const char *path)
{
    const struct weir_value values[] = {{edge->method, "GET", 3}, {edge->path, path, strlen(path)}};
    const struct weir_call call = {
        .values = values,
        .count = 2,
        .client = client,
        .cost = 1,
        .reserve = edge->settles ? WEIR_RESERVE_ALWAYS : WEIR_RESERVE_NEVER,
        .fields = fields,
        .body = body,
        .reservation = &reservation,
    };
    struct weir_answer_summary answer;
    int err = weir_check_full(edge->weir, &call, &answer);
    if (err < 0) {
        printf("400 %s\n", weir_error_text(err));
        return;
    }
    printf("%u\n%.*s", answer.status, (int)answer.fields_size, fields);
    if (answer.body_size > 0)
        printf("Content-Type: %s\n\n%.*s\n", answer.type, (int)answer.body_size, body);
    if (reservation.text[0] != '\0') /* the request is served, and ends with 200 */
        (void)weir_report(edge->weir, &reservation, 200);
}

int main(int argc, char **argv)
{
    struct edge edge;
    struct weir_reason reason;
    struct sockaddr_in client = {.sin_family = AF_INET};
    if (argc < 4 || inet_pton(AF_INET, argv[2], &client.sin_addr) != 1) {
        fprintf(stderr, "usage: edge RULES IPV4 PATH...\n");
        return 2;
    }
    if (weir_open(&edge.weir, argv[1], NULL, &reason) < 0) {
        fprintf(stderr, "edge: %s\n", reason.text);
        return 1;
    }
    edge.method = weir_attribute(edge.weir, "method");
    edge.path = weir_attribute(edge.weir, "path");
    edge.settles = weir_gives_back(edge.weir);
    for (int i = 3; i < argc; i++)
        handle(&edge, (const struct sockaddr *)&client, argv[i]);
    weir_close(edge.weir);
    return 0;
}
