--- Leases, without a store and with a real redis-server, which the test starts on a socket in a
--- directory of its own.
local here = arg[0]:match("^(.*)tests/[^/]*$") or "./"
package.path = here .. "?.lua;" .. here .. "tests/?.lua;" .. package.path
local tollbar, harness, ffi = require "tollbar", require "harness", require "ffi"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails

ffi.cdef "int usleep(unsigned microseconds);"
local NOWHERE, SLOW = "unix:/no-such-directory/redis.sock", "60/min burst 600"

local function lease(options, policy, name)
    options = options or {}
    options.nodes, options.url = options.nodes or 4, options.url or NOWHERE
    return assert(tollbar.lease(name or "test", policy or SLOW, options))
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
    equal(taken(one, "ann", 40), 8, "the overdraft that the library chooses")
    equal(taken(one, nil, 40), 8, "the one limit for all")
    equal(one:allow(""), false, "which is the key of no bytes")
    local passes, after, left = one:check("ann")
    equal(passes, false)
    equal(after > 0 and after <= 4.1, true)
    equal(left, 0)
    equal(select(2, one:check("ann", 601)), math.huge)
    equal(select(3, one:peek("new", 8)), 8)
    equal(one:check("new", 8), true)
    local stats = one:stats()
    equal(stats.circuit, "unknown")
    equal(stats.fallback_permits, 24)
    equal(stats.granted, 0)
    equal(stats.full, 0)
    equal(stats.denied > 0 and stats.denied_by_fallback, stats.denied)
    local waits, reason = one:wait("ann", 60)
    equal(waits, false)
    equal(reason, "store down")
    equal(one:wait("other", 60, 8), true)
    equal(tostring(one), "tollbar.lease, circuit open")
end)

test("options", function()
    equal(taken(lease { fallback = "deny" }, "k", 50), 0)
    equal(taken(lease { fallback = "allow" }, "k", 50), 50)
    equal(taken(lease { overdraft = 5 }, "k", 50), 5)
    equal(taken(lease { overdraft = 0 }, "k", 50), 0)
    equal(taken(lease { nodes = 400 }, "k", 50), 0)
    equal(taken(lease { nodes = 400, inexact = true, life = 0.005, capacity = 10, refill = true }, "k", 50), 8)
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
    fails("burst", -83, tollbar.lease("test", "10/s burst 20", { nodes = 4, url = NOWHERE, overdraft = 5 }))
    fails("too large", -84, tollbar.lease("test", "10/s burst 2000", { nodes = 4, url = NOWHERE, overdraft = 128 }))
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
    raises("the lease is closed", function() one:wait("k", 1) end)
    one = lease()
    one:allow("k")
    equal(one:close(0.02), false, "nobody to tell")
end)

-- The server ends when this process writes a line to its shell or closes the shell's standard input.
-- In the second case the shell also removes the directory.
local directory = assert(io.popen("mktemp -d")):read("*l")
local socket = directory .. "/s"
local server

local function start_store()
    local command = "exec 3<&0; redis-server --port 0 --unixsocket %s --dir %s --save '' --appendonly no --logfile log & "
        .. "read -r _ <&3 && old=%s || old=%s; kill -9 $!; wait; rm -rf $old"
    server = assert(io.popen(command:format(socket, directory, socket, directory), "w"))
end

local function kill_store()
    server:write("end\n")
    server:close()
end

start_store()

--- Ticks both machines until their circuits are all `circuit`.
local function both_become(circuit, one, two)
    until_true("no store; if there is no redis-server, as root: apt-get install redis-server", function()
        equal(one:tick() > 0 and two:tick() > 0, true)
        return one:stats().circuit == circuit and two:stats().circuit == circuit
    end)
end

local limits = 0

--- Two machines of a new limit, whose store answers both.
local function two_machines(policy, options)
    limits = limits + 1
    options.url, options.nodes = "unix:" .. socket, 2
    local one, two = lease(options, policy, "limit" .. limits), lease(options, policy, "limit" .. limits)
    both_become("closed", one, two)
    return one, two
end

--- Whether the store admits a request. A machine whose client was not ticked for 250 ms has an open
--- circuit, and decides by itself; then the request is made again.
local function store_admits(one, key, other)
    local passes, reason
    until_true("an answer of the store", function()
        equal(one:tick() > 0 and other:tick() > 0, true)
        passes, reason = one:wait(key, 30)
        return passes or reason == "denied by the store"
    end)
    return passes
end

test("a real store", function()
    local one, two = two_machines(SLOW, {})
    equal(one:why(), nil)
    until_true("a lease", function()
        one:allow("k")
        one:tick()
        return one:stats().granted > 0
    end)
    equal(two:allow("other", 3), true)
    equal(two:close(30), true, "the store has been told")
    equal(one:close(30), true)
end)

test("an idle key passes at once on both machines", function()
    local one, two = two_machines("5/min", {})
    equal(one:allow("idle"), true)
    equal(two:allow("idle"), true)
end)

test("five waiting requests pass, and the store refuses the sixth", function()
    local one, two = two_machines("5/min", { overdraft = 0 })
    local tries = 0
    until_true("a pending answer", function()
        one:tick()
        tries = tries + 1
        return select(5, one:check("pending" .. tries)) == "pending"
    end)
    for number = 1, 6 do
        local asked, other = one, two
        if number % 2 == 0 then
            asked, other = two, one
        end
        equal(store_admits(asked, "waits", other), number <= 5, "request " .. number)
    end
    equal(select(2, one:wait("many", 1, 6)), "above the burst")
    until_true("a wait without time for an answer", function()
        one:tick()
        tries = tries + 1
        return select(2, one:wait("hurried" .. tries, 0)) == "pending"
    end)
end)

