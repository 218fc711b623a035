--- Meter: the colour of packets by RFC 2697 (one rate) or RFC 2698 (two rates).
local ffi = require "ffi"
local core = require "tollbar.core"

local lib = core.lib
local count, failure = core.count, core.failure
local ALLOWED = lib.TOLLBAR_ALLOWED

local COLORS = { green = lib.TOLLBAR_COLOR_GREEN, yellow = lib.TOLLBAR_COLOR_YELLOW,
                 red = lib.TOLLBAR_COLOR_RED }
local NAMES = {}
for name, color in pairs(COLORS) do
    NAMES[color] = name
end

-- The numbers of a meter, and its buckets. LuaJIT moves no memory, so a state keeps its address.
ffi.cdef "typedef struct { tollbar_meter of; tollbar_meter_state state; } tollbar_lua_meter;"

local Meter = {}

local function answer(code)
    if code < 0 then
        return failure(code)
    end
    return NAMES[code]
end

local function before_of(before)
    return before == nil and 0 or core.choice("a colour", before, COLORS, 4)
end

--- Returns the colour of a packet of `bytes`, "green", "yellow" or "red", and charges the bytes to
--- the buckets of that colour. A red packet charges nothing. `before` is the colour that an earlier
--- meter gave: the answer is never better.
--
--     if meter:color(#packet) == "red" then return drop(packet) end
function Meter:color(bytes, before)
    return answer(lib.tollbar_meter_color(self.of, self.state, count(bytes), before_of(before)))
end

--- color at the caller's time, in nanoseconds of one clock.
function Meter:color_at(now, bytes, before)
    return answer(lib.tollbar_meter_color_at(self.of, self.state, count(bytes), before_of(before),
                                             count(now)))
end

local new = ffi.metatype("tollbar_lua_meter", {
    __index = Meter,
    __tostring = function()
        return "tollbar.meter"
    end,
})

local KNOWN = {
    committed_bytes = true,
    committed_burst = true,
    excess_burst = true,
    peak_bytes = true,
    peak_burst = true,
    period = true,
}
local meter = {}

--- meter { committed_bytes = 1e6, committed_burst = 1e5, excess_burst = 5e4 } makes a meter of RFC
--- 2697, with full buckets: bytes in a `period` of seconds, 1 by default, and bursts in bytes. With
--- `peak_bytes` and `peak_burst` instead of `excess_burst` it is a meter of RFC 2698. Each flow has
--- a meter of its own.
function meter.new(options)
    options = core.options(options, KNOWN)
    local peak_bytes, peak_burst = options.peak_bytes, options.peak_burst
    if (peak_bytes == nil) ~= (peak_burst == nil) or peak_bytes and options.excess_burst then
        error("a meter has an excess_burst, or else peak_bytes and peak_burst", 2)
    end
    local self = new()
    local of = self.of
    of.struct_size = ffi.sizeof("tollbar_meter")
    of.committed_bytes = count(options.committed_bytes)
    of.committed_burst = count(options.committed_burst)
    of.second_burst = count(peak_burst or options.excess_burst or 0)
    local period = options.period or 1
    if type(period) ~= "number" or not (period >= 0 and period < 1e9) then
        error("period is a number of seconds, not " .. tostring(period), 2)
    end
    of.period_ns = ffi.cast("uint64_t", period * 1e9 + 0.5)
    if peak_bytes ~= nil then
        of.peak_bytes = count(peak_bytes)
        -- The library reads a peak rate of 0 as RFC 2697.
        if of.peak_bytes == 0 then
            return failure(lib.TOLLBAR_E_RATE_TOO_HIGH, "the meter")
        end
    end
    local code = lib.tollbar_meter_validate(of)
    if code ~= ALLOWED then
        return failure(code, "the meter")
    end
    return self
end

return meter
