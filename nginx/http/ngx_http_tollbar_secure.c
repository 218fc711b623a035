/* TLS between a worker's client and its store, by the OpenSSL that nginx has. */

#include "ngx_http_tollbar.h"

#if (NGX_HTTP_SSL)
#include <openssl/err.h>
#include <tollbar_openssl.h>
#endif

typedef ngx_http_tollbar_sync_t sync_t;

static const char *words[] = { "ssl_trusted_certificate=", "ssl_certificate=", "ssl_certificate_key=" };

static char *make(ngx_conf_t *cf, ngx_str_t *name, sync_t *sync);

ngx_int_t ngx_http_tollbar_secure_read(ngx_conf_t *cf, ngx_str_t *argument, sync_t *sync)
{
    ngx_uint_t n;
    size_t length;
    ngx_str_t *file;

    for (n = 0; n < sizeof(words) / sizeof(words[0]); n++) {
        length = ngx_strlen(words[n]);
        file = &sync->files[n];
        if (ngx_strncmp(argument->data, words[n], length) == 0) {
            file->data = argument->data + length;
            file->len = argument->len - length;
            if (file->len == 0) {
                (void) ngx_tollbar_conf_refuse(cf, "invalid value \"%V\", it must be the path of a file", argument);
                return NGX_ERROR;
            }
            return ngx_conf_full_name(cf->cycle, file, 1);
        }
    }
    return NGX_DECLINED;
}

char *ngx_http_tollbar_secure_check(ngx_conf_t *cf, ngx_str_t *name, sync_t *sync)
{
    const ngx_str_t *url = &sync->url;
    ngx_flag_t secure = ngx_strncmp(url->data, "rediss://", 9) == 0 || ngx_strncmp(url->data, "valkeys://", 10) == 0;
    ngx_flag_t has_files = sync->files[0].len != 0 || sync->files[1].len != 0 || sync->files[2].len != 0;

    if (!secure && has_files) {
        return ngx_tollbar_conf_refuse(cf, "\"ssl_trusted_certificate\", \"ssl_certificate\" and \"ssl_certificate_key\" must have "
                                       "sync=rediss:// beside them, in zone \"%V\"", name);
    }
    if ((sync->files[1].len != 0) != (sync->files[2].len != 0)) {
        return ngx_tollbar_conf_refuse(cf, "\"ssl_certificate\" and \"ssl_certificate_key\" must be together, in zone \"%V\"", name);
    }
    return secure ? make(cf, name, sync) : NGX_CONF_OK;
}

#if (NGX_HTTP_SSL)

/* A store that is reached by TLS. */
struct ngx_http_tollbar_secure_s {
    /* The name in the URL, which the certificate must have. NULL if the URL has an address. */
    const char *host;
    tollbar_tls tls;
};

typedef struct ngx_http_tollbar_secure_s secure_t;

static void *start(void *context, const char *host);
static ngx_flag_t same_files(const sync_t *a, const sync_t *b);
static const secure_t *find(ngx_conf_t *cf, const sync_t *sync);
static char *refuse(ngx_conf_t *cf, ngx_str_t *name, sync_t *sync, ngx_uint_t file);
static int no_password(char *to, int size, int writes, void *data);
static void end(void *context);

/* Makes the context in the master, which can read files that the workers cannot. Zones with the same
 * files have one. */
static char *make(ngx_conf_t *cf, ngx_str_t *name, sync_t *sync)
{
    ngx_str_t *files = sync->files;
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cf->pool, 0);
    secure_t *secure = ngx_pcalloc(cf->pool, sizeof(secure_t));
    const secure_t *before = find(cf, sync);
    SSL_CTX *context;

    if (cleanup == NULL || secure == NULL) {
        return NGX_CONF_ERROR;
    }
    if (before != NULL) {
        secure->tls = before->tls;
        sync->secure = secure;
        return NGX_CONF_OK;
    }
    ERR_clear_error();
    context = tollbar_openssl_context((const char *) files[0].data, NULL, NULL);
    if (context == NULL) {
        return refuse(cf, name, sync, 0);
    }
    cleanup->handler = end;
    cleanup->data = context;
    /* nginx has no terminal at which OpenSSL could ask. */
    SSL_CTX_set_default_passwd_cb(context, no_password);
    if (files[1].len != 0 && SSL_CTX_use_certificate_chain_file(context, (const char *) files[1].data) != 1) {
        return refuse(cf, name, sync, 1);
    }
    if (files[2].len != 0
        && SSL_CTX_use_PrivateKey_file(context, (const char *) files[2].data, SSL_FILETYPE_PEM) != 1)
    {
        return refuse(cf, name, sync, 2);
    }
    /* OpenSSL has compared the key with the certificate only if both are of one kind, such as RSA. */
    if (files[1].len != 0 && SSL_CTX_check_private_key(context) != 1) {
        return refuse(cf, name, sync, 2);
    }
    tollbar_openssl_table(context, &secure->tls);
    sync->secure = secure;
    return NGX_CONF_OK;
}

