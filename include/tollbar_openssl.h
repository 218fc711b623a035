/* tollbar_openssl.h: TLS of tollbar's clients by OpenSSL (3.0 or later; 1.1.1 has the same calls).
 *
 * libtollbar-redis needs libc only, so TLS is a library of its own, libtollbar-redis-openssl, which
 * `make openssl` builds. It is one source file, and a program may compile it itself:
 * crates/tollbar-redis-c/openssl/tollbar_openssl.c.
 *
 *     SSL_CTX *context = tollbar_openssl_context("/etc/ssl/store-ca.pem", NULL, NULL);
 *     tollbar_tls tls = TOLLBAR_TLS_INIT;
 *     tollbar_openssl_table(context, &tls);
 *     error = tollbar_lease_client_new_tls(lease, url, strlen(url), &tls, &column, &client);
 */
#ifndef TOLLBAR_OPENSSL_H
#define TOLLBAR_OPENSSL_H

#include "tollbar_redis.h"

#include <openssl/ssl.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fills `table`, which starts from TOLLBAR_TLS_INIT, for clients that use `context`. The context
 * must outlive the clients. Each connection verifies the server's certificate and that one of its
 * alternative names is the URL's host, and sends the host's name (SNI). The context's verify mode
 * and callback do not count; a function of SSL_CTX_set_cert_verify_callback decides in OpenSSL's
 * place. With a NULL context the table has no functions, and tollbar_lease_client_new_tls refuses
 * it. */
void tollbar_openssl_table(SSL_CTX *context, tollbar_tls *table);

/* Makes a context with TLS 1.2 or later, or returns NULL: OpenSSL's error queue (ERR_get_error) says
 * why. It trusts the certificates in the file `authorities`, or the system's if that is NULL. The
 * client shows the certificate in the file `certificate`, whose key is in the file `key`, unless
 * both are NULL. The files are PEM. SSL_CTX_free frees the context. */
SSL_CTX *tollbar_openssl_context(const char *authorities, const char *certificate, const char *key);

#ifdef __cplusplus
}
#endif

#endif
