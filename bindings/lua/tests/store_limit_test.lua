--- Limits that a store decides, with a real redis-server, which the test starts on a socket in a
--- directory of its own, and a client over that socket for each machine.
local here = arg[0]:match("^(.*)tests/[^/]*$") or "./"
package.path = here .. "?.lua;" .. here .. "tests/?.lua;" .. package.path
local tollbar, harness, ffi = require "tollbar", require "harness", require "ffi"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails

--- Limits of 20 whose permits do not come back during a test.
local TWENTY = {
    { "gcra", "20/day burst 20" },
    { "interval", "20/day burst 20 algo interval" },
    { "fixed-window", "20/day algo fixed-window" },
    { "weighted-window", "20/day algo weighted-window" },
    { "sliding-window", "20/day algo sliding-window" },
    { "sliding-log", "20/day algo sliding-log" },
}

local function has_redis()
    local maps = assert(io.open("/proc/self/maps")):read("*a")
    return maps:find("libtollbar-redis.so", 1, true) ~= nil
end

-- This test is the first, because a loaded library is never unloaded.
test("only such a limit loads libtollbar-redis", function()
    equal(has_redis(), false)
    tollbar.store_limit("test", "1/s", function() end):close()
    equal(has_redis(), true)
end)

local client = require "store_client"

--- A limit of a machine, by a client of its own, which is the second result.
local function machine(name, policy)
    local ask = client()
    local limit = assert(tollbar.store_limit(name, policy, function(script, key, ...)
        return ask("EVAL", script, "1", key, ...)
    end))
    return limit, ask
end

--- Returns how many requests of two machines passed and were refused, of so many of each. The
--- requests of both are on their way at one time.
local function at_once(machines, key, tries)
    local passed, refused, live = 0, 0, {}
    for i, limit in ipairs(machines) do
        live[i] = coroutine.create(function()
            for _ = 1, tries do
                local allowed, why = limit:check(key)
                if allowed then
                    passed = passed + 1
                else
                    equal(allowed, false, why)
                    refused = refused + 1
                end
            end
        end)
    end
    while coroutine.status(live[1]) ~= "dead" or coroutine.status(live[2]) ~= "dead" do
        for i = 1, 2 do
            if coroutine.status(live[i]) ~= "dead" then
                assert(coroutine.resume(live[i]))
            end
        end
    end
    return passed .. " passed, " .. refused .. " refused"
end

for _, each in ipairs(TWENTY) do
    local name, policy = each[1], each[2]

    test("two machines admit exactly the limit: " .. name, function()
        local machines = { (machine(name, policy)), (machine(name, policy)) }
        equal(at_once(machines, "rush", 50), "20 passed, 80 refused")
        equal(at_once(machines, "half", 10), "20 passed, 0 refused")
        equal(at_once(machines, "half", 10), "0 passed, 20 refused")
    end)

    test("peek, up to, reset: " .. name, function()
        local limit = machine(name, policy)
        local allowed, wait, left, fresh, reason = limit:check("ann", 3)
        equal(allowed, true)
        equal(wait, 0)
        equal(left, 17)
        equal(fresh > 0 and fresh < math.huge, true)
        equal(reason, "admitted")
        for _ = 1, 3 do
            allowed, wait, left = limit:peek("ann", 17)
            equal(allowed, true)
            equal(left, 17)
        end
        allowed, wait, left = limit:peek("ann", 18)
        equal(allowed, false)
        equal(wait > 0 and wait < math.huge, true)
        equal(left, 17)
        equal(select(2, limit:check("ann", 21)), math.huge, "above the limit")
        equal(limit:take_up_to("ann", 2^53), 17)
        equal(limit:take_up_to("ann", 5), 0)
        equal(limit:check("ann"), false)
        equal(limit:reset("ann"), true)
        allowed, wait, left = limit:check("ann", 20)
        equal(allowed, true)
        equal(left, 0)
        -- Any bytes make a key, up to 512 of them.
        for _, key in ipairs { "\0\r\n \255", ("k"):rep(512) } do
            equal(select(3, limit:check(key)), 19)
        end
    end)

    test("a value of others is an error, and stays: " .. name, function()
        local limit, ask = machine("values", policy)
        ask("DEL", "tollbar:{values}:ann")
        equal(ask("LPUSH", "tollbar:{values}:ann", "other"), 1)
        fails("the store limit: ", -94, limit:check("ann"))
        fails("the store limit: ", -94, limit:take_up_to("ann", 1))
        equal(ask("LLEN", "tollbar:{values}:ann"), 1)
    end)
