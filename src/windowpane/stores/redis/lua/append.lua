-- Add events to the end of the log, unless this append was done before.
local op, mark, since, fence, expected, expected_at, begins, owner, agent, moved, count = unpack(ARGV, 5, 15)
local taker, ttl_us, giver, held, held_s = unpack(ARGV, 16, 20)
local known = redis.call('HMGET', row, 'seq', 'at', 'touched', 'listed', mark, 'fence', 'holder', 'until', 'bundles')
local seq = tonumber(known[1] or 0)
if not known[1] and begins == '' then
  return {'missing'}
end
-- Also without a key: an earlier attempt can arrive after a later one, when its connection was slow to die.
if known[5] then
  return {'found', known[5], taker ~= '' and known[7] == taker and known[6] or '', ''}
end
if since ~= '' then
  local moved_to = tonumber(redis.call('HGET', row, 'moved') or 0)
  local before, last = '+', nil
  repeat
    local entries = redis.call('XREVRANGE', log, before, '-', 'COUNT', 100)
    for _, entry in ipairs(entries) do
      local place = string.match(entry[1], '^%d+')
      local at, of = entry[2][2], entry[2][4]
      -- What came from another store has kept its time.
      if tonumber(at) < tonumber(since) and tonumber(place) > moved_to then
        entries = {}
        break
      end
      last = last or place
      if of == op then
        local found = place .. ' ' .. last .. ' ' .. at .. ' ' .. op
        return {'found', found, taker ~= '' and known[7] == taker and known[6] or '', ''}
      elseif of ~= '' then
        last = nil
      end
      before = '(' .. entry[1]
    end
  until #entries == 0
end

-- Another holder took the lease since: the writer slept, and its turn is not its own any more.
if fence ~= '' and tonumber(fence) < tonumber(known[6] or 0) then
  return {'fenced'}
end
if expected ~= '' and tonumber(expected) ~= seq then
  return {'conflict', seq}
end
if expected_at ~= '' and known[2] ~= expected_at then
  return {'rewritten', seq}
end
-- The references to its bundles were noted so long ago that they may have been crossed out.
if held ~= '' and tonumber(redis.call('TIME')[1]) - tonumber(held_s) > hold_s then
  return {'late'}
end
-- Take the lease in the same step, as acquire.lua does.
local taken = ''
if taker ~= '' then
  local at = tonumber(now())
  taken = known[6] or '0'
  if known[7] ~= taker then
    if known[7] and tonumber(known[8]) > at then
      return {'held'}
    end
    taken = as_text(math.max(tonumber(taken) + 1, at))
  end
  redis.call('HSET', row, 'holder', taker, 'until', as_text(at + tonumber(ttl_us)), 'fence', taken)
end

-- What only notes that the user looks at something is no use of the session.
local quiet = moved == 'quiet' and known[1]
if moved == 'quiet' then
  moved = ''
end
count = tonumber(count)
local bodies, times = 20, 20 + count
local touched = moved == '' and now(known[3]) or moved
local at, last = touched, tostring(seq + count)
for number = 1, count do
  if moved ~= '' then
    at = ARGV[times + number]
  end
  local first_of = number == 1 and op or ''
  redis.call('XADD', log, seq + number .. '-0', 'a', at, 'o', first_of, 'e', ARGV[bodies + number])
end
if not known[1] then
  redis.call('HSET', row, 'owner', owner, 'agent', agent, 'created', moved == '' and at or ARGV[times + 1])
elseif quiet or tonumber(touched) < tonumber(known[3]) then
  touched = known[3]
end
local place = seq + 1 .. ' ' .. last .. ' ' .. at .. ' ' .. op
if since == '' and string.sub(mark, 1, 4) ~= 'key:' then
  redis.call('HSET', row, 'seq', last, 'at', at, 'touched', touched)
else
  redis.call('HSET', row, 'seq', last, 'at', at, 'touched', touched, mark, place)
end
if moved ~= '' then
  redis.call('HSET', row, 'moved', last)
end
for number = times + (moved == '' and 0 or count) + 1, #ARGV, 2 do
  redis.call('HSETNX', blobs, ARGV[number], ARGV[number + 1])
end
-- A bundle that it has already it keeps, and the new reference is to be crossed out.
local spare, names, has = {}, {known[9] or nil}, bundles_of(known[9] or '')
for bundle, token in pairs(bundles_of(held)) do
  if has[bundle] and has[bundle] ~= token then
    table.insert(spare, bundle .. ' ' .. token)
  elseif not has[bundle] then
    table.insert(names, bundle .. ' ' .. token)
  end
end
if held ~= '' then
  redis.call('HSET', row, 'bundles', table.concat(names, ' '))
end
if giver ~= '' and (taker ~= '' and taker or known[7]) == giver then
  redis.call('HDEL', row, 'holder', 'until')
end
redis.call(wake, row, last)
return used({'appended', place, taken, table.concat(spare, ' ')}, touched, known[4])
