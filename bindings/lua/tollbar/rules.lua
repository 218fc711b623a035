--- Rules: rate limits from a file in TOML or YAML (docs/rules.md). This module loads
--- libtollbar-rules, and nothing else of tollbar.
--
--     local rules = assert(require("tollbar.rules").open "site.toml")
--     local answer = rules:check { [":method"] = "GET", [":path"] = "/blog/1", [":address"] = "198.51.100.7" }
--     if not answer or answer.status ~= 200 then … end
--
-- A failure at run time returns `nil, message, code`. A fault of the program raises an error.
local ffi = require "ffi"
require "tollbar.cdef_rules"

local library = require "tollbar.library"

local lib = library.load("libtollbar-rules", library.environment "TOLLBAR_RULES_LIBRARY")

-- A struct around the pointer, which is NULL once the rules are closed.
ffi.cdef "typedef struct { tollbar_rules *handle; } tollbar_lua_rules;"

local ERROR_BYTES = 65536
local error_text = ffi.new("char[?]", ERROR_BYTES)
local options = ffi.new "tollbar_rules_options"
local answer = ffi.new "tollbar_rules_answer"
options.struct_size = ffi.sizeof(options)
answer.struct_size = ffi.sizeof(answer)
local FIELDS_MOST = 256
local fields = ffi.new("tollbar_rules_field[?]", FIELDS_MOST)
local VERDICTS = { [0] = "allowed", "denied", "never" }
-- TOLLBAR_NO_TIME of tollbar.h.
local NEVER = 0xffffffffffffffffULL

local Rules = {}

local function failure(code)
    local text = ffi.string(error_text)
    return nil, text ~= "" and text or ("error " .. code), code
end

local function handle(self)
    if self.handle == nil then
        error("the rules are closed", 3)
    end
    return self.handle
end

local function seconds(ns)
    return ns == NEVER and math.huge or tonumber(ns) / 1e9
end

-- Writes a request to `fields`. Returns the number of fields.
local function write(request)
    local count = 0
    for name, value in pairs(request) do
        if type(name) ~= "string" or type(value) ~= "string" then
            error("a request has names and values that are strings", 3)
        end
        if count == FIELDS_MOST then
            error("a request has at most " .. FIELDS_MOST .. " fields", 3)
        end
        -- `request` keeps both strings alive.
        local field = fields[count]
        field.name, field.name_length, field.value, field.value_length = name, #name, value, #value
        count = count + 1
    end
    return count
end

--- Takes the request's cost of all limits of all rules that it matches, or of none. `request` is a
--- table of names and values: ":method", ":path", ":address", other words of the server with a
--- colon, and headers. `now_ns` is a time on the scale of `now_ns()`, or nil for the clock. Returns
--- a table: verdict ("allowed", "denied" or "never"), status, body, rule, remaining, retry_after
--- and reset_after (seconds), reason, generation, and two numbers for
--- `settle`: taken_at_ns and refused_shadows.
function Rules:check(request, now_ns)
    local count = write(request)
    local code
    if now_ns == nil then
        code = lib.tollbar_rules_check(handle(self), fields, count, answer)
    else
        code = lib.tollbar_rules_check_at(handle(self), fields, count, now_ns, answer)
    end
    if code < 0 then
        error_text[0] = 0
        return failure(code)
    end
    local rule = ffi.string(answer.rule)
    return {
        verdict = VERDICTS[code],
        reason = answer.reason,
        status = answer.status,
        body = ffi.string(answer.body),
        rule = rule ~= "" and rule or nil,
        remaining = answer.remaining,
        retry_after = seconds(answer.retry_after_ns),
        reset_after = seconds(answer.reset_after_ns),
        generation = tonumber(answer.generation),
        taken_at_ns = answer.taken_at_ns,
        refused_shadows = answer.refused_shadows,
    }
end

