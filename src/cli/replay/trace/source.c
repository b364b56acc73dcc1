/* SPDX-License-Identifier: Apache-2.0 */
/* see source.h */
#include "cli/replay/trace/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/replay/trace/detect.h"
#include "server/text/durations.h"

#define READ_BYTES ((size_t)1 << 18)
#define ROOM_MIN (2 * READ_BYTES)
#define REASONS_MAX 10 /* as many as lines.c reports */
#define NO_REASON UINT8_MAX
#define NS_PER_S UINT64_C(1000000000)

/* A line that was parsed. 200 bytes. */
struct entry {
    struct weir_log_record record;
    struct weir_bytes line; /* as it was read */
    uint64_t number;
    uint8_t kind, reason; /* reason: of `reasons`, or NO_REASON */
    bool joined;          /* of parts: the next line of parts will overwrite it */
};

struct text_line {
    char *text;
    size_t size;
    bool too_long, joined;
    const char *start; /* of the line that it came in */
};

/* The parts of a line of a container so far. */
struct parts {
    char *text;
    size_t size, room;
    bool open, too_long;
};

struct replay_source {
    struct replay_input *input;
    struct replay_file file;
    bool disorder;
    /* room[pin..start) holds the lines of the entries, room[start..end) was read and not looked at
     */
    char *room;
    size_t room_size, pin, start, end;
    bool at_eof, skipping; /* skipping: what is left of a line that is too long */
    uint64_t number;
    struct weir_log_room parser;
    /* entries[0..batch) are of one second, entries[batch..count) are parsed too */
    struct entry *entries;
    uint32_t count, entry_room, batch, given, place, of;
    uint64_t second_ns, last_ns; /* last_ns: of what was given last */
    uint64_t latest_ns, latest_number;
    struct parts parts[2];
    struct text_line waiting; /* a line of parts, until the entries before it are given */
    bool waits;
    struct weir_reason reasons[REASONS_MAX];
    uint8_t reason_count;
};

static int no_memory(struct weir_reason *reason)
{
    snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(WEIR_ERR_MEMORY));
    return -1;
}

/* --- Bytes ------------------------------------------------------------------------------------ */

static void move_text(struct weir_bytes *text, const char *from, size_t size, const char *to)
{
    if (text->data >= from && text->data < from + size) /* else NULL, or a text of the program's */
        text->data = to + (text->data - from);
}

/* The lines of the entries have moved. */
static void move_entries(struct replay_source *source, const char *from, size_t size,
                         const char *to)
{
    for (uint32_t i = 0; i < source->count; i++) {
        struct entry *entry = &source->entries[i];
        struct weir_log_record *record = &entry->record;
        move_text(&entry->line, from, size, to);
        if (entry->kind != REPLAY_REQUEST) /* it has no record */
            continue;
        struct weir_bytes *texts[] = {&record->client,  &record->forwarded, &record->user,
                                      &record->method,  &record->target,    &record->host,
                                      &record->referer, &record->agent};
        for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++)
            move_text(texts[t], from, size, to);
    }
}

/* Makes room for a read: moves what is kept to the front, into more room where that is too little.
 */
static int make_room(struct replay_source *source)
{
    size_t kept = source->end - source->pin;
    char *from = source->room + source->pin, *to = source->room;
    if (source->room_size - source->end >= READ_BYTES)
        return 0;
    if (source->room_size - kept < READ_BYTES) {
        size_t more = 2 * source->room_size;
        to = malloc(more);
        if (!to)
            return WEIR_ERR_MEMORY;
        source->room_size = more;
    }
    if (kept > 0)
        memmove(to, from, kept);
    move_entries(source, from, kept, to);
    if (to != source->room)
        free(source->room);
    source->room = to;
    source->start -= source->pin;
    source->end = kept;
    source->pin = 0;
    return 0;
}

/* Reads more behind what is there. */
static int fill(struct replay_source *source, struct weir_reason *reason)
{
    if (make_room(source) < 0)
        return no_memory(reason);
    ssize_t got = replay_input_read(source->input, source->room + source->end,
                                    source->room_size - source->end, reason);
    if (got < 0)
        return -1;
    source->at_eof = got == 0;
    source->end += (size_t)got;
    return 0;
}

/* Forgets a line that is too long, as far as it was read. */
static void skip_long_line(struct replay_source *source)
{
    source->skipping = true;
    source->start = source->end;
    if (source->count == 0)
        source->pin = source->start;
}

/* --- Lines ------------------------------------------------------------------------------------ */

