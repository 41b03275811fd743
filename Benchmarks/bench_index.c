/*
 * Compares indexes with SQLite's indexes on expressions over the same JSON, in one process. Queries from C return ids alone.
 *
 *     bench_index [--quick] [--n <values>] [--words] <folder>
 *
 * Uses 100,000 documents of about 300 bytes, or with --quick 5,000. Most of a document are random letters, which are stored uncompressed,
 * or, with --words, a few repeated words, which are compressed. Prints the medians of 11 alternating turns, and their ratio. For the
 * library alone, since SQLite cannot do this, it also prints the median of 1,000 queries, each after one changed value, and the time of the
 * first query 1,000 versions back. Beside the elapsed time it prints the processor time, which says more if other programs use the machine.
 * SQLite has 64 MiB of pages in memory, like the library by default. Works in <folder>/bench_index.llvs and bench_index.sqlite, which it
 * removes.
 */
#define _DEFAULT_SOURCE
#include <llvs.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "data.h"
#include "ours.h"
#include "process.h"
#include "workload.h"

enum { TURNS = 11, VALUE_SIZE = 300, NOTE_SIZE = 190, QUESTIONS = 1000, PAGE = 100, CHANGES = 1000, FAR_TURNS = 5 };

typedef struct sides {
    llvs_store *store;
    llvs_index *index;
    llvs_version_id first, head;
    sqlite3 *database;
    const char *path, *file;
    char *ids;
    char (*names)[5];
    size_t count;
    /* A sum over the results, so that the compiler leaves nothing out. */
    unsigned long long seen;
} sides;

/* The processor time of all threads of this process, in seconds. */
static double processor_time(void) {
    struct timespec at;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static void run(sides *sides, const char *text) {
    if (sqlite3_exec(sides->database, text, NULL, NULL, NULL) != SQLITE_OK) fail("%s: %s", text, sqlite3_errmsg(sides->database));
}

static sqlite3_stmt *prepare(sides *sides, const char *text) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(sides->database, text, -1, &statement, NULL) != SQLITE_OK) fail("%s", sqlite3_errmsg(sides->database));
    return statement;
}

static void letters(char *text, size_t size, uint64_t *state) {
    size_t i;
    for (i = 0; i < size; i++) text[i] = (char)('a' + draw(state) % 26);
}

/* Whether notes are words. */
static int has_words;

static void words(char *text, size_t size, uint64_t *state) {
    static const char *const all[] = { "walk ", "lake ", "rain ", "bread ", "milk ", "letter ", "garden ", "window ", "morning ",
        "evening ", "yesterday ", "tomorrow ", "remember ", "perhaps ", "between ", "nothing " };
    size_t at = 0;
    while (at < size) {
        const char *word = all[draw(state) % (sizeof all / sizeof *all)];
        while (*word && at < size) text[at++] = *word++;
    }
}

/* Writes the document with that number. */
static size_t document(char *data, size_t room, const char *name, size_t number, uint64_t *state) {
    char first[9] = "", note[NOTE_SIZE + 1] = "";
    letters(first, 8, state);
    (has_words ? words : letters)(note, NOTE_SIZE, state);
    return (size_t)snprintf(data, room,
        "{\"lastName\":\"%s\",\"firstName\":\"%s\",\"born\":%d,\"number\":%zu,\"note\":\"%s\",\"done\":false}", name, first,
        1900 + (int)(draw(state) % 120), number, note);
}

