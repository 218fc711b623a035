--- Queue: items wait, and leave in the order of their offers at the pace of a policy.
local ffi = require "ffi"
local core = require "tollbar.core"
local line = require "tollbar.line"
local sleeping = require "tollbar.sleep"

local lib = core.lib
local count, number, failure = core.count, core.number, core.failure
local ALLOWED, DENIED, YES = lib.TOLLBAR_ALLOWED, lib.TOLLBAR_DENIED, lib.TOLLBAR_YES
-- A caller that no semaphore can wake looks this often whether another light thread has made room.
local BEAT = 0.01
--- Nanoseconds after its time at which a sleeper of another event loop than nginx's is dead.
local SLACK = 2e9

-- Every call overwrites these, and reads them before the next call, because a Lua state runs one
-- call at a time.
local word, out = ffi.new("uint64_t[1]"), ffi.new("void *[1]")
local pointer, address = ffi.typeof("void *"), ffi.typeof("uintptr_t")

local Queue = {}
Queue.__index = Queue

--- C keeps a number in place of each item.
local function removed(self)
    local name = tonumber(ffi.cast(address, out[0]))
    local item = self.items[name]
    self.items[name] = nil
    return item
end

--- Wakes the light threads that sleep. They try again.
local function ring(bells)
    for bell in pairs(bells) do
        bells[bell] = nil
        bell:post(1)
    end
end

--- Wakes those that wait for room and, if the queue is closed, those that wait for an item.
local function left(self)
    ring(self.offering)
    if self.closed then
        ring(self.taking)
    end
end

local function now_of(self)
    lib.tollbar_queue_now(self.handle, word)
    return word[0]
end

--- Returns how many callers of `asleep` live. A light thread that nginx has killed does not wait at
--- its bell.
local function living(asleep, now)
    local live = 0
    for caller in pairs(asleep) do
        local bell = caller.bell
        if bell and bell:count() < 0 or not bell and now < caller.dead_at then
            live = live + 1
        else
            asleep[caller] = nil
        end
    end
    return live
end

--- Repeats `attempt` while it is denied, until `deadline`. Between the attempts the light thread
--- sleeps in the event loop until the next departure, or until its bell rings. It does not sleep if
--- `waiters` callers of `asleep` do, unless `asleep` is nil.
local function until_deadline(self, attempt, deadline, sleeps, bells, asleep)
    local semaphore = line.semaphore()
    local caller
    while true do
        local code = attempt()
        local now = now_of(self)
        if code ~= DENIED or now >= deadline then
            return code
        end
        local at = deadline
        local departs = lib.tollbar_queue_next_departure_at(self.handle, now, word) == YES
        if departs and word[0] > now and word[0] < at then
            at = word[0]
        end
        -- nginx's timers have milliseconds.
        local seconds = math.min(math.ceil(tonumber(at - now) / 1e6) / 1e3, semaphore and 3600 or BEAT)
        if asleep then
            if not caller and living(asleep, now) >= self.waiters then
                return DENIED
            end
            caller = { dead_at = now + seconds * 1e9 + SLACK }
            asleep[caller] = true
        end
        if semaphore then
            local bell = semaphore.new(0)
            if caller then
                caller.bell = bell
            end
            bells[bell] = true
            bell:wait(seconds)
            bells[bell] = nil
        else
            sleeps(seconds)
        end
        if caller then
            asleep[caller] = nil
        end
    end
end

local function offered(self, code, name, item, ticket)
    if code == ALLOWED then
        self.items[name] = item
        self.named = name
        ring(self.taking)
        return ticket
    elseif code == DENIED then
        return false, "queue full"
    end
    return failure(code, "the queue")
end

local function new_item(self, item)
    if item == nil then
        error("an item is a value other than nil", 3)
    end
    return self.named + 1, ffi.new("tollbar_queue_ticket")
end

--- Puts an item, any value but nil, behind all others, and sleeps up to `patience` seconds for
--- room, 0 by default. Returns its ticket, which has `number`, `ahead` and `spare`; false and
--- "queue full" if there was no room, or at once if `waiters` callers sleep already; nil, a message
--- and a code if the queue is closed. In nginx other requests go on during the sleep. Elsewhere the
--- thread sleeps, or the event loop's `sleep`, a function of seconds.
function Queue:offer(item, patience, sleep)
    local name, ticket = new_item(self, item)
    patience = core.patience(patience or 0)
    local sleeps = patience > 0 and sleeping.of(sleep)
    if not sleeps then
        local code = lib.tollbar_queue_offer_within(
            self.handle, ffi.cast(pointer, name), patience, ticket)
        return offered(self, code, name, item, ticket)
    end
    local code = until_deadline(self, function()
        -- Another light thread may have had its turn during the sleep, and the name.
        name = self.named + 1
        return lib.tollbar_queue_offer(self.handle, ffi.cast(pointer, name), ticket)
    end, line.deadline(now_of(self), patience), sleeps, self.offering, self.asleep)
    return offered(self, code, name, item, ticket)
