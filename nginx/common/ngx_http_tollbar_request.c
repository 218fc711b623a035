#include "ngx_http_tollbar_request.h"

#include "ngx_tollbar_variables.h"

static ngx_int_t only_variable(ngx_conf_t *cf, ngx_str_t *text);
static ngx_int_t client(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data);
static void after_delay(ngx_http_request_t *r);

ngx_int_t ngx_http_tollbar_key_compile(ngx_conf_t *cf, ngx_str_t *text, ngx_http_tollbar_key_t *key)
{
    ngx_http_compile_complex_value_t compile;

    ngx_memzero(&compile, sizeof(compile));
    compile.cf = cf;
    compile.value = text;
    compile.complex_value = &key->value;
    if (ngx_http_compile_complex_value(&compile) != NGX_OK) {
        return NGX_ERROR;
    }
    key->variable = only_variable(cf, text);
    return NGX_OK;
}

ngx_int_t ngx_http_tollbar_add_handler(ngx_conf_t *cf, ngx_uint_t phase,
                                       ngx_http_handler_pt handler)
{
    ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    ngx_http_handler_pt *place = ngx_array_push(&core->phases[phase].handlers);

    if (place == NULL) {
        return NGX_ERROR;
    }
    *place = handler;
    return NGX_OK;
}

ngx_int_t ngx_http_tollbar_add_variable(ngx_conf_t *cf, ngx_str_t *name, ngx_uint_t flags,
                                        ngx_http_get_variable_pt get)
{
    ngx_http_variable_t *variable = ngx_http_add_variable(cf, name, flags);

    if (variable == NULL) {
        return NGX_ERROR;
    }
    variable->get_handler = get;
    return NGX_OK;
}

ngx_int_t ngx_http_tollbar_add_client(ngx_conf_t *cf)
{
    static ngx_str_t name = ngx_string("tollbar_client");

    /* Changeable, because two modules add it if both are loaded. */
    return ngx_http_tollbar_add_variable(cf, &name, NGX_HTTP_VAR_CHANGEABLE, client);
}

static ngx_int_t client(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
    return ngx_tollbar_client(r->connection, r->pool, v);
}

ngx_int_t ngx_http_tollbar_key_too_long(ngx_http_request_t *r, ngx_http_tollbar_key_t *key, ngx_str_t *value)
{
    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "the value of the \"%V\" key is more than 65535 bytes: \"%V\"",
                  &key->value.value, value);
    return NGX_DECLINED;
}

/* During the delay nginx reads no body, and only tests whether the client has closed the
 * connection. */
ngx_int_t ngx_http_tollbar_delay(ngx_http_request_t *r, ngx_msec_t wait)
{
    ngx_event_t *read = r->connection->read;

    if (read->ready) {
        ngx_post_event(read, &ngx_posted_events);
    } else if (ngx_handle_read_event(read, 0) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = after_delay;
    r->connection->write->delayed = 1;
    ngx_add_timer(r->connection->write, wait);
    return NGX_AGAIN;
}

static void after_delay(ngx_http_request_t *r)
{
    ngx_event_t *write = r->connection->write;

    /* nginx clears `delayed` when the timer expires. An event before that only says that the socket
     * is writable. */
    if (write->delayed) {
        if (ngx_handle_write_event(write, 0) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        }
        return;
    }
    if (ngx_handle_read_event(r->connection->read, 0) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }
    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_core_run_phases;
    ngx_http_core_run_phases(r);
}

/* The variable's index if `text` is exactly "$name" or "${name}", else NGX_ERROR. */
static ngx_int_t only_variable(ngx_conf_t *cf, ngx_str_t *text)
{
    ngx_str_t name = *text;
    size_t n;
    u_char c;

    if (name.len < 2 || name.data[0] != '$') {
        return NGX_ERROR;
    }
    name.data++;
    name.len--;
    if (name.data[0] == '{' && name.len > 2 && name.data[name.len - 1] == '}') {
        name.data++;
        name.len -= 2;
    }
    /* $1 is a capture of a regular expression, and no variable with an index. */
    if (name.data[0] >= '0' && name.data[0] <= '9') {
        return NGX_ERROR;
    }
    for (n = 0; n < name.len; n++) {
        c = name.data[n];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) {
            return NGX_ERROR;
        }
    }
    return ngx_http_get_variable_index(cf, &name);
}
