-- Light threads that wait in line, with a scheduler in place of nginx's. Ends with `N passed, N failed`.
local harness = require "harness"
local tollbar = require "tollbar"
local test, equal = harness.test, harness.equal

-- Runs functions as light threads, one at a time, on a clock of its own. `world.naps` counts their sleeps, and `world.killed` is the set of
-- threads that never run again.
local function run(functions)
    local world = { naps = 0, killed = {} }
    local threads, due, bells = {}, {}, {}
    local function nap(seconds, bell)
        world.naps = world.naps + 1
        local thread = coroutine.running()
        due[thread] = tonumber(tollbar.now()) + seconds * 1e9
        bells[thread] = bell
        return coroutine.yield()
    end
    package.loaded.ngx = { sleep = function(seconds) nap(seconds) end }
    package.loaded["ngx.semaphore"] = {
        new = function(count)
            local bell = { count = count }
            function bell.post(self, n)
                self.count = self.count + n
            end
            function bell.wait(self, seconds)
                if self.count == 0 then
                    nap(seconds, self)
                end
                if self.count == 0 then
                    return nil, "timeout"
                end
                self.count = self.count - 1
                return true
            end
            return bell
        end,
    }
    local good, why = pcall(function()
        for i, f in ipairs(functions) do
            threads[i] = coroutine.create(f)
            due[threads[i]] = 0
        end
        local began = tollbar.now()
        repeat
            local alive = false
            assert(tonumber(tollbar.now() - began) < 30e9, "somebody waits for ever")
            for i = 1, #threads do
                local thread = threads[i]
                if coroutine.status(thread) ~= "dead" and not world.killed[i] then
                    alive = true
                    if tonumber(tollbar.now()) >= due[thread] or (bells[thread] and bells[thread].count > 0) then
                        assert(coroutine.resume(thread, world))
                    end
                end
            end
        until not alive
    end)
    package.loaded.ngx, package.loaded["ngx.semaphore"] = nil, nil
    assert(good, why)
    return world
end

local function times(n, f)
    local list = {}
    for i = 1, n do
        list[i] = function(world) f(i, world) end
    end
    return list
end

test("of fifty that wait one asks, and they go in the order in which they came", function()
    local limiter = assert(tollbar.limiter("1/3ms algo fixed-window"))
    local order = {}
    local world = run(times(50, function(i)
        equal(limiter:wait(), true)
        order[#order + 1] = i
    end))
    for i = 1, 50 do
        equal(order[i], i)
    end
    -- Each request sleeps once for its turn and once or twice, for whole milliseconds, for its permit. Without a line the
    -- requests sleep some 1,200 times.
    assert(world.naps <= 250, world.naps)
end)

test("who is out of patience leaves the line, and who can never pass does not join it", function()
    local limiter = assert(tollbar.limiter("1/100ms algo sliding-log"))
    assert(limiter:allow())
    local answers = {}
    local waits = { { 5 }, { 0.12 }, { 5 }, { 5, 2 }, { 0 } }
    run(times(#waits, function(i)
        answers[i] = limiter:wait(waits[i][1], waits[i][2])
    end))
    for i, wanted in ipairs { true, false, true, false, false } do
        equal(answers[i], wanted)
    end
end)

test("a light thread that was killed does not hold up the others", function()
    local limiter = assert(tollbar.limiter("1/50ms algo sliding-log"))
    assert(limiter:allow())
    local passed = {}
    run(times(3, function(i, world)
        -- The first sleeps in front of the second, which checks a second after the first should have checked.
        world.killed[1] = i == 3
        passed[i] = limiter:wait()
    end))
    equal(passed[1], nil)
    equal(passed[2], true)
    equal(passed[3], true)
end)

test("without ngx.semaphore all ask", function()
    local limiter = assert(tollbar.limiter("1/3ms algo fixed-window"))
    local slept = 0
    package.loaded.ngx = {
        sleep = function(seconds)
            slept = slept + 1
            local began = tollbar.now()
            repeat until tonumber(tollbar.now() - began) / 1e9 >= seconds
        end,
    }
    local good, why = pcall(function()
        for _ = 1, 5 do
            equal(limiter:wait(), true)
        end
    end)
    package.loaded.ngx = nil
    assert(good, why)
    assert(slept >= 3, slept)
end)

harness.finish()
