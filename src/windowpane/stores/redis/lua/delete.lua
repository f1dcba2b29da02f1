-- Remove a session; with conditions only while it is idle.
local only_idle, seq, touched, holder = unpack(ARGV, 5, 8)
local known = redis.call('HMGET', row, 'owner', 'agent', 'seq', 'touched', 'holder', 'until', 'bundles')
if not known[1] then
  return {'missing'}
end
if only_idle and (known[3] ~= seq or known[4] ~= touched
    or known[5] and 'h' .. known[5] ~= holder and tonumber(known[6]) > tonumber(now())) then
  return {'used'}
end
redis.call('DEL', unpack(KEYS))
if index ~= '' then
  redis.call('ZREM', index .. 'all', id)
  redis.call('ZREM', index .. 'owner:' .. known[1], id)
  redis.call('ZREM', index .. 'agent:' .. known[2], id)
end
redis.call(wake, row, '')
return {'deleted', known[1], known[2], known[7] or ''}
