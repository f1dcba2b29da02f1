-- What every script about a session begins with.
--
-- KEYS are all keys of one session, because a cluster that moves them refuses a step until all have moved.
-- The first four of ARGV are the same for all scripts: how the names of the indexes begin (empty when they are on
-- other servers), the command that wakes watchers, after how many milliseconds an unused session goes (empty: never),
-- and the session's id. Times are the server's, in microseconds.
local row, log, blobs, snapshot, fresh = unpack(KEYS)
local index, wake, expire_ms, id = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local function as_text(number)
  return string.format('%.0f', number)
end

local function now(not_before)
  local time = redis.call('TIME')
  local at = time[1] .. string.sub('00000' .. time[2], -6)
  return not_before and tonumber(not_before) > tonumber(at) and not_before or at
end

-- Return what to tell the store: where the session belongs now, if the index is on other servers.
local function used(answer, at, listed)
  if expire_ms ~= '' then
    for _, key in ipairs(KEYS) do
      redis.call('PEXPIRE', key, expire_ms)
    end
  end
  if listed and tonumber(at) - tonumber(listed) < LISTED_EVERY_US then
    return answer
  end
  redis.call('HSET', row, 'listed', at)
  local who = redis.call('HMGET', row, 'owner', 'agent')
  if index == '' then
    table.insert(answer, tonumber(at))
    table.insert(answer, who[1])
    table.insert(answer, who[2])
  else
    redis.call('ZADD', index .. 'all', at, id)
    redis.call('ZADD', index .. 'owner:' .. who[1], at, id)
    redis.call('ZADD', index .. 'agent:' .. who[2], at, id)
  end
  return answer
end

-- How many seconds after it was noted a reference to a bundle may be used.
local hold_s = HOLD_S

-- Return bundles as a row names them, as a table.
local function bundles_of(words)
  local found = {}
  for bundle, token in string.gmatch(words, '(%S+) (%S+)') do
    found[bundle] = token
  end
  return found
end

local function as_long_as_the_row(key)
  local left = redis.call('PTTL', row)
  if left > 0 then
    redis.call('PEXPIRE', key, left)
  end
end
