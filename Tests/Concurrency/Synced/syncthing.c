#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "syncthing.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../Faults/files.h"
#include "../ledger.h"

const char *syncthing_is_missing(void) {
    if (system("syncthing --version >/dev/null 2>&1") != 0) return "there is no `syncthing` on PATH (Debian's package: syncthing)";
    return NULL;
}

/* Stores the first line that a command prints. */
static void ask(char *answer, size_t size, const char *format, const char *home) {
    char command[1200];
    FILE *output;
    snprintf(command, sizeof command, format, home);
    output = popen(command, "r");
    if (!output || !fgets(answer, (int)size, output)) broken("no answer from: %s", command);
    pclose(output);
    answer[strcspn(answer, "\n")] = 0;
}

/* Returns a port that was free a moment ago. Only a program that requests a random port could take it meanwhile. */
static int free_port(void) {
    struct sockaddr_in address = {0};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        broken("no free port");
    close(listener);
    return ntohs(address.sin_port);
}

/* Everything that would contact another machine is off. A change is noticed after a second. */
static void write_settings(const struct syncthing pair[2], int which) {
    char *path = path_of(pair[which].home, "config.xml");
    FILE *file = fopen(path, "w");
    if (!file) broken("cannot write %s", path);
    fprintf(file,
            "<configuration version=\"36\">\n<folder id=\"shared\" label=\"shared\" path=\"%s\" type=\"sendreceive\" rescanIntervalS=\"3\" "
            "fsWatcherEnabled=\"true\" fsWatcherDelayS=\"1\" ignorePerms=\"false\" autoNormalize=\"true\">\n",
            pair[which].folder);
    for (int i = 0; i < 2; i++) fprintf(file, "<device id=\"%s\"></device>\n", pair[i].id);
    fprintf(file, "<minDiskFree "
                  "unit=\"%%\">0</minDiskFree><pullerPauseS>1</pullerPauseS><maxConflicts>-1</maxConflicts><markerName>.stfolder</"
                  "markerName><disableFsync>true</disableFsync>\n</folder>\n");
    for (int i = 0; i < 2; i++)
        fprintf(file, "<device id=\"%s\" name=\"%d\" compression=\"never\"><address>tcp://127.0.0.1:%d</address></device>\n", pair[i].id, i,
                pair[i].port);
    fprintf(
        file,
        "<gui "
        "enabled=\"false\"></gui>\n<options><listenAddress>tcp://127.0.0.1:%d</listenAddress><globalAnnounceEnabled>false</"
        "globalAnnounceEnabled>"
        "<localAnnounceEnabled>false</localAnnounceEnabled><relaysEnabled>false</relaysEnabled><natEnabled>false</"
        "natEnabled><urAccepted>-1</urAccepted>"
        "<crashReportingEnabled>false</crashReportingEnabled><autoUpgradeIntervalH>0</autoUpgradeIntervalH><startBrowser>false</"
        "startBrowser>"
        "<stunKeepaliveStartS>0</stunKeepaliveStartS><reconnectionIntervalS>1</reconnectionIntervalS><setLowPriority>false</setLowPriority>"
        "<minHomeDiskFree unit=\"%%\">0</minHomeDiskFree></options>\n</configuration>\n",
        pair[which].port);
    if (fclose(file) != 0) broken("cannot write %s", path);
    free(path);
}

static pid_t start(const struct syncthing *one) {
    char *log = path_of(one->home, "log"), home[1200];
    pid_t child = fork();
    if (child < 0) broken("cannot fork");
    if (child == 0) {
        int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0666);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (out < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) _exit(126);
        snprintf(home, sizeof home, "--home=%s", one->home);
        setenv("HOME", one->home, 1);
        execlp("syncthing", "syncthing", "serve", home, "--no-browser", "--no-restart", "--no-upgrade", "--no-default-folder",
               "--skip-port-probing", (char *)NULL);
        _exit(127);
    }
    free(log);
    return child;
}

void start_syncthings(struct syncthing pair[2]) {
    char answer[200];
    for (int i = 0; i < 2; i++) {
        char *marker = path_of(pair[i].folder, ".stfolder");
        make_folder(pair[i].home);
        make_folder(pair[i].folder);
        make_folder(marker);
        free(marker);
        ask(answer, sizeof answer, "syncthing generate --home='%s' --no-default-folder 2>&1", pair[i].home);
        ask(pair[i].id, sizeof pair[i].id, "syncthing --home='%s' --device-id", pair[i].home);
        pair[i].port = free_port();
    }
    for (int i = 0; i < 2; i++) write_settings(pair, i);
    for (int i = 0; i < 2; i++) pair[i].process = start(&pair[i]);
}

void stop_syncthings(struct syncthing pair[2]) {
    for (int i = 0; i < 2; i++) if (pair[i].process > 0) kill(pair[i].process, SIGKILL);
    for (int i = 0; i < 2; i++) {
        if (pair[i].process > 0) waitpid(pair[i].process, NULL, 0);
        pair[i].process = 0;
    }
}

void check_syncthings(struct syncthing pair[2]) {
    for (int i = 0; i < 2; i++) {
        int status;
        if (pair[i].process <= 0 || waitpid(pair[i].process, &status, WNOHANG) == 0) continue;
        pair[i].process = 0;
        ledger_fail("syncthing ended by itself (status %d)", status);
    }
}
