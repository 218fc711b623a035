--- The same program as visit.c, in Lua.
local tollbar = require "tollbar"

local table = assert(tollbar.open(arg[1], "1/day", { capacity = 10000 }))
for i = 2, #arg do
    local key = tollbar.prefix(arg[i])
    print(not key and "no address" or table:allow(key) and "passes" or "refused")
end
table:close()
