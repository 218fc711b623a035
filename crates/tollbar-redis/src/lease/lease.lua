-- Charges a debt to one key's bucket, serves the requests that wait, and grants a lease. KEYS: the
-- limit's record, the key's TAT. record.rs and bucket.rs compute the same in Rust, line for line, and their comments
-- give the reasons. Times are microseconds. All numbers stay below 2^53, up to which Lua's numbers
-- are exact.
local own_num, own_den, own_cap, own_reach = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local want, least, hint, debt = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local run, seen, fresh, grace = ARGV[9], ARGV[10], ARGV[11], tonumber(ARGV[12])
local at, slack, hold = tonumber(ARGV[13]), tonumber(ARGV[14]), tonumber(ARGV[15])
local waiting, cost, own_life, refill = tonumber(ARGV[16]), tonumber(ARGV[17]), tonumber(ARGV[18]), ARGV[19] == '1'

local time = redis.call('TIME')
local raw = time[1] * 1000000 + time[2]

-- The record: the data's name, their time, and the terms in force.
local record = redis.pcall('GET', KEYS[1])
local id, ran, born, empty, lost, now, was, low, margin, num, den, rate_until, cap, cap_until, reach, reach_until
if type(record) == 'string' then
  id, ran, born, empty, lost, now, was, low, margin, num, den, rate_until, cap, cap_until, reach, reach_until = string.match(record,
    '^(%x+) (%x*) (%d+) (%d+) ([01]) (%d+) (%d+) (%-?%d+) (%d+) ([1-9]%d*) ([1-9]%d*) (%d+) (%d+) (%d+) (%d+) (%d+)$')
end
-- A question without want and debt is a probe. The script then always writes the record, so that a
-- server that refuses writes refuses the probe.
local write, mixed = want + debt + waiting == 0, 0
if not id then
  now = at > 0 and at or raw
  id, ran, born, empty, lost = fresh, run, now, now, seen ~= '' and refill and '1' or '0'
  low, margin = raw - now, 1000000
  num, den, rate_until = own_num, own_den, now + hold
  cap, cap_until, reach, reach_until = own_cap, now + hold, own_reach, now + own_reach
  write = true
else
  born, empty, now, was, low, margin = tonumber(born), tonumber(empty), tonumber(now), tonumber(was), tonumber(low), tonumber(margin)
  num, den, rate_until = tonumber(num), tonumber(den), tonumber(rate_until)
  cap, cap_until, reach, reach_until = tonumber(cap), tonumber(cap_until), tonumber(reach), tonumber(reach_until)
  -- The data's time advances by as much as the server's clock, never goes back, and does not pass
  -- the limit that the asking node sets.
  local before = now
  now = now + math.max(raw - was, 0)
  if at > 0 and seen == id then
    now = math.min(now, math.max(at + slack, before))
  end
  local offset = raw - now
  if raw >= was + 1000 or offset ~= was - before then
    write = true
  end
  if run ~= '' and run ~= ran then
    ran, write = run, true
    if refill then
      empty, lost = now, '1'
    end
  elseif refill and seen ~= '' and seen ~= id and lost == '0' then
    if now > born + grace then
      empty = now
    else
      empty = born
    end
    lost, write = '1', true
  end
  -- The server expires keys by its own clock. A jump ahead by more than the margin may have expired
  -- TATs too early.
  if offset - low > margin then
    margin = math.min(2 * (offset - low), 86400000000)
    low, write = offset, true
    if refill then
      empty, lost = now, '1'
    end
  end
  low = math.min(low, offset)
  -- The slower rate, the smaller cap and the larger reach of debts are in force as long as a
  -- machine asks with them.
  if own_num == num and own_den == den then
    rate_until = now + hold
  else
    local own, agreed = own_num / own_den, num / den
    if own < agreed or now > rate_until then
      cap = math.floor(math.min(cap * agreed / own, own_cap))
      num, den, rate_until = own_num, own_den, now + hold
      reach, reach_until = own_reach, now + own_reach
      empty, lost, write = now, '1', true
    else
      own_cap, own_reach, mixed = math.floor(math.min(own_cap * own / agreed, cap)), reach, 1
    end
  end
  if own_cap <= cap or now > cap_until then
    write = write or own_cap ~= cap
    cap, cap_until = own_cap, now + hold
  else
    mixed = 1
  end
  if own_reach >= reach or now > reach_until then
    write = write or own_reach ~= reach
    reach, reach_until = own_reach, now + own_reach
  end
end
if write then
  redis.call('SET', KEYS[1], string.format('%s %s %.0f %.0f %s %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f',
    id, ran, born, empty, lost, now, raw, low, margin, num, den, rate_until, cap, cap_until, reach, reach_until))
end

local function fits(micros)
  return math.floor(micros * num / den)
end

local function charge(permits)
  local product = permits * den
  local whole = math.floor(product / num)
  if whole * num < product then
    whole = whole + 1
  end
  return whole
end

local floor = 0
if lost == '1' or refill and now < born + grace then
  floor = empty + reach
end

local furthest, limit = now + reach, now + cap
local stored = redis.pcall('GET', KEYS[2])
local tat = 0
if type(stored) == 'string' then
  tat = string.match(stored, '^%d+$') and tonumber(stored) or furthest
elseif stored then
  -- The value has another type, so this script did not write it. The bucket counts as empty,
  -- because nobody knows how many permits were taken.
  tat = furthest
end
tat = math.min(math.max(tat, hint, floor, now), furthest)
tat = math.min(tat + charge(debt), furthest)

-- The requests that wait.
local served, room = waiting, fits(math.max(limit - tat, 0))
if waiting > room then
  served = cost > 0 and room - math.fmod(room, cost) or room
end
tat = tat + charge(served)

-- The lease. It is charged as if it were spent at the end of its life.
local permits, retry, life = 0, 0, 0
least = math.max(least, 1)
if served < waiting then
  retry = math.max(charge(math.max(cost, 1)) + tat - limit, 1)
elseif want > 0 then
  life = math.max(own_life, math.min(tat - now, math.floor(cap / 2)))
  life = math.min(life, math.max(cap - charge(least), 0))
  local from = math.max(tat, now + life)
  room = fits(math.max(limit - from, 0))
  if room < least then
    retry = math.max(charge(least) + tat - limit, 1)
  else
    permits = math.min(math.max(want, least), math.max(room - math.floor(room / 2), least))
    tat = from + charge(permits)
  end
end
if tat > now then
  -- PXAT takes an absolute time. PX would count from the start of the script, which may be before
  -- the time that TIME has returned.
  local expires = math.ceil((tat - now + raw + margin) / 1000)
  redis.call('SET', KEYS[2], string.format('%.0f', tat), 'PXAT', string.format('%.0f', expires))
end
local open = tat + charge(math.floor(fits(cap) / 8)) <= limit and 1 or 0
return { permits, retry, string.format('%.0f', tat), id, string.format('%.0f', now), mixed, served,
  string.format('%.0f', life), open, fits(cap) }
