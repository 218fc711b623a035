/* Headers that tell a client where it stands. They are put into the answer before anybody knows what it will be, so that
 * error pages, redirects inside nginx and answers from elsewhere have them, too. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_charge_t charge_t;
typedef ngx_http_tollbar_asked_t asked_t;

/* The largest integer that a structured header may have (RFC 8941). */
#define INTEGER_MOST 999999999999999ULL

static ngx_int_t add_legacy(ngx_http_request_t *r, const charge_t *binding);
static ngx_int_t add_draft(ngx_http_request_t *r, const asked_t *asked);
static u_char *print_policy(u_char *to, const charge_t *charge);
static u_char *print_state(u_char *to, const charge_t *charge);
static uint64_t more_after(const charge_t *charge);
static ngx_flag_t lends(const tollbar_policy_spec *policy);
static ngx_int_t add_number(ngx_http_request_t *r, const char *name, uint64_t number);
static ngx_int_t add(ngx_http_request_t *r, const char *name, u_char *value, size_t length);

ngx_int_t ngx_http_tollbar_add_headers(ngx_http_request_t *r, ngx_int_t rc, const asked_t *asked)
{
    ngx_http_tollbar_conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_tollbar_module);
    const charge_t *binding = asked->binding;

    /* A part of an answer, whose beginning is on its way. */
    if (r->main->header_sent || binding == NULL) {
        return NGX_OK;
    }
    if (rc == NGX_BUSY && binding->retry_ns != TOLLBAR_NO_TIME
        && add_number(r, "Retry-After", ngx_max(ngx_http_tollbar_seconds(binding->retry_ns), 1)) != NGX_OK)
    {
        return NGX_ERROR;
    }
    if ((conf->headers & NGX_HTTP_TOLLBAR_HEADERS_LEGACY) && add_legacy(r, binding) != NGX_OK) {
        return NGX_ERROR;
    }
    return conf->headers & NGX_HTTP_TOLLBAR_HEADERS_DRAFT ? add_draft(r, asked) : NGX_OK;
}

uint64_t ngx_http_tollbar_seconds(uint64_t ns)
{
    return ns / 1000000000 + (ns % 1000000000 != 0);
}

static ngx_int_t add_legacy(ngx_http_request_t *r, const charge_t *binding)
{
    if (!binding->known) {
        return NGX_OK;
    }
    if (add_number(r, "X-RateLimit-Limit", binding->terms->capacity) != NGX_OK
        || add_number(r, "X-RateLimit-Remaining", binding->remaining) != NGX_OK)
    {
        return NGX_ERROR;
    }
    return binding->reset_ns == TOLLBAR_NO_TIME
               ? NGX_OK
               : add_number(r, "X-RateLimit-Reset", ngx_http_tollbar_seconds(binding->reset_ns));
}

/* draft-ietf-httpapi-ratelimit-headers-11: every limit that is in force, in the order of the configuration. */
static ngx_int_t add_draft(ngx_http_request_t *r, const asked_t *asked)
{
    u_char *policies, *policy, *states, *state;
    size_t most = 0;
    ngx_uint_t n;

    for (n = 0; n < asked->enforced; n++) {
        most += asked->charges[n].limit->zone->quoted.len + sizeof(", ;q=;w=") + 2 * NGX_INT64_LEN;
    }
    policies = policy = ngx_pnalloc(r->pool, 2 * most);
    if (policies == NULL) {
        return NGX_ERROR;
    }
    states = state = policies + most;
    for (n = 0; n < asked->enforced; n++) {
        if (asked->charges[n].known) {
            policy = print_policy(policy == policies ? policy : ngx_cpymem(policy, ", ", 2), &asked->charges[n]);
            state = print_state(state == states ? state : ngx_cpymem(state, ", ", 2), &asked->charges[n]);
        }
    }
    if (policy == policies) {
        return NGX_OK;
    }
    if (add(r, "RateLimit-Policy", policies, (size_t) (policy - policies)) != NGX_OK) {
        return NGX_ERROR;
    }
    return add(r, "RateLimit", states, (size_t) (state - states));
}

