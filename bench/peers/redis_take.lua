-- KEYS: ready, taken, leases, bodies. ARGV: end of the lease in ms, an id that a BLMOVE took or ''.
local id = ARGV[2]
if id == '' then
	id = redis.call('RPOP', KEYS[1])
	if not id then
		return false
	end
else
	redis.call('LREM', KEYS[2], 1, id)
end
redis.call('ZADD', KEYS[3], ARGV[1], id)
return {id, redis.call('HGET', KEYS[4], id)}
