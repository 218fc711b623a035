--- Runs named tests and counts them. The last line is `N passed, N failed`.
local harness = { passed = 0, failed = 0 }

--- Runs one test, which fails if it raises an error.
function harness.test(name, run)
    local good, why = xpcall(run, debug.traceback)
    if good then
        harness.passed = harness.passed + 1
        print("ok    " .. name)
    else
        harness.failed = harness.failed + 1
        print("FAIL  " .. name .. "\n" .. tostring(why):gsub("^", "      "):gsub("\n", "\n      "))
    end
end

function harness.equal(got, wanted, what)
    if got ~= wanted then
        error((what and what .. ": " or "") .. "got " .. tostring(got) .. ", wanted " .. tostring(wanted), 2)
    end
end

--- Asserts that `run` raises an error with these words, at the line of this program that made the
--- call.
function harness.raises(words, run)
    local good, why = pcall(run)
    if good then
        error("no error, wanted one with: " .. words, 2)
    end
    if not tostring(why):find(words, 1, true) then
        error("another error: " .. tostring(why), 2)
    end
    if not tostring(why):find("_test.lua:", 1, true) then
        error("the error is told elsewhere: " .. tostring(why), 2)
    end
end

--- Asserts that a call returned nil, a text with these words, and that number.
function harness.fails(words, number, first, message, code)
    harness.equal(first, nil)
    if type(message) ~= "string" or not message:find(words, 1, true) then
        error("another message: " .. tostring(message), 2)
    end
    harness.equal(code, number)
end

function harness.finish()
    print(harness.passed .. " passed, " .. harness.failed .. " failed")
    os.exit(harness.failed == 0 and harness.passed > 0)
end

return harness
