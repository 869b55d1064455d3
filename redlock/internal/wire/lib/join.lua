-- Puts a member into the queue, unless it is there, and returns its rank; -1 if the queue is full,
-- and -2 if the member could not be added. A key of another type in place of the queue is removed:
-- the queue promises nothing.
local function join(wait, member, lifetime)
  local rank, full = redis.pcall('ZRANK', wait, member), false
  if type(rank) ~= 'number' then
    if type(rank) == 'table' and string.find(rank['err'], '^WRONGTYPE') then
      redis.pcall('DEL', wait)
    end
    rank = redis.pcall('ZCARD', wait)
    if type(rank) ~= 'number' then
      return -2
    end
    full = rank >= 4096
    if not full and type(redis.pcall('ZADD', wait, string.match(member, '^1 (%d+)'), member)) ~= 'number' then
      return -2
    end
  end
  -- A waiter that finds the queue full does not prolong its life, or the queue would never end.
  local left = redis.pcall('PTTL', wait)
  if type(left) == 'number' and left < (full and 0 or tonumber(lifetime)) then
    redis.pcall('PEXPIRE', wait, lifetime)
  end
  return full and -1 or rank
end
