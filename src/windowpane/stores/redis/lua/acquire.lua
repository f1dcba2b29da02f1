-- Take or renew the session's lease.
local holder, ttl_us = ARGV[5], tonumber(ARGV[6])
local known = redis.call('HMGET', row, 'seq', 'holder', 'until', 'fence')
if not known[1] then
  return {'missing'}
end
local at = tonumber(now())
local fence = tonumber(known[4] or 0)
if known[2] ~= holder then
  if known[2] and tonumber(known[3]) > at then
    return {'held'}
  end
  fence = math.max(fence + 1, at)
end
redis.call('HSET', row, 'holder', holder, 'until', as_text(at + ttl_us), 'fence', as_text(fence))
return {'taken', fence}
