-- Deletes the key if it is the owner's, or shortens its life to what is left of the minimum hold,
-- and calls those whose turn it is, see queue.go. A user who may not publish, and a queue that is
-- none, must not cost the release, hence pcall.
--
-- With a second key it corrects the record of the sequence first, whoever has the key: 'undo' takes
-- back what this owner recorded, 'done' records the completion. When that lease was granted is
-- known to a server that granted it to this owner, and no other: another holder of the same number
-- began at another time. A server that is full must not lose the release over it, hence pcall.
--
-- KEYS lock, record; ARGV 'token owner', turn ms or an empty text to call nobody, what channels
-- begin with; where one of these is needed, keep ms, the owner's own member of the queue or an
-- empty text; and with a record what to do with it, and then the same as acquire.lua. With a third
-- key, a journal, what lib/enter.lua takes from at on follows: how the work ended that the lease
-- was for. Returns 1 if the key was the owner's and 0 if not, and 2 more if the record could not be
-- written.
-- What is not needed for a lease that nobody waits for is made only where it is.
local wait, keep, member = KEYS[1] .. ':wait', ARGV[4] or '0', ARGV[5] or ''
local no, yes = '0', '1' -- texts: to make one of a number costs as much as a command
if KEYS[3] then
--include enter
  enter(KEYS[3], ARGV[13], ARGV[14], ARGV[15], ARGV[16], tonumber(ARGV[17]), ARGV[18], ARGV[19])
end
if KEYS[2] and ARGV[6] ~= 'keep' then
--include lock
--include version
--include record
  local _, owner = split(ARGV[1])
  local r, _, other = read(redis.pcall('GET', KEYS[2]))
  local changed
  if other then
    no, yes = '2', '3'
  elseif ARGV[6] == 'undo' then
    if r[14] == owner then
      r[2], r[3], r[4], r[10], r[14] = r[8], r[9], 0, r[11], ''
      changed = true
    end
  elseif tonumber(r[5]) < tonumber(ARGV[7]) then
    if tonumber(r[2]) < tonumber(ARGV[7]) then
      r[8], r[9], r[11] = r[2], r[3], r[10]
      r[2], r[3], r[4], r[10], r[14] = ARGV[7], 1, 0, ARGV[11], owner
      r[13] = ARGV[10] == '1' and 't' or ''
    end
    local time = redis.call('TIME')
    r[5], r[6] = ARGV[7], r[2] == ARGV[7] and r[14] == owner and r[4] or 0
    r[7] = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
    changed = true
  end
  if changed and store(KEYS[2], r, ARGV[8])['err'] then
    no, yes = '2', '3'
  end
end
if member ~= '' then
  redis.pcall('ZREM', wait, member)
end
local holder = redis.pcall('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
--include read
--include lock
  if type(holder) == 'table' and not foreign(holder) then
    return holder
  elseif type(holder) == 'table' or not same(holder, ARGV[1]) then
    return no
  end
end
if holder then
  local left = keep ~= '0' and redis.call('PTTL', KEYS[1])
  if not left then
    redis.call('DEL', KEYS[1])
  elseif left < 0 or left > tonumber(keep) then
    redis.call('PEXPIRE', KEYS[1], keep)
  end
end
if ARGV[2] ~= '' and redis.pcall('EXISTS', wait) ~= 0 then
--include version
--include call
  call(wait, keep, ARGV[2], ARGV[3], ARGV[1])
end
return holder and yes or no
