/* The functions of libcurl and libexpat that the engine uses. The libraries are opened when the first exchange over a network is used,
   instead of being linked. The types are those of curl.h and expat.h. */
#ifndef CNETWORK_H
#define CNETWORK_H
#if !__has_include(<curl/curl.h>)
#error "LLVS needs the headers of libcurl: install libcurl4-openssl-dev (Debian, Ubuntu) or libcurl-devel (Fedora)."
#endif
#if !__has_include(<expat.h>)
#error "LLVS needs the headers of libexpat: install libexpat1-dev (Debian, Ubuntu) or expat-devel (Fedora)."
#endif
#include <curl/curl.h>
#include <expat.h>
#include <stddef.h>
#include <stdint.h>

/* The names after "curl_" and "XML_". To add a function, add its name. */
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

/* Opens the library of that name, permanently, and returns its functions; the same pointer at every call after one succeeded. If the
   library cannot be opened, lacks a function or does not start, returns NULL and writes the reason, cut to `size` bytes, to `problem`. Any
   thread. */
const llvs_curl *_Nullable llvs_curl_open(const char *_Nonnull name, char *_Nonnull problem, size_t size);
const llvs_expat *_Nullable llvs_expat_open(const char *_Nonnull name, char *_Nonnull problem, size_t size);

/* How credentials are sent. */
typedef enum llvs_curl_scheme { LLVS_CURL_NONE, LLVS_CURL_BASIC, LLVS_CURL_DIGEST, LLVS_CURL_BEARER } llvs_curl_scheme;

/* One request. A text that does not apply is NULL. libcurl copies the texts. */
typedef struct llvs_curl_request {
    const char *_Nullable method, *_Nullable url, *_Nullable user, *_Nullable password, *_Nullable token, *_Nullable ca_file,
                                                                                                              *_Nullable proxy;
    /* Hosts that are reached without a proxy, "*" for all; NULL: those of the environment variable no_proxy. */
    const char *_Nullable no_proxy;
    /* A range of bytes, as in "0-99". */
    const char *_Nullable range;
    /* Owned by the caller; must stay valid until the transfer ends. */
    struct curl_slist *_Nullable headers;
    /* How many bytes `read` returns in all; -1: no body. */
    int64_t body_size;
    /* How the credentials are sent. */
    llvs_curl_scheme scheme;
    int is_head;
    /* The most seconds without a byte, and until a connection is open. */
    int stall, connect;
    /* The last parameter of the callbacks. */
    void *_Nullable context;
    size_t (*_Nullable read)(char *_Nullable, size_t, size_t, void *_Nullable);
    size_t (*_Nullable write)(char *_Nullable, size_t, size_t, void *_Nullable);
    size_t (*_Nullable header)(char *_Nullable, size_t, size_t, void *_Nullable);
    int (*_Nullable seek)(void *_Nullable, curl_off_t, int);
    /* CURL_ERROR_SIZE bytes for the error message of libcurl. */
    char *_Nullable problem;
} llvs_curl_request;

/* The options that a request over SFTP has in addition. */
typedef struct llvs_curl_sftp {
    /* Paths of files: the keys of trusted hosts, and the user's private key, which `password` decrypts; NULL: no key. */
    const char *_Nullable known_hosts, *_Nullable key_file;
    /* Commands before and after the transfer, as "rename \"a\" \"b\"". If one with a star in front fails, that is ignored. Owned by the
       caller. */
    struct curl_slist *_Nullable before, *_Nullable after;
    /* 1: there is no transfer, and the URL is that of a directory. */
    int is_commands;
} llvs_curl_sftp;

/* Sets all options of a request on a handle, and replaces those of an earlier request. Returns CURLE_OK, or the first error. */
CURLcode llvs_curl_prepare(const llvs_curl *_Nonnull curl, CURL *_Nonnull easy, const llvs_curl_request *_Nonnull request);
/* Sets all options of a request over SFTP. A handle must not be used for both functions. */
CURLcode llvs_curl_prepare_sftp(
    const llvs_curl *_Nonnull curl, CURL *_Nonnull easy, const llvs_curl_request *_Nonnull request, const llvs_curl_sftp *_Nonnull sftp);
/* Sets how many connections to one host there may be. They stay open between requests. */
void llvs_curl_prepare_multi(const llvs_curl *_Nonnull curl, CURLM *_Nonnull multi, int connections);

/* Continues all transfers, then waits up to this many milliseconds for more bytes. Sets `running` to how many transfers have not ended.
   SIGPIPE, which TLS may raise, does not reach the process. */
CURLMcode llvs_curl_step(const llvs_curl *_Nonnull curl, CURLM *_Nonnull multi, int milliseconds, int *_Nonnull running);
/* Returns the next transfer that ended, and sets its result; NULL if there is none. */
CURL *_Nullable llvs_curl_next(const llvs_curl *_Nonnull curl, CURLM *_Nonnull multi, CURLcode *_Nonnull result);
/* Returns the status of the proxy's response to CONNECT; 0 without one. The transfer must have ended, and not be removed. */
int llvs_curl_connect_status(const llvs_curl *_Nonnull curl, CURL *_Nonnull easy);
/* Close handles; remove the transfers before. SIGPIPE does not reach the process here either. */
void llvs_curl_remove(const llvs_curl *_Nonnull curl, CURLM *_Nonnull multi, CURL *_Nonnull easy);
void llvs_curl_close(const llvs_curl *_Nonnull curl, CURL *_Nonnull easy);
void llvs_curl_close_multi(const llvs_curl *_Nonnull curl, CURLM *_Nonnull multi);
#endif
