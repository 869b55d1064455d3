-- Tries what the library needs. A SET with XX, and what changes keys that are not there, change
-- nothing, and are refused where a grant would be: for want of rights, of memory or of replicas, or
-- because the server cannot save.
--
-- KEYS lock, fence, wait; ARGV channel, record. Returns the error of each command of trials, or 1.
local function try(...)
  local answer = redis.pcall(...)
  return type(answer) == 'table' and answer['err'] and answer or 1
end
local lock, fence, wait, record = KEYS[1], KEYS[2], KEYS[3], ARGV[2]
return {
  try('TIME'), try('GET', lock), try('GET', fence), try('PTTL', lock), try('SET', fence, '0', 'XX', 'PX', 1),
  try('SET', lock, '', 'XX', 'PX', 1), try('PEXPIRE', lock, 1), try('DEL', lock),
  try('GET', record), try('SET', record, '', 'XX', 'PX', 1),
  try('EXISTS', wait), try('MGET', lock, fence),
  try('ZADD', wait, 'XX', 1, 'x'), try('ZRANK', wait, 'x'), try('ZSCORE', wait, 'x'), try('ZCARD', wait),
  try('ZRANGE', wait, 0, 0), try('ZREM', wait, 'x'), try('PEXPIRE', wait, 1), try('PUBLISH', ARGV[1], ''),
}
