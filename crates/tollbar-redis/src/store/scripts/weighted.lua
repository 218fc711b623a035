-- A weighted window. KEYS: the key. The value is "start previous current": when the running window
-- began, in microseconds of this server's clock, and the permits taken in the window before it and
-- in it. All numbers stay below 2^53, up to which Lua's numbers are exact.
local mode, cost = ARGV[1], tonumber(ARGV[2])
local period, limit = tonumber(ARGV[3]), tonumber(ARGV[4])

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local elapsed = math.fmod(now, period)
local start = now - elapsed
local previous, current, write = 0, 0, false

local value = redis.pcall('GET', KEYS[1])
if type(value) == 'string' then
  local began, before, since = string.match(value, '^(%d+) (%d+) (%d+)$')
  if not began or #value > 50 then
    return { 3 }
  end
  began = tonumber(began)
  before, since = math.min(tonumber(before), limit), math.min(tonumber(since), limit)
  if began == start then
    previous, current = before, since
  elseif began + period == start then
    previous = since
  elseif began > start + period then
    -- The clock was set back, and the stored window is later than the next one. Its counts now
    -- belong to the running window and the one before it.
    previous, current, write = before, since, true
  elseif began > start then
    -- The clock was set back, and the stored window is the next one. The request is decided at its
    -- start.
    start, elapsed, previous, current = began, 0, before, since
  elseif began + 2 * period > now then
    -- The stored window began under a former policy with another period. Its counts have their full
    -- weight.
    current = math.min(before + since, limit)
  end
elseif value then
  if string.sub(value.err, 1, 9) == 'WRONGTYPE' then
    return { 3 }
  end
  return value
end

local room = limit * period - (previous * (period - elapsed) + current * period)
if mode == '2' then
  cost = math.min(cost, math.max(0, (room - math.fmod(room, period)) / period))
end
local verdict, taken = 1, 0
if cost == 0 then
  verdict = 0
elseif cost > limit then
  verdict = 2
elseif cost * period <= room then
  verdict = 0
  if mode ~= '1' then
    taken, current, write = cost, current + cost, true
  end
end

if write and mode ~= '1' then
  local over = start + period
  if current > 0 then
    over = over + period
  end
  -- PXAT takes an absolute time, so the expiry counts from the clock read above. It is rounded up
  -- to a millisecond, and one is added.
  redis.call('SET', KEYS[1], string.format('%.0f %.0f %.0f', start, previous, current), 'PXAT', string.format('%.0f', math.ceil(over / 1000) + 1))
end
return { verdict, taken, now, start, previous, current }
