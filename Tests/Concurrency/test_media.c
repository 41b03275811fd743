/*
 * Refusals of a real medium.
 *
 * A file system in memory of a fixed size is filled except for a few pages. Then commits, merges, retrieves, sends, compactions, snapshots
 * and openings are tried. An operation that does not fit fails with an error that says so. Nothing acknowledged is lost, even while the
 * medium is full. As soon as there is room the same handle continues. The same for a medium that is mounted read-only, for a
 * write-protected store, and for a process that may not open more files. (Tests/Faults injects failures call by call.)
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../Faults/files.h"
#include "run.h"
#include "../C/folder_snapshots.h"

enum { PAGE = 4096, BRANCHES = 12 };
struct site {
    struct place place;              /* on the medium */
    char *medium, *ballast, *outside;
    llvs_store *store;
    uint32_t base, branches[BRANCHES];
    int next_branch;
};

/* ---- The operations ---- */

static llvs_status make(struct site *site, uint32_t base, int key, uint32_t *made, llvs_error **error) {
    struct ledger_entry *entry = ledger_ask(base, site->place.world);
    uint32_t number = number_of(entry), size;
    uint8_t *bytes = stored_bytes(number, key, &size);
    llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_status status;
    change.kind = LLVS_CHANGE_UPDATE;
    change.id = llvs_str(key_name(key));
    change.data = llvs_bytes_make(bytes, size);
    options.id = llvs_str(entry->id);
    entry->state[key] = number;
    entry->phase = PHASE_ASKED;
    status = llvs_store_make_version(site->store, base ? llvs_str(ledger->entries[base].id) : LLVS_NONE, &change, 1, sizeof change,
                                     &options, NULL, NULL, error);
    free(bytes);
    if (status == LLVS_OK || planted == REFUSES_NOTHING) {
        ledger_acknowledge(entry);
        *made = number;
    } else if (status != LLVS_ERROR_UNKNOWN_OUTCOME) {
        /* If the outcome is known, the version must not exist. */
        entry->phase = PHASE_FREE;
    }
    return status;
}

static llvs_status commit(struct site *site, llvs_error **error) {
    llvs_status status = LLVS_OK;
    for (int i = 0; i < 80 && status == LLVS_OK; i++) status = make(site, site->base, 20 + i % 8, &site->base, error);
    return status;
}
static llvs_status merge(struct site *site, llvs_error **error) {
    while (site->next_branch < BRANCHES) {
        llvs_version_list *version;
        const struct ledger_entry *ours = &ledger->entries[site->base], *theirs = &ledger->entries[site->branches[site->next_branch]];
        struct ledger_entry *entry = ledger_ask(site->base, site->place.world);
        uint32_t prevailing[KEYS];
        const char *wrong;
        entry->is_merge = 1;
        entry->predecessors[1] = number_of(theirs);
        entry->id[0] = 0;
        entry->phase = PHASE_ASKED;
        llvs_status status = llvs_store_merge(site->store, llvs_str(ours->id), llvs_str(theirs->id), NULL, NULL, &version, error);
        if (status != LLVS_OK) {
            entry->phase = PHASE_FREE;
            return status;
        }
        llvs_bytes id = version->items[0]->id;
        if (read_prevailing(site->store, id, prevailing)) {
            if ((wrong = merged_state(ours, theirs, prevailing, entry->state))) ledger_fail("%s", wrong);
            memcpy(entry->id, id.data, id.size);
            entry->id[id.size] = 0;
            ledger_acknowledge(entry);
        }
        llvs_version_list_free(version);
        site->base = number_of(entry);
        site->next_branch++;
    }
    return LLVS_OK;
}

