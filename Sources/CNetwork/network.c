#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "CNetwork.h"
#include "CLLVSShims.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

static llvs_curl curl_functions;
static llvs_expat expat_functions;

#define LLVS_CURL_FUNCTION(name) {"curl_" #name, offsetof(llvs_curl, name)},
#define LLVS_EXPAT_FUNCTION(name) {"XML_" #name, offsetof(llvs_expat, name)},
static const llvs_shim_function curl_names[] = {LLVS_CURL_FUNCTIONS(LLVS_CURL_FUNCTION)};
static const llvs_shim_function expat_names[] = {LLVS_EXPAT_FUNCTIONS(LLVS_EXPAT_FUNCTION)};

static int start_curl(char *problem, size_t size) {
    CURLcode result = curl_functions.global_init(CURL_GLOBAL_ALL);
    if (result != CURLE_OK) snprintf(problem, size, "libcurl does not start: %s", curl_functions.easy_strerror(result));
    return result == CURLE_OK;
}

const llvs_curl *llvs_curl_open(const char *name, char *problem, size_t size) {
    static llvs_shim_library library = {curl_names, sizeof curl_names / sizeof curl_names[0], &curl_functions, start_curl, 0};
    return llvs_shim_open_library(&library, name, problem, size) ? &curl_functions : NULL;
}

const llvs_expat *llvs_expat_open(const char *name, char *problem, size_t size) {
    static llvs_shim_library library = {expat_names, sizeof expat_names / sizeof expat_names[0], &expat_functions, NULL, 0};
    return llvs_shim_open_library(&library, name, problem, size) ? &expat_functions : NULL;
}

#define LLVS_SAY(option, value)                                            \
    do {                                                                   \
        CURLcode said = curl->easy_setopt(easy, option, value);            \
        if (said != CURLE_OK && first == CURLE_OK) first = said;           \
    } while (0)

