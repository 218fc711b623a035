--- Queues of callers that wait in an event loop, such as light threads in nginx, for the permits of
--- a limiter or of a key of a table.
--
-- Only the first caller of a queue holds a booking. If it leaves without its permits, they go back.
-- Where permits cannot be booked, the first caller asks again when one could be free.
--
-- A killed light thread does not leave its queue. The timers of an event loop fire in the order of
-- their times, so a first caller that has not run SLACK after its time is dead. The next caller
-- then removes it and gives its booking back. A dead caller further behind is removed by a caller
-- that has slept twice since SLACK after that one's longest sleep. A caller that was removed
-- although it lives takes the second place again.
local ffi = require "ffi"
local core = require "tollbar.core"

local lib = core.lib
local ALLOWED, DENIED = lib.TOLLBAR_ALLOWED, lib.TOLLBAR_DENIED
local RATE, QUEUE_FULL = lib.TOLLBAR_REASON_RATE, lib.TOLLBAR_REASON_QUEUE_FULL

--- The longest sleep, after which a caller shows that it lives. Nanoseconds, as all times here.
local BEAT = 250000000ULL
local SLACK = 20000000ULL
--- The callers that wait for one limiter, or for the keys of one table, unless its option `waiters`
--- says otherwise.
local MOST = 1024

-- The keys are weak, because no light thread waits for a collected limiter.
local all = setmetatable({}, { __mode = "k" })
local bounds = setmetatable({}, { __mode = "k" })

local line = {}

--- Sets the number of callers that may wait for `whom` at one time.
function line.bound(whom, most)
    bounds[whom] = most
end

local function queues_of(whom)
    local queues = all[whom]
    if not queues then
        queues = { count = 0, of = {} }
        all[whom] = queues
    end
    return queues
end

local function ring(place)
    if place and place.bell then
        place.bell:post(1)
    end
end

--- Takes a caller out of its queue. The booking of a first caller that leaves without its permits
--- goes back.
local function remove(queue, place, now)
    local places = queue.places
    for i = 1, #places do
        if places[i] == place then
            table.remove(places, i)
            queue.count.count = queue.count.count - 1
            if i == 1 then
                queue.asks, queue.called = 0ULL, now
                if queue.booking then
                    queue.booking.cancel()
                    queue.booking = nil
                end
            end
            return
        end
    end
end

--- When the first caller acts.
local function due(queue)
    local at = queue.booking and queue.booking.departs or queue.asks
    return at > queue.called and at or queue.called
end

--- Books for the first caller, or asks, and goes on to the next one if that one leaves. Wakes the
--- caller that became the first one.
local function settle(queue, on, now)
    local before = queue.places[1]
    while queue.places[1] and not queue.booking and now >= queue.asks do
        local first = queue.places[1]
        local code, at, booking = on.ask(first.cost, first.deadline > now and first.deadline - now or 0ULL, now)
        if code ~= nil then
            first.code, first.reason = code, at
            remove(queue, first, now)
            ring(first)
        else
            queue.booking, queue.asks = booking, at
        end
    end
    if queue.places[1] ~= before then
        ring(queue.places[1])
    end
end

--- Ends a caller's wait with `code`, and lets the next one take its turn.
local function finish(queue, place, code, on, now)
    place.code = code
    remove(queue, place, now)
    settle(queue, on, now)
    ring(queue.places[1])
end

--- When a caller of `cost` permits would have them behind all others, or earlier. `pace` is the
--- nanoseconds of a permit, or nil.
local function expected(queue, cost, pace, now)
    local sum, alive = cost, now > 2 * BEAT and now - 2 * BEAT or 0ULL
    for i, other in ipairs(queue.places) do
        -- The first one's permits are booked.
        if (i > 1 or not queue.booking) and other.seen >= alive then
            sum = sum + other.cost
        end
    end
    return due(queue) + (pace and ffi.cast("uint64_t", tonumber(sum) * pace) or 0ULL)
end

--- Removes the callers that have not run for two seconds from all queues, when there is no room for
--- another one.
local function sweep(queues, now)
    for name, queue in pairs(queues.of) do
        for i = #queue.places, 1, -1 do
            if queue.places[i].seen + 8 * BEAT < now then
                remove(queue, queue.places[i], now)
            end
        end
        if not queue.places[1] then
            queues.of[name] = nil
        end
    end
end

--- Looks after the callers of a queue that do not run any more.
local function bury(queue, place, on, now)
    local places = queue.places
    if places[1] and places[1] ~= place and now > due(queue) + SLACK then
        remove(queue, places[1], now)
        settle(queue, on, now)
        ring(places[1] ~= place and places[1])
    end
    for i = #places, 2, -1 do
        if places[i].seen + BEAT + SLACK < place.before then
            remove(queue, places[i], now)
        end
    end
end

--- The place in the queue of a caller that waits. It gets one again if it was taken for dead.
local function index_of(queue, place)
    for i, other in ipairs(queue.places) do
        if other == place then
            return i
        end
    end
    local index = queue.places[1] and 2 or 1
    table.insert(queue.places, index, place)
    queue.count.count = queue.count.count + 1
    return index
