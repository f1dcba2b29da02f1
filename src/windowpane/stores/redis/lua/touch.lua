-- Note that the session was used now.
local known = redis.call('HMGET', row, 'touched', 'listed')
if not known[1] then
  return {'missing'}
end
local at = now(known[1])
redis.call('HSET', row, 'touched', at)
return used({'touched'}, at, known[2])
