/*
 * Two devices, each with a store of its own, share notes through a folder.
 *
 *     exchange [directory]      (default: a new one in the system's temporary directory)
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llvs.h"

static void check(llvs_status status, llvs_error *error) {
    if (status == LLVS_OK) return;
    fprintf(stderr, "%s: %s\n", llvs_status_name(status), llvs_error_message(error));
    llvs_error_free(error);
    exit(1);
}

/* Opens a device's coordinator. It holds the current version, so that saves and reads need not name one. */
static llvs_coordinator *device(const char *directory, const char *name) {
    llvs_coordinator *coordinator;
    llvs_error *error;
    llvs_status status;
    char path[1024], url[1100];
    snprintf(path, sizeof path, "%s/%s.llvs", directory, name);
    snprintf(url, sizeof url, "file://%s/shared", directory);
    status = llvs_coordinator_open(llvs_str(path), NULL, &coordinator, &error);
    check(status, error);
    status = llvs_coordinator_attach(coordinator, llvs_str(url), NULL, &error);
    check(status, error);
    return coordinator;
}

static void save(llvs_coordinator *device, const char *id, const char *text) {
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_error *error;
    llvs_status status;
    change.kind = LLVS_CHANGE_UPDATE;
    change.id = llvs_str(id);
    change.data = llvs_str(text);
    status = llvs_coordinator_save(device, &change, 1, sizeof change, NULL, NULL, NULL, NULL, &error);
    check(status, error);
}

static llvs_status report(void *payload, const llvs_progress *progress, llvs_error **error) {
    (void)error;
    ++*(int *)payload;
    (void)progress; /* has stage, completed and total; returning LLVS_ERROR_CANCELLED would cancel */
    return LLVS_OK;
}

static void sync_device(llvs_coordinator *device, const char *name) {
    llvs_control control = LLVS_CONTROL_INIT;
    llvs_exchange_result *result;
    llvs_error *error;
    llvs_status status;
    size_t retrieved, sent, i;
    int calls = 0;
    control.progress = report;
    control.payload = &calls;
    status = llvs_coordinator_exchange(device, &control, &result, &error);
    check(status, error);
    retrieved = result->retrieved_count;
    sent = result->sent_count;
    printf("%s: %lu versions came, %lu went\n", name, (unsigned long)retrieved, (unsigned long)sent);
    for (i = 0; i < result->problem_count; i++)
        printf("  problem: %s\n", (const char *)result->problems[i]->message.data);
    llvs_exchange_result_free(result);
    status = llvs_coordinator_merge(device, NULL, NULL, &error);
    check(status, error);
}

static void print_value(llvs_coordinator *device, const char *name, const char *id) {
    llvs_buffer data;
    llvs_error *error;
    llvs_status status = llvs_coordinator_value(device, llvs_str(id), &data, NULL, &error);
    check(status, error);
    printf("%s reads %s = %s\n", name, id, data.data ? (char *)data.data : "(nothing)");
    llvs_buffer_dispose(&data);
}

int main(int argc, char **argv) {
    char made[] = "/tmp/llvs-example-XXXXXX";
    const char *directory = argc > 1 ? argv[1] : mkdtemp(made);
    llvs_coordinator *phone, *laptop;
    llvs_version_id one, two;
    llvs_error *error;
    llvs_status status;
    int round;

    if (!directory) { perror("mkdtemp"); return 1; }
    phone = device(directory, "phone");
    laptop = device(directory, "laptop");

    save(phone, "note/1", "buy milk");
    sync_device(phone, "phone");
    sync_device(laptop, "laptop");

    /* Both devices save while they are offline. */
    save(phone, "note/1", "buy oat milk");
    save(laptop, "note/2", "call Ann");

    for (round = 0; round < 2; round++) {
        sync_device(phone, "phone");
        sync_device(laptop, "laptop");
    }
    sync_device(phone, "phone");

    print_value(phone, "phone", "note/1");
    print_value(phone, "phone", "note/2");
    print_value(laptop, "laptop", "note/1");
    print_value(laptop, "laptop", "note/2");

    status = llvs_coordinator_current_version(phone, &one, &error);
    check(status, error);
    status = llvs_coordinator_current_version(laptop, &two, &error);
    check(status, error);
    printf("%s\n", strcmp(one.text, two.text) == 0 ? "Both are at the same version." : "The devices differ!");

    llvs_coordinator_free(phone);
    llvs_coordinator_free(laptop);
    return strcmp(one.text, two.text) != 0;
}
