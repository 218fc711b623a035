--- Leases whose calls the program's own Redis client makes, on a real redis-server.
local here = arg[0]:match("^(.*)tests/[^/]*$") or "./"
package.path = here .. "?.lua;" .. here .. "tests/?.lua;" .. package.path
local tollbar, harness = require "tollbar", require "harness"
local client = require "store_client"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails

local DAY = "1000/day burst 400"

local function run_of(ask)
    return function(script, keys, ...)
        return ask("EVAL", script, tostring(keys), ...)
    end
end

local function lease(name, options)
    options.nodes, options.run = options.nodes or 1, options.run or run_of(client())
    return assert(tollbar.lease(name, DAY, options))
end

--- Ticks until the circuit is `circuit`. A busy machine has half a minute.
local function becomes(one, circuit)
    local ends = os.time() + 30
    while one:stats().circuit ~= circuit do
        one:tick()
        assert(os.time() < ends, one:why() or "no store")
    end
end

local function admitted(one, key, tries)
    local passed = 0
    for _ = 1, tries do
        passed = passed + (one:wait(key, 10) and 1 or 0)
    end
    return passed
end

test("it admits what the store has", function()
    local one = lease("plain", {})
    becomes(one, "closed")
    local passed = admitted(one, "ann", 450)
    -- Exactness keeps back 8 permits. A process that does not run for 250 ms loses what it was given.
    equal(passed >= 300 and passed <= 400, true, passed)
    equal(one:why(), nil)
    equal(one:close(10), true)
end)

test("two machines are one limit", function()
    local one, two = lease("two", { nodes = 2 }), lease("two", { nodes = 2 })
    becomes(one, "closed")
    becomes(two, "closed")
    local passed = admitted(one, "ann", 250) + admitted(two, "ann", 250)
    equal(passed >= 300 and passed <= 400, true, passed)
    one:close(10)
    two:close(10)
end)

test("light threads share the calls of one lease", function()
    local one = lease("light", {})
    becomes(one, "closed")
    local live, passed = {}, 0
    for i = 1, 5 do
        live[i] = coroutine.create(function()
            for _ = 1, 60 do
                -- Other threads add to `passed` during the wait.
                local one_more = one:wait("ann", 10, 1, coroutine.yield) and 1 or 0
                passed = passed + one_more
            end
        end)
    end
    local left = #live
    while left > 0 do
        left = 0
        for _, thread in ipairs(live) do
            if coroutine.status(thread) ~= "dead" then
                assert(coroutine.resume(thread))
                left = left + 1
            end
        end
    end
    equal(passed >= 250 and passed <= 300, true, passed)
    one:close(10)
end)

test("faults of the client and of the store are said, and decide nothing", function()
    local reply, why, raised
    local one = lease("faults", { overdraft = 0, run = function()
        if raised then
            error(raised)
        end
        return reply, why
    end })
    reply, why = nil, "connection refused"
    becomes(one, "open")
    equal(one:why(), "the program's Redis client failed: connection refused")
    equal(one:wait("ann", 1), false)
    local function says(words)
        local ends = os.time() + 30
        repeat
            one:tick()
            assert(os.time() < ends, one:why())
        until one:why():find(words, 1, true)
    end
    reply, why = false, "OOM no room"
    says "the server is out of memory (EVALSHA): OOM no room"
    reply, why = { "nonsense" }, nil
    says "not a Redis server's reply"
    reply = 7
    says "failed"
    raised = "no socket in this phase"
    says "no socket in this phase"
    equal(one:close(0.01), true, "nobody was admitted")
    raises("the lease is closed", function() one:tick() end)
end)

test("a close in a call of its client ends it", function()
    local ask = client()
    local one
    one = lease("closes", { run = function(script, keys, ...)
        local reply = ask("EVAL", script, tostring(keys), ...)
        one:close()
        return reply
    end })
    equal(one:tick() >= 0, true)
    equal(tostring(one), "tollbar.lease, closed")
end)

test("what cannot be is said", function()
    raises("run is a function, in place of a url", function() tollbar.lease("a", DAY, { nodes = 1, run = 7 }) end)
    raises("in place of a url", function() tollbar.lease("a", DAY, { nodes = 1, run = print, url = "redis://h" }) end)
    fails("visible ASCII", -85, tollbar.lease("two words", DAY, { nodes = 1, run = print }))
end)

harness.finish()
