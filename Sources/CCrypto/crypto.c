#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "CCrypto.h"
#include "CLLVSShims.h"
#include "prototypes.h"
#include <limits.h>
#include <string.h>

/* To add a function, add its name, and its prototype in prototypes.h. All are in libcrypto 3.0. */
#define LLVS_CRYPTO_FUNCTIONS(X) \
    X(BIO_free) X(BIO_new_mem_buf) X(ERR_pop_to_mark) X(ERR_set_mark) X(EVP_CIPHER_CTX_ctrl) X(EVP_CIPHER_CTX_free) X(EVP_CIPHER_CTX_new) \
    X(EVP_DecryptFinal_ex) X(EVP_DecryptInit_ex) X(EVP_DecryptUpdate) X(EVP_EncryptFinal_ex) X(EVP_EncryptInit_ex) \
    X(EVP_EncryptUpdate) X(EVP_PBE_scrypt) X(EVP_PKEY_CTX_free) X(EVP_PKEY_CTX_new) X(EVP_PKEY_derive) \
    X(EVP_PKEY_derive_init) X(EVP_PKEY_derive_set_peer) X(EVP_PKEY_free) X(EVP_PKEY_get_raw_public_key) \
    X(EVP_PKEY_new_raw_private_key) X(EVP_PKEY_new_raw_public_key) X(EVP_chacha20_poly1305) X(EVP_sha256) X(HMAC) \
    X(EVP_Digest) X(EVP_DigestSign) X(EVP_DigestSignInit) X(EVP_DigestVerify) X(EVP_DigestVerifyInit) \
    X(EVP_MD_CTX_free) X(EVP_MD_CTX_new) X(EVP_MD_fetch) X(EVP_MD_free) \
    X(EVP_PKEY_get_bits) X(EVP_PKEY_get_group_name) \
    X(PEM_read_bio_PrivateKey)

struct llvs_crypto_functions {
#define LLVS_CRYPTO_MEMBER(name) __typeof__(name) *name##_;
    LLVS_CRYPTO_FUNCTIONS(LLVS_CRYPTO_MEMBER)
#undef LLVS_CRYPTO_MEMBER
};

enum { key_size = 32, tag_size = 16 };

#define LLVS_CRYPTO_FUNCTION(name) {#name, offsetof(struct llvs_crypto_functions, name##_)},
static const llvs_shim_function names[] = {LLVS_CRYPTO_FUNCTIONS(LLVS_CRYPTO_FUNCTION)};

const llvs_crypto *llvs_crypto_open(const char *name, char *problem, size_t size) {
    static struct llvs_crypto_functions functions;
    static const llvs_crypto crypto = {&functions};
    static llvs_shim_library library = {names, sizeof names / sizeof names[0], &functions, NULL, 0};
    return llvs_shim_open_library(&library, name, problem, size) ? &crypto : NULL;
}

void llvs_crypto_wipe(void *memory, size_t size) {
    if (!memory || size == 0) return;
    memset(memory, 0, size);
    /* Makes the compiler assume that later code reads the memory. */
    __asm__ __volatile__("" : : "r"(memory) : "memory");
}

/* Ends a call. libcrypto retains errors per thread, and the host may use it as well: the host's errors stay, those of this call are
   removed. */
static int done(const llvs_crypto *c, int right) {
    c->functions->ERR_pop_to_mark_();
    return right;
}

int llvs_crypto_x25519_public(const llvs_crypto *c, const uint8_t *secret, uint8_t *out) {
    c->functions->ERR_set_mark_();
    EVP_PKEY *key = c->functions->EVP_PKEY_new_raw_private_key_(llvs_x25519, NULL, secret, key_size);
    size_t size = key_size;
    int right = key && c->functions->EVP_PKEY_get_raw_public_key_(key, out, &size) == 1 && size == key_size;
    c->functions->EVP_PKEY_free_(key);
    return done(c, right);
}

int llvs_crypto_x25519(const llvs_crypto *c, const uint8_t *secret, const uint8_t *peer, uint8_t *out) {
    c->functions->ERR_set_mark_();
    EVP_PKEY *mine = c->functions->EVP_PKEY_new_raw_private_key_(llvs_x25519, NULL, secret, key_size);
    EVP_PKEY *theirs = c->functions->EVP_PKEY_new_raw_public_key_(llvs_x25519, NULL, peer, key_size);
    EVP_PKEY_CTX *context = mine ? c->functions->EVP_PKEY_CTX_new_(mine, NULL) : NULL;
    size_t size = key_size;
    int right = theirs && context && c->functions->EVP_PKEY_derive_init_(context) == 1 &&
                c->functions->EVP_PKEY_derive_set_peer_(context, theirs) == 1 &&
                c->functions->EVP_PKEY_derive_(context, out, &size) == 1 && size == key_size;
    static const uint8_t zeros[key_size];
    if (right && llvs_shim_equal(out, zeros, key_size)) right = 0;
    if (!right) llvs_crypto_wipe(out, key_size);
    c->functions->EVP_PKEY_CTX_free_(context);
    c->functions->EVP_PKEY_free_(theirs);
    c->functions->EVP_PKEY_free_(mine);
    return done(c, right);
}