static void make_both(sides *sides) {
    llvs_change *changes = calloc(sides->count, sizeof *changes);
    char (*data)[VALUE_SIZE + 1] = calloc(sides->count, sizeof *data);
    uint64_t state = 1;
    sqlite3_stmt *insert;
    llvs_error *error;
    size_t i;
    if (!changes || !data) fail("no memory");
    if (sqlite3_open(sides->file, &sides->database) != SQLITE_OK) fail("SQLite does not open");
    run(sides, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -65536; PRAGMA mmap_size = 67108864");
    run(sides, "CREATE TABLE v(id TEXT PRIMARY KEY, data TEXT) WITHOUT ROWID; BEGIN");
    insert = prepare(sides, "INSERT INTO v VALUES (?, ?)");
    for (i = 0; i < sides->count; i++) {
        size_t size;
        letters(sides->names[i], 4, &state);
        size = document(data[i], sizeof data[i], sides->names[i], i, &state);
        changes[i].kind = LLVS_CHANGE_INSERT;
        changes[i].id = llvs_str(data_id(sides->ids, i));
        changes[i].data = llvs_bytes_make(data[i], size);
        sqlite3_bind_text(insert, 1, data_id(sides->ids, i), -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 2, data[i], (int)size, SQLITE_STATIC);
        if (sqlite3_step(insert) != SQLITE_DONE) fail("%s", sqlite3_errmsg(sides->database));
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    run(sides, "COMMIT");
    must(llvs_store_open(llvs_str(sides->path), NULL, &sides->store, &error), error);
    must(llvs_store_make_version(sides->store, LLVS_NONE, changes, sides->count, sizeof *changes, NULL, &sides->first, NULL, &error),
        error);
    sides->head = sides->first;
    must(llvs_store_close(sides->store, &error), error);
    llvs_store_free(sides->store);
    free(changes);
    free(data);
}

/* One page of ids. */
static size_t find(sides *sides, const llvs_index_question *question) {
    llvs_index_page *page;
    llvs_error *error;
    size_t rows;
    must(llvs_index_find(sides->index, llvs_id(&sides->head), question, NULL, &page, &error), error);
    rows = page->count;
    if (rows) sides->seen += page->ids.data[0];
    llvs_index_page_free(page);
    return rows;
}

static size_t ask(sides *sides, sqlite3_stmt *statement) {
    size_t rows = 0;
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        sides->seen += sqlite3_column_text(statement, 0)[0];
        rows++;
    }
    if (code != SQLITE_DONE) fail("%s", sqlite3_errmsg(sides->database));
    sqlite3_reset(statement);
    return rows;
}

static void open_ours(sides *sides, int read_only) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_index_options index = LLVS_INDEX_OPTIONS_INIT;
    llvs_range range = LLVS_RANGE_INIT;
    llvs_value_block *block;
    llvs_error *error;
    /* A store that is opened for reading caches nothing on disk. */
    options.read_only = (llvs_bool)read_only;
    must(llvs_store_open(llvs_str(sides->path), &options, &sides->store, &error), error);
    range.without_data = 1;
    must(llvs_store_enumerate_block(sides->store, llvs_id(&sides->head), &range, &block, &error), error);
    llvs_value_block_free(block);
    index.definition = llvs_str("{\"prefix\":\"contact/\",\"on\":[\"/lastName\",\"/firstName\"]}");
    must(llvs_index_open(sides->store, &index, &sides->index, &error), error);
}
static void close_ours(sides *sides) {
    llvs_error *error;
    llvs_index_free(sides->index);
    must(llvs_store_close(sides->store, &error), error);
    llvs_store_free(sides->store);
}

static size_t make_ours(sides *sides) {
    llvs_index_question question = LLVS_INDEX_QUESTION_INIT;
    question.limit = 1;
    return find(sides, &question);
}
static size_t make_theirs(sides *sides) {
    run(sides, "CREATE INDEX n ON v(data->>'$.lastName', data->>'$.firstName')");
    return 1;
}

static size_t equal_ours(sides *sides) {
    llvs_index_question question = LLVS_INDEX_QUESTION_INIT;
    size_t i, rows = 0;
    char text[16];
    question.limit = PAGE;
    for (i = 0; i < QUESTIONS; i++) {
        snprintf(text, sizeof text, "[\"%s\"]", sides->names[i * 7919 % sides->count]);
        question.equal = llvs_str(text);
        rows += find(sides, &question);
    }
    return rows;
}
static size_t equal_theirs(sides *sides) {
    sqlite3_stmt *statement = prepare(sides, "SELECT id FROM v WHERE data->>'$.lastName' = ? LIMIT 100");
    size_t i, rows = 0;
    for (i = 0; i < QUESTIONS; i++) {
        sqlite3_bind_text(statement, 1, sides->names[i * 7919 % sides->count], 4, SQLITE_STATIC);
        rows += ask(sides, statement);
    }
    sqlite3_finalize(statement);
    return rows;
}

static size_t range_ours(sides *sides) {
    llvs_index_question question = LLVS_INDEX_QUESTION_INIT;
    size_t i, rows = 0;
    char text[16];
    question.limit = PAGE;
    question.high = llvs_str("[\"zzzzz\"]");
    for (i = 0; i < QUESTIONS; i++) {
        snprintf(text, sizeof text, "[\"%s\"]", sides->names[i * 7919 % sides->count]);
        question.low = llvs_str(text);
        rows += find(sides, &question);
    }
    return rows;
}
static size_t range_theirs(sides *sides) {
    sqlite3_stmt *statement = prepare(sides, "SELECT id FROM v WHERE data->>'$.lastName' BETWEEN ? AND 'zzzzz'"
                                             " ORDER BY data->>'$.lastName', data->>'$.firstName' LIMIT 100");
    size_t i, rows = 0;
    for (i = 0; i < QUESTIONS; i++) {
        sqlite3_bind_text(statement, 1, sides->names[i * 7919 % sides->count], 4, SQLITE_STATIC);
        rows += ask(sides, statement);
    }
    sqlite3_finalize(statement);
    return rows;
}

static const struct {
    const char *name;
    size_t (*ours)(sides *);
    size_t (*theirs)(sides *);
    double goal; /* of the ratio */
} questions[] = {
    { "an index is made", make_ours, make_theirs, 1.0 },
    { "1,000 pages of 100 by equality", equal_ours, equal_theirs, 1.5 },
    { "1,000 pages of 100 by range", range_ours, range_theirs, 1.5 },
};

