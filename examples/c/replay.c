/* replay.c: yesterday's log through tomorrow's limit.
 *
 * Reads a log, decides on each request as a limiter in front of the server would have, at the time
 * that the line gives, and tells what each policy would have done. No clock is read for that, so the
 * answers are the same on every machine. docs/replay.md says what is read and printed.
 *
 *     replay_lines     a file as lines
 *     replay_parse     a line as a request: time, key, cost
 *     replay_keys      a key as a number
 *     replay_policy    policy and key as a limiter: the calls of tollbar.h are there
 *     replay_history   what was admitted in the fullest window
 *     replay_report    all of it as text, by way of
 *     replay_output    a file that is written to
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _GNU_SOURCE

#include "replay_lines.h"
#include "replay_parse.h"
#include "replay_report.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Bad lines that are told one by one. */
#define BAD_TOLD 5

static const char usage[] =
    "Usage: " REPLAY_PROGRAM " [OPTION]... LOG\n"
    "Tells what a rate limit would have done to the requests of LOG (- is standard input).\n"
    "\n"
    "  --policy POLICY    a policy to try, such as '100/min burst 20' (may be repeated);\n"
    "                     without it, six algorithms at 10/min are compared\n"
    "  --key address      a limiter for each client address, or key of a trace (the default)\n"
    "  --key none         one limiter for all requests\n"
    "  --format clf       LOG is in the Common or Combined Log Format (the default)\n"
    "  --format trace     LOG has lines of 'time_ns key cost'\n"
    "  --decisions FILE   write each decision to FILE: 'A|D|N remaining retry_after_ns'\n"
    "  --help             print this, and exit\n"
    "  --version          print the version, and exit\n"
    "\n"
    "Exit status: 0 all of LOG was replayed, 1 a file could not be read or written, 2 wrong usage.\n";

static const char *const compared[] = {
    "10/min",
    "10/min algo interval",
    "10/min algo fixed-window",
    "10/min algo weighted-window",
    "10/min algo sliding-window",
    "10/min algo sliding-log",
};

typedef struct replay {
    replay_policy *policies;
    size_t policy_count;
    size_t policy_room;
    bool compares;
    bool one_key;
    replay_parse *parse;
    const char *log_path;
    const char *decisions_path;
    int log;
    /* Of the log, for progress; 0 if not known. */
    uint64_t log_size;
    replay_input input;
    replay_output decisions;
    replay_output report;
} replay;

/* --- the command line -------------------------------------------------------------------------- */

static int wrong_usage(const char *what, const char *which)
{
    replay_complain(0, "%s%s", what, which);
    fputs("Try '" REPLAY_PROGRAM " --help'.\n", stderr);
    return REPLAY_STATUS_USAGE;
}

static int add_policy(replay *run, const char *text)
{
    if (replay_grow(&run->policies, &run->policy_room, run->policy_count + 1, sizeof *run->policies) != 0)
        return replay_complain(REPLAY_STATUS_IO, "out of memory");
    if (!replay_policy_open(&run->policies[run->policy_count], text))
        return REPLAY_STATUS_USAGE;
    run->policy_count++;
    return 0;
}

static int add_compared(replay *run)
{
    size_t i;

    run->compares = true;
    for (i = 0; i < sizeof compared / sizeof *compared; i++) {
        int status = add_policy(run, compared[i]);

        if (status != 0)
            return status;
    }
    return 0;
}

