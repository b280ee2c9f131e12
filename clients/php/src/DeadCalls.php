<?php

declare(strict_types=1);

namespace Tarry;

/**
 * The calls of a Client on dead jobs by their reasons, of which an empty one is that of jobs without any.
 *
 * @internal
 */
trait DeadCalls
{
    /**
     * The reasons that most dead jobs of a topic have; null: of all topics.
     *
     * @return array<string, mixed> jobs, groups and others, as in docs/http-reference.md
     */
    public function dead(?string $topic = null, ?int $max = null): array
    {
        $path = $topic === null ? '/v1/dead' : self::topicPath($topic, 'dead');
        return $this->read($path . self::query(['max' => $max]), ['jobs' => 0, 'groups' => [['reason' => '', 'jobs' => 0]]]);
    }

    /**
     * The topics that most dead jobs with a reason are in.
     *
     * @return array<string, mixed> jobs, topics, groups and others, as in docs/http-reference.md
     */
    public function deadTopics(string $reason, ?int $max = null): array
    {
        $path = '/v1/dead/topics' . self::query(['exact_reason' => $reason, 'max' => $max]);
        return $this->read($path, ['jobs' => 0, 'groups' => [['topic' => '', 'jobs' => 0]]]);
    }

    /**
     * Makes the dead jobs of all topics with a reason ready.
     *
     * @param int|null $max null: all of them
     * @param float|null $rate jobs a second that become due, of all topics; null: all at once
     * @return array{kicked: int, more?: bool}
     */
    public function kickDead(string $reason, ?int $max = null, ?float $rate = null, ?string $toTopic = null): array
    {
        return $this->sweepDead('kick', $reason, $max, ['rate' => $rate, 'to_topic' => $toTopic], 'kicked');
    }

    /**
     * Deletes the dead jobs of all topics with a reason.
     *
     * @param int|null $max null: all of them
     * @return array{deleted: int, more?: bool}
     */
    public function purgeDead(string $reason, ?int $max = null): array
    {
        return $this->sweepDead('purge', $reason, $max, [], 'deleted');
    }

    /**
     * @param array<string, mixed> $more
     * @return array<string, mixed>
     */
    private function sweepDead(string $verb, string $reason, ?int $max, array $more, string $count): array
    {
        $in = self::given(['exact_reason' => $reason, 'max' => $max, 'all' => $max === null ? true : null] + $more);
        return $this->call(new Request('POST', "/v1/dead/$verb", $in, work: self::SWEEP_TIME, gives: [$count => 0]));
    }
}
