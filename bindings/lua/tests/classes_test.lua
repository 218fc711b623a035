--- Classes of requests, as in "100/s reserve low 20 high 0".
local harness = require "harness"
local tollbar = require "tollbar"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails

local HOUR = 3600000000000
local TEXT = "100/s reserve standard 20 urgent 0"

test("standard requests stop exactly at 20 left", function()
    local limiter, keys = assert(tollbar.limiter(TEXT)), assert(tollbar.table(TEXT, { capacity = 10 }))
    for n = 0, 79 do
        local allowed, _, remaining = limiter:check_class_at(HOUR, "standard")
        equal(allowed, true)
        equal(remaining, 99 - n)
        equal(keys:check_class_at(HOUR, "key", "standard"), true)
    end
    for _, class in ipairs { "standard", "1" } do
        local allowed, retry_after, remaining, _, reason = limiter:check_class_at(HOUR, class)
        equal(allowed, false)
        equal(retry_after, 0.01)
        equal(remaining, 20)
        equal(reason, "reserved for other classes")
        allowed, _, remaining, _, reason = keys:check_class_at(HOUR, "key", class, 1, 0)
        equal(allowed, false)
        equal(remaining, 20)
        equal(reason, "reserved for other classes")
    end
    equal(limiter:check_class_at(HOUR, "urgent", 20), true)
    equal(keys:check_class_at(HOUR, "key", "urgent", 20), true)
    equal(limiter:check_at(HOUR), false)
    equal(limiter:check_class "standard", true)
    equal(keys:check_class("other", "standard"), true)
end)

test("several limits have classes", function()
    local limiter = assert(tollbar.limiter "10/s reserve low 2 high 0")
    local keys = assert(tollbar.table("10/s reserve low 4", { capacity = 10 }))
    local limits = { { limiter, 1, class_name = "low" }, { keys, "key", class_name = "low" } }
    for _ = 1, 6 do
        equal(tollbar.take_many_at(HOUR, limits), true)
    end
    local allowed, _, _, _, reason, bound = tollbar.take_many_at(HOUR, limits)
    equal(allowed, false)
    equal(reason, "reserved for other classes")
    equal(bound, 2)
    equal(tollbar.take_many_at(HOUR, { { limiter, 2, class_name = "low" } }), true)
    equal(tollbar.take_many_at(HOUR, { { limiter, 1, class_name = "low" } }), false)
    -- The limit before had a class, and this one has none.
    equal(tollbar.take_many_at(HOUR, { { limiter, 1 } }), true)
end)

test("a batch has a class", function()
    local keys = assert(tollbar.table("10/h reserve low 4 high 0", { capacity = 10 }))
    local ten = {}
    for n = 1, 10 do
        ten[n] = "key"
    end
    equal(select(2, keys:check_many(ten, 1, 0, nil, 1)), 6)
    equal(select(2, keys:check_many(ten, 1, 0, nil, 3)), 0)
    equal(select(2, keys:check_many(ten, 1, 0, nil, 2)), 4)
    -- The batch before had a class, and this one has none.
    ten[1] = "other"
    equal(select(2, keys:check_many(ten, 10)), 1)
    raises("whole number", function() keys:check_many(ten, 1, 0, nil, "low") end)
end)

test("an unknown class is an error", function()
    local limiter = assert(tollbar.limiter "10/s reserve low 2")
    local keys = assert(tollbar.table("10/s reserve low 2", { capacity = 10 }))
    for _, class in ipairs { "", "lo", "lows", "Low", "2", "low\0", "a-name-of-more-than-15-bytes" } do
        fails("no class of that name", -34, limiter:check_class(class))
        fails("no class of that name", -34, keys:check_class("key", class))
        fails("no class of that name", -34, tollbar.take_many { { limiter, 1, class_name = class } })
    end
    raises("a class's name is a string", function() limiter:check_class(1) end)
    raises("a class's name is a string", function() keys:check_class "key" end)
    raises("a class's name is a string", function() tollbar.take_many { { limiter, 1, class_name = 1 } } end)
end)

harness.finish()
