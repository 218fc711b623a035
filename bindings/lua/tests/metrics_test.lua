--- Metrics: ten refusals raise one series by ten, and one call in 1,024 is measured.
local harness = require "harness"
local tollbar = require "tollbar"
local test, equal, raises = harness.test, harness.equal, harness.raises

test("ten refusals raise one series by ten", function()
    local logins, api = assert(tollbar.table("5/min", { capacity = 100 })), assert(tollbar.limiter("1/h"))
    local function series()
        local all = {}
        for name, value in tollbar.metrics({ logins = logins, api = api }):gmatch("([^\n#][^\n]*) (%d+)\n") do
            all[name] = tonumber(value)
        end
        return all
    end
    for _ = 1, 5 do equal(logins:allow("k"), true) end
    local before = series()
    for _ = 1, 10 do equal(logins:allow("k"), false) end
    local changed = 0
    for name, value in pairs(series()) do
        if before[name] ~= value then
            equal(name, 'tollbar_decisions_total{limit="logins",policy="0",verdict="denied"}')
            equal(value, 10)
            changed = changed + 1
        end
    end
    equal(changed, 1)
    equal(tollbar.metrics({ api = api }, true):sub(-7), "\n# EOF\n")
    -- More text than the first buffer has room for.
    local many = {}
    for n = 1, 1024 do many["table " .. n] = logins end
    equal(#tollbar.metrics(many) > 20000, true)
    many.more = logins
    raises("at most 1024 limiters and tables, not 1025", function() local _ = tollbar.metrics(many) end)
    raises("a is neither a limiter nor a table", function() local _ = tollbar.metrics { a = 7 } end)
    raises("metrics takes a table", function() local _ = tollbar.metrics() end)
    logins:close()
    raises("logins is closed", function() local _ = tollbar.metrics { logins = logins } end)
end)

test("one in 1,024 calls is measured", function()
    local api, times, idle = assert(tollbar.limiter("1/h")), tollbar.times(), tollbar.times()
    local check = times:of(function(cost, ...) return api:check(cost), ... end)
    equal(check(1), true)
    equal(select("#", check(1, nil, nil)), 3)
    for _ = 3, 1024 do check(1) end
    equal(tonumber(times.calls), 1024)
    local raising = times:of(function() error "of the program" end)
    raises("of the program", raising)
    local text = tollbar.metrics({ api = api }, true, { api = times, idle = idle })
    equal(text:find("# TYPE tollbar_decision_nanoseconds histogram\n", 1, true) ~= nil, true)
    for _, line in ipairs {
        'bucket{limit="api",le="+Inf"} 1', 'count{limit="api"} 1', 'bucket{limit="idle",le="256"} 0', 'sum{limit="idle"} 0',
    } do
        equal(text:find("tollbar_decision_nanoseconds_" .. line .. "\n", 1, true) ~= nil, true, line)
    end
    equal(text:find 'tollbar_decisions_total{limit="api"' ~= nil, true)
    equal(text:sub(-7), "\n# EOF\n")
    equal(tollbar.metrics({ api = api }):find("nanoseconds", 1, true), nil)
    raises("idle is no tollbar.times()", function() local _ = tollbar.metrics({}, false, { idle = api }) end)
    raises("a table of times", function() local _ = tollbar.metrics({}, false, 7) end)
    raises("a function, not a number", function() times:of(7) end)
end)

harness.finish()
