-- Calls the first three waiters, and reserves the key for the first of them. With yield it calls
-- none while the key is reserved already. A call that is not received means that the process of the
-- waiter has gone, so the waiter loses its place. A waiter of another version of this library keeps
-- its place and is not called, because its channel is not known. The waiters behind it are called
-- in its place.
local function call(wait, keep, turn, channels, release, yield)
  local first = redis.pcall('ZRANGE', wait, 0, 0, 'WITHSCORES')
  if not first[1] then
    return
  end
  local time = redis.call('TIME')
  local now = math.floor(time[1] * 1000 + time[2] / 1000)
  if tonumber(first[2]) < 0 then
    if -tonumber(first[2]) <= now or not string.find(first[1], '^1 %d+ %S') and not otherVersion(first[1]) then
      redis.pcall('ZREM', wait, first[1])
    elseif yield and -tonumber(first[2]) - now <= 1000 then
      return
    end
  end
  local kept, told = 0, 0
  for _ = 1, 4096 do
    local member = told < 3 and redis.pcall('ZRANGE', wait, kept, kept)[1]
    if not member then
      break
    end
    local number, process = string.match(member, '^1 (%d+) (%S+)')
    kept = kept + 1
    if not process and not otherVersion(member) then
      redis.pcall('ZREM', wait, member)
      kept = kept - 1
    elseif process then
      local free = keep + told * turn
      local message = '1 ' .. string.format('%.0f', free) .. ' ' .. number .. ' ' .. release
      local received = redis.pcall('PUBLISH', channels .. process, message)
      if type(received) ~= 'number' then
        break
      elseif received == 0 then
        redis.pcall('ZREM', wait, member)
        kept = kept - 1
      else
        if told == 0 then
          redis.pcall('ZADD', wait, string.format('-%.0f', now + free + turn), member)
        end
        told = told + 1
      end
    end
  end
end
