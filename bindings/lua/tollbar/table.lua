--- Table: a state for each of millions of keys, in memory that processes can share.
local ffi = require "ffi"
local core = require "tollbar.core"
local line = require "tollbar.line"
local sleeping = require "tollbar.sleep"

local lib = core.lib
local count, number, text, answer, failure, yes = core.count, core.number, core.text, core.answer, core.failure, core.yes
local ALLOWED, TSC = lib.TOLLBAR_ALLOWED, lib.TOLLBAR_CLOCK_TSC

-- A struct around the pointer, as in limiter.lua. NULL means closed.
ffi.cdef "typedef struct { tollbar_table *handle; } tollbar_lua_table;"

local decision = core.struct("tollbar_decision")()
local word = ffi.new("uint64_t[1]")
local booked = ffi.new "tollbar_reservation"
local bytes = core.key

local Table = {}
for name, method in pairs(require "tollbar.receipts") do
    Table[name] = method
end

--- Takes `cost` permits of the key, 1 if not given, under the policy of that number, 0 if not
--- given. Returns true if the request may pass. This is the fastest call. `check` returns the full
--- decision, as for a limiter.
function Table:allow(key, cost, policy)
    local data, length = bytes(key)
    local code = lib.tollbar_table_check(
        self.handle, policy == nil and 0 or number(policy), data, length, cost == nil and 1 or count(cost), nil)
    if code >= 0 then
        return code == ALLOWED
    end
    return failure(code, "the table")
end

function Table:check(key, cost, policy)
    local data, length = bytes(key)
    local code = lib.tollbar_table_check(
        self.handle, policy == nil and 0 or number(policy), data, length, cost == nil and 1 or count(cost), decision)
    return answer(code, decision, "the table")
end

--- `check` at the caller's time, in nanoseconds on the scale of `now`, or of another that all
--- callers share.
function Table:check_at(now, key, cost, policy)
    local data, length = bytes(key)
    local code = lib.tollbar_table_check_at(self.handle, policy == nil and 0 or number(policy), data, length, cost == nil and 1 or count(cost),
        count(now), decision)
    return answer(code, decision, "the table")
end

--- `check` of a request of a class of the policy, as for a limiter.
function Table:check_class(key, class_name, cost, policy)
    local data, length = bytes(key)
    local code = lib.tollbar_table_check_class(self.handle, policy == nil and 0 or number(policy), data, length,
        cost == nil and 1 or count(cost), core.class_name(class_name), decision)
    return answer(code, decision, "the table")
end

--- `check_class` at the caller's time, on the scale of `check_at`.
function Table:check_class_at(now, key, class_name, cost, policy)
    local data, length = bytes(key)
    local code = lib.tollbar_table_check_class_at(self.handle, policy == nil and 0 or number(policy), data, length,
        cost == nil and 1 or count(cost), core.class_name(class_name), count(now), decision)
    return answer(code, decision, "the table")
end

--- Returns what `check` would return. It takes no permits and stores no key.
function Table:peek(key, cost, policy)
    local data, length = bytes(key)
    local code = lib.tollbar_table_peek(
        self.handle, policy == nil and 0 or number(policy), data, length, cost == nil and 1 or count(cost), decision)
    return answer(code, decision, "the table")
end

-- Reused by all batches. The keys are not copied: the caller's array keeps them alive while C reads
-- them.
local room, requests, results = 0

--- Decides on an array of keys in turn, with one reading of the clock. Returns an array of true and
--- false, `out` if that is given, and the number of true ones. `cost` is a number or an array.
--- `class_number` is the number of the requests' class in the policy, from 1. A key whose decision
--- fails (an unknown policy or class) is false.
function Table:check_many(keys, cost, policy, out, class_number)
    if type(keys) ~= "table" then
        error("keys are an array", 2)
    end
    local n, costs = #keys, type(cost) == "table" and cost
    cost = not costs and (cost == nil and 1 or count(cost))
    policy = policy == nil and 0 or number(policy)
    class_number = class_number == nil and 0 or number(class_number)
    out = out or {}
    if n > room then
        room = math.max(64, 2 * n)
        requests, results = ffi.new("tollbar_request[?]", room), ffi.new("int32_t[?]", room)
    end
    for i = 1, n do
        local request = requests[i - 1]
        request.key, request.length = bytes(keys[i])
        request.cost = costs and count(costs[i]) or cost
        request.policy, request.class_number = policy, class_number
    end
    local code = lib.tollbar_table_check_many(self.handle, requests, n, results)
    if code ~= ALLOWED then
        return failure(code, "the table")
    end
    local passed = 0
    for i = 1, n do
        local pass = results[i - 1] == ALLOWED
        out[i] = pass
        passed = pass and passed + 1 or passed
    end
    for i = #out, n + 1, -1 do
        out[i] = nil
    end
    return out, passed
