--- Sleeping in an event loop for permits that come at a known time.
local core = require "tollbar.core"

local TSC = core.lib.TOLLBAR_CLOCK_TSC

local sleep = {}

--- Returns the function that sleeps: the caller's, or nginx's. nil if the thread itself sleeps.
function sleep.of(own)
    if own ~= nil then
        return own
    end
    -- Not the global: scripts that forbid unknown ones would be stopped by the question.
    local ngx = package.loaded.ngx
    return ngx and ngx.sleep
end

--- Sleeps until that time of the processor's counter: the limiter may be closed meanwhile. nginx's timers are in milliseconds and
-- start from the time at which the worker woke up, so one may end early.
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
