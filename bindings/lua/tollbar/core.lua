--- The library, and the common code of limiters and tables: errors, arguments, results.
local ffi = require "ffi"
local library = require "tollbar.library"
local values = require "tollbar.cdef"

local core = {}

core.load = library.load
local environment = library.environment

--- Returns the path of libtollbar-redis: TOLLBAR_REDIS_LIBRARY, or the file beside TOLLBAR_LIBRARY.
function core.redis_path()
    local beside = environment("TOLLBAR_LIBRARY")
    return environment("TOLLBAR_REDIS_LIBRARY") or beside and (beside:gsub("libtollbar(%.so[^/]*)$", "libtollbar-redis%1"))
end

local lib = core.load("libtollbar", environment("TOLLBAR_LIBRARY"))
core.lib = lib
-- A library of another ABI does not have this symbol.
assert(lib.tollbar_abi_1 == 1)
core.version = ffi.string(lib.tollbar_version_string())

local ALLOWED, DENIED = lib.TOLLBAR_ALLOWED, lib.TOLLBAR_DENIED
local E_NULL = lib.TOLLBAR_E_NULL

--- Returns nil, a message and the number of an error. TOLLBAR_E_NULL means a closed handle, because
--- no other pointer that this module passes to C can be NULL. Methods end in a call of this
--- function, so the level above it is the user's program.
function core.failure(code, what)
    if code == E_NULL then
        error((what or "it") .. " is closed", 2)
    end
    local message = ffi.string(lib.tollbar_strerror(code))
    return nil, what and what .. ": " .. message or message, code
end

ffi.cdef "char *strerror(int number);"

-- The errors after which errno has the system's reason.
-- [lists: system errors] written by cargo xtask lists
local SYSTEM_FIRST, SYSTEM_LAST = lib.TOLLBAR_E_OPEN, lib.TOLLBAR_E_SYNC
-- [lists: end]

--- core.failure, with the system's reason if the error has one. The function reads errno first,
--- before any other call can change it.
function core.system_failure(code, path)
    local errno = ffi.errno()
    if code > SYSTEM_FIRST or code < SYSTEM_LAST or errno == 0 then
        return core.failure(code, path)
    end
    local _, message = core.failure(code, path)
    return nil, message .. " (" .. ffi.string(ffi.C.strerror(errno)) .. ")", code
end

--- Makes a struct with its size in `struct_size` ([C6] of tollbar.h).
function core.struct(name)
    local type_of = ffi.typeof(name)
    local size = ffi.sizeof(type_of)
    return function()
        local one = type_of()
        one.struct_size = size
        return one
    end
end

--- Raises an error at the call in the user's program, which is `level` calls above the function
--- that calls this.
local function wrong(what, value, level)
    error(what .. ", not " .. (type(value) == "number" and tostring(value) or type(value)), (level or 2) + 2)
end

local u64, i64 = ffi.typeof("uint64_t"), ffi.typeof("int64_t")

--- Checks a number of permits or nanoseconds for a uint64_t parameter. A Lua number is valid if a
--- double holds it exactly.
function core.count(value, level)
    if type(value) == "number" then
        if value >= 0 and value <= 9007199254740992 and value % 1 == 0 then
            return value
        end
    elseif type(value) == "cdata" then
        if ffi.istype(u64, value) or ffi.istype(i64, value) and value >= 0 then
            return value
        end
    end
    wrong("a whole number from 0 to 2^53, or a uint64_t, was expected", value, level)
end

--- Checks a uint32_t: the number of a policy, or of an address's bits.
function core.number(value, level)
    if type(value) ~= "number" or not (value >= 0 and value <= 0xffffffff) or value % 1 ~= 0 then
        wrong("a whole number from 0 on was expected", value, level)
    end
    return value
end

function core.text(what, value, level)
    if type(value) ~= "string" then
        wrong(what .. " is a string", value, level)
    end
    return value
end

--- Returns a key's bytes and their number. nil is no key: the table's option `missing` says how the
--- table decides on it.
function core.key(key)
    if key == nil then
        return nil, 0
    end
    return core.text("a key", key, 3), #key
