-- Reports whether there may be queues, by the field queues that HMGET has found at place i, see
-- join.lua. If the counters are damaged, there may be.
local function maybeQueued(found, i, time)
  local last = tonumber(found[i] or 0)
  return found['err'] or not last or last > time[1] * 1000
end
-- Returns the member that a free key is reserved for, and for how many ms, if the reservation is in
-- the way of the given member (an empty text for an attempt that does not wait). Else it returns
-- nil, 0, and a member whose reservation is over, if there is one. It writes nothing: a full server
-- refuses only the first write of a script, so the first write must be the grant's.
--include brief
local function reserved(wait, member, time)
  local first = redis.pcall('ZRANGE', wait, 0, 0, 'WITHSCORES')
  if first[1] and first[1] ~= member and tonumber(first[2]) < 0 then
    local left = -tonumber(first[2]) - math.floor(time[1] * 1000 + time[2] / 1000)
    local rank = member ~= '' and redis.pcall('ZRANK', wait, member)
    if left <= 0 or left > 1000 then
      return nil, 0, first[1]
    elseif type(rank) ~= 'number' or rank > 2 then
      return brief(first[1]), left
    end
  end
  return nil, 0
end
