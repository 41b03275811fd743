/* Four threads save and read through one store, and a fifth receives the log: for tools that check threads. */
#include <llvs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static llvs_store *store;

static void hear(void *payload, llvs_log_level level, const llvs_bytes *message) {
    (void)payload;
    (void)level;
    if (message->size > 100000) exit(3);
}

static void *work(void *name) {
    llvs_version_id head;
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_error *error;
    int i;
    head.size = 0;
    change.kind = LLVS_CHANGE_UPDATE;
    change.id = llvs_str((const char *)name);
    for (i = 0; i < 50; i++) {
        char text[20];
        llvs_buffer data;
        snprintf(text, sizeof text, "%d", i);
        change.data = llvs_str(text);
        if (llvs_store_make_version(store, llvs_id(&head), &change, 1, sizeof change, NULL, &head, NULL, &error) != LLVS_OK ||
            llvs_store_value(store, change.id, llvs_id(&head), &data, NULL, &error) != LLVS_OK) {
            fprintf(stderr, "%s\n", llvs_error_message(error));
            exit(2);
        }
        llvs_buffer_dispose(&data);
    }
    return NULL;
}

int main(void) {
    static char names[4][2] = { "a", "b", "c", "d" };
    llvs_observer *log;
    llvs_error *error;
    pthread_t threads[4];
    int i;
    if (llvs_log_observe(LLVS_LOG_DEBUG, hear, NULL, NULL, &log, &error) != LLVS_OK ||
        llvs_store_open(llvs_str("threads.llvs"), NULL, &store, &error) != LLVS_OK) return 2;
    for (i = 0; i < 4; i++) if (pthread_create(&threads[i], NULL, work, names[i]) != 0) return 2;
    for (i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    if (llvs_store_close(store, &error) != LLVS_OK) return 2;
    llvs_store_free(store);
    llvs_observer_free(log);
    return 0;
}
