-- Reports whether there may be queues, by what HMGET has found in the counters at that place: see
-- join.lua. Where the counters are damaged there may.
local function maybeQueued(found, i, time)
  local last = tonumber(found[i] or 0)
  return found['err'] or not last or last > time[1] * 1000
end
-- Returns who a key that is free is reserved for, and for how many ms, if that is in the way of a
-- member of the queue, or with an empty text of one that is none; or else a member whose
-- reservation is over. It writes nothing: a server that is full refuses a script's first write
-- only.
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
