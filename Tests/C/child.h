/* Waits for child processes of a test, and ends a child that loops or hangs. Needs _XOPEN_SOURCE 700 or _GNU_SOURCE. */
#ifndef LLVS_TESTS_CHILD_H
#define LLVS_TESTS_CHILD_H

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <dirent.h>
#include <sys/syscall.h>
#endif

/* Ends the process like a trap, but without a message. */
static inline void trap_on_purpose(void) {
    signal(SIGABRT, SIG_DFL);
    abort();
}

/* For how many seconds no thread of a child may be at work. Load of other programs does not count: a thread that could run is at work. */
enum { CHILD_IDLE_SECONDS = 120 };

/* The state of a watch over a child. All zeros at first. */
struct child_watch {
    int has_begun;
    unsigned long first, ticks; /* processor time of all threads: when the watch began, and now */
    unsigned long idle;         /* milliseconds */
};
enum child_fate { CHILD_WORKS, CHILD_LOOPS, CHILD_HANGS };

#if defined(__linux__)
/* Adds up the ticks of all threads of a child. Returns whether one of them runs, could run, or waits for a disk. */
static inline int child_is_at_work(pid_t child, unsigned long *ticks) {
    char path[300], line[1024];
    struct dirent *entry;
    DIR *threads;
    int works = 0;
    *ticks = 0;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)child);
    if (!(threads = opendir(path))) return 1;
    while ((entry = readdir(threads))) {
        unsigned long user, system;
        char state, *behind;
        FILE *file;
        snprintf(path, sizeof path, "/proc/%ld/task/%.20s/stat", (long)child, entry->d_name);
        if (entry->d_name[0] == '.' || !(file = fopen(path, "r"))) continue;
        /* The name, in parentheses, may contain any characters. */
        if (fgets(line, sizeof line, file) && (behind = strrchr(line, ')')) &&
            sscanf(behind + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &state, &user, &system) == 3) {
            *ticks += user + system;
            works |= state == 'R' || state == 'D';
        }
        fclose(file);
    }
    closedir(threads);
    return works;
}

/* Checks a child again after `passed` milliseconds. Returns whether it used more than `seconds` of the processor since the watch began,
   or did nothing for `idle_seconds`. */
static inline enum child_fate child_look(struct child_watch *watch, pid_t child, unsigned long passed, unsigned long seconds,
                                         unsigned long idle_seconds) {
    unsigned long ticks;
    int works = child_is_at_work(child, &ticks);
    if (!watch->has_begun) {
        watch->has_begun = 1;
        watch->first = watch->ticks = ticks;
        return CHILD_WORKS;
    }
    watch->idle = works || ticks != watch->ticks ? 0 : watch->idle + passed;
    watch->ticks = ticks;
    if (ticks > watch->first && ticks - watch->first > seconds * (unsigned long)sysconf(_SC_CLK_TCK)) return CHILD_LOOPS;
    return watch->idle > 1000ul * idle_seconds ? CHILD_HANGS : CHILD_WORKS;
}

/* Waits for the end of a child, and kills it if it uses more than `seconds` of the processor or hangs. `fate` (may be NULL) reports
   which. Returns what waitpid returns. */
static inline pid_t wait_for_child(pid_t child, unsigned long seconds, int *status, enum child_fate *fate) {
    struct child_watch watch = { 0, 0, 0, 0 };
    enum child_fate found = CHILD_WORKS;
    unsigned long pause = 1;
    pid_t ended;
    int end = -1;
#if defined(SYS_pidfd_open)
    extern long syscall(long number, ...);
    end = (int)syscall(SYS_pidfd_open, child, 0);
#endif
    while ((ended = waitpid(child, status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        /* Without a descriptor that reports the end, it polls. */
        struct pollfd one;
        unsigned long passed = end >= 0 ? 1000 : pause;
        one.fd = end;
        one.events = POLLIN;
        if (poll(&one, end >= 0, (int)passed) > 0) continue;
        if (pause < 100) pause *= 2;
        found = child_look(&watch, child, passed, seconds, CHILD_IDLE_SECONDS);
        if (found == CHILD_WORKS) continue;
        fprintf(stderr, "a child %s, and is ended: it used %lu s of the processor, and did nothing for %lu s\n",
                found == CHILD_LOOPS ? "loops" : "hangs", watch.ticks / (unsigned long)sysconf(_SC_CLK_TCK), watch.idle / 1000);
        kill(child, SIGKILL);
        while ((ended = waitpid(child, status, 0)) < 0 && errno == EINTR) {}
        break;
    }
    if (end >= 0) close(end);
    if (fate) *fate = found;
    return ended;
}
#else
static inline pid_t wait_for_child(pid_t child, unsigned long seconds, int *status, enum child_fate *fate) {
    pid_t ended;
    (void)seconds;
    while ((ended = waitpid(child, status, 0)) < 0 && errno == EINTR) {}
    if (fate) *fate = CHILD_WORKS;
    return ended;
}
#endif

#endif
