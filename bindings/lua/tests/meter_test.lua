--- Meters: green, yellow and red packets, with the numbers of the C tests, and beside the text of
--- the RFCs.
local harness = require "harness"
local tollbar = require "tollbar"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails
local C = tollbar.C

local SEC, HOUR = 1e9, 3600 * 1e9

local function single_rate()
    return assert(tollbar.meter { committed_bytes = 1000, committed_burst = 3000,
                                  excess_burst = 1500 })
end

-- RFC 2697: tokens fill the committed bucket first, and then the excess bucket.
test("one rate and two bursts", function()
    local meter = single_rate()
    equal(meter:color_at(HOUR, 3000), "green")
    equal(meter:color_at(HOUR, 1500), "yellow")
    equal(meter:color_at(HOUR, 1), "red")
    equal(meter:color_at(HOUR + 4 * SEC, 3000), "green")
    equal(meter:color_at(HOUR + 4 * SEC, 1001), "red")
    equal(meter:color_at(HOUR + 4 * SEC, 1000), "yellow")
    equal(tostring(meter), "tollbar.meter")
end)

test("colours of an earlier meter", function()
    local meter = single_rate()
    equal(meter:color_at(HOUR, 1000, "red"), "red")
    equal(meter:color_at(HOUR, 1000, "yellow"), "yellow")
    equal(meter:color_at(HOUR, 1000, "yellow"), "red")
    equal(meter:color_at(HOUR, 1000, "green"), "green")
    -- By the library's clock. Another state, because HOUR may be in the future of a machine that
    -- has just started.
    equal(single_rate():color(3000), "green")
    equal(single_rate():color(3001), "red")
end)

-- RFC 2698, token by token: a packet needs its bytes of the peak bucket, and to be green of the
-- committed one, too. A millisecond adds 1 token at 1000/s and 3 at 3000/s.
test("two rates beside the RFC's text", function()
    local meter = assert(tollbar.meter { committed_bytes = 1000, committed_burst = 40,
                                         peak_bytes = 3000, peak_burst = 60 })
    local committed, peak, now, seed = 40, 60, HOUR, 2698
    local seen = { green = 0, yellow = 0, red = 0 }
    for step = 1, 20000 do
        seed = seed * 48271 % 2147483647
        local bytes, passed = seed % 50, math.floor(seed / 1024) % 12
        now, committed, peak = now + passed * 1e6, math.min(40, committed + passed), math.min(60, peak + 3 * passed)
        local want = peak < bytes and "red" or committed < bytes and "yellow" or "green"
        peak = want == "red" and peak or peak - bytes
        committed = want == "green" and committed - bytes or committed
        equal(meter:color_at(now, bytes), want, "step " .. step)
        seen[want] = seen[want] + 1
    end
    assert(seen.green > 1000 and seen.yellow > 1000 and seen.red > 1000)
end)

test("what is wrong is said", function()
    local function of(changes)
        local options = { committed_bytes = 1000, committed_burst = 3000, excess_burst = 1500 }
        for name, value in pairs(changes) do
            options[name] = value or nil
        end
        return tollbar.meter(options)
    end
    fails("the meter: ", C.TOLLBAR_E_PERIOD_ZERO, of { period = 0 })
    fails("the meter: ", C.TOLLBAR_E_RATE_TOO_HIGH, of { committed_bytes = 16 * SEC })
    fails("the meter: ", C.TOLLBAR_E_RATE_TOO_HIGH,
          of { excess_burst = false, peak_bytes = 999, peak_burst = 1 })
    fails("the meter: ", C.TOLLBAR_E_RATE_TOO_HIGH,
          of { excess_burst = false, peak_bytes = 0, peak_burst = 1 })
    fails("the meter: ", C.TOLLBAR_E_BURST_ZERO, of { committed_burst = 0, excess_burst = 0 })
    fails("the meter: ", C.TOLLBAR_E_BURST_TOO_LARGE, of { excess_burst = 2^53 * 1024ULL })
    raises("a meter has an excess_burst, or else",
           function() tollbar.meter { peak_bytes = 1, peak_burst = 1, excess_burst = 1 } end)
    raises("a meter has an excess_burst, or else", function() tollbar.meter { peak_bytes = 1 } end)
    raises("a whole number", function() tollbar.meter { committed_bytes = 1 } end)
    raises("no option rate", function() tollbar.meter { rate = 1 } end)
    raises("period is a number of seconds", function()
        tollbar.meter { committed_bytes = 1, committed_burst = 1, period = "1" }
    end)
    local meter = single_rate()
    raises("a colour cannot be blue", function() meter:color(1, "blue") end)
    raises("a whole number", function() meter:color(-1) end)
    equal(meter:color(3000), "green")
end)

harness.finish()