/* TLS of an earlier zone with the same files, or NULL. */
static const secure_t *find(ngx_conf_t *cf, const sync_t *sync)
{
    ngx_http_tollbar_main_conf_t *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_tollbar_module);
    ngx_shm_zone_t **zones = main->zones.elts;
    const sync_t *other;
    ngx_uint_t n;

    for (n = 0; n < main->zones.nelts; n++) {
        other = ((ngx_http_tollbar_zone_t *) zones[n]->data)->sync;
        if (other != NULL && other != sync && other->secure != NULL && same_files(other, sync)) {
            return other->secure;
        }
    }
    return NULL;
}

static ngx_flag_t same_files(const sync_t *a, const sync_t *b)
{
    const ngx_str_t *one, *other;
    ngx_uint_t n;

    for (n = 0; n < sizeof(words) / sizeof(words[0]); n++) {
        one = &a->files[n];
        other = &b->files[n];
        if (one->len != other->len || (one->len != 0 && ngx_memcmp(one->data, other->data, one->len) != 0)) {
            return 0;
        }
    }
    return 1;
}

ngx_flag_t ngx_http_tollbar_secure_same(const sync_t *a, const sync_t *b)
{
    const char *hosts[2];

    if (a->secure == NULL || b->secure == NULL) {
        return a->secure == b->secure;
    }
    hosts[0] = a->secure->host != NULL ? a->secure->host : "";
    hosts[1] = b->secure->host != NULL ? b->secure->host : "";
    return same_files(a, b) && ngx_strcmp(hosts[0], hosts[1]) == 0;
}

static char *refuse(ngx_conf_t *cf, ngx_str_t *name, sync_t *sync, ngx_uint_t file)
{
    /* The first error is the nearest to the cause. */
    unsigned long first = ERR_peek_error();
    const char *why = ERR_GET_LIB(first) == ERR_LIB_SYS ? strerror(ERR_GET_REASON(first)) : ERR_reason_error_string(first);
    ngx_str_t word = { ngx_strlen(words[file]) - 1, (u_char *) words[file] };

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" cannot use \"%V\" \"%V\", it must be a PEM file that nginx can read, "
                       "a key without a password and of its certificate: %s",
                       name, &word, &sync->files[file], why != NULL ? why : "OpenSSL does not say why");
    ERR_clear_error();
    return NGX_CONF_ERROR;
}

static int no_password(char *to, int size, int writes, void *data)
{
    (void) to;
    (void) size;
    (void) writes;
    (void) data;
    return 0;
}

static void end(void *context)
{
    SSL_CTX_free(context);
}

void ngx_http_tollbar_secure_name(sync_t *sync, const char *host)
{
    if (sync->secure != NULL) {
        sync->secure->host = host;
    }
}

int32_t ngx_http_tollbar_secure_client(const sync_t *sync, const tollbar_lease *lease, size_t *column, tollbar_lease_client **client)
{
    tollbar_tls tls = TOLLBAR_TLS_INIT;

    if (sync->secure == NULL) {
        return tollbar_lease_client_new(lease, (const char *) sync->url.data, sync->url.len, column, client);
    }
    tls = sync->secure->tls;
    tls.context = sync->secure;
    tls.start = start;
    return tollbar_lease_client_new_tls(lease, (const char *) sync->url.data, sync->url.len, &tls, column, client);
}

/* The URL has the address that nginx found for the name. The certificate is for the name. */
static void *start(void *context, const char *host)
{
    const secure_t *secure = context;

    return secure->tls.start(secure->tls.context, secure->host != NULL ? secure->host : host);
}

#else

static char *make(ngx_conf_t *cf, ngx_str_t *name, sync_t *sync)
{
    (void) sync;
    return ngx_tollbar_conf_refuse(cf, "TLS must have an nginx and a module with OpenSSL, which --with-http_ssl_module adds, "
                                   "in zone \"%V\"", name);
}

ngx_flag_t ngx_http_tollbar_secure_same(const sync_t *a, const sync_t *b)
{
    (void) a;
    (void) b;
    return 1;
}

void ngx_http_tollbar_secure_name(sync_t *sync, const char *host)
{
    (void) sync;
    (void) host;
}

int32_t ngx_http_tollbar_secure_client(const sync_t *sync, const tollbar_lease *lease, size_t *column, tollbar_lease_client **client)
{
    return tollbar_lease_client_new(lease, (const char *) sync->url.data, sync->url.len, column, client);
}

#endif
