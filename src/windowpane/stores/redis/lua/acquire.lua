-- Take or renew the session's lease.
local holder, ttl_us = ARGV[5], tonumber(ARGV[6])
local known = redis.call('HMGET', row, 'seq', 'holder', 'until')
if not known[1] then
  return {'missing'}
end
local at = tonumber(now())
if known[2] and known[2] ~= holder and tonumber(known[3]) > at then
  return {'held'}
end
redis.call('HSET', row, 'holder', holder, 'until', as_text(at + ttl_us))
return {'taken'}
