--- Adaptive: a limit on the requests that a server has at one time, learned from their latency.
--- Experimental: a minor version may change it.
local ffi = require "ffi"
local core = require "tollbar.core"

local lib = core.lib
local failure = core.failure
local ALLOWED, DENIED, TICKET = lib.TOLLBAR_ALLOWED, lib.TOLLBAR_DENIED, lib.TOLLBAR_E_TICKET

local OUTCOMES = { answered = lib.TOLLBAR_OUTCOME_ANSWERED, dropped = lib.TOLLBAR_OUTCOME_DROPPED, ignored = lib.TOLLBAR_OUTCOME_IGNORED }

local ticket = ffi.new("tollbar_ticket[1]")
local new_options, new_state = core.struct("tollbar_adaptive_options"), core.struct("tollbar_adaptive_state")
local seen = new_state()

local Adaptive = {}
Adaptive.__index = Adaptive

local function acquired(code)
    if code == ALLOWED then
        return ticket[0]
    end
    if code == DENIED then
        return false
    end
    return failure(code, "the table")
end

local function released(code)
    if code == ALLOWED or code == TICKET then
        return code == ALLOWED
    end
    return failure(code, "the table")
end

local function nanoseconds(seconds, what, level)
    if type(seconds) ~= "number" or not (seconds >= 0 and seconds < 1e9) then
        error(what .. " is a number of seconds, not " .. tostring(seconds), level or 3)
    end
    return ffi.cast("uint64_t", seconds * 1e9 + 0.5)
end

local function outcome_of(name)
    -- A tail call has no level of its own.
    return core.choice("an outcome", name or "answered", OUTCOMES, 3)
end

--- Takes a permit and returns its ticket. Returns false if as many permits as the limit are in
--- flight. No call waits.
--
--     local ticket = server:acquire()
--     if not ticket then return overloaded() end
--     local begun = ngx.now()
--     local answer = ask()
--     server:release(ticket, ngx.now() - begun, answer and "answered" or "dropped")
function Adaptive:acquire()
    return acquired(lib.tollbar_adaptive_acquire(self.limit_of, ticket))
end

--- Releases a permit, once. The limit learns from the latency in seconds and from the outcome:
--- "answered" (the default), "dropped" if the server refused or the request timed out, "ignored" if
--- the request says nothing about the server. Returns false if no permit is in flight.
function Adaptive:release(of, latency, outcome)
    return released(lib.tollbar_adaptive_release(self.limit_of, of, outcome_of(outcome), nanoseconds(latency, "a latency")))
end

--- Takes a permit of a key of an in-flight table under this limit. The table counts the permits of
--- all its processes.
function Adaptive:acquire_key(in_flight, key)
    local data, length = core.key(key)
    return acquired(lib.tollbar_adaptive_acquire_key(self.limit_of, in_flight.handle, data, length, ticket))
end

--- Releases a permit of acquire_key, as release does.
function Adaptive:release_key(in_flight, key, of, latency, outcome)
    local data, length = core.key(key)
    local number, ns = outcome_of(outcome), nanoseconds(latency, "a latency")
    return released(lib.tollbar_adaptive_release_key(self.limit_of, in_flight.handle, data, length, of, number, ns))
end

--- Returns the limit, and the permits of acquire in flight.
function Adaptive:read()
    local code = lib.tollbar_adaptive_read(self.limit_of, seen)
    if code ~= ALLOWED then
        return failure(code)
    end
    return seen.limit, tonumber(seen.in_flight)
end

local KNOWN = { initial = true, least = true, most = true, timeout = true, window = true }
local adaptive = {}

--- adaptive({ initial = 20, least = 1, most = 1000 }) makes a limit of this Lua state. With a
--- `timeout` in seconds the algorithm is AIMD, otherwise Netflix's Gradient2. All releases of a
--- `window`, in seconds (default 0.1), are one sample; with 0 each release is one.
function adaptive.new(options)
    options = core.options(options, KNOWN)
    local o = new_options()
    o.algorithm = options.timeout and lib.TOLLBAR_ADAPTIVE_AIMD or lib.TOLLBAR_ADAPTIVE_GRADIENT2
    o.initial, o.least = core.number(options.initial or 20), core.number(options.least or 1)
    o.most = core.number(options.most or 1000)
    o.timeout_ns = options.timeout and nanoseconds(options.timeout, "timeout") or 0
    o.window_ns = nanoseconds(options.window or 0.1, "window")
    local self = setmetatable({ limit_of = ffi.new("tollbar_adaptive") }, Adaptive)
    local code = lib.tollbar_adaptive_init(self.limit_of, o)
    if code ~= ALLOWED then
        return failure(code, "the limit")
    end
    return self
end

return adaptive
