/* replay_options.c: reads the command line and the policies in it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _GNU_SOURCE

#include "replay_options.h"

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

/* Beyond any character, so that what getopt_long found wrong can be told from a short option. */
enum { POLICY = 256, KEY, FORMAT, DECISIONS, HELP, VERSION };

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
        {"decisions", required_argument, NULL, DECISIONS},
        {"help", no_argument, NULL, HELP},
        {"version", no_argument, NULL, VERSION},
        {NULL, 0, NULL, 0},
    };
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", known, NULL)) != -1) {
        int status = read_option(options, out, option, argv[optind - 1]);

        if (status != 0)
            return status;
    }
    if (optind == argc)
        return wrong_usage("LOG is missing: the file to replay, or - for standard input", "");
    if (optind + 1 < argc)
        return wrong_usage("one LOG at a time: what is ", argv[optind + 1]);
    options->log_path = argv[optind];
    return options->policy_count == 0 ? add_compared(options) : 0;
}

void replay_options_free(replay_options *options)
{
    size_t i;

    for (i = 0; i < options->policy_count; i++)
        replay_policy_close(&options->policies[i]);
    free(options->policies);
    memset(options, 0, sizeof *options);
}
