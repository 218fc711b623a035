-- Charges a debt to one key's bucket and grants a lease from it. KEYS: the limit's record, the
-- key's TAT. record.rs and bucket.rs compute the same in Rust, line for line, and their comments
-- give the reasons. Times are microseconds. All numbers stay below 2^53, up to which Lua's numbers
-- are exact.
local own_num, own_den, own_cap, own_reach = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local want, least, hint, debt = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local run, seen, fresh, grace = ARGV[9], ARGV[10], ARGV[11], tonumber(ARGV[12])
local at, slack, hold = tonumber(ARGV[13]), tonumber(ARGV[14]), tonumber(ARGV[15])

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
local write, mixed = want + debt == 0, 0
if not id then
  now = at > 0 and at or raw
  id, ran, born, empty, lost = fresh, run, now, now, seen ~= '' and '1' or '0'
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
    ran, empty, lost, write = run, now, '1', true
  elseif seen ~= '' and seen ~= id and lost == '0' then
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
    empty, lost, low, write = now, '1', offset, true
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
if lost == '1' or now < born + grace then
  floor = empty + cap
end

local furthest = now + reach
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

local room = fits(math.max(now + cap - tat, 0))
local permits, retry = 0, 0
least = math.max(least, 1)
if want > 0 then
  if room < least then
    retry = charge(least) + tat - (now + cap)
  else
    permits = math.min(math.max(want, least), math.max(room - math.floor(room / 2), least))
    tat = tat + charge(permits)
  end
end
if tat > now then
  -- PXAT takes an absolute time. PX would count from the start of the script, which may be before
  -- the time that TIME has returned.
  local expires = math.ceil((tat - now + raw + margin) / 1000)
  redis.call('SET', KEYS[2], string.format('%.0f', tat), 'PXAT', string.format('%.0f', expires))
end
return { permits, retry, string.format('%.0f', tat), id, string.format('%.0f', now), mixed }
