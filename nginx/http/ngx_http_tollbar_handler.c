/* What the limits say to a request. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_limit_t limit_t;
typedef ngx_http_tollbar_conf_t conf_t;
typedef ngx_http_tollbar_main_conf_t main_conf_t;
typedef ngx_http_tollbar_terms_t terms_t;
typedef ngx_http_tollbar_charge_t charge_t;
typedef ngx_http_tollbar_asked_t asked_t;

/* So many limits need no memory of their own for a request. */
#define USUAL_LIMITS 4

/* NGX_OK: the request may pass, after a delay if it owes too much; NGX_BUSY: refused; NGX_ERROR: refused because it cannot be
 * told; NGX_DECLINED: it has no key that is limited; NGX_ABORT: a value cannot be evaluated. */
static ngx_int_t ask(ngx_http_request_t *r, conf_t *conf, main_conf_t *main);
static ngx_int_t ask_several(ngx_http_request_t *r, conf_t *conf, asked_t *asked, ngx_flag_t wanted);
static ngx_int_t look_at_all(ngx_http_request_t *r, conf_t *conf, asked_t *asked, ngx_flag_t wanted);
static ngx_int_t take_all(ngx_http_request_t *r, asked_t *asked, ngx_flag_t wanted);
static ngx_int_t ask_dry(ngx_http_request_t *r, conf_t *conf, asked_t *asked);
static ngx_inline ngx_int_t prepare(ngx_http_request_t *r, limit_t *limit, charge_t *charge);
static ngx_int_t vary(ngx_http_request_t *r, limit_t *limit, charge_t *charge);
static ngx_inline ngx_int_t take(ngx_http_request_t *r, charge_t *charge, ngx_flag_t wanted);
static ngx_int_t take_known(ngx_http_request_t *r, charge_t *charge);
static ngx_inline ngx_flag_t would_pass(const charge_t *charge);
static ngx_int_t look(ngx_http_request_t *r, charge_t *charge, int32_t *verdict);
static ngx_int_t look_and_count(ngx_http_request_t *r, charge_t *charge);
static void know(charge_t *charge, const tollbar_decision *decision);
static void know_refusal(charge_t *charge, int32_t verdict);
static void count_refusal(ngx_http_request_t *r, const charge_t *charge);
static void count(ngx_http_request_t *r, const charge_t *charge, int32_t verdict);

ngx_int_t ngx_http_tollbar_handler(ngx_http_request_t *r)
{
    conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_tollbar_module);
    main_conf_t *main;

    if (conf->limits.nelts == 0) {
        return NGX_DECLINED;
    }
    /* Once for a request, whatever subrequests and redirects become of it. */
    main = ngx_http_get_module_main_conf(r, ngx_http_tollbar_module);
    return r->main->variables[main->variables[NGX_HTTP_TOLLBAR_VARIABLE_STATUS]].valid ? NGX_DECLINED : ask(r, conf, main);
}

