--- Permits in flight: limits, releases, files, and a child that is killed.
local harness = require "harness"
local tollbar = require "tollbar"
local ffi = require "ffi"
local C = tollbar.C
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails

ffi.cdef [[
int fork(void);
int kill(int pid, int signal);
int pause(void);
void _exit(int status);
int waitpid(int pid, int *status, int options);
int usleep(unsigned microseconds);
]]

test("a key has its limit", function()
    local table = assert(tollbar.in_flight({ capacity = 100 }))
    equal(table:join(), true)
    local tickets = {}
    for i = 1, 3 do
        tickets[i] = assert(table:acquire("k", 3))
    end
    equal(table:acquire("k", 3), false)
    equal(table:count("k"), 3)
    equal(table:release(tickets[1]), true)
    equal(table:acquire("k", 2), false)
    equal(table:release(tickets[2]), true)
    equal(table:release(tickets[3]), true)
    equal(table:release(tickets[3]), false)
    equal(table:release(0), false)
    equal(table:count("k"), 0)
    equal(tostring(table), "tollbar.in_flight")
    table:close()
    table:close()
    equal(tostring(table), "tollbar.in_flight, closed")
    raises("closed", function()
        table:acquire("k", 1)
    end)
    raises("closed", function()
        table:release(1)
    end)
    raises("closed", function()
        table:count("k")
    end)
end)

test("what a killed child held comes back", function()
    local table = assert(tollbar.in_flight({ capacity = 100, shared = true }))
    local mine = assert(table:acquire("k", 3))
    local child = ffi.C.fork()
    if child == 0 then
        if table:release(mine) == false and table:acquire("k", 3) and table:acquire("k", 3) then
            ffi.C.pause()
        end
        ffi.C._exit(1)
    end
    local waited = 0
    while table:count("k") < 3 do
        ffi.C.usleep(1000)
        waited = waited + 1
        assert(waited < 60000, "the child acquires nothing")
    end
    equal(table:acquire("k", 3), false)
    equal(ffi.C.kill(child, 9), 0)
    local tries, ticket = 0, false
    while not ticket do
        ffi.C.usleep(1000)
        tries = tries + 1
        assert(tries < 30000, "it did not come back")
        ticket = table:acquire("k", 3)
    end
    equal(table:count("k"), 2)
    equal(ffi.C.waitpid(child, nil, 0), child)
    equal(table:release(mine), true)
    equal(table:release(ticket), true)
end)

test("in a file, and errors", function()
    local path = os.tmpname()
    os.remove(path)
    fails("cannot be opened", C.TOLLBAR_E_OPEN, tollbar.open_in_flight(path))
    local first = assert(tollbar.open_in_flight(path, { capacity = 100 }))
    local second = assert(tollbar.open_in_flight(path))
    assert(first:acquire("k", 1))
    equal(second:acquire("k", 1), false)
    fails("another capacity", C.TOLLBAR_E_OTHER_CAPACITY, tollbar.open_in_flight(path, { capacity = 1000 }))
    os.remove(path)
    fails("capacity", C.TOLLBAR_E_CAPACITY, tollbar.in_flight({ capacity = 0 }))
    local full = assert(tollbar.in_flight({ capacity = 1 }))
    local ticket, message, code
    for key = 1, 100 do
        ticket, message, code = full:acquire(tostring(key), 1)
        if not ticket then
            break
        end
    end
    equal(ticket, nil)
    assert(message:find("no slot"), message)
    equal(code, C.TOLLBAR_E_IN_FLIGHT_FULL)
    raises("no option nothing", function()
        tollbar.in_flight({ capacity = 10, nothing = 1 })
    end)
end)

harness.finish()
