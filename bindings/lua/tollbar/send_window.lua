--- SendWindow: a limit on the permits of one Lua state that are sent and not yet acknowledged, as
--- in the send window of TCP.
local ffi = require "ffi"
local core = require "tollbar.core"

local lib = core.lib
local number, failure = core.number, core.failure
local ALLOWED, DENIED, TICKET = lib.TOLLBAR_ALLOWED, lib.TOLLBAR_DENIED, lib.TOLLBAR_E_TICKET

local last = ffi.new("uint32_t[1]")
local seen = core.struct("tollbar_send_window_state")()

local SendWindow = {}

--- Sends `permits` permits, 1 by default, and returns the number of the last one. Returns false,
--- and sends none, if fewer are usable. No call waits. Numbers count from 1, and 0 follows 2^22 -
--- 1.
--
--     local number = window:acquire()
--     if not number then return wait_for_acknowledgement() end
--     send(number, message)
function SendWindow:acquire(permits)
    local code = lib.tollbar_send_window_acquire(self.of, permits == nil and 1 or number(permits),
                                                 last)
    if code == ALLOWED then
        return last[0]
    end
    if code == DENIED then
        return false
    end
    return failure(code)
end

local function released(code)
    if code == ALLOWED or code == TICKET then
        return code == ALLOWED
    end
    return failure(code)
end

--- Releases all permits up to the number `of`, which acquire has returned. Returns false if no
--- permit in flight has this number.
function SendWindow:acknowledge(of)
    return released(lib.tollbar_send_window_acknowledge(self.of, number(of)))
end

--- Releases any `permits` permits, 1 by default. Returns false if fewer are in flight. A window has
--- either calls of release or calls of acknowledge.
function SendWindow:release(permits)
    return released(lib.tollbar_send_window_release(self.of,
                                                    permits == nil and 1 or number(permits)))
end

--- Sets the limit, 1,048,575 at most. If more permits are in flight, none is usable until enough of
--- them are released. Returns true.
function SendWindow:resize(limit)
    local code = lib.tollbar_send_window_resize(self.of, number(limit))
    if code ~= ALLOWED then
        return failure(code, "the limit")
    end
    return true
end

--- Returns the limit, the permits in flight, the permits that may be sent now, and the numbers of
--- the last permit that was sent and of the last one that was acknowledged.
function SendWindow:read()
    local code = lib.tollbar_send_window_read(self.of, seen)
    if code ~= ALLOWED then
        return failure(code)
    end
    return seen.limit, seen.in_flight, seen.usable, seen.sent, seen.acknowledged
end

-- A struct around the library's, because a program may give that one methods of its own.
ffi.cdef "typedef struct { tollbar_send_window of; } tollbar_lua_send_window;"

local new = ffi.metatype("tollbar_lua_send_window", {
    __index = SendWindow,
    __tostring = function()
        return "tollbar.send_window"
    end,
})

local send_window = {}

--- send_window(limit) makes a window of `limit` permits, 1,048,575 at most.
function send_window.new(limit)
    number(limit)
    local self = new()
    local code = lib.tollbar_send_window_resize(self.of, limit)
    if code ~= ALLOWED then
        return failure(code, "the limit")
    end
    return self
end

return send_window
