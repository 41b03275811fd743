/* Several threads on one store while the limit of memory falls, for test_falling_memory.c. */
#ifndef LLVS_TESTS_MEMORY_THREADS_H
#define LLVS_TESTS_MEMORY_THREADS_H

#include <pthread.h>
#include <signal.h>

#include "memory_world.h"

enum { WORKERS = 4, FALLS = 6, ROUNDS = 5, ROW = 32, ROW_SIZE = 4000 };

/* One thread, with all that it needs itself: it makes a line of versions, and reads. */
typedef struct worker {
    world *w;
    pthread_barrier_t *barrier;
    int number, acknowledged, refused;
    /* The version acknowledged last, of number `acknowledged`; "left" before the first. */
    char last[32];
    llvs_change changes[ROW];
    char names[ROW][32];
    uint8_t bytes[ROW * ROW_SIZE];
} worker;

static void name_of(const worker *self, int version, char *name, size_t size) {
    snprintf(name, size, "thread-%d-%d", self->number, version);
}

/* 1 when it was done, 0 when there was not enough memory. */
static int is_done(worker *self, llvs_status status, llvs_error *error) {
    if (status != LLVS_OK && status != LLVS_ERROR_OUT_OF_MEMORY) {
        fprintf(stderr, "%s: %s\n", llvs_status_name(status), llvs_error_message(error));
        _exit(81);
    }
    llvs_error_free(error);
    self->refused += status != LLVS_OK;
    return status == LLVS_OK;
}

/* A row of values, of which the first holds the number of the version. */
static void save_a_row(worker *self) {
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_error *error = NULL;
    llvs_status status;
    char name[32];
    size_t i;
    name_of(self, self->acknowledged + 1, name, sizeof name);
    for (i = 0; i < ROW; i++) {
        snprintf(self->names[i], sizeof self->names[i], "thread/%d/%02u", self->number, (unsigned)i);
        fill(self->bytes + i * ROW_SIZE, ROW_SIZE, (uint64_t)(100 * self->acknowledged + 7 * self->number) + i);
        self->changes[i] = update(self->names[i], "");
        self->changes[i].data = llvs_bytes_make(self->bytes + i * ROW_SIZE, ROW_SIZE);
    }
    self->changes[0].data = llvs_str(name);
    options.id = llvs_str(name);
    status = llvs_store_make_version(self->w->store, llvs_str(self->last), self->changes, ROW, sizeof *self->changes, &options, NULL, NULL, &error);
    if (!is_done(self, status, error)) return;
    self->acknowledged++;
    strcpy(self->last, name);
}

static void read_something(worker *self) {
    llvs_error *error = NULL;
    llvs_buffer data;
    llvs_value_list *values;
    llvs_history_cursor *cursor = NULL;
    llvs_version_list *page = NULL;
    llvs_range range = LLVS_RANGE_INIT;
    if (is_done(self, llvs_store_value(self->w->store, llvs_str("large"), llvs_str(self->last), &data, NULL, &error), error)) {
        if (data.size != LARGE) { fprintf(stderr, "the large value is another\n"); _exit(74); }
        llvs_buffer_dispose(&data);
    }
    range.prefix = llvs_str("value/00");
    if (is_done(self, llvs_store_enumerate(self->w->store, llvs_str(self->last), &range, &values, &error), error))
        llvs_value_list_free(values);
    if (is_done(self, llvs_store_history(self->w->store, NULL, NULL, &cursor, &error), error)) {
        if (is_done(self, llvs_history_cursor_next(cursor, 100, NULL, &page, &error), error)) llvs_version_list_free(page);
        llvs_history_cursor_free(cursor);
    }
}

static void *work(void *payload) {
    worker *self = payload;
    int fall, round;
    /* What the allocator keeps for each thread is there before the first limit. */
    save_a_row(self);
    pthread_barrier_wait(self->barrier);
    for (fall = 0; fall < FALLS; fall++) {
        pthread_barrier_wait(self->barrier);
        take_what_is_free();
        pthread_barrier_wait(self->barrier);
        pthread_barrier_wait(self->barrier);
        for (round = 0; round < ROUNDS; round++) {
            save_a_row(self);
            read_something(self);
        }
        pthread_barrier_wait(self->barrier);
    }
    return NULL;
}

/* All that the threads were told is there, is there. */
static void look_for_lines(world *w, const worker *workers) {
    char name[32], id[32];
    llvs_buffer data;
    int i, version;
    for (i = 0; i < WORKERS; i++) {
        snprintf(id, sizeof id, "thread/%d/00", i);
        for (version = 1; version <= workers[i].acknowledged; version++) {
            name_of(&workers[i], version, name, sizeof name);
            NEED(llvs_store_value(w->store, llvs_str(id), llvs_str(name), &data, NULL, &error));
            if (data.size != strlen(name) || memcmp(data.data, name, data.size) != 0) {
                fprintf(stderr, "%s was acknowledged and is another\n", name);
                _exit(72);
            }
            llvs_buffer_dispose(&data);
        }
    }
}

/* In a child, on a world that is open. */
static int run_threads(world *w, int *acknowledged, int *refused) {
    static const size_t rooms[FALLS] = { 32u * MEBIBYTE, 8u * MEBIBYTE, 2u * MEBIBYTE, MEBIBYTE / 2, MEBIBYTE / 8, 0 };
    worker *workers = calloc(WORKERS, sizeof *workers);
    pthread_barrier_t barrier;
    pthread_t threads[WORKERS];
    int i, fall;
    if (!workers || pthread_barrier_init(&barrier, NULL, WORKERS + 1) != 0) _exit(92);
    for (i = 0; i < WORKERS; i++) {
        workers[i].w = w;
        workers[i].barrier = &barrier;
        workers[i].number = i;
        strcpy(workers[i].last, "left");
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) _exit(92);
    }
    pthread_barrier_wait(&barrier);
    for (fall = 0; fall < FALLS; fall++) {
        size_t before = address_space();
        limit_to((rlim_t)before);
        pthread_barrier_wait(&barrier);
        take_what_is_free();
        pthread_barrier_wait(&barrier);
        limit_to((rlim_t)(before + rooms[fall]));
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    for (i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    limit_to(RLIM_INFINITY);
    pthread_barrier_destroy(&barrier);
    *acknowledged = *refused = 0;
    for (i = 0; i < WORKERS; i++) { *acknowledged += workers[i].acknowledged; *refused += workers[i].refused; }
    look_for_lines(w, workers);
    look_at_world(w, NULL);
    NEED(llvs_store_close(w->store, &error));
    llvs_store_free(w->store);
    if (w->kind == LLVS_STORAGE_FILE || w->kind == LLVS_STORAGE_SQLITE) {
        NEED(open_at(w, w->path, w->array, &w->store, &error));
        verify_world(w);
        look_for_lines(w, workers);
        look_at_world(w, NULL);
    }
    return *refused == 0 || *acknowledged <= WORKERS ? 85 : 0;
}

#endif
