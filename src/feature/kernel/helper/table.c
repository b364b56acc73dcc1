/* SPDX-License-Identifier: Apache-2.0 */
/* see table.h */
#include "feature/kernel/helper/table.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/if_ether.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>

#include "feature/kernel/names.h"

/* How nft shows a set: its numbers of types (nftables: include/datatype.h). */
#define TYPE_IPV4_ADDR 7
#define TYPE_IPV6_ADDR 8

#define CHAIN "bans"
#define PRIORITY_NETDEV (-500) /* "filter" of the netdev family */
#define PRIORITY_INET (-300)   /* "raw": before connection tracking */
#define OFFSET_SADDR4 12
#define OFFSET_SADDR6 8
/* Where the message of the chain is in a transaction that makes the table anew: behind its begin,
 * the two that remove the table of each family, and the new one. */
#define CHAIN_STEP 6

#define COMMENT "bans of weir, which undoes changes by others"
#define COMMENT_TYPE 0 /* libnftnl: NFTNL_UDATA_TABLE_COMMENT */

static uint8_t nf_family(const struct kernel_table *table)
{
    return table->open.hook == WEIR_KERNEL_NETDEV ? NFPROTO_NETDEV : NFPROTO_INET;
}

static size_t address_size(uint8_t family)
{
    return family == 4 ? 4 : 16;
}

void kernel_table_open(struct kernel_table *table, struct netlink *netlink,
                       const struct kernel_protected *protected,
                       const struct weir_kernel_open *open)
{
    *table = (struct kernel_table){
        .netlink = netlink, .protected = protected, .open = *open, .opened = true};
}

/* --- The table and its chain ------------------------------------------------------------------ */

/* The comment as a table has it: a type, a size, and the text with its NUL. */
#define USERDATA_SIZE (2 + sizeof COMMENT)

static void make_userdata(uint8_t userdata[USERDATA_SIZE])
{
    userdata[0] = COMMENT_TYPE;
    userdata[1] = sizeof COMMENT;
    memcpy(userdata + 2, COMMENT, sizeof COMMENT);
}

static void put_table(struct kernel_table *table, uint8_t type, uint8_t family, uint16_t flags,
                      bool comment)
{
    struct netlink *netlink = table->netlink;
    uint8_t userdata[USERDATA_SIZE];

    netlink_message(netlink, type, family, flags);
    netlink_put_text(netlink, NFTA_TABLE_NAME, table->open.table);
    if (comment) {
        make_userdata(userdata);
        netlink_put(netlink, NFTA_TABLE_USERDATA, userdata, sizeof userdata);
    }
    netlink_end(netlink);
}

static void put_hook(struct kernel_table *table)
{
    struct netlink *netlink = table->netlink;
    bool netdev = table->open.hook == WEIR_KERNEL_NETDEV;
    size_t hook = netlink_nest(netlink, NFTA_CHAIN_HOOK), devices;

    netlink_put_u32(netlink, NFTA_HOOK_HOOKNUM, netdev ? NF_NETDEV_INGRESS : NF_INET_PRE_ROUTING);
    netlink_put_u32(netlink, NFTA_HOOK_PRIORITY,
                    (uint32_t)(netdev ? PRIORITY_NETDEV : PRIORITY_INET));
    if (netdev) {
        devices = netlink_nest(netlink, NFTA_HOOK_DEVS);
        for (uint8_t i = 0; i < table->open.interfaces_count; i++)
            netlink_put_text(netlink, NFTA_DEVICE_NAME, table->open.interfaces[i]);
        netlink_nest_end(netlink, devices);
    }
    netlink_nest_end(netlink, hook);
}

/* No table of that name in either family, whether there was one or not: deleting none is an error.
 */
static void put_no_table(struct kernel_table *table)
{
    static const uint8_t families[] = {NFPROTO_NETDEV, NFPROTO_INET};

    for (unsigned i = 0; i < sizeof families; i++) {
        put_table(table, NFT_MSG_NEWTABLE, families[i], NLM_F_CREATE, false);
        put_table(table, NFT_MSG_DELTABLE, families[i], 0, false);
    }
}

