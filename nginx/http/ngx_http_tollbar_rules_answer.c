/* tollbar_rules_answer: costs that the answer tells. The request has taken an estimate; in the log
 * phase, when the variables of the answer are known, the module settles it. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_rules_t rules_t;
typedef ngx_http_tollbar_rules_field_t own_field_t;

/* The longest name of a word that nginx can be asked for. */
#define WORD_SIZE 256

typedef struct {
    rules_t *rules;
    const ngx_array_t *answers;
    tollbar_rules_answer answer;
    ngx_uint_t count;
    /* The fields of the request, and room for the words of the answer. */
    tollbar_rules_field *fields;
} kept_t;

static void cleanup(void *data);
static kept_t *find(ngx_http_request_t *r);

ngx_int_t ngx_http_tollbar_rules_find_words(ngx_conf_t *cf, rules_t *rules, const tollbar_rules *opened)
{
    char word[WORD_SIZE];
    ngx_str_t *place;
    int32_t found;
    size_t n;

    if (ngx_array_init(&rules->words, cf->pool, 1, sizeof(ngx_str_t)) != NGX_OK) {
        return NGX_ERROR;
    }
    for (n = 0; (found = ngx_http_tollbar_rules_calls.word_of_answers(opened, n, word, sizeof(word))) != TOLLBAR_NO; n++) {
        if (found < 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"tollbar_rules\" cannot use %V: the name of an answer's cost: %s", &rules->path,
                               tollbar_strerror(found));
            return NGX_ERROR;
        }
        place = ngx_array_push(&rules->words);
        if (place == NULL) {
            return NGX_ERROR;
        }
        place->len = ngx_strlen(word);
        place->data = ngx_pnalloc(cf->pool, place->len);
        if (place->data == NULL) {
            return NGX_ERROR;
        }
        ngx_memcpy(place->data, word, place->len);
    }
    return NGX_OK;
}

ngx_int_t ngx_http_tollbar_rules_answers_check(ngx_conf_t *cf, const rules_t *rules, const ngx_array_t *answers)
{
    const own_field_t *own = answers != NULL ? answers->elts : NULL;
    const ngx_str_t *words = rules != NULL ? rules->words.elts : NULL;
    ngx_uint_t n, m, known, words_n = rules != NULL ? rules->words.nelts : 0;

    for (n = 0; n < words_n; n++) {
        known = 0;
        for (m = 0; answers != NULL && m < answers->nelts; m++) {
            /* The name has a colon before it. */
            known |= own[m].name.len == words[n].len + 1 && ngx_strncasecmp(own[m].name.data + 1, words[n].data, words[n].len) == 0;
        }
        if (!known) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "the rules of %V have the cost \"answer %V\", which no \"tollbar_rules_answer\" gives, in %V:%ui",
                          &rules->path, &words[n], &rules->where.file, rules->where.line);
            return NGX_ERROR;
        }
    }
    return NGX_OK;
}

ngx_int_t ngx_http_tollbar_rules_keep(ngx_http_request_t *r, rules_t *rules, const ngx_array_t *answers, const tollbar_rules_field *fields,
                                      ngx_uint_t count, const tollbar_rules_answer *answer)
{
    ngx_pool_cleanup_t *place = ngx_pool_cleanup_add(r->main->pool, sizeof(kept_t));
    kept_t *kept;

    if (place == NULL) {
        return NGX_ERROR;
    }
    kept = place->data;
    kept->rules = rules;
    kept->answers = answers;
    kept->answer = *answer;
    kept->count = count;
    kept->fields = ngx_palloc(r->main->pool, (count + answers->nelts) * sizeof(tollbar_rules_field));
    if (kept->fields == NULL) {
        return NGX_ERROR;
    }
    ngx_memcpy(kept->fields, fields, count * sizeof(tollbar_rules_field));
    place->handler = cleanup;
    return NGX_OK;
}

/* Marks the module's entry among the pool's cleanups. The pool frees the memory. */
static void cleanup(void *data)
{
}

static kept_t *find(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t *place;

    for (place = r->pool->cleanup; place != NULL; place = place->next) {
        if (place->handler == cleanup) {
            return place->data;
        }
    }
    return NULL;
}

ngx_int_t ngx_http_tollbar_rules_log_handler(ngx_http_request_t *r)
{
    /* With log_subrequest, nginx calls this for subrequests, too. */
    kept_t *kept = r == r->main ? find(r) : NULL;
    const own_field_t *own;
    tollbar_rules_field *to;
    ngx_str_t value;
    int32_t settled;
    ngx_uint_t n;

    if (kept == NULL) {
        return NGX_OK;
    }
    own = kept->answers->elts;
    to = kept->fields + kept->count;
    for (n = 0; n < kept->answers->nelts; n++) {
        if (ngx_http_complex_value(r, (ngx_http_complex_value_t *) &own[n].value, &value) != NGX_OK) {
            return NGX_OK;
        }
        *to++ = (tollbar_rules_field) {
            (const char *) own[n].name.data, own[n].name.len, value.len != 0 ? (const char *) value.data : "", value.len
        };
    }
    settled = ngx_http_tollbar_rules_calls.settle(kept->rules->opened->rules, kept->fields, (size_t) (to - kept->fields), &kept->answer);
    if (settled < 0 && ngx_tollbar_seldom(&kept->rules->failed)) {
        ngx_log_error(NGX_LOG_ALERT, r->connection->log, 0, "the rules of %V cannot settle a request: %s%s", &kept->rules->path,
                      tollbar_strerror(settled), kept->rules->failed.text);
    }
    return NGX_OK;
}
