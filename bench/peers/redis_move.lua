-- KEYS: delayed, ready, leases. ARGV: now in ms, how many at most of each.
-- Jobs that are due, and those whose lease has ended, become ready.
local moved = 0
for _, from in ipairs({KEYS[1], KEYS[3]}) do
	local ids = redis.call('ZRANGEBYSCORE', from, '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
	if #ids > 0 then
		redis.call('ZREM', from, unpack(ids))
		redis.call('LPUSH', KEYS[2], unpack(ids))
		moved = moved + #ids
	end
end
return moved
