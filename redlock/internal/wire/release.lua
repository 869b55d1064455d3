-- Deletes the key if it is the owner's, or shortens its life to what is left of the minimum hold,
-- and calls those whose turn it is, see queue.go. A user who may not publish, and a queue that is
-- none, must not cost the release, hence pcall.
--
-- With a third key it corrects the record of the sequence first, whoever has the key: 'undo' takes
-- back what this owner recorded, 'done' records the completion. When that lease was granted is
-- known to a server that granted it to this owner, and no other: another holder of the same number
-- began at another time. A server that is full must not lose the release over it, hence pcall.
--
-- KEYS lock, wait, record; ARGV 'token owner', keep ms, turn ms or an empty text to call nobody,
-- the owner's own member of the queue or an empty text, what channels begin with, and with a record
-- what to do with it, and then the same as acquire.lua. With a fourth key, a journal, what
-- lib/enter.lua takes from at on follows: how the work ended that the lease was for. Returns 1 if
-- the key was the owner's and 0 if not, and 2 more if the record could not be written. What is not
-- needed for a lease that nobody waits for is made only where it is.
local unwritten = 0
if KEYS[4] then
--include enter
  enter(KEYS[4], ARGV[13], ARGV[14], ARGV[15], ARGV[16], tonumber(ARGV[17]), ARGV[18], ARGV[19])
end
if KEYS[3] and ARGV[6] ~= 'keep' then --mutant:completion-needs-the-lease
--include lock
--include version
--include record
  local _, owner = split(ARGV[1])
  local r, _, other = read(redis.pcall('GET', KEYS[3]))
  local changed
  if other then --mutant:other-record-completed-over
    unwritten = 2
  elseif ARGV[6] == 'undo' then
    if r[13] == owner then --mutant:undo-of-anybodys-number
      r[2], r[3], r[4], r[10], r[13] = r[8], r[9], 0, r[11], ''
      changed = true
    end
  elseif tonumber(r[5]) < tonumber(ARGV[7]) then
    if tonumber(r[2]) < tonumber(ARGV[7]) then
      r[8], r[9], r[11] = r[2], r[3], r[10]
      r[2], r[3], r[4], r[10], r[13] = ARGV[7], 1, 0, ARGV[11], owner
    end
    local time = redis.call('TIME')
    r[5], r[6] = ARGV[7], r[2] == ARGV[7] and r[13] == owner and r[4] or 0 --mutant:completion-began-with-another
    r[7] = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
    changed = true
  end
  if changed and store(KEYS[3], r, ARGV[8])['err'] then
    unwritten = 2
  end
end
if ARGV[4] ~= '' then
  redis.pcall('ZREM', KEYS[2], ARGV[4]) --mutant:queue-costs-a-release
end
local holder = redis.pcall('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
--include read
--include lock
  if type(holder) == 'table' and not foreign(holder) then
    return holder
  elseif type(holder) == 'table' or not same(holder, ARGV[1]) then --mutant:release-without-comparison
    return unwritten
  end
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
if ARGV[3] ~= '' and redis.pcall('EXISTS', KEYS[2]) ~= 0 then
--include version
--include call
  call(KEYS[2], ARGV[2], ARGV[3], ARGV[5], ARGV[1])
end
return answer
