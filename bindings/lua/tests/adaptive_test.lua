--- Tests of adaptive limits: a limit gives permits and takes them back, both algorithms change the
--- limit by what they measure, keys of an in-flight table follow it, and wrong arguments raise.
local harness = require "harness"
local tollbar = require "tollbar"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails

test("a limit has its permits", function()
    local server = assert(tollbar.adaptive { initial = 2 })
    local first, second = server:acquire(), server:acquire()
    equal(first ~= false and second ~= false, true)
    equal(server:acquire(), false)
    local limit, in_flight = server:read()
    equal(limit, 2)
    equal(in_flight, 2)
    equal(server:release(first, 0.01), true)
    equal(server:release(second, 0.01, "ignored"), true)
    equal(server:release(second, 0.01), false)
    equal(select(2, server:read()), 0)
end)

-- AIMD: a dropped request or one above the timeout lowers the limit by a tenth, any other sample at
-- half of the limit raises it by 1.
test("AIMD follows the latency", function()
    local server = assert(tollbar.adaptive { initial = 20, timeout = 0.1, window = 0 })
    local function sample(latency, outcome)
        local tickets = {}
        for n = 1, 10 do
            tickets[n] = server:acquire()
        end
        equal(server:release(tickets[10], latency, outcome), true)
        for n = 1, 9 do
            server:release(tickets[n], latency, "ignored")
        end
        return (server:read())
    end
    equal(sample(0.05), 21)
    equal(sample(0.2), 18)
    equal(sample(0.05, "dropped"), 16)
    equal(sample(0.05, "ignored"), 16)
end)

-- The published trace of Gradient2: the limit is full, and the latency four times as high from
-- sample 20 on.
test("Gradient2 follows the latency", function()
    local server = assert(tollbar.adaptive { window = 0, least = 20 })
    local limits = {}
    for n = 0, 40 do
        local tickets, limit = {}, server:read()
        for i = 1, limit do
            tickets[i] = server:acquire()
        end
        server:release(tickets[limit], n < 20 and 0.01 or 0.04)
        for i = 1, limit - 1 do
            server:release(tickets[i], 0.01, "ignored")
        end
        limits[n] = (server:read())
    end
    for n, limit in pairs { [0] = 20, [9] = 28, [19] = 36, [20] = 33, [21] = 30, [25] = 22, [30] = 20, [40] = 20 } do
        equal(limits[n], limit)
    end
end)

test("a table counts for all processes", function()
    local server = assert(tollbar.adaptive { initial = 1, window = 0, timeout = 1 })
    local open = assert(tollbar.in_flight { capacity = 100 })
    local ticket = server:acquire_key(open, "k")
    equal(ticket ~= false, true)
    equal(server:acquire_key(open, "k"), false)
    equal(open:count("k"), 1)
    equal(server:release_key(open, "k", ticket, 0.01), true)
    equal((server:read()), 2)
    equal(server:release_key(open, "k", ticket, 0.01), false)
    open:close()
    raises("is closed", function() server:acquire_key(open, "k") end)
end)

test("a rate and a learned limit are one decision", function()
    local server = assert(tollbar.adaptive { initial = 1, window = 0, timeout = 1 })
    local open = assert(tollbar.in_flight { capacity = 100 })
    local rate = assert(tollbar.limiter "2/h")
    local function take(request)
        return tollbar.take_many { rate, request }
    end
    local first = { open, "k", (server:read()) }
    equal(take(first), true)
    local second = { open, "k", (server:read()) }
    equal(take(second), false)
    equal(second.ticket, nil)
    equal(server:release_key(open, "k", first.ticket, 0.01), true)
    -- The refusal was not charged. Then the rate refuses, and nothing is opened.
    first, second = { open, "k", (server:read()) }, { open, "k", (server:read()) }
    equal(take(first), true)
    equal(take(second), false)
    equal(open:count("k"), 1)
end)

test("what is wrong is said", function()
    fails("out of range", tollbar.C.TOLLBAR_E_OUT_OF_RANGE, tollbar.adaptive { initial = 5, most = 4 })
    raises("no option limit", function() tollbar.adaptive { limit = 3 } end)
    raises("timeout is a number of seconds", function() tollbar.adaptive { timeout = "1" } end)
    local server = assert(tollbar.adaptive {})
    raises("a latency is a number of seconds", function() server:release(1, -1) end)
    raises("an outcome cannot be late", function() server:release(1, 1, "late") end)
end)

harness.finish()
