/* SPDX-License-Identifier: Apache-2.0 */
/* The tries of addresses and of paths beside looking at everything, one after the other. */
#include "core/bytes.h"
#include "draw.h"
#include "path_pattern.h"
#include "rules/match/address_trie.h"
#include "rules/match/path.h"
#include "rules/match/path_trie.h"
#include "rules_test.h"
#include "test.h"

static uint64_t random_state = 7;

static uint32_t random_below(uint32_t bound)
{
    return (uint32_t)draw_below(&random_state, bound);
}

/* Few distinct bits, so that prefixes nest. */
static struct weir_address random_address(void)
{
    struct weir_address address = {.family = random_below(2) ? 6 : 4};
    for (unsigned i = 0; i < (address.family == 6 ? 16u : 4u); i++)
        address.bytes[i] = (uint8_t)(random_below(4) ? 0 : random_below(4) << 6 | random_below(2));
    return address;
}

TEST("the address trie finds what a scan finds")
{
    enum { PREFIXES = 400 };
    static struct weir_cidr cidrs[PREFIXES];
    static uint32_t numbers[PREFIXES];
    for (int turn = 0; turn < 20; turn++) {
        struct rules_address_trie trie = {0};
        uint32_t atoms = 0;
        for (int i = 0; i < PREFIXES; i++) {
            cidrs[i].address = random_address();
            cidrs[i].bits = (uint8_t)random_below(cidrs[i].address.family == 6 ? 129 : 33);
            weir_address_mask(&cidrs[i].address, cidrs[i].bits);
            numbers[i] = rules_address_trie_add(&trie, &cidrs[i], &atoms);
            assert_true(numbers[i] < atoms);
        }
        for (int q = 0; q < 2000; q++) {
            struct weir_address address = random_address();
            uint32_t found[RULES_ADDRESS_ATOMS_MAX], expected = 0;
            uint32_t count = rules_address_trie_find(&trie, &address, found);
            char *seen = calloc(atoms, 1);
            for (int i = 0; i < PREFIXES; i++) {
                if (weir_cidr_contains(&cidrs[i], &address) && !seen[numbers[i]]) {
                    seen[numbers[i]] = 1;
                    expected++;
                }
            }
            assert_int_equal(count, expected);
            for (uint32_t i = 0; i < count; i++)
                assert_true(seen[found[i]]);
            free(seen);
        }
        rules_address_trie_free(&trie);
    }
}

TEST("an unknown address is in no prefix")
{
    struct rules_address_trie trie = {0};
    uint32_t atoms = 0, found[RULES_ADDRESS_ATOMS_MAX];
    struct weir_cidr all = {{.family = 4}, 0};
    struct weir_address none = {0};
    assert_int_equal(rules_address_trie_add(&trie, &all, &atoms), 0);
    assert_int_equal(rules_address_trie_add(&trie, &all, &atoms), 0);
    assert_int_equal(rules_address_trie_find(&trie, &none, found), 0);
    rules_address_trie_free(&trie);
}

static void random_text(char *text, bool pattern)
{
    static const char *const segments[] = {"a", "b", "cc", "*", ":x", ":y", "**"};
    uint32_t count = 1 + random_below(5);
    bool rest = false;
    text[0] = '\0';
    for (uint32_t i = 0; i < count && !rest; i++) {
        uint32_t choice = random_below(pattern ? 7 : 3);
        rest = choice == 6;
        if (choice > 3 && choice < 6 && strstr(text, segments[choice]) != NULL)
            choice = 0; /* a name stands once */
        strcat(text, "/");
        strcat(text, segments[choice]);
    }
    if (!rest && random_below(4) == 0)
        strcat(text, "/");
}

TEST("the path trie finds what a scan finds")
{
    enum { PATTERNS = 200 };
    static struct weir_path_pattern patterns[PATTERNS];
    static char rooms[PATTERNS][WEIR_PATH_MAX];
    static uint32_t numbers[PATTERNS], found[1024];
    for (int turn = 0; turn < 20; turn++) {
        struct rules_path_trie trie = {0};
        uint32_t atoms = 0;
        char text[64];
        for (int i = 0; i < PATTERNS; i++) {
            size_t used;
            random_text(text, true);
            assert_int_equal(weir_path_pattern_compile(&patterns[i], weir_bytes_of(text), 0,
                                                       rooms[i], &used, NULL),
                             0);
            numbers[i] = rules_path_trie_add(&trie, &patterns[i], &atoms);
        }
        for (int q = 0; q < 1000; q++) {
            random_text(text, false);
            struct weir_bytes path = {text, strlen(text)};
            struct rules_path_segments segments;
            rules_path_trie_cut(&trie, path, &segments);
            uint32_t count = rules_path_trie_find(&trie, &segments, found, 1024), expected = 0;
            char *seen = calloc(atoms, 1);
            for (int i = 0; i < PATTERNS; i++) {
                if (path_pattern_match(&patterns[i], path) && !seen[numbers[i]]) {
                    seen[numbers[i]] = 1;
                    expected++;
                }
            }
            assert_int_equal(count, expected);
            for (uint32_t i = 0; i < count; i++)
                assert_true(seen[found[i]]);
            /* Without room it returns the error and writes no further. */
            assert_int_equal(rules_path_trie_find(&trie, &segments, found, 1),
                             count > 1 ? 2 : count);
            free(seen);
        }
        rules_path_trie_free(&trie);
    }
}

RUN_TESTS()
