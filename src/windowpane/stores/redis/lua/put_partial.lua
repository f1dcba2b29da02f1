-- Keep the words of a reply that is not complete, unless another took the lease since.
local fence, body = tonumber(ARGV[5]), ARGV[6]
local known = redis.call('HMGET', row, 'seq', 'fence')
if not known[1] or fence < tonumber(known[2] or 0) then
  return {'ignored'}
end
redis.call('HSET', row, 'partial', body)
return {'kept'}
