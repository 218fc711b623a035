/* A fresh cell. */
#define TOLLBAR_CELL_INIT { 0 }