/* So many permits in so many seconds; of a period that is no whole number of seconds, what comes to as much. */
static u_char *print_policy(u_char *to, const charge_t *charge)
{
    /* The library is for 64-bit processors, where compilers have this. */
    __extension__ typedef unsigned __int128 wide_t;
    const tollbar_policy_spec *policy = charge->terms->policy;
    uint64_t window = ngx_http_tollbar_seconds(policy->period_ns);
    wide_t quota = (wide_t) policy->limit * window * 1000000000 / policy->period_ns;

    return ngx_sprintf(to, "%V;q=%uL;w=%uL", &charge->limit->zone->quoted,
                       quota > INTEGER_MOST ? (uint64_t) INTEGER_MOST : (uint64_t) quota, window);
}

/* `t` is when there will be more to use than now, so that a client may use up `r` until then, and Retry-After never ends before it. A
 * limit of which all is there has no `t`. */
static u_char *print_state(u_char *to, const charge_t *charge)
{
    uint64_t more = more_after(charge);

    to = ngx_sprintf(to, "%V;r=%uL", &charge->limit->zone->quoted, ngx_min(charge->remaining, INTEGER_MOST));
    return more == TOLLBAR_NO_TIME ? to : ngx_sprintf(to, ";t=%uL", ngx_http_tollbar_seconds(more));
}

/* Nanoseconds until `remaining` grows. TOLLBAR_NO_TIME: it does not, or only the store knows when, or the policy lends. */
static uint64_t more_after(const charge_t *charge)
{
    const ngx_http_tollbar_terms_t *terms = charge->terms;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    ngx_flag_t refused = charge->retry_ns != 0 && charge->retry_ns != TOLLBAR_NO_TIME;

    if (refused && (terms->leased || charge->remaining + 1 == terms->cost)) {
        return charge->retry_ns;
    }
    if (terms->leased || charge->remaining >= terms->capacity) {
        return TOLLBAR_NO_TIME;
    }
    if (charge->remaining != 0 && lends(terms->policy)) {
        return TOLLBAR_NO_TIME;
    }
    /* A request for one permit more than there is would have to wait as long. */
    if (tollbar_table_peek(charge->limit->zone->zone.table, terms->number, charge->key.data, charge->key.len,
                           terms->spare + charge->remaining + 1, &decision) < 0)
    {
        return TOLLBAR_NO_TIME;
    }
    /* A moment has passed, and it may have been the one that was missing. */
    decision.retry_after_ns = ngx_max(decision.retry_after_ns, 1);
    return refused ? ngx_min(decision.retry_after_ns, charge->retry_ns) : decision.retry_after_ns;
}

/* Whether a request may pass although it costs more than what is left: then a peek cannot tell when what is left grows. */
static ngx_flag_t lends(const tollbar_policy_spec *policy)
{
    return ((TOLLBAR_ALGORITHMS_LENDING >> policy->algorithm) & 1) != 0 || (policy->flags & TOLLBAR_POLICY_BORROW) != 0;
}

static ngx_int_t add_number(ngx_http_request_t *r, const char *name, uint64_t number)
{
    u_char *text = ngx_pnalloc(r->pool, NGX_INT64_LEN);

    if (text == NULL) {
        return NGX_ERROR;
    }
    return add(r, name, text, (size_t) (ngx_sprintf(text, "%uL", number) - text));
}

static ngx_int_t add(ngx_http_request_t *r, const char *name, u_char *value, size_t length)
{
    ngx_table_elt_t *header = ngx_list_push(&r->main->headers_out.headers);

    if (header == NULL) {
        return NGX_ERROR;
    }
    /* Newer versions of nginx have more fields. */
    ngx_memzero(header, sizeof(*header));
    header->hash = 1;
    header->key.data = (u_char *) name;
    header->key.len = ngx_strlen(name);
    header->value.data = value;
    header->value.len = length;
    return NGX_OK;
}