static void measure(sides *sides, size_t question) {
    double here[TURNS], there[TURNS], worked[TURNS], theirs[TURNS];
    int turn, makes = questions[question].ours == make_ours;
    for (turn = 0; turn < TURNS; turn++) {
        double begun;
        size_t rows;
        if (makes && turn) {
            close_ours(sides);
            open_ours(sides, 1);
            run(sides, "DROP INDEX n");
        }
        begun = now();
        worked[turn] = -processor_time();
        rows = questions[question].ours(sides);
        here[turn] = now() - begun;
        worked[turn] += processor_time();
        begun = now();
        theirs[turn] = -processor_time();
        if (questions[question].theirs(sides) != rows) fail("%s: not the same rows", questions[question].name);
        there[turn] = now() - begun;
        theirs[turn] += processor_time();
    }
    printf("%-38s ours %9.2f ms   SQLite %9.2f ms   ratio %5.2f   (at most %.1f)   processor %9.2f ms %9.2f ms %5.2f\n",
        questions[question].name, median(here, TURNS) * 1e3, median(there, TURNS) * 1e3, median(here, TURNS) / median(there, TURNS),
        questions[question].goal, median(worked, TURNS) * 1e3, median(theirs, TURNS) * 1e3, median(worked, TURNS) / median(theirs, TURNS));
}

/* Changes one value and queries again; then makes the first query at the version before all of these changes. */
static void measure_versions(sides *sides) {
    static double passed[CHANGES], worked[CHANGES];
    llvs_index_question question = LLVS_INDEX_QUESTION_INIT;
    uint64_t state = 2;
    size_t i;
    open_ours(sides, 0);
    question.limit = 1;
    question.equal = llvs_str("[\"zzzz\"]");
    find(sides, &question);
    for (i = 0; i < CHANGES; i++) {
        char data[VALUE_SIZE + 1], name[5] = "";
        llvs_change change = LLVS_CHANGE_INIT;
        llvs_error *error;
        llvs_range range = LLVS_RANGE_INIT;
        llvs_value_block *block;
        letters(name, 4, &state);
        change.kind = LLVS_CHANGE_UPDATE;
        change.id = llvs_str(data_id(sides->ids, draw(&state) % sides->count));
        change.data = llvs_bytes_make(data, document(data, sizeof data, name, i, &state));
        must(llvs_store_make_version(sides->store, llvs_id(&sides->head), &change, 1, sizeof change, NULL, &sides->head, NULL, &error),
            error);
        /* Build the map of the version before the clock starts. */
        range.limit = 1;
        must(llvs_store_enumerate_block(sides->store, llvs_id(&sides->head), &range, &block, &error), error);
        llvs_value_block_free(block);
        passed[i] = -now();
        worked[i] = -processor_time();
        find(sides, &question);
        passed[i] += now();
        worked[i] += processor_time();
    }
    close_ours(sides);
    printf("%-38s ours %9.3f ms   processor %6.3f ms   (at most 0.3 ms)\n", "one value changed, and asked again",
        median(passed, CHANGES) * 1e3, median(worked, CHANGES) * 1e3);
    for (i = 0; i < FAR_TURNS; i++) {
        llvs_version_id head = sides->head;
        open_ours(sides, 1);
        find(sides, &question);
        sides->head = sides->first;
        passed[i] = -now();
        worked[i] = -processor_time();
        find(sides, &question);
        passed[i] += now();
        worked[i] += processor_time();
        sides->head = head;
        close_ours(sides);
    }
    printf("%-38s ours %9.3f ms   processor %6.3f ms   (at most 5 ms)\n", "1,000 versions back, the first time",
        median(passed, FAR_TURNS) * 1e3, median(worked, FAR_TURNS) * 1e3);
}

int main(int count, char **arguments) {
    const char *parent = NULL;
    char path[3000], file[3000], *absolute;
    sides sides = { 0 };
    size_t i;
    int at;
    sides.count = 100000;
    for (at = 1; at < count; at++) {
        if (strcmp(arguments[at], "--quick") == 0) sides.count = 5000;
        else if (strcmp(arguments[at], "--words") == 0) has_words = 1;
        else if (strcmp(arguments[at], "--n") == 0 && at + 1 < count) sides.count = (size_t)strtoull(arguments[++at], NULL, 10);
        else parent = arguments[at];
    }
    if (!parent || sides.count == 0) fail("usage: bench_index [--quick] [--n <values>] [--words] <folder>");
    absolute = absolute_path(parent);
    snprintf(path, sizeof path, "%s/bench_index.llvs", absolute);
    snprintf(file, sizeof file, "%s/bench_index.sqlite", absolute);
    free(absolute);
    remove_folder(path);
    unlink(file);
    sides.path = path;
    sides.file = file;
    sides.ids = data_ids(sides.count, "contact/");
    sides.names = calloc(sides.count, sizeof *sides.names);
    if (!sides.names) fail("no memory");
    make_both(&sides);
    open_ours(&sides, 1);
    for (i = 0; i < sizeof questions / sizeof *questions; i++) measure(&sides, i);
    close_ours(&sides);
    measure_versions(&sides);
    sqlite3_close(sides.database);
    remove_folder(path);
    unlink(file);
    free(sides.ids);
    free(sides.names);
    return sides.seen == 0;
}
