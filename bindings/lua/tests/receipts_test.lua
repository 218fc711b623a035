--- Receipts: an estimate now, the real cost later.
local harness = require "harness"
local tollbar = require "tollbar"
local ffi = require "ffi"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails
local C = tollbar.C

ffi.cdef "int getpid(void);"

local SECOND = 1000000000

-- The interpreter's name is in front of all options.
local first = 0
while arg[first - 1] do
    first = first - 1
end
local interpreter = arg[first]

local function settles(table, now, receipt, cost, given_back, rest, first)
    local got_back, got_rest, got_first = table:settle_at(now, receipt, cost)
    equal(got_back, given_back)
    equal(got_rest, rest)
    equal(got_first, first)
end

test("time is not given twice", function()
    -- Takes 5 of 10, and 7 two seconds later. Then the 5 turn out to cost nothing, and 5 more are
    -- refused nevertheless.
    local table = assert(tollbar.table("1/s burst 10", { capacity = 100 }))
    local five, retry_after, remaining, _, reason = table:take_at(10 * SECOND, "k", 5)
    equal(#five, 32)
    equal(retry_after, 0)
    equal(remaining, 5)
    equal(reason, "admitted")
    assert(table:take_at(12 * SECOND, "k", 7))
    settles(table, 12 * SECOND, five, 0, 3, 0, true)
    local none, wait = table:take_at(12 * SECOND, "k", 5)
    equal(none, false)
    equal(wait, 2)
    settles(table, 12 * SECOND, five, 0, 0, 0, false)
    assert(table:take_at(12 * SECOND, "k", 3))
end)

test("more than the estimate is a debt of one burst at most", function()
    local table = assert(tollbar.table("1/s burst 10", { capacity = 100 }))
    settles(table, 10 * SECOND, table:take_at(10 * SECOND, "k", 2), 25, 0, 5, true)
    equal((table:check_at(20 * SECOND, "k")), false)
    equal((table:check_at(21 * SECOND, "k")), true)
end)

test("by the table's clock", function()
    local table = assert(tollbar.table({ "5/day", "10/day" }, { capacity = 100 }))
    equal((table:settle_in_full(assert(table:take("k", 10, 1)), 4)), 6)
    local back = table:settle(assert(table:take("k", 6, 1)), 0)
    assert(back == 6 or back == 5, back)
    equal(table:allow("k", 5, 1), true)
    assert(table:take("k", 5))
    equal(table:exempt("vip"), true)
    equal((table:settle(assert(table:take("vip", 50)), 90)), 0)
end)

test("another process settles", function()
    local path = "/dev/shm/tollbar-lua-receipts-" .. ffi.C.getpid()
    local good, why = xpcall(function()
        local table = assert(tollbar.open(path, "10/day", { capacity = 100 }))
        local receipt = assert(table:take("k", 10))
        equal(table:allow("k"), false)
        local hex = receipt:gsub(".", function(byte) return ("%02x"):format(byte:byte()) end)
        local program = os.tmpname()
        local file = assert(io.open(program, "w"))
        file:write(([[
            local receipt = ("%s"):gsub("..", function(byte) return string.char(tonumber(byte, 16)) end)
            local table = assert(require("tollbar").open("%s"))
            local given_back, rest, first = assert(table:settle(receipt, 4))
            assert(given_back >= 5 and given_back <= 6 and rest == 0 and first)
        ]]):format(hex, path))
        file:close()
        local status = os.execute("'" .. interpreter .. "' " .. program)
        os.remove(program)
        assert(status == 0 or status == true, status)
        equal(table:allow("k", 5), true)
        equal(select(3, table:settle(receipt, 0)), false)
    end, debug.traceback)
    os.remove(path)
    assert(good, why)
end)

test("receipts of another table and damaged ones", function()
    local table = assert(tollbar.table("1/h burst 10", { capacity = 100 }))
    local stranger = assert(tollbar.table("1/h burst 10", { capacity = 100 }))
    local never, wait = table:take_at(10 * SECOND, "k", 11)
    equal(never, false)
    equal(wait, math.huge)
    fails("the receipt is not of this table", C.TOLLBAR_E_RECEIPT, table:take_at(10 * SECOND, "k", 2 ^ 53 * 1ULL * 8))
    fails("no policy", C.TOLLBAR_E_NO_SUCH_POLICY, table:take("k", 1, 9))
    local ten = assert(table:take_at(10 * SECOND, "k", 10))
    for _, odd in ipairs { ("\0"):rep(32), ("x"):rep(32), (stranger:take("k", 10)) } do
        fails("the receipt is not of this table", C.TOLLBAR_E_RECEIPT, table:settle_at(10 * SECOND, odd, 0))
    end
    for _, length in ipairs { 0, 31, 33 } do
        raises("a receipt is a string of 32 bytes, not of " .. length, function() local _ = table:settle(("x"):rep(length), 0) end)
    end
    for _, odd in ipairs { 5, false, {} } do
        raises("a receipt is a string", function() local _ = table:settle(odd, 0) end)
    end
    raises("a key is a string", function() local _ = table:take(5, 1) end)
    raises("a whole number", function() local _ = table:take("k") end)
    raises("a whole number", function() local _ = table:settle(ten, -1) end)
    raises("a whole number", function() local _ = table:settle_at("now", ten, 1) end)
    equal((table:check_at(10 * SECOND, "k")), false)
    settles(table, 10 * SECOND, ten, 0, 10, 0, true)
    table:close()
    raises("the table is closed", function() local _ = table:take("k", 1) end)
    raises("the table is closed", function() local _ = table:take_at(1, "k", 1) end)
    raises("the table is closed", function() local _ = table:settle(ten, 1) end)
    raises("the table is closed", function() local _ = table:settle_at(1, ten, 1) end)
    raises("the table is closed", function() local _ = table:settle_in_full(ten, 1) end)
end)

harness.finish()
