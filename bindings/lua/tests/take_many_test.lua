--- Several limits in one request: the expectations of ffi-tests/c/take_many_test.c, and Lua's
--- errors.
local harness = require "harness"
local tollbar = require "tollbar"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails
local take_many, take_many_at = tollbar.take_many, tollbar.take_many_at

local SEC = 1000000000

local function limiter(policy)
    return assert(tollbar.limiter(policy))
end

local function keys(policies)
    return assert(tollbar.table(policies, { capacity = 100 }))
end

test("the longest wait binds", function()
    local second, hour, of = limiter "2/s", limiter "5/h", keys "3/min"
    local each = {}
    local allowed, retry_after, remaining, reset_after, reason, bound = take_many_at(SEC, { second, { of, "k" }, { hour, 1 } }, each)
    equal(allowed, true)
    equal(retry_after, 0)
    equal(remaining, 1)
    equal(reset_after, 720)
    equal(reason, "admitted")
    equal(bound, 1)
    equal(each[1].remaining, 1)
    equal(each[2].remaining, 2)
    equal(each[3].remaining, 4)

    allowed, retry_after, _, _, _, bound = take_many_at(SEC, { { second, 3 }, { of, "k", 3 }, hour })
    equal(allowed, false)
    equal(retry_after, math.huge)
    equal(bound, 1)
    local limits = { { second, 2 }, { of, "k", 3 }, hour }
    allowed, retry_after, _, _, reason, bound = take_many_at(SEC, limits, each)
    equal(allowed, false)
    equal(bound, 2)
    equal(reason, "over the rate")
    equal(retry_after, 20)
    equal(each[1].retry_after, 0.5)
    equal(each[3].allowed, true)
    -- A refusal has charged none of them.
    equal(take_many_at(SEC, limits), false)
    equal(second:check_at(SEC), true)
    equal(of:check_at(SEC, "k", 2), true)
    equal(hour:check_at(SEC, 4), true)
end)

test("take_many by the limits' own clocks", function()
    local day, of = limiter "1/day", keys { "1/min", "1/day" }
    equal(take_many { { of, "k", 1, 1 }, day }, true)
    equal(take_many { { of, "k", 1, 1 }, day }, false)
    equal(take_many { { of, "k", 1, 1 } }, false)
    equal(take_many { { of, "k" } }, true)
end)

test("bad limits charge nothing", function()
    local few, of, closed, closed_table = limiter "3/s", keys "3/s", limiter "3/s", keys "3/s"
    closed:close()
    closed_table:close()
    local many = {}
    for i = 1, 17 do
        many[i] = few
    end
    raises("1 to 16 limits, not 17", function() local _ = take_many(many) end)
    raises("1 to 16 limits, not 0", function() local _ = take_many {} end)
    raises("limits are an array, not nil", function() local _ = take_many() end)
    raises("limit 2 is closed", function() local _ = take_many { few, closed } end)
    raises("limit 2 is closed", function() local _ = take_many { few, { closed_table, "k" } } end)
    raises("limit 2 is neither", function() local _ = take_many { few, of } end)
    raises("limit 1 is neither", function() local _ = take_many { "k", few } end)
    raises("limit 2 is neither", function() local _ = take_many_at(SEC, { few, {} }) end)
    raises("a key is a string, not 1.5", function() local _ = take_many { few, { of, 1.5 } } end)
    raises("a whole number", function() local _ = take_many { few, { few, -1 } } end)
    raises("a whole number", function() local _ = take_many { few, { of, "k", 1, -1 } } end)
    fails("no policy", tollbar.C.TOLLBAR_E_NO_SUCH_POLICY, take_many { few, { of, "k", 1, 7 } })
    local _, _, left = few:peek()
    equal(left, 3)
    _, _, left = of:peek "k"
    equal(left, 3)
    equal(take_many { few, { of, "k" } }, true)
    -- nil is a missing key, which the table's option `missing` decides.
    local allowed, _, _, _, reason = take_many { few, { of, nil } }
    equal(allowed, false)
    equal(reason, "missing key")
end)

test("one limit many times", function()
    local hour, limits = limiter "16/h", {}
    for i = 1, 16 do
        limits[i] = hour
    end
    equal(take_many_at(SEC, limits), true)
    equal(hour:check_at(SEC), false)
end)

test("ten a second, and four at one time", function()
    local rate, flights = limiter "10/s", tollbar.in_flight { capacity = 100 }
    local tickets = {}
    for i = 1, 4 do
        local permit = { flights, "ann", 4 }
        equal(take_many_at(SEC, { rate, permit }), true)
        tickets[i] = permit.ticket
    end
    local permit = { flights, "ann", 4, ticket = 7 }
    local allowed, wait, left, _, reason, bound = take_many_at(SEC, { rate, permit })
    equal(allowed, false)
    equal(wait, math.huge)
    equal(left, 0)
    equal(reason, "too many in flight")
    equal(bound, 2)
    equal(permit.ticket, nil)
    for i = 1, 4 do
        equal(flights:release(tickets[i]), true)
    end
    equal(flights:count "ann", 0)
    -- Six permits of the rate are left. The rate refuses, and no permit is in flight.
    equal(take_many_at(SEC, { { rate, 7 }, permit }), false)
    equal(flights:count "ann", 0)
    equal(take_many_at(SEC, { { rate, 6 }, permit }), true)
    equal(flights:release(permit.ticket), true)
    raises("limit 2 is neither", function() local _ = take_many { rate, { flights, "ann" } } end)
    flights:close()
    raises("limit 2 is closed", function() local _ = take_many { rate, permit } end)
end)

harness.finish()
