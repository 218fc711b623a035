-- A lease from one key's bucket. KEYS: the limit's epoch, the key. Times are microseconds of this server's clock; all
-- numbers stay below 2^53, where Lua's are exact. bucket.rs has the same in Rust, and the reasons.
local num, den, cap, debt_cap = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local want, least, hint, debt = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local run, seen, fresh, grace = ARGV[9], ARGV[10], ARGV[11], tonumber(ARGV[12])

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

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

-- Since when this server can vouch for what it has.
local epoch = redis.pcall('GET', KEYS[1])
local id, ran, born, empty, lost
if type(epoch) == 'string' then
  id, ran, born, empty, lost = string.match(epoch, '^(%x+) (%x*) (%d+) (%d+) ([01])$')
end
local changed = false
if not id then
  id, ran, born, empty, lost = fresh, run, now, now, seen ~= '' and '1' or '0'
  changed = true
else
  born, empty = tonumber(born), tonumber(empty)
  if run ~= '' and run ~= ran then
    ran, empty, lost, changed = run, now, '1', true
  elseif seen ~= '' and seen ~= id and lost == '0' then
    if now > born + grace then
      empty = now
    else
      empty = born
    end
    lost, changed = '1', true
  end
end
if changed or want + debt == 0 then
  -- A question about nothing is a probe, and finds out whether this server can be written to.
  redis.call('SET', KEYS[1], string.format('%s %s %.0f %.0f %s', id, ran, born, empty, lost))
end
local floor = 0
if lost == '1' or now < born + grace then
  floor = empty + cap
end

local furthest = now + debt_cap
local stored = redis.pcall('GET', KEYS[2])
local tat = 0
if type(stored) == 'string' then
  tat = string.match(stored, '^%d+$') and tonumber(stored) or furthest
elseif stored then
  -- Not a string: somebody else's. Nobody knows what has been taken, so the bucket is empty.
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
  -- At a time, and not after one, which would count from before this script's clock was read.
  redis.call('SET', KEYS[2], string.format('%.0f', tat), 'PXAT', string.format('%.0f', math.ceil(tat / 1000)))
end
return { permits, retry, string.format('%.0f', tat), id, string.format('%.0f', now) }
