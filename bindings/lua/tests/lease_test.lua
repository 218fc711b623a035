--- Leases, without a store and with a real redis-server, which the test starts on a socket in a
--- directory of its own.
local here = arg[0]:match("^(.*)tests/[^/]*$") or "./"
package.path = here .. "?.lua;" .. here .. "tests/?.lua;" .. package.path
local tollbar, harness, ffi = require "tollbar", require "harness", require "ffi"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails

ffi.cdef "int usleep(unsigned microseconds);"
local NOWHERE, SLOW = "unix:/no-such-directory/redis.sock", "60/min burst 600"

local function lease(options, policy)
    options = options or {}
    options.nodes, options.url = options.nodes or 4, options.url or NOWHERE
    return assert(tollbar.lease("test", policy or SLOW, options))
end

local function taken(one, key, tries)
    local n = 0
    for _ = 1, tries do
        n = n + (one:allow(key) and 1 or 0)
    end
    return n
end

--- Waits for a condition, which usually takes milliseconds. A busy machine has half a minute.
local function until_true(what, holds)
    for _ = 1, 6000 do
        if holds() then
            return
        end
        ffi.C.usleep(5000)
    end
    error(what, 2)
end

local function has_redis()
    local maps = assert(io.open("/proc/self/maps")):read("*a")
    return maps:find("libtollbar-redis.so", 1, true) ~= nil
end

-- This test is the first, because a loaded library is never unloaded.
test("only a lease loads libtollbar-redis", function()
    assert(tollbar.table("1/s", { capacity = 10 }):allow("key"))
    equal(has_redis(), false)
    lease():close()
    equal(has_redis(), true)
end)

test("without a store it lives on its share", function()
    local one = lease()
    equal(taken(one, "ann", 40), 18, "an eighth of its share of the burst")
    equal(taken(one, nil, 40), 18, "the one limit for all")
    equal(one:allow(""), false, "which is the key of no bytes")
    local passes, after, left = one:check("ann")
    equal(passes, false)
    equal(after > 0 and after <= 4.1, true)
    equal(left, 0)
    equal(select(2, one:check("ann", 601)), math.huge)
    equal(select(3, one:peek("new", 18)), 18)
    equal(one:check("new", 18), true)
    local stats = one:stats()
    equal(stats.circuit, "unknown")
    equal(stats.fallback_permits, 54)
    equal(stats.granted, 0)
    equal(tostring(one), "tollbar.lease, circuit unknown")
end)

test("options", function()
    equal(taken(lease { fallback = "deny" }, "k", 50), 0)
    equal(taken(lease { fallback = "allow" }, "k", 50), 50)
    equal(taken(lease { overdraft = 5 }, "k", 50), 5)
    equal(taken(lease { overdraft = 0 }, "k", 50), 0)
    equal(taken(lease { inexact = true, life = 0.005, capacity = 10 }, "k", 50), 18)
    raises("no option clock", function() tollbar.lease("test", SLOW, { nodes = 1, url = NOWHERE, clock = "tsc" }) end)
    raises("fallback cannot be pray", function() tollbar.lease("test", SLOW, { nodes = 1, url = NOWHERE, fallback = "pray" }) end)
    raises("a url is a string", function() tollbar.lease("test", SLOW, { nodes = 1 }) end)
    raises("a whole number", function() tollbar.lease("test", SLOW, { url = NOWHERE }) end)
    raises("a name is a string", function() tollbar.lease(7, SLOW, { nodes = 1, url = NOWHERE }) end)
end)

test("what cannot be is said", function()
    local good = { nodes = 4, url = NOWHERE }
    fails("visible ASCII", -85, tollbar.lease("two words", SLOW, good))
    fails("only a single gcra", -80, tollbar.lease("test", "1/s algo pacer", good))
    fails("1 to 65535", -81, tollbar.lease("test", SLOW, { nodes = 0, url = NOWHERE }))
    fails("1 ms to 10 minutes", -82, tollbar.lease("test", SLOW, { nodes = 1, url = NOWHERE, life = 1e-6 }))
    fails("burst", -83, tollbar.lease("test", "10/s burst 1", good))
    fails("column 1", -10, tollbar.lease("test", "many", good))
    local none, message, code = tollbar.lease("test", SLOW, { nodes = 1, url = "redis://:secret@h:x" })
    fails("column", -87, none, message, code)
    equal(message:find("secret"), nil)
end)

test("a closed one", function()
    local one = lease()
    equal(one:close(), true)
    equal(one:close(1), true)
    equal(tostring(one), "tollbar.lease, closed")
    raises("the lease is closed", function() one:allow("k") end)
    raises("the lease is closed", function() one:stats() end)
    raises("the lease is closed", function() one:tick() end)
    one = lease()
    one:allow("k")
    equal(one:close(0.02), false, "nobody to tell")
end)

-- The server's shell ends when this process closes its standard input.
local directory = assert(io.popen("mktemp -d")):read("*l")
local socket = directory .. "/s"
local server = assert(io.popen(string.format(
    "exec 3<&0; redis-server --port 0 --unixsocket %s --dir %s --save '' --appendonly no --logfile log & read -r _ <&3; kill -9 $!; rm -rf %s",
    socket, directory, directory), "w"))

test("a real store", function()
    local one, two = lease({ url = "unix:" .. socket, nodes = 2 }), lease({ url = "unix:" .. socket, nodes = 2 })
    until_true("no store; if there is no redis-server, as root: apt-get install redis-server", function()
        equal(one:tick() > 0 and two:tick() > 0, true)
        return one:stats().circuit == "closed" and two:stats().circuit == "closed" and one:why() == nil
    end)
    -- A store with new data grants nothing for its first second.
    for _ = 1, 240 do
        one:tick()
        two:tick()
        ffi.C.usleep(5000)
    end
    until_true("a lease", function()
        one:allow("k")
        one:tick()
        return one:stats().granted > 0
    end)
    equal(two:allow("other", 3), true)
    equal(two:close(30), true, "the store has been told")
    equal(one:close(30), true)
end)

test("the store's words", function()
    local one = lease { url = "unix:" .. socket .. "?user=nobody&password=wrong" }
    until_true("a refusal", function()
        one:tick()
        return (one:why() or ""):find("WRONGPASS", 1, true) ~= nil
    end)
end)

server:write("end\n")
server:close()
harness.finish()
