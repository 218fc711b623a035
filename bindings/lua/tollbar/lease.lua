--- Lease: one limit over many machines, through Redis or Valkey. This module loads
--- libtollbar-redis, so it is loaded only when a lease is made.
local bit = require "bit"
local ffi = require "ffi"
local core = require "tollbar.core"
local line = require "tollbar.line"
local sleeping = require "tollbar.sleep"
require "tollbar.cdef_redis"

local lib = core.load("libtollbar-redis", core.redis_path())
-- A library of another ABI does not have this symbol.
assert(lib.tollbar_redis_abi_1 == 1)
local count, text, answer, failure = core.count, core.text, core.answer, core.failure
local ALLOWED, WAITS = lib.TOLLBAR_ALLOWED, lib.TOLLBAR_LEASE_WAITS

-- A struct around the pointer, as in limiter.lua. NULL means closed. `number` is that of the client's record in
-- `clients`: a finalizer finds no entry of a weak table.
ffi.cdef [[
typedef struct {
    tollbar_lease *handle;
    tollbar_lease_client *client;
    tollbar_lease_calls *calls;
    uint32_t number;
    char name[65];
} tollbar_lua_lease;
]]

-- poll(2) under a name of this module, because a program may declare its own. The values of POLLIN
-- and POLLOUT are those of Linux, the BSDs and macOS.
ffi.cdef [[
typedef struct { int fd; short events, revents; } tollbar_lua_pollfd;
int tollbar_lua_poll(tollbar_lua_pollfd *descriptors, unsigned long count, int milliseconds) __asm__("poll");
]]
local POLLIN, POLLOUT = 1, 4

local watched = ffi.new "tollbar_lua_pollfd"
local decision = core.struct("tollbar_decision")()
local word = ffi.new("uint32_t[1]")

local CIRCUITS = { [0] = "unknown", "closed", "open" }
local Lease = {}

-- The clients of this Lua state, each with the leases of one url: { url, client, names, count }. A lease whose
-- name is there already, and the 129th, begin another one.
local clients, made = {}, 0
local LEASES_MOST = 128

