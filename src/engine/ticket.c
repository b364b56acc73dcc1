/* see ticket.h */
#include "engine/ticket.h"

#include <string.h>

#include "core/siphash.h"

#define HEAD_BYTES 9
#define HASH_BYTES 16
#define NAME_BYTES 24 /* a tag and a digest */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Tells this use of the secret from the hashing of keys. */
#define LEASE_DOMAIN UINT64_C(0x657361656c726977) /* "wirlease" */

uint64_t weir_lease_draw(const uint64_t secret[2], uint64_t *counter)
{
    const uint64_t key[2] = {secret[0] ^ LEASE_DOMAIN, secret[1]};
    uint64_t hash[2];
    do {
        ++*counter;
        weir_siphash128(key, counter, sizeof *counter, hash);
    } while (hash[0] == 0);
    return hash[0];
}

static void put64(unsigned char *bytes, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> (56 - 8 * i));
}

static uint64_t get64(const unsigned char *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return value;
}

static int digit(char c)
{
    const char *at = c != '\0' ? strchr(alphabet, c) : NULL;
    return at != NULL ? (int)(at - alphabet) : -1;
}

static int limit_bytes(const struct weir_ticket *ticket)
{
    return ticket->place == WEIR_TICKET_ELSEWHERE ? NAME_BYTES : HASH_BYTES;
}

void weir_ticket_digest(const struct weir_ticket *ticket, uint16_t i,
                        unsigned char digest[WEIR_STORE_DIGEST])
{
    put64(digest, ticket->hash[i][0]);
    put64(digest + 8, ticket->hash[i][1]);
}

void weir_ticket_add_name(struct weir_ticket *ticket, const struct weir_store_name *name)
{
    ticket->tag[ticket->count] = name->tag;
    ticket->hash[ticket->count][0] = get64(name->digest);
    ticket->hash[ticket->count++][1] = get64(name->digest + 8);
}

size_t weir_ticket_write(const struct weir_ticket *ticket, char *text)
{
    unsigned char bytes[WEIR_TICKET_BYTES_MAX];
    size_t size = HEAD_BYTES, length = 0;
    bytes[0] = ticket->place;
    put64(bytes + 1, ticket->id);
    for (uint16_t i = 0; i < ticket->count; i++, size += HASH_BYTES) {
        if (ticket->place == WEIR_TICKET_ELSEWHERE) {
            put64(bytes + size, ticket->tag[i]);
            size += NAME_BYTES - HASH_BYTES;
        }
        weir_ticket_digest(ticket, i, bytes + size);
    }
    uint32_t bits = 0, held = 0;
    for (size_t i = 0; i < size; i++) {
        bits = bits << 8 | bytes[i];
        for (held += 8; held >= 6; held -= 6)
            text[length++] = alphabet[bits >> (held - 6) & 63];
    }
    if (held > 0)
        text[length++] = alphabet[bits << (6 - held) & 63];
    return length;
}

/* Decodes strictly. Returns the number of bytes, or WEIR_ERR_SYNTAX. */
static int decode(struct weir_bytes text, unsigned char *bytes)
{
    uint32_t bits = 0, held = 0;
    int size = 0;
    for (size_t i = 0; i < text.size; i++) {
        int value = digit(text.data[i]);
        if (value < 0)
            return WEIR_ERR_SYNTAX;
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            bytes[size++] = (unsigned char)(bits >> held);
        }
    }
    if (held >= 6 || (bits & ((1U << held) - 1)) != 0)
        return WEIR_ERR_SYNTAX; /* a digit too many, or bits that say nothing */
    return size;
}

/* Reads the limit at `bytes`. Returns whether it is another than all before. */
static bool read_limit(struct weir_ticket *ticket, const unsigned char *bytes)
{
    uint16_t last = ticket->count++;
    ticket->tag[last] = 0;
    if (ticket->place == WEIR_TICKET_ELSEWHERE) {
        ticket->tag[last] = get64(bytes);
        bytes += NAME_BYTES - HASH_BYTES;
    }
    ticket->hash[last][0] = get64(bytes);
    ticket->hash[last][1] = get64(bytes + 8);
    for (uint16_t i = 0; i < last; i++)
        if (ticket->hash[i][0] == ticket->hash[last][0] &&
            ticket->hash[i][1] == ticket->hash[last][1] && ticket->tag[i] == ticket->tag[last])
            return false;
    return true;
}

int weir_ticket_read(struct weir_ticket *ticket, struct weir_bytes text)
{
    unsigned char bytes[WEIR_TICKET_BYTES_MAX];
    if (text.size > WEIR_TICKET_TEXT_MAX)
        return WEIR_ERR_SYNTAX;
    int size = decode(text, bytes);
    if (size < HEAD_BYTES || bytes[0] >= WEIR_TICKET_PLACES)
        return WEIR_ERR_SYNTAX;
    ticket->place = bytes[0];
    ticket->id = get64(bytes + 1);
    ticket->count = 0;
    int each = limit_bytes(ticket), limits = (size - HEAD_BYTES) / each;
    if (ticket->id == 0 || limits == 0 || limits > WEIR_CHECKS_MAX ||
        size != HEAD_BYTES + limits * each)
        return WEIR_ERR_SYNTAX;
    for (int at = HEAD_BYTES; at < size; at += each)
        if (!read_limit(ticket, bytes + at))
            return WEIR_ERR_SYNTAX;
    return 0;
}
