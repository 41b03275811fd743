/* Defects that the sanitizers must find; a sanitizer that finds nothing would let every test pass. Run by scripts/sanitize. */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int shared;
static void *count(void *unused) {
    for (int i = 0; i < 1000; i++) shared++;
    return unused;
}

int main(int argc, char **argv) {
    const char *defect = argc > 1 ? argv[1] : "";
    if (strcmp(defect, "race") == 0) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) if (pthread_create(&threads[i], NULL, count, NULL) != 0) return 2;
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    } else if (strcmp(defect, "overrun") == 0) {
        volatile char *bytes = malloc((size_t)argc);
        if (!bytes) return 2;
        shared = bytes[argc];
        free((void *)bytes);
    } else if (strcmp(defect, "overflow") == 0) {
        shared = INT_MAX - 1 + argc;
    }
    printf("%d\n", shared);
    return 0;
}