end

--- `offer` without a sleep, at the caller's time, in nanoseconds of one clock.
function Queue:offer_at(now, item)
    local name, ticket = new_item(self, item)
    local code = lib.tollbar_queue_offer_at(
        self.handle, ffi.cast(pointer, name), count(now), ticket)
    return offered(self, code, name, item, ticket)
end

local function taken(self, code)
    if code == ALLOWED then
        local item = removed(self)
        left(self)
        return item
    elseif code == DENIED then
        return nil
    end
    return failure(code, "the queue")
end

--- Takes the oldest item, and sleeps up to `patience` seconds until it may leave, 0 by default.
--- Returns nil if none may leave in time; nil, a message and a code if the queue is closed and
--- empty. `sleep` is that of `offer`.
function Queue:take(patience, sleep)
    patience = core.patience(patience or 0)
    local sleeps = patience > 0 and sleeping.of(sleep)
    if not sleeps then
        return taken(self, lib.tollbar_queue_take_within(self.handle, patience, out))
    end
    local code = until_deadline(self, function()
        return lib.tollbar_queue_take(self.handle, out)
    end, line.deadline(now_of(self), patience), sleeps, self.taking)
    return taken(self, code)
end

--- `take` without a sleep, at the caller's time, in nanoseconds of one clock.
function Queue:take_at(now)
    return taken(self, lib.tollbar_queue_take_at(self.handle, count(now), out))
end

--- Returns the seconds until `take` will next return an item, 0 if it does now, math.huge if it
--- never will. nil: the queue is empty.
function Queue:next_departure()
    local now = now_of(self)
    if lib.tollbar_queue_next_departure_at(self.handle, now, word) ~= YES then
        return nil
    end
    return word[0] > now and core.seconds(word[0] - now) or 0
end

--- The time of the next departure at the caller's time, in nanoseconds of one clock, a uint64_t.
--- nil: the queue is empty.
function Queue:next_departure_at(now)
    local departs = lib.tollbar_queue_next_departure_at(self.handle, count(now), word) == YES
    return departs and word[0] or nil
end

local function got(self, code)
    if code ~= YES then
        return nil
    end
    local item = removed(self)
    left(self)
    return item
end

--- Takes an item out of the queue before it leaves. Returns the item, or nil if it has left. The
--- items behind it move up.
function Queue:cancel(ticket)
    return got(self, lib.tollbar_queue_cancel(self.handle, ticket, out))
end

--- Takes the oldest item at once, without the policy; nil if the queue is empty.
function Queue:drain()
    return got(self, lib.tollbar_queue_drain(self.handle, out))
end

--- Refuses all offers from now on, and wakes the callers that sleep. Items in the queue stay, and
--- can be taken. The garbage collector frees the queue.
function Queue:close()
    lib.tollbar_queue_close(self.handle)
    self.closed = true
    ring(self.taking)
    ring(self.offering)
end

--- Returns the number of items. A cancelled item counts as long as an older item is in the queue.
function Queue:length()
    lib.tollbar_queue_length(self.handle, word)
    return tonumber(word[0])
end

--- Returns the time of the queue's clock: nanoseconds of UTC since 2025-03-13, a uint64_t.
function Queue:now()
    return now_of(self)
end

function Queue:__tostring()
    return "tollbar.queue of " .. self:length()
end

--- The library's default.
local WAITERS = 1024
local new_options = core.struct("tollbar_queue_options")
local KNOWN = { clock = true, spare = true, waiters = true }
local queue = {}

--- queue("10/s algo pacer", 1000, { spare = 100 }) makes a queue of this Lua state, in which up to
--- 1000 items wait. Items that may leave at once do not wait. Up to `spare` items that overflow
--- wait behind these, and go into the first queue when that has room, in their order. At most
--- `waiters` callers sleep in `offer` at one time, 1024 by default; others are refused at once.
function queue.new(policy, capacity, options)
    options = core.options(options, KNOWN)
    local how = new_options()
    how.clock = core.choice("clock", options.clock or "tsc", core.CLOCKS)
    how.spare = options.spare == nil and 0 or number(options.spare)
    how.waiters = options.waiters == nil and 0 or number(options.waiters)
    capacity = count(capacity)
    local spec, message, code = core.policy(policy)
    if not spec then
        return nil, message, code
    end
    local made = ffi.new("tollbar_queue *[1]")
    local self = { items = {}, named = 0, offering = {}, taking = {}, asleep = {}, closed = false }
    self.waiters = how.waiters == 0 and WAITERS or how.waiters
    code = lib.tollbar_queue_new(spec, capacity, how, made)
    if code ~= ALLOWED then
        return failure(code, "policy " .. policy)
    end
    self.handle = ffi.gc(made[0], lib.tollbar_queue_free)
    return setmetatable(self, Queue)
end

return queue
