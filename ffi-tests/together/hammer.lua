--- The same program as hammer.c, in Lua.
local ffi = require "ffi"
local tollbar = require "tollbar"

ffi.cdef [[
int open(const char *path, int flags, ...);
void *mmap(void *at, size_t size, int protection, int flags, int file, long offset);
int usleep(unsigned int microseconds);
]]
local READY, GO, STOP, FIRST, EACH, KEYS = 0, 1, 2, 8, 3, 4
local O_RDWR, READ_AND_WRITE, MAP_SHARED = 2, 3, 1

local file = ffi.C.open(arg[2], O_RDWR)
assert(file >= 0, arg[2])
local mapped = ffi.C.mmap(nil, 8 * (FIRST + EACH * KEYS), READ_AND_WRITE, MAP_SHARED, file, 0)
assert(ffi.cast("intptr_t", mapped) ~= -1)
local board = ffi.cast("volatile uint64_t *", mapped)

local table = assert(tollbar.open(arg[1], arg[3], { capacity = 1000 }))
board[READY] = 1
while board[GO] == 0 do
    ffi.C.usleep(100)
end
while board[STOP] == 0 do
    for k = 0, KEYS - 1 do
        local at = FIRST + EACH * k
        board[at] = board[at] + 1
        local answer = table:allow("key-" .. k) and at + 1 or at + 2
        board[answer] = board[answer] + 1
    end
end
table:close()
