-- Forgets a key. KEYS: the key.
local time = redis.call('TIME')
return { 0, redis.call('UNLINK', KEYS[1]), time[1] * 1000000 + time[2] }
