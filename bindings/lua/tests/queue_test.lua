--- Queues: order, pace, patience, the spare, and light threads that offer, take, cancel and are
--- killed.
local harness = require "harness"
local tollbar = require "tollbar"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails
local MS = 1000000

test("eleven of fifteen leave in order", function()
    local queue = assert(tollbar.queue("10/s algo pacer", 10))
    local taken_in = 0
    for n = 0, 14 do
        local ticket, why = queue:offer_at(0, n)
        taken_in = taken_in + (ticket and 1 or 0)
        equal(why, n > 10 and "queue full" or nil)
    end
    equal(taken_in, 11)
    for n = 0, 10 do
        equal(tonumber(queue:next_departure_at(n * 100 * MS)), n * 100 * MS)
        equal(queue:take_at(n * 100 * MS), n)
        equal(queue:take_at(n * 100 * MS + 99 * MS), nil)
    end
    equal(queue:next_departure_at(2000 * MS), nil)
end)

-- Takes what leaves up to a time, and adds its times to a list.
local function take_until(queue, clock, until_, to)
    while true do
        local at = queue:next_departure_at(clock)
        if at == nil or at > until_ then
            return until_
        end
        clock = tonumber(at)
        equal(queue:take_at(clock) ~= nil, true)
        to[#to + 1] = clock
    end
end

-- Requests that come too early are dropped, delayed, or kept in a queue. With the same patience the last two admit the
-- same ones at the same times, and without patience so does the first.
test("S19: drivers admit the same", function()
    local before = 0
    for _, waiting in ipairs { 0, 1, 3, 20 } do
        local policy = "10/s algo pacer"
        local delays, drops = assert(tollbar.limiter(policy)), assert(tollbar.limiter(policy))
        local queue = assert(tollbar.queue(policy, math.max(waiting, 1)))
        local delayed, dropping, queued = {}, {}, {}
        local now, clock = 0, 0
        for n = 0, 1999 do
            now = now + n * n * 7919 % (math.floor(n / 50) % 2 == 0 and 120 or 150) * MS
            local _, booked = delays:reserve_at(now, waiting / 10)
            delayed[#delayed + 1] = booked and tonumber(booked.departs_ns)
            dropping[#dropping + 1] = drops:allow_at(now) and now or nil
            clock = take_until(queue, clock, now, queued)
            queue:offer_at(now, n)
            clock = take_until(queue, clock, now, queued)
        end
        take_until(queue, clock, now + 3600 * 1000 * MS, queued)
        equal(table.concat(delayed, " "), table.concat(waiting > 0 and queued or dropping, " "))
        equal(#delayed > before, true)
        before = #delayed
    end
end)

-- The real clock, with a lower bound only: a busy machine may wake a sleeper late.
test("patience ends in a refusal", function()
    local queue = assert(tollbar.queue("10/h algo pacer", 10))
    for n = 0, 10 do
        assert(queue:offer(n))
    end
    local began = tollbar.now()
    local ticket, why = queue:offer(11, 0.01)
    equal(ticket, false)
    equal(why, "queue full")
    equal(tonumber(tollbar.now() - began) >= 10 * MS - MS, true, "refused early")
    equal(queue:length(), 11)
    equal(queue:take(), 0)
    equal(queue:take(0.001), nil)
    equal(queue:next_departure() > 0, true)
    -- Ten wait, and none may leave now.
    equal(queue:offer(11), false)
    equal(queue:drain(), 1)
    assert(queue:offer(11))
end)

test("the spare holds what overflows", function()
    local queue = assert(tollbar.queue("10/s algo pacer", 2, { spare = 2 }))
    for n = 0, 5 do
        local ticket = queue:offer_at(0, n)
        equal(ticket and tonumber(ticket.spare), ({ [0] = 0, 0, 0, 1, 2, false })[n])
    end
    for n = 0, 4 do
        equal(queue:take_at(n * 100 * MS), n)
    end
    equal(queue:length(), 0)
end)

test("an item is any value but nil, and a cancelled one comes back", function()
    local queue = assert(tollbar.queue("10/s algo pacer", 5))
    local item = { 1 }
    local ticket = queue:offer(item)
    assert(queue:offer(false))
    equal(queue:cancel(ticket), item)
    equal(queue:cancel(ticket), nil)
    equal(queue:take(), false)
    assert(queue:offer("c"))
    equal(queue:drain(), "c")
    equal(queue:drain(), nil)
    equal(next(queue.items), nil, "the queue keeps no item that has left")
    raises("an item is a value other than nil", function() queue:offer(nil) end)
end)

test("a closed queue gives what it has", function()
    local queue = assert(tollbar.queue("1000/s burst 9", 5))
    assert(queue:offer "a")
    queue:close()
    fails("closed", tollbar.C.TOLLBAR_E_CLOSED, queue:offer("b"))
    equal(queue:take(60), "a")
    fails("closed", tollbar.C.TOLLBAR_E_CLOSED, queue:take(60))
end)

test("what cannot be a queue", function()
    fails("capacity", tollbar.C.TOLLBAR_E_CAPACITY, tollbar.queue("10/s", 0))
    fails("column 4", tollbar.C.TOLLBAR_E_SYNTAX, tollbar.queue("10/x", 5))
    fails("one state word", tollbar.C.TOLLBAR_E_NOT_ONE_WORD, tollbar.queue("10/s algo sliding-log", 5))
    raises("no option room", function() local _ = tollbar.queue("10/s", 5, { room = 5 }) end)
    equal(select("#", pcall(tollbar.queue, "10/s", 5, { waiters = -1 })), 2)
end)

--- Runs functions as light threads in turns. A nap lasts until the other threads have had a turn.
--- A thread that is killed at a nap never runs again.
local function run(functions, is_killed)
    local threads = {}
    for _, f in ipairs(functions) do
        threads[#threads + 1] = coroutine.create(f)
    end
    while #threads > 0 do
        for index = #threads, 1, -1 do
            local good, why = coroutine.resume(threads[index], function() coroutine.yield() end)
            assert(good, why)
            if coroutine.status(threads[index]) == "dead" or is_killed() then
                table.remove(threads, index)
            end
        end
    end
end

test("A4: more callers than `waiters` do not wait for room", function()
    for _, waiters in ipairs { 1, 3 } do
        local queue = assert(tollbar.queue("0/s", 1, { waiters = waiters }))
        assert(queue:offer "first")
        local slept, refused, functions = 0, 0, {}
        for n = 1, 7 do
            functions[n] = function(nap)
                local has_slept = false
                local ticket, why = queue:offer(n, 0.05, function()
                    has_slept = true
                    nap()
                end)
                equal(ticket, false)
                equal(why, "queue full")
                slept, refused = slept + (has_slept and 1 or 0), refused + (has_slept and 0 or 1)
            end
        end
        run(functions, function() return false end)
        equal(slept, waiters)
        equal(refused, 7 - waiters)
        -- Whoever has given up leaves a place.
        local again = false
        queue:offer("again", 0.01, function() again = true end)
        equal(again, true)
    end
end)

-- Eight producers and eight takers. A killed producer has offered the item that it waits with, or
-- has not; a killed taker has no item, because only a nap ends a thread.
test("light threads lose nothing, also if some are killed", function()
    local queue = assert(tollbar.queue("1000000/s burst 4", 3, { spare = 3 }))
    math.randomseed(7)
    local accepted, gone, refused, overflowed, killed = {}, {}, 0, 0, 0
    local order = {}
    local functions = {}
    for producer = 1, 8 do
        functions[#functions + 1] = function(nap)
            for n = 1, 300 do
                local item = producer * 1000 + n
                local ticket, why = queue:offer(item, math.random() < 0.5 and 0.002 or 0, nap)
                if ticket then
                    -- Four may leave at once, and six wait.
                    equal(queue:length() <= 10, true, "taken in though there was no room")
                    accepted[tonumber(ticket.number)] = item
                    overflowed = overflowed + (ticket.spare > 0 and 1 or 0)
                    if math.random() < 0.1 and queue:cancel(ticket) then
                        gone[item] = (gone[item] or 0) + 1
                    end
                else
                    equal(why, "queue full")
                    equal(queue:length() >= 6, true, "refused though there was room")
                    refused = refused + 1
                end
                nap()
            end
        end
    end
    for _ = 1, 8 do
        functions[#functions + 1] = function(nap)
            while true do
                local item, why = queue:take(0.002, nap)
                if item then
                    gone[item] = (gone[item] or 0) + 1
                    order[#order + 1] = item
                elseif why then
                    return
                end
                nap()
            end
        end
    end
    local turns = 0
    run(functions, function()
        turns = turns + 1
        if turns == 20000 then
            queue:close()
        end
        if turns == 500 or turns == 901 or turns == 5003 then
            killed = killed + 1
            return true
        end
    end)
    local item = queue:drain()
    while item do
        gone[item] = (gone[item] or 0) + 1
        order[#order + 1] = item
        item = queue:drain()
    end
    local count, place = 0, {}
    for number, of in pairs(accepted) do
        count = count + 1
        place[of] = number
        equal(gone[of], 1, "item " .. of)
        gone[of] = nil
    end
    -- An item of a killed producer may have been accepted without a note.
    for of, times in pairs(gone) do
        equal(times, 1, "item " .. of)
    end
    local last = -1
    for _, of in ipairs(order) do
        if place[of] then
            equal(place[of] > last, true, "in the order of acceptance")
            last = place[of]
        end
    end
    equal(killed, 3)
    equal(count > 500 and refused > 0 and overflowed > 0, true, count .. " " .. refused .. " " .. overflowed)
    equal(queue:length(), 0)
end)

-- nginx's semaphores in the place of a beat: the bell rings, so that no caller sleeps on.
test("in nginx an offer wakes a taker, and a take a producer", function()
    local bells, killed = 0, nil
    package.loaded.ngx = { sleep = function() error("a caller sleeps without a bell") end }
    package.loaded["ngx.semaphore"] = {
        new = function()
            local bell = { posted = 0, waiting = nil }
            function bell.post(self, n)
                bells = bells + 1
                self.posted = self.posted + n
            end
            function bell.wait(self, seconds)
                equal(seconds > 100, true, "until the deadline")
                self.waiting = coroutine.running()
                while self.posted == 0 do
                    coroutine.yield()
                end
                self.posted, self.waiting = self.posted - 1, nil
                return true
            end
            -- As nginx's: the number of those who wait is negative, and the killed do not wait.
            function bell.count(self)
                return self.waiting and self.waiting ~= killed and -1 or self.posted
            end
            return bell
        end,
    }
    local queue = assert(tollbar.queue("1000000/s burst 1", 1))
    local log = {}
    local taker = coroutine.create(function() log[#log + 1] = queue:take(3000) end)
    assert(coroutine.resume(taker))
    assert(queue:offer "a")
    assert(coroutine.resume(taker))
    equal(log[1], "a")
    -- Under a limit of 0 one waits, and none leaves by itself.
    local full = assert(tollbar.queue("0/s", 1))
    assert(full:offer "b")
    local producer = coroutine.create(function() log[#log + 1] = full:offer("c", 3000) end)
    assert(coroutine.resume(producer))
    equal(#log, 1)
    equal(full:drain(), "b")
    assert(coroutine.resume(producer))
    equal(tonumber(log[2].number), 1)
    local waits = coroutine.create(function() log[#log + 1] = { full:take(3000) } end)
    assert(coroutine.resume(waits))
    equal(full:drain(), "c")
    full:close()
    assert(coroutine.resume(waits))
    equal(log[3][3], tollbar.C.TOLLBAR_E_CLOSED)
    equal(bells, 3)
    -- One may wait. A killed one does not.
    local one = assert(tollbar.queue("0/s", 1, { waiters = 1 }))
    assert(one:offer "d")
    local function offers(item)
        return coroutine.create(function() log[#log + 1] = { one:offer(item, 3000) } end)
    end
    local first, second, third = offers "e", offers "f", offers "g"
    assert(coroutine.resume(first))
    assert(coroutine.resume(second))
    equal(log[4][2], "queue full")
    killed = first
    assert(coroutine.resume(third))
    equal(#log, 4)
    equal(one:drain(), "d")
    assert(coroutine.resume(third))
    equal(tonumber(log[5][1].number), 1)
    package.loaded.ngx, package.loaded["ngx.semaphore"] = nil, nil
end)

harness.finish()
