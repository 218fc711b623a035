--- Tables in memory and in files.
local harness = require "harness"
local tollbar = require "tollbar"
local ffi = require "ffi"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails
local C = tollbar.C

ffi.cdef "int getpid(void); int fork(void); void _exit(int); int waitpid(int, int *, int); int usleep(unsigned);"

local DAY = 86400000000000
local files = 0

--- Runs a test with the path of a file that does not exist yet, in /dev/shm.
local function with_path(run)
    files = files + 1
    local path = "/dev/shm/tollbar-lua-" .. ffi.C.getpid() .. "-" .. files
    local good, why = xpcall(function() run(path) end, debug.traceback)
    os.remove(path)
    assert(good, why)
end

--- Runs `run` in a child process, and returns its result, a small number.
local function forked(run)
    local child = ffi.C.fork()
    if child == 0 then
        local good, status = pcall(run)
        ffi.C._exit(good and status or 255)
    end
    local status = ffi.new("int[1]")
    equal(ffi.C.waitpid(child, status, 0), child)
    return bit.rshift(status[0], 8)
end

local function admitted(table, key, tries)
    local passed = 0
    for _ = 1, tries do
        passed = passed + (table:allow(key) and 1 or 0)
    end
    return passed
end

test("ten refusals raise one count by ten", function()
    local table = assert(tollbar.table("3/day", { capacity = 100 }))
    equal(admitted(table, "a", 13), 3)
    local stats = table:stats()
    equal(tonumber(stats.allowed), 3)
    equal(tonumber(stats.denied), 10)
    equal(tonumber(stats.never), 0)
end)

test("bookings of a key depart in turn, and the last comes back", function()
    local table = assert(tollbar.table({ "1/h burst 2", "5/s algo fixed-window" }, { capacity = 100, missing = "report" }))
    equal(table:reserve("a", 0), 0)
    equal(table:reserve("a", 0), 0)
    equal(table:reserve("a", 60), false)
    equal(table:reserve("a", nil, 3), false)
    local wait, third = table:reserve("a", 3601)
    assert(wait > 3500 and wait <= 3600, wait)
    local _, fourth = table:reserve("a")
    equal(tonumber(fourth.departs_ns - third.departs_ns) > 3599e9, true)
    equal(table:cancel("a", third), 0)
    equal(table:cancel("a", fourth), 1)
    equal(table:cancel("nobody", fourth), 0)
    equal(table:reserve("b", 0, 2), 0)
    equal(table:reserve("a", nil, 1, 1), false, "a window")
    assert(table:exempt("vip"))
    local _, free = table:reserve("vip", 0)
    equal(tonumber(free.cost), 0)
    fails("the request has no key", C.TOLLBAR_E_MISSING_KEY, table:reserve(nil, 0))
    fails("the table has no policy of that number", C.TOLLBAR_E_NO_SUCH_POLICY, table:reserve("a", 0, 1, 7))
    fails("the table has no policy of that number", C.TOLLBAR_E_NO_SUCH_POLICY, table:cancel("a", fourth, 7))
end)

test("waiting for a key sleeps for what it gets, by the thread or by the caller's function", function()
    local slept, table
    local function sleep(seconds)
        slept = slept + 1
        local began = tollbar.now()
        repeat until tonumber(tollbar.now() - began) / 1e9 >= seconds
    end
    -- Again if a busy machine took so long that permits came without a sleep.
    for _ = 1, 20 do
        slept, table = 0, assert(tollbar.table({ "20/s burst 1", "4/200ms algo fixed-window", "1/day" }, { capacity = 100 }))
        for policy, least in pairs { [0] = 0.1499, [1] = 0 } do
            for _, own in ipairs { false, true } do
                local key, before = own and "own" or "thread", tollbar.now("monotonic")
                for _ = 1, own and 6 or 4 do
                    equal(table:wait(key, 10, 1, policy, own and sleep or nil), true)
                end
                local took = tonumber(tollbar.now("monotonic") - before) / 1e9
                assert(took >= least, took)
            end
        end
        if slept >= 5 then
            break
        end
    end
    assert(slept >= 5, slept)
    equal(table:wait("key", nil, 2), false)
    equal(table:wait("key", 0, 1, 2), true)
    equal(table:wait("key", 3600, 1, 2), false)
    equal(table:wait("key", 3600, 1, 2, sleep), false)
end)

