/* Processes that run one side of one workload, and files on disk. */
#ifndef BENCHMARKS_PROCESS_H
#define BENCHMARKS_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

enum { METRICS_MAX = 24, RUNS_MAX = 25 };
typedef struct metric {
    char name[40];
    double figure;
} metric;
typedef struct metrics {
    metric all[METRICS_MAX];
    size_t count;
} metrics;

/* Starts the program, waits, and collects the figures that it reports. With `takes_memory` also measures "memory": the peak of its RssAnon
   minus its RssAnon when the data was ready, in MiB, sampled every millisecond. */
metrics run_process(char *const arguments[], int takes_memory);
/* Returns RssAnon of a process, in KiB; 0 if the process has ended. */
long anonymous_memory(pid_t process);
/* Returns NaN if there is no such metric. */
double metric_named(const metrics *metrics, const char *name);
void set_metric(metrics *metrics, const char *name, double figure);

typedef struct disk_size {
    double apparent, allocated;
} disk_size;
/* Returns the size of the database in a fixture's folder, without its notes. */
disk_size size_on_disk(const char *folder);
/* Returns the absolute path of an existing folder. */
char *absolute_path(const char *path);
void remove_folder(const char *path);
/* Copies a folder. With `is_synced` also syncs the copy, so that no later sync has to write it. */
void copy_folder(const char *from, const char *to, int is_synced);

#endif
