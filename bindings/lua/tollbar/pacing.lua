--- Pacing of a client's requests: it finds the rate that each server accepts. Experimental: a minor
--- version may change it.
local ffi = require "ffi"
local core = require "tollbar.core"
local sleeping = require "tollbar.sleep"

local lib = core.lib
local failure, seconds = core.failure, core.seconds
local ALLOWED, DENIED = lib.TOLLBAR_ALLOWED, lib.TOLLBAR_DENIED
local MONOTONIC, WALL = lib.TOLLBAR_CLOCK_MONOTONIC, lib.TOLLBAR_CLOCK_WALL

-- Under a name of this module's own, because the program may declare nanosleep, too.
ffi.cdef [[
typedef struct { long seconds, nanoseconds; } tollbar_lua_time;
int tollbar_lua_nanosleep(const tollbar_lua_time *wanted,
                          tollbar_lua_time *left) __asm__("nanosleep");
]]

local wait = ffi.new("uint64_t[1]")
local seen = core.struct("tollbar_pacing_state")()
local is_ticket = ffi.typeof("tollbar_pacing_ticket")

-- A caller with a longer wait wakes and asks again.
local SLEEP_MOST = 3600

--- The sleep of a thread without an event loop. A signal may end it early: acquire asks again.
local function sleep_thread(duration)
    local whole = math.floor(duration)
    ffi.C.tollbar_lua_nanosleep(ffi.new("tollbar_lua_time", whole,
                                        math.floor((duration - whole) * 1e9)), nil)
end

local function ticket_of(value, level)
    if not ffi.istype(is_ticket, value) then
        error("a ticket of turn or acquire was expected", (level or 2) + 1)
    end
    return value
end

local Pacing = {}
Pacing.__index = Pacing

function Pacing.__tostring(self)
    return self.handle == nil and "tollbar.pacing, closed" or "tollbar.pacing"
end

