-- Calls the first three waiters for a key that is free, or that is when the rest of a minimum hold
-- has passed. The first loses its place. A key that is free is reserved for it: the text of the
-- lock becomes 'R MEMBER' for a turn. A call that is not received means that the process of the
-- waiter has gone, so the waiter loses its place. A waiter of another version of this library keeps
-- its place and is not called, because its channel is not known. The waiters behind it are called
-- in its place.
local function call(lock, wait, keep, turn, channels, release)
  local kept, told = 0, 0
  for _ = 1, 4096 do
    local member = told < 3 and redis.pcall('ZRANGE', wait, kept, kept)[1]
    if not member then
      break
    end
    local number, process = string.match(member, '^1 (%d+) (%S+)')
    local stays = not process and otherVersion(member)
    if process then
      local message = '1 ' .. string.format('%.0f', keep + told * turn) .. ' ' .. number .. ' ' .. release
      local received = redis.pcall('PUBLISH', channels .. process, message)
      if type(received) ~= 'number' then
        break
      elseif received > 0 then
        stays = told > 0
        if not stays and keep == '0' then
          redis.pcall('SET', lock, 'R ' .. member, 'PX', turn)
        end
        told = told + 1
      end
    end
    if stays then
      kept = kept + 1
    else
      redis.pcall('ZREM', wait, member)
    end
  end
end