int llvs_crypto_hmac(const llvs_crypto *c, const void *key, size_t key_bytes, const void *data, size_t size, uint8_t *out) {
    unsigned made = 0;
    if (key_bytes > INT_MAX) return 0;
    c->functions->ERR_set_mark_();
    const EVP_MD *digest = c->functions->EVP_sha256_();
    int right = c->functions->HMAC_(digest, key ? key : "", (int)key_bytes, data ? data : "", size, out, &made) != NULL && made == key_size;
    return done(c, right);
}

int llvs_crypto_md5(const llvs_crypto *c, const void *data, size_t size, uint8_t *out) {
    c->functions->ERR_set_mark_();
    EVP_MD *digest = c->functions->EVP_MD_fetch_(NULL, "MD5", NULL);
    unsigned made = 0;
    int right = digest && c->functions->EVP_Digest_(data ? data : "", size, out, &made, digest, NULL) == 1 && made == llvs_crypto_md5_size;
    c->functions->EVP_MD_free_(digest);
    return done(c, right);
}

int llvs_crypto_hkdf(const llvs_crypto *c, const void *secret, size_t secret_size, const void *salt, size_t salt_size, const void *info,
                     size_t info_size, uint8_t *out) {
    uint8_t extracted[key_size], expanded[256];
    if (info_size >= sizeof expanded) return 0;
    if (info_size > 0) memcpy(expanded, info, info_size);
    expanded[info_size] = 1;
    int right = llvs_crypto_hmac(c, salt, salt_size, secret, secret_size, extracted) &&
                llvs_crypto_hmac(c, extracted, sizeof extracted, expanded, info_size + 1, out);
    llvs_crypto_wipe(extracted, sizeof extracted);
    return right;
}

int llvs_crypto_scrypt(const llvs_crypto *c, const void *passphrase, size_t passphrase_size, const void *salt, size_t salt_size,
                       unsigned work, uint8_t *out) {
    if (work < 1 || work > 20) return 0;
    c->functions->ERR_set_mark_();
    uint64_t n = (uint64_t)1 << work, most = n * 1024 + (1 << 20);
    const char *text = passphrase ? passphrase : "";
    int right = c->functions->EVP_PBE_scrypt_(text, passphrase_size, salt, salt_size, n, 8, 1, most, out, key_size) == 1;
    return done(c, right);
}

int llvs_crypto_seal(const llvs_crypto *c, const uint8_t *key, const uint8_t *nonce, const void *also, size_t also_size, const void *data,
                     size_t size, void *out) {
    if (size > INT_MAX - tag_size || also_size > INT_MAX) return 0;
    c->functions->ERR_set_mark_();
    EVP_CIPHER_CTX *context = c->functions->EVP_CIPHER_CTX_new_();
    uint8_t *to = out;
    int made = 0, more = 0;
    int right = context && c->functions->EVP_EncryptInit_ex_(context, c->functions->EVP_chacha20_poly1305_(), NULL, key, nonce) == 1 &&
                (also_size == 0 || c->functions->EVP_EncryptUpdate_(context, NULL, &made, also, (int)also_size) == 1) &&
                (made = 0, 1) &&
                (size == 0 || c->functions->EVP_EncryptUpdate_(context, to, &made, data, (int)size) == 1) &&
                c->functions->EVP_EncryptFinal_ex_(context, to + made, &more) == 1 && (size_t)made + (size_t)more == size &&
                c->functions->EVP_CIPHER_CTX_ctrl_(context, llvs_aead_get_tag, tag_size, to + size) == 1;
    c->functions->EVP_CIPHER_CTX_free_(context);
    return done(c, right);
}

