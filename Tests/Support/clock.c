/* Lets tests move the clock of the library.
 *
 * `clock_hook` replaces the functions with which one loaded object reads the steady clock, sleeps and waits. Other objects, Python among
 * them, keep the real ones. Nothing else in the object changes, so the shipped library itself is tested.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
/* The number of tests that may move the clock, and how often a wait checks for that, in nanoseconds. */
static _Atomic int movers;
#define SLICE (atomic_load(&movers) > 0 ? SECOND / 200 : SECOND / 4)

static _Atomic long long ahead;
/* The factor by which sleeps are shortened; 1: not. */
static _Atomic int hurry = 1;

static long long of(const struct timespec *time) { return time->tv_sec * SECOND + time->tv_nsec; }
/* While the clock is stopped, waits up to this length are real, since threads use them for polling. */
#define SHORT (25 * SECOND / 1000)
static struct timespec spec(long long time) { return (struct timespec){time / SECOND, time % SECOND}; }
static long long least(long long a, long long b) { return a < b ? a : b; }

static long long real_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return of(&time);
}
/* The moment at which the clock stopped; 0: it runs. */
static _Atomic long long frozen;
static long long now(void) {
    long long still = atomic_load(&frozen);
    return (still ? still : real_now()) + atomic_load(&ahead);
}

/* The ends of the threads' waits; 0: unused. */
static _Atomic long long ends[256];
static _Atomic long long *begin_wait(long long end) {
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        long long none = 0;
        if (atomic_compare_exchange_strong(&ends[i], &none, end)) return &ends[i];
    }
    return NULL;
}
static void end_wait(_Atomic long long *wait) { if (wait) atomic_store(wait, 0); }

static void sleep_really(long long time) {
    struct timespec rest = spec(time);
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {}
}

static int moved_gettime(clockid_t clock, struct timespec *time) {
    int result = clock_gettime(clock, time);
    if (result == 0 && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE)) *time = spec(now());
    return result;
}

static int moved_usleep(useconds_t microseconds) {
    long long end = now() + microseconds * 1000LL;
    int factor = atomic_load(&hurry);
    if (factor > 1) {
        sleep_really(microseconds * 1000LL / factor);
        /* Moves the clock to the end of the sleep, unless another thread has moved it there. */
        for (long long before = atomic_load(&ahead), rest; (rest = end - now()) > 0;)
            if (atomic_compare_exchange_weak(&ahead, &before, before + rest)) break;
        return 0;
    }
    if (atomic_load(&frozen) && microseconds * 1000LL <= SHORT) sleep_really(microseconds * 1000LL);
    else
        for (long long rest; (rest = end - now()) > 0;) sleep_really(least(rest, SLICE));
    return 0;
}

static int moved_poll(struct pollfd *descriptors, nfds_t count, int milliseconds) {
    if (milliseconds <= 0 || (atomic_load(&frozen) && milliseconds * 1000000LL <= SHORT)) return poll(descriptors, count, milliseconds);
    long long end = now() + milliseconds * 1000000LL;
    _Atomic long long *wait = begin_wait(end);
    for (;;) {
        long long rest = end - now();
        int result = poll(descriptors, count, rest <= 0 ? 0 : (int)((least(rest, SLICE) + 999999) / 1000000)), error = errno;
        if (result == 0 && rest > 0) continue;
        end_wait(wait);
        errno = error;
        return result;
    }
}

static int moved_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *time) {
    long long end = of(time), before = now();
    /* A wait by the time of day. */
    if (end > before + 400LL * 86400 * SECOND) return pthread_cond_timedwait(condition, mutex, time);
    if (end <= before) return ETIMEDOUT;
    struct timespec slice = spec(real_now() + least(end - before, SLICE));
    _Atomic long long *wait = begin_wait(end);
    int result = pthread_cond_timedwait(condition, mutex, &slice);
    end_wait(wait);
    /* If the time has not come, the wait ends without a reason, which conditions allow. */
    int is_short = atomic_load(&frozen) && end - before <= SHORT;
    return result == ETIMEDOUT && now() < end && !is_short ? 0 : result;
}

