--- Hierarchy: classes with guaranteed rates and ceilings, that borrow what is idle. Their nodes are
--- keys of a table.
local ffi = require "ffi"
local core = require "tollbar.core"
require "tollbar.table"

local lib = core.lib
local count, number, failure = core.count, core.number, core.failure
local ALLOWED = lib.TOLLBAR_ALLOWED

-- A struct around the pointer, as in limiter.lua. NULL means closed.
ffi.cdef "typedef struct { tollbar_hierarchy *handle; } tollbar_lua_hierarchy;"

local is_table = ffi.typeof "tollbar_lua_table"
local share, class = core.struct("tollbar_share")(), ffi.new("uint32_t[1]")

local Hierarchy = {}

--- Reads a name or a rate, which C gets as a NUL-terminated text.
local function c_text(what, value)
    core.text(what, value, 3)
    if value:find("\0", 1, true) then
        error(what .. " has no NUL", 3)
    end
    return value
end

local OPTIONS = { guaranteed = true, ceiling = true, keys = true }

--- Adds a child of the class `parent`, the root if it is nil, and returns its number.
--- `options.guaranteed` is the rate that it gets whatever others ask for, and `options.ceiling` the
--- rate that it never exceeds. `options.keys` is the number of keys that each get such a node; 1 is
--- the default.
function Hierarchy:add(parent, name, options)
    options = core.options(options, OPTIONS)
    local code = lib.tollbar_hierarchy_add(self.handle, number(parent or 0), c_text("a name", name),
        c_text("a rate", options.guaranteed or ""), c_text("a rate", options.ceiling or ""), number(options.keys or 1), class)
    if code ~= ALLOWED then
        return failure(code, "the hierarchy")
    end
    return class[0]
end

local function answer(code)
    if code < 0 then
        return failure(code, "the hierarchy")
    end
    return code == ALLOWED, tonumber(share.retry_after_ns), tonumber(share.remaining), tonumber(share.interval_ns)
end

local function nodes(of)
    if not ffi.istype(is_table, of) then
        error("a table was expected", 3)
    end
    return of.handle
end

--- Takes `cost` permits, 1 by default, for a leaf class, or for a key of it, from the leaf and all
--- classes above it, or from none. Returns whether the request may pass, its wait in nanoseconds,
--- the permits that are left at once, and the nanoseconds that a permit costs the leaf.
function Hierarchy:take(keyed, leaf, key, cost)
    local data, length = core.key(key)
    return answer(lib.tollbar_hierarchy_take(self.handle, nodes(keyed), number(leaf), data, length, cost == nil and 1 or count(cost), share))
end

--- take at the caller's time in nanoseconds.
function Hierarchy:take_at(now, keyed, leaf, key, cost)
    local data, length = core.key(key)
    return answer(lib.tollbar_hierarchy_take_at(self.handle, nodes(keyed), number(leaf), data, length,
        cost == nil and 1 or count(cost), count(now), share))
end

--- Frees the hierarchy. The table keeps its nodes.
function Hierarchy:close()
    lib.tollbar_hierarchy_free(self.handle)
    self.handle = nil
end

local new_handle = ffi.metatype("tollbar_lua_hierarchy", {
    __index = Hierarchy,
    __gc = Hierarchy.close,
    __tostring = function(self)
        return self.handle == nil and "tollbar.hierarchy, closed" or "tollbar.hierarchy"
    end,
})

--- The policy of a table's nodes: that of TOLLBAR_HIERARCHY_POLICY.
local hierarchy = { policy = "1000000000/s burst 1099511627776" }

local ROOT = { burst = true, classes = true, policy = true }

--- hierarchy(rate, { burst = 1e8, classes = 100, policy = 0 }) makes a hierarchy whose root admits
--- `rate`, such as "1000/s". `burst` is in nanoseconds, 1e6 to 1e10, and `classes` the most
--- classes. `policy` is the number of the table's policy; 0 is the default.
function hierarchy.new(rate, options)
    options = core.options(options, ROOT)
    local out = ffi.new("tollbar_hierarchy *[1]")
    local code = lib.tollbar_hierarchy_new(c_text("a rate", rate), count(options.burst or 1e8), number(options.classes or 1024),
        number(options.policy or 0), out)
    if code ~= ALLOWED then
        return failure(code, "the hierarchy")
    end
    local self = new_handle()
    self.handle = out[0]
    return self
end

return hierarchy
