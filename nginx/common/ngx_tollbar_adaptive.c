/* The library's adaptive limits are experimental. */
#define TOLLBAR_EXPERIMENTAL

#include "ngx_tollbar_adaptive.h"

typedef ngx_tollbar_adaptive_t adaptive_t;
typedef ngx_tollbar_learned_t learned_t;

struct ngx_tollbar_learned_s {
    tollbar_adaptive limit;
    ngx_atomic_t allowed;
    ngx_atomic_t denied;
    /* The limit begins at a cache line. */
    u_char rest[64 - 2 * sizeof(ngx_atomic_t)];
};

/* The most permits of a limit. */
#define MOST 65535

#if (NGX_TOLLBAR_ANSWERED != TOLLBAR_OUTCOME_ANSWERED || NGX_TOLLBAR_DROPPED != TOLLBAR_OUTCOME_DROPPED \
     || NGX_TOLLBAR_IGNORED != TOLLBAR_OUTCOME_IGNORED)
#error "the outcomes have the library's numbers"
#endif

static ngx_int_t read_number(ngx_conf_t *cf, ngx_str_t *argument, const char *name, uint32_t *number);
static ngx_int_t read_timeout(ngx_conf_t *cf, ngx_str_t *argument, adaptive_t *adaptive);
static tollbar_adaptive_options options_of(const adaptive_t *adaptive);

static ngx_flag_t begins(const ngx_str_t *argument, const char *word)
{
    return ngx_strncmp(argument->data, word, ngx_strlen(word)) == 0;
}

ngx_int_t ngx_tollbar_adaptive_read(ngx_conf_t *cf, ngx_str_t *argument, adaptive_t *adaptive)
{
    if (begins(argument, "initial=")) {
        return read_number(cf, argument, "initial", &adaptive->initial);
    }
    if (begins(argument, "least=")) {
        return read_number(cf, argument, "least", &adaptive->least);
    }
    if (begins(argument, "most=")) {
        return read_number(cf, argument, "most", &adaptive->most);
    }
    if (begins(argument, "timeout=")) {
        return read_timeout(cf, argument, adaptive);
    }
    if (ngx_strcmp(argument->data, "adaptive") == 0 || ngx_strcmp(argument->data, "adaptive=gradient2") == 0) {
        adaptive->algorithm = TOLLBAR_ADAPTIVE_GRADIENT2;
    } else if (ngx_strcmp(argument->data, "adaptive=aimd") == 0) {
        adaptive->algorithm = TOLLBAR_ADAPTIVE_AIMD;
    } else {
        return NGX_DECLINED;
    }
    adaptive->on = 1;
    return NGX_OK;
}

static ngx_int_t read_number(ngx_conf_t *cf, ngx_str_t *argument, const char *name, uint32_t *number)
{
    size_t prefix = ngx_strlen(name) + 1;
    ngx_int_t value = ngx_atoi(argument->data + prefix, argument->len - prefix);

    if (value < 1 || value > MOST) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid %s value \"%V\", it must be a whole number from 1 to 65535",
                           name, argument);
        return NGX_ERROR;
    }
    *number = (uint32_t) value;
    return NGX_OK;
}

static ngx_int_t read_timeout(ngx_conf_t *cf, ngx_str_t *argument, adaptive_t *adaptive)
{
    ngx_str_t text = { argument->len - 8, argument->data + 8 };
    ngx_int_t milliseconds = ngx_parse_time(&text, 0);

    if (milliseconds == NGX_ERROR || milliseconds == 0) {
        (void) ngx_tollbar_conf_refuse(cf, "invalid timeout value \"%V\", it must be a time such as 500ms or 2s",
                                       argument);
        return NGX_ERROR;
    }
    adaptive->timeout_ns = (uint64_t) milliseconds * 1000000;
    return NGX_OK;
}