end

test("what cannot be is said", function()
    local function run() end
    fails("weighted-window", -92, tollbar.store_limit("test", "10/s algo pacer", run))
    fails("ban", -92, tollbar.store_limit("test", "10/s ban 1min", run))
    fails("2^53", -93, tollbar.store_limit("test", "100000000/day algo weighted-window", run))
    fails("visible ASCII", -85, tollbar.store_limit("two words", "10/s", run))
    fails("column 1", -10, tollbar.store_limit("test", "many", run))
    raises("run is a function", function() tollbar.store_limit("test", "10/s") end)
    raises("a name is a string", function() tollbar.store_limit(7, "10/s", run) end)
end)

test("errors never admit", function()
    local reply, why
    local limit = assert(tollbar.store_limit("errors", "10/s", function() return reply, why end))
    fails("the store limit: ", -96, limit:check(""))
    fails("the store limit: ", -96, limit:check(("k"):rep(513)))
    raises("a key is a string", function() limit:check() end)
    raises("a whole number", function() limit:check("ann", 1.5) end)
    raises("a whole number", function() limit:take_up_to("ann") end)
    reply, why = nil, "connection refused"
    fails("the store limit: connection refused", nil, limit:check("ann"))
    fails("the store limit: connection refused", nil, limit:peek("ann"))
    fails("the store limit: connection refused", nil, limit:take_up_to("ann", 1))
    -- What lua-resty-redis returns for an error of the server.
    reply, why = false, "OOM no room"
    fails("the store limit: OOM no room", nil, limit:reset("ann"))
    for _, wrong in ipairs { 0, "0", {}, { 0 }, { 0, 1, 1.5 }, { 0, 1, "none" }, { -1, 1, 1, 0 }, { 0, 0 / 0, 1, 0 }, { 7, 0, 1, 0 },
        { 0, 1, 1 }, { 0, 1, 1, -5 }, { 0, 2, 1, 0 } } do
        reply = wrong
        fails("the store limit: ", -95, limit:check("ann"))
    end
    reply = { "0", 1LL, 1, 0 }
    equal(limit:check("ann"), true, "clients may return other numbers")
end)

test("an error of the server is said", function()
    local ask = client()
    local limit = assert(tollbar.store_limit("errors", "10/s", function(_, key, ...)
        return ask("EVAL", "return redis.error_reply('OOM no room')", "1", key, ...)
    end))
    fails("the store limit: OOM no room", nil, limit:check("ann"))
end)

test("the arguments are whole numbers in decimal", function()
    local seen
    local limit = assert(tollbar.store_limit("numbers", "10/s", function(script, key, ...)
        seen = { script, key, ... }
        return { 2, 0, 1, 0 }
    end))
    equal(limit:check("ann", 2^53), false)
    equal(seen[1]:find("redis.call", 1, true) ~= nil, true)
    equal(seen[2], "tollbar:{numbers}:ann")
    equal(seen[3], "0")
    equal(seen[4], "9007199254740992")
    equal(limit:check("ann", 0xffffffffffffffffULL), false)
    equal(seen[4], "9007199254740992")
end)

test("a limit of nothing needs no call", function()
    local limit = assert(tollbar.store_limit("nothing", "0/s", function() error("called") end))
    local allowed, wait, left = limit:check("ann")
    equal(allowed, false)
    equal(wait, math.huge)
    equal(left, 0)
    equal(limit:take_up_to("ann", 1), 0)
end)

test("a closed one", function()
    local limit = assert(tollbar.store_limit("closed", "10/s", function() end))
    equal(tostring(limit), "tollbar.store_limit")
    limit:close()
    limit:close()
    equal(tostring(limit), "tollbar.store_limit, closed")
    raises("the store limit is closed", function() limit:check("ann") end)
    raises("the store limit is closed", function() limit:peek("ann") end)
    raises("the store limit is closed", function() limit:take_up_to("ann", 1) end)
    raises("the store limit is closed", function() limit:reset("ann") end)
    limit = nil
    collectgarbage()
end)

test("a close while a script runs", function()
    local limit
    limit = assert(tollbar.store_limit("closed", "10/s", function()
        limit:close()
        return { 0, 1, 1, 0, 0, 0 }
    end))
    raises("the store limit is closed", function() limit:check("ann") end)
end)

harness.finish()
