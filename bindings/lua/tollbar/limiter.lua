--- Limiter: one state under any policy.
local ffi = require "ffi"
local core = require "tollbar.core"
local line = require "tollbar.line"
local sleeping = require "tollbar.sleep"

local lib = core.lib
local count, number, answer, failure = core.count, core.number, core.answer, core.failure
local ALLOWED, TSC = lib.TOLLBAR_ALLOWED, lib.TOLLBAR_CLOCK_TSC

-- A struct around the pointer, so that a method loads the pointer and calls C, without a lookup by
-- name and without an allocation. NULL means closed, and C refuses it.
ffi.cdef "typedef struct { tollbar_limiter *handle; } tollbar_lua_limiter;"

-- Every call overwrites these, and reads them before the next call, because a Lua state runs one
-- call at a time.
local decision = core.struct("tollbar_decision")()
local word = ffi.new("uint64_t[1]")
local booked = ffi.new "tollbar_reservation"

local Limiter = {}

--- Takes `cost` permits, 1 if not given. Returns true if the request may pass. This is the fastest
--- call.
function Limiter:allow(cost)
    local code = lib.tollbar_limiter_check(self.handle, cost == nil and 1 or count(cost), nil)
    if code >= 0 then
        return code == ALLOWED
    end
    return failure(code, "the limiter")
end

--- Takes `cost` permits. Returns whether the request may pass; the seconds until it could pass, 0
--- if it passes, math.huge if it never can; the permits left; and the seconds until the limiter is
--- as good as fresh.
function Limiter:check(cost)
    return answer(lib.tollbar_limiter_check(self.handle, cost == nil and 1 or count(cost), decision), decision, "the limiter")
end

--- `allow` at the caller's time, in nanoseconds of one clock.
function Limiter:allow_at(now, cost)
    local code = lib.tollbar_limiter_check_at(self.handle, cost == nil and 1 or count(cost), count(now), nil)
    if code >= 0 then
        return code == ALLOWED
    end
    return failure(code, "the limiter")
end

--- `check` at the caller's time, in nanoseconds of one clock.
function Limiter:check_at(now, cost)
    local code = lib.tollbar_limiter_check_at(self.handle, cost == nil and 1 or count(cost), count(now), decision)
    return answer(code, decision, "the limiter")
end

--- `check` of a request of a class of the policy ("100/s reserve low 20 high 0"): it passes only if
--- the class's reserve is left after it. `class_name` is the name, or the number, which is "1" for
--- the first class.
function Limiter:check_class(class_name, cost)
    local code = lib.tollbar_limiter_check_class(
        self.handle, cost == nil and 1 or count(cost), core.class_name(class_name), decision)
    return answer(code, decision, "the limiter")
end

--- `check_class` at the caller's time, in nanoseconds of one clock.
function Limiter:check_class_at(now, class_name, cost)
    local code = lib.tollbar_limiter_check_class_at(
        self.handle, cost == nil and 1 or count(cost), core.class_name(class_name), count(now), decision)
    return answer(code, decision, "the limiter")
end

--- Returns what `check` would return, and takes nothing.
function Limiter:peek(cost)
    return answer(lib.tollbar_limiter_peek(self.handle, cost == nil and 1 or count(cost), decision), decision, "the limiter")
end

--- Takes all permits that are left, `most` at the most, and returns their number.
function Limiter:take_up_to(most)
    local code = lib.tollbar_limiter_take_up_to(self.handle, count(most), word)
    if code < 0 then
        return failure(code, "the limiter")
    end
    return code == ALLOWED and tonumber(word[0]) or 0
end

--- `take_up_to` at the caller's time, in nanoseconds.
function Limiter:take_up_to_at(now, most)
    local code = lib.tollbar_limiter_take_up_to_at(self.handle, count(most), count(now), word)
    if code < 0 then
        return failure(code, "the limiter")
    end
    return code == ALLOWED and tonumber(word[0]) or 0
end

--- Charges `cost` permits without a decision, after the work, when the cost or the failure is
--- known. Returns the permits that could not be charged. A token bucket holds a debt of one burst,
--- windows and logs hold none.
function Limiter:charge(cost)
    local code = lib.tollbar_limiter_charge(self.handle, cost == nil and 1 or count(cost), word)
    if code < 0 then
        return failure(code, "the limiter")
    end
    return tonumber(word[0])
end

--- Returns the time that calls without a time use: nanoseconds of UTC since 2025-03-13, a uint64_t.
function Limiter:now()
    local code = lib.tollbar_limiter_now(self.handle, word)
    if code < 0 then
        return failure(code, "the limiter")
    end
    return word[0]
end

--- What a call that books returns.
local function booking(code, reservation)
    if code < 0 then
        return failure(code, "the limiter")
    end
    if code ~= ALLOWED then
        return false
    end
    return core.seconds(reservation.wait_ns), reservation
end

--- Takes `cost` permits ahead of time. Returns the seconds after which the caller must act, not
--- earlier, and the reservation for `cancel`. Returns false if that would be more than `patience`
--- seconds, or if the algorithm cannot book ahead.
function Limiter:reserve(patience, cost)
    local reservation = ffi.new "tollbar_reservation"
    local code = lib.tollbar_limiter_reserve(self.handle, cost == nil and 1 or count(cost), core.patience(patience), reservation)
    return booking(code, reservation)
end

--- `reserve` at the caller's time, in nanoseconds.
function Limiter:reserve_at(now, patience, cost)
    local reservation = ffi.new "tollbar_reservation"
    local code = lib.tollbar_limiter_reserve_at(
        self.handle, cost == nil and 1 or count(cost), core.patience(patience), count(now), reservation)
    return booking(code, reservation)
end

