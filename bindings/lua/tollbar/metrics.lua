--- Metrics: counts and sizes of limiters and tables for Prometheus.
local ffi = require "ffi"
local core = require "tollbar.core"
require "tollbar.limiter"
require "tollbar.table"

local lib = core.lib
local text, failure = core.text, core.failure
local is_limiter, is_table = ffi.typeof "tollbar_lua_limiter", ffi.typeof "tollbar_lua_table"
local MOST = 1024
assert(lib.TOLLBAR_METRICS_MOST == MOST)

local from, length = ffi.new("tollbar_metrics_source[?]", MOST), ffi.new("size_t[1]")
local room, lines = 0, nil

--- Returns the metrics of limiters and tables as text:
--- `metrics { api = limiter, logins = clients }`. Each name is the value of the label `limit`. In
--- nginx's `content_by_lua`: ngx.header.content_type = "text/plain; version=0.0.4";
--- ngx.print(tollbar.metrics(...)). With `openmetrics` it is OpenMetrics 1.0.
return function(sources, openmetrics)
    if type(sources) ~= "table" then
        error("metrics takes a table of limiters and tables", 2)
    end
    local names = {}
    for name in pairs(sources) do
        names[#names + 1] = text("a name", name)
    end
    table.sort(names)
    if #names > MOST then
        error("metrics takes at most " .. MOST .. " limiters and tables, not " .. #names, 2)
    end
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
    repeat
        if lines == nil or length[0] >= room then
            room = math.max(16384, tonumber(length[0]) * 9 / 8 + 1)
            lines = ffi.new("char[?]", room)
        end
        length[0] = 0
        local code = lib.tollbar_metrics(from, #names, format, lines, room, length)
        if code == 0 then
            return ffi.string(lines, length[0])
        end
    until code ~= lib.TOLLBAR_E_BUFFER_TOO_SMALL or length[0] < room
    return failure(lib.TOLLBAR_E_BUFFER_TOO_SMALL, "the metrics")
end
