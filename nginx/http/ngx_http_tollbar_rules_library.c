/* libtollbar-rules, which the module loads when a configuration has a tollbar_rules directive. */

#include "ngx_http_tollbar_rules.h"

/* The environment variable with the library's path. The bindings read the same one. */
#define VARIABLE "TOLLBAR_RULES_LIBRARY"
#define USUAL "libtollbar-rules.so.1"

typedef ngx_http_tollbar_rules_calls_t calls_t;

ngx_http_tollbar_rules_calls_t ngx_http_tollbar_rules_calls;

static ngx_int_t find(ngx_conf_t *cf, void *library, const char *path);

ngx_int_t ngx_http_tollbar_rules_load(ngx_conf_t *cf)
{
    const char *path = getenv(VARIABLE);
    void *library;

    if (ngx_http_tollbar_rules_calls.open != NULL) {
        return NGX_OK;
    }
    path = path != NULL && *path != '\0' ? path : USUAL;
    library = dlopen(path, RTLD_NOW|RTLD_LOCAL);
    if (library == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"tollbar_rules\" cannot load libtollbar-rules: %s; the library must be installed, or the environment "
                           "variable " VARIABLE " must have its path", dlerror());
        return NGX_ERROR;
    }
    if (find(cf, library, path) != NGX_OK) {
        (void) dlclose(library);
        return NGX_ERROR;
    }
    return NGX_OK;
}

static ngx_int_t find(ngx_conf_t *cf, void *library, const char *path)
{
    static const struct {
        const char *name;
        size_t offset;
    } wanted[] = {
        { "tollbar_rules_check", offsetof(calls_t, check) },
        { "tollbar_rules_settle", offsetof(calls_t, settle) },
        { "tollbar_rules_word_of_answers", offsetof(calls_t, word_of_answers) },
        { "tollbar_rules_reload", offsetof(calls_t, reload) },
        { "tollbar_rules_adopt", offsetof(calls_t, adopt) },
        { "tollbar_rules_metrics", offsetof(calls_t, metrics) },
        { "tollbar_rules_close", offsetof(calls_t, close) },
        /* Last, because it says that all calls were found. */
        { "tollbar_rules_open", offsetof(calls_t, open) },
    };
    ngx_uint_t n;
    void *call;

    for (n = 0; n < sizeof(wanted) / sizeof(wanted[0]); n++) {
        call = dlsym(library, wanted[n].name);
        if (call == NULL) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"tollbar_rules\" cannot use %s: it has no %s, it must be libtollbar-rules of the module's version",
                               path, wanted[n].name);
            return NGX_ERROR;
        }
        *(void **) ((u_char *) &ngx_http_tollbar_rules_calls + wanted[n].offset) = call;
    }
    return NGX_OK;
}
