--- Limiters, and the functions of the module that need no table.
local harness = require "harness"
local tollbar = require "tollbar"
local ffi = require "ffi"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails
local C = tollbar.C

local SECOND = 1000000000

test("a limiter gives what its policy says, and the rest is refused", function()
    local limiter = assert(tollbar.limiter("3/day"))
    for left = 2, 0, -1 do
        local allowed, retry_after, remaining, reset_after = limiter:check()
        equal(allowed, true)
        equal(retry_after, 0)
        equal(remaining, left)
        assert(reset_after > (3 - left - 1) * 28800 and reset_after <= (3 - left) * 28800)
    end
    local allowed, retry_after, remaining = limiter:check()
    equal(allowed, false)
    assert(retry_after > 28790 and retry_after <= 28800, retry_after)
    equal(remaining, 0)
    equal(limiter:allow(), false)
end)

test("a list of two policies, of which the answer names the one that bound", function()
    local limiter = assert(tollbar.limiter("10/day burst 2; 20/day"))
    local _, _, remaining, _, _, bound = limiter:check()
    equal(remaining <= 1, true)
    equal(bound, 1)
    limiter = assert(tollbar.limiter("10/s; 5/day"))
    equal(limiter:allow(5), true)
    local allowed, retry_after, _, _, reason, refused_by = limiter:check()
    equal(allowed, false)
    equal(retry_after > 1000, true)
    equal(reason, "over the rate")
    equal(refused_by, 2)
    local none, why = tollbar.limiter("100/s; 1000000/day")
    equal(none, nil)
    equal(why:find("column 8", 1, true) ~= nil, true)
end)

test("decisions are counted", function()
    local limiter = assert(tollbar.limiter("3/day"))
    for _ = 1, 13 do
        limiter:allow()
    end
    limiter:allow(4)
    local counts = limiter:counts()
    equal(counts.allowed .. " " .. counts.denied .. " " .. counts.never, "3 10 1")
end)

test("M6: the most that a policy admits in a window", function()
    equal(tollbar.worst_case("120/min", 60), 239ULL)
    equal(tollbar.worst_case("120/min", 3600), 7319ULL)
    local none, message = tollbar.worst_case("3/min algo nothing", 1)
    equal(none, nil)
    assert(message:find("column 12", 1, true), message)
end)

test("S54: a curve of a function", function()
    local policy, off = assert(tollbar.curve(1000000, 60, function(time) return time ^ 2 end))
    equal(off > 0 and off < 0.001, true)
    local limiter, taken = assert(tollbar.limiter(policy)), 0
    for n = 1, 1000 do
        taken = taken + limiter:take_up_to_at(3600 * SECOND + math.min(n * 60 * SECOND / 1000, 60 * SECOND - 1), 2000000)
        equal(math.abs(taken - n * n) <= 1000, true, n)
    end
    equal(taken, 1000000)
    local none, why = tollbar.curve(100, 60, function(time) return time < 0.5 and 0.4 or time / 2 end)
    equal(none, nil)
    equal(why:find("at time 0.5 of the slice the function gives 0.25, expected a share", 1, true), 1)
    none, why = tollbar.curve(100, 60, function(time) return time / 2 end)
    equal(none, nil)
    equal(why:find("at time 1 of the slice the function gives 0.5, expected 1", 1, true), 1)
    equal(tollbar.curve(100, 0, function(time) return time end), nil)
    raises("a whole number", function() local _ = tollbar.curve(-1, 60, function(time) return time end) end)
end)

test("a policy's last time, after which nothing passes", function()
    local last = assert(tollbar.last_time("3/min algo interval anchor first"))
    equal(last, 2305843009213693950ULL)
    assert(tollbar.last_time("15000000000/s burst 1000") < last)
    local limiter = assert(tollbar.limiter("3/min algo interval anchor first"))
    equal(limiter:allow_at(last), true)
    for _, now in ipairs { last + 1, 2ULL ^ 62, 0xffffffffffffffffULL } do
        equal(limiter:allow_at(now), false)
    end
    local none, message = tollbar.last_time("3/min algo nothing")
    equal(none, nil)
    assert(message:find("column 12", 1, true), message)
end)

