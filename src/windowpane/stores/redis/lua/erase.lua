-- Replace events with what stands for an erased one, and forget texts and the snapshot, unless another took the lease.
local erased, fence, count = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local known = redis.call('HMGET', row, 'seq', 'fence')
local seq = known[1]
if not seq then
  return {'missing'}
end
if fence and fence < tonumber(known[2] or 0) then
  return {'fenced'}
end
local wanted, some = {}, false
for number = 8, 7 + count do
  local place = tonumber(ARGV[number])
  if place >= 1 and place <= tonumber(seq) then
    wanted[ARGV[number] .. '-0'] = true
    some = true
  end
end
-- XDEL only marks an entry, and its text stays: the log is rewritten without it.
if some then
  local after = '-'
  redis.call('DEL', fresh)
  repeat
    local entries = redis.call('XRANGE', log, after, '+', 'COUNT', 500)
    for _, entry in ipairs(entries) do
      local fields = entry[2]
      local body = wanted[entry[1]] and erased or fields[6]
      redis.call('XADD', fresh, entry[1], 'a', fields[2], 'o', fields[4], 'e', body)
      after = '(' .. entry[1]
    end
  until #entries == 0
  redis.call('RENAME', fresh, log)
  as_long_as_the_row(log)
end
for number = 8 + count, #ARGV do
  redis.call('HDEL', blobs, ARGV[number])
end
redis.call('DEL', snapshot)
redis.call('HDEL', row, 'partial')
redis.call('HSET', row, 'erased', seq)
return {'erased'}
