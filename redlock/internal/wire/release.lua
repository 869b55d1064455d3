-- Deletes the key if it is the owner's, or shortens its life to what is left of the minimum hold,
-- and calls those whose turn it is, see queue.go. A user who may not publish, and a queue that is
-- none, must not cost the release, hence pcall.
--
-- With a third key it corrects the record of the sequence first, whoever has the key: 'undo' takes
-- back what this owner recorded, 'done' records the completion. When that lease was granted is
-- known to a server that granted it to this owner, and no other: another holder of the same number
-- began at another time. A server that is full must not lose the release over it, hence pcall.
--
-- KEYS lock, wait, record; ARGV owner, keep ms, turn ms or an empty text to call nobody, the
-- owner's own member of the queue or an empty text, what channels begin with, and with a record
-- what to do with it, and then the same as acquire.lua. Returns 1 if the key was the owner's and 0
-- if not, and 2 more if the record could not be written.
--include read
--include version
--include call
local unwritten = 0
if KEYS[3] and ARGV[6] ~= 'keep' then --mutant:completion-needs-the-lease
--include record
  local r, _, other = read(redis.pcall('GET', KEYS[3]))
  local changed
  if other then --mutant:other-record-completed-over
    unwritten = 2
  elseif ARGV[6] == 'undo' then
    if r[12] == ARGV[1] then --mutant:undo-of-anybodys-number
      r[2], r[3], r[4], r[10], r[12] = r[8], r[9], 0, r[11], ''
      changed = true
    end
  elseif tonumber(r[5]) < tonumber(ARGV[7]) then
    if tonumber(r[2]) < tonumber(ARGV[7]) then
      r[8], r[9], r[11] = r[2], r[3], r[10]
      r[2], r[3], r[4], r[10], r[12] = ARGV[7], 1, 0, ARGV[11], ARGV[1]
    end
    local time = redis.call('TIME')
    r[5], r[6] = ARGV[7], r[2] == ARGV[7] and r[12] == ARGV[1] and r[4] or 0 --mutant:completion-began-with-another
    r[7] = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
    changed = true
  end
  if changed and redis.pcall('SET', KEYS[3], written(r), 'PX', ARGV[8])['err'] then
    unwritten = 2
  end
end
if ARGV[4] ~= '' then
  redis.pcall('ZREM', KEYS[2], ARGV[4]) --mutant:queue-costs-a-release
end
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' and not foreign(holder) then
  return holder
elseif holder and holder ~= ARGV[1] then --mutant:release-without-comparison
  return unwritten
end
local answer = unwritten
if holder then
  answer = unwritten + 1
  if ARGV[2] == '0' then
    redis.call('DEL', KEYS[1])
  elseif redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
end
if ARGV[3] ~= '' then
  call(KEYS[2], ARGV[2], ARGV[3], ARGV[5], ARGV[1])
end
return answer
