<?php

declare(strict_types=1);

namespace Tarry;

/**
 * The calls of a Client on topics.
 *
 * @internal
 */
trait TopicCalls
{
    /**
     * Kicks dead jobs of a topic, the longest dead first.
     *
     * @param array<string, mixed> $filter as in docs/http-reference.md
     * @param int|null $max null: all of them
     * @param float|null $rate jobs a second that become due; null: all at once
     * @return array{kicked: int, more: bool} more: the call ended before it had seen all
     */
    public function kickTopic(string $topic, array $filter = [], ?int $max = null, ?float $rate = null, ?string $toTopic = null): array
    {
        return $this->sweep($topic, 'kick', $filter, $max, ['rate' => $rate, 'to_topic' => $toTopic], 'kicked');
    }

    /**
     * Deletes jobs of a topic in a state: "dead", "delayed" or "ready".
     *
     * @param array<string, mixed> $filter as in docs/http-reference.md
     * @param int|null $max null: all of them
     * @return array{deleted: int, more: bool}
     */
    public function purge(string $topic, string $state, array $filter = [], ?int $max = null): array
    {
        return $this->sweep($topic, 'purge', $filter, $max, ['state' => $state], 'deleted');
    }

    /**
     * Gives reserved jobs of a topic back at once: those of one consumer that has died, for one.
     *
     * @param string $consumer empty: of all consumers
     * @param array<string, mixed> $filter as in docs/http-reference.md
     * @param int|null $max null: all of them
     * @return array{released: int, more: bool}
     */
    public function releaseTopic(string $topic, string $consumer = '', array $filter = [], ?int $max = null, string $reason = ''): array
    {
        $more = ['consumer' => $consumer === '' ? null : $consumer, 'reason' => $reason === '' ? null : $reason];
        return $this->sweep($topic, 'release', $filter, $max, $more, 'released');
    }

    /**
     * Puts all jobs of a topic into another one, or those in the given states, or those that match.
     *
     * @param list<string>|null $states
     * @param array<string, mixed> $filter as in docs/http-reference.md
     * @return array{moved: int, skipped?: int, reason?: string, more: bool, next?: string} more: call again with next as cursor
     */
    public function moveTopic(
        string $topic,
        string $to,
        ?array $states = null,
        array $filter = [],
        ?int $max = null,
        ?string $cursor = null,
    ): array {
        return $this->sweep($topic, 'move', $filter, $max, ['to' => $to, 'states' => $states, 'cursor' => $cursor], 'moved');
    }

    /**
     * Gives delayed jobs of a topic that are due from due_from to due_to of the filter other due times: spread evenly over so
     * many seconds, or each later by so many.
     *
     * @param array<string, mixed> $filter as in docs/http-reference.md
     * @param bool $earlier whether a spread may make jobs due earlier
     * @param int|null $max null: all of them
     * @return array{rescheduled: int, unchanged?: int, skipped?: int, reason?: string, more?: bool, next?: string} more:
     *     call again with next as $cursor
     */
    public function reschedule(
        string $topic,
        array $filter,
        ?float $spread = null,
        bool $earlier = false,
        ?float $postpone = null,
        ?int $max = null,
        ?string $cursor = null,
    ): array {
        $in = self::given([
            'filter' => Json::members($filter),
            'spread' => $spread,
            'earlier' => $earlier ? true : null,
            'postpone' => $postpone,
            'max' => $max,
            'all' => $max === null ? true : null,
            'cursor' => $cursor,
        ]);
        $path = self::topicPath($topic, 'reschedule');
        return $this->call(new Request('POST', $path, $in, true, work: self::SWEEP_TIME, gives: ['rescheduled' => 0]));
    }

    /** The counts of one topic, all zero when it has no jobs. */
    public function topic(string $topic): Topic
    {
        return Topic::fromReply($this->read(self::topicPath($topic), Shape::TOPIC));
    }

    /**
     * All topics by name, page by page while they are read.
     *
     * @param int $page topics in one reply, 1 to 1000
     * @return \Generator<int, Topic>
     */
    public function topics(string $after = '', int $page = 1000): \Generator
    {
        foreach ($this->pages('/v1/topics', 'topics', Shape::TOPIC, 'after', $after, $page) as $topic) {
            yield Topic::fromReply($topic);
        }
    }

    /**
     * The items of a listing, page by page while they are read.
     *
     * @param array<string, mixed> $shape of an item
     * @return \Generator<int, array<string, mixed>>
     */
    private function pages(string $path, string $items, array $shape, string $cursor, string $after, int $page): \Generator
    {
        do {
            $reply = $this->read($path . self::query([$cursor => $after === '' ? null : $after, 'max' => $page]), [$items => [$shape]]);
            foreach ($reply[$items] as $item) {
                yield $item;
            }
            $after = $reply['next'] ?? '';
        } while ($after !== '');
    }

    /**
     * The counts over all topics.
     *
     * @return array<string, mixed>
     */
    public function stats(): array
    {
        return $this->read('/v1/stats', ['topics' => 0, 'ready' => 0]);
    }

