-- Answers questions about keys of several limits. For each key it charges the debt, serves the
-- requests that wait, and grants a lease. record.rs, change.rs and bucket.rs compute the same in Rust,
-- line for line, and their comments give the reasons; wire.rs packs the arguments. Times are
-- microseconds. All numbers stay below 2^53, up to which Lua's numbers are exact.
--
-- KEYS: the record of each limit, then the keys of the first limit, of the second, and so on.
-- ARGV: a name for new data and the number of limits; then a header and the terms of each limit; then
-- a question for each key.
-- Returns a string for each limit: '+' and numbers; or '-', the number of the key that could not be
-- written (0: the record) and the error, which is empty if there is neither a record nor terms for one.
local fresh, limits = ARGV[1], tonumber(ARGV[2])
local questions = 2 + 2 * limits
local GRACE, HOLD, KEPT, CHANGES, GAPS, FARTHEST = 1000000, 2000000, 3000000, 8, 4, 2 ^ 50

local time = redis.call('TIME')
local raw = time[1] * 1000000 + time[2]
-- A value of another type reads as false.
local values = redis.call('MGET', unpack(KEYS))

local function charge_at(permits, num, den)
  local product = permits * den
  local whole = math.floor(product / num)
  if whole * num < product then
    whole = whole + 1
  end
  return whole
end

-- Terms: version, rate, burst, cap, reach of debts, life, a machine's right, machines, on_loss,
-- flags, the right before a time and that time.
local TERMS = '((%d+) ([1-9]%d*) ([1-9]%d*) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ([01]) (%d+) (%d+) (%d+))'
local function parsed(text)
  local all, version, num, den, burst, cap, reach, life, right, nodes, refill, flags, before, since = string.match(text, '^' .. TERMS .. '$')
  if not all then
    return nil
  end
  return { text = all, version = tonumber(version), num = tonumber(num), den = tonumber(den), burst = tonumber(burst),
    cap = tonumber(cap), reach = tonumber(reach), life = life, right = tonumber(right), nodes = tonumber(nodes),
    refill = refill == '1', flags = tonumber(flags), before = tonumber(before), since = tonumber(since) }
end

local function with(terms, version, before, since)
  return parsed(string.format('%.0f %.0f %.0f %.0f %.0f %.0f %s %.0f %.0f %s %.0f %.0f %.0f', version, terms.num, terms.den, terms.burst,
    terms.cap, terms.reach, terms.life, terms.right, terms.nodes, terms.refill and '1' or '0', terms.flags, before, since))
end

