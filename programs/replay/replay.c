/* replay.c: yesterday's log through tomorrow's limit.
 *
 * Reads a log, decides on each request as a limiter in front of the server would have, at the time
 * that the line gives, and tells what each policy would have done. No clock is read for that, so the
 * answers are the same on every machine. docs/replay.md says what is read and printed.
 *
 *     replay_options   the command line
 *     replay_lines     a file as lines
 *     replay_parse     a line as a request: time, key, cost
 *     replay_keys      a key as a number
 *     replay_policy    a policy, and counts of what it decided
 *     replay_tables    what each key has used up: most calls of tollbar.h are there
 *     replay_history   what was admitted in the fullest window
 *     replay_report    all of it as text, by way of
 *     replay_output    a file that is written to
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _POSIX_C_SOURCE 200809L

#include "replay_lines.h"
#include "replay_options.h"
#include "replay_parse.h"
#include "replay_report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Bad lines that are told one by one. */
#define BAD_TOLD 5

typedef struct progress {
    bool wanted;
    bool shown;
    double next;
} progress;

typedef struct replay {
    replay_options options;
    progress progress;
    int log;
    /* Of the log, for progress; 0 if not known. */
    uint64_t log_size;
    replay_input input;
    replay_tables tables;
    replay_output decisions;
    replay_output report;
} replay;

/* --- files ------------------------------------------------------------------------------------- */

