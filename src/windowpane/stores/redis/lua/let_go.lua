-- Cross out a reference to a bundle of texts; the last one takes the texts along.
local texts, held, counts = unpack(KEYS)
local bundle, reference = unpack(ARGV)
if redis.call('ZREM', held, reference) == 1 and redis.call('HINCRBY', counts, bundle, -1) <= 0 then
  redis.call('HDEL', counts, bundle)
  redis.call('DEL', texts)
end
return {'gone'}
