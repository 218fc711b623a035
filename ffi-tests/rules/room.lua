-- Rules with room: a reload turns a bucket into a log, and the key keeps the permits that it has
-- left. arg[1] is the rules file, which this program writes.
local path = arg[1]

local function write(limit)
    local file = assert(io.open(path, "w"))
    file:write("version = 1\n[group.a]\nkey = 'address'\nlimit = '", limit, "'\n")
    file:close()
end

write "10/h"
local rules = assert(require("tollbar.rules").open(path, { room = 30 }))
local request = { [":path"] = "/", [":address"] = "192.0.2.1" }
assert(rules:check(request).remaining == 9ULL)
write "10/h algo sliding-log"
assert(rules:reload())
local left = rules:check(request).remaining
assert(left == 8ULL, tostring(left))
