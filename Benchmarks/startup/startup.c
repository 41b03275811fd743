/*
 * Measures how long a program waits if it loads the library when it needs it: prints the milliseconds from dlopen to the end of a first
 * call.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

int main(void) {
    double start = now();
    void *library = dlopen(LLVS_BINARY_DIR "/lib/libllvs.so", RTLD_NOW | RTLD_LOCAL);
    int (*create)(void **, void **), result;
    void *token, *error;
    /* The first call makes an object, so that it includes the start of the library's runtime. */
    *(void **)&create = library ? dlsym(library, "llvs_cancel_token_create") : NULL;
    if (!create) {
        fprintf(stderr, "startup: %s\n", dlerror());
        return 1;
    }
    result = create(&token, &error);
    printf("ms %.6f\n", now() - start);
    return result != 0;
}