end

--- Takes all permits that the key has left, `most` at the most, and returns their number.
function Table:take_up_to(key, most, policy)
    local data, length = bytes(key)
    local code = lib.tollbar_table_take_up_to(
        self.handle, policy == nil and 0 or number(policy), data, length, count(most), word)
    if code < 0 then
        return failure(code, "the table")
    end
    return code == ALLOWED and tonumber(word[0]) or 0
end

--- Charges `cost` permits of the key without a decision, after the work, when the cost or the
--- failure is known. Returns the permits that could not be charged. A token bucket holds a debt of
--- one burst, windows and logs hold none. In OpenResty's log_by_lua this bans an address after five
--- wrong passwords, under the policy "5/min ban 1h":
--
--     if ngx.status == 401 then logins:charge(ngx.var.remote_addr) end
function Table:charge(key, cost, policy)
    local data, length = bytes(key)
    local code = lib.tollbar_table_charge(
        self.handle, policy == nil and 0 or number(policy), data, length, cost == nil and 1 or count(cost), word)
    if code < 0 then
        return failure(code, "the table")
    end
    return tonumber(word[0])
end

--- Takes `cost` permits of the key ahead of time. Returns the seconds after which the caller must
--- act, not earlier, and the reservation for `cancel`. Returns false if that would be more than
--- `patience` seconds, or if the algorithm cannot book ahead.
function Table:reserve(key, patience, cost, policy)
    local data, length = bytes(key)
    local reservation = ffi.new "tollbar_reservation"
    local code = lib.tollbar_table_reserve(self.handle, policy == nil and 0 or number(policy), data, length,
        cost == nil and 1 or count(cost), core.patience(patience), reservation)
    if code < 0 then
        return failure(code, "the table")
    end
    if code ~= ALLOWED then
        return false
    end
    return core.seconds(reservation.wait_ns), reservation
end

--- Gives back the permits of a reservation of the key, and returns the number that came back. The
--- key's latest reservation comes back whole. An earlier one usually gives back nothing, because
--- the later callers keep their departures. Cancel a reservation once only.
function Table:cancel(key, reservation, policy)
    local data, length = bytes(key)
    local code = lib.tollbar_table_cancel(self.handle, policy == nil and 0 or number(policy), data, length, reservation, word)
    if code < 0 then
        return failure(code, "the table")
    end
    return tonumber(word[0])
end

--- What line.wait calls. The table may be closed while its callers sleep: C refuses a NULL.
local function calls(self, sleep, policy, key)
    local data, length = bytes(key)
    return line.calls({
        sleep = sleep,
        clock = function() return core.clock_now(TSC) end,
        reserve = function(cost, patience)
            return lib.tollbar_table_reserve(self.handle, policy, data, length, cost, patience, booked)
        end,
        check = function(cost) return lib.tollbar_table_check(self.handle, policy, data, length, cost, decision) end,
        peek = function(cost) return lib.tollbar_table_peek(self.handle, policy, data, length, cost, decision) end,
        cancel = function(reservation) return lib.tollbar_table_cancel(self.handle, policy, data, length, reservation, word) end,
    }, decision, booked)
end

--- Takes `cost` permits of the key, and sleeps up to `timeout` seconds for them. Returns true if it
--- took them. Returns false and the reason at once, and takes nothing, if the key will not have
--- them in time, or if `waiters` callers of all keys wait already ("queue full"). The callers of a
--- key get their permits in the order in which they came; those of several processes take turns. In
--- nginx other requests go on during the sleep (ngx.sleep). Elsewhere the thread sleeps, or the
--- event loop's `sleep`, a function of seconds.
function Table:wait(key, timeout, cost, policy, sleep)
    local patience = core.patience(timeout)
    cost = cost == nil and 1 or count(cost)
    policy = policy == nil and 0 or number(policy)
    local code, reason
    sleep = sleeping.of(sleep)
    if sleep then
        local name = policy .. ":" .. (key or "")
        code, reason = line.wait(self, name, calls(self, sleep, policy, key), cost, line.deadline(core.clock_now(TSC), patience))
    else
        local data, length = bytes(key)
        code = lib.tollbar_table_wait(self.handle, policy, data, length, cost, patience, decision)
        reason = decision.reason
    end
    if code < 0 then
        return failure(code, "the table")
    end
    return line.answer(code, reason)
end