char *ngx_tollbar_adaptive_check(ngx_conf_t *cf, ngx_str_t *name, adaptive_t *adaptive)
{
    const tollbar_adaptive_options usual = TOLLBAR_ADAPTIVE_OPTIONS_INIT;
    tollbar_adaptive_options options;
    tollbar_adaptive limit;

    if (!adaptive->on) {
        if (adaptive->initial != 0 || adaptive->least != 0 || adaptive->most != 0 || adaptive->timeout_ns != 0) {
            return ngx_tollbar_conf_refuse(cf, "\"initial\", \"least\", \"most\" and \"timeout\" must have "
                                           "\"adaptive\" beside them in zone \"%V\"", name);
        }
        return NGX_CONF_OK;
    }
    if ((adaptive->algorithm == TOLLBAR_ADAPTIVE_AIMD) != (adaptive->timeout_ns != 0)) {
        return ngx_tollbar_conf_refuse(cf, "\"adaptive=aimd\" must have a \"timeout\", such as timeout=500ms, and "
                                       "\"adaptive\" must have none, in zone \"%V\"", name);
    }
    adaptive->least = adaptive->least != 0 ? adaptive->least : usual.least;
    adaptive->most = adaptive->most != 0 ? adaptive->most : ngx_max(usual.most, adaptive->initial);
    if (adaptive->initial == 0) {
        adaptive->initial = ngx_max(adaptive->least, ngx_min(usual.initial, adaptive->most));
    }
    options = options_of(adaptive);
    if (tollbar_adaptive_init(&limit, &options) != 0) {
        return ngx_tollbar_conf_refuse(cf, "\"least\" must be at most \"initial\", and \"initial\" at most \"most\", "
                                       "in zone \"%V\"", name);
    }
    return NGX_CONF_OK;
}

static tollbar_adaptive_options options_of(const adaptive_t *adaptive)
{
    tollbar_adaptive_options options = TOLLBAR_ADAPTIVE_OPTIONS_INIT;

    options.algorithm = adaptive->algorithm;
    options.initial = adaptive->initial;
    options.least = adaptive->least;
    options.most = adaptive->most;
    options.timeout_ns = adaptive->timeout_ns;
    return options;
}

size_t ngx_tollbar_adaptive_bytes(const adaptive_t *adaptive)
{
    return adaptive->on ? sizeof(learned_t) : 0;
}

void ngx_tollbar_adaptive_make(learned_t *learned, const adaptive_t *adaptive)
{
    tollbar_adaptive_options options = options_of(adaptive);

    learned->allowed = learned->denied = 0;
    /* ngx_tollbar_adaptive_check has seen that these options make a limit. */
    (void) tollbar_adaptive_init(&learned->limit, &options);
}

int32_t ngx_tollbar_adaptive_acquire(learned_t *learned, const ngx_tollbar_counted_t *counted,
                                     tollbar_ticket *ticket)
{
    int32_t verdict = tollbar_adaptive_acquire_key(&learned->limit, counted->table, counted->key, counted->length,
                                                   ticket);

    if (verdict == TOLLBAR_ALLOWED) {
        (void) ngx_atomic_fetch_add(&learned->allowed, 1);
    } else if (verdict == TOLLBAR_DENIED) {
        (void) ngx_atomic_fetch_add(&learned->denied, 1);
    }
    return verdict;
}

void ngx_tollbar_adaptive_release(learned_t *learned, const ngx_tollbar_counted_t *counted,
                                  tollbar_ticket ticket, const ngx_tollbar_sample_t *sample)
{
    (void) tollbar_adaptive_release_key(&learned->limit, counted->table, counted->key, counted->length, ticket,
                                        sample->outcome, sample->latency_ns);
}

void ngx_tollbar_adaptive_state(const learned_t *learned, const ngx_tollbar_counted_t *counted,
                                ngx_tollbar_learned_state_t *state)
{
    tollbar_adaptive_state read = TOLLBAR_ADAPTIVE_STATE_INIT;
    uint64_t in_flight = 0;

    (void) tollbar_adaptive_read(&learned->limit, &read);
    (void) tollbar_in_flight_count(counted->table, counted->key, counted->length, &in_flight);
    state->limit = read.limit;
    state->in_flight = in_flight;
    state->latency_ns = read.latency_ns;
    state->allowed = learned->allowed;
    state->denied = learned->denied;
}