/* Takes room[start..start+size), which `skip` more bytes end. False: it is blank. */
static bool take_line(struct replay_source *source, size_t size, size_t skip,
                      struct text_line *line)
{
    char *text = source->room + source->start;
    source->start += size + skip;
    source->number++;
    if (size > 0 && text[size - 1] == '\r')
        size--;
    bool too_long = source->skipping || size > REPLAY_LINE_MAX;
    source->skipping = false;
    if (!too_long && replay_is_blank(text, size))
        return false;
    *line = (struct text_line){text, too_long ? 0 : size, too_long, false, text};
    return true;
}

/* The next line that is not blank: 1, 0 at the end, -1. */
static int next_line(struct replay_source *source, struct text_line *line,
                     struct weir_reason *reason)
{
    for (;;) {
        char *from = source->room + source->start;
        size_t size = source->end - source->start;
        char *newline = size > 0 ? memchr(from, '\n', size) : NULL;
        if (newline) {
            if (take_line(source, (size_t)(newline - from), 1, line))
                return 1;
            continue;
        }
        if (source->at_eof) {
            if (size == 0 && !source->skipping)
                return 0;
            if (take_line(source, size, 0, line))
                return 1;
            continue;
        }
        if (size > REPLAY_LINE_MAX)
            skip_long_line(source);
        if (fill(source, reason) < 0)
            return -1;
    }
}

/* --- Containers ------------------------------------------------------------------------------- */

/* Adds a piece to the parts of its stream's line. Of a line that is too long nothing is kept. */
static int add_part(struct parts *parts, const struct weir_log_piece *piece)
{
    parts->open = piece->goes_on;
    parts->too_long |= piece->size > REPLAY_LINE_MAX - parts->size;
    if (parts->too_long || piece->size == 0)
        return 0;
    if (parts->room - parts->size < piece->size) {
        size_t room = 2 * (parts->size + piece->size);
        char *text = realloc(parts->text, room);
        if (!text)
            return WEIR_ERR_MEMORY;
        parts->text = text;
        parts->room = room;
    }
    memcpy(parts->text + parts->size, piece->text, piece->size);
    parts->size += piece->size;
    return 0;
}

/* What a container's line holds. 1: *line is the program's; 0: a part of one, or nothing; else an
 * error. A line of parts is in `whole`. */
static int unwrap(struct replay_source *source, struct text_line *line, bool *bad)
{
    struct weir_log_piece piece;
    *bad =
        !line->too_long && !weir_log_unwrap(source->file.envelope, line->text, line->size, &piece);
    if (*bad || line->too_long)
        return 1;
    struct parts *parts = &source->parts[piece.is_error];
    if (!parts->open && !piece.goes_on) {
        line->text = piece.text;
        line->size = piece.size;
        return !replay_is_blank(piece.text, piece.size);
    }
    if (!parts->open) {
        parts->size = 0;
        parts->too_long = false;
    }
    if (add_part(parts, &piece) < 0)
        return WEIR_ERR_MEMORY;
    if (parts->open)
        return 0;
    *line = (struct text_line){parts->text, parts->too_long ? 0 : parts->size, parts->too_long,
                               true, parts->text};
    return 1;
}

/* --- Entries ---------------------------------------------------------------------------------- */

static struct entry *new_entry(struct replay_source *source)
{
    if (source->count == source->entry_room) {
        uint32_t room = source->entry_room > 0 ? 2 * source->entry_room : 64;
        struct entry *entries = realloc(source->entries, room * sizeof *entries);
        if (!entries)
            return NULL;
        source->entries = entries;
        source->entry_room = room;
    }
    return &source->entries[source->count++];
}

static void set_bad(struct replay_source *source, struct entry *entry, const char *text)
{
    entry->kind = REPLAY_BAD;
    entry->reason = NO_REASON;
    if (source->reason_count == REASONS_MAX)
        return;
    entry->reason = source->reason_count++;
    snprintf(source->reasons[entry->reason].text, sizeof source->reasons[0].text, "%s", text);
}

/* Whether the request stands far below one that was written later. Notes what it is behind. */
static bool is_disorder(struct replay_source *source, const struct entry *entry)
{
    uint64_t written_ns = entry->record.written_ns;
    if (written_ns >= source->latest_ns) {
        source->latest_ns = written_ns;
        source->latest_number = entry->number;
        return false;
    }
    uint64_t behind_ns = source->latest_ns - written_ns;
    source->file.behind++;
    if (behind_ns > source->file.behind_ns)
        source->file.behind_ns = behind_ns;
    return behind_ns > REPLAY_DISORDER_NS && !source->disorder;
}

