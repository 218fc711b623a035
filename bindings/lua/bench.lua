--- Measures a decision from LuaJIT and from C, on the same handles in one run: rounds of both by
--- turns, and the median counts.
--
--     luajit bench.lua C-SIDE [--smoke]
local ffi = require "ffi"
local bit = require "bit"
local tollbar = require "tollbar"

ffi.cdef [[
extern char bench_keys[1024][12];
uint64_t c_limiter_check(const tollbar_limiter *limiter, int count);
uint64_t c_limiter_check_at(const tollbar_limiter *limiter, int count);
uint64_t c_limiter_decide(const tollbar_limiter *limiter, int count);
uint64_t c_table_check(const tollbar_table *table, int count);
uint64_t c_table_decide(const tollbar_table *table, int count);
uint64_t c_table_check_many(const tollbar_table *table, int count);
]]
local c = ffi.load(arg[1])
local smoke = arg[2] == "--smoke"
local rounds, count = smoke and 3 or 41, 64 * (smoke and 16 or 512)

local keys, batches = {}, {}
for i = 0, 1023 do
    keys[i] = "user-" .. 1000000 + i
    ffi.copy(c.bench_keys[i], keys[i], 12)
    local batch = batches[bit.rshift(i, 6)] or {}
    batch[#batch + 1], batches[bit.rshift(i, 6)] = keys[i], batch
end

local limiter = assert(tollbar.limiter "100000000/s burst 4gb unit bytes")
local frozen = assert(tollbar.limiter "100000000/s burst 4gb unit bytes")
local keyed = assert(tollbar.table("100000000/s burst 1gb unit bytes", { capacity = 10000 }))
local out = {}

-- name, C's loop, LuaJIT's loop. Every decision admits, and each loop counts its admissions.
local cases = {
    { "limiter:allow", function() return c.c_limiter_check(limiter.handle, count) end, function()
        local yes = 0
        for _ = 1, count do
            yes = yes + (limiter:allow() and 1 or 0)
        end
        return yes
    end },
    { "limiter:allow_at", function() return c.c_limiter_check_at(frozen.handle, count) end, function()
        local yes = 0
        for i = 0, count - 1 do
            yes = yes + (frozen:allow_at(1000000000 + i) and 1 or 0)
        end
        return yes
    end },
    { "limiter:check", function() return c.c_limiter_decide(limiter.handle, count) end, function()
        local yes = 0
        for _ = 1, count do
            local allowed, _, remaining = limiter:check()
            yes = yes + (allowed and remaining ~= 0 and 1 or 0)
        end
        return yes
    end },
    { "table:allow", function() return c.c_table_check(keyed.handle, count) end, function()
        local yes = 0
        for i = 0, count - 1 do
            yes = yes + (keyed:allow(keys[bit.band(i, 1023)]) and 1 or 0)
        end
        return yes
    end },
    { "table:check", function() return c.c_table_decide(keyed.handle, count) end, function()
        local yes = 0
        for i = 0, count - 1 do
            local allowed, _, remaining = keyed:check(keys[bit.band(i, 1023)])
            yes = yes + (allowed and remaining ~= 0 and 1 or 0)
        end
        return yes
    end },
    { "table:check_many, a key", function() return c.c_table_check_many(keyed.handle, count) end, function()
        local yes = 0
        for i = 0, count / 64 - 1 do
            yes = yes + select(2, keyed:check_many(batches[bit.band(i, 15)], 1, 0, out))
        end
        return yes
    end },
}

local function middle(of)
    table.sort(of)
    return of[math.ceil(#of / 2)]
end

local function timed(loop)
    local began = tollbar.now "monotonic"
    assert(tonumber(loop()) == count, "some were refused")
    return tonumber(tollbar.now "monotonic" - began) / count
end

print(("%-26s %7s %7s %7s %6s  %s"):format("LuaJIT", "ns", "C, ns", "more", "ratio", "goal"))
for _, case in ipairs(cases) do
    local name, in_c, in_lua = unpack(case)
    local theirs, ours, more = {}, {}, {}
    -- Rounds before LuaJIT has compiled the loop do not count.
    timed(in_lua)
    for i = 1, rounds do
        theirs[i], ours[i] = timed(in_c), timed(in_lua)
        more[i] = ours[i] - theirs[i]
    end
    local a, b, m = middle(ours), middle(theirs), middle(more)
    local goal = name:find "check_many" and "" or "more: 3"
    print(("%-26s %7.2f %7.2f %+7.2f %6.2f  %s"):format(name, a, b, m, a / b, goal))
end
