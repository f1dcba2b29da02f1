-- Note that a session is given a bundle of texts; keep the texts if they are not here yet. All keys are of one slot.
--
-- A reference is 'bundle token session'. It is noted before the session is told, and crossed out after the session has
-- forgotten it. So what dies in between leaves a reference too many, never one too few.
local texts, held, counts = unpack(KEYS)
local bundle, reference, old_s, many = unpack(ARGV, 1, 4)
if redis.call('EXISTS', texts) == 0 then
  if #ARGV == 4 then
    return {'bring'}
  end
  for number = 5, #ARGV, 2 do
    redis.call('HSET', texts, ARGV[number], ARGV[number + 1])
  end
end
local at = redis.call('TIME')[1]
if redis.call('ZADD', held, at, reference) == 1 then
  redis.call('HINCRBY', counts, bundle, 1)
end
return {'held', at, redis.call('ZRANGEBYSCORE', held, '-inf', at - old_s, 'LIMIT', 0, many)}