static ngx_int_t ask(ngx_http_request_t *r, conf_t *conf, main_conf_t *main)
{
    ngx_flag_t wanted = conf->headers != NGX_HTTP_TOLLBAR_HEADERS_OFF || main->variables_used;
    charge_t usual[USUAL_LIMITS];
    asked_t asked;
    ngx_int_t rc;

    if (conf->limits.nelts == 1 && conf->enforced == 1) {
        rc = prepare(r, ((limit_t **) conf->limits.elts)[0], usual);
        if (rc == NGX_OK) {
            rc = take(r, usual, wanted);
        }
        if (rc == NGX_OK && !usual->known) {
            ngx_http_tollbar_set_status(r, &r->main->variables[main->variables[NGX_HTTP_TOLLBAR_VARIABLE_STATUS]],
                                        NGX_HTTP_TOLLBAR_PASSED);
            return NGX_DECLINED;
        }
        asked.charges = asked.binding = usual;
        asked.charges_n = asked.enforced = 1;
        asked.dry = NULL;
    } else {
        asked.charges = usual;
        if (conf->limits.nelts > USUAL_LIMITS) {
            asked.charges = ngx_palloc(r->pool, conf->limits.nelts * sizeof(charge_t));
            if (asked.charges == NULL) {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }
        }
        asked.binding = asked.dry = NULL;
        rc = ask_several(r, conf, &asked, wanted);
    }
    if (rc == NGX_DECLINED) {
        return NGX_DECLINED;
    }
    /* A request that is refused has not been tried, so it has not failed. In a dry run it is tried. */
    if (main->afterwards && rc != NGX_ABORT && (rc == NGX_OK || conf->dry_run) && ngx_http_tollbar_keep(r, &asked) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    return ngx_http_tollbar_answer(r, rc, &asked);
}

/* All limits in force are looked at before any is charged. The last one need not be: for it, looking and charging are one.
 * Between the look at another and its charge somebody else may have taken its permit; then the request is refused, and what
 * has been charged to the others stays so. That can cost a key a permit; it never lets a request through that any limit
 * refuses. Limits with a node come last, and so are charged first: that they will let a request pass is known when they have. Limits
 * in a dry run come after that, each for itself, for what is let through. */
static ngx_int_t ask_several(ngx_http_request_t *r, conf_t *conf, asked_t *asked, ngx_flag_t wanted)
{
    ngx_int_t rc;

    asked->charges_n = 0;
    rc = look_at_all(r, conf, asked, wanted);
    asked->enforced = asked->charges_n;
    if (rc == NGX_OK) {
        rc = take_all(r, asked, wanted);
    }
    if (rc == NGX_OK && conf->enforced < conf->limits.nelts) {
        rc = ask_dry(r, conf, asked);
    }
    return rc == NGX_OK && asked->charges_n == 0 ? NGX_DECLINED : rc;
}

/* Where one refuses, the others are looked at, too: the one that refuses for longest says when to come again. */
static ngx_int_t look_at_all(ngx_http_request_t *r, conf_t *conf, asked_t *asked, ngx_flag_t wanted)
{
    limit_t **limits = conf->limits.elts;
    charge_t *charge;
    ngx_int_t rc, worst = NGX_OK;
    int32_t verdict;
    ngx_uint_t n;

    for (n = 0; n < conf->enforced; n++) {
        charge = &asked->charges[asked->charges_n];
        rc = prepare(r, limits[n], charge);
        if (rc == NGX_DECLINED) {
            continue;
        }
        asked->charges_n++;
        if (rc == NGX_OK && (n + 1 < conf->enforced || worst != NGX_OK)) {
            if (charge->terms->leased) {
                rc = ngx_http_tollbar_look_leased(r, charge, worst == NGX_OK);
            } else if (worst == NGX_OK && (charge->limit->afterwards || charge->limit->zone->policy.ban_ns != 0)) {
                rc = look_and_count(r, charge);
            } else if (wanted || charge->terms->spare != 0 || !would_pass(charge)) {
                rc = look(r, charge, &verdict);
            }
        }
        if (rc == NGX_BUSY) {
            /* A request counts once, at the first limit that refuses it. A node has counted its own refusal, and look_and_count those of
             * its limits. */
            if (worst == NGX_OK && !charge->terms->leased && !charge->limit->afterwards
                && charge->limit->zone->policy.ban_ns == 0)
            {
                count_refusal(r, charge);
            }
            if (worst == NGX_OK || charge->retry_ns > asked->binding->retry_ns) {
                asked->binding = charge;
            }
            worst = NGX_BUSY;
        } else if (rc != NGX_OK) {
            asked->binding = charge;
            return rc;
        }
    }
    return worst;
}

/* From the last to the first: the last has not been looked at. */
static ngx_int_t take_all(ngx_http_request_t *r, asked_t *asked, ngx_flag_t wanted)
{
    charge_t *charge, *binding = NULL;
    ngx_uint_t n = asked->charges_n;
    ngx_int_t rc;

    while (n-- > 0) {
        charge = &asked->charges[n];
        rc = take(r, charge, wanted);
        if (rc != NGX_OK) {
            asked->binding = charge;
            return rc;
        }
        if (binding == NULL || charge->wait > binding->wait
            || (wanted && charge->wait == binding->wait && charge->remaining <= binding->remaining))
        {
            binding = charge;
        }
    }
    asked->binding = binding;
    return NGX_OK;
}

static ngx_int_t ask_dry(ngx_http_request_t *r, conf_t *conf, asked_t *asked)
{
    limit_t **limits = conf->limits.elts;
    charge_t *charge;
    ngx_uint_t n;
    ngx_int_t rc;

    asked->dry_rc = NGX_OK;
    for (n = conf->enforced; n < conf->limits.nelts; n++) {
        charge = &asked->charges[asked->charges_n];
        rc = prepare(r, limits[n], charge);
        if (rc == NGX_DECLINED) {
            continue;
        }
        if (rc == NGX_OK) {
            rc = take(r, charge, 1);
        }
        if (rc == NGX_ABORT) {
            return NGX_ABORT;
        }
        asked->charges_n++;
        if (asked->dry == NULL || (rc != NGX_OK && asked->dry_rc == NGX_OK)
            || (rc == NGX_OK && asked->dry_rc == NGX_OK && charge->wait > asked->dry->wait))
        {
            asked->dry = charge;
            asked->dry_rc = rc;
        }
    }
    return NGX_OK;
}

static ngx_inline ngx_int_t prepare(ngx_http_request_t *r, limit_t *limit, charge_t *charge)
{
    ngx_int_t rc = ngx_http_tollbar_key_of(r, &limit->zone->key, &charge->key);

    charge->limit = limit;
    charge->terms = &limit->terms;
    charge->retry_ns = 0;
    charge->wait = 0;
    charge->known = 0;
    charge->charged = 0;
    charge->banned = 0;
    return rc == NGX_OK && limit->varies ? vary(r, limit, charge) : rc;
}

/* What the limit comes to for this request. A request whose rate is empty is not limited, as one whose key is; where a rate or a
 * number is none, nobody knows what was meant, and it is refused. */
static ngx_int_t vary(ngx_http_request_t *r, limit_t *limit, charge_t *charge)
{
    ngx_http_tollbar_zone_t *zone = limit->zone;
    const tollbar_policy_spec *policy = &zone->policy;
    uint64_t burst = 0, cost = 0;
    uint32_t number = 0;
    ngx_str_t text;
    ngx_int_t rc;

    if (zone->rate != NULL) {
        if (ngx_http_complex_value(r, zone->rate, &text) != NGX_OK) {
            return NGX_ABORT;
        }
        if (text.len == 0) {
            return NGX_DECLINED;
        }
        policy = ngx_http_tollbar_rate_find(limit->shm_zone, &text, &number, r->connection->log);
        if (policy == NULL) {
            return NGX_ERROR;
        }
    }
    rc = ngx_http_tollbar_amount_of(r, limit, &limit->burst, "burst", ngx_max(zone->burst.number, 0), &burst);
    if (rc == NGX_OK && limit->afterwards) {
        /* What it costs is known afterwards. */
        cost = 1;
    } else if (rc == NGX_OK) {
        rc = ngx_http_tollbar_amount_of(r, limit, &limit->cost, "cost", 1, &cost);
    }
    if (rc == NGX_OK) {
        ngx_http_tollbar_terms(&charge->own, limit, policy, number, burst, cost);
        charge->terms = &charge->own;
    }
    return rc;
}

ngx_int_t ngx_http_tollbar_amount_of(ngx_http_request_t *r, limit_t *limit, ngx_http_tollbar_amount_t *amount,
                                     const char *name, ngx_int_t otherwise, uint64_t *number)
{
    ngx_str_t text;
    ngx_int_t value = amount->number != NGX_CONF_UNSET ? amount->number : otherwise;

    if (amount->text != NULL) {
        if (ngx_http_complex_value(r, amount->text, &text) != NGX_OK) {
            return NGX_ABORT;
        }
        value = text.len != 0 ? ngx_atoi(text.data, text.len) : otherwise;
        if (value < 0) {
            if (ngx_tollbar_seldom(&amount->wrong)) {
                ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                              "invalid %s \"%V\" for zone \"%V\", it must be a whole number, in %V:%ui%s", name, &text,
                              &limit->shm_zone->shm.name, &limit->where.file, limit->where.line, amount->wrong.text);
            }
            return NGX_ERROR;
        }
    }
    *number = (uint64_t) value;
    return NGX_OK;
}

