--- Routes: those of C, and how many keys move if a node leaves.
local harness = require "harness"
local tollbar = require "tollbar"
local ffi = require "ffi"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails
local C = tollbar.C

-- The same routes as in Rust and C.
test("routes never change", function()
    local nodes = { a = 1, b = 2, c = 3, ["10.0.0.4:8080"] = 4 }
    local keys = { "alice", "bob", "carol", "dave", "erin", "frank", "", "192.0.2.1" }
    local wanted = { "b", "10.0.0.4:8080", "c", "10.0.0.4:8080", "10.0.0.4:8080", "c", "c", "c" }
    for n, key in ipairs(keys) do
        equal(tollbar.route(nodes, key, 42), wanted[n])
        equal(tollbar.route(nodes, key, 42ULL), wanted[n])
    end
end)

-- S35. The keys and the seed are those of the test in Rust.
test("of four nodes one leaves: a quarter of the keys moves, and no other", function()
    local before, after = { "a", "b", "c", "10.0.0.4:8080" }, { "a", "b", "10.0.0.4:8080" }
    local moved, key = 0, ffi.new("uint32_t[1]")
    for n = 0, 99999 do
        key[0] = n
        local bytes = ffi.string(key, 4)
        local was, is = tollbar.route(before, bytes, 7), tollbar.route(after, bytes, 7)
        if was ~= is then
            equal(was, "c")
            moved = moved + 1
        end
    end
    assert(moved >= 24000 and moved <= 26000, moved)
end)

test("shares follow the weights", function()
    local weights, found = { a = 1, b = 2, c = 4, d = 13 }, { a = 0, b = 0, c = 0, d = 0 }
    for n = 1, 20000 do
        local node = tollbar.route(weights, tostring(n))
        found[node] = found[node] + 1
    end
    for node, weight in pairs(weights) do
        assert(math.abs(found[node] - weight * 1000) < 250, node .. " " .. found[node])
    end
end)

test("nobody to go to, and what is wrong", function()
    equal(tollbar.route({ a = 0, b = 0 }, "k"), false)
    equal(tollbar.route({ a = 0, b = 1 }, "k"), "b")
    equal(tollbar.route({ "a" }), "a")
    equal(tollbar.route({}, "k"), false)
    local many = {}
    for n = 1, 1025 do
        many[n] = "node " .. n
    end
    fails("the nodes: ", C.TOLLBAR_E_OUT_OF_RANGE, tollbar.route(many, "k"))
    many[1025] = nil
    assert(tollbar.route(many, "k"):find("^node "))
    raises("nodes are a table", function() tollbar.route("a", "k") end)
    raises("a node's name is a string", function() tollbar.route({ 5 }, "k") end)
    raises("a whole number", function() tollbar.route({ a = -1 }, "k") end)
    raises("a key is a string", function() tollbar.route({ "a" }, 5) end)
    raises("a whole number", function() tollbar.route({ "a" }, "k", -1) end)
end)

harness.finish()
