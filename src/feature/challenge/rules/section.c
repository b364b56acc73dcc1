/* SPDX-License-Identifier: Apache-2.0 */
/* see section.h */
#include "feature/challenge/rules/section.h"

#include <openssl/crypto.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "core/bytes.h"
#include "feature/challenge/cookie.h"
#include "feature/challenge/keys.h"
#include "feature/challenge/puzzle.h"
#include "feature/score/rules/score.h"
#include "rules/load/attributes.h"
#include "rules/load/environment.h"
#include "rules/load/server/listener.h"

#define DIFFICULTY 18
#define COOKIE_NAME_MAX 64
#define COOKIE_NAME "__Host-weir"
#define SECRET_FILE_MAX 16384 /* keys of the longest line, and comments */

/* Reads the keys; leaves them out after a problem. */
static void load_secret_file(struct rules_loader *loader, const struct rules_node *node,
                             struct weir_challenge_settings *settings)
{
    static const char what[] = "secret_file";
    struct weir_bytes name;
    struct weir_reason reason = {{0}};
    char text[SECRET_FILE_MAX + 1];
    uint32_t line = 0;
    if (!rules_read_place(loader, node, what, &name))
        return;
    const char *path = rules_path_of(loader, name);
    struct weir_challenge_keys *keys = rules_keep(loader, sizeof(*keys));
    if (!path || !keys)
        return;
    long size = weir_file_read(path, text, sizeof(text), &reason);
    if (size < 0)
        rules_problem(loader, node, "cannot read %s: %s", path, reason.text);
    else if (size > SECRET_FILE_MAX)
        rules_problem(loader, node, "%s has more than %d bytes", path, SECRET_FILE_MAX);
    else if (weir_challenge_keys_read(keys, (struct weir_bytes){text, (size_t)size}, &line,
                                      &reason) < 0)
        if (line > 0)
            rules_problem(loader, node, "%s, line %u: %s", path, line, reason.text);
        else
            rules_problem(loader, node, "%s: %s", path, reason.text);
    else
        settings->keys = keys;
    if (size >= 0)
        rules_note_secret_file(loader, what, path);
    OPENSSL_cleanse(text, sizeof(text));
}

/* Browsers take a cookie with one of these prefixes only with Secure, and `__Host-` only for one
 * host (RFC 6265bis section 4.1.3); its case does not count. */