--- Gives a key a fresh state, which also ends a ban. Returns false and changes nothing if all of
--- the key's other slots are taken.
function Table:reset(key, policy)
    local data, length = bytes(key)
    return core.bool(lib.tollbar_table_reset(self.handle, number(policy or 0), data, length), "the table")
end

--- Exempts a key: it always passes and is charged nothing. A table has room for some 1,600 exempt
--- keys.
function Table:exempt(key, policy)
    local data, length = bytes(key)
    return yes(lib.tollbar_table_exempt(self.handle, number(policy or 0), data, length), "the table")
end

--- Ends a key's exemption. Returns false if the key was not exempt.
function Table:unexempt(key, policy)
    local data, length = bytes(key)
    return core.bool(lib.tollbar_table_unexempt(self.handle, number(policy or 0), data, length), "the table")
end

--- Returns the time that calls without a time use: nanoseconds, a uint64_t.
function Table:now()
    local code = lib.tollbar_table_now(self.handle, word)
    if code ~= ALLOWED then
        return failure(code, "the table")
    end
    return word[0]
end

--- Returns the text of a current policy.
function Table:policy(policy)
    local spec = core.new_spec()
    local code = lib.tollbar_table_get_policy(self.handle, number(policy or 0), spec)
    if code ~= ALLOWED then
        return failure(code, "the table")
    end
    return core.print_policy(spec)
end

--- Changes a policy, in all processes at once. Keys keep the permits that they have left, up to the
--- new burst; with `keep` "time" the time until their debts are paid, and with "reset" nothing.
function Table:set_policy(policy, to, keep)
    local kept = core.choice("keep", keep or "count", core.KEEPS)
    local spec, message, code = core.policy(to)
    if not spec then
        return nil, message, code
    end
    return yes(lib.tollbar_table_set_policy(self.handle, number(policy), spec, kept), "the table")
end

--- Gives a key a policy of its own, in all processes at once:
--- `calls:set_override("acme", "1000/s burst 50")`. Requests still name `policy`, and count under
--- it. `keep` says what the key keeps of its debt when the override begins and when it ends.
function Table:set_override(key, to, policy, keep)
    local kept = core.choice("keep", keep or "count", core.KEEPS)
    local spec, message, code = core.policy(to)
    if not spec then
        return nil, message, code
    end
    local data, length = bytes(key)
    return yes(lib.tollbar_table_set_override(self.handle, number(policy or 0), data, length, spec, kept), "the table")
end

--- Puts a key back under its policy. Returns false if it had no policy of its own.
function Table:clear_override(key, policy)
    local data, length = bytes(key)
    return core.bool(lib.tollbar_table_clear_override(self.handle, number(policy or 0), data, length), "the table")
end

--- Returns the text of a key's own policy, or nil if it has none.
function Table:override(key, policy)
    local data, length = bytes(key)
    local spec = core.struct("tollbar_policy_spec")()
    local code = lib.tollbar_table_get_override(self.handle, number(policy or 0), data, length, spec)
    if code < 0 then
        return failure(code, "the table")
    end
    return code == lib.TOLLBAR_YES and core.print_policy(spec) or nil
end

local new_override = core.struct("tollbar_table_override")

