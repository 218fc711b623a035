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
static ngx_int_t take_all(ngx_http_request_t *r, conf_t *conf, asked_t *asked, ngx_flag_t wanted);
static ngx_inline charge_t *charge_of(const conf_t *conf, const asked_t *asked, ngx_uint_t n);
static charge_t *find_charge(const asked_t *asked, const limit_t *limit);
static void give_back(const charge_t *charge);
static ngx_int_t ask_dry(ngx_http_request_t *r, conf_t *conf, asked_t *asked);
static ngx_inline ngx_int_t prepare(ngx_http_request_t *r, limit_t *limit, charge_t *charge);
static void choose_binding(asked_t *asked, charge_t *charge, ngx_flag_t first);
static ngx_inline ngx_int_t read_clock(ngx_http_request_t *r, charge_t *charge);
static ngx_inline ngx_int_t take(ngx_http_request_t *r, charge_t *charge, ngx_flag_t wanted);
static ngx_inline ngx_int_t take_at(ngx_http_request_t *r, charge_t *charge, ngx_flag_t wanted);
static ngx_int_t take_other(ngx_http_request_t *r, charge_t *charge, ngx_flag_t wanted);
static ngx_int_t take_afterwards(ngx_http_request_t *r, charge_t *charge);
static ngx_int_t take_known(ngx_http_request_t *r, charge_t *charge);
static ngx_int_t refused(ngx_http_request_t *r, charge_t *charge, int32_t verdict);
static ngx_inline ngx_flag_t would_pass(const charge_t *charge);

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

/* Charges all limits in force, or none: ngx_tollbar_several.h says how. The last limit need not be looked at if it is charged first: for it, looking
 * and charging are one. Limits in a dry run are asked after the others, each for itself, for what is let through. */
static ngx_int_t ask_several(ngx_http_request_t *r, conf_t *conf, asked_t *asked, ngx_flag_t wanted)
{
    ngx_int_t rc;

    asked->charges_n = 0;
    rc = look_at_all(r, conf, asked, wanted);
    asked->enforced = asked->charges_n;
    if (rc == NGX_OK) {
        rc = take_all(r, conf, asked, wanted);
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
        if (rc == NGX_OK && !charge->terms->leased) {
            rc = read_clock(r, charge);
        }
        if (rc == NGX_OK && n + 1 == conf->enforced && n == conf->order[0] && worst == NGX_OK) {
            continue;
        }
        if (rc == NGX_OK && !(charge->terms->plain && !wanted && would_pass(charge))) {
            if (charge->terms->leased) {
                rc = ngx_http_tollbar_look_leased(r, charge, worst == NGX_OK);
            } else if (worst == NGX_OK && (charge->limit->afterwards || charge->limit->zone->policy.ban_ns != 0)) {
                rc = ngx_http_tollbar_look_and_count(r, charge);
            } else {
                rc = ngx_http_tollbar_look(r, charge, &verdict);
            }
        }
        if (rc == NGX_BUSY) {
            /* A request counts once, at the first limit that refuses it. A node has counted its own refusal, and look_and_count those of
             * its limits. */
            if (worst == NGX_OK && !charge->terms->leased && !charge->limit->afterwards
                && charge->limit->zone->policy.ban_ns == 0)
            {
                ngx_http_tollbar_count_refusal(r, charge);
            }
            choose_binding(asked, charge, worst == NGX_OK);
            worst = NGX_BUSY;
        } else if (rc != NGX_OK) {
            asked->binding = charge;
            return rc;
        }
    }
    return worst;
}

/* Of refusing limits the one with the longest wait binds, and of those that wait alike the one that was written first. The module reads the clocks of
 * limits one after the other, so the waits of limits that were charged by one request differ by the time between two readings. */
static void choose_binding(asked_t *asked, charge_t *charge, ngx_flag_t first)
{
    const uint64_t alike_ns = 1000000;
    charge_t *before = asked->binding;

    if (first || (charge->retry_ns > before->retry_ns && charge->retry_ns - before->retry_ns > alike_ns)) {
        asked->binding = charge;
    } else if (charge->retry_ns > before->retry_ns) {
        before->retry_ns = charge->retry_ns;
    }
}

static ngx_int_t take_all(ngx_http_request_t *r, conf_t *conf, asked_t *asked, ngx_flag_t wanted)
{
    charge_t *charge, *binding = NULL;
    ngx_uint_t n;
    ngx_int_t rc;

    for (n = 0; n < conf->enforced; n++) {
        charge = charge_of(conf, asked, n);
        rc = charge != NULL ? take_at(r, charge, wanted) : NGX_OK;
        if (rc != NGX_OK) {
            asked->binding = charge;
            while (n-- > 0) {
                give_back(charge_of(conf, asked, n));
            }
            return rc;
        }
    }
    for (n = asked->charges_n; n-- > 0; ) {
        charge = &asked->charges[n];
        if (binding == NULL || charge->wait > binding->wait
            || (wanted && charge->wait == binding->wait && charge->remaining <= binding->remaining))
        {
            binding = charge;
        }
    }
    asked->binding = binding;
    return NGX_OK;
}

/* Of the limits in their order the one in that place. NULL if the request has no key for it. */
static ngx_inline charge_t *charge_of(const conf_t *conf, const asked_t *asked, ngx_uint_t n)
{
    ngx_uint_t index = conf->order[n];

    return asked->charges_n == conf->enforced ? &asked->charges[index]
                                              : find_charge(asked, ((limit_t **) conf->limits.elts)[index]);
}

