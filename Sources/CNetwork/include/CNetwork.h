/* The functions of libcurl and libexpat, as far as the engine uses them, by pointers: the libraries are opened when the first exchange over
   a network is used, not linked. The types are those of curl.h and expat.h. */
#ifndef CNETWORK_H
#define CNETWORK_H
#include <curl/curl.h>
#include <expat.h>
#include <stddef.h>
#include <stdint.h>

/* The names after "curl_" and "XML_". One more is one more line. */
#define LLVS_CURL_FUNCTIONS(X)                                                                                   \
    X(easy_cleanup) X(easy_getinfo) X(easy_init) X(easy_setopt) X(easy_strerror) X(global_init) X(multi_add_handle) \
    X(multi_cleanup) X(multi_info_read) X(multi_init) X(multi_perform) X(multi_poll) X(multi_remove_handle)       \
    X(multi_setopt) X(slist_append) X(slist_free_all) X(version_info)
#define LLVS_EXPAT_FUNCTIONS(X)                                                                                  \
    X(ErrorString) X(GetErrorCode) X(Parse) X(ParserCreateNS) X(ParserFree) X(SetCharacterDataHandler)           \
    X(SetElementHandler) X(SetStartDoctypeDeclHandler) X(SetUserData) X(StopParser)

typedef struct llvs_curl {
#define LLVS_CURL_MEMBER(name) __typeof__(curl_##name) *_Nonnull name;
    LLVS_CURL_FUNCTIONS(LLVS_CURL_MEMBER)
#undef LLVS_CURL_MEMBER
} llvs_curl;

typedef struct llvs_expat {
#define LLVS_EXPAT_MEMBER(name) __typeof__(XML_##name) *_Nonnull name;
    LLVS_EXPAT_FUNCTIONS(LLVS_EXPAT_MEMBER)
#undef LLVS_EXPAT_MEMBER
} llvs_expat;

/* The functions of the library of that name, which stays open for good; the same at every call once one has succeeded. NULL when it
   cannot be opened, lacks a function or does not start: then why, cut to `size` bytes, in `problem`. Any thread. */
const llvs_curl *_Nullable llvs_curl_open(const char *_Nonnull name, char *_Nonnull problem, size_t size);
const llvs_expat *_Nullable llvs_expat_open(const char *_Nonnull name, char *_Nonnull problem, size_t size);

/* How credentials travel. */
typedef enum llvs_curl_scheme { LLVS_CURL_NONE, LLVS_CURL_BASIC, LLVS_CURL_DIGEST, LLVS_CURL_BEARER } llvs_curl_scheme;

/* One request. Texts may be NULL where there is nothing to say; libcurl copies them. */
typedef struct llvs_curl_request {
    const char *_Nullable method, *_Nullable url, *_Nullable user, *_Nullable password, *_Nullable token, *_Nullable ca_file,
                                                                                                              *_Nullable proxy;
    /* Hosts that are reached without a proxy, "*" for all; NULL: as the environment says (no_proxy). */
    const char *_Nullable no_proxy;
    /* As in "0-99". */
    const char *_Nullable range;
    /* Stays with the caller until the transfer is over. */
    struct curl_slist *_Nullable headers;
    /* Bytes that `read` gives; -1: no body. */
    int64_t body_size;
    /* How the credentials travel. */
    llvs_curl_scheme scheme;
    int is_head;
    /* Seconds without a byte, and until there is a connection. */
    int stall, connect;
    /* The last parameter of the callbacks. */
    void *_Nullable context;
    size_t (*_Nullable read)(char *_Nullable, size_t, size_t, void *_Nullable);
    size_t (*_Nullable write)(char *_Nullable, size_t, size_t, void *_Nullable);
    size_t (*_Nullable header)(char *_Nullable, size_t, size_t, void *_Nullable);
    int (*_Nullable seek)(void *_Nullable, curl_off_t, int);
    /* CURL_ERROR_SIZE bytes for what libcurl says. */
    char *_Nullable problem;
} llvs_curl_request;

/* What a request over SFTP says beside those. */
typedef struct llvs_curl_sftp {
    /* Files: the keys of hosts that are trusted, and the user's private key, which `password` opens; NULL: no key. */
    const char *_Nullable known_hosts, *_Nullable key_file;
    /* Commands before and after the transfer, as "rename \"a\" \"b\""; a star in front: whatever comes of it. Stay with the caller. */
    struct curl_slist *_Nullable before, *_Nullable after;
    /* There is no transfer: the URL is that of a directory. */
    int is_commands;
} llvs_curl_sftp;

/* Says all of a request to a handle, whatever was said to it before. What libcurl answers that it needs: CURLE_OK. */
CURLcode llvs_curl_prepare(const llvs_curl *_Nonnull curl, CURL *_Nonnull easy, const llvs_curl_request *_Nonnull request);
/* The same over SFTP. One handle is for one of the two. */
CURLcode llvs_curl_prepare_sftp(
    const llvs_curl *_Nonnull curl, CURL *_Nonnull easy, const llvs_curl_request *_Nonnull request, const llvs_curl_sftp *_Nonnull sftp);
/* Four connections for one host, kept open. */
void llvs_curl_prepare_multi(const llvs_curl *_Nonnull curl, CURLM *_Nonnull multi, int connections);

/* Moves all transfers on as far as they go, and waits up to so many milliseconds for more. SIGPIPE, which TLS may raise, does not reach the
   process. How many are still running. */
CURLMcode llvs_curl_step(const llvs_curl *_Nonnull curl, CURLM *_Nonnull multi, int milliseconds, int *_Nonnull running);
/* The next transfer that is over, and how it ended; NULL when there is none. */
CURL *_Nullable llvs_curl_next(const llvs_curl *_Nonnull curl, CURLM *_Nonnull multi, CURLcode *_Nonnull result);
/* The status that a proxy answered to CONNECT; 0 where none was asked. Of a transfer that is over and was not removed yet. */
int llvs_curl_connect_status(const llvs_curl *_Nonnull curl, CURL *_Nonnull easy);
/* Ends handles; transfers are to be removed before. SIGPIPE as above. */
void llvs_curl_remove(const llvs_curl *_Nonnull curl, CURLM *_Nonnull multi, CURL *_Nonnull easy);
void llvs_curl_close(const llvs_curl *_Nonnull curl, CURL *_Nonnull easy);
void llvs_curl_close_multi(const llvs_curl *_Nonnull curl, CURLM *_Nonnull multi);
#endif
