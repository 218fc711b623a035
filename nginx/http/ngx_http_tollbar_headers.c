/* Headers that tell a client its remaining permits. The module adds them before nginx produces the answer, so that
 * error pages, redirects inside nginx and answers of upstreams have them, too. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_charge_t charge_t;
typedef ngx_http_tollbar_outcome_t outcome_t;

/* The largest integer that a structured header may have (RFC 8941). */
#define INTEGER_MOST 999999999999999ULL

static ngx_int_t add_legacy(ngx_http_request_t *r, const charge_t *binding);
static ngx_int_t add_draft(ngx_http_request_t *r, const outcome_t *outcome);
static u_char *print_policy(u_char *to, const charge_t *charge);
static u_char *print_state(u_char *to, const charge_t *charge);
static uint64_t more_after(const charge_t *charge);
static ngx_flag_t lends(const tollbar_policy_spec *policy);
static ngx_int_t add_number(ngx_http_request_t *r, const char *name, uint64_t number);
static ngx_int_t add(ngx_http_request_t *r, const char *name, u_char *value, size_t length);

ngx_int_t ngx_http_tollbar_add_headers(ngx_http_request_t *r, ngx_int_t rc, const outcome_t *outcome)
{
    ngx_http_tollbar_conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_tollbar_module);
    const charge_t *binding = outcome->binding;

    /* nginx has sent the header already, so this request is a later part of the answer. */
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
    return conf->headers & NGX_HTTP_TOLLBAR_HEADERS_DRAFT ? add_draft(r, outcome) : NGX_OK;
}

uint64_t ngx_http_tollbar_seconds(uint64_t ns)
{
    return ns / 1000000000 + (ns % 1000000000 != 0);
}

static ngx_int_t add_legacy(ngx_http_request_t *r, const charge_t *binding)
{
    if (!binding->decided) {
        return NGX_OK;
    }
    if (add_number(r, "X-RateLimit-Limit", binding->resolved->capacity) != NGX_OK
        || add_number(r, "X-RateLimit-Remaining", binding->remaining) != NGX_OK)
    {
        return NGX_ERROR;
    }
    return binding->reset_ns == TOLLBAR_NO_TIME
               ? NGX_OK
               : add_number(r, "X-RateLimit-Reset", ngx_http_tollbar_seconds(binding->reset_ns));
}

/* draft-ietf-httpapi-ratelimit-headers-11: every enforced limit, in the order of the configuration. */
static ngx_int_t add_draft(ngx_http_request_t *r, const outcome_t *outcome)
{
    u_char *policies, *policy, *states, *state;
    size_t most = 0;
    ngx_uint_t n;

    for (n = 0; n < outcome->enforced; n++) {
        most += outcome->charges[n].limit->zone->quoted.len + sizeof(", ;q=;w=") + 2 * NGX_INT64_LEN;
    }
    policies = policy = ngx_pnalloc(r->pool, 2 * most);
    if (policies == NULL) {
        return NGX_ERROR;
    }
    states = state = policies + most;
    for (n = 0; n < outcome->enforced; n++) {
        if (outcome->charges[n].decided) {
            policy = print_policy(policy == policies ? policy : ngx_cpymem(policy, ", ", 2), &outcome->charges[n]);
            state = print_state(state == states ? state : ngx_cpymem(state, ", ", 2), &outcome->charges[n]);
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

/* The quota in a window of whole seconds. A period with a fraction is rounded up, and the quota grows with it. */
static u_char *print_policy(u_char *to, const charge_t *charge)
{
    /* The library needs a 64-bit processor, for which compilers have this type. */
    __extension__ typedef unsigned __int128 wide_t;
    const tollbar_policy_spec *policy = charge->resolved->policy;
    uint64_t window = ngx_http_tollbar_seconds(policy->period_ns);
    wide_t quota = (wide_t) policy->limit * window * 1000000000 / policy->period_ns;

    return ngx_sprintf(to, "%V;q=%uL;w=%uL", &charge->limit->zone->quoted,
                       quota > INTEGER_MOST ? (uint64_t) INTEGER_MOST : (uint64_t) quota, window);
}

/* `t` is the time until more permits are left than now. A client may use `r` permits until then, and Retry-After never ends before it. A
 * limit with its whole quota has no `t`. */
static u_char *print_state(u_char *to, const charge_t *charge)
{
    uint64_t more = more_after(charge);

    to = ngx_sprintf(to, "%V;r=%uL", &charge->limit->zone->quoted, ngx_min(charge->remaining, INTEGER_MOST));
    return more == TOLLBAR_NO_TIME ? to : ngx_sprintf(to, ";t=%uL", ngx_http_tollbar_seconds(more));
}

/* Nanoseconds until `remaining` grows. TOLLBAR_NO_TIME: the quota is whole, only the store knows the time, or the policy lends. */
static uint64_t more_after(const charge_t *charge)
{
    const ngx_http_tollbar_resolved_t *resolved = charge->resolved;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    ngx_flag_t refused = charge->retry_ns != 0 && charge->retry_ns != TOLLBAR_NO_TIME;

    if (refused && (resolved->leased || charge->remaining + 1 == resolved->cost)) {
        return charge->retry_ns;
    }
    if (resolved->leased || charge->remaining >= resolved->capacity) {
        return TOLLBAR_NO_TIME;
    }
    if (charge->remaining != 0 && lends(resolved->policy)) {
        return TOLLBAR_NO_TIME;
    }
    /* A request for one permit more than `remaining` would wait as long. */
    if (tollbar_table_peek(charge->limit->zone->zone.table, resolved->number, charge->key.data, charge->key.len,
                           resolved->spare + charge->remaining + 1, &decision) < 0)
    {
        return TOLLBAR_NO_TIME;
    }
    /* The permit may have come back since the decision, and then this peek has no wait. */
    decision.retry_after_ns = ngx_max(decision.retry_after_ns, 1);
    return refused ? ngx_min(decision.retry_after_ns, charge->retry_ns) : decision.retry_after_ns;
}

/* Whether the policy may admit a request that costs more than `remaining`. Then a peek does not tell when `remaining` grows. */
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
    /* Newer versions of nginx have fields that this file does not set. */
    ngx_memzero(header, sizeof(*header));
    header->hash = 1;
    header->key.data = (u_char *) name;
    header->key.len = ngx_strlen(name);
    header->value.data = value;
    header->value.len = length;
    return NGX_OK;
}