test("costs, and a cost that never passes", function()
    local limiter = assert(tollbar.limiter("10/day"))
    equal(limiter:allow(7), true)
    equal(limiter:allow(4), false)
    equal(limiter:allow(0), true)
    equal(limiter:allow(3ULL), true)
    local allowed, retry_after = limiter:check(11)
    equal(allowed, false)
    equal(retry_after, math.huge)
end)

test("the caller's time, to the nanosecond", function()
    local limiter = assert(tollbar.limiter("10/s burst 1"))
    equal(limiter:allow_at(SECOND), true)
    local allowed, retry_after = limiter:check_at(SECOND + 1)
    equal(allowed, false)
    assert(math.abs(retry_after - 0.099999999) < 1e-15)
    equal(limiter:allow_at(SECOND + 99999999), false)
    equal(limiter:allow_at(SECOND + 100000000ULL), true)
end)

test("charge asks nothing, and a ban refuses", function()
    local limiter = tollbar.limiter("1/h burst 5")
    equal(limiter:charge(7), 0)
    local allowed, wait = limiter:peek()
    equal(allowed, false)
    equal(wait > 2 * 3600 and wait <= 3 * 3600, true)
    equal(limiter:charge(7), 4)
    limiter:reset()
    equal(limiter:charge(), 0)
    limiter = tollbar.limiter("2/h ban 1d")
    limiter:charge()
    equal((select(5, limiter:peek())), "admitted")
    limiter:charge()
    equal((select(5, limiter:check())), "banned")
    equal((select(2, limiter:check())) > 80000, true)
    limiter:reset()
    equal(limiter:allow(), true)
end)

test("peek takes nothing, take_up_to what there is", function()
    local limiter = assert(tollbar.limiter("5/day"))
    for _ = 1, 9 do
        equal((limiter:peek(5)), true)
    end
    equal(limiter:take_up_to(3), 3)
    equal(limiter:take_up_to(9), 2)
    equal(limiter:take_up_to(9), 0)
    equal((limiter:peek()), false)
    equal(limiter:reset(), true)
    equal(limiter:take_up_to(9), 5)
end)

-- A sender of 100 MB/s in costs of 1,500 bytes is off by less than one cost after 10 s, and one that takes what there is
-- by nothing.
test("S37: bytes are permits", function()
    local policy = "100mb/s burst 15000 unit bytes"
    local whole, all = assert(tollbar.limiter(policy)), assert(tollbar.limiter(policy))
    local sent, got = 0, 0
    for now = 1000 * SECOND, 1010 * SECOND, 100000 do
        while whole:allow_at(now, 1500) do
            sent = sent + 1500
        end
        got = got + all:take_up_to_at(now, 2 ^ 53)
    end
    equal(got, 1000015000)
    equal(sent <= got and got - sent < 1500, true)
end)

test("all algorithms", function()
    for _, name in ipairs { "gcra", "interval", "fixed-window", "weighted-window", "sliding-log", "pacer", "warm-up" } do
        local limiter = assert(tollbar.limiter("4/day algo " .. name .. (name == "warm-up" and " warm 1s cold 3" or "")))
        equal(limiter:allow(), true, name)
        assert(limiter:policy():find(name, 1, true) or name == "gcra", limiter:policy())
    end
    assert(assert(tollbar.limiter("120/60s algo sliding-window segments 6 mode strict")):allow())
end)

test("set_policy keeps the number of permits that the limiter has left", function()
    local limiter = assert(tollbar.limiter("10/h"))
    equal(limiter:allow(4), true)
    equal(limiter:set_policy("100/h"), true)
    equal(limiter:policy():find("100", 1, true) ~= nil, true)
    equal(limiter:take_up_to(99), 6)
    equal(limiter:set_policy("20/h algo sliding-log", "reset"), true)
    equal(limiter:take_up_to(99), 20)
    equal(limiter:set_policy("20/mn"), nil)
    raises("keep cannot be all", function() local _ = limiter:set_policy("1/s", "all") end)
    equal(limiter:allow(), false)
    -- By the caller's time: the clock of the machine is far ahead.
    limiter = assert(tollbar.limiter("10/h"))
    local now = 3600000000000ULL
    equal((limiter:check_at(now, 10)), true)
    equal(limiter:set_policy_at(now, "10/h algo fixed-window"), true)
    equal((limiter:check_at(now)), false)
    equal(limiter:set_policy_at(now, "20/mn"), nil)
end)

