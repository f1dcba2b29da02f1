-- Give the lease back, if the holder has it.
if redis.call('HGET', row, 'holder') == ARGV[5] then
  redis.call('HDEL', row, 'holder', 'until')
end
return {'released'}
