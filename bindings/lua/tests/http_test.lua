--- HTTP header fields: those of a check, and the reader's results.
local harness = require "harness"
local tollbar = require "tollbar"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails

test("a check has its header fields", function()
    local clients = assert(tollbar.table("2/h", { capacity = 100 }))
    local allowed, fields, status, problem = tollbar.http_check("client", clients, "k")
    equal(allowed, true)
    equal(fields["RateLimit-Policy"], '"client";q=2;w=3600')
    equal(fields["RateLimit"], '"client";r=1;t=1800')
    equal(fields["Retry-After"], nil)
    equal(status, 200)
    equal(problem, nil)
    tollbar.http_check("client", clients, "k")
    allowed, fields, status, problem = tollbar.http_check("client", clients, "k", 1, 0, "legacy draft-07")
    equal(allowed, false)
    equal(status, 429)
    equal(fields["X-RateLimit-Remaining"], "0")
    equal(fields["RateLimit"], "limit=2, remaining=0, reset=1800")
    equal(fields["Retry-After"], "1800")
    equal(problem:match('"violated%-policies":%["client"%]') ~= nil, true)
    -- A name that is longer than the first buffer.
    allowed, fields = tollbar.http_check(("n"):rep(5000), clients, "k")
    equal(allowed, false)
    equal(#fields["RateLimit-Policy"] > 5000, true)
end)

test("what is wrong is said", function()
    local clients = assert(tollbar.table("2/h", { capacity = 100 }))
    raises("dialects cannot be draft-12", function() local _ = tollbar.http_check("client", clients, "k", 1, 0, "draft-12") end)
    raises("http_check takes a table", function() local _ = tollbar.http_check("client", "k") end)
    raises("a name is a string", function() local _ = tollbar.http_check(nil, clients, "k") end)
    local C = tollbar.C
    fails("out of range", C.TOLLBAR_E_OUT_OF_RANGE, tollbar.http_check("client", clients, "k", 1, 0, "draft-06 draft-07"))
    fails("the table: ", C.TOLLBAR_E_NO_SUCH_POLICY, tollbar.http_check("client", clients, "k", 1, 9))
    clients:close()
    raises("the table is closed", function() local _ = tollbar.http_check("client", clients, "k") end)
end)

test("a client reads what a server says", function()
    local seen = tollbar.http_read { ["RateLimit-Policy"] = '"a";q=100;w=60', RateLimit = '"a";r=19;t=7', ["Retry-After"] = "9" }
    equal(seen.limit, 100)
    equal(seen.window, 60)
    equal(seen.remaining, 19)
    equal(seen.more_after, 7)
    equal(seen.retry_after, 9)
    equal(tollbar.http_read("x-ratelimit-remaining: 3\r\n").remaining, 3)
    equal(tollbar.http_read({ Server = "x\r\nRetry-After: 9" }).retry_after, nil)
    raises("a header is a string", function() local _ = tollbar.http_read(7) end)
end)

harness.finish()
