--- Sleeps in an event loop until a known time.
local core = require "tollbar.core"

local TSC = core.lib.TOLLBAR_CLOCK_TSC

local sleep = {}

--- Returns the function that sleeps: the caller's, or nginx's. nil if the thread itself sleeps.
function sleep.of(own)
    if own ~= nil then
        return own
    end
    -- package.loaded, because strict scripts make reading an unknown global an error.
    local ngx = package.loaded.ngx
    return ngx and ngx.sleep
end

--- Sleeps until a time of the processor's counter. The caller may close the limiter during the
--- sleep, so this function does not use it. nginx's timers have milliseconds and count from the
--- time at which the worker woke up, so a timer may end early, and the function sleeps again.
function sleep.until_time(sleeps, time)
    while true do
        local now = core.clock_now(TSC)
        if now >= time then
            return
        end
        sleeps(math.ceil(tonumber(time - now) / 1e6) / 1e3)
    end
end

return sleep
