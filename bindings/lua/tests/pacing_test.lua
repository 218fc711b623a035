--- Pacing of a client: turns and pauses on the caller's clock, and a client that settles at its
--- server's rate.
local harness = require "harness"
local tollbar = require "tollbar"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails
local C = tollbar.C

local SEC, MS = 1e9, 1e6

--- A pacing on a clock that the test moves.
local function paced(options)
    local now = { 0 }
    options.clock = function() return now[1] end
    return assert(tollbar.pacing(options)), now
end

test("turns and pauses", function()
    local pace, now = paced { most = 10, burst = 2, pause_most = 60 }
    equal(pace:state("a"), false)
    local turns = {}
    for n = 1, 4 do
        turns[n] = assert(pace:turn("a"))
    end
    for n, wait in ipairs { 0, 0, 0.1, 0.2 } do
        equal(pace:wait(turns[n]), wait)
    end
    equal(pace:leave(turns[3]), true)
    equal(pace:wait(turns[4]), 0.1)
    equal(pace:respond(turns[1], 429, { ["retry-AFTER"] = "7", ["Content-Type"] = "text/plain" }),
          true)
    now[1] = SEC
    equal(pace:state("a").paused, 6)
    equal(pace:wait(turns[4]), 6)
    now[1] = 7 * SEC
    equal(pace:wait(turns[4]), 0)
    pace:respond(turns[2], 403, { ["X-RateLimit-Remaining"] = { "0" },
                                  ["X-RateLimit-Reset"] = 999999 })
    equal(pace:state("a").paused, 60)
    equal(pace:wait(pace:turn("b")), 0)
    -- A header as text.
    pace:respond(pace:turn("b"), 503, "Server: x\r\nRetry-After: 5\r\n")
    equal(pace:state("b").paused, 5)
    equal(tostring(pace), "tollbar.pacing")
end)

--- Runs 16 workers that send as often as the pace allows to a server that admits 50 a second, for
--- two minutes of the test's clock. Returns the accepted and the refused requests of each second.
local function run(options)
    local pace, now = paced(options)
    local server = assert(tollbar.limiter("50/s"))
    local accepted, refused, workers = {}, {}, {}
    for second = 0, 119 do
        accepted[second], refused[second] = 0, 0
    end
    local function sleep(seconds)
        coroutine.yield(now[1] + math.ceil(seconds * 1e9))
    end
    local function work()
        while true do
            local ticket = pace:acquire("http://api", sleep)
            local passed, second = server:allow_at(now[1]), math.floor(now[1] / SEC)
            local counted = passed and accepted or refused
            counted[second] = counted[second] + 1
            sleep(0.02)
            pace:respond(ticket, passed and 200 or 429, {})
        end
    end
    for n = 1, 16 do
        workers[n] = { run = coroutine.create(work), at = n * MS / 10 }
    end
    while true do
        local first = workers[1]
        for n = 2, 16 do
            first = workers[n].at < first.at and workers[n] or first
        end
        if first.at >= 120 * SEC then
            return accepted, refused
        end
        now[1] = first.at
        local good, at = coroutine.resume(first.run)
        assert(good, at)
        first.at = at
    end
end

-- S29: the last minute, in each ten seconds of it: neither more than the server's rate and 5 %, nor
-- less.
for name, options in pairs { cubic = {}, aimd = { algorithm = "aimd", increase = 5 } } do
    test("a client of 100/s settles at its server's 50/s, " .. name, function()
        options.most = 100
        local accepted, refused = run(options)
        for first = 60, 110 do
            local good, bad = 0, 0
            for second = first, first + 9 do
                good, bad = good + accepted[second], bad + refused[second]
            end
            assert(good >= 475 and good + bad <= 525,
                   first .. " s: " .. good .. " accepted, " .. bad .. " refused")
        end
    end)
end

test("acquire sleeps in the thread, and gives the turn of a failed sleep back", function()
    local pace = assert(tollbar.pacing { most = 50 })
    local begun = tollbar.now("monotonic")
    for _ = 1, 3 do
        assert(pace:acquire("a"))
    end
    -- The first turn comes at once, and two more 20 ms after each other. No upper bound: a busy
    -- machine wakes a thread late.
    assert(tollbar.now("monotonic") - begun >= 40 * MS)
    local still = paced { most = 1 }
    assert(still:acquire("a"))
    local good, why = pcall(still.acquire, still, "a", function() error("no sleep here", 0) end)
    equal(good, false)
    equal(why, "no sleep here")
    equal(still:state("a").waiting, 0)
    equal(still:wait(still:turn("a")), 1)
end)

test("what is wrong is said", function()
    for _, options in ipairs { { least = 0 }, { least = 2, most = 1 }, { most = 1e10 },
                               { burst = 0 } } do
        fails("the pacing: ", C.TOLLBAR_E_OUT_OF_RANGE, tollbar.pacing(options))
    end
    fails("the pacing: ", C.TOLLBAR_E_CAPACITY, tollbar.pacing { hosts = 0 })
    raises("algorithm cannot be tcp", function() tollbar.pacing { algorithm = "tcp" } end)
    raises("increase belongs to the algorithm aimd", function() tollbar.pacing { increase = 5 } end)
    raises("increase belongs to the algorithm aimd",
           function() tollbar.pacing { algorithm = "aimd" } end)
    raises("least is a number", function() tollbar.pacing { least = -1 } end)
    raises("no option rate", function() tollbar.pacing { rate = 5 } end)
    local pace = assert(tollbar.pacing())
    raises("a host is a string", function() pace:turn() end)
    raises("a ticket of turn", function() pace:wait(5) end)
    raises("a ticket of turn", function() pace:respond(nil, 200) end)
    raises("a header is a table", function() pace:respond(pace:turn("a"), 200, 5) end)
    fails("out of range", C.TOLLBAR_E_OUT_OF_RANGE, pace:respond(pace:turn("a"), 65536))
    pace:close()
    pace:close()
    equal(tostring(pace), "tollbar.pacing, closed")
    raises("closed", function() pace:turn("a") end)
end)

harness.finish()