/* Sets the options of every transfer. */
static CURLcode prepare_transfer(const llvs_curl *curl, CURL *easy, const llvs_curl_request *r) {
    CURLcode first = CURLE_OK;
    LLVS_SAY(CURLOPT_URL, r->url);
    LLVS_SAY(CURLOPT_HTTPGET, 1L);
    LLVS_SAY(CURLOPT_UPLOAD, r->body_size >= 0 ? 1L : 0L);
    LLVS_SAY(CURLOPT_NOBODY, r->is_head ? 1L : 0L);
    LLVS_SAY(CURLOPT_INFILESIZE_LARGE, (curl_off_t)r->body_size);
    LLVS_SAY(CURLOPT_RANGE, r->range);
    LLVS_SAY(CURLOPT_READFUNCTION, r->read);
    LLVS_SAY(CURLOPT_READDATA, r->context);
    LLVS_SAY(CURLOPT_SEEKFUNCTION, r->seek);
    LLVS_SAY(CURLOPT_SEEKDATA, r->context);
    LLVS_SAY(CURLOPT_WRITEFUNCTION, r->write);
    LLVS_SAY(CURLOPT_WRITEDATA, r->context);
    LLVS_SAY(CURLOPT_PRIVATE, r->context);
    LLVS_SAY(CURLOPT_ERRORBUFFER, r->problem);
    LLVS_SAY(CURLOPT_PROXY, r->proxy);
    LLVS_SAY(CURLOPT_NOPROXY, r->no_proxy);
    LLVS_SAY(CURLOPT_NOSIGNAL, 1L);
    LLVS_SAY(CURLOPT_CONNECTTIMEOUT, (long)r->connect);
    LLVS_SAY(CURLOPT_LOW_SPEED_LIMIT, 1L);
    LLVS_SAY(CURLOPT_LOW_SPEED_TIME, (long)r->stall);
    LLVS_SAY(CURLOPT_TCP_KEEPALIVE, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
    /* A cancelled transfer does not wait for a running name lookup. Older libraries do not know the option. */
    (void)curl->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
    return first;
}

/* Allows only these protocols. Newer libraries take them as text, which older ones do not know. */
static CURLcode allow_protocols(const llvs_curl *curl, CURL *easy, long protocols) {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
    return curl->easy_setopt(easy, CURLOPT_PROTOCOLS, protocols);
#pragma clang diagnostic pop
}

CURLcode llvs_curl_prepare(const llvs_curl *curl, CURL *easy, const llvs_curl_request *r) {
    CURLcode first = prepare_transfer(curl, easy, r), allowed = allow_protocols(curl, easy, CURLPROTO_HTTP | CURLPROTO_HTTPS);
    if (first == CURLE_OK) first = allowed;
    LLVS_SAY(CURLOPT_CUSTOMREQUEST, r->is_head ? NULL : r->method);
    LLVS_SAY(CURLOPT_HTTPHEADER, r->headers);
    LLVS_SAY(CURLOPT_HEADERFUNCTION, r->header);
    LLVS_SAY(CURLOPT_HEADERDATA, r->context);
    /* The engine follows redirects itself, since it knows where credentials may be sent. */
    LLVS_SAY(CURLOPT_FOLLOWLOCATION, 0L);
    LLVS_SAY(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    LLVS_SAY(CURLOPT_USERNAME, r->scheme == LLVS_CURL_BASIC || r->scheme == LLVS_CURL_DIGEST ? r->user : NULL);
    LLVS_SAY(CURLOPT_PASSWORD, r->scheme == LLVS_CURL_BASIC || r->scheme == LLVS_CURL_DIGEST ? r->password : NULL);
    LLVS_SAY(CURLOPT_XOAUTH2_BEARER, r->scheme == LLVS_CURL_BEARER ? r->token : NULL);
    unsigned long ways = r->scheme == LLVS_CURL_DIGEST ? CURLAUTH_DIGEST : r->scheme == LLVS_CURL_BEARER ? CURLAUTH_BEARER : CURLAUTH_BASIC;
    LLVS_SAY(CURLOPT_HTTPAUTH, (long)ways);
    LLVS_SAY(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    LLVS_SAY(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    LLVS_SAY(CURLOPT_SSL_VERIFYPEER, 1L);
    LLVS_SAY(CURLOPT_SSL_VERIFYHOST, 2L);
    if (r->ca_file) LLVS_SAY(CURLOPT_CAINFO, r->ca_file);
    return first;
}

CURLcode llvs_curl_prepare_sftp(const llvs_curl *curl, CURL *easy, const llvs_curl_request *r, const llvs_curl_sftp *s) {
    CURLcode first = prepare_transfer(curl, easy, r), allowed = allow_protocols(curl, easy, CURLPROTO_SFTP);
    if (first == CURLE_OK) first = allowed;
    if (s->is_commands) LLVS_SAY(CURLOPT_NOBODY, 1L);
    LLVS_SAY(CURLOPT_QUOTE, s->before);
    LLVS_SAY(CURLOPT_POSTQUOTE, s->after);
    LLVS_SAY(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    LLVS_SAY(CURLOPT_USERNAME, r->user);
    /* With neither a key nor a password, the agent's keys are used. With both, the password is that of the key. */
    LLVS_SAY(CURLOPT_PASSWORD, s->key_file ? NULL : r->password);
    LLVS_SAY(CURLOPT_SSH_PRIVATE_KEYFILE, s->key_file);
    LLVS_SAY(CURLOPT_KEYPASSWD, s->key_file ? r->password : NULL);
    long ways = s->key_file ? CURLSSH_AUTH_PUBLICKEY : r->password ? CURLSSH_AUTH_PASSWORD | CURLSSH_AUTH_KEYBOARD : CURLSSH_AUTH_AGENT;
    LLVS_SAY(CURLOPT_SSH_AUTH_TYPES, ways);
    /* A host that is not in this file is refused. Without a file libcurl would accept any host. */
    LLVS_SAY(CURLOPT_SSH_KNOWNHOSTS, s->known_hosts ? s->known_hosts : "/dev/null");
    LLVS_SAY(CURLOPT_FTP_CREATE_MISSING_DIRS, 1L);
    /* The server's umask restricts these permissions. */
    LLVS_SAY(CURLOPT_NEW_FILE_PERMS, 0666L);
    LLVS_SAY(CURLOPT_NEW_DIRECTORY_PERMS, 0777L);
    return first;
}

void llvs_curl_prepare_multi(const llvs_curl *curl, CURLM *multi, int connections) {
    (void)curl->multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)connections);
    (void)curl->multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)connections);
    (void)curl->multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
}

/* Blocks SIGPIPE, since OpenSSL writes to sockets without MSG_NOSIGNAL. A signal that was pending before stays pending. */
typedef struct { sigset_t before; int was_pending, is_blocked; } quiet;

static int pipe_is_pending(void) {
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1;
}

static quiet begin_quiet(void) {
    quiet found = {.was_pending = pipe_is_pending()};
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    found.is_blocked = pthread_sigmask(SIG_BLOCK, &pipe, &found.before) == 0;
    return found;
}

static void end_quiet(quiet found) {
    if (!found.is_blocked) return;
    if (!found.was_pending && pipe_is_pending()) {
        sigset_t pipe;
        int number;
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        sigwait(&pipe, &number);
    }
    pthread_sigmask(SIG_SETMASK, &found.before, NULL);
}

CURLMcode llvs_curl_step(const llvs_curl *curl, CURLM *multi, int milliseconds, int *running) {
    quiet before = begin_quiet();
    CURLMcode result = curl->multi_perform(multi, running);
    if (result == CURLM_OK && *running > 0 && milliseconds > 0) {
        result = curl->multi_poll(multi, NULL, 0, milliseconds, NULL);
        if (result == CURLM_OK) result = curl->multi_perform(multi, running);
    }
    end_quiet(before);
    return result;
}

CURL *llvs_curl_next(const llvs_curl *curl, CURLM *multi, CURLcode *result) {
    int left;
    for (CURLMsg *message; (message = curl->multi_info_read(multi, &left));) {
        if (message->msg != CURLMSG_DONE) continue;
        *result = message->data.result;
        return message->easy_handle;
    }
    return NULL;
}

int llvs_curl_connect_status(const llvs_curl *curl, CURL *easy) {
    long status = 0;
    return curl->easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &status) == CURLE_OK && status > 0 && status < 1000 ? (int)status : 0;
}

void llvs_curl_remove(const llvs_curl *curl, CURLM *multi, CURL *easy) {
    quiet before = begin_quiet();
    (void)curl->multi_remove_handle(multi, easy);
    end_quiet(before);
}

void llvs_curl_close(const llvs_curl *curl, CURL *easy) {
    quiet before = begin_quiet();
    curl->easy_cleanup(easy);
    end_quiet(before);
}

void llvs_curl_close_multi(const llvs_curl *curl, CURLM *multi) {
    quiet before = begin_quiet();
    (void)curl->multi_cleanup(multi);
    end_quiet(before);
}