static int refuse_disorder(const struct replay_source *source, const struct entry *entry,
                           struct weir_reason *reason)
{
    char behind[WEIR_DURATION_MAX];
    snprintf(reason->text, sizeof reason->text,
             "line %llu was written %s before line %llu: its lines are not in the order of time. "
             "Sort it, or give --allow-disorder",
             (unsigned long long)entry->number,
             weir_duration(behind, (source->latest_ns - entry->record.written_ns) / 1000000),
             (unsigned long long)source->latest_number);
    return -1;
}

/* Parses a line into a new entry. */
static int parse(struct replay_source *source, const struct text_line *line, const char *bad,
                 struct weir_reason *reason)
{
    struct entry *entry = new_entry(source);
    struct weir_reason wrong;
    if (!entry)
        return no_memory(reason);
    entry->number = source->number;
    entry->joined = line->joined;
    entry->line = (struct weir_bytes){line->start, line->size};
    source->file.lines++;
    if (bad || line->too_long) {
        set_bad(source, entry, bad ? bad : "line: longer than 1 MiB");
        return 0;
    }
    int got = weir_log_parse((enum weir_log_format)source->file.format, &entry->record, line->text,
                             line->size, &source->parser, &wrong);
    if (got < 0) {
        set_bad(source, entry, wrong.text);
        return 0;
    }
    entry->kind = got == WEIR_LOG_OTHER ? REPLAY_OTHER : REPLAY_REQUEST;
    source->file.others += entry->kind == REPLAY_OTHER;
    source->file.requests += entry->kind == REPLAY_REQUEST;
    if (entry->kind == REPLAY_REQUEST && is_disorder(source, entry))
        return refuse_disorder(source, entry, reason);
    return 0;
}

/* Of a line whose last part is missing. Returns whether there was one. */
static bool take_open_parts(struct replay_source *source, struct text_line *line)
{
    for (int i = 0; i < 2; i++) {
        if (!source->parts[i].open)
            continue;
        source->parts[i].open = false;
        *line = (struct text_line){.start = source->room + source->start};
        return true;
    }
    return false;
}

/* The next line of the program. 1, 0 at the end, -1; *wrong: what is wrong with it, or NULL. */
static int next_program_line(struct replay_source *source, struct text_line *line,
                             const char **wrong, struct weir_reason *reason)
{
    for (;;) {
        bool bad = false;
        int got = next_line(source, line, reason);
        *wrong = NULL;
        if (got == 0 && take_open_parts(source, line)) {
            *wrong = "line: the container's log ends before its last part";
            return 1;
        }
        if (got <= 0 || source->file.envelope == WEIR_LOG_PLAIN)
            return got;
        got = unwrap(source, line, &bad);
        if (got < 0)
            return no_memory(reason);
        if (bad)
            *wrong = "line: without the container's envelope that the first lines have";
        if (got > 0)
            return 1;
    }
}

/* Reads one line into an entry. 1, 0: there is none, or it has to wait until the entries before it
 * are given; -1. */
static int read_entry(struct replay_source *source, struct weir_reason *reason)
{
    struct text_line line = source->waiting;
    const char *wrong = NULL;
    if (!source->waits) {
        int got = next_program_line(source, &line, &wrong, reason);
        if (got <= 0)
            return got;
        if (line.joined && source->count > 0) {
            source->waiting = line;
            source->waits = true;
            return 0;
        }
    }
    source->waits = false;
    return parse(source, &line, wrong, reason) < 0 ? -1 : 1;
}

/* --- Seconds ---------------------------------------------------------------------------------- */

/* Whether a new entry, the last one, ends the second at hand: -1 before itself, 1 behind itself. */
static int ends_second(struct replay_source *source)
{
    const struct entry *entry = &source->entries[source->count - 1];
    if (entry->kind != REPLAY_REQUEST)
        return entry->joined;
    if (!entry->record.whole_second) /* its time is its own, and the next parse may change it */
        return 1;
    if (source->of > 0 && entry->record.t_ns != source->second_ns)
        return -1;
    source->second_ns = entry->record.t_ns;
    source->of++;
    bool full = source->of == SECOND_LINES_MAX || source->start - source->pin > SECOND_BYTES_MAX;
    return full || entry->joined;
}

/* Forgets the entries that were given, and begins with what was parsed beyond them. */
static void begin_second(struct replay_source *source)
{
    uint32_t left = source->count - source->batch;
    if (left > 0) /* one, of the next second */
        source->entries[0] = source->entries[source->batch];
    source->count = left;
    source->given = source->place = source->of = 0;
    source->batch = left;
    source->pin = left > 0 ? (size_t)(source->entries[0].line.data - source->room) : source->start;
}

