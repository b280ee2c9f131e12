# Leads jobs through their states with the client beaneater:
# ruby beanstalk_client.rb HOST:PORT. Ends with a message at the first surprise.
require 'beaneater'

def expect(what, want, have)
  abort "#{what}: want #{want.inspect}, have #{have.inspect}" unless want == have
end

def refused(what, error)
  yield
  abort "#{what}: want #{error}"
rescue error
end

client = Beaneater.new(ARGV.fetch(0))
tube = client.tubes['ruby-work']

binary = "\x00\r\n\xFF{}".b
id = tube.put(binary, pri: 5, ttr: 60)[:id]
later = tube.put('later', delay: 600)[:id]
expect 'peek ready', id, tube.peek(:ready).id
expect 'peek delayed', later, tube.peek(:delayed).id
expect 'peek buried', nil, tube.peek(:buried)
expect 'jobs ready', 1, tube.stats.current_jobs_ready
expect 'tubes', true, client.tubes.all.map(&:name).include?('ruby-work')

job = tube.reserve(1)
expect 'reserved', [id, binary, 5, 60], [job.id, job.body.b, job.pri, job.ttr]
job.touch
job.release(pri: 7, delay: 0)
expect 'released', ['ready', 7, 1], [job.stats.state, job.stats.pri, job.stats.releases]

job = tube.reserve(1)
job.bury(pri: 9)
expect 'buried', id, tube.peek(:buried).id
expect 'kicked', '1', tube.kick(10)[:id]
job = tube.reserve(1)
expect 'after the kick', [id, 1, 1, 3], [job.id, job.stats.kicks, job.stats.buries, job.stats.reserves]
job.delete
expect 'deleted', false, job.exists?
refused('reserve without jobs', Beaneater::TimedOutError) { tube.reserve(0) }
refused('a job that is too big', Beaneater::JobTooBigError) { tube.put('x' * 70_000) }

client.jobs.find(later).kick
job = tube.reserve(1)
expect 'kicked by id', later, job.id
tube.pause(0)
client.close # returns the job
client = Beaneater.new(ARGV.fetch(0))
tube = client.tubes['ruby-work']
job = tube.reserve(10)
expect 'returned', later, job.id
job.delete
expect 'version', '1.13', client.stats.version.to_s
expect 'jobs left', 0, tube.stats.current_jobs_ready + tube.stats.current_jobs_reserved
client.close
