--- Receipts of a table's keys: an estimate now, the real cost later. table.lua takes its methods
--- from here.
local ffi = require "ffi"
local core = require "tollbar.core"

local lib = core.lib
local count, number, failure = core.count, core.number, core.failure
local ALLOWED, YES = lib.TOLLBAR_ALLOWED, lib.TOLLBAR_YES

local decision, settled = core.struct("tollbar_decision")(), core.struct("tollbar_settled")()
local receipt = ffi.new("tollbar_receipt")
local SIZE = ffi.sizeof(receipt)

local receipts = {}

local function taken(code)
    if code ~= ALLOWED then
        return core.answer(code, decision, "the table")
    end
    local _, retry_after, remaining, reset_after, reason = core.answer(code, decision)
    return ffi.string(receipt, SIZE), retry_after, remaining, reset_after, reason
end

--- Charges an estimate of a request's cost, under the policy of that number, 0 if not given.
--- Returns the receipt by which `settle` settles the real cost, and then the results of `check`.
--- The first result is false if the request may not pass. A receipt is a string of 32 bytes, which
--- another process may settle.
--
--     local receipt, retry_after = tokens:take(user, 2000)
--     if not receipt then return try_later(retry_after) end
--     tokens:settle(receipt, answer(request).tokens)
function receipts:take(key, estimate, policy)
    local data, length = core.key(key)
    return taken(lib.tollbar_table_take(
        self.handle, policy == nil and 0 or number(policy), data, length, count(estimate), receipt, decision))
end

--- `take` at the caller's time.
function receipts:take_at(now, key, estimate, policy)
    local data, length = core.key(key)
    return taken(lib.tollbar_table_take_at(
        self.handle, policy == nil and 0 or number(policy), data, length, count(estimate), count(now), receipt, decision))
end

--- C's receipt, copied from a string of `take`.
local function read(text)
    core.text("a receipt", text, 3)
    if #text ~= SIZE then
        error("a receipt is a string of 32 bytes, not of " .. #text, 3)
    end
    ffi.copy(receipt, text, SIZE)
    return receipt
end

local function came(code)
    if code < 0 then
        return failure(code, "the table")
    end
    return tonumber(settled.given_back), tonumber(settled.rest), settled.first == YES
end

--- Settles a receipt at the real cost. Returns the permits that went back to the key, the permits
--- above the estimate that could not be charged, and whether this call was the first to settle the
--- receipt. If the cost is below the estimate, the unused permits go back to the key, without those
--- that the key has regained by refill since the charge. If the cost is above the estimate, the
--- difference is charged as a debt, which is one burst at most. Without a call the estimate stays
--- charged.
function receipts:settle(text, cost)
    return came(lib.tollbar_table_settle(self.handle, read(text), count(cost), settled))
end

--- `settle` at the caller's time, which is not before that of any call for this key that has
--- returned.
function receipts:settle_at(now, text, cost)
    return came(lib.tollbar_table_settle_at(self.handle, read(text), count(cost), count(now), settled))
end

--- `settle` that also returns the permits that the key has regained by refill. Unsafe for the
--- limit: each receipt that was open for the refill of a burst may let one more burst pass.
function receipts:settle_in_full(text, cost)
    return came(lib.tollbar_table_settle_in_full(self.handle, read(text), count(cost), settled))
end

return receipts
