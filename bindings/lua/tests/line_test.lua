-- Light threads that wait in line, with a scheduler in place of nginx's. Ends with
-- `N passed, N failed`.
local ffi = require "ffi"
local harness = require "harness"
local tollbar = require "tollbar"
local test, equal = harness.test, harness.equal

ffi.cdef "int usleep(unsigned int microseconds);"

-- Runs functions as light threads, one at a time. `world.naps` counts their sleeps, `world.killed`
-- is the set of threads that never run again, `world.late` says by how many seconds a thread's timers
-- are late, and `world.stood` is for how many seconds the machine did not run this process: the turns
-- of the scheduler that took over 5 ms. All runs of an attempt add to `stood`, and the time from the
-- attempt's beginning to its first run counts, too.
local stood, since = 0, nil
local function run(functions)
    local world = { naps = 0, killed = {}, late = {}, stood = 0 }
    local threads, due, bells = {}, {}, {}
    local function nap(seconds, bell)
        world.naps = world.naps + 1
        local thread = coroutine.running()
        due[thread] = tonumber(tollbar.now()) + (seconds + (world.late[thread] or 0)) * 1e9
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
        local turn = since or began
        since = nil
        repeat
            local alive, idle = false, true
            local now = tollbar.now()
            local took = tonumber(now - turn) / 1e9
            turn = now
            world.stood = world.stood + (took > 0.005 and took or 0)
            stood = stood + (took > 0.005 and took or 0)
            assert(tonumber(now - began) < 30e9, "somebody waits for ever")
            for i = 1, #threads do
                local thread = threads[i]
                if coroutine.status(thread) ~= "dead" and not world.killed[i] then
                    alive = true
                    if tonumber(tollbar.now()) >= due[thread] or (bells[thread] and bells[thread].count > 0) then
                        idle = false
                        assert(coroutine.resume(thread, world))
                    end
                end
            end
            -- While all sleep, the processor is for others.
            if alive and idle then
                ffi.C.usleep(100)
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

--- Runs an attempt, and repeats it if it failed and the machine stood still for so many seconds.
--- Meanwhile permits come back, and the queue takes its first caller for dead if that has not run
--- for 20 ms after its time. An attempt that fails on a machine that ran has failed.
local function steadily(seconds, attempt)
    for tries = 1, 100 do
        stood, since = 0, tollbar.now()
        local good, why = pcall(attempt)
        if good then
            return
        end
        if stood < seconds or tries == 100 then
            error(why, 0)
        end
    end
end

