/* Reads the matches of an index, page by page. */
#include "extension.h"

static int argument_text(cursor *cursor, int column, const char *what, llvs_bytes *text) {
    sqlite3_value *given = cursor->arguments[column];
    *text = LLVS_NONE;
    if (!given) return SQLITE_OK;
    if (sqlite3_value_type(given) != SQLITE_TEXT) return cursor_fail(cursor, SQLITE_ERROR, sqlite3_mprintf("%s", what));
    text->data = sqlite3_value_text(given);
    text->size = (size_t)sqlite3_value_bytes(given);
    if (!text->data) return SQLITE_NOMEM;
    /* To the library an empty text means "not given". */
    if (text->size == 0 && column != VALUES_BEGINS)
        return cursor_fail(cursor, SQLITE_ERROR, sqlite3_mprintf("%s", what));
    return SQLITE_OK;
}

static int arguments(cursor *cursor, llvs_index_options *options, llvs_index_question *question) {
    const struct {
        int column;
        const char *what;
        llvs_bytes *text;
    } all[] = {
        { VALUES_INDEX, "index_name is the name of an index, as text", &options->name },
        { VALUES_FIND, "find is the first parts of a key as a JSON array: json_array('Smith')", &question->equal },
        { VALUES_BEGINS, "begins is what the next part begins with, as text", &question->begin },
        { VALUES_LOW, "low is a bound as a JSON array: json_array(5)", &question->low },
        { VALUES_HIGH, "high is a bound as a JSON array: json_array(5)", &question->high },
    };
    int code = SQLITE_OK;
    size_t i;
    for (i = 0; i < sizeof all / sizeof *all && code == SQLITE_OK; i++)
        code = argument_text(cursor, all[i].column, all[i].what, all[i].text);
    question->has_begin = cursor->arguments[VALUES_BEGINS] != NULL;
    return code;
}

int search_begin(cursor *cursor, const llvs_version_id *at, search **result) {
    static const llvs_index_question question = LLVS_INDEX_QUESTION_INIT;
    llvs_index_options options = LLVS_INDEX_OPTIONS_INIT;
    llvs_error *error;
    llvs_status status;
    search *made;
    int code, i;
    *result = NULL;
    if (!cursor->arguments[VALUES_INDEX]) {
        for (i = VALUES_FIND; i <= VALUES_HIGH; i++) {
            if (!cursor->arguments[i]) continue;
            return cursor_fail(cursor, SQLITE_ERROR, sqlite3_mprintf("find, begins, low and high are for an index: give index_name"));
        }
        return SQLITE_OK;
    }
    made = sqlite3_malloc(sizeof *made);
    if (!made) return SQLITE_NOMEM;
    memset(made, 0, sizeof *made);
    made->question = question;
    made->at = *at;
    made->db = ((table *)cursor->base.pVtab)->connection->db;
    code = arguments(cursor, &options, &made->question);
    if (code == SQLITE_OK) {
        if (cursor->columns >> VALUES_KEY & 1) made->question.want |= LLVS_INDEX_KEYS;
        if (cursor->columns & 6) made->question.want |= LLVS_INDEX_VALUES; /* data, stored_version */
        made->question.limit = 64;
        status = llvs_index_open(cursor->store->store, &options, &made->index, &error);
        if (status != LLVS_OK) code = cursor_tell(cursor, status, error);
    }
    if (code != SQLITE_OK) {
        search_free(made);
        return code;
    }
    *result = made;
    return SQLITE_OK;
}

int search_next(cursor *cursor, search *search, const llvs_index_page **page) {
    llvs_error *error;
    llvs_status status;
    watch watch;
    *page = NULL;
    if (search->page) {
        /* A copy, since the page that holds it is freed below. */
        int code = bytes_set(&search->after, search->page->cursor.data, search->page->cursor.size);
        if (code != SQLITE_OK) return code;
        llvs_index_page_free(search->page);
        search->page = NULL;
        if (search->after.size == 0) return SQLITE_OK;
        search->question.after = bytes_given(&search->after);
        if (search->question.limit < 4096) search->question.limit *= 4;
    }
    watch_begin(&watch, search->db);
    status = llvs_index_find(search->index, llvs_id(&search->at), &search->question, &watch.control, &search->page, &error);
    watch_end(&watch);
    if (status != LLVS_OK) return cursor_tell(cursor, status, error);
    if (search->page->count == 0 && search->page->cursor.size == 0) return SQLITE_OK;
    *page = search->page;
    return SQLITE_OK;
}

void search_free(search *search) {
    if (!search) return;
    llvs_index_page_free(search->page);
    llvs_index_free(search->index);
    bytes_free(&search->after);
    sqlite3_free(search);
}
