/* Decides a request by the rules of its location, and applies the decision. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_conf_t conf_t;
typedef ngx_http_tollbar_main_conf_t main_conf_t;
typedef ngx_http_tollbar_rules_field_t own_field_t;

/* Requests with so many fields need no memory from the pool. */
#define USUAL_FIELDS 48
/* The method, the path, the address and the host. */
#define OF_NGINX 4

static ngx_int_t collect(ngx_http_request_t *r, const conf_t *conf, tollbar_rules_field **fields, ngx_uint_t *count);
static tollbar_rules_field *append_headers(ngx_http_request_t *r, tollbar_rules_field *to);
static tollbar_rules_field field(const ngx_str_t *name, const ngx_str_t *value);
static ngx_int_t failed(ngx_http_request_t *r, conf_t *conf, int32_t error);
static ngx_int_t refuse(ngx_http_request_t *r, conf_t *conf, const tollbar_rules_answer *answer);
static u_char *print_limit(u_char *to, u_char *end, const tollbar_rules_answer *answer);
static ngx_int_t send_body(ngx_http_request_t *r, const tollbar_rules_answer *answer);
static ngx_int_t note(ngx_http_request_t *r, ngx_uint_t status, const tollbar_rules_answer *answer);
static ngx_int_t add_headers(ngx_http_request_t *r, conf_t *conf, const tollbar_rules_answer *answer);