typedef llvs_status (*exchange_fn)(llvs_exchange *, const llvs_control *, llvs_exchange_result **, llvs_error **);
static llvs_status exchange(struct site *site, const char *folder, exchange_fn call, llvs_error **error) {
    char url[700];
    llvs_exchange *made;
    llvs_exchange_result *result = NULL;
    llvs_status status;
    snprintf(url, sizeof url, "file://%s", folder);
    status = llvs_exchange_open(site->store, llvs_str(url), NULL, &made, error);
    if (status != LLVS_OK) return status;
    status = call(made, NULL, &result, error);
    if (status == LLVS_OK && result->problem_count > 0)
        ledger_fail("exchanging met a problem: %s", (const char *)result->problems[0]->message.data);
    llvs_exchange_result_free(result);
    llvs_exchange_free(made);
    return status;
}
static llvs_status retrieve(struct site *site, llvs_error **error) {
    llvs_status status = exchange(site, site->outside, llvs_exchange_retrieve, error);
    if (status == LLVS_OK) ledger->is_united = 1;
    return status;
}
static llvs_status send(struct site *site, llvs_error **error) {
    char *folder = path_of(site->medium, "folder");
    llvs_status status = exchange(site, folder, llvs_exchange_send, error);
    free(folder);
    return status;
}
static llvs_status compact(struct site *site, llvs_error **error) { return llvs_store_compact(site->store, NULL, NULL, error); }
static llvs_status write_snapshot(struct site *site, llvs_error **error) {
    char *folder = path_of(site->medium, "snapshot");
    llvs_status status = write_snapshot_into(site->store, folder, NULL, error);
    free(folder);
    return status;
}
/* Restores into a new store, which becomes the site's. */
static llvs_status restore(struct site *site, llvs_error **error) {
    llvs_status status = LLVS_OK;
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
    if (strstr(site->place.path, "/store")) {
        llvs_store_free(site->store);
        free((char *)site->place.path);
        site->place.path = path_of(site->medium, "new");
        site->place.world = 2;
        site->store = NULL;
    }
    if (!site->store) {
        llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
        options.storage = site->place.storage;
        status = llvs_store_open(llvs_str(site->place.path), &options, &site->store, error);
        if (status != LLVS_OK) return status;
    }
    status = llvs_store_statistics(site->store, NULL, &statistics, error);
    if (status != LLVS_OK) return status;
    /* Versions that were added as a whole remain, and an exchange brings the rest. */
    if (statistics.versions > 1) return exchange(site, site->outside, llvs_exchange_retrieve, error);
    return restore_snapshot_from(site->store, site->outside, NULL, error);
}
/* Existing versions can be read even without any room. */
static llvs_status reopen(struct site *site, llvs_error **error) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_status status = llvs_store_close(site->store, error);
    options.storage = site->place.storage;
    llvs_store_free(site->store);
    site->store = NULL;
    return status != LLVS_OK ? status : llvs_store_open(llvs_str(site->place.path), &options, &site->store, error);
}

struct action {
    const char *name;
    llvs_status (*act)(struct site *site, llvs_error **error);
    int on_sqlite;
};
static const struct action actions[] = {
    {"commit", commit, 1}, {"merge", merge, 1}, {"retrieve", retrieve, 1}, {"send", send, 1}, {"compact", compact, 0},
    {"write a snapshot", write_snapshot, 1}, {"restore a snapshot", restore, 1}, {"close and open", reopen, 1},
};
enum { ACTIONS = sizeof actions / sizeof actions[0] };

/* ---- The medium ---- */