void ngx_http_tollbar_terms(terms_t *terms, const limit_t *limit, const tollbar_policy_spec *policy, uint32_t number,
                            uint64_t burst, uint64_t cost)
{
    terms->policy = policy;
    terms->number = number;
    terms->cost = cost;
    terms->capacity = policy->burst;
    terms->undelayed = 0;
    terms->delays = 0;
    terms->leased = limit->zone->sync != NULL;
    if (limit->zone->paced) {
        terms->capacity = ngx_min(burst, policy->burst - 1) + 1;
        terms->delays = (uint64_t) limit->delay < burst;
        /* The request itself does not stand in its own way. */
        terms->undelayed = ngx_tollbar_time_of(policy, (uint64_t) limit->delay + cost);
    }
    terms->spare = policy->burst - terms->capacity;
}

/* Charges the request, in most configurations with this one call. */
static ngx_inline ngx_int_t take(ngx_http_request_t *r, charge_t *charge, ngx_flag_t wanted)
{
    const terms_t *terms = charge->terms;
    int32_t verdict;
    ngx_int_t rc;

    if (charge->limit->afterwards) {
        rc = charge->known ? NGX_OK : look_and_count(r, charge);
        if (rc == NGX_OK) {
            count(r, charge, TOLLBAR_ALLOWED);
        }
        return rc;
    }
    if (wanted || terms->spare != 0 || terms->delays || terms->leased) {
        return terms->leased ? ngx_http_tollbar_take_leased(r, charge, wanted) : take_known(r, charge);
    }
    verdict = tollbar_table_check(charge->limit->zone->zone.table, terms->number, charge->key.data, charge->key.len,
                                  terms->cost, NULL);
    if (verdict == TOLLBAR_ALLOWED) {
        return NGX_OK;
    }
    if (verdict < 0) {
        return ngx_http_tollbar_failed(r, charge, verdict);
    }
    /* When to come again is asked for afterwards: a moment has passed, but the answer is no. */
    rc = look(r, charge, &verdict);
    return rc == NGX_OK ? NGX_BUSY : rc;
}

