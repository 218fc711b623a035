-- A log of the admissions in the last period. KEYS: the key, a sorted set with an entry for each
-- admission. The score is its time in microseconds of this server's clock. The member is "total
-- permits": all permits entered so far, in 16 digits, and the permits of this admission. So the
-- permits in the window are the newest entry's total, minus the oldest entry's total, plus the
-- oldest entry's permits. All numbers stay below 2^53, up to which Lua's numbers are exact.
local mode, cost = ARGV[1], tonumber(ARGV[2])
local period, limit, count_rejected = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == '1'
local key = KEYS[1]

local function whole(number)
  return string.format('%.0f', number)
end

local function parse(member)
  local total, permits = string.match(member, '^(%d+) (%d+)$')
  return tonumber(total), tonumber(permits)
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local newest = redis.pcall('ZRANGE', key, -1, -1, 'WITHSCORES')
if newest.err then
  if string.sub(newest.err, 1, 9) == 'WRONGTYPE' then
    return { 3 }
  end
  return newest
end
-- If the clock was set back, the request is decided at the time of the newest entry. If that time
-- is more than a period ahead of the clock, all permits in the window count as entered now.
local total, judged, used, lost, latest = 0, now, 0, false, now
if newest[1] then
  local last = tonumber(newest[2])
  total = parse(newest[1])
  if not total or not last or last > 2 ^ 53 then
    return { 3 }
  end
  judged, lost, latest = math.max(now, last), last > now + period, last
  local oldest = redis.call('ZRANGEBYSCORE', key, '(' .. whole(judged - period), '+inf', 'LIMIT', 0, 1)
  if oldest[1] then
    local upto, permits = parse(oldest[1])
    if not upto or upto > total then
      return { 3 }
    end
    used = total - upto + permits
  end
end
if lost then
  judged, latest = now, now
end

if mode == '2' then
  cost = math.min(cost, math.max(0, limit - used))
end
local verdict, taken, enter = 1, 0, lost
if cost == 0 then
  verdict = 0
elseif cost > limit then
  verdict = 2
elseif used + cost <= limit then
  verdict = 0
  if mode ~= '1' then
    taken, enter = cost, true
  end
else
  enter = enter or count_rejected
end

if mode ~= '1' and enter then
  local entered = taken
  if verdict == 1 and count_rejected then
    entered = cost
  end
  if lost or total > 2 ^ 52 then
    used = math.min(used, limit)
    redis.call('DEL', key)
    total = used
    if used > 0 then
      redis.call('ZADD', key, whole(judged), string.format('%016.0f %.0f', total, used))
    end
  end
  if entered > 0 then
    total, used, latest = total + entered, used + entered, judged
    redis.call('ZADD', key, whole(judged), string.format('%016.0f %.0f', total, entered))
  end
  redis.call('ZREMRANGEBYSCORE', key, '-inf', whole(judged - period))
  if count_rejected then
    -- Refused requests can make the window hold more than the limit. Only the newest `limit`
    -- permits count.
    local first = redis.call('ZRANGE', key, 0, 0)
    while first[1] and parse(first[1]) <= total - limit do
      redis.call('ZREMRANGEBYRANK', key, 0, 0)
      first = redis.call('ZRANGE', key, 0, 0)
    end
  end
end

-- The request fits when the first entry whose total is at least total + cost - limit has left the
-- window. Binary search finds it.
local retry = 0
if verdict == 1 then
  if lost then
    retry = period
  else
    local needed, low, high = total + cost - limit, 0, redis.call('ZCARD', key) - 1
    while low < high do
      local middle = math.floor((low + high) / 2)
      if parse(redis.call('ZRANGE', key, middle, middle)[1]) >= needed then
        high = middle
      else
        low = middle + 1
      end
    end
    retry = redis.call('ZRANGE', key, low, low, 'WITHSCORES')[2] + period - now
  end
end
local reset = 0
if used > 0 then
  reset = latest + period - now
end
if mode ~= '1' and enter then
  -- The expiry counts from the clock read above. It is rounded up to a millisecond, and one is
  -- added. This is the last command on the key, because it deletes the key if that time has passed.
  redis.call('PEXPIREAT', key, whole(math.ceil((judged + period) / 1000) + 1))
end
return { verdict, taken, now, math.min(used, limit), retry, reset }
