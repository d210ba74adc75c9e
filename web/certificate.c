#define _DEFAULT_SOURCE /* gethostname */
#include "web/certificate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEN_YEARS_S (10L * 365 * 24 * 3600)

/* ",IP:fd00::1", ",DNS:octd.lab"; an address of IPv6 may stand in brackets. */
static size_t write_name(char *text, size_t room, char *name)
{
    struct in6_addr address;
    const size_t n = strlen(name);
    if (name[0] == '[' && name[n - 1] == ']') {
        name[n - 1] = '\0';
        name++;
    }
    const bool is_address =
        inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
    return (size_t)snprintf(text, room, ",%s:%s", is_address ? "IP" : "DNS", name);
}

/* "DNS:octd.lab,DNS:localhost,IP:127.0.0.1" */
static bool write_names(char *text, size_t room, const char *host, const char *names)
{
    char all[2048];
    size_t n = (size_t)snprintf(text, room, "DNS:localhost,IP:127.0.0.1,IP:::1");
    snprintf(all, sizeof(all), "%s,%s", host, names);
    for (char *rest, *name = strtok_r(all, ", ", &rest); name && n < room;
         name = strtok_r(NULL, ", ", &rest))
        n += write_name(text + n, room - n, name);
    return n < room;
}

static bool fill(X509 *x, EVP_PKEY *key, const char *host, const char *names)
{
    char text[4096];
    unsigned char serial[16];
    X509_NAME *subject = X509_get_subject_name(x);
    if (RAND_bytes(serial, sizeof(serial)) != 1 || !write_names(text, sizeof(text), host, names))
        return false;
    serial[0] &= 0x7f;
    BIGNUM *number = BN_bin2bn(serial, sizeof(serial), NULL);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, text);
    const bool good = number && extension && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x)) &&
                      X509_set_version(x, 2) &&
                      X509_gmtime_adj(X509_getm_notBefore(x), -24L * 3600) &&
                      X509_gmtime_adj(X509_getm_notAfter(x), TEN_YEARS_S) &&
                      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                                 (const unsigned char *)host, -1, -1, 0) &&
                      X509_set_issuer_name(x, subject) && X509_set_pubkey(x, key) &&
                      X509_add_ext(x, extension, -1) && X509_sign(x, key, EVP_sha256()) > 0;
    X509_EXTENSION_free(extension);
    BN_free(number);
    return good;
}

static enum oct_err create(const char *path, mode_t mode, FILE **file, struct oct_error *err)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    *file = fd < 0 ? NULL : fdopen(fd, "w");
    return *file ? OCT_OK : oct_fail_errno(err, OCT_E_IO, errno, "%s", path);
}

static enum oct_err save(X509 *x, EVP_PKEY *key, const char *certificate, const char *key_path,
                         struct oct_error *err)
{
    FILE *file;
    enum oct_err code = create(key_path, 0600, &file, err);
    if (code)
        return code;
    bool good = PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1;
    good = fclose(file) == 0 && good;
    if (good && !(code = create(certificate, 0644, &file, err))) {
        good = PEM_write_X509(file, x) == 1;
        good = fclose(file) == 0 && good;
    }
    if (!good && !code)
        code = oct_fail(err, OCT_E_IO, "%s, %s: cannot be written", certificate, key_path);
    if (code)
        unlink(key_path); /* half a pair is of no use */
    return code;
}

enum oct_err oct_web_certificate_make(const char *certificate, const char *key_path,
                                      const char *names, struct oct_error *err)
{
    char host[256] = "octd";
    enum oct_err code = OCT_OK;
    if (access(certificate, F_OK) == 0 || access(key_path, F_OK) == 0)
        return OCT_OK;
    gethostname(host, sizeof(host) - 1);
    host[63] = '\0'; /* a common name has no more */
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    if (!key || !x || !fill(x, key, host, names))
        code = oct_fail(err, OCT_E_CONFIG, "web.certificate: none can be made: %s",
                        ERR_error_string(ERR_get_error(), NULL));
    else
        code = save(x, key, certificate, key_path, err);
    X509_free(x);
    EVP_PKEY_free(key);
    return code;
}

enum oct_err oct_web_certificate_fingerprint(const char *certificate, char text[96],
                                             struct oct_error *err)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    FILE *file = fopen(certificate, "re");
    X509 *x = file ? PEM_read_X509(file, NULL, NULL, NULL) : NULL;
    const int why = errno;
    if (file)
        fclose(file);
    if (!file)
        return oct_fail_errno(err, OCT_E_CONFIG, why, "web.certificate: %s", certificate);
    if (!x || X509_digest(x, EVP_sha256(), sum, &n) != 1 || n > 32) {
        X509_free(x);
        return oct_fail(err, OCT_E_CONFIG, "web.certificate: %s: no certificate in PEM",
                        certificate);
    }
    X509_free(x);
    for (unsigned i = 0; i < n; i++)
        snprintf(text + 3 * i, 96 - 3 * i, i + 1 < n ? "%02X:" : "%02X", sum[i]);
    return OCT_OK;
}
