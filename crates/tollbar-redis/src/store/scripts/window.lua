-- A fixed window. KEYS: the key. The value is "start used": when the window began, in microseconds
-- of this server's clock, and the permits taken in it. A window begins at a multiple of the period,
-- minus `offset` microseconds, or anchored at its first request. All numbers stay below 2^53, up to
-- which Lua's numbers are exact.
local mode, cost = ARGV[1], tonumber(ARGV[2])
local period, limit = tonumber(ARGV[3]), tonumber(ARGV[4])
local anchored, count_rejected, offset = ARGV[5] == '1', ARGV[6] == '1', tonumber(ARGV[7])

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local start, used, write = now, 0, false
if not anchored then
  start = now - math.fmod(now + offset, period)
end

local value = redis.pcall('GET', KEYS[1])
if type(value) == 'string' then
  local began, taken = string.match(value, '^(%d+) (%d+)$')
  if not began or #value > 33 then
    return { 3 }
  end
  began, taken = tonumber(began), math.min(tonumber(taken), limit)
  if began > now + period then
    -- The clock was set back by more than a period. The count now belongs to the running window,
    -- because its own window is in the future.
    used, write = taken, true
  elseif now < began + period then
    start, used = began, taken
  end
elseif value then
  if string.sub(value.err, 1, 9) == 'WRONGTYPE' then
    return { 3 }
  end
  return value
end

if mode == '2' then
  cost = math.min(cost, limit - used)
end
local verdict, taken = 1, 0
if cost == 0 then
  verdict = 0
elseif cost > limit then
  verdict = 2
elseif cost <= limit - used then
  verdict = 0
  if mode ~= '1' then
    taken, used, write = cost, used + cost, true
  end
elseif count_rejected and mode ~= '1' and used < limit then
  used, write = limit, true
end

if write and mode ~= '1' then
  -- PXAT takes an absolute time, so the expiry counts from the clock read above. It is rounded up
  -- to a millisecond, and one is added.
  redis.call('SET', KEYS[1], string.format('%.0f %.0f', start, used), 'PXAT', string.format('%.0f', math.ceil((start + period) / 1000) + 1))
end
return { verdict, taken, now, start, used }
