--- Asserts that LuaJIT compiles the calls of the request path, and that they allocate nothing.
local harness = require "harness"
local tollbar = require "tollbar"
local util = require "jit.util"
local test = harness.test

-- Every request is admitted, so every call takes the same path.
local policy = "1000000000/s burst 1000000000"
local limiter = assert(tollbar.limiter(policy))
local keyed = assert(tollbar.table(policy, { capacity = 10000 }))
local refusing = assert(tollbar.limiter("1/day"))
local keys, many, out = {}, {}, {}
for i = 0, 1023 do
    keys[i] = "user-" .. 1000000 + i
    many[i % 64 + 1] = keys[i]
end

local loops = {
    ["limiter:allow"] = function(n)
        local passed = 0
        for _ = 1, n do
            if limiter:allow() then passed = passed + 1 end
        end
        return passed == n
    end,
    ["limiter:allow with a cost"] = function(n)
        local passed = 0
        for i = 1, n do
            if limiter:allow(i % 3) then passed = passed + 1 end
        end
        return passed == n
    end,
    ["limiter:check"] = function(n)
        local passed, left = 0, 0
        for _ = 1, n do
            local allowed, _, remaining = limiter:check()
            if allowed then passed, left = passed + 1, left + remaining end
        end
        return passed == n and left > 0
    end,
    ["limiter:check, refused"] = function(n)
        local refused, wait = 0, 0
        for _ = 1, n do
            local allowed, retry_after = refusing:check(1)
            if not allowed then refused, wait = refused + 1, wait + retry_after end
        end
        return refused >= n - 1 and wait > 0
    end,
    ["limiter:allow_at"] = function(n)
        local other, passed = assert(tollbar.limiter(policy)), 0
        for i = 1, n do
            if other:allow_at(1000000000 + i) then passed = passed + 1 end
        end
        return passed == n
    end,
    ["table:allow"] = function(n)
        local passed = 0
        for i = 1, n do
            if keyed:allow(keys[bit.band(i, 1023)]) then passed = passed + 1 end
        end
        return passed == n
    end,
    ["table:check"] = function(n)
        local passed, left = 0, 0
        for i = 1, n do
            local allowed, _, remaining = keyed:check(keys[bit.band(i, 1023)])
            if allowed then passed, left = passed + 1, left + remaining end
        end
        return passed == n and left > 0
    end,
    ["take_many"] = function(n)
        local passed = 0
        local limits = { limiter, { keyed, "user-1" }, { keyed, "user-2", 2 } }
        for _ = 1, n do
            if tollbar.take_many(limits) then passed = passed + 1 end
        end
        return passed == n
    end,
    ["table:check_many into an array that is used again"] = function(n)
        local passed = 0
        for _ = 1, n / 64 do
            passed = passed + select(2, keyed:check_many(many, 1, 0, out))
        end
        return passed == math.floor(n / 64) * 64
    end,
}

--- Runs the loop from an empty trace cache. Returns the number of traces kept, and why others were
--- aborted.
local function compile(loop)
    jit.flush()
    local kept, given_up = 0, {}
    local function watch(what, trace, _, _, reason)
        if what == "stop" and util.traceinfo(trace).linktype ~= "interpreter" then
            kept = kept + 1
        elseif what == "abort" then
            given_up[#given_up + 1] = tostring(reason)
        end
    end
    jit.attach(watch, "trace")
    assert(loop(20000))
    jit.attach(watch)
    return kept, given_up
end

for name, loop in pairs(loops) do
    test(name .. " is compiled, and allocates nothing", function()
        local kept, given_up
        -- LuaJIT chooses at random where a trace begins, and aborts some traces that begin at a
        -- wrong place. Code that it cannot compile is aborted in every attempt, until LuaJIT
        -- blacklists it.
        for _ = 1, 10 do
            kept, given_up = compile(loop)
            if kept > 0 and #given_up <= 3 then break end
        end
        assert(kept > 0, "nothing was compiled")
        assert(#given_up <= 3, "given up: " .. table.concat(given_up, " "))
        collectgarbage()
        collectgarbage "stop"
        local before = collectgarbage "count"
        assert(loop(200000))
        local grown = (collectgarbage "count" - before) * 1024
        collectgarbage "restart"
        assert(grown < 8192, grown .. " bytes in 200000 calls")
    end)
end

harness.finish()
