/* Rates with variables, whose values come with the requests. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_rates_t rates_t;

/* The most policies of a table. */
#define RATES_MOST 128

/* The longest text of a rate: 15 digits, a point, 9 digits, "r/", 9 digits and a unit of at most 3
 * letters. */
#define TEXT_MOST 40

typedef struct {
    u_char text[TEXT_MOST];
    size_t length;
    uint32_t number;
    tollbar_policy_spec policy;
} rate_t;

/* A process's cache of parsed rates: it parses each text once and looks each policy up once. When
 * the cache is full, a new text replaces the oldest. The table has no more policies than the cache
 * has places, so only several spellings of one rate can fill it. */
struct ngx_http_tollbar_rates_s {
    ngx_uint_t n;
    ngx_uint_t next;
    ngx_uint_t last;
    rate_t rates[RATES_MOST];
};

void ngx_http_tollbar_rate_widen(tollbar_policy_spec *policy)
{
    /* The library needs a 64-bit processor, for which compilers have this type. */
    __extension__ typedef unsigned __int128 wide_t;
    wide_t in_decades = ((wide_t) 1 << 60) * policy->limit / policy->period_ns + 1000000;

    policy->burst = in_decades > INT64_MAX ? INT64_MAX : (uint64_t) in_decades;
    while (tollbar_policy_spec_validate(policy) != 0 && policy->burst > 1) {
        policy->burst /= 2;
    }
}

rates_t *ngx_http_tollbar_rates_create(ngx_pool_t *pool)
{
    return ngx_pcalloc(pool, sizeof(rates_t));
}

const tollbar_policy_spec *ngx_http_tollbar_rate_find(ngx_shm_zone_t *shm_zone, ngx_str_t *text, uint32_t *number,
                                                      ngx_log_t *log)
{
    static const tollbar_policy_spec none = TOLLBAR_POLICY_SPEC_INIT;
    ngx_http_tollbar_zone_t *zone = shm_zone->data;
    ngx_tollbar_seldom_t *message = &zone->wrong_rate;
    rates_t *rates = zone->rates;
    tollbar_policy_spec policy = none;
    ngx_uint_t n, at = rates->last;
    const char *expected;
    rate_t *rate;
    int32_t error;

    /* Most requests have the same rate as the last one, so the search begins there. */
    for (n = 0; n < rates->n; n++, at = at + 1 < rates->n ? at + 1 : 0) {
        rate = &rates->rates[at];
        if (rate->length == text->len && ngx_memcmp(rate->text, text->data, text->len) == 0) {
            rates->last = at;
            *number = rate->number;
            return &rate->policy;
        }
    }

    expected = text->len > TEXT_MOST ? "it must be shorter" : ngx_tollbar_rate_parse(text, &policy);
    if (expected == NULL) {
        ngx_http_tollbar_rate_widen(&policy);
        error = tollbar_table_find_or_add_policy(zone->zone.table, &policy, number);
        expected = error != 0 ? tollbar_strerror(error) : NULL;
        message = &zone->no_policy;
    }
    if (expected != NULL) {
        if (ngx_tollbar_seldom(message)) {
            ngx_log_error(NGX_LOG_ERR, log, 0, "invalid rate \"%V\" for zone \"%V\", %s, in %V:%ui%s", text, &shm_zone->shm.name,
                          expected, &zone->zone.where.file, zone->zone.where.line, message->text);
        }
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