static int may_mount;
/* A mount namespace of our own, whose mounts disappear with the process. */
static void prepare_mounts(void) {
    uid_t user = getuid();
    char line[64];
    int fd;
    if (unshare(CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return;
        snprintf(line, sizeof line, "0 %u 1", (unsigned)user);
        if ((fd = open("/proc/self/uid_map", O_WRONLY)) < 0 || write(fd, line, strlen(line)) < 0) return;
        close(fd);
    }
    may_mount = mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}
static void mount_medium(struct site *site, const char *options) {
    make_folder(site->medium);
    if (mount("none", site->medium, "tmpfs", 0, options) != 0) broken("cannot mount %s", site->medium);
}

/* Fills the medium up to the given number of pages. */
static void fill(struct site *site, int pages) {
    static char page[PAGE];
    int fd = open(site->ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    off_t size = 0;
    if (fd < 0) broken("cannot make %s", site->ballast);
    while (write(fd, page, PAGE) == PAGE) size += PAGE;
    if (ftruncate(fd, size > (off_t)pages * PAGE ? size - (off_t)pages * PAGE : 0) != 0) broken("cannot free some of %s", site->ballast);
    close(fd);
}

/* Makes the stores: one outside, with a folder and a snapshot made from it, and one at the site. */
static void prepare(struct site *site, const char *folder, uint64_t seed) {
    char *path = path_of(folder, "other");
    struct place elsewhere = {path, LLVS_STORAGE_FILE, LLVS_DURABILITY_NORMAL, KEEPS_SEGMENTS, 2};
    struct worker other = {&elsewhere, 40, NULL, 1, 0, seed + 1, 60}, own = {&site->place, 41, NULL, 1, 0, seed, 0};
    llvs_error *error;
    other.store = worker_open(&elsewhere, 0);
    worker_run(&other);
    llvs_store *kept = site->store;
    site->store = other.store;
    succeeded("sending to the folder outside", exchange(site, site->outside, llvs_exchange_send, &error), &error);
    succeeded("writing a snapshot outside", write_snapshot_into(other.store, site->outside, NULL, &error), &error);
    llvs_store_free(other.store);
    site->store = kept;
    for (int i = 0; i < 5; i++) {
        own.store = worker_open(&site->place, 0);
        own.operations = 8;
        worker_run(&own);
        llvs_store_free(own.store);
    }
    site->store = worker_open(&site->place, 0);
    site->base = own.current;
    for (int i = 0; i < BRANCHES && site->store; i++)
        succeeded("making a branch", make(site, own.current, i, &site->branches[i], &error), &error);
    site->base = site->branches[0];
    site->next_branch = 1;
    free(path);
}

static void judge_everything(const struct site *site, enum strictness strictness) { judge_in_child(&site->place, strictness, 0); }

/* Reads everything acknowledged through this handle. */
static void expect_all(struct site *site) {
    for (uint32_t i = 0; site->store && i < ledger->acknowledged && !ledger_has_failed(); i++) {
        const struct ledger_entry *entry = &ledger->entries[ledger->order[i]];
        if (ledger_sees(site->place.world, entry)) check_all_values(site->store, entry);
    }
}

static struct site make_site(const char *folder, llvs_storage_kind storage) {
    struct site site;
    memset(&site, 0, sizeof site);
    site.medium = path_of(folder, "medium");
    site.outside = path_of(folder, "outside");
    site.ballast = path_of(site.medium, "ballast");
    site.place.path = path_of(site.medium, "store");
    site.place.storage = storage;
    site.place.durability = LLVS_DURABILITY_FULL;
    site.place.world = 1;
    return site;
}
static void free_site(struct site *site) {
    llvs_store_free(site->store);
    free(site->medium);
    free(site->outside);
    free(site->ballast);
    free((char *)site->place.path);
}

/* ---- Full ---- */

static void full_once(const struct action *action, llvs_storage_kind storage, int pages, const char *folder, uint64_t seed) {
    struct site site = make_site(folder, storage);
    llvs_error *error;
    llvs_status status;
    mount_medium(&site, "size=24m");
    prepare(&site, folder, seed);
    if (site.store && !ledger_has_failed()) {
        fill(&site, pages);
        status = action->act(&site, &error);
        ledger->operations++;
        if (status != LLVS_OK) {
            tally(REFUSALS, 1);
            if (planted == GIVES_ANOTHER_REASON) status = LLVS_ERROR_IO;
            if (status != LLVS_ERROR_NO_SPACE || strlen(llvs_error_message(error)) == 0)
                ledger_fail("%s on a full disk (%d pages): %s: %s", action->name, pages, llvs_status_name(status),
                            llvs_error_message(error));
            llvs_error_free(error);
        }
        if (status == LLVS_OK || action->act != restore) expect_all(&site);
        if (unlink(site.ballast) != 0) broken("cannot remove the ballast");
        /* The same handle continues. */
        if (!ledger_has_failed() && action->act == reopen && !site.store) site.store = worker_open(&site.place, 0);
        else if (!ledger_has_failed()) succeeded("with room again, the same", action->act(&site, &error), &error);
        if (!ledger_has_failed() && action->act != restore) succeeded("with room again, a commit", commit(&site, &error), &error);
        expect_all(&site);
        if (site.store) succeeded("closing", llvs_store_close(site.store, &error), &error);
        if (!ledger_has_failed()) judge_everything(&site, JUDGE_WHOLE);
    }
    llvs_store_free(site.store);
    site.store = NULL;
    if (umount2(site.medium, MNT_DETACH) != 0) broken("cannot unmount %s", site.medium);
    free_site(&site);
}

static void full(const char *folder, llvs_storage_kind storage, uint64_t seed, double scale) {
    static const int few[] = {0, 1, 3, 8, 34};
    for (int a = 0; a < ACTIONS; a++) {
        long count = scale > 1 ? (long)(40 * scale) : (long)(sizeof few / sizeof few[0]), began = ledger->tallies[REFUSALS];
        if (storage == LLVS_STORAGE_SQLITE && !actions[a].on_sqlite) continue;
        /* The log of a database may have room for everything. Then it is tried again with another seed. */
        for (long round = 0; round < (actions[a].act == reopen ? 1 : 5) && ledger->tallies[REFUSALS] == began; round++) {
            for (long i = 0; i < count && !ledger_has_failed(); i++) {
                remove_tree(folder);
                make_folder(folder);
                ledger_forget();
                full_once(&actions[a], storage, scale > 1 ? (int)i : few[i], folder, seed + (uint64_t)(i + 1000 * round));
            }
        }
        if (ledger->tallies[REFUSALS] == began && actions[a].act != reopen) ledger_fail("%s: nothing was ever refused", actions[a].name);
        if (ledger_has_failed()) return;
    }
}

/* ---- Read-only, and not permitted ---- */

/* Opened for writing or for reading, the store can be read. A commit is refused with the right error. Then the cause is removed, and
 * the same handle commits. */
static void refused(struct site *site, llvs_status expected, void (*relent)(struct site *)) {
    llvs_store_options options = LLVS_STORE_OPTIONS_INIT;
    llvs_store *reader;
    llvs_error *error;
    llvs_status status;
    uint32_t made = 0;
    options.storage = site->place.storage;
    status = llvs_store_open(llvs_str(site->place.path), &options, &site->store, &error);
    if (status != LLVS_OK) {
        if (status != expected && status != LLVS_ERROR_READ_ONLY && status != LLVS_ERROR_PERMISSION)
            ledger_fail("opening gives %s: %s", llvs_status_name(status), llvs_error_message(error));
        llvs_error_free(error);
        site->store = NULL;
    } else {
        expect_all(site);
        status = make(site, site->base, 0, &made, &error);
        if (status != expected && status != LLVS_ERROR_READ_ONLY)
            ledger_fail("a commit gives %s: %s", llvs_status_name(status), llvs_error_message(error));
        llvs_error_free(error);
        tally(REFUSALS, 1);
    }
    reader = worker_open(&site->place, 1);
    if (reader) {
        llvs_store *kept = site->store;
        site->store = reader;
        expect_all(site);
        site->store = kept;
        llvs_store_free(reader);
    }
    relent(site);
    if (!site->store) site->store = worker_open(&site->place, 0);
    if (site->store) succeeded("a commit afterwards", commit(site, &error), &error);
    if (site->store) succeeded("closing", llvs_store_close(site->store, &error), &error);
    ledger->operations += 4;
}

static void remount_writable(struct site *site) {
    if (mount(NULL, site->medium, NULL, MS_REMOUNT, "size=24m") != 0) broken("cannot remount %s", site->medium);
}

static void read_only(const char *folder, llvs_storage_kind storage, uint64_t seed) {
    struct site site = make_site(folder, storage);
    mount_medium(&site, "size=24m");
    prepare(&site, folder, seed);
    llvs_store_free(site.store);
    site.store = NULL;
    if (mount(NULL, site.medium, NULL, MS_REMOUNT | MS_RDONLY, "size=24m") != 0) broken("cannot make %s read-only", site.medium);
    if (!ledger_has_failed()) refused(&site, LLVS_ERROR_READ_ONLY, remount_writable);
    if (!ledger_has_failed()) judge_everything(&site, JUDGE_WHOLE);
    umount2(site.medium, MNT_DETACH);
    free_site(&site);
}

static void set_modes(const char *medium, const char *modes) {
    char command[700];
    snprintf(command, sizeof command, "chmod -R %s '%s'", modes, medium);
    if (system(command) != 0) broken("cannot change modes");
}
static int pipes[2][2];
static void ask_for_permission(struct site *site) {
    char byte = 0;
    (void)site;
    if (write(pipes[0][1], &byte, 1) != 1 || read(pipes[1][0], &byte, 1) != 1) broken("cannot ask");
}
/* Runs in a child without privileges. */
static void not_permitted(const char *folder, llvs_storage_kind storage, uint64_t seed) {
    struct site site = make_site(folder, storage);
    int status = 0;
    char byte = 0;
    pid_t child;
    make_folder(site.medium);
    prepare(&site, folder, seed);
    llvs_store_free(site.store);
    site.store = NULL;
    set_modes(site.medium, "a=rX");
    if (chmod(folder, 0755) != 0 || pipe(pipes[0]) != 0 || pipe(pipes[1]) != 0) broken("cannot prepare");
    char *parent = path_of(folder, "..");
    if (chmod(parent, 0755) != 0) broken("cannot prepare");
    free(parent);
    if ((child = fork()) == 0) {
        close(pipes[0][0]);
        close(pipes[1][1]);
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(98);
        refused(&site, LLVS_ERROR_PERMISSION, ask_for_permission);
        _exit(0);
    }
    close(pipes[0][1]);
    close(pipes[1][0]);
    if (read(pipes[0][0], &byte, 1) == 1) {
        set_modes(site.medium, "a=rwX");
        if (write(pipes[1][1], &byte, 1) != 1) broken("cannot answer");
    }
    waitpid(child, &status, 0);
    close(pipes[0][0]);
    close(pipes[1][1]);
    if (status != 0) ledger_fail("the process ended with %d", status);
    if (!ledger_has_failed()) judge_everything(&site, JUDGE_WHOLE);
    free_site(&site);
}

/* ---- Too many open files ---- */

static void raise_limit(rlim_t files) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) broken("no limits");
    limit.rlim_cur = files < limit.rlim_max ? files : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) broken("cannot set the limit");
}
static rlim_t next_descriptor(void) {
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0) broken("no descriptor");
    close(fd);
    return (rlim_t)fd;
}
/* Runs in a child: each action may open only this many more files. */
static void with_few_files(struct site *site, const struct action *action, int more) {
    llvs_error *error;
    llvs_status status;
    raise_limit(next_descriptor() + (rlim_t)more);
    status = action->act(site, &error);
    if (status != LLVS_OK) {
        if (status != LLVS_ERROR_TOO_MANY_FILES)
            ledger_fail("%s with %d files: %s: %s", action->name, more, llvs_status_name(status), llvs_error_message(error));
        llvs_error_free(error);
        tally(REFUSALS, 1);
    }
    raise_limit(1024);
    if (!site->store && action->act == reopen) site->store = worker_open(&site->place, 0);
    else succeeded("with files again, the same", action->act(site, &error), &error);
    if (action->act != restore && !ledger_has_failed()) succeeded("with files again, a commit", commit(site, &error), &error);
    expect_all(site);
    if (site->store) succeeded("closing", llvs_store_close(site->store, &error), &error);
    _exit(0);
}
static void few_files(const char *folder, llvs_storage_kind storage, uint64_t seed, double scale) {
    for (int a = 0; a < ACTIONS; a++) {
        if (storage == LLVS_STORAGE_SQLITE && !actions[a].on_sqlite) continue;
        for (int more = 0; more < (scale > 1 ? 12 : 5) && !ledger_has_failed(); more++) {
            struct site site = make_site(folder, storage);
            int status;
            pid_t child;
            remove_tree(folder);
            make_folder(folder);
            make_folder(site.medium);
            ledger_forget();
            if ((child = fork()) == 0) {
                prepare(&site, folder, seed);
                with_few_files(&site, &actions[a], more);
            }
            waitpid(child, &status, 0);
            if (status != 0) ledger_fail("%s with %d files: the process ended with %d", actions[a].name, more, status);
            if (actions[a].act == restore) {
                free((char *)site.place.path);
                site.place.path = path_of(site.medium, "new");
                site.place.world = 2;
            }
            if (!ledger_has_failed()) judge_everything(&site, JUDGE_WHOLE);
            ledger->operations++;
            free_site(&site);
        }
    }
    if (!ledger_has_failed() && ledger->tallies[REFUSALS] == 0) ledger_fail("nothing was ever refused");
}

