/* SPDX-License-Identifier: Apache-2.0 */
/* Files of peers: any text is taken or refused with a reason, and names and URLs are parts of it.
 */
#include "fuzz.h"

#include <string.h>

#include "feature/sticky/rules/peers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rules_peer peers[RULES_PEERS_MAX];
    struct weir_reason reason = {""};
    uint32_t line = 0;
    char *text = fuzz_copy(data, size);
    int count = rules_peers_parse((struct weir_bytes){text, size}, peers, &line, &reason);
    if (count < 0) {
        REQUIRE(count == WEIR_ERR_SYNTAX && reason.text[0] != '\0');
        REQUIRE(line <= size);
    } else {
        REQUIRE(count >= 1 && count <= RULES_PEERS_MAX);
        for (int i = 0; i < count; i++) {
            REQUIRE(peers[i].name.size >= 1 && peers[i].name.size <= RULES_PEER_NAME_MAX);
            REQUIRE(peers[i].url.size >= 1 && peers[i].url.size <= RULES_PEER_URL_MAX);
            REQUIRE(peers[i].name.data >= text && peers[i].url.data > peers[i].name.data);
            REQUIRE(peers[i].url.data + peers[i].url.size <= text + size);
        }
    }
    free(text);
    return 0;
}
