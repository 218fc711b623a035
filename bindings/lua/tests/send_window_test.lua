--- Send windows: the trace of a window of four, and random operations beside a sequential model.
local harness = require "harness"
local tollbar = require "tollbar"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails
local C = tollbar.C

local MODULUS = 2^22

test("a window of four", function()
    local window = assert(tollbar.send_window(4))
    for n = 1, 4 do
        equal(window:acquire(), n)
    end
    equal(window:acquire(), false)
    -- A cumulative acknowledgement of two frees two.
    equal(window:acknowledge(2), true)
    equal(select(3, window:read()), 2)
    equal(window:acknowledge(2), false)
    equal(window:acknowledge(5), false)
    equal(window:acquire(), 5)
    -- With 3 in flight a limit of 2 refuses until two of them are acknowledged.
    equal(window:resize(2), true)
    equal(window:acquire(), false)
    equal(window:acknowledge(3), true)
    equal(window:acquire(), false)
    equal(window:acknowledge(4), true)
    local limit, in_flight, usable, sent, acknowledged = window:read()
    equal(limit, 2)
    equal(in_flight, 1)
    equal(usable, 1)
    equal(sent, 5)
    equal(acknowledged, 4)
    equal(window:release(2), false)
    equal(window:acquire(), 6)
    equal(tostring(window), "tollbar.send_window")
end)

--- The definition: a queue of the numbers in flight, the oldest first.
local function model_of(limit)
    local model = { limit = limit, sent = 0, acknowledged = 0, queue = {} }
    function model:acquire(permits)
        if permits > math.max(self.limit - #self.queue, 0) then
            return false
        end
        for _ = 1, permits do
            self.sent = (self.sent + 1) % MODULUS
            self.queue[#self.queue + 1] = self.sent
        end
        return self.sent
    end
    function model:release(permits)
        if permits > #self.queue then
            return false
        end
        for _ = 1, permits do
            self.acknowledged = table.remove(self.queue, 1)
        end
        return true
    end
    function model:acknowledge(last)
        for place, number in ipairs(self.queue) do
            if number == last then
                return self:release(place)
            end
        end
        return false
    end
    return model
end

test("random operations equal a sequential model", function()
    local seed = 5
    local function below(n)
        -- Exact in a double: below 2^31 * 48271.
        seed = seed * 48271 % 2147483647
        return seed % n
    end
    local window, model = assert(tollbar.send_window(4)), model_of(4)
    local admitted, refused, late = 0, 0, 0
    -- The numbers begin again after 2^22: the window starts just before that.
    assert(window:resize(1048575))
    for _ = 1, 4 do
        assert(window:acquire(1048575) and window:release(1048575))
    end
    assert(window:resize(4))
    model.sent, model.acknowledged = MODULUS - 4, MODULUS - 4
    for step = 1, 100000 do
        local kind, want, got = below(10), nil, nil
        if kind < 5 then
            local permits = below(4)
            want, got = model:acquire(permits), window:acquire(permits)
            admitted, refused = admitted + (want and 1 or 0), refused + (want and 0 or 1)
        elseif kind < 7 then
            local last = (model.acknowledged + below(12)) % MODULUS
            want, got = model:acknowledge(last), window:acknowledge(last)
            late = late + (want and 0 or 1)
        elseif kind < 9 then
            local permits = below(4)
            want, got = model:release(permits), window:release(permits)
        else
            model.limit = below(12)
            want, got = true, window:resize(model.limit)
        end
        equal(got, want, "step " .. step)
        local limit, in_flight, usable, sent, acknowledged = window:read()
        equal(limit, model.limit, "step " .. step)
        equal(in_flight, #model.queue, "step " .. step)
        equal(usable, math.max(model.limit - #model.queue, 0), "step " .. step)
        equal(sent, model.sent, "step " .. step)
        equal(acknowledged, model.acknowledged, "step " .. step)
    end
    assert(admitted > 10000 and refused > 10000 and late > 1000,
           admitted .. " " .. refused .. " " .. late)
end)

test("what is wrong is said", function()
    fails("out of range", C.TOLLBAR_E_OUT_OF_RANGE, tollbar.send_window(1048576))
    local window = assert(tollbar.send_window(0))
    equal(window:acquire(), false)
    fails("out of range", C.TOLLBAR_E_OUT_OF_RANGE, window:resize(1048576))
    equal(window:acquire(4294967295), false)
    raises("a whole number", function() tollbar.send_window() end)
    raises("a whole number", function() window:acquire(-1) end)
    raises("a whole number", function() window:acknowledge("1") end)
    raises("a whole number", function() window:release(0.5) end)
end)

harness.finish()