    /**
     * How many delayed jobs of a topic are due in each of the next steps of time; null: of all topics.
     *
     * @param float|null $step length in seconds, a multiple of 60; null: an hour
     * @param int|null $steps null: 24
     * @param \DateTimeInterface|null $start of the first step; null: of the present one
     * @return array{topic?: string, start: string, step: float|int, jobs: list<int>, before: int, after: int, overdue: int}
     */
    public function forecast(?string $topic = null, ?float $step = null, ?int $steps = null, ?\DateTimeInterface $start = null): array
    {
        $path = $topic === null ? '/v1/forecast' : self::topicPath($topic, 'forecast');
        $path .= self::query(['step' => $step, 'steps' => $steps, 'start' => Json::time($start)]);
        return $this->read($path, ['start' => '', 'step' => 0.0, 'jobs' => [0]]);
    }

    /**
     * The topics of which most delayed jobs are due in one step of time.
     *
     * @param int|null $max topics; null: 10
     * @return array{start: string, step: float|int, jobs: int, topics: list<array{topic: string, jobs: int}>}
     */
    public function forecastTopics(?float $step = null, ?int $max = null, ?\DateTimeInterface $start = null): array
    {
        $path = '/v1/forecast/topics' . self::query(['step' => $step, 'max' => $max, 'start' => Json::time($start)]);
        return $this->read($path, ['start' => '', 'jobs' => 0, 'topics' => [['topic' => '', 'jobs' => 0]]]);
    }

    /**
     * What happened to the jobs of a topic in each step of the last 15 minutes; null: of all topics.
     *
     * @return array<string, mixed> as in docs/http-reference.md
     */
    public function rates(?string $topic = null): array
    {
        return $this->read($topic === null ? '/v1/rates' : self::topicPath($topic, 'rates'), ['step' => 0.0, 'added' => [0]]);
    }

    /**
     * Holds a topic's ready jobs back for so many seconds, until an instant, or until it is resumed.
     *
     * @return array{paused: bool, paused_until?: string}
     */
    public function pause(string $topic, ?float $for = null, ?\DateTimeInterface $until = null): array
    {
        $in = self::given(['for' => $for, 'until' => Json::time($until)]);
        return $this->post(self::topicPath($topic, 'pause'), $in, true, ['paused' => false]);
    }

    /** @return array{paused: bool} */
    public function resume(string $topic): array
    {
        return $this->call(new Request('POST', self::topicPath($topic, 'resume'), null, true, gives: ['paused' => false]));
    }

    /** @return array{topic: string, revision: int, settings: array<string, mixed>} */
    public function settings(string $topic): array
    {
        return $this->read(self::topicPath($topic, 'settings'), Shape::SETTINGS);
    }

    /**
     * Replaces the settings of a topic as a whole; with $ifRevision only those of that revision.
     *
     * @param array<string, mixed> $settings as in docs/limits.md
     * @return array{topic: string, revision: int, settings: array<string, mixed>}
     */
    public function setSettings(string $topic, array $settings, ?int $ifRevision = null): array
    {
        $path = self::topicPath($topic, 'settings') . self::query(['if_revision' => $ifRevision]);
        return $this->call(new Request('PUT', $path, Json::members($settings), $ifRevision === null, gives: Shape::SETTINGS));
    }

    /**
     * Sets some settings of a topic; null removes one.
     *
     * @param array<string, mixed> $settings as in docs/limits.md
     * @return array{topic: string, revision: int, settings: array<string, mixed>}
     */
    public function changeSettings(string $topic, array $settings, ?int $ifRevision = null): array
    {
        $path = self::topicPath($topic, 'settings') . self::query(['if_revision' => $ifRevision]);
        return $this->call(new Request('PATCH', $path, Json::members($settings), $ifRevision === null, gives: Shape::SETTINGS));
    }

    /**
     * Removes all settings of a topic.
     *
     * @return array{topic: string, revision: int, settings: array<string, mixed>}
     */
    public function deleteSettings(string $topic, ?int $ifRevision = null): array
    {
        $path = self::topicPath($topic, 'settings') . self::query(['if_revision' => $ifRevision]);
        return $this->call(new Request('DELETE', $path, null, $ifRevision === null, gives: Shape::SETTINGS));
    }

    /**
     * The topics that have settings by name, page by page while they are read.
     *
     * @return \Generator<int, array{topic: string, revision: int, settings: array<string, mixed>}>
     */
    public function allSettings(string $after = '', int $page = 1000): \Generator
    {
        return $this->pages('/v1/topic-settings', 'topics', Shape::SETTINGS, 'after', $after, $page);
    }

    /**
     * @param array<string, mixed> $filter
     * @param array<string, mixed> $more
     * @return array<string, mixed>
     */
    private function sweep(string $topic, string $verb, array $filter, ?int $max, array $more, string $count): array
    {
        $in = ['max' => $max, 'all' => $max === null ? true : null, 'filter' => $filter === [] ? null : Json::members($filter)];
        $in = self::given($in + $more);
        return $this->call(new Request('POST', self::topicPath($topic, $verb), $in, work: self::SWEEP_TIME, gives: [$count => 0]));
    }
}