test("a reservation says when to act", function()
    local limiter = assert(tollbar.limiter("1/s burst 1"))
    equal(limiter:reserve(1), 0)
    local after = limiter:reserve(1)
    assert(after > 0.2 and after <= 1, after)
    equal(limiter:reserve(0.5), false)
    local wait, last = limiter:reserve(2)
    assert(wait > 1 and wait <= 2 and last.cost == 1, wait)
    equal(limiter:cancel(last), 1)
end)

test("waiting sleeps for what it gets, and refuses at once what it cannot get", function()
    local limiter = assert(tollbar.limiter("5/s burst 1"))
    local before = tollbar.now("monotonic")
    for _ = 1, 3 do
        equal(limiter:wait(10), true)
    end
    local took = tonumber(tollbar.now("monotonic") - before) / 1e9
    assert(took >= 0.3999, took)
    equal(limiter:wait(nil, 2), false)
    -- The same without a timeout.
    equal(limiter:wait(), true)
    equal(limiter:wait(math.huge), true)
    local slow = assert(tollbar.limiter("1/day"))
    equal(slow:wait(0), true)
    equal(slow:wait(0), false)
end)

test("waiting in nginx: nothing books, or what cannot book asks again", function()
    local slept = 0
    -- nginx's timers have whole milliseconds and may end early. The first one here ends at once.
    local function sleep(seconds)
        slept = slept + 1
        assert(seconds > 0 and seconds < 1 and math.abs(seconds * 1000 - math.floor(seconds * 1000 + 0.5)) < 1e-6)
        local began = tollbar.now()
        repeat until slept == 1 or tonumber(tollbar.now() - began) / 1e9 >= seconds
    end
    package.loaded.ngx = { sleep = sleep }
    local good, why = pcall(function()
        for policy, slow in pairs {
            ["4/s burst 1"] = "1/day burst 1",
            ["1/250ms algo fixed-window anchor first"] = "1/day algo fixed-window anchor first",
        } do
            local limiter
            -- Begins again if a busy machine took so long that permits refilled.
            for _ = 1, 20 do
                limiter, slept = assert(tollbar.limiter(policy)), 0
                local before = tollbar.now()
                equal(limiter:wait(5), true)
                equal(slept, 0)
                equal(limiter:wait(5), true)
                assert(tonumber(tollbar.now() - before) >= 249e6)
                if slept > 1 then break end
            end
            assert(slept > 1, "the rest is slept, too, where a timer ends early")
            equal(limiter:wait(5, 2), false)
            local rare = assert(tollbar.limiter(slow))
            equal(rare:wait(0.01), true)
            equal(rare:wait(0.01), false)
            limiter:close()
            raises("the limiter is closed", function() local _ = limiter:wait(1) end)
        end
    end)
    package.loaded.ngx = nil
    assert(good, why)
end)

test("credit is part of the burst", function()
    for policy, bounds in pairs { ["800/day"] = { 700, 799 }, ["31/day"] = { 31, 31 } } do
        local limiter, taken = assert(tollbar.limiter(policy, { credit = true })), 0
        while limiter:allow_at(3600e9) do
            taken = taken + 1
        end
        assert(taken >= bounds[1] and taken <= bounds[2], policy .. ": " .. taken)
        equal(limiter:counts().allowed, taken)
    end
    fails("", C.TOLLBAR_E_OPTION_MISMATCH, tollbar.limiter("5/s algo pacer", { credit = true }))
end)

test("a wrong policy is said, with its column", function()
    fails("column 3", C.TOLLBAR_E_SYNTAX, tollbar.limiter("3/mn"))
    fails("column 1", C.TOLLBAR_E_SYNTAX, tollbar.limiter(""))
    fails("period", C.TOLLBAR_E_PERIOD_ZERO, tollbar.limiter("3/0s"))
    equal(assert(tollbar.limiter("60/min burst 5", { clock = "coarse" })):policy(), "60/min burst 5")
end)

