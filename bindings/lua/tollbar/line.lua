--- Waiting in line in nginx: of the light threads of a worker that wait for what cannot be booked ahead (windows and logs)
-- only the first asks. It sleeps as long as the answer says and asks again; the others sleep until it has left.
-- A light thread that is killed leaves its line without a word. A first one that has not asked so many nanoseconds after the
-- time at which it was to is taken for gone; one that was only late goes on by itself and asks once more than need be.
local GONE = 1000000000ULL

-- Places by who is waited for, in the order of arrival. A limiter that is dropped has nobody who waits for it.
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

--- Whether somebody stands in line for it.
function line.anybody(whom)
    local places = lines[whom]
    return places ~= nil and places[1] ~= nil
end

--- Waits for `whom` until `deadline` in nanoseconds at most, and asks for the first time at `asks`. `ask(left)` says what becomes of
-- the caller, and is nil and a time if it is to ask again then; `refused` is the answer if there is no time left. `sleep_until(time)`
-- sleeps, and `clock()` says what time it is.
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

--- ngx.semaphore, which comes with nginx's Lua module; nil where there is none: then all ask.
function line.semaphore()
    if not tried then
        tried = true
        pcall(require, "ngx.semaphore")
    end
    -- LuaJIT leaves a mark that is no table where a module could not be loaded.
    local loaded = package.loaded["ngx.semaphore"]
    return type(loaded) == "table" and loaded or nil
end

return line
