--- Limits logins for all programs that open the same file. Run it twice.
--
--     LUA_PATH='bindings/lua/?.lua;;' luajit examples/lua/logins.lua [FILE]
local tollbar = require "tollbar"

local path = arg[1] or "/run/logins/table"
local logins = assert(tollbar.open(path, "3/min", { capacity = 100000 }))

for _, address in ipairs { "192.0.2.1", "192.0.2.1", "2001:db8::1", "2001:db8::2" } do
    -- A host can use any address of its /64, so the /64 is the key.
    local allowed, retry_after, remaining = logins:check(assert(tollbar.prefix(address)))
    if allowed then
        print(address .. ": passes, " .. remaining .. " left")
    else
        print(("%s: again in %.1f s"):format(address, retry_after))
    end
end

print(logins:stats().keys .. " keys are known")