struct hook { const char *name; void *function; };
static const struct hook hooks[] = {
    {"clock_gettime", (void *)moved_gettime}, {"usleep", (void *)moved_usleep}, {"poll", (void *)moved_poll},
    {"pthread_cond_timedwait", (void *)moved_timedwait},
};

static int replace(const struct dl_phdr_info *object, const ElfW(Rela) *relocations, size_t size, const ElfW(Sym) *symbols,
    const char *names) {
    int replaced = 0;
    for (size_t i = 0; i < size / sizeof *relocations; i++) {
        const char *name = names + symbols[relocations[i].r_info >> 32].st_name;
        uint32_t type = (uint32_t)relocations[i].r_info;
#if defined(__x86_64__)
        if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
#elif defined(__aarch64__)
        if (type != R_AARCH64_JUMP_SLOT && type != R_AARCH64_GLOB_DAT) continue;
#else
#error "Name the relocations of functions on this architecture."
#endif
        for (size_t j = 0; j < sizeof hooks / sizeof *hooks; j++) {
            if (strcmp(name, hooks[j].name) != 0) continue;
            void **entry = (void **)(object->dlpi_addr + relocations[i].r_offset);
            uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)entry & ~(page - 1);
            if (mprotect((void *)start, page, PROT_READ | PROT_WRITE) != 0) return -1;
            *entry = hooks[j].function;
            replaced |= 1 << j;
        }
    }
    return replaced;
}

struct search { uintptr_t base; int replaced; };

static int visit(struct dl_phdr_info *object, size_t size, void *context) {
    struct search *search = context;
    (void)size;
    if (object->dlpi_addr != search->base) return 0;
    const ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC) entry = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    const ElfW(Rela) *calls = NULL, *others = NULL;
    size_t calls_size = 0, others_size = 0;
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_JMPREL: calls = (const void *)entry->d_un.d_ptr; break;
        case DT_PLTRELSZ: calls_size = entry->d_un.d_val; break;
        case DT_RELA: others = (const void *)entry->d_un.d_ptr; break;
        case DT_RELASZ: others_size = entry->d_un.d_val; break;
        case DT_SYMTAB: symbols = (const void *)entry->d_un.d_ptr; break;
        case DT_STRTAB: names = (const void *)entry->d_un.d_ptr; break;
        }
    }
    if (symbols == NULL || names == NULL) return 1;
    int first = replace(object, calls, calls_size, symbols, names), second = replace(object, others, others_size, symbols, names);
    search->replaced = first < 0 || second < 0 ? -1 : first | second;
    return 1;
}

/* Hooks the object that has a function at this address. Returns how many of the functions it uses, or -1. */
int clock_hook(const void *address) {
    Dl_info found;
    if (dladdr(address, &found) == 0) return -1;
    struct search search = {(uintptr_t)found.dli_fbase, 0};
    dl_iterate_phdr(visit, &search);
    return search.replaced < 0 ? -1 : __builtin_popcount((unsigned)search.replaced);
}

/* Declares that a test may move the clock from now on, or no longer does. */
void clock_watch(int watches) { atomic_fetch_add(&movers, watches ? 1 : -1); }

/* Moves the clock ahead by a number of seconds. */
void clock_advance(double seconds) { atomic_fetch_add(&ahead, (long long)(seconds * SECOND)); }

/* Divides the time of sleeps by a factor, while the clock advances by their whole length. */
void clock_hurry(int factor) { atomic_store(&hurry, factor); }

/* Stops the clock, so that only tests move it, or lets it run again from where it stopped. */
void clock_freeze(int stands) {
    long long still = atomic_load(&frozen);
    if (stands && !still) atomic_store(&frozen, real_now());
    if (!stands && still) {
        atomic_fetch_add(&ahead, still - real_now());
        atomic_store(&frozen, 0);
    }
}

/* The number of threads whose waits have not reached their ends. */
int clock_waiting(void) {
    long long moment = now();
    int count = 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) count += atomic_load(&ends[i]) > moment;
    return count;
}

double clock_now(void) { return (double)now() / SECOND; }
