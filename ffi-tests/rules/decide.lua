-- Decides on requests of requests.py by the rules file in arg[1], and prints "VERDICT STATUS RULE
-- REMAINING" for each, and "= KNOWN" where it settles one. arg[2] is the file for the metrics in the
-- end.
local ffi = require "ffi"
local rules = assert(require("tollbar.rules").open(arg[1]))
local refusing, last = {}, nil
local verdicts = { allowed = 0, denied = 1, never = 2 }
ffi.cdef "unsigned long long strtoull(const char *, char **, int);"

for line in io.lines() do
    local settles, time, words = line:match "^(=?)(%d+)\t?(.*)$"
    local now = ffi.C.strtoull(time, nil, 10)
    local request = {}
    for name, value in words:gmatch "([^\t]+)\t([^\t]+)" do
        request[name] = value
    end
    if settles == "=" then
        local known = last.verdict == "allowed" and rules:settle(last, request, now)
        io.write("= ", known and 1 or 0, "\n")
        goto continue
    end
    local answer = assert(rules:check(request, now))
    last = answer
    local remaining = tostring(answer.remaining):gsub("ULL$", "")
    if answer.verdict == "denied" and answer.status >= 400 then
        refusing[answer.rule] = true
    end
    io.write(verdicts[answer.verdict], " ", answer.status, " ", answer.rule or "-", " ", remaining, "\n")
    ::continue::
end

if arg[2] then
    local file = assert(io.open(arg[2], "w"))
    file:write(assert(rules:metrics "site"))
    file:close()
end

-- A9: keys that begin anew.
for rule in pairs(refusing) do
    assert(rules:reset(rule) == true, rule)
end
local none, message, code = rules:reset("none", "a key")
assert(none == nil and message:find('no rule "none"; expected ', 1, true) == 1 and code < 0)
assert(not pcall(rules.reset, rules, 7))

-- Faults and reloads.
assert(rules:now_ns() > 0 and rules:reload() == true and rules:reload_if_changed() == false)
none, message, code = require("tollbar.rules").open "/nowhere.toml"
assert(none == nil and message:find("/nowhere.toml: ", 1, true) == 1 and code < 0)
assert(not pcall(rules.check, rules, { 1 }))
rules:close()
assert(not pcall(rules.check, rules, {}))