test("a wait sleeps in the event loop, which ticks the other machines", function()
    local one, two = two_machines("5/min", { overdraft = 0 })
    local slept = 0
    until_true("a wait that sleeps", function()
        two:tick()
        one:wait("loop" .. slept, 30, 1, function(seconds)
            slept = slept + 1
            equal(seconds, 0.001)
            two:tick()
            ffi.C.usleep(1000)
        end)
        return slept > 0
    end)
end)

for _, refill in ipairs { false, true } do
    test("after a loss an idle key " .. (refill and "refills" or "is full"), function()
        -- No permit comes back during the test.
        local one, two = two_machines("5/h", { overdraft = 0, refill = refill })
        -- With refill the keys of new data are empty for a second. A machine keeps a refusal, so
        -- each try has a key of its own.
        local tries = 0
        until_true("a permit", function()
            tries = tries + 1
            return store_admits(one, "new" .. tries .. tostring(refill), two)
        end)
        kill_store()
        both_become("open", one, two)
        start_store()
        both_become("closed", one, two)
        local passed = 0
        for number = 1, 6 do
            local asked, other = one, two
            if number % 2 == 0 then
                asked, other = two, one
            end
            passed = passed + (store_admits(asked, "idle", other) and 1 or 0)
        end
        equal(passed, refill and 0 or 5)
    end)
end

test("requests without a place are counted", function()
    local one = two_machines(SLOW, { capacity = 64 })
    local keys = 0
    until_true("a refusal", function()
        one:tick()
        for _ = 1, 1000 do
            keys = keys + 1
            one:allow("key" .. keys)
        end
        return one:stats().full > 0
    end)
end)

test("the store's words", function()
    local one = lease { url = "unix:" .. socket .. "?user=nobody&password=wrong" }
    until_true("a refusal", function()
        one:tick()
        return (one:why() or ""):find("WRONGPASS", 1, true) ~= nil
    end)
end)

--- What redis-cli answers.
local function ask(...)
    local words = table.concat({ "redis-cli -s " .. socket, ... }, " ")
    local answer = assert(io.popen(words .. " 2>&1"))
    local text = answer:read("*a")
    answer:close()
    return (text:gsub("%s+$", ""))
end

--- Ticks a lease until the store has granted more than before.
local function is_granted(one, before)
    until_true(one:why() or "a grant", function()
        one:tick()
        one:allow("ann")
        return one:stats().granted > before
    end)
    return one:stats().granted
end

test("ways to the store", function()
    equal(ask("CONFIG SET bind", "'127.0.0.1 -::1'"), "OK")
    local port = 30000
    repeat
        port = port + 1
    until ask("CONFIG SET port", port) == "OK" or port == 40000
    equal(ask("ACL SETUSER me on '>first' '~tollbar:*' '&*' +@all"), "OK")
    local ways = { "127.0.0.1:%d", "localhost:%d/3", "me:first@127.0.0.1:%d", "127.0.0.1:1,localhost:%d" }
    local addresses = io.open("/proc/net/if_inet6")
    if addresses and addresses:read("*a"):find(("0"):rep(31) .. "1", 1, true) then
        ways[#ways + 1] = "[::1]:%d"
    end
    for _, way in ipairs(ways) do
        is_granted(lease { url = "redis://" .. way:format(port) }, 0)
    end
end)

test("a password that rotates", function()
    local path = directory .. "/password"
    local function write(password)
        local file = assert(io.open(path, "w"))
        file:write(password, "\n")
        file:close()
    end
    write("first")
    equal(ask("ACL SETUSER it on '>first' '~tollbar:*' '&*' +@all"), "OK")
    local one = lease { url = "unix:" .. socket .. "?user=it&password_file=" .. path }
    local before = is_granted(one, 0)
    write("second")
    equal(ask("ACL SETUSER it resetpass '>second'"), "OK")
    equal(tonumber(ask("CLIENT KILL USER it")) >= 1, true)
    is_granted(one, before)
end)

test("leases of a store have one connection", function()
    -- No other lease has this url.
    local url, many = "unix:" .. socket .. "?db=7", {}
    local function connections()
        return select(2, ask("CLIENT LIST"):gsub(" name=tollbar [^\n]* db=7 ", ""))
    end
    for number = 1, 130 do
        many[number] = lease({ url = url, nodes = 2 }, SLOW, "many" .. number)
    end
    local second = lease({ url = url, nodes = 2 }, SLOW, "many7")
    until_true("closed circuits", function()
        local closed = 0
        -- The first is in a full client, the last in another one.
        for _, one in ipairs { many[1], many[130] } do
            one:tick()
        end
        for _, one in ipairs(many) do
            closed = closed + (one:stats().circuit == "closed" and 1 or 0)
        end
        return closed == 130 and second:stats().circuit == "closed"
    end)
    equal(connections(), 2)
    for number = 1, 129, 2 do
        equal(many[number]:allow("ann"), true)
        equal(many[number]:close(30), true)
        equal(ask("-n 7 EXISTS", "'tollbar:{many" .. number .. "}:k:ann'"), "1")
    end
    -- Free places are taken again.
    local again = lease({ url = url, nodes = 2 }, SLOW, "many7")
    equal(again:wait("bob", 30), true)
    equal(many[2]:wait("bob", 30) and many[130]:wait("bob", 30), true)
    equal(connections(), 2)
    until_true("no fault", function()
        many[2]:tick()
        return many[2]:why() == nil
    end)
    many, again, second = nil, nil, nil
    collectgarbage()
    collectgarbage()
    until_true("they end", function()
        return connections() == 0
    end)
end)

server:close()
harness.finish()
