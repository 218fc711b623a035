--- Schedules: the policy in force, the next change, and texts that are wrong.
local harness = require "harness"
local tollbar = require "tollbar"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails

-- 2026-03-27, a Friday, at 09:00 in Berlin. Clocks are set forward on Sunday.
local FRIDAY = 1774598400

test("a schedule has a policy in force", function()
    local hours = assert(tollbar.schedule("1000/min, mon-fri 09:00-18:00 100/min, zone CET-1CEST,M3.5.0,M10.5.0/3"))
    local function at(time, policy, change)
        local text, next_change = hours:at(time)
        equal(text, policy)
        equal(next_change, change)
    end
    at(FRIDAY - 0.5, "1000/min", FRIDAY)
    at(FRIDAY, "100/min", FRIDAY + 9 * 3600)
    at(FRIDAY + 9 * 3600, "1000/min", FRIDAY + 71 * 3600)
    equal(tostring(hours), "1000/min, mon-fri 09:00-18:00 100/min, zone STD-1DST,M3.5.0,M10.5.0/3")
    local text, change = assert(tollbar.schedule("5/s")):at()
    equal(text, "5/s")
    equal(change, math.huge)
end)

test("a limiter follows a schedule", function()
    local hours = assert(tollbar.schedule("1000/h, 09:00-18:00 100/h"))
    local limiter = assert(tollbar.limiter((hours:at(0))))
    equal(limiter:check(950), true)
    equal(limiter:set_policy((hours:at(10 * 3600))), true)
    local _, _, left = limiter:peek(1)
    equal(left >= 50 and left < 60, true)
end)

test("a wrong text has a column", function()
    fails("column 6", tollbar.C.TOLLBAR_E_SYNTAX, tollbar.schedule("1/s, moon 2/s"))
    raises("a schedule is a string", function() local _ = tollbar.schedule(5) end)
    raises("seconds since 1970", function() assert(tollbar.schedule("1/s")):at(-1) end)
end)

harness.finish()