end

--- Seconds as nanoseconds. nil and math.huge mean no end.
function core.patience(seconds)
    if seconds == nil then
        return values.NO_TIME
    end
    if type(seconds) ~= "number" or not (seconds >= 0) then
        wrong("a number of seconds was expected", seconds)
    end
    return seconds < 1e9 and u64(seconds * 1e9) or values.NO_TIME
end

--- Nanoseconds as seconds; math.huge for TOLLBAR_NO_TIME.
function core.seconds(ns)
    ns = tonumber(ns)
    -- A product with 1e-9 would make a whole number of seconds a little more, and math.ceil a
    -- second more.
    return ns < 2^63 and ns / 1e9 or math.huge
end
local seconds = core.seconds

local reasons = {}
core.reasons = reasons
for number = 0, lib.TOLLBAR_REASON_RESERVE do
    reasons[number] = ffi.string(lib.tollbar_strreason(number))
end

--- Returns a decision's results: whether the request may pass, the seconds to wait, the permits
--- left, the seconds until the state is fresh, the reason, and the index of the binding policy of a
--- list. The next call overwrites `decision`.
function core.answer(code, decision, what)
    if code == ALLOWED then
        return true, 0, tonumber(decision.remaining), seconds(decision.reset_after_ns), reasons[decision.reason],
            decision.bound + 1
    elseif code > 0 then
        return false, seconds(decision.retry_after_ns), tonumber(decision.remaining), seconds(decision.reset_after_ns),
            reasons[decision.reason], decision.bound + 1
    end
    return core.failure(code, what)
end

--- Converts TOLLBAR_YES and TOLLBAR_NO to true and false.
function core.bool(code, what)
    if code < 0 then
        return core.failure(code, what)
    end
    return code == lib.TOLLBAR_YES
end

--- Checks the name of a class of requests. The library would read a name up to its first NUL, so
--- one with a NUL becomes "", which no class has.
function core.class_name(name, level)
    core.text("a class's name", name, level or 3)
    return name:find("%z") and "" or name
end

--- Returns true if the call succeeded, and false if it was denied.
function core.yes(code, what)
    if code == ALLOWED then
        return true
    elseif code == DENIED then
        return false
    end
    return core.failure(code, what)
end

--- Converts a word of an option to its number.
function core.choice(what, word, among, level)
    local number = among[word]
    if not number then
        error(what .. " cannot be " .. tostring(word), level or 3)
    end
    return number
end

--- Checks an options table. An unknown name is an error.
function core.options(given, known)
    if given == nil then
        return {}
    end
    if type(given) ~= "table" then
        wrong("options are a table", given)
    end
    for name in pairs(given) do
        if not known[name] then
            error("no option " .. tostring(name), 3)
        end
    end
    return given
end

core.KEEPS = { count = lib.TOLLBAR_KEEP_COUNT, time = lib.TOLLBAR_KEEP_TIME, reset = lib.TOLLBAR_KEEP_RESET }

core.CLOCKS = {
    tsc = lib.TOLLBAR_CLOCK_TSC,
    monotonic = lib.TOLLBAR_CLOCK_MONOTONIC,
    coarse = lib.TOLLBAR_CLOCK_COARSE,
    wall = lib.TOLLBAR_CLOCK_WALL,
}

local new_spec, new_error = core.struct("tollbar_policy_spec"), core.struct("tollbar_policy_error")
core.new_spec = new_spec

