--- HTTP header fields about limits. http.check takes permits and makes the fields of this server's
--- answer; http.read reads the fields of another server's answer.
local ffi = require "ffi"
local core = require "tollbar.core"
require "tollbar.table"

local lib = core.lib
local count, number, text, failure, seconds = core.count, core.number, core.text, core.failure, core.seconds

local ALLOWED = lib.TOLLBAR_ALLOWED
local dialects = {
    legacy = lib.TOLLBAR_HTTP_LEGACY,
    ["legacy-epoch"] = lib.TOLLBAR_HTTP_LEGACY_EPOCH,
    ["draft-06"] = lib.TOLLBAR_HTTP_DRAFT_06,
    ["draft-07"] = lib.TOLLBAR_HTTP_DRAFT_07,
    ["draft-11"] = lib.TOLLBAR_HTTP_DRAFT_11,
}
local is_table = ffi.typeof "tollbar_lua_table"

-- Each call overwrites these buffers and reads them before it returns. A Lua state runs one call at
-- a time, so calls can share them.
local decision = core.struct("tollbar_decision")()
local policy_spec = core.struct("tollbar_policy_spec")()
local seen = core.struct("tollbar_http_seen")()
local limit = ffi.new("tollbar_http_limit[1]")
local more, length = ffi.new("uint64_t[1]"), ffi.new("size_t[1]")
local room, lines = 0, nil

local http = {}

--- The sum of TOLLBAR_HTTP_ numbers for Retry-After and the dialects that `words` names. nil names
--- "draft-11".
local function fields_of(words)
    local fields = lib.TOLLBAR_HTTP_RETRY_AFTER
    for word in text("dialects", words or "draft-11", 3):gmatch("%S+") do
        fields = fields + core.choice("dialects", word, dialects, 4)
    end
    return fields
end

local function now()
    local wall = ffi.new("uint64_t[1]")
    return lib.tollbar_clock_now(lib.TOLLBAR_CLOCK_WALL, wall) == 0 and wall[0] or 0
end

--- Takes `cost` permits (default 1) of a table's key under policy number `policy` (default 0).
--- Returns whether the request may pass, the header fields of the answer as a table of names and
--- values, the status 200 or 429, and for a refusal its body (a problem in JSON). `name` is the
--- limit's name, which clients see. `words` names the dialects: "draft-11", "draft-07" or
--- "draft-06", and "legacy" or "legacy-epoch".
--
--     local allowed, fields, status, problem = tollbar.http_check("client", clients, ngx.var.binary_remote_addr)
--     for name, value in pairs(fields or {}) do ngx.header[name] = value end
--     if not allowed then return ngx.exit(429) end
function http.check(name, of, key, cost, policy, words)
    if not ffi.istype(is_table, of) then
        error("http_check takes a table", 2)
    end
    text("a name", name)
    local data, size = core.key(key)
    cost, policy = cost == nil and 1 or count(cost), policy == nil and 0 or number(policy)
    local fields = fields_of(words)
    local code = lib.tollbar_table_check(of.handle, policy, data, size, cost, decision)
    if code < 0 then
        return failure(code, "the table")
    end
    local failed = lib.tollbar_table_get_policy(of.handle, policy, policy_spec)
    if failed == 0 then
        failed = lib.tollbar_table_more_after(of.handle, policy, data, size, cost, decision, more)
    end
    local one = limit[0]
    one.name, one.name_length, one.policy, one.decision, one.more_after_ns = name, #name, policy_spec, decision, more[0]
    one.partition, one.partition_length = nil, 0
    local enough = 300 + 100 + 4 * #name
    if room < enough then
        room, lines = enough, ffi.new("char[?]", enough)
    end
    if failed == 0 then
        failed = lib.tollbar_http_fields(limit, 1, fields, now(), lines, room, length)
    end
    if failed ~= 0 then
        return failure(failed, "the header fields")
    end
    local set = {}
    for field, value in ffi.string(lines, length[0]):gmatch("([^:]+): ([^\r]*)\r\n") do
        set[field] = value
    end
    if code == ALLOWED then
        return true, set, 200
    end
    failed = lib.tollbar_http_problem(limit, 1, 429, lines, room, length)
    if failed ~= 0 then
        return failure(failed, "the problem")
    end
    return false, set, 429, ffi.string(lines, length[0])
end

local UNKNOWN = 0xffffffffffffffffULL

local function known(value, convert)
    if value ~= UNKNOWN then
        return convert(value)
    end
end

--- Reads a server's limits from its answer's header. Returns a table with `limit` (permits per
--- `window`), `remaining`, `more_after` and `retry_after`, with times in seconds. An entry is nil
--- if no header field gives it. `header` is a table of names and values, or the header as text. The
--- call ignores malformed fields.
function http.read(header)
    if type(header) == "table" then
        local parts = {}
        for name, value in pairs(header) do
            -- Without its line breaks, a value cannot add a line to the header.
            parts[#parts + 1] = (name .. ": " .. tostring(value)):gsub("[\r\n]", " ")
        end
        header = table.concat(parts, "\n")
    end
    local code = lib.tollbar_http_read(text("a header", header), #header, now(), seen)
    if code < 0 then
        return failure(code, "the header")
    end
    return {
        limit = known(seen.limit, tonumber),
        window = known(seen.window_ns, seconds),
        remaining = known(seen.remaining, tonumber),
        more_after = known(seen.more_after_ns, seconds),
        retry_after = known(seen.retry_after_ns, seconds),
    }
end

return http
