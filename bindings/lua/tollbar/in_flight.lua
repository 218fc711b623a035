--- InFlight: how many requests, connections or uploads a key has open at one time, in memory that
--- processes can share.
local ffi = require "ffi"
local core = require "tollbar.core"

local lib = core.lib
local failure = core.failure
local ALLOWED, DENIED, TICKET = lib.TOLLBAR_ALLOWED, lib.TOLLBAR_DENIED, lib.TOLLBAR_E_TICKET

-- A struct around the pointer, as in limiter.lua. NULL means closed.
ffi.cdef "typedef struct { tollbar_in_flight *handle; } tollbar_lua_in_flight;"

local ticket, word = ffi.new("tollbar_ticket[1]"), ffi.new("uint64_t[1]")

local InFlight = {}

--- Takes a permit of the key and returns its ticket. Returns false if `limit` permits of the key
--- are in flight. Each call may give another limit. If a process is killed, its permits of a key
--- stay in flight until the key refuses a request of another process. No call waits.
--
--     local ticket = uploads:acquire(user, 4)
--     if not ticket then return too_many() end
--     ...
--     uploads:release(ticket)
function InFlight:acquire(key, limit)
    local data, length = core.key(key)
    local code = lib.tollbar_in_flight_acquire(self.handle, data, length, core.number(limit), ticket)
    if code == ALLOWED then
        return ticket[0]
    end
    if code == DENIED then
        return false
    end
    return failure(code, "the table")
end

--- Releases a permit. Returns false if the ticket was released before, or if this process inherited
--- it by a fork.
function InFlight:release(of)
    local code = lib.tollbar_in_flight_release(self.handle, of)
    if code == ALLOWED or code == TICKET then
        return code == ALLOWED
    end
    return failure(code, "the table")
end

--- Returns the number of the key's permits in flight.
function InFlight:count(key)
    local data, length = core.key(key)
    local code = lib.tollbar_in_flight_count(self.handle, data, length, word)
    if code ~= ALLOWED then
        return failure(code, "the table")
    end
    return tonumber(word[0])
end

--- Registers this process in the table now, so that its first acquire makes no system calls for it.
function InFlight:join()
    local code = lib.tollbar_in_flight_join(self.handle)
    if code ~= ALLOWED then
        return failure(code, "the table")
    end
    return true
end

--- Closes this view, and releases all permits that this process acquired through it.
function InFlight:close()
    lib.tollbar_in_flight_close(self.handle)
    self.handle = nil
end

local new_handle = ffi.metatype("tollbar_lua_in_flight", {
    __index = InFlight,
    __gc = InFlight.close,
    __tostring = function(self)
        return self.handle == nil and "tollbar.in_flight, closed" or "tollbar.in_flight"
    end,
})

local COMMON = { capacity = true, processes = true }
local IN_MEMORY = setmetatable({ shared = true }, { __index = COMMON })
local IN_FILE = setmetatable({ mode = true, trust_anyone = true }, { __index = COMMON })
local new_options = core.struct("tollbar_in_flight_options")

local function how(options)
    local o = new_options()
    o.capacity = core.count(options.capacity, 3)
    o.processes = options.processes or 0
    o.mode = options.mode or 0
    if options.trust_anyone then
        o.flags = lib.TOLLBAR_IN_FLIGHT_TRUST_ANYONE
    end
    return o
end

local function made(code, out, path)
    if code ~= ALLOWED then
        return core.system_failure(code, path)
    end
    local self = new_handle()
    self.handle = out[0]
    return self
end

local in_flight = {}

--- in_flight({ capacity = 1e4 }) makes a table for 10,000 keys. With `shared = true` the processes
--- that are forked later share it, such as nginx's workers after init_by_lua. `processes` is the
--- number of processes that have permits of one key at one time; the default is 8.
function in_flight.new(options)
    options = core.options(options, IN_MEMORY)
    local out = ffi.new("tollbar_in_flight *[1]")
    local make = options.shared and lib.tollbar_in_flight_new_shared or lib.tollbar_in_flight_new
    return made(make(how(options), out), out)
end

--- Opens the table in a file, or makes the file if there is none. All processes of one PID
--- namespace that open it share the table, whatever their language. Without options the file must
--- exist. `mode` and `trust_anyone` are those of a table's file.
function in_flight.open(path, options)
    core.text("a path", path)
    if path:find("\0", 1, true) then
        error("a path has no NUL", 2)
    end
    local out = ffi.new("tollbar_in_flight *[1]")
    local given = options ~= nil and how(core.options(options, IN_FILE)) or nil
    return made(lib.tollbar_in_flight_open(path, given, out), out, path)
end

return in_flight
