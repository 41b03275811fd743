/* What is used of OpenSSL 3, so that building needs none of its headers. The types are opaque; scripts/suites/30-library compiles this file
   after OpenSSL's own headers, so a prototype that differs is an error there. */
#ifndef CCRYPTO_PROTOTYPES_H
#define CCRYPTO_PROTOTYPES_H
#include <stddef.h>
#include <stdint.h>

typedef struct bio_st BIO;
typedef struct engine_st ENGINE;
typedef struct evp_cipher_st EVP_CIPHER;
typedef struct evp_cipher_ctx_st EVP_CIPHER_CTX;
typedef struct evp_md_st EVP_MD;
typedef struct evp_md_ctx_st EVP_MD_CTX;
typedef struct evp_pkey_st EVP_PKEY;
typedef struct evp_pkey_ctx_st EVP_PKEY_CTX;
typedef struct ossl_lib_ctx_st OSSL_LIB_CTX;
typedef int pem_password_cb(char *text, int size, int for_writing, void *context);

enum { llvs_x25519 = 1034, llvs_ed25519 = 1087, llvs_aead_get_tag = 0x10, llvs_aead_set_tag = 0x11 };
#ifdef EVP_PKEY_X25519
_Static_assert(llvs_x25519 == EVP_PKEY_X25519 && llvs_ed25519 == EVP_PKEY_ED25519 && llvs_aead_get_tag == EVP_CTRL_AEAD_GET_TAG &&
                   llvs_aead_set_tag == EVP_CTRL_AEAD_SET_TAG,
               "the numbers are not OpenSSL's");
#endif

int BIO_free(BIO *bio);
BIO *BIO_new_mem_buf(const void *bytes, int size);
int ERR_pop_to_mark(void);
int ERR_set_mark(void);
int EVP_CIPHER_CTX_ctrl(EVP_CIPHER_CTX *context, int command, int number, void *pointer);
void EVP_CIPHER_CTX_free(EVP_CIPHER_CTX *context);
EVP_CIPHER_CTX *EVP_CIPHER_CTX_new(void);
int EVP_DecryptFinal_ex(EVP_CIPHER_CTX *context, unsigned char *out, int *made);
int EVP_DecryptInit_ex(EVP_CIPHER_CTX *context, const EVP_CIPHER *cipher, ENGINE *engine, const unsigned char *key,
                       const unsigned char *nonce);
int EVP_DecryptUpdate(EVP_CIPHER_CTX *context, unsigned char *out, int *made, const unsigned char *in, int size);
int EVP_EncryptFinal_ex(EVP_CIPHER_CTX *context, unsigned char *out, int *made);
int EVP_EncryptInit_ex(EVP_CIPHER_CTX *context, const EVP_CIPHER *cipher, ENGINE *engine, const unsigned char *key,
                       const unsigned char *nonce);
int EVP_EncryptUpdate(EVP_CIPHER_CTX *context, unsigned char *out, int *made, const unsigned char *in, int size);
int EVP_PBE_scrypt(const char *passphrase, size_t passphrase_size, const unsigned char *salt, size_t salt_size, uint64_t n, uint64_t r,
                   uint64_t p, uint64_t most_memory, unsigned char *out, size_t size);
void EVP_PKEY_CTX_free(EVP_PKEY_CTX *context);
EVP_PKEY_CTX *EVP_PKEY_CTX_new(EVP_PKEY *key, ENGINE *engine);
int EVP_PKEY_derive(EVP_PKEY_CTX *context, unsigned char *out, size_t *size);
int EVP_PKEY_derive_init(EVP_PKEY_CTX *context);
int EVP_PKEY_derive_set_peer(EVP_PKEY_CTX *context, EVP_PKEY *peer);
void EVP_PKEY_free(EVP_PKEY *key);
int EVP_PKEY_get_bits(const EVP_PKEY *key);
int EVP_PKEY_get_group_name(const EVP_PKEY *key, char *name, size_t room, size_t *size);
int EVP_PKEY_get_raw_public_key(const EVP_PKEY *key, unsigned char *out, size_t *size);
EVP_PKEY *EVP_PKEY_new_raw_private_key(int type, ENGINE *engine, const unsigned char *key, size_t size);
EVP_PKEY *EVP_PKEY_new_raw_public_key(int type, ENGINE *engine, const unsigned char *key, size_t size);
const EVP_CIPHER *EVP_chacha20_poly1305(void);
const EVP_MD *EVP_sha256(void);
unsigned char *HMAC(const EVP_MD *digest, const void *key, int key_size, const unsigned char *data, size_t size, unsigned char *out,
                    unsigned int *made);
int EVP_Digest(const void *data, size_t size, unsigned char *out, unsigned int *made, const EVP_MD *digest, ENGINE *engine);
int EVP_DigestSign(EVP_MD_CTX *context, unsigned char *out, size_t *size, const unsigned char *data, size_t data_size);
int EVP_DigestSignInit(EVP_MD_CTX *context, EVP_PKEY_CTX **key_context, const EVP_MD *digest, ENGINE *engine, EVP_PKEY *key);
int EVP_DigestVerify(EVP_MD_CTX *context, const unsigned char *signature, size_t size, const unsigned char *data, size_t data_size);
int EVP_DigestVerifyInit(EVP_MD_CTX *context, EVP_PKEY_CTX **key_context, const EVP_MD *digest, ENGINE *engine, EVP_PKEY *key);
void EVP_MD_CTX_free(EVP_MD_CTX *context);
EVP_MD_CTX *EVP_MD_CTX_new(void);
EVP_MD *EVP_MD_fetch(OSSL_LIB_CTX *context, const char *algorithm, const char *properties);
void EVP_MD_free(EVP_MD *digest);
EVP_PKEY *PEM_read_bio_PrivateKey(BIO *bio, EVP_PKEY **key, pem_password_cb *password, void *context);
#endif
