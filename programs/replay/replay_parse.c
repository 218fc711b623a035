/* replay_parse.c: log lines and trace lines.
 *
 * Lines have a length and no end mark: a log may hold NUL bytes, and often does where a machine has
 * crashed.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "replay_parse.h"

#include <string.h>

#define SECOND_NS UINT64_C(1000000000)

/* What is left of a line. */
typedef struct rest {
    const char *at;
    const char *end;
} rest;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void skip_blanks(rest *line)
{
    while (line->at < line->end && is_blank(*line->at))
        line->at++;
}

static void skip_word(rest *line)
{
    while (line->at < line->end && !is_blank(*line->at))
        line->at++;
}

bool replay_is_blank(const char *text, size_t length)
{
    rest line;

    line.at = text;
    line.end = text + length;
    skip_blanks(&line);
    return line.at == line.end;
}

/* --- the time of a log line -------------------------------------------------------------------- */

/* Exactly `digits` digits, or -1. */
static int number(rest *line, int digits)
{
    int value = 0;

    if (line->end - line->at < digits)
        return -1;
    while (digits-- > 0) {
        if (!is_digit(*line->at))
            return -1;
        value = value * 10 + (*line->at++ - '0');
    }
    return value;
}

static bool is_next(rest *line, char c)
{
    if (line->at == line->end || *line->at != c)
        return false;
    line->at++;
    return true;
}

/* 1 to 12, or 0. */
static int month_number(rest *line)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int month;

    if (line->end - line->at < 3)
        return 0;
    for (month = 1; month <= 12; month++) {
        if (memcmp(line->at, names + 3 * (month - 1), 3) == 0) {
            line->at += 3;
            return month;
        }
    }
    return 0;
}

static int month_days(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return days[month - 1] + (month == 2 && leap);
}

/* Days from 1 January 1970; negative before it. */
static int64_t days_since_1970(int year, int month, int day)
{
    int64_t before = (int64_t)year - 1;
    int64_t days = 365 * before + before / 4 - before / 100 + before / 400 - 719162;
    int earlier;

    for (earlier = 1; earlier < month; earlier++)
        days += month_days(year, earlier);
    return days + day - 1;
}

/* `.123` and the like, as nanoseconds: not of the format, but some servers write it. */
static uint64_t fraction(rest *line)
{
    uint64_t ns = 0, place = SECOND_NS;

    while (line->at < line->end && is_digit(*line->at)) {
        place /= 10;
        ns += place * (uint64_t)(*line->at++ - '0');
    }
    return ns;
}

/* `17/May/2015:10:05:03 +0000]`; the bracket before it has been read. */
static const char *clf_time(rest line, uint64_t *time_ns)
{
    int day, month, year, hour, minute, second, zone_hour, zone_minute;
    uint64_t ns = 0;
    int64_t seconds, zone;
    bool east;

    day = number(&line, 2);
    if (day < 0 || !is_next(&line, '/'))
        return "the day is not two digits and a slash";
    month = month_number(&line);
    if (month == 0 || !is_next(&line, '/'))
        return "the month is not one of Jan to Dec and a slash";
    year = number(&line, 4);
    if (year < 1 || !is_next(&line, ':'))
        return "the year is not four digits and a colon";
    if (day < 1 || day > month_days(year, month))
        return "there is no such day in that month";
    hour = number(&line, 2);
    if (hour < 0 || hour > 23 || !is_next(&line, ':'))
        return "the hour is not 00 to 23 and a colon";
    minute = number(&line, 2);
    if (minute < 0 || minute > 59 || !is_next(&line, ':'))
        return "the minute is not 00 to 59 and a colon";
    second = number(&line, 2);
    /* 60 is a leap second: it has the Unix time of the second after it. */
    if (second < 0 || second > 60)
        return "the second is not 00 to 60";
    if (is_next(&line, '.'))
        ns = fraction(&line);
    if (!is_next(&line, ' '))
        return "no blank and zone follow the time of day";
    east = is_next(&line, '+');
    if (!east && !is_next(&line, '-'))
        return "the zone does not start with + or -";
    zone_hour = number(&line, 2);
    zone_minute = number(&line, 2);
    if (zone_hour < 0 || zone_hour > 23 || zone_minute < 0 || zone_minute > 59)
        return "the zone is not a sign and four digits such as +0200";
    if (!is_next(&line, ']'))
        return "the time does not end with a bracket";

    seconds = days_since_1970(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    /* East of Greenwich the clock is ahead. */
    zone = zone_hour * 3600 + zone_minute * 60;
    seconds += east ? -zone : zone;
    if (seconds < 0)
        return "the time is before 1970";
    if ((uint64_t)seconds > UINT64_MAX / SECOND_NS - 1)
        return "the time does not fit 64 bits of nanoseconds";
    *time_ns = (uint64_t)seconds * SECOND_NS + ns;
    return NULL;
}

/* --- lines ------------------------------------------------------------------------------------- */

const char *replay_parse_clf(const char *text, size_t length, bool cut, replay_request *out)
{
    const char *why = cut ? "no time in brackets within the first mebibyte" : "no time in brackets";
    bool first = true;
    rest line;
    const char *c;

    line.at = text;
    line.end = text + length;
    skip_blanks(&line);
    out->key = line.at;
    skip_word(&line);
    out->key_length = (size_t)(line.at - out->key);
    for (c = out->key; c < line.at; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return "a control byte in the client's address";
    }
    /* The two names before the time may hold blanks and brackets, so the first bracket need not be
     * the time's. But nothing from the request counts, which its sender could choose: it begins with
     * a quote. */
    for (; line.at < line.end && *line.at != '"'; line.at++) {
        if (*line.at == '[') {
            rest inside = line;
            const char *wrong;

            inside.at++;
            wrong = clf_time(inside, &out->time_ns);
            if (wrong == NULL) {
                out->cost = 1;
                return NULL;
            }
            if (first)
                why = wrong;
            first = false;
        }
    }
    return why;
}

/* A whole word as a number. NULL, or which of the two reasons. */
static const char *word_number(rest *line, uint64_t *out, const char *no_number,
                               const char *too_large)
{
    const char *start = line->at;
    uint64_t value = 0;

    for (; line->at < line->end && is_digit(*line->at); line->at++) {
        uint64_t digit = (uint64_t)(*line->at - '0');

        if (value > (UINT64_MAX - digit) / 10)
            return too_large;
        value = value * 10 + digit;
    }
    if (line->at == start || (line->at < line->end && !is_blank(*line->at)))
        return no_number;
    *out = value;
    return NULL;
}

const char *replay_parse_trace(const char *text, size_t length, bool cut, replay_request *out)
{
    const char *why;
    rest line;

    if (cut)
        return "longer than a mebibyte";
    line.at = text;
    line.end = text + length;
    skip_blanks(&line);
    why = word_number(&line, &out->time_ns, "the time is not a whole number",
                      "the time does not fit 64 bits");
    if (why != NULL)
        return why;
    skip_blanks(&line);
    out->key = line.at;
    skip_word(&line);
    out->key_length = (size_t)(line.at - out->key);
    if (out->key_length == 0)
        return "no key after the time";
    skip_blanks(&line);
    if (line.at == line.end)
        return "no cost after the key";
    why = word_number(&line, &out->cost, "the cost is not a whole number",
                      "the cost does not fit 64 bits");
    if (why != NULL)
        return why;
    skip_blanks(&line);
    return line.at == line.end ? NULL : "more than a time, a key and a cost";
}
