/* `top_refused` of a zone: the keys that the zone refuses most, on the status page. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_zone_t zone_t;

static u_char *print_address(u_char *to, const u_char *bytes, size_t length, ngx_uint_t bits);
static u_char *print_plain(u_char *to, const u_char *bytes, size_t length);

static ngx_flag_t is(const ngx_str_t *text, const char *variable)
{
    return text->len == ngx_strlen(variable) && ngx_memcmp(text->data, variable, text->len) == 0;
}

char *ngx_http_tollbar_read_top_refused(ngx_conf_t *cf, ngx_str_t *argument, zone_t *zone)
{
    ngx_str_t text = { argument->len - 12, argument->data + 12 };
    ngx_int_t number = ngx_atoi(text.data, text.len);

    if (number < 1 || number > TOLLBAR_REFUSED_MOST) {
        return ngx_tollbar_conf_refuse(cf,
                                       "invalid top_refused value \"%V\", it must be a number of "
                                       "keys from 1 to 224", argument);
    }
    zone->zone.top_refused = (uint32_t) number;
    return NGX_CONF_OK;
}

char *ngx_http_tollbar_check_top_refused(ngx_conf_t *cf, ngx_str_t *name, zone_t *zone)
{
    if (zone->zone.top_refused == 0) {
        return NGX_CONF_OK;
    }
    if (zone->sync != NULL) {
        return ngx_tollbar_conf_refuse(cf,
                                       "\"top_refused\" must not be beside \"sync\" in zone "
                                       "\"%V\"", name);
    }
    /* A table that records refusals takes no permits in advance. */
    if (zone->zone.hot_keys != 0) {
        return ngx_tollbar_conf_refuse(cf,
                                       "\"top_refused\" must not be beside \"hot_keys\" in zone "
                                       "\"%V\"", name);
    }
    return NGX_CONF_OK;
}

int32_t ngx_http_tollbar_read_refused(ngx_pool_t *pool, const zone_t *zone,
                                      tollbar_table_refused **refused, size_t *count)
{
    static const tollbar_table_refused none = TOLLBAR_TABLE_REFUSED_INIT;
    const tollbar_table *table = zone->zone.table;
    uint64_t now = 0;
    int32_t error;

    *count = 0;
    if (zone->zone.top_refused == 0) {
        return 0;
    }
    *refused = ngx_palloc(pool, zone->zone.top_refused * sizeof(tollbar_table_refused));
    if (*refused == NULL) {
        return TOLLBAR_E_NO_MEMORY;
    }
    **refused = none;
    error = tollbar_table_now(table, &now);
    return error == 0 ? tollbar_table_top_refused(table, now, *refused, zone->zone.top_refused,
                                                  count) : error;
}

u_char *ngx_http_tollbar_print_key(u_char *to, const zone_t *zone,
                                   const tollbar_table_refused *refused)
{
    const ngx_str_t *text = &zone->zone.keys;
    const u_char *key = refused->key;
    size_t length = refused->length;

    if (is(text, "$tollbar_client") || is(text, "${tollbar_client}")) {
        if (length == 6 && key[0] == 4 && key[1] == 32) {
            return print_address(to, key + 2, 4, 32);
        }
        if (length == 10 && key[0] == 6 && key[1] == 64) {
            return print_address(to, key + 2, 8, 64);
        }
    }
    if (is(text, "$binary_remote_addr") || is(text, "${binary_remote_addr}")) {
        if (length == 4 || length == 16) {
            return print_address(to, key, length, 8 * length);
        }
    }
    return print_plain(to, key, length);
}

/* Prints an address, of IPv6 with its bits if these are not all. */
static u_char *print_address(u_char *to, const u_char *bytes, size_t length, ngx_uint_t bits)
{
    u_char whole[16] = { 0 };

    ngx_memcpy(whole, bytes, length);
    if (length == 4) {
        return to + ngx_inet_ntop(AF_INET, whole, to, NGX_INET_ADDRSTRLEN);
    }
#if (NGX_HAVE_INET6)
    to += ngx_inet_ntop(AF_INET6, whole, to, NGX_INET6_ADDRSTRLEN);
    return bits == 64 ? ngx_cpymem(to, "/64", 3) : to;
#else
    return print_plain(to, bytes, length);
#endif
}

/* Prints the bytes as `tollbar top` does: printable ASCII, and every other byte, blanks and
 * backslashes as \xNN. A key is the client's, so that it must not end the JSON text, nor be a
 * tag for a program that takes the page for HTML. */
static u_char *print_plain(u_char *to, const u_char *bytes, size_t length)
{
    static const u_char digits[] = "0123456789abcdef";
    const u_char *end = bytes + length;

    for (; bytes < end; bytes++) {
        if (*bytes <= 0x20 || *bytes >= 0x7f || *bytes == '\\') {
            to = ngx_cpymem(to, "\\\\x", 3);
            *to++ = digits[*bytes >> 4];
            *to++ = digits[*bytes & 15];
        } else if (*bytes == '"') {
            to = ngx_cpymem(to, "\\\"", 2);
        } else if (*bytes == '<' || *bytes == '>' || *bytes == '&') {
            to = ngx_cpymem(to, "\\u00", 4);
            *to++ = digits[*bytes >> 4];
            *to++ = digits[*bytes & 15];
        } else {
            *to++ = *bytes;
        }
    }
    return to;
}
