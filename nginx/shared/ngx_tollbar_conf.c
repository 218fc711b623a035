#include "ngx_tollbar_conf.h"

ngx_conf_enum_t ngx_tollbar_conf_log_levels[] = {
    { ngx_string("info"), NGX_LOG_INFO },
    { ngx_string("notice"), NGX_LOG_NOTICE },
    { ngx_string("warn"), NGX_LOG_WARN },
    { ngx_string("error"), NGX_LOG_ERR },
    { ngx_null_string, 0 }
};

ngx_conf_num_bounds_t ngx_tollbar_conf_status_bounds = { ngx_conf_check_num_bounds, 400, 599 };

char *ngx_tollbar_conf_refuse(ngx_conf_t *cf, const char *message, ngx_str_t *argument)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, message, argument);
    return NGX_CONF_ERROR;
}

char *ngx_tollbar_conf_zone(ngx_conf_t *cf, ngx_str_t *argument, ngx_str_t *name, size_t *size)
{
    u_char *colon = (u_char *) ngx_strchr(argument->data, ':');
    ngx_str_t text;
    ssize_t bytes;

    if (colon == NULL) {
        return ngx_tollbar_conf_refuse(cf, "invalid zone size \"%V\"", argument);
    }
    name->data = argument->data + 5;
    name->len = colon - name->data;
    text.data = colon + 1;
    text.len = argument->data + argument->len - text.data;
    bytes = ngx_parse_size(&text);
    if (bytes == NGX_ERROR) {
        return ngx_tollbar_conf_refuse(cf, "invalid zone size \"%V\"", argument);
    }
    if (bytes < (ssize_t) (8 * ngx_pagesize)) {
        return ngx_tollbar_conf_refuse(cf, "zone \"%V\" is too small", argument);
    }
    *size = (size_t) bytes;
    return NGX_CONF_OK;
}

uint64_t ngx_tollbar_time_of(const tollbar_policy_spec *policy, uint64_t permits)
{
    /* The library is for 64-bit processors, where compilers have this. */
    __extension__ typedef unsigned __int128 wide_t;
    wide_t time = (wide_t) permits * policy->period_ns / policy->limit;

    return time > INT64_MAX ? INT64_MAX : (uint64_t) time;
}