test("counts are by policy", function()
    local table = assert(tollbar.table({ "3/day", "5/day" }, { capacity = 100 }))
    equal(admitted(table, "a", 13), 3)
    table:allow("a", 6, 1)
    local first, second = table:counts(), table:counts(1)
    equal(first.allowed .. " " .. first.denied .. " " .. first.never, "3 10 0")
    equal(second.allowed .. " " .. second.denied .. " " .. second.never, "0 0 1")
    fails("the table has no policy of that number", C.TOLLBAR_E_NO_SUCH_POLICY, table:counts(2))
end)

test("each key by itself", function()
    local table = assert(tollbar.table("3/day", { capacity = 1000 }))
    for _, key in ipairs { "a", "b", "\0", "\0\0", ("x"):rep(5000) } do
        equal(admitted(table, key, 9), 3)
    end
    local allowed, retry_after, remaining = table:check("a")
    equal(allowed, false)
    assert(retry_after > 28790 and retry_after <= 28800)
    equal(remaining, 0)
    local _, _, left = table:peek("new")
    equal(left, 3)
end)

--- A hundred times the capacity in new keys. A limited key is decided as by a limiter of its own while
--- the clock goes on, and while it stands still and new keys take places from each other.
test("a flood takes no place of a limited key", function()
    local table = assert(tollbar.table({ "20/h burst 50", "1/s burst 1" }, { capacity = 1000 }))
    local alone = assert(tollbar.limiter("20/h burst 50"))
    local bytes, now, taken = table:stats().bytes, DAY, 0
    for key = 0, 199999 do
        equal((table:check_at(now, tostring(key), 1, 1)), true)
        now = now + (key < 100000 and 5e6 or 0)
        if key % 100 == 0 then
            local passed = table:check_at(now, "limited", 1, 0)
            equal(passed, (alone:check_at(now)))
            taken = taken + (passed and 1 or 0)
        end
    end
    local after = table:stats()
    equal(after.bytes, bytes)
    equal(after.evicted > 50000, true)
    equal(taken, 50 + math.floor(500 / 180))
end)

test("policies by number, costs, the caller's time", function()
    local table = assert(tollbar.table({ "3/day", "5/day" }, { capacity = 1000, seed = 7 }))
    equal(table:take_up_to("a", 9), 3)
    equal(table:take_up_to("a", 9, 1), 5)
    equal(table:charge("owes", 20), 20 - 2 * 3)
    equal(table:allow("owes"), false)
    equal(table:take_up_to("a", 9, 1), 0)
    equal((table:check("b", 3, 1)), true)
    equal((table:check("b", 3, 1)), false)
    local far = table:now() + DAY
    equal((table:check_at(far, "b", 5, 1)), true)
    equal((table:check_at(far, "b", 5, 0)), false)
    fails("no policy", C.TOLLBAR_E_NO_SUCH_POLICY, table:allow("a", 1, 2))
    fails("no policy", C.TOLLBAR_E_NO_SUCH_POLICY, table:check("a", 1, 2))
    equal(table:policy(1), "5/day")
    equal(table:set_policy(1, "6/day"), true)
    equal(table:set_policy(1, "6/day", "time"), true)
    raises("keep cannot be sum", function() local _ = table:set_policy(1, "6/day", "sum") end)
    equal(table:add_policy("7/day"), 2)
    equal(table:find_or_add_policy("6/day"), 1)
    equal(table:find_or_add_policy("8/day"), 3)
    equal(table:find_or_add_policy("8/day"), 3)
    equal(table:take_up_to("a", 9, 2), 7)
    fails("column", C.TOLLBAR_E_SYNTAX, table:set_policy(1, "6"))
    fails("column", C.TOLLBAR_E_SYNTAX, table:add_policy("6"))
    fails("no policy", C.TOLLBAR_E_NO_SUCH_POLICY, table:set_policy(9, "6/day"))
end)