int llvs_crypto_unseal(const llvs_crypto *c, const uint8_t *key, const uint8_t *nonce, const void *also, size_t also_size, const void *data,
                       size_t size, void *out) {
    if (size < tag_size || size > INT_MAX || also_size > INT_MAX) return 0;
    size -= tag_size;
    c->functions->ERR_set_mark_();
    EVP_CIPHER_CTX *context = c->functions->EVP_CIPHER_CTX_new_();
    const uint8_t *from = data;
    uint8_t *to = out, tag[tag_size];
    memcpy(tag, from + size, tag_size);
    int made = 0, more = 0;
    int right = context && c->functions->EVP_DecryptInit_ex_(context, c->functions->EVP_chacha20_poly1305_(), NULL, key, nonce) == 1 &&
                c->functions->EVP_CIPHER_CTX_ctrl_(context, llvs_aead_set_tag, tag_size, tag) == 1 &&
                (also_size == 0 || c->functions->EVP_DecryptUpdate_(context, NULL, &made, also, (int)also_size) == 1) &&
                (made = 0, 1) &&
                (size == 0 || c->functions->EVP_DecryptUpdate_(context, to, &made, from, (int)size) == 1) &&
                c->functions->EVP_DecryptFinal_ex_(context, to + made, &more) == 1 && (size_t)made + (size_t)more == size;
    c->functions->EVP_CIPHER_CTX_free_(context);
    if (!right) llvs_crypto_wipe(out, size);
    return done(c, right);
}

int llvs_crypto_sign_p256(const llvs_crypto *c, const void *pem, size_t pem_size, const void *data, size_t size, uint8_t *out,
                          size_t *made) {
    *made = 0;
    if (pem_size == 0 || pem_size > INT_MAX) return 0;
    c->functions->ERR_set_mark_();
    BIO *text = c->functions->BIO_new_mem_buf_(pem, (int)pem_size);
    /* The empty passphrase. Without one, OpenSSL would ask for it at the terminal. */
    EVP_PKEY *key = text ? c->functions->PEM_read_bio_PrivateKey_(text, NULL, NULL, "") : NULL;
    char group[32] = "";
    size_t group_size = 0, room = llvs_crypto_signature_size;
    int right = key && c->functions->EVP_PKEY_get_bits_(key) == 256 &&
                c->functions->EVP_PKEY_get_group_name_(key, group, sizeof group, &group_size) == 1 && strcmp(group, "prime256v1") == 0;
    EVP_MD_CTX *context = right ? c->functions->EVP_MD_CTX_new_() : NULL;
    right = context && c->functions->EVP_DigestSignInit_(context, NULL, c->functions->EVP_sha256_(), NULL, key) == 1 &&
            c->functions->EVP_DigestSign_(context, out, &room, data, size) == 1;
    if (right) *made = room;
    c->functions->EVP_MD_CTX_free_(context);
    c->functions->EVP_PKEY_free_(key);
    c->functions->BIO_free_(text);
    return done(c, right);
}

int llvs_crypto_ed25519_public(const llvs_crypto *c, const uint8_t *seed, uint8_t *out) {
    c->functions->ERR_set_mark_();
    EVP_PKEY *key = c->functions->EVP_PKEY_new_raw_private_key_(llvs_ed25519, NULL, seed, key_size);
    size_t size = key_size;
    int right = key && c->functions->EVP_PKEY_get_raw_public_key_(key, out, &size) == 1 && size == key_size;
    c->functions->EVP_PKEY_free_(key);
    return done(c, right);
}

int llvs_crypto_ed25519_sign(const llvs_crypto *c, const uint8_t *seed, const void *data, size_t size, uint8_t *out) {
    c->functions->ERR_set_mark_();
    EVP_PKEY *key = c->functions->EVP_PKEY_new_raw_private_key_(llvs_ed25519, NULL, seed, key_size);
    EVP_MD_CTX *context = key ? c->functions->EVP_MD_CTX_new_() : NULL;
    size_t made = llvs_crypto_ed25519_size;
    int right = context && c->functions->EVP_DigestSignInit_(context, NULL, NULL, NULL, key) == 1 &&
                c->functions->EVP_DigestSign_(context, out, &made, data ? data : "", size) == 1 && made == llvs_crypto_ed25519_size;
    c->functions->EVP_MD_CTX_free_(context);
    c->functions->EVP_PKEY_free_(key);
    return done(c, right);
}

int llvs_crypto_ed25519_verify(const llvs_crypto *c, const uint8_t *public_key, const void *data, size_t size, const uint8_t *signature) {
    c->functions->ERR_set_mark_();
    EVP_PKEY *key = c->functions->EVP_PKEY_new_raw_public_key_(llvs_ed25519, NULL, public_key, key_size);
    EVP_MD_CTX *context = key ? c->functions->EVP_MD_CTX_new_() : NULL;
    int right = context && c->functions->EVP_DigestVerifyInit_(context, NULL, NULL, NULL, key) == 1 &&
                c->functions->EVP_DigestVerify_(context, signature, llvs_crypto_ed25519_size, data ? data : "", size) == 1;
    c->functions->EVP_MD_CTX_free_(context);
    c->functions->EVP_PKEY_free_(key);
    return done(c, right);
}