test("wrong types are errors, told where the call is", function()
    local limiter = assert(tollbar.limiter("3/day"))
    for _, cost in ipairs { -1, 0.5, 0 / 0, math.huge, 2 ^ 60, "1", false, {}, -1LL } do
        raises("a whole number", function() local _ = limiter:allow(cost) end)
        raises("a whole number", function() local _ = limiter:check(cost) end)
        raises("a whole number", function() local _ = limiter:take_up_to(cost) end)
    end
    raises("a whole number", function() local _ = limiter:allow_at("now") end)
    raises("seconds", function() limiter:wait("long") end)
    raises("seconds", function() limiter:wait(-1) end)
    raises("a policy is a string", function() tollbar.limiter(5) end)
    raises("a policy is a string", function() tollbar.limiter() end)
    raises("no option", function() tollbar.limiter("3/s", { clok = "tsc" }) end)
    raises("options are a table", function() tollbar.limiter("3/s", "tsc") end)
    raises("clock cannot be sundial", function() tollbar.limiter("3/s", { clock = "sundial" }) end)
    equal(limiter:take_up_to(9), 3, "nothing of this has charged anything")
    for _, self in ipairs { "text", 5, false, {} } do
        assert(not pcall(limiter.allow, self), "called with another self")
        assert(not pcall(limiter.check, self), "called with another self")
    end
    assert(not pcall(limiter.allow))
end)

test("a closed limiter is an error, whatever is asked of it", function()
    local limiter = assert(tollbar.limiter("3/day"))
    limiter:close()
    limiter:close()
    for _, method in ipairs { "allow", "check", "peek", "reset", "policy", "wait", "reserve" } do
        raises("the limiter is closed", function() local _ = limiter[method](limiter) end)
    end
    raises("the limiter is closed", function() local _ = limiter:take_up_to(1) end)
    raises("the limiter is closed", function() local _ = limiter:charge(1) end)
    raises("the limiter is closed", function() local _ = limiter:check_at(1) end)
    equal(tostring(limiter), "tollbar.limiter, closed")
end)

test("what is not used any more is freed", function()
    local function resident()
        local pages = io.open("/proc/self/statm"):read("*l"):match("^%d+ (%d+)")
        return tonumber(pages) * 4096
    end
    local function run()
        for _ = 1, 200 do
            -- Each limiter takes half a megabyte.
            assert(tollbar.limiter("65536/day algo sliding-log")):allow(65536)
            if _ % 20 == 0 then
                collectgarbage()
            end
        end
        collectgarbage()
        collectgarbage()
    end
    run()
    local before = resident()
    run()
    assert(resident() - before < 20e6, "grown by " .. resident() - before)
end)

test("keys of addresses", function()
    equal(tollbar.prefix("192.0.2.1"), tollbar.prefix("::ffff:192.0.2.1"))
    equal(tollbar.prefix("192.0.2.1"), tollbar.prefix_of("\192\0\2\1"))
    assert(tollbar.prefix("192.0.2.1") ~= tollbar.prefix("192.0.2.2"))
    equal(tollbar.prefix("192.0.2.1", 24), tollbar.prefix("192.0.2.2", 24))
    equal(tollbar.prefix("2001:db8::1"), tollbar.prefix("2001:db8::2:1"))
    fails("address", C.TOLLBAR_E_ADDRESS, tollbar.prefix("localhost"))
    fails("address", C.TOLLBAR_E_ADDRESS, tollbar.prefix_of("12345"))
    assert(not tollbar.prefix("192.0.2.1", 33))
    raises("an address is a string", function() tollbar.prefix(5) end)
    raises("a whole number", function() tollbar.prefix("::1", "x") end)
end)

test("clocks and constants", function()
    assert(tollbar.now() <= tollbar.now("monotonic") + 1000000ULL)
    raises("a clock cannot be sundial", function() tollbar.now("sundial") end)
    equal(tollbar.version, require("tollbar.cdef").VERSION_STRING)
    equal(C.TOLLBAR_E_SYNTAX, -10)
    equal(C.TOLLBAR_VERSION, tonumber(C.tollbar_version()))
    equal(ffi.string(C.tollbar_errname(C.TOLLBAR_E_NULL)), "TOLLBAR_E_NULL")
end)

test("a wait of whole seconds is a whole number", function()
    for period = 1, 1000 do
        local one = assert(tollbar.limiter("1/" .. period .. "s"))
        equal(one:check_at(0), true)
        equal(select(2, one:check_at(0)), period)
        one:close()
    end
end)

harness.finish()
