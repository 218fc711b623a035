/* TLS of a client by OpenSSL: see tollbar_openssl.h. Each connection has an SSL between two memory
 * BIOs, so nothing here reads or writes a socket, and nothing blocks. */
#include "tollbar_openssl.h"

#include <arpa/inet.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    SSL *ssl;
    BIO *in;
    BIO *out;
    /* What failed, in OpenSSL's words. NULL: nothing has failed, or OpenSSL has no words for it. */
    const char *reason;
} connection_t;

static int at_most(size_t length) {
    return length < INT_MAX ? (int)length : INT_MAX;
}

static void end(void *connection) {
    connection_t *c = connection;
    if (c != NULL) {
        /* It frees the BIOs, too. */
        SSL_free(c->ssl);
        free(c);
    }
}

static int is_address(const char *host) {
    unsigned char octets[16];
    return inet_pton(AF_INET, host, octets) == 1 || inet_pton(AF_INET6, host, octets) == 1;
}

static int as_verified(int is_verified, X509_STORE_CTX *chain) {
    (void)chain;
    return is_verified;
}

/* The certificate must be for the host, by its alternative names and not by its subject, whatever
 * the context says of verification. Without a function here the context's would decide. */
static int expect(SSL *ssl, const char *host) {
    SSL_set_verify(ssl, SSL_VERIFY_PEER, as_verified);
    if (is_address(host))
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return SSL_set1_host(ssl, host) && SSL_set_tlsext_host_name(ssl, host);
}

static void *start(void *context, const char *host) {
    connection_t *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->ssl = SSL_new(context);
    c->in = BIO_new(BIO_s_mem());
    c->out = BIO_new(BIO_s_mem());
    if (c->ssl == NULL || c->in == NULL || c->out == NULL || !expect(c->ssl, host)) {
        BIO_free(c->in);
        BIO_free(c->out);
        end(c);
        return NULL;
    }
    /* An empty BIO is not the end of the connection. */
    BIO_set_mem_eof_return(c->in, -1);
    SSL_set_bio(c->ssl, c->in, c->out);
    SSL_set_connect_state(c->ssl);
    return c;
}

/* What a call of SSL has done: its bytes, 0 if it waits for bytes of the server, -1 for a fault. After a
 * fault it empties OpenSSL's queue of errors, which the program's other connections also read. */
static int64_t done(connection_t *c, int result) {
    if (result > 0)
        return result;
    switch (SSL_get_error(c->ssl, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
    /* The server has ended TLS, and ends the connection, too. */
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        c->reason = ERR_reason_error_string(ERR_peek_last_error());
        ERR_clear_error();
        return -1;
    }
}

static int64_t cipher_in(void *connection, const void *bytes, size_t length) {
    connection_t *c = connection;
    int n = BIO_write(c->in, bytes, at_most(length));
    return n > 0 ? n : -1;
}

static int64_t cipher_out(void *connection, void *bytes, size_t length) {
    connection_t *c = connection;
    int n = BIO_pending(c->out) > 0 ? BIO_read(c->out, bytes, at_most(length)) : 0;
    return n > 0 ? n : 0;
}

static int64_t plain_in(void *connection, const void *bytes, size_t length) {
    connection_t *c = connection;
    ERR_clear_error();
    return done(c, SSL_write(c->ssl, bytes, at_most(length)));
}

static int64_t plain_out(void *connection, void *bytes, size_t length) {
    connection_t *c = connection;
    ERR_clear_error();
    return done(c, SSL_read(c->ssl, bytes, at_most(length)));
}

static int32_t wants(void *connection) {
    connection_t *c = connection;
    ERR_clear_error();
    switch (done(c, SSL_do_handshake(c->ssl))) {
    case 1:
        return TOLLBAR_TLS_OPEN;
    case 0:
        return TOLLBAR_TLS_HANDSHAKE;
    default:
        return TOLLBAR_TLS_FAULT;
    }
}

static const char *fault(void *connection) {
    const connection_t *c = connection;
    long verified = c != NULL ? SSL_get_verify_result(c->ssl) : X509_V_OK;
    if (verified != X509_V_OK)
        return X509_verify_cert_error_string(verified);
    return c != NULL && c->reason != NULL ? c->reason : "the connection cannot be secured";
}

void tollbar_openssl_table(SSL_CTX *context, tollbar_tls *table) {
    static const tollbar_tls calls = {sizeof(tollbar_tls), 0, NULL, start, cipher_in, cipher_out,
                                      plain_in, plain_out, wants, fault, end};
    static const tollbar_tls none = TOLLBAR_TLS_INIT;
    *table = context != NULL ? calls : none;
    table->context = context;
}

static int trust(SSL_CTX *context, const char *authorities) {
    return authorities != NULL ? SSL_CTX_load_verify_locations(context, authorities, NULL)
                               : SSL_CTX_set_default_verify_paths(context);
}

static int show(SSL_CTX *context, const char *certificate, const char *key) {
    return certificate == NULL ||
           (SSL_CTX_use_certificate_chain_file(context, certificate) == 1 &&
            SSL_CTX_use_PrivateKey_file(context, key != NULL ? key : certificate, SSL_FILETYPE_PEM) == 1 &&
            SSL_CTX_check_private_key(context) == 1);
}

SSL_CTX *tollbar_openssl_context(const char *authorities, const char *certificate, const char *key) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (context == NULL)
        return NULL;
    if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) && trust(context, authorities) &&
        show(context, certificate, key))
        return context;
    SSL_CTX_free(context);
    return NULL;
}