/* 0: go on; below 0: done, with success; else the exit status. */
static int read_options(replay *run, int argc, char **argv)
{
    static const struct option options[] = {
        {"policy", required_argument, NULL, 'p'},    {"key", required_argument, NULL, 'k'},
        {"format", required_argument, NULL, 'f'},    {"decisions", required_argument, NULL, 'd'},
        {"help", no_argument, NULL, 'h'},            {"version", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    int option, status = 0;

    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        switch (option) {
        case 'p':
            status = add_policy(run, optarg);
            if (status != 0)
                return status;
            break;
        case 'k':
            if (strcmp(optarg, "address") != 0 && strcmp(optarg, "none") != 0)
                return wrong_usage("--key is 'address' or 'none', not ", optarg);
            run->one_key = strcmp(optarg, "none") == 0;
            break;
        case 'f':
            if (strcmp(optarg, "clf") != 0 && strcmp(optarg, "trace") != 0)
                return wrong_usage("--format is 'clf' or 'trace', not ", optarg);
            run->input.is_trace = strcmp(optarg, "trace") == 0;
            break;
        case 'd':
            if (run->decisions_path != NULL)
                return wrong_usage("--decisions is given twice", "");
            run->decisions_path = optarg;
            break;
        case 'h':
            replay_output_text(&run->report, usage);
            return -1;
        case 'v':
            replay_output_text(&run->report, REPLAY_PROGRAM " " TOLLBAR_VERSION_STRING ", libtollbar ");
            replay_output_text(&run->report, tollbar_version_string());
            replay_output_text(&run->report, "\n");
            return -1;
        case ':':
            return wrong_usage("an argument is missing after ", argv[optind - 1]);
        default:
            return wrong_usage("unknown, ambiguous or misused option ", argv[optind - 1]);
        }
    }
    if (optind == argc)
        return wrong_usage("LOG is missing: the file to replay, or - for standard input", "");
    if (optind + 1 < argc)
        return wrong_usage("one LOG at a time; what is ", argv[optind + 1]);
    run->log_path = argv[optind];
    run->parse = run->input.is_trace ? replay_parse_trace : replay_parse_clf;
    return run->policy_count == 0 ? add_compared(run) : 0;
}

/* --- files ------------------------------------------------------------------------------------- */

static int open_log(replay *run, struct stat *about)
{
    bool is_file = strcmp(run->log_path, "-") != 0;

    run->input.name = is_file ? run->log_path : "standard input";
    run->log = is_file ? open(run->log_path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (run->log < 0 || fstat(run->log, about) != 0)
        return replay_complain(REPLAY_STATUS_IO, "%s: %s", run->input.name, strerror(errno));
    if (S_ISDIR(about->st_mode))
        return replay_complain(REPLAY_STATUS_IO, "%s: %s", run->input.name, strerror(EISDIR));
    if (S_ISREG(about->st_mode))
        run->log_size = (uint64_t)about->st_size;
    return 0;
}

static int open_decisions(replay *run, const struct stat *log)
{
    struct stat about;
    int file;

    if (run->decisions_path == NULL)
        return 0;
    /* Not truncated before it is known to be another file than the log. */
    file = open(run->decisions_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
        return replay_complain(REPLAY_STATUS_IO, "%s: %s", run->decisions_path, strerror(errno));
    replay_output_open(&run->decisions, file);
    if (fstat(file, &about) != 0)
        return replay_complain(REPLAY_STATUS_IO, "%s: %s", run->decisions_path, strerror(errno));
    if (S_ISREG(about.st_mode) && about.st_dev == log->st_dev && about.st_ino == log->st_ino)
        return replay_complain(REPLAY_STATUS_USAGE, "%s: decisions would overwrite the log", run->decisions_path);
    if (S_ISREG(about.st_mode) && ftruncate(file, 0) != 0)
        return replay_complain(REPLAY_STATUS_IO, "%s: %s", run->decisions_path, strerror(errno));
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

typedef struct progress {
    bool wanted;
    bool shown;
    double next;
} progress;

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void show_progress(progress *progress, const replay *run, const replay_lines *lines)
{
    double now;

    if (!progress->wanted || lines->number % 4096 != 0)
        return;
    now = seconds();
    if (now < progress->next)
        return;
    progress->next = now + 0.2;
    progress->shown = true;
    fprintf(stderr, "\r%" PRIu64 " lines", lines->number);
    if (run->log_size > 0 && lines->bytes <= run->log_size)
        fprintf(stderr, ", %.0f %%", 100.0 * (double)lines->bytes / (double)run->log_size);
}

static void hide_progress(progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}

/* --- the replay -------------------------------------------------------------------------------- */

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

static int decide(replay *run, const replay_request *request)
{
    replay_input *input = &run->input;
    size_t number = input->history.count;
    uint32_t key = replay_keys_number(&input->keys, request->key, run->one_key ? 0 : request->key_length);
    size_t i;

    if (key == REPLAY_NO_KEY || replay_history_add(&input->history, key, request->time_ns, request->cost) != 0)
        return replay_complain(REPLAY_STATUS_IO, "out of memory after %zu requests", number);
    if (number == 0 || request->time_ns < input->first_ns)
        input->first_ns = request->time_ns;
    if (number == 0 || request->time_ns >= input->last_ns)
        input->last_ns = request->time_ns;
    else
        input->backwards++;

    for (i = 0; i < run->policy_count; i++) {
        tollbar_decision decision = TOLLBAR_DECISION_INIT;
        int32_t verdict = replay_policy_decide(&run->policies[i], key, number, request->time_ns,
                                               request->cost, &decision);

        if (verdict < 0)
            return replay_complain(REPLAY_STATUS_IO, "%s, request %zu: %s", run->policies[i].text, number + 1,
                                   tollbar_strerror(verdict));
        if (run->decisions_path != NULL)
            write_decision(&run->decisions, verdict, &decision);
    }
    /* A full disk is told at once, not after hours. */
    if (run->decisions_path != NULL && run->decisions.error != 0)
        return replay_complain(REPLAY_STATUS_IO, "%s: %s", run->decisions_path, strerror(run->decisions.error));
    return 0;
}

static void note_bad(replay *run, progress *progress, const char *why)
{
    if (run->input.bad++ < BAD_TOLD) {
        hide_progress(progress);
        replay_complain(0, "%s:%" PRIu64 ": %s", run->input.name, run->input.lines, why);
    }
}

static int replay_all(replay *run, replay_lines *lines)
{
    progress progress = {false, false, 0};
    replay_line line;
    int status = 0, got = 0;

    progress.wanted = isatty(STDERR_FILENO) != 0;
    progress.next = seconds() + 1;
    while (status == 0 && (got = replay_lines_next(lines, &line)) > 0) {
        replay_request request;
        const char *why;

        run->input.lines = lines->number;
        /* The mark that some editors put before UTF-8. */
        if (lines->number == 1 && line.length >= 3 && memcmp(line.text, "\xef\xbb\xbf", 3) == 0) {
            line.text += 3;
            line.length -= 3;
        }
        show_progress(&progress, run, lines);
        if (replay_is_blank(line.text, line.length)) {
            run->input.blank++;
            continue;
        }
        why = run->parse(line.text, line.length, line.cut, &request);
        if (why != NULL)
            note_bad(run, &progress, why);
        else
            status = decide(run, &request);
    }
    hide_progress(&progress);
    if (got < 0)
        return replay_complain(REPLAY_STATUS_IO, "%s: after line %" PRIu64 ": %s", run->input.name,
                               lines->number, strerror(errno));
    if (run->input.bad > BAD_TOLD)
        replay_complain(0, "%s: %" PRIu64 " bad lines in all", run->input.name, run->input.bad);
    if (run->input.bad > 0 && run->input.history.count == 0)
        replay_complain(0, "%s: no line is of --format %s", run->input.name,
                        run->input.is_trace ? "trace" : "clf");
    return status;
}

static int read_log(replay *run)
{
    replay_lines lines;
    int status;

    if (!replay_lines_open(&lines, run->log))
        return replay_complain(REPLAY_STATUS_IO, "out of memory");
    status = replay_all(run, &lines);
    replay_lines_close(&lines);
    return status;
}

static int write_report(replay *run)
{
    size_t i;

    if (replay_history_sort(&run->input.history, run->input.keys.count) != 0)
        return replay_complain(REPLAY_STATUS_IO, "out of memory");
    replay_report_input(&run->report, &run->input);
    if (run->compares)
        replay_report_table(&run->report, &run->input, run->policies, run->policy_count);
    for (i = 0; !run->compares && i < run->policy_count; i++)
        replay_report_policy(&run->report, &run->input, &run->policies[i]);
    return 0;
}

static int replay_main(replay *run, int argc, char **argv)
{
    struct stat log;
    int status = read_options(run, argc, argv);

    if (status < 0)
        return close_output(&run->report, "standard output");
    if (status == 0)
        status = open_log(run, &log);
    if (status == 0)
        status = open_decisions(run, &log);
    if (status == 0)
        status = read_log(run);
    /* All decisions are in their file before a word of the report. */
    if (status == 0 && run->decisions_path != NULL)
        status = close_output(&run->decisions, run->decisions_path);
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
    size_t i;

    run.log = -1;
    replay_output_open(&run.decisions, -1);
    replay_output_open(&run.report, STDOUT_FILENO);
    status = replay_main(&run, argc, argv);

    if (run.log > STDIN_FILENO)
        close(run.log);
    if (run.decisions.file >= 0)
        close(run.decisions.file);
    for (i = 0; i < run.policy_count; i++)
        replay_policy_close(&run.policies[i]);
    free(run.policies);
    replay_keys_free(&run.input.keys);
    replay_history_free(&run.input.history);
    return status;
}
