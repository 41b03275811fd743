/* The library has no tables for unwinding. Debuggers, profilers and crash reporters follow frame pointers through it instead, and a thread
   may end within a callback. */
#include "support.h"

#include <pthread.h>

static uintptr_t *callers_frame;
static int reached, ends;

/* Follows the chain of frame pointers: each frame begins with the address of its caller's frame. */
static void moved(void *payload, const llvs_version_id *version) {
    uintptr_t *frame = __builtin_frame_address(0);
    int steps;
    (void)payload; (void)version;
    for (steps = 0; steps < 1000 && frame; steps++) {
        uintptr_t *next = (uintptr_t *)frame[0];
        if (next == callers_frame) reached = steps;
        /* The stack grows downwards: frames of callers have higher addresses. */
        if (next <= frame || next >= callers_frame) break;
        frame = next;
    }
    if (ends) pthread_exit((void *)&ends);
}

static llvs_coordinator *coordinator;
static llvs_store *store;

static void *put(void *argument) {
    callers_frame = __builtin_frame_address(0);
    OK(llvs_coordinator_put(coordinator, llvs_str("a"), llvs_str("1"), NULL, &error));
    return argument;
}

static void frames(void **state) {
    llvs_store_options memory = LLVS_STORE_OPTIONS_INIT;
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_observer *observer;
    (void)state;
    memory.storage = LLVS_STORAGE_MEMORY;
    options.store = &memory;
    OK(llvs_coordinator_open(LLVS_NONE, &options, &coordinator, &error));
    OK(llvs_coordinator_store(coordinator, &store, &error));
    OK(llvs_coordinator_observe(coordinator, moved, NULL, NULL, &observer, &error));
    put(NULL);
    /* At least the call itself and what runs the callback. */
    if (reached < 2) fail_msg("the chain of frames does not reach the call");
}

/* Continues in the store of `frames`. The coordinator waits for the callback of the thread that ended, so it is not used again. */
static void a_thread_that_ends(void **state) {
    pthread_t thread;
    void *result = NULL;
    (void)state;
    ends = 1;
    assert_int_equal(pthread_create(&thread, NULL, put, NULL), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &ends);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(frames), cmocka_unit_test(a_thread_that_ends) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