--- Gives back the permits of a reservation that the caller does not use, and returns the number
--- that came back. The latest reservation comes back whole. An earlier one usually gives back
--- nothing, because the later callers keep their departures. Cancel a reservation once only.
function Limiter:cancel(reservation)
    local code = lib.tollbar_limiter_cancel(self.handle, reservation, word)
    if code < 0 then
        return failure(code, "the limiter")
    end
    return tonumber(word[0])
end

--- What line.wait calls. The limiter may be closed while its callers sleep: C refuses a NULL.
local function calls(self, sleep)
    return line.calls({
        sleep = sleep,
        clock = function() return core.clock_now(TSC) end,
        reserve = function(cost, patience) return lib.tollbar_limiter_reserve(self.handle, cost, patience, booked) end,
        check = function(cost) return lib.tollbar_limiter_check(self.handle, cost, decision) end,
        peek = function(cost) return lib.tollbar_limiter_peek(self.handle, cost, decision) end,
        cancel = function(reservation) return lib.tollbar_limiter_cancel(self.handle, reservation, word) end,
    }, decision, booked)
end

--- Takes `cost` permits, and sleeps up to `timeout` seconds for them. Returns true if it took them.
--- Returns false and the reason at once, and takes nothing, if the limiter will not have them in
--- time, or if `waiters` callers wait already ("queue full"). Callers get their permits in the
--- order in which they came. In nginx other requests go on during the sleep (ngx.sleep). Elsewhere
--- the thread sleeps, or the event loop's `sleep`, a function of seconds.
function Limiter:wait(timeout, cost, sleep)
    local patience = core.patience(timeout)
    cost = cost == nil and 1 or count(cost)
    local code, reason
    sleep = sleeping.of(sleep)
    if sleep then
        code, reason = line.wait(self, "", calls(self, sleep), cost, line.deadline(core.clock_now(TSC), patience))
    else
        code = lib.tollbar_limiter_wait(self.handle, cost, patience, decision)
        reason = decision.reason
    end
    if code < 0 then
        return failure(code, "the limiter")
    end
    return line.answer(code, reason)
end

local new_state = core.struct("tollbar_limiter_state")

--- Returns the counts of decisions of all threads: allowed, denied, never. Each check of a waiting
--- caller counts as one.
function Limiter:counts()
    local state = new_state()
    local code = lib.tollbar_limiter_get_state(self.handle, state)
    if code < 0 then
        return failure(code, "the limiter")
    end
    return { allowed = tonumber(state.allowed), denied = tonumber(state.denied), never = tonumber(state.never) }
end

--- Makes the limiter fresh.
function Limiter:reset()
    return core.yes(lib.tollbar_limiter_reset(self.handle), "the limiter")
end

--- Changes the policy. The limiter keeps the permits that it has left, up to the new burst; with
--- `keep` "time" the time until its debt is paid, and with "reset" nothing. It can be changed to
--- 4,096 different policies in its life.
function Limiter:set_policy(to, keep)
    local kept = core.choice("keep", keep or "count", core.KEEPS)
    local spec, message, code = core.policy(to)
    if not spec then
        return nil, message, code
    end
    return core.yes(lib.tollbar_limiter_set_policy(self.handle, spec, kept), "the limiter")
end

--- `set_policy` at the caller's time, for a limiter that is asked at the caller's time.
function Limiter:set_policy_at(now, to, keep)
    local kept = core.choice("keep", keep or "count", core.KEEPS)
    local spec, message, code = core.policy(to)
    if not spec then
        return nil, message, code
    end
    return core.yes(lib.tollbar_limiter_set_policy_at(self.handle, spec, kept, count(now)), "the limiter")
end

--- Returns the policy's text.
function Limiter:policy()
    local spec = core.new_spec()
    local code = lib.tollbar_limiter_get_policy(self.handle, spec)
    if code < 0 then
        return failure(code, "the limiter")
    end
    return core.print_policy(spec)
end

--- Frees the limiter now, before the garbage collector does. Later calls are errors. A second close
--- does nothing.
function Limiter:close()
    lib.tollbar_limiter_free(self.handle)
    self.handle = nil
end

local new_handle = ffi.metatype("tollbar_lua_limiter", {
    __index = Limiter,
    __gc = Limiter.close,
    __tostring = function(self)
        return self.handle == nil and "tollbar.limiter, closed" or "tollbar.limiter " .. self:policy()
    end,
})

local new_options = core.struct("tollbar_limiter_options")
local KNOWN = { clock = true, credit = true, waiters = true }
local limiter = {}

--- limiter("100/s burst 20", { clock = "tsc" }) makes a limiter. The clocks are tsc, monotonic,
--- coarse and wall. With `credit = true` threads take permits in advance: the bound stays, and up
--- to an eighth of the burst may be refused early. Only gcra has credit. At most `waiters` callers
--- wait at one time, 1024 by default.
function limiter.new(policy, options)
    options = core.options(options, KNOWN)
    local how = new_options()
    how.clock = core.choice("clock", options.clock or "tsc", core.CLOCKS)
    how.waiters = options.waiters == nil and 0 or number(options.waiters)
    how.credit = options.credit and lib.TOLLBAR_CREDIT_ON or lib.TOLLBAR_CREDIT_OFF
    local spec, message, number = core.policy(policy)
    if not spec then
        return nil, message, number
    end
    local out = ffi.new("tollbar_limiter *[1]")
    -- The Lua handle is made before the C object, so that no C object is lost if Lua has no memory
    -- for the handle.
    local self = new_handle()
    local code = lib.tollbar_limiter_new(spec, how, out)
    if code ~= ALLOWED then
        return failure(code, "policy " .. policy)
    end
    self.handle = out[0]
    line.bound(self, options.waiters)
    return self
end

return limiter
