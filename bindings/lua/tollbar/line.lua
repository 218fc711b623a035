--- Lines of waiting light threads in nginx. Windows and logs cannot book permits ahead. Of a worker's light threads that wait for
-- one of these, only the first in line checks the limit. It sleeps as long as the decision says and checks again. The others sleep
-- until the first has left the line.
-- A killed light thread does not leave its line. If the first has not checked GONE nanoseconds after it should have, the next one
-- removes it. If the first was only late, it goes on by itself and makes one check more than necessary.
local GONE = 1000000000ULL

-- The places of each limit's line, in the order of arrival. The keys are weak, because no light thread waits for a collected limiter.
local lines = setmetatable({}, { __mode = "k" })

local line = {}

local function call_first(places, now)
    local first = places[1]
    if first then
        first.asks = now
        first.bell:post(1)
    end
end

local function leave(places, place, now)
    for i = 1, #places do
        if places[i] == place then
            table.remove(places, i)
            if i == 1 then
                call_first(places, now)
            end
            return
        end
    end
end

--- Whether a light thread waits in the line of this limit.
function line.anybody(whom)
    local places = lines[whom]
    return places ~= nil and places[1] ~= nil
end

--- Waits in the line of the limit `whom` until `deadline` at the latest. The first check is at `asks`. Times are nanoseconds.
-- `ask(left)` checks, and returns the caller's result, or nil and the time of the next check. `refused` is the result if there is no
-- time left. `sleep_until(time)` sleeps, and `clock()` returns the time.
function line.wait(whom, semaphore, asks, deadline, clock, sleep_until, ask, refused)
    local places = lines[whom]
    if not places then
        places = {}
        lines[whom] = places
    end
    local place = { bell = semaphore.new(0), asks = asks }
    places[#places + 1] = place
    while places[1] ~= place do
        local now = clock()
        if now >= deadline then
            leave(places, place, now)
            return refused
        end
        local gone = places[1].asks + GONE
        if now >= gone then
            table.remove(places, 1)
            call_first(places, now)
        else
            local left = (gone < deadline and gone or deadline) - now
            place.bell:wait(math.ceil(tonumber(left) / 1e6) / 1e3)
        end
    end
    while true do
        sleep_until(place.asks)
        local now = clock()
        local outcome, again = ask(now < deadline and deadline - now or 0ULL)
        if outcome ~= nil then
            leave(places, place, now)
            return outcome
        end
        place.asks = again
    end
end

local tried = false

--- ngx.semaphore of nginx's Lua module. Without that module it is nil, and every light thread checks.
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
