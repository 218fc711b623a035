--- Route: which of several nodes a key belongs to, by weighted rendezvous hashing.
local ffi = require "ffi"
local core = require "tollbar.core"

local lib = core.lib
local MOST = lib.TOLLBAR_NODES_MOST

-- Each call overwrites these and reads the answer before it returns.
local list, index = ffi.new("tollbar_node[?]", MOST), ffi.new("size_t[1]")

--- Writes a node to `list`, or nothing behind its end. The caller's table keeps the name's bytes.
local function add(at, name, weight)
    core.text("a node's name", name, 3)
    core.number(weight, 3)
    if at < MOST then
        local node = list[at]
        node.name, node.length, node.weight = name, #name, weight
    end
end

local route = {}

--- Returns the name of the node that `key` belongs to. `nodes` is an array of names, or a table of
--- names and weights. A node's share of the keys is its weight by the sum of all weights; a node of
--- weight 0 gets none. Returns false if no node has a weight above 0.
--
--     local shard = tollbar.route({ "10.0.0.1", "10.0.0.2" }, user)
--     -- The second gets two thirds of the keys.
--     local shard = tollbar.route({ ["10.0.0.1"] = 1, ["10.0.0.2"] = 2 }, user)
--
-- If a node leaves, only its own keys move. All callers give the same `seed`, 0 by default. With a
-- secret one a stranger cannot invent keys that all belong to one node. A call takes 100 to 200 ns
-- for each node.
function route.of(nodes, key, seed)
    if type(nodes) ~= "table" then
        error("nodes are a table, not " .. type(nodes), 2)
    end
    local names, n = {}, 0
    if nodes[1] ~= nil then
        for at = 1, #nodes do
            add(n, nodes[at], 1)
            n, names[at] = n + 1, nodes[at]
        end
    else
        for name, weight in pairs(nodes) do
            add(n, name, weight)
            n, names[n + 1] = n + 1, name
        end
    end
    local data, length = core.key(key)
    if n == 0 then
        -- The library refuses an empty list. It is a cluster without a node that takes the key.
        return false
    end
    local code = lib.tollbar_route(list, n, data, length, seed == nil and 0 or core.count(seed),
                                   index)
    if code == lib.TOLLBAR_YES then
        return names[tonumber(index[0]) + 1]
    end
    if code == lib.TOLLBAR_NO then
        return false
    end
    return core.failure(code, "the nodes")
end

return route
