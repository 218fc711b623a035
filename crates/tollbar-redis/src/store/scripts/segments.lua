-- A sliding window of segments. KEYS: the key. The value is "sLENGTH segment count count ...": a
-- segment's length in microseconds, the number of the newest segment that was written, the permits
-- taken in it, and those of the segments before it, newest first. A decision counts `whole` segments
-- before the running one whole, and with `partial` the one before them in part. All numbers stay
-- below 2^53, up to which Lua's numbers are exact.
local mode, cost = ARGV[1], tonumber(ARGV[2])
local length, limit, whole, partial = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local elapsed = math.fmod(now, length)
local segment = (now - elapsed) / length
local places = whole + 1
if partial then
  places = places + 1
end
-- The permits of the segment that is n - 1 before the running one.
local counts = {}
for n = 1, places do
  counts[n] = 0
end

local value, write = redis.pcall('GET', KEYS[1]), false
if type(value) == 'string' then
  local kept, at, list = string.match(value, '^s(%d+) (%d+)([%d ]+)$')
  if not kept or #value > 20000 then
    return { 3 }
  end
  kept, at = tonumber(kept), tonumber(at)
  local n, sum, shift = 0, 0, segment - at
  if kept == length and -shift > whole + 2 then
    -- The clock was set back by more than a window: the permits count as taken just now.
    shift, write = 0, true
  elseif kept == length and shift < 0 then
    -- The clock was set back. The request is decided at the start of the segment that was written.
    segment, elapsed, shift = at, 0, 0
  end
  for count in string.gmatch(list, '%d+') do
    n = n + 1
    count = math.min(tonumber(count), limit)
    sum = sum + count
    if kept == length and counts[n + shift] then
      counts[n + shift] = count
    end
  end
  if n == 0 then
    return { 3 }
  end
  if kept ~= length and (at + n) * kept > now then
    -- A former policy wrote segments of another length. They count as taken just now.
    counts[1] = math.min(sum, limit)
  end
elseif value then
  if string.sub(value.err, 1, 9) == 'WRONGTYPE' then
    return { 3 }
  end
  return value
end

-- The newest segments lie in the window as a whole, and `used` is the sum of their permits. Of the
-- segment before them only a part lies in the window. `part` is that share of its permits, rounded
-- up.
local used, part = 0, 0
for place = 1, whole + 1 do
  used = used + counts[place]
end
if partial then
  local rest = counts[places] * (length - elapsed)
  local over = math.fmod(rest, length)
  part = (rest - over) / length
  if over > 0 then
    part = part + 1
  end
end
local function left()
  return math.max(0, limit - used - part)
end
-- The microseconds until `permits` are left.
local function wait(permits)
  local running, sum = segment * length, used
  for n = 0, places do
    -- In the n-th segment from the running one.
    local room, from = limit - sum - permits, 0
    if room >= 0 then
      local old = partial and counts[whole + 2 - n] or 0
      if old > 0 then
        local fits = room * length
        from = math.max(0, length - (fits - math.fmod(fits, old)) / old)
      end
      if from < length then
        return math.max(running + n * length + from, running + elapsed) - now
      end
    end
    sum = sum - (counts[whole + 1 - n] or 0)
  end
  return running + places * length - now
end

if mode == '2' then
  cost = math.min(cost, left())
end
local verdict, taken = 1, 0
if cost == 0 then
  verdict = 0
elseif cost > limit then
  verdict = 2
elseif cost <= left() then
  verdict = 0
  if mode ~= '1' then
    taken, write = cost, true
    counts[1], used = counts[1] + cost, used + cost
  end
end
if write and mode ~= '1' then
  local numbers = { string.format('s%.0f %.0f', length, segment) }
  for n = 1, places do
    numbers[n + 1] = string.format('%.0f', counts[n])
  end
  -- PXAT takes an absolute time, so the expiry counts from the clock read above. It is rounded up
  -- to a millisecond, and one is added.
  local over = (segment + places) * length
  redis.call('SET', KEYS[1], table.concat(numbers, ' '), 'PXAT', string.format('%.0f', math.ceil(over / 1000) + 1))
end
local asks = math.min(cost, limit)
if mode == '2' then
  asks = 1
end
return { verdict, taken, now, left(), wait(asks), wait(limit) }
