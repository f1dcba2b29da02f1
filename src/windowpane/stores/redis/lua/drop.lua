-- Remove a name from an index if it still has the score it was found with and is older than some microseconds.
-- KEYS: the index. ARGV: the name, the score, the microseconds.
local time = redis.call('TIME')
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if score and tonumber(score) == tonumber(ARGV[2])
    and tonumber(score) + tonumber(ARGV[3]) < time[1] * 1000000 + time[2] then
  redis.call('ZREM', KEYS[1], ARGV[1])
end
return {'dropped'}