static charge_t *find_charge(const asked_t *asked, const limit_t *limit)
{
    ngx_uint_t n;

    for (n = 0; n < asked->charges_n; n++) {
        if (asked->charges[n].limit == limit) {
            return &asked->charges[n];
        }
    }
    return NULL;
}

/* What a node has charged stays charged. A limit with `count` or `when` has charged nothing yet. */
static void give_back(const charge_t *charge)
{
    if (charge != NULL && !charge->terms->leased && !charge->limit->afterwards) {
        ngx_tollbar_give_back(charge->limit->zone->zone.table, charge->terms->number, &charge->key, charge->terms->cost, charge->now);
    }
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
    return rc == NGX_OK && limit->varies ? ngx_http_tollbar_vary(r, limit, charge) : rc;
}

/* The time at which a limit is looked at and charged. */
static ngx_inline ngx_int_t read_clock(ngx_http_request_t *r, charge_t *charge)
{
    int32_t error = tollbar_table_now(charge->limit->zone->zone.table, &charge->now);

    return error == 0 ? NGX_OK : ngx_http_tollbar_failed(r, charge, error);
}

/* Charges the request, in most configurations with this one call. */
static ngx_inline ngx_int_t take(ngx_http_request_t *r, charge_t *charge, ngx_flag_t wanted)
{
    const terms_t *terms = charge->terms;
    int32_t verdict;

    if (!terms->plain || wanted) {
        return terms->leased || charge->limit->afterwards || read_clock(r, charge) == NGX_OK ? take_other(r, charge, wanted) : NGX_ERROR;
    }
    verdict = tollbar_table_check(charge->limit->zone->zone.table, terms->number, charge->key.data, charge->key.len,
                                  terms->cost, NULL);
    return verdict == TOLLBAR_ALLOWED ? NGX_OK : refused(r, charge, verdict);
}

/* The same of a limit beside others, whose clock has been read. */
static ngx_inline ngx_int_t take_at(ngx_http_request_t *r, charge_t *charge, ngx_flag_t wanted)
{
    const terms_t *terms = charge->terms;
    int32_t verdict;

    if (!terms->plain || wanted) {
        return take_other(r, charge, wanted);
    }
    verdict = tollbar_table_check_at(charge->limit->zone->zone.table, terms->number, charge->key.data, charge->key.len,
                                     terms->cost, charge->now, NULL);
    return verdict == TOLLBAR_ALLOWED ? NGX_OK : refused(r, charge, verdict);
}

static ngx_int_t take_other(ngx_http_request_t *r, charge_t *charge, ngx_flag_t wanted)
{
    if (charge->limit->afterwards) {
        return take_afterwards(r, charge);
    }
    return charge->terms->leased ? ngx_http_tollbar_take_leased(r, charge, wanted) : take_known(r, charge);
}

/* A limit that is charged after the answer: an admission counts. */
static ngx_int_t take_afterwards(ngx_http_request_t *r, charge_t *charge)
{
    ngx_int_t rc = charge->known ? NGX_OK : ngx_http_tollbar_look_and_count(r, charge);

    if (rc == NGX_OK) {
        ngx_http_tollbar_count(r, charge, TOLLBAR_ALLOWED);
    }
    return rc;
}

static ngx_int_t refused(ngx_http_request_t *r, charge_t *charge, int32_t verdict)
{
    ngx_int_t rc;

    if (verdict < 0) {
        return ngx_http_tollbar_failed(r, charge, verdict);
    }
    /* When to come again is asked for afterwards: a moment has passed, but the answer is no. */
    rc = ngx_http_tollbar_look(r, charge, &verdict);
    return rc == NGX_OK ? NGX_BUSY : rc;
}

/* Charges the request, at its clock's reading, where the answer in full is needed. */
static ngx_int_t take_known(ngx_http_request_t *r, charge_t *charge)
{
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    const terms_t *terms = charge->terms;
    int32_t verdict;
    ngx_int_t rc;

    if (terms->spare != 0) {
        rc = ngx_http_tollbar_look(r, charge, &verdict);
        /* What the table refuses itself it is asked for nevertheless, since it counts the keys that it has no room for. */
        if (rc != NGX_OK && verdict != TOLLBAR_DENIED) {
            if (rc == NGX_BUSY) {
                ngx_http_tollbar_count_refusal(r, charge);
            }
            return rc;
        }
    }
    verdict = tollbar_table_check_at(charge->limit->zone->zone.table, terms->number, charge->key.data, charge->key.len,
                                     terms->cost, charge->now, &decision);
    if (verdict < 0) {
        return ngx_http_tollbar_failed(r, charge, verdict);
    }
    ngx_http_tollbar_know(charge, &decision);
    if (verdict != TOLLBAR_ALLOWED) {
        ngx_http_tollbar_know_refusal(charge, verdict);
        return NGX_BUSY;
    }
    /* Another request was charged after the look, and this one has more than the limit's own burst. */
    if (terms->cost != 0 && decision.remaining < terms->spare) {
        ngx_http_tollbar_know_refusal(charge, verdict);
        give_back(charge);
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
    return tollbar_table_peek_at(charge->limit->zone->zone.table, charge->terms->number, charge->key.data, charge->key.len,
                                 charge->terms->cost, charge->now, NULL)
           == TOLLBAR_ALLOWED;
}
