-- Tries what the library needs. A SET with XX, and what changes keys that are not there, change
-- nothing, and are refused where a grant would be: for want of rights, of memory or of replicas, or
-- because the server cannot save. So is an HSET with a value too few, which is told of that last.
-- Of what no script can try without a change, or at all, the server is asked whether the user may.
--
-- KEYS lock, fences, wait; ARGV channel, register. Returns the error of each command of trials, or
-- 1.
local function try(...)
  local answer = redis.pcall(...)
  local failed = type(answer) == 'table' and answer['err']
  if failed and not string.find(failed, 'wrong number of arguments') then
    return answer
  end
  return 1
end
local function may(...)
  if not redis.acl_check_cmd then
    return 1
  end
  local known, allowed = pcall(redis.acl_check_cmd, ...)
  if not known then
    return redis.error_reply('ERR unknown command')
  end
  return allowed and 1 or redis.error_reply('NOPERM the user may not call it')
end
local lock, fences, wait, register = KEYS[1], KEYS[2], KEYS[3], ARGV[2]
return {
  try('TIME'), try('GET', lock), try('HGET', fences, '0'), try('PTTL', lock), try('HSET', fences, '0', '0', '0'),
  try('SET', lock, '', 'XX', 'PX', 1), try('PEXPIRE', lock, 1), try('DEL', lock),
  try('GET', register), try('SET', register, '', 'XX', 'PX', 1),
  try('EXISTS', wait), try('MGET', lock, register), try('HMGET', fences, '0'),
  try('ZADD', wait, 'XX', 1, 'x'), try('ZRANK', wait, 'x'), try('ZSCORE', wait, 'x'), try('ZCARD', wait),
  try('ZRANGE', wait, 0, 0), try('ZREM', wait, 'x'), try('PEXPIRE', wait, 1), try('PUBLISH', ARGV[1], ''),
  may('SUBSCRIBE', ARGV[1]), may('EVALSHA_RO', '0', '0'), may('EVALSHA', '0', '0'), may('EVAL', '', '0'), may('EVAL_RO', '', '0'),
  may('HGETALL', fences), may('HDEL', fences, '0'),
  may('ZRANGEBYLEX', wait, '-', '+'), may('LINDEX', wait, '0'), may('LPUSH', wait, ''), may('LRANGE', wait, '0', '0'), may('LREM', wait, '0', ''),
  may('LSET', wait, '0', ''), may('LTRIM', wait, '0', '0'),
  may('PING'), may('UNSUBSCRIBE'), may('PUNSUBSCRIBE'), may('SUNSUBSCRIBE'), may('DISCARD'),
}
