/* The functions of libcrypto (OpenSSL 3) that encryption needs. The library is opened when the first key or encrypted file is used,
   instead of being linked. Functions return 1, or 0 if they fail, and wipe their own copies of secrets. */
#ifndef CCRYPTO_H
#define CCRYPTO_H
#include <stddef.h>
#include <stdint.h>

typedef struct llvs_crypto { const struct llvs_crypto_functions *_Nonnull functions; } llvs_crypto;

/* Opens the library of that name, permanently, and returns its functions; the same pointer at every call after one succeeded. If the
   library cannot be opened or lacks a function, returns NULL and writes the reason, cut to `size` bytes, to `problem`. Any thread. */
const llvs_crypto *_Nullable llvs_crypto_open(const char *_Nonnull name, char *_Nonnull problem, size_t size);

/* X25519 (RFC 7748): the public key of a secret, and the secret that two sides share. The latter also fails for a public key of low
   order. */
int llvs_crypto_x25519_public(const llvs_crypto *_Nonnull crypto, const uint8_t *_Nonnull secret, uint8_t *_Nonnull out);
int llvs_crypto_x25519(const llvs_crypto *_Nonnull crypto, const uint8_t *_Nonnull secret, const uint8_t *_Nonnull peer,
                       uint8_t *_Nonnull out);

/* HMAC-SHA-256 (RFC 2104) and one block of HKDF-SHA-256 (RFC 5869): 32 bytes. */
int llvs_crypto_hmac(const llvs_crypto *_Nonnull crypto, const void *_Nullable key, size_t key_size, const void *_Nullable data,
                     size_t size, uint8_t *_Nonnull out);
int llvs_crypto_hkdf(const llvs_crypto *_Nonnull crypto, const void *_Nullable secret, size_t secret_size, const void *_Nullable salt,
                     size_t salt_size, const void *_Nullable info, size_t info_size, uint8_t *_Nonnull out);

/* MD5 (RFC 1321). It is not secure, but some services require it with an upload. Also returns 0 if the system forbids it (FIPS). */
enum { llvs_crypto_md5_size = 16 };
int llvs_crypto_md5(const llvs_crypto *_Nonnull crypto, const void *_Nullable data, size_t size, uint8_t *_Nonnull out);

/* scrypt (RFC 7914) with N = 2^work, r = 8, p = 1: 32 bytes. Uses 2^work KiB of memory during the call. */
int llvs_crypto_scrypt(const llvs_crypto *_Nonnull crypto, const void *_Nullable passphrase, size_t passphrase_size,
                       const void *_Nonnull salt, size_t salt_size, unsigned work, uint8_t *_Nonnull out);

/* ChaCha20-Poly1305 (RFC 8439). `also` is the associated data, which is authenticated but not encrypted; it may be empty. `out` of seal
   has 16 bytes more than `data`, that of unseal 16 fewer; it may be `data` itself. If the bytes were changed, unseal returns 0 and fills
   `out` with zeros. */
int llvs_crypto_seal(const llvs_crypto *_Nonnull crypto, const uint8_t *_Nonnull key, const uint8_t *_Nonnull nonce,
                     const void *_Nullable also, size_t also_size, const void *_Nullable data, size_t size, void *_Nonnull out);
int llvs_crypto_unseal(const llvs_crypto *_Nonnull crypto, const uint8_t *_Nonnull key, const uint8_t *_Nonnull nonce,
                       const void *_Nullable also, size_t also_size, const void *_Nonnull data, size_t size, void *_Nonnull out);

/* ECDSA over P-256 with SHA-256 (FIPS 186-4). Writes the signature in DER, up to 80 bytes, to `out`, and its size to `made`. The private
   key is PEM without a passphrase. Also returns 0 for a key of another kind. */
enum { llvs_crypto_signature_size = 80 };
int llvs_crypto_sign_p256(const llvs_crypto *_Nonnull crypto, const void *_Nonnull pem, size_t pem_size, const void *_Nonnull data,
                          size_t size, uint8_t *_Nonnull out, size_t *_Nonnull made);

/* Ed25519 (RFC 8032): the public key of a seed of 32 bytes, a signature of 64 bytes, and whether a signature is right. */
enum { llvs_crypto_ed25519_size = 64 };
int llvs_crypto_ed25519_public(const llvs_crypto *_Nonnull crypto, const uint8_t *_Nonnull seed, uint8_t *_Nonnull out);
int llvs_crypto_ed25519_sign(const llvs_crypto *_Nonnull crypto, const uint8_t *_Nonnull seed, const void *_Nullable data, size_t size,
                             uint8_t *_Nonnull out);
int llvs_crypto_ed25519_verify(const llvs_crypto *_Nonnull crypto, const uint8_t *_Nonnull public_key, const void *_Nullable data,
                               size_t size, const uint8_t *_Nonnull signature);

/* Fills memory with zeros. Compilers do not remove the call. */
void llvs_crypto_wipe(void *_Nullable memory, size_t size);
#endif
