/* Parses rates such as 10r/s and 0.5r/h. */

#include "ngx_tollbar_conf.h"

static ngx_flag_t digits(const u_char **at, const u_char *end, size_t most, uint64_t *number);
static uint64_t unit(const u_char *text, size_t length);
static const char *too_high(void);

const char *ngx_tollbar_rate_parse(ngx_str_t *text, tollbar_policy_spec *policy)
{
    static const char *form = "it must be like 10r/s, 0.5r/h or 30r/10s, with a unit out of ms, s, m, min, h and d";
    const u_char *at = text->data, *end = text->data + text->len, *point;
    uint64_t whole, fraction = 0, count = 1, scale = 1, each = 1000000000, a, b, rest;
    int32_t error;

    if (!digits(&at, end, 15, &whole)) {
        return form;
    }
    if (at < end && *at == '.') {
        point = ++at;
        if (!digits(&at, end, 9, &fraction)) {
            return form;
        }
        for (; point < at; point++) {
            scale *= 10;
        }
    }
    if (end - at > 2 && at[0] == 'r' && at[1] == '/') {
        at += 2;
        (void) digits(&at, end, 9, &count);
        each = unit(at, (size_t) (end - at));
    } else if (at != end) {
        return form;
    }
    if (each == 0) {
        return form;
    }
    if (count == 0 || (whole == 0 && fraction == 0)) {
        return "it must be above zero, and so must its period";
    }
    if (whole > UINT64_MAX / scale - 1 || count > UINT64_MAX / each || scale > UINT64_MAX / (each * count)) {
        return "it must have a shorter period, or fewer digits";
    }
    policy->limit = whole * scale + fraction;
    policy->period_ns = each * count * scale;
    /* Reduces the fraction: 0.5r/s becomes 1 request in 2 seconds, not 5 in 10. */
    for (a = scale, b = policy->limit; b != 0; a = b, b = rest) {
        rest = a % b;
    }
    policy->limit /= a;
    policy->period_ns /= a;
    policy->burst = 1;
    error = tollbar_policy_spec_validate(policy);
    if (error == TOLLBAR_E_RATE_TOO_HIGH) {
        return too_high();
    }
    return error == 0 ? NULL : tollbar_strerror(error);
}

/* The expectation with the highest rate that a table can count. */
static const char *too_high(void)
{
    static u_char text[64];
    tollbar_policy_spec tried = TOLLBAR_POLICY_SPEC_INIT;
    uint64_t fits = 1, too_many = INT64_MAX;

    tried.period_ns = 1000000000;
    tried.burst = 1;
    while (too_many - fits > 1) {
        tried.limit = fits + (too_many - fits) / 2;
        if (tollbar_policy_spec_validate(&tried) == 0) {
            fits = tried.limit;
        } else {
            too_many = tried.limit;
        }
    }
    *ngx_slprintf(text, text + sizeof(text) - 1, "it must be at most %uLr/s", fits) = '\0';
    return (const char *) text;
}

/* Reads a whole number of at most `most` digits. */
static ngx_flag_t digits(const u_char **at, const u_char *end, size_t most, uint64_t *number)
{
    const u_char *from = *at;
    uint64_t value = 0;

    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
        if ((size_t) (*at - from) == most) {
            return 0;
        }
        value = value * 10 + (uint64_t) (**at - '0');
    }
    if (*at == from) {
        return 0;
    }
    *number = value;
    return 1;
}

/* A unit's nanoseconds. 0: the text is no unit. */
static uint64_t unit(const u_char *text, size_t length)
{
    static const struct {
        ngx_str_t name;
        uint64_t ns;
    } units[] = {
        { ngx_string("s"), 1000000000 },
        { ngx_string("m"), 60000000000 },
        { ngx_string("min"), 60000000000 },
        { ngx_string("h"), 3600000000000 },
        { ngx_string("d"), 86400000000000 },
        { ngx_string("ms"), 1000000 },
    };
    ngx_uint_t n;

    for (n = 0; n < sizeof(units) / sizeof(units[0]); n++) {
        if (units[n].name.len == length && ngx_memcmp(units[n].name.data, text, length) == 0) {
            return units[n].ns;
        }
    }
    return 0;
}
