-- Precedes a script that is sent with its text, which any process would carry out: it compares the
-- run_id itself.
if not string.find(redis.call('INFO', 'server'), 'run_id:' .. process, 1, true) then --mutant:self-check-of-nothing
  return redis.error_reply('NOSCRIPT another server process')
end