/* ---- Trials ---- */

enum kind { FULL, READ_ONLY, NOT_PERMITTED, FEW_FILES };
struct subject { enum kind kind; llvs_storage_kind storage; };
static const struct subject subjects[] = {
    { FULL, LLVS_STORAGE_FILE },        { FULL, LLVS_STORAGE_SQLITE },        { READ_ONLY, LLVS_STORAGE_FILE },
    { READ_ONLY, LLVS_STORAGE_SQLITE }, { NOT_PERMITTED, LLVS_STORAGE_FILE }, { NOT_PERMITTED, LLVS_STORAGE_SQLITE },
    { FEW_FILES, LLVS_STORAGE_FILE },   { FEW_FILES, LLVS_STORAGE_SQLITE },
};
static const struct trial trials[] = {
    {"file: the disk is full", &subjects[0]}, {"SQLite: the disk is full", &subjects[1]},
    {"file: the medium is read-only", &subjects[2]}, {"SQLite: the medium is read-only", &subjects[3]},
    {"file: not permitted", &subjects[4]}, {"SQLite: not permitted", &subjects[5]},
    {"file: too many open files", &subjects[6]}, {"SQLite: too many open files", &subjects[7]},
};

static void run(const struct trial *trial, const char *folder, uint64_t seed, double scale) {
    const struct subject *subject = trial->what;
    if (!may_mount && (subject->kind == FULL || subject->kind == READ_ONLY)) {
        printf("skipped: this process may not mount a file system (as root, or with user namespaces, it may)\n");
        return;
    }
    switch (subject->kind) {
    case FULL: full(folder, subject->storage, seed, scale); break;
    case READ_ONLY: read_only(folder, subject->storage, seed); break;
    case NOT_PERMITTED: not_permitted(folder, subject->storage, seed); break;
    default: few_files(folder, subject->storage, seed, scale); break;
    }
}

int main(int argc, char **argv) {
    prepare_mounts();
    static const struct planting plantings[] = {
        {GIVES_ANOTHER_REASON, "an error that says something else", "file: the disk is full"},
        {REFUSES_NOTHING, "a version that is acknowledged, and was not written", "file: the disk is full"},
        {REFUSES_NOTHING, "a version that is acknowledged, and was not written", "file: not permitted"},
        {LOSES_A_VERSION, "a version that is lost", "file: too many open files"},
        {NO_PLANT, NULL, NULL},
    };
    /* The first two need a file system of their own. */
    return run_trials("Media", trials, (int)(sizeof trials / sizeof trials[0]), run, may_mount ? plantings : plantings + 2, argc, argv);
}