--- Charges what the answer to an admitted request has cost, under rules with cost = "answer NAME".
--- `of` is the table that `check` returned, and `request` has the request's fields again, with the
--- words of the answer (":NAME") among them. Returns whether the words had a whole number for each
--- such cost: the estimate stays where one is missing. Call it once for each admission. Returns nil,
--- a message and a code for a failure.
function Rules:settle(of, request, now_ns)
    local count = write(request)
    answer.generation, answer.taken_at_ns, answer.refused_shadows = of.generation, of.taken_at_ns, of.refused_shadows
    local code
    if now_ns == nil then
        code = lib.tollbar_rules_settle(handle(self), fields, count, answer)
    else
        code = lib.tollbar_rules_settle_at(handle(self), fields, count, answer, now_ns)
    end
    if code < 0 then
        error_text[0] = 0
        return failure(code)
    end
    return code == 1
end

--- The tables' clock, as a number of 64 bits.
function Rules:now_ns()
    return lib.tollbar_rules_now(handle(self))
end

--- Reads the file again and puts its rules in force as a whole. Returns true, or nil and a message
--- with the places of the faults; then the old rules stay.
function Rules:reload()
    local code = lib.tollbar_rules_reload(handle(self), error_text, ERROR_BYTES)
    if code < 0 then
        return failure(code)
    end
    return true
end

--- `reload`, if the file has changed since it was last read. Returns whether it has, or nil and a
--- message.
function Rules:reload_if_changed()
    local code = lib.tollbar_rules_reload_if_changed(handle(self), error_text, ERROR_BYTES)
    if code < 0 then
        return failure(code)
    end
    return code == 1
end

--- Lets the keys of a rule begin anew: the one with this text, as `keys` and `exempt` of the file
--- write it, or all. Returns whether they do, or nil and a message.
function Rules:reset(rule, key)
    if type(rule) ~= "string" or (key ~= nil and type(key) ~= "string") then
        error("reset: a rule and a key are strings", 2)
    end
    local code = lib.tollbar_rules_reset(handle(self), rule, key, key and #key or 0, error_text, ERROR_BYTES)
    if code < 0 then
        return failure(code)
    end
    return code == 1
end

--- What the rules have counted, as text for Prometheus: decisions by rule, and shadows'
--- disagreements. `name` is the label "limit" of their series. With `openmetrics` it is OpenMetrics
--- 1.0. Returns the text, or nil, a message and a code.
function Rules:metrics(name, openmetrics)
    if type(name) ~= "string" then
        error("metrics: a name is a string", 2)
    end
    local source = ffi.new "tollbar_rules_source"
    source.name, source.name_length, source.rules = name, #name, handle(self)
    local length, room = ffi.new "size_t[1]", 16384
    while true do
        local text = ffi.new("char[?]", room)
        local code = lib.tollbar_rules_metrics(source, 1, openmetrics and 1 or 0, text, room, length)
        if code == 0 then
            return ffi.string(text, length[0])
        elseif length[0] < room then
            error_text[0] = 0
            return failure(code)
        end
        room = math.floor(tonumber(length[0]) * 9 / 8) + 1
    end
end

--- Ends the rules.
function Rules:close()
    lib.tollbar_rules_close(self.handle)
    self.handle = nil
end

local new = ffi.metatype("tollbar_lua_rules", { __index = Rules, __gc = Rules.close })

--- Reads the rules file `path`. Options: `keys`, how many keys can have a debt at one time
--- (100,000); `shared`, the states are shared with processes that this one forks later; `room`, the
--- most segments of a sliding window, or permits of a sliding log, for which each key has room: a
--- reload may then turn any algorithm into any other, and keys keep the permits that they have
--- left. Returns the rules, or nil and a message with the places of all faults.
local function open(path, given)
    if type(path) ~= "string" then
        error("open: a path is a string", 2)
    end
    given = given or {}
    for name in pairs(given) do
        if name ~= "keys" and name ~= "shared" and name ~= "room" then
            error("open: unknown option " .. tostring(name) .. ", expected keys, shared or room", 2)
        end
    end
    options.flags = given.shared and 1 or 0
    options.keys = given.keys or 100000
    options.room = given.room or 0
    local out = ffi.new "tollbar_rules *[1]"
    local code = lib.tollbar_rules_open(path, options, out, error_text, ERROR_BYTES)
    if code < 0 then
        return failure(code)
    end
    return new(out[0])
end

return { open = open }
