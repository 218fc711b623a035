--- Schedules: another policy by time of day and day of the week.
local ffi = require "ffi"
local core = require "tollbar.core"
local values = require "tollbar.cdef"

local lib = core.lib
local Schedule = {}
Schedule.__index = Schedule

local schedule = {}

--- Reads a schedule such as "1000/min, mon-fri 09:00-18:00 100/min, zone Europe/Berlin". tollbar.h
--- ("Schedules") has the grammar. Returns an object, or nil, a message with the column, and the
--- number of the error.
--
-- A limiter or a table follows it if each process sets the policy in force once a second, for
-- example from a timer: `limiter:set_policy(hours:at())`. A policy that is in force already changes
-- nothing.
function schedule.new(text)
    core.text("a schedule", text)
    local buffer, length = ffi.new("char[?]", lib.TOLLBAR_SCHEDULE_TEXT_MAX), ffi.new("size_t[1]")
    local why = core.new_policy_error()
    local code = lib.tollbar_schedule_print(text, #text, buffer, lib.TOLLBAR_SCHEDULE_TEXT_MAX, length, why)
    if code ~= lib.TOLLBAR_ALLOWED then
        return core.wrong_text("schedule", text, code, why)
    end
    return setmetatable({ text = ffi.string(buffer, length[0]) }, Schedule)
end

local until_ns = ffi.new("uint64_t[1]")

--- Returns the text of the policy in force and the time of the next change, or math.huge if there
--- is none. Times are seconds since 1970; without `at` the call reads the system's clock.
function Schedule:at(at)
    local now
    if at == nil then
        now = core.now("wall")
    elseif type(at) == "number" and at >= 0 and at < 2^33 then
        now = ffi.cast("uint64_t", math.floor(at)) * 1000000000ULL + ffi.cast("uint64_t", at % 1 * 1e9)
    else
        error("a number of seconds since 1970 was expected, not " .. tostring(at), 2)
    end
    local spec = core.new_spec()
    local code = lib.tollbar_schedule_at(self.text, #self.text, now, spec, until_ns, nil)
    if code ~= lib.TOLLBAR_ALLOWED then
        return core.failure(code)
    end
    local text = core.print_policy(spec)
    return text, until_ns[0] == values.NO_TIME and math.huge or tonumber(until_ns[0] / 1000000000ULL)
end

--- The canonical text, with the zone's rule in place of its name.
function Schedule:__tostring()
    return self.text
end

return schedule
