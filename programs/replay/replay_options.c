/* replay_options.c: reads the command line and the policies in it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _GNU_SOURCE

#include "replay_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    "  --keys N           a place for N keys under each policy (for all of the log: the default)\n"
    "  --on-full WHAT     what a new key gets when there is no place: evict-nearest (the\n"
    "                     default), inherit, allow, or deny\n"
    "  --table FILE       keep what the keys have used up in FILE, from one replay to the next;\n"
    "                     with --keys\n"
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

static int try_help(void)
{
    fputs("Try '" REPLAY_PROGRAM " --help'.\n", stderr);
    return REPLAY_STATUS_USAGE;
}

static int wrong_usage(const char *what, const char *which)
{
    replay_complain(0, "%s%s", what, which);
    return try_help();
}

static int add_policy(replay_options *options, const char *text)
{
    if (replay_grow(&options->policies, &options->policy_room, options->policy_count + 1,
                    sizeof *options->policies) != 0)
        return replay_complain(REPLAY_STATUS_IO, "out of memory");
    if (!replay_policy_open(&options->policies[options->policy_count], text))
        return REPLAY_STATUS_USAGE;
    options->policy_count++;
    return 0;
}

static int add_compared(replay_options *options)
{
    size_t i;

    options->compares = true;
    for (i = 0; i < sizeof compared / sizeof *compared; i++) {
        int status = add_policy(options, compared[i]);

        if (status != 0)
            return status;
    }
    return 0;
}

/* One of two words; sets `*second`. */
static int choose(const char *option, const char *argument, const char *one, const char *two, bool *second)
{
    *second = strcmp(argument, two) == 0;
    if (*second || strcmp(argument, one) == 0)
        return 0;
    replay_complain(0, "%s is '%s' or '%s', not '%s'", option, one, two, argument);
    return try_help();
}

static int read_keys(uint64_t *keys, const char *argument)
{
    char *end;

    errno = 0;
    *keys = strtoull(argument, &end, 10);
    /* strtoull also takes blanks and signs. */
    if (*argument >= '0' && *argument <= '9' && *end == '\0' && errno == 0 && *keys > 0)
        return 0;
    replay_complain(0, "--keys is a whole number from 1 on, not '%s'", argument);
    return try_help();
}

static int read_on_full(uint32_t *on_full, const char *argument)
{
    /* In the order of the TOLLBAR_ON_FULL_ numbers. */
    static const char *const names[] = {"evict-nearest", "inherit", "allow", "deny"};

    for (*on_full = 0; *on_full < sizeof names / sizeof *names; ++*on_full) {
        if (strcmp(argument, names[*on_full]) == 0)
            return 0;
    }
    replay_complain(0, "--on-full is 'deny', 'inherit', 'allow' or 'evict-nearest', not '%s'", argument);
    return try_help();
}

/* Beyond any character, so that what getopt_long found wrong can be told from a short option. */
enum { POLICY = 256, KEY, FORMAT, KEYS, ON_FULL, TABLE, DECISIONS, HELP, VERSION };

/* What getopt_long has found wrong. */
static int wrong_option(const char *argument)
{
    char letter[] = "-?";

    if (optopt == 0)
        return wrong_usage("unknown or ambiguous option ", argument);
    if (optopt >= POLICY)
        return wrong_usage("this option takes no argument: ", argument);
    letter[1] = (char)optopt;
    return wrong_usage("unknown option ", letter);
}

static int read_option(replay_options *options, replay_output *out, int option, const char *argument)
{
    switch (option) {
    case POLICY:
        return add_policy(options, optarg);
    case KEY:
        return choose("--key", optarg, "address", "none", &options->one_key);
    case FORMAT:
        return choose("--format", optarg, "clf", "trace", &options->is_trace);
    case KEYS:
        return read_keys(&options->room.keys, optarg);
    case ON_FULL:
        return read_on_full(&options->room.on_full, optarg);
    case TABLE:
        if (options->room.path != NULL)
            return wrong_usage("--table is given twice", "");
        options->room.path = optarg;
        return 0;
    case DECISIONS:
        if (options->decisions_path != NULL)
            return wrong_usage("--decisions is given twice", "");
        options->decisions_path = optarg;
        return 0;
    case HELP:
        replay_output_text(out, usage);
        return -1;
    case VERSION:
        replay_output_text(out, REPLAY_PROGRAM " " TOLLBAR_VERSION_STRING ", libtollbar ");
        replay_output_text(out, tollbar_version_string());
        replay_output_text(out, "\n");
        return -1;
    case ':':
        return wrong_usage("an argument is missing after ", argument);
    default:
        return wrong_option(argument);
    }
}

int replay_options_read(replay_options *options, replay_output *out, int argc, char **argv)
{
    static const struct option known[] = {
        {"policy", required_argument, NULL, POLICY},
        {"key", required_argument, NULL, KEY},
        {"format", required_argument, NULL, FORMAT},
        {"keys", required_argument, NULL, KEYS},
        {"on-full", required_argument, NULL, ON_FULL},
        {"table", required_argument, NULL, TABLE},
        {"decisions", required_argument, NULL, DECISIONS},
        {"help", no_argument, NULL, HELP},
        {"version", no_argument, NULL, VERSION},
        {NULL, 0, NULL, 0},
    };
    int option, status = 0;

    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", known, NULL)) != -1) {
        status = read_option(options, out, option, argv[optind - 1]);
        if (status != 0)
            return status;
    }
    if (optind == argc)
        return wrong_usage("LOG is missing: the file to replay, or - for standard input", "");
    if (optind + 1 < argc)
        return wrong_usage("one LOG at a time: what is ", argv[optind + 1]);
    if (options->room.path != NULL && options->room.keys == 0)
        return wrong_usage("--table needs --keys: how many keys the file is for", "");
    options->log_path = argv[optind];
    if (options->policy_count == 0)
        status = add_compared(options);
    if (status == 0)
        status = replay_tables_check(&options->room, options->policies, options->policy_count);
    return status;
}

void replay_options_free(replay_options *options)
{
    size_t i;

    for (i = 0; i < options->policy_count; i++)
        replay_policy_close(&options->policies[i]);
    free(options->policies);
    memset(options, 0, sizeof *options);
}
