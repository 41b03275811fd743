/*
 * Every function of llvs.h and llvs_testing.h, called with NULL, 0 and empty arguments. None may trap, and each that can fail reports that
 * something is missing. test_bad_input.c has more specific cases.
 */
#include "support.h"

#include "llvs_testing.h"

#define REFUSES(call)                                                              \
    do {                                                                           \
        llvs_status status = (call);                                               \
        if (status >= 0) fail_msg("%s gives %s", #call, llvs_status_name(status)); \
    } while (0)

static void every_function_takes_nothing(void **state) {
    (void)state;
#include "nothing_given.h"
    (void)llvs_merge_fork(NULL, LLVS_NONE); /* in the header itself */
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_function_takes_nothing) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
