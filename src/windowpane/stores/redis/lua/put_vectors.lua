-- Keep the vectors of messages beside the snapshot, which goes with every erasure.
local as_of = tonumber(ARGV[5])
local known = redis.call('HMGET', row, 'seq', 'erased')
-- What was read before an erasure may have been erased.
if not known[1] or as_of <= tonumber(known[2] or 0) then
  return {'ignored'}
end
for number = 6, #ARGV, 2 do
  redis.call('HSET', snapshot, 'v' .. ARGV[number], ARGV[number + 1])
end
as_long_as_the_row(snapshot)
return {'kept'}
