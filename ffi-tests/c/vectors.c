#include "vectors.h"

#include <stdlib.h>
#include <string.h>

int vector_read(FILE *file, struct golden_vector *into) {
    static char line[16384];
    const char *at, *end;
    size_t length;
    do {
        if (fgets(line, (int)sizeof line, file) == NULL)
            return 0;
    } while (line[0] != '{' && strchr("[]", line[0]) != NULL);
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
