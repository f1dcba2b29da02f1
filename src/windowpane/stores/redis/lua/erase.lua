-- Replace events with what stands for an erased one, and forget texts and the snapshot, unless another took the lease.
local erased, fence, count = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local had, has, rest = ARGV[8], ARGV[9], tonumber(ARGV[10])
local known = redis.call('HMGET', row, 'seq', 'fence', 'bundles')
local seq = known[1]
if not seq then
  return {'missing'}
end
if fence and fence < tonumber(known[2] or 0) then
  return {'fenced'}
end
if had ~= (known[3] or '') then
  return {'changed'}
end
local wanted, some = {}, false
for number = 11, 10 + count do
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
-- What is left of a bundle that is not whole any more becomes the session's own.
for number = 11 + count, 10 + count + rest, 2 do
  redis.call('HSETNX', blobs, ARGV[number], ARGV[number + 1])
end
as_long_as_the_row(blobs)
for number = 11 + count + rest, #ARGV do
  redis.call('HDEL', blobs, ARGV[number])
end
if had ~= has then
  redis.call('HSET', row, 'bundles', has)
end
redis.call('DEL', snapshot)
redis.call('HDEL', row, 'partial')
redis.call('HSET', row, 'erased', seq)
return {'erased'}