/* Charges the request where the answer in full is needed. */
static ngx_int_t take_known(ngx_http_request_t *r, charge_t *charge)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    const terms_t *terms = charge->terms;
    int32_t verdict;
    ngx_int_t rc;

    if (terms->spare != 0) {
        rc = look(r, charge, &verdict);
        /* What the table refuses itself it is asked for nevertheless, since it counts the keys that it has no room for. */
        if (rc != NGX_OK && verdict != TOLLBAR_DENIED) {
            if (rc == NGX_BUSY) {
                count_refusal(r, charge);
            }
            return rc;
        }
    }
    verdict = tollbar_table_check(charge->limit->zone->zone.table, terms->number, charge->key.data, charge->key.len,
                                  terms->cost, &decision);
    if (verdict < 0) {
        return ngx_http_tollbar_failed(r, charge, verdict);
    }
    know(charge, &decision);
    /* Somebody may have been faster than this request's second step: what it has been charged is lost. */
    if (verdict != TOLLBAR_ALLOWED || (terms->cost != 0 && decision.remaining < terms->spare)) {
        know_refusal(charge, verdict);
        return NGX_BUSY;
    }
    if (terms->delays && charge->reset_ns > terms->undelayed) {
        /* To the nearest millisecond, which is what a timer can do. */
        charge->wait = (ngx_msec_t) ((charge->reset_ns - terms->undelayed + 500000) / 1000000);
    }
    return NGX_OK;
}

/* Whether the table alone would let the request through: the shorter question, of a limit as large as its zone's. */
static ngx_inline ngx_flag_t would_pass(const charge_t *charge)
{
    return tollbar_table_peek(charge->limit->zone->zone.table, charge->terms->number, charge->key.data, charge->key.len,
                              charge->terms->cost, NULL)
           == TOLLBAR_ALLOWED;
}