--- Gives the lease to a client of the url. Returns a code and the url's wrong column.
local function join(self, name, url)
    -- To read it makes a cdata, and may so run a finalizer, which ends a client.
    local handle = self.handle
    for number, one in pairs(clients) do
        if one.url == url and one.count < LEASES_MOST and not one.names[name] then
            local code = lib.tollbar_lease_client_add(one.client, handle)
            if code == ALLOWED then
                one.names[name], one.count = true, one.count + 1
                self.client, self.number, self.name = one.client, number, name
            end
            return code
        end
    end
    local asks, column = ffi.new("tollbar_lease_client *[1]"), ffi.new("size_t[1]")
    local code = lib.tollbar_lease_client_new(handle, url, #url, column, asks)
    if code ~= ALLOWED then
        return code, tonumber(column[0])
    end
    made = made + 1
    clients[made] = { url = url, client = asks[0], names = { [name] = true }, count = 1 }
    self.client, self.number, self.name = asks[0], made, name
    return code
end

--- Takes the lease from its client, and ends the client after its last lease. Returns a code.
local function part(self, client, handle, patience)
    -- It may run another lease's finalizer.
    local name = ffi.string(self.name)
    local one = clients[self.number]
    if one.count == 1 then
        clients[self.number] = nil
        return lib.tollbar_lease_client_close(client, patience)
    end
    one.names[name], one.count = nil, one.count - 1
    return lib.tollbar_lease_client_remove(client, handle, patience)
end

-- What the leases that ask by the program's own client have in Lua: its function `run`, and whether
-- a call of it has no reply yet.
local callers = setmetatable({}, { __mode = "k" })
local new_call = core.struct("tollbar_lease_call")
local SCRIPT = ffi.string(lib.tollbar_lease_calls_script())

--- Copies the keys and arguments of a call.
local function strings_of(call)
    local strings = {}
    for i = 1, tonumber(call.count) do
        local part = call.parts[i - 1]
        strings[i] = ffi.string(part.bytes, part.length)
    end
    return strings
end

--- Passes the result of `run` on: a table with the script's string, false and the store's error, or
--- nil and why there is no reply.
local function pass_on(calls, ran, reply, why)
    local text = type(reply) == "table" and reply[1] or reply
    if ran and type(text) == "string" then
        return lib.tollbar_lease_calls_answered(calls, text, #text)
    end
    local words = tostring(ran and why or reply)
    if ran and reply == false then
        return lib.tollbar_lease_calls_refused(calls, words, #words)
    end
    return lib.tollbar_lease_calls_lost(calls, words, #words)
end

--- Makes the call that is due, by the program's client. Returns a code, the milliseconds until the
--- next turn, and whether it made a call.
local function turn(self, flags)
    local caller, call = callers[self], new_call()
    if caller.calls then
        -- Another light thread waits for a reply.
        return ALLOWED, 1, true
    end
    local code = lib.tollbar_lease_calls_turn(self.calls, flags, call)
    if code ~= ALLOWED or call.count == 0 then
        return code, call.wait_ms, false
    end
    caller.calls = true
    local ran, reply, why = pcall(caller.run, SCRIPT, tonumber(call.keys), unpack(strings_of(call)))
    caller.calls = false
    -- The lease may have been closed meanwhile.
    return self.calls == nil and ALLOWED or pass_on(self.calls, ran, reply, why), 0, true
end

--- Lets the program's client tell the store what it does not know, for so many nanoseconds.
local function report(self, patience)
    local ends, sleep = lib.tollbar_lease_now(self.handle) + patience, sleeping.of(nil)
    while self.calls ~= nil and lib.tollbar_lease_now(self.handle) < ends do
        local code, wait, calls = turn(self, lib.TOLLBAR_LEASE_CLOSING)
        if code ~= ALLOWED or wait == 0 and not calls then
            return
        elseif wait ~= 0 and sleep then
            sleep(0.001)
        elseif wait ~= 0 then
            ffi.C.tollbar_lua_poll(nil, 0, 1)
        end
    end
end

--- Does the pending work. Returns a code, and the milliseconds until the next turn.
local function tick(self)
    if self.calls ~= nil then
        return turn(self, 0)
    end
    return lib.tollbar_lease_client_tick(self.client, word), word[0]
end

--- Returns a key's bytes and their number. nil and the empty key are the key of a limit for all
--- requests.
local function bytes(key)
    if key == nil then
        return nil, 0
    end
    return text("a key", key, 3), #key
end

--- Takes `cost` permits of the key, 1 by default. Returns true if the request may pass. The call
--- never waits for the store.
function Lease:allow(key, cost)
    local data, length = bytes(key)
    local code = lib.tollbar_lease_check(self.handle, data, length, cost == nil and 1 or count(cost), nil)
    if code >= 0 then
        return code == ALLOWED
    end
    return failure(code, "the lease")
end

--- `allow`, which also returns the seconds until the request could pass (an estimate) and the
--- permits that this machine has. The reason "pending" (the fifth result) says that only the store
--- can tell: `wait` asks it.
function Lease:check(key, cost)
    local data, length = bytes(key)
    return answer(lib.tollbar_lease_check(self.handle, data, length, cost == nil and 1 or count(cost), decision), decision, "the lease")
end

--- Sleeps until the client's descriptor is ready, for a millisecond at most.
local function sleep_until_ready(self)
    if self.calls ~= nil then
        ffi.C.tollbar_lua_poll(nil, 0, 1)
        return
    end
    watched.fd = lib.tollbar_lease_client_fd(self.client, word)
    local reads = bit.band(word[0], lib.TOLLBAR_EVENT_READ) ~= 0
    local writes = bit.band(word[0], lib.TOLLBAR_EVENT_WRITE) ~= 0
    watched.events = (reads and POLLIN or 0) + (writes and POLLOUT or 0)
    -- poll(2) ignores a descriptor below 0, and sleeps.
    ffi.C.tollbar_lua_poll(watched, 1, 1)
end

local new_request = core.struct("tollbar_lease_request")

--- Takes `cost` permits of the key, and waits up to `timeout` seconds for the store's answer if this
--- machine does not have them: about one round trip. The call ticks the client meanwhile. Returns
--- true if it took them, else false and the reason. It does not wait until the limit refills: while
--- the store answers, it refuses what the store refuses now. While the store does not answer, it
--- decides at once as `allow` does.
---
--- With the reason "pending" no answer came in time. The store may still charge such a request, or
--- that of a killed light thread. Other requests of this machine may then spend its permits for at
--- most 250 ms, after which the permits are lost. In nginx other requests go on during the sleep
--- (ngx.sleep). Elsewhere the thread sleeps, or the event loop's `sleep`, a function of seconds.
function Lease:wait(key, timeout, cost, sleep)
    local data, length = bytes(key)
    local request = new_request()
    request.cost = cost == nil and 1 or count(cost)
    request.until_ns = line.deadline(lib.tollbar_lease_now(self.handle), core.patience(timeout))
    sleep = sleeping.of(sleep)
    local code = lib.tollbar_lease_poll(self.handle, data, length, request, decision)
    while code == WAITS do
        code = tick(self)
        if code ~= ALLOWED then
            break
        end
        code = lib.tollbar_lease_poll(self.handle, data, length, request, decision)
        if code == WAITS then
            if sleep then
                sleep(0.001)
            else
                sleep_until_ready(self)
            end
        end
    end
    if code < 0 then
        return failure(code, "the lease")
    end
    return line.answer(code, decision.reason)
end

--- Decides as `check` would from this machine's permits, and takes nothing.
function Lease:peek(key, cost)
    local data, length = bytes(key)
    return answer(lib.tollbar_lease_peek(self.handle, data, length, cost == nil and 1 or count(cost), decision), decision, "the lease")
end

local new_stats = core.struct("tollbar_lease_stats")
local COUNTS = { "granted", "asked", "overdrawn", "fallback_permits", "uncounted", "denied", "queue_full", "opened",
    "owed", "full", "denied_pending", "denied_by_store", "denied_by_fallback" }

--- Returns the counts of this machine's leases, under the names of tollbar_lease_stats. `circuit`
--- is "closed" if the store answers, "open" if it does not, and "unknown" if no client has reached
--- it yet.
function Lease:stats()
    local stats = new_stats()
    local code = lib.tollbar_lease_get_stats(self.handle, stats)
    if code ~= ALLOWED then
        return failure(code, "the lease")
    end
    local told = { circuit = CIRCUITS[stats.circuit] }
    for _, name in ipairs(COUNTS) do
        told[name] = tonumber(stats[name])
    end
    return told
end

--- Does the client's pending work without waiting, and returns the seconds until the next call. Leases of
--- one url have one client, so the tick of one is the tick of all. Call it in nginx from ngx.timer.every in each worker, elsewhere from the program's loop. With
--- `run` it waits for the reply of that function.
function Lease:tick()
    local code, wait = tick(self)
    if code ~= ALLOWED then
        return failure(code, "the lease")
    end
    return wait / 1000
end

--- Returns the text of the store's last error, or nil if there is none.
function Lease:why()
    local words = self.calls ~= nil and lib.tollbar_lease_calls_error(self.calls)
        or lib.tollbar_lease_client_lease_error(self.client, self.handle)
    words = ffi.string(words)
    return words ~= "" and words or nil
end

--- Reports to the store the permits that it has not charged yet, for at most `seconds` (0 by
--- default), and ends the lease. Returns false if the time was too short. Later calls are errors. A
--- second close returns true.
function Lease:close(seconds)
    local patience = seconds == nil and 0 or core.patience(seconds) / 1000000ULL
    if self.calls ~= nil and seconds then
        report(self, patience * 1000000ULL)
    end
    local client, calls, handle = self.client, self.calls, self.handle
    self.client, self.calls, self.handle = nil, nil, nil
    local code = ALLOWED
    if calls ~= nil then
        code = lib.tollbar_lease_calls_close(calls)
    elseif client ~= nil then
        code = part(self, client, handle, patience < 0xffffffffULL and patience or 0xffffffffULL)
    end
    lib.tollbar_lease_close(handle)
    return code == ALLOWED
end

local new_handle = ffi.metatype("tollbar_lua_lease", {
    __index = Lease,
    __gc = function(self)
        self:close()
    end,
    __tostring = function(self)
        return self.handle == nil and "tollbar.lease, closed" or "tollbar.lease, circuit " .. self:stats().circuit
    end,
})

local new_options = core.struct("tollbar_lease_options")
local KNOWN = { nodes = true, url = true, run = true, capacity = true, life = true, overdraft = true, fallback = true,
    inexact = true, refill = true }
local FALLBACKS = { share = lib.TOLLBAR_FALLBACK_SHARE, deny = lib.TOLLBAR_FALLBACK_DENY, allow = lib.TOLLBAR_FALLBACK_ALLOW }
local lease = {}

--- lease("logins", "100/s burst 50", { nodes = 4, url = "redis://127.0.0.1" }) makes this machine's
--- part of a limit that four machines share. In place of a url, `run` calls a script by the Redis
--- client that the program has, for Sentinel, clusters and TLS. In OpenResty:
--
--     local function run(script, keys, ...) return red:eval(script, keys, ...) end
--
--- It returns what lua-resty-redis does: a table, false and the store's error, or nil and why there is
--- no reply. Calls of one lease are one after the other. Processes that are forked later (nginx's workers)
--- belong to the same machine. With `refill = true` every key's bucket counts as empty after the
--- store has lost data, and refills. Otherwise a key that the store has lost has a full bucket.
function lease.new(name, policy, options)
    text("a name", name)
    options = core.options(options, KNOWN)
    if options.run == nil then
        text("a url", options.url)
    elseif type(options.run) ~= "function" or options.url ~= nil then
        error("run is a function, in place of a url", 2)
    end
    local how = new_options()
    how.nodes = core.number(options.nodes)
    how.capacity = options.capacity == nil and 4096 or count(options.capacity)
    how.life_ns = options.life == nil and 0 or core.patience(options.life)
    how.fallback = core.choice("fallback", options.fallback or "share", FALLBACKS)
    if options.overdraft ~= nil then
        how.overdraft, how.flags = count(options.overdraft), lib.TOLLBAR_LEASE_HAS_OVERDRAFT
    end
    if options.inexact then
        how.flags = how.flags + lib.TOLLBAR_LEASE_INEXACT
    end
    if options.refill then
        how.flags = how.flags + lib.TOLLBAR_LEASE_REFILL
    end
    local spec, message, number = core.policy(policy)
    if not spec then
        return nil, message, number
    end
    -- The Lua handle is made before the C object, so that no C object is lost if Lua has no memory
    -- for the handle.
    local self = new_handle()
    local handle = ffi.new("tollbar_lease *[1]")
    local code, column = lib.tollbar_lease_new_shared(name, #name, spec, how, handle)
    if code ~= ALLOWED then
        return failure(code, "lease " .. name)
    end
    self.handle = handle[0]
    if options.run then
        local calls = ffi.new("tollbar_lease_calls *[1]")
        code = lib.tollbar_lease_calls_new(self.handle, calls)
        if code ~= ALLOWED then
            return failure(code, "lease " .. name)
        end
        self.calls, callers[self] = calls[0], { run = options.run, calls = false }
        return self
    end
    code, column = join(self, name, options.url)
    if code ~= ALLOWED then
        -- The message leaves out the URL, which may contain a password.
        return failure(code, column and string.format("lease %s: column %d of the url", name, column) or "lease " .. name)
    end
    return self
end

return lease
