/* Rates as people write them, and rates that come with requests. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_rates_t rates_t;

/* As many as a table may have policies. */
#define RATES_MOST 128

/* The longest text that can be a rate: fifteen digits, a point and nine more, "r/", nine and a unit. */
#define TEXT_MOST 40

typedef struct {
    u_char text[TEXT_MOST];
    size_t length;
    uint32_t number;
    tollbar_policy_spec policy;
} rate_t;

/* What a process remembers, so that it reads each text once and looks for each policy once. It is forgotten from the first on
 * when there are too many, which only spellings of the same rates can be. */
struct ngx_http_tollbar_rates_s {
    ngx_uint_t n;
    ngx_uint_t next;
    ngx_uint_t last;
    rate_t rates[RATES_MOST];
};

static ngx_flag_t digits(const u_char **at, const u_char *end, size_t most, uint64_t *number);
static uint64_t unit(const u_char *text, size_t length);
static int32_t number_of(const tollbar_table *table, const tollbar_policy_spec *policy, uint32_t *number);
static ngx_flag_t find_number(const tollbar_table *table, const tollbar_policy_spec *policy, uint32_t *number);

/* N[.N] ["r/" [N] UNIT], where the unit is ms, s, m, min, h or d; without it, a second. */
ngx_int_t ngx_http_tollbar_rate_parse(ngx_str_t *text, tollbar_policy_spec *policy)
{
    const u_char *at = text->data, *end = text->data + text->len, *point;
    uint64_t whole, fraction = 0, count = 1, scale = 1, each = 1000000000, a, b, rest;

    if (!digits(&at, end, 15, &whole)) {
        return NGX_ERROR;
    }
    if (at < end && *at == '.') {
        point = ++at;
        if (!digits(&at, end, 9, &fraction)) {
            return NGX_ERROR;
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
        return NGX_ERROR;
    }
    if (each == 0 || count == 0 || whole > UINT64_MAX / scale - 1 || count > UINT64_MAX / each
        || scale > UINT64_MAX / (each * count))
    {
        return NGX_ERROR;
    }
    policy->limit = whole * scale + fraction;
    policy->period_ns = each * count * scale;
    /* Half a request a second is one in two seconds, not five in ten: the fewest that need no fraction. */
    for (a = scale, b = policy->limit; b != 0; a = b, b = rest) {
        rest = a % b;
    }
    policy->limit /= a;
    policy->period_ns /= a;
    policy->burst = 1;
    /* More than the table can count is more than 10^9 a second. */
    return policy->limit != 0 && tollbar_policy_spec_check(policy) == 0 ? NGX_OK : NGX_ERROR;
}

void ngx_http_tollbar_rate_widen(tollbar_policy_spec *policy)
{
    /* The library is for 64-bit processors, where compilers have this. */
    __extension__ typedef unsigned __int128 wide_t;
    wide_t in_decades = ((wide_t) 1 << 60) * policy->limit / policy->period_ns + 1000000;

    policy->burst = in_decades > INT64_MAX ? INT64_MAX : (uint64_t) in_decades;
    while (tollbar_policy_spec_check(policy) != 0 && policy->burst > 1) {
        policy->burst /= 2;
    }
}

rates_t *ngx_http_tollbar_rates_create(ngx_pool_t *pool)
{
    return ngx_pcalloc(pool, sizeof(rates_t));
}

const tollbar_policy_spec *ngx_http_tollbar_rate_find(ngx_shm_zone_t *shm_zone, ngx_str_t *text, uint32_t *number, ngx_log_t *log)
{
    static const tollbar_policy_spec none = TOLLBAR_POLICY_SPEC_INIT;
    ngx_http_tollbar_zone_t *zone = shm_zone->data;
    rates_t *rates = zone->rates;
    tollbar_policy_spec policy = none;
    ngx_uint_t n, at = rates->last;
    rate_t *rate;
    int32_t error;

    /* Most often it is the one that came last. */
    for (n = 0; n < rates->n; n++, at = at + 1 < rates->n ? at + 1 : 0) {
        rate = &rates->rates[at];
        if (rate->length == text->len && ngx_memcmp(rate->text, text->data, text->len) == 0) {
            rates->last = at;
            *number = rate->number;
            return &rate->policy;
        }
    }

    if (text->len > TEXT_MOST || ngx_http_tollbar_rate_parse(text, &policy) != NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, log, 0, "invalid rate \"%V\" for zone \"%V\"", text, &shm_zone->shm.name);
        return NULL;
    }
    ngx_http_tollbar_rate_widen(&policy);
    error = number_of(zone->zone.table, &policy, number);
    if (error != 0) {
        ngx_log_error(NGX_LOG_ERR, log, 0, "rate \"%V\" is one too many for zone \"%V\": %s", text, &shm_zone->shm.name,
                      tollbar_strerror(error));
        return NULL;
    }
    rate = &rates->rates[rates->next];
    rates->last = rates->next;
    rates->n = ngx_max(rates->n, rates->next + 1);
    rates->next = (rates->next + 1) % RATES_MOST;
    ngx_memcpy(rate->text, text->data, text->len);
    rate->length = text->len;
    rate->policy = policy;
    rate->number = *number;
    return &rate->policy;
}

/* Finds the policy in the table, or adds it. Where two processes add it at once, both look again and take the first; its place in
 * the table comes before that of the other, so each sees it. */
static int32_t number_of(const tollbar_table *table, const tollbar_policy_spec *policy, uint32_t *number)
{
    int32_t error;

    if (find_number(table, policy, number)) {
        return 0;
    }
    error = tollbar_table_add_policy(table, policy, number);
    if (error == 0) {
        (void) find_number(table, policy, number);
    }
    return error;
}

static ngx_flag_t find_number(const tollbar_table *table, const tollbar_policy_spec *policy, uint32_t *number)
{
    tollbar_policy_spec found = TOLLBAR_POLICY_SPEC_INIT;
    uint32_t n;

    /* The first is not one that came with a request. */
    for (n = 1; n < RATES_MOST && tollbar_table_get_policy(table, n, &found) == 0; n++) {
        if (ngx_memcmp(&found, policy, sizeof(found)) == 0) {
            *number = n;
            return 1;
        }
    }
    return 0;
}

/* A whole number of at most so many digits. */
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

/* Nanoseconds; 0 for what is no unit. */
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