static bool is_secure_name(struct weir_bytes name)
{
    static const char *const prefixes[] = {"__Host-", "__Secure-"};
    for (int i = 0; i < 2; i++)
        if (name.size >= strlen(prefixes[i]) &&
            strncasecmp(name.data, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static void load_cookie(struct rules_loader *loader, const struct rules_node *root,
                        const struct rules_node *node, struct weir_challenge_settings *settings)
{
    struct weir_bytes name = {COOKIE_NAME, strlen(COOKIE_NAME)};
    struct rules_quote quote;
    if (node && !rules_read_text(loader, node, "cookie", &name))
        return;
    if (name.size > COOKIE_NAME_MAX || !weir_cookie_name_is_valid(name)) {
        rules_problem(loader, node,
                      "%s is not the name of a cookie: use 1 to %d letters, digits, `-` and `_`",
                      rules_quote(&quote, name.data, name.size), COOKIE_NAME_MAX);
    } else if (!settings->secure && is_secure_name(name)) {
        rules_problem(loader, node ? node : root,
                      "browsers refuse a cookie %s without `secure: true`; give `cookie` a name "
                      "without `__Host-` or `__Secure-`",
                      rules_quote(&quote, name.data, name.size));
    } else {
        settings->cookie =
            (struct weir_bytes){rules_keep_text(loader, name.data, name.size), name.size};
    }
}

/* In the order of enum weir_class. */
#define DIFFICULTY_OF(class)                                                                       \
    {                                                                                              \
        class, RULES_NUMBER, RULES_RANGE(1, WEIR_CHALLENGE_DIFFICULTY_MAX),                        \
            .flags = RULES_REQUIRED, .doc = "the difficulty for clients of this class"             \
    }
static const struct rules_keyword difficulty_keywords[] = {
    DIFFICULTY_OF("legitimate"), DIFFICULTY_OF("suspicious"), DIFFICULTY_OF("malicious")};
static const struct rules_section difficulty_section =
    RULES_SECTION("difficulty", difficulty_keywords);

static void load_difficulty(struct rules_loader *loader, const struct rules_node *node,
                            struct weir_challenge_settings *settings)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    uint64_t difficulty = DIFFICULTY;
    bool single = node->kind != RULES_MAP;
    rules_section_name(&difficulty_section, fields);
    if (single)
        fields[0].value = node;
    else if (rules_section_find(loader, &difficulty_section, node, fields))
        loader->difficulty = node;
    settings->by_class = !single;
    for (unsigned i = 0; i < WEIR_CLASSES && (i == 0 || !single); i++)
        if (!fields[i].value)
            rules_problem(loader, node, "`difficulty` needs one for each class; `%s` is missing",
                          fields[i].name);
        else if (rules_read_number(loader, fields[i].value, "difficulty",
                                   difficulty_keywords[i].least, difficulty_keywords[i].most,
                                   &difficulty))
            settings->difficulty[i] = (uint8_t)difficulty;
    for (unsigned i = 1; i < WEIR_CLASSES && single; i++)
        settings->difficulty[i] = settings->difficulty[0];
}

void rules_check_difficulty(struct rules_loader *loader)
{
    if (loader->difficulty && !loader->score)
        rules_problem(loader, loader->difficulty,
                      "a `difficulty` for each class needs the section `score:`, which says the "
                      "class of a client; without it, write one number");
}

/* The attributes that carry tokens, so that front ends hand them over. */
static void intern_sources(struct rules_loader *loader, const struct rules_node *node)
{
    static const char *const names[] = {"header.cookie", "header.x-weir-challenge"};
    for (int i = 0; i < 2; i++) {
        int number = rules_intern_attribute(loader, node, weir_bytes_of(names[i]));
        if (number >= 0)
            loader->rules->challenge_sources[i] = (uint16_t)number;
    }
}

enum { LISTEN, SECRET_FILE, DIFFICULTY_BITS, COOKIE };

#define AT(member) RULES_AT(struct weir_challenge_settings, member)
static const struct rules_keyword keywords[] = {
    [LISTEN] = {"listen", RULES_PLACE, .absent = "none: tokens are verified only",
                .doc = "address of a [listener](rules.md#the-servers-settings) that serves "
                       "`/.weir/challenge`; at all other paths it says that there is nothing"},
    [SECRET_FILE] = {"secret_file", RULES_FILE, .flags = RULES_REQUIRED,
                     .doc = "the [keys](challenge.md#keys) that sign puzzles and tokens"},
    [DIFFICULTY_BITS] = {"difficulty", RULES_NUMBER, RULES_RANGE(1, WEIR_CHALLENGE_DIFFICULTY_MAX),
                         .section = &difficulty_section, .otherwise = "18",
                         .doc = "zero bits that a solution's hash begins with, 1 to 26; or one for "
                                "each class of the client's [score](score.md): `{ legitimate: 16, "
                                "suspicious: 18, malicious: 21 }`"},
    [COOKIE] = {"cookie", RULES_TEXT, .otherwise = COOKIE_NAME, .doc = "name of the cookie"},
    {"life", RULES_DURATION, AT(life_ns),
     RULES_RANGE(RULES_MINUTE /* shorter, and clients do little else than solve puzzles */,
                 30 * RULES_DAY),
     .otherwise = "1h", .doc = "of a token, 1min to 30d"},
    {"secure", RULES_FLAG, AT(secure), .otherwise = "true",
     .doc = "`false`: the cookie has no `Secure`, for tests over plain HTTP; then `cookie` needs a "
            "name without `__Host-`"},
};
const struct rules_section rules_section_challenge = RULES_SECTION("`challenge`", keywords);

void rules_load_challenge(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct weir_challenge_settings *settings = &loader->rules->settings.challenge;
    bool far;
    memset(settings->difficulty, DIFFICULTY, sizeof(settings->difficulty));
    loader->challenge = true;
    if (!rules_section_load(loader, &rules_section_challenge, node, fields, settings))
        return;
    if (fields[LISTEN].value)
        rules_read_listen(loader, fields[LISTEN].value, &settings->listener.address, &far);
    if (!fields[SECRET_FILE].value)
        rules_problem(loader, node,
                      "`secret_file` is missing: a file with a key, such as the output of "
                      "`openssl rand -hex 32`");
    else
        load_secret_file(loader, fields[SECRET_FILE].value, settings);
    if (fields[DIFFICULTY_BITS].value)
        load_difficulty(loader, fields[DIFFICULTY_BITS].value, settings);
    load_cookie(loader, node, fields[COOKIE].value, settings);
    intern_sources(loader, node);
}
