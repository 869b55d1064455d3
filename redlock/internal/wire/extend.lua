-- Renews the key with PEXPIRE (a server that is out of memory refuses SET), puts it back where it
-- is gone and that is permitted, and raises the counter to the token where that is given. The two
-- SETs run in pcall, because a full server must not cost the extension.
--
-- Putting a key back is for the server process that was vouched for, see gated: one that was
-- restarted may just before have voted for somebody else, whose round still counts that vote.
--
-- With a third key it raises the record of the sequence too, see WithSequence. A server that does not
-- know the sequence does not know it by that either.
--
-- KEYS lock, fence, record; ARGV owner, ttl ms, token, counter lifetime ms, '1' to raise the
-- counter, '1' to put the key back, and with a record the same as acquire.lua.
--include read
--include counter
local holder = redis.pcall('GET', KEYS[1])
local answer = 1
if type(holder) == 'table' and not foreign(holder) then
  return holder
elseif holder == ARGV[1] then --mutant:foreign-key-extended
  redis.call('PEXPIRE', KEYS[1], ARGV[2]) --mutant:extension-with-set
elseif holder then
  return 0
elseif ARGV[6] ~= '1' then --mutant:refill-not-gated,refill-counts-later,lost-key-not-put-back
  return 3
else
  local set = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  if set['err'] then
    return 3
  end
  answer = 2
end
if answer == 2 or ARGV[5] == '1' then --mutant:token-not-spread
  local time = redis.call('TIME')
  local fence = redis.pcall('GET', KEYS[2]) or '0'
  local n = counter(fence, time[1] * 1000000 + time[2])
  if not n or n < tonumber(ARGV[3]) then --mutant:damaged-counter-not-healed
    fence = ARGV[3]
  end
  redis.pcall('SET', KEYS[2], fence, 'PX', ARGV[4]) --mutant:counter-costs-the-extension
  if KEYS[3] then
--include version
--include record
    local r, _, other = read(redis.pcall('GET', KEYS[3]))
    if tonumber(r[2]) < tonumber(ARGV[7]) then --mutant:number-not-spread
      r[8], r[9], r[11] = r[2], r[3], r[10]
      r[2], r[3], r[4], r[10], r[12] = ARGV[7], 1, 0, ARGV[11], ARGV[1]
    end
    if not other then --mutant:other-record-extended-over
      redis.pcall('SET', KEYS[3], written(r), 'PX', ARGV[8])
    end
  end
end
return answer