/* The table anew, with its chain. */
static void put_new_table(struct kernel_table *table)
{
    struct netlink *netlink = table->netlink;

    put_no_table(table);
    put_table(table, NFT_MSG_NEWTABLE, nf_family(table), NLM_F_CREATE, true);
    netlink_message(netlink, NFT_MSG_NEWCHAIN, nf_family(table), NLM_F_CREATE);
    netlink_put_text(netlink, NFTA_CHAIN_TABLE, table->open.table);
    netlink_put_text(netlink, NFTA_CHAIN_NAME, CHAIN);
    put_hook(table);
    netlink_put_u32(netlink, NFTA_CHAIN_POLICY, NF_ACCEPT);
    netlink_put_text(netlink, NFTA_CHAIN_TYPE, "filter");
    netlink_end(netlink);
}

/* --- Rules ------------------------------------------------------------------------------------ */

/* An expression: begin gives the two nests that end takes. */
struct expression {
    size_t element, data;
};

static struct expression begin_expression(struct netlink *netlink, const char *name)
{
    struct expression expression;

    expression.element = netlink_nest(netlink, NFTA_LIST_ELEM);
    netlink_put_text(netlink, NFTA_EXPR_NAME, name);
    expression.data = netlink_nest(netlink, NFTA_EXPR_DATA);
    return expression;
}

static void end_expression(struct netlink *netlink, const struct expression *expression)
{
    netlink_nest_end(netlink, expression->data);
    netlink_nest_end(netlink, expression->element);
}

static void put_value(struct netlink *netlink, uint16_t type, const void *data, size_t size)
{
    size_t nest = netlink_nest(netlink, type);

    netlink_put(netlink, NFTA_DATA_VALUE, data, size);
    netlink_nest_end(netlink, nest);
}

/* "meta protocol ip", or where all hooks are of IP "meta nfproto ipv4". */
static void put_protocol(struct kernel_table *table, uint8_t family)
{
    struct netlink *netlink = table->netlink;
    bool netdev = table->open.hook == WEIR_KERNEL_NETDEV;
    uint16_t ether_type = htons(family == 4 ? ETH_P_IP : ETH_P_IPV6);
    uint8_t protocol = family == 4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
    struct expression meta = begin_expression(netlink, "meta"), compare;

    netlink_put_u32(netlink, NFTA_META_KEY, netdev ? NFT_META_PROTOCOL : NFT_META_NFPROTO);
    netlink_put_u32(netlink, NFTA_META_DREG, NFT_REG_1);
    end_expression(netlink, &meta);
    compare = begin_expression(netlink, "cmp");
    netlink_put_u32(netlink, NFTA_CMP_SREG, NFT_REG_1);
    netlink_put_u32(netlink, NFTA_CMP_OP, NFT_CMP_EQ);
    if (netdev)
        put_value(netlink, NFTA_CMP_DATA, &ether_type, sizeof ether_type);
    else
        put_value(netlink, NFTA_CMP_DATA, &protocol, sizeof protocol);
    end_expression(netlink, &compare);
}

