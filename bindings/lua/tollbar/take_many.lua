--- take_many: several limits in one request. All of them are charged, or none.
local ffi = require "ffi"
local core = require "tollbar.core"
require "tollbar.limiter"
require "tollbar.table"
require "tollbar.in_flight"

local lib = core.lib
local count, number, text, failure = core.count, core.number, core.text, core.failure
local MOST = 16
assert(lib.TOLLBAR_LIMITS_MOST == MOST)

local is_limiter, is_table = ffi.typeof "tollbar_lua_limiter", ffi.typeof "tollbar_lua_table"
local is_in_flight = ffi.typeof "tollbar_lua_in_flight"

-- Every call overwrites these, and reads them before the next call, because a Lua state runs one
-- call at a time. The keys are not copied: the caller's arrays keep them alive while C reads them.
local limits = ffi.new("tollbar_limit[?]", MOST)
local decisions = ffi.new("tollbar_decision[?]", MOST)
decisions[0].struct_size = ffi.sizeof "tollbar_decision"
local taken = core.struct("tollbar_taken")()
local tickets = ffi.new("tollbar_ticket[?]", MOST)

--- Raises an error about the limit of that index in the user's program, four levels up.
local function wrong(index, what)
    error("limit " .. index .. " " .. what, 5)
end

--- Reads a limit into limits[index - 1].
local function read(index, given)
    local of, key, cost, policy = given, nil, nil, nil
    if type(given) == "table" then
        of = given[1]
        if ffi.istype(is_table, of) then
            key, cost, policy = given[2], given[3], given[4]
        elseif not ffi.istype(is_in_flight, of) then
            cost = given[2]
        end
    end
    local limit = limits[index - 1]
    limit.cost = cost == nil and 1 or count(cost, 4)
    limit.most, limit.in_flight, limit.ticket = 0, nil, nil
    local class_name = type(given) == "table" and given.class_name
    limit.class_name = class_name and core.class_name(class_name, 5) or nil
    if ffi.istype(is_limiter, of) then
        limit.limiter, limit.table, limit.key, limit.length, limit.policy = of.handle, nil, nil, 0, 0
    elseif ffi.istype(is_table, of) and type(given) == "table" then
        limit.limiter, limit.table = nil, of.handle
        if key == nil then
            limit.key, limit.length = nil, 0
        else
            limit.key, limit.length = text("a key", key, 4), #key
        end
        limit.policy = policy == nil and 0 or number(policy, 4)
    elseif ffi.istype(is_in_flight, of) and type(given) == "table" and given[2] ~= nil and given[3] ~= nil then
        limit.limiter, limit.table, limit.policy, limit.cost = nil, nil, 0, 1
        limit.key, limit.length = text("a key", given[2], 4), #given[2]
        limit.in_flight, limit.most, limit.ticket = of.handle, number(given[3], 4), tickets + (index - 1)
    else
        wrong(index, "is neither a limiter, {limiter, cost}, {table, key, cost, policy} nor {in_flight, key, limit}")
    end
    if of.handle == nil then
        wrong(index, "is closed")
    end
end

local function read_all(given)
    if type(given) ~= "table" then
        error("limits are an array, not " .. type(given), 3)
    end
    local n = #given
    if n < 1 or n > MOST then
        error("a request has 1 to " .. MOST .. " limits, not " .. n, 3)
    end
    for i = 1, n do
        read(i, given[i])
    end
    return n
end

local function answer(code, n, given, each)
    if code < 0 then
        return failure(code)
    end
    for i = 1, n do
        if limits[i - 1].in_flight ~= nil then
            given[i].ticket = code == 0 and tickets[i - 1] or nil
        end
    end
    if each then
        for i = 1, n do
            local decision = decisions[i - 1]
            local allowed, retry_after, remaining, reset_after, reason = core.answer(decision.verdict, decision)
            each[i] = {
                allowed = allowed, retry_after = retry_after, remaining = remaining, reset_after = reset_after, reason = reason,
            }
        end
    end
    local allowed, retry_after, remaining, reset_after, reason = core.answer(code, taken)
    return allowed, retry_after, remaining, reset_after, reason, taken.bound + 1
end

local take = {}

--- Charges each of 1 to 16 limits with its cost, or charges none. A limit is a limiter, {limiter,
--- cost} or {table, key, cost, policy}. With the field class_name, as in {limiter, 1, class_name =
--- "low"}, the request is of that class of the limit's policy. Returns whether the request may
--- pass, the longest wait in seconds, the fewest permits that a limit has left, the seconds until
--- all limits are as good as fresh, the reason, and the index of the binding limit, from 1. Each
--- limit reads its own clock. A limit is also a permit in flight, {in_flight, key, limit}: if the
--- request may pass, the field `ticket` of that array is the permit's ticket. `each`, a table, gets
--- the decision of each limit. If the request is refused, each limit gives the decision that it
--- would make alone.
function take.many(given, each)
    local n = read_all(given)
    return answer(lib.tollbar_take_many(limits, n, each and decisions or nil, taken), n, given, each)
end

--- take_many at the caller's time, in nanoseconds, which must be on the scale of every limit.
function take.many_at(now, given, each)
    local n = read_all(given)
    return answer(lib.tollbar_take_many_at(limits, n, count(now), each and decisions or nil, taken), n, given, each)
end

return take
