--- Rate limiting in nanoseconds, exact and lock-free: libtollbar for LuaJIT. README.md is the
--- manual.
--
-- A failure at run time (a file that cannot be opened, a policy's text, a full table) returns
-- `nil, message, code`. A fault of the program (a wrong type, an unknown option, a closed handle)
-- raises an error. The first result of a decision is false or nil unless the request may pass, so
-- `if not limiter:allow()` fails closed.
local core = require "tollbar.core"
local adaptive = require "tollbar.adaptive"
local limiter = require "tollbar.limiter"
local hierarchy = require "tollbar.hierarchy"
local in_flight = require "tollbar.in_flight"
local keyed = require "tollbar.table"
local take = require "tollbar.take_many"
local http = require "tollbar.http"
local meter = require "tollbar.meter"
local metrics = require "tollbar.metrics"
local queue = require "tollbar.queue"
local pacing = require "tollbar.pacing"
local route = require "tollbar.route"
local schedule = require "tollbar.schedule"
local send_window = require "tollbar.send_window"
local times = require "tollbar.times"

local tollbar = {
    --- The functions and constants of tollbar.h, for those without a Lua name.
    C = core.lib,
    version = core.version,
    limiter = limiter.new,
    table = keyed.new,
    open = keyed.open,
    hierarchy = hierarchy.new,
    hierarchy_policy = hierarchy.policy,
    in_flight = in_flight.new,
    open_in_flight = in_flight.open,
    adaptive = adaptive.new,
    send_window = send_window.new,
    meter = meter.new,
    pacing = pacing.new,
    route = route.of,
    metrics = metrics,
    times = times,
    queue = queue.new,
    schedule = schedule.new,
    http_check = http.check,
    http_read = http.read,
    take_many = take.many,
    take_many_at = take.many_at,
    --- Makes a lease. The first call loads the module lease, and with it libtollbar-redis.
    lease = function(...)
        return require("tollbar.lease").new(...)
    end,
    --- Makes a limit that Redis decides. The first call loads libtollbar-redis, as for a lease.
    store_limit = function(...)
        return require("tollbar.store_limit").new(...)
    end,
    prefix = core.prefix,
    prefix_of = core.prefix_of,
    now = core.now,
    last_time = core.last_time,
    worst_case = core.worst_case,
    curve = core.curve,
}

return tollbar
