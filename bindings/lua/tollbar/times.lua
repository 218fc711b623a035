--- Times: a histogram of how long calls take, of one in 1,024.
local ffi = require "ffi"
local core = require "tollbar.core"

local lib = core.lib

local Times = {}

--- Returns the results of a call that has begun at `begin`.
local function ended(self, begin, ...)
    lib.tollbar_times_end(self, begin)
    return ...
end

--- Returns `decide`, of whose calls one in 1,024 is measured, the first among them:
--- `local allow = times:of(function(key) return logins:allow(key) end)`. The others add 1 to a
--- counter. A call that raises an error is not measured.
function Times:of(decide)
    if type(decide) ~= "function" then
        error("of takes a function, not a " .. type(decide), 2)
    end
    return function(...)
        return ended(self, lib.tollbar_times_begin(self), decide(...))
    end
end

--- times() is empty. `tollbar.metrics(sources, openmetrics, { api = times })` shows it as
--- tollbar_decision_nanoseconds.
return ffi.metatype("tollbar_times", { __index = Times })