--- Takes the host's next turn and returns its ticket. `host` is any text that names what has one
--- limit, such as "https://api.example.com". Ask `wait` until it returns 0, send the request, and
--- call `respond`. If the request is not sent, call `leave`.
function Pacing:turn(host)
    core.text("a host", host)
    local ticket = is_ticket()
    local code = lib.tollbar_pacing_acquire_at(self.handle, host, #host, self.clock(), ticket)
    if code ~= ALLOWED then
        return failure(code, "the pacing")
    end
    return ticket
end

--- Returns the seconds to sleep before the next call of `wait`. 0: the request may be sent now.
function Pacing:wait(ticket)
    local code = lib.tollbar_pacing_wait_at(self.handle, ticket_of(ticket), self.clock(), wait)
    if code ~= ALLOWED and code ~= DENIED then
        return failure(code, "the pacing")
    end
    return seconds(wait[0])
end

--- Gives a turn back before its request was sent. The callers behind it move up.
function Pacing:leave(ticket)
    local code = lib.tollbar_pacing_leave_at(self.handle, ticket_of(ticket), self.clock())
    if code ~= ALLOWED then
        return failure(code, "the pacing")
    end
    return true
end

--- Sleeps until a ticket's request may be sent. An error of the sleep, such as that of a light
--- thread which may not sleep, gives the turn back.
local function sleep_until(self, ticket, sleep)
    while true do
        local left, message, code = self:wait(ticket)
        if left == 0 or left == nil then
            return left and ticket, message, code
        end
        local slept, why = pcall(sleep, math.min(left, SLEEP_MOST))
        if not slept then
            self:leave(ticket)
            error(why, 0)
        end
    end
end

--- Takes the host's next turn, sleeps until the request may be sent, and returns the ticket for
--- `respond`. In nginx other requests go on during the sleep (ngx.sleep). Elsewhere the thread
--- sleeps, or the event loop's `sleep`, a function of seconds.
--
--     local ticket = pace:acquire("https://api.example.com")
--     local answer = http:request_uri("https://api.example.com/orders")
--     if answer then pace:respond(ticket, answer.status, answer.headers) end
function Pacing:acquire(host, sleep)
    local ticket, message, code = self:turn(host)
    if not ticket then
        return nil, message, code
    end
    return sleep_until(self, ticket, sleeping.of(sleep) or sleep_thread)
end

local function is_about_limits(name)
    name = name:lower()
    return name == "retry-after" or name:find("^ratelimit") or name:find("^x%-ratelimit%-")
        or name:find("^x%-rate%-limit%-")
end

--- Returns the lines of a header: a text, or a table of names and values. A value may be an array.
local function lines_of(header)
    if type(header) == "string" then
        return header
    end
    if header ~= nil and type(header) ~= "table" then
        error("a header is a table of names and values, or a string, not " .. type(header), 3)
    end
    local lines = {}
    for name, value in pairs(header or {}) do
        if type(name) == "string" and is_about_limits(name) then
            for _, one in ipairs(type(value) == "table" and value or { value }) do
                lines[#lines + 1] = name .. ": " .. tostring(one)
            end
        end
    end
    return table.concat(lines, "\n")
end

--- The host has answered a ticket's request with an HTTP status and a header. The rate falls after
--- 429, after 503 with Retry-After, and after 403 with no permit left; other answers raise it.
--- After Retry-After no caller sends to the host until that time. A request that got no answer
--- needs no call.
function Pacing:respond(ticket, status, header)
    local lines = lines_of(header)
    local code = lib.tollbar_pacing_respond_at(self.handle, ticket_of(ticket), core.number(status),
                                               lines, #lines,
        core.clock_now(WALL), self.clock())
    if code ~= ALLOWED then
        return failure(code, "the pacing")
    end
    return true
end

--- Returns a table of the host: `rate` and `measured` in requests per second, `waiting` callers,
--- and the seconds that it is `paused`. Returns false if the host is unknown or forgotten.
function Pacing:state(host)
    core.text("a host", host)
    local code = lib.tollbar_pacing_read_at(self.handle, host, #host, self.clock(), seen)
    if code == lib.TOLLBAR_NO then
        return false
    end
    if code ~= lib.TOLLBAR_YES then
        return failure(code, "the pacing")
    end
    return {
        rate = tonumber(seen.rate) / 1e6,
        measured = tonumber(seen.measured) / 1e6,
        waiting = tonumber(seen.waiting),
        paused = seconds(seen.paused_ns),
    }
end

--- Frees the rates.
function Pacing:close()
    if self.handle ~= nil then
        lib.tollbar_pacing_free(ffi.gc(self.handle, nil))
        self.handle = nil
    end
end

local KNOWN = { algorithm = true, increase = true, least = true, most = true, burst = true,
                pause_most = true, hosts = true, clock = true }
local ALGORITHMS = { cubic = lib.TOLLBAR_PACING_CUBIC, aimd = lib.TOLLBAR_PACING_AIMD }
local new_options = core.struct("tollbar_pacing_options")

local function scaled(options, name, default, unit)
    local value = options[name]
    if value == nil then
        value = default
    end
    if type(value) ~= "number" or not (value >= 0 and value * unit < 2^63) then
        error(name .. " is a number from 0 on, not " .. tostring(value), 3)
    end
    return ffi.cast("uint64_t", value * unit + 0.5)
end

local pacing = {}

--- pacing { least = 0.5, most = 1e6 } makes the pacing of a client; one serves all light threads of
--- a worker. Rates are requests per second: `least` is the floor of each host, `most` its ceiling.
--- `burst` requests may be sent at once after an idle time. The `algorithm` is "cubic" or "aimd",
--- which needs `increase`, the rise in a second. No answer stops a host for more than `pause_most`
--- seconds, 300 by default. If there are more than `hosts` hosts, 256 by default, the one that is
--- idle the longest is forgotten. `clock` is a function that returns nanoseconds which do not go
--- back.
function pacing.new(options)
    options = core.options(options, KNOWN)
    local o, out = new_options(), ffi.new("tollbar_pacing *[1]")
    o.algorithm = core.choice("algorithm", options.algorithm or "cubic", ALGORITHMS)
    if (o.algorithm == lib.TOLLBAR_PACING_AIMD) ~= (options.increase ~= nil) then
        error("increase belongs to the algorithm aimd, which needs it", 2)
    end
    o.least, o.most = scaled(options, "least", 0.5, 1e6), scaled(options, "most", 1e6, 1e6)
    o.increase = scaled(options, "increase", 0, 1e6)
    o.pause_most_ns = scaled(options, "pause_most", 300, 1e9)
    o.burst = core.number(options.burst or 1)
    local code = lib.tollbar_pacing_new(o, core.number(options.hosts or 256), out)
    if code ~= ALLOWED then
        return failure(code, "the pacing")
    end
    local self = { handle = ffi.gc(out[0], lib.tollbar_pacing_free) }
    self.clock = options.clock or function()
        return core.clock_now(MONOTONIC)
    end
    return setmetatable(self, Pacing)
end

return pacing
