--- Hierarchies: ceilings, users of a tenant, and classes that the library refuses.
local harness = require "harness"
local tollbar = require "tollbar"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails

local HOUR, MS = 3600 * 1e9, 1e6

local function shop()
    local nodes = assert(tollbar.table({ tollbar.hierarchy_policy }, { capacity = 2000, on_full = "deny" }))
    return nodes, assert(tollbar.hierarchy("1000/s", { burst = 100 * MS, classes = 8 }))
end

test("a leaf has its ceiling, and each user a node", function()
    local nodes, tree = shop()
    local acme = assert(tree:add(nil, "acme", { guaranteed = "400/s" }))
    local users = assert(tree:add(acme, "users", { guaranteed = "1/s", ceiling = "50/s", keys = 100 }))
    for left = 5, 0, -1 do
        local passed, wait, remaining, interval = tree:take_at(HOUR, nodes, users, "ann")
        equal(passed, true)
        equal(wait, 0)
        equal(remaining, left)
        equal(interval, 20 * MS)
    end
    local passed, wait = tree:take_at(HOUR, nodes, users, "ann")
    equal(passed, false)
    equal(wait, 20 * MS)
    equal((tree:take_at(HOUR, nodes, users, "bob", 2)), true)
    equal((tree:take(nodes, users)), true)
end)

--- Each asks for so many requests a second in virtual time, for eight seconds; what passes in the last
--- one is fair within a hundredth of the whole rate.
test("shares are fair", function()
    for _, case in ipairs {
        { { 0, 2000, 0 }, { 0, 1000, 0 } },
        { { 0, 0, 2000 }, { 0, 0, 300 } },
        { { 0, 2000, 2000 }, { 0, 700, 300 } },
        { { 2000, 2000, 2000 }, { 600, 200, 200 } },
        { { 100, 2000, 2000 }, { 100, 600, 300 } },
    } do
        local asked, fair = case[1], case[2]
        local nodes, tree = shop()
        local leaves = {
            assert(tree:add(nil, "ann", { guaranteed = "600/s" })), assert(tree:add(nil, "bob")),
            assert(tree:add(nil, "eve", { ceiling = "300/s" })),
        }
        local passed = { 0, 0, 0 }
        for ms = 0, 7999 do
            for leaf = 1, 3 do
                local rate = asked[leaf]
                for _ = math.floor(ms * rate / 1000) + 1, math.floor((ms + 1) * rate / 1000) do
                    if tree:take_at(HOUR + ms * MS, nodes, leaves[leaf]) and ms >= 7000 then
                        passed[leaf] = passed[leaf] + 1
                    end
                end
            end
        end
        for leaf = 1, 3 do
            equal(math.abs(passed[leaf] - fair[leaf]) <= 10, true)
        end
    end
end)

test("a class that cannot be has an error", function()
    local nodes, tree = shop()
    fails("guaranteed", tollbar.C.TOLLBAR_E_GUARANTEE, tree:add(0, "a", { guaranteed = "1001/s" }))
    fails("rate of a class", tollbar.C.TOLLBAR_E_CLASS_RATE, tree:add(0, "a", { ceiling = "many" }))
    fails("no such class", tollbar.C.TOLLBAR_E_CLASS_NUMBER, tree:take(nodes, 5))
    fails("rate of a class", tollbar.C.TOLLBAR_E_CLASS_RATE, tollbar.hierarchy("0/s"))
    raises("a name is a string", function() tree:add(0, 5) end)
    raises("a table was expected", function() tree:take(tree, 0) end)
    raises("no option weight", function() tree:add(0, "a", { weight = 2 }) end)
    tree:close()
    raises("closed", function() tree:take(nodes, 0) end)
end)

harness.finish()
