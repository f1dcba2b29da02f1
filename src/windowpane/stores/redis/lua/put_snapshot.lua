-- Keep a folded state, unless a later one is kept already.
local seq, body = tonumber(ARGV[5]), ARGV[6]
local known = redis.call('HMGET', row, 'seq', 'erased')
-- A state from before an erasure may still hold what was erased.
if not known[1] or seq <= tonumber(known[2] or 0) then
  return {'ignored'}
end
if seq <= tonumber(redis.call('HGET', snapshot, 'seq') or 0) then
  return {'ignored'}
end
redis.call('HSET', snapshot, 'seq', seq, 'body', body)
as_long_as_the_row(snapshot)
return {'kept'}
