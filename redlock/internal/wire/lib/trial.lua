-- Tries the commands that the library needs, without changing anything: on keys of the prefix that
-- belong to no caller. A SET with XX changes nothing, nor does a command on a key that is absent,
-- but the server refuses both where it would refuse a grant: for want of rights, of memory or of
-- replicas, or because it cannot save. For a command that no script can try without a change, or at
-- all, the script asks the server whether the user may call it. Nothing can be granted while a key
-- of another type is in the place of the counters.
--
-- Returns for each command of Trials its error, or 1.
local function try(...)
  local answer = redis.pcall(...)
  return type(answer) == 'table' and answer['err'] and answer or 1
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
local function trial(prefix)
  local lock, fences, channel = prefix .. ':{}', prefix .. ':fences', prefix .. ':call:'
  local wait, register, roster = lock .. ':wait', lock .. ':register', prefix .. ':roster'
  return {
    try('TIME'), try('GET', lock), damage(try('ZSCORE', fences, 'x'), 'key "' .. fences .. '" is no sorted set'), try('PTTL', lock), try('ZADD', fences, 'XX', 0, 'x'),
    try('SET', lock, '', 'XX', 'PX', 1), try('PEXPIRE', lock, 1), try('DEL', lock),
    try('GET', register), try('SET', register, '', 'XX', 'PX', 1),
    try('EXISTS', wait), try('MGET', lock, register), try('ZRANK', wait, 'x'), try('ZCARD', wait),
    try('ZRANGE', wait, 0, 0), try('ZREM', wait, 'x'), try('PEXPIRE', wait, 1), try('PUBLISH', channel, ''),
    may('SUBSCRIBE', channel), may('EVALSHA_RO', '0', '0'), may('EVALSHA', '0', '0'), may('EVAL', '', '0'), may('EVAL_RO', '', '0'),
    may('HGETALL', roster), may('HGET', roster, 'x'), may('HSET', roster, 'x', ''), may('HDEL', roster, 'x'),
    may('ZRANGEBYLEX', wait, '-', '+'), may('LINDEX', wait, '0'), may('LPUSH', wait, ''), may('LRANGE', wait, '0', '0'), may('LREM', wait, '0', ''),
    may('LSET', wait, '0', ''), may('LTRIM', wait, '0', '0'),
    may('PING'),
  }
end