/* Whether the request would be let through; nothing is charged. `*verdict` is what the table alone says. */
static ngx_int_t look(ngx_http_request_t *r, charge_t *charge, int32_t *verdict)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    const terms_t *terms = charge->terms;

    *verdict = tollbar_table_peek(charge->limit->zone->zone.table, terms->number, charge->key.data, charge->key.len,
                                  terms->cost, &decision);
    if (*verdict < 0) {
        return ngx_http_tollbar_failed(r, charge, *verdict);
    }
    know(charge, &decision);
    if (*verdict == TOLLBAR_ALLOWED
        && (terms->cost == 0 || (terms->cost <= terms->capacity && charge->remaining >= terms->cost)))
    {
        return NGX_OK;
    }
    know_refusal(charge, *verdict);
    return NGX_BUSY;
}

/* As `look`, and a refusal counts: in the zone's numbers, and for a ban. Both questions are of one instant, so that the second one
 * charges nothing: it is refused as the first one was. A zone with `ban` has one burst, so the table makes all of its refusals. */
static ngx_int_t look_and_count(ngx_http_request_t *r, charge_t *charge)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    tollbar_table *table = charge->limit->zone->zone.table;
    const terms_t *terms = charge->terms;
    uint64_t now = 0;
    int32_t verdict;
    ngx_int_t rc;

    if (charge->limit->zone->policy.ban_ns == 0) {
        rc = look(r, charge, &verdict);
        if (rc == NGX_BUSY) {
            count_refusal(r, charge);
        }
        return rc;
    }
    verdict = tollbar_table_now(table, &now);
    if (verdict == 0) {
        verdict = tollbar_table_peek_at(table, terms->number, charge->key.data, charge->key.len, terms->cost, now, &decision);
    }
    if (verdict > 0) {
        verdict = tollbar_table_check_at(table, terms->number, charge->key.data, charge->key.len, terms->cost, now, &decision);
    }
    if (verdict < 0) {
        return ngx_http_tollbar_failed(r, charge, verdict);
    }
    know(charge, &decision);
    if (verdict == TOLLBAR_ALLOWED) {
        return NGX_OK;
    }
    know_refusal(charge, verdict);
    return NGX_BUSY;
}

ngx_int_t ngx_http_tollbar_failed(ngx_http_request_t *r, const charge_t *charge, int32_t error)
{
    ngx_tollbar_zone_failed(charge->limit->shm_zone, r->connection->log, error);
    return NGX_ERROR;
}

/* The table's answer, less what is not this limit's. */
static void know(charge_t *charge, const tollbar_decision *decision)
{
    uint64_t spare = charge->terms->spare;

    charge->known = 1;
    charge->remaining = decision->remaining > spare ? decision->remaining - spare : 0;
    charge->reset_ns = decision->reset_after_ns;
    charge->retry_ns = decision->retry_after_ns;
    charge->banned = decision->reason == TOLLBAR_REASON_BANNED;
}

/* The table counts what it refuses itself. Here a look, or the limit's own burst, has refused the request. */
static void count_refusal(ngx_http_request_t *r, const charge_t *charge)
{
    count(r, charge, charge->terms->cost > charge->terms->capacity ? TOLLBAR_NEVER : TOLLBAR_DENIED);
}

/* Counts what a look decided. */
static void count(ngx_http_request_t *r, const charge_t *charge, int32_t verdict)
{
    int32_t error = tollbar_table_count_verdict(charge->limit->zone->zone.table, charge->terms->number, verdict);

    if (error != 0) {
        ngx_http_tollbar_failed(r, charge, error);
    }
}

/* A limit with a smaller burst than the table's lets a key in again later than the table would: when what it owes has come down
 * to what this limit allows. */
static void know_refusal(charge_t *charge, int32_t verdict)
{
    const terms_t *terms = charge->terms;
    uint64_t allowed, retry;

    if (terms->cost > terms->capacity) {
        charge->retry_ns = TOLLBAR_NO_TIME;
    } else if (terms->spare != 0) {
        allowed = ngx_tollbar_time_of(terms->policy, terms->capacity - terms->cost);
        retry = charge->reset_ns > allowed ? charge->reset_ns - allowed : 1;
        charge->retry_ns = ngx_max(charge->retry_ns, retry);
    } else if (verdict == TOLLBAR_ALLOWED) {
        charge->retry_ns = 1;
    }
}