--- Parses a policy's text. Returns the spec, or nil, a message with the column, and the number of
--- the error.
function core.policy(text, level)
    core.text("a policy", text, level or 3)
    local spec, why = new_spec(), new_error()
    local code = lib.tollbar_policy_spec_parse(text, #text, spec, why)
    if code == ALLOWED then
        return spec
    end
    return core.wrong_text("policy", text, code, why)
end

core.new_policy_error = new_error

--- Returns nil, a message with the column, and the number of the error of a text.
function core.wrong_text(what, text, code, why)
    local message = string.format("%s %q: column %d: %s", what, text, tonumber(why.column), ffi.string(why.expected))
    return nil, message, code
end

local last_time = ffi.new("uint64_t[1]")

--- Returns the last clock reading at which a policy of this text admits a request, as nanoseconds
--- in a uint64_t: 2^61 - 2 for all but the fastest policies.
function core.last_time(text)
    local spec, message, number = core.policy(text)
    if not spec then
        return nil, message, number
    end
    local code = lib.tollbar_policy_spec_last_time(spec, last_time)
    if code ~= ALLOWED then
        return core.failure(code)
    end
    return last_time[0]
end

local most = ffi.new("uint64_t[1]")

--- Returns the most permits of one key, as a uint64_t, that a policy of this text admits in some
--- window of so many seconds, by requests that cost 1 and come at the worst times.
function core.worst_case(text, seconds)
    local window = core.patience(seconds)
    local spec, message, number = core.policy(text)
    if not spec then
        return nil, message, number
    end
    local code = lib.tollbar_policy_spec_worst_case(spec, window, most)
    if code ~= ALLOWED then
        return core.failure(code)
    end
    return most[0]
end

--- Returns the text of a spec.
function core.print_policy(spec)
    local buffer, length = ffi.new("char[?]", lib.TOLLBAR_POLICY_TEXT_MAX), ffi.new("size_t[1]")
    local code = lib.tollbar_policy_spec_print(spec, buffer, lib.TOLLBAR_POLICY_TEXT_MAX, length)
    if code ~= ALLOWED then
        return core.failure(code)
    end
    return ffi.string(buffer, length[0])
end

local new_fit = core.struct "tollbar_curve_fit"

--- Returns the text of a policy whose permits come as a function says, and the largest difference
--- between its curve and the function, as a share of `limit`. A slice of `seconds` admits exactly
--- `limit` permits. `share` gets a time in the slice from 0 to 1, and returns the share of `limit`
--- that has come by then, from 0 to 1. It does not fall, and ends at 1.
function core.curve(limit, seconds, share)
    local last = lib.TOLLBAR_CURVE_TIMES - 1
    local shares = ffi.new("double[?]", last + 1)
    for n = 0, last do
        shares[n] = share(n / last)
    end
    local spec, fit = new_spec(), new_fit()
    local code = lib.tollbar_policy_spec_samples(core.count(limit), core.patience(seconds), shares, last + 1, spec, fit)
    if code == ALLOWED then
        return core.print_policy(spec), fit.error
    end
    if fit.code ~= code or fit.expected == nil then
        return core.failure(code)
    end
    return nil, ("at time %g of the slice the function gives %g, expected %s"):format(fit.time, fit.value, ffi.string(fit.expected)), code
end

local instant = ffi.new("uint64_t[1]")

--- Returns nanoseconds since the machine's start, or with "wall" since 1970, as a uint64_t.
function core.clock_now(clock)
    local code = lib.tollbar_clock_now(clock, instant)
    assert(code == ALLOWED)
    return instant[0]
end

function core.now(clock)
    return core.clock_now(core.choice("a clock", clock or "tsc", core.CLOCKS))
end

local prefix = ffi.new("tollbar_prefix")

local function network(call, address, ipv4_bits, ipv6_bits)
    core.text("an address", address, 2)
    local code = call(address, #address, core.number(ipv4_bits or 32), core.number(ipv6_bits or 64), prefix)
    if code ~= ALLOWED then
        return core.failure(code)
    end
    return ffi.string(prefix.bytes, prefix.length)
end

--- Returns the key of a network address: its first bits, 32 of IPv4 and 64 of IPv6 by default. A
--- limit by whole IPv6 address has no effect, because a host can change its address with every
--- request.
function core.prefix(text, ipv4_bits, ipv6_bits)
    return network(lib.tollbar_prefix_parse, text, ipv4_bits, ipv6_bits)
end

--- The same for an address's 4 or 16 bytes, as in $binary_remote_addr.
function core.prefix_of(bytes, ipv4_bits, ipv6_bits)
    return network(lib.tollbar_prefix_from_address, bytes, ipv4_bits, ipv6_bits)
end

return core
