--- Metrics: counts and sizes of limiters and tables, and histograms of times, for Prometheus.
local ffi = require "ffi"
local core = require "tollbar.core"
require "tollbar.limiter"
require "tollbar.table"
local new_times = require "tollbar.times"

local lib = core.lib
local text, failure = core.text, core.failure
local is_limiter, is_table = ffi.typeof "tollbar_lua_limiter", ffi.typeof "tollbar_lua_table"
local MOST = 1024
assert(lib.TOLLBAR_METRICS_MOST == MOST)

local from, length = ffi.new("tollbar_metrics_source[?]", MOST), ffi.new("size_t[1]")
local room, lines = 0, nil

--- The names of `sources`, in order. `what` is what the sources are, and `level` the level of the
--- program in the stack of calls.
local function names_of(sources, what, level)
    if type(sources) ~= "table" then
        error("metrics takes a table of " .. what, level)
    end
    local names = {}
    for name in pairs(sources) do
        names[#names + 1] = text("a name", name)
    end
    table.sort(names)
    if #names > MOST then
        error("metrics takes at most " .. MOST .. " " .. what .. ", not " .. #names, level)
    end
    return names
end

--- The text that `call(buffer, capacity, length)` writes.
local function printed(call)
    repeat
        if lines == nil or length[0] >= room then
            room = math.max(16384, tonumber(length[0]) * 9 / 8 + 1)
            lines = ffi.new("char[?]", room)
        end
        length[0] = 0
        local code = call(lines, room, length)
        if code == 0 then
            return ffi.string(lines, length[0])
        end
    until code ~= lib.TOLLBAR_E_BUFFER_TOO_SMALL or length[0] < room
    return failure(lib.TOLLBAR_E_BUFFER_TOO_SMALL, "the metrics")
end

--- The histograms of `times`, a table of `tollbar.times()`.
local function histograms(times)
    local names = names_of(times, "times", 4)
    local all = ffi.new("tollbar_times_source[?]", #names)
    for n, name in ipairs(names) do
        if not ffi.istype(new_times, times[name]) then
            error(name .. " is no tollbar.times()", 3)
        end
        all[n - 1].name, all[n - 1].name_length, all[n - 1].times = name, #name, times[name]
    end
    return printed(function(...)
        return lib.tollbar_times_metrics(all, #names, ...)
    end)
end

--- Returns the metrics of limiters and tables as text:
--- `metrics { api = limiter, logins = clients }`. Each name is the value of the label `limit`. In
--- nginx's `content_by_lua`: ngx.header.content_type = "text/plain; version=0.0.4";
--- ngx.print(tollbar.metrics(...)). With `openmetrics` it is OpenMetrics 1.0. `times` is a table of
--- histograms, such as `{ api = times }`, which come first.
return function(sources, openmetrics, times)
    local names = names_of(sources, "limiters and tables", 3)
    local before = times == nil and "" or histograms(times)
    for n, name in ipairs(names) do
        local one, of = from[n - 1], sources[name]
        one.name, one.name_length, one.limiter, one.table, one.flags = name, #name, nil, nil, 0
        if ffi.istype(is_limiter, of) then
            one.limiter = of.handle
        elseif ffi.istype(is_table, of) then
            one.table = of.handle
        else
            error(name .. " is neither a limiter nor a table", 2)
        end
        if of.handle == nil then
            error(name .. " is closed", 2)
        end
    end
    local format = openmetrics and lib.TOLLBAR_METRICS_OPENMETRICS or lib.TOLLBAR_METRICS_PROMETHEUS
    local written, message, code = printed(function(...)
        return lib.tollbar_metrics(from, #names, format, ...)
    end)
    if not written then
        return nil, message, code
    end
    return before .. written
end