--- Returns all keys with a policy of their own, as a list of { policy, hash, to }: a number, a
--- uint64_t and a text.
function Table:overrides()
    local list, found, spec = {}, new_override(), core.struct("tollbar_policy_spec")()
    while lib.tollbar_table_next_override(self.handle, found.next, found, spec) == lib.TOLLBAR_YES do
        list[#list + 1] = { policy = found.policy, hash = found.hash, to = core.print_policy(spec) }
    end
    return list
end

--- Sets whether requests of all processes record the keys that they refuse, for top_refused. No
--- table does at first.
function Table:record_refusals(on)
    local code = lib.tollbar_table_record_refusals(self.handle, on and 1 or 0)
    if code ~= ALLOWED then
        return failure(code, "the table")
    end
    return true
end

--- Returns whether requests record the keys that they refuse.
function Table:records_refusals()
    return lib.tollbar_table_records_refusals(self.handle) == lib.TOLLBAR_YES
end

--- Returns the keys that requests were refused most in the last minute or two, the most refused
--- first, as a list of { policy, count, key, is_cut }. `most` is 20 by default, and at most 224.
--- The bytes of a key, 48 at most, are the client's: escape them before they go to a terminal, a
--- page or a log.
function Table:top_refused(most)
    local room = math.min(most == nil and 20 or count(most), lib.TOLLBAR_REFUSED_MOST)
    local top, found, list = ffi.new("tollbar_table_refused[?]", math.max(room, 1)), ffi.new("size_t[1]"), {}
    top[0].struct_size = ffi.sizeof("tollbar_table_refused")
    local code = lib.tollbar_table_now(self.handle, word)
    if code == ALLOWED then
        code = lib.tollbar_table_top_refused(self.handle, word[0], top, room, found)
    end
    if code ~= ALLOWED then
        return failure(code, "the table")
    end
    for n = 0, tonumber(found[0]) - 1 do
        list[n + 1] = {
            policy = top[n].policy,
            count = tonumber(top[n].count),
            key = ffi.string(top[n].key, top[n].length),
            is_cut = top[n].is_cut == lib.TOLLBAR_YES,
        }
    end
    return list
end

local function numbered(self, ask, policy)
    local spec, message, code = core.policy(policy)
    if not spec then
        return nil, message, code
    end
    local out = ffi.new("uint32_t[1]")
    code = ask(self.handle, spec, out)
    if code ~= ALLOWED then
        return failure(code, "the table")
    end
    return out[0]
end

--- Adds a policy, for all processes, and returns its number.
function Table:add_policy(policy)
    return numbered(self, lib.tollbar_table_add_policy, policy)
end

--- Returns the number of the first policy that equals this one, and adds it if there is none.
function Table:find_or_add_policy(policy)
    return numbered(self, lib.tollbar_table_find_or_add_policy, policy)
end

--- Returns the fields of a struct by name, without `struct_size`.
local function fields(struct, names)
    local found = {}
    for name in names:gmatch("%S+") do
        found[name] = tonumber(struct[name])
    end
    return found
end

local new_stats, new_health = core.struct("tollbar_table_stats"), core.struct("tollbar_table_health")

--- Returns counters and sizes, under their names in tollbar.h.
function Table:stats()
    local stats = new_stats()
    local code = lib.tollbar_table_get_stats(self.handle, stats)
    if code ~= ALLOWED then
        return failure(code, "the table")
    end
    return fields(stats, "policies capacity slots bytes keys inserted reclaimed vacated resets refused inherited "
        .. "untracked evicted retries backward_steps allowed denied never overrides room")
end

local new_counts = core.struct("tollbar_counts")

--- Returns the counts of decisions under a policy, of all threads and processes: allowed, denied,
--- never. stats() has the sums of all policies.
function Table:counts(policy)
    local counts = new_counts()
    local code = lib.tollbar_table_get_counts(self.handle, policy == nil and 0 or count(policy), counts)
    if code ~= ALLOWED then
        return failure(code, "the table")
    end
    return fields(counts, "allowed denied never")
end

local function look(call, self)
    local code = lib.tollbar_table_now(self.handle, word)
    local health = new_health()
    if code == ALLOWED then
        code = call(self.handle, word[0], health)
    end
    if code ~= ALLOWED and code ~= lib.TOLLBAR_E_SLOTS_INVALID then
        return failure(code, "the table")
    end
    local found = fields(health, "claimed vacant waiting expired live unknown duplicate")
    found.slots_invalid = code ~= ALLOWED
    return found
end

--- Reads every slot and returns how many are vacant, waiting, expired, live, unknown and duplicate.
--- `slots_invalid` says whether any is unknown or duplicate.
function Table:validate()
    return look(lib.tollbar_table_validate, self)
end

--- Empties invalid slots, and returns what `validate` would have returned before. Call it only
--- while no other thread or process uses the table.
function Table:repair()
    return look(lib.tollbar_table_repair, self)
end

--- Writes a file's table to the disk.
function Table:sync()
    local code = lib.tollbar_table_sync(self.handle)
    if code ~= ALLOWED then
        return core.system_failure(code, "the table")
    end
    return true
end

--- Ends this process's view of the table now, before the garbage collector does. Later calls are
--- errors. A second close does nothing.
function Table:close()
    lib.tollbar_table_close(self.handle)
    self.handle = nil
end

local new_handle = ffi.metatype("tollbar_lua_table", {
    __index = Table,
    __gc = Table.close,
    __tostring = function(self)
        return self.handle == nil and "tollbar.table, closed" or "tollbar.table of " .. self:stats().capacity .. " keys"
    end,
})

local ON_FULL = {
    deny = lib.TOLLBAR_ON_FULL_DENY,
    inherit = lib.TOLLBAR_ON_FULL_INHERIT,
    allow = lib.TOLLBAR_ON_FULL_ALLOW,
    ["evict-nearest"] = lib.TOLLBAR_ON_FULL_EVICT_NEAREST,
}
local MISSING = {
    deny = lib.TOLLBAR_MISSING_DENY,
    allow = lib.TOLLBAR_MISSING_ALLOW,
    report = lib.TOLLBAR_MISSING_REPORT,
}
local COMMON =
    { capacity = true, on_full = true, missing = true, clock = true, seed = true, small_pages = true, hot_keys = true,
        overrides = true, room = true, waiters = true }
local IN_MEMORY = setmetatable({ shared = true }, { __index = COMMON })
local IN_FILE = setmetatable({ mode = true, trust_anyone = true }, { __index = COMMON })
local new_options = core.struct("tollbar_table_options")

local function how(options, any)
    local o = new_options()
    o.capacity = any and options.capacity == nil and 0 or count(options.capacity, 3)
    o.on_full = core.choice("on_full", options.on_full or "evict-nearest", ON_FULL, 4)
    o.missing_key = core.choice("missing", options.missing or "deny", MISSING, 4)
    o.clock = core.choice("clock", options.clock or "tsc", core.CLOCKS, 4)
    o.mode = options.mode or 0
    o.hot_keys = options.hot_keys or 0
    o.overrides = options.overrides or 0
    o.room = options.room or 0
    o.waiters = options.waiters == nil and 0 or number(options.waiters)
    if options.seed ~= nil then
        o.seed = count(options.seed, 3)
        o.flags = o.flags + lib.TOLLBAR_TABLE_HAS_SEED
    end
    if options.small_pages then
        o.flags = o.flags + lib.TOLLBAR_TABLE_SMALL_PAGES
    end
    if options.trust_anyone then
        o.flags = o.flags + lib.TOLLBAR_TABLE_TRUST_ANYONE
    end
    return o
end

--- Converts one text or an array of texts to C's specs. Also returns the objects that must live as
--- long as the specs are used.
local function compiled(policies)
    if type(policies) ~= "table" then
        policies = { policies }
    end
    local specs, pointers = {}, ffi.new("const tollbar_policy_spec *[?]", math.max(#policies, 1))
    for i, policy in ipairs(policies) do
        local spec, message, code = core.policy(policy, 4)
        if not spec then
            return nil, message, code
        end
        specs[i], pointers[i - 1] = spec, spec
    end
    return pointers, #policies, specs
end

local function made(make, path, policies, options, waiters)
    local pointers, n, specs = compiled(policies)
    if not pointers then
        return nil, n, specs
    end
    local out, self = ffi.new("tollbar_table *[1]"), new_handle()
    local code = make(pointers, n, options, out)
    if code ~= ALLOWED then
        return core.system_failure(code, path)
    end
    -- C has read the specs, which the reference keeps alive until here.
    specs[1] = nil
    self.handle = out[0]
    line.bound(self, waiters)
    return self
end

local keyed = {}

--- table("5/min burst 3", { capacity = 1e6 }) makes a table with one policy, or with several in an
--- array. Requests name a policy by its number, from 0. With `shared = true` the processes that are
--- forked later share the table, such as nginx's workers after init_by_lua. on_full: evict-nearest
--- (the default), inherit, allow, deny. missing (a nil or empty key): deny, allow, report. clock,
--- seed, small_pages. hot_keys: for how many keys each thread may take permits in advance, those
--- that it checks most often; 0 (the default) is none. waiters: how many callers may wait at one
--- time (1024 by default). overrides: how many keys may have a policy of their own at one time
--- (set_override), 32 bytes each; 1024 by default. room: for windows of how many segments, and logs
--- of how many permits, each slot has room, so that a policy may change to them; 0 by default.
function keyed.new(policies, options)
    options = core.options(options, IN_MEMORY)
    return made(options.shared and lib.tollbar_table_new_shared or lib.tollbar_table_new, nil, policies, how(options),
        options.waiters)
end

--- Opens the table in a file, or makes the file if there is none. All processes that open it share
--- the table, whatever their language. Without policies and capacity the file must exist. In /run
--- and /dev/shm it lasts until the machine stops, on a disk longer. `mode` is a new file's
--- permissions as a number, 0600 by default: tonumber("0640", 8). Put the file into a directory of
--- the service's own, such as /run/SERVICE. The call refuses a file of another user than this one
--- and root, and a file that others may write or replace, unless `trust_anyone` is true.
function keyed.open(path, policies, options)
    text("a path", path)
    if path:find("\0", 1, true) then
        error("a path has no NUL", 2)
    end
    local given
    if policies ~= nil or options ~= nil then
        given = how(core.options(options, IN_FILE), policies == nil)
    end
    return made(function(pointers, n, o, out)
        return lib.tollbar_table_open(path, n > 0 and pointers or nil, n, o, out)
    end, path, policies or {}, given, options and options.waiters)
end

return keyed
