--- The golden vectors: limiters and tables give the decisions of the oracle
--- (tests/algorithm/vectors.rs describes the file).
local harness = require "harness"
local tollbar = require "tollbar"
local test, equal = harness.test, harness.equal

local ALLOWED = "0"
-- 2^64 - 1: no wait helps.
local NO_TIME = "18446744073709551615"
local here = arg[0]:match("^(.*)/") or "."

-- 64-bit numbers, which a Lua number does not hold.
local function long(digits)
    return loadstring("return " .. digits .. "ULL")()
end

local count = 0
for line in io.lines(here .. "/../../../ffi-tests/vectors/decisions.json") do
    local policy, steps = line:match('^{"policy": "(.*)", "steps": %[(.*)%]},?$')
    if policy then
        count = count + 1
        test(policy, function()
            local limiter, keyed = assert(tollbar.limiter(policy, { clock = "wall" })), assert(tollbar.table(policy, { capacity = 100, clock = "wall" }))
            local n = 0
            for now, cost, verdict, remaining, retry_after in steps:gmatch("%[(%d+),(%d+),(%d),(%d+),(%d+)%]") do
                n = n + 1
                local wait = retry_after == NO_TIME and math.huge or tonumber(retry_after) / 1e9
                local function same(face, allowed, after, left)
                    equal(allowed, verdict == ALLOWED, face .. " at step " .. n)
                    -- Seconds, to the precision of a Lua number.
                    assert(after == wait or math.abs(after - wait) <= wait * 2 ^ -52, face .. " at step " .. n)
                    equal(left, tonumber(remaining), face .. " at step " .. n)
                end
                same("limiter", limiter:check_at(long(now), tonumber(cost)))
                same("table", keyed:check_at(long(now), "key", tonumber(cost)))
            end
            assert(n == 64, n)
        end)
    end
end
assert(count >= 29, count)
harness.finish()
