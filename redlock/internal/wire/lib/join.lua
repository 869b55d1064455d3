-- Puts a member into the queue, unless it is there, and returns its rank; -1 if the queue is full,
-- and -2 if the member could not be added. A key of another type in place of the queue is removed:
-- the queue promises nothing.
--
-- The member queues beside the counters says until when there may be queues, in ms since 1970. After
-- that no script need look at a queue.
local function join(wait, member, lifetime, fences, time)
  local last = time[1] * 1000 + math.floor(time[2] / 1000) + lifetime
  redis.pcall('ZADD', fences, 'GT', string.format('%.0f', last), 'queues')
  local rank, full = redis.pcall('ZRANK', wait, member), false
  if rank == 0 then
    local score = redis.pcall('ZSCORE', wait, member)
    if type(score) == 'string' and tonumber(score) < 0 then
      redis.pcall('ZADD', wait, 'XX', string.match(member, '^1 (%d+)'), member) -- its turn is over
    end
  elseif type(rank) ~= 'number' then
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
