--- Metrics: ten refusals raise one series by ten.
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

harness.finish()
