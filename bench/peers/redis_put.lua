-- KEYS: bodies, delayed, ready. ARGV: id, body, due in ms; 0 is now.
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if ARGV[3] == '0' then
	return redis.call('LPUSH', KEYS[3], ARGV[1])
end
return redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
