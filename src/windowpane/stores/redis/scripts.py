"""What the server does in one step, in its own language.

Each script gets all keys of one session (`redis_keys.py`), because a cluster that moves them refuses a step until all
have moved. Then come four words that are the same for all scripts: where the listing index is, how to wake watchers,
after how many milliseconds an unused session goes, and the session's id. Its own words follow. The time is the
server's, in microseconds.

A use moves a session to the top of the index, but not more than once in `LISTED_EVERY_US`; listing looks that far
ahead. On one server the same step keeps the index. In a cluster it stands on other servers: the first word is empty,
and the script tells the store when to keep it.
"""

from dataclasses import dataclass, field
from hashlib import sha1

LISTED_EVERY_US = 1_000_000
"""A session's place in the index is at most so much older than its last use."""

_COMMON = (
    """
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

local function as_long_as_the_row(key)
  local left = redis.call('PTTL', row)
  if left > 0 then
    redis.call('PEXPIRE', key, left)
  end
end
"""
).replace("LISTED_EVERY_US", str(LISTED_EVERY_US))


@dataclass(frozen=True, slots=True)
class Script:
    """A script and the name under which a server remembers it."""

    body: bytes
    sha: bytes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha", sha1(self.body, usedforsecurity=False).hexdigest().encode())


def _script(own: str) -> Script:
    return Script((_COMMON + own).encode())


APPEND = _script("""
local op, mark, since, expected, expected_at, begins, owner, agent, moved, count = unpack(ARGV, 5, 14)
local known = redis.call('HMGET', row, 'seq', 'at', 'touched', 'listed', mark)
local seq = tonumber(known[1] or 0)
if not known[1] and begins == '' then
  return {'missing'}
end
-- Also without a key: an earlier attempt can arrive after a later one, when its connection was slow to die.
if known[5] then
  return {'found', known[5]}
end
if since ~= '' then
  local moved_to = tonumber(redis.call('HGET', row, 'moved') or 0)
  local before, last = '+', nil
  repeat
    local entries = redis.call('XREVRANGE', log, before, '-', 'COUNT', 100)
    for _, entry in ipairs(entries) do
      local place = string.match(entry[1], '^%d+')
      local at, of = entry[2][2], entry[2][4]
      -- What came from another store has kept its time.
      if tonumber(at) < tonumber(since) and tonumber(place) > moved_to then
        entries = {}
        break
      end
      last = last or place
      if of == op then
        return {'found', place .. ' ' .. last .. ' ' .. at .. ' ' .. op}
      elseif of ~= '' then
        last = nil
      end
      before = '(' .. entry[1]
    end
  until #entries == 0
end

if expected ~= '' and tonumber(expected) ~= seq then
  return {'conflict', seq}
end
if expected_at ~= '' and known[2] ~= expected_at then
  return {'rewritten', seq}
end

count = tonumber(count)
local bodies, times = 14, 14 + count
local touched = moved == '' and now(known[3]) or moved
local at, last = touched, tostring(seq + count)
for number = 1, count do
  if moved ~= '' then
    at = ARGV[times + number]
  end
  local first_of = number == 1 and op or ''
  redis.call('XADD', log, seq + number .. '-0', 'a', at, 'o', first_of, 'e', ARGV[bodies + number])
end
if not known[1] then
  redis.call('HSET', row, 'owner', owner, 'agent', agent, 'created', moved == '' and at or ARGV[times + 1])
elseif tonumber(touched) < tonumber(known[3]) then
  touched = known[3]
end
local place = seq + 1 .. ' ' .. last .. ' ' .. at .. ' ' .. op
if since == '' and string.sub(mark, 1, 4) ~= 'key:' then
  redis.call('HSET', row, 'seq', last, 'at', at, 'touched', touched)
else
  redis.call('HSET', row, 'seq', last, 'at', at, 'touched', touched, mark, place)
end
if moved ~= '' then
  redis.call('HSET', row, 'moved', last)
end
for number = times + (moved == '' and 0 or count) + 1, #ARGV, 2 do
  redis.call('HSETNX', blobs, ARGV[number], ARGV[number + 1])
end
redis.call(wake, row, last)
return used({'appended', place}, touched, known[4])
""")

TOUCH = _script("""
local known = redis.call('HMGET', row, 'touched', 'listed')
if not known[1] then
  return {'missing'}
end
local at = now(known[1])
redis.call('HSET', row, 'touched', at)
return used({'touched'}, at, known[2])
""")

DELETE = _script("""
local only_idle, seq, touched, holder = unpack(ARGV, 5, 8)
local known = redis.call('HMGET', row, 'owner', 'agent', 'seq', 'touched', 'holder', 'until')
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
return {'deleted', known[1], known[2]}
""")

ERASE = _script("""
local erased, count = ARGV[5], tonumber(ARGV[6])
local seq = redis.call('HGET', row, 'seq')
if not seq then
  return {'missing'}
end
local wanted, some = {}, false
for number = 7, 6 + count do
  local place = tonumber(ARGV[number])
  if place >= 1 and place <= tonumber(seq) then
    wanted[ARGV[number] .. '-0'] = true
    some = true
  end
end
-- XDEL only marks an entry, and its text stays: the log is written anew without it.
if some then
  local after = '-'
  redis.call('DEL', fresh)
  repeat
    local entries = redis.call('XRANGE', log, after, '+', 'COUNT', 500)
    for _, entry in ipairs(entries) do
      local fields = entry[2]
      local body = wanted[entry[1]] and erased or fields[6]
      redis.call('XADD', fresh, entry[1], 'a', fields[2], 'o', fields[4], 'e', body)
      after = '(' .. entry[1]
    end
  until #entries == 0
  redis.call('RENAME', fresh, log)
  as_long_as_the_row(log)
end
for number = 7 + count, #ARGV do
  redis.call('HDEL', blobs, ARGV[number])
end
redis.call('DEL', snapshot)
redis.call('HSET', row, 'erased', seq)
return {'erased'}
""")

PUT_SNAPSHOT = _script("""
local seq, body = tonumber(ARGV[5]), ARGV[6]
local known = redis.call('HMGET', row, 'seq', 'erased')
-- A state from before an erasure may still hold what was erased.
if not known[1] or seq <= tonumber(known[2] or 0) then
  return {'ignored'}
end
if seq <= tonumber(redis.call('HGET', snapshot, 'seq') or 0) then
  return {'ignored'}
end
redis.call('HSET', snapshot, 'seq', seq, 'body', body)
as_long_as_the_row(snapshot)
return {'kept'}
""")

ACQUIRE = _script("""
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
""")

RELEASE = _script("""
if redis.call('HGET', row, 'holder') == ARGV[5] then
  redis.call('HDEL', row, 'holder', 'until')
end
return {'released'}
""")

DROP = Script(b"""
local time = redis.call('TIME')
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if score and tonumber(score) == tonumber(ARGV[2])
    and tonumber(score) + tonumber(ARGV[3]) < time[1] * 1000000 + time[2] then
  redis.call('ZREM', KEYS[1], ARGV[1])
end
return {'dropped'}
""")
"""Remove a name from an index if it still has the score it was found with and is older than some microseconds."""

BODIES = {one.sha: one.body for one in (APPEND, TOUCH, DELETE, ERASE, PUT_SNAPSHOT, ACQUIRE, RELEASE, DROP)}
"""Every script by its name."""
