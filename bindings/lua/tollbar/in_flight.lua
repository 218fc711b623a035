--- InFlight: how many requests, connections or uploads a key has open at one time, in memory that processes can share.
local ffi = require "ffi"
local core = require "tollbar.core"

local lib = core.lib
local failure = core.failure
local ALLOWED, DENIED, TICKET = lib.TOLLBAR_ALLOWED, lib.TOLLBAR_DENIED, lib.TOLLBAR_E_TICKET

-- As in limiter.lua: closed is NULL.
ffi.cdef "typedef struct { tollbar_in_flight *handle; } tollbar_lua_in_flight;"

local ticket, word = ffi.new("tollbar_ticket[1]"), ffi.new("uint64_t[1]")

local InFlight = {}

--- Takes a permit of the key: a ticket, or false if `limit` are in flight. The limit may be another in each call. What a process that was
-- killed had comes back as soon as another one is refused by the same key. No call waits.
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

--- Gives a permit back. False: the ticket was released before, or is a parent's.
function InFlight:release(of)
    local code = lib.tollbar_in_flight_release(self.handle, of)
    if code == ALLOWED or code == TICKET then
        return code == ALLOWED
    end
    return failure(code, "the table")
end

--- How many permits of the key are in flight.
function InFlight:count(key)
    local data, length = core.key(key)
    local code = lib.tollbar_in_flight_count(self.handle, data, length, word)
    if code ~= ALLOWED then
        return failure(code, "the table")
    end
    return tonumber(word[0])
end

--- Makes this process an owner now, and not with its first permit.
function InFlight:join()
    local code = lib.tollbar_in_flight_join(self.handle)
    if code ~= ALLOWED then
        return failure(code, "the table")
    end
    return true
end

--- Ends this view. What this process has not released comes back.
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

--- in_flight({ capacity = 1e4 }): a table for so many keys. With `shared = true` it is one with the processes that are forked later, such as
-- nginx's workers after init_by_lua. `processes`: how many have the same key, 8 unless said.
function in_flight.new(options)
    options = core.options(options, IN_MEMORY)
    local out = ffi.new("tollbar_in_flight *[1]")
    local make = options.shared and lib.tollbar_in_flight_new_shared or lib.tollbar_in_flight_new
    return made(make(how(options), out), out)
end

--- The table in that file, made if there is none, for all processes of one PID namespace that open it, of any language. Without options it
-- must be there. `mode` and `trust_anyone`: as a table's.
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
