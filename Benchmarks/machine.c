#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "machine.h"
#include "workload.h"
#include <llvs.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Reads the rest of the first line that begins with `name`, without the separator. */
static void read_line(const char *path, const char *name, char *to, size_t size) {
    char line[512];
    FILE *file = fopen(path, "r");
    snprintf(to, size, "?");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0) {
            const char *value = line + strlen(name);
            value += strspn(value, " \t:");
            snprintf(to, size, "%.*s", (int)strcspn(value, "\"\\\n"), value);
            break;
        }
    if (file) fclose(file);
}

static const char *file_system(const char *folder) {
    static const struct { long type; const char *name;
    } known[] = { { 0xEF53, "ext4" },          { 0x58465342, "xfs" }, { 0x9123683E, "btrfs" }, { 0x01021994, "tmpfs" },
                  { 0x794C7630, "overlayfs" }, { 0x2FC12FC1, "zfs" }, { 0x6969, "nfs" } };
    struct statfs status;
    size_t i;
    if (statfs(folder, &status) != 0) return "?";
    for (i = 0; i < sizeof known / sizeof *known; i++)
        if ((unsigned)status.f_type == (unsigned)known[i].type) return known[i].name;
    return "another";
}

void describe_machine(const char *folder, FILE *json) {
    char processor[128], memory[64], load[64];
    struct utsname system;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    double gigabytes;
    read_line("/proc/cpuinfo", "model name", processor, sizeof processor);
    read_line("/proc/meminfo", "MemTotal", memory, sizeof memory);
    read_line("/proc/loadavg", "", load, sizeof load);
    if (uname(&system) != 0) snprintf(system.release, sizeof system.release, "?");
    gigabytes = atof(memory) / 1048576;
    /* Remove the suffix of the distribution from the kernel's version. */
    system.release[strspn(system.release, "0123456789.")] = 0;
    load[strcspn(load, " ")] = 0;
    printf("llvs %s, SQLite %s, %s, %ld cores, %.0f GiB, %s, Linux %s, load average %s\n", llvs_version_string(), sqlite3_libversion(),
           processor, cores, gigabytes, file_system(folder), system.release, load);
    if (json)
        fprintf(json,
                "{\"about\": {\"llvs\": \"%s\", \"sqlite\": \"%s\", \"processor\": \"%s\", \"cores\": %ld, \"gigabytes\": %.0f, "
                "\"file_system\": \"%s\", \"kernel\": \"%s\", \"load\": %s}}\n",
                llvs_version_string(), sqlite3_libversion(), processor, cores, gigabytes, file_system(folder), system.release,
                load[0] == '?' ? "null" : load);
}

/* Returns for how many seconds all processors together were neither idle nor waiting for a disk. */
static double busy_seconds(void) {
    double user = 0, nice = 0, system = 0, idle, waiting, interrupts = 0, softly = 0, stolen = 0;
    FILE *file = fopen("/proc/stat", "r");
    if (file) {
        if (fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &waiting, &interrupts, &softly, &stolen) < 3)
            user = nice = system = 0;
        fclose(file);
    }
    return (user + nice + system + interrupts + softly + stolen) / (double)sysconf(_SC_CLK_TCK);
}

static double seconds_of(int whose) {
    struct rusage usage;
    if (getrusage(whose, &usage) != 0) return 0;
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

moment moment_now(void) {
    moment moment;
    moment.seconds = now();
    moment.busy = busy_seconds();
    moment.ours = seconds_of(RUSAGE_SELF) + seconds_of(RUSAGE_CHILDREN);
    return moment;
}

double share_of_others(moment since) {
    moment until = moment_now();
    double share =
        (until.busy - since.busy - (until.ours - since.ours)) / (until.seconds - since.seconds) / (double)sysconf(_SC_NPROCESSORS_ONLN);
    return share > 0 ? share : 0;
}

void warn_of_others(void) {
    moment start = moment_now();
    double share;
    sleep(1);
    share = share_of_others(start);
    if (share > SHARE_TOLERATED)
        printf("WARNING: others take %.0f %% of the processors: times mean little, ratios something.\n", share * 100);
}
