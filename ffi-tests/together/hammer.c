/* hammer TABLE BOARD POLICY: makes requests for the keys of a named table until the driver ends it.
 * The programs in the other languages do the same. */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "board.h"
#include "tollbar.h"

/* The stores are in program order: a killed process has made all stores before the instruction at
 * which it died. */
#define ADD(word) __atomic_store_n(&(word), (word) + 1, __ATOMIC_SEQ_CST)
#define LOAD(word) __atomic_load_n(&(word), __ATOMIC_SEQ_CST)

int main(int argc, char **argv) {
    tollbar_policy_spec policy = TOLLBAR_POLICY_SPEC_INIT;
    const tollbar_policy_spec *policies[] = { &policy };
    tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(1000);
    tollbar_table *table = NULL;
    uint64_t *board;
    int file, code, k;
    if (argc != 4)
        return 2;
    file = open(argv[2], O_RDWR);
    board = mmap(NULL, WORDS * sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || board == MAP_FAILED)
        return perror(argv[2]), 1;
    code = tollbar_policy_spec_parse(argv[3], strlen(argv[3]), &policy, NULL);
    if (code == 0)
        code = tollbar_table_open(argv[1], policies, 1, &options, &table);
    if (code != 0)
        return fprintf(stderr, "%s: %s\n", argv[1], tollbar_strerror(code)), 1;
    ADD(board[READY]);
    while (!LOAD(board[GO]))
        usleep(100);
    for (k = 0; !LOAD(board[STOP]); k = (k + 1) % KEYS) {
        uint64_t *counts = board + FIRST + EACH * k;
        char key[] = "key-0";
        key[4] = (char)('0' + k);
        ADD(counts[0]);
        code = tollbar_table_check(table, 0, key, 5, 1, NULL);
        if (code < 0)
            return fprintf(stderr, "%s\n", tollbar_strerror(code)), 1;
        if (code == TOLLBAR_ALLOWED)
            ADD(counts[1]);
        else
            ADD(counts[2]);
    }
    tollbar_table_close(table);
    return 0;
}