test("of fifty that wait one asks, and they go in the order in which they came", function()
    steadily(0.015, function()
        local limiter = assert(tollbar.limiter("1/3ms algo fixed-window"))
        local order, began = {}, tollbar.now()
        local world = run(times(50, function(i)
            equal(limiter:wait(), true)
            order[#order + 1] = i
        end))
        equal(#order, 50)
        for i = 1, 50 do
            equal(order[i], i)
        end
        -- Each request sleeps once for its turn and once or twice, for whole milliseconds, for its
        -- permit. Each sleeps at most 250 ms at a time. If all asked, they would sleep some 1,200
        -- times.
        local took = tonumber(tollbar.now() - began) / 1e9
        assert(world.naps <= 250 + 50 * took / 0.25, world.naps)
    end)
end)

test("a caller that runs 10 ms after its time keeps its place", function()
    steadily(0.005, function()
        local limiter = assert(tollbar.limiter("1/3ms algo fixed-window"))
        local order, began = {}, tollbar.now()
        -- The hundredth sleeps its 250 ms, and passes at 300 ms.
        run(times(110, function(i, world)
            world.late[coroutine.running()] = i == 100 and 0.01 or nil
            equal(limiter:wait(), true)
            order[#order + 1] = i
        end))
        for i = 1, 110 do
            equal(order[i], i)
        end
        -- Each gets its permit after 3 ms, and a timer has whole milliseconds.
        local took = tonumber(tollbar.now() - began) / 1e9
        assert(took < 1.5, took)
    end)
end)

test("who is out of patience leaves the line, and who can never pass does not join it", function()
    steadily(0.015, function()
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
end)

test("a light thread that was killed does not hold up the others", function()
    for _, policy in ipairs { "1/50ms algo sliding-log", "1/50ms burst 1" } do
        steadily(0.015, function()
            local limiter = assert(tollbar.limiter(policy))
            assert(limiter:allow())
            local passed = {}
            run(times(3, function(i, world)
                -- The first sleeps in front of the second, which runs 20 ms after the first should
                -- have run.
                world.killed[1] = i == 3
                passed[i] = limiter:wait()
            end))
            equal(passed[1], nil)
            equal(passed[2], true)
            equal(passed[3], true)
        end)
    end
end)

test("A2: twenty that are killed leave nothing behind", function()
    for _, policy in ipairs { "10/s burst 1", "10/s algo pacer", "1/100ms algo fixed-window" } do
        steadily(0.1, function()
            local limiter = assert(tollbar.limiter(policy))
            assert(limiter:allow())
            local waited
            local all = times(20, function() limiter:wait() end)
            -- It kills the others after 50 ms, and waits alone.
            all[21] = function(world)
                package.loaded.ngx.sleep(0.05)
                for i = 1, 20 do
                    world.killed[i] = true
                end
                local began = tollbar.now()
                equal(limiter:wait(5), true)
                waited = tonumber(tollbar.now() - began) / 1e9
            end
            run(all)
            -- The first one's booking, the removal of the others, which have 20 ms each, and one
            -- permit. Twenty bookings would be two seconds.
            assert(waited < 1.2, policy .. ": waited " .. waited .. " s")
        end)
    end
end)

test("A2: every wave gets its permits", function()
    local clients = assert(tollbar.table("50/s burst 1", { capacity = 10 }))
    for wave = 1, 4 do
        local passed = 0
        local world = run(times(60, function()
            local good = clients:wait("a", 0.19)
            passed = passed + (good and 1 or 0)
        end))
        -- Ten at 20 ms each, or nine behind a permit that is taken. A permit that comes while the
        -- machine stands still may be nobody's, since a burst of one keeps no second one.
        local least = 8 - math.ceil(world.stood / 0.02)
        assert(passed <= 11 and passed >= least, "wave " .. wave .. ": " .. passed .. ", stood still for " .. world.stood .. " s")
        repeat until clients:peek("a")
    end
end)

test("A2: who would come too late behind others is refused at once", function()
    -- A machine that stands still for the 50 ms that are left of the patience lets the third one's
    -- permit go.
    steadily(0.04, function()
        local limiter = assert(tollbar.limiter("1/100ms burst 1"))
        assert(limiter:allow())
        local answers, took = {}, {}
        run(times(6, function(i)
            local began = tollbar.now()
            answers[i], took[i] = limiter:wait(0.35), nil
            took[i] = tonumber(tollbar.now() - began) / 1e9
        end))
        for i = 1, 6 do
            equal(answers[i], i <= 3)
            assert(i <= 3 or took[i] < 0.09, took[i])
        end
    end)
end)

test("A2: nobody is overtaken, and a permit that is there is the first one's", function()
    steadily(0.015, function()
        local limiter = assert(tollbar.limiter("1/20ms burst 1"))
        assert(limiter:allow())
        local order = {}
        local all = times(5, function(i)
            limiter:wait()
            order[#order + 1] = i
        end)
        all[6] = function()
            -- A caller that comes later, at a time at which a permit may be there.
            package.loaded.ngx.sleep(0.045)
            limiter:wait()
            order[#order + 1] = 6
        end
        run(all)
        equal(table.concat(order, " "), "1 2 3 4 5 6")
    end)
end)

test("A4: more callers than `waiters` do not wait", function()
    for _, limits_keys in ipairs { false, true } do
        steadily(0.015, function()
            local limiter = assert(tollbar.limiter("1/50ms burst 1", { waiters = 3 }))
            local clients = assert(tollbar.table("1/50ms burst 1", { capacity = 10, waiters = 3 }))
            assert(limiter:allow() and clients:allow("a"))
            local passed, full = 0, 0
            run(times(10, function()
                local good, why
                if limits_keys then
                    good, why = clients:wait("a")
                else
                    good, why = limiter:wait()
                end
                passed = passed + (good and 1 or 0)
                full = full + (why == "queue full" and 1 or 0)
            end))
            equal(passed, 3)
            equal(full, 7)
        end)
    end
    equal(select("#", pcall(tollbar.limiter, "1/s", { waiters = -1 })), 2)
    local default = assert(tollbar.limiter("1000/s burst 1"))
    assert(default:allow())
    local full = 0
    run(times(1030, function()
        local _, why = default:wait()
        full = full + (why == "queue full" and 1 or 0)
    end))
    -- Some of the first 1,024 may have passed before the last one came.
    assert(full <= 6, full)
end)

test("without ngx.semaphore a queue works, too", function()
    local slept
    package.loaded.ngx = {
        sleep = function(seconds)
            slept = slept + 1
            local began = tollbar.now()
            repeat until tonumber(tollbar.now() - began) / 1e9 >= seconds
        end,
    }
    local good, why = pcall(function()
        -- Again if a busy machine took so long that permits came without a sleep.
        for _ = 1, 100 do
            local limiter = assert(tollbar.limiter("1/3ms algo fixed-window"))
            slept = 0
            for _ = 1, 5 do
                equal(limiter:wait(), true)
            end
            if slept >= 3 then
                break
            end
        end
    end)
    package.loaded.ngx = nil
    assert(good, why)
    assert(slept >= 3, slept)
end)

harness.finish()
