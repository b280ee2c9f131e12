-- KEYS: leases, bodies. ARGV: id. 0 means that the lease has ended.
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then
	return 0
end
redis.call('HDEL', KEYS[2], ARGV[1])
return 1