test("batches", function()
    local table = assert(tollbar.table({ "3/day", "1/day" }, { capacity = 1000 }))
    local keys = {}
    for i = 1, 500 do
        keys[i] = "key" .. i % 100
    end
    local out, passed = table:check_many(keys)
    equal(passed, 300)
    equal(#out, 500)
    for i = 1, 500 do
        equal(out[i], i <= 300)
    end
    -- A reused array is cut to size.
    local again, few = table:check_many({ "a", "b", "a" }, 2, 0, out)
    assert(again == out)
    equal(few, 2)
    equal(#out, 3)
    equal(out[3], false)
    local by_cost = table:check_many({ "c", "c", "c" }, { 2, 2, 1 })
    assert(by_cost[1] and not by_cost[2] and by_cost[3])
    equal(select(2, table:check_many({ "c", "c" }, nil, 1)), 1)
    equal(select(2, table:check_many({})), 0)
    equal(select(2, table:check_many({ "a" }, 1, 9)), 0)
    raises("a key is a string", function() table:check_many({ "a", 5 }) end)
    raises("an array", function() table:check_many("abc") end)
    raises("a whole number", function() table:check_many({ "a" }, { "b" }) end)
    raises("a whole number", function() table:check_many({ "a", "b" }, { 1 }) end)
end)

test("reset, exempt, a missing key, a full table", function()
    local table = assert(tollbar.table("3/day", { capacity = 10, missing = "report" }))
    equal(admitted(table, "a", 9), 3)
    equal(table:reset("a"), true)
    equal(admitted(table, "a", 9), 3)
    equal(table:exempt("a"), true)
    equal(admitted(table, "a", 9), 9)
    equal(table:unexempt("a"), true)
    equal(table:unexempt("a"), false)
    fails("has no key", C.TOLLBAR_E_MISSING_KEY, table:allow(nil))
    fails("has no key", C.TOLLBAR_E_MISSING_KEY, table:check(""))
    local open = assert(tollbar.table("3/day", { capacity = 10, missing = "allow", on_full = "allow" }))
    equal(admitted(open, nil, 9), 9)
    local closed = assert(tollbar.table("3/day", { capacity = 10, on_full = "deny" }))
    equal(admitted(closed, nil, 9), 0)
    local passed = 0
    for i = 1, 20000 do
        passed = passed + (closed:allow("k" .. i) and 1 or 0)
    end
    local stats = closed:stats()
    equal(passed, stats.inserted)
    equal(20000 - passed, stats.refused)
    local passes, _, _, _, reason = closed:check("newcomer")
    equal(passes, false)
    equal(reason, "table full")
    equal(select(5, open:check("newcomer")), "admitted")
    assert(stats.refused > 0 and stats.slots >= passed and stats.capacity == 10 and stats.policies == 1)
end)

test("health", function()
    local table = assert(tollbar.table("3/day", { capacity = 1000, small_pages = true }))
    admitted(table, "a", 3)
    local health = table:validate()
    equal(health.slots_invalid, false)
    equal(health.live, 1)
    equal(health.duplicate, 0)
    equal(table:repair().slots_invalid, false)
end)

test("wrong types and options are errors, told where the call is", function()
    local table = assert(tollbar.table("3/day", { capacity = 100 }))
    for _, key in ipairs { 5, false, {}, 5ULL } do
        raises("a key is a string", function() local _ = table:allow(key) end)
        raises("a key is a string", function() local _ = table:check(key) end)
        raises("a key is a string", function() table:reset(key) end)
    end
    raises("a whole number", function() local _ = table:allow("a", "1") end)
    raises("a whole number", function() local _ = table:allow("a", -1) end)
    raises("a whole number", function() local _ = table:allow("a", 1, "logins") end)
    raises("a whole number", function() local _ = table:allow("a", 1, 2 ^ 32) end)
    equal(table:take_up_to("a", 9), 3)
    raises("a policy is a string", function() tollbar.table(5, { capacity = 1 }) end)
    raises("a policy is a string", function() tollbar.table({ "3/s", 5 }, { capacity = 1 }) end)
    raises("a whole number", function() tollbar.table("3/s") end)
    raises("a whole number", function() tollbar.table("3/s", { capacity = "1" }) end)
    raises("a whole number", function() tollbar.table("3/s", { capacity = 1, seed = "x" }) end)
    raises("no option mode", function() tollbar.table("3/s", { capacity = 1, mode = 384 }) end)
    raises("no option shared", function() tollbar.open("/dev/shm/none", "3/s", { capacity = 1, shared = true }) end)
    raises("on_full cannot be", function() tollbar.table("3/s", { capacity = 1, on_full = "panic" }) end)
    raises("a path is a string", function() tollbar.open(5) end)
    raises("NUL", function() tollbar.open("a\0b") end)
    fails("capacity is zero", C.TOLLBAR_E_CAPACITY, tollbar.table("3/s", { capacity = 0 }))
    fails("128 policies", C.TOLLBAR_E_POLICY_COUNT, tollbar.table({}, { capacity = 1 }))
    fails("column", C.TOLLBAR_E_SYNTAX, tollbar.table({ "3/s", "3" }, { capacity = 1 }))
    for _, self in ipairs { "text", 5, false, {}, assert(tollbar.limiter("3/s")) } do
        assert(not pcall(table.allow, self, "a"), "called with another self")
        assert(not pcall(table.check_many, self, { "a" }), "called with another self")
    end
end)

test("a closed table is an error, whatever is asked of it", function()
    local table = assert(tollbar.table("3/day", { capacity = 100 }))
    table:close()
    table:close()
    for _, method in ipairs { "allow", "check", "peek", "reset", "exempt", "unexempt", "now", "policy", "stats", "validate",
        "repair" } do
        raises("the table is closed", function() local _ = table[method](table, method ~= "policy" and "a" or nil) end)
    end
    raises("the table is closed", function() local _ = table:counts() end)
    raises("the table is closed", function() local _ = table:sync() end)
    raises("the table is closed", function() local _ = table:take_up_to("a", 1) end)
    raises("the table is closed", function() local _ = table:check_many({ "a" }) end)
    raises("the table is closed", function() local _ = table:check_at(1, "a") end)
    raises("the table is closed", function() local _ = table:set_policy(0, "3/s") end)
    raises("the table is closed", function() local _ = table:add_policy("3/s") end)
    equal(tostring(table), "tollbar.table, closed")
end)

test("a file's table is one for all who open it", function()
    with_path(function(path)
        local one = assert(tollbar.open(path, "5/day", { capacity = 100, mode = tonumber("0640", 8) }))
        local other = assert(tollbar.open(path))
        equal(admitted(one, "a", 2) + admitted(other, "a", 9), 5)
        equal(other:policy(), "5/day")
        equal(one:sync(), true)
        one:close()
        other:close()
        equal(admitted(assert(tollbar.open(path, "5/day", { capacity = 100 })), "a", 9), 0)
        local stat = io.popen("stat -c %a " .. path)
        equal(stat:read("*l"), "640")
        stat:close()
        fails("other policies", C.TOLLBAR_E_OTHER_POLICIES, tollbar.open(path, "6/day", { capacity = 100 }))
        fails("another capacity", C.TOLLBAR_E_OTHER_CAPACITY, tollbar.open(path, "5/day", { capacity = 999999 }))
        local _, message = tollbar.open(path, "6/day", { capacity = 100 })
        assert(message:find(path, 1, true), message)
    end)
    fails("No such file", C.TOLLBAR_E_OPEN, tollbar.open("/dev/shm/tollbar-lua-none"))
    with_path(function(path)
        local file = io.open(path, "w")
        file:write(("no table"):rep(10000))
        file:close()
        fails("not a tollbar table", C.TOLLBAR_E_NOT_A_TABLE, tollbar.open(path))
    end)
end)

test("a thread takes permits of hot keys in advance", function()
    with_path(function(path)
        local plain = assert(tollbar.open(path, "100000/day", { capacity = 1000 }))
        local hot = assert(tollbar.open(path, nil, { hot_keys = 64 }))
        equal(admitted(hot, "a", 100), 100)
        local _, _, own = hot:peek("a")
        local _, _, rest = plain:peek("a")
        -- The thread's credit is charged to the table.
        assert(rest < own, rest .. " " .. own)
    end)
end)

test("after a fork a shared table is one, a private one is two", function()
    local shared = assert(tollbar.table("5/day", { capacity = 100, shared = true }))
    local private = assert(tollbar.table("5/day", { capacity = 100 }))
    equal(admitted(shared, "a", 1) + admitted(private, "a", 1), 2)
    equal(forked(function() return admitted(shared, "a", 9) + 16 * admitted(private, "a", 9) end), 4 + 16 * 4)
    equal(admitted(shared, "a", 9), 0)
    equal(admitted(private, "a", 9), 4)
end)

test("what is not used any more is given back", function()
    local function mapped()
        return tonumber(io.open("/proc/self/statm"):read("*l"):match("^(%d+)")) * 4096
    end
    local function run()
        for _ = 1, 50 do
            -- Each table takes some two megabytes.
            assert(tollbar.table("3/day", { capacity = 100000 })):allow("a")
            collectgarbage()
        end
        collectgarbage()
    end
    run()
    local before = mapped()
    run()
    assert(mapped() - before < 20e6, "grown by " .. mapped() - before)
end)

test("a key has a policy of its own", function()
    local table = assert(tollbar.table({ "3/min", "4/min" }, { capacity = 100, overrides = 2 }))
    assert(table:set_override("acme", "1000/min burst 50"))
    equal(table:take_up_to("acme", 100), 50)
    equal(table:take_up_to("other", 100), 3)
    equal(table:take_up_to("acme", 100, 1), 4)
    equal(table:override("acme"), "1000/min burst 50")
    equal(table:override("acme", 1), nil)
    local list = table:overrides()
    equal(#list, 1)
    equal(list[1].policy, 0)
    equal(list[1].to, "1000/min burst 50")
    equal(table:stats().overrides, 1)
    assert(table:set_override("b", "5/min", 0, "reset"))
    fails("no room for another override", C.TOLLBAR_E_OVERRIDES_FULL, table:set_override("c", "5/min"))
    fails("5/mn", C.TOLLBAR_E_SYNTAX, table:set_override("b", "5/mn"))
    equal(table:clear_override("acme"), true)
    equal(table:clear_override("acme"), false)
    equal(table:allow("acme"), false)
end)

test("the most refused keys", function()
    local table = assert(tollbar.table({ "1/day", "2/day" }, { capacity = 100 }))
    equal(table:records_refusals(), false)
    assert(table:record_refusals(true))
    equal(table:records_refusals(), true)
    -- Counts are halved when such a time begins, which is ten seconds away.
    while tonumber(table:now() % 68719476736ULL) > 58e9 do
        ffi.C.usleep(50000)
    end
    local long = ("x"):rep(100)
    for _ = 1, 6 do
        table:allow("alice")
        table:allow(long, 1, 1)
    end
    local top = assert(table:top_refused())
    equal(#top, 2)
    equal(top[1].key, "alice")
    equal(top[1].count, 5)
    equal(top[1].is_cut, false)
    equal(top[2].policy, 1)
    equal(top[2].key, long:sub(1, 48))
    equal(top[2].is_cut, true)
    equal(#table:top_refused(1), 1)
    equal(#table:top_refused(0), 0)
    equal(#table:top_refused(1000), 2)
    assert(table:record_refusals(false))
    equal(table:records_refusals(), false)
end)

test("any algorithm becomes any other where slots have room", function()
    local table = assert(tollbar.table({ "20/h", "1/s" }, { capacity = 100, room = 30 }))
    equal(tonumber(table:stats().room), 30)
    equal(table:take_up_to("k", 14), 14)
    for _, policy in ipairs { "30/h algo sliding-window segments 10", "25/h algo sliding-log" } do
        assert(table:set_policy(1, policy))
        local _, _, left = table:peek("k")
        equal(left, 6)
    end
    fails("room", C.TOLLBAR_E_SLOT_ROOM, table:set_policy(1, "31/s algo sliding-log"))
end)

harness.finish()