static int open_log(replay *run, struct stat *about)
{
    bool is_file = strcmp(run->options.log_path, "-") != 0;

    run->input.is_trace = run->options.is_trace;
    run->input.name = is_file ? run->options.log_path : "standard input";
    run->log = is_file ? open(run->options.log_path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (run->log < 0 || fstat(run->log, about) != 0)
        return replay_complain(REPLAY_STATUS_IO, "%s: %s", run->input.name, strerror(errno));
    if (S_ISDIR(about->st_mode))
        return replay_complain(REPLAY_STATUS_IO, "%s: %s", run->input.name, strerror(EISDIR));
    if (S_ISREG(about->st_mode))
        run->log_size = (uint64_t)about->st_size;
    return 0;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return S_ISREG(a->st_mode) && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int open_decisions(replay *run, const struct stat *log)
{
    const char *path = run->options.decisions_path;
    struct stat about, output;

    if (path == NULL)
        return 0;
    /* Not truncated before it is known to be none of the other two files. */
    run->decisions.file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (run->decisions.file < 0 || fstat(run->decisions.file, &about) != 0)
        return replay_complain(REPLAY_STATUS_IO, "%s: %s", path, strerror(errno));
    if (is_same_file(&about, log))
        return replay_complain(REPLAY_STATUS_USAGE, "%s: decisions would overwrite the log", path);
    if (fstat(STDOUT_FILENO, &output) == 0 && is_same_file(&about, &output))
        return replay_complain(REPLAY_STATUS_USAGE, "%s: the report would overwrite the decisions", path);
    if (S_ISREG(about.st_mode) && ftruncate(run->decisions.file, 0) != 0)
        return replay_complain(REPLAY_STATUS_IO, "%s: %s", path, strerror(errno));
    return 0;
}

/* What is written late fails late: closing is part of writing. */
static int close_output(replay_output *out, const char *name)
{
    int error = replay_output_flush(out);

    if (close(out->file) != 0 && error == 0)
        error = errno;
    out->file = -1;
    return error == 0 ? 0 : replay_complain(REPLAY_STATUS_IO, "%s: %s", name, strerror(error));
}

/* --- progress ---------------------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* `part` of all is done; above 1: not known. */
static void show_progress(progress *progress, uint64_t count, const char *what, double part)
{
    double now;

    if (!progress->wanted || count % 4096 != 0)
        return;
    now = seconds();
    if (now < progress->next)
        return;
    progress->next = now + 0.2;
    progress->shown = true;
    fprintf(stderr, "\r\033[K%" PRIu64 " %s", count, what);
    if (part <= 1)
        fprintf(stderr, ", %.0f %%", 100 * part);
}

static void hide_progress(progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}

/* --- reading ----------------------------------------------------------------------------------- */

static int take(replay_input *input, const replay_request *request, bool one_key)
{
    size_t number = input->history.count;
    uint32_t key = one_key ? replay_keys_number(&input->keys, "(all)", strlen("(all)"))
                           : replay_keys_number(&input->keys, request->key, request->key_length);

    if (key == REPLAY_NO_KEY ||
        replay_history_add(&input->history, key, request->time_ns, request->cost) != 0)
        return replay_complain(REPLAY_STATUS_IO, "out of memory after %zu requests", number);
    if (number == 0 || request->time_ns < input->first_ns)
        input->first_ns = request->time_ns;
    if (number == 0 || request->time_ns >= input->last_ns)
        input->last_ns = request->time_ns;
    else
        input->backwards++;
    return 0;
}

static void note_bad(replay *run, const char *why)
{
    if (run->input.bad++ < BAD_TOLD) {
        hide_progress(&run->progress);
        replay_complain(0, "%s:%" PRIu64 ": %s", run->input.name, run->input.lines, why);
    }
}

static void sum_up_bad(const replay_input *input)
{
    if (input->bad > BAD_TOLD)
        replay_complain(0, "%s: %" PRIu64 " bad lines in all", input->name, input->bad);
    if (input->bad > 0 && input->history.count == 0)
        replay_complain(0, "%s: no line is of --format %s", input->name, input->is_trace ? "trace" : "clf");
}

static int read_lines(replay *run, replay_lines *lines)
{
    replay_parse *parse = run->input.is_trace ? replay_parse_trace : replay_parse_clf;
    replay_line line;
    int status = 0, got = 0;

    while (status == 0 && (got = replay_lines_next(lines, &line)) > 0) {
        replay_request request;
        const char *why;

        run->input.lines = lines->number;
        /* The mark that some editors put before UTF-8. */
        if (lines->number == 1 && line.length >= 3 && memcmp(line.text, "\xef\xbb\xbf", 3) == 0) {
            line.text += 3;
            line.length -= 3;
        }
        show_progress(&run->progress, lines->number, "lines",
                      run->log_size > 0 ? (double)lines->bytes / (double)run->log_size : 2);
        if (replay_is_blank(line.text, line.length)) {
            run->input.blank++;
            continue;
        }
        why = parse(line.text, line.length, line.cut, &request);
        if (why != NULL)
            note_bad(run, why);
        else
            status = take(&run->input, &request, run->options.one_key);
    }
    if (got < 0)
        status = errno;
    hide_progress(&run->progress);
    if (got < 0)
        return replay_complain(REPLAY_STATUS_IO, "%s: after line %" PRIu64 ": %s", run->input.name,
                               lines->number, strerror(status));
    sum_up_bad(&run->input);
    return status;
}

static int read_log(replay *run)
{
    replay_lines lines;
    int status;

    if (!replay_lines_open(&lines, run->log))
        return replay_complain(REPLAY_STATUS_IO, "out of memory");
    status = read_lines(run, &lines);
    replay_lines_close(&lines);
    return status;
}

/* --- deciding ---------------------------------------------------------------------------------- */

/* All keys are known by now, and tables can be made that have places for them. */
static int open_tables(replay *run)
{
    const replay_input *input = &run->input;
    replay_options *options = &run->options;
    size_t i;

    for (i = 0; i < options->policy_count; i++) {
        if (replay_policy_begin(&options->policies[i], input->keys.count, input->history.count) != 0)
            return replay_complain(REPLAY_STATUS_IO, "out of memory");
    }
    /* Half full at the most, nobody is without a place, and no key's place goes to another. */
    if (options->room.keys == 0)
        options->room.keys = input->keys.count > 0 ? 2 * (uint64_t)input->keys.count : 1;
    return replay_tables_open(&run->tables, &options->room, options->policies, options->policy_count);
}

static void write_decision(replay_output *out, int32_t verdict, const tollbar_decision *decision)
{
    replay_output_bytes(out, &"ADN"[verdict], 1);
    replay_output_bytes(out, " ", 1);
    replay_output_number(out, decision->remaining);
    if (verdict != TOLLBAR_DENIED || decision->retry_after_ns == TOLLBAR_NO_TIME) {
        replay_output_text(out, " -\n");
    } else {
        replay_output_bytes(out, " ", 1);
        replay_output_number(out, decision->retry_after_ns);
        replay_output_bytes(out, "\n", 1);
    }
}

/* On one request, by all policies, in their order. */
static int decide(replay *run, uint32_t number, const replay_event *request)
{
    const replay_keys *keys = &run->input.keys;
    const replay_key *key = &keys->keys[number];
    const char *path = run->options.decisions_path;
    size_t i;

    for (i = 0; i < run->options.policy_count; i++) {
        replay_policy *policy = &run->options.policies[i];
        tollbar_decision decision = TOLLBAR_DECISION_INIT;
        int32_t verdict = tollbar_table_check_at(policy->table, policy->number, keys->bytes + key->offset,
                                                 key->length, request->cost, request->time_ns, &decision);

        if (verdict < 0)
            return replay_complain(REPLAY_STATUS_IO, "%s, request %zu: %s", policy->text,
                                   request->number + 1, tollbar_strerror(verdict));
        replay_policy_count(policy, number, request->number, verdict);
        if (path != NULL)
            write_decision(&run->decisions, verdict, &decision);
    }
    /* A full disk is told at once, not after hours. */
    if (path != NULL && run->decisions.error != 0)
        return replay_complain(REPLAY_STATUS_IO, "%s: %s", path, strerror(run->decisions.error));
    return 0;
}

static int decide_all(replay *run)
{
    const replay_history *history = &run->input.history;
    int status = open_tables(run);
    size_t i;

    for (i = 0; i < history->count && status == 0; i++) {
        show_progress(&run->progress, i, "requests", (double)i / (double)history->count);
        status = decide(run, history->keys[i], &history->events[i]);
    }
    hide_progress(&run->progress);
    return status == 0 ? replay_tables_sync(&run->tables) : status;
}

/* --- all of it --------------------------------------------------------------------------------- */

static int write_report(replay *run)
{
    size_t i;

    if (replay_history_sort(&run->input.history, run->input.keys.count) != 0)
        return replay_complain(REPLAY_STATUS_IO, "out of memory");
    replay_report_input(&run->report, &run->input);
    replay_report_tables(&run->report, &run->tables);
    if (run->options.compares)
        replay_report_table(&run->report, &run->input, run->options.policies, run->options.policy_count);
    for (i = 0; !run->options.compares && i < run->options.policy_count; i++)
        replay_report_policy(&run->report, &run->input, &run->options.policies[i]);
    return 0;
}

static int replay_main(replay *run, int argc, char **argv)
{
    struct stat log;
    int status = replay_options_read(&run->options, &run->report, argc, argv);

    if (status < 0)
        return close_output(&run->report, "standard output");
    if (status == 0)
        status = open_log(run, &log);
    if (status == 0)
        status = open_decisions(run, &log);
    if (status == 0)
        status = read_log(run);
    if (status == 0)
        status = decide_all(run);
    /* All decisions are in their file before a word of the report. */
    if (status == 0 && run->options.decisions_path != NULL)
        status = close_output(&run->decisions, run->options.decisions_path);
    if (status == 0)
        status = write_report(run);
    if (status == 0)
        status = close_output(&run->report, "standard output");
    return status;
}

int main(int argc, char **argv)
{
    static replay run;
    int status;

    run.log = -1;
    run.progress.wanted = isatty(STDERR_FILENO) != 0;
    run.progress.next = seconds() + 1;
    replay_output_open(&run.decisions, -1);
    replay_output_open(&run.report, STDOUT_FILENO);
    status = replay_main(&run, argc, argv);

    if (run.log > STDIN_FILENO)
        close(run.log);
    if (run.decisions.file >= 0)
        close(run.decisions.file);
    replay_tables_close(&run.tables);
    replay_options_free(&run.options);
    replay_keys_free(&run.input.keys);
    replay_history_free(&run.input.history);
    return status;
}