ngx_int_t ngx_http_tollbar_rules_handler(ngx_http_request_t *r)
{
    conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_tollbar_module);
    main_conf_t *main = ngx_http_get_module_main_conf(r, ngx_http_tollbar_module);
    tollbar_rules_answer answer = TOLLBAR_RULES_ANSWER_INIT;
    tollbar_rules_field usual[USUAL_FIELDS], *fields = usual;
    ngx_uint_t count;
    int32_t verdict;

    /* Subrequests and redirects of a decided request are not decided again. */
    if (conf->rules == NULL
        || ngx_http_tollbar_value(r, main, NGX_HTTP_TOLLBAR_VARIABLE_RULES_STATUS)->valid)
    {
        return NGX_DECLINED;
    }
    if (collect(r, conf, &fields, &count) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    verdict = ngx_http_tollbar_rules_calls.check(conf->rules->opened->rules, fields, count, &answer);
    if (verdict < 0) {
        return failed(r, conf, verdict);
    }
    if (verdict != TOLLBAR_ALLOWED) {
        return refuse(r, conf, &answer);
    }
    /* 0 if no cost is that of an answer. */
    if (answer.taken_at_ns != 0 && conf->rules_answers != NULL
        && ngx_http_tollbar_rules_keep(r, conf->rules, conf->rules_answers, fields, count, &answer) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    if (note(r, NGX_TOLLBAR_PASSED, &answer) != NGX_OK
        || (!conf->dry_run && add_headers(r, conf, &answer) != NGX_OK))
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    return NGX_DECLINED;
}

/* Collects the request's fields: nginx's own, those of tollbar_rules_field, and the headers.
 * `*fields` has room for USUAL_FIELDS. */
static ngx_int_t collect(ngx_http_request_t *r, const conf_t *conf, tollbar_rules_field **fields, ngx_uint_t *count)
{
    static const ngx_str_t method = ngx_string(":method"), path = ngx_string(":path"), address = ngx_string(":address"),
                           host = ngx_string(":host");
    const own_field_t *own = conf->rules_fields != NULL ? conf->rules_fields->elts : NULL;
    ngx_uint_t n, own_n = conf->rules_fields != NULL ? conf->rules_fields->nelts : 0;
    ngx_uint_t most = OF_NGINX + own_n;
    const ngx_list_part_t *part;
    tollbar_rules_field *to;
    ngx_str_t value;

    for (part = &r->headers_in.headers.part; part != NULL; part = part->next) {
        most += part->nelts;
    }
    if (most > USUAL_FIELDS) {
        *fields = ngx_palloc(r->pool, most * sizeof(tollbar_rules_field));
        if (*fields == NULL) {
            return NGX_ERROR;
        }
    }
    to = *fields;
    *to++ = field(&method, &r->main->method_name);
    *to++ = field(&path, &r->main->unparsed_uri);
    *to++ = field(&address, &r->connection->addr_text);
    /* The host by which nginx has chosen the server: that of the request line, if it has one. */
    *to++ = field(&host, &r->headers_in.server);
    for (n = 0; n < own_n; n++) {
        if (ngx_http_complex_value(r, (ngx_http_complex_value_t *) &own[n].value, &value) != NGX_OK) {
            return NGX_ERROR;
        }
        *to++ = field(&own[n].name, &value);
    }
    to = append_headers(r, to);
    *count = (ngx_uint_t) (to - *fields);
    return NGX_OK;
}

static tollbar_rules_field *append_headers(ngx_http_request_t *r, tollbar_rules_field *to)
{
    const ngx_list_part_t *part;
    const ngx_table_elt_t *header;
    ngx_uint_t n;

    for (part = &r->headers_in.headers.part; part != NULL; part = part->next) {
        header = part->elts;
        for (n = 0; n < part->nelts; n++) {
            /* Before version 1.21.1 and with `ignore_invalid_headers off` nginx accepts a name that
             * begins with a colon. Only the server may give such names. */
            if (header[n].key.len != 0 && header[n].key.data[0] != ':') {
                *to++ = field(&header[n].key, &header[n].value);
            }
        }
    }
    return to;
}

static tollbar_rules_field field(const ngx_str_t *name, const ngx_str_t *value)
{
    /* A field whose value has no bytes may have no address, which the library refuses. */
    tollbar_rules_field field = {
        (const char *) name->data, name->len, value->len != 0 ? (const char *) value->data : "", value->len
    };

    return field;
}

/* A request that the rules cannot decide is refused, as one is that a zone cannot decide. */
static ngx_int_t failed(ngx_http_request_t *r, conf_t *conf, int32_t error)
{
    tollbar_rules_answer none = TOLLBAR_RULES_ANSWER_INIT;

    none.reason = TOLLBAR_REASON_FAULT;
    if (ngx_tollbar_seldom(&conf->rules->failed)) {
        ngx_log_error(NGX_LOG_ALERT, r->connection->log, 0, "the rules of %V cannot decide: %s%s", &conf->rules->path, tollbar_strerror(error),
                      conf->rules->failed.text);
    }
    if (note(r, conf->dry_run ? NGX_TOLLBAR_REJECTED_DRY_RUN : NGX_TOLLBAR_REJECTED, &none)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    return conf->dry_run ? NGX_DECLINED : (ngx_int_t) conf->status_code;
}

static ngx_int_t refuse(ngx_http_request_t *r, conf_t *conf, const tollbar_rules_answer *answer)
{
    u_char limit[sizeof ", 18446744073709551615 per 18446744073709551615ms"];

    *print_limit(limit, limit + sizeof limit - 1, answer) = '\0';
    ngx_log_error(conf->limit_log_level, r->connection->log, 0,
                  "limiting requests%s, %s, by rule \"%s\"%s", conf->dry_run ? ", dry run" : "",
                  tollbar_strreason(answer->reason), answer->rule, limit);
    if (note(r, conf->dry_run ? NGX_TOLLBAR_REJECTED_DRY_RUN : NGX_TOLLBAR_REJECTED, answer)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    if (conf->dry_run) {
        return NGX_DECLINED;
    }
    if (add_headers(r, conf, answer) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    return answer->body[0] != '\0' ? send_body(r, answer) : (ngx_int_t) answer->status;
}

/* The limit of the rule that refuses, as ", 5 per 60s". Nothing if none took part in the decision.
 * Returns the end. */
static u_char *print_limit(u_char *to, u_char *end, const tollbar_rules_answer *answer)
{
    static const struct {
        uint64_t nanoseconds;
        const char *name;
    } units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};
    size_t i = 0;

    if (answer->period_ns == 0) {
        return to;
    }
    if (answer->period_ns == TOLLBAR_FOREVER) {
        return ngx_slprintf(to, end, ", %uL for ever", answer->limit);
    }
    while (answer->period_ns % units[i].nanoseconds != 0) {
        i++;
    }
    return ngx_slprintf(to, end, ", %uL per %uL%s", answer->limit,
                        answer->period_ns / units[i].nanoseconds, units[i].name);
}

/* Answers as `return STATUS "text"` does, so `error_page` does not replace the rule's body. */
static ngx_int_t send_body(ngx_http_request_t *r, const tollbar_rules_answer *answer)
{
    ngx_str_t type = ngx_string("text/plain; charset=utf-8");
    ngx_http_complex_value_t body;

    ngx_memzero(&body, sizeof(body));
    body.value.len = ngx_strlen(answer->body);
    body.value.data = ngx_pnalloc(r->pool, body.value.len);
    if (body.value.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    ngx_memcpy(body.value.data, answer->body, body.value.len);
    ngx_http_finalize_request(r, ngx_http_send_response(r, answer->status, &type, &body));
    return NGX_DONE;
}

/* Marks the request as decided, and sets the variables. */
static ngx_int_t note(ngx_http_request_t *r, ngx_uint_t status, const tollbar_rules_answer *answer)
{
    main_conf_t *main = ngx_http_get_module_main_conf(r, ngx_http_tollbar_module);
    size_t length = ngx_strlen(answer->rule);
    ngx_http_variable_value_t *v;
    u_char *rule;

    v = ngx_http_tollbar_value(r, main, NGX_HTTP_TOLLBAR_VARIABLE_RULES_STATUS);
    ngx_tollbar_set_status(v, status);
    if (status != NGX_TOLLBAR_PASSED) {
        v = ngx_http_tollbar_value(r, main, NGX_HTTP_TOLLBAR_VARIABLE_RULES_REASON);
        ngx_http_tollbar_set_reason(v, answer->reason);
    }
    if (!main->rule_used || length == 0) {
        return NGX_OK;
    }
    rule = ngx_pnalloc(r->main->pool, length);
    if (rule == NULL) {
        return NGX_ERROR;
    }
    ngx_memcpy(rule, answer->rule, length);
    v = ngx_http_tollbar_value(r, main, NGX_HTTP_TOLLBAR_VARIABLE_RULE);
    return ngx_tollbar_set_text(v, rule, length);
}

/* Adds Retry-After to a refusal, and the fields of tollbar_headers, about the limit that binds. */
static ngx_int_t add_headers(ngx_http_request_t *r, conf_t *conf, const tollbar_rules_answer *answer)
{
    const uint32_t fields = (uint32_t) conf->headers | (answer->verdict != TOLLBAR_ALLOWED ? TOLLBAR_HTTP_RETRY_AFTER : 0);
    tollbar_policy_spec policy = TOLLBAR_POLICY_SPEC_INIT;
    tollbar_decision decision = TOLLBAR_DECISION_INIT;
    tollbar_http_limit limit;

    /* nginx has sent the header already, or no limit took part in the decision. */
    if (r->main->header_sent || fields == 0 || answer->period_ns == 0) {
        return NGX_OK;
    }
    policy.algorithm = answer->period_ns == TOLLBAR_FOREVER ? TOLLBAR_ALGORITHM_QUOTA : TOLLBAR_ALGORITHM_GCRA;
    policy.limit = answer->limit;
    policy.period_ns = answer->period_ns;
    policy.burst = answer->burst;
    decision.verdict = answer->verdict;
    decision.reason = answer->reason;
    decision.remaining = answer->remaining;
    decision.retry_after_ns = answer->retry_after_ns;
    decision.reset_after_ns = answer->reset_after_ns;
    ngx_memzero(&limit, sizeof(limit));
    limit.name = answer->rule;
    limit.name_length = ngx_strlen(answer->rule);
    limit.policy = &policy;
    limit.decision = &decision;
    /* The rules say only of a refusal when more permits are left. */
    limit.more_after_ns = answer->verdict == TOLLBAR_DENIED ? answer->retry_after_ns : TOLLBAR_NO_TIME;
    return ngx_http_tollbar_add_fields(r, &limit, 1, fields);
}
