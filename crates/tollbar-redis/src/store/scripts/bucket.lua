-- A token bucket (gcra), and a bucket that is refilled in steps (interval). KEYS: the key. A step
-- is `step` microseconds of this server's clock: 1 for gcra, the period for interval. Each step
-- adds `rate` units. A permit is `permit` units. The key's value is the text
-- "bNUMBER debt step permit": in step NUMBER the bucket lacked `debt` units, and the policy that
-- wrote the text had steps and permits of that size. All numbers stay below 2^53, up to which Lua's
-- numbers are exact.
local mode, cost = ARGV[1], tonumber(ARGV[2])
local step, rate, permit = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local tolerance = tonumber(ARGV[6])

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local clock = (now - math.fmod(now, step)) / step

local value = redis.pcall('GET', KEYS[1])
local debt, write = 0, false
if type(value) == 'string' then
  local at, owed, kept, unit = string.match(value, '^b(%d+) (%d+) (%d+) (%d+)$')
  at, owed, kept, unit = tonumber(at), tonumber(owed), tonumber(kept), tonumber(unit)
  if not at or #value > 68 or kept == 0 or unit == 0 then
    return { 3 }
  end
  if unit ~= permit then
    -- A former policy counted in other units: it owes as many permits, whole ones.
    local over = math.fmod(owed, unit)
    owed = (owed - over) / unit * permit
    if over > 0 then
      owed = owed + permit
    end
  end
  -- A former policy may have had a larger burst. Now the debt is at most an empty bucket.
  debt = math.min(owed, tolerance)
  local gone = clock - at
  local changed = kept ~= step
  if changed then
    -- A former policy wrote the value, with steps of another length. The step that it was in has
    -- refilled nothing yet, so this policy refills from now on. The script therefore writes the
    -- value also if it denies the request.
    local past = now - at * kept
    past = past - math.fmod(past, kept)
    gone = (past - math.fmod(past, step)) / step
  end
  if gone * rate < debt then
    debt = debt - gone * rate
  else
    debt = 0
  end
  write = changed and kept > step and debt > 0
  if debt > tolerance then
    -- The clock was set back, so the stored step is ahead of it. The bucket counts as empty, and
    -- fills from now on.
    debt, write = tolerance, true
  end
elseif value then
  if string.sub(value.err, 1, 9) == 'WRONGTYPE' then
    return { 3 }
  end
  return value
end

if mode == '2' then
  local room = tolerance - debt
  cost = math.min(cost, (room - math.fmod(room, permit)) / permit)
end
local verdict, taken = 1, 0
if cost == 0 then
  verdict = 0
elseif cost > tolerance / permit then
  verdict, write = 2, false
elseif debt + cost * permit <= tolerance then
  verdict = 0
  if mode ~= '1' then
    taken, write = cost, true
    debt = debt + cost * permit
  end
end

if write and mode ~= '1' then
  local over = math.fmod(debt, rate)
  local full = clock + (debt - over) / rate
  if over > 0 then
    full = full + 1
  end
  -- PXAT takes an absolute time, so the expiry counts from the clock read above. It is rounded up
  -- to a millisecond, and one is added.
  redis.call('SET', KEYS[1], string.format('b%.0f %.0f %.0f %.0f', clock, debt, step, permit), 'PXAT', string.format('%.0f', math.ceil(full * step / 1000) + 1))
end
return { verdict, taken, now, debt }