/* "ip saddr & MASK" */
static void put_source(struct netlink *netlink, uint8_t family, uint8_t bits)
{
    static const uint8_t none[16] = {0};
    uint32_t size = (uint32_t)address_size(family);
    struct expression load = begin_expression(netlink, "payload"), mask;
    struct weir_address ones;

    netlink_put_u32(netlink, NFTA_PAYLOAD_DREG, NFT_REG_1);
    netlink_put_u32(netlink, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
    netlink_put_u32(netlink, NFTA_PAYLOAD_OFFSET, family == 4 ? OFFSET_SADDR4 : OFFSET_SADDR6);
    netlink_put_u32(netlink, NFTA_PAYLOAD_LEN, size);
    end_expression(netlink, &load);
    if (bits == 8 * size)
        return;
    weir_address_ones(&ones, family, bits);
    mask = begin_expression(netlink, "bitwise");
    netlink_put_u32(netlink, NFTA_BITWISE_SREG, NFT_REG_1);
    netlink_put_u32(netlink, NFTA_BITWISE_DREG, NFT_REG_1);
    netlink_put_u32(netlink, NFTA_BITWISE_LEN, size);
    put_value(netlink, NFTA_BITWISE_MASK, ones.bytes, size);
    put_value(netlink, NFTA_BITWISE_XOR, none, size);
    end_expression(netlink, &mask);
}

static void put_verdict(struct netlink *netlink, uint32_t verdict)
{
    struct expression immediate = begin_expression(netlink, "immediate");
    size_t data, code;

    netlink_put_u32(netlink, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    data = netlink_nest(netlink, NFTA_IMMEDIATE_DATA);
    code = netlink_nest(netlink, NFTA_DATA_VERDICT);
    netlink_put_u32(netlink, NFTA_VERDICT_CODE, verdict);
    netlink_nest_end(netlink, code);
    netlink_nest_end(netlink, data);
    end_expression(netlink, &immediate);
}

/* The rule of a set. Those of what is allowed go before all others. */
static void put_rule(struct kernel_table *table, uint8_t set, uint8_t family, uint8_t bits,
                     const char *name)
{
    struct netlink *netlink = table->netlink;
    bool ban = set == WEIR_KERNEL_BAN;
    struct expression one;
    size_t expressions;

    netlink_message(netlink, NFT_MSG_NEWRULE, nf_family(table),
                    (uint16_t)(NLM_F_CREATE | (ban ? NLM_F_APPEND : 0)));
    netlink_put_text(netlink, NFTA_RULE_TABLE, table->open.table);
    netlink_put_text(netlink, NFTA_RULE_CHAIN, CHAIN);
    expressions = netlink_nest(netlink, NFTA_RULE_EXPRESSIONS);
    put_protocol(table, family);
    put_source(netlink, family, bits);
    one = begin_expression(netlink, "lookup");
    netlink_put_text(netlink, NFTA_LOOKUP_SET, name);
    netlink_put_u32(netlink, NFTA_LOOKUP_SREG, NFT_REG_1);
    end_expression(netlink, &one);
    one = begin_expression(netlink, "objref");
    netlink_put_u32(netlink, NFTA_OBJREF_IMM_TYPE, NFT_OBJECT_COUNTER);
    netlink_put_text(netlink, NFTA_OBJREF_IMM_NAME, name);
    end_expression(netlink, &one);
    put_verdict(netlink, ban ? NF_DROP : NF_ACCEPT);
    netlink_nest_end(netlink, expressions);
    netlink_end(netlink);
}

/* --- Sets and elements ------------------------------------------------------------------------ */

static void put_element(struct netlink *netlink, const uint8_t *address, size_t size,
                        uint64_t timeout_ms)
{
    size_t element = netlink_nest(netlink, NFTA_LIST_ELEM);

    put_value(netlink, NFTA_SET_ELEM_KEY, address, size);
    if (timeout_ms > 0)
        netlink_put_u64(netlink, NFTA_SET_ELEM_TIMEOUT, timeout_ms);
    netlink_nest_end(netlink, element);
}

/* Begins a message on elements of a set; returns the nest of its list. */
static size_t begin_elements(struct kernel_table *table, uint8_t type, uint16_t flags,
                             const char *name)
{
    netlink_message(table->netlink, type, nf_family(table), flags);
    netlink_put_text(table->netlink, NFTA_SET_ELEM_LIST_TABLE, table->open.table);
    netlink_put_text(table->netlink, NFTA_SET_ELEM_LIST_SET, name);
    return netlink_nest(table->netlink, NFTA_SET_ELEM_LIST_ELEMENTS);
}

static void end_elements(struct kernel_table *table, size_t list)
{
    netlink_nest_end(table->netlink, list);
    netlink_end(table->netlink);
}

static void put_set(struct kernel_table *table, uint8_t family, const char *name)
{
    struct netlink *netlink = table->netlink;

    netlink_message(netlink, NFT_MSG_NEWSET, nf_family(table), NLM_F_CREATE);
    netlink_put_text(netlink, NFTA_SET_TABLE, table->open.table);
    netlink_put_text(netlink, NFTA_SET_NAME, name);
    netlink_put_u32(netlink, NFTA_SET_FLAGS, NFT_SET_TIMEOUT);
    netlink_put_u32(netlink, NFTA_SET_KEY_TYPE, family == 4 ? TYPE_IPV4_ADDR : TYPE_IPV6_ADDR);
    netlink_put_u32(netlink, NFTA_SET_KEY_LEN, (uint32_t)address_size(family));
    netlink_put_u32(netlink, NFTA_SET_ID, 1);
    netlink_end(netlink);
}

static void put_counter(struct kernel_table *table, const char *name)
{
    struct netlink *netlink = table->netlink;
    size_t data;

    netlink_message(netlink, NFT_MSG_NEWOBJ, nf_family(table), NLM_F_CREATE);
    netlink_put_text(netlink, NFTA_OBJ_TABLE, table->open.table);
    netlink_put_text(netlink, NFTA_OBJ_NAME, name);
    netlink_put_u32(netlink, NFTA_OBJ_TYPE, NFT_OBJECT_COUNTER);
    data = netlink_nest(netlink, NFTA_OBJ_DATA);
    netlink_nest_end(netlink, data);
    netlink_end(netlink);
}

/* Adds a set with its counter and rule, unless it is there. */
static void need_set(struct kernel_table *table, uint8_t set, uint8_t family, uint8_t bits)
{
    uint8_t *there = &table->sets[set][family == 6][bits];
    char name[WEIR_KERNEL_SET_NAME_MAX];
    uint8_t mark[16];
    size_t list;

    if (*there)
        return;
    *there = 1;
    weir_kernel_set_name(name, set, family, bits);
    put_counter(table, name);
    put_set(table, family, name);
    if (weir_kernel_mark(mark, family, bits)) {
        list = begin_elements(table, NFT_MSG_NEWSETELEM, NLM_F_CREATE, name);
        put_element(table->netlink, mark, address_size(family), 0);
        end_elements(table, list);
    }
    put_rule(table, set, family, bits, name);
}

static bool together(const struct weir_kernel_element *one, const struct weir_kernel_element *other)
{
    return one->set == other->set && one->family == other->family && one->bits == other->bits &&
           one->removed == other->removed;
}

static void put_elements(struct kernel_table *table, const struct weir_kernel_element *elements,
                         uint16_t count, uint8_t type, bool timeouts)
{
    char name[WEIR_KERNEL_SET_NAME_MAX];
    size_t list;

    weir_kernel_set_name(name, elements->set, elements->family, elements->bits);
    list = begin_elements(table, type, type == NFT_MSG_NEWSETELEM ? NLM_F_CREATE : 0, name);
    for (uint16_t i = 0; i < count; i++)
        put_element(table->netlink, elements[i].address, address_size(elements[i].family),
                    timeouts ? elements[i].timeout_ms : 0);
    end_elements(table, list);
}

/* Elements of one set, all put in or all taken out. */
static void put_run(struct kernel_table *table, const struct weir_kernel_element *elements,
                    uint16_t count)
{
    need_set(table, elements->set, elements->family, elements->bits);
    if (!table->building) {
        put_elements(table, elements, count, NFT_MSG_NEWSETELEM, false);
        put_elements(table, elements, count, NFT_MSG_DELSETELEM, false);
    }
    if (!elements->removed)
        put_elements(table, elements, count, NFT_MSG_NEWSETELEM, true);
}

/* --- Looks at what is there ------------------------------------------------------------------- */

struct handles {
    uint16_t type_of_handle, type_of_use;
    uint64_t handle, use;
};

static void take_handles(void *context, const uint8_t *at, const uint8_t *end)
{
    struct handles *handles = context;
    struct netlink_attribute attribute;

    if (netlink_find(at, end, handles->type_of_handle, &attribute))
        handles->handle = netlink_number(&attribute);
    if (netlink_find(at, end, handles->type_of_use, &attribute))
        handles->use = netlink_number(&attribute);
}

static int read_table(struct kernel_table *table, struct handles *handles)
{
    uint32_t failed;

    *handles = (struct handles){NFTA_TABLE_HANDLE, NFTA_TABLE_USE, 0, 0};
    netlink_begin(table->netlink);
    put_table(table, NFT_MSG_GETTABLE, nf_family(table), NLM_F_ACK, false);
    return netlink_talk(table->netlink, take_handles, handles, &failed);
}

static int read_chain(struct kernel_table *table, struct handles *handles)
{
    struct netlink *netlink = table->netlink;
    uint32_t failed;

    *handles = (struct handles){NFTA_CHAIN_HANDLE, NFTA_CHAIN_USE, 0, 0};
    netlink_begin(netlink);
    netlink_message(netlink, NFT_MSG_GETCHAIN, nf_family(table), NLM_F_ACK);
    netlink_put_text(netlink, NFTA_CHAIN_TABLE, table->open.table);
    netlink_put_text(netlink, NFTA_CHAIN_NAME, CHAIN);
    netlink_end(netlink);
    return netlink_talk(netlink, take_handles, handles, &failed);
}

static bool set_holds_mark(struct kernel_table *table, uint8_t set, uint8_t family, uint8_t bits)
{
    char name[WEIR_KERNEL_SET_NAME_MAX];
    uint8_t mark[16];
    uint32_t failed;
    size_t list;

    if (!weir_kernel_mark(mark, family, bits))
        return true;
    weir_kernel_set_name(name, set, family, bits);
    netlink_begin(table->netlink);
    list = begin_elements(table, NFT_MSG_GETSETELEM, NLM_F_ACK, name);
    put_element(table->netlink, mark, address_size(family), 0);
    end_elements(table, list);
    return netlink_talk(table->netlink, NULL, NULL, &failed) == 0;
}

bool kernel_table_holds(struct kernel_table *table)
{
    struct handles now;

    if (!table->known || table->building)
        return true;
    if (read_table(table, &now) < 0 || now.handle != table->table_handle ||
        now.use != table->table_use)
        return false;
    if (read_chain(table, &now) < 0 || now.handle != table->chain_handle ||
        now.use != table->chain_use)
        return false;
    for (unsigned i = 0; i < sizeof table->sets; i++) {
        unsigned set = i / (2 * 129), ipv6 = i / 129 % 2, bits = i % 129;

        if (table->sets[set][ipv6][bits] &&
            !set_holds_mark(table, (uint8_t)set, ipv6 ? 6 : 4, (uint8_t)bits))
            return false;
    }
    return true;
}

static void take_owner(void *context, const uint8_t *at, const uint8_t *end)
{
    bool *ours = context;
    struct netlink_attribute attribute;
    uint8_t userdata[USERDATA_SIZE];

    make_userdata(userdata);
    *ours = netlink_find(at, end, NFTA_TABLE_USERDATA, &attribute) &&
            attribute.size == sizeof userdata &&
            memcmp(attribute.data, userdata, sizeof userdata) == 0;
}

/* Returns 0 when what a transaction would replace or remove is weir's or is not there, or -EEXIST,
 * or another -errno. */
static int check_owner(struct kernel_table *table)
{
    static const uint8_t families[] = {NFPROTO_NETDEV, NFPROTO_INET};

    for (unsigned i = 0; i < sizeof families; i++) {
        bool ours = true;
        uint32_t failed;
        int err;

        netlink_begin(table->netlink);
        put_table(table, NFT_MSG_GETTABLE, families[i], NLM_F_ACK, false);
        err = netlink_talk(table->netlink, take_owner, &ours, &failed);
        if (err < 0 && err != -ENOENT)
            return err;
        if (err == 0 && !ours)
            return -EEXIST;
    }
    return 0;
}

/* Remembers what the table is known by. */
static int learn(struct kernel_table *table)
{
    struct handles of_table = {0}, of_chain = {0};
    int err = read_table(table, &of_table);

    if (err == 0)
        err = read_chain(table, &of_chain);
    table->known = err == 0;
    if (err < 0)
        return err;
    table->table_handle = of_table.handle;
    table->table_use = of_table.use;
    table->chain_handle = of_chain.handle;
    table->chain_use = of_chain.use;
    return 0;
}

/* --- Transactions ----------------------------------------------------------------------------- */

static int commit(struct kernel_table *table, bool replaced, char *text)
{
    bool more_sets = memcmp(table->sets, table->sets_before, sizeof table->sets) != 0;
    uint32_t failed;
    int err;

    netlink_end_batch(table->netlink);
    err = netlink_talk(table->netlink, NULL, NULL, &failed);
    if (err < 0) {
        const char *step = !replaced || failed > CHAIN_STEP ? "the sets"
                           : failed == CHAIN_STEP           ? "the chain; is an interface missing?"
                                                            : "the table";

        snprintf(text, WEIR_KERNEL_TEXT_MAX + 1, "%s", step);
        table->known = false;
        return err;
    }
    if (!replaced && !more_sets)
        return 0;
    err = learn(table);
    if (err < 0)
        snprintf(text, WEIR_KERNEL_TEXT_MAX + 1, "the table went at once");
    return err;
}

static int begin(struct kernel_table *table, bool replace, char *text)
{
    int err = 0;

    snprintf(text, WEIR_KERNEL_TEXT_MAX + 1, "the table is not known");
    if (table->building)
        return replace ? 0 : -EPROTO;
    if (!table->opened || (!replace && !table->known))
        return -ENOENT; /* what is there is unknown, so the sets that a change needs are, too */
    if (replace)
        err = check_owner(table);
    if (err == -EEXIST)
        snprintf(text, WEIR_KERNEL_TEXT_MAX + 1,
                 "the table: another program made %.31s; name another `table`", table->open.table);
    if (err < 0)
        return err;
    netlink_begin_batch(table->netlink);
    if (replace) {
        memset(table->sets, 0, sizeof table->sets);
        table->building = true;
        put_new_table(table);
    }
    memcpy(table->sets_before, table->sets, sizeof table->sets);
    return 0;
}

/* Takes the bans of what is protected out. To end one that is not there is no error. */
static void skip_protected(struct kernel_table *table, struct weir_kernel_message *message)
{
    uint16_t kept = 0;

    for (uint16_t i = 0; i < message->head.count; i++) {
        const struct weir_kernel_element *element = &message->elements[i];

        if (element->set == WEIR_KERNEL_BAN && !element->removed &&
            kernel_protected_overlaps(table->protected, element->family, element->bits,
                                      element->address))
            table->skipped++;
        else
            message->elements[kept++] = *element;
    }
    message->head.count = kept;
}

int kernel_table_apply(struct kernel_table *table, struct weir_kernel_message *message,
                       char text[WEIR_KERNEL_TEXT_MAX + 1])
{
    bool replace = (message->head.flags & WEIR_KERNEL_REPLACE) != 0;
    uint16_t count;
    int err;

    if (table->building && table->number != message->head.number)
        table->building = false; /* the server has given that transaction up */
    if (!table->building)
        table->skipped = 0;
    table->number = message->head.number;
    skip_protected(table, message);
    count = message->head.count;
    err = begin(table, replace, text);
    if (err < 0) {
        table->building = false;
        return err;
    }
    for (uint16_t i = 0, end; i < count; i = end) {
        for (end = (uint16_t)(i + 1); end < count; end++)
            if (!together(&message->elements[i], &message->elements[end]))
                break;
        put_run(table, &message->elements[i], (uint16_t)(end - i));
    }
    if (message->head.flags & WEIR_KERNEL_MORE)
        return 1;
    table->building = false;
    if (!replace && count == 0)
        return 0; /* kernels before 6.10 do not answer an empty transaction */
    return commit(table, replace, text);
}

int kernel_table_remove(struct kernel_table *table)
{
    uint32_t failed;
    int err = check_owner(table);

    table->known = table->building = false;
    if (err < 0)
        return err;
    netlink_begin_batch(table->netlink);
    put_no_table(table);
    netlink_end_batch(table->netlink);
    return netlink_talk(table->netlink, NULL, NULL, &failed);
}

/* --- Counters --------------------------------------------------------------------------------- */

static bool read_set_name(const struct netlink_attribute *name, struct weir_kernel_counter *counter)
{
    char text[WEIR_KERNEL_SET_NAME_MAX] = "", again[WEIR_KERNEL_SET_NAME_MAX];
    const char *family;

    if (name->size == 0 || name->size > sizeof text)
        return false;
    memcpy(text, name->data, name->size);
    text[sizeof text - 1] = '\0';
    counter->set = text[0] == 'b' ? WEIR_KERNEL_BAN : WEIR_KERNEL_ALLOW;
    family = text + (counter->set == WEIR_KERNEL_BAN ? strlen("ban") : strlen("allow"));
    if ((*family != '4' && *family != '6') || family[1] != '_')
        return false;
    counter->family = (uint8_t)(*family - '0');
    counter->bits = (uint8_t)strtoul(family + 2, NULL, 10);
    weir_kernel_set_name(again, counter->set, counter->family, counter->bits);
    return strcmp(text, again) == 0 && counter->bits <= (counter->family == 4 ? 32 : 128);
}

static void take_counter(void *context, const uint8_t *at, const uint8_t *end)
{
    struct weir_kernel_message *message = context;
    struct weir_kernel_counter counter = {0};
    struct netlink_attribute name, data, number;

    if (message->head.count == WEIR_KERNEL_SETS_MAX ||
        !netlink_find(at, end, NFTA_OBJ_NAME, &name) || !read_set_name(&name, &counter) ||
        !netlink_find(at, end, NFTA_OBJ_DATA, &data))
        return;
    if (netlink_find(data.data, data.data + data.size, NFTA_COUNTER_PACKETS, &number))
        counter.packets = netlink_number(&number);
    if (netlink_find(data.data, data.data + data.size, NFTA_COUNTER_BYTES, &number))
        counter.bytes = netlink_number(&number);
    message->counters[message->head.count++] = counter;
}

static int read_counters(struct kernel_table *table, struct weir_kernel_message *message)
{
    struct netlink *netlink = table->netlink;
    uint32_t failed;

    weir_kernel_message_begin(message, WEIR_KERNEL_COUNTS);
    netlink_begin(netlink);
    netlink_message(netlink, NFT_MSG_GETOBJ, nf_family(table), NLM_F_DUMP);
    netlink_put_text(netlink, NFTA_OBJ_TABLE, table->open.table);
    netlink_put_u32(netlink, NFTA_OBJ_TYPE, NFT_OBJECT_COUNTER);
    netlink_end(netlink);
    return netlink_talk(netlink, take_counter, message, &failed);
}

int kernel_table_counts(struct kernel_table *table, struct weir_kernel_message *message)
{
    int err = -EAGAIN;

    weir_kernel_message_begin(message, WEIR_KERNEL_COUNTS);
    if (!table->known || table->building)
        return 0;
    for (int i = 0; i < NETLINK_TRIES && err == -EAGAIN; i++)
        err = read_counters(table, message);
    return err;
}
