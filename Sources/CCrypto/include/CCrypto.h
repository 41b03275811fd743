/* What encryption needs of libcrypto (OpenSSL 3), by pointers: the library is opened when the first key or encrypted file is used, not
   linked. Functions give 1, or 0 when they fail; nothing that they kept for themselves stays in memory. */
#ifndef CCRYPTO_H
#define CCRYPTO_H
#include <stddef.h>
#include <stdint.h>

typedef struct llvs_crypto { const struct llvs_crypto_functions *_Nonnull functions; } llvs_crypto;

/* The functions of the library of that name, which stays open for good; the same at every call once one has succeeded. NULL when it cannot
   be opened or lacks a function: then why, cut to `size` bytes, in `problem`. Any thread. */
const llvs_crypto *_Nullable llvs_crypto_open(const char *_Nonnull name, char *_Nonnull problem, size_t size);

/* X25519 (RFC 7748): the public half of a secret, and what two sides share. The latter is 0 for a public half of low order, too. */
int llvs_crypto_x25519_public(const llvs_crypto *_Nonnull crypto, const uint8_t *_Nonnull secret, uint8_t *_Nonnull out);
int llvs_crypto_x25519(const llvs_crypto *_Nonnull crypto, const uint8_t *_Nonnull secret, const uint8_t *_Nonnull peer,
                       uint8_t *_Nonnull out);

/* HMAC-SHA-256 (RFC 2104) and one block of HKDF-SHA-256 (RFC 5869): 32 bytes. */
int llvs_crypto_hmac(const llvs_crypto *_Nonnull crypto, const void *_Nullable key, size_t key_size, const void *_Nullable data,
                     size_t size, uint8_t *_Nonnull out);
int llvs_crypto_hkdf(const llvs_crypto *_Nonnull crypto, const void *_Nullable secret, size_t secret_size, const void *_Nullable salt,
                     size_t salt_size, const void *_Nullable info, size_t info_size, uint8_t *_Nonnull out);

/* MD5 (RFC 1321), which keeps nothing safe: some services want it beside what they are sent. 0 also where the system allows none (FIPS). */
enum { llvs_crypto_md5_size = 16 };
int llvs_crypto_md5(const llvs_crypto *_Nonnull crypto, const void *_Nullable data, size_t size, uint8_t *_Nonnull out);

/* scrypt (RFC 7914) with N = 2^work, r = 8, p = 1: 32 bytes. Takes 2^work KiB of memory meanwhile. */
int llvs_crypto_scrypt(const llvs_crypto *_Nonnull crypto, const void *_Nullable passphrase, size_t passphrase_size,
                       const void *_Nonnull salt, size_t salt_size, unsigned work, uint8_t *_Nonnull out);

/* ChaCha20-Poly1305 (RFC 8439); `also` is what is not encrypted and has to be the same, and may be 0 bytes. `out` of seal has 16 bytes more
   than `data`, that of unseal 16 fewer; it may be `data` itself. Of bytes that somebody changed unseal gives 0, and zeros. */
int llvs_crypto_seal(const llvs_crypto *_Nonnull crypto, const uint8_t *_Nonnull key, const uint8_t *_Nonnull nonce,
                     const void *_Nullable also, size_t also_size, const void *_Nullable data, size_t size, void *_Nonnull out);
int llvs_crypto_unseal(const llvs_crypto *_Nonnull crypto, const uint8_t *_Nonnull key, const uint8_t *_Nonnull nonce,
                       const void *_Nullable also, size_t also_size, const void *_Nonnull data, size_t size, void *_Nonnull out);

/* ECDSA over P-256 with SHA-256 (FIPS 186-4): the signature in DER, up to 80 bytes in `out`, and how many in `made`. The private key is PEM
   without a passphrase. 0 also for a key of another kind. */
enum { llvs_crypto_signature_size = 80 };
int llvs_crypto_sign_p256(const llvs_crypto *_Nonnull crypto, const void *_Nonnull pem, size_t pem_size, const void *_Nonnull data,
                          size_t size, uint8_t *_Nonnull out, size_t *_Nonnull made);

/* Zeros, which no compiler takes away. */
void llvs_crypto_wipe(void *_Nullable memory, size_t size);
/* Whether both are the same, in a time that tells nothing of where they differ. */
int llvs_crypto_equal(const void *_Nonnull a, const void *_Nonnull b, size_t size);
#endif
