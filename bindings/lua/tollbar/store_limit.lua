--- StoreLimit: a limit that Redis or Valkey decides, by the Redis client of the program. This module
--- loads libtollbar-redis, so it is loaded only when such a limit is made.
local ffi = require "ffi"
local core = require "tollbar.core"
require "tollbar.cdef_redis"

local lib = core.load("libtollbar-redis", core.redis_path())
-- A library of another ABI does not have this symbol.
assert(lib.tollbar_redis_abi_1 == 1)
local count, text, answer, failure = core.count, core.text, core.answer, core.failure
local ALLOWED, REPLY = lib.TOLLBAR_ALLOWED, lib.TOLLBAR_E_STORE_REPLY
local CHECK, PEEK = lib.TOLLBAR_STORE_CHECK, lib.TOLLBAR_STORE_PEEK
local UP_TO, RESET = lib.TOLLBAR_STORE_UP_TO, lib.TOLLBAR_STORE_RESET

-- A call overwrites these and reads them after its script has run, when it no longer yields.
local decision, taken = core.struct("tollbar_decision")(), ffi.new("uint64_t[1]")
-- The most numbers that a script returns, and more.
local ROOM = 16
local numbers = ffi.new("int64_t[?]", ROOM)
-- Each call has a question of its own, because light threads may ask while its script runs.
local new_question = core.struct("tollbar_store_question")

local StoreLimit = {}
StoreLimit.__index = StoreLimit

--- Copies the numbers of a reply to `numbers`, and returns how many they are; nil if the reply is
--- something else. Some clients return integers as text or as an int64_t.
local function read(reply)
    if type(reply) ~= "table" or #reply > ROOM then
        return nil
    end
    for i = 1, #reply do
        local number = tonumber(reply[i])
        if not number or number % 1 ~= 0 or math.abs(number) > 2^53 then
            return nil
        end
        numbers[i - 1] = number
    end
    return #reply
end

--- Runs the script of a question. The arguments are texts, because a client would write large
--- numbers with an exponent.
local function run_script(self, question)
    local args = {}
    for i = 1, question.arg_count do
        args[i] = string.format("%d", tonumber(question.args[i - 1]))
    end
    return self.run(ffi.string(question.script), ffi.string(question.key, question.key_length), unpack(args))
end

--- Asks the store, and returns what `of` makes of the answer's code.
local function ask(self, what, key, cost, of)
    text("a key", key)
    local question = new_question()
    local code = lib.tollbar_store_ask(self.handle, what, key, #key, cost, question)
    if code ~= ALLOWED then
        return failure(code, "the store limit")
    end
    local reply, why = {}, nil
    if question.script ~= nil then
        reply, why = run_script(self, question)
        if not reply then
            return nil, "the store limit: " .. tostring(why)
        end
    end
    local found = read(reply)
    if not found then
        return failure(REPLY, "the store limit")
    end
    return of(lib.tollbar_store_answer(self.handle, question, numbers, found, decision, taken))
end

local function decided(code)
    return answer(code, decision, "the store limit")
end

local function number_taken(code)
    if code < 0 then
        return failure(code, "the store limit")
    end
    return tonumber(taken[0])
end

local function done(code)
    if code < 0 then
        return failure(code, "the store limit")
    end
    return true
end

--- Takes `cost` permits of the key, 1 by default, and returns what a table's `check` does. The key
--- is a string of 1 to 512 bytes.
---
--- If the call of the store fails, the result is nil and the client's message, without a number.
--- The store may then have charged the key.
function StoreLimit:check(key, cost)
    return ask(self, CHECK, key, cost == nil and 1 or count(cost), decided)
end

--- Returns what `check` would return. It takes nothing.
function StoreLimit:peek(key, cost)
    return ask(self, PEEK, key, cost == nil and 1 or count(cost), decided)
end

--- Takes all permits that the key has left, `most` at the most, and returns their number.
function StoreLimit:take_up_to(key, most)
    return ask(self, UP_TO, key, count(most), number_taken)
end

--- Forgets the key, whose next request is decided as that of a new key. Returns true.
function StoreLimit:reset(key)
    return ask(self, RESET, key, 0, done)
end

--- Frees the limit. Later calls are errors, and so are calls whose script runs meanwhile. The store
--- keeps its keys. A second close does nothing.
function StoreLimit:close()
    local handle = self.handle
    self.handle = nil
    if handle then
        lib.tollbar_store_limit_free(ffi.gc(handle, nil))
    end
end

function StoreLimit:__tostring()
    return self.handle and "tollbar.store_limit" or "tollbar.store_limit, closed"
end

local store_limit = {}

--- store_limit("logins", "5/min algo sliding-log", run) makes a limit of any number of machines.
--- Each decision is one call of a script in the store, which `run(script, key, ...)` makes by the
--- program's Redis client. It returns a table of numbers, or nil and a message. In OpenResty:
--
--     local function run(script, key, ...) return red:eval(script, 1, key, ...) end
--
--- The policy is gcra, interval, fixed-window, weighted-window, sliding-log or an aligned
--- sliding-window, without borrow, ban, init, reserve and a second rate. The name is 1 to 64 visible
--- ASCII characters without braces.
function store_limit.new(name, policy, run)
    text("a name", name)
    if type(run) ~= "function" then
        error("run is a function, not " .. type(run), 2)
    end
    local spec, message, code = core.policy(policy)
    if not spec then
        return nil, message, code
    end
    local made = ffi.new("tollbar_store_limit *[1]")
    code = lib.tollbar_store_limit_new(name, #name, spec, made)
    if code ~= ALLOWED then
        return failure(code, "store limit " .. name)
    end
    return setmetatable({ handle = ffi.gc(made[0], lib.tollbar_store_limit_free), run = run }, StoreLimit)
end

return store_limit
