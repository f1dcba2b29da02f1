-- Renew the lease, if the holder has it.
if redis.call('HGET', row, 'holder') ~= ARGV[5] then
  return {'lost'}
end
redis.call('HSET', row, 'until', as_text(tonumber(now()) + tonumber(ARGV[6])))
return {'renewed'}
