<?php

declare(strict_types=1);

namespace Tarry;

/**
 * What the replies of the calls have at least. A reply without it is of something else than the
 * call, whatever its status: then nothing is known of the call.
 *
 * A shape is an example: '', 0, 0.0 and false stand for values of their type, ['name' => shape]
 * for an object with these members, [shape] for a list of such elements, a closure says itself
 * what is wrong with a value.
 *
 * @internal
 */
final class Shape
{
    public const ADDED = ['id' => '', 'seq' => 0, 'state' => ''];
    public const CHANGED = ['id' => '', 'state' => ''];
    public const JOB = ['id' => '', 'seq' => 0, 'topic' => '', 'state' => '', 'revision' => 0, 'priority' => 0,
        'attempts' => 0, 'max_attempts' => 0, 'delay' => 0.0, 'ttr' => 0.0];
    public const RESERVED = ['id' => '', 'seq' => 0, 'topic' => '', 'token' => '', 'attempts' => 0, 'priority' => 0, 'ttr' => 0.0];
    public const TOPIC = ['topic' => '', 'ready' => 0, 'paused' => false];
    public const SETTINGS = ['revision' => 0, 'settings' => []];
    public const SCHEDULE = ['schedule' => '', 'spec' => ''];
    public const SCHEDULE_PUT = ['schedule' => '', 'revision' => 0];
    public const RULE = ['topics' => [''], 'verbs' => ['']];
    public const TOKEN = ['id' => '', 'revision' => 0, 'rules' => [self::RULE]];
    public const TOKEN_PUT = ['id' => '', 'revision' => 0];
    public const NAMESPACE = ['name' => '', 'revision' => 0, 'topic_prefix' => '', 'use' => ['jobs' => 0, 'bytes' => 0, 'topics' => 0]];
    public const NAMESPACE_PUT = ['name' => '', 'revision' => 0, 'existing' => false];
    public const SCHEDULE_CHANGED = ['schedule' => ''];

    /** Says where a value is not of a shape; null: nowhere. */
    public static function wrong(mixed $shape, mixed $value, string $name = 'it'): ?string
    {
        if ($shape instanceof \Closure) {
            return $shape($value, $name);
        }
        if (!is_array($shape)) {
            $type = get_debug_type($shape);
            $is = $type === 'float' ? is_float($value) || is_int($value) : get_debug_type($value) === $type;
            return $is ? null : "$name is not of the type $type";
        }
        if (!is_array($value)) {
            return "$name is not an " . ($shape !== [] && array_is_list($shape) ? 'array' : 'object');
        }
        if ($shape !== [] && array_is_list($shape)) {
            return array_is_list($value) ? self::firstWrong($shape[0], $value, $name) : "$name is not an array";
        }
        foreach ($shape as $member => $of) {
            $what = self::wrong($of, $value[$member] ?? null, $name === 'it' ? $member : "$name.$member");
            if ($what !== null) {
                return $what;
            }
        }
        return null;
    }

    /**
     * The results of a batch of so many items, in a member of a reply: each is of the shape, or an error.
     *
     * @return array<string, \Closure>
     */
    public static function batch(int $count, mixed $shape, string $member = 'results'): array
    {
        $item = static fn (mixed $i, string $name): ?string =>
            self::wrong(($i['success'] ?? false) === true ? $shape : ['code' => ''], $i, $name);
        return [$member => static function (mixed $list, string $name) use ($count, $item): ?string {
            $what = self::wrong([$item], $list, $name);
            return $what ?? (count($list) === $count ? null : "$name has " . count($list) . " elements for $count items");
        }];
    }

    /** @param list<mixed> $list */
    private static function firstWrong(mixed $shape, array $list, string $name): ?string
    {
        foreach ($list as $n => $element) {
            $what = self::wrong($shape, $element, $name . "[$n]");
            if ($what !== null) {
                return $what;
            }
        }
        return null;
    }
}
