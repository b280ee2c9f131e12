<?php

declare(strict_types=1);

namespace Tarry;

/**
 * The calls of a Client on schedules.
 *
 * @internal
 */
trait ScheduleCalls
{
    /**
     * Makes or replaces a schedule.
     *
     * @param array<string, mixed> $schedule as in docs/schedules.md
     * @return array{schedule: string, revision: int, existing: bool, replaced?: bool}
     */
    public function putSchedule(string $name, array $schedule, ?int $ifRevision = null): array
    {
        $in = Json::members($schedule) + ($ifRevision === null ? [] : ['if_revision' => $ifRevision]);
        return $this->call(new Request('PUT', self::schedulePath($name), $in, $ifRevision === null, gives: Shape::SCHEDULE_PUT));
    }

    /** @return array<string, mixed> */
    public function schedule(string $name): array
    {
        return $this->read(self::schedulePath($name), Shape::SCHEDULE);
    }

    /**
     * The schedules by name, page by page while they are read.
     *
     * @return \Generator<int, array<string, mixed>>
     */
    public function schedules(string $after = '', int $page = 1000): \Generator
    {
        return $this->pages('/v1/schedules', 'schedules', Shape::SCHEDULE, 'after', $after, $page);
    }

    /** Removes a schedule; the jobs of its runs stay. */
    public function deleteSchedule(string $name, ?int $ifRevision = null): void
    {
        $path = self::schedulePath($name) . self::query(['if_revision' => $ifRevision]);
        $this->end(new Request('DELETE', $path, null, $ifRevision === null, gives: Shape::SCHEDULE_CHANGED));
    }

    public function pauseSchedule(string $name): void
    {
        $this->call(new Request('POST', self::schedulePath($name, 'pause'), null, true, gives: Shape::SCHEDULE_CHANGED));
    }

    public function resumeSchedule(string $name): void
    {
        $this->call(new Request('POST', self::schedulePath($name, 'resume'), null, true, gives: Shape::SCHEDULE_CHANGED));
    }

    /** Starts a run now. With a key, the same call again is the same run. */
    public function runSchedule(string $name, ?string $key = null): Added
    {
        $reply = $this->post(self::schedulePath($name, 'run'), self::given(['key' => $key]), $key !== null, Shape::ADDED);
        return Added::fromReply($reply);
    }

    /** @return list<array<string, mixed>> the outcomes of the last runs, the latest first */
    public function scheduleRuns(string $name): array
    {
        return $this->read(self::schedulePath($name, 'runs'), ['runs' => [['outcome' => '']]])['runs'];
    }

    /** @return list<array{planned_at: string, local: string}> */
    public function previewSchedule(string $name, int $count = 10): array
    {
        $path = self::schedulePath($name, 'preview') . self::query(['count' => $count]);
        return $this->read($path, ['runs' => [['planned_at' => '']]])['runs'];
    }

    /**
     * The runs of a schedule that is not stored.
     *
     * @return list<array{planned_at: string, local: string}>
     */
    public function previewSpec(
        string $spec,
        ?string $zone = null,
        ?\DateTimeInterface $start = null,
        ?\DateTimeInterface $end = null,
        ?\DateTimeInterface $after = null,
        int $count = 10,
    ): array {
        $times = ['start' => Json::time($start), 'end' => Json::time($end), 'after' => Json::time($after)];
        $in = self::given(['spec' => $spec, 'zone' => $zone, 'count' => $count] + $times);
        $gives = ['runs' => [['planned_at' => '']]];
        return $this->call(new Request('POST', '/v1/schedules/preview', $in, true, reads: true, gives: $gives))['runs'];
    }
}
