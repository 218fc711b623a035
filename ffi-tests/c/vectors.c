#include "vectors.h"

#include <stdlib.h>
#include <string.h>

/* The next line with an object, or NULL at the end. */
static const char *next_line(FILE *file) {
    static char line[16384];
    do {
        if (fgets(line, (int)sizeof line, file) == NULL)
            return NULL;
    } while (line[0] != '{' && strchr("[]", line[0]) != NULL);
    return line;
}

int vector_read(FILE *file, struct golden_vector *into) {
    const char *const line = next_line(file), *at, *end;
    size_t length;
    if (line == NULL)
        return 0;
    at = strstr(line, "{\"policy\": \"");
    end = strstr(line, "\", \"steps\": [");
    if (at != line || end == NULL)
        return -1;
    at += strlen("{\"policy\": \"");
    length = (size_t)(end - at);
    if (length >= sizeof into->policy)
        return -1;
    memcpy(into->policy, at, length);
    into->policy[length] = '\0';
    at = end + strlen("\", \"steps\": [");
    for (into->count = 0; *at == '['; into->count++) {
        uint64_t numbers[5];
        size_t i;
        if (into->count == sizeof into->steps / sizeof *into->steps)
            return -1;
        for (i = 0; i < 5; i++) {
            char *rest;
            numbers[i] = strtoull(at + 1, &rest, 10);
            if (rest == at + 1 || *rest != (i == 4 ? ']' : ','))
                return -1;
            at = rest;
        }
        into->steps[into->count].now = numbers[0];
        into->steps[into->count].cost = numbers[1];
        into->steps[into->count].verdict = (int32_t)numbers[2];
        into->steps[into->count].remaining = numbers[3];
        into->steps[into->count].retry_after = numbers[4];
        /* Skips the step's bracket, and the comma if another step follows. */
        at += at[1] == ',' ? 2 : 1;
    }
    return *at == ']' && into->count != 0 ? 1 : -1;
}

/* The string that follows ` "NAME": "`, with \" \\ and \t as JSON writes them. Returns 0 if it is
 * not there or too long. */
static int string_of(const char *line, const char *name, char *into, size_t size) {
    const char *at = strstr(line, name);
    size_t n = 0;
    if (at == NULL)
        return 0;
    for (at += strlen(name); *at != '"'; at++) {
        if (*at == '\0' || n + 1 == size)
            return 0;
        if (*at == '\\' && strchr("\"\\t", *++at) == NULL)
            return 0;
        into[n++] = at[-1] == '\\' && *at == 't' ? '\t' : *at;
    }
    into[n] = '\0';
    return 1;
}

static const char *number_of(const char *line, const char *name) {
    const char *at = strstr(line, name);
    return at == NULL ? "" : at + strlen(name);
}

int policy_vector_read(FILE *file, struct policy_vector *into) {
    const char *const line = next_line(file);
    if (line == NULL)
        return 0;
    if (!string_of(line, "{\"text\": \"", into->text, sizeof into->text))
        return -1;
    into->code = (int32_t)strtol(number_of(line, "\"code\": "), NULL, 10);
    into->column = strtoull(number_of(line, "\"column\": "), NULL, 10);
    into->last = strtoull(number_of(line, "\"last\": "), NULL, 10);
    if (into->code == 0)
        return string_of(line, "\"policy\": \"", into->policy, sizeof into->policy) && into->last != 0 ? 1 : -1;
    return string_of(line, "\"expected\": \"", into->expected, sizeof into->expected) && into->column != 0 ? 1 : -1;
}