end

--- Waits for `cost` permits in the queue `name` of `whom`, until `deadline` at the latest. Returns
--- a code and, of a refusal, the number of its reason. The functions are those of the limiter or
--- key:
--   clock() returns the time. sleep(seconds) sleeps.
--   alone(cost, patience) peeks. It returns a code and a reason if the caller is refused whether or not others wait; else nil, and whether
--   the permits are there.
--   ask(cost, patience, now) books or checks. It returns a code and a reason; or nil, the time of the departure or of the next check, and the booking, if any.
--   pace(now) returns the nanoseconds from the last booking to the permit behind it.
function line.wait(whom, name, on, cost, deadline)
    local queues, semaphore = queues_of(whom), line.semaphore()
    local queue, now = queues.of[name], on.clock()
    local first = queue and queue.places[1]
    local most = bounds[whom] or MOST
    if first or queues.count >= most then
        local code, there = on.alone(cost, deadline - now)
        if code ~= nil then
            return code, there
        end
        if first and now <= due(queue) + SLACK
            and expected(queue, cost, queue.booking and on.pace(now, queue.booking.departs), now) > deadline then
            return DENIED, RATE
        end
        if queues.count >= most then
            sweep(queues, now)
            if queues.count >= most and (first or not there) then
                return DENIED, QUEUE_FULL
            end
        end
        queue = queues.of[name]
    end
    if not queue then
        queue = { places = {}, asks = 0ULL, called = 0ULL, count = queues }
        queues.of[name] = queue
    end
    local place = { cost = cost, deadline = deadline, bell = semaphore and semaphore.new(0), seen = now }
    queue.places[#queue.places + 1] = place
    queues.count = queues.count + 1
    while true do
        place.before, place.seen = place.seen, now
        settle(queue, on, now)
        bury(queue, place, on, now)
        local booking = queue.booking
        if queue.places[1] == place and booking and booking.departs <= now then
            queue.booking = nil
            finish(queue, place, ALLOWED, on, now)
        elseif place.code == nil and now >= deadline then
            finish(queue, place, DENIED, on, now)
        end
        if place.code ~= nil then
            if not queue.places[1] and queues.of[name] == queue then
                queues.of[name] = nil
            end
            return place.code, place.reason or RATE
        end
        local index = index_of(queue, place)
        -- The second caller watches the first one.
        local at = index == 1 and due(queue) or index == 2 and due(queue) + SLACK or deadline
        at = at < deadline and at or deadline
        at = at < now + BEAT and at or now + BEAT
        local seconds = math.ceil(tonumber(at > now and at - now or 1ULL) / 1e6) / 1e3
        if place.bell then
            place.bell:wait(seconds)
        else
            on.sleep(seconds)
        end
        now = on.clock()
    end
end

--- The functions of an `on` for `line.wait`, from the calls of a limiter or of a key: reserve(cost,
--- patience), check(cost), peek(cost) and cancel(reservation). The first writes `reservation`, and
--- the next two write `decision`.
function line.calls(on, decision, reservation)
    function on.alone(cost, patience)
        local code = on.peek(cost)
        if code ~= ALLOWED and (code ~= DENIED or decision.retry_after_ns > patience) then
            return code, decision.reason
        end
        return nil, code == ALLOWED
    end

    function on.ask(cost, patience, now)
        local code = on.reserve(cost, patience)
        if code == ALLOWED then
            if reservation.wait_ns == 0 then
                return code
            end
            local booked = ffi.new("tollbar_reservation", reservation)
            return nil, now + booked.wait_ns, { departs = now + booked.wait_ns, cancel = function() on.cancel(booked) end }
        elseif code == DENIED then
            -- The wait would be too long, or the algorithm cannot book ahead.
            code = on.check(cost)
            if code == DENIED and decision.retry_after_ns <= patience then
                return nil, now + decision.retry_after_ns
            end
        end
        return code, decision.reason
    end

    function on.pace(now, departs)
        return on.peek(1) == DENIED and now + decision.retry_after_ns > departs
            and tonumber(now + decision.retry_after_ns - departs) or nil
    end

    return on
end

--- The end of a patience that begins now.
function line.deadline(now, patience)
    local deadline = now + patience
    return deadline < now and 0xffffffffffffffffULL or deadline
end

--- What a wait returns: true, or false and the reason.
function line.answer(code, reason)
    if code == ALLOWED then
        return true
    end
    return false, core.reasons[reason]
end

local tried = false

--- ngx.semaphore of nginx's Lua module. Without that module it is nil, and a caller learns of its
--- turn at the end of its sleep.
function line.semaphore()
    if not tried then
        tried = true
        pcall(require, "ngx.semaphore")
    end
    -- After a failed load LuaJIT leaves a value in package.loaded that is no table.
    local loaded = package.loaded["ngx.semaphore"]
    return type(loaded) == "table" and loaded or nil
end

return line