/* Reads the entries of one second. 1, 0: there are none, -1. */
static int read_second(struct replay_source *source, struct weir_reason *reason)
{
    begin_second(source);
    int end = source->count > 0 ? ends_second(source) : 0;
    while (end == 0) {
        int got = read_entry(source, reason);
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        end = ends_second(source);
    }
    source->batch = end < 0 ? source->count - 1 : source->count;
    return source->batch > 0;
}

int replay_source_next(struct replay_source *source, struct replay_line *line,
                       struct weir_reason *reason)
{
    if (source->given == source->batch) {
        int got = read_second(source, reason);
        if (got <= 0)
            return got;
    }
    const struct entry *entry = &source->entries[source->given++];
    if (entry->kind == REPLAY_REQUEST) {
        source->last_ns = entry->record.t_ns;
        if (entry->record.whole_second)
            source->last_ns += source->place++ * NS_PER_S / source->of;
    }
    *line = (struct replay_line){
        .kind = (enum replay_line_kind)entry->kind,
        .record = &entry->record,
        .t_ns = source->last_ns,
        .reason = entry->kind == REPLAY_BAD && entry->reason != NO_REASON
                      ? source->reasons[entry->reason].text
                      : NULL,
        .file = source->file.name,
        .number = entry->number,
    };
    return 1;
}

/* --- Opening ---------------------------------------------------------------------------------- */

static void skip_byte_order_mark(struct replay_source *source)
{
    static const char mark[] = "\xef\xbb\xbf";
    if (source->end - source->start >= 3 && memcmp(source->room + source->start, mark, 3) == 0)
        source->start = source->pin = source->start + 3;
}

/* Passes over blank lines before the first one, so that they cannot fill the memory. */
static void skip_blank_lines(struct replay_source *source)
{
    char *newline, *from = source->room + source->start;
    while (!source->skipping && source->end > source->start &&
           (newline = memchr(from, '\n', source->end - source->start)) &&
           replay_is_blank(from, (size_t)(newline - from))) {
        source->number++;
        source->start = source->pin = (size_t)(newline + 1 - source->room);
        from = newline + 1;
    }
}

/* Reads until what there is tells the format, or cannot tell more. */
static int detect(struct replay_source *source, int format, struct weir_reason *reason)
{
    size_t wanted = REPLAY_DETECT_LINES;
    bool marked = false;
    for (;;) {
        if (fill(source, reason) < 0)
            return -1;
        if (!marked && (source->end >= 3 || source->at_eof)) {
            skip_byte_order_mark(source);
            marked = true;
        }
        skip_blank_lines(source);
        char *text = source->room + source->start;
        size_t size = source->end - source->start;
        struct replay_sample sample =
            replay_sample_of(text, size, source->skipping, source->at_eof);
        if (sample.lines == 0 && !source->at_eof) {
            if (size > REPLAY_LINE_MAX)
                skip_long_line(source);
            continue;
        }
        if (sample.lines < wanted && size < REPLAY_DETECT_BYTES && !source->at_eof)
            continue;
        int got = replay_detect(&source->file, &sample, format, &source->parser, reason);
        if (got != 0 || source->at_eof || size >= REPLAY_DETECT_BYTES)
            return got < 0 ? got : replay_detect_guess(&source->file, &sample, reason);
        wanted = 2 * sample.lines;
    }
}

struct replay_source *replay_source_open(const char *path, int format, bool disorder,
                                         struct weir_reason *reason)
{
    struct replay_source *source = calloc(1, sizeof *source);
    if (!source || !(source->room = malloc(ROOM_MIN))) {
        free(source);
        (void)no_memory(reason);
        return NULL;
    }
    source->room_size = ROOM_MIN;
    source->disorder = disorder;
    source->file.name = strcmp(path, "-") == 0 ? "(standard input)" : path;
    source->file.format = -1;
    source->input = replay_input_open(path, reason);
    if (source->input)
        source->file.packing = replay_input_packing(source->input);
    if (!source->input || detect(source, format, reason) < 0) {
        replay_source_close(source);
        return NULL;
    }
    return source;
}

void replay_source_close(struct replay_source *source)
{
    if (!source)
        return;
    replay_input_close(source->input);
    for (int i = 0; i < 2; i++)
        free(source->parts[i].text);
    free(source->entries);
    free(source->room);
    free(source);
}

const struct replay_file *replay_source_file(const struct replay_source *source)
{
    return &source->file;
}

uint64_t replay_source_taken(const struct replay_source *source)
{
    return replay_input_taken(source->input);
}

bool replay_source_is_file(const struct replay_source *source)
{
    return replay_input_is_file(source->input);
}