-- A TAT that was charged by an older version.
local function converted(tat, known, ending, changes, num, den)
  local list = {}
  for of, made, from_num, from_den, most in string.gmatch(changes, '(%d+) (%d+) (%d+) (%d+) (%d+);') do
    list[#list + 1] = { tonumber(of), tonumber(made), tonumber(from_num), tonumber(from_den), tonumber(most) }
  end
  for n, change in ipairs(list) do
    if change[1] > known then
      local next = list[n + 1] or { 0, 0, num, den }
      local slower = (next[4] * change[3]) / (next[3] * change[4])
      local from = slower < 1 and math.max(change[2], math.min(ending, tat, change[2] + KEPT)) or change[2]
      if tat > from then
        local used = math.ceil((tat - from) * slower)
        tat = from + (change[5] > 0 and math.min(used, change[5]) or used)
      end
    end
  end
  return tat
end

-- Keys of the limits before.
local passed = 0

local function answer(n)
  local header, own = ARGV[1 + 2 * n], ARGV[2 + 2 * n]
  local count, heard, first, at, slack, own_life, rest = struct.unpack('<dddddd', header)
  local seen = string.sub(header, rest)
  first = first == 1

  -- The record: the data's name, their time, the terms in force, and what changes have left behind.
  local record = values[n]
  local id, born, empty, floor, lost, now, was, low, margin, gaps, terms, tight, tight_until, cut_from, far, far_until, changes
  if record then
    local head, text, tail
    head, text, tail = string.match(record, '^([^;]+);([^;]+);(.+)$')
    if head then
      id, born, empty, floor, lost, now, was, low, margin, gaps = string.match(head, '^(%x+) (%d+) (%d+) (%d+) ([01]) (%d+) (%d+) (%-?%d+) (%d+)([%d ]*)$')
      terms = parsed(text)
      tight, tight_until, cut_from, far, far_until, changes = string.match(tail, '^(%d+) (%d+) (%d+) (%d+) (%d+);([%d ;]*)$')
    end
  end
  local own_terms = terms and own == terms.text and terms or parsed(own)
  if not (id and terms and changes) then
    if not own_terms then
      return '-0 '
    end
    now = at > 0 and at or raw
    id, born, empty, lost = fresh, now, now, seen ~= '' and own_terms.refill and '1' or '0'
    low, margin, gaps = raw - now, 1000000, ''
    floor = now + own_terms.reach
    terms = with(own_terms, math.max(own_terms.version, 1), own_terms.before, own_terms.since)
    tight, tight_until, cut_from, far, far_until, changes = 0, 0, 0, 0, 0, ''
  else
    born, empty, floor, now, was, low, margin = tonumber(born), tonumber(empty), tonumber(floor), tonumber(now), tonumber(was), tonumber(low), tonumber(margin)
    tight, tight_until, cut_from = tonumber(tight), tonumber(tight_until), tonumber(cut_from)
    far, far_until = tonumber(far), tonumber(far_until)
    -- The data's time advances by as much as the server's clock, never goes back, and does not pass
    -- the limit that the asking node sets.
    local before, refill = now, terms.refill
    local lost_at
    now = now + math.max(raw - was, 0)
    if at > 0 and seen == id then
      now = math.min(now, math.max(at + slack, before))
    end
    local rolled_back, list = seen == id and heard > before, {}
    for from, to in string.gmatch(gaps, ' (%d+) (%d+)') do
      from, to = tonumber(from), tonumber(to)
      rolled_back = rolled_back or seen == id and from < heard and heard < to
      if to + GRACE >= now then
        list[#list + 1] = { from, to }
      end
    end
    if first and now > before then
      if #list < GAPS then
        list[#list + 1] = { before, now }
      else
        -- The shortest gives way.
        local least
        for _, gap in ipairs(list) do
          if not least or gap[2] - gap[1] < least[2] - least[1] then
            least = gap
          end
        end
        if least[2] - least[1] < now - before then
          least[1], least[2] = before, now
        end
      end
    end
    gaps = ''
    if rolled_back then
      now = math.max(now, heard)
    else
      for _, gap in ipairs(list) do
        gaps = gaps .. string.format(' %.0f %.0f', gap[1], gap[2])
      end
    end
    if rolled_back then
      lost_at = refill and now
    elseif refill and seen ~= '' and seen ~= id and (lost == '0' or heard > empty) then
      lost_at = (lost == '1' or now > born + GRACE) and now or born
    end
    -- The server expires keys by its own clock. A jump ahead by more than the margin may have expired
    -- TATs too early.
    local offset = raw - now
    if offset - low > margin then
      margin, low = math.min(2 * (offset - low), 86400000000), offset
      if refill then
        lost_at = now
      end
    end
    low = math.min(low, offset)
    if lost_at then
      empty, floor, lost = lost_at, lost_at + terms.reach, '1'
    end
    -- Terms of a higher version are put in force.
    local new = own_terms
    if new and new.version > terms.version and now >= tight_until then
      local slower = (new.den * terms.num) / (new.num * terms.den)
      far = math.ceil((now < far_until and math.max(far, terms.reach) or terms.reach) * math.max(slower, 1))
      local most = 0
      if new.burst < terms.burst and now >= cut_from then
        most = charge_at(new.burst, new.num, new.den)
        cut_from = now + charge_at(terms.burst, terms.num, terms.den)
      end
      changes = changes .. string.format('%.0f %.0f %.0f %.0f %.0f;', new.version, now, terms.num, terms.den, most)
      if select(2, string.gsub(changes, ';', '')) > CHANGES then
        changes = string.gsub(changes, '^[^;]*;', '')
      end
      far = math.min(math.max(far, new.reach), FARTHEST)
      far_until = now + far
      local burst, rights = math.max(terms.burst, new.burst), new.nodes * new.right
      if new.right < terms.right then
        rights = math.min(terms.nodes, new.nodes) * terms.right + math.max(new.nodes - terms.nodes, 0) * new.right
      end
      local left = math.max(math.ceil((floor - now) * slower + math.max(new.reach - terms.reach * slower, 0)), 0)
      floor = now + (most > 0 and math.min(left, most) or left)
      local exact = new.flags % 2 == 1
      tight = new.cap
      if exact then
        tight = math.min(new.cap, charge_at(math.max(burst - rights, 0), new.num, new.den))
      end
      tight_until = now + HOLD
      local held = now < terms.since and terms.before or terms.right
      local above = math.floor(terms.cap * terms.num / terms.den) + 1 + new.nodes * new.right - burst
      if new.right > held and above > 0 and exact then
        terms = with(new, new.version, held, math.max(now + charge_at(above, new.num, new.den), terms.since))
      else
        terms = with(new, new.version, new.right, 0)
      end
    end
  end
  local written = redis.pcall('SET', KEYS[n], string.format('%s %.0f %.0f %.0f %s %.0f %.0f %.0f %.0f%s;%s;%.0f %.0f %.0f %.0f %.0f;%s',
    id, born, empty, floor, lost, now, raw, low, margin, gaps, terms.text, tight, tight_until, cut_from, far, far_until, changes))
  if written.err then
    return '-0 ' .. written.err
  end

  local num, den, version = terms.num, terms.den, terms.version
  local cap = now < tight_until and math.min(terms.cap, tight) or terms.cap
  local reach = now < far_until and math.max(terms.reach, far) or terms.reach

  local function fits(micros)
    return math.floor(micros * num / den)
  end

  local function charge(permits)
    return charge_at(permits, num, den)
  end

  local least_tat = math.max((lost == '1' or terms.refill and now < born + GRACE) and floor or 0, now)

  local furthest, limit = now + reach, now + cap
  local most, half = fits(cap), math.floor(cap / 2)
  local margin_open = charge(math.floor(most / 8))
  -- A TAT counts by the terms under which it was told.
  local counts = own_terms and own_terms.version == version
  local parts = { '+' .. struct.pack('<dd', now, most) }

  for key = 1, count do
    local place = passed + key
    local want, least, hint, debt, waiting, cost = struct.unpack('<dddddd', ARGV[questions + place])
    local name = KEYS[limits + place]
    local stored = values[limits + place] or redis.pcall('GET', name)
    local tat, ending = 0, 0
    if type(stored) == 'string' then
      local value, known, last = string.match(stored, '^(%d+) (%d+) (%d+)$')
      if value then
        tat, known, ending = tonumber(value), tonumber(known), tonumber(last)
        if known < version then
          tat = converted(tat, known, ending, changes, num, den)
        end
      else
        tat = furthest
      end
    elseif stored then
      -- The value has another type, so this script did not write it. The bucket counts as empty,
      -- because nobody knows how many permits were taken.
      tat = furthest
    end
    tat = math.min(math.max(tat, counts and hint or 0, least_tat), furthest)
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
      life = math.max(own_life, math.min(tat - now, half))
      life = math.min(life, math.max(cap - charge(least), 0))
      local from = math.max(tat, now + life)
      room = fits(math.max(limit - from, 0))
      if room < least then
        retry = math.max(charge(least) + tat - limit, 1)
      else
        permits = math.min(math.max(want, least), math.max(room - math.floor(room / 2), least))
        tat = from + charge(permits)
        ending = math.max(ending, now + life)
      end
    end
    if tat > now then
      -- PXAT takes an absolute time. PX would count from the start of the script, which may be before
      -- the time that TIME has returned.
      local expires = math.ceil((tat - now + raw + margin) / 1000)
      local reply = redis.pcall('SET', name, string.format('%.0f %.0f %.0f', tat, version, ending > now and ending or 0), 'PXAT', expires)
      if reply.err then
        return '-' .. key .. ' ' .. reply.err
      end
    end
    local open = tat + margin_open <= limit and 1 or 0
    parts[key + 1] = struct.pack('<dddddd', permits, retry, tat, served, life, open)
  end
  parts[count + 2] = id .. ';' .. (own ~= terms.text and terms.text or '')
  return table.concat(parts)
end

local replies = {}
for n = 1, limits do
  local before, count = passed, struct.unpack('<d', ARGV[1 + 2 * n])
  replies[n] = answer(n)
  passed = before + count
end
return replies
